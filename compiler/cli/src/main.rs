//! The `weft` command: a thin main around [`weft_cli::run`].

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use weft_cli::{Stdout, Surroundings};

fn main() -> ExitCode {
    let terminal = io::stderr().is_terminal();
    let surroundings = Surroundings { terminal, stdout: Stdout::of_process(), ..Surroundings::default() };
    let code = weft_cli::run(std::env::args_os(), &surroundings, &mut io::stdout(), &mut io::stderr());
    ExitCode::from(code)
}
