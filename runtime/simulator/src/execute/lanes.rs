//! Registers of 32 lanes, and functions that apply an operation to the active lanes.

#![expect(clippy::inline_always, reason = "the callers are compiled twice: see `simple::block`")]

use crate::decode::Reg;

/// The values of a register in all lanes.
pub(super) type Lanes<T> = [T; 32];

/// Writes values to the active lanes of a register.
#[inline(always)]
pub(super) fn set<T: Copy>(bank: &mut [Lanes<T>], d: Reg, mask: u32, values: &Lanes<T>) {
    let target = &mut bank[d as usize];
    if mask == u32::MAX {
        *target = *values;
    } else {
        for (lane, (own, new)) in target.iter_mut().zip(values).enumerate() {
            if mask >> lane & 1 != 0 {
                *own = *new;
            }
        }
    }
}

/// A function of the values of all lanes. A loop, because `array::map` is not vectorized.
#[inline(always)]
pub(super) fn each<T: Copy, U: Copy + Default>(values: &Lanes<T>, f: impl Fn(T) -> U) -> Lanes<U> {
    let mut results = [U::default(); 32];
    for (result, value) in results.iter_mut().zip(values) {
        *result = f(*value);
    }
    results
}

/// `d = f(a)`
#[inline(always)]
pub(super) fn map1<T: Copy + Default>(bank: &mut [Lanes<T>], r: &[Reg; 4], mask: u32, f: impl Fn(T) -> T) {
    let values = each(&bank[r[1] as usize], f);
    set(bank, r[0], mask, &values);
}

/// `d = f(a, b)`
#[inline(always)]
pub(super) fn map2<T: Copy>(bank: &mut [Lanes<T>], r: &[Reg; 4], mask: u32, f: impl Fn(T, T) -> T) {
    let (a, b) = (&bank[r[1] as usize], &bank[r[2] as usize]);
    let mut values = *a;
    for (value, b) in values.iter_mut().zip(b) {
        *value = f(*value, *b);
    }
    set(bank, r[0], mask, &values);
}

/// `d = f(a, b, c)`
#[inline(always)]
pub(super) fn map3<T: Copy>(bank: &mut [Lanes<T>], r: &[Reg; 4], mask: u32, f: impl Fn(T, T, T) -> T) {
    let (a, b, c) = (&bank[r[1] as usize], &bank[r[2] as usize], &bank[r[3] as usize]);
    let mut values = *a;
    for ((value, b), c) in values.iter_mut().zip(b).zip(c) {
        *value = f(*value, *b, *c);
    }
    set(bank, r[0], mask, &values);
}

/// A mask of the lanes for which a function holds.
#[inline(always)]
pub(crate) fn mask_of(f: impl Fn(usize) -> bool) -> u32 {
    let bytes: [u8; 32] = std::array::from_fn(|lane| u8::from(f(lane)));
    let (words, _) = bytes.as_chunks::<8>();
    // The product moves bit 0 of byte `i` to bit `56 + i`.
    let bits = |word: &[u8; 8]| (u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32;
    words.iter().rev().fold(0, |mask, word| mask << 8 | bits(word))
}

/// The active lanes in ascending order.
pub(super) fn active(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros() as usize;
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}

/// Calls a function for the active lanes in ascending order: quick for all lanes.
#[inline(always)]
pub(super) fn for_active(mask: u32, f: impl FnMut(usize)) {
    if mask == u32::MAX { (0..32).for_each(f) } else { active(mask).for_each(f) }
}
