//! `kernel.forall(n)`: a one-dimensional launch over n threads, with a block size that weft chooses.

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyInt, PyTuple},
};
use weft_runtime::{LaunchConfig, USUAL_BLOCK};

use super::{Dispatcher, around};
use crate::{
    args::Arguments,
    devices::{
        self,
        stream::{StreamArgument, stream_of},
    },
    errors,
};

/// The result of `kernel.forall(ntasks, tpb, stream, sharedmem)`. Calling it with arguments launches the kernel.
///
/// >>> x = cuda.to_device(np.ones(1000))
/// >>> scale.forall(x.size)(x, 2.0)
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
        ntasks: &Bound<'_, PyAny>,
        thread_per_block: Option<&Bound<'_, PyAny>>,
        stream: Option<Py<PyAny>>,
        sharedmem: u32,
    ) -> PyResult<Self> {
        let count = integer(ntasks, "ntasks")?;
        let ntasks = u64::try_from(count).map_err(|_| {
            let message = format!("Can't create ForAll with negative task count: {count}; ntasks is 0 or more");
            PyValueError::new_err(message)
        })?;
        let threads = thread_per_block.map_or(Ok(0), |threads| integer(threads, "tpb"))?;
        let thread_per_block = u32::try_from(threads).map_err(|_| {
            let message =
                format!("tpb must be the number of threads per block, or 0 to let weft choose, not {threads}");
            PyValueError::new_err(message)
        })?;
        Ok(Self { dispatcher, ntasks, thread_per_block, stream, sharedmem })
    }
}

/// An argument that must be an integer.
fn integer(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    value.extract().map_err(|error: PyErr| {
        let message = format!("{name} must be an integer, got {value}");
        if error.is_instance_of::<PyTypeError>(value.py()) {
            PyTypeError::new_err(message)
        } else {
            PyValueError::new_err(message)
        }
    })
}

#[pymethods]
impl ForAll {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(&self, py: Python<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        if self.ntasks == 0 {
            return Ok(());
        }
        let dispatcher = self.dispatcher.bind(py);
        let args = dispatcher.get().complete(args, kwargs)?;
        let extended = around::extend(dispatcher, &args, self.stream.as_ref())?;
        let block = if self.thread_per_block == 0 && devices::interprets() {
            // Nothing is compiled, so the occupancy is unknown.
            USUAL_BLOCK
        } else if self.thread_per_block == 0 {
            let mut arguments = Arguments::default();
            let pushed = arguments.push_all(&extended.args);
            pushed.map_err(|(index, error)| dispatcher.get().explain(py, index, &error))?;
            let resolved = Dispatcher::resolve(dispatcher, &arguments)?;
            let overload = &resolved.overload;
            if self.sharedmem == 0 && overload.code_bytes().is_none() {
                // Every kernel can run with this block size: a GPU has 2^16 registers per block, and a thread has at
                // most 255. This avoids compiling a second variant only to query its occupancy.
                overload.kernel.max_threads.unwrap_or(USUAL_BLOCK).clamp(1, USUAL_BLOCK)
            } else {
                let loaded = overload.loaded(py)?;
                py.detach(|| loaded.good_block(self.sharedmem)).map_err(|error| errors::runtime(py, &error))?.max(1)
            }
        } else {
            self.thread_per_block
        };
        let blocks = self.ntasks.div_ceil(u64::from(block));
        let grid = u32::try_from(blocks).map_err(|_| {
            PyValueError::new_err(format!(
                "{} tasks in blocks of {block} need more blocks than a grid can have",
                self.ntasks
            ))
        })?;
        let (grid, block, shared_bytes) = ([grid, 1, 1], [block, 1, 1], self.sharedmem);
        let config = LaunchConfig { grid, block, shared_bytes, cluster: LaunchConfig::ALONE };
        let stream = self.stream.as_ref().map(|stream| stream.bind(py));
        around::run(&Dispatcher::launcher(dispatcher, config, stream, false)?, &extended)
    }

    /// The stream as given, or 0.
    #[getter]
    fn stream(&self, py: Python<'_>) -> Py<PyAny> {
        match &self.stream {
            Some(stream) => stream.clone_ref(py),
            None => PyInt::new(py, 0).into_any().unbind(),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let stream = self.stream.as_ref().map(|stream| stream.bind(py));
        if !matches!(stream_of(stream)?, StreamArgument::Default) {
            return Err(PyTypeError::new_err("a launch with a stream cannot be pickled, because streams cannot"));
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
