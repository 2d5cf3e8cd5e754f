//! Names: locals, captured values, Python's builtins.

use std::sync::Arc;

use weft_artifact::{Complex, Number, Scalar};

use crate::{
    diagnostic::{self, Code, Diagnostic, NameContext},
    frontend::{
        cuda_cpp_names,
        lowerer::FnLowerer,
        object::{Exception, ObjectKind, Static},
        ty::shown_path,
        value::{LibraryName, Value},
    },
    intrinsics,
    request::{Captured, Unsupported, dtype_of_path},
    source::Span,
    syntax::OWN_BUILTIN,
};

impl FnLowerer<'_> {
    pub(super) fn name(&mut self, name: &str, span: Span) -> Value {
        if self.names.bound.contains(name) {
            let Some(env) = &self.env else { return Value::Poison };
            if let Some(var) = env.get(name).cloned() {
                return self.read_var(name, &var, span);
            }
            if self.def.globals.contains_key(name) {
                let diagnostic = Diagnostic::error(
                    Code::UndefinedLocal,
                    span,
                    format!("local variable `{name}` is used before it has a value"),
                )
                .note(format!(
                    "`{name}` is assigned in this function, so it is a local here and the global `{name}` is hidden"
                ))
                .help("rename the local variable");
                return self.report(diagnostic);
            }
            return self.report(used_before(name, span));
        }
        let def = Arc::clone(&self.def);
        if let Some(captured) = def.globals.get(name) {
            return self.captured(captured, name, span);
        }
        let builtin = format!("builtins.{}", name.strip_suffix(OWN_BUILTIN).unwrap_or(name));
        if intrinsics::is_known(&builtin) || intrinsics::is_exception(name) {
            return Value::Static(Static::Known(LibraryName::of(builtin)));
        }
        if intrinsics::is_builtin(name) {
            return self.no_builtin(name, span);
        }
        let message = format!("name `{name}` is not defined");
        // Each name is reported once, at its first use.
        if self.cx.diagnostics.iter().any(|known| known.code == Code::UnknownName && known.message == message) {
            return Value::Poison;
        }
        let mut diagnostic = Diagnostic::error(Code::UnknownName, span, message);
        let near = {
            let mut candidates: Vec<&str> = self.names.bound.iter().map(String::as_str).collect();
            candidates.extend(def.globals.keys().map(String::as_str));
            for builtin in intrinsics::members("builtins") {
                candidates.push(builtin);
            }
            diagnostic::closest(name, candidates).map(str::to_owned)
        };
        if let Some(instead) = diagnostic::instead(NameContext::Kernel, &format!("c++.{name}")) {
            diagnostic = diagnostic.help(instead);
        } else if let Some(help) = import_of(name) {
            diagnostic = diagnostic.help(help);
        } else if let Some(own) = cuda_cpp_names::of_cuda(name) {
            diagnostic = diagnostic.help(format!("write `{own}`, after `from weft import cuda`"));
        } else if let Some(own) = cuda_cpp_names::of_math(name) {
            diagnostic = diagnostic.help(format!("write `{own}`, after `import math`"));
        } else if let Some(near) = near {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        self.report(diagnostic)
    }

    /// The error of a built-in Python function that kernels do not support.
    pub(super) fn no_builtin(&mut self, name: &str, span: Span) -> Value {
        self.report(no_builtin(name, span))
    }

    /// The value of a captured name.
    pub(in crate::frontend) fn captured(&mut self, captured: &Captured, name: &str, span: Span) -> Value {
        match captured {
            Captured::None => Value::Static(Static::None),
            Captured::Bool(value) => Value::Bool(*value),
            Captured::Int(value) => Value::Int(*value),
            Captured::Float(value) => {
                let value = self.b.float(Scalar::F64, *value, span);
                self.python(Value::Scalar(value, Scalar::F64), span)
            }
            Captured::Complex(real, imag) => {
                let value = self.complex_constant(Complex::C128, *real, *imag, span);
                self.python(value, span)
            }
            Captured::NumpyInt(Scalar::Bool, value) if self.is_numpy() => {
                Value::Scalar(self.b.bool(*value != 0, span), Scalar::Bool)
            }
            Captured::NumpyInt(Scalar::Bool, value) => Value::Bool(*value != 0),
            Captured::NumpyInt(scalar, value) => Value::Scalar(self.b.int(*scalar, *value, span), *scalar),
            Captured::NumpyFloat(Number::Complex(complex), real, imag) => {
                self.complex_constant(*complex, *real, *imag, span)
            }
            Captured::NumpyFloat(Number::Real(scalar), value, _) => {
                Value::Scalar(self.b.float(*scalar, *value, span), *scalar)
            }
            Captured::Time(time, count) => {
                let count = Value::Scalar(self.b.int(Scalar::I64, (*count).into(), span), Scalar::I64);
                Value::Object(ObjectKind::Time(*time), vec![count])
            }
            Captured::Str(text) => Value::Static(Static::Str(text.clone())),
            Captured::Tuple(items) => Value::tuple(items.iter().map(|item| self.captured(item, name, span)).collect()),
            Captured::DType(dtype) => Value::Static(Static::DType(*dtype)),
            Captured::Known(path) => self.resolve_known(path, span).unwrap_or_else(|| known(path)),
            Captured::Module(module, _) => Value::Static(Static::Module(module.clone(), Arc::new(captured.clone()))),
            Captured::Function(def) => Value::Static(Static::Function(Arc::clone(def))),
            Captured::Recursive(number) => match self.cx.function_of(*number) {
                Some(def) => Value::Static(Static::Function(def)),
                None => {
                    self.cx.fault(self.at(span), "a function was captured by a number that none has");
                    Value::Poison
                }
            },
            Captured::Array(array) => self.constant_array(array, name, span),
            Captured::DeviceArray(ty, address, shape, strides) => self.device_array(ty, *address, shape, strides, span),
            Captured::Bytes(bytes) => Value::Static(Static::Bytes(bytes.clone())),
            Captured::Struct(class, items) => {
                let items = items.iter().map(|item| self.captured(item, name, span)).collect();
                Value::Object(ObjectKind::Struct(*class), items)
            }
            Captured::Enum(class, _, value) => {
                let value = self.captured(value, name, span);
                Value::Object(ObjectKind::Enum(*class), vec![value])
            }
            Captured::Exception(class) => {
                Value::Static(Static::Exception(Exception { class: class.clone(), args: None }))
            }
            Captured::Overloaded(function) => Value::Static(Static::Overloaded(function.clone())),
            Captured::Class(class, values) => Value::Static(Static::Class(*class, values.clone().into())),
            Captured::Unknown(source, place, why) => {
                let place = Span { file: self.cx.sources.add(source), ..*place };
                let message = format!("the value of `{name}` cannot be found by reading the file");
                let diagnostic = Diagnostic::error(Code::UnsupportedValue, span, message)
                    .note(
                        "the command reads files without running them: it knows names that are bound once, at the \
                        top level",
                    )
                    .help(format!("pass `{name}` as an argument, or use a name that is bound once"));
                self.report_name(diagnostic.also(place, why))
            }
            Captured::Unsupported(kind, what) => self.refuse_captured(*kind, what, name, span),
        }
    }

    /// Reports a captured value that kernels do not support.
    fn refuse_captured(&mut self, kind: Unsupported, what: &str, name: &str, span: Span) -> Value {
        let diagnostic = unusable(name, what, span);
        self.report_name(match kind {
            Unsupported::PlainFunction if name == "set_trace" || name.ends_with(".set_trace") => {
                diagnostic.help(if self.cx.interpreted {
                    "launch the kernel: launches run in Python's interpreter, and the debugger stops here; or write \
                     `breakpoint()`, which checks of the code accept"
                } else {
                    "set the environment variable WEFT_DEVICE=python: the kernel then runs in Python's interpreter, and \
                     the debugger stops here; or write `breakpoint()`"
                })
            }
            Unsupported::PlainFunction => {
                diagnostic.help(format!("decorate `{name}` with `@cuda.jit` (a device function)"))
            }
            Unsupported::ForeignFunction => {
                diagnostic.help(format!("write `cuda.jit({name}.py_func)` and call the result"))
            }
            Unsupported::Array => diagnostic.help("pass the array as an argument"),
            Unsupported::Other => {
                let known = "kernels can use numbers, tuples of numbers, strings, dtypes, modules and jitted functions";
                let of_library = name.contains('.') || what.contains("module");
                if let Some(instead) = diagnostic::instead(NameContext::Kernel, name).filter(|_| of_library) {
                    return self.report_name(diagnostic.help(instead));
                }
                match what {
                    "dict" | "dictionary" | "frozenset" | "list" | "set" => diagnostic
                        .note(known)
                        .help("make it a tuple of numbers, or pass its values as an array"),
                    "builtin_function_or_method" | "numpy.ufunc" | "numpy._ArrayFunctionDispatcher" => {
                        diagnostic.help(format!(
                            "call `{name}` outside the kernel, or write it as a function with \
                             `@cuda.jit(device=True)`"
                        ))
                    }
                    _ => diagnostic.note(known),
                }
            }
        })
    }

    fn complex_constant(&mut self, ty: Complex, real: f64, imag: f64, span: Span) -> Value {
        let real = self.b.float(ty.part(), real, span);
        let imag = self.b.float(ty.part(), imag, span);
        Value::Complex(real, imag, ty)
    }
}

/// The import that a module's name needs, or another suggestion.
fn import_of(name: &str) -> Option<String> {
    let import = match name {
        "math" | "cmath" | "operator" | "numpy" | "weft" => format!("import {name}"),
        "np" => "import numpy as np".to_owned(),
        "cuda" | "types" => format!("from weft import {name}"),
        "random" | "time" => {
            let instead = diagnostic::instead(NameContext::Kernel, name)?;
            return Some(format!("{instead}; a kernel cannot call functions of Python's `{name}`"));
        }
        _ => return None,
    };
    Some(format!("import it at the top of the file: `{import}`"))
}

/// The error of a local that no path assigns.
pub(in crate::frontend) fn used_before(name: &str, span: Span) -> Diagnostic {
    let message = format!("local variable `{name}` is used before it has a value");
    Diagnostic::error(Code::UndefinedLocal, span, message).help(format!("assign `{name}` before this line"))
}

/// The error of a built-in Python function that kernels do not support.
pub fn no_builtin(name: &str, span: Span) -> Diagnostic {
    if let Some(diagnostic) = only_in_numba(&format!("builtins.{name}"), Code::UnsupportedValue, span) {
        return diagnostic;
    }
    let names: Vec<_> = intrinsics::members("builtins").filter(|name| !name.starts_with('_')).collect();
    Diagnostic::error(Code::UnsupportedValue, span, format!("kernels do not have Python's built-in `{name}`"))
        .note(format!("they have `{}`", names.join("`, `")))
}

/// The error of a name that numba-cuda supports in kernels and weft does not, if it is one.
pub(super) fn only_in_numba(path: &str, code: Code, span: Span) -> Option<Diagnostic> {
    let names = intrinsics::only_in_numba(path)?;
    let message = format!("kernels do not have `{}`", shown_path(path));
    let mut diagnostic = Diagnostic::error(code, span, message);
    diagnostic.help = names.suggestion.map(str::to_owned);
    Some(diagnostic)
}

/// The error of a captured value that no kernel can use.
fn unusable(name: &str, what: &str, span: Span) -> Diagnostic {
    let message = format!("`{name}` is {} {what}, which a kernel cannot use", weft_artifact::article(what));
    Diagnostic::error(Code::UnsupportedValue, span, message)
        .numba(format!("Untyped global name '{name}': Cannot determine Numba type"))
}

/// A known path as a value: a number type, if it names one.
pub(in crate::frontend) fn known(path: &str) -> Value {
    let path = path.strip_prefix("numba.").map_or_else(|| path.to_owned(), |rest| format!("weft.{rest}"));
    dtype_of_path(&path).map_or_else(
        || Value::Static(Static::Known(LibraryName::of(path))),
        |dtype| Value::Static(Static::DType(dtype)),
    )
}
