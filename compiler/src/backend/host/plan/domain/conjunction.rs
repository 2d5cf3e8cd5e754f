//! Guard normalization: converts a conjunction that returns early to a single bound.
//!
//! ```text
//! if x >= m and y >= n: return          if x >= (m if y >= n else FAR): return
//! ```
//!
//! The threads that continue after the original test are not an interval along `x` combined with one condition on the
//! row. After the rewrite they are: each row has one bound. `plan_ir/guards` makes it a bound of every later segment,
//! and no mask is needed.
//!
//! Legal if the conjunction consists of one one-sided 64-bit comparison whose value grows by one from thread to thread
//! and does not wrap, and of at least one condition that is uniform along the row.

use crate::{
    analysis::Rematerializable,
    backend::host::plan::{
        analysis::strides::Forms,
        plan_ir::{Range, SplitCondition},
    },
    ir::{Block, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type, UnaryOp},
    source::Span,
};

/// Greater than every value that is compared with a bound; see [`Forms::wraps`].
const FAR: i128 = 1 << 62;

/// Rewrites the conditions of early returns as bounds, where possible.
pub(crate) fn bound(function: &mut Function, body: &mut Block) {
    let fixed = Rematerializable::of(function, body);
    for stmt in body {
        let StmtKind::If { cond, then, otherwise } = &mut stmt.kind else { continue };
        let returns = matches!(then.as_slice(), [Stmt { kind: StmtKind::Return(_), .. }]) && otherwise.is_empty();
        if returns && let Some((range, rows)) = corner(function, &fixed, *cond) {
            *cond = one_bound(function, range, &rows, stmt.span);
        }
    }
}

/// Splits a condition into its range along `x` and its conditions on the row. `None` unless it has exactly one range
/// and at least one condition on the row.
fn corner(function: &Function, fixed: &Rematerializable, cond: ExprId) -> Option<(Range, Vec<(ExprId, bool)>)> {
    let param = |local: LocalId| function.params.contains(&local);
    let forms = Forms { function, fixed, shared: &param, sole: &|_| None, axis: 0 };
    let mut parts = SplitCondition::default();
    forms.split(cond, false, &mut parts);
    let &[range] = parts.guard.ranges.as_slice() else { return None };
    let plain = range.times == 1 && range.plus == 0 && legal!("conjunction.no-wrap", !range.wraps);
    let long = [range.value, range.bound].iter().all(|&id| function.exprs[id].ty == Type::I64);
    let one_sided = match range.op {
        CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => true,
        CompareOp::Eq | CompareOp::Ne => false,
    };
    let whole = legal!("conjunction.no-residual", parts.residual.is_empty()) && !parts.guard.rows.is_empty();
    // A test of one thread leaves no interval.
    (whole && plain && legal!("conjunction.wide", long) && one_sided).then_some((range, parts.guard.rows))
}

/// The comparison of the range's value with its bound if all conditions on the row hold, and with a bound that no value
/// reaches otherwise.
fn one_bound(function: &mut Function, range: Range, rows: &[(ExprId, bool)], span: Span) -> ExprId {
    let mut push = |kind, ty| function.exprs.push(Expr { kind, ty, span });
    let far = match range.op {
        CompareOp::Lt | CompareOp::Le => -FAR,
        CompareOp::Gt | CompareOp::Ge | CompareOp::Eq | CompareOp::Ne => FAR,
    };
    let mut bound = range.bound;
    let far = push(ExprKind::Const(Const::Int(far)), Type::I64);
    for &(row, negated) in rows {
        let row = if negated { push(ExprKind::Unary(UnaryOp::Not, row), Type::BOOL) } else { row };
        bound = push(ExprKind::Select(row, bound, far), Type::I64);
    }
    push(ExprKind::Compare(range.op, range.value, bound), Type::BOOL)
}
