//! The options of `cuda.jit`: one row each.
//!
//! Options are parsed here, both from Python objects and from the source of a decorator. The rows have the order of the
//! Python parameters; an option sees the values of the options before it. Error messages, command-line flags, the
//! reference page and `help(cuda.jit)` are generated from the rows.

use std::fmt;

use weft_artifact::Factors;

use super::{GpuBody, Options, Typing};
use crate::diagnostic;

/// The options of a decorator, without its signatures.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct JitOptions {
    /// The function is a device function, not a kernel.
    pub device: bool,
    /// Calls of the function are inlined.
    pub inline: bool,
    /// Linked code is optimized together with the kernel.
    pub lto: bool,
    /// The decorator sets coarsening factors, possibly to 1.
    pub says_factors: bool,
    /// The coarsening factors are chosen by timing launches.
    pub tune: bool,
    /// Compiled code is neither stored in the disk cache nor loaded from it.
    pub no_cache: bool,
    /// The percentage of the L1 cache's memory to use as shared memory; -1 for the driver's choice.
    pub carveout: Option<i8>,
    /// The typing rules; `None` for a device function that uses the rules of its caller.
    pub typing: Option<Typing>,
    /// The GPU implementation of a device function. No option sets it, but `cuda.intrinsic` and `cuda.declare_device`
    /// do.
    pub gpu: Option<GpuBody>,
    /// The decorator sets the sanitizer's checks, possibly to none.
    pub says_sanitize: bool,
    /// The options that change code. A decorator does not set libdevice, the CPU's thread model and the entry.
    pub code: Options,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A string.
    Str(String),
    /// A tuple or a list.
    Tuple(Vec<Self>),
    /// Anything else.
    Other {
        /// The result of `bool(value)`.
        truth: bool,
        /// Its `repr`.
        shown: String,
    },
}

/// Why an option does not accept a value, by the exception that Python raises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `TypeError`.
    Type(String),
    /// `ValueError`.
    Value(String),
    /// The error of an option that has been removed.
    Removed(String),
}

/// How an option is set on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// It has no flag: the source file sets it, or it changes no code.
    None,
    /// A flag of this name sets it to True.
    Switch(&'static str),
    /// A flag of this name sets it to False.
    Off(&'static str),
    /// A flag of this name takes a value; the second string is the value's placeholder in the help text.
    Value(&'static str, &'static str),
}

/// Parses a value and sets the option.
pub type ReadOption = fn(&mut JitOptions, &OptionValue) -> Result<(), Refusal>;

/// One option.
#[derive(Debug)]
pub struct JitOption {
    /// The parameter's name.
    pub name: &'static str,
    /// The default value, as Python source.
    pub default: &'static str,
    /// The accepted values.
    pub allowed: &'static str,
    /// Whether it changes code for GPUs, and for CPUs.
    pub changes: (bool, bool),
    /// Its flag on the command line.
    pub flag: Flag,
    /// Its documentation.
    pub doc: &'static str,
    /// Parses a value and sets the option; `None` if no code depends on the option.
    pub read: Option<ReadOption>,
}

/// The last field of a path of fields.
macro_rules! last {
    ($field:ident) => {
        stringify!($field)
    };
    ($outer:ident.$field:ident) => {
        stringify!($field)
    };
}

/// Reads a bool into a field.
macro_rules! truth {
    ($($field:ident).+) => {
        Some(|options: &mut JitOptions, value: &OptionValue| {
            options.$($field).+ = value.switch(last!($($field).+))?;
            Ok(())
        })
    };
}

/// Options of Numba that have been removed, and what to use instead.
const REMOVED: &[(&str, &str)] = &[
    ("argtypes", "pass a signature: @cuda.jit('void(float32[:])')"),
    ("restype", "pass a signature: @cuda.jit('float32(float32)', device=True)"),
    ("bind", "leave it out: kernels are always loaded on the current device"),
];

/// The row of an option that changes no code.
const NO_CODE: JitOption = JitOption {
    name: "",
    default: "None",
    allowed: "",
    changes: (false, false),
    flag: Flag::None,
    doc: "",
    read: None,
};

/// Every option, in the order of the parameters of `cuda.jit`.
pub const JIT_OPTIONS: &[JitOption] = &[
    JitOption {
        name: "device",
        default: "False",
        allowed: "bool",
        doc: "Make a device function, which can only be called from kernels. A function without this option can be launched and called.",
        read: truth!(device),
        ..NO_CODE
    },
    JitOption {
        name: "inline",
        default: "'never'",
        allowed: "'never', 'always', bool, or a function",
        changes: (true, true),
        doc: "`'always'` or True inlines the function into its callers. A function (which Numba would call to decide) leaves the decision to LLVM.",
        read: Some(|options, value| {
            options.inline = match value {
                OptionValue::Bool(inline) => *inline,
                OptionValue::Str(when) if when == "always" => true,
                OptionValue::Str(when) if when == "never" => false,
                OptionValue::None
                | OptionValue::Int(_)
                | OptionValue::Str(_)
                | OptionValue::Tuple(_)
                | OptionValue::Other { .. } => {
                    let message = format!("inline must be 'never', 'always' or a bool, not {value}");
                    return Err(Refusal::Value(message));
                }
            };
            Ok(())
        }),
        ..NO_CODE
    },
    JitOption {
        name: "forceinline",
        default: "False",
        allowed: "bool",
        changes: (true, true),
        doc: "The same as `inline='always'`.",
        read: Some(|options, value| {
            options.inline |= value.switch("forceinline")?;
            Ok(())
        }),
        ..NO_CODE
    },
    JitOption {
        name: "link",
        default: "()",
        allowed: "path, `LinkableCode` or list",
        doc: "Code to link with the kernel: paths of PTX, CUDA C++, cubins, fatbins, objects, archives and LTO-IR, `LinkableCode` objects, or a list of these.",
        ..NO_CODE
    },
    JitOption {
        name: "debug",
        allowed: "bool, or None for the setting `WEFT_DEBUG`",
        changes: (true, true),
        flag: Flag::Switch("debug"),
        doc: "Compile with line tables and without optimizations. `raise`, `assert`, divisions by zero and bad indices of tuples raise exceptions, as in Python. Each launch waits until the kernel has finished, and raises the first exception.",
        read: Some(|options, value| {
            options.code.debug = value.switch("debug")?;
            options.code.lineinfo |= options.code.debug;
            options.code.opt &= !options.code.debug;
            Ok(())
        }),
        ..NO_CODE
    },
    JitOption {
        name: "opt",
        allowed: "bool",
        changes: (true, true),
        doc: "Optimize. The default is True, or False with `debug`.",
        read: Some(|options, value| {
            if *value != OptionValue::None {
                options.code.opt = value.switch("opt")?;
            }
            Ok(())
        }),
        ..NO_CODE
    },
    JitOption {
        name: "lineinfo",
        default: "False",
        allowed: "bool",
        changes: (true, true),
        flag: Flag::Switch("lineinfo"),
        doc: "Add line tables for profilers.",
        read: Some(|options, value| {
            options.code.lineinfo |= value.switch("lineinfo")?;
            Ok(())
        }),
    },
    JitOption {
        name: "cache",
        allowed: "bool",
        doc: "Whether to cache the kernel on the disk for later processes. The default is the setting WEFT_CACHE.",
        read: Some(|options, value| {
            options.no_cache = *value != OptionValue::None && !value.switch("cache")?;
            Ok(())
        }),
        ..NO_CODE
    },
    JitOption {
        name: "fastmath",
        default: "False",
        allowed: "bool",
        changes: (true, true),
        flag: Flag::Switch("fastmath"),
        doc: "Relax floating point: denormals are zero, division and functions are approximate, sums are reordered.",
        read: Some(|options, value| {
            options.code.fastmath = value.switch("fastmath")?;
            options.code.contradiction()
        }),
    },
    JitOption {
        name: "reproducible",
        allowed: "bool, or None for the setting `WEFT_REPRODUCIBLE`",
        changes: (true, true),
        flag: Flag::Switch("reproducible"),
        doc: "Compute the same bits on every GPU and on the CPU. Multiply-adds are fused only if one expression contains both operations, math functions have a single implementation, and all computed NaNs have the same bits. Operations that cannot be reproducible, such as atomic additions of floats, emit a `ReproducibilityWarning` with their line. Cannot be combined with `fastmath`.",
        read: Some(|options, value| {
            options.code.reproducible = value.switch("reproducible")?;
            options.code.contradiction()
        }),
        ..NO_CODE
    },
    JitOption {
        name: "max_registers",
        allowed: "int from 16 to 255",
        changes: (true, false),
        flag: Flag::Value("max-registers", "N"),
        doc: "The maximum number of registers per thread.",
        read: Some(|options, value| {
            let message = || format!("max_registers must be an integer from 16 to 255, not {value}");
            options.code.max_registers = match value {
                OptionValue::None => None,
                OptionValue::Int(count @ 16..=255) => Some(*count as u32),
                OptionValue::Int(_) => return Err(Refusal::Value(message())),
                OptionValue::Bool(_) | OptionValue::Str(_) | OptionValue::Tuple(_) | OptionValue::Other { .. } => {
                    return Err(Refusal::Type(message()));
                }
            };
            Ok(())
        }),
        ..NO_CODE
    },
    JitOption {
        name: "launch_bounds",
        allowed: "int or tuple of up to three",
        changes: (true, true),
        flag: Flag::Value("launch-bounds", "THREADS[,BLOCKS[,CLUSTER]]"),
        doc: "The maximum number of threads per block; or a tuple of that, the minimum number of blocks per multiprocessor and the maximum number of blocks per cluster.",
        read: Some(|options, value| {
            options.code.launch_bounds = bounds::launch_bounds(value)?;
            Ok(())
        }),
        ..NO_CODE
    },
    JitOption {
        name: "coarsen",
        allowed: "1, 2, 4, a tuple of up to three of these, or 'auto'",
        changes: (true, true),
        flag: Flag::Value("coarsen", "X[,Y[,Z]]"),
        doc: "The number of adjacent threads of a block whose work one thread does: along x, or a tuple for x, y and z. `threadIdx`, `blockIdx`, `blockDim` and `gridDim` keep the values that the program sees without it, and results are the same. A launch whose block the factors do not divide runs the kernel without it, and so does a kernel whose result could depend on the order of its threads. By default, and with `'auto'`, launches on a GPU measure which factors of threads and blocks are fastest: the first launch runs the kernel as written, a few later ones run candidates that were compiled in the background, and `kernel.explain()` shows the choice. Small launches run without them. The command uses the compiler's estimate. 1 turns it off.",
        read: Some(|options, value| {
            options.code.choose = *value == OptionValue::Str("auto".to_owned());
            options.says_factors = !options.code.choose && *value != OptionValue::None;
            if options.code.choose {
                options.code.coarsen = Factors::NONE;
                return Ok(());
            }
            options.code.coarsen.threads = factors("coarsen", " or 'auto',", value)?;
            one_axis_each(options)
        }),
        ..NO_CODE
    },
    JitOption {
        name: "coarsen_blocks",
        allowed: "1, 2, 4 or a tuple of up to three of these",
        changes: (true, true),
        flag: Flag::Value("coarsen-blocks", "X[,Y[,Z]]"),
        doc: "The number of adjacent blocks of the grid whose work one block does: along x, or a tuple for x, y and z. May be combined with `coarsen` along other axes: `coarsen=2, coarsen_blocks=(1, 2)`. A launch whose grid the factors do not divide runs the kernel without it, and so does a kernel with shared memory.",
        read: Some(|options, value| {
            if *value == OptionValue::None {
                return Ok(());
            }
            if options.code.choose {
                let message =
                    "coarsen='auto' chooses factors of blocks, too: leave coarsen_blocks out, or give numbers to both";
                return Err(Refusal::Value(message.to_owned()));
            }
            options.says_factors = true;
            options.code.coarsen.blocks = factors("coarsen_blocks", "", value)?;
            one_axis_each(options)
        }),
        ..NO_CODE
    },
    JitOption {
        name: "tune",
        default: "False",
        allowed: "bool",
        doc: "Measure coarsening factors from the first launch on, also in small launches and on the CPU: more candidates than by default, compiled by the launches that measure them. Each launch does its work once, with one candidate, and is timed by events of its stream. The best factors for each block shape and grid size are cached in the process and on the disk. No effect if `coarsen` or `coarsen_blocks` sets factors.",
        read: truth!(tune),
        ..NO_CODE
    },
    JitOption {
        name: "lto",
        allowed: "bool",
        doc: "Optimize linked code together with the kernel, with nvJitLink. The kernel's own code is always optimized.",
        read: truth!(lto),
        ..NO_CODE
    },
    JitOption {
        name: "shared_memory_carveout",
        allowed: "'default', 'MaxL1', 'MaxShared' or int from -1 to 100",
        doc: "The preferred share of the combined L1 cache and shared memory that is used as shared memory, in percent. `'MaxL1'` is 0, `'MaxShared'` is 100, `'default'` and -1 are the driver's choice. Launches that need more shared memory get it. No effect on a CPU.",
        read: Some(|options, value| carveout::carveout(value).map(|percent| options.carveout = percent)),
        ..NO_CODE
    },
    JitOption {
        name: "extensions",
        allowed: "list",
        doc: "Objects that prepare the arguments of launches. Each argument passes through their `prepare_args(ty, val, stream, retr)`, from the last object to the first. It returns the new type and value, and may append functions to `retr` that are called after the launch.",
        ..NO_CODE
    },
    JitOption {
        name: "launch",
        allowed: "a function, or a tuple of grid and block",
        doc: "The launch rule of the exported kernel: a function whose parameters have the names of parameters of the kernel. It returns the grid and the block, and may return the bytes of dynamic shared memory as a third value. weft translates it: it computes integers from `.size`, `.shape[i]`, `.ndim` and integer arguments. No effect on launches with `kernel[grid, block]`.",
        ..NO_CODE
    },
    JitOption {
        name: "out",
        allowed: "`cuda.like`, `cuda.shaped`, or a dict of them by parameter",
        doc: "The output rules of the exported kernel: the shapes and dtypes of the arrays that its callers do not pass. A rule alone is that of the only array that the kernel writes. No effect on launches with `kernel[grid, block]`.",
        ..NO_CODE
    },
    JitOption {
        name: "boundscheck",
        allowed: "bool, or None for the setting `WEFT_BOUNDSCHECK`",
        changes: (true, true),
        flag: Flag::Switch("boundscheck"),
        doc: "Raise an `IndexError` if an array index is out of bounds, when the host next waits for the device.",
        read: truth!(code.boundscheck),
        ..NO_CODE
    },
    JitOption {
        name: "sanitize",
        allowed: "'all', a string or tuple of 'memcheck', 'racecheck', 'initcheck' and 'synccheck', bool, or None for \
            the setting `WEFT_SANITIZE`",
        changes: (false, true),
        doc: "The checks of the sanitizer, for launches on the CPU: accesses out of bounds, races, reads of memory before it is written, and barriers and warp operations that some of their threads do not reach. A launch with findings raises a `weft.errors.SanitizerError`.",
        read: Some(|options, value| {
            options.says_sanitize = *value != OptionValue::None;
            options.code.sanitize = sanitize::sanitize(value)?;
            Ok(())
        }),
        ..NO_CODE
    },
    JitOption {
        name: "wraparound",
        default: "True",
        allowed: "bool",
        changes: (true, true),
        flag: Flag::Off("no-wraparound"),
        doc: "Negative indices of arrays count from the end. False promises that no index is negative: indices are not adjusted, a negative literal is an error, and `boundscheck` reports other negative indices. Slices, tuples and strings are not affected.",
        read: Some(|options, value| {
            options.code.wraparound = match value {
                OptionValue::Bool(wraps) => *wraps,
                OptionValue::None
                | OptionValue::Int(_)
                | OptionValue::Str(_)
                | OptionValue::Tuple(_)
                | OptionValue::Other { .. } => {
                    return Err(Refusal::Type(format!("wraparound must be True or False, not {value}")));
                }
            };
            Ok(())
        }),
    },
    JitOption {
        name: "exceptions",
        default: "False",
        allowed: "bool",
        changes: (true, true),
        flag: Flag::Switch("exceptions"),
        doc: "`raise` and `assert` raise exceptions: the host raises the first one when it next waits for the device. Without this option they only end their thread.",
        read: truth!(code.exceptions),
    },
    JitOption {
        name: "typing",
        allowed: "'numba', 'numpy' or None",
        changes: (true, true),
        doc: "The rules for the types of numbers: Numba's, or with `'numpy'` those of NumPy 2, in which a literal never widens the other operand and `int32` with `int32` is `int32`. By default a kernel uses Numba's rules, and a device function those of its caller.",
        read: Some(|options, value| {
            options.typing = typing(value)?;
            Ok(())
        }),
        ..NO_CODE
    },
    JitOption {
        name: "source",
        allowed: "str",
        doc: "The source of the function, for functions without a file, such as those made by `exec`.",
        ..NO_CODE
    },
];

impl JitOptions {
    /// The option of this name.
    pub fn option(name: &str) -> Option<&'static JitOption> {
        JIT_OPTIONS.iter().find(|option| option.name == name)
    }

    /// Parses and sets options, each of which is given at most once.
    ///
    /// # Errors
    ///
    /// The name of an option that does not exist or does not accept its value, and the reason.
    pub fn take<'a>(&mut self, given: &[(&'a str, OptionValue)]) -> Result<(), (&'a str, Refusal)> {
        for (name, _) in given {
            if Self::option(name).is_none() {
                let refusal = match REMOVED.iter().find(|(removed, _)| removed == name) {
                    Some((_, instead)) => Refusal::Removed(format!("cuda.jit() has no option '{name}': {instead}")),
                    None => Refusal::Type(diagnostic::unexpected_option(name, JIT_OPTIONS.iter().map(|row| row.name))),
                };
                return Err((*name, refusal));
            }
        }
        for option in JIT_OPTIONS {
            let found = given.iter().find(|(name, _)| *name == option.name);
            if let (Some((name, value)), Some(read)) = (found, option.read) {
                read(self, value).map_err(|refusal| (*name, refusal))?;
            }
        }
        Ok(())
    }
}

impl Options {
    /// Checks for options that exclude each other, as flags and the decorator may set one each.
    fn contradiction(&self) -> Result<(), Refusal> {
        if self.reproducible && self.fastmath {
            return Err(Refusal::Value(
                "reproducible=True and fastmath=True contradict each other, because fastmath differs between devices: \
                 leave one of them out, or pass reproducible=False if WEFT_REPRODUCIBLE is set"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}

impl OptionValue {
    /// The value of an on/off option. A string is an error: `"no"` would count as on.
    fn switch(&self, option: &str) -> Result<bool, Refusal> {
        match self {
            Self::Str(_) => Err(Refusal::Type(format!("{option} must be True or False, not {self}"))),
            Self::None | Self::Bool(_) | Self::Int(_) | Self::Tuple(_) | Self::Other { .. } => Ok(self.truth()),
        }
    }

    /// The result of Python's `bool(value)`.
    pub fn truth(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(truth) | Self::Other { truth, .. } => *truth,
            Self::Int(value) => *value != 0,
            Self::Str(text) => !text.is_empty(),
            Self::Tuple(items) => !items.is_empty(),
        }
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(truth) => f.write_str(if *truth { "True" } else { "False" }),
            Self::Int(value) => write!(f, "{value}"),
            Self::Str(text) => write!(f, "'{text}'"),
            Self::Tuple(items) => {
                let shown: Vec<String> = items.iter().map(ToString::to_string).collect();
                let comma = if items.len() == 1 { "," } else { "" };
                write!(f, "({}{comma})", shown.join(", "))
            }
            Self::Other { shown, .. } => f.write_str(shown),
        }
    }
}

impl Refusal {
    /// The error message.
    pub fn message(&self) -> &str {
        match self {
            Self::Type(message) | Self::Value(message) | Self::Removed(message) => message,
        }
    }
}

/// Parses the factors of `coarsen` or `coarsen_blocks`; `also` names other accepted values for the message.
fn factors(name: &str, also: &str, value: &OptionValue) -> Result<[u32; 3], Refusal> {
    let mut message = format!("{name} must be 1, 2 or 4, or a tuple of up to three of these,{also} not {value}");
    let values = match value {
        OptionValue::None => return Ok([1; 3]),
        OptionValue::Str(_) => {
            message.push_str(": write coarsen=(2, 2) for threads, coarsen_blocks=(2, 2) for blocks");
            return Err(Refusal::Value(message));
        }
        OptionValue::Tuple(values) => values.as_slice(),
        OptionValue::Bool(_) | OptionValue::Int(_) | OptionValue::Other { .. } => std::slice::from_ref(value),
    };
    let mut factors = [1; 3];
    if !(1..=3).contains(&values.len()) {
        return Err(Refusal::Value(message));
    }
    for (factor, value) in factors.iter_mut().zip(values) {
        *factor = match value {
            OptionValue::Int(count @ (1 | 2 | 4)) => *count as u32,
            OptionValue::Int(_) => return Err(Refusal::Value(message)),
            OptionValue::None
            | OptionValue::Bool(_)
            | OptionValue::Str(_)
            | OptionValue::Tuple(_)
            | OptionValue::Other { .. } => return Err(Refusal::Type(message)),
        };
    }
    Ok(factors)
}

/// Rejects factors of both threads and blocks along the same axis.
fn one_axis_each(options: &JitOptions) -> Result<(), Refusal> {
    let factors = options.code.coarsen;
    if factors.meet() {
        let message = format!("coarsen and coarsen_blocks must be for different axes, not {factors}");
        return Err(Refusal::Value(message));
    }
    Ok(())
}

fn typing(value: &OptionValue) -> Result<Option<Typing>, Refusal> {
    let message = || format!("typing must be 'numba' or 'numpy', not {value}");
    match value {
        OptionValue::None => Ok(None),
        OptionValue::Str(given) => match Typing::NAMES.iter().find(|(name, _)| name == given) {
            Some((_, typing)) => Ok(Some(*typing)),
            None => Err(Refusal::Value(message())),
        },
        OptionValue::Bool(_) | OptionValue::Int(_) | OptionValue::Tuple(_) | OptionValue::Other { .. } => {
            Err(Refusal::Type(message()))
        }
    }
}

mod bounds;
mod carveout;
mod sanitize;
#[cfg(test)]
mod tests;
