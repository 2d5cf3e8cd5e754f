//! Stores through subscripts: into elements, and into views from numbers, arrays and tuples.

use weft_artifact::{Compound, DType};

use super::{index::Index, object::FieldIndex, subscript::Place};
use crate::{
    diagnostic::Code,
    frontend::{
        function::count,
        lowerer::FnLowerer,
        object::ObjectKind,
        ty::{ArrayTy, Ty},
        value::{ArrayValue, Atom, Value},
    },
    ir::{BinaryOp, CompareOp, LocalId, StmtKind as Ir, Type},
    source::Span,
};

impl FnLowerer<'_> {
    /// `base[indices] = value`.
    pub(in crate::frontend) fn store_subscript(&mut self, base: Value, indices: &[Index], value: Value, span: Span) {
        let array = match base {
            Value::Array(array) if let [Index::Name(name), rest @ ..] = indices => {
                let Some(Value::Array(view)) = self.field_view(&array, name, span) else {
                    let message = format!("{} has no field `{name}`", Ty::Array(array.ty));
                    self.error(Code::NoSuchAttribute, span, message);
                    return;
                };
                if rest.is_empty() {
                    self.fill(view, value, span);
                } else {
                    self.store_subscript(Value::Array(view), rest, value, span);
                }
                return;
            }
            Value::Array(array) => array,
            Value::Object(ObjectKind::Record, ref items)
                if let ([Value::Array(place)], Some(field)) = (items.as_slice(), FieldIndex::of(indices)) =>
            {
                self.store_field(place, &field, &value, span);
                return;
            }
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
            Place::Element(pointer) => self.store(pointer, array.ty, &value, span),
            Place::View(view) => self.store_view(view, value, span),
        }
    }

    /// All of a view gets a value: what a field of an array of records is assigned.
    pub(in crate::frontend) fn fill(&mut self, view: ArrayValue, value: Value, span: Span) {
        if view.ty.readonly {
            let message = format!("{} is read-only", Ty::Array(view.ty));
            self.error(Code::ReadonlyArray, span, message);
            return;
        }
        self.store_view(view, value, span);
    }

    /// Fills a view with a number, or copies an array of the same number of dimensions or a tuple into it.
    pub(in crate::frontend) fn store_view(&mut self, view: ArrayValue, value: Value, span: Span) {
        let value = match value {
            Value::Poison => return,
            Value::Object(kind, items) if kind.is_tuple() && view.ty.ndim == 1 => {
                return self.store_tuple(&view, items, span);
            }
            Value::Array(source) if source.ty.ndim <= view.ty.ndim => Value::Array(source),
            element @ (Value::Scalar(..) | Value::Complex(..) | Value::Int(_) | Value::Bool(_)) => {
                self.settle(element, span)
            }
            Value::Object(kind, items) if is_element(&kind, view.ty) => self.settle(Value::Object(kind, items), span),
            other @ (Value::Array(_) | Value::Object(..) | Value::Static(_)) => {
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
                self.store(pointer, view.ty, &item, span);
            }
            let then = self.b.close();
            let (index, extent) = (self.b.i64(position as i64, span), self.use_atom(extent, span));
            let cond = self.b.compare(CompareOp::Lt, index, extent, span);
            self.stmt(Ir::If { cond, then, otherwise: Vec::new() }, span);
        }
    }

    /// One loop a dimension, the store innermost.
    fn store_loops(&mut self, view: &ArrayValue, value: &Value, counters: &mut Vec<LocalId>, span: Span) {
        let Some(extent) = view.shape.get(counters.len()).copied() else {
            let at = |this: &mut Self, counters: &[LocalId]| -> Vec<Index> {
                counters.iter().map(|counter| Index::at(this.b.read(*counter, span))).collect()
            };
            let element = if let Value::Array(source) = value {
                // Fewer dimensions are the last ones, as NumPy broadcasts.
                let own = &counters[counters.len() - source.ty.ndim..];
                let mut indices = at(self, own);
                for (index, extent) in indices.iter_mut().zip(&source.shape) {
                    if *extent == Atom::Int(1) {
                        *index = Index::at(self.b.i64(0, span));
                    }
                }
                self.subscript(Value::Array(source.clone()), &indices, span)
            } else {
                self.reread(value, span)
            };
            let indices = at(self, counters);
            if let Some(Place::Element(pointer)) = self.place(view, &indices, span) {
                self.store(pointer, view.ty, &element, span);
            }
            return;
        };
        self.repeat(extent, span, |this, counter| {
            counters.push(counter);
            this.store_loops(view, value, counters, span);
            counters.pop();
        });
    }

    /// A loop of so many turns; `body` gets the counter, from 0 on.
    pub(in crate::frontend) fn repeat(&mut self, extent: Atom, span: Span, body: impl FnOnce(&mut Self, LocalId)) {
        let counter = self.b.local("counter", Type::I64);
        self.b.function.locals[counter].nonneg = true;
        let zero = self.b.i64(0, span);
        self.b.assign(counter, zero, span);
        self.b.open();
        let (now, stop) = (self.b.read(counter, span), self.use_atom(extent, span));
        let done = self.b.compare(CompareOp::Ge, now, stop, span);
        let leave = vec![crate::ir::Stmt { kind: Ir::Break, span }];
        self.stmt(Ir::If { cond: done, then: leave, otherwise: Vec::new() }, span);
        body(self, counter);
        let block = self.b.close();
        self.b.open();
        let (now, one) = (self.b.read(counter, span), self.b.i64(1, span));
        let next = self.b.binary(BinaryOp::Add, now, one, span);
        self.b.assign(counter, next, span);
        let step = self.b.close();
        self.stmt(Ir::Loop { body: block, step }, span);
    }
}

/// Whether an object is an element of such arrays, with which a view is filled.
fn is_element(kind: &ObjectKind, of: ArrayTy) -> bool {
    let DType::Compound(id) = of.dtype else { return false };
    match (kind, id.get()) {
        (ObjectKind::Vector(vector), Compound::Vector(lanes)) => vector.lanes() == lanes.lanes(),
        (ObjectKind::Record, Compound::Record(_)) => true,
        (kind, Compound::Record(_)) => kind.is_tuple(),
        (ObjectKind::Time(time), Compound::Time(of)) => time == of,
        (ObjectKind::Chars, Compound::Chars(_)) => true,
        (_, Compound::Vector(_) | Compound::Nested(_) | Compound::Time(_) | Compound::Chars(_)) => false,
    }
}
