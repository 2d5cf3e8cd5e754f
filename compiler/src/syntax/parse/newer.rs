//! Rewrites syntax that is newer than the parser's grammar to older syntax, without moving any other byte.
//!
//! f-strings (which contain any expression since Python 3.12) and t-strings (3.14) become plain strings of the same
//! length, and [`formatted`](super::formatted) stores their contents; `except A, B:` (3.14) becomes `except A| B:`,
//! which kernels do not support either; defaults of type parameters (3.13), which have no meaning in a kernel, are
//! blanked. Tabs at the start of a line become spaces ([`indentation`](super::indentation)).

use std::ops::Range;

use super::{
    formatted::{Fault, Formatteds, Stop},
    indentation::Blocks,
};

/// The rewritten text.
#[derive(Debug, Default)]
pub(super) struct Older {
    pub(super) text: String,
    /// The formatted strings, which are plain strings in the text.
    pub(super) strings: Formatteds,
}

/// Rewrites a source, which `shift` bytes precede in the parser's input. On an error in a formatted string, in the
/// default of a type parameter or in the indentation of a line, returns it and the source rewritten up to there.
pub(super) fn older(text: &str, file: u32, shift: u32) -> (Older, Option<Fault>) {
    let mut scanner = Scanner::new(text, file, shift);
    let fault = scanner.code(Some(Blocks::default()));
    scanner.written(fault)
}

/// The same for a text that is one expression, in which indentation has no meaning.
pub(super) fn older_expression(text: &str, file: u32) -> (Older, Option<Fault>) {
    let mut scanner = Scanner::new(text, file, 0);
    let fault = scanner.code(None);
    scanner.written(fault)
}

pub(super) struct Scanner<'a> {
    pub(super) source: &'a str,
    /// The source, as bytes.
    pub(super) text: &'a [u8],
    pub(super) file: u32,
    pub(super) shift: u32,
    pub(super) out: Vec<u8>,
    pub(super) strings: Formatteds,
}

/// The start of a string.
pub(super) struct Opening {
    /// The offset of its contents.
    pub(super) inside: usize,
    pub(super) quote: u8,
    pub(super) triple: bool,
    pub(super) raw: bool,
    kind: Kind,
}

/// The kind of a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    /// An f-string.
    Formatted,
    /// A t-string.
    Template,
}

impl Opening {
    pub(super) fn is_template(&self) -> bool {
        self.kind == Kind::Template
    }
}

impl<'a> Scanner<'a> {
    pub(super) fn new(source: &'a str, file: u32, shift: u32) -> Self {
        let text = source.as_bytes();
        Self { source, text, file, shift, out: text.to_vec(), strings: Formatteds::new() }
    }

    pub(super) fn at(&self, index: usize) -> u8 {
        self.text.get(index).copied().unwrap_or(0)
    }

    pub(super) fn starts(&self, index: usize, text: &[u8]) -> bool {
        self.text.get(index..).is_some_and(|rest| rest.starts_with(text))
    }

    /// The rewritten text.
    fn written(self, fault: Option<Fault>) -> (Older, Option<Fault>) {
        // Only whole strings and single ASCII characters are replaced, by ASCII.
        let text = String::from_utf8(self.out).unwrap_or_else(|_| self.source.to_owned());
        (Older { text, strings: self.strings }, fault)
    }

    /// Visits statements, whose lines are in `blocks`, or an expression.
    fn code(&mut self, mut blocks: Option<Blocks>) -> Option<Fault> {
        let (mut at, mut depth) = (0, 0_u32);
        let mut begins = true;
        while at < self.text.len() {
            let next = match (self.at(at), &mut blocks) {
                (_, Some(blocks)) if begins && depth == 0 => self.line(at, blocks),
                (_, _) if begins => Ok(self.inner_line(at)),
                (b'#', _) => Ok(self.line_end(at)),
                // The code continues on the next line.
                (b'\\', _) if self.starts(at + 1, b"\r\n") => Ok(at + 3),
                (b'\\', _) => Ok(at + 2),
                (b'(' | b'[' | b'{', _) => {
                    depth += 1;
                    Ok(at + 1)
                }
                (b')' | b']' | b'}', _) => {
                    depth = depth.saturating_sub(1);
                    Ok(at + 1)
                }
                _ if self.opening(at).is_some() => self.string(at, 0),
                (byte, _) if is_word(byte) => self.word(at),
                _ => Ok(at + 1),
            };
            let begun = begins;
            match next {
                Ok(next) => {
                    begins = !begun && self.ends_line(at);
                    at = next;
                }
                // It is not terminated: the parser reports that.
                Err(Stop::Open(_)) => return None,
                Err(Stop::Fault(diagnostic)) => return Some(Fault { within: at, diagnostic }),
            }
        }
        None
    }

    /// Whether a line ends with this byte.
    fn ends_line(&self, at: usize) -> bool {
        match self.at(at) {
            b'\n' => true,
            b'\r' => self.at(at + 1) != b'\n',
            _ => false,
        }
    }

    /// Visits a name, a number or a keyword, and rewrites what follows a keyword.
    fn word(&mut self, start: usize) -> Result<usize, Stop> {
        let end = self.word_end(start);
        match self.text.get(start..end) {
            Some(b"except") => self.exceptions(end),
            Some(b"def" | b"class" | b"type") => {
                let name = self.blanks_end(end);
                let bracket = self.blanks_end(self.word_end(name));
                if name > end && bracket > name && self.at(bracket) == b'[' {
                    return self.type_parameters(bracket);
                }
            }
            _ => {}
        }
        Ok(end)
    }

    /// `except A, B:`, from after `except`; with `as`, parentheses are required.
    fn exceptions(&mut self, start: usize) {
        let (mut at, mut depth, mut commas) = (start, 0_u32, Vec::new());
        while at < self.text.len() {
            match self.at(at) {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => commas.push(at),
                b'a' if depth == 0 && self.starts(at, b"as") && self.word_end(at) == at + 2 => return,
                b':' if depth == 0 => break,
                b'\n' | b'#' => return,
                byte if is_word(byte) => {
                    at = self.word_end(at);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        for comma in commas {
            let last = self.blanks_end(comma + 1) == at;
            self.replace(comma..comma + 1, if last { b' ' } else { b'|' });
        }
    }

    /// `[T: int = str, *Ts = *tuple[int]]`, from its first bracket to its last.
    fn type_parameters(&mut self, start: usize) -> Result<usize, Stop> {
        let (mut at, mut depth, mut default) = (start, 0_u32, None);
        while at < self.text.len() {
            match self.at(at) {
                b'#' => {
                    at = self.line_end(at);
                    continue;
                }
                _ if self.opening(at).is_some() => {
                    at = self.string(at, 0)?;
                    continue;
                }
                byte if is_word(byte) => {
                    at = self.word_end(at);
                    continue;
                }
                b'\n' => {
                    at = self.inner_line(at + 1);
                    continue;
                }
                b'=' if depth == 1 && self.at(at + 1) != b'=' => default = default.or(Some(at)),
                b'(' | b'[' | b'{' => depth += 1,
                end @ (b',' | b')' | b']' | b'}') => {
                    if depth == 1
                        && let Some(from) = default.take()
                    {
                        // The default of a `*Ts` may be a starred expression, whose star needs no comma here.
                        let blanks = self.space_end(from + 1);
                        let star = usize::from(self.at(blanks) == b'*');
                        let _checked = self.expression(blanks + star..at)?;
                        self.replace(from..at, b' ');
                    }
                    if end != b',' {
                        depth = depth.saturating_sub(1);
                    }
                    if depth == 0 {
                        return Ok(at + 1);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        Ok(at)
    }

    /// The start of a string here, including its prefix.
    pub(super) fn opening(&self, start: usize) -> Option<Opening> {
        let before = start.checked_sub(1).map_or(0, |before| self.at(before));
        let prefix = (start..start + 3).take_while(|&at| self.at(at).is_ascii_alphabetic()).count();
        let quote = self.at(start + prefix);
        if !matches!(quote, b'"' | b'\'') || (prefix > 0 && is_word(before)) {
            return None;
        }
        let letters = self.text.get(start..start + prefix)?.to_ascii_lowercase();
        if !matches!(
            letters.as_slice(),
            b"" | b"r" | b"u" | b"b" | b"br" | b"rb" | b"f" | b"fr" | b"rf" | b"t" | b"tr" | b"rt"
        ) {
            return None;
        }
        let triple = self.starts(start + prefix, &[quote; 3]);
        Some(Opening {
            inside: start + prefix + if triple { 3 } else { 1 },
            quote,
            triple,
            raw: letters.contains(&b'r'),
            kind: match (letters.contains(&b'f'), letters.contains(&b't')) {
                (true, _) => Kind::Formatted,
                (false, true) => Kind::Template,
                (false, false) => Kind::Plain,
            },
        })
    }

    /// Visits a string, rewrites it if it is a formatted one, and returns its end.
    pub(super) fn string(&mut self, start: usize, depth: usize) -> Result<usize, Stop> {
        match self.opening(start) {
            Some(opening) if opening.kind != Kind::Plain => self.formatted(start, &opening, depth),
            _ => self.plain_end(start).ok_or(Stop::Open(start)),
        }
    }

    /// The end of a plain string that starts here, if it is terminated.
    pub(super) fn plain_end(&self, start: usize) -> Option<usize> {
        let opening = self.opening(start)?;
        let mut at = opening.inside;
        while at < self.text.len() {
            match self.at(at) {
                b'\\' if self.starts(at + 1, b"\r\n") => at += 3,
                b'\\' => at += 2,
                b'\n' if !opening.triple => return None,
                _ => match self.closing(at, &opening) {
                    Some(end) => return Some(end),
                    None => at += 1,
                },
            }
        }
        None
    }

    pub(super) fn closing(&self, at: usize, opening: &Opening) -> Option<usize> {
        let length = if opening.triple { 3 } else { 1 };
        self.starts(at, &[opening.quote; 3][..length]).then_some(at + length)
    }

    pub(super) fn line_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
    }

    pub(super) fn word_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len())
    }

    fn blanks_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(rest.len())
    }

    /// The offset after blanks and line ends.
    pub(super) fn space_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(rest.len())
    }

    pub(super) fn replace(&mut self, range: Range<usize>, by: u8) {
        for byte in self.out.get_mut(range).into_iter().flatten() {
            *byte = by;
        }
    }
}

/// A letter, a digit, an underscore, or part of a character beyond ASCII.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
