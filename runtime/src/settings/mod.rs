//! Settings: one row each, read from the environment by the caller.
//!
//! A setting that is absent or empty has its default. A new setting is a field of [`Settings`] and a row of
//! [`SETTINGS`]; the row's text is what users read.

use std::{
    ffi::{OsStr, OsString},
    num::NonZeroUsize,
    path::{self, PathBuf},
};

use weft_artifact::{Factors, Tools};

use crate::error::{Error, ErrorKind};

mod rows;

pub use rows::SETTINGS;

/// `WEFT_DEVICE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceChoice {
    /// The GPU if there is one, else the CPU.
    Auto,
    /// The GPU or an error.
    Cuda,
    /// The CPU.
    Cpu,
    /// Python's interpreter, on memory of the CPU.
    Python,
    /// The simulator of PTX, on memory of the CPU.
    Ptx,
    /// Nothing: each use of a device is an error.
    None,
}

impl DeviceChoice {
    /// Whether no GPU is to be used, whatever there is.
    #[must_use]
    pub fn is_host(self) -> bool {
        match self {
            Self::Auto | Self::Cuda => false,
            Self::Cpu | Self::Python | Self::Ptx | Self::None => true,
        }
    }
}

/// `WEFT_DEBUG_THREAD` and `WEFT_DEBUG_BLOCK`: an index (x, y, z), or `None` for all.
pub type DebugIndex = Option<(u32, u32, u32)>;

/// `WEFT_CPU_STRATEGY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CpuStrategy {
    /// Work-item loops, or stacks where a thread may wait for another thread's store.
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

/// `WEFT_PROFILE`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProfileChoice {
    /// Launches are not profiled.
    Off,
    /// The report is written to the standard error when the process ends.
    Print,
    /// It is written to a file, in the format of its name.
    File(PathBuf),
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

/// `WEFT_COARSEN` and `WEFT_COARSEN_BLOCKS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoarsenChoice {
    /// The factors that each kernel sets.
    Kernel,
    /// An estimate, for those that do not say.
    Auto,
    /// These factors.
    Factors(Factors),
}

/// All settings. [`Settings::default`] is that of an empty environment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Settings {
    /// `WEFT_DEVICE`: where kernels run.
    pub device: DeviceChoice,
    /// `WEFT_CPU_COMPUTE_CAPABILITY`: (major, minor) that the CPU answers.
    pub cpu_compute_capability: (u32, u32),
    /// `WEFT_DEFAULT_PTX_CC`: (major, minor) that code for other programs is compiled for.
    pub default_ptx_cc: (u32, u32),
    /// `WEFT_CPU_THREADS`: threads that run blocks on the CPU; `None` is one for each core.
    pub cpu_threads: Option<NonZeroUsize>,
    /// `WEFT_CPU_STRATEGY`: how the threads of a block run on the CPU.
    pub cpu_strategy: CpuStrategy,
    /// `WEFT_COARSEN`, `WEFT_COARSEN_BLOCKS`: how many threads, and blocks, one does the work of.
    pub coarsen: CoarsenChoice,
    /// `WEFT_TUNE`: measure on launches which factors are the best.
    pub tune: bool,
    /// `WEFT_HOST_CPU`: LLVM's name of the CPU that code is made for; `None` is this machine's own.
    pub host_cpu: Option<String>,
    /// `WEFT_HOST_PLAN`: LLVM's name of the CPU whose plans kernels get; `None` is the one that code is made for.
    pub host_plan: Option<String>,
    /// `WEFT_HOST_OPT_LEVEL`: LLVM's optimization level for host code, 0 to 3.
    pub host_opt_level: u8,
    /// `WEFT_SKIP_PASSES`: passes of the CPU planner that do not run.
    pub skip_passes: Vec<String>,
    /// `WEFT_PRINT_AFTER`: passes of the CPU planner after which plans are printed.
    pub print_after: Vec<String>,
    /// `WEFT_IR_DIGESTS`: the file to which digests of LLVM IR are appended.
    pub ir_digests: Option<PathBuf>,
    /// `WEFT_LIBDEVICE`: NVIDIA's math library.
    pub libdevice: FileChoice,
    /// `WEFT_NVRTC`: NVIDIA's compiler of CUDA C++.
    pub nvrtc: FileChoice,
    /// `WEFT_NVJITLINK`: NVIDIA's linker of LTO-IR.
    pub nvjitlink: FileChoice,
    /// `WEFT_LIBNVVM`: NVIDIA's compiler of NVVM IR.
    pub libnvvm: FileChoice,
    /// `WEFT_NVRTC_EXTRA_SEARCH_PATHS`: folders of headers for CUDA C++, with colons between.
    pub nvrtc_extra_search_paths: String,
    /// `WEFT_WARN_ON_IMPLICIT_COPY`: warn where a launch copies host arrays.
    pub warn_on_implicit_copy: bool,
    /// `WEFT_LOW_OCCUPANCY_WARNINGS`: warn where a grid has too few blocks for a GPU.
    pub low_occupancy_warnings: bool,
    /// `WEFT_CUDA_ARRAY_INTERFACE_SYNC`: wait for the stream that an object of another library names.
    pub array_interface_sync: bool,
    /// `WEFT_USE_PRODUCER_STREAM`: launch in the stream of other libraries where their arrays are the arguments.
    pub use_producer_stream: bool,
    /// `WEFT_MEMORY_POOL`: memory of GPUs comes from the driver's pool.
    pub memory_pool: bool,
    /// `WEFT_MEMORY_CACHE`: the most bytes of freed GPU memory that are cached for later allocations; `None` is the
    /// device's default.
    pub memory_cache: Option<u64>,
    /// `WEFT_MEMORY_MANAGER`: the module of Python's that has the memory manager; `None` is weft.
    pub memory_manager: Option<String>,
    /// `WEFT_COPY_THREADS`: threads that share a large copy between plain memory and a GPU; `None` is a default of the machine's.
    pub copy_threads: Option<NonZeroUsize>,
    /// `WEFT_DEBUG`: the default of `debug` in `cuda.jit`.
    pub debug: bool,
    /// `WEFT_DEBUG_THREAD`: the thread of a block in which a breakpoint of a kernel stops.
    pub debug_thread: DebugIndex,
    /// `WEFT_DEBUG_BLOCK`: the block in which it does.
    pub debug_block: DebugIndex,
    /// `WEFT_BOUNDSCHECK`: the default of `boundscheck` in `cuda.jit`.
    pub boundscheck: bool,
    /// `WEFT_REPRODUCIBLE`: the default of `reproducible` in `cuda.jit`.
    pub reproducible: bool,
    /// `WEFT_SANITIZE`: the default of `sanitize` in `cuda.jit`.
    pub sanitize: Tools,
    /// `WEFT_SANITIZE_ACTION`: a launch with findings raises an error; else it warns.
    pub sanitize_raises: bool,
    /// `WEFT_SANITIZE_REPORT`: the folder that findings are written to instead.
    pub sanitize_report: Option<PathBuf>,
    /// `WEFT_SANITIZE_BENIGN_RACES`: report races in which the threads write the same value.
    pub sanitize_benign_races: bool,
    /// `WEFT_PROFILE`: profile the launches of the process.
    pub profile: ProfileChoice,
    /// `WEFT_PROFILE_GPU`: the name of the GPU for it.
    pub profile_gpu: String,
    /// `WEFT_TIMING`: print how long the phases of each kernel's first launch take.
    pub timing: bool,
    /// `WEFT_WARN_WIDENING`: warn where Numba's typing widens numbers.
    pub warn_widening: bool,
    /// `WEFT_PROGRESS`: show how far long work is.
    pub progress: ProgressChoice,
    /// `WEFT_NVTX`: report compilations, copies and launches to an attached profiler.
    pub nvtx: bool,
    /// `WEFT_CACHE`: cache compiled code on disk.
    pub cache: bool,
    /// `WEFT_SPECIALIZE`: specialize kernels for the usual properties of launches.
    pub specialize: bool,
    /// `WEFT_CACHE_MACHINE_CODE`: cache the GPU driver's machine code, too.
    pub cache_machine_code: bool,
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
    /// Its default, in the form in which a user would write it.
    pub default: &'static str,
    /// The values that it can have.
    pub allowed: &'static str,
    /// Its effect.
    pub doc: &'static str,
    /// Reads a value into the settings; `None` if it makes no sense.
    parse: fn(&mut Settings, &str) -> Option<()>,
}

/// A setting as it is in force.
#[derive(Debug)]
pub struct InForce {
    /// Its row.
    pub setting: &'static Setting,
    /// Its value, in the form in which a user would write it.
    pub value: String,
    /// The environment variable that it is from; `None` for the default.
    pub from: Option<&'static str>,
    /// Whether it is other than the default; the error of a value that makes no sense.
    pub changes: Result<bool, Error>,
}

impl Setting {
    /// The environment variable that gives it and what that is, if one does.
    fn given(&self, variable: &impl Fn(&str) -> Option<OsString>) -> Option<(&'static str, OsString)> {
        let also = ALSO.iter().find(|(name, _)| *name == self.name).map(|(_, also)| *also);
        let names = [Some(self.name), also].into_iter().flatten();
        names.filter_map(|name| Some((name, variable(name)?))).find(|(_, value)| {
            // A value that is not UTF-8 is not blank.
            value.to_str().is_none_or(|value| !value.trim().is_empty())
        })
    }

    /// Reads a value into the settings.
    fn read(&self, settings: &mut Settings, value: &OsStr) -> Result<(), Error> {
        let Self { name, allowed, default, .. } = self;
        let Some(value) = value.to_str() else {
            let escaped = value.as_encoded_bytes().escape_ascii();
            let message =
                format!("{name} is \"{escaped}\", which is not UTF-8; it can be {allowed} (default: {default})");
            return Err(Error::new(ErrorKind::Value, message));
        };
        (self.parse)(settings, value.trim()).ok_or_else(|| {
            let message = format!("{name} is \"{value}\"; it can be {allowed} (default: {default})");
            Error::new(ErrorKind::Value, message)
        })
    }
}

/// How the names of all settings begin.
const PREFIX: &str = "WEFT_";

/// Settings that another variable means, too, where their own is not set: programs and libraries set that for numba-cuda.
const ALSO: &[(&str, &str)] = &[("WEFT_MEMORY_MANAGER", "NUMBA_CUDA_MEMORY_MANAGER")];

impl Default for Settings {
    fn default() -> Self {
        Self {
            device: DeviceChoice::Auto,
            cpu_compute_capability: (9, 0),
            default_ptx_cc: (7, 5),
            cpu_threads: None,
            cpu_strategy: CpuStrategy::Auto,
            coarsen: CoarsenChoice::Auto,
            tune: false,
            host_cpu: None,
            host_plan: None,
            host_opt_level: 3,
            skip_passes: Vec::new(),
            print_after: Vec::new(),
            ir_digests: None,
            libdevice: FileChoice::Auto,
            nvrtc: FileChoice::Auto,
            nvjitlink: FileChoice::Auto,
            libnvvm: FileChoice::Auto,
            nvrtc_extra_search_paths: String::new(),
            warn_on_implicit_copy: true,
            low_occupancy_warnings: true,
            array_interface_sync: true,
            use_producer_stream: true,
            memory_pool: true,
            memory_cache: None,
            memory_manager: None,
            copy_threads: None,
            debug: false,
            debug_thread: Some((0, 0, 0)),
            debug_block: Some((0, 0, 0)),
            boundscheck: false,
            reproducible: false,
            sanitize: Tools::NONE,
            sanitize_raises: true,
            sanitize_report: None,
            sanitize_benign_races: true,
            profile: ProfileChoice::Off,
            profile_gpu: "h100".to_owned(),
            timing: false,
            warn_widening: false,
            progress: ProgressChoice::Auto,
            nvtx: true,
            cache: true,
            specialize: true,
            cache_machine_code: false,
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
    /// `Value`, naming the variable, its value and the allowed values.
    pub fn from_env(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let mut settings = Self::default();
        for setting in SETTINGS {
            if let Some((_, value)) = setting.given(&variable) {
                setting.read(&mut settings, &value)?;
            }
        }
        Ok(settings)
    }

    /// Every setting as it is in force, in the order of the rows; `variable` answers the value of an environment variable.
    pub fn in_force(variable: impl Fn(&str) -> Option<OsString>) -> Vec<InForce> {
        let rows = SETTINGS.iter().map(|setting| {
            let Some((from, value)) = setting.given(&variable) else {
                return InForce { setting, value: setting.default.to_owned(), from: None, changes: Ok(false) };
            };
            let mut alone = Self::default();
            let read = setting.read(&mut alone, &value);
            let changes = read.map(|()| alone != Self::default());
            InForce { setting, value: value.to_string_lossy().trim().to_owned(), from: Some(from), changes }
        });
        rows.collect()
    }

    /// The settings that are nearly the name of an environment variable that is none, by `nearest`: it answers which of
    /// several words a misspelt one may mean. `WEFT_DEVCE` is nearly `WEFT_DEVICE`; other variables that begin like
    /// settings are other programs'.
    pub fn misspelt(
        variables: impl IntoIterator<Item = String>,
        nearest: impl Fn(&str, &[&'static str]) -> Option<&'static str>,
    ) -> Vec<(String, &'static str)> {
        let rests: Vec<&'static str> = SETTINGS.iter().filter_map(|row| row.name.strip_prefix(PREFIX)).collect();
        let meant = |name: &str| {
            let rest = name.strip_prefix(PREFIX).filter(|rest| !rests.contains(rest))?;
            let near = nearest(rest, &rests)?;
            SETTINGS.iter().map(|row| row.name).find(|known| known.strip_prefix(PREFIX) == Some(near))
        };
        let mut found: Vec<_> =
            variables.into_iter().filter_map(|name| meant(&name).map(|setting| (name, setting))).collect();
        found.sort();
        found
    }

    /// The folder of the disk cache, if there is one: the folder of the settings, or else the user's cache folder by
    /// the XDG Base Directory Specification; `variable` looks up environment variables.
    pub fn cache_folder(&self, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
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
        Settings::from_env(|asked| (asked == name).then(|| value.into()))
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
    fn what_is_in_force_says_where_it_is_from() {
        let variable = |name: &str| {
            let value = match name {
                "WEFT_DEVICE" => " cpu ",
                "WEFT_CACHE_SIZE" => "1024M",
                "NUMBA_CUDA_MEMORY_MANAGER" => "rmm",
                "WEFT_DEBUG" => "yes",
                "WEFT_TUNE" => "",
                _ => return None,
            };
            Some(value.into())
        };
        let rows = Settings::in_force(variable);
        assert_eq!(rows.len(), SETTINGS.len());
        let row = |name: &str| rows.iter().find(|row| row.setting.name == name).expect("it is a setting");
        let shown = |name: &str| (row(name).value.as_str(), row(name).from, row(name).changes.clone().ok());
        assert_eq!(shown("WEFT_DEVICE"), ("cpu", Some("WEFT_DEVICE"), Some(true)));
        assert_eq!(shown("WEFT_CACHE_SIZE"), ("1024M", Some("WEFT_CACHE_SIZE"), Some(false)));
        assert_eq!(shown("WEFT_MEMORY_MANAGER"), ("rmm", Some("NUMBA_CUDA_MEMORY_MANAGER"), Some(true)));
        assert_eq!(shown("WEFT_DEBUG"), ("yes", Some("WEFT_DEBUG"), None));
        assert_eq!(shown("WEFT_TUNE"), ("0", None, Some(false)));
    }

    #[test]
    fn variables_that_are_nearly_settings_are_found() {
        let nearest = |word: &str, known: &[&'static str]| known.iter().copied().find(|name| name.starts_with(word));
        let found = |names: &[&str]| Settings::misspelt(names.iter().map(|name| (*name).to_owned()), nearest);
        assert_eq!(found(&["WEFT_DEVIC", "PATH"]), [("WEFT_DEVIC".to_owned(), "WEFT_DEVICE")]);
        assert!(found(&["WEFT_DEVICE", "WEFT_WHEEL", "DEVIC"]).is_empty());
    }

    #[test]
    fn values_are_read() {
        assert_eq!(with("WEFT_DEVICE", "cpu").map(|s| s.device), Ok(DeviceChoice::Cpu));
        let threads = CoarsenChoice::Factors(Factors::of_threads([1, 2, 1]));
        assert_eq!(with("WEFT_COARSEN", "1,2").map(|s| s.coarsen), Ok(threads));
        let blocks = CoarsenChoice::Factors(Factors::of_blocks([2, 1, 1]));
        assert_eq!(with("WEFT_COARSEN_BLOCKS", "2").map(|s| s.coarsen), Ok(blocks));
        let both = |threads: &'static str, blocks: &'static str| {
            let value = move |name: &str| match name {
                "WEFT_COARSEN" => Some(threads.into()),
                "WEFT_COARSEN_BLOCKS" => Some(blocks.into()),
                _ => None,
            };
            Settings::from_env(value).map(|settings| settings.coarsen)
        };
        let factors = Factors { threads: [2, 1, 1], blocks: [1, 4, 1] };
        assert_eq!(both("2", "1,4"), Ok(CoarsenChoice::Factors(factors)));
        assert_eq!(both("kernel", "1"), Ok(CoarsenChoice::Kernel));
        assert!(both("2", "2").is_err());
        assert_eq!(with("WEFT_DEVICE", "ptx").map(|s| s.device), Ok(DeviceChoice::Ptx));
        assert_eq!(with("WEFT_DEVICE", "python").map(|s| s.device), Ok(DeviceChoice::Python));
        assert_eq!(with("WEFT_DEVICE", "none").map(|s| s.device), Ok(DeviceChoice::None));
        assert_eq!(with("WEFT_DEBUG_THREAD", "3").map(|s| s.debug_thread), Ok(Some((3, 0, 0))));
        assert_eq!(with("WEFT_DEBUG_BLOCK", "3, 2,1").map(|s| s.debug_block), Ok(Some((3, 2, 1))));
        assert_eq!(with("WEFT_DEBUG_BLOCK", "any").map(|s| s.debug_block), Ok(None));
        assert_eq!(with("WEFT_DEVICE", " cuda ").map(|s| s.device), Ok(DeviceChoice::Cuda));
        assert_eq!(with("WEFT_CPU_COMPUTE_CAPABILITY", "8.6").map(|s| s.cpu_compute_capability), Ok((8, 6)));
        assert_eq!(with("WEFT_DEFAULT_PTX_CC", "8.0").map(|s| s.default_ptx_cc), Ok((8, 0)));
        assert_eq!(with("WEFT_DEFAULT_PTX_CC", "6.1").map(|s| s.default_ptx_cc), Ok((7, 5)));
        assert_eq!(with("WEFT_CPU_THREADS", "3").map(|s| s.cpu_threads), Ok(NonZeroUsize::new(3)));
        assert_eq!(with("WEFT_HOST_CPU", "x86-64-v3").map(|s| s.host_cpu), Ok(Some("x86-64-v3".to_owned())));
        assert_eq!(with("WEFT_HOST_OPT_LEVEL", "1").map(|s| s.host_opt_level), Ok(1));
        assert_eq!(with("WEFT_HOST_PLAN", "x86-64-v4").map(|s| s.host_plan), Ok(Some("x86-64-v4".to_owned())));
        let passes = Ok(vec!["guards".to_owned(), "if_convert".to_owned()]);
        assert_eq!(with("WEFT_SKIP_PASSES", "guards,if_convert").map(|s| s.skip_passes), passes);
        assert_eq!(with("WEFT_PRINT_AFTER", "guards,if_convert").map(|s| s.print_after), passes);
        assert_eq!(with("WEFT_PRINT_AFTER", "none").map(|s| s.print_after), Ok(Vec::new()));
        let path = FileChoice::Path(PathBuf::from("/opt/libdevice.10.bc"));
        assert_eq!(with("WEFT_LIBDEVICE", "/opt/libdevice.10.bc").map(|s| s.libdevice), Ok(path));
        let path = FileChoice::Path(PathBuf::from("/opt/libnvrtc.so.13"));
        assert_eq!(with("WEFT_NVRTC", "/opt/libnvrtc.so.13").map(|s| s.nvrtc), Ok(path));
        assert_eq!(with("WEFT_LIBNVVM", "none").map(|s| s.libnvvm), Ok(FileChoice::None));
        assert_eq!(with("WEFT_NVJITLINK", "none").map(|s| s.nvjitlink), Ok(FileChoice::None));
        let paths = with("WEFT_NVRTC_EXTRA_SEARCH_PATHS", "/a:/b").map(|s| s.nvrtc_extra_search_paths);
        assert_eq!(paths.as_deref(), Ok("/a:/b"));
        assert_eq!(with("WEFT_DEBUG", "1").map(|s| s.debug), Ok(true));
        assert_eq!(with("WEFT_BOUNDSCHECK", "1").map(|s| s.boundscheck), Ok(true));
        assert_eq!(with("WEFT_REPRODUCIBLE", "1").map(|s| s.reproducible), Ok(true));
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
        assert_eq!(with("WEFT_USE_PRODUCER_STREAM", "0").map(|s| s.use_producer_stream), Ok(false));
        assert_eq!(with("WEFT_PROFILE", "1").map(|s| s.profile), Ok(ProfileChoice::Print));
        let file = ProfileChoice::File(PathBuf::from("out/%p.html"));
        assert_eq!(with("WEFT_PROFILE", "out/%p.html").map(|s| s.profile), Ok(file));
        assert_eq!(with("WEFT_PROFILE", "off").map(|s| s.profile), Ok(ProfileChoice::Off));
        assert_eq!(with("WEFT_PROFILE_GPU", "rtx4090").map(|s| s.profile_gpu), Ok("rtx4090".to_owned()));
        assert_eq!(with("WEFT_TIMING", "1").map(|s| s.timing), Ok(true));
        assert_eq!(with("WEFT_WARN_WIDENING", "1").map(|s| s.warn_widening), Ok(true));
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
    fn every_switch_can_be_a_digit_or_a_word() {
        let is_switch = |setting: &&Setting| setting.allowed.contains("0, 1, on or off");
        assert!(SETTINGS.iter().filter(is_switch).count() > 14);
        for setting in SETTINGS.iter().filter(is_switch) {
            for (digit, word) in [("0", "off"), ("1", "on")] {
                assert_eq!(with(setting.name, digit), with(setting.name, word), "{}", setting.name);
            }
            assert_ne!(with(setting.name, "0"), with(setting.name, "1"), "{}", setting.name);
        }
        assert_eq!(with("WEFT_PROGRESS", "off").map(|s| s.progress), Ok(ProgressChoice::Never));
    }

    #[test]
    #[cfg(unix)]
    fn a_value_that_is_not_utf_8_is_an_error_that_names_it() {
        use std::os::unix::ffi::OsStringExt as _;

        for setting in SETTINGS {
            let variable = |name: &str| (name == setting.name).then(|| OsString::from_vec(b"/tmp/\xff".to_vec()));
            let error = Settings::from_env(variable).expect_err("it is not UTF-8");
            assert!(error.message.starts_with(&format!("{} is \"/tmp/\\xff\", which is not UTF-8", setting.name)));
            let row = Settings::in_force(variable).into_iter().find(|row| row.setting.name == setting.name);
            assert!(row.is_some_and(|row| row.changes == Err(error)));
        }
        // A folder of the user's may have any name.
        let home = |name: &str| (name == "HOME").then(|| OsString::from_vec(b"/home/\xff".to_vec()));
        assert!(Settings::default().cache_folder(home).is_some());
    }

    #[test]
    fn the_cache_is_in_the_users_folder_unless_a_setting_says_otherwise() {
        let folder = |variables: &'static [(&str, &str)]| {
            let variable = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.into());
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
            ("WEFT_DEBUG_THREAD", "1,2,3,4"),
            ("WEFT_DEBUG_THREAD", "-1"),
            ("WEFT_DEBUG_BLOCK", "all"),
            ("WEFT_CPU_COMPUTE_CAPABILITY", "9"),
            ("WEFT_CPU_COMPUTE_CAPABILITY", "9.x"),
            ("WEFT_CPU_COMPUTE_CAPABILITY", "+9.0"),
            ("WEFT_CPU_COMPUTE_CAPABILITY", "1.0"),
            ("WEFT_CPU_THREADS", "0"),
            ("WEFT_CPU_THREADS", "-1"),
            ("WEFT_CPU_THREADS", "5000"),
            ("WEFT_HOST_CPU", "x86 64"),
            ("WEFT_HOST_PLAN", "x86 64"),
            ("WEFT_HOST_OPT_LEVEL", "4"),
            ("WEFT_SKIP_PASSES", "guards,"),
            ("WEFT_PRINT_AFTER", "if convert"),
            ("WEFT_LIBDEVICE", "yes"),
            ("WEFT_NVRTC", "libnvrtc.so"),
            ("WEFT_NVJITLINK", "13"),
            ("WEFT_LIBNVVM", "4"),
            ("WEFT_DEBUG", "yes"),
            ("WEFT_PROGRESS", "yes"),
            ("WEFT_PROFILE", "yes"),
            ("WEFT_PROFILE", "report.pdf"),
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
