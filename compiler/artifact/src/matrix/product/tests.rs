//! Products of single elements: the fused sum, its rounding, and special values. `tests/python/conformance/` compares
//! whole matrices with a GPU's.

use super::{MatrixRules, product};
use crate::matrix::{MatrixKind, MatrixTile};

/// The first element of `a * b + c` for matrices whose first row and column are these numbers and otherwise zero.
fn element(kind: MatrixKind, a: &[u64], b: &[u64], c: u64) -> u64 {
    element_of(MatrixRules::Cc9, 32, kind, a, b, c)
}

/// The same by other rules, for a tile of this number of threads.
fn element_of(rules: MatrixRules, threads: i128, kind: MatrixKind, a: &[u64], b: &[u64], c: u64) -> u64 {
    let [rows, n, k] = kind.instruction().map(i128::from);
    let tile = MatrixTile::new([rows * threads / 32, n, k], kind.names(), threads).expect("a tile");
    let [m, n, k] = tile.of_warp().shape().map(usize::from);
    let (mut left, mut right, mut out) = (vec![0; m * k], vec![0; n * k], vec![0; m * n]);
    left[..a.len()].copy_from_slice(a);
    right[..b.len()].copy_from_slice(b);
    out[0] = c;
    product(rules, tile, &left, &right, &mut out);
    out[0]
}

fn float(value: f32) -> u64 {
    value.to_bits().into()
}

const ONE: u64 = 0x3C00;
const INFINITE: u64 = 0x7C00;
const F16: MatrixKind = MatrixKind::F16;

#[test]
fn terms_are_cut_below_the_largest_exponent() {
    // 2^-24 is the smallest subnormal number.
    assert_eq!(element(F16, &[ONE, 1], &[ONE, ONE], 0), float(1.0));
    assert_eq!(element(F16, &[ONE, 1, 1], &[ONE, ONE, ONE], 0), float(1.0 + f32::EPSILON));
    // A term below 2^-25 of the largest one is lost, also where the others cancel.
    assert_eq!(element(F16, &[ONE, 1], &[ONE, 0x3400], float(-1.0)), 0);
    assert_eq!(element(F16, &[ONE, 1], &[ONE, 0x3800], float(-1.0)), float(2.0_f32.powi(-25)));
    // The sum is cut toward zero.
    let [just_below, negative] = [1.0 - f32::EPSILON / 2.0, -1.0 + f32::EPSILON / 2.0];
    assert_eq!(element(F16, &[ONE, 1], &[ONE, 0xB800], 0), float(just_below));
    assert_eq!(element(F16, &[ONE, 1], &[0xBC00, 0x3800], 0), float(negative));
}

#[test]
fn special_values() {
    const NAN: u64 = 0x7FFF_FFFF;
    assert_eq!(element(F16, &[INFINITE], &[ONE], 0), float(f32::INFINITY));
    assert_eq!(element(F16, &[INFINITE], &[0xBC00], 0), float(f32::NEG_INFINITY));
    assert_eq!(element(F16, &[INFINITE], &[0], 0), NAN);
    assert_eq!(element(F16, &[INFINITE], &[ONE], float(f32::NEG_INFINITY)), NAN);
    assert_eq!(element(F16, &[ONE], &[ONE], 0xFFC0_0001), NAN);
    assert_eq!(element(F16, &[0x7BFF; 16], &[0x7BFF; 16], float(f32::MAX)), float(f32::MAX));
    assert_eq!(element(MatrixKind::BF16, &[0x7F7F], &[0x7F7F], 0), float(f32::INFINITY));
    // A zero is positive.
    assert_eq!(element(F16, &[0x8000], &[ONE], float(-0.0)), 0);
    // The lower 13 bits of a tf32 are not read: this NaN is an infinity.
    assert_eq!(element(MatrixKind::TF32, &[0x7F80_0001], &[float(1.0)], 0), float(f32::INFINITY));
}

#[test]
fn floats_of_8_bits_of_a_warpgroup_have_13_bits() {
    use MatrixKind::{E4M3, E4M3E5M2, E5M2, E5M2E4M3};
    const ONE_4: u64 = 0x38;
    const ONE_5: u64 = 0x3C;
    let element = |kind, a: &[u64], b: &[u64], c| element_of(MatrixRules::Cc9, 128, kind, a, b, c);
    let sum = |low: i32| float(1.0 + 2.0_f32.powi(low));
    // 2^-9 and 2^-16 are the smallest subnormal numbers.
    assert_eq!(element(E4M3, &[ONE_4, 1], &[ONE_4, ONE_4], 0), sum(-9));
    assert_eq!(element(E5M2, &[ONE_5, 0x0C], &[ONE_5, ONE_5], 0), sum(-12));
    assert_eq!(element(E5M2, &[ONE_5, 0x08], &[ONE_5, ONE_5], 0), sum(-13));
    assert_eq!(element(E5M2, &[ONE_5, 0x04], &[ONE_5, ONE_5], 0), float(1.0));
    assert_eq!(element(E4M3E5M2, &[ONE_4, 0x40], &[ONE_5, 0x40], 0), float(5.0));
    assert_eq!(element(E5M2E4M3, &[ONE_5, 0x40], &[ONE_4, 0x40], 0), float(5.0));
    // The accumulator loses its low bits, too.
    assert_eq!(element(E4M3, &[0], &[0], float(1.0 + f32::EPSILON)), float(1.0));
    assert_eq!(element(E4M3, &[0x7E], &[ONE_4], 0), float(448.0));
    assert_eq!(element(E4M3, &[0x7F], &[ONE_4], 0), 0x7FFF_FFFF);
    assert_eq!(element(E5M2, &[0x7C], &[0xBC], 0), float(f32::NEG_INFINITY));
}

#[test]
fn floats_of_8_bits_of_a_warp_are_two_products_and_an_addition() {
    use MatrixKind::{E4M3, E4M3E5M2, E5M2};
    const ONE_4: u64 = 0x38;
    const ONE_5: u64 = 0x3C;
    const LARGEST: u64 = 0x7B;
    // The accumulator is added last, and rounded to nearest even.
    assert_eq!(element(E4M3, &[ONE_4], &[ONE_4], float(f32::EPSILON / 2.0)), float(1.0));
    assert_eq!(element(E4M3, &[ONE_4], &[ONE_4], float(f32::EPSILON * 0.75)), float(1.0 + f32::EPSILON));
    assert_eq!(element(E4M3, &[0], &[0], float(1.0 + f32::EPSILON)), float(1.0 + f32::EPSILON));
    // 2^15 * 2^15 and the square of the smallest number: the small term is lost within a product of pairs.
    let (high, low) = (0x78, 0x01);
    assert_eq!(element(E5M2, &[high, low], &[high, low], float(-(2.0_f32.powi(30)))), 0);
    assert_eq!(element(E5M2, &[high, 0, low, 0, high | 0x80], &[high, 0, low, 0, high], 0), float(2.0_f32.powi(-32)));
    assert_eq!(element(E5M2, &[LARGEST], &[LARGEST], 0), float(57344.0 * 57344.0));
    assert_eq!(element(E4M3E5M2, &[ONE_4, 0x40], &[ONE_5, 0x40], 0), float(5.0));
    assert_eq!(element(E4M3, &[0x7F], &[ONE_4], 0), 0x7FFF_FFFF);
    assert_eq!(element(E5M2, &[0x7C], &[ONE_5], float(f32::NEG_INFINITY)), 0x7FFF_FFFF);
}

#[test]
fn doubles_are_fused_in_ascending_order() {
    let bits = f64::to_bits;
    let sum = 3.0_f64.mul_add(0.1, 0.5_f64.mul_add(0.3, 0.7));
    assert_eq!(element(MatrixKind::F64, &[bits(0.5), bits(3.0)], &[bits(0.3), bits(0.1)], bits(0.7)), bits(sum));
    let [of_b, of_c] = [0x7FF0_0000_0000_0001, 0xFFF0_0000_0000_0002];
    assert_eq!(element(MatrixKind::F64, &[bits(1.0)], &[of_b], of_c), of_b | 1 << 51);
    assert_eq!(element(MatrixKind::F64, &[bits(f64::INFINITY)], &[0], 0), 0xFFF8 << 48);
}

#[test]
fn integers_wrap() {
    let most = u64::from(i32::MAX.cast_unsigned());
    assert_eq!(element(MatrixKind::S8, &[0x80], &[0xFF], most), u64::from((i32::MIN + 127).cast_unsigned()));
    assert_eq!(element(MatrixKind::U8, &[0xFF], &[0xFF], 0), 255 * 255);
    assert_eq!(element(MatrixKind::S8U8, &[0xFF], &[0xFF], 0), u64::from((-255_i32).cast_unsigned()));
    assert_eq!(element(MatrixKind::U8S8, &[0xFF], &[0xFF], 0), u64::from((-255_i32).cast_unsigned()));
}

#[test]
fn each_half_of_k_is_a_sum_before_9() {
    let element = |a: &[u64], b: &[u64], c| element_of(MatrixRules::Cc8, 32, F16, a, b, c);
    // Terms are cut at 24 bits.
    assert_eq!(element(&[ONE, 1], &[ONE, 0x3C00], 0), float(1.0));
    assert_eq!(element(&[ONE, 1, 1], &[ONE, ONE, ONE], 0), float(1.0 + f32::EPSILON));
    assert_eq!(element(&[ONE, 1], &[ONE, 0x3800], float(-1.0)), 0);
    assert_eq!(element(&[ONE, 1], &[ONE, ONE], float(-1.0)), float(2.0_f32.powi(-24)));
    // The sum of the first half is cut to a float32 before the second is added.
    let mut a = [0; 16];
    (a[0], a[1], a[8]) = (ONE, 1, 0xBC00);
    assert_eq!(element(&a, &[ONE; 16], 0), 0);
    assert_eq!(element_of(MatrixRules::Cc9, 32, F16, &a, &[ONE; 16], 0), float(2.0_f32.powi(-24)));
    // Also tf32 with half of 8.
    let mut a = [0; 8];
    (a[0], a[1], a[4]) = (float(1.0), float(2.0_f32.powi(-24)), float(-1.0));
    let ones = [float(1.0); 8];
    assert_eq!(element_of(MatrixRules::Cc8, 32, MatrixKind::TF32, &a, &ones, 0), 0);
    assert_eq!(element_of(MatrixRules::Cc9, 32, MatrixKind::TF32, &a, &ones, 0), float(2.0_f32.powi(-24)));
}

#[test]
fn floats_of_8_bits_by_the_other_rules() {
    use MatrixKind::{E4M3, E5M2};
    const ONE_5: u64 = 0x3C;
    let before = |kind, a: &[u64], b: &[u64], c| element_of(MatrixRules::Cc8, 32, kind, a, b, c);
    let after = |kind, a: &[u64], b: &[u64], c| element_of(MatrixRules::Cc12, 32, kind, a, b, c);
    let sum = |low: i32| float(1.0 + 2.0_f32.powi(low));
    // 13 bits, and 25.
    assert_eq!(before(E5M2, &[ONE_5, 0x08], &[ONE_5, ONE_5], 0), sum(-13));
    assert_eq!(before(E5M2, &[ONE_5, 0x04], &[ONE_5, ONE_5], 0), float(1.0));
    assert_eq!(after(E5M2, &[ONE_5, 0x04], &[ONE_5, ONE_5], 0), sum(-14));
    assert_eq!(before(E4M3, &[0], &[0], float(1.0 + f32::EPSILON)), float(1.0));
    assert_eq!(after(E4M3, &[0], &[0], float(1.0 + f32::EPSILON)), float(1.0 + f32::EPSILON));
    // The halves of 32.
    let mut a = [0; 32];
    (a[0], a[1], a[16]) = (ONE_5, 0x04, 0xBC);
    assert_eq!(before(E5M2, &a, &[ONE_5; 32], 0), 0);
    assert_eq!(after(E5M2, &a, &[ONE_5; 32], 0), float(2.0_f32.powi(-14)));
    // The largest sum.
    assert_eq!(after(E4M3, &[0x7E; 32], &[0x7E; 32], 0), float(448.0 * 448.0 * 32.0));
    assert_eq!(before(E4M3, &[0x7E; 32], &[0x7E; 32], 0), float(448.0 * 448.0 * 32.0));
}

#[test]
fn rules_of_compute_capabilities() {
    let of = MatrixRules::of;
    assert_eq!([(7, 5), (8, 0), (8, 9)].map(of), [MatrixRules::Cc8; 3]);
    assert_eq!([(9, 0), (10, 0), (10, 3), (11, 0)].map(of), [MatrixRules::Cc9; 4]);
    assert_eq!([(12, 0), (12, 1)].map(of), [MatrixRules::Cc12; 2]);
}
