//! Readable memory past the end of arrays that a kernel reads in place.
//!
//! A kernel without bounds checks may read past the end of an array: allocations of device memory have padding for
//! that. A NumPy array is mostly followed by other memory, which is readable as well. Where it is not, pages of zeros
//! are mapped as long as the kernel runs, page by page, and never over existing mappings. Several launches may need the
//! same page: the last one unmaps it. The lock is taken with the GIL held, so that no fork happens meanwhile. Memory
//! that may be unmapped can be [read] by a system call, too.
#![expect(unsafe_code, reason = "queries which memory can be read, and maps pages")]

use std::{
    collections::HashMap,
    ptr,
    sync::{Mutex, PoisonError},
};

use super::memory::{PAGE, SLACK};

/// Pages of ours, by their addresses, and how many launches need each.
static OURS: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

/// Memory after an address that remains readable while this lives.
#[derive(Debug)]
pub(super) struct ReadableMemory {
    /// Those of ours in it.
    pages: Vec<usize>,
}

impl ReadableMemory {
    /// The readable memory after an address; `None` if the system provides none.
    pub(super) fn after(end: u64) -> Option<Self> {
        let first = end as usize & !(PAGE - 1);
        let last = (end as usize).checked_add(SLACK)?;
        let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = ours.get_or_insert_default();
        let mut pages = Vec::new();
        let mut there = readable(first, last.div_ceil(PAGE) - first / PAGE);
        for page in (first..last).step_by(PAGE) {
            let is_there = there > 0;
            there = there.saturating_sub(1);
            if let Some(users) = ours.get_mut(&page) {
                *users += 1;
                pages.push(page);
            } else if !is_there && readable(page, 1) == 0 {
                if !system::map(page, PAGE) {
                    release(ours, &pages);
                    return None;
                }
                ours.insert(page, 1);
                pages.push(page);
            }
        }
        Some(Self { pages })
    }
}

impl Drop for ReadableMemory {
    fn drop(&mut self) {
        if self.pages.is_empty() {
            return;
        }
        let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
        release(ours.get_or_insert_default(), &self.pages);
    }
}

fn release(ours: &mut HashMap<usize, usize>, pages: &[usize]) {
    for page in pages {
        let Some(users) = ours.get_mut(page) else { continue };
        *users -= 1;
        if *users == 0 {
            ours.remove(page);
            system::unmap(*page, PAGE);
        }
    }
}

/// The number of consecutive readable pages from one on: a system call reads a byte of each. 0 where the call is not
/// permitted.
fn readable(first: usize, pages: usize) -> usize {
    let mut bytes = [0_u8; SLACK / PAGE + 2];
    let parts: Vec<system::IoVec> = (0..pages.min(bytes.len()))
        .map(|page| system::IoVec { start: address(first + page * PAGE), bytes: 1 })
        .collect();
    let to = system::IoVec { start: bytes.as_mut_ptr(), bytes: parts.len() };
    system::read(&to, &parts)
}

/// Reads memory at an address; `false` if not all of it can be read.
pub(super) fn read(start: u64, bytes: &mut [u8]) -> bool {
    let Ok(start) = usize::try_from(start) else { return false };
    let to = system::IoVec { start: bytes.as_mut_ptr(), bytes: bytes.len() };
    system::read(&to, &[system::IoVec { start: address(start), bytes: bytes.len() }]) == bytes.len()
}

fn address(page: usize) -> *mut u8 {
    ptr::with_exposed_provenance_mut(page)
}

#[cfg(target_os = "linux")]
mod system {
    /// `struct iovec`, `process_vm_readv(2)`.
    #[repr(C)]
    pub(super) struct IoVec {
        pub(super) start: *mut u8,
        pub(super) bytes: usize,
    }

    unsafe extern "C" {
        fn process_vm_readv(
            process: i32,
            to: *const IoVec,
            n_to: usize,
            from: *const IoVec,
            n_from: usize,
            flags: usize,
        ) -> isize;
        fn mmap(start: *mut u8, bytes: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
        fn munmap(start: *mut u8, bytes: usize) -> i32;
    }

    const PROT_READ: i32 = 1;
    /// `MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE`, `mmap(2)`.
    const FLAGS: i32 = 0x02 | 0x20 | 0x10_0000;

    /// How many bytes of the parts could be read, up to the first that cannot.
    pub(super) fn read(to: &IoVec, parts: &[IoVec]) -> usize {
        let process = std::process::id().cast_signed();
        // SAFETY: it writes to `to`, as many bytes as there are parts; unreadable memory is an error and no fault.
        let read = unsafe { process_vm_readv(process, to, 1, parts.as_ptr(), parts.len(), 0) };
        usize::try_from(read).unwrap_or(0)
    }

    /// Maps pages of zeros where nothing is; whether it did.
    pub(super) fn map(start: usize, bytes: usize) -> bool {
        let wanted = super::address(start);
        // SAFETY: it replaces no existing mapping. A kernel before Linux 4.17 may map elsewhere, which is unmapped
        // again.
        let mapped = unsafe { mmap(wanted, bytes, PROT_READ, FLAGS, -1, 0) };
        if mapped == wanted {
            return true;
        }
        if mapped.addr() != usize::MAX {
            unmap(mapped.expose_provenance(), bytes);
        }
        false
    }

    /// Unmaps pages that were mapped here.
    pub(super) fn unmap(start: usize, bytes: usize) {
        // SAFETY: they are ours, and are no longer read.
        let _refused = unsafe { munmap(super::address(start), bytes) };
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) struct IoVec {
        pub(super) start: *mut u8,
        pub(super) bytes: usize,
    }

    pub(super) fn read(_to: &IoVec, _parts: &[IoVec]) -> usize {
        0
    }

    pub(super) fn map(_start: usize, _bytes: usize) -> bool {
        false
    }

    pub(super) fn unmap(_start: usize, _bytes: usize) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::read;

    #[test]
    fn what_is_there_is_read_and_what_is_not_is_not() {
        let bytes: Vec<u8> = (0..5000).map(|at| (at % 251) as u8).collect();
        let mut found = [0; 2048];
        assert!(read(bytes[300..].as_ptr().expose_provenance() as u64, &mut found));
        assert_eq!(found[..], bytes[300..2348]);
        assert!(!read(64, &mut found) && !read(u64::MAX - 100, &mut found));
    }
}
