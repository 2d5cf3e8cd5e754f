//! What a machine has: its CPU, and NVIDIA's tools, `ptxas` and libdevice.

use std::{
    env::split_paths,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use weft_compiler::{host_cpu_set, request::HostCpu};
use weft_runtime::{FileChoice, Libdevice, Settings};

use crate::{Surroundings, report::Stop};

/// Where Python packages have ptxas, below `site-packages`.
const PTXAS_IN_SITE_PACKAGES: [&str; 2] = ["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"];

/// libdevice's bitcode: as `--libdevice` says, else as the setting says. `None` is the built-in math library.
pub(crate) fn libdevice(given: Option<&str>, surroundings: &Surroundings) -> Result<Option<Arc<Vec<u8>>>, Stop> {
    let mut settings = Settings::from_env(surroundings.variable).map_err(|error| Stop::Usage(error.message))?;
    match given {
        None => {}
        Some("auto") => settings.libdevice = FileChoice::Auto,
        Some("none") => settings.libdevice = FileChoice::None,
        Some(path) => settings.libdevice = FileChoice::Path(path.into()),
    }
    let found = Libdevice::new(&settings, surroundings.variable, &site_packages(surroundings));
    found.bytes().map_err(|error| {
        let message =
            if given.is_some() { error.message.replace("WEFT_LIBDEVICE", "--libdevice") } else { error.message };
        Stop::Usage(message)
    })
}

/// The CPU that `host` means: as the setting says.
pub(crate) fn host_cpu(surroundings: &Surroundings) -> Result<Arc<HostCpu>, Stop> {
    let settings = Settings::from_env(surroundings.variable).map_err(|error| Stop::Usage(error.message))?;
    host_cpu_set(settings.host_cpu.as_deref(), settings.host_plan.as_deref()).map_err(Stop::Usage)
}

/// `site-packages` of the Python that runs the command, and of an active virtual environment.
pub(crate) fn site_packages(surroundings: &Surroundings) -> Vec<PathBuf> {
    let mut folders = surroundings.site_packages.clone();
    if let Some(environment) = (surroundings.variable)("VIRTUAL_ENV").filter(|path| !path.is_empty()) {
        let versions = fs::read_dir(Path::new(&environment).join("lib")).into_iter().flatten().flatten();
        let mut pythons: Vec<PathBuf> = versions
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
            .map(|entry| entry.path().join("site-packages"))
            .collect();
        pythons.sort();
        folders.extend(pythons);
    }
    folders
}

/// Finds `ptxas`: on the PATH, in a toolkit, in a Python package.
pub(crate) fn find_ptxas(surroundings: &Surroundings) -> Result<PathBuf, Stop> {
    let variable = |name: &str| (surroundings.variable)(name).filter(|value| !value.is_empty());
    let path = variable("PATH").unwrap_or_default();
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable).map(PathBuf::from);
    let packages = site_packages(surroundings);
    let folders = split_paths(&path)
        .chain(toolkits.chain([PathBuf::from("/usr/local/cuda")]).map(|toolkit| toolkit.join("bin")))
        .chain(packages.iter().flat_map(|root| PTXAS_IN_SITE_PACKAGES.map(|below| root.join(below))));
    folders.map(|folder| folder.join("ptxas")).find(|file| file.is_file()).ok_or_else(|| {
        Stop::Usage(
            "`--emit cubin` needs NVIDIA's `ptxas`, which was not found on the PATH, below CUDA_HOME, CUDA_PATH or \
             /usr/local/cuda, or in a Python environment. Install the CUDA toolkit or `pip install nvidia-cuda-nvcc`; \
             `--emit ptx` needs neither"
                .to_owned(),
        )
    })
}

/// Why there is no cubin.
#[derive(Debug)]
pub(crate) enum NotAssembled {
    /// What `ptxas` says of the PTX.
    Rejected(String),
    /// What is wrong with `ptxas`.
    Failed(String),
}

/// Assembles PTX.
pub(crate) fn assemble(ptxas: &Path, ptx: &[u8], target: &str, lineinfo: bool) -> Result<Vec<u8>, NotAssembled> {
    let cubin = std::env::temp_dir().join(format!("weft-{}-{target}.cubin", std::process::id()));
    let outcome = run_ptxas(ptxas, ptx, target, lineinfo, &cubin);
    let bytes = outcome.and_then(|()| match fs::read(&cubin) {
        Ok(bytes) if !bytes.is_empty() => Ok(bytes),
        Ok(_) => Err(NotAssembled::Failed(format!("{} wrote an empty cubin", ptxas.display()))),
        Err(error) => Err(NotAssembled::Failed(format!("{} wrote no cubin: {error}", ptxas.display()))),
    });
    // A failed run leaves no file.
    let _absent = fs::remove_file(&cubin);
    bytes
}

/// Whether PTX calls functions of other languages, but for what prints, which `ptxas` knows.
fn calls_out(ptx: &[u8]) -> bool {
    let text = String::from_utf8_lossy(ptx);
    text.split(".extern .func").skip(1).any(|declared| !declared.contains("vprintf"))
}

fn run_ptxas(ptxas: &Path, ptx: &[u8], target: &str, lineinfo: bool, cubin: &Path) -> Result<(), NotAssembled> {
    let failed = |what: String| NotAssembled::Failed(format!("{} {what}", ptxas.display()));
    let cannot_run = |error: std::io::Error| failed(format!("cannot be run: {error}"));
    let mut command = Command::new(ptxas);
    command.arg(format!("-arch={target}")).arg("-").arg("-o").arg(cubin);
    if lineinfo {
        command.arg("-lineinfo");
    }
    if calls_out(ptx) {
        // It is linked later with the functions that it calls.
        command.arg("-c");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot_run)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If ptxas stops reading, its own message says why.
        let _refused = stdin.write_all(ptx);
    }
    let output = child.wait_with_output().map_err(cannot_run)?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    match output.status.code() {
        Some(_) if !said.is_empty() => Err(NotAssembled::Rejected(said)),
        // With its number, or the signal that ended it.
        _ => Err(failed(format!("did not assemble the PTX for {target} ({}): {said}", output.status))),
    }
}
