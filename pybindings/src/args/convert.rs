//! How an argument of one type is passed as a declared type, for kernels with declared signatures.
//!
//! The signature is chosen by the table of `weft_artifact::Conversion`. A Python `int` as `int32` wraps around, as
//! `boolean` it is whether it is not 0; nothing becomes an integer that was not one.

use weft_artifact::{ArgType, Conversion, Misfit, Number, Rank, Scalar};

/// A number to convert before the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cast {
    cell: usize,
    from: Number,
    to: Number,
}

/// How a call's arguments are passed as a signature's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Match {
    /// The conversions to make.
    pub(crate) casts: Vec<Cast>,
    /// The smaller, the better.
    pub(crate) rank: Rank,
}

/// Why they cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Which argument.
    pub(crate) param: usize,
    /// The message: the given and the declared type.
    pub(crate) message: String,
}

/// Matches a call's argument types with declared ones of the same number.
pub(crate) fn match_types(given: &[ArgType], declared: &[ArgType]) -> Result<Match, Mismatch> {
    let mut casts = Vec::new();
    let mut conversions = Vec::new();
    let mut cell = 0;
    for (param, (from, to)) in given.iter().zip(declared).enumerate() {
        let conversion = Conversion::of_argument(from, to, cell, &mut |cell, from, to| {
            let Some(to) = to else { return address(from) };
            let conversion = cost(from, to)?;
            if conversion != Conversion::Exact {
                casts.push(Cast { cell, from, to });
            }
            Some(conversion)
        });
        conversions.push(conversion.map_err(|misfit| Mismatch {
            param,
            message: match misfit {
                Misfit::Type => format!("the signature declares {to}, but the argument is {from}"),
                Misfit::ReadOnly => format!("the signature declares {to}, but the array is read-only"),
            },
        })?);
        cell += from.cells();
    }
    Ok(Match { casts, rank: conversions.into_iter().collect() })
}

/// The conversions of a launch: as in Numba, which passes numbers to `ctypes`, no float becomes an integer or a bool.
fn cost(from: Number, to: Number) -> Option<Conversion> {
    let refused = from.part().is_float() && !to.part().is_float();
    Conversion::of(from, to).filter(|_| !refused)
}

/// An integer is an address: its cell is passed unchanged.
fn address(from: Number) -> Option<Conversion> {
    from.real().is_some_and(Scalar::is_int).then_some(Conversion::Unsafe)
}

/// Converts numbers in their cells.
pub(crate) fn apply(casts: &[Cast], cells: &mut [u64]) {
    for cast in casts {
        let Some([low, high]) = cells.get_mut(cast.cell..cast.cell + 2) else { continue };
        (*low, *high) = convert(cast.from, cast.to, *low, *high);
    }
}

fn convert(from: Number, to: Number, low: u64, high: u64) -> (u64, u64) {
    let part = |bits: u64| from.part().float_of_bits(bits);
    let encode = |value: f64| to.part().float_bits(value);
    match from {
        Number::Complex(_) => (encode(part(low)), encode(part(high))),
        Number::Real(Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64) => (encode(part(low)), encode(0.0)),
        Number::Real(whole) => {
            let int = if whole == Scalar::U64 { i128::from(low) } else { i128::from(low as i64) };
            let bits = match to.part() {
                float @ (Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64) => encode(float.nearest_int(int)),
                Scalar::Bool => u64::from(int != 0),
                Scalar::I8
                | Scalar::I16
                | Scalar::I32
                | Scalar::I64
                | Scalar::U8
                | Scalar::U16
                | Scalar::U32
                | Scalar::U64 => int as u64,
            };
            (bits, 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(number: Number) -> ArgType {
        number.into()
    }

    #[test]
    fn int_becomes_int32_with_wrap_around() {
        let found = match_types(&[scalar(Number::I64)], &[scalar(Number::I32)]).expect("an unsafe conversion");
        assert_eq!(found.rank, [Conversion::Unsafe].into_iter().collect());
        let mut cells = [0x1_0000_0005, 0];
        apply(&found.casts, &mut cells);
        assert_eq!(cells[0] as u32, 5);
    }

    #[test]
    fn int_becomes_bool_by_not_being_zero() {
        let found = match_types(&[scalar(Number::I64)], &[scalar(Number::BOOL)]).expect("an unsafe conversion");
        assert_eq!(found.rank, [Conversion::Unsafe].into_iter().collect());
        assert_eq!([0, 1, 256, u64::MAX].map(|int| convert(Number::I64, Number::BOOL, int, 0).0), [0, 1, 1, 1]);
        assert!(match_types(&[scalar(Number::F64)], &[scalar(Number::BOOL)]).is_err());
    }

    #[test]
    fn int_becomes_complex_parts() {
        let found = match_types(&[scalar(Number::I64)], &[scalar(Number::C64)]).expect("a conversion");
        let mut cells = [(-3_i64) as u64, 7];
        apply(&found.casts, &mut cells);
        assert_eq!((f32::from_bits(cells[0] as u32), cells[1]), (-3.0, 0));
    }

    #[test]
    fn unsigned_to_float_keeps_the_top_bit() {
        assert_eq!(convert(Number::U64, Number::F64, u64::MAX, 0).0, 18_446_744_073_709_551_616.0_f64.to_bits());
    }

    #[test]
    fn halves_are_rounded_once() {
        let double = (1.0 + 2_f64.powi(-11) + 2_f64.powi(-40)).to_bits();
        assert_eq!(convert(Number::F64, Number::F16, double, 0), (0x3c01, 0));
        assert_eq!(convert(Number::I64, Number::BF16, (0x101 << 40) + 1, 0), (0x5781, 0));
        assert_eq!(convert(Number::F16, Number::C64, 0x3c00, 0), (1.0_f32.to_bits().into(), 0));
        assert_eq!(convert(Number::BF16, Number::F64, 0xc000, 0), ((-2.0_f64).to_bits(), 0));
    }

    #[test]
    fn an_integer_is_an_address_and_nothing_else_is() {
        let pointer = [ArgType::Pointer(Some(Number::F32.into()))];
        let found = match_types(&[scalar(Number::U64)], &pointer).expect("an unsafe conversion");
        assert_eq!((found.casts, found.rank), (Vec::new(), [Conversion::Unsafe].into_iter().collect()));
        for other in [Number::BOOL, Number::F64, Number::C64] {
            assert!(match_types(&[scalar(other)], &pointer).is_err(), "{other}");
        }
        assert!(match_types(&[ArgType::None], &pointer).is_err());
    }

    #[test]
    fn float_never_becomes_int() {
        let wrong =
            match_types(&[scalar(Number::I64), scalar(Number::F64)], &[scalar(Number::I64), scalar(Number::I64)]);
        assert_eq!(wrong.map_err(|mismatch| mismatch.param), Err(1));
    }
}
