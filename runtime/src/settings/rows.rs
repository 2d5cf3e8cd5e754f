//! The table of settings, and the parsers of their values.

use std::{num::NonZeroUsize, path::PathBuf};

use weft_artifact::{Factors, Tools};

use super::{CoarsenChoice, CpuStrategy, DebugIndex, DeviceChoice, FileChoice, ProfileChoice, ProgressChoice, Setting};

/// Every setting.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "WEFT_DEVICE",
        default: "auto",
        allowed: "auto, cuda, cpu, python, ptx or none",
        doc: "Where kernels run. `auto`: on the GPU if there is one, else on the CPU. `cuda`: on the GPU; a missing GPU is an error. `cpu`: on the CPU. `python`: in Python's interpreter, one thread after the other and very slowly, so that `breakpoint()`, pdb and editors' debuggers stop in a kernel. `ptx`: the code for GPUs runs in weft's simulator of PTX, slowly, for tests of that code without a GPU; recorded and prepared launches run on the CPU. `none`: nowhere; `cuda.is_available()` is False, as on a machine without CUDA.",
        parse: |settings, value| {
            settings.device = match value {
                "auto" => DeviceChoice::Auto,
                "cuda" => DeviceChoice::Cuda,
                "cpu" => DeviceChoice::Cpu,
                "python" => DeviceChoice::Python,
                "ptx" => DeviceChoice::Ptx,
                "none" => DeviceChoice::None,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_CPU_COMPUTE_CAPABILITY",
        default: "9.0",
        allowed: "major.minor such as 9.0, from 5.0 to 12.9",
        doc: "The compute capability that the CPU executor reports. Limits such as shared memory per block follow it, and the bits of products of `cuda.mma`.",
        parse: |settings, value| {
            settings.cpu_compute_capability = compute_capability(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_DEFAULT_PTX_CC",
        default: "7.5",
        allowed: "major.minor such as 9.0, from 5.0 to 12.9",
        doc: "The compute capability for which `cuda.compile`, `compile_ptx` and `compile_all` compile without `cc=`. Older ones than 7.5 become 7.5, the oldest that weft supports.",
        parse: |settings, value| {
            settings.default_ptx_cc = compute_capability(value)?.max((7, 5));
            Some(())
        },
    },
    Setting {
        name: "WEFT_CPU_THREADS",
        default: "auto",
        allowed: "auto or a number from 1 to 4096",
        doc: "The number of operating system threads that run the blocks of a launch on the CPU. `auto`: one for each core that the process may use.",
        parse: |settings, value| threads(&mut settings.cpu_threads, value),
    },
    Setting {
        name: "WEFT_CPU_STRATEGY",
        default: "auto",
        allowed: "auto, loops or fibers",
        doc: "How the threads of a block run on the CPU. `loops`: as loops between barriers, which vectorize. `fibers`: each thread with a stack of its own, so that threads may wait for each other. `auto`: fibers for kernels in which a loop waits for memory, else loops.",
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
        name: "WEFT_COARSEN",
        default: "auto",
        allowed: "auto, kernel, off, 1, 2, 4, or these for x, y and z with commas between, such as 1,2",
        doc: "The number of adjacent threads of a block whose work one thread does, in all kernels whose results cannot change and all launches whose block the factors divide. `auto`: what `cuda.jit(coarsen=..., coarsen_blocks=...)` sets, else what launches measure, on GPUs. `kernel`: what they set, else `off`.",
        parse: |settings, value| {
            settings.coarsen = match value {
                "kernel" => CoarsenChoice::Kernel,
                "auto" => CoarsenChoice::Auto,
                "off" => CoarsenChoice::Factors(Factors::NONE),
                _ => CoarsenChoice::Factors(Factors::of_threads(Factors::axes(value)?)),
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_COARSEN_BLOCKS",
        default: "1",
        allowed: "1, 2, 4, or these for x, y and z with commas between, such as 2,2, along axes that WEFT_COARSEN leaves at 1",
        doc: "The number of adjacent blocks of the grid whose work one block does, in all kernels without shared memory whose results cannot change and all launches whose grid the factors divide. `1`: what `WEFT_COARSEN` sets.",
        parse: |settings, value| {
            let blocks = Factors::axes(value)?;
            if blocks != [1; 3] {
                let threads = match settings.coarsen {
                    CoarsenChoice::Factors(factors) => factors.threads,
                    CoarsenChoice::Kernel | CoarsenChoice::Auto => [1; 3],
                };
                let factors = Factors { threads, blocks };
                settings.coarsen = (!factors.meet()).then_some(CoarsenChoice::Factors(factors))?;
            }
            Some(())
        },
    },
    Setting {
        name: "WEFT_TUNE",
        default: "0",
        allowed: SWITCH,
        doc: "`1`: measure the best coarsening factors on the launches of every kernel that does not set them, as `cuda.jit(tune=True)` does for one.",
        parse: |settings, value| switch(&mut settings.tune, value),
    },
    Setting {
        name: "WEFT_HOST_CPU",
        default: "auto",
        allowed: "auto or an LLVM CPU name such as x86-64-v3",
        doc: "Target CPU for host code, by LLVM's name (default: this machine). For example `x86-64-v3`: AVX2 without AVX-512. A CPU with features that this machine lacks is an error.",
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
        name: "WEFT_HOST_PLAN",
        default: "auto",
        allowed: "auto or an LLVM CPU name such as x86-64-v4",
        doc: "The CPU for which the compiler plans host kernels: vector width and masking (default: the target CPU). \
            The machine need not have its features: the code is still for `WEFT_HOST_CPU`. It is for tests of the \
            compiler, and makes no kernel faster.",
        parse: |settings, value| {
            let is_name = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
            settings.host_plan = match value {
                "auto" => None,
                _ => Some(is_name.then(|| value.to_owned())?),
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_HOST_OPT_LEVEL",
        default: "3",
        allowed: "0, 1, 2 or 3",
        doc: "LLVM's optimization level for host code. A lower level compiles faster, and the kernel runs slower: `0` suits test suites whose kernels run once on small arrays. GPU code is not affected.",
        parse: |settings, value| {
            settings.host_opt_level = match value {
                "0" => 0,
                "1" => 1,
                "2" => 2,
                "3" => 3,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_SKIP_PASSES",
        default: "none",
        allowed: "none or names of passes with commas between, such as guards,unroll",
        doc: "Passes of the CPU planner that do not run, to find the pass that causes a fault. Only optional passes can be skipped; the error for another name lists them. Kernels for the CPU become slower, and their results remain the same.",
        parse: |settings, value| names(&mut settings.skip_passes, value),
    },
    Setting {
        name: "WEFT_PRINT_AFTER",
        default: "none",
        allowed: "none or names of passes with commas between, such as form,strip_mine, or all",
        doc: "Passes of the CPU planner after which the plan of each kernel is printed to the standard error, when the kernel is compiled and not loaded from a cache. `all`: every pass. A plan that has not changed is not printed again.",
        parse: |settings, value| names(&mut settings.print_after, value),
    },
    Setting {
        name: "WEFT_IR_DIGESTS",
        default: "none",
        allowed: "none or the path of a file",
        doc: "A file to which weft appends digests of each kernel's LLVM IR for several CPUs and GPUs, before LLVM's passes. It is for tests of the compiler: two builds that make the same code append the same lines. Compilation takes several times as long.",
        parse: |settings, value| {
            settings.ir_digests = (value != "none").then(|| PathBuf::from(value));
            Some(())
        },
    },
    Setting {
        name: "WEFT_LIBDEVICE",
        default: "auto",
        allowed: "auto, none or the path of a libdevice.10.bc",
        doc: "NVIDIA's math library for GPU code, which is faster than the built-in one. `auto`: use it if it is found. `none`: never use it.",
        parse: |settings, value| {
            settings.libdevice = file(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVRTC",
        default: "auto",
        allowed: "auto, none or the path of a libnvrtc.so",
        doc: "NVIDIA's CUDA C++ compiler, for sources that kernels are linked with. `auto`: search CUDA toolkits and Python packages.",
        parse: |settings, value| {
            settings.nvrtc = file(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVJITLINK",
        default: "auto",
        allowed: "auto, none or the path of a libnvJitLink.so",
        doc: "NVIDIA's linker, for kernels that are linked with LTO-IR or with `lto=True`. `auto`: search CUDA toolkits and Python packages.",
        parse: |settings, value| {
            settings.nvjitlink = file(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_LIBNVVM",
        default: "auto",
        allowed: "auto, none or the path of a libnvvm.so",
        doc: "NVIDIA's compiler of NVVM IR, for `cuda.compile(output=\"ltoir\")`. `auto`: search CUDA toolkits and Python packages.",
        parse: |settings, value| {
            settings.libnvvm = file(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVRTC_EXTRA_SEARCH_PATHS",
        default: "",
        allowed: "folders separated by colons",
        doc: "More folders with headers for linked CUDA C++. A program may set `weft.config.CUDA_NVRTC_EXTRA_SEARCH_PATHS`.",
        parse: |settings, value| {
            value.clone_into(&mut settings.nvrtc_extra_search_paths);
            Some(())
        },
    },
    Setting {
        name: "WEFT_WARN_ON_IMPLICIT_COPY",
        default: "1",
        allowed: SWITCH,
        doc: "`1`: warn if a launch on a GPU copies host arrays. A program may set `weft.config.CUDA_WARN_ON_IMPLICIT_COPY`.",
        parse: |settings, value| switch(&mut settings.warn_on_implicit_copy, value),
    },
    Setting {
        name: "WEFT_LOW_OCCUPANCY_WARNINGS",
        default: "1",
        allowed: SWITCH,
        doc: "`1`: warn if a grid has too few blocks to fill the GPU. A program may set `weft.config.CUDA_LOW_OCCUPANCY_WARNINGS`.",
        parse: |settings, value| switch(&mut settings.low_occupancy_warnings, value),
    },
    Setting {
        name: "WEFT_CUDA_ARRAY_INTERFACE_SYNC",
        default: "1",
        allowed: SWITCH,
        doc: "`1`: wait for the stream that an object's `__cuda_array_interface__` names. A program may set `weft.config.CUDA_ARRAY_INTERFACE_SYNC`.",
        parse: |settings, value| switch(&mut settings.array_interface_sync, value),
    },
    Setting {
        name: "WEFT_USE_PRODUCER_STREAM",
        default: "1",
        allowed: SWITCH,
        doc: "`1`: if all arrays of a launch belong to other libraries that work in one stream, and the launch names no stream, launch in that stream. `0`: launch in the default stream, after waiting for the other one.",
        parse: |settings, value| switch(&mut settings.use_producer_stream, value),
    },
    Setting {
        name: "WEFT_MEMORY_POOL",
        default: "1",
        allowed: SWITCH,
        doc: "`1`: allocate GPU memory from the driver's stream-ordered pool. `0`: allocate with `cuMemAlloc`, so that other processes can open arrays (`get_ipc_handle`); freeing more than 64 MiB then waits for the device.",
        parse: |settings, value| switch(&mut settings.memory_pool, value),
    },
    Setting {
        name: "WEFT_MEMORY_CACHE",
        default: "auto",
        allowed: "auto or a number of MiB",
        doc: "How much freed GPU memory is cached for the next allocation in the same stream, in MiB. `auto`: 256 MiB, or a sixteenth of the device's memory if that is less. `0`: none, so that tools such as compute-sanitizer see every allocation.",
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
        doc: "The allocator of device arrays: a Python module whose `_numba_memory_manager` is a class as \
            `cuda.set_memory_manager` takes it. `default`: weft. If it is not set, `NUMBA_CUDA_MEMORY_MANAGER` is \
            used.",
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
        doc: "How many threads share a large copy between a GPU and pageable host memory, each with 4 MiB of page-locked memory. `auto`: one for each core that the process may use, at most 8. `1`: the driver copies.",
        parse: |settings, value| threads(&mut settings.copy_threads, value),
    },
    Setting {
        name: "WEFT_DEBUG",
        default: "0",
        allowed: SWITCH,
        doc: "The default of `cuda.jit(debug=...)`.",
        parse: |settings, value| switch(&mut settings.debug, value),
    },
    Setting {
        name: "WEFT_DEBUG_THREAD",
        default: "0,0,0",
        allowed: PLACE,
        doc: "The thread of a block, by its `threadIdx`, in which `breakpoint()` and `pdb.set_trace()` stop with `WEFT_DEVICE=python`; `any` for all. They do nothing in other threads. A program may set `weft.config.DEBUG_THREAD` to a tuple of three, or to `None` for any.",
        parse: |settings, value| place(&mut settings.debug_thread, value),
    },
    Setting {
        name: "WEFT_DEBUG_BLOCK",
        default: "0,0,0",
        allowed: PLACE,
        doc: "The block, by its `blockIdx`, in which they stop. A program may set `weft.config.DEBUG_BLOCK`.",
        parse: |settings, value| place(&mut settings.debug_block, value),
    },
    Setting {
        name: "WEFT_BOUNDSCHECK",
        default: "0",
        allowed: SWITCH,
        doc: "The default of `cuda.jit(boundscheck=...)`. With `1`, an array index out of bounds raises an `IndexError` with its line. A program may set `weft.config.BOUNDSCHECK`.",
        parse: |settings, value| switch(&mut settings.boundscheck, value),
    },
    Setting {
        name: "WEFT_REPRODUCIBLE",
        default: "0",
        allowed: SWITCH,
        doc: "The default of `cuda.jit(reproducible=...)`. With `1`, kernels, `cuda.reduce`, ufuncs and device arrays give the same bits on every GPU and on the CPU. A program may set `weft.config.REPRODUCIBLE` for kernels that are defined later.",
        parse: |settings, value| switch(&mut settings.reproducible, value),
    },
    Setting {
        name: "WEFT_SANITIZE",
        default: "0",
        allowed: "0, all, or some of memcheck, racecheck, initcheck and synccheck, separated by commas",
        doc: "The default of `cuda.jit(sanitize=...)`: which checks the sanitizer makes. It runs kernels on the CPU, so `WEFT_DEVICE=auto` means the CPU. A launch with findings raises a `weft.errors.SanitizerError`.",
        parse: |settings, value| {
            settings.sanitize = Tools::parse(value)?;
            Some(())
        },
    },
    Setting {
        name: "WEFT_SANITIZE_ACTION",
        default: "raise",
        allowed: "raise or warn",
        doc: "The action if the sanitizer finds an error. `raise`: raise a `SanitizerError`. `warn`: emit a \
            `SanitizerWarning` and go on.",
        parse: |settings, value| {
            settings.sanitize_raises = match value {
                "raise" => true,
                "warn" => false,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_SANITIZE_REPORT",
        default: "none",
        allowed: "none or a folder",
        doc: "A folder to which each process writes the sanitizer's findings, as a file of JSON lines, instead of \
            `WEFT_SANITIZE_ACTION`. `weft sanitize` sets it for the processes that the program starts, and reports \
            their findings with those of the program.",
        parse: |settings, value| {
            settings.sanitize_report = (value != "none").then(|| PathBuf::from(value));
            Some(())
        },
    },
    Setting {
        name: "WEFT_SANITIZE_BENIGN_RACES",
        default: "report",
        allowed: "report or ignore",
        doc: "Whether the sanitizer reports benign races, in which the threads write the same value. They do no harm on today's GPUs.",
        parse: |settings, value| {
            settings.sanitize_benign_races = match value {
                "report" => true,
                "ignore" => false,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_PROFILE",
        default: "0",
        allowed: "0, 1, on, off, or a file that ends in .txt, .json or .html",
        doc: "`1`: profile the launches of the process, as `weft profile` does, and write the report to the standard error when the process ends. A file: write the report there, in the format of its name; `%p` in the name is the number of the process. Kernels run on the CPU, so `WEFT_DEVICE=auto` means the CPU.",
        parse: |settings, value| {
            settings.profile = match value {
                "0" | "off" => ProfileChoice::Off,
                "1" | "on" => ProfileChoice::Print,
                _ => {
                    let file = PathBuf::from(value);
                    let format = file.extension()?.to_str()?;
                    if !matches!(format, "txt" | "json" | "html") {
                        return None;
                    }
                    ProfileChoice::File(file)
                }
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_PROFILE_GPU",
        default: "h100",
        allowed: "the name of a GPU, such as a100 or rtx4090",
        doc: "The GPU for which `WEFT_PROFILE` profiles.",
        parse: |settings, value| {
            value.clone_into(&mut settings.profile_gpu);
            Some(())
        },
    },
    Setting {
        name: "WEFT_TIMING",
        default: "0",
        allowed: SWITCH,
        doc: "`1`: print to the standard error how long each phase of compiling and loading a kernel takes, and the size of LLVM's module before and after its passes.",
        parse: |settings, value| switch(&mut settings.timing, value),
    },
    Setting {
        name: "WEFT_WARN_WIDENING",
        default: "0",
        allowed: SWITCH,
        doc: "`1`: emit a `CompileWarning` for each line of a kernel where Numba's typing computes with more bits than the operands have, with what NumPy's typing would use. `weft check --notes` lists the same.",
        parse: |settings, value| switch(&mut settings.warn_widening, value),
    },
    Setting {
        name: "WEFT_PROGRESS",
        default: "auto",
        allowed: "auto, 0, 1, on or off",
        doc: "Whether long work shows its progress in a line on the standard error, which disappears at the end. `auto`: compilations, sanitized launches and profiles that take more than 2 seconds, if Python's `sys.stderr` is the terminal. `1`: also copies of 1 GiB and more; without a terminal, a line at the beginning and one at the end. `0`: never.",
        parse: |settings, value| {
            settings.progress = match value {
                "auto" => ProgressChoice::Auto,
                "0" | "off" => ProgressChoice::Never,
                "1" | "on" => ProgressChoice::Always,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "WEFT_NVTX",
        default: "1",
        allowed: SWITCH,
        doc: "`1`: report compilations, copies and launches to a profiler that watches the process (Nsight Systems), as NVTX ranges of the domain `weft`.",
        parse: |settings, value| switch(&mut settings.nvtx, value),
    },
    Setting {
        name: "WEFT_CACHE",
        default: "1",
        allowed: SWITCH,
        doc: "Whether compiled kernels are cached on the disk for later processes.",
        parse: |settings, value| switch(&mut settings.cache, value),
    },
    Setting {
        name: "WEFT_SPECIALIZE",
        default: "1",
        allowed: SWITCH,
        doc: "`1`: compile kernels for common launches: extents, strides, integers and numbers of threads that fit 32 bits; read-only arrays that share no memory with written ones; arrays aligned to 16 bytes. Other launches compile another variant. `0`: compile one variant for all launches.",
        parse: |settings, value| switch(&mut settings.specialize, value),
    },
    Setting {
        name: "WEFT_CACHE_MACHINE_CODE",
        default: "0",
        allowed: SWITCH,
        doc: "`1`: also cache the machine code that a GPU's driver makes of PTX, so that first launches of known kernels need no compiler of the driver. The code comes from the driver's linker, which for some kernels uses more registers than its compiler does.",
        parse: |settings, value| switch(&mut settings.cache_machine_code, value),
    },
    Setting {
        name: "WEFT_CACHE_DIR",
        default: "auto",
        allowed: "auto or a folder",
        doc: "The folder of the cache. `auto`: `weft` in `$XDG_CACHE_HOME` or in `~/.cache`. Several processes and \
            machines may share a folder. Anybody with write access can make your programs run other code.",
        parse: |settings, value| {
            settings.cache_dir = (value != "auto").then(|| PathBuf::from(value));
            Some(())
        },
    },
    Setting {
        name: "WEFT_CACHE_SIZE",
        default: "1G",
        allowed: "bytes such as 500M or 2G, from 1M",
        doc: "About the largest size of the cache, in bytes. Entries that were not used for the longest time are removed first.",
        parse: |settings, value| {
            settings.cache_bytes = bytes(value).filter(|bytes| *bytes >= 1 << 20)?;
            Some(())
        },
    },
];

/// A choice of a file.
fn file(value: &str) -> Option<FileChoice> {
    match value {
        "auto" => Some(FileChoice::Auto),
        "none" => Some(FileChoice::None),
        // A word without a slash is a misspelled choice, not a file.
        path => path.contains('/').then(|| FileChoice::Path(PathBuf::from(path))),
    }
}

/// The values of a switch.
const SWITCH: &str = "0, 1, on or off";

fn switch(setting: &mut bool, value: &str) -> Option<()> {
    *setting = match value {
        "0" | "off" => false,
        "1" | "on" => true,
        _ => return None,
    };
    Some(())
}

/// The valid indices of a thread or of a block.
const PLACE: &str = "any, or x, y and z separated by commas, such as 3,0,0 or 3";

fn place(setting: &mut DebugIndex, text: &str) -> Option<()> {
    *setting = match text {
        "any" => None,
        _ => {
            let mut parts = text.split(',').map(|part| small_number(part.trim()));
            let mut next = || parts.next().unwrap_or(Some(0));
            let index = (next()?, next()?, next()?);
            Some(parts.next().is_none().then_some(index)?)
        }
    };
    Some(())
}

/// Names with commas between.
fn names(setting: &mut Vec<String>, value: &str) -> Option<()> {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    *setting = match value {
        "none" => Vec::new(),
        _ => value.split(',').map(|name| is_name(name).then(|| name.to_owned())).collect::<Option<_>>()?,
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

/// A compute capability such as `9.0`, of any existing GPU.
fn compute_capability(value: &str) -> Option<(u32, u32)> {
    let (major, minor) = value.split_once('.')?;
    let pair = (small_number(major)?, small_number(minor)?);
    ((5, 0)..=(12, 9)).contains(&pair).then_some(pair)
}

/// A decimal number without sign or whitespace.
fn small_number(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// A number of bytes, with an optional suffix for powers of 1024.
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
