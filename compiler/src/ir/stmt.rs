//! Statements: everything with an effect, and structured control flow.

use super::{ExprId, FuncId, LocalId};
use crate::source::Span;

/// Statements in order.
pub type Block = Vec<Stmt>;

/// A statement and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// The Python that it comes from.
    pub span: Span,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `$local = value`; same types.
    Assign(LocalId, ExprId),
    /// `*pointer = value`; the value has the pointer's element type.
    Store {
        /// Where.
        pointer: ExprId,
        /// What.
        value: ExprId,
    },
    /// `$old = *pointer; *pointer = op(old, value)`, relaxed, at device scope. `Cas` stores `value` if the old value
    /// equals `compare`.
    Atomic {
        /// Takes the old value, if it is used.
        result: Option<LocalId>,
        /// The operation.
        op: AtomicOp,
        /// Where.
        pointer: ExprId,
        /// The operand, of the pointer's element type.
        value: ExprId,
        /// `Cas` only.
        compare: Option<ExprId>,
    },
    /// `$results = @func(args)`.
    Call {
        /// One local a result of the function.
        results: Vec<LocalId>,
        /// The callee; calls form no cycle.
        func: FuncId,
        /// One expression a parameter.
        args: Vec<ExprId>,
    },
    /// `bar.sync 0`: all threads of the block that have not returned.
    Barrier,
    /// `bar.warp.sync mask`: the threads of the warp in an `I32` mask. Shared memory is ordered between them.
    WarpBarrier(ExprId),
    /// `membar`.
    Fence(FenceScope),
    /// A branch.
    If {
        /// A `Bool`.
        cond: ExprId,
        /// Run if true.
        then: Block,
        /// Run if false.
        otherwise: Block,
    },
    /// Runs `body`, then `step`, for ever. `Break` leaves the loop; `Continue` in `body` goes to `step`. `step` holds
    /// neither for this loop, and no `Return`; an addition to a counter ([`Local::counts`](super::Local)) in it
    /// saturates.
    Loop {
        /// The body; a `while` starts it with `if (!cond) break`.
        body: Block,
        /// What a `for` does between two turns.
        step: Block,
    },
    /// Leaves the innermost loop.
    Break,
    /// Goes to the innermost loop's `step`.
    Continue,
    /// Leaves the function with one value a result.
    Return(Vec<ExprId>),
}

/// Atomic read-modify-write operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// 32- and 64-bit integers, floats.
    Add,
    /// 32- and 64-bit integers: compare and swap.
    Cas,
}

/// Who must see the writes before the fence. PTX ISA 9.7.13, membar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceScope {
    /// `membar.cta`.
    Block,
    /// `membar.gl`.
    Device,
    /// `membar.sys`.
    System,
}
