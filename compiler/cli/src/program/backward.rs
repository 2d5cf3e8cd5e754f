//! Reads `cuda.custom_vjp`: as the decorator of a function, and as a call in an assignment.

use weft_compiler::{
    request::{Captured, JitOptions},
    syntax::ast::{Expr, ExprKind},
};

use super::{Program, Value, jit::Jit};

/// The path of `cuda.custom_vjp`.
const CUSTOM: &str = "weft.cuda.custom_vjp";

/// The arguments `function` and `backward` of a call.
type Arguments<'e> = (Option<&'e Expr>, Option<&'e Expr>);

impl Program {
    /// The arguments of `cuda.custom_vjp`, if an expression is a call of it.
    fn custom<'e>(&self, module: usize, expr: &'e Expr) -> Option<Arguments<'e>> {
        let ExprKind::Call { func, args, keywords } = &expr.kind else { return None };
        let is_custom = matches!(self.eval(module, func), Value::Const(Captured::Known(path)) if path == CUSTOM);
        let named =
            |wanted: &str| keywords.iter().find(|(name, _)| name.as_deref() == Some(wanted)).map(|(_, value)| value);
        is_custom.then(|| (args.first().or_else(|| named("function")), args.get(1).or_else(|| named("backward"))))
    }

    /// Gives a function the backward function of its decorators, if it has one.
    pub(super) fn add_backward(&mut self, module: usize, index: usize, decorators: &[Expr]) {
        let Some((_, Some(backward))) = decorators.iter().find_map(|decorator| self.custom(module, decorator)) else {
            return;
        };
        let backward = self.device_function(module, backward);
        if let Some(function) = self.functions.get_mut(index) {
            function.backward = Some(backward);
            function.jit.get_or_insert_with(of_device);
        }
    }

    /// The value of `cuda.custom_vjp(function, backward)`, if an expression is such a call.
    pub(super) fn with_backward(&mut self, module: usize, expr: &Expr) -> Option<Value> {
        let (Some(function), Some(backward)) = self.custom(module, expr)? else { return None };
        let Value::Function(index) = self.device_function(module, function) else { return None };
        let backward = self.device_function(module, backward);
        let mut function = self.functions.get(index)?.clone();
        function.backward = Some(backward);
        self.functions.push(function);
        Some(Value::Function(self.functions.len() - 1))
    }

    /// The value of an expression; a plain function becomes a device function.
    fn device_function(&mut self, module: usize, expr: &Expr) -> Value {
        let value = self.eval(module, expr);
        if let Value::Function(index) = value
            && let Some(function) = self.functions.get(index)
            && function.jit.is_none()
        {
            let mut function = function.clone();
            function.jit = Some(of_device());
            self.functions.push(function);
            return Value::Function(self.functions.len() - 1);
        }
        value
    }
}

fn of_device() -> Jit {
    Jit { options: JitOptions { device: true, ..JitOptions::default() }, ..Jit::default() }
}
