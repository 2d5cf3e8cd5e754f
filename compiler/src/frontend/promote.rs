//! Numba's two ways to merge number types: *promotion* for operators, *unification* for variables, `min`/`max` and
//! conditional expressions. Source: numba-cuda 0.30.4, measured; the tables are in `docs/language.md`.

use weft_artifact::{Chars, Complex, Compound, DType, Layout, Number, Scalar};

use super::{
    object::{ObjectKind, Static},
    ty::{ArrayTy, Conflict, ConflictKind, Sites, Ty},
    weak::{self, Joined},
};
use crate::{ir::Space, request::Typing, source::Span, syntax::ast::BinOp};

/// The result type of a binary operator on two numbers; `None` if the operator does not accept them.
///
/// The exponent of `**` may be a literal: a literal int, like any int, preserves the type of a float base.
pub(super) fn binary(op: BinOp, left: Number, right: Number) -> Option<Number> {
    let (Number::Real(a), Number::Real(b)) = (left, right) else {
        let takes_complex = matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Pow);
        return takes_complex.then(|| arith(left, right));
    };
    binary_real(op, a, b).map(Number::Real)
}

fn binary_real(op: BinOp, left: Scalar, right: Scalar) -> Option<Scalar> {
    match op {
        BinOp::Add | BinOp::Sub | BinOp::Mul => Some(arith_real(left, right)),
        BinOp::FloorDiv | BinOp::Mod => Some(single(arith_real(left, right))),
        BinOp::Div => {
            let ty = arith_real(left, right);
            Some(if ty.is_int() { Scalar::F64 } else { ty })
        }
        BinOp::Pow => Some(match (left, right) {
            (Scalar::Bool, Scalar::I32) => Scalar::F32,
            (Scalar::F16 | Scalar::BF16 | Scalar::F32, exponent) if is_integral(exponent) => Scalar::F32,
            _ => single(arith_real(left, right)),
        }),
        BinOp::LShift | BinOp::RShift => {
            if !is_integral(left) || !is_integral(right) {
                return None;
            }
            Some(if left.is_unsigned_int() { Scalar::U64 } else { Scalar::I64 })
        }
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => match (left, right) {
            (Scalar::Bool, Scalar::Bool) => Some(Scalar::Bool),
            _ if is_integral(left) && is_integral(right) => Some(arith_real(left, right)),
            _ => None,
        },
        BinOp::MatMul => None,
    }
}

/// The type itself, `F32` for the 16-bit floats.
fn single(scalar: Scalar) -> Scalar {
    if scalar.is_half() { Scalar::F32 } else { scalar }
}

/// Integers and `Bool`.
pub(super) fn is_integral(scalar: Scalar) -> bool {
    scalar.is_int() || scalar == Scalar::Bool
}

/// The result type of `+`.
pub(super) fn arith(left: Number, right: Number) -> Number {
    match (left, right) {
        (Number::Real(a), Number::Real(b)) => Number::Real(arith_real(a, b)),
        (Number::Complex(_), _) | (_, Number::Complex(_)) => Number::Complex(arith_complex(left, right)),
    }
}

/// The result type of `+` where one of the numbers is complex.
pub(super) fn arith_complex(left: Number, right: Number) -> Complex {
    let small = |number: Number| match number {
        Number::Real(scalar) => keeps_f32(scalar),
        Number::Complex(complex) => complex == Complex::C64,
    };
    if small(left) && small(right) { Complex::C64 } else { Complex::C128 }
}

/// The result type of `+` on real numbers: integers are at least 64 bits wide; any signed one (or a bool) makes the
/// result signed.
pub(super) fn arith_real(left: Scalar, right: Scalar) -> Scalar {
    for half in [Scalar::F16, Scalar::BF16] {
        if (left == half || right == half) && keeps_half(left, half) && keeps_half(right, half) {
            return half;
        }
    }
    if left.is_float() || right.is_float() {
        return if keeps_f32(left) && keeps_f32(right) { Scalar::F32 } else { Scalar::F64 };
    }
    if left.is_unsigned_int() && right.is_unsigned_int() { Scalar::U64 } else { Scalar::I64 }
}

/// Types that promote to `float32` when combined with a `float32`.
fn keeps_f32(scalar: Scalar) -> bool {
    scalar.is_half() || matches!(scalar, Scalar::F32 | Scalar::Bool | Scalar::I8 | Scalar::U8 | Scalar::I16)
}

/// Whether a type and a 16-bit float promote to that float. Numba's `uint8` promotes to `bfloat16`, but not to
/// `float16`.
fn keeps_half(scalar: Scalar, half: Scalar) -> bool {
    scalar == half || matches!(scalar, Scalar::Bool | Scalar::I8) || (scalar == Scalar::U8 && half == Scalar::BF16)
}

/// The safest common type of two numbers.
pub(super) fn unify(left: Number, right: Number) -> Number {
    match (left, right) {
        (Number::Real(a), Number::Real(b)) => Number::Real(unify_real(a, b)),
        (Number::Real(Scalar::Bool), other) | (other, Number::Real(Scalar::Bool)) => other,
        (Number::Complex(_), _) | (_, Number::Complex(_)) => {
            let small = |number: Number| match number {
                Number::Real(scalar) => fits_f32(scalar),
                Number::Complex(complex) => complex == Complex::C64,
            };
            if small(left) && small(right) { Number::C64 } else { Number::C128 }
        }
    }
}

/// Types whose values are all representable as `float32`.
fn fits_f32(scalar: Scalar) -> bool {
    scalar.is_half() || matches!(scalar, Scalar::F32 | Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16)
}

/// The safest common type of two real numbers.
pub(super) fn unify_real(left: Scalar, right: Scalar) -> Scalar {
    use Scalar::{Bool, F32, F64, I16, I32, I64};
    if left == right {
        return left;
    }
    match (left, right) {
        (Bool, other) | (other, Bool) => return other,
        _ => {}
    }
    if left.is_half() != right.is_half() {
        let (half, other) = if left.is_half() { (left, right) } else { (right, left) };
        if matches!(other, Scalar::I8 | Scalar::U8) {
            return half;
        }
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

/// The type of a variable at a join: a join of the lattice, so each type is the result or less general.
pub(super) fn join(first: &Ty, first_span: Span, second: &Ty, second_span: Span, typing: Typing) -> Ty {
    if first == second {
        return first.clone();
    }
    match typing {
        Typing::Numba => {}
        Typing::Numpy => match weak::join(first, second) {
            Some(Joined::Number(ty)) => return ty,
            Some(Joined::TooLarge) => return conflict(first, first_span, second, second_span),
            None => {}
        },
    }
    // Members of the same enum join to a member, even if they count as numbers.
    let alike = matches!((first, second), (Ty::Object(kind, _), Ty::Object(other, _)) if kind == other);
    if let (false, Some(a), Some(b)) = (alike, first.number(), second.number()) {
        return Ty::of(unify(a, b));
    }
    if let Some(joined) = join_strings(first, second) {
        return joined;
    }
    match (first, second) {
        (Ty::Poison, _) | (_, Ty::Poison) => Ty::Poison,
        (Ty::Bottom, known) | (known, Ty::Bottom) => known.clone(),
        (Ty::Conflict(_), _) => first.clone(),
        (_, Ty::Conflict(_)) => second.clone(),
        (Ty::Static(Static::None), other) | (other, Ty::Static(Static::None)) if !matches!(other, Ty::Static(_)) => {
            if other.optional().is_some() {
                other.clone()
            } else {
                other.or_none(typing)
            }
        }
        (Ty::Array(a), Ty::Array(b)) if a.dtype == b.dtype && a.ndim == b.ndim => Ty::Array(join_arrays(*a, *b)),
        (Ty::Object(kind, a), Ty::Object(other, b)) if kind == other && a.len() == b.len() => {
            let items: Vec<Ty> = a.iter().zip(b).map(|(x, y)| join(x, first_span, y, second_span, typing)).collect();
            if items.contains(&Ty::Poison) {
                Ty::Poison
            } else if items.iter().any(|item| matches!(item, Ty::Conflict(_))) {
                conflict(first, first_span, second, second_span)
            } else {
                Ty::Object(kind.clone(), items)
            }
        }
        _ => {
            if first.optional().is_none() && second.optional().is_none() {
                return conflict(first, first_span, second, second_span);
            }
            // One of the two may be an optional.
            let inner = |ty: &Ty| ty.optional().unwrap_or(ty).clone();
            let joined = join(&inner(first), first_span, &inner(second), second_span, typing);
            if matches!(joined, Ty::Conflict(_)) {
                conflict(first, first_span, second, second_span)
            } else if joined == Ty::Poison {
                joined
            } else {
                joined.or_none(typing)
            }
        }
    }
}

/// Joins two string types of different lengths: a local buffer for the longer one.
fn join_strings(first: &Ty, second: &Ty) -> Option<Ty> {
    let (a, b) = (first.chars()?, second.chars()?);
    let both = matches!((first, second), (Ty::Object(..), Ty::Object(..)));
    if a.is_wide() != b.is_wide() || both && a == b {
        return None;
    }
    let chars = Chars::new(a.is_wide(), a.max_len().max(b.max_len()));
    let place = ArrayTy {
        dtype: DType::intern(Compound::Chars(chars))?,
        ndim: 0,
        layout: Layout::C,
        readonly: false,
        space: Space::Local,
        packed: false,
        own: true,
        sites: Sites::NONE,
    };
    Some(Ty::Object(ObjectKind::Chars, vec![Ty::Array(place)]))
}

fn conflict(first: &Ty, first_span: Span, second: &Ty, second_span: Span) -> Ty {
    let kind = ConflictKind::Types;
    Ty::Conflict(Box::new(Conflict { first: first.clone(), first_span, second: second.clone(), second_span, kind }))
}

fn join_arrays(a: ArrayTy, b: ArrayTy) -> ArrayTy {
    ArrayTy {
        dtype: a.dtype,
        ndim: a.ndim,
        layout: if a.layout == b.layout { a.layout } else { Layout::Any },
        readonly: a.readonly || b.readonly,
        packed: a.packed || b.packed,
        own: a.own || b.own,
        sites: a.sites.union(b.sites),
        space: if a.space == b.space { a.space } else { Space::Generic },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_follows_the_table() {
        for (left, right, want) in [
            (Number::I8, Number::I8, Number::I64),
            (Number::U8, Number::U8, Number::U64),
            (Number::U64, Number::I64, Number::I64),
            (Number::BOOL, Number::BOOL, Number::I64),
            (Number::BOOL, Number::F32, Number::F32),
            (Number::U8, Number::F32, Number::F32),
            (Number::I16, Number::F32, Number::F32),
            (Number::U16, Number::F32, Number::F64),
            (Number::I32, Number::F32, Number::F64),
            (Number::I64, Number::F32, Number::F64),
            (Number::F16, Number::F16, Number::F16),
            (Number::F16, Number::BOOL, Number::F16),
            (Number::F16, Number::I8, Number::F16),
            (Number::F16, Number::U8, Number::F32),
            (Number::F16, Number::I16, Number::F32),
            (Number::F16, Number::U16, Number::F64),
            (Number::F16, Number::I64, Number::F64),
            (Number::F16, Number::F32, Number::F32),
            (Number::F16, Number::F64, Number::F64),
            (Number::F16, Number::C64, Number::C64),
            (Number::F16, Number::BF16, Number::F32),
            (Number::BF16, Number::BF16, Number::BF16),
            (Number::BF16, Number::BOOL, Number::BF16),
            (Number::BF16, Number::I8, Number::BF16),
            (Number::BF16, Number::U8, Number::BF16),
            (Number::BF16, Number::I16, Number::F32),
            (Number::BF16, Number::U16, Number::F64),
            (Number::BF16, Number::I32, Number::F64),
            (Number::BF16, Number::F32, Number::F32),
            (Number::BF16, Number::F64, Number::F64),
            (Number::BF16, Number::C128, Number::C128),
            (Number::C64, Number::I16, Number::C64),
            (Number::C64, Number::U16, Number::C128),
            (Number::C64, Number::F64, Number::C128),
        ] {
            assert_eq!(arith(left, right), want, "{left} + {right}");
            assert_eq!(arith(right, left), want, "{right} + {left}");
        }
        assert_eq!(binary(BinOp::Div, Number::I32, Number::I32), Some(Number::F64));
        assert_eq!(binary(BinOp::Pow, Number::F32, Number::I64), Some(Number::F32));
        assert_eq!(binary(BinOp::Pow, Number::I32, Number::F32), Some(Number::F64));
        assert_eq!(binary(BinOp::Div, Number::F16, Number::I8), Some(Number::F16));
        assert_eq!(binary(BinOp::Div, Number::U8, Number::BF16), Some(Number::BF16));
        for half in [Number::F16, Number::BF16] {
            for op in [BinOp::FloorDiv, BinOp::Mod, BinOp::Pow] {
                assert_eq!(binary(op, half, half), Some(Number::F32));
                assert_eq!(binary(op, Number::I8, half), Some(Number::F32));
                assert_eq!(binary(op, half, Number::F64), Some(Number::F64));
            }
            assert_eq!(binary(BinOp::FloorDiv, half, Number::I64), Some(Number::F64));
            assert_eq!(binary(BinOp::Pow, half, Number::U64), Some(Number::F32));
            assert_eq!(binary(BinOp::Pow, Number::U64, half), Some(Number::F64));
            assert_eq!(binary(BinOp::BitOr, half, Number::I64), None);
        }
        assert_eq!(binary(BinOp::LShift, Number::U8, Number::I64), Some(Number::U64));
        assert_eq!(binary(BinOp::BitAnd, Number::F32, Number::I64), None);
        assert_eq!(binary(BinOp::Mod, Number::C64, Number::C64), None);
    }

    #[test]
    fn joins_have_a_least_and_a_greatest_type() {
        let here = Span::default();
        let join = |a: &Ty, b: &Ty| join(a, here, b, here, Typing::Numba);
        let number = Ty::Scalar(Scalar::F32);
        let tuple = Ty::Object(ObjectKind::Tuple, vec![Ty::Scalar(Scalar::I64), number.clone()]);
        let conflict = join(&number, &tuple);
        assert!(matches!(conflict, Ty::Conflict(_)));
        let optional = join(&number, &Ty::Static(Static::None));
        assert_eq!(optional.optional(), Some(&number));
        assert_eq!(join(&optional, &Ty::Static(Static::None)), optional);
        assert_eq!(join(&Ty::Int(1), &optional), Ty::Scalar(Scalar::F64).or_none(Typing::Numba));
        assert!(matches!(join(&tuple, &optional), Ty::Conflict(_)));
        for ty in [&number, &tuple, &conflict, &optional, &Ty::Static(Static::None), &Ty::Poison] {
            assert_eq!(join(ty, &Ty::Bottom), *ty);
            assert_eq!(join(&Ty::Bottom, ty), *ty);
            assert_eq!(join(ty, &Ty::Poison), Ty::Poison);
            assert_eq!(join(&Ty::Poison, ty), Ty::Poison);
            assert_eq!(join(ty, ty), *ty);
        }
    }

    /// Widening of a loop's types terminates: a join is no less than either side.
    #[test]
    fn a_join_holds_both_sides() {
        for left in Number::all() {
            for right in Number::all() {
                let both = unify(left, right);
                assert_eq!(unify(both, left), both, "{left} and {right}");
                assert_eq!(unify(both, right), both, "{left} and {right}");
            }
        }
    }

    #[test]
    fn unification_follows_the_table() {
        for (left, right, want) in [
            (Number::I8, Number::U8, Number::I16),
            (Number::I8, Number::U16, Number::I32),
            (Number::I32, Number::U32, Number::I64),
            (Number::I64, Number::U64, Number::F64),
            (Number::I16, Number::U8, Number::I16),
            (Number::U16, Number::F32, Number::F32),
            (Number::I32, Number::F32, Number::F64),
            (Number::BOOL, Number::I32, Number::I32),
            (Number::F16, Number::BOOL, Number::F16),
            (Number::F16, Number::I8, Number::F16),
            (Number::F16, Number::U8, Number::F16),
            (Number::F16, Number::I16, Number::F32),
            (Number::F16, Number::U16, Number::F32),
            (Number::F16, Number::I32, Number::F64),
            (Number::F16, Number::U64, Number::F64),
            (Number::F16, Number::F32, Number::F32),
            (Number::F16, Number::F64, Number::F64),
            (Number::F16, Number::C64, Number::C64),
            (Number::F16, Number::BF16, Number::F32),
            (Number::BF16, Number::U8, Number::BF16),
            (Number::BF16, Number::I16, Number::F32),
            (Number::BF16, Number::I64, Number::F64),
            (Number::BF16, Number::C64, Number::C64),
            (Number::U16, Number::C64, Number::C64),
            (Number::I32, Number::C64, Number::C128),
            (Number::F64, Number::C64, Number::C128),
        ] {
            assert_eq!(unify(left, right), want, "{left} with {right}");
            assert_eq!(unify(right, left), want, "{right} with {left}");
        }
    }
}
