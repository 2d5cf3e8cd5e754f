//! The IR's types: real scalars, and pointers to them.

use std::fmt;

use weft_artifact::Scalar;

/// The type of an expression or a local.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A real scalar; `Bool` is one bit in registers and one byte in memory.
    Scalar(Scalar),
    /// A pointer to elements of a real scalar type in an address space.
    Ptr(Scalar, Space),
}

impl Type {
    /// `Bool`.
    pub const BOOL: Self = Self::Scalar(Scalar::Bool);
    /// `I32`.
    pub const I32: Self = Self::Scalar(Scalar::I32);
    /// `I64`.
    pub const I64: Self = Self::Scalar(Scalar::I64);

    /// The size of a value in the CPU's memory, in bytes.
    pub(crate) const fn host_bytes(self) -> u64 {
        match self {
            Self::Scalar(scalar) => scalar.size_bytes(),
            Self::Ptr(..) => Scalar::U64.size_bytes(),
        }
    }

    /// The scalar, if it is one.
    pub const fn scalar(self) -> Option<Scalar> {
        match self {
            Self::Scalar(scalar) => Some(scalar),
            Self::Ptr(..) => None,
        }
    }
}

/// An address space. PTX ISA section 5, state spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Device memory: kernel arguments.
    Global,
    /// Memory of the block.
    Shared,
    /// Memory of the thread.
    Local,
    /// Memory that no kernel writes: constants in the code.
    Constant,
    /// Any of the others, for an array variable whose space varies.
    Generic,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Constant => "constant",
            Self::Generic => "generic",
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => scalar.fmt(f),
            Self::Ptr(scalar, space) => write!(f, "ptr<{scalar}, {space}>"),
        }
    }
}
