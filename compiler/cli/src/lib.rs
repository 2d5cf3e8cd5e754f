//! The `weft` command as a library, so that the wheel has it too: [`run`] is all of it.
//!
//! One file a subcommand. `program/` reads a Python file without Python. Nothing here prints: output goes to the
//! writers that `run` gets. Exit codes: 0; 1 for a rejected program, or a machine on which weft is broken; 2 for bad usage, a
//! file that cannot be read, or a tool that is missing.

mod args;
mod cache;
mod check;
mod completions;
mod devices;
mod doctor;
mod emit;
mod encoding;
mod explain;
mod kernels;
mod loader;
mod lsp;
mod options;
mod output;
mod program;
mod report;
mod settings;
mod tools;
mod untyped;

use std::{
    ffi::OsString,
    fs,
    io::{self, IsTerminal as _, Write},
    os::fd::AsFd as _,
    path::PathBuf,
};

use clap::Parser as _;
use weft_compiler::{
    diagnostic::{Code, Diagnostic},
    source::Span,
};

pub use crate::loader::Loader;
use crate::{
    args::{CheckFormat, Cli, Color, Command},
    report::{Report, Stop},
};

/// What the command knows of the world besides its arguments and the files that they name.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Answers environment variables.
    pub variable: fn(&str) -> Option<OsString>,
    /// Gives the names of all environment variables that are text.
    pub names: fn() -> Vec<String>,
    /// Asks the Python that runs the command, if one does.
    pub python: Option<fn() -> Python>,
    /// `site-packages` folders of a Python whose packages may hold NVIDIA's tools, beside that of `VIRTUAL_ENV`.
    pub site_packages: Vec<PathBuf>,
    /// The second writer is a terminal, which can show colors.
    pub terminal: bool,
    /// Where the first writer leads.
    pub stdout: Stdout,
}

/// The Python that runs the command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Python {
    /// `3.13.1`.
    pub version: String,
    /// The path of the interpreter.
    pub executable: String,
    /// The version of NumPy that it imports, if it does.
    pub numpy: Option<String>,
}

/// Where the standard output leads: several PTX modules one after the other are fine to read, but no PTX file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stdout {
    /// A reader at a screen.
    Terminal,
    /// A file.
    File,
    /// A pipe, or something else.
    #[default]
    Other,
}

impl Stdout {
    /// Where this process's standard output leads.
    pub fn of_process() -> Self {
        let stdout = io::stdout();
        if stdout.is_terminal() {
            return Self::Terminal;
        }
        let file = stdout.as_fd().try_clone_to_owned().map(fs::File::from);
        match file.and_then(|file| file.metadata()) {
            Ok(known) if known.is_file() => Self::File,
            _ => Self::Other,
        }
    }
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            variable: |name| std::env::var_os(name),
            names: || std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect(),
            python: None,
            site_packages: Vec::new(),
            terminal: false,
            stdout: Stdout::default(),
        }
    }
}

/// Runs the command. `arguments` begin with the program's name. Returns the exit code.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    surroundings: &Surroundings,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let text = error.render();
            if error.use_stderr() && wants_json(&arguments) {
                let message = text.to_string().trim().trim_start_matches("error: ").to_owned();
                return finish(Err(Stop::Usage(message)), true, stderr);
            }
            let written = if error.use_stderr() { write!(stderr, "{text}") } else { write!(stdout, "{text}") };
            return finish(written.map(|()| error.exit_code() as u8).map_err(Stop::from), false, stderr);
        }
    };
    let json = match &cli.command {
        Command::Emit(args) => args.json,
        Command::Check(args) => args.json || args.format() == CheckFormat::Json,
        Command::Explain(_)
        | Command::Sanitize(_)
        | Command::Devices
        | Command::Doctor(_)
        | Command::Settings(_)
        | Command::Lsp
        | Command::Completions(_)
        | Command::Cache { .. } => false,
    };
    let color = match cli.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            surroundings.terminal && (surroundings.variable)("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    };
    let done = match cli.command {
        Command::Emit(args) => emit::emit(&args, surroundings, color, stdout, stderr),
        Command::Check(args) => check::check(&args, color, stdout, stderr),
        Command::Explain(args) => explain::explain(&args, stdout),
        // The package's command does it before it comes here.
        Command::Sanitize(_) => Err(Stop::Usage(
            "`weft sanitize` runs a Python program: install the Python package and put `sanitize` before the other \
             arguments, or use `python -m weft.sanitize`"
                .to_owned(),
        )),
        Command::Devices => devices::devices(surroundings, stdout),
        Command::Doctor(args) => doctor::doctor(&args, surroundings, stdout),
        Command::Completions(args) => completions::completions(&args, stdout),
        Command::Lsp => lsp::lsp(),
        Command::Settings(args) => settings::settings(&args, surroundings, stdout),
        Command::Cache { command } => cache::cache(command, surroundings, stdout),
    };
    finish(done.and_then(|code| Ok(stdout.flush().map(|()| code)?)), json, stderr)
}

/// Whether arguments that make no sense ask for JSON.
fn wants_json(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().skip(1).take_while(|word| *word != "--");
    words.any(|word| word == "emit" || word == "check") && words.any(|word| word == "--json")
}

/// The exit code; what stopped the command is said first.
fn finish(done: Result<u8, Stop>, json: bool, stderr: &mut dyn Write) -> u8 {
    let message = match done {
        Ok(code) => return code,
        // Whoever read the output has seen enough.
        Err(Stop::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => return 0,
        Err(Stop::Io(error)) => format!("cannot write the output: {error}"),
        Err(Stop::Usage(message)) => message,
    };
    let text = if json {
        let mut report = Report::default();
        report.add_nowhere(Diagnostic::error(Code::Usage, Span::default(), message));
        report.render(true, false)
    } else {
        format!("error: {message}\n")
    };
    // Where stderr is closed, the exit code has to do.
    let _closed = stderr.write_all(text.as_bytes());
    2
}
