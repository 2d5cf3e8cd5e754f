//! The exceptions that a request reports.

use crate::request::{Entry, Options};

/// The kinds of exceptions that are reported.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
pub(in crate::frontend) struct Reports {
    /// Exceptions of `raise` and `assert`.
    pub(in crate::frontend) raises: bool,
    /// Divisions by zero, and indices of tuples: Python's rules instead of NumPy's.
    pub(in crate::frontend) python: bool,
    /// Whether `python` includes divisions of floats; with `fastmath` it does not.
    pub(in crate::frontend) floats: bool,
    /// Indices of arrays.
    pub(in crate::frontend) bounds: bool,
    /// Mismatches of extents; for launches always, since the test is cheap compared to the work.
    pub(in crate::frontend) shapes: bool,
}

impl Reports {
    pub(in crate::frontend) fn of(options: &Options) -> Self {
        if matches!(options.entry, Entry::Foreign(_)) {
            // The foreign program that runs the code does not read the report.
            return Self::default();
        }
        let Options { exceptions, debug, boundscheck, fastmath, .. } = options;
        let (raises, python, floats) = (*exceptions || *debug, *debug, *debug && !*fastmath);
        Self { raises, python, floats, bounds: *boundscheck, shapes: true }
    }

    /// Whether functions return that the exception which ended a thread is reported, so that calls are added to the
    /// report. If only extents are reported, a report has no calls, so that code without these options has no overhead.
    pub(in crate::frontend) fn any(self) -> bool {
        self.raises || self.python || self.bounds
    }
}
