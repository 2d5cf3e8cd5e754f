//! Diagnostics in formats for other programs: SARIF 2.1.0, for code scanning, and GitHub's workflow commands, which
//! become annotations of a pull request.

use std::fmt::Write as _;

use serde_json::{Value, json};
use weft_compiler::{
    VERSION,
    diagnostic::{Code, Diagnostic, Severity, explain},
};

use crate::report::{Report, ReportedSpan};

/// The report as a SARIF 2.1.0 log with one run.
pub(super) fn sarif(report: &Report) -> String {
    let diagnostics = report.sorted();
    let mut codes: Vec<Code> = Vec::new();
    for diagnostic in &diagnostics {
        if !codes.contains(&diagnostic.code) {
            codes.push(diagnostic.code);
        }
    }
    let rules = codes.iter().map(|code| {
        json!({
            "id": code.number(),
            "shortDescription": {"text": code.title()},
            "help": {"text": explain(*code), "markdown": explain(*code)},
        })
    });
    let results = diagnostics.iter().map(|diagnostic| {
        let related = (1..).zip(&diagnostic.labels).filter_map(|(id, (span, text))| {
            let mut location = location(&report.shown(*span)?);
            *location.get_mut("message")? = json!({"text": text});
            location.as_object_mut()?.insert("id".to_owned(), json!(id));
            Some(location)
        });
        json!({
            "ruleId": diagnostic.code.number(),
            "ruleIndex": codes.iter().position(|code| *code == diagnostic.code),
            "level": level(diagnostic.severity),
            "message": {"text": sentence(diagnostic)},
            "locations": report.shown(diagnostic.span).iter().map(without_message).collect::<Vec<_>>(),
            "relatedLocations": related.collect::<Vec<_>>(),
        })
    });
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "weft", "version": VERSION, "rules": rules.collect::<Vec<_>>()}},
            // Columns are counted in characters.
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    });
    format!("{log:#}\n")
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn without_message(place: &ReportedSpan) -> Value {
    let mut location = location(place);
    if let Some(fields) = location.as_object_mut() {
        fields.remove("message");
    }
    location
}

/// A SARIF location. Lines of a notebook cell count from the cell's start, so they are no region of the notebook's
/// file.
fn location(place: &ReportedSpan) -> Value {
    let ReportedSpan { file, cell, start, end } = place;
    let artifact = json!({"uri": uri(file)});
    match cell {
        None => json!({
            "message": null,
            "physicalLocation": {
                "artifactLocation": artifact,
                "region": {"startLine": start.0, "startColumn": start.1, "endLine": end.0, "endColumn": end.1},
            },
        }),
        Some(number) => json!({
            "message": null,
            "physicalLocation": {"artifactLocation": artifact},
            "logicalLocations": [{"name": format!("cell {number}, line {}, column {}", start.0, start.1)}],
        }),
    }
}

/// A path as a URI. A relative path becomes a relative reference.
pub(crate) fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.strip_prefix("./").unwrap_or(path).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _infallible = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// The message, label, notes and help of a diagnostic, without locations.
pub(crate) fn sentence(diagnostic: &Diagnostic) -> String {
    let label = if diagnostic.label.is_empty() { String::new() } else { format!(" ({})", diagnostic.label) };
    let notes = diagnostic.notes.iter().map(|note| format!("\nnote: {note}"));
    let help = diagnostic.help.iter().map(|help| format!("\nhelp: {help}"));
    std::iter::once(format!("{}{label}", diagnostic.message)).chain(notes).chain(help).collect()
}

/// One workflow command per diagnostic: `::error file=…,line=…::message`.
pub(super) fn github(report: &Report) -> String {
    let mut text = String::new();
    for diagnostic in report.sorted() {
        let command = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let mut message = sentence(&diagnostic);
        let mut properties = Vec::new();
        if let Some(ReportedSpan { file, cell, start, end }) = report.shown(diagnostic.span) {
            properties.push(("file", file));
            if let Some(number) = cell {
                message = format!("cell {number}, line {}: {message}", start.0);
            } else {
                properties.extend([("line", start.0.to_string()), ("endLine", end.0.to_string())]);
                if start.0 == end.0 {
                    // GitHub's end column is inclusive.
                    let last = end.1.saturating_sub(1).max(start.1);
                    properties.extend([("col", start.1.to_string()), ("endColumn", last.to_string())]);
                }
            }
        }
        properties.push(("title", format!("weft {}", diagnostic.code.number())));
        let properties: Vec<String> =
            properties.iter().map(|(name, value)| format!("{name}={}", escaped(value, true))).collect();
        let _infallible = writeln!(text, "::{command} {}::{}", properties.join(","), escaped(&message, false));
    }
    text
}

/// Escapes text for a workflow command. Properties need more escapes than messages.
fn escaped(text: &str, is_property: bool) -> String {
    let mut escaped = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    if is_property {
        escaped = escaped.replace(':', "%3A").replace(',', "%2C");
    }
    escaped
}
