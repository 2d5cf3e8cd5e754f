//! Host memory that the device accesses in place: page-locked, managed, or registered.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{ffi::c_void, ptr, sync::Arc};

use super::{
    capture::Aside,
    context::Context,
    driver::{self, Driver},
};
use crate::{
    error::Error,
    executor::{HostKind, HostMemory},
};

/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`; the flags of registering are the same.
const MAPPED: u32 = 3;
/// `CU_MEM_ATTACH_GLOBAL` and `CU_MEM_ATTACH_HOST`.
const GLOBAL: u32 = 1;
const HOST: u32 = 2;

/// The way to release the memory.
#[derive(Clone, Copy, Debug)]
enum Release {
    /// It was allocated page-locked.
    FreeHost,
    /// It is managed.
    Free,
    /// It belongs to another owner, and was registered.
    Unregister,
}

/// Such memory. When it is dropped, nothing on the device uses it any more.
#[derive(Debug)]
pub(super) struct CudaHostMemory {
    context: Arc<Context>,
    address: u64,
    device_address: u64,
    bytes: u64,
    release: Release,
}

impl CudaHostMemory {
    /// Allocates at least one byte.
    pub(super) fn new(context: &Arc<Context>, bytes: u64, kind: HostKind) -> Result<Self, Error> {
        let size = bytes.max(1) as usize;
        let (driver, entered) = (context.driver, context.enter()?);
        let aside = Aside::new(driver);
        let made = context.retried(|| match kind {
            HostKind::PageLocked => {
                let mut memory = ptr::null_mut();
                // SAFETY: it writes one pointer.
                context.blame(unsafe { driver.cuMemHostAlloc(&raw mut memory, size, MAPPED) })?;
                Ok((memory.expose_provenance() as u64, Release::FreeHost))
            }
            HostKind::Managed { attach_global } => {
                let mut address = 0;
                let flags = if attach_global { GLOBAL } else { HOST };
                // SAFETY: it writes one address.
                context.blame(unsafe { driver.cuMemAllocManaged(&raw mut address, size, flags) })?;
                Ok((address, Release::Free))
            }
        })?;
        drop(aside);
        drop(entered);
        Self::of(context, made.0, bytes, made.1)
    }

    /// Locks memory of this process, which its owner keeps in place.
    pub(super) fn lock(context: &Arc<Context>, address: u64, bytes: u64) -> Result<Self, Error> {
        let (driver, entered) = (context.driver, context.enter()?);
        // SAFETY: the driver checks the pages and refuses memory that is not this process's.
        context.blame(unsafe { driver.cuMemHostRegister(pointer(address), bytes as usize, MAPPED) })?;
        drop(entered);
        Self::of(context, address, bytes, Release::Unregister)
    }

    fn of(context: &Arc<Context>, address: u64, bytes: u64, release: Release) -> Result<Self, Error> {
        // From here on it is released, whatever comes.
        let mut made = Self { context: Arc::clone(context), address, device_address: address, bytes, release };
        if !matches!(release, Release::Free) {
            let _entered = context.enter()?;
            let to = &raw mut made.device_address;
            // SAFETY: it writes one address; the memory is known to the driver, and mapped.
            context.blame(unsafe { context.driver.cuMemHostGetDevicePointer(to, pointer(address), 0) })?;
        }
        Ok(made)
    }
}

fn pointer(address: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

impl HostMemory for CudaHostMemory {
    fn address(&self) -> u64 {
        self.address
    }

    fn device_address(&self) -> u64 {
        self.device_address
    }

    fn len(&self) -> u64 {
        self.bytes
    }
}

impl Drop for CudaHostMemory {
    fn drop(&mut self) {
        if driver::is_forked() {
            return;
        }
        let Ok(_entered) = self.context.enter() else { return };
        let driver: &'static Driver = self.context.driver;
        let _aside = Aside::new(driver);
        // SAFETY: it takes no pointer.
        let _: Result<(), Error> = unsafe { driver.cuCtxSynchronize() };
        // SAFETY: nothing on the device uses the memory any more, and its owner on the host has released it.
        let _: Result<(), Error> = unsafe {
            match self.release {
                Release::FreeHost => driver.cuMemFreeHost(pointer(self.address)),
                Release::Free => driver.cuMemFree(self.address),
                Release::Unregister => driver.cuMemHostUnregister(pointer(self.address)),
            }
        };
    }
}
