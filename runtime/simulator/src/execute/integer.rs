//! Operations on integers. Division by zero gives all ones, and the remainder is the dividend, as on NVIDIA GPUs; a
//! shift by the size or more shifts all bits out.

#![expect(clippy::inline_always, reason = "the callers are compiled twice: see `simple::block`")]
#![expect(trivial_numeric_casts, reason = "one macro for all sizes")]

use super::lanes::{Lanes, map1, map2, map3, set};
use crate::{
    decode::{CarryOp, IntOp, MixedOp, Reg, WordOp},
    parse::Type,
};

macro_rules! integers {
    ($(#[$doc:meta])* $name:ident, $lane:ty, $u:ty, $s:ty, $twice:ty, $twice_s:ty) => {
        $(#[$doc])*
        pub(super) fn $name(op: IntOp, bank: &mut [Lanes<$lane>], r: &[Reg; 4], mask: u32) {
            type U = $u;
            type S = $s;
            const BITS: u32 = U::BITS;
            macro_rules! one {
                ($f:expr) => {{
                    let f = $f;
                    map1(bank, r, mask, |x| f(x as U) as $lane)
                }};
            }
            macro_rules! two {
                ($f:expr) => {{
                    let f = $f;
                    map2(bank, r, mask, |x, y| f(x as U, y as U) as $lane)
                }};
            }
            macro_rules! three {
                ($f:expr) => {{
                    let f = $f;
                    map3(bank, r, mask, |x, y, z| f(x as U, y as U, z as U) as $lane)
                }};
            }
            let high_u = |x: U, y: U| ((x as $twice * y as $twice) >> BITS) as U;
            let high_s = |x: U, y: U| ((x as S as $twice_s * y as S as $twice_s) >> BITS) as U;
            match op {
                IntOp::Mov => one!(|x: U| x),
                IntOp::Add => two!(|x: U, y: U| x.wrapping_add(y)),
                IntOp::Sub => two!(|x: U, y: U| x.wrapping_sub(y)),
                IntOp::AddSat => two!(|x: U, y: U| (x as S).saturating_add(y as S) as U),
                IntOp::SubSat => two!(|x: U, y: U| (x as S).saturating_sub(y as S) as U),
                IntOp::MulLo => two!(|x: U, y: U| x.wrapping_mul(y)),
                IntOp::MulHiU => two!(high_u),
                IntOp::MulHiS => two!(high_s),
                IntOp::MadLo => three!(|x: U, y: U, z: U| x.wrapping_mul(y).wrapping_add(z)),
                IntOp::MadHiU => three!(|x: U, y: U, z: U| high_u(x, y).wrapping_add(z)),
                IntOp::MadHiS => three!(|x: U, y: U, z: U| high_s(x, y).wrapping_add(z)),
                IntOp::DivU => two!(|x: U, y: U| x.checked_div(y).unwrap_or(U::MAX)),
                IntOp::DivS => two!(|x: U, y: U| if y == 0 { U::MAX } else { (x as S).wrapping_div(y as S) as U }),
                IntOp::RemU => two!(|x: U, y: U| x.checked_rem(y).unwrap_or(x)),
                IntOp::RemS => two!(|x: U, y: U| if y == 0 { x } else { (x as S).wrapping_rem(y as S) as U }),
                IntOp::MinU => two!(|x: U, y: U| x.min(y)),
                IntOp::MinS => two!(|x: U, y: U| (x as S).min(y as S) as U),
                IntOp::MaxU => two!(|x: U, y: U| x.max(y)),
                IntOp::MaxS => two!(|x: U, y: U| (x as S).max(y as S) as U),
                IntOp::Abs => one!(|x: U| (x as S).wrapping_abs() as U),
                IntOp::Neg => one!(|x: U| x.wrapping_neg()),
                IntOp::And => two!(|x: U, y: U| x & y),
                IntOp::Or => two!(|x: U, y: U| x | y),
                IntOp::Xor => two!(|x: U, y: U| x ^ y),
                IntOp::Not => one!(|x: U| !x),
                IntOp::Cnot => one!(|x: U| U::from(x == 0)),
                IntOp::Shl => map2(bank, r, mask, |x, n| (x as U).checked_shl(n as u32).unwrap_or(0) as $lane),
                IntOp::ShrU => map2(bank, r, mask, |x, n| (x as U).checked_shr(n as u32).unwrap_or(0) as $lane),
                IntOp::ShrS => map2(bank, r, mask, |x, n| ((x as S) >> (n as u32).min(BITS - 1)) as U as $lane),
                IntOp::SadU => three!(|x: U, y: U, z: U| x.abs_diff(y).wrapping_add(z)),
                IntOp::SadS => three!(|x: U, y: U, z: U| (x as S).abs_diff(y as S).wrapping_add(z)),
                IntOp::Brev => one!(U::reverse_bits),
            }
        }
    };
}

integers!(
    /// Integers of 16 bits, zero-extended in words.
    #[inline(never)]
    short, u32, u16, i16, u32, i32
);
integers!(
    /// Integers of 32 bits.
    #[inline(always)]
    word, u32, u32, i32, u64, i64
);
integers!(
    /// Integers of 64 bits.
    #[inline(always)]
    long, u64, u64, i64, u128, i128
);

/// Operations that only 32-bit words have.
#[inline(never)]
pub(super) fn word_only(op: WordOp, bank: &mut [Lanes<u32>], r: &[Reg; 4], mask: u32) {
    match op {
        WordOp::Popc => map1(bank, r, mask, u32::count_ones),
        WordOp::Clz => map1(bank, r, mask, u32::leading_zeros),
        WordOp::FindU => map1(bank, r, mask, |x| x.checked_ilog2().unwrap_or(u32::MAX)),
        WordOp::FindS => {
            map1(bank, r, mask, |x| (if (x as i32) < 0 { !x } else { x }).checked_ilog2().unwrap_or(u32::MAX));
        }
        WordOp::BfeU => map3(bank, r, mask, |x, at, len| field(u64::from(x), at, len, 32, false) as u32),
        WordOp::BfeS => map3(bank, r, mask, |x, at, len| field(u64::from(x), at, len, 32, true) as u32),
        WordOp::Prmt => map3(bank, r, mask, permute),
        WordOp::FunnelLeft { clamp } => map3(bank, r, mask, |low, high, n| {
            let n = if clamp { n.min(32) } else { n & 31 };
            (((u64::from(high) << 32 | u64::from(low)) << n) >> 32) as u32
        }),
        WordOp::FunnelRight { clamp } => map3(bank, r, mask, |low, high, n| {
            let n = if clamp { n.min(32) } else { n & 31 };
            ((u64::from(high) << 32 | u64::from(low)) >> n) as u32
        }),
        WordOp::Logic(table) => map3(bank, r, mask, |a, b, c| {
            (0..8).filter(|row| table >> row & 1 != 0).fold(0, |found, row| {
                let pick = |value: u32, bit: u32| if row >> bit & 1 != 0 { value } else { !value };
                found | pick(a, 2) & pick(b, 1) & pick(c, 0)
            })
        }),
        WordOp::Dp4aU => map3(bank, r, mask, |a, b, c| {
            let product = |byte: usize| u32::from(a.to_le_bytes()[byte]) * u32::from(b.to_le_bytes()[byte]);
            (0..4).fold(c, |sum, byte| sum.wrapping_add(product(byte)))
        }),
        WordOp::Dp4aS => map3(bank, r, mask, |a, b, c| {
            let signed = |x: u32, byte: usize| i32::from(x.to_le_bytes()[byte] as i8);
            (0..4).fold(c, |sum, byte| sum.wrapping_add((signed(a, byte) * signed(b, byte)) as u32))
        }),
    }
}

/// `prmt` in its default mode: byte `i` is the byte of `b:a` that nibble `i` of the selector names, or its sign.
fn permute(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    u32::from_le_bytes(std::array::from_fn(|index| {
        let nibble = selector >> (4 * index) & 15;
        let byte = bytes[(nibble & 7) as usize];
        if nibble & 8 != 0 { (byte as i8 >> 7) as u8 } else { byte }
    }))
}

/// `bfe`: a field of bits, sign-extended if it is signed. Beyond the end it is the sign, or zeros.
fn field(x: u64, at: u32, len: u32, bits: u32, signed: bool) -> u64 {
    let (at, len) = (at & 255, len & 255);
    if len == 0 {
        return 0;
    }
    let sign = signed && x >> (at + len - 1).min(bits - 1) & 1 != 0;
    let shifted = x.checked_shr(at).unwrap_or(0);
    // The bits of the field that are inside the operand.
    let inside = len.min(bits.saturating_sub(at));
    let ones = if inside >= 64 { u64::MAX } else { (1 << inside) - 1 };
    let value = shifted & ones;
    if sign { value | !ones } else { value }
}

/// `bfi`: `b` with `len` bits of `a` at `at`.
pub(super) fn insert(a: u64, b: u64, at: u32, len: u32, bits: u32) -> u64 {
    let (at, len) = (at & 255, len & 255);
    let ones = if len >= 64 { u64::MAX } else { (1 << len) - 1 };
    let mask = ones.checked_shl(at).unwrap_or(0) & (u64::MAX >> (64 - bits));
    b & !mask | a.checked_shl(at).unwrap_or(0) & mask
}

/// Operations of 64-bit integers and words.
#[inline(never)]
pub(super) fn mixed(op: MixedOp, words: &mut [Lanes<u32>], longs: &mut [Lanes<u64>], r: &[Reg; 4], mask: u32) {
    let [d, a, b, c] = r.map(|register| register as usize);
    if let MixedOp::Popc | MixedOp::Clz = op {
        let f = if op == MixedOp::Popc { u64::count_ones } else { u64::leading_zeros };
        let values = longs[a].map(f);
        set(words, r[0], mask, &values);
        return;
    }
    let mut values = longs[a];
    let (n, len) = (&words[b], &words[c]);
    for lane in 0..32 {
        let (x, n) = (values[lane], n[lane]);
        values[lane] = match op {
            MixedOp::Shl => x.checked_shl(n).unwrap_or(0),
            MixedOp::ShrU => x.checked_shr(n).unwrap_or(0),
            MixedOp::ShrS => (x as i64 >> n.min(63)) as u64,
            MixedOp::BfeU => field(x, n, len[lane], 64, false),
            MixedOp::BfeS => field(x, n, len[lane], 64, true),
            MixedOp::Popc | MixedOp::Clz => x,
        };
    }
    set(longs, d as Reg, mask, &values);
}

/// `mul.wide` and `mad.wide`.
#[inline(always)]
pub(super) fn wide(
    ty: Type,
    (words, longs): (&mut [Lanes<u32>], &mut [Lanes<u64>]),
    [d, a, b]: [Reg; 3],
    summand: Option<Reg>,
    mask: u32,
) {
    let (x, y) = (&words[a as usize], &words[b as usize]);
    if ty.size() == 2 {
        let product = |lane: usize| {
            if ty.is_signed() {
                (i32::from(x[lane] as i16) * i32::from(y[lane] as i16)) as u32
            } else {
                u32::from(x[lane] as u16) * u32::from(y[lane] as u16)
            }
        };
        let values = std::array::from_fn(|lane| {
            product(lane).wrapping_add(summand.map_or(0, |summand| words[summand as usize][lane]))
        });
        set(words, d, mask, &values);
        return;
    }
    let mut values = [0; 32];
    if ty.is_signed() {
        for lane in 0..32 {
            values[lane] = (i64::from(x[lane] as i32) * i64::from(y[lane] as i32)) as u64;
        }
    } else {
        for lane in 0..32 {
            values[lane] = u64::from(x[lane]) * u64::from(y[lane]);
        }
    }
    if let Some(summand) = summand {
        for (value, more) in values.iter_mut().zip(&longs[summand as usize]) {
            *value = value.wrapping_add(*more);
        }
    }
    set(longs, d, mask, &values);
}

/// An operation with a carry for integers of a size: the result and the carry out. In subtractions the carry is a
/// borrow.
pub(super) fn carry(op: CarryOp, [a, b, c]: [u64; 3], bits: u32, carry_in: bool) -> (u64, bool) {
    let ones = u128::from(u64::MAX >> (64 - bits));
    let (x, y, z) = (u128::from(a) & ones, u128::from(b) & ones, u128::from(c) & ones);
    let signed = |v: u128| (v as i128) << (128 - bits) >> (128 - bits);
    let sum = match op {
        CarryOp::Add => x + y + u128::from(carry_in),
        CarryOp::Sub => x.wrapping_sub(y).wrapping_sub(u128::from(carry_in)),
        CarryOp::MadLo => ((x * y) & ones) + z + u128::from(carry_in),
        CarryOp::MadHiU => ((x * y) >> bits) + z + u128::from(carry_in),
        CarryOp::MadHiS => (((signed(x) * signed(y)) >> bits) as u128 & ones) + z + u128::from(carry_in),
    };
    ((sum & ones) as u64, sum >> bits & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(op: IntOp, x: u32, y: u32) -> u32 {
        let mut bank = [[0; 32], [x; 32], [y; 32]];
        word(op, &mut bank, &[0, 1, 2, 0], u32::MAX);
        bank[0][7]
    }

    #[test]
    fn integers_at_their_edges() {
        assert_eq!(apply(IntOp::Shl, 1, 32), 0);
        assert_eq!(apply(IntOp::Shl, 1, 31), 1 << 31);
        assert_eq!(apply(IntOp::ShrU, u32::MAX, 40), 0);
        assert_eq!(apply(IntOp::ShrS, 1 << 31, 40), u32::MAX);
        assert_eq!(apply(IntOp::DivS, 1 << 31, u32::MAX), 1 << 31);
        assert_eq!(apply(IntOp::DivS, (-7_i32) as u32, 2), (-3_i32) as u32);
        assert_eq!(apply(IntOp::RemS, (-7_i32) as u32, 2), (-1_i32) as u32);
        assert_eq!(apply(IntOp::DivU, 7, 0), u32::MAX);
        assert_eq!(apply(IntOp::RemU, 7, 0), 7);
        assert_eq!(apply(IntOp::MulHiS, (-1_i32) as u32, 1), u32::MAX);
        assert_eq!(apply(IntOp::MulHiU, u32::MAX, u32::MAX), u32::MAX - 1);
        assert_eq!(apply(IntOp::AddSat, i32::MAX as u32, 1), i32::MAX as u32);
        let mut bank = [[0; 32], [0xfff0; 32], [0x20; 32]];
        short(IntOp::Add, &mut bank, &[0, 1, 2, 0], 1);
        assert_eq!((bank[0][0], bank[0][1]), (0x10, 0));
    }

    #[test]
    fn fields_and_bytes() {
        assert_eq!(field(0xabcd, 4, 8, 32, false), 0xbc);
        assert_eq!(field(0xabcd, 4, 8, 32, true) as u32, 0xffff_ffbc);
        assert_eq!(field(0x8000_0000, 28, 8, 32, true) as u32, 0xffff_fff8);
        assert_eq!(field(0x8000_0000, 40, 4, 32, true) as u32, u32::MAX);
        assert_eq!(field(5, 0, 0, 32, true), 0);
        assert_eq!(field(u64::MAX, 0, 64, 64, false), u64::MAX);
        assert_eq!(insert(0xff, 0, 4, 4, 32), 0xf0);
        assert_eq!(insert(0xff, 1, 32, 8, 32), 1);
        assert_eq!(permute(0x0302_0180, 0x0706_0504, 0x7610), 0x0706_0180);
        assert_eq!(permute(0x0302_0180, 0, 0x8888), u32::MAX);
    }

    #[test]
    fn carries_and_borrows() {
        let ones = u64::from(u32::MAX);
        assert_eq!(carry(CarryOp::Add, [ones, 0, 0], 32, true), (0, true));
        assert_eq!(carry(CarryOp::Sub, [0, 0, 0], 32, true), (ones, true));
        assert_eq!(carry(CarryOp::Sub, [5, 3, 0], 32, false), (2, false));
        assert_eq!(carry(CarryOp::MadLo, [ones, ones, ones], 32, false), (0, true));
        assert_eq!(carry(CarryOp::MadHiU, [ones, ones, 1], 32, false), (ones, false));
        assert_eq!(carry(CarryOp::Add, [u64::MAX, 1, 0], 64, false), (0, true));
    }
}
