//! The CUDA executor: a GPU behind the driver, which is opened at run time. A machine without one is an answer, never a
//! panic.

mod capture;
mod clusters;
mod context;
mod driver;
mod executor;
mod fault;
mod free;
mod graph;
mod host_memory;
mod kept;
mod link;
mod logs;
mod machine;
mod memory;
mod module;
mod nvjitlink;
mod nvrtc;
mod nvtx;
mod parts;
mod pending;
mod shared;
mod staged;
mod stream;
mod tools;
mod uses;

use std::sync::Arc;

use crate::{error::Error, executor::Executor, settings::Settings};

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

/// Tells the profiler that watches this process, if one does and the settings want it, of compilations, copies and launches,
/// whatever device they are for. `variable` answers environment variables, by which a profiler is found.
pub fn attach_profiler(settings: &Settings, variable: impl Fn(&str) -> Option<String>) {
    nvtx::attach(settings, variable);
}

/// Whether this machine has a driver of CUDA's, which alone makes device memory. Opens nothing that stays open.
pub fn has_driver() -> bool {
    driver::is_there()
}
