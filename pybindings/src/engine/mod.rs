//! The process's engine, which all dispatchers compile with, and its way through a fork.

pub(crate) mod options;

use std::{
    cell::RefCell,
    sync::{Arc, LazyLock},
};

use pyo3::prelude::*;
use weft_artifact::ArgType;
use weft_compiler::{
    diagnostic::render_text,
    pipeline::Output,
    request::{CpuThreads, FunctionDef, Keep, Request, Target},
};
use weft_engine::{Engine, HeldEngine};
use weft_runtime::CpuStrategy;

use self::options::JitOptions;
use crate::{devices, errors};

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::new);

thread_local! {
    /// The engine, held by the thread that forks.
    static HELD: RefCell<Option<HeldEngine<'static>>> = const { RefCell::new(None) };
}

/// Compiles a function for a target, with texts if they are wanted. What it gives may have questions in place of code:
/// `dispatcher::answers` has the answers.
pub(crate) fn compile(
    py: Python<'_>,
    function: &Arc<FunctionDef>,
    args: &[ArgType],
    target: Target,
    jit: &JitOptions,
    keep: Keep,
) -> PyResult<Arc<Output>> {
    let mut options = jit.code.clone();
    if matches!(target, Target::Host(_)) {
        options.cpu_threads = match devices::settings(py)?.cpu_strategy {
            CpuStrategy::Auto => CpuThreads::Auto,
            CpuStrategy::Loops => CpuThreads::Loops,
            CpuStrategy::Fibers => CpuThreads::Fibers,
        };
    } else {
        options.libdevice = devices::libdevice(py)?;
    }
    let request = Request { function: Arc::clone(function), args: args.to_vec(), target, options, keep };
    // Without the interpreter: this thread may have to wait for another one, which compiles the same.
    let compiled = py.detach(|| ENGINE.compile(&request));
    let output = compiled.map_err(|failure| errors::compile_error(py, &failure))?;
    if !output.warnings.is_empty() {
        errors::warn(py, "CompileWarning", &render_text(&output.warnings, &output.sources, false))?;
    }
    Ok(output)
}

/// Called before a fork: the child is not to inherit a compilation of a thread that it does not have.
#[pyfunction]
pub(crate) fn before_fork() {
    // The interpreter is not released, so that this thread is the one that goes on; no compilation needs it to end.
    HELD.set(Some(ENGINE.hold()));
}

/// Called in the parent after a fork.
#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    drop(HELD.take());
}

/// Called in the child after a fork.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    drop(HELD.take());
    devices::after_fork();
}
