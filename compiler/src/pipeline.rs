//! The compiler, stage by stage.

use weft_artifact::{ArgType, Artifact, CodeFormat};

use crate::{
    backend,
    diagnostic::{Diagnostic, Failure},
    frontend, passes,
    request::{Ask, Request},
    source::SourceMap,
    stack,
};

/// What a compilation gives.
#[derive(Clone, Debug)]
pub struct Output {
    /// Code and ABI.
    pub artifact: Artifact,
    /// What a function for other code returns; nothing for a kernel.
    pub returns: Option<ArgType>,
    /// weft's IR after its passes, if asked for.
    pub ir: Option<String>,
    /// LLVM IR after LLVM's passes, if asked for.
    pub llvm: Option<String>,
    /// Host assembly, if asked for.
    pub asm: Option<String>,
    /// Calls of overloaded functions of which the request does not say which implementation they have. There is no code
    /// then: whoever made the request adds the answers ([`crate::request::Answer`]) and asks again.
    pub asks: Vec<Ask>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
    /// The files that spans refer to.
    pub sources: SourceMap,
}

/// Finds what [`compile`] rejects, and makes no code. Gives the warnings, and the files that their spans refer to.
///
/// # Errors
///
/// As [`compile`], but for the faults of weft's own that only LLVM finds.
pub fn check(request: &Request) -> Result<(Vec<Diagnostic>, SourceMap), Failure> {
    stack::on_large(|| check_here(request))
}

fn check_here(request: &Request) -> Result<(Vec<Diagnostic>, SourceMap), Failure> {
    let frontend::Lowered { mut module, warnings, sources, asks } = frontend::lower(request)?;
    if !asks.is_empty() {
        return Ok((warnings, sources));
    }
    let checked = passes::run(&mut module, &request.target).and_then(|()| backend::check(&module));
    match checked {
        Ok(()) => Ok((warnings, sources)),
        Err(diagnostic) => Err(Failure { diagnostics: vec![diagnostic], sources }),
    }
}

/// Finds the type of what a device function returns for one tuple of argument types, and makes no code; `None` where that
/// is nothing that can be passed on. It may ask as [`compile`] does ([`Output::asks`]).
///
/// # Errors
///
/// All diagnostics of the function and those that it calls, if one of them is an error.
pub fn result_type(request: &Request) -> Result<(Option<ArgType>, Vec<Ask>), Failure> {
    stack::on_large(|| frontend::result_type(request))
}

/// Compiles one kernel for one tuple of argument types.
///
/// # Errors
///
/// All diagnostics of the kernel and the device functions that it calls, if one of them is an error.
pub fn compile(request: &Request) -> Result<Output, Failure> {
    stack::on_large(|| stages(request))
}

fn stages(request: &Request) -> Result<Output, Failure> {
    let lowered = frontend::lower(request)?;
    if !lowered.asks.is_empty() {
        let target = request.target.to_string();
        return Ok(Output {
            artifact: Artifact { format: CodeFormat::Ptx, target, code: Vec::new(), kernels: Vec::new() },
            returns: None,
            ir: None,
            llvm: None,
            asm: None,
            asks: lowered.asks,
            warnings: Vec::new(),
            sources: lowered.sources,
        });
    }
    let mut module = lowered.module;
    let fail = |diagnostic: Diagnostic| Failure { diagnostics: vec![diagnostic], sources: lowered.sources.clone() };
    passes::run(&mut module, &request.target).map_err(fail)?;
    let emitted = backend::emit(&module, request).map_err(fail)?;
    Ok(Output {
        artifact: emitted.artifact,
        returns: module.returns.clone(),
        ir: request.keep.ir.then(|| module.to_string()),
        llvm: emitted.llvm,
        asm: emitted.asm,
        asks: Vec::new(),
        warnings: lowered.warnings,
        sources: lowered.sources,
    })
}
