//! A launch whose arguments were read once: `kernel[griddim, blockdim].prepare(*args)`.

use std::{cell::RefCell, sync::Arc};

use pyo3::{
    exceptions::PyTypeError,
    gc::{PyTraverseError, PyVisit},
    prelude::*,
    types::PyTuple,
};
use weft_runtime::{Buffer, LaunchConfig, Stream};

use super::{
    Dispatcher, graph,
    launch::{self, By},
    observer,
    overload::Resolved,
    staging::check_elements,
    variants::{Launch, Selected},
};
use crate::{
    args::Arguments,
    devices::{self, recording, stream::StreamArgument},
    errors,
};

/// A launch that is ready. Calling it launches.
#[pyclass(frozen, weakref, module = "weft._weft", name = "PreparedLaunch")]
pub(crate) struct Prepared {
    dispatcher: Py<Dispatcher>,
    /// The kernel; `None` where Python's interpreter runs the launches.
    resolved: Option<Arc<Resolved>>,
    config: LaunchConfig,
    stream: StreamArgument,
    /// They keep the memory.
    args: Py<PyTuple>,
    slots: Box<[u64]>,
    /// The memory of ours that it uses.
    buffers: Box<[Arc<dyn Buffer>]>,
}

impl Prepared {
    /// Reads a launch's arguments, of which none is in the host's memory.
    ///
    /// # Errors
    ///
    /// As those of a launch; `TypeError` for an array of the host.
    pub(super) fn new(
        dispatcher: &Bound<'_, Dispatcher>,
        config: LaunchConfig,
        stream: StreamArgument,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<Self> {
        let py = dispatcher.py();
        let mut arguments = Arguments::in_no_stream();
        arguments.push_all(args).map_err(|(index, error)| dispatcher.get().explain(py, index, &error))?;
        graph::refuse_hosts(dispatcher, &arguments)?;
        let (mut slots, mut resolved) = (Vec::new(), None);
        if !devices::interprets() {
            resolved = Some(Self::resolve(dispatcher, &config, &mut arguments, &mut slots)?);
        }
        Ok(Self {
            dispatcher: dispatcher.clone().unbind(),
            config,
            stream,
            args: args.clone().unbind(),
            slots: slots.into(),
            buffers: std::mem::take(&mut arguments.lent).into(),
            resolved,
        })
    }

    /// The kernel that the launches run, and its slots.
    fn resolve(
        dispatcher: &Bound<'_, Dispatcher>,
        config: &LaunchConfig,
        arguments: &mut Arguments,
        slots: &mut Vec<u64>,
    ) -> PyResult<Arc<Resolved>> {
        let py = dispatcher.py();
        let resolved = Dispatcher::resolve(dispatcher, arguments)?;
        check_elements(dispatcher.get(), &resolved, arguments)?;
        let launch = Launch { owner: dispatcher, config, stream: None, is_prepared: true };
        let Selected { kernel, .. } = resolved.select(&launch, arguments, slots)?;
        let loaded = kernel.overload.loaded(py)?;
        loaded.check(config, slots.len()).map_err(|error| errors::runtime(py, &error))?;
        Ok(kernel)
    }
}

#[pymethods]
impl Prepared {
    /// Launches with the arguments as they were read.
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        observer::refuse(py, "a prepared launch")?;
        let Some(resolved) = self.resolved.as_ref().filter(|_| !recording::is_active()) else {
            let stream = self.stream.on_current(py)?;
            let (dispatcher, args) = (self.dispatcher.bind(py), self.args.bind(py));
            return launch::start(dispatcher, &self.config, stream.as_deref(), args, &By::Types);
        };
        let overload = &resolved.overload;
        let stream = self.stream.on(py, &*overload.executor)?;
        let stream = stream.as_deref();
        let order = stream.map_or(0, Stream::order);
        let mut slots = self.slots.clone();
        let loaded = overload.loaded(py)?;
        let (launched, stopped) = py.detach(|| {
            let stopped = RefCell::new(None);
            let poll = || errors::handle_signals(&stopped);
            let launched = loaded.launch_polled(&self.config, stream, &mut slots, Some(&poll));
            let is_other = |buffer: &&Arc<dyn Buffer>| buffer.order().is_some_and(|own| own != order);
            if launched.is_ok() && self.buffers.iter().any(|buffer| is_other(&buffer)) {
                let others: Vec<_> = self.buffers.iter().filter(is_other).cloned().collect();
                overload.executor.note_use(&others, stream);
            }
            (launched, errors::raised_meanwhile(stopped))
        });
        match stopped {
            Some(raised) => Err(raised),
            None => errors::launched(py, launched, || devices::findings(py)),
        }
    }

    /// The arguments.
    #[getter]
    fn args(&self, py: Python<'_>) -> Py<PyTuple> {
        self.args.clone_ref(py)
    }

    /// The copy has copies of the device arrays, which go through the host.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        if !matches!(self.stream, StreamArgument::Default) {
            return Err(PyTypeError::new_err(
                "a prepared launch with a stream cannot be pickled, because streams cannot",
            ));
        }
        let rebuild = py.import("weft._pickle")?.getattr("rebuild_prepared")?;
        let LaunchConfig { grid, block, shared_bytes, cluster } = self.config;
        let cluster = self.config.has_clusters().then_some(cluster);
        Ok((rebuild, (&self.dispatcher, grid, block, shared_bytes, cluster, &self.args).into_pyobject(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let kernel = self.dispatcher.bind(py).repr()?;
        let LaunchConfig { grid, block, .. } = self.config;
        Ok(format!("<prepared launch of {kernel} with griddim={grid:?}, blockdim={block:?}>"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.dispatcher)?;
        visit.call(&self.args)
    }
}
