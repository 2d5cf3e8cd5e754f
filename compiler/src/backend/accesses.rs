//! The text of the memory accesses of a kernel, each with its class and its line of the Python source.

use std::fmt::Write as _;

use crate::{
    analysis::affine::{AccessClass, AccessKind, accesses},
    ir::{Module, Type},
};

/// Lists the accesses of a kernel by the threads along an axis, as comments. Equal lines are printed once.
pub(super) fn text(module: &Module, axis: u8) -> String {
    let Some(kernel) = module.kernel() else { return String::new() };
    let mut lines: Vec<String> = Vec::new();
    for access in accesses(kernel, axis) {
        let span = kernel.exprs[access.pointer].span;
        let Some(source) = module.sources.file(span) else { continue };
        let code = module.sources.text(span).lines().next().unwrap_or_default();
        let kind = match access.kind {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Op(op) => op.row().name,
        };
        let class = class(access.class, kernel.exprs[access.pointer].ty);
        let line = format!("#   line {}: {kind} {code}: {class}", source.line_column(span.start).0);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let axis = ["x", "y", "z"].get(usize::from(axis)).unwrap_or(&"?");
    let mut text = format!("# accesses of threads along {axis}:\n");
    for line in lines {
        let _ = writeln!(text, "{line}"); // writing to a String cannot fail
    }
    text
}

/// A class; distances are in elements where that is a whole number.
fn class(class: AccessClass, pointer: Type) -> String {
    match class {
        AccessClass::Uniform => "uniform".to_owned(),
        AccessClass::Contiguous => "contiguous".to_owned(),
        AccessClass::Strided(None) => "strided".to_owned(),
        AccessClass::Strided(Some(bytes)) => {
            let size = if let Type::Ptr(element, _) = pointer { element.size_bytes() as i64 } else { 1 };
            if bytes % size == 0 { format!("strided({})", bytes / size) } else { format!("strided({bytes} bytes)") }
        }
        AccessClass::Gather => "gather".to_owned(),
    }
}
