//! From syntax to IR: names, types and Python's rules.
//!
//! [`lower`] traverses a kernel's syntax tree (`lowerer.rs`) several times. Dry runs infer types, each loop until its
//! types reach a fixpoint (`typing.rs`); the final run builds the code. Each statement has a file in `stmt/`, each
//! expression one in `expr/`, each kind of builtin one in `builtins/`; code that is shorter in Python is in `prelude/`.
//! The traversal's state is in `state/`, one file per part. Number types follow `promote.rs`; variables `env.rs`.

#![expect(clippy::needless_pass_by_value, reason = "a value is for one use; taking it says so")]
#![expect(clippy::option_option, reason = "a slice's bound may be absent, and reading it may fail")]

mod allocations;
mod builtins;
mod cuda_cpp_names;
mod env;
mod export;
mod expr;
mod expression_types;
mod fault;
mod float8;
mod function;
mod in_flight;
mod iterate;
mod lowerer;
mod memory;
mod notes;
mod object;
mod optional;
mod prelude;
mod print;
mod promote;
mod refusals;
mod reproducible;
mod shapes;
mod state;
mod stmt;
mod structure;
mod swizzle;
mod ty;
mod typing;
mod value;
mod variables;
mod weak;

pub use expr::no_builtin;
pub use expression_types::{ExprType, ExprTypes, Instance, expression_types};
pub use variables::{Variable, variables};

use weft_artifact::ArgType;

use crate::{
    diagnostic::{Diagnostic, Failure, Severity},
    ir::Module,
    request::{Entry, Foreign, Outcome, Request, Role, Target},
    source::SourceMap,
};

/// The front end's result, for the passes.
#[derive(Debug)]
pub struct Lowered {
    /// The kernel and its callees.
    pub module: Module,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
    /// The files that spans refer to.
    pub sources: SourceMap,
}

/// Lowers a request's kernel and the device functions that it calls.
///
/// # Errors
///
/// Every diagnostic found, if one is an error.
pub fn lower(request: &Request) -> Result<Outcome<Lowered>, Failure> {
    let mut lowerer = lowered_for(request, RecordedInfo::default());
    if request.options.notes && !lowerer.explained() {
        let found = notes::notes(request, &lowerer, |request| {
            let again = lowered_for(request, RecordedInfo::default());
            (again.computed, again.sources)
        });
        lowerer.diagnostics.extend(found);
    }
    let mut outcome = finished(lowerer)?;
    if let Outcome::Made(lowered) = &mut outcome
        && request.options.reproducible
        && !request.options.has_scratch()
    {
        reproducible::warn(lowered);
    }
    Ok(outcome)
}

/// The information that a lowering records besides its module.
#[derive(Clone, Copy, Debug, Default)]
struct RecordedInfo {
    /// The types of variables.
    variables: bool,
    /// The types of expressions.
    expressions: bool,
}

/// Lowers a request's function into a lowerer, which collects the diagnostics.
fn lowered_for(request: &Request, wanted: RecordedInfo) -> lowerer::Lowerer {
    let ptx = matches!(request.target, Target::Sm(..));
    let reports = state::Reports::of(&request.options);
    let symbol = match &request.options.entry {
        Entry::Foreign(Foreign { symbol: Some(symbol), .. }) => symbol.clone(),
        Entry::Foreign(Foreign { symbol: None, .. }) | Entry::Launch => request.function.ast.name.clone(),
    };
    let root = state::Root { symbol, ..state::Root::default() };
    let most_threads = request.options.launch_bounds.map(|bounds| bounds.threads);
    let overloads = request.overloads.clone();
    let notes = request.options.notes;
    let no_wraparound = !request.options.wraparound;
    let sanitize = !ptx && !request.options.sanitize.is_empty();
    let mut lowerer = lowerer::Lowerer {
        ptx,
        // A foreign program that runs the code may use any debugger.
        stops: match request.target {
            Target::Sm(..) => request.options.debug || matches!(request.options.entry, Entry::Foreign(_)),
            Target::Host(_) => request.options.interpreted,
        },
        interpreted: request.options.interpreted,
        differentiates: request.options.derivative.is_some(),
        root,
        overloads,
        most_threads,
        registers: request.options.registers_at_launch(),
        no_wraparound,
        sanitize,
        reports,
        notes,
        variables: wanted.variables.then(Vec::new),
        expressions: wanted.expressions.then(ExprTypes::default),
        ..lowerer::Lowerer::default()
    };
    match request.options.entry {
        Entry::Foreign(Foreign { role: Role::Function(_), .. }) => export::lower_export(&mut lowerer, request),
        Entry::Foreign(Foreign { role: Role::Kernel, .. }) | Entry::Launch => {
            function::lower_kernel(&mut lowerer, request);
        }
    }
    lowerer
}

/// The result type of a request's function as a device function, for the request's argument types; `None` if a result
/// of this type cannot be passed on.
///
/// # Errors
///
/// As [`lower`].
pub fn result_type(request: &Request) -> Result<Outcome<Option<ArgType>>, Failure> {
    let overloads = request.overloads.clone();
    // The result types of a function do not depend on the target.
    let interpreted = request.options.interpreted;
    let mut lowerer = lowerer::Lowerer { overloads, stops: true, interpreted, ..lowerer::Lowerer::default() };
    let found = function::lower_result(&mut lowerer, request);
    finished(lowerer).map(|outcome| outcome.map(|_| found))
}

/// The result of a finished lowerer.
fn finished(lowerer: lowerer::Lowerer) -> Result<Outcome<Lowered>, Failure> {
    let lowerer::Lowerer { mut module, sources, mut diagnostics, undefined, faults, queries, .. } = lowerer;
    if !queries.is_empty() {
        return Ok(Outcome::Queries(queries));
    }
    for explanation in [undefined, faults] {
        if !diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            diagnostics.extend(explanation);
        }
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return Err(Failure { diagnostics, sources });
    }
    module.sources = sources.clone();
    Ok(Outcome::Made(Lowered { module, warnings: diagnostics, sources }))
}
