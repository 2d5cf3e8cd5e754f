//! Errors in statements that the grammar accepts and Python does not: `return` outside a function, `break` and
//! `continue` outside a loop, misplaced `await` and `yield`, targets that cannot be assigned to.
//!
//! It visits all statements of a file, including those of classes, whether or not a kernel uses them, without
//! recursion, since they may be nested deeply.

use rustpython_parser::ast::{self as py, Ranged};

use super::{Suite, convert::Converter};
use crate::diagnostic::{Code, Diagnostic};

/// The context of a statement.
#[derive(Clone, Copy, Default)]
struct StatementContext {
    /// The definition that directly contains the statement.
    of: Of,
    /// Whether a function encloses the statement, possibly with a class in between: `nonlocal` may refer to its
    /// variables.
    within_function: bool,
    in_loop: bool,
}

/// The definition that directly contains the statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Of {
    /// The top level of a file, or a class.
    #[default]
    Other,
    Def,
    AsyncDef,
}

/// Finds all misplaced statements, in source order.
pub(super) fn faults(suite: &Suite, text: &str, file: u32) -> Vec<Diagnostic> {
    let converter = Converter::new(text, suite.shift, file, &suite.strings);
    let suite = suite.stmts.as_slice();
    let mut faults = Vec::new();
    let mut pending = vec![(suite, StatementContext::default())];
    let first = first_futures(suite);
    while let Some((block, place)) = pending.pop() {
        for stmt in block {
            faults.extend(misplaced(stmt, place).map(|(code, at, message)| {
                let span = converter.span(&At(at));
                Diagnostic::error(code, span, message)
            }));
            if let Some(message) = misplaced_future(stmt, first) {
                faults.push(Diagnostic::error(Code::Syntax, converter.span(stmt), message));
            }
            faults.extend(
                targets(stmt).into_iter().filter_map(|target| converter.check_target(target).err()).map(|f| *f),
            );
            blocks(stmt, place, &mut pending);
        }
    }
    faults.sort_by_key(|fault| fault.span);
    faults
}

/// The features of `from __future__`.
const FUTURES: [&str; 10] = [
    "nested_scopes",
    "generators",
    "division",
    "absolute_import",
    "with_statement",
    "print_function",
    "unicode_literals",
    "barry_as_FLUFL",
    "generator_stop",
    "annotations",
];

fn future(stmt: &py::Stmt) -> Option<&py::StmtImportFrom> {
    match stmt {
        py::Stmt::ImportFrom(import) if import.module.as_deref() == Some("__future__") => Some(import),
        _ => None,
    }
}

/// The statements that may precede other statements of a file: its docstring, and imports of `__future__`.
fn first_futures(suite: &[py::Stmt]) -> &[py::Stmt] {
    let is_text = |stmt: &py::Stmt| match stmt {
        py::Stmt::Expr(node) => node.value.as_constant_expr().is_some_and(|node| node.value.is_str()),
        _ => false,
    };
    let text = usize::from(suite.first().is_some_and(is_text));
    let futures = suite.iter().skip(text).take_while(|stmt| future(stmt).is_some()).count();
    suite.get(..text + futures).unwrap_or_default()
}

fn misplaced_future(stmt: &py::Stmt, first: &[py::Stmt]) -> Option<String> {
    let import = future(stmt)?;
    if !first.iter().any(|known| known.range() == stmt.range()) {
        return Some("`from __future__` must be at the beginning of the file".to_owned());
    }
    let unknown = import.names.iter().find(|alias| !FUTURES.contains(&alias.name.as_str()))?;
    Some(format!("`__future__` has no feature `{}`", unknown.name))
}

struct At(py::text_size::TextRange);

impl Ranged for At {
    fn range(&self) -> py::text_size::TextRange {
        self.0
    }
}

fn misplaced(stmt: &py::Stmt, place: StatementContext) -> Option<(Code, py::text_size::TextRange, String)> {
    let outside = |what: &str, of: &str| format!("`{what}` outside {of}");
    let (code, message) = match stmt {
        py::Stmt::Return(_) if place.of == Of::Other => (Code::MisplacedStatement, outside("return", "a function")),
        py::Stmt::Break(_) if !place.in_loop => (Code::MisplacedStatement, outside("break", "a loop")),
        py::Stmt::Continue(_) if !place.in_loop => (Code::MisplacedStatement, outside("continue", "a loop")),
        py::Stmt::AsyncFor(_) if place.of != Of::AsyncDef => (Code::Syntax, outside("async for", "an `async def`")),
        py::Stmt::AsyncWith(_) if place.of != Of::AsyncDef => (Code::Syntax, outside("async with", "an `async def`")),
        py::Stmt::Nonlocal(_) if !place.within_function => (Code::Syntax, outside("nonlocal", "a function")),
        py::Stmt::Expr(node) => return misplaced_value(&node.value, place),
        py::Stmt::Assign(node) => return misplaced_value(&node.value, place),
        _ => return None,
    };
    Some((code, stmt.range(), message))
}

/// `await` and `yield` that are a statement, or the value of an assignment.
fn misplaced_value(value: &py::Expr, place: StatementContext) -> Option<(Code, py::text_size::TextRange, String)> {
    let message = match value {
        py::Expr::Await(_) if place.of != Of::AsyncDef => "`await` outside an `async def`",
        py::Expr::Yield(_) | py::Expr::YieldFrom(_) if place.of == Of::Other => "`yield` outside a function",
        py::Expr::YieldFrom(_) if place.of == Of::AsyncDef => "`yield from` in an `async def`",
        _ => return None,
    };
    Some((Code::Syntax, value.range(), message.to_owned()))
}

/// The targets that a statement assigns to or deletes.
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

/// The blocks of a statement, with their contexts.
fn blocks<'a>(stmt: &'a py::Stmt, place: StatementContext, pending: &mut Vec<(&'a [py::Stmt], StatementContext)>) {
    let looped = StatementContext { in_loop: true, ..place };
    let mut add = |block: &'a [py::Stmt], place: StatementContext| pending.push((block, place));
    match stmt {
        py::Stmt::FunctionDef(node) => {
            add(&node.body, StatementContext { of: Of::Def, within_function: true, in_loop: false });
        }
        py::Stmt::AsyncFunctionDef(node) => {
            add(&node.body, StatementContext { of: Of::AsyncDef, within_function: true, in_loop: false });
        }
        py::Stmt::ClassDef(node) => {
            add(&node.body, StatementContext { within_function: place.within_function, ..StatementContext::default() });
        }
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
