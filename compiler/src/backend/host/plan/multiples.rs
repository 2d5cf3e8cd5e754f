//! Multiples of a thread's number: `index = 2 * stride * tid`, `index = (tid + 1) * 2 * stride - 1`, as trees have them whose
//! threads at work are next to each other while their elements are not.
//!
//! `if index < n` around all that is left of a segment holds for the threads up to one of them, which is a quotient: a bound of
//! the row in place of a question to each thread. What the index grows by need not be a constant; a row asks whether it is
//! positive, and so small that nothing wraps. Else the body itself runs.

use std::collections::HashMap;

use super::{
    every::{conjuncts, without},
    forms::{Form, Forms, mirrored},
    guards::Peeler,
    shape::{Guard, Multiples, Range, Segment},
};
use crate::ir::{
    Arith, BinaryOp, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type, Unit,
    for_each_expr, for_each_stmt,
};

/// A value that is `first + by * x` for the `x`-th thread of a row, but for multiples of 2^64.
struct Affine {
    /// Of the row's first thread.
    first: ExprId,
    /// The same for the row; nothing if the value is.
    by: Option<ExprId>,
}

/// How deep an expression is looked into.
const DEPTH: u32 = 12;

/// Gives a segment the part that runs for the threads up to one of them, if its index grows by more than one from thread to thread.
pub(super) fn find(peeler: &mut Peeler<'_>, segment: &mut Segment) {
    let Some((last, before)) = segment.body.split_last() else { return };
    let StmtKind::If { cond, then: _, otherwise } = &last.kind else { return };
    if !otherwise.is_empty() || !before.iter().all(|stmt| peeler.may_skip(stmt)) {
        return;
    }
    let mut parts = Vec::new();
    conjuncts(peeler.function, *cond, &mut parts);
    let named = named(before);
    let found = parts.iter().enumerate().find_map(|(at, &part)| {
        let ExprKind::Compare(op, a, b) = peeler.function.exprs[part].kind else { return None };
        let is_order = !matches!(op, CompareOp::Eq | CompareOp::Ne);
        let wide = peeler.function.exprs[a].ty == Type::I64;
        let (value, op, bound) = match (form(peeler, a), form(peeler, b)) {
            (Form::Other, Form::Same) => (a, op, b),
            (Form::Same, Form::Other) => (b, mirrored(op), a),
            _ => return None,
        };
        let affine = if is_order && wide { affine(peeler, &named, value, DEPTH)? } else { return None };
        Some((at, affine.first, affine.by?, op, bound))
    });
    let Some((at, first, by, op, bound)) = found else { return };
    parts.remove(at);
    let Some(part) = without(peeler, segment, parts) else { return };
    let function = &mut *peeler.function;
    let (bound, again) = (function.copy_expr(bound), function.copy_expr(first));
    let range = |value, op, bound| Range { value, op, bound, times: 1, plus: 0, wraps: false };
    let mut of = Guard { ranges: vec![range(first, op, bound), range(again, CompareOp::Eq, by)], ..Guard::default() };
    peeler.complete(&mut of);
    segment.multiples = Some(Multiples { of, part });
}

/// Whether the threads of a segment store at distances that are the same from one to the next, but not known: LLVM would make
/// vectors of single elements.
pub(super) fn scatters(peeler: &mut Peeler<'_>, body: &[Stmt]) -> bool {
    let mut named = HashMap::new();
    let mut pointers = Vec::new();
    let mut simple = true;
    for_each_stmt(body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign(local, value) => {
            let value = if named.contains_key(local) { None } else { Some(*value) };
            named.insert(*local, value);
        }
        StmtKind::Store { pointer, .. } => pointers.push(*pointer),
        StmtKind::If { .. } => {}
        StmtKind::Loop { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => simple = false,
    });
    let before = peeler.function.exprs.len();
    let apart = |peeler: &mut Peeler<'_>, pointer: ExprId| {
        let Class::Address { base, mut by, unit: Unit::Elements } = peeler.function.class(pointer) else {
            return false;
        };
        if let Class::Arith(Arith::Wrap { index, .. }) = peeler.function.class(by) {
            by = index;
        }
        let distance = affine(peeler, &named, by, DEPTH).and_then(|value| value.by);
        form(peeler, base) == Form::Same && distance.is_some_and(|by| !is_constant(peeler.function, by))
    };
    let scatters = simple && !pointers.is_empty() && pointers.iter().all(|&pointer| apart(peeler, pointer));
    peeler.function.exprs.truncate(before);
    scatters
}

/// Whether an expression is made of constants.
fn is_constant(function: &Function, root: ExprId) -> bool {
    let mut constant = true;
    for_each_expr(function, root, &mut |id| {
        constant &= match function.class(id) {
            Class::Leaf(_) => function.int(id).is_some(),
            Class::Arith(_) => true,
            Class::Address { .. } | Class::Load(_) => false,
        };
    });
    constant
}

/// What locals are, each of which is assigned once by some statements.
fn named(before: &[Stmt]) -> HashMap<LocalId, Option<ExprId>> {
    let mut named = HashMap::new();
    for stmt in before {
        if let StmtKind::Assign(local, value) = stmt.kind {
            let value = if named.contains_key(&local) { None } else { Some(value) };
            named.insert(local, value);
        }
    }
    named
}

fn form(peeler: &Peeler<'_>, id: ExprId) -> Form {
    let forms = Forms {
        function: peeler.function,
        fixed: peeler.fixed,
        shared: &|local| !peeler.uniformity.local_varies(local),
        sole: &|_| None,
        axis: 0,
    };
    if forms.form(id) == Form::Step && forms.wraps(id) { Form::Other } else { forms.form(id) }
}

/// A value as a multiple of the thread's number, and something that all threads of a row share, in expressions of their own.
fn affine(
    peeler: &mut Peeler<'_>,
    named: &HashMap<LocalId, Option<ExprId>>,
    root: ExprId,
    depth: u32,
) -> Option<Affine> {
    let depth = depth.checked_sub(1)?;
    let Expr { ty, span, .. } = peeler.function.exprs[root];
    if ty != Type::I64 {
        return None;
    }
    match form(peeler, root) {
        Form::Same => return Some(Affine { first: peeler.function.copy_expr(root), by: None }),
        Form::Step => {
            let first = peeler.function.copy_expr(root);
            let one = peeler.function.exprs.push(Expr { kind: ExprKind::Const(Const::Int(1)), ty, span });
            return Some(Affine { first, by: Some(one) });
        }
        Form::Other => {}
    }
    if let Some(local) = peeler.function.local(root) {
        let value = named.get(&local).copied().unwrap_or_else(|| peeler.fixed.value(local));
        return affine(peeler, named, value?, depth);
    }
    let Class::Arith(Arith::Binary(op, a, b)) = peeler.function.class(root) else { return None };
    let op = match op {
        BinaryOp::Add | BinaryOp::AddExact => BinaryOp::Add,
        BinaryOp::Sub | BinaryOp::SubExact => BinaryOp::Sub,
        BinaryOp::Mul | BinaryOp::MulExact => BinaryOp::Mul,
        BinaryOp::Shl => BinaryOp::Shl,
        BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::DivNonneg
        | BinaryOp::ModNonneg
        | BinaryOp::Pow
        | BinaryOp::Shr
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Min
        | BinaryOp::Max => return None,
    };
    let (a, b) = (affine(peeler, named, a, depth)?, affine(peeler, named, b, depth)?);
    let function = &mut *peeler.function;
    // What wraps is asked for where the row begins; that a part of it does not, nobody has said of these.
    let mut binary = |op, a, b| function.exprs.push(Expr { kind: ExprKind::Binary(op, a, b), ty, span });
    let first = binary(op, a.first, b.first);
    let by = match (op, a.by, b.by) {
        (_, None, None) => None,
        (BinaryOp::Add | BinaryOp::Sub, Some(by), None) | (BinaryOp::Add, None, Some(by)) => Some(by),
        (BinaryOp::Add | BinaryOp::Sub, Some(a), Some(b)) => Some(binary(op, a, b)),
        (BinaryOp::Mul | BinaryOp::Shl, Some(by), None) => {
            let times = function.copy_expr(b.first);
            Some(function.exprs.push(Expr { kind: ExprKind::Binary(op, by, times), ty, span }))
        }
        (BinaryOp::Mul, None, Some(by)) => {
            let times = function.copy_expr(a.first);
            Some(function.exprs.push(Expr { kind: ExprKind::Binary(op, by, times), ty, span }))
        }
        _ => return None,
    };
    Some(Affine { first, by })
}
