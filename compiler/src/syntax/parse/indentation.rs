//! Python's rule for the indentation of lines, which is wider than the parser's.
//!
//! CPython counts an indentation twice: with tabs that go to the next multiple of 8 columns, and with tabs of one column.
//! The two counts must compare alike with those of the blocks around the line; else what the line belongs to depends on
//! the width of a tab. Where they do, the second count alone says which block a line is in, so that the parser reads the same
//! blocks from a text with a space in place of each tab.

use super::{fault::token_at, formatted::Stop, newer::Scanner};
use crate::diagnostic::{Code, Diagnostic};

/// The width of a tab in the first count.
const TAB: usize = 8;

/// The indentation of a line or a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Columns {
    /// With tabs that go to the next multiple of [`TAB`].
    wide: usize,
    /// With tabs of one column.
    narrow: usize,
}

/// The blocks around a line, but for the outermost, which has no indentation.
#[derive(Debug, Default)]
pub(super) struct Blocks(Vec<Columns>);

impl Blocks {
    fn current(&self) -> Columns {
        self.0.last().copied().unwrap_or_default()
    }

    /// Goes to a line; what is wrong with its indentation.
    fn line(&mut self, line: Columns) -> Result<(), (&'static str, Option<&'static str>)> {
        let mixed =
            Err(("the indentation mixes tabs and spaces: it depends on the width of a tab", Some("use spaces only")));
        let block = self.current();
        if line.wide > block.wide {
            self.0.push(line);
            return if line.narrow > block.narrow { Ok(()) } else { mixed };
        }
        while line.wide < self.current().wide {
            self.0.pop();
        }
        let block = self.current();
        if line.wide != block.wide {
            return Err(("the indentation does not match any block above", None));
        }
        if line.narrow == block.narrow { Ok(()) } else { mixed }
    }
}

impl Scanner<'_> {
    /// Goes over the blanks that a line begins with, and makes spaces of them.
    fn blanks(&mut self, start: usize) -> (usize, Columns) {
        let (mut at, mut columns) = (start, Columns::default());
        loop {
            match self.at(at) {
                b' ' => columns = Columns { wide: columns.wide + 1, narrow: columns.narrow + 1 },
                b'\t' => {
                    columns = Columns { wide: (columns.wide / TAB + 1) * TAB, narrow: columns.narrow + 1 };
                    self.replace(at..at + 1, b' ');
                }
                b'\x0c' => columns = Columns::default(),
                _ => return (at, columns),
            }
            at += 1;
        }
    }

    /// Goes over the indentation of a line that does not begin a statement.
    pub(super) fn inner_line(&mut self, start: usize) -> usize {
        self.blanks(start).0
    }

    /// Goes over the indentation of a line that begins a statement, if it is not empty.
    pub(super) fn line(&mut self, start: usize, blocks: &mut Blocks) -> Result<usize, Stop> {
        let (end, columns) = self.blanks(start);
        if end == self.text.len() || matches!(self.at(end), b'#' | b'\n' | b'\r') {
            return Ok(end);
        }
        blocks.line(columns).map(|()| end).map_err(|(message, help)| {
            let diagnostic = Diagnostic::error(Code::Syntax, token_at(self.source, end as u32, self.file), message);
            Stop::Fault(Box::new(match help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            }))
        })
    }
}
