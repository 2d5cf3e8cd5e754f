//! House rules that can be tested: dependencies between modules and crates, file headers, and `unsafe`.
//!
//! [`UNITS`] and [`FACES`] are the dependency table of `docs/architecture.md`, by module.

use crate::support::{code, code_of, files, read, root};

/// Folders with this project's code.
const CODE: [&str; 5] = ["compiler", "runtime", "pybindings", "tests", "examples"];

/// Modules of the compiler, and the modules that each may use. Every module may use itself.
const UNITS: &[(&str, &[&str])] = &[
    ("source", &[]),
    ("stop", &[]),
    ("stage", &[]),
    ("stack", &["stop"]),
    ("target", &["diagnostic", "request"]),
    ("diagnostic", &["source"]),
    ("syntax", &["source", "diagnostic"]),
    ("request", &["source", "diagnostic", "syntax"]),
    ("signature", &["source", "diagnostic", "syntax", "request"]),
    ("rules", &["source", "diagnostic", "syntax", "request"]),
    ("ir", &["source", "stop"]),
    ("analysis", &["source", "stop", "ir"]),
    ("intrinsics", &["ir"]),
    ("frontend", &["source", "stop", "diagnostic", "syntax", "request", "ir", "intrinsics"]),
    ("inline", &["source", "ir", "analysis"]),
    ("normalize", &["source", "ir", "analysis"]),
    (
        "passes",
        &["source", "stop", "diagnostic", "request", "ir", "analysis", "inline", "normalize", "intrinsics", "target"],
    ),
    ("autodiff", &["source", "diagnostic", "request", "ir", "analysis", "inline", "normalize", "passes"]),
    (
        "backend",
        &[
            "source",
            "stop",
            "stage",
            "diagnostic",
            "request",
            "ir",
            "analysis",
            "inline",
            "normalize",
            "intrinsics",
            "target",
        ],
    ),
    (
        "pipeline",
        &["source", "diagnostic", "request", "frontend", "autodiff", "passes", "backend", "stop", "stack", "stage"],
    ),
    ("lib", &[]),
];

/// The same for the modules of the Python bindings.
const FACES: &[(&str, &[&str])] = &[
    ("errors", &[]),
    ("once", &[]),
    ("command", &[]),
    ("types", &["errors", "once"]),
    ("devices", &["errors"]),
    ("arrays", &["errors", "once", "types", "devices"]),
    ("args", &["errors", "types", "devices", "arrays"]),
    ("engine", &["errors", "devices"]),
    ("capture", &["errors", "types", "devices", "arrays"]),
    ("dispatcher", &["errors", "once", "types", "devices", "arrays", "args", "engine", "capture"]),
    ("lib", &["command", "types", "devices", "arrays", "args", "engine", "capture", "dispatcher"]),
];

/// External crates, and the only files that may use them.
const SOLE_USERS: &[(&str, &[&str])] = &[
    ("annotate_snippets", &["compiler/src/diagnostic/"]),
    ("rustpython_parser", &["compiler/src/syntax/parse"]),
    ("num_bigint", &["compiler/src/syntax/"]),
    ("inkwell", &["compiler/src/backend/"]),
    ("llvm_sys", &["compiler/src/backend/"]),
    ("cudarc", &["runtime/src/cuda/"]),
    ("libloading", &["runtime/src/cuda/", "runtime/ffi/src/torch/"]),
    ("indicatif", &["runtime/src/progress.rs"]),
    ("corosensei", &["runtime/src/cpu/"]),
    ("libc", &["runtime/src/cpu/invalid_access/", "runtime/src/cpu/priority.rs"]),
    ("clap", &["compiler/cli/src/"]),
    ("clap_complete", &["compiler/cli/src/"]),
    ("lsp_server", &["compiler/cli/src/lsp/"]),
    ("lsp_types", &["compiler/cli/src/lsp/"]),
    ("serde_json", &["compiler/cli/src/"]),
    ("blake3", &["compiler/engine/src/"]),
    ("pyo3", &["pybindings/src/"]),
    ("insta", &["tests/rust/"]),
    ("similar", &["tests/rust/"]),
];

/// Crates of the workspace, and the crates of the workspace that each may use.
const CRATES: &[(&str, &[&str])] = &[
    ("compiler/artifact/src/", &[]),
    ("compiler/src/", &["weft_artifact"]),
    ("compiler/engine/src/", &["weft_artifact", "weft_compiler"]),
    ("compiler/export/src/", &["weft_artifact"]),
    ("compiler/cli/src/", &["weft_artifact", "weft_compiler", "weft_engine", "weft_export", "weft_runtime"]),
    ("runtime/src/", &["weft_artifact"]),
    ("runtime/ffi/src/", &["weft_artifact"]),
    ("runtime/simulator/", &["weft_artifact"]),
    (
        "pybindings/src/",
        &[
            "weft_artifact",
            "weft_compiler",
            "weft_engine",
            "weft_export",
            "weft_runtime",
            "weft_ffi",
            "weft_simulator",
            "weft_cli",
        ],
    ),
];

/// Programs that use weft's packages. They are no part of it.
const EXAMPLES: &str = "examples/rust/";

/// Files that may contain `unsafe`.
const UNSAFE: [&str; 10] = [
    EXAMPLES,
    "runtime/src/cuda/",
    "runtime/src/cpu/",
    "runtime/src/print.rs",
    "runtime/ffi/src/",
    "runtime/simulator/src/execute/simple.rs",
    "runtime/simulator/src/memory/",
    "runtime/tests/",
    "compiler/src/backend/",
    "pybindings/src/arrays/",
];

/// Fails with the faults, one per line, if there are any.
fn assert_none(faults: &[String], hint: &str) {
    assert!(faults.is_empty(), "{hint}\n{}", faults.join("\n"));
}

/// Whether a text contains a word, not only as part of a longer word.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// The first name after each `crate::` in a text: `a` and `b` of `use crate::{a::X, b};`.
fn crate_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (start, prefix) in text.match_indices("crate::") {
        if text[..start].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$')) {
            continue;
        }
        let rest = &text[start + prefix.len()..];
        let mut depth = 0;
        let mut name = String::new();
        // A name is recorded at the start, and after `{` or `,` at the outermost brace level.
        let mut wanted = true;
        for c in rest.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => wanted = true,
                c if c.is_alphanumeric() || c == '_' => {
                    if wanted {
                        name.push(c);
                    }
                    continue;
                }
                _ => {}
            }
            if !name.is_empty() {
                names.push(std::mem::take(&mut name));
                wanted = c == ',' && depth == 1;
            }
            if depth == 0 {
                break;
            }
        }
        names.extend((!name.is_empty()).then_some(name));
    }
    names
}

#[test]
fn names_behind_crate_are_found() {
    let text = "use crate::{\n    ir::{self, Module},\n    request::Target,\n    target\n};\nfn f(x: crate::source::Span) {} $crate::no";
    assert_eq!(crate_names(text), ["ir", "request", "target", "source"]);
}

#[test]
fn modules_use_what_the_table_allows() {
    let mut faults = Vec::new();
    for (folder, units) in [("compiler/src/", UNITS), ("pybindings/src/", FACES)] {
        for path in files(&[folder.trim_end_matches('/')], "rs") {
            let inside = path.trim_start_matches(folder);
            let unit = inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs");
            let Some((_, allowed)) = units.iter().find(|(name, _)| *name == unit) else {
                faults.push(format!("{path}: no row of the table for `{unit}`"));
                continue;
            };
            // Unit tests may use every module.
            let text = code(&path);
            let text = if path.ends_with("/tests.rs") || path.ends_with("/testing.rs") || path.contains("/tests/") {
                ""
            } else {
                text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("")
            };
            for name in crate_names(text) {
                if name != unit && !allowed.contains(&name.as_str()) {
                    faults.push(format!("{path}: {unit} may not use {name}"));
                }
            }
        }
    }
    assert_none(&faults, "see the table in docs/architecture.md");
}

#[test]
fn crates_have_their_only_users() {
    let mut faults = Vec::new();
    for path in files(&CODE, "rs") {
        let is_example = path.starts_with(EXAMPLES);
        if path.ends_with("build.rs") || path.starts_with("tests/") || path.contains("/tests/") || is_example {
            continue;
        }
        let text = code(&path);
        for (name, users) in SOLE_USERS {
            if has_word(&text, name) && !users.iter().any(|user| path.starts_with(user)) {
                faults.push(format!("{path}: only {users:?} may use {name}"));
            }
        }
        let ours = [
            "weft_artifact",
            "weft_compiler",
            "weft_engine",
            "weft_export",
            "weft_runtime",
            "weft_ffi",
            "weft_simulator",
            "weft_cli",
        ];
        let Some((own, allowed)) = CRATES.iter().find(|(folder, _)| path.starts_with(folder)) else {
            faults.push(format!("{path}: in no crate of the table"));
            continue;
        };
        for name in ours {
            // `main.rs` of the command uses its own library.
            let itself = *own == "compiler/cli/src/" && name == "weft_cli";
            if has_word(&text, name) && !allowed.contains(&name) && !itself {
                faults.push(format!("{path}: {own} may not use {name}"));
            }
        }
        if path.starts_with("runtime/src/cuda/") && has_word(&text, "cpu") && text.contains("crate::cpu") {
            faults.push(format!("{path}: cuda and cpu do not know each other"));
        }
        if path.starts_with("runtime/src/cpu/") && text.contains("crate::cuda") {
            faults.push(format!("{path}: cuda and cpu do not know each other"));
        }
    }
    assert_none(&faults, "see the table in docs/architecture.md");
}

#[test]
fn only_the_engine_asks_the_compiler() {
    // A fork waits only for the engine's work. Names of result types are allowed.
    let mut faults = Vec::new();
    for path in files(&["compiler/cli/src", "pybindings/src"], "rs") {
        let text = code(&path).split_whitespace().collect::<String>();
        let work = ["pipeline::{self", "pipeline,", "pipeline::compile", "pipeline::check", "pipeline::result_type"];
        faults.extend(work.iter().filter(|work| text.contains(*work)).map(|work| format!("{path}: {work}")));
    }
    assert_none(&faults, "these call the compiler without the engine");
}

#[test]
fn every_file_says_what_it_holds() {
    let mut faults = Vec::new();
    for path in files(&CODE, "rs") {
        if !read(&path).starts_with("//! ") {
            faults.push(format!("{path}: does not open with `//! `"));
        }
    }
    for path in files(&CODE, "py").into_iter().chain(["weft-dev".to_owned()]) {
        let text = read(&path);
        let first = text.lines().find(|line| !line.starts_with("#!")).unwrap_or("");
        if !text.is_empty() && !first.starts_with('#') && !first.starts_with("\"\"\"") && !first.starts_with("r\"\"\"")
        {
            faults.push(format!("{path}: opens with neither a docstring nor a comment"));
        }
    }
    assert_none(&faults, "see the house rules in docs/contributing.md");
}

#[test]
fn unsafe_has_its_places_and_reasons() {
    let mut faults = Vec::new();
    for path in files(&CODE, "rs") {
        let text = read(&path);
        let lines: Vec<_> = text.lines().collect();
        let mut used = false;
        for (index, line) in lines.iter().enumerate() {
            let code = code_of(line);
            if !(code.contains("unsafe {") || code.contains("unsafe impl")) {
                continue;
            }
            if path.starts_with("tests/") && code.contains('"') {
                continue; // This file searches for the word in a string.
            }
            used = true;
            if !has_reason(&lines, index) {
                faults.push(format!("{path}:{}: no `// SAFETY:` above", index + 1));
            }
        }
        if used && !UNSAFE.iter().any(|place| path.starts_with(place)) {
            faults.push(format!("{path}: `unsafe` is not allowed here"));
        }
    }
    assert_none(&faults, "see the house rules in docs/contributing.md");
}

/// Whether there is a `// SAFETY:` comment above a line. Attributes and earlier lines of the same statement may come
/// between.
fn has_reason(lines: &[&str], index: usize) -> bool {
    if lines[index].contains("// SAFETY:") {
        return true;
    }
    for line in lines[..index].iter().rev() {
        let line = line.trim();
        if line.starts_with("// SAFETY:") {
            return true;
        }
        // If the block is in the middle of a statement, the comment is above the first line of the statement.
        let ends = line.is_empty() || line.ends_with([';', '}']) && !line.starts_with("//");
        if ends {
            return false;
        }
    }
    false
}

#[test]
fn dependencies_say_what_they_are_for() {
    let mut faults = Vec::new();
    let mut n_checked = 0;
    let text = read("Cargo.toml");
    let dependencies = text.split("[workspace.dependencies]\n").nth(1).expect("the section is there");
    for line in dependencies.lines().take_while(|line| !line.starts_with('[')) {
        if !line.is_empty() && !line.contains("path = ") {
            n_checked += 1;
            if line.split_once("  # ").is_none_or(|(_, reason)| reason.len() < 10) {
                faults.push(format!("Cargo.toml: {line}"));
            }
        }
    }
    for path in files(&["compiler", "runtime", "pybindings", "tests"], "toml") {
        if !path.ends_with("Cargo.toml") {
            continue;
        }
        let mut in_dependencies = false;
        for line in read(&path).lines() {
            if line.starts_with('[') {
                in_dependencies = line.ends_with("dependencies]");
            } else if in_dependencies && !line.is_empty() && !line.starts_with('#') {
                n_checked += 1;
                if !line.contains("workspace = true") {
                    faults.push(format!("{path}: {line}"));
                }
            }
        }
    }
    assert!(n_checked > 20, "the sections were not found");
    assert_eq!(
        faults, [""; 0],
        "a dependency belongs in the root's Cargo.toml, with a comment that says what it is for"
    );
}

#[test]
fn nothing_is_left_to_do() {
    let words = ["todo!", "unimplemented!", "dbg!"];
    let mut faults = Vec::new();
    for path in files(&["compiler", "runtime", "pybindings"], "rs") {
        let text = code(&path);
        for word in words {
            if text.contains(word) {
                faults.push(format!("{path}: {word}"));
            }
        }
    }
    assert_none(&faults, "see the house rules in docs/contributing.md");
}

#[test]
fn only_the_command_prints() {
    let mut faults = Vec::new();
    for path in files(&["compiler", "runtime", "pybindings"], "rs") {
        if path.starts_with("compiler/cli/") || path.ends_with("build.rs") {
            continue;
        }
        let text = code(&path);
        for word in ["println!", "eprintln!", "print!", "eprint!"] {
            if has_word(&text, word.trim_end_matches('!')) && text.contains(word) {
                faults.push(format!("{path}: {word}"));
            }
        }
    }
    assert_none(&faults, "see the house rules in docs/contributing.md");
}

#[test]
fn the_table_names_units_that_exist() {
    for (folder, units) in [("compiler/src", UNITS), ("pybindings/src", FACES)] {
        for (unit, allowed) in units {
            let place = root().join(folder).join(unit);
            assert!(place.is_dir() || place.with_extension("rs").is_file(), "there is no {folder}/{unit}");
            for name in *allowed {
                assert!(units.iter().any(|(other, _)| other == name), "{unit}: there is no {name}");
            }
        }
        // A unit may use only units listed before it, so there are no cycles.
        if folder == "pybindings/src" {
            for (index, (unit, allowed)) in units.iter().enumerate() {
                let above = |name: &&str| units.iter().take(index).any(|(other, _)| *other == *name);
                assert!(allowed.iter().all(above), "{unit} uses a unit below it");
            }
        }
    }
}
