//! Thread loops over parts of a row.
//!
//! | emitted by | iterations |
//! |---|---|
//! | `each_warp` | one for each warp of the block |
//! | `groups_of_row` | one for each group of 32 threads in a row |
//! | `threads_of_residue_class` | one residue class: `x % modulus == residue` becomes a loop with a step |
//! | `threads_of_xor_partners` | runs in which one bit is equal: there `i ^ bit` is `i + bit`, or `i - bit` |
//! | `threads_of_scaled_guard` | a bound of an index that grows by more than one (`scaled.rs`) |
//! | `three_parts` | prologue, steady state and epilogue: the steady state runs a body without boundary tests |
//!
//! The last four split the index set of the loop along `x`: [`Split`] says how, and `pieces_of_row` selects one of them. That is legal because threads are not ordered within a
//! region. It pays because addresses in a part are linear in `x`, and its body has fewer divergent tests. If a
//! condition of the split does not hold at run time, the row runs the region's own body.

use inkwell::{IntPredicate, basic_block::BasicBlock, values::IntValue};

use crate::backend::{
    host::{
        emit::{
            access_groups::Shape,
            guard_values::{GuardValues, RangeValues},
            kernel::KernelEmitter,
            position::{count, index},
        },
        plan::{Guard, LANES, Piece, Runs, Segment, Split, SplitBy},
    },
    llvm::{Result, internal},
};

/// Shortest run of threads that gets a loop of its own.
const SHORTEST_RUN: u64 = 16;

/// Lengths of shorter runs. The code for each of them has a constant trip count.
const NEAR_RUNS: [u64; 4] = [8, 4, 2, 1];

/// Up to this length, LLVM vectorizes over several runs, with shuffles. Longer runs are one vector each.
const MAX_SHUFFLED: u64 = 2;

/// The copies of a region for threads whose xor partners are near.
struct Near<'a, 'ctx> {
    /// The copies for threads in which the bit is clear, and for those in which it is set.
    copies: [&'a Piece; 2],
    guards: &'a [GuardValues<'ctx>; 2],
    /// The value of `i` in `i ^ bit` for the first thread of the row.
    first: IntValue<'ctx>,
    bit: IntValue<'ctx>,
    /// Where control continues after the row.
    end: BasicBlock<'ctx>,
}

/// The first thread of a range of a row, and the one after its last.
pub(crate) type Bounds<'ctx> = (IntValue<'ctx>, IntValue<'ctx>);

/// The `threadIdx.y` and `.z` of a row, and the linear index of its first thread.
pub(crate) type Row<'ctx> = ([IntValue<'ctx>; 2], IntValue<'ctx>);

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Emits a region once for each warp. Its code identifies a thread by the linear index in `threadIdx.x` alone.
    pub(crate) fn each_warp(&mut self, segment: &Segment) -> Result<()> {
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

    /// Runs a region for the first of the threads `bounds` of a row in each group of 32. Groups begin at multiples of
    /// 32: of the linear index if `by_number`, else of `threadIdx.x`.
    pub(crate) fn groups_of_row(
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

    /// Runs the threads `bounds` of a row, in pieces if the region is split.
    pub(crate) fn pieces_of_row(&mut self, segment: &Segment, row: Row<'ctx>, bounds: Bounds<'ctx>) -> Result<()> {
        let Some(split) = &segment.split else { return self.threads_of_row(segment, &segment.body, row, bounds) };
        match (split.by, split.pieces.as_slice()) {
            (SplitBy::ExcludedRange, [piece]) => self.three_parts(segment, piece, row, bounds, false),
            (SplitBy::SteadyState, [piece]) => self.three_parts(segment, piece, row, bounds, true),
            (SplitBy::Bit, [lower, upper]) => {
                self.threads_of_xor_partners(segment, &split.of, [lower, upper], row, bounds)
            }
            (SplitBy::ResidueClass { .. }, [piece]) => {
                self.threads_of_residue_class(segment, split, piece, row, bounds)
            }
            (SplitBy::Scaled { bounds: n }, [piece]) => {
                self.threads_of_scaled_guard(segment, (&split.of, n), piece, row, bounds)
            }
            (
                SplitBy::ExcludedRange
                | SplitBy::SteadyState
                | SplitBy::Bit
                | SplitBy::ResidueClass { .. }
                | SplitBy::Scaled { .. },
                _,
            ) => internal("a split with another number of pieces"),
        }
    }

    /// Runs those of the threads `bounds` of a row that are in a residue class. If the modulus is not positive, the row
    /// runs the region's body.
    fn threads_of_residue_class(
        &mut self,
        segment: &Segment,
        split: &Split,
        piece: &Piece,
        row: Row<'ctx>,
        (low, high): Bounds<'ctx>,
    ) -> Result<()> {
        let SplitBy::ResidueClass { modulus: constant, other } = split.by else { return internal("no residue class") };
        let of = self.guard_values(&split.of)?;
        let Some(&RangeValues { value: first, bound: residue, .. }) = of.ranges.first() else {
            return internal("a residue class without a residue");
        };
        let guard = self.guard_values(&piece.guard)?;
        let (int, long) = (low.get_type(), first.get_type());
        let (zero, one) = (long.const_zero(), long.const_int(1, false));
        let (modulus, end) = match (constant, of.ranges.get(1)) {
            (Some(modulus), _) => (long.const_int(modulus.cast_unsigned(), true), None),
            (None, Some(&RangeValues { bound, .. })) => {
                let (steps, whole) = (self.emitter.block("every"), self.emitter.block("no_step"));
                let end = self.emitter.block("every_end");
                let builder = &self.emitter.builder;
                let positive = builder.build_int_compare(IntPredicate::SGT, bound, zero, "")?;
                builder.build_conditional_branch(positive, steps, whole)?;
                builder.position_at_end(whole);
                self.threads_of_row(segment, &segment.body, row, (low, high))?;
                self.emitter.go(end)?;
                self.emitter.builder.position_at_end(steps);
                (bound, Some(end))
            }
            (None, None) => return internal("a residue class without a modulus"),
        };
        // The region's guard may let no thread through. Its range may then end before it starts.
        let high = self.choose("llvm.smax", low, high.into())?;
        let (low, high) = (index(&self.emitter, low)?, index(&self.emitter, high)?);
        let (low, high) = self.span(&guard, low, high)?;
        let (low, high) = (index(&self.emitter, low)?, index(&self.emitter, high)?);
        let builder = &self.emitter.builder;
        let residue = if other { builder.build_int_sub(one, residue, "")? } else { residue };
        // The distance from the first thread to the next one in the residue class, as Python's `%` computes it.
        let number = builder.build_int_add(first, low, "")?;
        let ahead = builder.build_int_sub(residue, number, "")?;
        let is_bit = constant.is_some_and(|modulus| modulus & (modulus - 1) == 0);
        let ahead = if is_bit {
            builder.build_and(ahead, builder.build_int_sub(modulus, one, "")?, "ahead")?
        } else {
            let ahead = builder.build_int_signed_rem(ahead, modulus, "")?;
            let below = builder.build_int_compare(IntPredicate::SLT, ahead, zero, "")?;
            let more = builder.build_int_add(ahead, modulus, "")?;
            builder.build_select(below, more, ahead, "ahead")?.into_int_value()
        };
        let start = builder.build_int_add(low, ahead, "")?;
        let start = self.choose("llvm.smin", start, high.into())?;
        // A residue outside `0..modulus` selects no thread.
        let builder = &self.emitter.builder;
        let is_one = builder.build_int_compare(IntPredicate::ULT, residue, modulus, "")?;
        let start = builder.build_select(is_one, start, high, "")?.into_int_value();
        // A step of 2^30 already leaves any row. The limit keeps sums in `i32`.
        let step = self.choose("llvm.smin", modulus, long.const_int(1 << 30, false).into())?;
        let narrow = |value| self.emitter.builder.build_int_truncate(value, int, "");
        let (start, high, step) = (narrow(start)?, narrow(high)?, narrow(step)?);
        self.threads_at(segment, &piece.body, row, ((start, high), step))?;
        if let Some(end) = end {
            self.emitter.go(end)?;
            self.emitter.builder.position_at_end(end);
        }
        Ok(())
    }

    /// Runs the threads `bounds` of a row in runs whose partners are `bit` threads above, or below. If the bit does not
    /// qualify, the row runs the region's body.
    fn threads_of_xor_partners(
        &mut self,
        segment: &Segment,
        of: &Guard,
        copies: [&Piece; 2],
        row: Row<'ctx>,
        (low, high): Bounds<'ctx>,
    ) -> Result<()> {
        let sides = self.guard_values(of)?;
        let Some(&RangeValues { value: first, bound: bit, .. }) = sides.ranges.first() else {
            return internal("partners without a bit");
        };
        let long = first.get_type();
        let (zero, one) = (long.const_zero(), long.const_int(1, false));
        let guards = [self.guard_values(&copies[0].guard)?, self.guard_values(&copies[1].guard)?];
        let builder = &self.emitter.builder;
        let below = builder.build_int_sub(bit, one, "below")?;
        // The split needs a power of two, and indices that do not wrap.
        let others = builder.build_and(bit, below, "")?;
        let is_bit = builder.build_int_compare(IntPredicate::EQ, others, zero, "")?;
        let mut fits = is_bit;
        for (value, least, most) in [(bit, 1, 1 << 40), (first, 0, 1 << 60)] {
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
        let (some, few) = (self.emitter.block("some_partners"), self.emitter.block("near_partners"));
        let end = self.emitter.block("partners_end");
        self.emitter.builder.build_conditional_branch(fits, some, whole)?;
        self.emitter.builder.position_at_end(some);
        let builder = &self.emitter.builder;
        let is_long = builder.build_int_compare(IntPredicate::SGE, bit, long.const_int(SHORTEST_RUN, false), "")?;
        builder.build_conditional_branch(is_long, runs, few)?;
        self.emitter.builder.position_at_end(few);
        let near = Near { copies, guards: &guards, first, bit, end };
        self.by_near_partners(segment, &near, row, (low, high))?;
        self.emitter.go(whole)?;
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

    /// Runs the threads `bounds` of a row in runs that are shorter than [`SHORTEST_RUN`]. Each run has a constant
    /// length, and LLVM compiles one or several of them to a vector. The row must consist of whole pairs of runs, and
    /// the guards of both copies must let all of its threads through. Otherwise, control continues after this code,
    /// where the caller emits the region's body.
    fn by_near_partners(
        &mut self,
        segment: &Segment,
        near: &Near<'_, 'ctx>,
        ([y, z], first_thread): ([IntValue<'ctx>; 2], IntValue<'ctx>),
        (low, high): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<()> {
        let (int, long) = (low.get_type(), near.bit.get_type());
        let (from, to) = (index(&self.emitter, low)?, index(&self.emitter, high)?);
        let number = self.emitter.builder.build_int_add(near.first, from, "")?;
        let threads = self.emitter.builder.build_int_sub(to, from, "")?;
        let ends = self.emitter.builder.build_or(number, threads, "ends")?;
        let mut for_all = self.emitter.cx.types.context.bool_type().const_int(1, false);
        for (copy, guard) in near.copies.iter().zip(near.guards) {
            if !copy.body.is_empty() {
                let (first, behind) = self.span(guard, from, to)?;
                for (one, other) in [(first, low), (behind, high)] {
                    let same = self.emitter.builder.build_int_compare(IntPredicate::EQ, one, other, "")?;
                    for_all = self.emitter.builder.build_and(for_all, same, "for_all")?;
                }
            }
        }
        for run in NEAR_RUNS {
            let (here, next) = (self.emitter.block("near"), self.emitter.block("no_near"));
            let builder = &self.emitter.builder;
            let is_run = builder.build_int_compare(IntPredicate::EQ, near.bit, long.const_int(run, false), "")?;
            let rest = builder.build_and(ends, long.const_int(2 * run - 1, false), "")?;
            let whole = builder.build_int_compare(IntPredicate::EQ, rest, long.const_zero(), "")?;
            let whole = builder.build_and(whole, for_all, "")?;
            builder.build_conditional_branch(builder.build_and(whole, is_run, "")?, here, next)?;
            builder.position_at_end(here);
            for (copy, before) in near.copies.into_iter().zip([0, run]) {
                if copy.body.is_empty() {
                    continue;
                }
                let both = int.const_int(2 * run, false);
                let first = count(&self.emitter, low, int.const_int(before, false))?;
                let (head, back) = self.counted_by("pair", both, (first, high), |this, start| {
                    let thread = |this: &mut Self, x: IntValue<'ctx>| {
                        let thread = count(&this.emitter, first_thread, x)?;
                        this.set_thread([x, y, z]);
                        this.thread(segment, &copy.body, thread, None)
                    };
                    if run <= MAX_SHUFFLED {
                        return (0..run).try_for_each(|at| {
                            let x = count(&this.emitter, start, int.const_int(at, false))?;
                            thread(this, x)
                        });
                    }
                    let (head, back) =
                        this.counted("x", (int.const_zero(), int.const_int(run, false)), |this, at| {
                            let x = count(&this.emitter, start, at)?;
                            thread(this, x)
                        })?;
                    this.parallel.promise(head, back, segment.parallel, Shape::Vectors);
                    Ok(())
                })?;
                if run <= MAX_SHUFFLED {
                    self.parallel.promise(head, back, segment.parallel, Shape::Loop);
                }
            }
            self.emitter.go(near.end)?;
            self.emitter.builder.position_at_end(next);
        }
        Ok(())
    }

    /// Runs the threads `bounds` of a row in three parts: a piece for a range, such as the steady state, and the
    /// prologue and epilogue around it, which run the region's body.
    fn three_parts(
        &mut self,
        segment: &Segment,
        piece: &Piece,
        row: Row<'ctx>,
        bounds: Bounds<'ctx>,
        at_boundary: bool,
    ) -> Result<()> {
        let (all, inner) = self.inner(&piece.guard, bounds)?;
        if !piece.body.is_empty() {
            self.threads_of_row(segment, &piece.body, row, inner)?;
        }
        self.either_side(segment, row, (all, inner), at_boundary)
    }

    /// The range `bounds`, and the threads in it that a guard lets through. The end of neither range precedes its
    /// start.
    pub(crate) fn inner(&mut self, guard: &Guard, (low, high): Bounds<'ctx>) -> Result<(Bounds<'ctx>, Bounds<'ctx>)> {
        // If `bounds` is empty, both results are.
        let high = self.choose("llvm.smax", low, high.into())?;
        let values = self.guard_values(guard)?;
        let (from, to) = (index(&self.emitter, low)?, index(&self.emitter, high)?);
        let (from, to) = self.span(&values, from, to)?;
        Ok(((low, high), (from, self.choose("llvm.smax", from, to.into())?)))
    }

    /// Runs the region's body for the threads of `low..high` that are not in `from..to`. They are few if `from..to` is a
    /// steady state, and they are at its boundary.
    pub(crate) fn either_side(
        &mut self,
        segment: &Segment,
        row: ([IntValue<'ctx>; 2], IntValue<'ctx>),
        ((low, high), (from, to)): (Bounds<'ctx>, Bounds<'ctx>),
        at_boundary: bool,
    ) -> Result<()> {
        let int = low.get_type();
        let builder = &self.emitter.builder;
        let before = builder.build_int_compare(IntPredicate::SLT, low, from, "")?;
        let after = builder.build_int_compare(IntPredicate::SLT, to, high, "")?;
        let some = builder.build_or(before, after, "")?;
        let sides = builder.build_select(some, int.const_int(2, false), int.const_zero(), "sides")?.into_int_value();
        self.counted("side", (int.const_zero(), sides), |this, side| {
            let builder = &this.emitter.builder;
            let before = builder.build_int_compare(IntPredicate::EQ, side, int.const_zero(), "")?;
            let first = builder.build_select(before, low, to, "")?.into_int_value();
            let end = builder.build_select(before, from, high, "")?.into_int_value();
            this.at_boundary = at_boundary;
            let result = this.threads_of_row(segment, &segment.body, row, (first, end));
            this.at_boundary = false;
            result
        })?;
        Ok(())
    }
}
