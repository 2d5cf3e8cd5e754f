//! Links zstd, z and stdc++ statically without RUSTFLAGS: a search directory that holds only archives wins over the
//! system's shared libraries.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    let dir = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("static");
    fs::create_dir_all(&dir).expect("OUT_DIR can be written");
    for lib in ["libzstd.a", "libz.a", "libstdc++.a"] {
        let out = Command::new("cc").arg(format!("-print-file-name={lib}")).output().expect("a C compiler");
        let path = String::from_utf8(out.stdout).expect("a path");
        let path = Path::new(path.trim()).canonicalize().expect("the static library is installed");
        let link = dir.join(lib);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(path, link).expect("OUT_DIR can be written");
    }
    println!("cargo:rustc-link-search=native={}", dir.display());
    println!("cargo:rerun-if-changed=build.rs");
}
