//! Python's rule for the indentation of lines, which is wider than the parser's.
//!
//! CPython computes two widths of an indentation: with tabs up to the next multiple of 8 columns, and with tabs of one
//! column. Both must compare alike with those of the enclosing blocks; otherwise the block of a line would depend on
//! the width of a tab. If they do, the second width alone determines the block, so the parser sees the same blocks if
//! each tab is replaced by a space.

use super::{fault::token_at, formatted::Stop, newer::Scanner};
use crate::diagnostic::{Code, Diagnostic};

/// The width of a tab in the first width.
const TAB: usize = 8;

/// The indentation of a line or a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Columns {
    /// With tabs up to the next multiple of [`TAB`].
    wide: usize,
    /// With tabs of one column.
    narrow: usize,
}

/// The blocks around a line, except the outermost one, which has no indentation.
#[derive(Debug, Default)]
pub(super) struct Blocks(Vec<Columns>);

impl Blocks {
    fn current(&self) -> Columns {
        self.0.last().copied().unwrap_or_default()
    }

    /// Advances to a line; returns what is wrong with its indentation.
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
    /// Advances over the blanks at the start of a line, and replaces them by spaces.
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

    /// Advances over the indentation of a line that does not start a statement.
    pub(super) fn inner_line(&mut self, start: usize) -> usize {
        self.blanks(start).0
    }

    /// Advances over the indentation of a line that starts a statement, if it is not empty.
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
