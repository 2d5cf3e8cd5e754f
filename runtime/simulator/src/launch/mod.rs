//! Launches: the blocks of a grid on several threads, and the sum of their counts.
//!
//! Each thread takes the next block of the grid. The counts are sums, so they do not depend on the order of blocks,
//! except where blocks wait for each other.

mod block;

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use crate::{
    Module,
    count::{Counters, Counts},
    error::Error,
    execute::{Machine, Setup, Template},
    memory::Memory,
};
use block::Block;

/// Warp instructions after which a block that waits lets others run.
const SLICE: u64 = 200_000;
/// Blocks of one thread that may wait for other blocks.
const MAX_WAITING: usize = 4096;

/// The configuration of a launch.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The blocks of the grid.
    pub grid: [u32; 3],
    /// The threads of a block.
    pub block: [u32; 3],
    /// The bytes of each parameter of the kernel, in order.
    pub params: Vec<Vec<u8>>,
    /// The bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Threads of the simulator; 0 for one on each core.
    pub threads: usize,
    /// Warp instructions of one thread after which the launch is an error; 0 for no limit.
    pub limit: u64,
}

impl Launch {
    /// A launch with a grid and a block, on all cores.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self { grid, block, params: Vec::new(), dynamic_shared: 0, threads: 0, limit: 0 }
    }
}

/// State that the threads of a launch share.
struct Shared<'a> {
    setup: &'a Setup<'a>,
    blocks: usize,
    limit: u64,
    next: AtomicUsize,
    stopped: AtomicBool,
    error: Mutex<Option<(usize, Error)>>,
}

impl Module {
    /// Runs a kernel, and returns what it counted. The memory must have the variables of this module (see
    /// [`Module::memory`]).
    pub fn launch(&self, kernel: &str, launch: &Launch, memory: &Memory) -> Result<Counts, Error> {
        let program = &self.program;
        let found = program.functions.iter().position(|function| function.is_kernel && function.name == kernel);
        let Some(number) = found else { return Err(Error::at(0, format!("there is no kernel `{kernel}`"))) };
        let params = bytes_of_params(&program.functions[number].params, &launch.params)?;
        let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
        let blocks: u64 = launch.grid.iter().map(|n| u64::from(*n)).product();
        if threads == 0 || threads > 1024 || blocks == 0 {
            return Err(Error::at(0, format!("a launch of {blocks} blocks of {threads} threads")));
        }
        let workspace =
            memory.regions().iter().find(|region| region.name() == WORKSPACE).map_or(0, crate::Region::base);
        let setup = Setup {
            program,
            kernel: number,
            templates: Template::of(program),
            memory,
            grid: launch.grid,
            block: launch.block,
            params: &params,
            dynamic_shared: launch.dynamic_shared,
            workspace,
        };
        let shared = Shared {
            setup: &setup,
            blocks: blocks as usize,
            limit: if launch.limit == 0 { u64::MAX } else { launch.limit },
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            error: Mutex::new(None),
        };
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let count = if launch.threads == 0 { cores } else { launch.threads }.min(blocks as usize);
        let mut counters = Counters::new(program);
        thread::scope(|scope| {
            let workers: Vec<_> = (1..count).map(|_| scope.spawn(|| work(&shared))).collect();
            counters.merge(&work(&shared));
            for worker in workers {
                if let Ok(more) = worker.join() {
                    counters.merge(&more);
                }
            }
        });
        let error = shared.error.lock().map_or(None, |mut error| error.take());
        if let Some((_, error)) = error {
            return Err(error);
        }
        let names: Vec<&str> = memory.regions().iter().map(crate::Region::name).collect();
        Ok(Counts::of(program, &counters, &names))
    }
}

/// The name of the region for grid barriers.
pub(crate) const WORKSPACE: &str = "grid barrier";

/// The bytes of all parameters, by their offsets.
fn bytes_of_params(slots: &[crate::decode::Slot], params: &[Vec<u8>]) -> Result<Vec<u8>, Error> {
    if slots.len() != params.len() {
        return Err(Error::at(0, format!("the kernel takes {} parameters, not {}", slots.len(), params.len())));
    }
    let mut bytes = Vec::new();
    for (number, (slot, value)) in slots.iter().zip(params).enumerate() {
        if value.len() != slot.size as usize {
            let message = format!("parameter {number} has {} bytes, not {}", slot.size, value.len());
            return Err(Error::at(0, message));
        }
        bytes.resize(slot.offset as usize, 0);
        bytes.extend_from_slice(value);
    }
    Ok(bytes)
}

/// Runs blocks until there are no more.
fn work(shared: &Shared) -> Counters {
    let setup = shared.setup;
    let counters = Counters::new(setup.program);
    let mut machine = Machine { setup, memory: setup.memory, counters, clock: 0, limit: shared.limit, polls: false };
    let mut waiting = std::collections::VecDeque::new();
    while !shared.stopped.load(Relaxed) {
        // A waiting block lets one that has not begun run first: it may wait for that one.
        let next = shared.next.fetch_add(1, Relaxed);
        let (number, mut block) = if next < shared.blocks {
            (next, Block::new(&machine, next))
        } else if let Some(block) = waiting.pop_front() {
            block
        } else {
            break;
        };
        let result = block.run(&mut machine, SLICE);
        let error = match result {
            Ok(true) => None,
            Ok(false) if waiting.len() < MAX_WAITING => {
                waiting.push_back((number, block));
                None
            }
            Ok(false) => Some(Error::at(0, "too many blocks wait for each other")),
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            shared.stopped.store(true, Relaxed);
            if let Ok(mut first) = shared.error.lock()
                && first.as_ref().is_none_or(|(other, _)| number < *other)
            {
                *first = Some((number, error));
            }
        }
    }
    machine.counters
}
