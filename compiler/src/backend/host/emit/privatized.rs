//! Privatized accumulators ([`Privatized`]): a worker has copies of arrays to which its blocks only accumulate.
//!
//! ```text
//! copy[..] = neutral element
//! for block in first..last: copy[i] op= value             (a plain load and store)
//! for i in 0..len:
//!     if copy[i] != neutral: atomic array[i] op= copy[i]
//! ```
//!
//! A copy has the first `len` elements of its array; the kernel accumulates to the others directly. [The
//! plan](crate::backend::host::plan::grid::privatize) decides which arrays qualify.

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use inkwell::{
    IntPredicate,
    types::{IntType, VectorType},
    values::{IntValue, PointerValue},
};

use crate::{
    backend::{
        host::{
            emit::{access_groups::Shape, hooks::step, kernel::KernelEmitter, position::known_offset},
            plan::{COMBINED_ELEMENTS, Privatized},
        },
        llvm::{OperandValue, Result, internal},
    },
    ir::{Order, Space, Type},
};

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Fills the copies with the neutral element.
    pub(crate) fn fill_privatized(&self) -> Result<()> {
        for one in &self.plan.privatized {
            let place = self.copy_of(one)?;
            let ty = self.bits_of(one)?;
            let neutral = ty.const_int(one.accumulation.neutral(one.element), false);
            self.count(one.len, Shape::Loop, |index| {
                // SAFETY: the index is less than the length.
                let at = unsafe { self.emitter.builder.build_in_bounds_gep(ty, place, &[index], "")? };
                self.emitter.builder.build_store(at, neutral)?;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Combines each element that is not neutral with its array, [`COMBINED_ELEMENTS`] elements per test.
    pub(crate) fn take_privatized(&self) -> Result<()> {
        for one in &self.plan.privatized {
            let place = self.copy_of(one)?;
            let array = self.emitter.get_local(one.param)?.into_pointer_value();
            let ty = self.bits_of(one)?;
            let neutral = ty.const_int(one.accumulation.neutral(one.element), false);
            let together = ty.get_context().i64_type().const_int(COMBINED_ELEMENTS, false);
            self.count(one.len / COMBINED_ELEMENTS, Shape::Rolled, |group| {
                let builder = &self.emitter.builder;
                let first = builder.build_int_nuw_mul(group, together, "first")?;
                // SAFETY: the groups consist of the elements of the copy.
                let at = unsafe { builder.build_in_bounds_gep(ty, place, &[first], "")? };
                let vector = ty.vec_type(COMBINED_ELEMENTS as u32);
                let values = builder.build_load(vector, at, "group")?.into_vector_value();
                if let Some(load) = values.as_instruction() {
                    let set = load.set_alignment(one.element.size_bytes() as u32);
                    set.or_else(|error| internal(format!("a load's alignment: {error}")))?;
                }
                let neutrals = VectorType::const_vector(&[neutral; COMBINED_ELEMENTS as usize]);
                let differ = builder.build_int_compare(IntPredicate::NE, values, neutrals, "")?;
                let bits = ty.get_context().i16_type();
                let any = builder.build_bit_cast(differ, bits, "")?.into_int_value();
                let any = builder.build_int_compare(IntPredicate::NE, any, bits.const_zero(), "changed")?;
                let (changed, next) = (self.emitter.block("changed"), self.emitter.block("next_group"));
                builder.build_conditional_branch(any, changed, next)?;
                builder.position_at_end(changed);
                self.count(COMBINED_ELEMENTS, Shape::Rolled, |index| {
                    let index = self.emitter.builder.build_int_nuw_add(first, index, "")?;
                    self.take(one, (place, array), index, neutral)
                })?;
                self.emitter.go(next)?;
                self.emitter.builder.position_at_end(next);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Combines one element with the array by an atomic operation, if it is not neutral.
    fn take(
        &self,
        one: &Privatized,
        (place, array): (PointerValue<'ctx>, PointerValue<'ctx>),
        index: IntValue<'ctx>,
        neutral: IntValue<'ctx>,
    ) -> Result<()> {
        let builder = &self.emitter.builder;
        let (ty, memory) = (neutral.get_type(), self.emitter.cx.types.memory(Type::Scalar(one.element))?);
        // SAFETY: the index is less than the length of the copy.
        let at = unsafe { builder.build_in_bounds_gep(ty, place, &[index], "")? };
        let value = builder.build_load(ty, at, "value")?.into_int_value();
        let differs = builder.build_int_compare(IntPredicate::NE, value, neutral, "")?;
        let (takes, taken) = (self.emitter.block("takes"), self.emitter.block("taken"));
        builder.build_conditional_branch(differs, takes, taken)?;
        builder.position_at_end(takes);
        let value = builder.build_bit_cast(value, memory, "")?;
        // SAFETY: the copy's element has changed, so the program accessed the array's element of this index.
        let element = unsafe { builder.build_in_bounds_gep(memory, array, &[index], "")? };
        let operands = [
            OperandValue { ty: Type::Ptr(one.element, Space::Global), value: element.into() },
            OperandValue { ty: Type::Scalar(one.element), value },
        ];
        step(&self.emitter, one.accumulation.step(), Order::Relaxed, &operands)?;
        self.emitter.go(taken)?;
        self.emitter.builder.position_at_end(taken);
        Ok(())
    }

    /// The address of a copy.
    fn copy_of(&self, one: &Privatized) -> Result<PointerValue<'ctx>> {
        let Some(offset) = self.offsets.shared(one.array) else { return internal("a private copy without an offset") };
        known_offset(&self.emitter, self.hooks.frame.get().scratch, offset)
    }

    /// The integer type of the size of an array's elements.
    fn bits_of(&self, one: &Privatized) -> Result<IntType<'ctx>> {
        let context = self.emitter.cx.types.context;
        match one.element.size_bytes() {
            4 => Ok(context.i32_type()),
            8 => Ok(context.i64_type()),
            bytes => internal(format!("steps on elements of {bytes} bytes in a copy")),
        }
    }

    /// Emits a loop from 0 to `end`, which must not be 0.
    fn count(&self, end: u64, shape: Shape, body: impl FnOnce(IntValue<'ctx>) -> Result<()>) -> Result<()> {
        let builder = &self.emitter.builder;
        let long = self.emitter.cx.types.context.i64_type();
        let before = self.emitter.current()?;
        let [head, behind] = ["count", "counted"].map(|name| self.emitter.block(name));
        builder.build_unconditional_branch(head)?;
        builder.position_at_end(head);
        let index = builder.build_phi(long, "index")?;
        index.add_incoming(&[(&long.const_zero(), before)]);
        let number = index.as_basic_value().into_int_value();
        body(number)?;
        let last = self.emitter.current()?;
        let next = builder.build_int_nuw_add(number, long.const_int(1, false), "")?;
        index.add_incoming(&[(&next, last)]);
        let more = builder.build_int_compare(IntPredicate::ULT, next, long.const_int(end, false), "")?;
        let back = builder.build_conditional_branch(more, head, behind)?;
        self.parallel.promise(head, back, false, shape);
        builder.position_at_end(behind);
        Ok(())
    }
}
