//! A stack that is large enough for the compiler's recursion.
//!
//! Every stage recurses over the tree, and so does LLVM in places; a thread of the caller's may have half a megabyte.

use std::{panic, thread};

/// Bytes of address space; memory is only taken for what is used.
const SIZE: usize = 256 << 20;

/// Runs `work` on a large stack. Where the system gives none, it runs on the caller's.
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
}
