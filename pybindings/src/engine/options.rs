//! The options of `cuda.jit` in the compiler's form: `weft_compiler::request::JIT_OPTIONS` reads them.

use std::sync::{PoisonError, RwLock};

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyDict, PyList, PyString, PyTuple},
};
use weft_compiler::{
    check_printed_passes, host_cpu, host_cpu_set, host_cpu_without_passes, plan_passes,
    request::{Abi, External, GpuBody, JIT_OPTIONS, JitOptions, OptionValue, PtxBody, Refusal, Target},
    target::{self, SMS, Sm},
};

use weft_runtime::sanitize::memory;

use crate::{devices, errors};

/// Reads the options of a dispatcher: those of `cuda.jit` that are given, and its body on GPUs.
pub(crate) fn read(options: &Bound<'_, PyDict>) -> PyResult<JitOptions> {
    let mut given = Vec::with_capacity(options.len());
    for (name, value) in options.iter() {
        let name: String = name.extract()?;
        let unread = JitOptions::option(&name).is_some_and(|option| option.read.is_none());
        if !unread && !GPU_BODIES.contains(&name.as_str()) {
            given.push((name, option_value(&value)?));
        }
    }
    let given: Vec<_> = given.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let mut jit = JitOptions { gpu: gpu_body(options)?, ..JitOptions::default() };
    jit.take(&given).map_err(|(_, refusal)| match refusal {
        Refusal::Type(message) => PyTypeError::new_err(message),
        Refusal::Value(message) => PyValueError::new_err(message),
        Refusal::Removed(message) => errors::exception(options.py(), "RemovedOptionError", (message,)),
    })?;
    if !jit.code.sanitize.is_empty() {
        // Memory that is given out from here on is known not to be written.
        memory::watch();
    }
    Ok(jit)
}

/// A value of an option.
fn option_value(value: &Bound<'_, PyAny>) -> PyResult<OptionValue> {
    if value.is_none() {
        return Ok(OptionValue::None);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(OptionValue::Bool(truth.is_true()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(OptionValue::Str(text.extract()?));
    }
    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
        let items = value.try_iter()?.map(|item| option_value(&item?));
        return Ok(OptionValue::Tuple(items.collect::<PyResult<_>>()?));
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(OptionValue::Int(number));
    }
    Ok(OptionValue::Other { truth: value.is_truthy()?, shown: value.repr()?.extract()? })
}

/// Raises the error of a wrong option, before there is a function to decorate.
#[pyfunction]
pub(crate) fn check_options(options: &Bound<'_, PyDict>) -> PyResult<()> {
    read(options).map(drop)
}

/// The options of `cuda.jit`: their names, defaults, values and effects.
#[pyfunction]
pub(crate) fn jit_options() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    JIT_OPTIONS.iter().map(|option| (option.name, option.default, option.allowed, option.doc)).collect()
}

/// The passes of the CPU planner, in order: their names, their stages, whether each is optional, and why it has its
/// position.
#[pyfunction]
#[pyo3(name = "plan_passes")]
pub(crate) fn passes() -> Vec<(&'static str, &'static str, bool, &'static str)> {
    plan_passes().collect()
}

/// The passes that compilations for the CPU skip in place of those of `WEFT_SKIP_PASSES`.
static SKIPPED: RwLock<Option<Vec<String>>> = RwLock::new(None);

/// Compiles kernels for the CPU without some passes from now on, in place of those of `WEFT_SKIP_PASSES`. For
/// benchmarks, which compare kernels with and without a pass in one process. A name that does not exist is an error of
/// the next compilation.
#[pyfunction]
pub(crate) fn skip_passes(names: Vec<String>) {
    *SKIPPED.write().unwrap_or_else(PoisonError::into_inner) = Some(names);
}

/// The keys of a dispatcher's options for its body on GPUs.
const GPU_BODIES: [&str; 2] = ["ptx", "external"];

/// A device function's body on GPUs, if it is something else than its statements.
fn gpu_body(options: &Bound<'_, PyDict>) -> PyResult<Option<GpuBody>> {
    let [ptx, external] = GPU_BODIES.map(|name| options.get_item(name));
    if let Some(ptx) = ptx? {
        let (text, pure) = ptx.extract()?;
        return Ok(Some(GpuBody::Ptx(PtxBody { text, pure })));
    }
    let Some(external) = external? else { return Ok(None) };
    let (symbol, abi, cooperative, python): (_, String, _, _) = external.extract()?;
    let abi = if abi == "c" { Abi::C } else { Abi::Numba };
    Ok(Some(GpuBody::External(External { symbol, abi, cooperative, python })))
}

/// The compiler's target of a text such as `sm_90`, `sm_90a` or `host`.
pub(crate) fn target(py: Python<'_>, text: &str) -> PyResult<Target> {
    let settings = devices::settings(py)?;
    let cpu = if text == target::HOST {
        let skipped = SKIPPED.read().unwrap_or_else(PoisonError::into_inner);
        check_printed_passes(&settings.print_after).map_err(PyValueError::new_err)?;
        host_cpu_set(settings.host_cpu.as_deref(), settings.host_plan.as_deref(), settings.host_opt_level)
            .and_then(|cpu| host_cpu_without_passes(cpu, skipped.as_ref().unwrap_or(&settings.skip_passes)))
            .map_err(PyValueError::new_err)?
    } else {
        host_cpu()
    };
    target::parse(text, || cpu).map_err(|unknown| PyValueError::new_err(unknown.to_string()))
}

/// The target whose code a GPU of a compute capability runs; for one that is older than all of them, the oldest.
pub(crate) fn of_capability(major: u32, minor: u32) -> Target {
    Sm::of_capability(major, minor).or(SMS.first()).map_or(Target::Sm(75, ""), Sm::target)
}
