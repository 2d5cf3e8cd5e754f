//! weft's compiler: the text of a Python function in, PTX or a host object out.
//!
//! Read [`pipeline::compile`] first: it holds every stage in order. The crate is pure: it reads no file, no
//! environment and no clock, and prints nothing; [`host_cpu`] and [`host_cpu_set`], for whoever makes requests, are no part of a compilation.

mod analysis;
pub mod backend;
pub mod diagnostic;
pub mod frontend;
mod inline;
pub mod intrinsics;
pub mod ir;
pub mod passes;
pub mod pipeline;
pub mod request;
pub mod signature;
pub mod source;
mod stack;
mod stage;
mod stop;
pub mod syntax;
pub mod target;

pub use backend::{host_cpu, host_cpu_set, llvm_version};
pub use stage::{Size, Stage, StageEvent, Watch};
pub use stop::Poll;

/// The version of the compiler.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The hash of the math library that is in it.
pub const LIBCLC_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/libclc.id"));
