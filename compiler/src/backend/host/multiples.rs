//! Segments that run for the threads of a row up to one of them, which is a quotient.

use inkwell::{IntPredicate, values::IntValue};

use super::{
    entry::KernelEmitter,
    hooks::index,
    plan::{Multiples, Segment},
    threads::RangeValues,
};
use crate::{
    backend::llvm::{Result, internal},
    ir::CompareOp,
};

/// What a thread's index grows by is less, so that a row's indices fit.
const MOST: u64 = 1 << 31;

/// The first index and what it is compared with are nearer to zero.
const FAR: u64 = 1 << 60;

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Of the threads `bounds` of a row those up to one of them, or from it on; the body itself where indices may wrap.
    pub(super) fn up_to_one(
        &mut self,
        segment: &Segment,
        multiples: &Multiples,
        row: ([IntValue<'ctx>; 2], IntValue<'ctx>),
        (low, high): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<()> {
        let of = self.guard_values(&multiples.of)?;
        let (pairs, []) = of.ranges.as_chunks::<2>() else { return internal("multiples of no number") };
        let [Some(&[RangeValues { value: first, op, bound, .. }, RangeValues { bound: by, .. }])] = [pairs.first()]
        else {
            return internal("multiples of no number");
        };
        let long = first.get_type();
        let (zero, one) = (long.const_zero(), long.const_int(1, false));
        let (part, whole) = (self.emitter.block("multiples"), self.emitter.block("no_multiples"));
        let end = self.emitter.block("multiples_end");
        let builder = &self.emitter.builder;
        let mut fits = self.emitter.cx.types.context.bool_type().const_int(1, false);
        for (at, [RangeValues { value, bound, .. }, RangeValues { bound: by, .. }]) in pairs.iter().enumerate() {
            let less = builder.build_int_sub(*by, one, "")?;
            let small = builder.build_int_compare(IntPredicate::ULT, less, long.const_int(MOST - 1, false), "")?;
            fits = builder.build_and(fits, small, "fits")?;
            if at > 0 || !multiples.bounded {
                let near = builder.build_int_compare(IntPredicate::ULT, *value, long.const_int(FAR, false), "")?;
                fits = builder.build_and(fits, near, "fits")?;
                continue;
            }
            for value in [value, bound] {
                let moved = builder.build_int_add(*value, long.const_int(FAR, false), "")?;
                let near = builder.build_int_compare(IntPredicate::ULT, moved, long.const_int(2 * FAR, false), "")?;
                fits = builder.build_and(fits, near, "fits")?;
            }
        }
        builder.build_conditional_branch(fits, part, whole)?;
        builder.position_at_end(whole);
        self.threads_of_row(segment, &segment.body, row, (low, high))?;
        self.emitter.go(end)?;

        self.emitter.builder.position_at_end(part);
        if !multiples.bounded {
            self.threads_of_row(segment, &multiples.part.body, row, (low, high))?;
            self.emitter.go(end)?;
            self.emitter.builder.position_at_end(end);
            return Ok(());
        }
        let guard = self.guard_values(&multiples.part.guard)?;
        let (from, to) = (index(&self.emitter, low)?, index(&self.emitter, high)?);
        // The first thread whose index is at least the bound, or more.
        let builder = &self.emitter.builder;
        let less = builder.build_int_sub(by, one, "")?;
        let more = match op {
            CompareOp::Lt | CompareOp::Ge => less,
            CompareOp::Le | CompareOp::Gt => by,
            CompareOp::Eq | CompareOp::Ne => return internal("multiples that are no interval"),
        };
        let ahead = builder.build_int_add(builder.build_int_sub(bound, first, "")?, more, "")?;
        let ahead = self.choose("llvm.smax", ahead, zero.into())?;
        let at = self.emitter.builder.build_int_unsigned_div(ahead, by, "at")?;
        let at = self.choose("llvm.smin", self.choose("llvm.smax", at, from.into())?, to.into())?;
        let is_below = matches!(op, CompareOp::Lt | CompareOp::Le);
        let (from, to) = if is_below { (from, at) } else { (at, to) };
        let bounds = self.span(&guard, from, to)?;
        self.threads_of_row(segment, &multiples.part.body, row, bounds)?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }
}
