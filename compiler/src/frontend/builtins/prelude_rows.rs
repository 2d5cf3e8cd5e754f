//! Rows that are implemented by functions of the prelude, and ufuncs over arrays.

use std::sync::Arc;

use super::super::{
    expr::Args,
    function::count,
    lowerer::FnLowerer,
    object::{ObjectKind, Static},
    prelude, refusals,
    ty::shown_path,
    value::{ArrayValue, LibraryName, Value},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    intrinsics::{Intrinsic, Lowering, Returns},
    ir::{MathFn, Type},
    request::FunctionDef,
    source::Span,
    syntax::ast::{Constant, ExprKind},
};

impl FnLowerer<'_> {
    /// A call of a prelude function, for the overload that fits best.
    pub(super) fn own_function(&mut self, row: &'static Intrinsic, name: &str, args: Args, span: Span) -> Value {
        let Some(def) = prelude::function(name) else {
            self.cx.fault(self.at(span), &format!("the prelude lacks `{name}`"));
            return Value::Poison;
        };
        let Some(values) = self.bind_own(row, &def, args, span) else { return Value::Poison };
        let Some(sig) = self.choose_overload(row, &values, span) else { return Value::Poison };
        let Some(values) = self.passed(sig, values, span) else { return Value::Poison };
        self.own_result(row, &def, values, sig.returns, span)
    }

    /// A back-end function for real numbers; a prelude function for complex numbers.
    pub(super) fn math_or(
        &mut self,
        row: &'static Intrinsic,
        function: MathFn,
        name: &str,
        args: Args,
        span: Span,
    ) -> Value {
        let complex = args.positional.iter().any(|(value, _)| matches!(value, Value::Complex(..)));
        let given = args.positional.len() + args.keywords.len();
        if complex || given > function.arity() {
            self.own_function(row, name, args, span)
        } else {
            self.math(row, function, args, span)
        }
    }

    /// `f(a, b, c)` as `f(f(a, b), c)`.
    pub(super) fn fold(&mut self, row: &'static Intrinsic, of: Lowering, args: Args, span: Span) -> Value {
        if args.positional.len() <= 2 || !args.keywords.is_empty() {
            return self.lowered(row, of, args, span);
        }
        let mut found: Option<(Value, Span)> = None;
        for value in args.positional {
            found = Some(match found {
                None => value,
                Some(before) => {
                    let pair = Args { positional: vec![before, value], keywords: Vec::new() };
                    (self.lowered(row, of, pair, span), span)
                }
            });
        }
        found.map_or(Value::Poison, |(value, _)| value)
    }

    /// Converts the result of a prelude function to the type that the row declares.
    pub(super) fn own_result(
        &mut self,
        row: &'static Intrinsic,
        def: &Arc<FunctionDef>,
        values: Vec<Value>,
        returns: Returns,
        span: Span,
    ) -> Value {
        if self.is_dry() {
            return self.placeholder(returns, span);
        }
        let types: Vec<_> = values.iter().map(Value::ty).collect();
        match self.call_own(def, values, span) {
            Ok(value) => self.returned(value, returns, span),
            // For example, the trace of an array that is not two-dimensional.
            Err(_) => self.no_overload(row, &types, span),
        }
    }

    /// Calls a function of the prelude as a device function. An error in it is not the user's: the caller replaces the
    /// message.
    pub(in crate::frontend) fn call_own(
        &mut self,
        def: &Arc<FunctionDef>,
        values: Vec<Value>,
        span: Span,
    ) -> Result<Value, Diagnostic> {
        let before = self.cx.diagnostics.len();
        let args = Args { positional: values.into_iter().map(|value| (value, span)).collect(), keywords: Vec::new() };
        let value = self.call_function(def, args, span);
        let errors = self.cx.diagnostics.split_off(before);
        match errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(value),
        }
    }

    /// The values of a prelude function's parameters: by position, by name, or the default, which is a literal. Stops
    /// at the first parameter with the default `None` for which no argument is passed.
    fn bind_own(&mut self, row: &Intrinsic, def: &Arc<FunctionDef>, args: Args, span: Span) -> Option<Vec<Value>> {
        let mut values = self.bind_places(row, def, args, span)?;
        let end = values.iter().position(Option::is_none).unwrap_or(values.len());
        values.truncate(end);
        values.into_iter().collect()
    }

    /// The same, with `None` for such parameters.
    pub(super) fn bind_all(
        &mut self,
        row: &Intrinsic,
        def: &Arc<FunctionDef>,
        args: Args,
        span: Span,
    ) -> Option<Vec<Value>> {
        let values = self.bind_places(row, def, args, span)?;
        Some(values.into_iter().map(|value| value.unwrap_or(Value::NONE)).collect())
    }

    /// The values of the parameters; no value for one with the default `None` for which no argument is passed.
    fn bind_places(
        &mut self,
        row: &Intrinsic,
        def: &Arc<FunctionDef>,
        args: Args,
        span: Span,
    ) -> Option<Vec<Option<Value>>> {
        let params = &def.ast.params;
        let name = shown_path(row.path);
        let given = args.positional.len();
        if given > params.len() {
            let message = format!("`{name}` takes {}, not {given}", count(params.len(), "argument"));
            self.error(Code::ArgumentCount, span, message);
            return None;
        }
        let mut bound: Vec<Option<Value>> = args.positional.into_iter().map(|(value, _)| Some(value)).collect();
        bound.resize_with(params.len(), || None);
        for (keyword, value, at) in args.keywords {
            let place = params.iter().position(|param| param.name == keyword).and_then(|index| bound.get_mut(index));
            let message = match place {
                Some(place @ None) => {
                    *place = Some(value);
                    continue;
                }
                Some(_) => format!("`{name}` got multiple values for `{keyword}`"),
                None => format!("`{name}` has no parameter `{keyword}`"),
            };
            self.error(Code::ArgumentCount, at, message);
            return None;
        }
        let needed = params.iter().filter(|param| param.default.is_none()).count();
        let mut values = Vec::new();
        for (value, param) in bound.into_iter().zip(params) {
            let value = match (value, &param.default) {
                (Some(value), _) => Some(value),
                (None, Some(default)) if matches!(default.kind, ExprKind::Constant(Constant::None)) => None,
                (None, Some(default)) => Some(self.expr(default)),
                (None, None) => {
                    let message = format!("`{name}` takes {}, not {given}", count(needed, "argument"));
                    self.error(Code::ArgumentCount, span, message);
                    return None;
                }
            };
            values.push(value);
        }
        Some(values)
    }

    /// A value of the row's result type, for a dry run.
    fn placeholder(&mut self, returns: Returns, span: Span) -> Value {
        match returns {
            Returns::Nothing => Value::NONE,
            Returns::Scalar(scalar) => Value::Scalar(self.b.zero(Type::Scalar(scalar), span), scalar),
            Returns::Complex(complex) => {
                let part = Type::Scalar(complex.part());
                Value::Complex(self.b.zero(part, span), self.b.zero(part, span), complex)
            }
            Returns::Tuple(scalars) => {
                let items = scalars.iter().map(|scalar| self.placeholder(Returns::Scalar(*scalar), span)).collect();
                self.tuple(items, span)
            }
            Returns::Array(_) => Value::Poison,
        }
    }

    /// A result, converted to the row's result type.
    fn returned(&mut self, value: Value, returns: Returns, span: Span) -> Value {
        let found = match returns {
            Returns::Nothing => Some(Value::NONE),
            Returns::Scalar(scalar) => self.number(&value, scalar, span).map(|expr| Value::Scalar(expr, scalar)),
            Returns::Complex(to) => self.complex(&value, to, span).map(|(real, imag)| Value::Complex(real, imag, to)),
            Returns::Tuple(scalars) => {
                let items = if let Value::Object(_, items) = value { items } else { Vec::new() };
                (items.len() == scalars.len()).then(|| {
                    let each = items.into_iter().zip(scalars);
                    let items = each.map(|(item, to)| self.returned(item, Returns::Scalar(*to), span)).collect();
                    self.tuple(items, span)
                })
            }
            Returns::Array(_) => Some(value),
        };
        found.unwrap_or_else(|| {
            self.cx.fault(self.at(span), "a function of the prelude does not return what its row declares");
            Value::Poison
        })
    }

    /// A ufunc: of numbers, or of arrays, broadcast as NumPy does, with arrays for the results after the arguments.
    pub(super) fn ufunc(&mut self, row: &'static Intrinsic, of: Lowering, mut args: Args, span: Span) -> Value {
        if let Some(index) = args.keywords.iter().position(|(name, ..)| name == "out") {
            let (_, value, at) = args.keywords.remove(index);
            // `out=(a, b)` of a ufunc with two results, and `out=(a,)`.
            match value.as_tuple() {
                Some(items) => args.positional.extend(items.iter().map(|item| (item.clone(), at))),
                None => args.positional.push((value, at)),
            }
        }
        if !args.positional.iter().any(|(value, _)| matches!(value, Value::Array(_))) {
            return self.lowered(row, of, args, span);
        }
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        // A ufunc without overloads is one of dates and durations.
        let inputs = row.signatures.first().map_or(1, |sig| sig.args.len());
        let pair = row.signatures.first().is_some_and(|sig| matches!(sig.returns, Returns::Tuple(_)));
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        let types: Vec<_> = values.iter().map(Value::ty).collect();
        let name = shown_path(row.path);
        let array = |value: &Value| if let Value::Array(array) = value { Some(array.clone()) } else { None };
        let outs: Option<Vec<ArrayValue>> = values.iter().skip(inputs).map(array).collect();
        let Some(outs) = outs.filter(|outs| outs.len() == 1 + usize::from(pair)) else {
            let what = if pair { "two arrays" } else { "an array" };
            let message = format!("`{name}` of an array needs {what} for the results as the last arguments");
            let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
            return self.report(diagnostic.help(refusals::ELEMENTS));
        };
        if let Some(out) = outs.iter().find(|out| out.ty.readonly) {
            return self.report(refusals::readonly(Value::Array(out.clone()).ty(), span));
        }
        let ndim = outs.first().map_or(0, |out| out.ty.ndim);
        let fits = |value: &Value| {
            if let Value::Array(array) = value { array.ty.ndim <= ndim } else { is_element(value) }
        };
        let function = prelude::function(&format!("each{inputs}{}", if pair { "_pair" } else { "" }));
        let alike = outs.iter().all(|out| out.ty.ndim == ndim);
        let (Some(function), true) = (function, alike && values.iter().all(fits)) else {
            return self.no_overload(row, &types, span);
        };
        let shape = outs.first().map(|out| out.shape.clone()).unwrap_or_default();
        for (number, value) in values.iter().enumerate() {
            let Value::Array(array) = value else { continue };
            let fits = if number < inputs {
                self.end_unless_fits(array, &shape, span)
            } else {
                self.end_unless_alike(&array.shape, &shape, span)
            };
            if fits.is_none() {
                return Value::Poison;
            }
        }
        let mut outs: Vec<Value> = outs.into_iter().map(Value::Array).collect();
        let out = if let (Some(out), true) = (outs.pop(), outs.is_empty()) {
            out
        } else {
            Value::tuple(values[inputs..].to_vec())
        };
        if self.is_dry() {
            return out;
        }
        let values = std::iter::once(Value::Static(Static::Known(LibraryName::Row(row)))).chain(values).collect();
        match self.call_own(&function, values, span) {
            Ok(_) => out,
            Err(_) => self.no_overload(row, &types, span),
        }
    }
}

/// Whether an argument of a ufunc is a number, a date or a duration.
fn is_element(value: &Value) -> bool {
    value.ty().number().is_some() || matches!(value, Value::Object(ObjectKind::Time(_), _))
}
