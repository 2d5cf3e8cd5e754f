//! The table of number types: their names, their sizes, and their codes in NumPy, the array interfaces and the buffer
//! protocol. Every name, code and type string of a number in weft comes from this table. A new number type needs a row
//! here, and code in the compiler.

use crate::number::Number;

/// The properties of a number's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The type.
    pub number: Number,
    /// Numba's name, and weft's.
    pub name: &'static str,
    /// Numba's other names: members of `weft` and of `weft.types`, names in signatures.
    pub others: &'static [&'static str],
    /// Members of `numpy`; the first is the scalar type. On Linux `long` has 64 bits.
    pub numpy: &'static [&'static str],
    /// `__array_interface__`'s type string on a little-endian machine: byte order, kind, bytes; empty if no type string
    /// identifies this type.
    pub typestr: &'static str,
    /// The buffer protocol's codes, for elements of `size` bytes.
    pub formats: &'static [&'static str],
    /// The size of an element in bytes.
    pub size: u64,
    /// Its alignment in bytes: that of the real part for complex numbers.
    pub align: u64,
}

impl Row {
    /// NumPy's `dtype.kind`: `b`, `i`, `u`, `f` or `c`; `None` for a type that NumPy lacks.
    pub fn kind(&self) -> Option<char> {
        self.typestr.chars().nth(1)
    }
}

/// The numbers, in the order of their codes.
pub static NUMBERS: [Row; 15] = [
    Row {
        number: Number::BOOL,
        name: "boolean",
        others: &["bool_", "b1"],
        numpy: &["bool_", "bool"],
        typestr: "|b1",
        formats: &["?"],
        size: 1,
        align: 1,
    },
    Row {
        number: Number::I8,
        name: "int8",
        others: &["i1", "char"],
        numpy: &["int8", "byte"],
        typestr: "|i1",
        formats: &["b"],
        size: 1,
        align: 1,
    },
    Row {
        number: Number::I16,
        name: "int16",
        others: &["i2", "short"],
        numpy: &["int16", "short"],
        typestr: "<i2",
        formats: &["h"],
        size: 2,
        align: 2,
    },
    Row {
        number: Number::I32,
        name: "int32",
        others: &["i4", "intc"],
        numpy: &["int32", "intc"],
        typestr: "<i4",
        formats: &["i", "l"],
        size: 4,
        align: 4,
    },
    Row {
        number: Number::I64,
        name: "int64",
        others: &["i8", "intp", "int_", "ssize_t", "longlong", "long_"],
        numpy: &["int64", "intp", "int_", "long", "longlong"],
        typestr: "<i8",
        formats: &["l", "q", "n"],
        size: 8,
        align: 8,
    },
    Row {
        number: Number::U8,
        name: "uint8",
        others: &["u1", "uchar", "byte"],
        numpy: &["uint8", "ubyte"],
        typestr: "|u1",
        formats: &["B", "c"],
        size: 1,
        align: 1,
    },
    Row {
        number: Number::U16,
        name: "uint16",
        others: &["u2", "ushort"],
        numpy: &["uint16", "ushort"],
        typestr: "<u2",
        formats: &["H"],
        size: 2,
        align: 2,
    },
    Row {
        number: Number::U32,
        name: "uint32",
        others: &["u4", "uintc"],
        numpy: &["uint32", "uintc"],
        typestr: "<u4",
        formats: &["I", "L"],
        size: 4,
        align: 4,
    },
    Row {
        number: Number::U64,
        name: "uint64",
        others: &["u8", "uintp", "uint", "size_t", "ulonglong", "ulong"],
        numpy: &["uint64", "uintp", "uint", "ulong", "ulonglong"],
        typestr: "<u8",
        formats: &["L", "Q", "N"],
        size: 8,
        align: 8,
    },
    Row {
        number: Number::F16,
        name: "float16",
        others: &["f2"],
        numpy: &["float16", "half"],
        typestr: "<f2",
        formats: &["e"],
        size: 2,
        align: 2,
    },
    // NumPy lacks it. The type of `ml_dtypes` has the type string of any two bytes, `<V2`, and no code in the buffer
    // protocol.
    Row {
        number: Number::BF16,
        name: "bfloat16",
        others: &[],
        numpy: &[],
        typestr: "",
        formats: &[],
        size: 2,
        align: 2,
    },
    Row {
        number: Number::F32,
        name: "float32",
        others: &["f4", "float_"],
        numpy: &["float32", "single"],
        typestr: "<f4",
        formats: &["f"],
        size: 4,
        align: 4,
    },
    Row {
        number: Number::F64,
        name: "float64",
        others: &["f8", "double"],
        numpy: &["float64", "double"],
        typestr: "<f8",
        formats: &["d"],
        size: 8,
        align: 8,
    },
    Row {
        number: Number::C64,
        name: "complex64",
        others: &["c8"],
        numpy: &["complex64", "csingle"],
        typestr: "<c8",
        formats: &["Zf"],
        size: 8,
        align: 4,
    },
    Row {
        number: Number::C128,
        name: "complex128",
        others: &["c16"],
        numpy: &["complex128", "cdouble"],
        typestr: "<c16",
        formats: &["Zd"],
        size: 16,
        align: 8,
    },
];

impl Number {
    fn find(is: impl Fn(&Row) -> bool) -> Option<Self> {
        NUMBERS.iter().find(|row| is(row)).map(|row| row.number)
    }

    /// The number with a name of Numba: `float32`, `f4`, `intp`; the short names count bytes.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::find(|row| row.name == name || row.others.contains(&name))
    }

    /// The number with the name of a NumPy type: `float32`, `intc`, `bool_`.
    pub fn from_numpy_name(name: &str) -> Option<Self> {
        Self::find(|row| row.numpy.contains(&name))
    }

    /// The number of a NumPy dtype by its `kind` and `itemsize`.
    pub fn from_kind(kind: char, size: u64) -> Option<Self> {
        Self::find(|row| row.size == size && row.kind() == Some(kind))
    }

    /// The number of a type string as NumPy writes it: `<f4`, `|b1`.
    pub fn from_typestr(typestr: &str) -> Option<Self> {
        Self::find(|row| row.typestr == typestr && !typestr.is_empty())
    }

    /// The number with a buffer's format: `f`, `@l`, `<Zd`; `None` for others and for foreign byte order.
    pub fn from_format(format: &str, size: u64) -> Option<Self> {
        let code = format.strip_prefix(['@', '=', '<']).unwrap_or(format);
        Self::find(|row| row.size == size && row.formats.contains(&code))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::number::Scalar;

    #[test]
    fn each_number_has_its_row() {
        for (index, row) in NUMBERS.iter().enumerate() {
            assert_eq!(row.number.code() as usize, index, "{}", row.name);
            assert_eq!(row.number.row(), row);
            assert_eq!(row.size, row.number.part().size_bytes() * row.number.parts());
            assert_eq!(row.align, row.number.part().size_bytes());
            let order = if row.size == 1 { '|' } else { '<' };
            let typestr = row.kind().map(|kind| format!("{order}{kind}{}", row.size));
            assert_eq!(row.typestr, typestr.unwrap_or_default());
        }
        assert_eq!(Scalar::ALL.iter().collect::<BTreeSet<_>>().len(), 13);
    }

    #[test]
    fn no_name_means_two_numbers() {
        let mut names = BTreeSet::new();
        let mut numpy = BTreeSet::new();
        let mut formats = BTreeSet::new();
        for row in &NUMBERS {
            assert!(names.insert(row.name) && row.others.iter().all(|name| names.insert(name)), "{}", row.name);
            assert!(row.numpy.iter().all(|name| numpy.insert(name)), "{}", row.name);
            assert!(row.formats.iter().all(|format| formats.insert((*format, row.size))), "{}", row.name);
        }
    }

    #[test]
    fn names_and_codes_are_read_back() {
        for row in &NUMBERS {
            let number = Some(row.number);
            assert_eq!(Number::from_name(row.name), number);
            assert!(row.others.iter().all(|name| Number::from_name(name) == number));
            assert!(row.numpy.iter().all(|name| Number::from_numpy_name(name) == number));
            if let Some(kind) = row.kind() {
                assert_eq!(Number::from_kind(kind, row.size), number);
                assert_eq!(Number::from_typestr(row.typestr), number);
            }
            assert!(row.formats.iter().all(|format| Number::from_format(&format!("@{format}"), row.size) == number));
        }
        // NumPy's `byte` is signed, Numba's is unsigned.
        assert_eq!(Number::from_name("byte"), Some(Number::U8));
        assert_eq!(Number::from_numpy_name("byte"), Some(Number::I8));
        assert_eq!(Number::from_numpy_name("i8"), None);
        assert_eq!(Number::from_format(">f", 4), None);
        assert_eq!(Number::from_format("l", 4), Some(Number::I32));
        assert_eq!(Number::from_typestr(">f4"), None);
        assert_eq!(Number::from_typestr(""), None);
    }
}
