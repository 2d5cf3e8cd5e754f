//! The state of a lowering: the module, and the function that is being lowered.
//!
//! Typing and lowering are one traversal of the syntax tree. Dry runs infer the types at loop heads (`typing.rs`). The
//! final run builds code and reports errors.

use std::sync::Arc;

use weft_artifact::{Complex, Layout, Scalar};

use super::{
    expression_types::ExprTypes,
    in_flight,
    notes::Computed,
    object::{Closure, ObjectKind, Static},
    promote,
    state::{
        Allocations, CoopMemory, Env, Functions, Iterators, Loops, Names, Reports, Returns, Root, Scope, Var, Variables,
    },
    ty::{ArrayTy, Ty},
    value::{ArrayValue, Atom, Value},
    variables::Variable,
};
use crate::{
    diagnostic::{Code, Diagnostic, Severity},
    ir::{BinaryOp, Builder, Built, Const, ConstantId, ExprId, LocalId, LocalKind, Module, StmtKind, Type},
    request::{FunctionDef, OverloadQuery, Overloads},
    source::{SourceMap, Span},
};

/// The state of the lowering.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(super) struct Lowerer {
    pub(super) module: Module,
    pub(super) sources: SourceMap,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The device functions.
    pub(super) functions: Functions,
    /// Whether the code is for a GPU.
    pub(super) ptx: bool,
    /// The request's function.
    pub(super) root: Root,
    /// The request's overloaded functions with their known implementations.
    pub(super) overloads: Overloads,
    /// The constant arrays of the module, by their bytes.
    pub(super) constants: Vec<(Arc<[u8]>, ConstantId)>,
    /// The inner functions found.
    pub(super) closures: Vec<Arc<Closure>>,
    /// The calls that allocate arrays.
    pub(super) allocations: Allocations,
    /// The shared memory of the calls of `cuda.coop`.
    pub(super) coop: CoopMemory,
    /// The maximum number of threads of a block, if the request sets it.
    pub(super) most_threads: Option<u32>,
    /// The number of registers of a thread at the launch, if the request bounds the threads of a block.
    pub(super) registers: Option<u32>,
    /// Reads of variables, and calls, whose type was never inferred: errors, unless another error explains them.
    pub(super) undefined: Vec<Diagnostic>,
    /// Calls of overloaded functions whose implementations the request does not have.
    pub(super) queries: Vec<OverloadQuery>,
    /// Whether the request promises that no index of an array is negative.
    pub(super) no_wraparound: bool,
    /// Whether the code reports its accesses to the sanitizer.
    pub(super) sanitize: bool,
    /// Whether the code may contain breakpoints, for a GPU debugger.
    pub(super) stops: bool,
    /// Whether the request has a derivative.
    pub(super) differentiates: bool,
    /// Whether launches run in the interpreter.
    pub(super) interpreted: bool,
    /// The exceptions that the request reports.
    pub(super) reports: Reports,
    /// Whether the request wants notes.
    pub(super) notes: bool,
    /// The operators and their result types, for notes.
    pub(super) computed: Vec<Computed>,
    /// The variables with their types at each use, if requested.
    pub(super) variables: Option<Vec<Variable>>,
    /// The types of expressions, if requested.
    pub(super) expressions: Option<ExprTypes>,
    /// Internal errors, which are reported only if no other error explains them.
    pub(super) faults: Vec<Diagnostic>,
}

impl Lowerer {
    /// Whether a reported error may be the reason for what is missing.
    pub(super) fn explained(&self) -> bool {
        let error = |diagnostic: &Diagnostic| diagnostic.severity == Severity::Error;
        !self.undefined.is_empty() || self.diagnostics.iter().any(error)
    }

    /// The function that was captured by number, because it is recursive.
    pub(super) fn function_of(&mut self, number: u32) -> Option<Arc<FunctionDef>> {
        if let Some(known) = self.root.numbered.get(&number) {
            return Some(Arc::clone(known));
        }
        let found = self.overloads.find(self.root.def.as_ref()?, number)?;
        self.root.numbered.insert(number, Arc::clone(&found));
        Some(found)
    }

    /// Records an internal error.
    pub(super) fn fault(&mut self, span: Span, message: &str) {
        self.faults.push(Diagnostic::error(Code::Internal, span, message));
    }
}

/// The function that is being lowered.
#[derive(Debug)]
pub(super) struct FnLowerer<'a> {
    pub(super) cx: &'a mut Lowerer,
    pub(super) def: Arc<FunctionDef>,
    /// The index of the function's file in the source map; spans of the tree are mapped to it.
    pub(super) file: u32,
    /// Dry during type inference.
    pub(super) b: Builder,
    pub(super) env: Env,
    pub(super) variables: Variables,
    pub(super) names: Names,
    pub(super) iterators: Iterators,
    pub(super) loops: Loops,
    /// `None` in a kernel; else the types of the `return` statements seen and the type that they are converted to.
    pub(super) returns: Option<Returns>,
    /// Whether something in the function may end the thread.
    pub(super) ends_thread: bool,
    /// The scopes of the enclosing generators.
    pub(super) scopes: Vec<Scope>,
    /// The inner functions whose captured variables are being read, each read by the one before.
    pub(super) closing: Vec<Arc<Closure>>,
    /// The types of variables where the last lowered `and` is true, if they differ after it.
    pub(super) where_true: Vec<(String, Var)>,
    /// The variable that the current expression is assigned to: the name of an array that it creates.
    pub(super) hint: Option<String>,
}

impl FnLowerer<'_> {
    /// Whether this run only infers types.
    pub(super) fn is_dry(&self) -> bool {
        self.b.is_dry()
    }

    /// Maps a span of the tree to the compilation's source map. Code of the prelude gets the span of its use.
    pub(super) fn at(&self, span: Span) -> Span {
        Span { file: self.file, ..self.b.fixed_span().unwrap_or(span) }
    }

    /// Records a diagnostic; returns the value that replaces the expression that could not be lowered.
    pub(super) fn report(&mut self, mut diagnostic: Diagnostic) -> Value {
        for (span, _) in &mut diagnostic.labels {
            *span = Span { file: self.file, ..*span };
        }
        self.record(diagnostic)
    }

    /// Records a diagnostic with a span of the source map, which may be in another file.
    pub(super) fn report_with(&mut self, diagnostic: Diagnostic, place: Span, why: &str) -> Value {
        self.record(diagnostic.also(place, why))
    }

    fn record(&mut self, mut diagnostic: Diagnostic) -> Value {
        if self.is_dry() {
            // With wider types it may be correct: the final run decides.
            return Value::Poison;
        }
        diagnostic.span = self.at(diagnostic.span);
        if diagnostic.message.contains(in_flight::IN_FLIGHT) {
            diagnostic.help.get_or_insert_with(|| in_flight::WAIT.to_owned());
        }
        if !self.cx.diagnostics.contains(&diagnostic) {
            self.cx.diagnostics.push(diagnostic);
        }
        Value::Poison
    }

    /// Records the error of a captured name at its first use in a file, as C compilers do for undeclared names.
    pub(super) fn report_name(&mut self, diagnostic: Diagnostic) -> Value {
        let span = self.at(diagnostic.span);
        let is_known = |known: &Diagnostic| {
            known.span.file == span.file && (known.code, &known.message) == (diagnostic.code, &diagnostic.message)
        };
        if self.cx.diagnostics.iter().any(is_known) { Value::Poison } else { self.record(diagnostic) }
    }

    /// Records an error with only a message.
    pub(super) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> Value {
        self.report(Diagnostic::error(code, span, message))
    }

    /// A value's run-time parts, each for a single use.
    pub(super) fn flatten(&mut self, value: Value, span: Span) -> Vec<ExprId> {
        let mut out = Vec::new();
        self.flatten_into(value, span, &mut out);
        out
    }

    fn flatten_into(&mut self, value: Value, span: Span, out: &mut Vec<ExprId>) {
        match value {
            Value::Scalar(expr, _) => out.push(expr),
            Value::Complex(real, imag, _) => out.extend([real, imag]),
            Value::Array(array) => {
                for atom in array.ty.fields().filter_map(|field| array.field(field)) {
                    out.push(self.use_atom(atom, span));
                }
            }
            Value::Object(_, items) => {
                for item in items {
                    self.flatten_into(item, span, out);
                }
            }
            Value::Int(_) | Value::Bool(_) | Value::Static(_) | Value::Poison => {}
        }
    }

    /// The value of a type whose run-time parts are in locals, in order.
    pub(super) fn rebuild(&mut self, ty: &Ty, locals: &mut dyn Iterator<Item = LocalId>, span: Span) -> Value {
        match ty {
            Ty::Complex(complex) => match (locals.next(), locals.next()) {
                (Some(real), Some(imag)) => Value::Complex(self.b.read(real, span), self.b.read(imag, span), *complex),
                _ => Value::Poison,
            },
            Ty::Scalar(scalar) => {
                locals.next().map_or(Value::Poison, |local| Value::Scalar(self.b.read(local, span), *scalar))
            }
            Ty::Array(array) => {
                let value = ArrayValue::of_fields(*array, || locals.next().map(Atom::Local));
                value.map_or(Value::Poison, Value::Array)
            }
            Ty::Object(kind, items) => {
                Value::Object(kind.clone(), items.iter().map(|item| self.rebuild(item, locals, span)).collect())
            }
            Ty::Int(value) => Value::Int(*value),
            Ty::Bool(value) => Value::Bool(*value),
            Ty::Static(known) => Value::Static(known.clone()),
            Ty::Conflict(_) | Ty::Bottom | Ty::Poison => Value::Poison,
        }
    }

    /// A value's type. An expression without a value in a dry run may have one in the next run.
    pub(super) fn ty_of(&self, value: &Value) -> Ty {
        let ty = value.ty();
        // A tuple with such an item has none either: `t = (t, 1)` must not grow forever.
        if self.is_dry() && ty.is_poison() { Ty::Bottom } else { ty }
    }

    /// The same value, evaluated into new temporaries, so that later assignments do not change it.
    pub(super) fn settle(&mut self, value: Value, span: Span) -> Value {
        match value {
            Value::Scalar(expr, scalar) => {
                let local = self.b.temp(expr, span);
                Value::Scalar(self.b.read(local, span), scalar)
            }
            Value::Complex(real, imag, scalar) => {
                let (real, imag) = (self.b.temp(real, span), self.b.temp(imag, span));
                Value::Complex(self.b.read(real, span), self.b.read(imag, span), scalar)
            }
            Value::Object(kind, items) => {
                Value::Object(kind, items.into_iter().map(|item| self.settle(item, span)).collect())
            }
            Value::Array(mut array) => {
                let settle = |this: &mut Self, atom: Atom| match atom {
                    Atom::Local(_) => {
                        let expr = this.use_atom(atom, span);
                        Atom::Local(this.b.temp(expr, span))
                    }
                    Atom::Int(_) => atom,
                };
                array.data = settle(self, array.data);
                array.shape = array.shape.into_iter().map(|atom| settle(self, self.fixed(atom))).collect();
                array.strides = array.strides.into_iter().map(|atom| settle(self, atom)).collect();
                Value::Array(array)
            }
            other @ (Value::Int(_) | Value::Bool(_) | Value::Static(_) | Value::Poison) => other,
        }
    }

    /// A use of an atom.
    pub(super) fn use_atom(&mut self, atom: Atom, span: Span) -> ExprId {
        match atom {
            Atom::Local(local) => self.b.read(local, span),
            Atom::Int(value) => self.b.i64(value, span),
        }
    }

    /// An `I64` expression as an atom; a constant or a temporary is used directly.
    pub(super) fn atom(&mut self, expr: ExprId, span: Span) -> Atom {
        match self.b.built(expr) {
            Built::Const(Const::Int(value)) => {
                if let Ok(value) = i64::try_from(value) {
                    return Atom::Int(value);
                }
            }
            Built::Local(local) if self.b.function.locals[local].kind == LocalKind::Temp => return Atom::Local(local),
            Built::Const(_) | Built::Local(_) | Built::Convert(_) | Built::Other => {}
        }
        Atom::Local(self.b.temp(expr, span))
    }

    /// Like [`Self::atom`], for a value that is known to be non-negative.
    pub(super) fn nonneg_atom(&mut self, expr: ExprId, span: Span) -> Atom {
        let atom = self.atom(expr, span);
        if let Atom::Local(local) = atom {
            self.b.function.locals[local].nonneg = true;
        }
        atom
    }

    /// A number as an expression of a real scalar type.
    ///
    /// The caller has checked that it is a real number.
    pub(super) fn number(&mut self, value: &Value, to: Scalar, span: Span) -> Option<ExprId> {
        match value {
            Value::Scalar(expr, _) => Some(self.b.convert(*expr, Type::Scalar(to), span)),
            Value::Int(value) => Some(if to == Scalar::Bool {
                self.b.bool(*value != 0, span)
            } else if to.is_float() {
                self.b.float(to, to.nearest_int(*value), span)
            } else {
                self.b.int(to, wrap_int(*value, to), span)
            }),
            Value::Bool(value) => Some(if to == Scalar::Bool {
                self.b.bool(*value, span)
            } else if to.is_float() {
                self.b.float(to, f64::from(u8::from(*value)), span)
            } else {
                self.b.int(to, i128::from(*value), span)
            }),
            Value::Object(kind, items) if kind.is_number() => self.number(items.first()?, to, span),
            Value::Complex(..) | Value::Array(_) | Value::Object(..) | Value::Static(_) | Value::Poison => None,
        }
    }

    /// A number as real and imaginary part of a complex type.
    pub(super) fn complex(&mut self, value: &Value, to: Complex, span: Span) -> Option<(ExprId, ExprId)> {
        let part = Type::Scalar(to.part());
        if let Value::Object(ObjectKind::Weak, items) = value {
            return self.complex(items.first()?, to, span);
        }
        if let Value::Complex(real, imag, _) = value {
            return Some((self.b.convert(*real, part, span), self.b.convert(*imag, part, span)));
        }
        let real = self.number(value, to.part(), span)?;
        let imag = self.b.float(to.part(), 0.0, span);
        Some((real, imag))
    }

    /// The value converted to a type, where weft converts implicitly: numbers to numbers (not complex to real), arrays
    /// to more general arrays, tuples part by part, and `None` and all of these to optionals.
    pub(super) fn try_convert(&mut self, value: Value, to: &Ty, span: Span) -> Option<Value> {
        if value.ty() == *to {
            return Some(value);
        }
        match (value, to) {
            (Value::Static(Static::None), Ty::Object(ObjectKind::Optional, items)) => {
                Some(self.missing(items.get(1)?, span))
            }
            (value, Ty::Object(ObjectKind::Optional, items)) if value.ty().optional().is_none() => {
                let inner = self.try_convert(value, items.get(1)?, span)?;
                Some(self.optional(true, inner, span))
            }
            (value, Ty::Object(ObjectKind::Weak, items)) => {
                Some(self.try_convert(value.strong(), items.first()?, span)?.weak())
            }
            (value, Ty::Complex(to)) => {
                let (real, imag) = self.complex(&value, *to, span)?;
                Some(Value::Complex(real, imag, *to))
            }
            (value, Ty::Scalar(to)) => Some(Value::Scalar(self.number(&value, *to, span)?, *to)),
            (Value::Array(array), Ty::Array(to)) => {
                let from = array.ty;
                if from.dtype != to.dtype
                    || from.ndim != to.ndim
                    || (from.readonly && !to.readonly)
                    || (from.packed && !to.packed)
                {
                    return None;
                }
                if to.layout != Layout::Any && from.layout != to.layout {
                    return None;
                }
                if to.space != from.space && to.space != crate::ir::Space::Generic {
                    return None;
                }
                Some(Value::Array(self.generalize(array, *to, span)))
            }
            (value, Ty::Object(ObjectKind::Chars, _)) => self.text_as(&value, to, span),
            (Value::Object(kind, items), Ty::Object(other, to)) if kind == *other && items.len() == to.len() => items
                .into_iter()
                .zip(to)
                .map(|(item, to)| self.try_convert(item, to, span))
                .collect::<Option<Vec<_>>>()
                .map(|items| Value::Object(kind, items)),
            _ => None,
        }
    }

    /// An array with a more general layout or address space.
    pub(super) fn generalize(&mut self, array: ArrayValue, to: ArrayTy, span: Span) -> ArrayValue {
        let mut out = array.clone();
        if to.layout == Layout::Any && array.ty.layout != Layout::Any {
            out.strides = (0..array.ty.ndim).map(|dim| self.stride(&array, dim, span)).collect();
        }
        if to.space != array.ty.space {
            let data = self.use_atom(array.data, span);
            let data = self.b.convert(data, to.pointer(), span);
            out.data = Atom::Local(self.b.temp(data, span));
        }
        out.ty = to;
        out
    }

    /// The stride in bytes along a dimension.
    pub(super) fn stride(&mut self, array: &ArrayValue, dim: usize, span: Span) -> Atom {
        let size = array.ty.dtype.size_bytes() as i64;
        let inner: Vec<Atom> = match array.ty.layout {
            Layout::Any => return array.strides.get(dim).copied().unwrap_or(Atom::Int(0)),
            Layout::C => array.shape.iter().skip(dim + 1).copied().collect(),
            Layout::F => array.shape.iter().take(dim).copied().collect(),
        };
        let known: i64 = inner.iter().map(|atom| if let Atom::Int(n) = atom { *n } else { 1 }).product::<i64>() * size;
        let mut product: Option<ExprId> = None;
        for atom in inner {
            if let Atom::Local(_) = atom {
                let extent = self.use_atom(atom, span);
                product = Some(match product {
                    None => extent,
                    Some(before) => self.b.binary(BinaryOp::Mul, before, extent, span),
                });
            }
        }
        match product {
            None => Atom::Int(known),
            Some(product) => {
                let known = self.b.i64(known, span);
                let bytes = self.b.binary(BinaryOp::Mul, product, known, span);
                self.nonneg_atom(bytes, span)
            }
        }
    }

    /// A condition: a `Bool` expression, or a constant.
    pub(super) fn truth(&mut self, value: Value, span: Span) -> Truth {
        match value {
            Value::Bool(known) => Truth::Known(known),
            Value::Int(known) => Truth::Known(known != 0),
            Value::Static(Static::None) => Truth::Known(false),
            Value::Static(Static::Str(text)) => Truth::Known(!text.is_empty()),
            Value::Static(Static::Bytes(text)) => Truth::Known(!text.is_empty()),
            text @ Value::Object(ObjectKind::Chars, _) => match self.text_length(&text, span) {
                Some(length) => self.truth(length, span),
                None => Truth::Poison,
            },
            Value::Object(ObjectKind::Optional, items) => self.truth_or_none(items, span),
            Value::Object(kind, items) if kind.is_tuple() => Truth::Known(!items.is_empty()),
            Value::Object(kind, items) if kind.is_number() => {
                items.into_iter().next().map_or(Truth::Poison, |item| self.truth(item, span))
            }
            range @ Value::Object(ObjectKind::Range(_), _) => {
                let range = self.settle(range, span);
                match self.length(&range, span) {
                    Some(Atom::Int(length)) => Truth::Known(length != 0),
                    Some(length) => {
                        let length = self.use_atom(length, span);
                        Truth::Expr(self.b.convert(length, Type::BOOL, span))
                    }
                    None => Truth::Poison,
                }
            }
            Value::Object(..) | Value::Static(_) => Truth::Known(true),
            Value::Scalar(expr, _) => Truth::Expr(self.b.convert(expr, Type::BOOL, span)),
            Value::Complex(real, imag, _) => {
                let real = self.b.convert(real, Type::BOOL, span);
                let imag = self.b.convert(imag, Type::BOOL, span);
                Truth::Expr(self.b.binary(BinaryOp::Or, real, imag, span))
            }
            Value::Array(array) => {
                let diagnostic =
                    Diagnostic::error(Code::BadOperand, span, format!("{} has no truth value", Ty::Array(array.ty)))
                        .help("compare an element or the size: `a.size > 0`");
                self.report(diagnostic);
                Truth::Poison
            }
            // The type is not known yet, so the condition may have either value.
            Value::Poison if self.is_dry() => Truth::Expr(self.b.bool(false, span)),
            Value::Poison => Truth::Poison,
        }
    }

    /// Adds a statement.
    pub(super) fn stmt(&mut self, kind: StmtKind, span: Span) {
        self.b.stmt(kind, span);
    }

    /// The unified type of real numbers, for `min`, conditional expressions and the like.
    pub(super) fn unified(types: &[Scalar]) -> Option<Scalar> {
        types.iter().copied().reduce(promote::unify_real)
    }
}

/// A condition.
#[derive(Clone, Copy, Debug)]
pub(super) enum Truth {
    /// A constant: the other branch is not lowered.
    Known(bool),
    /// A `Bool` expression, for a single use.
    Expr(ExprId),
    /// An error that has been reported.
    Poison,
}

/// An integer modulo the width of a type, in the type's range; for `Bool`, 0 or 1.
pub(super) fn wrap_int(value: i128, to: Scalar) -> i128 {
    let bits = to.size_bytes() * 8;
    let modulus = 1_i128 << bits;
    let value = value.rem_euclid(modulus);
    if to.is_signed_int() && value >= modulus / 2 { value - modulus } else { value }
}
