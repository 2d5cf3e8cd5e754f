//! The source structure of a module's functions, as far as the sanitizer's advice depends on it.

use std::collections::BTreeMap;

use weft_artifact::Number;

use super::AtomicOp;
use crate::source::Span;

/// The structure that the front end records for the functions that it lowers. Inner regions come after the regions that
/// contain them.
#[derive(Clone, Debug, Default)]
pub struct Structure {
    /// The functions that it was recorded of, by their definitions.
    pub functions: Vec<Span>,
    /// The regions that loops repeat.
    pub loops: Vec<Region>,
    /// The branches of `if` statements, and whether each is the `else` branch.
    pub branches: Vec<(Region, bool)>,
    /// Statements that read and write an element.
    pub updates: Vec<UpdateStmt>,
    /// By their targets: elements that assignments write which are one number in memory.
    pub elements: BTreeMap<Span, Number>,
}

/// Code that a statement contains.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Where the statement begins.
    pub header: Span,
    /// The code.
    pub body: Span,
}

/// A statement that reads an element and writes it.
#[derive(Clone, Debug)]
pub struct UpdateStmt {
    /// The target of the assignment.
    pub target: Span,
    /// The expressions that access the element.
    pub accesses: Vec<Span>,
    /// The statement, with `…` for the operand.
    pub text: String,
    /// The operation, if an atomic operation can do it.
    pub op: Option<AtomicOp>,
    /// The array and the index, as arguments of a call.
    pub element: String,
}
