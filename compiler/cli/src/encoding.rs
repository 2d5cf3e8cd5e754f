//! Decodes a Python file with the encoding that it declares (PEP 263).

use std::ops::Range;

use encoding_rs::Encoding;

/// A decoding error: the text with replacement characters, the range of the error in it, and a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Undecoded {
    pub(crate) text: String,
    pub(crate) at: Range<usize>,
    pub(crate) message: String,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Decodes a file as Python does: as UTF-8 unless one of the first two lines declares another encoding.
pub(crate) fn decode(bytes: &[u8]) -> Result<String, Undecoded> {
    let (marked, bytes) = bytes.strip_prefix(BOM).map_or((false, bytes), |rest| (true, rest));
    let Some(declared) = declared(bytes) else { return utf8(bytes) };
    let label = bytes.get(declared.clone()).map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
    let name = label.to_ascii_lowercase().replace('_', "-");
    let fault = |message: String| {
        Err(Undecoded { text: String::from_utf8_lossy(bytes).into_owned(), at: declared.clone(), message })
    };
    match name.as_str() {
        "utf-8" | "utf8" | "u8" | "utf" | "utf-8-sig" | "cp65001" => return utf8(bytes),
        _ if name.starts_with("utf-8-") => return utf8(bytes),
        _ if marked => return fault(format!("the file begins with a UTF-8 byte order mark, but declares `{label}`")),
        "ascii" | "us-ascii" | "646" | "ansi-x3.4-1968" => {
            return match bytes.iter().position(|byte| !byte.is_ascii()) {
                None => utf8(bytes),
                Some(at) => Err(undecoded(bytes, at, "ASCII")),
            };
        }
        // Latin-1 maps each byte to the code point of the same number. The WHATWG label `latin1` means Windows-1252
        // instead.
        "latin-1" | "latin1" | "l1" | "latin" | "iso-8859-1" | "iso8859-1" | "iso-8859-1-1987" | "8859" | "cp819" => {
            return Ok(bytes.iter().map(|&byte| char::from(byte)).collect());
        }
        _ if name.starts_with("latin-1-") || name.starts_with("iso-8859-1-") => {
            return Ok(bytes.iter().map(|&byte| char::from(byte)).collect());
        }
        _ => {}
    }
    match Encoding::for_label(other_name(&name).as_bytes()) {
        Some(encoding) if encoding.is_ascii_compatible() => match encoding.decode_without_bom_handling(bytes) {
            (text, false) => Ok(text.into_owned()),
            (text, true) => {
                let at = text.find('\u{fffd}').unwrap_or(0);
                let message = format!("this is not valid {label}, the encoding that the file declares");
                Err(Undecoded { at: at..at + '\u{fffd}'.len_utf8(), text: text.into_owned(), message })
            }
        },
        Some(_) | None => fault(format!("weft does not know the encoding `{label}`")),
    }
}

/// The WHATWG label of an encoding that has another name in Python.
fn other_name(name: &str) -> String {
    match name {
        "latin-9" | "latin9" => "iso-8859-15".to_owned(),
        "cp932" | "ms932" | "mskanji" | "ms-kanji" => "shift_jis".to_owned(),
        "cp936" | "936" | "ms936" => "gbk".to_owned(),
        "cp949" | "949" | "uhc" | "ms949" => "euc-kr".to_owned(),
        "cp950" | "950" | "ms950" => "big5".to_owned(),
        "mac-roman" | "macroman" => "macintosh".to_owned(),
        "shift-jis" => "shift_jis".to_owned(),
        _ => name.to_owned(),
    }
}

fn utf8(bytes: &[u8]) -> Result<String, Undecoded> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(undecoded(bytes, error.valid_up_to(), "UTF-8")),
    }
}

fn undecoded(bytes: &[u8], at: usize, encoding: &str) -> Undecoded {
    let before = String::from_utf8_lossy(bytes.get(..at).unwrap_or_default()).into_owned();
    let rest = String::from_utf8_lossy(bytes.get(at..).unwrap_or_default());
    let length = rest.chars().next().map_or(0, char::len_utf8);
    let byte = bytes.get(at).copied().unwrap_or(0);
    let message = format!("the byte 0x{byte:02x} is not valid {encoding}");
    Undecoded { at: before.len()..before.len() + length, text: before + &rest, message }
}

/// The range of the encoding's name in the comment that declares it. The comment is in the first line, or in the second
/// if the first is blank or a comment.
fn declared(bytes: &[u8]) -> Option<Range<usize>> {
    let mut start = 0;
    for _ in 0..2 {
        let rest = bytes.get(start..).unwrap_or_default();
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        let both = usize::from(rest.get(end..).is_some_and(|end| end.starts_with(b"\r\n")));
        let line = rest.get(..(end + 1 + both).min(rest.len())).unwrap_or_default();
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\x0c' | b'\r' | b'\n');
        let indent = line.iter().position(|byte| !is_blank(byte)).unwrap_or(line.len());
        match line.get(indent) {
            None => {}
            Some(b'#') => {
                if let Some(found) = name_in(line) {
                    return Some(start + found.start..start + found.end);
                }
            }
            Some(_) => return None,
        }
        start += line.len();
    }
    None
}

/// The name in `# -*- coding: name -*-`.
fn name_in(comment: &[u8]) -> Option<Range<usize>> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    comment.windows(7).enumerate().find_map(|(at, word)| {
        if !matches!(word, b"coding:" | b"coding=") {
            return None;
        }
        let rest = comment.get(at + 7..)?;
        let blanks = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
        let length = rest.get(blanks..)?.iter().position(|byte| !is_name(byte)).unwrap_or(rest.len() - blanks);
        (length > 0).then_some(at + 7 + blanks..at + 7 + blanks + length)
    })
}

#[cfg(test)]
mod tests {
    use super::decode;

    fn text(bytes: &[u8]) -> String {
        decode(bytes).expect("is text")
    }

    fn fault(bytes: &[u8]) -> (String, String) {
        let fault = decode(bytes).expect_err("is no text");
        (fault.message, fault.text[fault.at].to_owned())
    }

    #[test]
    fn an_encoding_is_declared_in_the_first_two_lines() {
        assert_eq!(text(b"x = '\xc3\xa9'\n"), "x = 'é'\n");
        assert_eq!(text(b"\xef\xbb\xbfx = '\xc3\xa9'\n"), "x = 'é'\n");
        assert_eq!(text(b"# -*- coding: latin-1 -*-\n# \xe9\x80\n"), "# -*- coding: latin-1 -*-\n# é\u{80}\n");
        assert_eq!(text(b"#!/usr/bin/python\r\n# vim: set fileencoding=cp1252 :\r\n# \x80\n").pop_line(), "# €");
        assert_eq!(text(b"\n# coding=iso-8859-15\n# \xa4").pop_line(), "# €");
        assert_eq!(text(b"# coding: koi8-r\n# \xc1").pop_line(), "# а");
        assert_eq!(text(b"# coding: Shift_JIS\n# \x82\xa0").pop_line(), "# あ");
        assert_eq!(text(b"# coding: UTF_8\n# \xc3\xa9").pop_line(), "# é");
        // Only a comment in the first two lines declares an encoding.
        assert_eq!(text(b"x = 'coding: latin-1'\n# coding: latin-1\n# \xc3\xa9").pop_line(), "# é");
        assert_eq!(text(b"\n\n# coding: latin-1\n# \xc3\xa9").pop_line(), "# é");
    }

    #[test]
    fn what_is_not_in_the_encoding_has_a_place() {
        let fffd = "\u{fffd}".to_owned();
        assert_eq!(fault(b"x = 1\ny = '\xe9'\n"), ("the byte 0xe9 is not valid UTF-8".to_owned(), fffd.clone()));
        assert_eq!(
            fault(b"# coding: ascii\n# \xc3\xa9"),
            ("the byte 0xc3 is not valid ASCII".to_owned(), "é".to_owned())
        );
        assert_eq!(
            fault(b"# coding: euc-jp\n# \xff"),
            ("this is not valid euc-jp, the encoding that the file declares".to_owned(), fffd)
        );
        for name in ["nothing", "utf-16", "utf-7"] {
            let expected = (format!("weft does not know the encoding `{name}`"), name.to_owned());
            assert_eq!(fault(format!("# coding: {name}\n").as_bytes()), expected);
        }
        let said = "the file begins with a UTF-8 byte order mark, but declares `latin-1`".to_owned();
        assert_eq!(fault(b"\xef\xbb\xbf# coding: latin-1\n"), (said, "latin-1".to_owned()));
    }

    trait PopLine {
        fn pop_line(&self) -> &str;
    }

    impl PopLine for String {
        fn pop_line(&self) -> &str {
            self.trim_end().rsplit('\n').next().unwrap_or("")
        }
    }
}
