//! The samples of a kernel and its candidates, and the choice: arithmetic only.
//!
//! Samples are times of the program's own launches, so a slow candidate costs the program time. [`Limits`] bound this.
//! A candidate is chosen only if its samples are clearly below those of the kernel: noise, and launches that do
//! different amounts of work, must not decide.

use weft_artifact::Factors;

/// The number of samples from which a candidate may win.
const ENOUGH: usize = 4;
/// The number of samples after which an undecided candidate loses.
const MOST: usize = 8;
/// A candidate wins if its longest sample is at most this fraction of the kernel's shortest one. With [`MOST`] samples,
/// quartiles are compared instead, so that a few outliers do not matter.
const GAIN: f32 = 0.98;
/// A candidate is dropped if its first sample is more than this multiple of the kernel's shortest one.
const MUCH_SLOWER: f32 = 1.25;
/// The maximum number of timed launches.
const MOST_TIMED: usize = 32;
/// The number of samples of the kernel before there are candidates, so that its time is known then.
const EARLY: usize = 2;
/// The time that two events add to a launch, in milliseconds.
const EVENTS_MS: f64 = 0.002;
/// The fraction of the kernel's time that measuring may cost.
const MOST_COST: f64 = 0.01;

/// How much the measurement may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limits {
    /// At most [`MOST_COST`] of the kernel's time, apart from one launch for each candidate.
    Bounded,
    /// None: the program requested the measurement (`tune=True`).
    Unbounded,
}

/// Why a candidate is not measured any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// It is slower than the kernel.
    Slower,
    /// The compiler or the device rejects it, or it needs too many resources.
    Rejected,
}

/// The kernel as written, or a candidate.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) factors: Factors,
    /// The number of started timed launches.
    begun: usize,
    /// Milliseconds.
    pub(super) samples: Vec<f32>,
    pub(super) dropped: Option<Dropped>,
}

impl Tried {
    fn new(factors: Factors) -> Self {
        Self { factors, begun: 0, samples: Vec::new(), dropped: None }
    }

    fn shortest(&self) -> Option<f32> {
        self.samples.iter().copied().min_by(f32::total_cmp)
    }

    /// The sample at this fraction of the sorted samples.
    fn quantile(&self, fraction: f32) -> Option<f32> {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        sorted.get((last as f32 * fraction).round() as usize).copied()
    }

    /// Milliseconds.
    pub(super) fn median(&self) -> Option<f32> {
        self.quantile(0.5)
    }
}

/// The samples of one launch group.
#[derive(Debug)]
pub(super) struct Samples {
    limits: Limits,
    /// The kernel as written comes first.
    pub(super) tried: Vec<Tried>,
    /// Whether no further candidate will be added.
    is_complete: bool,
    /// All launches of the group, timed or not.
    launches: u64,
    /// Milliseconds that measuring has cost.
    cost: f64,
    /// Timed launches without a time.
    failures: usize,
    /// The state of a linear congruential generator: a fixed order could have the period of the program's launches.
    random: u32,
    /// The best candidate, once it is known.
    pub(super) winner: Option<usize>,
}

impl Samples {
    pub(super) fn new(limits: Limits) -> Self {
        let tried = vec![Tried::new(Factors::NONE)];
        Self { limits, tried, is_complete: false, launches: 0, cost: 0.0, failures: 0, random: 1, winner: None }
    }

    /// Adds a candidate that can be launched.
    pub(super) fn add(&mut self, factors: Factors) {
        self.tried.push(Tried::new(factors));
    }

    /// No further candidate will be added.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
        self.decide();
    }

    /// Counts a launch; returns how many there were before.
    pub(super) fn launch(&mut self) -> u64 {
        self.launches += 1;
        self.launches - 1
    }

    pub(super) fn begun(&mut self, index: usize) {
        self.tried[index].begun += 1;
    }

    /// A launch that was begun did not take place, for example because of a wrong argument.
    pub(super) fn abandoned(&mut self, index: usize) {
        self.tried[index].begun -= 1;
    }

    /// A launch is finished, with its time in milliseconds if that is known.
    pub(super) fn finished(&mut self, index: usize, time: Option<f32>) {
        let Some(time) = time else { return self.failed(index) };
        self.tried[index].samples.push(time);
        let plain = self.tried[0].shortest().unwrap_or(time);
        self.cost += EVENTS_MS + f64::from(time - plain).max(0.0);
        if index > 0 && self.is_slower(index) {
            self.tried[index].dropped = Some(Dropped::Slower);
        }
        self.decide();
    }

    /// A launch has no time: it or its events failed. After many of these, nothing more is measured.
    fn failed(&mut self, index: usize) {
        self.tried[index].begun -= 1;
        self.failures += 1;
        if self.failures >= MOST_TIMED && self.is_complete && self.winner.is_none() {
            self.winner = Some(self.best());
        }
    }

    /// A candidate cannot be launched.
    pub(super) fn rejected(&mut self, factors: Factors) {
        match self.tried.iter_mut().skip(1).find(|tried| tried.factors == factors) {
            Some(tried) => tried.dropped = Some(Dropped::Rejected),
            None => {
                self.add(factors);
                self.tried.last_mut().into_iter().for_each(|tried| tried.dropped = Some(Dropped::Rejected));
            }
        }
        self.decide();
    }

    /// Whether a candidate cannot win any more.
    fn is_slower(&self, index: usize) -> bool {
        let (Some(plain), Some(own)) = (self.tried[0].shortest(), self.tried[index].shortest()) else { return false };
        own > plain * MUCH_SLOWER || (self.tried[index].samples.len() > 1 && own >= plain)
    }

    /// The next candidate to time, if any.
    pub(super) fn next(&mut self) -> Option<usize> {
        let timed: usize = self.tried.iter().map(|tried| tried.begun).sum();
        if self.winner.is_some() || timed >= MOST_TIMED {
            return None;
        }
        // The kernel's own time comes first: without it, no cost is known.
        if self.tried[0].begun == 0 || (self.tried.len() == 1 && self.tried[0].begun < EARLY) {
            return Some(0);
        }
        if self.tried.len() == 1 {
            return None;
        }
        let goal = self.goal();
        let is_open = |tried: &&Tried| tried.dropped.is_none() && tried.begun < goal;
        let fewest = self.tried.iter().filter(is_open).map(|tried| tried.begun).min()?;
        let open = self.tried.iter().enumerate().filter(|(_, tried)| is_open(tried) && tried.begun == fewest);
        let open: Vec<usize> = open.map(|(index, _)| index).collect();
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let next = open.get((self.random >> 16) as usize % open.len()).copied()?;
        (self.limits == Limits::Unbounded || self.is_affordable(next)?).then_some(next)
    }

    /// Whether a further sample keeps the cost below the limit, with those that are not finished. `None` if the
    /// kernel's own time is not known yet.
    fn is_affordable(&self, next: usize) -> Option<bool> {
        let plain = self.tried[0].median()?;
        // A candidate that was never timed may take twice the kernel's time.
        let expected = |tried: &Tried| {
            let own = tried.median().unwrap_or(2.0 * plain);
            EVENTS_MS + f64::from(own - plain).max(0.0)
        };
        let pending = |tried: &Tried| (tried.begun - tried.samples.len()) as f64 * expected(tried);
        let expected: f64 = expected(&self.tried[next]) + self.tried.iter().map(pending).sum::<f64>();
        let free = (self.tried.len() - 1) as f64;
        Some(self.cost + expected <= f64::from(plain) * (MOST_COST * self.launches as f64 + free) + EVENTS_MS)
    }

    /// The wanted number of samples: more if some candidate with enough samples is neither clearly faster nor slower.
    fn goal(&self) -> usize {
        let is_open = |(index, tried): (usize, &Tried)| {
            index > 0 && tried.dropped.is_none() && tried.samples.len() >= ENOUGH && !self.is_faster(index)
        };
        if self.tried.iter().enumerate().any(is_open) { MOST } else { ENOUGH }
    }

    /// Whether a candidate is faster by more than the noise.
    fn is_faster(&self, index: usize) -> bool {
        let (own, plain) = (&self.tried[index], &self.tried[0]);
        let tail = if own.samples.len().min(plain.samples.len()) >= MOST { 0.25 } else { 0.0 };
        let (own, plain) = (own.quantile(1.0 - tail), plain.quantile(tail));
        own.zip(plain).is_some_and(|(own, plain)| own <= plain * GAIN)
    }

    /// Chooses once nothing more is to be measured.
    fn decide(&mut self) {
        let goal = self.goal();
        let timed: usize = self.tried.iter().map(|tried| tried.begun).sum();
        let is_done = |tried: &Tried| tried.dropped.is_some() || tried.samples.len() >= goal || timed >= MOST_TIMED;
        let has_rivals = self.tried.iter().skip(1).any(|tried| tried.dropped.is_none());
        if self.is_complete && self.winner.is_none() && (!has_rivals || self.tried.iter().all(is_done)) {
            self.winner = Some(self.best());
        }
    }

    /// The best choice at this point: the kernel as written unless a candidate is clearly faster.
    pub(super) fn best(&self) -> usize {
        let faster = (1..self.tried.len()).filter(|index| {
            let tried = &self.tried[*index];
            tried.dropped.is_none() && tried.samples.len() >= ENOUGH && self.is_faster(*index)
        });
        let median = |index: &usize| self.tried[*index].median().unwrap_or(f32::INFINITY);
        faster.min_by(|a, b| median(a).total_cmp(&median(b))).unwrap_or(0)
    }

    /// The factors that launches run at this point.
    pub(super) fn factors(&self) -> Factors {
        self.tried.get(self.winner.unwrap_or_else(|| self.best())).map_or(Factors::NONE, |tried| tried.factors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures with the times of `time`, which gets the candidate's index and the launch's number. Returns the winner,
    /// the number of launches until it was known, and the time lost by then relative to the kernel's.
    fn measure(
        limits: Limits,
        candidates: u32,
        launches: u32,
        time: impl Fn(usize, u32) -> f32,
    ) -> (Option<usize>, u32, f64) {
        let mut samples = Samples::new(limits);
        for copies in 0..candidates {
            samples.add(Factors::of_threads([2, 1 + copies, 1]));
        }
        samples.complete();
        let (mut lost, mut all) = (0.0, 0.0);
        for launch in 0..launches {
            if samples.winner.is_some() {
                return (samples.winner, launch, lost / all);
            }
            samples.launch();
            let next = samples.next();
            let index = next.unwrap_or(0);
            let taken = time(index, launch);
            all += f64::from(time(0, launch));
            lost += f64::from(taken - time(0, launch)).max(0.0);
            if next.is_some() {
                samples.begun(index);
                samples.finished(index, Some(taken));
            }
        }
        (samples.winner, launches, lost / all)
    }

    #[test]
    fn a_clearly_faster_candidate_wins_at_once() {
        let times = [1.0, 0.9, 0.7, 1.4];
        let (winner, launches, lost) = measure(Limits::Bounded, 3, 1000, |index, _| times[index]);
        assert_eq!(winner, Some(2));
        assert!(launches <= 40, "{launches} launches");
        assert!(lost * f64::from(launches) < 1.0, "{lost}");
    }

    #[test]
    fn slow_candidates_cost_one_launch_and_a_hundredth_of_the_time() {
        for factor in [1.03, 1.2, 2.0, 5.0] {
            let (winner, launches, lost) =
                measure(Limits::Bounded, 3, 100_000, |index, _| if index == 0 { 1.0 } else { factor });
            assert_eq!(winner, Some(0));
            let most = 0.01 + 3.0 * f64::from(factor) / f64::from(launches);
            assert!(lost <= most, "{factor}: {lost} of {launches} launches");
        }
        let (winner, launches, _) = measure(Limits::Unbounded, 3, 100, |index, _| if index == 0 { 1.0 } else { 5.0 });
        assert_eq!(winner, Some(0));
        assert!(launches <= 16);
    }

    #[test]
    fn short_kernels_are_measured_more_rarely() {
        let at = |ms: f32| measure(Limits::Bounded, 1, 100_000, |index, _| if index == 0 { ms } else { ms * 0.5 });
        let (long, short) = (at(1.0), at(0.005));
        assert_eq!((long.0, short.0), (Some(1), Some(1)));
        assert!(long.1 < 20 && short.1 > 100, "{} and {} launches", long.1, short.1);
    }

    #[test]
    fn noise_does_not_decide() {
        // Launches that do different amounts of work, in a period.
        for period in 2..9 {
            let (winner, ..) = measure(Limits::Bounded, 3, 100_000, |_, launch| 1.0 + (launch % period) as f32);
            assert_eq!(winner, Some(0), "period {period}");
        }
        let noise = |index: usize, launch: u32| {
            let bits = (launch.wrapping_mul(2_654_435_761) ^ index as u32).wrapping_mul(2_246_822_519) >> 8;
            1.0 + 0.1 * bits as f32 / 16_777_216.0
        };
        let (winner, ..) = measure(Limits::Bounded, 3, 100_000, noise);
        assert_eq!(winner, Some(0));
        // A gain above the noise does.
        let (winner, ..) =
            measure(Limits::Bounded, 1, 100_000, |index, n| noise(index, n) * if index == 0 { 1.0 } else { 0.8 });
        assert_eq!(winner, Some(1));
    }

    #[test]
    fn a_gain_of_less_than_two_percent_is_none() {
        let (winner, ..) = measure(Limits::Bounded, 1, 100_000, |index, _| if index == 0 { 1.0 } else { 0.985 });
        assert_eq!(winner, Some(0));
    }

    #[test]
    fn no_more_launches_are_timed_than_the_limit() {
        let mut samples = Samples::new(Limits::Unbounded);
        for copies in 1..4 {
            samples.add(Factors::of_threads([1, copies, 2]));
        }
        samples.complete();
        let mut timed = 0;
        for launch in 0..10_000_u32 {
            samples.launch();
            if let Some(index) = samples.next() {
                samples.begun(index);
                samples.finished(index, Some(1.0 + (launch % 7) as f32 / 100.0 - index as f32 / 1000.0));
                timed += 1;
            }
        }
        assert!(timed <= MOST_TIMED, "{timed}");
        assert!(samples.winner.is_some());
    }

    #[test]
    fn launches_without_a_time_and_rejected_candidates_end_the_measurement() {
        let mut samples = Samples::new(Limits::Unbounded);
        samples.add(Factors::of_threads([2, 1, 1]));
        samples.rejected(Factors::of_threads([2, 1, 1]));
        assert_eq!(samples.winner, None);
        samples.complete();
        assert_eq!(samples.winner, Some(0));
        assert_eq!(samples.next(), None);
    }
}
