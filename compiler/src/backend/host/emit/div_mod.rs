//! Index-set splitting of a row where a quotient of the thread index changes ([`Quotients`]).
//!
//! ```text
//! for x in 0..row:                        for each part of the row in which (first + x) / w is one value:
//!     i = first + x                           q, r = divmod(first + start of the part, w)
//!     a[i / w, i % w]                         for x in 0..length of the part:
//!                                                 a[q, r + x]
//! ```
//!
//! In a part, quotients are uniform and remainders grow by one from thread to thread, so accesses have unit stride.
//! That is legal in merged blocks, in which any thread may be the first of a part. It pays if parts are long, which the
//! code tests at run time ([`Quotients::is_worth`]). Otherwise the row is one part, which runs the original code.

use inkwell::{IntPredicate, values::IntValue};

use crate::backend::{
    host::{
        emit::{
            kernel::KernelEmitter,
            position::{Frame, index},
        },
        plan::{Dividend, Division, Quotients},
    },
    llvm::{Result, internal},
};

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Emits the current row: in parts if that pays, else in one part.
    pub(crate) fn parts_of_row(&mut self, quotients: &Quotients) -> Result<()> {
        let frame = self.hooks.frame.get();
        let int = frame.row.get_type();
        let first = self.emitter.emit_int(quotients.first)?;
        let is_worth = self.emitter.emit_int(quotients.is_worth)?;
        let after = std::mem::replace(&mut self.block_end, self.emitter.block("next_part"));
        let before = self.emitter.current()?;
        let head = self.emitter.block("part");
        self.emitter.builder.build_unconditional_branch(head)?;
        self.emitter.builder.position_at_end(head);
        let phi = self.emitter.builder.build_phi(int, "part")?;
        phi.add_incoming(&[(&int.const_zero(), before)]);
        let done = phi.as_basic_value().into_int_value();
        let base = self.emitter.builder.build_int_add(first, index(&self.emitter, done)?, "")?;
        let left = self.emitter.builder.build_int_nuw_sub(frame.row, done, "")?;
        let threads = self.divide(quotients, base, left)?;
        let threads = self.emitter.builder.build_select(is_worth, threads, left, "row")?.into_int_value();
        let [_, y, z] = frame.block_dim;
        let builder = &self.emitter.builder;
        self.threads = builder.build_int_nuw_mul(builder.build_int_nuw_mul(threads, y, "")?, z, "threads")?;
        self.hooks.frame.set(Frame { row: threads, ..frame });
        self.body()?;

        let next_part = std::mem::replace(&mut self.block_end, after);
        self.emitter.builder.position_at_end(next_part);
        let builder = &self.emitter.builder;
        let next = builder.build_int_nuw_add(done, threads, "")?;
        phi.add_incoming(&[(&next, next_part)]);
        let more = builder.build_int_compare(IntPredicate::ULT, next, frame.row, "")?;
        builder.build_conditional_branch(more, head, self.block_end)?;
        Ok(())
    }

    /// Computes the quotients and remainders for the part that begins at the thread with index `base`. Returns how many
    /// of the `left` threads the part has.
    fn divide(&mut self, quotients: &Quotients, base: IntValue<'ctx>, left: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let mut values = vec![base];
        let mut threads = index(&self.emitter, left)?;
        for division in &quotients.divisions {
            let by = self.emitter.emit_int(division.by)?;
            // The results for a divisor less than 1 are not used. The maximum avoids a division by zero.
            let by = self.choose("llvm.smax", by, by.get_type().const_int(1, false).into())?;
            let (of, cuts) = match division.dividend {
                Dividend::Index => (0, true),
                Dividend::Remainder(of) => (Division::remainder(of), true),
                Dividend::Quotient(of) => (Division::quotient(of), false),
            };
            let Some(&dividend) = values.get(of) else { return internal("a division of what comes later") };
            let builder = &self.emitter.builder;
            let quotient = builder.build_int_unsigned_div(dividend, by, "quotient")?;
            let whole = builder.build_int_mul(quotient, by, "")?;
            let remainder = builder.build_int_sub(dividend, whole, "remainder")?;
            let to_next = builder.build_int_sub(by, remainder, "")?;
            values.extend([quotient, remainder]);
            if cuts {
                threads = self.choose("llvm.umin", threads, to_next.into())?;
            }
        }
        *self.hooks.of_row.borrow_mut() = values;
        Ok(self.emitter.builder.build_int_truncate(threads, left.get_type(), "")?)
    }
}
