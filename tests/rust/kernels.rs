//! Every kernel of `tests/kernels` compiles for a GPU and for the host, and shows what it became: a snapshot for each
//! stage that its header names, with the source above and the output below.
//!
//! The kernel of a file has the file's name. LLVM's own words (banner, version, data layout, attribute groups) are
//! left out, so that an update of LLVM changes what it really changed.

use std::{collections::BTreeSet, path::Path};

use weft_compiler::{
    pipeline::Output,
    request::{Keep, Target},
};

use crate::{
    header::Header,
    support::{Case, compile, files, rendered},
};

/// Where the snapshots lie, from this file.
const SNAPSHOTS: &str = "../snapshots";

#[test]
fn kernels_compile_and_look_as_before() {
    insta::glob!("..", "kernels/**/*.py", |path| {
        let case = Case::open(path);
        let header = Header::read(&case.text).unwrap_or_else(|error| panic!("{}: {error}", case.path));
        // Every kernel compiles for both, whatever it shows.
        let mut targets = header.targets.clone();
        targets.extend(["sm_80".to_owned(), "host".to_owned()]);
        let mut seen = BTreeSet::new();
        for target in targets.iter().filter(|target| seen.insert((*target).clone())) {
            let keep = Keep { ir: true, llvm: true, asm: false };
            let output = compile(&case, header.sig.as_deref(), target, keep)
                .unwrap_or_else(|failure| panic!("{} for {target}:\n{}", case.path, rendered(&failure)));
            assert!(output.warnings.is_empty(), "{}: {:?}", case.path, output.warnings);
            if header.targets.contains(target) {
                show(&case, &header, target, &output);
            }
        }
    });
}

/// Compares the stages that the header names.
fn show(case: &Case, header: &Header, target: &str, output: &Output) {
    for stage in &header.show {
        let text = match stage.as_str() {
            // The same for every target: shown for the first.
            "ir" if header.targets.first().is_some_and(|first| first == target) => output.ir.clone(),
            "ir" => continue,
            "llvm" => output.llvm.as_deref().map(without_llvm_words),
            // The host's code is this machine's own.
            "ptx" if target != "host" => Some(without_ptx_words(&String::from_utf8_lossy(&output.artifact.code))),
            "ptx" => continue,
            other => panic!("{}: there is no stage `{other}`", case.path),
        };
        let text = text.unwrap_or_else(|| panic!("{}: nothing came back for {stage}", case.path));
        let mut settings = insta::Settings::clone_current();
        settings.remove_snapshot_suffix();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_snapshot_path(SNAPSHOTS);
        settings.set_omit_expression(true);
        settings.bind(|| {
            let shown = format!("{}\n---------- {stage}\n{}", case.text, text.trim_end());
            insta::assert_snapshot!(snapshot_name(&case.path, stage, target, &header.targets), shown);
        });
    }
}

/// `indexing__grid_1d.ptx`, with the target where there are several.
fn snapshot_name(path: &str, stage: &str, target: &str, targets: &[String]) -> String {
    let name = path.trim_start_matches("tests/kernels/").trim_end_matches(".py").replace('/', "__");
    let shown_once = stage == "ir" || targets.iter().filter(|target| *target != "host").count() < 2;
    if shown_once { format!("{name}.{stage}") } else { format!("{name}.{target}.{stage}") }
}

/// PTX without LLVM's banner and the ISA's version.
fn without_ptx_words(ptx: &str) -> String {
    let kept = ptx.lines().filter(|line| !line.starts_with("//") && !line.starts_with(".version"));
    kept.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// LLVM IR without names of files, the layout, attribute groups and metadata.
fn without_llvm_words(llvm: &str) -> String {
    let dropped = ["; ModuleID", "source_filename", "target ", "attributes #", "!"];
    let kept = llvm.lines().filter(|line| !dropped.iter().any(|start| line.starts_with(start)));
    kept.collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[test]
fn every_snapshot_has_its_kernel() {
    let mut wanted = BTreeSet::new();
    for path in files(&["tests/kernels"], "py") {
        let header = Header::read(&crate::support::read(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        for stage in &header.show {
            for target in &header.targets {
                wanted.insert(format!("tests/snapshots/{}.snap", snapshot_name(&path, stage, target, &header.targets)));
            }
        }
    }
    let found: BTreeSet<_> = files(&["tests/snapshots"], "snap").into_iter().filter(|path| !path.contains("/diagnostics/")).collect();
    assert_eq!(found.difference(&wanted).collect::<Vec<_>>(), [""; 0], "snapshots that no kernel makes");
}

#[test]
fn a_kernel_has_the_name_of_its_file() {
    for path in files(&["tests/kernels"], "py") {
        let stem = Path::new(&path).file_stem().and_then(|stem| stem.to_str()).expect("the path has a name");
        let text = crate::support::read(&path);
        assert!(text.contains(&format!("\ndef {stem}(")), "{path}: no kernel `{stem}`");
    }
}

#[test]
fn targets_of_headers_are_known() {
    for path in files(&["tests/kernels"], "py") {
        let header = Header::read(&crate::support::read(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        for target in header.targets {
            let known = weft_compiler::target::parse(&target);
            assert!(matches!(known, Ok(Target::Host | Target::Sm(..))), "{path}: {target}");
        }
    }
}
