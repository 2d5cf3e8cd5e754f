//! Math functions: an LLVM intrinsic if every target has instructions for it, inline code if a few instructions
//! suffice, else a function of a bitcode library, which [`super::driver`] links.

use inkwell::{
    FloatPredicate, IntPredicate,
    attributes::{Attribute, AttributeLoc},
    values::{BasicValueEnum, FloatValue, IntValue},
};

use super::{
    FunctionEmitter, Result,
    function::{float, int},
    internal,
};
use crate::ir::{MathFn, RoundedOp};

/// The bitcode library that provides the math functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    /// The embedded part of libclc.
    Libclc,
    /// NVIDIA's libdevice, which is part of the request.
    Libdevice,
}

impl Library {
    /// The symbol of a function of floats. With `int_last`, the last argument is an `i32`.
    fn symbol(self, name: &str, bits: u32, arity: usize, int_last: bool) -> String {
        match self {
            // Itanium mangling of OpenCL C's overloads; `build.rs` extracts these functions.
            Self::Libclc => {
                let letter = if bits == 32 { "f" } else { "d" };
                let args = if int_last { format!("{}i", letter.repeat(arity - 1)) } else { letter.repeat(arity) };
                format!("_Z{}{name}{args}", name.len())
            }
            Self::Libdevice => format!("__nv_{name}{}", if bits == 32 { "f" } else { "" }),
        }
    }
}

/// The implementation of a math function.
enum Implementation {
    /// An intrinsic overloaded on its type.
    Intrinsic(&'static str),
    /// Inline code.
    Inline,
    /// A library function of this name.
    Library(&'static str),
    /// An NVPTX intrinsic on `float`; on other targets this function.
    Fast(MathFn, &'static str),
    /// Depends on the types of the arguments, which the caller knows.
    Typed,
}

fn way(function: MathFn) -> Implementation {
    match function {
        MathFn::Ceil => Implementation::Intrinsic("llvm.ceil"),
        MathFn::Copysign => Implementation::Intrinsic("llvm.copysign"),
        MathFn::Floor => Implementation::Intrinsic("llvm.floor"),
        MathFn::Fma => Implementation::Intrinsic("llvm.fma"),
        MathFn::RoundEven => Implementation::Intrinsic("llvm.roundeven"),
        MathFn::Sqrt => Implementation::Intrinsic("llvm.sqrt"),
        MathFn::Trunc => Implementation::Intrinsic("llvm.trunc"),
        MathFn::Bits
        | MathFn::OfBits
        | MathFn::CanonicalNan
        | MathFn::FrexpMantissa
        | MathFn::FrexpExponent
        | MathFn::Isfinite
        | MathFn::Isinf
        | MathFn::Isnan
        | MathFn::OfE4M3
        | MathFn::ToE4M3
        | MathFn::ToE5M2 => Implementation::Inline,
        MathFn::FastCos => Implementation::Fast(MathFn::Cos, "cos.approx"),
        MathFn::FastDiv => Implementation::Fast(MathFn::DivRn, "div.approx"),
        MathFn::FastExp2 => Implementation::Fast(MathFn::Exp2, "ex2.approx"),
        MathFn::FastLog2 => Implementation::Fast(MathFn::Log2, "lg2.approx"),
        MathFn::FastSin => Implementation::Fast(MathFn::Sin, "sin.approx"),
        MathFn::FullDiv => Implementation::Fast(MathFn::DivRn, "div.full"),
        MathFn::BytePerm
        | MathFn::FunnelLeft
        | MathFn::FunnelRight
        | MathFn::LeadingZeros
        | MathFn::MulHigh
        | MathFn::Popcount
        | MathFn::ReverseBits
        | MathFn::TrailingZeros
        | MathFn::AddRn
        | MathFn::AddRz
        | MathFn::AddRd
        | MathFn::AddRu
        | MathFn::MulRn
        | MathFn::MulRz
        | MathFn::MulRd
        | MathFn::MulRu
        | MathFn::DivRn
        | MathFn::DivRz
        | MathFn::DivRd
        | MathFn::DivRu
        | MathFn::SqrtRn
        | MathFn::SqrtRz
        | MathFn::SqrtRd
        | MathFn::SqrtRu
        | MathFn::FmaRn
        | MathFn::FmaRz
        | MathFn::FmaRd
        | MathFn::FmaRu
        | MathFn::ConvertRz
        | MathFn::ConvertRd
        | MathFn::ConvertRu => Implementation::Typed,
        MathFn::Gamma => Implementation::Library("tgamma"),
        MathFn::Acos
        | MathFn::Acosh
        | MathFn::Asin
        | MathFn::Asinh
        | MathFn::Atan
        | MathFn::Atan2
        | MathFn::Atanh
        | MathFn::Cbrt
        | MathFn::Cos
        | MathFn::Cosh
        | MathFn::Erf
        | MathFn::Erfc
        | MathFn::Exp
        | MathFn::Exp2
        | MathFn::Expm1
        | MathFn::Fmod
        | MathFn::Hypot
        | MathFn::Ldexp
        | MathFn::Lgamma
        | MathFn::Log
        | MathFn::Log10
        | MathFn::Log1p
        | MathFn::Log2
        | MathFn::Nextafter
        | MathFn::Pow
        | MathFn::Remainder
        | MathFn::Sin
        | MathFn::Sinh
        | MathFn::Tan
        | MathFn::Tanh => Implementation::Library(function.name()),
    }
}

/// Whether a function takes dozens of instructions on a GPU.
pub(super) fn is_long(function: MathFn) -> bool {
    match way(function) {
        Implementation::Library(_) => true,
        Implementation::Intrinsic(name) => name == "llvm.sqrt",
        Implementation::Typed => matches!(function.rounded(), Some((RoundedOp::Div | RoundedOp::Sqrt, _))),
        Implementation::Inline | Implementation::Fast(..) => false,
    }
}

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Emits a math function on its arguments.
    pub(crate) fn emit_math(&self, function: MathFn, args: &[BasicValueEnum<'ctx>]) -> Result<BasicValueEnum<'ctx>> {
        let Some(&first) = args.first() else { return internal(format!("{} of nothing", function.name())) };
        if function == MathFn::Pow
            && let [base, exponent] = args
            && let Some(value) = self.constant_power(float(*base)?, float(*exponent)?)?
        {
            return Ok(value.into());
        }
        if self.cx.options.fastmath
            && let Some(value) = self.hooks.approximate(self, function, args)?
        {
            return Ok(value);
        }
        if function == MathFn::Fmod
            && let [a, b] = args
        {
            return Ok(self.fmod(float(*a)?, float(*b)?)?.into());
        }
        if function.is_of_bytes() {
            return self.of_bytes(function, first);
        }
        match way(function) {
            Implementation::Intrinsic(name) => {
                let value = self.call_intrinsic(name, args)?;
                Ok(self.flagged(float(value)?)?.into())
            }
            Implementation::Inline => self.inline_math(function, float(first)?),
            Implementation::Library(name) => self.library_math(function, name, args),
            // Approximations differ between GPUs, so reproducible code uses the exact function.
            Implementation::Fast(MathFn::DivRn, _) if !self.cx.ptx || self.cx.options.reproducible => match *args {
                [a, b] => Ok(self.builder.build_float_div(float(a)?, float(b)?, "")?.into()),
                _ => internal("a quotient of two numbers"),
            },
            Implementation::Fast(exact, _) if !self.cx.ptx || self.cx.options.reproducible => {
                self.emit_math(exact, args)
            }
            Implementation::Fast(_, name) => {
                let flush = if self.cx.options.fastmath { ".ftz" } else { "" };
                // This intrinsic is overloaded on its type.
                if function == MathFn::FastExp2 {
                    return self.call_intrinsic(&format!("llvm.nvvm.{name}{flush}"), args);
                }
                let ty = if function == MathFn::FullDiv { "" } else { ".f" };
                self.call(self.cx.intrinsic(&format!("llvm.nvvm.{name}{flush}{ty}"), &[])?, args)
            }
            Implementation::Typed => internal(format!("{} without the types of its arguments", function.name())),
        }
    }

    pub(super) fn library_math(
        &self,
        function: MathFn,
        name: &str,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let args = &self.with_clamped_int(args)?;
        match (self.cx.library, args.first()) {
            (_, None) => internal(format!("{name} of nothing")),
            (Library::Libclc, Some(&first)) => self.libclc(function, name, args, float(first)?),
            (Library::Libdevice, Some(_)) => self.call_library(name, args),
        }
    }

    /// Clamps an integer argument at the end to a range beyond which the result does not change. The libraries add it
    /// to an exponent without testing for overflow.
    fn with_clamped_int(&self, args: &[BasicValueEnum<'ctx>]) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let mut args = args.to_vec();
        if let Some(BasicValueEnum::IntValue(exponent)) = args.last_mut() {
            let limit = exponent.get_type().const_int(4096, false);
            let lower = limit.const_neg();
            let clamped = int(self.call_intrinsic("llvm.smin", &[(*exponent).into(), limit.into()])?)?;
            *exponent = int(self.call_intrinsic("llvm.smax", &[clamped.into(), lower.into()])?)?;
        }
        Ok(args)
    }

    /// Calls a function of the math library. The result has the type of the first argument.
    pub(super) fn call_library(&self, name: &str, args: &[BasicValueEnum<'ctx>]) -> Result<BasicValueEnum<'ctx>> {
        let Some(&first) = args.first() else { return internal(format!("{name} of nothing")) };
        let ty = float(first)?.get_type();
        let bits = if ty == self.cx.types.context.f32_type() { 32 } else { 64 };
        let int_last = args.last().is_some_and(|arg| arg.is_int_value());
        let symbol = self.cx.library.symbol(name, bits, args.len(), int_last);
        let params: Vec<_> = args.iter().map(|arg| arg.get_type().into()).collect();
        let function = self.cx.library_function(symbol, ty.fn_type(&params, false))?;
        let args: Vec<_> = args.iter().map(|&arg| arg.into()).collect();
        let call = self.builder.build_call(function, &args, "")?;
        if self.inlines_math.get() {
            let inline = Attribute::get_named_enum_kind_id("alwaysinline");
            call.add_attribute(AttributeLoc::Function, self.cx.types.context.create_enum_attribute(inline, 0));
        }
        let value = call.try_as_basic_value().basic();
        value.map_or_else(|| internal(format!("{name} returns no value")), Ok)
    }

    /// `base ** exponent` without a logarithm, for some constant exponents. The results are at least as accurate as the
    /// library's.
    #[expect(clippy::float_cmp, reason = "a constant is one of these or it is not")]
    fn constant_power(&self, base: FloatValue<'ctx>, exponent: FloatValue<'ctx>) -> Result<Option<FloatValue<'ctx>>> {
        let builder = &self.builder;
        let Some((exponent, _)) = exponent.get_constant() else { return Ok(None) };
        let square = || self.flagged(builder.build_float_mul(base, base, "")?);
        Ok(Some(if exponent == 0.5 {
            // Unlike a square root, the result is +0 at -0, and infinity at minus infinity.
            let root = float(self.emit_math(MathFn::Sqrt, &[base.into()])?)?;
            let root = float(self.call_intrinsic("llvm.fabs", &[root.into()])?)?;
            let below = constant(base, f64::NEG_INFINITY);
            let below = builder.build_float_compare(FloatPredicate::OEQ, base, below, "")?;
            float(builder.build_select(below, constant(base, f64::INFINITY), root, "")?)?
        } else if exponent == 1.0 {
            base
        } else if exponent == 2.0 {
            square()?
        } else if exponent == 3.0 {
            self.flagged(builder.build_float_mul(square()?, base, "")?)?
        } else if exponent == -1.0 {
            self.flagged(builder.build_float_div(constant(base, 1.0), base, "")?)?
        } else {
            return Ok(None);
        }))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other functions are the library's")]
    fn inline_math(&self, function: MathFn, a: FloatValue<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let infinity = constant(a, f64::INFINITY);
        let magnitude = || float(self.call_intrinsic("llvm.fabs", &[a.into()])?);
        let predicate = match function {
            MathFn::Isnan => return Ok(self.builder.build_float_compare(FloatPredicate::UNO, a, a, "")?.into()),
            MathFn::CanonicalNan => return Ok(self.canonical_nan(a)?.into()),
            MathFn::Isinf => FloatPredicate::OEQ,
            MathFn::Isfinite => FloatPredicate::OLT,
            MathFn::FrexpMantissa => return Ok(self.frexp(a)?.0.into()),
            MathFn::FrexpExponent => return Ok(self.frexp(a)?.1.into()),
            other => return internal(format!("{} is not computed in place", other.name())),
        };
        Ok(self.builder.build_float_compare(predicate, magnitude()?, infinity, "")?.into())
    }

    /// A number, in which every NaN becomes the canonical positive one. It tests the bits. If it compared floats, LLVM
    /// would convert the comparison of `sqrt(x)` with itself to `x < 0 ? NaN : sqrt(x)` and simplify that to `sqrt(x)`,
    /// because it does not distinguish NaNs.
    fn canonical_nan(&self, a: FloatValue<'ctx>) -> Result<FloatValue<'ctx>> {
        let (builder, context) = (&self.builder, self.cx.types.context);
        let single = a.get_type() == context.f32_type();
        let (ty, magnitude, infinity, nan) = if single {
            let (infinity, nan) = (f32::INFINITY.to_bits(), f32::NAN.to_bits());
            (context.i32_type(), u64::from(u32::MAX >> 1), u64::from(infinity), u64::from(nan))
        } else {
            (context.i64_type(), u64::MAX >> 1, f64::INFINITY.to_bits(), f64::NAN.to_bits())
        };
        let number = |value: u64| ty.const_int(value, false);
        let bits = int(builder.build_bit_cast(a, ty, "")?)?;
        let magnitude = builder.build_and(bits, number(magnitude), "")?;
        let is_nan = builder.build_int_compare(IntPredicate::SGT, magnitude, number(infinity), "")?;
        let bits = builder.build_select(is_nan, number(nan), bits, "")?;
        float(builder.build_bit_cast(bits, a.get_type(), "")?)
    }

    /// C's `frexp`: mantissa in [0.5, 1) and exponent. Zero, infinity and NaN are returned unchanged, with exponent 0.
    fn frexp(&self, a: FloatValue<'ctx>) -> Result<(FloatValue<'ctx>, IntValue<'ctx>)> {
        let (builder, context) = (&self.builder, self.cx.types.context);
        let single = a.get_type() == context.f32_type();
        // The number of bits of the mantissa and of the exponent, and the exponent's bias less one.
        let (ty, mantissa_bits, exponent_bits, bias) =
            if single { (context.i32_type(), 23, 8, 126) } else { (context.i64_type(), 52, 11, 1022) };
        let exponent_mask = (1_u64 << exponent_bits) - 1;
        let number = |value: u64| ty.const_int(value, false);
        // Compute exponents in 32 bits, a GPU's register size.
        let word = context.i32_type();
        let short = |value: u64| word.const_int(value, false);
        let exponent_of = |bits: IntValue<'ctx>| -> Result<IntValue<'ctx>> {
            let shifted = builder.build_right_shift(bits, number(mantissa_bits), false, "")?;
            let shifted = if single { shifted } else { builder.build_int_truncate(shifted, word, "")? };
            Ok(builder.build_and(shifted, short(exponent_mask), "")?)
        };
        // Scale up subnormals first. For zero, infinity and NaN this result is not used.
        let scale = mantissa_bits + 2;
        let bits = int(builder.build_bit_cast(a, ty, "")?)?;
        let field = exponent_of(bits)?;
        let small = builder.build_int_compare(IntPredicate::EQ, field, short(0), "")?;
        let factor = constant(a, (1_u64 << scale) as f64);
        let scaled = builder.build_float_mul(a, factor, "")?;
        let normal = float(builder.build_select(small, scaled, a, "")?)?;
        let bits = int(builder.build_bit_cast(normal, ty, "")?)?;
        let correction = int(builder.build_select(small, short(bias + scale), short(bias), "")?)?;
        let exponent = builder.build_int_sub(exponent_of(bits)?, correction, "")?;
        let kept = builder.build_and(bits, number(!(exponent_mask << mantissa_bits)), "")?;
        let halved = builder.build_or(kept, number(bias << mantissa_bits), "")?;
        let mantissa = float(builder.build_bit_cast(halved, a.get_type(), "")?)?;

        let zero = builder.build_float_compare(FloatPredicate::OEQ, a, constant(a, 0.0), "")?;
        let special = builder.build_int_compare(IntPredicate::EQ, field, short(exponent_mask), "")?;
        let special = builder.build_or(special, zero, "")?;
        let mantissa = float(builder.build_select(special, a, mantissa, "")?)?;
        let exponent = int(builder.build_select(special, short(0), exponent, "")?)?;
        Ok((mantissa, exponent))
    }
}

/// A constant of a value's type.
pub(crate) fn constant(like: FloatValue<'_>, value: f64) -> FloatValue<'_> {
    like.get_type().const_float(value)
}
