//! Calls of functions in other languages, which are linked with the kernel, and their pointer arguments.

use weft_artifact::{ArgType, Layout};

use super::super::{
    export::can_return,
    expr::Args,
    lowerer::FnLowerer,
    object::{Exception, ObjectKind},
    ty::{ArrayTy, Ty},
    value::{ArrayValue, Value},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{self, CompareOp, ExternalId, Op, Type},
    request::{Abi, External, FunctionDef},
    source::Span,
};

impl FnLowerer<'_> {
    /// A call of a linked function. Its arguments have the types of its signature.
    pub(in crate::frontend) fn external_function(
        &mut self,
        def: &FunctionDef,
        external: &External,
        values: Vec<Value>,
        span: Span,
    ) -> Value {
        let Some(signature) = def.signatures.first() else { return Value::Poison };
        let mut args = Vec::new();
        for (value, ty) in values.into_iter().zip(&signature.args) {
            if !is_passed(ty) || Ty::of_arg(ty).is_poison() {
                return self.not_passed(external, ty, span);
            }
            let given = value.ty();
            let Some(value) = self.try_convert(for_c(value), &Ty::of_arg(ty).anywhere(), span) else {
                let message = format!("`{}` takes {ty}, not {given}", external.symbol);
                return self.error(Code::BadOperand, span, message);
            };
            args.extend(self.flatten(value, span));
        }
        if let Some(ty) =
            signature.returns.as_ref().filter(|ty| !can_return(ty) || !is_passed(ty) || Ty::of_arg(ty).is_poison())
        {
            let message = format!("`{}` is declared to return {ty}, which a C function cannot return", external.symbol);
            let diagnostic = Diagnostic::error(Code::BadSignature, span, message);
            return self.report(
                diagnostic.help("declare a pointer parameter, `CPointer(…)`, and write the result through it"),
            );
        }
        let declared = ir::External {
            symbol: external.symbol.clone(),
            params: signature.args.clone(),
            returns: signature.returns.clone(),
            writes: external.abi == Abi::Numba,
            span: self.at(span),
        };
        let locals: Vec<_> = declared.results().into_iter().map(|ty| self.b.new_temp(ty)).collect();
        let Some(function) = self.external(external, declared, span) else { return Value::Poison };
        self.b.op(Op::External(function), locals.clone(), args, span);
        let mut locals = locals.into_iter();
        if external.abi == Abi::Numba
            && let Some(status) = locals.next()
        {
            let (status, zero) = (self.b.read(status, span), self.b.zero(Type::I32, span));
            let failed = self.b.compare(CompareOp::Ne, status, zero, span);
            let message = format!("`{}` failed: it did not return 0", external.symbol);
            self.end_thread_if(failed, Exception::builtin("RuntimeError", &message), span);
        }
        match &signature.returns {
            Some(ty) => self.rebuild(&Ty::of_arg(ty).anywhere(), &mut locals, span),
            None => Value::NONE,
        }
    }

    /// The module's declaration of a linked function; reports a contradiction to an earlier one.
    fn external(&mut self, external: &External, made: ir::External, span: Span) -> Option<ExternalId> {
        if self.is_dry() {
            return Some(ExternalId::new(u32::MAX));
        }
        let symbol = &external.symbol;
        if self.cx.root.symbol == *symbol {
            let what = if self.cx.root.is_kernel { "kernel" } else { "function" };
            let message = format!("the {what} has the same name as a function that is linked with it, `{symbol}`");
            let diagnostic = Diagnostic::error(Code::BadSignature, span, message);
            self.report(diagnostic.help(format!("rename the {what}")));
            return None;
        }
        self.cx.module.cooperative |= external.cooperative;
        let Some((id, known)) = self.cx.module.externals.iter().find(|(_, known)| known.symbol == *symbol) else {
            return Some(self.cx.module.externals.push(made));
        };
        if (&known.params, &known.returns, known.writes) == (&made.params, &made.returns, made.writes) {
            return Some(id);
        }
        let before = known.span;
        let message = format!("`{symbol}` is declared with two different signatures");
        let diagnostic = Diagnostic::error(Code::BadSignature, span, message).label("called here with one signature");
        self.report_with(diagnostic, before, "and here with another");
        None
    }

    fn not_passed(&mut self, external: &External, ty: &ArgType, span: Span) -> Value {
        let message = format!("`{}` takes numbers, pointers and tuples of them, not {ty}", external.symbol);
        let mut diagnostic = Diagnostic::error(Code::BadOperand, span, message);
        if let ArgType::Array(array) = ty {
            let pointer = format!("CPointer({})", array.dtype);
            diagnostic = diagnostic
                .note("code in other languages cannot take arrays")
                .help(format!("declare a pointer, `{pointer}`, and pass `ffi.from_buffer(…)` of a `cffi.FFI()`"));
        }
        self.report(diagnostic)
    }

    /// The error of a call without code for the CPU.
    pub(in crate::frontend) fn no_code_on_cpu(&mut self, external: &External, span: Span) -> Value {
        let message = format!("`{}` is linked code for GPUs, which a CPU cannot run", external.symbol);
        let diagnostic = Diagnostic::error(Code::NotCallable, span, message);
        self.report(diagnostic.help(
            "write it in Python, too: `@cuda.declare_device(name, signature, link=…)` decorates the function that the \
             CPU calls",
        ))
    }

    /// `ffi.from_buffer(array)`: a pointer to its first element.
    pub(super) fn buffer_pointer(&mut self, args: Args, span: Span) -> Value {
        let [(Value::Array(array), at)] = args.positional.as_slice() else {
            return self.error(Code::BadOperand, span, "`ffi.from_buffer` takes an array");
        };
        if array.ty.layout != Layout::C || array.ty.packed {
            let message = format!("`ffi.from_buffer` takes contiguous arrays (C), not {}", Ty::Array(array.ty));
            return self.error(Code::BadOperand, *at, message);
        }
        let ty = ArrayTy { ndim: 0, ..array.ty };
        let place = ArrayValue { ty, data: array.data, shape: Vec::new(), strides: Vec::new() };
        Value::Object(ObjectKind::Pointer, vec![Value::Array(place)])
    }
}

/// A value as it is passed: signatures do not declare pointers `const`.
fn for_c(mut value: Value) -> Value {
    if let Value::Object(ObjectKind::Pointer | ObjectKind::VoidPointer, items) = &mut value {
        for item in items {
            if let Value::Array(array) = item {
                array.ty.readonly = false;
            }
        }
    }
    value
}

/// Whether values of a type can be passed to other languages.
fn is_passed(ty: &ArgType) -> bool {
    match ty {
        ArgType::Value(_) | ArgType::Pointer(_) | ArgType::Record(_) => true,
        ArgType::Tuple(items) | ArgType::Struct(_, items) => items.iter().all(is_passed),
        ArgType::Enum(_, value) => is_passed(value),
        // C has no type for it.
        ArgType::Optional(_) => false,
        ArgType::Array(_) | ArgType::None | ArgType::Class(_) => false,
    }
}
