//! The table of intrinsics: one row per name that a kernel can call or read.
//!
//! Name resolution, typing (and its "closest overload" note) and the reference page read the rows. A test compiles
//! every signature for both targets and searches the result for the mnemonic. A name whose lowering kind exists already
//! needs only its row. Paths are canonical: `weft.cuda.grid`, `math.sin`, `builtins.abs`.

mod numba;
mod rows;

pub use numba::only_in_numba;
pub use rows::rows;

use std::{collections::HashMap, f64::consts, sync::LazyLock};

use weft_artifact::{Complex, Number, Scalar};

use crate::ir::{MathFn, Op, SpecialRegister};

/// A row of the table.
#[derive(Debug)]
pub struct Intrinsic {
    /// Canonical dotted path.
    pub path: &'static str,
    /// The overloads. An attribute has one overload, without arguments.
    pub signatures: &'static [Signature],
    /// How the name is lowered to IR.
    pub lowering: Lowering,
    /// The PTX that the code of every signature contains.
    pub ptx: Ptx,
    /// One or two sentences for the reference page.
    pub doc: &'static str,
}

/// The PTX that a name is lowered to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ptx {
    /// An instruction, a register or a state space of this name.
    Has(&'static str),
    /// The mnemonic in the row of the name's operation.
    Operation,
    /// No single instruction: a constant, or code that is computed inline or by a library function.
    Computed,
}

impl Intrinsic {
    /// The PTX mnemonics, one of which occurs in the code of every signature; empty if there is no single instruction.
    pub fn mnemonics(&'static self) -> &'static [&'static str] {
        match (&self.ptx, self.lowering) {
            (Ptx::Has(name), _) => std::slice::from_ref(name),
            (Ptx::Operation, Lowering::Op(op)) => op.row().ptx,
            (Ptx::Operation | Ptx::Computed, _) => &[],
        }
    }

    /// Whether it is a ufunc that rejects arguments that are all bools, although bools cast to the types of its
    /// overloads.
    pub fn refuses_bools(&self) -> bool {
        // The same ufuncs for which `resolve_dtypes` of NumPy 2 fails.
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
    /// A real number of this type.
    Scalar(Scalar),
    /// A complex number of this type.
    Complex(Complex),
    /// An array of any number of dimensions; an index into one of more than one is a tuple.
    Array(Number),
    /// A one-dimensional array of records that have these fields.
    Records(&'static [(&'static str, Scalar)]),
    /// An index into the array before it: an integer, or a tuple of them.
    Index,
    /// An integer that is a compile-time constant; the table's test passes this value.
    Const(i64),
    /// A dtype.
    DType(Number),
    /// A string that is a compile-time constant; the table's test passes this string.
    Text(&'static str),
}

/// The result of an overload.
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

/// How a row is lowered to IR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// An attribute: a special register.
    Register(SpecialRegister),
    /// A pure function of floats; other numbers are converted to `float64`.
    Math(MathFn),
    /// The same for real numbers; for complex numbers, and for another number of arguments, this function of the
    /// prelude.
    MathOr(MathFn, &'static str),
    /// A function of the prelude, for the overload's types. Keyword arguments are its parameters. A parameter with the
    /// default `None` for which nothing is passed is not counted among the overload's arguments.
    Prelude(&'static str),
    /// Numbers use the inner lowering; arrays are broadcast, and the results are stored into the last argument.
    Ufunc(&'static Lowering),
    /// A function of a whole array, or along one of its axes.
    Whole(&'static Whole),
    /// Two arguments use the inner lowering; more arguments are folded from left to right.
    Fold(&'static Lowering),
    /// An operator, by its symbol.
    Operator(&'static str),
    /// An operation: its operands are the arguments; an array and an index become one pointer.
    Op(Op),
    /// The operation if the last argument of the overload is a 32-bit integer, else this function of the prelude.
    WordOp(Op, &'static str),
    /// A function that the threads of a block or a warp compute cooperatively.
    Coop(&'static Coop),
    /// Handwritten lowering in `frontend/builtins`.
    Custom(Custom),
}

/// A function of `cuda.coop`, implemented in the prelude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coop {
    /// Its name in the prelude.
    pub function: &'static str,
    /// The kinds of its parameters.
    pub params: &'static [CoopParam],
}

/// A parameter of a function of `cuda.coop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoopParam {
    /// The items of a thread: one value, or an array of several.
    Items,
    /// A plain argument.
    Plain,
    /// The number of lanes of a group: a power of two up to 32, a compile-time constant.
    Lanes,
    /// True or False, a compile-time constant.
    Flag,
    /// How a block accesses memory: one of [`Coop::ALGORITHMS`], a compile-time constant.
    Algorithm,
    /// The last parameter, which the compiler passes: the number of items of a thread.
    Count,
}

impl Coop {
    /// The algorithms with which a block accesses memory.
    pub const ALGORITHMS: [&'static str; 5] = ["direct", "striped", "vectorize", "transpose", "warp_transpose"];
}

/// A function of whole arrays: functions of the prelude, and NumPy's parameters after the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The prelude's function for a call with only the array.
    pub function: &'static str,
    /// The prelude's function that takes the array and [`More`].
    pub general: &'static str,
    /// The parameters after the array, in NumPy's order.
    pub params: &'static [&'static str],
    /// The parameters of the general function after the array.
    pub more: More,
}

/// The parameters of the general function of a whole array, after the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// There is no general function.
    None,
    /// The start value; by default this 0 or 1.
    Start(u8),
    /// An array for the results, and the start value.
    Running(u8),
    /// The initial candidate.
    Best,
    /// A 0 of the type in which the elements are summed.
    Mean,
    /// The same, and `ddof`: the number that is subtracted from the divisor.
    Spread,
}

/// Names with handwritten lowering in `frontend/builtins`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the function of its name")]
pub enum Custom {
    Grid,
    GridSize,
    SharedArray,
    SetRegisters,
    SharedSwizzled,
    LocalArray,
    Abs,
    All,
    Any,
    Bool,
    Barrier,
    BarrierMethod,
    CArray,
    Callable,
    Complex,
    ConstArrayLike,
    Copy,
    CopyAsync,
    CopyCommit,
    CopyWait,
    ProductWait,
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
    Cluster,
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
    MatrixMethod,
    MatrixTile,
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
    StopGradient,
    Sum,
    SyncWarp,
    Tuple,
    Type,
    View,
    Zeros,
    ZerosLike,
    Zip,
}

/// Modules and objects that have members but are not values.
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
    "weft.cuda.fp8",
    "weft.cuda.cg",
    "weft.cuda.cluster",
    "weft.cuda.const",
    "weft.cuda.coop",
    "weft.cuda.coop.block",
    "weft.cuda.coop.warp",
    "weft.cuda.gridDim",
    "weft.cuda.libdevice",
    "weft.cuda.local",
    "weft.cuda.mma",
    "weft.cuda.random",
    "weft.cuda.shared",
    "weft.cuda.threadIdx",
    "weft.cuda.types",
    "weft.types",
];

/// Classes that a kernel can pass to `isinstance`, besides number types and Python's own types.
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

/// Python's built-in functions and types, for the message that kernels do not support one of them.
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

/// Whether a name is one of Python's built-in functions or types, supported in kernels or not.
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

/// The constants that kernels can read: the real part, and for complex constants the imaginary part.
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
