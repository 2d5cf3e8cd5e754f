//! Measures on a kernel's launches which of its coarsened variants is fastest.
//!
//! Each launch does its own work once, in any variant: all compute the same. Some launches run between two events of
//! their stream. The host does not wait for the events: a later launch polls them. [`samples`] decides which variant a
//! timed launch runs, and which one wins. Launches during a graph capture are not timed and run the best variant at
//! that time.
//!
//! By default, the first launch compiles the kernel as written and nothing else. A later launch of the same
//! [group](LaunchGroup) has the compiler nominate candidates, which are compiled [in the
//! background](super::background). With `cuda.jit(tune=True)` the first launch gets the compiler's candidates, more of
//! them, and the launches that measure compile them.
//!
//! Choices are cached in the process, and on disk for kernels that are cached there.

mod group;
mod samples;
mod timed;

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use pyo3::prelude::*;
use weft_artifact::{Candidate, Coarsening, Factors};
use weft_engine::{About, Digest, DiskCache};
use weft_runtime::{Event, Executor, LaunchConfig, Stream};

pub(super) use self::timed::Timed;
use self::{
    group::LaunchGroup,
    samples::{Dropped, Limits, Samples},
};
use super::{
    Kind,
    background::{Estimated, Readiness},
    coarsened::threads,
};
use crate::{
    dispatcher::{
        Dispatcher,
        overload::{Overload, Resolved},
    },
    engine,
};

/// The maximum number of candidates with `tune=True`, besides the kernel as written.
const CANDIDATES: usize = 5;
/// The maximum number of candidates that are compiled in the background.
const NOMINEES: usize = 3;
/// The maximum number of these that merge blocks, if others merge threads.
const MERGED_NOMINEES: usize = 2;
/// The largest estimated time of a nominee, in thousandths of the kernel's.
const WORTH_MEASURING: u32 = 990;

/// How candidates are compiled and measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dispatcher) enum Effort {
    /// In the background, at a bounded cost: the default.
    Background,
    /// By the launches that measure them: `tune=True`.
    Foreground,
}

/// The measurements of a kernel.
#[derive(Debug, Default)]
pub(in crate::dispatcher) struct Tunings {
    state: Mutex<TuningState>,
    /// The compiler has no candidates: launches need no lookup.
    has_none: AtomicBool,
    /// The [packed](pack) factors of the last launch; 0 if no launch had a choice.
    in_use: AtomicU32,
}

#[derive(Debug, Default)]
struct TuningState {
    tunings: HashMap<LaunchGroup, Arc<Tuning>>,
}

/// Factors in one number that is not 0: two bits for the logarithm of each.
fn pack(factors: Factors) -> u32 {
    let extents = factors.threads.into_iter().chain(factors.blocks);
    extents.fold(1, |packed, factor| packed << 2 | factor.trailing_zeros() & 3)
}

fn unpack(packed: u32) -> Factors {
    let factor = |index: u32| 1 << (packed >> (2 * index) & 3);
    Factors { threads: [factor(5), factor(4), factor(3)], blocks: [factor(2), factor(1), factor(0)] }
}

impl Tunings {
    fn lock(&self) -> MutexGuard<'_, TuningState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the variant that a launch runs.
    pub(in crate::dispatcher) fn use_now(&self, factors: Factors) {
        self.in_use.store(pack(factors), Ordering::Relaxed);
    }

    /// The factors of the last launch. `None` if no launch had a choice.
    pub(in crate::dispatcher) fn last(&self) -> Option<Factors> {
        Some(self.in_use.load(Ordering::Relaxed)).filter(|packed| *packed != 0).map(unpack)
    }

    /// The lines of text for each launch group.
    pub(in crate::dispatcher) fn summary(&self) -> Vec<String> {
        let tunings =
            self.lock().tunings.iter().map(|(group, tuning)| (*group, Arc::clone(tuning))).collect::<Vec<_>>();
        let mut lines: Vec<_> =
            tunings.into_iter().map(|(group, tuning)| (group, summary(group, &tuning.lock()))).collect();
        lines.sort_unstable_by_key(|(group, _)| (group.block, group.grid, group.multiples));
        lines.into_iter().flat_map(|(_, lines)| lines).collect()
    }
}

/// The measurements of one launch group.
#[derive(Debug)]
struct Tuning(Mutex<Measured>);

#[derive(Debug)]
struct Measured {
    samples: Samples,
    pending: Vec<Pending>,
    /// The candidates that are being compiled.
    awaited: Awaited,
    /// Whether another process measured it.
    was_cached: bool,
}

/// The candidates that are not measured yet.
#[derive(Debug)]
enum Awaited {
    /// The compiler's estimate.
    Estimate,
    /// These.
    Variants(Vec<Factors>),
    /// Another thread adds candidates now.
    Elsewhere,
}

#[derive(Debug)]
struct Pending {
    candidate: usize,
    start: Arc<dyn Event>,
    end: Arc<dyn Event>,
}

impl Measured {
    /// Reads the times of finished launches.
    fn settle(&mut self, executor: &dyn Executor) {
        for Pending { candidate, start, end } in std::mem::take(&mut self.pending) {
            match executor.query_event(&*end) {
                Ok(false) => self.pending.push(Pending { candidate, start, end }),
                Ok(true) => self.samples.finished(candidate, executor.elapsed_ms(&*start, &*end).ok()),
                // A fault of the kernel is reported where the host waits.
                Err(_) => self.samples.finished(candidate, None),
            }
        }
    }
}

impl Tuning {
    fn lock(&self) -> MutexGuard<'_, Measured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The choice for a launch.
pub(super) struct Choice {
    pub(super) factors: Factors,
    /// The timing, if the launch is timed.
    pub(super) timed: Option<Timed>,
    /// Whether all further launches of the group have the same choice.
    pub(super) is_final: bool,
}

impl Choice {
    fn last(factors: Factors) -> Self {
        Self { factors, timed: None, is_final: true }
    }

    fn for_now(factors: Factors) -> Self {
        Self { factors, timed: None, is_final: false }
    }
}

impl Resolved {
    /// The factors of a launch, and its timing if measurements are still needed.
    pub(super) fn measured(
        &self,
        owner: &Bound<'_, Dispatcher>,
        effort: Effort,
        config: &LaunchConfig,
        stream: Option<&dyn Stream>,
    ) -> PyResult<Choice> {
        let (py, overload) = (owner.py(), &self.overload);
        if overload.tunings.has_none.load(Ordering::Relaxed) {
            return Ok(Choice::last(Factors::NONE));
        }
        let group = LaunchGroup::of(config);
        let tuning = overload.tuning(effort, group, config);
        {
            let mut measured = tuning.lock();
            if measured.samples.winner.is_some() {
                return Ok(Choice::last(measured.samples.factors()));
            }
            // Candidates are for kernels that are launched again.
            if measured.samples.launch() == 0 && effort == Effort::Background {
                return Ok(Choice::for_now(Factors::NONE));
            }
        }
        if effort == Effort::Background {
            overload.adopt(py, &tuning, config)?;
        }
        // Query the driver with the GIL released: a thread in a callback of the driver may need it.
        Ok(py.detach(|| overload.next(&tuning, group, stream)))
    }
}

impl Overload {
    /// The next choice, after the times of finished launches are read.
    fn next(&self, tuning: &Arc<Tuning>, group: LaunchGroup, stream: Option<&dyn Stream>) -> Choice {
        let executor = &*self.executor;
        // Events of a capture do not measure the present. If the query fails, treat the stream as captured.
        if executor.is_captured(stream).unwrap_or(true) {
            return Choice::for_now(tuning.lock().samples.factors());
        }
        let mut measured = tuning.lock();
        {
            // A query of an event would invalidate a capture of another stream.
            let _aside = executor.beside_captures();
            measured.settle(executor);
        }
        if measured.samples.winner.is_some() {
            let (factors, has_rivals) = (measured.samples.factors(), measured.samples.tried.len() > 1);
            drop(measured);
            // The caller found no winner, so the choice is new. Without rivals there was none.
            if has_rivals {
                self.keep(group, factors);
            }
            return Choice::last(factors);
        }
        let Some(candidate) = measured.samples.next() else {
            return Choice::for_now(measured.samples.factors());
        };
        measured.samples.begun(candidate);
        let factors = measured.samples.tried[candidate].factors;
        Choice { factors, timed: Some(Timed::new(Arc::clone(tuning), candidate)), is_final: false }
    }

    /// Adds the candidates that were compiled in the background since the last launch. No lock is held meanwhile: Python
    /// may run.
    fn adopt(&self, py: Python<'_>, tuning: &Tuning, config: &LaunchConfig) -> PyResult<()> {
        let awaited = std::mem::replace(&mut tuning.lock().awaited, Awaited::Elsewhere);
        let adopted = self.adopt_some(py, tuning, config, awaited);
        if adopted.is_err() {
            // Nothing more is measured.
            let mut measured = tuning.lock();
            measured.awaited = Awaited::Variants(Vec::new());
            measured.samples.complete();
        }
        adopted
    }

    /// The same; `awaited` are the candidates that are not measured yet.
    fn adopt_some(&self, py: Python<'_>, tuning: &Tuning, config: &LaunchConfig, awaited: Awaited) -> PyResult<()> {
        let awaited = match awaited {
            Awaited::Elsewhere => return Ok(()),
            Awaited::Variants(awaited) => awaited,
            Awaited::Estimate => match self.estimate(py)? {
                Estimated::Pending => {
                    tuning.lock().awaited = Awaited::Estimate;
                    return Ok(());
                }
                Estimated::Known(estimate) => self.nominees(config, &estimate),
                Estimated::Failed => Vec::new(),
            },
        };
        let (mut left, mut ready, mut rejected) = (Vec::new(), Vec::new(), Vec::new());
        for factors in awaited {
            match self.readiness(py, Kind::Coarsened(factors))? {
                Readiness::Pending => left.push(factors),
                Readiness::Available if self.can_win(py, factors, config)? => ready.push(factors),
                Readiness::Available | Readiness::Failed => rejected.push(factors),
            }
        }
        let mut measured = tuning.lock();
        for factors in ready {
            measured.samples.add(factors);
        }
        for factors in rejected {
            measured.samples.rejected(factors);
        }
        if left.is_empty() {
            measured.samples.complete();
        }
        measured.awaited = Awaited::Variants(left);
        Ok(())
    }

    /// The factors that the estimate nominates for a launch, the best ones first.
    fn nominees(&self, config: &LaunchConfig, estimate: &Coarsening) -> Vec<Factors> {
        let worth = |candidate: &&Candidate| candidate.time <= WORTH_MEASURING;
        if !estimate.candidates.iter().any(|candidate| worth(&candidate)) {
            self.tunings.has_none.store(true, Ordering::Relaxed);
        }
        let fitting = self.candidates(&estimate.candidates, config).filter(worth);
        let fitting = fitting.filter(|candidate| self.leaves_waves(config, candidate)).map(|one| one.factors);
        let (merged, threads): (Vec<_>, Vec<_>) = fitting.partition(|factors| factors.blocks_in_one() > 1);
        // The estimate is less certain about the order of the two kinds than within one.
        let of_merged = if threads.is_empty() { NOMINEES } else { MERGED_NOMINEES };
        merged.into_iter().take(of_merged).chain(threads).take(NOMINEES).collect()
    }

    /// Whether a compiled variant may be faster: not if it needs more local memory than the kernel as written, mostly for
    /// spilled registers, or if less than half as many of the program's threads are resident.
    fn can_win(&self, py: Python<'_>, factors: Factors, config: &LaunchConfig) -> PyResult<bool> {
        let Some(variant) = self.variants.coarsened.get(factors) else { return Ok(false) };
        if variant.kernel.coarsening.factors != factors {
            return Ok(false);
        }
        let (plain, variant) = (self.loaded(py)?, variant.loaded(py)?);
        let block = threads(config) / u64::from(factors.threads_in_one());
        if u64::from(variant.max_threads_per_block()) < block || variant.local_bytes() > plain.local_bytes() {
            return Ok(false);
        }
        let resident = |loaded: &dyn weft_runtime::LoadedKernel, threads: u64| {
            let threads = u32::try_from(threads).unwrap_or(u32::MAX);
            loaded
                .active_blocks(threads, config.shared_bytes)
                .map_or(0, |blocks| u64::from(blocks) * u64::from(threads))
        };
        let copies = u64::from(factors.copies());
        Ok(resident(&**variant, block) * copies * 2 >= resident(&**plain, threads(config)))
    }

    /// The best factors for a launch at this point.
    pub(in crate::dispatcher) fn best(&self, effort: Effort, config: &LaunchConfig) -> Factors {
        let tuning = self.tuning(effort, LaunchGroup::of(config), config);
        tuning.lock().samples.factors()
    }

    fn tuning(&self, effort: Effort, group: LaunchGroup, config: &LaunchConfig) -> Arc<Tuning> {
        let known = self.tunings.lock().tunings.get(&group).cloned();
        if let Some(known) = known {
            return known;
        }
        let kept = self.kept(group);
        let (mut samples, awaited) = match effort {
            Effort::Background => (Samples::new(Limits::Bounded), Awaited::Estimate),
            Effort::Foreground => {
                let mut samples = Samples::new(Limits::Unbounded);
                let candidates = self.candidates(&self.kernel.coarsening.candidates, config).take(CANDIDATES);
                candidates.for_each(|candidate| samples.add(candidate.factors));
                samples.complete();
                (samples, Awaited::Variants(Vec::new()))
            }
        };
        let was_cached = kept.is_some();
        if let Some(kept) = kept {
            let known = samples.tried.iter().position(|tried| tried.factors == kept);
            samples.winner = Some(known.unwrap_or_else(|| {
                samples.add(kept);
                samples.tried.len() - 1
            }));
        }
        let made = Arc::new(Tuning(Mutex::new(Measured { samples, pending: Vec::new(), awaited, was_cached })));
        Arc::clone(self.tunings.lock().tunings.entry(group).or_insert(made))
    }

    /// The disk cache entry for a launch group's measurements, if they are cached.
    fn entry(&self, group: LaunchGroup) -> Option<(&'static DiskCache, Digest)> {
        let cache = engine::cache(&self.jit).filter(|_| self.compiled.is_lasting)?;
        let attributes = self.executor.attributes();
        let device = format!("{} {:?} {:?}", attributes.name, attributes.compute_capability, attributes.driver_version);
        let LaunchGroup { block, grid, multiples } = group;
        Some((cache, Digest::of_measurement(self.code_bytes()?, &device, block, grid, multiples)))
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

/// The lines of text about a launch group: its choice, and what was measured.
fn summary(group: LaunchGroup, measured: &Measured) -> Vec<String> {
    let Measured { samples, awaited, was_cached, .. } = measured;
    let state = match samples.winner {
        Some(winner) => {
            let from = if *was_cached { ", measured by another process" } else { "" };
            format!("{} is used{from}", samples.tried.get(winner).map_or(Factors::NONE, |tried| tried.factors))
        }
        None => match awaited {
            Awaited::Estimate => "not measured yet".to_owned(),
            Awaited::Variants(left) if left.is_empty() => "being measured".to_owned(),
            Awaited::Variants(_) | Awaited::Elsewhere => "candidates are being compiled".to_owned(),
        },
    };
    let mut lines = vec![format!("{}: {state}", group.shown())];
    for tried in &samples.tried {
        let mut line = format!("  {}:", tried.factors);
        if let (Some(median), count) = (tried.median(), tried.samples.len()) {
            let launches = if count == 1 { "launch" } else { "launches" };
            let _infallible = write!(line, " {median:.4} ms, the median of {count} {launches}");
        }
        match tried.dropped {
            Some(Dropped::Slower) => line.push_str(", slower"),
            Some(Dropped::Rejected) => {
                line.push_str(" rejected: not compiled, or it needs too many registers or too much local memory");
            }
            None => {}
        }
        if !line.ends_with(':') {
            lines.push(line);
        }
    }
    lines
}
