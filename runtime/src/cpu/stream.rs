//! Streams and events of the CPU device. Every call does its work before it returns, so a stream is only a name and an
//! event only a time.

use std::{
    any::Any,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use crate::{
    error::{Error, ErrorKind},
    executor::{Event, Stream},
};

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

/// An event.
#[derive(Debug, Default)]
pub(super) struct CpuEvent {
    recorded: Mutex<Option<Instant>>,
}

impl Event for CpuEvent {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl CpuEvent {
    /// The event as one of this executor's.
    pub(super) fn of(event: &dyn Event) -> Result<&Self, Error> {
        let other = || Error::new(ErrorKind::Value, "the event belongs to another kind of device than the CPU");
        event.as_any().downcast_ref().ok_or_else(other)
    }

    /// Notes the time.
    pub(super) fn record(&self) {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn time(&self) -> Result<Instant, Error> {
        let never = || {
            Error::new(
                ErrorKind::Value,
                "an event was not recorded: record both before asking for the time between them",
            )
        };
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).ok_or_else(never)
    }

    /// Milliseconds from `self` to `end`, negative if `end` came first.
    pub(super) fn elapsed_ms(&self, end: &Self) -> Result<f32, Error> {
        let (start, end) = (self.time()?, end.time()?);
        let later = end.saturating_duration_since(start).as_secs_f64();
        let earlier = start.saturating_duration_since(end).as_secs_f64();
        Ok(((later - earlier) * 1e3) as f32)
    }
}
