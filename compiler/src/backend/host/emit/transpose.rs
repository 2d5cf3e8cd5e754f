//! Loops in which each lane of a strip traverses a row of its own ([`TransposedRows`]): 16 iterations at a time, with
//! loads and stores transposed in registers.
//!
//! ```text
//! for k in range(n):                      for k in range(0, n, 16):
//!     total += a[i, k]                        for each lane i: row[i] = a[i, k..k + 16]      (one vector)
//!                                             columns = transpose(row)
//!                                             for j in 0..16:
//!                                                 for each lane i: total += columns[j][i]    (one vector)
//! ```
//!
//! The original loop gathers one element from each of 16 rows in each iteration. Here, the loads are contiguous
//! vectors. Iterations remain in order, so sums do not change. The last vectors of a row are loaded under a mask, so
//! nothing is read that the original loop does not read. Stores are collected in the same way and transposed after the
//! iterations (`transposed_stores.rs`). Lanes may have different trip counts (`lane_trip_counts.rs`).
//!
//! [The plan](crate::backend::host::plan::vector::transpose) decides which loops are legal and worth it. Two conditions
//! are tested here, at run time: the addresses of a load and a store that may alias do not conflict, and no lane
//! excludes the next iteration from its loads. If a condition does not hold, one iteration runs lane by lane as in the
//! original loop.

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use inkwell::{
    IntPredicate,
    types::{BasicTypeEnum, VectorType},
    values::{IntValue, PointerValue, VectorValue},
};

use crate::{
    backend::{
        host::{
            emit::{
                kernel::{KernelEmitter, Replacement},
                lane_trip_counts::IterationCounts,
                position::index,
                prefetch::FIRST,
                register_transpose::{PART, WIDTH},
            },
            plan::{TransposedLoad, TransposedRows},
        },
        llvm::{Result, internal},
    },
    ir::{Space, Type},
};

/// Bytes of the widest vector.
const VECTOR: u32 = 64;

/// Up to this number of iterations, only a part of a vector is loaded from each row.
const MAX_PARTIAL_ITERATIONS: u32 = 4;

/// Prefetch distance along a row, in bytes. Sixteen rows at distances of a power of two compete for the few ways of one
/// cache set, and hardware does not prefetch far in 16 streams.
pub(crate) const AHEAD: u32 = 256;

/// An array for the elements of an access in several iterations: loaded before them, or stored after them.
pub(crate) struct RowBuffer<'ctx> {
    pub(crate) element: BasicTypeEnum<'ctx>,
    /// Bytes of an element.
    bytes: u32,
    /// Elements of a vector: those of 16 iterations, or of as many as fit.
    pub(crate) elements: u32,
    /// The address of the array: by iteration, then by lane.
    pub(crate) iterations: PointerValue<'ctx>,
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Emits the remaining iterations of the loop, 16 at most.
    pub(crate) fn transposed_rows(&mut self, transposed: &TransposedRows) -> Result<()> {
        let ty = self.memory_type(transposed.counter)?.into_int_type();
        let place = self.emitter.slot(transposed.counter)?;
        let counter = self.emitter.builder.build_load(ty, place, "from")?.into_int_value();
        let limit = self.emitter.emit_int(transposed.limit)?;
        // At least one iteration remains, so the difference is exact as an unsigned integer.
        let left = self.emitter.builder.build_int_sub(limit, counter, "left")?;
        let iterations = self.at_most(left, self.int(WIDTH))?;
        if transposed.partial.is_empty() && transposed.alias_checks.is_empty() {
            return self.iterations(transposed, iterations);
        }
        let iterations = self.until_excluded(transposed, counter, iterations)?;
        let (none, some) = (self.emitter.block("own_turn"), self.emitter.block("some_turns"));
        let end = self.emitter.block("walked_end");
        let builder = &self.emitter.builder;
        let has_some = builder.build_int_compare(IntPredicate::NE, iterations, self.int(0), "")?;
        builder.build_conditional_branch(has_some, some, none)?;
        builder.position_at_end(none);
        self.one_by_one(|this| this.nodes(&transposed.nodes))?;
        self.step(transposed)?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(some);
        self.iterations(transposed, iterations)?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// The minimum of an unsigned integer and a small `i32`, as an `i32`.
    pub(crate) fn at_most(&self, value: IntValue<'ctx>, most: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let int = self.emitter.cx.types.context.i32_type();
        if value.get_type() == int {
            return self.choose("llvm.umin", value, most.into());
        }
        let most = self.emitter.builder.build_int_z_extend(most, value.get_type(), "")?;
        let least = self.choose("llvm.umin", value, most.into())?;
        Ok(self.emitter.builder.build_int_truncate(least, int, "")?)
    }

    /// The number of iterations, `iterations` at most, before the first one in which a lane does not load every
    /// element. 0 if loads and stores of a lane may alias.
    fn until_excluded(
        &mut self,
        transposed: &TransposedRows,
        counter: IntValue<'ctx>,
        iterations: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        let until = self.array(iterations.get_type().into(), 1, "until")?;
        self.emitter.builder.build_store(until, iterations)?;
        self.lanes_or_last(|this, thread| {
            this.enter_with(&transposed.rows, &transposed.rows.load, thread)?;
            for &excluded in &transposed.partial {
                let excluded = this.emitter.emit_int(excluded)?;
                let builder = &this.emitter.builder;
                let counter = if counter.get_type() == excluded.get_type() {
                    counter
                } else {
                    builder.build_int_s_extend(counter, excluded.get_type(), "")?
                };
                let left = builder.build_int_sub(excluded, counter, "")?;
                let before = builder.build_load(iterations.get_type(), until, "")?.into_int_value();
                let least = this.at_most(left, before)?;
                this.emitter.builder.build_store(until, least)?;
            }
            for clash in &transposed.alias_checks {
                let alias_checks = this.clash(clash)?;
                let builder = &this.emitter.builder;
                let before = builder.build_load(iterations.get_type(), until, "")?.into_int_value();
                let least = builder.build_select(alias_checks, this.int(0), before, "")?;
                builder.build_store(until, least)?;
            }
            Ok(())
        })?;
        Ok(self.emitter.builder.build_load(iterations.get_type(), until, "")?.into_int_value())
    }

    /// Emits iterations in which all lanes load all elements.
    fn iterations(&mut self, transposed: &TransposedRows, iterations: IntValue<'ctx>) -> Result<()> {
        let mut ahead = Vec::new();
        for load in &transposed.loads {
            ahead.push(self.room_for(load)?);
        }
        let kept = transposed.stores.iter().map(|store| self.room_for_store(store)).collect::<Result<Vec<_>>>()?;
        let rows = self.rows_of(transposed)?;
        let (rows, places) = rows.split_at(ahead.len());
        let (loaded, stored) = self.lane_iteration_counts(transposed, iterations)?;
        if !ahead.is_empty() {
            self.take_all(&ahead, rows, loaded)?;
        }
        let last = self.copy_live_out(&transposed.last_values)?;
        self.counted("turn", (self.int(0), iterations), |this, iteration| {
            this.replacements.clear();
            for (load, ahead) in transposed.loads.iter().zip(&ahead) {
                let first = this.emitter.builder.build_int_nuw_mul(iteration, this.int(WIDTH), "")?;
                let place = this.element_at(ahead.element, ahead.iterations, first)?;
                this.replacements.extend(load.loads.iter().map(|&id| Replacement::PerLane(id, place, ahead.element)));
            }
            for (store, kept) in transposed.stores.iter().zip(&kept) {
                let first = this.emitter.builder.build_int_nuw_mul(iteration, this.int(WIDTH), "")?;
                let place = this.element_at(kept.element, kept.iterations, first)?;
                let ids = store.pointers.iter().chain(&store.reads);
                this.replacements.extend(ids.map(|&id| Replacement::Stored(id, place, kept.element)));
            }
            for &(load, once) in &transposed.uniform_loads {
                let value = this.emitter.emit_expr(once)?;
                this.replacements.push(Replacement::Uniform(load, value));
            }
            if transposed.unmasked {
                this.unmasked(|this| this.nodes(&transposed.unconditional))?;
            } else {
                this.nodes(&transposed.unconditional)?;
            }
            this.replacements.clear();
            this.update_live_out(&last, iteration, loaded)?;
            this.step(transposed)
        })?;
        self.restore_live_out(last)?;
        kept.iter().zip(places).try_for_each(|(kept, rows)| self.put_rows(kept, rows, stored))
    }

    /// The addresses at which the rows continue, by access (loads before stores) and by lane. If the lanes' rows are at
    /// equal distances in all accesses, only two lanes compute their addresses, and the others follow from these.
    fn rows_of(&mut self, transposed: &TransposedRows) -> Result<Vec<Vec<PointerValue<'ctx>>>> {
        let loads = transposed.loads.iter().map(|load| (load.pointer, load.uniform_stride));
        let all: Vec<_> =
            loads.chain(transposed.stores.iter().map(|store| (store.pointer, store.uniform_stride))).collect();
        let mut rows = vec![Vec::new(); all.len()];
        let lanes = if all.iter().all(|(_, uniform_stride)| *uniform_stride) { 2 } else { WIDTH };
        self.first_lanes_or_last(lanes, |this, lane| {
            this.enter_with(&transposed.rows, &transposed.rows.load, lane)?;
            for (&(pointer, _), rows) in all.iter().zip(&mut rows) {
                rows.push(this.emitter.emit_pointer(pointer)?);
            }
            Ok(())
        })?;
        if lanes == WIDTH {
            return Ok(rows);
        }
        let there = self.lanes_there()?;
        let (byte, long) = (self.emitter.cx.types.context.i8_type(), self.emitter.cx.types.context.i64_type());
        for rows in &mut rows {
            let [first, second] = *rows.as_slice() else { return internal("two threads without two rows") };
            let builder = &self.emitter.builder;
            let from = builder.build_ptr_to_int(first, long, "")?;
            let by = builder.build_int_sub(builder.build_ptr_to_int(second, long, "")?, from, "apart")?;
            let mut row = second;
            for &is_there in there.iter().skip(2) {
                let more = builder.build_select(is_there, by, long.const_zero(), "")?.into_int_value();
                // SAFETY: without `inbounds`, a getelementptr may compute any address. This one is a lane's that is
                // present.
                row = unsafe { builder.build_gep(byte, row, &[more], "row")? };
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Emits the step of the loop.
    fn step(&mut self, transposed: &TransposedRows) -> Result<()> {
        self.emitter.in_step = true;
        self.nodes(&transposed.step)?;
        self.emitter.in_step = false;
        Ok(())
    }

    /// Registers the replacements of loads and stores for the current lane.
    pub(crate) fn take_replacements(&mut self) -> Result<()> {
        for replacement in self.replacements.clone() {
            let (Replacement::PerLane(id, place, element) | Replacement::Stored(id, place, element)) = replacement
            else {
                let Replacement::Uniform(load, value) = replacement else {
                    return internal("a load without a value");
                };
                self.emitter.ahead.push((load, value));
                continue;
            };
            let Some(lane) = self.present() else { return internal("a transposed access in no strip") };
            let place = self.element_at(element, place, lane)?;
            if matches!(replacement, Replacement::Stored(..)) {
                self.emitter.elsewhere.push((id, place));
            } else {
                let value = self.emitter.builder.build_load(element, place, "walked")?;
                self.emitter.ahead.push((id, value));
            }
        }
        Ok(())
    }

    fn room_for(&self, load: &TransposedLoad) -> Result<RowBuffer<'ctx>> {
        let Some(&first) = load.loads.first() else { return internal("a transposed access without a load") };
        self.room_of(self.emitter.function.exprs[first].ty)
    }

    /// Allocates the array for an access to elements of a type.
    pub(crate) fn room_of(&self, ty: Type) -> Result<RowBuffer<'ctx>> {
        let element = self.emitter.cx.types.memory(ty)?;
        let bytes = ty.host_bytes() as u32;
        let elements = WIDTH.min(VECTOR / bytes);
        let iterations = self.array(element, WIDTH * WIDTH, "turns")?;
        Ok(RowBuffer { element, bytes, elements, iterations })
    }

    /// Loads the elements of `iterations` iterations, for all accesses. There is a copy for few iterations, which occur
    /// at the end of a row and in short rows.
    fn take_all(
        &mut self,
        ahead: &[RowBuffer<'ctx>],
        rows: &[Vec<PointerValue<'ctx>>],
        iterations: IterationCounts<'ctx>,
    ) -> Result<()> {
        let take = |this: &mut Self| {
            ahead.iter().zip(rows).try_for_each(|(ahead, rows)| this.take_rows(ahead, rows, iterations))
        };
        if !ahead.iter().all(|ahead| ahead.elements == WIDTH && ahead.bytes * MAX_PARTIAL_ITERATIONS == PART) {
            return take(self);
        }
        let (few, many) = (self.emitter.block("few_turns"), self.emitter.block("many_turns"));
        let end = self.emitter.block("rows_taken");
        let builder = &self.emitter.builder;
        let is_few =
            builder.build_int_compare(IntPredicate::ULE, iterations.most, self.int(MAX_PARTIAL_ITERATIONS), "")?;
        builder.build_conditional_branch(is_few, few, many)?;
        builder.position_at_end(few);
        for (ahead, rows) in ahead.iter().zip(rows) {
            self.take_few(ahead, rows, iterations)?;
        }
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(many);
        take(self)?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// Loads what [`MAX_PARTIAL_ITERATIONS`] iterations load at most: a part of a vector from each row.
    fn take_few(
        &mut self,
        ahead: &RowBuffer<'ctx>,
        rows: &[PointerValue<'ctx>],
        iterations: IterationCounts<'ctx>,
    ) -> Result<()> {
        let part = vector_of(ahead.element, MAX_PARTIAL_ITERATIONS)?;
        let pointer = self.emitter.cx.types.pointer(Space::Global);
        let load = self.emitter.cx.intrinsic("llvm.masked.load", &[part.into(), pointer.into()])?;
        let masks = self.masks(iterations, (0, MAX_PARTIAL_ITERATIONS))?;
        let mut taken = Vec::new();
        for (row, mask) in rows.iter().zip(masks) {
            let args = [(*row).into(), mask.into(), part.const_zero().into()];
            let value = self.emitter.builder.build_call(load, &args, "")?.try_as_basic_value();
            let Some(value) = value.basic() else { return internal("a masked load without a value") };
            taken.push(value.into_vector_value());
        }
        let mut square = Vec::new();
        for first in taken.iter().take(MAX_PARTIAL_ITERATIONS as usize).enumerate() {
            let every: Vec<_> = taken.iter().skip(first.0).step_by(MAX_PARTIAL_ITERATIONS as usize).copied().collect();
            let [a, b, c, d] = every.as_slice() else { return internal("rows that do not come by fours") };
            let (low, high) = (self.joined(*a, *b)?, self.joined(*c, *d)?);
            square.push(self.joined(low, high)?);
        }
        for (iteration, column) in (0..).zip(self.transposed(square)?) {
            let place = self.element_at(ahead.element, ahead.iterations, self.int(iteration * WIDTH))?;
            self.emitter.builder.build_store(place, column)?;
        }
        Ok(())
    }

    /// Concatenates two vectors.
    fn joined(&self, a: VectorValue<'ctx>, b: VectorValue<'ctx>) -> Result<VectorValue<'ctx>> {
        let mask: Vec<_> = (0..2 * a.get_type().get_size()).map(|lane| self.int(lane)).collect();
        Ok(self.emitter.builder.build_shuffle_vector(a, b, VectorType::const_vector(&mask), "")?)
    }

    /// Loads the elements of `iterations` iterations from each row, and transposes it: one vector of lanes for each
    /// iteration.
    fn take_rows(
        &mut self,
        ahead: &RowBuffer<'ctx>,
        rows: &[PointerValue<'ctx>],
        iterations: IterationCounts<'ctx>,
    ) -> Result<()> {
        let (n, vector) = (ahead.elements, vector_of(ahead.element, ahead.elements)?);
        let pointer = self.emitter.cx.types.pointer(Space::Global);
        let byte = self.emitter.cx.types.context.i8_type().into();
        let load = self.emitter.cx.intrinsic("llvm.masked.load", &[vector.into(), pointer.into()])?;
        for from in (0..WIDTH).step_by(n as usize) {
            let masks = self.masks(iterations, (from, n))?;
            for threads in (0..WIDTH).step_by(n as usize) {
                let mut square = Vec::new();
                for (&row, mask) in rows.iter().zip(&masks).skip(threads as usize).take(n as usize) {
                    let place = self.element_at(ahead.element, row, self.int(from))?;
                    self.prefetch(self.element_at(byte, place, self.int(AHEAD))?, FIRST)?;
                    let args = [place.into(), (*mask).into(), vector.const_zero().into()];
                    let value = self.emitter.builder.build_call(load, &args, "")?.try_as_basic_value();
                    let Some(value) = value.basic() else { return internal("a masked load without a value") };
                    square.push(value.into_vector_value());
                }
                for (iteration, column) in (from..).zip(self.transposed(square)?) {
                    let place =
                        self.element_at(ahead.element, ahead.iterations, self.int(iteration * WIDTH + threads))?;
                    self.emitter.builder.build_store(place, column)?;
                }
            }
        }
        Ok(())
    }

    /// A mask with an element for each of `iterations` iterations from `from` on: whether it precedes `iteration`.
    pub(crate) fn before(
        &self,
        iteration: IntValue<'ctx>,
        (from, iterations): (u32, u32),
    ) -> Result<VectorValue<'ctx>> {
        let (builder, zero) = (&self.emitter.builder, self.int(0));
        let one = iteration.get_type().vec_type(1);
        let one = builder.build_insert_element(one.get_poison(), iteration, zero, "")?;
        let mask = VectorType::const_vector(&vec![zero; iterations as usize]);
        let all = builder.build_shuffle_vector(one, one.get_type().get_poison(), mask, "")?;
        let numbers: Vec<_> = (from..from + iterations).map(|number| self.int(number)).collect();
        Ok(builder.build_int_compare(IntPredicate::ULT, VectorType::const_vector(&numbers), all, "")?)
    }

    pub(crate) fn element_at(
        &self,
        element: BasicTypeEnum<'ctx>,
        base: PointerValue<'ctx>,
        at: IntValue<'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        let at = index(&self.emitter, at)?;
        // SAFETY: without `inbounds`, a getelementptr may compute any address. Elements out of bounds are masked off.
        Ok(unsafe { self.emitter.builder.build_gep(element, base, &[at], "")? })
    }
}

pub(crate) fn vector_of(element: BasicTypeEnum<'_>, lanes: u32) -> Result<VectorType<'_>> {
    Ok(match element {
        BasicTypeEnum::IntType(int) => int.vec_type(lanes),
        BasicTypeEnum::FloatType(float) => float.vec_type(lanes),
        other @ (BasicTypeEnum::ArrayType(_)
        | BasicTypeEnum::PointerType(_)
        | BasicTypeEnum::StructType(_)
        | BasicTypeEnum::VectorType(_)
        | BasicTypeEnum::ScalableVectorType(_)) => return internal(format!("a row of {other}")),
    })
}
