//! Integer operators: all pairs of 8-bit integers, and boundary values of 64-bit ones.

use super::{Element, run_all};
use crate::{
    backend::testing::{INTEGER_OPS, SPAN},
    ir::{BinaryOp, CompareOp, UnaryOp},
};

/// The result of an operator on a type of `bits`, before truncation to them. `None` if the operator requires operands
/// that are not negative, or a result that fits, and this is not the case.
fn model(op: BinaryOp, a: i128, b: i128, bits: u32, minimum: i128) -> Option<i128> {
    let amount = (b as u128 & u128::from(bits - 1)) as u32;
    let fits = |exact: i128| (exact >= minimum && exact < minimum + (1 << bits)).then_some(exact);
    Some(match op {
        BinaryOp::AddExact => fits(a + b)?,
        BinaryOp::SubExact => fits(a - b)?,
        BinaryOp::MulExact => fits(a.saturating_mul(b))?,
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::DivNonneg | BinaryOp::ModNonneg if a < 0 || b < 0 => return None,
        BinaryOp::FloorDiv | BinaryOp::DivNonneg | BinaryOp::FloorMod | BinaryOp::ModNonneg if b == 0 => 0,
        BinaryOp::FloorDiv if b == -1 && a == minimum => 0,
        BinaryOp::FloorDiv | BinaryOp::DivNonneg => {
            let inexact = a % b != 0 && (a < 0) != (b < 0);
            a / b - i128::from(inexact)
        }
        BinaryOp::FloorMod | BinaryOp::ModNonneg => {
            let rest = a % b;
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        }
        BinaryOp::Pow if b < 0 => match a {
            1 => 1,
            -1 if b % 2 == 0 => 1,
            -1 => -1,
            0 => minimum,
            _ => 0,
        },
        BinaryOp::Pow => {
            let (mut result, mut square, mut rest) = (1_i128, a, b);
            while rest > 0 {
                if rest & 1 == 1 {
                    result = result.wrapping_mul(square);
                }
                square = square.wrapping_mul(square);
                rest >>= 1;
            }
            result
        }
        BinaryOp::Shl => a << amount,
        BinaryOp::Shr => a >> amount,
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::Div => return None,
    })
}

/// Checks every operator on pairs of numbers of a type.
fn check<T: Element + PartialOrd + PartialEq + std::fmt::Debug + TryFrom<i128> + Into<i128>>(
    pairs: &[(T, T)],
    bits: u32,
    minimum: i128,
    cut: fn(i128) -> T,
) {
    let all: Vec<Vec<T>> = run_all(pairs, &INTEGER_OPS, |b, op, x, y| b.binary(op, x, y, SPAN));
    for (op, results) in INTEGER_OPS.into_iter().zip(all) {
        for (&(a, b), result) in pairs.iter().zip(results) {
            let Some(expected) = model(op, a.into(), b.into(), bits, minimum) else { continue };
            assert_eq!(result, cut(expected), "{a:?} {op:?} {b:?}");
        }
    }
    let unary = [UnaryOp::Neg, UnaryOp::Not, UnaryOp::Abs];
    let all: Vec<Vec<T>> = run_all(pairs, &unary, |b, op, x, _| b.unary(op, x, SPAN));
    for (op, results) in unary.into_iter().zip(all) {
        for (&(a, _), result) in pairs.iter().zip(results) {
            let a: i128 = a.into();
            let expected = match op {
                UnaryOp::Neg => -a,
                UnaryOp::Not => !a,
                UnaryOp::Abs => a.abs(),
            };
            assert_eq!(result, cut(expected), "{op:?} {a}");
        }
    }
    let compare = [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];
    let all: Vec<Vec<bool>> = run_all(pairs, &compare, |b, op, x, y| b.compare(op, x, y, SPAN));
    for (op, results) in compare.into_iter().zip(all) {
        for ((a, b), result) in pairs.iter().zip(results) {
            let expected = match op {
                CompareOp::Eq => a == b,
                CompareOp::Ne => a != b,
                CompareOp::Lt => a < b,
                CompareOp::Le => a <= b,
                CompareOp::Gt => a > b,
                CompareOp::Ge => a >= b,
            };
            assert_eq!(result, expected, "{a:?} {op:?} {b:?}");
        }
    }
}

fn pairs<T: Copy>(values: &[T]) -> Vec<(T, T)> {
    values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b))).collect()
}

#[test]
fn all_pairs_of_int8() {
    let values: Vec<i8> = (i8::MIN..=i8::MAX).collect();
    check(&pairs(&values), 8, i8::MIN.into(), |value| value as i8);
}

#[test]
fn all_pairs_of_uint8() {
    let values: Vec<u8> = (u8::MIN..=u8::MAX).collect();
    check(&pairs(&values), 8, 0, |value| value as u8);
}

#[test]
fn edges_of_wider_types() {
    let edges = |minimum: i128, maximum: i128| -> Vec<i128> {
        let around = |value: i128| value - 3..=value + 3;
        let all = around(minimum).chain(around(0)).chain(around(maximum)).chain([7, 10, 16, 17, 63, 64, 1000, 46341]);
        all.filter(|value| (minimum..=maximum).contains(value)).collect()
    };
    macro_rules! wide {
        ($($ty:ty),*) => { $(
            let values: Vec<$ty> = edges(<$ty>::MIN.into(), <$ty>::MAX.into()).iter().map(|&v| v as $ty).collect();
            check(&pairs(&values), <$ty>::BITS, <$ty>::MIN.into(), |value| value as $ty);
        )* };
    }
    wide!(i16, u16, i32, u32, i64, u64);
}

/// Constant exponents become products.
#[test]
fn constant_exponents() {
    let values: Vec<(i32, i32)> = (-20..20).map(|value| (value, 0)).collect();
    let exponents: Vec<u32> = (0..24).collect();
    let all: Vec<Vec<i32>> = run_all(&values, &exponents, |b, exponent, x, _| {
        let constant = b.int(weft_artifact::Scalar::I32, exponent.into(), SPAN);
        b.binary(BinaryOp::Pow, x, constant, SPAN)
    });
    for (exponent, results) in exponents.into_iter().zip(all) {
        for ((base, _), result) in values.iter().zip(results) {
            assert_eq!(result, base.wrapping_pow(exponent), "{base} ** {exponent}");
        }
    }
}
