//! Build steps that cargo has no settings for: links zstd, z and stdc++ statically without RUSTFLAGS, compiles the
//! shims for LLVM's fatal errors and passes, extracts the math library from libclc, and generates the table of the
//! prelude's functions.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script, unlike the compiler, reads the machine that it runs on"
)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Functions of libclc that the back ends call, by the types of their arguments: `f` is a float of either width, `i` an
/// `int`. `backend/llvm/math.rs` mangles the same names; a test compiles every one.
const LIBCLC: &[(&str, &[&str])] = &[
    (
        "f",
        &[
            "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "exp2",
            "expm1", "lgamma", "log", "log10", "log1p", "log2", "sin", "sinh", "tan", "tanh",
        ],
    ),
    ("ff", &["atan2", "fmod", "hypot", "nextafter", "pow", "remainder"]),
    ("fi", &["ldexp"]),
];

/// Parts of LLVM that its C interface lacks. They are compiled together, so names in their anonymous namespaces differ.
const CPP: &[&str] = &[
    "src/backend/llvm/gate.cpp",
    "src/backend/host/address_bases.cpp",
    "src/backend/host/gathers.cpp",
    "src/backend/host/blended_stores.cpp",
    "src/backend/host/bytes.cpp",
    "src/backend/host/lanes.cpp",
    "src/backend/host/opaque_quotients.cpp",
    "src/backend/llvm/frames.cpp",
    "src/backend/host/cpu.cpp",
    "src/backend/llvm/decided.cpp",
    "src/backend/host/passes.cpp",
    "src/backend/host/unmasked_accesses.cpp",
    "src/backend/nvptx/clamps.cpp",
    "src/backend/nvptx/comparisons.cpp",
    "src/backend/nvptx/conversions.cpp",
    "src/backend/nvptx/differences.cpp",
    "src/backend/nvptx/divisions.cpp",
    "src/backend/nvptx/switches.cpp",
    "src/backend/nvptx/exits.cpp",
    "src/backend/nvptx/full_unrolling.cpp",
    "src/backend/nvptx/heads.cpp",
    "src/backend/nvptx/nvvm/arithmetic.cpp",
    "src/backend/nvptx/nvvm/atomics.cpp",
    "src/backend/nvptx/nvvm/calls.cpp",
    "src/backend/nvptx/nvvm/constants.cpp",
    "src/backend/nvptx/nvvm/instructions.cpp",
    "src/backend/nvptx/nvvm/intrinsics.cpp",
    "src/backend/nvptx/nvvm/module.cpp",
    "src/backend/nvptx/nvvm/nvvm_intrinsics.cpp",
    "src/backend/nvptx/partial_unrolling.cpp",
    "src/backend/nvptx/passes.cpp",
    "src/backend/nvptx/spins.cpp",
    "src/backend/nvptx/unrolling.cpp",
];

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    static_libraries(&out);
    cut_libclc(&out);
    assemble("emit/access_group", &out);
    assemble("checked/inline_checks", &out);
    prelude_table(&out);
    cc::Build::new().file("src/backend/llvm/shim.c").warnings(true).compile("weft_shim");
    println!("cargo:rerun-if-changed=src/backend/llvm/shim.c");
    // These files use classes of LLVM, so they are C++, of the same version as LLVM itself. They are one translation
    // unit, because parsing LLVM's headers takes most of the time.
    let folder = env::current_dir().expect("the crate's folder is known");
    let unit: Vec<_> = CPP.iter().map(|file| format!("#include \"{}\"\n", folder.join(file).display())).collect();
    let unit_file = out.join("weft_gate.cpp");
    fs::write(&unit_file, unit.concat()).expect("OUT_DIR can be written");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .cpp_link_stdlib(None)
        .flag("-isystem")
        .flag(llvm().join("include"))
        .flag("-fno-exceptions")
        .file(unit_file)
        .compile("weft_gate");
    for file in CPP {
        println!("cargo:rerun-if-changed={file}");
    }
    for header in [
        "llvm/passes",
        "nvptx/differences",
        "nvptx/divisions",
        "nvptx/switches",
        "nvptx/exits",
        "nvptx/full_unrolling",
        "nvptx/partial_unrolling",
        "nvptx/nvvm/printer",
    ] {
        println!("cargo:rerun-if-changed=src/backend/{header}.h");
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    println!("cargo:rerun-if-env-changed=WEFT_LIBCLC");
}

/// Generates the table of the prelude's functions: `OUT_DIR/prelude.rs`, a list of locations, sorted by name.
fn prelude_table(out: &Path) {
    let folder = Path::new("src/frontend/prelude");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut entries = Vec::new();
    for file in fs::read_dir(folder).expect("the prelude's folder can be read") {
        let path = file.expect("the prelude's folder can be read").path();
        if path.extension().is_none_or(|extension| extension != "py") {
            continue;
        }
        println!("cargo:rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path).expect("the prelude is text");
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).expect("a file has a name");
        let lines: Vec<&str> = text.lines().collect();
        // A function ends before the next line with text in the first column.
        let is_outside = |line: &str| line.starts_with(|first: char| !first.is_whitespace());
        for (index, line) in lines.iter().enumerate() {
            let Some(name) = line.strip_prefix("def ").and_then(|rest| rest.split('(').next()) else { continue };
            let body = lines[index + 1..].iter().take_while(|line| !is_outside(line)).count();
            let text = lines[index..=index + body].join("\n");
            entries.push((name.to_owned(), format!("Definition::new({name:?}, {file:?}, {}, {text:?}),\n", index + 1)));
        }
    }
    entries.sort();
    for pair in entries.windows(2) {
        assert_ne!(pair[0].0, pair[1].0, "the prelude has two functions of this name");
    }
    let count = entries.len();
    let entries: String = entries.into_iter().map(|(_, entry)| entry).collect();
    let text = format!("static FUNCTIONS: [Definition; {count}] = [\n{entries}];\n");
    fs::write(out.join("prelude.rs"), text).expect("OUT_DIR can be written");
}

/// A search directory that holds only archives wins over the system's shared libraries.
fn static_libraries(out: &Path) {
    let dir = out.join("static");
    fs::create_dir_all(&dir).expect("OUT_DIR can be written");
    let packages = [("libzstd.a", "libzstd-dev"), ("libz.a", "zlib1g-dev"), ("libstdc++.a", "g++")];
    for (library, package) in packages {
        let answer = Command::new("cc").arg(format!("-print-file-name={library}")).output();
        let answer =
            answer.unwrap_or_else(|error| panic!("cannot run the C compiler `cc` (Debian package gcc): {error}"));
        let path = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        // The compiler prints the bare name if it does not find the file.
        let path = Path::new(&path).canonicalize();
        let path = path.unwrap_or_else(|_| panic!("{library} is not installed (Debian package {package})"));
        let link = dir.join(library);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(path, link).expect("OUT_DIR can be written");
    }
    println!("cargo:rustc-link-search=native={}", dir.display());
}

/// Extracts the functions in [`LIBCLC`] and those that they call: `OUT_DIR/libclc.bc`, and its hash,
/// `OUT_DIR/libclc.id`.
fn cut_libclc(out: &Path) {
    let prefix = llvm();
    let opt = prefix.join("bin/opt");
    assert!(
        opt.exists(),
        "{} does not exist (Debian package llvm-22; LLVM_SYS_221_PREFIX is its prefix)",
        opt.display()
    );
    let source = find_libclc(&prefix);
    println!("cargo:rerun-if-changed={}", source.display());
    let mut names = Vec::new();
    for (form, functions) in LIBCLC {
        for function in *functions {
            for width in ["f", "d"] {
                names.push(format!("_Z{}{function}{}", function.len(), form.replace('f', width)));
            }
        }
    }
    let result = Command::new(&opt)
        .arg("-passes=internalize,globaldce,strip-dead-prototypes")
        .arg(format!("-internalize-public-api-list={}", names.join(",")))
        .arg(&source)
        .arg("-o")
        .arg(out.join("libclc.bc"))
        .output();
    let result = result.unwrap_or_else(|error| panic!("cannot run {}: {error}", opt.display()));
    assert!(result.status.success(), "cannot cut {}: {}", source.display(), String::from_utf8_lossy(&result.stderr));
    let cut = fs::read(out.join("libclc.bc")).expect("OUT_DIR can be read");
    fs::write(out.join("libclc.id"), blake3::hash(&cut).to_hex().as_str()).expect("OUT_DIR can be written");
}

/// Assembles a file of LLVM IR of the host's back end to `OUT_DIR/NAME.bc`, for the Rust file beside it.
fn assemble(path: &str, out: &Path) {
    let source = format!("src/backend/host/{path}.ll");
    let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
    println!("cargo:rerun-if-changed={source}");
    let opt = llvm().join("bin/opt");
    let result = Command::new(&opt).arg(&source).arg("-o").arg(out.join(format!("{name}.bc"))).output();
    let result = result.unwrap_or_else(|error| panic!("cannot run {}: {error}", opt.display()));
    assert!(result.status.success(), "cannot assemble {source}: {}", String::from_utf8_lossy(&result.stderr));
}

/// libclc's generic NVPTX library; the `nvidiacl` one calls libdevice, so it is of no use.
fn find_libclc(prefix: &Path) -> PathBuf {
    let file = "nvptx64--.bc";
    let mut candidates: Vec<PathBuf> = env::var_os("WEFT_LIBCLC").map(PathBuf::from).into_iter().collect();
    candidates.extend(["share/clc", "lib/clc"].map(|dir| prefix.join(dir).join(file)));
    candidates.extend(["/usr/lib/clc", "/usr/share/clc"].map(|dir| Path::new(dir).join(file)));
    let found = candidates.iter().find(|path| path.exists());
    found.cloned().unwrap_or_else(|| {
        panic!("libclc's {file} is not in {candidates:?}: install libclc-22 or set WEFT_LIBCLC to the file")
    })
}

/// The folder of LLVM. The repository sets it in .cargo/config.toml. A source archive lacks that file, so the default
/// is Debian's folder.
fn llvm() -> PathBuf {
    env::var_os("LLVM_SYS_221_PREFIX").map_or_else(|| PathBuf::from("/usr/lib/llvm-22"), PathBuf::from)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set; cargo sets it"))
}
