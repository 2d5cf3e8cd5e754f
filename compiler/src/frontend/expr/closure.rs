//! `lambda`s and inner functions.
//!
//! A closure is a device function with an additional parameter for each variable of the enclosing function that it
//! reads. A call passes their current values, which are also those that Python reads. If the closure escapes that
//! function, as an argument or a result, it captures their values. A recursive closure reads itself as a variable: it
//! is passed to itself without captured values, which are in its own parameters.
//!
//! It returns its `nonlocal` variables after its result, and the call assigns them.

use std::sync::Arc;

use super::Args;
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::used_before,
        lowerer::FnLowerer,
        object::{Closure, ObjectKind},
        value::Value,
    },
    request::FunctionDef,
    source::Span,
    syntax::{
        ast::{Function, Param, ParamKind},
        free_names, nonlocal_names,
    },
};

impl FnLowerer<'_> {
    /// The value of a `lambda` or an inner `def`: the function, and the values of its defaults.
    pub(in crate::frontend) fn closure(&mut self, function: &Function) -> Value {
        let closure = self.closure_of(function);
        let defaults = function.params.iter().filter_map(|param| param.default.as_ref());
        let items = defaults
            .map(|default| {
                let value = self.expr_or_none(default);
                self.settle(value, default.span)
            })
            .collect();
        Value::Object(ObjectKind::Closure(closure), items)
    }

    /// The closure of a definition; each pass over the function uses the same one.
    fn closure_of(&mut self, function: &Function) -> Arc<Closure> {
        let here = |known: &&Arc<Closure>| Arc::ptr_eq(&known.outer, &self.def) && known.def.ast.span == function.span;
        if let Some(known) = self.cx.closures.iter().find(here) {
            return Arc::clone(known);
        }
        let mut captures: Vec<String> =
            free_names(function).into_iter().filter(|name| self.names.bound.contains(name)).collect();
        let writes: Vec<String> =
            nonlocal_names(function).into_iter().filter(|name| self.names.bound.contains(name)).collect();
        // Captures that it does not assign retain their constant values.
        captures.sort_by_key(|name| !writes.contains(name));
        let mut ast = function.clone();
        let defaults = ast.params.iter().filter(|param| param.default.is_some()).map(|param| param.name.clone());
        let defaults: Vec<String> = defaults.collect();
        for param in &mut ast.params {
            param.default = None;
        }
        let at = ast.params.iter().position(|param| param.kind == ParamKind::VarKeywords).unwrap_or(ast.params.len());
        let captured = captures.iter().map(|name| Param {
            name: name.clone(),
            annotation: None,
            default: None,
            kind: ParamKind::KeywordOnly,
            span: function.name_span,
        });
        ast.params.splice(at..at, captured.collect::<Vec<_>>());
        let def = FunctionDef {
            ast,
            source: Arc::clone(&self.def.source),
            globals: self.def.globals.clone(),
            defaults: std::collections::BTreeMap::new(),
            signatures: Vec::new(),
            inline: true,
            typing: self.def.typing,
            gpu: None,
            backward: None,
            number: self.def.number,
        };
        let outer = Arc::clone(&self.def);
        let closure =
            Arc::new(Closure { def: Arc::new(def), captures, writes, defaults, outer, depth: self.scopes.len() });
        self.cx.closures.push(Arc::clone(&closure));
        closure
    }

    /// A call of a closure; `items` are its defaults, and the captured values if it has escaped its function.
    pub(super) fn call_closure(
        &mut self,
        closure: &Arc<Closure>,
        items: &[Value],
        mut args: Args,
        span: Span,
    ) -> Value {
        let params = &closure.def.ast.params;
        for (name, default) in closure.defaults.iter().zip(items) {
            let position = params.iter().position(|param| param.name == *name);
            let given = position.is_some_and(|position| {
                position < args.positional.len() && params[position].kind != ParamKind::KeywordOnly
            });
            if !given && !args.keywords.iter().any(|(given, ..)| given == name) {
                let value = self.reread(default, span);
                args.keywords.push((name.clone(), value, span));
            }
        }
        let Some(captured) = self.captured_values(closure, items, span) else { return Value::Poison };
        // The variables that it assigns are not constants.
        let known = captured.len() - closure.captures.iter().filter(|name| closure.writes.contains(name)).count();
        for (name, value) in closure.captures.iter().zip(captured) {
            args.keywords.push((name.clone(), value, span));
        }
        let result = self.call_with_literals(&closure.def, args, known, span);
        self.assign_written(closure, result, span)
    }

    /// The results of an inner function: its own, followed by the variables of the enclosing function that it assigns.
    pub(in crate::frontend) fn with_written(&mut self, value: Value, span: Span) -> Value {
        if self.names.writes.is_empty() {
            return value;
        }
        let mut items = vec![value];
        for name in self.names.writes.clone() {
            let Some(var) = self.env.as_ref().and_then(|env| env.get(&name)).cloned() else {
                return self.report(used_before(&name, span));
            };
            items.push(self.read_var(&name, &var, span));
        }
        Value::tuple(items)
    }

    /// Assigns the variables that an inner function has assigned, and returns its result.
    fn assign_written(&mut self, closure: &Closure, result: Value, span: Span) -> Value {
        if closure.writes.is_empty() {
            return result;
        }
        let Some((value, written)) = result.as_tuple().and_then(|items| items.split_first()) else {
            return Value::Poison;
        };
        for (name, written) in closure.writes.iter().zip(written) {
            self.at_depth(closure.depth, |this| this.assign_var(name, written.clone(), span));
        }
        value.clone()
    }

    /// The values of the variables that a closure reads.
    fn captured_values(&mut self, closure: &Arc<Closure>, items: &[Value], span: Span) -> Option<Vec<Value>> {
        if items.len() > closure.defaults.len() {
            return Some(items[closure.defaults.len()..].iter().map(|item| self.reread(item, span)).collect());
        }
        if closure.captures.is_empty() {
            return Some(Vec::new());
        }
        let inside = closure.is_of(&self.def);
        if !inside && !Arc::ptr_eq(&closure.outer, &self.def) {
            let message = format!("`{}` is called where the variables that it reads are out of scope", closure.name());
            let diagnostic = Diagnostic::error(Code::NotCallable, span, message);
            self.report(diagnostic.help("pass them as arguments"));
            return None;
        }
        if let Some(first) = self.closing.iter().position(|open| open == closure) {
            let names: Vec<String> = self.closing[first..].iter().map(|open| format!("`{}`", open.name())).collect();
            let message = format!("the inner functions {} call each other", names.join(" and "));
            let diagnostic = Diagnostic::error(Code::Recursion, span, message);
            self.report(diagnostic.help("define them outside the kernel, with `@cuda.jit`"));
            return None;
        }
        self.closing.push(Arc::clone(closure));
        let values = self.at_depth(closure.depth, |this| this.read_captures(closure, span));
        self.closing.pop();
        values
    }

    fn read_captures(&mut self, closure: &Arc<Closure>, span: Span) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        for name in &closure.captures {
            let Some(var) = self.env.as_ref().and_then(|env| env.get(name)).cloned() else {
                self.report(used_before(name, span));
                return None;
            };
            let value = self.read_var(name, &var, span);
            let is_itself = matches!(&value, Value::Object(ObjectKind::Closure(other), _) if other == closure);
            let value = if is_itself { value } else { self.close_over(value, span) };
            values.push(self.settle(value, span));
        }
        Some(values)
    }

    /// A value for another function: closures in it capture the variables that they read.
    pub(in crate::frontend) fn close_over(&mut self, value: Value, span: Span) -> Value {
        match value {
            Value::Object(ObjectKind::Closure(closure), mut items) => {
                let here = Arc::ptr_eq(&closure.outer, &self.def) || closure.is_of(&self.def);
                if items.len() == closure.defaults.len() && here {
                    if let Some(name) = closure.writes.first() {
                        let message = format!("`{}` assigns to `{name}` of the enclosing function", closure.name());
                        let diagnostic = Diagnostic::error(Code::UnsupportedValue, span, message);
                        return self.report(
                            diagnostic.help("call it only in that function: do not pass, return or capture it"),
                        );
                    }
                    let captured = self.captured_values(&closure, &items, span).unwrap_or_default();
                    items.extend(captured);
                }
                Value::Object(ObjectKind::Closure(closure), items)
            }
            Value::Object(ObjectKind::Generator(_), _) => {
                let diagnostic = Diagnostic::error(
                    Code::UnsupportedValue,
                    span,
                    "a generator cannot be passed to or returned from a function",
                );
                self.report(diagnostic.help("pass its items: `tuple(… for … in …)`"))
            }
            Value::Object(ObjectKind::Iterator(_), _) => {
                let diagnostic = Diagnostic::error(
                    Code::UnsupportedValue,
                    span,
                    "an iterator cannot be passed to or returned from a function",
                );
                self.report(diagnostic.help("pass the iterable and the current index instead"))
            }
            Value::Object(kind, items) => {
                Value::Object(kind, items.into_iter().map(|item| self.close_over(item, span)).collect())
            }
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Static(_)
            | Value::Poison) => other,
        }
    }
}
