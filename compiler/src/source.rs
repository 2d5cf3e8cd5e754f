//! Source files and locations in them.
//!
//! A `SourceFile` is the text that the parser reads. Python often passes only a part of a file (a decorated function),
//! so a `SourceFile` records the line of the user's file at which the text begins. All locations that a user sees are
//! converted by [`SourceFile::line_column`].

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

    /// Whether it contains another span.
    pub const fn contains(self, other: Self) -> bool {
        self.file == other.file && self.start <= other.start && other.end <= self.end
    }
}

/// The owner of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The user.
    #[default]
    User,
    /// weft itself: its functions raise nothing, and no message points into them.
    Prelude,
}

/// A source text and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The name to show: the user's path.
    pub name: String,
    /// The text as parsed.
    pub text: String,
    /// The line number, counted from 1, that the first line of `text` has in the user's file.
    pub first_line: u32,
    /// The number of columns that were removed from the start of every line (0 if the text is unchanged).
    pub cut_columns: u32,
    /// The owner of the text, independent of the name.
    pub origin: Origin,
}

impl SourceFile {
    /// A whole file of the user.
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
    /// Adds a file, or finds it, and returns its index.
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

    /// The text that a span covers; empty if the span's file is unknown.
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
