//! Segments that run in parts of a row: once a warp, once for a group of 32 neighbors, and in runs of threads whose partners
//! are as far above or below.

use inkwell::{IntPredicate, values::IntValue};

use super::{
    entry::KernelEmitter,
    hooks::{count, index},
    parallel::Shape,
    plan::{LANES, Partners, Runs, Segment},
    threads::RangeValues,
};
use crate::backend::llvm::{Result, internal};

/// Runs of fewer threads are not worth their own loops.
const SHORTEST_RUN: u64 = 16;

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// A segment once for each warp: its code knows a thread by its number in the block alone.
    pub(super) fn each_warp(&mut self, segment: &Segment) -> Result<()> {
        let int = self.emitter.cx.types.context.i32_type();
        let (zero, lanes) = (int.const_zero(), int.const_int(LANES, false));
        let last = count(&self.emitter, self.threads, int.const_int(LANES - 1, false))?;
        let warps = self.emitter.builder.build_int_unsigned_div(last, lanes, "warps")?;
        let (head, back) = self.counted("warp", (zero, warps), |this, warp| {
            let first = this.emitter.builder.build_int_nuw_mul(warp, lanes, "")?;
            this.set_thread([first, zero, zero]);
            this.thread(segment, &segment.body, first, None)
        })?;
        self.parallel.promise(head, back, segment.parallel, Shape::Loop);
        Ok(())
    }

    /// Runs a segment for the first of the threads `bounds` of a row in each group of 32, of which each begins at a multiple
    /// of 32: of `threadIdx.x`, or of the thread's number.
    pub(super) fn groups_of_row(
        &mut self,
        segment: &Segment,
        ([y, z], first_thread): ([IntValue<'ctx>; 2], IntValue<'ctx>),
        by_number: bool,
        (low, high): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<()> {
        let int = low.get_type();
        let before = if by_number { first_thread } else { int.const_zero() };
        let (lanes, last_lane) = (int.const_int(LANES, false), int.const_int(LANES - 1, false));
        let from = count(&self.emitter, low, before)?;
        let to = count(&self.emitter, count(&self.emitter, high, before)?, last_lane)?;
        let builder = &self.emitter.builder;
        let from = builder.build_int_unsigned_div(from, lanes, "")?;
        let to = builder.build_int_unsigned_div(to, lanes, "")?;
        let some = builder.build_int_compare(IntPredicate::SLT, low, high, "")?;
        let to = builder.build_select(some, to, from, "groups")?.into_int_value();
        let looks = self.goes_on_for_long(segment);
        let (head, back) = self.counted("group", (from, to), |this, group| {
            let builder = &this.emitter.builder;
            let start = builder.build_int_sub(builder.build_int_nuw_mul(group, lanes, "")?, before, "")?;
            let end = builder.build_int_add(start, lanes, "")?;
            let x = this.choose("llvm.smax", start, low.into())?;
            let end = this.choose("llvm.smin", end, high.into())?;
            let thread = count(&this.emitter, first_thread, x)?;
            let end = count(&this.emitter, first_thread, end)?;
            this.set_thread([x, y, z]);
            let others = (segment.runs == Runs::Groups).then_some((thread, end));
            this.thread(segment, &segment.body, thread, others)?;
            if looks { this.hooks.look_up(&this.emitter) } else { Ok(()) }
        })?;
        self.parallel.promise(head, back, segment.parallel, Shape::Loop);
        Ok(())
    }

    /// The threads `bounds` of a row in runs whose partners are as far above, or below; the body itself where the runs would
    /// be short.
    pub(super) fn by_partners(
        &mut self,
        segment: &Segment,
        partners: &Partners,
        row: ([IntValue<'ctx>; 2], IntValue<'ctx>),
        (low, high): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<()> {
        let sides = self.guard_values(&partners.sides)?;
        let Some(&RangeValues { value: first, bound: bit, .. }) = sides.ranges.first() else {
            return internal("partners without a bit");
        };
        let long = first.get_type();
        let (zero, one) = (long.const_zero(), long.const_int(1, false));
        let copies = [&partners.lower, &partners.upper];
        let guards = [self.guard_values(&copies[0].guard)?, self.guard_values(&copies[1].guard)?];
        let builder = &self.emitter.builder;
        let below = builder.build_int_sub(bit, one, "below")?;
        // One bit is set, of those that make runs worth it, and no number is so large that it wraps.
        let others = builder.build_and(bit, below, "")?;
        let is_bit = builder.build_int_compare(IntPredicate::EQ, others, zero, "")?;
        let mut fits = is_bit;
        for (value, least, most) in [(bit, SHORTEST_RUN, 1 << 40), (first, 0, 1 << 60)] {
            let at_least = builder.build_int_compare(IntPredicate::SGE, value, long.const_int(least, false), "")?;
            let at_most = builder.build_int_compare(IntPredicate::SLT, value, long.const_int(most, false), "")?;
            fits = builder.build_and(fits, builder.build_and(at_least, at_most, "")?, "fits")?;
        }
        for range in guards.iter().flat_map(|guard| &guard.ranges).filter(|range| range.wraps) {
            let builder = &self.emitter.builder;
            let moved = builder.build_int_add(range.value, long.const_int(1 << 61, false), "")?;
            let small = builder.build_int_compare(IntPredicate::ULT, moved, long.const_int(1 << 62, false), "")?;
            fits = builder.build_and(fits, small, "fits")?;
        }
        let (runs, whole) = (self.emitter.block("partners"), self.emitter.block("no_partners"));
        let end = self.emitter.block("partners_end");
        self.emitter.builder.build_conditional_branch(fits, runs, whole)?;
        self.emitter.builder.position_at_end(whole);
        self.threads_of_row(segment, &segment.body, row, (low, high))?;
        self.emitter.go(end)?;

        self.emitter.builder.position_at_end(runs);
        let (low, high) = (index(&self.emitter, low)?, index(&self.emitter, high)?);
        let head = self.emitter.block("run");
        let any = self.emitter.builder.build_int_compare(IntPredicate::SLT, low, high, "")?;
        self.emitter.builder.build_conditional_branch(any, head, end)?;
        self.emitter.builder.position_at_end(head);
        let phi = self.emitter.builder.build_phi(long, "run")?;
        phi.add_incoming(&[(&low, runs)]);
        let from = phi.as_basic_value().into_int_value();
        let builder = &self.emitter.builder;
        let number = builder.build_int_add(first, from, "")?;
        let into = builder.build_and(number, below, "")?;
        let left = builder.build_int_sub(bit, into, "")?;
        let run_end = builder.build_int_add(from, left, "")?;
        let set = builder.build_and(number, bit, "")?;
        let is_lower = builder.build_int_compare(IntPredicate::EQ, set, zero, "")?;
        let to = self.choose("llvm.smin", run_end, high.into())?;
        let (lower, upper) = (self.emitter.block("lower"), self.emitter.block("upper"));
        let next = self.emitter.block("next_run");
        self.emitter.builder.build_conditional_branch(is_lower, lower, upper)?;
        for ((block, copy), guard) in [lower, upper].into_iter().zip(copies).zip(&guards) {
            self.emitter.builder.position_at_end(block);
            if !copy.body.is_empty() {
                let bounds = self.span(guard, from, to)?;
                self.threads_of_row(segment, &copy.body, row, bounds)?;
            }
            self.emitter.go(next)?;
        }
        self.emitter.builder.position_at_end(next);
        phi.add_incoming(&[(&to, next)]);
        let more = self.emitter.builder.build_int_compare(IntPredicate::SLT, to, high, "")?;
        self.emitter.builder.build_conditional_branch(more, head, end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }
}
