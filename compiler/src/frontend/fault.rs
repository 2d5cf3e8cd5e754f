//! Exceptions that end a thread: `raise`, `assert`, and operations for which Python raises one.
//!
//! As in numba-cuda without `debug=True`, a thread that raises an exception ends at once, unless the request wants it
//! reported. In a kernel that is a return. A device function that may end its thread has one more result that says so,
//! and its caller then ends the thread, too. The result is a `Bool`; if exceptions are reported it is an `I32` that
//! also says whether this thread's exception is the reported one ([`Op::Fault`]), to which each caller adds its call.

use weft_artifact::{FaultArg, Numbers, Scalar};

use super::{
    expr::Args,
    lowerer::FnLowerer,
    object::{Exception, ObjectKind, Static},
    prelude::is_own,
    state::Reports,
    ty::Ty,
    value::Value,
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{BinaryOp, Built, CallSite, CompareOp, Const, ExprId, FaultId, FaultSite, LocalId, Op, StmtKind as Ir, Type},
    source::Span,
};

impl FnLowerer<'_> {
    /// The exceptions to report in the code that is being lowered: none in the prelude.
    pub(super) fn reports(&self) -> Reports {
        if is_own(&self.def) { Reports::default() } else { self.cx.reports }
    }

    /// The type of the result that says whether the thread has ended.
    pub(super) fn end_type(&self) -> Type {
        if self.cx.reports.any() { Type::I32 } else { Type::BOOL }
    }

    /// The value of that result if the thread continues.
    pub(super) fn no_end(&mut self, span: Span) -> ExprId {
        let ty = self.end_type();
        self.b.zero(ty, span)
    }

    /// Ends the thread with an exception.
    pub(super) fn end_thread(&mut self, exception: Exception, span: Span) {
        let code = if self.reports().raises {
            let zeros = [self.b.i64(0, span), self.b.i64(0, span)];
            self.fault(exception, Numbers::None, zeros, span)
        } else {
            self.silent_end(span)
        };
        self.leave(code, span);
    }

    /// Ends the thread with an exception if `cond` holds.
    pub(super) fn end_thread_if(&mut self, cond: ExprId, exception: Exception, span: Span) {
        self.b.open();
        self.end_thread(exception, span);
        let then = self.b.close();
        self.stmt(Ir::If { cond, then, otherwise: Vec::new() }, span);
    }

    /// Emits the test after a call of a function that may end the thread.
    pub(super) fn end_after_call(&mut self, ended: LocalId, span: Span) {
        let code = self.b.read(ended, span);
        let cond = self.b.convert(code, Type::BOOL, span);
        self.b.open();
        let code = if self.cx.reports.any() {
            if !self.is_dry() && !is_own(&self.def) {
                let place = CallSite { function: self.def.ast.name.clone(), span: self.at(span) };
                let id = self.cx.module.call_sites.push(place);
                let code = self.b.read(ended, span);
                self.b.op(Op::FaultCall(id), Vec::new(), vec![code], span);
            }
            self.b.read(ended, span)
        } else {
            self.b.bool(true, span)
        };
        self.leave(code, span);
        let then = self.b.close();
        self.stmt(Ir::If { cond, then, otherwise: Vec::new() }, span);
    }

    /// The value of the result that ends the thread without a report.
    fn silent_end(&mut self, span: Span) -> ExprId {
        if self.cx.reports.any() { self.b.int(Scalar::I32, 1, span) } else { self.b.bool(true, span) }
    }

    /// Exits the function; a device function's result says how the thread has ended.
    fn leave(&mut self, code: ExprId, span: Span) {
        self.ends_thread = true;
        let mut values = Vec::new();
        if let Some(returns) = &self.returns {
            // Zeros for the results, which the caller does not read.
            let parts = returns.expected.as_ref().map(Ty::parts).unwrap_or_default();
            values.extend(parts.into_iter().map(|(_, ty)| self.b.zero(ty, span)));
            values.push(code);
        }
        self.stmt(Ir::Return(values), span);
    }

    /// Reports an exception; returns the value of the function's result.
    fn fault(&mut self, exception: Exception, numbers: Numbers, values: [ExprId; 2], span: Span) -> ExprId {
        let Exception { class, args } = exception;
        let (args, function) = (args.unwrap_or_default(), self.def.ast.name.clone());
        let alone = !self.cx.reports.any();
        let fault = FaultSite { class, args, numbers, alone, function, span: self.at(span) };
        let id = if self.is_dry() { FaultId::new(u32::MAX) } else { self.cx.module.faults.push(fault) };
        let code = self.b.new_temp(Type::I32);
        self.b.op(Op::Fault(id), vec![code], values.into(), span);
        if alone { self.silent_end(span) } else { self.b.read(code, span) }
    }

    /// Ends the thread with an out-of-bounds index if `cond` holds.
    pub(super) fn bad_index_if(&mut self, cond: ExprId, axis: u8, values: [ExprId; 2], span: Span) {
        self.b.open();
        let exception = Exception { class: "builtins.IndexError".to_owned(), args: None };
        let code = self.fault(exception, Numbers::Index(axis), values, span);
        self.leave(code, span);
        let then = self.b.close();
        self.stmt(Ir::If { cond, then, otherwise: Vec::new() }, span);
    }

    /// Ends the thread because extents do not match. Mismatches do not occur in the prelude.
    pub(super) fn bad_extents(&mut self, numbers: Numbers, values: [ExprId; 2], span: Span) {
        let code = if self.reports().shapes {
            let exception = Exception { class: "builtins.ValueError".to_owned(), args: None };
            self.fault(exception, numbers, values, span)
        } else {
            self.silent_end(span)
        };
        self.leave(code, span);
    }

    /// Ends the thread with an exception if `cond` holds; reported like a mismatch of extents.
    pub(super) fn end_thread_always_if(&mut self, cond: ExprId, exception: Exception, span: Span) {
        self.b.open();
        let code = if self.reports().shapes {
            let zeros = [self.b.i64(0, span), self.b.i64(0, span)];
            self.fault(exception, Numbers::None, zeros, span)
        } else {
            self.silent_end(span)
        };
        self.leave(code, span);
        let then = self.b.close();
        self.stmt(Ir::If { cond, then, otherwise: Vec::new() }, span);
    }

    /// A divisor; with Python's rules, the thread ends if it is zero.
    pub(super) fn divisor(&mut self, value: ExprId, message: &str, span: Span) -> ExprId {
        self.not_zero(value, Exception::builtin("ZeroDivisionError", message), span)
    }

    /// The parts of a complex divisor; with Python's rules, the thread ends if both are zero.
    pub(super) fn complex_divisor(&mut self, real: ExprId, imag: ExprId, span: Span) -> (ExprId, ExprId) {
        if !self.reports().floats {
            return (real, imag);
        }
        let parts = [real, imag].map(|part| self.b.temp(part, span));
        let [real, imag] = parts.map(|part| {
            let (read, ty) = (self.b.read(part, span), self.b.function.locals[part].ty);
            let zero = self.b.zero(ty, span);
            self.b.compare(CompareOp::Eq, read, zero, span)
        });
        let is_zero = self.b.binary(BinaryOp::And, real, imag, span);
        self.end_thread_if(is_zero, Exception::builtin("ZeroDivisionError", "complex division by zero"), span);
        let [real, imag] = parts.map(|part| self.b.read(part, span));
        (real, imag)
    }

    /// The step of a range or a slice; with Python's rules, the thread ends if it is zero.
    pub(super) fn step(&mut self, value: ExprId, message: &str, span: Span) -> ExprId {
        self.not_zero(value, Exception::builtin("ValueError", message), span)
    }

    fn not_zero(&mut self, value: ExprId, exception: Exception, span: Span) -> ExprId {
        let known = match self.b.built(value) {
            Built::Const(Const::Int(value)) => value != 0,
            Built::Const(Const::Float(value)) => value != 0.0,
            Built::Const(Const::Bool(_) | Const::Null | Const::Address(_))
            | Built::Local(_)
            | Built::Convert(_)
            | Built::Other => false,
        };
        let ty = self.b.ty(value);
        let is_float = ty.scalar().is_some_and(Scalar::is_float);
        let reports = self.reports();
        if known || !(if is_float { reports.floats } else { reports.python }) {
            return value;
        }
        let local = self.b.temp(value, span);
        let (read, zero) = (self.b.read(local, span), self.b.zero(ty, span));
        let is_zero = self.b.compare(CompareOp::Eq, read, zero, span);
        self.end_thread_if(is_zero, exception, span);
        self.b.read(local, span)
    }

    /// `Exception(args)`.
    pub(super) fn exception(&mut self, class: Exception, args: Args) -> Value {
        let mut given = Vec::new();
        let named = args.keywords.first().map(|(_, value, at)| (value.clone(), *at));
        for (value, at) in args.positional.into_iter().chain(named) {
            let Some(arg) = self.fault_arg(&value).filter(|_| args.keywords.is_empty()) else {
                let message = "the arguments of an exception must be compile-time constants";
                let diagnostic = Diagnostic::error(Code::NotConstant, at, message);
                return self.report(
                    diagnostic.help(
                        "pass a string or numbers; to report other values, print them or write them into an array",
                    ),
                );
            };
            given.push(arg);
        }
        Value::Static(Static::Exception(Exception { class: class.class, args: Some(given) }))
    }

    fn fault_arg(&self, value: &Value) -> Option<FaultArg> {
        Some(match value {
            Value::Int(value) => FaultArg::Int(*value),
            Value::Bool(value) => FaultArg::Bool(*value),
            Value::Static(Static::None) => FaultArg::None,
            Value::Static(Static::Str(text)) => FaultArg::Str(text.clone()),
            Value::Scalar(expr, _) => match self.b.built(*expr) {
                Built::Const(Const::Int(value)) => FaultArg::Int(value),
                Built::Const(Const::Bool(value)) => FaultArg::Bool(value),
                Built::Const(Const::Float(value)) => FaultArg::Float(value.to_bits()),
                Built::Const(Const::Null | Const::Address(_)) | Built::Local(_) | Built::Convert(_) | Built::Other => {
                    return None;
                }
            },
            Value::Object(ObjectKind::Weak, items) => self.fault_arg(items.first()?)?,
            Value::Object(..) => {
                FaultArg::Tuple(value.as_tuple()?.iter().map(|item| self.fault_arg(item)).collect::<Option<_>>()?)
            }
            Value::Complex(..) | Value::Array(_) | Value::Static(_) | Value::Poison => return None,
        })
    }
}
