//! The variant of a kernel that writes large host arrays in place: it bounds-checks its stores, so that it changes no memory
//! outside of its arrays.
//!
//! It is compiled when a launch first has such an array. Programs without large host arrays never wait for it.

use weft_artifact::SlotField;
use weft_runtime::Executor;

use crate::{
    dispatcher::overload::{Overload, Resolved},
    types::key::{self, BoundCell},
};

/// The memory of a host array that the kernel writes in place.
#[derive(Clone, Copy, Debug)]
pub(in crate::dispatcher) struct Written {
    /// The array's first cell.
    pub(in crate::dispatcher) cell: usize,
    /// The address of its lowest byte.
    pub(in crate::dispatcher) start: u64,
    /// Its bytes.
    pub(in crate::dispatcher) room: u64,
    /// Its elements.
    pub(in crate::dispatcher) elements: u64,
}

impl Written {
    fn bound(self, field: SlotField) -> u64 {
        match field {
            SlotField::Start => self.start,
            SlotField::Room => self.room,
            SlotField::Limit => self.elements,
            SlotField::Least
            | SlotField::Value
            | SlotField::Real
            | SlotField::Imag
            | SlotField::Data
            | SlotField::Shape(_)
            | SlotField::Stride(_) => 0,
        }
    }
}

impl Resolved {
    /// Whether a variant can write host arrays in place.
    pub(super) fn can_write_in_place(&self) -> bool {
        self.overload.kernel.can_bound_stores
    }

    /// Fills the slots that bound the kernel's stores: by the extents of arrays that it writes in place, else without a limit.
    pub(super) fn fill_bounds(&self, written: &[Written], slots: &mut [u64]) {
        for BoundCell { at, array, field } in &self.bounds {
            let found = written.iter().find(|written| Some(written.cell) == *array);
            if let Some(slot) = slots.get_mut(*at) {
                *slot = found.map_or(field.no_bound(), |written| written.bound(*field));
            }
        }
    }
}

/// The cells of a launch that bound the kernel's stores.
pub(in crate::dispatcher) fn bounds(words: &[u32], overload: &Overload) -> Box<[BoundCell]> {
    key::bounds_of(&key::decode(words), &overload.args, &overload.kernel.slots)
}

/// Memory past the end of arrays that is readable as long as these values live.
pub(in crate::dispatcher) type Rooms = Vec<Box<dyn std::any::Any>>;

/// Makes the memory past the end of each array readable; `None` if that is not possible for one of them.
pub(in crate::dispatcher) fn rooms(
    executor: &dyn Executor,
    spans: impl Iterator<Item = std::ops::Range<u64>>,
) -> Option<Rooms> {
    spans.map(|span| executor.read_in_place(&span)).collect()
}
