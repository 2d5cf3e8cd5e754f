//! Every error of weft as a Python exception. The classes live in `weft.errors`, in Python.
//!
//! | where it comes from | exception |
//! |---|---|
//! | diagnostics of the user's program | `CompileError` |
//! | `E0901` among them | `InternalError` |
//! | nothing but `E0212` | `KernelReturnsError` |
//! | `ErrorKind::NoDevice` | `CudaSupportError` |
//! | `ErrorKind::Driver` | `DriverError` (`.code` is the driver's number) |
//! | `ErrorKind::Launch` | `LaunchError` |
//! | `ErrorKind::Memory` | `DeviceMemoryError` |
//! | `ErrorKind::Allocator` | the exception of a memory manager |
//! | `ErrorKind::Event` | `EventError` |
//! | `ErrorKind::Link` | `LinkerError` |
//! | `ErrorKind::Compile` | `NvrtcCompilationError` |
//! | `ErrorKind::NoTool` | `NvrtcSupportError` |
//! | `ErrorKind::Value` | `ValueError` |
//! | `ErrorKind::Raised` | the exception of a kernel |
//! | `ErrorKind::Sanitizer` | `SanitizerError`, or a warning |
//! | `ErrorKind::Interrupted` | `KeyboardInterrupt` (where a signal's handler raised something else, that) |
//! | `ErrorKind::Internal` | `InternalError` |

use std::{cell::RefCell, ffi::CString, path::PathBuf};

use pyo3::{
    call::PyCallArgs,
    exceptions::{PyAttributeError, PyKeyboardInterrupt, PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyFloat, PyList, PyString, PyTuple, PyType},
};
use weft_artifact::{FaultArg, Raised, Site, SourceLocation};
use weft_compiler::{
    diagnostic::{Code, Diagnostic, Failure, render_json, render_text},
    source::SourceMap,
};
use weft_runtime::{
    Error, ErrorKind,
    sanitize::{Finding, ThreadLocation},
};

/// An exception of a class in `weft.errors`.
pub(crate) fn exception<'py>(py: Python<'py>, class: &str, args: impl PyCallArgs<'py>) -> PyErr {
    match py.import("weft.errors").and_then(|module| module.getattr(class)).and_then(|class| class.call1(args)) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// The exception of a program that the compiler rejects.
pub(crate) fn compile_error(py: Python<'_>, failure: &Failure) -> PyErr {
    diagnostics(py, &failure.diagnostics, &failure.sources)
}

/// See [`compile_error`].
pub(crate) fn diagnostics(py: Python<'_>, diagnostics: &[Diagnostic], sources: &SourceMap) -> PyErr {
    let class = if diagnostics.iter().any(|diagnostic| diagnostic.code == Code::Internal) {
        "InternalError"
    } else if diagnostics.iter().all(|diagnostic| diagnostic.code == Code::KernelReturns) {
        "KernelReturnsError"
    } else {
        "CompileError"
    };
    // Only a program that imports Numba, or the drop-in or a shim under its name, gets Numba's error classes.
    let uses_numba = || py.import("sys")?.getattr("modules")?.contains("numba");
    let own: Vec<Diagnostic>;
    let diagnostics = if uses_numba().unwrap_or(false) {
        diagnostics
    } else {
        own = diagnostics.iter().map(|diagnostic| Diagnostic { numba: None, ..diagnostic.clone() }).collect();
        own.as_slice()
    };
    let text = render_text(diagnostics, sources, false);
    exception(py, class, (text, render_json(diagnostics, sources)))
}

/// The exception of an integer that no kernel takes.
pub(crate) fn too_large(value: &Bound<'_, PyAny>) -> PyErr {
    let message = format!(
        "Int value is too large: {value}; integers in kernels have 64 bits: pass it as a float, or as several integers"
    );
    exception(value.py(), "IntegerTooLargeError", (message,))
}

/// The exception of an object of a class that no kernel takes.
pub(crate) fn not_an_argument(arg: &Bound<'_, PyAny>) -> PyErr {
    let name = arg.get_type().fully_qualified_name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let is_number = !arg.is_instance_of::<PyType>() && arg.hasattr("__float__").unwrap_or(false);
    let suggestion = if is_number { "; convert other numbers with `float(…)` or `int(…)`" } else { "" };
    PyTypeError::new_err(format!(
        "{} {name} cannot be passed to a kernel; pass numbers, strings, None, NumPy arrays, device arrays, and \
         tuples, named tuples and dataclasses of them{suggestion}",
        weft_artifact::article(&name)
    ))
}

/// The exception for a missing attribute of a kernel or its configuration, with a suggestion where one is known.
pub(crate) fn no_attribute(owner: &Bound<'_, PyAny>, name: &str) -> PyErr {
    let made = || {
        let (py, class) = (owner.py(), owner.get_type());
        let what = format!("'{}' object", class.fully_qualified_name()?);
        if name.starts_with('_') {
            // Python and other libraries query whether an object has a protocol of theirs.
            return Ok(PyAttributeError::new_err(format!("{what} has no attribute '{name}'")));
        }
        let path = format!("weft.cuda.Kernel.{name}");
        let error = py.import("weft._missing")?.call_method1("missing", (what, path, class.dir()?))?;
        Ok(PyErr::from_value(error))
    };
    made().unwrap_or_else(|error: PyErr| error)
}

thread_local! {
    /// The exception raised while a launch or a wait wrote kernels' output.
    static KEPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Stores an exception for the current launch or wait of this thread.
pub(crate) fn keep(error: PyErr) {
    KEPT.with_borrow_mut(|kept| _ = kept.get_or_insert(error));
}

/// Moves that exception to the launch's.
fn take_kept(raised: &RefCell<Option<PyErr>>) {
    if let Some(error) = KEPT.take() {
        raised.borrow_mut().get_or_insert(error);
    }
}

/// The result of a call that has waited for the device, or the exception of its error, or that of writing kernels'
/// output meanwhile.
pub(crate) fn waited<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    let kept = KEPT.take();
    let done = result.map_err(|error| runtime(py, &error))?;
    kept.map_or(Ok(done), Err)
}

/// The same of a copy to the host, in which the sanitizer may have found something.
pub(crate) fn copied(
    py: Python<'_>,
    result: Result<(), Error>,
    findings: impl FnOnce() -> PyResult<Findings>,
) -> PyResult<()> {
    if result.as_ref().is_err_and(|error| error.kind == ErrorKind::Sanitizer) {
        let found = launched(py, result, findings);
        return waited(py, Ok(())).and(found);
    }
    waited(py, result)
}

/// The exception that a launch raises when it is over.
pub(crate) fn raised_meanwhile(raised: RefCell<Option<PyErr>>) -> Option<PyErr> {
    take_kept(&raised);
    raised.into_inner()
}

/// Runs the handlers of signals that arrived during a launch or a compilation: `true` if one raised an exception, which
/// is stored.
pub(crate) fn handle_signals(raised: &RefCell<Option<PyErr>>) -> bool {
    take_kept(raised);
    // An interpreter that is ending answers nothing.
    let handled = Python::try_attach(|py| py.check_signals().err());
    if let Some(Some(error)) = handled {
        raised.borrow_mut().get_or_insert(error);
    }
    raised.borrow().is_some()
}

thread_local! {
    /// The exception of Python code that the runtime called, until the runtime's error is converted back.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The error for the runtime of an exception that its caller gets back.
pub(crate) fn of_allocator(raised: PyErr) -> Error {
    RAISED.set(Some(raised));
    Error::new(ErrorKind::Allocator, "the memory manager raised an exception")
}

/// The exception of an error of the runtime.
pub(crate) fn runtime(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.message.as_str();
    match error.kind {
        ErrorKind::NoDevice => exception(py, "CudaSupportError", (message,)),
        ErrorKind::Driver => exception(py, "DriverError", (message, error.driver_code)),
        ErrorKind::Launch => {
            // A launch that failed before the driver was called gets the driver's error name.
            let name = match error.driver_code {
                Some(1) => "CUDA_ERROR_INVALID_VALUE",
                Some(701) => "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                Some(_) | None => "",
            };
            let is_named = name.is_empty() || message.contains("CUDA_ERROR");
            let message = if is_named { message.to_owned() } else { format!("{message} ({name})") };
            exception(py, "LaunchError", (message, error.driver_code))
        }
        ErrorKind::Memory => exception(py, "DeviceMemoryError", (message, error.driver_code)),
        ErrorKind::Allocator => {
            RAISED.take().unwrap_or_else(|| exception(py, "DeviceMemoryError", (message, error.driver_code)))
        }
        ErrorKind::Event => exception(py, "EventError", (message, error.driver_code)),
        ErrorKind::Link => exception(py, "LinkerError", (message, error.driver_code)),
        ErrorKind::Compile => exception(py, "NvrtcCompilationError", (message,)),
        ErrorKind::NoTool => exception(py, "NvrtcSupportError", (message,)),
        ErrorKind::Value => PyValueError::new_err(message.to_owned()),
        ErrorKind::Interrupted => PyKeyboardInterrupt::new_err(message.to_owned()),
        ErrorKind::Raised => match error.raised.as_deref().map(|known| raised(py, known)) {
            Some(Ok(error) | Err(error)) => error,
            None => exception(py, "InternalError", (message,)),
        },
        ErrorKind::Sanitizer => match found(py, error, &Findings { raise: true, folder: None }) {
            Ok(Some(error)) | Err(error) => error,
            Ok(None) => exception(py, "SanitizerError", (message,)),
        },
        ErrorKind::Internal => exception(py, "InternalError", (message,)),
    }
}

/// The handling of the sanitizer's findings.
pub(crate) struct Findings {
    /// It is an exception; else a warning.
    pub(crate) raise: bool,
    /// It is written to a folder, and is neither.
    pub(crate) folder: Option<PathBuf>,
}

/// The result of a launch: findings of the sanitizer are warnings unless they are to raise an exception.
///
/// # Errors
///
/// The exception of an error, and of findings if they are to raise one.
pub(crate) fn launched(
    py: Python<'_>,
    launched: Result<(), Error>,
    findings: impl FnOnce() -> PyResult<Findings>,
) -> PyResult<()> {
    match launched {
        Ok(()) => Ok(()),
        Err(error) if error.kind == ErrorKind::Sanitizer => match found(py, &error, &findings()?)? {
            Some(error) => Err(error),
            None => Ok(()),
        },
        Err(error) => Err(runtime(py, &error)),
    }
}

/// Reports the sanitizer's findings; returns the exception that the launch raises, if it raises one.
fn found(py: Python<'_>, error: &Error, findings: &Findings) -> PyResult<Option<PyErr>> {
    let all = PyList::empty(py);
    for finding in &error.findings {
        let Finding { tool, kind, kernel, message, help, count, accesses } = finding;
        let places = PyList::empty(py);
        let at = |site: &Site| {
            let Site { file, line, column, width, text, function, .. } = site;
            (file.clone(), *line, *column, *width, text.clone(), function.clone())
        };
        for ThreadLocation { site, what, index, thread, block, calls } in accesses {
            let calls: Vec<_> = calls.iter().map(at).collect();
            let index = index.as_ref().map(|index| PyTuple::new(py, index)).transpose()?;
            let (thread, block) = (PyTuple::new(py, thread)?, PyTuple::new(py, block)?);
            places.append((at(site), *what, &site.array, index, thread, block, calls))?;
        }
        all.append((*tool, *kind, kernel, message, help, *count, places))?;
    }
    let Findings { raise, folder } = findings;
    let reported = py.import("weft._sanitizer")?.call_method1("report", (all, *raise, folder.as_deref()))?;
    Ok(if reported.is_none() { None } else { Some(PyErr::from_value(reported)) })
}

/// The exception that a kernel has raised.
fn raised(py: Python<'_>, raised: &Raised) -> PyResult<PyErr> {
    let location = |at: &SourceLocation| (at.file.clone(), at.line, at.function.clone());
    let args = match raised.message() {
        Some(message) => PyTuple::new(py, [message])?,
        None => arguments(py, &raised.fault.args)?,
    };
    let calls: Vec<_> = raised.calls.iter().map(location).collect();
    let (thread, block) = (PyTuple::new(py, raised.thread)?, PyTuple::new(py, raised.block)?);
    let at = location(&raised.fault.location);
    let all = (&raised.fault.class, args, at, thread, block, (calls, raised.further), raised.at_launch);
    Ok(PyErr::from_value(py.import("weft._faults")?.call_method1("exception", all)?))
}

fn arguments<'py>(py: Python<'py>, args: &[FaultArg]) -> PyResult<Bound<'py, PyTuple>> {
    let one = |arg: &FaultArg| -> PyResult<Bound<'py, PyAny>> {
        Ok(match arg {
            FaultArg::None => py.None().into_bound(py),
            FaultArg::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
            FaultArg::Int(value) => value.into_pyobject(py)?.into_any(),
            FaultArg::Float(bits) => PyFloat::new(py, f64::from_bits(*bits)).into_any(),
            FaultArg::Str(text) => PyString::new(py, text).into_any(),
            FaultArg::Tuple(items) => arguments(py, items)?.into_any(),
        })
    };
    PyTuple::new(py, args.iter().map(one).collect::<PyResult<Vec<_>>>()?)
}

/// A `LaunchError`.
pub(crate) fn launch(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "LaunchError", (message,))
}

/// An `InternalError`.
pub(crate) fn internal(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "InternalError", (message,))
}

/// The same error with a prefix that names its subject.
pub(crate) fn prefixed(py: Python<'_>, of: &str, error: &PyErr) -> PyErr {
    let message = format!("{of}: {}", error.value(py));
    let named = error.get_type(py).call1((message,)).map_or_else(|error| error, PyErr::from_value);
    named.set_cause(py, error.cause(py));
    named
}

/// Gives advice: a warning of a class in `weft.errors` that ends no program and is shown once in a tree of processes.
pub(crate) fn advise(py: Python<'_>, class: &str, message: &str) -> PyResult<()> {
    let class = py.import("weft.errors")?.getattr(class)?;
    py.import("weft._advice")?.call_method1("advise", (class, message))?;
    Ok(())
}

/// Emits a warning of a class in `weft.errors`, at the Python line that called into the extension.
pub(crate) fn warn(py: Python<'_>, class: &str, message: &str) -> PyResult<()> {
    let class = py.import("weft.errors")?.getattr(class)?;
    let message = CString::new(message).unwrap_or_default();
    PyErr::warn(py, &class, &message, 1)
}
