//! Delays a fork until other threads that work without the GIL have released locks of the process or of LLVM.
//!
//! The child has none of its parent's other threads, so locks that they hold would never be released there: those of
//! the compiler's and LLVM's tables, of the interned types, of devices that are being opened. Work under the GIL is not
//! counted: the forking thread holds it.

use std::{
    cell::{Cell, RefCell},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

#[derive(Default)]
struct ForkState {
    /// The number of running pieces of work.
    at_work: usize,
    /// How many threads wait to fork: no work begins meanwhile, or they might wait for ever.
    forks: usize,
}

static STATE: Mutex<ForkState> = Mutex::new(ForkState { at_work: 0, forks: 0 });
/// Notified when work has ended and when a fork has.
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// Those of this thread: a signal handler may fork during one, and the child continues it.
    static OWN: Cell<usize> = const { Cell::new(0) };
    /// The lock, held by the thread that forks.
    static HELD: RefCell<Option<MutexGuard<'static, ForkState>>> = const { RefCell::new(None) };
}

/// A running piece of work.
#[must_use]
pub(crate) struct Work(());

fn lock() -> MutexGuard<'static, ForkState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(state: MutexGuard<'static, ForkState>) -> MutexGuard<'static, ForkState> {
    CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner)
}

/// Begins a piece of work, which waits for a fork that is under way. Called without the interpreter.
pub(crate) fn at_work() -> Work {
    let mut state = lock();
    // A fork waits for the outermost work only.
    while state.forks > 0 && !is_at_work() {
        state = wait(state);
    }
    state.at_work += 1;
    OWN.set(OWN.get() + 1);
    Work(())
}

impl Drop for Work {
    fn drop(&mut self) {
        lock().at_work -= 1;
        OWN.set(OWN.get() - 1);
        CHANGED.notify_all();
    }
}

/// Waits until no other thread is at work, and lets none begin. Called without the GIL, which work may need.
pub(crate) fn hold() {
    let mut state = lock();
    state.forks += 1;
    while state.at_work > OWN.get() {
        state = wait(state);
    }
    HELD.set(Some(state));
}

/// Lets threads work again, in the parent.
pub(crate) fn release() {
    if let Some(mut state) = HELD.take() {
        state.forks -= 1;
    }
    CHANGED.notify_all();
}

/// The same in the child, which has none of the other threads that wait to fork.
pub(crate) fn release_in_child() {
    if let Some(mut state) = HELD.take() {
        state.forks = 0;
    }
}

/// Whether a thread waits to fork, so that long work should be given up.
pub(crate) fn is_wanted() -> bool {
    lock().forks > 0
}

/// Whether this thread is at work.
pub(crate) fn is_at_work() -> bool {
    OWN.get() > 0
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use super::*;

    #[test]
    fn a_fork_waits_for_the_work_of_others_and_holds_it_back() {
        let (send, receive) = mpsc::channel();
        let (begun, begins) = mpsc::channel();
        let own = at_work();
        let worker = thread::spawn(move || {
            let work = at_work();
            begun.send(()).expect("the test listens");
            thread::sleep(Duration::from_millis(100));
            send.send("ended").expect("the test listens");
            drop(work);
            // Begun while the other thread holds all, or before it has got there: it then waits for this one, too.
            drop(at_work());
            send.send("again").expect("the test listens");
        });
        begins.recv().expect("the worker begins");
        hold();
        assert_eq!(receive.try_recv(), Ok("ended"), "the work of another thread goes on");
        while receive.try_recv().is_ok() {}
        assert!(receive.recv_timeout(Duration::from_millis(100)).is_err(), "work begins while a fork is under way");
        release();
        worker.join().expect("it does not panic");
        drop(own);
        assert!(!is_at_work());
    }
}
