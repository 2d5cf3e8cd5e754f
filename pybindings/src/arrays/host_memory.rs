//! Host memory that the device accesses in place: the memory of `cuda.mapped_array` and similar functions.

use std::sync::Arc;

use pyo3::prelude::*;
use weft_runtime::{HostKind, HostMemory as Shared};

use crate::{devices, errors};

/// Memory that host and device share; freed when nothing refers to it.
#[pyclass(frozen, module = "weft._weft", name = "HostMemory")]
#[derive(Debug)]
pub(crate) struct HostMemory {
    memory: Arc<dyn Shared>,
    device: u32,
}

#[pymethods]
impl HostMemory {
    /// Allocates page-locked or managed memory, with undefined contents.
    #[new]
    #[pyo3(signature = (nbytes, managed=false, attach_global=true))]
    fn new(py: Python<'_>, nbytes: u64, managed: bool, attach_global: bool) -> PyResult<Self> {
        let executor = devices::current(py)?;
        let kind = if managed { HostKind::Managed { attach_global } } else { HostKind::PageLocked };
        let memory = py.detach(|| executor.allocate_host(nbytes, kind));
        Ok(Self { memory: memory.map_err(|error| errors::runtime(py, &error))?, device: devices::current_id() })
    }

    /// Locks the pages of memory that the caller keeps.
    #[staticmethod]
    fn lock(py: Python<'_>, address: u64, nbytes: u64) -> PyResult<Self> {
        let executor = devices::current(py)?;
        let memory = py.detach(|| executor.lock_host(address, nbytes));
        Ok(Self { memory: memory.map_err(|error| errors::runtime(py, &error))?, device: devices::current_id() })
    }

    /// The address in this process.
    #[getter]
    fn address(&self) -> u64 {
        self.memory.address()
    }

    /// The address on the device.
    #[getter]
    fn device_address(&self) -> u64 {
        self.memory.device_address()
    }

    /// Size in bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.memory.len()
    }

    /// The number of the device that it is shared with.
    #[getter]
    fn device(&self) -> u32 {
        self.device
    }
}
