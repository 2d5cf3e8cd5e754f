//! Turns of a loop in which the threads of a strip go on along rows of their own: what sixteen turns load is a vector of each row,
//! and these are turned round in registers. What they store is turned round in the same way.

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

/// Threads of a strip, and turns that are taken together.
pub(crate) const WIDTH: u32 = 16;

/// Bytes of the widest vector.
const VECTOR: u32 = 64;

/// As many turns as are few.
const FEW: u32 = 4;

/// So many bytes further on in its row is what the cache is asked for: sixteen rows that lie a power of two apart share the few places of
/// a set, and hardware does not fetch far ahead in so many.
pub(crate) const AHEAD: u32 = 256;

/// What stands in place of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turned<'ctx> {
    /// An element for each thread of the strip.
    Each(ExprId, PointerValue<'ctx>, BasicTypeEnum<'ctx>),
    /// A value for all.
    All(ExprId, BasicValueEnum<'ctx>),
    /// Or of a store: an element for each thread, which stays there until several turns are done.
    Kept(ExprId, PointerValue<'ctx>, BasicTypeEnum<'ctx>),
}

/// Rows that are taken ahead, or stored later.
pub(crate) struct Ahead<'ctx> {
    pub(crate) element: BasicTypeEnum<'ctx>,
    /// Its bytes.
    bytes: u32,
    /// Elements of a vector: those of all turns, or of half of them.
    pub(crate) elements: u32,
    /// By the turn: an element for each thread.
    pub(crate) turns: PointerValue<'ctx>,
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// As many turns of a walk as there are left, sixteen at most.
    pub(crate) fn walked(&mut self, walked: &Walked) -> Result<()> {
        let ty = self.memory_type(walked.counter)?.into_int_type();
        let place = self.emitter.slot(walked.counter)?;
        let counter = self.emitter.builder.build_load(ty, place, "from")?.into_int_value();
        let limit = self.emitter.emit_int(walked.limit)?;
        // There is a turn left, so that the difference is exact as an unsigned integer.
        let left = self.emitter.builder.build_int_sub(limit, counter, "left")?;
        let turns = self.at_most(left, self.int(WIDTH))?;
        if walked.apart.is_empty() && walked.clashes.is_empty() {
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

    /// The smaller one of an unsigned integer and a small one.
    pub(crate) fn at_most(&self, value: IntValue<'ctx>, most: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let int = self.emitter.cx.types.context.i32_type();
        if value.get_type() == int {
            return self.choose("llvm.umin", value, most.into());
        }
        let most = self.emitter.builder.build_int_z_extend(most, value.get_type(), "")?;
        let least = self.choose("llvm.umin", value, most.into())?;
        Ok(self.emitter.builder.build_int_truncate(least, int, "")?)
    }

    /// How many of some turns there are in which no thread is apart: none if what a thread loads and stores may be one memory.
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
            for &apart in &walked.apart {
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

    /// Turns of a walk in which everyone loads everything.
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
        let last = self.before_turns(&walked.kept)?;
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

    /// By the load, then by the store, and by the thread: where its row goes on. Of even distances two threads tell all.
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
                // SAFETY: without `inbounds` an address may be anywhere; it is that of a thread which is there.
                row = unsafe { builder.build_gep(byte, row, &[more], "row")? };
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Between two turns.
    fn step(&mut self, walked: &Walked) -> Result<()> {
        self.emitter.in_step = true;
        self.nodes(&walked.step)?;
        self.emitter.in_step = false;
        Ok(())
    }

    /// Has loads of the present thread give what was taken ahead.
    pub(crate) fn take_turned(&mut self) -> Result<()> {
        for turned in self.turned.clone() {
            let (Turned::Each(id, place, element) | Turned::Kept(id, place, element)) = turned else {
                let Turned::All(load, value) = turned else { return internal("a load that nobody gives") };
                self.emitter.ahead.push((load, value));
                continue;
            };
            let Some(lane) = self.present() else { return internal("a walk in no strip") };
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
        let Some(&first) = load.loads.first() else { return internal("a walk that loads nothing") };
        self.room_of(self.emitter.function.exprs[first].ty)
    }

    /// Room for elements of a type.
    pub(crate) fn room_of(&self, ty: Type) -> Result<Ahead<'ctx>> {
        let element = self.emitter.cx.types.memory(ty)?;
        let bytes = ty.host_bytes() as u32;
        let elements = WIDTH.min(VECTOR / bytes);
        let turns = self.array(element, WIDTH * WIDTH, "turns")?;
        Ok(Ahead { element, bytes, elements, turns })
    }

    /// Takes what so many turns load of all rows. Few turns are left at the end of a row, or are all that it has.
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

    /// Takes what four turns load at most: a part of a vector of each row.
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

    /// Two vectors as one.
    fn joined(&self, a: VectorValue<'ctx>, b: VectorValue<'ctx>) -> Result<VectorValue<'ctx>> {
        let mask: Vec<_> = (0..2 * a.get_type().get_size()).map(|lane| self.int(lane)).collect();
        Ok(self.emitter.builder.build_shuffle_vector(a, b, VectorType::const_vector(&mask), "")?)
    }

    /// Takes what so many turns load of each row, and makes a vector of the threads for each turn of it.
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

    /// Which of some turns come before one.
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
        // SAFETY: without `inbounds` an address may be anywhere; what is not there is not loaded.
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
