//! Copies between the host and the device, which are both memory of this process. One thread alone cannot use all the
//! bandwidth of the memory, so the pool's threads share large copies.
#![expect(unsafe_code, reason = "copies memory by address")]

use std::{ops::Range, ptr};

use weft_artifact::HostWatch;

use super::pool::{Pool, Work};
use crate::error::{Error, ErrorKind};

/// The size in bytes from which threads share a copy.
const LARGE: usize = 4 << 20;
/// The least size of a chunk.
const CHUNK: usize = 256 << 10;
/// The chunk size where there is enough work for all threads: a huge page, so that two threads rarely touch the same
/// one for the first time. Both would clear it.
const LARGE_CHUNK: usize = 2 << 20;

/// Copies from the host.
pub(super) fn copy_to_device(pool: &Pool, to: u64, from: &[u8]) -> Result<(), Error> {
    if from.is_empty() {
        return Ok(());
    }
    let to = held(to, "to")?;
    // SAFETY: the caller holds the memory at `to`.
    unsafe { Transfer { to, from: CopySource::Memory(from.as_ptr()), bytes: from.len() }.run(pool) }
}

/// Copies to the host.
pub(super) fn copy_to_host(pool: &Pool, to: &mut [u8], from: u64) -> Result<(), Error> {
    if to.is_empty() {
        return Ok(());
    }
    let from = held(from, "from")?;
    // SAFETY: the caller holds the memory at `from`.
    unsafe { Transfer { to: to.as_mut_ptr(), from: CopySource::Memory(from), bytes: to.len() }.run(pool) }
}

/// Copies between buffers, which may be the same one.
pub(super) fn copy_on_device(pool: &Pool, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    let (to, from) = (held(to, "to")?, held(from, "from")?);
    // SAFETY: the caller holds both memories.
    unsafe { Transfer { to, from: CopySource::Memory(from), bytes: bytes as usize }.run(pool) }
}

/// Sets bytes.
pub(super) fn fill(pool: &Pool, to: u64, value: u8, bytes: u64) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    let to = held(to, "to")?;
    // SAFETY: the caller holds the memory.
    unsafe { Transfer { to, from: CopySource::Value(value), bytes: bytes as usize }.run(pool) }
}

/// A pointer to memory that the caller holds, or an error for the null address.
fn held(address: u64, what: &str) -> Result<*mut u8, Error> {
    if address == 0 {
        return Err(Error::new(ErrorKind::Value, format!("a copy {what} address 0, which is not valid memory")));
    }
    Ok(ptr::with_exposed_provenance_mut(address as usize))
}

/// The source of a copy.
#[derive(Clone, Copy)]
enum CopySource {
    Memory(*const u8),
    Value(u8),
}

impl CopySource {
    /// Whether writing somewhere changes what is still to be read.
    fn overlaps(self, to: *const u8, bytes: usize) -> bool {
        match self {
            Self::Memory(from) => from.addr().abs_diff(to.addr()) < bytes,
            Self::Value(_) => false,
        }
    }
}

/// Bytes to write.
#[derive(Clone, Copy)]
struct Transfer {
    to: *mut u8,
    from: CopySource,
    bytes: usize,
}

impl Transfer {
    /// Writes them, on as many threads as are worth it.
    ///
    /// # Safety
    ///
    /// `bytes` bytes can be read and written at the addresses, until it returns.
    unsafe fn run(self, pool: &Pool) -> Result<(), Error> {
        if self.bytes >= LARGE && !self.from.overlaps(self.to, self.bytes) {
            let shared = Shared::new(self, pool.n_threads());
            // A launch may use the threads for long, and one thread copies well enough.
            if pool.run_unless_busy(&shared, shared.n_chunks())? {
                return Ok(());
            }
        }
        match self.from {
            // SAFETY: as the caller promises; the two may overlap.
            CopySource::Memory(from) => unsafe { ptr::copy(from, self.to, self.bytes) },
            // SAFETY: as the caller promises.
            CopySource::Value(value) => unsafe { ptr::write_bytes(self.to, value, self.bytes) },
        }
        Ok(())
    }
}

/// A transfer whose memories do not overlap, in chunks that end where the address of what is written is a multiple of
/// their size.
struct Shared {
    transfer: Transfer,
    chunk: usize,
    /// The part of the first chunk before the first byte.
    skipped: usize,
}

// SAFETY: each thread reads and writes the chunks that it was given, and each chunk is given once.
unsafe impl Sync for Shared {}

impl Shared {
    fn new(transfer: Transfer, n_threads: usize) -> Self {
        let chunk = if transfer.bytes / LARGE_CHUNK >= 2 * n_threads { LARGE_CHUNK } else { CHUNK };
        Self { transfer, chunk, skipped: transfer.to.addr() % chunk }
    }

    fn n_chunks(&self) -> u64 {
        (self.skipped + self.transfer.bytes).div_ceil(self.chunk) as u64
    }

    /// The bytes of these chunks.
    fn bytes(&self, chunks: &Range<u64>) -> Range<usize> {
        let start = (chunks.start as usize * self.chunk).saturating_sub(self.skipped);
        let end = chunks.end as usize * self.chunk - self.skipped;
        start..end.min(self.transfer.bytes)
    }
}

impl Work for Shared {
    fn run(&self, next: &mut dyn FnMut() -> Option<Range<u64>>, _watch: *const HostWatch) -> bool {
        while let Some(chunks) = next() {
            let Range { start, end } = self.bytes(&chunks);
            let to = self.transfer.to.wrapping_add(start);
            match self.transfer.from {
                CopySource::Memory(from) => {
                    let from = from.wrapping_add(start);
                    // SAFETY: the range is within both memories, which do not overlap.
                    unsafe { ptr::copy_nonoverlapping(from, to, end - start) };
                }
                // SAFETY: the range is within the memory.
                CopySource::Value(value) => unsafe { ptr::write_bytes(to, value, end - start) },
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(n: usize) -> Vec<u8> {
        (0..n).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
    }

    fn address(memory: &mut [u8]) -> u64 {
        memory.as_mut_ptr().expose_provenance() as u64
    }

    #[test]
    fn chunks_cover_every_byte_once() {
        for (to, n_bytes) in [(0x20_0000, LARGE), (0x20_0001, LARGE + 1), (0x3f_ffff, 3 * LARGE - 7), (0x24_0000, 1)] {
            for n_threads in [1, 2, 5, 64] {
                let transfer =
                    Transfer { to: ptr::without_provenance_mut(to), from: CopySource::Value(0), bytes: n_bytes };
                let shared = Shared::new(transfer, n_threads);
                let mut next = 0;
                for i in 0..shared.n_chunks() {
                    let range = shared.bytes(&(i..i + 1));
                    assert_eq!(range.start, next, "{to:#x} {n_bytes} {n_threads}");
                    assert!(
                        range.end > range.start && (range.end == n_bytes || (to + range.end).is_multiple_of(CHUNK))
                    );
                    next = range.end;
                }
                assert_eq!(next, n_bytes);
                assert_eq!(shared.bytes(&(0..shared.n_chunks())), 0..n_bytes);
            }
        }
    }

    #[test]
    fn large_copies_are_right_at_odd_sizes_and_offsets() {
        for n_threads in [1, 3] {
            let pool = Pool::new(n_threads);
            for (n_bytes, to_offset, from_offset) in
                [(LARGE, 0, 0), (LARGE + 1, 1, 0), (LARGE - 1, 3, 5), (3 * LARGE + 4097, 63, 4095)]
            {
                let source = bytes(n_bytes + from_offset);
                let mut device = vec![0xEE; n_bytes + to_offset + 9];
                let to = address(&mut device) + to_offset as u64;
                copy_to_device(&pool, to, &source[from_offset..]).expect("copies");
                assert!(device[..to_offset].iter().chain(&device[to_offset + n_bytes..]).all(|byte| *byte == 0xEE));
                assert!(device[to_offset..to_offset + n_bytes] == source[from_offset..]);

                let mut other = vec![0; n_bytes];
                copy_on_device(&pool, address(&mut other), to, n_bytes as u64).expect("copies");
                let mut back = vec![0; n_bytes];
                copy_to_host(&pool, &mut back, address(&mut other)).expect("copies");
                assert!(back == source[from_offset..]);

                fill(&pool, to, 7, n_bytes as u64).expect("fills");
                assert!(device[..to_offset].iter().chain(&device[to_offset + n_bytes..]).all(|byte| *byte == 0xEE));
                assert!(device[to_offset..to_offset + n_bytes] == vec![7; n_bytes]);
            }
        }
    }

    #[test]
    fn copies_that_overlap_move() {
        let pool = Pool::new(4);
        for shift in [1, 4096, CHUNK + 1, 3 * LARGE] {
            let n_bytes = 3 * LARGE + 5;
            for (to, from) in [(0, shift), (shift, 0), (shift, shift)] {
                let mut memory = bytes(n_bytes + shift);
                let mut expected = memory.clone();
                expected.copy_within(from..from + n_bytes, to);
                let start = address(&mut memory);
                copy_on_device(&pool, start + to as u64, start + from as u64, n_bytes as u64).expect("copies");
                assert!(memory == expected, "from {from} to {to}");
            }
        }
    }

    /// Copies from inside of a launch, which therefore uses the threads.
    struct CopyInside<'a>(&'a Pool, &'a [u8]);

    impl Work for CopyInside<'_> {
        fn run(&self, next: &mut dyn FnMut() -> Option<Range<u64>>, _watch: *const HostWatch) -> bool {
            let mut copy = vec![0; self.1.len()];
            while next().is_some() {
                copy_to_device(self.0, address(&mut copy), self.1).expect("copies");
                assert!(copy == self.1);
            }
            true
        }
    }

    #[test]
    fn a_copy_does_not_wait_for_the_threads() {
        let pool = Pool::new(3);
        let source = bytes(LARGE + 1);
        assert_eq!(pool.run_unless_busy(&CopyInside(&pool, &source), 3), Ok(true));
    }

    #[test]
    fn neighbors_do_not_overlap() {
        let source = CopySource::Memory(ptr::without_provenance(1000));
        let overlaps = |to| source.overlaps(ptr::without_provenance(to), 100);
        assert_eq!([900, 901, 1000, 1099, 1100].map(overlaps), [false, true, true, true, false]);
    }
}
