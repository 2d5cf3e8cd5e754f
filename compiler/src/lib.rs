//! weft's compiler: from the source of a Python function to PTX or a host object.
//!
//! Read [`pipeline::compile`] first: it has every stage in order. The crate is pure: it reads no file, no environment
//! and no clock, and prints nothing. The exceptions are [`host_cpu`] and [`host_cpu_set`], which callers use to build
//! requests.

mod analysis;
mod autodiff;
pub mod backend;
pub mod diagnostic;
pub mod frontend;
mod inline;
pub mod intrinsics;
pub mod ir;
mod normalize;
pub mod passes;
pub mod pipeline;
pub mod request;
pub mod rules;
pub mod signature;
pub mod source;
mod stack;
mod stage;
mod stop;
pub mod syntax;
pub mod target;

pub use backend::{
    check_printed_passes, cpu_for_export, host_cpu, host_cpu_set, host_cpu_without_passes, llvm_version, plan_passes,
};
pub use stage::{Size, Stage, StageEvent, Watch};
pub use stop::Poll;

/// The version of the compiler.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The hash of the embedded math library.
pub const LIBCLC_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/libclc.id"));
