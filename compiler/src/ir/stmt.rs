//! Statements: everything with an effect, and structured control flow.

use super::{Align, ExprId, FuncId, LocalId, Op};
use crate::source::Span;

/// Statements in order.
pub type Block = Vec<Stmt>;

/// A statement with its span.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// Its kind.
    pub kind: StmtKind,
    /// The Python that it comes from.
    pub span: Span,
}

/// The kind of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `$local = value`; same types.
    Assign(LocalId, ExprId),
    /// `*pointer = value`; the value has the pointer's element type.
    Store {
        /// The address.
        pointer: ExprId,
        /// The value.
        value: ExprId,
        /// The alignment of the address.
        align: Align,
    },
    /// `$results = op args`. The operation's row has the types.
    Op {
        /// The operation.
        op: Op,
        /// One local per result of the operation, or none.
        results: Vec<LocalId>,
        /// One expression per operand.
        args: Vec<ExprId>,
    },
    /// `$results = @func(args)`.
    Call {
        /// One local per result of the function.
        results: Vec<LocalId>,
        /// The callee, a device function.
        func: FuncId,
        /// One expression per parameter.
        args: Vec<ExprId>,
    },
    /// A branch.
    If {
        /// A `Bool`.
        cond: ExprId,
        /// Run if true.
        then: Block,
        /// Run if false.
        otherwise: Block,
    },
    /// Repeats `body`, then `step`. `Break` leaves the loop; `Continue` in `body` goes to `step`. `step` contains no
    /// `Break` or `Continue` of this loop, and no `Return`; an addition to a counter ([`Local::counts`](super::Local))
    /// in it saturates.
    Loop {
        /// The body; a `while` starts it with `if (!cond) break`.
        body: Block,
        /// The statements between two iterations of a `for`.
        step: Block,
    },
    /// Leaves the innermost loop.
    Break,
    /// Goes to the innermost loop's `step`.
    Continue,
    /// Leaves the function, with one value per result.
    Return(Vec<ExprId>),
}
