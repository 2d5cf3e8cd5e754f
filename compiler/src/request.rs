//! What a caller asks of the compiler: a function, what its free names mean, types, a target and options.
//!
//! The compiler is pure: everything that a compilation depends on is in the request.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::{ArgType, MAX_LEAVES, Number, Scalar};

use crate::{
    source::{SourceFile, Span},
    syntax::ast,
};

/// A Python function as captured at compile time: its tree and what its free names mean.
#[derive(Debug, PartialEq)]
pub struct FunctionDef {
    /// The parsed definition.
    pub ast: ast::Function,
    /// The text that it was parsed from; its spans refer to this file.
    pub source: Arc<SourceFile>,
    /// Free names (globals, closure variables, builtins that are not shadowed) and their values at compile time.
    /// A name that is not here and not a Python builtin is undefined.
    pub globals: BTreeMap<String, Captured>,
    /// Default values of parameters, by name, evaluated by the caller (a literal default may be left out).
    pub defaults: BTreeMap<String, Captured>,
    /// Declared signatures, if the device function has some: the argument types that calls are converted to, and the
    /// declared return type.
    pub signatures: Vec<Signature>,
    /// `inline="always"` or `forceinline=True`.
    pub inline: bool,
}

/// The value of a captured name.
#[derive(Clone, Debug, PartialEq)]
pub enum Captured {
    /// `None`.
    None,
    /// A Python bool.
    Bool(bool),
    /// A Python int that fits 64 bits, signed or unsigned.
    Int(i128),
    /// A Python float.
    Float(f64),
    /// A Python complex: real, imaginary.
    Complex(f64, f64),
    /// A NumPy scalar: its type, and its value as (real, imaginary) for floats and complex, or an integer.
    NumpyInt(Scalar, i128),
    /// See `NumpyInt`; for `F32`, `F64`, `C64`, `C128`.
    NumpyFloat(Number, f64, f64),
    /// A string.
    Str(String),
    /// A tuple.
    Tuple(Vec<Captured>),
    /// A NumPy scalar type, a dtype, or a weft type such as `weft.float32`: usable as a dtype and as a cast.
    DType(Number),
    /// Something that weft knows by its canonical dotted path: a module (`weft`, `weft.cuda`, `math`, `numpy`), a
    /// member of one (`weft.cuda.grid`, `math.sin`, `numpy.float32`), or a Python builtin (`builtins.range`).
    /// The prefix `numba.` is written as `weft.`.
    Known(String),
    /// A user's own module or object with the attributes that the function uses.
    Module(String, BTreeMap<String, Captured>),
    /// Another jitted function.
    Function(Arc<FunctionDef>),
    /// Anything else: what it is, and in words that follow "a" or "an" in the error, such as Python's name of its type.
    Unsupported(Unsupported, String),
    /// A value that the text of a file does not tell: the place that makes it so, and why (`the loop binds it`).
    Unknown(Arc<SourceFile>, Span, String),
}

/// What a captured value is that no kernel can use, as far as there is something to be said about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// A jitted function that calls itself, directly or through others.
    Recursion,
    /// A function that is not jitted.
    PlainFunction,
    /// An array.
    Array,
    /// Anything else.
    Other,
}

/// How deep functions may call functions; whoever captures them and the compiler recurse as deep.
pub const MAX_CALL_DEPTH: usize = 200;

/// The number type that a canonical path means: `numpy.float32`, `weft.types.int8`; what other libraries call
/// `numba` is `weft` here.
pub fn number_of_path(path: &str) -> Option<Number> {
    let (module, name) = path.rsplit_once('.')?;
    match module {
        "numpy" => Number::from_numpy_name(name),
        "weft" | "weft.types" | "weft.cuda" | "weft.cuda.types" => Number::from_name(name),
        _ => None,
    }
}

impl Captured {
    /// What a tuple of more than [`MAX_LEAVES`] values is.
    pub fn too_large() -> Self {
        Self::Unsupported(Unsupported::Other, format!("tuple of more than {MAX_LEAVES} values"))
    }

    /// What a function beyond [`MAX_CALL_DEPTH`] is.
    pub fn too_deep() -> Self {
        Self::Unsupported(Unsupported::Other, format!("call chain of more than {MAX_CALL_DEPTH} levels"))
    }

    /// How many values it holds, with those in the tuples in it.
    pub fn leaves(&self) -> usize {
        match self {
            Self::Tuple(items) => items.iter().map(Self::leaves).sum(),
            Self::None
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Complex(..)
            | Self::NumpyInt(..)
            | Self::NumpyFloat(..)
            | Self::Str(_)
            | Self::DType(_)
            | Self::Known(_)
            | Self::Module(..)
            | Self::Function(_)
            | Self::Unsupported(..)
            | Self::Unknown(..) => 1,
        }
    }
}

/// A declared signature: `void(float32[:], int32)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Argument types.
    pub args: Vec<ArgType>,
    /// `None` for `void` or where the text has no return type.
    pub returns: Option<ArgType>,
}

/// What to compile for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An NVIDIA SM: `sm_90` is `90`; the suffix is `""`, `"a"` or `"f"`.
    Sm(u32, &'static str),
    /// This machine's CPU.
    Host(Arc<HostCpu>),
}

/// A CPU as LLVM describes it. Whoever makes a request asks [`crate::host_cpu`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostCpu {
    /// The system: `x86_64-pc-linux-gnu`.
    pub triple: String,
    /// The processor: `znver5`.
    pub name: String,
    /// What it has and has not: `+avx512f,-amx-tile`.
    pub features: String,
}

/// How a CPU runs the threads of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuThreads {
    /// As loops, or, where a thread may wait for what another one writes, on stacks.
    #[default]
    Auto,
    /// As loops that end at barriers.
    Loops,
    /// Each on a stack of its own.
    Fibers,
}

/// Options that change code.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Relaxed floating point: flush denormals, approximate division and functions, reassociation.
    pub fastmath: bool,
    /// Line tables for profilers.
    pub lineinfo: bool,
    /// Run the optimiser; off is for looking at unoptimised code.
    pub opt: bool,
    /// At most this many threads a block (`.maxntid`), at least this many blocks an SM (`.minnctapersm`).
    pub launch_bounds: Option<(u32, Option<u32>)>,
    /// At most this many registers a thread (`.maxnreg`); NVPTX only.
    pub max_registers: Option<u32>,
    /// How the threads of a block run; the host only.
    pub cpu_threads: CpuThreads,
    /// libdevice's bitcode (NVPTX only): used for math where given, else the embedded libclc.
    pub libdevice: Option<Arc<Vec<u8>>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fastmath: false,
            lineinfo: false,
            opt: true,
            launch_bounds: None,
            max_registers: None,
            cpu_threads: CpuThreads::Auto,
            libdevice: None,
        }
    }
}

/// One compilation: one kernel for one tuple of argument types.
#[derive(Clone, Debug)]
pub struct Request {
    /// The kernel.
    pub function: Arc<FunctionDef>,
    /// One type a parameter.
    pub args: Vec<ArgType>,
    /// The target.
    pub target: Target,
    /// Options.
    pub options: Options,
    /// Which texts to return with the artifact.
    pub keep: Keep,
}

/// Texts to return beside the artifact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// weft's IR after its passes.
    pub ir: bool,
    /// LLVM IR after LLVM's passes.
    pub llvm: bool,
    /// Assembly text of the host target (PTX is the artifact's own code).
    pub asm: bool,
}
