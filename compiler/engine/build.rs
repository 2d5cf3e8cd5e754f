//! The build id: what compiles, so that no digest is the same for two compilers that may make different code.
//!
//! It covers the text of everything in `compiler/` that goes into the library (the prelude too), the workspace's lock
//! file and settings, and what of LLVM and libclc is linked: the version, the names and sizes of its archives, and
//! libclc itself. Paths and times stay out: two builds of one state have one id.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Beside this file's folder: what the compiler is made of.
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

/// A file, or all files of a folder in the order of their names. What editors leave behind counts, too: better another
/// id than one that is too many.
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
    // As compiler/build.rs has it.
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
