//! Strings: `str` and `bytes` that are compile-time constants, and characters in arrays.
//!
//! The compiler evaluates operations on constant strings. An element of an array of strings is a reference to its
//! characters, with trailing zeros, which are not part of the string; a variable gets a copy. At a join of both kinds,
//! the constant becomes a constant array.

use std::sync::Arc;

use weft_artifact::{Chars, Compound, DType, Layout, Scalar};

use super::{index::Index, subscript::in_slice};
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        lowerer::FnLowerer,
        object::{ObjectKind, Static},
        prelude,
        ty::{ArrayTy, Ty},
        value::{ArrayValue, Atom, Value},
    },
    ir::{CompareOp, ExprId, ExprKind, Space},
    request::CapturedArray,
    source::Span,
    syntax::ast::{BinOp, CmpOp},
};

/// A string.
pub(in crate::frontend) enum Text {
    /// A constant: its characters, and whether it is a `str`.
    Known(Vec<u32>, bool),
    /// A string in memory.
    Buffer(ArrayValue, Chars),
}

impl Text {
    /// The string of a value.
    pub(in crate::frontend) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Static(Static::Str(text)) => Some(Self::Known(text.chars().map(u32::from).collect(), true)),
            Value::Static(Static::Bytes(text)) => {
                Some(Self::Known(text.iter().copied().map(u32::from).collect(), false))
            }
            Value::Object(ObjectKind::Chars, items) => match items.as_slice() {
                [Value::Array(place)] => Some(Self::Buffer(place.clone(), place.ty.dtype.chars()?)),
                _ => None,
            },
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => None,
        }
    }

    /// Whether it is a `str`, as opposed to `bytes`.
    pub(in crate::frontend) fn is_wide(&self) -> bool {
        match self {
            Self::Known(_, wide) => *wide,
            Self::Buffer(_, chars) => chars.is_wide(),
        }
    }
}

/// A constant string as a value.
fn known(letters: &[u32], wide: bool) -> Value {
    Value::Static(if wide {
        Static::Str(letters.iter().filter_map(|letter| char::from_u32(*letter)).collect())
    } else {
        Static::Bytes(letters.iter().map(|letter| *letter as u8).collect())
    })
}

/// A constant string as a tuple of its characters, or of the numbers of bytes; any other value unchanged.
pub(in crate::frontend) fn by_letters(value: Value) -> Value {
    match Text::of(&value) {
        Some(Text::Known(letters, true)) => {
            Value::tuple(letters.iter().map(|letter| known(&[*letter], true)).collect())
        }
        Some(Text::Known(letters, false)) => {
            Value::tuple(letters.into_iter().map(|letter| Value::Int(letter.into())).collect())
        }
        Some(Text::Buffer(..)) | None => value,
    }
}

/// The maximum length of a string that is computed at compile time.
const MOST_LETTERS: usize = 1 << 20;

impl FnLowerer<'_> {
    /// `a + b`, `a * n` and `n * a` of constant strings; `None` for anything else.
    pub(super) fn text_binary(&mut self, op: BinOp, left: &Value, right: &Value, span: Span) -> Option<Value> {
        let (letters, wide, length) = match (op, Text::of(left), Text::of(right)) {
            (BinOp::Add, Some(Text::Known(a, wide)), Some(Text::Known(b, other))) if wide == other => {
                let length = a.len() + b.len();
                ([a, b].concat(), wide, length)
            }
            (BinOp::Mul, Some(Text::Known(text, wide)), None) => {
                let times = times(right)?;
                let length = text.len().saturating_mul(times);
                (if length > MOST_LETTERS { Vec::new() } else { text.repeat(times) }, wide, length)
            }
            (BinOp::Mul, None, Some(Text::Known(..))) => return self.text_binary(op, right, left, span),
            _ => return None,
        };
        if length > MOST_LETTERS {
            let message =
                format!("a string of {length} characters: the limit for a compile-time string is {MOST_LETTERS}");
            return Some(self.error(Code::UnsupportedValue, span, message));
        }
        Some(known(&letters, wide))
    }

    /// A comparison with a string in memory; `None` for other operands.
    pub(super) fn text_compare(&mut self, op: CmpOp, left: &Value, right: &Value, span: Span) -> Option<Value> {
        let (a, b) = (Text::of(left)?, Text::of(right)?);
        let compare = match op {
            CmpOp::Eq | CmpOp::Is => CompareOp::Eq,
            CmpOp::NotEq | CmpOp::IsNot => CompareOp::Ne,
            CmpOp::Lt => CompareOp::Lt,
            CmpOp::LtE => CompareOp::Le,
            CmpOp::Gt => CompareOp::Gt,
            CmpOp::GtE => CompareOp::Ge,
            CmpOp::In | CmpOp::NotIn => return None,
        };
        if let (Text::Known(a, wide), Text::Known(b, other)) = (&a, &b) {
            let order = a.cmp(b);
            return match (compare, wide == other) {
                (CompareOp::Eq, same) => Some(Value::Bool(same && order.is_eq())),
                (CompareOp::Ne, same) => Some(Value::Bool(!same || order.is_ne())),
                (_, false) => None,
                (CompareOp::Lt, true) => Some(Value::Bool(order.is_lt())),
                (CompareOp::Le, true) => Some(Value::Bool(order.is_le())),
                (CompareOp::Gt, true) => Some(Value::Bool(order.is_gt())),
                (CompareOp::Ge, true) => Some(Value::Bool(order.is_ge())),
            };
        }
        // A string in memory never ends with a zero.
        let never =
            [&a, &b].into_iter().any(|text| matches!(text, Text::Known(letters, _) if letters.last() == Some(&0)));
        if a.is_wide() != b.is_wide() || never {
            return match compare {
                CompareOp::Eq => Some(Value::Bool(false)),
                CompareOp::Ne => Some(Value::Bool(true)),
                CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => None,
            };
        }
        let (a, b) = (self.letters(&a, span), self.letters(&b, span));
        let order = self.string_call("text_order", vec![a, b], span);
        let Some(order) = self.number(&order, Scalar::I64, span) else { return Some(Value::Poison) };
        let zero = self.b.i64(0, span);
        Some(Value::Scalar(self.b.compare(compare, order, zero, span), Scalar::Bool))
    }

    /// `item in text`; `None` if `text` is not a string.
    pub(super) fn text_contains(&mut self, item: &Value, text: &Value, span: Span) -> Option<Value> {
        let within = Text::of(text)?;
        let name = match Text::of(item) {
            Some(part) if part.is_wide() != within.is_wide() => return None,
            Some(part) => {
                if let (Text::Known(part, _), Text::Known(within, _)) = (&part, &within) {
                    let found = part.is_empty() || within.windows(part.len()).any(|window| window == part.as_slice());
                    return Some(Value::Bool(found));
                }
                let (within, part) = (self.letters(&within, span), self.letters(&part, span));
                return Some(self.string_call("text_has", vec![within, part], span));
            }
            // An int is looked up as a byte.
            None if within.is_wide() || item.ty().scalar().is_none() => return None,
            None => "text_holds",
        };
        let within = self.letters(&within, span);
        Some(self.string_call(name, vec![within, item.clone()], span))
    }

    /// The length of a string; `None` for other values.
    pub(in crate::frontend) fn text_length(&mut self, value: &Value, span: Span) -> Option<Value> {
        Some(match Text::of(value)? {
            Text::Known(letters, _) => Value::Int(letters.len() as i128),
            place @ Text::Buffer(..) => {
                let letters = self.letters(&place, span);
                self.string_call("text_len", vec![letters], span)
            }
        })
    }

    /// `text[index]` and slices; `None` if the value is no string.
    pub(super) fn text_item(&mut self, value: &Value, indices: &[Index], span: Span) -> Option<Value> {
        let text = Text::of(value)?;
        let [index] = indices else {
            return Some(self.error(Code::BadIndex, span, "a string takes one index"));
        };
        Some(match (text, index) {
            (Text::Known(letters, wide), Index::At { known: Some(at), .. }) => {
                let len = letters.len() as i64;
                let place = if *at < 0 { at + len } else { *at };
                match usize::try_from(place).ok().and_then(|place| letters.get(place)) {
                    Some(letter) if wide => known(&[*letter], true),
                    Some(byte) => Value::Int((*byte).into()),
                    None => {
                        let message = format!("index {at} is out of range for a string of {len} characters");
                        self.error(Code::BadIndex, span, message)
                    }
                }
            }
            (Text::Known(letters, wide), Index::Slice { lower, upper, step }) => {
                let bound =
                    |bound: &Option<super::index::Bound>| bound.map_or(Some(None), |bound| bound.known.map(Some));
                let (Some(lower), Some(upper), Some(step)) = (bound(lower), bound(upper), bound(step)) else {
                    return Some(self.error(
                        Code::NotConstant,
                        span,
                        "the bounds of a slice of a string must be compile-time constants",
                    ));
                };
                let step = i128::from(step.unwrap_or(1));
                let wide_bound = |at: Option<i64>| at.map(i128::from);
                let (mut at, end) = in_slice(letters.len() as i128, wide_bound(lower), wide_bound(upper), step);
                let mut chosen = Vec::new();
                while if step > 0 { at < end } else { at > end } {
                    chosen.extend(letters.get(at as usize).copied());
                    at += step;
                }
                known(&chosen, wide)
            }
            (text @ (Text::Known(..) | Text::Buffer(..)), index @ Index::At { .. }) => {
                let wraps = matches!(index, Index::At { wraps: true, .. });
                // A negative index counts from the last character, not from the zeros after it.
                let length = if wraps { self.text_length(value, span) } else { Some(Value::Int(0)) };
                let length = length.map(|length| self.settle(length, span));
                let Some(length) = length.and_then(|length| self.number(&length, Scalar::I64, span)) else {
                    return Some(Value::Poison);
                };
                let length = self.atom(length, span);
                let at = self.wrapped(index, length, span);
                self.letter(&text, at, span)
            }
            (Text::Buffer(place, chars), Index::Slice { lower, upper, step }) => {
                let bound = |bound: &Option<super::index::Bound>, otherwise: i64| {
                    bound.map_or(Some(otherwise), |bound| bound.known.filter(|at| *at >= 0))
                };
                let most = i64::from(chars.max_len());
                let ends = (bound(lower, 0), bound(upper, most), bound(step, 1));
                let (Some(lower), Some(upper), Some(1)) = ends else {
                    let message = "a slice of a string in an array takes constant bounds that are not negative, and \
                        no step";
                    let diagnostic = Diagnostic::error(Code::NotConstant, span, message);
                    return Some(self.report(diagnostic.help("loop over its characters: `for letter in text`")));
                };
                let (lower, upper) = (lower.min(most), upper.min(most));
                let part = Chars::new(chars.is_wide(), (upper - lower).max(0) as u32);
                let at = self.b.i64(lower, span);
                self.part_of_text(&place, part, at, span)
            }
            (_, Index::Ellipsis | Index::NewAxis | Index::Name(_)) => {
                self.error(Code::BadIndex, span, "the index of a string must be an integer or a slice")
            }
        })
    }

    /// The character at a position from 0 on: a number for `bytes`, a string for `str`.
    pub(in crate::frontend) fn letter(&mut self, text: &Text, at: ExprId, span: Span) -> Value {
        let Value::Array(letters) = self.letters(text, span) else { return Value::Poison };
        if !text.is_wide() {
            let byte = self.subscript(Value::Array(letters), &[Index::at(at)], span);
            let byte = self.number(&byte, Scalar::I64, span);
            return byte.map_or(Value::Poison, |byte| Value::Scalar(byte, Scalar::I64));
        }
        self.part_of_text(&letters, Chars::new(true, 1), at, span)
    }

    /// A substring of a string in memory.
    fn part_of_text(&mut self, of: &ArrayValue, part: Chars, at: ExprId, span: Span) -> Value {
        let Some(dtype) = DType::intern(Compound::Chars(part)) else {
            return self.error(Code::UnsupportedValue, span, "the kernel uses too many types");
        };
        let base = self.use_atom(of.data, span);
        let ty = ArrayTy { dtype, ndim: 0, layout: Layout::C, ..of.ty };
        let data = self.b.expr(ExprKind::Offset { base, index: at, scale: 1 }, ty.pointer(), span);
        let data = Atom::Local(self.b.temp(data, span));
        Value::Object(
            ObjectKind::Chars,
            vec![Value::Array(ArrayValue { ty, data, shape: Vec::new(), strides: Vec::new() })],
        )
    }

    /// `ord(letter)`.
    pub(in crate::frontend) fn code_of(&mut self, text: &Text, span: Span) -> Option<Value> {
        match text {
            Text::Known(letters, _) => match letters.as_slice() {
                [letter] => Some(Value::Int((*letter).into())),
                _ => None,
            },
            Text::Buffer(_, chars) if chars.max_len() == 1 => {
                let letters = self.letters(text, span);
                let zero = self.b.i64(0, span);
                let code = self.subscript(letters, &[Index::at(zero)], span);
                self.number(&code, Scalar::I64, span).map(|code| Value::Scalar(code, Scalar::I64))
            }
            Text::Buffer(..) => None,
        }
    }

    /// The characters as an array of numbers, with the trailing zeros.
    pub(in crate::frontend) fn letters(&mut self, text: &Text, span: Span) -> Value {
        match text {
            Text::Buffer(place, chars) => {
                let ty = ArrayTy { dtype: chars.scalar().into(), ndim: 1, layout: Layout::C, ..place.ty };
                let shape = vec![Atom::Int(chars.max_len().into())];
                Value::Array(ArrayValue { ty, data: place.data, shape, strides: Vec::new() })
            }
            Text::Known(letters, wide) => {
                // An array has at least one element; one more zero does not change the string.
                let letters: Vec<u32> = if letters.is_empty() { vec![0] } else { letters.clone() };
                let chars = Chars::new(*wide, letters.len() as u32);
                let each = letters.iter().map(|letter| letter.to_le_bytes());
                let bytes: Vec<u8> = match chars.scalar().size_bytes() {
                    4 => each.flatten().collect(),
                    _ => each.map(|[byte, ..]| byte).collect(),
                };
                let same = |(known, id): &&(Arc<[u8]>, _)| {
                    **known == *bytes && self.cx.module.constants[*id].elem == chars.scalar()
                };
                let bytes =
                    self.cx.constants.iter().find(same).map_or_else(|| bytes.into(), |(known, _)| Arc::clone(known));
                let shape = vec![letters.len() as u64];
                let array = CapturedArray { dtype: chars.scalar().into(), shape, layout: Layout::C, bytes };
                self.constant_array(&array, "text", span)
            }
        }
    }

    /// Calls a function of the prelude with strings.
    pub(in crate::frontend) fn string_call(&mut self, name: &str, args: Vec<Value>, span: Span) -> Value {
        match prelude::function(name).map(|function| self.call_own(&function, args, span)) {
            Some(Ok(value)) => value,
            Some(Err(_)) | None => {
                self.cx.fault(self.at(span), &format!("`{name}` of the prelude cannot be called"));
                Value::Poison
            }
        }
    }

    /// Stores a string in a buffer: characters that do not fit are cut off, the rest of the buffer is filled with
    /// zeros.
    pub(in crate::frontend) fn store_text(&mut self, to: &ArrayValue, value: &Value, span: Span) {
        let (Some(text), Some(chars)) = (Text::of(value), to.ty.dtype.chars()) else {
            return self.cannot_store(value, to.ty.dtype, span);
        };
        let text = match text {
            Text::Buffer(from, _) if from.ty.dtype == to.ty.dtype => return self.copy_bytes(&from, to, span),
            // As in NumPy: a `str` of ASCII characters can be stored as bytes.
            Text::Known(letters, wide) if wide == chars.is_wide() || letters.iter().all(|letter| *letter < 128) => {
                let kept = letters.into_iter().take(chars.max_len() as usize).collect();
                Text::Known(kept, chars.is_wide())
            }
            other @ (Text::Known(..) | Text::Buffer(..)) => other,
        };
        if text.is_wide() != chars.is_wide() {
            return self.cannot_store(value, to.ty.dtype, span);
        }
        let (to, from) = (self.letters(&Text::Buffer(to.clone(), chars), span), self.letters(&text, span));
        self.string_call("text_put", vec![to, from], span);
    }

    /// The address of a buffer for a string, which is empty.
    pub(in crate::frontend) fn empty_text(&mut self, place: ArrayTy, span: Span) -> ExprId {
        let own = self.local_array(place.dtype, Vec::new(), "text", span);
        let (Value::Array(own), Some(chars)) = (own, place.dtype.chars()) else {
            return self.b.zero(place.pointer(), span);
        };
        let Value::Array(letters) = self.letters(&Text::Buffer(own.clone(), chars), span) else {
            return self.b.zero(place.pointer(), span);
        };
        self.repeat(Atom::Int(chars.max_len().into()), span, |this, counter| {
            let index = Index::at(this.b.read(counter, span));
            this.store_subscript(Value::Array(letters), &[index], Value::Int(0), span);
        });
        let own = self.generalize(own, place, span);
        self.use_atom(own.data, span)
    }

    /// Converts a string to another type: in place, or copied to local memory of the type's size.
    pub(in crate::frontend) fn text_as(&mut self, value: &Value, to: &Ty, span: Span) -> Option<Value> {
        let Ty::Object(_, items) = to else { return None };
        let [Ty::Array(place)] = items.as_slice() else { return None };
        if let Some(Text::Buffer(here, _)) = Text::of(value)
            && let Some(here) = self.try_convert(Value::Array(here), &Ty::Array(*place), span)
        {
            return Some(Value::Object(ObjectKind::Chars, vec![here]));
        }
        let (room, text) = (to.chars()?, value.ty().chars()?);
        if room.is_wide() != text.is_wide()
            || text.max_len() > room.max_len()
            || !matches!(place.space, Space::Local | Space::Generic)
        {
            return None;
        }
        let Value::Array(own) = self.local_array(place.dtype, Vec::new(), "text", span) else { return None };
        self.store_text(&own, value, span);
        Some(Value::Object(ObjectKind::Chars, vec![Value::Array(self.generalize(own, *place, span))]))
    }

    /// Copies the strings of a value, because the array that they are in may change.
    pub(in crate::frontend) fn with_own_strings(&mut self, value: Value, span: Span) -> Value {
        match Text::of(&value) {
            Some(Text::Buffer(place, _)) => {
                let Value::Array(own) = self.local_array(place.ty.dtype, Vec::new(), "text", span) else {
                    return Value::Poison;
                };
                self.copy_bytes(&place, &own, span);
                Value::Object(ObjectKind::Chars, vec![Value::Array(own)])
            }
            Some(Text::Known(..)) => value,
            None => match value {
                Value::Object(kind, items) if items.iter().any(holds_strings) => {
                    let items = items.into_iter().map(|item| self.with_own_strings(item, span)).collect();
                    Value::Object(kind, items)
                }
                other @ (Value::Scalar(..)
                | Value::Complex(..)
                | Value::Int(_)
                | Value::Bool(_)
                | Value::Array(_)
                | Value::Object(..)
                | Value::Static(_)
                | Value::Poison) => other,
            },
        }
    }
}

/// The number of repetitions, if it is a constant.
pub(super) fn times(value: &Value) -> Option<usize> {
    match value {
        Value::Int(times) => Some(usize::try_from((*times).max(0)).unwrap_or(usize::MAX)),
        Value::Bool(once) => Some(usize::from(*once)),
        Value::Scalar(..)
        | Value::Complex(..)
        | Value::Array(_)
        | Value::Object(..)
        | Value::Static(_)
        | Value::Poison => None,
    }
}

/// Whether a value contains a string in memory.
fn holds_strings(value: &Value) -> bool {
    match value {
        Value::Object(ObjectKind::Chars, _) => true,
        Value::Object(_, items) => items.iter().any(holds_strings),
        Value::Scalar(..)
        | Value::Complex(..)
        | Value::Int(_)
        | Value::Bool(_)
        | Value::Array(_)
        | Value::Static(_)
        | Value::Poison => false,
    }
}
