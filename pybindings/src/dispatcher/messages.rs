//! Messages for a call that does not fit a kernel, and for a grid that does not fill a GPU.

use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyTuple},
};
use weft_artifact::ArgType;
use weft_runtime::LaunchConfig;

use super::{Dispatcher, launch::setting};
use crate::{devices, errors, types::signature};

/// The message for a kernel that is called without a launch configuration.
pub(super) const UNCONFIGURED: &str = "Kernel launch configuration was not specified. Use the syntax:\n\n\
    kernel_function[blockspergrid, threadsperblock](arg0, arg1, ..., argn)\n";

/// The message for a configuration without two items.
pub(super) const TOO_FEW: &str = "must specify at least the griddim and blockdim: write `kernel[griddim, blockdim](…)`";

/// Calls a jitted function directly, without a launch. Only a kernel that Python's interpreter runs may do so; for any
/// other caller it is an error.
///
/// # Errors
///
/// The function's exception; `RuntimeError` or `ValueError` outside of such a kernel.
pub(super) fn called<'py>(
    dispatcher: &Bound<'py, Dispatcher>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, this) = (dispatcher.py(), dispatcher.get());
    if devices::interprets() {
        let interpreter = py.import(intern!(py, "weft.cuda._cpython"))?;
        let function = interpreter.call_method1(intern!(py, "device_function"), (dispatcher,))?;
        if !function.is_none() {
            return function.call(args, kwargs);
        }
    }
    let name = &this.name;
    Err(if this.jit.device {
        PyRuntimeError::new_err(format!(
            "`{name}` is a device function, which only kernels can call: call `{name}.py_func` to run it in Python"
        ))
    } else {
        PyValueError::new_err(UNCONFIGURED)
    })
}

/// Fewer blocks than this leave most of any GPU idle.
const FEW_BLOCKS: u64 = 128;

impl Dispatcher {
    /// Numba's warning for a grid of few blocks, once for each size. A CPU has few cores to fill.
    pub(crate) fn warn_about_occupancy(&self, py: Python<'_>, config: &LaunchConfig) -> PyResult<()> {
        let blocks: u64 = config.grid.iter().map(|extent| u64::from(*extent)).product();
        if blocks >= FEW_BLOCKS || !self.is_new_grid(blocks) {
            return Ok(());
        }
        // Without a device the launch fails.
        if devices::device_kind(py).is_ok_and(|kind| kind == "cuda") && setting(py, "CUDA_LOW_OCCUPANCY_WARNINGS")? {
            let text = format!("Grid size {blocks} will likely result in GPU under-utilization due to low occupancy.");
            errors::advise(py, "PerformanceWarning", &text)?;
        }
        Ok(())
    }

    pub(super) fn check_count(&self, given: usize) -> PyResult<()> {
        if let Some(variadic) = &self.variadic {
            return Err(PyTypeError::new_err(format!(
                "kernel `{}` has `{variadic}`, which a kernel cannot have: name each parameter, or pass a tuple",
                self.name
            )));
        }
        let expected = self.params.len();
        if given == expected {
            return Ok(());
        }
        let noun = if expected == 1 { "argument" } else { "arguments" };
        let names = if expected == 0 { String::new() } else { format!(" ({})", self.params.join(", ")) };
        Err(PyTypeError::new_err(format!(
            "kernel `{}` takes {expected} {noun}{names} but {given} {} given",
            self.name,
            if given == 1 { "was" } else { "were" }
        )))
    }

    /// How messages name an argument: its number, its parameter, the kernel.
    pub(crate) fn argument(&self, index: usize) -> String {
        match self.params.get(index) {
            Some(param) => format!("argument {} (`{param}`) of kernel `{}`", index + 1, self.name),
            None => format!("argument {} of kernel `{}`", index + 1, self.name),
        }
    }

    /// An error of one argument, with the argument named.
    pub(crate) fn explain(&self, py: Python<'_>, index: usize, error: &PyErr) -> PyErr {
        errors::prefixed(py, &self.argument(index), error)
    }

    /// The argument types that an `inspect` or `compile` call names: types, a signature, or its text.
    pub(crate) fn types(&self, signature: &Bound<'_, PyAny>) -> PyResult<Vec<ArgType>> {
        let args = signature::read(signature)?.args;
        self.check_count(args.len())?;
        Ok(args)
    }
}
