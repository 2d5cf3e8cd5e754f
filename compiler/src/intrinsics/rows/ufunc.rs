//! Rows of NumPy's ufuncs, for numbers, and for arrays with an output array.

use weft_artifact::Scalar;

use super::{
    super::{Arg, Custom, Intrinsic, Lowering, Returns, Signature},
    tables::{
        ANY, BITS, COMPARISON, EVERY_FLOAT, FLOAT, FLOAT_TEST, FLOATS, INEXACT, INEXACT_TEST, INTEGERS, NUMBER,
        NUMBERS, REAL, REALS, TRUTHS, numbers, pairs, row,
    },
};
use crate::ir::MathFn;

const MODULUS: &[Signature] = numbers![BOOL -> BOOL, I8 -> I8, U8 -> U8, I16 -> I16, U16 -> U16, I32 -> I32, U32 -> U32, I64 -> I64, U64 -> U64, F16 -> F16, BF16 -> BF16, F32 -> F32, F64 -> F64, C64 -> F32, C128 -> F64];
const SQUARE: &[Signature] = numbers![BOOL -> BOOL, I8 -> I8, U8 -> U8, I16 -> I16, U16 -> U16, I32 -> I32, U32 -> U32, I64 -> I64, U64 -> U64, F16 -> F16, BF16 -> BF16, F32 -> F32, F64 -> F64, C64 -> C64, C128 -> C128];
const COUNT: &[Signature] =
    numbers![I8 -> U8, U8 -> U8, I16 -> U8, U16 -> U8, I32 -> U8, U32 -> U8, I64 -> U8, U64 -> U8];
const NOT: &[Signature] =
    numbers![BOOL -> BOOL, I8 -> I8, U8 -> U8, I16 -> I16, U16 -> U16, I32 -> I32, U32 -> U32, I64 -> I64, U64 -> U64];
const TRUTH: &[Signature] = numbers![BOOL -> BOOL, I8 -> BOOL, U8 -> BOOL, I16 -> BOOL, U16 -> BOOL, I32 -> BOOL, U32 -> BOOL, I64 -> BOOL, U64 -> BOOL, F16 -> BOOL, BF16 -> BOOL, F32 -> BOOL, F64 -> BOOL, C64 -> BOOL, C128 -> BOOL];
const FREXP: &[Signature] = &[
    Signature { args: &[Arg::Scalar(Scalar::F32)], returns: Returns::Tuple(&[Scalar::F32, Scalar::I32]) },
    Signature { args: &[Arg::Scalar(Scalar::F64)], returns: Returns::Tuple(&[Scalar::F64, Scalar::I32]) },
];
const MODF: &[Signature] = pairs![F32 -> F32, F64 -> F64];
const DIVMOD: &[Signature] = pairs![I8 I8 -> I8, U8 U8 -> U8, I16 I16 -> I16, U16 U16 -> U16, I32 I32 -> I32, U32 U32 -> U32, I64 I64 -> I64, U64 U64 -> U64, F16 F16 -> F16, BF16 BF16 -> BF16, F32 F32 -> F32, F64 F64 -> F64];
const QUOTIENT: &[Signature] = numbers![BOOL BOOL -> F64, I8 I8 -> F64, U8 U8 -> F64, I16 I16 -> F64, U16 U16 -> F64, I32 I32 -> F64, U32 U32 -> F64, I64 I64 -> F64, U64 U64 -> F64, F16 F16 -> F16, BF16 BF16 -> BF16, F32 F32 -> F32, F64 F64 -> F64, C64 C64 -> C64, C128 C128 -> C128];
const POWER: &[Signature] = numbers![F64 F64 -> F64, C128 C128 -> C128];
const NEIGHBOR: &[Signature] = numbers![F32 F32 -> F32, F64 F64 -> F64];
const LDEXP: &[Signature] = numbers![F16 I64 -> F16, BF16 I64 -> BF16, F32 I64 -> F32, F64 I64 -> F64];
const CLIP: &[Signature] = numbers![BOOL BOOL BOOL -> BOOL, I8 I8 I8 -> I8, U8 U8 U8 -> U8, I16 I16 I16 -> I16, U16 U16 U16 -> U16, I32 I32 I32 -> I32, U32 U32 U32 -> U32, I64 I64 I64 -> I64, U64 U64 U64 -> U64, F16 F16 F16 -> F16, BF16 BF16 BF16 -> BF16, F32 F32 F32 -> F32, F64 F64 F64 -> F64];

pub(super) const UFUNCS: &[Intrinsic] = &[
    row("numpy.sin", INEXACT, Lowering::Ufunc(&Lowering::MathOr(MathFn::Sin, "cmath_sin")), "Sine of radians."),
    row("numpy.cos", INEXACT, Lowering::Ufunc(&Lowering::MathOr(MathFn::Cos, "cmath_cos")), "Cosine of radians."),
    row("numpy.tan", INEXACT, Lowering::Ufunc(&Lowering::MathOr(MathFn::Tan, "cmath_tan")), "Tangent of radians."),
    row(
        "numpy.arcsin",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Asin, "cmath_asin")),
        "Arc sine, in radians.",
    ),
    row(
        "numpy.arccos",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Acos, "cmath_acos")),
        "Arc cosine, in radians.",
    ),
    row(
        "numpy.arctan",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Atan, "cmath_atan")),
        "Arc tangent, in radians.",
    ),
    row("numpy.sinh", INEXACT, Lowering::Ufunc(&Lowering::MathOr(MathFn::Sinh, "cmath_sinh")), "Hyperbolic sine."),
    row("numpy.cosh", INEXACT, Lowering::Ufunc(&Lowering::MathOr(MathFn::Cosh, "cmath_cosh")), "Hyperbolic cosine."),
    row("numpy.tanh", INEXACT, Lowering::Ufunc(&Lowering::MathOr(MathFn::Tanh, "cmath_tanh")), "Hyperbolic tangent."),
    row(
        "numpy.arcsinh",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Asinh, "cmath_asinh")),
        "Inverse hyperbolic sine.",
    ),
    row(
        "numpy.arccosh",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Acosh, "cmath_acosh")),
        "Inverse hyperbolic cosine.",
    ),
    row(
        "numpy.arctanh",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Atanh, "cmath_atanh")),
        "Inverse hyperbolic tangent.",
    ),
    row("numpy.exp", INEXACT, Lowering::Ufunc(&Lowering::MathOr(MathFn::Exp, "cmath_exp")), "e to the power x."),
    row("numpy.exp2", INEXACT, Lowering::Ufunc(&Lowering::MathOr(MathFn::Exp2, "cmath_exp2")), "2 to the power x."),
    row(
        "numpy.expm1",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Expm1, "cmath_expm1")),
        "e**x - 1, accurate near 0.",
    ),
    row("numpy.log", INEXACT, Lowering::Ufunc(&Lowering::MathOr(MathFn::Log, "cmath_log1")), "Natural logarithm."),
    row("numpy.log2", INEXACT, Lowering::Ufunc(&Lowering::MathOr(MathFn::Log2, "cmath_log2")), "Logarithm to base 2."),
    row(
        "numpy.log10",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Log10, "cmath_log10")),
        "Logarithm to base 10.",
    ),
    row(
        "numpy.log1p",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Log1p, "cmath_log1p")),
        "log(1 + x), accurate near 0.",
    ),
    row(
        "numpy.sqrt",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Sqrt, "cmath_sqrt")),
        "Square root, correctly rounded for real numbers.",
    ),
    row(
        "numpy.asin",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Asin, "cmath_asin")),
        "The same as `np.arcsin`.",
    ),
    row(
        "numpy.acos",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Acos, "cmath_acos")),
        "The same as `np.arccos`.",
    ),
    row(
        "numpy.atan",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Atan, "cmath_atan")),
        "The same as `np.arctan`.",
    ),
    row(
        "numpy.asinh",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Asinh, "cmath_asinh")),
        "The same as `np.arcsinh`.",
    ),
    row(
        "numpy.acosh",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Acosh, "cmath_acosh")),
        "The same as `np.arccosh`.",
    ),
    row(
        "numpy.atanh",
        INEXACT,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Atanh, "cmath_atanh")),
        "The same as `np.arctanh`.",
    ),
    row("numpy.cbrt", EVERY_FLOAT, Lowering::Ufunc(&Lowering::Math(MathFn::Cbrt)), "Cube root."),
    row("numpy.fabs", EVERY_FLOAT, Lowering::Ufunc(&Lowering::Prelude("np_fabs")), "Absolute value, as a float."),
    row(
        "numpy.rint",
        EVERY_FLOAT,
        Lowering::Ufunc(&Lowering::Math(MathFn::RoundEven)),
        "Rounds to the nearest integer, half to even.",
    ),
    row(
        "numpy.floor",
        REAL,
        Lowering::Ufunc(&Lowering::Prelude("np_floor")),
        "Rounds toward negative infinity; integers are unchanged.",
    ),
    row(
        "numpy.ceil",
        REAL,
        Lowering::Ufunc(&Lowering::Prelude("np_ceil")),
        "Rounds toward infinity; integers are unchanged.",
    ),
    row(
        "numpy.trunc",
        REAL,
        Lowering::Ufunc(&Lowering::Prelude("np_trunc")),
        "Rounds toward zero; integers are unchanged.",
    ),
    row("numpy.fix", REAL, Lowering::Prelude("np_trunc"), "Rounds toward zero; integers are unchanged."),
    row("numpy.degrees", EVERY_FLOAT, Lowering::Ufunc(&Lowering::Custom(Custom::Degrees)), "Radians to degrees."),
    row("numpy.rad2deg", EVERY_FLOAT, Lowering::Ufunc(&Lowering::Custom(Custom::Degrees)), "Radians to degrees."),
    row("numpy.radians", EVERY_FLOAT, Lowering::Ufunc(&Lowering::Custom(Custom::Radians)), "Degrees to radians."),
    row("numpy.deg2rad", EVERY_FLOAT, Lowering::Ufunc(&Lowering::Custom(Custom::Radians)), "Degrees to radians."),
    row(
        "numpy.isfinite",
        INEXACT_TEST,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Isfinite, "cmath_isfinite")),
        "Whether it is neither infinite nor NaN.",
    ),
    row("numpy.isinf", INEXACT_TEST, Lowering::Ufunc(&Lowering::MathOr(MathFn::Isinf, "cmath_isinf")), "Infinite."),
    row(
        "numpy.isnan",
        INEXACT_TEST,
        Lowering::Ufunc(&Lowering::MathOr(MathFn::Isnan, "cmath_isnan")),
        "Whether it is NaN.",
    ),
    row("numpy.isnat", &[], Lowering::Custom(Custom::IsNat), "Whether a date or a duration is NaT."),
    row(
        "numpy.signbit",
        FLOAT_TEST,
        Lowering::Ufunc(&Lowering::Prelude("np_signbit")),
        "Whether the sign bit is set; also True for -0.0.",
    ),
    row(
        "numpy.spacing",
        FLOAT,
        Lowering::Ufunc(&Lowering::Prelude("np_spacing")),
        "The distance to the next float away from zero.",
    ),
    row(
        "numpy.abs",
        MODULUS,
        Lowering::Ufunc(&Lowering::Prelude("np_absolute")),
        "Absolute value; the modulus of a complex number.",
    ),
    row(
        "numpy.absolute",
        MODULUS,
        Lowering::Ufunc(&Lowering::Prelude("np_absolute")),
        "Absolute value; the modulus of a complex number.",
    ),
    row("numpy.negative", NUMBER, Lowering::Ufunc(&Lowering::Prelude("np_negative")), "-x."),
    row("numpy.positive", NUMBER, Lowering::Ufunc(&Lowering::Prelude("np_positive")), "+x."),
    row(
        "numpy.sign",
        NUMBER,
        Lowering::Ufunc(&Lowering::Prelude("np_sign")),
        "-1, 0 or 1; for a complex number x / abs(x).",
    ),
    row("numpy.square", SQUARE, Lowering::Ufunc(&Lowering::Prelude("np_square")), "x * x."),
    row(
        "numpy.reciprocal",
        NUMBER,
        Lowering::Ufunc(&Lowering::Prelude("np_reciprocal")),
        "1 / x; truncated for an integer, and 0 for 0.",
    ),
    row("numpy.conjugate", NUMBER, Lowering::Ufunc(&Lowering::Prelude("np_conjugate")), "The complex conjugate."),
    row("numpy.conj", NUMBER, Lowering::Ufunc(&Lowering::Prelude("np_conjugate")), "The complex conjugate."),
    row(
        "numpy.bitwise_count",
        COUNT,
        Lowering::Ufunc(&Lowering::Prelude("np_bitwise_count")),
        "The number of set bits of the absolute value.",
    ),
    row("numpy.invert", NOT, Lowering::Ufunc(&Lowering::Prelude("np_invert")), "~x; for a bool, `not x`."),
    row("numpy.bitwise_not", NOT, Lowering::Ufunc(&Lowering::Prelude("np_invert")), "~x; for a bool, `not x`."),
    row("numpy.bitwise_invert", NOT, Lowering::Ufunc(&Lowering::Prelude("np_invert")), "~x; for a bool, `not x`."),
    row("numpy.logical_not", TRUTH, Lowering::Ufunc(&Lowering::Prelude("np_logical_not")), "not x."),
    row(
        "numpy.frexp",
        FREXP,
        Lowering::Ufunc(&Lowering::Custom(Custom::Frexp)),
        "(m, e) with x = m * 2**e and 0.5 <= |m| < 1.",
    ),
    row(
        "numpy.modf",
        MODF,
        Lowering::Ufunc(&Lowering::Custom(Custom::Modf)),
        "(fractional part, integer part), both with the sign of x.",
    ),
    row("numpy.add", ANY, Lowering::Ufunc(&Lowering::Prelude("np_add")), "a + b; for bools, `or`."),
    row("numpy.multiply", ANY, Lowering::Ufunc(&Lowering::Prelude("np_multiply")), "a * b; for bools, `and`."),
    row("numpy.subtract", NUMBERS, Lowering::Ufunc(&Lowering::Prelude("np_subtract")), "a - b."),
    row("numpy.floor_divide", REALS, Lowering::Ufunc(&Lowering::Prelude("np_floor_divide")), "a // b."),
    row("numpy.remainder", REALS, Lowering::Ufunc(&Lowering::Prelude("np_remainder")), "a % b, with the sign of b."),
    row("numpy.mod", REALS, Lowering::Ufunc(&Lowering::Prelude("np_remainder")), "a % b, with the sign of b."),
    row("numpy.fmod", REALS, Lowering::Ufunc(&Lowering::Prelude("np_fmod")), "C's remainder, with the sign of a."),
    row("numpy.power", NUMBERS, Lowering::Ufunc(&Lowering::Prelude("np_power")), "a ** b."),
    row("numpy.maximum", ANY, Lowering::Ufunc(&Lowering::Prelude("np_maximum")), "The maximum; NaN if either is."),
    row("numpy.minimum", ANY, Lowering::Ufunc(&Lowering::Prelude("np_minimum")), "The minimum; NaN if either is."),
    row("numpy.fmax", ANY, Lowering::Ufunc(&Lowering::Prelude("np_fmax")), "The maximum; if one is NaN, the other."),
    row("numpy.fmin", ANY, Lowering::Ufunc(&Lowering::Prelude("np_fmin")), "The minimum; if one is NaN, the other."),
    row("numpy.gcd", INTEGERS, Lowering::Ufunc(&Lowering::Prelude("np_gcd")), "Greatest common divisor."),
    row("numpy.lcm", INTEGERS, Lowering::Ufunc(&Lowering::Prelude("np_lcm")), "Least common multiple."),
    row(
        "numpy.left_shift",
        INTEGERS,
        Lowering::Ufunc(&Lowering::Prelude("np_left_shift")),
        "a << b; 0 if b is at least the width of a.",
    ),
    row(
        "numpy.bitwise_left_shift",
        INTEGERS,
        Lowering::Ufunc(&Lowering::Prelude("np_left_shift")),
        "The same as `np.left_shift`.",
    ),
    row(
        "numpy.right_shift",
        INTEGERS,
        Lowering::Ufunc(&Lowering::Prelude("np_right_shift")),
        "a >> b; 0 or -1 if b is at least the width of a.",
    ),
    row(
        "numpy.bitwise_right_shift",
        INTEGERS,
        Lowering::Ufunc(&Lowering::Prelude("np_right_shift")),
        "The same as `np.right_shift`.",
    ),
    row("numpy.bitwise_and", BITS, Lowering::Ufunc(&Lowering::Prelude("np_bitwise_and")), "a & b."),
    row("numpy.bitwise_or", BITS, Lowering::Ufunc(&Lowering::Prelude("np_bitwise_or")), "a | b."),
    row("numpy.bitwise_xor", BITS, Lowering::Ufunc(&Lowering::Prelude("np_bitwise_xor")), "a ^ b."),
    row("numpy.logical_and", TRUTHS, Lowering::Ufunc(&Lowering::Prelude("np_logical_and")), "a and b, as a bool."),
    row("numpy.logical_or", TRUTHS, Lowering::Ufunc(&Lowering::Prelude("np_logical_or")), "a or b, as a bool."),
    row(
        "numpy.logical_xor",
        TRUTHS,
        Lowering::Ufunc(&Lowering::Prelude("np_logical_xor")),
        "Whether exactly one of the two is true.",
    ),
    row("numpy.equal", COMPARISON, Lowering::Ufunc(&Lowering::Prelude("np_equal")), "a == b."),
    row("numpy.not_equal", COMPARISON, Lowering::Ufunc(&Lowering::Prelude("np_not_equal")), "a != b."),
    row("numpy.less", COMPARISON, Lowering::Ufunc(&Lowering::Prelude("np_less")), "a < b."),
    row("numpy.less_equal", COMPARISON, Lowering::Ufunc(&Lowering::Prelude("np_less_equal")), "a <= b."),
    row("numpy.greater", COMPARISON, Lowering::Ufunc(&Lowering::Prelude("np_greater")), "a > b."),
    row("numpy.greater_equal", COMPARISON, Lowering::Ufunc(&Lowering::Prelude("np_greater_equal")), "a >= b."),
    row("numpy.divide", QUOTIENT, Lowering::Ufunc(&Lowering::Prelude("np_divide")), "a / b."),
    row("numpy.true_divide", QUOTIENT, Lowering::Ufunc(&Lowering::Prelude("np_divide")), "a / b."),
    row(
        "numpy.float_power",
        POWER,
        Lowering::Ufunc(&Lowering::Prelude("np_float_power")),
        "a ** b, at least as float64.",
    ),
    row(
        "numpy.logaddexp",
        FLOATS,
        Lowering::Ufunc(&Lowering::Prelude("np_logaddexp")),
        "log(exp(a) + exp(b)) without overflow.",
    ),
    row(
        "numpy.logaddexp2",
        FLOATS,
        Lowering::Ufunc(&Lowering::Prelude("np_logaddexp2")),
        "log2(2**a + 2**b) without overflow.",
    ),
    row(
        "numpy.heaviside",
        FLOATS,
        Lowering::Ufunc(&Lowering::Prelude("np_heaviside")),
        "0 for a < 0, 1 for a > 0, b for 0.",
    ),
    row("numpy.ldexp", LDEXP, Lowering::Ufunc(&Lowering::Prelude("np_ldexp")), "a * 2**b."),
    row("numpy.divmod", DIVMOD, Lowering::Ufunc(&Lowering::Prelude("np_divmod")), "(a // b, a % b)."),
    row("numpy.pow", NUMBERS, Lowering::Ufunc(&Lowering::Prelude("np_power")), "The same as `np.power`."),
    row(
        "numpy.arctan2",
        FLOATS,
        Lowering::Ufunc(&Lowering::Math(MathFn::Atan2)),
        "Angle of the point (x, y) for `arctan2(y, x)`, in radians.",
    ),
    row("numpy.atan2", FLOATS, Lowering::Ufunc(&Lowering::Math(MathFn::Atan2)), "The same as `np.arctan2`."),
    row("numpy.hypot", FLOATS, Lowering::Ufunc(&Lowering::Math(MathFn::Hypot)), "sqrt(a*a + b*b) without overflow."),
    row(
        "numpy.copysign",
        FLOATS,
        Lowering::Ufunc(&Lowering::Math(MathFn::Copysign)),
        "The magnitude of a with the sign of b.",
    ),
    row(
        "numpy.nextafter",
        NEIGHBOR,
        Lowering::Ufunc(&Lowering::Math(MathFn::Nextafter)),
        "The next float after a toward b.",
    ),
    row(
        "numpy.clip",
        CLIP,
        Lowering::Ufunc(&Lowering::Prelude("np_clip")),
        "The value limited to the range between two numbers; NaN if any is NaN.",
    ),
];
