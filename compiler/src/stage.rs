//! The stages of a compilation, reported to a callback that may time them: the compiler itself reads no clock.
//!
//! As with `stop`, the thread that compiles has what it tells, so that no stage hands it on.

use std::{cell::RefCell, fmt, sync::Arc};

/// The stage that a compilation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Names and types: from the tree to weft's IR.
    FrontEnd,
    /// weft's passes over it.
    Passes,
    /// The estimate among them of how many threads one is to do the work of.
    Estimate,
    /// LLVM itself: its targets, once a process, a context and a target machine.
    SetUp,
    /// From weft's IR to LLVM's.
    LlvmIr,
    /// Functions of the math library are read and linked: only where there are some.
    MathLibrary,
    /// LLVM's verifier.
    Verifier,
    /// LLVM's passes.
    LlvmPasses,
    /// The target's changes after them.
    Legalize,
    /// LLVM's code generation.
    Code,
    /// The code is made: what is left is to hand it over.
    Result,
}

/// As a table of times shows it.
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

/// How large LLVM's module is.
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
    /// A stage begins.
    Begins(Stage),
    /// LLVM's module before its passes, and as the code generator gets it.
    Holds(Size),
}

/// The callback of a compilation, called on the thread that compiles.
pub type Watch = Arc<dyn Fn(StageEvent) + Send + Sync>;

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Sets the callback of this thread.
pub(crate) fn tell(watch: Option<Watch>) {
    WATCH.set(watch);
}

/// A stage begins.
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
