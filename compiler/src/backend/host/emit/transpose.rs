//! Loops in which each lane of a strip traverses a row of its own ([`Walked`]): 16 iterations at a time, with loads and
//! stores transposed in registers.
//!
//! ```text
//! for k in range(n):                      for k in range(0, n, 16):
//!     total += a[i, k]                        for each lane i: row[i] = a[i, k..k + 16]      (one vector)
//!                                             turns = transpose(row)
//!                                             for j in 0..16:
//!                                                 for each lane i: total += turns[j][i]      (one vector)
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
    values::{BasicValueEnum, IntValue, PointerValue, VectorValue},
};

use crate::{
    backend::{
        host::{
            emit::{
                entry::KernelEmitter, hooks::index, lane_trip_counts::Turns, prefetch::FIRST, register_transpose::PART,
            },
            plan::{Walked, WalkedLoad},
        },
        llvm::{Result, internal},
    },
    ir::{ExprId, Space, Type},
};

/// Lanes of a strip, and the number of iterations that are loaded at a time.
pub(crate) const WIDTH: u32 = 16;

/// Bytes of the widest vector.
const VECTOR: u32 = 64;

/// Up to this number of iterations, only a part of a vector is loaded from each row.
const FEW: u32 = 4;

/// Prefetch distance along a row, in bytes. Sixteen rows at distances of a power of two compete for the few ways of one
/// cache set, and hardware does not prefetch far in 16 streams.
pub(crate) const AHEAD: u32 = 256;

/// The replacement of a load or a store in an iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turned<'ctx> {
    /// Of a load: the element of each lane.
    Each(ExprId, PointerValue<'ctx>, BasicTypeEnum<'ctx>),
    /// Of a load: one value for all lanes.
    All(ExprId, BasicValueEnum<'ctx>),
    /// Of a store, or of a load of what it stores: the element of each lane, which is stored after the iterations.
    Kept(ExprId, PointerValue<'ctx>, BasicTypeEnum<'ctx>),
}

/// An array for the elements of an access in several iterations: loaded before them, or stored after them.
pub(crate) struct Ahead<'ctx> {
    pub(crate) element: BasicTypeEnum<'ctx>,
    /// Bytes of an element.
    bytes: u32,
    /// Elements of a vector: those of 16 iterations, or of as many as fit.
    pub(crate) elements: u32,
    /// The address of the array: by iteration, then by lane.
    pub(crate) turns: PointerValue<'ctx>,
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Emits the remaining iterations of the loop, 16 at most.
    pub(crate) fn walked(&mut self, walked: &Walked) -> Result<()> {
        let ty = self.memory_type(walked.counter)?.into_int_type();
        let place = self.emitter.slot(walked.counter)?;
        let counter = self.emitter.builder.build_load(ty, place, "from")?.into_int_value();
        let limit = self.emitter.emit_int(walked.limit)?;
        // At least one iteration remains, so the difference is exact as an unsigned integer.
        let left = self.emitter.builder.build_int_sub(limit, counter, "left")?;
        let turns = self.at_most(left, self.int(WIDTH))?;
        if walked.partial.is_empty() && walked.clashes.is_empty() {
            return self.turns(walked, turns);
        }
        let turns = self.until_apart(walked, counter, turns)?;
        let (none, some) = (self.emitter.block("own_turn"), self.emitter.block("some_turns"));
        let end = self.emitter.block("walked_end");
        let builder = &self.emitter.builder;
        let has_some = builder.build_int_compare(IntPredicate::NE, turns, self.int(0), "")?;
        builder.build_conditional_branch(has_some, some, none)?;
        builder.position_at_end(none);
        self.one_by_one(|this| this.nodes(&walked.nodes))?;
        self.step(walked)?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(some);
        self.turns(walked, turns)?;
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

    /// The number of iterations, `turns` at most, before the first one in which a lane does not load every element. 0
    /// if loads and stores of a lane may alias.
    fn until_apart(
        &mut self,
        walked: &Walked,
        counter: IntValue<'ctx>,
        turns: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        let until = self.array(turns.get_type().into(), 1, "until")?;
        self.emitter.builder.build_store(until, turns)?;
        self.lanes_or_last(|this, thread| {
            this.enter_with(&walked.rows, &walked.rows.load, thread)?;
            for &apart in &walked.partial {
                let apart = this.emitter.emit_int(apart)?;
                let builder = &this.emitter.builder;
                let counter = if counter.get_type() == apart.get_type() {
                    counter
                } else {
                    builder.build_int_s_extend(counter, apart.get_type(), "")?
                };
                let left = builder.build_int_sub(apart, counter, "")?;
                let before = builder.build_load(turns.get_type(), until, "")?.into_int_value();
                let least = this.at_most(left, before)?;
                this.emitter.builder.build_store(until, least)?;
            }
            for clash in &walked.clashes {
                let clashes = this.clash(clash)?;
                let builder = &this.emitter.builder;
                let before = builder.build_load(turns.get_type(), until, "")?.into_int_value();
                let least = builder.build_select(clashes, this.int(0), before, "")?;
                builder.build_store(until, least)?;
            }
            Ok(())
        })?;
        Ok(self.emitter.builder.build_load(turns.get_type(), until, "")?.into_int_value())
    }

    /// Emits iterations in which all lanes load all elements.
    fn turns(&mut self, walked: &Walked, turns: IntValue<'ctx>) -> Result<()> {
        let mut ahead = Vec::new();
        for load in &walked.loads {
            ahead.push(self.room_for(load)?);
        }
        let kept = walked.stores.iter().map(|store| self.room_for_store(store)).collect::<Result<Vec<_>>>()?;
        let rows = self.rows_of(walked)?;
        let (rows, places) = rows.split_at(ahead.len());
        let (loaded, stored) = self.turns_of_each(walked, turns)?;
        if !ahead.is_empty() {
            self.take_all(&ahead, rows, loaded)?;
        }
        let last = self.before_turns(&walked.last_values)?;
        self.counted("turn", (self.int(0), turns), |this, turn| {
            this.turned.clear();
            for (load, ahead) in walked.loads.iter().zip(&ahead) {
                let first = this.emitter.builder.build_int_nuw_mul(turn, this.int(WIDTH), "")?;
                let place = this.element_at(ahead.element, ahead.turns, first)?;
                this.turned.extend(load.loads.iter().map(|&id| Turned::Each(id, place, ahead.element)));
            }
            for (store, kept) in walked.stores.iter().zip(&kept) {
                let first = this.emitter.builder.build_int_nuw_mul(turn, this.int(WIDTH), "")?;
                let place = this.element_at(kept.element, kept.turns, first)?;
                let ids = store.pointers.iter().chain(&store.reads);
                this.turned.extend(ids.map(|&id| Turned::Kept(id, place, kept.element)));
            }
            for &(load, once) in &walked.once {
                let value = this.emitter.emit_expr(once)?;
                this.turned.push(Turned::All(load, value));
            }
            if walked.unasked {
                this.unasked(|this| this.nodes(&walked.plain))?;
            } else {
                this.nodes(&walked.plain)?;
            }
            this.turned.clear();
            this.keep_turn(&last, turn, loaded)?;
            this.step(walked)
        })?;
        self.after_turns(last)?;
        kept.iter().zip(places).try_for_each(|(kept, rows)| self.put_rows(kept, rows, stored))
    }

    /// The addresses at which the rows continue, by access (loads before stores) and by lane. If the lanes' rows are at
    /// equal distances in all accesses, only two lanes compute their addresses, and the others follow from these.
    fn rows_of(&mut self, walked: &Walked) -> Result<Vec<Vec<PointerValue<'ctx>>>> {
        let loads = walked.loads.iter().map(|load| (load.pointer, load.even));
        let all: Vec<_> = loads.chain(walked.stores.iter().map(|store| (store.pointer, store.even))).collect();
        let mut rows = vec![Vec::new(); all.len()];
        let lanes = if all.iter().all(|(_, even)| *even) { 2 } else { WIDTH };
        self.first_lanes_or_last(lanes, |this, lane| {
            this.enter_with(&walked.rows, &walked.rows.load, lane)?;
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
    fn step(&mut self, walked: &Walked) -> Result<()> {
        self.emitter.in_step = true;
        self.nodes(&walked.step)?;
        self.emitter.in_step = false;
        Ok(())
    }

    /// Registers the replacements of loads and stores for the current lane.
    pub(crate) fn take_turned(&mut self) -> Result<()> {
        for turned in self.turned.clone() {
            let (Turned::Each(id, place, element) | Turned::Kept(id, place, element)) = turned else {
                let Turned::All(load, value) = turned else { return internal("a load without a value") };
                self.emitter.ahead.push((load, value));
                continue;
            };
            let Some(lane) = self.present() else { return internal("a transposed access in no strip") };
            let place = self.element_at(element, place, lane)?;
            if matches!(turned, Turned::Kept(..)) {
                self.emitter.elsewhere.push((id, place));
            } else {
                let value = self.emitter.builder.build_load(element, place, "walked")?;
                self.emitter.ahead.push((id, value));
            }
        }
        Ok(())
    }

    fn room_for(&self, load: &WalkedLoad) -> Result<Ahead<'ctx>> {
        let Some(&first) = load.loads.first() else { return internal("a transposed access without a load") };
        self.room_of(self.emitter.function.exprs[first].ty)
    }

    /// Allocates the array for an access to elements of a type.
    pub(crate) fn room_of(&self, ty: Type) -> Result<Ahead<'ctx>> {
        let element = self.emitter.cx.types.memory(ty)?;
        let bytes = ty.host_bytes() as u32;
        let elements = WIDTH.min(VECTOR / bytes);
        let turns = self.array(element, WIDTH * WIDTH, "turns")?;
        Ok(Ahead { element, bytes, elements, turns })
    }

    /// Loads what `turns` iterations load, for all accesses. There is a copy for few iterations, which occur at the end
    /// of a row and in short rows.
    fn take_all(&mut self, ahead: &[Ahead<'ctx>], rows: &[Vec<PointerValue<'ctx>>], turns: Turns<'ctx>) -> Result<()> {
        let take =
            |this: &mut Self| ahead.iter().zip(rows).try_for_each(|(ahead, rows)| this.take_rows(ahead, rows, turns));
        if !ahead.iter().all(|ahead| ahead.elements == WIDTH && ahead.bytes * FEW == PART) {
            return take(self);
        }
        let (few, many) = (self.emitter.block("few_turns"), self.emitter.block("many_turns"));
        let end = self.emitter.block("rows_taken");
        let builder = &self.emitter.builder;
        let is_few = builder.build_int_compare(IntPredicate::ULE, turns.most, self.int(FEW), "")?;
        builder.build_conditional_branch(is_few, few, many)?;
        builder.position_at_end(few);
        for (ahead, rows) in ahead.iter().zip(rows) {
            self.take_few(ahead, rows, turns)?;
        }
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(many);
        take(self)?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// Loads what [`FEW`] iterations load at most: a part of a vector from each row.
    fn take_few(&mut self, ahead: &Ahead<'ctx>, rows: &[PointerValue<'ctx>], turns: Turns<'ctx>) -> Result<()> {
        let part = vector_of(ahead.element, FEW)?;
        let pointer = self.emitter.cx.types.pointer(Space::Global);
        let load = self.emitter.cx.intrinsic("llvm.masked.load", &[part.into(), pointer.into()])?;
        let masks = self.masks(turns, (0, FEW))?;
        let mut taken = Vec::new();
        for (row, mask) in rows.iter().zip(masks) {
            let args = [(*row).into(), mask.into(), part.const_zero().into()];
            let value = self.emitter.builder.build_call(load, &args, "")?.try_as_basic_value();
            let Some(value) = value.basic() else { return internal("a masked load without a value") };
            taken.push(value.into_vector_value());
        }
        let mut square = Vec::new();
        for first in taken.iter().take(FEW as usize).enumerate() {
            let every: Vec<_> = taken.iter().skip(first.0).step_by(FEW as usize).copied().collect();
            let [a, b, c, d] = every.as_slice() else { return internal("rows that do not come by fours") };
            let (low, high) = (self.joined(*a, *b)?, self.joined(*c, *d)?);
            square.push(self.joined(low, high)?);
        }
        for (turn, column) in (0..).zip(self.transposed(square)?) {
            let place = self.element_at(ahead.element, ahead.turns, self.int(turn * WIDTH))?;
            self.emitter.builder.build_store(place, column)?;
        }
        Ok(())
    }

    /// Concatenates two vectors.
    fn joined(&self, a: VectorValue<'ctx>, b: VectorValue<'ctx>) -> Result<VectorValue<'ctx>> {
        let mask: Vec<_> = (0..2 * a.get_type().get_size()).map(|lane| self.int(lane)).collect();
        Ok(self.emitter.builder.build_shuffle_vector(a, b, VectorType::const_vector(&mask), "")?)
    }

    /// Loads what `turns` iterations load from each row, and transposes it: one vector of lanes for each iteration.
    fn take_rows(&mut self, ahead: &Ahead<'ctx>, rows: &[PointerValue<'ctx>], turns: Turns<'ctx>) -> Result<()> {
        let (n, vector) = (ahead.elements, vector_of(ahead.element, ahead.elements)?);
        let pointer = self.emitter.cx.types.pointer(Space::Global);
        let byte = self.emitter.cx.types.context.i8_type().into();
        let load = self.emitter.cx.intrinsic("llvm.masked.load", &[vector.into(), pointer.into()])?;
        for from in (0..WIDTH).step_by(n as usize) {
            let masks = self.masks(turns, (from, n))?;
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
                for (turn, column) in (from..).zip(self.transposed(square)?) {
                    let place = self.element_at(ahead.element, ahead.turns, self.int(turn * WIDTH + threads))?;
                    self.emitter.builder.build_store(place, column)?;
                }
            }
        }
        Ok(())
    }

    /// A mask with an element for each of `turns` iterations from `from` on: whether it precedes iteration `turn`.
    pub(crate) fn before(&self, turn: IntValue<'ctx>, (from, turns): (u32, u32)) -> Result<VectorValue<'ctx>> {
        let (builder, zero) = (&self.emitter.builder, self.int(0));
        let one = turn.get_type().vec_type(1);
        let one = builder.build_insert_element(one.get_poison(), turn, zero, "")?;
        let mask = VectorType::const_vector(&vec![zero; turns as usize]);
        let all = builder.build_shuffle_vector(one, one.get_type().get_poison(), mask, "")?;
        let numbers: Vec<_> = (from..from + turns).map(|number| self.int(number)).collect();
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
