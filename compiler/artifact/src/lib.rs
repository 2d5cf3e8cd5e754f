//! What the compiler hands over and the executors run: argument types, their conversions, the kernel ABI, and code.
//!
//! This crate has no dependencies, so that the runtime needs no compiler and the compiler no runtime.

mod artifact;
mod class;
mod compound;
mod conversion;
mod dtype;
mod factors;
mod facts;
mod fault;
mod fields;
mod format;
mod half;
mod machine;
mod number;
mod printed;
mod sanitize;
mod seen;
mod table;
mod time;
mod types;
mod vector;
mod words;

pub use artifact::{
    Access, Artifact, Candidate, Coarsening, CodeFormat, HostConfig, HostContext, HostEntry, HostWatch, Kernel, Param,
    RuntimeSlot, Slot, SlotField, SlotSource, SlotType, Step,
};
pub use class::{Class, ClassId, ClassKind};
pub use compound::{Chars, Compound, CompoundError, Member, Nested, Record, RecordField};
pub use conversion::{Choice, Conversion, Misfit, Rank, choose};
pub use dtype::{CompoundId, DType};
pub use factors::Factors;
pub use facts::{ALIGNED, Addresses, Facts, are_nonneg};
pub use fault::{Fault, FaultArg, FaultRecord, Faults, Numbers, Place, Raised};
pub use fields::{ArgItem, Field, Which};
pub use format::{FormatPart, format_parts};
pub use machine::MachineCode;
pub use number::{Complex, Number, Scalar};
pub use printed::PrintRing;
pub use sanitize::{AccessBits, EventKind, HostChecks, SharedPlace, Site, SiteKind, Sites, Tools, Update};
pub use seen::{HostPage, HostSeen};
pub use table::{NUMBERS, Row};
pub use time::{Time, TimeUnit};
pub use types::{ArgType, ArrayType, EXTENT_BITS, Layout, MAX_LEAVES, MAX_NDIM, SMALL_EXTENT};
pub use vector::Vector;
pub use words::article;
