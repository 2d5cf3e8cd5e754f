//! What goes wrong: diagnostics of several compilations as one list, and what ends the command.

use std::io;

use weft_compiler::{
    diagnostic::{Code, Diagnostic, Severity, render_json, render_text},
    source::{SourceFile, SourceMap, Span},
};

/// Why a command cannot go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The command line makes no sense, a file cannot be read, a tool is missing.
    Usage(String),
    /// The output cannot be written.
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Diagnostics of several compilations. One that several of them have is kept once.
#[derive(Debug, Default)]
pub(crate) struct Report {
    diagnostics: Vec<Diagnostic>,
    sources: SourceMap,
}

impl Report {
    /// Adds diagnostics whose spans are of `sources`.
    pub(crate) fn add(&mut self, diagnostics: &[Diagnostic], sources: &SourceMap) {
        for diagnostic in diagnostics {
            let mut diagnostic = diagnostic.clone();
            diagnostic.span = self.place(diagnostic.span, sources);
            for (span, _) in &mut diagnostic.labels {
                *span = self.place(*span, sources);
            }
            if !self.has(&diagnostic) {
                self.diagnostics.push(diagnostic);
            }
        }
    }

    /// Adds one whose place is in a text of its own, such as an argument of the command line.
    pub(crate) fn add_in(&mut self, diagnostic: Diagnostic, file: SourceFile) {
        let mut sources = SourceMap::default();
        sources.add(&file.into());
        self.add(&[diagnostic], &sources);
    }

    /// Adds one that has no place.
    pub(crate) fn add_nowhere(&mut self, diagnostic: Diagnostic) {
        self.add(&[diagnostic], &SourceMap::default());
    }

    fn has(&self, diagnostic: &Diagnostic) -> bool {
        let same = |known: &Diagnostic| {
            known.code == diagnostic.code && known.span == diagnostic.span && known.message == diagnostic.message
        };
        self.diagnostics.iter().any(same)
    }

    /// The span in this report's own list of files.
    fn place(&mut self, span: Span, sources: &SourceMap) -> Span {
        let file = sources.files().get(span.file as usize);
        Span { file: file.map_or(u32::MAX, |file| self.sources.add(file)), ..span }
    }

    /// Whether something was rejected.
    pub(crate) fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Whether there is an error with this code at this place.
    pub(crate) fn has_error_at(&self, code: Code, span: Span, sources: &SourceMap) -> bool {
        let file = sources.files().get(span.file as usize);
        self.diagnostics.iter().any(|known| {
            let same_file = self.sources.files().get(known.span.file as usize) == file;
            known.code == code && same_file && (known.span.start, known.span.end) == (span.start, span.end)
        })
    }

    /// The text for the user; as JSON even an empty report is a document.
    pub(crate) fn render(&self, json: bool, color: bool) -> String {
        let mut sorted = self.diagnostics.clone();
        // In the order of the lines of each file, after what has no place.
        sorted
            .sort_by_key(|diagnostic| (diagnostic.span.file != u32::MAX, diagnostic.span.file, diagnostic.span.start));
        if json { render_json(&sorted, &self.sources) } else { render_text(&sorted, &self.sources, color) }
    }
}
