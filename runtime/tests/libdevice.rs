//! The search for libdevice, and the validation of its file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use weft_runtime::{ErrorKind, FileChoice, Libdevice, Settings};

const BITCODE: &[u8] = b"BC\xC0\xDE and more";

/// An empty folder for one test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libdevice").join(test);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the target folder can be written");
    }
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// Writes a libdevice below a folder.
fn put(root: &Path, below: &str, contents: &[u8]) -> PathBuf {
    let folder = root.join(below);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let file = folder.join("libdevice.10.bc");
    fs::write(&file, contents).expect("the target folder can be written");
    file
}

fn settings(libdevice: FileChoice) -> Settings {
    Settings { libdevice, ..Settings::default() }
}

#[test]
fn the_order_is_cuda_home_cuda_path_packages() {
    let root = folder("order");
    let (home, path, site) = (root.join("home"), root.join("path"), root.join("site"));
    let variable = |name: &str| {
        let folder = match name {
            "CUDA_HOME" => &home,
            "CUDA_PATH" => &path,
            _ => return None,
        };
        Some(folder.clone().into_os_string())
    };
    let find = || {
        let found = Libdevice::new(&settings(FileChoice::Auto), variable, &[root.join("empty"), site.clone()]);
        assert_eq!(found.bytes().map(|bytes| bytes.map(|bytes| bytes.to_vec())), Ok(Some(BITCODE.to_vec())));
        found.path().map(Path::to_path_buf)
    };
    // In increasing order of precedence: each new file is preferred over the earlier ones.
    for (folder, below) in [
        (&site, "triton/backends/nvidia/lib"),
        (&site, "nvidia/cuda_nvcc/nvvm/libdevice"),
        (&site, "nvidia/cu13/nvvm/libdevice"),
        (&path, "nvvm/libdevice"),
        (&home, "nvvm/libdevice"),
    ] {
        let file = put(folder, below, BITCODE);
        assert_eq!(find(), Some(file));
    }
}

#[test]
fn it_is_looked_for_once() {
    let root = folder("once");
    let file = put(&root, "nvvm/libdevice", BITCODE);
    let home = Some(root.as_os_str().to_owned());
    let found = Libdevice::new(&settings(FileChoice::Auto), |name| home.clone().filter(|_| name == "CUDA_HOME"), &[]);
    let first = found.bytes().expect("it is bitcode").expect("it is there");
    fs::remove_file(&file).expect("it was just written");
    assert_eq!(found.path(), Some(file.as_path()));
    assert_eq!(found.bytes().expect("it is cached").expect("it is cached"), first);
}

#[test]
fn none_is_none() {
    let root = folder("none");
    put(&root, "nvvm/libdevice", BITCODE);
    let home = Some(root.as_os_str().to_owned());
    let none = Libdevice::new(&settings(FileChoice::None), |_| home.clone(), &[]);
    assert_eq!((none.path(), none.bytes()), (None, Ok(None)));
}

#[test]
fn a_named_file_must_be_one() {
    let root = folder("named");
    let of = |file: PathBuf| Libdevice::new(&settings(FileChoice::Path(file)), |_| None, &[]);
    let good = put(&root, "good", BITCODE);
    assert_eq!(of(good.clone()).path(), Some(good.as_path()));
    assert!(of(good).bytes().is_ok_and(|bytes| bytes.is_some()));
    for (file, problem) in
        [(put(&root, "bad", b"no bitcode"), "it is not LLVM bitcode"), (root.join("missing"), "No such file")]
    {
        let error = of(file.clone()).bytes().expect_err("it cannot be used");
        assert_eq!(error.kind, ErrorKind::Value);
        let start = format!("WEFT_LIBDEVICE is {}, which cannot be used: {problem}", file.display());
        assert!(error.message.starts_with(&start), "{error}");
    }
}

#[test]
fn a_found_file_that_is_useless_is_passed_over() {
    let root = folder("useless");
    put(&root, "nvvm/libdevice", b"no bitcode");
    let home = Some(root.as_os_str().to_owned());
    let found = Libdevice::new(&settings(FileChoice::Auto), |name| home.clone().filter(|_| name == "CUDA_HOME"), &[]);
    assert_eq!(found.bytes(), Ok(None));
}
