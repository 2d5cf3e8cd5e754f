//! The only user of rustpython-parser.

use super::ast::{Expr, Function, ModuleItem};
use crate::{diagnostic::Diagnostic, source::SourceFile};

/// Parses a text that holds one function definition, decorated or not, indented or not (as
/// `inspect.getsource` gives it). Spans have file index `file`.
///
/// # Errors
///
/// `E0101` at the place of the fault.
pub fn parse_function(_source: &SourceFile, _file: u32) -> Result<Function, Diagnostic> {
    unreachable!()
}

/// Parses a whole file. Where it cannot be parsed as a whole, each top-level statement is parsed for itself, and those
/// that cannot be are `Unparsed`.
pub fn parse_module(_source: &SourceFile, _file: u32) -> Vec<ModuleItem> {
    Vec::new()
}

/// Parses one expression.
///
/// # Errors
///
/// `E0101` at the place of the fault.
pub fn parse_expression(_source: &SourceFile, _file: u32) -> Result<Expr, Diagnostic> {
    unreachable!()
}
