//! `return [value]`

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{lowerer::FnLowerer, object::Static, value::Value},
    ir::StmtKind as Ir,
    source::Span,
    syntax::ast::Expr,
};

impl FnLowerer<'_> {
    pub(super) fn return_statement(&mut self, value: Option<&Expr>, span: Span) {
        let at = value.map_or(span, |value| value.span);
        let value = value.map_or(Value::Static(Static::None), |value| self.expr_or_none(value));
        if self.returns.is_some() {
            self.lower_return(value, at);
            return;
        }
        if !matches!(value, Value::Static(Static::None) | Value::Poison) {
            let ty = value.ty();
            let diagnostic = Diagnostic::error(Code::KernelReturns, at, format!("a kernel returns {ty}"))
                .label("a CUDA kernel must have void return type")
                .help("write the result into an array argument: `out[i] = …`; only device functions return values");
            self.report(diagnostic);
        }
        self.stmt(Ir::Return(Vec::new()), span);
        self.env = None;
    }
}
