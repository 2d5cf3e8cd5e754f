//! Measures on a kernel's launches which of its coarsened variants is fastest (`cuda.jit(tune=True)`).
//!
//! Each launch does its own work once, in any variant: all compute the same. Until a choice is made for its block and
//! grid size, a launch runs the candidate with the fewest launches, between two events of its stream. The host does not
//! wait for the events: a later launch polls them. A candidate's first launch does not count, because it may load code;
//! of the others, the shortest counts. Launches during a graph capture run the best candidate at that time, untimed.
//!
//! Choices are cached in the process, and on disk for kernels that are cached there.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pyo3::prelude::*;
use weft_artifact::Factors;
use weft_engine::{About, Digest, DiskCache};
use weft_runtime::{Event, Executor, LaunchConfig, Stream};

use super::coarsened::blocks;
use crate::{dispatcher::overload::Overload, engine};

/// The maximum number of candidates besides the uncoarsened kernel.
const CANDIDATES: usize = 5;
/// The number of timed launches of each candidate. The first one does not count.
const LAUNCHES: u32 = 4;
/// A candidate is dropped if its shortest time is this many times the best one's.
const MUCH_SLOWER: f32 = 2.0;
/// The uncoarsened kernel wins unless a candidate takes at most this fraction of its time: a smaller gain may be noise.
const GAIN: f32 = 0.98;
/// The maximum number of unfinished timed launches.
const MOST_PENDING: usize = 64;

/// The launches that share measurements: they have the same block size, the same power of two below their number of
/// blocks, and a grid that is divisible by the same block factors. All of them therefore have the same candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LaunchGroup {
    block: [u32; 3],
    grid: u32,
    /// Along each axis 1, 2 or 4; 1 for kernels without candidates that merge blocks.
    multiples: [u32; 3],
}

impl LaunchGroup {
    fn of(overload: &Overload, config: &LaunchConfig) -> Self {
        let merges = overload.kernel.coarsening.candidates.iter().any(|one| one.factors.blocks_in_one() > 1);
        let multiple = |extent: u32| if merges { 1 << extent.trailing_zeros().min(2) } else { 1 };
        Self { block: config.block, grid: blocks(config).max(1).ilog2(), multiples: config.grid.map(multiple) }
    }
}

/// The measurements of a kernel.
#[derive(Debug, Default)]
pub(in crate::dispatcher) struct Tunings(Mutex<TuningState>);

#[derive(Debug, Default)]
struct TuningState {
    tunings: HashMap<LaunchGroup, Arc<Tuning>>,
    /// The factors of the last launch that had a choice.
    in_use: Option<Factors>,
}

impl Tunings {
    fn lock(&self) -> MutexGuard<'_, TuningState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the variant that a launch runs.
    pub(in crate::dispatcher) fn use_now(&self, factors: Factors) {
        self.lock().in_use = Some(factors);
    }

    /// The factors of the last launch. `None` if no launch had a choice.
    pub(in crate::dispatcher) fn last(&self) -> Option<Factors> {
        self.lock().in_use
    }

    /// One line of text for each launch group.
    pub(in crate::dispatcher) fn summary(&self) -> Vec<String> {
        let tunings =
            self.lock().tunings.iter().map(|(group, tuning)| (*group, Arc::clone(tuning))).collect::<Vec<_>>();
        let mut lines: Vec<_> =
            tunings.into_iter().map(|(group, tuning)| (group, summary(group, &tuning.lock()))).collect();
        lines.sort_unstable_by_key(|(group, _)| (group.block, group.grid, group.multiples));
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

/// The measurements of one launch group.
#[derive(Debug, Default)]
struct Tuning(Mutex<Measured>);

#[derive(Debug, Default)]
struct Measured {
    /// The candidates. The uncoarsened kernel is the first.
    tried: Vec<Tried>,
    pending: Vec<Pending>,
    /// The best candidate, once it is known.
    winner: Option<usize>,
    /// Whether another process measured it.
    was_cached: bool,
}

#[derive(Debug)]
struct Tried {
    factors: Factors,
    /// The numbers of started launches and of finished timed launches.
    begun: u32,
    over: u32,
    /// The shortest time in milliseconds.
    best: f32,
    given_up: bool,
}

impl Tried {
    fn new(factors: Factors) -> Self {
        Self { factors, begun: 0, over: 0, best: f32::INFINITY, given_up: false }
    }
}

#[derive(Debug)]
struct Pending {
    candidate: usize,
    /// Whether it is the candidate's first launch.
    first: bool,
    start: Arc<dyn Event>,
    end: Arc<dyn Event>,
}

impl Measured {
    /// Reads the times of finished launches, and chooses the best candidate once all are measured.
    fn settle(&mut self, executor: &dyn Executor) {
        for Pending { candidate, first, start, end } in std::mem::take(&mut self.pending) {
            match executor.query_event(&*end) {
                Ok(false) => self.pending.push(Pending { candidate, first, start, end }),
                Ok(true) => {
                    let time = executor.elapsed_ms(&*start, &*end).ok();
                    self.tried[candidate].over += 1;
                    if let Some(time) = time.filter(|_| !first) {
                        let best = &mut self.tried[candidate].best;
                        *best = best.min(time);
                    }
                }
                // A fault of the kernel is reported where the host waits.
                Err(_) => self.tried[candidate].over += 1,
            }
        }
        let best = self.tried.iter().map(|tried| tried.best).fold(f32::INFINITY, f32::min);
        for tried in self.tried.iter_mut().skip(1) {
            tried.given_up |= tried.best.is_finite() && tried.best > best * MUCH_SLOWER;
        }
        let is_done = |tried: &Tried| tried.given_up || tried.over >= LAUNCHES;
        if self.winner.is_none() && self.tried.iter().all(is_done) {
            self.winner = Some(self.best());
        }
    }

    /// The fastest candidate measured at this point.
    fn best(&self) -> usize {
        let plain = self.tried.first().map_or(f32::INFINITY, |plain| plain.best);
        let measured = self.tried.iter().enumerate().skip(1).filter(|(_, tried)| !tried.given_up);
        let quickest = measured.min_by(|(_, a), (_, b)| a.best.total_cmp(&b.best));
        quickest.filter(|(_, tried)| plain.is_finite() && tried.best <= plain * GAIN).map_or(0, |(index, _)| index)
    }

    /// The next candidate to time, if any.
    fn next(&self) -> Option<usize> {
        if self.pending.len() >= MOST_PENDING {
            return None;
        }
        let open = self.tried.iter().enumerate().filter(|(_, tried)| !tried.given_up && tried.begun < LAUNCHES);
        open.min_by_key(|(index, tried)| (tried.begun, *index)).map(|(index, _)| index)
    }

    fn factors(&self, index: usize) -> Factors {
        self.tried.get(index).map_or(Factors::NONE, |tried| tried.factors)
    }
}

impl Tuning {
    fn lock(&self) -> MutexGuard<'_, Measured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A timed launch.
pub(in crate::dispatcher) struct Timed {
    tuning: Arc<Tuning>,
    candidate: usize,
    first: bool,
    events: Option<(Arc<dyn Event>, Arc<dyn Event>)>,
    /// Whether its result is recorded.
    noted: bool,
}

impl Timed {
    /// Records the first event, right before the launch.
    pub(in crate::dispatcher) fn begin(&mut self, executor: &dyn Executor, stream: Option<&dyn Stream>) {
        let events = || -> Result<_, weft_runtime::Error> {
            let events = (executor.new_event(true)?, executor.new_event(true)?);
            executor.record(&*events.0, stream)?;
            Ok(events)
        };
        // Without events, the launch is not timed.
        self.events = events().ok();
    }

    /// Records the second event, right after it.
    pub(in crate::dispatcher) fn end(mut self, executor: &dyn Executor, stream: Option<&dyn Stream>, launched: bool) {
        let events = self.events.take();
        let recorded = events.filter(|(_, end)| launched && executor.record(&**end, stream).is_ok());
        self.noted = true;
        let mut measured = self.tuning.lock();
        match recorded {
            Some((start, end)) => {
                measured.pending.push(Pending { candidate: self.candidate, first: self.first, start, end });
            }
            None => measured.tried[self.candidate].over += 1,
        }
    }

    /// The compiler or the device rejects the candidate.
    pub(in crate::dispatcher) fn refused(mut self) {
        self.noted = true;
        self.tuning.lock().tried[self.candidate].given_up = self.candidate > 0;
    }
}

impl Drop for Timed {
    /// A launch that failed, for example because of a wrong argument, counts as not started.
    fn drop(&mut self) {
        if !self.noted {
            self.tuning.lock().tried[self.candidate].begun -= 1;
        }
    }
}

impl Overload {
    /// The factors of a measured launch, and its timing if measurements are still needed.
    pub(in crate::dispatcher) fn tuned(
        &self,
        py: Python<'_>,
        config: &LaunchConfig,
        stream: Option<&dyn Stream>,
    ) -> (Factors, Option<Timed>) {
        let group = LaunchGroup::of(self, config);
        let tuning = self.tuning(group, config);
        {
            let measured = tuning.lock();
            if let Some(winner) = measured.winner {
                return (measured.factors(winner), None);
            }
        }
        // Query the driver with the GIL released: a thread in a callback of the driver may need it.
        py.detach(|| {
            let executor = &*self.executor;
            // Events of a capture do not measure the present. If the query fails, treat the stream as captured.
            if executor.is_captured(stream).unwrap_or(true) {
                let measured = tuning.lock();
                return (measured.factors(measured.best()), None);
            }
            let mut measured = tuning.lock();
            let is_new = measured.winner.is_none();
            measured.settle(executor);
            if let Some(winner) = measured.winner {
                let factors = measured.factors(winner);
                drop(measured);
                if is_new {
                    self.keep(group, factors);
                }
                return (factors, None);
            }
            let Some(candidate) = measured.next() else {
                return (measured.factors(measured.best()), None);
            };
            let factors = measured.factors(candidate);
            measured.tried[candidate].begun += 1;
            let first = measured.tried[candidate].begun == 1;
            drop(measured);
            (factors, Some(Timed { tuning: Arc::clone(&tuning), candidate, first, events: None, noted: false }))
        })
    }

    /// The best factors for a launch at this point.
    pub(in crate::dispatcher) fn best(&self, config: &LaunchConfig) -> Factors {
        let tuning = self.tuning(LaunchGroup::of(self, config), config);
        let measured = tuning.lock();
        measured.factors(measured.winner.unwrap_or_else(|| measured.best()))
    }

    fn tuning(&self, group: LaunchGroup, config: &LaunchConfig) -> Arc<Tuning> {
        let known = self.tunings.lock().tunings.get(&group).cloned();
        if let Some(known) = known {
            return known;
        }
        let factors = self.candidates(config).take(CANDIDATES).map(|candidate| candidate.factors);
        let tried: Vec<Tried> = std::iter::once(Factors::NONE).chain(factors).map(Tried::new).collect();
        let kept = self.kept(group);
        let kept = kept.and_then(|kept| tried.iter().position(|tried| tried.factors == kept));
        // Without alternatives there is nothing to measure.
        let winner = if tried.len() == 1 { Some(0) } else { kept };
        let measured = Measured { tried, pending: Vec::new(), winner, was_cached: kept.is_some() };
        let made = Arc::new(Tuning(Mutex::new(measured)));
        Arc::clone(self.tunings.lock().tunings.entry(group).or_insert(made))
    }

    /// The disk cache entry for a launch group's measurements, if they are cached.
    fn entry(&self, group: LaunchGroup) -> Option<(&'static DiskCache, Digest)> {
        let cache = engine::cache(&self.jit).filter(|_| self.is_lasting)?;
        let attributes = self.executor.attributes();
        let device = format!("{} {:?} {:?}", attributes.name, attributes.compute_capability, attributes.driver_version);
        let LaunchGroup { block, grid, multiples } = group;
        Some((cache, Digest::of_measurement(self.made()?.bytes(), &device, block, grid, multiples)))
    }

    fn keep(&self, group: LaunchGroup, factors: Factors) {
        if let Some((cache, key)) = self.entry(group) {
            let about = About::of(&self.kernel.name, &self.args, format!("{} measured", self.target()));
            cache.write(&key, &about, factors.to_cached().as_bytes());
        }
    }

    fn kept(&self, group: LaunchGroup) -> Option<Factors> {
        let (cache, key) = self.entry(group)?;
        Factors::from_cached(str::from_utf8(&cache.read(&key)?).ok()?)
    }
}

/// One line of text about a launch group.
fn summary(group: LaunchGroup, measured: &Measured) -> String {
    let LaunchGroup { block, grid, multiples } = group;
    let mut text = format!("blocks of {}, from 2^{grid} on: ", shown(block));
    if multiples != [1; 3] {
        let _infallible = write!(text, "grids in multiples of {}: ", shown(multiples));
    }
    match measured.winner {
        Some(winner) => {
            let from = if measured.was_cached { ", measured by another process" } else { "" };
            let _infallible = write!(text, "{} is the best{from}", measured.factors(winner));
        }
        None => text.push_str("not decided yet"),
    }
    for tried in measured.tried.iter().filter(|tried| tried.best.is_finite()) {
        let _infallible = write!(text, "; {} {:.4} ms", tried.factors, tried.best);
    }
    for tried in measured.tried.iter().filter(|tried| tried.given_up) {
        let _infallible = write!(text, "; {} given up", tried.factors);
    }
    text
}

/// `2x1x1`.
fn shown([x, y, z]: [u32; 3]) -> String {
    format!("{x}x{y}x{z}")
}
