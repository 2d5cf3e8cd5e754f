//! The compiler, stage by stage.

use weft_artifact::{ArgType, Artifact, Factors, Param, Tools};

use crate::{
    autodiff, backend,
    diagnostic::{Diagnostic, Failure},
    frontend::{self, ExprTypes, Variable},
    passes,
    request::{Entry, GpuCode, Keep, Options, Outcome, Request, Target},
    source::SourceMap,
    stack,
    stage::{self, Stage, Watch},
    stop::Poll,
};

/// The result of a compilation.
#[derive(Clone, Debug)]
pub struct Output {
    /// Code and ABI; the ABI alone if the [estimate](Options::choose) was requested for a GPU.
    pub artifact: Artifact,
    /// The return type of a function for other code; `None` for a kernel.
    pub returns: Option<ArgType>,
    /// weft's IR after its passes, if requested.
    pub ir: Option<String>,
    /// LLVM IR after LLVM's passes, if requested.
    pub llvm: Option<String>,
    /// Host assembly, if requested.
    pub asm: Option<String>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
    /// The files that spans refer to.
    pub sources: SourceMap,
}

/// The result of a check without errors.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
    /// The files that their spans refer to.
    pub sources: SourceMap,
}

/// Reports the errors that [`compile`] would report, without generating code.
///
/// # Errors
///
/// As [`compile`], except for internal errors that only LLVM detects.
pub fn check(request: &Request) -> Result<Outcome<Checked>, Failure> {
    stack::on_large(|| {
        let (mut module, checked) = match frontend::lower(request)? {
            Outcome::Made(lowered) => {
                let frontend::Lowered { mut module, warnings, sources } = prepared(lowered, request)?;
                module.choose = false;
                (module, Checked { warnings, sources })
            }
            Outcome::Queries(queries) => return Ok(Outcome::Queries(queries)),
        };
        match passes::run(&mut module, &request.target, |_| {}).and_then(|()| backend::check(&module, request)) {
            Ok(()) => Ok(Outcome::Made(checked)),
            Err(diagnostic) => Err(Failure { diagnostics: vec![diagnostic], sources: checked.sources }),
        }
    })
}

/// Finds the types of the variables of a kernel and of the functions that it calls, at their uses in the source.
/// Variables whose types cannot be inferred are omitted. The files are those that the locations refer to.
pub fn variables(request: &Request) -> (Vec<Variable>, SourceMap) {
    stack::on_large(|| frontend::variables(request))
}

/// Finds the types of the expressions of a kernel and of the functions that it calls. Expressions whose types cannot be
/// inferred are omitted, and no errors are reported. `None` if `poll` gives the work up.
pub fn expression_types_polled(request: &Request, poll: Poll<'_>) -> Option<Outcome<(ExprTypes, SourceMap)>> {
    let request = request.clone();
    stack::polled(move || frontend::expression_types(&request), poll)
}

/// Finds the return type of a device function for one tuple of argument types, without generating code; `None` if the
/// returned value cannot be an argument.
///
/// # Errors
///
/// All diagnostics of the function and those that it calls, if one of them is an error.
pub fn result_type(request: &Request) -> Result<Outcome<Option<ArgType>>, Failure> {
    stack::on_large(|| frontend::result_type(request))
}

/// As [`result_type`], but calls `poll` repeatedly. `None` if it gives the work up.
///
/// # Errors
///
/// As [`result_type`].
pub fn result_type_polled(request: &Request, poll: Poll<'_>) -> Option<Result<Outcome<Option<ArgType>>, Failure>> {
    let request = request.clone();
    stack::polled(move || frontend::result_type(&request), poll)
}

/// Compiles one kernel for one tuple of argument types.
///
/// # Errors
///
/// All diagnostics of the kernel and the device functions that it calls, if one of them is an error.
pub fn compile(request: &Request) -> Result<Outcome<Output>, Failure> {
    stack::on_large(|| stages(request))
}

/// Returns the LLVM IR that LLVM's passes would get.
///
/// # Errors
///
/// As [`compile`], except for internal errors that only LLVM's passes detect.
pub fn unoptimized_llvm(request: &Request) -> Result<Outcome<String>, Failure> {
    let request = Request { keep: Keep { unoptimized: true, ..Keep::default() }, ..request.clone() };
    let made = stack::on_large(|| stages(&request))?;
    Ok(made.map(|output| output.llvm.unwrap_or_default()))
}

/// As [`compile`], but calls `poll` repeatedly. `None` if it gives the work up. `watch` receives each stage.
///
/// # Errors
///
/// As [`compile`].
pub fn compile_polled(
    request: &Request,
    watch: Option<Watch>,
    poll: Poll<'_>,
) -> Option<Result<Outcome<Output>, Failure>> {
    let request = request.clone();
    let work = move || {
        stage::set_watch(watch);
        stages(&request)
    };
    stack::polled(work, poll)
}

/// The coarsening factors, and whether to estimate better ones.
fn coarsen(request: &Request) -> (Factors, bool) {
    let Options { coarsen, choose, .. } = request.options;
    // Other code that launches the kernel uses its own block size, so the kernel is not coarsened.
    if request.options.entry == Entry::Launch { (coarsen, choose) } else { (Factors::NONE, false) }
}

/// The sanitizer's checks for code for the CPU; code for a GPU has none.
fn sanitize(request: &Request) -> Tools {
    if matches!(request.target, Target::Host(_)) { request.options.sanitize } else { Tools::NONE }
}

/// Finds the names of the features in the execution plan of a kernel for the host, without generating code.
/// `docs/design/cpu-plans.md` lists them.
///
/// # Errors
///
/// As [`check`].
pub fn plan_features(request: &Request) -> Result<Outcome<Vec<&'static str>>, Failure> {
    planned(request, |lowered| backend::plan_features(&lowered.module, request))
}

/// Returns the text form of the plan of a kernel for the host, without generating code. `docs/design/cpu-plans.md`
/// describes it.
///
/// # Errors
///
/// As [`check`].
pub fn plan_text(request: &Request) -> Result<Outcome<String>, Failure> {
    planned(request, |lowered| backend::plan_text(&lowered.module, request))
}

/// Returns what the planner for the host did with each parallel region, loop and access of a kernel, and why it left
/// loops as they are. Generates no code.
///
/// # Errors
///
/// As [`check`].
pub fn plan_remarks(request: &Request) -> Result<Outcome<Vec<String>>, Failure> {
    planned(request, |lowered| backend::plan_remarks(&lowered.module, request))
}

/// Returns the text forms that the plan of a kernel for the host has after passes of the planner, without generating
/// code. `all` stands for every pass.
///
/// # Errors
///
/// As [`check`].
pub fn plan_trace(request: &Request, passes: &[String]) -> Result<Outcome<String>, Failure> {
    planned(request, |lowered| backend::plan_trace(&lowered.module, request, passes))
}

/// Finds the parameters of a kernel, and how it accesses each of them, without generating code.
///
/// # Errors
///
/// As [`check`].
pub fn params(request: &Request) -> Result<Outcome<Vec<Param>>, Failure> {
    planned(request, |lowered| Ok(lowered.module.params.clone()))
}

/// A result that is computed without generating code.
fn planned<T: Send>(
    request: &Request,
    result: impl FnOnce(&frontend::Lowered) -> Result<T, Diagnostic> + Send,
) -> Result<Outcome<T>, Failure> {
    stack::on_large(|| {
        let mut lowered = match frontend::lower(request)? {
            Outcome::Made(lowered) => prepared(lowered, request)?,
            Outcome::Queries(queries) => return Ok(Outcome::Queries(queries)),
        };
        match passes::run(&mut lowered.module, &request.target, |_| {}).and_then(|()| result(&lowered)) {
            Ok(result) => Ok(Outcome::Made(result)),
            Err(diagnostic) => Err(Failure { diagnostics: vec![diagnostic], sources: lowered.sources }),
        }
    })
}

/// Copies the options that the passes and the back end need into the module, and differentiates the kernel if that is
/// requested.
fn prepared(mut lowered: frontend::Lowered, request: &Request) -> Result<frontend::Lowered, Failure> {
    let module = &mut lowered.module;
    module.bounded_stores = request.options.bounded_stores;
    module.assumptions = request.options.assumptions;
    module.short_extents.clone_from(&request.options.short_extents);
    module.likely_block = request.options.likely_block;
    module.sanitize = sanitize(request);
    // Two kernels with scratch memory compute the same values: nothing is fused, which may depend on the uses of a value.
    module.reproducible = request.options.reproducible && !request.options.has_scratch();
    (module.coarsen, module.choose) = coarsen(request);
    if let Some(derivative) = &request.options.derivative {
        let is_ordered = derivative.has_sums || module.reproducible;
        // A CPU divides by one instruction, NVVM IR has no other quotient, and with `fastmath` all are approximations.
        let options = &request.options;
        let is_ptx = matches!(request.target, Target::Sm(..)) && !matches!(options.gpu_code, GpuCode::NvvmIr { .. });
        let rounds = module.reproducible || options.fastmath || !is_ptx;
        autodiff::differentiate(module, derivative, (is_ordered, rounds))
            .map_err(|diagnostic| Failure { diagnostics: vec![diagnostic], sources: lowered.sources.clone() })?;
    }
    Ok(lowered)
}

fn stages(request: &Request) -> Result<Outcome<Output>, Failure> {
    stage::begin(Stage::FrontEnd);
    let frontend::Lowered { mut module, warnings, sources } = match frontend::lower(request)? {
        Outcome::Made(lowered) => prepared(lowered, request)?,
        Outcome::Queries(queries) => return Ok(Outcome::Queries(queries)),
    };
    let fail = |diagnostic: Diagnostic| Failure { diagnostics: vec![diagnostic], sources: sources.clone() };
    stage::begin(Stage::Passes);
    let estimates = module.choose;
    let on_pass = |pass: &passes::Pass| {
        stage::begin(if estimates && pass.estimates { Stage::Estimate } else { Stage::Passes });
    };
    passes::run(&mut module, &request.target, on_pass).map_err(fail)?;
    let emitted = if matches!(request.target, Target::Sm(..)) && module.choose {
        backend::describe(&module, request).map_err(fail)?
    } else {
        stage::begin(Stage::LlvmIr);
        backend::emit(&module, request).map_err(fail)?
    };
    stage::begin(Stage::Result);
    Ok(Outcome::Made(Output {
        artifact: emitted.artifact,
        returns: module.returns.clone(),
        ir: request.keep.ir.then(|| module.to_string()),
        llvm: emitted.llvm,
        asm: emitted.asm,
        warnings,
        sources,
    }))
}
