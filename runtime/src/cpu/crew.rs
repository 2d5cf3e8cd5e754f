//! The threads of a process that share launches: how they join one, leave it, and wait for the next.
//!
//! - One launch at a time has the threads; others wait for their turn.
//! - A launch's places are one word: a thread that takes one is at work, and the caller waits until no thread is.
//! - A thread that has no work looks for some for a moment, since launches come one after the other, and then sleeps; a launch
//!   that finds threads that look wakes no others for them.
#![expect(unsafe_code, reason = "shares a launch on the caller's stack with other threads")]

use std::{
    cell::{Cell, UnsafeCell},
    hint,
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    ptr::NonNull,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    interrupt::{Caller, Helper, TICK},
    pool::{Blocks, Work},
};

/// So long a thread looks for the next launch before it sleeps, and a caller for the end of its own: longer than what lies
/// between two launches in a loop of Python's, and than waking a thread takes.
const LOOKING: Duration = Duration::from_micros(200);
/// How often it looks between two glances at the clock.
const LOOKS: u32 = 50;
/// Stack of a thread, as large as a main thread's. Memory is only taken as it is used.
const STACK_BYTES: usize = 8 << 20;

/// A launch as the threads see it: on the stack of its caller, who waits until no thread has it any more.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) work: NonNull<dyn Work>,
    pub(super) blocks: NonNull<Blocks>,
    pub(super) failed: NonNull<AtomicBool>,
    pub(super) stop: NonNull<AtomicU32>,
}

impl Job {
    /// Works on the launch as one of its threads, by number. A panic, which no kernel can raise, stops at this thread.
    ///
    /// # Safety
    ///
    /// The caller of the launch still waits for this thread.
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

/// The places of a launch, as a word: above, those that are free, and below, the threads at work.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Places(AtomicU32);

impl Places {
    const FREE: u32 = 1 << 16;
    const AT_WORK: u32 = Self::FREE - 1;

    /// Opens so many. There are none, and no thread is at work.
    fn open(&self, n: usize) {
        let n = u32::try_from(n).unwrap_or(u32::MAX).min(Self::AT_WORK);
        self.0.store(n * Self::FREE, Ordering::SeqCst);
    }

    fn any_free(&self) -> bool {
        self.0.load(Ordering::SeqCst) >= Self::FREE
    }

    /// Takes a free one, if there is one. What the caller has written is then seen.
    fn take(&self) -> bool {
        let taken = |now: u32| (now >= Self::FREE).then(|| now - Self::FREE + 1);
        self.0.try_update(Ordering::SeqCst, Ordering::SeqCst, taken).is_ok()
    }

    /// Gives one up; whether no thread is at work any more. What this thread has written is seen by who sees that.
    fn leave(&self) -> bool {
        (self.0.fetch_sub(1, Ordering::SeqCst) - 1) & Self::AT_WORK == 0
    }

    /// Closes those that are free.
    fn close(&self) {
        self.0.fetch_and(Self::AT_WORK, Ordering::SeqCst);
    }

    fn at_work(&self) -> bool {
        self.0.load(Ordering::SeqCst) & Self::AT_WORK != 0
    }
}

/// Whose turn it is.
#[derive(Debug, Default)]
struct Turns {
    taken: bool,
    waiting: usize,
}

/// Threads that sleep.
#[derive(Debug, Default)]
struct Beds {
    asleep: usize,
}

/// The threads of one process.
pub(super) struct Crew {
    pub(super) process: u32,
    turns: Mutex<Turns>,
    free: Condvar,
    places: Places,
    /// What the places are of. Written by who has the turn while there are none, read by who has taken one.
    job: UnsafeCell<Option<Job>>,
    /// Threads that look for work.
    looking: AtomicUsize,
    started: AtomicUsize,
    stop: AtomicBool,
    /// The caller of the launch sleeps until no thread is at work.
    caller_sleeps: AtomicBool,
    beds: Mutex<Beds>,
    wake: Condvar,
    done: Condvar,
}

// SAFETY: a job points to what is `Sync`, and its cell is written while nobody reads it, as said there.
unsafe impl Sync for Crew {}
// SAFETY: as above.
unsafe impl Send for Crew {}

impl Crew {
    /// A crew of this process, with no threads yet.
    pub(super) fn new() -> Self {
        Self {
            process: process::id(),
            turns: Mutex::default(),
            free: Condvar::new(),
            places: Places::default(),
            job: UnsafeCell::new(None),
            looking: AtomicUsize::new(0),
            started: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            caller_sleeps: AtomicBool::new(false),
            beds: Mutex::default(),
            wake: Condvar::new(),
            done: Condvar::new(),
        }
    }

    fn beds(&self) -> MutexGuard<'_, Beds> {
        self.beds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many threads look for work at the moment: they are there at once.
    pub(super) fn looking(&self) -> usize {
        self.looking.load(Ordering::SeqCst)
    }

    /// Waits until no other launch has the threads; `None` if the caller gives up.
    pub(super) fn turn(self: &Arc<Self>, caller: &Caller<'_>) -> Option<Turn<'_>> {
        let mut turns = self.turns();
        while turns.taken {
            turns.waiting += 1;
            if !caller.polls() {
                turns = self.free.wait(turns).unwrap_or_else(PoisonError::into_inner);
                turns.waiting -= 1;
                continue;
            }
            let (held, waited) = self.free.wait_timeout(turns, TICK).unwrap_or_else(PoisonError::into_inner);
            turns = held;
            turns.waiting -= 1;
            if waited.timed_out() && turns.taken {
                drop(turns);
                if caller.asks() {
                    return None;
                }
                turns = self.turns();
            }
        }
        Some(Turn::of(self, &mut turns))
    }

    /// The same without waiting: `None` if another launch has them.
    pub(super) fn try_turn(self: &Arc<Self>) -> Option<Turn<'_>> {
        let mut turns = self.turns.try_lock().ok().filter(|turns| !turns.taken)?;
        Some(Turn::of(self, &mut turns))
    }

    /// Ends the threads, as soon as they are at no work.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::SeqCst);
        let _beds = self.beds();
        self.wake.notify_all();
    }

    /// Each thread that wakes wakes two more, so that a large crew is up soon and the caller gets to work at once.
    fn wake_two(&self) {
        // Whoever goes to bed looks for places under this lock.
        let asleep = self.beds().asleep;
        for _ in 0..asleep.min(2) {
            self.wake.notify_one();
        }
    }

    /// The life of a thread, one of many, from 1 on.
    fn work(&self, number: usize) {
        while !self.stop.load(Ordering::SeqCst) {
            if self.places.take() {
                // SAFETY: this thread has a place, so the cell is not written, and its job is there.
                let job = unsafe { *self.job.get() };
                if let Some(job) = job {
                    // SAFETY: the caller waits for all who have a place.
                    unsafe { job.run(number) };
                }
                if self.places.leave() && self.caller_sleeps.load(Ordering::SeqCst) {
                    let _beds = self.beds();
                    self.done.notify_one();
                }
                continue;
            }
            self.looking.fetch_add(1, Ordering::SeqCst);
            let found = within(LOOKING, || self.places.any_free() || self.stop.load(Ordering::SeqCst));
            self.looking.fetch_sub(1, Ordering::SeqCst);
            if !found && self.sleep() {
                self.wake_two();
            }
        }
    }

    /// Sleeps until there are places; whether there may be more.
    fn sleep(&self) -> bool {
        let mut beds = self.beds();
        while !self.places.any_free() && !self.stop.load(Ordering::SeqCst) {
            beds.asleep += 1;
            beds = self.wake.wait(beds).unwrap_or_else(PoisonError::into_inner);
            beds.asleep -= 1;
        }
        beds.asleep > 0
    }
}

/// Looks whether something is so, for a time; whether it was.
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
    /// This thread's launch has the threads: one inside of it, in the handler of a signal, does without.
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// The threads are this launch's until it goes.
pub(super) struct Turn<'a>(&'a Arc<Crew>);

impl<'a> Turn<'a> {
    fn of(crew: &'a Arc<Crew>, turns: &mut Turns) -> Self {
        turns.taken = true;
        HAS_TURN.set(true);
        Self(crew)
    }

    /// Whether this thread has one already.
    pub(super) fn is_held() -> bool {
        HAS_TURN.get()
    }

    /// Gives a job to up to `n_helpers` threads, starting some if there are not so many, and wakes those that must be woken.
    pub(super) fn publish(&self, job: Job, n_helpers: usize) {
        let Self(crew) = self;
        let started = crew.started.load(Ordering::Relaxed);
        // SAFETY: there are no places: this launch has the turn, and the last one has waited until they were closed and left.
        unsafe { *crew.job.get() = Some(job) };
        let looking = crew.looking();
        crew.places.open(n_helpers);
        for number in started..n_helpers {
            let mate = Arc::clone(crew);
            let builder = thread::Builder::new().name(format!("weft-cpu-{}", number + 1)).stack_size(STACK_BYTES);
            if builder.spawn(move || mate.work(number + 1)).is_err() {
                // No more threads to be had: those that there are do the work.
                break;
            }
            crew.started.store(number + 1, Ordering::Relaxed);
        }
        if n_helpers.min(started) > looking {
            crew.wake_two();
        }
    }

    /// Takes the job back and waits for the threads that are still at work on it.
    pub(super) fn retract(&self, caller: &Caller<'_>) {
        let Self(crew) = self;
        crew.places.close();
        if within(LOOKING, || !crew.places.at_work()) {
            return;
        }
        let mut beds = crew.beds();
        crew.caller_sleeps.store(true, Ordering::SeqCst);
        while crew.places.at_work() {
            if !caller.polls() {
                beds = crew.done.wait(beds).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (held, waited) = crew.done.wait_timeout(beds, TICK).unwrap_or_else(PoisonError::into_inner);
            beds = held;
            if waited.timed_out() && crew.places.at_work() {
                drop(beds);
                // Whatever the answer, the threads are waited for: they leave when they see that it is to stop.
                caller.asks();
                beds = crew.beds();
            }
        }
        crew.caller_sleeps.store(false, Ordering::SeqCst);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        HAS_TURN.set(false);
        let mut turns = self.0.turns();
        turns.taken = false;
        let waiting = turns.waiting > 0;
        drop(turns);
        if waiting {
            self.0.free.notify_one();
        }
    }
}
