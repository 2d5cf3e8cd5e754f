//! The engine: compiles for the command and the Python package, and caches the results.
//!
//! A request has a [`Digest`], the same in every process. [`Engine::compile`] compiles each digest once: a caller whose
//! digest another thread is compiling waits for that thread, and results are cached for a while. No lock is held while
//! the compiler runs. A [`DiskCache`] shares results with other processes. The design is in
//! `docs/design/compilation-cache.md`.

mod digest;
mod disk;
mod encode;
mod ir_digests;
mod once;
/// The synchronization primitives of `once.rs`; its model test replaces them by loom's.
mod sync {
    pub(crate) use std::{
        sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
        thread::ThreadId,
    };

    /// The calling thread.
    pub(crate) fn current() -> ThreadId {
        std::thread::current().id()
    }
}

use std::{any::Any, cell::Cell, fmt, sync::Arc};

use weft_artifact::{ArgType, Param};
use weft_compiler::{
    Poll, Watch,
    diagnostic::{Code, Diagnostic, Failure},
    frontend::{ExprTypes, Variable},
    pipeline::{self, Checked, Output},
    request::{Outcome, Request},
    source::{SourceMap, Span},
};

use crate::once::{Once, OnceGuard};
pub use crate::{
    digest::{BUILD, Digest},
    disk::{About, DiskCache, Entry},
    encode::{Malformed, decode, encode},
    ir_digests::IrDigests,
};

/// The most bytes of code and strings that an engine caches: thousands of kernels, little beside the LLVM that made
/// them.
const CACHE_BYTES: usize = 64 << 20;

/// Compiles requests, each once.
pub struct Engine {
    once: Once<Digest, Outcome<Arc<Output>>, Failure>,
    disk: Option<DiskCache>,
    ir_digests: Option<IrDigests>,
}

/// An engine that compiles nothing for as long as this lives. See [`Engine::hold`].
pub struct HeldEngine<'a> {
    _once: OnceGuard<'a, Digest, Outcome<Arc<Output>>, Failure>,
}

/// Options of a caller besides the request.
pub struct Caller<'a> {
    /// Whether the result may be read from the disk and is written there.
    pub on_disk: bool,
    /// Receives the stages of a compilation.
    pub watch: Option<Watch>,
    /// Returns whether the result is still wanted.
    pub poll: Poll<'a>,
    /// Called when a compilation begins: on the caller's thread, and only if the result was not cached and no other
    /// thread makes it. Its result is dropped, on the same thread, when the compilation has ended or was given up.
    pub begin: &'a dyn Fn() -> Option<Box<dyn Any>>,
}

/// The result of a request.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The result.
    pub outcome: Outcome<Arc<Output>>,
    /// The result was not compiled for this caller: it was cached, in the process or on the disk, or another thread
    /// made it.
    pub was_cached: bool,
    /// Another process may make the same request: no address of this one is in the code.
    pub is_lasting: bool,
}

impl Engine {
    /// An engine with an empty cache and no disk cache.
    pub fn new() -> Self {
        Self::with_cache(None)
    }

    /// An engine with an empty cache, and optionally a disk cache.
    pub fn with_cache(disk: Option<DiskCache>) -> Self {
        Self { once: Once::new(CACHE_BYTES, weight), disk, ir_digests: None }
    }

    /// The same engine, which records digests of LLVM IR for each request that it compiles.
    #[must_use]
    pub fn with_ir_digests(self, ir_digests: Option<IrDigests>) -> Self {
        Self { ir_digests, ..self }
    }

    /// The disk cache.
    pub fn cache(&self) -> Option<&DiskCache> {
        self.disk.as_ref()
    }

    /// Compiles a request, once for any number of callers.
    ///
    /// # Errors
    ///
    /// All diagnostics of the kernel and the device functions that it calls, if one of them is an error. Errors are not
    /// cached: a later call compiles again.
    ///
    /// # Panics
    ///
    /// If the compiler panics. A thread that waited for the one that panicked gets an internal error.
    pub fn compile(&self, request: &Request) -> Result<Outcome<Arc<Output>>, Failure> {
        let compile = || Some(pipeline::compile(request));
        let caller = Caller { on_disk: true, watch: None, poll: &|| false, begin: &|| None };
        let made = self.made(request, &caller, compile);
        made.expect("no caller cancels it").map(|compiled| compiled.outcome)
    }

    /// As [`Engine::compile`], but polls whether the result is still wanted; `None` if not. Other callers that wait for
    /// it then compile it themselves.
    ///
    /// # Errors
    ///
    /// As [`Engine::compile`].
    ///
    /// # Panics
    ///
    /// As [`Engine::compile`].
    pub fn compile_polled(&self, request: &Request, caller: &Caller<'_>) -> Option<Result<Compiled, Failure>> {
        self.made(request, caller, || {
            let _held = (caller.begin)();
            pipeline::compile_polled(request, caller.watch.clone(), caller.poll)
        })
    }

    /// The cached result for a request's digest, in the process or on the disk, or the result of `compile`.
    fn made(
        &self,
        request: &Request,
        caller: &Caller<'_>,
        compile: impl Fn() -> Option<Result<Outcome<Output>, Failure>>,
    ) -> Option<Result<Compiled, Failure>> {
        let (digest, is_lasting) = Digest::and_is_lasting(request);
        let disk = self.disk.as_ref().filter(|_| caller.on_disk && is_lasting);
        let is_new = Cell::new(false);
        let make = || {
            if let Some(entry) = disk.and_then(|disk| disk.read(&digest))
                && let Ok(outcome) = decode(&entry)
            {
                return Some(Ok(outcome));
            }
            let made = compile()?;
            is_new.set(made.is_ok());
            if let (Some(digests), Ok(Outcome::Made(_))) = (&self.ir_digests, &made)
                && let Err(failure) = digests.record(request)
            {
                return Some(Err(failure));
            }
            Some(made.map(|outcome| outcome.map(Arc::new)))
        };
        let made = self.once.get(&digest, make, abandoned, caller.poll)?;
        if let (true, Some(disk), Ok(outcome)) = (is_new.get(), disk, &made) {
            // Callers that wait for the result do not wait for this write.
            disk.write(&digest, &about(request), &encode(outcome));
        }
        let was_cached = !is_new.get();
        Some(made.map(|outcome| Compiled { outcome: Outcome::clone(&outcome), was_cached, is_lasting }))
    }

    /// The return type of a request's function as a device function: [`pipeline::result_type_polled`]. It is not
    /// cached. `None` if the caller no longer wants it.
    ///
    /// # Errors
    ///
    /// All diagnostics of the function and those that it calls, if one of them is an error.
    pub fn result_type_polled(
        &self,
        request: &Request,
        poll: Poll<'_>,
    ) -> Option<Result<Outcome<Option<ArgType>>, Failure>> {
        self.once.alone(|| pipeline::result_type_polled(request, poll))
    }

    /// The types of the expressions of a request's kernel: [`pipeline::expression_types_polled`]. They are not cached.
    /// `None` if the caller no longer wants them.
    pub fn expression_types_polled(
        &self,
        request: &Request,
        poll: Poll<'_>,
    ) -> Option<Outcome<(ExprTypes, SourceMap)>> {
        self.once.alone(|| pipeline::expression_types_polled(request, poll))
    }

    /// The diagnostics of a request that has no errors: [`pipeline::check`]. They are not cached.
    ///
    /// # Errors
    ///
    /// As [`Engine::compile`], except for internal errors that only LLVM detects.
    pub fn check(&self, request: &Request) -> Result<Outcome<Checked>, Failure> {
        self.once.alone(|| pipeline::check(request))
    }

    /// The parameters of a request's kernel, and how it accesses them: [`pipeline::params`]. They are not cached.
    ///
    /// # Errors
    ///
    /// As [`Engine::check`].
    pub fn params(&self, request: &Request) -> Result<Outcome<Vec<Param>>, Failure> {
        self.once.alone(|| pipeline::params(request))
    }

    /// The names of the features in the plan of a request's kernel for the host: [`pipeline::plan_features`]. They are
    /// not cached.
    ///
    /// # Errors
    ///
    /// As [`Engine::check`].
    pub fn plan_features(&self, request: &Request) -> Result<Outcome<Vec<&'static str>>, Failure> {
        self.once.alone(|| pipeline::plan_features(request))
    }

    /// The text form of the plan of a request's kernel for the host: [`pipeline::plan_text`]. It is not cached.
    ///
    /// # Errors
    ///
    /// As [`Engine::check`].
    pub fn plan_text(&self, request: &Request) -> Result<Outcome<String>, Failure> {
        self.once.alone(|| pipeline::plan_text(request))
    }

    /// The remarks about the plan of a request's kernel for the host: [`pipeline::plan_remarks`]. They are not cached.
    ///
    /// # Errors
    ///
    /// As [`Engine::check`].
    pub fn plan_remarks(&self, request: &Request) -> Result<Outcome<Vec<String>>, Failure> {
        self.once.alone(|| pipeline::plan_remarks(request))
    }

    /// The text forms that the plan of a request's kernel for the host has after passes: [`pipeline::plan_trace`]. They
    /// are not cached.
    ///
    /// # Errors
    ///
    /// As [`Engine::check`].
    pub fn plan_trace(&self, request: &Request, passes: &[String]) -> Result<Outcome<String>, Failure> {
        self.once.alone(|| pipeline::plan_trace(request, passes))
    }

    /// The types of the variables of a request's kernel at their uses in its source: [`pipeline::variables`]. They are
    /// not cached.
    pub fn variables(&self, request: &Request) -> (Vec<Variable>, SourceMap) {
        self.once.alone(|| pipeline::variables(request))
    }

    /// Waits until no compilation, typing or check is running, and blocks new ones, for a fork. The child has none of
    /// the other threads; without this it would inherit locks of the engine and of LLVM that no thread releases.
    pub fn hold(&self) -> HeldEngine<'_> {
        HeldEngine { _once: self.once.hold() }
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

/// The description of a request's entry in a list of the disk cache.
fn about(request: &Request) -> About {
    About::of(&request.function.ast.name, &request.args, request.target.to_string())
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl fmt::Debug for Caller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("on_disk", &self.on_disk).finish_non_exhaustive()
    }
}

impl fmt::Debug for HeldEngine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldEngine").finish_non_exhaustive()
    }
}

/// About how many bytes a result holds.
fn weight(outcome: &Outcome<Arc<Output>>) -> usize {
    let output = match outcome {
        Outcome::Made(output) => output,
        Outcome::Queries(queries) => return size_of_val(queries.as_slice()),
    };
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let sources: usize = output.sources.files().iter().map(|file| file.text.len()).sum();
    output.artifact.code.len() + text(&output.ir) + text(&output.llvm) + text(&output.asm) + sources
}

/// The result of callers that waited for a compilation that panicked.
fn abandoned() -> Failure {
    let message = "the compiler panicked in another thread that compiled the same kernel; see the message of that \
        panic";
    Failure {
        diagnostics: vec![Diagnostic::error(Code::Internal, Span { file: u32::MAX, ..Span::default() }, message)],
        sources: SourceMap::default(),
    }
}
