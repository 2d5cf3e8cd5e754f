//! Clusters of blocks: they begin and end together, and their threads may wait for each other.
#![expect(
    unsafe_code,
    reason = "accesses the contexts of fibers that do not run, and the memory of a block that has ended"
)]

use std::{ptr, rc::Rc};

use weft_artifact::HostConfig;

use super::{Block, Fibers, Launch, ResumeResult, ThreadSlot};
use crate::cpu::{
    async_copies,
    block_memory::{BlockMemories, BlockMemory},
    thread_states::{ThreadState, threads_in},
};

/// The bytes of the shared memory of a block that has ended before other blocks of its cluster, which must not access it.
const ENDED: u8 = 0xCD;

impl Fibers<'_> {
    /// The number of blocks of a cluster.
    pub(super) fn cluster_size(&self) -> usize {
        self.cluster.iter().map(|&extent| extent as usize).product()
    }

    /// The memory of a cluster.
    pub(super) fn take(&self, rooms: &mut BlockMemories) -> Option<Vec<BlockMemory>> {
        let mut all = Vec::new();
        for _ in 0..self.cluster_size() {
            let Some(room) = rooms.take() else {
                rooms.free.extend(all);
                return None;
            };
            all.push(room);
        }
        Some(all)
    }

    /// Makes the threads of the blocks of a cluster.
    pub(super) fn begin_cluster(
        &self,
        cluster: u64,
        rooms: Vec<BlockMemory>,
        config: &HostConfig,
        seat: Option<&ThreadSlot>,
        checks: *mut Launch,
    ) -> Vec<Block> {
        let memory: Rc<[*mut u8]> = rooms.iter().map(|room| room.scratch.start()).collect();
        let begin = |(rank, room)| {
            let block = self.number_of(cluster, rank);
            self.begin((block, cluster, rank), Rc::clone(&memory), room, config, seat, checks)
        };
        (0..).zip(rooms).map(begin).collect()
    }

    /// The linear number of the block with a rank in a cluster.
    fn number_of(&self, cluster: u64, rank: u32) -> u64 {
        let (mut cluster, mut rank, mut number, mut stride) = (cluster, u64::from(rank), 0, 1);
        for (&extent, &blocks) in self.config.iter().zip(&self.cluster) {
            let (extent, blocks) = (u64::from(extent), u64::from(blocks));
            let clusters = extent / blocks;
            let index = cluster % clusters * blocks + rank % blocks;
            (cluster, rank) = (cluster / clusters, rank / blocks);
            number += index * stride;
            stride *= extent;
        }
        number
    }
}

/// After all blocks were resumed: lets the threads continue whose cluster is at its barrier, and those that wait for a phase of a
/// barrier test it again. Returns the result for all blocks.
pub(super) fn settle(
    live: &mut [Block],
    results: &[ResumeResult],
    scratch_bytes: usize,
    mut checks: Option<&mut Launch>,
) -> ResumeResult {
    let (mut all, mut first) = (ResumeResult::default(), 0);
    for blocks in live.chunk_by_mut(|a, b| a.cluster == b.cluster) {
        let mut result = ResumeResult::default();
        for own in &results[first..first + blocks.len()] {
            result = result.and(*own);
        }
        first += blocks.len();
        result.moved |= result.waits && result.changes > 0;
        if result.moved {
            result.moved |= meet(blocks, checks.as_deref_mut());
            poison(blocks, scratch_bytes);
        }
        let is_stuck = is_stuck(blocks, result);
        if result.waits || is_stuck {
            poll(blocks, is_stuck, checks.as_deref_mut());
        }
        all = all.and(result);
    }
    all
}

/// The indices of the blocks whose clusters have ended.
pub(super) fn ended(live: &[Block]) -> Vec<usize> {
    let (mut ended, mut first) = (Vec::new(), 0);
    for blocks in live.chunk_by(|a, b| a.cluster == b.cluster) {
        if blocks.iter().all(Block::is_done) {
            ended.extend(first..first + blocks.len());
        }
        first += blocks.len();
    }
    ended
}

/// Lets the threads of a cluster continue if all that have not returned are at its barrier.
fn meet(blocks: &mut [Block], checks: Option<&mut Launch>) -> bool {
    let is_there = |state: &ThreadState| matches!(state, ThreadState::AtCluster | ThreadState::Done);
    let meet = blocks.iter().all(|block| block.states.iter().all(is_there));
    let at_cluster = |block: &Block| threads_in(&block.states, |state| state == ThreadState::AtCluster);
    if let Some(checks) = checks.filter(|_| meet) {
        let met: Vec<_> = blocks.iter().map(|block| (block.slot, at_cluster(block))).collect();
        if met.iter().any(|(_, threads)| !threads.is_empty()) {
            checks.cluster_met(&met);
        }
    }
    let mut released = false;
    for block in blocks.iter_mut().filter(|_| meet) {
        for index in at_cluster(block) {
            block.answer_wait(index, false);
            released = true;
        }
        async_copies::synchronized(block.room.scratch.start());
        block.count_ready();
    }
    released
}

/// Overwrites the memory of blocks that have ended, if others of the cluster have not: a later access is an error of the program.
fn poison(blocks: &mut [Block], bytes: usize) {
    if blocks.iter().all(Block::is_done) {
        return;
    }
    for block in blocks.iter_mut().filter(|block| block.is_done() && !block.is_overwritten) {
        block.is_overwritten = true;
        // SAFETY: it has this number of bytes, and the block's threads have ended.
        unsafe { ptr::write_bytes(block.room.scratch.start(), ENDED, bytes) };
    }
}

/// Whether threads of a cluster wait for a phase of a barrier or for the cluster, and no thread of the cluster can run: they
/// wait forever.
fn is_stuck(blocks: &[Block], resumed: ResumeResult) -> bool {
    let can_run = |state: &ThreadState| match state {
        ThreadState::Ready | ThreadState::AtSite(_) => true,
        ThreadState::AtPhase
        | ThreadState::AtBlock
        | ThreadState::AtWarp(_)
        | ThreadState::AtCluster
        | ThreadState::AtGrid
        | ThreadState::Done => false,
    };
    let waits = |state: &ThreadState| matches!(state, ThreadState::AtPhase | ThreadState::AtCluster);
    let mut states = blocks.iter().flat_map(|block| &block.states);
    !resumed.moved && !states.clone().any(can_run) && states.any(waits)
}

/// Resumes the threads that wait for a phase of a barrier, which test it again. If no thread of the cluster can run, they
/// receive that they wait forever, or if there are none, those at the cluster's barrier do.
fn poll(blocks: &mut [Block], is_stuck: bool, mut checks: Option<&mut Launch>) {
    let at_phase = |state: &ThreadState| *state == ThreadState::AtPhase;
    let some = blocks.iter().any(|block| block.states.iter().any(at_phase));
    for block in blocks {
        if let Some(checks) = checks.as_deref_mut().filter(|_| !some) {
            checks.stuck(block.slot, &threads_in(&block.states, |state| state != ThreadState::Done));
        }
        let waiting = |state: ThreadState| if some { at_phase(&state) } else { state == ThreadState::AtCluster };
        for index in threads_in(&block.states, waiting) {
            block.answer_wait(index, is_stuck);
        }
        block.count_ready();
    }
}

impl Block {
    /// Resumes a thread that waits for a phase of a barrier or for its cluster, which receives whether it waits forever.
    fn answer_wait(&mut self, index: usize, is_stuck: bool) {
        self.states[index] = ThreadState::Ready;
        let thread = self.queue.first.wrapping_add(index);
        // SAFETY: the block's vector has a thread for each state, and this one's fiber does not run.
        unsafe { (*thread).telling.context.lanes = is_stuck.into() };
    }
}
