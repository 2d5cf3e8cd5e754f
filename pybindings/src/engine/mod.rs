//! The process's engine, which all dispatchers compile with, and its way through a fork.

pub(crate) mod background;
pub(crate) mod code;
pub(crate) mod options;
mod progress;
pub(crate) mod timing;

use std::{
    cell::RefCell,
    io::{self, Write as _},
    sync::{Arc, LazyLock},
};

use pyo3::prelude::*;
use weft_artifact::{ArgType, Factors, Param};
use weft_compiler::{
    Poll,
    diagnostic::{Code, Failure, render_text},
    frontend::ExprTypes,
    host_cpu,
    pipeline::Output,
    request::{CpuThreads, FunctionDef, JitOptions, Keep, Options, Outcome, Overloads, Request, Target},
    source::SourceMap,
    target,
};
use weft_engine::{Caller, Digest, DiskCache, Engine, HeldEngine, IrDigests};
use weft_runtime::{Category, CpuStrategy, range};

use self::progress::Progress;
use crate::{
    devices::{self, fork},
    errors,
};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let cache = devices::cache().map(|(folder, bytes)| DiskCache::new(folder, bytes));
    let digests = devices::ir_digests().map(IrDigests::new);
    Engine::with_cache(cache).with_ir_digests(digests)
});

thread_local! {
    /// The engine, held by the thread that forks.
    static HELD: RefCell<Option<HeldEngine<'static>>> = const { RefCell::new(None) };
}

/// A function and the implementations of the overloaded functions that it calls: the input of requests.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) function: Arc<FunctionDef>,
    pub(crate) overloads: Overloads,
}

impl Definition {
    /// A function of which nothing more is known.
    pub(crate) fn of(function: Arc<FunctionDef>) -> Self {
        Self { function, overloads: Overloads::default() }
    }

    fn request(&self, args: &[ArgType], target: Target, options: Options, keep: Keep) -> Request {
        let Self { function, overloads } = self.clone();
        Request { function, overloads, args: args.to_vec(), target, options, keep }
    }
}

/// A function that was compiled.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    /// The result.
    pub(crate) output: Arc<Output>,
    /// It was loaded from the disk cache.
    pub(crate) was_cached: bool,
    /// Another process may find it: no address of this one is in it.
    pub(crate) is_lasting: bool,
}

impl Compiled {
    /// Issues the compiler's warnings. Those of a variant were issued with the kernel itself.
    ///
    /// # Errors
    ///
    /// The exception of a warnings filter.
    pub(crate) fn issue_warnings(&self, py: Python<'_>, jit: &JitOptions) -> PyResult<()> {
        let Output { warnings, sources, .. } = &*self.output;
        if warnings.is_empty() || jit.code.bounded_stores || jit.code.coarsen != Factors::NONE {
            return Ok(());
        }
        let (bits, others): (Vec<_>, Vec<_>) =
            warnings.iter().cloned().partition(|warning| warning.code == Code::NotReproducible);
        for (class, warnings) in [("CompileWarning", others), ("ReproducibilityWarning", bits)] {
            if !warnings.is_empty() {
                errors::warn(py, class, &render_text(&warnings, sources, false))?;
            }
        }
        Ok(())
    }
}

/// The disk cache for code compiled with these options, if there is one.
pub(crate) fn cache(jit: &JitOptions) -> Option<&'static DiskCache> {
    ENGINE.cache().filter(|_| !jit.no_cache)
}

/// Compiles a function for a target, with the code as strings if requested, and issues no warnings.
/// `dispatcher::answers` answers its requests.
pub(crate) fn compile(
    py: Python<'_>,
    definition: &Definition,
    args: &[ArgType],
    target: Target,
    jit: &JitOptions,
    keep: Keep,
) -> PyResult<Outcome<Compiled>> {
    let request = request(py, definition, args, target, jit, keep)?;
    compile_request(py, &request, !jit.no_cache)
}

/// Compiles a kernel that is exported: the result depends on no setting, and is for any launch.
pub(crate) fn compile_for_export(
    py: Python<'_>,
    definition: &Definition,
    args: &[ArgType],
    target: Target,
    options: Options,
    on_disk: bool,
) -> PyResult<Outcome<Compiled>> {
    compile_request(py, &definition.request(args, target, options, Keep::default()), on_disk)
}

fn compile_request(py: Python<'_>, request: &Request, on_disk: bool) -> PyResult<Outcome<Compiled>> {
    // Without the interpreter: this thread may have to wait for another one, which compiles the same.
    timing::begin("look up");
    let progress = Progress::new(timing::watch());
    let begin = || {
        let range = range(Category::Compile, || (format!("compile {}", shown(request)), None));
        Some(Box::new((range, progress.begin(|| shown(request)))) as _)
    };
    let compiled = interruptible(py, |poll| {
        let look = || {
            progress.look();
            poll()
        };
        let caller = Caller { on_disk, watch: Some(progress.watch()), poll: &look, begin: &begin };
        ENGINE.compile_polled(request, &caller)
    })?;
    let weft_engine::Compiled { outcome, was_cached, is_lasting } =
        compiled.map_err(|failure| errors::compile_error(py, &failure))?;
    let printed = &devices::settings(py)?.print_after;
    if !printed.is_empty() && !was_cached && matches!(outcome, Outcome::Made(_)) {
        print_plans(py, request, printed)?;
    }
    Ok(outcome.map(|output| Compiled { output, was_cached, is_lasting }))
}

/// Prints the plan of a request after passes to the standard error.
fn print_plans(py: Python<'_>, request: &Request, passes: &[String]) -> PyResult<()> {
    let traced = py.detach(|| {
        let _work = fork::at_work();
        ENGINE.plan_trace(request, passes)
    });
    match traced.map_err(|failure| errors::compile_error(py, &failure))? {
        Outcome::Made(text) => io::stderr().write_all(text.as_bytes()).map_err(Into::into),
        Outcome::Queries(_) => Ok(()),
    }
}

/// The request for a function: the options of a dispatcher, and those of the settings.
fn request(
    py: Python<'_>,
    definition: &Definition,
    args: &[ArgType],
    target: Target,
    jit: &JitOptions,
    keep: Keep,
) -> PyResult<Request> {
    let mut options = jit.code.clone();
    options.notes = devices::settings(py)?.warn_widening;
    options.interpreted = devices::interprets();
    if matches!(target, Target::Host(_)) {
        if !jit.says_sanitize {
            options.sanitize = devices::settings(py)?.sanitize;
        }
        options.cpu_threads = match devices::settings(py)?.cpu_strategy {
            CpuStrategy::Auto => CpuThreads::Auto,
            CpuStrategy::Loops => CpuThreads::Loops,
            CpuStrategy::Fibers => CpuThreads::Fibers,
        };
    } else {
        options.libdevice = devices::libdevice(py)?;
    }
    Ok(definition.request(args, target, options, keep))
}

/// A compilation that needs no Python: its overloaded functions are known, and no launch waits for it.
#[derive(Debug)]
pub(crate) struct Unattended {
    request: Request,
    on_disk: bool,
    /// Whether machine code is cached on the disk.
    pub(crate) caches_machine_code: bool,
}

impl Unattended {
    /// A compilation for a target, such as `"sm_90"`.
    ///
    /// # Errors
    ///
    /// As those of [`compile`], except the compiler's.
    pub(crate) fn new(
        py: Python<'_>,
        definition: &Definition,
        args: &[ArgType],
        target: &str,
        jit: &JitOptions,
    ) -> PyResult<Self> {
        let request = request(py, definition, args, options::target(py, target)?, jit, Keep::default())?;
        let caches_machine_code = devices::settings(py)?.cache_machine_code;
        Ok(Self { request, on_disk: !jit.no_cache, caches_machine_code })
    }

    /// Compiles. `None` if `poll` gives it up.
    pub(crate) fn compile(&self, poll: Poll<'_>) -> Option<Result<Outcome<Compiled>, Failure>> {
        let begin = || {
            let range =
                range(Category::Compile, || (format!("compile {} in the background", shown(&self.request)), None));
            Some(Box::new(range) as _)
        };
        let caller = Caller { on_disk: self.on_disk, watch: None, poll, begin: &begin };
        let compiled = ENGINE.compile_polled(&self.request, &caller)?;
        Some(compiled.map(|weft_engine::Compiled { outcome, was_cached, is_lasting }| {
            outcome.map(|output| Compiled { output, was_cached, is_lasting })
        }))
    }
}

/// Finds the names of the features of a kernel's plan for the host.
pub(crate) fn plan_features(
    py: Python<'_>,
    definition: &Definition,
    args: &[ArgType],
    jit: &JitOptions,
) -> PyResult<Outcome<Vec<&'static str>>> {
    let request = request(py, definition, args, options::target(py, target::HOST)?, jit, Keep::default())?;
    let names = py.detach(|| {
        let _work = fork::at_work();
        ENGINE.plan_features(&request)
    });
    names.map_err(|failure| errors::compile_error(py, &failure))
}

/// Finds the parameters of a kernel, and how it accesses them.
pub(crate) fn params(
    py: Python<'_>,
    definition: &Definition,
    args: &[ArgType],
    jit: &JitOptions,
) -> PyResult<Outcome<Vec<Param>>> {
    let request = request(py, definition, args, options::target(py, target::HOST)?, jit, Keep::default())?;
    let params = py.detach(|| {
        let _work = fork::at_work();
        ENGINE.params(&request)
    });
    params.map_err(|failure| errors::compile_error(py, &failure))
}

/// The remarks about a kernel's plan for the host.
pub(crate) fn plan_remarks(
    py: Python<'_>,
    definition: &Definition,
    args: &[ArgType],
    jit: &JitOptions,
) -> PyResult<Outcome<Vec<String>>> {
    let request = request(py, definition, args, options::target(py, target::HOST)?, jit, Keep::default())?;
    let remarks = py.detach(|| {
        let _work = fork::at_work();
        ENGINE.plan_remarks(&request)
    });
    remarks.map_err(|failure| errors::compile_error(py, &failure))
}

/// The text form of a kernel's plan for the host.
pub(crate) fn plan_text(
    py: Python<'_>,
    definition: &Definition,
    args: &[ArgType],
    jit: &JitOptions,
) -> PyResult<Outcome<String>> {
    let request = request(py, definition, args, options::target(py, target::HOST)?, jit, Keep::default())?;
    let text = py.detach(|| {
        let _work = fork::at_work();
        ENGINE.plan_text(&request)
    });
    text.map_err(|failure| errors::compile_error(py, &failure))
}

/// A function and the types of its arguments: `saxpy(float32, float32[::1])`.
fn shown(request: &Request) -> String {
    let args: Vec<String> = request.args.iter().map(ToString::to_string).collect();
    format!("{}({})", request.function.ast.name, args.join(", "))
}

/// Runs the engine without the GIL, and runs signal handlers meanwhile. An exception from a handler stops the work, and
/// is raised even if the work had already finished.
fn interruptible<T: Send>(py: Python<'_>, work: impl Fn(Poll<'_>) -> Option<T> + Sync) -> PyResult<T> {
    py.detach(|| {
        let _work = fork::at_work();
        loop {
            let raised = RefCell::new(None);
            let made = work(&|| errors::handle_signals(&raised));
            if let Some(error) = raised.into_inner() {
                return Err(error);
            }
            // In the child of a handler that forks the work begins again.
            if let Some(made) = made {
                return Ok(made);
            }
        }
    })
}

/// Finds the type that a function returns to kernels that call it with arguments of these types.
pub(crate) fn result_type(
    py: Python<'_>,
    definition: &Definition,
    args: &[ArgType],
    jit: &JitOptions,
) -> PyResult<Outcome<Option<ArgType>>> {
    // No type depends on the target.
    let mut options = jit.code.clone();
    options.interpreted = devices::interprets();
    let request = definition.request(args, options::of_capability(0, 0), options, Keep::default());
    let typed = interruptible(py, |poll| ENGINE.result_type_polled(&request, poll))?;
    typed.map_err(|failure| errors::compile_error(py, &failure))
}

/// Finds the types of a kernel's expressions for arguments of these types.
pub(crate) fn expression_types(
    py: Python<'_>,
    definition: &Definition,
    args: &[ArgType],
    jit: &JitOptions,
) -> PyResult<Outcome<(ExprTypes, SourceMap)>> {
    let mut options = jit.code.clone();
    options.interpreted = true;
    let request = definition.request(args, Target::Host(host_cpu()), options, Keep::default());
    interruptible(py, |poll| ENGINE.expression_types_polled(&request, poll))
}

/// The first bytes of a digest of a function, its argument types and its options, the same on every machine.
pub(crate) fn digest(definition: &Definition, args: &[ArgType], jit: &JitOptions) -> [u8; 8] {
    let request = definition.request(args, options::of_capability(8, 0), jit.code.clone(), Keep::default());
    let mut first = [0; 8];
    first.copy_from_slice(&Digest::of(&request).bytes()[..8]);
    first
}

/// Called before a fork: the child is not to inherit a compilation, or a lock, of a thread that it does not have. The
/// interpreter is released meanwhile, which a thread may need to end its work; all that comes after this waits.
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) {
    py.detach(|| {
        fork::hold();
        // A compilation of this thread, whose signal handler forks, continues in the child.
        if !fork::is_at_work() {
            HELD.set(Some(ENGINE.hold()));
        }
    });
    background::hold();
}

/// Called in the parent after a fork.
#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    background::release();
    drop(HELD.take());
    fork::release();
}

/// Called in the child after a fork.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    background::release_in_child();
    drop(HELD.take());
    fork::release_in_child();
    devices::after_fork();
}
