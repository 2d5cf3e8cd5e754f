//! Options that change code.

use std::sync::Arc;

use weft_artifact::{Assumptions, Factors, Tools};

/// Options that change code.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Options {
    /// Relaxed floating point: flush denormals, approximate division and functions, reassociation.
    pub fastmath: bool,
    /// The same bits on every target: products and sums are fused where the IR says so, math is libclc's, and a NaN that was
    /// computed has one form. Not together with `fastmath`.
    pub reproducible: bool,
    /// Line tables for profilers.
    pub lineinfo: bool,
    /// `raise` and `assert` are reported; else they end their thread.
    pub exceptions: bool,
    /// The same at the launch, and Python's rules: divisions by zero and bad indices of tuples raise exceptions.
    pub debug: bool,
    /// Indices of arrays that are out of bounds are reported.
    pub boundscheck: bool,
    /// An index of an array that is negative counts from its end; else no index is negative.
    pub wraparound: bool,
    /// The code tells of its accesses, for these checks; the host only.
    pub sanitize: Tools,
    /// Run the optimiser; off is for looking at unoptimised code.
    pub opt: bool,
    /// What the code is bound to be launched with.
    pub launch_bounds: Option<LaunchBounds>,
    /// At most this many registers a thread (`.maxnreg`); NVPTX only.
    pub max_registers: Option<u32>,
    /// How the threads of a block run; the host only.
    pub cpu_threads: CpuThreads,
    /// libdevice's bitcode (NVPTX only): used for math where given, else the embedded libclc.
    pub libdevice: Option<Arc<Vec<u8>>>,
    /// A write beside the array that it goes to does nothing; the host only, and only where that is possible
    /// ([`weft_artifact::Kernel::can_bound_stores`]).
    pub bounded_stores: bool,
    /// What holds of every launch of the code. Of arrays whose number is not known, such as addresses, nothing is
    /// taken for granted.
    pub assumptions: Assumptions,
    /// By argument: the last extent of an array, where it is [short](Self::SHORT) in the launch that the code is compiled for:
    /// it has a copy for launches like that. The host only; the code is right for all launches.
    pub short_extents: Vec<(u32, u8)>,
    /// Say where Numba's typing makes numbers wider, among the warnings.
    pub notes: bool,
    /// Python's interpreter runs the launches, and debuggers stop there: a breakpoint does nothing in code for the host, and no
    /// error recommends the interpreter.
    pub interpreted: bool,
    /// So many threads are one of a launch, if that is possible ([`weft_artifact::Kernel::coarsening`]).
    pub coarsen: Factors,
    /// Where that is its own alone: estimate which are worth it ([`weft_artifact::Coarsening::candidates`]). If some are, on GPUs,
    /// no code is made: a launch needs that of one variant, and the estimate says which. Else it changes nothing.
    pub choose: bool,
    /// The highest PTX ISA that the driver takes, if the code is for this machine's device alone; NVPTX only.
    pub driver_isa: Option<(u32, u32)>,
    /// Who calls the code.
    pub entry: Entry,
}

impl Options {
    /// The extents that are worth a copy of the code.
    pub const SHORT: std::ops::RangeInclusive<u64> = 2..=4;
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
            notes: false,
            interpreted: false,
            coarsen: Factors::NONE,
            choose: false,
            driver_isa: None,
            entry: Entry::Launch,
        }
    }
}

/// How a CPU runs the threads of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuThreads {
    /// As loops, or, where a thread may wait for what another one writes, on stacks.
    #[default]
    Auto,
    /// As loops that end at barriers.
    Loops,
    /// Each on a stack of its own.
    Fibers,
}

/// Bounds of launches; the code is wrong for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchBounds {
    /// At most this many threads a block (`.maxntid`).
    pub threads: u32,
    /// At least this many blocks an SM (`.minnctapersm`).
    pub blocks: Option<u32>,
    /// At most this many blocks a cluster (`.maxclusterrank`); NVPTX only.
    pub cluster: Option<u32>,
}

/// Who calls the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Entry {
    /// weft's executors launch the kernel: they pass what it reads and nothing else.
    #[default]
    Launch,
    /// Other code calls the function, or launches it as a kernel: it gets all that an ABI says. PTX only.
    Foreign(Foreign),
}

/// A function as other code sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Foreign {
    /// What it is.
    pub role: Role,
    /// Its symbol; the function's own name where there is none.
    pub symbol: Option<String>,
}

/// What a function is to other code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A kernel, with the arguments of numba-cuda's kernels.
    Kernel,
    /// A device function.
    Function(Abi),
}

/// How a device function takes its arguments and gives its result. `docs/design/exported-functions.md` has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Abi {
    /// That of a CUDA C++ function with C linkage.
    C,
    /// That of numba-cuda's device functions: a status is returned, the result written where the first argument points.
    Numba,
}
