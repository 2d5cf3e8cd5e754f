//! Which exceptions a request wants to hear of.

use crate::request::{Entry, Options};

/// The kinds of exceptions that are reported.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
pub(in crate::frontend) struct Reports {
    /// Exceptions of `raise` and `assert`.
    pub(in crate::frontend) raises: bool,
    /// Divisions by zero, and indices of tuples: Python's rules in place of NumPy's.
    pub(in crate::frontend) python: bool,
    /// Divisions of floats by zero are among them: fast ones give what they give.
    pub(in crate::frontend) floats: bool,
    /// Indices of arrays.
    pub(in crate::frontend) bounds: bool,
    /// Extents that do not fit each other: those of a launch always, since the test costs nothing beside the work.
    pub(in crate::frontend) shapes: bool,
}

impl Reports {
    pub(in crate::frontend) fn of(options: &Options) -> Self {
        if matches!(options.entry, Entry::Foreign(_)) {
            // The foreign program that runs the code does not read the record.
            return Self::default();
        }
        let Options { exceptions, debug, boundscheck, fastmath, .. } = options;
        let (raises, python, floats) = (*exceptions || *debug, *debug, *debug && !*fastmath);
        Self { raises, python, floats, bounds: *boundscheck, shapes: true }
    }

    /// Whether functions return that the exception that ended a thread is reported, and calls add themselves. If only
    /// extents are reported, a report has no calls, so that code without these options does not pay for them.
    pub(in crate::frontend) fn any(self) -> bool {
        self.raises || self.python || self.bounds
    }
}
