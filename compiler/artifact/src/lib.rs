//! What the compiler hands over and the executors run: argument types, their conversions, the kernel ABI, and code.
//!
//! This crate has no dependencies, so that the runtime needs no compiler and the compiler no runtime.

mod artifact;
mod class;
mod compound;
mod conversion;
mod dtype;
mod fields;
mod half;
mod number;
mod table;
mod types;

pub use artifact::{
    Access, Artifact, CodeFormat, HostConfig, HostContext, HostEntry, HostWatch, Kernel, Param, RuntimeSlot, Slot,
    SlotField, SlotSource, SlotType, Step,
};
pub use class::{Class, ClassId, ClassKind};
pub use compound::{Compound, CompoundError, Member, Nested, Record, RecordField, Vector};
pub use conversion::{Choice, Conversion, Misfit, Rank, choose};
pub use dtype::{CompoundId, DType};
pub use fields::{Field, Leaf, Which};
pub use number::{Complex, Number, Scalar};
pub use table::{NUMBERS, Row};
pub use types::{ArgType, ArrayType, EXTENT_BITS, Layout, MAX_LEAVES, MAX_NDIM};
