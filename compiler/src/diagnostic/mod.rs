//! Errors, warnings and notes about a program, as data that is rendered last.
//!
//! A diagnostic has a code (a row of [`codes`]), a span, labels, notes and, where one exists, a suggestion. Only
//! [`render`] formats diagnostics as text or JSON; [`explain`] holds a page for each code.

pub mod codes;
mod explain;
mod instead;
mod real;
mod render;
mod suggest;

pub use codes::Code;
pub use explain::explain;
pub use instead::{NameContext, hint, instead, unexpected_option};
pub use real::is_real;
pub use render::{render_json, render_text};
pub use suggest::{closest, nearest};

use crate::source::{SourceMap, Span};

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The program is rejected.
    Error,
    /// The program compiles, but something in it is probably a mistake.
    Warning,
    /// The program compiles; the user requested information about it.
    Note,
}

/// An error, a warning or a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its row in the table of codes.
    pub code: Code,
    /// Error, warning or note.
    pub severity: Severity,
    /// One sentence, no full stop: what is wrong, with the names and types in question.
    pub message: String,
    /// The main span, shown with carets.
    pub span: Span,
    /// The label below the carets; may be empty.
    pub label: String,
    /// Secondary spans with their labels ("`acc` became float64 here").
    pub labels: Vec<(Span, String)>,
    /// Additional remarks.
    pub notes: Vec<String>,
    /// Numba's message for the same error, for users who know it; may have several lines.
    pub numba: Option<String>,
    /// The suggested fix.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error with a message at a span; the builder methods add the rest.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            span,
            label: String::new(),
            labels: Vec::new(),
            notes: Vec::new(),
            numba: None,
            help: None,
        }
    }

    /// A warning with a message at a span.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// A note with a message at a span.
    pub fn note_at(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(code, span, message) }
    }

    /// Sets the label under the carets.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Adds a secondary span.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push((span, text.into()));
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Sets Numba's message for the same error.
    #[must_use]
    pub fn numba(mut self, text: impl Into<String>) -> Self {
        self.numba = Some(text.into());
        self
    }

    /// Numba's message, as it is printed.
    fn words(&self) -> Option<String> {
        self.numba.as_ref().map(|words| format!("Numba's message: {words}"))
    }

    /// Sets the suggestion.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Sets the suggestion if there is one.
    #[must_use]
    pub fn help_if(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.help(text),
            None => self,
        }
    }
}

/// Why a compilation failed: at least one error, and the files that spans refer to.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Errors and warnings in source order.
    pub diagnostics: Vec<Diagnostic>,
    /// The files.
    pub sources: SourceMap,
}
