//! The values of expressions of constants and of locals whose values are known, for passes that copy statements.

use std::collections::BTreeMap;

use weft_artifact::Scalar;

use crate::{
    analysis::Interval,
    ir::{BinaryOp, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, Type, UnaryOp},
};

/// The known values of locals: an integer, or 0 or 1 of a Bool.
pub(crate) type Values = BTreeMap<LocalId, i128>;

/// The value of a constant of an integer type, or 0 or 1 of a Bool.
pub(super) fn constant_value(function: &Function, id: ExprId) -> Option<i128> {
    let Expr { ref kind, ty, .. } = function.exprs[id];
    if let ExprKind::Const(Const::Bool(value)) = *kind {
        return Some(i128::from(value));
    }
    function.int(id).filter(|_| ty.scalar().is_some_and(Scalar::is_int))
}

/// The value of an expression that depends only on known locals: an integer, or 0 or 1 of a Bool.
pub(crate) fn known_value(function: &Function, values: &Values, id: ExprId) -> Option<i128> {
    let Expr { kind, ty, .. } = &function.exprs[id];
    if let ExprKind::Local(local) = kind {
        return values.get(local).copied();
    }
    if let ExprKind::Select(cond, a, b) = *kind {
        return known_value(function, values, if known_value(function, values, cond)? == 0 { b } else { a });
    }
    folded(function, kind, *ty, &|operand| known_value(function, values, operand))
}

/// The value of an operation on known operands, as far as it is exact.
pub(super) fn folded(
    function: &Function,
    kind: &ExprKind,
    ty: Type,
    operand: &dyn Fn(ExprId) -> Option<i128>,
) -> Option<i128> {
    let type_of = |id: ExprId| function.exprs[id].ty;
    let is_int = |ty: Type| ty.scalar().is_some_and(Scalar::is_int);
    let integer = |id: ExprId| if is_int(type_of(id)) { operand(id).map(Interval::of) } else { None };
    match *kind {
        ExprKind::Const(Const::Int(constant)) if is_int(ty) => Some(constant),
        ExprKind::Const(Const::Bool(constant)) => Some(i128::from(constant)),
        ExprKind::Unary(UnaryOp::Not, a) if ty == Type::BOOL => Some(1 - operand(a)?),
        ExprKind::Binary(BinaryOp::And, a, b) if ty == Type::BOOL => Some(operand(a)? & operand(b)?),
        ExprKind::Binary(BinaryOp::Or, a, b) if ty == Type::BOOL => Some(operand(a)? | operand(b)?),
        ExprKind::Binary(op, a, b) if is_int(ty) => {
            let (a, b) = (integer(a)?, integer(b)?);
            quotient(op, a.single()?, b.single()?).or_else(|| Interval::binary(op, a, b, ty).single())
        }
        ExprKind::Convert(a) if ty == Type::BOOL => Some(i128::from(integer(a)?.single()? != 0)),
        ExprKind::Convert(a) if is_int(ty) => integer(a)?.converted(type_of(a), ty).single(),
        ExprKind::Compare(op, a, b) => {
            let (a, b) = (integer(a)?.single()?, integer(b)?.single()?);
            Some(i128::from(match op {
                CompareOp::Eq => a == b,
                CompareOp::Ne => a != b,
                CompareOp::Lt => a < b,
                CompareOp::Le => a <= b,
                CompareOp::Gt => a > b,
                CompareOp::Ge => a >= b,
            }))
        }
        ExprKind::Wrap { index, extent } => {
            let (index, extent) = (integer(index)?.single()?, integer(extent)?.single()?);
            Some(if index < 0 { index + extent } else { index })
        }
        ExprKind::Const(_)
        | ExprKind::Local(_)
        | ExprKind::Special(_)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Select(..)
        | ExprKind::Convert(_)
        | ExprKind::Load(..)
        | ExprKind::Math(..)
        | ExprKind::Offset { .. }
        | ExprKind::ByteOffset { .. }
        | ExprKind::SharedBase(_)
        | ExprKind::ConstBase(_)
        | ExprKind::DynamicShared
        | ExprKind::LocalBase(_) => None,
    }
}

/// The quotient or remainder of two integers, of which the divisor is positive.
fn quotient(op: BinaryOp, a: i128, b: i128) -> Option<i128> {
    let divides = matches!(op, BinaryOp::FloorDiv | BinaryOp::DivNonneg);
    let takes_remainder = matches!(op, BinaryOp::FloorMod | BinaryOp::ModNonneg);
    if b <= 0 {
        None
    } else if divides {
        Some(a.div_euclid(b))
    } else {
        takes_remainder.then(|| a.rem_euclid(b))
    }
}

/// The constant with a value that is an integer, or 0 or 1 of a Bool.
pub(super) fn constant_of(value: i128, ty: Type) -> Const {
    if ty == Type::BOOL { Const::Bool(value != 0) } else { Const::Int(value) }
}

/// Whether an operation is a quotient or a remainder of integers, or the floor of one of floats.
pub(crate) fn is_division(kind: &ExprKind) -> bool {
    matches!(
        kind,
        ExprKind::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::DivNonneg | BinaryOp::ModNonneg, ..)
    )
}
