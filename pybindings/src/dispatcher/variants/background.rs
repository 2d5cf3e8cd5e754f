//! Estimates and variants that are compiled and loaded in the [background](crate::engine::background).
//!
//! A job has no access to Python: it gets a request, and its result becomes a variant when a later launch needs it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use weft_artifact::Coarsening;
use weft_compiler::{
    Poll,
    request::{JitOptions, Outcome},
};

use super::Kind;
use crate::{
    dispatcher::overload::{Built, Code, Overload},
    engine::{Unattended, background},
};

/// The jobs of a kernel, and their results.
#[derive(Debug, Default)]
pub(in crate::dispatcher) struct Jobs(Arc<Mutex<JobsState>>);

#[derive(Debug, Default)]
struct JobsState {
    estimate: Estimate,
    variants: Vec<(Kind, Variant)>,
}

#[derive(Debug, Default)]
enum Estimate {
    #[default]
    New,
    Pending,
    Known(Arc<Coarsening>),
    Failed,
}

#[derive(Debug)]
enum Variant {
    Pending,
    /// Compiled, and not yet among the kernel's variants.
    Built(Box<Built>),
    Failed,
}

/// The estimate of a kernel.
pub(super) enum Estimated {
    Pending,
    Known(Arc<Coarsening>),
    Failed,
}

/// Whether a variant can be launched without waiting for the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    Pending,
    Available,
    Failed,
}

fn lock(jobs: &Mutex<JobsState>) -> MutexGuard<'_, JobsState> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner)
}

impl JobsState {
    fn set(&mut self, kind: Kind, state: Variant) {
        self.variants.retain(|(known, _)| *known != kind);
        self.variants.push((kind, state));
    }
}

impl Jobs {
    /// The estimate, if it is computed. The program may query it without a launch, so this starts no job.
    pub(in crate::dispatcher) fn known_estimate(&self) -> Option<Arc<Coarsening>> {
        match &lock(&self.0).estimate {
            Estimate::Known(known) => Some(Arc::clone(known)),
            Estimate::New | Estimate::Pending | Estimate::Failed => None,
        }
    }
}

impl Overload {
    /// The estimate of better factors; the first call starts its computation.
    pub(super) fn estimate(&self, py: Python<'_>) -> PyResult<Estimated> {
        match &lock(&self.jobs.0).estimate {
            Estimate::Pending => return Ok(Estimated::Pending),
            Estimate::Known(known) => return Ok(Estimated::Known(Arc::clone(known))),
            Estimate::Failed => return Ok(Estimated::Failed),
            Estimate::New => {}
        }
        let mut jit = self.jit.clone();
        jit.code.choose = true;
        let request = self.unattended(py, &jit)?;
        let jobs = Arc::clone(&self.jobs.0);
        let job = move |poll: Poll<'_>| {
            let estimate = match request.compile(poll)? {
                Ok(Outcome::Made(made)) => made.output.artifact.kernels.first().map(|kernel| kernel.coarsening.clone()),
                // The kernel itself was compiled: this would be an internal error, and the kernel is not coarsened.
                Ok(Outcome::Queries(_)) | Err(_) => None,
            };
            lock(&jobs).estimate = estimate.map_or(Estimate::Failed, |known| Estimate::Known(Arc::new(known)));
            Some(())
        };
        let is_accepted = background::submit(py, job);
        let mut state = lock(&self.jobs.0);
        if let Estimate::New = state.estimate {
            state.estimate = if is_accepted { Estimate::Pending } else { Estimate::Failed };
        }
        Ok(if is_accepted { Estimated::Pending } else { Estimated::Failed })
    }

    /// Whether a variant can be launched at once. The first call starts its compilation; a call after the compilation
    /// adds it to the kernel's variants.
    pub(super) fn readiness(&self, py: Python<'_>, kind: Kind) -> PyResult<Readiness> {
        if self.variants.get(kind).is_some() {
            return Ok(Readiness::Available);
        }
        let mut jit = self.jit.clone();
        kind.change(&mut jit);
        jit.code.choose = false;
        let known = {
            let mut state = lock(&self.jobs.0);
            let at = state.variants.iter().position(|(known, _)| *known == kind);
            match at.map(|at| &state.variants[at].1) {
                Some(Variant::Pending) => return Ok(Readiness::Pending),
                Some(Variant::Failed) => return Ok(Readiness::Failed),
                Some(Variant::Built(_)) => at.map(|at| state.variants.swap_remove(at).1),
                None => None,
            }
        };
        if let Some(Variant::Built(built)) = known {
            let variant = self.variant_of(py, jit, *built);
            let _added = self.variants.add(kind, Arc::new(variant));
            return Ok(Readiness::Available);
        }
        let is_accepted = self.build(py, kind, jit)?;
        Ok(if is_accepted { Readiness::Pending } else { Readiness::Failed })
    }

    /// Starts the compilation of a variant. Returns whether it will run.
    fn build(&self, py: Python<'_>, kind: Kind, jit: JitOptions) -> PyResult<bool> {
        let request = self.unattended(py, &jit)?;
        let (executor, args) = (Arc::clone(&self.executor), self.args.clone());
        lock(&self.jobs.0).set(kind, Variant::Pending);
        let jobs = Arc::clone(&self.jobs.0);
        let job = move |poll: Poll<'_>| {
            let built = match request.compile(poll)? {
                Ok(Outcome::Made(compiled)) => Code::build(&*executor, compiled, &args, &jit, &request),
                Ok(Outcome::Queries(_)) | Err(_) => None,
            };
            let state = built.map_or(Variant::Failed, |built| Variant::Built(Box::new(built)));
            lock(&jobs).set(kind, state);
            Some(())
        };
        let is_accepted = background::submit(py, job);
        if !is_accepted {
            lock(&self.jobs.0).set(kind, Variant::Failed);
        }
        Ok(is_accepted)
    }

    fn unattended(&self, py: Python<'_>, jit: &JitOptions) -> PyResult<Unattended> {
        Unattended::new(py, &self.definition, &self.args, &self.executor.target(), jit)
    }
}
