//! Versions loops that may start below zero: for a negative start value, and for an induction variable that is never
//! negative.
//!
//! ```text
//! $c = load $starts.data[$i]             $c = load $starts.data[$i]
//! loop {                                 if $c >= 0 { loop { …, as it was } } else { loop { …, as it was } }
//!     if not $c < $stop { break }
//!     … $x.data[wrap($c, $x.shape0)]
//! } step {
//!     $c = $c + 1
//! }
//! ```
//!
//! A start value that is loaded from memory may be negative, so each index that depends on the induction variable needs
//! a wrap in each iteration. Examples are rows of sparse matrices and neighbors in graphs. In the first version,
//! `prove_nonneg` can remove the wraps.

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use crate::{
    analysis::Ranges,
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Expr, ExprKind, Function, LocalId, Module, Stmt, StmtKind, SyncScope,
        Type, for_each_expr, for_each_expr_of_block, for_each_stmt,
    },
};

/// The maximum number of expressions of a loop that is versioned.
const LARGEST: usize = 200;

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    // Nearly all loops start at a constant, so the costly tests run only for modules with other loops.
    let has_loops = module.functions.iter().any(|(_, function)| {
        let constant = constants(function);
        let mut found = false;
        for_each_stmt(&function.body, &mut |stmt| found |= counter(function, &constant, stmt).is_some());
        found
    });
    if !has_loops {
        return;
    }
    let ranges = Ranges::of(module);
    for ((_, function), ranges) in module.functions.iter_mut().zip(&ranges) {
        let constant = constants(function);
        let mut body = std::mem::take(&mut function.body);
        split(function, ranges, &constant, &mut body);
        function.body = body;
    }
}

/// The locals that are assigned a constant anywhere. Loops that start at these are not versioned.
fn constants(function: &Function) -> BTreeSet<LocalId> {
    let mut found = BTreeSet::new();
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Assign(local, value) = stmt.kind
            && function.int(value).is_some()
        {
            found.insert(local);
        }
    });
    found
}

fn split(function: &mut Function, ranges: &Ranges, constant: &BTreeSet<LocalId>, block: &mut Block) {
    for stmt in block {
        if let Some((counter, scalar)) = counter(function, constant, stmt)
            && ranges.local(function, counter).low <= i128::from(i32::MIN)
        {
            *stmt = in_two(function, stmt, counter, scalar);
            continue;
        }
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            split(function, ranges, constant, inner);
        }
    }
}

/// The induction variable, with its type, of a loop that is profitable to version: the step is a positive constant, the
/// start value is not a constant, indices depend on the variable, and the body is small and has no loop, call or
/// synchronization.
fn counter(function: &Function, constant: &BTreeSet<LocalId>, stmt: &Stmt) -> Option<(LocalId, Scalar)> {
    let StmtKind::Loop { body, step } = &stmt.kind else { return None };
    let [Stmt { kind: StmtKind::Assign(counter, next), .. }] = step.as_slice() else { return None };
    let scalar = function.locals[*counter].ty.scalar().filter(|_| !constant.contains(counter))?;
    let ExprKind::Binary(BinaryOp::Add, now, by) = function.exprs[*next].kind else { return None };
    let counts_up = function.local(now) == Some(*counter) && function.int(by).is_some_and(|by| by > 0);
    let (mut size, mut is_fine) = (0, true);
    // The counter, and locals that are computed from it.
    let mut copies = vec![*counter];
    for_each_stmt(body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign(local, value) => {
            is_fine &= local != counter;
            for_each_expr(function, *value, &mut |part| {
                if function.local(part).is_some_and(|of| copies.contains(&of)) {
                    copies.push(*local);
                }
            });
        }
        StmtKind::Op { op, results, .. } => {
            let row = op.row();
            is_fine &= row.together == SyncScope::None && !row.orders && !results.contains(counter);
        }
        StmtKind::Loop { .. } | StmtKind::Call { .. } => is_fine = false,
        StmtKind::If { .. } | StmtKind::Store { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {}
    });
    let mut has_wraps = false;
    for_each_expr_of_block(function, body, &mut |id| {
        size += 1;
        if let Class::Arith(Arith::Wrap { index, .. }) = function.class(id) {
            for_each_expr(function, index, &mut |part| {
                has_wraps |= function.local(part).is_some_and(|local| copies.contains(&local));
            });
        }
    });
    (counts_up && is_fine && has_wraps && size <= LARGEST).then_some((*counter, scalar))
}

/// Both versions of the loop, and the test that selects one.
fn in_two(function: &mut Function, stmt: &Stmt, counter: LocalId, scalar: Scalar) -> Stmt {
    let span = stmt.span;
    let now = function.exprs.push(Expr { kind: ExprKind::Local(counter), ty: Type::Scalar(scalar), span });
    let zero = function.exprs.push(Expr::int(scalar, 0, span));
    let cond = function.exprs.push(Expr { kind: ExprKind::Compare(CompareOp::Ge, now, zero), ty: Type::BOOL, span });
    let copy = function.copy_stmt(stmt);
    Stmt { kind: StmtKind::If { cond, then: vec![copy], otherwise: vec![stmt.clone()] }, span }
}
