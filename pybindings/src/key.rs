//! Type keys: the types of a launch's arguments as a short list of words, quick to make and to compare.
//!
//! A scalar is one word, an array is one word, a tuple is one word and then its elements. The same walk gives each
//! argument's *cells*: two for a scalar (value, or real and imaginary parts), one for an array's address, and one
//! for each extent and each stride. The cells of a type tuple therefore always lie at the same places.

use weft_artifact::{ArgType, ArrayType, Layout, Scalar, Slot, SlotField};

const ARRAY: u32 = 1 << 30;
const TUPLE: u32 = 1 << 31;

/// The word of a scalar.
pub(crate) fn scalar(scalar: Scalar) -> u32 {
    scalar as u32
}

/// The word of an array.
pub(crate) fn array(array: ArrayType) -> u32 {
    let layout = match array.layout {
        Layout::C => 0,
        Layout::F => 1,
        Layout::Any => 2,
    };
    ARRAY | array.dtype as u32 | u32::from(array.ndim) << 8 | layout << 16 | u32::from(array.readonly) << 20
}

/// The word before a tuple's elements.
pub(crate) fn tuple(len: usize) -> u32 {
    TUPLE | len as u32
}

/// The types that a key stands for.
pub(crate) fn decode(key: &[u32]) -> Vec<ArgType> {
    let mut words = key.iter().copied();
    let mut types = Vec::new();
    while let Some(ty) = next(&mut words) {
        types.push(ty);
    }
    types
}

fn next(words: &mut impl Iterator<Item = u32>) -> Option<ArgType> {
    let word = words.next()?;
    if word & TUPLE != 0 {
        return Some(ArgType::Tuple((0..word & !TUPLE).map_while(|_| next(words)).collect()));
    }
    let dtype = Scalar::ALL.into_iter().find(|scalar| *scalar as u32 == word & 0xff)?;
    if word & ARRAY == 0 {
        return Some(ArgType::Scalar(dtype));
    }
    let layout = match word >> 16 & 3 {
        0 => Layout::C,
        1 => Layout::F,
        _ => Layout::Any,
    };
    Some(ArgType::Array(ArrayType { dtype, ndim: (word >> 8 & 0xff) as u8, layout, readonly: word >> 20 & 1 == 1 }))
}

/// How many cells a type has.
pub(crate) fn cells(ty: &ArgType) -> usize {
    match ty {
        ArgType::Scalar(_) => 2,
        ArgType::Array(array) => 1 + 2 * usize::from(array.ndim),
        ArgType::Tuple(items) => items.iter().map(cells).sum(),
    }
}

/// The cell that a slot of a kernel with these arguments is taken from; `None` if the slot fits no argument.
pub(crate) fn cell_of(args: &[ArgType], slot: &Slot) -> Option<usize> {
    let mut param = slot.param as usize;
    let mut types = args;
    let mut offset = 0;
    let mut path = slot.path.iter();
    loop {
        offset += types.get(..param)?.iter().map(cells).sum::<usize>();
        match (types.get(param)?, path.next()) {
            (ArgType::Tuple(items), Some(step)) => {
                types = items;
                param = *step as usize;
            }
            (ArgType::Scalar(_), None) => {
                return match slot.field {
                    SlotField::Value | SlotField::Real => Some(offset),
                    SlotField::Imag => Some(offset + 1),
                    _ => None,
                };
            }
            (ArgType::Array(array), None) => {
                let ndim = usize::from(array.ndim);
                let place = match slot.field {
                    SlotField::Data => 0,
                    SlotField::Shape(dim) if usize::from(dim) < ndim => 1 + usize::from(dim),
                    SlotField::Stride(dim) if usize::from(dim) < ndim => 1 + ndim + usize::from(dim),
                    _ => return None,
                };
                return Some(offset + place);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_artifact::SlotType;

    use super::*;

    fn types() -> Vec<ArgType> {
        let array = ArrayType { dtype: Scalar::C64, ndim: 2, layout: Layout::F, readonly: true };
        vec![
            ArgType::Scalar(Scalar::C128),
            ArgType::Tuple(vec![ArgType::Scalar(Scalar::I8), ArgType::Tuple(vec![]), ArgType::Array(array)]),
            ArgType::Scalar(Scalar::Bool),
        ]
    }

    fn key(types: &[ArgType], out: &mut Vec<u32>) {
        for ty in types {
            match ty {
                ArgType::Scalar(s) => out.push(scalar(*s)),
                ArgType::Array(a) => out.push(array(*a)),
                ArgType::Tuple(items) => {
                    out.push(tuple(items.len()));
                    key(items, out);
                }
            }
        }
    }

    #[test]
    fn keys_are_read_back() {
        let mut words = Vec::new();
        key(&types(), &mut words);
        assert_eq!(decode(&words), types());
    }

    #[test]
    fn every_scalar_and_layout_has_its_own_word() {
        let mut seen = std::collections::BTreeSet::new();
        for dtype in Scalar::ALL {
            assert!(seen.insert(scalar(dtype)));
            for layout in [Layout::C, Layout::F, Layout::Any] {
                for readonly in [false, true] {
                    for ndim in 0..=4 {
                        assert!(seen.insert(array(ArrayType { dtype, ndim, layout, readonly })));
                    }
                }
            }
        }
    }

    #[test]
    fn slots_find_their_cells() {
        let slot = |param, path: &[u32], field| Slot { param, path: path.to_vec(), field, ty: SlotType::Pointer };
        let types = types();
        assert_eq!(cell_of(&types, &slot(0, &[], SlotField::Imag)), Some(1));
        assert_eq!(cell_of(&types, &slot(1, &[0], SlotField::Value)), Some(2));
        assert_eq!(cell_of(&types, &slot(1, &[2], SlotField::Data)), Some(4));
        assert_eq!(cell_of(&types, &slot(1, &[2], SlotField::Stride(1))), Some(8));
        assert_eq!(cell_of(&types, &slot(2, &[], SlotField::Value)), Some(9));
        assert_eq!(cell_of(&types, &slot(1, &[2], SlotField::Shape(2))), None);
        assert_eq!(cell_of(&types, &slot(2, &[0], SlotField::Value)), None);
    }
}
