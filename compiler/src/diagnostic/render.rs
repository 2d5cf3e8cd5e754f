//! Renders diagnostics as text and as JSON. No other module does so or uses annotate-snippets.
//!
//! Lines and columns are those of the user's own file, even if only a part of it was parsed.

use std::fmt::Write as _;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Severity};
use crate::source::{SourceFile, SourceMap, Span};

/// The text for the user: code, message, file and line, the line with carets, labels, notes, suggestion. After several
/// diagnostics a last line counts them.
pub fn render_text(diagnostics: &[Diagnostic], sources: &SourceMap, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut parts: Vec<String> =
        diagnostics.iter().map(|diagnostic| render_one(diagnostic, sources, &renderer)).collect();
    if diagnostics.len() > 1 {
        parts.push(count(diagnostics));
    }
    let mut text = parts.join("\n\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// `2 errors`, `1 error, 1 warning`.
fn count(diagnostics: &[Diagnostic]) -> String {
    let of = |severity, name| {
        let n = diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
        (n > 0).then(|| format!("{n} {name}{}", if n == 1 { "" } else { "s" }))
    };
    let counts = [of(Severity::Error, "error"), of(Severity::Warning, "warning"), of(Severity::Note, "note")];
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn render_one(diagnostic: &Diagnostic, sources: &SourceMap, renderer: &Renderer) -> String {
    let own = render_own(diagnostic, sources, renderer);
    // Numba's message is the last line, verbatim, so that users can search for it.
    diagnostic.words().map_or_else(|| own.clone(), |words| format!("{own}\n\n{words}"))
}

/// Renders weft's part of a diagnostic, without Numba's message.
fn render_own(diagnostic: &Diagnostic, sources: &SourceMap, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.number());
    let shown = AnnotatedFile::all(diagnostic, sources);
    if shown.is_empty() {
        // Without a source line, the renderer would draw an empty frame.
        let notes = diagnostic.notes.iter().map(|note| Group::with_title(Level::NOTE.secondary_title(note.as_str())));
        let help = diagnostic.help.iter().map(|help| Group::with_title(Level::HELP.secondary_title(help.as_str())));
        let groups: Vec<Group<'_>> = std::iter::once(Group::with_title(title)).chain(notes).chain(help).collect();
        return groups.iter().map(|group| renderer.render(std::slice::from_ref(group))).collect::<Vec<_>>().join("\n");
    }
    let mut group = Group::with_title(title).elements(shown.iter().map(AnnotatedFile::snippet));
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

/// A file with the spans that a diagnostic shows in it.
struct AnnotatedFile<'a> {
    file: &'a SourceFile,
    index: u32,
    /// The file's text, with the removed indentation restored in front of each line.
    text: String,
    /// Span, label, and whether it is the main span.
    places: Vec<(Span, &'a str, bool)>,
}

impl<'a> AnnotatedFile<'a> {
    /// The file of the diagnostic's main span first, then those of its labels.
    fn all(diagnostic: &'a Diagnostic, sources: &'a SourceMap) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let main = (diagnostic.span, diagnostic.label.as_str(), true);
        for place in
            std::iter::once(main).chain(diagnostic.labels.iter().map(|(span, text)| (*span, text.as_str(), false)))
        {
            let Some(file) = sources.file(place.0) else { continue };
            match all.iter_mut().find(|shown| shown.index == place.0.file) {
                Some(shown) => shown.places.push(place),
                None => all.push(Self { file, index: place.0.file, text: uncut(file), places: vec![place] }),
            }
        }
        all
    }

    fn snippet(&self) -> Snippet<'_, Annotation<'_>> {
        Snippet::source(self.text.as_str())
            .path(self.file.name.as_str())
            .line_start(self.file.first_line as usize)
            .annotations(self.places.iter().map(|(span, label, main)| {
                let kind = if *main { AnnotationKind::Primary } else { AnnotationKind::Context };
                let annotation = kind.span(self.offset(span.start)..self.offset(span.end));
                if label.is_empty() { annotation } else { annotation.label(*label) }
            }))
    }

    /// Converts a byte offset in the file to one in `text`.
    fn offset(&self, offset: u32) -> usize {
        let text = &self.file.text;
        let mut offset = (offset as usize).min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let lines = 1 + text.get(..offset).unwrap_or("").matches('\n').count();
        offset + lines * self.file.cut_columns as usize
    }
}

fn uncut(file: &SourceFile) -> String {
    if file.cut_columns == 0 {
        return file.text.clone();
    }
    let indent = " ".repeat(file.cut_columns as usize);
    format!("{indent}{}", file.text.replace('\n', &format!("\n{indent}")))
}

/// A JSON array with one object per diagnostic: `code`, `severity`, `message`, the location (`file`, `line`, `column`,
/// `end_line`, `end_column`: counted from 1, columns in characters, the end is one past the last character; null if
/// there is no location), `label`, `labels` (objects with a location and `label`), `notes`, `help` (a string or null).
pub fn render_json(diagnostics: &[Diagnostic], sources: &SourceMap) -> String {
    let objects: Vec<String> = diagnostics.iter().map(|diagnostic| json_one(diagnostic, sources)).collect();
    if objects.is_empty() {
        return "[]\n".to_owned();
    }
    format!("[\n  {}\n]\n", objects.join(",\n  "))
}

fn json_one(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let labels: Vec<String> = diagnostic
        .labels
        .iter()
        .map(|(span, text)| format!("{{{}, \"label\": {}}}", json_location(*span, sources), json_string(text)))
        .collect();
    let notes: Vec<String> =
        diagnostic.notes.iter().cloned().chain(diagnostic.words()).map(|note| json_string(&note)).collect();
    format!(
        "{{\"code\": {}, \"severity\": \"{severity}\", \"message\": {}, {}, \"label\": {}, \"labels\": [{}], \"notes\": [{}], \"help\": {}}}",
        json_string(diagnostic.code.number()),
        json_string(&diagnostic.message),
        json_location(diagnostic.span, sources),
        json_string(&diagnostic.label),
        labels.join(", "),
        notes.join(", "),
        diagnostic.help.as_deref().map_or_else(|| "null".to_owned(), json_string),
    )
}

fn json_location(span: Span, sources: &SourceMap) -> String {
    let Some(file) = sources.file(span) else {
        return "\"file\": null, \"line\": null, \"column\": null, \"end_line\": null, \"end_column\": null".to_owned();
    };
    let (line, column) = file.line_column(span.start);
    let (end_line, end_column) = file.line_column(span.end);
    format!(
        "\"file\": {}, \"line\": {line}, \"column\": {column}, \"end_line\": {end_line}, \"end_column\": {end_column}",
        json_string(&file.name)
    )
}

fn json_string(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            c if c.is_control() => {
                // Every control character is in the basic plane, so one escape is enough.
                let _infallible = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diagnostic::Code;

    fn sources() -> SourceMap {
        let mut sources = SourceMap::default();
        sources.add(&Arc::new(SourceFile {
            first_line: 11,
            cut_columns: 4,
            ..SourceFile::new("dir/k.py", "def k(x):\n    é = x[0, 1]\n")
        }));
        sources.add(&Arc::new(SourceFile::new("other.py", "N = 1\n")));
        sources
    }

    fn sample() -> Diagnostic {
        Diagnostic::error(Code::IndexCount, Span { file: 0, start: 19, end: 26 }, "`x` has 1 dimension, not \"2\"")
            .label("2 indices")
            .also(Span { file: 0, start: 6, end: 7 }, "`x` is array(float32, 1d, C)")
            .also(Span { file: 1, start: 0, end: 1 }, "from here")
            .note("a note")
            .help("write `x[0]`")
    }

    #[test]
    fn text_shows_the_users_own_lines_and_columns() {
        let text = render_text(&[sample()], &sources(), false);
        let expected = "\
error[E0208]: `x` has 1 dimension, not \"2\"
  --> dir/k.py:12:13
   |
11 |     def k(x):
   |           - `x` is array(float32, 1d, C)
12 |         é = x[0, 1]
   |             ^^^^^^^ 2 indices
   |
  ::: other.py:1:1
   |
 1 | N = 1
   | - from here
   |
   = note: a note
   = help: write `x[0]`
";
        assert_eq!(text, expected);
    }

    #[test]
    fn several_are_counted_and_a_place_may_be_missing() {
        let nowhere = Span { file: 9, ..Span::default() };
        let bare = Diagnostic::error(Code::NoKernel, nowhere, "there is no kernel");
        let warning = Diagnostic::warning(Code::NoKernel, nowhere, "hm");
        let text = render_text(&[bare.clone(), bare, warning], &sources(), false);
        assert_eq!(
            text,
            "error[E0303]: there is no kernel\n\nerror[E0303]: there is no kernel\n\nwarning[E0303]: hm\n\n2 errors, 1 warning\n"
        );
    }

    #[test]
    fn colors_are_escapes_around_the_same_words() {
        let text = render_text(&[sample()], &sources(), true);
        assert!(text.contains("\u{1b}[") && text.contains("2 indices"));
    }

    #[test]
    fn json_escapes_and_places() {
        let json = render_json(&[sample()], &sources());
        let expected = concat!(
            "[\n  {\"code\": \"E0208\", \"severity\": \"error\", \"message\": \"`x` has 1 dimension, not \\\"2\\\"\", ",
            "\"file\": \"dir/k.py\", \"line\": 12, \"column\": 13, \"end_line\": 12, \"end_column\": 20, ",
            "\"label\": \"2 indices\", \"labels\": [{\"file\": \"dir/k.py\", \"line\": 11, \"column\": 11, \"end_line\": 11, ",
            "\"end_column\": 12, \"label\": \"`x` is array(float32, 1d, C)\"}, {\"file\": \"other.py\", \"line\": 1, ",
            "\"column\": 1, \"end_line\": 1, \"end_column\": 2, \"label\": \"from here\"}], \"notes\": [\"a note\"], ",
            "\"help\": \"write `x[0]`\"}\n]\n",
        );
        assert_eq!(json, expected);
        assert_eq!(json_string("a\"\\\n\u{7}ü"), "\"a\\\"\\\\\\n\\u0007ü\"");
        assert_eq!(render_json(&[], &sources()), "[]\n");
    }

    #[test]
    fn a_span_outside_of_the_text_is_clamped() {
        let wild = Diagnostic::error(Code::Internal, Span { file: 1, start: 90, end: 99 }, "wild");
        assert!(render_text(&[wild], &sources(), false).contains("other.py:"));
    }
}
