//! Numba's two ways to merge number types: *promotion* for operators, *unification* for variables, `min`/`max` and
//! conditional expressions. Source: numba-cuda 0.30.4, measured; the tables are in `docs/language.md`.

use weft_artifact::{Layout, Scalar};

use super::ty::{ArrayTy, Conflict, Ty};
use crate::{ir::Space, source::Span, syntax::ast::BinOp};

/// The result type of a binary operator on two numbers; `None` where the operator does not take them.
///
/// The exponent of `**` may be known: a literal int keeps a float base's type, as any int does.
pub(super) fn binary(op: BinOp, left: Scalar, right: Scalar) -> Option<Scalar> {
    match op {
        BinOp::Add | BinOp::Sub | BinOp::Mul => Some(arith(left, right)),
        BinOp::Div => {
            let ty = arith(left, right);
            Some(if ty.is_int() { Scalar::F64 } else { ty })
        }
        BinOp::FloorDiv | BinOp::Mod => {
            let ty = arith(left, right);
            (!ty.is_complex()).then_some(ty)
        }
        BinOp::Pow => Some(match (left, right) {
            (Scalar::Bool, Scalar::I32) => Scalar::F32,
            (Scalar::F32, exponent) if exponent.is_int() || exponent == Scalar::Bool => Scalar::F32,
            _ => arith(left, right),
        }),
        BinOp::LShift | BinOp::RShift => {
            if !is_integral(left) || !is_integral(right) {
                return None;
            }
            Some(if left.is_unsigned_int() { Scalar::U64 } else { Scalar::I64 })
        }
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => match (left, right) {
            (Scalar::Bool, Scalar::Bool) => Some(Scalar::Bool),
            _ if is_integral(left) && is_integral(right) => Some(arith(left, right)),
            _ => None,
        },
        BinOp::MatMul => None,
    }
}

/// Integers and `Bool`.
pub(super) fn is_integral(scalar: Scalar) -> bool {
    scalar.is_int() || scalar == Scalar::Bool
}

/// The result type of `+`: integers are at least 64 bits wide; any signed one (or a bool) makes the result signed.
pub(super) fn arith(left: Scalar, right: Scalar) -> Scalar {
    if left.is_complex() || right.is_complex() {
        let small = |s: Scalar| matches!(s, Scalar::C64) || keeps_f32(s);
        return if small(left) && small(right) { Scalar::C64 } else { Scalar::C128 };
    }
    if left.is_float() || right.is_float() {
        return if keeps_f32(left) && keeps_f32(right) { Scalar::F32 } else { Scalar::F64 };
    }
    if left.is_unsigned_int() && right.is_unsigned_int() { Scalar::U64 } else { Scalar::I64 }
}

/// Types that stay `float32` beside a `float32`.
fn keeps_f32(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::F32 | Scalar::Bool | Scalar::I8 | Scalar::U8 | Scalar::I16)
}

/// The safest common type of two numbers.
pub(super) fn unify(left: Scalar, right: Scalar) -> Scalar {
    use Scalar::{Bool, C64, C128, F32, F64, I8, I16, I32, I64, U8, U16};
    if left == right {
        return left;
    }
    match (left, right) {
        (Bool, other) | (other, Bool) => return other,
        _ => {}
    }
    let fits_f32 = |s: Scalar| matches!(s, F32 | C64 | I8 | U8 | I16 | U16);
    if left.is_complex() || right.is_complex() {
        return if fits_f32(left) && fits_f32(right) { C64 } else { C128 };
    }
    if left.is_float() || right.is_float() {
        return if fits_f32(left) && fits_f32(right) { F32 } else { F64 };
    }
    if left.is_signed_int() == right.is_signed_int() {
        return if left.size_bytes() >= right.size_bytes() { left } else { right };
    }
    let (signed, unsigned) = if left.is_signed_int() { (left, right) } else { (right, left) };
    if unsigned.size_bytes() < signed.size_bytes() {
        return signed;
    }
    match unsigned.size_bytes() {
        1 => I16,
        2 => I32,
        4 => I64,
        _ => F64,
    }
}

/// The type of a variable where two paths meet: a join, so that it is what it was or more general.
pub(super) fn join(first: &Ty, first_span: Span, second: &Ty, second_span: Span) -> Ty {
    if first == second {
        return first.clone();
    }
    if let (Some(a), Some(b)) = (first.scalar(), second.scalar()) {
        return Ty::Scalar(unify(a, b));
    }
    match (first, second) {
        (Ty::Poison, _) | (_, Ty::Poison) => Ty::Poison,
        (Ty::Bottom, known) | (known, Ty::Bottom) => known.clone(),
        (Ty::Array(a), Ty::Array(b)) if a.dtype == b.dtype && a.ndim == b.ndim => Ty::Array(join_arrays(*a, *b)),
        (Ty::Tuple(a), Ty::Tuple(b)) if a.len() == b.len() => {
            let items: Vec<Ty> = a.iter().zip(b).map(|(x, y)| join(x, first_span, y, second_span)).collect();
            if items.contains(&Ty::Poison) {
                Ty::Poison
            } else if items.iter().any(|item| matches!(item, Ty::Conflict(_))) {
                conflict(first, first_span, second, second_span)
            } else {
                Ty::Tuple(items)
            }
        }
        (Ty::Conflict(_), _) => first.clone(),
        (_, Ty::Conflict(_)) => second.clone(),
        _ => conflict(first, first_span, second, second_span),
    }
}

fn conflict(first: &Ty, first_span: Span, second: &Ty, second_span: Span) -> Ty {
    Ty::Conflict(Box::new(Conflict { first: first.clone(), first_span, second: second.clone(), second_span }))
}

fn join_arrays(a: ArrayTy, b: ArrayTy) -> ArrayTy {
    ArrayTy {
        dtype: a.dtype,
        ndim: a.ndim,
        layout: if a.layout == b.layout { a.layout } else { Layout::Any },
        readonly: a.readonly || b.readonly,
        space: if a.space == b.space { a.space } else { Space::Generic },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Scalar::*;

    #[test]
    fn promotion_follows_the_table() {
        for (left, right, want) in [
            (I8, I8, I64),
            (U8, U8, U64),
            (U64, I64, I64),
            (Bool, Bool, I64),
            (Bool, F32, F32),
            (U8, F32, F32),
            (I16, F32, F32),
            (U16, F32, F64),
            (I32, F32, F64),
            (I64, F32, F64),
            (C64, I16, C64),
            (C64, U16, C128),
            (C64, F64, C128),
        ] {
            assert_eq!(arith(left, right), want, "{left} + {right}");
            assert_eq!(arith(right, left), want, "{right} + {left}");
        }
        assert_eq!(binary(BinOp::Div, I32, I32), Some(F64));
        assert_eq!(binary(BinOp::Pow, F32, I64), Some(F32));
        assert_eq!(binary(BinOp::Pow, I32, F32), Some(F64));
        assert_eq!(binary(BinOp::LShift, U8, I64), Some(U64));
        assert_eq!(binary(BinOp::BitAnd, F32, I64), None);
        assert_eq!(binary(BinOp::Mod, C64, C64), None);
    }

    #[test]
    fn joins_have_a_least_and_a_greatest_type() {
        let here = Span::default();
        let join = |a: &Ty, b: &Ty| join(a, here, b, here);
        let number = Ty::Scalar(F32);
        let tuple = Ty::Tuple(vec![Ty::Scalar(I64), number.clone()]);
        let conflict = join(&number, &Ty::None);
        assert!(matches!(conflict, Ty::Conflict(_)));
        for ty in [&number, &tuple, &conflict, &Ty::None, &Ty::Poison] {
            assert_eq!(join(ty, &Ty::Bottom), *ty);
            assert_eq!(join(&Ty::Bottom, ty), *ty);
            assert_eq!(join(ty, &Ty::Poison), Ty::Poison);
            assert_eq!(join(&Ty::Poison, ty), Ty::Poison);
            assert_eq!(join(ty, ty), *ty);
        }
    }

    /// What a loop's types grow by: a join is no less than either side, or they would not settle.
    #[test]
    fn a_join_holds_both_sides() {
        for left in Scalar::ALL {
            for right in Scalar::ALL {
                let both = unify(left, right);
                assert_eq!(unify(both, left), both, "{left} and {right}");
                assert_eq!(unify(both, right), both, "{left} and {right}");
            }
        }
    }

    #[test]
    fn unification_follows_the_table() {
        for (left, right, want) in [
            (I8, U8, I16),
            (I8, U16, I32),
            (I32, U32, I64),
            (I64, U64, F64),
            (I16, U8, I16),
            (U16, F32, F32),
            (I32, F32, F64),
            (Bool, I32, I32),
            (U16, C64, C64),
            (I32, C64, C128),
            (F64, C64, C128),
        ] {
            assert_eq!(unify(left, right), want, "{left} with {right}");
            assert_eq!(unify(right, left), want, "{right} with {left}");
        }
    }
}
