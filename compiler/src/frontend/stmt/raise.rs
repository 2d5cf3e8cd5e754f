//! `raise` and `assert test[, message]`

use weft_artifact::FaultArg;

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::Args,
        lowerer::{FnLowerer, Truth},
        object::Exception,
        optional::narrowings,
        value::Value,
    },
    ir::UnaryOp,
    source::Span,
    syntax::ast::{Constant, Expr, ExprKind},
};

impl FnLowerer<'_> {
    pub(super) fn assert_statement(&mut self, test: &Expr, message: Option<&Expr>, span: Span) {
        let value = self.expr_or_none(test);
        match self.truth(value, test.span) {
            Truth::Known(true) | Truth::Poison => {}
            Truth::Known(false) => {
                let exception = self.assertion(message);
                self.end_thread(exception, span);
                self.env = None;
            }
            Truth::Expr(cond) => {
                let fails = self.b.unary(UnaryOp::Not, cond, span);
                let exception = self.assertion(message);
                self.end_thread_if(fails, exception, span);
                self.narrow(&narrowings(test, true));
            }
        }
    }

    /// The exception of an assertion. The message is evaluated only if it is reported.
    fn assertion(&mut self, message: Option<&Expr>) -> Exception {
        let class = Exception { class: "builtins.AssertionError".to_owned(), args: None };
        let Some(message) = message.filter(|_| self.reports().raises) else { return class };
        let value = self.expr_or_none(message);
        if matches!(value, Value::Poison) {
            return class;
        }
        let args = Args { positional: vec![(value, message.span)], keywords: Vec::new() };
        let made = self.exception(class.clone(), args);
        Exception::of(&made).unwrap_or(class)
    }

    pub(super) fn raise_statement(&mut self, value: Option<&Expr>, span: Span) {
        let exception = match value {
            None => {
                let diagnostic =
                    Diagnostic::error(Code::UnsupportedStatement, span, "there is no exception to raise again");
                self.report(diagnostic.help("name the exception to raise: a kernel catches none"));
                None
            }
            // A value that is not an exception, whatever its parts are.
            Some(value) if is_plain(value) => {
                let diagnostic =
                    Diagnostic::error(Code::BadOperand, value.span, "the raised value is not an exception");
                self.report(diagnostic.help("raise an exception class, or an instance of one"));
                None
            }
            // Its arguments are not evaluated, because it is not reported.
            Some(_) if !self.reports().raises => Some(Exception { class: String::new(), args: None }),
            Some(value) => {
                let raised = self.expr_or_none(value);
                let exception = Exception::of(&raised);
                if exception.is_none() && !raised.ty().is_poison() {
                    let message = format!("{} is not an exception", raised.ty());
                    let diagnostic = Diagnostic::error(Code::BadOperand, value.span, message);
                    self.report(diagnostic.help("raise an exception class, or an instance of one"));
                }
                exception
            }
        };
        if let Some(exception) = exception {
            self.end_thread(exception, span);
        } else {
            // In a dry run, a value that is undefined in this pass may be defined in the next one.
            self.end_thread(Exception { class: String::new(), args: Some(vec![FaultArg::None]) }, span);
        }
        self.env = None;
    }
}

/// Whether an expression is a literal number, string or container.
fn is_plain(value: &Expr) -> bool {
    let is_container = matches!(value.kind, ExprKind::Tuple(_) | ExprKind::List(_) | ExprKind::Compare { .. });
    is_container || matches!(&value.kind, ExprKind::Constant(constant) if *constant != Constant::None)
}
