//! `kernel[griddim, blockdim, stream, sharedmem, cluster]`: a kernel with its launch configuration.

use std::sync::{
    Arc, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    gc::{PyTraverseError, PyVisit},
    prelude::*,
    types::{PyDict, PyFloat, PyInt, PyList, PyTuple},
};
use weft_runtime::{LaunchConfig, Stream};

use super::{
    Dispatcher, around,
    launch::{self, By},
    prepared::Prepared,
};
use crate::{
    devices::{
        self,
        stream::{StreamArgument, stream_of},
    },
    once::Once,
};

/// A configured kernel. Calling it launches.
#[pyclass(frozen, weakref, module = "weft._weft", name = "_LaunchConfiguration")]
pub(crate) struct Launcher {
    pub(super) dispatcher: Py<Dispatcher>,
    config: LaunchConfig,
    stream: StreamArgument,
    /// The stream as given.
    stream_object: Option<Py<PyAny>>,
    /// The size of its grid was checked, or needs no check. Configuring alone chooses no device, so only the launch may
    /// know.
    launched: AtomicBool,
    /// The callbacks before each launch. Created on first access.
    before: Once<Py<PyList>>,
}

impl Launcher {
    pub(crate) fn new(
        dispatcher: Py<Dispatcher>,
        config: LaunchConfig,
        stream: Option<&Bound<'_, PyAny>>,
        advise: bool,
    ) -> PyResult<Self> {
        Ok(Self {
            dispatcher,
            config,
            stream: stream_of(stream)?,
            stream_object: stream.map(|stream| stream.clone().unbind()),
            launched: AtomicBool::new(!advise),
            before: Once::new(),
        })
    }

    /// Whether it is this configuration.
    pub(crate) fn is(&self, config: &LaunchConfig, stream: Option<&Bound<'_, PyAny>>) -> bool {
        self.config == *config
            && match (&self.stream_object, stream) {
                (None, None) => true,
                (Some(mine), Some(given)) => given.is(mine),
                _ => false,
            }
    }

    /// The callbacks before each launch, if there are any.
    pub(super) fn callbacks<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyList>> {
        self.before.get().map(|before| before.bind(py)).filter(|before| !before.is_empty())
    }

    pub(super) fn config(&self) -> &LaunchConfig {
        &self.config
    }

    /// The stream of a launch that is made now.
    pub(super) fn stream_here(&self, py: Python<'_>) -> PyResult<Option<Arc<dyn Stream>>> {
        self.stream.on_current(py)
    }

    /// Whether launches are to go by [`around::run`].
    fn has_company(&self, py: Python<'_>) -> bool {
        let dispatcher = self.dispatcher.bind(py).get();
        self.callbacks(py).is_some() || dispatcher.has_extensions(py) || dispatcher.is_sensitive()
    }
}

impl Dispatcher {
    fn cached_launchers(&self) -> MutexGuard<'_, Vec<Py<Launcher>>> {
        // Nothing that can panic or run Python happens under the lock.
        self.cached_launchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the same configuration whenever it is requested again.
    fn cache_launcher(&self, launcher: &Bound<'_, Launcher>) {
        self.cached_launchers().push(launcher.clone().unbind());
    }

    /// The kernel with a launch configuration: the same object again for the last one, and for those with callbacks.
    pub(super) fn launcher<'py>(
        slf: &Bound<'py, Self>,
        config: LaunchConfig,
        stream: Option<&Bound<'py, PyAny>>,
        advise: bool,
    ) -> PyResult<Bound<'py, Launcher>> {
        let (py, this) = (slf.py(), slf.get());
        let last = this.last_launcher.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|l| l.clone_ref(py));
        if let Some(last) = last
            && last.get().is(&config, stream)
        {
            return Ok(last.into_bound(py));
        }
        let kept = this.cached_launchers().iter().find(|kept| kept.get().is(&config, stream)).map(|l| l.clone_ref(py));
        let launcher = match kept {
            Some(kept) => kept.into_bound(py),
            None => {
                let known = advise && devices::is_chosen();
                if known {
                    this.warn_about_occupancy(py, &config)?;
                }
                Bound::new(py, Launcher::new(slf.clone().unbind(), config, stream, advise && !known)?)?
            }
        };
        let mut last = this.last_launcher.lock().unwrap_or_else(PoisonError::into_inner);
        let old = last.replace(launcher.clone().unbind());
        // The old one may be the last reference: its end can run Python, which must find the lock free.
        drop(last);
        drop(old);
        Ok(launcher)
    }
}

#[pymethods]
impl Launcher {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let dispatcher = this.dispatcher.bind(py);
        if !this.launched.load(Ordering::Relaxed) {
            this.launched.store(true, Ordering::Relaxed);
            dispatcher.get().warn_about_occupancy(py, &this.config)?;
        }
        if this.has_company(py) {
            let args = dispatcher.get().complete(args, kwargs)?;
            return around::run(slf, &around::extend(dispatcher, &args, this.stream_object.as_ref())?);
        }
        let stream = this.stream_here(py)?;
        launch::launch(dispatcher, &this.config, stream.as_deref(), args, kwargs, &By::Launcher(slf))
    }

    /// The callbacks before each launch, ``callback(kernel, configuration)``: a list that can be changed.
    #[getter]
    fn pre_launch_callbacks<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyList> {
        let (py, this) = (slf.py(), slf.get());
        if this.before.get().is_none() {
            this.dispatcher.get().cache_launcher(slf);
        }
        this.before.object(py, || PyList::empty(py).unbind()).clone()
    }

    /// The arguments of the launch that is under way in this thread, for callbacks, as they were given, and for what is run
    /// while a kernel is compiled, as it gets them; None if there is none.
    #[getter]
    fn args(slf: &Bound<'_, Self>) -> Option<Py<PyTuple>> {
        around::args_of(slf)
    }

    #[doc = include_str!("docs/launcher.prepare.txt")]
    #[pyo3(signature = (*args, **kwargs))]
    fn prepare<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Prepared>> {
        let dispatcher = self.dispatcher.bind(py);
        let args = dispatcher.get().complete(args, kwargs)?;
        let extended = around::extend(dispatcher, &args, self.stream_object.as_ref())?;
        extended.refuse_work_after()?;
        Bound::new(py, Prepared::new(dispatcher, self.config, self.stream.clone(), &extended.args)?)
    }

    #[doc = include_str!("docs/launcher.compare.txt")]
    #[pyo3(signature = (*args, **kwargs))]
    fn compare<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let kwargs = kwargs.cloned().unwrap_or_else(|| PyDict::new(py));
        py.import("weft._compare")?.call_method1("compare", (slf, args, kwargs))
    }

    #[doc = include_str!("docs/launcher.profile.txt")]
    #[pyo3(signature = (*args, **kwargs))]
    fn profile<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let dispatcher = this.dispatcher.bind(py);
        let args = dispatcher.get().complete(args, kwargs)?;
        let extended = around::extend(dispatcher, &args, this.stream_object.as_ref())?;
        py.import("weft._profiler")?.call_method1("profile", (slf, &extended.args))
    }

    /// The jitted function.
    #[getter]
    fn dispatcher(&self, py: Python<'_>) -> Py<Dispatcher> {
        self.dispatcher.clone_ref(py)
    }

    /// Blocks in x, y and z.
    #[getter]
    fn griddim(&self) -> (u32, u32, u32) {
        self.config.grid.into()
    }

    /// Threads in x, y and z.
    #[getter]
    fn blockdim(&self) -> (u32, u32, u32) {
        self.config.block.into()
    }

    /// The stream as given, or 0.
    #[getter]
    fn stream(&self, py: Python<'_>) -> Py<PyAny> {
        match &self.stream_object {
            Some(stream) => stream.clone_ref(py),
            None => PyInt::new(py, 0).into_any().unbind(),
        }
    }

    /// Dynamic shared memory of a block in bytes.
    #[getter]
    fn sharedmem(&self) -> u32 {
        self.config.shared_bytes
    }

    /// Blocks of a cluster in x, y and z; None without clusters.
    #[getter]
    fn cluster(&self) -> Option<(u32, u32, u32)> {
        self.config.has_clusters().then(|| self.config.cluster.into())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.dispatcher)?;
        self.before.get().map_or(Ok(()), |before| visit.call(before))?;
        self.stream_object.as_ref().map_or(Ok(()), |stream| visit.call(stream))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        if self.callbacks(py).is_some() {
            let error = py.import("pickle")?.getattr("PicklingError")?;
            return Err(PyErr::from_value(
                error.call1(("Cannot pickle configured launches with pre-launch callbacks",))?,
            ));
        }
        if !matches!(self.stream, StreamArgument::Default) {
            return Err(PyTypeError::new_err(
                "a configured kernel with a stream cannot be pickled, because streams cannot",
            ));
        }
        let rebuild = py.import("weft._pickle")?.getattr("rebuild_launcher")?;
        let dispatcher = self.dispatcher(py);
        let (grid, block, shared_bytes) = (self.griddim(), self.blockdim(), self.config.shared_bytes);
        Ok((rebuild, (dispatcher, grid, block, shared_bytes, self.cluster()).into_pyobject(py)?))
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        Err(crate::errors::no_attribute(slf, name))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let kernel = self.dispatcher.bind(py).repr()?;
        Ok(format!("<{kernel} with griddim={:?}, blockdim={:?}>", self.griddim(), self.blockdim()))
    }
}

/// Checks grid, block, shared memory and cluster; those that Numba has are checked as in Numba.
pub(crate) fn launch_config(
    griddim: &Bound<'_, PyAny>,
    blockdim: &Bound<'_, PyAny>,
    sharedmem: Option<&Bound<'_, PyAny>>,
    cluster: Option<&Bound<'_, PyAny>>,
) -> PyResult<LaunchConfig> {
    let shared_bytes = match sharedmem {
        None => 0,
        Some(bytes) => bytes.extract().map_err(|error: PyErr| {
            let message = format!("sharedmem must be an integer number of bytes from 0 to 2**32 - 1, got {bytes}");
            if error.is_instance_of::<PyTypeError>(bytes.py()) {
                PyTypeError::new_err(message)
            } else {
                PyValueError::new_err(message)
            }
        })?,
    };
    let cluster = match cluster {
        Some(cluster) if !cluster.is_none() => {
            let blocks = dimensions(cluster, "cluster")?;
            if blocks.contains(&0) {
                let message = format!("cluster must have at least 1 block in each direction, got {blocks:?}");
                return Err(PyValueError::new_err(message));
            }
            blocks
        }
        Some(_) | None => LaunchConfig::ALONE,
    };
    let (grid, block) = (dimensions(griddim, "griddim")?, dimensions(blockdim, "blockdim")?);
    Ok(LaunchConfig { grid, block, shared_bytes, cluster })
}

/// The extents of a grid, a block or a cluster: an integer, or up to three.
///
/// # Errors
///
/// `TypeError` and `ValueError`, which name the item.
pub(super) fn dimensions(value: &Bound<'_, PyAny>, name: &str) -> PyResult<[u32; 3]> {
    let mut dims = [1; 3];
    // A failure is examined a second time, for the message: creating an exception costs more than a launch.
    let good = if let Ok(tuple) = value.cast::<PyTuple>() {
        (1..=3).contains(&tuple.len())
            && dims.iter_mut().zip(tuple.iter_borrowed()).all(|(dim, item)| item.extract().map(|x| *dim = x).is_ok())
    } else if value.is_instance_of::<PyList>() {
        return dimensions(value.cast::<PyList>()?.to_tuple().as_any(), name);
    } else {
        value.extract().map(|x| dims = [x, 1, 1]).is_ok()
    };
    if good { Ok(dims) } else { Err(wrong_dimensions(value, name)) }
}

/// Numba's message for an invalid grid or block.
fn wrong_dimensions(value: &Bound<'_, PyAny>, name: &str) -> PyErr {
    let items: Vec<Bound<'_, PyAny>> =
        value.cast::<PyTuple>().map_or_else(|_| vec![value.clone()], |tuple| tuple.iter().collect());
    let shown = PyList::new(value.py(), &items).map_or_else(|_| String::new(), |list| list.to_string());
    if !(1..=3).contains(&items.len()) {
        return PyValueError::new_err(format!("{name} must be a sequence of 1, 2 or 3 integers, got {shown}"));
    }
    // An array has `__index__` for the case that it is one integer.
    let is_integer = |item: &Bound<'_, PyAny>| item.call_method0("__index__").is_ok();
    if !items.iter().all(is_integer) {
        let of_floats = items.iter().any(PyAnyMethods::is_instance_of::<PyFloat>);
        let suggestion = if of_floats { ": use `//` to divide integers" } else { "" };
        return PyTypeError::new_err(format!("{name} must be a sequence of integers, got {shown}{suggestion}"));
    }
    PyValueError::new_err(format!("{name} must have integers from 0 to 2**32 - 1, got {shown}"))
}
