//! The values of a function's free names.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::{ArrayType, ClassId, Compound, DType, Float8, Layout, MAX_LEAVES, Number, Scalar, Time, Vector};

use super::{FunctionDef, MAX_CALL_DEPTH, Overloaded};
use crate::source::{SourceFile, Span};

/// The value of a captured name.
#[derive(Clone, Debug, PartialEq)]
pub enum Captured {
    /// `None`.
    None,
    /// A Python bool.
    Bool(bool),
    /// A Python int that fits 64 bits, signed or unsigned.
    Int(i128),
    /// A Python float.
    Float(f64),
    /// A Python complex: real, imaginary.
    Complex(f64, f64),
    /// A NumPy scalar: its type, and its value as (real, imaginary) for floats and complex, or an integer.
    NumpyInt(Scalar, i128),
    /// See `NumpyInt`; for `F32`, `F64`, `C64`, `C128`.
    NumpyFloat(Number, f64, f64),
    /// A NumPy `datetime64` or `timedelta64`: its type, and its count.
    Time(Time, i64),
    /// A string.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A tuple.
    Tuple(Vec<Captured>),
    /// A named tuple or an instance of a dataclass: the values of its fields.
    Struct(ClassId, Vec<Captured>),
    /// A member of an enum: its index among the members of its class, and its value.
    Enum(ClassId, usize, Box<Captured>),
    /// A class: the values of an enum's members, or for each field of another class its default, if it has one.
    Class(ClassId, Vec<Option<Captured>>),
    /// A host array, captured with its current elements as a constant.
    Array(CapturedArray),
    /// An array on the device: its type, the address of its first element, extents, strides in bytes. The caller keeps
    /// the memory allocated as long as the code is used.
    DeviceArray(ArrayType, u64, Vec<u64>, Vec<i64>),
    /// A NumPy scalar type, a dtype, or a weft type such as `weft.float32` or `weft.cuda.float32x4`: usable as a dtype
    /// and as a cast.
    DType(DType),
    /// An object that weft knows by its canonical dotted path: a module (`weft`, `weft.cuda`, `math`, `numpy`), a
    /// member of one (`weft.cuda.grid`, `math.sin`, `numpy.float32`), or a Python builtin (`builtins.range`). The
    /// prefix `numba.` is written as `weft.`.
    Known(String),
    /// A user's own module or object with the attributes that the function uses.
    Module(String, BTreeMap<String, Captured>),
    /// Another jitted function.
    Function(Arc<FunctionDef>),
    /// A recursive reference: the jitted function that reads the name, or one that calls it, by its
    /// [number](FunctionDef::number). Definitions form a tree, so a direct reference would be a cycle.
    /// [`Overloads::find`](super::Overloads::find) resolves it.
    Recursive(u32),
    /// A function with overloads for kernels. The caller selects the overload for the argument types of each call.
    Overloaded(Overloaded),
    /// An exception class, by a string with which the caller identifies it.
    Exception(String),
    /// Any other value: its kind, and a description that follows "a" or "an" in the error, such as the name of its
    /// type.
    Unsupported(Unsupported, String),
    /// A value that a source file does not determine: the location that causes this, and why (`the loop binds it`).
    Unknown(Arc<SourceFile>, Span, String),
}

/// A constant array, without padding between elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedArray {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
    /// The order of the elements: C or F.
    pub layout: Layout,
    /// The elements, as in memory.
    pub bytes: Arc<[u8]>,
}

/// The kind of a captured value that no kernel can use, for the suggestion in the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// A function that is not jitted.
    PlainFunction,
    /// A function that another library jitted; its `py_func` is the Python function.
    ForeignFunction,
    /// An array.
    Array,
    /// Anything else.
    Other,
}

/// The number type of a canonical path, such as `numpy.float32` or `weft.types.int8`. `numba` in other libraries' paths
/// is `weft` here.
pub fn number_of_path(path: &str) -> Option<Number> {
    let (module, name) = path.rsplit_once('.')?;
    match module {
        "numpy" => Number::from_numpy_name(name),
        "weft" | "weft.types" | "weft.cuda" | "weft.cuda.types" => Number::from_name(name),
        "weft.cuda.bf16" if name == "bfloat16" => Some(Number::BF16),
        _ => None,
    }
}

/// The type of a canonical path: a number's, a float of 8 bits, or a vector's (`weft.cuda.float32x4`, `weft.cuda.float4`).
pub fn dtype_of_path(path: &str) -> Option<DType> {
    if let Some(number) = number_of_path(path) {
        return Some(number.into());
    }
    let (module, name) = path.rsplit_once('.')?;
    if let Some(format) = Float8::from_name(name) {
        let known = matches!(module, "weft.types" | "weft.cuda.types" | "weft.cuda.fp8" | "ml_dtypes");
        return DType::intern(Compound::Float8(format)).filter(|_| known);
    }
    let known = matches!(module, "weft.types" | "weft.cuda" | "weft.cuda.types");
    Vector::from_name(name).filter(|_| known).and_then(|vector| DType::intern(Compound::Vector(vector)))
}

impl Captured {
    /// A Python int of the type that Numba gives it: `int64`, or `uint64` if it needs 64 bits unsigned. Negative values
    /// below the minimum of `int64`, such as `~0x8000000000000000`, wrap to `uint64`.
    pub fn of_int(value: i128) -> Self {
        const LEAST: i128 = -(1 << 64);
        if i64::try_from(value).is_ok() || u64::try_from(value).is_ok() {
            Self::Int(value)
        } else if (LEAST..0).contains(&value) {
            Self::NumpyInt(Scalar::U64, value - LEAST)
        } else {
            Self::too_long()
        }
    }

    /// The unsupported value for an int of more than 64 bits.
    pub fn too_long() -> Self {
        Self::Unsupported(Unsupported::Other, "int of more than 64 bits".to_owned())
    }

    /// The unsupported value for a tuple of more than [`MAX_LEAVES`] values.
    pub fn too_large() -> Self {
        Self::Unsupported(Unsupported::Other, format!("tuple of more than {MAX_LEAVES} values"))
    }

    /// The unsupported value for a function beyond [`MAX_CALL_DEPTH`].
    pub fn too_deep() -> Self {
        Self::Unsupported(Unsupported::Other, format!("call chain of more than {MAX_CALL_DEPTH} levels"))
    }

    /// The number of scalar values that it holds, including those of nested tuples.
    pub fn leaves(&self) -> usize {
        match self {
            Self::Tuple(items) | Self::Struct(_, items) => items.iter().map(Self::leaves).sum(),
            Self::None
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Complex(..)
            | Self::NumpyInt(..)
            | Self::NumpyFloat(..)
            | Self::Time(..)
            | Self::Str(_)
            | Self::Bytes(_)
            | Self::Enum(..)
            | Self::Class(..)
            | Self::Exception(_)
            | Self::Overloaded(_)
            | Self::Array(_)
            | Self::DeviceArray(..)
            | Self::DType(_)
            | Self::Known(_)
            | Self::Module(..)
            | Self::Function(_)
            | Self::Recursive(_)
            | Self::Unsupported(..)
            | Self::Unknown(..) => 1,
        }
    }

    /// Visits the functions in the value, without the functions that these call.
    pub(super) fn for_each_function(&self, visit: &mut dyn FnMut(&Arc<FunctionDef>)) {
        match self {
            Self::Function(def) => visit(def),
            Self::Tuple(items) | Self::Struct(_, items) => {
                for item in items {
                    item.for_each_function(visit);
                }
            }
            Self::Class(_, items) => items.iter().flatten().for_each(|item| item.for_each_function(visit)),
            Self::Enum(_, _, value) => value.for_each_function(visit),
            Self::Module(_, members) => members.values().for_each(|member| member.for_each_function(visit)),
            Self::None
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Complex(..)
            | Self::NumpyInt(..)
            | Self::NumpyFloat(..)
            | Self::Time(..)
            | Self::Str(_)
            | Self::Bytes(_)
            | Self::Array(_)
            | Self::DeviceArray(..)
            | Self::DType(_)
            | Self::Known(_)
            | Self::Exception(_)
            | Self::Overloaded(_)
            | Self::Recursive(_)
            | Self::Unsupported(..)
            | Self::Unknown(..) => {}
        }
    }
}
