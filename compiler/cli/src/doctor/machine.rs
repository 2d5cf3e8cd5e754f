//! The sections of `weft doctor` about the driver and the devices: available devices, whether kernels run on them, and
//! the usual cause if not.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::json;
use weft_compiler::request::HostCpu;
use weft_runtime::{DeviceChoice, Error, Executor, Settings, cpu, cuda};

use super::{
    findings::{Findings, Section, Severity},
    probe,
};
use crate::loader::Loader;

/// Signs of a GPU outside the driver's library.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hardware {
    /// The PCI addresses of NVIDIA GPUs.
    gpus: Vec<String>,
    /// The version of NVIDIA's kernel module.
    module: Option<String>,
    /// Whether this is a container.
    is_container: bool,
    /// Whether this is the Windows Subsystem for Linux.
    is_wsl: bool,
}

impl Hardware {
    /// Reads them from the file system below `root`.
    pub(super) fn at(root: &Path) -> Self {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let devices = fs::read_dir(root.join("sys/bus/pci/devices")).into_iter().flatten().flatten();
        // NVIDIA's PCI vendor ID, and the PCI class of display controllers.
        let is_gpu = |path: &PathBuf| {
            read(&path.join("vendor")).trim() == "0x10de" && read(&path.join("class")).starts_with("0x03")
        };
        let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut gpus: Vec<String> = devices.map(|entry| entry.path()).filter(is_gpu).filter_map(name).collect();
        gpus.sort();
        let version = read(&root.join("proc/driver/nvidia/version"));
        // `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue …`
        let is_version =
            |word: &&str| word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let module =
            version.lines().next().and_then(|line| line.split_whitespace().find(is_version)).map(str::to_owned);
        let is_container = [".dockerenv", "run/.containerenv"].iter().any(|file| root.join(file).exists());
        let is_wsl = root.join("dev/dxg").exists();
        Self { gpus, module, is_container, is_wsl }
    }

    /// Whether there is a sign of a GPU.
    fn has_gpu(&self) -> bool {
        !self.gpus.is_empty() || self.module.is_some() || self.is_wsl
    }

    /// Suggests a fix for a driver that cannot be used.
    fn mend(&self, error: &Error, is_there: bool) -> &'static str {
        match error.driver_code {
            Some(34) => {
                "remove the toolkit's folder `stubs` from LD_LIBRARY_PATH and from the loader's configuration; if no \
                 other libcuda.so is left, install NVIDIA's driver"
            }
            Some(100) => {
                "check that `nvidia-smi` lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it; start a \
                 container with the GPU, for example with `docker run --gpus all`"
            }
            Some(802) => {
                "start NVIDIA's Fabric Manager, `systemctl start nvidia-fabricmanager`, and wait until it is ready"
            }
            Some(803) => {
                "restart the machine: the versions of libcuda and of the kernel driver differ, for example after an \
                 update"
            }
            Some(804) => {
                "remove the folder of the package cuda-compat from LD_LIBRARY_PATH: this GPU does not support a \
                 libcuda that is newer than its driver"
            }
            Some(999) => {
                "run `nvidia-modprobe -u -c=0` on the host to create /dev/nvidia-uvm; in a container, restart the \
                 container afterwards"
            }
            Some(_) => "run `nvidia-smi`; if it fails, too, reinstall NVIDIA's driver",
            None if is_there => "install a newer NVIDIA driver: https://www.nvidia.com/drivers",
            None if self.is_container => {
                "start the container with the GPU, for example with `docker run --gpus all`; this needs NVIDIA's \
                 Container Toolkit on the host"
            }
            None if self.is_wsl => {
                "install NVIDIA's driver on Windows, not in WSL, and add /usr/lib/wsl/lib to the loader's search path"
            }
            None if self.module.is_some() => {
                "install the libcuda of the same version as the kernel driver (Debian: libcuda1, Ubuntu: \
                 libnvidia-compute)"
            }
            None => "install NVIDIA's driver: https://www.nvidia.com/drivers",
        }
    }
}

/// The driver: its library, its version, and the reason why it provides no device.
pub(super) fn driver(hardware: &Hardware, settings: &Settings, findings: &mut Findings) {
    let mut section = Section::new("Driver");
    let found = cuda::driver();
    let version = found.as_ref().and_then(|found| found.version);
    let text = match &found {
        None => "not found".to_owned(),
        Some(found) => {
            let file = found.file.as_ref().map_or("there".to_owned(), |file| file.display().to_string());
            match version {
                Some((major, minor)) => format!("{file}, for CUDA {major}.{minor}"),
                None => format!("{file}, version unknown"),
            }
        }
    };
    let value = found.as_ref().map(|found| {
        let file = found.file.as_ref().map(|file| file.display().to_string());
        json!({"file": file, "cuda": version.map(|(major, minor)| format!("{major}.{minor}"))})
    });
    section.row("libcuda", text, value.into());
    if let Some(module) = &hardware.module {
        section.row("kernel", format!("NVIDIA's driver {module}"), json!(module));
    }
    if !hardware.gpus.is_empty() {
        section.row("PCI", format!("NVIDIA GPUs at {}", hardware.gpus.join(", ")), json!(hardware.gpus));
    }
    findings.section(section);
    let Some(error) = cuda::why_none() else { return };
    let severity = match settings.device {
        DeviceChoice::Cuda => Severity::Error,
        DeviceChoice::Auto if found.is_some() || hardware.has_gpu() => Severity::Warning,
        DeviceChoice::Auto | DeviceChoice::Cpu | DeviceChoice::Python | DeviceChoice::Ptx | DeviceChoice::None => {
            return;
        }
    };
    let help = hardware.mend(&error, found.is_some());
    let help = match settings.device {
        DeviceChoice::Cuda => format!("{help}. Or unset WEFT_DEVICE, which requires a GPU"),
        DeviceChoice::Auto | DeviceChoice::Cpu | DeviceChoice::Python | DeviceChoice::Ptx | DeviceChoice::None => {
            help.to_owned()
        }
    };
    findings.problem(severity, error.message, help);
}

/// The devices, and whether kernels run on them.
pub(super) fn devices(
    settings: &Settings,
    host: &Result<Arc<HostCpu>, String>,
    libdevice: Option<&Arc<Vec<u8>>>,
    findings: &mut Findings,
) {
    let mut section = Section::new("Devices");
    let count = cuda::device_count();
    let uses_gpu = !settings.device.is_host() && count > 0;
    let host_cpu = host.clone().unwrap_or_else(|_| weft_compiler::host_cpu());
    for ordinal in 0..count {
        let id = format!("cuda:{ordinal}");
        let help = "check the GPU with `nvidia-smi`: another process may use it, or the hardware may be damaged; set \
                    CUDA_VISIBLE_DEVICES to hide it from programs, or WEFT_DEVICE=cpu to run kernels on the CPU";
        match cuda::open(settings, ordinal) {
            Ok(device) => {
                let works = probe::run(&*device, &host_cpu, libdevice.cloned());
                row(&mut section, &id, &*device, &works, "SMs");
                if let Err(reason) = works {
                    findings.problem(severity(uses_gpu), format!("a small kernel fails on {id}: {reason}"), help);
                }
            }
            Err(error) => {
                section.row(&id, format!("cannot be opened: {error}"), json!({"works": false, "error": error.message}));
                findings.problem(severity(uses_gpu), format!("{id} cannot be opened: {error}"), help);
            }
        }
    }
    if count == 0 {
        section.row("cuda", "none", json!(null));
    }
    match cpu::open(settings, Arc::new(Loader)) {
        Ok(device) => {
            // An invalid CPU setting is reported in the settings section.
            let works = probe::run(&*device, &host_cpu, None);
            row(&mut section, "cpu", &*device, &works, "cores");
            if let Err(reason) = works {
                let help = "report it with the output of `weft doctor --format json`";
                findings.problem(severity(!uses_gpu), format!("a small kernel fails on the CPU: {reason}"), help);
            }
        }
        Err(error) => {
            section.row("cpu", format!("cannot be opened: {error}"), json!({"works": false, "error": error.message}));
            let help = "allow the process more memory and threads (`ulimit -v`, `ulimit -u`)";
            findings.problem(severity(!uses_gpu), format!("the CPU cannot be opened: {error}"), help);
        }
    }
    let (text, used) = if settings.device == DeviceChoice::None {
        ("WEFT_DEVICE=none: kernels run nowhere", json!(null))
    } else if uses_gpu {
        ("kernels run on the GPU", json!("cuda"))
    } else {
        ("kernels run on the CPU", json!("cpu"))
    };
    section.row("in use", text.to_owned(), used);
    findings.section(section);
}

/// The severity of a device that fails.
fn severity(is_used: bool) -> Severity {
    if is_used { Severity::Error } else { Severity::Warning }
}

fn row(section: &mut Section, id: &str, device: &dyn Executor, works: &Result<(), String>, processors: &str) {
    let attributes = device.attributes();
    let (major, minor) = attributes.compute_capability;
    let gib = attributes.total_memory as f64 / f64::from(1 << 30);
    let (count, target) = (attributes.multiprocessor_count, device.target());
    let runs = if works.is_ok() { "a small kernel runs" } else { "a small kernel FAILS" };
    let text = format!(
        "{}: compute capability {major}.{minor}, target {target}, {gib:.1} GiB, {count} {processors}; {runs}",
        attributes.name
    );
    let value = json!({
        "name": attributes.name,
        "compute_capability": format!("{major}.{minor}"),
        "target": target,
        "memory_bytes": attributes.total_memory,
        "processors": count,
        "works": works.is_ok(),
        "error": works.as_ref().err(),
    });
    section.row(id, text, value);
}

#[cfg(test)]
mod tests {
    use weft_runtime::ErrorKind;

    use super::*;

    #[test]
    fn the_machine_says_what_it_has() {
        let root = std::env::temp_dir().join(format!("weft-doctor-{}", std::process::id()));
        for (path, text) in [
            ("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n"),
            ("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n"),
            // The audio device of the same card, and a GPU of another vendor.
            ("sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n"),
            ("sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n"),
            ("sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n"),
            ("sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n"),
            (
                "proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:\n",
            ),
            (".dockerenv", ""),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder can be written");
            fs::write(path, text).expect("the folder can be written");
        }
        let found = Hardware::at(&root);
        fs::remove_dir_all(&root).expect("the folder is this test's own");
        let expected = Hardware {
            gpus: vec!["0000:01:00.0".to_owned()],
            module: Some("550.54.15".to_owned()),
            is_container: true,
            is_wsl: false,
        };
        assert_eq!(found, expected);
        assert!(found.has_gpu() && !Hardware::at(&root).has_gpu());
        let none = Error::new(ErrorKind::NoDevice, "no driver");
        assert!(found.mend(&none, false).contains("--gpus all"));
        let plain = Hardware { is_container: false, ..found };
        assert!(plain.mend(&none, false).contains("libcuda1"));
        assert!(plain.mend(&none, true).contains("newer NVIDIA driver"));
        assert!(plain.mend(&Error { driver_code: Some(803), ..none }, true).contains("restart"));
    }
}
