//! Constant expressions, folded as CPython's compiler folds them.
//!
//! Numba compiles the result of CPython's compiler: there, `2**-4` is 0.0625 and `(1 << 64) - 1` a `uint64`. So the
//! code after the parser sees the same constants. The parser folds each expression when it builds it, from the operands
//! outwards; the result has the expression's span. CPython defines what is folded, and up to which size, in its
//! `Python/ast_opt.c` (from 3.14 on in `Python/flowgraph.c`): neither comparisons nor `and` and `or`, nothing that
//! raises an exception.

use num_bigint::{BigInt, Sign};

use super::{
    ast::{BinOp, Constant, Expr, ExprKind, UnaryOp},
    number::{self, Number},
};

/// The maximum number of bits of a folded integer product, power or shift.
const MAX_INT_BITS: u64 = 128;

/// The maximum number of items of a folded repetition of a tuple.
const MAX_ITEMS: usize = 256;

/// The maximum number of items of such a tuple, including nested ones.
const MAX_TOTAL_ITEMS: usize = 1024;

/// The maximum number of characters of a folded repetition of a string.
const MAX_TEXT: usize = 4096;

/// An expression that is not a target, folded if its operands are constants.
pub(super) fn folded(kind: ExprKind) -> ExprKind {
    let constant = match &kind {
        ExprKind::Unary { op, operand } => unary(*op, operand),
        ExprKind::Binary { op, left, right } => binary(*op, left, right),
        ExprKind::Subscript { value, index } => item(value, index),
        ExprKind::Name(_)
        | ExprKind::Constant(_)
        | ExprKind::Bool { .. }
        | ExprKind::Compare { .. }
        | ExprKind::IfExp { .. }
        | ExprKind::Call { .. }
        | ExprKind::Attribute { .. }
        | ExprKind::Slice { .. }
        | ExprKind::Tuple(_)
        | ExprKind::List(_)
        | ExprKind::Starred(_)
        | ExprKind::Named { .. }
        | ExprKind::Lambda(_)
        | ExprKind::Comprehension { .. }
        | ExprKind::Unsupported(_) => None,
    };
    constant.unwrap_or(kind)
}

/// Whether an operation on integer literals has a result so large that CPython's compiler does not compute it. No
/// integer of a kernel can have this value.
pub fn is_too_long(op: BinOp, left: &Expr, right: &Expr) -> bool {
    let (ExprKind::Constant(left), ExprKind::Constant(right)) = (&left.kind, &right.kind) else { return false };
    match (number(left), number(right)) {
        // The powers of 1 and -1 are short.
        (Some(Number::Int(a)), Some(Number::Int(b))) => {
            !in_bounds(op, &a, &b) && (op != BinOp::Pow || a.magnitude() != BigInt::from(1).magnitude())
        }
        _ => false,
    }
}

fn unary(op: UnaryOp, operand: &Expr) -> Option<ExprKind> {
    if op == UnaryOp::Not {
        return Some(ExprKind::Constant(Constant::Bool(!truth(operand)?)));
    }
    let ExprKind::Constant(operand) = &operand.kind else { return None };
    number::unary(op, &number(operand)?).map(constant)
}

fn binary(op: BinOp, left: &Expr, right: &Expr) -> Option<ExprKind> {
    let (a, b) = match (&left.kind, &right.kind) {
        (ExprKind::Tuple(a), ExprKind::Tuple(b)) if op == BinOp::Add => {
            let all = is_constant(left) && is_constant(right);
            return all.then(|| ExprKind::Tuple(a.iter().chain(b).cloned().collect()));
        }
        (ExprKind::Tuple(items), ExprKind::Constant(times)) if op == BinOp::Mul && is_constant(left) => {
            return repeated_tuple(items, times);
        }
        (ExprKind::Constant(times), ExprKind::Tuple(items)) if op == BinOp::Mul && is_constant(right) => {
            return repeated_tuple(items, times);
        }
        (ExprKind::Constant(a), ExprKind::Constant(b)) => (a, b),
        _ => return None,
    };
    let text = match (op, a, b) {
        (BinOp::Add, Constant::Str(a), Constant::Str(b)) => Some(Constant::Str(format!("{a}{b}"))),
        (BinOp::Add, Constant::Bytes(a), Constant::Bytes(b)) => Some(Constant::Bytes([a.as_slice(), b].concat())),
        (BinOp::Mul, Constant::Str(text), times) | (BinOp::Mul, times, Constant::Str(text)) => {
            Some(Constant::Str(text.repeat(count(times, text.chars().count(), MAX_TEXT)?)))
        }
        (BinOp::Mul, Constant::Bytes(text), times) | (BinOp::Mul, times, Constant::Bytes(text)) => {
            Some(Constant::Bytes(text.repeat(count(times, text.len(), MAX_TEXT)?)))
        }
        _ => None,
    };
    if let Some(text) = text {
        return Some(ExprKind::Constant(text));
    }
    if let (Constant::Bool(a), Constant::Bool(b)) = (a, b) {
        let truth = match op {
            BinOp::BitAnd => Some(a & b),
            BinOp::BitOr => Some(a | b),
            BinOp::BitXor => Some(a ^ b),
            BinOp::Add
            | BinOp::Sub
            | BinOp::Mul
            | BinOp::Div
            | BinOp::FloorDiv
            | BinOp::Mod
            | BinOp::Pow
            | BinOp::MatMul
            | BinOp::LShift
            | BinOp::RShift => None,
        };
        if let Some(truth) = truth {
            return Some(ExprKind::Constant(Constant::Bool(truth)));
        }
    }
    let (a, b) = (number(a)?, number(b)?);
    if let (Number::Int(a), Number::Int(b)) = (&a, &b)
        && !in_bounds(op, a, b)
    {
        return None;
    }
    number::binary(op, &a, &b).map(constant)
}

/// Whether CPython's compiler folds an operation on integers, by the size of the result.
fn in_bounds(op: BinOp, a: &BigInt, b: &BigInt) -> bool {
    if a.sign() == Sign::NoSign || (b.sign() != Sign::Plus && op != BinOp::Mul) {
        return true;
    }
    let count = || u64::try_from(b).unwrap_or(u64::MAX);
    match op {
        BinOp::Mul => b.sign() == Sign::NoSign || a.bits().saturating_add(b.bits()) <= MAX_INT_BITS,
        BinOp::Pow => a.bits() <= MAX_INT_BITS / count(),
        BinOp::LShift => a.bits().saturating_add(count()) <= MAX_INT_BITS,
        BinOp::Add
        | BinOp::Sub
        | BinOp::Div
        | BinOp::FloorDiv
        | BinOp::Mod
        | BinOp::MatMul
        | BinOp::RShift
        | BinOp::BitAnd
        | BinOp::BitOr
        | BinOp::BitXor => true,
    }
}

fn repeated_tuple(items: &[Expr], times: &Constant) -> Option<ExprKind> {
    fn total(items: &[Expr]) -> usize {
        let inner = |item: &Expr| if let ExprKind::Tuple(items) = &item.kind { total(items) } else { 0 };
        items.len() + items.iter().map(inner).sum::<usize>()
    }
    let times = count(times, items.len(), MAX_ITEMS)?;
    if times.saturating_mul(total(items)) > MAX_TOTAL_ITEMS {
        return None;
    }
    Some(ExprKind::Tuple(items.iter().cycle().take(items.len() * times).cloned().collect()))
}

/// The factor of a repetition, if it is an integer and the result has at most `most` items.
fn count(times: &Constant, length: usize, most: usize) -> Option<usize> {
    let Some(Number::Int(times)) = number(times) else { return None };
    if length == 0 {
        return Some(0);
    }
    usize::try_from(&times).ok().filter(|times| *times <= most / length)
}

/// `value[index]` of a tuple or a string.
fn item(value: &Expr, index: &Expr) -> Option<ExprKind> {
    let ExprKind::Constant(index) = &index.kind else { return None };
    let Some(Number::Int(index)) = number(index) else { return None };
    let at = |length: usize| {
        let index = i64::try_from(&index).ok()?;
        usize::try_from(if index < 0 { index + length as i64 } else { index }).ok()
    };
    if let ExprKind::Tuple(items) = &value.kind {
        return if is_constant(value) { items.get(at(items.len())?).map(|item| item.kind.clone()) } else { None };
    }
    if let ExprKind::Constant(Constant::Str(text)) = &value.kind {
        let letter = text.chars().nth(at(text.chars().count())?)?;
        return Some(ExprKind::Constant(Constant::Str(letter.to_string())));
    }
    if let ExprKind::Constant(Constant::Bytes(text)) = &value.kind {
        return text.get(at(text.len())?).map(|byte| constant(i128::from(*byte).into()));
    }
    None
}

/// A literal, or a tuple of constants.
fn is_constant(expr: &Expr) -> bool {
    if let ExprKind::Tuple(items) = &expr.kind {
        return items.iter().all(is_constant);
    }
    matches!(expr.kind, ExprKind::Constant(_))
}

/// The truth value of a constant.
fn truth(expr: &Expr) -> Option<bool> {
    if let ExprKind::Tuple(items) = &expr.kind {
        return is_constant(expr).then_some(!items.is_empty());
    }
    let ExprKind::Constant(constant) = &expr.kind else { return None };
    Some(match constant {
        Constant::None => false,
        Constant::Bool(value) => *value,
        Constant::Int(value) => value.sign() != Sign::NoSign,
        Constant::Float(value) => *value != 0.0,
        Constant::Complex(real, imag) => *real != 0.0 || *imag != 0.0,
        Constant::Str(text) => !text.is_empty(),
        Constant::Bytes(text) => !text.is_empty(),
        Constant::Ellipsis => true,
    })
}

fn number(constant: &Constant) -> Option<Number> {
    match constant {
        Constant::Bool(value) => Some(i128::from(*value).into()),
        Constant::Int(value) => Some(Number::Int(value.clone())),
        Constant::Float(value) => Some(Number::Float(*value)),
        Constant::Complex(real, imag) => Some(Number::Complex(*real, *imag)),
        Constant::None | Constant::Str(_) | Constant::Bytes(_) | Constant::Ellipsis => None,
    }
}

fn constant(number: Number) -> ExprKind {
    ExprKind::Constant(match number {
        Number::Int(value) => Constant::Int(value),
        Number::Float(value) => Constant::Float(value),
        Number::Complex(real, imag) => Constant::Complex(real, imag),
    })
}
