//! Memory that was freed in a stream and is kept for the next who allocates there: neither costs a call of the driver.
//!
//! - A block is kept for the stream in whose order it was freed, and only if no other one has used it: what uses it next comes
//!   after all that has. So nothing waits, and nothing is asked.
//! - The stream is the default one, or one of weft's, which frees its blocks before it goes. A handle of someone else's
//!   stream may come back for another stream, and the default stream of a thread is another one on each.
//! - Blocks are found by their size, so sizes are rounded: by an eighth at most, small ones to 512 bytes.
//! - What is kept is bounded, and goes before an allocation fails.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    collections::HashMap,
    ptr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use cudarc::driver::sys;

use super::context::Context;
use crate::error::Error;

/// Sizes below are rounded to it. Drivers align allocations to as much.
const SMALLEST: u64 = 512;
/// Larger blocks go back to the driver: compared with the work on them, its calls cost nothing.
const LARGEST: u64 = 64 << 20;
/// So many bytes are kept unless a setting says otherwise,
const MOST: u64 = 256 << 20;
/// but no more than this fraction of the device's memory.
const SHARE: u64 = 16;

/// The free blocks of all streams of a device.
#[derive(Debug)]
pub(super) struct FreeBlocks {
    /// By the handle of the stream and the size, with the one that was freed last at the end.
    blocks: Mutex<HashMap<(u64, u64), Vec<u64>>>,
    /// Bytes of all blocks. Written under the lock.
    bytes: AtomicU64,
    most: u64,
}

/// The size of the block for an allocation of so many bytes; `None` if such blocks are not kept.
pub(super) fn size_class(bytes: u64) -> Option<u64> {
    if bytes <= SMALLEST {
        return Some(SMALLEST);
    }
    let step = ((1 << (bytes - 1).ilog2()) / 8).max(SMALLEST);
    (bytes <= LARGEST).then(|| bytes.next_multiple_of(step))
}

impl FreeBlocks {
    /// Keeps nothing yet; at most so many bytes, or what suits a device with so much memory.
    pub(super) fn new(most: Option<u64>, total_memory: u64) -> Self {
        let most = most.unwrap_or_else(|| MOST.min(total_memory / SHARE));
        Self { blocks: Mutex::default(), bytes: AtomicU64::new(0), most }
    }

    /// How many bytes are kept.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes a block of this size for work in the stream of a handle.
    pub(super) fn take(&self, stream: u64, size: u64) -> Option<u64> {
        if self.bytes() == 0 {
            return None;
        }
        let block = self.lock().get_mut(&(stream, size))?.pop()?;
        self.bytes.fetch_sub(size, Ordering::Relaxed);
        Some(block)
    }

    /// Keeps a block that was freed in the order of the stream of a handle, and that no other stream has used; `false` if it
    /// must go back to the driver.
    pub(super) fn keep(&self, context: &Context, stream: u64, size: u64, block: u64) -> bool {
        if size > self.most {
            return false;
        }
        let mut blocks = self.lock();
        if self.bytes() + size > self.most {
            // Sizes that nobody asks for any more would stay for ever.
            self.free(context, &mut blocks, |_| true);
        }
        blocks.entry((stream, size)).or_default().push(block);
        self.bytes.fetch_add(size, Ordering::Relaxed);
        true
    }

    /// Gives back all blocks of a stream, before it is destroyed. The context is current.
    pub(super) fn free_of_stream(&self, context: &Context, stream: u64) {
        self.free(context, &mut self.lock(), |of| of == stream);
    }

    /// Gives back all blocks. The context is current.
    pub(super) fn free_all(&self, context: &Context) {
        if self.bytes() > 0 {
            self.free(context, &mut self.lock(), |_| true);
        }
    }

    /// Under the lock, which whoever destroys a stream waits for: until then its handle is good.
    fn free(&self, context: &Context, blocks: &mut HashMap<(u64, u64), Vec<u64>>, which: impl Fn(u64) -> bool) {
        let Ok(_entered) = context.enter() else { return };
        let mut waited = false;
        blocks.retain(|(stream, size), blocks| {
            if !which(*stream) {
                return true;
            }
            for block in blocks.drain(..) {
                self.bytes.fetch_sub(*size, Ordering::Relaxed);
                if context.pool.is_some() {
                    let stream: sys::CUstream = ptr::with_exposed_provenance_mut(*stream as usize);
                    // SAFETY: the block is from `cuMemAllocAsync` and no one has it; the stream is live.
                    let _: Result<(), Error> = unsafe { context.driver.cuMemFreeAsync(block, stream) };
                    continue;
                }
                if !waited {
                    // SAFETY: it takes no pointer.
                    let _: Result<(), Error> = unsafe { context.driver.cuCtxSynchronize() };
                    waited = true;
                }
                // SAFETY: the block is from `cuMemAlloc` and no one has it.
                let _: Result<(), Error> = unsafe { context.driver.cuMemFree(block) };
            }
            false
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(u64, u64), Vec<u64>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{LARGEST, size_class};

    #[test]
    fn sizes_are_rounded_by_an_eighth_at_most() {
        let sizes = [1, 512, 513, 4096, 4097, 1_000_000, 1 << 20, (1 << 20) + 1, LARGEST].map(size_class);
        let expected = [512, 512, 1024, 4096, 4608, 1_048_576, 1 << 20, (1 << 20) + (1 << 17), LARGEST].map(Some);
        assert_eq!(sizes, expected);
        assert_eq!(size_class(LARGEST + 1), None);
        for bytes in (4096..LARGEST).step_by(999_983) {
            let size = size_class(bytes).unwrap_or_default();
            assert!(size >= bytes && size - bytes <= bytes / 8 && size_class(size) == Some(size), "{bytes}: {size}");
        }
    }
}
