//! Proves integers non-negative, and uses the proofs: `wrap(i, n)` becomes `i`, and floor division and modulo become
//! truncating ones.
//!
//! ```text
//! $i = int64(threadIdx.x) + …            the same
//! store $x.data[wrap($i, $x.shape0)] =   store $x.data[$i] = load $y.data[div_nonneg($i, 2)]
//!     load $y.data[wrap($i // 2, …)]
//! ```
//!
//! [`Ranges`] gives the range of a value at its use; conditions bound differences ([`differences`]). Locals that are
//! never negative are marked for the back ends.

mod differences;

use weft_artifact::{Scalar, SlotField, SlotSource};

use crate::{
    analysis::{Interval, Ranges},
    ir::{Arith, BinaryOp, Class, Const, ExprId, ExprKind, Function, Leaf, Module, UnaryOp, for_each_expr_of_block},
};

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    let ranges = ranges_and_gains(module);
    for ((_, function), ranges) in module.functions.iter_mut().zip(&ranges) {
        let nonneg: Vec<bool> = function.locals.iter().map(|(id, _)| ranges.local(function, id).is_nonneg()).collect();
        rewrite(function, ranges);
        for (id, local) in function.locals.iter_mut() {
            let signed = local.ty.scalar().is_some_and(Scalar::is_signed_int);
            local.nonneg |= signed && nonneg[id.index()];
        }
    }
}

/// The ranges. Records in the module whether they are better for launches without negative integers
/// ([`Assumptions::nonneg`](weft_artifact::Facts)).
fn ranges_and_gains(module: &mut Module) -> Vec<Ranges> {
    let takes_integers = module.kernel().is_some_and(|kernel| {
        kernel.slots.iter().zip(&kernel.params).any(|(slot, param)| {
            matches!(slot, SlotSource::Argument { field: SlotField::Value, .. })
                && kernel.locals[*param].ty.scalar().is_some_and(Scalar::is_signed_int)
        })
    });
    module.gains.nonneg = false;
    let plain = Ranges::of(module);
    if !takes_integers {
        return plain;
    }
    let before = proofs(module, &plain);
    let assumed = std::mem::replace(&mut module.assumptions.nonneg, true);
    module.gains.nonneg = true;
    let more = Ranges::of(module);
    module.assumptions.nonneg = assumed;
    module.gains.nonneg = proofs(module, &more) > before;
    if module.assumed().nonneg { more } else { plain }
}

/// The number of indices, divisions and remainders that the ranges improve.
fn proofs(module: &Module, ranges: &[Ranges]) -> usize {
    let mut found = 0;
    for ((_, function), ranges) in module.functions.iter().zip(ranges) {
        for_each_expr_of_block(function, &function.body, &mut |id| {
            let is_nonneg = |id: ExprId| ranges.expr(function, id).is_nonneg();
            found += usize::from(match function.class(id) {
                Class::Arith(Arith::Wrap { index, .. }) => is_nonneg(index),
                Class::Arith(Arith::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, a, b)) => {
                    is_nonneg(a) && is_nonneg(b)
                }
                Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
            });
        });
    }
    found
}

/// Whether an integer is known to be non-negative at every occurrence, after the pass.
pub(super) fn is_nonneg(function: &Function, id: ExprId) -> bool {
    anywhere(function, id).is_nonneg()
}

/// The range of an expression, by the marks of locals alone.
fn anywhere(function: &Function, id: ExprId) -> Interval {
    let expr = &function.exprs[id];
    let all = Interval::of_type(expr.ty);
    let of = |id: ExprId| anywhere(function, id);
    let whole = expr.ty.scalar().is_some_and(Scalar::is_int);
    match expr.kind.class() {
        Class::Leaf(Leaf::Const(Const::Int(value))) => Interval::of(value),
        Class::Leaf(Leaf::Local(local)) if function.locals[local].nonneg => all.meet(Interval::new(0, i128::MAX)),
        // Special registers are counts and indices, which start at 0.
        Class::Leaf(Leaf::Special(_)) => all.meet(Interval::new(0, i128::MAX)),
        Class::Arith(Arith::Unary(op, a)) if whole => Interval::unary(op, of(a), expr.ty),
        Class::Arith(Arith::Binary(op, a, b)) if whole => Interval::binary(op, of(a), of(b), expr.ty),
        Class::Arith(Arith::Select(_, a, b)) => of(a).join(of(b)),
        Class::Arith(Arith::Convert(a)) => of(a).converted(function.exprs[a].ty, expr.ty),
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => all,
    }
}

/// Whether it is an absolute value: negative only for the type's minimum, which is out of bounds in any array.
fn is_abs(function: &Function, id: ExprId) -> bool {
    matches!(function.exprs[id].kind, ExprKind::Unary(UnaryOp::Abs, _))
}

/// Rewrites expressions by their ranges.
fn rewrite(function: &mut Function, ranges: &Ranges) {
    let mut changes: Vec<(ExprId, ExprKind)> = Vec::new();
    let mut unwrapped: Vec<(ExprId, ExprId)> = Vec::new();
    let differences = differences::wraps(function, ranges);
    for_each_expr_of_block(function, &function.body, &mut |id| {
        let is_nonneg = |id: ExprId| ranges.expr(function, id).is_nonneg();
        match function.class(id) {
            Class::Arith(Arith::Wrap { index, .. })
                if is_nonneg(index) || is_abs(function, index) || differences.contains(&id) =>
            {
                unwrapped.push((id, index));
            }
            Class::Arith(Arith::Binary(op @ (BinaryOp::FloorDiv | BinaryOp::FloorMod), a, b)) => {
                let whole = function.exprs[id].ty.scalar().is_some_and(Scalar::is_int);
                if whole && is_nonneg(a) && is_nonneg(b) {
                    let op = if op == BinaryOp::FloorDiv { BinaryOp::DivNonneg } else { BinaryOp::ModNonneg };
                    changes.push((id, ExprKind::Binary(op, a, b)));
                }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
        }
    });
    for (id, kind) in changes {
        function.exprs[id].kind = kind;
    }
    // Children first, so that the parts that move up are final. The index still has one parent: its old node is
    // dropped.
    for (wrap, index) in unwrapped.into_iter().rev() {
        function.exprs[wrap] = function.exprs[index].clone();
    }
}
