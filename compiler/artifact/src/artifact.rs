//! A compiled module and the ABI of its kernels.
//!
//! A kernel takes a flat list of *slots*. A slot is one live field of one argument: a scalar's value, an array's data
//! pointer, one extent, one stride; or something that the runtime adds. Dead fields have no slot. A launch passes a
//! slot in *cells* of eight bytes: one, or as many as its size takes.
//!
//! On CUDA the slots are the `.param`s of the entry, in order. On the host the entry is `void entry(HostContext *)`: it
//! runs the blocks that the context names, or, if [`HostEntry::stack_bytes`] says so, one thread of one block.
//!
//! Long-running code reads a [`HostWatch`] to see whether its launch goes on.

use std::sync::Arc;

use crate::{
    assumptions::Assumptions,
    factors::Factors,
    fault::Faults,
    inline_checks::HostSeen,
    number::Scalar,
    sanitize::{HostChecks, Sites},
    types::ArgType,
};

/// The form of [`Artifact::code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeFormat {
    /// PTX text, no terminating NUL.
    Ptx,
    /// NVVM IR, text.
    NvvmIr,
    /// A relocatable ELF object for this machine's CPU.
    HostObject,
}

/// Compiled code with all that is needed to launch its kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The format of `code`.
    pub format: CodeFormat,
    /// The target it was compiled for: `sm_90`, or `host`.
    pub target: String,
    /// PTX text or an object. Empty if the kernel is estimated to be [worth coarsening](Coarsening::is_worth_it): the
    /// caller that requested the estimate then chooses a variant to compile.
    pub code: Vec<u8>,
    /// The kernels in the code.
    pub kernels: Vec<Kernel>,
}

impl Artifact {
    /// Whether there is code, and not only the estimate.
    pub fn has_code(&self) -> bool {
        !self.code.is_empty()
    }
}

/// One compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub struct Kernel {
    /// The Python function's name.
    pub name: String,
    /// Its symbol in the code.
    pub symbol: String,
    /// The parameters, one per argument, in order.
    pub params: Vec<Param>,
    /// The live fields, in the order in which the entry takes them.
    pub slots: Vec<Slot>,
    /// Static shared memory of a block, in bytes.
    pub shared_bytes: u64,
    /// Size in bytes of the local arrays of a thread, as declared.
    pub local_bytes: u64,
    /// Constants in the code, in bytes: captured arrays and strings.
    pub const_bytes: u64,
    /// The largest block size, if the user set a bound.
    pub max_threads: Option<u32>,
    /// The kernel has an array in dynamic shared memory.
    pub dynamic_shared: bool,
    /// Threads may wait for all other threads of the grid. All blocks must be resident, or the launch fails.
    pub cooperative: bool,
    /// A function that it calls, directly or indirectly, is recursive: the stack size is unknown.
    pub calls_itself: bool,
    /// For the host: it can be compiled with bounds-checked stores.
    pub can_bound_stores: bool,
    /// The coarsening: how many of the program's threads a launched thread executes.
    pub coarsening: Coarsening,
    /// The assumptions about launches that make the code faster. The code relies on those of them that it was compiled
    /// for.
    pub gains: Assumptions,
    /// The faults that it reports, if any.
    pub faults: Option<Arc<Faults>>,
    /// For a GPU: it prints to a [`PrintRing`](crate::PrintRing), whose address the host sets.
    pub prints: bool,
    /// The sites that sanitized code reports; `None` for other code.
    pub sanitize: Option<Arc<Sites>>,
    /// The scratch memory that the host executor allocates for each worker; `None` for PTX.
    pub host: Option<HostEntry>,
}

/// Thread coarsening: how many of the program's threads one launched thread executes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coarsening {
    /// The coarsening factors. A launch divides its extents by them; the extents must be multiples.
    pub factors: Factors,
    /// A remark for the user: how the kernel is coarsened, or why not; empty if the caller requested no coarsening.
    pub note: String,
    /// Other factors for a kernel whose threads are independent, in order of likely speed. Empty if the caller
    /// requested no candidates, or if there are none.
    pub candidates: Vec<Candidate>,
}

/// Candidate coarsening factors, and their estimated effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The factors that a launch divides its extents by.
    pub factors: Factors,
    /// The estimated time of a large launch, in thousandths of the time without coarsening.
    pub time: u32,
    /// The smallest block size on a GPU that may remain after coarsening.
    pub fewest: u32,
    /// The estimated number of resident threads per multiprocessor of a GPU.
    pub at_once: u32,
    /// A remark for the user.
    pub note: String,
}

impl Candidate {
    /// The largest estimated time, in thousandths of the original, at which factors are chosen without a measurement.
    /// The estimate is rough.
    const WORTH: u32 = 900;

    /// Whether the factors are chosen without a measurement.
    pub fn is_worth_it(&self) -> bool {
        self.time <= Self::WORTH
    }
}

/// The state that compiled code polls to see whether its launch was cancelled.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostWatch {
    /// 0 while the kernel may continue. Other threads write it.
    pub flag: *const u32,
    /// Returns 0 until the launch is cancelled; after that it always returns a nonzero value. It may run Python, so it
    /// is called on the stack of the thread that called the entry, never on a fiber's.
    pub look: unsafe extern "C" fn(*const HostWatch) -> u32,
    /// Cancels the launch: from then on `look` returns nonzero. For the runtime's own callbacks.
    pub give_up: unsafe extern "C" fn(*const HostWatch),
}

impl HostWatch {
    /// The watch of a launch that is never cancelled.
    pub const fn idle() -> Self {
        extern "C" fn goes_on(_: *const HostWatch) -> u32 {
            0
        }
        extern "C" fn never(_: *const HostWatch) {
            unreachable!("a launch without a stop request is stopped")
        }
        Self { flag: &0, look: goes_on, give_up: never }
    }
}

/// The configuration of a launch that an entry on the host receives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostConfig {
    /// `gridDim.x`, `.y`, `.z`, `blockDim.x`, `.y`, `.z`, dynamic shared bytes, and the compute capability that the
    /// device reports, [in one number](Self::capability_word).
    pub words: [u32; 8],
    /// The cancellation state.
    pub watch: *const HostWatch,
}

impl HostConfig {
    /// The word for a compute capability, major and minor.
    pub const fn capability_word((major, minor): (u32, u32)) -> u32 {
        major << 16 | minor
    }

    /// The compute capability that the device reports.
    pub const fn compute_capability(&self) -> (u32, u32) {
        let [.., word] = self.words;
        (word >> 16, word & 0xFFFF)
    }
}

/// The argument of an entry on the host: everything that a call depends on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostContext {
    /// The slots' cells, in order of the slots; a value is in the low bytes of its cell.
    pub slots: *const u64,
    /// The launch.
    pub config: *const HostConfig,
    /// Linear block numbers: `x` runs fastest, then `y`, then `z`.
    pub first_block: u64,
    /// One past the last block; blocks `first..last` run in order. Not read if threads have stacks.
    pub last_block: u64,
    /// Memory of the size in [`HostEntry`], 64-byte aligned.
    pub scratch: *mut u8,
    /// The thread's number in its block. This field and those after it are only read if threads have stacks; but
    /// sanitized code with work-item loops stores the number of the current work item here.
    pub thread: u64,
    /// The number of loop iterations that the thread runs until it calls `pause`, which resets it.
    pub iterations: u64,
    /// Returns when all threads of the barrier have arrived. The last argument selects the threads: [`Self::OF_BLOCK`];
    /// [`Self::OF_WARP`], those of the warp in the mask; [`Self::OF_CLUSTER`]; [`Self::OF_GRID`]; or [`Self::AT_SITE`], those that are
    /// currently at the same site in the code, whose number is the other argument.
    pub wait: extern "C" fn(*mut HostContext, u32, u32),
    /// Yields to other threads. The last argument is nonzero in a loop that waits for a store of another thread.
    pub pause: extern "C" fn(*mut HostContext, u32),
    /// The lowest address that frames of recursive functions may have; 0 for no check.
    pub lowest: u64,
    /// Called when a frame is below `lowest`: it cancels the launch. On a fiber's stack it does not return; otherwise
    /// the code exits after it.
    pub deep: extern "C" fn(*mut HostContext),
    /// Prints one line or other output of `print`. Takes a format of C's `printf`, its length in bytes, and its
    /// arguments, eight bytes each. May be called on a fiber's stack.
    pub print: extern "C" fn(*const u8, u64, *const u64),
    /// The lanes of the warp that are at the same site. `wait` sets it when it returns from [`Self::AT_SITE`] or
    /// [`Self::AT_PHASE`].
    pub lanes: u32,
    /// Reports a fault if it is the launch's first. Takes the words of [`FaultRecord`](crate::FaultRecord) from the
    /// fault's number to the extent. Returns 2 if this fault is the reported one, else 1.
    pub fault: extern "C" fn(*const HostContext, *const u64) -> u32,
    /// Adds a call to the reported fault.
    pub called: extern "C" fn(*const HostContext, u32),
    /// The runtime's record of the launch's fault, for its own callbacks.
    pub record: *const (),
    /// The functions that sanitized code calls.
    pub checks: HostChecks,
    /// The number of the last read of unwritten bytes by this thread; 0 if there is none since the code last read this
    /// field.
    pub unwritten: u32,
    /// The records that sanitized code compares its accesses with, in the runtime's memory; null if races are not
    /// checked.
    pub seen: *const HostSeen,
    /// Multiplies the matrices of a warp. Takes the [code](crate::MatrixTile::code) of the tile, the site in sanitized code,
    /// and the addresses of arrays of 32 values, one for each lane: for each word of A, for each word of B, and for each accumulator, which
    /// the result replaces. For a tile of a warpgroup, the [layouts](crate::SharedMatrix::code) of A and B come first. An
    /// operand with a layout has instead of words two arrays of 64-bit values: the address of its first row, and the column
    /// in it. Before the accumulators is the number of the warp in the warpgroup.
    pub multiply: unsafe extern "C" fn(*const HostContext, u64, u32, *const *mut u8),
    /// An asynchronous copy, or an operation of a barrier. Takes [`AsyncCopyRecord`](crate::AsyncCopyRecord). Returns 0
    /// for an operation that is not possible, such as a wait that cannot end or a copy that is not aligned, else 1.
    pub copy: unsafe extern "C" fn(*mut HostContext, *const u64) -> u32,
    /// The rank of the block in its cluster.
    pub cluster_rank: u32,
    /// The number of blocks of the cluster.
    pub cluster_size: u32,
    /// The `scratch` of each block of the cluster, by its rank. Null if threads have no stacks.
    pub cluster: *const *mut u8,
}

impl HostContext {
    /// The last argument of `wait` for a barrier of the block.
    pub const OF_BLOCK: u32 = 0;
    /// The last argument of `wait` for a barrier of a warp.
    pub const OF_WARP: u32 = 1;
    /// The last argument of `wait` for a query of the threads at a site.
    pub const AT_SITE: u32 = 2;
    /// The last argument of `wait` for a barrier of the grid.
    pub const OF_GRID: u32 = 3;
    /// The last argument of `wait` for a phase of a barrier in shared memory. It returns when the phase may have
    /// completed, and sets `lanes`: to 1 if no thread of the cluster can run, else to 0.
    pub const AT_PHASE: u32 = 4;
    /// The last argument of `wait` for a barrier of the cluster.
    pub const OF_CLUSTER: u32 = 5;

    /// The context of a range of blocks whose threads are work-item loops: they call no callbacks, and their stack
    /// depth is not checked.
    pub const fn of_blocks(
        slots: *const u64,
        config: *const HostConfig,
        (first_block, last_block): (u64, u64),
        scratch: *mut u8,
    ) -> Self {
        extern "C" fn no_wait(_: *mut HostContext, _: u32, _: u32) {
            unreachable!("a thread that is a loop waits")
        }
        extern "C" fn no_pause(_: *mut HostContext, _: u32) {
            unreachable!("a thread that is a loop pauses")
        }
        extern "C" fn no_deep(_: *mut HostContext) {
            unreachable!("a stack without a limit comes to its end")
        }
        extern "C" fn no_fault(_: *const HostContext, _: *const u64) -> u32 {
            1
        }
        extern "C" fn no_call(_: *const HostContext, _: u32) {}
        extern "C" fn no_print(_: *const u8, _: u64, _: *const u64) {
            unreachable!("a kernel prints without an executor")
        }
        extern "C" fn no_product(_: *const HostContext, _: u64, _: u32, _: *const *mut u8) {
            unreachable!("a kernel multiplies matrices without an executor")
        }
        extern "C" fn no_copy(_: *mut HostContext, _: *const u64) -> u32 {
            unreachable!("a kernel copies asynchronously without an executor")
        }
        Self {
            slots,
            config,
            first_block,
            last_block,
            scratch,
            thread: 0,
            iterations: 0,
            wait: no_wait,
            pause: no_pause,
            lowest: 0,
            deep: no_deep,
            print: no_print,
            lanes: 0,
            fault: no_fault,
            called: no_call,
            record: std::ptr::null(),
            checks: HostChecks::NONE,
            unwritten: 0,
            seen: std::ptr::null(),
            multiply: no_product,
            copy: no_copy,
            cluster_rank: 0,
            cluster_size: 1,
            cluster: std::ptr::null(),
        }
    }
}

/// The words that [`HostContext::copy`] takes, by their index. The operands of an operation are the words from
/// [`Self::TO`] on; those that it does not have are 0.
#[derive(Clone, Copy, Debug)]
pub struct AsyncCopyRecord;

impl AsyncCopyRecord {
    /// The operation: [`Self::ELEMENT`] or one of the constants after it.
    pub const WHAT: usize = 0;
    /// The number of bytes, of groups, of barriers or of dimensions.
    pub const NUMBER: usize = 1;
    /// `threadIdx.x`, `.y` and `.z`.
    pub const THREAD: usize = 2;
    /// `blockIdx.x`, `.y` and `.z`.
    pub const BLOCK: usize = 5;
    /// The site in sanitized code; 0 in other code. Of a copy that a barrier counts, the upper half has the site of its
    /// reads.
    pub const SITE: usize = 8;
    /// The address to copy to, or of a barrier. For [`Self::BOX_STORE`], that of the [`BoxMap`](crate::BoxMap).
    pub const TO: usize = 9;
    /// The address to copy from; of a barrier, its number of arrivals, the expected bytes, or the parity of a phase.
    pub const FROM: usize = 10;
    /// The address of the barrier that counts the bytes of a copy.
    pub const BARRIER: usize = 11;
    /// The number of bytes of [`Self::BULK`], or the first indices of [`Self::BOX`]. After these is the mask of the blocks
    /// that receive the copy, if [`Self::MULTICAST`] is added to the operation.
    pub const INDICES: usize = 12;
    /// The number of bytes of [`Self::BULK_STORE`], or the first indices of [`Self::BOX_STORE`].
    pub const STORE_INDICES: usize = 11;
    /// The number of words.
    pub const LEN: usize = 18;

    /// Begins a copy.
    pub const ELEMENT: u64 = 0;
    /// Makes a group of the thread's copies since the previous group.
    pub const COMMIT: u64 = 1;
    /// Waits until at most the number of the thread's groups are pending.
    pub const WAIT: u64 = 2;
    /// Initializes barriers in adjacent words.
    pub const BARRIER_INIT: u64 = 3;
    /// Arrives at a barrier.
    pub const BARRIER_ARRIVE: u64 = 4;
    /// Arrives at a barrier that also waits for bytes.
    pub const BARRIER_EXPECT: u64 = 5;
    /// Waits for a phase of a barrier. Returns 0 if no thread can complete it.
    pub const BARRIER_WAIT: u64 = 6;
    /// Begins a copy that a barrier counts.
    pub const BULK: u64 = 7;
    /// Begins a copy of a box, by the [`BoxMap`](crate::BoxMap) at the address to copy from.
    pub const BOX: u64 = 8;
    /// Begins a copy to global memory, as a part of a group.
    pub const BULK_STORE: u64 = 9;
    /// Begins a copy to a box, as a part of a group.
    pub const BOX_STORE: u64 = 10;
    /// [`Self::WAIT`], for which a group of copies to global memory is complete when its sources have been read.
    pub const WAIT_READ: u64 = 11;
    /// Added to [`Self::BULK`] and [`Self::BOX`]: several blocks of the cluster receive the copy.
    pub const MULTICAST: u64 = 16;
}

/// The kind of the host's entry, and the size of the scratch memory that a worker provides: static shared memory,
/// contexts of threads across barriers, and dynamic shared memory, from `dynamic_offset` to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// The entry runs one thread, on a stack of at least this many bytes. If `None`, it runs whole blocks.
    pub stack_bytes: Option<u64>,
    /// The stack size of a call of the entry with all its callees. For a recursive function it includes one call.
    pub call_bytes: u64,
    /// The stack size that recursive functions may use below [`HostContext::lowest`]: the most that one call uses
    /// before the next call compares its address with that limit. 0 if there are no recursive functions.
    pub below_bytes: u64,
    /// Offset of dynamic shared memory, a multiple of 64; everything before it has a size known at compile time.
    /// A worker's scratch is `dynamic_offset + dynamic shared bytes`.
    pub dynamic_offset: u64,
    /// The axis of a launch's grid and blocks that is exchanged with `x` before the code runs; 0 for none.
    pub x_axis: u8,
    /// A block may run as several: the code computes the same for a launch with `blockDim.x` divided and `gridDim.x`
    /// multiplied by a number, after the exchange of axes.
    pub may_split_blocks: bool,
    /// The code calls [`HostContext::multiply`] or [`HostContext::copy`], or reads the cluster.
    pub calls_runtime: bool,
}

/// One argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The Python parameter's name.
    pub name: String,
    /// Its type.
    pub ty: ArgType,
    /// How the kernel accesses the array's elements: host arrays are copied only in the directions needed.
    pub access: Access,
}

/// Whether a kernel may read or write an array argument's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// May be read: the data must be on the device before the launch.
    pub reads: bool,
    /// May be written: the data must come back after it.
    pub writes: bool,
    /// The only accesses are relaxed atomic operations of one kind whose old values are not used, as PTX's `red`:
    /// partial results of several devices can be added later.
    pub accumulates: bool,
}

/// One value that a kernel's entry takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where it comes from.
    pub source: SlotSource,
    /// How it is passed.
    pub ty: SlotType,
}

/// Where a slot's value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotSource {
    /// A field of an argument.
    Argument {
        /// The argument's number.
        param: u32,
        /// The indices into nested tuples; empty for a plain argument.
        path: Vec<Step>,
        /// The field.
        field: SlotField,
    },
    /// A value that the executor adds at the launch.
    Runtime(RuntimeSlot),
}

/// A value that an executor adds to the arguments. There are none yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuntimeSlot {}

/// An index into a tuple argument.
pub type Step = u32;

/// A field of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotField {
    /// A scalar's value.
    Value,
    /// A complex scalar's real part.
    Real,
    /// A complex scalar's imaginary part.
    Imag,
    /// An array's data pointer.
    Data,
    /// An extent in elements.
    Shape(u8),
    /// A stride in bytes.
    Stride(u8),
    /// The lowest address of an array that a kernel with [bounds-checked stores](Kernel::can_bound_stores) may write; 0
    /// for no bound.
    Start,
    /// The number of bytes that it may write from there on; `i64::MAX` for no bound.
    Room,
    /// The number of the first writable element, counted in memory from the array's first element; `i64::MIN` for no
    /// bound.
    Least,
    /// The number of the first element past the end of the writable part; `i64::MAX` for no bound.
    Limit,
}

impl SlotField {
    /// The arguments that bound the stores of a [bounds-checked](Kernel::can_bound_stores) kernel.
    pub const BOUNDS: [Self; 4] = [Self::Start, Self::Room, Self::Least, Self::Limit];

    /// The type of one of [`Self::BOUNDS`]; `None` for other fields, whose types depend on the argument's type.
    pub const fn bound_type(self) -> Option<Scalar> {
        match self {
            Self::Start | Self::Room => Some(Scalar::U64),
            Self::Least | Self::Limit => Some(Scalar::I64),
            Self::Value | Self::Real | Self::Imag | Self::Data | Self::Shape(_) | Self::Stride(_) => None,
        }
    }

    /// The value of a bound that permits all stores.
    pub const fn no_bound(self) -> u64 {
        match self {
            Self::Room | Self::Limit => i64::MAX.cast_unsigned(),
            Self::Least => i64::MIN.cast_unsigned(),
            Self::Start | Self::Value | Self::Real | Self::Imag | Self::Data | Self::Shape(_) | Self::Stride(_) => 0,
        }
    }

    /// The suffix of a field's variable after the argument's name: `x.data`, `x.shape0`, `z.real`.
    pub fn suffix(self) -> String {
        match self {
            Self::Value => String::new(),
            Self::Real => ".real".to_owned(),
            Self::Imag => ".imag".to_owned(),
            Self::Data => ".data".to_owned(),
            Self::Shape(dim) => format!(".shape{dim}"),
            Self::Stride(dim) => format!(".stride{dim}"),
            Self::Start => ".start".to_owned(),
            Self::Room => ".room".to_owned(),
            Self::Least => ".least".to_owned(),
            Self::Limit => ".limit".to_owned(),
        }
    }
}

/// How a slot is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotType {
    /// A scalar of at most eight bytes; `Bool` is one byte.
    Scalar(Scalar),
    /// A device pointer (CUDA) or an address of this process (host), eight bytes.
    Pointer,
    /// A value of any size, as it is stored in memory.
    Bytes {
        /// The size in bytes.
        size: u32,
        /// The alignment; cells are aligned to eight bytes.
        align: u32,
    },
}

impl SlotType {
    /// The size of the value in bytes.
    pub const fn size_bytes(self) -> u64 {
        match self {
            Self::Scalar(scalar) => scalar.size_bytes(),
            Self::Pointer => 8,
            Self::Bytes { size, .. } => size as u64,
        }
    }

    /// The number of cells that a launch passes it in: at least one.
    pub const fn cells(self) -> usize {
        match self.size_bytes().div_ceil(8) {
            0 => 1,
            cells => cells as usize,
        }
    }
}

impl Kernel {
    /// The first cell of each slot.
    pub fn first_cells(&self) -> impl Iterator<Item = usize> + '_ {
        self.slots.iter().scan(0, |next, slot| {
            let first = *next;
            *next += slot.ty.cells();
            Some(first)
        })
    }

    /// The number of cells of a launch.
    pub fn n_cells(&self) -> usize {
        self.slots.iter().map(|slot| slot.ty.cells()).sum()
    }
}
