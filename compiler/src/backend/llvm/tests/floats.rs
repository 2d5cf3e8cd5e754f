//! Float operators; `//` and `%` as CPython computes them.

#![expect(clippy::wildcard_enum_match_arm, reason = "a table of the cases that differ")]

use super::run;
use crate::{
    backend::testing::SPAN,
    ir::{BinaryOp, CompareOp, UnaryOp},
};

const EDGES: [f64; 25] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    0.1,
    0.3,
    -0.7,
    2.5,
    3.0,
    -3.0,
    7.0,
    10.0,
    1e-300,
    -1e-300,
    5e-324,
    1e300,
    -1e300,
    1e16,
    123_456.789,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    f64::MAX,
];

fn pairs() -> Vec<(f64, f64)> {
    EDGES.iter().flat_map(|&a| EDGES.iter().map(move |&b| (a, b))).collect()
}

/// CPython's `float_divmod`, without its error for a division by zero.
fn divmod(a: f64, b: f64) -> (f64, f64) {
    if b == 0.0 {
        return (a / b, f64::NAN);
    }
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest == 0.0 {
        rest = 0.0_f64.copysign(b);
    } else if (b < 0.0) != (rest < 0.0) {
        rest += b;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0.0_f64.copysign(a / b), rest);
    }
    let floor = quotient.floor();
    (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, rest)
}

/// Whether two floats are equal, including the sign of zero. All NaNs count as equal.
fn same(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits()
}

#[test]
#[expect(clippy::float_cmp, reason = "the model of min and max tests equality, zeros of both signs among them")]
fn operators() {
    let ops = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::FloorDiv,
        BinaryOp::FloorMod,
        BinaryOp::Min,
        BinaryOp::Max,
    ];
    for op in ops {
        let model = |a: f64, b: f64| match op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div => a / b,
            BinaryOp::FloorDiv => divmod(a, b).0,
            BinaryOp::FloorMod => divmod(a, b).1,
            // IEEE 754-2019 minimumNumber and maximumNumber: a NaN operand is ignored, -0 < +0.
            BinaryOp::Min if a.is_nan() || b.is_nan() => a.min(b),
            BinaryOp::Min if a == b => {
                if a.is_sign_negative() {
                    a
                } else {
                    b
                }
            }
            BinaryOp::Min => a.min(b),
            _ if a.is_nan() || b.is_nan() => a.max(b),
            _ if a == b => {
                if a.is_sign_negative() {
                    b
                } else {
                    a
                }
            }
            _ => a.max(b),
        };
        let results: Vec<f64> = run(&pairs(), |b, x, y| b.binary(op, x, y, SPAN));
        for (&(a, b), result) in pairs().iter().zip(results) {
            assert!(same(result, model(a, b)), "{a} {op:?} {b}: {result}, not {}", model(a, b));
        }
    }
}

/// The remainder of float32 numbers is exact, although intermediate results are rounded to float32.
#[test]
fn remainder_of_float32() {
    let edges = [0.0_f32, -0.0, 1.0, -1.0, 0.1, 0.7, -2.5, 3.0, 1e-30, 1e30, 16_777_216.0, 1e-45, f32::INFINITY];
    let pairs: Vec<(f32, f32)> = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b))).collect();
    let results: Vec<f32> = run(&pairs, |b, x, y| b.binary(BinaryOp::FloorMod, x, y, SPAN));
    for (&(a, b), result) in pairs.iter().zip(results) {
        let mut expected = if b == 0.0 { f32::NAN } else { a % b };
        if expected == 0.0 {
            expected = 0.0_f32.copysign(b);
        } else if (b < 0.0) != (expected < 0.0) {
            expected += b;
        }
        let same = (result.is_nan() && expected.is_nan()) || result.to_bits() == expected.to_bits();
        assert!(same, "{a} % {b}: {result}, not {expected}");
    }
}

#[test]
#[expect(clippy::float_cmp, reason = "the comparison itself is tested")]
fn comparisons_are_ordered_but_for_not_equal() {
    for op in [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge] {
        let results: Vec<bool> = run(&pairs(), |b, x, y| b.compare(op, x, y, SPAN));
        for ((a, b), result) in pairs().iter().zip(results) {
            let expected = match op {
                CompareOp::Eq => a == b,
                CompareOp::Ne => a != b,
                CompareOp::Lt => a < b,
                CompareOp::Le => a <= b,
                CompareOp::Gt => a > b,
                CompareOp::Ge => a >= b,
            };
            assert_eq!(result, expected, "{a} {op:?} {b}");
        }
    }
}

#[test]
fn signs() {
    for op in [UnaryOp::Neg, UnaryOp::Abs] {
        let results: Vec<f64> = run(&pairs(), |b, x, _| b.unary(op, x, SPAN));
        for (&(a, _), result) in pairs().iter().zip(results) {
            let expected = if op == UnaryOp::Neg { -a } else { a.abs() };
            assert!(same(result, expected), "{op:?} {a}: {result}");
        }
    }
}
