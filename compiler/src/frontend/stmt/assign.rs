//! `a = b = value`, `a, b = value`, `target: T = value` and `target op= value`

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::{FieldIndex, Index},
        function::count,
        lowerer::FnLowerer,
        object::ObjectKind,
        value::{Atom, Value},
    },
    source::Span,
    syntax::ast::{BinOp, Expr, ExprKind},
};

impl FnLowerer<'_> {
    pub(super) fn assign(&mut self, targets: &[Expr], value: &Expr, span: Span) {
        self.hint = match targets {
            [Expr { kind: ExprKind::Name(name), .. }] => Some(name.clone()),
            _ => None,
        };
        let mut result = self.expr_or_none(value);
        self.hint = None;
        let plain = matches!(targets, [Expr { kind: ExprKind::Name(_), .. }]);
        if !plain {
            // `a, b = b, a` and `i = a[i] = f(i)`: the value is evaluated before the first target changes.
            let own = self.with_own_strings(result, value.span);
            result = self.settle(own, value.span);
        }
        for target in targets {
            let now = if plain { result.clone() } else { self.reread(&result, value.span) };
            self.assign_to(target, now, span);
        }
    }

    /// Assigns a value to one target. A value in several parts that is assigned to several targets must be
    /// materialized.
    pub(in crate::frontend) fn assign_to(&mut self, target: &Expr, value: Value, span: Span) {
        match &target.kind {
            ExprKind::Name(name) => self.assign_var(name, value, target.span),
            ExprKind::Tuple(targets) | ExprKind::List(targets) => self.unpack(targets, value, target.span, span),
            ExprKind::Subscript { value: base, index } => {
                let base_value = self.expr(base);
                let base_value = self.before(base_value, base.span, [&**index]);
                let Some(indices) = self.indices(index) else { return };
                if let Some(diagnostic) = self.not_an_array(base, &base_value.ty(), Code::BadAssignment, target.span) {
                    self.report(diagnostic);
                    return;
                }
                let value = self.not_none(value, target.span);
                self.record_element_of(target.span, &base_value, indices.len());
                self.store_subscript(base_value, &indices, value, target.span);
            }
            ExprKind::Starred(_) => {
                self.error(Code::UnsupportedExpression, target.span, "a kernel cannot unpack into a starred name");
            }
            ExprKind::Attribute { value: base, attr } => {
                let base = self.expr(base);
                let value = self.not_none(value, target.span);
                match &base {
                    Value::Object(ObjectKind::Record, items) => {
                        if let [Value::Array(place)] = items.as_slice() {
                            self.store_field(place, &FieldIndex::Name(attr.clone()), &value, target.span);
                        }
                        return;
                    }
                    Value::Array(array) => {
                        if let Some(Value::Array(view)) = self.field_view(array, attr, target.span) {
                            self.fill(view, value, target.span);
                            return;
                        }
                    }
                    Value::Scalar(..)
                    | Value::Complex(..)
                    | Value::Int(_)
                    | Value::Bool(_)
                    | Value::Object(..)
                    | Value::Static(_)
                    | Value::Poison => {}
                }
                if !base.ty().is_poison() {
                    let message = format!("attribute `{attr}` of {} cannot be assigned", base.ty());
                    let help = match attr.as_str() {
                        "shape" | "strides" => "make a view: `b = a.reshape(shape)`, `a.T`, `a[::2]`",
                        "dtype" => "make a view: `b = a.view(dtype)`",
                        _ => "attributes are read in kernels; fields of records and elements of arrays are written",
                    };
                    let diagnostic = Diagnostic::error(Code::BadAssignment, target.span, message);
                    self.report(diagnostic.help(help));
                }
            }
            ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Call { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. }
            | ExprKind::Unsupported(_) => {
                self.error(Code::BadAssignment, target.span, "this cannot be assigned to");
            }
        }
    }

    fn unpack(&mut self, targets: &[Expr], value: Value, at: Span, span: Span) {
        let value = self.not_none(value, span);
        let value = self.gathered(value, at);
        let star = targets.iter().position(|target| matches!(target.kind, ExprKind::Starred(_)));
        if let Some(star) = star {
            return self.unpack_rest(targets, star, value, at, span);
        }
        let items = match self.settle(value, span) {
            Value::Object(kind, items) if kind.is_tuple() => items,
            Value::Object(ObjectKind::Vector(_), lanes) => lanes,
            Value::Object(ObjectKind::Record, ref items) if let [Value::Array(place)] = items.as_slice() => {
                let fields = self.record_fields(place, span);
                fields.into_iter().map(|field| self.settle(field, span)).collect()
            }
            Value::Array(array) if array.ty.ndim > 0 => {
                // As in Numba, the extent is not checked, since bounds are not checked in a kernel.
                if let Some(Atom::Int(extent)) = array.shape.first()
                    && *extent != targets.len() as i64
                {
                    let message =
                        format!("{} cannot be unpacked from an array of {extent}", count(targets.len(), "value"));
                    self.error(Code::BadAssignment, at, message);
                    return;
                }
                (0..targets.len())
                    .map(|i| {
                        let index = self.b.i64(i as i64, span);
                        let index = Index::at(index);
                        let item = self.subscript(Value::Array(array.clone()), &[index], span);
                        self.settle(item, span)
                    })
                    .collect()
            }
            Value::Poison => targets.iter().map(|_| Value::Poison).collect(),
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)) => {
                let message = format!("{} cannot be unpacked", other.ty());
                self.error(Code::BadAssignment, at, message);
                targets.iter().map(|_| Value::Poison).collect()
            }
        };
        if items.len() != targets.len() {
            let diagnostic = Diagnostic::error(
                Code::BadAssignment,
                at,
                format!("{} cannot be unpacked into {}", count(items.len(), "value"), count(targets.len(), "target")),
            );
            self.report(diagnostic);
        }
        let mut items = items.into_iter();
        for target in targets {
            self.assign_to(target, items.next().unwrap_or(Value::Poison), span);
        }
    }

    /// `a, *b, c = value`: the values that the other targets leave over form a tuple.
    fn unpack_rest(&mut self, targets: &[Expr], star: usize, value: Value, at: Span, span: Span) {
        let settled = self.settle(value, span);
        let Some(items) = settled.as_tuple() else {
            if !settled.ty().is_poison() {
                let diagnostic = Diagnostic::error(
                    Code::BadAssignment,
                    at,
                    format!("{} cannot be unpacked into a starred name", settled.ty()),
                );
                self.report(diagnostic.note("a starred name takes the remaining items of a tuple, as a tuple"));
            }
            return;
        };
        let after = targets.len() - 1 - star;
        if items.len() < star + after {
            let message = format!("{} cannot be unpacked into {star} + {after} targets", count(items.len(), "value"));
            self.error(Code::BadAssignment, at, message);
            return;
        }
        let items = items.to_vec();
        let last = items.len() - after;
        for (number, target) in targets.iter().enumerate() {
            if let ExprKind::Starred(inner) = &target.kind {
                self.assign_to(inner, Value::tuple(items[star..last].to_vec()), span);
                continue;
            }
            let item = if number < star { number } else { last + number - star - 1 };
            self.assign_to(target, items[item].clone(), span);
        }
    }

    pub(super) fn aug_assign(&mut self, target: &Expr, op: BinOp, value: &Expr, span: Span) {
        match &target.kind {
            ExprKind::Name(_) => {
                let left = self.expr(target);
                if let Value::Array(array) = left {
                    // An array is updated in place; its name still refers to it.
                    self.check_held(&Value::Array(array.clone()), value.span, target.span);
                    let right = self.expr(value);
                    return self.update_view(&array, op, right, target.span);
                }
                let left = self.before(left, target.span, [value]);
                let right = self.expr(value);
                let result = self.binary(op, left, right, span);
                self.assign_to(target, result, span);
            }
            ExprKind::Attribute { value: base, attr } => {
                let base = self.expr(base);
                let base = self.settle(base, target.span);
                let again = self.reread(&base, target.span);
                let left = self.attribute_of(again, attr, target.span);
                if let Value::Array(view) = left {
                    self.check_held(&Value::Array(view.clone()), value.span, target.span);
                    let right = self.expr(value);
                    return self.update_view(&view, op, right, target.span);
                }
                self.record_element(target.span, &left);
                let left = self.before(left, target.span, [value]);
                let right = self.expr(value);
                let result = self.binary(op, left, right, span);
                self.store_subscript(base, &[Index::Name(attr.clone())], result, target.span);
            }
            ExprKind::Subscript { value: base, index } => {
                // The array and the index are evaluated once, as in Python.
                let base_value = self.expr(base);
                let base_value = self.settle(base_value, base.span);
                let Some(indices) = self.indices(index) else { return };
                if let Some(diagnostic) = self.not_an_array(base, &base_value.ty(), Code::BadAssignment, target.span) {
                    self.report(diagnostic);
                    return;
                }
                let indices = self.settle_indices(indices, index.span);
                let again = self.reread_indices(&indices, index.span);
                let array = self.reread(&base_value, base.span);
                let left = self.subscript(array, &again, target.span);
                if let Value::Array(view) = left {
                    self.check_held(&Value::Array(view.clone()), value.span, target.span);
                    let right = self.expr(value);
                    return self.update_view(&view, op, right, target.span);
                }
                self.record_element(target.span, &left);
                if left.ty().is_poison() {
                    // The error of the target is reported; the value is lowered for its own errors.
                    self.expr(value);
                    return;
                }
                let left = self.before(left, target.span, [value]);
                let right = self.expr(value);
                let result = self.binary(op, left, right, span);
                self.store_subscript(base_value, &indices, result, target.span);
            }
            ExprKind::Constant(_)
            | ExprKind::Binary { .. }
            | ExprKind::Unary { .. }
            | ExprKind::Bool { .. }
            | ExprKind::Compare { .. }
            | ExprKind::IfExp { .. }
            | ExprKind::Call { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Tuple(_)
            | ExprKind::List(_)
            | ExprKind::Starred(_)
            | ExprKind::Named { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Comprehension { .. }
            | ExprKind::Unsupported(_) => {
                self.error(Code::BadAssignment, target.span, "this cannot be assigned to");
            }
        }
    }
}
