//! libclc's functions, with corrections of results that violate IEEE 754 or C's Annex F.
//!
//! | function | wrong result of libclc | corrected by |
//! |---|---|---|
//! | `ldexp` | a number for NaN; float32 loses subnormals | a select; float64 |
//! | `lgamma` | not infinity at minus infinity; float32 loses digits below zero | a select; float64 |
//! | `gamma` | three digits are lost | [`FunctionEmitter::gamma`] |
//! | `pow` in float64 | the sign is lost if the exponent exceeds 2^100 | clamping the exponent |
//! | six odd functions in float64 | +0 at -0 | copying the argument's sign |
//! | `exp`, `exp2` in float32 | 0 for subnormal results | the square of the function of half the argument |
//! | `erfc` in float32 | 0 for subnormal results | a branch to float64 |
//! | `fmod`, `remainder` in float32 | subnormal divisors count as normal numbers | a branch to float64 |
//! | `fmod`, `remainder` in float64 | NaN if a divisor multiple near the dividend overflows | half the dividend |

use inkwell::{
    FloatPredicate,
    values::{BasicValue, BasicValueEnum, FloatValue, IntValue},
};

use super::{FunctionEmitter, Result, constant, function::float};
use crate::ir::MathFn;

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Calls a function of libclc and corrects the result.
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
                // The result always has the argument's sign.
                float(self.call_intrinsic("llvm.copysign", &[call(args)?.into(), first.into()])?)?
            }
            MathFn::Sin | MathFn::Tan if !single => {
                let zero = builder.build_float_compare(FloatPredicate::OEQ, first, constant(first, 0.0), "")?;
                float(builder.build_select(zero, first, call(args)?, "")?)?
            }
            MathFn::Exp | MathFn::Exp2 if single => {
                // Below the limit the result is subnormal. Halving the argument is exact.
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

    /// A float32 function, computed in float64. An integer argument is not changed.
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

    /// Clamps the exponent of a float64 power to 2^64 in magnitude. With such an exponent, all bases but 1 and -1
    /// overflow or underflow. `pow` treats all floats of this size, also infinity, as even integers. NaN is preserved.
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

    /// `fmod` or `remainder` in float64. For a huge dividend, it computes the remainder of half the dividend, doubles
    /// it, and subtracts the divisor if needed.
    ///
    /// All operations are exact: twice a remainder is less than two divisors, and halving a huge number loses no digit.
    /// Twice the quotient of the half is even, so `remainder` rounds ties the same way.
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

    /// A float32 function, which is computed in float64 if `rare` is true.
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
