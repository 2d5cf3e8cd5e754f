//! `weft check` of folders and notebooks, in every output format and in watch mode.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Folder, SAXPY};

/// A kernel with an error in line 8. The columns of the error count characters.
fn wrong() -> String {
    SAXPY.replace("out[i] = a * x[i]", "é = x; out[i] = b * x[i]")
}

/// A notebook with cells given as pairs of type and text.
fn notebook(cells: &[(&str, &str)]) -> String {
    let cells: Vec<Value> = cells
        .iter()
        .map(|(kind, text)| json!({"cell_type": kind, "metadata": {}, "source": text.split_inclusive('\n').collect::<Vec<_>>()}))
        .collect();
    json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

#[test]
fn a_folder_is_all_files_of_ones_own() {
    let folder = Folder::with("a.py", SAXPY);
    for below in ["d", ".hidden", "venv", "env", "out", "d/__pycache__"] {
        fs::create_dir_all(folder.path().join(below)).expect("the folder can be written");
    }
    folder.write("env/pyvenv.cfg", "");
    folder.write(".gitignore", "out/\nd/skip_*.py\n");
    folder.write("d/.gitignore", "!skip_not.py\n");
    folder.write("plain.py", "x = (\n");
    folder.write("d/ok.py", SAXPY);
    folder.write("d/skip_not.py", SAXPY);
    folder.write("d/n.ipynb", &notebook(&[("code", SAXPY)]));
    for skipped in [".hidden/a.py", "venv/a.py", "env/a.py", "out/a.py", "d/__pycache__/a.py", "d/skip_this.py"] {
        folder.write(skipped, &wrong());
    }
    let expected = "./a.py: 1 kernel\n./d/n.ipynb: 1 kernel\n./d/ok.py: 1 kernel\n./d/skip_not.py: 1 kernel\n\
                    .: 4 files with kernels, of 5\n";
    assert_eq!(folder.weft(&["check", "."]).succeeded(), expected);
    folder.write("d/ok.py", &wrong());
    let said = folder.weft(&["check", "."]).failed(1);
    assert!(said.contains("error[E0201]") && said.contains("--> ./d/ok.py:8:25"), "{said}");
    // An invalid notebook does not stop the check of the other files.
    folder.write("d/n.ipynb", "cuda");
    let said = folder.weft(&["check", "."]).failed(1);
    assert!(said.contains("error[E0101]: ./d/n.ipynb is not a notebook") && said.contains("error[E0201]"), "{said}");
    // A file named on the command line is checked even if git ignores it.
    assert!(folder.weft(&["check", "d/skip_this.py"]).failed(1).contains("E0201"));
}

#[test]
fn a_notebook_is_its_cells() {
    let kernel = "%matplotlib inline\n!pip install weft\n@cuda.jit('void(float32[:])')\ndef k(x):\n    x[0] = y\n";
    let cells = [
        ("markdown", "# Kernels"),
        ("code", "from weft import cuda\nN = 3\nfiles = !ls"),
        ("code", kernel),
        ("code", "%%bash\nls (\n"),
        ("code", "def broken(:\n"),
        ("code", "@cuda.jit('void(float32[:])')\ndef last(x):\n    x[0] = N\n"),
    ];
    let folder = Folder::with("n.ipynb", &notebook(&cells));
    let said = folder.weft(&["check", "n.ipynb"]).failed(1);
    assert!(said.contains("error[E0201]") && said.contains("--> n.ipynb:cell 3:5:12\n"), "{said}");
    assert!(said.contains("5 |     x[0] = y\n"), "{said}");
    assert!(said.contains("error[E0101]") && said.contains("--> n.ipynb:cell 5:1:"), "{said}");
    assert!(said.ends_with("\n\n2 errors\n"), "{said}");

    let json = folder.weft(&["check", "n.ipynb", "--format", "json"]);
    let found: Value = serde_json::from_str(&json.stdout).expect("is JSON");
    assert_eq!((json.code, json.stderr.as_str()), (Some(1), ""));
    let unknown = found.as_array().expect("is a list").iter().find(|one| one["code"] == "E0201").expect("is there");
    let place = ["file", "cell", "line", "column"].map(|key| unknown[key].clone());
    assert_eq!(place, [json!("n.ipynb"), json!(3), json!(5), json!(12)]);

    folder.write("n.ipynb", &notebook(&[cells[1], cells[5]]));
    assert_eq!(folder.weft(&["check", "n.ipynb"]).succeeded(), "n.ipynb: 1 kernel\n");
    folder.write("n.ipynb", "{\"cells\": 1}");
    assert!(
        folder
            .weft(&["check", "n.ipynb"])
            .failed(2)
            .contains("n.ipynb is not a notebook that weft can read: it has no list")
    );
}

#[test]
fn formats_are_those_of_other_programs() {
    let folder = Folder::with("a b.py", &wrong());
    let ran = folder.weft(&["check", "a b.py", "--format", "github"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    let expected =
        "::error file=a b.py,line=8,endLine=8,col=25,endColumn=25,title=weft E0201::name `b` is not defined\n";
    assert_eq!(ran.stdout, expected);
    folder.write("help.py", &SAXPY.replace("cuda.grid(1)", "cuda.gird(1)"));
    let said = folder.weft(&["check", "help.py", "--format", "github"]).stdout;
    assert!(said.contains("%0Ahelp: did you mean") && said.lines().count() == 1, "{said}");

    let ran = folder.weft(&["check", "a b.py", "--format", "sarif"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    let log: Value = serde_json::from_str(&ran.stdout).expect("is JSON");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let result = &run["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("E0201"), &json!("error")));
    let physical = &result["locations"][0]["physicalLocation"];
    assert_eq!(physical["artifactLocation"]["uri"], "a%20b.py");
    let region = json!({"startLine": 8, "startColumn": 25, "endLine": 8, "endColumn": 26});
    assert_eq!(physical["region"], region);
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "E0201");

    folder.write("a b.py", SAXPY);
    for (format, expected) in [("json", "[]\n"), ("github", "")] {
        assert_eq!(folder.weft(&["check", "a b.py", "--format", format]).succeeded(), expected);
    }
    let log: Value =
        serde_json::from_str(&folder.weft(&["check", "a b.py", "--format", "sarif"]).succeeded()).expect("is JSON");
    assert_eq!(log["runs"][0]["results"], json!([]));
    let said = folder.weft(&["check", "absent.py", "--format", "json"]).failed(2);
    assert!(said.starts_with("[\n  {\"code\": \"E0307\""), "{said}");
}

#[test]
fn files_that_change_are_looked_at_again() {
    let folder = Folder::with("a.py", SAXPY);
    folder.write("helper.py", "N = 1\n");
    let mut child = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["check", "--watch", "."])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let lines = BufReader::new(child.stderr.take().expect("is piped")).lines();
    let (sender, receiver) = mpsc::channel();
    // The thread ends when the pipe closes.
    let reader = thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    let wait = |wanted: &str| {
        let mut seen = Vec::new();
        while !seen.last().is_some_and(|line: &String| line.contains(wanted)) {
            let line = receiver.recv_timeout(Duration::from_mins(1));
            seen.push(line.unwrap_or_else(|_| panic!("{wanted:?} is not in {seen:?}")));
        }
    };
    wait("watching 2 files");
    folder.write("a.py", &wrong());
    wait("a.py has changed");
    wait("error[E0201]");
    wait("watching 2 files");
    // A change of an imported file, and a new file.
    folder.write("a.py", &format!("from helper import N\n{}", SAXPY.replace("a * x[i]", "N * x[i]")));
    wait("watching 2 files");
    folder.write("helper.py", "M = 1\n");
    wait("helper.py has changed");
    wait("error[");
    wait("watching 2 files");
    folder.write("new.py", &wrong());
    wait("new.py has changed");
    wait("new.py:8:");
    child.kill().expect("it runs");
    child.wait().expect("it was started");
    reader.join().expect("it does not panic");
}
