//! Multiples of a thread's number: `index = 2 * stride * tid`, `index = (tid + 1) * 2 * stride - 1`, as trees have them whose
//! threads at work are next to each other while their elements are not.
//!
//! `if index < n` around all that is left of a segment holds for the threads up to one of them, which is a quotient: a bound of
//! the row in place of a question to each thread. What the index grows by need not be a constant; a row asks whether it is
//! positive, and so small that nothing wraps. Else the body itself runs. An index that is not negative for the first thread is not for
//! any then, so that nobody asks whether it counts from the end.

use std::collections::HashMap;

use crate::{
    backend::host::plan::{
        analysis::strides::{Form, Forms, mirrored},
        domain::{
            guards::Peeler,
            residue::{conjuncts, without},
        },
        plan_ir::{Guard, Interior, Multiples, Range, Segment},
    },
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind,
        Type, Unit, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// A value that is `first + by * x` for the `x`-th thread of a row, but for multiples of 2^64.
struct Affine {
    /// Of the row's first thread.
    first: ExprId,
    /// The same for the row; nothing if the value is.
    by: Option<ExprId>,
}

/// Constants that are no larger are worked out.
const SMALL: i128 = 1 << 20;

/// Ranges of a segment at most; each is asked for at every row.
const MOST_RANGES: usize = 12;

/// How deep an expression is looked into.
const DEPTH: u32 = 12;

/// Gives a segment the part that runs for the threads up to one of them, or without asking whether indices are negative, if these
/// grow by more than one from thread to thread.
pub(crate) fn find(peeler: &mut Peeler<'_>, segment: &mut Segment) {
    let before = peeler.function.exprs.len();
    segment.multiples = bounded(peeler, segment).or_else(|| {
        let body: Block = segment.body.iter().map(|stmt| peeler.function.copy_stmt(stmt)).collect();
        let mut ranges = Vec::new();
        let part = Interior { guard: Guard::default(), body };
        let apart = not_negative(peeler, &part.body, &mut ranges);
        apart.then(|| Multiples { of: Guard { ranges, ..Guard::default() }, bounds: 0, part })
    });
    match &mut segment.multiples {
        Some(multiples) => peeler.complete(&mut multiples.of),
        None => peeler.function.exprs.truncate(before),
    }
}

/// The part of a segment that runs for the threads up to one of them.
fn bounded(peeler: &mut Peeler<'_>, segment: &Segment) -> Option<Multiples> {
    let (last, before) = segment.body.split_last()?;
    let StmtKind::If { cond, then: _, otherwise } = &last.kind else { return None };
    if !otherwise.is_empty() || !before.iter().all(|stmt| peeler.may_skip(stmt)) {
        return None;
    }
    let mut parts = Vec::new();
    conjuncts(peeler.function, *cond, &mut parts);
    let named = named(before);
    let mut ranges = Vec::new();
    let mut left = Vec::new();
    for part in parts {
        match bound(peeler, &named, part) {
            Some(pair) => ranges.extend(pair),
            None => left.push(part),
        }
    }
    let bounds = ranges.len() / 2;
    if bounds == 0 {
        return None;
    }
    let part = without(peeler, segment, left)?;
    not_negative(peeler, &part.body, &mut ranges);
    Some(Multiples { of: Guard { ranges, ..Guard::default() }, bounds, part })
}

/// A comparison as two ranges of a value that grows from thread to thread: what it is compared with, and by how much it grows. One that
/// falls by a constant grows with its sign changed.
fn bound(peeler: &mut Peeler<'_>, named: &HashMap<LocalId, Option<ExprId>>, part: ExprId) -> Option<[Range; 2]> {
    let ExprKind::Compare(op, a, b) = peeler.function.exprs[part].kind else { return None };
    if matches!(op, CompareOp::Eq | CompareOp::Ne) || peeler.function.exprs[a].ty != Type::I64 {
        return None;
    }
    // A name is short for what is not yet known of it.
    let is_same = |id: ExprId| form(peeler, id) == Form::Same;
    let (value, op, bound) = match (is_same(a), is_same(b)) {
        (false, true) => (a, op, b),
        (true, false) => (b, mirrored(op), a),
        (true, true) | (false, false) => return None,
    };
    let Affine { first, by: Some(by) } = affine(peeler, named, value, DEPTH)? else { return None };
    let bound = peeler.function.copy_expr(bound);
    let (first, op, bound, by) = if constant(peeler.function, by).is_some_and(|by| by < 0) {
        let mut minus = |id: ExprId| {
            let Expr { ty, span, .. } = peeler.function.exprs[id];
            let zero = peeler.function.exprs.push(Expr { kind: ExprKind::Const(Const::Int(0)), ty, span });
            peeler.function.exprs.push(Expr { kind: ExprKind::Binary(BinaryOp::Sub, zero, id), ty, span })
        };
        (minus(first), mirrored(op), minus(bound), minus(by))
    } else {
        (first, op, bound, by)
    };
    let again = peeler.function.copy_expr(first);
    Some([range(first, op, bound), range(again, CompareOp::Eq, by)])
}

fn range(value: ExprId, op: CompareOp, bound: ExprId) -> Range {
    Range { value, op, bound, times: 1, plus: 0, wraps: false }
}

/// Takes indices of a body for not negative that grow from thread to thread, and adds the ranges that ask for it; `true` if one
/// of them grows by a number that is not known.
fn not_negative(peeler: &mut Peeler<'_>, body: &[Stmt], ranges: &mut Vec<Range>) -> bool {
    let (mut indices, mut simple) = (Vec::new(), true);
    for_each_stmt(body, &mut |stmt| {
        simple &= matches!(stmt.kind, StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::If { .. });
        for_each_expr_of_stmt(peeler.function, &stmt.kind, &mut |id| {
            if let ExprKind::Wrap { index, .. } = peeler.function.exprs[id].kind {
                indices.push((id, index));
            }
        });
    });
    let named = named_anywhere(body);
    let mut apart = false;
    for (wrap, index) in indices {
        if !simple || ranges.len() >= MOST_RANGES {
            break;
        }
        let Some(Affine { first, by: Some(by) }) = affine(peeler, &named, index, DEPTH) else { continue };
        let Expr { ty, span, .. } = peeler.function.exprs[index];
        let zero = peeler.function.exprs.push(Expr { kind: ExprKind::Const(Const::Int(0)), ty, span });
        let again = peeler.function.copy_expr(first);
        apart |= constant(peeler.function, by).is_none();
        ranges.extend([range(first, CompareOp::Ge, zero), range(again, CompareOp::Eq, by)]);
        let kind = peeler.function.exprs[index].kind.clone();
        peeler.function.exprs[wrap].kind = kind;
    }
    apart
}

/// Whether the threads of a segment store at distances that are the same from one to the next, but not known: LLVM would make
/// vectors of single elements.
pub(crate) fn scatters(peeler: &mut Peeler<'_>, body: &[Stmt]) -> bool {
    let named = named_anywhere(body);
    let mut pointers = Vec::new();
    let mut simple = true;
    for_each_stmt(body, &mut |stmt| match &stmt.kind {
        StmtKind::Store { pointer, .. } => pointers.push(*pointer),
        StmtKind::Assign(..) | StmtKind::If { .. } => {}
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
        form(peeler, base) == Form::Same && distance.is_some_and(|by| constant(peeler.function, by).is_none())
    };
    let scatters = simple && !pointers.is_empty() && pointers.iter().all(|&pointer| apart(peeler, pointer));
    peeler.function.exprs.truncate(before);
    scatters
}

/// What an expression of small constants is.
fn constant(function: &Function, root: ExprId) -> Option<i128> {
    let ExprKind::Binary(op, a, b) = function.exprs[root].kind else { return function.int(root) };
    let (a, b) = (constant(function, a)?, constant(function, b)?);
    let value = if op == BinaryOp::Add {
        a + b
    } else if op == BinaryOp::Sub {
        a - b
    } else if op == BinaryOp::Mul {
        a * b
    } else if op == BinaryOp::Shl && (0..SMALL.ilog2().into()).contains(&b) {
        a << b
    } else {
        return None;
    };
    (value.abs() <= SMALL).then_some(value)
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

/// The same of all statements in some, which are run in order.
fn named_anywhere(body: &[Stmt]) -> HashMap<LocalId, Option<ExprId>> {
    let mut named = HashMap::new();
    for_each_stmt(body, &mut |stmt| {
        if let StmtKind::Assign(local, value) = stmt.kind {
            let value = if named.contains_key(&local) { None } else { Some(value) };
            named.insert(local, value);
        }
    });
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
        // One that comes from before is not yet what is assigned here.
        if peeler.crossing.contains(&local) {
            return None;
        }
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
        (BinaryOp::Sub, None, Some(by)) => {
            let zero = function.exprs.push(Expr { kind: ExprKind::Const(Const::Int(0)), ty, span });
            Some(function.exprs.push(Expr { kind: ExprKind::Binary(op, zero, by), ty, span }))
        }
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
