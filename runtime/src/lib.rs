//! weft's runtime: devices, buffers, streams and launches, with one trait that the `cuda` and `cpu` executors
//! implement. It depends on neither LLVM nor Python.

mod code;
pub mod cpu;
pub mod cuda;
mod edges;
mod error;
mod executor;
mod foreign;
mod graph;
mod launch;
mod libdevice;
mod occupancy;
mod print;
mod profiler_ranges;
pub mod progress;
pub mod ptxas;
mod random;
mod rows;
pub mod sanitize;
mod settings;
mod size;
mod toolkit;

pub use code::{CachedCode, CodeCache, Linked, LinkedKind, Linking, LoadStage};
pub use cpu::lower_thread_priority;
pub use edges::Edges;
pub use error::{Error, ErrorKind};
pub use executor::{
    Allocator, Buffer, DeviceAttributes, Event, Executor, HostCode, HostKind, HostLoader, HostMemory, LaunchConfig,
    Lent, LoadedKernel, Module, Part, PartMut, Poll, Shared, Stream,
};
pub use foreign::{CachePreference, Function, FunctionArguments, FunctionAttributes};
pub use graph::{Graph, MemoryKind, MemoryLocation, Node, Step};
pub use launch::clusters as check_clusters;
pub use libdevice::Libdevice;
pub use occupancy::{BlockSize, USUAL_BLOCK, best_block};
pub use print::{Output, set_output};
pub use profiler_ranges::{Category, Range, range};
pub use random::xoroshiro128p_states;
pub use rows::Rows;
pub use settings::{
    CoarsenChoice, CpuStrategy, DebugIndex, DeviceChoice, FileChoice, InForce, ProfileChoice, ProgressChoice, SETTINGS,
    Setting, Settings,
};
pub use toolkit::Toolkit;
