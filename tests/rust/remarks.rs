//! Shows what the CPU planner says about the loops and accesses of the kernels in `tests/remarks`. The plans are those
//! for a CPU with masked vectors.

use std::ffi::OsString;

use crate::{
    header::Header,
    support::{assert_snapshot, read, stem, weft_in},
};

#[test]
fn remarks_name_what_was_done_and_why_not() {
    insta::glob!("..", "remarks/*.py", |path| {
        let path = path.to_str().expect("names in the repository are UTF-8");
        let inside = &path[path.find("remarks/").expect("the pattern says so")..];
        let text = read(&format!("tests/{inside}"));
        let header = Header::read(&text).unwrap_or_else(|error| panic!("{inside}: {error}"));
        let assumed = header.assumptions.join(",");
        let mut arguments = vec!["emit", inside, "--target", "host", "--emit", "ir", "--remarks", "--assume", &assumed];
        if let Some(block) = &header.block {
            arguments.extend(["--block", block]);
        }
        let ran = weft_in(planned, &arguments);
        assert_eq!(ran.code, 0, "{inside}: {}", ran.stderr);
        assert_snapshot(&format!("remarks__{}", stem(inside)), &text, "remarks", &ran.stderr);
    });
}

/// An environment in which plans are those for a CPU with masked vectors.
fn planned(name: &str) -> Option<OsString> {
    match name {
        "WEFT_HOST_PLAN" => Some("x86-64-v4".into()),
        "WEFT_HOST_OPT_LEVEL" => Some("0".into()),
        _ => None,
    }
}
