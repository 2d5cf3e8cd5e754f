//! Work in background threads: compilations whose results no launch waits for.
//!
//! A thread starts when a job finds none idle, up to a few; they have a low priority and never take the GIL. A fork
//! cancels a compilation of theirs; it is repeated in the parent afterwards. The child has no jobs. Before the
//! interpreter ends, [`stop_background`] cancels the current jobs, drops the others and joins the threads, because the
//! process must not end while LLVM or the driver's compiler runs.

use std::{
    cell::RefCell,
    collections::VecDeque,
    panic::{self, AssertUnwindSafe},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use pyo3::prelude::*;
use weft_compiler::Poll;
use weft_runtime::lower_thread_priority;

use crate::devices::fork;

/// A job. It gets a function that returns whether its compilation must be given up, and returns `None` if it gave up.
type Job = Box<dyn Fn(Poll<'_>) -> Option<()> + Send>;

struct Queue {
    jobs: VecDeque<Job>,
    threads: Vec<JoinHandle<()>>,
    /// The number of threads that wait for a job.
    idle: usize,
    /// The interpreter ends: no job is accepted.
    is_closed: bool,
}

static QUEUE: Mutex<Queue> =
    Mutex::new(Queue { jobs: VecDeque::new(), threads: Vec::new(), idle: 0, is_closed: false });
/// Notified of new jobs and of the end.
static CHANGED: Condvar = Condvar::new();
/// Whether the current jobs must be given up because the interpreter ends.
static ENDS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The queue, locked by the thread that forks.
    static HELD: RefCell<Option<MutexGuard<'static, Queue>>> = const { RefCell::new(None) };
}

fn lock() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a job. Returns whether it will run: not if the interpreter ends, if the system can start no thread, or in a
/// launch by a function that Python calls for a fork.
pub(crate) fn submit(_py: Python<'_>, job: impl Fn(Poll<'_>) -> Option<()> + Send + 'static) -> bool {
    if HELD.with_borrow(Option::is_some) {
        return false;
    }
    let mut queue = lock();
    if queue.is_closed {
        return false;
    }
    if queue.idle <= queue.jobs.len() && queue.threads.len() < most_threads() {
        match thread::Builder::new().name("weft-background".to_owned()).spawn(run) {
            Ok(thread) => queue.threads.push(thread),
            Err(_) if queue.threads.is_empty() => return false,
            Err(_) => {}
        }
    }
    queue.jobs.push_back(Box::new(job));
    CHANGED.notify_all();
    true
}

/// The maximum number of threads: a program that fills all cores still has most of them.
fn most_threads() -> usize {
    const MOST: usize = 3;
    thread::available_parallelism().map_or(1, |cores| (cores.get() / 4).clamp(1, MOST))
}

/// The function of the threads.
fn run() {
    lower_thread_priority();
    loop {
        let job = lock().jobs.pop_front();
        match job {
            Some(job) => work(&job),
            None if ENDS.load(Ordering::Relaxed) => return,
            None => wait(),
        }
    }
}

/// Waits for a job or the end.
fn wait() {
    let mut queue = lock();
    if queue.jobs.is_empty() && !queue.is_closed {
        queue.idle += 1;
        CHANGED.wait(queue).unwrap_or_else(PoisonError::into_inner).idle -= 1;
    }
}

/// Runs a job until it is done. One that gave up for a fork is repeated after it. One that panics is done: the thread is
/// needed for others, and the panic's message was printed.
fn work(job: &Job) {
    while !ENDS.load(Ordering::Relaxed) {
        let _work = fork::at_work();
        let poll = || ENDS.load(Ordering::Relaxed) || fork::is_wanted();
        let done = panic::catch_unwind(AssertUnwindSafe(|| job(&poll)));
        if !matches!(done, Ok(None)) {
            return;
        }
    }
}

/// Ends the threads: before the interpreter ends.
#[pyfunction]
pub(crate) fn stop_background(py: Python<'_>) {
    ENDS.store(true, Ordering::Relaxed);
    let threads = {
        let mut queue = lock();
        queue.is_closed = true;
        queue.jobs.clear();
        std::mem::take(&mut queue.threads)
    };
    CHANGED.notify_all();
    py.detach(|| threads.into_iter().for_each(|thread| drop(thread.join())));
}

/// Locks the queue before a fork. Called with the GIL, which every other caller of this module but the threads has.
pub(super) fn hold() {
    HELD.set(Some(lock()));
}

/// Unlocks it in the parent.
pub(super) fn release() {
    drop(HELD.take());
}

/// Unlocks it in the child, which has neither the threads nor their jobs.
pub(super) fn release_in_child() {
    if let Some(mut queue) = HELD.take() {
        // Jobs may hold locks of the parent's threads: they are not dropped.
        std::mem::forget(std::mem::take(&mut queue.jobs));
        std::mem::forget(std::mem::take(&mut queue.threads));
        queue.idle = 0;
    }
}
