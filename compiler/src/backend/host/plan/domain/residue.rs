//! Index-set splitting by residue class: `if tid % 2 == phase % 2`, `if tid % (2 * stride) == 0`, `if tid & 1`.
//!
//! ```text
//! for x in 0..row:                          for x in first..row step m:
//!     if x % m == r: body                       body
//! ```
//!
//! If such a branch contains all remaining statements of a segment, it holds for threads at equal distances. The thread
//! loop then starts at the first of them and has the modulus as its step.
//!
//! Legal if the dividend grows by one from thread to thread and does not wrap, and the modulus is uniform along the
//! row. If the modulus is not a constant, the emitted code tests for each row that it is positive; otherwise the row
//! runs the original body.
//!
//! Pays unless the modulus is a small constant and masked vectors do well: see [`is_worth_it`].

use crate::{
    analysis::same,
    backend::host::plan::{
        analysis::strides::{Form, Forms},
        plan_ir::{
            Guard, Range, Segment, Split, SplitBy,
            guards::{LastBranch, Peeler},
        },
    },
    ir::{
        Arith, BinaryOp, Class, CompareOp, Const, ExprId, Function, Leaf, Space, Stmt, StmtKind, Type, UnaryOp,
        for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Largest constant modulus for which masked vectors can be better than a strided loop. They are if the body stores to
/// fewer elements than the modulus.
const MAX_MASKED_MODULUS: i64 = 8;

/// The largest constant modulus.
const MAX_MODULUS: i128 = 1 << 20;

/// Expressions of the largest body that is duplicated.
const MAX_EXPRS: usize = 500;

/// A condition that holds for the threads of one residue class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modular {
    /// The dividend: it grows by one from thread to thread and does not wrap.
    value: ExprId,
    /// The divisor.
    pub modulus: Modulus,
    /// The required remainder, uniform along the row; 0 if `None`.
    residue: Option<ExprId>,
    /// The modulus is 2, and the condition requires the other remainder.
    other: bool,
}

/// The modulus of a residue class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modulus {
    /// A positive constant.
    Constant(i64),
    /// Uniform along the row.
    Same(ExprId),
}

/// Gives a segment that consists of such a branch its part for one residue class. Constant moduli are accepted only
/// with `constant`.
pub(crate) fn find(peeler: &mut Peeler<'_>, segment: &mut Segment, constant: bool) {
    let Some(LastBranch { mut parts, then, span, .. }) = peeler.last_branch(segment) else { return };
    let found = peeler
        .with_forms(|forms| parts.iter().enumerate().find_map(|(at, &part)| Some((at, modular(forms, part, false)?))));
    let Some((at, found)) = found else { return };
    if matches!(found.modulus, Modulus::Constant(_)) && !constant {
        return;
    }
    if !is_worth_it(peeler.function, found.modulus, then) || size(peeler.function, &segment.body) > MAX_EXPRS {
        return;
    }
    parts.remove(at);
    let Some(piece) = peeler.without(segment, parts) else { return };
    let function = &mut *peeler.function;
    let bound = match found.residue {
        Some(residue) => function.copy_expr(residue),
        None => {
            let ty = function.exprs[found.value].ty;
            function.edit(span).int(0, ty)
        }
    };
    let range = |value, bound| Range { value, op: CompareOp::Eq, bound, times: 1, plus: 0, wraps: false };
    let mut ranges = vec![range(function.copy_expr(found.value), bound)];
    let modulus = match found.modulus {
        Modulus::Constant(modulus) => Some(modulus),
        Modulus::Same(modulus) => {
            let (value, modulus) = (function.copy_expr(found.value), function.copy_expr(modulus));
            ranges.push(range(value, modulus));
            None
        }
    };
    let mut of = Guard { ranges, ..Guard::default() };
    peeler.complete(&mut of);
    let by = SplitBy::ResidueClass { modulus, other: found.other };
    segment.split = Some(Split { by, of, pieces: vec![piece] });
}

/// Matches a condition, or its negation, as a condition on a remainder.
pub(crate) fn modular(forms: &Forms<'_>, cond: ExprId, negated: bool) -> Option<Modular> {
    let function = forms.function;
    let cond = forms.known(cond);
    let (remainder, residue, other) = match function.class(cond) {
        Class::Arith(Arith::Unary(UnaryOp::Not, a)) if function.exprs[cond].ty == Type::BOOL => {
            return modular(forms, a, !negated);
        }
        Class::Arith(Arith::Convert(a)) if function.exprs[cond].ty == Type::BOOL => (a, None, !negated),
        Class::Arith(Arith::Compare(op @ (CompareOp::Eq | CompareOp::Ne), a, b)) => {
            let other = (op == CompareOp::Ne) != negated;
            if forms.form(b) == Form::Same { (a, Some(b), other) } else { (b, Some(a), other) }
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => return None,
    };
    let (value, modulus) = remainder_of(forms, forms.known(remainder))?;
    if !legal!("residue.uniform-residue", residue.is_none_or(|residue| forms.form(residue) == Form::Same)) {
        return None;
    }
    let is_bit = residue.is_none_or(|residue| is_bit(forms, residue));
    let fits = legal!("residue.one-class", !other || (modulus == Modulus::Constant(2) && is_bit));
    fits.then_some(Modular { value, modulus, residue, other })
}

/// The dividend and the modulus of a remainder whose dividend grows by one from thread to thread.
fn remainder_of(forms: &Forms<'_>, remainder: ExprId) -> Option<(ExprId, Modulus)> {
    let function = forms.function;
    let (value, modulus) = match function.class(remainder) {
        Class::Arith(Arith::Binary(BinaryOp::ModNonneg | BinaryOp::FloorMod, value, by)) => {
            let modulus = match function.int(by) {
                Some(by) if (1..=MAX_MODULUS).contains(&by) => Modulus::Constant(i64::try_from(by).ok()?),
                None if legal!("residue.uniform-modulus", forms.form(by) == Form::Same) => Modulus::Same(by),
                Some(_) | None => return None,
            };
            (value, modulus)
        }
        Class::Arith(Arith::Binary(BinaryOp::And, a, b)) => {
            let (value, mask) = if function.int(a).is_some() { (b, a) } else { (a, b) };
            let modulus = function.int(mask)? + 1;
            if !(2..=MAX_MODULUS).contains(&modulus) || !legal!("residue.low-bits", modulus & (modulus - 1) == 0) {
                return None;
            }
            (value, Modulus::Constant(i64::try_from(modulus).ok()?))
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => return None,
    };
    (legal!("residue.unit-stride", forms.form(value) == Form::Step) && legal!("residue.no-wrap", !forms.wraps(value)))
        .then_some((value, modulus))
}

/// `true` if an integer is 0 or 1.
fn is_bit(forms: &Forms<'_>, id: ExprId) -> bool {
    let (function, id) = (forms.function, forms.known(id));
    match function.class(id) {
        Class::Leaf(Leaf::Const(Const::Int(value))) => (0..2).contains(&value),
        Class::Arith(Arith::Binary(BinaryOp::ModNonneg | BinaryOp::FloorMod, _, by)) => function.int(by) == Some(2),
        Class::Arith(Arith::Binary(BinaryOp::And, a, b)) => [a, b].iter().any(|&mask| function.int(mask) == Some(1)),
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
    }
}

/// `true` if a strided loop is faster than masked vectors of all threads.
fn is_worth_it(function: &Function, modulus: Modulus, then: &[Stmt]) -> bool {
    let Modulus::Constant(modulus) = modulus else { return true };
    let (mut stored, mut loaded) = (Vec::new(), Vec::new());
    let mut simple = true;
    for_each_stmt(then, &mut |stmt| {
        if let StmtKind::Store { pointer, .. } = stmt.kind {
            stored.push(pointer);
        }
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Class::Load(pointer) = function.class(id) {
                loaded.push(pointer);
            }
        });
        simple &= !matches!(stmt.kind, StmtKind::Loop { .. } | StmtKind::Op { .. } | StmtKind::Call { .. });
    });
    // A load of a neighboring element, in the next row or the next launch, waits for an earlier masked store. In shared
    // memory the masked store becomes a select, so it does not count.
    let is_shared = |pointer: ExprId| matches!(function.exprs[pointer].ty, Type::Ptr(_, Space::Shared));
    let in_place = stored.iter().filter(|&&stored| !is_shared(stored)).any(|&stored| {
        let of = |pointer: ExprId| match function.class(pointer) {
            Class::Address { base, .. } => Some(base),
            Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => None,
        };
        loaded.iter().any(|&loaded| match (of(stored), of(loaded)) {
            (Some(a), Some(b)) => same(function, a, b) && !same(function, stored, loaded),
            (None, _) | (_, None) => true,
        })
    });
    modulus > MAX_MASKED_MODULUS || stored.len() as i64 >= modulus || !simple || in_place
}

/// The number of expressions of a body.
fn size(function: &Function, body: &[Stmt]) -> usize {
    let mut exprs = 0;
    for_each_stmt(body, &mut |stmt| for_each_expr_of_stmt(function, &stmt.kind, &mut |_| exprs += 1));
    exprs
}
