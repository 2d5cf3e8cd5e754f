//! Selects the variant of a kernel that a launch runs. Only [`Resolved::select`] makes this choice.
//!
//! A kernel that is compiled for the argument types of a launch has four kinds of variants, chosen in this order:
//!
//! 1. [`coarsened`]: a thread does the work of several. `coarsen` gives the factors.
//! 2. [`measured`]: the factors are measured on launches of the same shape.
//! 3. [`in_place`]: the kernel bounds-checks its stores, so that it can write large host arrays in place.
//! 4. [`assumptions`]: the kernel assumes less about its launches. The choice depends on the addresses of arrays, so it
//!    follows the staging of host arrays.
//!
//! A variant is compiled when a launch first needs it, or in the [`background`] if it is only a candidate. The kernel
//! owns it, and it may have variants of its own: a
//! coarsened kernel has some with other assumptions. All variants have the kernel's types, so they are compiled even
//! after the compilation of new types is disabled.

pub(super) mod assumptions;
pub(super) mod background;
pub(super) mod coarsened;
pub(super) mod in_place;
pub(super) mod measured;

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use weft_artifact::{Assumptions, Factors};
use weft_compiler::request::JitOptions;
use weft_runtime::{LaunchConfig, Stream};

use self::{
    assumptions::ByAssumptions,
    background::Readiness,
    coarsened::{ByFactors, FactorChoice},
    measured::{Effort, Timed},
};
use super::{
    Dispatcher,
    launch::{make_slots, settle_cells},
    overload::{Found, Overload, Resolved},
    staging::{self, Staging},
    tensors,
};
use crate::{args::Arguments, engine::timing::Timing};

/// The difference between a variant and the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A thread does the work of several threads.
    Coarsened(Factors),
    /// It bounds-checks its stores.
    InPlace,
    /// It makes exactly these assumptions about its launches.
    Assuming(Assumptions),
}

impl Kind {
    fn change(self, jit: &mut JitOptions) {
        match self {
            Self::Coarsened(factors) => jit.code.coarsen = factors,
            Self::InPlace => jit.code.bounded_stores = true,
            Self::Assuming(assumptions) => jit.code.assumptions = assumptions,
        }
    }

    /// The description of the variant in the log line of its compilation.
    fn shown(self, compiled: &Overload) -> &str {
        match self {
            Self::Coarsened(_) => &compiled.kernel.coarsening.note,
            Self::InPlace => "for host arrays in place",
            Self::Assuming(assumptions) => assumptions::shown(assumptions),
        }
    }
}

/// The variants of a kernel.
#[derive(Debug)]
pub(super) struct Variants<T> {
    pub(super) coarsened: ByFactors<T>,
    pub(super) in_place: Later<T>,
    pub(super) assuming: ByAssumptions<T>,
}

impl<T> Default for Variants<T> {
    fn default() -> Self {
        Self { coarsened: ByFactors::default(), in_place: Later::default(), assuming: ByAssumptions::default() }
    }
}

impl<T> Variants<T> {
    fn get(&self, kind: Kind) -> Option<Arc<T>> {
        match kind {
            Kind::Coarsened(factors) => self.coarsened.get(factors),
            Kind::InPlace => self.in_place.get(),
            Kind::Assuming(assumptions) => self.assuming.get(assumptions),
        }
    }

    /// Adds a variant, unless another thread has compiled the same one meanwhile. Returns the one that was added first.
    fn add(&self, kind: Kind, made: Arc<T>) -> Arc<T> {
        match kind {
            Kind::Coarsened(factors) => self.coarsened.add(factors, made),
            Kind::InPlace => self.in_place.add(made),
            Kind::Assuming(assumptions) => self.assuming.add(assumptions, made),
        }
    }
}

/// A variant that is compiled on demand.
#[derive(Debug)]
pub(super) struct Later<T>(Mutex<Option<Arc<T>>>);

impl<T> Default for Later<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Later<T> {
    pub(super) fn get(&self) -> Option<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, made: Arc<T>) -> Arc<T> {
        Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(made))
    }
}

/// A launch, without its arguments.
pub(super) struct Launch<'a, 'py> {
    pub(super) owner: &'a Bound<'py, Dispatcher>,
    pub(super) config: &'a LaunchConfig,
    pub(super) stream: Option<&'a dyn Stream>,
    /// Whether it was recorded or prepared: it runs later, is not timed, and has no host arrays.
    pub(super) is_prepared: bool,
}

/// The kernel that a launch runs.
pub(super) struct Selected {
    pub(super) kernel: Arc<Resolved>,
    /// The timing, if the launch is timed.
    pub(super) timed: Option<Timed>,
    /// Its host arrays.
    pub(super) staging: Staging,
}

impl Resolved {
    /// Chooses the variant that a launch runs, stages the host arrays for it, and fills the slots.
    ///
    /// # Errors
    ///
    /// As a launch that compiles.
    pub(super) fn select(
        self: Arc<Self>,
        launch: &Launch<'_, '_>,
        arguments: &mut Arguments,
        slots: &mut Vec<u64>,
    ) -> PyResult<Selected> {
        let Launch { owner, config, stream, is_prepared } = *launch;
        let plain = Arc::clone(&self);
        let (mut kernel, mut timed) =
            if is_prepared { (self.for_block(owner, config)?, None) } else { self.for_launch(owner, config, stream)? };
        arguments.lend(&kernel.overload.lent);
        let mut staging = Staging::default();
        if !is_prepared {
            staging = Staging::holding(tensors::settle(owner.py(), &kernel, arguments)?);
            if !arguments.hosts.is_empty() {
                let plan = staging::plan(owner, &kernel, arguments)?;
                let is_written_in_place = kernel.can_write_in_place() && plan.is_written_in_place(&arguments.hosts);
                if is_written_in_place {
                    kernel = kernel.variant(owner, Kind::InPlace)?;
                }
                plan.stage(owner, &*kernel.overload.executor, stream, arguments, is_written_in_place, &mut staging)?;
            }
        }
        settle_cells(&kernel, arguments);
        if let Some(assumptions) = kernel.assumptions_for(config, arguments) {
            let kind = Kind::Assuming(assumptions);
            let is_candidate = plain.overload.wanted == FactorChoice::Measure(Effort::Background)
                && !Arc::ptr_eq(&plain.overload, &kernel.overload);
            if is_candidate && kernel.overload.readiness(owner.py(), kind)? != Readiness::Available {
                // The launch does not wait for a variant of a candidate.
                (kernel, timed) = (plain, None);
                if let Some(assumptions) = kernel.assumptions_for(config, arguments) {
                    kernel = kernel.variant(owner, Kind::Assuming(assumptions))?;
                }
            } else {
                kernel = kernel.variant(owner, kind)?;
            }
        }
        make_slots(&kernel, arguments, slots);
        kernel.fill_bounds(&staging.written, slots);
        Ok(Selected { kernel, timed, staging })
    }

    /// A variant that is compiled.
    pub(super) fn known_variant(&self, kind: Kind) -> Option<Arc<Self>> {
        self.variants.get(kind)
    }

    /// A variant, compiled on first use.
    ///
    /// # Errors
    ///
    /// As a launch that compiles.
    pub(super) fn variant(&self, owner: &Bound<'_, Dispatcher>, kind: Kind) -> PyResult<Arc<Self>> {
        if let Some(known) = self.variants.get(kind) {
            return Ok(known);
        }
        let overload = self.overload.variant(owner, kind)?;
        let resolved = overload.resolve(owner.py(), &self.key, self.casts.to_vec())?;
        Ok(self.variants.add(kind, Arc::new(resolved)))
    }
}

impl Overload {
    fn variant(&self, owner: &Bound<'_, Dispatcher>, kind: Kind) -> PyResult<Arc<Self>> {
        if let Some(known) = self.variants.get(kind) {
            return Ok(known);
        }
        let py = owner.py();
        let timing = Timing::start(py, "capture")?;
        let mut jit = self.jit.clone();
        kind.change(&mut jit);
        // The launch needs the code now.
        jit.code.choose = false;
        let found = Found {
            kept: self.kept.iter().map(|array| array.clone_ref(py)).collect(),
            links: self.links.iter().map(|link| link.clone_ref(py)).collect(),
        };
        let device = (self.device, Arc::clone(&self.executor));
        let mut compiled = Self::compile(owner, device, self.definition.clone(), &self.args, &jit, found)?;
        compiled.most = self.most;
        compiled.load_compiled(py)?;
        let cached = if compiled.compiled.was_cached { ", cached" } else { "" };
        timing.print(py, || format!("{}, {}{cached}", compiled.shown(), kind.shown(&compiled)))?;
        Ok(self.variants.add(kind, Arc::new(compiled)))
    }
}
