//! Helpers shared by tests: the repository's files, the command, and snapshots.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use weft_cli::Surroundings;

use crate::header::Header;

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the repository").to_owned()
}

/// Reads a file of the repository.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A line without its comment. Good enough for this repository: no string contains both `//` and a searched word.
pub(crate) fn code_of(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// A Rust file without comments.
pub(crate) fn code(path: &str) -> String {
    read(path).lines().map(code_of).collect::<Vec<_>>().join("\n")
}

/// The files with an extension below some folders of the repository, as sorted paths relative to the root. Build
/// outputs and installed files are excluded.
pub(crate) fn files(folders: &[&str], extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    for folder in folders {
        collect(&root().join(folder), extension, &mut found);
    }
    let root = root();
    let mut paths: Vec<_> = found
        .iter()
        .map(|path| {
            let inside = path.strip_prefix(&root).expect("the traversal starts at the root");
            inside.to_str().expect("names in the repository are UTF-8").replace('\\', "/")
        })
        .collect();
    paths.sort();
    paths
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("the folder can be read").path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if path.is_dir() {
            if !name.starts_with('.') && !matches!(name, "target" | "__pycache__" | "out") {
                collect(&path, extension, found);
            }
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
}

/// The result of a call of the command.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The exit code.
    pub(crate) code: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Calls `weft` in `tests/` with an empty environment.
pub(crate) fn weft(arguments: &[&str]) -> Ran {
    weft_in(|_| None, arguments)
}

/// Calls `weft` in `tests/` with environment variables.
pub(crate) fn weft_in(variable: fn(&str) -> Option<OsString>, arguments: &[&str]) -> Ran {
    let surroundings = Surroundings { variable, ..Surroundings::default() };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let arguments = ["weft"].iter().chain(arguments).map(Into::into);
    let code = weft_cli::run(arguments, &surroundings, &mut stdout, &mut stderr);
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("the command writes UTF-8"));
    Ran { code, stdout, stderr }
}

/// One output form of a file's kernel for one target, or the command's diagnostics. It uses the built-in math library,
/// so the result does not depend on an installed libdevice. A warning counts as an error.
pub(crate) fn emit(file: &str, kernel: &str, sig: Option<&str>, target: &str, form: &str) -> Result<String, String> {
    emit_for(file, kernel, &Header { sig: sig.map(str::to_owned), ..Header::default() }, target, form)
}

/// The same with what a test's header says.
pub(crate) fn emit_for(
    file: &str,
    function: &str,
    header: &Header,
    target: &str,
    form: &str,
) -> Result<String, String> {
    let (sig, abi) = (header.sig.as_deref(), header.abi.as_deref());
    let mut arguments = vec!["emit", file, "--target", target, "--emit", form, "--libdevice", "none"];
    arguments.extend([if matches!(abi, None | Some("kernel")) { "--kernel" } else { "--function" }, function]);
    if matches!(abi, Some("kernel" | "numba")) {
        arguments.extend(["--abi", "numba"]);
    }
    if let Some(sig) = sig {
        arguments.extend(["--sig", sig]);
    }
    let (assumed, adjoint) = (header.assumptions.join(","), header.adjoint.join(","));
    for (flag, value) in [("--assume", &assumed), ("--adjoint", &adjoint)] {
        if !value.is_empty() {
            arguments.extend([flag, value]);
        }
    }
    // The CPU of a snapshot's plan does not depend on the machine.
    let planned = |name: &str| (name == "WEFT_HOST_PLAN").then(|| "x86-64-v4".into());
    let ran = if form == "plan" { weft_in(planned, &arguments) } else { weft(&arguments) };
    if ran.code == 0 && ran.stderr.is_empty() { Ok(ran.stdout) } else { Err(ran.stderr) }
}

/// The name of a file, without its folder and extension.
pub(crate) fn stem(path: &str) -> &str {
    Path::new(path).file_stem().and_then(|stem| stem.to_str()).expect("the path names a file")
}

/// Compares an output with its snapshot in `tests/snapshots/`. The snapshot begins with the source.
pub(crate) fn assert_snapshot(name: &str, source: &str, title: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.remove_snapshot_suffix();
    settings.remove_input_file();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("../snapshots");
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!(name, format!("{}\n\n---------- {title}\n{}", source.trim_end(), text.trim_end()));
    });
}
