//! f-strings and t-strings, as Python 3.12 (PEP 701) and 3.14 (PEP 750) define them: their fields may contain any
//! expression, the quotes of the string itself, backslashes, comments and several lines.
//!
//! rustpython-parser supports only those of Python 3.11. So [`newer`](super::newer) replaces each by a plain string of
//! the same length. This module parses them itself and stores them by their start offset: their literal parts, and
//! their fields with spans in the user's own source. The converter creates a call of `format` from them.

use std::{collections::BTreeMap, ops::Range};

use rustpython_parser::{Mode, ParseError, ast as py};

use super::{
    convert::{Converter, Result},
    fault,
    newer::{Opening, Scanner, is_word},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    source::Span,
    syntax::ast::{Constant, Expr, ExprKind},
};

/// The formatted strings of a text, by start offset.
pub(super) type Formatteds = BTreeMap<usize, Formatted>;

/// One formatted string, without adjacent ones that are part of the same literal.
#[derive(Debug)]
pub(super) struct Formatted {
    /// The offset after its last quote.
    end: usize,
    /// Whether it is a t-string, whose value is not a string.
    template: bool,
    parts: Vec<FStringPart>,
}

#[derive(Debug)]
enum FStringPart {
    Text(String),
    Field {
        value: Box<py::Expr>,
        /// The letter after `!`.
        conversion: Option<char>,
        /// The format specification after `:`.
        format: Vec<FStringPart>,
    },
}

/// An error in a formatted string.
pub(super) struct Fault {
    /// The start of the outermost formatted string.
    pub(super) within: usize,
    pub(super) diagnostic: Box<Diagnostic>,
}

/// Why parsing stopped.
pub(super) enum Stop {
    /// A plain string is not terminated. The parser reports this with a better message, unless the string is in a
    /// field.
    Open(usize),
    Fault(Box<Diagnostic>),
}

type Read<T> = std::result::Result<T, Stop>;

/// The maximum nesting of formatted strings, which Python does not accept either.
const MOST: usize = 150;

/// The text of a part, with its escapes as in the source.
#[derive(Default)]
struct Piece {
    start: usize,
    raw: String,
}

impl Scanner<'_> {
    /// Parses a formatted string and replaces it by a plain one; returns its end.
    pub(super) fn formatted(&mut self, start: usize, opening: &Opening, depth: usize) -> Read<usize> {
        if depth > MOST {
            return Err(self.wrong(start, "formatted strings are nested too deeply here"));
        }
        let (parts, end) = self.parts(opening, depth)?;
        // The quotes come first, replacing the prefix, so that a token in column 0 remains in column 0.
        let quotes = if opening.triple { 3 } else { 1 };
        self.replace(start..start + quotes, opening.quote);
        self.replace(start + quotes..end - quotes, b'x');
        self.replace(end - quotes..end, opening.quote);
        self.strings.insert(start, Formatted { end, template: opening.is_template(), parts });
        Ok(end)
    }

    fn wrong(&self, at: usize, message: impl Into<String>) -> Stop {
        let span = fault::token_at(self.source, at as u32, self.file);
        Stop::Fault(Box::new(Diagnostic::error(Code::Syntax, span, message)))
    }

    fn wrong_with_help(&self, at: usize, message: impl Into<String>, help: &str) -> Stop {
        match self.wrong(at, message) {
            Stop::Fault(diagnostic) => Stop::Fault(Box::new((*diagnostic).help(help))),
            open @ Stop::Open(_) => open,
        }
    }

    fn open_string(&self, at: usize, opening: &Opening) -> Stop {
        let end = if opening.triple { self.text.len() } else { self.line_end(at) };
        self.wrong(end, if opening.triple { "a string is not closed" } else { "a string is not closed on its line" })
    }

    /// The literal parts and fields of a string, up to and including its last quote.
    fn parts(&mut self, opening: &Opening, depth: usize) -> Read<(Vec<FStringPart>, usize)> {
        let mut at = opening.inside;
        let (mut parts, mut piece) = (Vec::new(), Piece { start: at, raw: String::new() });
        loop {
            if let Some(end) = self.closing(at, opening) {
                self.flush(&mut piece, opening, &mut parts)?;
                return Ok((parts, end));
            }
            match self.at(at) {
                open @ (b'{' | b'}') if self.at(at + 1) == open => {
                    piece.raw.push(char::from(open));
                    at += 2;
                }
                b'{' => {
                    self.flush(&mut piece, opening, &mut parts)?;
                    at = self.field(at, opening, depth, 0, &mut parts)?;
                    piece.start = at;
                }
                b'}' => {
                    let help = "write `}}` for a literal brace";
                    return Err(self.wrong_with_help(at, "this `}` does not close a field of the f-string", help));
                }
                _ => at = self.literal_character(at, opening, &mut piece)?,
            }
        }
    }

    /// Appends a literal character, or an escape.
    fn literal_character(&self, at: usize, opening: &Opening, piece: &mut Piece) -> Read<usize> {
        let byte = self.at(at);
        let next = self.at(at + 1);
        let mut end = at + self.character(at);
        match byte {
            _ if at >= self.text.len() => return Err(self.open_string(opening.inside, opening)),
            b'\n' | b'\r' if !opening.triple => return Err(self.open_string(at, opening)),
            b'\r' => {
                piece.raw.push('\n');
                return Ok(if next == b'\n' { at + 2 } else { at + 1 });
            }
            b'\\' if matches!(next, b'{' | b'}') && !opening.raw => {
                // The escape ends at the brace, so the backslash is literal.
                piece.raw.push_str("\\\\");
                return Ok(end);
            }
            b'\\' if matches!(next, b'{' | b'}') => {}
            b'\\' if !opening.raw && self.starts(at, b"\\N{") => {
                let name = self.text.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == b'}'));
                end = name.map_or(self.text.len(), |length| at + length + 1);
            }
            b'\\' if self.starts(at + 1, b"\r\n") => end = at + 3,
            b'\\' => end = (at + 1 + self.character(at + 1)).min(self.text.len()),
            // The piece will be enclosed in three quotes.
            byte if byte == opening.quote && !opening.raw => piece.raw.push('\\'),
            _ => {}
        }
        piece.raw.push_str(&self.source.get(at..end).unwrap_or("").replace("\r\n", "\n"));
        Ok(end)
    }

    /// The length of a character in bytes.
    fn character(&self, at: usize) -> usize {
        self.source.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
    }

    /// Ends a piece of text: its escapes are decoded as in a plain string.
    fn flush(&self, piece: &mut Piece, opening: &Opening, parts: &mut Vec<FStringPart>) -> Read<()> {
        let raw = std::mem::take(&mut piece.raw);
        if raw.is_empty() {
            return Ok(());
        }
        let text = if opening.raw || !raw.contains('\\') {
            raw
        } else {
            let quotes = String::from_utf8_lossy(&[opening.quote; 3]).into_owned();
            match plain(&format!("{quotes}{raw}{quotes}")) {
                Ok(text) => text,
                Err(error) => {
                    let located = ParseError { offset: (piece.start as u32).into(), ..error };
                    return Err(Stop::Fault(Box::new(fault::diagnose(&located, self.source, 0, self.file))));
                }
            }
        };
        parts.push(FStringPart::Text(text));
        Ok(())
    }

    /// `{expression=!r:format}`, including its last brace.
    fn field(
        &mut self,
        brace: usize,
        opening: &Opening,
        depth: usize,
        nested: usize,
        parts: &mut Vec<FStringPart>,
    ) -> Read<usize> {
        let (mut at, mut brackets, mut comments) = (brace + 1, Vec::new(), Vec::new());
        let end = loop {
            let byte = self.at(at);
            match byte {
                _ if at >= self.text.len() => {
                    let help = "write `{{` for a literal brace";
                    return Err(self.wrong_with_help(brace, "the field that begins here is not closed", help));
                }
                b'#' => {
                    comments.push(at..self.line_end(at));
                    at = self.line_end(at);
                }
                _ if self.opening(at).is_some() => {
                    // If nothing closes it, a quote in a field is the end of the enclosing string, not the start of a
                    // new one.
                    at = self.string(at, depth + 1).map_err(|stop| match stop {
                        Stop::Open(place) => {
                            let help = "close the field with `}`, or write `{{` for a literal brace";
                            self.wrong_with_help(place, "a string in this field is not closed", help)
                        }
                        Stop::Fault(fault) => Stop::Fault(fault),
                    })?;
                }
                _ if is_word(byte) => at = self.word_end(at),
                b'!' | b'=' | b'<' | b'>' if self.at(at + 1) == b'=' => at += 2,
                b'(' | b'[' | b'{' => {
                    brackets.push(byte);
                    at += 1;
                }
                b'}' | b':' | b'!' | b'=' if brackets.is_empty() => break at,
                b')' | b']' | b'}' => {
                    let opened = match byte {
                        b')' => b'(',
                        b']' => b'[',
                        _ => b'{',
                    };
                    if brackets.pop() != Some(opened) {
                        let message = "this bracket does not match an open bracket";
                        return Err(self.wrong(at, message));
                    }
                    at += 1;
                }
                _ => at += 1,
            }
        };
        let value = Box::new(self.expression(brace + 1..end)?);
        let mut shown = false;
        if self.at(at) == b'=' {
            shown = true;
            at = self.comments_end(at + 1, &mut comments);
            // Without comments, as CPython prints it.
            let mut text = String::new();
            let mut from = brace + 1;
            for comment in comments.drain(..).chain(std::iter::once(at..at)) {
                text.push_str(self.source.get(from..comment.start).unwrap_or(""));
                from = comment.end;
            }
            parts.push(FStringPart::Text(text.replace("\r\n", "\n")));
        }
        let mut conversion = None;
        if self.at(at) == b'!' {
            let letter = self.at(at + 1);
            if !matches!(letter, b's' | b'r' | b'a') || self.word_end(at + 1) != at + 2 {
                let help = "write `!r`, `!s` or `!a`, or `!=` to compare";
                return Err(self.wrong_with_help(at, "a conversion must follow the `!` in this field", help));
            }
            conversion = Some(char::from(letter));
            at = self.comments_end(at + 2, &mut comments);
        }
        let mut format = Vec::new();
        let mut has_format = false;
        if self.at(at) == b':' {
            has_format = true;
            at = self.format(at + 1, opening, depth, nested, &mut format)?;
        }
        if self.at(at) != b'}' {
            let help = "write a field as `{value}`, `{value!r}`, `{value:format}` or `{value=}`";
            return Err(self.wrong_with_help(at, "expected the end of the field here", help));
        }
        if shown && !has_format {
            conversion = conversion.or(Some('r'));
        }
        parts.push(FStringPart::Field { value, conversion, format });
        Ok(at + 1)
    }

    /// The offset after blanks, line ends and comments.
    fn comments_end(&self, start: usize, comments: &mut Vec<Range<usize>>) -> usize {
        let mut at = self.space_end(start);
        while self.at(at) == b'#' {
            comments.push(at..self.line_end(at));
            at = self.space_end(self.line_end(at));
        }
        at
    }

    /// A field's format specification, from after the colon to the brace that ends it.
    fn format(
        &mut self,
        start: usize,
        opening: &Opening,
        depth: usize,
        nested: usize,
        parts: &mut Vec<FStringPart>,
    ) -> Read<usize> {
        let mut at = start;
        let mut piece = Piece { start, raw: String::new() };
        loop {
            if self.closing(at, opening).is_some() {
                let help = "close the field with `}`, or write `{{` for a literal brace";
                return Err(self.wrong_with_help(at, "the format of a field is not closed", help));
            }
            match self.at(at) {
                // CPython accepts two levels.
                b'{' if nested >= 2 => return Err(self.wrong(at, "fields in formats are nested too deeply here")),
                b'{' => {
                    self.flush(&mut piece, opening, parts)?;
                    at = self.field(at, opening, depth, nested + 1, parts)?;
                    piece.start = at;
                }
                b'}' => {
                    self.flush(&mut piece, opening, parts)?;
                    return Ok(at);
                }
                _ => at = self.literal_character(at, opening, &mut piece)?,
            }
        }
    }

    /// Parses an expression of the text, in which formatted strings have already been replaced.
    pub(super) fn expression(&self, range: Range<usize>) -> Read<py::Expr> {
        let written = self.out.get(range.clone()).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("");
        let (first, end) = (range.start as u32, range.end as u32);
        if written.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#')) {
            let span = Span { file: self.file, start: end, end };
            let fault = Diagnostic::error(Code::Syntax, span, "an expression is missing here");
            return Err(Stop::Fault(Box::new(fault)));
        }
        // Parentheses allow several lines, and a comment at the end.
        let parsed = rustpython_parser::parse_starts_at(
            &format!("({written}\n)"),
            Mode::Expression,
            "",
            (first + self.shift).saturating_sub(1).into(),
        );
        match parsed {
            Ok(py::Mod::Expression(module)) => {
                let mut converter = Converter::new(self.source, self.shift, self.file, &self.strings);
                match converter.expr(&module.body) {
                    Ok(_) => Ok(*module.body),
                    // It is nested too deeply, and the tree that is dropped with a string must not be.
                    Err(fault) => {
                        converter.release(module);
                        Err(Stop::Fault(fault))
                    }
                }
            }
            // `Mode::Expression` returns an expression.
            Ok(_) => Err(self.wrong(range.start, "this is not an expression")),
            Err(error) => {
                let offset = u32::from(error.offset).clamp(first + self.shift, end + self.shift);
                let located = ParseError { offset: offset.into(), ..error };
                Err(Stop::Fault(Box::new(fault::diagnose(&located, self.source, self.shift, self.file))))
            }
        }
    }
}

/// The value of a plain string's text, with its quotes.
fn plain(text: &str) -> std::result::Result<String, ParseError> {
    match rustpython_parser::parse(text, Mode::Expression, "")? {
        py::Mod::Expression(module) => Ok(match *module.body {
            py::Expr::Constant(py::ExprConstant { value: py::Constant::Str(value), .. }) => value,
            // Text in quotes is always a string.
            _ => String::new(),
        }),
        _ => Ok(String::new()),
    }
}

impl Converter<'_> {
    /// Whether the literal at this span contains a formatted string.
    pub(super) fn is_formatted(&self, span: Span) -> bool {
        self.formatted.range(span.start as usize..span.end as usize).next().is_some()
    }

    /// A literal with formatted strings in it: `f"a{x!r:>{w}}"` is `"a{0!r:>{1}}".format(x, w)`.
    pub(super) fn formatted_literal(&mut self, span: Span) -> Result<ExprKind> {
        let (mut text, mut args) = (String::new(), Vec::new());
        let formatted = self.formatted;
        let (mut templates, mut others) = (false, false);
        let scanner = Scanner::new(self.text, self.file, 0);
        let mut at = span.start as usize;
        while at < span.end as usize {
            if let Some(string) = formatted.get(&at) {
                templates |= string.template;
                others |= !string.template;
                self.template(&string.parts, false, &mut text, &mut args)?;
                at = string.end;
            } else if let Some(end) = scanner.plain_end(at) {
                others = true;
                let value = plain(self.text.get(at..end).unwrap_or("")).unwrap_or_default();
                text.push_str(&doubled(&value));
                at = end;
            } else if scanner.at(at) == b'#' {
                at = scanner.line_end(at);
            } else {
                at += 1;
            }
        }
        if templates && others {
            let message = "a t-string cannot be concatenated with other strings without `+`";
            return Err(Box::new(Diagnostic::error(Code::Syntax, span, message).help("write `+` between the strings")));
        }
        if templates {
            return Ok(ExprKind::Unsupported("template string"));
        }
        let value = Expr { kind: ExprKind::Constant(Constant::Str(text)), span };
        let func = ExprKind::Attribute { value: Box::new(value), attr: "format".to_owned() };
        Ok(ExprKind::Call { func: Box::new(Expr { kind: func, span }), args, keywords: Vec::new() })
    }

    /// The template of parts of a formatted string, or of a format in one, and its arguments.
    fn template(&mut self, parts: &[FStringPart], within: bool, text: &mut String, args: &mut Vec<Expr>) -> Result<()> {
        for part in parts {
            match part {
                // Braces have no special meaning in a format specification.
                FStringPart::Text(plain) => text.push_str(&if within { plain.clone() } else { doubled(plain) }),
                FStringPart::Field { value, conversion, format } => {
                    let value = self.expr(value)?;
                    text.push('{');
                    text.push_str(&args.len().to_string());
                    args.push(value);
                    if let Some(letter) = conversion {
                        text.extend(['!', *letter]);
                    }
                    if !format.is_empty() {
                        text.push(':');
                        self.template(format, true, text, args)?;
                    }
                    text.push('}');
                }
            }
        }
        Ok(())
    }
}

fn doubled(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}
