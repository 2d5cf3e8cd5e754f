//! The types of numbers: the values that a kernel computes with, and the elements of arrays of numbers.
//!
//! Their names and codes are in `table.rs`.

use std::fmt;

use crate::table::{NUMBERS, Row};

/// A real number's type, which the IR computes with. `Bool` takes one byte in memory.
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
    /// IEEE 754 binary16.
    F16,
    /// The upper half of an IEEE 754 binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

/// A complex number's type: (real, imaginary) in memory, two scalars in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Complex {
    /// Two `F32`.
    C64,
    /// Two `F64`.
    C128,
}

/// The type of a number: of a kernel's variable or an array's element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Number {
    /// A real number.
    Real(Scalar),
    /// A complex number.
    Complex(Complex),
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
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
    ];

    /// Its row of [`NUMBERS`].
    pub const fn row(self) -> &'static Row {
        Number::Real(self).row()
    }

    /// Bytes of one element in memory.
    pub const fn size_bytes(self) -> u64 {
        self.row().size
    }

    /// Alignment in memory.
    pub const fn align_bytes(self) -> u64 {
        self.row().align
    }

    /// `true` for `I8`…`I64`.
    pub const fn is_signed_int(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// The sign bit of a signed integer, in a cell of 64 bits.
    pub const fn sign_bit(self) -> u64 {
        1 << (8 * self.size_bytes() - 1)
    }

    /// `true` for `U8`…`U64`.
    pub const fn is_unsigned_int(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// `true` for signed and unsigned integers, not for `Bool`.
    pub const fn is_int(self) -> bool {
        self.is_signed_int() || self.is_unsigned_int()
    }

    /// `true` for `F16`, `BF16`, `F32` and `F64`.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// `true` for `F16` and `BF16`.
    pub const fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::BF16)
    }

    /// Numba's name: `boolean`, `int8` … `float64`.
    pub const fn name(self) -> &'static str {
        self.row().name
    }
}

impl Complex {
    /// The type of the real and of the imaginary part.
    pub const fn part(self) -> Scalar {
        match self {
            Self::C64 => Scalar::F32,
            Self::C128 => Scalar::F64,
        }
    }
}

impl Number {
    /// `Bool`.
    pub const BOOL: Self = Self::Real(Scalar::Bool);
    /// `I8`.
    pub const I8: Self = Self::Real(Scalar::I8);
    /// `I16`.
    pub const I16: Self = Self::Real(Scalar::I16);
    /// `I32`.
    pub const I32: Self = Self::Real(Scalar::I32);
    /// `I64`.
    pub const I64: Self = Self::Real(Scalar::I64);
    /// `U8`.
    pub const U8: Self = Self::Real(Scalar::U8);
    /// `U16`.
    pub const U16: Self = Self::Real(Scalar::U16);
    /// `U32`.
    pub const U32: Self = Self::Real(Scalar::U32);
    /// `U64`.
    pub const U64: Self = Self::Real(Scalar::U64);
    /// `F16`.
    pub const F16: Self = Self::Real(Scalar::F16);
    /// `BF16`.
    pub const BF16: Self = Self::Real(Scalar::BF16);
    /// `F32`.
    pub const F32: Self = Self::Real(Scalar::F32);
    /// `F64`.
    pub const F64: Self = Self::Real(Scalar::F64);
    /// `C64`.
    pub const C64: Self = Self::Complex(Complex::C64);
    /// `C128`.
    pub const C128: Self = Self::Complex(Complex::C128);

    /// Every number, in the table's order.
    pub fn all() -> impl Iterator<Item = Self> {
        NUMBERS.iter().map(|row| row.number)
    }

    /// A small number that identifies the type: its index in [`NUMBERS`].
    pub const fn code(self) -> u32 {
        match self {
            Self::Real(scalar) => scalar as u32,
            Self::Complex(complex) => Scalar::ALL.len() as u32 + complex as u32,
        }
    }

    /// The number type with a code.
    pub fn from_code(code: u32) -> Option<Self> {
        NUMBERS.get(code as usize).map(|row| row.number)
    }

    /// Its row of [`NUMBERS`].
    pub const fn row(self) -> &'static Row {
        &NUMBERS[self.code() as usize]
    }

    /// Bytes of one element in memory.
    pub const fn size_bytes(self) -> u64 {
        self.row().size
    }

    /// Alignment in memory: that of the real part for complex numbers.
    pub const fn align_bytes(self) -> u64 {
        self.row().align
    }

    /// The scalar, if it is real.
    pub const fn real(self) -> Option<Scalar> {
        match self {
            Self::Real(scalar) => Some(scalar),
            Self::Complex(_) => None,
        }
    }

    /// The type of a complex number's parts; a real number is its own part.
    pub const fn part(self) -> Scalar {
        match self {
            Self::Real(scalar) => scalar,
            Self::Complex(complex) => complex.part(),
        }
    }

    /// How many parts it has: 1, or 2 for complex numbers.
    pub const fn parts(self) -> u64 {
        match self {
            Self::Real(_) => 1,
            Self::Complex(_) => 2,
        }
    }

    /// `true` for complex numbers.
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::Complex(_))
    }

    /// Numba's name: `boolean`, `int8` … `complex128`.
    pub const fn name(self) -> &'static str {
        self.row().name
    }
}

impl From<Scalar> for Number {
    fn from(scalar: Scalar) -> Self {
        Self::Real(scalar)
    }
}

impl From<Complex> for Number {
    fn from(complex: Complex) -> Self {
        Self::Complex(complex)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Complex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Number::Complex(*self).name())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
