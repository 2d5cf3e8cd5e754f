//! The declared array that a pointer points into.

use super::pointers::PointerProperty;
use crate::ir::{Base, FuncId, Function, Module};

/// What a pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointedArray {
    /// A declared array, or dynamic shared memory. A thread-local array has the function that declares it.
    Declared(Option<FuncId>, Base),
    /// An argument of the kernel: no declared array.
    Argument,
    /// One of several, or unknown.
    Unknown,
}

impl PointerProperty for PointedArray {
    const UNKNOWN: Self = Self::Unknown;

    fn join(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }

    fn of_base(_module: &Module, function: FuncId, base: Base) -> Self {
        match base {
            Base::Local(_) => Self::Declared(Some(function), base),
            Base::Shared(_) | Base::Const(_) | Base::Dynamic => Self::Declared(None, base),
        }
    }

    fn of_param(_module: &Module, _function: &Function, _index: usize) -> Self {
        Self::Argument
    }

    fn at_offset(self) -> Self {
        self
    }
}
