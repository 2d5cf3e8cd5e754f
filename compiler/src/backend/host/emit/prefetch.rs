//! Software prefetches, one for each cache line that the threads of a row access.
//!
//! | data | found by |
//! |---|---|
//! | of a later iteration of a grid-stride loop ([`StridePrefetch`]) | `plan/prefetch/next_stride.rs` |
//! | of the next iteration of a loop around the region ([`IterationPrefetch`]) | `plan/prefetch/next_iteration.rs` |
//! | of the next block along `x` ([`Stream`]) | `plan/prefetch/next_block.rs` |
//!
//! A prefetch of any address is legal: past the end of an array it has no effect. It pays for accesses that the
//! hardware's prefetchers do not recognize; the plan selects these.

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use inkwell::values::{IntValue, PointerValue};

use crate::{
    backend::{
        host::{
            emit::{
                kernel::KernelEmitter,
                position::{Frame, count},
            },
            plan::{IterationPrefetch, Segment, Stream, StridePrefetch, streams},
        },
        llvm::Result,
    },
    ir::{Stmt, Type},
};

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Prefetch distance in a grid-stride loop, in iterations.
const TURNS_AHEAD: u64 = 4;

/// Cache levels L1 and L2, as the locality of `llvm.prefetch`. L2 can have more outstanding misses than L1.
pub(crate) const FIRST: u64 = 3;
const SECOND: u64 = 2;

/// The threads of a row whose accesses are prefetched.
pub(crate) enum Lines<'ctx> {
    /// All threads of a row of this length.
    Known(u64),
    /// The threads from the first number to the second, which is excluded.
    Between(IntValue<'ctx>, IntValue<'ctx>),
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Prefetches what a range of threads in a row loads [`TURNS_AHEAD`] iterations later.
    pub(crate) fn fetch_ahead(
        &mut self,
        segment: &Segment,
        ([y, z], first_thread): ([IntValue<'ctx>; 2], IntValue<'ctx>),
        (low, high): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<()> {
        let (types, int) = (self.emitter.cx.types, low.get_type());
        for StridePrefetch { pointer, step, before } in &segment.stride_prefetches {
            let (pointer, step) = (*pointer, *step);
            let Type::Ptr(elem, _) = self.emitter.function.exprs[pointer].ty else { continue };
            let size = elem.size_bytes();
            let of_line = int.const_int((LINE / size).max(1), false);
            let high = self.choose("llvm.smax", low, high.into())?;
            let threads = self.emitter.builder.build_int_nuw_sub(high, low, "")?;
            let more = self.emitter.builder.build_int_nuw_add(threads, of_line, "")?;
            let lines = self.emitter.builder.build_int_nuw_sub(more, int.const_int(1, false), "")?;
            let lines = self.emitter.builder.build_int_unsigned_div(lines, of_line, "lines")?;
            self.counted("line", (int.const_zero(), lines), |this, line| {
                let x = this.emitter.builder.build_int_nuw_mul(line, of_line, "")?;
                let x = count(&this.emitter, low, x)?;
                let thread = count(&this.emitter, first_thread, x)?;
                this.set_thread([x, y, z]);
                this.enter_with(segment, &[], thread)?;
                for &(local, value) in before {
                    let value = this.emitter.emit_expr(value)?;
                    this.emitter.set_local(local, value)?;
                }
                let place = this.emitter.emit_expr(pointer)?.into_pointer_value();
                let bytes = types.context.i64_type().const_int(TURNS_AHEAD * size, false);
                let step = this.emitter.emit_int(step)?;
                let far = this.emitter.builder.build_int_mul(step, bytes, "")?;
                // SAFETY: without `inbounds`, a getelementptr may compute any address, and a prefetch does not fault.
                let place = unsafe { this.emitter.builder.build_gep(types.context.i8_type(), place, &[far], "")? };
                this.prefetch(place, SECOND)
            })?;
        }
        // Guards that are evaluated after this need the row's first thread.
        self.set_thread([int.const_zero(), y, z]);
        Ok(())
    }

    /// Prefetches an address for a load.
    pub(crate) fn prefetch(&self, place: PointerValue<'ctx>, locality: u64) -> Result<()> {
        self.prefetch_for(false, place, locality)
    }

    /// Prefetches an address for a store.
    pub(crate) fn prefetch_to_store(&self, place: PointerValue<'ctx>) -> Result<()> {
        self.prefetch_for(true, place, FIRST)
    }

    fn prefetch_for(&self, stores: bool, place: PointerValue<'ctx>, locality: u64) -> Result<()> {
        let int = self.emitter.cx.types.context.i32_type();
        let (read, locality, data) =
            (int.const_int(u64::from(stores), false), int.const_int(locality, false), int.const_int(1, false));
        let fetch = self.emitter.cx.intrinsic("llvm.prefetch", &[place.get_type().into()])?;
        let args = [place.into(), read.into(), locality.into(), data.into()];
        self.emitter.builder.build_call(fetch, &args, "")?;
        Ok(())
    }

    /// Prefetches what the same row of the next block along `x` loads and stores.
    pub(crate) fn fetch_for_next_block(
        &mut self,
        segment: &Segment,
        body: &[Stmt],
        [y, z]: [IntValue<'ctx>; 2],
        lines: &Lines<'ctx>,
    ) -> Result<()> {
        let streams = streams(self.plan, segment, body);
        if streams.is_empty() {
            return Ok(());
        }
        let before = self.hooks.frame.get();
        let [x, block_y, block_z] = before.block;
        let next = self.emitter.builder.build_int_add(x, x.get_type().const_int(1, false), "")?;
        let block = [next, block_y, block_z];
        for stream in &streams {
            self.each_line(lines, stream.size, |this, x| {
                this.hooks.frame.set(Frame { block, thread: [x, y, z], ..before });
                this.fetch_stream(stream)
            })?;
        }
        self.hooks.frame.set(before);
        Ok(())
    }

    /// As [`Self::fetch_for_next_block`], for a range of threads in a row of any length. Only for kernels with
    /// barriers, whose blocks are not merged, and for regions without a split index set, except for that of a steady state.
    pub(crate) fn fetch_row_of_next_block(
        &mut self,
        segment: &Segment,
        row: [IntValue<'ctx>; 2],
        (low, high): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<()> {
        let is_other = segment.split.is_some() && segment.steady_state().is_none();
        if !self.plan.has_barriers || is_other {
            return Ok(());
        }
        let body = segment.steady_state().map_or(&segment.body, |steady_state| &steady_state.body);
        self.fetch_for_next_block(segment, body, row, &Lines::Between(low, high))
    }

    /// Prefetches what threads of a row load in the next iteration of the loop around the region.
    pub(crate) fn fetch_for_next_turn(
        &mut self,
        segment: &Segment,
        (row, first_thread): ([IntValue<'ctx>; 2], IntValue<'ctx>),
        lines: &Lines<'ctx>,
    ) -> Result<()> {
        let before = self.hooks.frame.get();
        for next in segment.iteration_prefetches.iter().filter(|next| !next.by_strips) {
            self.each_line(lines, next.size, |this, x| this.fetch_next(segment, next, (row, first_thread), x))?;
        }
        self.hooks.frame.set(before);
        Ok(())
    }

    /// Prefetches what one thread loads in the next iteration.
    fn fetch_next(
        &mut self,
        segment: &Segment,
        IterationPrefetch { pointer, values, .. }: &IterationPrefetch,
        ([y, z], first_thread): ([IntValue<'ctx>; 2], IntValue<'ctx>),
        x: IntValue<'ctx>,
    ) -> Result<()> {
        let thread = count(&self.emitter, first_thread, x)?;
        self.set_thread([x, y, z]);
        self.enter_with(segment, &[], thread)?;
        let mut places = Vec::new();
        for &(local, value) in values {
            let value = self.emitter.emit_expr(value)?;
            let place = self.new_place(local)?;
            places.push((local, self.emitter.slots[local.index()].replace(place)));
            self.emitter.set_local(local, value)?;
        }
        let place = self.emitter.emit_pointer(*pointer)?;
        for (local, place) in places.into_iter().rev() {
            self.emitter.slots[local.index()] = place;
        }
        self.prefetch(place, FIRST)
    }

    /// Runs `body` for one thread for each cache line that threads of a row access, with its `threadIdx.x`.
    fn each_line(
        &mut self,
        lines: &Lines<'ctx>,
        size: u64,
        mut body: impl FnMut(&mut Self, IntValue<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let int = self.emitter.cx.types.context.i32_type();
        let of_line = (LINE / size).max(1);
        match *lines {
            Lines::Known(width) => (1..=(width / of_line).max(1))
                .try_for_each(|line| body(self, int.const_int((line * of_line).min(width) - 1, false))),
            Lines::Between(low, high) => {
                self.counted_by("line", int.const_int(of_line, false), (low, high), body)?;
                Ok(())
            }
        }
    }

    /// Prefetches an address of the current thread.
    fn fetch_stream(&mut self, Stream { pointer, before, .. }: &Stream) -> Result<()> {
        let mut places = Vec::new();
        for &local in before {
            let place = self.new_place(local)?;
            places.push((local, self.emitter.slots[local.index()].replace(place)));
            self.compute(local)?;
        }
        let place = self.emitter.emit_pointer(*pointer)?;
        for (local, place) in places {
            self.emitter.slots[local.index()] = place;
        }
        self.prefetch(place, SECOND)
    }
}
