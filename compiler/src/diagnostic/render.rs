//! Diagnostics as text and as JSON.

use super::Diagnostic;
use crate::source::SourceMap;

/// The text that a user reads: code, message, file and line, the line with carets, labels, notes, way out.
pub fn render_text(_diagnostics: &[Diagnostic], _sources: &SourceMap, _color: bool) -> String {
    String::new()
}

/// A JSON array with one object a diagnostic.
pub fn render_json(_diagnostics: &[Diagnostic], _sources: &SourceMap) -> String {
    String::new()
}
