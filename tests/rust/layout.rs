//! Rules about files and functions: one module style, and a maximum function length.

use crate::support::{files, read, root};

/// Folders with this project's code.
const CODE: [&str; 6] = ["compiler", "docs", "examples", "pybindings", "runtime", "tests"];

/// The maximum number of lines of code in a function, without blank lines and comments.
const MAX_LINES: usize = 100;

/// Functions that may be longer: the file, the function, and the reason. A path that ends with `/` means all functions
/// below that folder.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[
    ("compiler/engine/src/digest/request.rs", "captured", "a match with one arm per kind of captured value"),
    ("compiler/engine/tests/digest.rs", "every_change_gives_another_digest", "a table of changes"),
    ("compiler/src/backend/host/", "", "the CPU back end will be redesigned as a whole"),
    ("compiler/src/frontend/builtins/mod.rs", "custom", "a match with one arm per intrinsic"),
    ("compiler/src/ir/op.rs", "row", "a table with one row per operation"),
    ("compiler/src/ir/verify/tests.rs", "each_broken_module_is_caught", "a table of broken modules"),
    ("tests/numba_compatibility/reasons.py", "_rows", "a table of reasons"),
];

/// A function of a source file.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    /// Its first line, counted from 1.
    line: usize,
    /// Its lines of code.
    len: usize,
}

/// Returns the name of the function whose definition begins in a line.
type Start = fn(&str) -> Option<&str>;

/// Returns the closing delimiter of a string that begins in a line and continues on the next one.
type OpenString = fn(&str) -> Option<String>;

/// The identifier at the start of a text.
fn identifier(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
}

fn rust_start(line: &str) -> Option<&str> {
    let words = ["pub", "const", "async", "unsafe", "extern", "default", "\"C\"", "\"C-unwind\""];
    let mut rest = line.trim_start();
    loop {
        if let Some(name) = rest.strip_prefix("fn ") {
            return Some(identifier(name));
        }
        let (word, after) = rest.split_once(' ')?;
        rest = match after.split_once(") ") {
            Some((_, after)) if word == "pub(in" => after,
            _ if words.contains(&word) || word.starts_with("pub(") => after,
            _ => return None,
        };
    }
}

fn python_start(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("async ").unwrap_or(line).strip_prefix("def ").map(identifier)
}

fn c_start(line: &str) -> Option<&str> {
    let is_statement =
        matches!(identifier(line.trim_start()), "if" | "for" | "while" | "switch" | "do" | "else" | "return");
    if indent(line) > 2 || is_statement || line.starts_with(['#', '/', '*', '}']) || line.ends_with(';') {
        return None;
    }
    let (head, _) = line.split_once('(')?;
    head.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

/// The delimiter of a raw string, with or without `#`.
fn rust_string(line: &str) -> Option<String> {
    let (start, _) = line.match_indices('r').find(|(start, _)| {
        line[start + 1..].trim_start_matches('#').starts_with('"')
            && !line[..*start].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '"')
    })?;
    let hashes = line[start + 1..].chars().take_while(|c| *c == '#').count();
    let closing = format!("\"{}", "#".repeat(hashes));
    (!line[start + hashes + 2..].contains(&closing)).then_some(closing)
}

/// The delimiter of a triple-quoted string.
fn python_string(line: &str) -> Option<String> {
    let quotes = "\"\"\"";
    (line.matches(quotes).count() % 2 == 1).then(|| quotes.to_owned())
}

fn no_string(_: &str) -> Option<String> {
    None
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || line.starts_with("/*") || line.starts_with("* ") || line.starts_with("# ")
}

/// The functions of a file. All code in this repository is formatted, so a function ends at the first line after its
/// parameters that has the indentation of its first line.
fn functions(text: &str, start: Start, open_string: OpenString) -> Vec<Function> {
    let mut closing: Option<String> = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        let is_string = closing.is_some();
        closing = match closing.take() {
            Some(end) if line.contains(&end) => None,
            None => open_string(line),
            open => open,
        };
        lines.push((line, is_string));
    }
    let mut found = Vec::new();
    for (index, (first, is_string)) in lines.iter().enumerate() {
        let Some(name) = start(first).filter(|_| !is_string) else { continue };
        let own = indent(first);
        let is_end = |line: &str| {
            let continues = [")", "{", "where", "#"].iter().any(|word| line.trim_start().starts_with(word));
            indent(line) <= own && !line.is_empty() && !continues
        };
        let body = lines[index + 1..].iter().take_while(|(line, is_string)| *is_string || !is_end(line));
        let is_code = |line: &str| !line.trim().is_empty() && !is_comment(line);
        let len = 1 + body.filter(|(line, is_string)| *is_string || is_code(line)).count();
        found.push(Function { name: name.to_owned(), line: index + 1, len });
    }
    found
}

#[test]
fn functions_are_found_with_their_lines() {
    let of = |name: &str, line, len| Function { name: name.to_owned(), line, len };
    let rust = "impl X {\n    pub(in crate::a) const fn one(\n        x: u8,\n    ) -> u8\n    where\n        X: Y,\n    {\n        // why\n\n        x\n    }\n\n    fn two() -> &str {\n        r#\"\nfn no() {\n}\n\"#\n    }\n}\n";
    assert_eq!(functions(rust, rust_start, rust_string), [of("one", 2, 7), of("two", 13, 5)]);
    let python = "def f(\n    x,\n):\n    # why\n    def g():\n        return x\n\n    return g\n\n\nasync def h():\n    \"\"\"\nno\n\"\"\"\n";
    assert_eq!(functions(python, python_start, python_string), [of("f", 1, 6), of("g", 5, 2), of("h", 11, 4)]);
    let c = "struct X {\n  int f(int a,\n        int b) {\n    return a;\n  }\n};\nstatic int g(void)\n{\n    if (1)\n        return 2;\n}\nint h(void);\n";
    assert_eq!(functions(c, c_start, no_string), [of("f", 2, 3), of("g", 7, 4)]);
}

#[test]
fn functions_are_short_enough_to_read() {
    let languages: [(&str, Start, OpenString); 5] = [
        ("rs", rust_start, rust_string),
        ("py", python_start, python_string),
        ("c", c_start, no_string),
        ("h", c_start, no_string),
        ("cpp", c_start, no_string),
    ];
    let (mut faults, mut used) = (Vec::new(), vec![false; LONG_FUNCTIONS.len()]);
    for (extension, start, open_string) in languages {
        for path in files(&CODE, extension) {
            for Function { name, line, len } in functions(&read(&path), start, open_string) {
                if len <= MAX_LINES {
                    continue;
                }
                let is_of = |(file, function, _): &(&str, &str, &str)| {
                    if file.ends_with('/') { path.starts_with(file) } else { path == *file && name == *function }
                };
                match LONG_FUNCTIONS.iter().position(is_of) {
                    Some(row) => used[row] = true,
                    None => faults.push(format!("{path}:{line}: `{name}` has {len} lines, at most {MAX_LINES}")),
                }
            }
        }
    }
    let unused = LONG_FUNCTIONS.iter().zip(used).filter(|(_, used)| !used);
    faults.extend(unused.map(|((file, name, _), _)| format!("{file}: no function `{name}` is long: remove its row")));
    assert!(faults.is_empty(), "split them by subject (docs/contributing.md, \"House rules\"):\n{}", faults.join("\n"));
}

#[test]
fn a_module_with_a_folder_is_its_mod_rs() {
    let paths = files(&CODE, "rs");
    let has_folder = |path: &&String| root().join(path.trim_end_matches(".rs")).is_dir();
    let faults: Vec<_> = paths.iter().filter(has_folder).map(String::as_str).collect();
    assert!(faults.is_empty(), "move these into their folders as `mod.rs`:\n{}", faults.join("\n"));
}
