//! Reasons why passes leave loops as they are. The code that decides returns them.

use crate::{backend::host::plan::analysis::source_lines::at, ir::Module, source::Span};

/// Control flow that differs between threads, so that a barrier inside needs a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Divergence {
    /// A branch with this condition.
    Branch(Span),
    /// A loop that threads leave in different iterations, because of this condition.
    Exit(Span),
    /// A loop in which threads skip the rest of different iterations, because of this condition.
    Continue(Span),
    /// A `return` that some threads execute.
    Return(Span),
}

/// The masks that the nodes of a body need.
#[derive(Clone, Debug)]
pub(crate) struct Masks {
    /// The number of masks.
    pub count: u32,
    /// The divergent control flow that needs them, in program order.
    pub divergences: Vec<Divergence>,
}

impl Masks {
    /// Why a body needs masks that the body `before` it does not need; `None` if it needs no other ones.
    pub(crate) fn excess(&self, before: &Self) -> Option<Refusal> {
        let more = self.divergences.iter().find(|divergence| !before.divergences.contains(divergence));
        match more {
            Some(&divergence) => Some(Refusal::Divergent(divergence)),
            None => (self.count > before.count).then_some(Refusal::Mask),
        }
    }
}

/// A transformation that a pass tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transformation {
    /// [`interchange`](crate::backend::host::plan::loops::interchange).
    Interchange,
    /// [`masked_exits`](crate::backend::host::plan::loops::masked_exits).
    Mask,
    /// [`strip_mine`](crate::backend::host::plan::vector::strip_mine).
    Strips,
}

/// A loop that a pass left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The loop in the program.
    pub span: Span,
    /// What the pass tried.
    pub what: Transformation,
    /// Why it did not succeed.
    pub why: Refusal,
}

/// Why a transformation of a loop is illegal or does not pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The loop, or control flow around it, differs between threads.
    Divergent(Divergence),
    /// A statement contains an operation, such as an atomic one.
    Operation(Span),
    /// A statement calls a function.
    Call(Span),
    /// A statement returns from the kernel.
    Return(Span),
    /// An expression accesses an array of the thread.
    ThreadArray(Span),
    /// An array of the thread has a use that is no load or store of an element.
    ArrayEscapes(Span),
    /// Each index of an array of the thread that is not constant differs between threads.
    OwnIndices,
    /// The arrays of the threads of a strip do not fit into the nearest cache.
    LargeArrays,
    /// The loop contains a loop that is not interchanged.
    InnerLoop(Span),
    /// Threads that have left the loop would count on.
    CounterStops,
    /// The condition around the loop holds for one thread of a row.
    OneThread,
    /// LLVM unrolls the loop.
    FewIterations,
    /// An access without unit stride.
    Strided(Span),
    /// An access without unit stride, in a loop without a recurrence that several threads could interleave.
    StridedWithoutRecurrence(Span),
    /// An access whose index is loaded.
    Gather(Span),
    /// A division of integers, or a power, that LLVM computes lane by lane.
    Divides(Span),
    /// Calls of math functions that LLVM does not vectorize.
    Math,
    /// LLVM vectorizes the iterations of each thread.
    WithinThread,
    /// A node of the loop is a barrier of the program.
    Barrier,
    /// A node of the loop has a mask in memory.
    Mask,
    /// A node of the loop is a warp region.
    WarpRegion,
    /// A node of the loop runs for other threads than the nodes around it.
    OtherThreads,
    /// A node of the loop has a guard of its own.
    OwnGuard,
    /// A parallel region of the loop has copies for parts of the threads.
    PartsOfRows,
    /// A parallel region of the loop has a divergent jump.
    DivergentJump,
    /// The trip count is not known before the loop.
    NotCounted,
    /// The threads of a strip would have to be those of a stride, which is unknown or too large.
    StrideTooLarge,
    /// The code is too large to be duplicated.
    TooLarge,
    /// The loop has few iterations, and its rows share no loads.
    NoTile,
    /// Memory limits the loop.
    Streams,
    /// No thread carries a value from iteration to iteration.
    CarriesNothing,
    /// The strip combines transformations that exclude each other.
    Combination,
    /// The kernel has too many parallel regions.
    ManyRegions,
    /// The trip counts of lanes differ, and the accesses of the strip cannot be transposed.
    NotTransposed,
}

/// Why the accesses of a parallel region are not annotated as independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordered {
    /// Other threads may observe when an operation executes.
    Observed(Span),
    /// The same for operations of a called function, or the function has arrays of the thread.
    Call(Span),
    /// All threads use the memory of an array of the thread.
    ThreadArray,
    /// A thread may access memory that it has written before.
    Dependence(Span),
}

impl Ordered {
    /// The reason as a clause.
    pub(crate) fn clause(self, module: &Module) -> String {
        match self {
            Self::Observed(span) => format!("{}: other threads may observe the order", at(module, span)),
            Self::Call(span) => format!("{}: the function orders threads, or has local arrays", at(module, span)),
            Self::ThreadArray => "the threads use the memory of a local array one after the other".to_owned(),
            Self::Dependence(span) => {
                format!("{}: the thread may have written this memory before", at(module, span))
            }
        }
    }
}

impl Refusal {
    /// The reason as a clause.
    pub(crate) fn clause(self, module: &Module) -> String {
        let at = |span: Span| at(module, span);
        match self {
            Self::Divergent(Divergence::Branch(span)) => {
                format!("{}: the condition around it differs between threads", at(span))
            }
            Self::Divergent(Divergence::Exit(span)) => {
                format!("{}: the trip count differs between threads", at(span))
            }
            Self::Divergent(Divergence::Continue(span)) => {
                format!("{}: threads skip the rest of different iterations", at(span))
            }
            Self::Divergent(Divergence::Return(span)) => {
                format!("{}: some threads return and others go on", at(span))
            }
            Self::Operation(span) => format!("{}: an operation that is not a plain load or store", at(span)),
            Self::Call(span) => format!("{}: a call of a function that is not inlined", at(span)),
            Self::Return(span) => format!("{}: a `return` in the loop", at(span)),
            Self::ThreadArray(span) => format!("{}: an access to an array of the thread", at(span)),
            Self::ArrayEscapes(span) => {
                format!("{}: an array of the thread is used other than by its elements", at(span))
            }
            Self::OwnIndices => "threads access different elements".to_owned(),
            Self::LargeArrays => "the arrays of the threads do not fit into the nearest cache".to_owned(),
            Self::InnerLoop(span) => format!("{}: the loop inside is not interchanged", at(span)),
            Self::CounterStops => "the counter must stop for threads that have left the loop".to_owned(),
            Self::OneThread => "one thread of a row runs it".to_owned(),
            Self::FewIterations => "its test compares with a small constant, so LLVM may unroll it".to_owned(),
            Self::Strided(span) => format!("{}: neighboring threads access elements that are not contiguous", at(span)),
            Self::StridedWithoutRecurrence(span) => format!(
                "{}: neighboring threads access elements that are not contiguous, and no iteration waits for the one \
                 before",
                at(span)
            ),
            Self::Gather(span) => format!("{}: the index is loaded", at(span)),
            Self::Divides(span) => format!("{}: LLVM computes this lane by lane", at(span)),
            Self::Math => "it calls math functions that LLVM does not vectorize here".to_owned(),
            Self::WithinThread => "LLVM vectorizes the iterations of each thread".to_owned(),
            Self::Barrier => "threads synchronize in it".to_owned(),
            Self::Mask => "a divergent branch or exit needs a mask in memory".to_owned(),
            Self::WarpRegion => "each warp runs a part of it on its own".to_owned(),
            Self::OtherThreads => "a part of it runs for other threads than the code around it".to_owned(),
            Self::OwnGuard => "a condition in it selects the threads that run an iteration".to_owned(),
            Self::PartsOfRows => "the threads of a row are split into parts that run different code".to_owned(),
            Self::DivergentJump => "some threads jump out of a part of it".to_owned(),
            Self::NotCounted => "the trip count is not known before the loop".to_owned(),
            Self::StrideTooLarge => "the stride of the loop is not a constant that a strip could have".to_owned(),
            Self::TooLarge => "its code is too large to be duplicated".to_owned(),
            Self::NoTile => "it has few iterations, and the registers do not hold several rows".to_owned(),
            Self::Streams => "it loads as many elements of matrix rows as each thread carries values".to_owned(),
            Self::CarriesNothing => "no thread carries a value from iteration to iteration".to_owned(),
            Self::Combination => {
                "the strips that its exits, its accesses and its stride need exclude each other".to_owned()
            }
            Self::ManyRegions => "the kernel has many parallel regions".to_owned(),
            Self::NotTransposed => {
                "the trip count differs between threads, and the accesses cannot be transposed".to_owned()
            }
        }
    }
}
