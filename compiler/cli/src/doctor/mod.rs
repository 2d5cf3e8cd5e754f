//! `weft doctor`: shows the components that weft finds on this machine, problems, and their fixes.
//!
//! A problem is an error if weft cannot work as the settings require, and otherwise a warning. The command compiles,
//! launches and checks a small kernel on each device.

mod findings;
mod machine;
mod probe;
mod toolkit;

use std::{io::Write, path::Path};

use serde_json::json;
use weft_compiler::{VERSION, diagnostic::closest, host_cpu_set, host_cpu_without_passes, llvm_version};
use weft_engine::BUILD;
use weft_runtime::Settings;

use self::findings::{Findings, Section, Severity};
use crate::{
    Partner, Python, Surroundings,
    args::{DataFormat, DoctorArgs},
    report::Stop,
};

/// Examines the machine. The exit code is 1 if a required component is broken.
pub(crate) fn doctor(args: &DoctorArgs, surroundings: &Surroundings, stdout: &mut dyn Write) -> Result<u8, Stop> {
    let mut findings = Findings::default();
    versions(surroundings, &mut findings);
    let settings = settings(surroundings, &mut findings);
    let host = host_cpu_set(settings.host_cpu.as_deref(), settings.host_plan.as_deref(), settings.host_opt_level)
        .and_then(|cpu| host_cpu_without_passes(cpu, &settings.skip_passes));
    if let Err(message) = &host {
        findings.problem(
            Severity::Error,
            message,
            "unset WEFT_HOST_CPU, WEFT_HOST_PLAN and WEFT_SKIP_PASSES: code is then compiled for this machine's CPU",
        );
    }
    let hardware = machine::Hardware::at(Path::new("/"));
    machine::driver(&hardware, &settings, &mut findings);
    let libdevice = toolkit::toolkit(surroundings, &settings, &mut findings);
    machine::devices(&settings, &host, libdevice.as_ref(), &mut findings);
    toolkit::cache(surroundings, &settings, &mut findings);
    let code = u8::from(findings.is_broken());
    match args.format {
        DataFormat::Text => stdout.write_all(findings.text().as_bytes())?,
        DataFormat::Json => writeln!(stdout, "{:#}", findings.json())?,
    }
    Ok(code)
}

/// The versions of weft, LLVM, and the Python that runs the command.
fn versions(surroundings: &Surroundings, findings: &mut Findings) {
    let mut section = Section::new("Versions");
    let [_, build, _] = BUILD;
    let build = build.get(..12).unwrap_or(build);
    section.row("weft", format!("{VERSION}, build {build}"), json!({"version": VERSION, "build": build}));
    let (major, minor, patch) = llvm_version();
    let llvm = format!("{major}.{minor}.{patch}");
    section.row("LLVM", &llvm, json!(llvm));
    if let Some(python) = surroundings.python {
        let Python { version, executable, numpy, partners } = python();
        section.row(
            "Python",
            format!("{version}, {executable}"),
            json!({"version": version, "executable": executable}),
        );
        section.row("NumPy", numpy.clone().unwrap_or_else(|| "not found".to_owned()), json!(numpy));
        if numpy.is_none() {
            let help = format!("`{executable} -m pip install numpy`");
            findings.problem(Severity::Error, "NumPy is not installed, but the package weft needs it", help);
        }
        for known in &partners {
            partner(known, &executable, &mut section, findings);
        }
    }
    findings.section(section);
}

/// An optional library. One that is too old is a problem only for operators.
fn partner(partner: &Partner, executable: &str, section: &mut Section, findings: &mut Findings) {
    let Partner { name, version, least, package } = partner;
    let shown = version.clone().unwrap_or_else(|| "not found; operators of kernels need it".to_owned());
    section.row(name, shown, json!({"version": version, "least": least}));
    if let Some(version) = version
        && numbers(version) < numbers(least)
    {
        let message =
            format!("{name} {version} is too old for operators of kernels, which need {name} {least} or newer");
        let help = format!("`{executable} -m pip install --upgrade {package}`");
        findings.problem(Severity::Warning, message, help);
    }
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Vec<u32> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).take(2).collect()
}

/// The valid settings. Adds a problem for each invalid one.
fn settings(surroundings: &Surroundings, findings: &mut Findings) -> Settings {
    let mut section = Section::new("Settings");
    let mut wrong = Vec::new();
    let mut by_default = 0;
    for row in Settings::in_force(surroundings.variable) {
        let (name, default) = (row.setting.name, row.setting.default);
        let from = row.from.filter(|from| *from != name).map_or_else(String::new, |from| format!(", from {from}"));
        match row.changes {
            Ok(false) => by_default += 1,
            Ok(true) => {
                let text = format!("{} (default: {default}{from})", row.value);
                section.row(name, text, json!({"value": row.value, "default": default, "from": row.from}));
            }
            Err(error) => {
                section.row(
                    name,
                    format!("{}: invalid", row.value),
                    json!({"value": row.value, "error": error.message}),
                );
                let help = format!(
                    "unset {}, or set it to one of these values; see `weft settings {name}`",
                    row.from.unwrap_or(name)
                );
                findings.problem(Severity::Error, error.message, help);
                wrong.extend(row.from);
            }
        }
    }
    section.row(
        "others",
        format!("{by_default} settings have their default; `weft settings` lists them"),
        json!(by_default),
    );
    let names = (surroundings.names)();
    for (name, setting) in Settings::misspelt(names, |word, known| closest(word, known.iter().copied())) {
        let message = format!("{name} is set, but weft has no such setting; did you mean {setting}?");
        findings.problem(Severity::Warning, message, format!("set {setting} instead, or unset {name}"));
    }
    findings.section(section);
    let readable = |name: &str| (surroundings.variable)(name).filter(|_| !wrong.contains(&name));
    Settings::from_env(readable).unwrap_or_default()
}
