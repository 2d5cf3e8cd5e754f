//! Compiles every kernel of `tests/kernels` for a GPU and for the host. Each stage that a kernel's header names has a
//! snapshot, with the source and the output.
//!
//! A kernel has the name of its file. LLVM's banner, version, data layout and attribute groups are removed, so that an
//! update of LLVM changes snapshots only where the code changes.

use std::collections::BTreeSet;

use crate::{
    header::Header,
    support::{assert_snapshot, emit_for, files, read, stem},
};

#[test]
fn kernels_compile_and_look_as_before() {
    let mut faults = Vec::new();
    insta::glob!("..", "kernels/**/*.py", |path| {
        let path = path.to_str().expect("names in the repository are UTF-8");
        let inside = &path[path.find("kernels/").expect("the pattern says so")..];
        let text = read(&format!("tests/{inside}"));
        let header = Header::read(&text).unwrap_or_else(|error| panic!("{inside}: {error}"));
        let mut made = |target: &str, form: &str, header: &Header| {
            let made = emit_for(inside, stem(inside), header, target, form);
            made.map_err(|fault| faults.push(format!("{inside} for {target}:\n{fault}"))).ok()
        };
        // Every kernel is compiled for both targets, except GPU-only kernels, and to NVVM IR.
        let unspecialized = Header { assumptions: Vec::new(), ..header.clone() };
        let sm = if header.is_limited() { header.targets[0].as_str() } else { "sm_80" };
        for (target, form) in [(sm, "ptx"), (sm, "nvvm"), ("host", "asm")] {
            let is_foreign = header.abi.is_some() && target == "host";
            if !is_foreign && !header.without.iter().any(|without| without == target) {
                made(target, form, &unspecialized);
            }
        }
        for (target, stage) in shown(&header) {
            if let Some(output) = made(target, stage, &header) {
                assert_snapshot(
                    &snapshot_name(inside, &header, target, stage),
                    &text,
                    stage,
                    &without_llvm_words(&output),
                );
            }
        }
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The listings that a header requests, as (target, stage). Host code depends on the machine and has no snapshot; plans
/// are those for a CPU with masked vectors.
/// weft's IR is the same for every target and has one snapshot.
fn shown(header: &Header) -> Vec<(&str, &str)> {
    let gpus = || header.targets.iter().map(String::as_str).filter(|target| *target != "host");
    let mut shown = Vec::new();
    for stage in &header.show {
        match stage.as_str() {
            "ir" => shown.extend(header.targets.first().map(|target| (target.as_str(), "ir"))),
            "plan" => shown.push(("host", "plan")),
            stage @ ("llvm" | "ptx" | "nvvm") => shown.extend(gpus().map(|target| (target, stage))),
            other => panic!("there is no stage `{other}`"),
        }
    }
    shown
}

/// A snapshot's name, such as `indexing__grid_1d.ptx`. It contains the target if there are several.
fn snapshot_name(path: &str, header: &Header, target: &str, stage: &str) -> String {
    let name = path.trim_start_matches("kernels/").trim_end_matches(".py").replace('/', "__");
    let several = shown(header).iter().filter(|(_, other)| *other == stage).count() > 1;
    if several { format!("{name}.{target}.{stage}") } else { format!("{name}.{stage}") }
}

/// PTX without LLVM's banner and the ISA version; LLVM IR without file names, data layout, attribute groups and
/// metadata.
fn without_llvm_words(text: &str) -> String {
    let dropped = ["//", ".version", "; ModuleID", "source_filename", "target ", "attributes #", "!"];
    // The metadata of NVVM IR is weft's own, and marks the kernels.
    let is_nvvm = text.contains("!nvvmir.version");
    let dropped = if is_nvvm { &dropped[..dropped.len() - 1] } else { &dropped };
    let kept = text.lines().filter(|line| !dropped.iter().any(|start| line.starts_with(start)));
    kept.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The kernels and their headers.
fn headers() -> Vec<(String, Header)> {
    let read_header = |path: &String| Header::read(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    files(&["tests/kernels"], "py").into_iter().map(|path| (path.clone(), read_header(&path))).collect()
}

#[test]
fn every_snapshot_has_its_kernel() {
    let mut wanted = BTreeSet::new();
    for (path, header) in headers() {
        for (target, stage) in shown(&header) {
            let name = snapshot_name(path.trim_start_matches("tests/"), &header, target, stage);
            wanted.insert(format!("tests/snapshots/{name}.snap"));
        }
    }
    for path in files(&["tests/snapshots"], "snap") {
        assert!(
            ["/diagnostics__", "/notes__", "/plans__", "/remarks__"].iter().any(|other| path.contains(other))
                || wanted.contains(&path),
            "{path}: no kernel makes it"
        );
    }
}

#[test]
fn a_kernel_has_the_name_of_its_file() {
    for (path, header) in headers() {
        assert!(read(&path).contains(&format!("\ndef {}(", stem(&path))), "{path}: no kernel `{}`", stem(&path));
        for target in header.targets {
            assert!(
                weft_compiler::target::parse(&target, weft_compiler::host_cpu).is_ok(),
                "{path}: there is no target {target}"
            );
        }
    }
}
