//! `kernel.forall(n)`: a one-dimensional launch over n threads, with a block size that weft chooses.

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyTuple},
};
use weft_runtime::LaunchConfig;

use super::{Dispatcher, launch};
use crate::{
    args::Arguments,
    devices::stream::{Given, stream_of},
};

/// Threads in a block where the user does not say: enough to hide latency, few enough for any register count.
const BLOCK: u32 = 256;

/// See the module.
#[pyclass(frozen, module = "weft._weft", name = "ForAll")]
pub(crate) struct ForAll {
    dispatcher: Py<Dispatcher>,
    #[pyo3(get)]
    ntasks: u64,
    #[pyo3(get)]
    thread_per_block: u32,
    stream: Option<Py<PyAny>>,
    #[pyo3(get)]
    sharedmem: u32,
}

impl ForAll {
    pub(crate) fn new(
        dispatcher: Py<Dispatcher>,
        ntasks: i64,
        thread_per_block: u32,
        stream: Option<Py<PyAny>>,
        sharedmem: u32,
    ) -> PyResult<Self> {
        let ntasks = u64::try_from(ntasks)
            .map_err(|_| PyValueError::new_err(format!("Can't create ForAll with negative task count: {ntasks}")))?;
        Ok(Self { dispatcher, ntasks, thread_per_block, stream, sharedmem })
    }
}

#[pymethods]
impl ForAll {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(&self, py: Python<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        if self.ntasks == 0 {
            return Ok(());
        }
        let dispatcher = self.dispatcher.bind(py);
        let args = &dispatcher.get().complete(args, kwargs)?;
        let block = if self.thread_per_block == 0 {
            let mut arguments = Arguments::default();
            arguments.push_all(args).map_err(|(index, error)| dispatcher.get().explain(py, index, &error))?;
            let resolved = Dispatcher::resolve(dispatcher, &arguments)?;
            resolved.overload.loaded.max_threads_per_block().clamp(1, BLOCK)
        } else {
            self.thread_per_block
        };
        let blocks = self.ntasks.div_ceil(u64::from(block));
        let grid = u32::try_from(blocks).map_err(|_| {
            PyValueError::new_err(format!("{} tasks in blocks of {block} are more blocks than a grid has", self.ntasks))
        })?;
        let config = LaunchConfig { grid: [grid, 1, 1], block: [block, 1, 1], shared_bytes: self.sharedmem };
        let stream = stream_of(self.stream.as_ref().map(|stream| stream.bind(py)))?.on_current(py)?;
        launch::start(py, dispatcher, &config, stream.as_deref(), args)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let stream = self.stream.as_ref().map(|stream| stream.bind(py));
        if !matches!(stream_of(stream)?, Given::Default) {
            return Err(PyTypeError::new_err("a launch with a stream cannot be pickled: streams cannot"));
        }
        let rebuild = py.import("weft._pickle")?.getattr("rebuild_forall")?;
        let made = (&self.dispatcher, self.ntasks, self.thread_per_block, self.sharedmem);
        Ok((rebuild, made.into_pyobject(py)?))
    }

    /// The jitted function.
    #[getter]
    fn dispatcher(&self, py: Python<'_>) -> Py<Dispatcher> {
        self.dispatcher.clone_ref(py)
    }
}
