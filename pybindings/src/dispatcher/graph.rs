//! Graphs of launches: `cuda.graph()`.

use std::{
    cell::RefCell,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pyo3::{
    exceptions::{PyIndexError, PyRuntimeError, PyTypeError, PyValueError},
    gc::{PyTraverseError, PyVisit},
    prelude::*,
    types::PyTuple,
};
use weft_runtime::{self as runtime, Buffer, Executor, LaunchConfig, Step};

use super::{Dispatcher, around, launch, observer, overload::Resolved, staging::check_elements, variants::Kind};
use crate::{
    args::Arguments,
    devices::{
        self,
        recording::{self, Recorded},
        stream::stream_of,
    },
    errors,
};

/// A launch that was recorded.
#[pyclass(frozen, module = "weft._weft", name = "RecordedLaunch")]
pub(crate) struct RecordedLaunch {
    dispatcher: Py<Dispatcher>,
    resolved: Arc<Resolved>,
    config: LaunchConfig,
    /// They keep the memory.
    args: Mutex<Py<PyTuple>>,
}

/// Records a launch with filled slots, in the stream with this order.
///
/// # Errors
///
/// `TypeError` for an argument in host memory; the errors of the recording.
pub(super) fn record(
    dispatcher: &Bound<'_, Dispatcher>,
    resolved: &Arc<Resolved>,
    config: &LaunchConfig,
    arguments: &Arguments,
    args: &Bound<'_, PyTuple>,
    slots: &[u64],
    order: u64,
) -> PyResult<()> {
    let py = dispatcher.py();
    refuse_hosts(dispatcher, arguments)?;
    let overload = &resolved.overload;
    let loaded = overload.loaded(py)?;
    loaded.check(config, slots.len()).map_err(|error| errors::runtime(py, &error))?;
    let launch = RecordedLaunch {
        dispatcher: dispatcher.clone().unbind(),
        resolved: Arc::clone(resolved),
        config: *config,
        args: Mutex::new(args.clone().unbind()),
    };
    let step = Step::Launch { kernel: Arc::clone(loaded), config: *config, cells: slots.to_vec() };
    let keep = Bound::new(py, launch)?.into_any().unbind();
    recording::record(overload.device, Recorded { step, order, buffers: arguments.lent.clone(), keep })
}

/// Rejects host arrays, because a replay does not copy them.
pub(super) fn refuse_hosts(dispatcher: &Bound<'_, Dispatcher>, arguments: &Arguments) -> PyResult<()> {
    let of_host = arguments.hosts.iter().map(|host| host.param);
    let Some(param) = of_host.chain(arguments.tensors.iter().map(|tensor| tensor.place.param)).min() else {
        return Ok(());
    };
    let message = "a recorded or prepared launch cannot take a host array, which is copied at each launch: pass a \
                   device array (`cuda.to_device`) or a mapped array";
    Err(dispatcher.get().explain(dispatcher.py(), param, &PyTypeError::new_err(message)))
}

#[pymethods]
impl RecordedLaunch {
    /// The kernel.
    #[getter]
    fn kernel(&self, py: Python<'_>) -> Py<Dispatcher> {
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

    /// The arguments of later replays.
    #[getter]
    fn args(&self, py: Python<'_>) -> Py<PyTuple> {
        self.args.lock().unwrap_or_else(PoisonError::into_inner).clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let kernel = self.dispatcher.bind(py).repr()?;
        Ok(format!("<launch of {kernel} with griddim={:?}, blockdim={:?}>", self.griddim(), self.blockdim()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.dispatcher)?;
        visit.call(&*self.args.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A recorded graph. A launch holds a reference to it.
struct RecordedGraph {
    executor: Arc<dyn Executor>,
    /// Dropped before the memory that its steps use: where they use host memory, dropping waits for them.
    graph: Box<dyn runtime::Graph>,
    steps: Vec<StepResources>,
}

/// The resources that a step uses.
struct StepResources {
    /// Memory of ours.
    buffers: Mutex<Vec<Arc<dyn Buffer>>>,
    /// The owner of all memory: a [`RecordedLaunch`], or the arrays of a copy.
    keep: Py<PyAny>,
}

impl StepResources {
    fn buffers(&self) -> MutexGuard<'_, Vec<Arc<dyn Buffer>>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Launches and copies that are recorded once and replayed any number of times.
#[pyclass(subclass, frozen, weakref, module = "weft._weft", name = "GraphBase")]
pub(crate) struct Graph(Mutex<Option<Arc<RecordedGraph>>>);

impl Graph {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<RecordedGraph>>> {
        // Nothing that can panic or run Python happens under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self) -> PyResult<Arc<RecordedGraph>> {
        self.lock().clone().ok_or_else(empty)
    }
}

impl RecordedGraph {
    /// The recorded launch with this number, its step, and the memory that it uses.
    fn recorded<'py>(
        &self,
        py: Python<'py>,
        index: i64,
    ) -> PyResult<(usize, &StepResources, &Bound<'py, RecordedLaunch>)> {
        let steps = self.steps.iter().enumerate();
        let mut launches =
            steps.filter_map(|(step, kept)| Some((step, kept, kept.keep.bind(py).cast::<RecordedLaunch>().ok()?)));
        let count = launches.clone().count();
        usize::try_from(index).ok().and_then(|index| launches.nth(index)).ok_or_else(|| {
            PyIndexError::new_err(format!("the graph has {count} launches: the index {index} is out of range"))
        })
    }
}

fn empty() -> PyErr {
    PyRuntimeError::new_err("the graph is empty: first record launches in its `with` block")
}

#[pymethods]
impl Graph {
    #[new]
    fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Starts recording the launches and copies of this thread on the current device.
    #[staticmethod]
    fn _begin(py: Python<'_>) -> PyResult<()> {
        recording::begin(py)
    }

    /// Ends the recording. The graph then consists of the recorded work, unless it is discarded.
    fn _end(&self, py: Python<'_>, discard: bool) -> PyResult<()> {
        let Some(recording) = recording::end() else {
            return Err(PyRuntimeError::new_err("this thread does not record a graph"));
        };
        if discard {
            return Ok(());
        }
        let executor = Arc::clone(&recording.executor);
        let nodes =
            recording.nodes().map(|(node, buffers, keep)| (node, StepResources { buffers: Mutex::new(buffers), keep }));
        let (nodes, kept): (Vec<_>, Vec<_>) = nodes.unzip();
        let graph = py.detach(|| Arc::clone(&executor).graph(nodes)).map_err(|error| errors::runtime(py, &error))?;
        let old = self.lock().replace(Arc::new(RecordedGraph { executor, graph, steps: kept }));
        drop(old);
        Ok(())
    }

    #[doc = include_str!("docs/graph.launch.txt")]
    #[pyo3(signature = (stream=None))]
    fn launch(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        recording::refuse("launch a graph")?;
        observer::refuse(py, "the launch of a graph")?;
        let made = self.made()?;
        let RecordedGraph { executor, graph, steps } = &*made;
        let stream = stream_of(stream)?.on(py, &**executor)?;
        let order = stream.as_ref().map_or(0, |stream| stream.order());
        let is_other = |buffer: &Arc<dyn Buffer>| buffer.order().is_some_and(|own| own != order);
        let mut buffers = Vec::new();
        for kept in steps {
            buffers.extend(kept.buffers().iter().filter(|buffer| is_other(buffer)).cloned());
        }
        let (launched, stopped) = py.detach(|| {
            let stopped = RefCell::new(None);
            let poll = || errors::handle_signals(&stopped);
            let launched = graph.launch(stream.as_deref(), Some(&poll));
            // Also if a step fails, because the steps before it were queued.
            if !buffers.is_empty() {
                executor.note_use(&buffers, stream.as_deref());
            }
            (launched, errors::raised_meanwhile(stopped))
        });
        if let Some(raised) = stopped {
            return Err(raised);
        }
        errors::launched(py, launched, || devices::findings(py))
    }

    #[doc = include_str!("docs/graph.set_args.txt")]
    #[pyo3(signature = (launch, *args))]
    fn set_args(&self, py: Python<'_>, launch: i64, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        let made = self.made()?;
        let (step, kept, recorded) = made.recorded(py, launch)?;
        let recorded = recorded.get();
        let dispatcher = recorded.dispatcher.bind(py);
        let args = dispatcher.get().complete(args, None)?;
        let extended = around::extend(dispatcher, &args, None)?;
        extended.refuse_work_after()?;
        let args = extended.args;
        let mut arguments = Arguments::in_no_stream();
        arguments.push_all(&args).map_err(|(index, error)| dispatcher.get().explain(py, index, &error))?;
        refuse_hosts(dispatcher, &arguments)?;
        let overload = &recorded.resolved.overload;
        // The variant that was recorded, even if launches have another one now.
        let factors = overload.jit.code.coarsen;
        let resolved = Dispatcher::resolve(dispatcher, &arguments)?.coarsened_by(dispatcher, factors)?;
        let assumptions = overload.jit.code.assumptions;
        let is_variant = resolved.overload.jit.code.assumptions != assumptions;
        let resolved = if is_variant { resolved.variant(dispatcher, Kind::Assuming(assumptions))? } else { resolved };
        if !Arc::ptr_eq(&resolved.overload, overload) {
            let shown =
                |types: &[weft_artifact::ArgType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(PyTypeError::new_err(format!(
                "the launch was recorded for arguments of types ({}), and cannot take ({})",
                shown(&overload.args),
                shown(&resolved.overload.args)
            )));
        }
        check_elements(dispatcher.get(), &resolved, &arguments)?;
        arguments.lend(&overload.lent);
        let mut slots = Vec::new();
        launch::settle_cells(&resolved, &mut arguments);
        if !resolved.takes(&recorded.config, &arguments.cells) {
            return Err(PyValueError::new_err(format!(
                "the launch was recorded {}: record the graph again with these arguments",
                resolved.misfit(&recorded.config, &arguments.cells)
            )));
        }
        launch::make_slots(&resolved, &arguments, &mut slots);
        let graph = &made.graph;
        py.detach(|| graph.set_cells(step, &slots)).map_err(|error| errors::runtime(py, &error))?;
        *kept.buffers() = std::mem::take(&mut arguments.lent);
        let old = std::mem::replace(
            &mut *recorded.args.lock().unwrap_or_else(PoisonError::into_inner),
            args.clone().unbind(),
        );
        drop(old);
        Ok(())
    }

    /// The launches that were recorded, in their order.
    #[getter]
    fn launches<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let made = self.lock().clone();
        let steps = made.as_ref().map_or(&[][..], |made| &made.steps);
        PyTuple::new(
            py,
            steps.iter().filter_map(|kept| kept.keep.bind(py).cast::<RecordedLaunch>().ok()).collect::<Vec<_>>(),
        )
    }

    fn __len__(&self) -> usize {
        self.lock().as_ref().map_or(0, |made| made.steps.len())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(made) = &*self.lock() {
            made.steps.iter().try_for_each(|kept| visit.call(&kept.keep))?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let old = self.lock().take();
        drop(old);
    }
}
