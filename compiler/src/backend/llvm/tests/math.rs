//! Math functions, from the embedded libclc and inline, compared with the C library of this machine.

#![expect(clippy::wildcard_enum_match_arm, reason = "a table of the cases that differ")]

use super::run;
use crate::{
    backend::testing::SPAN,
    ir::{MathFn, Type},
};

// The C library, with which every Rust program on this platform is linked.
unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    safe fn tgamma(x: f64) -> f64;
    safe fn lgamma(x: f64) -> f64;
    safe fn nextafter(x: f64, y: f64) -> f64;
    safe fn nextafterf(x: f32, y: f32) -> f32;
    safe fn remainder(x: f64, y: f64) -> f64;
    safe fn cbrt(x: f64) -> f64;
    safe fn frexp(x: f64, exponent: &mut i32) -> f64;
    safe fn ldexp(x: f64, exponent: i32) -> f64;
    safe fn acosh(x: f64) -> f64;
    safe fn asinh(x: f64) -> f64;
    safe fn atanh(x: f64) -> f64;
}

/// Computes the function in float64.
fn reference(function: MathFn, x: f64, y: f64) -> f64 {
    match function {
        MathFn::Acos => x.acos(),
        MathFn::Acosh => acosh(x),
        MathFn::Asin => x.asin(),
        MathFn::Asinh => asinh(x),
        MathFn::Atan => x.atan(),
        MathFn::Atan2 => x.atan2(y),
        MathFn::Atanh => atanh(x),
        MathFn::Cbrt => cbrt(x),
        MathFn::Ceil => x.ceil(),
        MathFn::Copysign => x.copysign(y),
        MathFn::Cos => x.cos(),
        MathFn::Cosh => x.cosh(),
        MathFn::Erf => erf(x),
        MathFn::Erfc => erfc(x),
        MathFn::Exp => x.exp(),
        MathFn::Exp2 => x.exp2(),
        MathFn::Expm1 => x.exp_m1(),
        MathFn::Floor => x.floor(),
        MathFn::Fmod => x % y,
        MathFn::Gamma => tgamma(x),
        MathFn::Hypot => x.hypot(y),
        MathFn::Lgamma => lgamma(x),
        MathFn::Log => x.ln(),
        MathFn::Log10 => x.log10(),
        MathFn::Log1p => x.ln_1p(),
        MathFn::Log2 => x.log2(),
        MathFn::Nextafter => nextafter(x, y),
        MathFn::Pow => x.powf(y),
        MathFn::Remainder => remainder(x, y),
        MathFn::RoundEven => x.round_ties_even(),
        MathFn::Sin => x.sin(),
        MathFn::Sinh => x.sinh(),
        MathFn::Sqrt => x.sqrt(),
        MathFn::Tan => x.tan(),
        MathFn::Tanh => x.tanh(),
        MathFn::Trunc => x.trunc(),
        _ => panic!("{} has its own test", function.name()),
    }
}

/// The largest errors in units of the last place of the result, for float32 and float64. Functions that are not listed
/// are exact.
fn tolerance(function: MathFn) -> (f64, f64) {
    match function {
        MathFn::Gamma => (1.0, 12.0),
        MathFn::Lgamma => (1.0, 64.0),
        MathFn::Erf | MathFn::Erfc => (16.0, 16.0),
        MathFn::Acos
        | MathFn::Acosh
        | MathFn::Asin
        | MathFn::Asinh
        | MathFn::Atan
        | MathFn::Atan2
        | MathFn::Atanh
        | MathFn::Cbrt
        | MathFn::Cos
        | MathFn::Cosh
        | MathFn::Exp
        | MathFn::Exp2
        | MathFn::Expm1
        | MathFn::Hypot
        | MathFn::Log
        | MathFn::Log10
        | MathFn::Log1p
        | MathFn::Log2
        | MathFn::Pow
        | MathFn::Sin
        | MathFn::Sinh
        | MathFn::Tan
        | MathFn::Tanh => (5.0, 5.0),
        _ => (0.0, 0.0),
    }
}

fn arguments() -> Vec<(f64, f64)> {
    let mut values = vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-20, -1e-20, 1e20, -1e20, 1e6];
    let mut value = -20.0;
    while value < 20.0 {
        values.push(value);
        value += 0.37;
    }
    values.extend([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, -0.5, -1.0, -2.0, -2.5, 0.999, 1.001, 0.25, 100.0, 170.0, -100.0]);
    values.extend([-200.5, -201.5, -100.5, -87.9, -127.5, -740.0, 1e-40, -1e-40, 5e-324, 1e-310, 1e30, 1e100, -1e100]);
    values.iter().flat_map(|&x| values.iter().map(move |&y| (x, y))).collect()
}

/// Whether `got` is within `ulps` of `want`. Infinities, NaNs and the signs of zeros must be equal.
fn close(got: f64, want: f64, ulps: f64, unit: f64) -> bool {
    if want.is_nan() || got.is_nan() {
        return want.is_nan() && got.is_nan();
    }
    if ulps == 0.0 || (got == 0.0 && want == 0.0) {
        return got.to_bits() == want.to_bits();
    }
    got.to_bits() == want.to_bits() || (got - want).abs() <= ulps * unit
}

fn one_type_functions() -> impl Iterator<Item = MathFn> {
    MathFn::ALL.iter().copied().filter(|function| function.is_usual()).filter(|function| {
        !matches!(
            function,
            MathFn::Bits
                | MathFn::OfBits
                | MathFn::CanonicalNan
                | MathFn::Fma
                | MathFn::Ldexp
                | MathFn::FrexpMantissa
                | MathFn::FrexpExponent
                | MathFn::Isfinite
                | MathFn::Isinf
                | MathFn::Isnan
        )
    })
}

#[test]
fn float64() {
    let mut faults = Vec::new();
    for function in one_type_functions() {
        let pairs = arguments();
        let results: Vec<f64> = run(&pairs, |b, x, y| {
            let args = if function.arity() == 1 { vec![x] } else { vec![x, y] };
            b.math(function, args, Type::Scalar(weft_artifact::Scalar::F64), SPAN)
        });
        for (&(x, y), got) in pairs.iter().zip(results) {
            let want = reference(function, x, y);
            let unit = (want.abs().to_bits() + 1).min(f64::MAX.to_bits());
            let unit = (f64::from_bits(unit) - want.abs()).max(f64::from_bits(1));
            if !close(got, want, tolerance(function).1, unit) {
                faults.push(format!("{}({x}, {y}) = {got}, not {want}", function.name()));
                break;
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn float32() {
    let mut faults = Vec::new();
    for function in one_type_functions() {
        let pairs: Vec<(f32, f32)> = arguments().iter().map(|&(x, y)| (x as f32, y as f32)).collect();
        let results: Vec<f32> = run(&pairs, |b, x, y| {
            let args = if function.arity() == 1 { vec![x] } else { vec![x, y] };
            b.math(function, args, Type::Scalar(weft_artifact::Scalar::F32), SPAN)
        });
        for (&(x, y), got) in pairs.iter().zip(results) {
            let want = if function == MathFn::Nextafter {
                nextafterf(x, y)
            } else {
                reference(function, x.into(), y.into()) as f32
            };
            let unit = (f32::from_bits((want.abs().to_bits() + 1).min(f32::MAX.to_bits())) - want.abs())
                .max(f32::from_bits(1));
            if !close(got.into(), want.into(), tolerance(function).0, unit.into()) {
                faults.push(format!("{}({x}, {y}) = {got}, not {want}", function.name()));
                break;
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn classes() {
    let pairs = arguments();
    for function in [MathFn::Isfinite, MathFn::Isinf, MathFn::Isnan] {
        let results: Vec<bool> = run(&pairs, |b, x, _| b.math(function, vec![x], Type::BOOL, SPAN));
        for (&(x, _), got) in pairs.iter().zip(results) {
            let want = match function {
                MathFn::Isfinite => x.is_finite(),
                MathFn::Isinf => x.is_infinite(),
                _ => x.is_nan(),
            };
            assert_eq!(got, want, "{}({x})", function.name());
        }
    }
}

#[test]
fn mantissa_and_exponent() {
    let mut values: Vec<(f64, i32)> = arguments().iter().map(|&(x, _)| (x, 0)).collect();
    values.extend([5e-324, -3e-310, 2.2e-308, f64::MIN_POSITIVE, f64::MAX, -f64::MAX].map(|x| (x, 0)));
    let mantissas: Vec<f64> =
        run(&values, |b, x, _| b.math(MathFn::FrexpMantissa, vec![x], Type::Scalar(weft_artifact::Scalar::F64), SPAN));
    let exponents: Vec<i32> = run(&values, |b, x, _| b.math(MathFn::FrexpExponent, vec![x], Type::I32, SPAN));
    for ((&(x, _), mantissa), exponent) in values.iter().zip(mantissas).zip(exponents) {
        let mut want_exponent = 0;
        let want = frexp(x, &mut want_exponent);
        assert!(mantissa.to_bits() == want.to_bits() || x.is_nan(), "frexp({x}) = {mantissa}, not {want}");
        if x.is_finite() {
            assert_eq!(exponent, want_exponent, "frexp({x})");
        } else {
            assert_eq!(exponent, 0, "frexp({x})");
        }
    }
    let singles: Vec<(f32, i32)> = [1e-45_f32, 1e-38, 1.0, -0.75, 3e38, 0.0].map(|x| (x, 0)).to_vec();
    let mantissas: Vec<f32> =
        run(&singles, |b, x, _| b.math(MathFn::FrexpMantissa, vec![x], Type::Scalar(weft_artifact::Scalar::F32), SPAN));
    let exponents: Vec<i32> = run(&singles, |b, x, _| b.math(MathFn::FrexpExponent, vec![x], Type::I32, SPAN));
    for ((&(x, _), mantissa), exponent) in singles.iter().zip(mantissas).zip(exponents) {
        let mut want_exponent = 0;
        let want = frexp(x.into(), &mut want_exponent);
        assert_eq!((f64::from(mantissa), exponent), (want, want_exponent), "frexp({x})");
    }
}

#[test]
fn scaling_by_powers_of_two() {
    let mut pairs = Vec::new();
    for x in [0.0, -0.0, 1.0, -1.5, 0.1, 1e300, 5e-324, 3e-310, f64::INFINITY, f64::NAN] {
        for exponent in [0, 1, -1, 10, -10, 52, 1000, -1000, 1023, -1074, 2000, -2200, i32::MAX, i32::MIN] {
            pairs.push((x, exponent));
        }
    }
    let results: Vec<f64> =
        run(&pairs, |b, x, y| b.math(MathFn::Ldexp, vec![x, y], Type::Scalar(weft_artifact::Scalar::F64), SPAN));
    for (&(x, exponent), got) in pairs.iter().zip(results) {
        let want = ldexp(x, exponent);
        assert!(got.to_bits() == want.to_bits() || want.is_nan(), "ldexp({x}, {exponent}) = {got}, not {want}");
    }
}

/// Constant exponents that are computed without a logarithm.
#[test]
fn powers_with_constant_exponents() {
    let pairs: Vec<(f64, f64)> = arguments().iter().map(|&(x, _)| (x, 0.0)).collect();
    let exponents = [0.5, 1.0, 2.0, 3.0, -1.0, 0.0, 2.5];
    let all: Vec<Vec<f64>> = super::run_all(&pairs, &exponents, |b, exponent, x, _| {
        let exponent = b.float(weft_artifact::Scalar::F64, exponent, SPAN);
        b.math(MathFn::Pow, vec![x, exponent], Type::Scalar(weft_artifact::Scalar::F64), SPAN)
    });
    for (exponent, results) in exponents.into_iter().zip(all) {
        for (&(x, _), got) in pairs.iter().zip(results) {
            let want = x.powf(exponent);
            let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(
                same || (got - want).abs() <= want.abs() * 4.0 * f64::EPSILON,
                "{x} ** {exponent} = {got}, not {want}"
            );
        }
    }
}

/// `gamma` of an integer is a factorial, to the last digit.
#[test]
fn factorials() {
    let pairs: Vec<(f64, f64)> = (1..=23).map(|n| (f64::from(n), 0.0)).collect();
    let ty = Type::Scalar(weft_artifact::Scalar::F64);
    let results: Vec<f64> = run(&pairs, |b, x, _| b.math(MathFn::Gamma, vec![x], ty, SPAN));
    let mut factorial = 1.0_f64;
    for (n, got) in results.into_iter().enumerate() {
        assert_eq!(got.to_bits(), factorial.to_bits(), "gamma({})", n + 1);
        factorial *= n as f64 + 1.0;
    }
}

#[test]
fn fused() {
    let pairs = [(0.1_f64, 10.0_f64), (1e16, 1.0 + 1e-15), (3.0, -3.0)];
    let results: Vec<f64> = run(&pairs, |b, x, y| {
        let minus_one = b.float(weft_artifact::Scalar::F64, -1.0, SPAN);
        b.math(MathFn::Fma, vec![x, y, minus_one], Type::Scalar(weft_artifact::Scalar::F64), SPAN)
    });
    for (&(x, y), got) in pairs.iter().zip(results) {
        assert_eq!(got.to_bits(), x.mul_add(y, -1.0).to_bits(), "{x} * {y} - 1");
    }
}
