//! Every error of weft as a Python exception. The classes live in `weft.errors`, in Python.
//!
//! | where it comes from | exception |
//! |---|---|
//! | diagnostics of the user's program | `CompileError` |
//! | `E0901` among them | `InternalError` |
//! | `ErrorKind::NoDevice` | `CudaSupportError` |
//! | `ErrorKind::Driver` | `DriverError` (`.code` is the driver's number) |
//! | `ErrorKind::Launch` | `LaunchError` |
//! | `ErrorKind::Memory` | `DeviceMemoryError` |
//! | `ErrorKind::Value` | `ValueError` |
//! | `ErrorKind::Interrupted` | `KeyboardInterrupt` (where a signal's handler raised something else, that) |
//! | `ErrorKind::Internal` | `InternalError` |

use std::ffi::CString;

use pyo3::{
    call::PyCallArgs,
    exceptions::{PyKeyboardInterrupt, PyValueError},
    prelude::*,
};
use weft_compiler::{
    diagnostic::{Code, Diagnostic, Failure, render_json, render_text},
    source::SourceMap,
};
use weft_runtime::{Error, ErrorKind};

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
    let internal = diagnostics.iter().any(|diagnostic| diagnostic.code == Code::Internal);
    let class = if internal { "InternalError" } else { "CompileError" };
    let text = render_text(diagnostics, sources, false);
    exception(py, class, (text, render_json(diagnostics, sources)))
}

/// The exception of an error of the runtime.
pub(crate) fn runtime(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.message.as_str();
    match error.kind {
        ErrorKind::NoDevice => exception(py, "CudaSupportError", (message,)),
        ErrorKind::Driver => exception(py, "DriverError", (message, error.driver_code)),
        ErrorKind::Launch => exception(py, "LaunchError", (message, error.driver_code)),
        ErrorKind::Memory => exception(py, "DeviceMemoryError", (message, error.driver_code)),
        ErrorKind::Value => PyValueError::new_err(message.to_owned()),
        ErrorKind::Interrupted => PyKeyboardInterrupt::new_err(message.to_owned()),
        ErrorKind::Internal => exception(py, "InternalError", (message,)),
    }
}

/// A `LaunchError`.
pub(crate) fn launch(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "LaunchError", (message,))
}

/// An `InternalError`.
pub(crate) fn internal(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "InternalError", (message,))
}

/// The same error with words before its message that say of what it is.
pub(crate) fn prefixed(py: Python<'_>, of: &str, error: &PyErr) -> PyErr {
    let message = format!("{of}: {}", error.value(py));
    let named = error.get_type(py).call1((message,)).map_or_else(|error| error, PyErr::from_value);
    named.set_cause(py, error.cause(py));
    named
}

/// Emits a warning of a class in `weft.errors`, at the Python line that called into the extension.
pub(crate) fn warn(py: Python<'_>, class: &str, message: &str) -> PyResult<()> {
    let class = py.import("weft.errors")?.getattr(class)?;
    let message = CString::new(message).unwrap_or_default();
    PyErr::warn(py, &class, &message, 1)
}
