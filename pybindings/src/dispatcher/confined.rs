//! The variant of a kernel that bounds-checks its stores: it writes large host arrays in place.
//!
//! It is compiled when a launch first has such an array, so that other programs never wait for it. It is private to the
//! kernel that it is a variant of.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use weft_artifact::SlotField;
use weft_runtime::Executor;

use super::{
    Dispatcher,
    overload::{Overload, Resolved},
};
use crate::{
    engine::timing::Timing,
    types::key::{self, BoundCell},
};

/// A variant that may not be there yet.
#[derive(Debug)]
pub(crate) struct Later<T>(Mutex<Option<Arc<T>>>);

impl<T> Default for Later<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Later<T> {
    pub(super) fn get(&self) -> Option<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the first: threads may make one each.
    pub(super) fn keep(&self, made: &Arc<T>) -> Arc<T> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = Arc::clone(kept.get_or_insert_with(|| Arc::clone(made)));
        drop(kept);
        first
    }
}

/// The memory of a host array that a kernel with bounds-checked stores writes in place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// The array's first cell.
    pub(super) cell: usize,
    /// The address of its lowest byte.
    pub(super) start: u64,
    /// Its bytes.
    pub(super) room: u64,
    /// Its elements.
    pub(super) elements: u64,
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
    /// Whether there is, or can be, a variant with bounds-checked stores.
    pub(super) fn is_confinable(&self) -> bool {
        self.overload.kernel.can_bound_stores
    }

    /// The variant with bounds-checked stores, compiled if it does not exist; `None` if there is none. Its types are
    /// known, so it is compiled even where new types are refused.
    ///
    /// # Errors
    ///
    /// As a launch that compiles.
    pub(super) fn confined(&self, owner: &Bound<'_, Dispatcher>) -> PyResult<Option<Arc<Self>>> {
        if let Some(known) = self.confined.get() {
            return Ok(Some(known));
        }
        let Some(overload) = Overload::confined(&self.overload, owner)? else { return Ok(None) };
        let resolved = overload.resolve(owner.py(), &self.key, self.casts.to_vec())?;
        Ok(Some(self.confined.keep(&Arc::new(resolved))))
    }

    /// Says in a launch's slots where the kernel may write: all there is, but for arrays that are the host's own.
    pub(super) fn fill_bounds(&self, written: &[Written], slots: &mut [u64]) {
        for BoundCell { at, array, field } in &self.bounds {
            let found = written.iter().find(|written| Some(written.cell) == *array);
            if let Some(slot) = slots.get_mut(*at) {
                *slot = found.map_or(field.no_bound(), |written| written.bound(*field));
            }
        }
    }
}

impl Overload {
    fn confined(known: &Arc<Self>, owner: &Bound<'_, Dispatcher>) -> PyResult<Option<Arc<Self>>> {
        if let Some(variant) = known.confined.get() {
            return Ok(Some(variant));
        }
        if !known.kernel.can_bound_stores {
            return Ok(None);
        }
        let py = owner.py();
        let timing = Timing::start(py, "capture")?;
        let mut jit = known.jit.clone();
        jit.code.bounded_stores = true;
        let compiled = known.variant(owner, &jit)?;
        timing.print(py, || {
            format!("{}, confined{}", compiled.shown(), if compiled.was_cached { ", kept" } else { "" })
        })?;
        Ok(Some(known.confined.keep(&Arc::new(compiled))))
    }
}

/// The cells of a launch that say where the kernel may write.
pub(super) fn bounds(words: &[u32], overload: &Overload) -> Box<[BoundCell]> {
    key::bounds_of(&key::decode(words), &overload.args, &overload.kernel.slots)
}

/// Guards that let a kernel use memory of this process in place.
pub(super) type Rooms = Vec<Box<dyn std::any::Any>>;

/// Readable memory after each of some arrays; `None` where one has none.
pub(super) fn rooms(executor: &dyn Executor, spans: impl Iterator<Item = std::ops::Range<u64>>) -> Option<Rooms> {
    spans.map(|span| executor.read_in_place(&span)).collect()
}
