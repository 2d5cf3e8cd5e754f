//! How an argument of one type is passed as a declared type, for kernels with declared signatures.
//!
//! Numbers convert as Numba's ranking has it: exact before promotion (a wider number of the same kind) before a safe
//! conversion (no value is lost) before an unsafe one (a Python `int` as `int32` wraps around, as `boolean` it is whether
//! it is not 0). Nothing becomes an integer that was not one. Arrays never convert; a C or F array may be passed where any layout is declared.

use weft_artifact::{ArgType, DType, Layout, Number, Scalar};

/// A number to convert before the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cast {
    cell: usize,
    from: Number,
    to: Number,
}

/// How much a conversion loses. The order is that of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    Exact,
    Promote,
    Safe,
    Unsafe,
}

/// How a call's arguments are passed as a signature's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Match {
    /// The conversions to make.
    pub(crate) casts: Vec<Cast>,
    /// Unsafe, safe and promoting conversions: the smaller, the better.
    pub(crate) rank: [u32; 3],
}

/// Why they cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Which argument.
    pub(crate) param: usize,
    /// What it is and what was declared.
    pub(crate) message: String,
}

/// Matches a call's argument types with declared ones of the same number.
pub(crate) fn match_types(given: &[ArgType], declared: &[ArgType]) -> Result<Match, Mismatch> {
    let mut found = Match::default();
    let mut cell = 0;
    for (param, (from, to)) in given.iter().zip(declared).enumerate() {
        match_type(from, to, cell, &mut found).map_err(|message| Mismatch { param, message })?;
        cell += from.cells();
    }
    Ok(found)
}

fn match_type(given: &ArgType, declared: &ArgType, cell: usize, found: &mut Match) -> Result<(), String> {
    let wrong = || Err(format!("the signature declares {declared}, but it is {given}"));
    match (given, declared) {
        (ArgType::Value(DType::Number(from)), ArgType::Value(DType::Number(to))) => {
            let rank = match cost(*from, *to) {
                Some(Cost::Exact) => return Ok(()),
                Some(Cost::Promote) => 2,
                Some(Cost::Safe) => 1,
                Some(Cost::Unsafe) => 0,
                None => return wrong(),
            };
            if let Some(count) = found.rank.get_mut(rank) {
                *count += 1;
            }
            found.casts.push(Cast { cell, from: *from, to: *to });
            Ok(())
        }
        (ArgType::Array(from), ArgType::Array(to)) => {
            if (from.dtype, from.ndim) != (to.dtype, to.ndim) {
                return wrong();
            }
            if from.readonly && !to.readonly {
                return Err(format!("the signature declares {declared}, but the array is read-only"));
            }
            match (from.layout, to.layout) {
                (from, to) if from == to => Ok(()),
                (_, Layout::Any) => {
                    if let Some(count) = found.rank.get_mut(2) {
                        *count += 1;
                    }
                    Ok(())
                }
                _ => wrong(),
            }
        }
        (ArgType::Tuple(from), ArgType::Tuple(to)) if from.len() == to.len() => {
            let mut cell = cell;
            for (from, to) in from.iter().zip(to) {
                match_type(from, to, cell, found)?;
                cell += from.cells();
            }
            Ok(())
        }
        (ArgType::Value(from), ArgType::Value(to)) if from == to => Ok(()),
        (ArgType::Value(_) | ArgType::Array(_) | ArgType::Tuple(_), _) => wrong(),
    }
}

fn cost(from: Number, to: Number) -> Option<Cost> {
    if from == to {
        return Some(Cost::Exact);
    }
    let wider = to.size_bytes() > from.size_bytes();
    match (from, to) {
        (Number::Real(from), Number::Real(to)) => real_cost(from, to),
        (Number::Complex(_), Number::Complex(_)) => Some(if wider { Cost::Promote } else { Cost::Unsafe }),
        (Number::Real(from), Number::Complex(to)) if from.is_float() => {
            Some(if to.part().size_bytes() >= from.size_bytes() { Cost::Safe } else { Cost::Unsafe })
        }
        (Number::Real(from), Number::Complex(to)) => Some(whole_to_float(from, to.part())),
        (Number::Complex(_), Number::Real(_)) => None,
    }
}

fn real_cost(from: Scalar, to: Scalar) -> Option<Cost> {
    let wider = to.size_bytes() > from.size_bytes();
    let whole = |scalar: Scalar| scalar.is_int() || scalar == Scalar::Bool;
    Some(if whole(from) && to.is_int() {
        let same_kind = from.is_signed_int() == to.is_signed_int();
        match (from == Scalar::Bool, same_kind, wider) {
            (true, _, _) => Cost::Safe,
            (_, true, true) => Cost::Promote,
            (_, false, true) if from.is_unsigned_int() => Cost::Safe,
            _ => Cost::Unsafe,
        }
    } else if from.is_int() && to == Scalar::Bool {
        Cost::Unsafe
    } else if whole(from) && to.is_float() {
        whole_to_float(from, to)
    } else if from.is_float() && to.is_float() {
        if wider { Cost::Promote } else { Cost::Unsafe }
    } else {
        return None;
    })
}

/// The mantissa of a float holds every value of a narrower integer.
fn whole_to_float(from: Scalar, to: Scalar) -> Cost {
    if to.size_bytes() > from.size_bytes() || (to == Scalar::F64 && from.size_bytes() == 8) {
        Cost::Safe
    } else {
        Cost::Unsafe
    }
}

/// Converts numbers in their cells.
pub(crate) fn apply(casts: &[Cast], cells: &mut [u64]) {
    for cast in casts {
        let Some([low, high]) = cells.get_mut(cast.cell..cast.cell + 2) else { continue };
        (*low, *high) = convert(cast.from, cast.to, *low, *high);
    }
}

fn convert(from: Number, to: Number, low: u64, high: u64) -> (u64, u64) {
    let single = |number: Number| number.part() == Scalar::F32;
    let part = |bits: u64| if single(from) { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) };
    let encode = |value: f64| if single(to) { u64::from((value as f32).to_bits()) } else { value.to_bits() };
    match from {
        Number::Complex(_) => (encode(part(low)), encode(part(high))),
        Number::Real(Scalar::F32 | Scalar::F64) => (encode(part(low)), encode(0.0)),
        Number::Real(whole) => {
            let int = if whole == Scalar::U64 { i128::from(low) } else { i128::from(low as i64) };
            let bits = match to.part() {
                Scalar::F32 => (int as f32).to_bits().into(),
                Scalar::F64 => (int as f64).to_bits(),
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
    use weft_artifact::ArrayType;

    use super::*;

    fn scalar(number: Number) -> ArgType {
        number.into()
    }

    #[test]
    fn int_becomes_int32_with_wrap_around() {
        let found = match_types(&[scalar(Number::I64)], &[scalar(Number::I32)]).expect("an unsafe conversion");
        assert_eq!(found.rank, [1, 0, 0]);
        let mut cells = [0x1_0000_0005, 0];
        apply(&found.casts, &mut cells);
        assert_eq!(cells[0] as u32, 5);
    }

    #[test]
    fn int_becomes_bool_by_not_being_zero() {
        let found = match_types(&[scalar(Number::I64)], &[scalar(Number::BOOL)]).expect("an unsafe conversion");
        assert_eq!(found.rank, [1, 0, 0]);
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
    fn float_never_becomes_int() {
        let wrong =
            match_types(&[scalar(Number::I64), scalar(Number::F64)], &[scalar(Number::I64), scalar(Number::I64)]);
        assert_eq!(wrong.map_err(|mismatch| mismatch.param), Err(1));
    }

    #[test]
    fn arrays_match_their_dtype_and_layout() {
        let array =
            |dtype: Number, layout| ArgType::Array(ArrayType { dtype: dtype.into(), ndim: 1, layout, readonly: false });
        let c = array(Number::F32, Layout::C);
        assert!(match_types(std::slice::from_ref(&c), &[array(Number::F32, Layout::Any)]).is_ok());
        assert!(match_types(&[array(Number::F32, Layout::Any)], std::slice::from_ref(&c)).is_err());
        assert!(match_types(&[c], &[array(Number::F64, Layout::C)]).is_err());
    }
}
