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
//!
//! Loops over rows of any length have such bounds if a condition selects rows of every block, as the halo of a tile does
//! (`threadIdx.y < 2`). A condition that excludes rows of few blocks costs less as a test of each row.

use inkwell::{IntPredicate, values::IntValue};

use crate::{
    backend::{
        host::{
            emit::{
                access_groups::Shape,
                kernel::KernelEmitter,
                position::{Frame, count, index},
            },
            plan::{Form, Forms, Guard, Range},
        },
        llvm::Result,
    },
    ir::{ExprId, ExprKind, LocalId, SpecialRegister, for_each_expr},
};

/// A guard whose conditions on the row are split into bounds along `y` and others.
pub(crate) struct RowBounds {
    /// The bounds along `y`.
    pub rows: Option<Guard>,
    /// The ranges along `x`, and the conditions that remain to be tested in each row.
    pub left: Option<Guard>,
}

/// The rows of a box of threads.
pub(crate) struct BoxBounds {
    /// The bounds along `z`.
    planes: Option<Guard>,
    /// The bounds along `y`, and the rest of the guard.
    bounds: RowBounds,
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// Splits the conditions on the row of a guard.
    pub(crate) fn row_bounds(&self, guard: Option<&Guard>) -> RowBounds {
        self.bounds_along(1, guard)
    }

    /// The rows that a guard selects in every block, if it does: `threadIdx.y < 2`. Other guards exclude rows of few
    /// blocks, and are tested in each row.
    pub(crate) fn box_bounds(&self, guard: Option<&Guard>) -> Option<BoxBounds> {
        let RowBounds { rows: planes, left } = self.bounds_along(2, guard);
        let bounds = self.row_bounds(left.as_ref());
        let mut ranges = planes.iter().chain(&bounds.rows).flat_map(|guard| &guard.ranges);
        let is_box = ranges.any(|range| !self.reads_block(range.value) && !self.reads_block(range.bound));
        is_box.then_some(BoxBounds { planes, bounds })
    }

    /// Whether a value depends on the block's index.
    fn reads_block(&self, root: ExprId) -> bool {
        let mut reads = false;
        for_each_expr(self.emitter.function, root, &mut |id| {
            let kind = &self.emitter.function.exprs[id].kind;
            let value = self.emitter.function.local(id).and_then(|local| self.plan.fixed.value(local));
            reads |= matches!(kind, ExprKind::Special(SpecialRegister::BlockIdx(_)))
                || value.is_some_and(|value| self.reads_block(value));
        });
        reads
    }

    /// Splits the conditions on the row of a guard into bounds along an axis and others. Bounds along `z` are the same
    /// in all rows of a plane.
    fn bounds_along(&self, axis: u8, guard: Option<&Guard>) -> RowBounds {
        let Some(guard) = guard else { return RowBounds { rows: None, left: None } };
        let (mut rows, mut left) = (Guard::default(), Guard { rows: Vec::new(), ..guard.clone() });
        let alike = |range: &Range| {
            let values = [range.value, range.bound];
            axis == 1 || self.with_forms(1, |forms| values.into_iter().all(|id| forms.form(id) == Form::Same))
        };
        self.with_forms(axis, |forms| {
            for &(cond, negated) in &guard.rows {
                let mut parts = forms.parts(cond, negated);
                let bounds = &mut parts.guard;
                let is_bound = bounds.ranges.iter().all(|range| !range.wraps && alike(range));
                if !is_bound || bounds.ranges.is_empty() {
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

    /// As [`Self::each_row`], for the rows of a box of threads.
    pub(crate) fn each_row_of_box(
        &mut self,
        BoxBounds { planes, bounds }: &BoxBounds,
        body: impl FnOnce(&mut Self, [IntValue<'ctx>; 2], IntValue<'ctx>, Option<&Guard>) -> Result<()>,
    ) -> Result<()> {
        let left = bounds.left.as_ref();
        self.each_row_between([planes.as_ref(), bounds.rows.as_ref()], true, |this, row, first_thread| {
            body(this, row, first_thread, left)
        })
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
        self.each_row_between([None, bounds], rolled, body)
    }

    /// As [`Self::each_row_within`], for bounds along `z` and `y`.
    fn each_row_between(
        &mut self,
        [planes, bounds]: [Option<&Guard>; 2],
        rolled: bool,
        body: impl FnOnce(&mut Self, [IntValue<'ctx>; 2], IntValue<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let zero = self.emitter.cx.types.context.i32_type().const_zero();
        let Frame { row: extent_x, rows: [extent_y, extent_z], .. } = self.hooks.frame.get();
        let shape = if rolled { Shape::Rolled } else { Shape::Loop };
        let mut all_planes = (zero, extent_z);
        if let Some(planes) = planes {
            self.set_thread([zero; 3]);
            let values = self.guard_values(planes)?;
            let long = self.emitter.cx.types.context.i64_type();
            all_planes = self.span(&values, long.const_zero(), index(&self.emitter, extent_z)?)?;
        }
        let (head, back) = self.counted("z", all_planes, |this, z| {
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
