//! The `weft` command for the wheel: calls the CLI's library, which searches this Python's packages for tools.

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _},
};

use pyo3::prelude::*;
use weft_cli::{Partner, Stdout, Surroundings};

/// Runs the command; the arguments begin with the program's name. Returns the exit code.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
    let site_packages = py.import("weft._source")?.call_method0("site_packages")?.extract()?;
    let terminal = io::stderr().is_terminal();
    let stdout = Stdout::of_process();
    let python = Some(python as fn() -> weft_cli::Python);
    let surroundings = Surroundings { site_packages, terminal, stdout, python, ..Surroundings::default() };
    Ok(py.detach(|| weft_cli::run(args, &surroundings, &mut io::stdout(), &mut io::stderr())))
}

/// A [`Partner`]: its name, version, least version and package.
type PartnerRow = (String, Option<String>, String, String);

/// This Python's paths and packages.
fn python() -> weft_cli::Python {
    Python::attach(|py| {
        let info = py.import("weft._cli").and_then(|module| module.call_method0("python")?.extract());
        let (version, executable, numpy, partners): (_, _, _, Vec<PartnerRow>) = info.unwrap_or_default();
        let partners =
            partners.into_iter().map(|(name, version, least, package)| Partner { name, version, least, package });
        weft_cli::Python { version, executable, numpy, partners: partners.collect() }
    })
}
