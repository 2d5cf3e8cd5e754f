//! Transposed loops in which the lanes of a strip have different trip counts
//! ([`Walked::own_limit`](crate::backend::host::plan::Walked::own_limit)).
//!
//! ```text
//! each[lane] = how many of the next iterations (16 at most) the lane has
//! for j in 0..max over the lanes:
//!     body, for all lanes
//!     for each lane: copy[lane] = live-out value, if j < each[lane]
//! for each lane: live-out value = copy[lane]
//! ```
//!
//! A lane without an iteration computes values in it that are discarded. It loads nothing, because its row is loaded
//! under a mask of its own iterations, and for the same reason it stores nothing. [The
//! plan](crate::backend::host::plan::loops::lane_trip_counts) decides which loops are compiled so.

use inkwell::{
    IntPredicate,
    values::{IntValue, PointerValue, VectorValue},
};

use crate::{
    backend::{
        host::{
            emit::{entry::KernelEmitter, transpose::WIDTH},
            plan::{Segment, Walked},
        },
        llvm::{Result, internal},
    },
    ir::{ExprId, LocalId},
};

/// A number of iterations.
#[derive(Clone, Copy)]
pub(crate) struct Turns<'ctx> {
    /// The number for the strip.
    pub(crate) most: IntValue<'ctx>,
    /// The address of an array with the number for each lane, if the lanes differ.
    pub(crate) each: Option<PointerValue<'ctx>>,
}

/// A local whose value from each lane's own last iteration is preserved.
pub(crate) struct Kept<'ctx> {
    local: LocalId,
    place: PointerValue<'ctx>,
    copy: PointerValue<'ctx>,
    bytes: u64,
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// The number of iterations in which each lane loads, and in which it stores. An absent lane stores in none.
    pub(crate) fn turns_of_each(
        &mut self,
        walked: &Walked,
        turns: IntValue<'ctx>,
    ) -> Result<(Turns<'ctx>, Turns<'ctx>)> {
        let same = Turns { most: turns, each: None };
        if walked.own_limit.is_none() && walked.stores.is_empty() {
            return Ok((same, same));
        }
        let int = turns.get_type();
        let (loaded, stored) = (self.array(int.into(), WIDTH, "loaded")?, self.array(int.into(), WIDTH, "stored")?);
        let last = self.last_lane()?;
        self.lanes_or_last(|this, thread| {
            let own = match walked.own_limit {
                Some(limit) => {
                    this.enter_with(&walked.rows, &walked.rows.load, thread)?;
                    let limit = this.emitter.emit_int(limit)?;
                    let place = this.emitter.slot(walked.counter)?;
                    let builder = &this.emitter.builder;
                    let counter = builder.build_load(limit.get_type(), place, "")?.into_int_value();
                    let has_some = builder.build_int_compare(IntPredicate::SGT, limit, counter, "")?;
                    let own = this.at_most(builder.build_int_sub(limit, counter, "")?, turns)?;
                    this.emitter.builder.build_select(has_some, own, this.int(0), "own")?.into_int_value()
                }
                None => turns,
            };
            let builder = &this.emitter.builder;
            let is_there = builder.build_int_compare(IntPredicate::ULE, thread, last, "")?;
            let there = builder.build_select(is_there, own, this.int(0), "")?;
            for (array, value) in [(loaded, own.into()), (stored, there)] {
                let place = this.element_at(int.into(), array, thread)?;
                this.emitter.builder.build_store(place, value)?;
            }
            Ok(())
        })?;
        let loaded = walked.own_limit.map(|_| loaded);
        Ok((Turns { each: loaded, ..same }, Turns { each: Some(stored), ..same }))
    }

    /// Copies the arrays of live-out values, before iterations that not all lanes have.
    pub(crate) fn before_turns(&self, kept: &[LocalId]) -> Result<Vec<Kept<'ctx>>> {
        let mut copies = Vec::new();
        for &local in kept {
            let place = self.strip.as_ref().and_then(|strip| strip.rows.first()?.places.get(&local).copied());
            let Some(place) = place else {
                return internal("a local that is live across a barrier without an element in its strip");
            };
            let copy = self.array_of(local, WIDTH)?;
            let bytes = u64::from(WIDTH) * self.emitter.function.locals[local].ty.host_bytes();
            self.copy_array(place, copy, bytes)?;
            copies.push(Kept { local, place, copy, bytes });
        }
        Ok(copies)
    }

    /// Updates the copies after an iteration, for the lanes that have the iteration. A select between the values before
    /// and after the iteration would not do: LLVM moves it into the last addition, which is then not fused with a
    /// multiplication.
    pub(crate) fn keep_turn(&mut self, kept: &[Kept<'ctx>], turn: IntValue<'ctx>, turns: Turns<'ctx>) -> Result<()> {
        let Some(each) = turns.each.filter(|_| !kept.is_empty()) else { return Ok(()) };
        let kept: Vec<_> = kept.iter().map(|kept| (kept.local, kept.place, kept.copy)).collect();
        self.lanes(true, |this, _| {
            let Some(lane) = this.present() else { return internal("a strip without a thread") };
            let place = this.element_at(turn.get_type().into(), each, lane)?;
            let builder = &this.emitter.builder;
            let own = builder.build_load(turn.get_type(), place, "")?.into_int_value();
            let has_iteration = builder.build_int_compare(IntPredicate::ULT, turn, own, "")?;
            for &(local, place, copy) in &kept {
                let (place, copy) = (this.lane_of(place, lane, local)?, this.lane_of(copy, lane, local)?);
                let (ty, builder) = (this.memory_type(local)?, &this.emitter.builder);
                let (new, old) = (builder.build_load(ty, place, "")?, builder.build_load(ty, copy, "")?);
                builder.build_store(copy, builder.build_select(has_iteration, new, old, "")?)?;
            }
            Ok(())
        })
    }

    /// Copies the preserved values back to the arrays of live-out values.
    pub(crate) fn after_turns(&self, kept: Vec<Kept<'ctx>>) -> Result<()> {
        kept.into_iter().try_for_each(|Kept { place, copy, bytes, .. }| self.copy_array(copy, place, bytes))
    }

    /// For each lane, the mask of those iterations of `part` that it has.
    pub(crate) fn masks(&self, turns: Turns<'ctx>, part: (u32, u32)) -> Result<Vec<VectorValue<'ctx>>> {
        let Some(each) = turns.each else {
            return Ok(vec![self.before(turns.most, part)?; WIDTH as usize]);
        };
        let int = turns.most.get_type();
        let mut masks = Vec::new();
        for thread in 0..WIDTH {
            let place = self.element_at(int.into(), each, self.int(thread))?;
            let own = self.emitter.builder.build_load(int, place, "")?.into_int_value();
            masks.push(self.before(own, part)?);
        }
        Ok(masks)
    }

    /// Computes the maximum over the lanes of a value, and assigns it to a uniform local.
    pub(crate) fn largest(&mut self, segment: &Segment, (most, value): (LocalId, ExprId)) -> Result<()> {
        let (place, ty) = (self.emitter.slot(most)?, self.memory_type(most)?.into_int_type());
        let sign = 1 << (ty.get_bit_width() - 1);
        self.emitter.builder.build_store(place, ty.const_int(sign, false))?;
        self.lanes_or_last(|this, thread| {
            this.enter_with(segment, &segment.load, thread)?;
            let value = this.emitter.emit_int(value)?;
            let before = this.emitter.builder.build_load(ty, place, "")?;
            let largest = this.choose("llvm.smax", value, before)?;
            this.emitter.builder.build_store(place, largest)?;
            Ok(())
        })
    }
}
