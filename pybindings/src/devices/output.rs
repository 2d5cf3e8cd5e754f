//! The destination of kernels' output: the program's `sys.stdout`, as for Python's own output.
//!
//! The runtime calls this on the thread that launches or waits: when that ends, and occasionally before. If
//! `sys.stdout` is still that of the process, its buffer is flushed, and the runtime writes afterwards, with the GIL
//! released.

use pyo3::{prelude::*, types::PyString};

use crate::errors;

/// Registers the function with the runtime.
pub(super) fn set_up() {
    weft_runtime::set_output(write);
}

/// Writes it, if `sys.stdout` is an object of the program. The launch or the wait raises the exceptions of that object.
fn write(text: &[u8]) -> bool {
    // An interpreter that is ending has no `sys.stdout`.
    let written = Python::try_attach(|py| match write_to_python(py, text) {
        Ok(written) => written,
        Err(error) => {
            errors::keep(error);
            true
        }
    });
    written.unwrap_or(false)
}

fn write_to_python(py: Python<'_>, text: &[u8]) -> PyResult<bool> {
    let sys = py.import("sys")?;
    let stdout = sys.getattr("stdout")?;
    if stdout.is_none() {
        return Ok(false);
    }
    if stdout.is(&sys.getattr("__stdout__")?) {
        // One that is closed has nothing that waits.
        if !stdout.getattr("closed")?.is_truthy()? {
            stdout.call_method0("flush")?;
        }
        return Ok(false);
    }
    stdout.call_method1("write", (PyString::new(py, &String::from_utf8_lossy(text)),))?;
    Ok(true)
}
