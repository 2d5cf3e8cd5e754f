//! A stack that is large enough for the compiler's recursion.
//!
//! Every stage recurses over the tree, and so do parts of LLVM. A thread of the caller may have a stack of only half a
//! megabyte.

use std::{
    mem, panic, process,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use crate::stop::{self, GivenUp, Poll};

/// The size of the stack in bytes of address space. The system allocates memory only for the part that is used.
const SIZE: usize = 256 << 20;

/// Runs `work` on a thread with a large stack. If the system cannot create that thread, runs it on the caller's.
pub(crate) fn on_large<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let mut work = Some(work);
    let mut result = None;
    let spawned = thread::scope(|scope| {
        let run = || result = work.take().map(|work| work());
        let thread = thread::Builder::new().name("weft-compiler".to_owned()).stack_size(SIZE).spawn_scoped(scope, run);
        thread.map(thread::ScopedJoinHandle::join)
    });
    match (spawned, result, work) {
        (Ok(Err(panicked)), ..) => panic::resume_unwind(panicked),
        (_, Some(result), _) => result,
        (_, None, Some(work)) => work(),
        (_, None, None) => unreachable!("the thread took the work and ended without a result or a panic"),
    }
}

/// The interval at which `poll` is called.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// As [`on_large`], but calls `poll` repeatedly, which returns whether to give the work up. `None` if it was given up.
/// `poll` may run any code, including another compilation or a fork. In the child of a fork the work is given up,
/// because the thread that does it does not exist there.
pub(crate) fn polled<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static, poll: Poll<'_>) -> Option<T> {
    let flag = Arc::new(AtomicBool::new(false));
    let work = Arc::new(Mutex::new(Some(work)));
    let (ends, end) = mpsc::channel::<()>();
    let run = {
        let (flag, work) = (Arc::clone(&flag), Arc::clone(&work));
        move || {
            // Dropping it, also by a panic, signals the end of this thread.
            let _ends = ends;
            stop::look_at(flag);
            let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
            work.map(|work| work())
        }
    };
    let spawned = thread::Builder::new().name("weft-compiler".to_owned()).stack_size(SIZE).spawn(run);
    let Ok(thread) = spawned else {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        return work.map(|work| work());
    };
    let process = process::id();
    while end.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if !flag.load(Ordering::Relaxed) && poll() {
            flag.store(true, Ordering::Relaxed);
        }
        if process::id() != process {
            mem::forget(thread);
            return None;
        }
    }
    match thread.join() {
        Ok(result) => result,
        Err(panicked) if panicked.is::<GivenUp>() => None,
        Err(panicked) => panic::resume_unwind(panicked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(left: u32) -> u32 {
        let frame = std::hint::black_box([left; 256]);
        if left == 0 { frame[0] } else { 1 + depth(left - 1) }
    }

    #[test]
    fn recursion_has_room_and_results_and_panics_come_back() {
        assert_eq!(on_large(|| depth(50_000)), 50_000);
        let panicked = panic::catch_unwind(|| on_large(|| -> u32 { panic!("on purpose") }));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"on purpose"));
        let name = on_large(|| thread::current().name().map(str::to_owned));
        assert_eq!(name.as_deref(), Some("weft-compiler"));
    }

    #[test]
    fn work_is_given_up_when_it_looks_again() {
        assert_eq!(polled(|| depth(50_000), &|| true), Some(50_000));
        let endless = || {
            loop {
                stop::check();
                thread::sleep(Duration::from_millis(1));
            }
        };
        let asked = std::cell::Cell::new(0);
        let third_time = || asked.replace(asked.get() + 1) == 2;
        assert_eq!(polled::<u32>(endless, &third_time), None);
        assert_eq!(asked.get(), 3);
        let panicked = panic::catch_unwind(|| polled(|| -> u32 { panic!("on purpose") }, &|| false));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"on purpose"));
        // Work without a `poll` is never given up.
        assert!(!on_large(stop::is_given_up));
    }
}
