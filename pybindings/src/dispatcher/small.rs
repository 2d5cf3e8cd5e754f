//! What a kernel may take for granted of its launches, and the variant for those of which it does not hold.
//!
//! On a GPU a kernel is compiled for launches that have nothing but what is small
//! ([`Options::small`](weft_compiler::request::Options::small)): then most of what it computes with integers fits 32 bits.
//! Each launch looks whether it is one. The variant for all others is compiled when there is one, and belongs to the kernel
//! that it is a variant of.

use std::sync::Arc;

use pyo3::prelude::*;
use weft_artifact::{ArgType, ArrayType, Layout, SMALL_EXTENT, Scalar, Slot, SlotField, SlotSource, SlotType};
use weft_runtime::LaunchConfig;

use super::{
    Dispatcher,
    overload::{Found, Overload, Resolved},
};
use crate::{engine::timing::Timing, types::key};

/// A 64-bit integer of a launch that must be small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    /// The argument's cell.
    cell: u32,
    least: i32,
    most: i32,
}

impl Word {
    fn is_small(self, cells: &[u64]) -> bool {
        let Some(&value) = cells.get(self.cell as usize) else { return false };
        // A cell holds the 64 bits; one without a sign that has the highest bit set is no small negative number either.
        (i64::from(self.least)..=i64::from(self.most)).contains(&value.cast_signed())
    }
}

/// The integers of 64 bits among what a kernel takes, `cells` being where each of its slots is taken from.
pub(super) fn words(slots: &[Slot], cells: &[u32]) -> Box<[Word]> {
    let word = |(slot, &cell): (&Slot, &u32)| match (slot.ty, &slot.source) {
        (SlotType::Scalar(Scalar::I64), SlotSource::Argument { field: SlotField::Shape(_), .. }) => {
            Some(Word { cell, least: 0, most: SMALL_EXTENT })
        }
        (SlotType::Scalar(Scalar::U64), _) => Some(Word { cell, least: 0, most: i32::MAX }),
        (SlotType::Scalar(scalar), _) if scalar.is_int() && scalar.size_bytes() == 8 => {
            Some(Word { cell, least: i32::MIN, most: i32::MAX })
        }
        (SlotType::Scalar(_) | SlotType::Pointer | SlotType::Bytes { .. }, _) => None,
    };
    // The slots that pass several cells are no integers.
    let mut first = 0;
    let with_cells = slots.iter().filter_map(|slot| {
        let cell = cells.get(first)?;
        first += slot.ty.cells();
        Some((slot, cell))
    });
    with_cells.filter_map(word).collect()
}

/// An array of a launch that must be small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Array {
    /// Its first cell: the address, behind which are the extents and then the strides.
    cell: u32,
    ndim: u8,
    /// Its layout is known: there are no gaps in it.
    packed: bool,
}

impl Array {
    fn is_small(self, cells: &[u64]) -> bool {
        let (first, ndim) = (self.cell as usize + 1, usize::from(self.ndim));
        let Some(extents) = cells.get(first..first + ndim) else { return false };
        let size = if self.packed {
            extents.iter().fold(1, |size: u64, extent| size.saturating_mul(*extent))
        } else {
            let Some(strides) = cells.get(first + ndim..first + 2 * ndim) else { return false };
            let along = |(extent, stride): (&u64, &u64)| extent.saturating_mul(stride.cast_signed().unsigned_abs());
            extents.iter().zip(strides).map(along).fold(0, u64::saturating_add)
        };
        i32::try_from(size).is_ok()
    }
}

/// The arrays among what a kernel takes that its words do not say to be small.
pub(super) fn arrays(given: &[ArgType], overload: &Overload, words: &[Word]) -> Box<[Array]> {
    let arrays = key::arrays_of(given, &overload.args, &overload.kernel.slots);
    let is_known = |cell: u32, array: ArrayType| {
        array.ndim == 0
            || (array.ndim == 1 && array.layout != Layout::Any && words.iter().any(|word| word.cell == cell + 1))
    };
    arrays
        .into_iter()
        .filter(|(cell, array)| !is_known(*cell, *array))
        .map(|(cell, array)| Array { cell, ndim: array.ndim, packed: array.layout != Layout::Any })
        .collect()
}

impl Resolved {
    /// Whether the kernel is for a launch with such a shape and such arguments, as its casts have left them.
    pub(super) fn takes(&self, config: &LaunchConfig, cells: &[u64]) -> bool {
        if !self.overload.jit.code.small {
            return true;
        }
        let threads = |axis: usize| u64::from(config.grid[axis]) * u64::from(config.block[axis]);
        (0..3).all(|axis| threads(axis) <= SMALL_EXTENT as u64)
            && self.words.iter().all(|word| word.is_small(cells))
            && self.arrays.iter().all(|array| array.is_small(cells))
    }

    /// The variant for any launch, compiled if it is not there. Its types are known, so that it is also compiled where no
    /// further ones are.
    ///
    /// # Errors
    ///
    /// As a launch that compiles.
    pub(super) fn general(&self, owner: &Bound<'_, Dispatcher>) -> PyResult<Arc<Self>> {
        if let Some(known) = self.general.get() {
            return Ok(known);
        }
        let overload = Overload::general(&self.overload, owner)?;
        let resolved = overload.resolve(owner.py(), &self.key, self.casts.to_vec())?;
        Ok(self.general.keep(&Arc::new(resolved)))
    }
}

impl Overload {
    fn general(known: &Arc<Self>, owner: &Bound<'_, Dispatcher>) -> PyResult<Arc<Self>> {
        if let Some(variant) = known.general.get() {
            return Ok(variant);
        }
        let py = owner.py();
        let timing = Timing::start(py, "capture")?;
        let mut jit = known.jit.clone();
        jit.code.small = false;
        let compiled = known.variant(owner, &jit)?;
        let kept = if compiled.was_kept { ", kept" } else { "" };
        timing.print(py, || format!("{}, for any size{kept}", compiled.shown()))?;
        Ok(known.general.keep(&Arc::new(compiled)))
    }

    /// The same kernel with other options.
    pub(super) fn variant(
        &self,
        owner: &Bound<'_, Dispatcher>,
        jit: &weft_compiler::request::JitOptions,
    ) -> PyResult<Self> {
        let py = owner.py();
        let found = Found {
            kept: self.kept.iter().map(|array| array.clone_ref(py)).collect(),
            links: self.links.iter().map(|link| link.clone_ref(py)).collect(),
        };
        Self::compile(owner, self.definition.clone(), &self.args, jit, found)
    }
}
