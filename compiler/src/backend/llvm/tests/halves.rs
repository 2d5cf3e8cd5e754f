//! 16-bit floats on the host, on a CPU that converts `half` and on one that does not, compared with the exact result
//! rounded once.

use weft_artifact::Scalar;

use super::{Element, run_on};
use crate::{
    backend::testing::{SPAN, cpu},
    ir::{BinaryOp, CompareOp, MathFn, Type, UnaryOp},
    request::HostCpu,
};

/// The bits of a `float16` or a `bfloat16`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct F16(u16);
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct BF16(u16);

trait Half: Element + std::fmt::Debug {
    fn of(bits: u16) -> Self;
    fn bits(self) -> u16;

    fn value(self) -> f64 {
        Self::SCALAR.float_of_bits(self.bits().into())
    }
}

impl Element for F16 {
    const SCALAR: Scalar = Scalar::F16;
}

impl Element for BF16 {
    const SCALAR: Scalar = Scalar::BF16;
}

impl Half for F16 {
    fn of(bits: u16) -> Self {
        Self(bits)
    }

    fn bits(self) -> u16 {
        self.0
    }
}

impl Half for BF16 {
    fn of(bits: u16) -> Self {
        Self(bits)
    }

    fn bits(self) -> u16 {
        self.0
    }
}

/// This machine's CPU, and the baseline of x86-64, whose code must not call library functions for conversions.
fn cpus() -> [HostCpu; 2] {
    let ours = HostCpu::clone(&cpu());
    let first = HostCpu { name: "x86-64".to_owned(), features: String::new(), ..ours.clone() };
    [ours, first]
}

/// Whether two numbers are equal, including the sign of zero. All NaNs count as equal.
fn same<T: Half>(result: T, expected: f64) -> bool {
    let value = result.value();
    (value.is_nan() && expected.is_nan()) || u64::from(result.bits()) == T::SCALAR.float_bits(expected)
}

/// All bit patterns, each paired with another number.
fn pairs<T: Half>() -> Vec<(T, T)> {
    let mut pairs: Vec<(T, T)> =
        (0..=u16::MAX).map(|bits| (T::of(bits), T::of(bits.wrapping_mul(40503).wrapping_add(977)))).collect();
    let one = T::SCALAR.float_bits(1.0) as u16;
    let infinity = T::SCALAR.float_bits(f64::INFINITY) as u16;
    let edges =
        [0, 1, 2, 0x3ff, 0x7f, 0x80, one - 1, one, one + 1, 0x400, infinity - 1, infinity, infinity + 1, 0x7fff];
    let edges = || edges.into_iter().flat_map(|bits| [bits, bits | 0x8000]);
    pairs.extend(edges().flat_map(|a| edges().map(move |b| (T::of(a), T::of(b)))));
    pairs
}

#[expect(clippy::float_cmp, reason = "the model of min, max and the comparisons")]
#[expect(clippy::wildcard_enum_match_arm, reason = "the operators under test")]
fn operators<T: Half>() {
    let model = |op: BinaryOp, a: f64, b: f64| match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Min if a == b && a.is_sign_negative() => a,
        BinaryOp::Min => b.min(a),
        _ if a == b && a.is_sign_negative() => b,
        _ => a.max(b),
    };
    let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Min, BinaryOp::Max];
    for cpu in cpus() {
        let all = run_on::<T, T, T, _>(&cpu, &pairs(), &ops, |b, op, x, y| b.binary(op, x, y, SPAN));
        for (op, results) in ops.iter().zip(all) {
            for ((a, b), result) in pairs::<T>().into_iter().zip(results) {
                let expected = model(*op, a.value(), b.value());
                assert!(same(result, expected), "{}: {a:?} {op:?} {b:?}: {result:?}, not {expected}", cpu.name);
            }
        }
        let ops = [UnaryOp::Neg, UnaryOp::Abs];
        let all = run_on::<T, T, T, _>(&cpu, &pairs(), &ops, |b, op, x, _| b.unary(op, x, SPAN));
        for (a, (neg, abs)) in pairs::<T>().into_iter().zip(all[0].iter().zip(&all[1])) {
            assert_eq!((neg.bits(), abs.bits()), (a.0.bits() ^ 0x8000, a.0.bits() & 0x7fff));
        }
        let ops = [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];
        let all = run_on::<T, T, bool, _>(&cpu, &pairs(), &ops, |b, op, x, y| b.compare(op, x, y, SPAN));
        for (index, (a, b)) in pairs::<T>().into_iter().enumerate() {
            let (a, b) = (a.value(), b.value());
            let expected = [a == b, a != b, a < b, a <= b, a > b, a >= b];
            assert_eq!(all.iter().map(|results| results[index]).collect::<Vec<_>>(), expected, "{a} {b}");
        }
    }
}

#[test]
fn operators_of_float16() {
    operators::<F16>();
}

#[test]
fn operators_of_bfloat16() {
    operators::<BF16>();
}

/// The midpoint between each number and the next, and the values next to it.
fn middles<T: Half>() -> Vec<f64> {
    let infinity = T::SCALAR.float_bits(f64::INFINITY) as u16;
    let mut all = vec![f64::NAN, f64::INFINITY, 0.0, 5e-324, 1e-300, 1e300, f64::MAX];
    for bits in 0..infinity - 1 {
        let middle = f64::midpoint(T::of(bits).value(), T::of(bits + 1).value());
        all.extend([middle, middle.next_down(), middle.next_up(), T::of(bits).value()]);
    }
    let (last, before) = (T::of(infinity - 1).value(), T::of(infinity - 2).value());
    let beyond = last + (last - before) / 2.0;
    all.extend([last, beyond, beyond.next_down(), beyond.next_up()]);
    let negative: Vec<f64> = all.iter().map(|value| -value).collect();
    all.extend(negative);
    all
}

fn conversions<T: Half>() {
    let half = Type::Scalar(T::SCALAR);
    for cpu in cpus() {
        let doubles: Vec<(f64, f64)> = middles::<T>().into_iter().map(|value| (value, value)).collect();
        let results = run_on::<f64, f64, T, _>(&cpu, &doubles, &[()], |b, (), x, _| b.convert(x, half, SPAN));
        for ((value, _), result) in doubles.iter().zip(&results[0]) {
            assert!(same(*result, *value), "{}: {value:e} gives {result:?}", cpu.name);
        }
        let singles: Vec<(f32, f32)> = doubles
            .iter()
            .map(|(value, _)| *value as f32)
            .flat_map(|value| [value, value.next_up(), value.next_down()])
            .map(|value| (value, value))
            .collect();
        let results = run_on::<f32, f32, T, _>(&cpu, &singles, &[()], |b, (), x, _| b.convert(x, half, SPAN));
        for ((value, _), result) in singles.iter().zip(&results[0]) {
            assert!(same(*result, f64::from(*value)), "{}: {value:e} gives {result:?}", cpu.name);
        }
        let results =
            run_on::<T, T, f32, _>(&cpu, &pairs(), &[()], |b, (), x, _| b.convert(x, Type::Scalar(Scalar::F32), SPAN));
        for ((value, _), result) in pairs::<T>().iter().zip(&results[0]) {
            let (value, result) = (value.value(), f64::from(*result));
            assert!((value.is_nan() && result.is_nan()) || value.to_bits() == result.to_bits(), "{value:e} {result:e}");
        }
        let results = run_on::<T, T, i64, _>(&cpu, &pairs(), &[()], |b, (), x, _| b.convert(x, Type::I64, SPAN));
        for ((value, _), result) in pairs::<T>().iter().zip(&results[0]) {
            assert_eq!(*result, value.value() as i64);
        }
    }
}

#[test]
fn conversions_of_float16() {
    conversions::<F16>();
}

#[test]
fn conversions_of_bfloat16() {
    conversions::<BF16>();
}

fn integers<T: Half, I: Element + Into<i128>>(values: &[I]) {
    let pairs: Vec<(I, I)> = values.iter().map(|&value| (value, value)).collect();
    for cpu in cpus() {
        let half = Type::Scalar(T::SCALAR);
        let results = run_on::<I, I, T, _>(&cpu, &pairs, &[()], |b, (), x, _| b.convert(x, half, SPAN));
        for (value, result) in values.iter().zip(&results[0]) {
            let value: i128 = (*value).into();
            assert!(same(*result, T::SCALAR.nearest_int(value)), "{}: {value} gives {result:?}", cpu.name);
        }
    }
}

/// Ties of every magnitude, and the integers closest to them.
#[test]
fn integers_round_once() {
    let ties = |bits: u32| {
        (0..bits).flat_map(move |shift| {
            [0x81_i128, 0x101, 0x103, 0x801, 0x803, 0x1001].into_iter().map(move |tie| tie << shift)
        })
    };
    let beside = |tie: i128| [tie - 1, tie, tie + 1, tie + (tie >> 20), -tie - 1, -tie, 1 - tie];
    let signed: Vec<i64> = ties(52).flat_map(beside).filter_map(|value| value.try_into().ok()).collect();
    let unsigned: Vec<u64> = ties(56).flat_map(beside).filter_map(|value| value.try_into().ok()).collect();
    let words: Vec<i32> = ties(24).flat_map(beside).filter_map(|value| value.try_into().ok()).collect();
    let shorts: Vec<u16> = (0..=u16::MAX).collect();
    integers::<F16, i64>(&signed);
    integers::<F16, u64>(&unsigned);
    integers::<F16, u16>(&shorts);
    integers::<BF16, i64>(&signed);
    integers::<BF16, u64>(&unsigned);
    integers::<BF16, i32>(&words);
    integers::<BF16, u16>(&shorts);
}

/// An exact fused multiply-add, computed in units of the smallest product.
fn fused<T: Half>(a: T, b: T, c: T, unit: i32) -> f64 {
    let whole = |value: f64, unit: i32| {
        let scaled = value * 2_f64.powi(-unit);
        assert_eq!(scaled.to_bits(), scaled.trunc().to_bits());
        scaled as i128
    };
    let exact = whole(a.value(), unit / 2) * whole(b.value(), unit / 2) + whole(c.value(), unit);
    // Round to odd: bits that do not fit a float64 set the last bit.
    let excess = (128 - exact.unsigned_abs().leading_zeros()).saturating_sub(53);
    let lost = exact & ((1 << excess) - 1) != 0;
    ((exact >> excess | i128::from(lost)) << excess) as f64 * 2_f64.powi(unit)
}

fn fused_products<T: Half>(unit: i32, most: f64) {
    let small = |value: T| value.value().abs() <= most && value.value().abs() >= 2_f64.powi(unit / 2) * 128.0;
    let operands: Vec<(T, T)> = pairs().into_iter().filter(|&(a, b)| small(a) && small(b)).collect();
    assert!(operands.len() > 2_000);
    let float = Type::Scalar(T::SCALAR);
    // Compared with the third operand, products are small or large.
    let thirds = [1.0, -1.0, 1024.0, 2_f64.powi(-10), -(2_f64.powi(-20)), -1.75 * 2_f64.powi(15)];
    for cpu in cpus() {
        let all = run_on::<T, T, T, _>(&cpu, &operands, &thirds, |b, third, x, y| {
            let third = b.float(T::SCALAR, third, SPAN);
            b.math(MathFn::Fma, vec![x, y, third], float, SPAN)
        });
        for (third, results) in thirds.iter().zip(all) {
            for (&(a, b), result) in operands.iter().zip(results) {
                let third = T::of(T::SCALAR.float_bits(*third) as u16);
                let expected = fused(a, b, third, unit);
                let zero = expected == 0.0 && result.value() == 0.0;
                assert!(zero || same(result, expected), "{}: {a:?} {b:?} {third:?}: {result:?} {expected:e}", cpu.name);
            }
        }
    }
}

#[test]
fn fused_products_round_once() {
    fused_products::<F16>(-48, 65504.0);
    fused_products::<BF16>(-60, 2_f64.powi(28));
}

#[test]
fn bits_are_read_and_written() {
    for cpu in cpus() {
        let word = Type::Scalar(Scalar::U16);
        let results =
            run_on::<F16, F16, u16, _>(&cpu, &pairs(), &[()], |b, (), x, _| b.math(MathFn::Bits, vec![x], word, SPAN));
        assert!(pairs::<F16>().iter().zip(&results[0]).all(|((x, _), bits)| x.0 == *bits));
        let words: Vec<(u16, u16)> = (0..=u16::MAX).map(|bits| (bits, bits)).collect();
        let half = Type::Scalar(Scalar::BF16);
        let results =
            run_on::<u16, u16, BF16, _>(&cpu, &words, &[()], |b, (), x, _| b.math(MathFn::OfBits, vec![x], half, SPAN));
        assert!(words.iter().zip(&results[0]).all(|((bits, _), x)| x.0 == *bits));
        let doubles = [(1.5, 0.0), (-0.0, 0.0), (f64::INFINITY, 0.0)];
        let long = Type::Scalar(Scalar::U64);
        let results =
            run_on::<f64, f64, u64, _>(&cpu, &doubles, &[()], |b, (), x, _| b.math(MathFn::Bits, vec![x], long, SPAN));
        assert_eq!(results[0], doubles.map(|(x, _)| x.to_bits()));
    }
}
