//! Streams that another library captures into a graph of its own, such as PyTorch and CuPy: work queued there becomes a
//! node, and runs when that graph is launched.
//!
//! - A launch and a copy on the device are captured. A call that would invalidate the capture is an error before the
//!   driver is called: waiting, allocating, copying from and to the host.
//! - The capturing library must hold the memory that a captured launch uses as long as the graph is used: weft cannot
//!   observe that.
//! - weft's own calls, above all freeing memory, never invalidate a capture. So memory that would be freed in a
//!   captured stream is held until the device is synchronized.
//! - Only foreign streams are queried, and weft's own only where the driver is called anyway.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    ffi::c_uint,
    mem, ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use cudarc::driver::sys;

use super::{
    context::Context,
    driver::Driver,
    free::Use,
    stream::{CudaStream, Owner},
};
use crate::{
    error::{Error, ErrorKind},
    executor::Lent,
};

/// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`.
const NOT_ALLOWED: u32 = 900;
/// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`: a query of the default stream while a stream that waits for it is captured.
const IMPLICIT: u32 = 906;
/// `CUDA_ERROR_CAPTURED_EVENT`.
const CAPTURED_EVENT: u32 = 907;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: c_uint = 2;

/// Whether a stream is captured, or the default stream waits for one that is. The context is current.
pub(super) fn is_captured(driver: &Driver, stream: sys::CUstream) -> bool {
    let mut status = 0;
    // SAFETY: it writes one number; the stream is live. It may be called whatever is captured.
    match unsafe { driver.cuStreamIsCapturing(stream, &raw mut status) } {
        Ok(()) => status != 0,
        Err(error) => error.driver_code == Some(IMPLICIT),
    }
}

/// The same for a foreign stream; weft's own are not queried.
pub(super) fn is_captured_of_others(driver: &Driver, stream: Option<&CudaStream>) -> bool {
    stream.is_some_and(|stream| may_be_captured(stream) && is_captured(driver, stream.raw()))
}

/// Whether it is a foreign stream; the default stream cannot be captured.
fn may_be_captured(stream: &CudaStream) -> bool {
    match stream.owner() {
        Owner::Weft => false,
        Owner::Other => !stream.is_default(),
        Owner::Thread => true,
    }
}

/// Refuses a call that would invalidate a capture of a foreign stream. The context is current.
///
/// # Errors
///
/// `Driver` with the driver's own number. `what` follows "cannot".
pub(super) fn refuse(driver: &Driver, stream: Option<&CudaStream>, what: &str) -> Result<(), Error> {
    if is_captured_of_others(driver, stream) { Err(not_allowed(what)) } else { Ok(()) }
}

/// Refuses to query an event that was recorded in a captured stream.
#[cold]
pub(super) fn captured_event() -> Error {
    let message = "the event was recorded in a captured stream, and only completes when the graph runs: record an \
                   event after the launch of the graph";
    Error { driver_code: Some(CAPTURED_EVENT), ..Error::new(ErrorKind::Driver, message) }
}

/// Why something cannot be done in a stream that is captured.
#[cold]
pub(super) fn not_allowed(what: &str) -> Error {
    let message = format!(
        "cannot {what} a stream that is being captured for a graph: do it before or after the capture. During a \
         capture, only launch kernels on existing device arrays, and copy between device arrays"
    );
    Error { driver_code: Some(NOT_ALLOWED), ..Error::new(ErrorKind::Driver, message) }
}

/// While it lives, this thread's driver calls do not invalidate captures of other streams: weft's own calls, which are
/// unrelated to the captured work. (CUDA driver API, `cuThreadExchangeStreamCaptureMode`.)
#[must_use]
pub(super) struct Aside(&'static Driver, c_uint);

impl Aside {
    pub(super) fn new(driver: &'static Driver) -> Self {
        let mut mode = RELAXED;
        // SAFETY: it reads and writes one number.
        let _: Result<(), Error> = unsafe { driver.cuThreadExchangeStreamCaptureMode(&raw mut mode) };
        Self(driver, mode)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // SAFETY: it reads and writes one number.
        let _: Result<(), Error> = unsafe { self.0.cuThreadExchangeStreamCaptureMode(&raw mut self.1) };
    }
}

/// Memory that is freed after a stream capture. It is released when the whole device was synchronized: then no capture
/// is active, and the stream may be gone.
#[derive(Debug, Default)]
pub(super) struct DeferredFrees {
    blocks: Mutex<Vec<Block>>,
    any: AtomicBool,
}

/// An address of the driver's, or memory of an allocator.
#[derive(Debug)]
pub(super) enum Block {
    /// From `cuMemAlloc` or `cuMemAllocAsync`, as the context has a pool or none.
    Own(u64),
    /// Frees the memory.
    Lent(Box<dyn Lent>),
}

impl DeferredFrees {
    /// Whether freeing a stream's memory after its uses would be captured, or invalidate a capture. The context is
    /// current.
    pub(super) fn must_hold(context: &Context, own: Option<&CudaStream>, uses: &[Use]) -> bool {
        let is_captured = |stream| is_captured(context.driver, stream);
        is_captured(own.map_or(ptr::null_mut(), CudaStream::raw))
            || uses.iter().any(|used| match used {
                Use::Default => is_captured(ptr::null_mut()),
                Use::Stream(stream) => is_captured(stream.raw()),
                Use::Event(_) => false,
            })
    }

    /// Holds memory.
    pub(super) fn hold(&self, block: Block) {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(block);
        self.any.store(true, Ordering::Release);
    }

    /// Frees it. All work on the device was waited for, and the context is current.
    pub(super) fn give_all(&self, context: &Context) {
        if !self.any.swap(false, Ordering::AcqRel) {
            return;
        }
        let blocks = mem::take(&mut *self.blocks.lock().unwrap_or_else(PoisonError::into_inner));
        let _aside = Aside::new(context.driver);
        for block in blocks {
            match block {
                Block::Lent(memory) => drop(memory),
                Block::Own(address) if context.pool.is_some() => {
                    // SAFETY: the address is from `cuMemAllocAsync` and is freed once.
                    let _: Result<(), Error> = unsafe { context.driver.cuMemFreeAsync(address, ptr::null_mut()) };
                }
                Block::Own(address) => {
                    // SAFETY: the address is from `cuMemAlloc` and is freed once; nothing uses it any more.
                    let _: Result<(), Error> = unsafe { context.driver.cuMemFree(address) };
                }
            }
        }
    }
}
