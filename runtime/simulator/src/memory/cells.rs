//! Bytes that several threads may access, as atomic integers of 1 to 8 bytes.
//!
//! Blocks of a launch run in several threads, and a kernel may race. Each access is one relaxed atomic access of its
//! size, so a race has one of the values that a GPU may give. The only `unsafe` code of the crate.

#![expect(unsafe_code, reason = "parts of an atomic integer have no safe constructor")]

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// Zeroed bytes, aligned to eight bytes.
#[derive(Debug)]
pub(super) struct Cells(Box<[AtomicU64]>);

macro_rules! cell {
    ($name:ident, $atomic:ty, $size:literal) => {
        /// The cell at a byte, which is a multiple of the size.
        pub(super) fn $name(&self, at: usize) -> &$atomic {
            assert!(at.is_multiple_of($size) && at < self.0.len() * 8, "accesses are checked before");
            let pointer = self.0.as_ptr().cast::<u8>().wrapping_add(at).cast_mut().cast();
            // SAFETY: the cell is within the allocation, because the allocation is a multiple of 8 bytes long and `at`
            // is a multiple of the size that is less than its length; so it is aligned. All accesses of the bytes are
            // atomic, because they are cells of `AtomicU64`.
            unsafe { <$atomic>::from_ptr(pointer) }
        }
    };
}

impl Cells {
    pub(super) fn new(len: usize) -> Self {
        Self((0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect())
    }

    /// The 4-byte cells from a byte on, which is a multiple of 4.
    pub(super) fn words(&self, at: usize) -> &[AtomicU32] {
        assert!(at.is_multiple_of(4) && at <= self.0.len() * 8, "accesses are checked before");
        let pointer = self.0.as_ptr().cast::<AtomicU32>().wrapping_add(at / 4);
        // SAFETY: the cells are within the allocation, which ends `self.0.len() * 8 - at` bytes after the pointer, and
        // the pointer is aligned, because the allocation is. All accesses of the bytes are atomic, as in `cell`.
        unsafe { std::slice::from_raw_parts(pointer, self.0.len() * 2 - at / 4) }
    }

    cell!(of_1, AtomicU8, 1);
    cell!(of_2, AtomicU16, 2);
    cell!(of_4, AtomicU32, 4);
    cell!(of_8, AtomicU64, 8);
}
