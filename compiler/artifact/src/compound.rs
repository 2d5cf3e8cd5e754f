//! Element types that are not numbers: records, arrays in records, vectors, and NumPy's strings and times.
//!
//! The constructors ensure that a description is valid: fields have different names and are within the size, which fits
//! in 63 bits. The text forms are Numba's.

use std::fmt;

use crate::{dtype::DType, float8::Float8, number::Scalar, time::Time, vector::Vector};

/// The size limit of a type: offsets and sizes must fit in the signed type of strides.
const MAX_BYTES: u64 = i64::MAX as u64;

/// A type that is not a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Compound {
    /// Named fields at offsets, like a structured dtype of NumPy.
    Record(Record),
    /// An array as a field of a record: the shape belongs to the type.
    Nested(Nested),
    /// Up to four equal scalars that are read and written at once.
    Vector(Vector),
    /// A string of a fixed length, like NumPy's.
    Chars(Chars),
    /// A `datetime64` or a `timedelta64`: a signed count of units. The lowest value is `NaT`.
    Time(Time),
    /// A float of 8 bits, which kernels convert and do not compute with.
    Float8(Float8),
}

/// A string of a fixed length; a shorter one is padded with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chars {
    wide: bool,
    len: u32,
}

/// A structured dtype.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    fields: Vec<RecordField>,
    size: u64,
    aligned: bool,
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordField {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// Its offset in bytes.
    pub offset: u64,
}

/// An array of a fixed shape, in C order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nested {
    dtype: DType,
    shape: Vec<u64>,
}

/// A member of a compound type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// A record's field, by its number.
    Field(u32),
    /// An array's item, counted in C order; a string's character; a time's count; the bits of a float of 8 bits.
    Item(u64),
    /// A vector's lane.
    Lane(u8),
}

/// The reason why a description is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompoundError {
    /// A record has two fields of this name.
    SameName(String),
    /// A record's field ends past the end of the record.
    Beyond(String),
    /// The offset of a field of an aligned record, or the record's size, is not a multiple of the alignment.
    Misaligned(String),
    /// The size does not fit in 63 bits.
    TooLarge,
    /// A vector must have 1 to 4 lanes, and no booleans.
    Lanes(u8),
}

impl Record {
    /// A record with fields at given offsets, like NumPy's; fields may overlap.
    ///
    /// # Errors
    ///
    /// See [`CompoundError`].
    pub fn new(fields: Vec<RecordField>, size: u64, aligned: bool) -> Result<Self, CompoundError> {
        for (index, field) in fields.iter().enumerate() {
            if fields.iter().take(index).any(|other| other.name == field.name) {
                return Err(CompoundError::SameName(field.name.clone()));
            }
            let end = field.offset.checked_add(field.dtype.size_bytes()).ok_or(CompoundError::TooLarge)?;
            if end > size {
                return Err(CompoundError::Beyond(field.name.clone()));
            }
            if aligned && !field.offset.is_multiple_of(field.dtype.align_bytes()) {
                return Err(CompoundError::Misaligned(field.name.clone()));
            }
        }
        if size > MAX_BYTES {
            return Err(CompoundError::TooLarge);
        }
        let record = Self { fields, size, aligned };
        if !record.size.is_multiple_of(record.align_bytes()) {
            return Err(CompoundError::Misaligned(format!("{record}")));
        }
        Ok(record)
    }

    /// A record with consecutive fields, at multiples of their alignments if `aligned`.
    ///
    /// # Errors
    ///
    /// See [`CompoundError`].
    pub fn in_order(fields: &[(&str, DType)], aligned: bool) -> Result<Self, CompoundError> {
        let mut end: u64 = 0;
        let mut align = 1;
        let mut placed = Vec::with_capacity(fields.len());
        for (name, dtype) in fields {
            let own = if aligned { dtype.align_bytes() } else { 1 };
            align = align.max(own);
            let offset = end.checked_next_multiple_of(own).ok_or(CompoundError::TooLarge)?;
            end = offset.checked_add(dtype.size_bytes()).ok_or(CompoundError::TooLarge)?;
            placed.push(RecordField { name: (*name).to_owned(), dtype: *dtype, offset });
        }
        Self::new(placed, end.checked_next_multiple_of(align).ok_or(CompoundError::TooLarge)?, aligned)
    }

    /// The fields, in order of their declaration.
    pub fn fields(&self) -> &[RecordField] {
        &self.fields
    }

    /// The size of a record in bytes, including the padding after its last field.
    pub fn size_bytes(&self) -> u64 {
        self.size
    }

    /// The number of the field with a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Whether fields are at multiples of their alignments, as in C.
    pub fn is_aligned(&self) -> bool {
        self.aligned
    }

    /// The largest alignment of a field; 1 for a packed record.
    fn align_bytes(&self) -> u64 {
        let aligns = self.fields.iter().map(|field| field.dtype.align_bytes());
        if self.aligned { aligns.max().unwrap_or(1) } else { 1 }
    }
}

impl Nested {
    /// An array of these elements with this shape.
    ///
    /// # Errors
    ///
    /// See [`CompoundError`].
    pub fn new(dtype: DType, shape: Vec<u64>) -> Result<Self, CompoundError> {
        let count = shape.iter().try_fold(1_u64, |all, extent| all.checked_mul(*extent));
        let bytes = count.and_then(|count| count.checked_mul(dtype.size_bytes().max(1)));
        if bytes.is_some_and(|bytes| bytes <= MAX_BYTES) {
            Ok(Self { dtype, shape })
        } else {
            Err(CompoundError::TooLarge)
        }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Chars {
    /// A string of `len` bytes, or if it is wide, of `len` four-byte characters.
    pub fn new(wide: bool, len: u32) -> Self {
        Self { wide, len }
    }

    /// Whether its characters have four bytes.
    pub fn is_wide(self) -> bool {
        self.wide
    }

    /// The maximum number of characters.
    pub fn max_len(self) -> u32 {
        self.len
    }

    /// The type of a character.
    pub fn scalar(self) -> Scalar {
        if self.wide { Scalar::U32 } else { Scalar::U8 }
    }
}

impl Compound {
    /// The size of an element in bytes.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Self::Record(record) => record.size,
            Self::Nested(nested) => nested.len() * nested.dtype.size_bytes(),
            Self::Vector(vector) => vector.scalar().size_bytes() * u64::from(vector.lanes()),
            Self::Chars(chars) => chars.scalar().size_bytes() * u64::from(chars.len),
            Self::Time(_) => Scalar::I64.size_bytes(),
            Self::Float8(_) => Scalar::U8.size_bytes(),
        }
    }

    /// Alignment in bytes. Vectors of 2 and 4 lanes are aligned to their size, as in CUDA, but to at most 16 bytes.
    pub fn align_bytes(&self) -> u64 {
        match self {
            Self::Record(record) => record.align_bytes(),
            Self::Nested(nested) => nested.dtype.align_bytes(),
            Self::Vector(vector) if vector.lanes() == 3 => vector.scalar().align_bytes(),
            Self::Vector(_) => self.size_bytes().min(16),
            Self::Chars(chars) => chars.scalar().align_bytes(),
            Self::Time(_) => Scalar::I64.align_bytes(),
            Self::Float8(_) => Scalar::U8.align_bytes(),
        }
    }

    /// See [`DType::access_align`].
    pub(crate) fn access_align(&self) -> u64 {
        match self {
            Self::Record(record) => {
                let aligns = || record.fields.iter().map(|field| (field.offset, field.dtype.access_align()));
                let most = aligns().map(|(_, align)| align).max().unwrap_or(1);
                let fits = aligns().all(|(offset, align)| offset.is_multiple_of(align));
                if fits && record.size.is_multiple_of(most) { most } else { 1 }
            }
            Self::Nested(nested) => nested.dtype.access_align(),
            Self::Vector(_) | Self::Chars(_) | Self::Time(_) | Self::Float8(_) => self.align_bytes(),
        }
    }

    /// Visits the direct members: each with its offset in bytes and its type.
    pub fn for_each_member(&self, visit: &mut dyn FnMut(Member, u64, DType)) {
        match self {
            Self::Record(record) => {
                for (index, field) in record.fields.iter().enumerate() {
                    visit(Member::Field(index as u32), field.offset, field.dtype);
                }
            }
            Self::Nested(nested) => {
                for index in 0..nested.len() {
                    visit(Member::Item(index), index * nested.dtype.size_bytes(), nested.dtype);
                }
            }
            Self::Vector(vector) => {
                for lane in 0..vector.lanes() {
                    visit(
                        Member::Lane(lane),
                        u64::from(lane) * vector.scalar().size_bytes(),
                        DType::from(vector.scalar()),
                    );
                }
            }
            Self::Chars(chars) => {
                let scalar = chars.scalar();
                for at in 0..u64::from(chars.len) {
                    visit(Member::Item(at), at * scalar.size_bytes(), DType::from(scalar));
                }
            }
            Self::Time(_) => visit(Member::Item(0), 0, DType::I64),
            Self::Float8(_) => visit(Member::Item(0), 0, DType::U8),
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Record(")?;
        for (index, RecordField { name, dtype, offset }) in self.fields.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{name}[type={dtype};offset={offset}]")?;
        }
        write!(f, ";{};{})", self.size, if self.aligned { "True" } else { "False" })
    }
}

impl fmt::Display for Nested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The shape is a Python tuple: `(3,)`, `(2, 3)`.
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        let end = if shape.len() == 1 { "," } else { "" };
        write!(f, "nestedarray({}, ({}{end}))", self.dtype, shape.join(", "))
    }
}

impl fmt::Display for Compound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(record) => record.fmt(f),
            Self::Nested(nested) => nested.fmt(f),
            Self::Vector(vector) => vector.fmt(f),
            Self::Chars(chars) => write!(f, "[{} x {}]", if chars.wide { "unichr" } else { "char" }, chars.len),
            Self::Time(time) => time.fmt(f),
            Self::Float8(format) => format.fmt(f),
        }
    }
}

impl fmt::Display for CompoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameName(name) => write!(f, "two fields have the name `{name}`"),
            Self::Beyond(name) => write!(f, "the field `{name}` ends after the end of the record"),
            Self::Misaligned(what) => write!(f, "`{what}` is not aligned"),
            Self::TooLarge => f.write_str("it is larger than the address space"),
            Self::Lanes(lanes) => write!(f, "a vector has 1 to 4 components, not {lanes}"),
        }
    }
}

impl std::error::Error for CompoundError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Number;

    fn intern(compound: Compound) -> DType {
        DType::intern(compound).expect("there is room")
    }

    fn record(fields: &[(&str, DType)], aligned: bool) -> DType {
        intern(Compound::Record(Record::in_order(fields, aligned).expect("is a record")))
    }

    fn nested(dtype: DType, shape: &[u64]) -> DType {
        intern(Compound::Nested(Nested::new(dtype, shape.to_vec()).expect("is an array")))
    }

    fn vector(scalar: Scalar, lanes: u8) -> DType {
        intern(Compound::Vector(Vector::new(scalar, lanes).expect("is a vector")))
    }

    #[test]
    fn texts_are_numbas() {
        // As `str(numba.from_dtype(...))` prints them.
        let cases = [
            (
                record(&[("a", DType::I8), ("b", DType::F64)], false),
                "Record(a[type=int8;offset=0],b[type=float64;offset=1];9;False)",
            ),
            (
                record(&[("a", DType::I8), ("b", DType::F64)], true),
                "Record(a[type=int8;offset=0],b[type=float64;offset=8];16;True)",
            ),
            (
                record(&[("v", nested(DType::F32, &[3])), ("z", DType::C64)], true),
                "Record(v[type=nestedarray(float32, (3,));offset=0],z[type=complex64;offset=12];20;True)",
            ),
            (nested(DType::BOOL, &[2, 3]), "nestedarray(boolean, (2, 3))"),
            (nested(DType::I16, &[]), "nestedarray(int16, ())"),
            (vector(Scalar::F32, 4), "float32x4"),
            (record(&[], false), "Record(;0;False)"),
        ];
        for (dtype, text) in cases {
            assert_eq!(dtype.to_string(), text);
        }
    }

    #[test]
    fn sizes_and_alignments_are_cs() {
        let point = record(&[("tag", DType::U8), ("xy", vector(Scalar::F64, 2)), ("n", DType::I32)], true);
        assert_eq!((point.size_bytes(), point.align_bytes()), (48, 16));
        let packed = record(&[("tag", DType::U8), ("point", point)], false);
        assert_eq!((packed.size_bytes(), packed.align_bytes()), (49, 1));
        assert_eq!((vector(Scalar::F64, 4).size_bytes(), vector(Scalar::F64, 4).align_bytes()), (32, 16));
        assert_eq!((vector(Scalar::I16, 3).size_bytes(), vector(Scalar::I16, 3).align_bytes()), (6, 2));
        assert_eq!((nested(point, &[2, 2]).size_bytes(), nested(point, &[2, 2]).align_bytes()), (192, 16));
        assert_eq!(nested(DType::F64, &[0]).size_bytes(), 0);
    }

    #[test]
    fn the_walk_gives_every_number_at_its_place() {
        let inner = record(&[("z", DType::C128), ("w", vector(Scalar::U8, 2))], false);
        let outer = record(&[("n", DType::I32), ("items", nested(inner, &[2]))], false);
        let mut found = Vec::new();
        outer.for_each_number(&mut |path, offset, number| found.push((path.to_vec(), offset, number)));
        let item = |index, rest: &[Member]| [&[Member::Field(1), Member::Item(index)], rest].concat();
        let lane = |lane| [Member::Field(1), Member::Lane(lane)];
        let expected = [
            (vec![Member::Field(0)], 0, Number::I32),
            (item(0, &[Member::Field(0)]), 4, Number::C128),
            (item(0, &lane(0)), 20, Number::U8),
            (item(0, &lane(1)), 21, Number::U8),
            (item(1, &[Member::Field(0)]), 22, Number::C128),
            (item(1, &lane(0)), 38, Number::U8),
            (item(1, &lane(1)), 39, Number::U8),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_type_is_refused() {
        let field = |name: &str, dtype, offset| RecordField { name: name.to_owned(), dtype, offset };
        let union = Record::new(vec![field("i", DType::I32, 0), field("f", DType::F32, 0)], 4, true);
        assert!(union.is_ok_and(|union| union.find("f") == Some(1)));
        let same = Record::in_order(&[("a", DType::I8), ("a", DType::I8)], false);
        assert_eq!(same, Err(CompoundError::SameName("a".to_owned())));
        assert_eq!(Record::new(vec![field("a", DType::I32, 1)], 4, false), Err(CompoundError::Beyond("a".to_owned())));
        assert_eq!(Record::new(vec![field("a", DType::I32, u64::MAX)], 4, false), Err(CompoundError::TooLarge));
        assert_eq!(
            Record::new(vec![field("a", DType::I32, 2)], 8, true),
            Err(CompoundError::Misaligned("a".to_owned()))
        );
        assert!(matches!(Record::new(vec![field("a", DType::I32, 0)], 6, true), Err(CompoundError::Misaligned(_))));
        assert_eq!(Nested::new(DType::F64, vec![1 << 32, 1 << 32]), Err(CompoundError::TooLarge));
        assert_eq!(Nested::new(DType::I8, vec![1 << 63]), Err(CompoundError::TooLarge));
        assert_eq!(Vector::new(Scalar::F32, 5), Err(CompoundError::Lanes(5)));
        assert_eq!(Vector::new(Scalar::Bool, 2), Err(CompoundError::Lanes(2)));
    }

    #[test]
    fn texts_are_numpys_too() {
        let chars = [Compound::Chars(Chars::new(true, 5)), Compound::Chars(Chars::new(false, 5))];
        assert_eq!(chars.each_ref().map(ToString::to_string), ["[unichr x 5]", "[char x 5]"]);
        assert_eq!(chars.each_ref().map(Compound::size_bytes), [20, 5]);
        assert_eq!(chars.each_ref().map(Compound::align_bytes), [4, 1]);
    }
}
