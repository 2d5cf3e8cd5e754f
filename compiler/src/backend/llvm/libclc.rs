//! libclc's functions, and around their calls what they leave wrong of IEEE 754 and C's Annex F.
//!
//! | function | left wrong | put right by |
//! |---|---|---|
//! | `ldexp` | NaN becomes a number; float32 loses subnormals | a select; float64 |
//! | `lgamma` | infinity at minus infinity; float32 loses digits below zero | a select; float64 |
//! | `gamma` | three digits | [`FunctionEmitter::gamma`] |
//! | `pow` in float64 | a product with an exponent beyond 2^100 loses its sign | a clamp |
//! | six odd functions in float64 | +0 at -0 | the argument's sign |
//! | `exp`, `exp2` in float32 | 0 for subnormal results | the square of the exponential of the half |
//! | `erfc` in float32 | 0 for subnormal results | a branch to float64 |
//! | `fmod`, `remainder` in float32 | subnormal divisors count as normal numbers | a branch to float64 |
//! | `fmod`, `remainder` in float64 | NaN where a multiple of the divisor overflows beside the dividend | half of it |

use inkwell::{
    FloatPredicate,
    values::{BasicValue, BasicValueEnum, FloatValue, IntValue},
};

use super::{FunctionEmitter, Result, constant, function::float};
use crate::ir::MathFn;

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// A function of libclc with this name, right for all arguments.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most functions are called directly")]
    pub(super) fn libclc(
        &self,
        function: MathFn,
        name: &str,
        args: &[BasicValueEnum<'ctx>],
        first: FloatValue<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let builder = &self.builder;
        let single = first.get_type() == self.cx.types.context.f32_type();
        let call = |args: &[BasicValueEnum<'ctx>]| float(self.call_library(name, args)?);
        let value = match function {
            MathFn::Gamma | MathFn::Ldexp | MathFn::Lgamma if single => self.in_float64(function, name, args)?,
            MathFn::Gamma => self.gamma(first)?,
            MathFn::Ldexp => {
                let value = call(args)?;
                let nan = builder.build_float_compare(FloatPredicate::UNO, first, first, "")?;
                float(builder.build_select(nan, first, value, "")?)?
            }
            MathFn::Lgamma => {
                let infinity = constant(first, f64::INFINITY);
                let below = constant(first, f64::NEG_INFINITY);
                let below = builder.build_float_compare(FloatPredicate::OEQ, first, below, "")?;
                float(builder.build_select(below, infinity, call(args)?, "")?)?
            }
            MathFn::Pow if !single => match *args {
                [base, exponent] => call(&[base, self.clamped_exponent(float(exponent)?)?.into()])?,
                _ => call(args)?,
            },
            MathFn::Asin | MathFn::Atan | MathFn::Erf | MathFn::Expm1 if !single => {
                // The result has the argument's sign everywhere.
                float(self.call_intrinsic("llvm.copysign", &[call(args)?.into(), first.into()])?)?
            }
            MathFn::Sin | MathFn::Tan if !single => {
                let zero = builder.build_float_compare(FloatPredicate::OEQ, first, constant(first, 0.0), "")?;
                float(builder.build_select(zero, first, call(args)?, "")?)?
            }
            MathFn::Exp | MathFn::Exp2 if single => {
                // Where the result is subnormal; half of the argument is exact.
                let limit = constant(first, if function == MathFn::Exp { -87.0 } else { -126.0 });
                let small = builder.build_float_compare(FloatPredicate::OLT, first, limit, "")?;
                let half = builder.build_float_mul(first, constant(first, 0.5), "")?;
                let value = call(&[builder.build_select(small, half, first, "")?])?;
                let square = builder.build_float_mul(value, value, "")?;
                float(builder.build_select(small, square, value, "")?)?
            }
            MathFn::Fmod | MathFn::Remainder if single => {
                let divisor = float(args.last().copied().unwrap_or(first.as_basic_value_enum()))?;
                let magnitude = float(self.call_intrinsic("llvm.fabs", &[divisor.into()])?)?;
                let least = constant(divisor, f64::from(f32::MIN_POSITIVE));
                let subnormal = builder.build_float_compare(FloatPredicate::OLT, magnitude, least, "")?;
                self.rarely_in_float64(function, name, args, subnormal)?
            }
            MathFn::Fmod | MathFn::Remainder => match *args {
                [x, y] => self.remainder_of_half(function, name, float(x)?, float(y)?)?,
                _ => call(args)?,
            },
            MathFn::Erfc if single => {
                let small = builder.build_float_compare(FloatPredicate::OGT, first, constant(first, 9.0), "")?;
                self.rarely_in_float64(function, name, args, small)?
            }
            _ => call(args)?,
        };
        Ok(value.into())
    }

    /// A function on float32 computed in float64; an integer argument stays as it is.
    fn in_float64(&self, function: MathFn, name: &str, args: &[BasicValueEnum<'ctx>]) -> Result<FloatValue<'ctx>> {
        let (double, single) = (self.cx.types.context.f64_type(), self.cx.types.context.f32_type());
        let mut wide = args.to_vec();
        for arg in &mut wide {
            if let BasicValueEnum::FloatValue(value) = *arg {
                *arg = self.builder.build_float_ext(value, double, "")?.into();
            }
        }
        let value = self.library_math(function, name, &wide)?;
        Ok(self.builder.build_float_trunc(float(value)?, single, "")?)
    }

    /// The exponent of a float64 power within 2^64: the power of every number but 1 and -1 overflows or underflows
    /// there, and all floats of that size, infinity too, are even integers to `pow`. NaN stays.
    fn clamped_exponent(&self, exponent: FloatValue<'ctx>) -> Result<FloatValue<'ctx>> {
        let most = 2_f64.powi(64);
        let mut clamped = exponent;
        for (predicate, limit) in [(FloatPredicate::OGT, most), (FloatPredicate::OLT, -most)] {
            let limit = constant(exponent, limit);
            let beyond = self.builder.build_float_compare(predicate, clamped, limit, "")?;
            clamped = float(self.builder.build_select(beyond, limit, clamped, "")?)?;
        }
        Ok(clamped)
    }

    /// `fmod` or `remainder` in float64: of half the dividend where that is huge, doubled, and less one more divisor.
    ///
    /// All of it is exact: the double of a remainder lies within two divisors, and half of a huge number has no digit
    /// less. The quotient of the half, doubled, is even, so that a tie behind it stays where it is.
    fn remainder_of_half(
        &self,
        function: MathFn,
        name: &str,
        x: FloatValue<'ctx>,
        y: FloatValue<'ctx>,
    ) -> Result<FloatValue<'ctx>> {
        let builder = &self.builder;
        let magnitude = |value: FloatValue<'ctx>| float(self.call_intrinsic("llvm.fabs", &[value.into()])?);
        let huge =
            builder.build_float_compare(FloatPredicate::OGT, magnitude(x)?, constant(x, 2_f64.powi(1022)), "")?;
        let half = builder.build_float_mul(x, constant(x, 0.5), "")?;
        let dividend = builder.build_select(huge, half, x, "")?;
        let rest = float(self.call_library(name, &[dividend, y.into()])?)?;
        let double = builder.build_float_add(rest, rest, "")?;
        let beyond = if function == MathFn::Fmod {
            builder.build_float_compare(FloatPredicate::OGE, magnitude(double)?, magnitude(y)?, "")?
        } else {
            let twice = builder.build_float_add(double, double, "")?;
            builder.build_float_compare(FloatPredicate::OGT, magnitude(twice)?, magnitude(y)?, "")?
        };
        let step = float(self.call_intrinsic("llvm.copysign", &[y.into(), double.into()])?)?;
        let less = builder.build_float_sub(double, step, "")?;
        let less = float(builder.build_select(beyond, less, double, "")?)?;
        let zero = builder.build_float_compare(FloatPredicate::OEQ, less, constant(x, 0.0), "")?;
        let signed = self.call_intrinsic("llvm.copysign", &[less.into(), x.into()])?;
        let less = builder.build_select(zero, signed, less.into(), "")?;
        float(builder.build_select(huge, less, rest.into(), "")?)
    }

    /// A function on float32 that is computed in float64 where `rare` holds.
    fn rarely_in_float64(
        &self,
        function: MathFn,
        name: &str,
        args: &[BasicValueEnum<'ctx>],
        rare: IntValue<'ctx>,
    ) -> Result<FloatValue<'ctx>> {
        let (wide, narrow, end) = (self.block("wide"), self.block("narrow"), self.block("computed"));
        self.builder.build_conditional_branch(rare, wide, narrow)?;
        self.builder.position_at_end(wide);
        let slow = self.in_float64(function, name, args)?;
        let wide = self.current()?;
        self.go(end)?;
        self.builder.position_at_end(narrow);
        let fast = float(self.call_library(name, args)?)?;
        self.go(end)?;
        self.builder.position_at_end(end);
        let value = self.builder.build_phi(fast.get_type(), "")?;
        value.add_incoming(&[(&slow, wide), (&fast, narrow)]);
        float(value.as_basic_value())
    }
}
