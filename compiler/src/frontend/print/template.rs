//! Parsers of format strings: those of `str.format` (formatted string literals become calls of it), and those of `%`.

use super::spec::Spec;

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Literal text.
    Text(String),
    /// A value.
    Field(Field),
}

/// A replacement field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// The argument: a position, or a name.
    pub(super) name: Name,
    /// `!s`, `!r` or `!a`.
    pub(super) conversion: Option<char>,
    /// The format specification after the `:`, which may have nested fields.
    pub(super) spec: Vec<Piece>,
}

/// The argument that a field refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// By position.
    Position(usize),
    /// By keyword.
    Keyword(String),
}

/// Splits a template of `str.format` into its parts.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let letters: Vec<char> = text.chars().collect();
    let mut reader = Reader { letters: &letters, at: 0, next: 0 };
    let pieces = reader.pieces(false)?;
    Ok(pieces)
}

struct Reader<'a> {
    letters: &'a [char],
    at: usize,
    /// The position of the next `{}`.
    next: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn takes(&mut self, letter: char) -> bool {
        let found = self.peek() == Some(letter);
        self.at += usize::from(found);
        found
    }

    /// Parses up to the end, or, within a field, to its `}`.
    fn pieces(&mut self, within: bool) -> Result<Vec<Piece>, String> {
        let (mut pieces, mut text) = (Vec::new(), String::new());
        while let Some(letter) = self.peek() {
            if within && letter == '}' {
                break;
            }
            self.at += 1;
            match letter {
                '{' if !within && self.takes('{') => text.push('{'),
                '{' => {
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    pieces.push(Piece::Field(self.field(within)?));
                }
                '}' if self.takes('}') => text.push('}'),
                '}' => return Err("a single `}` in a format: write `}}`".to_owned()),
                other => text.push(other),
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(pieces)
    }

    /// Parses a field, after the `{`.
    fn field(&mut self, within: bool) -> Result<Field, String> {
        let mut name = String::new();
        while let Some(letter) = self.peek().filter(|letter| !"!:}".contains(*letter)) {
            name.push(letter);
            self.at += 1;
        }
        let name = if name.is_empty() {
            self.next += 1;
            Name::Position(self.next - 1)
        } else if let Ok(position) = name.parse() {
            Name::Position(position)
        } else if name.chars().all(|letter| letter == '_' || letter.is_alphanumeric()) {
            Name::Keyword(name)
        } else {
            return Err(format!(
                "`{{{name}}}`: a format in a kernel can only name whole arguments: pass the attribute \
                or element as an argument"
            ));
        };
        let conversion = if self.takes('!') {
            let letter = self.peek().filter(|letter| "sra".contains(*letter));
            self.at += 1;
            Some(letter.ok_or("a `!` in a format must be followed by `s`, `r` or `a`")?)
        } else {
            None
        };
        let spec = match self.takes(':') {
            true if within => return Err("formats cannot be nested more than two levels deep".to_owned()),
            true => self.pieces(true)?,
            false => Vec::new(),
        };
        if self.takes('}') {
            Ok(Field { name, conversion, spec })
        } else {
            Err("a `{` without a closing `}`".to_owned())
        }
    }
}

/// A part of a `%` format string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// Literal text.
    Text(String),
    /// The next value.
    Next(Spec),
}

/// Splits a `%` format string into its parts.
pub(super) fn conversions(text: &str) -> Result<Vec<Conversion>, String> {
    let letters: Vec<char> = text.chars().collect();
    let (mut parts, mut text, mut at) = (Vec::new(), String::new(), 0);
    while let Some(letter) = letters.get(at) {
        at += 1;
        if *letter != '%' {
            text.push(*letter);
        } else if letters.get(at) == Some(&'%') {
            text.push('%');
            at += 1;
        } else {
            if !text.is_empty() {
                parts.push(Conversion::Text(std::mem::take(&mut text)));
            }
            let (spec, len) = Spec::of_percent(&letters[at..])?;
            parts.push(Conversion::Next(spec));
            at += len;
        }
    }
    if !text.is_empty() {
        parts.push(Conversion::Text(text));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_places() {
        let field = |name, conversion, spec| Piece::Field(Field { name, conversion, spec });
        let text = |text: &str| Piece::Text(text.to_owned());
        let expected = [
            text("a{b} "),
            field(Name::Position(0), None, vec![text(">5")]),
            field(Name::Keyword("x".to_owned()), Some('r'), Vec::new()),
            field(Name::Position(1), None, vec![field(Name::Position(2), None, Vec::new()), text("d")]),
        ];
        assert_eq!(pieces("a{{b}} {:>5}{x!r}{:{}d}"), Ok(expected.to_vec()));
        for wrong in ["{", "}", "{!x}", "{a.b}", "{:{:{}}}"] {
            assert!(pieces(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percent_has_conversions() {
        let parts = conversions("%d%% of %5.1f").expect("is one");
        assert!(
            matches!(&parts[..], [Conversion::Next(_), Conversion::Text(text), Conversion::Next(_)] if text == "% of ")
        );
        assert!(conversions("100%").is_err());
    }
}
