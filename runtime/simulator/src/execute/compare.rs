//! Comparisons, predicates and selections.

#![expect(clippy::inline_always, reason = "the callers are compiled twice: see `simple::block`")]

use super::{
    lanes::{each, mask_of, set},
    round,
    warp::Frame,
};
use crate::{
    decode::{Bank, Format, Logic, Reg, Relation, Vote},
    parse::Type,
};

/// The lanes in which a predicate holds.
#[inline(always)]
pub(super) fn truth(frame: &Frame, vote: Vote) -> u32 {
    frame.predicates[vote.p as usize] ^ if vote.negated { u32::MAX } else { 0 }
}

/// Writes a predicate in the active lanes.
#[inline(always)]
pub(super) fn set_predicate(frame: &mut Frame, p: Reg, mask: u32, value: u32) {
    let own = &mut frame.predicates[p as usize];
    *own = *own & !mask | value & mask;
}

/// The operands of `setp`.
pub(super) struct Comparison {
    pub(super) relation: Relation,
    pub(super) unordered: bool,
    pub(super) ty: Type,
    pub(super) a: Reg,
    pub(super) b: Reg,
}

/// Of operands that are not NaN.
#[inline(always)]
fn holds<T: PartialOrd>(relation: Relation, x: &[T; 32], y: &[T; 32]) -> u32 {
    match relation {
        Relation::Eq => mask_of(|lane| x[lane] == y[lane]),
        Relation::Ne => !mask_of(|lane| x[lane] == y[lane]),
        Relation::Lt => mask_of(|lane| x[lane] < y[lane]),
        Relation::Le => mask_of(|lane| x[lane] <= y[lane]),
        Relation::Gt => mask_of(|lane| y[lane] < x[lane]),
        Relation::Ge => mask_of(|lane| y[lane] <= x[lane]),
        Relation::Num | Relation::Nan => 0,
    }
}

#[inline(always)]
fn of_floats<T: PartialOrd>(comparison: &Comparison, x: &[T; 32], y: &[T; 32]) -> u32 {
    // Only NaN is not ordered with itself.
    let nan = mask_of(|lane| x[lane].partial_cmp(&y[lane]).is_none());
    match comparison.relation {
        Relation::Nan => nan,
        Relation::Num => !nan,
        relation @ (Relation::Eq | Relation::Ne | Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge) => {
            let holds = holds(relation, x, y);
            if comparison.unordered { holds | nan } else { holds & !nan }
        }
    }
}

/// The lanes in which a comparison holds.
#[inline(always)]
pub(super) fn compare(frame: &Frame, comparison: &Comparison) -> u32 {
    let Comparison { relation, ty, a, b, .. } = *comparison;
    let (a, b) = (a as usize, b as usize);
    match ty {
        Type::S32 => holds(relation, &each(&frame.words[a], |x| x as i32), &each(&frame.words[b], |x| x as i32)),
        Type::S64 => holds(relation, &each(&frame.longs[a], |x| x as i64), &each(&frame.longs[b], |x| x as i64)),
        Type::U64 | Type::B64 => holds(relation, &frame.longs[a], &frame.longs[b]),
        Type::F32 => {
            let floats = |register: usize| each(&frame.words[register], f32::from_bits);
            of_floats(comparison, &floats(a), &floats(b))
        }
        Type::F64 => {
            of_floats(comparison, &each(&frame.longs[a], f64::from_bits), &each(&frame.longs[b], f64::from_bits))
        }
        Type::S16 | Type::U16 | Type::B16 | Type::F16 | Type::Bf16 => of_16_bits(frame, comparison),
        Type::U32 | Type::B32 => holds(relation, &frame.words[a], &frame.words[b]),
        // The decoder refuses these.
        Type::B8
        | Type::U8
        | Type::S8
        | Type::B128
        | Type::F16x2
        | Type::Bf16x2
        | Type::E4m3
        | Type::E4m3x2
        | Type::E5m2
        | Type::E5m2x2
        | Type::Pred => 0,
    }
}

/// A comparison of integers or floats of 16 bits.
#[inline(never)]
fn of_16_bits(frame: &Frame, comparison: &Comparison) -> u32 {
    let Comparison { relation, ty, a, b, .. } = *comparison;
    let [a, b] = [a, b].map(|register| frame.words[register as usize]);
    if let Type::F16 | Type::Bf16 = ty {
        let format = if ty == Type::F16 { Format::F16 } else { Format::Bf16 };
        let floats = |bits| each(&bits, |bits: u32| round::widen(bits & 0xffff, format));
        of_floats(comparison, &floats(a), &floats(b))
    } else if ty == Type::S16 {
        holds(relation, &each(&a, |x| x as i16), &each(&b, |x| x as i16))
    } else {
        holds(relation, &each(&a, |x| x as u16), &each(&b, |x| x as u16))
    }
}

/// `setp` with its logical operation: `p` and its complement `q`.
#[inline(always)]
pub(super) fn set_both(frame: &mut Frame, [p, q]: [Reg; 2], holds: u32, logic: Option<(Logic, Vote)>, mask: u32) {
    let combine = |value: u32| match logic {
        Some((op, vote)) => apply(op, value, truth(frame, vote)),
        None => value,
    };
    let (value, complement) = (combine(holds), combine(!holds));
    set_predicate(frame, q, mask, complement);
    set_predicate(frame, p, mask, value);
}

fn apply(op: Logic, a: u32, b: u32) -> u32 {
    match op {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
        Logic::Not => !a,
        Logic::Mov => a,
    }
}

/// A logical operation of predicates.
pub(super) fn predicate(frame: &mut Frame, op: Logic, [d, a, b]: [Reg; 3], mask: u32) {
    let value = apply(op, frame.predicates[a as usize], frame.predicates[b as usize]);
    set_predicate(frame, d, mask, value);
}

/// `selp`
#[inline(always)]
pub(super) fn select(frame: &mut Frame, bank: Bank, [d, a, b, p]: [Reg; 4], mask: u32) {
    let truth = frame.predicates[p as usize];
    let (a, b) = (a as usize, b as usize);
    match bank {
        Bank::Word => {
            let (x, y) = (&frame.words[a], &frame.words[b]);
            let values = std::array::from_fn(|lane| if truth >> lane & 1 != 0 { x[lane] } else { y[lane] });
            set(&mut frame.words, d, mask, &values);
        }
        Bank::Long => {
            let (x, y) = (&frame.longs[a], &frame.longs[b]);
            let values = std::array::from_fn(|lane| if truth >> lane & 1 != 0 { x[lane] } else { y[lane] });
            set(&mut frame.longs, d, mask, &values);
        }
        Bank::Predicate => {
            let value = frame.predicates[a] & truth | frame.predicates[b] & !truth;
            set_predicate(frame, d, mask, value);
        }
    }
}
