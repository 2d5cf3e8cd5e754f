//! Small pieces of host memory that travel together, as one copy, which costs the driver and the bus several microseconds,
//! however small it is. On the way back through a page-locked buffer, which the device writes to directly.
#![expect(unsafe_code, reason = "calls into the CUDA driver, and copies memory by address")]

use std::{
    ops::Range,
    ptr,
    sync::{Mutex, PoisonError},
};

use super::{
    context::Context,
    free_blocks::size_class,
    memory,
    staged::Staged,
    stream::{Owner, cuda_stream, raw_stream},
};
use crate::{
    error::Error,
    executor::{Part, PartMut, Stream},
};

/// Bytes of a buffer: pieces that take more travel alone.
const BYTES: usize = 256 << 10;
/// Larger arrays are no small pieces.
pub(super) const SMALL: usize = 64 << 10;

/// The buffers that no copy has, and uses.
#[derive(Debug, Default)]
pub(super) struct Packing(Mutex<Vec<Staged>>);

impl Packing {
    /// Gives all buffers back.
    pub(super) fn free_all(&self, context: &Context) {
        let buffers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let Ok(_entered) = context.enter() else { return };
        for buffer in buffers {
            buffer.free(context.driver);
        }
    }

    /// One of them, or a new one. The context is current.
    fn take(&self, context: &Context) -> Result<Staged, Error> {
        let buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        buffer.map_or_else(|| Staged::new(context.driver, BYTES), Ok)
    }

    fn put(&self, buffer: Staged) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// The size of a piece of `bytes` bytes among others, as if it had memory of its own; `None` if it must have that.
pub(super) fn room(bytes: u64) -> Option<u64> {
    (1..=SMALL as u64).contains(&bytes).then(|| size_class(bytes)).flatten()
}

/// The bytes from the first piece to the end of the last, where they fit a buffer.
fn extent(pieces: impl Iterator<Item = (u64, usize)>) -> Option<Range<u64>> {
    let ranges = pieces.filter(|(_, bytes)| *bytes > 0).map(|(at, bytes)| at..at + bytes as u64);
    let all = ranges.reduce(|all, range| all.start.min(range.start)..all.end.max(range.end))?;
    (all.end - all.start <= BYTES as u64).then_some(all)
}

/// Copies pieces from the host to their offsets from an address; they may change when it returns. Small copies are part
/// of the driver's commands: fetching page-locked memory would take the device longer.
pub(super) fn copy_to_device(
    context: &Context,
    to: u64,
    parts: &[Part<'_>],
    stream: Option<&dyn Stream>,
) -> Result<(), Error> {
    let extent = extent(parts.iter().map(|(at, bytes)| (*at, bytes.len()))).filter(|_| parts.len() > 1);
    let Some(Range { start, end }) = extent else {
        return parts.iter().try_for_each(|(at, bytes)| memory::copy_to_device(context, to + at, bytes, stream));
    };
    let mut packed = vec![0; (end - start) as usize];
    for (at, bytes) in parts.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        let place = (at - start) as usize;
        if let Some(place) = packed.get_mut(place..place + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
    memory::copy_to_device(context, to + start, &packed, stream)
}

/// Copies pieces at offsets from an address to the host, and waits for them; `false` if they are left to the driver,
/// and nothing was done.
pub(super) fn copy_to_host(
    context: &Context,
    parts: &mut [PartMut<'_>],
    from: u64,
    stream: Option<&dyn Stream>,
) -> Result<bool, Error> {
    let is_ours = cuda_stream(context, stream)?.is_none_or(|stream| stream.owner() == Owner::Weft);
    let Some(Range { start, end }) = extent(parts.iter().map(|(at, bytes)| (*at, bytes.len()))).filter(|_| is_ours)
    else {
        return Ok(false);
    };
    let raw = raw_stream(context, stream)?;
    let _entered = context.enter()?;
    let Ok(buffer) = context.packing.take(context) else { return Ok(false) };
    // SAFETY: the caller holds the memory at `from`; nothing else uses the buffer, and what follows waits for the copy.
    let queued =
        unsafe { context.driver.cuMemcpyDtoHAsync(buffer.memory.0.cast(), from + start, (end - start) as usize, raw) };
    // Waited for even if the call failed: a part of the copy may be on its way.
    // SAFETY: the stream is live.
    let copied = queued.and(unsafe { context.driver.cuStreamSynchronize(raw) });
    if let Err(error) = copied {
        buffer.free(context.driver);
        return context.blame(Err(error));
    }
    for (at, bytes) in parts.iter_mut().filter(|(_, bytes)| !bytes.is_empty()) {
        let place = buffer.memory.0.wrapping_add((*at - start) as usize);
        // SAFETY: the piece is within the extent of all, which is in the buffer, and no copy uses the buffer.
        unsafe { ptr::copy_nonoverlapping(place.cast_const(), bytes.as_mut_ptr(), bytes.len()) };
    }
    context.packing.put(buffer);
    context.look()?;
    Ok(true)
}
