//! Executes decoded instructions for the active lanes of a warp.

mod access;
mod asynchronous;
mod atomic;
mod bytes;
mod cluster;
mod collective;
mod compare;
mod convert;
mod copies;
mod float;
mod in_flight;
mod integer;
mod lanes;
mod matrix;
mod pattern;
mod phases;
mod round;
mod simple;
mod transfer;
mod warp;
mod warpgroup;

use std::cell::RefCell;

use crate::{
    count::{Counters, Loaded},
    decode::{Program, Special},
    memory::Memory,
};
pub(crate) use cluster::Cluster;
#[cfg(test)]
pub(crate) use lanes::mask_of;
pub(crate) use warp::{Arrival, Stop, Warp};

/// The dimensions, parameters and memory of a launch.
#[derive(Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) program: &'a Program,
    pub(crate) kernel: usize,
    pub(crate) templates: Vec<Template>,
    pub(crate) memory: &'a Memory,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// The blocks of a cluster.
    pub(crate) cluster: [u32; 3],
    pub(crate) params: &'a [u8],
    pub(crate) dynamic_shared: u32,
    /// The address of the workspace of grid barriers.
    pub(crate) workspace: u64,
}

/// The registers with which a frame of a function begins.
#[derive(Debug)]
pub(crate) struct Template {
    words: Vec<[u32; 32]>,
    longs: Vec<[u64; 32]>,
    predicates: Vec<u32>,
}

impl Template {
    pub(crate) fn of(program: &Program) -> Vec<Self> {
        let one = |function: &crate::decode::Function| {
            let mut template = Self {
                words: vec![[0; 32]; function.words as usize],
                longs: vec![[0; 32]; function.longs as usize],
                predicates: vec![0; function.predicates as usize],
            };
            for (register, value) in &function.word_constants {
                template.words[*register as usize] = [*value; 32];
            }
            for (register, value) in &function.long_constants {
                template.longs[*register as usize] = [*value; 32];
            }
            for (register, value) in &function.predicate_constants {
                template.predicates[*register as usize] = if *value { u32::MAX } else { 0 };
            }
            template
        };
        program.functions.iter().map(one).collect()
    }
}

/// The state of one thread of the simulator.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) setup: &'a Setup<'a>,
    pub(crate) memory: &'a Memory,
    pub(crate) counters: Counters,
    /// Warp instructions of this thread: the value of clocks.
    pub(crate) clock: u64,
    /// The greatest value of the clock.
    pub(crate) limit: u64,
    /// An instruction ran that may wait for other threads: an atomic that changed nothing, a volatile load, a sleep.
    pub(crate) polls: bool,
    /// The cluster whose blocks run.
    pub(crate) cluster: Cluster,
    /// The sectors of global memory in the block's part of L1.
    pub(crate) loaded: Loaded,
    /// The patterns of the accesses of each instruction.
    patterns: Vec<pattern::Patterns>,
    /// Frames of warps that have ended, whose memory the next ones use.
    #[expect(clippy::vec_box, reason = "warps hold boxes, which are not copied")]
    frames: RefCell<Vec<Box<warp::Frame>>>,
}

impl<'a> Machine<'a> {
    /// A machine that has run nothing, with an L1 of some sectors.
    pub(crate) fn new(setup: &'a Setup<'a>, limit: u64, l1_sectors: u64) -> Self {
        let counters = Counters::new(setup.program);
        let mut patterns = Vec::new();
        patterns.resize_with(counters.guarded.len(), pattern::Patterns::default);
        let loaded = Loaded::new(l1_sectors);
        Self {
            setup,
            memory: setup.memory,
            counters,
            clock: 0,
            limit,
            polls: false,
            cluster: Cluster::default(),
            loaded,
            patterns,
            frames: RefCell::default(),
        }
    }
}

/// The local memory of a warp: a stack of frames for each lane.
#[derive(Debug, Default)]
pub(crate) struct Local {
    bytes: Vec<u8>,
    /// The bytes of one lane.
    stride: usize,
}

impl Local {
    /// Makes sure that each lane has some bytes.
    fn reserve(&mut self, size: usize) {
        if size <= self.stride {
            return;
        }
        let stride = (2 * size).next_multiple_of(64);
        let mut bytes = vec![0; 32 * stride];
        for lane in 0..32 {
            let own = &self.bytes[lane * self.stride..(lane + 1) * self.stride];
            bytes[lane * stride..lane * stride + self.stride].copy_from_slice(own);
        }
        (self.bytes, self.stride) = (bytes, stride);
    }
}

/// What an instruction accesses besides its frame.
#[derive(Debug)]
pub(crate) struct Context<'m, 'a> {
    pub(crate) machine: &'m mut Machine<'a>,
    /// The shared memory of the block.
    pub(crate) shared: &'m mut [u8],
    local: &'m mut Local,
    /// The counter of the current instruction.
    counter: usize,
    /// The patterns of the accesses of each instruction.
    patterns: &'m mut [pattern::Patterns],
    /// The position of the block in the grid.
    block: [u32; 3],
    /// The number of the warp in its block.
    warp: u32,
}

/// The positions of the threads of a warp in their block, by axis.
fn positions([x, y, _]: [u32; 3], warp: u32) -> [[u32; 32]; 3] {
    let first = warp * 32;
    let mut at = [first % x, first / x % y, first / (x * y)];
    let mut positions = [[0; 32]; 3];
    let [on_x, on_y, on_z] = &mut positions;
    for ((on_x, on_y), on_z) in on_x.iter_mut().zip(on_y).zip(on_z) {
        [*on_x, *on_y, *on_z] = at;
        at[0] += 1;
        if at[0] == x {
            at = [0, at[1] + 1, at[2]];
            if at[1] == y {
                at = [0, 0, at[2] + 1];
            }
        }
    }
    positions
}

/// The values of a special register in a warp of a block.
fn special(setup: &Setup, special: Special, warp: u32, block: [u32; 3]) -> [u32; 32] {
    let threads: u32 = setup.block.iter().product();
    let lane = |f: fn(u32) -> u32| std::array::from_fn(|lane| f(lane as u32));
    match special {
        Special::Tid(axis) => positions(setup.block, warp)[axis as usize],
        Special::Ntid(axis) => [setup.block[axis as usize]; 32],
        Special::Ctaid(axis) => [block[axis as usize]; 32],
        Special::Nctaid(axis) => [setup.grid[axis as usize]; 32],
        Special::LaneId => lane(|lane| lane),
        Special::WarpId => [warp; 32],
        Special::NWarpId => [threads.div_ceil(32); 32],
        Special::LaneMaskEq => lane(|lane| 1 << lane),
        Special::LaneMaskLe => lane(|lane| u32::MAX >> (31 - lane)),
        Special::LaneMaskLt => lane(|lane| (1 << lane) - 1),
        Special::LaneMaskGe => lane(|lane| u32::MAX << lane),
        Special::LaneMaskGt => lane(|lane| !(u32::MAX >> (31 - lane))),
        Special::ClusterId(axis) => [block[axis as usize] / setup.cluster[axis as usize]; 32],
        Special::NClusterId(axis) => [setup.grid[axis as usize] / setup.cluster[axis as usize]; 32],
        Special::ClusterCtaId(axis) => [block[axis as usize] % setup.cluster[axis as usize]; 32],
        Special::ClusterNctaId(axis) => [setup.cluster[axis as usize]; 32],
        Special::ClusterCtaRank => {
            let [x, y, z] = std::array::from_fn(|axis| block[axis] % setup.cluster[axis]);
            [(z * setup.cluster[1] + y) * setup.cluster[0] + x; 32]
        }
        Special::ClusterNctaRank => [setup.cluster.iter().product(); 32],
        Special::Zero => [0; 32],
        Special::One => [1; 32],
        Special::DynamicSharedSize => [setup.dynamic_shared; 32],
        Special::TotalSharedSize => [setup.program.static_shared + setup.dynamic_shared; 32],
        Special::Workspace(true) => [(setup.workspace >> 32) as u32; 32],
        Special::Workspace(false) => [setup.workspace as u32; 32],
    }
}
