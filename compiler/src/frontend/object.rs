//! Values that are made of others, and those that exist at compile time only.
//!
//! An object is a kind and items. What a walk over a value's parts does (settle it, convert it, join its type, pass it
//! to a function) it does to the items, whatever the kind; only what means something of its own, such as a subscript or
//! a loop, asks for the kind.

use std::{fmt, sync::Arc};

use weft_artifact::{Number, Scalar};

use super::{ty::shown_path, value::Known};
use crate::request::{Captured, FunctionDef};

/// What an object is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ObjectKind {
    /// A tuple of its items.
    Tuple,
    /// `range`, of values of a type: start, stop, step.
    Range(Scalar),
    /// `enumerate`: what is counted, and the first number.
    Enumerate,
    /// `zip`: what is gone over side by side.
    Zip,
    /// `reversed`: what is gone over backwards.
    Reversed,
    /// `literal_unroll`: a tuple's items, each of which a loop's body is compiled for.
    Unrolled,
}

impl ObjectKind {
    /// It is a tuple to whoever indexes, unpacks or compares it.
    pub(super) const fn is_tuple(&self) -> bool {
        match self {
            Self::Tuple | Self::Unrolled => true,
            Self::Range(_) | Self::Enumerate | Self::Zip | Self::Reversed => false,
        }
    }
}

/// What a kernel's code knows without computing: it has no parts at run time.
#[derive(Clone, Debug)]
pub(super) enum Static {
    /// `None`.
    None,
    /// A string.
    Str(String),
    /// A number's type used as a dtype or a cast.
    DType(Number),
    /// Something of weft's, `math`'s, `numpy`'s or Python's own.
    Known(Known),
    /// A user's module or object.
    Module(String, Arc<Captured>),
    /// A jitted function.
    Function(Arc<FunctionDef>),
}

impl PartialEq for Static {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::DType(a), Self::DType(b)) => a == b,
            (Self::Known(a), Self::Known(b)) => a == b,
            (Self::Module(a, x), Self::Module(b, y)) => a == b && (Arc::ptr_eq(x, y) || x == y),
            (Self::Function(a), Self::Function(b)) => Arc::ptr_eq(a, b),
            (Self::None | Self::Str(_) | Self::DType(_) | Self::Known(_) | Self::Module(..) | Self::Function(_), _) => {
                false
            }
        }
    }
}

impl fmt::Display for Static {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Str(_) => f.write_str("str"),
            Self::DType(number) => write!(f, "type {number}"),
            Self::Known(known) => f.write_str(shown_path(known.path())),
            Self::Module(name, _) => write!(f, "module {name}"),
            Self::Function(def) => write!(f, "function {}", def.ast.name),
        }
    }
}
