//! Cancellation of compilations: the caller polls whether the result is still wanted.
//!
//! The compiling thread polls a flag: at each statement and expression, in passes over statements, and before each LLVM
//! pass. If it is raised the thread's stack is unwound ([`check`]), since the front end recurses over the tree through
//! code that returns no errors. No other thread sees partial state: a compilation shares nothing, and unwinding frees
//! LLVM's context.

use std::{
    cell::RefCell,
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Returns `true` to cancel the work. Called on the requesting thread while it waits.
pub type Poll<'a> = &'a dyn Fn() -> bool;

/// The panic payload that unwinds the stack of a canceled compilation.
#[derive(Debug)]
pub(crate) struct GivenUp;

thread_local! {
    /// The cancellation flag of this thread's compilation, if it has one.
    static FLAG: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Sets the flag that this thread polls.
pub(crate) fn look_at(flag: Arc<AtomicBool>) {
    FLAG.set(Some(flag));
}

/// The flag that this thread polls. It lives as long as the thread does.
pub(crate) fn flag() -> Option<*const AtomicBool> {
    FLAG.with_borrow(|flag| flag.as_ref().map(Arc::as_ptr))
}

/// Whether this thread's compilation has been canceled.
pub(crate) fn is_given_up() -> bool {
    FLAG.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)))
}

/// Unwinds the stack if the compilation has been canceled.
pub(crate) fn check() {
    if is_given_up() {
        panic::resume_unwind(Box::new(GivenUp));
    }
}
