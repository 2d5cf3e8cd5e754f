//! Desugars `match` to `if`s, by section 8.6 of Python's reference.
//!
//! The subject is evaluated once, into a variable whose name cannot occur in source code. A pattern is a condition on
//! it. The names in a pattern are bound after the whole pattern matches: at the start of the case, or, if a guard reads
//! them, by the condition, with `:=`. The alternatives of `p | q` bind variables whose names cannot occur in source
//! code.

use num_bigint::BigInt;
use rustpython_parser::ast as py;

use super::convert::{Converter, Result, identifier};
use crate::{
    diagnostic::{Code, Diagnostic},
    source::Span,
    syntax::{
        ast::{CmpOp, Constant, Expr, ExprKind, Stmt, StmtKind},
        names::OWN_BUILTIN,
    },
};

/// The tests and bindings of a pattern.
#[derive(Default)]
struct Pattern {
    /// The conditions under which the pattern matches.
    tests: Vec<Expr>,
    /// The names that it binds, and their values.
    bound: Vec<(Expr, Expr)>,
}

impl Pattern {
    /// All conditions and bindings in one: no name is bound if the pattern does not match.
    fn conditions(mut self) -> Vec<Expr> {
        self.tests.extend(self.bound.into_iter().map(|(name, value)| bound(name, value)));
        self.tests
    }
}

impl Converter<'_> {
    /// A `match` statement.
    pub(super) fn match_chain(&mut self, node: &py::StmtMatch) -> Result<StmtKind> {
        let span = self.span(node);
        let value = self.expr(&node.subject)?;
        let subject = Expr { kind: ExprKind::Name(format!("match@{}", span.start)), span: value.span };
        let mut cases = Vec::new();
        for case in &node.cases {
            let mut found = Pattern::default();
            if !self.pattern(&case.pattern, &subject, &mut found)? {
                return Ok(StmtKind::Unsupported("a pattern of keys or classes in a `match`"));
            }
            let mut body = Vec::new();
            let tests = if let Some(guard) = &case.guard {
                let mut tests = found.conditions();
                tests.push(self.expr(guard)?);
                tests
            } else {
                body.extend(found.bound.into_iter().map(|(name, value)| Stmt {
                    span: name.span,
                    kind: StmtKind::Assign { targets: vec![name], value },
                }));
                found.tests
            };
            for stmt in &case.body {
                body.push(self.stmt(stmt)?);
            }
            cases.push((all(tests, value.span), body));
        }
        let mut orelse = Vec::new();
        for (test, body) in cases.into_iter().rev() {
            let span = test.span;
            orelse = vec![Stmt { kind: StmtKind::If { test, body, orelse }, span }];
        }
        let assign = StmtKind::Assign { targets: vec![subject], value };
        orelse.insert(0, Stmt { kind: assign, span });
        Ok(StmtKind::If { test: yes(span), body: orelse, orelse: Vec::new() })
    }

    /// Collects the tests and bindings of a pattern; false if kernels do not support it.
    fn pattern(&mut self, pattern: &py::Pattern, subject: &Expr, out: &mut Pattern) -> Result<bool> {
        let span = self.span(pattern);
        let equal = |op: CmpOp, value: Expr| Expr {
            kind: ExprKind::Compare { left: Box::new(subject.clone()), rest: vec![(op, value)] },
            span,
        };
        match pattern {
            py::Pattern::MatchValue(node) => {
                let value = self.expr(&node.value)?;
                if self.is_formatted(value.span) {
                    let fault = Diagnostic::error(Code::Syntax, value.span, "a formatted string cannot be a pattern");
                    return Err(Box::new(fault.help("compare with it in a guard: `case x if x == f\"…\":`")));
                }
                out.tests.push(equal(CmpOp::Eq, value));
            }
            py::Pattern::MatchSingleton(node) => {
                let value = match &node.value {
                    py::Constant::None => Constant::None,
                    py::Constant::Bool(value) => Constant::Bool(*value),
                    _ => return Ok(false),
                };
                out.tests.push(equal(CmpOp::Is, Expr { kind: ExprKind::Constant(value), span }));
            }
            py::Pattern::MatchAs(node) => {
                if let Some(inner) = &node.pattern
                    && !self.pattern(inner, subject, out)?
                {
                    return Ok(false);
                }
                if let Some(name) = &node.name {
                    out.bound.push((Expr { kind: ExprKind::Name(identifier(name)), span }, subject.clone()));
                }
            }
            py::Pattern::MatchOr(node) => {
                let mut ways = Vec::new();
                for pattern in &node.patterns {
                    let mut own = Pattern::default();
                    if !self.pattern(pattern, subject, &mut own)? {
                        return Ok(false);
                    }
                    for (name, _) in &mut own.bound {
                        let ExprKind::Name(text) = &name.kind else { continue };
                        let held = Expr { kind: ExprKind::Name(format!("{text}@{}", span.start)), span: name.span };
                        let name = std::mem::replace(name, held.clone());
                        if !out.bound.iter().any(|(known, _)| known.kind == name.kind) {
                            out.bound.push((name, held));
                        }
                    }
                    ways.push(all(own.conditions(), span));
                }
                out.tests.push(Expr { kind: ExprKind::Bool { and: false, values: ways }, span });
            }
            py::Pattern::MatchSequence(node) => return self.sequence(&node.patterns, subject, span, out),
            py::Pattern::MatchMapping(_) | py::Pattern::MatchClass(_) | py::Pattern::MatchStar(_) => return Ok(false),
        }
        Ok(true)
    }

    /// `(a, 0, *rest)`: tests the length, and each item against its pattern.
    fn sequence(&mut self, patterns: &[py::Pattern], subject: &Expr, span: Span, out: &mut Pattern) -> Result<bool> {
        let at = |kind| Expr { kind, span };
        let number = |value: usize| at(ExprKind::Constant(Constant::Int(value.into())));
        let star = patterns.iter().position(|pattern| matches!(pattern, py::Pattern::MatchStar(_)));
        let given = patterns.len() - usize::from(star.is_some());
        let name = |name: &str| at(ExprKind::Name(format!("{name}{OWN_BUILTIN}")));
        let call = |function, args| at(ExprKind::Call { func: Box::new(name(function)), args, keywords: Vec::new() });
        // A subject that is not a sequence does not match; Python does not count an array as one.
        out.tests.push(call("isinstance", vec![subject.clone(), name("tuple")]));
        let length = call("len", vec![subject.clone()]);
        let op = if star.is_some() { CmpOp::GtE } else { CmpOp::Eq };
        out.tests.push(at(ExprKind::Compare { left: Box::new(length), rest: vec![(op, number(given))] }));
        for (position, pattern) in patterns.iter().enumerate() {
            let from_end = star.is_some_and(|star| position > star).then(|| patterns.len() - position);
            let index = match from_end {
                None => number(position),
                Some(back) => at(ExprKind::Constant(Constant::Int(-BigInt::from(back)))),
            };
            if let py::Pattern::MatchStar(rest) = pattern {
                if let Some(name) = &rest.name {
                    let after = patterns.len() - 1 - position;
                    let upper =
                        (after > 0).then(|| Box::new(at(ExprKind::Constant(Constant::Int(-BigInt::from(after))))));
                    let slice = ExprKind::Slice { lower: Some(Box::new(number(position))), upper, step: None };
                    let items = ExprKind::Subscript { value: Box::new(subject.clone()), index: Box::new(at(slice)) };
                    out.bound.push((at(ExprKind::Name(identifier(name))), at(items)));
                }
                continue;
            }
            let item = ExprKind::Subscript { value: Box::new(subject.clone()), index: Box::new(index) };
            if !self.pattern(pattern, &at(item), out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn yes(span: Span) -> Expr {
    Expr { kind: ExprKind::Constant(Constant::Bool(true)), span }
}

/// The conjunction of conditions.
fn all(mut tests: Vec<Expr>, span: Span) -> Expr {
    match tests.len() {
        0 => yes(span),
        1 => tests.remove(0),
        _ => Expr { kind: ExprKind::Bool { and: true, values: tests }, span },
    }
}

/// A condition that is always true and binds a name: `(name := value, True)[1]`.
fn bound(name: Expr, value: Expr) -> Expr {
    let span = name.span;
    let at = |kind| Expr { kind, span };
    let named = at(ExprKind::Named { target: Box::new(name), value: Box::new(value) });
    let pair = at(ExprKind::Tuple(vec![named, yes(span)]));
    let second = at(ExprKind::Constant(Constant::Int(1.into())));
    at(ExprKind::Subscript { value: Box::new(pair), index: Box::new(second) })
}
