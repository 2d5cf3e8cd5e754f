//! A compiled module and the ABI of its kernels.
//!
//! A kernel takes a flat list of *slots*, each at most eight bytes. A slot is one live field of one argument: a
//! scalar's value, an array's data pointer, one extent, one stride. Dead fields have no slot.
//!
//! On CUDA the slots are the `.param`s of the entry, in order. On the host the entry has the C signature
//!
//! ```c
//! void entry(const uint64_t *slots,   // one 8-byte cell a slot, the value in its low bytes
//!            const uint32_t *config,  // gridDim.x, .y, .z, blockDim.x, .y, .z, dynamic shared bytes, 0
//!            uint64_t first_block,    // linear block numbers: x runs fastest, then y, then z
//!            uint64_t last_block,     // one past the last; blocks first..last run one after the other
//!            uint8_t *scratch);       // HostLayout: shared memory and what lives across barriers, 64-byte aligned
//! ```

use crate::types::{ArgType, Scalar};

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
    /// PTX text or an object.
    pub code: Vec<u8>,
    /// The kernels in the code.
    pub kernels: Vec<Kernel>,
}

/// One compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The kernel has an array in dynamic shared memory.
    pub dynamic_shared: bool,
    /// What the host executor lays out for each worker; `None` for PTX.
    pub host: Option<HostLayout>,
}

/// Scratch memory of one host worker. Order: static shared memory at 0, replicated locals at `replicated_offset`,
/// dynamic shared memory at `dynamic_offset` up to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLayout {
    /// Offset of dynamic shared memory, a multiple of 64; everything before it has a size known at compile time.
    /// A worker's scratch is `dynamic_offset + dynamic shared bytes`.
    pub dynamic_offset: u64,
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
}

/// One field of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Which argument.
    pub param: u32,
    /// The way into nested tuples; empty for a plain argument.
    pub path: Vec<Step>,
    /// Which field.
    pub field: SlotField,
    /// How it is passed.
    pub ty: SlotType,
}

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
}

/// How a slot is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotType {
    /// A scalar of at most eight bytes, never complex; `Bool` is one byte.
    Scalar(Scalar),
    /// A device pointer (CUDA) or an address of this process (host), eight bytes.
    Pointer,
}
