//! Calls of overloaded functions (`extending.overload`), whose implementations the compiler does not know.
//!
//! A user's Python function selects the implementation by the argument types. The compiler does not run Python: it
//! records a query ([`OverloadQuery`]) for each call that the request has no answer for, and the compilation returns
//! these queries instead of code. Dry runs record queries, too, even for types that a loop widens later.

use std::sync::Arc;

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{expr::Args, lowerer::FnLowerer, object::Static, ty::Ty, value::Value},
    request::{Answer, FunctionDef, OverloadArgument, OverloadQuery, Overloaded, Typing},
    source::Span,
};

impl FnLowerer<'_> {
    /// A call of an overloaded function.
    pub(super) fn call_overloaded(&mut self, function: &Overloaded, args: Args, span: Span) -> Value {
        let Some(query) = self.query(function, &args) else { return Value::Poison };
        match self.answer(&query) {
            Some(Ok(def)) => self.call_function(&def, args, span),
            Some(Err(why)) => {
                let message = format!("no implementation of `{}` takes ({})", function.name, query.shown());
                let mut diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
                if let Some(why) = why {
                    diagnostic = diagnostic.note(why);
                }
                self.report(diagnostic)
            }
            None => {
                if !self.cx.queries.contains(&query) {
                    self.cx.queries.push(query);
                }
                Value::Poison
            }
        }
    }

    /// The user's overload of a function that kernels also support themselves, unless the answer is that there is none.
    pub(super) fn overloaded_besides(&self, path: &str, args: &Args) -> Option<Overloaded> {
        let function = self.overloaded_at(path)?;
        let query = Self::query_of(&function, args).ok()?;
        match self.answer(&query) {
            Some(Err(_)) => None,
            Some(Ok(_)) | None => Some(function),
        }
    }

    /// An overloaded function in a module that weft knows.
    pub(super) fn overloaded_at(&self, path: &str) -> Option<Overloaded> {
        self.cx.overloads.members.get(path).cloned()
    }

    /// Whether a path is a module with overloaded members.
    pub(super) fn leads_to_overloaded(&self, path: &str) -> bool {
        let inside = |member: &String| member.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        self.cx.overloads.members.keys().any(inside)
    }

    /// An overloaded method of a value; the answer to the query decides whether its class has it.
    pub(super) fn overloaded_method(&self, object: &Value, name: &str) -> Option<Overloaded> {
        if matches!(object, Value::Static(_) | Value::Poison) {
            return None;
        }
        self.overloaded_at(&format!("method.{name}"))
    }

    /// An overloaded attribute of a value; returns the value if its class has no such attribute.
    pub(super) fn overloaded_attribute(&mut self, value: Value, name: &str, span: Span) -> Result<Value, Value> {
        if matches!(value, Value::Static(_) | Value::Poison) {
            return Err(value);
        }
        let Some(function) = self.overloaded_at(&format!("attribute.{name}")) else { return Err(value) };
        let Some(given) = value.ty().widened(Typing::Numba).arg() else { return Err(value) };
        let query = OverloadQuery { function: function.number, args: vec![(None, OverloadArgument::Type(given))] };
        match self.answer(&query) {
            Some(Err(_)) => Err(value),
            Some(Ok(_)) | None => {
                let args = Args { positional: vec![(value, span)], keywords: Vec::new() };
                Ok(self.call_overloaded(&function, args, span))
            }
        }
    }

    /// The query for a call; reports an argument without a type of its own.
    fn query(&mut self, function: &Overloaded, args: &Args) -> Option<OverloadQuery> {
        match Self::query_of(function, args) {
            Ok(query) => Some(query),
            Err((ty, at)) => {
                if !ty.is_poison() {
                    let message = format!("{ty} cannot be an argument of the overloaded `{}`", function.name);
                    self.error(Code::NoMatchingOverload, at, message);
                }
                None
            }
        }
    }

    /// The query for a call, or the argument without a type of its own.
    fn query_of(function: &Overloaded, args: &Args) -> Result<OverloadQuery, (Ty, Span)> {
        let positional = args.positional.iter().map(|(value, at)| (None, value, *at));
        let named = args.keywords.iter().map(|(name, value, at)| (Some(name.clone()), value, *at));
        let mut given = Vec::new();
        for (name, value, at) in positional.chain(named) {
            let ty = value.ty();
            let what = if let Ty::Static(Static::Str(text)) = &ty {
                OverloadArgument::Str(text.clone())
            } else {
                ty.widened(Typing::Numba).arg().map(OverloadArgument::Type).ok_or((ty, at))?
            };
            given.push((name, what));
        }
        Ok(OverloadQuery { function: function.number, args: given })
    }

    /// The request's answer to a query.
    fn answer(&self, query: &OverloadQuery) -> Option<Result<Arc<FunctionDef>, Option<String>>> {
        let known = |answer: &&Answer| answer.query == *query;
        self.cx.overloads.answers.iter().find(known).map(|answer| answer.chosen.clone())
    }
}
