//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use weft_artifact::Assumptions;

use crate::options::OptionFlags;

/// GPU kernels in Python: compile .py files to PTX and to native code, without Python, a GPU or a CUDA toolkit.
#[derive(Debug, Parser)]
#[command(name = "weft", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Colors in diagnostics.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile the kernels of a file and write PTX, LLVM IR, weft's IR, assembly or a cubin.
    Emit(EmitArgs),
    /// Export the kernels of a file for programs without Python: code for GPUs and for the CPU, and C sources that
    /// launch it.
    Build(BuildArgs),
    /// Report errors in the kernels of files, without writing code.
    Check(CheckArgs),
    /// Explain a diagnostic code such as E0203, or a name in kernels; without a code, list them.
    Explain(ExplainArgs),
    /// Run a Python program with its kernels on the CPU, and report invalid accesses, races, uses of uninitialized
    /// memory and barrier errors. Part of the Python package.
    Sanitize(SanitizeArgs),
    /// Run a Python program with its kernels on the CPU, and count what they do on a GPU, by line of Python: sectors,
    /// bank conflicts, divergent lanes, operations, occupancy, and a ranked list of what costs time.
    Profile(ProfileArgs),
    /// List the CUDA devices and the CPU.
    Devices,
    /// Check the driver, devices, tools, cache and settings of this machine; report problems and how to fix
    /// them.
    Doctor(DoctorArgs),
    /// List the settings: their values in this environment, where the values come from, and their meaning.
    Settings(SettingsArgs),
    /// Run a language server for editors, over the standard input and output: diagnostics, and the types
    /// of variables.
    Lsp,
    /// Write a shell completion script for this command.
    Completions(CompletionsArgs),
    /// Show or clear the disk cache of the kernels that Python programs have compiled (the settings `WEFT_CACHE`,
    /// `WEFT_CACHE_DIR` and `WEFT_CACHE_SIZE`).
    Cache {
        #[command(subcommand)]
        command: CacheCommand,
    },
}

/// `weft sanitize`, which `weft/_sanitizer.py` reads once more.
#[derive(Debug, Args)]
pub(crate) struct SanitizeArgs {
    /// The checks: memcheck, racecheck, initcheck, synccheck, several separated by commas, or all.
    #[arg(long, value_name = "TOOLS", default_value = "all")]
    tool: String,
    /// Write the findings as JSON to the standard output.
    #[arg(long)]
    json: bool,
    /// Run a module, like `python -m`.
    #[arg(short = 'm')]
    module: bool,
    /// The program.
    program: PathBuf,
    /// Its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// `weft profile`, which `weft/_profile_program.py` reads once more.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// The GPU, such as a100 or rtx4090.
    #[arg(long, value_name = "NAME", default_value = "h100")]
    gpu: String,
    /// Profile only the kernel of this name.
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Profile only the N-th launch of a kernel, from 1.
    #[arg(long, value_name = "N")]
    launch: Option<u64>,
    /// The time for a launch; larger launches are sampled.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// The form of the report: text, json or html.
    #[arg(long, default_value = "text")]
    format: String,
    /// Write to a file, not to the standard output.
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Compare two JSON files, and run no program.
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"])]
    compare: Option<Vec<PathBuf>>,
    /// Run a module, like `python -m`.
    #[arg(short = 'm')]
    module: bool,
    /// The program.
    program: Option<PathBuf>,
    /// Its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// `weft completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: Shell,
}

/// A shell that `weft completions` writes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
    /// `PowerShell`.
    Powershell,
}

/// `weft cache`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List the entries, last used first: size, last use, target, kernel, and the build of weft that wrote it.
    Ls,
    /// Remove all entries. Running programs are not affected.
    Clear,
    /// Show the folder.
    Path,
}

/// `weft emit`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct EmitArgs {
    /// The Python file.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) kernels: KernelArgs,
    /// Compile this device function for other programs. May be given several times. Kernels are then only compiled
    /// with `--kernel`.
    #[arg(long, value_name = "NAME")]
    pub(crate) function: Vec<String>,
    /// The calling convention for other programs. For device functions `c` [default], like CUDA C++ functions with C
    /// linkage, or `numba`, like numba-cuda; for kernels `numba`, or that of weft's own launches [default].
    #[arg(long, value_enum, value_name = "ABI")]
    pub(crate) abi: Option<AbiArg>,
    /// The target: `sm_75` to `sm_121` (with the suffix `a` or `f` if there is such a variant), or `host`. May be given
    /// several times. PTX for `sm_75` runs on every GPU that weft supports.
    #[arg(long, value_name = "TARGET", default_value = "sm_75", value_delimiter = ',')]
    pub(crate) target: Vec<String>,
    /// The output format [default: ptx for a GPU, asm for the host]. May be given several times.
    #[arg(long, value_enum, value_name = "FORM", value_delimiter = ',')]
    pub(crate) emit: Vec<Form>,
    /// Show how the threads of a block become loops: the same as `--emit plan`.
    #[arg(long)]
    pub(crate) plan: bool,
    /// Write a page with the PTX of each line of Python beside it: the same as `--emit html`.
    #[arg(long)]
    pub(crate) html: bool,
    /// The file for one output, or the folder for several. Without it all output goes to the standard output,
    /// with a comment line above each of several outputs. Several PTX modules there are only for reading: no
    /// assembler accepts them as one file.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: OptionFlags,
    /// Specialize for launches with these properties. The compiler does not check them: the caller must guarantee them.
    #[arg(long, value_enum, value_name = "ASSUMPTION", value_delimiter = ',')]
    assume: Vec<Assumption>,
    /// Emit the adjoint kernel of a kernel, which computes gradients by these parameters. The signature has the types
    /// of their adjoints after those of the kernel's parameters.
    #[arg(long, value_name = "PARAM", value_delimiter = ',')]
    pub(crate) adjoint: Vec<String>,
    /// The threads of a block along x, y and z that launches are expected to have, for the host. The code is correct
    /// for other blocks, too, but may be slower.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = block)]
    pub(crate) block: Option<[u32; 3]>,
    /// Write optimization remarks to the standard error: how `--coarsen` was applied, or why not; for `host`, what the
    /// compiler did with each loop and access.
    #[arg(long)]
    pub(crate) remarks: bool,
    /// Write the registers, shared memory, spills and occupancy of each kernel to the standard error, for GPUs. Needs
    /// `ptxas`; the occupancy is for blocks of the threads that `launch_bounds` sets, else of 256.
    #[arg(long)]
    pub(crate) resource_usage: bool,
    /// The path of NVIDIA's math library, libdevice.10.bc, `auto` to search for it, or `none` for weft's own
    /// math functions [default: `WEFT_LIBDEVICE`, else auto].
    #[arg(long, value_name = "PATH")]
    pub(crate) libdevice: Option<String>,
    /// Write diagnostics as JSON to the standard error.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A property of launches that the compiler may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Assumption {
    /// Strides and integers are values of int32; dimensions and threads along an axis are at most 2^30 - 2^16, elements
    /// of an array 2^31 - 2^16, blocks along x 2^23 - 2^8
    Small,
    /// No integer among the arguments is negative
    Nonneg,
    /// No array that the kernel only reads shares memory with one that it writes
    Disjoint,
    /// All arrays are aligned to 16 bytes
    Aligned,
    /// `blockDim.x` is a multiple of 32
    Warps,
}

/// Parses the value of `--block`.
fn block(text: &str) -> Result<[u32; 3], String> {
    let mut block = [1; 3];
    let mut extents = text.split(',');
    for (extent, text) in block.iter_mut().zip(&mut extents) {
        *extent =
            text.trim().parse::<u32>().ok().filter(|&extent| extent > 0).ok_or("an extent is a positive integer")?;
    }
    if extents.next().is_none() { Ok(block) } else { Err("a block has at most three extents".to_owned()) }
}

impl EmitArgs {
    /// The assumptions of `--assume`.
    pub(crate) fn assumptions(&self) -> Assumptions {
        let has = |assumption| self.assume.contains(&assumption);
        Assumptions {
            small: has(Assumption::Small),
            nonneg: has(Assumption::Nonneg),
            disjoint: has(Assumption::Disjoint),
            aligned: has(Assumption::Aligned),
            warps: has(Assumption::Warps),
        }
    }
}

/// `weft build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// The Python file. Its decorators give the signatures, launch rules (`launch=`) and output rules (`out=`).
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) kernels: KernelArgs,
    /// The targets, separated by commas: GPUs such as `sm_90`, whose PTX newer GPUs run, too, and `host` for the CPU.
    #[arg(long, value_name = "TARGET", default_value = "sm_75,host", value_delimiter = ',')]
    pub(crate) target: Vec<String>,
    /// The CPU of the target `host`, by its LLVM name. The same on every machine that builds.
    #[arg(long, value_name = "NAME", default_value = "x86-64-v3")]
    pub(crate) host_cpu: String,
    /// Also include machine code for each GPU, made by `ptxas`, so that the driver does not compile PTX at the first
    /// launch.
    #[arg(long)]
    pub(crate) cubin: bool,
    /// The package's name, which begins the names of its files and functions [default: the file's].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The folder to write to.
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) options: OptionFlags,
    /// The path of NVIDIA's math library, libdevice.10.bc, `auto` to search for it, or `none` for weft's own math
    /// functions [default: none, so that the result does not depend on the machine].
    #[arg(long, value_name = "PATH")]
    pub(crate) libdevice: Option<String>,
    /// Write diagnostics as JSON to the standard error.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `weft check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Python files, notebooks, and folders, whose files are checked unless hidden or ignored by git.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) kernels: KernelArgs,
    /// Note where Numba's typing computes with wider numbers than the arrays have, and what to write instead.
    #[arg(long)]
    pub(crate) notes: bool,
    /// Check again whenever a file changes.
    #[arg(long)]
    pub(crate) watch: bool,
    /// The output format [default: text]. All formats but text go to the standard output.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<CheckFormat>,
    /// Write diagnostics as JSON to the standard error.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

impl CheckArgs {
    pub(crate) fn format(&self) -> CheckFormat {
        self.format.unwrap_or(CheckFormat::Text)
    }
}

/// `--format` of `weft check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// For reading, with the lines and carets.
    Text,
    /// A list of objects.
    Json,
    /// SARIF 2.1.0, for code scanning and editors.
    Sarif,
    /// GitHub's workflow commands, which become annotations of a pull request.
    Github,
}

/// Which kernels, for which types.
#[derive(Debug, Args)]
pub(crate) struct KernelArgs {
    /// Compile only this kernel. May be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Vec<String>,
    /// The signature to compile for, such as "void(float32[:], int32)", instead of those in the file. May be given
    /// several times.
    #[arg(long, value_name = "SIGNATURE")]
    pub(crate) sig: Vec<String>,
}

/// `weft explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A code such as E0203, or a name in kernels such as cuda.grid.
    #[arg(value_name = "CODE")]
    pub(crate) subject: Option<String>,
}

/// `weft doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The output format.
    #[arg(long, value_enum, default_value_t = DataFormat::Text, value_name = "FORMAT")]
    pub(crate) format: DataFormat,
}

/// `weft settings`.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// Only these settings, such as `WEFT_DEVICE` or `device`.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Only settings that differ from their defaults.
    #[arg(long)]
    pub(crate) changed: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t = DataFormat::Text, value_name = "FORMAT")]
    pub(crate) format: DataFormat,
}

/// `--format` of subcommands that report no diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataFormat {
    /// For reading.
    Text,
    /// For programs.
    Json,
}

/// `--abi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AbiArg {
    /// The convention of CUDA C++ functions with C linkage.
    C,
    /// The convention of numba-cuda's functions and kernels.
    Numba,
}

/// `--emit` of `weft emit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Form {
    /// PTX.
    Ptx,
    /// LLVM IR after LLVM's passes.
    Llvm,
    /// weft's IR after its passes.
    Ir,
    /// The target's assembly: PTX for a GPU.
    Asm,
    /// GPU machine code, made by `ptxas`.
    Cubin,
    /// NVVM IR, from which NVIDIA's libNVVM makes LTO-IR.
    Nvvm,
    /// How the threads of a block become loops, for the host.
    Plan,
    /// A page with the PTX of each line of Python beside it.
    Html,
}

/// `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// Colors if the standard error is a terminal and `NO_COLOR` is not set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
