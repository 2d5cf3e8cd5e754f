//! The user's lines and code that spans stand for, for remarks.

use std::{collections::BTreeSet, fmt::Write as _};

use crate::{
    ir::{Module, Stmt, StmtKind, for_each_stmt},
    source::{Origin, Span},
};

/// The longest piece of source code in a sentence, in characters.
const MAX_CODE: usize = 60;

/// The line and the code of a span: ``line 12, `a[i]` ``.
pub(crate) fn at(module: &Module, span: Span) -> String {
    let mut text = place(module, span);
    let code = code(module, span);
    if !code.is_empty() {
        let _ = write!(text, ", `{code}`"); // writing to a String cannot fail
    }
    text
}

/// The line of a span, with the file if that is not the kernel's.
pub(crate) fn place(module: &Module, span: Span) -> String {
    places(module, span, 0)
}

/// The lines from that of a span to a line of its file, as [`place`].
pub(crate) fn places(module: &Module, span: Span, last: u32) -> String {
    let Some(source) = module.sources.file(span) else { return "somewhere".to_owned() };
    match source.origin {
        Origin::Prelude => "in a function of weft".to_owned(),
        Origin::User => {
            let first = source.line_column(span.start).0;
            let line = if last > first { format!("lines {first}-{last}") } else { format!("line {first}") };
            let is_other = module.kernel().and_then(|kernel| module.sources.file(kernel.span));
            if is_other.is_some_and(|own| own.name != source.name) {
                format!("{line} of {}", source.name)
            } else {
                line
            }
        }
    }
}

/// The first line of the code of a span, shortened.
pub(crate) fn code(module: &Module, span: Span) -> String {
    let is_user = module.sources.file(span).is_some_and(|source| source.origin == Origin::User);
    let line = if is_user { module.sources.text(span).lines().next().unwrap_or_default().trim_end() } else { "" };
    if line.chars().count() <= MAX_CODE {
        return line.to_owned();
    }
    let shortened: String = line.chars().take(MAX_CODE).collect();
    format!("{shortened}…")
}

/// The loops of statements, in program order.
pub(crate) fn loops(block: &[Stmt]) -> Vec<Span> {
    let mut spans = BTreeSet::new();
    for_each_stmt(block, &mut |stmt| {
        if let StmtKind::Loop { .. } = stmt.kind {
            spans.insert(stmt.span);
        }
    });
    spans.into_iter().collect()
}
