//! Strips of a row: a few neighboring threads that go through several nodes before the next ones do.

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use std::collections::HashMap;

use inkwell::values::{IntValue, PointerValue};

use super::{
    entry::KernelEmitter,
    hooks::{count, index},
    parallel::Shape,
    plan::{Node, Segment, Strips},
};
use crate::{
    backend::llvm::{Result, internal},
    ir::LocalId,
};

/// Alignment of what a strip's threads carry: a vector's.
const ALIGN: u32 = 64;

/// The threads of a strip.
#[derive(Clone, Debug)]
pub(super) struct Strip<'ctx> {
    /// `threadIdx.y` and `.z`.
    row: [IntValue<'ctx>; 2],
    /// The number of the row's first thread in its block.
    first_thread: IntValue<'ctx>,
    /// `threadIdx.x` of the first.
    from: IntValue<'ctx>,
    /// How many there are.
    width: IntValue<'ctx>,
    /// Their elements of crossing locals.
    places: HashMap<LocalId, PointerValue<'ctx>>,
    /// What LLVM is to make of a whole strip.
    shape: Shape,
    /// Which of them is present.
    lane: Option<IntValue<'ctx>>,
}

impl<'ctx> Strip<'ctx> {
    /// The array of a crossing local, and which element of it is the present thread's.
    pub(super) fn element(&self, local: LocalId) -> Option<(PointerValue<'ctx>, IntValue<'ctx>)> {
        Some((*self.places.get(&local)?, self.lane?))
    }
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Nodes for all threads of the guard, strip by strip.
    pub(super) fn strips(&mut self, strips: &Strips) -> Result<()> {
        let int = self.emitter.cx.types.context.i32_type();
        let mut first_values = Vec::new();
        for &local in &strips.shared {
            let (ty, place) = (self.memory_type(local)?, self.emitter.place(local)?);
            let kept = self.allocas.build_alloca(ty, "first")?;
            let value = self.emitter.builder.build_load(ty, place, "")?;
            self.emitter.builder.build_store(kept, value)?;
            first_values.push((ty, place, kept));
        }
        let (whole, rest) = (self.places_of(strips)?, self.places_of(strips)?);
        let width = int.const_int(u64::from(strips.width), false);
        self.each_row(|this, row, first_thread| {
            this.spans(strips.guard.as_ref(), |this, (low, high)| {
                let high = this.choose("llvm.smax", low, high.into())?;
                let threads = this.emitter.builder.build_int_nuw_sub(high, low, "")?;
                let count_of_whole = this.emitter.builder.build_int_unsigned_div(threads, width, "strips")?;
                let left = this.emitter.builder.build_int_unsigned_rem(threads, width, "left")?;
                let has_left = this.choose("llvm.umin", left, int.const_int(1, false).into())?;
                let strip = |from, width: IntValue<'ctx>, places: &HashMap<_, _>| Strip {
                    row,
                    first_thread,
                    from,
                    width,
                    places: places.clone(),
                    shape: match (strips.apart, width.is_const()) {
                        (_, false) => Shape::Loop,
                        (false, true) => Shape::Vectors,
                        (true, true) => Shape::Straight,
                    },
                    lane: None,
                };
                for (name, turns, width, places) in
                    [("strip", count_of_whole, width, &whole), ("last_strip", has_left, left, &rest)]
                {
                    this.counted(name, (int.const_zero(), turns), |this, turn| {
                        for &(ty, place, kept) in &first_values {
                            let value = this.emitter.builder.build_load(ty, kept, "")?;
                            this.emitter.builder.build_store(place, value)?;
                        }
                        let builder = &this.emitter.builder;
                        let from = if width.is_const() {
                            builder.build_int_add(low, builder.build_int_nuw_mul(turn, width, "")?, "")?
                        } else {
                            builder.build_int_sub(high, width, "")?
                        };
                        this.strip = Some(strip(from, width, places));
                        this.carry(&strips.inward, true)?;
                        this.nodes(&strips.nodes)?;
                        this.carry(&strips.outward, false)?;
                        this.strip = None;
                        if this.long_turn(&strips.nodes) { this.hooks.look_up(&this.emitter) } else { Ok(()) }
                    })?;
                }
                Ok(())
            })
        })
    }

    /// Room for what the threads of a strip carry.
    fn places_of(&mut self, strips: &Strips) -> Result<HashMap<LocalId, PointerValue<'ctx>>> {
        let mut places = HashMap::new();
        for &local in &strips.places {
            let name = &self.emitter.function.locals[local].name;
            let ty = self.memory_type(local)?;
            let count = self.emitter.cx.types.context.i32_type().const_int(u64::from(strips.width), false);
            let place = self.allocas.build_array_alloca(ty, count, name)?;
            if let Some(alloca) = place.as_instruction() {
                let set = alloca.set_alignment(ALIGN);
                set.or_else(|error| internal(format!("an alignment of {ALIGN}: {error}")))?;
            }
            places.insert(local, place);
        }
        Ok(places)
    }

    /// A segment for the threads of the strip that is here.
    pub(super) fn segment_of_strip(&mut self, segment: &Segment) -> Result<()> {
        let looks = self.goes_on_for_long(segment);
        self.lanes(segment.parallel, |this, thread| {
            this.thread(segment, &segment.body, thread)?;
            if looks { this.hooks.look_up(&this.emitter) } else { Ok(()) }
        })
    }

    /// Runs `body` for the number of each thread of the strip that is here.
    fn lanes(&mut self, parallel: bool, body: impl FnOnce(&mut Self, IntValue<'ctx>) -> Result<()>) -> Result<()> {
        let Some(strip) = self.strip.clone() else { return internal("lanes of no strip") };
        let [y, z] = strip.row;
        let zero = strip.width.get_type().const_zero();
        let (head, back) = self.counted("lane", (zero, strip.width), |this, lane| {
            let x = count(&this.emitter, strip.from, lane)?;
            let thread = count(&this.emitter, strip.first_thread, x)?;
            this.set_thread([x, y, z]);
            this.strip = Some(Strip { lane: Some(lane), ..strip.clone() });
            body(this, thread)
        })?;
        self.strip = Some(Strip { lane: None, ..strip.clone() });
        self.parallel.promise(head, back, parallel, strip.shape);
        Ok(())
    }

    /// Fetches crossing locals from scratch memory, or puts them back.
    fn carry(&mut self, locals: &[LocalId], fetch: bool) -> Result<()> {
        if locals.is_empty() {
            return Ok(());
        }
        self.lanes(true, |this, thread| {
            for &local in locals {
                let Some((array, lane)) = this.strip.as_ref().and_then(|strip| strip.element(local)) else {
                    return internal("a crossing local without a place in its strip");
                };
                let (own, kept) = (this.lane_of(array, lane, local)?, this.kept(local, thread)?);
                let (from, to) = if fetch { (kept, own) } else { (own, kept) };
                let value = this.emitter.builder.build_load(this.memory_type(local)?, from, "")?;
                this.emitter.builder.build_store(to, value)?;
            }
            Ok(())
        })
    }

    /// A thread's element of a strip's array.
    pub(super) fn lane_of(
        &self,
        array: PointerValue<'ctx>,
        lane: IntValue<'ctx>,
        local: LocalId,
    ) -> Result<PointerValue<'ctx>> {
        let at = index(&self.emitter, lane)?;
        // SAFETY: the array has an element for each thread of a strip.
        Ok(unsafe { self.emitter.builder.build_in_bounds_gep(self.memory_type(local)?, array, &[at], "")? })
    }

    /// Whether nodes may go on for long, in which a thread looks up after them.
    pub(super) fn long_turn(&self, nodes: &[Node]) -> bool {
        nodes.iter().any(|node| match node {
            Node::Loop { .. } => true,
            Node::Segment(segment) => self.goes_on_for_long(segment),
            Node::If { then: first, otherwise: second, .. } | Node::Split { then: first, otherwise: second, .. } => {
                self.long_turn(first) || self.long_turn(second)
            }
            Node::Guarded { inside, .. } => self.long_turn(inside),
            Node::Strips(strips) => self.long_turn(&strips.nodes),
            Node::Once { block, .. } => self.plan.polling.for_long(self.emitter.function, &self.plan.fixed, block),
            Node::Barrier | Node::Break | Node::Continue | Node::Return => false,
        })
    }
}
