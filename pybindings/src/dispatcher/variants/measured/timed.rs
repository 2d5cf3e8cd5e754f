//! One timed launch: two events in the launch's stream.

use std::sync::Arc;

use weft_runtime::{Event, Executor, Stream};

use super::{Pending, Tuning};

/// A timed launch.
pub(in crate::dispatcher) struct Timed {
    tuning: Arc<Tuning>,
    candidate: usize,
    events: Option<(Arc<dyn Event>, Arc<dyn Event>)>,
    /// Whether its result is recorded.
    noted: bool,
}

impl Timed {
    /// A launch that is counted as begun.
    pub(super) fn new(tuning: Arc<Tuning>, candidate: usize) -> Self {
        Self { tuning, candidate, events: None, noted: false }
    }

    /// Records the first event, right before the launch.
    pub(in crate::dispatcher) fn begin(&mut self, executor: &dyn Executor, stream: Option<&dyn Stream>) {
        let events = || -> Result<_, weft_runtime::Error> {
            let events = (executor.new_event(true)?, executor.new_event(true)?);
            executor.record(&*events.0, stream)?;
            Ok(events)
        };
        // Without events, the launch is not timed.
        self.events = events().ok();
    }

    /// Records the second event, right after it.
    pub(in crate::dispatcher) fn end(mut self, executor: &dyn Executor, stream: Option<&dyn Stream>, launched: bool) {
        let events = self.events.take();
        let recorded = events.filter(|(_, end)| launched && executor.record(&**end, stream).is_ok());
        self.noted = true;
        let mut measured = self.tuning.lock();
        match recorded {
            Some((start, end)) => measured.pending.push(Pending { candidate: self.candidate, start, end }),
            None => measured.samples.finished(self.candidate, None),
        }
    }

    /// The compiler or the device rejects the candidate.
    pub(in crate::dispatcher) fn refused(mut self) {
        self.noted = true;
        let mut measured = self.tuning.lock();
        measured.samples.abandoned(self.candidate);
        let factors = measured.samples.tried[self.candidate].factors;
        measured.samples.rejected(factors);
    }
}

impl Drop for Timed {
    /// A launch that failed, for example because of a wrong argument, counts as not started.
    fn drop(&mut self) {
        if !self.noted {
            self.tuning.lock().samples.abandoned(self.candidate);
        }
    }
}
