//! A printed line: the format of C's `printf`, and its arguments.
//!
//! Every argument has eight bytes. Values for which C has no conversion (signed integers in other bases than 10, digit
//! groups, fill characters, strings in arrays) are formatted into a local byte buffer first (`prelude/print.py`), and
//! printed as strings.

use std::fmt::Write;

use weft_artifact::{Compound, DType, Scalar};

use super::spec::{Kind, Spec};
use crate::{
    frontend::{
        expr::Text,
        lowerer::FnLowerer,
        object::{ObjectKind, Static},
        value::{LibraryName, Value},
    },
    ir::{Built, Const, ConstantArray, ConstantId, ExprId, ExprKind, Op, Space, Type},
    source::Span,
};

/// A line under construction.
#[derive(Default)]
pub(super) struct Line {
    format: String,
    args: Vec<ExprId>,
    /// Positions of arguments that are a zero byte, which a format string cannot contain.
    zeros: Vec<usize>,
}

impl Line {
    /// Adds literal text.
    pub(super) fn text(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '%' => self.format.push_str("%%"),
                '\0' => {
                    self.format.push_str("%c");
                    self.zeros.push(self.args.len() + self.zeros.len());
                }
                other => self.format.push(other),
            }
        }
    }

    fn arg(&mut self, conversion: &str, arg: ExprId) {
        self.format.push_str(conversion);
        self.args.push(arg);
    }
}

/// The maximum length of a formatted integer without padding: 64 digits, groups, a sign, a prefix, and a terminating
/// zero.
const LONGEST_INT: usize = 96;

/// A string as Python's `repr` prints it.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter == quote => out.extend(['\\', quote]),
            letter if letter.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(letter)); // a String takes all text
            }
            letter => out.push(letter),
        }
    }
    out.push(quote);
    out
}

fn quoted_bytes(bytes: &[u8]) -> String {
    let mut out = String::from("b'");
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\'' => out.push_str("\\'"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            32..=126 => out.push(char::from(*byte)),
            other => {
                let _ = write!(out, "\\x{other:02x}"); // as above
            }
        }
    }
    out.push('\'');
    out
}

/// A string, padded to its field.
fn in_field(text: &str, spec: &Spec) -> String {
    let text: String = text.chars().take(spec.precision.unwrap_or(usize::MAX)).collect();
    let pad = spec.width.saturating_sub(text.chars().count());
    let before = match spec.align {
        Some('>') => pad,
        Some('^') => pad / 2,
        Some(_) | None => 0,
    };
    let fill = |count: usize| std::iter::repeat_n(spec.fill, count);
    fill(before).chain(text.chars()).chain(fill(pad - before)).collect()
}

impl FnLowerer<'_> {
    /// Adds a value.
    pub(super) fn put_value(&mut self, line: &mut Line, value: Value, spec: &Spec, span: Span) {
        match &value {
            Value::Scalar(..) | Value::Int(_) | Value::Bool(_) => return self.put_number(line, &value, spec, span),
            Value::Static(Static::Str(text)) => {
                let text = if spec.quoted { quoted(text) } else { text.clone() };
                return self.put_known(line, &text, spec, Kind::Text, span);
            }
            Value::Static(Static::Bytes(bytes)) => {
                return self.put_known(line, &quoted_bytes(bytes), spec, Kind::Other, span);
            }
            Value::Static(Static::None) => return self.put_known(line, "None", spec, Kind::Other, span),
            Value::Object(ObjectKind::Chars, _) => return self.put_text(line, &value, spec, span),
            Value::Object(kind, items) if kind.is_number() => {
                let Some(item) = items.first() else { return };
                return self.put_value(line, item.clone(), spec, span);
            }
            Value::Poison => return,
            Value::Complex(..) | Value::Array(_) | Value::Object(..) | Value::Static(_) => {}
        }
        if !spec.is_plain() {
            let message = format!("{} takes no format specification", value.ty());
            return self.cannot_print(message, "format its components", span);
        }
        self.put_whole(line, value, span);
    }

    /// Adds a composed value.
    fn put_whole(&mut self, line: &mut Line, value: Value, span: Span) {
        match value {
            Value::Complex(real, imag, _) => {
                let double = Type::Scalar(Scalar::F64);
                let (real, imag) = (self.b.convert(real, double, span), self.b.convert(imag, double, span));
                line.text("(");
                line.arg("%f", real);
                line.arg("%+f", imag);
                line.text("j)");
            }
            Value::Object(ObjectKind::Tuple | ObjectKind::Unrolled | ObjectKind::Vector(_), items) => {
                self.put_items(line, items, span);
            }
            Value::Object(ObjectKind::Struct(class), items) => {
                let class = class.get();
                line.text(&class.name);
                line.text("(");
                for (index, (item, field)) in items.into_iter().zip(&class.fields).enumerate() {
                    line.text(if index > 0 { ", " } else { "" });
                    line.text(field);
                    line.text("=");
                    self.put_item(line, item, span);
                }
                line.text(")");
            }
            Value::Object(ObjectKind::Record, items) => {
                let [Value::Array(place)] = items.as_slice() else { return };
                let DType::Compound(id) = place.ty.dtype else { return };
                let Compound::Record(record) = id.get() else { return };
                let fields = (0..record.fields().len()).map(|number| self.field(place, number, span)).collect();
                self.put_items(line, fields, span);
            }
            Value::Object(ObjectKind::Range(_), items) => {
                let one = |value: &Value| match value {
                    Value::Int(1) => true,
                    Value::Scalar(expr, _) => self.b.built(*expr) == Built::Const(Const::Int(1)),
                    Value::Int(_)
                    | Value::Complex(..)
                    | Value::Bool(_)
                    | Value::Array(_)
                    | Value::Object(..)
                    | Value::Static(_)
                    | Value::Poison => false,
                };
                let shown = if items.last().is_some_and(one) { 2 } else { 3 };
                line.text("range");
                self.put_items(line, items.into_iter().take(shown).collect(), span);
            }
            Value::Static(Static::Known(LibraryName::Path(path))) => {
                let axes = ["x", "y", "z"].map(|axis| self.resolve_known(&format!("{path}.{axis}"), span));
                let [Some(x), Some(y), Some(z)] = axes else {
                    let message =
                        format!("a kernel cannot print {}", Value::Static(Static::Known(LibraryName::Path(path))).ty());
                    return self.cannot_print(message, "print numbers, strings and tuples of them", span);
                };
                self.put_items(line, vec![x, y, z], span);
            }
            Value::Poison => {}
            other @ (Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Scalar(..)
            | Value::Int(_)
            | Value::Bool(_)) => {
                let help = if matches!(other, Value::Array(_)) {
                    "print its elements"
                } else if matches!(other, Value::Object(ObjectKind::Enum(_), _)) {
                    "print its `value`"
                } else {
                    "print numbers, strings and tuples of them"
                };
                self.cannot_print(format!("a kernel cannot print {}", other.ty()), help, span);
            }
        }
    }

    fn put_items(&mut self, line: &mut Line, items: Vec<Value>, span: Span) {
        let one = items.len() == 1;
        line.text("(");
        for (index, item) in items.into_iter().enumerate() {
            line.text(if index > 0 { ", " } else { "" });
            self.put_item(line, item, span);
        }
        line.text(if one { ",)" } else { ")" });
    }

    /// Adds a part of a composed value: strings are quoted.
    fn put_item(&mut self, line: &mut Line, item: Value, span: Span) {
        self.put_value(line, item, &Spec { quoted: true, ..Spec::PLAIN }, span);
    }

    /// Whether Python accepts a format specification for such a value; reports it otherwise.
    fn takes(&mut self, spec: &Spec, kind: Kind, span: Span) -> bool {
        let Some(message) = spec.fault(kind) else { return true };
        let of_ints = matches!(spec.ty, Some('b' | 'c' | 'd' | 'o' | 'x' | 'X'));
        let help = match kind {
            Kind::Float if of_ints && !spec.text => "write `.0f`, or convert it: `int(x)`",
            Kind::Int if spec.precision.is_some() => "give a width instead: `5d`",
            Kind::Int | Kind::Float | Kind::Text | Kind::Other => "remove this part of the format",
        };
        self.cannot_print(message, help, span);
        false
    }

    /// Adds a constant string.
    fn put_known(&mut self, line: &mut Line, text: &str, spec: &Spec, kind: Kind, span: Span) {
        let is_letter = spec.percent && spec.ty == Some('c') && kind == Kind::Text && text.chars().count() == 1;
        if is_letter || self.takes(spec, kind, span) {
            line.text(&in_field(text, &spec.of_text()));
        }
    }

    fn put_number(&mut self, line: &mut Line, value: &Value, spec: &Spec, span: Span) {
        let Some(scalar) = value.ty().scalar() else { return };
        if scalar == Scalar::Bool
            && (spec.text || (spec.ty.is_none() && *spec == Spec { quoted: spec.quoted, ..Spec::PLAIN }))
        {
            return self.put_bool(line, value, spec, span);
        }
        if !self.takes(spec, if scalar.is_float() { Kind::Float } else { Kind::Int }, span) {
            return;
        }
        if spec.text && spec.precision.is_some() {
            return self.cannot_print(
                "a kernel cannot cut the string of a number".to_owned(),
                "leave the precision out",
                span,
            );
        }
        match spec.ty.filter(|_| !spec.text) {
            Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') => self.put_float(line, value, spec, span),
            Some('c') => self.put_letter(line, value, spec, span),
            Some('d') if scalar.is_float() => self.put_int(line, value, Scalar::I64, spec, span),
            Some(_) | None if scalar.is_float() => self.put_float(line, value, spec, span),
            Some(_) | None => {
                let to = if scalar.is_signed_int() || scalar == Scalar::Bool { Scalar::I64 } else { Scalar::U64 };
                self.put_int(line, value, to, spec, span);
            }
        }
    }

    fn put_bool(&mut self, line: &mut Line, value: &Value, spec: &Spec, span: Span) {
        if let Value::Bool(known) = value {
            return self.put_known(line, if *known { "True" } else { "False" }, spec, Kind::Text, span);
        }
        if spec.text && !self.takes(spec, Kind::Text, span) {
            return;
        }
        let Some(cond) = self.number(value, Scalar::Bool, span) else { return };
        let spec = spec.of_text();
        let (yes, no) = (in_field("True", &spec), in_field("False", &spec));
        let (yes, no) = (self.text_constant(&yes, span), self.text_constant(&no, span));
        let (yes, no) = (self.text_base(yes, span), self.text_base(no, span));
        line.arg("%s", self.b.select(cond, yes, no, span));
    }

    /// The flags and the width of a C conversion; `None` if C has no equivalent.
    fn flags(spec: &Spec, default: char) -> Option<String> {
        let mut flags = String::from("%");
        match (spec.align.unwrap_or(default), spec.fill) {
            ('<', ' ') => flags.push('-'),
            ('>', ' ') => {}
            ('=', '0') => flags.push('0'),
            _ if spec.width == 0 => {}
            _ => return None,
        }
        if spec.sign != '-' {
            flags.push(spec.sign);
        }
        if spec.alternate {
            flags.push('#');
        }
        if spec.width > 0 {
            flags.push_str(&spec.width.to_string());
        }
        Some(flags)
    }

    fn put_float(&mut self, line: &mut Line, value: &Value, spec: &Spec, span: Span) {
        let Some(mut number) = self.number(value, Scalar::F64, span) else { return };
        let letter = spec.ty.filter(|_| !spec.text).unwrap_or('f');
        if spec.ty.is_none() && spec.precision.is_some() && !spec.text {
            let message = "a kernel needs a type letter for a float with a precision".to_owned();
            return self.cannot_print(message, "write `.3f` or `.3g`", span);
        }
        let percent = letter == '%';
        let field = Spec { width: spec.width.saturating_sub(usize::from(percent)), ..spec.clone() };
        let behind = percent && spec.align == Some('<') && spec.width > 0;
        let Some(mut conversion) = Self::flags(&field, '>').filter(|_| spec.group.is_none() && !behind) else {
            let message =
                "a kernel cannot group the digits of a float, center it, or pad it with another character".to_owned();
            return self.cannot_print(message, "pad with spaces on one side or with zeros", span);
        };
        if percent {
            let hundred = self.b.float(Scalar::F64, 100.0, span);
            number = self.b.binary(crate::ir::BinaryOp::Mul, number, hundred, span);
        }
        if let Some(precision) = spec.precision {
            let _ = write!(conversion, ".{precision}"); // a String takes all text
        }
        conversion.push(if percent { 'f' } else { letter });
        if field.align == Some('=') && field.width > 0 {
            self.put_zeros(line, &conversion, number, &field, span);
        } else {
            line.arg(&conversion, number);
        }
        line.text(if percent { "%" } else { "" });
    }

    /// Adds a float in a zero-padded field. C pads infinities and NaNs with spaces, so their zeros and signs are
    /// written as a string.
    fn put_zeros(&mut self, line: &mut Line, conversion: &str, number: ExprId, spec: &Spec, span: Span) {
        let number = self.settle(Value::Scalar(number, Scalar::F64), span);
        let sign = if spec.sign == '-' { 0 } else { u32::from(spec.sign) };
        let field = [Value::Int(spec.width as i128), Value::Int(sign.into())];
        let args = |this: &mut Self| [vec![this.reread(&number, span)], field.to_vec()].concat();
        let given = args(self);
        self.put_written(line, "print_zeros", given, spec.width + 2, span);
        let given = args(self);
        let width = self.string_call("print_width", given, span);
        let given = vec![self.reread(&number, span)];
        let rest = self.string_call("print_rest", given, span);
        let (Some(width), Some(rest)) = (self.number(&width, Scalar::I64, span), self.number(&rest, Scalar::F64, span))
        else {
            return;
        };
        let behind = conversion.trim_start_matches(|letter: char| !matches!(letter, '.' | 'a'..='z' | 'A'..='Z'));
        line.args.push(width);
        line.arg(&format!("%0{}*{behind}", if spec.alternate { "#" } else { "" }), rest);
    }

    fn put_int(&mut self, line: &mut Line, value: &Value, to: Scalar, spec: &Spec, span: Span) {
        let ty = spec.ty.filter(|_| !spec.text).unwrap_or('d');
        // Python pads with zeros to the larger of width and precision, C only to the precision.
        let mut spec = Spec { alternate: spec.alternate && ty != 'd', ..spec.clone() };
        // With precision 0, C prints nothing for a zero.
        spec.precision = spec.precision.map(|digits| digits.max(1));
        if spec.fill == '0'
            && let Some(digits) = spec.precision
        {
            // The zeros come after a prefix and a sign.
            if spec.width > digits + if spec.alternate { 2 } else { 0 } {
                spec.precision = None;
            } else {
                spec = Spec { fill: ' ', align: None, width: 0, ..spec };
            }
        }
        let spec = &spec;
        if let Value::Int(known) = value
            && spec.is_plain()
            && ty == 'd'
        {
            return line.text(&known.to_string());
        }
        let Some(number) = self.number(value, to, span) else { return };
        let unsigned = to == Scalar::U64;
        let plain = ty == 'd' && spec.group.is_none() && !spec.alternate && (spec.sign == '-' || !unsigned);
        if let Some(mut conversion) = Self::flags(spec, '>').filter(|_| plain) {
            if let Some(precision) = spec.precision.filter(|_| !spec.text) {
                let _ = write!(conversion, ".{precision}"); // a String takes all text
            }
            conversion.push_str(if unsigned { "llu" } else { "lld" });
            return line.arg(&conversion, number);
        }
        if !spec.fill.is_ascii() || spec.precision.is_some() || (spec.group.is_some() && spec.align == Some('=')) {
            let message = "a kernel cannot print an integer with this format".to_owned();
            return self.cannot_print(
                message,
                "do not combine digit grouping with zero padding, and use an ASCII fill character",
                span,
            );
        }
        let (base, letter) = match ty {
            'b' => (2, 'b'),
            'o' => (8, 'o'),
            'x' => (16, 'x'),
            'X' => (16, 'X'),
            _ => (10, '\0'),
        };
        let letter_of = |letter: char| Value::Int(u32::from(letter).into());
        let zero = |given: bool, letter: char| if given { letter_of(letter) } else { Value::Int(0) };
        let align = match spec.align {
            Some('<') => 1,
            Some('^') => 3,
            Some('=') => 4,
            Some(_) | None => 2,
        };
        let args = vec![
            Value::Scalar(number, to),
            Value::Int(base),
            zero(spec.sign != '-', spec.sign),
            zero(spec.alternate && letter != '\0', letter),
            letter_of(if ty == 'X' { 'A' } else { 'a' }),
            zero(spec.group.is_some(), spec.group.unwrap_or(',')),
            letter_of(spec.fill),
            Value::Int(align),
            Value::Int(spec.width as i128),
        ];
        self.put_written(line, "print_int", args, LONGEST_INT.max(spec.width + 1), span);
    }

    fn put_letter(&mut self, line: &mut Line, value: &Value, spec: &Spec, span: Span) {
        let Some(number) = self.number(value, Scalar::I64, span) else { return };
        let number = self.settle(Value::Scalar(number, Scalar::I64), span);
        let pad = spec.width.saturating_sub(1);
        let before = match spec.align {
            Some('<') => 0,
            Some('^') => pad / 2,
            Some(_) | None => pad,
        };
        let fill = |count: usize| String::from(spec.fill).repeat(count);
        line.text(&fill(before));
        let given = self.reread(&number, span);
        self.put_written(line, "print_letter", vec![given], 4, span);
        let given = self.reread(&number, span);
        let last = self.string_call("last_of_letter", vec![given], span);
        let Some(last) = self.number(&last, Scalar::I64, span) else { return };
        line.arg("%c", last);
        line.text(&fill(pad - before));
    }

    /// Adds a string in memory.
    fn put_text(&mut self, line: &mut Line, value: &Value, spec: &Spec, span: Span) {
        let Some(text) = Text::of(value) else { return };
        let room = value.ty().chars().map_or(0, |chars| chars.max_len() as usize);
        if !self.takes(spec, if text.is_wide() { Kind::Text } else { Kind::Other }, span) {
            return;
        }
        let spec = &spec.of_text();
        if !spec.fill.is_ascii() || ((spec.quoted || !text.is_wide()) && !spec.is_plain()) {
            return self.cannot_print(
                "a kernel cannot print a string with this format".to_owned(),
                "use `<`, `>` or `^`",
                span,
            );
        }
        let letters = self.letters(&text, span);
        if !text.is_wide() {
            line.text("b'");
            self.put_written(line, "print_bytes", vec![letters], 4 * room + 1, span);
            return line.text("'");
        }
        let align = match spec.align {
            Some('>') => 2,
            Some('^') => 3,
            Some(_) | None => 1,
        };
        let args = vec![
            letters,
            Value::Int(u32::from(spec.fill).into()),
            Value::Int(align),
            Value::Int(spec.width as i128),
            Value::Int(spec.precision.unwrap_or(room) as i128),
        ];
        line.text(if spec.quoted { "'" } else { "" });
        self.put_written(line, "print_text", args, 4 * room.max(spec.width) + 1, span);
        line.text(if spec.quoted { "'" } else { "" });
    }

    /// Adds the bytes, at most `room`, that a function of the prelude writes.
    fn put_written(&mut self, line: &mut Line, name: &str, args: Vec<Value>, room: usize, span: Span) {
        let place = self.local_array(Scalar::U8.into(), vec![room as i64], "text", span);
        let Value::Array(array) = &place else { return };
        let data = array.data;
        let args = std::iter::once(place).chain(args).collect();
        self.string_call(name, args, span);
        let pointer = self.use_atom(data, span);
        line.arg("%s", self.b.convert(pointer, Type::Ptr(Scalar::U8, Space::Generic), span));
    }

    /// A string constant of the module, terminated by a zero.
    fn text_constant(&mut self, text: &str, span: Span) -> ConstantId {
        if self.is_dry() {
            return ConstantId::new(u32::MAX);
        }
        let bytes: Vec<u8> = text.bytes().chain([0]).collect();
        let constants = &mut self.cx.module.constants;
        let known = constants.iter().find(|(_, known)| {
            known.name == TEXT && known.elem == Scalar::U8 && known.space == Space::Global && *known.bytes == *bytes
        });
        if let Some((id, _)) = known {
            return id;
        }
        let (name, span) = (TEXT.to_owned(), self.at(span));
        let text = ConstantArray { name, elem: Scalar::U8, bytes: bytes.into(), align: 1, space: Space::Global, span };
        self.cx.module.constants.push(text)
    }

    fn text_base(&mut self, text: ConstantId, span: Span) -> ExprId {
        let base = self.b.expr(ExprKind::ConstBase(text), Type::Ptr(Scalar::U8, Space::Global), span);
        self.b.convert(base, Type::Ptr(Scalar::U8, Space::Generic), span)
    }

    /// Emits the `print` operation.
    pub(super) fn print_op(&mut self, line: Line, span: Span) {
        let Line { format, mut args, zeros } = line;
        if format.is_empty() {
            return;
        }
        for at in zeros {
            let zero = self.b.i64(0, span);
            args.insert(at.min(args.len()), zero);
        }
        let format = self.text_constant(&format, span);
        self.b.op(Op::Print(format), Vec::new(), args, span);
    }
}

/// The name of a string constant that has no name in the program.
const TEXT: &str = "text";
