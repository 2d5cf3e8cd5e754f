//! The engine: what a process keeps between the compiler and its faces, the command and the Python package.
//!
//! A request has a [`Digest`], the same in every process. [`Engine::compile`] compiles each digest once: whoever asks
//! for one that another thread is compiling waits for that thread, and what was compiled is kept for a while. No lock
//! is held while the compiler runs. The design is in `docs/design/engine.md`.

mod digest;
mod once;
/// What `once.rs` waits with; its model test puts loom's in their place.
mod sync {
    pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
}

use std::{fmt, sync::Arc};

use weft_compiler::{
    diagnostic::{Code, Diagnostic, Failure},
    pipeline::{self, Output},
    request::Request,
    source::{SourceMap, Span},
};

pub use crate::digest::Digest;
use crate::once::{Held, Once};

/// The most bytes of code and texts that an engine keeps: thousands of kernels, little beside the LLVM that made them.
const KEPT_BYTES: usize = 64 << 20;

/// Compiles requests, each once.
pub struct Engine {
    once: Once<Digest, Output, Failure>,
}

/// An engine that compiles nothing for as long as this lives. See [`Engine::hold`].
pub struct HeldEngine<'a> {
    _once: Held<'a, Digest, Output, Failure>,
}

impl Engine {
    /// An engine that has compiled nothing.
    pub fn new() -> Self {
        Self { once: Once::new(KEPT_BYTES, weight) }
    }

    /// What a request compiles to.
    ///
    /// # Errors
    ///
    /// All diagnostics of the kernel and the device functions that it calls, if one of them is an error. Errors are
    /// not kept: whoever asks later compiles again.
    ///
    /// # Panics
    ///
    /// Where the compiler does. A thread that waited for the one that panicked gets an internal error.
    pub fn compile(&self, request: &Request) -> Result<Arc<Output>, Failure> {
        self.once.get(Digest::of(request), || pipeline::compile(request), abandoned)
    }

    /// Waits until nothing is being compiled, and holds the engine still, for a fork: the child, which has none of the
    /// other threads, would else inherit locks of theirs, of the engine's and of LLVM's, that nobody gives back.
    pub fn hold(&self) -> HeldEngine<'_> {
        HeldEngine { _once: self.once.hold() }
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl fmt::Debug for HeldEngine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldEngine").finish_non_exhaustive()
    }
}

/// About how many bytes a result holds.
fn weight(output: &Output) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let sources: usize = output.sources.files().iter().map(|file| file.text.len()).sum();
    output.artifact.code.len() + text(&output.ir) + text(&output.llvm) + text(&output.asm) + sources
}

/// What those get who waited for a compilation that panicked.
fn abandoned() -> Failure {
    let message = "the compiler panicked in another thread that compiles the same kernel; its message says where";
    Failure {
        diagnostics: vec![Diagnostic::error(Code::Internal, Span { file: u32::MAX, ..Span::default() }, message)],
        sources: SourceMap::default(),
    }
}
