//! Formats of C's `printf`, as far as printing in kernels uses them. The GPU's `vprintf` parses them itself; the CPU's
//! executor and the compiler parse them here.

/// A part of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatPart<'a> {
    /// Literal text.
    Text(&'a [u8]),
    /// `%%`.
    Percent,
    /// A conversion, from its `%` to its letter, of an argument of eight bytes; a `*` in it takes an additional
    /// argument before it.
    Conversion(&'a [u8]),
}

impl FormatPart<'_> {
    /// The letter of a conversion: `d`, `u`, `x`, `f`, `s`, …
    pub fn letter(&self) -> Option<u8> {
        match self {
            Self::Conversion(text) => text.last().copied(),
            Self::Text(_) | Self::Percent => None,
        }
    }

    /// The number of arguments that it takes.
    pub fn words(&self) -> usize {
        match self {
            Self::Conversion(text) if self.letter().is_some() => 1 + usize::from(text.contains(&b'*')),
            Self::Conversion(_) | Self::Text(_) | Self::Percent => 0,
        }
    }
}

/// The parts of a format, in order.
pub fn format_parts(format: &[u8]) -> impl Iterator<Item = FormatPart<'_>> {
    let mut rest = format;
    std::iter::from_fn(move || {
        let (first, after) = rest.split_first()?;
        let (part, len) = match (first, after.first()) {
            (b'%', Some(b'%')) => (FormatPart::Percent, 2),
            (b'%', _) => {
                let letter = after.iter().position(|byte| byte.is_ascii_alphabetic() && *byte != b'l');
                let len = letter.map_or(rest.len(), |at| at + 2);
                (FormatPart::Conversion(&rest[..len]), len)
            }
            _ => {
                let len = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
                (FormatPart::Text(&rest[..len]), len)
            }
        };
        rest = &rest[len..];
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::{FormatPart, format_parts};

    #[test]
    fn a_format_is_its_parts() {
        let parts: Vec<_> = format_parts(b"a%%b %-5lld:%s\n").collect();
        let expected = [
            FormatPart::Text(b"a"),
            FormatPart::Percent,
            FormatPart::Text(b"b "),
            FormatPart::Conversion(b"%-5lld"),
            FormatPart::Text(b":"),
            FormatPart::Conversion(b"%s"),
            FormatPart::Text(b"\n"),
        ];
        assert_eq!(parts, expected);
        assert_eq!(expected[3].letter(), Some(b'd'));
        assert_eq!(format_parts(b"").count(), 0);
        let words = |format: &str| format_parts(format.as_bytes()).map(|part| part.words()).sum::<usize>();
        assert_eq!((words("a%%"), words("%d%s"), words("%0*.1f%%%-5d")), (0, 2, 3));
    }
}
