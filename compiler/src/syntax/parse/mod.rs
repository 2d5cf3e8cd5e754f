//! From text to weft's own tree: this folder is the only user of rustpython-parser, and no type of it leaves.
//!
//! [`convert`] turns its tree into ours, [`module`] a file's top level, [`fault`] its errors into diagnostics, [`chunks`] cuts a file that cannot be
//! read as a whole into its top-level statements. Spans are byte ranges of the text that came in, whatever was put in
//! front of it for the parser.

mod chunks;
mod convert;
mod fault;
mod matching;
mod module;
#[cfg(test)]
mod tests;

use rustpython_parser::{Mode, ast as py};

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

/// Parses a whole file. Where it cannot be parsed as a whole, each top-level statement is parsed for itself, and those
/// that cannot be are `Unparsed`. A `with` at the top level is its block; a class is an assignment of something
/// unsupported to its name.
pub fn parse_module(source: &SourceFile, file: u32) -> Vec<ModuleItem> {
    let whole = match parse_chunk(&source.text, 0, source, file) {
        Ok(items) => return items,
        Err(diagnostic) => diagnostic,
    };
    let mut items = Vec::new();
    for chunk in chunks::split(&source.text) {
        let text = source.text.get(chunk.clone()).unwrap_or("");
        match parse_chunk(text, chunk.start as u32, source, file) {
            Ok(more) => items.extend(more),
            Err(diagnostic) => items.push(ModuleItem::Unparsed {
                message: diagnostic.message,
                at: diagnostic.span,
                span: Span { file, start: chunk.start as u32, end: chunk.end as u32 },
            }),
        }
    }
    if !items.iter().any(|item| matches!(item, ModuleItem::Unparsed { .. })) {
        // The fault lies between the statements.
        items.push(ModuleItem::Unparsed { message: whole.message, at: whole.span, span: whole.span });
    }
    items
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

fn parse_suite(text: &str, start: u32) -> Result<Vec<py::Stmt>, rustpython_parser::ParseError> {
    match rustpython_parser::parse_starts_at(text, Mode::Module, "", start.into())? {
        py::Mod::Module(module) => Ok(module.body),
        // `Mode::Module` gives a module.
        _ => Ok(Vec::new()),
    }
}

fn parse_chunk(text: &str, start: u32, source: &SourceFile, file: u32) -> Result<Vec<ModuleItem>, Diagnostic> {
    let suite = parse_suite(text, start).map_err(|error| fault::diagnose(&error, &source.text, 0, file))?;
    let mut converter = Converter::new(&source.text, 0, file);
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
