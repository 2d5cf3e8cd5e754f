//! Thread loops for rows of a known length: a copy with a constant trip count, which LLVM unrolls to straight-line
//! vector code.
//!
//! ```text
//! if the row has 16 threads:
//!     for x in 0..16:                             (unrolled)
//!         if low <= x < high: value = body
//!         tile[x] = value if low <= x < high else tile[x]
//! else:
//!     for x in low..high: tile[x] = body
//! ```
//!
//! A block's row length is only known at launch, so the other loop remains. In the copy, all threads of a row with
//! bounds run. A thread outside the bounds runs no statement with effects, and stores the old value to its elements of
//! shared arrays and context arrays: a masked store would delay a load of the same memory soon after it. Stores to
//! other memory remain under the predicate. [The plan](crate::backend::host::plan::analysis::fixed_rows) decides where
//! that is legal: no other thread may access the element in this region. The copy pays for short bodies, for which a
//! loop of a variable trip count is expensive.
//!
//! Strips of several rows (`strips.rs`) get such a copy, too.

use inkwell::{
    IntPredicate,
    values::{BasicValueEnum, IntValue, PointerValue},
};

use crate::{
    backend::{
        host::{
            emit::{
                access_groups::Shape,
                kernel::KernelEmitter,
                position::{Frame, count, index},
                prefetch::Lines,
                row_bounds::RowBounds,
                strip::StripRow,
                strips::Common,
            },
            plan::{Guard, Piece, Segment, analysis::fixed_rows},
        },
        llvm::Result,
    },
    ir::{ExprId, Stmt, StmtKind},
};

/// How rows of the known length run a region.
pub(crate) struct Known<'a> {
    /// The length.
    width: u64,
    body: Body<'a>,
}

enum Body<'a> {
    /// All threads run the region's body.
    All,
    /// The threads within bounds run the region's body.
    Some(fixed_rows::Whole),
    /// The threads of the steady state run this copy; the others run the region's body.
    Specialized(&'a Piece, fixed_rows::Whole),
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// How rows of the length that the code implies run a region; `None` if a copy does not pay or is not legal.
    pub(crate) fn known_rows<'a>(&self, segment: &'a Segment) -> Option<Known<'a>> {
        let width = self.plan.row_width?;
        let is_other = segment.shape.is_some() || (segment.split.is_some() && segment.steady_state().is_none());
        if is_other || !segment.parallel {
            return None;
        }
        let whole = |body: &[Stmt]| fixed_rows::whole(self.plan, segment, body, (width, self.parallel.vectors));
        let has_bounds = segment.guard.as_ref().is_some_and(|guard| !guard.ranges.is_empty());
        let body = match segment.steady_state() {
            Some(steady_state) => Body::Specialized(steady_state, whole(&steady_state.body)?),
            None if has_bounds => Body::Some(whole(&segment.body)?),
            None if fixed_rows::is_short(self.emitter.function, &segment.body) => Body::All,
            None => return None,
        };
        Some(Known { width, body })
    }

    /// Emits a region for each thread of each row, with a copy for rows of the known length.
    pub(crate) fn known_or_other_rows(&mut self, segment: &Segment, known: &Known<'_>) -> Result<()> {
        let (ours, others) = (self.emitter.block("known_rows"), self.emitter.block("other_rows"));
        let end = self.emitter.block("rows_done");
        let before = self.hooks.frame.get();
        let width = before.row.get_type().const_int(known.width, false);
        let RowBounds { rows, left } = self.row_bounds(segment.guard.as_ref());
        let mut takes = self.emitter.builder.build_int_compare(IntPredicate::EQ, before.row, width, "")?;
        let border = match &known.body {
            Body::Specialized(steady_state, _) => {
                self.border_of_block([rows.as_ref(), left.as_ref()], &steady_state.guard)
            }
            Body::All | Body::Some(_) => None,
        };
        if let Some(border) = &border {
            let asks = self.emitter.block("asks_for_border");
            self.emitter.builder.build_conditional_branch(takes, asks, others)?;
            self.emitter.builder.position_at_end(asks);
            self.hooks.frame.set(Frame { row: width, ..before });
            takes = self.is_near_no_border([rows.as_ref(), left.as_ref()], border)?;
        }
        self.emitter.builder.build_conditional_branch(takes, ours, others)?;
        self.emitter.builder.position_at_end(ours);
        let [_, extent_y, extent_z] = before.block_dim;
        self.hooks.frame.set(Frame { row: width, block_dim: [width, extent_y, extent_z], ..before });
        let rolled = !segment.iteration_prefetches.is_empty();
        self.each_row_within(rows.as_ref(), rolled, |this, row, first_thread| {
            this.spans_of_some_rows(left.as_ref(), |this, bounds| {
                let fetched = if let Body::Specialized(steady_state, _) = &known.body {
                    &steady_state.body
                } else {
                    &segment.body
                };
                let lines = Lines::Known(known.width);
                let (at, row) = (row, (row, first_thread));
                match &known.body {
                    Body::All => this.all_of_row(segment, row, width),
                    Body::Some(how) => this.part_of_row(segment, (&segment.body, how), row, bounds),
                    Body::Specialized(steady_state, how) if border.is_some() => {
                        this.part_of_row(segment, (&steady_state.body, how), row, bounds)
                    }
                    Body::Specialized(steady_state, how) => {
                        let (all, inner) = this.inner(&steady_state.guard, bounds)?;
                        this.part_of_row(segment, (&steady_state.body, how), row, inner)?;
                        this.either_side(segment, row, (all, inner), true)
                    }
                }?;
                this.fetch_for_next_turn(segment, row, &lines)?;
                this.fetch_for_next_block(segment, fetched, at, &lines)
            })
        })?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(others);
        self.hooks.frame.set(before);
        self.each_row(|this, row, first_thread| {
            this.spans(segment.guard.as_ref(), |this, bounds| {
                this.threads_of_row(segment, &segment.body, (row, first_thread), bounds)
            })
        })?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// Emits strips of several rows, with a copy for rows of the known length in planes of whole groups of rows. In the
    /// copy, the elements of a group are at constant distances, and no thread remains after the full strips.
    pub(crate) fn known_or_several_rows(&mut self, common: &Common<'_, 'ctx>, width: u64) -> Result<()> {
        let (ours, others) = (self.emitter.block("known_groups"), self.emitter.block("other_groups"));
        let end = self.emitter.block("groups_done");
        let before = self.hooks.frame.get();
        let [extent_y, extent_z] = before.rows;
        let int = before.row.get_type();
        let most = int.const_int(u64::from(common.strips.rows), false);
        let lines = Lines::Known(width);
        let strips = int.const_int(width / u64::from(common.strips.width), false);
        let width = int.const_int(width, false);
        let builder = &self.emitter.builder;
        let is_known = builder.build_int_compare(IntPredicate::EQ, before.row, width, "")?;
        let left = builder.build_int_unsigned_rem(extent_y, most, "left")?;
        let is_whole = builder.build_int_compare(IntPredicate::EQ, left, int.const_zero(), "")?;
        builder.build_conditional_branch(builder.build_and(is_known, is_whole, "")?, ours, others)?;
        builder.position_at_end(ours);
        let [_, dim_y, dim_z] = before.block_dim;
        self.hooks.frame.set(Frame { row: width, block_dim: [width, dim_y, dim_z], ..before });
        self.counted("plane", (int.const_zero(), extent_z), |this, z| {
            let rows_before = this.emitter.builder.build_int_nuw_mul(z, extent_y, "rows_before")?;
            this.counted_by("group", most, (int.const_zero(), extent_y), |this, first| {
                let row = count(&this.emitter, rows_before, first)?;
                let first_thread = this.emitter.builder.build_int_nuw_mul(row, width, "")?;
                let mut rows = Vec::new();
                for (number, places) in (0..).zip(&common.whole) {
                    let number = int.const_int(number, false);
                    let y = count(&this.emitter, first, number)?;
                    let in_group = this.emitter.builder.build_int_nuw_mul(width, number, "")?;
                    let thread = count(&this.emitter, first_thread, in_group)?;
                    rows.push(StripRow { row: ([y, z], thread), places: places.clone() });
                }
                for segment in &common.strips.before {
                    rows.iter().try_for_each(|row| this.fetch_for_next_turn(segment, row.row, &lines))?;
                }
                this.whole_strips(common, rows, int.const_zero(), strips)
            })?;
            Ok(())
        })?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(others);
        self.hooks.frame.set(before);
        self.several_rows(common)?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// As [`Self::spans`], but conditions on the row are branches. The bounds are then the same in all rows.
    fn spans_of_some_rows(
        &mut self,
        guard: Option<&Guard>,
        body: impl FnOnce(&mut Self, (IntValue<'ctx>, IntValue<'ctx>)) -> Result<()>,
    ) -> Result<()> {
        let Some(guard) = guard.filter(|guard| !guard.ranges.iter().any(|range| range.wraps)) else {
            return self.spans(guard, body);
        };
        let mut values = self.guard_values(guard)?;
        let end = self.emitter.block("row_end");
        for (cond, negated) in std::mem::take(&mut values.rows) {
            let goes_on = self.emitter.block("row_goes_on");
            let (yes, no) = if negated { (end, goes_on) } else { (goes_on, end) };
            self.emitter.builder.build_conditional_branch(cond, yes, no)?;
            self.emitter.builder.position_at_end(goes_on);
        }
        let extent = self.hooks.frame.get().row;
        let long = self.emitter.cx.types.context.i64_type();
        let bounds = self.span(&values, long.const_zero(), index(&self.emitter, extent)?)?;
        body(self, bounds)?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    fn all_of_row(
        &mut self,
        segment: &Segment,
        ([y, z], first_thread): ([IntValue<'ctx>; 2], IntValue<'ctx>),
        width: IntValue<'ctx>,
    ) -> Result<()> {
        let (head, back) = self.counted("x", (width.get_type().const_zero(), width), |this, x| {
            let thread = count(&this.emitter, first_thread, x)?;
            this.set_thread([x, y, z]);
            this.thread(segment, &segment.body, thread, None)
        })?;
        self.parallel.promise(head, back, segment.parallel, Shape::Vectors);
        Ok(())
    }

    /// Runs a body for a range of threads in a row of the known length.
    fn part_of_row(
        &mut self,
        segment: &Segment,
        (body, how): (&[Stmt], &fixed_rows::Whole),
        ([y, z], first_thread): ([IntValue<'ctx>; 2], IntValue<'ctx>),
        (low, high): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<()> {
        let width = self.hooks.frame.get().row;
        let (some, end) = (self.emitter.block("some_of_row"), self.emitter.block("row_done"));
        let builder = &self.emitter.builder;
        let has_some = builder.build_int_compare(IntPredicate::SLT, low, high, "")?;
        builder.build_conditional_branch(has_some, some, end)?;
        builder.position_at_end(some);
        let threads = builder.build_int_sub(high, low, "")?;
        // Uniform loads are emitted before the loop. Inside it, LLVM would sink them to their uses, as gathers.
        let first = count(&self.emitter, first_thread, low)?;
        self.set_thread([low, y, z]);
        self.enter_with(segment, &[], first)?;
        self.emit_first(body, &how.first)?;
        for &load in &how.loads {
            let value = self.emitter.emit_expr(load)?;
            self.emitter.ahead.push((load, value));
        }
        let (head, back) = self.counted("x", (low.get_type().const_zero(), width), |this, x| {
            let thread = count(&this.emitter, first_thread, x)?;
            this.set_thread([x, y, z]);
            let builder = &this.emitter.builder;
            let into = builder.build_int_sub(x, low, "")?;
            let has_part = builder.build_int_compare(IntPredicate::ULT, into, threads, "")?;
            this.perhaps_thread(segment, (body, how), thread, has_part)
        })?;
        self.emitter.ahead.clear();
        self.parallel.promise(head, back, segment.parallel, Shape::Vectors);
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// Emits the statements of a body that all threads may run.
    pub(crate) fn emit_first(&mut self, body: &[Stmt], first: &[usize]) -> Result<()> {
        first.iter().try_for_each(|&at| self.emitter.emit_block(body.get(at..=at).unwrap_or_default()))
    }

    /// Emits one thread, which runs a body under the predicate `has_part`. Stores to shared memory that are in no
    /// branch come last: all threads run them, with the old value where the predicate is false.
    fn perhaps_thread(
        &mut self,
        segment: &Segment,
        (body, how): (&[Stmt], &fixed_rows::Whole),
        thread: IntValue<'ctx>,
        has_part: IntValue<'ctx>,
    ) -> Result<()> {
        self.enter_with(segment, &segment.load, thread)?;
        self.emit_first(body, &how.first)?;
        let (runs, end) = (self.emitter.block("has_part"), self.emitter.block("part_end"));
        let before = self.emitter.current()?;
        self.emitter.builder.build_conditional_branch(has_part, runs, end)?;
        self.emitter.builder.position_at_end(runs);
        let mut stores: Vec<(ExprId, BasicValueEnum<'ctx>)> = Vec::new();
        for (_, stmt) in body.iter().enumerate().filter(|(at, _)| !how.first.contains(at)) {
            match stmt.kind {
                StmtKind::Store { pointer, value, .. } if fixed_rows::may_be_shared(self.emitter.function, pointer) => {
                    let value = self.emitter.emit_expr(value)?;
                    stores.push((pointer, self.emitter.to_memory(value)?));
                }
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => self.emitter.emit_block(std::slice::from_ref(stmt))?,
            }
        }
        let last = self.emitter.current()?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        let mut values = Vec::new();
        for (pointer, value) in stores {
            let phi = self.emitter.builder.build_phi(value.get_type(), "")?;
            phi.add_incoming(&[
                (&value, last),
                (&crate::backend::host::emit::threads::undefined(value.get_type())?, before),
            ]);
            values.push((pointer, phi.as_basic_value()));
        }
        for (pointer, value) in values {
            let place: PointerValue<'ctx> = self.emitter.emit_pointer(pointer)?;
            let there = self.emitter.builder.build_load(value.get_type(), place, "")?;
            let value = self.emitter.builder.build_select(has_part, value, there, "")?;
            self.emitter.builder.build_store(place, value)?;
        }
        for &local in &segment.store {
            let from = self.emitter.slot(local)?;
            let value = self.emitter.builder.build_load(self.memory_type(local)?, from, "")?;
            let to = self.element(local, thread)?;
            // The old value is loaded here, not before the branch. There, LLVM would combine it with another load, as
            // one load from a selected address.
            let there = self.emitter.builder.build_load(value.get_type(), to, "")?;
            let value = self.emitter.builder.build_select(has_part, value, there, "")?;
            self.emitter.builder.build_store(to, value)?;
        }
        Ok(())
    }
}
