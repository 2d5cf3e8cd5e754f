//! Why the threads of a kernel have stacks of their own, and are no thread loops.

/// The reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StackReason {
    /// The kernel has a barrier of the grid.
    GridBarrier,
    /// The blocks of a cluster access each other's shared memory.
    Cluster,
    /// A thread may wait in a loop for another thread.
    Waits,
    /// A thread waits for a phase of a barrier in shared memory.
    Phases,
    /// Lanes may meet at a warp barrier from different positions.
    ArmsMeet,
    /// A recursive function synchronizes threads.
    RecursiveBarrier,
    /// An option requires it.
    Requested,
    /// The functions with barriers are too large to be inlined.
    TooLarge,
    /// The local arrays of inlined functions are too large.
    LocalArrays,
    /// The sanitizer records operations that are no thread loops.
    Sanitized,
}

impl StackReason {
    /// The reason as a clause.
    pub(super) fn clause(self) -> &'static str {
        match self {
            Self::GridBarrier => "threads wait for other blocks at a barrier of the grid",
            Self::Cluster => "the blocks of a cluster run at the same time",
            Self::Waits => "a thread may wait in a loop for what another thread writes",
            Self::Phases => "a thread waits for a phase of a barrier in shared memory",
            Self::ArmsMeet => "lanes may meet at a warp barrier from different positions",
            Self::RecursiveBarrier => "a recursive function synchronizes threads",
            Self::Requested => "an option requires it",
            Self::TooLarge => "the functions with barriers are too large to be inlined",
            Self::LocalArrays => "the local arrays of the inlined functions are too large",
            Self::Sanitized => "the sanitizer cannot check this kernel's barriers in loops",
        }
    }
}
