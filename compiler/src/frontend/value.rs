//! Values while a function is lowered.
//!
//! IR expressions form trees: an expression may be used once. So a value that may be used several times has [`Atom`]s,
//! which create a new expression for each use. A scalar's `ExprId` is for a single use; `FnLowerer::atom` converts it.

use weft_artifact::{Complex, Scalar, SlotField};

use super::{
    object::{ObjectKind, Static},
    ty::{ArrayTy, Ty},
};
use crate::{
    intrinsics::{self, Intrinsic},
    ir::{ExprId, LocalId},
};

/// An operand that can be read any number of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Atom {
    /// A local that is not assigned again during the lifetime of the value.
    Local(LocalId),
    /// An `I64` constant.
    Int(i64),
}

/// An array: its type, data pointer, extents, and byte strides unless the layout implies them.
#[derive(Clone, Debug)]
pub(super) struct ArrayValue {
    pub(super) ty: ArrayTy,
    pub(super) data: Atom,
    pub(super) shape: Vec<Atom>,
    pub(super) strides: Vec<Atom>,
}

impl ArrayValue {
    /// The array of a type, whose fields `part` returns in order; `None` if one is missing.
    pub(super) fn of_fields(ty: ArrayTy, mut part: impl FnMut() -> Option<Atom>) -> Option<Self> {
        let mut array = Self { ty, data: Atom::Int(0), shape: Vec::new(), strides: Vec::new() };
        for field in ty.fields() {
            let part = part()?;
            match field {
                SlotField::Data => array.data = part,
                SlotField::Shape(_) => array.shape.push(part),
                SlotField::Stride(_) => array.strides.push(part),
                SlotField::Value
                | SlotField::Real
                | SlotField::Imag
                | SlotField::Start
                | SlotField::Room
                | SlotField::Least
                | SlotField::Limit => return None,
            }
        }
        Some(array)
    }

    /// The value of a field of [`ArrayTy::fields`].
    pub(super) fn field(&self, field: SlotField) -> Option<Atom> {
        match field {
            SlotField::Data => Some(self.data),
            SlotField::Shape(dim) => self.shape.get(usize::from(dim)).copied(),
            SlotField::Stride(dim) => self.strides.get(usize::from(dim)).copied(),
            SlotField::Value
            | SlotField::Real
            | SlotField::Imag
            | SlotField::Start
            | SlotField::Room
            | SlotField::Least
            | SlotField::Limit => None,
        }
    }
}

/// A name of weft, `math`, `numpy` or Python.
#[derive(Clone, Debug)]
pub(super) enum LibraryName {
    /// A name of the intrinsic table.
    Row(&'static Intrinsic),
    /// A module, or a name that is not a value in a kernel, by its canonical path.
    Path(String),
}

impl LibraryName {
    /// The name with this canonical path.
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

impl PartialEq for LibraryName {
    fn eq(&self, other: &Self) -> bool {
        self.path() == other.path()
    }
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A real number, for a single use.
    Scalar(ExprId, Scalar),
    /// Real and imaginary part, for a single use.
    Complex(ExprId, ExprId, Complex),
    /// A Python int with a known value.
    Int(i128),
    /// A Python bool with a known value.
    Bool(bool),
    /// An array.
    Array(ArrayValue),
    /// A value with parts.
    Object(ObjectKind, Vec<Value>),
    /// A compile-time value.
    Static(Static),
    /// No value: an error was reported or, in a dry run, the value is not known yet.
    Poison,
}

impl Value {
    /// `None`.
    pub(super) const NONE: Self = Self::Static(Static::None);

    /// A tuple.
    pub(super) const fn tuple(items: Vec<Self>) -> Self {
        Self::Object(ObjectKind::Tuple, items)
    }

    /// The items of a tuple.
    pub(super) fn as_tuple(&self) -> Option<&[Self]> {
        if let Self::Object(kind, items) = self { kind.is_tuple().then_some(items) } else { None }
    }

    /// Its type.
    pub(super) fn ty(&self) -> Ty {
        match self {
            Self::Scalar(_, scalar) => Ty::Scalar(*scalar),
            Self::Complex(_, _, complex) => Ty::Complex(*complex),
            Self::Int(value) => Ty::Int(*value),
            Self::Bool(value) => Ty::Bool(*value),
            Self::Array(array) => Ty::Array(array.ty),
            Self::Object(kind, items) => Ty::Object(kind.clone(), items.iter().map(Self::ty).collect()),
            Self::Static(known) => Ty::Static(known.clone()),
            Self::Poison => Ty::Poison,
        }
    }
}
