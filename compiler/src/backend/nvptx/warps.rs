//! Warp-level operations on a GPU: shuffles, votes, matches, reductions.
//!
//! `shfl.sync` moves 32 bits (PTX ISA, "shfl.sync"). Smaller values are extended, and 64-bit values are moved in two
//! halves.

use inkwell::{
    IntPredicate,
    types::BasicTypeEnum,
    values::{BasicValueEnum, IntValue},
};

use crate::{
    backend::llvm::{FunctionEmitter, OperandValue, Result, int, internal},
    ir::{Shuffle, Type, Vote, WarpReduction},
    target::needs,
};

/// Calls an intrinsic without type parameters.
fn plain<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    name: &str,
    args: &[BasicValueEnum<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    emitter.call(emitter.cx.intrinsic(name, &[])?, args)
}

/// Emits a shuffle and returns the value from the source lane.
pub(super) fn shuffle<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    shuffle: Shuffle,
    values: &[BasicValueEnum<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let &[mask, value, by, width] = values else { return internal("a shuffle without its four operands") };
    let (builder, context) = (&emitter.builder, emitter.cx.types.context);
    let word = context.i32_type();
    // The clamp operand: the mask that selects a segment of `width` lanes, and the first or last lane.
    let width = int(width)?;
    let part = builder.build_int_sub(word.const_int(32, false), width, "")?;
    let part = builder.build_left_shift(part, word.const_int(8, false), "")?;
    let (mode, end) = match shuffle {
        Shuffle::Index => ("idx", 31),
        Shuffle::Up => ("up", 0),
        Shuffle::Down => ("down", 31),
        Shuffle::Xor => ("bfly", 31),
    };
    let clamp = builder.build_or(part, word.const_int(end, false), "")?;
    let move_word = |word: IntValue<'ctx>| -> Result<IntValue<'ctx>> {
        int(plain(emitter, &format!("llvm.nvvm.shfl.sync.{mode}.i32"), &[mask, word.into(), by, clamp.into()])?)
    };
    let bits = as_int(emitter, value)?;
    let size = bits.get_type().get_bit_width();
    let moved = match size {
        32 => move_word(bits)?,
        0..32 => {
            let moved = move_word(builder.build_int_z_extend(bits, word, "")?)?;
            builder.build_int_truncate(moved, bits.get_type(), "")?
        }
        64 => {
            let (long, half) = (bits.get_type(), bits.get_type().const_int(32, false));
            let low = move_word(builder.build_int_truncate(bits, word, "")?)?;
            let high = builder.build_right_shift(bits, half, false, "")?;
            let high = move_word(builder.build_int_truncate(high, word, "")?)?;
            let high = builder.build_left_shift(builder.build_int_z_extend(high, long, "")?, half, "")?;
            builder.build_or(high, builder.build_int_z_extend(low, long, "")?, "")?
        }
        _ => return internal(format!("a shuffle of {size} bits")),
    };
    match value {
        BasicValueEnum::FloatValue(float) => Ok(builder.build_bit_cast(moved, float.get_type(), "")?),
        BasicValueEnum::IntValue(_)
        | BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_) => Ok(moved.into()),
    }
}

/// The bits of a number as an integer.
fn as_int<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, value: BasicValueEnum<'ctx>) -> Result<IntValue<'ctx>> {
    match value {
        BasicValueEnum::IntValue(int) => Ok(int),
        BasicValueEnum::FloatValue(float) => {
            let context = emitter.cx.types.context;
            let bits = float.get_type().get_bit_width();
            let to = match bits {
                16 => context.i16_type(),
                32 => context.i32_type(),
                64 => context.i64_type(),
                _ => return internal(format!("a float of {bits} bits")),
            };
            int(emitter.builder.build_bit_cast(float, to, "")?)
        }
        other @ (BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_)) => internal(format!("a shuffle of {other}")),
    }
}

/// Emits a vote.
pub(super) fn vote<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    vote: Vote,
    values: &[BasicValueEnum<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let name = match vote {
        Vote::All => "all",
        Vote::Any => "any",
        Vote::Uniform => "uni",
        Vote::Ballot => "ballot",
    };
    plain(emitter, &format!("llvm.nvvm.vote.{name}.sync"), values)
}

/// The operand size in the name of a match intrinsic.
fn match_bits(operands: &[OperandValue<'_>]) -> Result<u32> {
    match operands {
        [_, OperandValue { ty: Type::Scalar(scalar), .. }] => Ok(8 * scalar.size_bytes() as u32),
        _ => internal("a match without a mask and a value"),
    }
}

/// The mask of lanes whose value equals the thread's own.
pub(super) fn match_any<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    operands: &[OperandValue<'ctx>],
    values: &[BasicValueEnum<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    plain(emitter, &format!("llvm.nvvm.match.any.sync.i{}", match_bits(operands)?), values)
}

/// The mask of lanes, if all have the same value, and whether they have.
pub(super) fn match_all<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    operands: &[OperandValue<'ctx>],
    values: &[BasicValueEnum<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let both = plain(emitter, &format!("llvm.nvvm.match.all.sync.i{}p", match_bits(operands)?), values)?;
    let both = both.into_struct_value();
    let lanes = emitter.builder.build_extract_value(both, 0, "lanes")?;
    let all = emitter.builder.build_extract_value(both, 1, "all")?;
    Ok(vec![lanes, all])
}

/// Reduces a value over the lanes of a mask.
pub(super) fn reduce<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    sm: u32,
    reduction: WarpReduction,
    operands: &[OperandValue<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let [OperandValue { value: mask, .. }, OperandValue { value, ty: Type::Scalar(scalar) }] = operands else {
        return internal("a reduction without a mask and a value");
    };
    let signed = scalar.is_signed_int();
    if needs::has(sm, needs::REDUX) {
        let name = match (reduction, signed) {
            (WarpReduction::Add, _) => "add",
            (WarpReduction::Min, true) => "min",
            (WarpReduction::Min, false) => "umin",
            (WarpReduction::Max, true) => "max",
            (WarpReduction::Max, false) => "umax",
            (WarpReduction::And, _) => "and",
            (WarpReduction::Or, _) => "or",
            (WarpReduction::Xor, _) => "xor",
        };
        return plain(emitter, &format!("llvm.nvvm.redux.sync.{name}"), &[*value, *mask]);
    }
    by_shuffles(emitter, reduction, signed, *mask, *value)
}

/// Reduces by a loop over the active lanes. All lanes execute the same iterations.
fn by_shuffles<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    reduction: WarpReduction,
    signed: bool,
    mask: BasicValueEnum<'ctx>,
    value: BasicValueEnum<'ctx>,
) -> Result<BasicValueEnum<'ctx>> {
    let (builder, context) = (&emitter.builder, emitter.cx.types.context);
    let word = context.i32_type();
    let here = plain(emitter, "llvm.nvvm.vote.ballot.sync", &[mask, context.bool_type().const_all_ones().into()])?;
    let before = emitter.current()?;
    let [lane_block, end] = ["lane", "lanes_end"].map(|name| emitter.block(name));
    builder.build_unconditional_branch(lane_block)?;
    builder.position_at_end(lane_block);
    let left = builder.build_phi(word, "left")?;
    left.add_incoming(&[(&here, before)]);
    let total = builder.build_phi(word, "total")?;
    let first = match (reduction, signed) {
        (WarpReduction::Add | WarpReduction::Or | WarpReduction::Xor, _) | (WarpReduction::Max, false) => 0,
        (WarpReduction::And, _) | (WarpReduction::Min, false) => u64::from(u32::MAX),
        (WarpReduction::Min, true) => i32::MAX as u64,
        (WarpReduction::Max, true) => u64::from(i32::MIN.cast_unsigned()),
    };
    total.add_incoming(&[(&word.const_int(first, false), before)]);
    let (rest, sum) = (int(left.as_basic_value())?, int(total.as_basic_value())?);
    let types: &[BasicTypeEnum<'ctx>] = &[word.into()];
    let lowest = emitter.cx.intrinsic("llvm.cttz", types)?;
    let lane = emitter.call(lowest, &[rest.into(), context.bool_type().const_zero().into()])?;
    let clamp = word.const_int(31, false);
    let other = int(plain(emitter, "llvm.nvvm.shfl.sync.idx.i32", &[mask, value, lane, clamp.into()])?)?;
    let lesser = if signed { IntPredicate::SLT } else { IntPredicate::ULT };
    let taken = match reduction {
        WarpReduction::Add => builder.build_int_add(sum, other, "")?,
        WarpReduction::And => builder.build_and(sum, other, "")?,
        WarpReduction::Or => builder.build_or(sum, other, "")?,
        WarpReduction::Xor => builder.build_xor(sum, other, "")?,
        WarpReduction::Min | WarpReduction::Max => {
            let sum_is_less = builder.build_int_compare(lesser, sum, other, "")?;
            let (yes, no) = if reduction == WarpReduction::Min { (sum, other) } else { (other, sum) };
            int(builder.build_select(sum_is_less, yes, no, "")?)?
        }
    };
    let without = builder.build_int_sub(rest, word.const_int(1, false), "")?;
    let next = builder.build_and(rest, without, "")?;
    let last = emitter.current()?;
    left.add_incoming(&[(&next, last)]);
    total.add_incoming(&[(&taken, last)]);
    let more = builder.build_int_compare(IntPredicate::NE, next, word.const_zero(), "")?;
    builder.build_conditional_branch(more, lane_block, end)?;
    builder.position_at_end(end);
    Ok(taken.into())
}
