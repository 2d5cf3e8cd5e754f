//! Thread loops: loops that run a parallel region ([`Segment`]) for every thread of a block.
//!
//! A *row* is all threads of a block with the same `threadIdx.y` and `threadIdx.z`. A region becomes one loop over the
//! rows, which counts `y` and `z`, around a loop along `x`, which LLVM vectorizes:
//!
//! ```text
//! for row in 0..rows:
//!     low, high = the range of threads in the row that the guard lets through
//!     for x in low..high:
//!         load live-in values from the context arrays
//!         body
//!         store live-out values to the context arrays
//! ```
//!
//! A guard whose value may wrap within a row splits the row after the largest integer. If the plan splits the index set
//! of the region, several loops along `x` replace the one (`parts.rs`).
//!
//! Threads are not ordered between two barriers, so any order of threads is legal. The loop along `x` is annotated as
//! parallel only if [`Segment::parallel`] holds.

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use inkwell::{
    IntPredicate,
    basic_block::BasicBlock,
    types::BasicTypeEnum,
    values::{BasicValueEnum, InstructionValue, IntValue, PointerValue},
};

use crate::{
    backend::{
        host::{
            emit::{
                access_groups::Shape,
                guard_values::{GuardValues, RangeValues},
                kernel::KernelEmitter,
                parts::Row,
                position::{Frame, byte_offset, count, index, known_offset},
                prefetch::Lines,
            },
            plan::{Guard, MaskId, Range, Runs, Segment, TileShape, counts_only, is_vectorized_with_math},
        },
        llvm::{LoopTargets, Result, internal},
    },
    ir::{CompareOp, LocalId, Stmt},
};

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Emits `for i in from..to: body(i)` on `i32`. Returns the first block of the body and the latch branch.
    pub(crate) fn counted(
        &mut self,
        name: &str,
        bounds: (IntValue<'ctx>, IntValue<'ctx>),
        body: impl FnOnce(&mut Self, IntValue<'ctx>) -> Result<()>,
    ) -> Result<(BasicBlock<'ctx>, InstructionValue<'ctx>)> {
        let one = self.emitter.cx.types.context.i32_type().const_int(1, false);
        self.counted_by(name, one, bounds, body)
    }

    /// As [`Self::counted`], with a step. `to + step` must not overflow.
    pub(crate) fn counted_by(
        &mut self,
        name: &str,
        step: IntValue<'ctx>,
        (from, to): (IntValue<'ctx>, IntValue<'ctx>),
        body: impl FnOnce(&mut Self, IntValue<'ctx>) -> Result<()>,
    ) -> Result<(BasicBlock<'ctx>, InstructionValue<'ctx>)> {
        let int = self.emitter.cx.types.context.i32_type();
        let (head, end) = (self.emitter.block(name), self.emitter.block(&format!("{name}_end")));
        let before = self.emitter.current()?;
        let builder = &self.emitter.builder;
        let any = builder.build_int_compare(IntPredicate::SLT, from, to, "")?;
        builder.build_conditional_branch(any, head, end)?;
        builder.position_at_end(head);
        let counter = builder.build_phi(int, name)?;
        counter.add_incoming(&[(&from, before)]);
        let value = counter.as_basic_value().into_int_value();
        body(self, value)?;
        let builder = &self.emitter.builder;
        let last = self.emitter.current()?;
        let next = count(&self.emitter, value, step)?;
        counter.add_incoming(&[(&next, last)]);
        let more = builder.build_int_compare(IntPredicate::SLT, next, to, "")?;
        let back = builder.build_conditional_branch(more, head, end)?;
        builder.position_at_end(end);
        Ok((head, back))
    }

    /// Runs `body` for each thread of the block that a guard lets through, with the thread's linear index.
    pub(crate) fn each_thread(
        &mut self,
        guard: Option<&Guard>,
        body: impl FnOnce(&mut Self, IntValue<'ctx>) -> Result<()>,
    ) -> Result<()> {
        if guard.is_some() {
            return self.each_row(|this, _, first_thread| {
                this.spans(guard, |this, bounds| {
                    this.counted("x", bounds, |this, x| {
                        let thread = count(&this.emitter, first_thread, x)?;
                        body(this, thread)
                    })?;
                    Ok(())
                })
            });
        }
        let zero = self.emitter.cx.types.context.i32_type().const_zero();
        let threads = self.threads;
        self.counted("thread", (zero, threads), body)?;
        Ok(())
    }

    /// Emits a region for all threads that run it. Only one loop, over the rows, surrounds the loop along `x`.
    pub(crate) fn segment(&mut self, segment: &Segment) -> Result<()> {
        if let Some(TileShape { width, rows }) = segment.shape {
            let frame = self.hooks.frame.get();
            let int = frame.row.get_type();
            let [width, rows] = [self.emitter.emit_int(width)?, self.emitter.emit_int(rows)?];
            let builder = &self.emitter.builder;
            let row = builder.build_int_truncate(width, int, "tile_width")?;
            let rows = [builder.build_int_truncate(rows, int, "tile_rows")?, int.const_int(1, false)];
            self.hooks.frame.set(Frame { row, rows, ..frame });
            self.rows(segment)?;
            self.hooks.frame.set(frame);
            return Ok(());
        }
        if self.strip.is_some() && !self.plan.warp_blocks {
            return self.segment_of_strip(segment);
        }
        if self.hooks.instrumentation.is_some() {
            return self.checked_segment(segment);
        }
        let aligned = match segment.runs {
            Runs::Warps => return self.each_warp(segment),
            Runs::EachThread | Runs::OneThread if self.plan.warp_blocks => return self.segment_of_warp(segment),
            Runs::EachThread | Runs::OneThread => None,
            Runs::Groups | Runs::FirstOfGroups => Some(false),
            Runs::FirstLanes => Some(true),
        };
        if let Some(by_number) = aligned {
            return self.each_row(|this, row, first_thread| {
                this.spans(segment.guard.as_ref(), |this, bounds| {
                    this.groups_of_row(segment, (row, first_thread), by_number, bounds)
                })
            });
        }
        self.rows(segment)
    }

    /// Emits a region for each thread of each row.
    pub(crate) fn rows(&mut self, segment: &Segment) -> Result<()> {
        if let Some(known) = self.known_rows(segment) {
            return self.known_or_other_rows(segment, &known);
        }
        if let Some(rows) = self.box_bounds(segment.guard.as_ref()) {
            return self.each_row_of_box(&rows, |this, row, first_thread, guard| {
                this.row(segment, (row, first_thread), guard)
            });
        }
        self.each_row(|this, row, first_thread| this.row(segment, (row, first_thread), segment.guard.as_ref()))
    }

    /// Emits a region for each thread of the current row that a guard lets through.
    fn row(&mut self, segment: &Segment, row: Row<'ctx>, guard: Option<&Guard>) -> Result<()> {
        self.spans(guard, |this, bounds| {
            this.fetch_ahead(segment, row, bounds)?;
            this.pieces_of_row(segment, row, bounds)?;
            let (low, high) = bounds;
            this.fetch_for_next_turn(segment, row, &Lines::Between(low, high))?;
            this.fetch_row_of_next_block(segment, row.0, bounds)
        })
    }

    /// Runs a body of a region for the threads `bounds` of a row.
    pub(crate) fn threads_of_row(
        &mut self,
        segment: &Segment,
        body: &[Stmt],
        row: ([IntValue<'ctx>; 2], IntValue<'ctx>),
        bounds: (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<()> {
        let one = self.emitter.cx.types.context.i32_type().const_int(1, false);
        self.threads_at(segment, body, row, (bounds, one))
    }

    /// Runs a body of a region for every `step`-th thread of `bounds`. If the guard lets at most one thread through, a
    /// branch replaces the loop, which LLVM would unroll.
    pub(crate) fn threads_at(
        &mut self,
        segment: &Segment,
        body: &[Stmt],
        ([y, z], first_thread): ([IntValue<'ctx>; 2], IntValue<'ctx>),
        (bounds, step): ((IntValue<'ctx>, IntValue<'ctx>), IntValue<'ctx>),
    ) -> Result<()> {
        let looks = self.goes_on_for_long(segment);
        if segment.guard.as_ref().is_some_and(Guard::names_one) {
            let (from, to) = bounds;
            let (runs, end) = (self.emitter.block("one"), self.emitter.block("one_end"));
            let any = self.emitter.builder.build_int_compare(IntPredicate::SLT, from, to, "")?;
            self.emitter.builder.build_conditional_branch(any, runs, end)?;
            self.emitter.builder.position_at_end(runs);
            let thread = count(&self.emitter, first_thread, from)?;
            self.set_thread([from, y, z]);
            self.thread(segment, body, thread, None)?;
            if looks {
                self.hooks.look_up(&self.emitter)?;
            }
            self.emitter.go(end)?;
            self.emitter.builder.position_at_end(end);
            return Ok(());
        }
        let is_parallel = segment.parallel && self.hooks.seen.get().is_none();
        let inlines_math = is_parallel && !segment.scatters && is_vectorized_with_math(self.emitter.function, body);
        let inlines_math = self.emitter.inlines_math.replace(inlines_math);
        let (head, back) = self.counted_by("x", step, bounds, |this, x| {
            let thread = count(&this.emitter, first_thread, x)?;
            this.set_thread([x, y, z]);
            this.thread(segment, body, thread, None)?;
            if looks { this.hooks.look_up(&this.emitter) } else { Ok(()) }
        })?;
        self.emitter.inlines_math.set(inlines_math);
        let shape = if segment.scatters {
            Shape::Single
        } else if counts_only(self.emitter.function, body) {
            Shape::Few
        } else if self.at_boundary {
            Shape::Boundary
        } else {
            Shape::Loop
        };
        self.parallel.promise(head, back, is_parallel, shape);
        Ok(())
    }

    /// Whether a thread may run a region for long. Then the thread loop polls for cancellation after each thread.
    pub(crate) fn goes_on_for_long(&self, segment: &Segment) -> bool {
        self.plan.polling.for_long(self.emitter.function, &self.plan.fixed, &segment.body)
    }

    /// Runs `body` for each row, with the row's `threadIdx.y` and `.z` and the linear index of its first thread. The
    /// first thread is the current one.
    pub(crate) fn each_row(
        &mut self,
        body: impl FnOnce(&mut Self, [IntValue<'ctx>; 2], IntValue<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let int = self.emitter.cx.types.context.i32_type();
        let (zero, one) = (int.const_zero(), int.const_int(1, false));
        let Frame { row: extent_x, rows: [extent_y, extent_z], .. } = self.hooks.frame.get();
        let rows = self.emitter.builder.build_int_nuw_mul(extent_y, extent_z, "rows")?;
        let [y_place, z_place] = self.row_index;
        for place in self.row_index {
            self.emitter.builder.build_store(place, zero)?;
        }
        self.counted("row", (zero, rows), |this, row| {
            let y = this.emitter.builder.build_load(int, y_place, "y")?.into_int_value();
            let z = this.emitter.builder.build_load(int, z_place, "z")?.into_int_value();
            let first_thread = this.emitter.builder.build_int_nuw_mul(row, extent_x, "")?;
            this.set_thread([zero, y, z]);
            body(this, [y, z], first_thread)?;
            let builder = &this.emitter.builder;
            let next = count(&this.emitter, y, one)?;
            let plane_ends = builder.build_int_compare(IntPredicate::EQ, next, extent_y, "")?;
            let next = builder.build_select(plane_ends, zero, next, "")?;
            builder.build_store(y_place, next)?;
            let step = builder.build_int_z_extend(plane_ends, int, "")?;
            builder.build_store(z_place, count(&this.emitter, z, step)?)?;
            Ok(())
        })?;
        Ok(())
    }

    /// Whether a guard lets any thread of the block through.
    pub(crate) fn lets_through(&mut self, guard: &Guard) -> Result<IntValue<'ctx>> {
        let bit = self.emitter.cx.types.context.bool_type();
        let seen = self.allocas.build_alloca(bit, "someone")?;
        self.emitter.builder.build_store(seen, bit.const_zero())?;
        self.each_row(|this, _, _| {
            this.spans(Some(guard), |this, (low, high)| {
                let builder = &this.emitter.builder;
                let some = builder.build_int_compare(IntPredicate::SLT, low, high, "")?;
                let before = builder.build_load(bit, seen, "")?.into_int_value();
                builder.build_store(seen, builder.build_or(before, some, "")?)?;
                Ok(())
            })
        })?;
        Ok(self.emitter.builder.build_load(bit, seen, "")?.into_int_value())
    }

    pub(crate) fn set_thread(&self, thread: [IntValue<'ctx>; 3]) {
        self.hooks.frame.set(Frame { thread, ..self.hooks.frame.get() });
    }

    /// Runs `body` for the threads of the current row that a guard lets through: once, or once for each part of the row
    /// in which no value of the guard wraps. The caller sets `threadIdx.x` to 0, because the guard's values are those
    /// of the row's first thread.
    pub(crate) fn spans(
        &mut self,
        guard: Option<&Guard>,
        body: impl FnOnce(&mut Self, (IntValue<'ctx>, IntValue<'ctx>)) -> Result<()>,
    ) -> Result<()> {
        let extent = self.hooks.frame.get().row;
        let Some(guard) = guard else {
            let zero = extent.get_type().const_zero();
            return body(self, (zero, extent));
        };
        let bounds = self.guard_values(guard)?;
        let long = self.emitter.cx.types.context.i64_type();
        let (zero, extent) = (long.const_zero(), index(&self.emitter, extent)?);
        if !guard.ranges.iter().any(|range| range.wraps) {
            let span = self.span(&bounds, zero, extent)?;
            return body(self, span);
        }
        let (head, end) = (self.emitter.block("part"), self.emitter.block("part_end"));
        let before = self.emitter.current()?;
        self.emitter.builder.build_unconditional_branch(head)?;
        self.emitter.builder.position_at_end(head);
        let phi = self.emitter.builder.build_phi(long, "part")?;
        phi.add_incoming(&[(&zero, before)]);
        let from = phi.as_basic_value().into_int_value();
        let mut to = extent;
        for bound in bounds.ranges.iter().filter(|bound| bound.wraps) {
            // The part ends after the thread whose value is the largest integer. If the row has no such thread, the
            // part ends with the row.
            let builder = &self.emitter.builder;
            let value = builder.build_int_add(bound.value, from, "")?;
            let largest = long.const_int(i64::MAX as u64, false);
            let left = self.emitter.call_intrinsic("llvm.ssub.sat", &[largest.into(), value.into()])?;
            let last = self.emitter.call_intrinsic("llvm.sadd.sat", &[left, from.into()])?;
            let after = self.emitter.call_intrinsic("llvm.sadd.sat", &[last, long.const_int(1, false).into()])?;
            to = self.choose("llvm.smin", to, after)?;
        }
        let span = self.span(&bounds, from, to)?;
        body(self, span)?;
        let last = self.emitter.current()?;
        phi.add_incoming(&[(&to, last)]);
        let more = self.emitter.builder.build_int_compare(IntPredicate::SLT, to, extent, "")?;
        self.emitter.builder.build_conditional_branch(more, head, end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// The threads of the current row that a guard lets through. No value of the guard may wrap.
    pub(crate) fn span_of(&mut self, guard: Option<&Guard>) -> Result<(IntValue<'ctx>, IntValue<'ctx>)> {
        let extent = self.hooks.frame.get().row;
        let Some(guard) = guard else { return Ok((extent.get_type().const_zero(), extent)) };
        let values = self.guard_values(guard)?;
        let long = self.emitter.cx.types.context.i64_type();
        let (low, high) = self.span(&values, long.const_zero(), index(&self.emitter, extent)?)?;
        Ok((low, self.choose("llvm.smax", low, high.into())?))
    }

    /// Computes the values that a guard compares, for the current row.
    pub(crate) fn guard_values(&mut self, guard: &Guard) -> Result<GuardValues<'ctx>> {
        for &local in &guard.recompute {
            let place = match self.row_slots[local.index()] {
                Some(place) => place,
                None => self.new_place(local)?,
            };
            self.row_slots[local.index()] = Some(place);
            self.emitter.slots[local.index()] = Some(place);
        }
        for &local in &guard.recompute {
            self.compute(local)?;
        }
        let mut values = GuardValues { ranges: Vec::new(), rows: Vec::new() };
        for &Range { value, op, bound, times, plus, wraps } in &guard.ranges {
            let (value, bound) = (self.wide(value)?, self.wide(bound)?);
            let times = bound.get_type().const_int(times.cast_unsigned(), true);
            let bound = self.emitter.builder.build_int_nsw_mul(bound, times, "")?;
            let plus = bound.get_type().const_int(plus.cast_unsigned(), true);
            let bound = self.emitter.builder.build_int_nsw_add(bound, plus, "")?;
            values.ranges.push(RangeValues { value, op, bound, wraps });
        }
        for &(cond, negated) in &guard.rows {
            values.rows.push((self.emitter.emit_int(cond)?, negated));
        }
        Ok(values)
    }

    /// The threads among `from..to` of the row that a guard lets through. `from` must not exceed `to`, and no value may
    /// wrap within the range. In the result, the end may precede the start: the range is then empty.
    pub(crate) fn span(
        &self,
        guard: &GuardValues<'ctx>,
        from: IntValue<'ctx>,
        to: IntValue<'ctx>,
    ) -> Result<(IntValue<'ctx>, IntValue<'ctx>)> {
        let one = to.get_type().const_int(1, false);
        let (mut low, mut high) = (from, to);
        for range in &guard.ranges {
            let first = self.emitter.builder.build_int_add(range.value, from, "")?;
            // The index of the thread whose value equals the bound. It may be outside the row.
            let ahead = self.emitter.call_intrinsic("llvm.ssub.sat", &[range.bound.into(), first.into()])?;
            let at = self.emitter.call_intrinsic("llvm.sadd.sat", &[ahead, from.into()])?;
            let after = self.emitter.call_intrinsic("llvm.sadd.sat", &[at, one.into()])?;
            let below = |this: &Self, limit: BasicValueEnum<'ctx>| this.choose("llvm.smin", high, limit);
            let above = |this: &Self, limit: BasicValueEnum<'ctx>| this.choose("llvm.smax", low, limit);
            match range.op {
                CompareOp::Lt => high = below(self, at)?,
                CompareOp::Le => high = below(self, after)?,
                CompareOp::Gt => low = above(self, after)?,
                CompareOp::Ge => low = above(self, at)?,
                CompareOp::Eq => (low, high) = (above(self, at)?, below(self, after)?),
                CompareOp::Ne => return internal("a bound that is no interval"),
            }
        }
        // Both limits are clamped to the row, so they fit `i32`.
        let low = self.choose("llvm.smin", low, to.into())?;
        let mut high = self.choose("llvm.smax", high, from.into())?;
        for &(cond, negated) in &guard.rows {
            let (yes, no) = if negated { (low, high) } else { (high, low) };
            // A condition that does not hold makes the range empty: `high = low`, which is within the row.
            high = self.emitter.builder.build_select(cond, yes, no, "")?.into_int_value();
        }
        let int = self.emitter.cx.types.context.i32_type();
        let narrow = |value| self.emitter.builder.build_int_truncate(value, int, "");
        Ok((narrow(low)?, narrow(high)?))
    }

    pub(crate) fn choose(&self, intrinsic: &str, a: IntValue<'ctx>, b: BasicValueEnum<'ctx>) -> Result<IntValue<'ctx>> {
        Ok(self.emitter.call_intrinsic(intrinsic, &[a.into(), b])?.into_int_value())
    }

    /// A signed integer expression, extended to 64 bits.
    fn wide(&self, expr: crate::ir::ExprId) -> Result<IntValue<'ctx>> {
        let value = self.emitter.emit_int(expr)?;
        let long = self.emitter.cx.types.context.i64_type();
        if value.get_type() == long {
            return Ok(value);
        }
        Ok(self.emitter.builder.build_int_s_extend(value, long, "")?)
    }

    pub(crate) fn memory_type(&self, local: LocalId) -> Result<BasicTypeEnum<'ctx>> {
        self.emitter.cx.types.memory(self.emitter.function.locals[local].ty)
    }

    pub(crate) fn new_place(&self, local: LocalId) -> Result<PointerValue<'ctx>> {
        Ok(self.allocas.build_alloca(self.memory_type(local)?, &self.emitter.function.locals[local].name)?)
    }

    /// Assigns its value to a rematerializable local.
    pub(crate) fn compute(&self, local: LocalId) -> Result<()> {
        let Some(value) = self.plan.fixed.value(local) else { return internal("a local that is not fixed") };
        let value = self.emitter.emit_expr(value)?;
        self.emitter.set_local(local, value)
    }

    /// The address of a thread's element of a local that is live across a barrier: in the array of the current strip if
    /// it has one, else in the context array.
    pub(crate) fn element(&self, local: LocalId, thread: IntValue<'ctx>) -> Result<PointerValue<'ctx>> {
        match self.strip.as_ref().and_then(|strip| strip.element(local)) {
            Some((array, lane)) => self.lane_of(array, lane, local),
            None => self.kept(local, thread),
        }
    }

    /// The address of the first thread's element in the context array of a local. Where a warp is a block, the array is
    /// on the stack.
    pub(crate) fn first_kept(&self, local: LocalId) -> Result<PointerValue<'ctx>> {
        if let Some(place) = self.carried.locals.get(local.index()).copied().flatten() {
            return Ok(place);
        }
        let Some(offset) = self.offsets.local(local) else {
            return internal("a local that is live across a barrier without an offset");
        };
        known_offset(&self.emitter, self.hooks.frame.get().scratch, offset)
    }

    /// The address of a thread's element in the context array of a local.
    pub(crate) fn kept(&self, local: LocalId, thread: IntValue<'ctx>) -> Result<PointerValue<'ctx>> {
        let base = self.first_kept(local)?;
        let ty = self.memory_type(local)?;
        let at = index(&self.emitter, thread)?;
        // SAFETY: a context array has an element for each thread of the largest block.
        Ok(unsafe { self.emitter.builder.build_in_bounds_gep(ty, base, &[at], "")? })
    }

    /// Emits one thread, which runs a body of the region. All paths join in the block at which the builder is left.
    /// With `others`, the live-out values are stored for a range of threads: the linear indices of the first of them
    /// and of the one after the last.
    pub(crate) fn thread(
        &mut self,
        segment: &Segment,
        body: &[Stmt],
        thread: IntValue<'ctx>,
        others: Option<(IntValue<'ctx>, IntValue<'ctx>)>,
    ) -> Result<()> {
        let end = self.emitter.block("thread_end");
        if let Some(active) = segment.active {
            let run = self.emitter.block("thread_runs");
            let byte = self.emitter.cx.types.context.i8_type();
            let place = self.mask_byte(active, thread)?;
            let builder = &self.emitter.builder;
            let is_in = builder.build_load(byte, place, "")?.into_int_value();
            let is_in = builder.build_int_compare(IntPredicate::NE, is_in, byte.const_zero(), "")?;
            builder.build_conditional_branch(is_in, run, end)?;
            builder.position_at_end(run);
        }
        if let Some(seen) = self.hooks.seen.get() {
            seen.set_thread(&self.emitter, self.hooks.frame.get().context, thread)?;
        }
        self.enter_with(segment, &segment.load, thread)?;
        let put_back = self.emitter.block("put_back");
        let returned = self.way_out(&segment.on_return, thread, end)?;
        self.hooks.return_to.set(Some(returned));
        let in_loop = !segment.on_break.is_empty() || !segment.on_continue.is_empty();
        if in_loop {
            let break_to = self.way_out(&segment.on_break, thread, put_back)?;
            let continue_to = self.way_out(&segment.on_continue, thread, put_back)?;
            self.emitter.loops.push(LoopTargets { break_to, continue_to });
        }
        self.take_replacements()?;
        if let Some(holds) = self.lane_runs()? {
            let run = self.emitter.block("lane_runs");
            self.emitter.builder.build_conditional_branch(holds, run, put_back)?;
            self.emitter.builder.position_at_end(run);
        }
        self.emitter.emit_block(body)?;
        if !self.replacements.is_empty() {
            self.emitter.ahead.clear();
            self.emitter.elsewhere.clear();
        }
        if in_loop {
            self.emitter.loops.pop();
        }
        self.emitter.go(put_back)?;
        self.emitter.builder.position_at_end(put_back);
        for &local in &segment.store {
            let from = self.emitter.slot(local)?;
            let value = self.emitter.builder.build_load(self.memory_type(local)?, from, "")?;
            let Some(others) = others else {
                let to = self.element(local, thread)?;
                self.emitter.builder.build_store(to, value)?;
                continue;
            };
            self.counted("other", others, |this, other| {
                let to = this.element(local, other)?;
                this.emitter.builder.build_store(to, value)?;
                Ok(())
            })?;
        }
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// Initializes the slots of a thread's private locals. Those in `load` are loaded from their context arrays. Also
    /// sets the addresses of local arrays that are live across barriers, and computes the rematerializable locals.
    pub(crate) fn enter_with(&mut self, segment: &Segment, load: &[LocalId], thread: IntValue<'ctx>) -> Result<()> {
        let padded = self.strip.as_ref().is_some_and(|strip| strip.padded);
        for &local in &segment.locals {
            let Some(place) = self.own_slots[local.index()] else { return internal("a private local without a slot") };
            self.emitter.slots[local.index()] = Some(place);
            let ty = self.memory_type(local)?;
            let value = if load.contains(&local) {
                let from = self.element(local, thread)?;
                self.emitter.builder.build_load(ty, from, "")?
            } else if padded {
                // An absent lane runs no statement, but its live-out values are stored.
                ty.const_zero()
            } else {
                // `undef` ends the live range of the previous thread's value in this slot.
                undefined(ty)?
            };
            self.emitter.builder.build_store(place, value)?;
        }
        for &array in &self.plan.live_across.arrays {
            let Some(place) = self.offsets.array(array) else {
                return internal("an array that is live across a barrier without an offset");
            };
            let long = self.emitter.cx.types.context.i64_type();
            let before = self.emitter.builder.build_int_nuw_mul(
                index(&self.emitter, thread)?,
                long.const_int(place.stride, false),
                "",
            )?;
            let base = known_offset(&self.emitter, self.hooks.frame.get().scratch, place.offset)?;
            let base = byte_offset(&self.emitter, base, before)?;
            if let Some(known) = self.hooks.arrays.borrow_mut().get_mut(array.index()) {
                *known = Some(base);
            }
        }
        self.set_lane_arrays()?;
        for &local in &segment.recompute {
            self.compute(local)?;
        }
        Ok(())
    }

    /// A block that clears the thread's byte in each of `masks` and branches to `to`. Without masks, `to` itself.
    fn way_out(&mut self, masks: &[MaskId], thread: IntValue<'ctx>, to: BasicBlock<'ctx>) -> Result<BasicBlock<'ctx>> {
        if masks.is_empty() {
            return Ok(to);
        }
        let here = self.emitter.current()?;
        let block = self.emitter.block("leave");
        self.emitter.builder.position_at_end(block);
        let out = self.emitter.cx.types.context.i8_type().const_zero();
        for &mask in masks {
            let place = self.mask_byte(mask, thread)?;
            self.emitter.builder.build_store(place, out)?;
        }
        self.emitter.go(to)?;
        self.emitter.builder.position_at_end(here);
        Ok(block)
    }
}

pub(crate) fn undefined(ty: BasicTypeEnum<'_>) -> Result<BasicValueEnum<'_>> {
    Ok(match ty {
        BasicTypeEnum::IntType(int) => int.get_undef().into(),
        BasicTypeEnum::FloatType(float) => float.get_undef().into(),
        BasicTypeEnum::PointerType(pointer) => pointer.get_undef().into(),
        other @ (BasicTypeEnum::ArrayType(_)
        | BasicTypeEnum::StructType(_)
        | BasicTypeEnum::VectorType(_)
        | BasicTypeEnum::ScalableVectorType(_)) => return internal(format!("a local of type {other}")),
    })
}
