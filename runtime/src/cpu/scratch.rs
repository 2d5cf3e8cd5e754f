//! Scratch memory of a thread that runs blocks: shared memory and what lives across barriers. Each thread keeps its own
//! between launches, so that a launch allocates only where it needs more than any before it.

use std::cell::RefCell;

use super::memory::Allocation;

thread_local! {
    static SCRATCH: RefCell<Option<Allocation>> = const { RefCell::new(None) };
}

/// Calls `run` with this thread's scratch of at least `bytes` bytes, 64-byte aligned, contents undefined; `None` if
/// memory is exhausted, or if this thread is ending and its scratch is gone. A kernel cannot launch a kernel, but a
/// signal handler can while one runs: its launch has memory of its own.
pub(super) fn with_scratch<R>(bytes: usize, run: impl FnOnce(*mut u8) -> R) -> Option<R> {
    let ran = SCRATCH.try_with(|scratch| {
        let size = bytes.checked_next_multiple_of(4096)?;
        let Ok(mut scratch) = scratch.try_borrow_mut() else {
            let own = Allocation::new(size)?;
            return Some(run(own.start()));
        };
        if scratch.as_ref().is_none_or(|held| held.len() < bytes) {
            // The old one goes first: nothing in it is needed.
            *scratch = None;
            *scratch = Some(Allocation::new(size)?);
        }
        scratch.as_ref().map(|held| run(held.start()))
    });
    ran.ok().flatten()
}
