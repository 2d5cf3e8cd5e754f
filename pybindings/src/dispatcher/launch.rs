//! One launch: arguments to cells, cells to slots. [`staging`](super::staging) has the host arrays' way.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use pyo3::{
    prelude::*,
    types::{PyDict, PyTuple},
};
use weft_runtime::{DeviceChoice, LaunchConfig, Stream};

use super::{
    Dispatcher, graph,
    launcher::Launcher,
    observer,
    overload::{Overload, Resolved},
    profile,
    staging::check_elements,
    tensors,
    variants::{Launch, Selected},
};
use crate::{
    args::{Arguments, NO_STREAM, convert},
    devices::{self, recording},
    errors,
};

/// Memory that launches use again and again.
#[derive(Default)]
struct Scratch {
    arguments: Arguments,
    slots: Vec<u64>,
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// The caller of a launch, which determines the kernel.
pub(super) enum By<'a, 'py> {
    /// The one for the arguments' types.
    Types,
    /// The same, for a launch whose configuration can be queried while the kernel is compiled.
    Launcher(&'a Bound<'py, Launcher>),
    /// This one.
    Kernel(&'a Arc<Overload>),
}

/// Launches a kernel with the arguments of a Python call.
///
/// # Errors
///
/// `TypeError` for arguments that do not fit, `CompileError`, and the device's errors.
pub(super) fn launch(
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    stream: Option<&dyn Stream>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    by: &By<'_, '_>,
) -> PyResult<()> {
    if kwargs.is_some() || !dispatcher.get().is_complete(args) {
        let args = dispatcher.get().complete(args, kwargs)?;
        return start(dispatcher, config, stream, &args, by);
    }
    start(dispatcher, config, stream, args, by)
}

/// A launch with an argument for each parameter, in their order.
///
/// # Errors
///
/// As [`launch`].
pub(super) fn start(
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    stream: Option<&dyn Stream>,
    args: &Bound<'_, PyTuple>,
    by: &By<'_, '_>,
) -> PyResult<()> {
    observer::note(dispatcher, args, by)?;
    // Taken out, so that a launch inside a launch (an argument's property may run Python) has its own.
    let mut scratch = SCRATCH.take().unwrap_or_default();
    let result = run(dispatcher, config, stream, args, by, &mut scratch);
    scratch.arguments.clear();
    SCRATCH.set(Some(scratch));
    result
}

fn run(
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    stream: Option<&dyn Stream>,
    args: &Bound<'_, PyTuple>,
    by: &By<'_, '_>,
    scratch: &mut Scratch,
) -> PyResult<()> {
    let py = dispatcher.py();
    let Scratch { arguments, slots } = scratch;
    let is_recorded = recording::is_active();
    arguments.order = if is_recorded { NO_STREAM } else { stream.map_or(0, Stream::order) };
    arguments.stream = Some(stream.map_or(0, Stream::handle));
    arguments.push_all(args).map_err(|(index, error)| dispatcher.get().explain(py, index, &error))?;
    profile::note(dispatcher, config, arguments, args)?;
    let choice = devices::choice();
    if choice == DeviceChoice::Python && interpret(dispatcher, config, args, is_recorded)? {
        return Ok(());
    }
    if choice == DeviceChoice::Ptx && !is_recorded {
        return profile::launch(dispatcher, config, stream, arguments);
    }
    let resolved = match by {
        By::Types => Dispatcher::resolve(dispatcher, arguments)?,
        By::Launcher(launcher) => Dispatcher::resolve_for(dispatcher, arguments, Some((launcher, args)))?,
        By::Kernel(overload) => Dispatcher::resolve_to(dispatcher, arguments, overload)?,
    };
    check_elements(dispatcher.get(), &resolved, arguments)?;
    // The order with other libraries' work is that of each replay: nothing is waited for now.
    if is_recorded {
        let launch = Launch { owner: dispatcher, config, stream, is_prepared: true };
        let Selected { kernel, .. } = resolved.select(&launch, arguments, slots)?;
        let order = stream.map_or(0, Stream::order);
        return graph::record(dispatcher, &kernel, config, arguments, args, slots, order);
    }
    let followed = if stream.is_none() { tensors::followed(py, &resolved, arguments)? } else { None };
    let stream = stream.or(followed.as_deref());
    if !arguments.producers.is_empty() {
        wait_for_producers(py, &arguments.producers, stream)?;
    }
    if !arguments.work_streams.is_empty() {
        tensors::wait_for_work(py, &arguments.work_streams, stream, &*resolved.overload.executor)?;
    }
    // A launch on host arrays is waited for.
    let waits = !arguments.hosts.is_empty() || !arguments.tensors.is_empty();
    let launch = Launch { owner: dispatcher, config, stream, is_prepared: false };
    let Selected { kernel, mut timed, staging } = resolved.select(&launch, arguments, slots)?;
    let executor = &*kernel.overload.executor;
    let loaded = kernel.overload.loaded(py)?;
    let (launched, stopped) = py.detach(|| {
        let stopped = RefCell::new(None);
        let poll = || errors::handle_signals(&stopped);
        if let Some(timed) = &mut timed {
            timed.begin(executor, stream);
        }
        let launched = loaded.launch_polled(config, stream, slots, Some(&poll));
        if let Some(timed) = timed {
            timed.end(executor, stream, launched.is_ok());
        }
        if launched.is_ok() && !arguments.lent.is_empty() {
            executor.note_use(&arguments.lent, stream);
        }
        (launched, errors::raised_meanwhile(stopped))
    });
    // An exception from a signal handler is raised even if the launch had already finished.
    if let Some(raised) = stopped {
        return Err(raised);
    }
    errors::launched(py, launched, || devices::findings(py))?;
    // If the first copy reports a kernel's exception, the others are made all the same.
    let mut finished = Ok(());
    for item in staging.staged {
        finished = finished.and(item.finish(py, stream, &mut arguments.hosts, executor));
    }
    // The time at which a kernel's faults are reported does not depend on whether it writes its host arrays.
    if waits && finished.is_ok() {
        return errors::waited(py, py.detach(|| executor.report_faults(stream)));
    }
    finished
}

/// Runs a launch in Python's interpreter; false for a kernel of weft's own, which runs normally.
///
/// # Errors
///
/// The kernel's exception; `LaunchError` for a launch that no device can run.
fn interpret(
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    args: &Bound<'_, PyTuple>,
    is_recorded: bool,
) -> PyResult<bool> {
    let py = dispatcher.py();
    let run = py.import(intern!(py, "weft.cuda._cpython"))?.getattr(intern!(py, "launch"))?;
    let LaunchConfig { grid, block, shared_bytes, cluster } = *config;
    let shape = (<(u32, u32, u32)>::from(grid), <(u32, u32, u32)>::from(block), <(u32, u32, u32)>::from(cluster));
    run.call1((dispatcher, shape, shared_bytes, args, is_recorded))?.extract()
}

/// Makes of its arguments' cells those that a kernel is called with.
pub(super) fn settle_cells(resolved: &Resolved, arguments: &mut Arguments) {
    convert::apply(&resolved.casts, &mut arguments.cells);
    // Of an argument that may be None: there is one. That there is none, and what it is then, are cells that are missing.
    arguments.cells.push(1);
}

/// Fills a launch's slots from [converted](settle_cells) cells.
pub(super) fn make_slots(resolved: &Resolved, arguments: &Arguments, slots: &mut Vec<u64>) {
    slots.clear();
    slots.extend(resolved.cells.iter().map(|cell| arguments.cells.get(*cell as usize).copied().unwrap_or_default()));
}

/// A switch of `weft.config`.
pub(crate) fn setting(py: Python<'_>, name: &str) -> PyResult<bool> {
    py.import("weft.config")?.getattr(name)?.is_truthy()
}

/// Waits for the streams of `__cuda_array_interface__` that are not ordered with the launch's own.
fn wait_for_producers(py: Python<'_>, producers: &[u64], stream: Option<&dyn Stream>) -> PyResult<()> {
    // 1 is the legacy default stream, which every blocking stream is ordered with; it is ours where none is given.
    let own = stream.map_or(1, Stream::handle);
    if producers.iter().all(|producer| *producer == own) || !setting(py, "CUDA_ARRAY_INTERFACE_SYNC")? {
        return Ok(());
    }
    // By the method that a program calls, so that a replaced or wrapped method sees this, too.
    let streams = py.import("weft.cuda._streams")?;
    for producer in producers.iter().filter(|producer| **producer != own) {
        streams.call_method1("external_stream", (*producer,))?.call_method0("synchronize")?;
    }
    Ok(())
}
