//! Conversions between all scalar types, on boundary values.

use super::{Element, run};
use crate::{backend::testing::SPAN, ir::Type};

/// A source or result of a conversion.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Bool(bool),
    Int(i128),
    Float(f64),
}

/// The result of `ExprKind::Convert` to an integer of `bits`.
fn to_int(value: Value, bits: u32, signed: bool) -> i128 {
    let (minimum, maximum) =
        if signed { (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1) } else { (0, (1_i128 << bits) - 1) };
    match value {
        Value::Bool(value) => value.into(),
        Value::Int(value) => value,
        Value::Float(value) if value.is_nan() => 0,
        // `as` truncates and saturates.
        Value::Float(value) if bits >= 32 => (value as i128).clamp(minimum, maximum),
        Value::Float(value) => i128::from(value as i32),
    }
}

fn to_float(value: Value) -> f64 {
    match value {
        Value::Bool(value) => value.into(),
        Value::Int(value) => value as f64,
        Value::Float(value) => value,
    }
}

fn to_float32(value: Value) -> f32 {
    match value {
        Value::Bool(value) => value.into(),
        // Convert directly to 32 bits: a conversion through 64 bits would round twice.
        Value::Int(value) => value as f32,
        Value::Float(value) => value as f32,
    }
}

fn check<T: Element>(values: &[T], known: impl Fn(T) -> Value) {
    let pairs: Vec<(T, T)> = values.iter().map(|&value| (value, value)).collect();
    macro_rules! ints {
        ($($ty:ty, $signed:literal);*) => { $({
            let results: Vec<$ty> = run(&pairs, |b, x, _| b.convert(x, Type::Scalar(<$ty>::SCALAR), SPAN));
            for (&value, result) in values.iter().zip(results) {
                let expected = to_int(known(value), <$ty>::BITS, $signed) as $ty;
                assert_eq!(result, expected, "{:?} to {}", known(value), stringify!($ty));
            }
        })* };
    }
    ints!(i8, true; i16, true; i32, true; i64, true; u8, false; u16, false; u32, false; u64, false);
    let results: Vec<f32> = run(&pairs, |b, x, _| b.convert(x, Type::Scalar(f32::SCALAR), SPAN));
    for (&value, result) in values.iter().zip(results) {
        let expected = to_float32(known(value));
        assert!(result.to_bits() == expected.to_bits() || expected.is_nan(), "{:?}: {result}", known(value));
    }
    let results: Vec<f64> = run(&pairs, |b, x, _| b.convert(x, Type::Scalar(f64::SCALAR), SPAN));
    for (&value, result) in values.iter().zip(results) {
        let expected = to_float(known(value));
        assert!(result.to_bits() == expected.to_bits() || expected.is_nan(), "{:?}: {result}", known(value));
    }
    let results: Vec<bool> = run(&pairs, |b, x, _| b.convert(x, Type::BOOL, SPAN));
    for (&value, result) in values.iter().zip(results) {
        let expected = match known(value) {
            Value::Bool(value) => value,
            Value::Int(value) => value != 0,
            Value::Float(value) => value != 0.0,
        };
        assert_eq!(result, expected, "{:?}", known(value));
    }
}

#[test]
fn from_integers() {
    macro_rules! ints {
        ($($ty:ty),*) => { $(
            let minimum = <$ty>::MIN;
            let all: Vec<$ty> = [0, 1, 2, 100, minimum, minimum + 1, <$ty>::MAX, <$ty>::MAX - 1, <$ty>::MAX / 2]
                .into_iter()
                .chain((0..<$ty>::BITS).map(|bit| (1_u128 << bit) as $ty))
                .chain((0..<$ty>::BITS).map(|bit| !((1_u128 << bit) as $ty)))
                .collect();
            check(&all, |value| Value::Int(value.into()));
        )* };
    }
    ints!(i8, i16, i32, i64, u8, u16, u32, u64);
}

#[test]
fn from_bool() {
    check(&[false, true], Value::Bool);
}

#[test]
fn from_floats() {
    let mut all =
        vec![0.0, -0.0, 0.1, 0.5, 0.999, 1.0, 1.5, -0.5, -1.0, -1.9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    for bit in [7, 8, 15, 16, 31, 32, 53, 62, 63, 64, 100] {
        let power = 2.0_f64.powi(bit);
        all.extend([power, power - 1.0, power + 1.0, -power, -power - 1.0, -power + 1.0, power * 1.5]);
    }
    all.extend([1e-40, 1e-310, f64::MAX, f64::MIN, 3.4e38, 3.5e38]);
    check(&all, Value::Float);
    let singles: Vec<f32> = all.iter().map(|&value| value as f32).collect();
    check(&singles, |value| Value::Float(value.into()));
}
