//! Selects the kernels of a file to compile, and their argument types.

use std::{fs, path::Path, sync::Arc};

use weft_compiler::{
    diagnostic::{Code, Diagnostic, Failure, Severity, closest},
    request::{FunctionDef, Signature},
    signature::parse_signature,
    source::{SourceFile, SourceMap, Span},
};

use crate::{
    args::KernelArgs,
    program::{Captures, KernelDef, Missed, Program},
    report::{Report, Stop},
};

/// One kernel for one signature.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) kernel: KernelDef<'a>,
    pub(crate) def: Arc<FunctionDef>,
    pub(crate) signature: Signature,
    /// Its number among the kernel's signatures, from 1, if there are several.
    pub(crate) number: Option<usize>,
    /// Whether it is a device function for other programs.
    pub(crate) is_function: bool,
}

impl Job<'_> {
    /// A title such as `saxpy(float32, array(float32, 1d, C))`.
    pub(crate) fn title(&self) -> String {
        let args: Vec<String> = self.signature.args.iter().map(ToString::to_string).collect();
        format!("{}({})", self.kernel.name, args.join(", "))
    }
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Program, Stop> {
    let bytes = fs::read(path).map_err(|error| Stop::Usage(format!("cannot read {}: {error}", path.display())))?;
    Ok(Program::read(path, &bytes))
}

/// Parses the signatures of `--sig`. Errors are added to the report.
pub(crate) fn given_signatures(args: &KernelArgs, report: &mut Report) -> Vec<Signature> {
    let mut signatures = Vec::new();
    for text in &args.sig {
        match parse_signature(text) {
            Ok(signature) => signatures.push(signature),
            Err(fault) => report.add_in(fault, SourceFile::new("--sig", text.as_str())),
        }
    }
    signatures
}

/// The kernels that the command line selects. Without a selection, all kernels. Names that are not in the file are
/// added to the report.
pub(crate) fn select<'a>(
    program: &'a Program,
    path: &Path,
    names: &[String],
    report: &mut Report,
) -> Vec<KernelDef<'a>> {
    let kernels = program.kernels();
    if names.is_empty() {
        return kernels;
    }
    let jitted = program.jitted();
    let mut selected = Vec::new();
    for name in names {
        match jitted.iter().find(|kernel| kernel.name == name && !kernel.jit.options.device) {
            Some(kernel) => selected.push(*kernel),
            None => match program.missed().find(|missed| missed.name == *name) {
                Some(missed) => {
                    let mut error = missed.warning();
                    error.severity = Severity::Error;
                    report.add(&[error], &program.sources());
                }
                None => report.add_nowhere(no_kernel(name, path, &kernels, &jitted)),
            },
        }
    }
    selected
}

/// The device functions that the command line selects. Names that are not in the file are added to the report.
pub(crate) fn select_functions<'a>(
    program: &'a Program,
    path: &Path,
    names: &[String],
    report: &mut Report,
) -> Vec<KernelDef<'a>> {
    let jitted = program.jitted();
    let mut selected = Vec::new();
    for name in names {
        if let Some(function) = jitted.iter().find(|function| function.name == name) {
            selected.push(*function);
            continue;
        }
        let message = format!("{} has no jitted function `{name}`", path.display());
        let error = Diagnostic::error(Code::NoKernel, Span::default(), message);
        let known: Vec<&str> = jitted.iter().map(|function| function.name).collect();
        report.add_nowhere(match closest(name, known.iter().copied()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.note("only functions with `@cuda.jit` can be compiled"),
        });
    }
    selected
}

/// Warnings about kernels that are not at the top level and therefore not compiled. Empty if kernels were selected by
/// name.
pub(crate) fn missed(program: &Program, names: &[String]) -> Vec<Diagnostic> {
    if names.is_empty() { program.missed().map(Missed::warning).collect() } else { Vec::new() }
}

fn no_kernel(name: &str, path: &Path, kernels: &[KernelDef<'_>], jitted: &[KernelDef<'_>]) -> Diagnostic {
    let error =
        Diagnostic::error(Code::NoKernel, Span::default(), format!("{} has no kernel `{name}`", path.display()));
    if jitted.iter().any(|device| device.name == name) {
        let error = error.note(format!("`{name}` is a device function: it is compiled with the kernels that call it"));
        return error.help(format!("use `weft emit --function {name}` to compile it alone, for other programs"));
    }
    let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name).collect();
    match closest(name, names.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if names.is_empty() => error.note("it has no kernels at all: functions with `@cuda.jit` are kernels"),
        None => error.note(format!("its kernels are {}", names.join(", "))),
    }
}

/// The compilations of a kernel: one for each given signature, or else for each signature in the file.
pub(crate) fn jobs<'a>(
    program: &Program,
    kernel: KernelDef<'a>,
    given: &[Signature],
    captures: &mut Captures,
) -> Vec<Job<'a>> {
    let signatures = if given.is_empty() { program.signatures(&kernel) } else { given.to_vec() };
    let Some(def) = program.function_def(kernel.index, captures) else { return Vec::new() };
    let several = signatures.len() > 1;
    let numbered = signatures.into_iter().enumerate();
    numbered
        .map(|(i, signature)| Job {
            kernel,
            def: Arc::clone(&def),
            signature,
            number: several.then_some(i + 1),
            is_function: false,
        })
        .collect()
}

/// The compilations of a device function for other programs. Its result is converted to the signature's return type.
pub(crate) fn function_jobs<'a>(
    program: &Program,
    function: KernelDef<'a>,
    given: &[Signature],
    captures: &mut Captures,
) -> Vec<Job<'a>> {
    let mut jobs = jobs(program, function, given, captures);
    for job in &mut jobs {
        job.def = Arc::new(FunctionDef { signatures: vec![job.signature.clone()], ..FunctionDef::clone(&job.def) });
        job.is_function = true;
    }
    jobs
}

/// The error of a kernel that has no signature.
pub(crate) fn no_signature(kernel: &KernelDef<'_>) -> Diagnostic {
    let ast = &kernel.function.ast;
    let types: Vec<String> = ast.params.iter().map(|param| format!("<type of {}>", param.name)).collect();
    let bare = ast.params.iter().filter(|param| param.annotation.is_none()).count();
    let message = format!("the kernel `{}` has no signature to compile for", kernel.name);
    let error = Diagnostic::error(Code::NoSignature, ast.name_span, message).help(format!(
        "give the types, such as float32 or float32[::1], on the command line: `--sig \"void({0})\"`; or in the \
         decorator: `@cuda.jit(\"void({0})\")`; or as an annotation of each parameter; or in a comment above the \
         kernel: `# weft: sig = \"void({0})\"`",
        types.join(", ")
    ));
    if bare < ast.params.len() {
        let unread =
            if bare == 0 { "not every annotation is a weft type" } else { "not every parameter has an annotation" };
        return error.note(unread);
    }
    error
}

/// The error of a kernel whose signature has a return type.
pub(crate) fn returning(job: &Job<'_>) -> Option<Diagnostic> {
    let returns = job.signature.returns.as_ref().filter(|_| !job.is_function)?;
    let message = format!("the kernel `{}` is declared to return {returns}", job.kernel.name);
    let error = Diagnostic::error(Code::KernelReturns, job.kernel.function.ast.name_span, message);
    Some(error.help("declare the kernel with `void`, or the function with `device=True` if kernels call it"))
}

/// The failure of a compilation that queries the implementation of an overloaded call. Files read by the command have
/// no such calls.
pub(crate) fn unanswered(def: &FunctionDef) -> Failure {
    let mut sources = SourceMap::default();
    let span = Span { file: sources.add(&def.source), ..def.ast.name_span };
    let message = format!("`{}` calls an overloaded function without an implementation", def.ast.name);
    Failure { diagnostics: vec![Diagnostic::error(Code::Internal, span, message)], sources }
}
