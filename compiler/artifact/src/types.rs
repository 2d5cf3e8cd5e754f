//! The types of kernel arguments: values, arrays and tuples, and their text forms.
//!
//! The text forms are Numba's: `int32`, `array(float32, 2d, C)`, `Tuple(int64, float32)`.

use std::fmt;

use crate::{
    dtype::DType,
    number::{Number, Scalar},
};

/// The most dimensions that a kernel's array has.
pub const MAX_NDIM: usize = 4;

/// An extent of a kernel's array fits so many bits. No machine has 2^48 bytes of memory; compiled code counts on it,
/// also where all elements are the same one.
pub const EXTENT_BITS: u32 = 48;

/// The most values that a tuple may hold, with those of the tuples in it, which grow quickly.
pub const MAX_LEAVES: usize = 10_000;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayType {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, 0 to [`MAX_NDIM`].
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ArgType {
    /// Passed by value.
    Value(DType),
    /// Passed as its live fields.
    Array(ArrayType),
    /// Flattened element by element.
    Tuple(Vec<ArgType>),
}

impl fmt::Display for ArgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(dtype) => dtype.fmt(f),
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

impl From<Scalar> for ArgType {
    fn from(scalar: Scalar) -> Self {
        Self::Value(scalar.into())
    }
}

impl From<Number> for ArgType {
    fn from(number: Number) -> Self {
        Self::Value(number.into())
    }
}

impl From<DType> for ArgType {
    fn from(dtype: DType) -> Self {
        Self::Value(dtype)
    }
}
