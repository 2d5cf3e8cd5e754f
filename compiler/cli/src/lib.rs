//! The `weft` command as a library, so that the wheel can contain it. [`run`] is the entry point.
//!
//! Each subcommand has its own file. `program/` analyzes a Python file without running Python. Output goes only to the
//! writers passed to `run`. Exit codes: 0; 1 for a rejected program, or a machine on which weft is broken; 2 for bad
//! usage, a file that cannot be read, or a tool that is missing.

mod args;
mod build;
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
mod page;
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

/// The environment of a call, besides its arguments and the files that they name.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Reads an environment variable.
    pub variable: fn(&str) -> Option<OsString>,
    /// Returns the names of all environment variables that are valid Unicode.
    pub names: fn() -> Vec<String>,
    /// Queries the Python that runs the command. `None` for the standalone command.
    pub python: Option<fn() -> Python>,
    /// Further `site-packages` folders to search for NVIDIA's tools, besides that of `VIRTUAL_ENV`.
    pub site_packages: Vec<PathBuf>,
    /// Whether standard error is a terminal, which can show colors.
    pub terminal: bool,
    /// The kind of standard output.
    pub stdout: Stdout,
}

/// The Python that runs the command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Python {
    /// Its version, such as `3.13.1`.
    pub version: String,
    /// The path of the interpreter.
    pub executable: String,
    /// The version of NumPy, if it can be imported.
    pub numpy: Option<String>,
    /// Libraries for which weft makes operators of kernels.
    pub partners: Vec<Partner>,
}

/// An optional library that weft works with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partner {
    /// Its name, such as `PyTorch`.
    pub name: String,
    /// Its version, if it is installed.
    pub version: Option<String>,
    /// The least version that weft works with.
    pub least: String,
    /// The name of its package.
    pub package: String,
}

/// The kind of standard output. Several concatenated PTX modules are readable on a terminal but are not a valid PTX
/// file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stdout {
    /// A terminal.
    Terminal,
    /// A file.
    File,
    /// A pipe or another kind.
    #[default]
    Other,
}

impl Stdout {
    /// The kind of this process's standard output.
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

/// Runs the command. The first argument is the program's name. Returns the exit code.
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
        Command::Build(args) => args.json,
        Command::Check(args) => args.json || args.format() == CheckFormat::Json,
        Command::Explain(_)
        | Command::Sanitize(_)
        | Command::Profile(_)
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
        Command::Build(args) => build::build(&args, surroundings, color, stdout, stderr),
        Command::Check(args) => check::check(&args, color, stdout, stderr),
        Command::Explain(args) => explain::explain(&args, stdout),
        // The Python package handles these subcommands before it calls the library.
        Command::Sanitize(_) => Err(needs_python("sanitize")),
        Command::Profile(_) => Err(needs_python("profile")),
        Command::Devices => devices::devices(surroundings, stdout),
        Command::Doctor(args) => doctor::doctor(&args, surroundings, stdout),
        Command::Completions(args) => completions::completions(&args, stdout),
        Command::Lsp => lsp::lsp(),
        Command::Settings(args) => settings::settings(&args, surroundings, stdout),
        Command::Cache { command } => cache::cache(command, surroundings, stdout),
    };
    finish(done.and_then(|code| Ok(stdout.flush().map(|()| code)?)), json, stderr)
}

/// Whether invalid arguments include a request for JSON output.
fn wants_json(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().skip(1).take_while(|word| *word != "--");
    words.any(|word| word == "emit" || word == "build" || word == "check") && words.any(|word| word == "--json")
}

/// Reports the error that stopped the command, if any, and returns the exit code.
fn finish(done: Result<u8, Stop>, json: bool, stderr: &mut dyn Write) -> u8 {
    let message = match done {
        Ok(code) => return code,
        // The reader of the output closed the pipe early, as `head` does. That is no error.
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
    // If standard error is closed, only the exit code reports the error.
    let _closed = stderr.write_all(text.as_bytes());
    2
}
/// The error for a command that runs a Python program.
fn needs_python(command: &str) -> Stop {
    Stop::Usage(format!(
        "`weft {command}` runs a Python program: install the Python package and put `{command}` before the other \
         arguments, or use `python -m weft.{command}`"
    ))
}
