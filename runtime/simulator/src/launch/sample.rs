//! Samples of large launches: some blocks run, and their counts are scaled to the whole grid.
//!
//! Blocks at the edges of a grid often differ from those inside: they test bounds, and the last ones are partly idle. So
//! a grid has strata by position, on each axis the first block, the last one, and those between. Each stratum has random
//! blocks of its own, and its counts are scaled by its number of blocks. The blocks of a cluster run together: a launch with
//! clusters has strata of clusters.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use super::{Chosen, Launch, Ran, names};
use crate::{
    Module,
    count::{Counters, Counts},
    error::Error,
    memory::Memory,
    parse::Space,
};

/// Grids of at most this many blocks run as a whole, unless time is short.
const WHOLE: u64 = 64;
/// The blocks that a stratum has in the first round, and the largest stratum.
const FIRST: u64 = 2;
const FIRST_OF_LARGEST: u64 = 32;
/// No more blocks run once the relative standard error of all totals is at most this.
const PRECISE: f64 = 0.002;

/// Sums over a block or a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Warp instructions.
    pub instructions: u64,
    /// Requests of global memory, with atomics.
    pub requests: u64,
    /// Sectors of global memory.
    pub sectors: u64,
    /// Requests to L2.
    pub l2_requests: u64,
    /// Wavefronts of shared memory.
    pub wavefronts: u64,
}

/// The number of [`Totals`].
const AXES: usize = 5;

impl Totals {
    /// The totals of the accesses that are counted.
    pub(super) fn of(counters: &Counters) -> Self {
        let mut totals = Self::default();
        for (space, _, count) in counters.accesses.iter().flatten() {
            match space {
                Space::Global | Space::Generic | Space::Param => {
                    totals.requests += count.requests;
                    totals.sectors += count.sectors;
                    totals.l2_requests += count.l2_requests;
                }
                Space::Shared => totals.wavefronts += count.wavefronts,
                Space::Local | Space::Const => {}
            }
        }
        totals
    }

    pub(super) fn minus(self, before: Self) -> Self {
        Self {
            instructions: self.instructions - before.instructions,
            requests: self.requests - before.requests,
            sectors: self.sectors - before.sectors,
            l2_requests: self.l2_requests - before.l2_requests,
            wavefronts: self.wavefronts - before.wavefronts,
        }
    }

    fn values(self) -> [f64; AXES] {
        [self.instructions, self.requests, self.sectors, self.l2_requests, self.wavefronts].map(|value| value as f64)
    }
}

/// The counts of a launch of which some blocks ran.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The counts, scaled to the whole grid.
    pub counts: Counts,
    /// The blocks of the grid.
    pub blocks: u64,
    /// The blocks that ran.
    pub ran: u64,
    /// The largest relative standard error of the [`Totals`] of the launch: 0 if all blocks ran, or if all blocks of a
    /// stratum that ran have the same totals.
    pub error: f64,
}

impl Sample {
    /// The counts of a launch that ran as a whole.
    pub fn whole(counts: Counts, launch: &Launch) -> Self {
        let blocks = launch.grid.iter().map(|n| u64::from(*n)).product();
        Self { counts, blocks, ran: blocks, error: 0.0 }
    }
}

/// Blocks of similar position.
#[derive(Debug)]
struct Stratum {
    /// The first block and the number of blocks, on each axis.
    start: [u64; 3],
    extent: [u64; 3],
    drawn: HashSet<u64>,
    counters: Counters,
    totals: Vec<Totals>,
}

impl Stratum {
    fn blocks(&self) -> u64 {
        self.extent.iter().product()
    }

    /// Draws blocks that have not run, at most `count`.
    fn draw(&mut self, count: u64, grid: [u64; 3], random: &mut Random) -> Vec<u64> {
        let (blocks, [x, y, _]) = (self.blocks(), self.extent);
        let count = count.min(blocks - self.drawn.len() as u64);
        let mut chosen = Vec::with_capacity(count as usize);
        // Where most blocks are drawn, random numbers would mostly name those.
        let mut left: Vec<u64> = if 2 * (self.drawn.len() as u64 + count) > blocks {
            (0..blocks).filter(|index| !self.drawn.contains(index)).collect()
        } else {
            Vec::new()
        };
        while (chosen.len() as u64) < count {
            let index = if left.is_empty() {
                random.below(blocks)
            } else {
                left.swap_remove(random.below(left.len() as u64) as usize)
            };
            if self.drawn.insert(index) {
                let [i, j, k] = [index % x, index / x % y, index / (x * y)];
                let [i, j, k] = [self.start[0] + i, self.start[1] + j, self.start[2] + k];
                chosen.push((k * grid[1] + j) * grid[0] + i);
            }
        }
        chosen
    }

    /// The mean of each total, and the variance of the estimate of its sum over all blocks of the stratum.
    fn estimate(&self) -> ([f64; AXES], [f64; AXES]) {
        let (blocks, ran) = (self.blocks() as f64, self.totals.len() as f64);
        let mut mean = [0.0; AXES];
        for totals in &self.totals {
            mean.iter_mut().zip(totals.values()).for_each(|(mean, value)| *mean += value / ran);
        }
        let mut variance = [0.0; AXES];
        for totals in &self.totals {
            let values = totals.values();
            for (axis, variance) in variance.iter_mut().enumerate() {
                *variance += (values[axis] - mean[axis]).powi(2);
            }
        }
        let sums = mean.map(|mean| mean * blocks);
        if ran >= blocks {
            return (sums, [0.0; AXES]);
        }
        if ran < 2.0 {
            // One block says nothing about the others.
            return (sums, sums.map(|sum| sum * sum));
        }
        (sums, variance.map(|sum| sum / (ran - 1.0) / ran * blocks * blocks * (1.0 - ran / blocks)))
    }
}

/// The strata of a grid.
fn strata(grid: [u64; 3], module: &Module) -> Vec<Stratum> {
    let parts = grid.map(|n| match n {
        1 => vec![(0, 1)],
        2 => vec![(0, 1), (1, 1)],
        _ => vec![(0, 1), (1, n - 2), (n - 1, 1)],
    });
    let mut strata = Vec::new();
    for (z, depth) in &parts[2] {
        for (y, height) in &parts[1] {
            for (x, width) in &parts[0] {
                strata.push(Stratum {
                    start: [*x, *y, *z],
                    extent: [*width, *height, *depth],
                    drawn: HashSet::new(),
                    counters: Counters::new(&module.program),
                    totals: Vec::new(),
                });
            }
        }
    }
    strata
}

/// The relative standard error of each total that comes from each stratum.
fn errors(strata: &[Stratum]) -> Vec<[f64; AXES]> {
    let estimates: Vec<_> = strata.iter().map(Stratum::estimate).collect();
    let mut sums = [0.0; AXES];
    for (own, _) in &estimates {
        sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    }
    let relative = |variances: [f64; AXES]| {
        let of = |axis: usize| if sums[axis] > 0.0 { variances[axis].sqrt() / sums[axis] } else { 0.0 };
        std::array::from_fn(of)
    };
    estimates.iter().map(|(_, variances)| relative(*variances)).collect()
}

/// The largest relative standard error of the totals.
fn relative_error(strata: &[Stratum]) -> f64 {
    let mut squares = [0.0; AXES];
    for errors in errors(strata) {
        squares.iter_mut().zip(errors).for_each(|(square, error)| *square += error * error);
    }
    squares.into_iter().fold(0.0, f64::max).sqrt()
}

/// A generator of random numbers (`SplitMix64`), the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * u128::from(limit)) >> 64) as u64
    }
}

impl Module {
    /// Runs blocks of a kernel until the totals are precise, or for a time, and returns their counts scaled to the whole
    /// grid. All blocks run if they are few, and in any case at least one of each stratum. Writes of blocks that do not
    /// run are missing in the memory. `None` if a block waits for another one: such a launch cannot be sampled.
    ///
    /// # Errors
    ///
    /// As [`Module::launch`].
    pub fn sample(
        &self,
        kernel: &str,
        launch: &Launch,
        memory: &Memory,
        time: Duration,
    ) -> Result<Option<Sample>, Error> {
        let began = Instant::now();
        let prepared = self.prepare(kernel, launch, memory)?;
        let grid = prepared.extents;
        let cluster: u64 = launch.cluster.iter().map(|n| u64::from(*n)).product();
        let mut strata = strata(grid, self);
        let largest = (0..strata.len()).max_by_key(|number| strata[*number].blocks());
        let mut random = Random(1);
        // The blocks of each stratum in the next round.
        let mut wanted: Vec<u64> = (0..strata.len())
            .map(|number| match Some(number) == largest {
                _ if prepared.clusters * cluster <= WHOLE => u64::MAX,
                true => FIRST_OF_LARGEST,
                false => FIRST,
            })
            .collect();
        loop {
            let drawn: Vec<Vec<u64>> = strata
                .iter_mut()
                .zip(&wanted)
                .map(|(stratum, wanted)| stratum.draw(*wanted, grid, &mut random))
                .collect();
            let blocks = round_robin(&drawn);
            let is_first = strata.iter().all(|stratum| stratum.totals.is_empty());
            let front = if is_first { strata.len() } else { 0 };
            let chosen = Chosen { blocks: &blocks, strata: strata.len(), deadline: began + time, front };
            let Ran { counters, totals, has_waited } = self.run(launch, memory, &prepared, Some(&chosen))?;
            if has_waited {
                return Ok(None);
            }
            for (stratum, counters) in strata.iter_mut().zip(&counters) {
                stratum.counters.merge(counters);
            }
            for (stratum, totals) in totals {
                strata[stratum].totals.push(totals);
            }
            let ran: u64 = strata.iter().map(|stratum| stratum.totals.len() as u64).sum();
            let (error, elapsed) = (relative_error(&strata), began.elapsed());
            if ran == prepared.clusters || error <= PRECISE || elapsed > time {
                let mut counters = Counters::new(&self.program);
                for stratum in &mut strata {
                    stratum.counters.scale(stratum.blocks(), stratum.totals.len() as u64);
                    counters.merge(&stratum.counters);
                }
                let counts = Counts::of(&self.program, &counters, &names(memory));
                return Ok(Some(Sample { counts, blocks: prepared.clusters * cluster, ran: ran * cluster, error }));
            }
            // As many blocks again, or as the time allows; more where their variance is larger.
            let left = (time.saturating_sub(elapsed)).as_secs_f64() / elapsed.as_secs_f64().max(1e-6);
            wanted = next_round(&strata, (ran as f64 * left.min(1.0)).max(1.0));
        }
    }
}

/// The blocks of the strata in round-robin order, each with the number of its stratum: first one of each.
fn round_robin(drawn: &[Vec<u64>]) -> Vec<(u64, usize)> {
    let longest = drawn.iter().map(Vec::len).max().unwrap_or(0);
    let nth = |n: usize| drawn.iter().enumerate().filter_map(move |(number, own)| Some((*own.get(n)?, number)));
    (0..longest).flat_map(nth).collect()
}

/// How many blocks of each stratum run next: in proportion to the standard errors of the estimates.
fn next_round(strata: &[Stratum], blocks: f64) -> Vec<u64> {
    let spreads: Vec<f64> = errors(strata).iter().map(|errors| errors.iter().sum()).collect();
    let sum: f64 = spreads.iter().sum();
    let mut wanted: Vec<u64> = spreads.iter().map(|one| (blocks * one / sum).round() as u64).collect();
    let widest = (0..strata.len()).max_by(|a, b| spreads[*a].total_cmp(&spreads[*b]));
    if let Some(widest) = widest {
        wanted[widest] = wanted[widest].max(1);
    }
    wanted
}
