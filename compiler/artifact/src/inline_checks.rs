//! The records that sanitized code for the CPU tests and updates inline, so that it calls the runtime only if it must.
//!
//! The code is in `quick.ll` of the compiler's host back end, which has the same types; the runtime owns the memory.

/// A thread, as what is remembered of its accesses says.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostSeen {
    /// Its block's number among all that there were.
    pub block: u32,
    /// Barriers of the block that it has passed.
    pub epoch: u32,
    /// The calls that led to the current location, as a site with its calls encodes them.
    pub chain: u32,
    /// The reader: its clock and its warp.
    pub read: u32,
    /// `chain` again, so that it precedes both.
    pub chain_too: u32,
    /// The writer: its clock and its number.
    pub write: u32,
    /// Its lane's bit.
    pub lane: u32,
    /// The first block that counts; those before are done with.
    pub first: u32,
    /// Values that it copies of which some bytes were not written.
    pub copies: u32,
    /// Its last access to memory that other threads see: the site with its calls, and 1; 0 if there is none since the
    /// field was last read.
    pub last: u32,
    /// It knows what others have done by more than the barriers of its block.
    pub knows: u32,
    /// By the bits of its parameters: the kernel only reads the array, and nothing is to be remembered of that.
    pub quiet: u64,
    /// The address of [`HostPage::NEAR`] pages.
    pub near: u64,
    /// The block's scratch memory.
    pub scratch: u64,
    /// Its bytes.
    pub scratch_bytes: u64,
    /// The address of the bitmap of unwritten bytes, one bit per byte, starting at the page in which the scratch memory
    /// begins. 0 if unwritten reads are not checked.
    pub bits: u64,
}

impl HostSeen {
    /// `read` of a thread of the first warp with its first clock.
    pub const FIRST_READ: u32 = 1 << 8;
    /// Bits of a read: the access is an atomic operation that writes.
    pub const STEP: u64 = 5;
    /// It is atomic among the threads of a block only.
    pub const OF_BLOCK: u64 = 2;
    /// `write` of the first thread with its first clock.
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
        quiet: 0,
        near: 0,
        scratch: 0,
        scratch_bytes: 0,
        bits: 0,
    };
}

/// A page of memory of which something is remembered, where it is found at once.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct HostPage {
    /// Which page, or [`Self::NO_PAGE`].
    pub number: u64,
    /// The last writes of its elements.
    pub writes: u64,
    /// The reads; null if there were none and no thread can add one.
    pub reads: u64,
    /// More of them; null if there were none. Of a page whose elements have one or two bytes: by what their numbers are known.
    pub second: u64,
    /// The bitmap of unwritten bytes, one bit per byte.
    pub unwritten: u64,
    /// The value of [`Self::key`] for the page and its cells if a read can be recorded; else [`Self::NO_KEY`].
    pub read_key: u64,
    /// The same for a write.
    pub write_key: u64,
    /// The page's number in the runtime.
    pub at: u32,
}

impl HostPage {
    /// How many are found at once.
    pub const NEAR: usize = 512;
    /// The number of no page.
    pub const NO_PAGE: u64 = u64::MAX;
    /// No page has this key.
    pub const NO_KEY: u64 = u64::MAX;
    /// No page.
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

    /// Where a page begins, and what its elements' bytes are as a power of two. Of an access that is one of them code computes
    /// the same: its address without the bits that say which element it is, and the size.
    pub const fn key(start: u64, shift: u8) -> u64 {
        start | (shift as u64) << 8
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::{HostPage, HostSeen};

    /// As `quick.ll` counts.
    #[test]
    fn fields_lie_where_code_looks() {
        assert_eq!((offset_of!(HostSeen, knows), offset_of!(HostSeen, quiet)), (40, 48));
        assert_eq!((offset_of!(HostSeen, near), offset_of!(HostSeen, scratch_bytes)), (56, 72));
        assert_eq!((offset_of!(HostPage, unwritten), offset_of!(HostPage, write_key)), (32, 48));
        assert_eq!(size_of::<HostPage>(), 64);
    }
}
