//! Options that change code.

use std::sync::Arc;

use weft_artifact::{Assumptions, Factors, Tools};

use super::{Derivative, Scratch};

/// Options that change code.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Options {
    /// Relaxed floating point: flush denormals, approximate division and functions, reassociation.
    pub fastmath: bool,
    /// Produce the same bits on every target: products and sums are fused only where the IR says so, math functions are
    /// libclc's, and a computed NaN has one bit pattern. Excludes `fastmath`.
    pub reproducible: bool,
    /// Line tables for profilers.
    pub lineinfo: bool,
    /// `raise` and `assert` are reported to the host; otherwise they only end their thread.
    pub exceptions: bool,
    /// The same, and Python's rules: divisions by zero and out-of-range indices of tuples raise exceptions.
    pub debug: bool,
    /// Out-of-bounds indices of arrays are reported to the host.
    pub boundscheck: bool,
    /// A negative index of an array counts from the end. Otherwise the program promises that no index is negative.
    pub wraparound: bool,
    /// Instrument accesses for these checks of the sanitizer; host only.
    pub sanitize: Tools,
    /// Run the optimizer; false is for inspecting unoptimized code.
    pub opt: bool,
    /// The promised bounds of launches.
    pub launch_bounds: Option<LaunchBounds>,
    /// The maximum number of registers per thread (`.maxnreg`); NVPTX only.
    pub max_registers: Option<u32>,
    /// How the threads of a block are executed; host only.
    pub cpu_threads: CpuThreads,
    /// The bitcode of libdevice, used for math functions if given; otherwise the embedded libclc is used. NVPTX only.
    pub libdevice: Option<Arc<Vec<u8>>>,
    /// A store outside of its array is skipped; host only, and only if the kernel supports it
    /// ([`weft_artifact::Kernel::can_bound_stores`]).
    pub bounded_stores: bool,
    /// The guarantees of every launch of the code. Nothing is assumed about arrays whose number is unknown, such as
    /// addresses of arrays in memory.
    pub assumptions: Assumptions,
    /// By argument: the last extent of an array, if it is [short](Self::SHORT) in the launch that triggers the
    /// compilation. The code then has a version specialized for this extent. Host only; the code is correct for all
    /// launches.
    pub short_extents: Vec<(u32, u8)>,
    /// The threads of a block in `x`, `y` and `z`, in the launch that triggers the compilation. The code is expected to
    /// be launched with such blocks, and is correct for all launches. Host only.
    pub likely_block: Option<[u32; 3]>,
    /// Warn where Numba's typing rules widen numbers.
    pub notes: bool,
    /// Launches run in the interpreter, where debuggers can stop. A breakpoint then has no effect in host code, and
    /// errors do not recommend the interpreter.
    pub interpreted: bool,
    /// The coarsening factors, applied if the kernel supports them ([`weft_artifact::Kernel::coarsening`]).
    pub coarsen: Factors,
    /// If `coarsen` sets no factors: estimate which are profitable ([`weft_artifact::Coarsening::candidates`]). A
    /// compilation for a GPU then makes no code: launches request that of the kernel and of the candidates.
    pub choose: bool,
    /// The highest PTX ISA that the driver accepts, if the code is only for this machine's device; NVPTX only.
    pub driver_isa: Option<(u32, u32)>,
    /// The caller of the code.
    pub entry: Entry,
    /// The form of code for a GPU.
    pub gpu_code: GpuCode,
    /// Compile the adjoint kernel in place of the kernel.
    pub derivative: Option<Derivative>,
}

impl Options {
    /// The extents for which a specialized version of the code is profitable.
    pub const SHORT: std::ops::RangeInclusive<u64> = 2..=4;

    /// The registers of a thread at the launch of a kernel that changes their number later (`ptxas` then takes the most that
    /// the launch bounds allow); `None` without launch bounds.
    pub fn registers_at_launch(&self) -> Option<u32> {
        const REGISTERS: u32 = 64 * 1024;
        const MOST: u32 = 255;
        let LaunchBounds { threads, blocks, .. } = self.launch_bounds?;
        let threads = threads.max(1).next_multiple_of(32).saturating_mul(blocks.unwrap_or(1).max(1));
        Some((REGISTERS / threads / 8 * 8).min(self.max_registers.unwrap_or(MOST)).min(MOST))
    }
}

impl Options {
    /// Whether the code is for an adjoint kernel with scratch memory, or for the kernel that counts its bytes. Both compute
    /// the same trip counts, so their options include `reproducible`.
    pub fn has_scratch(&self) -> bool {
        self.derivative.as_ref().is_some_and(|derivative| derivative.scratch != Scratch::None)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fastmath: false,
            reproducible: false,
            lineinfo: false,
            exceptions: false,
            debug: false,
            boundscheck: false,
            wraparound: true,
            sanitize: Tools::NONE,
            opt: true,
            launch_bounds: None,
            max_registers: None,
            cpu_threads: CpuThreads::Auto,
            libdevice: None,
            bounded_stores: false,
            assumptions: Assumptions::NONE,
            short_extents: Vec::new(),
            likely_block: None,
            notes: false,
            interpreted: false,
            coarsen: Factors::NONE,
            choose: false,
            driver_isa: None,
            entry: Entry::Launch,
            gpu_code: GpuCode::Ptx,
            derivative: None,
        }
    }
}

/// How a CPU executes the threads of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuThreads {
    /// As work-item loops; on stacks if a thread may wait for a store of another thread.
    #[default]
    Auto,
    /// As work-item loops, one per barrier region.
    Loops,
    /// On stacks: each thread is a fiber.
    Fibers,
}

/// Bounds of launches; the code is incorrect for launches outside of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchBounds {
    /// The maximum number of threads per block (`.maxntid`).
    pub threads: u32,
    /// The minimum number of blocks per SM (`.minnctapersm`).
    pub blocks: Option<u32>,
    /// The maximum number of blocks per cluster (`.maxclusterrank`); NVPTX only.
    pub cluster: Option<u32>,
}

/// The caller of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Entry {
    /// weft's executors launch the kernel. They pass only the values that it reads.
    #[default]
    Launch,
    /// Other code calls the function or launches it as a kernel, with the full argument list of an ABI. PTX only.
    Foreign(Foreign),
}

/// The form of code for a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GpuCode {
    /// PTX.
    #[default]
    Ptx,
    /// NVVM IR, from which NVIDIA's libNVVM makes LTO-IR.
    NvvmIr {
        /// Always inline the function into its callers.
        forceinline: bool,
    },
}

/// A function that other code calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Foreign {
    /// Whether it is a kernel or a device function.
    pub role: Role,
    /// Its symbol; by default the function's own name.
    pub symbol: Option<String>,
}

/// Whether the exported function is a kernel or a device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A kernel, with the argument list of numba-cuda's kernels.
    Kernel,
    /// A device function.
    Function(Abi),
}

/// The calling convention of a device function; see `docs/design/exported-functions.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Abi {
    /// A CUDA C++ function with C linkage.
    C,
    /// A device function of numba-cuda: it returns a status, and stores the result through its first argument.
    Numba,
}
