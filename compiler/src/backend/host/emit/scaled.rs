//! Guards whose index grows by more than one from thread to thread ([`SplitBy::Scaled`](crate::backend::host::plan::SplitBy)), as loop bounds.
//!
//! ```text
//! for x in low..high:                     for x in low..min(high, ceil((n - first) / by)):
//!     index = first + by * x                  body
//!     if index < n: body
//! ```
//!
//! The copy of the body has no guard, and no tests for negative indices. It is legal if `by` is positive, no index
//! wraps, and no other index is negative. Each row tests that, and otherwise runs the region's own body.

use inkwell::{IntPredicate, values::IntValue};

use crate::{
    backend::{
        host::{
            emit::{
                guard_values::RangeValues,
                kernel::KernelEmitter,
                parts::{Bounds, Row},
                position::index,
            },
            plan::{Guard, Piece, Segment},
        },
        llvm::{Result, internal},
    },
    ir::CompareOp,
};

/// The growth per thread must be less, so that the indices of a row do not wrap.
const MAX_GROWTH: u64 = 1 << 31;

/// The absolute values of the first index and of its bound must not exceed this, so that sums do not wrap.
const MAX_INDEX: u64 = 1 << 60;

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Runs those of the threads `low..high` of a row that the bounds let through. If indices may wrap or be negative,
    /// the row runs the region's body.
    pub(crate) fn threads_of_scaled_guard(
        &mut self,
        segment: &Segment,
        (of, n_bounds): (&Guard, usize),
        piece: &Piece,
        row: Row<'ctx>,
        (low, high): Bounds<'ctx>,
    ) -> Result<()> {
        let of = self.guard_values(of)?;
        let (pairs, []) = of.ranges.as_chunks::<2>() else { return internal("multiples of no number") };
        let (bounds, others) = pairs.split_at(n_bounds.min(pairs.len()));
        let long = self.emitter.cx.types.context.i64_type();
        let (zero, one) = (long.const_zero(), long.const_int(1, false));
        let (part, whole) = (self.emitter.block("multiples"), self.emitter.block("no_multiples"));
        let end = self.emitter.block("multiples_end");
        let builder = &self.emitter.builder;
        let mut fits = self.emitter.cx.types.context.bool_type().const_int(1, false);
        for [RangeValues { value, bound, .. }, RangeValues { bound: by, .. }] in bounds {
            let less = builder.build_int_sub(*by, one, "")?;
            let small =
                builder.build_int_compare(IntPredicate::ULT, less, long.const_int(MAX_GROWTH - 1, false), "")?;
            fits = builder.build_and(fits, small, "fits")?;
            for value in [value, bound] {
                fits = builder.build_and(fits, self.within(*value, MAX_INDEX)?, "fits")?;
            }
        }
        for [RangeValues { value, .. }, RangeValues { bound: by, .. }] in others {
            let near = builder.build_and(self.within(*value, MAX_INDEX)?, self.within(*by, MAX_GROWTH)?, "")?;
            fits = builder.build_and(fits, near, "fits")?;
        }
        builder.build_conditional_branch(fits, part, whole)?;
        builder.position_at_end(part);
        let (mut from, mut to) = (index(&self.emitter, low)?, index(&self.emitter, high)?);
        for [RangeValues { value: first, op, bound, .. }, RangeValues { bound: by, .. }] in bounds {
            // The first thread whose index is at least the bound (`<`, `>=`), or exceeds it (`<=`, `>`).
            let builder = &self.emitter.builder;
            let more = match op {
                CompareOp::Lt | CompareOp::Ge => builder.build_int_sub(*by, one, "")?,
                CompareOp::Le | CompareOp::Gt => *by,
                CompareOp::Eq | CompareOp::Ne => return internal("multiples that are no interval"),
            };
            let ahead = builder.build_int_add(builder.build_int_sub(*bound, *first, "")?, more, "")?;
            let ahead = self.choose("llvm.smax", ahead, zero.into())?;
            let at = self.emitter.builder.build_int_unsigned_div(ahead, *by, "at")?;
            if matches!(op, CompareOp::Lt | CompareOp::Le) {
                to = self.choose("llvm.smin", to, at.into())?;
            } else {
                from = self.choose("llvm.smax", from, at.into())?;
            }
        }
        let from = self.choose("llvm.smin", from, index(&self.emitter, high)?.into())?;
        let to = self.choose("llvm.smax", to, from.into())?;
        let guard = self.guard_values(&piece.guard)?;
        let (from, to) = self.span(&guard, from, to)?;
        if !others.is_empty() {
            // An index that is not negative at both ends of the range is not negative in between.
            let (first, behind) = (index(&self.emitter, from)?, index(&self.emitter, to)?);
            let builder = &self.emitter.builder;
            let last = builder.build_int_sub(behind, one, "")?;
            let mut counts = self.emitter.cx.types.context.bool_type().const_int(1, false);
            for [RangeValues { value, .. }, RangeValues { bound: by, .. }] in others {
                for thread in [first, last] {
                    let at = builder.build_int_add(*value, builder.build_int_mul(*by, thread, "")?, "")?;
                    let is = builder.build_int_compare(IntPredicate::SGE, at, zero, "")?;
                    counts = builder.build_and(counts, is, "counts")?;
                }
            }
            let nobody = builder.build_int_compare(IntPredicate::SGE, from, to, "")?;
            let counts = builder.build_or(counts, nobody, "")?;
            let next = self.emitter.block("not_negative");
            self.emitter.builder.build_conditional_branch(counts, next, whole)?;
            self.emitter.builder.position_at_end(next);
        }
        self.threads_of_row(segment, &piece.body, row, (from, to))?;
        self.emitter.go(end)?;

        self.emitter.builder.position_at_end(whole);
        self.threads_of_row(segment, &segment.body, row, (low, high))?;
        self.emitter.go(end)?;
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// Whether `-limit <= value < limit`.
    fn within(&self, value: IntValue<'ctx>, limit: u64) -> Result<IntValue<'ctx>> {
        let (long, builder) = (value.get_type(), &self.emitter.builder);
        let moved = builder.build_int_add(value, long.const_int(limit, false), "")?;
        Ok(builder.build_int_compare(IntPredicate::ULT, moved, long.const_int(2 * limit, false), "")?)
    }
}
