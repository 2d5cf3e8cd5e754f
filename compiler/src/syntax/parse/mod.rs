//! From source text to weft's own tree. This folder is the only user of rustpython-parser, and does not expose its
//! types.
//!
//! [`convert`] converts its tree to ours, [`module`] a file's top level, [`matching`] its `match` statements, [`fault`]
//! its errors to diagnostics. [`newer`] rewrites syntax that is newer than the parser's grammar, [`indentation`]
//! implements Python's rule for tabs, [`formatted`] parses f-strings, [`misplaced`] finds errors that the grammar does
//! not. Spans are byte ranges of the original text, whatever precedes it in the parser's input.

mod convert;
mod fault;
mod formatted;
mod indentation;
mod matching;
mod misplaced;
mod module;
mod newer;
#[cfg(test)]
mod tests;

use std::ops::Range;

use rustpython_parser::{
    Mode, ParseError,
    ast::{self as py, Ranged as _},
};

use self::{
    convert::Converter,
    formatted::{Fault, Formatteds},
};
use super::ast::{Expr, Function, ModuleItem};
use crate::{
    diagnostic::{Code, Diagnostic},
    source::{SourceFile, Span},
};

/// The prefix that makes an indented function parse. (Removing the indentation instead would change strings that span
/// several lines, and fails where a comment is indented less.)
const INDENTED: &str = "if 1:\n";

/// Parses the source of one function definition, decorated or not, indented or not (as `inspect.getsource` returns it).
/// Spans have file index `file`; `class` is the enclosing class.
///
/// # Errors
///
/// `E0101` at the error's span; `E0102` where the function is one that no kernel can be (`async def`).
pub fn parse_function(source: &SourceFile, file: u32, class: Option<&str>) -> Result<Function, Diagnostic> {
    let indented = starts_indented(&source.text);
    let suite = parse_suite(&source.text, if indented { INDENTED } else { "" }, file)?;
    let mut converter = Converter::new(&source.text, suite.shift, file, &suite.strings).within(class);
    let found = find_function(&suite.stmts, indented, &source.text, file)
        .and_then(|def| converter.function(def).map_err(|error| *error));
    converter.release(suite.stmts);
    found
}

/// A whole file.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Its top level.
    pub items: Vec<ModuleItem>,
    /// Errors in single statements: Python does not allow them there, or they assign to something that cannot be
    /// assigned to.
    pub faults: Vec<Diagnostic>,
}

/// Parses a whole file. Statements that are nested too deeply are `Unparsed`. A `with` at the top level is its block; a
/// class is an assignment of something unsupported to its name.
///
/// # Errors
///
/// `E0101` where the file is not Python: the code around the error may mean anything, so there is no partial result.
pub fn parse_module(source: &SourceFile, file: u32) -> Result<Parsed, Diagnostic> {
    let text = source.text.as_str();
    if let Some(at) = text.find('\0') {
        let span = Span { file, start: at as u32, end: at as u32 + 1 };
        return Err(Diagnostic::error(Code::Syntax, span, "Python source cannot contain a null byte"));
    }
    let suite = parse_suite(text, "", file)?;
    let mut parsed = Parsed { items: Vec::new(), faults: misplaced::faults(&suite, text, file) };
    let mut too_deep = false;
    for (stmt, cut) in suite.stmts.iter().zip(statements(&suite.stmts, text)) {
        let mut converter = Converter::new(text, 0, file, &suite.strings);
        let mut items = Vec::new();
        match converter.module_item(stmt, &mut items) {
            Ok(()) => parsed.items.append(&mut items),
            Err(fault) => {
                let span = Span { file, start: cut.start as u32, end: cut.end as u32 };
                parsed.items.push(ModuleItem::Unparsed { message: fault.message, at: fault.span, span });
            }
        }
        too_deep |= converter.is_too_deep();
    }
    if too_deep {
        std::mem::forget(suite.stmts);
    }
    Ok(parsed)
}

/// Byte ranges of the top-level statements: each goes from the end of the one before, so that its decorators are in it.
fn statements(suite: &[py::Stmt], text: &str) -> Vec<Range<usize>> {
    let mut from = 0;
    let cut = |stmt: &py::Stmt| {
        let end = usize::from(stmt.end());
        let between = text.get(from..end).unwrap_or("");
        let blank = between.len() - between.trim_start_matches([' ', '\t', ';', '\r', '\n', '\\', '\x0c']).len();
        let start = from + blank;
        from = end;
        start..end
    };
    suite.iter().map(cut).collect()
}

/// Parses one expression.
///
/// # Errors
///
/// `E0101` at the error's span.
pub fn parse_expression(source: &SourceFile, file: u32) -> Result<Expr, Diagnostic> {
    let (older, fault) = newer::older_expression(&source.text, file);
    let body = older.text.trim_start();
    let skipped = (older.text.len() - body.len()) as u32;
    let parsed = rustpython_parser::parse_starts_at(body.trim_end(), Mode::Expression, "", skipped.into());
    let parsed = checked(parsed, fault, &source.text, 0, file)?;
    let mut converter = Converter::new(&source.text, 0, file, &older.strings);
    let py::Mod::Expression(module) = parsed else {
        return Err(Diagnostic::error(Code::Syntax, whole(&source.text, file), "this is not an expression"));
    };
    let expr = converter.expr(&module.body);
    converter.release(module);
    expr.map_err(|error| *error)
}

/// The statements of a text.
struct Suite {
    stmts: Vec<py::Stmt>,
    /// Bytes that were put in front of the text.
    shift: u32,
    strings: Formatteds,
}

/// Parses statements, with something put in front of them.
fn parse_suite(text: &str, front: &str, file: u32) -> Result<Suite, Diagnostic> {
    let shift = front.len() as u32;
    let (older, fault) = newer::older(text, file, shift);
    let parsed = rustpython_parser::parse(&format!("{front}{}", older.text), Mode::Module, "");
    let stmts = match checked(parsed, fault, text, shift, file)? {
        py::Mod::Module(module) => module.body,
        // `Mode::Module` gives a module.
        _ => Vec::new(),
    };
    Ok(Suite { stmts, shift, strings: older.strings })
}

/// The parsed tree, or the first error: the parser's, or that of a formatted string.
fn checked(
    parsed: Result<py::Mod, ParseError>,
    fault: Option<Fault>,
    text: &str,
    shift: u32,
    file: u32,
) -> Result<py::Mod, Diagnostic> {
    match (parsed, fault) {
        (Ok(parsed), None) => Ok(parsed),
        (Err(error), Some(fault)) if (u32::from(error.offset).saturating_sub(shift) as usize) < fault.within => {
            Err(fault::diagnose(&error, text, shift, file))
        }
        (parsed, Some(fault)) => {
            // However deeply it is nested.
            std::mem::forget(parsed);
            Err(*fault.diagnostic)
        }
        (Err(error), None) => Err(fault::diagnose(&error, text, shift, file)),
    }
}

fn starts_indented(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    first.is_some_and(|line| line.starts_with([' ', '\t']))
}

fn find_function<'a>(
    suite: &'a [py::Stmt],
    indented: bool,
    text: &str,
    file: u32,
) -> Result<&'a py::StmtFunctionDef, Diagnostic> {
    let body = match suite.first() {
        Some(py::Stmt::If(wrapper)) if indented => &wrapper.body,
        _ => suite,
    };
    for stmt in body {
        match stmt {
            py::Stmt::FunctionDef(def) => return Ok(def),
            py::Stmt::AsyncFunctionDef(def) => {
                let message = format!("`{}` is an `async def`: weft only compiles ordinary functions", def.name);
                return Err(Diagnostic::error(Code::UnsupportedStatement, whole(text, file), message)
                    .help(format!("write `def {}`", def.name)));
            }
            _ => {}
        }
    }
    Err(Diagnostic::error(Code::Syntax, whole(text, file), "there is no function definition here")
        .help("write the kernel as `def name(...):`, not as a lambda"))
}

/// The first line of a text, without its indentation.
fn whole(text: &str, file: u32) -> Span {
    let start = text.len() - text.trim_start().len();
    let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or("");
    Span { file, start: start as u32, end: (start + line.trim_end().len()) as u32 }
}
