//! Launches whose blocks are in clusters, which drivers for CUDA 11.8 and newer have.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    ffi::{c_int, c_uint, c_void},
    ptr,
    sync::OnceLock,
};

use cudarc::driver::sys::{self, CUlaunchAttributeID_enum as Id};

use super::{context::Context, driver, kernel::CudaKernel};
use crate::{
    error::{Error, ErrorKind},
    executor::LaunchConfig,
};

/// Blocks that a cluster can have, on every GPU with clusters and, where the kernel may, on some.
const PORTABLE_BLOCKS: u32 = 8;
pub(super) const MOST_BLOCKS: u32 = 16;

/// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
pub(super) const NON_PORTABLE: c_uint = 14;

/// `CUDA_ERROR_INVALID_CLUSTER_SIZE`.
pub(super) const INVALID_SIZE: u32 = 912;

type LaunchEx =
    unsafe extern "C" fn(*const sys::CUlaunchConfig, sys::CUfunction, *mut *mut c_void, *mut *mut c_void) -> c_uint;

/// `cuLaunchKernelEx`, if the driver has it.
fn launch_ex() -> Result<LaunchEx, Error> {
    static FOUND: OnceLock<Option<LaunchEx>> = OnceLock::new();
    FOUND.get_or_init(|| driver::find("cuLaunchKernelEx").ok()).ok_or_else(|| {
        Error::new(ErrorKind::Launch, "the CUDA driver cannot launch clusters: install a driver for CUDA 11.8 or newer")
    })
}

/// Launches a kernel in the context. `params` has the address of each slot, as for a launch without clusters.
pub(super) fn launch(
    context: &Context,
    kernel: &CudaKernel,
    config: &LaunchConfig,
    stream: sys::CUstream,
    params: *mut *mut c_void,
) -> Result<(), Error> {
    let launch_ex = launch_ex()?;
    let LaunchConfig { grid, block, shared_bytes, cluster } = config;
    if cluster.iter().product::<u32>() > PORTABLE_BLOCKS {
        kernel.allow_large_clusters()?;
    }
    let [x, y, z] = *cluster;
    let size = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
    let size = sys::CUlaunchAttributeValue { clusterDim: size };
    let together = sys::CUlaunchAttributeValue { cooperative: c_int::from(kernel.is_cooperative()) };
    let mut attributes =
        [(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, size), (Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, together)]
            .map(|(id, value)| sys::CUlaunchAttribute { id, pad: [0; 4], value });
    let described = sys::CUlaunchConfig {
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: grid[2],
        blockDimX: block[0],
        blockDimY: block[1],
        blockDimZ: block[2],
        sharedMemBytes: *shared_bytes,
        hStream: stream,
        attrs: attributes.as_mut_ptr(),
        numAttrs: if kernel.is_cooperative() { 2 } else { 1 },
    };
    // SAFETY: the function is live, there is one address for each of its parameters, whose values the driver copies
    // before it returns, and the given number of attributes.
    let code = unsafe { launch_ex(&raw const described, kernel.function(), params, ptr::null_mut()) };
    if code == 0 { Ok(()) } else { Err(context.driver.error("cuLaunchKernelEx", code)) }
}
