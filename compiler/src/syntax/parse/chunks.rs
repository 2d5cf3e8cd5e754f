//! Cuts a Python text into its top-level statements without parsing it.
//!
//! Used only for a file that the parser cannot read as a whole (a newer f-string, say): then one statement that is not
//! understood must not hide the others. The cuts lie at lines that start in column 0 outside of strings and brackets.

use std::ops::Range;

/// Words that go on with the statement above.
const CONTINUING: [&str; 4] = ["else", "elif", "except", "finally"];

/// Byte ranges of the top-level statements, in order. Decorators go with what they decorate; blank lines and comments
/// in between are in no range or at the end of one.
pub(super) fn split(text: &str) -> Vec<Range<usize>> {
    let mut chunks: Vec<Range<usize>> = Vec::new();
    let mut scanner = Scanner::default();
    let mut decorated = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        // Nothing inside a bracket starts like this: an unbalanced bracket ends at the next definition.
        if scanner.triple.is_none() && scanner.depth > 0 && opens_definition(line) {
            scanner = Scanner::default();
        }
        let fresh = scanner.is_between_statements() && starts_statement(line);
        if fresh && !decorated {
            chunks.push(start..at);
        } else if let Some(last) = chunks.last_mut() {
            last.end = at;
        }
        if fresh {
            decorated = line.starts_with('@');
        }
        scanner.scan(line);
    }
    chunks
}

fn starts_statement(line: &str) -> bool {
    let Some(first) = line.chars().next() else { return false };
    if first.is_whitespace() || first == '#' {
        return false;
    }
    let word: String = line.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    !CONTINUING.contains(&word.as_str())
}

fn opens_definition(line: &str) -> bool {
    let decorator =
        line.strip_prefix('@').is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    let import = line.starts_with("from ") && line.contains(" import ");
    decorator || import || ["def ", "async def ", "class ", "import "].iter().any(|word| line.starts_with(word))
}

/// Where in Python's lexical structure the end of a line is.
#[derive(Default)]
struct Scanner {
    /// Open brackets.
    depth: u32,
    /// The quote of an open triple-quoted string.
    triple: Option<char>,
    /// The line ended in a backslash.
    continued: bool,
}

impl Scanner {
    fn is_between_statements(&self) -> bool {
        self.depth == 0 && self.triple.is_none() && !self.continued
    }

    fn scan(&mut self, line: &str) {
        self.continued = false;
        let mut quote: Option<char> = None;
        let mut chars = line.char_indices();
        while let Some((index, c)) = chars.next() {
            let three =
                |quote: char| line.get(index..).is_some_and(|rest| rest.starts_with(&String::from(quote).repeat(3)));
            if let Some(open) = self.triple {
                if c == '\\' {
                    chars.next();
                } else if c == open && three(open) {
                    self.triple = None;
                    chars.nth(1);
                }
                continue;
            }
            match (quote, c) {
                (_, '\\') => self.continued = matches!(chars.next(), None | Some((_, '\n' | '\r'))),
                (Some(open), _) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '#') => return,
                (None, '"' | '\'') if three(c) => {
                    self.triple = Some(c);
                    chars.nth(1);
                }
                (None, '"' | '\'') => quote = Some(c),
                (None, '(' | '[' | '{') => self.depth += 1,
                (None, ')' | ']' | '}') => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}
