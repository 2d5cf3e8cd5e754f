//! Rows of NumPy's functions of numbers that are not ufuncs, and of functions of compile-time constants.

use super::{
    super::{Arg, Custom, Intrinsic, Lowering, Signature},
    tables::{FLOAT_TEST, INEXACT, INEXACT_TEST, NUMBER, arrays, numbers, row},
};

const WHERE: &[Signature] = numbers![BOOL BOOL BOOL -> BOOL, BOOL I8 I8 -> I8, BOOL U8 U8 -> U8, BOOL I16 I16 -> I16, BOOL U16 U16 -> U16, BOOL I32 I32 -> I32, BOOL U32 U32 -> U32, BOOL I64 I64 -> I64, BOOL U64 U64 -> U64, BOOL F16 F16 -> F16, BOOL BF16 BF16 -> BF16, BOOL F32 F32 -> F32, BOOL F64 F64 -> F64, BOOL C64 C64 -> C64, BOOL C128 C128 -> C128];
const ROUND: &[Signature] = numbers![I8 I64 -> I8, U8 I64 -> U8, I16 I64 -> I16, U16 I64 -> U16, I32 I64 -> I32, U32 I64 -> U32, I64 I64 -> I64, U64 I64 -> U64, F16 I64 -> F16, BF16 I64 -> BF16, F32 I64 -> F32, F64 I64 -> F64];
const ANGLE: &[Signature] = numbers![F32 BOOL -> F32, F64 BOOL -> F64, C64 BOOL -> F32, C128 BOOL -> F64];
const CLOSE: &[Signature] = numbers![F64 F64 F64 F64 BOOL -> BOOL, C128 C128 F64 F64 BOOL -> BOOL];
const PART: &[Signature] = numbers![I8 -> I8, U8 -> U8, I16 -> I16, U16 -> U16, I32 -> I32, U32 -> U32, I64 -> I64, U64 -> U64, F16 -> F16, BF16 -> BF16, F32 -> F32, F64 -> F64, C64 -> F32, C128 -> F64];
const SIZE: &[Signature] = arrays![[F32] -> I64];

pub(super) const NUMPY: &[Intrinsic] = &[
    row("numpy.where", WHERE, Lowering::Prelude("np_where"), "x if the condition is true, else y; both are evaluated."),
    row(
        "numpy.around",
        ROUND,
        Lowering::Prelude("np_round"),
        "Rounds half to even, to a number of decimals (`decimals=0`).",
    ),
    row(
        "numpy.round",
        ROUND,
        Lowering::Prelude("np_round"),
        "Rounds half to even, to a number of decimals (`decimals=0`).",
    ),
    row(
        "numpy.nan_to_num",
        NUMBER,
        Lowering::Prelude("np_nan_to_num"),
        "Replaces NaN by 0, and infinities by the largest finite numbers.",
    ),
    row("numpy.sinc", INEXACT, Lowering::Prelude("np_sinc"), "sin(pi*x) / (pi*x)."),
    row(
        "numpy.angle",
        ANGLE,
        Lowering::Prelude("np_angle"),
        "The angle of a complex number, in radians or with `deg=True` in degrees.",
    ),
    row(
        "numpy.isclose",
        CLOSE,
        Lowering::Prelude("np_isclose"),
        "abs(a - b) <= atol + rtol * abs(b) (`rtol=1e-5, atol=1e-8, equal_nan=False`).",
    ),
    row("numpy.isneginf", FLOAT_TEST, Lowering::Prelude("np_isneginf"), "Whether it is negative infinity."),
    row("numpy.isposinf", FLOAT_TEST, Lowering::Prelude("np_isposinf"), "Whether it is positive infinity."),
    row("numpy.isreal", INEXACT_TEST, Lowering::Prelude("np_isreal"), "Whether the imaginary part is 0."),
    row("numpy.iscomplex", INEXACT_TEST, Lowering::Prelude("np_iscomplex"), "Whether the imaginary part is not 0."),
    row("numpy.real", PART, Lowering::Custom(Custom::Real), "The real part."),
    row("numpy.imag", PART, Lowering::Custom(Custom::Imag), "The imaginary part."),
    row(
        "numpy.isscalar",
        INEXACT_TEST,
        Lowering::Custom(Custom::IsScalar),
        "Whether it is a number or a string, as a compile-time constant.",
    ),
    row(
        "numpy.iinfo",
        &[],
        Lowering::Custom(Custom::Limits),
        "The limits of an integer type, as compile-time constants: `np.iinfo(np.int8).max`, `min`, `bits`.",
    ),
    row(
        "numpy.finfo",
        &[],
        Lowering::Custom(Custom::Limits),
        "The limits of a float type, as compile-time constants: `np.finfo(np.float32).eps`, `max`, `min`, `tiny` and \
         the others that NumPy has.",
    ),
    row("numpy.shape", &[], Lowering::Custom(Custom::Shape), "The shape of an array."),
    row("numpy.size", SIZE, Lowering::Custom(Custom::Size), "The number of elements of an array."),
    row("numpy.ndim", SIZE, Lowering::Custom(Custom::Ndim), "The number of dimensions of an array."),
    row("numpy.asarray", &[], Lowering::Custom(Custom::Same), "The array itself."),
    row(
        "numpy.zeros",
        &[],
        Lowering::Custom(Custom::Zeros),
        "`np.zeros(shape, dtype=float, order=\"C\")`: a new array of zeros in the local memory of the thread. The \
         shape is a compile-time constant; the limit is 16 KiB.",
    ),
    row("numpy.ones", &[], Lowering::Custom(Custom::Ones), "Like `np.zeros`, filled with ones."),
    row("numpy.empty", &[], Lowering::Custom(Custom::Empty), "Like `np.zeros`, with undefined contents."),
    row(
        "numpy.full",
        &[],
        Lowering::Custom(Custom::Full),
        "`np.full(shape, fill_value, dtype=None, order=\"C\")`: like `np.zeros`, filled with one number, whose type \
         is the default dtype.",
    ),
    row(
        "numpy.zeros_like",
        &[],
        Lowering::Custom(Custom::ZerosLike),
        "`np.zeros_like(a, dtype=None, order=\"K\")`: a new array of zeros with the shape of `a`. If that is not a \
         compile-time constant, the limit is 4 KiB; for a larger array the thread ends with a `MemoryError`.",
    ),
    row("numpy.ones_like", &[], Lowering::Custom(Custom::OnesLike), "Like `np.zeros_like`, filled with ones."),
    row("numpy.empty_like", &[], Lowering::Custom(Custom::EmptyLike), "Like `np.zeros_like`, with undefined contents."),
    row(
        "numpy.full_like",
        &[],
        Lowering::Custom(Custom::FullLike),
        "`np.full_like(a, fill_value, dtype=None, order=\"K\")`: like `np.zeros_like`, filled with one number.",
    ),
    row(
        "numpy.copy",
        &[],
        Lowering::Custom(Custom::Copy),
        "`np.copy(a, order=\"K\")`: a new array with the elements of `a`, with the limits of `np.zeros_like`.",
    ),
    row(
        "numpy.ndarray.copy",
        &[],
        Lowering::Custom(Custom::Copy),
        "The method `a.copy(order=\"C\")`: as `np.copy(a, order=\"C\")`.",
    ),
];
