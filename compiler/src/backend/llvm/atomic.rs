//! Atomic read-modify-write operations. inkwell's builder supports neither floats nor synchronization scopes in them,
//! so LLVM is called directly.
//!
//! An operation is one LLVM instruction if there is one ([`instruction`]), else a compare-and-swap loop on the
//! element's bits or on the word that contains them. [`FunctionEmitter::stepped`] computes the new element from the old
//! one, for the loop and for memory that no other thread accesses.

#![expect(unsafe_code, reason = "LLVM's C interface, for what inkwell's builder cannot build")]

use inkwell::{
    AtomicOrdering, FloatPredicate, IntPredicate,
    context::AsContextRef,
    llvm_sys::{
        LLVMAtomicOrdering, LLVMAtomicRMWBinOp,
        core::{
            LLVMBuildAtomicCmpXchgSyncScope, LLVMBuildAtomicRMWSyncScope, LLVMBuildFenceSyncScope, LLVMGetSyncScopeID,
            LLVMSetAtomicSyncScopeID,
        },
    },
    types::IntType,
    values::{AsValueRef, BasicValue, BasicValueEnum, FloatValue, IntValue, PointerValue, StructValue},
};
use weft_artifact::Scalar;

use super::{
    FunctionEmitter, OperandValue, Result,
    function::{float, int},
    internal,
};
use crate::ir::{AtomicOp, BinaryOp, Order, Type};

/// LLVM's instruction for an atomic operation on elements, if it has one. An exchange of floats exchanges their bits.
pub(crate) fn instruction(op: AtomicOp, element: Scalar) -> Option<LLVMAtomicRMWBinOp> {
    // Not `Bool`: its bytes come from outside, and every value but 0 is true.
    let whole = element.is_int();
    let signed = element.is_signed_int();
    match op {
        AtomicOp::Add if whole => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAdd),
        AtomicOp::Add if element.is_float() => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd),
        AtomicOp::Sub if whole => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpSub),
        AtomicOp::Sub if element.is_float() => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFSub),
        AtomicOp::And if whole => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAnd),
        AtomicOp::Or if whole => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpOr),
        AtomicOp::Xor if whole => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpXor),
        AtomicOp::Max | AtomicOp::NanMax if signed => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpMax),
        AtomicOp::Min | AtomicOp::NanMin if signed => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpMin),
        AtomicOp::Max | AtomicOp::NanMax if whole => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUMax),
        AtomicOp::Min | AtomicOp::NanMin if whole => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUMin),
        AtomicOp::Inc if whole => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUIncWrap),
        AtomicOp::Dec if whole => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUDecWrap),
        AtomicOp::Exchange => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpXchg),
        AtomicOp::Add
        | AtomicOp::Sub
        | AtomicOp::And
        | AtomicOp::Or
        | AtomicOp::Xor
        | AtomicOp::Max
        | AtomicOp::Min
        | AtomicOp::NanMax
        | AtomicOp::NanMin
        | AtomicOp::Inc
        | AtomicOp::Dec
        | AtomicOp::Cas => None,
    }
}

/// An operation's pointer, its element type and its other operands.
pub(crate) fn parts<'a, 'ctx>(
    op: AtomicOp,
    operands: &'a [OperandValue<'ctx>],
) -> Result<(PointerValue<'ctx>, Scalar, &'a [OperandValue<'ctx>])> {
    match operands.split_first() {
        Some((OperandValue { ty: Type::Ptr(element, _), value: BasicValueEnum::PointerValue(pointer) }, rest)) => {
            Ok((*pointer, *element, rest))
        }
        Some(_) | None => internal(format!("an atomic {op:?} without a pointer")),
    }
}

/// The size in bytes of the smallest compare-and-swap on some targets.
pub(crate) const WORD: u64 = 4;

/// The word that a compare-and-swap loop swaps for an element.
struct Swapped<'ctx> {
    pointer: PointerValue<'ctx>,
    word: IntType<'ctx>,
    /// If the element is a part of the word: its shift in bits, and the mask of the word's other bits.
    part: Option<(IntValue<'ctx>, IntValue<'ctx>)>,
}

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Emits the operation as one LLVM instruction with an LLVM synchronization scope; returns the old value.
    pub(crate) fn emit_atomic(
        &self,
        op: AtomicOp,
        order: Order,
        scope: &str,
        operands: &[OperandValue<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let (pointer, element, values) = parts(op, operands)?;
        match (op, values) {
            (AtomicOp::Cas, [compare, value]) => {
                let (compare, value) = (self.word(compare.value)?, self.word(value.value)?);
                let (old, _) = self.compare_and_swap(pointer, (compare, value), order, scope)?;
                self.element_of(old, element)
            }
            (_, [value]) => {
                let Some(instruction) = instruction(op, element) else {
                    return internal(format!("LLVM has no atomic {op:?} of {element}"));
                };
                let value = if op == AtomicOp::Exchange { self.word(value.value)?.into() } else { value.value };
                self.current()?;
                let builder = self.builder.as_mut_ptr();
                let (at, operand) = (pointer.as_value_ref(), value.as_value_ref());
                let (order, scope) = (ordering(order), self.sync_scope(scope));
                // SAFETY: the builder has a position; the pointer points to a scalar of the value's type.
                let old = unsafe { LLVMBuildAtomicRMWSyncScope(builder, instruction, at, operand, order, scope) };
                // SAFETY: `old` is the instruction just built, whose type is the value's.
                let old = unsafe { BasicValueEnum::new(old) };
                if op == AtomicOp::Exchange { self.element_of(int(old)?, element) } else { Ok(old) }
            }
            _ => internal(format!("atomic {op:?} of {element}")),
        }
    }

    /// Emits the operation as a relaxed compare-and-swap loop, which repeats until no other thread has written between
    /// the load and the swap. A maximum, minimum or compare-and-swap that would not change the element does not write
    /// it; a releasing maximum or minimum always does. With `words`, the target cannot swap less than a [`WORD`], so a
    /// smaller element is swapped with the bytes around it. LLVM's own expansion would start with a non-atomic load.
    /// Memory that contains such elements consists of whole words.
    pub(crate) fn emit_atomic_loop(
        &self,
        op: AtomicOp,
        order: Order,
        scope: &str,
        operands: &[OperandValue<'ctx>],
        words: bool,
    ) -> Result<BasicValueEnum<'ctx>> {
        let (pointer, element, values) = parts(op, operands)?;
        let place = self.swap_location(pointer, element, words)?;
        let first = self.builder.build_load(place.word, place.pointer, "first")?;
        if let Some(load) = first.as_instruction_value() {
            let set = load.set_atomic_ordering(AtomicOrdering::Monotonic);
            set.or_else(|error| internal(format!("no atomic load of {element}: {error}")))?;
            let scope = self.sync_scope(scope);
            // SAFETY: the instruction is the atomic load just built.
            unsafe { LLVMSetAtomicSyncScopeID(load.as_value_ref(), scope) };
        }
        let before = self.current()?;
        let [retry, swap, done] = ["step", "swap", "stepped"].map(|name| self.block(name));
        self.builder.build_unconditional_branch(retry)?;
        self.builder.position_at_end(retry);
        let old = self.builder.build_phi(place.word, "old")?;
        let word = int(old.as_basic_value())?;
        let bits = self.part_of(word, &place, element)?;
        let was = self.element_of(bits, element)?;
        let new = self.word(self.stepped(op, element, was, values)?)?;
        let unchanged = match op {
            AtomicOp::Max | AtomicOp::Min | AtomicOp::NanMax | AtomicOp::NanMin if !order.releases() => {
                Some(self.builder.build_int_compare(IntPredicate::EQ, bits, new, "")?)
            }
            AtomicOp::Cas => match values {
                [compare, _] => {
                    let (was, compare) = (self.bits(was)?, self.bits(compare.value)?);
                    Some(self.builder.build_int_compare(IntPredicate::NE, was, compare, "")?)
                }
                _ => return internal("a compare-and-swap without what it compares"),
            },
            AtomicOp::Max
            | AtomicOp::Min
            | AtomicOp::NanMax
            | AtomicOp::NanMin
            | AtomicOp::Add
            | AtomicOp::Sub
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Inc
            | AtomicOp::Dec
            | AtomicOp::Exchange => None,
        };
        match unchanged {
            Some(unchanged) => self.builder.build_conditional_branch(unchanged, done, swap)?,
            None => self.builder.build_unconditional_branch(swap)?,
        };
        self.builder.position_at_end(swap);
        let new = self.with_part(word, &place, new)?;
        let (seen, swapped) = self.compare_and_swap(place.pointer, (word, new), Order::Relaxed, scope)?;
        self.builder.build_conditional_branch(swapped, done, retry)?;
        old.add_incoming(&[(&first as &dyn BasicValue<'ctx>, before), (&seen, self.current()?)]);
        self.builder.position_at_end(done);
        self.element_of(bits, element)
    }

    /// The word to swap for an element.
    fn swap_location(&self, pointer: PointerValue<'ctx>, element: Scalar, words: bool) -> Result<Swapped<'ctx>> {
        let own = self.word_type(element);
        if !words || element.size_bytes() >= WORD {
            return Ok(Swapped { pointer, word: own, part: None });
        }
        let (context, builder) = (self.cx.types.context, &self.builder);
        let (byte, wide) = (context.i8_type(), context.i64_type());
        let word = context.i32_type();
        let address = builder.build_ptr_to_int(pointer, wide, "")?;
        let offset = builder.build_and(address, wide.const_int(WORD - 1, false), "")?;
        let back = builder.build_int_neg(offset, "")?;
        // SAFETY: a getelementptr without `inbounds` makes no promises; the word's other bytes belong to the same
        // memory.
        let pointer = unsafe { builder.build_gep(byte, pointer, &[back], "")? };
        let offset = builder.build_int_truncate(offset, word, "")?;
        let shift = builder.build_left_shift(offset, word.const_int(3, false), "")?;
        let own = builder.build_int_z_extend(own.const_all_ones(), word, "")?;
        let around = builder.build_not(builder.build_left_shift(own, shift, "")?, "")?;
        Ok(Swapped { pointer, word, part: Some((shift, around)) })
    }

    /// Extracts the element's bits from the swapped word.
    fn part_of(&self, word: IntValue<'ctx>, place: &Swapped<'ctx>, element: Scalar) -> Result<IntValue<'ctx>> {
        let Some((shift, _)) = place.part else { return Ok(word) };
        let low = self.builder.build_right_shift(word, shift, false, "")?;
        Ok(self.builder.build_int_truncate(low, self.word_type(element), "")?)
    }

    /// Replaces the element's bits in the word.
    fn with_part(&self, word: IntValue<'ctx>, place: &Swapped<'ctx>, bits: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let Some((shift, around)) = place.part else { return Ok(bits) };
        let bits = self.builder.build_int_z_extend(bits, place.word, "")?;
        let own = self.builder.build_left_shift(bits, shift, "")?;
        Ok(self.builder.build_or(self.builder.build_and(word, around, "")?, own, "")?)
    }

    /// Emits fences around an ordered operation that itself is relaxed.
    pub(crate) fn fenced<T>(&self, order: Order, scope: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
        let fence = |ordering| -> Result<()> {
            self.current()?;
            let (builder, scope) = (self.builder.as_mut_ptr(), self.sync_scope(scope));
            // SAFETY: the builder has a position, and the order is one that a fence can have.
            unsafe { LLVMBuildFenceSyncScope(builder, ordering, scope, c"".as_ptr()) };
            Ok(())
        };
        if order.releases() {
            let strict = order == Order::Sequential;
            fence(if strict { ordering(order) } else { ordering(Order::Release) })?;
        }
        let old = step()?;
        if order.acquires() {
            fence(ordering(Order::Acquire))?;
        }
        Ok(old)
    }

    /// Emits the operation on memory that no other thread accesses at the same time: a plain load and store.
    pub(crate) fn emit_unshared(&self, op: AtomicOp, operands: &[OperandValue<'ctx>]) -> Result<BasicValueEnum<'ctx>> {
        let (pointer, element, values) = parts(op, operands)?;
        let memory = self.cx.types.memory(Type::Scalar(element))?;
        let mut old = self.builder.build_load(memory, pointer, "old")?;
        if element == Scalar::Bool {
            old = self.element_of(int(old)?, element)?;
        }
        let new = self.stepped(op, element, old, values)?;
        self.builder.build_store(pointer, self.to_memory(new)?)?;
        Ok(old)
    }

    /// The new value of an element.
    fn stepped(
        &self,
        op: AtomicOp,
        element: Scalar,
        old: BasicValueEnum<'ctx>,
        values: &[OperandValue<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let builder = &self.builder;
        let (value, other) = match values {
            [value] => (value.value, None),
            [compare, value] => (value.value, Some(compare.value)),
            _ => return internal(format!("{} operands of an atomic {op:?}", values.len())),
        };
        let select = |condition, new, old| Ok(builder.build_select(condition, new, old, "")?);
        match op {
            AtomicOp::Add | AtomicOp::Sub => {
                let op = if op == AtomicOp::Add { BinaryOp::Add } else { BinaryOp::Sub };
                if element.is_half() {
                    return self.half_binary(op, element, old, value);
                }
                Ok(match (old, value, op == BinaryOp::Add) {
                    (BasicValueEnum::FloatValue(old), BasicValueEnum::FloatValue(value), true) => {
                        builder.build_float_add(old, value, "")?.into()
                    }
                    (BasicValueEnum::FloatValue(old), BasicValueEnum::FloatValue(value), false) => {
                        builder.build_float_sub(old, value, "")?.into()
                    }
                    (old, value, true) => builder.build_int_add(int(old)?, int(value)?, "")?.into(),
                    (old, value, false) => builder.build_int_sub(int(old)?, int(value)?, "")?.into(),
                })
            }
            AtomicOp::And => Ok(builder.build_and(int(old)?, int(value)?, "")?.into()),
            AtomicOp::Or => Ok(builder.build_or(int(old)?, int(value)?, "")?.into()),
            AtomicOp::Xor => Ok(builder.build_xor(int(old)?, int(value)?, "")?.into()),
            AtomicOp::Max | AtomicOp::NanMax if !element.is_float() => {
                let name = if element.is_signed_int() { "llvm.smax" } else { "llvm.umax" };
                self.call_intrinsic(name, &[old, value])
            }
            AtomicOp::Min | AtomicOp::NanMin if !element.is_float() => {
                let name = if element.is_signed_int() { "llvm.smin" } else { "llvm.umin" };
                self.call_intrinsic(name, &[old, value])
            }
            AtomicOp::Max | AtomicOp::Min => {
                let beyond = if op == AtomicOp::Max { FloatPredicate::OLT } else { FloatPredicate::OGT };
                let (a, b) = (self.comparable(old, element)?, self.comparable(value, element)?);
                let beyond = builder.build_float_compare(beyond, a, b, "")?;
                select(self.or_beyond_of_zeros(beyond, op == AtomicOp::Max, a, b)?, value, old)
            }
            AtomicOp::NanMax | AtomicOp::NanMin => {
                // Unordered comparison: also true if either operand is a NaN.
                let beyond = if op == AtomicOp::NanMax { FloatPredicate::ULT } else { FloatPredicate::UGT };
                let (a, b) = (self.comparable(old, element)?, self.comparable(value, element)?);
                let beyond = builder.build_float_compare(beyond, a, b, "")?;
                let beyond = self.or_beyond_of_zeros(beyond, op == AtomicOp::NanMax, a, b)?;
                let number = builder.build_float_compare(FloatPredicate::ORD, b, b, "")?;
                select(builder.build_and(beyond, number, "")?, value, old)
            }
            AtomicOp::Inc => {
                let (was, most) = (int(old)?, int(value)?);
                let one = was.get_type().const_int(1, false);
                let wraps = builder.build_int_compare(IntPredicate::UGE, was, most, "")?;
                let next = builder.build_int_add(was, one, "")?;
                select(wraps, was.get_type().const_zero().into(), next.into())
            }
            AtomicOp::Dec => {
                let (was, most) = (int(old)?, int(value)?);
                let ty = was.get_type();
                let ended = builder.build_int_compare(IntPredicate::EQ, was, ty.const_zero(), "")?;
                let beyond = builder.build_int_compare(IntPredicate::UGT, was, most, "")?;
                let wraps = builder.build_or(ended, beyond, "")?;
                select(wraps, value, builder.build_int_sub(was, ty.const_int(1, false), "")?.into())
            }
            AtomicOp::Exchange => Ok(value),
            AtomicOp::Cas => {
                let Some(compare) = other else { return internal("a compare-and-swap without what it compares") };
                let (a, b) = (self.bits(old)?, self.bits(compare)?);
                select(builder.build_int_compare(IntPredicate::EQ, a, b, "")?, value, old)
            }
        }
    }

    /// The comparison of a minimum or maximum. With `reproducible`, -0 is less than +0, so that the bits of the result
    /// do not depend on the order of the threads.
    fn or_beyond_of_zeros(
        &self,
        beyond: IntValue<'ctx>,
        largest: bool,
        old: FloatValue<'ctx>,
        value: FloatValue<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        if !self.cx.options.reproducible {
            return Ok(beyond);
        }
        let builder = &self.builder;
        let equal = builder.build_float_compare(FloatPredicate::OEQ, old, value, "")?;
        // Equal numbers have equal bits, except for zeros.
        let order = if largest { IntPredicate::SLT } else { IntPredicate::SGT };
        let signs = builder.build_int_compare(order, self.bits(old.into())?, self.bits(value.into())?, "")?;
        Ok(builder.build_or(beyond, builder.build_and(equal, signs, "")?, "")?)
    }

    /// `cmpxchg` of words: returns the old value, and whether it was swapped.
    fn compare_and_swap(
        &self,
        pointer: PointerValue<'ctx>,
        (compare, value): (IntValue<'ctx>, IntValue<'ctx>),
        order: Order,
        scope: &str,
    ) -> Result<(IntValue<'ctx>, IntValue<'ctx>)> {
        self.current()?;
        let builder = self.builder.as_mut_ptr();
        let (at, compare, value) = (pointer.as_value_ref(), compare.as_value_ref(), value.as_value_ref());
        let (done, failed, scope) = (ordering(order), ordering_of_failure(order), self.sync_scope(scope));
        // SAFETY: the builder has a position; pointer, compare and value are of one integer type.
        let pair = unsafe { LLVMBuildAtomicCmpXchgSyncScope(builder, at, compare, value, done, failed, scope) };
        // SAFETY: `pair` is the instruction just built: a struct of the old value and a success flag.
        let pair = unsafe { StructValue::new(pair) };
        let field = |index| int(self.builder.build_extract_value(pair, index, "")?);
        Ok((field(0)?, field(1)?))
    }

    fn sync_scope(&self, name: &str) -> u32 {
        let context = self.cx.types.context.as_ctx_ref();
        // SAFETY: the context is alive and the name's length is passed; LLVM copies the name.
        unsafe { LLVMGetSyncScopeID(context, name.as_ptr().cast(), name.len()) }
    }

    /// The integer type of an element's size.
    fn word_type(&self, element: Scalar) -> IntType<'ctx> {
        let context = self.cx.types.context;
        match element {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => context.i8_type(),
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => context.i16_type(),
            Scalar::I32 | Scalar::U32 | Scalar::F32 => context.i32_type(),
            Scalar::I64 | Scalar::U64 | Scalar::F64 => context.i64_type(),
        }
    }

    /// The bits of a value as an integer; a `Bool` has one bit.
    fn bits(&self, value: BasicValueEnum<'ctx>) -> Result<IntValue<'ctx>> {
        let BasicValueEnum::FloatValue(float) = value else { return int(value) };
        let context = self.cx.types.context;
        let ty = if float.get_type() == context.f64_type() {
            context.i64_type()
        } else if float.get_type() == context.f32_type() {
            context.i32_type()
        } else {
            context.i16_type()
        };
        int(self.builder.build_bit_cast(float, ty, "")?)
    }

    /// A value as the integer that represents it in memory.
    fn word(&self, value: BasicValueEnum<'ctx>) -> Result<IntValue<'ctx>> {
        int(self.to_memory(self.bits(value)?.into())?)
    }

    /// The element that an integer represents in memory.
    fn element_of(&self, word: IntValue<'ctx>, element: Scalar) -> Result<BasicValueEnum<'ctx>> {
        if element == Scalar::Bool {
            let zero = word.get_type().const_zero();
            return Ok(self.builder.build_int_compare(IntPredicate::NE, word, zero, "")?.into());
        }
        Ok(self.builder.build_bit_cast(word, self.cx.types.value(Type::Scalar(element))?, "")?)
    }

    /// A value as a float type that can be compared.
    fn comparable(&self, value: BasicValueEnum<'ctx>, element: Scalar) -> Result<FloatValue<'ctx>> {
        if element.is_half() { self.widen(value, element) } else { float(value) }
    }
}

fn ordering(order: Order) -> LLVMAtomicOrdering {
    match order {
        Order::Relaxed => LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
        Order::Acquire => LLVMAtomicOrdering::LLVMAtomicOrderingAcquire,
        Order::Release => LLVMAtomicOrdering::LLVMAtomicOrderingRelease,
        Order::AcquireRelease => LLVMAtomicOrdering::LLVMAtomicOrderingAcquireRelease,
        Order::Sequential => LLVMAtomicOrdering::LLVMAtomicOrderingSequentiallyConsistent,
    }
}

/// The ordering of a compare-and-swap that fails: it only reads, so it cannot release.
fn ordering_of_failure(order: Order) -> LLVMAtomicOrdering {
    match order {
        Order::Relaxed | Order::Release => LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
        Order::Acquire | Order::AcquireRelease => LLVMAtomicOrdering::LLVMAtomicOrderingAcquire,
        Order::Sequential => LLVMAtomicOrdering::LLVMAtomicOrderingSequentiallyConsistent,
    }
}
