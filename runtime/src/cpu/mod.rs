//! The CPU executor: blocks over all cores, in this process. Every call does its work before it returns.

mod async_copies;
mod block_memory;
mod boxes;
mod checks;
mod copy;
mod crew;
mod depth;
mod executor;
mod fault;
mod fibers;
mod free_list;
mod interrupt;
mod invalid_access;
mod launch_state;
mod machine;
mod matrix;
mod memory;
mod module;
mod phases;
pub(crate) mod pool;
mod print;
mod priority;
mod readable_tail;
mod scratch;
mod stacks;
mod stream;
mod thread_states;

use std::sync::Arc;

pub use self::priority::lower_thread_priority;
use crate::{
    error::Error,
    executor::{Executor, HostLoader},
    settings::Settings,
};

/// To be called in a process that was forked off one that has launched: the threads of that one are not there.
pub fn after_fork() {
    interrupt::after_fork();
    invalid_access::after_fork();
}

/// Opens the CPU as a device. Starts no thread: the first launch of several blocks or large copy does.
///
/// # Errors
///
/// The settings make no sense.
pub fn open(settings: &Settings, loader: Arc<dyn HostLoader>) -> Result<Arc<dyn Executor>, Error> {
    Ok(Arc::new(executor::CpuExecutor::new(settings, loader)))
}
