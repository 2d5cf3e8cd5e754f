//! Conversions between types, and between a register and its parts.

#![expect(clippy::inline_always, reason = "the callers are compiled twice: see `simple::block`")]

use super::{
    bytes,
    lanes::{Lanes, each, set},
    round,
    warp::Frame,
};
use crate::{
    decode::{Bank, Conversion, Format, Reg, Rounding, ToInteger},
    parse::Type,
};

/// The values of a register as 64 bits.
#[inline(always)]
pub(super) fn read(frame: &Frame, (bank, register): (Bank, Reg)) -> Lanes<u64> {
    match bank {
        Bank::Word => each(&frame.words[register as usize], u64::from),
        Bank::Long => frame.longs[register as usize],
        Bank::Predicate => std::array::from_fn(|lane| u64::from(frame.predicates[register as usize] >> lane & 1)),
    }
}

/// Writes the low bits of values to a register.
#[inline(always)]
pub(super) fn write(frame: &mut Frame, (bank, register): (Bank, Reg), mask: u32, values: &Lanes<u64>) {
    match bank {
        Bank::Word => set(&mut frame.words, register, mask, &each(values, |value| value as u32)),
        Bank::Long => set(&mut frame.longs, register, mask, values),
        Bank::Predicate => {
            let truths = super::lanes::mask_of(|lane| values[lane] & 1 != 0);
            let own = &mut frame.predicates[register as usize];
            *own = *own & !mask | truths & mask;
        }
    }
}

/// The bits of a type, sign- or zero-extended to 64.
pub(super) fn extend(value: u64, ty: Type) -> u64 {
    let bits = 8 * ty.size();
    if bits >= 64 {
        value
    } else if ty.is_signed() {
        ((value << (64 - bits)) as i64 >> (64 - bits)) as u64
    } else {
        value & ((1 << bits) - 1)
    }
}

fn format(ty: Type) -> Option<Format> {
    let formats =
        [(Type::F16, Format::F16), (Type::Bf16, Format::Bf16), (Type::F32, Format::F32), (Type::F64, Format::F64)];
    formats.into_iter().find(|(own, _)| *own == ty).map(|(_, format)| format)
}

/// `cvt`.
#[inline(always)]
pub(super) fn convert(frame: &mut Frame, conversion: Conversion, d: (Bank, Reg), a: (Bank, Reg), mask: u32) {
    let Conversion { to, from, .. } = conversion;
    // A conversion to a smaller register or a wider integer needs no arithmetic.
    if to.is_integer() && from.is_integer() && !conversion.sat {
        if let ((Bank::Word, source), (Bank::Long, target), 4, 8) = (a, d, from.size(), to.size()) {
            let source = &frame.words[source as usize];
            let values =
                if from.is_signed() { each(source, |value| value as i32 as u64) } else { each(source, u64::from) };
            return set(&mut frame.longs, target, mask, &values);
        }
        if let ((Bank::Long, source), (Bank::Word, target), 8, 4) = (a, d, from.size(), to.size()) {
            let values = each(&frame.longs[source as usize], |value| value as u32);
            return set(&mut frame.words, target, mask, &values);
        }
    }
    if let (Type::F32, Type::S32, Rounding::Nearest, (Bank::Word, target), (Bank::Word, source)) =
        (to, from, conversion.rounding, d, a)
    {
        let values = each(&frame.words[source as usize], |value| (value as i32 as f32).to_bits());
        return set(&mut frame.words, target, mask, &values);
    }
    convert_any(frame, conversion, d, a, mask);
}

#[inline(never)]
fn convert_any(frame: &mut Frame, conversion: Conversion, d: (Bank, Reg), a: (Bank, Reg), mask: u32) {
    let Conversion { to, from, .. } = conversion;
    let values = each(&read(frame, a), |value| extend(value, from));
    if let Some(format) = bytes::Format::of(to) {
        return write(frame, d, mask, &each(&values, |value| format.nearest(f32::from_bits(value as u32))));
    }
    if let Some(format) = bytes::Format::of(from) {
        return write(frame, d, mask, &each(&values, |value| format.half(value)));
    }
    let converted = match (format(to), format(from)) {
        (None, None) => each(&values, |value| integer(value, conversion, d.0)),
        (Some(to), None) => each(&values, |value| integer_to_float(value, to, conversion)),
        (to, Some(from)) => {
            let floats = each(&values, |value| float(value, from, conversion.ftz));
            match to {
                Some(to) => each(&floats, |x| float_to_float(x, conversion, to)),
                None => each(&floats, |x| float_to_integer(x, conversion, d.0)),
            }
        }
    };
    write(frame, d, mask, &converted);
}

/// The bits of an integer in a register: a register that is wider than the type holds it extended.
fn fit(value: u64, ty: Type, bank: Bank) -> u64 {
    let extended = extend(value, ty);
    // A 16-bit register is zero-extended in its word.
    if bank == Bank::Word && ty.size() == 2 { extended & 0xffff } else { extended }
}

fn integer(value: u64, conversion: Conversion, bank: Bank) -> u64 {
    if conversion.sat {
        let wide = if conversion.from.is_signed() { i128::from(value as i64) } else { i128::from(value) };
        return fit(clamp(wide, conversion.to), conversion.to, bank);
    }
    fit(value, conversion.to, bank)
}

fn clamp(wide: i128, ty: Type) -> u64 {
    let bits = 8 * ty.size();
    let (least, greatest) =
        if ty.is_signed() { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    wide.clamp(least, greatest) as u64
}

fn integer_to_float(value: u64, to: Format, conversion: Conversion) -> u64 {
    match (to, conversion.rounding, conversion.from.is_signed()) {
        (Format::F32, Rounding::Nearest, true) => u64::from((value as i64 as f32).to_bits()),
        (Format::F32, Rounding::Nearest, false) => u64::from((value as f32).to_bits()),
        (Format::F64, Rounding::Nearest, true) => (value as i64 as f64).to_bits(),
        (Format::F64, Rounding::Nearest, false) => (value as f64).to_bits(),
        (_, rounding, true) => round::from_integer(i128::from(value as i64), to, rounding),
        (_, rounding, false) => round::from_integer(i128::from(value), to, rounding),
    }
}

fn float(bits: u64, format: Format, ftz: bool) -> f64 {
    match format {
        Format::F16 | Format::Bf16 => round::widen(bits as u32, format),
        Format::F32 => {
            let x = f32::from_bits(bits as u32);
            if ftz && x.is_subnormal() { f64::from(0.0_f32.copysign(x)) } else { f64::from(x) }
        }
        Format::F64 => f64::from_bits(bits),
    }
}

fn to_integer(x: f64, way: ToInteger) -> f64 {
    match way {
        ToInteger::Nearest => x.round_ties_even(),
        ToInteger::Zero => x.trunc(),
        ToInteger::Down => x.floor(),
        ToInteger::Up => x.ceil(),
    }
}

fn float_to_float(x: f64, conversion: Conversion, to: Format) -> u64 {
    let x = conversion.to_integer.map_or(x, |way| to_integer(x, way));
    let x = if conversion.sat { if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) } } else { x };
    match (to, conversion.rounding) {
        (Format::F64, _) => x.to_bits(),
        (Format::F32, Rounding::Nearest) => {
            let narrow = x as f32;
            let flushed = if conversion.ftz && narrow.is_subnormal() { 0.0_f32.copysign(narrow) } else { narrow };
            u64::from(flushed.to_bits())
        }
        _ => round::convert(x, to, conversion.rounding),
    }
}

fn float_to_integer(x: f64, conversion: Conversion, bank: Bank) -> u64 {
    let ty = conversion.to;
    let bits = 8 * ty.size();
    if x.is_nan() {
        let is_wide = conversion.from == Type::F64 || bits == 64;
        return fit(if is_wide { 1 << (bits - 1) } else { 0 }, ty, bank);
    }
    let rounded = to_integer(x, conversion.to_integer.unwrap_or(ToInteger::Zero));
    fit(clamp(rounded as i128, ty), ty, bank)
}

/// `mov.b64 d, {a, b}`
pub(super) fn join(frame: &mut Frame, ty: Type, d: Reg, parts: &[Reg], mask: u32) {
    let bits = 8 * ty.size() as usize / parts.len();
    let ones = u64::MAX >> (64 - bits);
    let mut values = [0; 32];
    for (index, part) in parts.iter().enumerate() {
        for (value, more) in values.iter_mut().zip(&frame.words[*part as usize]) {
            *value |= (u64::from(*more) & ones) << (index * bits);
        }
    }
    let bank = if ty.size() == 8 { Bank::Long } else { Bank::Word };
    write(frame, (bank, d), mask, &values);
}

/// `mov.b64 {a, b}, d`
pub(super) fn split(frame: &mut Frame, ty: Type, parts: &[Reg], a: Reg, mask: u32) {
    let bits = 8 * ty.size() as usize / parts.len();
    let ones = u64::MAX >> (64 - bits);
    let values = read(frame, (if ty.size() == 8 { Bank::Long } else { Bank::Word }, a));
    for (index, part) in parts.iter().enumerate() {
        let own = each(&values, |value| (value >> (index * bits) & ones) as u32);
        set(&mut frame.words, *part, mask, &own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversion(to: Type, from: Type, to_integer: Option<ToInteger>) -> Conversion {
        Conversion { to, from, rounding: Rounding::Nearest, to_integer, sat: false, ftz: false }
    }

    #[test]
    fn floats_to_integers_saturate() {
        let of = |x: f64, to, from| float_to_integer(x, conversion(to, from, Some(ToInteger::Zero)), Bank::Long);
        assert_eq!(of(-1.5, Type::S32, Type::F32) as i32, -1);
        assert_eq!(of(3e9, Type::S32, Type::F32) as i32, i32::MAX);
        assert_eq!(of(-3.0, Type::U64, Type::F64), 0);
        assert_eq!(of(1e30, Type::U64, Type::F64), u64::MAX);
        assert_eq!(of(f64::NAN, Type::S32, Type::F32), 0);
        assert_eq!(of(f64::NAN, Type::S64, Type::F32), 1 << 63);
        let nearest = conversion(Type::S32, Type::F32, Some(ToInteger::Nearest));
        assert_eq!(float_to_integer(2.5, nearest, Bank::Word), 2);
    }

    #[test]
    fn integers_extend_and_clamp() {
        assert_eq!(extend(0xff80, Type::S8), (-128_i64) as u64);
        assert_eq!(extend(0xff80, Type::U8), 0x80);
        assert_eq!(fit((-5_i64) as u64, Type::S16, Bank::Word), 0xfffb);
        assert_eq!(fit((-5_i64) as u64, Type::S32, Bank::Long), (-5_i64) as u64);
        assert_eq!(clamp(-4, Type::U8), 0);
        assert_eq!(clamp(400, Type::S8), 127);
    }
}
