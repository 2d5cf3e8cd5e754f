//! The kernels of an operator: compiled on the first call with new types, found again without Python.

use std::sync::{Arc, PoisonError, RwLock};

use pyo3::prelude::*;
use weft_artifact::{Access, Assumptions};
use weft_ffi::{Device, Role};
use weft_runtime::{Executor, LaunchConfig};

use super::Inner;
use crate::{
    args::Arguments,
    capture::Capturer,
    devices,
    dispatcher::{
        Dispatcher,
        overload::{Found, Overload, Resolved},
        variants::assumptions,
    },
    engine::Definition,
    errors,
    types::key,
};

/// A compiled kernel, with the place and the types that it is for.
#[derive(Debug)]
struct Known {
    place: Device,
    kernel: Arc<Resolved>,
}

/// The kernels by place and types. There are few: a call looks at one after the other.
#[derive(Debug, Default)]
pub(super) struct Kernels(RwLock<Vec<Known>>);

impl Kernels {
    fn find(&self, place: Device, key: &[u32]) -> Option<Arc<Resolved>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let fits = |known: &&Known| known.place == place && *known.kernel.key == *key;
        known.iter().find(fits).map(|known| Arc::clone(&known.kernel))
    }

    /// Adds a kernel, unless another thread has compiled the same one meanwhile.
    fn add(&self, place: Device, kernel: Arc<Resolved>) -> Arc<Resolved> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = known.iter().find(|known| known.place == place && known.kernel.key == kernel.key) {
            return Arc::clone(&first.kernel);
        }
        known.push(Known { place, kernel: Arc::clone(&kernel) });
        kernel
    }
}

/// The device of a place.
pub(super) fn device(py: Python<'_>, place: Device) -> PyResult<(u32, Arc<dyn Executor>)> {
    match place {
        Device::Host => Ok((0, devices::host(py)?)),
        Device::Gpu(_) if !devices::is_cuda(py)? => {
            Err(errors::launch(py, "the arrays are in GPU memory, but kernels run on the CPU (WEFT_DEVICE)"))
        }
        Device::Gpu(id) => Ok((id, devices::by_id(py, id)?)),
    }
}

impl Inner {
    /// The kernel for a launch's types at a place, compiled for launches like this one if there is none.
    pub(super) fn kernel(
        &self,
        place: Device,
        arguments: &Arguments,
        config: &LaunchConfig,
    ) -> Result<Arc<Resolved>, String> {
        if let Some(known) = self.kernels.find(place, &arguments.key) {
            return Ok(known);
        }
        let compiled = self.with_python(|py| self.compile(py, place, arguments, config))?;
        Ok(self.kernels.add(place, Arc::new(compiled)))
    }

    fn compile(
        &self,
        py: Python<'_>,
        place: Device,
        arguments: &Arguments,
        config: &LaunchConfig,
    ) -> PyResult<Resolved> {
        let (dispatcher, words) = (self.dispatcher.bind(py), arguments.key.as_slice());
        let this = dispatcher.get();
        let given = key::decode(words);
        this.check_count(given.len())?;
        let device = device(py, place)?;
        let likely = arguments.likely(weft_artifact::are_nonneg(&given, &arguments.cells));
        let short_extents = assumptions::short_extents(&given, &arguments.cells);
        let (args, casts) = this.types_for(given)?;
        let mut capturer = Capturer::<Dispatcher>::new(py);
        let function = capturer.dispatcher(dispatcher)?;
        let found = Found { kept: capturer.kept, links: capturer.links };
        let (mut jit, _factors) = this.plain(py, &*device.1)?;
        let most = jit.code.assumptions;
        jit.code.assumptions = Assumptions::likeliest(likely).and(most);
        if place == Device::Host {
            jit.code.short_extents = short_extents;
            jit.code.likely_block = Some(config.block);
        }
        // A call launches the kernel as written: its code is needed now.
        jit.code.choose = false;
        // A call may be recorded in a CUDA graph while its kernel is loaded.
        let _aside = device.1.beside_captures();
        let mut compiled = Overload::compile(dispatcher, device, Definition::of(function), &args, &jit, found)?;
        compiled.most = most;
        compiled.code(py)?;
        self.check_effects(&compiled).map_err(|message| errors::launch(py, &message))?;
        Arc::new(compiled).resolve(py, words, casts)
    }

    /// Refuses a kernel that writes an array which the operator's schema says is only read.
    fn check_effects(&self, compiled: &Overload) -> Result<(), String> {
        let mut params = self.params.iter().zip(&compiled.kernel.params);
        let wrong = params.find(|(param, of)| {
            let Access { writes, .. } = of.access;
            writes && param.role == Role::Read
        });
        match wrong {
            None => Ok(()),
            Some((param, _)) => Err(format!(
                "`{}` is written by the kernel for these types, but not for those of the operator's signature: name the \
                 types in `signature=`",
                param.name
            )),
        }
    }

    /// Runs a step that needs Python. Its exception is the message.
    pub(super) fn with_python<T>(&self, step: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, String> {
        let done = Python::try_attach(|py| step(py).map_err(|error| self.message(py, &error)));
        done.unwrap_or_else(|| Err(format!("{}: the interpreter is ending", self.name)))
    }

    /// The message of an exception.
    pub(super) fn message(&self, py: Python<'_>, error: &PyErr) -> String {
        let text = error.value(py).to_string();
        let text = text.strip_prefix(&self.name).map_or(text.as_str(), |rest| rest.trim_start_matches(": "));
        format!("{}: {text}", self.name)
    }
}
