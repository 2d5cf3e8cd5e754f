//! What the compiler hands over and the executors run: argument types, the kernel ABI, and code.
//!
//! This crate has no dependencies, so that the runtime needs no compiler and the compiler no runtime.

mod artifact;
mod types;

pub use artifact::{Access, Artifact, CodeFormat, HostLayout, Kernel, Param, Slot, SlotField, SlotType, Step};
pub use types::{ArgType, ArrayType, Layout, Scalar};
