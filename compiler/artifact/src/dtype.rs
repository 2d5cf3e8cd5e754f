//! The types of elements and arguments: numbers, and compound types.
//!
//! A [`DType`] is one word to copy, compare and hash. Compound types are interned: equal descriptions have the same id
//! as long as the process lives, and ids are never freed (a program has few of these types). An id is only valid in its
//! process; the description is used to store a type or to compare it between processes. (The text form is Numba's, and
//! is ambiguous: a field's name may look like another field.)

use std::{
    collections::HashMap,
    fmt,
    sync::{LazyLock, PoisonError, RwLock},
};

use crate::{
    compound::{Chars, Compound, Member},
    float8::Float8,
    number::{Number, Scalar},
};

/// The type of an element.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// A real or complex number.
    Number(Number),
    /// A record, an array in a record, or a vector.
    Compound(CompoundId),
}

/// An interned [`Compound`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CompoundId(u32);

#[derive(Default)]
struct CompoundTable {
    all: Vec<&'static Compound>,
    ids: HashMap<&'static Compound, CompoundId>,
}

static TABLE: LazyLock<RwLock<CompoundTable>> = LazyLock::new(RwLock::default);

/// Smaller codes are numbers.
const FIRST_COMPOUND: u32 = 64;

impl CompoundId {
    /// The description.
    pub fn get(self) -> &'static Compound {
        let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
        table.all[self.0 as usize]
    }
}

impl DType {
    /// The string type, if it is one.
    pub fn chars(self) -> Option<Chars> {
        match self {
            Self::Compound(id) => match id.get() {
                Compound::Chars(chars) => Some(*chars),
                Compound::Record(_)
                | Compound::Nested(_)
                | Compound::Vector(_)
                | Compound::Time(_)
                | Compound::Float8(_) => None,
            },
            Self::Number(_) => None,
        }
    }

    /// `Bool`.
    pub const BOOL: Self = Self::Number(Number::BOOL);
    /// `I8`.
    pub const I8: Self = Self::Number(Number::I8);
    /// `I16`.
    pub const I16: Self = Self::Number(Number::I16);
    /// `I32`.
    pub const I32: Self = Self::Number(Number::I32);
    /// `I64`.
    pub const I64: Self = Self::Number(Number::I64);
    /// `U8`.
    pub const U8: Self = Self::Number(Number::U8);
    /// `U16`.
    pub const U16: Self = Self::Number(Number::U16);
    /// `U32`.
    pub const U32: Self = Self::Number(Number::U32);
    /// `U64`.
    pub const U64: Self = Self::Number(Number::U64);
    /// `F16`.
    pub const F16: Self = Self::Number(Number::F16);
    /// `BF16`.
    pub const BF16: Self = Self::Number(Number::BF16);
    /// `F32`.
    pub const F32: Self = Self::Number(Number::F32);
    /// `F64`.
    pub const F64: Self = Self::Number(Number::F64);
    /// `C64`.
    pub const C64: Self = Self::Number(Number::C64);
    /// `C128`.
    pub const C128: Self = Self::Number(Number::C128);

    /// One more than the largest [`DType::code`].
    pub const CODES: u32 = 1 << 24;

    /// The dtype of a compound type; equal types have the same. `None` if there are too many types.
    pub fn intern(compound: Compound) -> Option<Self> {
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = table.ids.get(&compound) {
            return Some(Self::Compound(*id));
        }
        let id = u32::try_from(table.all.len()).ok().filter(|id| *id < Self::CODES - FIRST_COMPOUND)?;
        let compound: &'static Compound = Box::leak(Box::new(compound));
        table.all.push(compound);
        table.ids.insert(compound, CompoundId(id));
        Some(Self::Compound(CompoundId(id)))
    }

    /// The format, if it is a float of 8 bits.
    pub fn float8(self) -> Option<Float8> {
        match self {
            Self::Compound(id) => match id.get() {
                Compound::Float8(format) => Some(*format),
                Compound::Record(_)
                | Compound::Nested(_)
                | Compound::Vector(_)
                | Compound::Time(_)
                | Compound::Chars(_) => None,
            },
            Self::Number(_) => None,
        }
    }

    /// The number type, if it is one.
    pub const fn number(self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(number),
            Self::Compound(_) => None,
        }
    }

    /// A number below [`DType::CODES`] that identifies the type in this process.
    pub fn code(self) -> u32 {
        match self {
            Self::Number(number) => number.code(),
            Self::Compound(CompoundId(id)) => FIRST_COMPOUND + id,
        }
    }

    /// The dtype with a code.
    pub fn from_code(code: u32) -> Option<Self> {
        let Some(id) = code.checked_sub(FIRST_COMPOUND) else {
            return Number::from_code(code).map(Self::Number);
        };
        let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
        ((id as usize) < table.all.len()).then_some(Self::Compound(CompoundId(id)))
    }

    /// Bytes of an element in memory.
    pub fn size_bytes(self) -> u64 {
        match self {
            Self::Number(number) => number.size_bytes(),
            Self::Compound(id) => id.get().size_bytes(),
        }
    }

    /// Alignment in memory.
    pub fn align_bytes(self) -> u64 {
        match self {
            Self::Number(number) => number.align_bytes(),
            Self::Compound(id) => id.get().align_bytes(),
        }
    }

    /// The scalar type that a kernel's pointer to elements has, and the number of these scalars per element: a number's
    /// parts, a vector's lanes, a record's bytes.
    pub fn access(self) -> (Scalar, u64) {
        match self {
            Self::Number(number) => (number.part(), number.parts()),
            Self::Compound(id) => match id.get() {
                Compound::Vector(vector) => (vector.scalar(), u64::from(vector.lanes())),
                Compound::Chars(chars) => (chars.scalar(), u64::from(chars.max_len())),
                Compound::Time(_) => (Scalar::I64, 1),
                Compound::Float8(_) => (Scalar::U8, 1),
                Compound::Record(_) | Compound::Nested(_) => (Scalar::U8, self.size_bytes()),
            },
        }
    }

    /// The alignment that accesses to elements assume. A record whose fields happen to be at multiples of their
    /// alignments is accessed with these alignments, even if NumPy calls it packed. Arrays of such elements must be
    /// aligned to it.
    pub fn access_align(self) -> u64 {
        match self {
            Self::Number(number) => number.align_bytes(),
            Self::Compound(id) => id.get().access_align(),
        }
    }

    /// Visits all numbers in an element, each with its path and its offset in bytes, in declaration order. An array in
    /// a record may contain any number of them.
    pub fn for_each_number(self, visit: &mut dyn FnMut(&[Member], u64, Number)) {
        self.visit(&mut Vec::new(), 0, visit);
    }

    fn visit(self, path: &mut Vec<Member>, offset: u64, visit: &mut dyn FnMut(&[Member], u64, Number)) {
        match self {
            Self::Number(number) => visit(path, offset, number),
            Self::Compound(id) => id.get().for_each_member(&mut |member, place, dtype| {
                path.push(member);
                dtype.visit(path, offset + place, visit);
                path.pop();
            }),
        }
    }
}

impl From<Number> for DType {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<Scalar> for DType {
    fn from(scalar: Scalar) -> Self {
        Self::Number(scalar.into())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Compound(id) => id.get().fmt(f),
        }
    }
}

/// Formats the text form, because an id alone is not readable.
impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for CompoundId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.get(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::Vector;

    #[test]
    fn codes_are_read_back() {
        let vector = Vector::new(Scalar::F32, 4).expect("is a vector");
        let mut dtypes: Vec<DType> = Number::all().map(DType::from).collect();
        dtypes.push(DType::intern(Compound::Vector(vector)).expect("there is room"));
        let mut codes: Vec<u32> = dtypes.iter().map(|dtype| dtype.code()).collect();
        for (dtype, code) in dtypes.iter().zip(&codes) {
            assert_eq!(DType::from_code(*code), Some(*dtype));
            assert!(*code < DType::CODES);
        }
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), dtypes.len());
        assert_eq!(DType::from_code(FIRST_COMPOUND - 1), None);
        assert_eq!(DType::from_code(DType::CODES - 1), None);
    }

    #[test]
    fn equal_descriptions_are_one_dtype_in_all_threads() {
        let vector = || Compound::Vector(Vector::new(Scalar::I16, 3).expect("is a vector"));
        let ids: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| DType::intern(vector()))).collect();
            threads.into_iter().map(|thread| thread.join().expect("does not panic")).collect()
        });
        assert!(ids.iter().all(|id| id.is_some() && *id == ids[0]));
        assert_ne!(ids[0], DType::intern(Compound::Vector(Vector::new(Scalar::U16, 3).expect("is a vector"))));
    }
}
