//! Transposed loops in which the lanes of a strip have different trip counts
//! ([`TransposedRows::lane_limit`](crate::backend::host::plan::TransposedRows::lane_limit)).
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
//! plan](crate::backend::host::plan::loops::interchange) decides which loops are compiled so.

use inkwell::{
    IntPredicate,
    values::{IntValue, PointerValue, VectorValue},
};

use crate::{
    backend::{
        host::{
            emit::{kernel::KernelEmitter, register_transpose::WIDTH},
            plan::{Segment, TransposedRows},
        },
        llvm::{Result, internal},
    },
    ir::{ExprId, LocalId},
};

/// A number of iterations.
#[derive(Clone, Copy)]
pub(crate) struct IterationCounts<'ctx> {
    /// The number for the strip.
    pub(crate) most: IntValue<'ctx>,
    /// The address of an array with the number for each lane, if the lanes differ.
    pub(crate) per_lane: Option<PointerValue<'ctx>>,
}

/// A local whose value from each lane's own last iteration is preserved.
pub(crate) struct PreservedLocal<'ctx> {
    local: LocalId,
    place: PointerValue<'ctx>,
    copy: PointerValue<'ctx>,
    bytes: u64,
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// The number of iterations in which each lane loads, and in which it stores. An absent lane stores in none.
    pub(crate) fn lane_iteration_counts(
        &mut self,
        transposed: &TransposedRows,
        iterations: IntValue<'ctx>,
    ) -> Result<(IterationCounts<'ctx>, IterationCounts<'ctx>)> {
        let same = IterationCounts { most: iterations, per_lane: None };
        if transposed.lane_limit.is_none() && transposed.stores.is_empty() {
            return Ok((same, same));
        }
        let int = iterations.get_type();
        let (loaded, stored) = (self.array(int.into(), WIDTH, "loaded")?, self.array(int.into(), WIDTH, "stored")?);
        let last = self.last_lane()?;
        self.lanes_or_last(|this, thread| {
            let own = match transposed.lane_limit {
                Some(limit) => {
                    this.enter_with(&transposed.rows, &transposed.rows.load, thread)?;
                    let limit = this.emitter.emit_int(limit)?;
                    let place = this.emitter.slot(transposed.counter)?;
                    let builder = &this.emitter.builder;
                    let counter = builder.build_load(limit.get_type(), place, "")?.into_int_value();
                    let has_some = builder.build_int_compare(IntPredicate::SGT, limit, counter, "")?;
                    let own = this.at_most(builder.build_int_sub(limit, counter, "")?, iterations)?;
                    this.emitter.builder.build_select(has_some, own, this.int(0), "own")?.into_int_value()
                }
                None => iterations,
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
        let loaded = transposed.lane_limit.map(|_| loaded);
        Ok((IterationCounts { per_lane: loaded, ..same }, IterationCounts { per_lane: Some(stored), ..same }))
    }

    /// Copies the arrays of live-out values, before iterations that not all lanes have.
    pub(crate) fn copy_live_out(&self, kept: &[LocalId]) -> Result<Vec<PreservedLocal<'ctx>>> {
        let mut copies = Vec::new();
        for &local in kept {
            let place = self.strip.as_ref().and_then(|strip| strip.rows.first()?.places.get(&local).copied());
            let Some(place) = place else {
                return internal("a local that is live across a barrier without an element in its strip");
            };
            let copy = self.array_of(local, WIDTH)?;
            let bytes = u64::from(WIDTH) * self.emitter.function.locals[local].ty.host_bytes();
            self.copy_array(place, copy, bytes)?;
            copies.push(PreservedLocal { local, place, copy, bytes });
        }
        Ok(copies)
    }

    /// Updates the copies after an iteration, for the lanes that have the iteration. A select between the values before
    /// and after the iteration would not do: LLVM moves it into the last addition, which is then not fused with a
    /// multiplication.
    pub(crate) fn update_live_out(
        &mut self,
        kept: &[PreservedLocal<'ctx>],
        iteration: IntValue<'ctx>,
        iterations: IterationCounts<'ctx>,
    ) -> Result<()> {
        let Some(per_lane) = iterations.per_lane.filter(|_| !kept.is_empty()) else { return Ok(()) };
        let kept: Vec<_> = kept.iter().map(|kept| (kept.local, kept.place, kept.copy)).collect();
        self.lanes(true, |this, _| {
            let Some(lane) = this.present() else { return internal("a strip without a thread") };
            let place = this.element_at(iteration.get_type().into(), per_lane, lane)?;
            let builder = &this.emitter.builder;
            let own = builder.build_load(iteration.get_type(), place, "")?.into_int_value();
            let has_iteration = builder.build_int_compare(IntPredicate::ULT, iteration, own, "")?;
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
    pub(crate) fn restore_live_out(&self, kept: Vec<PreservedLocal<'ctx>>) -> Result<()> {
        kept.into_iter().try_for_each(|PreservedLocal { place, copy, bytes, .. }| self.copy_array(copy, place, bytes))
    }

    /// For each lane, the mask of those iterations of `part` that it has.
    pub(crate) fn masks(&self, iterations: IterationCounts<'ctx>, part: (u32, u32)) -> Result<Vec<VectorValue<'ctx>>> {
        let Some(per_lane) = iterations.per_lane else {
            return Ok(vec![self.before(iterations.most, part)?; WIDTH as usize]);
        };
        let int = iterations.most.get_type();
        let mut masks = Vec::new();
        for thread in 0..WIDTH {
            let place = self.element_at(int.into(), per_lane, self.int(thread))?;
            let own = self.emitter.builder.build_load(int, place, "")?.into_int_value();
            masks.push(self.before(own, part)?);
        }
        Ok(masks)
    }

    /// Computes the maximum over the lanes of a value, and assigns it to a uniform local.
    pub(crate) fn lane_max(&mut self, segment: &Segment, (most, value): (LocalId, ExprId)) -> Result<()> {
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
