//! The build id. It covers everything that affects the generated code, so that two compilers that may generate
//! different code never produce the same digest.
//!
//! It hashes all sources in `compiler/` that go into the library (including the prelude), the workspace's lock file and
//! settings, and the linked parts of LLVM and libclc: the version, the names and sizes of LLVM's archives, and libclc
//! itself. Paths and times are excluded, so two builds of one state have the same id.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The sources of the compiler, relative to this file's folder.
const SOURCES: &[&str] = &[
    "../src",
    "../build.rs",
    "../Cargo.toml",
    "../artifact/src",
    "../artifact/Cargo.toml",
    "../../Cargo.toml",
    "../../Cargo.lock",
];

fn main() {
    let mut hasher = blake3::Hasher::new();
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
        add(&mut hasher, Path::new(source));
    }
    add_llvm(&mut hasher);
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["LLVM_SYS_221_PREFIX", "WEFT_LIBCLC"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rustc-env=WEFT_BUILD_ID={}", hasher.finalize().to_hex());
}

/// Hashes a file, or all files of a folder in the order of their names. Backup files of editors are included: an id
/// that changes needlessly is better than one that does not change when it must.
fn add(hasher: &mut blake3::Hasher, path: &Path) {
    if !path.is_dir() {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        return feed(hasher, &path.to_string_lossy(), &bytes);
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    inside.sort();
    for path in inside {
        add(hasher, &path);
    }
}

fn feed(hasher: &mut blake3::Hasher, name: &str, bytes: &[u8]) {
    for part in [name.as_bytes(), bytes] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
}

fn add_llvm(hasher: &mut blake3::Hasher) {
    // The same default as in compiler/build.rs.
    let prefix = env::var("LLVM_SYS_221_PREFIX").unwrap_or_else(|_| "/usr/lib/llvm-22".to_owned());
    let config = Path::new(&prefix).join("bin/llvm-config");
    let version = Command::new(&config).arg("--version").output();
    let version = version.unwrap_or_else(|error| panic!("cannot run {}: {error}", config.display()));
    assert!(version.status.success(), "{} says no version", config.display());
    feed(hasher, "LLVM", &version.stdout);
    let library = Path::new(&prefix).join("lib");
    let entries = fs::read_dir(&library).unwrap_or_else(|error| panic!("cannot read {}: {error}", library.display()));
    let mut archives: Vec<(String, u64)> = entries
        .filter_map(|entry| {
            let entry = entry.expect("the folder can be read");
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_archive = name.starts_with("libLLVM") && Path::new(&name).extension().is_some_and(|it| it == "a");
            is_archive.then(|| (name, entry.metadata().expect("an archive has a size").len()))
        })
        .collect();
    archives.sort();
    for (name, size) in archives {
        feed(hasher, &name, &size.to_le_bytes());
    }
}
