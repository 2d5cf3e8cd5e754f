//! Ranges as values: their items, slices, and comparison.

use weft_artifact::Scalar;

use super::{
    index::{Bound, Index},
    subscript::in_slice,
};
use crate::{
    diagnostic::Code,
    frontend::{
        lowerer::FnLowerer,
        object::ObjectKind,
        prelude,
        value::{Atom, Value},
    },
    source::Span,
};

impl FnLowerer<'_> {
    /// `range[index]` and `range[lower:upper:step]`.
    pub(super) fn range_item(&mut self, range: Value, indices: &[Index], span: Span) -> Value {
        let range = self.settle(range, span);
        match indices {
            [Index::Slice { lower, upper, step }] => self.range_slice(&range, [*lower, *upper, *step], span),
            [index @ Index::At { .. }] => {
                let Some(length) = self.length(&range, span) else { return Value::Poison };
                let at = self.wrapped(index, length, span);
                let at = self.atom(at, span);
                self.item_at(&range, at, span)
            }
            _ => self.error(Code::BadIndex, span, "the index of a range must be an integer or a slice"),
        }
    }

    /// The range, of `int64`, of the items that a slice selects.
    fn range_slice(&mut self, range: &Value, bounds: [Option<Bound>; 3], span: Span) -> Value {
        let Value::Object(ObjectKind::Range(_), parts) = range else { return Value::Poison };
        let [start, _, step] = parts.as_slice() else { return Value::Poison };
        let Some(length) = self.length(range, span) else { return Value::Poison };
        let known = |bound: Option<Bound>| bound.map_or(Some(None), |bound| bound.known.map(Some));
        if let (Value::Int(start), Value::Int(step), Atom::Int(length)) = (start, step, length)
            && let [Some(lower), Some(upper), Some(by)] = bounds.map(known)
        {
            let by = i128::from(by.unwrap_or(1));
            let (first, last) = in_slice(i128::from(length), lower.map(i128::from), upper.map(i128::from), by);
            let parts = [start + first * step, start + last * step, step * by];
            if parts.iter().all(|part| i64::try_from(*part).is_ok()) {
                return Value::Object(ObjectKind::Range(Scalar::I64), parts.map(Value::Int).to_vec());
            }
        }
        let mut args = Vec::new();
        for part in [start, step] {
            let part = self.reread(part, span);
            let Some(part) = self.number(&part, Scalar::I64, span) else { return Value::Poison };
            args.push(Value::Scalar(part, Scalar::I64));
        }
        args.push(Value::Scalar(self.use_atom(length, span), Scalar::I64));
        args.extend(bounds.map(|bound| bound.map_or(Value::NONE, |bound| Value::Scalar(bound.expr, Scalar::I64))));
        match self.own(span, "range_slice", args) {
            Some(Value::Object(ObjectKind::Tuple, parts)) => Value::Object(ObjectKind::Range(Scalar::I64), parts),
            _ => Value::Poison,
        }
    }

    /// Whether two ranges have the same values.
    pub(super) fn same_ranges(&mut self, a: Value, b: Value, span: Span) -> Value {
        self.own(span, "same_ranges", vec![a, b]).unwrap_or(Value::Poison)
    }

    /// Calls a function of the prelude that accepts any of the arguments passed here.
    fn own(&mut self, span: Span, name: &str, args: Vec<Value>) -> Option<Value> {
        let found = prelude::function(name).and_then(|function| self.call_own(&function, args, span).ok());
        if found.is_none() {
            self.cx.fault(self.at(span), &format!("`{name}` of the prelude cannot be called"));
        }
        found
    }
}
