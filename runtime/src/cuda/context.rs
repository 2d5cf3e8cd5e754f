//! A device and its primary context, which other CUDA libraries of the process share.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    cell::Cell,
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    mem,
    num::NonZeroUsize,
    ptr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread,
};

use cudarc::driver::sys::{
    self, CUdevice_attribute_enum as Attribute, CUlimit_enum as Limit, CUmemPool_attribute_enum as PoolAttribute,
    CUpointer_attribute_enum as PointerAttribute,
};

use super::{
    capture::DeferredFrees,
    clusters,
    driver::{self, Driver, Handle},
    fault::Pages,
    free::LastStream,
    free_blocks::FreeBlocks,
    packed_copies::Packing,
    pending::Pending,
    print::Ring,
    staged::Staging,
};
use crate::{
    error::{Error, ErrorKind},
    executor::{Allocator, DeviceAttributes},
    settings::Settings,
};

thread_local! {
    /// The context that weft last left current on this thread: it may be replaced without bringing it back.
    static OURS: Cell<sys::CUcontext> = const { Cell::new(ptr::null_mut()) };
}

/// A retained primary context.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) driver: &'static Driver,
    pub(super) attributes: DeviceAttributes,
    pub(super) registers_per_block: u32,
    /// The device's default memory pool, if it has stream-ordered allocation.
    pub(super) pool: Option<Handle<sys::CUmemPoolHandle_st>>,
    /// The device can read any host memory, so that an asynchronous copy may still read it after the call.
    pub(super) reads_host_memory: bool,
    /// It does so by the host's own page tables, over a bus for it: as fast as any copy.
    pub(super) has_host_pages: bool,
    pub(super) device: sys::CUdevice,
    handle: Handle<sys::CUctx_st>,
    /// Freed memory that is cached for later allocations.
    pub(super) free_blocks: FreeBlocks,
    /// The allocator in place of the driver, and memory to be returned to it.
    allocator: RwLock<Option<Arc<dyn Allocator>>>,
    pub(super) pending: Pending,
    /// For large copies of pageable memory, and for small ones that share a buffer.
    pub(super) staging: Staging,
    pub(super) packing: Packing,
    /// The devices whose memory kernels may reach, a bit each.
    peers: AtomicU64,
    /// Memory that waits for the end of a capture.
    pub(super) held: DeferredFrees,
    /// Where the allocations start that other processes may have opened, and where they end.
    shared: Mutex<Vec<(u64, u64)>>,
    any_shared: AtomicBool,
    /// Where memory is freed that several streams have used.
    pub(super) last: Mutex<Option<LastStream>>,
    /// Names of kernels in the order in which they were loaded, and the one launched last, for the text of a fault.
    kernels: Mutex<Vec<String>>,
    last_kernel: AtomicU32,
    /// The records of modules that report faults, and whether there has been one.
    pub(super) pages: Mutex<Pages>,
    pub(super) has_pages: AtomicBool,
    /// The print ring of kernels, if some print, and a lock for its creation.
    pub(super) ring: OnceLock<Ring>,
    pub(super) makes_ring: Mutex<()>,
}

/// Keeps the context current. Dropping it brings back another library's context.
#[must_use]
pub(super) struct Entered {
    driver: Option<&'static Driver>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(driver) = self.driver {
            let mut popped = ptr::null_mut();
            // SAFETY: it writes one handle. `enter` pushed the context that this pops.
            let _: Result<(), Error> = unsafe { driver.cuCtxPopCurrent(&raw mut popped) };
        }
    }
}

/// The stack of a GPU thread in kernels with recursive functions: a hundred calls of a small one.
const STACK_BYTES: usize = 8 << 10;
/// More threads than these hardly make a copy faster, but each locks pages.
const MOST_COPY_THREADS: usize = 8;
/// No kernel was launched yet.
const NO_KERNEL: u32 = u32::MAX;

impl Context {
    /// Retains the primary context of a device.
    pub(super) fn open(settings: &Settings, ordinal: u32) -> Result<Arc<Self>, Error> {
        let driver = driver::driver()?;
        let n_devices = driver::device_count()?;
        if ordinal >= n_devices {
            return Err(Error::new(
                ErrorKind::NoDevice,
                format!("there is no CUDA device {ordinal}: this machine has {n_devices}, numbered from 0"),
            ));
        }
        let mut device = 0;
        // SAFETY: it writes one int.
        unsafe { driver.cuDeviceGet(&raw mut device, ordinal as c_int) }?;
        let attributes = read_attributes(driver, device, ordinal)?;
        let registers_per_block = attribute(driver, device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?;
        let reads_host_memory = attribute(driver, device, Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)? != 0;
        let has_host_pages =
            attribute(driver, device, Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)?
                != 0;
        let pool = if settings.memory_pool { open_pool(driver, device)? } else { None };
        let free_blocks = FreeBlocks::new(settings.memory_cache, attributes.total_memory);
        let mut handle = ptr::null_mut();
        // SAFETY: it writes one handle.
        unsafe { driver.cuDevicePrimaryCtxRetain(&raw mut handle, device) }?;
        Ok(Arc::new(Self {
            driver,
            attributes,
            registers_per_block,
            pool,
            reads_host_memory,
            has_host_pages,
            device,
            handle: Handle(handle),
            free_blocks,
            allocator: RwLock::new(None),
            pending: Pending::default(),
            staging: Staging::new(copy_threads(settings)),
            packing: Packing::default(),
            peers: AtomicU64::new(0),
            held: DeferredFrees::default(),
            shared: Mutex::default(),
            any_shared: AtomicBool::new(false),
            last: Mutex::new(None),
            kernels: Mutex::new(Vec::new()),
            last_kernel: AtomicU32::new(NO_KERNEL),
            pages: Mutex::default(),
            has_pages: AtomicBool::new(false),
            ring: OnceLock::new(),
            makes_ring: Mutex::default(),
        }))
    }

    /// Sets a stack size for recursive functions, which the driver cannot determine: its default is 1024 bytes where
    /// the size is unknown. A larger size that the user set is preserved. The context is current.
    pub(super) fn deepen_stacks(&self) -> Result<(), Error> {
        let mut bytes = 0;
        // SAFETY: it writes one size.
        unsafe { self.driver.cuCtxGetLimit(&raw mut bytes, Limit::CU_LIMIT_STACK_SIZE as c_uint) }?;
        if bytes < STACK_BYTES {
            // Each resident thread of a GPU has its own stack: without the memory for it, the size is unchanged.
            // SAFETY: it changes a number of the context's.
            let _refused: Result<(), Error> =
                unsafe { self.driver.cuCtxSetLimit(Limit::CU_LIMIT_STACK_SIZE as c_uint, STACK_BYTES) };
        }
        Ok(())
    }

    /// Makes the context current on this thread. Where it is already, that costs one look into the driver's
    /// thread-local state; a cache of our own could not see that another library has switched.
    #[inline]
    pub(super) fn enter(&self) -> Result<Entered, Error> {
        let mut current = ptr::null_mut();
        // SAFETY: it writes one handle.
        unsafe { self.driver.cuCtxGetCurrent(&raw mut current) }?;
        if current == self.handle.0 { Ok(Entered { driver: None }) } else { self.switch(current) }
    }

    #[cold]
    fn switch(&self, current: sys::CUcontext) -> Result<Entered, Error> {
        if current.is_null() || current == OURS.get() {
            // SAFETY: the context is retained as long as `self` lives.
            unsafe { self.driver.cuCtxSetCurrent(self.handle.0) }?;
            OURS.set(self.handle.0);
            return Ok(Entered { driver: None });
        }
        // SAFETY: as above.
        unsafe { self.driver.cuCtxPushCurrent(self.handle.0) }?;
        Ok(Entered { driver: Some(self.driver) })
    }

    /// The allocator in place of the driver.
    pub(super) fn allocator(&self) -> Option<Arc<dyn Allocator>> {
        self.allocator.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the allocator.
    pub(super) fn set_allocator(&self, allocator: Option<Arc<dyn Allocator>>) {
        let before = mem::replace(&mut *self.allocator.write().unwrap_or_else(PoisonError::into_inner), allocator);
        // It is foreign code: no lock is held when it is dropped.
        drop(before);
    }

    /// Notes that kernels may reach another device's memory.
    pub(super) fn note_peer(&self, peer: u32) {
        self.peers.fetch_or(1_u64.checked_shl(peer).unwrap_or(0), Ordering::Relaxed);
    }

    /// Whether they may.
    pub(super) fn reaches(&self, peer: u32) -> bool {
        self.peers.load(Ordering::Relaxed) & 1_u64.checked_shl(peer).unwrap_or(0) != 0
    }

    /// Notes that other processes may open an allocation.
    pub(super) fn note_shared(&self, base: u64, bytes: u64) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if !shared.contains(&(base, base + bytes)) {
            shared.push((base, base + bytes));
        }
        self.any_shared.store(true, Ordering::Release);
    }

    /// Notes that the allocation at an address ends.
    pub(super) fn forget_shared(&self, address: u64) {
        if self.any_shared.load(Ordering::Acquire) {
            self.shared.lock().unwrap_or_else(PoisonError::into_inner).retain(|(base, _)| *base != address);
        }
    }

    /// Whether other processes may have opened the allocation that contains an address.
    pub(super) fn is_shared(&self, address: u64) -> bool {
        self.any_shared.load(Ordering::Acquire)
            && self
                .shared
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
                .any(|(base, end)| (*base..*end).contains(&address))
    }

    /// Retries, once, a call that failed for lack of memory, after all work is done and all cached memory is freed.
    pub(super) fn retried<T>(&self, mut call: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        match call() {
            Err(error) if error.kind == ErrorKind::Memory => {
                self.free_pending()?;
                call()
            }
            Err(error) if error.kind == ErrorKind::Allocator && self.pending.len() > 0 => {
                self.free_pending()?;
                call()
            }
            done => done,
        }
    }

    /// Waits for all work, and frees all memory that is cached or waits for it.
    #[cold]
    pub(super) fn free_pending(&self) -> Result<(), Error> {
        let _entered = self.enter()?;
        self.free_blocks.free_all(self);
        // SAFETY: it takes no pointer.
        self.blame(unsafe { self.driver.cuCtxSynchronize() })?;
        self.held.give_all(self);
        self.pending.give_all();
        if self.pool.is_none() {
            // Some of it was cached.
            self.free_blocks.free_all(self);
        }
        if let Some(pool) = self.pool {
            // SAFETY: the pool is the device's own.
            unsafe { self.driver.cuMemPoolTrimTo(pool.0, 0) }?;
        }
        Ok(())
    }

    /// Whether it is this context. A device has one, however often it is opened.
    #[inline]
    pub(super) fn is(&self, other: &Self) -> bool {
        self.has_handle(other.handle.0)
    }

    /// Whether it is the context of this handle.
    #[inline]
    pub(super) fn has_handle(&self, handle: sys::CUcontext) -> bool {
        self.handle.0 == handle
    }

    /// A number for a kernel, which `note_launch` takes.
    pub(super) fn register_kernel(&self, name: &str) -> u32 {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kernels.iter().position(|known| known == name) {
            return known as u32;
        }
        kernels.push(name.to_owned());
        kernels.len() as u32 - 1
    }

    /// Notes that a kernel was launched, for `blame`.
    #[inline]
    pub(super) fn note_launch(&self, kernel: u32) {
        self.last_kernel.store(kernel, Ordering::Relaxed);
    }

    /// The driver's handle.
    pub(super) fn raw(&self) -> sys::CUcontext {
        self.handle.0
    }

    /// Adds the kernel that was launched last to a fault, and writes kernels' output before it.
    pub(super) fn blame<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|mut error| {
            if driver::is_fault(&error) {
                self.poll_prints();
            }
            let kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
            if let (true, Some(name)) =
                (driver::is_fault(&error), kernels.get(self.last_kernel.load(Ordering::Relaxed) as usize))
            {
                error.message = format!("{} (the last kernel launched was `{name}`)", error.message);
            }
            error
        })
    }

    /// One of the device's attributes by its number.
    pub(super) fn attribute(&self, number: u32) -> Result<i32, Error> {
        numbered_attribute(self.driver, self.device, number)
    }

    /// The device whose memory contains an address, if kernels of this device cannot access it; `None` for memory that
    /// the driver does not know.
    pub(super) fn out_of_reach(&self, address: u64) -> Option<u32> {
        let _entered = self.enter().ok()?;
        let mut ordinal: c_int = 0;
        let to: *mut c_int = &raw mut ordinal;
        let which = PointerAttribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL as u32;
        // SAFETY: it writes one int; any address may be queried, an unknown one is an error.
        unsafe { self.driver.cuPointerGetAttribute(to.cast::<c_void>(), which, address) }.ok()?;
        let there = u32::try_from(ordinal).ok().filter(|there| *there != self.attributes.id)?;
        let mut here: sys::CUdeviceptr = 0;
        let to: *mut sys::CUdeviceptr = &raw mut here;
        let which = PointerAttribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER as u32;
        // SAFETY: it writes one address, by which kernels of the current context reach the memory, or fails.
        let reached = unsafe { self.driver.cuPointerGetAttribute(to.cast::<c_void>(), which, address) };
        reached.is_err().then_some(there)
    }

    /// Free and total memory. Memory that the pool caches counts as free.
    pub(super) fn memory_info(&self) -> Result<(u64, u64), Error> {
        let _entered = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: it writes two sizes.
        unsafe { self.driver.cuMemGetInfo(&raw mut free, &raw mut total) }?;
        let pooled = match self.pool {
            Some(pool) => {
                let reserved = self.pool_attribute(pool, PoolAttribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
                let used = self.pool_attribute(pool, PoolAttribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
                reserved.saturating_sub(used)
            }
            None => 0,
        };
        Ok((free as u64 + pooled + self.free_blocks.bytes(), total as u64))
    }

    fn pool_attribute(&self, pool: Handle<sys::CUmemPoolHandle_st>, which: PoolAttribute) -> Result<u64, Error> {
        let mut value = 0_u64;
        let to: *mut u64 = &raw mut value;
        // SAFETY: the pool is the device's own; attributes about memory are 64 bits wide.
        unsafe { self.driver.cuMemPoolGetAttribute(pool.0, which as u32, to.cast::<c_void>()) }?;
        Ok(value)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !driver::is_forked() {
            self.free_blocks.free_all(self);
            self.staging.free_all(self);
            self.packing.free_all(self);
            if let Some(last) = self.last.get_mut().unwrap_or_else(PoisonError::into_inner).take()
                && let Ok(_entered) = self.enter()
            {
                last.close(self.driver);
            }
            if let Some(ring) = self.ring.get()
                && let Ok(_entered) = self.enter()
            {
                ring.free(self.driver);
            }
            // SAFETY: it takes no pointer; `open` retained it. It fails at the end of a process whose driver is gone.
            let _: Result<(), Error> = unsafe { self.driver.cuDevicePrimaryCtxRelease(self.device) };
        }
    }
}

/// How many threads share a large copy.
fn copy_threads(settings: &Settings) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_COPY_THREADS);
    settings.copy_threads.map_or_else(cores, NonZeroUsize::get)
}

/// The driver's pool of the device, configured to cache memory instead of returning it at every synchronization: that
/// makes allocation cheap. A threshold that other code set is preserved.
fn open_pool(driver: &Driver, device: sys::CUdevice) -> Result<Option<Handle<sys::CUmemPoolHandle_st>>, Error> {
    if attribute(driver, device, Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 0 {
        return Ok(None);
    }
    let mut pool = ptr::null_mut();
    // SAFETY: it writes one handle.
    unsafe { driver.cuDeviceGetDefaultMemPool(&raw mut pool, device) }?;
    let which = PoolAttribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD as u32;
    let mut threshold = 0_u64;
    let value: *mut u64 = &raw mut threshold;
    // SAFETY: this attribute is 64 bits wide.
    unsafe { driver.cuMemPoolGetAttribute(pool, which, value.cast::<c_void>()) }?;
    if threshold == 0 {
        threshold = u64::MAX;
        let value: *mut u64 = &raw mut threshold;
        // SAFETY: as above; the driver only reads it.
        unsafe { driver.cuMemPoolSetAttribute(pool, which, value.cast::<c_void>()) }?;
    }
    Ok(Some(Handle(pool)))
}

/// A device attribute; none of the queried ones is negative.
fn attribute(driver: &Driver, device: sys::CUdevice, which: Attribute) -> Result<u32, Error> {
    numbered_attribute(driver, device, which as u32).map(|value| value as u32)
}

/// A device attribute by its number.
fn numbered_attribute(driver: &Driver, device: sys::CUdevice, number: u32) -> Result<i32, Error> {
    let mut value = 0;
    // SAFETY: it writes one int.
    unsafe { driver.cuDeviceGetAttribute(&raw mut value, number, device) }?;
    Ok(value)
}

fn read_attributes(driver: &Driver, device: sys::CUdevice, id: u32) -> Result<DeviceAttributes, Error> {
    let read = |which| attribute(driver, device, which);
    let mut total_memory = 0;
    // SAFETY: it writes one size.
    unsafe { driver.cuDeviceTotalMem(&raw mut total_memory, device) }?;
    let mut uuid = [0; 16];
    // SAFETY: it writes 16 bytes.
    unsafe { driver.cuDeviceGetUuid(&raw mut uuid, device) }?;
    Ok(DeviceAttributes {
        id,
        // SAFETY: it writes at most `len` bytes, the NUL included.
        name: read_text(|text, len| unsafe { driver.cuDeviceGetName(text, len, device) })?,
        compute_capability: (
            read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        max_threads_per_block: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_block_dim: [
            read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        ],
        max_grid_dim: [
            read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ],
        max_shared_memory_per_block: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        max_shared_memory_per_block_optin: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        multiprocessor_count: read(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        // Drivers before CUDA 11.8 do not know of clusters.
        max_blocks_per_cluster: match read(Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) {
            Ok(1..) => clusters::MOST_BLOCKS,
            Ok(0) | Err(_) => 0,
        },
        warp_size: read(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
        total_memory: total_memory as u64,
        driver_version: driver::version()?,
        // SAFETY: as for the name.
        pci_bus_id: read_text(|text, len| unsafe { driver.cuDeviceGetPCIBusId(text, len, device) })?,
        uuid: show_uuid(&uuid),
    })
}

/// Text that the driver writes into a buffer.
fn read_text(write: impl FnOnce(*mut c_char, c_int) -> Result<(), Error>) -> Result<String, Error> {
    let mut buffer = [0_u8; 256];
    write(buffer.as_mut_ptr().cast::<c_char>(), buffer.len() as c_int)?;
    let text = CStr::from_bytes_until_nul(&buffer).unwrap_or_default();
    Ok(text.to_string_lossy().into_owned())
}

/// `GPU-` and the five groups, as `nvidia-smi -L` shows it.
fn show_uuid(uuid: &[u8; 16]) -> String {
    let hex = format!("{:032x}", u128::from_be_bytes(*uuid));
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::show_uuid;

    #[test]
    fn a_uuid_has_five_groups() {
        let uuid = std::array::from_fn(|i| i as u8 * 17);
        assert_eq!(show_uuid(&uuid), "GPU-00112233-4455-6677-8899-aabbccddeeff");
    }
}
