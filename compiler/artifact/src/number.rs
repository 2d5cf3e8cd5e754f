//! Numbers: what a kernel computes with and what arrays of numbers hold.
//!
//! What they are called and how others write them is in `table.rs`.

use std::fmt;

use crate::table::{NUMBERS, Row};

/// A number's type: real or complex.
pub type Number = Scalar;

/// A number's type. `Bool` takes one byte in memory; complex types are (real, imaginary) pairs.
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

    /// Its row of [`NUMBERS`].
    pub const fn row(self) -> &'static Row {
        &NUMBERS[self as usize]
    }

    /// A small number that stands for it.
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The number of a code.
    pub fn from_code(code: u32) -> Option<Self> {
        NUMBERS.get(code as usize).map(|row| row.number)
    }

    /// Bytes of one element in memory.
    pub const fn size_bytes(self) -> u64 {
        self.row().size
    }

    /// Alignment in memory: that of the real part for complex types.
    pub const fn align_bytes(self) -> u64 {
        self.row().align
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
        self.row().name
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
