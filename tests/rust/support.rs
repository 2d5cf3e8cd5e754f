//! What several tests need: the repository's files.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository").to_owned()
}

/// Reads a file of the repository.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files below some folders of the repository with an extension, as paths from the root with `/`, sorted. What is
/// built or installed does not count.
pub(crate) fn files(folders: &[&str], extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    for folder in folders {
        collect(&root().join(folder), extension, &mut found);
    }
    let root = root();
    let mut paths: Vec<_> = found
        .iter()
        .map(|path| {
            let inside = path.strip_prefix(&root).expect("the walk started at the root");
            inside.to_str().expect("names in the repository are UTF-8").replace('\\', "/")
        })
        .collect();
    paths.sort();
    paths
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("the folder can be read").path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if path.is_dir() {
            if !name.starts_with('.') && !matches!(name, "target" | "__pycache__" | "out") {
                collect(&path, extension, found);
            }
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
}
