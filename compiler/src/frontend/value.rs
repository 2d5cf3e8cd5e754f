//! Values while a function is lowered.
//!
//! IR expressions form trees: an expression may be used once. So a value that can be used again holds [`Atom`]s, which
//! make a new expression for each use, and a scalar's `ExprId` is for one use; `FnLowerer::atom` turns it into one.

use std::sync::Arc;

use weft_artifact::Scalar;

use super::ty::{ArrayTy, Ty};
use crate::{
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

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A real number, for one use.
    Scalar(ExprId, Scalar),
    /// Real and imaginary part, for one use; `C64` or `C128`.
    Complex(ExprId, ExprId, Scalar),
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
    /// A scalar type.
    DType(Scalar),
    /// Something of weft's, `math`'s, `numpy`'s or Python's own.
    Known(String),
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
            Self::Scalar(_, scalar) | Self::Complex(_, _, scalar) => Ty::Scalar(*scalar),
            Self::Int(value) => Ty::Int(*value),
            Self::Bool(value) => Ty::Bool(*value),
            Self::None => Ty::None,
            Self::Str(text) => Ty::Str(text.clone()),
            Self::Array(array) => Ty::Array(array.ty),
            Self::Tuple(items) => Ty::Tuple(items.iter().map(Self::ty).collect()),
            Self::DType(scalar) => Ty::DType(*scalar),
            Self::Known(path) => Ty::Known(path.clone()),
            Self::Module(name, captured) => Ty::Module(name.clone(), Arc::clone(captured)),
            Self::Function(def) => Ty::Function(Arc::clone(def)),
            Self::Poison => Ty::Poison,
        }
    }
}
