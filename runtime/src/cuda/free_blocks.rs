//! A cache of memory freed in a stream, for later allocations in that stream: neither calls the driver.
//!
//! - A block is cached for the stream in whose order it was freed, and only if no other stream has used it: the next
//!   user is ordered after all earlier ones. So no wait or query is needed.
//! - The stream is the default one, or one of weft's, which frees its blocks before it is destroyed. The handle of a
//!   foreign stream may be reused for another stream, and the per-thread default stream differs by thread.
//! - Blocks are found by their size, so sizes are rounded: by an eighth at most, small ones to 512 bytes.
//! - The cache is bounded, and is freed before an allocation fails.
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
/// The most bytes that are cached unless a setting says otherwise,
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

/// The size of the block for an allocation of this many bytes; `None` if such blocks are not cached.
pub(super) fn size_class(bytes: u64) -> Option<u64> {
    if bytes <= SMALLEST {
        return Some(SMALLEST);
    }
    let step = ((1 << (bytes - 1).ilog2()) / 8).max(SMALLEST);
    (bytes <= LARGEST).then(|| bytes.next_multiple_of(step))
}

impl FreeBlocks {
    /// An empty cache of at most `most` bytes, or of the default for a device with this much memory.
    pub(super) fn new(most: Option<u64>, total_memory: u64) -> Self {
        let most = most.unwrap_or_else(|| MOST.min(total_memory / SHARE));
        Self { blocks: Mutex::default(), bytes: AtomicU64::new(0), most }
    }

    /// The number of cached bytes.
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
            // Blocks of sizes that are no longer requested would be cached forever.
            self.free(context, &mut blocks, |_| true);
        }
        blocks.entry((stream, size)).or_default().push(block);
        self.bytes.fetch_add(size, Ordering::Relaxed);
        true
    }

    /// Frees all blocks of a stream, before it is destroyed. The context is current.
    pub(super) fn free_of_stream(&self, context: &Context, stream: u64) {
        self.free(context, &mut self.lock(), |of| of == stream);
    }

    /// Frees all blocks. The context is current.
    pub(super) fn free_all(&self, context: &Context) {
        if self.bytes() > 0 {
            self.free(context, &mut self.lock(), |_| true);
        }
    }

    /// Runs under the lock, which a thread waits for before it destroys a stream: until then the stream's handle is
    /// valid.
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
