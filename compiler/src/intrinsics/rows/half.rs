//! Rows of `cuda.fp16` and `cuda.bf16`: CUDA's functions of 16-bit floats, with and without the leading underscores
//! that CUDA and Numba use for some.

use weft_artifact::Number;

use super::{
    super::{Intrinsic, Lowering, Signature},
    tables::{arg, gives, row},
};
use crate::ir::MathFn;

/// The number type of a name; `H` is the module's own type.
macro_rules! number {
    ($half:ident H) => {
        Number::$half
    };
    ($half:ident $other:ident) => {
        Number::$other
    };
}

/// The only overload of a row.
macro_rules! signature {
    ($half:ident ($($from:ident)+ -> $to:ident)) => {
        &[Signature { args: &[$(arg(number!($half $from))),+], returns: gives(number!($half $to)) }]
    };
}

/// The rows of both modules: the names in each, the types, the lowering, the documentation.
macro_rules! halves {
    ($([$($fp16:literal)*] [$($bf16:literal)*] $signature:tt $lowering:expr, $doc:literal;)+) => {
        pub(super) const FP16: &[Intrinsic] = &[
            $($(row(concat!("weft.cuda.fp16.", $fp16), signature!(F16 $signature), $lowering, $doc),)*)+
        ];
        pub(super) const BF16: &[Intrinsic] = &[
            $($(row(concat!("weft.cuda.bf16.", $bf16), signature!(BF16 $signature), $lowering, $doc),)*)+
        ];
    };
}

halves! {
    ["hadd" "__hadd"] ["hadd"] (H H -> H) Lowering::Prelude("half_add"), "The sum, rounded to nearest even.";
    ["hsub" "__hsub"] ["hsub"] (H H -> H) Lowering::Prelude("half_sub"), "The difference, rounded to nearest even.";
    ["hmul" "__hmul"] ["hmul"] (H H -> H) Lowering::Prelude("half_mul"), "The product, rounded to nearest even.";
    ["hdiv" "__hdiv"] ["hdiv"] (H H -> H) Lowering::Prelude("half_div"), "The quotient, rounded to nearest even.";
    ["hfma" "__hfma"] ["hfma"] (H H H -> H) Lowering::Math(MathFn::Fma), "a * b + c, rounded once.";
    ["hneg" "__hneg"] ["hneg"] (H -> H) Lowering::Prelude("half_neg"), "The number with the opposite sign.";
    ["habs" "__habs"] ["habs"] (H -> H) Lowering::Prelude("half_abs"), "Absolute value.";
    ["__hadd_rn"] ["hadd_rn"] (H H -> H) Lowering::Prelude("half_add_rn"), "Like `hadd`, never fused with a product.";
    ["__hsub_rn"] ["hsub_rn"] (H H -> H) Lowering::Prelude("half_sub_rn"), "Like `hsub`, never fused with a product.";
    ["__hmul_rn"] ["hmul_rn"] (H H -> H) Lowering::Prelude("half_mul_rn"), "Like `hmul`, never fused with a sum.";
    ["__hadd_sat"] ["hadd_sat"] (H H -> H)
        Lowering::Prelude("half_add_sat"), "The sum, clamped to [0, 1]; NaN becomes 0.";
    ["__hsub_sat"] ["hsub_sat"] (H H -> H)
        Lowering::Prelude("half_sub_sat"), "The difference, clamped to [0, 1]; NaN becomes 0.";
    ["__hmul_sat"] ["hmul_sat"] (H H -> H)
        Lowering::Prelude("half_mul_sat"), "The product, clamped to [0, 1]; NaN becomes 0.";
    ["__hfma_sat"] ["hfma_sat"] (H H H -> H)
        Lowering::Prelude("half_fma_sat"), "a * b + c, rounded once and clamped to [0, 1]; NaN becomes 0.";
    ["__hfma_relu"] ["hfma_relu"] (H H H -> H)
        Lowering::Prelude("half_fma_relu"), "a * b + c, rounded once, with negative results set to 0; preserves NaN.";
    ["heq" "__heq"] ["heq"] (H H -> BOOL) Lowering::Prelude("half_eq"), "Whether a equals b; False if either is NaN.";
    ["hlt" "__hlt"] ["hlt"] (H H -> BOOL) Lowering::Prelude("half_lt"), "Whether a is less than b; False if either is \
        NaN.";
    ["hle" "__hle"] ["hle"] (H H -> BOOL)
        Lowering::Prelude("half_le"), "Whether a is less than or equal to b; False if either is NaN.";
    ["hgt" "__hgt"] ["hgt"] (H H -> BOOL) Lowering::Prelude("half_gt"), "Whether a is greater than b; False if either \
        is NaN.";
    ["hge" "__hge"] ["hge"] (H H -> BOOL)
        Lowering::Prelude("half_ge"), "Whether a is greater than or equal to b; False if either is NaN.";
    ["hne" "__hne"] ["hne"] (H H -> BOOL)
        Lowering::Prelude("half_ne"), "Whether a differs from b; False if either is NaN.";
    ["__hequ"] ["hequ"] (H H -> BOOL) Lowering::Prelude("half_equ"), "Like `heq`, but True if either is NaN.";
    ["__hneu"] ["hneu"] (H H -> BOOL) Lowering::Prelude("half_neu"), "Like `hne`, but True if either is NaN.";
    ["__hltu"] ["hltu"] (H H -> BOOL) Lowering::Prelude("half_ltu"), "Like `hlt`, but True if either is NaN.";
    ["__hleu"] ["hleu"] (H H -> BOOL) Lowering::Prelude("half_leu"), "Like `hle`, but True if either is NaN.";
    ["__hgtu"] ["hgtu"] (H H -> BOOL) Lowering::Prelude("half_gtu"), "Like `hgt`, but True if either is NaN.";
    ["__hgeu"] ["hgeu"] (H H -> BOOL) Lowering::Prelude("half_geu"), "Like `hge`, but True if either is NaN.";
    ["hmax" "__hmax"] ["hmax"] (H H -> H)
        Lowering::Prelude("half_max"), "The maximum; ignores a NaN, -0 is less than +0.";
    ["hmin" "__hmin"] ["hmin"] (H H -> H)
        Lowering::Prelude("half_min"), "The minimum; ignores a NaN, -0 is less than +0.";
    ["__hmax_nan"] ["hmax_nan"] (H H -> H) Lowering::Prelude("half_max_nan"), "The maximum; NaN if either is.";
    ["__hmin_nan"] ["hmin_nan"] (H H -> H) Lowering::Prelude("half_min_nan"), "The minimum; NaN if either is.";
    ["__hisnan"] ["hisnan"] (H -> BOOL) Lowering::Math(MathFn::Isnan), "Whether it is NaN.";
    ["__hisinf"] ["hisinf"] (H -> I32)
        Lowering::Prelude("half_isinf"), "1 for infinity, -1 for minus infinity, else 0.";
    ["hsin"] ["hsin"] (H -> H) Lowering::Math(MathFn::Sin), "Sine of radians.";
    ["hcos"] ["hcos"] (H -> H) Lowering::Math(MathFn::Cos), "Cosine of radians.";
    ["hlog"] ["hlog"] (H -> H) Lowering::Math(MathFn::Log), "Natural logarithm.";
    ["hlog2"] ["hlog2"] (H -> H) Lowering::Math(MathFn::Log2), "Logarithm to base 2.";
    ["hlog10"] ["hlog10"] (H -> H) Lowering::Math(MathFn::Log10), "Logarithm to base 10.";
    ["hexp"] ["hexp"] (H -> H) Lowering::Math(MathFn::Exp), "e to the power x.";
    ["hexp2"] ["hexp2"] (H -> H) Lowering::Math(MathFn::Exp2), "2 to the power x.";
    ["htanh"] ["htanh"] (H -> H) Lowering::Math(MathFn::Tanh), "Hyperbolic tangent.";
    ["htanh_approx"] ["htanh_approx"] (H -> H)
        Lowering::Math(MathFn::Tanh), "Hyperbolic tangent, as accurate as `htanh`.";
    ["hsqrt"] ["hsqrt"] (H -> H) Lowering::Math(MathFn::Sqrt), "Square root, rounded to nearest even.";
    ["hfloor"] ["hfloor"] (H -> H) Lowering::Math(MathFn::Floor), "Rounds down.";
    ["hceil"] ["hceil"] (H -> H) Lowering::Math(MathFn::Ceil), "Rounds up.";
    ["htrunc"] ["htrunc"] (H -> H) Lowering::Math(MathFn::Trunc), "Rounds to zero.";
    ["hrint"] ["hrint"] (H -> H) Lowering::Math(MathFn::RoundEven), "Rounds to the nearest integer, ties to even.";
    ["hexp10"] ["hexp10"] (H -> H) Lowering::Prelude("half_exp10"), "10 to the power x.";
    ["hrsqrt"] ["hrsqrt"] (H -> H) Lowering::Prelude("half_rsqrt"), "1 / sqrt(x).";
    ["hrcp"] ["hrcp"] (H -> H) Lowering::Prelude("half_rcp"), "1 / x, rounded to nearest even.";
    ["__half2float"] ["bfloat162float" "bfloat16_to_float32"] (H -> F32)
        Lowering::Prelude("half_same"), "The number as a `float32`, exactly.";
    ["__double2half"] ["double2bfloat16" "float64_to_bfloat16"] (F64 -> H)
        Lowering::Prelude("half_same"), "The nearest number, ties to even, rounded once.";
    ["__float2half" "__float2half_rn"]
    ["float2bfloat16" "float2bfloat16_rn" "float32_to_bfloat16" "float32_to_bfloat16_rn"]
    (F32 -> H) Lowering::Prelude("half_same"), "The nearest number, ties to even.";
    ["__short2half_rn"] ["short2bfloat16_rn" "int16_to_bfloat16_rn"] (I16 -> H)
        Lowering::Prelude("half_same"), "The nearest number, ties to even, rounded once.";
    ["__ushort2half_rn"] ["ushort2bfloat16_rn" "uint16_to_bfloat16_rn"] (U16 -> H)
        Lowering::Prelude("half_same"), "The nearest number, ties to even, rounded once.";
    ["__int2half_rn"] ["int2bfloat16_rn" "int32_to_bfloat16_rn"] (I32 -> H)
        Lowering::Prelude("half_same"), "The nearest number, ties to even, rounded once.";
    ["__uint2half_rn"] ["uint2bfloat16_rn" "uint32_to_bfloat16_rn"] (U32 -> H)
        Lowering::Prelude("half_same"), "The nearest number, ties to even, rounded once.";
    ["__ll2half_rn"] ["ll2bfloat16_rn" "int64_to_bfloat16_rn"] (I64 -> H)
        Lowering::Prelude("half_same"), "The nearest number, ties to even, rounded once.";
    ["__ull2half_rn"] ["ull2bfloat16_rn" "uint64_to_bfloat16_rn"] (U64 -> H)
        Lowering::Prelude("half_same"), "The nearest number, ties to even, rounded once.";
    ["__float2half_rz"] [] (F32 -> H) Lowering::Prelude("float16_rz"), "Rounded to zero.";
    [] ["float2bfloat16_rz" "float32_to_bfloat16_rz"] (F32 -> H) Lowering::Prelude("bfloat16_rz"), "Rounded to zero.";
    ["__float2half_rd"] [] (F32 -> H) Lowering::Prelude("float16_rd"), "Rounded down.";
    [] ["float2bfloat16_rd" "float32_to_bfloat16_rd"] (F32 -> H) Lowering::Prelude("bfloat16_rd"), "Rounded down.";
    ["__float2half_ru"] [] (F32 -> H) Lowering::Prelude("float16_ru"), "Rounded up.";
    [] ["float2bfloat16_ru" "float32_to_bfloat16_ru"] (F32 -> H) Lowering::Prelude("bfloat16_ru"), "Rounded up.";
    ["__short2half_rz"] [] (I16 -> H) Lowering::Prelude("float16_rz"), "Rounded to zero.";
    [] ["short2bfloat16_rz" "int16_to_bfloat16_rz"] (I16 -> H) Lowering::Prelude("bfloat16_rz"), "Rounded to zero.";
    ["__short2half_rd"] [] (I16 -> H) Lowering::Prelude("float16_rd"), "Rounded down.";
    [] ["short2bfloat16_rd" "int16_to_bfloat16_rd"] (I16 -> H) Lowering::Prelude("bfloat16_rd"), "Rounded down.";
    ["__short2half_ru"] [] (I16 -> H) Lowering::Prelude("float16_ru"), "Rounded up.";
    [] ["short2bfloat16_ru" "int16_to_bfloat16_ru"] (I16 -> H) Lowering::Prelude("bfloat16_ru"), "Rounded up.";
    ["__ushort2half_rz"] [] (U16 -> H) Lowering::Prelude("float16_rz"), "Rounded to zero.";
    [] ["ushort2bfloat16_rz" "uint16_to_bfloat16_rz"] (U16 -> H) Lowering::Prelude("bfloat16_rz"), "Rounded to zero.";
    ["__ushort2half_rd"] [] (U16 -> H) Lowering::Prelude("float16_rd"), "Rounded down.";
    [] ["ushort2bfloat16_rd" "uint16_to_bfloat16_rd"] (U16 -> H) Lowering::Prelude("bfloat16_rd"), "Rounded down.";
    ["__ushort2half_ru"] [] (U16 -> H) Lowering::Prelude("float16_ru"), "Rounded up.";
    [] ["ushort2bfloat16_ru" "uint16_to_bfloat16_ru"] (U16 -> H) Lowering::Prelude("bfloat16_ru"), "Rounded up.";
    ["__int2half_rz"] [] (I32 -> H) Lowering::Prelude("float16_rz"), "Rounded to zero.";
    [] ["int2bfloat16_rz" "int32_to_bfloat16_rz"] (I32 -> H) Lowering::Prelude("bfloat16_rz"), "Rounded to zero.";
    ["__int2half_rd"] [] (I32 -> H) Lowering::Prelude("float16_rd"), "Rounded down.";
    [] ["int2bfloat16_rd" "int32_to_bfloat16_rd"] (I32 -> H) Lowering::Prelude("bfloat16_rd"), "Rounded down.";
    ["__int2half_ru"] [] (I32 -> H) Lowering::Prelude("float16_ru"), "Rounded up.";
    [] ["int2bfloat16_ru" "int32_to_bfloat16_ru"] (I32 -> H) Lowering::Prelude("bfloat16_ru"), "Rounded up.";
    ["__uint2half_rz"] [] (U32 -> H) Lowering::Prelude("float16_rz"), "Rounded to zero.";
    [] ["uint2bfloat16_rz" "uint32_to_bfloat16_rz"] (U32 -> H) Lowering::Prelude("bfloat16_rz"), "Rounded to zero.";
    ["__uint2half_rd"] [] (U32 -> H) Lowering::Prelude("float16_rd"), "Rounded down.";
    [] ["uint2bfloat16_rd" "uint32_to_bfloat16_rd"] (U32 -> H) Lowering::Prelude("bfloat16_rd"), "Rounded down.";
    ["__uint2half_ru"] [] (U32 -> H) Lowering::Prelude("float16_ru"), "Rounded up.";
    [] ["uint2bfloat16_ru" "uint32_to_bfloat16_ru"] (U32 -> H) Lowering::Prelude("bfloat16_ru"), "Rounded up.";
    ["__ll2half_rz"] [] (I64 -> H) Lowering::Prelude("float16_rz"), "Rounded to zero.";
    [] ["ll2bfloat16_rz" "int64_to_bfloat16_rz"] (I64 -> H) Lowering::Prelude("bfloat16_rz"), "Rounded to zero.";
    ["__ll2half_rd"] [] (I64 -> H) Lowering::Prelude("float16_rd"), "Rounded down.";
    [] ["ll2bfloat16_rd" "int64_to_bfloat16_rd"] (I64 -> H) Lowering::Prelude("bfloat16_rd"), "Rounded down.";
    ["__ll2half_ru"] [] (I64 -> H) Lowering::Prelude("float16_ru"), "Rounded up.";
    [] ["ll2bfloat16_ru" "int64_to_bfloat16_ru"] (I64 -> H) Lowering::Prelude("bfloat16_ru"), "Rounded up.";
    ["__ull2half_rz"] [] (U64 -> H) Lowering::Prelude("float16_rz"), "Rounded to zero.";
    [] ["ull2bfloat16_rz" "uint64_to_bfloat16_rz"] (U64 -> H) Lowering::Prelude("bfloat16_rz"), "Rounded to zero.";
    ["__ull2half_rd"] [] (U64 -> H) Lowering::Prelude("float16_rd"), "Rounded down.";
    [] ["ull2bfloat16_rd" "uint64_to_bfloat16_rd"] (U64 -> H) Lowering::Prelude("bfloat16_rd"), "Rounded down.";
    ["__ull2half_ru"] [] (U64 -> H) Lowering::Prelude("float16_ru"), "Rounded up.";
    [] ["ull2bfloat16_ru" "uint64_to_bfloat16_ru"] (U64 -> H) Lowering::Prelude("bfloat16_ru"), "Rounded up.";
    ["__half2short_rn"] ["bfloat162short_rn" "bfloat16_to_int16_rn"] (H -> I16)
        Lowering::Prelude("half_short_rn"), "Rounded to nearest even; saturates; NaN becomes 0.";
    ["__half2short_rz"] ["bfloat162short_rz" "bfloat16_to_int16_rz"] (H -> I16)
        Lowering::Prelude("half_short_rz"), "Rounded to zero; saturates; NaN becomes 0.";
    ["__half2short_rd"] ["bfloat162short_rd" "bfloat16_to_int16_rd"] (H -> I16)
        Lowering::Prelude("half_short_rd"), "Rounded down; saturates; NaN becomes 0.";
    ["__half2short_ru"] ["bfloat162short_ru" "bfloat16_to_int16_ru"] (H -> I16)
        Lowering::Prelude("half_short_ru"), "Rounded up; saturates; NaN becomes 0.";
    ["__half2ushort_rn"] ["bfloat162ushort_rn" "bfloat16_to_uint16_rn"] (H -> U16)
        Lowering::Prelude("half_ushort_rn"), "Rounded to nearest even; saturates; NaN becomes 0.";
    ["__half2ushort_rz"] ["bfloat162ushort_rz" "bfloat16_to_uint16_rz"] (H -> U16)
        Lowering::Prelude("half_ushort_rz"), "Rounded to zero; saturates; NaN becomes 0.";
    ["__half2ushort_rd"] ["bfloat162ushort_rd" "bfloat16_to_uint16_rd"] (H -> U16)
        Lowering::Prelude("half_ushort_rd"), "Rounded down; saturates; NaN becomes 0.";
    ["__half2ushort_ru"] ["bfloat162ushort_ru" "bfloat16_to_uint16_ru"] (H -> U16)
        Lowering::Prelude("half_ushort_ru"), "Rounded up; saturates; NaN becomes 0.";
    ["__half2int_rn"] ["bfloat162int_rn" "bfloat16_to_int32_rn"] (H -> I32)
        Lowering::Prelude("half_int_rn"), "Rounded to nearest even; saturates; NaN becomes 0.";
    ["__half2int_rz"] ["bfloat162int_rz" "bfloat16_to_int32_rz"] (H -> I32)
        Lowering::Prelude("half_int_rz"), "Rounded to zero; saturates; NaN becomes 0.";
    ["__half2int_rd"] ["bfloat162int_rd" "bfloat16_to_int32_rd"] (H -> I32)
        Lowering::Prelude("half_int_rd"), "Rounded down; saturates; NaN becomes 0.";
    ["__half2int_ru"] ["bfloat162int_ru" "bfloat16_to_int32_ru"] (H -> I32)
        Lowering::Prelude("half_int_ru"), "Rounded up; saturates; NaN becomes 0.";
    ["__half2uint_rn"] ["bfloat162uint_rn" "bfloat16_to_uint32_rn"] (H -> U32)
        Lowering::Prelude("half_int_rn"), "Rounded to nearest even; saturates; NaN becomes 0.";
    ["__half2uint_rz"] ["bfloat162uint_rz" "bfloat16_to_uint32_rz"] (H -> U32)
        Lowering::Prelude("half_int_rz"), "Rounded to zero; saturates; NaN becomes 0.";
    ["__half2uint_rd"] ["bfloat162uint_rd" "bfloat16_to_uint32_rd"] (H -> U32)
        Lowering::Prelude("half_int_rd"), "Rounded down; saturates; NaN becomes 0.";
    ["__half2uint_ru"] ["bfloat162uint_ru" "bfloat16_to_uint32_ru"] (H -> U32)
        Lowering::Prelude("half_int_ru"), "Rounded up; saturates; NaN becomes 0.";
    ["__half2ll_rn"] ["bfloat162ll_rn" "bfloat16_to_int64_rn"] (H -> I64)
        Lowering::Prelude("half_ll_rn"), "Rounded to nearest even; saturates; NaN becomes the smallest integer.";
    ["__half2ll_rz"] ["bfloat162ll_rz" "bfloat16_to_int64_rz"] (H -> I64)
        Lowering::Prelude("half_ll_rz"), "Rounded to zero; saturates; NaN becomes the smallest integer.";
    ["__half2ll_rd"] ["bfloat162ll_rd" "bfloat16_to_int64_rd"] (H -> I64)
        Lowering::Prelude("half_ll_rd"), "Rounded down; saturates; NaN becomes the smallest integer.";
    ["__half2ll_ru"] ["bfloat162ll_ru" "bfloat16_to_int64_ru"] (H -> I64)
        Lowering::Prelude("half_ll_ru"), "Rounded up; saturates; NaN becomes the smallest integer.";
    ["__half2ull_rn"] ["bfloat162ull_rn" "bfloat16_to_uint64_rn"] (H -> U64)
        Lowering::Prelude("half_ull_rn"), "Rounded to nearest even; saturates; NaN becomes 2^63.";
    ["__half2ull_rz"] ["bfloat162ull_rz" "bfloat16_to_uint64_rz"] (H -> U64)
        Lowering::Prelude("half_ull_rz"), "Rounded to zero; saturates; NaN becomes 2^63.";
    ["__half2ull_rd"] ["bfloat162ull_rd" "bfloat16_to_uint64_rd"] (H -> U64)
        Lowering::Prelude("half_ull_rd"), "Rounded down; saturates; NaN becomes 2^63.";
    ["__half2ull_ru"] ["bfloat162ull_ru" "bfloat16_to_uint64_ru"] (H -> U64)
        Lowering::Prelude("half_ull_ru"), "Rounded up; saturates; NaN becomes 2^63.";
    ["__half2char_rz"] ["bfloat162char_rz" "bfloat16_to_int8_rz"] (H -> I8)
        Lowering::Prelude("half_char_rz"), "Rounded to zero; saturates; NaN becomes 0.";
    ["__half2uchar_rz"] ["bfloat162uchar_rz" "bfloat16_to_uint8_rz"] (H -> U8)
        Lowering::Prelude("half_uchar_rz"), "Rounded to zero; saturates; NaN becomes 0.";
    ["__half_as_ushort"] ["bfloat16_as_ushort" "bfloat16_as_uint16"] (H -> U16)
        Lowering::Math(MathFn::Bits), "The bits.";
    ["__half_as_short"] [] (H -> I16) Lowering::Prelude("float16_as_short"), "The bits.";
    [] ["bfloat16_as_short" "bfloat16_as_int16"] (H -> I16) Lowering::Prelude("bfloat16_as_short"), "The bits.";
    ["__ushort_as_half"] ["ushort_as_bfloat16" "uint16_as_bfloat16"] (U16 -> H)
        Lowering::Math(MathFn::OfBits), "The number with these bits.";
    ["__short_as_half"] [] (I16 -> H) Lowering::Prelude("short_as_float16"), "The number with these bits.";
    [] ["short_as_bfloat16" "int16_as_bfloat16"] (I16 -> H)
        Lowering::Prelude("short_as_bfloat16"), "The number with these bits.";
}
