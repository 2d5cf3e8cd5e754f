//! Atomic operations.

use super::{Context, access::Split, convert, lanes::active, warp::Frame};
use crate::{
    count,
    decode::{Atomic, AtomicOp},
    error::Error,
    parse::{Space, Type},
};

/// The new value of a memory cell.
pub(super) fn apply(op: AtomicOp, ty: Type, old: u64, [x, y]: [u64; 2]) -> u64 {
    let signed = |value: u64| convert::extend(value, ty) as i64;
    let (a, b) = (convert::extend(old, ty), convert::extend(x, ty));
    match op {
        AtomicOp::Add => sum(ty, old, x),
        AtomicOp::Min if ty.is_signed() => signed(old).min(signed(x)) as u64,
        AtomicOp::Max if ty.is_signed() => signed(old).max(signed(x)) as u64,
        AtomicOp::Min => a.min(b),
        AtomicOp::Max => a.max(b),
        AtomicOp::And => old & x,
        AtomicOp::Or => old | x,
        AtomicOp::Xor => old ^ x,
        AtomicOp::Exch => x,
        AtomicOp::Cas => {
            if a == b {
                y
            } else {
                old
            }
        }
        AtomicOp::Inc => {
            if a >= b {
                0
            } else {
                a + 1
            }
        }
        AtomicOp::Dec => {
            if a == 0 || a > b {
                b
            } else {
                a - 1
            }
        }
    }
}

fn sum(ty: Type, old: u64, x: u64) -> u64 {
    use super::round;
    use crate::decode::{Format, Rounding};
    let half = |old: u64, x: u64, format| {
        let sum =
            round::fma_to_odd(round::widen(old as u32 & 0xffff, format), 1.0, round::widen(x as u32 & 0xffff, format));
        round::convert(sum, format, Rounding::Nearest)
    };
    match ty {
        Type::F32 => u64::from((f32::from_bits(old as u32) + f32::from_bits(x as u32)).to_bits()),
        Type::F64 => (f64::from_bits(old) + f64::from_bits(x)).to_bits(),
        Type::F16 => half(old, x, Format::F16),
        Type::Bf16 => half(old, x, Format::Bf16),
        Type::F16x2 => half(old, x, Format::F16) | half(old >> 16, x >> 16, Format::F16) << 16,
        Type::Bf16x2 => half(old, x, Format::Bf16) | half(old >> 16, x >> 16, Format::Bf16) << 16,
        Type::B8
        | Type::B16
        | Type::B32
        | Type::B64
        | Type::B128
        | Type::U8
        | Type::U16
        | Type::U32
        | Type::U64
        | Type::S8
        | Type::S16
        | Type::S32
        | Type::S64
        | Type::E4m3
        | Type::E4m3x2
        | Type::E5m2
        | Type::E5m2x2
        | Type::Pred => old.wrapping_add(x),
    }
}

/// Executes an atomic instruction, one lane after the other.
pub(super) fn execute(context: &mut Context, frame: &mut Frame, atomic: &Atomic, mask: u32) -> Result<(), Error> {
    let size = atomic.ty.size();
    let addresses = super::access::addresses(frame, atomic.address);
    let operands = atomic.operands.map(|register| convert::read(frame, (atomic.bank, register)));
    let mut old = [0; 32];
    let (mut changes, ones) = (false, u64::MAX >> (64 - 8 * size));
    let kind = count::AtomicKind {
        op: atomic.op,
        is_float: !atomic.ty.is_integer(),
        is_uniform: atomic.is_uniform,
        is_value_uniform: atomic.is_value_uniform,
        adds_one: atomic.adds_one,
        is_read: atomic.is_read,
    };
    for Split { space, mask, addresses } in super::access::split(atomic.space, &addresses, mask) {
        super::access::check_alignment(&addresses, mask, size)?;
        let lanes = count::Lanes::new(&addresses, mask, size);
        let value = |lane: usize| [operands[0][lane], operands[1][lane]];
        match space {
            Space::Shared | Space::Local => {
                for lane in active(mask) {
                    let cell = context.private(space, lane, addresses[lane], size)?;
                    old[lane] = super::access::load_bytes(cell);
                    let new = apply(atomic.op, atomic.ty, old[lane], value(lane));
                    changes |= (new ^ old[lane]) & ones != 0;
                    cell.copy_from_slice(&new.to_le_bytes()[..size as usize]);
                }
                let counted =
                    if space == Space::Shared { count::shared_atomic(lanes, kind) } else { count::local(lanes) };
                context.count_private(space, lanes, counted);
            }
            Space::Global | Space::Const | Space::Param | Space::Generic => {
                let mut first = None;
                for lane in active(mask) {
                    let (number, region) = context.region(lane, addresses[lane], size)?;
                    region.touch(addresses[lane], u64::from(size));
                    first = first.or(Some(number));
                    let new = |old| apply(atomic.op, atomic.ty, old, value(lane));
                    old[lane] = region.update(addresses[lane], size, new);
                    changes |= (new(old[lane]) ^ old[lane]) & ones != 0;
                }
                let float = kind.is_float;
                let hot = &mut context.machine.counters.updates;
                count::updates(lanes, kind, |sector, rounds| hot.add(sector, rounds, float));
                context.record(Space::Global, first.unwrap_or(0) as u32, lanes);
                context.count(Space::Global, first.unwrap_or(0) as u32, count::global_atomic(lanes, kind));
            }
        }
    }
    context.machine.polls |= !changes;
    convert::write(frame, (atomic.bank, atomic.d), mask, &old);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_wrap_and_compare_by_type() {
        let of = |op, ty, old: u64, x: u64| apply(op, ty, old, [x, 9]);
        assert_eq!(of(AtomicOp::Min, Type::S32, 0xffff_ffff, 1) as u32, 0xffff_ffff);
        assert_eq!(of(AtomicOp::Min, Type::U32, 0xffff_ffff, 1), 1);
        assert_eq!(of(AtomicOp::Inc, Type::U32, 4, 4), 0);
        assert_eq!(of(AtomicOp::Dec, Type::U32, 0, 4), 4);
        assert_eq!(of(AtomicOp::Cas, Type::B32, 5, 5), 9);
        assert_eq!(of(AtomicOp::Cas, Type::B32, 6, 5), 6);
        assert_eq!(
            of(AtomicOp::Add, Type::F32, u64::from(1.5_f32.to_bits()), u64::from(2.0_f32.to_bits())),
            u64::from(3.5_f32.to_bits())
        );
        assert_eq!(of(AtomicOp::Add, Type::F16, 0x3c00, 0x3c00), 0x4000);
    }
}
