//! Shows what each pass of the CPU planner does: a kernel of `tests/plans` has the name of a pass, and its snapshot has
//! the lines that the pass removes from the plan and adds to it. The plans are those for a CPU with masked vectors.

use std::{collections::BTreeSet, ffi::OsString};

use similar::{ChangeTag, TextDiff};

use crate::{
    header::Header,
    support::{assert_snapshot, code, files, read, stem, weft_in},
};

/// Passes without a kernel, with the reason.
const WITHOUT: &[(&str, &str)] = &[
    ("inline_barriers", "only functions of many statements are left to it"),
    ("take_kernel", "it changes a plan only if a parameter is assigned, which lowering avoids"),
    ("version_extent", "a launch says which extents are short; host/tests/vector.rs tests it"),
];

#[test]
fn passes_change_plans_as_before() {
    insta::glob!("..", "plans/*.py", |path| {
        let path = path.to_str().expect("names in the repository are UTF-8");
        let inside = &path[path.find("plans/").expect("the pattern says so")..];
        let text = read(&format!("tests/{inside}"));
        let header = Header::read(&text).unwrap_or_else(|error| panic!("{inside}: {error}"));
        let sig = header.sig.as_deref().expect("the header has a signature");
        let mut arguments = vec!["emit", inside, "--target", "host", "--emit", "ir", "--sig", sig];
        let assumed = header.assumptions.join(",");
        arguments.extend(["--kernel", stem(inside)]);
        if !assumed.is_empty() {
            arguments.extend(["--assume", &assumed]);
        }
        if let Some(block) = &header.block {
            arguments.extend(["--block", block]);
        }
        let ran = weft_in(traced, &arguments);
        assert_eq!(ran.code, 0, "{inside}: {}", ran.stderr);
        let changes = changes(&ran.stderr, stem(inside));
        assert!(!changes.is_empty(), "{inside}: the pass changes nothing");
        assert_snapshot(&format!("plans__{}", stem(inside)), &text, "changes", &changes);
    });
}

#[test]
fn every_pass_has_a_kernel() {
    let kernels = files(&["tests/plans"], "py");
    let kernels: BTreeSet<&str> = kernels.iter().map(|path| stem(path)).collect();
    let mut stages = Vec::new();
    for (name, stage, _, why_here) in weft_compiler::plan_passes() {
        let is_excused = WITHOUT.iter().any(|&(without, _)| without == name);
        assert!(kernels.contains(name) != is_excused, "{name}: a pass has a kernel, or a reason that it has none");
        assert!(!why_here.is_empty(), "{name}");
        if stages.last() != Some(&stage) {
            stages.push(stage);
        }
    }
    assert_eq!(stages, ["grid", "normalize", "loops", "regions", "domain", "prefetch", "vector"]);
    for name in kernels {
        assert!(weft_compiler::plan_passes().any(|(pass, ..)| pass == name), "{name}: there is no such pass");
    }
}

#[test]
fn plans_list_the_classes_of_accesses() {
    let cases = [
        (
            "transpose",
            "#   line 8: load y[i]: contiguous\n#   line 10: load a[i, k]: strided\n#   line 11: store y[i]: contiguous\n",
        ),
        ("scaled", "#   line 9: load x[index]: strided\n#   line 9: store x[index]: strided\n"),
        ("xor_partner", "#   line 10: load x[partner]: gather\n#   line 10: store x[t]: contiguous\n"),
    ];
    for (name, lines) in cases {
        let path = format!("plans/{name}.py");
        let header = Header::read(&read(&format!("tests/{path}"))).expect("the header is valid");
        let sig = header.sig.as_deref().expect("the header has a signature");
        let ran = weft_in(|_| None, &["emit", &path, "--target", "host", "--plan", "--sig", sig]);
        let listed = format!("# accesses of threads along x:\n{lines}kernel @{name}(");
        assert!(ran.stdout.starts_with(&listed), "{name}: {}{}", ran.stdout, ran.stderr);
    }
}

/// An environment in which plans for a CPU with masked vectors are printed after each pass.
fn traced(name: &str) -> Option<OsString> {
    match name {
        "WEFT_PRINT_AFTER" => Some("all".into()),
        "WEFT_HOST_PLAN" => Some("x86-64-v4".into()),
        "WEFT_HOST_OPT_LEVEL" => Some("0".into()),
        _ => None,
    }
}

/// The lines that a pass removes and adds, the last time that it changes the plan.
fn changes(trace: &str, pass: &str) -> String {
    let (mut before, mut changes) = (String::new(), String::new());
    for section in trace.split("# after ").flat_map(|part| part.split("# before ")) {
        let Some((title, text)) = section.split_once('\n') else { continue };
        if title.ends_with("no change") {
            continue;
        }
        if title.trim_end_matches(':') == pass {
            changes = difference(&before, text);
        }
        text.clone_into(&mut before);
    }
    changes
}

fn difference(before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let lines = diff.iter_all_changes().filter_map(|change| match change.tag() {
        ChangeTag::Equal => None,
        ChangeTag::Delete => Some(format!("-{}", change.value())),
        ChangeTag::Insert => Some(format!("+{}", change.value())),
    });
    lines.collect()
}

#[test]
fn settings_select_passes() {
    let skipped = |name: &str| (name == "WEFT_SKIP_PASSES").then(|| "guards,form".into());
    let ran = weft_in(skipped, &["emit", "plans/guards.py", "--target", "host", "--plan"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("the pass `form` is required; the optional passes are warps_as_blocks, "),
        "{}",
        ran.stderr
    );
    let skipped = |name: &str| (name == "WEFT_SKIP_PASSES").then(|| "guards".into());
    let arguments =
        ["emit", "plans/guards.py", "--sig", "void(float32[::1], float32[::1])", "--target", "host", "--plan"];
    let (without, with) = (weft_in(skipped, &arguments), weft_in(|_| None, &arguments));
    assert_eq!((without.code, with.code), (0, 0), "{}{}", without.stderr, with.stderr);
    let has_guard = |text: &str| text.contains("\n        guard: ");
    assert!(has_guard(&with.stdout) && !has_guard(&without.stdout), "{}", without.stdout);
    let printed = |name: &str| (name == "WEFT_PRINT_AFTER").then(|| "guard".into());
    let ran = weft_in(printed, &arguments);
    assert!(ran.code == 2 && ran.stderr.contains("there is no pass `guard`; the passes are "), "{}", ran.stderr);
}

/// The names of the legality conditions in the code of the planner.
fn conditions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in files(&["compiler/src/backend/host/plan"], "rs") {
        let text = code(&path);
        for (_, after) in text.match_indices("legal!(").map(|(at, found)| text.split_at(at + found.len())) {
            let name = after.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'));
            names.extend(name.map(|(name, _)| name.to_owned()));
        }
    }
    names
}

#[test]
fn every_legality_condition_has_a_row() {
    let table = read("tests/legality/conditions.txt");
    let rows = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut rest = conditions();
    for row in rows {
        let [name, protects, test] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}: not three columns")
        };
        assert!(rest.remove(name), "{name}: no pass has this condition, or there are two rows");
        assert!(!protects.is_empty(), "{name}");
        let Some((path, node)) = test.split_once(".py::") else {
            let function = test.rsplit("::").next().unwrap_or_default();
            let is_test = files(&["compiler/src/backend/host"], "rs")
                .iter()
                .any(|path| read(path).contains(&format!("#[test]\nfn {function}()")));
            assert!(test == "open" || is_test, "{name}: there is no test `{test}`");
            continue;
        };
        let function = node.split(['[', ' ']).next().unwrap_or_default();
        assert!(read(&format!("{path}.py")).contains(&format!("def {function}(")), "{name}: there is no test `{test}`");
    }
    assert!(rest.is_empty(), "conditions without a row in tests/legality/conditions.txt: {rest:?}");
}
