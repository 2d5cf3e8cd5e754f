//! Variants of a kernel in which one thread does the work of several adjacent threads. The factors come from `coarsen`
//! of `cuda.jit`, from the setting, or from [measurements](super::measured).
//!
//! A variant is compiled when a launch first needs it; the kernel owns it. A launch whose size is not divisible by the
//! factors runs the kernel itself. So do all launches if the compiler does not coarsen the kernel.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use weft_artifact::{Assumptions, Candidate, Factors, Tools};
use weft_compiler::{request::JitOptions, target::needs::isa_of_driver};
use weft_runtime::{CoarsenChoice, Executor, LaunchConfig, Stream};

use super::{
    Kind,
    measured::{Choice, Effort, Timed},
};
use crate::{
    devices,
    dispatcher::{
        Dispatcher,
        overload::{Overload, Resolved},
    },
};

/// The number of times that a launch must fill the device with threads for coarsening to be considered. Smaller launches
/// need all their threads to hide memory latency. For merged blocks, the device is full with as many threads as the
/// kernel's registers allow.
const LEAST_WAVES: u64 = 2;

/// How the coarsening factors of launches are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dispatcher) enum FactorChoice {
    /// These.
    Factors(Factors),
    /// The best factors are measured.
    Measure(Effort),
}

impl Default for FactorChoice {
    fn default() -> Self {
        Self::Factors(Factors::NONE)
    }
}

/// Variants by their factors. The list may be empty.
#[derive(Debug)]
pub(in crate::dispatcher) struct ByFactors<T>(Mutex<Vec<(Factors, Arc<T>)>>);

impl<T> Default for ByFactors<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<T> ByFactors<T> {
    fn lock(&self) -> MutexGuard<'_, Vec<(Factors, Arc<T>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::dispatcher) fn get(&self, factors: Factors) -> Option<Arc<T>> {
        self.lock().iter().find(|(of, _)| *of == factors).map(|(_, variant)| Arc::clone(variant))
    }

    /// The factors of the existing variants.
    fn factors(&self) -> Vec<Factors> {
        self.lock().iter().map(|(factors, _)| *factors).collect()
    }

    /// All that there are.
    pub(in crate::dispatcher) fn all(&self) -> Vec<Arc<T>> {
        self.lock().iter().map(|(_, variant)| Arc::clone(variant)).collect()
    }

    /// The most recent variant.
    pub(in crate::dispatcher) fn last(&self) -> Option<Arc<T>> {
        self.lock().last().map(|(_, variant)| Arc::clone(variant))
    }

    pub(super) fn add(&self, factors: Factors, made: Arc<T>) -> Arc<T> {
        let mut kept = self.lock();
        if let Some((_, first)) = kept.iter().find(|(of, _)| *of == factors) {
            return Arc::clone(first);
        }
        kept.push((factors, Arc::clone(&made)));
        made
    }
}

impl Dispatcher {
    /// The options of the kernel itself, which on a GPU is for launches for which all [assumptions](super::assumptions)
    /// hold, and the factors of its launches.
    ///
    /// # Errors
    ///
    /// `ValueError` for a setting that makes no sense.
    pub(in crate::dispatcher) fn plain(
        &self,
        py: Python<'_>,
        device: &dyn Executor,
    ) -> PyResult<(JitOptions, FactorChoice)> {
        let mut jit = self.jit.clone();
        let own = std::mem::replace(&mut jit.code.coarsen, Factors::NONE);
        let settings = devices::settings(py)?;
        let is_gpu = device.kind() == "cuda";
        let is_sanitized = if jit.says_sanitize { jit.code.sanitize } else { settings.sanitize } != Tools::NONE;
        if is_gpu && is_sanitized {
            let message = "the sanitizer checks kernels on the CPU: set WEFT_DEVICE=cpu before the first use of weft";
            return Err(crate::errors::launch(py, message));
        }
        jit.code.driver_isa = if is_gpu { isa_of_driver(device.attributes().driver_version) } else { None };
        jit.code.assumptions = if settings.specialize && !is_sanitized { Assumptions::ALL } else { Assumptions::NONE };
        let wanted = match settings.coarsen {
            CoarsenChoice::Factors(factors) => FactorChoice::Factors(factors),
            CoarsenChoice::Kernel | CoarsenChoice::Auto if jit.says_factors => FactorChoice::Factors(own),
            CoarsenChoice::Kernel | CoarsenChoice::Auto if jit.tune || settings.tune => {
                FactorChoice::Measure(Effort::Foreground)
            }
            // Variants may differ in the order of atomic operations, and the choice depends on time.
            CoarsenChoice::Kernel | CoarsenChoice::Auto if jit.code.reproducible => {
                FactorChoice::Factors(Factors::NONE)
            }
            CoarsenChoice::Kernel | CoarsenChoice::Auto if is_gpu && jit.code.choose => {
                FactorChoice::Measure(Effort::Background)
            }
            // The compiler's candidates are for GPUs. A debugger must show the program's own threads.
            CoarsenChoice::Auto if is_gpu && jit.code.opt && !jit.code.debug => {
                FactorChoice::Measure(Effort::Background)
            }
            CoarsenChoice::Kernel | CoarsenChoice::Auto => FactorChoice::Factors(Factors::NONE),
        };
        jit.code.choose = wanted == FactorChoice::Measure(Effort::Foreground);
        Ok((jit, wanted))
    }
}

impl Resolved {
    /// The variant that a launch of this shape runs if it is not measured.
    ///
    /// # Errors
    ///
    /// As a launch that compiles.
    pub(in crate::dispatcher) fn for_block(
        self: Arc<Self>,
        owner: &Bound<'_, Dispatcher>,
        config: &LaunchConfig,
    ) -> PyResult<Arc<Self>> {
        let overload = &self.overload;
        if config.has_clusters() {
            // Merged blocks would belong to another cluster.
            return Ok(self);
        }
        let factors = match overload.wanted {
            FactorChoice::Factors(factors) if factors == Factors::NONE => return Ok(self),
            FactorChoice::Factors(factors) => fitting(factors, config),
            FactorChoice::Measure(Effort::Background) if !overload.has_waves(config) => return Ok(self),
            FactorChoice::Measure(effort) => overload.best(effort, config),
        };
        self.for_factors(owner, factors, config)
    }

    /// The variant that a launch in a stream runs, and its timing if it is measured.
    ///
    /// # Errors
    ///
    /// As a launch that compiles.
    pub(in crate::dispatcher) fn for_launch(
        self: Arc<Self>,
        owner: &Bound<'_, Dispatcher>,
        config: &LaunchConfig,
        stream: Option<&dyn Stream>,
    ) -> PyResult<(Arc<Self>, Option<Timed>)> {
        if config.has_clusters() {
            return Ok((self.for_block(owner, config)?, None));
        }
        let effort = match self.overload.wanted {
            FactorChoice::Factors(_) => return Ok((self.for_block(owner, config)?, None)),
            FactorChoice::Measure(Effort::Background) if !self.overload.has_waves(config) => {
                if self.overload.made().is_some() {
                    self.overload.tunings.use_now(Factors::NONE);
                    return Ok((self, None));
                }
                let factors = self.loaded_in_a_capture(owner.py(), Factors::NONE, config, stream);
                return Ok((self.for_factors(owner, factors, config)?, None));
            }
            FactorChoice::Measure(effort) => effort,
        };
        match self.last_choice.get(config) {
            Some(Chosen::AsWritten) => {
                self.overload.tunings.use_now(Factors::NONE);
                return Ok((self, None));
            }
            Some(Chosen::Variant(variant)) => {
                self.overload.tunings.use_now(variant.overload.jit.code.coarsen);
                return Ok((variant, None));
            }
            None => {}
        }
        let Choice { factors, timed, is_final } = self.measured(owner, effort, config, stream)?;
        let loaded = self.loaded_in_a_capture(owner.py(), factors, config, stream);
        let chosen = Arc::clone(&self).for_factors(owner, loaded, config)?;
        // Not if the compiler or the device rejects it, or if a capture needs other code.
        let is_chosen = chosen.overload.jit.code.coarsen == factors;
        if is_final && is_chosen {
            let is_variant = !Arc::ptr_eq(&chosen, &self);
            let choice = if is_variant { Chosen::Variant(Arc::clone(&chosen)) } else { Chosen::AsWritten };
            self.last_choice.set(config, choice);
        }
        match timed {
            Some(timed) if !is_chosen => timed.refused(),
            Some(timed) => return Ok((chosen, Some(timed))),
            None => {}
        }
        Ok((chosen, None))
    }

    /// The factors of a launch. If the stream is being captured, only factors of loaded code are considered, because
    /// loading code can end a capture with an error.
    fn loaded_in_a_capture(
        &self,
        py: Python<'_>,
        factors: Factors,
        config: &LaunchConfig,
        stream: Option<&dyn Stream>,
    ) -> Factors {
        let is_loaded = |factors: Factors| {
            if factors == Factors::NONE {
                self.overload.made().is_some()
            } else {
                let variant = self.overload.variants.coarsened.get(factors);
                variant.is_some_and(|variant| variant.kernel.coarsening.factors == factors)
            }
        };
        if is_loaded(factors) {
            return factors;
        }
        let mut others = std::iter::once(Factors::NONE).chain(self.overload.variants.coarsened.factors());
        let Some(other) = others.find(|other| is_loaded(*other) && fitting(*other, config) == *other) else {
            return factors;
        };
        // Query the driver with the GIL released: a thread in a callback of the driver may need it.
        let is_captured = py.detach(|| self.overload.executor.is_captured(stream).unwrap_or(false));
        if is_captured { other } else { factors }
    }

    /// The variant with these factors if it fits the launch, else the kernel itself.
    fn for_factors(
        self: Arc<Self>,
        owner: &Bound<'_, Dispatcher>,
        factors: Factors,
        config: &LaunchConfig,
    ) -> PyResult<Arc<Self>> {
        let overload = Arc::clone(&self.overload);
        let mut chosen = Arc::clone(&self).coarsened_by(owner, factors)?;
        // A variant may need more registers and then support only smaller blocks. Merging blocks does not make them
        // smaller.
        let asked = overload.wanted != FactorChoice::Factors(factors) || factors.blocks_in_one() > 1;
        let is_variant = !Arc::ptr_eq(&chosen.overload, &overload);
        if asked
            && is_variant
            && u64::from(chosen.overload.loaded(owner.py())?.max_threads_per_block()) < threads(config)
        {
            chosen = self;
        }
        overload.tunings.use_now(chosen.overload.jit.code.coarsen);
        Ok(chosen)
    }

    /// The variant with these factors, compiled on first use. The kernel itself if the compiler does not coarsen it.
    pub(in crate::dispatcher) fn coarsened_by(
        self: Arc<Self>,
        owner: &Bound<'_, Dispatcher>,
        factors: Factors,
    ) -> PyResult<Arc<Self>> {
        if factors == Factors::NONE {
            return Ok(self);
        }
        let variant = self.variant(owner, Kind::Coarsened(factors))?;
        Ok(if variant.overload.kernel.coarsening.factors == factors { variant } else { self })
    }
}

impl Overload {
    /// The candidates that fit a launch, the most promising ones first.
    pub(super) fn candidates<'a>(
        &self,
        candidates: &'a [Candidate],
        config: &LaunchConfig,
    ) -> impl Iterator<Item = &'a Candidate> + use<'a> {
        let is_gpu = self.executor.kind() == "cuda";
        let config = *config;
        candidates.iter().filter(move |candidate| {
            let in_one = u64::from(candidate.factors.threads_in_one());
            let fewest = if is_gpu { u64::from(candidate.fewest) } else { 1 };
            fitting(candidate.factors, &config) != Factors::NONE && threads(&config) / in_one >= fewest
        })
    }

    /// Whether a launch has enough threads for coarsening.
    fn has_waves(&self, config: &LaunchConfig) -> bool {
        let capability = self.executor.attributes().compute_capability;
        self.fills_device(config, 1, LEAST_WAVES * threads_at_once(capability))
    }

    /// Whether a launch has enough threads for a candidate: with merged blocks, all that can be resident.
    pub(super) fn leaves_waves(&self, config: &LaunchConfig, candidate: &Candidate) -> bool {
        let copies = u64::from(candidate.factors.copies());
        candidate.factors.blocks_in_one() == 1 || self.fills_device(config, copies, u64::from(candidate.at_once))
    }

    /// Whether a launch has at least `at_once` threads for each multiprocessor after `copies` threads are merged into
    /// one.
    fn fills_device(&self, config: &LaunchConfig, copies: u64, at_once: u64) -> bool {
        let wanted = u64::from(self.executor.attributes().multiprocessor_count) * at_once;
        blocks(config).saturating_mul(threads(config)) / copies >= wanted
    }
}

/// The final choice of a kernel's last launch that had one: a launch of the same shape needs no other lookup.
#[derive(Debug, Default)]
pub(in crate::dispatcher) struct LastChoice(Mutex<Option<FinalChoice>>);

#[derive(Debug)]
struct FinalChoice {
    grid: [u32; 3],
    block: [u32; 3],
    chosen: Chosen,
}

/// The choice for a launch.
#[derive(Clone, Debug)]
enum Chosen {
    /// The kernel as written.
    AsWritten,
    /// A variant.
    Variant(Arc<Resolved>),
}

impl LastChoice {
    fn get(&self, config: &LaunchConfig) -> Option<Chosen> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.as_ref()?;
        (last.grid == config.grid && last.block == config.block).then(|| last.chosen.clone())
    }

    fn set(&self, config: &LaunchConfig, chosen: Chosen) {
        let new = Some(FinalChoice { grid: config.grid, block: config.block, chosen });
        let old = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), new);
        drop(old);
    }
}

/// The factors if a launch is divisible by them, else no coarsening.
fn fitting(factors: Factors, config: &LaunchConfig) -> Factors {
    if factors.divide(config.grid, config.block).is_some() { factors } else { Factors::NONE }
}

/// Threads of a block.
pub(super) fn threads(config: &LaunchConfig) -> u64 {
    product(config.block)
}

/// Blocks of the grid.
pub(in crate::dispatcher) fn blocks(config: &LaunchConfig) -> u64 {
    product(config.grid)
}

fn product(extents: [u32; 3]) -> u64 {
    extents.iter().fold(1, |product: u64, extent| product.saturating_mul(u64::from(*extent)))
}

/// The maximum number of resident threads per multiprocessor: CUDA C++ Programming Guide, "Technical Specifications per
/// Compute Capability".
fn threads_at_once(capability: (u32, u32)) -> u64 {
    match capability {
        (7, 5) => 1024,
        (8, 6..) | (12.., _) => 1536,
        _ => 2048,
    }
}
