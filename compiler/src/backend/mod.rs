//! From IR to code, through LLVM. The only user of inkwell.

use weft_artifact::Artifact;

use crate::{
    diagnostic::{Code, Diagnostic},
    ir::Module,
    request::Request,
    source::Span,
};

/// Code, and the texts that were asked for.
#[derive(Clone, Debug)]
pub struct Emitted {
    /// The code and its ABI.
    pub artifact: Artifact,
    /// LLVM IR after LLVM's passes.
    pub llvm: Option<String>,
    /// Host assembly.
    pub asm: Option<String>,
}

/// Emits a verified module for the request's target.
///
/// # Errors
///
/// `E0901`, a fault of weft's own, with LLVM's message and the IR.
pub fn emit(_module: &Module, _request: &Request) -> Result<Emitted, Diagnostic> {
    Err(Diagnostic::error(Code::Internal, Span::default(), "no back end"))
}
