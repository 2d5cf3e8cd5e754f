//! Calls: of device functions, types, and the rows of the intrinsic table.

use std::sync::Arc;

use weft_artifact::{ArgType, Conversion, DType, Number, Rank};

use super::backward::{self, Typed};
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        function::count,
        lowerer::FnLowerer,
        object::{Exception, ObjectKind, Static},
        prelude, refusals,
        ty::{ArrayTy, Sites, Ty, shown_path},
        typing::result_type,
        value::{LibraryName, Value},
    },
    intrinsics::{self, Custom, Lowering},
    ir::{FuncId, FunctionKind, Rule, StmtKind as Ir},
    request::{FunctionDef, GpuBody, Typing},
    source::Span,
    syntax::{
        self,
        ast::{self, Expr, ExprKind, ParamKind},
    },
};

/// Evaluated arguments of a call.
#[derive(Debug)]
pub(in crate::frontend) struct Args {
    /// Positional arguments, with their spans.
    pub(in crate::frontend) positional: Vec<(Value, Span)>,
    /// Keyword arguments.
    pub(in crate::frontend) keywords: Vec<(String, Value, Span)>,
}

/// The maximum number of calls that an error in a device function shows, from the innermost one outwards.
const MOST_CALLS_SHOWN: usize = 12;

/// The types of arguments. The last `literals` ones, and those that the function uses as a shape, retain their constant
/// values.
fn argument_types(def: &FunctionDef, values: &[Value], literals: usize) -> Vec<Ty> {
    let typing = def.typing.unwrap_or_default();
    let passed = |ty: Ty| match typing {
        Typing::Numba => ty.strong(),
        Typing::Numpy => ty,
    };
    let mut types: Vec<Ty> = values.iter().map(|value| passed(value.ty().lent())).collect();
    let others = types.len() - literals.min(types.len());
    if types.iter().take(others).any(|ty| *ty != ty.widened(typing)) {
        let shapes = syntax::shape_names(&def.ast);
        for (ty, param) in types.iter_mut().zip(&def.ast.params).take(others) {
            if !prelude::is_known(def, param) && !shapes.contains(&param.name) {
                *ty = ty.widened(typing);
            }
        }
    }
    types
}

impl FnLowerer<'_> {
    pub(super) fn call(
        &mut self,
        func: &Expr,
        args: &[Expr],
        keywords: &[(Option<String>, Expr)],
        span: Span,
    ) -> Value {
        let hint = self.hint.take();
        let callee = if let ExprKind::Attribute { value, attr } = &func.kind {
            let object = self.expr(value);
            if let Some(row) = Self::method_row(&object, attr) {
                let object =
                    self.before(object, value.span, args.iter().chain(keywords.iter().map(|(_, value)| value)));
                let Some(args) = self.args(args, keywords) else { return Value::Poison };
                let takes_none = row.lowering == Lowering::Custom(Custom::Format);
                let mut args = if takes_none { args } else { self.args_not_none(args) };
                args.positional.insert(0, (object, value.span));
                return self.intrinsic(row, args, span);
            }
            if let Some(function) = self.overloaded_method(&object, attr) {
                let object =
                    self.before(object, value.span, args.iter().chain(keywords.iter().map(|(_, value)| value)));
                let Some(mut args) = self.args(args, keywords) else { return Value::Poison };
                args.positional.insert(0, (object, value.span));
                return self.call_overloaded(&function, args, span);
            }
            self.attribute_of(object, attr, func.span)
        } else {
            self.expr(func)
        };
        let Some(args) = self.args(args, keywords) else { return Value::Poison };
        if args.positional.iter().any(|(value, _)| value.ty().is_poison())
            || args.keywords.iter().any(|(_, value, _)| value.ty().is_poison())
        {
            return Value::Poison;
        }
        let args = if self.takes_none(&callee, &args, span) { args } else { self.args_not_none(args) };
        if let Some(class) = Exception::of(&callee).filter(|class| class.args.is_none()) {
            return self.exception(class, args);
        }
        match callee {
            Value::Poison => Value::Poison,
            Value::Static(Static::Function(def)) => self.call_function(&def, args, span),
            Value::Static(Static::Overloaded(function)) => self.call_overloaded(&function, args, span),
            Value::Object(ObjectKind::Closure(closure), items) => self.call_closure(&closure, &items, args, span),
            Value::Static(Static::DType(DType::Number(number))) => self.cast(number, args, span),
            Value::Static(Static::DType(dtype)) => self.vector(dtype, args, span),
            Value::Static(Static::Class(class, defaults)) => self.construct(class, &defaults, args, span),
            Value::Static(Static::Known(LibraryName::Row(row))) => {
                if let Some(function) = self.overloaded_besides(row.path, &args) {
                    return self.call_overloaded(&function, args, span);
                }
                self.hint = hint;
                let value = self.intrinsic(row, args, span);
                self.hint = None;
                value
            }
            Value::Static(Static::Known(LibraryName::Path(path))) => {
                if let Some(name) = path.strip_prefix("prelude.") {
                    return self.primitive(name, args, span);
                }
                if let Some(function) = self.overloaded_at(&path) {
                    return self.call_overloaded(&function, args, span);
                }
                if let Some(name) = path.strip_prefix("builtins.") {
                    return self.no_builtin(name, func.span);
                }
                let diagnostic = super::name::only_in_numba(&path, Code::NotCallable, func.span).unwrap_or_else(|| {
                    let message = format!("`{}` cannot be called in a kernel", shown_path(&path));
                    let name = path.rsplit('.').next().unwrap_or(&path);
                    let full: Vec<String> =
                        intrinsics::members(&path).map(|name| format!("{}.{name}", shown_path(&path))).collect();
                    let members = refusals::listed(full.iter().map(String::as_str));
                    let help = members.map_or_else(
                        || {
                            "call it outside the kernel, or write it as a function with `@cuda.jit(device=True)`"
                                .to_owned()
                        },
                        |members| format!("it is not a function; it has {members}"),
                    );
                    Diagnostic::error(Code::NotCallable, func.span, message)
                        .numba(format!("Untyped global name '{name}': Cannot determine Numba type"))
                        .help(help)
                });
                self.report(diagnostic)
            }
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)) => {
                let message = format!("{} cannot be called", other.ty());
                self.error(Code::NotCallable, func.span, message)
            }
        }
    }

    /// Evaluates arguments in order; each is complete before the effects of the next one.
    fn args(&mut self, args: &[Expr], keywords: &[(Option<String>, Expr)]) -> Option<Args> {
        let mut out = Args { positional: Vec::new(), keywords: Vec::new() };
        let later = |after: usize| args.iter().chain(keywords.iter().map(|(_, value)| value)).skip(after + 1);
        for (index, arg) in args.iter().enumerate() {
            let (inner, starred) =
                if let ExprKind::Starred(inner) = &arg.kind { (inner.as_ref(), true) } else { (arg, false) };
            let value = if starred { self.expr(inner) } else { self.expr_or_none(inner) };
            let value = if starred { self.gathered(value, arg.span) } else { value };
            let value = self.before(value, arg.span, later(index));
            if !starred {
                out.positional.push((value, arg.span));
            } else if let Some(items) = value.as_tuple() {
                let items = items.to_vec();
                out.positional.extend(items.into_iter().map(|item| (item, arg.span)));
            } else {
                let message = format!("`*` unpacks tuples, not {}", value.ty());
                self.error(Code::UnsupportedExpression, arg.span, message);
                return None;
            }
        }
        for (index, (name, value)) in keywords.iter().enumerate() {
            let Some(name) = name else {
                let message = "a kernel cannot unpack arguments with `**`";
                let diagnostic = Diagnostic::error(Code::UnsupportedExpression, value.span, message);
                self.report(diagnostic.help("write each argument by name: `name=value`"));
                return None;
            };
            let span = value.span;
            let value = self.expr_or_none(value);
            let value = self.before(value, span, later(args.len() + index));
            out.keywords.push((name.clone(), value, span));
        }
        Some(out)
    }

    /// Whether the callee accepts `None` for optional arguments; reports arguments for which this is unknown.
    fn takes_none(&mut self, callee: &Value, args: &Args, span: Span) -> bool {
        let Value::Static(known) = callee else { return matches!(callee, Value::Object(..)) };
        let row = match known {
            Static::Function(_) | Static::Overloaded(_) | Static::Class(..) => return true,
            Static::DType(dtype) => return *dtype == DType::from(Number::BOOL),
            Static::Known(LibraryName::Row(row)) => *row,
            Static::None
            | Static::Str(_)
            | Static::Bytes(_)
            | Static::Known(LibraryName::Path(_))
            | Static::Module(..)
            | Static::Exception(_) => {
                return false;
            }
        };
        if let Lowering::Custom(Custom::Type | Custom::HasAttr | Custom::GetAttr | Custom::Callable) = row.lowering
            && args.positional.iter().any(|(value, _)| value.ty().optional().is_some())
        {
            let message =
                format!("the argument may be `None`, and `{}` would be known only at run time", shown_path(row.path));
            let diagnostic = Diagnostic::error(Code::NotConstant, span, message);
            self.report(diagnostic.help("test it first: `if x is not None:`"));
        }
        matches!(
            row.lowering,
            Lowering::Custom(Custom::Bool | Custom::IsInstance | Custom::Next | Custom::Print | Custom::Format)
                | Lowering::Operator(_)
        )
    }

    /// Arguments without optionals: the thread ends if one is `None`.
    fn args_not_none(&mut self, args: Args) -> Args {
        let Args { positional, keywords } = args;
        let positional = positional.into_iter().map(|(value, span)| (self.not_none(value, span), span)).collect();
        let keywords =
            keywords.into_iter().map(|(name, value, span)| (name, self.not_none(value, span), span)).collect();
        Args { positional, keywords }
    }

    pub(in crate::frontend) fn call_function(&mut self, def: &Arc<FunctionDef>, args: Args, span: Span) -> Value {
        self.call_with_literals(def, args, 0, span)
    }

    /// A call whose last arguments retain their constant values.
    pub(in crate::frontend) fn call_with_literals(
        &mut self,
        def: &Arc<FunctionDef>,
        args: Args,
        literals: usize,
        span: Span,
    ) -> Value {
        let def = &self.following(def);
        let Some(values) = self.bind(def, args, span) else { return Value::Poison };
        let Some(values) = self.convert_to_signature(def, values, span) else { return Value::Poison };
        match &def.gpu {
            Some(GpuBody::Ptx(body)) if self.cx.ptx => return self.ptx_function(def, body, values, span),
            Some(GpuBody::External(external)) if self.cx.ptx => {
                return self.external_function(def, external, values, span);
            }
            Some(GpuBody::External(external)) if !external.python => return self.no_code_on_cpu(external, span),
            Some(GpuBody::Ptx(_) | GpuBody::External(_)) | None => {}
        }
        let close = |value| match &value {
            // An inner function that calls itself has the captured values in its own parameters.
            Value::Object(ObjectKind::Closure(closure), _) if closure.is_of(def) => value,
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => self.close_over(value, span),
        };
        let values: Vec<Value> = values.into_iter().map(close).collect();
        let types = argument_types(def, &values, literals);
        let given: Vec<Ty> = values.iter().map(Value::ty).collect();
        if types.iter().any(Ty::is_poison) {
            return Value::Poison;
        }
        let (func, returns, may_end_thread) = if self.is_dry() {
            let (returns, may_end_thread) = result_type(self.cx, def, &types);
            // A dry run emits no call.
            (FuncId::new(u32::MAX), returns, may_end_thread)
        } else {
            let Some(callee) = self.callee(def, &types, span) else { return Value::Poison };
            callee
        };
        if returns.is_poison() {
            return Value::Poison;
        }
        if let Some(backward) = def.backward.as_ref().filter(|_| self.cx.differentiates && !self.is_dry()) {
            let call = Typed { func, args: &types, returns: &returns, may_end_thread };
            if self.set_backward(def, backward, &call, span).is_none() {
                return Value::Poison;
            }
        }
        if self.cx.differentiates && !self.is_dry() && backward::is_symmetric(def, &values) {
            self.cx.module.functions[func].rule = Some(Rule::Symmetric);
        }
        // An array that the function returns may be one of its arguments.
        let sites = given.iter().map(Ty::sites).fold(Sites::NONE, Sites::union);
        let returns = returns.borrowed(given.iter().any(Ty::is_own), sites);
        let mut parts = Vec::new();
        for (value, ty) in values.into_iter().zip(&types) {
            let value = if def.typing == Some(Typing::Numpy) { value } else { value.strong() };
            if let Some(value) = self.try_convert(value, ty, span) {
                parts.extend(self.flatten(value, span));
            }
        }
        let mut results: Vec<_> = returns.parts().into_iter().map(|(_, ty)| self.b.new_temp(ty)).collect();
        let ended = may_end_thread.then(|| self.b.new_temp(self.end_type()));
        results.extend(ended);
        self.stmt(Ir::Call { results: results.clone(), func, args: parts }, span);
        if let Some(ended) = ended {
            self.end_after_call(ended, span);
        }
        let result = self.rebuild(&returns, &mut results.into_iter(), span);
        if self.is_numpy() { result } else { result.strong() }
    }

    /// The function to call for argument types, its result type, and whether it may end the thread; reports its errors.
    pub(super) fn callee(&mut self, def: &Arc<FunctionDef>, types: &[Ty], span: Span) -> Option<(FuncId, Ty, bool)> {
        let compiled = self.device_function(def, types, span);
        if !compiled.errors.is_empty() {
            let what = if self.b.function.kind == FunctionKind::Export { "compiled for" } else { "called here with" };
            let label = format!("`{}` is {what} ({})", def.ast.name, shown_types(types));
            for diagnostic in compiled.errors {
                // The error is reported for one call; further calls would only repeat it.
                let known = |other: &Diagnostic| {
                    (other.code, other.span, &other.message) == (diagnostic.code, diagnostic.span, &diagnostic.message)
                };
                if !self.cx.diagnostics.iter().any(known) {
                    let shown = diagnostic.labels.len() >= MOST_CALLS_SHOWN;
                    let diagnostic = if shown { diagnostic } else { diagnostic.also(self.at(span), label.clone()) };
                    self.cx.diagnostics.push(diagnostic);
                }
            }
        }
        compiled.func.map(|func| (func, compiled.returns, compiled.may_end_thread))
    }

    /// The values of the parameters: by position, by name, or the default.
    fn bind(&mut self, def: &Arc<FunctionDef>, args: Args, span: Span) -> Option<Vec<Value>> {
        let params = &def.ast.params;
        let name = &def.ast.name;
        let wrong = |this: &mut Self, message: String| {
            let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
            let diagnostic = Diagnostic::error(Code::ArgumentCount, span, message)
                .note(format!("`{name}` takes ({})", names.join(", ")));
            this.report(diagnostic);
        };
        if params.iter().any(|param| param.kind == ParamKind::VarKeywords) {
            wrong(self, format!("`{name}` has a `**` parameter, which a device function cannot have"));
            return None;
        }
        let mut bound: Vec<Option<Value>> = params.iter().map(|_| None).collect();
        let by_position = |param: &&ast::Param| matches!(param.kind, ParamKind::Plain | ParamKind::PositionalOnly);
        let positional = params.iter().filter(by_position).count();
        let mut args = args;
        if let Some(rest) = params.iter().position(|param| param.kind == ParamKind::VarArgs) {
            let more = args.positional.split_off(positional.min(args.positional.len()));
            bound[rest] = Some(Value::tuple(more.into_iter().map(|(value, _)| value).collect()));
        }
        if args.positional.len() > positional {
            wrong(
                self,
                format!("`{name}` takes {} but {} given", count(positional, "argument"), were(args.positional.len())),
            );
            return None;
        }
        for (place, (value, _)) in bound.iter_mut().zip(args.positional) {
            *place = Some(value);
        }
        for (keyword, value, _) in args.keywords {
            match params.iter().position(|param| {
                param.name == keyword && matches!(param.kind, ParamKind::Plain | ParamKind::KeywordOnly)
            }) {
                Some(index) => {
                    if bound.get(index).is_some_and(Option::is_some) {
                        wrong(self, format!("`{name}` got multiple values for `{keyword}`"));
                        return None;
                    }
                    if let Some(place) = bound.get_mut(index) {
                        *place = Some(value);
                    }
                }
                None => {
                    wrong(self, format!("`{name}` has no parameter `{keyword}`"));
                    return None;
                }
            }
        }
        let mut out = Vec::new();
        for (place, param) in bound.into_iter().zip(params) {
            let value = match place {
                Some(value) => value,
                None => match (def.defaults.get(&param.name), &param.default) {
                    (Some(captured), _) => self.captured(captured, &param.name, span),
                    (None, Some(default)) => match self.literal_default(default, span) {
                        Some(value) => value,
                        None => {
                            wrong(self, format!("the default of `{}` is not a constant", param.name));
                            return None;
                        }
                    },
                    (None, None) => {
                        wrong(self, format!("`{name}` needs a value for `{}`", param.name));
                        return None;
                    }
                },
            };
            out.push(value);
        }
        Some(out)
    }

    fn literal_default(&mut self, default: &Expr, span: Span) -> Option<Value> {
        let ExprKind::Constant(literal) = &default.kind else { return None };
        Some(self.constant(literal, span))
    }

    /// Converts arguments to a declared signature, if the function has any: the first one that fits best.
    fn convert_to_signature(&mut self, def: &Arc<FunctionDef>, values: Vec<Value>, span: Span) -> Option<Vec<Value>> {
        if def.signatures.is_empty() {
            return Some(values);
        }
        let given: Option<Vec<ArgType>> = values.iter().map(|value| value.ty().arg()).collect();
        let fitting = def.signatures.iter().filter(|sig| sig.args.len() == values.len()).filter_map(|sig| {
            let conversions = given.as_deref()?.iter().zip(&sig.args).map(|(given, declared)| {
                let way = |given| {
                    Conversion::of_argument(given, declared, 0, &mut |_, from, to| Conversion::of(from, to?)).ok()
                };
                match (given, declared) {
                    // The thread ends if the value is `None`.
                    (ArgType::Optional(of), declared) if !matches!(declared, ArgType::Optional(_)) => {
                        way(of.as_ref()).map(|way| way.max(Conversion::Safe))
                    }
                    (given, _) => way(given),
                }
            });
            Some((conversions.collect::<Option<Rank>>()?, sig))
        });
        let chosen = weft_artifact::choose(fitting).first();
        let Some(chosen) = chosen else {
            let given: Vec<String> = values.iter().map(|value| value.ty().to_string()).collect();
            let mut diagnostic = Diagnostic::error(
                Code::NoMatchingOverload,
                span,
                format!("no signature of `{}` takes ({})", def.ast.name, given.join(", ")),
            );
            for sig in &def.signatures {
                let args: Vec<String> = sig.args.iter().map(ToString::to_string).collect();
                diagnostic = diagnostic.note(format!("it is declared for ({})", args.join(", ")));
            }
            let diagnostic = diagnostic.numba(format!(
                "Invalid use of type(CUDADispatcher(<function {}>)) with parameters ({})",
                def.ast.name,
                given.join(", ")
            ));
            self.report(diagnostic);
            return None;
        };
        let mut out = Vec::new();
        for (index, (value, arg)) in values.into_iter().zip(&chosen.args).enumerate() {
            let keeps_none = matches!(arg, ArgType::Optional(_));
            let value = if keeps_none { value } else { self.not_none(value, span) };
            let to = where_it_is(&value.ty(), Ty::of_arg(arg));
            let (given, n_reported) = (value.ty(), self.cx.diagnostics.len());
            let Some(value) = self.try_convert(value, &to, span) else {
                if self.cx.diagnostics.len() == n_reported {
                    let name = &def.ast.name;
                    let message =
                        format!("argument {} of `{name}` is {given}, which its signature does not accept", index + 1);
                    let error = Diagnostic::error(Code::NoMatchingOverload, span, message);
                    self.report(error.note(format!("the signature has {arg} here")));
                }
                return None;
            };
            out.push(value);
        }
        Some(out)
    }
}

/// A declared type, with the address spaces of a value, which declarations do not state.
fn where_it_is(given: &Ty, declared: Ty) -> Ty {
    match (given, declared) {
        (Ty::Array(array), Ty::Array(to)) => Ty::Array(ArrayTy { space: array.space, ..to }),
        (given, Ty::Object(ObjectKind::Optional, items)) => {
            let given = given.optional().unwrap_or(given);
            let known = |(place, item)| if place == 1 { where_it_is(given, item) } else { item };
            Ty::Object(ObjectKind::Optional, items.into_iter().enumerate().map(known).collect())
        }
        (Ty::Object(ObjectKind::Pointer | ObjectKind::VoidPointer, _), _) => given.clone(),
        // The items of tuples, and the address spaces of records and strings.
        (Ty::Object(kind, given), Ty::Object(declared, items)) if *kind == declared && given.len() == items.len() => {
            Ty::Object(declared, given.iter().zip(items).map(|(given, item)| where_it_is(given, item)).collect())
        }
        (_, declared) => declared,
    }
}

/// Types of arguments, for messages.
pub(in crate::frontend) fn shown_types(types: &[Ty]) -> String {
    types.iter().map(brief).collect::<Vec<_>>().join(", ")
}

/// A short form of a type: the full form of a nested tuple can be longer than the program.
fn brief(ty: &Ty) -> String {
    const MOST: usize = 60;
    let text = ty.to_string();
    if text.len() <= MOST { text } else { format!("{}…", text.chars().take(MOST).collect::<String>()) }
}

/// `1 was`, `3 were`, for messages.
fn were(n: usize) -> String {
    if n == 1 { "1 was".to_owned() } else { format!("{n} were") }
}
