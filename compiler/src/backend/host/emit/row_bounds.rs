//! Loops over the rows of a block along `z` and `y`, whose bounds include conditions on the row.
//!
//! ```text
//! for y in 0..extent_y:                   for y in 0..min(extent_y, n - first):
//!     if first + y < n: row                   row
//! ```
//!
//! A condition on the row becomes a bound if its value grows by one from row to row and cannot wrap. The bounds along
//! `x` are then the same for all rows of a known length ([`fixed_rows`](crate::backend::host::emit::fixed_rows)), and
//! one test per block shows whether all its threads are in the steady state.

use inkwell::{IntPredicate, values::IntValue};

use crate::{
    backend::{
        host::{
            emit::{
                access_groups::Shape,
                kernel::KernelEmitter,
                position::{Frame, count, index},
            },
            plan::{Form, Forms, Guard, SplitCondition},
        },
        llvm::Result,
    },
    ir::LocalId,
};

/// A guard whose conditions on the row are split into bounds along `y` and others.
pub(crate) struct RowBounds {
    /// The bounds along `y`.
    pub rows: Option<Guard>,
    /// The ranges along `x`, and the conditions that remain to be tested in each row.
    pub left: Option<Guard>,
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Splits the conditions on the row of a guard.
    pub(crate) fn row_bounds(&self, guard: Option<&Guard>) -> RowBounds {
        let Some(guard) = guard else { return RowBounds { rows: None, left: None } };
        let (mut rows, mut left) = (Guard::default(), Guard { rows: Vec::new(), ..guard.clone() });
        self.with_forms(1, |forms| {
            for &(cond, negated) in &guard.rows {
                let mut parts = SplitCondition::default();
                forms.split(cond, negated, &mut parts);
                let bounds = &mut parts.guard;
                if bounds.ranges.iter().any(|range| range.wraps) || bounds.ranges.is_empty() {
                    left.rows.push((cond, negated));
                } else {
                    rows.ranges.append(&mut bounds.ranges);
                    left.rows.append(&mut bounds.rows);
                    left.rows.append(&mut parts.residual);
                }
            }
        });
        rows.recompute.clone_from(&guard.recompute);
        RowBounds { rows: Some(rows).filter(|rows| !rows.ranges.is_empty()), left: Some(left) }
    }

    /// The guard of the steady state, split, if one test per block determines whether it holds for all threads that the
    /// region's guard lets through. `guards` are the bounds along `y` and the rest of the region's guard.
    pub(crate) fn border_of_block(&self, guards: [Option<&Guard>; 2], steady_state: &Guard) -> Option<RowBounds> {
        let border = self.row_bounds(Some(steady_state));
        let [rows, left] = guards;
        let along_y = [rows, border.rows.as_ref()];
        let along_x = [left, border.left.as_ref()];
        let alike = along_y.into_iter().flatten().all(|guard| self.is_alike(guard, &[2]))
            && along_x.into_iter().flatten().all(|guard| self.is_alike(guard, &[1, 2]));
        let asked = border.left.iter().flat_map(|guard| &guard.rows);
        let same = |axis| self.with_forms(axis, |forms| asked.clone().all(|&(cond, _)| forms.form(cond) == Form::Same));
        (alike && same(1) && same(2)).then_some(border)
    }

    /// Whether all threads of the block that run the region are in the steady state, for a result of
    /// [`Self::border_of_block`].
    pub(crate) fn is_near_no_border(
        &mut self,
        [rows, left]: [Option<&Guard>; 2],
        border: &RowBounds,
    ) -> Result<IntValue<'ctx>> {
        let zero = self.emitter.cx.types.context.i32_type().const_zero();
        let Frame { row: extent_x, rows: [extent_y, _], .. } = self.hooks.frame.get();
        self.set_thread([zero; 3]);
        let mut far = self.emitter.cx.types.context.bool_type().const_all_ones();
        for (extent, outer, inner) in [(extent_y, rows, border.rows.as_ref()), (extent_x, left, border.left.as_ref())] {
            let (low, high) = self.ranges_within(outer, (zero, extent))?;
            let high = self.choose("llvm.smax", low, high.into())?;
            let (from, to) = self.ranges_within(inner, (low, high))?;
            for (one, other) in [(low, from), (high, to)] {
                let builder = &self.emitter.builder;
                let same = builder.build_int_compare(IntPredicate::EQ, one, other, "")?;
                far = builder.build_and(far, same, "is_far")?;
            }
        }
        let asked = Guard { ranges: Vec::new(), ..border.left.clone().unwrap_or_default() };
        let asked = self.guard_values(&asked)?.rows;
        self.and_rows(far, asked)
    }

    /// The threads among `low..high` that the ranges of a guard let through.
    fn ranges_within(
        &mut self,
        guard: Option<&Guard>,
        (low, high): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<(IntValue<'ctx>, IntValue<'ctx>)> {
        let Some(guard) = guard else { return Ok((low, high)) };
        let values = self.guard_values(&Guard { rows: Vec::new(), ..guard.clone() })?;
        self.span(&values, index(&self.emitter, low)?, index(&self.emitter, high)?)
    }

    /// Whether the ranges of a guard are uniform along `axes`, and none of their values wraps.
    fn is_alike(&self, guard: &Guard, axes: &[u8]) -> bool {
        let values = guard.ranges.iter().flat_map(|range| [range.value, range.bound]);
        let alike = |forms: &Forms<'_>| values.clone().all(|value| forms.form(value) == Form::Same);
        !guard.ranges.iter().any(|range| range.wraps) && axes.iter().all(|&axis| self.with_forms(axis, alike))
    }

    fn with_forms<T>(&self, axis: u8, ask: impl FnOnce(&Forms<'_>) -> T) -> T {
        let own = |local: LocalId| self.plan.varying.get(local.index()).copied().unwrap_or(true);
        let (function, fixed) = (self.emitter.function, &self.plan.fixed);
        ask(&Forms { function, fixed, shared: &|local| !own(local), sole: &|_| None, axis })
    }

    /// As [`Self::each_row`], for rows within bounds along `y`. With `rolled`, the loops are not unrolled: where each
    /// row accesses another row of a matrix, LLVM would compute an address for each unrolled iteration ahead of time,
    /// and spill it.
    pub(crate) fn each_row_within(
        &mut self,
        bounds: Option<&Guard>,
        rolled: bool,
        body: impl FnOnce(&mut Self, [IntValue<'ctx>; 2], IntValue<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let zero = self.emitter.cx.types.context.i32_type().const_zero();
        let Frame { row: extent_x, rows: [extent_y, extent_z], .. } = self.hooks.frame.get();
        let shape = if rolled { Shape::Rolled } else { Shape::Loop };
        let (head, back) = self.counted("z", (zero, extent_z), |this, z| {
            let mut rows = (zero, extent_y);
            if let Some(bounds) = bounds {
                this.set_thread([zero, zero, z]);
                let values = this.guard_values(bounds)?;
                let long = this.emitter.cx.types.context.i64_type();
                rows = this.span(&values, long.const_zero(), index(&this.emitter, extent_y)?)?;
            }
            let before = this.emitter.builder.build_int_nuw_mul(z, extent_y, "")?;
            let (head, back) = this.counted("y", rows, |this, y| {
                let row = count(&this.emitter, before, y)?;
                let first_thread = this.emitter.builder.build_int_nuw_mul(row, extent_x, "")?;
                this.set_thread([zero, y, z]);
                body(this, [y, z], first_thread)
            })?;
            this.parallel.promise(head, back, false, shape);
            Ok(())
        })?;
        self.parallel.promise(head, back, false, shape);
        Ok(())
    }
}
