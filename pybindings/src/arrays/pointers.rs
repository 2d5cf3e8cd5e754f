//! Memory operations by address for `cuda.current_context()`: setting bytes, sharing memory with other processes,
//! accessing it from other devices.

use pyo3::{prelude::*, types::PyBytes};

use super::device_array::Memory;
use crate::{
    devices::{self, recording, stream::stream_of},
    errors,
};

/// Sets bytes beginning at an address. `memory` is the allocation that contains them, if weft owns it.
#[pyfunction]
#[pyo3(signature = (device, address, value, nbytes, memory=None, stream=None))]
pub(crate) fn fill(
    py: Python<'_>,
    device: u32,
    address: u64,
    value: u8,
    nbytes: u64,
    memory: Option<&Bound<'_, Memory>>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    recording::refuse("set bytes")?;
    let executor = devices::by_id(py, device)?;
    let stream = stream_of(stream)?.on(py, &*executor)?;
    let filled = py.detach(|| executor.fill(address, value, nbytes, stream.as_deref()));
    filled.map_err(|error| errors::runtime(py, &error))?;
    if let Some(memory) = memory {
        memory.get().note_use(&*executor, stream.as_deref());
    }
    Ok(())
}

/// Lets other processes open the allocation that contains an address: the handle, its start, and its size in bytes.
#[pyfunction]
pub(crate) fn share_memory(py: Python<'_>, device: u32, address: u64) -> PyResult<(Bound<'_, PyBytes>, u64, u64)> {
    let executor = devices::by_id(py, device)?;
    let shared = py.detach(|| executor.share(address)).map_err(|error| errors::runtime(py, &error))?;
    Ok((PyBytes::new(py, &shared.handle), shared.base, shared.bytes))
}

/// The start and the size in bytes of the allocation that contains an address.
#[pyfunction]
pub(crate) fn memory_extents(py: Python<'_>, device: u32, address: u64) -> PyResult<(u64, u64)> {
    let executor = devices::by_id(py, device)?;
    py.detach(|| executor.extents_of(address)).map_err(|error| errors::runtime(py, &error))
}

/// The address on a device of page-locked memory of the host.
#[pyfunction]
pub(crate) fn mapped_address(py: Python<'_>, device: u32, address: u64) -> PyResult<u64> {
    let executor = devices::by_id(py, device)?;
    py.detach(|| executor.mapped_address(address)).map_err(|error| errors::runtime(py, &error))
}

/// Whether kernels of a device can be given access to the memory of another one.
#[pyfunction]
pub(crate) fn can_access_peer(py: Python<'_>, device: u32, peer: u32) -> PyResult<bool> {
    let executor = devices::by_id(py, device)?;
    py.detach(|| executor.can_access_peer(peer)).map_err(|error| errors::runtime(py, &error))
}

/// Gives kernels of a device access to the memory of another one.
#[pyfunction]
pub(crate) fn enable_peer_access(py: Python<'_>, device: u32, peer: u32) -> PyResult<()> {
    let executor = devices::by_id(py, device)?;
    py.detach(|| executor.enable_peer_access(peer)).map_err(|error| errors::runtime(py, &error))
}

/// The number of released arrays whose memory has not yet been returned to a memory manager.
#[pyfunction]
pub(crate) fn n_pending(py: Python<'_>, device: u32) -> PyResult<usize> {
    Ok(devices::by_id(py, device)?.n_pending())
}

/// Waits for pending work that may use such memory and frees it, together with all cached memory.
#[pyfunction]
pub(crate) fn free_pending(py: Python<'_>, device: u32) -> PyResult<()> {
    let executor = devices::by_id(py, device)?;
    errors::waited(py, py.detach(|| executor.free_pending()))
}
