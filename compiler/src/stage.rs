//! The stages of a compilation, reported to a callback that may time them. The compiler itself reads no clock.
//!
//! As in `stop`, the callback is thread-local, so stages do not pass it on.

use std::{cell::RefCell, fmt, sync::Arc};

/// The current stage of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Name resolution and typing: from the syntax tree to weft's IR.
    FrontEnd,
    /// weft's passes over its IR.
    Passes,
    /// The pass that estimates coarsening factors.
    Estimate,
    /// LLVM's setup: its targets, once per process, a context and a target machine.
    SetUp,
    /// Lowering from weft's IR to LLVM's.
    LlvmIr,
    /// The math library is read and linked, if the kernel calls its functions.
    MathLibrary,
    /// LLVM's verifier.
    Verifier,
    /// LLVM's passes.
    LlvmPasses,
    /// The target's passes after LLVM's.
    Legalize,
    /// LLVM's code generation.
    Code,
    /// The code is complete; only the result is assembled and returned.
    Result,
}

/// The name in a table of times.
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FrontEnd => "front end",
            Self::Passes => "passes",
            Self::Estimate => "estimate",
            Self::SetUp => "LLVM's set-up",
            Self::LlvmIr => "LLVM IR",
            Self::MathLibrary => "math library",
            Self::Verifier => "verifier",
            Self::LlvmPasses => "LLVM's passes",
            Self::Legalize => "legalize",
            Self::Code => "LLVM's code",
            Self::Result => "result",
        })
    }
}

/// The size of LLVM's module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Functions with a body, including the math library's.
    pub functions: u64,
    /// Their instructions.
    pub instructions: u64,
}

/// An event of a compilation, for progress reports and timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageEvent {
    /// A stage starts.
    Begins(Stage),
    /// The size of LLVM's module before its passes, and before code generation.
    Holds(Size),
}

/// The callback of a compilation, called on the thread that compiles.
pub type Watch = Arc<dyn Fn(StageEvent) + Send + Sync>;

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Sets the callback of this thread.
pub(crate) fn set_watch(watch: Option<Watch>) {
    WATCH.set(watch);
}

/// Reports the start of a stage.
pub(crate) fn begin(stage: Stage) {
    let watch = WATCH.with_borrow(Clone::clone);
    if let Some(watch) = watch {
        watch(StageEvent::Begins(stage));
    }
}

/// Reports the size of LLVM's module, if there is a callback.
pub(crate) fn holds(size: impl FnOnce() -> Size) {
    let watch = WATCH.with_borrow(Clone::clone);
    if let Some(watch) = watch {
        watch(StageEvent::Holds(size()));
    }
}
