//! One launch: arguments to cells, cells to slots, host arrays to the device and back.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{IntoPyDict, PyDict, PyTuple},
};
use weft_artifact::Access;
use weft_runtime::{Buffer, Executor, LaunchConfig, Stream};

use super::{Dispatcher, overload::Resolved};
use crate::{
    args::{Arguments, HostArgument, convert},
    arrays::host_array::HostArray,
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

/// Launches a kernel with the arguments of a Python call.
///
/// # Errors
///
/// `TypeError` for arguments that do not fit, `CompileError`, and what the device says.
pub(crate) fn launch(
    py: Python<'_>,
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    stream: Option<&dyn Stream>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    if kwargs.is_some() || !dispatcher.get().is_complete(args) {
        let args = dispatcher.get().complete(args, kwargs)?;
        return start(py, dispatcher, config, stream, &args);
    }
    start(py, dispatcher, config, stream, args)
}

/// A launch with an argument for each parameter, in their order.
///
/// # Errors
///
/// As [`launch`].
pub(super) fn start(
    py: Python<'_>,
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    stream: Option<&dyn Stream>,
    args: &Bound<'_, PyTuple>,
) -> PyResult<()> {
    // Taken out, so that a launch inside a launch (an argument's property may run Python) has its own.
    let mut scratch = SCRATCH.take().unwrap_or_default();
    let result = run(py, dispatcher, config, stream, args, &mut scratch);
    scratch.arguments.clear();
    SCRATCH.set(Some(scratch));
    result
}

fn run(
    py: Python<'_>,
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    stream: Option<&dyn Stream>,
    args: &Bound<'_, PyTuple>,
    scratch: &mut Scratch,
) -> PyResult<()> {
    let Scratch { arguments, slots } = scratch;
    arguments.order = stream.map_or(0, Stream::order);
    arguments.push_all(args).map_err(|(index, error)| dispatcher.get().explain(py, index, &error))?;
    let resolved = Dispatcher::resolve(dispatcher, &arguments.key)?;
    let executor = &resolved.overload.executor;
    for (order, buffer) in &resolved.overload.lent {
        if *order != arguments.order {
            arguments.lent.push(Arc::clone(buffer));
        }
    }
    convert::apply(&resolved.casts, &mut arguments.cells);
    if !arguments.producers.is_empty() {
        wait_for_producers(py, &arguments.producers, stream, &**executor)?;
    }
    let staged = if arguments.hosts.is_empty() { Vec::new() } else { stage(dispatcher, &resolved, stream, arguments)? };
    // Of an argument that may be None: there is one. That there is none, and what it is then, are cells that are missing.
    arguments.cells.push(1);
    slots.clear();
    slots.extend(resolved.cells.iter().map(|cell| arguments.cells.get(*cell as usize).copied().unwrap_or_default()));
    let (launched, stopped) = py.detach(|| {
        let stopped = RefCell::new(None);
        let poll = || handle_signals(&stopped);
        let launched = resolved.overload.loaded.launch_polled(config, stream, slots, Some(&poll));
        if launched.is_ok() && !arguments.lent.is_empty() {
            executor.note_use(&arguments.lent, stream);
        }
        (launched, stopped.into_inner())
    });
    // What a handler raised is raised, even if the launch was over before it could be stopped.
    if let Some(raised) = stopped {
        return Err(raised);
    }
    launched.map_err(|error| errors::runtime(py, &error))?;
    // Where the first copy says what a kernel has raised, the others are made all the same.
    let mut finished = Ok(());
    for item in staged {
        finished = finished.and(item.finish(py, stream, &mut arguments.hosts, &**executor));
    }
    finished
}

/// Runs the handlers of signals that came during a launch: `true` if one has raised an exception, which is kept.
fn handle_signals(raised: &RefCell<Option<PyErr>>) -> bool {
    // An interpreter that is ending answers nothing.
    let handled = Python::try_attach(|py| py.check_signals().err());
    if let Some(Some(error)) = handled {
        raised.borrow_mut().get_or_insert(error);
    }
    raised.borrow().is_some()
}

/// A host array on its way: where its elements are during the launch.
struct Staged {
    /// Index into the launch's host arrays.
    host: usize,
    /// The device memory.
    buffer: Arc<dyn Buffer>,
    /// A compact copy of the elements in host memory, and its object.
    copy: Option<(HostArray, Py<PyAny>)>,
    /// The kernel may have written it.
    copy_out: bool,
}

/// Brings the host arrays to where the kernel can reach them, and puts their addresses into their cells.
fn stage(
    dispatcher: &Bound<'_, Dispatcher>,
    resolved: &Resolved,
    stream: Option<&dyn Stream>,
    arguments: &mut Arguments,
) -> PyResult<Vec<Staged>> {
    let (py, overload) = (dispatcher.py(), &resolved.overload);
    let mut staged = Vec::with_capacity(arguments.hosts.len());
    // On the CPU too the kernel works on device memory, which has room behind it: a thread beyond an unguarded array's
    // end must not reach Python's own memory. Only the warning is for GPUs.
    let mut warned = overload.executor.kind() == "cpu";
    for (index, host) in arguments.hosts.iter().enumerate() {
        let access = overload.kernel.params.get(host.param).map_or(Access { reads: true, writes: true }, |p| p.access);
        if !access.reads && !access.writes {
            continue;
        }
        let (hint_in, hint_out) = host.hint.unwrap_or((true, true));
        // A kernel stores nothing to an array that is read-only, but code of which nothing is known counts as if it did.
        let read_only = host.is_array && host.array.is_read_only();
        let copy_out = access.writes && hint_out && !read_only;
        if copy_out && host.array.overlaps() {
            return Err(PyValueError::new_err(format!(
                "{}: the kernel may write the array, but some of its elements share memory (a view by `as_strided` or \
                 `broadcast_to`); pass a copy",
                dispatcher.get().argument(host.param)
            )));
        }
        if !warned && host.hint.is_none() {
            warned = true;
            warn_about_copies(py)?;
        }
        let copy = if host.array.is_contiguous() { None } else { Some(compact(py, host)?) };
        let source = copy.as_ref().map_or(&host.array, |(copy, _)| copy);
        let bytes = source.bytes();
        let buffer = py
            .detach(|| {
                let buffer = overload.executor.allocate(bytes.len() as u64, stream)?;
                // What the kernel does not write must come back as it was, so elements go in even if none is read.
                if hint_in && !bytes.is_empty() {
                    overload.executor.copy_to_device(buffer.address(), bytes, stream)?;
                }
                Ok(buffer)
            })
            .map_err(|error| errors::runtime(py, &error))?;
        point(&mut arguments.cells, host, buffer.address(), source);
        staged.push(Staged { host: index, buffer, copy, copy_out });
    }
    Ok(staged)
}

impl Staged {
    /// Brings back what the kernel wrote.
    fn finish(
        mut self,
        py: Python<'_>,
        stream: Option<&dyn Stream>,
        hosts: &mut [HostArgument],
        executor: &dyn Executor,
    ) -> PyResult<()> {
        let Some(host) = hosts.get_mut(self.host).filter(|_| self.copy_out) else {
            return Ok(());
        };
        let target = self.copy.as_mut().map_or(&mut host.array, |(copy, _)| copy);
        let bytes = target.bytes_mut()?;
        let copied = if bytes.is_empty() {
            Ok(())
        } else {
            py.detach(|| executor.copy_to_host(bytes, self.buffer.address(), stream))
        };
        if let Some((_, copy)) = &self.copy {
            let numpy = py.import("numpy")?;
            let original = numpy.call_method1("asarray", (&host.object,))?;
            numpy.call_method1("copyto", (original, copy))?;
        }
        copied.map_err(|error| errors::runtime(py, &error))
    }
}

/// A C-contiguous copy of a host array, and its object.
fn compact(py: Python<'_>, host: &HostArgument) -> PyResult<(HostArray, Py<PyAny>)> {
    let order = [("order", "C")].into_py_dict(py)?;
    let object = py.import("numpy")?.call_method("array", (&host.object,), Some(&order))?;
    let array = HostArray::open(&object)?.ok_or_else(|| errors::internal(py, "a copy of an array has no buffer"))?;
    Ok((array, object.unbind()))
}

/// Writes the address and the strides of where the elements are into an array's cells.
fn point(cells: &mut [u64], host: &HostArgument, address: u64, source: &HostArray) {
    let ndim = host.array.shape().len();
    if let Some(cell) = cells.get_mut(host.cell) {
        *cell = address;
    }
    let strides = cells.iter_mut().skip(host.cell + 1 + ndim);
    for (cell, stride) in strides.zip(source.strides()) {
        *cell = *stride as u64;
    }
}

/// A switch of `weft.config`.
pub(crate) fn setting(py: Python<'_>, name: &str) -> PyResult<bool> {
    py.import("weft.config")?.getattr(name)?.is_truthy()
}

/// Numba's warning, unless it was turned off.
fn warn_about_copies(py: Python<'_>) -> PyResult<()> {
    if !setting(py, "CUDA_WARN_ON_IMPLICIT_COPY")? {
        return Ok(());
    }
    errors::warn(py, "PerformanceWarning", "Host array used in CUDA kernel will incur copy overhead to/from device.")
}

/// Waits for the streams of `__cuda_array_interface__` that are not ordered with the launch's own.
fn wait_for_producers(
    py: Python<'_>,
    producers: &[u64],
    stream: Option<&dyn Stream>,
    executor: &dyn Executor,
) -> PyResult<()> {
    // 1 is the legacy default stream, which every blocking stream is ordered with; it is ours where none is given.
    let own = stream.map_or(1, Stream::handle);
    if producers.iter().all(|producer| *producer == own) || !setting(py, "CUDA_ARRAY_INTERFACE_SYNC")? {
        return Ok(());
    }
    let wait = || -> Result<(), weft_runtime::Error> {
        for producer in producers.iter().filter(|producer| **producer != own) {
            let producer = executor.external_stream(*producer)?;
            executor.synchronize_stream(Some(&*producer))?;
        }
        Ok(())
    };
    py.detach(wait).map_err(|error| errors::runtime(py, &error))
}
