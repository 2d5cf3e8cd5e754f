//! Hooks around a launch: extensions that prepare its arguments, callbacks before it, and the configuration that code
//! running meanwhile can query.
//!
//! A launch of a kernel without hooks comes here only when the kernel is compiled for it.

use std::{
    cell::Cell,
    sync::{Arc, atomic::Ordering},
};

use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError},
    prelude::*,
    types::{PyList, PyTuple},
};

use super::{
    Dispatcher,
    launch::{self, By},
    launcher::Launcher,
    overload::{CompiledKernel, Overload},
};
use crate::{args::Arguments, devices::recording};

/// A launch in progress in this thread.
struct Current {
    launcher: Py<Launcher>,
    args: Py<PyTuple>,
    /// Whether a kernel is being compiled for it.
    compiles: bool,
}

thread_local! {
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
    /// Whether this thread has queried the configuration.
    static QUERIED: Cell<bool> = const { Cell::new(false) };
}

/// Makes a launch the current one until this is dropped, which restores the previous one.
pub(super) struct UnderWay(Option<Current>);

impl UnderWay {
    /// Makes this launch the current one.
    pub(super) fn begin(launcher: &Bound<'_, Launcher>, args: &Bound<'_, PyTuple>, compiles: bool) -> Self {
        let (launcher, args) = (launcher.clone().unbind(), args.clone().unbind());
        Self(CURRENT.replace(Some(Current { launcher, args, compiles })))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let ended = CURRENT.replace(self.0.take());
        drop(ended);
    }
}

/// Notifies `weft.cuda.launchconfig` that a kernel is about to be compiled for a launch.
///
/// # Errors
///
/// None but Python's own.
pub(super) fn note(launcher: &Bound<'_, Launcher>) -> PyResult<()> {
    let py = launcher.py();
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    // A program that queries it has imported it.
    match modules.get_item(intern!(py, "weft.cuda.launchconfig")) {
        Ok(module) => module.call_method1("_note", (launcher,)).map(drop),
        Err(_) => Ok(()),
    }
}

/// Queries the launch in progress in this thread.
fn query_current<T>(query: impl FnOnce(&Current) -> Option<T>) -> Option<T> {
    let current = CURRENT.take();
    let answer = current.as_ref().and_then(query);
    CURRENT.set(current);
    answer
}

/// The configuration of the launch for which this thread is compiling a kernel, if any.
#[pyfunction]
pub(crate) fn current_launch_config(py: Python<'_>) -> Option<Py<Launcher>> {
    QUERIED.set(true);
    query_current(|current| current.compiles.then(|| current.launcher.clone_ref(py)))
}

/// Whether this thread has queried that configuration since the last call.
#[pyfunction]
pub(crate) fn launch_config_was_read() -> bool {
    QUERIED.take()
}

/// The arguments of the launch in progress in this thread with this configuration.
pub(super) fn args_of(launcher: &Bound<'_, Launcher>) -> Option<Py<PyTuple>> {
    let py = launcher.py();
    query_current(|current| current.launcher.is(launcher).then(|| current.args.clone_ref(py)))
}

/// A launch's arguments as its kernel's extensions have prepared them.
pub(super) struct Extended<'py> {
    /// The arguments as they were given.
    given: Bound<'py, PyTuple>,
    /// One for each parameter.
    pub(super) args: Bound<'py, PyTuple>,
    /// The callbacks after the launch.
    after: Option<Bound<'py, PyList>>,
}

impl Extended<'_> {
    /// Calls the callbacks after the launch.
    fn finish(&self) -> PyResult<()> {
        self.after.iter().flat_map(PyListMethods::to_tuple).try_for_each(|call| call.call0().map(drop))
    }

    /// Rejects callbacks after a launch that runs later or several times.
    ///
    /// # Errors
    ///
    /// `TypeError`.
    pub(super) fn refuse_work_after(&self) -> PyResult<()> {
        if self.after.as_ref().is_none_or(PyListMethods::is_empty) {
            return Ok(());
        }
        Err(PyTypeError::new_err(
            "an extension of the kernel appended to `retr`, which is only possible for a launch that runs at once: \
             pass the prepared argument instead",
        ))
    }
}

/// Calls a kernel's extensions to prepare a launch's arguments, one for each parameter.
///
/// # Errors
///
/// An extension's exception; `TypeError` for one that does not return a pair.
pub(super) fn extend<'py>(
    dispatcher: &Bound<'py, Dispatcher>,
    args: &Bound<'py, PyTuple>,
    stream: Option<&Py<PyAny>>,
) -> PyResult<Extended<'py>> {
    let py = dispatcher.py();
    if !dispatcher.get().has_extensions(py) {
        return Ok(Extended { given: args.clone(), args: args.clone(), after: None });
    }
    dispatcher.get().check_count(args.len())?;
    let extensions = py.import("weft.cuda._code.extensions")?;
    let prepared = extensions.call_method1("prepare", (dispatcher, args, stream))?;
    let (prepared, after) = prepared.extract()?;
    Ok(Extended { given: args.clone(), args: prepared, after: Some(after) })
}

/// Runs a launch with its hooks. Its arguments are prepared.
///
/// # Errors
///
/// As those of a launch, and the exceptions of callbacks.
pub(super) fn run(launcher: &Bound<'_, Launcher>, extended: &Extended<'_>) -> PyResult<()> {
    let (py, this) = (launcher.py(), launcher.get());
    if recording::is_active() {
        extended.refuse_work_after()?;
    }
    let dispatcher = select(launcher)?;
    let under_way = UnderWay::begin(launcher, &extended.given, false);
    if let Some(callbacks) = this.callbacks(py) {
        let mut arguments = Arguments::default();
        let pushed = arguments.push_all(&extended.args);
        pushed.map_err(|(index, error)| dispatcher.get().explain(py, index, &error))?;
        let resolved = Dispatcher::resolve_for(&dispatcher, &arguments, Some((launcher, &extended.args)))?;
        let kernel = Bound::new(py, CompiledKernel::new(&dispatcher, &resolved.overload))?;
        for callback in callbacks.to_tuple() {
            callback.call1((&kernel, launcher))?;
        }
    }
    let stream = this.stream_here(py)?;
    launch::start(&dispatcher, this.config(), stream.as_deref(), &extended.args, &By::Launcher(launcher))?;
    drop(under_way);
    extended.finish()
}

/// Runs a launch of this kernel. Its arguments are prepared.
///
/// # Errors
///
/// As those of a launch.
pub(super) fn launch_kernel(
    launcher: &Bound<'_, Launcher>,
    extended: &Extended<'_>,
    kernel: &Arc<Overload>,
) -> PyResult<()> {
    let (py, this) = (launcher.py(), launcher.get());
    if recording::is_active() {
        extended.refuse_work_after()?;
    }
    let stream = this.stream_here(py)?;
    let dispatcher = this.dispatcher.bind(py);
    launch::start(dispatcher, this.config(), stream.as_deref(), &extended.args, &By::Kernel(kernel))?;
    extended.finish()
}

/// The dispatcher that launches with a configuration: the kernel's own, or one for only this configuration.
fn select<'py>(launcher: &Bound<'py, Launcher>) -> PyResult<Bound<'py, Dispatcher>> {
    let (py, this) = (launcher.py(), launcher.get());
    let own = this.dispatcher.bind(py);
    if !own.get().is_sensitive() {
        return Ok(own.clone());
    }
    let chosen = py.import("weft.cuda.launchconfig")?.call_method1("_select", (launcher,))?;
    Ok(chosen.cast_into::<Dispatcher>()?)
}

impl Dispatcher {
    /// Whether it has extensions that prepare the arguments of its launches.
    pub(super) fn has_extensions(&self, py: Python<'_>) -> bool {
        !self.extensions.bind(py).is_empty()
    }

    /// Whether its code depends on the launch configuration that it is compiled for.
    pub(super) fn is_sensitive(&self) -> bool {
        self.sensitive.load(Ordering::Relaxed)
    }

    /// Marks its code as dependent on the launch configuration.
    ///
    /// # Errors
    ///
    /// `RuntimeError` unless it is being compiled for a launch of its own.
    pub(super) fn mark_sensitive(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let Some(launcher) = current_launch_config(py) else {
            return Err(PyRuntimeError::new_err("No launch config set for this thread"));
        };
        if !launcher.get().dispatcher.is(slf) {
            return Err(PyRuntimeError::new_err(
                "mark_launch_config_sensitive() must be called on the active launch configuration's dispatcher",
            ));
        }
        py.import("weft.cuda.launchconfig")?.call_method1("_mark", (launcher,))?;
        slf.get().sensitive.store(true, Ordering::Relaxed);
        Ok(())
    }
}
