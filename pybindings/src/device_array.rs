//! Device memory, copies, and the part of a device array that a launch reads.
//!
//! `weft.cuda.DeviceNDArray` is a Python class on top of [`DeviceArray`]: the shape, strides, address and type key are
//! fixed when the array is made, so that a launch copies a few words and asks no questions.

use std::sync::Arc;

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use weft_artifact::{ArgType, ArrayType, Scalar};
use weft_runtime::Buffer;

use crate::{
    devices, errors,
    host_array::{self, HostArray},
    key, numpy,
    stream::stream_of,
    types::{MAX_NDIM, Type},
};

/// Device memory; freed when the last array that uses it is gone.
#[pyclass(frozen, module = "weft._weft", name = "Memory")]
#[derive(Debug)]
pub(crate) struct Memory {
    buffer: Arc<dyn Buffer>,
    device: u32,
}

#[pymethods]
impl Memory {
    /// Allocates memory with undefined contents on the current device.
    #[new]
    #[pyo3(signature = (nbytes, stream=None))]
    fn new(py: Python<'_>, nbytes: u64, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let executor = devices::current(py)?;
        let stream = stream_of(stream)?;
        let buffer =
            py.detach(|| executor.allocate(nbytes, stream.as_deref())).map_err(|error| errors::runtime(py, &error))?;
        Ok(Self { buffer, device: devices::current_id() })
    }

    /// The device address.
    #[getter]
    fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// Size in bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.buffer.len()
    }

    /// The number of the device that it is on.
    #[getter]
    fn device(&self) -> u32 {
        self.device
    }
}

/// The fixed part of a device array.
#[pyclass(subclass, frozen, weakref, module = "weft._weft", name = "DeviceArrayBase")]
#[derive(Debug)]
pub(crate) struct DeviceArray {
    dtype: Scalar,
    ndim: usize,
    /// The number of the device that the memory is on.
    pub(crate) device: u32,
    /// The word of its type; `None` for more dimensions than a kernel's array can have.
    pub(crate) key: Option<u32>,
    /// Address, extents, strides.
    pub(crate) cells: Box<[u64]>,
    array: ArrayType,
    /// Keeps the memory alive: a `Memory`, or the object whose memory it is.
    owner: Py<PyAny>,
}

#[pymethods]
impl DeviceArray {
    /// An array in the memory of `owner`, its first element at `address`. Strides are in bytes.
    #[new]
    #[pyo3(signature = (owner, address, shape, strides, dtype, device, readonly=false))]
    fn new(
        owner: Py<PyAny>,
        address: u64,
        shape: Vec<u64>,
        strides: Vec<i64>,
        dtype: &Bound<'_, PyAny>,
        device: u32,
        readonly: bool,
    ) -> PyResult<Self> {
        let dtype = numpy::scalar_of(dtype)?;
        if shape.len() != strides.len() {
            return Err(PyValueError::new_err("an array needs one stride for each dimension"));
        }
        let ndim = shape.len();
        let layout = host_array::layout(shape.iter().copied(), strides.iter().copied(), dtype.size_bytes());
        let array = ArrayType { dtype, ndim: ndim as u8, layout, readonly };
        let cells = std::iter::once(address).chain(shape).chain(strides.into_iter().map(|stride| stride as u64));
        Ok(Self {
            dtype,
            ndim,
            device,
            key: (ndim <= MAX_NDIM).then(|| key::array(array)),
            cells: cells.collect(),
            array,
            owner,
        })
    }

    /// Extents.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.extents().collect::<Vec<_>>())
    }

    /// Strides in bytes.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.cells.iter().skip(1 + self.ndim).map(|stride| *stride as i64).collect::<Vec<_>>())
    }

    /// NumPy's dtype.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy::dtype(py, self.dtype)
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.ndim
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> u64 {
        self.extents().product()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.size() * self.dtype.size_bytes()
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> u64 {
        self.dtype.size_bytes()
    }

    /// The device address of the first element.
    #[getter]
    fn address(&self) -> u64 {
        self.cells.first().copied().unwrap_or_default()
    }

    /// The number of the device that the memory is on.
    #[getter]
    fn device(&self) -> u32 {
        self.device
    }

    /// Whether kernels may not write it.
    #[getter]
    fn readonly(&self) -> bool {
        self.array.readonly
    }

    /// "C", "F" or "A".
    #[getter]
    fn layout(&self) -> char {
        self.array.layout.letter()
    }

    /// What keeps the memory alive.
    #[getter]
    fn owner<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.owner.bind(py).clone()
    }

    /// Its type in a kernel.
    #[getter]
    fn weft_type(&self) -> Type {
        Type::of(ArgType::Array(self.array))
    }
}

impl DeviceArray {
    fn extents(&self) -> impl Iterator<Item = u64> + '_ {
        self.cells.iter().skip(1).take(self.ndim).copied()
    }
}

/// Copies contiguous host memory to a device address.
#[pyfunction]
#[pyo3(signature = (device, address, host, stream=None))]
pub(crate) fn copy_to_device(
    py: Python<'_>,
    device: u32,
    address: u64,
    host: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (executor, stream) = (devices::by_id(py, device)?, stream_of(stream)?);
    let host = HostArray::open_bytes(host)?;
    let bytes = host.bytes();
    if bytes.is_empty() {
        return Ok(());
    }
    py.detach(|| executor.copy_to_device(address, bytes, stream.as_deref()))
        .map_err(|error| errors::runtime(py, &error))
}

/// Copies from a device address to contiguous host memory, and waits for it.
#[pyfunction]
#[pyo3(signature = (device, address, host, stream=None))]
pub(crate) fn copy_to_host(
    py: Python<'_>,
    device: u32,
    address: u64,
    host: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (executor, stream) = (devices::by_id(py, device)?, stream_of(stream)?);
    let mut host = HostArray::open_bytes(host)?;
    let bytes = host.bytes_mut()?;
    if bytes.is_empty() {
        return Ok(());
    }
    py.detach(|| executor.copy_to_host(bytes, address, stream.as_deref())).map_err(|error| errors::runtime(py, &error))
}

/// Copies between two addresses of one device.
#[pyfunction]
#[pyo3(signature = (device, to, from, nbytes, stream=None))]
pub(crate) fn copy_on_device(
    py: Python<'_>,
    device: u32,
    to: u64,
    from: u64,
    nbytes: u64,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (executor, stream) = (devices::by_id(py, device)?, stream_of(stream)?);
    if nbytes == 0 {
        return Ok(());
    }
    py.detach(|| executor.copy_on_device(to, from, nbytes, stream.as_deref()))
        .map_err(|error| errors::runtime(py, &error))
}

/// The weft type of anything that a kernel takes, as `typeof` gives it.
#[pyfunction]
#[pyo3(signature = (value))]
pub(crate) fn typeof_value(value: &Bound<'_, PyAny>) -> PyResult<Type> {
    let mut arguments = crate::args::Arguments::default();
    arguments.push(value)?;
    key::decode(&arguments.key)
        .pop()
        .map(Type::of)
        .ok_or_else(|| PyTypeError::new_err(format!("{} has no type in a kernel", value.get_type())))
}
