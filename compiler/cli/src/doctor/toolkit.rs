//! The sections of `weft doctor` about NVIDIA's tools and the cache. weft compiles and launches without these tools;
//! each row names the purpose of one.

use std::{
    env::split_paths,
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use serde_json::json;
use weft_engine::DiskCache;
use weft_runtime::{Error, FileChoice, Libdevice, Settings, Toolkit, cuda};

use super::findings::{Findings, Section, Severity};
use crate::{Surroundings, cache::size, tools};

/// Lists the tools. Returns libdevice's bitcode if it is available.
pub(super) fn toolkit(
    surroundings: &Surroundings,
    settings: &Settings,
    findings: &mut Findings,
) -> Option<Arc<Vec<u8>>> {
    let mut section = Section::new("Toolkit");
    let ptxas = tools::find_ptxas(surroundings, "--emit cubin").ok();
    program(&mut section, "ptxas", ptxas, "cubins, spills and `inspect_sass`");
    let path = (surroundings.variable)("PATH").unwrap_or_default();
    let on_path = |name: &str| split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    program(&mut section, "nvdisasm", on_path("nvdisasm"), "`inspect_sass`, which searches the PATH");

    let packages = tools::site_packages(surroundings);
    let libdevice = Libdevice::new(settings, surroundings.variable, &packages);
    let bytes = libdevice.bytes().unwrap_or_else(|error| {
        let help = "set WEFT_LIBDEVICE to an existing libdevice.10.bc, or unset it: weft has a built-in math library";
        findings.problem(Severity::Error, error.message, help);
        None
    });
    let file = libdevice.path().filter(|_| bytes.is_some());
    let purpose = "faster math on GPUs than the built-in library";
    let text = file
        .map_or_else(|| missing(settings.libdevice == FileChoice::None, purpose), |file| file.display().to_string());
    section.row("libdevice", text, file.map(|file| json!({"file": file.display().to_string()})).into());

    let toolkit = Toolkit::new(settings, surroundings.variable, &packages);
    let nvrtc = cuda::nvrtc(&toolkit);
    library(&mut section, findings, "NVRTC", nvrtc, &settings.nvrtc, "kernels that are linked with CUDA C++");
    let nvjitlink = cuda::nvjitlink(&toolkit);
    library(&mut section, findings, "nvJitLink", nvjitlink, &settings.nvjitlink, "kernels that are linked with LTO-IR");
    let libnvvm = cuda::libnvvm(&toolkit);
    library(&mut section, findings, "libNVVM", libnvvm, &settings.libnvvm, "`cuda.compile(output=\"ltoir\")`");
    let headers: Vec<String> = toolkit.includes().iter().map(|folder| folder.display().to_string()).collect();
    let text = if headers.is_empty() { missing(false, "CUDA C++ that includes them") } else { headers.join(", ") };
    section.row("headers", text, json!(headers));
    findings.section(section);
    bytes
}

/// The text for a missing tool.
fn missing(is_off: bool, purpose: &str) -> String {
    let what = if is_off { "turned off by its setting" } else { "not found" };
    format!("{what} (for {purpose})")
}

/// Adds a row for a program of the toolkit.
fn program(section: &mut Section, name: &str, found: Option<PathBuf>, purpose: &str) {
    let version = found.as_deref().and_then(version_of);
    let text = match (&found, &version) {
        (None, _) => missing(false, purpose),
        (Some(file), Some(version)) => format!("{}, {version}", file.display()),
        (Some(file), None) => format!("{}, version unknown", file.display()),
    };
    let value = found.map(|file| json!({"file": file.display().to_string(), "version": version}));
    section.row(name, text, value.into());
}

/// The version that a tool prints: `13.0.88` of `Cuda compilation tools, release 13.0, V13.0.88`.
fn version_of(tool: &Path) -> Option<String> {
    let output = Command::new(tool).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split(", V").nth(1)?.split_whitespace().next()?;
    Some(version.to_owned())
}

/// Adds a row for a library of the toolkit. It is a problem if a setting names a library that is missing.
fn library(
    section: &mut Section,
    findings: &mut Findings,
    name: &'static str,
    found: Result<cuda::Library, Error>,
    choice: &FileChoice,
    purpose: &str,
) {
    let (text, value) = match &found {
        Err(_) => (missing(*choice == FileChoice::None, purpose), json!(null)),
        Ok(cuda::Library { version, file }) => {
            let version = version.map(|(major, minor)| format!("{major}.{minor}"));
            let file = file.as_ref().map(|file| file.display().to_string());
            let shown = [file.clone().or(Some("found".to_owned())), version.clone()];
            let text = shown.into_iter().flatten().collect::<Vec<_>>().join(", ");
            (text, json!({"file": file, "version": version}))
        }
    };
    section.row(name, text, value);
    if let (Err(error), FileChoice::Path(_)) = (found, choice) {
        let help = "set it to the file of the library, or unset it: weft then searches for the library";
        findings.problem(Severity::Warning, error.message, help);
    }
}

/// The cache on disk: its folder, its contents, and whether it is writable.
pub(super) fn cache(surroundings: &Surroundings, settings: &Settings, findings: &mut Findings) {
    let mut section = Section::new("Cache");
    let Some(folder) = settings.cache_folder(surroundings.variable) else {
        let reason = if settings.cache { "no folder is known for it" } else { "off (WEFT_CACHE)" };
        section.row("folder", reason, json!(null));
        if settings.cache {
            let help = "set WEFT_CACHE_DIR to a folder, or set HOME; or disable the cache with WEFT_CACHE=off";
            findings.problem(Severity::Warning, "compiled kernels are not cached on the disk: HOME is not set", help);
        }
        findings.section(section);
        return;
    };
    let shown = folder.display().to_string();
    section.row("folder", &shown, json!(shown));
    let cache = DiskCache::new(folder.clone(), settings.cache_bytes);
    let entries = cache.entries().unwrap_or_default();
    let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let held = format!("{} in {} entries, of {} at most", size(bytes), entries.len(), size(cache.limit()));
    section.row("size", held, json!({"bytes": bytes, "entries": entries.len(), "limit_bytes": cache.limit()}));
    let writable = write_below(&folder);
    let text = writable.as_ref().map_or_else(|error| format!("no: {error}"), |()| "yes".to_owned());
    section.row("writable", text, json!(writable.is_ok()));
    if let Err(error) = writable {
        let help = "make the folder writable, or set WEFT_CACHE_DIR to a writable folder; until then each process \
            compiles its kernels again";
        findings.problem(Severity::Warning, format!("the cache {shown} cannot be written: {error}"), help);
    }
    let mode = fs::metadata(&folder).map_or(0, |known| known.permissions().mode());
    if mode & 0o002 != 0 {
        let help = format!("run `chmod o-w {shown}`, unless you trust everybody on this machine");
        let message = format!("anybody can write to the cache {shown}, and so make your programs run other code");
        findings.problem(Severity::Warning, message, help);
    }
    findings.section(section);
}

/// Tries to write a file in a folder. If the folder does not exist, tries its nearest existing ancestor.
fn write_below(folder: &Path) -> io::Result<()> {
    // A dangling or circular link exists, and no folder can be created under its name.
    let there = folder.ancestors().find(|folder| folder.symlink_metadata().is_ok()).unwrap_or(folder);
    if !fs::metadata(there)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{} is not a folder", there.display())));
    }
    let file = there.join(format!(".weft-doctor-{}", std::process::id()));
    let written = File::create_new(&file).and_then(|mut file| file.write_all(&[0; 4096]));
    // Removal fails if the file was not created.
    let _absent: io::Result<()> = fs::remove_file(&file);
    written
}
