//! Arithmetic with a given rounding mode, and functions of integers.
//!
//! PTX has an instruction for each rounding mode. CPUs have a register with the rounding mode of all instructions. On
//! the host, a separate function sets the register, computes and resets the register. The function is never inlined,
//! and is the only code for which LLVM must not assume rounding to nearest (`strictfp`). Hence results are exactly
//! those of the hardware.

use inkwell::{
    attributes::{Attribute, AttributeLoc},
    module::Linkage,
    types::BasicTypeEnum,
    values::{BasicMetadataValueEnum, BasicValueEnum, FunctionValue},
};
use weft_artifact::Scalar;

use super::{
    FunctionEmitter, Result,
    function::{float, int},
    internal,
};
use crate::ir::{MathFn, RoundedOp, Rounding, Type};

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Computes `op` on numbers of the type `from`.
    pub(super) fn rounded(
        &self,
        op: RoundedOp,
        rounding: Rounding,
        from: Scalar,
        to: Type,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let Some(to) = to.scalar() else { return internal("a rounded pointer") };
        if self.cx.ptx {
            let name = format!("llvm.nvvm.{}.{}{}", ptx_name(op, from, to), ptx_suffix(rounding), kind(op, to));
            return self.call(self.cx.intrinsic(&name, &[])?, args);
        }
        let builder = &self.builder;
        match (op, rounding, args) {
            // Without fast-math flags, so that LLVM does not fuse the operation.
            (RoundedOp::Add, Rounding::Nearest, [a, b]) => {
                Ok(builder.build_float_add(float(*a)?, float(*b)?, "")?.into())
            }
            (RoundedOp::Mul, Rounding::Nearest, [a, b]) => {
                Ok(builder.build_float_mul(float(*a)?, float(*b)?, "")?.into())
            }
            (RoundedOp::Div, Rounding::Nearest, [a, b]) => {
                Ok(builder.build_float_div(float(*a)?, float(*b)?, "")?.into())
            }
            (RoundedOp::Sqrt, Rounding::Nearest, _) => self.call_intrinsic("llvm.sqrt", args),
            (RoundedOp::Fma, Rounding::Nearest, _) => self.call_intrinsic("llvm.fma", args),
            (RoundedOp::Convert, _, [value]) if from.is_int() => {
                let wide = self.cx.types.context.i64_type();
                let value = int(*value)?;
                let signed = if from.is_signed_int() {
                    builder.build_int_s_extend_or_bit_cast(value, wide, "")?
                } else {
                    builder.build_int_z_extend_or_bit_cast(value, wide, "")?
                };
                let convert = self.host_function(op, rounding, &[wide.into()], to)?;
                let plain = float(self.call(convert, &[signed.into()])?)?;
                if from != Scalar::U64 {
                    return Ok(plain.into());
                }
                // Half of a large unsigned number fits a signed one. The lost bit is merged into the last bit, which
                // preserves the rounding.
                let one = wide.const_int(1, false);
                let half = builder.build_right_shift(value, one, false, "")?;
                let half = builder.build_or(half, builder.build_and(value, one, "")?, "")?;
                let half = float(self.call(convert, &[half.into()])?)?;
                let double = builder.build_float_add(half, half, "")?;
                let small = inkwell::IntPredicate::SGE;
                let small = builder.build_int_compare(small, value, wide.const_zero(), "")?;
                Ok(builder.build_select(small, plain, double, "")?.into_float_value().into())
            }
            _ => {
                let types: Vec<_> = args.iter().map(BasicValueEnum::get_type).collect();
                self.call(self.host_function(op, rounding, &types, to)?, args)
            }
        }
    }

    /// The host function for a rounding mode. The first use emits it.
    fn host_function(
        &self,
        op: RoundedOp,
        rounding: Rounding,
        args: &[BasicTypeEnum<'ctx>],
        to: Scalar,
    ) -> Result<FunctionValue<'ctx>> {
        let (cx, context) = (self.cx, self.cx.types.context);
        let result = cx.types.float(to)?;
        let from_int = matches!(args, [BasicTypeEnum::IntType(_)]);
        let (name, number) = match (op, from_int) {
            (RoundedOp::Add, _) => ("add", "fadd"),
            (RoundedOp::Mul, _) => ("mul", "fmul"),
            (RoundedOp::Div, _) => ("div", "fdiv"),
            (RoundedOp::Sqrt, _) => ("sqrt", "sqrt"),
            (RoundedOp::Fma, _) => ("fma", "fma"),
            (RoundedOp::Convert, true) => ("of_int", "sitofp"),
            (RoundedOp::Convert, false) => ("narrow", "fptrunc"),
        };
        let symbol = format!("weft${name}.{}.{to}", ptx_suffix(rounding));
        if let Some(known) = cx.module.get_function(&symbol) {
            return Ok(known);
        }
        let params: Vec<_> = args.iter().map(|&ty| ty.into()).collect();
        let function = cx.module.add_function(&symbol, result.fn_type(&params, false), Some(Linkage::Internal));
        for attribute in ["noinline", "strictfp", "nounwind", "willreturn"] {
            cx.attribute(function, attribute);
        }
        let builder = context.create_builder();
        builder.position_at_end(context.append_basic_block(function, "entry"));
        let strict = context.create_enum_attribute(Attribute::get_named_enum_kind_id("strictfp"), 0);
        let call = |callee: FunctionValue<'ctx>, args: &[BasicMetadataValueEnum<'ctx>]| -> Result<_> {
            let call = builder.build_call(callee, args, "")?;
            call.add_attribute(AttributeLoc::Function, strict);
            Ok(call.try_as_basic_value().basic())
        };
        let set = cx.intrinsic("llvm.set.rounding", &[])?;
        // The numbers of C's rounding modes (`FLT_ROUNDS`).
        let mode = |rounding| {
            let number = match rounding {
                Rounding::Zero => 0,
                Rounding::Nearest => 1,
                Rounding::Up => 2,
                Rounding::Down => 3,
            };
            context.i32_type().const_int(number, false).into()
        };
        call(set, &[mode(rounding)])?;
        let mut types: Vec<BasicTypeEnum<'ctx>> = vec![result.into()];
        if op == RoundedOp::Convert {
            types.extend(args);
        }
        let compute = cx.intrinsic(&format!("llvm.experimental.constrained.{number}"), &types)?;
        let mut values: Vec<BasicMetadataValueEnum<'ctx>> =
            function.get_param_iter().map(BasicMetadataValueEnum::from).collect();
        for word in ["round.dynamic", "fpexcept.strict"] {
            values.push(context.metadata_string(word).into());
        }
        let Some(value) = call(compute, &values)? else { return internal(format!("{symbol} computes nothing")) };
        call(set, &[mode(Rounding::Nearest)])?;
        builder.build_return(Some(&value))?;
        Ok(function)
    }

    /// A function of integers of one type.
    pub(super) fn integer_math(
        &self,
        function: MathFn,
        scalar: Scalar,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let (builder, context) = (&self.builder, self.cx.types.context);
        let defined = context.bool_type().const_zero();
        match (function, args) {
            (MathFn::Popcount, _) => self.call_intrinsic("llvm.ctpop", args),
            (MathFn::ReverseBits, _) => self.call_intrinsic("llvm.bitreverse", args),
            (MathFn::LeadingZeros, [value]) => self.call_intrinsic("llvm.ctlz", &[*value, defined.into()]),
            (MathFn::TrailingZeros, [value]) => self.call_intrinsic("llvm.cttz", &[*value, defined.into()]),
            (MathFn::FunnelLeft, _) => self.call_intrinsic("llvm.fshl", args),
            (MathFn::FunnelRight, _) => self.call_intrinsic("llvm.fshr", args),
            (MathFn::MulHigh, [a, b]) => {
                let (a, b) = (int(*a)?, int(*b)?);
                let bits = a.get_type().get_bit_width();
                let Some(bits) = std::num::NonZeroU32::new(2 * bits) else { return internal("integers without bits") };
                let wide = context.custom_width_int_type(bits).or_else(internal)?;
                let widened = |value| {
                    if scalar.is_signed_int() {
                        builder.build_int_s_extend(value, wide, "")
                    } else {
                        builder.build_int_z_extend(value, wide, "")
                    }
                };
                let product = builder.build_int_mul(widened(a)?, widened(b)?, "")?;
                let half = wide.const_int(u64::from(bits.get() / 2), false);
                let high = builder.build_right_shift(product, half, false, "")?;
                Ok(builder.build_int_truncate(high, a.get_type(), "")?.into())
            }
            (MathFn::BytePerm, _) if self.cx.ptx => self.call(self.cx.intrinsic("llvm.nvvm.prmt", &[])?, args),
            (MathFn::BytePerm, [low, high, selector]) => {
                let (word, long) = (context.i32_type(), context.i64_type());
                let number = |value| long.const_int(value, false);
                let high = builder.build_int_z_extend(int(*high)?, long, "")?;
                let high = builder.build_left_shift(high, number(32), "")?;
                let low = builder.build_int_z_extend(int(*low)?, long, "")?;
                let bytes = builder.build_or(high, low, "")?;
                let selector = builder.build_int_z_extend(int(*selector)?, long, "")?;
                let mut result = long.const_zero();
                for byte in 0..4 {
                    // A byte's number is in the lower three bits of its selector nibble; multiply it by 8.
                    let shift = match byte {
                        0 => builder.build_left_shift(selector, number(3), "")?,
                        _ => builder.build_right_shift(selector, number(4 * byte - 3), false, "")?,
                    };
                    let shift = builder.build_and(shift, number(56), "")?;
                    let taken = builder.build_right_shift(bytes, shift, false, "")?;
                    let taken = builder.build_and(taken, number(255), "")?;
                    let taken = builder.build_left_shift(taken, number(8 * byte), "")?;
                    result = builder.build_or(result, taken, "")?;
                }
                Ok(builder.build_int_truncate(result, word, "")?.into())
            }
            _ => internal(format!("{} of {} integers", function.name(), args.len())),
        }
    }
}

/// The suffix of a rounding mode in PTX and in LLVM's intrinsics.
const fn ptx_suffix(rounding: Rounding) -> &'static str {
    match rounding {
        Rounding::Nearest => "rn",
        Rounding::Zero => "rz",
        Rounding::Down => "rm",
        Rounding::Up => "rp",
    }
}

/// The operation in the name of an NVPTX intrinsic.
const fn ptx_name(op: RoundedOp, from: Scalar, to: Scalar) -> &'static str {
    let single = matches!(to, Scalar::F32);
    match op {
        RoundedOp::Add => "add",
        RoundedOp::Mul => "mul",
        RoundedOp::Div => "div",
        RoundedOp::Sqrt => "sqrt",
        RoundedOp::Fma => "fma",
        RoundedOp::Convert => match (from, single) {
            (Scalar::I32, true) => "i2f",
            (Scalar::I32, false) => "i2d",
            (Scalar::U32, true) => "ui2f",
            (Scalar::U32, false) => "ui2d",
            (Scalar::I64, true) => "ll2f",
            (Scalar::I64, false) => "ll2d",
            (Scalar::U64, true) => "ull2f",
            (Scalar::U64, false) => "ull2d",
            (_, _) => "d2f",
        },
    }
}

/// The type at the end of an intrinsic's name. Names of conversions have it at the start.
const fn kind(op: RoundedOp, to: Scalar) -> &'static str {
    match (op, to) {
        (RoundedOp::Convert, _) => "",
        (_, Scalar::F32) => ".f",
        (_, _) => ".d",
    }
}
