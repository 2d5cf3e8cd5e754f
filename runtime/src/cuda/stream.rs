//! Streams and events.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{any::Any, ptr, sync::Arc};

use cudarc::driver::sys::{self, CUevent_flags_enum as EventFlags, CUstream_flags_enum as StreamFlags};

use super::{
    context::Context,
    driver::{self, Handle},
};
use crate::{
    error::{Error, ErrorKind},
    executor::{Event, Stream},
};

/// `CUDA_ERROR_NOT_READY`: work is still going on.
const NOT_READY: u32 = 600;
/// `CUDA_ERROR_INVALID_HANDLE`: for `cuEventElapsedTime` an event that was not recorded.
const INVALID_HANDLE: u32 = 400;

/// What owns a stream of the driver.
#[derive(Debug)]
pub(super) struct StreamInner {
    context: Arc<Context>,
    handle: Handle<sys::CUstream_st>,
    owned: bool,
}

impl Drop for StreamInner {
    fn drop(&mut self) {
        if !self.owned || driver::is_forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: the handle is live and no one else has it. Work in it goes on and releases it when done.
            let _: Result<(), Error> = unsafe { self.context.driver.cuStreamDestroy(self.handle.0) };
        }
    }
}

/// A stream.
#[derive(Clone, Debug)]
pub(super) struct CudaStream(Arc<StreamInner>);

impl CudaStream {
    /// A new stream with default flags: it waits for the default stream and the default stream for it.
    pub(super) fn new(context: &Arc<Context>) -> Result<Self, Error> {
        let _entered = context.enter()?;
        let mut handle = ptr::null_mut();
        // SAFETY: it writes one handle.
        unsafe { context.driver.cuStreamCreate(&raw mut handle, StreamFlags::CU_STREAM_DEFAULT as u32) }?;
        Ok(Self(Arc::new(StreamInner { context: Arc::clone(context), handle: Handle(handle), owned: true })))
    }

    /// Someone else's stream.
    pub(super) fn external(context: &Arc<Context>, handle: u64) -> Self {
        let handle = Handle(ptr::with_exposed_provenance_mut(handle as usize));
        Self(Arc::new(StreamInner { context: Arc::clone(context), handle, owned: false }))
    }

    /// The handle for the driver.
    pub(super) fn raw(&self) -> sys::CUstream {
        self.0.handle.0
    }
}

impl Stream for CudaStream {
    fn handle(&self) -> u64 {
        self.raw().expose_provenance() as u64
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The stream as one of this executor's; `None` is the default stream.
#[inline]
pub(super) fn cuda_stream(stream: Option<&dyn Stream>) -> Result<Option<&CudaStream>, Error> {
    let Some(stream) = stream else { return Ok(None) };
    match stream.as_any().downcast_ref() {
        Some(stream) => Ok(Some(stream)),
        None => Err(Error::new(ErrorKind::Value, "the stream belongs to another kind of device than CUDA")),
    }
}

/// The driver's handle of a stream; null is the default stream.
#[inline]
pub(super) fn raw_stream(stream: Option<&dyn Stream>) -> Result<sys::CUstream, Error> {
    Ok(cuda_stream(stream)?.map_or(ptr::null_mut(), CudaStream::raw))
}

/// An event.
#[derive(Debug)]
pub(super) struct CudaEvent {
    context: Arc<Context>,
    handle: Handle<sys::CUevent_st>,
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if driver::is_forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: the handle is live and no one else has it.
            let _: Result<(), Error> = unsafe { self.context.driver.cuEventDestroy(self.handle.0) };
        }
    }
}

impl Event for CudaEvent {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl CudaEvent {
    /// A new event with timing.
    pub(super) fn new(context: &Arc<Context>) -> Result<Self, Error> {
        let _entered = context.enter()?;
        let mut handle = ptr::null_mut();
        // SAFETY: it writes one handle.
        unsafe { context.driver.cuEventCreate(&raw mut handle, EventFlags::CU_EVENT_DEFAULT as u32) }?;
        Ok(Self { context: Arc::clone(context), handle: Handle(handle) })
    }

    /// The event as one of this executor's.
    pub(super) fn of(event: &dyn Event) -> Result<&Self, Error> {
        let other = || Error::new(ErrorKind::Value, "the event belongs to another kind of device than CUDA");
        event.as_any().downcast_ref().ok_or_else(other)
    }

    pub(super) fn record(&self, stream: Option<&dyn Stream>) -> Result<(), Error> {
        let stream = raw_stream(stream)?;
        let _entered = self.context.enter()?;
        // SAFETY: both handles are live.
        self.context.blame(unsafe { self.context.driver.cuEventRecord(self.handle.0, stream) })
    }

    pub(super) fn synchronize(&self) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        // SAFETY: the handle is live.
        self.context.blame(unsafe { self.context.driver.cuEventSynchronize(self.handle.0) })
    }

    pub(super) fn query(&self) -> Result<bool, Error> {
        let _entered = self.context.enter()?;
        // SAFETY: the handle is live.
        self.context.blame(is_ready(unsafe { self.context.driver.cuEventQuery(self.handle.0) }))
    }

    /// Makes a stream wait for the event.
    pub(super) fn hold(&self, stream: Option<&dyn Stream>) -> Result<(), Error> {
        let stream = raw_stream(stream)?;
        let _entered = self.context.enter()?;
        // SAFETY: both handles are live.
        self.context.blame(unsafe { self.context.driver.cuStreamWaitEvent(stream, self.handle.0, 0) })
    }

    /// Milliseconds from `self` to `end`.
    pub(super) fn elapsed_ms(&self, end: &Self) -> Result<f32, Error> {
        let _entered = self.context.enter()?;
        let mut ms = 0.0;
        // SAFETY: it writes one float; both handles are live.
        let result = unsafe { self.context.driver.cuEventElapsedTime(&raw mut ms, self.handle.0, end.handle.0) };
        self.context.blame(result).map(|()| ms).map_err(|mut error| {
            error.message += match error.driver_code {
                Some(INVALID_HANDLE) => ": record both events before asking for the time between them",
                Some(NOT_READY) => ": wait for the second event (synchronize it) before asking for the time",
                _ => "",
            };
            error
        })
    }
}

/// Whether a query says that all is done.
pub(super) fn is_ready(result: Result<(), Error>) -> Result<bool, Error> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.driver_code == Some(NOT_READY) => Ok(false),
        Err(error) => Err(error),
    }
}
