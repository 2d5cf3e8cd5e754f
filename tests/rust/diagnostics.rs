//! Checks that every invalid program in `tests/diagnostics` gets exactly the errors that its comments announce, on the
//! same lines.
//!
//! A comment `# error: [E0203] "text"` is on the line of the error, and the text is a part of the message. A snapshot
//! contains the source and the rendered errors.

use std::collections::BTreeSet;

use weft_compiler::diagnostic::Code;

use crate::{
    header::Header,
    support::{Ran, assert_snapshot, files, read, stem, weft},
};

/// An announced error: line (from 1), code, and part of the message.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Announced {
    line: u32,
    code: String,
    text: String,
}

/// The comments of a file.
fn announced(text: &str) -> Vec<Announced> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for comment in line.split("# error: [").skip(1) {
            let (code, rest) = comment.split_once("] \"").unwrap_or_else(|| panic!("no code and text in `{line}`"));
            let text = rest.split('"').next().unwrap_or("");
            found.push(Announced { line: index as u32 + 1, code: code.to_owned(), text: text.to_owned() });
        }
    }
    found
}

#[test]
fn wrong_programs_get_their_errors() {
    let mut faults = Vec::new();
    insta::glob!("..", "diagnostics/*.py", |path| {
        let name = stem(path.to_str().expect("names in the repository are UTF-8"));
        let file = format!("diagnostics/{name}.py");
        let text = read(&format!("tests/{file}"));
        let header = Header::read(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut arguments = vec!["emit", &file, "--target", "sm_80", "--libdevice", "none"];
        if let Some(sig) = &header.sig {
            arguments.extend(["--kernel", name, "--sig", sig]);
        }
        let adjoint = header.adjoint.join(",");
        if !adjoint.is_empty() {
            arguments.extend(["--adjoint", &adjoint]);
        }
        let ran = weft(&arguments);
        match compare(&text, &ran) {
            Ok(()) => assert_snapshot(&format!("diagnostics__{name}"), &text, "errors", &ran.stderr),
            Err(fault) => faults.push(format!("{file}: {fault}\n{}", ran.stderr)),
        }
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Compares the errors with the comments.
fn compare(text: &str, ran: &Ran) -> Result<(), String> {
    if ran.code != 1 || !ran.stdout.is_empty() {
        return Err(format!("exit code {}, not rejected", ran.code));
    }
    let mut wanted = announced(text);
    for (line, code, message) in errors(&ran.stderr) {
        let fits = |wanted: &Announced| wanted.line == line && wanted.code == code && message.contains(&wanted.text);
        let index = wanted.iter().position(fits).ok_or_else(|| format!("{code} in line {line} is not announced"))?;
        wanted.remove(index);
    }
    if wanted.is_empty() { Ok(()) } else { Err(format!("{wanted:?} did not come")) }
}

/// The errors of a rendered text: line, code, message.
fn errors(rendered: &str) -> Vec<(u32, &str, &str)> {
    let mut found = Vec::new();
    let mut lines = rendered.lines();
    while let Some(line) = lines.next() {
        if let Some((code, message)) = line.strip_prefix("error[").and_then(|rest| rest.split_once("]: ")) {
            let place = lines.next().and_then(|line| line.trim_start().strip_prefix("--> ")).unwrap_or("");
            let number = place.rsplit(':').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
            found.push((number, code, message));
        }
    }
    found
}

#[test]
fn every_code_of_a_users_fault_has_a_program() {
    let mut announced_codes = BTreeSet::new();
    for path in files(&["tests/diagnostics"], "py") {
        announced_codes.extend(announced(&read(&path)).into_iter().map(|error| error.code));
    }
    // The command reports the first three before it compiles (see its own tests), the next two are not errors, and the
    // last is an internal error.
    let elsewhere =
        [Code::NoKernel, Code::UnknownTarget, Code::Usage, Code::Widened, Code::NotReproducible, Code::Internal];
    for code in Code::ALL.iter().filter(|code| !elsewhere.contains(code)) {
        assert!(announced_codes.contains(code.number()), "no file in tests/diagnostics gets {}", code.number());
    }
}

#[test]
fn notes_say_where_numbers_become_wider() {
    insta::glob!("..", "notes/*.py", |path| {
        let name = stem(path.to_str().expect("names in the repository are UTF-8"));
        let file = format!("notes/{name}.py");
        let text = read(&format!("tests/{file}"));
        let header = Header::read(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let sig = header.sig.unwrap_or_else(|| panic!("{file} has no signature"));
        let ran = weft(&["check", &file, "--kernel", name, "--sig", &sig, "--notes"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_snapshot(&format!("notes__{name}"), &text, "notes", &ran.stderr);
        let without = weft(&["check", &file, "--kernel", name, "--sig", &sig]);
        assert_eq!((without.code, without.stderr.as_str()), (0, ""), "{file}");
    });
}

#[test]
fn every_snapshot_has_its_program() {
    let programs: BTreeSet<_> = files(&["tests/diagnostics"], "py").iter().map(|path| stem(path).to_owned()).collect();
    for path in files(&["tests/snapshots"], "snap") {
        if let Some(name) = stem(&path).strip_prefix("diagnostics__") {
            assert!(programs.contains(name), "{path}: no program makes it");
        }
    }
}
