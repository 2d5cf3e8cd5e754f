//! The time of each phase of preparing a kernel, printed with `WEFT_TIMING=1`.
//!
//! A kernel's measurement belongs to the thread that prepares the kernel, so that no function passes it on. Python code
//! that runs meanwhile may prepare another kernel: then that one is measured, and its time is part of the enclosing
//! phase.

use std::{
    cell::RefCell,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use pyo3::prelude::*;
use weft_compiler::{Size, StageEvent, Watch};

use crate::devices;

/// The state of a measurement.
#[derive(Debug, Default)]
struct Noted {
    /// Phases with the time at which each began, in order.
    phases: Vec<(String, Instant)>,
    /// The size of LLVM's module before and after its passes, if it was compiled.
    sizes: Vec<Size>,
}

/// The measurement, shared with the compiling thread.
type Phases = Arc<Mutex<Noted>>;

thread_local! {
    /// The measurements of this thread, the innermost last.
    static MEASURED: RefCell<Vec<Phases>> = const { RefCell::new(Vec::new()) };
}

/// A measurement, which ends when this is dropped.
pub(crate) struct Timing(Option<Phases>);

impl Timing {
    /// Measures from now on, if that is wanted.
    pub(crate) fn start(py: Python<'_>, first: &str) -> PyResult<Self> {
        if !devices::settings(py)?.timing {
            return Ok(Self(None));
        }
        let phases = Phases::default();
        note(&phases, first);
        MEASURED.with_borrow_mut(|measured| measured.push(Arc::clone(&phases)));
        Ok(Self(Some(phases)))
    }

    /// Prints how long each phase took: a line on Python's standard error. `what` names the kernel.
    pub(crate) fn print(&self, py: Python<'_>, what: impl FnOnce() -> String) -> PyResult<()> {
        let Some(phases) = &self.0 else { return Ok(()) };
        let line = {
            let noted = phases.lock().unwrap_or_else(PoisonError::into_inner);
            line(&noted.phases, Instant::now(), &noted.sizes, &what())
        };
        let stderr = py.import(intern!(py, "sys"))?.getattr(intern!(py, "stderr"))?;
        // A program without a console has none.
        if !stderr.is_none() {
            stderr.call_method1(intern!(py, "write"), (line,))?;
        }
        Ok(())
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        if self.0.is_some() {
            MEASURED.with_borrow_mut(Vec::pop);
        }
    }
}

/// A phase of this thread's measurement begins, if there is one.
pub(crate) fn begin(phase: &str) {
    MEASURED.with_borrow(|measured| {
        if let Some(phases) = measured.last() {
            note(phases, phase);
        }
    });
}

/// An observer of a compilation's stages, if this thread measures.
pub(crate) fn watch() -> Option<Watch> {
    let phases = MEASURED.with_borrow(|measured| measured.last().cloned())?;
    Some(Arc::new(move |event| match event {
        StageEvent::Begins(stage) => note(&phases, &stage.to_string()),
        StageEvent::Holds(size) => phases.lock().unwrap_or_else(PoisonError::into_inner).sizes.push(size),
    }))
}

fn note(phases: &Phases, phase: &str) {
    phases.lock().unwrap_or_else(PoisonError::into_inner).phases.push((phase.to_owned(), Instant::now()));
}

/// The phases in milliseconds, in the order in which each came first, and their sum; and how large LLVM's module was.
fn line(phases: &[(String, Instant)], end: Instant, sizes: &[Size], what: &str) -> String {
    let ends = phases.iter().skip(1).map(|(_, begin)| *begin).chain([end]);
    let mut sums: Vec<(&str, Duration)> = Vec::new();
    for ((phase, begin), end) in phases.iter().zip(ends) {
        let time = end.saturating_duration_since(*begin);
        match sums.iter_mut().find(|(known, _)| known == phase) {
            Some((_, sum)) => *sum += time,
            None => sums.push((phase, time)),
        }
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let shown: Vec<String> = sums.iter().map(|(phase, time)| format!("{phase} {:.2}", ms(*time))).collect();
    let all = ms(sums.iter().map(|(_, time)| *time).sum());
    let sizes: Vec<String> =
        sizes.iter().map(|size| format!("{} functions, {} instructions", size.functions, size.instructions)).collect();
    let sizes = if sizes.is_empty() { String::new() } else { format!("; LLVM IR: {}", sizes.join(" -> ")) };
    format!("weft: {what}: {all:.2} ms: {}{sizes}\n", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_that_comes_again_is_added() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let phases = [("a", 0), ("b", 2), ("a", 5), ("c", 6)].map(|(name, ms)| (name.to_owned(), at(ms)));
        assert_eq!(line(&phases, at(10), &[], "k()"), "weft: k(): 10.00 ms: a 3.00, b 3.00, c 4.00\n");
    }

    #[test]
    fn the_size_before_and_behind_the_passes_stands_at_the_end() {
        let start = Instant::now();
        let sizes = [(3, 120), (1, 45)].map(|(functions, instructions)| Size { functions, instructions });
        let shown = line(&[("a".to_owned(), start)], start, &sizes, "k()");
        assert_eq!(
            shown,
            "weft: k(): 0.00 ms: a 0.00; LLVM IR: 3 functions, 120 instructions -> 1 functions, 45 instructions\n"
        );
    }
}
