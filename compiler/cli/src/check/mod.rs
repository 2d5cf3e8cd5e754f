//! `weft check`: checks kernels without generating code, in files, notebooks and folders. Kernels with known types get
//! all checks that can reject them; the others get checks of names and syntax.

mod examine;
mod files;
mod formats;
mod ignored;
mod notebook;
mod watch;

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use weft_compiler::{
    diagnostic::{Code, Diagnostic},
    request::Signature,
    source::Span,
};
use weft_engine::Engine;

pub(crate) use self::{
    examine::{Examine, TARGET},
    files::mentions,
    formats::{sentence, uri},
    notebook::{Notebook, is_notebook},
};
use crate::{
    args::{CheckArgs, CheckFormat},
    kernels,
    program::Program,
    report::{Report, Stop},
};

/// Checks the files and reports all errors.
pub(crate) fn check(args: &CheckArgs, color: bool, stdout: &mut dyn Write, stderr: &mut dyn Write) -> Result<u8, Stop> {
    let mut report = Report::default();
    let given = kernels::given_signatures(&args.kernels, &mut report);
    if report.has_errors() {
        write_report(args, &report, color, stdout, stderr)?;
        return Ok(2);
    }
    let engine = Engine::new();
    if args.watch {
        return watch::watch(args, &given, &engine, color, stdout, stderr);
    }
    let run = run(args, &given, &engine)?;
    run.write(args, color, stdout, stderr)
}

/// The result of checking all files once.
#[derive(Debug, Default)]
struct Run {
    report: Report,
    /// One line per file or folder.
    summaries: Vec<String>,
    /// Whether a kernel named on the command line does not exist.
    bad_usage: bool,
    /// The files that the result depends on.
    files: BTreeSet<PathBuf>,
}

/// Checks all files once.
fn run(args: &CheckArgs, given: &[Signature], engine: &Engine) -> Result<Run, Stop> {
    let mut run = Run::default();
    let is_one = args.files.len() == 1 && !args.files.iter().any(|path| path.is_dir());
    for path in &args.files {
        if !path.is_dir() {
            run.file(path, args, given, engine, is_one, true)?;
            continue;
        }
        let found = files::walk(path)?;
        let mut with_kernels = 0;
        for file in &found {
            if files::mentions_kernels(file)? {
                with_kernels += usize::from(run.file(file, args, given, engine, false, false)?);
            }
        }
        let with = count(with_kernels, "file");
        run.summaries.push(format!("{}: {with} with kernels, of {}", path.display(), found.len()));
    }
    Ok(run)
}

impl Run {
    /// Checks one file. Returns whether it has kernels.
    fn file(
        &mut self,
        path: &Path,
        args: &CheckArgs,
        given: &[Signature],
        engine: &Engine,
        is_one: bool,
        is_named: bool,
    ) -> Result<bool, Stop> {
        let bytes = fs::read(path).map_err(|error| Stop::Usage(format!("cannot read {}: {error}", path.display())))?;
        let mut report = Report::default();
        let notebook = match is_notebook(path).then(|| Notebook::read(path, &bytes, &mut report)).transpose() {
            Ok(notebook) => notebook,
            // An unreadable notebook in a folder does not stop the check of the other files.
            Err(Stop::Usage(message)) if !is_named => {
                self.report.add_nowhere(Diagnostic::error(Code::Syntax, Span::default(), message));
                return Ok(false);
            }
            Err(stop) => return Err(stop),
        };
        let program = match &notebook {
            None => Program::read(path, &bytes),
            Some(notebook) => Program::read(path, notebook.text.as_bytes()),
        };
        self.files.extend(program.paths());
        let sources = program.sources();
        let mut unknown = Report::default();
        let selected = kernels::select(&program, path, &args.kernels.kernel, &mut unknown);
        // A kernel named on the command line need not be in each of several files.
        if unknown.has_errors() && is_one && !program.is_broken() {
            self.bad_usage = true;
            self.report = unknown;
            return Ok(false);
        }
        report.add(program.faults(), &sources);
        if !program.is_broken() {
            report.add(&kernels::missed(&program, &args.kernels.kernel), &sources);
            let examine = Examine { engine, given, notes: args.notes };
            let bare = examine.run(&program, &selected, args.kernels.kernel.is_empty(), &mut report);
            if is_named || !selected.is_empty() {
                let checked = format!("{}: {}", path.display(), count(selected.len(), "kernel"));
                self.summaries.push(match bare {
                    0 => checked,
                    _ => format!("{checked}, {bare} without a signature: only names and syntax were checked there"),
                });
            }
        }
        if let Some(notebook) = &notebook {
            report.move_to_cells(notebook);
        }
        self.report.merge(report);
        Ok(!selected.is_empty())
    }

    /// Writes the diagnostics. Returns the exit code.
    fn write(self, args: &CheckArgs, color: bool, stdout: &mut dyn Write, stderr: &mut dyn Write) -> Result<u8, Stop> {
        write_report(args, &self.report, color, stdout, stderr)?;
        if self.report.has_errors() {
            return Ok(if self.bad_usage { 2 } else { 1 });
        }
        if args.format() == CheckFormat::Text {
            for summary in self.summaries {
                writeln!(stdout, "{summary}")?;
            }
        }
        Ok(0)
    }
}

fn write_report(
    args: &CheckArgs,
    report: &Report,
    color: bool,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<(), Stop> {
    match args.format() {
        CheckFormat::Text => stderr.write_all(report.render(args.json, color).as_bytes())?,
        CheckFormat::Json => stdout.write_all(report.render(true, false).as_bytes())?,
        CheckFormat::Sarif => stdout.write_all(formats::sarif(report).as_bytes())?,
        CheckFormat::Github => stdout.write_all(formats::github(report).as_bytes())?,
    }
    Ok(())
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
