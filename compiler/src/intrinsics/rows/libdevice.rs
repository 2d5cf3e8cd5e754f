//! Rows of `cuda.libdevice`: the functions of CUDA's libdevice, without the prefix `__nv_`.
//!
//! A row has the names for `float64` and `float32` (or 64 and 32 bits); `X` in its types is the type of the name.
//! Unsigned results are returned as signed numbers, as in Numba; unsigned parameters accept signed numbers with the
//! same bits.

use weft_artifact::Scalar;

use super::{
    super::{Arg, Intrinsic, Lowering, Returns, Signature},
    tables::row,
};
use crate::ir::MathFn;

/// The type of a name; `X` is the row's type.
macro_rules! scalar {
    ($x:ident X) => {
        Scalar::$x
    };
    ($x:ident $other:ident) => {
        Scalar::$other
    };
}

/// The only overload of a row.
macro_rules! signature {
    ($x:ident ($($from:ident)+ -> $to:ident)) => {
        &[Signature { args: &[$(Arg::Scalar(scalar!($x $from))),+], returns: Returns::Scalar(scalar!($x $to)) }]
    };
    ($x:ident ($($from:ident)+ -> $one:ident $two:ident)) => {
        &[Signature {
            args: &[$(Arg::Scalar(scalar!($x $from))),+],
            returns: Returns::Tuple(&[scalar!($x $one), scalar!($x $two)]),
        }]
    };
}

/// The rows: names with their types, parameters and results, lowering, documentation.
macro_rules! libdevice {
    ($([$($name:ident $x:ident)+] $signature:tt $lowering:ident($what:expr), $doc:literal;)+) => {
        pub(super) const LIBDEVICE: &[Intrinsic] = &[
            $($(row(
                concat!("weft.cuda.libdevice.", stringify!($name)),
                signature!($x $signature),
                Lowering::$lowering($what),
                $doc,
            ),)+)+
        ];
    };
}

libdevice! {
    [acos F64 acosf F32] (X -> X) Math(MathFn::Acos), "Arc cosine.";
    [acosh F64 acoshf F32] (X -> X) Math(MathFn::Acosh), "Inverse hyperbolic cosine.";
    [asin F64 asinf F32] (X -> X) Math(MathFn::Asin), "Arc sine.";
    [asinh F64 asinhf F32] (X -> X) Math(MathFn::Asinh), "Inverse hyperbolic sine.";
    [atan F64 atanf F32] (X -> X) Math(MathFn::Atan), "Arc tangent.";
    [atan2 F64 atan2f F32] (X X -> X) Math(MathFn::Atan2), "The angle of the point (y, x) in that order.";
    [atanh F64 atanhf F32] (X -> X) Math(MathFn::Atanh), "Inverse hyperbolic tangent.";
    [cbrt F64 cbrtf F32] (X -> X) Math(MathFn::Cbrt), "Cube root.";
    [ceil F64 ceilf F32] (X -> X) Math(MathFn::Ceil), "Rounds up to an integer.";
    [copysign F64 copysignf F32] (X X -> X) Math(MathFn::Copysign), "The magnitude of the first number with the sign \
        of the second.";
    [cos F64 cosf F32] (X -> X) Math(MathFn::Cos), "Cosine.";
    [cosh F64 coshf F32] (X -> X) Math(MathFn::Cosh), "Hyperbolic cosine.";
    [cospi F64 cospif F32] (X -> X) Prelude("libdevice_cospi"), "Cosine of pi times x.";
    [erf F64 erff F32] (X -> X) Math(MathFn::Erf), "Error function.";
    [erfc F64 erfcf F32] (X -> X) Math(MathFn::Erfc), "Complementary error function.";
    [erfcinv F64 erfcinvf F32] (X -> X) Prelude("libdevice_erfcinv"), "Inverse of `erfc`.";
    [erfcx F64 erfcxf F32] (X -> X) Prelude("libdevice_erfcx"), "exp(x * x) * erfc(x).";
    [erfinv F64 erfinvf F32] (X -> X) Prelude("libdevice_erfinv"), "Inverse of `erf`.";
    [exp F64 expf F32] (X -> X) Math(MathFn::Exp), "e to the power x.";
    [exp10 F64 exp10f F32] (X -> X) Prelude("libdevice_exp10"), "10 to the power x.";
    [exp2 F64 exp2f F32] (X -> X) Math(MathFn::Exp2), "2 to the power x.";
    [expm1 F64 expm1f F32] (X -> X) Math(MathFn::Expm1), "exp(x) - 1.";
    [fabs F64 fabsf F32] (X -> X) Prelude("libdevice_abs"), "Absolute value.";
    [fdim F64 fdimf F32] (X X -> X) Prelude("libdevice_dim"), "x - y if that is positive, else 0.";
    [floor F64 floorf F32] (X -> X) Math(MathFn::Floor), "Rounds down to an integer.";
    [fmax F64 fmaxf F32] (X X -> X) Prelude("libdevice_fmax"), "The maximum; if one is NaN, the other.";
    [fmin F64 fminf F32] (X X -> X) Prelude("libdevice_fmin"), "The minimum; if one is NaN, the other.";
    [fmod F64 fmodf F32] (X X -> X) Math(MathFn::Fmod), "The remainder of the quotient rounded toward zero.";
    [frexp F64 frexpf F32] (X -> X I32) Prelude("libdevice_frexp"), "The mantissa in [0.5, 1) and the exponent of 2.";
    [hypot F64 hypotf F32] (X X -> X) Math(MathFn::Hypot), "sqrt(x * x + y * y).";
    [ilogb F64 ilogbf F32] (X -> I32) Prelude("libdevice_ilogb"),
        "The exponent; the smallest integer for 0 and NaN, the largest for infinity.";
    [j0 F64 j0f F32] (X -> X) Prelude("libdevice_j0"), "Bessel function of the first kind of order 0.";
    [j1 F64 j1f F32] (X -> X) Prelude("libdevice_j1"), "Bessel function of the first kind of order 1.";
    [jn F64 jnf F32] (I32 X -> X) Prelude("libdevice_jn"), "Bessel function of the first kind of order n.";
    [ldexp F64 ldexpf F32] (X I32 -> X) Math(MathFn::Ldexp), "x * 2 ** n.";
    [lgamma F64 lgammaf F32] (X -> X) Math(MathFn::Lgamma), "Logarithm of the gamma function's absolute value.";
    [llrint F64 llrintf F32] (X -> I64) Prelude("libdevice_to_long_rn"), "The nearest integer, half to even.";
    [llround F64 llroundf F32] (X -> I64) Prelude("libdevice_to_long_away"),
        "The nearest integer, half away from zero.";
    [log F64 logf F32] (X -> X) Math(MathFn::Log), "Natural logarithm.";
    [log10 F64 log10f F32] (X -> X) Math(MathFn::Log10), "Logarithm to base 10.";
    [log1p F64 log1pf F32] (X -> X) Math(MathFn::Log1p), "log(1 + x).";
    [log2 F64 log2f F32] (X -> X) Math(MathFn::Log2), "Logarithm to base 2.";
    [logb F64 logbf F32] (X -> X) Prelude("libdevice_logb"), "The exponent as a float; -infinity for 0.";
    [modf F64 modff F32] (X -> X X) Prelude("libdevice_modf"), "Fractional and integer part, both with the sign of x.";
    [nearbyint F64 nearbyintf F32] (X -> X) Math(MathFn::RoundEven), "Rounds to the nearest integer, half to even.";
    [nextafter F64 nextafterf F32] (X X -> X) Math(MathFn::Nextafter), "The next number after x toward y.";
    [normcdf F64 normcdff F32] (X -> X) Prelude("libdevice_normcdf"), "Cumulative distribution function of the \
        standard normal distribution.";
    [normcdfinv F64 normcdfinvf F32] (X -> X) Prelude("libdevice_normcdfinv"), "Inverse of `normcdf`.";
    [pow F64 powf F32] (X X -> X) Math(MathFn::Pow), "x ** y.";
    [powi F64 powif F32] (X I32 -> X) Prelude("libdevice_powi"), "x ** n.";
    [rcbrt F64 rcbrtf F32] (X -> X) Prelude("libdevice_rcbrt"), "1 / cbrt(x).";
    [remainder F64 remainderf F32] (X X -> X) Math(MathFn::Remainder), "IEEE 754's remainder.";
    [remquo F64 remquof F32] (X X -> X I32) Prelude("libdevice_remquo"),
        "IEEE 754's remainder, and the last three bits of the quotient with its sign.";
    [rint F64 rintf F32] (X -> X) Math(MathFn::RoundEven), "Rounds to the nearest integer, half to even.";
    [round F64 roundf F32] (X -> X) Prelude("libdevice_round"), "Rounds to the nearest integer, half away from zero.";
    [rsqrt F64 rsqrtf F32] (X -> X) Prelude("libdevice_rsqrt"), "1 / sqrt(x).";
    [scalbn F64 scalbnf F32] (X I32 -> X) Math(MathFn::Ldexp), "x * 2 ** n.";
    [sin F64 sinf F32] (X -> X) Math(MathFn::Sin), "Sine.";
    [sincos F64 sincosf F32] (X -> X X) Prelude("libdevice_sincos"), "Sine and cosine.";
    [sincospi F64 sincospif F32] (X -> X X) Prelude("libdevice_sincospi"), "Sine and cosine of pi times x.";
    [sinh F64 sinhf F32] (X -> X) Math(MathFn::Sinh), "Hyperbolic sine.";
    [sinpi F64 sinpif F32] (X -> X) Prelude("libdevice_sinpi"), "Sine of pi times x.";
    [sqrt F64 sqrtf F32] (X -> X) Math(MathFn::Sqrt), "Square root.";
    [tan F64 tanf F32] (X -> X) Math(MathFn::Tan), "Tangent.";
    [tanh F64 tanhf F32] (X -> X) Math(MathFn::Tanh), "Hyperbolic tangent.";
    [tgamma F64 tgammaf F32] (X -> X) Math(MathFn::Gamma), "Gamma function.";
    [trunc F64 truncf F32] (X -> X) Math(MathFn::Trunc), "Rounds toward zero to an integer.";
    [y0 F64 y0f F32] (X -> X) Prelude("libdevice_y0"), "Bessel function of the second kind of order 0.";
    [y1 F64 y1f F32] (X -> X) Prelude("libdevice_y1"), "Bessel function of the second kind of order 1.";
    [yn F64 ynf F32] (I32 X -> X) Prelude("libdevice_yn"), "Bessel function of the second kind of order n.";

    [fast_cosf F32] (X -> X) Math(MathFn::FastCos), "An approximation on GPUs: `cos.approx`.";
    [fast_exp10f F32] (X -> X) Prelude("libdevice_fast_exp10"), "An approximation on GPUs, by `ex2.approx`.";
    [fast_expf F32] (X -> X) Prelude("libdevice_fast_exp"), "An approximation on GPUs, by `ex2.approx`.";
    [fast_fdividef F32] (X X -> X) Math(MathFn::FastDiv), "An approximation on GPUs: `div.approx`.";
    [fast_log10f F32] (X -> X) Prelude("libdevice_fast_log10"), "An approximation on GPUs, by `lg2.approx`.";
    [fast_log2f F32] (X -> X) Math(MathFn::FastLog2), "An approximation on GPUs: `lg2.approx`.";
    [fast_logf F32] (X -> X) Prelude("libdevice_fast_log"), "An approximation on GPUs, by `lg2.approx`.";
    [fast_powf F32] (X X -> X) Prelude("libdevice_fast_pow"), "An approximation on GPUs, by `lg2` and `ex2.approx`.";
    [fast_sincosf F32] (X -> X X) Prelude("libdevice_fast_sincos"), "Approximations on GPUs: `sin` and `cos.approx`.";
    [fast_sinf F32] (X -> X) Math(MathFn::FastSin), "An approximation on GPUs: `sin.approx`.";
    [fast_tanf F32] (X -> X) Prelude("libdevice_fast_tan"), "An approximation on GPUs: a quotient of approximations.";

    [dadd_rn F64 fadd_rn F32] (X X -> X) Math(MathFn::AddRn), "The sum, rounded to nearest even, never fused with a \
        product.";
    [dadd_rz F64 fadd_rz F32] (X X -> X) Math(MathFn::AddRz), "The sum, rounded toward zero.";
    [dadd_rd F64 fadd_rd F32] (X X -> X) Math(MathFn::AddRd), "The sum, rounded down.";
    [dadd_ru F64 fadd_ru F32] (X X -> X) Math(MathFn::AddRu), "The sum, rounded up.";
    [ddiv_rn F64 fdiv_rn F32] (X X -> X) Math(MathFn::DivRn), "The quotient, rounded to nearest even.";
    [ddiv_rz F64 fdiv_rz F32] (X X -> X) Math(MathFn::DivRz), "The quotient, rounded toward zero.";
    [ddiv_rd F64 fdiv_rd F32] (X X -> X) Math(MathFn::DivRd), "The quotient, rounded down.";
    [ddiv_ru F64 fdiv_ru F32] (X X -> X) Math(MathFn::DivRu), "The quotient, rounded up.";
    [dmul_rn F64 fmul_rn F32] (X X -> X) Math(MathFn::MulRn), "The product, rounded to nearest even, never fused with \
        a sum.";
    [dmul_rz F64 fmul_rz F32] (X X -> X) Math(MathFn::MulRz), "The product, rounded toward zero.";
    [dmul_rd F64 fmul_rd F32] (X X -> X) Math(MathFn::MulRd), "The product, rounded down.";
    [dmul_ru F64 fmul_ru F32] (X X -> X) Math(MathFn::MulRu), "The product, rounded up.";
    [drcp_rn F64 frcp_rn F32] (X -> X) Prelude("libdevice_rcp_rn"), "1 / x, rounded to nearest even.";
    [drcp_rz F64 frcp_rz F32] (X -> X) Prelude("libdevice_rcp_rz"), "1 / x, rounded toward zero.";
    [drcp_rd F64 frcp_rd F32] (X -> X) Prelude("libdevice_rcp_rd"), "1 / x, rounded down.";
    [drcp_ru F64 frcp_ru F32] (X -> X) Prelude("libdevice_rcp_ru"), "1 / x, rounded up.";
    [dsqrt_rn F64 fsqrt_rn F32] (X -> X) Math(MathFn::SqrtRn), "Square root, rounded to nearest even.";
    [dsqrt_rz F64 fsqrt_rz F32] (X -> X) Math(MathFn::SqrtRz), "Square root, rounded toward zero.";
    [dsqrt_rd F64 fsqrt_rd F32] (X -> X) Math(MathFn::SqrtRd), "Square root, rounded down.";
    [dsqrt_ru F64 fsqrt_ru F32] (X -> X) Math(MathFn::SqrtRu), "Square root, rounded up.";
    [fsub_rn F32] (X X -> X) Prelude("libdevice_sub_rn"), "The difference, rounded to nearest even, never fused.";
    [fsub_rz F32] (X X -> X) Prelude("libdevice_sub_rz"), "The difference, rounded toward zero.";
    [fsub_rd F32] (X X -> X) Prelude("libdevice_sub_rd"), "The difference, rounded down.";
    [fsub_ru F32] (X X -> X) Prelude("libdevice_sub_ru"), "The difference, rounded up.";
    [fma F64 fmaf F32] (X X X -> X) Math(MathFn::Fma), "x * y + z, rounded once.";
    [fma_rn F64 fmaf_rn F32] (X X X -> X) Math(MathFn::FmaRn), "x * y + z, rounded once to nearest even.";
    [fma_rz F64 fmaf_rz F32] (X X X -> X) Math(MathFn::FmaRz), "x * y + z, rounded once toward zero.";
    [fma_rd F64 fmaf_rd F32] (X X X -> X) Math(MathFn::FmaRd), "x * y + z, rounded once down.";
    [fma_ru F64 fmaf_ru F32] (X X X -> X) Math(MathFn::FmaRu), "x * y + z, rounded once up.";
    [frsqrt_rn F32] (X -> X) Prelude("libdevice_rsqrt_rn"), "1 / sqrt(x), rounded to nearest even.";
    [saturatef F32] (X -> X) Prelude("libdevice_saturate"), "Clamped to [0, 1]; NaN becomes 0.";

    [double2float_rn F64] (X -> F32) Prelude("libdevice_same"), "The nearest `float32`, ties to even.";
    [double2float_rz F64] (X -> F32) Math(MathFn::ConvertRz), "A `float32`, rounded toward zero.";
    [double2float_rd F64] (X -> F32) Math(MathFn::ConvertRd), "A `float32`, rounded down.";
    [double2float_ru F64] (X -> F32) Math(MathFn::ConvertRu), "A `float32`, rounded up.";
    [int2double_rn I32 uint2double_rn U32] (X -> F64) Prelude("libdevice_same"), "A `float64`, which is exact.";
    [int2float_rn I32 uint2float_rn U32] (X -> F32) Prelude("libdevice_same"), "The nearest `float32`, ties to even.";
    [int2float_rz I32 uint2float_rz U32] (X -> F32) Math(MathFn::ConvertRz), "A `float32`, rounded toward zero.";
    [int2float_rd I32 uint2float_rd U32] (X -> F32) Math(MathFn::ConvertRd), "A `float32`, rounded down.";
    [int2float_ru I32 uint2float_ru U32] (X -> F32) Math(MathFn::ConvertRu), "A `float32`, rounded up.";
    [ll2double_rn I64 ull2double_rn U64] (X -> F64) Prelude("libdevice_same"), "The nearest `float64`, ties to even.";
    [ll2double_rz I64 ull2double_rz U64] (X -> F64) Math(MathFn::ConvertRz), "A `float64`, rounded toward zero.";
    [ll2double_rd I64 ull2double_rd U64] (X -> F64) Math(MathFn::ConvertRd), "A `float64`, rounded down.";
    [ll2double_ru I64 ull2double_ru U64] (X -> F64) Math(MathFn::ConvertRu), "A `float64`, rounded up.";
    [ll2float_rn I64 ull2float_rn U64] (X -> F32) Prelude("libdevice_same"), "The nearest `float32`, ties to even.";
    [ll2float_rz I64 ull2float_rz U64] (X -> F32) Math(MathFn::ConvertRz), "A `float32`, rounded toward zero.";
    [ll2float_rd I64 ull2float_rd U64] (X -> F32) Math(MathFn::ConvertRd), "A `float32`, rounded down.";
    [ll2float_ru I64 ull2float_ru U64] (X -> F32) Math(MathFn::ConvertRu), "A `float32`, rounded up.";

    [double2int_rn F64 float2int_rn F32] (X -> I32) Prelude("libdevice_to_int_rn"), "The nearest `int32`; saturates.";
    [double2int_rz F64 float2int_rz F32] (X -> I32) Prelude("libdevice_to_int"), "An `int32`, toward zero; saturates.";
    [double2int_rd F64 float2int_rd F32] (X -> I32) Prelude("libdevice_to_int_rd"), "An `int32`, down; saturates.";
    [double2int_ru F64 float2int_ru F32] (X -> I32) Prelude("libdevice_to_int_ru"), "An `int32`, up; saturates.";
    [double2uint_rn F64 float2uint_rn F32] (X -> I32) Prelude("libdevice_to_uint_rn"),
        "The bits of the nearest `uint32`; saturates.";
    [double2uint_rz F64 float2uint_rz F32] (X -> I32) Prelude("libdevice_to_uint"),
        "The bits of a `uint32`, toward zero; saturates.";
    [double2uint_rd F64 float2uint_rd F32] (X -> I32) Prelude("libdevice_to_uint_rd"),
        "The bits of a `uint32`, down; saturates.";
    [double2uint_ru F64 float2uint_ru F32] (X -> I32) Prelude("libdevice_to_uint_ru"),
        "The bits of a `uint32`, up; saturates.";
    [double2ll_rn F64 float2ll_rn F32] (X -> I64) Prelude("libdevice_to_long_rn"), "The nearest `int64`; saturates.";
    [double2ll_rz F64 float2ll_rz F32] (X -> I64) Prelude("libdevice_to_long"), "An `int64`, toward zero; saturates.";
    [double2ll_rd F64 float2ll_rd F32] (X -> I64) Prelude("libdevice_to_long_rd"), "An `int64`, down; saturates.";
    [double2ll_ru F64 float2ll_ru F32] (X -> I64) Prelude("libdevice_to_long_ru"), "An `int64`, up; saturates.";
    [double2ull_rn F64 float2ull_rn F32] (X -> I64) Prelude("libdevice_to_ulong_rn"),
        "The bits of the nearest `uint64`; saturates.";
    [double2ull_rz F64 float2ull_rz F32] (X -> I64) Prelude("libdevice_to_ulong"),
        "The bits of a `uint64`, toward zero; saturates.";
    [double2ull_rd F64 float2ull_rd F32] (X -> I64) Prelude("libdevice_to_ulong_rd"),
        "The bits of a `uint64`, down; saturates.";
    [double2ull_ru F64 float2ull_ru F32] (X -> I64) Prelude("libdevice_to_ulong_ru"),
        "The bits of a `uint64`, up; saturates.";

    [double2hiint F64] (X -> I32) Prelude("libdevice_high"), "The upper 32 bits.";
    [double2loint F64] (X -> I32) Prelude("libdevice_low"), "The lower 32 bits.";
    [double_as_longlong F64] (X -> I64) Prelude("libdevice_as_long"), "The bits.";
    [float_as_int F32] (X -> I32) Prelude("libdevice_as_int"), "The bits.";
    [hiloint2double I32] (X X -> F64) Prelude("libdevice_of_words"), "The number with these upper and lower bits.";
    [int_as_float I32] (X -> F32) Prelude("libdevice_as_float"), "The number with these bits.";
    [longlong_as_double I64] (X -> F64) Prelude("libdevice_as_double"), "The number with these bits.";
    [float2half_rn F32] (X -> I16) Prelude("libdevice_half_bits"), "The bits of the nearest `float16`.";
    [half2float I16] (X -> F32) Prelude("libdevice_of_half_bits"), "The number with the bits of a `float16`.";
    [isfinited F64 finitef F32] (X -> I32) Math(MathFn::Isfinite), "1 for a finite number, else 0.";
    [isinfd F64 isinff F32] (X -> I32) Math(MathFn::Isinf), "1 for an infinity, else 0.";
    [isnand F64 isnanf F32] (X -> I32) Math(MathFn::Isnan), "1 for NaN, else 0.";
    [signbitd F64 signbitf F32] (X -> I32) Prelude("libdevice_signbit"), "1 if the sign is negative, else 0.";

    [abs I32 llabs I64] (X -> X) Prelude("libdevice_abs"), "Absolute value; wraps.";
    [brev I32 brevll I64] (X -> X) Math(MathFn::ReverseBits), "The bits in reverse order.";
    [byte_perm U32] (X X X -> I32) Prelude("libdevice_byte_perm"),
        "Four of eight bytes, each chosen by three bits of the last number. PTX ISA, `prmt`.";
    [clz I32 clzll I64] (X -> I32) Prelude("libdevice_clz"), "The number of leading zero bits.";
    [ffs I32 ffsll I64] (X -> I32) Prelude("libdevice_ffs"), "The position of the lowest set bit, counted from 1; 0 \
        for 0.";
    [popc I32 popcll I64] (X -> I32) Prelude("libdevice_popc"), "The number of set bits.";
    [hadd I32 uhadd U32] (X X -> I32) Prelude("libdevice_hadd"), "The mean, rounded down.";
    [rhadd I32 urhadd U32] (X X -> I32) Prelude("libdevice_rhadd"), "The mean, rounded up.";
    [max I32 umax U32] (X X -> I32) Prelude("libdevice_max"), "The maximum.";
    [llmax I64 ullmax U64] (X X -> I64) Prelude("libdevice_max"), "The maximum.";
    [min I32 umin U32] (X X -> I32) Prelude("libdevice_min"), "The minimum.";
    [llmin I64 ullmin U64] (X X -> I64) Prelude("libdevice_min"), "The minimum.";
    [mul24 I32] (X X -> X) Prelude("libdevice_mul24"), "The lower 32 bits of the product of the lower 24.";
    [umul24 U32] (X X -> I32) Prelude("libdevice_umul24"), "The lower 32 bits of the product of the lower 24.";
    [mulhi I32 umulhi U32] (X X -> I32) Prelude("libdevice_mul_high"), "The upper 32 bits of the product.";
    [mul64hi I64 umul64hi U64] (X X -> I64) Prelude("libdevice_mul_high"), "The upper 64 bits of the product.";
    [sad I32 usad U32] (X X U32 -> I32) Prelude("libdevice_sad"), "abs(x - y) + z; wraps.";
}
