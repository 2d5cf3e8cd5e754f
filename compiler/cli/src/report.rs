//! Diagnostics of several compilations, merged into one list, and errors that end the command.

use std::{collections::BTreeMap, io};

use weft_compiler::{
    diagnostic::{Code, Diagnostic, Severity, render_json, render_text},
    source::{SourceFile, SourceMap, Span},
};

use crate::check::Notebook;

/// The error that ends a command.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Invalid arguments, an unreadable file or a missing tool.
    Usage(String),
    /// The output cannot be written.
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Diagnostics of several compilations, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Report {
    diagnostics: Vec<Diagnostic>,
    sources: SourceMap,
    /// Notebook cells among the files: display name of the cell → path of the notebook and number of the cell.
    cells: BTreeMap<String, (String, u32)>,
}

/// A span for the user. Lines and columns count from 1, columns in characters. The end is exclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportedSpan {
    /// The file's path.
    pub(crate) file: String,
    /// The notebook cell in which lines are counted.
    pub(crate) cell: Option<u32>,
    pub(crate) start: (u32, u32),
    pub(crate) end: (u32, u32),
}

impl Report {
    /// Adds diagnostics whose spans refer to `sources`.
    pub(crate) fn add(&mut self, diagnostics: &[Diagnostic], sources: &SourceMap) {
        for diagnostic in diagnostics {
            let mut diagnostic = diagnostic.clone();
            // Remarks about Numba are omitted for a file that does not mention Numba.
            if !sources.file(diagnostic.span).is_some_and(|file| file.text.contains("numba")) {
                diagnostic.numba = None;
            }
            diagnostic.span = self.location(diagnostic.span, sources);
            for (span, _) in &mut diagnostic.labels {
                *span = self.location(*span, sources);
            }
            if !self.has(&diagnostic) {
                self.diagnostics.push(diagnostic);
            }
        }
    }

    /// Adds a diagnostic in a separate text, such as a command-line argument.
    pub(crate) fn add_in(&mut self, diagnostic: Diagnostic, file: SourceFile) {
        let mut sources = SourceMap::default();
        sources.add(&file.into());
        self.add(&[diagnostic], &sources);
    }

    /// Adds the diagnostics of another report.
    pub(crate) fn merge(&mut self, other: Self) {
        self.add(&other.diagnostics, &other.sources);
        self.cells.extend(other.cells);
    }

    /// Registers a file as a cell of a notebook.
    pub(crate) fn name_cell(&mut self, name: String, notebook: &str, number: u32) {
        self.cells.insert(name, (notebook.to_owned(), number));
    }

    /// Moves spans in the joined text of a notebook to its cells.
    pub(crate) fn move_to_cells(&mut self, notebook: &Notebook) {
        let Self { diagnostics, sources, .. } = self;
        let mut move_one = |span: &mut Span| {
            let is_joined = sources.file(*span).is_some_and(|file| file.name == notebook.name);
            if let Some((file, within)) = notebook.location(*span).filter(|_| is_joined) {
                *span = Span { file: sources.add(&file), ..within };
            }
        };
        for diagnostic in diagnostics {
            move_one(&mut diagnostic.span);
            for (span, _) in &mut diagnostic.labels {
                move_one(span);
            }
        }
    }

    /// Adds a diagnostic without a span.
    pub(crate) fn add_nowhere(&mut self, diagnostic: Diagnostic) {
        self.add(&[diagnostic], &SourceMap::default());
    }

    fn has(&self, diagnostic: &Diagnostic) -> bool {
        let same = |known: &Diagnostic| {
            known.code == diagnostic.code && known.span == diagnostic.span && known.message == diagnostic.message
        };
        self.diagnostics.iter().any(same)
    }

    /// Maps a span from `sources` to this report's own list of files.
    fn location(&mut self, span: Span, sources: &SourceMap) -> Span {
        let file = sources.files().get(span.file as usize);
        Span { file: file.map_or(u32::MAX, |file| self.sources.add(file)), ..span }
    }

    /// Whether the report contains an error.
    pub(crate) fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Whether the report contains an error with this code and span.
    pub(crate) fn has_error_at(&self, code: Code, span: Span, sources: &SourceMap) -> bool {
        let file = sources.files().get(span.file as usize);
        self.diagnostics.iter().any(|known| {
            let same_file = self.sources.files().get(known.span.file as usize) == file;
            known.code == code && same_file && (known.span.start, known.span.end) == (span.start, span.end)
        })
    }

    /// The file, line and column of a span. `None` if it is in no file.
    pub(crate) fn shown(&self, span: Span) -> Option<ReportedSpan> {
        let file = self.sources.file(span)?;
        let (start, end) = (file.line_column(span.start), file.line_column(span.end));
        let (name, cell) = match self.cells.get(&file.name) {
            Some((notebook, number)) => (notebook.clone(), Some(*number)),
            None => (file.name.clone(), None),
        };
        Some(ReportedSpan { file: name, cell, start, end })
    }

    /// The files that spans refer to.
    pub(crate) fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// The diagnostics, sorted by file and offset. Those without a span come first.
    pub(crate) fn sorted(&self) -> Vec<Diagnostic> {
        let mut sorted = self.diagnostics.clone();
        sorted
            .sort_by_key(|diagnostic| (diagnostic.span.file != u32::MAX, diagnostic.span.file, diagnostic.span.start));
        sorted
    }

    /// The rendered report. An empty report is still a JSON document.
    pub(crate) fn render(&self, json: bool, color: bool) -> String {
        let sorted = self.sorted();
        if !json {
            return render_text(&sorted, &self.sources, color);
        }
        let mut text = render_json(&sorted, &self.sources);
        let file = |name: &str| format!("\"file\": {}", serde_json::Value::from(name));
        for (name, (notebook, number)) in &self.cells {
            text = text.replace(&format!("{}, ", file(name)), &format!("{}, \"cell\": {number}, ", file(notebook)));
        }
        text
    }
}
