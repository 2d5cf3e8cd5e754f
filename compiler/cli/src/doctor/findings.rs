//! The report of `weft doctor`: sections of properties, and problems; rendered as text or JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// A required component is broken.
    Error,
    /// weft works, but the configuration is probably not intended.
    Warning,
}

impl Severity {
    const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A problem and its fix.
#[derive(Debug)]
pub(super) struct Problem {
    severity: Severity,
    message: String,
    help: String,
}

/// A property of the machine, as text and as a JSON value.
#[derive(Debug)]
struct Row {
    label: String,
    text: String,
    value: Value,
}

/// A titled group of properties.
#[derive(Debug)]
pub(super) struct Section {
    title: &'static str,
    rows: Vec<Row>,
}

impl Section {
    /// An empty section. Its lower-case title is its key in JSON.
    pub(super) fn new(title: &'static str) -> Self {
        Self { title, rows: Vec::new() }
    }

    /// Adds a property.
    pub(super) fn row(&mut self, label: impl Into<String>, text: impl Into<String>, value: Value) {
        self.rows.push(Row { label: label.into(), text: text.into(), value });
    }
}

/// The whole report.
#[derive(Debug, Default)]
pub(super) struct Findings {
    sections: Vec<Section>,
    problems: Vec<Problem>,
}

impl Findings {
    /// Adds a section.
    pub(super) fn section(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// Adds a problem with its fix.
    pub(super) fn problem(&mut self, severity: Severity, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem { severity, message: message.into(), help: help.into() });
    }

    /// Whether a required component is broken.
    pub(super) fn is_broken(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// The report as text. Problems come last, next to the shell prompt.
    pub(super) fn text(mut self) -> String {
        self.problems.sort_by_key(|problem| problem.severity);
        let mut text = String::new();
        for Section { title, rows } in &self.sections {
            let _infallible = writeln!(text, "{title}");
            let width = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0);
            for Row { label, text: shown, .. } in rows {
                let _infallible = writeln!(text, "  {label:<width$}  {shown}");
            }
            text.push('\n');
        }
        if self.problems.is_empty() {
            text += "No problems found.\n";
            return text;
        }
        text += "Problems\n";
        for Problem { severity, message, help } in &self.problems {
            let _infallible = writeln!(text, "  {}: {message}\nhelp: {help}", severity.name());
        }
        text
    }

    /// The report as a JSON object: one object per section, whose keys are the labels of its properties; `problems`, a
    /// list of objects with `severity`, `message` and `help`; and `ok`, which is false if a required component is
    /// broken.
    pub(super) fn json(mut self) -> Value {
        self.problems.sort_by_key(|problem| problem.severity);
        let ok = !self.is_broken();
        let mut all = Map::new();
        for Section { title, rows } in self.sections {
            let values: Map<String, Value> =
                rows.into_iter().map(|row| (row.label.replace(' ', "_"), row.value)).collect();
            all.insert(title.to_lowercase(), Value::Object(values));
        }
        let problems = self.problems.into_iter().map(
            |Problem { severity, message, help }| json!({"severity": severity.name(), "message": message, "help": help}),
        );
        all.insert("problems".to_owned(), problems.collect());
        all.insert("ok".to_owned(), ok.into());
        Value::Object(all)
    }
}
