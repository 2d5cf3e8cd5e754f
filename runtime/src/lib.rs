//! weft's runtime: devices, buffers, streams and launches, behind one trait that the `cuda` and `cpu` executors
//! implement. It knows no LLVM and no Python.

pub mod cpu;
pub mod cuda;
mod edges;
mod error;
mod executor;
mod graph;
mod launch;
mod libdevice;
mod random;
mod rows;
mod settings;
mod size;
mod toolkit;

pub use edges::Edges;
pub use error::{Error, ErrorKind};
pub use executor::{
    Allocator, Buffer, DeviceAttributes, Event, Executor, HostCode, HostKind, HostLoader, HostMemory, LaunchConfig,
    Lent, Linked, LinkedKind, Linking, LoadedKernel, Module, Poll, Shared, Stream,
};
pub use graph::{Graph, MemoryKind, Node, Place, Step};
pub use libdevice::Libdevice;
pub use random::xoroshiro128p_states;
pub use rows::Rows;
pub use settings::{CpuStrategy, DeviceChoice, FileChoice, SETTINGS, Setting, Settings};
pub use toolkit::Toolkit;
