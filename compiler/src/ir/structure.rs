//! The source structure of a module's functions, which the sanitizer uses in its suggestions.

use std::collections::BTreeMap;

use weft_artifact::Number;

use super::AtomicOp;
use crate::source::Span;

/// The structure of the functions that the front end lowers. An inner region comes after the regions that contain it.
#[derive(Clone, Debug, Default)]
pub struct Structure {
    /// The definitions of the recorded functions.
    pub functions: Vec<Span>,
    /// The loops.
    pub loops: Vec<Region>,
    /// The branches of `if` statements, and whether each is the `else` branch.
    pub branches: Vec<(Region, bool)>,
    /// Statements that read and write an element.
    pub updates: Vec<UpdateStmt>,
    /// The types of elements that assignments write and that are single numbers in memory, by the target of the
    /// assignment.
    pub elements: BTreeMap<Span, Number>,
}

/// A part of the source code.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// The start of the statement that contains it.
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
