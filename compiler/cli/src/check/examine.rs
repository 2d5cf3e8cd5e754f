//! The checks of one file: full type checks of kernels with known types, and checks of names and syntax for the others.

use weft_compiler::{
    diagnostic::{Code, Diagnostic},
    pipeline::Checked,
    request::{Keep, Options, Outcome, Overloads, Request, Signature, Target},
    source::{SourceMap, Span},
};
use weft_engine::Engine;

use crate::{
    kernels,
    program::{Captures, KernelDef, Program},
    report::Report,
    untyped,
};

/// Types and limits do not depend on the target, but a request needs one.
pub(crate) const TARGET: Target = Target::Sm(75, "");

/// The settings of a check.
#[derive(Debug)]
pub(crate) struct Examine<'a> {
    pub(crate) engine: &'a Engine,
    /// Signatures from the command line. They replace those in the file.
    pub(crate) given: &'a [Signature],
    /// Report where Numba's typing rules widen numbers.
    pub(crate) notes: bool,
}

impl Examine<'_> {
    /// Checks the selected kernels, and if `is_all` also the program's other jitted functions. Returns the number of
    /// selected kernels without a signature.
    pub(crate) fn run(
        &self,
        program: &Program,
        selected: &[KernelDef<'_>],
        is_all: bool,
        report: &mut Report,
    ) -> usize {
        let sources = program.sources();
        let mut captures = Captures::default();
        let mut bare = 0;
        for kernel in selected {
            let jobs = kernels::jobs(program, *kernel, self.given, &mut captures);
            bare += usize::from(jobs.is_empty());
            for job in jobs {
                let reproducible = job.kernel.jit.options.code.reproducible;
                report.add(&kernels::returning(&job).into_iter().collect::<Vec<_>>(), &sources);
                let request = Request {
                    function: job.def,
                    overloads: Overloads::default(),
                    args: job.signature.args,
                    target: TARGET,
                    options: Options { notes: self.notes, reproducible, ..Options::default() },
                    keep: Keep::default(),
                };
                let checked = match self.engine.check(&request) {
                    Ok(Outcome::Made(checked)) => Ok(checked),
                    Ok(Outcome::Queries(_)) => Err(kernels::unanswered(&request.function)),
                    Err(failure) => Err(failure),
                };
                match checked {
                    Ok(Checked { warnings, sources, .. }) => report.add(&warnings, &sources),
                    Err(failure) => report.add(&failure.diagnostics, &failure.sources),
                }
            }
        }
        if is_all {
            for kernel in program.jitted() {
                let more = untyped::check(program, &kernel);
                let new = more.into_iter().filter(|fault| !is_known(report, fault, &sources));
                let new: Vec<Diagnostic> = new.collect();
                report.add(&new, &sources);
            }
        }
        bare
    }
}

/// Whether the front end has reported this error already, possibly under another code.
fn is_known(report: &Report, fault: &Diagnostic, sources: &SourceMap) -> bool {
    let codes = [fault.code, Code::UnsupportedStatement, Code::UnsupportedExpression];
    codes.iter().any(|code| report.has_error_at(*code, Span { ..fault.span }, sources))
}
