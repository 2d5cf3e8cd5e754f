//! Every wrong program of `tests/diagnostics` gets the errors that its comments announce, on their lines, and no others.
//!
//! A comment `# error: [E0203] "text"` stands on the line of the error; the text is a part of the message. The rendered
//! errors are a snapshot, with the source above.

use std::collections::BTreeSet;

use weft_compiler::{
    diagnostic::{Code, Severity},
    pipeline::Failure,
    request::Keep,
};

use crate::{
    header::Header,
    support::{Case, compile, files, read, rendered},
};

/// An announced error: line from 1, code, a part of the message.
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
    insta::glob!("..", "diagnostics/*.py", |path| {
        let case = Case::open(path);
        let header = Header::read(&case.text).unwrap_or_else(|error| panic!("{}: {error}", case.path));
        let failure = match compile(&case, header.sig.as_deref(), "sm_80", Keep::default()) {
            Ok(_) => panic!("{}: it compiles", case.path),
            Err(failure) => failure,
        };
        compare(&case, &failure);
        let mut settings = insta::Settings::clone_current();
        settings.remove_snapshot_suffix();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_snapshot_path("../snapshots/diagnostics");
        settings.set_omit_expression(true);
        settings.bind(|| {
            let name = case.path.trim_start_matches("tests/diagnostics/").trim_end_matches(".py");
            insta::assert_snapshot!(name, format!("{}\n---------- errors\n{}", case.text, rendered(&failure).trim_end()));
        });
    });
}

/// The errors against the comments, both in order of lines.
fn compare(case: &Case, failure: &Failure) {
    let mut wanted = announced(&case.text);
    for diagnostic in failure.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error) {
        let file = failure.sources.file(diagnostic.span);
        let (line, _) = file.map_or((0, 0), |file| file.line_column(diagnostic.span.start));
        let fits = |wanted: &Announced| {
            wanted.line == line
                && wanted.code == diagnostic.code.number()
                && diagnostic.message.contains(&wanted.text)
        };
        match wanted.iter().position(fits) {
            Some(index) => drop(wanted.remove(index)),
            None => panic!("{}: not announced in line {line}:\n{}", case.path, rendered(failure)),
        }
    }
    assert!(wanted.is_empty(), "{}: {wanted:?} did not come:\n{}", case.path, rendered(failure));
}

#[test]
fn every_code_of_a_users_fault_has_a_program() {
    let mut announced_codes = BTreeSet::new();
    for path in files(&["tests/diagnostics"], "py") {
        announced_codes.extend(announced(&read(&path)).into_iter().map(|error| error.code));
    }
    // The command sees these two before anything is compiled (its own tests), and the last is no user's fault.
    let elsewhere = [Code::NoKernel, Code::UnknownTarget, Code::Internal];
    for code in Code::ALL.iter().filter(|code| !elsewhere.contains(code)) {
        assert!(announced_codes.contains(code.number()), "no file in tests/diagnostics gets {}", code.number());
    }
}

#[test]
fn every_snapshot_has_its_program() {
    let programs: BTreeSet<_> = files(&["tests/diagnostics"], "py")
        .iter()
        .map(|path| path.replace("tests/diagnostics/", "tests/snapshots/diagnostics/").replace(".py", ".snap"))
        .collect();
    for path in files(&["tests/snapshots/diagnostics"], "snap") {
        assert!(programs.contains(&path), "{path}: no program makes it");
    }
}
