//! What a kernel may take for granted of its launches, and the variant for those of which it does not hold.
//!
//! On a GPU a kernel is compiled for launches that have nothing but what is small
//! ([`Options::small`](weft_compiler::request::Options::small)): then most of what it computes with integers fits 32 bits.
//! Each launch looks whether it is one. The variant for all others is compiled when there is one, and belongs to the kernel
//! that it is a variant of.

use std::sync::Arc;

use pyo3::prelude::*;
use weft_artifact::{Scalar, Slot, SlotType};
use weft_runtime::LaunchConfig;

use super::{
    Dispatcher,
    overload::{Found, Overload, Resolved},
};
use crate::engine::timing::Timing;

/// An integer of a launch that must be small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    /// The argument's cell.
    cell: u32,
    /// It has no sign.
    unsigned: bool,
}

impl Word {
    fn is_small(self, cells: &[u64]) -> bool {
        let Some(&value) = cells.get(self.cell as usize) else { return false };
        // A cell holds the 64 bits.
        let signed = value.cast_signed();
        i32::try_from(signed).is_ok_and(|small| small >= 0 || !self.unsigned)
    }
}

/// The integers of 64 bits among what a kernel takes, `cells` being where each of its slots is taken from.
pub(super) fn words(slots: &[Slot], cells: &[u32]) -> Box<[Word]> {
    let word = |(slot, &cell): (&Slot, &u32)| match slot.ty {
        SlotType::Scalar(scalar) if scalar.is_int() && scalar.size_bytes() == 8 => {
            Some(Word { cell, unsigned: scalar == Scalar::U64 })
        }
        SlotType::Scalar(_) | SlotType::Pointer | SlotType::Bytes { .. } => None,
    };
    slots.iter().zip(cells).filter_map(word).collect()
}

impl Resolved {
    /// Whether the kernel is for a launch with such a shape and such arguments, as its casts have left them.
    pub(super) fn takes(&self, config: &LaunchConfig, cells: &[u64]) -> bool {
        if !self.overload.jit.code.small {
            return true;
        }
        let threads = |axis: usize| u64::from(config.grid[axis]) * u64::from(config.block[axis]);
        (0..3).all(|axis| i32::try_from(threads(axis)).is_ok()) && self.words.iter().all(|word| word.is_small(cells))
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
