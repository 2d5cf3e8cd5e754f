//! Clamps and comparisons of floats that became 64-bit integers.
//!
//! ```text
//! max(min(int64($f), 31), 0)        int64(max(min(int32($f), 31), 0))
//!
//! $i = int64($f)                    $i = int32($f)
//! if $i >= 0 {                      if $i >= 0 {
//!     if $i < $w - 1 {                  if $i < $w - 1 {
//!         …load $row[$i + 1]…               …load $row[$i + 1]…
//! ```
//!
//! A float-to-integer conversion saturates ([`ExprKind::Convert`]), so its `int32` result is the `int64` result clamped
//! to the range of `int32`. Minimum, maximum and comparisons with numbers strictly inside that range have the same
//! result for both: clamping is monotonic. So have all uses at which the value is known to fit.
//!
//! A local is narrowed if each of its uses is one of these. A GPU converts to 64 bits at a quarter of the rate.

use weft_artifact::Scalar;

use std::collections::BTreeSet;

use super::Narrow;
use crate::{
    analysis::{Interval, Ranges},
    ir::{Arith, BinaryOp, Class, CompareOp, ExprId, ExprKind, Function, Leaf, LocalId, StmtKind, Type, for_each_stmt},
};

/// The range of operands with which clamping to `int32` changes no result.
const BETWEEN: Interval = Interval::new(i32::MIN as i128 + 1, i32::MAX as i128 - 1);

impl Narrow<'_> {
    /// Whether the expression, clamped to the range of `int32`, can be computed in 32 bits.
    fn saturates(&self, id: ExprId) -> bool {
        if self.ty(id) != Type::I64 {
            return false;
        }
        match self.function.class(id) {
            Class::Arith(Arith::Convert(from)) if is_float(self.ty(from)) => true,
            Class::Arith(Arith::Binary(BinaryOp::Min | BinaryOp::Max, a, b)) => self.saturates(a) && self.saturates(b),
            Class::Leaf(Leaf::Local(local)) if self.saturated.contains(&local) => true,
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => self.fits(id),
        }
    }

    /// The 32-bit expression of a value that [`saturates`](Self::saturates).
    pub(super) fn saturated(&mut self, id: ExprId) -> ExprId {
        let span = self.span(id);
        let kind = match self.function.class(id) {
            Class::Arith(Arith::Convert(from)) if is_float(self.ty(from)) => ExprKind::Convert(self.wide(from)),
            Class::Arith(Arith::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b)) => {
                ExprKind::Binary(op, self.saturated(a), self.saturated(b))
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => return self.narrow(id),
        };
        self.push(kind, Type::I32, span)
    }

    /// Whether a minimum or maximum fits, even if its operands do not, and can be computed in 32 bits.
    pub(super) fn clamps(&self, id: ExprId, op: BinaryOp, a: ExprId, b: ExprId) -> bool {
        matches!(op, BinaryOp::Min | BinaryOp::Max) && self.fits(id) && self.saturates(a) && self.saturates(b)
    }

    /// The 32-bit operation for one that [`clamps`](Self::clamps).
    pub(super) fn clamped(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprKind {
        ExprKind::Binary(op, self.saturated(a), self.saturated(b))
    }

    /// Whether a comparison can be computed in 32 bits with saturated operands.
    pub(super) fn compares(&self, a: ExprId, b: ExprId) -> bool {
        let is_between = |id| self.ty(id) == Type::I64 && self.range(id).within(BETWEEN);
        is_between(a) && self.saturates(b) || is_between(b) && self.saturates(a)
    }

    /// The 32-bit comparison for one that [`compares`](Self::compares).
    pub(super) fn compared(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprKind {
        ExprKind::Compare(op, self.saturated(a), self.saturated(b))
    }
}

fn is_float(ty: Type) -> bool {
    ty.scalar().is_some_and(Scalar::is_float)
}

/// The candidates that are only assigned converted floats, and of which each use has the same result for the value clamped
/// to the range of `int32`.
pub(super) fn saturated_locals(
    function: &Function,
    ranges: &Ranges,
    mut candidates: BTreeSet<LocalId>,
) -> BTreeSet<LocalId> {
    let mut assigned = BTreeSet::new();
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Assign(local, value) = stmt.kind {
            assigned.insert(local);
            let converts = matches!(
                function.class(value),
                Class::Arith(Arith::Convert(from)) if is_float(function.exprs[from].ty)
            );
            if !converts {
                candidates.remove(&local);
            }
        }
    });
    candidates.retain(|local| assigned.contains(local));
    if candidates.is_empty() {
        return candidates;
    }
    let mut uses = Uses { function, ranges, left: candidates };
    for_each_stmt(&function.body, &mut |stmt| {
        for root in stmt.kind.exprs() {
            uses.read(root);
        }
    });
    uses.left
}

struct Uses<'a> {
    function: &'a Function,
    ranges: &'a Ranges,
    /// The locals of which no other use was found.
    left: BTreeSet<LocalId>,
}

impl Uses<'_> {
    fn read(&mut self, id: ExprId) {
        if let Some(local) = self.function.local(id) {
            if !self.ranges.expr(self.function, id).fits(Type::I32) {
                self.left.remove(&local);
            }
            return;
        }
        if let Class::Arith(Arith::Compare(_, a, b)) = self.function.class(id) {
            for (one, other) in [(a, b), (b, a)] {
                // `narrow` computes the comparison in 32 bits.
                let is_between = self.function.exprs[other].ty == Type::I64
                    && self.function.local(other).is_none_or(|local| !self.left.contains(&local))
                    && self.ranges.expr(self.function, other).within(BETWEEN);
                if self.function.local(one).is_some() && is_between {
                    return self.read(other);
                }
            }
        }
        for operand in self.function.exprs[id].kind.operands() {
            self.read(operand);
        }
    }
}
