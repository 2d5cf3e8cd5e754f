//! Writes what is newer than the parser's grammar as something that it can read, with every other byte where it was.
//!
//! So a file with such a statement is known to be Python, and where its statements begin and end. f-strings with any
//! expression in them (Python 3.12) and t-strings (3.14) become plain strings of the same length, `except A, B:`
//! (3.14) becomes `except A| B:`, and defaults of type parameters (3.13) are left out.

use std::ops::Range;

/// A text for the parser, and the expressions of f-strings and of defaults of types, which are not in it.
#[derive(Debug, Default)]
pub(super) struct Older {
    pub(super) text: String,
    /// Byte ranges of the text that came in.
    pub(super) fields: Vec<Range<usize>>,
}

/// Rewrites a text. Gives none if nothing in it is newer than the parser.
pub(super) fn older(text: &str) -> Option<Older> {
    let mut scanner =
        Scanner { text: text.as_bytes(), out: text.as_bytes().to_vec(), fields: Vec::new(), changed: false };
    scanner.code(0);
    // Only whole strings and single ASCII characters are replaced, by ASCII.
    let written = String::from_utf8(scanner.out).ok()?;
    scanner.changed.then_some(Older { text: written, fields: scanner.fields })
}

struct Scanner<'a> {
    text: &'a [u8],
    out: Vec<u8>,
    fields: Vec<Range<usize>>,
    changed: bool,
}

/// A string's beginning.
struct Opening {
    /// Where its text begins.
    inside: usize,
    quote: u8,
    triple: bool,
    raw: bool,
    /// An f-string or a t-string.
    formatted: bool,
}

impl Scanner<'_> {
    fn at(&self, index: usize) -> u8 {
        self.text.get(index).copied().unwrap_or(0)
    }

    fn starts(&self, index: usize, text: &[u8]) -> bool {
        self.text.get(index..).is_some_and(|rest| rest.starts_with(text))
    }

    /// Goes over statements.
    fn code(&mut self, start: usize) {
        let mut at = start;
        while at < self.text.len() {
            match self.at(at) {
                b'#' => at = self.line_end(at),
                _ if self.opening(at).is_some() => match self.string(at, 0) {
                    Some(end) => at = end,
                    // It has no end: the parser says so.
                    None => return,
                },
                byte if is_word(byte) => at = self.word(at),
                _ => at += 1,
            }
        }
    }

    /// Goes over a name, a number or a keyword, and rewrites what a keyword begins.
    fn word(&mut self, start: usize) -> usize {
        let end = self.word_end(start);
        match self.text.get(start..end) {
            Some(b"except") => self.exceptions(end),
            Some(b"def" | b"class" | b"type") => {
                let name = self.blanks_end(end);
                let bracket = self.blanks_end(self.word_end(name));
                if name > end && bracket > name && self.at(bracket) == b'[' {
                    self.type_parameters(bracket);
                }
            }
            _ => {}
        }
        end
    }

    /// `except A, B:`, from behind `except`; one with `as` needs parentheses.
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

    /// `[T: int = str, *Ts = *tuple[int]]`, from its first bracket.
    fn type_parameters(&mut self, start: usize) {
        let (mut at, mut depth, mut default) = (start, 0_u32, None);
        while at < self.text.len() {
            match self.at(at) {
                b'#' => {
                    at = self.line_end(at);
                    continue;
                }
                _ if self.opening(at).is_some() => match self.string_end(at, 0) {
                    Some(end) => {
                        at = end;
                        continue;
                    }
                    None => return,
                },
                byte if is_word(byte) => {
                    at = self.word_end(at);
                    continue;
                }
                b'=' if depth == 1 && self.at(at + 1) != b'=' => default = default.or(Some(at)),
                b'(' | b'[' | b'{' => depth += 1,
                end @ (b',' | b')' | b']' | b'}') => {
                    if depth == 1
                        && let Some(from) = default.take()
                    {
                        self.fields.push(from + 1..at);
                        self.replace(from..at, b' ');
                    }
                    if end != b',' {
                        depth = depth.saturating_sub(1);
                    }
                    if depth == 0 {
                        return;
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// The beginning of a string here, with its prefix.
    fn opening(&self, start: usize) -> Option<Opening> {
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
            formatted: letters.contains(&b'f') || letters.contains(&b't'),
        })
    }

    /// Goes over a string, rewrites it if it is a formatted one, and gives its end.
    fn string(&mut self, start: usize, depth: usize) -> Option<usize> {
        let opening = self.opening(start)?;
        if !opening.formatted {
            return self.string_end(start, depth);
        }
        let known = self.fields.len();
        let Some(end) = self.formatted_end(&opening, depth) else {
            self.fields.truncate(known);
            return None;
        };
        // The quotes come first, where the prefix was: what stands in column 0 stays there.
        let quotes = if opening.triple { 3 } else { 1 };
        self.replace(start..start + quotes, opening.quote);
        self.replace(start + quotes..end - quotes, b'x');
        Some(end)
    }

    /// The end of a string that is not rewritten.
    fn string_end(&mut self, start: usize, depth: usize) -> Option<usize> {
        let opening = self.opening(start)?;
        if opening.formatted {
            return self.formatted_end(&opening, depth);
        }
        let mut at = opening.inside;
        while at < self.text.len() {
            match self.at(at) {
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

    fn closing(&self, at: usize, opening: &Opening) -> Option<usize> {
        let length = if opening.triple { 3 } else { 1 };
        self.starts(at, &[opening.quote; 3][..length]).then_some(at + length)
    }

    /// The end of an f-string; notes its expressions.
    fn formatted_end(&mut self, opening: &Opening, depth: usize) -> Option<usize> {
        let mut at = opening.inside;
        while at < self.text.len() {
            match self.at(at) {
                b'\\' if !opening.raw && self.starts(at, b"\\N{") => {
                    at += self.text.get(at..)?.iter().position(|&byte| byte == b'}')? + 1;
                }
                b'\\' if matches!(self.at(at + 1), b'{' | b'}') => at += 1,
                b'\\' => at += 2,
                b'\n' if !opening.triple => return None,
                open @ (b'{' | b'}') if self.at(at + 1) == open => at += 2,
                b'{' => at = self.field(at + 1, opening, depth)?,
                b'}' => return None,
                _ => match self.closing(at, opening) {
                    Some(end) => return Some(end),
                    None => at += 1,
                },
            }
        }
        None
    }

    /// From behind the brace of `{expression=!r:format}` to behind its last.
    fn field(&mut self, start: usize, opening: &Opening, depth: usize) -> Option<usize> {
        /// More than Python takes.
        const MOST: usize = 150;
        let (mut at, mut brackets) = (start, 0_u32);
        let mut end = None;
        if depth > MOST {
            return None;
        }
        loop {
            let byte = *self.text.get(at)?;
            match byte {
                b'#' => at = self.line_end(at),
                _ if self.opening(at).is_some() => at = self.string_end(at, depth + 1)?,
                _ if is_word(byte) => at = self.word_end(at),
                b'!' | b'=' | b'<' | b'>' if self.at(at + 1) == b'=' => at += 2,
                b'(' | b'[' | b'{' => {
                    brackets += 1;
                    at += 1;
                }
                b'}' | b':' | b'!' | b'=' if brackets == 0 => {
                    end = end.or(Some(at));
                    match byte {
                        b'}' => break,
                        b':' => {
                            at = self.format(at + 1, opening, depth)?;
                            break;
                        }
                        _ => at += 1,
                    }
                }
                b')' | b']' | b'}' => {
                    brackets = brackets.checked_sub(1)?;
                    at += 1;
                }
                _ => at += 1,
            }
        }
        self.fields.push(start..end?);
        Some(at + 1)
    }

    /// Behind the colon of a field, to the brace that ends it.
    fn format(&mut self, start: usize, opening: &Opening, depth: usize) -> Option<usize> {
        let mut at = start;
        loop {
            match *self.text.get(at)? {
                b'{' => at = self.field(at + 1, opening, depth + 1)?,
                b'}' => return Some(at),
                b'\n' if !opening.triple => return None,
                _ if self.closing(at, opening).is_some() => return None,
                _ => at += 1,
            }
        }
    }

    fn line_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
    }

    fn word_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len())
    }

    fn blanks_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(rest.len())
    }

    fn replace(&mut self, range: Range<usize>, by: u8) {
        self.changed |= !range.is_empty();
        for byte in self.out.get_mut(range).into_iter().flatten() {
            *byte = by;
        }
    }
}

/// A letter, a digit, an underscore, or part of a character beyond ASCII.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
