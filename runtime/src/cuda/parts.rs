//! Small pieces of host memory that travel together: as one copy, through a page-locked buffer. A copy costs the driver and the
//! bus several microseconds, however small it is.
#![expect(unsafe_code, reason = "calls into the CUDA driver, and copies memory by address")]

use std::{
    ops::Range,
    ptr,
    sync::{Mutex, PoisonError},
};

use super::{context::Context, kept::size_class, memory, staged::Staged, stream::raw_stream};
use crate::{
    error::Error,
    executor::{Part, PartMut, Stream},
};

/// Bytes of a buffer: pieces that take more travel alone.
const BYTES: usize = 256 << 10;
/// Larger arrays are no small pieces.
const LARGEST: u64 = 64 << 10;

/// The buffers that no copy has.
#[derive(Debug, Default)]
pub(super) struct Packing(Mutex<Vec<Staged>>);

impl Packing {
    /// Gives all buffers back, whose copies are waited for.
    pub(super) fn free_all(&self, context: &Context) {
        let buffers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let Ok(_entered) = context.enter() else { return };
        for buffer in buffers {
            buffer.free(context.driver);
        }
    }

    /// One that no copy uses any more; an error leaves the copies to the driver. The context is current.
    fn take(&self, context: &Context) -> Result<Staged, Error> {
        let buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut buffer = buffer.map_or_else(|| Staged::new(context.driver, BYTES), Ok)?;
        match buffer.wait(context.driver) {
            Ok(()) => Ok(buffer),
            Err(error) => {
                buffer.free(context.driver);
                Err(error)
            }
        }
    }

    fn put(&self, buffer: Staged) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// The room of a piece of so many bytes among others, as if it had memory of its own; `None` if it is to have that.
pub(super) fn room(bytes: u64) -> Option<u64> {
    (1..=LARGEST).contains(&bytes).then(|| size_class(bytes)).flatten()
}

/// The bytes from the first piece to the end of the last, where they fit a buffer.
fn extent(pieces: impl Iterator<Item = (u64, usize)>) -> Option<Range<u64>> {
    let ranges = pieces.filter(|(_, bytes)| *bytes > 0).map(|(at, bytes)| at..at + bytes as u64);
    let all = ranges.reduce(|all, range| all.start.min(range.start)..all.end.max(range.end))?;
    (all.end - all.start <= BYTES as u64).then_some(all)
}

/// Copies pieces from the host to their places behind an address; they are free to change when it returns.
pub(super) fn copy_to_device(
    context: &Context,
    to: u64,
    parts: &[Part<'_>],
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    let raw = raw_stream(context, stream)?;
    let _entered = context.enter()?;
    let extent = extent(parts.iter().map(|(at, bytes)| (*at, bytes.len()))).filter(|_| parts.len() > 1);
    let packed = extent.and_then(|extent| Some((extent, context.packing.take(context).ok()?)));
    let Some((Range { start, end }, mut buffer)) = packed else {
        return parts.iter().try_for_each(|(at, bytes)| memory::copy_to_device(context, to + at, bytes, stream));
    };
    for (at, bytes) in parts.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        let place = buffer.memory.0.wrapping_add((at - start) as usize);
        // SAFETY: the piece lies within the extent of all, which the buffer has room for, and no copy uses the buffer.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }
    // SAFETY: the caller holds the memory at `to`; nothing else uses the buffer until its event is over.
    let queued =
        unsafe { context.driver.cuMemcpyHtoDAsync(to + start, buffer.memory.0.cast(), (end - start) as usize, raw) };
    buffer.in_flight = queued.is_ok();
    // SAFETY: the event and the stream are live.
    let marked = queued.and_then(|()| unsafe { context.driver.cuEventRecord(buffer.event.0, raw) });
    finish(context, buffer, marked, raw)
}

/// Copies pieces behind an address to the host, and waits for them.
pub(super) fn copy_to_host(
    context: &Context,
    parts: &mut [PartMut<'_>],
    from: u64,
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    let raw = raw_stream(context, stream)?;
    let _entered = context.enter()?;
    let extent = extent(parts.iter().map(|(at, bytes)| (*at, bytes.len()))).filter(|_| parts.len() > 1);
    let packed = extent.and_then(|extent| Some((extent, context.packing.take(context).ok()?)));
    let Some((Range { start, end }, buffer)) = packed else {
        return parts.iter_mut().try_for_each(|(at, bytes)| memory::copy_to_host(context, bytes, from + *at, stream));
    };
    // SAFETY: the caller holds the memory at `from`; nothing else uses the buffer, and what follows waits for the copy.
    let queued =
        unsafe { context.driver.cuMemcpyDtoHAsync(buffer.memory.0.cast(), from + start, (end - start) as usize, raw) };
    // Waited for even if the call failed: a part of the copy may be on its way.
    // SAFETY: the stream is live.
    let copied = queued.and(unsafe { context.driver.cuStreamSynchronize(raw) });
    if copied.is_ok() {
        for (at, bytes) in parts.iter_mut().filter(|(_, bytes)| !bytes.is_empty()) {
            let place = buffer.memory.0.wrapping_add((*at - start) as usize);
            // SAFETY: the piece lies within the extent of all, which is in the buffer, and no copy uses the buffer.
            unsafe { ptr::copy_nonoverlapping(place.cast_const(), bytes.as_mut_ptr(), bytes.len()) };
        }
    }
    finish(context, buffer, copied, raw)?;
    context.look_at_faults()
}

/// Keeps a buffer for the next copy, or gives it back where this one has failed.
fn finish(
    context: &Context,
    buffer: Staged,
    done: Result<(), Error>,
    stream: cudarc::driver::sys::CUstream,
) -> Result<(), Error> {
    if done.is_ok() {
        context.packing.put(buffer);
    } else {
        // SAFETY: the stream is live.
        let _: Result<(), Error> = unsafe { context.driver.cuStreamSynchronize(stream) };
        buffer.free(context.driver);
    }
    context.blame(done)
}
