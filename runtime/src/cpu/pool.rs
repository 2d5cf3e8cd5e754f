//! The thread pool. It runs the blocks of a launch, and the chunks of a large copy (a GPU's as well) as if they were
//! blocks.
//!
//! - The calling thread takes part. It runs a short launch alone without waking other threads, unless threads are
//!   polling for work anyway; `crew.rs` has the threads.
//! - Threads start at the first launch that needs them. A launch uses as many as it has work for.
//! - One launch at a time uses the threads; others wait, except copies, which then do without them.
//! - Each thread has a share of the blocks, which it takes in chunks of decreasing size. Then it steals from other
//!   shares. That takes few atomic operations, and all threads end at about the same time.
//! - While a launch waits or runs, its caller polls whether to continue; see `interrupt.rs`.
//! - A forked process starts with no threads, whatever its parent was doing.
#![expect(unsafe_code, reason = "gives a launch on the caller's stack to other threads")]

use std::{
    fmt,
    mem::transmute,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    ptr::{self, NonNull},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use weft_artifact::HostWatch;

use super::{
    crew::{Crew, CrewGuard, Job},
    interrupt::Caller,
};
use crate::{
    error::{Error, ErrorKind},
    executor::Poll,
};

/// A launch that should be over within this time runs on the calling thread: waking others takes longer.
const ALONE: Duration = Duration::from_micros(20);
/// The same while threads are polling for work and start immediately.
const ALONE_BESIDE: Duration = Duration::from_micros(5);
/// The least work per thread of a launch.
const SHARE: Duration = Duration::from_micros(3);
/// The least work in a chunk: taking a chunk costs a tenth of that.
const CHUNK: Duration = Duration::from_micros(1);
/// The work in a thread's first chunk, estimated from earlier launches.
const FIRST: Duration = Duration::from_micros(20);
/// The interval at which the calling thread reads the clock while it works alone.
const LOOK: Duration = Duration::from_micros(10);
/// A calling thread that has worked alone for this long wakes others for the rest.
const ENOUGH: Duration = Duration::from_micros(40);
/// The time that a thread works before it checks whether the launch was stopped.
const GLANCE: Duration = Duration::from_millis(10);
/// Each chunk is this fraction of a share's remaining blocks.
const CHUNKS_PER_SHARE: u64 = 4;
/// The blocks of one launch.
pub(crate) trait Work: Sync {
    /// How many blocks a thread may take at once.
    fn at_once(&self) -> u64 {
        u64::MAX
    }

    /// Runs the ranges of blocks that `next` returns, on this thread, until it returns none. `false` if this thread
    /// lacks the memory for it; it has then taken no range. `watch` is for code inside of a range that may run for
    /// long.
    fn run(&self, next: &mut dyn FnMut() -> Option<Range<u64>>, watch: *const HostWatch) -> bool;
}

/// The measured cost of a kernel's block, in picoseconds; 0 before the first launch.
#[derive(Debug, Default)]
pub(super) struct Cost(AtomicU64);

impl Cost {
    /// Less than before counts at once, more little by little: a launch may find its data in another core's cache, or lose
    /// its core for a while.
    fn note(&self, time: Duration, n_blocks: u64) {
        let Some(each) = (time.as_nanos() as u64 * 1000).checked_div(n_blocks) else { return };
        let before = self.0.load(Ordering::Relaxed);
        let now = if before == 0 || each <= before { each } else { before + (each - before).div_ceil(4) };
        self.0.store(now.max(1), Ordering::Relaxed);
    }

    /// How many blocks there should be to a time, if that is known.
    pub(super) fn blocks_in(&self, time: Duration) -> Option<u64> {
        (time.as_nanos() as u64 * 1000).checked_div(self.0.load(Ordering::Relaxed))
    }
}

/// The remaining blocks of one thread's share.
#[derive(Debug)]
#[repr(align(128))] // a cache line of its own, since its thread writes to it, and at the end others
struct Share {
    next: AtomicU64,
    end: u64,
}

impl Share {
    fn left(&self) -> u64 {
        self.end - self.next.load(Ordering::Relaxed)
    }

    /// Takes the next chunk, of `least` to `most` blocks. The crew's words, not this counter, synchronize the blocks'
    /// writes.
    fn take(&self, least: u64, most: u64) -> Option<Range<u64>> {
        let mut first = self.next.load(Ordering::Relaxed);
        loop {
            let left = self.end - first;
            if left == 0 {
                return None;
            }
            let last = first + (left / CHUNKS_PER_SHARE).max(least).min(most).min(left);
            match self.next.compare_exchange_weak(first, last, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(first..last),
                Err(now) => first = now,
            }
        }
    }
}

/// Hands out blocks. Each thread has a share, the same in each launch of as many blocks, so that it finds what it has written
/// before in its core's cache; one whose share is done takes from those of others.
#[derive(Debug)]
pub(super) struct Blocks {
    shares: Vec<Share>,
    /// The number of exhausted shares. A check of all shares by the last thread would take as long as a small launch.
    done: AtomicUsize,
    /// How many blocks a chunk should have.
    least: u64,
    /// How many a thread begins with.
    first: u64,
}

impl Blocks {
    fn new(range: Range<u64>, n_shares: usize, cost: &Cost) -> Self {
        let (n_blocks, n) = (range.end - range.start, n_shares as u64);
        let (each, more) = (n_blocks / n, n_blocks % n);
        let first = |number: u64| range.start + number * each + number.min(more);
        let share = |number| Share { next: AtomicU64::new(first(number)), end: first(number + 1) };
        Self {
            shares: (0..n).map(share).collect(),
            done: AtomicUsize::new(0),
            least: cost.blocks_in(CHUNK).unwrap_or(1).max(1),
            first: cost.blocks_in(FIRST).unwrap_or(1).max(1),
        }
    }

    fn left(&self) -> u64 {
        self.shares.iter().map(Share::left).sum()
    }

    /// The shares for the thread with this number: its own share first.
    pub(super) fn of(&self, thread: usize) -> Hand<'_> {
        Hand { blocks: self, at: thread % self.shares.len(), pace: Pace::start(self.first) }
    }
}

/// A thread's way through the shares.
#[derive(Debug)]
pub(super) struct Hand<'a> {
    blocks: &'a Blocks,
    at: usize,
    pace: Pace,
}

impl Hand<'_> {
    /// The next chunk, of at most `most` blocks.
    pub(super) fn take(&mut self, most: u64) -> Option<Range<u64>> {
        let Blocks { shares, done, least, .. } = self.blocks;
        let most = self.pace.next().min(most);
        for _ in 0..shares.len() {
            if let Some(chunk) = shares[self.at].take(*least, most) {
                if chunk.end == shares[self.at].end {
                    done.fetch_add(1, Ordering::Relaxed);
                }
                return Some(chunk);
            }
            if done.load(Ordering::Relaxed) == shares.len() {
                break;
            }
            self.at = (self.at + 1) % shares.len();
        }
        None
    }
}

/// Limits the blocks that a thread takes at once, so that it polls in time. The cost of earlier launches predicts this
/// one badly, so each thread begins with a small chunk.
#[derive(Debug)]
struct Pace {
    most: u64,
    last: Instant,
}

impl Pace {
    fn start(most: u64) -> Self {
        Self { most, last: Instant::now() }
    }

    fn next(&mut self) -> u64 {
        let now = Instant::now();
        let took = now.duration_since(self.last);
        self.last = now;
        if took < GLANCE / 2 {
            self.most = self.most.saturating_mul(2);
        } else if took > GLANCE {
            self.most = (self.most / 2).max(1);
        }
        self.most
    }
}

/// The threads of a CPU executor.
pub(crate) struct Pool {
    n_threads: usize,
    /// From `Arc::into_raw`, or null before the first launch that needs threads.
    crew: AtomicPtr<Crew>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("n_threads", &self.n_threads).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool of `n_threads` threads including the calling one. Starts none.
    pub(crate) fn new(n_threads: usize) -> Self {
        Self { n_threads: n_threads.max(1), crew: AtomicPtr::new(ptr::null_mut()) }
    }

    /// How many threads there are at most.
    pub(crate) fn n_threads(&self) -> usize {
        self.n_threads
    }

    /// Runs all blocks of a launch and returns when they are done, or when `poll` has said to give up and no thread is in
    /// them any more.
    pub(super) fn run(&self, work: &dyn Work, n_blocks: u64, cost: &Cost, poll: Option<Poll<'_>>) -> Result<(), Error> {
        let stop = AtomicU32::new(0);
        let caller = Caller::enter(poll, &stop);
        let alone = n_blocks == 1 || self.n_threads == 1 || CrewGuard::is_held();
        let mut first = 0;
        let few = if self.any_looks() { ALONE_BESIDE } else { ALONE };
        if alone || cost.blocks_in(few).is_some_and(|few| n_blocks <= few) {
            let look = if alone { 1 } else { cost.blocks_in(LOOK).unwrap_or(1).max(1) };
            let mut pace = Pace::start(1);
            let start = pace.last;
            let mut next = || {
                if first == n_blocks || caller.stops() || (!alone && first > 0 && start.elapsed() > ENOUGH) {
                    return None;
                }
                let most = if alone && first > 0 { pace.next() } else { look };
                let chunk = first..n_blocks.min(first.saturating_add(most));
                first = chunk.end;
                Some(chunk)
            };
            let ran = work.run(&mut next, caller.watch());
            cost.note(start.elapsed(), first);
            if !ran {
                return Err(no_memory());
            }
        }
        if stop.load(Ordering::Relaxed) != 0 {
            return Err(interrupted());
        }
        if first == n_blocks {
            return Ok(());
        }
        let crew = self.crew();
        let Some(guard) = crew.acquire(&caller) else { return Err(interrupted()) };
        self.run_together(guard, work, first..n_blocks, cost, &caller, &stop)
    }

    /// Runs blocks on all threads now. `false` if there is only this one, or if another launch uses them; nothing has
    /// then run.
    pub(crate) fn run_unless_busy(&self, work: &dyn Work, n_blocks: u64) -> Result<bool, Error> {
        if self.n_threads == 1 {
            return Ok(false);
        }
        let crew = self.crew();
        let Some(guard) = crew.try_acquire() else { return Ok(false) };
        let stop = AtomicU32::new(0);
        self.run_together(guard, work, 0..n_blocks, &Cost::default(), &Caller::enter(None, &stop), &stop)?;
        Ok(true)
    }

    /// Runs blocks on all threads; the caller holds the guard.
    fn run_together(
        &self,
        guard: CrewGuard<'_>,
        work: &dyn Work,
        range: Range<u64>,
        cost: &Cost,
        caller: &Caller<'_>,
        stop: &AtomicU32,
    ) -> Result<(), Error> {
        let n_blocks = range.end - range.start;
        let shares = cost.blocks_in(SHARE).map_or(n_blocks, |share| n_blocks.div_ceil(share.max(1)));
        // Mostly the same number as the last time, although costs vary: then a thread's share is still in its cache.
        let n_threads = self
            .n_threads
            .min(shares.checked_next_power_of_two().and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX));
        // Blocks that may wait for earlier ones are handed out one by one, in their order.
        let n_shares = if work.at_once() == 1 { 1 } else { n_threads.max(1) };
        let blocks = Blocks::new(range, n_shares, cost);
        let failed = AtomicBool::new(false);
        // SAFETY: only the lifetime changes. The job is taken back below before `work` goes.
        let work_ptr = unsafe { transmute::<NonNull<dyn Work + '_>, NonNull<dyn Work>>(NonNull::from(work)) };
        let job = Job {
            work: work_ptr,
            blocks: NonNull::from(&blocks),
            failed: NonNull::from(&failed),
            stop: NonNull::from(stop),
        };
        guard.publish(job, n_threads - 1);

        let start = Instant::now();
        let mut mine = 0;
        let mut hand = blocks.of(0);
        let mut next = || {
            if caller.stops() {
                return None;
            }
            hand.take(work.at_once()).inspect(|chunk| mine += chunk.end - chunk.start)
        };
        let run = AssertUnwindSafe(|| work.run(&mut next, caller.watch()));
        let sound = catch_unwind(run).is_ok();
        cost.note(hand.pace.last.duration_since(start), mine);
        guard.retract(caller);
        drop(guard);

        if !sound || failed.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Internal, "a thread that ran blocks of a kernel panicked"));
        }
        if stop.load(Ordering::Relaxed) != 0 {
            return Err(interrupted());
        }
        // A thread without memory takes no block; blocks remain if no thread had memory.
        if blocks.left() > 0 { Err(no_memory()) } else { Ok(()) }
    }

    /// Whether threads of this process are polling for work.
    fn any_looks(&self) -> bool {
        // SAFETY: it is null or from `Arc::into_raw`, and only dropped with `self`.
        let crew = unsafe { self.crew.load(Ordering::Acquire).as_ref() };
        crew.is_some_and(|crew| crew.any_looks() && crew.process == process::id())
    }

    /// The threads of this process, not those of a process that it was forked off.
    fn crew(&self) -> Arc<Crew> {
        let process = process::id();
        let known = self.crew.load(Ordering::Acquire);
        // SAFETY: it is null or from `Arc::into_raw`, and only dropped with `self`.
        if let Some(crew) = unsafe { known.as_ref() }
            && crew.process == process
        {
            // SAFETY: as above, and `self` holds one count.
            unsafe { Arc::increment_strong_count(known) };
            // SAFETY: the count that was just added is this `Arc`'s.
            return unsafe { Arc::from_raw(known) };
        }
        // The parent's crew is leaked: its locks may be held by threads that do not exist here.
        let crew = Arc::new(Crew::new(self.n_threads));
        let ours = Arc::into_raw(Arc::clone(&crew)).cast_mut();
        if self.crew.compare_exchange(known, ours, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return crew;
        }
        // Another thread of this process was faster.
        // SAFETY: it was just made by `into_raw` and no one else has it.
        drop(unsafe { Arc::from_raw(ours) });
        self.crew()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let crew = *self.crew.get_mut();
        // SAFETY: it is null or from `Arc::into_raw`, and this pool still holds its count.
        if unsafe { crew.as_ref() }.is_none_or(|crew| crew.process != process::id()) {
            return;
        }
        // SAFETY: as above; the reference count is released here, once.
        let crew = unsafe { Arc::from_raw(crew) };
        crew.end();
    }
}

#[cold]
fn interrupted() -> Error {
    Error::new(ErrorKind::Interrupted, "a launch was interrupted")
}

#[cold]
fn no_memory() -> Error {
    Error::new(ErrorKind::Memory, "there is not enough memory for the shared and local arrays of a block")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Counts how often each block was run.
    struct Counts(Vec<AtomicU32>);

    impl Work for Counts {
        fn run(&self, next: &mut dyn FnMut() -> Option<Range<u64>>, _watch: *const HostWatch) -> bool {
            while let Some(range) = next() {
                for block in range {
                    self.0[block as usize].fetch_add(1, Ordering::Relaxed);
                }
            }
            true
        }
    }

    #[test]
    fn each_block_runs_once_whether_threads_look_or_sleep() {
        // More threads than cores; pauses shorter and longer than threads look for work; two callers at a time.
        let pool = Pool::new(5);
        thread::scope(|scope| {
            for caller in 0..2_u64 {
                let pool = &pool;
                scope.spawn(move || {
                    for launch in 0..600_u64 {
                        let n_blocks = [1, 2, 7, 64, 1000][(launch % 5) as usize];
                        let counts = Counts((0..n_blocks).map(|_| AtomicU32::new(0)).collect());
                        // A cost that is known makes fewer threads take part.
                        let cost = Cost::default();
                        if launch % 3 == 0 {
                            cost.note(Duration::from_micros(launch % 50), 1);
                        }
                        pool.run(&counts, n_blocks, &cost, None).expect("a launch");
                        assert!(counts.0.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{launch}");
                        match (launch + caller) % 40 {
                            0 => thread::sleep(Duration::from_millis(1)),
                            1..20 => thread::sleep(Duration::from_micros(20)),
                            _ => {}
                        }
                    }
                });
            }
        });
    }
}
