//! Time ranges for a profiler that is attached to this process: compilations, copies and launches.
//!
//! Without a profiler, a range is one load and one branch, and its message is never created. Ranges belong to a thread
//! and nest: one ends when it is dropped, on its thread.

use std::{
    fmt::Debug,
    marker::PhantomData,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// The kind of work in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// A compilation.
    Compile,
    /// A copy, or bytes that are set.
    Copy,
    /// A launch: the host's time, which on a GPU ends before the kernel does.
    Launch,
}

impl Category {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Compile, Self::Copy, Self::Launch];

    /// Its number for profilers, from 1 on: 0 is no category there.
    pub fn number(self) -> u32 {
        match self {
            Self::Compile => 1,
            Self::Copy => 2,
            Self::Launch => 3,
        }
    }

    /// Its name for profilers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::Copy => "copy",
            Self::Launch => "launch",
        }
    }
}

/// A receiver of ranges.
pub(crate) trait Profiler: Debug + Send + Sync {
    /// A range of this thread begins, in the one that began last, with a number that belongs to it: bytes.
    fn push(&self, category: Category, message: &str, payload: Option<u64>);
    /// The range that began last on this thread ends.
    fn pop(&self);
}

static PROFILER: OnceLock<Box<dyn Profiler>> = OnceLock::new();

/// There is a profiler. Set after it, and never unset.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Reports all ranges to a profiler from now on. Only the first call has an effect.
pub(crate) fn tell(profiler: Box<dyn Profiler>) {
    if PROFILER.set(profiler).is_ok() {
        IS_WATCHED.store(true, Ordering::Relaxed);
    }
}

/// A range, which ends when this is dropped.
#[derive(Debug)]
#[must_use = "the range ends when it is dropped"]
pub struct Range {
    profiler: Option<&'static dyn Profiler>,
    /// It is its thread's.
    _thread: PhantomData<*const ()>,
}

/// A range begins. `describe` gives its message and its payload, in bytes.
#[inline]
pub fn range(category: Category, describe: impl FnOnce() -> (String, Option<u64>)) -> Range {
    let profiler = if IS_WATCHED.load(Ordering::Relaxed) { begin(category, describe) } else { None };
    Range { profiler, _thread: PhantomData }
}

#[cold]
fn begin(category: Category, describe: impl FnOnce() -> (String, Option<u64>)) -> Option<&'static dyn Profiler> {
    let profiler = &**PROFILER.get()?;
    let (message, payload) = describe();
    profiler.push(category, &message, payload);
    Some(profiler)
}

impl Drop for Range {
    #[inline]
    fn drop(&mut self) {
        if let Some(profiler) = self.profiler {
            profiler.pop();
        }
    }
}

/// The range of a copy or of bytes that are set: `copy host to device 4096 bytes`.
#[inline]
pub(crate) fn copy(what: &'static str, bytes: u64) -> Range {
    range(Category::Copy, || (format!("{what} {bytes} bytes"), Some(bytes)))
}

/// The range of a launch: `launch saxpy`.
#[inline]
pub(crate) fn launch(kernel: &str) -> Range {
    range(Category::Launch, || (format!("launch {kernel}"), None))
}

/// The range of a graph's launch: `launch graph of 3 steps`.
#[inline]
pub(crate) fn launch_graph(n_steps: usize) -> Range {
    range(Category::Launch, || (format!("launch graph of {n_steps} step{}", if n_steps == 1 { "" } else { "s" }), None))
}
