//! The stages of a compilation, told to whoever wants to know how long each takes: the compiler itself reads no clock.
//!
//! As with `stop`, the thread that compiles has what it tells, so that no stage hands it on.

use std::{cell::RefCell, fmt, sync::Arc};

/// What a compilation does from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Names and types: from the tree to weft's IR.
    FrontEnd,
    /// weft's passes over it.
    Passes,
    /// From weft's IR to LLVM's.
    LlvmIr,
    /// LLVM's passes.
    LlvmPasses,
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
            Self::LlvmIr => "LLVM IR",
            Self::LlvmPasses => "LLVM's passes",
            Self::Code => "LLVM's code",
            Self::Result => "result",
        })
    }
}

/// Who is told of each stage when it begins, on the thread that compiles.
pub type Watch = Arc<dyn Fn(Stage) + Send + Sync>;

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// From now on this thread tells of its stages.
pub(crate) fn tell(watch: Option<Watch>) {
    WATCH.set(watch);
}

/// A stage begins.
pub(crate) fn begin(stage: Stage) {
    let watch = WATCH.with_borrow(Clone::clone);
    if let Some(watch) = watch {
        watch(stage);
    }
}
