//! The types of kernel arguments: scalars, arrays and tuples, and their text forms.
//!
//! The text forms are Numba's: `int32`, `array(float32, 2d, C)`, `Tuple(int64, float32)`.

use std::fmt;

/// An element type. `Bool` takes one byte in memory; complex types are (real, imaginary) pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// `boolean`, one byte: 0 or 1.
    Bool,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Two `F32`: real, imaginary.
    C64,
    /// Two `F64`: real, imaginary.
    C128,
}

impl Scalar {
    /// Every scalar, in promotion-table order.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F32,
        Self::F64,
        Self::C64,
        Self::C128,
    ];

    /// Bytes of one element in memory.
    pub const fn size_bytes(self) -> u64 {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// Alignment in memory: that of the real part for complex types.
    pub const fn align_bytes(self) -> u64 {
        match self {
            Self::C64 => 4,
            Self::C128 => 8,
            _ => self.size_bytes(),
        }
    }

    /// `true` for `I8`…`I64`.
    pub const fn is_signed_int(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// `true` for `U8`…`U64`.
    pub const fn is_unsigned_int(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// `true` for signed and unsigned integers, not for `Bool`.
    pub const fn is_int(self) -> bool {
        self.is_signed_int() || self.is_unsigned_int()
    }

    /// `true` for `F32` and `F64`.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// `true` for `C64` and `C128`.
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::C64 | Self::C128)
    }

    /// The type of a complex number's parts; a real type is its own part.
    #[must_use]
    pub const fn part(self) -> Self {
        match self {
            Self::C64 => Self::F32,
            Self::C128 => Self::F64,
            other => other,
        }
    }

    /// Numba's name: `boolean`, `int8` … `complex128`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "boolean",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
        }
    }

    /// The scalar that a Numba or NumPy name means (`float32`, `f4`, `bool_`, `intp`, …); Numba's short names count bytes.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "boolean" | "bool_" | "bool" | "b1" => Self::Bool,
            "int8" | "i1" | "byte" | "char" => Self::I8,
            "int16" | "i2" | "short" | "int_short" => Self::I16,
            "int32" | "i4" | "intc" => Self::I32,
            "int64" | "i8" | "intp" | "int_" | "longlong" | "long_" | "ssize_t" => Self::I64,
            "uint8" | "u1" | "ubyte" | "uchar" => Self::U8,
            "uint16" | "u2" | "ushort" => Self::U16,
            "uint32" | "u4" | "uintc" => Self::U32,
            "uint64" | "u8" | "uintp" | "uint" | "ulonglong" | "ulong" | "size_t" => Self::U64,
            "float32" | "f4" | "float_" | "single" => Self::F32,
            "float64" | "f8" | "double" => Self::F64,
            "complex64" | "c8" | "csingle" => Self::C64,
            "complex128" | "c16" | "cdouble" => Self::C128,
            _ => return None,
        })
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How an array's elements lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// C-contiguous: the last index runs fastest; strides follow from the shape.
    C,
    /// Fortran-contiguous: the first index runs fastest; strides follow from the shape.
    F,
    /// Any strides, which then travel with the array.
    Any,
}

impl Layout {
    /// `C`, `F` or `A`, as Numba prints it.
    pub const fn letter(self) -> char {
        match self {
            Self::C => 'C',
            Self::F => 'F',
            Self::Any => 'A',
        }
    }
}

/// The type of an array argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayType {
    /// Element type.
    pub dtype: Scalar,
    /// Dimensions, 0 to 4.
    pub ndim: u8,
    /// Memory layout.
    pub layout: Layout,
    /// A store through it is a type error.
    pub readonly: bool,
}

impl fmt::Display for ArrayType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.readonly { "Array" } else { "array" };
        write!(f, "{kind}({}, {}d, {})", self.dtype, self.ndim, self.layout.letter())
    }
}

/// The type of one kernel argument: the key of a specialisation is a tuple of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ArgType {
    /// Passed by value.
    Scalar(Scalar),
    /// Passed as its live fields.
    Array(ArrayType),
    /// Flattened element by element.
    Tuple(Vec<ArgType>),
}

impl fmt::Display for ArgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => scalar.fmt(f),
            Self::Array(array) => array.fmt(f),
            Self::Tuple(items) => {
                if let [first, _, ..] = items.as_slice()
                    && items.iter().all(|item| item == first)
                {
                    return write!(f, "UniTuple({first}, {})", items.len());
                }
                f.write_str("Tuple(")?;
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    item.fmt(f)?;
                }
                f.write_str(")")
            }
        }
    }
}
