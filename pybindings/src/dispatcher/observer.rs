//! The observer of this thread's launches: a Python function that is called before each of them, for `cuda.tape`.

use std::{
    cell::RefCell,
    sync::atomic::{AtomicUsize, Ordering},
};

use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyTuple};

use super::{Dispatcher, launch::By};

thread_local! {
    static OBSERVER: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// The number of threads with an observer, so that a launch without one reads only this.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Sets the function that this thread calls before each launch, `observer(kernel, configuration, args)`, or none.
/// Returns the one before.
#[pyfunction]
pub(crate) fn observe_launches(observer: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    let is_set = usize::from(observer.is_some());
    let before = OBSERVER.with(|own| own.replace(observer));
    THREADS.fetch_add(is_set, Ordering::Relaxed);
    THREADS.fetch_sub(usize::from(before.is_some()), Ordering::Relaxed);
    before
}

fn observer(py: Python<'_>) -> Option<Py<PyAny>> {
    if THREADS.load(Ordering::Relaxed) == 0 {
        return None;
    }
    OBSERVER.with(|own| own.borrow().as_ref().map(|observer| observer.clone_ref(py)))
}

/// Calls the observer before a launch.
///
/// # Errors
///
/// Those of the observer, and `RuntimeError` for a launch that has no configuration of a kernel.
pub(super) fn note(dispatcher: &Bound<'_, Dispatcher>, args: &Bound<'_, PyTuple>, by: &By<'_, '_>) -> PyResult<()> {
    let py = dispatcher.py();
    let Some(observer) = observer(py) else { return Ok(()) };
    match by {
        By::Launcher(launcher) => observer.call1(py, (dispatcher, launcher, args)).map(drop),
        By::Types | By::Kernel(_) => Err(unseen("this launch")),
    }
}

/// Refuses an operation that the observer does not see.
///
/// # Errors
///
/// `RuntimeError` if there is an observer.
pub(crate) fn refuse(py: Python<'_>, what: &str) -> PyResult<()> {
    if observer(py).is_some() { Err(unseen(what)) } else { Ok(()) }
}

fn unseen(what: &str) -> PyErr {
    let message = format!(
        "a tape cannot record {what}: launch the kernel by `kernel[griddim, blockdim](*args)` in the block of \
         `cuda.tape()`, and everything else after `backward`"
    );
    PyRuntimeError::new_err(message)
}
