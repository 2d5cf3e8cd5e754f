//! A compiled module and the ABI of its kernels.
//!
//! A kernel takes a flat list of *slots*. A slot is one live field of one argument: a scalar's value, an array's data
//! pointer, one extent, one stride; or something that the runtime adds. Dead fields have no slot. A launch passes a
//! slot in *cells* of eight bytes: one, or as many as its size takes.
//!
//! On CUDA the slots are the `.param`s of the entry, in order. On the host the entry is `void entry(HostContext *)`: it
//! runs the blocks that the context names, or, if [`HostEntry::stack_bytes`] says so, one thread of one block.
//!
//! A [`HostWatch`] tells code that runs for long whether its launch goes on.

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
    /// A relocatable ELF object for this machine's CPU.
    HostObject,
}

/// Compiled code with all that is needed to launch its kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// What `code` is.
    pub format: CodeFormat,
    /// The target it was compiled for: `sm_90`, or `host`.
    pub target: String,
    /// PTX text or an object. Empty where the kernel is estimated to be [worth coarsening](Coarsening::is_worth_it): whoever asks
    /// for the estimate chooses which variant it needs.
    pub code: Vec<u8>,
    /// The kernels in the code.
    pub kernels: Vec<Kernel>,
}

impl Artifact {
    /// Whether there is code, and not the estimate alone.
    pub fn has_code(&self) -> bool {
        !self.code.is_empty()
    }
}

/// One compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Kernel {
    /// The Python function's name.
    pub name: String,
    /// Its symbol in the code.
    pub symbol: String,
    /// One entry an argument, in order.
    pub params: Vec<Param>,
    /// The live fields, in the order in which the entry takes them.
    pub slots: Vec<Slot>,
    /// Static shared memory of a block, in bytes.
    pub shared_bytes: u64,
    /// Local arrays of a thread, in bytes, as they are declared.
    pub local_bytes: u64,
    /// Constants in the code, in bytes: captured arrays and texts.
    pub const_bytes: u64,
    /// Threads that a block can have at most, where the user set a bound.
    pub max_threads: Option<u32>,
    /// The kernel has an array in dynamic shared memory.
    pub dynamic_shared: bool,
    /// Its threads may wait for all others of the grid: all blocks run at a time, or the launch fails.
    pub cooperative: bool,
    /// A function that it leads to calls itself: how much of a stack it takes is not known.
    pub calls_itself: bool,
    /// For the host: it can be compiled so that it writes nothing beside its arrays.
    pub can_bound_stores: bool,
    /// How many threads one of a launch does the work of.
    pub coarsening: Coarsening,
    /// The facts of launches that its code is better for. It takes for granted those of them that it was compiled for.
    pub gains: Assumptions,
    /// The faults that it reports, if it reports some.
    pub faults: Option<Arc<Faults>>,
    /// For a GPU: it prints where the host has put a [`PrintRing`](crate::PrintRing).
    pub prints: bool,
    /// What sanitized code tells, if it is that.
    pub sanitize: Option<Arc<Sites>>,
    /// What the host executor lays out for each worker; `None` for PTX.
    pub host: Option<HostEntry>,
}

/// How many threads one thread of a launch does the work of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coarsening {
    /// A launch divides its extents by them, which are multiples.
    pub factors: Factors,
    /// For people: how, or why not; empty where nobody asked for more than one.
    pub note: String,
    /// Of a kernel whose threads each do their own: other factors, those first that are likely to be quicker. Empty where
    /// nobody asked for a choice, or there is none.
    pub candidates: Vec<Candidate>,
}

impl Coarsening {
    /// Whether large launches are to have other factors.
    pub fn is_worth_it(&self) -> bool {
        self.candidates.iter().any(Candidate::is_worth_it)
    }
}

/// Factors that a kernel can have, and what is to be expected of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What a launch divides its extents by.
    pub factors: Factors,
    /// The estimated time of a large launch, in thousandths of that of the kernel as it is.
    pub time: u32,
    /// The fewest threads that it may leave of a block on a GPU.
    pub fewest: u32,
    /// Threads that a multiprocessor of a GPU is estimated to have at a time.
    pub at_once: u32,
    /// For people.
    pub note: String,
}

impl Candidate {
    /// The most thousandths of the time with which factors are chosen that nobody has measured: the estimate is rough.
    const WORTH: u32 = 900;

    /// Whether the factors are chosen without being measured.
    pub fn is_worth_it(&self) -> bool {
        self.time <= Self::WORTH
    }
}

/// What compiled code looks at to see whether its launch goes on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostWatch {
    /// While it is 0 the kernel goes on. Other threads write it.
    pub flag: *const u32,
    /// Says otherwise whether it does: 0 for yes. Who is told to leave once is told so again. It may run Python, so it is
    /// called on the stack of the thread that called the entry, never on a fiber's.
    pub look: unsafe extern "C" fn(*const HostWatch) -> u32,
    /// Gives the launch up: from then on `look` says so. For the runtime's own call backs.
    pub give_up: unsafe extern "C" fn(*const HostWatch),
}

impl HostWatch {
    /// The watch of a launch that nobody gives up.
    pub const fn idle() -> Self {
        extern "C" fn goes_on(_: *const HostWatch) -> u32 {
            0
        }
        extern "C" fn never(_: *const HostWatch) {
            unreachable!("a launch that nobody gives up is given up")
        }
        Self { flag: &0, look: goes_on, give_up: never }
    }
}

/// A launch as an entry on the host is told of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostConfig {
    /// `gridDim.x`, `.y`, `.z`, `blockDim.x`, `.y`, `.z`, dynamic shared bytes, 0.
    pub words: [u32; 8],
    /// Whether it goes on.
    pub watch: *const HostWatch,
}

/// What an entry on the host gets: all that a call of it depends on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostContext {
    /// The slots' cells, one slot after the other; a value in its low bytes.
    pub slots: *const u64,
    /// The launch.
    pub config: *const HostConfig,
    /// Linear block numbers: `x` runs fastest, then `y`, then `z`.
    pub first_block: u64,
    /// One past the last; blocks `first..last` run one after the other. Not read where threads have stacks.
    pub last_block: u64,
    /// Memory as [`HostEntry`] says, 64-byte aligned.
    pub scratch: *mut u8,
    /// The thread's number in its block. Read where threads have stacks, as is what follows; sanitized code whose threads are
    /// loops says here which of them runs.
    pub thread: u64,
    /// Turns of loops that the thread still takes before it calls `pause`, which sets it again.
    pub iterations: u64,
    /// Returns when the threads that wait together are here: those of the block; those of the warp that are in the mask, if
    /// the last argument is [`Self::OF_WARP`]; all of the grid, if it is [`Self::OF_GRID`]; those that happen to be at the same place in the code, if it is
    /// [`Self::AT_SITE`]: the other argument is the place's number then.
    pub wait: extern "C" fn(*mut HostContext, u32, u32),
    /// Lets other threads go on; the last argument is not 0 in a loop that waits for what one of them writes.
    pub pause: extern "C" fn(*mut HostContext, u32),
    /// The lowest address that the frames of functions which call themselves may have; 0 if nobody looks.
    pub lowest: u64,
    /// Called below it: the launch is given up. On a stack of its own a thread does not return from it; elsewhere its code
    /// leaves.
    pub deep: extern "C" fn(*mut HostContext),
    /// Prints one line, or what else a call of `print` prints: a format of C's `printf` of so many bytes, and its
    /// arguments, eight bytes each. May be called on a fiber's stack.
    pub print: extern "C" fn(*const u8, u64, *const u64),
    /// The lanes of the warp that were at the same place: set when `wait` returns there.
    pub lanes: u32,
    /// Reports a fault if it is the launch's first: called with the words of [`FaultRecord`](crate::FaultRecord) from the
    /// fault's number to the extent. Gives 1, or 2 if it is the one that is reported.
    pub fault: extern "C" fn(*const HostContext, *const u64) -> u32,
    /// Adds a call to the fault that is reported.
    pub called: extern "C" fn(*const HostContext, u32),
    /// The runtime's record of the launch's fault, for its own call backs.
    pub record: *const (),
    /// What sanitized code calls.
    pub checks: HostChecks,
    /// The number of what the thread has read last of bytes that nobody has written; 0 if there is none since it asked.
    pub unwritten: u32,
    /// What sanitized code compares its accesses with, in the runtime's memory; null where nobody asked.
    pub seen: *const HostSeen,
}

impl HostContext {
    /// What `wait` is told of a barrier of the block.
    pub const OF_BLOCK: u32 = 0;
    /// The same of one of a warp.
    pub const OF_WARP: u32 = 1;
    /// The same where a thread asks who is here.
    pub const AT_SITE: u32 = 2;
    /// The same of a barrier of the grid.
    pub const OF_GRID: u32 = 3;

    /// The context of a range of blocks whose threads are loops: they never call back, and nobody looks how deep they go.
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
        }
    }
}

/// What the host's entry runs, and the scratch memory that a worker gives it: static shared memory, what threads carry
/// across barriers, and dynamic shared memory, from `dynamic_offset` up to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// The entry runs one thread, on a stack of at least this many bytes. `None`: it runs whole blocks.
    pub stack_bytes: Option<u64>,
    /// What a call of the entry takes of a stack, with all that it calls; of functions that call themselves it takes one
    /// call.
    pub call_bytes: u64,
    /// What functions that call themselves may take below [`HostContext::lowest`]: all that one of them takes before the
    /// next call has compared its address with that. 0 if there is none.
    pub below_bytes: u64,
    /// Offset of dynamic shared memory, a multiple of 64; everything before it has a size known at compile time.
    /// A worker's scratch is `dynamic_offset + dynamic shared bytes`.
    pub dynamic_offset: u64,
    /// The axis of a launch's grid and blocks that is exchanged with `x` before the code sees them; 0 if none is.
    pub x_axis: u8,
}

/// One argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The Python parameter's name.
    pub name: String,
    /// Its type.
    pub ty: ArgType,
    /// What the kernel does with the arrays in it: host arrays are copied only in the directions needed.
    pub access: Access,
}

/// Whether a kernel may read or write an array argument's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// May be read: the data must be on the device before the launch.
    pub reads: bool,
    /// May be written: the data must come back after it.
    pub writes: bool,
    /// Nothing is done there but atomic steps of one kind that order nothing and whose old values nobody takes, as PTX's `red`:
    /// what several add up elsewhere may be added later.
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
        /// Which argument.
        param: u32,
        /// The way into nested tuples; empty for a plain argument.
        path: Vec<Step>,
        /// Which field.
        field: SlotField,
    },
    /// Something that the executor adds at the launch.
    Runtime(RuntimeSlot),
}

/// What an executor adds to the arguments. There is nothing yet: a grid's state is to be a variant.
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
    /// The lowest address that a [confined](Kernel::can_bound_stores) kernel may write of an array; 0 where it may write anything.
    Start,
    /// How many bytes it may write from there on; `i64::MAX` where it may write anything.
    Room,
    /// The least number of an element, counted in memory from the first, that it may write; `i64::MIN` where it may write
    /// anything.
    Least,
    /// The number of the first element behind that it may not write; `i64::MAX` where it may write anything.
    Limit,
}

impl SlotField {
    /// Those that say where a [confined](Kernel::can_bound_stores) kernel may write.
    pub const BOUNDS: [Self; 4] = [Self::Start, Self::Room, Self::Least, Self::Limit];

    /// How a kernel takes one of [`Self::BOUNDS`]; `None` for the others, which the argument's type says.
    pub const fn bound_type(self) -> Option<Scalar> {
        match self {
            Self::Start | Self::Room => Some(Scalar::U64),
            Self::Least | Self::Limit => Some(Scalar::I64),
            Self::Value | Self::Real | Self::Imag | Self::Data | Self::Shape(_) | Self::Stride(_) => None,
        }
    }

    /// What one of them is where anything may be written.
    pub const fn no_bound(self) -> u64 {
        match self {
            Self::Room | Self::Limit => i64::MAX.cast_unsigned(),
            Self::Least => i64::MIN.cast_unsigned(),
            Self::Start | Self::Value | Self::Real | Self::Imag | Self::Data | Self::Shape(_) | Self::Stride(_) => 0,
        }
    }

    /// What the variable of a field is called, after the argument's name: `x.data`, `x.shape0`, `z.real`.
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
    /// A value of any size, as it lies in memory.
    Bytes {
        /// Its bytes.
        size: u32,
        /// Its alignment: cells have eight.
        align: u32,
    },
}

impl SlotType {
    /// Bytes of the value.
    pub const fn size_bytes(self) -> u64 {
        match self {
            Self::Scalar(scalar) => scalar.size_bytes(),
            Self::Pointer => 8,
            Self::Bytes { size, .. } => size as u64,
        }
    }

    /// How many cells a launch passes it in: at least one.
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

    /// How many cells a launch passes.
    pub fn n_cells(&self) -> usize {
        self.slots.iter().map(|slot| slot.ty.cells()).sum()
    }
}
