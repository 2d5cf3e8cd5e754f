//! The compiler's output, which the executors run: argument types, their conversions, the kernel ABI, and code.
//!
//! This crate has no dependencies, so that the runtime needs no compiler and the compiler no runtime.

mod artifact;
mod assumptions;
mod box_map;
mod box_rows;
mod class;
mod compound;
mod conversion;
mod dtype;
mod english;
mod factors;
mod fault;
mod fields;
mod float8;
mod format;
mod half;
mod inline_checks;
mod machine;
mod matrix;
mod number;
mod print_ring;
pub mod rules;
mod sanitize;
mod table;
mod time;
mod types;
mod vector;

pub use artifact::{
    Access, Artifact, AsyncCopyRecord, Candidate, Coarsening, CodeFormat, HostConfig, HostContext, HostEntry,
    HostWatch, Kernel, Param, RuntimeSlot, Slot, SlotField, SlotSource, SlotType, Step,
};
pub use assumptions::{ALIGNED, Addresses, Assumptions, are_nonneg};
pub use box_map::{BoxMap, BoxType, MAP_ALIGN, MAP_BYTES, MAP_DIMS};
pub use box_rows::{BoxElement, BoxRow};
pub use class::{Class, ClassId, ClassKind};
pub use compound::{Chars, Compound, CompoundError, Member, Nested, Record, RecordField};
pub use conversion::{Choice, Conversion, Misfit, Rank, choose};
pub use dtype::{CompoundId, DType};
pub use english::article;
pub use factors::Factors;
pub use fault::{Fault, FaultArg, FaultRecord, Faults, Numbers, Raised, SourceLocation};
pub use fields::{ArgItem, Field, Which};
pub use float8::Float8;
pub use format::{FormatPart, format_parts};
pub use inline_checks::{HostPage, HostSeen};
pub use machine::MachineCode;
pub use matrix::{
    MatrixKind, MatrixPart, MatrixProduct, MatrixTile, SharedMatrix,
    product::{MatrixRules, product as matrix_product},
};
pub use number::{Complex, Number, Scalar};
pub use print_ring::PrintRing;
pub use sanitize::{AccessBits, EventKind, HostChecks, SharedArrayInfo, Site, SiteKind, Sites, Tools, Update};
pub use table::{NUMBERS, Row};
pub use time::{Time, TimeUnit};
pub use types::{
    ArgType, ArrayType, EXTENT_BITS, Layout, MAX_LEAVES, MAX_NDIM, SMALL_BLOCKS, SMALL_EXTENT, SMALL_SIZE,
};
pub use vector::Vector;
