//! Strip-mined thread loops ([`Strips`]): a few adjacent threads run several nodes before the next threads begin.
//!
//! ```text
//! for node in nodes:                          for strip in low..high by width:
//!     for x in low..high: node                    for node in nodes:
//!                                                     for lane in 0..width: node
//! ```
//!
//! Values that are live across the nodes are in arrays with one element for each lane of a strip. The lane loop of a
//! full strip has a constant trip count and becomes straight-line vector code, so LLVM promotes these arrays to
//! registers. In the context arrays of the original loops, each node would load and store them.
//!
//! The remaining threads of a row form one shorter strip, or a padded one (`absent_lanes.rs`). A strip may also have
//! several rows (unroll-and-jam), if all of them have the same range of threads. The plan
//! ([`strip_mine`](crate::backend::host::plan::vector::strip_mine)) decides which nodes are strip-mined, and with which
//! width. No barrier of the program may be among them.

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use std::collections::HashMap;

use inkwell::{
    IntPredicate,
    types::BasicTypeEnum,
    values::{BasicValueEnum, IntValue, PointerValue},
};

use crate::{
    backend::{
        host::{
            emit::{
                access_groups::Shape,
                guard_values::{GuardValues, RangeValues},
                kernel::KernelEmitter,
                position::{Frame, count, index},
                strip::{Places, Row, Span, Strip, StripRow},
            },
            plan::{MaskedLoop, Node, Segment, Strips},
        },
        llvm::{Result, internal},
    },
    ir::{CompareOp, LocalArrayId, LocalId},
};

/// Alignment of a strip's arrays: that of a vector.
const ALIGN: u32 = 64;

/// The values that all strips of a [`Strips`] node share.
pub(crate) struct Common<'a, 'ctx> {
    pub(crate) strips: &'a Strips,
    /// Uniform locals that the nodes assign: the type, the slot, and the address of the value before the first strip.
    first_values: Vec<(BasicTypeEnum<'ctx>, PointerValue<'ctx>, PointerValue<'ctx>)>,
    /// The arrays of a full strip, by row, and (`rest`) of a shorter one.
    pub(crate) whole: Vec<Places<'ctx>>,
    rest: Places<'ctx>,
    /// The thread-local arrays of lanes.
    pub(crate) arrays: Vec<(LocalArrayId, PointerValue<'ctx>)>,
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Emits the nodes for all threads that the guard lets through, strip by strip.
    pub(crate) fn strips(&mut self, strips: &Strips) -> Result<()> {
        let mut first_values = Vec::new();
        for &local in &strips.shared {
            let (ty, place) = (self.memory_type(local)?, self.emitter.slot(local)?);
            let kept = self.allocas.build_alloca(ty, "first")?;
            let value = self.emitter.builder.build_load(ty, place, "")?;
            self.emitter.builder.build_store(kept, value)?;
            first_values.push((ty, place, kept));
        }
        let mut whole = Vec::new();
        for _ in 0..strips.rows {
            whole.push(self.places_of(strips)?);
        }
        let arrays = self.lane_arrays_of(strips)?;
        let common = Common { strips, first_values, whole, rest: self.places_of(strips)?, arrays };
        if strips.rows > 1 {
            return match self.plan.row_width {
                Some(width) if strips.is_of_rows(width) => self.known_or_several_rows(&common, width),
                Some(_) | None => self.several_rows(&common),
            };
        }
        self.each_row(|this, row, first_thread| {
            this.spans(strips.guard.as_ref(), |this, span| this.strips_of_row(&common, (row, first_thread), span))
        })
    }

    /// Emits the strips for a range of threads in one row.
    fn strips_of_row(&mut self, common: &Common<'_, 'ctx>, row: Row<'ctx>, (low, high): Span<'ctx>) -> Result<()> {
        let high = self.choose("llvm.smax", low, high.into())?;
        if common.strips.transposed {
            return self.walking_strips(common, row, (low, high));
        }
        let width = self.int(common.strips.width);
        let threads = self.emitter.builder.build_int_nuw_sub(high, low, "")?;
        let iterations = self.emitter.builder.build_int_unsigned_div(threads, width, "strips")?;
        let left = self.emitter.builder.build_int_unsigned_rem(threads, width, "left")?;
        let has_left = self.choose("llvm.umin", left, self.int(1).into())?;
        let Some(places) = common.whole.first().cloned() else { return internal("a strip without a row") };
        let rows = vec![StripRow { row, places }];
        self.whole_strips(common, rows, low, iterations)?;
        let shape = if common.strips.exact { Shape::Single } else { Shape::Loop };
        self.counted("last_strip", (self.int(0), has_left), |this, _| {
            let from = this.emitter.builder.build_int_sub(high, left, "")?;
            let rows = vec![StripRow { row, places: common.rest.clone() }];
            let most = common.strips.width;
            let (asked, arrays) = (Vec::new(), common.arrays.clone());
            this.one(
                common,
                Strip { rows, from, width: left, most, padded: false, shape, present: None, asked, arrays },
            )
        })?;
        Ok(())
    }

    /// Emits `iterations` full strips, the first of which begins at thread `low`.
    pub(crate) fn whole_strips(
        &mut self,
        common: &Common<'_, 'ctx>,
        rows: Vec<StripRow<'ctx>>,
        low: IntValue<'ctx>,
        iterations: IntValue<'ctx>,
    ) -> Result<()> {
        let width = self.int(common.strips.width);
        let shape = if common.strips.scalar { Shape::Straight } else { Shape::Vectors };
        self.counted("strip", (self.int(0), iterations), |this, iteration| {
            let builder = &this.emitter.builder;
            let from = builder.build_int_add(low, builder.build_int_nuw_mul(iteration, width, "")?, "")?;
            let (most, asked, arrays) = (common.strips.width, Vec::new(), common.arrays.clone());
            this.one(common, Strip { rows, from, width, most, padded: false, shape, present: None, asked, arrays })
        })?;
        Ok(())
    }

    /// Emits strips of several rows at a time. If the rows have the same range of threads, full strips cover all of
    /// them. The remaining threads run row by row.
    pub(crate) fn several_rows(&mut self, common: &Common<'_, 'ctx>) -> Result<()> {
        let (zero, one) = (self.int(0), self.int(1));
        let most = common.strips.rows;
        let Frame { row: extent_x, rows: [extent_y, extent_z], .. } = self.hooks.frame.get();
        let all = self.emitter.builder.build_int_nuw_mul(extent_y, extent_z, "rows")?;
        let groups = self.emitter.builder.build_int_add(all, self.int(most - 1), "")?;
        let groups = self.emitter.builder.build_int_unsigned_div(groups, self.int(most), "groups")?;
        let spans = self.allocas.build_array_alloca(zero.get_type(), self.int(2 * most), "spans")?;
        self.counted("group", (zero, groups), |this, group| {
            let first = this.emitter.builder.build_int_nuw_mul(group, this.int(most), "first_row")?;
            let here = this.emitter.builder.build_int_nuw_sub(all, first, "")?;
            let here = this.choose("llvm.umin", here, this.int(most).into())?;
            let row_at = |this: &Self, number: IntValue<'ctx>| -> Result<Row<'ctx>> {
                let builder = &this.emitter.builder;
                let row = builder.build_int_nuw_add(first, number, "row")?;
                let y = builder.build_int_unsigned_rem(row, extent_y, "y")?;
                let z = builder.build_int_unsigned_div(row, extent_y, "z")?;
                Ok(([y, z], builder.build_int_nuw_mul(row, extent_x, "")?))
            };
            let (mut rows, mut common_span) = (Vec::new(), None);
            // The rows must be in one plane of the block (the same `z`), so that their elements of an array are at
            // constant distances.
            let ([first_y, z], first_thread) = row_at(this, zero)?;
            let in_plane = this.emitter.builder.build_int_nuw_sub(extent_y, first_y, "")?;
            let in_plane = this.choose("llvm.umin", in_plane, here.into())?;
            let mut differ = this.emitter.builder.build_int_compare(IntPredicate::ULT, in_plane, this.int(most), "")?;
            for number in 0..most {
                let builder = &this.emitter.builder;
                let y = builder.build_int_nuw_add(first_y, this.int(number), "y")?;
                let before = builder.build_int_nuw_mul(extent_x, this.int(number), "")?;
                let row = ([y, z], builder.build_int_nuw_add(first_thread, before, "")?);
                this.set_thread([zero, row.0[0], row.0[1]]);
                let (low, high) = this.span_of(common.strips.guard.as_ref())?;
                for (at, value) in [(2 * number, low), (2 * number + 1, high)] {
                    let place = this.span_place(spans, this.int(at))?;
                    this.emitter.builder.build_store(place, value)?;
                }
                common_span = Some(match common_span {
                    None => (low, high),
                    Some((before_low, before_high)) => {
                        let builder = &this.emitter.builder;
                        let low_differs = builder.build_int_compare(IntPredicate::NE, before_low, low, "")?;
                        let high_differs = builder.build_int_compare(IntPredicate::NE, before_high, high, "")?;
                        let some = builder.build_or(low_differs, high_differs, "")?;
                        differ = builder.build_or(differ, some, "")?;
                        (before_low, before_high)
                    }
                });
                let Some(places) = common.whole.get(number as usize).cloned() else {
                    return internal("a row of a strip without arrays");
                };
                rows.push(StripRow { row, places });
            }
            let Some((low, high)) = common_span else { return internal("a strip without a row") };
            // Rows with different ranges of threads run one by one.
            let builder = &this.emitter.builder;
            let threads = builder.build_int_nuw_sub(high, low, "")?;
            let iterations = builder.build_int_unsigned_div(threads, this.int(common.strips.width), "strips")?;
            let iterations = builder.build_select(differ, zero, iterations, "strips")?.into_int_value();
            this.whole_strips(common, rows, low, iterations)?;
            let done = this.emitter.builder.build_int_nuw_mul(iterations, this.int(common.strips.width), "done")?;
            let is_left = this.emitter.builder.build_int_compare(IntPredicate::ULT, done, threads, "")?;
            let is_left = this.emitter.builder.build_or(is_left, differ, "")?;
            let left = this.emitter.builder.build_select(is_left, here, zero, "")?.into_int_value();
            this.counted("row_left", (zero, left), |this, number| {
                let row = row_at(this, number)?;
                this.set_thread([zero, row.0[0], row.0[1]]);
                let builder = &this.emitter.builder;
                let at = builder.build_int_nuw_mul(number, this.int(2), "")?;
                let low = this.span_place(spans, at)?;
                let high = this.span_place(spans, builder.build_int_nuw_add(at, one, "")?)?;
                let low = builder.build_load(zero.get_type(), low, "")?.into_int_value();
                let high = builder.build_load(zero.get_type(), high, "")?.into_int_value();
                let low = builder.build_int_add(low, done, "")?;
                this.strips_of_row(common, row, (low, high))
            })?;
            Ok(())
        })?;
        Ok(())
    }

    pub(crate) fn int(&self, value: u32) -> IntValue<'ctx> {
        self.emitter.cx.types.context.i32_type().const_int(u64::from(value), false)
    }

    fn span_place(&self, spans: PointerValue<'ctx>, at: IntValue<'ctx>) -> Result<PointerValue<'ctx>> {
        let at = index(&self.emitter, at)?;
        // SAFETY: the array has two elements for each row.
        Ok(unsafe { self.emitter.builder.build_in_bounds_gep(self.int(0).get_type(), spans, &[at], "")? })
    }

    /// Emits one strip. Uniform locals that the nodes assign get the values that they had before the first strip.
    pub(crate) fn one(&mut self, common: &Common<'_, 'ctx>, strip: Strip<'ctx>) -> Result<()> {
        for &(ty, place, kept) in &common.first_values {
            let value = self.emitter.builder.build_load(ty, kept, "")?;
            self.emitter.builder.build_store(place, value)?;
        }
        let strips = common.strips;
        self.strip = Some(strip);
        self.carry(&strips.live_in, true)?;
        let inlines_math = strips.inlines_math && self.strip.as_ref().is_some_and(Strip::has_vectors);
        self.emitter.inlines_math.set(inlines_math);
        self.nodes(&strips.nodes)?;
        self.emitter.inlines_math.set(false);
        self.carry(&strips.live_out, false)?;
        self.strip = None;
        if self.is_long_iteration(&strips.nodes) { self.hooks.look_up(&self.emitter) } else { Ok(()) }
    }

    /// Allocates the arrays of a strip in one row.
    fn places_of(&mut self, strips: &Strips) -> Result<Places<'ctx>> {
        let mut places = HashMap::new();
        for &local in &strips.lane_locals {
            places.insert(local, self.array_of(local, strips.width)?);
        }
        Ok(places)
    }

    /// Allocates an array of a local, with one element for each of `threads` lanes.
    pub(crate) fn array_of(&self, local: LocalId, threads: u32) -> Result<PointerValue<'ctx>> {
        let name = &self.emitter.function.locals[local].name;
        self.array(self.memory_type(local)?, threads, name)
    }

    /// Allocates an array on the stack, aligned for vectors.
    pub(crate) fn array(&self, ty: BasicTypeEnum<'ctx>, elements: u32, name: &str) -> Result<PointerValue<'ctx>> {
        let place = self.allocas.build_array_alloca(ty, self.int(elements), name)?;
        if let Some(alloca) = place.as_instruction() {
            let set = alloca.set_alignment(ALIGN);
            set.or_else(|error| internal(format!("an alignment of {ALIGN}: {error}")))?;
        }
        Ok(place)
    }

    /// Emits a region for the lanes of the current strip.
    pub(crate) fn segment_of_strip(&mut self, segment: &Segment) -> Result<()> {
        if let Some(lane_max) = segment.lane_max {
            return self.lane_max(segment, lane_max);
        }
        if segment.scalar_lanes && self.strip.as_ref().is_some_and(|strip| strip.shape == Shape::Vectors) {
            return self.one_by_one(|this| this.segment_of_strip(segment));
        }
        let looks = self.goes_on_for_long(segment);
        let threads = |this: &mut Self| {
            this.lanes(segment.parallel, |this, thread| {
                this.thread(segment, &segment.body, thread, None)?;
                if looks { this.hooks.look_up(&this.emitter) } else { Ok(()) }
            })
        };
        let Some(some) = &segment.lane_guard else { return threads(self) };
        let Some(Strip { rows, from, width, shape, asked, .. }) = self.strip.clone() else {
            return internal("threads of no strip");
        };
        let [StripRow { row, .. }] = rows.as_slice() else { return internal("some threads of rows") };
        let (row, [y, z]) = (*row, row.0);
        self.set_thread([self.int(0), y, z]);
        let GuardValues { ranges, rows } = self.guard_values(some)?;
        let (ask, end) = (self.emitter.block("some_lanes"), self.emitter.block("lanes_end"));
        for (cond, negated) in rows {
            let next = self.emitter.block("lanes_here");
            let (yes, no) = if negated { (end, next) } else { (next, end) };
            self.emitter.builder.build_conditional_branch(cond, yes, no)?;
            self.emitter.builder.position_at_end(next);
        }
        if shape == Shape::Vectors {
            let every = self.emitter.block("all_lanes");
            let all = self.all_run(&ranges, from, width)?;
            self.emitter.builder.build_conditional_branch(all, every, ask)?;
            self.emitter.builder.position_at_end(every);
            let behind = self.emitter.builder.build_int_nuw_add(from, width, "")?;
            self.fetch_ahead(segment, row, (from, behind))?;
            threads(self)?;
            self.emitter.go(end)?;
        } else {
            self.emitter.go(ask)?;
        }
        self.emitter.builder.position_at_end(ask);
        // These ranges are tested in addition to those that each lane of the strip tests anyway.
        self.ask(asked.iter().cloned().chain(ranges).collect());
        threads(self)?;
        self.ask(asked);
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// Sets the ranges that each lane of the current strip tests.
    pub(crate) fn ask(&mut self, asked: Vec<RangeValues<'ctx>>) {
        if let Some(strip) = &mut self.strip {
            strip.asked = asked;
        }
    }

    /// Whether all threads `from..from + width` of a row are in the ranges. `false` where a value wraps among them, and
    /// for ranges of one value.
    pub(crate) fn all_run(
        &self,
        ranges: &[RangeValues<'ctx>],
        from: IntValue<'ctx>,
        width: IntValue<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        let mut all = self.emitter.cx.types.context.bool_type().const_int(1, false);
        let (from, width) = (index(&self.emitter, from)?, index(&self.emitter, width)?);
        let builder = &self.emitter.builder;
        for range in ranges {
            let first = builder.build_int_add(range.value, from, "")?;
            let behind = builder.build_int_add(first, width, "")?;
            let last = builder.build_int_sub(behind, width.get_type().const_int(1, false), "")?;
            let grows = builder.build_int_compare(IntPredicate::SGT, behind, first, "")?;
            let (value, predicate) = match range.op {
                CompareOp::Lt => (last, IntPredicate::SLT),
                CompareOp::Le => (last, IntPredicate::SLE),
                CompareOp::Gt => (first, IntPredicate::SGT),
                CompareOp::Ge => (first, IntPredicate::SGE),
                CompareOp::Eq | CompareOp::Ne => return Ok(all.get_type().const_zero()),
            };
            let holds = builder.build_int_compare(predicate, value, range.bound, "")?;
            all = builder.build_and(all, builder.build_and(grows, holds, "")?, "all_run")?;
        }
        Ok(all)
    }

    /// Whether the current lane passes the ranges that the strip's lanes test; `None` if there are none.
    pub(crate) fn lane_runs(&self) -> Result<Option<IntValue<'ctx>>> {
        let Some(strip) = self.strip.as_ref().filter(|strip| !strip.asked.is_empty()) else { return Ok(None) };
        let [x, ..] = self.hooks.frame.get().thread;
        let x = index(&self.emitter, x)?;
        let builder = &self.emitter.builder;
        let mut runs = self.emitter.cx.types.context.bool_type().const_int(1, false);
        for range in &strip.asked {
            let value = builder.build_int_add(range.value, x, "")?;
            let predicate = match range.op {
                CompareOp::Eq => IntPredicate::EQ,
                CompareOp::Ne => IntPredicate::NE,
                CompareOp::Lt => IntPredicate::SLT,
                CompareOp::Le => IntPredicate::SLE,
                CompareOp::Gt => IntPredicate::SGT,
                CompareOp::Ge => IntPredicate::SGE,
            };
            let holds = builder.build_int_compare(predicate, value, range.bound, "")?;
            runs = builder.build_and(runs, holds, "")?;
        }
        Ok(Some(runs))
    }

    /// Runs `body` for each lane of the current strip, with the thread's linear index.
    pub(crate) fn lanes(
        &mut self,
        parallel: bool,
        body: impl Fn(&mut Self, IntValue<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let Some(Strip { width, .. }) = self.strip else { return internal("lanes of no strip") };
        self.lanes_between((self.int(0), width), parallel, body)
    }

    /// As [`Self::lanes`], for a range of the lanes.
    pub(crate) fn lanes_between(
        &mut self,
        bounds: Span<'ctx>,
        parallel: bool,
        body: impl Fn(&mut Self, IntValue<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let Some(strip) = self.strip.clone() else { return internal("lanes of no strip") };
        for (number, StripRow { row: ([y, z], first_thread), .. }) in strip.rows.iter().enumerate() {
            let (head, back) = self.counted("lane", bounds, |this, lane| {
                let x = count(&this.emitter, strip.from, lane)?;
                let thread = count(&this.emitter, *first_thread, x)?;
                this.set_thread([x, *y, *z]);
                this.strip = Some(Strip { present: Some((number, lane)), ..strip.clone() });
                body(this, thread)
            })?;
            self.parallel.promise(head, back, parallel, strip.shape);
        }
        self.strip = Some(strip);
        Ok(())
    }

    /// Whether at most `most` lanes of the strip are still in a loop with divergent exits. Before iteration
    /// `min_iteration`: whether no lane is.
    pub(crate) fn active_at_most(
        &mut self,
        masked_loop: &MaskedLoop,
        most: u32,
        min_iteration: u32,
    ) -> Result<IntValue<'ctx>> {
        let zero = self.int(0);
        // A strip of scalar code runs its lanes one by one from the start.
        if most > 0 && self.strip.as_ref().is_some_and(|strip| strip.shape != Shape::Vectors) {
            return Ok(self.emitter.cx.types.context.bool_type().const_all_ones());
        }
        let seen = self.allocas.build_alloca(zero.get_type(), "seen")?;
        self.emitter.builder.build_store(seen, zero)?;
        self.lanes(false, |this, _| {
            let Some((array, lane)) = this.strip.as_ref().and_then(|strip| strip.element(masked_loop.alive)) else {
                return internal("a loop with a divergent exit is in no strip");
            };
            let place = this.lane_of(array, lane, masked_loop.alive)?;
            let builder = &this.emitter.builder;
            let one = builder.build_load(zero.get_type(), place, "")?.into_int_value();
            let before = builder.build_load(zero.get_type(), seen, "")?.into_int_value();
            builder.build_store(seen, builder.build_int_nuw_add(before, one, "")?)?;
            Ok(())
        })?;
        let done = self.emitter.slot(masked_loop.iterations)?;
        let builder = &self.emitter.builder;
        let seen = builder.build_load(zero.get_type(), seen, "")?.into_int_value();
        let done = builder.build_load(zero.get_type(), done, "")?.into_int_value();
        let is_late = builder.build_int_compare(IntPredicate::UGE, done, self.int(min_iteration), "")?;
        let most = builder.build_select(is_late, self.int(most), zero, "")?.into_int_value();
        Ok(builder.build_int_compare(IntPredicate::ULE, seen, most, "few")?)
    }

    /// Emits nodes that run lane by lane, on copies of the strip's arrays. LLVM promotes the original arrays to
    /// registers only if no access to them has a variable index.
    pub(crate) fn aside(&mut self, nodes: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let Some(strip) = self.strip.clone() else { return internal("threads of no strip") };
        let mut aside = strip.clone();
        let mut copies = Vec::new();
        for row in &mut aside.rows {
            let mut places: Vec<_> = row.places.iter_mut().collect();
            places.sort_by_key(|(local, _)| **local);
            for (&local, place) in places {
                let own = self.array_of(local, strip.most)?;
                copies.push((*place, own, u64::from(strip.most) * self.emitter.function.locals[local].ty.host_bytes()));
                *place = own;
            }
        }
        for &(from, to, bytes) in &copies {
            self.copy_array(from, to, bytes)?;
        }
        self.strip = Some(aside);
        nodes(self)?;
        for (to, from, bytes) in copies {
            self.copy_array(from, to, bytes)?;
        }
        self.strip = Some(strip);
        Ok(())
    }

    pub(crate) fn copy_array(&self, from: PointerValue<'ctx>, to: PointerValue<'ctx>, bytes: u64) -> Result<()> {
        let bytes = self.emitter.cx.types.context.i64_type().const_int(bytes, false);
        let done = self.emitter.builder.build_memcpy(to, ALIGN, from, ALIGN, bytes);
        done.map(drop).or_else(|error| internal(format!("LLVM cannot copy what a strip carries: {error}")))
    }

    /// Loads locals from their context arrays to the strip's arrays, or stores them back.
    fn carry(&mut self, locals: &[LocalId], fetch: bool) -> Result<()> {
        if locals.is_empty() {
            return Ok(());
        }
        self.lanes(true, |this, thread| {
            let runs = this.lane_runs()?;
            for &local in locals {
                let Some((array, lane)) = this.strip.as_ref().and_then(|strip| strip.element(local)) else {
                    return internal("a local that is live across a barrier without an element in its strip");
                };
                let (own, kept) = (this.lane_of(array, lane, local)?, this.kept(local, thread)?);
                let ty = this.memory_type(local)?;
                let (from, to) = if fetch { (kept, own) } else { (own, kept) };
                let Some(runs) = runs else {
                    let value = this.emitter.builder.build_load(ty, from, "")?;
                    this.emitter.builder.build_store(to, value)?;
                    continue;
                };
                // Only the context array is accessed under a mask. Unmasked accesses let LLVM promote the strip's array
                // to registers.
                let value = if fetch {
                    let none = ty.const_zero();
                    this.where_runs(runs, |this| Ok(this.emitter.builder.build_load(ty, from, "")?), none)?
                } else {
                    this.emitter.builder.build_load(ty, from, "")?
                };
                if fetch {
                    this.emitter.builder.build_store(to, value)?;
                    continue;
                }
                let store = |this: &mut Self| {
                    this.emitter.builder.build_store(to, value)?;
                    Ok(value)
                };
                this.where_runs(runs, store, value)?;
            }
            Ok(())
        })
    }

    /// `value` where the current lane runs, `otherwise` elsewhere. A branch guards the computation of `value`.
    fn where_runs(
        &mut self,
        runs: IntValue<'ctx>,
        value: impl FnOnce(&mut Self) -> Result<BasicValueEnum<'ctx>>,
        otherwise: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let (here, end) = (self.emitter.block("lane_carries"), self.emitter.block("lane_carried"));
        let before = self.emitter.current()?;
        self.emitter.builder.build_conditional_branch(runs, here, end)?;
        self.emitter.builder.position_at_end(here);
        let value = value(self)?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        let phi = self.emitter.builder.build_phi(value.get_type(), "")?;
        phi.add_incoming(&[(&value, here), (&otherwise, before)]);
        Ok(phi.as_basic_value())
    }

    /// The address of a lane's element in a strip's array.
    pub(crate) fn lane_of(
        &self,
        array: PointerValue<'ctx>,
        lane: IntValue<'ctx>,
        local: LocalId,
    ) -> Result<PointerValue<'ctx>> {
        let at = index(&self.emitter, lane)?;
        // SAFETY: the array has an element for each lane of a strip.
        Ok(unsafe { self.emitter.builder.build_in_bounds_gep(self.memory_type(local)?, array, &[at], "")? })
    }

    /// Whether nodes may run for long. Then a thread polls for cancellation after them.
    pub(crate) fn is_long_iteration(&self, nodes: &[Node]) -> bool {
        nodes.iter().any(|node| match node {
            Node::Loop { .. } => true,
            Node::Segment(segment) => self.goes_on_for_long(segment),
            Node::If { then: first, otherwise: second, .. } | Node::Split { then: first, otherwise: second, .. } => {
                self.is_long_iteration(first) || self.is_long_iteration(second)
            }
            Node::Guarded { inside, .. } => self.is_long_iteration(inside),
            Node::Strips(strips) => self.is_long_iteration(&strips.nodes),
            Node::TransposedRows(transposed) => self.is_long_iteration(&transposed.nodes),
            Node::Once { block, .. } => self.plan.polling.for_long(self.emitter.function, &self.plan.fixed, block),
            Node::WarpRegion(_) => true,
            Node::Barrier | Node::Break | Node::Continue | Node::Return => false,
        })
    }
}
