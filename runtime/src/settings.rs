//! Settings: one row each, read from the environment by the caller.
//!
//! A setting that is absent or empty has its default. A new setting is a field of [`Settings`] and a row of
//! [`SETTINGS`]; the row's text is what users read.

use std::{
    num::NonZeroUsize,
    path::{self, PathBuf},
};

use crate::error::{Error, ErrorKind};

/// `WEFT_DEVICE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceChoice {
    /// The GPU if there is one, else the CPU.
    Auto,
    /// The GPU or an error.
    Cuda,
    /// The CPU.
    Cpu,
}

/// `WEFT_CPU_STRATEGY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CpuStrategy {
    /// Loops, or stacks where a thread may wait for what another one writes.
    Auto,
    /// Loops that end at barriers.
    Loops,
    /// A stack for each thread.
    Fibers,
}

/// `WEFT_PROGRESS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgressChoice {
    /// Of long compilations, on a terminal.
    Auto,
    /// Never.
    Never,
    /// Of long compilations and large copies, without a terminal, too.
    Always,
}

/// A file of NVIDIA's: `WEFT_LIBDEVICE` and its like.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FileChoice {
    /// The first one found.
    Auto,
    /// Do not use it.
    None,
    /// This file.
    Path(PathBuf),
}

/// All settings. [`Settings::default`] is what an empty environment means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Settings {
    /// `WEFT_DEVICE`: where kernels run.
    pub device: DeviceChoice,
    /// `WEFT_CPU_COMPUTE_CAPABILITY`: (major, minor) that the CPU answers.
    pub cpu_compute_capability: (u32, u32),
    /// `WEFT_CPU_THREADS`: threads that run blocks on the CPU; `None` is one for each core.
    pub cpu_threads: Option<NonZeroUsize>,
    /// `WEFT_CPU_STRATEGY`: how the threads of a block run on the CPU.
    pub cpu_strategy: CpuStrategy,
    /// `WEFT_HOST_CPU`: LLVM's name of the CPU that code is made for; `None` is this machine's own.
    pub host_cpu: Option<String>,
    /// `WEFT_LIBDEVICE`: NVIDIA's math library.
    pub libdevice: FileChoice,
    /// `WEFT_NVRTC`: NVIDIA's compiler of CUDA C++.
    pub nvrtc: FileChoice,
    /// `WEFT_NVJITLINK`: NVIDIA's linker of LTO-IR.
    pub nvjitlink: FileChoice,
    /// `WEFT_NVRTC_EXTRA_SEARCH_PATHS`: folders of headers for CUDA C++, with colons between.
    pub nvrtc_extra_search_paths: String,
    /// `WEFT_WARN_ON_IMPLICIT_COPY`: warn where a launch copies host arrays.
    pub warn_on_implicit_copy: bool,
    /// `WEFT_LOW_OCCUPANCY_WARNINGS`: warn where a grid has too few blocks for a GPU.
    pub low_occupancy_warnings: bool,
    /// `WEFT_CUDA_ARRAY_INTERFACE_SYNC`: wait for the stream that an object of another library names.
    pub array_interface_sync: bool,
    /// `WEFT_FOLLOW_STREAMS`: launch in the stream of other libraries where their arrays are the arguments.
    pub follow_streams: bool,
    /// `WEFT_MEMORY_POOL`: memory of GPUs comes from the driver's pool.
    pub memory_pool: bool,
    /// `WEFT_MEMORY_CACHE`: bytes of a GPU's memory that are kept for who allocates next; `None` is a default of the device's.
    pub memory_cache: Option<u64>,
    /// `WEFT_MEMORY_MANAGER`: the module of Python's that has the memory manager; `None` is weft.
    pub memory_manager: Option<String>,
    /// `WEFT_COPY_THREADS`: threads that share a large copy between plain memory and a GPU; `None` is a default of the machine's.
    pub copy_threads: Option<NonZeroUsize>,
    /// `WEFT_DEBUG`: what `debug` is where `cuda.jit` is not told.
    pub debug: bool,
    /// `WEFT_TIMING`: print how long the phases of each kernel's first launch take.
    pub timing: bool,
    /// `WEFT_PROGRESS`: show how far long work is.
    pub progress: ProgressChoice,
    /// `WEFT_NVTX`: tell a profiler that watches the process of compilations, copies and launches.
    pub nvtx: bool,
    /// `WEFT_CACHE`: keep what was compiled on the disk.
    pub cache: bool,
    /// `WEFT_CACHE_DIR`: where; `None` is the user's own folder for caches ([`Settings::cache_folder`]).
    pub cache_dir: Option<PathBuf>,
    /// `WEFT_CACHE_SIZE`: about the most bytes of it.
    pub cache_bytes: u64,
}

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// What it is when absent, in the form in which a user would write it.
    pub default: &'static str,
    /// The values that it can have.
    pub allowed: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Reads a value into the settings; `None` if it makes no sense.
    parse: fn(&mut Settings, &str) -> Option<()>,
}

/// Every setting.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "WEFT_DEVICE",
        default: "auto",
        allowed: "auto, cuda or cpu",
        doc: "Where kernels run. `auto` takes the GPU if there is one and else the CPU; `cuda` demands a GPU.",
        parse: |settings, value| {
            settings.device = match value {
                "auto" => DeviceChoice::Auto,
                "cuda" => DeviceChoice::Cuda,
                "cpu" => DeviceChoice::Cpu,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_CPU_COMPUTE_CAPABILITY",
        default: "9.0",
        allowed: "major.minor such as 9.0, from 5.0 to 12.9",
        doc: "The compute capability that the CPU answers when it stands in for a GPU; the limit on shared memory follows it.",
        parse: |settings, value| {
            let (major, minor) = value.split_once('.')?;
            let pair = (small_number(major)?, small_number(minor)?);
            settings.cpu_compute_capability = ((5, 0)..=(12, 9)).contains(&pair).then_some(pair)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_CPU_THREADS",
        default: "auto",
        allowed: "auto or a number from 1 to 4096",
        doc: "How many threads run the blocks of a launch on the CPU. `auto` is one for each core that this process may use.",
        parse: |settings, value| threads(&mut settings.cpu_threads, value),
    },
    Setting {
        name: "WEFT_CPU_STRATEGY",
        default: "auto",
        allowed: "auto, loops or fibers",
        doc: "How the threads of a block run on the CPU: as `loops` that end at barriers, or as `fibers`, each with a stack of its own, which may wait for each other. `auto` takes fibers where a loop waits for memory, and else loops, which are many times faster.",
        parse: |settings, value| {
            settings.cpu_strategy = match value {
                "auto" => CpuStrategy::Auto,
                "loops" => CpuStrategy::Loops,
                "fibers" => CpuStrategy::Fibers,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_HOST_CPU",
        default: "auto",
        allowed: "auto or a CPU's name of LLVM's, such as x86-64-v3",
        doc: "The CPU that code for the CPU is made for, if not all that this machine has is to be used: `x86-64-v3` is one with AVX2 and without AVX-512. One that has what this machine has not is an error.",
        parse: |settings, value| {
            let is_name = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
            settings.host_cpu = match value {
                "auto" => None,
                _ => Some(is_name.then(|| value.to_owned())?),
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_LIBDEVICE",
        default: "auto",
        allowed: "auto, none or the path of a libdevice.10.bc",
        doc: "NVIDIA's math library, used for GPU code where there is one: faster than the built-in one. `none` never uses it.",
        parse: |settings, value| {
            settings.libdevice = file(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVRTC",
        default: "auto",
        allowed: "auto, none or the path of a libnvrtc.so",
        doc: "NVIDIA's compiler of CUDA C++, used for the sources that kernels are linked with. `auto` looks for it in CUDA toolkits and Python packages.",
        parse: |settings, value| {
            settings.nvrtc = file(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVJITLINK",
        default: "auto",
        allowed: "auto, none or the path of a libnvJitLink.so",
        doc: "NVIDIA's linker of LTO-IR, used where kernels are linked with that or with `lto=True`. `auto` looks for it in CUDA toolkits and Python packages.",
        parse: |settings, value| {
            settings.nvjitlink = file(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVRTC_EXTRA_SEARCH_PATHS",
        default: "",
        allowed: "folders with colons between",
        doc: "Where CUDA C++ that kernels are linked with finds more headers. A program may change it: `weft.config.CUDA_NVRTC_EXTRA_SEARCH_PATHS`.",
        parse: |settings, value| {
            value.clone_into(&mut settings.nvrtc_extra_search_paths);
            Some(())
        },
    },
    Setting {
        name: "WEFT_WARN_ON_IMPLICIT_COPY",
        default: "1",
        allowed: SWITCH,
        doc: "Warn where a launch on a GPU copies host arrays. A program may change it: `weft.config.CUDA_WARN_ON_IMPLICIT_COPY`.",
        parse: |settings, value| switch(&mut settings.warn_on_implicit_copy, value),
    },
    Setting {
        name: "WEFT_LOW_OCCUPANCY_WARNINGS",
        default: "1",
        allowed: SWITCH,
        doc: "Warn where a grid has too few blocks for a GPU. A program may change it: `weft.config.CUDA_LOW_OCCUPANCY_WARNINGS`.",
        parse: |settings, value| switch(&mut settings.low_occupancy_warnings, value),
    },
    Setting {
        name: "WEFT_CUDA_ARRAY_INTERFACE_SYNC",
        default: "1",
        allowed: SWITCH,
        doc: "Wait for the stream that an object with `__cuda_array_interface__` names. A program may change it: `weft.config.CUDA_ARRAY_INTERFACE_SYNC`.",
        parse: |settings, value| switch(&mut settings.array_interface_sync, value),
    },
    Setting {
        name: "WEFT_FOLLOW_STREAMS",
        default: "1",
        allowed: SWITCH,
        doc: "Launch in the stream that another library works in at present, if all arrays are of such libraries, they work in one, and the launch names none. Otherwise the launch waits for that stream.",
        parse: |settings, value| switch(&mut settings.follow_streams, value),
    },
    Setting {
        name: "WEFT_MEMORY_POOL",
        default: "1",
        allowed: SWITCH,
        doc: "Take the memory of a GPU from the driver's stream-ordered pool. With `0` it is allocated as `cuMemAlloc` does, so that other processes can open arrays (`get_ipc_handle`); freeing memory of more than 64 MiB then waits for the device.",
        parse: |settings, value| switch(&mut settings.memory_pool, value),
    },
    Setting {
        name: "WEFT_MEMORY_CACHE",
        default: "auto",
        allowed: "auto or a number of MiB",
        doc: "How much freed memory of a GPU is kept for who allocates next in the same stream, without a call of the driver. `auto` is 256 MiB, or a sixteenth of the device's memory if that is less; `0` keeps none, which shows tools such as compute-sanitizer each allocation.",
        parse: |settings, value| {
            settings.memory_cache = match value {
                "auto" => None,
                _ => Some(u64::from(small_number(value)?) << 20),
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_MEMORY_MANAGER",
        default: "default",
        allowed: "default or the name of a Python module",
        doc: "Who allocates device arrays: the class that the module has as `_numba_memory_manager`, as `cuda.set_memory_manager` takes it. `default` is weft. Without it `NUMBA_CUDA_MEMORY_MANAGER` says so, too.",
        parse: |settings, value| {
            let is_part = |part: &str| {
                part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
                    && part.chars().next().is_some_and(|first| !first.is_ascii_digit())
            };
            settings.memory_manager = match value {
                "default" => None,
                _ => Some(value.split('.').all(is_part).then(|| value.to_owned())?),
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_COPY_THREADS",
        default: "auto",
        allowed: "auto or a number from 1 to 4096",
        doc: "How many threads share a large copy between a GPU and memory of the host that is not page-locked, each with 4 MiB of page-locked memory. `auto` is one for each core that this process may use, at most 8; with `1` the driver copies.",
        parse: |settings, value| threads(&mut settings.copy_threads, value),
    },
    Setting {
        name: "WEFT_DEBUG",
        default: "0",
        allowed: SWITCH,
        doc: "What `debug` is where `cuda.jit` is not told.",
        parse: |settings, value| switch(&mut settings.debug, value),
    },
    Setting {
        name: "WEFT_TIMING",
        default: "0",
        allowed: SWITCH,
        doc: "Print to the standard error how long each phase takes of compiling and loading a kernel.",
        parse: |settings, value| switch(&mut settings.timing, value),
    },
    Setting {
        name: "WEFT_PROGRESS",
        default: "auto",
        allowed: "auto, 0 or 1",
        doc: "Show how far long work is, in a line on the standard error that vanishes at its end. `auto` shows compilations that take more than 2 seconds, where Python's `sys.stderr` is the terminal. `1` shows copies of 1 GiB and more, too, and where there is no terminal writes a line of text at the beginning and one at the end.",
        parse: |settings, value| {
            settings.progress = match value {
                "auto" => ProgressChoice::Auto,
                "0" => ProgressChoice::Never,
                "1" => ProgressChoice::Always,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVTX",
        default: "1",
        allowed: SWITCH,
        doc: "Tell a profiler that watches the process (Nsight Systems, by NVTX) of compilations, copies and launches, as ranges of the domain `weft`. Where no profiler does, nothing is opened.",
        parse: |settings, value| switch(&mut settings.nvtx, value),
    },
    Setting {
        name: "WEFT_CACHE",
        default: "on",
        allowed: "on or off",
        doc: "Keep what was compiled on the disk, and the machine code that a GPU's driver makes of it, for the next time that a program runs.",
        parse: |settings, value| {
            settings.cache = match value {
                "on" => true,
                "off" => false,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_CACHE_DIR",
        default: "auto",
        allowed: "auto or a folder",
        doc: "Where that is kept. `auto` is `weft` in `$XDG_CACHE_HOME`, or in `~/.cache`. Several processes and machines may have one folder; whoever can write to it can have your programs run other code.",
        parse: |settings, value| {
            settings.cache_dir = (value != "auto").then(|| PathBuf::from(value));
            Some(())
        },
    },
    Setting {
        name: "WEFT_CACHE_SIZE",
        default: "1G",
        allowed: "bytes such as 500M or 2G, from 1M",
        doc: "About how much of it there may be. What was used longest ago goes first.",
        parse: |settings, value| {
            settings.cache_bytes = bytes(value).filter(|bytes| *bytes >= 1 << 20)?;
            Some(())
        },
    },
];

/// A number of bytes, with a letter for powers of 1024.
fn bytes(text: &str) -> Option<u64> {
    let (number, shift) = match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) if text.ends_with('K') => (number, 10),
        Some(number) if text.ends_with('M') => (number, 20),
        Some(number) if text.ends_with('G') => (number, 30),
        Some(number) => (number, 40),
        None => (text, 0),
    };
    u64::from(small_number(number)?).checked_mul(1 << shift)
}
/// Settings that another variable means, too, where their own is not set: programs and libraries set that for numba-cuda.
const ALSO: &[(&str, &str)] = &[("WEFT_MEMORY_MANAGER", "NUMBA_CUDA_MEMORY_MANAGER")];

/// A choice of a file.
fn file(value: &str) -> Option<FileChoice> {
    match value {
        "auto" => Some(FileChoice::Auto),
        "none" => Some(FileChoice::None),
        // A word without a slash is a misspelt choice rather than a file.
        path => path.contains('/').then(|| FileChoice::Path(PathBuf::from(path))),
    }
}

/// What a switch can be.
const SWITCH: &str = "0 or 1";

fn switch(setting: &mut bool, value: &str) -> Option<()> {
    *setting = match value {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    Some(())
}

/// A number of threads, or `auto`.
fn threads(setting: &mut Option<NonZeroUsize>, text: &str) -> Option<()> {
    *setting = match text {
        "auto" => None,
        _ => Some(NonZeroUsize::new(small_number(text)? as usize).filter(|n| n.get() <= 4096)?),
    };
    Some(())
}

/// A decimal number without sign or blanks.
fn small_number(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            device: DeviceChoice::Auto,
            cpu_compute_capability: (9, 0),
            cpu_threads: None,
            cpu_strategy: CpuStrategy::Auto,
            host_cpu: None,
            libdevice: FileChoice::Auto,
            nvrtc: FileChoice::Auto,
            nvjitlink: FileChoice::Auto,
            nvrtc_extra_search_paths: String::new(),
            warn_on_implicit_copy: true,
            low_occupancy_warnings: true,
            array_interface_sync: true,
            follow_streams: true,
            memory_pool: true,
            memory_cache: None,
            memory_manager: None,
            copy_threads: None,
            debug: false,
            timing: false,
            progress: ProgressChoice::Auto,
            nvtx: true,
            cache: true,
            cache_dir: None,
            cache_bytes: 1 << 30,
        }
    }
}

impl Settings {
    /// Reads every setting through `variable`, which answers the value of an environment variable.
    ///
    /// # Errors
    ///
    /// `Value`, naming the variable, its value and what it could be.
    pub fn from_env(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let mut settings = Self::default();
        for setting in SETTINGS {
            let own = variable(setting.name).filter(|value| !value.trim().is_empty());
            let also = ALSO.iter().find(|(name, _)| *name == setting.name);
            let Some(value) = own.or_else(|| also.and_then(|(_, also)| variable(also))) else { continue };
            let trimmed = value.trim();
            if !trimmed.is_empty() && (setting.parse)(&mut settings, trimmed).is_none() {
                let Setting { name, allowed, default, .. } = setting;
                return Err(Error::new(
                    ErrorKind::Value,
                    format!("{name} is \"{value}\"; it can be {allowed} (default: {default})"),
                ));
            }
        }
        Ok(settings)
    }

    /// Where what was compiled is kept, if it is: the folder of the settings, or else the one that is a user's own by the
    /// XDG Base Directory Specification, of which `variable` answers the environment variables.
    pub fn cache_folder(&self, variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
        if !self.cache {
            return None;
        }
        if let Some(folder) = &self.cache_dir {
            // A process may change its folder.
            return path::absolute(folder).ok();
        }
        let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(caches.join("weft"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Settings, Error> {
        Settings::from_env(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn the_default_column_is_the_default() {
        for setting in SETTINGS {
            assert_eq!(with(setting.name, setting.default), Ok(Settings::default()), "{}", setting.name);
            assert_eq!(with(setting.name, "  "), Ok(Settings::default()), "{}", setting.name);
        }
        assert_eq!(Settings::from_env(|_| None), Ok(Settings::default()));
    }

    #[test]
    fn values_are_read() {
        assert_eq!(with("WEFT_DEVICE", "cpu").map(|s| s.device), Ok(DeviceChoice::Cpu));
        assert_eq!(with("WEFT_DEVICE", " cuda ").map(|s| s.device), Ok(DeviceChoice::Cuda));
        assert_eq!(with("WEFT_CPU_COMPUTE_CAPABILITY", "8.6").map(|s| s.cpu_compute_capability), Ok((8, 6)));
        assert_eq!(with("WEFT_CPU_THREADS", "3").map(|s| s.cpu_threads), Ok(NonZeroUsize::new(3)));
        assert_eq!(with("WEFT_HOST_CPU", "x86-64-v3").map(|s| s.host_cpu), Ok(Some("x86-64-v3".to_owned())));
        let path = FileChoice::Path(PathBuf::from("/opt/libdevice.10.bc"));
        assert_eq!(with("WEFT_LIBDEVICE", "/opt/libdevice.10.bc").map(|s| s.libdevice), Ok(path));
        let path = FileChoice::Path(PathBuf::from("/opt/libnvrtc.so.13"));
        assert_eq!(with("WEFT_NVRTC", "/opt/libnvrtc.so.13").map(|s| s.nvrtc), Ok(path));
        assert_eq!(with("WEFT_NVJITLINK", "none").map(|s| s.nvjitlink), Ok(FileChoice::None));
        let paths = with("WEFT_NVRTC_EXTRA_SEARCH_PATHS", "/a:/b").map(|s| s.nvrtc_extra_search_paths);
        assert_eq!(paths.as_deref(), Ok("/a:/b"));
        assert_eq!(with("WEFT_DEBUG", "1").map(|s| s.debug), Ok(true));
        assert_eq!(with("WEFT_WARN_ON_IMPLICIT_COPY", "0").map(|s| s.warn_on_implicit_copy), Ok(false));
        assert_eq!(with("WEFT_LOW_OCCUPANCY_WARNINGS", "0").map(|s| s.low_occupancy_warnings), Ok(false));
        assert_eq!(with("WEFT_CUDA_ARRAY_INTERFACE_SYNC", "0").map(|s| s.array_interface_sync), Ok(false));
        assert_eq!(with("WEFT_MEMORY_POOL", "0").map(|s| s.memory_pool), Ok(false));
        assert_eq!(with("WEFT_MEMORY_CACHE", "3").map(|s| s.memory_cache), Ok(Some(3 << 20)));
        for name in ["WEFT_MEMORY_MANAGER", "NUMBA_CUDA_MEMORY_MANAGER"] {
            let manager = with(name, "rmm.allocators.numba").map(|s| s.memory_manager);
            assert_eq!(manager, Ok(Some("rmm.allocators.numba".to_owned())));
        }
        assert_eq!(with("WEFT_LIBDEVICE", "none").map(|s| s.libdevice), Ok(FileChoice::None));
        assert_eq!(with("WEFT_FOLLOW_STREAMS", "0").map(|s| s.follow_streams), Ok(false));
        assert_eq!(with("WEFT_TIMING", "1").map(|s| s.timing), Ok(true));
        assert_eq!(with("WEFT_PROGRESS", "0").map(|s| s.progress), Ok(ProgressChoice::Never));
        assert_eq!(with("WEFT_PROGRESS", "1").map(|s| s.progress), Ok(ProgressChoice::Always));
        assert_eq!(with("WEFT_NVTX", "0").map(|s| s.nvtx), Ok(false));
        assert_eq!(with("WEFT_CACHE", "off").map(|s| s.cache), Ok(false));
        assert_eq!(with("WEFT_CACHE_DIR", "c").map(|s| s.cache_dir), Ok(Some(PathBuf::from("c"))));
        for (text, size) in [("1048576", 1 << 20), ("2048K", 2 << 20), ("500M", 500 << 20), ("2T", 2 << 40)] {
            assert_eq!(with("WEFT_CACHE_SIZE", text).map(|s| s.cache_bytes), Ok(size));
        }
    }

    #[test]
    fn the_cache_is_in_the_users_folder_unless_a_setting_says_otherwise() {
        let folder = |variables: &'static [(&str, &str)]| {
            let variable = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.to_owned());
            let settings = Settings::from_env(variable).expect("they are settings");
            settings.cache_folder(variable).map(|folder| folder.to_string_lossy().into_owned())
        };
        assert_eq!(folder(&[("HOME", "/home/a")]).as_deref(), Some("/home/a/.cache/weft"));
        assert_eq!(folder(&[("HOME", "/home/a"), ("XDG_CACHE_HOME", "/c")]).as_deref(), Some("/c/weft"));
        assert_eq!(folder(&[("HOME", "/home/a"), ("XDG_CACHE_HOME", "c")]).as_deref(), Some("/home/a/.cache/weft"));
        assert_eq!(folder(&[("HOME", "/home/a"), ("WEFT_CACHE_DIR", "/mine")]).as_deref(), Some("/mine"));
        assert_eq!(folder(&[("HOME", "/home/a"), ("WEFT_CACHE", "off")]), None);
        assert_eq!(folder(&[]), None);
        assert!(folder(&[("WEFT_CACHE_DIR", "mine")]).is_some_and(|folder| folder.starts_with('/')));
    }

    #[test]
    fn a_bad_value_names_variable_value_and_choices() {
        for (name, value) in [
            ("WEFT_DEVICE", "gpu"),
            ("WEFT_CPU_COMPUTE_CAPABILITY", "9"),
            ("WEFT_CPU_COMPUTE_CAPABILITY", "9.x"),
            ("WEFT_CPU_COMPUTE_CAPABILITY", "+9.0"),
            ("WEFT_CPU_COMPUTE_CAPABILITY", "1.0"),
            ("WEFT_CPU_THREADS", "0"),
            ("WEFT_CPU_THREADS", "-1"),
            ("WEFT_CPU_THREADS", "5000"),
            ("WEFT_HOST_CPU", "x86 64"),
            ("WEFT_LIBDEVICE", "yes"),
            ("WEFT_NVRTC", "libnvrtc.so"),
            ("WEFT_NVJITLINK", "13"),
            ("WEFT_DEBUG", "on"),
            ("WEFT_PROGRESS", "yes"),
            ("WEFT_WARN_ON_IMPLICIT_COPY", "2"),
            ("WEFT_CACHE", "no"),
            ("WEFT_CACHE_SIZE", "1000K"),
            ("WEFT_CACHE_SIZE", "big"),
            ("WEFT_CACHE_SIZE", "1.5G"),
            ("WEFT_MEMORY_POOL", "no"),
            ("WEFT_MEMORY_CACHE", "1 GiB"),
            ("WEFT_MEMORY_MANAGER", "a module"),
            ("WEFT_MEMORY_MANAGER", "rmm."),
        ] {
            let error = with(name, value).expect_err("not a value of this setting");
            let allowed = SETTINGS.iter().find(|s| s.name == name).map_or("", |s| s.allowed);
            assert_eq!(error.kind, ErrorKind::Value);
            for part in [name, &format!("\"{value}\""), allowed] {
                assert!(error.message.contains(part), "{part} is not in: {}", error.message);
            }
        }
    }
}
