//! Locates the host CPU's description and NVIDIA's tools: `ptxas` and libdevice.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use weft_compiler::{check_printed_passes, host_cpu_set, host_cpu_without_passes, request::HostCpu};
use weft_engine::IrDigests;
use weft_runtime::{FileChoice, Libdevice, Settings, Toolkit};

use crate::{Surroundings, report::Stop};

/// libdevice's bitcode: from `--libdevice`, else from the setting. `None` means the built-in math library.
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

/// The CPU of the target `host`, from the settings.
pub(crate) fn host_cpu(surroundings: &Surroundings) -> Result<Arc<HostCpu>, Stop> {
    let settings = Settings::from_env(surroundings.variable).map_err(|error| Stop::Usage(error.message))?;
    check_printed_passes(&settings.print_after).map_err(Stop::Usage)?;
    host_cpu_set(settings.host_cpu.as_deref(), settings.host_plan.as_deref(), settings.host_opt_level)
        .and_then(|cpu| host_cpu_without_passes(cpu, &settings.skip_passes))
        .map_err(Stop::Usage)
}

/// The passes after which plans are printed.
pub(crate) fn printed_passes(surroundings: &Surroundings) -> Result<Vec<String>, Stop> {
    let settings = Settings::from_env(surroundings.variable).map_err(|error| Stop::Usage(error.message))?;
    Ok(settings.print_after)
}

/// The digests of LLVM IR that the settings request.
pub(crate) fn ir_digests(surroundings: &Surroundings) -> Result<Option<IrDigests>, Stop> {
    let settings = Settings::from_env(surroundings.variable).map_err(|error| Stop::Usage(error.message))?;
    Ok(settings.ir_digests.map(IrDigests::new))
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

/// Finds the `ptxas` that a flag needs: on the PATH, in a toolkit, or in a Python package.
pub(crate) fn find_ptxas(surroundings: &Surroundings, flag: &str) -> Result<PathBuf, Stop> {
    let variable = |name: &str| (surroundings.variable)(name);
    let toolkit = Toolkit::new(&Settings::default(), variable, &site_packages(surroundings));
    toolkit.ptxas(variable("PATH").as_deref()).ok_or_else(|| {
        Stop::Usage(format!(
            "`{flag}` needs NVIDIA's `ptxas`, which was not found on the PATH, below CUDA_HOME, CUDA_PATH or \
             /usr/local/cuda, or in a Python environment. Install the CUDA toolkit or `pip install nvidia-cuda-nvcc`; \
             `--emit ptx` needs neither"
        ))
    })
}
