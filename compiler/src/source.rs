//! Source texts and places in them.
//!
//! A `SourceFile` is the text that the parser sees. What Python hands over is often a part of a file (a decorated
//! function), so the file knows on which line of the user's own file its first line stands; everything shown to a
//! user goes through [`SourceFile::line_column`].

use std::{fmt, sync::Arc};

/// A byte range of one source file, and which file. `start <= end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Index into the compilation's list of files ([`SourceMap`]).
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span from the start of `self` to the end of `other`, which is in the same file.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether another one lies in it.
    pub const fn contains(self, other: Self) -> bool {
        self.file == other.file && self.start <= other.start && other.end <= self.end
    }
}

/// Whose a text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The user's.
    #[default]
    User,
    /// weft's own: its functions raise nothing, and no message points into them.
    Prelude,
}

/// One text, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The name to show: the user's path.
    pub name: String,
    /// The text as parsed.
    pub text: String,
    /// The line number, counted from 1, that the first line of `text` has in the user's file.
    pub first_line: u32,
    /// Columns that were cut off in front of every line (0 where the text is as the user wrote it).
    pub cut_columns: u32,
    /// Whose it is, whatever its name.
    pub origin: Origin,
}

impl SourceFile {
    /// A whole file of the user's.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), first_line: 1, cut_columns: 0, origin: Origin::User }
    }

    /// Line and column, both counted from 1 (columns in characters), of a byte offset, in the user's own file.
    pub fn line_column(&self, offset: u32) -> (u32, u32) {
        let head = self.text.get(..offset as usize).unwrap_or(&self.text);
        let line = head.matches('\n').count() as u32;
        let start = head.rfind('\n').map_or(0, |newline| newline + 1);
        let column = head.get(start..).unwrap_or("").chars().count() as u32;
        (self.first_line + line, self.cut_columns + column + 1)
    }
}

/// The files of one compilation: the kernel's, and those of the device functions that it calls.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<Arc<SourceFile>>,
}

impl SourceMap {
    /// Adds a file, or finds it, and gives its index.
    pub fn add(&mut self, file: &Arc<SourceFile>) -> u32 {
        if let Some(index) = self.files.iter().position(|known| Arc::ptr_eq(known, file) || known == file) {
            return index as u32;
        }
        self.files.push(Arc::clone(file));
        (self.files.len() - 1) as u32
    }

    /// The file that a span is in.
    pub fn file(&self, span: Span) -> Option<&SourceFile> {
        self.files.get(span.file as usize).map(AsRef::as_ref)
    }

    /// The text that a span covers; empty where the span is of no known file.
    pub fn text(&self, span: Span) -> &str {
        self.file(span).and_then(|file| file.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }

    /// All files, in the order of their indices.
    pub fn files(&self) -> &[Arc<SourceFile>] {
        &self.files
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}..{}", self.file, self.start, self.end)
    }
}
