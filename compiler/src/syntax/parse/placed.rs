//! What the grammar takes and Python does not, of statements: `return` outside a function, `break` and `continue`
//! outside a loop, `await` and `yield` in the wrong place, targets that cannot be assigned to.
//!
//! It goes over all statements of a file, those of classes too, whatever a kernel needs of them, without recursion:
//! they may be nested deeply.

use rustpython_parser::ast::{self as py, Ranged};

use super::convert::Converter;
use crate::diagnostic::{Code, Diagnostic};

/// Where a statement stands.
#[derive(Clone, Copy, Default)]
struct Place {
    in_function: bool,
    is_async: bool,
    in_loop: bool,
}

/// Finds all that is misplaced, in the order of the text.
pub(super) fn faults(suite: &[py::Stmt], text: &str, file: u32) -> Vec<Diagnostic> {
    let converter = Converter::new(text, 0, file);
    let mut faults = Vec::new();
    let mut pending = vec![(suite, Place::default())];
    while let Some((block, place)) = pending.pop() {
        for stmt in block {
            faults.extend(misplaced(stmt, place).map(|(code, at, message)| {
                let span = converter.span(&At(at));
                Diagnostic::error(code, span, message)
            }));
            faults.extend(
                targets(stmt).into_iter().filter_map(|target| converter.check_target(target).err()).map(|f| *f),
            );
            blocks(stmt, place, &mut pending);
        }
    }
    faults.sort_by_key(|fault| fault.span);
    faults
}

struct At(py::text_size::TextRange);

impl Ranged for At {
    fn range(&self) -> py::text_size::TextRange {
        self.0
    }
}

fn misplaced(stmt: &py::Stmt, place: Place) -> Option<(Code, py::text_size::TextRange, String)> {
    let outside = |what: &str, of: &str| format!("`{what}` outside {of}");
    let (code, message) = match stmt {
        py::Stmt::Return(_) if !place.in_function => (Code::MisplacedStatement, outside("return", "a function")),
        py::Stmt::Break(_) if !place.in_loop => (Code::MisplacedStatement, outside("break", "a loop")),
        py::Stmt::Continue(_) if !place.in_loop => (Code::MisplacedStatement, outside("continue", "a loop")),
        py::Stmt::AsyncFor(_) if !place.is_async => (Code::Syntax, outside("async for", "an `async def`")),
        py::Stmt::AsyncWith(_) if !place.is_async => (Code::Syntax, outside("async with", "an `async def`")),
        py::Stmt::Nonlocal(_) if !place.in_function => (Code::Syntax, outside("nonlocal", "a function")),
        py::Stmt::Expr(node) => return misplaced_value(&node.value, place),
        py::Stmt::Assign(node) => return misplaced_value(&node.value, place),
        _ => return None,
    };
    Some((code, stmt.range(), message))
}

/// `await` and `yield` where they are a statement, or what it assigns.
fn misplaced_value(value: &py::Expr, place: Place) -> Option<(Code, py::text_size::TextRange, String)> {
    let message = match value {
        py::Expr::Await(_) if !place.is_async => "`await` outside an `async def`",
        py::Expr::Yield(_) | py::Expr::YieldFrom(_) if !place.in_function => "`yield` outside a function",
        py::Expr::YieldFrom(_) if place.is_async => "`yield from` in an `async def`",
        _ => return None,
    };
    Some((Code::Syntax, value.range(), message.to_owned()))
}

/// What a statement assigns to or deletes.
fn targets(stmt: &py::Stmt) -> Vec<&py::Expr> {
    match stmt {
        py::Stmt::Assign(node) => node.targets.iter().collect(),
        py::Stmt::AugAssign(node) => vec![&node.target],
        py::Stmt::AnnAssign(node) => vec![&node.target],
        py::Stmt::For(node) => vec![&node.target],
        py::Stmt::AsyncFor(node) => vec![&node.target],
        py::Stmt::Delete(node) => node.targets.iter().collect(),
        py::Stmt::With(node) => node.items.iter().filter_map(|item| item.optional_vars.as_deref()).collect(),
        py::Stmt::AsyncWith(node) => node.items.iter().filter_map(|item| item.optional_vars.as_deref()).collect(),
        _ => Vec::new(),
    }
}

/// The blocks of a statement, with where they stand.
fn blocks<'a>(stmt: &'a py::Stmt, place: Place, pending: &mut Vec<(&'a [py::Stmt], Place)>) {
    let looped = Place { in_loop: true, ..place };
    let mut add = |block: &'a [py::Stmt], place: Place| pending.push((block, place));
    match stmt {
        py::Stmt::FunctionDef(node) => add(&node.body, Place { in_function: true, ..Place::default() }),
        py::Stmt::AsyncFunctionDef(node) => {
            add(&node.body, Place { in_function: true, is_async: true, in_loop: false });
        }
        py::Stmt::ClassDef(node) => add(&node.body, Place::default()),
        py::Stmt::For(node) => {
            add(&node.body, looped);
            add(&node.orelse, place);
        }
        py::Stmt::AsyncFor(node) => {
            add(&node.body, looped);
            add(&node.orelse, place);
        }
        py::Stmt::While(node) => {
            add(&node.body, looped);
            add(&node.orelse, place);
        }
        py::Stmt::If(node) => {
            add(&node.body, place);
            add(&node.orelse, place);
        }
        py::Stmt::With(node) => add(&node.body, place),
        py::Stmt::AsyncWith(node) => add(&node.body, place),
        py::Stmt::Match(node) => node.cases.iter().for_each(|case| add(&case.body, place)),
        py::Stmt::Try(node) => {
            let handlers = node.handlers.iter();
            handlers.for_each(|py::ExceptHandler::ExceptHandler(handler)| add(&handler.body, place));
            for block in [&node.body, &node.orelse, &node.finalbody] {
                add(block, place);
            }
        }
        py::Stmt::TryStar(node) => {
            let handlers = node.handlers.iter();
            handlers.for_each(|py::ExceptHandler::ExceptHandler(handler)| add(&handler.body, place));
            for block in [&node.body, &node.orelse, &node.finalbody] {
                add(block, place);
            }
        }
        _ => {}
    }
}
