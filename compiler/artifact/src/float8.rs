//! Floats of 8 bits as elements of arrays, under the names of `ml_dtypes` and PyTorch.

use std::fmt;

/// A format of floats of 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float8 {
    /// 4 bits of exponent, 3 of fraction, no infinities.
    E4M3,
    /// 5 bits of exponent, 2 of fraction.
    E5M2,
}

impl Float8 {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::E4M3, Self::E5M2];

    /// The name of the dtype.
    pub const fn name(self) -> &'static str {
        match self {
            Self::E4M3 => "float8_e4m3fn",
            Self::E5M2 => "float8_e5m2",
        }
    }

    /// The name in matrix tiles and in `cuda.fp8`.
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::E4M3 => "e4m3",
            Self::E5M2 => "e5m2",
        }
    }

    /// The format of a dtype's name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

impl fmt::Display for Float8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
