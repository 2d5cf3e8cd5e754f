//! Systems on which invalid memory accesses end the process, as by default.
#![expect(unsafe_code, reason = "calls code that was compiled at run time")]

use std::rc::Rc;

use weft_artifact::HostContext;

use super::{super::module::Entry, InvalidAccess};

/// Nothing is known of a thread here.
#[derive(Debug)]
pub(crate) struct ThreadSlot;

/// Where a thread is, which is nowhere here.
#[derive(Debug)]
pub(crate) struct Frame;

impl ThreadSlot {
    /// Nothing to do.
    pub(crate) fn leave(&self) -> Frame {
        Frame
    }

    /// Nothing to do.
    pub(crate) fn come_back(&self, _frame: Frame) {}
}

/// Nothing to do.
pub(crate) fn after_fork() {}

/// There are none.
pub(crate) fn seat() -> Option<Rc<ThreadSlot>> {
    None
}

/// Calls `run`.
pub(crate) fn outside<R>(run: impl FnOnce() -> R) -> R {
    run()
}

/// Calls an entry.
///
/// # Safety
///
/// As the entry says.
pub(crate) unsafe fn call(
    _seat: Option<&ThreadSlot>,
    entry: Entry,
    context: *mut HostContext,
    _kernel: &str,
) -> Result<(), InvalidAccess> {
    // SAFETY: the caller's promise.
    unsafe { entry(context) };
    Ok(())
}
