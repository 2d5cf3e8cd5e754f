//! `print`, and string formatting for it: `str.format`, `%`, and formatted string literals, which the parser converts
//! to calls of `format`.
//!
//! A formatted string is an object: the values, and the literal parts between them. It can be stored and passed; only
//! `print` formats it, by C's `printf` (`line.rs`). One whose values are all constant is a constant string.

mod line;
pub(super) mod spec;
mod template;

use std::{collections::BTreeSet, sync::Arc};

use self::{
    line::Line,
    template::{Conversion, Field, Name, Piece},
};
use super::{
    expr::Args,
    lowerer::FnLowerer,
    object::{ObjectKind, Static},
    value::Value,
};
use crate::{
    diagnostic::{Code, Diagnostic},
    intrinsics::Intrinsic,
    ir::StmtKind as Ir,
    source::Span,
};

use self::spec::{FormatPart, Spec};

/// A part of the printed output.
enum PrintPart {
    Text(String),
    Value(Value, Spec),
}

/// The string for a constant value, if it is simple to format.
fn known_text(value: &Value) -> Option<String> {
    match value {
        Value::Int(value) => Some(value.to_string()),
        Value::Bool(value) => Some(if *value { "True" } else { "False" }.to_owned()),
        Value::Static(Static::None) => Some("None".to_owned()),
        Value::Static(Static::Str(text)) => Some(text.clone()),
        Value::Static(_)
        | Value::Scalar(..)
        | Value::Complex(..)
        | Value::Array(_)
        | Value::Object(..)
        | Value::Poison => None,
    }
}

impl FnLowerer<'_> {
    pub(super) fn print_call(&mut self, args: Args, span: Span) -> Value {
        let (mut sep, mut end) = (" ".to_owned(), "\n".to_owned());
        for (name, value, at) in args.keywords {
            let text = match (name.as_str(), value) {
                ("sep" | "end" | "file", Value::Static(Static::None)) | ("flush", Value::Bool(_)) => continue,
                ("sep" | "end", Value::Static(Static::Str(text))) => text,
                ("sep" | "end", _) => {
                    let message = format!("`{name}` of `print` must be a compile-time string");
                    return self.error(Code::NotConstant, at, message);
                }
                ("file" | "flush", _) => {
                    let message = format!("`print` in a kernel has no `{name}`: it prints to the standard output");
                    return self.error(Code::ArgumentCount, at, message);
                }
                _ => return self.error(Code::ArgumentCount, at, format!("`print` has no parameter `{name}`")),
            };
            *(if name == "sep" { &mut sep } else { &mut end }) = text;
        }
        let mut parts = Vec::new();
        for (index, (value, _)) in args.positional.into_iter().enumerate() {
            if index > 0 {
                parts.push(PrintPart::Text(sep.clone()));
            }
            parts.push(PrintPart::Value(value, Spec::PLAIN));
        }
        parts.push(PrintPart::Text(end));
        let parts = self.flat(parts, span);
        self.print_parts(parts, span);
        Value::NONE
    }

    /// The parts, with nested formatted strings flattened.
    fn flat(&mut self, parts: Vec<PrintPart>, span: Span) -> Vec<PrintPart> {
        let mut all = Vec::new();
        for part in parts {
            match part {
                PrintPart::Value(Value::Object(ObjectKind::Formatted(slots), items), spec) => {
                    if !spec.is_plain() {
                        self.error(Code::BadOperand, span, "a formatted string cannot be formatted again");
                    }
                    let mut items = items.into_iter();
                    let inner = slots.iter().filter_map(|slot| match slot {
                        FormatPart::Text(text) => Some(PrintPart::Text(text.clone())),
                        FormatPart::Value(spec) => items.next().map(|value| PrintPart::Value(value, spec.clone())),
                    });
                    let inner = inner.collect();
                    all.extend(self.flat(inner, span));
                }
                other @ (PrintPart::Text(_) | PrintPart::Value(..)) => all.push(other),
            }
        }
        all
    }

    /// Prints parts. If a value is an optional, each case has its own call.
    fn print_parts(&mut self, mut parts: Vec<PrintPart>, span: Span) {
        let may_be_none =
            |part: &PrintPart| matches!(part, PrintPart::Value(Value::Object(ObjectKind::Optional, _), _));
        let Some(at) = parts.iter().position(may_be_none) else { return self.print_line(parts, span) };
        // Each value is evaluated once, before the branch.
        for part in &mut parts {
            if let PrintPart::Value(value, _) = part {
                let now = std::mem::replace(value, Value::Poison);
                *value = self.settle(now, span);
            }
        }
        let Some(PrintPart::Value(Value::Object(_, items), _)) = parts.get(at) else { return };
        let [given, inner] = items.as_slice() else { return };
        let (given, inner) = (given.clone(), inner.clone());
        let Some(cond) = self.number(&given, weft_artifact::Scalar::Bool, span) else { return };
        let mut ways = Vec::new();
        for value in [inner, Value::NONE] {
            let way = parts.iter().enumerate().map(|(index, part)| match part {
                PrintPart::Text(text) => PrintPart::Text(text.clone()),
                PrintPart::Value(_, spec) if index == at => PrintPart::Value(self.reread(&value, span), spec.clone()),
                PrintPart::Value(other, spec) => PrintPart::Value(self.reread(other, span), spec.clone()),
            });
            let way = way.collect();
            self.b.open();
            self.print_parts(way, span);
            ways.push(self.b.close());
        }
        let Ok([then, otherwise]) = <[_; 2]>::try_from(ways) else { return };
        self.stmt(Ir::If { cond, then, otherwise }, span);
    }

    fn print_line(&mut self, parts: Vec<PrintPart>, span: Span) {
        let mut line = Line::default();
        for part in parts {
            match part {
                PrintPart::Text(text) => line.text(&text),
                PrintPart::Value(value, spec) => self.put_value(&mut line, value, &spec, span),
            }
        }
        self.print_op(line, span);
    }

    /// `text.format(…)`.
    pub(super) fn format_method(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Args { positional, keywords } = args;
        let mut positional = positional.into_iter().map(|(value, _)| value);
        let Some(Value::Static(Static::Str(text))) = positional.next() else {
            return self.no_overload(row, &[], span);
        };
        let args: Vec<Value> = positional.collect();
        let keywords: Vec<(String, Value)> = keywords.into_iter().map(|(name, value, _)| (name, value)).collect();
        let pieces = match template::pieces(&text) {
            Ok(pieces) => pieces,
            Err(message) => return self.error(Code::BadOperand, span, message),
        };
        let mut given = FormatArgs { args, keywords, read: BTreeSet::new() };
        let mut parts = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => parts.push(PrintPart::Text(text)),
                Piece::Field(field) => match self.field_part(&mut given, &field, span) {
                    Ok(part) => parts.push(part),
                    Err(message) => return self.error(Code::BadOperand, span, message),
                },
            }
        }
        self.formatted(parts, span)
    }

    fn field_part(&mut self, given: &mut FormatArgs, field: &Field, span: Span) -> Result<PrintPart, String> {
        let value = self.argument(given, &field.name, span)?;
        let mut text = String::new();
        for piece in &field.spec {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Field(inner) => {
                    let value = self.argument(given, &inner.name, span)?;
                    let known = known_text(&value).filter(|_| inner.conversion.is_none());
                    text += &known.ok_or("the format of a value must be a compile-time constant")?;
                }
            }
        }
        let spec = Spec::of(&text)?;
        Ok(PrintPart::Value(value, field.conversion.map_or(spec.clone(), |letter| spec.converted(letter))))
    }

    /// The value of an argument of `format`.
    fn argument(&mut self, given: &mut FormatArgs, name: &Name, span: Span) -> Result<Value, String> {
        let place = match name {
            Name::Position(at) => {
                let none = || format!("the format uses argument {at}, which is missing");
                if *at >= given.args.len() {
                    return Err(none());
                }
                *at
            }
            Name::Keyword(name) => {
                let at = given.keywords.iter().position(|(other, _)| other == name);
                given.args.len() + at.ok_or_else(|| format!("the format uses `{name}`, which is missing"))?
            }
        };
        let n_args = given.args.len();
        let value = match place.checked_sub(n_args) {
            Some(at) => given.keywords.get_mut(at).map(|(_, value)| value),
            None => given.args.get_mut(place),
        };
        let Some(value) = value else { return Ok(Value::Poison) };
        if given.read.insert(place) {
            // It may be read again.
            let now = std::mem::replace(value, Value::Poison);
            *value = self.settle(now, span);
        }
        let value = value.clone();
        Ok(self.reread(&value, span))
    }

    /// `text % values`; `None` if `text` is not a constant string.
    pub(super) fn percent(&mut self, text: &Value, values: &Value, span: Span) -> Option<Value> {
        let Value::Static(Static::Str(text)) = text else { return None };
        let conversions = match template::conversions(text) {
            Ok(conversions) => conversions,
            Err(message) => return Some(self.error(Code::BadOperand, span, message)),
        };
        let mut values = values.as_tuple().unwrap_or(std::slice::from_ref(values)).iter().cloned();
        let wanted = conversions.iter().filter(|part| matches!(part, Conversion::Next(_))).count();
        if wanted != values.len() {
            let message = format!("the format takes {wanted} values, not {}", values.len());
            return Some(self.error(Code::BadOperand, span, message));
        }
        let parts = conversions.into_iter().filter_map(|part| match part {
            Conversion::Text(text) => Some(PrintPart::Text(text)),
            Conversion::Next(spec) => values.next().map(|value| PrintPart::Value(value, spec)),
        });
        let parts = parts.collect();
        Some(self.formatted(parts, span))
    }

    /// `a + b` of formatted strings, or of one and a constant string; `None` for anything else.
    pub(super) fn joined_strings(&mut self, a: &Value, b: &Value, span: Span) -> Option<Value> {
        let formatted = |value: &Value| matches!(value, Value::Object(ObjectKind::Formatted(_), _));
        let text = |value: &Value| formatted(value) || matches!(value, Value::Static(Static::Str(_)));
        if !(text(a) && text(b) && (formatted(a) || formatted(b))) {
            return None;
        }
        let parts = [a, b].map(|value| PrintPart::Value(value.clone(), Spec::PLAIN)).into();
        Some(self.formatted(parts, span))
    }

    /// A formatted string from its parts.
    fn formatted(&mut self, parts: Vec<PrintPart>, span: Span) -> Value {
        let (mut slots, mut items) = (Vec::new(), Vec::new());
        for part in self.flat(parts, span) {
            let text = match part {
                PrintPart::Text(text) => text,
                PrintPart::Value(value, spec) => match known_text(&value).filter(|_| spec.is_plain() && !spec.quoted) {
                    Some(text) => text,
                    None => {
                        slots.push(FormatPart::Value(spec));
                        items.push(value);
                        continue;
                    }
                },
            };
            match slots.last_mut() {
                Some(FormatPart::Text(before)) => before.push_str(&text),
                Some(FormatPart::Value(_)) | None => slots.push(FormatPart::Text(text)),
            }
        }
        match slots.as_slice() {
            [] => Value::Static(Static::Str(String::new())),
            [FormatPart::Text(text)] => Value::Static(Static::Str(text.clone())),
            _ => Value::Object(ObjectKind::Formatted(Arc::from(slots)), items),
        }
    }

    /// Reports a value that cannot be printed with its format.
    fn cannot_print(&mut self, message: String, help: &str, span: Span) {
        self.report(Diagnostic::error(Code::BadOperand, span, message).help(help));
    }
}

/// The arguments of a `format`.
struct FormatArgs {
    args: Vec<Value>,
    keywords: Vec<(String, Value)>,
    /// Arguments that are already read; keywords come after positional ones.
    read: BTreeSet<usize>,
}
