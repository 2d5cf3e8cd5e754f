//! One row per name that a kernel can call or read.
//!
//! A row is read by name resolution, typing (and its "closest overload" note), the reference page and a test that
//! compiles every signature for both targets and looks for the mnemonic. A name that maps onto a lowering kind that
//! exists needs nothing but its row. Paths are canonical: `weft.cuda.grid`, `math.sin`, `builtins.abs`.

mod numba;
mod rows;

pub use numba::only_in_numba;
pub use rows::rows;

use std::{collections::HashMap, f64::consts, sync::LazyLock};

use weft_artifact::{Complex, Number, Scalar};

use crate::ir::{MathFn, Op, SpecialRegister};

/// One name.
#[derive(Debug)]
pub struct Intrinsic {
    /// Canonical dotted path.
    pub path: &'static str,
    /// What it takes and gives; one entry an overload. An attribute has one without arguments.
    pub signatures: &'static [Signature],
    /// How it becomes IR.
    pub lowering: Lowering,
    /// What the PTX of every signature contains.
    pub ptx: Ptx,
    /// One or two sentences for the reference.
    pub doc: &'static str,
}

/// What PTX a name becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ptx {
    /// An instruction, a register or a state space of this name.
    Has(&'static str),
    /// What the row of its operation says.
    Operation,
    /// No one instruction: a constant, or computed in place or by a function of the library.
    Computed,
}

impl Intrinsic {
    /// The PTX names of which every signature's code contains one; empty where there is no one instruction.
    pub fn mnemonics(&'static self) -> &'static [&'static str] {
        match (&self.ptx, self.lowering) {
            (Ptx::Has(name), _) => std::slice::from_ref(name),
            (Ptx::Operation, Lowering::Op(op)) => op.row().ptx,
            (Ptx::Operation | Ptx::Computed, _) => &[],
        }
    }

    /// Whether it is a ufunc that refuses arguments that are all bools, although they cast to what it has overloads for.
    pub fn refuses_bools(&self) -> bool {
        // As `resolve_dtypes` of NumPy 2 answers.
        const REFUSE: [&str; 6] =
            ["numpy.negative", "numpy.positive", "numpy.sign", "numpy.subtract", "numpy.gcd", "numpy.lcm"];
        REFUSE.contains(&self.path)
    }
}

/// One overload.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Arguments.
    pub args: &'static [Arg],
    /// The result.
    pub returns: Returns,
}

/// An argument of an overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// A real number of a type.
    Scalar(Scalar),
    /// A complex number of a type.
    Complex(Complex),
    /// An array of any number of dimensions; an index into one of more than one is a tuple.
    Array(Number),
    /// A one-dimensional array of records that have these fields.
    Records(&'static [(&'static str, Scalar)]),
    /// An index into the array before it: an integer, or a tuple of them.
    Index,
    /// An integer that is known when the kernel is compiled; the value is for the test of the row.
    Const(i64),
    /// A number's type.
    DType(Number),
    /// A string that is known when the kernel is compiled; the text is for the test of the row.
    Text(&'static str),
}

/// What an overload gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// Nothing.
    Nothing,
    /// A real number.
    Scalar(Scalar),
    /// A complex number.
    Complex(Complex),
    /// A tuple of numbers.
    Tuple(&'static [Scalar]),
    /// A one-dimensional array.
    Array(Number),
}

/// How a row becomes IR: a small closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// An attribute: a special register.
    Register(SpecialRegister),
    /// A pure function of floats; other numbers are converted to `float64`.
    Math(MathFn),
    /// The same of real numbers; of complex ones, and of another number of arguments, the prelude's function of a name.
    MathOr(MathFn, &'static str),
    /// A function of the prelude, for the overload's types. Keywords are its parameters; one with the default `None` that
    /// is not given is none of the overload's arguments.
    Prelude(&'static str),
    /// Of numbers, what the other says; of arrays and numbers, broadcast, element by element into the last of them.
    Ufunc(&'static Lowering),
    /// A function of a whole array, or along one of its axes.
    Whole(&'static Whole),
    /// Two arguments as the other says, and more of them one after the other.
    Fold(&'static Lowering),
    /// An operator, by its symbol.
    Operator(&'static str),
    /// An operation: its operands are the arguments, where an array and an index are one pointer.
    Op(Op),
    /// The same for overloads whose last argument is an integer of 32 bits; for the others the prelude's function of a name.
    WordOp(Op, &'static str),
    /// A function that the threads of a block or of a warp compute together.
    Coop(&'static Coop),
    /// Code of its own in `frontend/builtins`.
    Custom(Custom),
}

/// A function of `cuda.coop`, which the prelude has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coop {
    /// Its name there.
    pub function: &'static str,
    /// What each of its parameters is.
    pub params: &'static [CoopParam],
}

/// A parameter of a function of `cuda.coop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoopParam {
    /// What a thread brings along: one item, or an array of several.
    Items,
    /// Whatever the function makes of it.
    Plain,
    /// How many lanes a group has: a power of two up to 32, known when the kernel is compiled.
    Lanes,
    /// True or False, known when the kernel is compiled.
    Flag,
    /// How a block goes over memory: one of [`Coop::ALGORITHMS`], known when the kernel is compiled.
    Algorithm,
    /// The last one, which no call gives: how many items a thread has.
    Count,
}

impl Coop {
    /// How a block goes over memory.
    pub const ALGORITHMS: [&'static str; 5] = ["direct", "striped", "vectorize", "transpose", "warp_transpose"];
}

/// A function of whole arrays: functions of the prelude, and NumPy's parameters behind the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// What takes the array alone.
    pub function: &'static str,
    /// What takes the array and [`More`].
    pub general: &'static str,
    /// The other parameters, in NumPy's order.
    pub params: &'static [&'static str],
    /// What the general function takes behind the array.
    pub more: More,
}

/// What a general function of a whole array takes behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// Nothing: there is no general one.
    None,
    /// What it starts from, 0 or 1 if that is not given.
    Start(u8),
    /// An array for the results, and what it starts from.
    Running(u8),
    /// The first candidate.
    Best,
    /// A 0 of the type in which the elements are added up.
    Mean,
    /// The same, and how many elements to leave out of the divisor.
    Spread,
}

/// Names with code of their own in `frontend/builtins`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the function of its name")]
pub enum Custom {
    Grid,
    GridSize,
    SharedArray,
    LocalArray,
    Abs,
    All,
    Any,
    Bool,
    CArray,
    Callable,
    Complex,
    ConstArrayLike,
    Copy,
    Count,
    Degrees,
    Dist,
    Divmod,
    Empty,
    EmptyLike,
    Enumerate,
    FArray,
    Fill,
    Float,
    Format,
    CoalescedThreads,
    Frexp,
    FromBuffer,
    Full,
    FullLike,
    GroupCollective,
    GroupMethod,
    GetAttr,
    HasAttr,
    Imag,
    Index,
    InlinePtx,
    Int,
    IsInstance,
    IsNat,
    IsScalar,
    Item,
    Len,
    Limits,
    LiteralUnroll,
    MatchAllSync,
    MatchAnySync,
    MatMul,
    NdEnumerate,
    NdIndex,
    Ravel,
    Reshape,
    Slice,
    Transpose,
    Bits,
    Max,
    Min,
    Modf,
    Ndim,
    Ones,
    OnesLike,
    Ord,
    Pow,
    Print,
    Prod,
    Radians,
    Range,
    Real,
    Reversed,
    Iter,
    ThisGrid,
    ThisThreadBlock,
    TiledPartition,
    Next,
    Round,
    Same,
    Shape,
    ShflDownSync,
    ShflSync,
    ShflUpSync,
    ShflXorSync,
    Size,
    Sum,
    SyncWarp,
    Tuple,
    Type,
    View,
    Zeros,
    ZerosLike,
    Zip,
}

/// Modules and objects that have members but are no value.
const MODULES: &[&str] = &[
    "builtins",
    "cffi.FFI",
    "cmath",
    "math",
    "numpy",
    "operator",
    "weft",
    "weft.cuda",
    "weft.cuda.atomic",
    "weft.cuda.bf16",
    "weft.cuda.blockDim",
    "weft.cuda.blockIdx",
    "weft.cuda.fp16",
    "weft.cuda.cg",
    "weft.cuda.const",
    "weft.cuda.coop",
    "weft.cuda.coop.block",
    "weft.cuda.coop.warp",
    "weft.cuda.gridDim",
    "weft.cuda.libdevice",
    "weft.cuda.local",
    "weft.cuda.random",
    "weft.cuda.shared",
    "weft.cuda.threadIdx",
    "weft.cuda.types",
    "weft.types",
];

/// Classes of values: what a kernel can ask `isinstance` for beside the types of numbers and Python's own.
const CLASSES: &[&str] = &[
    "builtins.object",
    "builtins.str",
    "numpy.complexfloating",
    "numpy.floating",
    "numpy.generic",
    "numpy.inexact",
    "numpy.integer",
    "numpy.ndarray",
    "numpy.number",
    "numpy.signedinteger",
    "numpy.unsignedinteger",
];

/// Python's built-in functions and types, for the message that kernels do not have one of them.
const PYTHON: &[&str] = &[
    "abs",
    "aiter",
    "all",
    "anext",
    "any",
    "ascii",
    "bin",
    "bool",
    "breakpoint",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "classmethod",
    "compile",
    "complex",
    "delattr",
    "dict",
    "dir",
    "divmod",
    "enumerate",
    "eval",
    "exec",
    "filter",
    "float",
    "format",
    "frozenset",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "hex",
    "id",
    "input",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "list",
    "locals",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "open",
    "ord",
    "pow",
    "print",
    "property",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "setattr",
    "slice",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "vars",
    "zip",
];

/// Whether a name is one of Python's built-in functions or types, in kernels or not.
pub fn is_builtin(name: &str) -> bool {
    PYTHON.contains(&name)
}

/// Python's exceptions.
const EXCEPTIONS: &[&str] = &[
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseException",
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "BytesWarning",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "EOFError",
    "EnvironmentError",
    "Exception",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "FutureWarning",
    "GeneratorExit",
    "IOError",
    "ImportError",
    "ImportWarning",
    "IndentationError",
    "IndexError",
    "InterruptedError",
    "IsADirectoryError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "NotADirectoryError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PendingDeprecationWarning",
    "PermissionError",
    "ProcessLookupError",
    "RecursionError",
    "ReferenceError",
    "ResourceWarning",
    "RuntimeError",
    "RuntimeWarning",
    "StopAsyncIteration",
    "StopIteration",
    "SyntaxError",
    "SyntaxWarning",
    "SystemError",
    "SystemExit",
    "TabError",
    "TimeoutError",
    "TypeError",
    "UnboundLocalError",
    "UserWarning",
    "ValueError",
    "Warning",
    "ZeroDivisionError",
];

/// Whether a name is one of Python's exception classes.
pub fn is_exception(name: &str) -> bool {
    EXCEPTIONS.contains(&name)
}

/// The row of a path.
pub fn lookup(path: &str) -> Option<&'static Intrinsic> {
    static BY_PATH: LazyLock<HashMap<&str, &Intrinsic>> = LazyLock::new(|| rows().map(|row| (row.path, row)).collect());
    BY_PATH.get(path).copied()
}

/// Whether a path is a row, a module or a class.
pub fn is_known(path: &str) -> bool {
    MODULES.contains(&path) || CLASSES.contains(&path) || lookup(path).is_some()
}

/// The constants that kernels can read: real and imaginary part, the latter for complex ones only.
const CONSTANTS: &[(&str, f64, Option<f64>)] = &[
    ("cmath.e", consts::E, None),
    ("cmath.inf", f64::INFINITY, None),
    ("cmath.infj", 0.0, Some(f64::INFINITY)),
    ("cmath.nan", f64::NAN, None),
    ("cmath.nanj", 0.0, Some(f64::NAN)),
    ("cmath.pi", consts::PI, None),
    ("cmath.tau", consts::TAU, None),
    ("math.e", consts::E, None),
    ("math.inf", f64::INFINITY, None),
    ("math.nan", f64::NAN, None),
    ("math.pi", consts::PI, None),
    ("math.tau", consts::TAU, None),
    ("numpy.e", consts::E, None),
    ("numpy.euler_gamma", 0.577_215_664_901_532_9, None),
    ("numpy.inf", f64::INFINITY, None),
    ("numpy.nan", f64::NAN, None),
    ("numpy.pi", consts::PI, None),
];

/// The value of a constant such as `math.pi`, and the imaginary part of a complex one.
pub fn constant(path: &str) -> Option<(f64, Option<f64>)> {
    CONSTANTS.iter().find(|(name, ..)| *name == path).map(|(_, real, imag)| (*real, *imag))
}

/// The names of a module's members, for "did you mean".
pub fn members(module: &str) -> impl Iterator<Item = &'static str> {
    let prefix = format!("{module}.");
    let modules = MODULES.iter().copied();
    let constants = CONSTANTS.iter().map(|(name, ..)| *name);
    let all = rows().map(|row| row.path).chain(modules).chain(constants);
    all.filter_map(move |path| path.strip_prefix(prefix.as_str()).filter(|name| !name.contains('.')))
}
