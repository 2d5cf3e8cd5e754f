//! The records that sanitized code for the CPU tests and updates inline, so that it calls the runtime only if it must.
//!
//! The code is in `inline_checks.ll` of the compiler's host back end, which has the same types; the runtime owns the memory.

/// The state of the running thread, in the encodings of the access records.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostSeen {
    /// Its block's linear number.
    pub block: u32,
    /// The number of the block's barriers that the thread has passed.
    pub epoch: u32,
    /// The calls that led to the current location, as a site with its calls encodes them.
    pub chain: u32,
    /// The thread as a reader: its clock and its warp.
    pub read: u32,
    /// A copy of `chain`, so that `chain` precedes both `read` and `write`.
    pub chain_too: u32,
    /// The thread as a writer: its clock and its number.
    pub write: u32,
    /// The bit of its lane.
    pub lane: u32,
    /// The first block whose accesses may race; earlier blocks have finished.
    pub first: u32,
    /// The number of copied values that have unwritten bytes.
    pub copies: u32,
    /// Its last access to memory that is visible to other threads: the site with its calls, plus 1; 0 if there is none
    /// since the field was last read.
    pub last: u32,
    /// Whether it is ordered after other threads' accesses by more than the barriers of its block.
    pub knows: u32,
    /// One bit per parameter: the kernel only reads the array, and its reads are not recorded.
    pub unrecorded: u64,
    /// The address of [`HostPage::NEAR`] pages.
    pub near: u64,
    /// The block's scratch memory.
    pub scratch: u64,
    /// The size of the scratch memory in bytes.
    pub scratch_bytes: u64,
    /// The address of the bitmap of unwritten bytes, one bit per byte, starting at the page in which the scratch memory
    /// begins. 0 if unwritten reads are not checked.
    pub bits: u64,
}

impl HostSeen {
    /// The `read` of a thread of the first warp at its first clock.
    pub const FIRST_READ: u32 = 1 << 8;
    /// The bits of a read that mark an atomic operation that writes.
    pub const STEP: u64 = 5;
    /// The bit of a read that marks an operation that is atomic only among the threads of a block.
    pub const OF_BLOCK: u64 = 2;
    /// The `write` of the first thread at its first clock.
    pub const FIRST_WRITE: u32 = 1 << 13;
    /// No thread.
    pub const NONE: Self = Self {
        block: 0,
        epoch: 0,
        chain: 0,
        read: 0,
        chain_too: 0,
        write: 0,
        lane: 0,
        first: 0,
        copies: 0,
        last: 0,
        knows: 0,
        unrecorded: 0,
        near: 0,
        scratch: 0,
        scratch_bytes: 0,
        bits: 0,
    };
}

/// A page of memory with access records, in a table for inline lookup.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct HostPage {
    /// The page's number, or [`Self::NO_PAGE`].
    pub number: u64,
    /// The records of the last write of each element.
    pub writes: u64,
    /// The records of reads; null if there were none and no thread can add one.
    pub reads: u64,
    /// Further records of reads; null if there were none. For a page with one-byte or two-byte elements: the directory
    /// of the packed records.
    pub second: u64,
    /// The bitmap of unwritten bytes, one bit per byte.
    pub unwritten: u64,
    /// The page's [`Self::key`], if a read can be recorded inline; else [`Self::NO_KEY`].
    pub read_key: u64,
    /// The page's [`Self::key`], if a write can be recorded inline; else [`Self::NO_KEY`].
    pub write_key: u64,
    /// The page's number in the runtime.
    pub at: u32,
}

impl HostPage {
    /// The number of pages in the table.
    pub const NEAR: usize = 512;
    /// A number that no page has.
    pub const NO_PAGE: u64 = u64::MAX;
    /// A key that no page has.
    pub const NO_KEY: u64 = u64::MAX;
    /// An empty entry of the table.
    pub const NONE: Self = Self {
        number: Self::NO_PAGE,
        writes: 0,
        reads: 0,
        second: 0,
        unwritten: 0,
        read_key: Self::NO_KEY,
        write_key: Self::NO_KEY,
        at: 0,
    };

    /// A page's address combined with the binary logarithm of its element size. For an access, the code computes the
    /// same key from the address, without the bits of the offset in the page, and the access size.
    pub const fn key(start: u64, shift: u8) -> u64 {
        start | (shift as u64) << 8
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::{HostPage, HostSeen};

    /// The offsets that `inline_checks.ll` assumes.
    #[test]
    fn fields_lie_where_code_looks() {
        assert_eq!((offset_of!(HostSeen, knows), offset_of!(HostSeen, unrecorded)), (40, 48));
        assert_eq!((offset_of!(HostSeen, near), offset_of!(HostSeen, scratch_bytes)), (56, 72));
        assert_eq!((offset_of!(HostPage, unwritten), offset_of!(HostPage, write_key)), (32, 48));
        assert_eq!(size_of::<HostPage>(), 64);
    }
}
