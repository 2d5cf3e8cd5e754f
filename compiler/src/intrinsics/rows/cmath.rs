//! Rows of `cmath`. Computations use complex128; a result for complex64 or float32 is rounded once, at the end.

use weft_artifact::{Complex, Scalar};

use super::{
    super::{Arg, Intrinsic, Lowering, Returns, Signature},
    tables::{COMPLEX, INEXACT_TEST, numbers, row},
};
use crate::ir::MathFn;

const LOG: &[Signature] = numbers![C64 -> C64, C128 -> C128, C64 C64 -> C64, C128 C128 -> C128];
const CLOSE: &[Signature] = numbers![C128 C128 F64 F64 -> BOOL];
const PHASE: &[Signature] = numbers![C64 -> F32, C128 -> F64];
const POLAR: &[Signature] = &[
    Signature { args: &[Arg::Complex(Complex::C64)], returns: Returns::Tuple(&[Scalar::F32, Scalar::F32]) },
    Signature { args: &[Arg::Complex(Complex::C128)], returns: Returns::Tuple(&[Scalar::F64, Scalar::F64]) },
];
const RECT: &[Signature] = numbers![F32 F32 -> C64, F64 F64 -> C128];

pub(super) const CMATH: &[Intrinsic] = &[
    row("cmath.acos", COMPLEX, Lowering::Prelude("cmath_acos"), "Arc cosine."),
    row("cmath.acosh", COMPLEX, Lowering::Prelude("cmath_acosh"), "Inverse hyperbolic cosine."),
    row("cmath.asin", COMPLEX, Lowering::Prelude("cmath_asin"), "Arc sine."),
    row("cmath.asinh", COMPLEX, Lowering::Prelude("cmath_asinh"), "Inverse hyperbolic sine."),
    row("cmath.atan", COMPLEX, Lowering::Prelude("cmath_atan"), "Arc tangent."),
    row("cmath.atanh", COMPLEX, Lowering::Prelude("cmath_atanh"), "Inverse hyperbolic tangent."),
    row("cmath.cos", COMPLEX, Lowering::Prelude("cmath_cos"), "Cosine."),
    row("cmath.cosh", COMPLEX, Lowering::Prelude("cmath_cosh"), "Hyperbolic cosine."),
    row("cmath.exp", COMPLEX, Lowering::Prelude("cmath_exp"), "e to the power z."),
    row(
        "cmath.isclose",
        CLOSE,
        Lowering::Prelude("cmath_isclose"),
        "abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol) (`rel_tol=1e-9, abs_tol=0.0`).",
    ),
    row(
        "cmath.isfinite",
        INEXACT_TEST,
        Lowering::MathOr(MathFn::Isfinite, "cmath_isfinite"),
        "Whether both parts are finite.",
    ),
    row("cmath.isinf", INEXACT_TEST, Lowering::MathOr(MathFn::Isinf, "cmath_isinf"), "Whether a part is infinite."),
    row("cmath.isnan", INEXACT_TEST, Lowering::MathOr(MathFn::Isnan, "cmath_isnan"), "Whether a part is NaN."),
    row(
        "cmath.log",
        LOG,
        Lowering::Prelude("cmath_log"),
        "Natural logarithm, or the logarithm to the base in a second argument.",
    ),
    row("cmath.log10", COMPLEX, Lowering::Prelude("cmath_log10"), "Logarithm to base 10."),
    row("cmath.phase", PHASE, Lowering::Prelude("cmath_phase"), "The angle, in radians."),
    row("cmath.polar", POLAR, Lowering::Prelude("cmath_polar"), "(modulus, angle)."),
    row("cmath.rect", RECT, Lowering::Prelude("cmath_rect"), "The number with a given modulus and angle."),
    row("cmath.sin", COMPLEX, Lowering::Prelude("cmath_sin"), "Sine."),
    row("cmath.sinh", COMPLEX, Lowering::Prelude("cmath_sinh"), "Hyperbolic sine."),
    row("cmath.sqrt", COMPLEX, Lowering::Prelude("cmath_sqrt"), "Square root, with a real part that is not negative."),
    row("cmath.tan", COMPLEX, Lowering::Prelude("cmath_tan"), "Tangent."),
    row("cmath.tanh", COMPLEX, Lowering::Prelude("cmath_tanh"), "Hyperbolic tangent."),
];
