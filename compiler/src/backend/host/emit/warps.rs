//! Warps as blocks: each warp of a block runs as a block of 32 threads
//! ([`crate::backend::host::plan::Plan::warp_blocks`]).
//!
//! ```text
//! for block in blocks:                    for block in blocks:
//!     for node in nodes:                      for warp in warps of the block:
//!         for thread in block: node               for node in nodes:
//!                                                     for lane in 0..32: node
//! ```
//!
//! This is legal if no warp of the block waits for another one, and if the rows of the block are whole warps. The plan
//! ([`split_warps`](crate::backend::host::plan::grid::split_warps)) decides that. The lane loops then have a constant
//! trip count, and context arrays, masks and cells are on the stack. LLVM compiles the loops to straight-line vector
//! code and promotes the arrays to registers.
//!
//! If some lanes may not run a region, there are two copies: one for the case that all lanes run, and one in which each
//! lane tests whether it runs.

use inkwell::{
    IntPredicate,
    attributes::AttributeLoc,
    basic_block::BasicBlock,
    types::{BasicType, BasicTypeEnum},
    values::{BasicValue, FunctionValue, IntValue, PointerValue},
};

use crate::{
    analysis::for_each_read,
    backend::{
        host::{
            emit::{
                access_groups::Shape,
                guard_values::{GuardValues, RangeValues},
                kernel::{Carried, KernelEmitter},
                position::{Frame, index, known_offset},
                strip::{Span, Strip},
            },
            plan::{Guard, LANES, Node, Segment, analysis::fixed_rows},
        },
        llvm::{Result, internal},
    },
    ir::{CompareOp, SharedKind, Stmt, Type},
};

/// Marks functions in which a warp is a block, for the passes in `host/passes.cpp`.
const OF_ONE_WARP: &str = "weft.of_one_warp";

/// Elements of a cell array: one for each lane, and as many on both sides, so that shuffles may read past the warp.
const CELLS: u64 = 3 * LANES;

/// Alignment of a warp's arrays: that of a vector.
const ALIGN: u32 = 64;

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Allocates the arrays of a warp on the stack, once for each copy of the body. Because their length is constant,
    /// LLVM promotes them to registers.
    pub(crate) fn declare_carried(&mut self, function: FunctionValue<'ctx>) -> Result<Vec<Carried<'ctx>>> {
        for name in [OF_ONE_WARP, "no-builtin-memcpy", "no-builtin-memset"] {
            // Without builtins, copies between the arrays remain loops, which LLVM vectorizes.
            let mark = self.emitter.cx.types.context.create_string_attribute(name, "");
            function.add_attribute(AttributeLoc::Function, mark);
        }
        let copies = if self.plan.warp_rows { 2 } else { 1 };
        (0..copies).map(|_| self.new_carried()).collect()
    }

    fn new_carried(&self) -> Result<Carried<'ctx>> {
        let byte = self.emitter.cx.types.context.i8_type();
        let mut cells = vec![None; self.plan.module.shared.len()];
        for (id, array) in self.plan.module.shared.iter().filter(|(_, array)| array.kind == SharedKind::Cells) {
            let element = self.emitter.cx.types.memory(Type::Scalar(array.elem))?;
            let place = self.array_of_warp(element, CELLS, &array.name)?;
            cells[id.index()] = Some(place);
            // A lane may read a cell that no lane has written. Zeros make its value defined.
            let bytes = LANES * array.elem.size_bytes();
            let first = known_offset(&self.emitter, place, bytes)?;
            let bytes = self.emitter.cx.types.context.i64_type().const_int(bytes, false);
            let filled = self.emitter.builder.build_memset(first, LANES as u32, byte.const_zero(), bytes);
            filled.map(drop).or_else(|error| internal(format!("LLVM cannot fill cells: {error}")))?;
        }
        let mut locals = vec![None; self.emitter.function.locals.len()];
        for &local in &self.plan.live_across.locals {
            let name = &self.emitter.function.locals[local].name;
            locals[local.index()] = Some(self.array_of_warp(self.memory_type(local)?, LANES, name)?);
        }
        let mut masks = Vec::new();
        for _ in 0..self.plan.cut.masks {
            masks.push(Some(self.array_of_warp(byte.into(), LANES, "mask")?));
        }
        Ok(Carried { locals, masks, cells })
    }

    fn array_of_warp(&self, element: BasicTypeEnum<'ctx>, len: u64, name: &str) -> Result<PointerValue<'ctx>> {
        let place = self.allocas.build_alloca(element.array_type(len as u32), name)?;
        if let Some(alloca) = place.as_instruction() {
            let set = alloca.set_alignment(ALIGN);
            set.or_else(|error| internal(format!("an alignment of {ALIGN}: {error}")))?;
        }
        Ok(place)
    }

    /// Emits the warps of the current block. A kernel that takes `threadIdx.x` for the lane index is written for rows
    /// of one warp, and has a copy for such rows.
    pub(crate) fn warps_of_block(&mut self, carried: &[Carried<'ctx>]) -> Result<()> {
        let frame = self.hooks.frame.get();
        let int = frame.row.get_type();
        let lanes = int.const_int(LANES, false);
        let per_row = self.emitter.builder.build_int_unsigned_div(frame.block_dim[0], lanes, "warps_per_row")?;
        match carried {
            [all] => self.each_warp_of_block((per_row, per_row), all, Shape::Vectors),
            [narrow, others] => {
                let (one, more) = (self.emitter.block("rows_of_one"), self.emitter.block("rows_of_more"));
                let builder = &self.emitter.builder;
                let is_one = builder.build_int_compare(IntPredicate::EQ, per_row, int.const_int(1, false), "")?;
                builder.build_conditional_branch(is_one, one, more)?;
                self.emitter.builder.position_at_end(one);
                self.each_warp_of_block((per_row, int.const_int(1, false)), narrow, Shape::Vectors)?;
                self.emitter.builder.position_at_end(more);
                self.each_warp_of_block((per_row, per_row), others, Shape::Single)
            }
            _ => internal("warps without arrays for their locals"),
        }
    }

    /// Emits the loop over the warps of the current block, `x` fastest. A row has `along_x` warps, a constant in the
    /// copy for rows of one warp.
    fn each_warp_of_block(
        &mut self,
        (per_row, along_x): (IntValue<'ctx>, IntValue<'ctx>),
        carried: &Carried<'ctx>,
        shape: Shape,
    ) -> Result<()> {
        let frame = self.hooks.frame.get();
        let int = frame.row.get_type();
        let (one, lanes) = (int.const_int(1, false), int.const_int(LANES, false));
        let [_, y, z] = frame.block_dim;
        self.each_part_of_block(("warp", [along_x, y, z]), |this, place| {
            let wide = |value: IntValue<'ctx>| index(&this.emitter, value);
            *this.hooks.of_row.borrow_mut() = vec![wide(place[0])?, wide(place[1])?, wide(place[2])?, wide(per_row)?];
            this.threads = lanes;
            this.hooks.frame.set(Frame { row: lanes, rows: [one, one], ..frame });
            this.use_carried(carried, shape);
            this.none_in_loops(carried)?;
            this.body()?;
            this.strip = None;
            Ok(())
        })
    }

    /// Emits the loop over the rows of the current block, where each row is a block.
    pub(crate) fn rows_of_block(&mut self) -> Result<()> {
        let frame = self.hooks.frame.get();
        let one = frame.row.get_type().const_int(1, false);
        let [_, y, z] = frame.block_dim;
        self.each_part_of_block(("row", [one, y, z]), |this, [_, y, z]| {
            *this.hooks.of_row.borrow_mut() = vec![index(&this.emitter, y)?, index(&this.emitter, z)?];
            this.threads = frame.row;
            this.hooks.frame.set(Frame { rows: [one, one], ..frame });
            this.body()
        })
    }

    /// Emits a loop over `extents` parts of the current block, `x` fastest. `part` emits the code of the part at
    /// an index, which ends at `self.block_end`.
    fn each_part_of_block(
        &mut self,
        (name, extents): (&str, [IntValue<'ctx>; 3]),
        part: impl FnOnce(&mut Self, [IntValue<'ctx>; 3]) -> Result<()>,
    ) -> Result<()> {
        let frame = self.hooks.frame.get();
        let int = frame.row.get_type();
        let (zero, one) = (int.const_zero(), int.const_int(1, false));
        let after = std::mem::replace(&mut self.block_end, self.emitter.block(&format!("next_{name}")));
        let before = self.emitter.current()?;
        let head = self.emitter.block(name);
        let builder = &self.emitter.builder;
        builder.build_unconditional_branch(head)?;
        builder.position_at_end(head);
        let mut phis = Vec::new();
        let mut place = [zero; 3];
        for (axis, extent) in extents.into_iter().enumerate() {
            if extent.is_const() {
                continue;
            }
            let phi = builder.build_phi(int, &format!("{name}.{}", ["x", "y", "z"][axis]))?;
            phi.add_incoming(&[(&zero, before)]);
            place[axis] = phi.as_basic_value().into_int_value();
            phis.push((phi, extent));
        }
        part(self, place)?;

        let next_part = std::mem::replace(&mut self.block_end, after);
        self.emitter.builder.position_at_end(next_part);
        let builder = &self.emitter.builder;
        let mut carries = one;
        for &(phi, extent) in &phis {
            let now = phi.as_basic_value().into_int_value();
            let next = builder.build_int_nuw_add(now, carries, "")?;
            let ends = builder.build_int_compare(IntPredicate::EQ, next, extent, "")?;
            let next = builder.build_select(ends, zero, next, "")?;
            phi.add_incoming(&[(&next as &dyn BasicValue<'ctx>, next_part)]);
            carries = builder.build_int_z_extend(ends, int, "")?;
        }
        let done = builder.build_int_compare(IntPredicate::NE, carries, zero, "")?;
        builder.build_conditional_branch(done, self.block_end, head)?;
        self.hooks.frame.set(frame);
        Ok(())
    }

    /// Emits a region for the lanes of a warp that is a block. Loops over lanes have constant bounds, so that LLVM
    /// promotes the warp's arrays to registers. Where not all lanes run, each lane tests whether it does. The loop then
    /// has two halves, each of which is skipped if none of its lanes runs. A region with a steady state has a copy for
    /// warps that are in it.
    pub(crate) fn segment_of_warp(&mut self, segment: &Segment) -> Result<()> {
        let int = self.hooks.frame.get().row.get_type();
        let (zero, lanes) = (int.const_zero(), int.const_int(LANES, false));
        self.set_thread([zero; 3]);
        let end = self.emitter.block("lanes_end");
        let mut ranges = Vec::new();
        let left = segment
            .lane_guard
            .clone()
            .map(|some| self.enclosing.iter().fold(some, |left, enclosing| left.after(enclosing).unwrap_or(left)));
        if let Some(some) = &left {
            let values = self.guard_values(some)?;
            for (cond, negated) in values.rows {
                let next = self.emitter.block("lanes_here");
                let (yes, no) = if negated { (end, next) } else { (next, end) };
                self.emitter.builder.build_conditional_branch(cond, yes, no)?;
                self.emitter.builder.position_at_end(next);
            }
            ranges = values.ranges;
        }
        // Ranges of constants become bounds of the lane loop. Its lanes test the other ranges.
        let (known, others): (Vec<_>, Vec<_>) =
            ranges.iter().cloned().partition(|range| range.value.is_const() && range.bound.is_const() && !range.wraps);
        if let Some(bounds) = self.known_bounds(known)? {
            self.asked_lanes(segment, &segment.body, bounds, others)?;
        } else {
            let all = self.all_run(&ranges, zero, lanes)?;
            let Some(steady_state) = segment.steady_state().filter(|_| !self.is_aside()) else {
                return self.all_or_some(segment, &segment.body, (all, ranges), end);
            };
            let GuardValues { ranges: inner, rows } = self.guard_values(&steady_state.guard)?;
            let is_inner = self.and_rows(self.all_run(&inner, zero, lanes)?, rows)?;
            let (near, far) = (self.emitter.block("near_border"), self.emitter.block("near_no_border"));
            self.emitter.builder.build_conditional_branch(is_inner, far, near)?;
            self.emitter.builder.position_at_end(near);
            self.asked_lanes(segment, &segment.body, (zero, lanes), ranges.clone())?;
            self.emitter.go(end)?;
            self.emitter.builder.position_at_end(far);
            return self.all_or_some(segment, &steady_state.body, (all, ranges), end);
        }
        self.goes_to(end)
    }

    /// Whether a guarded part of the kernel gets a copy for warps of which all lanes pass the guard. Not if the guard
    /// depends on the offset of a grid-stride loop, where each row may end within a warp, and not if the part contains
    /// a jump out of it.
    pub(crate) fn parts_warps(&self, guard: &Guard, inside: &[Node]) -> bool {
        let function = self.emitter.function;
        let mut in_turns = false;
        for range in &guard.ranges {
            for root in [range.value, range.bound] {
                for_each_read(function, root, &mut |local| in_turns |= function.locals[local].offset);
            }
        }
        let is_whole = self.plan.warp_blocks && !self.is_aside() && self.plan.cut.masks == 0;
        is_whole && !in_turns && !guard.ranges.is_empty() && !jumps_out(inside)
    }

    /// Emits a guarded part for a warp in two copies: one for warps of which all lanes pass the guard, the common case,
    /// and one in which each lane tests the guard. The second one uses copies of the warp's arrays: LLVM promotes the
    /// original arrays to registers only if no access to them has a variable index.
    pub(crate) fn guarded_of_warp(&mut self, guard: &Guard, inside: &[Node]) -> Result<()> {
        let int = self.hooks.frame.get().row.get_type();
        let (zero, lanes) = (int.const_zero(), int.const_int(LANES, false));
        self.set_thread([zero; 3]);
        let GuardValues { ranges, rows } = self.guard_values(guard)?;
        if ranges.iter().any(|range| range.value.is_const() && range.bound.is_const()) {
            // Ranges of constants become bounds of the lane loops, so one copy suffices.
            let someone = self.lets_through(guard)?;
            return self.branch(someone, inside, &[]);
        }
        let all = self.and_rows(self.all_run(&ranges, zero, lanes)?, rows)?;
        let (whole, parted) = (self.emitter.block("whole_warp"), self.emitter.block("parted_warp"));
        let (some, end) = (self.emitter.block("some_inside"), self.emitter.block("inside_end"));
        self.emitter.builder.build_conditional_branch(all, whole, parted)?;
        self.emitter.builder.position_at_end(whole);
        self.enclosing.push(guard.clone());
        self.nodes(inside)?;
        self.enclosing.pop();
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(parted);
        let someone = self.lets_through(guard)?;
        self.emitter.builder.build_conditional_branch(someone, some, end)?;
        self.emitter.builder.position_at_end(some);
        let before = std::mem::take(&mut self.carried);
        let aside = self.new_carried()?;
        self.copy_carried(&before, &aside)?;
        self.use_carried(&aside, Shape::Single);
        self.nodes(inside)?;
        self.copy_carried(&aside, &before)?;
        self.use_carried(&before, Shape::Vectors);
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// Clears the `alive` flag of each lane for all loops with divergent exits. A lane that does not reach a loop does
    /// not set its flag, but the test over all lanes reads it.
    fn none_in_loops(&self, carried: &Carried<'ctx>) -> Result<()> {
        let zero = self.emitter.cx.types.context.i8_type().const_zero();
        for masked_loop in &self.plan.masked_loops {
            let Some(Some(place)) = carried.locals.get(masked_loop.alive.index()).copied() else { continue };
            let bytes = LANES * self.emitter.function.locals[masked_loop.alive].ty.host_bytes();
            let bytes = self.emitter.cx.types.context.i64_type().const_int(bytes, false);
            let done = self.emitter.builder.build_memset(place, ALIGN, zero, bytes);
            done.map(drop).or_else(|error| internal(format!("LLVM cannot fill what lanes carry: {error}")))?;
        }
        Ok(())
    }

    /// Copies the context arrays.
    fn copy_carried(&self, from: &Carried<'ctx>, to: &Carried<'ctx>) -> Result<()> {
        for &local in &self.plan.live_across.locals {
            let (Some(from), Some(to)) = (from.locals[local.index()], to.locals[local.index()]) else {
                return internal("a local that is live across a barrier without an array");
            };
            self.copy_array(from, to, LANES * self.emitter.function.locals[local].ty.host_bytes())?;
        }
        Ok(())
    }

    /// Makes `carried` the arrays of the current warp.
    fn use_carried(&mut self, carried: &Carried<'ctx>, shape: Shape) {
        let int = self.hooks.frame.get().row.get_type();
        let locals = self.plan.live_across.locals.iter();
        let places = locals.filter_map(|&local| Some((local, carried.locals[local.index()]?))).collect();
        self.strip = Some(Strip::of_warp(int.const_zero(), int.const_int(LANES, false), places, shape));
        self.hooks.cells.borrow_mut().clone_from(&carried.cells);
        self.carried = carried.clone();
    }

    /// Emits a body in two copies: for the case that all lanes run, and for the case that each lane tests the ranges.
    /// Continues at `end`.
    fn all_or_some(
        &mut self,
        segment: &Segment,
        body: &[Stmt],
        (all, ranges): (IntValue<'ctx>, Vec<RangeValues<'ctx>>),
        end: BasicBlock<'ctx>,
    ) -> Result<()> {
        let int = self.hooks.frame.get().row.get_type();
        let lane = |number: u64| int.const_int(number, false);
        let bounds = (lane(0), lane(LANES));
        if ranges.is_empty() || self.is_aside() {
            self.asked_lanes(segment, body, bounds, ranges)?;
            return self.goes_to(end);
        }
        let (every, ask) = (self.emitter.block("all_lanes"), self.emitter.block("some_lanes"));
        self.emitter.builder.build_conditional_branch(all, every, ask)?;
        self.emitter.builder.position_at_end(every);
        self.lanes_of_warp(segment, body, bounds)?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(ask);
        if !fixed_rows::is_short(self.emitter.function, body) {
            // Two halves would double the code of a long body.
            self.asked_lanes(segment, body, bounds, ranges)?;
            return self.goes_to(end);
        }
        for half in [0, LANES / 2] {
            let (some, next) = (self.emitter.block("some_of_half"), self.emitter.block("half_end"));
            let bounds = (lane(half), lane(half + LANES / 2));
            let any = self.any_runs(&ranges, bounds)?;
            self.emitter.builder.build_conditional_branch(any, some, next)?;
            self.emitter.builder.position_at_end(some);
            self.asked_lanes(segment, body, bounds, ranges.clone())?;
            self.goes_to(next)?;
        }
        self.goes_to(end)
    }

    /// Emits a body for the lanes `bounds` that are in the ranges.
    fn asked_lanes(
        &mut self,
        segment: &Segment,
        body: &[Stmt],
        bounds: Span<'ctx>,
        ranges: Vec<RangeValues<'ctx>>,
    ) -> Result<()> {
        self.ask(ranges);
        self.lanes_of_warp(segment, body, bounds)?;
        self.ask(Vec::new());
        Ok(())
    }

    /// Branches to a block and continues there.
    fn goes_to(&self, block: BasicBlock<'ctx>) -> Result<()> {
        self.emitter.go(block)?;
        self.emitter.builder.position_at_end(block);
        Ok(())
    }

    /// Whether `all` and all conditions on the row hold.
    pub(crate) fn and_rows(&self, all: IntValue<'ctx>, rows: Vec<(IntValue<'ctx>, bool)>) -> Result<IntValue<'ctx>> {
        let builder = &self.emitter.builder;
        rows.into_iter().try_fold(all, |all, (cond, negated)| {
            let holds = if negated { builder.build_not(cond, "")? } else { cond };
            Ok(builder.build_and(all, holds, "all_inside")?)
        })
    }

    /// Whether the lane loops of the current copy are scalar code: that is the copy for rows of several warps, or for
    /// warps of which some lanes do not pass a guard.
    fn is_aside(&self) -> bool {
        self.strip.as_ref().is_some_and(|strip| !strip.has_vectors())
    }

    fn lanes_of_warp(&mut self, segment: &Segment, body: &[Stmt], bounds: Span<'ctx>) -> Result<()> {
        let looks = self.goes_on_for_long(segment);
        self.lanes_between(bounds, segment.parallel, |this, thread| {
            this.thread(segment, body, thread, None)?;
            if looks { this.hooks.look_up(&this.emitter) } else { Ok(()) }
        })
    }

    /// The lanes that ranges of constants let through; `None` without such ranges.
    fn known_bounds(&self, ranges: Vec<RangeValues<'ctx>>) -> Result<Option<Span<'ctx>>> {
        if ranges.is_empty() {
            return Ok(None);
        }
        let long = self.emitter.cx.types.context.i64_type();
        let values = GuardValues { ranges, rows: Vec::new() };
        let (low, high) = self.span(&values, long.const_zero(), long.const_int(LANES, false))?;
        Ok((low.is_const() && high.is_const()).then_some((low, high)))
    }

    /// Whether a lane in `from..to` may be in the ranges. Ranges whose values may wrap, and those of one value, do not
    /// count.
    fn any_runs(&self, ranges: &[RangeValues<'ctx>], (from, to): Span<'ctx>) -> Result<IntValue<'ctx>> {
        let mut any = self.emitter.cx.types.context.bool_type().const_int(1, false);
        let (from, to) = (index(&self.emitter, from)?, index(&self.emitter, to)?);
        let builder = &self.emitter.builder;
        for range in ranges.iter().filter(|range| !range.wraps) {
            let first = builder.build_int_add(range.value, from, "")?;
            let last = builder.build_int_add(
                range.value,
                builder.build_int_sub(to, from.get_type().const_int(1, false), "")?,
                "",
            )?;
            let (value, predicate) = match range.op {
                CompareOp::Lt => (first, IntPredicate::SLT),
                CompareOp::Le => (first, IntPredicate::SLE),
                CompareOp::Gt => (last, IntPredicate::SGT),
                CompareOp::Ge => (last, IntPredicate::SGE),
                CompareOp::Eq | CompareOp::Ne => continue,
            };
            let holds = builder.build_int_compare(predicate, value, range.bound, "")?;
            any = builder.build_and(any, holds, "any_runs")?;
        }
        Ok(any)
    }
}

/// Whether nodes contain a jump to the exit or the step of a loop around them.
fn jumps_out(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Break | Node::Continue => true,
        Node::Loop { .. } => false,
        Node::Once { .. }
        | Node::Segment(_)
        | Node::If { .. }
        | Node::Guarded { .. }
        | Node::Split { .. }
        | Node::Barrier
        | Node::WarpRegion(_)
        | Node::Strips(_)
        | Node::TransposedRows(_)
        | Node::Return => node.parts().iter().any(|part| jumps_out(part)),
    })
}
