//! Conversions between byte offsets and positions of the protocol (lines from 0, columns in UTF-16 code units), and
//! between paths and URIs.

use std::path::PathBuf;

use lsp_types::{Position, Range, Uri};

/// The position of a byte offset in a text.
pub(super) fn position(text: &str, offset: u32) -> Position {
    let mut offset = (offset as usize).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let head = text.get(..offset).unwrap_or_default();
    let start = head.rfind('\n').map_or(0, |newline| newline + 1);
    let column = head.get(start..).unwrap_or_default().chars().map(char::len_utf16).sum::<usize>();
    Position::new(head.matches('\n').count() as u32, column as u32)
}

/// The byte offset of a position. A column past the end of the line means the end of the line.
pub(super) fn offset(text: &str, position: Position) -> u32 {
    let mut start = 0;
    for _ in 0..position.line {
        match text.get(start..).and_then(|rest| rest.find('\n')) {
            Some(newline) => start += newline + 1,
            None => return text.len() as u32,
        }
    }
    let line = text.get(start..).and_then(|rest| rest.split('\n').next()).unwrap_or_default();
    let mut units = 0;
    for (at, letter) in line.char_indices() {
        if units >= position.character as usize {
            return (start + at) as u32;
        }
        units += letter.len_utf16();
    }
    (start + line.len()) as u32
}

/// The range of two byte offsets.
pub(super) fn range(text: &str, start: u32, end: u32) -> Range {
    Range::new(position(text, start), position(text, end))
}

/// The path of a `file:` URI.
pub(super) fn path(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    let path = rest.get(rest.find('/')?..)?;
    let mut bytes = Vec::new();
    let mut encoded = path.bytes();
    while let Some(byte) = encoded.next() {
        let digits = if byte == b'%' { [encoded.next()?, encoded.next()?] } else { [0; 2] };
        let hex = std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(if byte == b'%' { hex? } else { byte });
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_units_of_utf_16() {
        let text = "a\n\u{1f600}é = b\r\n\nend";
        for (at, line, column) in [("a", 0, 0), ("é", 1, 2), ("=", 1, 4), ("b", 1, 6), ("end", 3, 0)] {
            let found = text.find(at).expect("it is there") as u32;
            assert_eq!(position(text, found), Position::new(line, column), "{at}");
            assert_eq!(offset(text, Position::new(line, column)), found, "{at}");
        }
        assert_eq!(position(text, 99), Position::new(3, 3));
        assert_eq!(offset(text, Position::new(0, 99)), 1);
        assert_eq!(offset(text, Position::new(99, 0)), text.len() as u32);
    }

    #[test]
    fn uris_are_paths() {
        let path_of = |uri: &str| path(&uri.parse().expect("is a URI"));
        assert_eq!(path_of("file:///home/a%20b/%C3%A9.py"), Some(PathBuf::from("/home/a b/é.py")));
        assert_eq!(path_of("file://host/k.py"), Some(PathBuf::from("/k.py")));
        assert_eq!(path_of("untitled:Untitled-1"), None);
    }
}
