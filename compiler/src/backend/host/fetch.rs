//! What the cache is asked for ahead of time.

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use inkwell::values::{IntValue, PointerValue};

use super::{
    entry::KernelEmitter,
    hooks::{Frame, count},
    plan::{Ahead, Segment, rows},
};
use crate::{
    backend::llvm::Result,
    ir::{Stmt, Type},
};

/// Bytes of a cache line.
const LINE: u64 = 64;

/// What is loaded so many turns later is fetched.
const TURNS_AHEAD: u64 = 2;

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Has the cache fetch what threads of a row load two turns later. Beyond an array's end that does nothing.
    pub(super) fn fetch_ahead(
        &mut self,
        segment: &Segment,
        ([y, z], first_thread): ([IntValue<'ctx>; 2], IntValue<'ctx>),
        (low, high): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<()> {
        let (types, int) = (self.emitter.cx.types, low.get_type());
        for Ahead { pointer, step, before } in &segment.ahead {
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
                // SAFETY: without `inbounds` an address may be anywhere, and a prefetch reads nothing.
                let place = unsafe { this.emitter.builder.build_gep(types.context.i8_type(), place, &[far], "")? };
                this.prefetch(place)
            })?;
        }
        // Bounds that are asked for after this are those of the row.
        self.set_thread([int.const_zero(), y, z]);
        Ok(())
    }

    /// Has the cache fetch what is there, if something is.
    pub(super) fn prefetch(&self, place: PointerValue<'ctx>) -> Result<()> {
        let int = self.emitter.cx.types.context.i32_type();
        let (read, locality, data) = (int.const_zero(), int.const_int(2, false), int.const_int(1, false));
        let fetch = self.emitter.cx.intrinsic("llvm.prefetch", &[place.get_type().into()])?;
        let args = [place.into(), read.into(), locality.into(), data.into()];
        self.emitter.builder.build_call(fetch, &args, "")?;
        Ok(())
    }

    /// Has the cache fetch what the same row of the next block loads. Beyond an array's end that does nothing.
    pub(super) fn fetch_for_next_block(
        &mut self,
        segment: &Segment,
        body: &[Stmt],
        ([y, z], first_thread): ([IntValue<'ctx>; 2], IntValue<'ctx>),
        width: u64,
    ) -> Result<()> {
        // By the time that the next block comes here, a loop's turns have put other things into the cache.
        let streams = if segment.repeats { Vec::new() } else { rows::streams(self.plan, body) };
        if streams.is_empty() {
            return Ok(());
        }
        let first = rows::harmless(self.plan, body);
        let before = self.hooks.frame.get();
        let [x, block_y, block_z] = before.block;
        let one = x.get_type().const_int(1, false);
        let next = self.emitter.builder.build_int_add(x, one, "")?;
        for &pointer in &streams {
            let Type::Ptr(elem, _) = self.emitter.function.exprs[pointer].ty else { continue };
            let of_line = LINE / elem.size_bytes();
            for line in 1..=(width / of_line).max(1) {
                let last = one.get_type().const_int((line * of_line).min(width) - 1, false);
                self.hooks.frame.set(Frame { block: [next, block_y, block_z], thread: [last, y, z], ..before });
                let thread = count(&self.emitter, first_thread, last)?;
                self.enter_with(segment, &[], thread)?;
                self.emit_first(body, &first)?;
                let place = self.emitter.emit_pointer(pointer)?;
                self.prefetch(place)?;
            }
        }
        self.hooks.frame.set(before);
        Ok(())
    }
}
