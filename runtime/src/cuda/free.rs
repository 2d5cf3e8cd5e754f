//! Freeing memory that work in several streams has used.
//!
//! Memory that only its own stream has used is freed in that stream's order. Where others have used it too, all of them
//! are waited for by a stream of its own that does nothing else: no stream of the user's waits for another.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    ptr,
    sync::{Arc, PoisonError},
};

use cudarc::driver::sys::{self, CUevent_flags_enum as EventFlags, CUstream_flags_enum as StreamFlags};

use super::{
    capture::Aside,
    context::Context,
    driver::{Driver, Handle},
    stream::{CudaEvent, CudaStream, is_ready},
};
use crate::error::Error;

/// Work in another stream than the buffer's own.
#[derive(Clone, Debug)]
pub(super) enum Use {
    /// All that is in the default stream when the buffer is freed.
    Default,
    /// The same for one of weft's streams.
    Stream(CudaStream),
    /// A foreign stream, which may be destroyed by then: the work before an event.
    Event(Arc<CudaEvent>),
}

impl Use {
    /// Whether all its work is done. A failed query counts as not done.
    pub(super) fn is_done(&self, context: &Context) -> bool {
        let _aside = Aside::new(context.driver);
        match self {
            // SAFETY: the default stream is always there.
            Self::Default => is_ready(unsafe { context.driver.cuStreamQuery(ptr::null_mut()) }).is_ok_and(|done| done),
            Self::Stream(stream) => stream.query().is_ok_and(|done| done),
            Self::Event(event) => event.query().is_ok_and(|done| done),
        }
    }
}

/// The stream in whose order such memory is freed, and an event to make it wait with.
#[derive(Debug)]
pub(super) struct LastStream {
    stream: Handle<sys::CUstream_st>,
    event: Handle<sys::CUevent_st>,
}

impl LastStream {
    fn new(driver: &Driver) -> Result<Self, Error> {
        let (mut stream, mut event) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: it writes one handle.
        unsafe { driver.cuEventCreate(&raw mut event, EventFlags::CU_EVENT_DISABLE_TIMING as u32) }?;
        // It must not be ordered with the default stream by itself: that would make user's work wait for it.
        // SAFETY: it writes one handle.
        let made = unsafe { driver.cuStreamCreate(&raw mut stream, StreamFlags::CU_STREAM_NON_BLOCKING as u32) };
        if made.is_err() {
            // SAFETY: the handle is live and no one else has it.
            let _: Result<(), Error> = unsafe { driver.cuEventDestroy(event) };
        }
        made?;
        Ok(Self { stream: Handle(stream), event: Handle(event) })
    }

    /// Destroys the handles. Work in the stream continues.
    pub(super) fn close(self, driver: &Driver) {
        // SAFETY: the handle is live and no one else has it.
        let _: Result<(), Error> = unsafe { driver.cuStreamDestroy(self.stream.0) };
        // SAFETY: as above.
        let _: Result<(), Error> = unsafe { driver.cuEventDestroy(self.event.0) };
    }

    /// Waits for all that is in a stream now.
    fn wait_for(&self, driver: &Driver, stream: sys::CUstream) -> Result<(), Error> {
        // SAFETY: both handles are live.
        unsafe { driver.cuEventRecord(self.event.0, stream) }?;
        self.wait_for_event(driver, self.event.0)
    }

    /// Waits for the work before an event. Recording the event again later changes nothing.
    fn wait_for_event(&self, driver: &Driver, event: sys::CUevent) -> Result<(), Error> {
        // SAFETY: both handles are live.
        unsafe { driver.cuStreamWaitEvent(self.stream.0, event, 0) }
    }
}

/// Frees memory from the pool after all work in its own stream, and after the uses in others. The context is current.
pub(super) fn after(context: &Context, address: u64, own: sys::CUstream, uses: &[Use]) {
    if uses.is_empty() {
        // SAFETY: the address is from `cuMemAllocAsync` and is freed once; the caller holds the stream.
        let _: Result<(), Error> = unsafe { context.driver.cuMemFreeAsync(address, own) };
    } else if free_last(context, address, own, uses).is_err() {
        after_everything(context, address);
    }
}

fn free_last(context: &Context, address: u64, own: sys::CUstream, uses: &[Use]) -> Result<(), Error> {
    let driver = context.driver;
    let mut last = context.last.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_none() {
        *last = Some(LastStream::new(driver)?);
    }
    let Some(last) = &*last else { return Ok(()) };
    last.wait_for(driver, own)?;
    for used in uses {
        match used {
            Use::Default => last.wait_for(driver, ptr::null_mut())?,
            Use::Stream(stream) => last.wait_for(driver, stream.raw())?,
            Use::Event(event) => last.wait_for_event(driver, event.raw())?,
        }
    }
    // SAFETY: the address is from `cuMemAllocAsync` and is freed once; the stream is live.
    unsafe { driver.cuMemFreeAsync(address, last.stream.0) }
}

/// Frees memory from the pool after all work on the device, which is waited for: its own stream is another thread's
/// default stream, which this thread cannot name, or waiting in order has failed. The context is current.
#[cold]
pub(super) fn after_everything(context: &Context, address: u64) {
    // SAFETY: it takes no pointer.
    let _: Result<(), Error> = unsafe { context.driver.cuCtxSynchronize() };
    // SAFETY: the address is from `cuMemAllocAsync` and is freed once.
    let _: Result<(), Error> = unsafe { context.driver.cuMemFreeAsync(address, ptr::null_mut()) };
}

/// Frees memory that is not from the pool. The driver does so at once, so all work is waited for first. The context is
/// current.
pub(super) fn at_once(context: &Context, address: u64) {
    // SAFETY: it takes no pointer.
    let _: Result<(), Error> = unsafe { context.driver.cuCtxSynchronize() };
    // SAFETY: the address is from `cuMemAlloc` and is freed once.
    let _: Result<(), Error> = unsafe { context.driver.cuMemFree(address) };
}
