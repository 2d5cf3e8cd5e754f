//! `weft doctor` and `weft settings`: output and exit code for various environments.

use serde_json::Value;

use crate::support::{Folder, Ran};

/// Calls `weft doctor --format json` with the cache inside the folder.
fn doctor(folder: &Folder, variables: &[(&str, &str)]) -> (Option<i32>, Value) {
    let cache = folder.path().join("cache").display().to_string();
    let variables = [&[("WEFT_DEVICE", "cpu"), ("WEFT_CACHE_DIR", cache.as_str())], variables].concat();
    let Ran { code, stdout, stderr } = folder.weft_with(&["doctor", "--format", "json"], &variables);
    assert_eq!(stderr, "");
    (code, serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}")))
}

/// The problems of a severity.
fn problems<'a>(said: &'a Value, severity: &str) -> Vec<&'a str> {
    let all = said["problems"].as_array().expect("is a list").iter();
    all.filter(|problem| problem["severity"] == severity).filter_map(|problem| problem["message"].as_str()).collect()
}

#[test]
fn a_machine_on_which_weft_works_has_no_problem() {
    let folder = Folder::new();
    let (code, said) = doctor(&folder, &[]);
    assert_eq!((code, &said["ok"]), (Some(0), &Value::Bool(true)), "{said:#}");
    assert_eq!(said["versions"]["weft"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(said["versions"]["LLVM"].as_str().is_some_and(|version| version.starts_with("22.")), "{said:#}");
    assert_eq!(said["devices"]["cpu"]["works"], true, "{said:#}");
    assert_eq!(said["devices"]["in_use"], "cpu");
    assert_eq!(said["cache"]["writable"], true);
    // It creates no files.
    assert!(folder.files(".").is_empty(), "{:?}", folder.files("."));
    let text = folder.weft_with(&["doctor"], &[("WEFT_DEVICE", "cpu"), ("WEFT_CACHE_DIR", "cache")]).succeeded();
    assert!(text.contains("a small kernel runs") && text.contains("WEFT_DEVICE     cpu (default: auto)"), "{text}");
    assert!(text.ends_with("\nNo problems found.\n"), "{text}");
}

#[test]
fn what_is_broken_is_an_error_with_a_suggestion() {
    let folder = Folder::with("file", "");
    let wrong = [
        ("WEFT_DEBUG", "yes"),
        ("WEFT_LIBDEVICE", "/nowhere/libdevice.10.bc"),
        ("WEFT_HOST_CPU", "abacus"),
        ("WEFT_NVRTC", "/nowhere/libnvrtc.so"),
        ("WEFT_DEVCE", "cpu"),
        ("WEFT_CACHE_DIR", "file"),
    ];
    let (code, said) = doctor(&folder, &wrong);
    assert_eq!((code, &said["ok"]), (Some(1), &Value::Bool(false)));
    let errors = problems(&said, "error");
    let expected = ["WEFT_DEBUG is \"yes\"", "WEFT_HOST_CPU is \"abacus\"", "WEFT_LIBDEVICE is /nowhere/"];
    assert_eq!(errors.len(), expected.len(), "{errors:?}");
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.starts_with(expected), "{error}");
    }
    let warnings = problems(&said, "warning").join("\n");
    assert!(
        warnings.contains("WEFT_DEVCE is set, but weft has no such setting; did you mean WEFT_DEVICE?"),
        "{warnings}"
    );
    assert!(warnings.contains("WEFT_NVRTC names a file that cannot be opened"), "{warnings}");
    assert!(warnings.contains("/file cannot be written: "), "{warnings}");
    let helps = said["problems"].as_array().expect("is a list").iter().map(|problem| problem["help"].as_str());
    assert!(helps.into_iter().all(|help| help.is_some_and(|help| !help.is_empty())));
    // An invalid setting does not hide the others.
    assert_eq!(said["settings"]["WEFT_DEVICE"]["value"], "cpu");
    assert_eq!(said["settings"]["WEFT_DEBUG"]["value"], "yes");
}

#[test]
fn settings_are_listed_with_where_they_are_from() {
    let folder = Folder::new();
    let clear = [("WEFT_LIBDEVICE", ""), ("WEFT_TUNE", "1")];
    let said = folder.weft_with(&["settings"], &clear).succeeded();
    let heads = said.lines().filter(|line| line.starts_with("WEFT_")).count();
    assert_eq!(heads, weft_runtime::SETTINGS.len());
    assert!(
        said.contains(
            "\nWEFT_TUNE=1  (from the environment; default: 0)\n    `1`: measure the best coarsening factors"
        ),
        "{said}"
    );
    assert!(said.contains("\nWEFT_LIBDEVICE=auto  (by default)\n"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");

    let one = folder.weft_with(&["settings", "tune", "--format", "json"], &clear).succeeded();
    let one: Value = serde_json::from_str(&one).expect("is JSON");
    assert_eq!(one.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&one[0]["name"], &one[0]["value"], &one[0]["default"]),
        (&"WEFT_TUNE".into(), &"1".into(), &"0".into())
    );
    assert_eq!((&one[0]["changed"], &one[0]["error"]), (&true.into(), &Value::Null));

    let wrong = folder.weft_with(&["settings", "WEFT_TUNE"], &[("WEFT_TUNE", "maybe")]);
    assert_eq!(
        (wrong.code, wrong.stdout.contains("WEFT_TUNE=maybe  (from the environment; default: 0, which is invalid)")),
        (Some(1), true)
    );
    let said = folder.weft(&["settings", "tuen"]).failed(2);
    assert_eq!(said, "error: weft has no setting `tuen`: did you mean WEFT_TUNE?\n");
}

#[test]
#[cfg(unix)]
fn a_cache_whose_folder_cannot_be_made_is_told_of() {
    let folder = Folder::with("file", "");
    std::os::unix::fs::symlink(folder.path().join("loop"), folder.path().join("loop")).expect("the folder is new");
    std::os::unix::fs::symlink(folder.path().join("nowhere"), folder.path().join("dangling"))
        .expect("the folder is new");
    for name in ["loop", "dangling", "dangling/below", "file", "file/below"] {
        let path = folder.path().join(name).display().to_string();
        let (_, said) = doctor(&folder, &[("WEFT_CACHE_DIR", &path)]);
        assert_eq!(said["cache"]["writable"], false, "{name}: {said:#}");
        assert!(problems(&said, "warning").join("\n").contains("cannot be written"), "{name}: {said:#}");
    }
}
