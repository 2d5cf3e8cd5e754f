//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use weft_artifact::Assumptions;

use crate::options::OptionFlags;

/// GPU kernels in Python: from .py files to PTX and to native code, with no Python, no GPU and no CUDA toolkit.
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
    /// Report what is wrong with the kernels of files, and write nothing.
    Check(CheckArgs),
    /// Explain a diagnostic code such as E0203, or a name in kernels; without a code, list them.
    Explain(ExplainArgs),
    /// Run a Python program with its kernels on the CPU, and say what is wrong with their accesses, races, uninitialized memory
    /// and barriers. It is a part of the Python package.
    Sanitize(SanitizeArgs),
    /// List the CUDA devices and the CPU.
    Devices,
    /// Look whether weft works on this machine: driver, devices, tools, cache and settings; say what is wrong, and how to mend
    /// it.
    Doctor(DoctorArgs),
    /// List the settings: what each is in this environment, where that is from, and what it does.
    Settings(SettingsArgs),
    /// Serve an editor that speaks the language server protocol, over the standard input and output: diagnostics, and the types
    /// of variables.
    Lsp,
    /// Write a script by which a shell completes this command's words.
    Completions(CompletionsArgs),
    /// Show or clear what Python programs have compiled and keep on the disk (the settings `WEFT_CACHE`,
    /// `WEFT_CACHE_DIR` and `WEFT_CACHE_SIZE`).
    Cache {
        #[command(subcommand)]
        command: CacheCommand,
    },
}

/// `weft sanitize`, which `weft/_sanitizer.py` reads once more.
#[derive(Debug, Args)]
pub(crate) struct SanitizeArgs {
    /// What to look for: memcheck, racecheck, initcheck, synccheck, several with commas between, or all.
    #[arg(long, value_name = "TOOLS", default_value = "all")]
    tool: String,
    /// The findings as JSON, on the standard output.
    #[arg(long)]
    json: bool,
    /// The program is a module's name, as of `python -m`.
    #[arg(short = 'm')]
    module: bool,
    /// The program.
    program: PathBuf,
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
    /// List what is kept, what was used last first: size, last use, target, kernel, and the build of weft that it is for.
    Ls,
    /// Remove all of it. Programs that run go on.
    Clear,
    /// Show the folder.
    Path,
}

/// `weft emit`.
#[derive(Debug, Args)]
pub(crate) struct EmitArgs {
    /// The Python file.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) kernels: KernelArgs,
    /// This device function, as code for other programs. May be given several times. Kernels are then compiled only
    /// with `--kernel`.
    #[arg(long, value_name = "NAME")]
    pub(crate) function: Vec<String>,
    /// How other programs pass arguments: to device functions `c` [default], as to functions of CUDA C++ with C linkage, or
    /// `numba`, as to numba-cuda's; to kernels `numba`, or as weft's own launches do [default].
    #[arg(long, value_enum, value_name = "ABI")]
    pub(crate) abi: Option<AbiArg>,
    /// What to compile for: `sm_75` to `sm_121` (with `a` or `f` where there is one), or `host`. May be given several
    /// times. PTX for `sm_75` runs on every GPU that weft supports.
    #[arg(long, value_name = "TARGET", default_value = "sm_75", value_delimiter = ',')]
    pub(crate) target: Vec<String>,
    /// What to write [default: ptx for a GPU, asm for the host]. May be given several times.
    #[arg(long, value_enum, value_name = "FORM", value_delimiter = ',')]
    pub(crate) emit: Vec<Form>,
    /// Where to write: a file for one output, a folder for several. Without it everything goes to the standard output,
    /// with a line of comment above each of several outputs; several PTX modules are for reading there, since no
    /// assembler takes them as one file.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: OptionFlags,
    /// Specialize for launches that keep these promises. The compiler does not check them: whoever launches the code must.
    #[arg(long, value_enum, value_name = "ASSUMPTION", value_delimiter = ',')]
    assume: Vec<Assumption>,
    /// Write remarks of the optimizer to the standard error: how `--coarsen` was done, or why not.
    #[arg(long)]
    pub(crate) remarks: bool,
    /// Write the registers, shared memory, spills and occupancy of each kernel to the standard error, for GPUs. Needs
    /// `ptxas`; the occupancy is for blocks of the threads that `launch_bounds` sets, else of 256.
    #[arg(long)]
    pub(crate) resource_usage: bool,
    /// Use NVIDIA's math library at this path of a libdevice.10.bc, `auto` to look for one, or `none` for weft's own
    /// math functions [default: `WEFT_LIBDEVICE`, else auto].
    #[arg(long, value_name = "PATH")]
    pub(crate) libdevice: Option<String>,
    /// Diagnostics as JSON, on the standard error.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A property of launches that the compiler may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Assumption {
    /// Extents, strides, integers and numbers of threads fit 32 bits
    Small,
    /// No integer among the arguments is negative
    Nonneg,
    /// No array that the kernel only reads shares memory with one that it writes
    Disjoint,
    /// All arrays begin at multiples of 16 bytes
    Aligned,
    /// `blockDim.x` is a multiple of 32
    Warps,
}

impl EmitArgs {
    /// What `--assume` lists.
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

/// `weft check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Python files, notebooks, and folders: all files in them that are not hidden or ignored by git.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) kernels: KernelArgs,
    /// Say where Numba's typing makes numbers wider than those of the arrays, and what to write instead.
    #[arg(long)]
    pub(crate) notes: bool,
    /// Look again whenever one of the files has changed.
    #[arg(long)]
    pub(crate) watch: bool,
    /// How to say it [default: text]. All but text goes to the standard output.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<CheckFormat>,
    /// Diagnostics as JSON, on the standard error.
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
    /// GitHub's workflow commands, which become annotations of a change.
    Github,
}

/// Which kernels, for which types.
#[derive(Debug, Args)]
pub(crate) struct KernelArgs {
    /// Only this kernel. May be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Vec<String>,
    /// The signature to compile for, such as "void(float32[:], int32)", in place of those in the file. May be given
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
    /// How to say it.
    #[arg(long, value_enum, default_value_t = DataFormat::Text, value_name = "FORMAT")]
    pub(crate) format: DataFormat,
}

/// `weft settings`.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// Only these, such as `WEFT_DEVICE` or `device`.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Only those that are not as by default.
    #[arg(long)]
    pub(crate) changed: bool,
    /// How to say it.
    #[arg(long, value_enum, default_value_t = DataFormat::Text, value_name = "FORMAT")]
    pub(crate) format: DataFormat,
}

/// `--format` of what is no diagnostic.
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
    /// That of functions of CUDA C++ with C linkage.
    C,
    /// That of numba-cuda's functions and kernels.
    Numba,
}

/// What `weft emit` writes.
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
}

/// `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// If the standard error is a terminal and `NO_COLOR` is not set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
