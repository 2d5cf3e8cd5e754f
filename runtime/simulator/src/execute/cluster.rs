//! The state that the blocks of a cluster share: their shared memory, its barriers, the copies that are not made yet, and the
//! barrier of the cluster. A launch without clusters has clusters of one block.

use std::collections::HashMap;

use super::{Setup, copies::Groups, phases::Barrier};
use crate::decode::RANK_SHIFT;

/// The warps of a warpgroup.
const WARPS: usize = 4;
/// The offset in an address of `shared::cluster`.
const OFFSET: u64 = (1 << RANK_SHIFT) - 1;

/// A position in the shared memory of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct At {
    pub(super) rank: usize,
    pub(super) offset: u64,
}

/// The threads of a warp at the cluster's barrier, and its products.
#[derive(Debug, Clone, Copy, Default)]
struct Lanes {
    /// Those that have not ended.
    live: u32,
    /// Those that have arrived in the current phase.
    arrived: u32,
    /// Those that have arrived, and have not waited for it yet.
    waits: u32,
    /// Those of them that have arrived in a phase with an odd number.
    parity: u32,
    /// The products of its warpgroup that it has executed.
    products: u64,
    /// That number at the latest commits, the last one first.
    committed: [u64; 8],
}

/// The state of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    /// The shared memory of each block.
    pub(super) memory: Vec<Vec<u8>>,
    /// The rank of the block that runs.
    pub(crate) rank: usize,
    /// The number of times that a barrier has changed.
    pub(crate) changes: u64,
    pub(super) barriers: HashMap<At, Barrier>,
    /// The copies to global memory of each thread, by the block's rank and the thread's number in the block.
    pub(super) groups: HashMap<(usize, u32), Groups>,
    /// The warps of each block.
    warps: Vec<Vec<Lanes>>,
    /// The completed phases of the cluster's barrier.
    phase: u64,
}

impl Cluster {
    pub(crate) fn new(setup: &Setup) -> Self {
        let blocks = setup.cluster.iter().product::<u32>() as usize;
        let threads: u32 = setup.block.iter().product();
        let lanes = |warp: u32| u32::MAX >> (32 - (threads - 32 * warp).min(32));
        let warps = (0..threads.div_ceil(32)).map(|warp| Lanes { live: lanes(warp), ..Lanes::default() }).collect();
        let bytes = (setup.program.static_shared + setup.dynamic_shared) as usize;
        Self { memory: vec![vec![0; bytes]; blocks], warps: vec![warps; blocks], ..Self::default() }
    }

    /// The number of blocks.
    pub(super) fn size(&self) -> usize {
        self.memory.len()
    }

    /// The position of an address of shared memory.
    pub(super) fn at(&self, address: u64) -> At {
        match address >> RANK_SHIFT {
            0 => At { rank: self.rank, offset: address },
            rank => At { rank: rank as usize - 1, offset: address & OFFSET },
        }
    }

    /// The address of a position.
    pub(super) fn address(at: At) -> u64 {
        (at.rank as u64 + 1) << RANK_SHIFT | at.offset
    }

    /// Whether an address is in the memory of another block.
    pub(super) fn is_remote(&self, address: u64) -> bool {
        address >> RANK_SHIFT != 0 && self.at(address).rank != self.rank
    }

    /// Why a thread cannot access some bytes.
    pub(super) fn fault(&self, at: At, size: u64) -> Option<String> {
        let Some(warps) = self.warps.get(at.rank) else {
            return Some(format!("there is no block {} in a cluster of {}", at.rank, self.size()));
        };
        if at.rank != self.rank && warps.iter().all(|lanes| lanes.live == 0) {
            return Some(format!(
                "an access of the shared memory of block {} of the cluster, which has ended",
                at.rank
            ));
        }
        let len = self.memory[at.rank].len();
        let is_inside = at.offset.checked_add(size).is_some_and(|end| end <= len as u64);
        (!is_inside).then(|| {
            format!("an access of {size} bytes at {:#x} is outside of the {len} bytes of shared memory", at.offset)
        })
    }

    /// Bytes of a position, which [`Self::fault`] has checked.
    pub(super) fn bytes(&mut self, at: At, size: usize) -> &mut [u8] {
        &mut self.memory[at.rank][at.offset as usize..at.offset as usize + size]
    }

    /// Threads of the block that runs have ended.
    pub(super) fn exit(&mut self, warp: u32, ended: u32) {
        self.warps[self.rank][warp as usize].live &= !ended;
        self.complete();
    }

    /// Threads arrive at the cluster's barrier.
    pub(super) fn arrive(&mut self, warp: u32, mask: u32) -> Result<(), (u32, &'static str)> {
        let phase = self.phase;
        let lanes = &mut self.warps[self.rank][warp as usize];
        let twice = lanes.waits & mask;
        if twice != 0 {
            let message = "a thread arrives at the barrier of its cluster again before it has waited";
            return Err((twice.trailing_zeros(), message));
        }
        lanes.arrived |= mask;
        lanes.waits |= mask;
        lanes.parity = lanes.parity & !mask | if phase & 1 == 0 { 0 } else { mask };
        self.complete();
        Ok(())
    }

    /// Whether the phases in which threads have arrived are complete. Then they wait no longer.
    pub(super) fn wait(&mut self, warp: u32, mask: u32) -> Result<bool, (u32, &'static str)> {
        let current = if self.phase & 1 == 0 { 0 } else { u32::MAX };
        let lanes = &mut self.warps[self.rank][warp as usize];
        let without = mask & !lanes.waits;
        if without != 0 {
            let message = "a thread waits at the barrier of its cluster, but has not arrived";
            return Err((without.trailing_zeros(), message));
        }
        // A thread that has arrived is at most one phase behind.
        let is_complete = (lanes.parity ^ current) & mask == mask;
        if is_complete {
            lanes.waits &= !mask;
        }
        Ok(is_complete)
    }

    /// A warp has executed an instruction for a product of its warpgroup.
    pub(super) fn multiplied(&mut self, warp: u32) {
        self.warps[self.rank][warp as usize].products += 1;
    }

    /// A warp has made a group of its products.
    pub(super) fn commit_products(&mut self, warp: u32) {
        let lanes = &mut self.warps[self.rank][warp as usize];
        lanes.committed.rotate_right(1);
        lanes.committed[0] = lanes.products;
    }

    /// Whether the other warps of its warpgroup have executed the products of a warp but its latest groups, which are complete
    /// then.
    pub(super) fn has_products(&self, warp: u32, pending: usize) -> bool {
        let (warps, warp) = (&self.warps[self.rank], warp as usize);
        let group = warps.iter().skip(warp / WARPS * WARPS).take(WARPS);
        group.filter(|lanes| lanes.live != 0).all(|lanes| lanes.products >= warps[warp].committed[pending])
    }

    /// Completes the phase of the cluster's barrier if all threads that have not ended have arrived.
    fn complete(&mut self) {
        let mut all = self.warps.iter_mut().flatten();
        let is_complete = all.all(|lanes| lanes.live & !lanes.arrived == 0);
        let mut all = self.warps.iter_mut().flatten();
        if is_complete && all.any(|lanes| lanes.arrived != 0) {
            self.warps.iter_mut().flatten().for_each(|lanes| lanes.arrived = 0);
            self.phase += 1;
            self.changes += 1;
        }
    }
}
