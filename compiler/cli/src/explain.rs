//! `weft explain`: the page of a diagnostic code, or the documentation of a name that kernels can call.

use std::io::Write;

use weft_compiler::{
    diagnostic::{self, Code, closest},
    intrinsics::{self, Arg, Intrinsic, Returns, Signature},
};

use crate::{args::ExplainArgs, report::Stop};

/// Modules whose prefix may be omitted.
const IMPLIED: [&str; 8] = ["", "weft.", "weft.cuda.", "math.", "builtins.", "numpy.", "cmath.", "operator."];

/// Prints the documentation of a code or a name, or the list of codes.
pub(crate) fn explain(args: &ExplainArgs, stdout: &mut dyn Write) -> Result<u8, Stop> {
    let Some(subject) = &args.subject else {
        for code in Code::ALL {
            writeln!(stdout, "{}  {}", code.number(), code.title())?;
        }
        return Ok(0);
    };
    if let Some(code) = Code::from_number(subject) {
        stdout.write_all(diagnostic::explain(code).as_bytes())?;
        return Ok(0);
    }
    let rows = rows(subject);
    if rows.is_empty() {
        return Err(unknown(subject));
    }
    for (i, row) in rows.iter().enumerate() {
        if i > 0 {
            writeln!(stdout)?;
        }
        write_row(row, stdout)?;
    }
    Ok(0)
}

/// The table rows of a name, or of a module's members.
fn rows(subject: &str) -> Vec<&'static Intrinsic> {
    let subject = subject.strip_prefix("numba.").map_or_else(|| subject.to_owned(), |rest| format!("weft.{rest}"));
    let paths: Vec<String> = IMPLIED.iter().map(|module| format!("{module}{subject}")).collect();
    let exact = paths.iter().find_map(|path| intrinsics::rows().find(|row| row.path == path));
    match exact {
        Some(row) => vec![row],
        None => paths
            .iter()
            .map(|path| intrinsics::rows().filter(|row| row.path.starts_with(&format!("{path}."))).collect::<Vec<_>>())
            .find(|members| !members.is_empty())
            .unwrap_or_default(),
    }
}

fn unknown(subject: &str) -> Stop {
    let is_code =
        subject.starts_with(['E', 'e']) && subject.get(1..2).is_some_and(|c| c.chars().all(|c| c.is_ascii_digit()));
    let (near, kind) = if is_code {
        (closest(&subject.to_uppercase(), Code::ALL.iter().map(|code| code.number())), "code")
    } else {
        let short = |row: &'static Intrinsic| IMPLIED.iter().rev().find_map(|module| row.path.strip_prefix(module));
        let names =
            intrinsics::rows().flat_map(move |row| [Some(row.path), row.path.strip_prefix("weft."), short(row)]);
        (closest(subject, names.flatten()), "diagnostic code or name in kernels")
    };
    let hint = near.map_or_else(|| "`weft explain` lists the codes".to_owned(), |near| format!("did you mean {near}?"));
    Stop::Usage(format!("`{subject}` is not a {kind}: {hint}"))
}

fn write_row(row: &'static Intrinsic, stdout: &mut dyn Write) -> Result<(), Stop> {
    for signature in row.signatures {
        writeln!(stdout, "{}", shown(row, signature))?;
    }
    writeln!(stdout, "    {}", row.doc)?;
    let mnemonics: Vec<_> = row.mnemonics().iter().map(|name| name.trim_end_matches('.')).collect();
    if !mnemonics.is_empty() {
        writeln!(stdout, "    In PTX: {}", mnemonics.join(", "))?;
    }
    Ok(())
}

/// A signature such as `cuda.grid(1) -> int64`.
fn shown(row: &Intrinsic, signature: &Signature) -> String {
    let name = row.path.strip_prefix("weft.").or(row.path.strip_prefix("builtins.")).unwrap_or(row.path);
    let args: Vec<String> = signature
        .args
        .iter()
        .map(|arg| match arg {
            Arg::Scalar(scalar) => scalar.to_string(),
            Arg::Complex(complex) => complex.to_string(),
            Arg::Array(scalar) => format!("array of {scalar}"),
            Arg::Records(fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, scalar)| format!("{name}: {scalar}")).collect();
                format!("array of records ({})", fields.join(", "))
            }
            Arg::Index => "index".to_owned(),
            Arg::Const(value) => value.to_string(),
            Arg::DType(scalar) => format!("type such as {scalar}"),
            Arg::Text(text) => format!("\"{text}\""),
        })
        .collect();
    let is_attribute = matches!(row.lowering, intrinsics::Lowering::Register(_));
    let call = if is_attribute { name.to_owned() } else { format!("{name}({})", args.join(", ")) };
    match signature.returns {
        Returns::Nothing => call,
        Returns::Scalar(scalar) => format!("{call} -> {scalar}"),
        Returns::Complex(complex) => format!("{call} -> {complex}"),
        Returns::Tuple(items) => {
            let items: Vec<&str> = items.iter().map(|item| item.name()).collect();
            format!("{call} -> ({})", items.join(", "))
        }
        Returns::Array(scalar) => format!("{call} -> array of {scalar}"),
    }
}
