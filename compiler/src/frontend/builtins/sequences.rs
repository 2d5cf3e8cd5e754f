//! Methods of tuples and ranges, and `tuple(iterable)`.

use weft_artifact::{MAX_LEAVES, Scalar};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::Args,
        function::count,
        iterate::Sequence,
        lowerer::FnLowerer,
        object::ObjectKind,
        prelude,
        ty::shown_path,
        value::{Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::BinaryOp,
    source::Span,
    syntax::ast::CmpOp,
};

impl FnLowerer<'_> {
    /// `t.index(x)`, `t.index(x, start, stop)` and `r.index(x)`: the first position of an equal item, or -1 (Python
    /// raises an error).
    pub(super) fn index_method(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let given = args.positional.len();
        let mut values = args.positional.into_iter().map(|(value, _)| value);
        let (Some(sequence), Some(item)) = (values.next(), values.next()) else {
            return self.wrong_count(row, given, span);
        };
        let bounds: Vec<Value> = values.collect();
        if let Value::Object(ObjectKind::Range(_), _) = &sequence {
            return if bounds.is_empty() {
                self.in_range(row, "range_index", sequence, item, span)
            } else {
                self.wrong_count(row, given, span)
            };
        }
        let Some(items) = sequence.as_tuple() else { return self.no_overload(row, &[sequence.ty(), item.ty()], span) };
        if bounds.len() > 2 {
            return self.wrong_count(row, given, span);
        }
        let length = items.len() as i128;
        let mut ends = [0, length];
        for (end, bound) in ends.iter_mut().zip(&bounds) {
            let Value::Int(known) = bound else {
                return self.error(Code::NotConstant, span, "the bounds of a search in a tuple must be constants");
            };
            *end = if *known < 0 { (known + length).max(0) } else { (*known).min(length) };
        }
        let item = self.settle(item, span);
        let items: Vec<Value> = items.iter().map(|item| self.settle(item.clone(), span)).collect();
        let mut found = Value::Int(-1);
        for (position, candidate) in items.into_iter().enumerate().rev() {
            if (position as i128) < ends[0] || position as i128 >= ends[1] {
                continue;
            }
            let again = self.reread(&item, span);
            let here = Value::Int(position as i128);
            let same = self.compare(CmpOp::Eq, candidate, again, span);
            if let Value::Bool(same) = same {
                found = if same { here } else { found };
                continue;
            }
            let parts = (
                self.number(&same, Scalar::Bool, span),
                self.number(&here, Scalar::I64, span),
                self.number(&found, Scalar::I64, span),
            );
            let (Some(same), Some(here), Some(otherwise)) = parts else { return Value::Poison };
            found = Value::Scalar(self.b.select(same, here, otherwise, span), Scalar::I64);
        }
        found
    }

    /// `t.count(x)` and `r.count(x)`: the number of equal items.
    pub(super) fn count_method(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([sequence, item]) = self.exactly(row, args, span) else { return Value::Poison };
        if let Value::Object(ObjectKind::Range(_), _) = &sequence {
            return self.in_range(row, "range_count", sequence, item, span);
        }
        let Some(items) = sequence.as_tuple() else { return self.no_overload(row, &[sequence.ty(), item.ty()], span) };
        let item = self.settle(item, span);
        let (mut sure, mut counted) = (0, None);
        for candidate in items.iter().cloned() {
            let again = self.reread(&item, span);
            let same = self.compare(CmpOp::Eq, candidate, again, span);
            if let Value::Bool(same) = same {
                sure += i128::from(same);
                continue;
            }
            let Some(one) = self.number(&same, Scalar::I64, span) else { return Value::Poison };
            counted = Some(match counted {
                None => one,
                Some(before) => self.b.binary(BinaryOp::Add, before, one, span),
            });
        }
        let Some(counted) = counted else { return Value::Int(sure) };
        let sure = self.b.int(Scalar::I64, sure, span);
        Value::Scalar(self.b.binary(BinaryOp::Add, counted, sure, span), Scalar::I64)
    }

    /// Calls a function of the prelude with the bounds of a range, in its type, and a number.
    fn in_range(&mut self, row: &Intrinsic, name: &str, range: Value, item: Value, span: Span) -> Value {
        let types = [range.ty(), item.ty()];
        let Value::Object(ObjectKind::Range(ty), parts) = range else { return Value::Poison };
        if item.ty().scalar().is_none() {
            return self.no_overload(row, &types, span);
        }
        let parts = parts.iter().map(|part| Some(Value::Scalar(self.number(part, ty, span)?, ty)));
        let Some(mut args) = parts.collect::<Option<Vec<_>>>() else { return Value::Poison };
        args.push(item);
        self.own_of_array(row, name, args, span)
    }

    fn wrong_count(&mut self, row: &Intrinsic, given: usize, span: Span) -> Value {
        let message = format!("`{}` takes {}, not {given}", shown_path(row.path), count(1, "argument"));
        self.error(Code::ArgumentCount, span, message)
    }

    /// `tuple(t)`, and `tuple(x)` of an iterable whose length is constant.
    pub(super) fn tuple_of(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        if args.positional.is_empty() && args.keywords.is_empty() {
            return Value::tuple(Vec::new());
        }
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        let value = self.gathered(value, span);
        if value.as_tuple().is_some() {
            return value;
        }
        if Sequence::of(&value).is_none() {
            return self.no_overload(row, &[value.ty()], span);
        }
        let value = self.settle(value, span);
        let length = match self.length(&value, span) {
            Some(Atom::Int(length)) if length <= MAX_LEAVES as i64 => length,
            Some(Atom::Int(length)) => {
                let message = format!("a tuple of {length} values: the limit is {MAX_LEAVES}");
                return self.error(Code::UnsupportedValue, span, message);
            }
            Some(Atom::Local(_)) => {
                let message = format!("the number of items of {} is not a compile-time constant", value.ty());
                let diagnostic =
                    Diagnostic::error(Code::NotConstant, span, message).note("each item is a variable of its own");
                return self.report(diagnostic.help("loop over it with `for`"));
            }
            None => return Value::Poison,
        };
        let items = (0..length).map(|at| {
            let item = self.item_at(&value, Atom::Int(at), span);
            self.settle(item, span)
        });
        let items = items.collect();
        self.tuple(items, span)
    }

    /// A function of the prelude for any iterable; `None` for iterables that the caller handles.
    pub(super) fn over_items(
        &mut self,
        row: &Intrinsic,
        name: &str,
        value: &Value,
        more: &[Value],
        span: Span,
    ) -> Option<Value> {
        let plain = matches!(value, Value::Array(array) if array.ty.ndim == 1);
        if value.as_tuple().is_some() || plain || Sequence::of(value).is_none() || prelude::function(name).is_none() {
            return None;
        }
        let values = std::iter::once(value).chain(more).cloned().collect();
        Some(self.own_of_array(row, name, values, span))
    }
}
