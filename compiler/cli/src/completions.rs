//! `weft completions`: writes shell completion scripts.

use std::io::Write;

use clap::CommandFactory as _;
use clap_complete::{generate, shells};

use crate::{
    args::{Cli, CompletionsArgs, Shell},
    report::Stop,
};

/// Writes the script for a shell.
pub(crate) fn completions(args: &CompletionsArgs, stdout: &mut dyn Write) -> Result<u8, Stop> {
    let (mut command, mut script) = (Cli::command(), Vec::new());
    match args.shell {
        Shell::Bash => generate(shells::Bash, &mut command, "weft", &mut script),
        Shell::Zsh => generate(shells::Zsh, &mut command, "weft", &mut script),
        Shell::Fish => generate(shells::Fish, &mut command, "weft", &mut script),
        Shell::Powershell => generate(shells::PowerShell, &mut command, "weft", &mut script),
    }
    stdout.write_all(&script)?;
    Ok(0)
}
