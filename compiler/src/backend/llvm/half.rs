//! 16-bit floats.
//!
//! For PTX they are LLVM's `half` and `bfloat`. LLVM selects an instruction if the SM has one, else computes in
//! `float32`. On the host they are bits in an `i16`; every operation is computed in `float32` and rounded. For sums,
//! products, quotients and square roots this is the same as rounding once, because a `float32` has more than twice the
//! digits. LLVM's own conversions are not used on the host: if the CPU has no instruction for them, they call functions
//! that are not available to weft's objects, and x86's `bfloat` instruction treats subnormals as zero.
//!
//! A value with more digits than a `float32` is first rounded *to odd*: if digits are lost, the last digit becomes odd.
//! The second rounding then recognizes values next to a tie.

use inkwell::{
    FloatPredicate, IntPredicate,
    values::{BasicValueEnum, FloatValue, IntValue},
};
use weft_artifact::Scalar;

use super::{
    FunctionEmitter, Result, constant,
    function::{float, int},
    internal,
};
use crate::ir::{BinaryOp, MathFn, UnaryOp};

/// How a target represents 16-bit floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halves {
    /// LLVM's types.
    Native {
        /// The target converts integers to `bfloat` in one instruction.
        bfloat_of_ints: bool,
        /// The target has a fused multiply-add of `bfloat`.
        bfloat_fma: bool,
    },
    /// Bits in an integer.
    Bits {
        /// The CPU has instructions that convert `half`.
        f16c: bool,
    },
}

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    fn is_native(&self) -> bool {
        matches!(self.cx.types.halves, Halves::Native { .. })
    }

    /// A constant of a 16-bit type.
    pub(super) fn half_constant(&self, scalar: Scalar, value: f64) -> Result<BasicValueEnum<'ctx>> {
        if self.is_native() {
            return Ok(self.cx.types.float(scalar)?.const_float(value).into());
        }
        Ok(self.cx.types.context.i16_type().const_int(scalar.float_bits(value), false).into())
    }

    /// Converts a 16-bit float to a `float32`, which is exact.
    pub(super) fn widen(&self, value: BasicValueEnum<'ctx>, from: Scalar) -> Result<FloatValue<'ctx>> {
        let (builder, context) = (&self.builder, self.cx.types.context);
        let (single, word) = (context.f32_type(), context.i32_type());
        match self.cx.types.halves {
            Halves::Native { .. } => Ok(builder.build_float_ext(float(value)?, single, "")?),
            Halves::Bits { .. } if from == Scalar::BF16 => {
                let bits = builder.build_int_z_extend(int(value)?, word, "")?;
                let bits = builder.build_left_shift(bits, word.const_int(16, false), "")?;
                float(builder.build_bit_cast(bits, single, "")?)
            }
            Halves::Bits { f16c: true } => {
                let half = float(builder.build_bit_cast(value, context.f16_type(), "")?)?;
                Ok(builder.build_float_ext(half, single, "")?)
            }
            Halves::Bits { f16c: false } => {
                // Shift exponent and fraction into their `float32` positions. The resulting exponent is too small by
                // 112, also for subnormals; multiplying by the power of two is exact.
                let number = |value: u64| word.const_int(value, false);
                let bits = builder.build_int_z_extend(int(value)?, word, "")?;
                let magnitude = builder.build_and(bits, number(0x7fff), "")?;
                let sign = builder.build_left_shift(builder.build_xor(bits, magnitude, "")?, number(16), "")?;
                let moved = builder.build_left_shift(magnitude, number(13), "")?;
                let small = float(builder.build_bit_cast(moved, single, "")?)?;
                let scaled = builder.build_float_mul(small, constant(small, 2_f64.powi(112)), "")?;
                let scaled = int(builder.build_bit_cast(scaled, word, "")?)?;
                let special = builder.build_or(moved, number(0x7f80_0000), "")?;
                let finite = builder.build_int_compare(IntPredicate::ULT, magnitude, number(0x7c00), "")?;
                let magnitude = int(builder.build_select(finite, scaled, special, "")?)?;
                let bits = builder.build_or(magnitude, sign, "")?;
                float(builder.build_bit_cast(bits, single, "")?)
            }
        }
    }

    /// Rounds a `float32` to a 16-bit float.
    pub(super) fn narrow(&self, value: FloatValue<'ctx>, to: Scalar) -> Result<BasicValueEnum<'ctx>> {
        let (builder, context) = (&self.builder, self.cx.types.context);
        let (bits, word) = (context.i16_type(), context.i32_type());
        let number = |value: u64| word.const_int(value, false);
        // The upper bits of a word, rounded to nearest even.
        let upper = |word: IntValue<'ctx>, lost: u64| -> Result<IntValue<'ctx>> {
            let last = builder.build_right_shift(word, number(lost), false, "")?;
            let last = builder.build_and(last, number(1), "")?;
            let up = builder.build_int_add(last, number((1 << (lost - 1)) - 1), "")?;
            Ok(builder.build_right_shift(builder.build_int_add(word, up, "")?, number(lost), false, "")?)
        };
        match self.cx.types.halves {
            Halves::Native { .. } => Ok(builder.build_float_trunc(value, self.cx.types.float(to)?, "")?.into()),
            Halves::Bits { .. } if to == Scalar::BF16 => {
                let all = int(builder.build_bit_cast(value, word, "")?)?;
                let rounded = upper(all, 16)?;
                // The carry of a NaN could overflow the exponent. Truncate a NaN and set its top fraction bit.
                let nan = builder.build_float_compare(FloatPredicate::UNO, value, value, "")?;
                let quiet = builder.build_right_shift(all, number(16), false, "")?;
                let quiet = builder.build_or(quiet, number(0x40), "")?;
                let result = int(builder.build_select(nan, quiet, rounded, "")?)?;
                Ok(builder.build_int_truncate(result, bits, "")?.into())
            }
            Halves::Bits { f16c: true } => {
                let half = builder.build_float_trunc(value, context.f16_type(), "")?;
                Ok(builder.build_bit_cast(half, bits, "")?)
            }
            Halves::Bits { f16c: false } => {
                let all = int(builder.build_bit_cast(value, word, "")?)?;
                let magnitude = builder.build_and(all, number(0x7fff_ffff), "")?;
                let sign = builder.build_right_shift(builder.build_xor(all, magnitude, "")?, number(16), false, "")?;
                // Numbers beyond the largest one become infinity.
                let normal = upper(builder.build_int_sub(magnitude, number(112 << 23), "")?, 13)?;
                let normal = int(self.call_intrinsic("llvm.umin", &[normal.into(), number(0x7c00).into()])?)?;
                // In a `float32` from 0.5 on, the last bit has the value of the smallest subnormal `half`. Hence adding
                // 0.5 rounds to it.
                let positive = float(builder.build_bit_cast(magnitude, value.get_type(), "")?)?;
                let sum = builder.build_float_add(positive, constant(value, 0.5), "")?;
                let sum = int(builder.build_bit_cast(sum, word, "")?)?;
                let subnormal = builder.build_int_sub(sum, number(0x3f00_0000), "")?;
                let small = builder.build_int_compare(IntPredicate::ULT, magnitude, number(0x3880_0000), "")?;
                let finite = int(builder.build_select(small, subnormal, normal, "")?)?;
                let nan = builder.build_float_compare(FloatPredicate::UNO, value, value, "")?;
                let carried = builder.build_right_shift(magnitude, number(13), false, "")?;
                let carried = builder.build_or(carried, number(0x7e00), "")?;
                let carried = builder.build_and(carried, number(0x7fff), "")?;
                let result = int(builder.build_select(nan, carried, finite, "")?)?;
                Ok(builder.build_int_truncate(builder.build_or(result, sign, "")?, bits, "")?.into())
            }
        }
    }

    /// Rounds a `float64` to a 16-bit float, once.
    pub(super) fn narrow_double(&self, value: FloatValue<'ctx>, to: Scalar) -> Result<BasicValueEnum<'ctx>> {
        if self.is_native() {
            return Ok(self.builder.build_float_trunc(value, self.cx.types.float(to)?, "")?.into());
        }
        let (builder, context) = (&self.builder, self.cx.types.context);
        let word = context.i32_type();
        let nearest = builder.build_float_trunc(value, context.f32_type(), "")?;
        let back = builder.build_float_ext(nearest, context.f64_type(), "")?;
        let inexact = builder.build_float_compare(FloatPredicate::ONE, back, value, "")?;
        let bits = int(builder.build_bit_cast(nearest, word, "")?)?;
        // If the result is inexact, take the odd one of the two floats around the value.
        let odd = builder.build_int_truncate(bits, context.bool_type(), "")?;
        let magnitude = |of: FloatValue<'ctx>| float(self.call_intrinsic("llvm.fabs", &[of.into()])?);
        let below = builder.build_float_compare(FloatPredicate::OLT, magnitude(back)?, magnitude(value)?, "")?;
        let step = int(builder.build_select(below, word.const_int(1, false), word.const_all_ones(), "")?)?;
        let other = builder.build_int_add(bits, step, "")?;
        let moves = builder.build_and(inexact, builder.build_not(odd, "")?, "")?;
        let bits = int(builder.build_select(moves, other, bits, "")?)?;
        self.narrow(float(builder.build_bit_cast(bits, context.f32_type(), "")?)?, to)
    }

    /// Rounds an integer or `Bool` to a 16-bit float, once.
    fn half_of_int(&self, value: IntValue<'ctx>, from: Scalar, to: Scalar) -> Result<BasicValueEnum<'ctx>> {
        let (builder, context) = (&self.builder, self.cx.types.context);
        let value = if to == Scalar::F16 { self.within_half(value, from)? } else { value };
        let convert = |value: IntValue<'ctx>, ty| {
            if from.is_signed_int() {
                builder.build_signed_int_to_float(value, ty, "")
            } else {
                builder.build_unsigned_int_to_float(value, ty, "")
            }
        };
        // A `float32` represents all 24-bit integers exactly, and larger ones are infinite as a `half`.
        let exact = to == Scalar::F16 || from.size_bytes() < 4;
        match self.cx.types.halves {
            Halves::Native { bfloat_of_ints, .. } if to == Scalar::F16 || bfloat_of_ints => {
                Ok(convert(value, self.cx.types.float(to)?)?.into())
            }
            _ if exact => self.narrow(convert(value, context.f32_type())?, to),
            Halves::Native { .. } | Halves::Bits { .. } => {
                let value = if from.size_bytes() == 8 { self.odd_beyond_53_bits(value, from)? } else { value };
                self.narrow_double(convert(value, context.f64_type())?, to)
            }
        }
    }

    /// Clamps an integer without changing the `float16` that it is converted to, and truncates it to 32 bits. The limit
    /// is the smallest integer that rounds to infinity. Without the clamp, LLVM regards the conversion of an integer
    /// with few digits as exact, although it may overflow, and folds it with a following widening to one conversion
    /// that does not overflow. The limit 65520 has one digit more than a `float16`, which prevents that. A 16-bit
    /// integer with no more digits than a `float16` does not overflow, so it needs no clamp.
    fn within_half(&self, value: IntValue<'ctx>, from: Scalar) -> Result<IntValue<'ctx>> {
        const INFINITE: i64 = 65_520;
        if from.size_bytes() < 4 || self.cx.types.halves == (Halves::Bits { f16c: false }) {
            return Ok(value);
        }
        let ty = value.get_type();
        let number = |value: i64| ty.const_int(value as u64, true);
        let value = if from.is_signed_int() {
            let above = self.call_intrinsic("llvm.smax", &[value.into(), number(-INFINITE).into()])?;
            int(self.call_intrinsic("llvm.smin", &[above, number(INFINITE).into()])?)?
        } else {
            int(self.call_intrinsic("llvm.umin", &[value.into(), number(INFINITE).into()])?)?
        };
        Ok(self.builder.build_int_truncate_or_bit_cast(value, self.cx.types.context.i32_type(), "")?)
    }

    /// Rounds the last 11 bits of a large 64-bit integer to odd, so that it is exact as a `float64`.
    fn odd_beyond_53_bits(&self, value: IntValue<'ctx>, from: Scalar) -> Result<IntValue<'ctx>> {
        let builder = &self.builder;
        let ty = value.get_type();
        let number = |value: u64| ty.const_int(value, false);
        let rest = builder.build_and(value, number(0x7ff), "")?;
        let kept = builder.build_xor(value, rest, "")?;
        let lost = builder.build_int_compare(IntPredicate::NE, rest, ty.const_zero(), "")?;
        let odd = int(builder.build_select(lost, number(0x800), ty.const_zero(), "")?)?;
        let rounded = builder.build_or(kept, odd, "")?;
        let magnitude = if from.is_signed_int() {
            let wraps = self.cx.types.context.bool_type().const_zero();
            int(self.call_intrinsic("llvm.abs", &[value.into(), wraps.into()])?)?
        } else {
            value
        };
        let large = builder.build_int_compare(IntPredicate::UGE, magnitude, number(1 << 32), "")?;
        int(builder.build_select(large, rounded, value, "")?)
    }

    /// Converts any scalar to a 16-bit float.
    pub(super) fn convert_to_half(
        &self,
        value: BasicValueEnum<'ctx>,
        from: Scalar,
        to: Scalar,
    ) -> Result<BasicValueEnum<'ctx>> {
        match from {
            Scalar::F16 | Scalar::BF16 => self.narrow(self.widen(value, from)?, to),
            Scalar::F32 => self.narrow(float(value)?, to),
            Scalar::F64 => self.narrow_double(float(value)?, to),
            Scalar::Bool
            | Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64 => self.half_of_int(int(value)?, from, to),
        }
    }

    /// `op a`.
    pub(super) fn half_unary(&self, op: UnaryOp, a: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let builder = &self.builder;
        Ok(match (op, a) {
            (UnaryOp::Neg, BasicValueEnum::FloatValue(a)) => builder.build_float_neg(a, "")?.into(),
            (UnaryOp::Abs, BasicValueEnum::FloatValue(_)) => self.call_intrinsic("llvm.fabs", &[a])?,
            (UnaryOp::Neg, _) => {
                let a = int(a)?;
                builder.build_xor(a, a.get_type().const_int(0x8000, false), "")?.into()
            }
            (UnaryOp::Abs, _) => {
                let a = int(a)?;
                builder.build_and(a, a.get_type().const_int(0x7fff, false), "")?.into()
            }
            (UnaryOp::Not, _) => return internal("bitwise not of a float"),
        })
    }

    /// `a op b` on two numbers of a 16-bit type.
    pub(super) fn half_binary(
        &self,
        op: BinaryOp,
        scalar: Scalar,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        if self.is_native() && matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul) {
            return Ok(self.float_binary(op, float(a)?, float(b)?)?.into());
        }
        let result = self.float_binary(op, self.widen(a, scalar)?, self.widen(b, scalar)?)?;
        self.narrow(result, scalar)
    }

    /// A math function on numbers of a 16-bit type. Other arguments are passed unchanged.
    pub(super) fn half_math(
        &self,
        function: MathFn,
        scalar: Scalar,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        if function == MathFn::Fma {
            let [a, b, c] = *args else { return internal("a fused product without three operands") };
            return self.half_fma(scalar, a, b, c);
        }
        if function == MathFn::CanonicalNan {
            return self.canonical_half(scalar, first_of(args)?);
        }
        if function == MathFn::Nextafter {
            return internal("the neighbor of a 16-bit float");
        }
        let integer = function == MathFn::Ldexp;
        let mut wide = Vec::with_capacity(args.len());
        for (index, &arg) in args.iter().enumerate() {
            wide.push(if integer && index > 0 { arg } else { self.widen(arg, scalar)?.into() });
        }
        match self.emit_math(function, &wide)? {
            BasicValueEnum::FloatValue(result) => self.narrow(result, scalar),
            other @ (BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::IntValue(_)
            | BasicValueEnum::PointerValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::VectorValue(_)
            | BasicValueEnum::ScalableVectorValue(_)) => Ok(other),
        }
    }

    /// A number of a 16-bit type, in which every NaN becomes the canonical positive one.
    fn canonical_half(&self, scalar: Scalar, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let builder = &self.builder;
        let word = self.cx.types.context.i16_type();
        let number = |value: u64| word.const_int(value, false);
        let bits = int(builder.build_bit_cast(value, word, "")?)?;
        let magnitude = builder.build_and(bits, number(0x7fff), "")?;
        let infinity = number(scalar.float_bits(f64::INFINITY));
        let is_nan = builder.build_int_compare(IntPredicate::SGT, magnitude, infinity, "")?;
        let bits = builder.build_select(is_nan, number(scalar.float_bits(f64::NAN)), bits, "")?;
        Ok(builder.build_bit_cast(bits, value.get_type(), "")?)
    }

    /// `a * b + c`, rounded once.
    fn half_fma(
        &self,
        scalar: Scalar,
        a: BasicValueEnum<'ctx>,
        b: BasicValueEnum<'ctx>,
        c: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        if let Halves::Native { bfloat_fma, .. } = self.cx.types.halves
            && (scalar == Scalar::F16 || bfloat_fma)
        {
            return self.call_intrinsic("llvm.fma", &[a, b, c]);
        }
        let (builder, context) = (&self.builder, self.cx.types.context);
        let (double, long) = (context.f64_type(), context.i64_type());
        let wide = |value| -> Result<_> { Ok(builder.build_float_ext(self.widen(value, scalar)?, double, "")?) };
        let (a, b, c) = (wide(a)?, wide(b)?, wide(c)?);
        // The product is exact. The sum is rounded to odd depending on its error (Knuth's two-sum), which is exact,
        // too. An infinite or NaN sum has a NaN error and is not changed.
        let product = builder.build_float_mul(a, b, "")?;
        let sum = builder.build_float_add(product, c, "")?;
        let part = builder.build_float_sub(sum, product, "")?;
        let rest = builder.build_float_sub(product, builder.build_float_sub(sum, part, "")?, "")?;
        let error = builder.build_float_add(rest, builder.build_float_sub(c, part, "")?, "")?;
        let zero = double.const_zero();
        let inexact = builder.build_float_compare(FloatPredicate::ONE, error, zero, "")?;
        let bits = int(builder.build_bit_cast(sum, long, "")?)?;
        let odd = builder.build_int_truncate(bits, context.bool_type(), "")?;
        let moves = builder.build_and(inexact, builder.build_not(odd, "")?, "")?;
        // Away from zero if the error has the sum's sign, else towards zero.
        let signs = builder.build_xor(int(builder.build_bit_cast(error, long, "")?)?, bits, "")?;
        let toward = builder.build_int_compare(IntPredicate::SLT, signs, long.const_zero(), "")?;
        let step = int(builder.build_select(toward, long.const_all_ones(), long.const_int(1, false), "")?)?;
        let other = builder.build_int_add(bits, step, "")?;
        let bits = int(builder.build_select(moves, other, bits, "")?)?;
        self.narrow_double(float(builder.build_bit_cast(bits, double, "")?)?, scalar)
    }
}

fn first_of<'ctx>(args: &[BasicValueEnum<'ctx>]) -> Result<BasicValueEnum<'ctx>> {
    args.first().copied().map_or_else(|| internal("a function of nothing"), Ok)
}
