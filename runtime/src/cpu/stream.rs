//! Streams and events of the CPU device. Every call does its work before it returns, so a stream is only a name and an
//! event only a time.

use std::{
    any::Any,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use crate::{
    error::{Error, ErrorKind},
    executor::{Event, Stream},
};

/// `CUDA_ERROR_INVALID_HANDLE`.
const INVALID_HANDLE: u32 = 400;

/// A stream.
#[derive(Debug)]
pub(super) struct CpuStream {
    handle: u64,
}

impl CpuStream {
    /// A stream with a handle of its own, different from CUDA's special ones.
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(16);
        Self { handle: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// A stream with a handle that the caller chose.
    pub(super) fn external(handle: u64) -> Self {
        Self { handle }
    }
}

impl Stream for CpuStream {
    fn handle(&self) -> u64 {
        self.handle
    }

    fn order(&self) -> u64 {
        self.handle
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Refuses a stream of another executor.
pub(super) fn check_stream(stream: Option<&dyn Stream>) -> Result<(), Error> {
    if stream.is_none_or(|stream| stream.as_any().is::<CpuStream>()) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Value, "the stream belongs to another kind of device than the CPU"))
}

/// An event. Without a lock, which a thread could hold when the process is forked.
#[derive(Debug)]
pub(super) struct CpuEvent {
    made: Instant,
    timed: bool,
    /// Nanoseconds from then to when it was recorded, and one; 0 before.
    recorded: AtomicU64,
}

/// The error that a driver gives for such events, with its number.
#[cold]
fn no_time(message: &str) -> Error {
    Error { driver_code: Some(INVALID_HANDLE), ..Error::new(ErrorKind::Event, message) }
}

impl Event for CpuEvent {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl CpuEvent {
    /// A new event.
    pub(super) fn new(timed: bool) -> Self {
        Self { made: Instant::now(), timed, recorded: AtomicU64::new(0) }
    }

    /// The event as one of this executor's.
    pub(super) fn of(event: &dyn Event) -> Result<&Self, Error> {
        let other = || Error::new(ErrorKind::Value, "the event belongs to another kind of device than the CPU");
        event.as_any().downcast_ref().ok_or_else(other)
    }

    /// Notes the time.
    pub(super) fn record(&self) {
        self.recorded.store(self.made.elapsed().as_nanos() as u64 + 1, Ordering::Release);
    }

    fn time(&self) -> Result<Instant, Error> {
        if !self.timed {
            return Err(no_time("an event has no timing: create both events with timing to get the time between them"));
        }
        let never = || no_time("an event was not recorded: record both events before getting the time between them");
        let after = self.recorded.load(Ordering::Acquire).checked_sub(1).ok_or_else(never)?;
        Ok(self.made + Duration::from_nanos(after))
    }

    /// Milliseconds from `self` to `end`, negative if `end` came first.
    pub(super) fn elapsed_ms(&self, end: &Self) -> Result<f32, Error> {
        let (start, end) = (self.time()?, end.time()?);
        let later = end.saturating_duration_since(start).as_secs_f64();
        let earlier = start.saturating_duration_since(end).as_secs_f64();
        Ok(((later - earlier) * 1e3) as f32)
    }
}
