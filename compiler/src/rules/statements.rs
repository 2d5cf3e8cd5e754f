//! Statements of rules: assignments to names, `if`, and `return`.

use weft_artifact::rules::RuleExpr;

use super::{Locals, Translated, Translator, Value, rule_error};
use crate::{
    source::Span,
    syntax::ast::{Expr, ExprKind, Stmt, StmtKind},
};

impl Translator<'_> {
    /// The value that statements return, and its location; `None` if their end is reached.
    pub(super) fn block(&mut self, stmts: &[Stmt], locals: &mut Locals) -> Translated<Option<(Value, Span)>> {
        for (index, stmt) in stmts.iter().enumerate() {
            match &stmt.kind {
                StmtKind::Return(Some(value)) => return Ok(Some((self.value(value, locals)?, value.span))),
                StmtKind::Return(None) => return Ok(None),
                StmtKind::Pass => {}
                StmtKind::Expr(expr) if matches!(expr.kind, ExprKind::Constant(_)) => {}
                StmtKind::Assign { targets, value } => {
                    let value = self.value(value, locals)?;
                    targets.iter().try_for_each(|target| self.assign(target, value.clone(), locals))?;
                }
                StmtKind::AnnAssign { target, annotation: _, value: Some(value) } => {
                    let value = self.value(value, locals)?;
                    self.assign(target, value, locals)?;
                }
                StmtKind::AugAssign { target, op, value } => {
                    let (left, right) = (self.value(target, locals)?, self.value(value, locals)?);
                    let value = self.binary(*op, left, right, stmt.span)?;
                    self.assign(target, value, locals)?;
                }
                StmtKind::If { test, body, orelse } => {
                    return self.branch(test, [body, orelse], &stmts[index + 1..], locals);
                }
                StmtKind::AnnAssign { .. }
                | StmtKind::Expr(_)
                | StmtKind::While { .. }
                | StmtKind::For { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Assert { .. }
                | StmtKind::Raise(_)
                | StmtKind::FunctionDef(_)
                | StmtKind::Delete(_)
                | StmtKind::Global(_)
                | StmtKind::Nonlocal(_)
                | StmtKind::Unsupported(_) => {
                    let message = format!("a {} cannot contain this statement", self.of.what);
                    let error = rule_error(stmt.span, message);
                    return Err(error.help("it has assignments to names, `if` and `return`"));
                }
            }
        }
        Ok(None)
    }

    /// An `if`, each branch with the statements after it.
    fn branch(
        &mut self,
        test: &Expr,
        branches: [&Vec<Stmt>; 2],
        rest: &[Stmt],
        locals: &Locals,
    ) -> Translated<Option<(Value, Span)>> {
        let condition = self.condition(test, locals)?;
        let mut results = Vec::new();
        for branch in branches {
            self.count(test.span)?;
            let mut locals = locals.clone();
            let returned = match self.block(branch, &mut locals)? {
                Some(returned) => Some(returned),
                None => self.block(rest, &mut locals)?,
            };
            results.push(returned);
        }
        let (Some(Some((no, _))), Some(Some((yes, span)))) = (results.pop(), results.pop()) else { return Ok(None) };
        Ok(Some((self.select(&condition, yes, no, span)?, span)))
    }

    fn assign(&mut self, target: &Expr, value: Value, locals: &mut Locals) -> Translated<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                locals.insert(name.clone(), value);
                Ok(())
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let items = match value {
                    Value::Tuple(items) => items,
                    Value::Shape(param) => {
                        (0..targets.len()).map(|dim| Value::Int(RuleExpr::Extent(param, dim as i64))).collect()
                    }
                    Value::Int(_) | Value::Param(_) | Value::Builtin(_) => {
                        return Err(rule_error(target.span, "an integer cannot be assigned to several names"));
                    }
                };
                if items.len() != targets.len() {
                    let message = format!("{} values cannot be assigned to {} names", items.len(), targets.len());
                    return Err(rule_error(target.span, message));
                }
                targets.iter().zip(items).try_for_each(|(target, item)| self.assign(target, item, locals))
            }
            ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Call { .. }
            | ExprKind::Attribute { .. }
            | ExprKind::Subscript { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Starred(_)
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. }
            | ExprKind::Unsupported(_) => {
                Err(rule_error(target.span, format!("a {} assigns to names only", self.of.what)))
            }
        }
    }
}
