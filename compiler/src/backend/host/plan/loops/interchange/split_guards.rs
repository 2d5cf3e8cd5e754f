//! Guard splitting: rewrites conditions around loops so that each is either a guard or uniform. A loop below other
//! conditions is not interchanged with the thread loop.
//!
//! ```text
//! if i < n and q < m: loop                if q < m:
//!                                             if i < n: loop
//!
//! if i < n: loop                          if i < n: loop
//! else: loop                              if not i < n: loop
//! ```
//!
//! Legal because conditions have no effects and do not fault, and because the value of a guard does not change.

use crate::{
    analysis::Rematerializable,
    backend::host::plan::analysis::{
        candidates::{is_launch_uniform, optimistic_uniformity},
        divergence::Uniformity,
        guarded,
        structure::conjuncts,
    },
    ir::{BinaryOp, Block, Expr, ExprId, ExprKind, Function, Stmt, StmtKind, Type, UnaryOp, for_each_stmt},
};

/// Nests `if uniform and guard: …` as `if uniform: if guard: …` where it contains a loop and the uniform part is not
/// part of a guard, such as a comparison of a quotient. Legal because conditions have no effects and do not fault.
pub(crate) fn nest_guards(function: &mut Function, body: &mut Block) {
    let fixed = Rematerializable::of(function, body);
    let uniformity = optimistic_uniformity(function, body);
    nest_in_list(function, (&fixed, &uniformity), body);
}

fn nest_in_list(function: &mut Function, (fixed, uniformity): (&Rematerializable, &Uniformity), list: &mut Block) {
    for stmt in list {
        let span = stmt.span;
        match &mut stmt.kind {
            StmtKind::If { cond, then, otherwise } => {
                nest_in_list(function, (fixed, uniformity), then);
                nest_in_list(function, (fixed, uniformity), otherwise);
                if !otherwise.is_empty() || !has_loops(then) || guarded::is_guard_of_iteration(function, fixed, *cond) {
                    continue;
                }
                let mut parts = Vec::new();
                conjuncts(function, *cond, &mut parts);
                let (same, others): (Vec<_>, Vec<_>) =
                    parts.into_iter().partition(|&part| !uniformity.varies(function, part));
                let mut all = |parts: Vec<ExprId>| {
                    let and = |a, b| {
                        let kind = ExprKind::Binary(BinaryOp::And, a, b);
                        function.exprs.push(Expr { kind, ty: Type::BOOL, span })
                    };
                    parts.into_iter().reduce(and)
                };
                let (Some(same), Some(guard)) = (all(same), all(others)) else { continue };
                if guarded::is_guard_of_iteration(function, fixed, guard) {
                    let kind = StmtKind::If { cond: guard, then: std::mem::take(then), otherwise: Block::new() };
                    (*cond, *then) = (same, vec![Stmt { kind, span }]);
                }
            }
            StmtKind::Loop { body, .. } => nest_in_list(function, (fixed, uniformity), body),
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
    }
}

/// Whether statements contain a loop.
fn has_loops(list: &[Stmt]) -> bool {
    let mut loops = false;
    for_each_stmt(list, &mut |stmt| loops |= matches!(stmt.kind, StmtKind::Loop { .. }));
    loops
}

/// Splits `if a: … else: …` into `if a: …` and `if not a: …` where an arm contains a loop and the condition is
/// a guard, so that each arm has a guard of its own. Legal because the value of a guard does not change.
pub(crate) fn split_arms(function: &mut Function, body: &mut Block) {
    let fixed = Rematerializable::of(function, body);
    split_list(function, &fixed, body);
}

fn split_list(function: &mut Function, fixed: &Rematerializable, list: &mut Block) {
    let mut done = Block::new();
    for Stmt { mut kind, span } in list.drain(..) {
        let StmtKind::If { cond, then, otherwise } = &mut kind else {
            done.push(Stmt { kind, span });
            continue;
        };
        let is_guard = legal!("split_guards.fixed-guard", guarded::is_guard(function, fixed, *cond));
        if is_guard || is_launch_uniform(function, *cond) {
            split_list(function, fixed, then);
            split_list(function, fixed, otherwise);
        }
        if is_guard && !otherwise.is_empty() && (has_loops(then) || has_loops(otherwise)) {
            let second = std::mem::take(otherwise);
            let asked = function.copy_expr(*cond);
            let kind_of_not = ExprKind::Unary(UnaryOp::Not, asked);
            let not = function.exprs.push(Expr { kind: kind_of_not, ty: Type::BOOL, span });
            done.push(Stmt { kind, span });
            done.push(Stmt { kind: StmtKind::If { cond: not, then: second, otherwise: Block::new() }, span });
        } else {
            done.push(Stmt { kind, span });
        }
    }
    *list = done;
}
