//! Streams and events: thin wrappers of the executor's, subclassed in Python.

use std::sync::{Arc, OnceLock};

use pyo3::{exceptions::PyTypeError, prelude::*};
use weft_runtime as runtime;

use crate::{
    devices::{self, recording},
    errors,
};

/// A queue of work on one device.
#[pyclass(subclass, frozen, module = "weft._weft", name = "StreamBase")]
#[derive(Debug)]
pub(crate) struct Stream(Queue);

/// Which queue it is.
#[derive(Debug)]
enum Queue {
    /// A default stream, by its handle, of the device that is current when it is used.
    Default(u64),
    /// A stream of weft's.
    Own(Arc<dyn runtime::Executor>, Arc<dyn runtime::Stream>),
    /// A foreign stream. The driver is queried about it on first use, not before: it ends the process for an invalid
    /// handle.
    Other(Arc<dyn runtime::Executor>, Arc<Foreign>),
}

/// A stream that someone else made.
#[derive(Debug)]
pub(crate) struct Foreign {
    handle: u64,
    stream: OnceLock<Arc<dyn runtime::Stream>>,
}

impl Foreign {
    fn new(handle: u64) -> Arc<Self> {
        Arc::new(Self { handle, stream: OnceLock::new() })
    }

    /// The stream, which at its first use the driver must know for one of this device's.
    fn on(&self, py: Python<'_>, executor: &dyn runtime::Executor) -> PyResult<Arc<dyn runtime::Stream>> {
        if let Some(stream) = self.stream.get() {
            return Ok(Arc::clone(stream));
        }
        let found = py.detach(|| executor.external_stream(self.handle)).map_err(|error| errors::runtime(py, &error))?;
        Ok(Arc::clone(self.stream.get_or_init(|| found)))
    }
}

/// The handle of the default stream of the calling thread. Those of the one that all threads share are less.
const PER_THREAD: u64 = 2;

/// The value of a `stream=` argument.
#[derive(Clone, Debug)]
pub(crate) enum StreamArgument {
    /// The default stream of the device that the work is for.
    Default,
    /// The calling thread's own.
    PerThread,
    /// A stream of one device.
    Stream(Arc<dyn runtime::Stream>),
    /// Another library's, of the device that the work is for.
    Foreign(Arc<Foreign>),
}

impl StreamArgument {
    /// The stream of a device; `None` is its default stream.
    pub(crate) fn on(
        &self,
        py: Python<'_>,
        executor: &dyn runtime::Executor,
    ) -> PyResult<Option<Arc<dyn runtime::Stream>>> {
        match self {
            Self::Default => Ok(None),
            Self::PerThread => {
                let stream = py.detach(|| executor.external_stream(PER_THREAD));
                stream.map(Some).map_err(|error| errors::runtime(py, &error))
            }
            Self::Stream(stream) => Ok(Some(Arc::clone(stream))),
            Self::Foreign(foreign) => foreign.on(py, executor).map(Some),
        }
    }

    /// The same for a launch, whose device is the current one: the device is looked up only where that matters.
    pub(crate) fn on_current(&self, py: Python<'_>) -> PyResult<Option<Arc<dyn runtime::Stream>>> {
        match self {
            Self::Default => Ok(None),
            Self::PerThread => self.on(py, &*devices::current(py)?),
            Self::Stream(stream) => Ok(Some(Arc::clone(stream))),
            Self::Foreign(foreign) => match foreign.stream.get() {
                Some(stream) => Ok(Some(Arc::clone(stream))),
                None => self.on(py, &*devices::current(py)?),
            },
        }
    }

    /// The stream of a handle that another library gave.
    fn of_handle(handle: u64) -> Self {
        match handle {
            0..PER_THREAD => Self::Default,
            PER_THREAD => Self::PerThread,
            handle => Self::Foreign(Foreign::new(handle)),
        }
    }
}

impl Stream {
    fn executor(&self, py: Python<'_>) -> PyResult<Arc<dyn runtime::Executor>> {
        match &self.0 {
            Queue::Default(_) => devices::current(py),
            Queue::Own(executor, _) | Queue::Other(executor, _) => Ok(Arc::clone(executor)),
        }
    }

    fn given(&self, py: Python<'_>) -> PyResult<StreamArgument> {
        Ok(match &self.0 {
            Queue::Default(PER_THREAD) => StreamArgument::PerThread,
            Queue::Default(_) => StreamArgument::Default,
            Queue::Own(_, stream) => StreamArgument::Stream(Arc::clone(stream)),
            Queue::Other(executor, foreign) => StreamArgument::Stream(foreign.on(py, &**executor)?),
        })
    }
}

#[pymethods]
impl Stream {
    /// A new stream of the current device, or the stream with a handle: a default stream, or one of another library.
    #[new]
    #[pyo3(signature = (*, handle=None))]
    fn new(py: Python<'_>, handle: Option<u64>) -> PyResult<Self> {
        match handle {
            Some(default @ 0..=PER_THREAD) => Ok(Self(Queue::Default(default))),
            Some(handle) => Ok(Self(Queue::Other(devices::current(py)?, Foreign::new(handle)))),
            None => {
                let executor = devices::current(py)?;
                let stream = py.detach(|| executor.new_stream()).map_err(|error| errors::runtime(py, &error))?;
                Ok(Self(Queue::Own(executor, stream)))
            }
        }
    }

    /// The driver's handle as an integer; 0 is the default stream.
    #[getter]
    fn address(&self) -> u64 {
        match &self.0 {
            Queue::Own(_, stream) => stream.handle(),
            Queue::Default(handle) => *handle,
            Queue::Other(_, foreign) => foreign.handle,
        }
    }

    /// Whether it is another library's: neither weft's nor one of the default streams.
    #[getter]
    fn external(&self) -> bool {
        matches!(self.0, Queue::Other(..))
    }

    /// Whether all work that is now in the stream is done.
    fn query(&self, py: Python<'_>) -> PyResult<bool> {
        let executor = self.executor(py)?;
        let stream = self.given(py)?.on(py, &*executor)?;
        errors::waited(py, py.detach(|| executor.query_stream(stream.as_deref())))
    }

    /// Whether it is another library's, and is being captured for a graph.
    fn is_capturing(&self, py: Python<'_>) -> PyResult<bool> {
        let executor = self.executor(py)?;
        let stream = self.given(py)?.on(py, &*executor)?;
        executor.is_captured(stream.as_deref()).map_err(|error| errors::runtime(py, &error))
    }

    /// Waits for all work that is now in the stream.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        recording::refuse("wait for a stream")?;
        let executor = self.executor(py)?;
        let stream = self.given(py)?.on(py, &*executor)?;
        errors::waited(py, py.detach(|| executor.synchronize_stream(stream.as_deref())))
    }
}

/// A point in a stream's work.
#[pyclass(subclass, frozen, module = "weft._weft", name = "EventBase")]
#[derive(Debug)]
pub(crate) struct Event {
    executor: Arc<dyn runtime::Executor>,
    event: Arc<dyn runtime::Event>,
}

#[pymethods]
impl Event {
    #[new]
    #[pyo3(signature = (timing=true))]
    fn new(py: Python<'_>, timing: bool) -> PyResult<Self> {
        let executor = devices::current(py)?;
        let event = py.detach(|| executor.new_event(timing)).map_err(|error| errors::runtime(py, &error))?;
        Ok(Self { executor, event })
    }

    #[doc = include_str!("docs/stream.record.txt")]
    #[pyo3(signature = (stream=None))]
    fn record(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (executor, stream) = self.queue(py, stream)?;
        if recording::record_event(&self.event, stream.as_deref()) {
            return Ok(());
        }
        py.detach(|| executor.record(&*self.event, stream.as_deref())).map_err(|error| errors::runtime(py, &error))
    }

    /// Whether the recorded work is done.
    fn query(&self, py: Python<'_>) -> PyResult<bool> {
        errors::waited(py, py.detach(|| self.executor.query_event(&*self.event)))
    }

    #[doc = include_str!("docs/stream.wait.txt")]
    #[pyo3(signature = (stream=None))]
    fn wait(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (executor, stream) = self.queue(py, stream)?;
        if recording::wait_event(&self.event, stream.as_deref())? {
            return Ok(());
        }
        py.detach(|| executor.wait_event(stream.as_deref(), &*self.event)).map_err(|error| errors::runtime(py, &error))
    }

    /// Waits for the recorded work.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        recording::refuse("wait for an event")?;
        errors::waited(py, py.detach(|| self.executor.synchronize_event(&*self.event)))
    }

    #[doc = include_str!("docs/stream.elapsed_time.txt")]
    fn elapsed_time(&self, py: Python<'_>, end: &Bound<'_, Self>) -> PyResult<f32> {
        let end = end.get();
        py.detach(|| self.executor.elapsed_ms(&*self.event, &*end.event)).map_err(|error| errors::runtime(py, &error))
    }
}

/// A device and a stream of it; `None` is its default stream.
type OnDevice = (Arc<dyn runtime::Executor>, Option<Arc<dyn runtime::Stream>>);

impl Event {
    /// A stream to queue in, and who does it: a default stream is the current device's, whatever the event's is.
    fn queue(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<OnDevice> {
        let given = stream_of(stream)?;
        let executor = match &given {
            StreamArgument::Default | StreamArgument::PerThread => devices::current(py)?,
            StreamArgument::Stream(_) | StreamArgument::Foreign(_) => Arc::clone(&self.executor),
        };
        let stream = given.on(py, &*executor)?;
        Ok((executor, stream))
    }
}

/// The stream that a `stream=` argument means: 0 and `None` are the default stream, another library's is taken as it is.
pub(crate) fn stream_of(stream: Option<&Bound<'_, PyAny>>) -> PyResult<StreamArgument> {
    let Some(stream) = stream else {
        return Ok(StreamArgument::Default);
    };
    if let Ok(own) = stream.cast::<Stream>() {
        return own.get().given(stream.py());
    }
    if stream.is_none() || stream.extract::<u64>().is_ok_and(|handle| handle == 0) {
        return Ok(StreamArgument::Default);
    }
    match foreign_handle(stream)? {
        Some(handle) => Ok(StreamArgument::of_handle(handle)),
        None => Err(not_a_stream(stream)),
    }
}

fn not_a_stream(stream: &Bound<'_, PyAny>) -> PyErr {
    let name = stream.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "a stream must be 0, a weft.cuda stream, or an object with `__cuda_stream__`, `cuda_stream` or `ptr`, not \
         {name}; create one with `cuda.stream()`, or from a handle with `cuda.external_stream(pointer)`"
    ))
}

/// The handle of a stream of another library's: by CUDA's stream protocol, else `cuda_stream` as in PyTorch or `ptr` as in
/// CuPy, both integers. `None` for what is none.
///
/// <https://nvidia.github.io/cuda-python/cuda-core/latest/interoperability.html#cuda-stream-protocol>
fn foreign_handle(stream: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let py = stream.py();
    if let Some(protocol) = stream.getattr_opt(intern!(py, "__cuda_stream__"))? {
        // The first versions of cuda.core had a property.
        let descriptor = if protocol.is_callable() { protocol.call0()? } else { protocol };
        let Ok((version, handle)) = descriptor.extract::<(u64, u64)>() else {
            let shown = descriptor.repr()?;
            return Err(PyTypeError::new_err(format!(
                "`__cuda_stream__` of a stream must return a version and a handle, both integers, not {shown}"
            )));
        };
        if version != 0 {
            return Err(PyTypeError::new_err(format!(
                "`__cuda_stream__` of a stream has version {version}, but weft supports only version 0"
            )));
        }
        return Ok(Some(handle));
    }
    // Memory has a `ptr`, too, but nothing to wait for.
    let is_queue = stream.hasattr(intern!(py, "synchronize"))?;
    for name in [intern!(py, "cuda_stream"), intern!(py, "ptr")] {
        if is_queue
            && let Some(handle) = stream.getattr_opt(name)?
            && let Ok(handle) = handle.extract()
        {
            return Ok(Some(handle));
        }
    }
    Ok(None)
}

/// The handle of a stream of another library's.
#[pyfunction]
pub(crate) fn stream_handle(stream: &Bound<'_, PyAny>) -> PyResult<u64> {
    foreign_handle(stream)?.ok_or_else(|| not_a_stream(stream))
}
