//! The CUDA executor: a GPU, accessed through the driver, which is opened at run time. A machine without one is an
//! error value, never a panic.

mod capture;
mod clusters;
mod context;
mod driver;
mod executor;
mod fault;
mod free;
mod free_blocks;
mod function;
mod graph;
mod host_memory;
mod image;
mod kernel;
mod libnvvm;
mod link;
mod link_logs;
mod machine_code;
mod memory;
mod module;
mod nvjitlink;
mod nvrtc;
mod nvtx;
mod packed_copies;
mod pending;
mod print;
mod shared;
mod staged;
mod stream;
mod stream_uses;
mod tensor_maps;
mod tools;

pub use libnvvm::LtoOptions;

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use crate::{error::Error, executor::Executor, settings::Settings, toolkit::Toolkit};

/// A library of NVIDIA's that this process has opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// The version of CUDA that it is for or of, (major, minor), if it says so.
    pub version: Option<(u32, u32)>,
    /// Its file, if the loader says so.
    pub file: Option<PathBuf>,
}

/// How many CUDA devices there are; no driver is 0. Never panics.
pub fn device_count() -> u32 {
    driver::device_count().unwrap_or(0)
}

/// Why there is no CUDA device, or `None` if there is one.
pub fn why_none() -> Option<Error> {
    driver::device_count().err()
}

/// Opens a CUDA device by its ordinal.
///
/// # Errors
///
/// `NoDevice` without a driver or a device, saying which of the two.
pub fn open(settings: &Settings, ordinal: u32) -> Result<Arc<dyn Executor>, Error> {
    Ok(Arc::new(executor::CudaExecutor::open(settings, ordinal)?))
}

/// Reports compilations, copies and launches on any device to the profiler that is attached to this process, if there
/// is one and the settings allow it. `variable` looks up environment variables, by which a profiler is found.
pub fn attach_profiler(settings: &Settings, variable: impl Fn(&str) -> Option<OsString>) {
    nvtx::attach(settings, variable);
}

/// Whether this machine has a driver of CUDA's, which alone makes device memory. Opens nothing that stays open.
pub fn has_driver() -> bool {
    driver::is_there()
}

/// The driver's library as it was found, whether or not it can be used; `None` where there is none.
pub fn driver() -> Option<Library> {
    driver::found()
}

/// Opens NVRTC, which compiles CUDA C++.
///
/// # Errors
///
/// `NoTool`, with the names that were searched for.
pub fn nvrtc(toolkit: &Toolkit) -> Result<Library, Error> {
    nvrtc::Nvrtc::open(toolkit).map(|found| Library { version: Some(found.version), file: found.file() })
}

/// Opens nvJitLink, which links LTO-IR.
///
/// # Errors
///
/// `NoTool`, with the names that were searched for.
pub fn nvjitlink(toolkit: &Toolkit) -> Result<Library, Error> {
    nvjitlink::NvJitLink::open(toolkit).map(|found| Library { version: found.version(), file: found.file() })
}

/// Opens libNVVM, which makes LTO-IR of NVVM IR.
///
/// # Errors
///
/// `NoTool`, with the names that were searched for.
pub fn libnvvm(toolkit: &Toolkit) -> Result<Library, Error> {
    libnvvm::LibNvvm::open(toolkit).map(|found| Library { version: None, file: found.file() })
}

/// Compiles NVVM IR to LTO-IR for a target such as `sm_90a`. No device and no driver are needed.
///
/// # Errors
///
/// `NoTool` without libNVVM, with the names that were searched for; `Link` with libNVVM's log if it rejects the code.
pub fn lto_ir(toolkit: &Toolkit, nvvm_ir: &[u8], target: &str, options: LtoOptions) -> Result<Vec<u8>, Error> {
    libnvvm::LibNvvm::open(toolkit)?.lto_ir(nvvm_ir, target, options)
}
