//! Copies between device arrays and arrays of the host that are recorded for a graph.
//!
//! Each is one node of the graph: all elements lie in both memories as bytes in one piece, or as rows of one distance.

use pyo3::{exceptions::PyValueError, prelude::*, types::PyTuple};
use weft_runtime::{MemoryKind, MemoryLocation, Rows, Step, Stream};

use super::device_array::DeviceArray;
use crate::devices::{
    self,
    recording::{self, Recorded},
    stream::stream_of,
};

/// Records a copy between a device array and an array of the host of the same shape and dtype, which begins at an address and
/// has such strides in bytes. The graph keeps both.
///
/// # Errors
///
/// `ValueError` for elements that do not lie in rows of one distance, or in another order; what the recording says.
#[pyfunction]
#[pyo3(signature = (array, host, address, strides, stream, *, to_host))]
pub(crate) fn record_host_copy(
    array: &Bound<'_, DeviceArray>,
    host: &Bound<'_, PyAny>,
    address: u64,
    strides: Vec<i64>,
    stream: &Bound<'_, PyAny>,
    to_host: bool,
) -> PyResult<()> {
    let py = array.py();
    let keep = PyTuple::new(py, [array.as_any(), host])?.into_any().unbind();
    let array = array.get();
    let stream = stream_of(Some(stream))?.on(py, &*devices::by_id(py, array.device)?)?;
    if array.extents().any(|extent| extent == 0) {
        return Ok(());
    }
    let dims = array.extents().zip(array.steps()).zip(strides).map(|((extent, device), host)| (extent, device, host));
    let Some(shared) = Rows::of_elements(dims.collect(), array.array.dtype.size_bytes()) else {
        return Err(PyValueError::new_err(
            "`ary`, the host array, must be contiguous, or have rows with one stride, in the same order as the device \
             array while a graph is recorded: the copy is one node of the graph. Copy through a contiguous array",
        ));
    };
    let (on_device, in_host) = (array.place(), MemoryLocation { address, memory: MemoryKind::Host });
    let step = if to_host {
        Step::Copy { to: in_host, from: on_device, rows: shared.back() }
    } else {
        Step::Copy { to: on_device, from: in_host, rows: shared }
    };
    let (order, buffers) = (stream.as_deref().map_or(0, Stream::order), array.buffer().into_iter().collect());
    recording::record(array.device, Recorded { step, order, buffers, keep })
}
