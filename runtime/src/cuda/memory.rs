//! Device memory and copies.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{ffi::c_void, sync::Arc};

use cudarc::driver::sys::CUpointer_attribute_enum as PointerAttribute;

use super::{
    context::Context,
    driver,
    stream::{CudaStream, cuda_stream, raw_stream},
};
use crate::{
    error::{Error, ErrorKind},
    executor::{Buffer, Stream},
    size::show_bytes,
};

/// Device memory. The stream in whose order it was allocated is the one in whose order it is freed.
#[derive(Debug)]
pub(super) struct CudaBuffer {
    context: Arc<Context>,
    stream: Option<CudaStream>,
    address: u64,
    bytes: u64,
}

impl Buffer for CudaBuffer {
    fn address(&self) -> u64 {
        self.address
    }

    fn len(&self) -> u64 {
        self.bytes
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        if self.bytes == 0 || driver::is_forked() {
            return;
        }
        // At the end of a process the driver may be gone already, with all memory: every call then fails, harmlessly.
        let Ok(_entered) = self.context.enter() else { return };
        let driver = self.context.driver;
        let _: Result<(), Error> = if self.context.pool.is_some() {
            let stream = self.stream.as_ref().map_or(std::ptr::null_mut(), CudaStream::raw);
            // SAFETY: the address is from `cuMemAllocAsync` and is freed once; the stream is kept alive by `self`.
            unsafe { driver.cuMemFreeAsync(self.address, stream) }
        } else {
            // SAFETY: the address is from `cuMemAlloc` and is freed once.
            unsafe { driver.cuMemFree(self.address) }
        };
    }
}

impl CudaBuffer {
    /// Allocates memory in the order of a stream, where the device can.
    pub(super) fn new(context: &Arc<Context>, bytes: u64, stream: Option<&dyn Stream>) -> Result<Self, Error> {
        let stream = cuda_stream(stream)?;
        let mut address = 0;
        if bytes > 0 {
            let _entered = context.enter()?;
            let result = if context.pool.is_some() {
                let stream = stream.map_or(std::ptr::null_mut(), CudaStream::raw);
                // SAFETY: it writes one address; the stream is live.
                unsafe { context.driver.cuMemAllocAsync(&raw mut address, bytes as usize, stream) }
            } else {
                // SAFETY: it writes one address.
                unsafe { context.driver.cuMemAlloc(&raw mut address, bytes as usize) }
            };
            context.blame(result).map_err(|error| explain_no_memory(context, bytes, error))?;
        }
        Ok(Self { context: Arc::clone(context), stream: stream.cloned(), address, bytes })
    }
}

/// Says what was asked for and what there is.
#[cold]
fn explain_no_memory(context: &Context, bytes: u64, mut error: Error) -> Error {
    if error.kind == ErrorKind::Memory {
        let free = match context.memory_info() {
            Ok((free, total)) => format!("; {} of {} are free", show_bytes(free), show_bytes(total)),
            Err(_) => String::new(),
        };
        error.message =
            format!("cannot allocate {} on {}: {}{free}", show_bytes(bytes), context.attributes.name, error.message);
    }
    error
}

/// Copies from the host; `from` is free to change when it returns.
pub(super) fn copy_to_device(
    context: &Context,
    to: u64,
    from: &[u8],
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    if from.is_empty() {
        return Ok(());
    }
    let stream = raw_stream(stream)?;
    let _entered = context.enter()?;
    let source = from.as_ptr().cast::<c_void>();
    if stream.is_null() {
        // SAFETY: `from` is readable; the caller holds the memory at `to`.
        return context.blame(unsafe { context.driver.cuMemcpyHtoD(to, source, from.len()) });
    }
    // SAFETY: as above; what follows makes sure that `from` is not read after the return.
    context.blame(unsafe { context.driver.cuMemcpyHtoDAsync(to, source, from.len(), stream) })?;
    if context.reads_host_memory || is_registered(context, source) {
        // SAFETY: the stream is live.
        return context.blame(unsafe { context.driver.cuStreamSynchronize(stream) });
    }
    // Pageable memory that the device cannot read was copied to the driver's own memory before the call returned.
    Ok(())
}

/// Whether host memory is known to the driver (pinned): then the device reads it directly, after the call.
fn is_registered(context: &Context, address: *const c_void) -> bool {
    let mut memory_type = 0_u32;
    let to: *mut u32 = &raw mut memory_type;
    let which = PointerAttribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE as u32;
    // SAFETY: it writes one 32-bit number; any address may be asked about, an unknown one is an error.
    unsafe { context.driver.cuPointerGetAttribute(to.cast::<c_void>(), which, address.addr() as u64) }.is_ok()
}

/// Copies to the host and waits for it.
pub(super) fn copy_to_host(
    context: &Context,
    to: &mut [u8],
    from: u64,
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    if to.is_empty() {
        return Ok(());
    }
    let stream = raw_stream(stream)?;
    let _entered = context.enter()?;
    let target = to.as_mut_ptr().cast::<c_void>();
    if stream.is_null() {
        // SAFETY: `to` is writable; the caller holds the memory at `from`.
        return context.blame(unsafe { context.driver.cuMemcpyDtoH(target, from, to.len()) });
    }
    // SAFETY: as above; the wait that follows ends before `to` is given back.
    let copied = unsafe { context.driver.cuMemcpyDtoHAsync(target, from, to.len(), stream) };
    // Waited for even if the call failed: a part of the copy may be on its way.
    // SAFETY: the stream is live.
    let waited = unsafe { context.driver.cuStreamSynchronize(stream) };
    context.blame(copied.and(waited))
}

/// Copies between buffers of the device.
pub(super) fn copy_on_device(
    context: &Context,
    to: u64,
    from: u64,
    bytes: u64,
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    let stream = raw_stream(stream)?;
    let _entered = context.enter()?;
    // SAFETY: the caller holds both memories; the stream is live.
    context.blame(unsafe { context.driver.cuMemcpyDtoDAsync(to, from, bytes as usize, stream) })
}

/// Sets bytes.
pub(super) fn fill(
    context: &Context,
    to: u64,
    value: u8,
    bytes: u64,
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    let stream = raw_stream(stream)?;
    let _entered = context.enter()?;
    // SAFETY: the caller holds the memory; the stream is live.
    context.blame(unsafe { context.driver.cuMemsetD8Async(to, value, bytes as usize, stream) })
}
