//! Values while a function is lowered.
//!
//! IR expressions form trees: an expression may be used once. So a value that can be used again holds [`Atom`]s, which
//! make a new expression for each use, and a scalar's `ExprId` is for one use; `FnLowerer::atom` turns it into one.

use std::sync::Arc;

use weft_artifact::{Complex, Number, Scalar, SlotField};

use super::ty::{ArrayTy, Ty};
use crate::{
    intrinsics::{self, Intrinsic},
    ir::{ExprId, LocalId},
    request::{Captured, FunctionDef},
};

/// Something that can be read any number of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Atom {
    /// A local that is not assigned again while the value lives.
    Local(LocalId),
    /// An `I64` constant.
    Int(i64),
}

/// An array: its type, data pointer, extents, and byte strides where the layout does not give them.
#[derive(Clone, Debug)]
pub(super) struct ArrayValue {
    pub(super) ty: ArrayTy,
    pub(super) data: Atom,
    pub(super) shape: Vec<Atom>,
    pub(super) strides: Vec<Atom>,
}

impl ArrayValue {
    /// The array of a type whose fields `part` gives, in their order; `None` if one is missing.
    pub(super) fn of_fields(ty: ArrayTy, mut part: impl FnMut() -> Option<Atom>) -> Option<Self> {
        let mut array = Self { ty, data: Atom::Int(0), shape: Vec::new(), strides: Vec::new() };
        for field in ty.fields() {
            let part = part()?;
            match field {
                SlotField::Data => array.data = part,
                SlotField::Shape(_) => array.shape.push(part),
                SlotField::Stride(_) => array.strides.push(part),
                SlotField::Value | SlotField::Real | SlotField::Imag => return None,
            }
        }
        Some(array)
    }

    /// What holds a field of [`ArrayTy::fields`].
    pub(super) fn field(&self, field: SlotField) -> Option<Atom> {
        match field {
            SlotField::Data => Some(self.data),
            SlotField::Shape(dim) => self.shape.get(usize::from(dim)).copied(),
            SlotField::Stride(dim) => self.strides.get(usize::from(dim)).copied(),
            SlotField::Value | SlotField::Real | SlotField::Imag => None,
        }
    }
}

/// Something of weft's, `math`'s, `numpy`'s or Python's own.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// A name of the intrinsic table.
    Row(&'static Intrinsic),
    /// A module, or a name that is no value in a kernel, by its canonical path.
    Path(String),
}

impl Known {
    /// What has this canonical path.
    pub(super) fn of(path: String) -> Self {
        intrinsics::lookup(&path).map_or(Self::Path(path), Self::Row)
    }

    /// Its canonical path.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Row(row) => row.path,
            Self::Path(path) => path,
        }
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.path() == other.path()
    }
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A real number, for one use.
    Scalar(ExprId, Scalar),
    /// Real and imaginary part, for one use.
    Complex(ExprId, ExprId, Complex),
    /// A Python int whose value is known.
    Int(i128),
    /// A Python bool whose value is known.
    Bool(bool),
    /// `None`.
    None,
    /// A string.
    Str(String),
    /// An array.
    Array(ArrayValue),
    /// A tuple.
    Tuple(Vec<Value>),
    /// A number's type.
    DType(Number),
    /// Something of weft's, `math`'s, `numpy`'s or Python's own.
    Known(Known),
    /// A user's module.
    Module(String, Arc<Captured>),
    /// A jitted function.
    Function(Arc<FunctionDef>),
    /// No value: reported already or, in a dry walk, not known yet.
    Poison,
}

impl Value {
    /// Its type.
    pub(super) fn ty(&self) -> Ty {
        match self {
            Self::Scalar(_, scalar) => Ty::Scalar(*scalar),
            Self::Complex(_, _, complex) => Ty::Complex(*complex),
            Self::Int(value) => Ty::Int(*value),
            Self::Bool(value) => Ty::Bool(*value),
            Self::None => Ty::None,
            Self::Str(text) => Ty::Str(text.clone()),
            Self::Array(array) => Ty::Array(array.ty),
            Self::Tuple(items) => Ty::Tuple(items.iter().map(Self::ty).collect()),
            Self::DType(number) => Ty::DType(*number),
            Self::Known(known) => Ty::Known(known.clone()),
            Self::Module(name, captured) => Ty::Module(name.clone(), Arc::clone(captured)),
            Self::Function(def) => Ty::Function(Arc::clone(def)),
            Self::Poison => Ty::Poison,
        }
    }
}
