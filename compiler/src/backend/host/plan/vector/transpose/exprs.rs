//! Queries about expressions in a loop with transposed accesses.

use weft_artifact::Scalar;

use crate::{
    analysis::{
        affine::{Along, ByStructure, LocalStride, Precision, Stride, Strides},
        any_expr,
    },
    backend::host::plan::{
        analysis::{
            strides::{Form, Forms},
            vectorizable,
        },
        plan_ir::guards::Peeler,
        vector::transpose::transposition::{Known, Transposition},
    },
    ir::{Class, Expr, ExprId, ExprKind, Leaf, LocalId, Space, Type},
};

/// Most expressions of an address or a value, after the locals of an iteration are replaced by their values.
pub(crate) const MAX_EXPRS: u32 = 64;

impl Transposition<'_, '_> {
    /// How an address changes along `threadIdx.x`, if it is uniform or has unit stride; otherwise `None`.
    pub(crate) fn neighbors(&self, pointer: ExprId) -> Option<Form> {
        self.forms(|forms| vectorizable::is_unit_stride_or_uniform(forms, pointer).then(|| forms.form(pointer)))
    }

    /// Runs a query about strides along a row.
    pub(crate) fn forms<T>(&self, ask: impl FnOnce(&Forms<'_>) -> T) -> T {
        let Peeler { function, uniformity, fixed, .. } = &*self.peeler;
        let shared = |local: LocalId| !uniformity.local_varies(local);
        ask(&Forms { function, fixed, shared: &shared, sole: &|_| None, axis: 0 })
    }

    /// `true` if an element is in global memory and has a type that vectors can hold.
    pub(crate) fn is_plain(&self, pointer: ExprId) -> bool {
        matches!(self.function().exprs[pointer].ty, Type::Ptr(element, Space::Global) if element != Scalar::Bool)
    }

    pub(crate) fn is_never_written(&self, mut pointer: ExprId) -> bool {
        while let Class::Address { base, .. } = self.function().class(pointer) {
            pointer = base;
        }
        self.function().local(pointer).is_some_and(|local| self.function().locals[local].never_written)
    }

    /// An expression in terms of the counter and of loop-invariant values, at the current position of an iteration.
    pub(crate) fn inline(&mut self, root: ExprId, known: &Known) -> Option<ExprId> {
        self.inline_within(root, known, &mut { MAX_EXPRS })
    }

    fn inline_within(&mut self, root: ExprId, known: &Known, left: &mut u32) -> Option<ExprId> {
        *left = left.checked_sub(1)?;
        let Expr { kind, ty, span } = self.function().exprs[root].clone();
        match kind.class() {
            Class::Load(_) => return None,
            Class::Leaf(Leaf::Local(local)) if local != self.counter => {
                if let Some(&value) = known.get(&local) {
                    return self.inline_within(value?, &Known::new(), left);
                }
                let Peeler { uniformity, fixed, .. } = &*self.peeler;
                let is_there =
                    !uniformity.local_varies(local) || fixed.value(local).is_some() || self.fetched.contains(&local);
                if self.assigned.contains(&local) || !is_there {
                    return None;
                }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => {}
        }
        let mut whole = true;
        let kind = kind.map_operands(&mut |operand| {
            self.inline_within(operand, known, left).unwrap_or_else(|| {
                whole = false;
                operand
            })
        });
        whole.then(|| self.peeler.function.exprs.push(Expr { kind, ty, span }))
    }

    /// A copy of a uniform expression, without locals of a thread: an absent lane does not compute these.
    pub(crate) fn of_all(&mut self, root: ExprId, left: &mut u32) -> Option<ExprId> {
        *left = left.checked_sub(1)?;
        let Expr { kind, ty, span } = self.function().exprs[root].clone();
        if let ExprKind::Local(local) = kind
            && self.peeler.uniformity.local_varies(local)
        {
            let value = self.peeler.fixed.value(local)?;
            return self.of_all(value, left);
        }
        let mut whole = true;
        let kind = kind.map_operands(&mut |operand| {
            self.of_all(operand, left).unwrap_or_else(|| {
                whole = false;
                operand
            })
        });
        whole.then(|| self.peeler.function.exprs.push(Expr { kind, ty, span }))
    }

    /// `true` if a value depends on the counter.
    pub(crate) fn counts(&self, root: ExprId) -> bool {
        any_expr(self.function(), root, &|kind| *kind == ExprKind::Local(self.counter))
    }

    /// `true` if a value is the counter, possibly widened to 64 bits.
    pub(crate) fn is_counter(&self, id: ExprId) -> bool {
        let expr = &self.function().exprs[id];
        if let ExprKind::Convert(a) = expr.kind {
            return expr.ty == Type::I64 && self.function().exprs[a].ty == Type::I32 && self.is_counter(a);
        }
        expr.kind == ExprKind::Local(self.counter)
    }

    /// `true` if a value grows by one in each iteration, or a pointer by one element; `false` if it is loop-invariant;
    /// `None` if it is neither.
    pub(crate) fn goes_on(&self, root: ExprId) -> Option<bool> {
        if !self.counts(root) {
            return Some(false);
        }
        let local = |local: LocalId| LocalStride::Known(Stride::Constant(i64::from(local == self.counter)));
        let function = self.function();
        let strides = Strides { function, along: Along::Iterations, precision: Precision::Exact, local: &local };
        let one = match function.exprs[root].ty {
            Type::Scalar(_) => 1,
            Type::Ptr(element, _) => element.size_bytes() as i64,
        };
        (strides.stride(root) == Stride::Constant(one)).then_some(true)
    }

    /// The number of elements from one pointer to another, if it is a constant.
    pub(crate) fn distance(&self, from: ExprId, to: ExprId) -> Option<i128> {
        let function = self.function();
        let Type::Ptr(element, _) = function.exprs[from].ty else { return None };
        let bytes = ByStructure::new(function).difference(Precision::Exact, to, from)?;
        let size = i128::from(element.size_bytes());
        (function.exprs[to].ty == function.exprs[from].ty && bytes % size == 0).then(|| bytes / size)
    }
}
