//! Splits PTX into tokens: words, numbers, strings and punctuation, each with its line.

use crate::error::Error;

/// One token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// A name, a directive, an opcode with its modifiers, or a register.
    Word(String),
    /// An integer, as its 64 low bits.
    Integer(u64),
    /// A 32-bit float, as its bits (`0f...`).
    Single(u32),
    /// A 64-bit float, as its bits (`0d...`, or decimal).
    Double(u64),
    /// The contents of a string.
    Text(String),
    /// One character of punctuation.
    Mark(char),
}

/// A token and its line, counted from 1.
#[derive(Debug, Clone)]
pub(crate) struct Spanned {
    pub(crate) token: Token,
    pub(crate) line: u32,
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'%' | b'.')
}

/// The tokens of a module.
pub(crate) fn tokens(text: &str) -> Result<Vec<Spanned>, Error> {
    let bytes = text.as_bytes();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < bytes.len() {
        let c = bytes[at];
        let start = at;
        match c {
            b'\n' => (line, at) = (line + 1, at + 1),
            b' ' | b'\t' | b'\r' | 0 => at += 1,
            b'/' if text[at..].starts_with("//") => at += text[at..].find('\n').unwrap_or(bytes.len() - at),
            b'/' if text[at..].starts_with("/*") => {
                let end = text[at..].find("*/").ok_or_else(|| Error::at(line, "a comment has no end"))?;
                line += text[at..at + end].matches('\n').count() as u32;
                at += end + 2;
            }
            b'"' => {
                let end = text[at + 1..].find('"').ok_or_else(|| Error::at(line, "a string has no end"))?;
                found.push(Spanned { token: Token::Text(text[at + 1..at + 1 + end].to_owned()), line });
                at += end + 2;
            }
            _ if is_word(c) => {
                while at < bytes.len() && (is_word(bytes[at]) || text[at..].starts_with("::")) {
                    at += if bytes[at] == b':' { 2 } else { 1 };
                }
                let word = &text[start..at];
                let token = if c.is_ascii_digit() {
                    number(word).ok_or_else(|| Error::at(line, format!("`{word}` is not a number")))?
                } else {
                    Token::Word(word.to_owned())
                };
                found.push(Spanned { token, line });
            }
            _ if c.is_ascii_punctuation() => {
                found.push(Spanned { token: Token::Mark(c as char), line });
                at += 1;
            }
            _ => return Err(Error::at(line, format!("unexpected byte {c}"))),
        }
    }
    Ok(found)
}

fn number(word: &str) -> Option<Token> {
    let lower = word.to_ascii_lowercase();
    if let Some(bits) = lower.strip_prefix("0f") {
        return u32::from_str_radix(bits, 16).ok().map(Token::Single);
    }
    if let Some(bits) = lower.strip_prefix("0d") {
        return u64::from_str_radix(bits, 16).ok().map(Token::Double);
    }
    let digits = lower.trim_end_matches('u');
    let integer = if let Some(digits) = digits.strip_prefix("0x") {
        u64::from_str_radix(digits, 16)
    } else if let Some(digits) = digits.strip_prefix("0b") {
        u64::from_str_radix(digits, 2)
    } else if digits.len() > 1 && digits.starts_with('0') && !digits.contains(['.', 'e']) {
        u64::from_str_radix(digits, 8)
    } else {
        digits.parse()
    };
    if let Ok(value) = integer {
        return Some(Token::Integer(value));
    }
    lower.parse::<f64>().ok().map(|value| Token::Double(value.to_bits()))
}
