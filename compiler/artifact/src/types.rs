//! The types of kernel arguments: values, arrays, tuples, objects of classes, records, and their text forms.
//!
//! The text forms are Numba's: `int32`, `array(float32, 2d, C)`, `Tuple(int64, float32)`, `Point(int64 x 2)`.

use std::fmt;

use crate::{
    box_map::BoxType,
    class::{ClassId, ClassKind},
    compound::Compound,
    dtype::DType,
    number::{Number, Scalar},
};

/// The maximum number of dimensions of a kernel's array.
pub const MAX_NDIM: usize = 7;

/// The number of bits that an array's extent fits in. No machine has 2^48 bytes of memory. Compiled code assumes this
/// also for broadcast arrays.
pub const EXTENT_BITS: u32 = 48;

/// The largest extent of an array, and the most threads along an axis, in a launch for which `Assumptions::small`
/// holds. It is a little below 2^30, so that expressions with an index and the sum of two extents fit in `int32` as well:
/// `x + i - 3`, or the number of diagonals of a square, `2 * n - 1`.
pub const SMALL_EXTENT: i32 = (1 << 30) - (1 << 16);

/// The most elements of an array of several dimensions in a launch for which `Assumptions::small` holds: a product of its
/// extents and a sum of it and a block's size fit in `int32`.
pub const SMALL_SIZE: i32 = i32::MAX - (1 << 16);

/// The most blocks along x in a launch for which `Assumptions::small` holds (along y and z there are at most 65,535): an
/// index in tiles of up to 256 elements, `blockIdx.x * 256 + i`, fits in `int32`.
pub const SMALL_BLOCKS: u32 = (1 << 23) - (1 << 8);

/// The maximum number of values in a tuple, including those of nested tuples.
pub const MAX_LEAVES: usize = 10_000;

/// The memory layout of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// C-contiguous: the last index runs fastest; strides follow from the shape.
    C,
    /// Fortran-contiguous: the first index runs fastest; strides follow from the shape.
    F,
    /// Any strides. They are passed with the array.
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
    /// Whether a store through it is a type error.
    pub readonly: bool,
}

impl fmt::Display for ArrayType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.readonly { "Array" } else { "array" };
        write!(f, "{kind}({}, {}d, {})", self.dtype, self.ndim, self.layout.letter())
    }
}

/// The type of one kernel argument. The key of a specialization is a tuple of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ArgType {
    /// Passed by value.
    Value(DType),
    /// Passed as its live fields.
    Array(ArrayType),
    /// Flattened element by element.
    Tuple(Vec<ArgType>),
    /// `None`: nothing is passed.
    None,
    /// A named tuple or a dataclass: flattened field by field.
    Struct(ClassId, Vec<ArgType>),
    /// A member of an enum: passed as its value.
    Enum(ClassId, Box<ArgType>),
    /// A record: the address of a copy on the device.
    Record(DType),
    /// A type, such as `np.float32`: nothing is passed.
    Class(DType),
    /// A C pointer to elements, or without a type, `void *`: an address with an unknown extent.
    Pointer(Option<DType>),
    /// An optional value: a flag whether it is present, and the value, which is zero if it is not.
    Optional(Box<ArgType>),
}

impl ArgType {
    /// The optional type of this type; `None` if this type is `None`. The optional type of an optional type is the same
    /// type.
    pub fn or_none(self) -> Option<Self> {
        match self {
            Self::None => None,
            Self::Optional(_) => Some(self),
            Self::Value(_)
            | Self::Array(_)
            | Self::Tuple(_)
            | Self::Struct(..)
            | Self::Enum(..)
            | Self::Record(_)
            | Self::Class(_)
            | Self::Pointer(_) => Some(Self::Optional(Box::new(self))),
        }
    }

    /// The argument type of a value of a dtype. Records and strings are passed by address.
    pub fn of_value(dtype: DType) -> Self {
        match dtype {
            DType::Compound(id) if matches!(id.get(), Compound::Record(_) | Compound::Chars(_)) => Self::Record(dtype),
            DType::Compound(_) | DType::Number(_) => Self::Value(dtype),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, items: &[ArgType]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        write!(f, "{comma}{item}")?;
    }
    Ok(())
}

/// The common type of several equal types.
fn uniform(items: &[ArgType]) -> Option<&ArgType> {
    let [first, rest @ ..] = items else { return None };
    rest.iter().all(|item| item == first).then_some(first)
}

impl fmt::Display for ArgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(dtype) => dtype.fmt(f),
            Self::Array(array) => array.fmt(f),
            Self::Tuple(items) => {
                if let Some(first) = uniform(items) {
                    return write!(f, "UniTuple({first} x {})", items.len());
                }
                f.write_str("Tuple(")?;
                list(f, items)?;
                f.write_str(")")
            }
            Self::None => f.write_str("none"),
            Self::Struct(class, _) if BoxType::of_class(*class).is_some() => class.fmt(f),
            Self::Struct(class, items) => {
                write!(f, "{class}(")?;
                match uniform(items).filter(|_| class.get().kind == ClassKind::NamedTuple) {
                    Some(first) => write!(f, "{first} x {}", items.len())?,
                    None => list(f, items)?,
                }
                f.write_str(")")
            }
            Self::Enum(class, value) => {
                let kind = if class.get().kind == ClassKind::IntEnum { "IntEnum" } else { "Enum" };
                write!(f, "{kind}<{value}>({class})")
            }
            Self::Record(dtype) => dtype.fmt(f),
            Self::Class(dtype) => write!(f, "class({dtype})"),
            Self::Pointer(Some(dtype)) => write!(f, "CPointer({dtype})"),
            Self::Pointer(None) => f.write_str("voidptr"),
            Self::Optional(of) => write!(f, "OptionalType({of})"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;

    #[test]
    fn texts_are_numbas() {
        let class = |kind, name: &str| {
            let fields = vec!["x".to_owned(), "y".to_owned()];
            ClassId::intern(Class { kind, name: name.to_owned(), identity: format!("m.{name}"), fields })
                .expect("there is room")
        };
        let point = class(ClassKind::NamedTuple, "Point");
        let (int, float) = (ArgType::from(Number::I64), ArgType::from(Number::F32));
        let cases = [
            (ArgType::None, "none"),
            (ArgType::Struct(point, vec![int.clone(), int.clone()]), "Point(int64 x 2)"),
            (ArgType::Struct(point, vec![int.clone(), float.clone()]), "Point(int64, float32)"),
            (
                ArgType::Struct(class(ClassKind::Dataclass, "Body"), vec![float.clone(), float]),
                "Body(float32, float32)",
            ),
            (ArgType::Enum(class(ClassKind::Enum, "Color"), Box::new(Number::F64.into())), "Enum<float64>(Color)"),
            (ArgType::Enum(class(ClassKind::IntEnum, "Shape"), Box::new(int.clone())), "IntEnum<int64>(Shape)"),
            (ArgType::Tuple(vec![int.clone(), ArgType::None]), "Tuple(int64, none)"),
            (ArgType::Tuple(vec![int.clone(), int.clone()]), "UniTuple(int64 x 2)"),
            (ArgType::Optional(Box::new(int.clone())), "OptionalType(int64)"),
            (ArgType::Tuple(vec![int]), "UniTuple(int64 x 1)"),
        ];
        for (ty, text) in cases {
            assert_eq!(ty.to_string(), text);
        }
    }
}
