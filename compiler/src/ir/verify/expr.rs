//! Checks the types of expressions: for each operator, the rules that `ir/expr.rs` documents.

use weft_artifact::Scalar;

use super::Checker;
use crate::ir::{
    BinaryOp, CompareOp, Const, Expr, ExprId, ExprKind, MathFn, RoundedOp, Space, SpecialRegister, Type, UnaryOp,
};

impl Checker<'_> {
    /// Checks an expression and its operands. Returns `false` if there is an error, so that the user of the expression
    /// is not reported as well.
    pub(super) fn expr(&mut self, id: ExprId) -> bool {
        let Some(expr) = self.function.exprs.get(id) else {
            self.error(format!("%{} is no expression", id.index()));
            return false;
        };
        self.uses[id.index()] += 1;
        if self.uses[id.index()] > 1 {
            self.error(format!("%{} is used twice", id.index()));
            return false;
        }
        self.span(expr.span, || format!("%{}", id.index()));
        let children = expr.kind.operands();
        let mut types = Vec::with_capacity(children.len());
        for child in children {
            if self.expr(child) {
                types.extend(self.function.exprs.get(child).map(|expr| expr.ty));
            } else {
                return false;
            }
        }
        let complaint = self.complaint(expr, &types);
        if let Some(complaint) = &complaint {
            self.error(format!("%{}: {complaint}", id.index()));
        }
        complaint.is_none()
    }

    /// The error for an expression whose operands have these types; `None` if it is valid.
    fn complaint(&self, expr: &Expr, operands: &[Type]) -> Option<String> {
        let ty = expr.ty;
        let holds = |holds: bool, rule: &str| if holds { None } else { Some(format!("{rule} (type {ty})")) };
        match (&expr.kind, operands) {
            (ExprKind::Const(value), _) => holds(fits(*value, ty), "the constant does not fit its type"),
            (ExprKind::Local(local), _) => match self.function.locals.get(*local) {
                None => Some(format!("${local:?} is no local")),
                Some(local) => holds(local.ty == ty, &format!("${} is {}", local.name, local.ty)),
            },
            (ExprKind::Special(register), _) => holds(
                ty == Type::I32 && has_axis(*register),
                "a special register is int32 and has an axis of 0, 1 or 2",
            ),
            (ExprKind::Unary(op, ..), [a]) => {
                let takes = match op {
                    UnaryOp::Neg | UnaryOp::Abs => is_number(*a),
                    UnaryOp::Not => is_int(*a) || *a == Type::BOOL,
                };
                holds(takes && *a == ty, &format!("{op:?} does not take {a}"))
            }
            (ExprKind::Binary(op, ..), [a, b]) => {
                let takes = match op {
                    BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::FloorDiv | BinaryOp::FloorMod => {
                        is_number(*a)
                    }
                    BinaryOp::Min | BinaryOp::Max => is_number(*a),
                    BinaryOp::Div => is_float(*a),
                    BinaryOp::AddExact
                    | BinaryOp::SubExact
                    | BinaryOp::MulExact
                    | BinaryOp::DivNonneg
                    | BinaryOp::ModNonneg
                    | BinaryOp::Pow
                    | BinaryOp::Shl
                    | BinaryOp::Shr => is_int(*a),
                    BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => is_int(*a) || *a == Type::BOOL,
                };
                holds(takes && a == b && *a == ty, &format!("{op:?} does not take {a} and {b}"))
            }
            (ExprKind::Compare(op, ..), [a, b]) => {
                let takes = is_number(*a) || (*a == Type::BOOL && matches!(op, CompareOp::Eq | CompareOp::Ne));
                holds(takes && a == b && ty == Type::BOOL, &format!("{op:?} does not compare {a} and {b}"))
            }
            (ExprKind::Select(..), [c, a, b]) => {
                holds(*c == Type::BOOL && a == b && *a == ty, &format!("select of {c}, {a} and {b}"))
            }
            (ExprKind::Convert(_), [from]) => {
                let can = match (*from, ty) {
                    (Type::Scalar(_), Type::Scalar(_)) => true,
                    (Type::Ptr(_, from), Type::Ptr(_, to)) => to == from || to == Space::Generic,
                    // A pointer is converted to its address.
                    (Type::Ptr(..), Type::Scalar(to)) => to == Scalar::U64,
                    (Type::Scalar(_), Type::Ptr(..)) => false,
                };
                holds(can, &format!("{from} does not convert"))
            }
            (ExprKind::Math(function, _), args) => {
                let complaint = || format!("math.{} of {args:?}", function.name());
                holds(math_fits(*function, args, ty), &complaint())
            }
            (ExprKind::Load(_, _), [Type::Ptr(elem, _)]) => holds(ty == Type::Scalar(*elem), "not the elements' type"),
            (ExprKind::Offset { scale, .. }, [base @ Type::Ptr(..), index]) => holds(
                *base == ty && *index == Type::I64 && *scale > 0,
                &format!("{base} offset by {index} times {scale}"),
            ),
            (ExprKind::ByteOffset { .. }, [base @ Type::Ptr(..), bytes]) => {
                holds(*base == ty && *bytes == Type::I64, &format!("{base} offset by {bytes}"))
            }
            (ExprKind::SharedBase(shared), _) => match self.module.shared.get(*shared) {
                None => Some(format!("shared {shared:?} is no array")),
                Some(array) => holds(ty == Type::Ptr(array.elem, Space::Shared), "not a pointer to its elements"),
            },
            (ExprKind::ConstBase(constant), _) => match self.module.constants.get(*constant) {
                None => Some(format!("constant {constant:?} is no array")),
                Some(array) => holds(ty == Type::Ptr(array.elem, array.space), "not a pointer to its elements"),
            },
            (ExprKind::DynamicShared, _) => holds(
                matches!(ty, Type::Ptr(_, Space::Shared)) && self.module.dynamic_shared,
                "dynamic shared memory is a shared pointer, and the module must say that it is there",
            ),
            (ExprKind::LocalBase(array), _) => match self.function.local_arrays.get(*array) {
                None => Some(format!("local {array:?} is no array")),
                Some(array) => holds(ty == Type::Ptr(array.elem, Space::Local), "not a pointer to its elements"),
            },
            (ExprKind::Wrap { .. }, [index, extent]) => {
                let same = index == extent && *index == ty && [Type::I32, Type::I64].contains(&ty);
                holds(same, &format!("wrap of {index} and {extent}"))
            }
            (kind, operands) => Some(format!("{kind:?} does not take {operands:?}")),
        }
    }
}

fn is_int(ty: Type) -> bool {
    ty.scalar().is_some_and(Scalar::is_int)
}

fn is_float(ty: Type) -> bool {
    ty.scalar().is_some_and(Scalar::is_float)
}

fn is_number(ty: Type) -> bool {
    is_int(ty) || is_float(ty)
}

/// `true` if a constant is a value of a type.
fn fits(value: Const, ty: Type) -> bool {
    match (value, ty.scalar()) {
        (Const::Null | Const::Address(_), scalar) => scalar.is_none(),
        (Const::Bool(_), Some(Scalar::Bool)) => true,
        (Const::Float(value), Some(scalar)) if scalar.is_float() => {
            value.is_nan() || value.is_infinite() || (scalar.nearest(value) - value) == 0.0
        }
        (Const::Int(value), Some(scalar)) if scalar.is_int() => {
            let bits = 8 * scalar.size_bytes() as u32;
            let (low, high) = if scalar.is_signed_int() {
                (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
            } else {
                (0, (1_i128 << bits) - 1)
            };
            (low..=high).contains(&value)
        }
        _ => false,
    }
}

fn has_axis(register: SpecialRegister) -> bool {
    match register {
        SpecialRegister::ThreadIdx(axis)
        | SpecialRegister::BlockIdx(axis)
        | SpecialRegister::BlockDim(axis)
        | SpecialRegister::GridDim(axis) => axis < 3,
        SpecialRegister::LaneId | SpecialRegister::WarpSize | SpecialRegister::DynamicSharedBytes => true,
        // Modules never contain it.
        SpecialRegister::OfRow(_) => false,
    }
}

/// `true` if a math function takes these arguments and returns `result`.
#[expect(clippy::wildcard_enum_match_arm, reason = "most functions give what they take")]
fn math_fits(function: MathFn, args: &[Type], result: Type) -> bool {
    let Some((first, rest)) = args.split_first() else { return false };
    // The bits of a float are an unsigned integer of its size.
    let bits_of = |float: Type, bits: Type| match (float.scalar(), bits.scalar()) {
        (Some(float), Some(bits)) => {
            float.is_float() && bits.is_unsigned_int() && float.size_bytes() == bits.size_bytes()
        }
        _ => false,
    };
    match function {
        MathFn::Bits => return rest.is_empty() && bits_of(*first, result),
        MathFn::OfBits => return rest.is_empty() && bits_of(result, *first),
        MathFn::OfE4M3 => {
            return rest.is_empty() && first.scalar() == Some(Scalar::U8) && result.scalar() == Some(Scalar::F32);
        }
        MathFn::ToE4M3 | MathFn::ToE5M2 => {
            return rest.is_empty() && first.scalar() == Some(Scalar::F32) && result.scalar() == Some(Scalar::U8);
        }
        _ => {}
    }
    let same = args.len() == function.arity() && rest.iter().all(|ty| ty == first);
    match function.rounded() {
        Some((RoundedOp::Convert, _)) => {
            let (from, to) = (first.scalar(), result.scalar());
            let words = [Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64];
            return rest.is_empty()
                && match to {
                    Some(Scalar::F32) => from.is_some_and(|from| from == Scalar::F64 || words.contains(&from)),
                    Some(Scalar::F64) => from.is_some_and(|from| words.contains(&from)),
                    _ => false,
                };
        }
        Some((RoundedOp::Add | RoundedOp::Mul | RoundedOp::Div | RoundedOp::Sqrt | RoundedOp::Fma, _)) => {
            return same && [Some(Scalar::F32), Some(Scalar::F64)].contains(&first.scalar()) && result == *first;
        }
        None => {}
    }
    if function.is_of_integers() {
        let width = function != MathFn::BytePerm || first.scalar() == Some(Scalar::U32);
        return same && is_int(*first) && width && result == *first;
    }
    if function.is_fast() && first.scalar() != Some(Scalar::F32) {
        return false;
    }
    let expected = match function {
        MathFn::Isnan | MathFn::Isinf | MathFn::Isfinite => Type::BOOL,
        MathFn::FrexpExponent => Type::I32,
        _ => *first,
    };
    let rest_type = if function == MathFn::Ldexp { Type::I32 } else { *first };
    args.len() == function.arity() && is_float(*first) && rest.iter().all(|ty| *ty == rest_type) && result == expected
}
