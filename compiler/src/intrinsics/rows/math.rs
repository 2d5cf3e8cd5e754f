//! Rows of `math`.

use weft_artifact::Scalar::{BF16, Bool, F16, F32, F64, I32};

use super::{
    super::{Arg, Custom, Intrinsic, Lowering, Ptx, Returns, Signature},
    tables::{FLOAT, numbers, row},
};
use crate::ir::MathFn;

const LOG: &[Signature] = numbers![
    F16 -> F16, BF16 -> BF16, F32 -> F32, F64 -> F64, F32 F32 -> F32, F64 F64 -> F64
];
const INTEGERS: &[Signature] = numbers![I64 I64 -> I64, U64 U64 -> U64];
const INTEGER: &[Signature] = numbers![I64 -> I64, U64 -> U64];
const PERM: &[Signature] = numbers![I64 I64 -> I64, U64 U64 -> U64, I64 -> I64, U64 -> U64];
const CLOSE: &[Signature] = numbers![F64 F64 F64 F64 -> BOOL];
const FMA: &[Signature] = numbers![
    F16 F16 F16 -> F16, BF16 BF16 BF16 -> BF16, F32 F32 F32 -> F32, F64 F64 F64 -> F64
];

pub(super) const MATH: &[Intrinsic] = &[
    row("math.cbrt", FLOAT, Lowering::Math(MathFn::Cbrt), "Cube root."),
    row(
        "math.comb",
        INTEGERS,
        Lowering::Prelude("math_comb"),
        "The number of ways to choose k of n items; wraps around at 64 bits.",
    ),
    row("math.dist", &[], Lowering::Custom(Custom::Dist), "The distance of two points, which are tuples."),
    row("math.factorial", INTEGER, Lowering::Prelude("math_factorial"), "n!; wraps around at 64 bits."),
    row("math.fma", FMA, Lowering::Math(MathFn::Fma), "x * y + z, rounded once."),
    row(
        "math.gcd",
        INTEGERS,
        Lowering::Fold(&Lowering::Prelude("math_gcd")),
        "Greatest common divisor of two or more integers.",
    ),
    row(
        "math.isclose",
        CLOSE,
        Lowering::Prelude("math_isclose"),
        "abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol) (`rel_tol=1e-9, abs_tol=0.0`).",
    ),
    row(
        "math.isqrt",
        INTEGER,
        Lowering::Prelude("math_isqrt"),
        "The integer part of the square root; 0 for a negative number.",
    ),
    row(
        "math.lcm",
        INTEGERS,
        Lowering::Fold(&Lowering::Prelude("math_lcm")),
        "Least common multiple of two or more integers.",
    ),
    row(
        "math.perm",
        PERM,
        Lowering::Prelude("math_perm"),
        "The number of ways to arrange k of n items (all if k is not given); wraps around at 64 bits.",
    ),
    row(
        "math.prod",
        &[],
        Lowering::Custom(Custom::Prod),
        "The product of a tuple or a one-dimensional array, times `start=1`.",
    ),
    row("math.ulp", FLOAT, Lowering::Prelude("math_ulp"), "The value of the least significant bit."),
    Intrinsic {
        path: "math.acos",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Acos),
        ptx: Ptx::Computed,
        doc: "Arc cosine, in radians.",
    },
    Intrinsic {
        path: "math.acosh",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Acosh),
        ptx: Ptx::Computed,
        doc: "Inverse hyperbolic cosine.",
    },
    Intrinsic {
        path: "math.asin",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Asin),
        ptx: Ptx::Computed,
        doc: "Arc sine, in radians.",
    },
    Intrinsic {
        path: "math.asinh",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Asinh),
        ptx: Ptx::Computed,
        doc: "Inverse hyperbolic sine.",
    },
    Intrinsic {
        path: "math.atan",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Atan),
        ptx: Ptx::Computed,
        doc: "Arc tangent, in radians.",
    },
    Intrinsic {
        path: "math.atanh",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Atanh),
        ptx: Ptx::Computed,
        doc: "Inverse hyperbolic tangent.",
    },
    Intrinsic {
        path: "math.ceil",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Ceil),
        ptx: Ptx::Has("cvt.rpi"),
        doc: "Rounds up; returns a float, as in Numba.",
    },
    Intrinsic {
        path: "math.cos",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Cos),
        ptx: Ptx::Computed,
        doc: "Cosine of radians.",
    },
    Intrinsic {
        path: "math.cosh",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Cosh),
        ptx: Ptx::Computed,
        doc: "Hyperbolic cosine.",
    },
    Intrinsic {
        path: "math.erf",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Erf),
        ptx: Ptx::Computed,
        doc: "Error function.",
    },
    Intrinsic {
        path: "math.erfc",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Erfc),
        ptx: Ptx::Computed,
        doc: "Complementary error function.",
    },
    Intrinsic {
        path: "math.exp",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Exp),
        ptx: Ptx::Computed,
        doc: "e to the power x.",
    },
    Intrinsic {
        path: "math.exp2",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Exp2),
        ptx: Ptx::Computed,
        doc: "2 to the power x.",
    },
    Intrinsic {
        path: "math.expm1",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Expm1),
        ptx: Ptx::Computed,
        doc: "exp(x) - 1, accurate near zero.",
    },
    Intrinsic {
        path: "math.floor",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Floor),
        ptx: Ptx::Has("cvt.rmi"),
        doc: "Rounds down; returns a float, as in Numba.",
    },
    Intrinsic {
        path: "math.gamma",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Gamma),
        ptx: Ptx::Computed,
        doc: "Gamma function.",
    },
    Intrinsic {
        path: "math.lgamma",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Lgamma),
        ptx: Ptx::Computed,
        doc: "Logarithm of the absolute value of the gamma function.",
    },
    Intrinsic {
        path: "math.log",
        signatures: LOG,
        lowering: Lowering::MathOr(MathFn::Log, "math_log"),
        ptx: Ptx::Computed,
        doc: "Natural logarithm, or the logarithm to the base in a second argument.",
    },
    Intrinsic {
        path: "math.log10",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Log10),
        ptx: Ptx::Computed,
        doc: "Logarithm to base 10.",
    },
    Intrinsic {
        path: "math.log1p",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Log1p),
        ptx: Ptx::Computed,
        doc: "log(1 + x), accurate near zero.",
    },
    Intrinsic {
        path: "math.log2",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Log2),
        ptx: Ptx::Computed,
        doc: "Logarithm to base 2.",
    },
    Intrinsic {
        path: "math.sin",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Sin),
        ptx: Ptx::Computed,
        doc: "Sine of radians.",
    },
    Intrinsic {
        path: "math.sinh",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Sinh),
        ptx: Ptx::Computed,
        doc: "Hyperbolic sine.",
    },
    Intrinsic {
        path: "math.sqrt",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Sqrt),
        ptx: Ptx::Has("sqrt.rn"),
        doc: "Square root, correctly rounded.",
    },
    Intrinsic {
        path: "math.tan",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Tan),
        ptx: Ptx::Computed,
        doc: "Tangent of radians.",
    },
    Intrinsic {
        path: "math.tanh",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Tanh),
        ptx: Ptx::Computed,
        doc: "Hyperbolic tangent.",
    },
    Intrinsic {
        path: "math.trunc",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Trunc),
        ptx: Ptx::Has("cvt.rzi"),
        doc: "Rounds toward zero; returns a float, as in Numba.",
    },
    Intrinsic {
        path: "math.atan2",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Atan2),
        ptx: Ptx::Computed,
        doc: "Angle of the point (x, y) for `atan2(y, x)`, in radians.",
    },
    Intrinsic {
        path: "math.copysign",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Copysign),
        ptx: Ptx::Computed,
        doc: "The magnitude of x with the sign of y.",
    },
    Intrinsic {
        path: "math.fmod",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Fmod),
        ptx: Ptx::Computed,
        doc: "Remainder with the sign of x.",
    },
    Intrinsic {
        path: "math.hypot",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Fold(&Lowering::Math(MathFn::Hypot)),
        ptx: Ptx::Computed,
        doc: "sqrt(x*x + y*y + …) without overflow, for two or more numbers.",
    },
    Intrinsic {
        path: "math.nextafter",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Nextafter),
        ptx: Ptx::Computed,
        doc: "The next float after x toward y.",
    },
    Intrinsic {
        path: "math.remainder",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Remainder),
        ptx: Ptx::Computed,
        doc: "IEEE remainder: x - n*y for the nearest integer n.",
    },
    Intrinsic {
        path: "math.pow",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(I32)], returns: Returns::Scalar(F32) },
        ],
        lowering: Lowering::Math(MathFn::Pow),
        ptx: Ptx::Computed,
        doc: "x to the power y.",
    },
    Intrinsic {
        path: "math.ldexp",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(I32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(I32)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Math(MathFn::Ldexp),
        ptx: Ptx::Computed,
        doc: "x * 2**i.",
    },
    Intrinsic {
        path: "math.fabs",
        signatures: &[
            Signature { args: &[Arg::Scalar(F16)], returns: Returns::Scalar(F16) },
            Signature { args: &[Arg::Scalar(BF16)], returns: Returns::Scalar(BF16) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Custom(Custom::Abs),
        ptx: Ptx::Has("abs."),
        doc: "Absolute value, as a float.",
    },
    Intrinsic {
        path: "math.isfinite",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(Bool) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(Bool) },
        ],
        lowering: Lowering::Math(MathFn::Isfinite),
        ptx: Ptx::Computed,
        doc: "Whether it is neither infinite nor NaN.",
    },
    Intrinsic {
        path: "math.isinf",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(Bool) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(Bool) },
        ],
        lowering: Lowering::Math(MathFn::Isinf),
        ptx: Ptx::Computed,
        doc: "Infinite.",
    },
    Intrinsic {
        path: "math.isnan",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(Bool) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(Bool) },
        ],
        lowering: Lowering::Math(MathFn::Isnan),
        ptx: Ptx::Computed,
        doc: "Whether it is NaN.",
    },
    Intrinsic {
        path: "math.frexp",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Tuple(&[F32, I32]) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Tuple(&[F64, I32]) },
        ],
        lowering: Lowering::Custom(Custom::Frexp),
        ptx: Ptx::Computed,
        doc: "(m, e) with x = m * 2**e and 0.5 <= |m| < 1.",
    },
    Intrinsic {
        path: "math.modf",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Tuple(&[F32, F32]) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Tuple(&[F64, F64]) },
        ],
        lowering: Lowering::Custom(Custom::Modf),
        ptx: Ptx::Computed,
        doc: "(fractional part, integer part), both with the sign of x.",
    },
    Intrinsic {
        path: "math.degrees",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Custom(Custom::Degrees),
        ptx: Ptx::Computed,
        doc: "Radians to degrees.",
    },
    Intrinsic {
        path: "math.radians",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Custom(Custom::Radians),
        ptx: Ptx::Computed,
        doc: "Degrees to radians.",
    },
];
