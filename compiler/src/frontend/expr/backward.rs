//! Functions with a derivative of the program's own, from `cuda.custom_vjp`, and `cuda.stop_gradient`.
//!
//! If the request has a derivative, calls of such functions are calls in the IR, whose function has a rule. Otherwise
//! they are calls as any other, and `stop_gradient` is its argument.

use std::sync::Arc;

use weft_artifact::{Number, Scalar};

use super::{Args, call::shown_types};
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        function::count,
        lowerer::FnLowerer,
        object::{ObjectKind, Static},
        prelude,
        ty::Ty,
        value::Value,
    },
    intrinsics::Intrinsic,
    ir::{Builder, FuncId, Function, FunctionKind, Rule, StmtKind as Ir, Type},
    request::{Captured, FunctionDef},
    source::Span,
    syntax::ast::ParamKind,
};

/// A call of a function whose arguments and results have types.
pub(super) struct Typed<'a> {
    pub(super) func: FuncId,
    pub(super) args: &'a [Ty],
    pub(super) returns: &'a Ty,
    pub(super) may_end_thread: bool,
}

/// Whether the type is one of floats that have adjoints.
fn is_float(ty: Type) -> bool {
    matches!(ty, Type::Scalar(scalar) if scalar.is_float())
}

/// Whether values of a type have adjoints.
fn has_adjoint(ty: &Ty) -> bool {
    ty.number().is_some_and(Number::is_complex) || matches!(ty, Ty::Scalar(scalar) if scalar.is_float())
}

/// Whether a type is one of numbers, or of tuples of them.
fn is_numeric(ty: &Ty) -> bool {
    match ty {
        Ty::Object(kind, items) => kind.is_tuple() && items.iter().all(is_numeric),
        Ty::Scalar(_) | Ty::Complex(_) | Ty::Int(_) | Ty::Bool(_) => true,
        Ty::Array(_) | Ty::Static(_) | Ty::Conflict(_) | Ty::Bottom | Ty::Poison => false,
    }
}

/// Whether a function is the sum of a block, for arguments with which all threads get it.
pub(super) fn is_symmetric(def: &FunctionDef, args: &[Value]) -> bool {
    prelude::is_own(def)
        && def.ast.name == "coop_block_sum"
        && matches!(args, [Value::Scalar(_, Scalar::F32 | Scalar::F64), Value::Static(Static::None), Value::Bool(true)])
}

impl FnLowerer<'_> {
    /// Gives the function of a call the rule of `cuda.custom_vjp`: compiles its backward function for the types of the
    /// call. `None` if that has an error, which is reported at the call.
    pub(super) fn set_backward(
        &mut self,
        def: &Arc<FunctionDef>,
        backward: &Captured,
        call: &Typed<'_>,
        span: Span,
    ) -> Option<()> {
        if self.cx.module.functions[call.func].rule.is_some() {
            return Some(());
        }
        let name = def.ast.name.clone();
        let Value::Static(Static::Function(backward)) = self.captured(backward, &name, span) else { return None };
        let backward = self.following(&backward);
        let is_array = |ty: &&Ty| ty.parts().iter().any(|(_, ty)| matches!(ty, Type::Ptr(..)));
        if let Some(array) = call.args.iter().find(is_array) {
            let message = format!("`{name}` has a backward function, but takes {array}");
            let help = "pass the elements that the function reads";
            self.report(Diagnostic::error(Code::NoDerivative, span, message).help(help));
            return None;
        }
        if !call.args.iter().flat_map(Ty::parts).any(|(_, ty)| is_float(ty)) {
            // No derivative flows through the call.
            return Some(());
        }
        let results = match call.returns {
            Ty::Object(ObjectKind::Tuple, items) => items.clone(),
            returns @ (Ty::Object(..)
            | Ty::Array(_)
            | Ty::Scalar(_)
            | Ty::Complex(_)
            | Ty::Int(_)
            | Ty::Bool(_)
            | Ty::Static(_)
            | Ty::Conflict(_)
            | Ty::Bottom
            | Ty::Poison) => vec![returns.clone()],
        };
        let results: Vec<Ty> = results.iter().map(Ty::strong).collect();
        if call.may_end_thread || !results.iter().all(|ty| is_numeric(ty) && !matches!(ty, Ty::Object(..))) {
            let message = format!("`{name}` has a backward function, but returns {}", call.returns);
            let help = if call.may_end_thread {
                "a function with a backward function cannot raise exceptions"
            } else {
                "return a number, or a tuple of numbers"
            };
            self.report(Diagnostic::error(Code::NoDerivative, span, message).help(help));
            return None;
        }
        let adjoints = results.iter().filter(|ty| has_adjoint(ty));
        let given: Vec<Ty> = call.args.iter().chain(&results).chain(adjoints).cloned().collect();
        let params = &backward.ast.params;
        let is_plain = params.iter().all(|param| matches!(param.kind, ParamKind::Plain | ParamKind::PositionalOnly));
        if params.len() != given.len() || !is_plain {
            let message = format!(
                "`{}`, the backward function of `{name}`, must take {}",
                backward.ast.name,
                count(given.len(), "argument")
            );
            let help = "its parameters are the arguments of the function, its results, and the adjoints of the results";
            let note = format!("they are ({})", shown_types(&given));
            self.report(Diagnostic::error(Code::ArgumentCount, span, message).note(note).help(help));
            return None;
        }
        let (func, returns, may_end_thread) = self.callee(&backward, &given, span)?;
        let of_all = self.check_adjoints(def, &backward, call.args, &returns, may_end_thread, span)?;
        self.cx.module.functions[call.func].rule = Some(Rule::Backward { func, of_all });
        Some(())
    }

    /// Checks that a backward function returns the adjoint of each argument that is a float, or of each one that is a
    /// number: whether it is the latter.
    fn check_adjoints(
        &mut self,
        def: &FunctionDef,
        backward: &FunctionDef,
        args: &[Ty],
        returns: &Ty,
        may_end_thread: bool,
        span: Span,
    ) -> Option<bool> {
        let parts: Vec<Type> = args.iter().flat_map(Ty::parts).map(|(_, ty)| ty).collect();
        let expected = parts.iter().filter(|ty| is_float(**ty)).count();
        let numbers = parts.iter().filter(|&&ty| ty != Type::BOOL).count();
        let given: Vec<Type> = returns.parts().into_iter().map(|(_, ty)| ty).collect();
        let is_number = |ty: &Type| matches!(ty, Type::Scalar(scalar) if *scalar != Scalar::Bool);
        if !may_end_thread && [expected, numbers].contains(&given.len()) && given.iter().all(is_number) {
            return Some(given.len() != expected);
        }
        let names: Vec<String> = def
            .ast
            .params
            .iter()
            .zip(args)
            .filter(|(_, ty)| ty.parts().iter().any(|(_, ty)| is_float(*ty)))
            .map(|(param, _)| format!("`{}`", param.name))
            .collect();
        let (name, own) = (&backward.ast.name, &def.ast.name);
        let message = if may_end_thread {
            format!("`{name}`, the backward function of `{own}`, may raise an exception")
        } else {
            format!("`{name}`, the backward function of `{own}`, returns {returns}")
        };
        let help = match names.as_slice() {
            [one] => format!("return a float: the adjoint of {one}"),
            all => format!("return a tuple of floats: the adjoints of {}", all.join(", ")),
        };
        self.report(Diagnostic::error(Code::NoDerivative, span, message).help(help));
        None
    }

    /// `stop_gradient(x)`.
    pub(in crate::frontend) fn stop_gradient(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        let ty = value.ty();
        if ty.is_poison() {
            return Value::Poison;
        }
        if !is_numeric(&ty.strong()) {
            return self.no_overload(row, &[ty], span);
        }
        let parts: Vec<Type> = ty.parts().into_iter().map(|(_, ty)| ty).collect();
        if !self.cx.differentiates || self.is_dry() || parts.is_empty() {
            return value;
        }
        let func = self.identity(&parts, span);
        let args = self.flatten(value, span);
        let results: Vec<_> = parts.iter().map(|&ty| self.b.new_temp(ty)).collect();
        self.stmt(Ir::Call { results: results.clone(), func, args }, span);
        self.rebuild(&ty, &mut results.into_iter(), span)
    }

    /// A function that returns its arguments, with the derivative 0.
    fn identity(&mut self, types: &[Type], span: Span) -> FuncId {
        let span = self.at(span);
        let number = self.cx.functions.n_named;
        self.cx.functions.n_named += 1;
        let mut b = Builder::new(Function::new(format!("stop_gradient.{number}"), FunctionKind::Device, span));
        let params: Vec<_> = types.iter().map(|&ty| b.new_temp(ty)).collect();
        let values = params.iter().map(|&param| b.read(param, span)).collect();
        b.stmt(Ir::Return(values), span);
        let mut function = b.finish();
        (function.params, function.results) = (params, types.to_vec());
        (function.inline, function.rule) = (true, Some(Rule::Zero));
        self.cx.module.functions.push(function)
    }
}
