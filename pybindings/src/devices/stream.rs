//! Streams and events: thin wrappers of the executor's, subclassed in Python.

use std::sync::{Arc, OnceLock};

use pyo3::{exceptions::PyTypeError, prelude::*};
use weft_runtime as runtime;

use crate::{devices, errors};

/// A queue of work on one device.
#[pyclass(subclass, frozen, module = "weft._weft", name = "StreamBase")]
#[derive(Debug)]
pub(crate) struct Stream(Queue);

/// Which queue it is.
#[derive(Debug)]
enum Queue {
    /// The default stream of the device that is current when it is used.
    Default,
    /// A stream of weft's.
    Own(Arc<dyn runtime::Executor>, Arc<dyn runtime::Stream>),
    /// Someone else's. The driver is asked about it when it is first used, not before: it ends the process for a
    /// handle that no stream has.
    Other { executor: Arc<dyn runtime::Executor>, handle: u64, stream: OnceLock<Arc<dyn runtime::Stream>> },
}

impl Stream {
    fn executor(&self, py: Python<'_>) -> PyResult<Arc<dyn runtime::Executor>> {
        match &self.0 {
            Queue::Default => devices::current(py),
            Queue::Own(executor, _) | Queue::Other { executor, .. } => Ok(Arc::clone(executor)),
        }
    }

    /// The executor's stream; `None` is the default stream.
    fn stream(&self, py: Python<'_>) -> PyResult<Option<Arc<dyn runtime::Stream>>> {
        match &self.0 {
            Queue::Default => Ok(None),
            Queue::Own(_, stream) => Ok(Some(Arc::clone(stream))),
            Queue::Other { executor, handle, stream } => {
                if let Some(stream) = stream.get() {
                    return Ok(Some(Arc::clone(stream)));
                }
                let found =
                    py.detach(|| executor.external_stream(*handle)).map_err(|error| errors::runtime(py, &error))?;
                Ok(Some(Arc::clone(stream.get_or_init(|| found))))
            }
        }
    }
}

#[pymethods]
impl Stream {
    /// A new stream of the current device, the default stream, or someone else's stream by its handle.
    #[new]
    #[pyo3(signature = (*, default=false, handle=None))]
    fn new(py: Python<'_>, default: bool, handle: Option<u64>) -> PyResult<Self> {
        if default {
            return Ok(Self(Queue::Default));
        }
        let executor = devices::current(py)?;
        if let Some(handle) = handle {
            return Ok(Self(Queue::Other { executor, handle, stream: OnceLock::new() }));
        }
        let stream = py.detach(|| executor.new_stream()).map_err(|error| errors::runtime(py, &error))?;
        Ok(Self(Queue::Own(executor, stream)))
    }

    /// The driver's handle as an integer; 0 is the default stream.
    #[getter]
    fn address(&self) -> u64 {
        match &self.0 {
            Queue::Default => 0,
            Queue::Own(_, stream) => stream.handle(),
            Queue::Other { handle, .. } => *handle,
        }
    }

    /// Whether it is another library's: neither weft's nor one of the default streams, whose handles are 0 to 2.
    #[getter]
    fn external(&self) -> bool {
        matches!(self.0, Queue::Other { handle, .. } if handle > 2)
    }

    /// Whether everything queued so far is done.
    fn query(&self, py: Python<'_>) -> PyResult<bool> {
        let (executor, stream) = (self.executor(py)?, self.stream(py)?);
        py.detach(|| executor.query_stream(stream.as_deref())).map_err(|error| errors::runtime(py, &error))
    }

    /// Waits for everything queued so far.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        let (executor, stream) = (self.executor(py)?, self.stream(py)?);
        py.detach(|| executor.synchronize_stream(stream.as_deref())).map_err(|error| errors::runtime(py, &error))
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
    fn new(py: Python<'_>) -> PyResult<Self> {
        let executor = devices::current(py)?;
        let event = py.detach(|| executor.new_event()).map_err(|error| errors::runtime(py, &error))?;
        Ok(Self { executor, event })
    }

    /// Marks the work queued so far.
    #[pyo3(signature = (stream=None))]
    fn record(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let stream = stream_of(stream)?;
        py.detach(|| self.executor.record(&*self.event, stream.as_deref())).map_err(|error| errors::runtime(py, &error))
    }

    /// Whether the marked work is done.
    fn query(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.executor.query_event(&*self.event)).map_err(|error| errors::runtime(py, &error))
    }

    /// Makes a stream's later work wait for the marked work.
    #[pyo3(signature = (stream=None))]
    fn wait(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let stream = stream_of(stream)?;
        py.detach(|| self.executor.wait_event(stream.as_deref(), &*self.event))
            .map_err(|error| errors::runtime(py, &error))
    }

    /// Waits for the marked work.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.executor.synchronize_event(&*self.event)).map_err(|error| errors::runtime(py, &error))
    }

    /// Milliseconds from this event to a later one.
    fn elapsed_time(&self, py: Python<'_>, end: &Bound<'_, Self>) -> PyResult<f32> {
        let end = end.get();
        py.detach(|| self.executor.elapsed_ms(&*self.event, &*end.event)).map_err(|error| errors::runtime(py, &error))
    }
}

/// The stream that a `stream=` argument means: 0 and `None` are the default stream.
pub(crate) fn stream_of(stream: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Arc<dyn runtime::Stream>>> {
    let Some(stream) = stream else {
        return Ok(None);
    };
    if let Ok(stream) = stream.cast::<Stream>() {
        return stream.get().stream(stream.py());
    }
    if stream.is_none() || stream.extract::<u64>().is_ok_and(|handle| handle == 0) {
        return Ok(None);
    }
    Err(PyTypeError::new_err(format!("a stream must be 0 or a weft.cuda stream, not {}", stream.get_type().name()?)))
}
