//! Streams and events.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    any::Any,
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use cudarc::driver::sys::{self, CUevent_flags_enum as EventFlags, CUstream_flags_enum as StreamFlags};

use super::{
    capture::{self, Aside},
    context::Context,
    driver::{self, Handle},
};
use crate::{
    error::{Error, ErrorKind},
    executor::{Event, Stream},
};

/// `CUDA_ERROR_NOT_READY`: work is still going on.
const NOT_READY: u32 = 600;
/// `CUDA_ERROR_INVALID_HANDLE`: for `cuEventElapsedTime` an event that was not recorded, or is not timed.
const INVALID_HANDLE: u32 = 400;

/// The legacy default stream by its own handle: the same queue as the null stream.
const LEGACY: u64 = 1;
/// The default stream of the calling thread: a queue for each thread.
const PER_THREAD: u64 = 2;
/// The order of a buffer from the per-thread default stream.
pub(super) const NO_ORDER: u64 = u64::MAX;

/// The owner of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// weft: it lives as long as this.
    Weft,
    /// Another library, which may destroy it once the work requested from weft is queued.
    Other,
    /// The driver's, another one for each thread, which no other thread can name.
    Thread,
}

/// The owner of a driver stream.
#[derive(Debug)]
pub(super) struct StreamInner {
    context: Arc<Context>,
    handle: Handle<sys::CUstream_st>,
    owner: Owner,
    /// Recorded after the last use of a buffer in a foreign stream.
    mark: OnceLock<Arc<CudaEvent>>,
}

impl Drop for StreamInner {
    fn drop(&mut self) {
        if self.owner != Owner::Weft || driver::is_forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            let _aside = Aside::new(self.context.driver);
            self.context.free_blocks.free_of_stream(&self.context, self.handle.0.expose_provenance() as u64);
            // SAFETY: the handle is live and has no other users. Its work continues and releases it when done.
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
        Ok(Self::of(context, handle, Owner::Weft))
    }

    /// A foreign stream, which must be of the same context.
    pub(super) fn external(context: &Arc<Context>, handle: u64) -> Result<Self, Error> {
        let raw = ptr::with_exposed_provenance_mut(handle as usize);
        if handle > PER_THREAD {
            let _entered = context.enter()?;
            let mut of = ptr::null_mut();
            // SAFETY: it writes one handle; the caller says that the stream is live.
            unsafe { context.driver.cuStreamGetCtx(raw, &raw mut of) }?;
            if !context.has_handle(of) {
                return Err(Error::new(
                    ErrorKind::Value,
                    format!(
                        "the stream {handle:#x} belongs to another context than device {}'s",
                        context.attributes.id
                    ),
                ));
            }
        }
        Ok(Self::of(context, raw, if handle == PER_THREAD { Owner::Thread } else { Owner::Other }))
    }

    fn of(context: &Arc<Context>, handle: sys::CUstream, owner: Owner) -> Self {
        let context = Arc::clone(context);
        Self(Arc::new(StreamInner { context, handle: Handle(handle), owner, mark: OnceLock::new() }))
    }

    /// The handle for the driver.
    pub(super) fn raw(&self) -> sys::CUstream {
        self.0.handle.0
    }

    /// Whether it belongs to this very context, which it notifies when it is destroyed, and not to another one of the
    /// same device.
    pub(super) fn is_of(&self, context: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.0.context, context)
    }

    /// Its owner.
    pub(super) fn owner(&self) -> Owner {
        self.0.owner
    }

    /// Whether it is the default stream, by its handle.
    pub(super) fn is_default(&self) -> bool {
        self.order() == 0
    }

    /// A key that is unique among live streams.
    pub(super) fn key(&self) -> u64 {
        Arc::as_ptr(&self.0).addr() as u64
    }

    /// An event after all current work of the stream. A foreign stream has one event, which is recorded again each
    /// time: it then also follows all that it followed before.
    pub(super) fn marked(&self) -> Result<Arc<CudaEvent>, Error> {
        let event = match (self.0.owner, self.0.mark.get()) {
            (Owner::Other, Some(mark)) => Arc::clone(mark),
            (Owner::Other, None) => {
                let mark = Arc::new(CudaEvent::untimed(&self.0.context)?);
                Arc::clone(self.0.mark.get_or_init(|| mark))
            }
            (Owner::Weft | Owner::Thread, _) => Arc::new(CudaEvent::untimed(&self.0.context)?),
        };
        event.record(&self.0.context, Some(self))?;
        Ok(event)
    }

    /// Whether all work in it is done.
    pub(super) fn query(&self) -> Result<bool, Error> {
        let _entered = self.0.context.enter()?;
        // SAFETY: the stream is live.
        is_ready(unsafe { self.0.context.driver.cuStreamQuery(self.raw()) })
    }
}

impl Stream for CudaStream {
    fn handle(&self) -> u64 {
        self.raw().expose_provenance() as u64
    }

    fn order(&self) -> u64 {
        match self.handle() {
            LEGACY => 0,
            handle => handle,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The stream as one of this executor's and of this context's; `None` is the default stream.
#[inline]
pub(super) fn cuda_stream<'a>(
    context: &Context,
    stream: Option<&'a dyn Stream>,
) -> Result<Option<&'a CudaStream>, Error> {
    let Some(stream) = stream else { return Ok(None) };
    match stream.as_any().downcast_ref::<CudaStream>() {
        Some(stream) if stream.0.context.is(context) => Ok(Some(stream)),
        Some(stream) => Err(other_device("stream", &stream.0.context, context)),
        None => Err(Error::new(ErrorKind::Value, "the stream belongs to another kind of device than CUDA")),
    }
}

/// The driver's handle of a stream; null is the default stream.
#[inline]
pub(super) fn raw_stream(context: &Context, stream: Option<&dyn Stream>) -> Result<sys::CUstream, Error> {
    Ok(cuda_stream(context, stream)?.map_or(ptr::null_mut(), CudaStream::raw))
}

#[cold]
fn other_device(what: &str, of: &Context, here: &Context) -> Error {
    let (of, here) = (of.attributes.id, here.attributes.id);
    Error::new(ErrorKind::Value, format!("the {what} belongs to device {of}, but the work is for device {here}"))
}

/// An event.
#[derive(Debug)]
pub(super) struct CudaEvent {
    context: Arc<Context>,
    handle: Handle<sys::CUevent_st>,
    /// It was recorded last in a foreign stream that was captured then.
    captured: AtomicBool,
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if driver::is_forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            let _aside = Aside::new(self.context.driver);
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
        Self::with_flags(context, EventFlags::CU_EVENT_DEFAULT)
    }

    /// A new event that is only waited for.
    pub(super) fn untimed(context: &Arc<Context>) -> Result<Self, Error> {
        Self::with_flags(context, EventFlags::CU_EVENT_DISABLE_TIMING)
    }

    fn with_flags(context: &Arc<Context>, flags: EventFlags) -> Result<Self, Error> {
        let _entered = context.enter()?;
        let mut handle = ptr::null_mut();
        // SAFETY: it writes one handle.
        unsafe { context.driver.cuEventCreate(&raw mut handle, flags as u32) }?;
        Ok(Self { context: Arc::clone(context), handle: Handle(handle), captured: AtomicBool::new(false) })
    }

    /// The handle for the driver.
    pub(super) fn raw(&self) -> sys::CUevent {
        self.handle.0
    }

    /// The event as one of this executor's.
    pub(super) fn of(event: &dyn Event) -> Result<&Self, Error> {
        let other = || Error::new(ErrorKind::Value, "the event belongs to another kind of device than CUDA");
        event.as_any().downcast_ref().ok_or_else(other)
    }

    /// Records it in a stream of its own context, or in a context's default stream, which must be the same one.
    pub(super) fn record(&self, context: &Context, stream: Option<&dyn Stream>) -> Result<(), Error> {
        if stream.is_none() && !self.context.is(context) {
            return Err(other_device("event", &self.context, context));
        }
        let stream = cuda_stream(&self.context, stream)?;
        let _entered = self.context.enter()?;
        self.captured.store(capture::is_captured_of_others(self.context.driver, stream), Ordering::Relaxed);
        let stream = stream.map_or(ptr::null_mut(), CudaStream::raw);
        // SAFETY: both handles are live.
        self.context.blame(unsafe { self.context.driver.cuEventRecord(self.handle.0, stream) })
    }

    /// Whether it is reached, for weft's own use: independent of concurrent captures.
    pub(super) fn is_over(&self) -> bool {
        let _aside = Aside::new(self.context.driver);
        self.query().is_ok_and(|done| done)
    }

    /// Waits for it, in the context, and reports nothing.
    pub(super) fn wait(&self) {
        // SAFETY: the handle is live.
        let _: Result<(), Error> = unsafe { self.context.driver.cuEventSynchronize(self.handle.0) };
    }

    /// Checks that it can be queried: an event of a capture has no completion yet.
    fn check_reachable(&self) -> Result<(), Error> {
        if self.captured.load(Ordering::Relaxed) { Err(capture::captured_event()) } else { Ok(()) }
    }

    pub(super) fn synchronize(&self) -> Result<(), Error> {
        self.check_reachable()?;
        let _entered = self.context.enter()?;
        // SAFETY: the handle is live.
        self.context.blame(unsafe { self.context.driver.cuEventSynchronize(self.handle.0) })?;
        self.context.look()
    }

    pub(super) fn query(&self) -> Result<bool, Error> {
        self.check_reachable()?;
        let _entered = self.context.enter()?;
        // SAFETY: the handle is live.
        self.context.blame(is_ready(unsafe { self.context.driver.cuEventQuery(self.handle.0) }))
    }

    /// Makes a stream, or a context's default stream, wait for the event; either may be another device's.
    pub(super) fn hold(&self, context: &Context, stream: Option<&dyn Stream>) -> Result<(), Error> {
        let context = match stream.and_then(|stream| stream.as_any().downcast_ref::<CudaStream>()) {
            Some(stream) => &stream.0.context,
            None => context,
        };
        let stream = cuda_stream(context, stream)?;
        let captured = self.captured.load(Ordering::Relaxed);
        if captured && stream.is_none_or(CudaStream::is_default) {
            return Err(capture::not_allowed(
                "make the default stream wait (launch in the captured stream: `kernel[blocks, threads, stream]`) for",
            ));
        }
        let _entered = context.enter()?;
        if !captured && capture::is_captured_of_others(context.driver, stream) {
            return Err(capture::not_allowed("wait for work outside the capture in"));
        }
        let stream = stream.map_or(ptr::null_mut(), CudaStream::raw);
        // SAFETY: both handles are live.
        context.blame(unsafe { context.driver.cuStreamWaitEvent(stream, self.handle.0, 0) })
    }

    /// Milliseconds from `self` to `end`.
    pub(super) fn elapsed_ms(&self, end: &Self) -> Result<f32, Error> {
        if !self.context.is(&end.context) {
            return Err(other_device("second event", &end.context, &self.context));
        }
        let _entered = self.context.enter()?;
        let mut ms = 0.0;
        // SAFETY: it writes one float; both handles are live.
        let result = unsafe { self.context.driver.cuEventElapsedTime(&raw mut ms, self.handle.0, end.handle.0) };
        self.context.blame(result).map(|()| ms).map_err(|mut error| {
            let suggestion = match error.driver_code {
                Some(INVALID_HANDLE) => {
                    ": record both events before getting the time between them, and create both with timing"
                }
                Some(NOT_READY) => ": wait for the second event (synchronize it) before getting the time",
                _ => return error,
            };
            error.kind = ErrorKind::Event;
            error.message += suggestion;
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
