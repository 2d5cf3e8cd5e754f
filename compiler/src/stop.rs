//! Compilations that are given up: whoever asked for one is asked from time to time whether it is still wanted.
//!
//! The thread that compiles looks at a flag: at each statement and expression, in walks over statements, and LLVM before
//! each of its passes. Where it is raised the thread's stack is unwound ([`check`]), since the front end recurses over the
//! tree through code that has no errors to hand on. Nothing that it leaves is seen by anyone: a compilation shares
//! nothing, and LLVM's context is freed on the way.

use std::{
    cell::RefCell,
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Answers `true` to give up what is going on. Called on the thread that asked for it, while it waits.
pub type Poll<'a> = &'a dyn Fn() -> bool;

/// What unwinds the stack of a compilation that is given up.
#[derive(Debug)]
pub(crate) struct GivenUp;

thread_local! {
    /// The flag of the compilation that this thread does, if it can be given up.
    static FLAG: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// From now on this thread looks at a flag.
pub(crate) fn look_at(flag: Arc<AtomicBool>) {
    FLAG.set(Some(flag));
}

/// The flag that this thread looks at. It lives as long as the thread does.
pub(crate) fn flag() -> Option<*const AtomicBool> {
    FLAG.with_borrow(|flag| flag.as_ref().map(Arc::as_ptr))
}

/// Whether this thread's compilation is given up.
pub(crate) fn is_given_up() -> bool {
    FLAG.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)))
}

/// Unwinds the stack if the compilation is given up.
pub(crate) fn check() {
    if is_given_up() {
        panic::resume_unwind(Box::new(GivenUp));
    }
}
