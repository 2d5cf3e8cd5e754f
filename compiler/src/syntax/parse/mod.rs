//! From text to weft's own tree: this folder is the only user of rustpython-parser, and no type of it leaves.
//!
//! [`convert`] turns its tree into ours, [`module`] a file's top level, [`fault`] its errors into diagnostics, [`newer`] writes what is newer than
//! the parser's grammar so that it can be read, [`placed`] finds what the grammar takes and Python does not. Spans are
//! byte ranges of the text that came in, whatever was put in front of it for the parser.

mod convert;
mod fault;
mod matching;
mod module;
mod newer;
mod placed;
#[cfg(test)]
mod tests;

use std::ops::Range;

use rustpython_parser::{
    Mode, ParseError,
    ast::{self as py, Ranged as _},
};

use self::convert::Converter;
use super::ast::{Expr, Function, ModuleItem};
use crate::{
    diagnostic::{Code, Diagnostic},
    source::{SourceFile, Span},
};

/// What is put in front of an indented function so that it parses. (Taking the indentation away instead would change
/// strings that go over several lines, and fails where a comment stands further left.)
const INDENTED: &str = "if 1:\n";

/// Parses a text that holds one function definition, decorated or not, indented or not (as
/// `inspect.getsource` gives it). Spans have file index `file`; `class` is the class that the text stands in.
///
/// # Errors
///
/// `E0101` at the place of the fault; `E0102` where the function is one that no kernel can be (`async def`).
pub fn parse_function(source: &SourceFile, file: u32, class: Option<&str>) -> Result<Function, Diagnostic> {
    let indented = starts_indented(&source.text);
    let prefixed = indented.then(|| format!("{INDENTED}{}", source.text));
    let shift = if indented { INDENTED.len() as u32 } else { 0 };
    let text = prefixed.as_deref().unwrap_or(&source.text);
    let suite = parse_suite(text, 0).map_err(|error| fault::diagnose(&error, &source.text, shift, file))?;
    let mut converter = Converter::new(&source.text, shift, file).within(class);
    let found = find_function(&suite, indented, &source.text, file)
        .and_then(|def| converter.function(def).map_err(|error| *error));
    converter.release(suite);
    found
}

/// A whole file.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Its top level.
    pub items: Vec<ModuleItem>,
    /// What is wrong with single statements: they stand where Python does not take them, or assign to what cannot be
    /// assigned to.
    pub faults: Vec<Diagnostic>,
}

/// Parses a whole file. Statements that are Python, but newer than the parser or nested too deeply, are `Unparsed`. A
/// `with` at the top level is its block; a class is an assignment of something unsupported to its name.
///
/// # Errors
///
/// `E0101` where the file is not Python: what stands around the fault may then be anything, so nothing is given.
pub fn parse_module(source: &SourceFile, file: u32) -> Result<Parsed, Diagnostic> {
    let text = source.text.as_str();
    let fault = |error: &ParseError| fault::diagnose(error, text, 0, file);
    if let Some(at) = text.find('\0') {
        let span = Span { file, start: at as u32, end: at as u32 + 1 };
        return Err(Diagnostic::error(Code::Syntax, span, "a byte that is zero cannot stand in Python"));
    }
    let older = match parse_suite(text, 0) {
        Ok(suite) => {
            let faults = placed::faults(&suite, text, file);
            match converted(suite, text, file) {
                Ok(items) => return Ok(Parsed { items, faults }),
                // One of the statements is nested too deeply.
                Err(_) => newer::Older { text: text.to_owned(), fields: Vec::new() },
            }
        }
        Err(error) => newer::older(text).ok_or_else(|| fault(&error))?,
    };
    let suite = parse_suite(&older.text, 0).map_err(|error| fault(&error))?;
    for field in older.fields {
        check_field(text, field, file)?;
    }
    let faults = placed::faults(&suite, text, file);
    let cuts = statements(&suite, text);
    // Whatever comes of it: a tree that is nested deeply cannot be dropped.
    let _converted = converted(suite, text, file);
    let mut items = Vec::new();
    for cut in cuts {
        let span = Span { file, start: cut.start as u32, end: cut.end as u32 };
        let parsed = parse_suite(text.get(cut).unwrap_or(""), span.start);
        let parsed = parsed.map_err(|error| fault::diagnose(&error, text, 0, file));
        match parsed.and_then(|suite| converted(suite, text, file)) {
            Ok(more) => items.extend(more),
            Err(fault) => items.push(ModuleItem::Unparsed { message: fault.message, at: fault.span, span }),
        }
    }
    Ok(Parsed { items, faults })
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

/// Whether an expression that the parser has not seen is one.
fn check_field(text: &str, field: Range<usize>, file: u32) -> Result<(), Diagnostic> {
    let expression = text.get(field.clone()).unwrap_or("");
    let older = newer::older(expression).map_or_else(|| expression.to_owned(), |older| older.text);
    // Some need a comma between parentheses: `*items`.
    let start = field.start as u32;
    let parse = |end: &str| {
        let wrapped = format!("({older}\n{end})");
        rustpython_parser::parse(&wrapped, Mode::Expression, "").map(|tree| (tree, wrapped))
    };
    match parse("").or_else(|error| parse(",").map_err(|_| error)) {
        Ok((py::Mod::Expression(module), wrapped)) => {
            // Between parentheses nothing is a tuple.
            let is_empty = matches!(&*module.body, py::Expr::Tuple(node)
                if node.elts.is_empty() && usize::from(node.start()) == 0);
            let mut converter = Converter::new(&wrapped, 0, file);
            let _converted = converter.expr(&module.body);
            converter.release(module);
            let span = Span { file, start, end: start };
            if is_empty { Err(Diagnostic::error(Code::Syntax, span, "an expression is missing here")) } else { Ok(()) }
        }
        Ok(_) => Ok(()),
        Err(error) => {
            // One byte was put in front; what stands behind is no part of the text.
            let offset = u32::from(error.offset).saturating_sub(1).min(expression.len() as u32);
            let error = ParseError { offset: (start + offset).into(), ..error };
            Err(fault::diagnose(&error, text, 0, file))
        }
    }
}

/// Parses one expression.
///
/// # Errors
///
/// `E0101` at the place of the fault.
pub fn parse_expression(source: &SourceFile, file: u32) -> Result<Expr, Diagnostic> {
    let body = source.text.trim_start();
    let skipped = (source.text.len() - body.len()) as u32;
    let parsed = rustpython_parser::parse_starts_at(body.trim_end(), Mode::Expression, "", skipped.into())
        .map_err(|error| fault::diagnose(&error, &source.text, 0, file))?;
    let mut converter = Converter::new(&source.text, 0, file);
    let py::Mod::Expression(module) = parsed else {
        return Err(Diagnostic::error(Code::Syntax, whole(&source.text, file), "this is not an expression"));
    };
    let expr = converter.expr(&module.body);
    converter.release(module);
    expr.map_err(|error| *error)
}

fn parse_suite(text: &str, start: u32) -> Result<Vec<py::Stmt>, ParseError> {
    match rustpython_parser::parse_starts_at(text, Mode::Module, "", start.into())? {
        py::Mod::Module(module) => Ok(module.body),
        // `Mode::Module` gives a module.
        _ => Ok(Vec::new()),
    }
}

fn converted(suite: Vec<py::Stmt>, text: &str, file: u32) -> Result<Vec<ModuleItem>, Diagnostic> {
    let mut converter = Converter::new(text, 0, file);
    let mut items = Vec::new();
    let outcome = suite.iter().try_for_each(|stmt| converter.module_item(stmt, &mut items));
    converter.release(suite);
    outcome.map(|()| items).map_err(|error| *error)
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
                let message = format!("`{}` is an `async def`: weft compiles plain functions only", def.name);
                return Err(Diagnostic::error(Code::UnsupportedStatement, whole(text, file), message)
                    .help(format!("write `def {}`", def.name)));
            }
            _ => {}
        }
    }
    Err(Diagnostic::error(Code::Syntax, whole(text, file), "there is no function definition here")
        .help("write the kernel as `def name(...):`; a lambda cannot be a kernel"))
}

/// The first line of a text, without its indentation.
fn whole(text: &str, file: u32) -> Span {
    let start = text.len() - text.trim_start().len();
    let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or("");
    Span { file, start: start as u32, end: (start + line.trim_end().len()) as u32 }
}
