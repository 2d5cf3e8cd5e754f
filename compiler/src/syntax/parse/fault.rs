//! The parser's errors as diagnostics: one sentence, at the span of the error.
//!
//! The parser returns one byte offset and the unexpected token; the message depends on the line too.

use rustpython_parser::{ParseError, ParseErrorType, Tok, lexer::LexicalErrorType};

use crate::{
    diagnostic::{Code, Diagnostic},
    source::Span,
};

/// The diagnostic of a parse error. `shift` bytes precede `text` in the parser's input.
pub(super) fn diagnose(error: &ParseError, text: &str, shift: u32, file: u32) -> Diagnostic {
    // The lexer reports a wrong bracket after it has consumed it.
    let passed = u32::from(matches!(error.error, ParseErrorType::Lexical(LexicalErrorType::NestingError)));
    let offset = u32::from(error.offset).saturating_sub(shift + passed).min(text.len() as u32);
    let span = token_at(text, offset, file);
    let line = Line::of(text, span.start as usize);
    let (message, help) = sentence(&error.error, &line, text, span);
    let diagnostic = Diagnostic::error(Code::Syntax, span, message);
    match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// The line of an error: the text before it and the first word.
struct Line<'a> {
    word: &'a str,
}

impl<'a> Line<'a> {
    fn of(text: &'a str, at: usize) -> Self {
        let head = text.get(..at).unwrap_or("");
        let start = head.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or("").trim_start();
        let end = line.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(line.len());
        Self { word: line.get(..end).unwrap_or("") }
    }
}

fn sentence(error: &ParseErrorType, line: &Line<'_>, text: &str, span: Span) -> (String, Option<String>) {
    let compound = ["if", "elif", "else", "while", "for", "def", "with", "try", "except", "class"].contains(&line.word);
    match error {
        ParseErrorType::Eof => {
            ("the source ends in the middle of a statement".into(), Some("close the open bracket or string".into()))
        }
        ParseErrorType::UnrecognizedToken(Tok::Newline, _) if compound => {
            (format!("the `{}` line does not end in `:`", line.word), Some("add a `:` at its end".into()))
        }
        ParseErrorType::UnrecognizedToken(Tok::Newline, _) => {
            ("the line ends in the middle of a statement".into(), None)
        }
        ParseErrorType::UnrecognizedToken(Tok::Indent, _) => {
            ("this line is indented, but nothing above opens a block".into(), None)
        }
        ParseErrorType::UnrecognizedToken(_, Some(expected)) if expected == "Indent" => {
            ("an indented block must follow here".into(), Some("write `pass` for an empty block".into()))
        }
        ParseErrorType::UnrecognizedToken(Tok::Dedent, _) => {
            ("the block ends in the middle of a statement".into(), None)
        }
        ParseErrorType::UnrecognizedToken(Tok::Equal, _) if ["if", "elif", "while"].contains(&line.word) => {
            ("`=` cannot be used in a condition".into(), Some("write `==` to compare".into()))
        }
        ParseErrorType::UnrecognizedToken(tok, expected) => {
            let found = token_text(tok, text, span);
            let expected = expected.as_deref().map(|word| word.trim_matches('"'));
            let message = match expected {
                Some(expected) => format!("expected `{expected}` here, not {found}"),
                None => format!("{found} is not allowed here"),
            };
            (message, None)
        }
        ParseErrorType::ExtraToken(tok) => (format!("unexpected {}", token_text(tok, text, span)), None),
        ParseErrorType::InvalidToken => ("this is not a Python token".into(), None),
        ParseErrorType::Lexical(lexical) => lexical_sentence(lexical),
    }
}

fn lexical_sentence(error: &LexicalErrorType) -> (String, Option<String>) {
    match error {
        LexicalErrorType::UnrecognizedToken { tok } => (format!("the character `{tok}` is not allowed here"), None),
        LexicalErrorType::NestingError => ("this bracket does not match an open bracket".into(), None),
        LexicalErrorType::IndentationError => ("the indentation does not match any block above".into(), None),
        LexicalErrorType::TabError | LexicalErrorType::TabsAfterSpaces => {
            ("the indentation mixes tabs and spaces".into(), Some("use spaces only".into()))
        }
        LexicalErrorType::StringError => ("a string is not closed on its line".into(), None),
        LexicalErrorType::UnicodeError => {
            ("a `\\u`, `\\U`, `\\x` or `\\N` escape in this string is invalid".into(), None)
        }
        LexicalErrorType::LineContinuationError => {
            ("unexpected characters after the `\\` that continues the line".into(), None)
        }
        LexicalErrorType::Eof => {
            ("the source ends in the middle of a statement".into(), Some("close the open bracket or string".into()))
        }
        // The parser sees formatted strings as plain ones.
        LexicalErrorType::FStringError(fault) => (format!("weft cannot read this f-string: {fault}"), None),
        LexicalErrorType::OtherError(text) if text.contains("EOL") => {
            ("a string is not closed on its line".into(), None)
        }
        LexicalErrorType::OtherError(text) => (text.clone(), None),
        LexicalErrorType::DuplicateArgumentError(name) => (format!("the parameter `{name}` is declared twice"), None),
        LexicalErrorType::DuplicateKeywordArgumentError(name) => {
            (format!("the argument `{name}=` is passed twice"), None)
        }
        LexicalErrorType::DefaultArgumentError => {
            ("a parameter without a default follows one with a default".into(), None)
        }
        LexicalErrorType::PositionalArgumentError => ("a positional argument follows a keyword argument".into(), None),
        LexicalErrorType::UnpackedArgumentError => ("`*` follows `**` in a call".into(), None),
    }
}

fn token_text(tok: &Tok, text: &str, span: Span) -> String {
    match text.get(span.start as usize..span.end as usize).map(str::trim) {
        Some(found) if !found.is_empty() => format!("`{found}`"),
        _ => match tok {
            Tok::EndOfFile => "the end of the source".into(),
            Tok::Newline => "the end of the line".into(),
            other => other.to_string(),
        },
    }
}

/// The token that starts at an offset: a word, a number or one character. At a line's end it is the empty span after
/// its last character.
pub(super) fn token_at(text: &str, offset: u32, file: u32) -> Span {
    let mut start = offset as usize;
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let indent = text.get(start..).map_or(0, |rest| rest.len() - rest.trim_start_matches([' ', '\t']).len());
    start += indent;
    let rest = text.get(start..).unwrap_or("");
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    let length = match rest.chars().next() {
        None | Some('\n' | '\r') => 0,
        Some(_) if word > 0 => word,
        Some(c) => c.len_utf8(),
    };
    if length == 0 {
        // At the end of a text, go back to the end of its last nonempty line.
        let head = text.get(..start).unwrap_or("");
        start = if rest.is_empty() { head.trim_end().len() } else { start };
    }
    Span { file, start: start as u32, end: (start + length) as u32 }
}
