//! The index bounds that the conditions around a statement imply: which index is less than which extent.
//!
//! A bound states that an expression over locals is less than an extent, which is a parameter that never changes. An
//! assignment to a local that the expression reads invalidates it. A condition that is computed in steps, as `0 < i <
//! n` is, gives bounds that hold if the local with its value is true.

use crate::{
    analysis::{any_expr, for_each_read, same},
    ir::{BinaryOp, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, UnaryOp},
    passes::prove_nonneg::is_nonneg,
};

/// The bounds that hold at a program point.
#[derive(Clone, Debug, Default)]
pub(super) struct ProvenIndices {
    below: Vec<UpperBound>,
    /// The bounds that hold if a local is true.
    when: Vec<(LocalId, UpperBound)>,
}

/// An expression is less than a parameter.
type UpperBound = (ExprId, LocalId);

impl ProvenIndices {
    /// Adds the bounds that a condition implies, or its negation.
    pub(super) fn assume(&mut self, function: &Function, cond: ExprId, holds: bool) {
        match (&function.exprs[cond].kind, holds) {
            (ExprKind::Binary(BinaryOp::And, a, b), true) | (ExprKind::Binary(BinaryOp::Or, a, b), false) => {
                self.assume(function, *a, holds);
                self.assume(function, *b, holds);
            }
            (ExprKind::Local(flag), true) => {
                let known = self.when.iter().filter(|(of, _)| of == flag).map(|(_, bound)| *bound);
                self.below.extend(known);
            }
            (ExprKind::Unary(UnaryOp::Not, inner), _) => self.assume(function, *inner, !holds),
            // The condition of a range whose step is unknown: `select(step > 0, i < n, (step < 0) & (i > n))`.
            (ExprKind::Select(_, a, b), true) if is_never(function, *b) => self.assume(function, *a, true),
            (ExprKind::Compare(op, a, b), _) => {
                let (lesser, greater) = match (op, holds) {
                    (CompareOp::Lt, true) | (CompareOp::Ge, false) => (*a, *b),
                    (CompareOp::Gt, true) | (CompareOp::Le, false) => (*b, *a),
                    (CompareOp::Lt | CompareOp::Gt, false)
                    | (CompareOp::Le | CompareOp::Ge, true)
                    | (CompareOp::Eq | CompareOp::Ne, _) => return,
                };
                if let Some(extent) = extent(function, greater)
                    && function.params.contains(&extent)
                    && function.exprs[lesser].ty == crate::ir::Type::I64
                    && !any_expr(function, lesser, &|kind| matches!(kind, ExprKind::Load(..)))
                {
                    self.below.push((lesser, extent));
                }
            }
            (
                ExprKind::Const(_)
                | ExprKind::Local(_)
                | ExprKind::Special(_)
                | ExprKind::Unary(..)
                | ExprKind::Binary(..)
                | ExprKind::Select(..)
                | ExprKind::Convert(_)
                | ExprKind::Math(..)
                | ExprKind::Load(..)
                | ExprKind::Offset { .. }
                | ExprKind::ByteOffset { .. }
                | ExprKind::SharedBase(_)
                | ExprKind::ConstBase(_)
                | ExprKind::DynamicShared
                | ExprKind::LocalBase(_)
                | ExprKind::Wrap { .. },
                _,
            ) => {}
        }
    }

    /// Whether an index is less than an extent.
    pub(super) fn is_inside(&self, function: &Function, index: ExprId, extent: LocalId) -> bool {
        is_nonneg(function, index) && self.is_below(function, index, extent)
    }

    fn is_below(&self, function: &Function, index: ExprId, extent: LocalId) -> bool {
        self.below.iter().any(|(known, of)| *of == extent && same(function, *known, index))
    }

    /// An assignment invalidates the bounds on a local, and gives it those of the value.
    pub(super) fn assign(&mut self, function: &mut Function, local: LocalId, value: ExprId) {
        let mut says = Self { below: Vec::new(), when: self.when.clone() };
        says.assume(function, value, true);
        let mut itself = false;
        for_each_read(function, value, &mut |read| itself |= read == local);
        let known: Vec<LocalId> =
            self.below.iter().filter(|(of, _)| same(function, *of, value)).map(|(_, extent)| *extent).collect();
        self.forget(function, &[local]);
        self.when.extend(says.below.into_iter().map(|bound| (local, bound)));
        if known.is_empty() || itself {
            return;
        }
        let Expr { ty, span, .. } = function.exprs[value];
        let read = function.exprs.push(Expr { kind: ExprKind::Local(local), ty, span });
        self.below.extend(known.into_iter().map(|extent| (read, extent)));
    }

    /// Drops the bounds on locals that may be assigned.
    pub(super) fn forget(&mut self, function: &Function, locals: &[LocalId]) {
        let is_unchanged = |(of, _): &UpperBound| {
            let mut is_unchanged = true;
            for_each_read(function, *of, &mut |read| is_unchanged &= !locals.contains(&read));
            is_unchanged
        };
        self.below.retain(is_unchanged);
        self.when.retain(|(flag, bound)| !locals.contains(flag) && is_unchanged(bound));
    }

    /// The bounds that hold after `if cond { … } else { flag = False }` if the flag is true: those at the end of the
    /// branch that does not clear it, and those of the condition, given the bounds `before`. The branches assign these
    /// locals.
    pub(super) fn join(
        &mut self,
        function: &Function,
        before: &Self,
        cond: ExprId,
        then: &Self,
        flag: LocalId,
        assigned: &[LocalId],
    ) {
        let mut says = Self { below: Vec::new(), when: before.when.clone() };
        says.assume(function, cond, true);
        let inside = then.when.iter().filter(|(of, _)| *of == flag).map(|(_, bound)| *bound);
        says.below.extend(inside);
        says.when.clear();
        says.forget(function, assigned);
        self.when.extend(says.below.into_iter().map(|bound| (flag, bound)));
    }
}

/// The extent that an expression is equal to, or less than by a constant. Extents are bounded by
/// [`weft_artifact::EXTENT_BITS`], so `n - 1` does not wrap.
fn extent(function: &Function, id: ExprId) -> Option<LocalId> {
    if let ExprKind::Binary(BinaryOp::Sub, a, b) = function.exprs[id].kind
        && function.int(b).is_some_and(|by| (0..1 << 32).contains(&by))
    {
        return function.local(a).filter(|local| function.locals[*local].nonneg);
    }
    function.local(id)
}

/// Whether a condition holds only if a number is negative that never is.
fn is_never(function: &Function, cond: ExprId) -> bool {
    if let ExprKind::Binary(BinaryOp::And, a, b) = function.exprs[cond].kind {
        return is_never(function, a) || is_never(function, b);
    }
    let ExprKind::Compare(CompareOp::Lt, a, b) = function.exprs[cond].kind else { return false };
    function.exprs[b].kind == ExprKind::Const(Const::Int(0)) && is_nonneg(function, a)
}
