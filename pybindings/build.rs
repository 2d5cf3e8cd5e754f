//! Builds the glibc polyfill and links it whole, so that it wins over glibc's own symbols; and names the libraries that
//! have some of these before glibc 2.34, though the one that links needs none of them.

fn main() {
    println!("cargo:rerun-if-changed=src/polyfill.c");
    println!("cargo:rerun-if-changed=build.rs");
    cc::Build::new().file("src/polyfill.c").cargo_metadata(false).compile("polyfill");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-lib=static:+whole-archive=polyfill");
    println!(
        "cargo:rustc-link-arg-cdylib=-Wl,--push-state,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--pop-state"
    );
    // The wheel's extension holds no code twice where no one compares addresses, and no string that ends another one.
    // Options of LLVM's linker, Rust's own on this target.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo:rustc-link-arg-cdylib=-Wl,--icf=safe,-O2,--bp-compression-sort=both");
    }
}
