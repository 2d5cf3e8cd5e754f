//! The blocks of a cluster, which run at the same time.

use super::block::{Block, Round};
use crate::{
    error::Error,
    execute::{Cluster, Machine, Setup, Warp},
};

/// The times that waits for a barrier in shared memory end without success, while no barrier changes, before the launch is an
/// error: a program may poll several barriers, or a limited number of times.
const PATIENCE: u32 = 1000;

/// The blocks of a cluster, and the state that they share.
#[derive(Debug)]
pub(super) struct Blocks {
    all: Vec<Block>,
    cluster: Cluster,
    /// The waits that have ended without success since a barrier has changed, and the changes then.
    vain: u32,
    changes: u64,
}

/// The positions in the grid of the blocks of the cluster with a number, by rank.
fn positions(setup: &Setup, number: u64) -> Vec<[u32; 3]> {
    let extents: [u64; 3] = std::array::from_fn(|axis| u64::from(setup.grid[axis] / setup.cluster[axis]));
    let [x, y, _] = extents;
    let index = [number % x, number / x % y, number / (x * y)];
    let first: [u32; 3] = std::array::from_fn(|axis| index[axis] as u32 * setup.cluster[axis]);
    let [width, height, depth] = setup.cluster;
    let ranks = (0..depth).flat_map(|k| (0..height).flat_map(move |j| (0..width).map(move |i| [i, j, k])));
    ranks.map(|within| std::array::from_fn(|axis| first[axis] + within[axis])).collect()
}

impl Blocks {
    /// The blocks of the cluster with a number of the grid.
    pub(super) fn new(machine: &Machine, number: u64) -> Self {
        let all = positions(machine.setup, number).into_iter().map(|at| Block::new(machine, at)).collect();
        Self { all, cluster: Cluster::new(machine.setup), vain: 0, changes: 0 }
    }

    /// Runs all warps until they end. Returns false if the blocks seem to wait for blocks of another cluster.
    pub(super) fn run(&mut self, machine: &mut Machine, slice: u64) -> Result<bool, Error> {
        std::mem::swap(&mut machine.cluster, &mut self.cluster);
        let ended = self.run_all(machine, slice);
        if let Ok(true) = ended {
            machine.end_cluster();
        }
        std::mem::swap(&mut machine.cluster, &mut self.cluster);
        ended
    }

    fn run_all(&mut self, machine: &mut Machine, slice: u64) -> Result<bool, Error> {
        loop {
            let before = (machine.clock, machine.cluster.changes);
            let mut round = Round::default();
            for (rank, block) in self.all.iter_mut().enumerate() {
                machine.cluster.rank = rank;
                block.round(machine, slice, &mut round)?;
            }
            if round.is_done {
                return Ok(true);
            }
            if !round.progressed && round.polls {
                return Ok(false);
            }
            if !round.progressed && before == (machine.clock, machine.cluster.changes) {
                self.unblock(machine)?;
            }
        }
    }

    /// All warps wait. Lets some continue, or fails.
    fn unblock(&mut self, machine: &mut Machine) -> Result<(), Error> {
        if self.all.iter_mut().flat_map(Block::warps).any(Warp::diverge_at_phases) {
            return Ok(());
        }
        if self.changes != machine.cluster.changes {
            (self.vain, self.changes) = (0, machine.cluster.changes);
        }
        self.vain += 1;
        let mut continues = false;
        let mut error = None;
        for (rank, block) in self.all.iter_mut().enumerate() {
            machine.cluster.rank = rank;
            for warp in block.warps() {
                if self.vain > PATIENCE {
                    error = error.or_else(|| warp.stuck_at_phase(machine));
                } else {
                    continues |= warp.give_up_phases(machine)?;
                }
            }
        }
        if !continues && error.is_none() {
            for (rank, block) in self.all.iter_mut().enumerate() {
                machine.cluster.rank = rank;
                error = error.or_else(|| block.warps().find_map(|warp| warp.stuck_at_phase(machine)));
            }
        }
        if continues { Ok(()) } else { Err(error.unwrap_or_else(|| Error::at(0, "all warps of a cluster wait"))) }
    }
}
