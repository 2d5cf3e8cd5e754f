//! The extent of the memory that a pointer points into: whether 32-bit offsets reach all of it.
//!
//! Pointers come from array arguments, whose extents the assumptions of a launch bound, and from shared, local and
//! constant arrays, whose extents are known; the extents of other pointers are unknown.

use weft_artifact::{ArgItem, Layout, SlotField, SlotSource};

use super::pointers::{PointerProperty, Pointers};
use crate::ir::{Base, ExprId, FuncId, Function, Module, Space};

/// The extent of the memory that a pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PointerExtent {
    /// It has fewer than 2^31 times this number of bytes. A pointer of unknown origin has no limit: `u64::MAX`.
    pub unit: u64,
    /// The pointer points to its first byte.
    pub starts: bool,
}

/// The extents of the pointers of a module.
pub(crate) type PointerExtents = Pointers<PointerExtent>;

impl PointerExtent {
    /// Fewer than 2^31 bytes, from the first one on.
    const WHOLE: Self = Self { unit: 1, starts: true };
}

impl PointerProperty for PointerExtent {
    const UNKNOWN: Self = Self { unit: u64::MAX, starts: false };

    fn join(self, other: Self) -> Self {
        Self { unit: self.unit.max(other.unit), starts: self.starts && other.starts }
    }

    fn of_base(module: &Module, _function: FuncId, base: Base) -> Self {
        match base {
            Base::Const(array) => {
                let fits = i32::try_from(module.constants[array].bytes.len()).is_ok();
                if fits { Self::WHOLE } else { Self::UNKNOWN }
            }
            Base::Shared(_) | Base::Dynamic | Base::Local(_) => Self::WHOLE,
        }
    }

    fn of_param(module: &Module, function: &Function, index: usize) -> Self {
        of_slot(module, function, index).unwrap_or(Self::UNKNOWN)
    }

    fn at_offset(self) -> Self {
        Self { starts: false, ..self }
    }

    fn in_space(self, space: Space) -> Self {
        // Memory of a block or a thread is smaller.
        let own = matches!(space, Space::Shared | Space::Local);
        if own { Self { unit: 1, ..self } } else { self }
    }
}

impl PointerExtents {
    /// The extent of a pointer in a function, if it is known.
    pub(crate) fn get(
        &self,
        module: &Module,
        number: FuncId,
        function: &Function,
        id: ExprId,
    ) -> Option<PointerExtent> {
        self.find(module, number, function, id).filter(|found| found.unit != u64::MAX)
    }
}

/// The extent of an array in a launch with small arrays, as `dispatcher/variants/assumptions.rs` of the bindings tests
/// it: fewer than 2^31 elements, or bytes if the layout is unknown.
fn of_slot(module: &Module, function: &Function, index: usize) -> Option<PointerExtent> {
    let SlotSource::Argument { param, path, field: SlotField::Data } = function.slots.get(index)? else { return None };
    let ArgItem::Array(array) = module.params.get(*param as usize)?.ty.leaf(path)? else { return None };
    if !module.assumptions.small {
        return None;
    }
    let packed = array.layout != Layout::Any;
    let unit = if packed { array.dtype.size_bytes().max(1) } else { 1 };
    Some(PointerExtent { unit, starts: packed })
}
