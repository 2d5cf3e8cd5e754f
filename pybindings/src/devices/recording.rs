//! The launches and copies that this thread records for a graph instead of executing them.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use weft_runtime::{Buffer, Edges, Event, Executor, Node, Step, Stream};

use crate::devices;

/// A step with the objects that it needs as long as the graph lives.
pub(crate) struct Recorded {
    pub(crate) step: Step,
    /// Its stream, as [`Stream::order`] numbers it.
    pub(crate) order: u64,
    /// The memory of ours that it uses.
    pub(crate) buffers: Vec<Arc<dyn Buffer>>,
    /// The owner of all of its memory, which also describes it.
    pub(crate) keep: Py<PyAny>,
}

/// All of a recording.
pub(crate) struct Recording {
    /// The number of the device that all steps are for.
    pub(crate) device: u32,
    pub(crate) executor: Arc<dyn Executor>,
    steps: Vec<Recorded>,
    /// The steps that each step comes after.
    after: Vec<Vec<usize>>,
    edges: Edges,
    /// Those that were recorded, whose addresses are their numbers: so long no other one has the same.
    events: Vec<Arc<dyn Event>>,
}

impl Recording {
    /// The steps with their predecessors, and the objects that they use.
    pub(crate) fn nodes(self) -> impl Iterator<Item = (Node, Vec<Arc<dyn Buffer>>, Py<PyAny>)> {
        let nodes = self.steps.into_iter().zip(self.after);
        nodes.map(|(Recorded { step, buffers, keep, .. }, after)| (Node { step, after }, buffers, keep))
    }
}

thread_local! {
    static RECORDS: Cell<bool> = const { Cell::new(false) };
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// Whether this thread records.
#[inline]
pub(crate) fn is_active() -> bool {
    RECORDS.get()
}

/// Records from now on what this thread does on the current device.
///
/// # Errors
///
/// `RuntimeError` if it records already.
pub(crate) fn begin(py: Python<'_>) -> PyResult<()> {
    if is_active() {
        return Err(PyRuntimeError::new_err("this thread already records a graph: recordings cannot be nested"));
    }
    RECORDING.set(Some(Recording {
        device: devices::current_id(),
        executor: devices::current(py)?,
        steps: Vec::new(),
        after: Vec::new(),
        edges: Edges::default(),
        events: Vec::new(),
    }));
    RECORDS.set(true);
    Ok(())
}

/// Ends the recording, and returns it.
pub(crate) fn end() -> Option<Recording> {
    RECORDS.set(false);
    RECORDING.take()
}

/// Records a step.
///
/// # Errors
///
/// `RuntimeError` where another device is current than at the beginning.
pub(crate) fn record(device: u32, recorded: Recorded) -> PyResult<()> {
    RECORDING.with_borrow_mut(|recording| match recording {
        Some(recording) if recording.device == device => {
            recording.after.push(recording.edges.step(recorded.order));
            recording.steps.push(recorded);
            Ok(())
        }
        Some(recording) => Err(PyRuntimeError::new_err(format!(
            "a graph of device {} cannot contain work of device {device}",
            recording.device
        ))),
        None => Err(PyRuntimeError::new_err("this thread does not record a graph")),
    })
}

/// Records an event in a stream: what waits for it in the recording comes after what the stream has now. `false` if this thread
/// records nothing.
pub(crate) fn record_event(event: &Arc<dyn Event>, stream: Option<&dyn Stream>) -> bool {
    RECORDING.with_borrow_mut(|recording| {
        let Some(recording) = recording else { return false };
        recording.edges.record(number(event), stream.map_or(0, Stream::order));
        recording.events.push(Arc::clone(event));
        true
    })
}

/// Has later steps of a stream come after an event; `false` if this thread records nothing.
///
/// # Errors
///
/// `RuntimeError` for an event that was not recorded in the recording.
pub(crate) fn wait_event(event: &Arc<dyn Event>, stream: Option<&dyn Stream>) -> PyResult<bool> {
    RECORDING.with_borrow_mut(|recording| {
        let Some(recording) = recording else { return Ok(false) };
        if recording.edges.wait(number(event), stream.map_or(0, Stream::order)) {
            return Ok(true);
        }
        Err(PyRuntimeError::new_err(
            "cannot wait for the event while a graph is recorded: the event was not recorded in the `with` block, and \
             a graph cannot wait for work outside it. Wait for the event before the block, or make the stream of each \
             launch of the graph wait for it",
        ))
    })
}

fn number(event: &Arc<dyn Event>) -> usize {
    Arc::as_ptr(event).addr()
}

/// Whether this thread records.
#[pyfunction]
pub(crate) fn is_recording() -> bool {
    is_active()
}

/// Refuses a call that cannot be recorded.
///
/// # Errors
///
/// `RuntimeError` if this thread records. `what` follows "cannot".
pub(crate) fn refuse(what: &str) -> PyResult<()> {
    refuse_but(what, "")
}

/// The same, with the calls that can be recorded.
///
/// # Errors
///
/// As [`refuse`].
pub(crate) fn refuse_but(what: &str, suggestion: &str) -> PyResult<()> {
    if !is_active() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(format!(
        "cannot {what} while a graph is recorded, of which nothing has run yet: do it before or after the `with` \
         block{suggestion}"
    )))
}
