//! `range`, `enumerate`, `zip`, `reversed` and `literal_unroll`: iterables as values.

use weft_artifact::Scalar;

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::{Args, by_letters},
        iterate::Sequence,
        lowerer::{FnLowerer, wrap_int},
        object::{Exception, ObjectKind, Site, is_generated},
        promote,
        value::{Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::{BinaryOp, CompareOp, LocalId, Type},
    source::Span,
};

impl FnLowerer<'_> {
    /// `range(stop)`, `range(start, stop[, step])`.
    pub(super) fn range_value(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        if args.positional.is_empty() || args.positional.len() > 3 {
            let message = format!("range takes 1 to 3 arguments, not {}", args.positional.len());
            return self.error(Code::ArgumentCount, span, message);
        }
        let mut values = Vec::new();
        for (position, (value, at)) in args.positional.into_iter().enumerate() {
            // Its parts have the range's type, so weak numbers are converted.
            let value = value.strong();
            let is_zero = match &value {
                Value::Int(known) => *known == 0,
                Value::Bool(known) => !known,
                Value::Scalar(expr, _) => self.is_zero(*expr),
                Value::Complex(..) | Value::Array(_) | Value::Object(..) | Value::Static(_) | Value::Poison => false,
            };
            if is_zero && position == 2 {
                return self.error(Code::NoMatchingOverload, at, "the step of a range must not be zero");
            }
            let value = self.settle(value, at);
            let Some(scalar) = value.ty().scalar() else {
                let message = format!("range takes integers, not {}", value.ty());
                return self.error(Code::NoMatchingOverload, at, message);
            };
            values.push((value, scalar, at));
        }
        let ty = range_type(&values.iter().map(|(_, scalar, _)| *scalar).collect::<Vec<_>>());
        let mut items = Vec::new();
        for (position, (value, _, at)) in values.into_iter().enumerate() {
            // A literal wraps to the range's type: from 2^63 on, it is a negative `int64`.
            items.push(if let Value::Int(known) = value {
                Value::Int(wrap_int(known, ty))
            } else {
                let Some(mut expr) = self.number(&value, ty, at) else { return Value::Poison };
                if position == 2 {
                    expr = self.step(expr, "range() arg 3 must not be zero", at);
                }
                Value::Scalar(expr, ty)
            });
        }
        if items.len() == 1 {
            items.insert(0, Value::Int(0));
        }
        if items.len() == 2 {
            items.push(Value::Int(1));
        }
        Value::Object(ObjectKind::Range(ty), items)
    }

    /// `enumerate(iterable, start=0)`.
    pub(super) fn enumerate_value(&mut self, row: &Intrinsic, mut args: Args, span: Span) -> Value {
        if let Some(index) = args.keywords.iter().position(|(name, ..)| name == "start") {
            let (_, value, at) = args.keywords.remove(index);
            args.positional.push((value, at));
        }
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        let (over, start) = match <[Value; 2]>::try_from(values) {
            Ok([over, start]) => (over, start),
            Err(mut values) => match (values.pop(), values.is_empty()) {
                (Some(over), true) => (over, Value::Int(0)),
                _ => return self.error(Code::ArgumentCount, span, "`enumerate` takes an iterable and a start"),
            },
        };
        if !start.ty().scalar().is_some_and(promote::is_integral) {
            let message = format!("the start of `enumerate` must be an integer, not {}", start.ty());
            return self.error(Code::NoMatchingOverload, span, message);
        }
        self.iterable_object(ObjectKind::Enumerate, vec![over], span).map_or(Value::Poison, |mut items| {
            items.push(self.settle(start, span));
            Value::Object(ObjectKind::Enumerate, items)
        })
    }

    /// `zip(a, b, …)`, `reversed(a)`.
    pub(super) fn side_by_side(&mut self, row: &Intrinsic, kind: ObjectKind, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let given = args.positional.len();
        if kind == ObjectKind::Reversed && given != 1 {
            return self.error(Code::ArgumentCount, span, format!("`reversed` takes 1 argument, not {given}"));
        }
        let values = args.positional.into_iter().map(|(value, _)| value).collect();
        let items = self.iterable_object(kind.clone(), values, span);
        items.map_or(Value::Poison, |items| Value::Object(kind, items))
    }

    fn iterable_object(&mut self, kind: ObjectKind, values: Vec<Value>, span: Span) -> Option<Vec<Value>> {
        let values: Vec<Value> = values.into_iter().map(by_letters).collect();
        let good = values.iter().all(|value| is_generated(value) || self.is_iterable(value, span));
        if kind == ObjectKind::Reversed && values.iter().any(|value| !is_reversible(value)) {
            self.error(Code::NoMatchingOverload, span, "`reversed` takes an array, a tuple or a range");
            return None;
        }
        good.then(|| values.into_iter().map(|value| self.settle(value, span)).collect())
    }

    /// `iter(iterable)`.
    pub(super) fn iterator(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([over]) = self.exactly(row, args, span) else { return Value::Poison };
        if matches!(over, Value::Object(ObjectKind::Iterator(_), _)) || is_generated(&over) {
            return over;
        }
        if !self.is_iterable(&over, span) {
            return Value::Poison;
        }
        if Sequence::of(&over).is_some_and(|over| over.is_mixed(self.typing())) {
            let message = format!("`iter` takes items of one type, not of {}", over.ty());
            let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
            return self.report(diagnostic.help("index the items, or loop over them with `for`"));
        }
        let over = self.settle(over, span);
        let site = Site { start: span.start, items: self.loops.unrolled.clone() };
        let position = self.iterators.position(&site).unwrap_or_else(|| {
            let position = self.b.new_temp(Type::I64);
            self.b.function.locals[position].nonneg = true;
            self.iterators.add(site.clone(), position);
            position
        });
        let first = self.b.i64(0, span);
        self.b.assign(position, first, span);
        Value::Object(ObjectKind::Iterator(site), vec![over])
    }

    /// The item at an iterator's position, which must exist; advances the iterator.
    pub(in crate::frontend) fn next_item(&mut self, over: &Value, position: LocalId, span: Span) -> Value {
        let now = self.b.read(position, span);
        let now = self.b.temp(now, span);
        self.b.function.locals[now].nonneg = true;
        let item = self.item_at(over, Atom::Local(now), span);
        let item = self.settle(item, span);
        let (now, one) = (self.b.read(now, span), self.b.i64(1, span));
        let after = self.b.binary(BinaryOp::Add, now, one, span);
        self.b.assign(position, after, span);
        item
    }

    /// `next(iterator[, default])`.
    pub(super) fn next(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let mut given = args.positional.into_iter();
        let (Some((iterator, _)), default, None) = (given.next(), given.next(), given.next()) else {
            return self.error(Code::ArgumentCount, span, "`next` takes an iterator and a default");
        };
        let iterator = self.not_none(iterator, span);
        if let Some((generator, position)) = self.generated(&iterator) {
            let default = default.map(|(default, _)| self.settle(default, span));
            return match position {
                Some(position) => self.next_generated(generator, position, default, span),
                None => self.first_generated(generator, default, span),
            };
        }
        let Value::Object(ObjectKind::Iterator(site), items) = iterator else {
            let message = format!("`next` takes an iterator, not {}", iterator.ty());
            let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
            return self.report(diagnostic.help("make one: `it = iter(x)`"));
        };
        let (Some(over), Some(position)) = (items.first(), self.iterators.position(&site)) else {
            return Value::Poison;
        };
        let Some(length) = self.length(over, span) else { return Value::Poison };
        let (now, length) = (self.b.read(position, span), self.use_atom(length, span));
        if let Some((default, _)) = default {
            let default = self.settle(default, span);
            let some = self.b.compare(CompareOp::Lt, now, length, span);
            let some = self.b.temp(some, span);
            let some = self.b.read(some, span);
            return self.choose(some, |this| this.next_item(over, position, span), |_| default, span);
        }
        let none = self.b.compare(CompareOp::Ge, now, length, span);
        let exception = Exception { class: "builtins.StopIteration".to_owned(), args: None };
        self.end_thread_if(none, exception, span);
        self.next_item(over, position, span)
    }

    /// The first item of a generator without another consumer.
    fn first_generated(&mut self, generator: Value, default: Option<Value>, span: Span) -> Value {
        let Some(mut source) = self.source(generator, span) else { return Value::Poison };
        match (self.pull(&mut source, span), default) {
            (None, _) => Value::Poison,
            (Some(Some(item)), _) | (Some(None), Some(item)) => item,
            (Some(None), None) => self.error(Code::NoMatchingOverload, span, "this generator yields no item"),
        }
    }

    /// A value for a variable. An iterator belongs to one variable: another execution of the same `iter` call restarts
    /// it.
    pub(in crate::frontend) fn own_iterator(&mut self, name: &str, value: Value, span: Span) -> Option<Value> {
        if is_generated(&value) {
            return self.own_generator(name, value, span);
        }
        let mut inner = vec![&value];
        let mut deep = false;
        while let Some(each) = inner.pop() {
            let Value::Object(kind, items) = each else { continue };
            if matches!(kind, ObjectKind::Generator(_)) && !matches!(value, Value::Object(ObjectKind::Iterator(_), _)) {
                let diagnostic = Diagnostic::error(Code::BadAssignment, span, "each generator is a type of its own");
                self.report(diagnostic.help("make a tuple of its items: `tuple(… for … in …)`"));
                return None;
            }
            if let ObjectKind::Iterator(site) = kind {
                let owner = self.iterators.owner(site, name);
                if deep || owner.is_some_and(|owner| owner != name) {
                    let diagnostic = Diagnostic::error(
                        Code::BadAssignment,
                        span,
                        "an iterator can be assigned to one variable only",
                    );
                    self.report(diagnostic.help("use the first variable, or call `iter` again"));
                    return None;
                }
            }
            deep = true;
            inner.extend(items);
        }
        Some(value)
    }

    /// `np.ndindex(shape)`, `np.ndindex(n, m)`.
    pub(super) fn ndindex(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let mut extents: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        if let [one] = extents.as_slice()
            && let Some(items) = one.as_tuple()
        {
            extents = items.to_vec();
        }
        for extent in &extents {
            if !extent.ty().scalar().is_some_and(Scalar::is_int) {
                let message = format!("`np.ndindex` takes integers or a tuple of them, not {}", extent.ty());
                return self.error(Code::NoMatchingOverload, span, message);
            }
        }
        let extents = extents.into_iter().map(|extent| self.settle(extent, span)).collect();
        Value::Object(ObjectKind::NdIndex, extents)
    }

    /// `np.ndenumerate(a)`, and `np.nditer(a)` or `a.flat`, which yield only the elements.
    pub(super) fn elements_of(&mut self, row: &Intrinsic, kind: ObjectKind, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        if !matches!(value, Value::Array(_)) {
            return self.no_overload(row, &[value.ty()], span);
        }
        Value::Object(kind, vec![self.settle(value, span)])
    }

    /// `literal_unroll(t)`: a loop over it has a body for each item.
    pub(super) fn unrolled(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        match value {
            Value::Object(kind, items) if kind.is_tuple() => Value::Object(ObjectKind::Unrolled, items),
            Value::Poison => Value::Poison,
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)) => {
                let message = format!("`literal_unroll` takes a tuple, not {}", other.ty());
                let diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
                self.report(diagnostic.help("loop over the value without `literal_unroll`"))
            }
        }
    }
}

/// Whether `reversed` accepts the value: as in Python, not for `enumerate` and `zip`.
fn is_reversible(value: &Value) -> bool {
    !matches!(value, Value::Object(ObjectKind::Enumerate | ObjectKind::Zip | ObjectKind::Reversed, _))
}

/// The type of a range's values: Numba's rule. Floats are truncated to integers.
fn range_type(args: &[Scalar]) -> Scalar {
    let narrow = |scalar: &Scalar| match scalar {
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::Bool => Scalar::I32,
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => Scalar::U64,
        Scalar::I64 | Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64 => Scalar::I64,
    };
    let mut types = args.iter().map(narrow);
    let Some(first) = types.next() else { return Scalar::I64 };
    let ty = types.fold(first, |a, b| if a == b { a } else { Scalar::I64 });
    debug_assert!(promote::is_integral(ty));
    ty
}
