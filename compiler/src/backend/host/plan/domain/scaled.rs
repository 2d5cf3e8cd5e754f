//! Guards and indices that grow by more than one from thread to thread: `index = 2 * stride * tid`,
//! `index = (tid + 1) * 2 * stride - 1`. Tree reductions and scans have them: the active threads are consecutive, their
//! elements are not.
//!
//! ```text
//! for x in 0..row:                          for x in 0..min(row, ceil((n - first) / by)):
//!     index = first + by * x                    a[first + by * x] = …
//!     if index < n: a[index] = …
//! ```
//!
//! This pass does two things with such an affine index:
//!
//! - If `if index < n` contains all remaining statements of a segment, the condition becomes a bound of the thread
//!   loop, which takes one division per row.
//! - If the index is not negative for the first and the last thread, it is not negative for any thread between them.
//!   The copy of the body then has no tests for negative indices, which count from the end of an array.
//!
//! `by` need not be a constant. The emitted code tests for each row that `by` is positive (where it gives a bound), and
//! that `first`, `by` and `n` are so small that nothing wraps. If a test fails, the row runs the original body.

use std::collections::HashMap;

use crate::{
    backend::host::plan::{
        analysis::strides::{Form, mirrored},
        plan_ir::{
            Guard, Piece, Range, Segment, Split, SplitBy,
            guards::{LastBranch, Peeler},
        },
    },
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Expr, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type,
        Unit, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// A value that equals `first + by * x` modulo 2^64 for the thread `x` of a row.
struct Affine {
    /// The value of the row's first thread.
    first: ExprId,
    /// The stride, uniform along the row; `None` if the value itself is uniform.
    by: Option<ExprId>,
}

/// The largest constant that [`constant`] computes.
const MAX_CONSTANT: i128 = 1 << 20;

/// Most ranges of a segment; the emitted code tests each of them for every row.
const MAX_RANGES: usize = 12;

/// The deepest expression that is analyzed.
const MAX_DEPTH: u32 = 12;

/// Gives a segment its part with a scaled bound. If there is no such bound, gives it a part without tests for negative
/// indices, provided that an index grows by a number that is not a constant.
pub(crate) fn find(peeler: &mut Peeler<'_>, segment: &mut Segment) {
    let before = peeler.function.exprs.len();
    segment.split = bounded(peeler, segment).or_else(|| {
        let body: Block = peeler.function.copy_stmts(&segment.body);
        let mut ranges = Vec::new();
        let apart = not_negative(peeler, &body, &mut ranges);
        apart.then(|| split(ranges, 0, Piece { guard: Guard::default(), body }))
    });
    match &mut segment.split {
        Some(split) => peeler.complete(&mut split.of),
        None => peeler.function.exprs.truncate(before),
    }
}

/// The part of a segment whose guard is a scaled bound.
fn bounded(peeler: &mut Peeler<'_>, segment: &Segment) -> Option<Split> {
    let LastBranch { before, parts, .. } = peeler.last_branch(segment)?;
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
    let piece = peeler.without(segment, left)?;
    not_negative(peeler, &piece.body, &mut ranges);
    Some(split(ranges, bounds, piece))
}

fn split(ranges: Vec<Range>, bounds: usize, piece: Piece) -> Split {
    let of = Guard { ranges, ..Guard::default() };
    Split { by: SplitBy::Scaled { bounds }, of, pieces: vec![piece] }
}

/// Two ranges for a comparison of a value that grows from thread to thread: the first thread's value with the bound,
/// and the stride. If the stride is a negative constant, both sides and the stride are negated.
fn bound(peeler: &mut Peeler<'_>, named: &HashMap<LocalId, Option<ExprId>>, part: ExprId) -> Option<[Range; 2]> {
    let ExprKind::Compare(op, a, b) = peeler.function.exprs[part].kind else { return None };
    if matches!(op, CompareOp::Eq | CompareOp::Ne) || peeler.function.exprs[a].ty != Type::I64 {
        return None;
    }
    // A local in `named` counts as varying here; [`affine`] replaces it by its value.
    let is_same = |id: ExprId| form(peeler, id) == Form::Same;
    let (value, op, bound) = match (is_same(a), is_same(b)) {
        (false, true) => (a, op, b),
        (true, false) => (b, mirrored(op), a),
        (true, true) | (false, false) => return None,
    };
    let Affine { first, by: Some(by) } = affine(peeler, named, value, MAX_DEPTH)? else { return None };
    let bound = peeler.function.copy_expr(bound);
    let (first, op, bound, by) = if constant(peeler.function, by).is_some_and(|by| by < 0) {
        let mut minus = |id: ExprId| {
            let Expr { ty, span, .. } = peeler.function.exprs[id];
            let mut editor = peeler.function.edit(span);
            let zero = editor.int(0, ty);
            editor.binary(BinaryOp::Sub, zero, id)
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

/// Removes the negative-index tests of indices that grow from thread to thread, and adds the ranges that guarantee that
/// these indices are not negative. Returns `true` if one of them has a stride that is not a constant.
fn not_negative(peeler: &mut Peeler<'_>, body: &[Stmt], ranges: &mut Vec<Range>) -> bool {
    let (mut indices, mut simple) = (Vec::new(), true);
    for_each_stmt(body, &mut |stmt| {
        let is_plain = matches!(stmt.kind, StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::If { .. });
        // The tests of a loop or an operation cost little beside its statements.
        simple &= is_plain;
        for_each_expr_of_stmt(peeler.function, &stmt.kind, &mut |id| {
            if let ExprKind::Wrap { index, .. } = peeler.function.exprs[id].kind {
                indices.push((id, index));
            }
        });
    });
    let named = named_anywhere(body);
    let mut apart = false;
    for (wrap, index) in indices {
        if !simple || ranges.len() >= MAX_RANGES {
            break;
        }
        let Some(Affine { first, by: Some(by) }) = affine(peeler, &named, index, MAX_DEPTH) else { continue };
        let Expr { ty, span, .. } = peeler.function.exprs[index];
        let zero = peeler.function.edit(span).int(0, ty);
        let again = peeler.function.copy_expr(first);
        apart |= constant(peeler.function, by).is_none();
        ranges.extend([range(first, CompareOp::Ge, zero), range(again, CompareOp::Eq, by)]);
        let kind = peeler.function.exprs[index].kind.clone();
        peeler.function.exprs[wrap].kind = kind;
    }
    apart
}

/// `true` if all stores of a segment have strides that are uniform but not constant. LLVM would vectorize such a loop
/// with one scalar store for each lane.
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
        let distance = affine(peeler, &named, by, MAX_DEPTH).and_then(|value| value.by);
        form(peeler, base) == Form::Same && distance.is_some_and(|by| constant(peeler.function, by).is_none())
    };
    let scatters = simple && !pointers.is_empty() && pointers.iter().all(|&pointer| apart(peeler, pointer));
    peeler.function.exprs.truncate(before);
    scatters
}

/// The value of an expression of small constants.
fn constant(function: &Function, root: ExprId) -> Option<i128> {
    let ExprKind::Binary(op, a, b) = function.exprs[root].kind else { return function.int(root) };
    let (a, b) = (constant(function, a)?, constant(function, b)?);
    let value = if op == BinaryOp::Add {
        a + b
    } else if op == BinaryOp::Sub {
        a - b
    } else if op == BinaryOp::Mul {
        a * b
    } else if op == BinaryOp::Shl && (0..MAX_CONSTANT.ilog2().into()).contains(&b) {
        a << b
    } else {
        return None;
    };
    (value.abs() <= MAX_CONSTANT).then_some(value)
}

/// The values of the locals that some statements assign: `None` for a local that is assigned more than once.
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

/// As [`named`], but for assignments at any depth in statements that run in order.
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

/// How a value changes from thread to thread. A value with unit stride that may wrap counts as [`Form::Other`]: the test
/// before a row would fail if it does.
fn form(peeler: &Peeler<'_>, id: ExprId) -> Form {
    peeler.with_forms(|forms| match forms.form(id) {
        Form::Step if forms.wraps(id) => Form::Other,
        form @ (Form::Same | Form::Step | Form::Other) => form,
    })
}

/// The affine form of a value, in expressions of its own.
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
            let one = peeler.function.edit(span).int(1, ty);
            return Some(Affine { first, by: Some(one) });
        }
        Form::Other => {}
    }
    if let Some(local) = peeler.function.local(root) {
        // A local that is live across a barrier may still have the value of an earlier segment.
        if !legal!("scaled.own-value", !peeler.live_across.contains(&local)) {
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
    let mut editor = peeler.function.edit(span);
    // The program promises for its own operations that they do not wrap, but not for these expressions. The test before
    // the row excludes wrapping.
    let first = editor.binary(op, a.first, b.first);
    let by = match (op, a.by, b.by) {
        (_, None, None) => None,
        (BinaryOp::Add | BinaryOp::Sub, Some(by), None) | (BinaryOp::Add, None, Some(by)) => Some(by),
        (BinaryOp::Add | BinaryOp::Sub, Some(a), Some(b)) => Some(editor.binary(op, a, b)),
        (BinaryOp::Sub, None, Some(by)) => {
            let zero = editor.int(0, ty);
            Some(editor.binary(op, zero, by))
        }
        (BinaryOp::Mul | BinaryOp::Shl, Some(by), None) => {
            let times = editor.function.copy_expr(b.first);
            Some(editor.binary(op, by, times))
        }
        (BinaryOp::Mul, None, Some(by)) => {
            let times = editor.function.copy_expr(a.first);
            Some(editor.binary(op, by, times))
        }
        _ => return None,
    };
    Some(Affine { first, by })
}
