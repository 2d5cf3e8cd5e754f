//! The worker threads of a process: how they join a launch, leave it, and wait for the next.
//!
//! - One launch at a time uses the threads; others wait.
//! - A launch publishes one call word that all threads poll. A thread that works for it stores that value in its own
//!   slot, which the caller polls at the end. No word has several concurrent writers.
//! - A thread without work polls for a short time, because launches often follow one another, and then sleeps. A launch
//!   that finds polling threads does not wake sleeping ones.
#![expect(unsafe_code, reason = "shares a launch on the caller's stack with other threads")]

use std::{
    cell::{Cell, UnsafeCell},
    hint,
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    ptr::NonNull,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use super::{
    interrupt::{Caller, Helper, TICK},
    machine,
    pool::{Blocks, Work},
};

/// The time that a thread polls for the next launch before it sleeps, and that a caller polls for the end of its
/// launch. It is longer than the interval between two launches in a Python loop, and longer than waking a thread takes.
const LOOKING: Duration = Duration::from_micros(200);
/// The number of polls between two reads of the clock.
const LOOKS: u32 = 50;
/// The stack size of a thread, equal to the usual size for a main thread. The system commits memory only on first
/// access.
const STACK_BYTES: usize = 8 << 20;

/// A launch's data for the threads. It is on the stack of the caller, which waits until no thread refers to it.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) work: NonNull<dyn Work>,
    pub(super) blocks: NonNull<Blocks>,
    pub(super) failed: NonNull<AtomicBool>,
    pub(super) stop: NonNull<AtomicU32>,
}

impl Job {
    /// Executes blocks of the launch as the worker with this number. A panic, which no kernel can raise, ends only this
    /// worker's share.
    unsafe fn run(self, thread: usize) {
        // SAFETY: the launch is alive, as the caller promises.
        let work = unsafe { self.work.as_ref() };
        // SAFETY: as above.
        let blocks = unsafe { self.blocks.as_ref() };
        // SAFETY: as above.
        let helper = Helper::new(unsafe { self.stop.as_ref() });
        let mut hand = blocks.of(thread);
        let mut next = || if helper.stops() { None } else { hand.take(work.at_once()) };
        let run = AssertUnwindSafe(|| work.run(&mut next, helper.watch()));
        if catch_unwind(run).is_err() {
            // SAFETY: as above.
            unsafe { self.failed.as_ref() }.store(true, Ordering::Relaxed);
        }
    }
}

/// A launch's call for worker threads, encoded in the word that all threads poll: a sequence number, and the number of
/// requested threads. The number is 0 once the launch is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call(u64);

impl Call {
    const BITS: u32 = 16;
    const MOST: u64 = (1 << Self::BITS) - 1;

    /// The next launch's call, for `n_helpers` threads.
    fn next(self, n_helpers: usize) -> Self {
        let n_helpers = u64::try_from(n_helpers).unwrap_or(u64::MAX).min(Self::MOST);
        Self((self.0 >> Self::BITS).wrapping_add(1) << Self::BITS | n_helpers)
    }

    /// The call of the same launch once it is over.
    fn over(self) -> Self {
        Self(self.0 & !Self::MOST)
    }

    fn n_helpers(self) -> usize {
        (self.0 & Self::MOST) as usize
    }

    fn is_for(self, thread: usize) -> bool {
        thread <= self.n_helpers()
    }
}

/// The state that one worker thread publishes. It has its own cache line: other threads write to it only to wake the
/// worker.
#[derive(Debug)]
#[repr(align(128))]
struct WorkerSlot {
    /// The call that the thread works for, or [`IDLE`].
    works_for: AtomicU64,
    asleep: AtomicBool,
    /// The thread, once it has started.
    thread: OnceLock<Thread>,
}

/// A value that is no call.
const IDLE: u64 = u64::MAX;

/// The launches that wait for the worker threads.
#[derive(Debug, Default)]
struct CrewQueue {
    taken: bool,
    waiting: usize,
}

/// The threads of one process.
pub(super) struct Crew {
    pub(super) process: u32,
    /// The polling time of a thread. It is 0 if there are more threads than cores.
    looking: Duration,
    queue: Mutex<CrewQueue>,
    free: Condvar,
    call: AtomicU64,
    /// The job of the call. The thread that holds the guard writes it while no thread works; working threads read it.
    job: UnsafeCell<Option<Job>>,
    /// The slots of the workers, by number. The first is the caller's and unused.
    seats: Box<[WorkerSlot]>,
    started: AtomicUsize,
    /// The number of sleeping threads.
    asleep: AtomicUsize,
    stop: AtomicBool,
    /// The caller of the launch sleeps until no thread works for it.
    caller_sleeps: AtomicBool,
    bed: Mutex<()>,
    done: Condvar,
}

// SAFETY: a job points to `Sync` data, and its cell is written while no thread reads it, as documented there.
unsafe impl Sync for Crew {}
// SAFETY: as above.
unsafe impl Send for Crew {}

impl Crew {
    /// The workers of this process, for `n_threads` threads including the caller. None has started yet.
    pub(super) fn new(n_threads: usize) -> Self {
        let seat =
            || WorkerSlot { works_for: AtomicU64::new(IDLE), asleep: AtomicBool::new(false), thread: OnceLock::new() };
        Self {
            process: process::id(),
            looking: if n_threads <= machine::cores() { LOOKING } else { Duration::ZERO },
            queue: Mutex::default(),
            free: Condvar::new(),
            call: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            seats: (0..n_threads).map(|_| seat()).collect(),
            started: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            caller_sleeps: AtomicBool::new(false),
            bed: Mutex::default(),
            done: Condvar::new(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, CrewQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self) -> Call {
        Call(self.call.load(Ordering::SeqCst))
    }

    /// Whether any worker is polling. It starts to work immediately.
    pub(super) fn any_looks(&self) -> bool {
        self.started.load(Ordering::SeqCst) > self.asleep.load(Ordering::SeqCst)
    }

    /// Waits until no other launch uses the threads; `None` if the caller stops waiting.
    pub(super) fn acquire(self: &Arc<Self>, caller: &Caller<'_>) -> Option<CrewGuard<'_>> {
        let mut queue = self.queue();
        while queue.taken {
            queue.waiting += 1;
            if !caller.polls() {
                queue = self.free.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.waiting -= 1;
                continue;
            }
            let (held, waited) = self.free.wait_timeout(queue, TICK).unwrap_or_else(PoisonError::into_inner);
            queue = held;
            queue.waiting -= 1;
            if waited.timed_out() && queue.taken {
                drop(queue);
                if caller.poll_now() {
                    return None;
                }
                queue = self.queue();
            }
        }
        Some(CrewGuard::of(self, &mut queue))
    }

    /// The same without waiting: `None` if another launch uses them.
    pub(super) fn try_acquire(self: &Arc<Self>) -> Option<CrewGuard<'_>> {
        let mut queue = self.queue.try_lock().ok().filter(|queue| !queue.taken)?;
        Some(CrewGuard::of(self, &mut queue))
    }

    /// Ends the threads as soon as they have no work.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::SeqCst);
        for seat in &self.seats {
            self.wake(seat);
        }
    }

    /// The threads that a call requests.
    fn meant(&self, call: Call) -> impl Iterator<Item = &WorkerSlot> {
        self.seats.iter().take(call.n_helpers() + 1).skip(1)
    }

    /// Wakes two sleeping threads that a call requests. Each of them wakes two more, so a large crew wakes quickly, and
    /// the caller starts its own work at once.
    fn wake_two(&self, call: Call) {
        if self.asleep.load(Ordering::SeqCst) > 0 {
            self.meant(call).filter(|seat| self.wake(seat)).take(2).for_each(drop);
        }
    }

    /// Wakes a thread. Returns whether it was asleep.
    fn wake(&self, seat: &WorkerSlot) -> bool {
        let slept = seat.asleep.swap(false, Ordering::SeqCst);
        if slept {
            self.asleep.fetch_sub(1, Ordering::SeqCst);
            if let Some(thread) = seat.thread.get() {
                thread.unpark();
            }
        }
        slept
    }

    /// The main loop of a worker thread. Workers are numbered from 1.
    fn work(&self, number: usize) {
        let Some(seat) = self.seats.get(number) else { return };
        seat.thread.get_or_init(thread::current);
        let mut last = Call(0);
        while !self.stop.load(Ordering::SeqCst) {
            let call = self.call();
            if call != last && call.is_for(number) {
                last = call;
                self.work_for(call, number, seat);
                continue;
            }
            let is_called = || {
                let now = self.call();
                now != last && now.is_for(number) || self.stop.load(Ordering::SeqCst)
            };
            if !within(self.looking, is_called) {
                self.sleep(seat, is_called);
                self.wake_two(self.call());
            }
        }
    }

    fn work_for(&self, call: Call, number: usize, seat: &WorkerSlot) {
        // Store first, then check again. If the waiting caller did not see this store, it has already ended the call,
        // and this check sees that.
        seat.works_for.store(call.0, Ordering::SeqCst);
        if self.call() == call {
            // SAFETY: the caller waits for this thread, so the cell contains the job and is not written.
            if let Some(job) = unsafe { *self.job.get() } {
                // SAFETY: the caller waits.
                unsafe { job.run(number) };
            }
        }
        seat.works_for.store(IDLE, Ordering::SeqCst);
        if self.caller_sleeps.load(Ordering::SeqCst) {
            let _bed = self.bed();
            self.done.notify_one();
        }
    }

    /// Sleeps until the condition holds. The thread that makes it true wakes this thread.
    fn sleep(&self, seat: &WorkerSlot, is_so: impl Fn() -> bool) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        seat.asleep.store(true, Ordering::SeqCst);
        // A thread that did not see that this one sleeps has published its call before, so this check sees the call.
        if is_so() && seat.asleep.swap(false, Ordering::SeqCst) {
            self.asleep.fetch_sub(1, Ordering::SeqCst);
        }
        while seat.asleep.load(Ordering::SeqCst) {
            thread::park();
        }
    }

    fn bed(&self) -> MutexGuard<'_, ()> {
        self.bed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any worker works for a call. After the end of the call no further worker joins.
    fn is_worked_for(&self, call: Call) -> bool {
        self.meant(call).any(|seat| seat.works_for.load(Ordering::SeqCst) == call.0)
    }
}

/// Polls a condition for a limited time. Returns whether it became true.
fn within(time: Duration, is_so: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..LOOKS {
            if is_so() {
                return true;
            }
            hint::spin_loop();
        }
        if start.elapsed() > time {
            return false;
        }
    }
}

thread_local! {
    /// Whether this thread's launch uses the workers. A nested launch, from a signal handler, runs without them.
    static HAS_CREW: Cell<bool> = const { Cell::new(false) };
}

/// Reserves the worker threads for a launch until it is dropped.
pub(super) struct CrewGuard<'a>(&'a Arc<Crew>);

impl<'a> CrewGuard<'a> {
    fn of(crew: &'a Arc<Crew>, queue: &mut CrewQueue) -> Self {
        queue.taken = true;
        HAS_CREW.set(true);
        Self(crew)
    }

    /// Whether this thread already holds a guard.
    pub(super) fn is_held() -> bool {
        HAS_CREW.get()
    }

    /// Publishes a job for up to `n_helpers` threads, starts missing threads, and wakes sleeping ones.
    pub(super) fn publish(&self, job: Job, n_helpers: usize) {
        let Self(crew) = self;
        // SAFETY: no thread works: this launch holds the guard, and the last one has waited for its end.
        unsafe { *crew.job.get() = Some(job) };
        let call = crew.call().next(n_helpers);
        crew.call.store(call.0, Ordering::SeqCst);
        for number in crew.started.load(Ordering::SeqCst)..n_helpers {
            let mate = Arc::clone(crew);
            let builder = thread::Builder::new().name(format!("weft-cpu-{}", number + 1)).stack_size(STACK_BYTES);
            if builder.spawn(move || mate.work(number + 1)).is_err() {
                // No more threads can be created: the existing ones do the work.
                break;
            }
            crew.started.store(number + 1, Ordering::SeqCst);
        }
        crew.wake_two(call);
    }

    /// Retracts the job and waits for the threads that still work on it.
    pub(super) fn retract(&self, caller: &Caller<'_>) {
        let Self(crew) = self;
        let call = crew.call();
        crew.call.store(call.over().0, Ordering::SeqCst);
        if within(crew.looking, || !crew.is_worked_for(call)) {
            return;
        }
        let mut bed = crew.bed();
        crew.caller_sleeps.store(true, Ordering::SeqCst);
        while crew.is_worked_for(call) {
            if !caller.polls() {
                bed = crew.done.wait(bed).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (held, waited) = crew.done.wait_timeout(bed, TICK).unwrap_or_else(PoisonError::into_inner);
            bed = held;
            if waited.timed_out() && crew.is_worked_for(call) {
                drop(bed);
                // Whatever the result, wait for the threads: they leave when they see the stop flag.
                caller.poll_now();
                bed = crew.bed();
            }
        }
        crew.caller_sleeps.store(false, Ordering::SeqCst);
    }
}

impl Drop for CrewGuard<'_> {
    fn drop(&mut self) {
        HAS_CREW.set(false);
        let mut queue = self.0.queue();
        queue.taken = false;
        let waiting = queue.waiting > 0;
        drop(queue);
        if waiting {
            self.0.free.notify_one();
        }
    }
}
