//! Stores through subscripts: into elements, and into views from numbers, arrays and tuples.

use weft_artifact::Number;

use super::{index::Index, subscript::Place};
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        function::count,
        lowerer::FnLowerer,
        ty::Ty,
        value::{ArrayValue, Atom, Value},
    },
    ir::{BinaryOp, CompareOp, ExprId, StmtKind as Ir, Type},
    source::Span,
};

impl FnLowerer<'_> {
    /// `base[indices] = value`.
    pub(in crate::frontend) fn store_subscript(&mut self, base: Value, indices: &[Index], value: Value, span: Span) {
        let array = match base {
            Value::Array(array) => array,
            Value::Poison => return,
            Value::Object(kind, _) if kind.is_tuple() => {
                self.error(Code::BadAssignment, span, "an item of a tuple cannot be assigned");
                return;
            }
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Object(..)
            | Value::Static(_)) => {
                let message = format!("{} cannot be indexed", other.ty());
                self.error(Code::BadAssignment, span, message);
                return;
            }
        };
        if array.ty.readonly {
            let message = format!("{} is read-only", Ty::Array(array.ty));
            self.error(Code::ReadonlyArray, span, message);
            return;
        }
        let Some(place) = self.place(&array, indices, span) else { return };
        match place {
            Place::Element(pointer) => self.store(pointer, array.ty.dtype, &value, span),
            Place::View(view) => self.store_view(view, value, span),
        }
    }

    /// Fills a view with a number, or copies an array of the same number of dimensions or a tuple into it.
    fn store_view(&mut self, view: ArrayValue, value: Value, span: Span) {
        let value = match value {
            Value::Poison => return,
            Value::Object(kind, items) if kind.is_tuple() && view.ty.ndim == 1 => {
                return self.store_tuple(&view, items, span);
            }
            Value::Array(source) if source.ty.ndim == view.ty.ndim => Value::Array(source),
            number @ (Value::Scalar(..) | Value::Int(_) | Value::Bool(_)) => self.settle(number, span),
            other @ (Value::Complex(..) | Value::Array(_) | Value::Object(..) | Value::Static(_)) => {
                let message = format!("{} cannot be stored into {}", other.ty(), Ty::Array(view.ty));
                self.error(Code::BadAssignment, span, message);
                return;
            }
        };
        self.store_loops(&view, &value, &mut Vec::new(), span);
    }

    /// Item by item. A view that turns out shorter, as a slice beyond the array's end is, takes as many as it has.
    fn store_tuple(&mut self, view: &ArrayValue, items: Vec<Value>, span: Span) {
        let [extent] = view.shape[..] else { return };
        if let Atom::Int(known) = extent
            && known != items.len() as i64
        {
            let message = format!("{} cannot be stored into a slice of {known}", count(items.len(), "value"));
            self.error(Code::BadAssignment, span, message);
            return;
        }
        // All are complete before the first is stored: `a[0:2] = (a[1], a[0])`.
        let items: Vec<_> = items.into_iter().map(|item| self.settle(item, span)).collect();
        for (position, item) in items.into_iter().enumerate() {
            self.b.open();
            let index = Index::at(self.b.i64(position as i64, span));
            if let Some(Place::Element(pointer)) = self.place(view, &[index], span) {
                self.store(pointer, view.ty.dtype, &item, span);
            }
            let then = self.b.close();
            let (index, extent) = (self.b.i64(position as i64, span), self.use_atom(extent, span));
            let cond = self.b.compare(CompareOp::Lt, index, extent, span);
            self.stmt(Ir::If { cond, then, otherwise: Vec::new() }, span);
        }
    }

    /// One loop a dimension, the store innermost.
    fn store_loops(&mut self, view: &ArrayValue, value: &Value, counters: &mut Vec<crate::ir::LocalId>, span: Span) {
        let Some(extent) = view.shape.get(counters.len()).copied() else {
            let at = |this: &mut Self, counters: &[crate::ir::LocalId]| -> Vec<Index> {
                counters.iter().map(|counter| Index::at(this.b.read(*counter, span))).collect()
            };
            let element = if let Value::Array(source) = value {
                let indices = at(self, counters);
                self.subscript(Value::Array(source.clone()), &indices, span)
            } else {
                self.reread(value, span)
            };
            let indices = at(self, counters);
            if let Some(Place::Element(pointer)) = self.place(view, &indices, span) {
                self.store(pointer, view.ty.dtype, &element, span);
            }
            return;
        };
        let counter = self.b.local("counter", Type::I64);
        self.b.function.locals[counter].nonneg = true;
        let zero = self.b.i64(0, span);
        self.b.assign(counter, zero, span);
        self.b.open();
        let (now, stop) = (self.b.read(counter, span), self.use_atom(extent, span));
        let done = self.b.compare(CompareOp::Ge, now, stop, span);
        let leave = vec![crate::ir::Stmt { kind: Ir::Break, span }];
        self.stmt(Ir::If { cond: done, then: leave, otherwise: Vec::new() }, span);
        counters.push(counter);
        self.store_loops(view, value, counters, span);
        counters.pop();
        let body = self.b.close();
        self.b.open();
        let (now, one) = (self.b.read(counter, span), self.b.i64(1, span));
        let next = self.b.binary(BinaryOp::Add, now, one, span);
        self.b.assign(counter, next, span);
        let step = self.b.close();
        self.stmt(Ir::Loop { body, step }, span);
    }

    fn store(&mut self, pointer: ExprId, dtype: Number, value: &Value, span: Span) {
        if value.ty().is_poison() {
            return;
        }
        let scalar = match dtype {
            Number::Real(scalar) => scalar,
            Number::Complex(complex) => {
                let Some((real, imag)) = self.complex(value, complex, span) else {
                    self.cannot_store(value, dtype, span);
                    return;
                };
                let (real, imag) = (self.b.temp(real, span), self.b.temp(imag, span));
                let pointer = self.b.temp(pointer, span);
                for (index, part) in [real, imag].into_iter().enumerate() {
                    let base = self.b.read(pointer, span);
                    let at = self.part_pointer(base, index as i64, span);
                    let value = self.b.read(part, span);
                    self.stmt(Ir::Store { pointer: at, value }, span);
                }
                return;
            }
        };
        match self.number(value, scalar, span) {
            Some(value) => self.stmt(Ir::Store { pointer, value }, span),
            None => self.cannot_store(value, dtype, span),
        }
    }

    fn cannot_store(&mut self, value: &Value, dtype: Number, span: Span) {
        let mut diagnostic = Diagnostic::error(
            Code::BadAssignment,
            span,
            format!("{} cannot be stored into an array of {dtype}", value.ty()),
        );
        if matches!(value, Value::Complex(..)) {
            diagnostic = diagnostic.help("store its `.real` or `abs(…)`, or make the array complex");
        } else if matches!(value, Value::Array(_)) {
            diagnostic = diagnostic.help("index the array on the right");
        }
        self.report(diagnostic);
    }
}
