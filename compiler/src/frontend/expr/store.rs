//! Stores through subscripts: into elements, and into views from numbers, arrays and tuples.

use weft_artifact::{Compound, DType, Layout};

use super::{index::Index, object::FieldIndex, subscript::Selected};
use crate::{
    diagnostic::Code,
    frontend::{
        function::count,
        lowerer::FnLowerer,
        object::{ObjectKind, Static},
        refusals,
        ty::{ArrayTy, Ty},
        value::{ArrayValue, Atom, Value},
    },
    ir::{BinaryOp, CompareOp, ExprId, LocalId, StmtKind as Ir, Type},
    source::Span,
    syntax::ast::BinOp,
};

impl FnLowerer<'_> {
    /// The element of a zero-dimensional array, or the value itself.
    pub(in crate::frontend) fn element_of_none(&mut self, value: Value, span: Span) -> Value {
        if matches!(&value, Value::Array(array) if array.ty.ndim == 0) {
            return self.subscript(value, &[], span);
        }
        value
    }

    /// `base[indices] = value`.
    pub(in crate::frontend) fn store_subscript(&mut self, base: Value, indices: &[Index], value: Value, span: Span) {
        let array = match base {
            Value::Array(array) if let [Index::Name(name), rest @ ..] = indices => {
                let Some(Value::Array(view)) = self.field_view(&array, name, span) else {
                    self.report(refusals::no_field(array.ty, name, span));
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
            Value::Object(ObjectKind::Pointer, ref items) if let [Value::Array(place)] = items.as_slice() => {
                if place.ty.readonly {
                    self.error(Code::ReadonlyArray, span, "the pointer points to read-only elements");
                } else if let Some(pointer) = self.pointed_to(place, indices, span) {
                    let value = self.element_of_none(value, span);
                    self.store(pointer, place.ty, &value, span);
                }
                return;
            }
            Value::Object(ObjectKind::Swizzled(swizzle), ref items) if let [Value::Array(array)] = items.as_slice() => {
                if let Some(indices) = self.swizzled(array, swizzle, indices, span) {
                    self.store_subscript(Value::Array(array.clone()), &indices, value, span);
                }
                return;
            }
            Value::Object(ObjectKind::Flat, ref items) if let [Value::Array(array)] = items.as_slice() => {
                if array.ty.readonly {
                    self.report(refusals::readonly(Ty::Array(array.ty), span));
                } else if let Some(pointer) = self.flat_element(array, indices, span) {
                    let value = self.element_of_none(value, span);
                    self.store(pointer, array.ty, &value, span);
                }
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
            self.report(refusals::readonly(Ty::Array(array.ty), span));
            return;
        }
        let Some(selected) = self.selected(&array, indices, span) else { return };
        match selected {
            Selected::Element(pointer) => {
                let value = self.element_of_none(value, span);
                self.store(pointer, array.ty, &value, span);
            }
            Selected::View(view) => self.store_view(view, value, span),
        }
    }

    /// Assigns a value to all elements of a view: the assignment to a field of an array of records.
    pub(in crate::frontend) fn fill(&mut self, view: ArrayValue, value: Value, span: Span) {
        if view.ty.readonly {
            self.report(refusals::readonly(Ty::Array(view.ty), span));
            return;
        }
        self.store_view(view, value, span);
    }

    /// Fills a view with a number, or copies an array or a tuple into it.
    pub(in crate::frontend) fn store_view(&mut self, view: ArrayValue, value: Value, span: Span) {
        self.put_view(&view, None, value, span);
    }

    /// `view op= value`, element by element.
    pub(in crate::frontend) fn update_view(&mut self, view: &ArrayValue, op: BinOp, value: Value, span: Span) {
        if view.ty.readonly {
            self.report(refusals::readonly(Ty::Array(view.ty), span));
            return;
        }
        self.put_view(view, Some(op), value, span);
    }

    /// Assigns to each element of a view the value's element, or the result of an operator on both.
    fn put_view(&mut self, view: &ArrayValue, op: Option<BinOp>, value: Value, span: Span) {
        let value = match value {
            Value::Poison => return,
            Value::Object(kind, items) if kind.is_tuple() && !is_row(&kind, &items, view.ty) => {
                return self.put_tuple(view, op, items, span);
            }
            Value::Array(source) if source.ty.ndim <= view.ty.ndim => return self.put_array(view, op, source, span),
            // Leading dimensions beyond those of the view are dropped if their extent is 1.
            Value::Array(source)
                if source.shape.iter().take(source.ty.ndim - view.ty.ndim).all(|extent| *extent == Atom::Int(1)) =>
            {
                let first: Vec<Index> =
                    (view.ty.ndim..source.ty.ndim).map(|_| Index::at(self.b.i64(0, span))).collect();
                let source = self.subscript(Value::Array(source), &first, span);
                return self.put_view(view, op, source, span);
            }
            element @ (Value::Scalar(..) | Value::Complex(..) | Value::Int(_) | Value::Bool(_)) => {
                self.settle(element, span)
            }
            Value::Object(ObjectKind::Weak, items) => self.settle(Value::Object(ObjectKind::Weak, items), span),
            Value::Object(kind, items) if is_element(&kind, view.ty) || (op.is_some() && is_operand(&kind)) => {
                self.settle(Value::Object(kind, items), span)
            }
            text @ Value::Static(Static::Str(_) | Static::Bytes(_)) if op.is_none() && holds_strings(view.ty) => text,
            other @ (Value::Array(_) | Value::Object(..) | Value::Static(_)) => {
                let ty = Ty::Array(view.ty);
                match op {
                    None => {
                        let message = format!("{} cannot be stored into {ty}", other.ty());
                        self.error(Code::BadAssignment, span, message);
                    }
                    Some(op) => {
                        let message = format!("`{}=` does not take {ty} and {}", op.symbol(), other.ty());
                        self.error(Code::BadOperand, span, message);
                    }
                }
                return;
            }
        };
        self.put_each(view, op, &value, &mut Vec::new(), span);
    }

    /// Stores an array with the same number of dimensions or fewer, which are aligned at the last one. An extent of 1
    /// is broadcast, as in NumPy.
    fn put_array(&mut self, view: &ArrayValue, op: Option<BinOp>, source: ArrayValue, span: Span) {
        let whole: Vec<Atom> =
            view.shape[view.ty.ndim - source.ty.ndim..].iter().map(|extent| self.fixed(*extent)).collect();
        let mut source = source;
        source.shape = source.shape.iter().map(|extent| self.fixed(*extent)).collect();
        let mut other: Option<ExprId> = None;
        let mut spreads = Vec::new();
        for (extent, own) in whole.iter().zip(&source.shape) {
            match (extent, own) {
                (_, Atom::Int(1)) => {}
                (extent, own) if extent == own => {}
                (Atom::Int(1), Atom::Local(_)) | (Atom::Int(_) | Atom::Local(_), Atom::Int(_)) => {
                    if self.end_unless_same(*own, *extent, span).is_none() {
                        return;
                    }
                }
                (Atom::Int(_) | Atom::Local(_), Atom::Local(_)) => {
                    spreads.push((*own, *extent));
                    let (extent, own) = (self.use_atom(*extent, span), self.use_atom(*own, span));
                    let differ = self.b.compare(CompareOp::Ne, extent, own, span);
                    other = Some(match other {
                        None => differ,
                        Some(before) => self.b.binary(BinaryOp::Or, before, differ, span),
                    });
                }
            }
        }
        let Some(cond) = other else {
            return self.put_each(view, op, &Value::Array(source), &mut Vec::new(), span);
        };
        let cond = self.b.temp(cond, span);
        self.b.open();
        // One test that all extents are equal guards all other tests.
        let fits = spreads.into_iter().try_for_each(|(own, extent)| self.end_unless_broadcast(own, extent, span));
        debug_assert!(fits.is_some(), "a known value reached a run-time conversion");
        let spread = self.broadcast(&source, &whole, span);
        self.put_each(view, op, &Value::Array(spread), &mut Vec::new(), span);
        let then = self.b.close();
        self.b.open();
        self.put_each(view, op, &Value::Array(source), &mut Vec::new(), span);
        let otherwise = self.b.close();
        let cond = self.b.read(cond, span);
        self.stmt(Ir::If { cond, then, otherwise }, span);
    }

    /// A view of an array with these extents: a dimension of extent 1 is broadcast.
    pub(in crate::frontend) fn broadcast(&mut self, source: &ArrayValue, shape: &[Atom], span: Span) -> ArrayValue {
        let new = shape.len().saturating_sub(source.ty.ndim);
        let mut strides = vec![Atom::Int(0); new];
        for dim in 0..source.ty.ndim {
            let stride = self.stride(source, dim, span);
            strides.push(match source.shape.get(dim) {
                Some(Atom::Int(1)) | None => Atom::Int(0),
                Some(Atom::Int(_)) => stride,
                Some(extent @ Atom::Local(_)) => {
                    let (extent, one) = (self.use_atom(*extent, span), self.b.i64(1, span));
                    let single = self.b.compare(CompareOp::Eq, extent, one, span);
                    let (none, stride) = (self.b.i64(0, span), self.use_atom(stride, span));
                    let stride = self.b.select(single, none, stride, span);
                    self.atom(stride, span)
                }
            });
        }
        let layout = if shape.is_empty() { source.ty.layout } else { Layout::Any };
        let ty = ArrayTy { ndim: shape.len(), layout, ..source.ty };
        ArrayValue { ty, data: source.data, shape: shape.to_vec(), strides }
    }

    /// Stores item by item; a single item is broadcast.
    fn put_tuple(&mut self, view: &ArrayValue, op: Option<BinOp>, items: Vec<Value>, span: Span) {
        // All items are evaluated before the first one is stored: `a[0:2] = (a[1], a[0])`.
        let items: Vec<_> = items.into_iter().map(|item| self.settle(item, span)).collect();
        let depth = 1 + items.iter().map(|item| depth(item, view.ty)).max().unwrap_or(0);
        let extent = view.shape.first().map(|extent| self.fixed(*extent));
        let Some(extent) = extent.filter(|_| depth <= view.ty.ndim) else {
            let tuple = Value::tuple(items).ty();
            let message = format!("{tuple} cannot be stored into {}", Ty::Array(view.ty));
            self.error(Code::BadAssignment, span, message);
            return;
        };
        if depth < view.ty.ndim {
            // Each row is assigned the whole tuple.
            let tuple = Value::tuple(items);
            self.repeat(extent, span, |this, counter| {
                let row = this.row(view, counter, span);
                let tuple = this.reread(&tuple, span);
                this.put_selected(view, op, row, tuple, span);
            });
            return;
        }
        if let [item] = items.as_slice()
            && extent != Atom::Int(1)
        {
            self.repeat(extent, span, |this, counter| {
                let row = this.row(view, counter, span);
                let item = this.reread(item, span);
                this.put_selected(view, op, row, item, span);
            });
            return;
        }
        if let Atom::Int(known) = extent
            && known != items.len() as i64
        {
            let message = format!("{} cannot be stored into a slice of {known}", count(items.len(), "value"));
            self.error(Code::BadAssignment, span, message);
            return;
        }
        if self.end_unless_same(Atom::Int(items.len() as i64), extent, span).is_none() {
            return;
        }
        for (position, item) in items.into_iter().enumerate() {
            let index = Index::at(self.b.i64(position as i64, span));
            let row = self.selected(view, &[index], span);
            self.put_selected(view, op, row, item, span);
        }
    }

    /// The element or row at a counter in the first dimension.
    fn row(&mut self, view: &ArrayValue, counter: LocalId, span: Span) -> Option<Selected> {
        let index = Index::at(self.b.read(counter, span));
        self.selected(view, &[index], span)
    }

    /// Assigns a value to an element or a row, or the result of an operator on both.
    fn put_selected(
        &mut self,
        of: &ArrayValue,
        op: Option<BinOp>,
        selected: Option<Selected>,
        value: Value,
        span: Span,
    ) {
        match (selected, op) {
            (None, _) => {}
            (Some(Selected::View(view)), _) => self.put_view(&view, op, value, span),
            (Some(Selected::Element(pointer)), None) => self.store(pointer, of.ty, &value, span),
            (Some(Selected::Element(pointer)), Some(op)) => {
                let pointer = self.b.temp(pointer, span);
                let at = self.b.read(pointer, span);
                let before = self.load(at, of.ty, span);
                let after = self.binary(op, before, value, span);
                let at = self.b.read(pointer, span);
                self.store(at, of.ty, &after, span);
            }
        }
    }

    /// One loop per dimension, with the store in the innermost one.
    fn put_each(
        &mut self,
        view: &ArrayValue,
        op: Option<BinOp>,
        value: &Value,
        counters: &mut Vec<LocalId>,
        span: Span,
    ) {
        let Some(extent) = view.shape.get(counters.len()).copied() else {
            let at = |this: &mut Self, counters: &[LocalId]| -> Vec<Index> {
                counters.iter().map(|counter| Index::at(this.b.read(*counter, span))).collect()
            };
            let element = if let Value::Array(source) = value {
                // Missing dimensions are the leading ones, as in NumPy's broadcasting.
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
            let selected = self.selected(view, &indices, span);
            self.put_selected(view, op, selected, element, span);
            return;
        };
        self.repeat(extent, span, |this, counter| {
            counters.push(counter);
            this.put_each(view, op, value, counters, span);
            counters.pop();
        });
    }

    /// A loop with the trip count `extent`; `body` gets the counter, from 0 on.
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

/// The number of dimensions that a value fills of an array of this type.
fn depth(value: &Value, of: ArrayTy) -> usize {
    match value {
        Value::Array(array) => array.ty.ndim,
        Value::Object(kind, items) if kind.is_tuple() && !is_row(kind, items, of) => {
            1 + items.iter().map(|item| depth(item, of)).max().unwrap_or(0)
        }
        Value::Scalar(..)
        | Value::Complex(..)
        | Value::Int(_)
        | Value::Bool(_)
        | Value::Object(..)
        | Value::Static(_)
        | Value::Poison => 0,
    }
}

/// Whether a tuple has the fields of one record, instead of being a tuple of records.
fn is_row(kind: &ObjectKind, items: &[Value], of: ArrayTy) -> bool {
    is_element(kind, of) && !items.iter().any(|item| item.as_tuple().is_some())
}

/// Whether the elements are strings.
fn holds_strings(of: ArrayTy) -> bool {
    of.dtype.chars().is_some()
}

/// Whether an operator accepts an object as the other operand of an element.
fn is_operand(kind: &ObjectKind) -> bool {
    kind.is_number() || matches!(kind, ObjectKind::Time(_) | ObjectKind::Vector(_))
}

/// Whether an object is an element for such arrays, which fills a view.
fn is_element(kind: &ObjectKind, of: ArrayTy) -> bool {
    let DType::Compound(id) = of.dtype else { return false };
    match (kind, id.get()) {
        (ObjectKind::Vector(vector), Compound::Vector(lanes)) => vector.lanes() == lanes.lanes(),
        (ObjectKind::Record, Compound::Record(_)) => true,
        (kind, Compound::Record(_)) => kind.is_tuple(),
        (ObjectKind::Time(time), Compound::Time(of)) => time == of,
        (ObjectKind::Float8(format), Compound::Float8(of)) => format == of,
        (ObjectKind::Chars, Compound::Chars(_)) => true,
        (
            _,
            Compound::Vector(_) | Compound::Nested(_) | Compound::Time(_) | Compound::Chars(_) | Compound::Float8(_),
        ) => false,
    }
}
