//! The threads that run the blocks of a launch, and the chunks of a large copy, a GPU's as well, as if they were blocks.
//!
//! - The calling thread takes part, and a launch that is over soon it runs alone, without waking anyone.
//! - Threads start at the first launch that needs them and sleep between launches.
//! - One launch at a time has the threads; others wait for their turn, but a copy does without them.
//! - Blocks are handed out in chunks that get smaller towards the end: few hand-outs, and all threads end together.
//! - While a launch waits or runs, its caller is asked from time to time whether to go on; see `interrupt.rs`.
//! - A forked process starts with no threads, whatever its parent was doing.
#![expect(unsafe_code, reason = "shares a launch on the caller's stack with other threads")]

use std::{
    cell::Cell,
    fmt,
    mem::transmute,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    ptr::{self, NonNull},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use weft_artifact::HostWatch;

use super::interrupt::{Caller, Helper, TICK};
use crate::{
    error::{Error, ErrorKind},
    executor::Poll,
};

/// A launch that should be over within this time runs on the calling thread.
const ALONE: Duration = Duration::from_micros(20);
/// So often the calling thread looks at the clock while it works alone.
const LOOK: Duration = Duration::from_micros(10);
/// A calling thread that has worked alone for so long wakes others for the rest.
const ENOUGH: Duration = Duration::from_micros(40);
/// About so long a thread works without looking whether the launch goes on.
const GLANCE: Duration = Duration::from_millis(10);
/// Each chunk is this fraction of what is left for a thread.
const CHUNKS_PER_SHARE: u64 = 4;
/// Stack of a thread, as large as a main thread's. Memory is only taken as it is used.
const STACK_BYTES: usize = 8 << 20;

/// The blocks of one launch.
pub(crate) trait Work: Sync {
    /// How many blocks a thread may take at once.
    fn at_once(&self) -> u64 {
        u64::MAX
    }

    /// Runs the ranges of blocks that `next` gives until it gives none, on this thread. `false` if this thread has
    /// not the memory for it; it has then taken no range. `watch` is for code inside of a range that may run for long.
    fn run(&self, next: &mut dyn FnMut() -> Option<Range<u64>>, watch: *const HostWatch) -> bool;
}

/// What a block of a kernel has cost so far, in picoseconds; 0 before the first launch.
#[derive(Debug, Default)]
pub(super) struct Cost(AtomicU64);

impl Cost {
    fn note(&self, time: Duration, n_blocks: u64) {
        if let Some(each) = (time.as_nanos() as u64 * 1000).checked_div(n_blocks) {
            self.0.store(each.max(1), Ordering::Relaxed);
        }
    }

    /// How many blocks there should be to a time, if that is known.
    fn blocks_in(&self, time: Duration) -> Option<u64> {
        (time.as_nanos() as u64 * 1000).checked_div(self.0.load(Ordering::Relaxed))
    }
}

/// Hands out blocks. On a cache line of its own, since every thread writes to it.
#[derive(Debug)]
#[repr(align(128))]
struct Blocks {
    next: AtomicU64,
    end: u64,
    divisor: u64,
}

impl Blocks {
    fn new(range: Range<u64>, n_threads: usize) -> Self {
        let divisor = n_threads as u64 * CHUNKS_PER_SHARE;
        Self { next: AtomicU64::new(range.start), end: range.end, divisor }
    }

    fn left(&self) -> u64 {
        self.end - self.next.load(Ordering::Relaxed)
    }

    /// The next chunk, of at most so many blocks. What the blocks wrote is passed on by the pool's lock, not by this
    /// counter.
    fn take(&self, most: u64) -> Option<Range<u64>> {
        let mut first = self.next.load(Ordering::Relaxed);
        loop {
            let left = self.end - first;
            if left == 0 {
                return None;
            }
            let last = first + (left / self.divisor).clamp(1, most);
            match self.next.compare_exchange_weak(first, last, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(first..last),
                Err(now) => first = now,
            }
        }
    }
}

/// How many blocks a thread may take at once, so that it looks up in time. What a launch of the kernel has cost before says
/// nothing about this one, so each thread begins with one block.
struct Pace {
    most: u64,
    last: Instant,
}

impl Pace {
    fn start() -> Self {
        Self { most: 1, last: Instant::now() }
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

/// A launch as the threads see it: on the stack of its caller, who waits until no thread has it any more.
#[derive(Clone, Copy)]
struct Job {
    work: NonNull<dyn Work>,
    blocks: NonNull<Blocks>,
    failed: NonNull<AtomicBool>,
    stop: NonNull<AtomicU32>,
}

// SAFETY: what it points to is `Sync`.
unsafe impl Send for Job {}

impl Job {
    /// Works on the launch. A panic, which no kernel can raise, stops at this thread.
    ///
    /// # Safety
    ///
    /// The caller of the launch still waits for this thread.
    unsafe fn run(self) {
        // SAFETY: the launch is alive, as the caller promises.
        let work = unsafe { self.work.as_ref() };
        // SAFETY: as above.
        let blocks = unsafe { self.blocks.as_ref() };
        // SAFETY: as above.
        let helper = Helper::new(unsafe { self.stop.as_ref() });
        let mut pace = Pace::start();
        let mut next = || if helper.stops() { None } else { blocks.take(pace.next().min(work.at_once())) };
        let run = AssertUnwindSafe(|| work.run(&mut next, helper.watch()));
        if catch_unwind(run).is_err() {
            // SAFETY: as above.
            unsafe { self.failed.as_ref() }.store(true, Ordering::Relaxed);
        }
    }
}

/// What the lock guards.
#[derive(Default)]
struct State {
    job: Option<Job>,
    /// Threads that should still join the job.
    wanted: usize,
    /// Threads that are at work on the job.
    at_work: usize,
    started: usize,
    stop: bool,
}

/// The threads of one process.
#[derive(Default)]
struct Crew {
    process: u32,
    /// A launch has the threads.
    taken: Mutex<bool>,
    free: Condvar,
    state: Mutex<State>,
    wake: Condvar,
    done: Condvar,
}

impl Crew {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a job to up to `n_helpers` threads, starting some if there are not so many.
    fn publish(self: &Arc<Self>, job: Job, n_helpers: usize) {
        let mut state = self.lock();
        while state.started < n_helpers {
            let crew = Arc::clone(self);
            let name = format!("weft-cpu-{}", state.started + 1);
            let builder = thread::Builder::new().name(name).stack_size(STACK_BYTES);
            if builder.spawn(move || crew.work()).is_err() {
                // No more threads to be had: those that there are do the work.
                break;
            }
            state.started += 1;
        }
        state.job = Some(job);
        state.wanted = n_helpers.min(state.started);
        drop(state);
        self.wake_two();
    }

    /// Each thread that wakes wakes two more, so that a large crew is up soon and the caller gets to work at once.
    fn wake_two(&self) {
        self.wake.notify_one();
        self.wake.notify_one();
    }

    /// Takes the job back and waits for the threads that are still at work on it.
    fn retract(&self, caller: &Caller<'_>) {
        let mut state = self.lock();
        state.job = None;
        state.wanted = 0;
        while state.at_work > 0 {
            if !caller.polls() {
                state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (held, waited) = self.done.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner);
            state = held;
            if waited.timed_out() && state.at_work > 0 {
                drop(state);
                // Whatever the answer, the threads are waited for: they leave when they see that it is to stop.
                caller.asks();
                state = self.lock();
            }
        }
    }

    /// Waits until no other launch has the threads; `None` if the caller gives up.
    fn turn(&self, caller: &Caller<'_>) -> Option<Turn<'_>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken {
            if !caller.polls() {
                taken = self.free.wait(taken).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (held, waited) = self.free.wait_timeout(taken, TICK).unwrap_or_else(PoisonError::into_inner);
            taken = held;
            if waited.timed_out() && *taken {
                drop(taken);
                if caller.asks() {
                    return None;
                }
                taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            }
        }
        *taken = true;
        HAS_TURN.set(true);
        Some(Turn(self))
    }

    /// The same without waiting: `None` if another launch has them.
    fn try_turn(&self) -> Option<Turn<'_>> {
        let mut taken = self.taken.try_lock().ok().filter(|taken| !**taken)?;
        *taken = true;
        HAS_TURN.set(true);
        Some(Turn(self))
    }

    /// The life of a thread.
    fn work(&self) {
        let mut state = self.lock();
        while !state.stop {
            let Some(job) = state.job.filter(|_| state.wanted > 0) else {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.wanted -= 1;
            state.at_work += 1;
            let more = state.wanted > 0;
            drop(state);
            if more {
                self.wake_two();
            }
            // SAFETY: the job was still there when this thread entered itself as being at work, and its caller waits
            // for all who are.
            unsafe { job.run() };
            state = self.lock();
            state.at_work -= 1;
            if state.at_work == 0 {
                self.done.notify_one();
            }
        }
    }
}

thread_local! {
    /// This thread's launch has the threads: one inside of it, in the handler of a signal, does without.
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// The threads are this launch's until it goes.
struct Turn<'a>(&'a Crew);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        HAS_TURN.set(false);
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.free.notify_one();
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
    /// A pool of so many threads, the calling one among them. Starts none.
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
        let alone = n_blocks == 1 || self.n_threads == 1 || HAS_TURN.get();
        let mut first = 0;
        if alone || cost.blocks_in(ALONE).is_some_and(|few| n_blocks <= few) {
            let look = if alone { 1 } else { cost.blocks_in(LOOK).unwrap_or(1).max(1) };
            let mut pace = Pace::start();
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
        let Some(turn) = crew.turn(&caller) else { return Err(interrupted()) };
        self.run_together(&crew, turn, work, first..n_blocks, cost, &caller, &stop)
    }

    /// Runs blocks on all threads now. `false` if there is only this one, or if others have them; nothing has then run.
    pub(crate) fn run_unless_busy(&self, work: &dyn Work, n_blocks: u64) -> Result<bool, Error> {
        if self.n_threads == 1 {
            return Ok(false);
        }
        let crew = self.crew();
        let Some(turn) = crew.try_turn() else { return Ok(false) };
        let stop = AtomicU32::new(0);
        self.run_together(&crew, turn, work, 0..n_blocks, &Cost::default(), &Caller::enter(None, &stop), &stop)?;
        Ok(true)
    }

    /// Runs blocks on all threads, whose turn the caller has.
    #[expect(clippy::too_many_arguments, reason = "each is a part of one launch")]
    fn run_together(
        &self,
        crew: &Arc<Crew>,
        turn: Turn<'_>,
        work: &dyn Work,
        range: Range<u64>,
        cost: &Cost,
        caller: &Caller<'_>,
        stop: &AtomicU32,
    ) -> Result<(), Error> {
        let n_threads = self.n_threads.min(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
        let blocks = Blocks::new(range, n_threads);
        let failed = AtomicBool::new(false);
        let mut pace = Pace::start();
        // SAFETY: only the lifetime changes. The job is taken back below before `work` goes.
        let work_ptr = unsafe { transmute::<NonNull<dyn Work + '_>, NonNull<dyn Work>>(NonNull::from(work)) };
        let job = Job {
            work: work_ptr,
            blocks: NonNull::from(&blocks),
            failed: NonNull::from(&failed),
            stop: NonNull::from(stop),
        };
        crew.publish(job, n_threads - 1);

        let start = Instant::now();
        let mut mine = 0;
        let mut next = || {
            if caller.stops() {
                return None;
            }
            blocks.take(pace.next().min(work.at_once())).inspect(|chunk| mine += chunk.end - chunk.start)
        };
        let run = AssertUnwindSafe(|| work.run(&mut next, caller.watch()));
        let sound = catch_unwind(run).is_ok();
        cost.note(start.elapsed(), mine);
        crew.retract(caller);
        drop(turn);

        if !sound || failed.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Internal, "a thread that ran blocks of a kernel panicked"));
        }
        if stop.load(Ordering::Relaxed) != 0 {
            return Err(interrupted());
        }
        // A thread without memory takes no block; what is left is left if none had it.
        if blocks.left() > 0 { Err(no_memory()) } else { Ok(()) }
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
        // The parent's crew is left as it lies: its locks may be held by threads that do not exist here.
        let crew = Arc::new(Crew { process, ..Crew::default() });
        let ours = Arc::into_raw(Arc::clone(&crew)).cast_mut();
        if self.crew.compare_exchange(known, ours, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return crew;
        }
        // Another thread of this process was quicker.
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
        // SAFETY: as above; the count is given back here, once.
        let crew = unsafe { Arc::from_raw(crew) };
        crew.lock().stop = true;
        crew.wake.notify_all();
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
