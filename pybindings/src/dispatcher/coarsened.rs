//! The variant of a kernel of which a thread does the work of several neighbours: by the option `coarsen` of `cuda.jit`, or by
//! the setting.
//!
//! It is compiled when a launch first has a block that can be divided so, and belongs to the kernel that it is a variant of.
//! Other blocks run the kernel itself, and so do all if the compiler leaves the kernel as it is.

use std::sync::Arc;

use pyo3::prelude::*;
use weft_artifact::{Coarsening, Facts};
use weft_compiler::request::JitOptions;

use super::{
    Dispatcher,
    overload::{Overload, Resolved},
};
use crate::{devices, engine::timing::Timing};

impl Dispatcher {
    /// The options of the kernel itself, which on a GPU is for launches of which all [facts](super::small) hold, and the factors of its
    /// variant.
    ///
    /// # Errors
    ///
    /// `ValueError` for a setting that makes no sense.
    pub(super) fn plain(&self, py: Python<'_>) -> PyResult<(JitOptions, [u32; 3])> {
        let mut jit = self.jit.clone();
        let own = std::mem::replace(&mut jit.code.coarsen, Coarsening::NONE);
        let settings = devices::settings(py)?;
        let is_gpu = devices::current(py)?.kind() == "cuda";
        jit.code.facts = if settings.launch_facts && is_gpu { Facts::ALL } else { Facts::NONE };
        Ok((jit, settings.coarsen.unwrap_or(own)))
    }
}

impl Resolved {
    /// What a launch with such a block runs.
    ///
    /// # Errors
    ///
    /// As a launch that compiles.
    pub(super) fn for_block(self: Arc<Self>, owner: &Bound<'_, Dispatcher>, block: [u32; 3]) -> PyResult<Arc<Self>> {
        let factors = self.overload.factors;
        if factors == Coarsening::NONE || (Coarsening { factors, note: String::new() }).divide(block).is_none() {
            return Ok(self);
        }
        let variant = match self.coarsened.get() {
            Some(known) => known,
            None => {
                let overload = Overload::coarsened(&self.overload, owner)?;
                let resolved = overload.resolve(owner.py(), &self.key, self.casts.to_vec())?;
                self.coarsened.keep(&Arc::new(resolved))
            }
        };
        Ok(if variant.overload.kernel.coarsening.factors == factors { variant } else { self })
    }
}

impl Overload {
    fn coarsened(known: &Arc<Self>, owner: &Bound<'_, Dispatcher>) -> PyResult<Arc<Self>> {
        if let Some(variant) = known.coarsened.get() {
            return Ok(variant);
        }
        let py = owner.py();
        let timing = Timing::start(py, "capture")?;
        let mut jit = known.jit.clone();
        jit.code.coarsen = known.factors;
        let compiled = known.variant(owner, &jit)?;
        let note = &compiled.kernel.coarsening.note;
        timing
            .print(py, || format!("{}, {note}{}", compiled.shown(), if compiled.was_kept { ", kept" } else { "" }))?;
        Ok(known.coarsened.keep(&Arc::new(compiled)))
    }
}
