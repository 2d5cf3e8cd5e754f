//! `weft check`: all that can reject a kernel whose types are known, and no code; names and syntax for the others.

use std::io::Write;

use weft_compiler::{
    diagnostic::{Code, Diagnostic},
    pipeline::Checked,
    request::{Keep, Options, Outcome, Overloads, Request, Target},
    source::Span,
};

use weft_engine::Engine;

use crate::{
    args::CheckArgs,
    kernels,
    program::Captures,
    report::{Report, Stop},
    untyped,
};

/// Neither types nor limits depend on the target; one has to be named.
const TARGET: Target = Target::Sm(75, "");

/// Reports everything that is wrong with the files.
pub(crate) fn check(args: &CheckArgs, color: bool, stdout: &mut dyn Write, stderr: &mut dyn Write) -> Result<u8, Stop> {
    let mut report = Report::default();
    let given = kernels::given_signatures(&args.kernels, &mut report);
    if report.has_errors() {
        stderr.write_all(report.render(args.json, color).as_bytes())?;
        return Ok(2);
    }
    let engine = Engine::new();
    let mut summaries = Vec::new();
    let mut bad_usage = false;
    for path in &args.files {
        let program = kernels::read(path)?;
        let sources = program.sources();
        if program.is_broken() {
            report.add(program.faults(), &sources);
            continue;
        }
        let mut unknown = Report::default();
        let selected = kernels::select(&program, path, &args.kernels.kernel, &mut unknown);
        if unknown.has_errors() {
            // With several files, a kernel need not be in each of them.
            bad_usage |= args.files.len() == 1;
            if args.files.len() == 1 {
                report = unknown;
                break;
            }
        }
        report.add(program.faults(), &sources);
        report.add(&kernels::missed(&program, &args.kernels.kernel), &sources);
        let mut captures = Captures::default();
        let mut bare = 0;
        for kernel in &selected {
            let jobs = kernels::jobs(&program, *kernel, &given, &mut captures);
            bare += usize::from(jobs.is_empty());
            for job in jobs {
                report.add(&kernels::returning(&job).into_iter().collect::<Vec<_>>(), &sources);
                let request = Request {
                    function: job.def,
                    overloads: Overloads::default(),
                    args: job.signature.args,
                    target: TARGET,
                    options: Options { notes: args.notes, ..Options::default() },
                    keep: Keep::default(),
                };
                let checked = match engine.check(&request) {
                    Ok(Outcome::Made(checked)) => Ok(checked),
                    Ok(Outcome::Asks(_)) => Err(kernels::unanswered(&request.function)),
                    Err(failure) => Err(failure),
                };
                match checked {
                    Ok(Checked { warnings, sources }) => report.add(&warnings, &sources),
                    Err(failure) => report.add(&failure.diagnostics, &failure.sources),
                }
            }
        }
        if args.kernels.kernel.is_empty() {
            for kernel in program.jitted() {
                let more = untyped::check(&program, &kernel);
                let new = more.into_iter().filter(|fault| !is_known(&report, fault, &sources));
                let new: Vec<Diagnostic> = new.collect();
                report.add(&new, &sources);
            }
        }
        let checked = format!("{}: {}", path.display(), count(selected.len(), "kernel"));
        summaries.push(match bare {
            0 => checked,
            _ => format!("{checked}, {bare} without a signature: only names and syntax were checked there"),
        });
    }
    stderr.write_all(report.render(args.json, color).as_bytes())?;
    if report.has_errors() {
        return Ok(if bad_usage { 2 } else { 1 });
    }
    for summary in summaries {
        writeln!(stdout, "{summary}")?;
    }
    Ok(0)
}

/// Whether the front end has already said this, perhaps in other words.
fn is_known(report: &Report, fault: &Diagnostic, sources: &weft_compiler::source::SourceMap) -> bool {
    let codes = [fault.code, Code::UnsupportedStatement, Code::UnsupportedExpression];
    codes.iter().any(|code| report.has_error_at(*code, Span { ..fault.span }, sources))
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
