//! Memory of the CPU device: plain memory of this process, aligned for vector code.
#![expect(unsafe_code, reason = "allocates memory")]

use std::{
    alloc::{self, Layout},
    any::Any,
    mem,
    ptr::NonNull,
    sync::{Arc, Weak},
};

use super::free_list::{self, FreeList};
use crate::{
    error::{Error, ErrorKind},
    executor::{Buffer, HostMemory, Lent},
    sanitize,
    size::show_bytes,
};

/// Every address is a multiple of this, as on GPUs; of cache lines and of the widest vector, too.
pub(super) const ALIGN: usize = 256;
/// From here on memory starts at a page.
const LARGE: usize = 64 << 10;
pub(super) const PAGE: usize = 4 << 10;
/// From this size on memory starts at a huge page, and the system is advised to use huge pages.
const HUGE: usize = 4 << 20;
/// Padding after every allocation. Kernels have no bounds checks, and a kernel without a guard, which works on a GPU
/// because its allocations are rounded up, must not access other memory here.
pub(super) const SLACK: usize = 32 << 10;
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
    /// Allocates at least one byte, with undefined contents; `None` if memory is exhausted.
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

    /// Bytes that it takes.
    pub(super) fn size(&self) -> usize {
        self.layout.size()
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
    /// Where large memory goes afterwards, as long as the device is open.
    free_list: Weak<FreeList>,
}

impl CpuBuffer {
    /// Allocates memory. More than the machine has is refused here, since the system would only find out on use.
    pub(super) fn new(bytes: u64, total_memory: u64, free_list: &Arc<FreeList>) -> Result<Self, Error> {
        if bytes == 0 {
            return Ok(Self { allocation: None, bytes, free_list: Weak::new() });
        }
        let wanted = usize::try_from(bytes).ok().filter(|_| bytes <= total_memory);
        let Some(allocation) = wanted.and_then(|bytes| free_list.allocate(bytes)) else {
            return Err(Error::new(
                ErrorKind::Memory,
                format!("cannot allocate {}: this machine has {}", show_bytes(bytes), show_bytes(total_memory)),
            ));
        };
        sanitize::memory::given(allocation.start().expose_provenance() as u64, bytes);
        let free_list = if allocation.len() < free_list::SMALLEST { Weak::new() } else { Arc::downgrade(free_list) };
        Ok(Self { allocation: Some(allocation), bytes, free_list })
    }
}

impl Drop for CpuBuffer {
    fn drop(&mut self) {
        let Some(allocation) = self.allocation.take() else { return };
        let start = allocation.start().addr() as u64;
        let spare = Spare { allocation: Some(allocation), free_list: mem::take(&mut self.free_list) };
        if sanitize::memory::is_noted(start) {
            sanitize::memory::taken_back(start, Box::new(spare));
        }
    }
}

/// Unused memory: dropping it caches it for later allocations, or frees it.
struct Spare {
    allocation: Option<Allocation>,
    free_list: Weak<FreeList>,
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let (Some(allocation), Some(free_list)) = (self.allocation.take(), self.free_list.upgrade()) {
            free_list.keep(allocation);
        }
    }
}

/// Memory that a program shares with the device, which is this process: any memory.
#[derive(Debug)]
pub(super) struct CpuHostMemory {
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// The memory, if it is not the caller's.
    pub(super) _memory: Option<CpuBuffer>,
}

impl HostMemory for CpuHostMemory {
    fn address(&self) -> u64 {
        self.address
    }

    fn device_address(&self) -> u64 {
        self.address
    }

    fn len(&self) -> u64 {
        self.bytes
    }
}

/// A buffer in memory of another allocator, which gets it back with the buffer: no work outlives the call that queues it.
#[derive(Debug)]
pub(super) struct LentBuffer {
    pub(super) memory: Box<dyn Lent>,
    pub(super) bytes: u64,
}

impl Buffer for LentBuffer {
    fn address(&self) -> u64 {
        self.memory.address()
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn order(&self) -> Option<u64> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Buffer for CpuBuffer {
    fn address(&self) -> u64 {
        self.allocation.as_ref().map_or(0, |allocation| allocation.start().expose_provenance() as u64)
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn order(&self) -> Option<u64> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
