//! An open document: its diagnostics and the types of its variables, as values of the language server protocol.

use std::{path::Path, path::PathBuf};

use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, Location, NumberOrString, Position,
    Range, TextEdit, Uri,
};
use weft_compiler::{
    diagnostic::{self, Code, Severity, explain},
    request::{Keep, Options, Overloads, Request},
    source::Span,
};
use weft_engine::Engine;

use super::{fix, text};
use crate::{
    check::{Examine, TARGET, mentions, sentence, uri},
    kernels,
    program::{Captures, Program},
    report::Report,
};

/// An open document with the editor's current text.
#[derive(Debug)]
pub(super) struct Document {
    uri: Uri,
    /// The file's path. Imports of project modules are resolved in its folder.
    path: PathBuf,
    pub(super) text: String,
    pub(super) version: i32,
    /// The diagnostics of the last check.
    found: Report,
}

impl Document {
    pub(super) fn new(uri: Uri, text: String, version: i32) -> Self {
        let path = text::path(&uri).unwrap_or_else(|| PathBuf::from(uri.as_str()));
        Self { uri, path, text, version, found: Report::default() }
    }

    fn program(&self) -> Program {
        Program::read(&self.path, self.text.as_bytes())
    }

    /// Checks the text and returns its diagnostics.
    pub(super) fn examine(&mut self, engine: &Engine, notes: bool) -> Vec<Diagnostic> {
        let mut report = Report::default();
        if !mentions(self.text.as_bytes()) {
            // The file does not mention weft. Syntax that weft's parser does not support is no error then.
            self.found = report;
            return Vec::new();
        }
        let program = self.program();
        report.add(program.faults(), &program.sources());
        if !program.is_broken() {
            report.add(&kernels::missed(&program, &[]), &program.sources());
            let examine = Examine { engine, given: &[], notes };
            examine.run(&program, &program.kernels(), true, &mut report);
        }
        self.found = report;
        self.found.sorted().iter().map(|found| self.diagnostic(found)).collect()
    }

    fn diagnostic(&self, found: &diagnostic::Diagnostic) -> Diagnostic {
        let location = self.location(found.span);
        let here = location.as_ref().filter(|place| place.uri == self.uri).map(|place| place.range);
        let labels = found.labels.iter().filter_map(|(span, text)| {
            Some(DiagnosticRelatedInformation { location: self.location(*span)?, message: text.clone() })
        });
        // A diagnostic in an imported file is shown at the top of this document, with a link to its location.
        let elsewhere = location
            .filter(|_| here.is_none())
            .map(|location| DiagnosticRelatedInformation { location, message: "here".to_owned() });
        let related: Vec<_> = elsewhere.into_iter().chain(labels).collect();
        let number = found.code.number();
        Diagnostic {
            range: here.unwrap_or_default(),
            severity: Some(match found.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
                Severity::Note => DiagnosticSeverity::HINT,
            }),
            code: Some(NumberOrString::String(number.to_owned())),
            code_description: None,
            source: Some("weft".to_owned()),
            message: sentence(found),
            related_information: (!related.is_empty()).then_some(related),
            tags: None::<Vec<DiagnosticTag>>,
            data: None,
        }
    }

    /// A span as a location of the protocol.
    fn location(&self, span: Span) -> Option<Location> {
        let file = self.found.sources().file(span)?;
        let uri = if Path::new(&file.name) == self.path { self.uri.clone() } else { uri(&file.name).parse().ok()? };
        Some(Location { uri, range: text::range(&file.text, span.start, span.end) })
    }

    /// The edits that correct misspelled names in a range: title, diagnostic and edit.
    pub(super) fn fixes(&self, range: Range) -> Vec<(String, Diagnostic, TextEdit)> {
        let sorted = self.found.sorted();
        let fixes = sorted.iter().filter_map(|found| {
            let place = self.location(found.span).filter(|place| place.uri == self.uri)?.range;
            if place.end < range.start || range.end < place.start {
                return None;
            }
            let text = self.found.sources().text(found.span);
            let meant = fix::spelt(text, found.help.as_deref()?)?;
            Some((format!("Write `{meant}`"), self.diagnostic(found), TextEdit::new(place, meant)))
        });
        fixes.collect()
    }

    /// The hover text for a position: the types of the variable there, and the `weft explain` pages of the diagnostics
    /// there.
    pub(super) fn hover(&self, engine: &Engine, position: Position) -> Option<(String, Option<Range>)> {
        let at = text::offset(&self.text, position);
        let variable = self.variable(engine, at);
        let found = self.found.sorted();
        let mut codes: Vec<Code> = Vec::new();
        for one in &found {
            let is_here = self.location(one.span).is_some_and(|place| {
                place.uri == self.uri && place.range.start <= position && position <= place.range.end
            });
            if is_here && !codes.contains(&one.code) {
                codes.push(one.code);
            }
        }
        let pages: Vec<String> = codes.into_iter().map(|code| explain(code).to_owned()).collect();
        let (said, place) = variable.map_or((None, None), |(said, place)| (Some(said), Some(place)));
        let parts: Vec<String> = said.into_iter().chain(pages).collect();
        (!parts.is_empty()).then(|| (parts.join("\n\n---\n\n"), place))
    }

    /// The types of the variable at a byte offset, for each signature of each kernel that uses it.
    fn variable(&self, engine: &Engine, at: u32) -> Option<(String, Range)> {
        let program = self.program();
        let mut captures = Captures::default();
        let name = self.path.display().to_string();
        // The types of the variable for each signature: pairs of the signature's title and the types.
        let mut types: Vec<(String, Vec<String>)> = Vec::new();
        let mut found: Option<(String, Span)> = None;
        for kernel in program.kernels() {
            for job in kernels::jobs(&program, kernel, &[], &mut captures) {
                let title = job.title();
                let request = Request {
                    function: job.def,
                    overloads: Overloads::default(),
                    args: job.signature.args,
                    target: TARGET,
                    options: Options::default(),
                    keep: Keep::default(),
                };
                let (variables, sources) = engine.variables(&request);
                for variable in variables {
                    let span = variable.span;
                    let is_here = span.start <= at && at < span.end.max(span.start + 1);
                    if !is_here || sources.file(span).is_none_or(|file| file.name != name) {
                        continue;
                    }
                    found.get_or_insert_with(|| (variable.name.clone(), span));
                    let known = types.iter_mut().find(|(known, _)| *known == title);
                    match known {
                        Some((_, known)) if known.contains(&variable.ty) => {}
                        Some((_, known)) => known.push(variable.ty),
                        None => types.push((title.clone(), vec![variable.ty])),
                    }
                }
            }
        }
        let Some((name, span)) = found else { return self.untyped(&program, at) };
        let is_one = types.iter().all(|(_, own)| types.first().is_some_and(|(_, first)| own == first));
        let said = match types.as_slice() {
            [(_, first), ..] if is_one => format!("```python\n{name}: {}\n```", first.join(" | ")),
            several => {
                let lines = several.iter().map(|(title, own)| format!("{name}: {}  # {title}\n", own.join(" | ")));
                format!("```python\n{}```", lines.collect::<String>())
            }
        };
        Some((said, text::range(&self.text, span.start, span.end)))
    }

    /// The hover text in a function without a signature: how to give it one so that its types are known.
    fn untyped(&self, program: &Program, at: u32) -> Option<(String, Range)> {
        let jitted = program.jitted();
        let around = jitted
            .iter()
            .find(|kernel| (kernel.function.ast.span.start..kernel.function.ast.span.end).contains(&at))?;
        if !program.signatures(around).is_empty() {
            return None;
        }
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let (head, tail) = self.text.split_at_checked(at as usize)?;
        let start = head.trim_end_matches(word).len();
        let end = at as usize + tail.len() - tail.trim_start_matches(word).len();
        let name = self.text.get(start..end).filter(|name| !name.is_empty())?;
        let mut bound = around.function.ast.params.iter().map(|param| param.name.as_str()).collect::<Vec<_>>();
        let assigned = weft_compiler::syntax::bound_names(&around.function.ast.body);
        bound.extend(assigned.iter().map(String::as_str));
        if !bound.contains(&name) {
            return None;
        }
        let said = if around.jit.options.device {
            format!(
                "`{name}`: no kernel of this file that has a signature calls `{}`, so its types are unknown.",
                around.name
            )
        } else {
            format!(
                "`{name}`: the kernel `{}` has no signature, so its types are known only at launch. To see them here, \
                 give the decorator a signature, such as `@cuda.jit(\"void(float32[:], int32)\")`, annotate every \
                 parameter, or write the comment `# weft: sig = \"void(float32[:], int32)\"` above it.",
                around.name
            )
        };
        Some((said, text::range(&self.text, start as u32, end as u32)))
    }
}
