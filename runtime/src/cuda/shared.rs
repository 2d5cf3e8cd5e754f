//! Memory of other processes and of other devices.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute, CUpointer_attribute_enum as PointerAttribute};

use super::{
    context::Context,
    driver::{self, PoolAccess},
};
use crate::{
    error::{Error, ErrorKind},
    executor::Shared,
};

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, which the driver demands.
const LAZY: u32 = 1;
/// `CUDA_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: u32 = 801;

/// The start and the size in bytes of the allocation that contains an address.
pub(super) fn extents_of(context: &Context, address: u64) -> Result<(u64, u64), Error> {
    let _entered = context.enter()?;
    let (mut base, mut bytes) = (0, 0);
    // SAFETY: it writes an address and a size; any address may be queried.
    unsafe { context.driver.cuMemGetAddressRange(&raw mut base, &raw mut bytes, address) }?;
    Ok((base, bytes as u64))
}

/// See `Executor::share`.
pub(super) fn share(context: &Context, address: u64) -> Result<Shared, Error> {
    let (base, bytes) = extents_of(context, address)?;
    let _entered = context.enter()?;
    let mut capable: c_int = 1;
    let to: *mut c_int = &raw mut capable;
    let which = PointerAttribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE as u32;
    // SAFETY: it writes one int; any address may be queried. A driver that does not know refuses the handle below.
    let _: Result<(), Error> = unsafe { context.driver.cuPointerGetAttribute(to.cast::<c_void>(), which, base) };
    if capable == 0 {
        let message = "another process cannot open this memory: it is in the driver's stream-ordered pool. Set \
                       WEFT_MEMORY_POOL=0 before the first use of the device, or allocate the memory with \
                       `cuda.current_context().memalloc`";
        return Err(Error { driver_code: Some(NOT_SUPPORTED), ..Error::new(ErrorKind::Driver, message) });
    }
    let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
    // SAFETY: it writes one handle.
    unsafe { context.driver.cuIpcGetMemHandle(&raw mut handle, base) }?;
    context.note_shared(base, bytes);
    Ok(Shared { handle: handle.reserved.map(|byte| byte as u8), base, bytes })
}

/// Opens memory of another process. The context is current.
pub(super) fn open(context: &Context, handle: &[u8; 64]) -> Result<u64, Error> {
    let handle = sys::CUipcMemHandle { reserved: handle.map(|byte| byte as std::ffi::c_char) };
    let mut address = 0;
    // SAFETY: it writes one address; a handle that is none is refused.
    unsafe { context.driver.cuIpcOpenMemHandle(&raw mut address, handle, LAZY) }?;
    Ok(address)
}

/// Closes it after all work on the device. The context is current.
pub(super) fn close(context: &Context, address: u64) {
    // SAFETY: it takes no pointer.
    let _: Result<(), Error> = unsafe { context.driver.cuCtxSynchronize() };
    // SAFETY: the address is from `cuIpcOpenMemHandle` and is closed once.
    let _: Result<(), Error> = unsafe { context.driver.cuIpcCloseMemHandle(address) };
}

/// Whether kernels of this device can be let reach the memory of another one.
pub(super) fn can_access_peer(context: &Context, peer: u32) -> Result<bool, Error> {
    let peer = device(context, peer)?;
    let mut can = 0;
    // SAFETY: it writes one int.
    unsafe { context.driver.cuDeviceCanAccessPeer(&raw mut can, context.device, peer) }?;
    Ok(can != 0)
}

/// Lets them. Memory of the other device's pool has an access of its own.
pub(super) fn enable_peer_access(context: &Context, peer: u32) -> Result<(), Error> {
    let (driver, ordinal, peer) = (context.driver, peer, device(context, peer)?);
    let mut other = ptr::null_mut();
    // Retained for good: so long kernels may reach it.
    // SAFETY: it writes one handle.
    unsafe { driver.cuDevicePrimaryCtxRetain(&raw mut other, peer) }?;
    let _entered = context.enter()?;
    // SAFETY: the other context is retained.
    unsafe { driver.cuCtxEnablePeerAccess(other, 0) }?;
    let mut pools: c_int = 0;
    let which = Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED as u32;
    // SAFETY: it writes one int.
    unsafe { driver.cuDeviceGetAttribute(&raw mut pools, which, peer) }?;
    if pools != 0 {
        let mut pool = ptr::null_mut();
        // SAFETY: it writes one handle.
        unsafe { driver.cuDeviceGetDefaultMemPool(&raw mut pool, peer) }?;
        let access = PoolAccess { kind: 1, device: context.device, flags: 3 };
        // SAFETY: the pool is the device's own; it reads one description.
        unsafe { driver.cuMemPoolSetAccess(pool, &raw const access, 1) }?;
    }
    context.note_peer(ordinal);
    Ok(())
}

fn device(context: &Context, ordinal: u32) -> Result<sys::CUdevice, Error> {
    let n_devices = driver::device_count()?;
    if ordinal >= n_devices {
        let message = format!("there is no CUDA device {ordinal}: this machine has {n_devices}, numbered from 0");
        return Err(Error::new(ErrorKind::Value, message));
    }
    let mut device = 0;
    // SAFETY: it writes one int.
    unsafe { context.driver.cuDeviceGet(&raw mut device, ordinal as c_int) }?;
    Ok(device)
}

/// The device's address of page-locked memory.
pub(super) fn mapped_address(context: &Context, address: u64) -> Result<u64, Error> {
    let _entered = context.enter()?;
    let memory = ptr::with_exposed_provenance_mut(address as usize);
    let mut mapped = 0;
    // SAFETY: it writes one address; memory that the driver does not know is refused.
    unsafe { context.driver.cuMemHostGetDevicePointer(&raw mut mapped, memory, 0) }?;
    Ok(mapped)
}
