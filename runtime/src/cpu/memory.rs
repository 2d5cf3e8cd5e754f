//! Memory of the CPU device: plain memory of this process, aligned for vector code.
#![expect(unsafe_code, reason = "allocates and copies memory by address")]

use std::{
    alloc::{self, Layout},
    ptr::{self, NonNull},
};

use crate::{
    error::{Error, ErrorKind},
    executor::Buffer,
    size::show_bytes,
};

/// Every address is a multiple of a cache line, which is also the widest vector.
pub(super) const ALIGN: usize = 64;
/// From here on memory starts at a page.
const LARGE: usize = 64 << 10;
const PAGE: usize = 4 << 10;
/// From here on memory starts at a huge page, and the system is asked to use some.
const HUGE: usize = 4 << 20;
/// Room behind every allocation. Nothing in a kernel checks bounds, and kernels without a guard, which run on a GPU
/// because its allocations are rounded up, must not reach the memory of others here.
const SLACK: usize = 32 << 10;
const HUGE_PAGE: usize = 2 << 20;

/// Memory that is freed when dropped.
#[derive(Debug)]
pub(super) struct Allocation {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory, and hands out nothing but the address.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Allocates at least one byte, with undefined contents; `None` if there is not so much.
    pub(super) fn new(bytes: usize) -> Option<Self> {
        let align = match bytes {
            0..LARGE => ALIGN,
            LARGE..HUGE => PAGE,
            _ => HUGE_PAGE,
        };
        let layout = Layout::from_size_align(bytes.checked_add(SLACK)?, align).ok()?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc::alloc(layout) })?;
        if bytes >= HUGE {
            ask_for_huge_pages(start, bytes);
        }
        Some(Self { start, layout })
    }

    /// The address of the first byte.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes that it holds.
    pub(super) fn len(&self) -> usize {
        self.layout.size() - SLACK
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout and is freed once.
        unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Fewer page faults and misses for arrays; where the system refuses, nothing is lost.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(start: NonNull<u8>, bytes: usize) {
    unsafe extern "C" {
        fn madvise(start: *mut u8, bytes: usize, advice: i32) -> i32;
    }
    const MADV_HUGEPAGE: i32 = 14;
    // SAFETY: the range is allocated memory, starts at a page, and this advice leaves its contents alone.
    let _refused = unsafe { madvise(start.as_ptr(), bytes & !(HUGE_PAGE - 1), MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_start: NonNull<u8>, _bytes: usize) {}

/// A buffer of the CPU device.
#[derive(Debug)]
pub(super) struct CpuBuffer {
    allocation: Option<Allocation>,
    bytes: u64,
}

impl CpuBuffer {
    /// Allocates memory. More than the machine has is refused here, since the system would only find out on use.
    pub(super) fn new(bytes: u64, total_memory: u64) -> Result<Self, Error> {
        if bytes == 0 {
            return Ok(Self { allocation: None, bytes });
        }
        let allocation = usize::try_from(bytes).ok().filter(|_| bytes <= total_memory).and_then(Allocation::new);
        if allocation.is_none() {
            return Err(Error::new(
                ErrorKind::Memory,
                format!("cannot allocate {}: this machine has {}", show_bytes(bytes), show_bytes(total_memory)),
            ));
        }
        Ok(Self { allocation, bytes })
    }
}

impl Buffer for CpuBuffer {
    fn address(&self) -> u64 {
        self.allocation.as_ref().map_or(0, |allocation| allocation.start().expose_provenance() as u64)
    }

    fn len(&self) -> u64 {
        self.bytes
    }
}

/// A pointer to memory that the caller holds, or an error for the null address.
fn held(address: u64, what: &str) -> Result<*mut u8, Error> {
    if address == 0 {
        return Err(Error::new(ErrorKind::Value, format!("a copy {what} address 0, which is no memory")));
    }
    Ok(ptr::with_exposed_provenance_mut(address as usize))
}

/// Copies from the host.
pub(super) fn copy_to_device(to: u64, from: &[u8]) -> Result<(), Error> {
    if from.is_empty() {
        return Ok(());
    }
    let to = held(to, "to")?;
    // SAFETY: the caller holds the memory at `to`; the two may overlap, since both are memory of this process.
    unsafe { ptr::copy(from.as_ptr(), to, from.len()) };
    Ok(())
}

/// Copies to the host.
pub(super) fn copy_to_host(to: &mut [u8], from: u64) -> Result<(), Error> {
    if to.is_empty() {
        return Ok(());
    }
    let from = held(from, "from")?;
    // SAFETY: the caller holds the memory at `from`; as above.
    unsafe { ptr::copy(from, to.as_mut_ptr(), to.len()) };
    Ok(())
}

/// Copies between buffers, which may be the same one.
pub(super) fn copy_on_device(to: u64, from: u64, bytes: u64) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    let (to, from) = (held(to, "to")?, held(from, "from")?);
    // SAFETY: the caller holds both memories.
    unsafe { ptr::copy(from, to, bytes as usize) };
    Ok(())
}

/// Sets bytes.
pub(super) fn fill(to: u64, value: u8, bytes: u64) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    let to = held(to, "to")?;
    // SAFETY: the caller holds the memory.
    unsafe { ptr::write_bytes(to, value, bytes as usize) };
    Ok(())
}
