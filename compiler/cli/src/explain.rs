//! `weft explain`.

use std::io::Write;

use weft_compiler::diagnostic::{self, Code, closest};

use crate::{args::ExplainArgs, report::Stop};

/// Prints the page of a code, or the list of codes.
pub(crate) fn explain(args: &ExplainArgs, stdout: &mut dyn Write) -> Result<u8, Stop> {
    let Some(number) = &args.code else {
        for code in Code::ALL {
            writeln!(stdout, "{}  {}", code.number(), code.title())?;
        }
        return Ok(0);
    };
    let Some(code) = Code::from_number(number) else {
        let near = closest(&number.to_uppercase(), Code::ALL.iter().map(|code| code.number()));
        let hint =
            near.map_or_else(|| "`weft explain` lists the codes".to_owned(), |near| format!("did you mean {near}?"));
        return Err(Stop::Usage(format!("there is no code `{number}`: {hint}")));
    };
    stdout.write_all(diagnostic::explain(code).as_bytes())?;
    Ok(0)
}
