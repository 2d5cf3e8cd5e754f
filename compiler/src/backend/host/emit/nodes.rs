//! Control flow at the level of the block ([`Node`]): code that runs once, branches and loops around thread loops, and
//! thread masks.
//!
//! ```text
//! Node::Once     if any mask:       code for the whole block     (without a mask: always)
//! Node::If       if uniform condition: thread loops
//! Node::Split    for each thread: then_mask[t], else_mask[t] = active[t] & cond[t], active[t] & !cond[t]
//!                if any then_mask:  thread loops under then_mask
//!                if any else_mask:  thread loops under else_mask
//! Node::Loop     while any mask:    thread loops under the mask, from which a divergent exit removes its thread
//! ```
//!
//! Masks have one byte for each thread. A loop without a mask has a uniform exit.

use inkwell::{
    IntPredicate,
    values::{IntValue, PointerValue},
};

use crate::{
    backend::{
        host::{
            checked::calls,
            emit::{
                kernel::KernelEmitter,
                position::{byte_offset, index, known_offset},
            },
            plan::{Guard, MaskId, Node},
        },
        llvm::{Result, internal},
    },
    ir::LocalId,
};

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Emits nodes in order. Stops after a node from which control does not continue.
    pub(crate) fn nodes(&mut self, nodes: &[Node]) -> Result<()> {
        for node in nodes {
            if self.emitter.ended()? {
                break;
            }
            self.node(node)?;
        }
        Ok(())
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        match node {
            Node::Once { active: None, block, .. } => self.emitter.emit_block(block),
            Node::Once { active: Some(active), guard, block } => {
                let someone = self.any(*active, guard.as_ref())?;
                let (run, end) = (self.emitter.block("once"), self.emitter.block("once_end"));
                self.emitter.builder.build_conditional_branch(someone, run, end)?;
                self.emitter.builder.position_at_end(run);
                self.emitter.emit_block(block)?;
                self.emitter.go(end)?;
                self.emitter.builder.position_at_end(end);
                Ok(())
            }
            Node::Segment(segment) if self.outlines => self.outlined(segment),
            Node::Segment(segment) => self.segment(segment),
            Node::If { cond, then, otherwise } => {
                let masked_loop = self.plan.masked_loops.iter().find_map(|of| Some((of, of.active_lane_test(*cond)?)));
                let Some((masked_loop, (most, from))) = masked_loop else {
                    let cond = self.emitter.emit_int(*cond)?;
                    return self.branch(cond, then, otherwise);
                };
                let cond = self.active_at_most(masked_loop, most, from)?;
                if most == 0 { self.branch(cond, then, otherwise) } else { self.alone(cond, then) }
            }
            Node::Guarded { guard, inside } if self.parts_warps(guard, inside) => self.guarded_of_warp(guard, inside),
            Node::Guarded { guard, inside } => {
                let someone = self.lets_through(guard)?;
                self.branch(someone, inside, &[])
            }
            Node::Split { active, guard, cond, then_mask, else_mask, then, otherwise } => {
                let (some, others) = self.split((*active, guard.as_ref()), *cond, *then_mask, *else_mask)?;
                self.branch(some, then, &[])?;
                self.branch(others, otherwise, &[])
            }
            Node::Barrier if self.hooks.instrumentation.is_some() => {
                calls::met(&self.emitter, self.hooks.frame.get().context)
            }
            Node::Barrier => Ok(()),
            Node::WarpRegion(number) => self.warp_region(*number),
            Node::Strips(strips) => self.strips(strips),
            Node::TransposedRows(transposed) => self.transposed_rows(transposed),
            Node::Loop { active, guard, mask, continue_mask, body, step, counter, span: _ } => {
                let ends = counter.is_some()
                    || self.plan.masked_loops.iter().any(|of| of.has_trip_count && of.is_body_of(body));
                self.block_loop((*active, guard.as_ref()), (*mask, *continue_mask), ends, (body, step))
            }
            Node::Break => self.leave(|(end, _)| end),
            Node::Continue => self.leave(|(_, step)| step),
            Node::Return => self.emitter.go(self.block_end),
        }
    }

    fn leave(
        &self,
        to: impl FnOnce(
            (inkwell::basic_block::BasicBlock<'ctx>, inkwell::basic_block::BasicBlock<'ctx>),
        ) -> inkwell::basic_block::BasicBlock<'ctx>,
    ) -> Result<()> {
        match self.loops.last() {
            Some(&targets) => self.emitter.go(to(targets)),
            None => internal("a break or continue outside of a lifted loop"),
        }
    }

    pub(crate) fn branch(&mut self, cond: IntValue<'ctx>, then: &[Node], otherwise: &[Node]) -> Result<()> {
        if then.is_empty() && otherwise.is_empty() {
            return Ok(());
        }
        let (then_block, else_block) = (self.emitter.block("then"), self.emitter.block("else"));
        let end = self.emitter.block("endif");
        self.emitter.builder.build_conditional_branch(cond, then_block, else_block)?;
        for (block, nodes) in [(then_block, then), (else_block, otherwise)] {
            self.emitter.builder.position_at_end(block);
            self.nodes(nodes)?;
            self.emitter.go(end)?;
        }
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// The last lanes of a loop with divergent exits finish it one after the other. The first of `nodes` leaves the
    /// loop if no lane is left, the last one is the jump out of the loop, and the others run lane by lane.
    fn alone(&mut self, few: IntValue<'ctx>, nodes: &[Node]) -> Result<()> {
        let [exit, iterations @ .., jump] = nodes else { return internal("a masked loop without an exit") };
        let (then, end) = (self.emitter.block("few"), self.emitter.block("many"));
        self.emitter.builder.build_conditional_branch(few, then, end)?;
        self.emitter.builder.position_at_end(then);
        self.node(exit)?;
        let inlines_math = self.emitter.inlines_math.replace(false);
        self.aside(|this| this.nodes(iterations))?;
        self.emitter.inlines_math.set(inlines_math);
        self.node(jump)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    fn block_loop(
        &mut self,
        (active, guard): (Option<MaskId>, Option<&Guard>),
        (mask, continue_mask): (Option<MaskId>, Option<MaskId>),
        ends: bool,
        (body, step): (&[Node], &[Node]),
    ) -> Result<()> {
        if let Some(mask) = mask {
            self.fill_mask(mask, active, guard)?;
        }
        let head = self.emitter.block("block_loop");
        let step_block = self.emitter.block("block_step");
        let end = self.emitter.block("block_endloop");
        self.emitter.go(head)?;
        self.emitter.builder.position_at_end(head);
        let inside = mask.or(active);
        if let Some(inside) = inside {
            // Without an active thread, no thread would ever leave the loop.
            let any = self.any(inside, guard)?;
            let iteration = self.emitter.block("block_turn");
            self.emitter.builder.build_conditional_branch(any, iteration, end)?;
            self.emitter.builder.position_at_end(iteration);
        }
        if let Some(continue_mask) = continue_mask {
            self.fill_mask(continue_mask, inside, guard)?;
        }
        self.loops.push((end, step_block));
        self.nodes(body)?;
        self.loops.pop();
        self.emitter.go(step_block)?;
        self.emitter.builder.position_at_end(step_block);
        self.emitter.in_step = true;
        self.nodes(step)?;
        self.emitter.in_step = false;
        // The branch in which the last lanes finish one by one runs once per loop, so it does not make iterations long.
        let finishes = |cond| self.plan.masked_loops.iter().any(|of| of.few_active == cond);
        let alone = |node: &&Node| matches!(node, Node::If { cond, .. } if finishes(*cond));
        let long = |node: &Node| self.is_long_iteration(std::slice::from_ref(node));
        let is_short = ends && self.strip.is_some() && !body.iter().chain(step).filter(|node| !alone(node)).any(long);
        if !is_short && !self.emitter.ended()? {
            self.hooks.look_up(&self.emitter)?;
        }
        self.emitter.go(head)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// The address of a thread's byte in a mask.
    pub(crate) fn mask_byte(&self, mask: MaskId, thread: IntValue<'ctx>) -> Result<PointerValue<'ctx>> {
        let base = match self.carried.masks.get(mask as usize).copied().flatten() {
            Some(place) => place,
            None => {
                let Some(offset) = self.offsets.mask(mask) else { return internal("a mask without an offset") };
                known_offset(&self.emitter, self.hooks.frame.get().scratch, offset)?
            }
        };
        byte_offset(&self.emitter, base, index(&self.emitter, thread)?)
    }

    /// Copies mask `from`, or sets the mask for all threads. The bytes of threads that the guard excludes are cleared.
    pub(crate) fn fill_mask(&mut self, mask: MaskId, from: Option<MaskId>, guard: Option<&Guard>) -> Result<()> {
        if guard.is_some() {
            self.clear_mask(mask)?;
            return self.each_thread(guard, |this, thread| {
                let byte = this.emitter.cx.types.context.i8_type();
                let place = this.mask_byte(mask, thread)?;
                let value = match from {
                    Some(from) => {
                        let from = this.mask_byte(from, thread)?;
                        this.emitter.builder.build_load(byte, from, "")?.into_int_value()
                    }
                    None => byte.const_int(1, false),
                };
                this.emitter.builder.build_store(place, value)?;
                Ok(())
            });
        }
        let types = self.emitter.cx.types;
        let zero = types.context.i32_type().const_zero();
        let to = self.mask_byte(mask, zero)?;
        let threads = index(&self.emitter, self.threads)?;
        let done = if let Some(from) = from {
            let from = self.mask_byte(from, zero)?;
            self.emitter.builder.build_memcpy(to, 1, from, 1, threads)
        } else {
            let one = types.context.i8_type().const_int(1, false);
            self.emitter.builder.build_memset(to, 1, one, threads)
        };
        done.map(drop).or_else(|error| internal(format!("LLVM cannot fill a mask: {error}")))
    }

    fn clear_mask(&self, mask: MaskId) -> Result<()> {
        let types = self.emitter.cx.types;
        let to = self.mask_byte(mask, types.context.i32_type().const_zero())?;
        let (none, threads) = (types.context.i8_type().const_zero(), index(&self.emitter, self.threads)?);
        let done = self.emitter.builder.build_memset(to, 1, none, threads);
        done.map(drop).or_else(|error| internal(format!("LLVM cannot fill a mask: {error}")))
    }

    /// Whether a mask has an active thread among those that a guard lets through.
    fn any(&mut self, mask: MaskId, guard: Option<&Guard>) -> Result<IntValue<'ctx>> {
        let byte = self.emitter.cx.types.context.i8_type();
        let seen = self.allocas.build_alloca(byte, "any")?;
        self.emitter.builder.build_store(seen, byte.const_zero())?;
        self.each_thread(guard, |this, thread| {
            let place = this.mask_byte(mask, thread)?;
            let builder = &this.emitter.builder;
            let is_in = builder.build_load(byte, place, "")?.into_int_value();
            let before = builder.build_load(byte, seen, "")?.into_int_value();
            builder.build_store(seen, builder.build_or(before, is_in, "")?)?;
            Ok(())
        })?;
        self.is_set(seen)
    }

    fn is_set(&self, place: PointerValue<'ctx>) -> Result<IntValue<'ctx>> {
        let byte = self.emitter.cx.types.context.i8_type();
        let value = self.emitter.builder.build_load(byte, place, "")?.into_int_value();
        Ok(self.emitter.builder.build_int_compare(IntPredicate::NE, value, byte.const_zero(), "")?)
    }

    /// Splits the active threads into two masks by their condition. Returns whether each mask has an active thread.
    fn split(
        &mut self,
        (active, guard): (Option<MaskId>, Option<&Guard>),
        cond: LocalId,
        then_mask: MaskId,
        else_mask: MaskId,
    ) -> Result<(IntValue<'ctx>, IntValue<'ctx>)> {
        let conds = self.first_kept(cond)?;
        let byte = self.emitter.cx.types.context.i8_type();
        let (some, others) = (self.allocas.build_alloca(byte, "some")?, self.allocas.build_alloca(byte, "others")?);
        for place in [some, others] {
            self.emitter.builder.build_store(place, byte.const_zero())?;
        }
        let one = byte.const_int(1, false);
        if guard.is_some() {
            self.clear_mask(then_mask)?;
            self.clear_mask(else_mask)?;
        }
        self.each_thread(guard, |this, thread| {
            let at = index(&this.emitter, thread)?;
            let cond = byte_offset(&this.emitter, conds, at)?;
            let active = active.map(|mask| this.mask_byte(mask, thread)).transpose()?;
            let (then_place, else_place) = (this.mask_byte(then_mask, thread)?, this.mask_byte(else_mask, thread)?);
            let builder = &this.emitter.builder;
            let load = |place| builder.build_load(byte, place, "").map(|value| value.into_int_value());
            // An inactive thread's byte is arbitrary.
            let cond = builder.build_and(load(cond)?, one, "")?;
            let active = active.map_or(Ok(one), load)?;
            let then = builder.build_and(active, cond, "")?;
            let otherwise = builder.build_xor(active, then, "")?;
            for (place, seen, value) in [(then_place, some, then), (else_place, others, otherwise)] {
                builder.build_store(place, value)?;
                let before = load(seen)?;
                builder.build_store(seen, builder.build_or(before, value, "")?)?;
            }
            Ok(())
        })?;
        Ok((self.is_set(some)?, self.is_set(others)?))
    }
}
