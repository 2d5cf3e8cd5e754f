//! The rows of the table of settings, and how their values are read.

use std::{num::NonZeroUsize, path::PathBuf};

use weft_artifact::{Factors, Tools};

use super::{CoarsenChoice, CpuStrategy, DebugPlace, DeviceChoice, FileChoice, ProgressChoice, Setting};

/// Every setting.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "WEFT_DEVICE",
        default: "auto",
        allowed: "auto, cuda, cpu or python",
        doc: "Where kernels run. `auto` takes the GPU if there is one and else the CPU; `cuda` demands a GPU. With `python` Python's interpreter runs them, one thread after the other and very slowly, so that `breakpoint()`, `pdb` and the debugger of an editor work in a kernel.",
        parse: |settings, value| {
            settings.device = match value {
                "auto" => DeviceChoice::Auto,
                "cuda" => DeviceChoice::Cuda,
                "cpu" => DeviceChoice::Cpu,
                "python" => DeviceChoice::Python,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_CPU_COMPUTE_CAPABILITY",
        default: "9.0",
        allowed: "major.minor such as 9.0, from 5.0 to 12.9",
        doc: "The compute capability that the CPU answers when it stands in for a GPU; the limit on shared memory follows it.",
        parse: |settings, value| {
            settings.cpu_compute_capability = compute_capability(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_DEFAULT_PTX_CC",
        default: "7.5",
        allowed: "major.minor such as 9.0, from 5.0 to 12.9",
        doc: "The compute capability that `cuda.compile`, `compile_ptx` and `compile_all` compile for where they are given no `cc`; the oldest that weft has, 7.5, for older ones.",
        parse: |settings, value| {
            settings.default_ptx_cc = compute_capability(value)?.max((7, 5));
            Some(())
        },
    },
    Setting {
        name: "WEFT_CPU_THREADS",
        default: "auto",
        allowed: "auto or a number from 1 to 4096",
        doc: "How many threads run the blocks of a launch on the CPU. `auto` is one for each core that this process may use.",
        parse: |settings, value| threads(&mut settings.cpu_threads, value),
    },
    Setting {
        name: "WEFT_CPU_STRATEGY",
        default: "auto",
        allowed: "auto, loops or fibers",
        doc: "How the threads of a block run on the CPU: as `loops` that end at barriers, or as `fibers`, each with a stack of its own, which may wait for each other. `auto` takes fibers where a loop waits for memory, and else loops, which are many times faster.",
        parse: |settings, value| {
            settings.cpu_strategy = match value {
                "auto" => CpuStrategy::Auto,
                "loops" => CpuStrategy::Loops,
                "fibers" => CpuStrategy::Fibers,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_COARSEN",
        default: "auto",
        allowed: "auto, kernel, off, 1, 2, 4 or these for several axes: 1x2, 2x2x1; of blocks: blocks:2x2; of both, along different axes: 2x1+blocks:1x2",
        doc: "How many threads of a block, or with `blocks:` how many neighbouring blocks, become one that does the work of all, along x, y and z: in every kernel in which it changes no result, and for launches whose extents it divides. Blocks of kernels with shared memory stay as they are. `auto` is what `cuda.jit(coarsen=...)` says of each, and an estimate for those that do not say; `kernel` is `off` for these.",
        parse: |settings, value| {
            settings.coarsen = match value {
                "kernel" => CoarsenChoice::Kernel,
                "auto" => CoarsenChoice::Auto,
                "off" => CoarsenChoice::Factors(Factors::NONE),
                _ => CoarsenChoice::Factors(value.parse().ok()?),
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_TUNE",
        default: "0",
        allowed: SWITCH,
        doc: "Measure for every kernel that does not say how its threads are coarsened, on its own launches, which factors are the best, as `cuda.jit(tune=True)` does for one.",
        parse: |settings, value| switch(&mut settings.tune, value),
    },
    Setting {
        name: "WEFT_HOST_CPU",
        default: "auto",
        allowed: "auto or a CPU's name of LLVM's, such as x86-64-v3",
        doc: "The CPU that code for the CPU is made for, if not all that this machine has is to be used: `x86-64-v3` is one with AVX2 and without AVX-512. One that has what this machine has not is an error.",
        parse: |settings, value| {
            let is_name = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
            settings.host_cpu = match value {
                "auto" => None,
                _ => Some(is_name.then(|| value.to_owned())?),
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_LIBDEVICE",
        default: "auto",
        allowed: "auto, none or the path of a libdevice.10.bc",
        doc: "NVIDIA's math library, used for GPU code where there is one: faster than the built-in one. `none` never uses it.",
        parse: |settings, value| {
            settings.libdevice = file(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVRTC",
        default: "auto",
        allowed: "auto, none or the path of a libnvrtc.so",
        doc: "NVIDIA's compiler of CUDA C++, used for the sources that kernels are linked with. `auto` looks for it in CUDA toolkits and Python packages.",
        parse: |settings, value| {
            settings.nvrtc = file(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVJITLINK",
        default: "auto",
        allowed: "auto, none or the path of a libnvJitLink.so",
        doc: "NVIDIA's linker of LTO-IR, used where kernels are linked with that or with `lto=True`. `auto` looks for it in CUDA toolkits and Python packages.",
        parse: |settings, value| {
            settings.nvjitlink = file(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVRTC_EXTRA_SEARCH_PATHS",
        default: "",
        allowed: "folders with colons between",
        doc: "Where CUDA C++ that kernels are linked with finds more headers. A program may change it: `weft.config.CUDA_NVRTC_EXTRA_SEARCH_PATHS`.",
        parse: |settings, value| {
            value.clone_into(&mut settings.nvrtc_extra_search_paths);
            Some(())
        },
    },
    Setting {
        name: "WEFT_WARN_ON_IMPLICIT_COPY",
        default: "1",
        allowed: SWITCH,
        doc: "Warn where a launch on a GPU copies host arrays. A program may change it: `weft.config.CUDA_WARN_ON_IMPLICIT_COPY`.",
        parse: |settings, value| switch(&mut settings.warn_on_implicit_copy, value),
    },
    Setting {
        name: "WEFT_LOW_OCCUPANCY_WARNINGS",
        default: "1",
        allowed: SWITCH,
        doc: "Warn where a grid has too few blocks for a GPU. A program may change it: `weft.config.CUDA_LOW_OCCUPANCY_WARNINGS`.",
        parse: |settings, value| switch(&mut settings.low_occupancy_warnings, value),
    },
    Setting {
        name: "WEFT_CUDA_ARRAY_INTERFACE_SYNC",
        default: "1",
        allowed: SWITCH,
        doc: "Wait for the stream that an object with `__cuda_array_interface__` names. A program may change it: `weft.config.CUDA_ARRAY_INTERFACE_SYNC`.",
        parse: |settings, value| switch(&mut settings.array_interface_sync, value),
    },
    Setting {
        name: "WEFT_FOLLOW_STREAMS",
        default: "1",
        allowed: SWITCH,
        doc: "Launch in the stream that another library works in at present, if all arrays are of such libraries, they work in one, and the launch names none. Otherwise the launch waits for that stream.",
        parse: |settings, value| switch(&mut settings.follow_streams, value),
    },
    Setting {
        name: "WEFT_MEMORY_POOL",
        default: "1",
        allowed: SWITCH,
        doc: "Take the memory of a GPU from the driver's stream-ordered pool. With `0` it is allocated as `cuMemAlloc` does, so that other processes can open arrays (`get_ipc_handle`); freeing memory of more than 64 MiB then waits for the device.",
        parse: |settings, value| switch(&mut settings.memory_pool, value),
    },
    Setting {
        name: "WEFT_MEMORY_CACHE",
        default: "auto",
        allowed: "auto or a number of MiB",
        doc: "How much freed memory of a GPU is kept for who allocates next in the same stream, without a call of the driver. `auto` is 256 MiB, or a sixteenth of the device's memory if that is less; `0` keeps none, which shows tools such as compute-sanitizer each allocation.",
        parse: |settings, value| {
            settings.memory_cache = match value {
                "auto" => None,
                _ => Some(u64::from(small_number(value)?) << 20),
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_MEMORY_MANAGER",
        default: "default",
        allowed: "default or the name of a Python module",
        doc: "Who allocates device arrays: the class that the module has as `_numba_memory_manager`, as `cuda.set_memory_manager` takes it. `default` is weft. Without it `NUMBA_CUDA_MEMORY_MANAGER` says so, too.",
        parse: |settings, value| {
            let is_part = |part: &str| {
                part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
                    && part.chars().next().is_some_and(|first| !first.is_ascii_digit())
            };
            settings.memory_manager = match value {
                "default" => None,
                _ => Some(value.split('.').all(is_part).then(|| value.to_owned())?),
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_COPY_THREADS",
        default: "auto",
        allowed: "auto or a number from 1 to 4096",
        doc: "How many threads share a large copy between a GPU and memory of the host that is not page-locked, each with 4 MiB of page-locked memory. `auto` is one for each core that this process may use, at most 8; with `1` the driver copies.",
        parse: |settings, value| threads(&mut settings.copy_threads, value),
    },
    Setting {
        name: "WEFT_DEBUG",
        default: "0",
        allowed: SWITCH,
        doc: "What `debug` is where `cuda.jit` is not told.",
        parse: |settings, value| switch(&mut settings.debug, value),
    },
    Setting {
        name: "WEFT_DEBUG_THREAD",
        default: "0,0,0",
        allowed: PLACE,
        doc: "In which thread of a block `breakpoint()` and `pdb.set_trace()` of a kernel stop with `WEFT_DEVICE=python`: its `threadIdx`, or `any`. In other threads they do nothing. A program may change it: `weft.config.DEBUG_THREAD`, a tuple of three, or `None` for any.",
        parse: |settings, value| place(&mut settings.debug_thread, value),
    },
    Setting {
        name: "WEFT_DEBUG_BLOCK",
        default: "0,0,0",
        allowed: PLACE,
        doc: "In which block they do: its `blockIdx`, or `any`. A program may change it: `weft.config.DEBUG_BLOCK`.",
        parse: |settings, value| place(&mut settings.debug_block, value),
    },
    Setting {
        name: "WEFT_BOUNDSCHECK",
        default: "0",
        allowed: SWITCH,
        doc: "What `boundscheck` is where `cuda.jit` is not told: with `1`, an index of an array that is out of bounds raises an `IndexError` that names its line. A program may change it: `weft.config.BOUNDSCHECK`.",
        parse: |settings, value| switch(&mut settings.boundscheck, value),
    },
    Setting {
        name: "WEFT_REPRODUCIBLE",
        default: "0",
        allowed: SWITCH,
        doc: "What `reproducible` is where `cuda.jit` is not told: with `1`, kernels give the same bits on every GPU and on the CPU, `cuda.reduce`, ufuncs and device arrays among them. A program may change it for the kernels that it makes from then on: `weft.config.REPRODUCIBLE`.",
        parse: |settings, value| switch(&mut settings.reproducible, value),
    },
    Setting {
        name: "WEFT_SANITIZE",
        default: "0",
        allowed: "0, all, or some of memcheck, racecheck, initcheck and synccheck with commas between",
        doc: "What the sanitizer checks of kernels where `cuda.jit` is not told. It runs them on the CPU: with `auto`, `WEFT_DEVICE` is the CPU then. A launch with findings raises a `weft.errors.SanitizerError`.",
        parse: |settings, value| {
            settings.sanitize = Tools::parse(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_SANITIZE_ACTION",
        default: "raise",
        allowed: "raise or warn",
        doc: "What a launch does in which the sanitizer has found something: it raises a `SanitizerError`, or gives a `SanitizerWarning` and goes on.",
        parse: |settings, value| {
            settings.sanitize_raises = match value {
                "raise" => true,
                "warn" => false,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_SANITIZE_SAME_VALUE",
        default: "report",
        allowed: "report or ignore",
        doc: "Whether the sanitizer tells of races in which two threads write the same value, which do no harm on today's GPUs.",
        parse: |settings, value| {
            settings.sanitize_same_value = match value {
                "report" => true,
                "ignore" => false,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_TIMING",
        default: "0",
        allowed: SWITCH,
        doc: "Print to the standard error how long each phase takes of compiling and loading a kernel, or of making a text of one, and how large LLVM's module is before its passes and behind them.",
        parse: |settings, value| switch(&mut settings.timing, value),
    },
    Setting {
        name: "WEFT_TYPING_NOTES",
        default: "0",
        allowed: SWITCH,
        doc: "Warn (`CompileWarning`) of each line of a kernel where Numba's typing computes with more bits than its numbers have, with what NumPy's would. `weft check --notes` says the same.",
        parse: |settings, value| switch(&mut settings.typing_notes, value),
    },
    Setting {
        name: "WEFT_PROGRESS",
        default: "auto",
        allowed: "auto, 0 or 1",
        doc: "Show how far long work is, in a line on the standard error that vanishes at its end. `auto` shows compilations and launches under the sanitizer that take more than 2 seconds, where Python's `sys.stderr` is the terminal. `1` shows copies of 1 GiB and more, too, and where there is no terminal writes a line of text at the beginning and one at the end.",
        parse: |settings, value| {
            settings.progress = match value {
                "auto" => ProgressChoice::Auto,
                "0" => ProgressChoice::Never,
                "1" => ProgressChoice::Always,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVTX",
        default: "1",
        allowed: SWITCH,
        doc: "Tell a profiler that watches the process (Nsight Systems, by NVTX) of compilations, copies and launches, as ranges of the domain `weft`. Where no profiler does, nothing is opened.",
        parse: |settings, value| switch(&mut settings.nvtx, value),
    },
    Setting {
        name: "WEFT_CACHE",
        default: "on",
        allowed: "on or off",
        doc: "Keep what was compiled on the disk, for the next time that a program runs.",
        parse: |settings, value| {
            settings.cache = match value {
                "on" => true,
                "off" => false,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_LAUNCH_FACTS",
        default: "1",
        allowed: SWITCH,
        doc: "Compile kernels for what launches mostly have: extents, strides, integers and numbers of threads that fit 32 bits, in which such kernels then compute; arrays that share no memory with those that are written, and that begin at multiples of 16 bytes. Another launch gets a kernel of its own, as all do with 0.",
        parse: |settings, value| switch(&mut settings.launch_facts, value),
    },
    Setting {
        name: "WEFT_CACHE_MACHINE_CODE",
        default: "0",
        allowed: SWITCH,
        doc: "Keep the machine code that a GPU's driver makes of that, too: first launches of known kernels then need no compiler of the driver's, also where its own cache is off, or another machine's. The code is its linker's, which for some kernels takes more registers than that of its compiler.",
        parse: |settings, value| switch(&mut settings.cache_machine_code, value),
    },
    Setting {
        name: "WEFT_CACHE_DIR",
        default: "auto",
        allowed: "auto or a folder",
        doc: "Where that is kept. `auto` is `weft` in `$XDG_CACHE_HOME`, or in `~/.cache`. Several processes and machines may have one folder; whoever can write to it can have your programs run other code.",
        parse: |settings, value| {
            settings.cache_dir = (value != "auto").then(|| PathBuf::from(value));
            Some(())
        },
    },
    Setting {
        name: "WEFT_CACHE_SIZE",
        default: "1G",
        allowed: "bytes such as 500M or 2G, from 1M",
        doc: "About how much of it there may be. What was used longest ago goes first.",
        parse: |settings, value| {
            settings.cache_bytes = bytes(value).filter(|bytes| *bytes >= 1 << 20)?;
            Some(())
        },
    },
];

/// A choice of a file.
fn file(value: &str) -> Option<FileChoice> {
    match value {
        "auto" => Some(FileChoice::Auto),
        "none" => Some(FileChoice::None),
        // A word without a slash is a misspelt choice rather than a file.
        path => path.contains('/').then(|| FileChoice::Path(PathBuf::from(path))),
    }
}

/// What a switch can be.
const SWITCH: &str = "0 or 1";

fn switch(setting: &mut bool, value: &str) -> Option<()> {
    *setting = match value {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    Some(())
}

/// What the index of a thread or of a block can be.
const PLACE: &str = "any, or x, y and z with commas between, such as 3,0,0 or 3";

fn place(setting: &mut DebugPlace, text: &str) -> Option<()> {
    *setting = match text {
        "any" => None,
        _ => {
            let mut parts = text.split(',').map(|part| small_number(part.trim()));
            let mut next = || parts.next().unwrap_or(Some(0));
            let index = (next()?, next()?, next()?);
            Some(parts.next().is_none().then_some(index)?)
        }
    };
    Some(())
}

/// A number of threads, or `auto`.
fn threads(setting: &mut Option<NonZeroUsize>, text: &str) -> Option<()> {
    *setting = match text {
        "auto" => None,
        _ => Some(NonZeroUsize::new(small_number(text)? as usize).filter(|n| n.get() <= 4096)?),
    };
    Some(())
}

/// `9.0`, of a GPU that there is or was.
fn compute_capability(value: &str) -> Option<(u32, u32)> {
    let (major, minor) = value.split_once('.')?;
    let pair = (small_number(major)?, small_number(minor)?);
    ((5, 0)..=(12, 9)).contains(&pair).then_some(pair)
}

/// A decimal number without sign or blanks.
fn small_number(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// A number of bytes, with a letter for powers of 1024.
fn bytes(text: &str) -> Option<u64> {
    let (number, shift) = match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) if text.ends_with('K') => (number, 10),
        Some(number) if text.ends_with('M') => (number, 20),
        Some(number) if text.ends_with('G') => (number, 30),
        Some(number) => (number, 40),
        None => (text, 0),
    };
    u64::from(small_number(number)?).checked_mul(1 << shift)
}
