//! What this thread records for a graph, in place of doing it: launches and copies.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use weft_runtime::{Buffer, Executor, Step};

use crate::devices;

/// A step with what it needs as long as the graph lives.
pub(crate) struct Recorded {
    pub(crate) step: Step,
    /// The memory of ours that it uses.
    pub(crate) buffers: Vec<Arc<dyn Buffer>>,
    /// What keeps all of its memory, and says what it is.
    pub(crate) keep: Py<PyAny>,
}

/// All of a recording.
pub(crate) struct Recording {
    /// The number of the device that all steps are for.
    pub(crate) device: u32,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) steps: Vec<Recorded>,
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
        return Err(PyRuntimeError::new_err(
            "this thread records a graph already: graphs are not recorded in each other",
        ));
    }
    let recording = Recording { device: devices::current_id(), executor: devices::current(py)?, steps: Vec::new() };
    RECORDING.set(Some(recording));
    RECORDS.set(true);
    Ok(())
}

/// Records no longer, and gives what was recorded.
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
            recording.steps.push(recorded);
            Ok(())
        }
        Some(recording) => Err(PyRuntimeError::new_err(format!(
            "a graph of device {} cannot have work of device {device}",
            recording.device
        ))),
        None => Err(PyRuntimeError::new_err("this thread records no graph")),
    })
}

/// Whether this thread records.
#[pyfunction]
pub(crate) fn is_recording() -> bool {
    is_active()
}

/// Refuses what cannot be recorded.
///
/// # Errors
///
/// `RuntimeError` if this thread records. `what` follows "cannot".
pub(crate) fn refuse(what: &str) -> PyResult<()> {
    refuse_but(what, "")
}

/// The same, and says what can be.
///
/// # Errors
///
/// As [`refuse`].
pub(crate) fn refuse_but(what: &str, way_out: &str) -> PyResult<()> {
    if !is_active() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(format!(
        "cannot {what} while a graph is recorded, of which nothing has run yet: do it before or behind the `with` \
         block{way_out}"
    )))
}
