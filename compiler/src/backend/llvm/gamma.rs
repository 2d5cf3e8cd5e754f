//! The gamma function in float64. libclc computes it as the exponential of the logarithm, which loses three digits.
//!
//! Lanczos' approximation with Boost's coefficients for 53 bits, arranged as in CPython's `math.gamma`:
//! `gamma(x) = sum(x) / exp(y) * y ** (x - 0.5)` with `y = x + g - 0.5`, and Euler's reflection formula below zero. No
//! operation may be contracted or reordered, so there are no fast-math flags.

use inkwell::{
    FloatPredicate,
    values::{FloatValue, IntValue},
};

use super::{FunctionEmitter, Result, constant, function::float};
use crate::ir::MathFn;

/// Lanczos' g, and g - 0.5.
const G: f64 = 6.024_680_040_776_73;
const G_MINUS_HALF: f64 = 5.524_680_040_776_73;

/// Coefficients of the sum's numerator, constant term first.
#[expect(clippy::excessive_precision, reason = "as published")]
const NUMERATOR: [f64; 13] = [
    23_531_376_880.410_759_688_572_007_674_451_636_754_734_846_804_940,
    42_919_803_642.649_098_768_957_899_047_001_988_850_926_355_848_959,
    35_711_959_237.355_668_049_440_185_451_547_166_705_960_488_635_843,
    17_921_034_426.037_209_699_919_755_754_458_931_112_671_403_265_390,
    6_039_542_586.352_028_005_064_291_644_307_297_921_069_938_842_070_8,
    1_439_720_407.311_721_673_663_223_072_794_912_393_971_548_578_637_2,
    248_874_557.862_054_156_511_460_386_413_229_423_216_321_251_278_01,
    31_426_415.585_400_194_380_614_231_628_318_205_362_874_684_987_640,
    2_876_370.628_935_372_441_225_409_051_620_849_613_599_114_537_876_8,
    186_056.265_395_223_495_040_294_989_716_045_699_282_207_842_363_28,
    8_071.672_002_365_816_210_638_002_902_272_250_613_821_851_632_502_4,
    210.824_277_751_579_345_872_509_733_920_713_362_711_669_695_802_91,
    2.506_628_274_631_000_270_164_908_177_133_837_338_626_431_079_340_8,
];

/// Coefficients of its denominator, `x (x + 1) … (x + 11)`.
const DENOMINATOR: [f64; 13] = [
    0.0,
    39_916_800.0,
    120_543_840.0,
    150_917_976.0,
    105_258_076.0,
    45_995_730.0,
    13_339_535.0,
    2_637_558.0,
    357_423.0,
    32_670.0,
    1_925.0,
    66.0,
    1.0,
];

/// The factorials of 18 to 22. They are exact in float64, and rounding the approximation does not result in them.
const FACTORIALS: [f64; 5] = [
    6_402_373_705_728_000.0,
    121_645_100_408_832_000.0,
    2_432_902_008_176_640_000.0,
    51_090_942_171_709_440_000.0,
    1_124_000_727_777_607_680_000.0,
];

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// `gamma(x)` of a float64: infinity with zero's sign at zero, NaN at negative integers and minus infinity.
    pub(crate) fn gamma(&self, x: FloatValue<'ctx>) -> Result<FloatValue<'ctx>> {
        let builder = &self.builder;
        let number = |value: f64| constant(x, value);
        let add = |a, b| builder.build_float_add(a, b, "");
        let sub = |a, b| builder.build_float_sub(a, b, "");
        let mul = |a, b| builder.build_float_mul(a, b, "");
        let div = |a, b| builder.build_float_div(a, b, "");
        let compare = |predicate, a, b| builder.build_float_compare(predicate, a, b, "");
        let select =
            |c: IntValue<'ctx>, a: FloatValue<'ctx>, b: FloatValue<'ctx>| float(builder.build_select(c, a, b, "")?);
        let call = |name: &str, a: FloatValue<'ctx>| float(self.call_intrinsic(name, &[a.into()])?);
        let math = |function, args: &[FloatValue<'ctx>]| {
            let args: Vec<_> = args.iter().map(|&arg| arg.into()).collect();
            float(self.emit_math(function, &args)?)
        };

        // Beyond 200 the result is known. Up to 200 no operation overflows. NaN propagates.
        let magnitude = call("llvm.fabs", x)?;
        let large = compare(FloatPredicate::OGT, magnitude, number(200.0))?;
        let a = select(large, number(200.5), magnitude)?;

        // The power would magnify the rounding error of y; the factor 1 + z corrects it.
        let y = add(a, number(G_MINUS_HALF))?;
        let a_is_larger = compare(FloatPredicate::OGT, a, number(G_MINUS_HALF))?;
        let larger = select(a_is_larger, a, number(G_MINUS_HALF))?;
        let smaller = select(a_is_larger, number(G_MINUS_HALF), a)?;
        let error = sub(sub(y, larger)?, smaller)?;
        let z = div(mul(error, number(G))?, y)?;

        let horner = |coefficients: &[f64]| -> Result<FloatValue<'ctx>> {
            let mut sum = number(0.0);
            for &coefficient in coefficients.iter().rev() {
                sum = add(mul(sum, a)?, number(coefficient))?;
            }
            Ok(sum)
        };
        let sum = div(horner(&NUMERATOR)?, horner(&DENOMINATOR)?)?;
        let exp = math(MathFn::Exp, &[y])?;
        // The power overflows before the result does, so beyond 140 it is the square of a power with half the exponent.
        let whole = compare(FloatPredicate::OLT, a, number(140.0))?;
        let exponent = select(whole, sub(a, number(0.5))?, sub(mul(a, number(0.5))?, number(0.25))?)?;
        let power = math(MathFn::Pow, &[y, exponent])?;
        let second = select(whole, number(1.0), power)?;

        let positive = div(sum, exp)?;
        let positive = add(positive, mul(z, positive)?)?;
        let positive = mul(mul(positive, power)?, second)?;

        // sin(pi a): the difference to the nearest integer is exact, and the parity of the integer determines the sign.
        let nearest = call("llvm.roundeven", a)?;
        let sine = math(MathFn::Sin, &[mul(sub(a, nearest)?, number(std::f64::consts::PI))?])?;
        let half = mul(nearest, number(0.5))?;
        let even = compare(FloatPredicate::OEQ, call("llvm.floor", half)?, half)?;
        let sine = select(even, sine, builder.build_float_neg(sine, "")?)?;
        let reflected = div(div(number(-std::f64::consts::PI), sine)?, a)?;
        let reflected = div(mul(reflected, exp)?, sum)?;
        let reflected = sub(reflected, mul(z, reflected)?)?;
        let reflected = div(div(reflected, power)?, second)?;

        let is_negative = compare(FloatPredicate::OLT, x, number(0.0))?;
        let mut result = select(is_negative, reflected, positive)?;

        // Integers: up to 18, round to the factorial; the next five come from the table; below zero there are poles.
        let integer = compare(FloatPredicate::OEQ, call("llvm.floor", x)?, x)?;
        let small = compare(FloatPredicate::OLT, a, number(19.0))?;
        let rounded = select(builder.build_and(integer, small, "")?, call("llvm.roundeven", result)?, result)?;
        result = rounded;
        for (index, factorial) in FACTORIALS.into_iter().enumerate() {
            let here = compare(FloatPredicate::OEQ, x, number(19.0 + index as f64))?;
            result = select(here, number(factorial), result)?;
        }
        // 1 / x if x * x is negligible; infinity at zero.
        let tiny = compare(FloatPredicate::OLT, magnitude, number(1e-20))?;
        result = select(tiny, div(number(1.0), x)?, result)?;
        // Far below zero the result underflows. Its sign changes at each pole.
        let below = call("llvm.floor", x)?;
        let half = mul(below, number(0.5))?;
        let even = compare(FloatPredicate::OEQ, call("llvm.floor", half)?, half)?;
        let nothing = select(even, number(0.0), number(-0.0))?;
        let outside = select(is_negative, nothing, number(f64::INFINITY))?;
        result = select(large, outside, result)?;
        let pole = builder.build_and(integer, is_negative, "")?;
        select(pole, number(f64::NAN), result)
    }
}
