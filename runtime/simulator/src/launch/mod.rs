//! Launches: the blocks of a grid on several threads, and the sum of their counts.
//!
//! Each thread takes the next block of the grid. The counts are sums, so they do not depend on the order of blocks,
//! except where blocks wait for each other.

mod block;
mod cluster;
mod sample;

use std::{
    mem::swap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};

use crate::{
    Module,
    count::{Counters, Counts},
    error::Error,
    execute::{Machine, Setup, Template},
    memory::Memory,
};
use cluster::Blocks;
pub use sample::{Sample, Totals};

/// Warp instructions after which a block that waits lets others run.
const SLICE: u64 = 200_000;
/// Blocks of one thread that may wait for other blocks.
const MAX_WAITING: usize = 4096;

/// The most blocks of a cluster.
const MOST_BLOCKS: u32 = 16;

/// The configuration of a launch.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The blocks of the grid.
    pub grid: [u32; 3],
    /// The threads of a block.
    pub block: [u32; 3],
    /// The blocks of a cluster, which divides the grid; `[1, 1, 1]` without clusters.
    pub cluster: [u32; 3],
    /// The bytes of each parameter of the kernel, in order.
    pub params: Vec<Vec<u8>>,
    /// The bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Threads of the simulator; 0 for one on each core.
    pub threads: usize,
    /// The sectors of L1 that a block has, of its multiprocessor's; with 0, loads from L2 are not counted.
    pub l1_sectors: u64,
    /// Warp instructions of one thread after which the launch is an error; 0 for no limit.
    pub limit: u64,
}

impl Launch {
    /// A launch with a grid and a block, on all cores.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            cluster: [1; 3],
            params: Vec::new(),
            dynamic_shared: 0,
            threads: 0,
            l1_sectors: 0,
            limit: 0,
        }
    }
}

/// State that the threads of a launch share.
struct Shared<'a> {
    setup: &'a Setup<'a>,
    /// The clusters to run; `None` for all.
    chosen: Option<&'a Chosen<'a>>,
    count: u64,
    l1_sectors: u64,
    limit: u64,
    next: AtomicU64,
    stopped: AtomicBool,
    error: Mutex<Option<(u64, Error)>>,
}

/// Clusters of a launch that run without the others.
struct Chosen<'a> {
    /// The number of each cluster, and that of its stratum.
    blocks: &'a [(u64, usize)],
    strata: usize,
    /// The time from which on no block begins, except those at the front of the list.
    deadline: Instant,
    front: usize,
}

/// What blocks of a launch counted.
#[derive(Debug)]
struct Ran {
    /// For each stratum.
    counters: Vec<Counters>,
    /// The stratum and the totals of each block that ran, in no order. Empty if all blocks ran.
    totals: Vec<(usize, Totals)>,
    /// One of the chosen blocks waited for another block.
    has_waited: bool,
}

/// A launch whose arguments are checked.
struct Prepared {
    number: usize,
    params: Vec<u8>,
    /// The number of clusters, and the clusters of the grid on each axis.
    clusters: u64,
    extents: [u64; 3],
    workspace: u64,
}

impl Module {
    /// Runs a kernel, and returns what it counted. The memory must have the variables of this module (see
    /// [`Module::memory`]).
    pub fn launch(&self, kernel: &str, launch: &Launch, memory: &Memory) -> Result<Counts, Error> {
        let prepared = self.prepare(kernel, launch, memory)?;
        let ran = self.run(launch, memory, &prepared, None)?;
        Ok(Counts::of(&self.program, &ran.counters[0], &names(memory)))
    }

    /// Checks the arguments of a launch.
    fn prepare(&self, kernel: &str, launch: &Launch, memory: &Memory) -> Result<Prepared, Error> {
        let functions = &self.program.functions;
        let found = functions.iter().position(|function| function.is_kernel && function.name == kernel);
        let Some(number) = found else { return Err(Error::at(0, format!("there is no kernel `{kernel}`"))) };
        let params = bytes_of_params(&functions[number].params, &launch.params)?;
        let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
        let blocks: u64 = launch.grid.iter().map(|n| u64::from(*n)).product();
        if threads == 0 || threads > 1024 || blocks == 0 {
            return Err(Error::at(0, format!("a launch of {blocks} blocks of {threads} threads")));
        }
        let divides = |(extent, cluster): (&u32, &u32)| *cluster > 0 && extent.is_multiple_of(*cluster);
        let size: u32 = launch.cluster.iter().product();
        if size > MOST_BLOCKS {
            return Err(Error::at(0, format!("a cluster has at most {MOST_BLOCKS} blocks, not {size}")));
        }
        if !launch.grid.iter().zip(&launch.cluster).all(divides) {
            let shown = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
            let (grid, cluster) = (shown(launch.grid), shown(launch.cluster));
            let message =
                format!("grid {grid} is not divisible into clusters {cluster}: make each dimension a multiple");
            return Err(Error::at(0, message));
        }
        let extents = std::array::from_fn(|axis| u64::from(launch.grid[axis] / launch.cluster[axis]));
        let workspace =
            memory.regions().iter().find(|region| region.name() == WORKSPACE).map_or(0, crate::Region::base);
        Ok(Prepared { number, params, clusters: extents.iter().product(), extents, workspace })
    }

    /// Runs the chosen blocks, or all.
    fn run(
        &self,
        launch: &Launch,
        memory: &Memory,
        prepared: &Prepared,
        chosen: Option<&Chosen>,
    ) -> Result<Ran, Error> {
        let program = &self.program;
        let setup = Setup {
            program,
            kernel: prepared.number,
            templates: Template::of(program),
            memory,
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            params: &prepared.params,
            dynamic_shared: launch.dynamic_shared,
            workspace: prepared.workspace,
        };
        let count = chosen.map_or(prepared.clusters, |chosen| chosen.blocks.len() as u64);
        let shared = Shared {
            setup: &setup,
            chosen,
            count,
            l1_sectors: launch.l1_sectors,
            limit: if launch.limit == 0 { u64::MAX } else { launch.limit },
            next: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            error: Mutex::new(None),
        };
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if launch.threads == 0 { cores } else { launch.threads }.min(count as usize);
        let mut ran = Ran::new(&shared);
        thread::scope(|scope| {
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(|| work(&shared))).collect();
            ran.merge(work(&shared));
            for worker in workers {
                if let Ok(more) = worker.join() {
                    ran.merge(more);
                }
            }
        });
        let error = shared.error.lock().map_or(None, |mut error| error.take());
        if let Some((_, error)) = error {
            return Err(error);
        }
        Ok(ran)
    }
}

impl Ran {
    fn new(shared: &Shared) -> Self {
        let strata = shared.chosen.map_or(1, |chosen| chosen.strata);
        let counters = (0..strata).map(|_| Counters::new(shared.setup.program)).collect();
        Self { counters, totals: Vec::new(), has_waited: false }
    }

    fn merge(&mut self, mut other: Self) {
        for (own, more) in self.counters.iter_mut().zip(&other.counters) {
            own.merge(more);
        }
        self.totals.append(&mut other.totals);
        self.has_waited |= other.has_waited;
    }
}

/// The names of the regions, by their numbers.
fn names(memory: &Memory) -> Vec<&str> {
    memory.regions().iter().map(crate::Region::name).collect()
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
fn work(shared: &Shared) -> Ran {
    let setup = shared.setup;
    let mut ran = Ran::new(shared);
    let mut machine = Machine::new(setup, shared.limit, shared.l1_sectors);
    let mut waiting = std::collections::VecDeque::new();
    while !shared.stopped.load(Relaxed) {
        // A waiting block lets one that has not begun run first: it may wait for that one.
        let next = shared.next.fetch_add(1, Relaxed);
        let (number, stratum, mut block) = if next < shared.count {
            let (number, stratum) = match shared.chosen {
                Some(chosen) if next as usize >= chosen.front && Instant::now() > chosen.deadline => break,
                Some(chosen) => chosen.blocks[next as usize],
                None => (next, 0),
            };
            (number, stratum, Blocks::new(&machine, number))
        } else if let Some(block) = waiting.pop_front() {
            block
        } else {
            break;
        };
        let clock = machine.clock;
        swap(&mut machine.counters, &mut ran.counters[stratum]);
        let before = shared.chosen.map(|_| Totals::of(&machine.counters));
        machine.loaded.clear();
        let result = block.run(&mut machine, SLICE);
        if let Some(before) = before {
            let totals = Totals::of(&machine.counters).minus(before);
            ran.totals.push((stratum, Totals { instructions: machine.clock - clock, ..totals }));
        }
        swap(&mut machine.counters, &mut ran.counters[stratum]);
        let error = match result {
            Ok(true) => None,
            Ok(false) if shared.chosen.is_some() => {
                // The block that it waits for may not be among the chosen ones.
                ran.has_waited = true;
                shared.stopped.store(true, Relaxed);
                None
            }
            Ok(false) if waiting.len() < MAX_WAITING => {
                waiting.push_back((number, stratum, block));
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
    ran
}
