//! Sequences that a loop iterates over: arrays, tuples, ranges, and `enumerate`, `zip` and `reversed` of them, by
//! position.
//!
//! Each has a length and an item at a position. A loop over a plain `range` has its own counter (`stmt/for.rs`); all
//! others count positions from zero.

use weft_artifact::Scalar;

use super::{
    expr::{Index, Text},
    lowerer::{FnLowerer, wrap_int},
    object::ObjectKind,
    value::{ArrayValue, Atom, Value},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{BinaryOp, CompareOp, ExprId, LocalId, Type, UnaryOp},
    request::Typing,
    source::Span,
};

/// A value that a loop iterates over.
pub(super) enum Sequence<'v> {
    /// An array's elements, or the views of its rows.
    Array(&'v ArrayValue),
    /// A tuple's items; the flag requests that a loop's body is compiled for each of them.
    Tuple(&'v Value, &'v [Value], bool),
    /// A range: the type of its values, start, stop, step.
    Range(Scalar, &'v Value, &'v Value, &'v Value),
    /// The characters of a string in memory.
    Letters(&'v Value),
    /// The items of another sequence with consecutive numbers, and the first number.
    Enumerate(&'v Value, &'v Value),
    /// The items of several sequences side by side.
    Zip(&'v [Value]),
    /// Tuples of indices below these extents.
    NdIndex(&'v [Value]),
    /// An array's elements in C order; the flag requests their indices, too.
    Elements(&'v ArrayValue, bool),
    /// The items of another sequence in reverse.
    Reversed(&'v Value),
}

/// The number of values of a range.
enum TripCount {
    Known(i128),
    Counted(ExprId),
}

impl<'v> Sequence<'v> {
    /// The sequence of a value; `None` if a loop cannot iterate over it.
    pub(super) fn of(value: &'v Value) -> Option<Self> {
        match value {
            Value::Array(array) => (array.ty.ndim > 0).then_some(Self::Array(array)),
            Value::Object(kind, items) => match (kind, items.as_slice()) {
                (ObjectKind::Unrolled, items) => Some(Self::Tuple(value, items, true)),
                (kind, items) if kind.is_tuple() => Some(Self::Tuple(value, items, false)),
                (ObjectKind::Range(ty), [start, stop, step]) => Some(Self::Range(*ty, start, stop, step)),
                (ObjectKind::Chars, [Value::Array(_)]) => Some(Self::Letters(value)),
                (ObjectKind::Enumerate, [over, first]) => Self::of(over).map(|_| Self::Enumerate(over, first)),
                (ObjectKind::Zip, items) => {
                    items.iter().all(|item| Self::of(item).is_some()).then_some(Self::Zip(items))
                }
                (ObjectKind::NdIndex, extents) => Some(Self::NdIndex(extents)),
                (ObjectKind::NdEnumerate, [Value::Array(array)]) => Some(Self::Elements(array, true)),
                (ObjectKind::Flat, [Value::Array(array)]) => Some(Self::Elements(array, false)),
                (ObjectKind::Reversed, [over]) => Self::of(over).map(|_| Self::Reversed(over)),
                (
                    ObjectKind::Tuple
                    | ObjectKind::Struct(_)
                    | ObjectKind::Enum(_)
                    | ObjectKind::Weak
                    | ObjectKind::Record
                    | ObjectKind::Pointer
                    | ObjectKind::VoidPointer
                    | ObjectKind::Chars
                    | ObjectKind::Time(_)
                    | ObjectKind::Float8(_)
                    | ObjectKind::Slice
                    | ObjectKind::Group(_)
                    | ObjectKind::Matrix(_)
                | ObjectKind::Formatted(_)
                    | ObjectKind::Closure(_)
                    | ObjectKind::NdEnumerate
                    | ObjectKind::Flat
                    | ObjectKind::Swizzled(_)
                    | ObjectKind::Barrier
                    | ObjectKind::MapBox(_)
                    | ObjectKind::CTypes
                    | ObjectKind::Optional
                    | ObjectKind::Vector(_)
                    | ObjectKind::Range(_)
                    | ObjectKind::Enumerate
                    | ObjectKind::Reversed
                    // Iterating consumes its items: `for` and `next` handle it.
                    | ObjectKind::Iterator(_)
                | ObjectKind::Generator(_),
                    _,
                ) => None,
            },
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Static(_)
            | Value::Poison => None,
        }
    }

    /// Whether a tuple in it has items of different types, so that a single body cannot handle all.
    pub(super) fn is_mixed(&self, typing: Typing) -> bool {
        let mixed = |value: &Value| Sequence::of(value).is_some_and(|inner| inner.is_mixed(typing));
        match self {
            Self::Array(_) | Self::Range(..) | Self::Letters(_) | Self::NdIndex(_) | Self::Elements(..) => false,
            Self::Tuple(_, items, unrolled) => {
                let mut types = items.iter().map(|item| item.ty().widened(typing)).filter(|ty| !ty.is_poison());
                *unrolled || types.next().is_some_and(|first| !types.all(|ty| ty == first) || first.parts().is_empty())
            }
            Self::Enumerate(over, _) | Self::Reversed(over) => mixed(over),
            Self::Zip(items) => items.iter().any(mixed),
        }
    }
}

impl FnLowerer<'_> {
    /// Whether a loop can iterate over a value; reports it if not.
    pub(super) fn is_iterable(&mut self, value: &Value, span: Span) -> bool {
        let good = Sequence::of(value).is_some();
        if !good && !value.ty().is_poison() {
            let message = format!("a `for` loop cannot iterate over {}", value.ty());
            let diagnostic = Diagnostic::error(Code::UnsupportedStatement, span, message);
            self.report(diagnostic.help("loop over `range(…)`, an array or a tuple"));
        }
        good
    }

    /// The number of items of a materialized value, as a non-negative extent.
    pub(super) fn length(&mut self, value: &Value, span: Span) -> Option<Atom> {
        match Sequence::of(value)? {
            Sequence::Array(array) => array.shape.first().copied(),
            Sequence::Tuple(_, items, _) => Some(Atom::Int(items.len() as i64)),
            Sequence::Range(ty, start, stop, step) => {
                let length = match self.range_trip_count(ty, [start, stop, step], span)? {
                    TripCount::Known(known) => match i64::try_from(known) {
                        Ok(known) => return Some(Atom::Int(known)),
                        Err(_) => self.b.int(Scalar::U64, known, span),
                    },
                    TripCount::Counted(length) => length,
                };
                // A longer range wraps to a negative length; indices from the end still find their items.
                let length = self.b.convert(length, Type::I64, span);
                Some(self.nonneg_atom(length, span))
            }
            Sequence::Letters(text) => {
                let length = self.text_length(text, span)?;
                let length = self.number(&length, Scalar::I64, span)?;
                Some(self.nonneg_atom(length, span))
            }
            Sequence::Enumerate(over, _) | Sequence::Reversed(over) => self.length(over, span),
            Sequence::NdIndex(extents) => {
                let extents = self.extents(extents, span)?;
                Some(self.product_of(&extents, span))
            }
            Sequence::Elements(array, _) => Some(self.product_of(&array.shape, span)),
            Sequence::Zip(items) => {
                let mut shortest: Option<Atom> = None;
                for item in items {
                    let length = self.length(item, span)?;
                    shortest = Some(match (shortest, length) {
                        (None, length) => length,
                        (Some(Atom::Int(a)), Atom::Int(b)) => Atom::Int(a.min(b)),
                        (Some(before), length) => {
                            let (a, b) = (self.use_atom(before, span), self.use_atom(length, span));
                            let shorter = self.b.binary(BinaryOp::Min, a, b, span);
                            self.nonneg_atom(shorter, span)
                        }
                    });
                }
                Some(shortest.unwrap_or(Atom::Int(0)))
            }
        }
    }

    /// `len(range)`: the largest `int64` if there are more items (Python raises an error).
    pub(super) fn range_len(&mut self, range: &Value, span: Span) -> Value {
        let Some(Sequence::Range(ty, start, stop, step)) = Sequence::of(range) else { return Value::Poison };
        match self.range_trip_count(ty, [start, stop, step], span) {
            None => Value::Poison,
            Some(TripCount::Known(known)) => Value::Int(known.min(i128::from(i64::MAX))),
            Some(TripCount::Counted(mut length)) => {
                if ty.size_bytes() == 8 {
                    let most = self.b.int(Scalar::U64, i128::from(i64::MAX), span);
                    length = self.b.binary(BinaryOp::Min, length, most, span);
                }
                let length = self.b.convert(length, Type::I64, span);
                let length = self.nonneg_atom(length, span);
                Value::Scalar(self.use_atom(length, span), Scalar::I64)
            }
        }
    }

    /// The trip count of a range, as an unsigned integer of its size.
    fn range_trip_count(&mut self, ty: Scalar, [start, stop, step]: [&Value; 3], span: Span) -> Option<TripCount> {
        if let (Value::Int(start), Value::Int(stop), Value::Int(step)) = (start, stop, step)
            && *step != 0
        {
            let distance = if *step > 0 { stop - start } else { start - stop };
            let trip_count = distance.max(0).div_euclid(step.abs()) + i128::from(distance.max(0) % step.abs() != 0);
            return Some(TripCount::Known(trip_count));
        }
        let mut part = |value: &Value| {
            let value = self.reread(value, span);
            let expr = self.number(&value, ty, span)?;
            Some(self.b.temp(expr, span))
        };
        let (first, last, by) = (part(start)?, part(stop)?, part(step)?);
        // Distances are unsigned: they fit even if signed differences do not.
        let word = if ty.size_bytes() == 4 { Scalar::U32 } else { Scalar::U64 };
        let as_word = |this: &mut Self, local: LocalId| {
            let read = this.b.read(local, span);
            this.b.convert(read, Type::Scalar(word), span)
        };
        let trip_count = |this: &mut Self, up: bool| {
            let (a, b) = if up { (first, last) } else { (last, first) };
            let (low, high) = (this.b.read(a, span), this.b.read(b, span));
            let some = this.b.compare(CompareOp::Lt, low, high, span);
            let (low, high) = (as_word(this, a), as_word(this, b));
            let distance = this.b.binary(BinaryOp::Sub, high, low, span);
            let size = as_word(this, by);
            let size = if up { size } else { this.b.unary(UnaryOp::Neg, size, span) };
            let size = this.b.temp(size, span);
            // (distance - 1) // size + 1: adding the step first could overflow.
            let one = this.b.int(word, 1, span);
            let before = this.b.binary(BinaryOp::Sub, distance, one, span);
            let size = this.b.read(size, span);
            let whole = this.b.binary(BinaryOp::FloorDiv, before, size, span);
            let one = this.b.int(word, 1, span);
            let count = this.b.binary(BinaryOp::Add, whole, one, span);
            let none = this.b.int(word, 0, span);
            this.b.select(some, count, none, span)
        };
        let known = if let Value::Int(known) = step { Some(wrap_int(*known, ty)) } else { None };
        let length = match known {
            Some(known) => trip_count(self, known > 0),
            None if ty.is_unsigned_int() => {
                let count = trip_count(self, true);
                self.unless_zero(ty, by, count, word, span)
            }
            None => {
                let (up, down) = (trip_count(self, true), trip_count(self, false));
                let (read, zero) = (self.b.read(by, span), self.b.int(ty, 0, span));
                let positive = self.b.compare(CompareOp::Gt, read, zero, span);
                let count = self.b.select(positive, up, down, span);
                self.unless_zero(ty, by, count, word, span)
            }
        };
        Some(TripCount::Counted(length))
    }

    /// `count`, or 0 if the step is zero.
    fn unless_zero(&mut self, ty: Scalar, step: LocalId, count: ExprId, word: Scalar, span: Span) -> ExprId {
        let (read, zero) = (self.b.read(step, span), self.b.int(ty, 0, span));
        let zero = self.b.compare(CompareOp::Eq, read, zero, span);
        let none = self.b.int(word, 0, span);
        self.b.select(zero, none, count, span)
    }

    /// Non-negative extents, from materialized integers.
    fn extents(&mut self, values: &[Value], span: Span) -> Option<Vec<Atom>> {
        let mut out = Vec::new();
        for value in values {
            if let Value::Int(known) = value {
                out.push(Atom::Int(i64::try_from(*known).ok()?.max(0)));
                continue;
            }
            let value = self.reread(value, span);
            let extent = self.number(&value, Scalar::I64, span)?;
            let zero = self.b.i64(0, span);
            let extent = self.b.binary(BinaryOp::Max, extent, zero, span);
            out.push(self.nonneg_atom(extent, span));
        }
        Some(out)
    }

    /// The indices of the element at a linear position in C order.
    pub(super) fn indices_at(&mut self, extents: &[Atom], position: Atom, span: Span) -> Vec<Atom> {
        let mut rest = position;
        let mut out = Vec::new();
        for (dim, extent) in extents.iter().enumerate().rev() {
            if dim == 0 {
                out.push(rest);
                break;
            }
            let (now, by) = (self.use_atom(rest, span), self.use_atom(*extent, span));
            let index = self.b.binary(BinaryOp::ModNonneg, now, by, span);
            out.push(self.nonneg_atom(index, span));
            let (now, by) = (self.use_atom(rest, span), self.use_atom(*extent, span));
            let outer = self.b.binary(BinaryOp::DivNonneg, now, by, span);
            rest = self.nonneg_atom(outer, span);
        }
        out.reverse();
        out
    }

    /// The item of a materialized value at a position that is at least 0 and less than its length.
    pub(super) fn item_at(&mut self, value: &Value, position: Atom, span: Span) -> Value {
        match Sequence::of(value) {
            None => Value::Poison,
            Some(Sequence::Array(array)) => {
                let index = Index::at(self.use_atom(position, span));
                self.subscript(Value::Array(array.clone()), &[index], span)
            }
            Some(Sequence::Tuple(tuple, ..)) => {
                // A tuple may have a large number of items.
                if let (Atom::Int(known), Some(items)) = (position, tuple.as_tuple())
                    && let Some(item) = usize::try_from(known).ok().and_then(|known| items.get(known))
                {
                    return self.reread(item, span);
                }
                let tuple = self.reread(tuple, span);
                let index = if let Atom::Int(known) = position {
                    Index::At { expr: self.b.i64(known, span), wraps: false, known: Some(known) }
                } else {
                    Index::at(self.use_atom(position, span))
                };
                self.subscript(tuple, &[index], span)
            }
            Some(Sequence::Range(Scalar::I64, Value::Int(start), _, Value::Int(step)))
                if let Atom::Int(at) = position =>
            {
                // The value is between start and stop, so it fits the type.
                Value::Int(start + step * i128::from(at))
            }
            Some(Sequence::Range(ty, start, _, step)) => {
                if let (Value::Int(start), Value::Int(step), Atom::Int(at)) = (start, step, position)
                    && ty == Scalar::I64
                {
                    return Value::Int(wrap_int(start + step * i128::from(at), ty));
                }
                let (start, step) = (self.reread(start, span), self.reread(step, span));
                let parts = self.number(&start, ty, span).zip(self.number(&step, ty, span));
                let Some((start, step)) = parts else { return Value::Poison };
                let at = self.use_atom(position, span);
                let at = self.b.convert(at, Type::Scalar(ty), span);
                let past = self.b.binary(BinaryOp::Mul, at, step, span);
                let item = self.b.binary(BinaryOp::Add, start, past, span);
                self.python(Value::Scalar(item, ty), span)
            }
            Some(Sequence::Letters(value)) => {
                let Some(text) = Text::of(value) else { return Value::Poison };
                let at = self.use_atom(position, span);
                self.letter(&text, at, span)
            }
            Some(Sequence::Enumerate(over, first)) => {
                if let (Value::Int(first), Atom::Int(at)) = (first, position) {
                    let number = Value::Int(wrap_int(first + i128::from(at), Scalar::I64));
                    return Value::tuple(vec![number, self.item_at(over, position, span)]);
                }
                let first = self.reread(first, span);
                let Some(first) = self.number(&first, Scalar::I64, span) else { return Value::Poison };
                let at = self.use_atom(position, span);
                let number = self.b.binary(BinaryOp::Add, first, at, span);
                let number = self.python(Value::Scalar(number, Scalar::I64), span);
                let number = self.settle(number, span);
                let item = self.item_at(over, position, span);
                Value::tuple(vec![number, item])
            }
            Some(Sequence::NdIndex(extents)) => {
                let Some(extents) = self.extents(extents, span) else { return Value::Poison };
                let indices = self.indices_at(&extents, position, span);
                Value::tuple(self.indices_of(indices, span))
            }
            Some(Sequence::Elements(array, numbered)) => {
                let indices = self.indices_at(&array.shape, position, span);
                let each = indices.iter().map(|index| Index::at(self.use_atom(*index, span))).collect::<Vec<_>>();
                let element = self.subscript(Value::Array(array.clone()), &each, span);
                if !numbered {
                    return element;
                }
                let element = self.settle(element, span);
                let indices = Value::tuple(self.indices_of(indices, span));
                Value::tuple(vec![indices, element])
            }
            Some(Sequence::Zip(items)) => {
                let each = items.iter().map(|item| {
                    let item = self.item_at(item, position, span);
                    self.settle(item, span)
                });
                Value::tuple(each.collect())
            }
            Some(Sequence::Reversed(over)) => {
                let Some(length) = self.length(over, span) else { return Value::Poison };
                if let (Atom::Int(length), Atom::Int(at)) = (length, position) {
                    return self.item_at(over, Atom::Int(length - 1 - at), span);
                }
                let (length, one) = (self.use_atom(length, span), self.b.i64(1, span));
                let last = self.b.binary(BinaryOp::Sub, length, one, span);
                let at = self.use_atom(position, span);
                let at = self.b.binary(BinaryOp::Sub, last, at, span);
                let at = self.nonneg_atom(at, span);
                self.item_at(over, at, span)
            }
        }
    }
    /// Indices as numbers.
    fn indices_of(&mut self, indices: Vec<Atom>, span: Span) -> Vec<Value> {
        let mut number = |index| {
            let index = self.use_atom(index, span);
            self.python(Value::Scalar(index, Scalar::I64), span)
        };
        indices.into_iter().map(&mut number).collect()
    }
}
