//! Device memory, copies, and the part of a device array that a launch reads.
//!
//! `weft.cuda.DeviceNDArray` is a Python class on top of [`DeviceArray`]: the shape, strides, address and type key are
//! fixed when the array is created, so that a launch copies a few words and checks nothing.

use std::sync::{Arc, OnceLock};

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use weft_artifact::{ArgType, ArrayType, Compound, DType, Layout, MAX_NDIM};
use weft_runtime::{Buffer, Error, Executor, MemoryKind, MemoryLocation, Rows, Step, Stream};

use super::{
    dlpack::{self, export::Numbers},
    fresh::FreshArray,
    host_array::HostArray,
    strides::{self, check_extents, contiguous, layout, span},
};
use crate::{
    devices::{
        self,
        recording::{self, Recorded},
        stream::stream_of,
    },
    errors,
    types::{Type, dtype_of, key, numpy, too_many_dimensions},
};

/// Device memory; freed when the last array that uses it is gone.
#[pyclass(frozen, module = "weft._weft", name = "Memory")]
#[derive(Debug)]
pub(crate) struct Memory {
    buffer: Arc<dyn Buffer>,
    device: u32,
    /// The stream in whose order it is freed. It follows the buffer, because a stream of another library ends when its
    /// object is dropped.
    _stream: Option<Py<PyAny>>,
}

#[pymethods]
impl Memory {
    /// Allocates memory with undefined contents on the current device, for arrays or as an allocation that other
    /// processes can open.
    #[new]
    #[pyo3(signature = (nbytes, stream=None, shareable=false))]
    fn new(py: Python<'_>, nbytes: u64, stream: Option<&Bound<'_, PyAny>>, shareable: bool) -> PyResult<Self> {
        let executor = devices::current(py)?;
        if shareable {
            let buffer =
                py.detach(|| executor.allocate_shareable(nbytes)).map_err(|error| errors::runtime(py, &error))?;
            return Ok(Self { buffer, device: devices::current_id(), _stream: None });
        }
        let queue = stream_of(stream)?.on(py, &*executor)?;
        let buffer =
            py.detach(|| executor.allocate(nbytes, queue.as_deref())).map_err(|error| errors::runtime(py, &error))?;
        let stream = stream.filter(|_| queue.is_some()).map(|stream| stream.clone().unbind());
        Ok(Self { buffer, device: devices::current_id(), _stream: stream })
    }

    /// Opens memory of another process by its handle, on the current device.
    #[staticmethod]
    fn open_shared(py: Python<'_>, handle: [u8; 64], nbytes: u64) -> PyResult<Self> {
        let executor = devices::current(py)?;
        let buffer =
            py.detach(|| executor.open_shared(&handle, nbytes)).map_err(|error| errors::runtime(py, &error))?;
        Ok(Self { buffer, device: devices::current_id(), _stream: None })
    }

    /// The device address.
    #[getter]
    fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// The same by Numba's name.
    #[getter]
    fn device_pointer(&self) -> u64 {
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

impl Memory {
    /// Memory with undefined contents on the current device, in the order of the default stream.
    pub(super) fn allocate(py: Python<'_>, nbytes: u64) -> PyResult<Self> {
        Self::new(py, nbytes, None, false)
    }

    /// The device address, and the number of the device.
    pub(super) fn place(&self) -> (u64, u32) {
        (self.buffer.address(), self.device)
    }

    /// Records that queued work in a stream uses it.
    pub(crate) fn note_use(&self, executor: &dyn Executor, stream: Option<&dyn Stream>) {
        if self.buffer.order().is_some_and(|order| order != stream.map_or(0, Stream::order)) {
            executor.note_use(std::slice::from_ref(&self.buffer), stream);
        }
    }
}

/// The fixed part of a device array.
#[pyclass(subclass, frozen, weakref, module = "weft._weft", name = "DeviceArrayBase")]
#[derive(Debug)]
pub(crate) struct DeviceArray {
    dtype: DType,
    ndim: usize,
    /// The number of the device that the memory is on.
    pub(crate) device: u32,
    /// Its type's key word; `None` if no kernel supports it: see [`DeviceArray::no_key`].
    pub(crate) key: Option<u32>,
    /// It is passed as a record, not as an array.
    is_record: bool,
    /// Address, extents, strides.
    pub(crate) cells: Box<[u64]>,
    pub(crate) array: ArrayType,
    /// The memory, if uses in other streams than the one with this number must be recorded. It is dropped before its
    /// owner, which keeps the stream alive in which it is freed.
    pub(crate) lent: Option<(u64, Arc<dyn Buffer>)>,
    /// The kind of memory, for copies of graphs.
    pub(super) memory: MemoryKind,
    /// Keeps the memory alive: a `Memory`, or another object that owns the memory.
    owner: Py<PyAny>,
    /// Extents and strides as DLPack counts them, computed on first use.
    pub(crate) numbers: OnceLock<Numbers>,
}

impl DeviceArray {
    /// An array of a dtype that arrays can have.
    #[expect(clippy::too_many_arguments, reason = "what an array is made of, each by its name")]
    pub(super) fn of(
        owner: Bound<'_, PyAny>,
        address: u64,
        shape: Vec<u64>,
        strides: Vec<i64>,
        dtype: DType,
        device: u32,
        readonly: bool,
        record: bool,
    ) -> PyResult<Self> {
        if shape.len() != strides.len() {
            return Err(PyValueError::new_err("an array needs one stride for each dimension"));
        }
        let ndim = shape.len();
        let bytes = shape.iter().filter(|extent| **extent > 0).try_fold(dtype.size_bytes(), |bytes, extent| {
            bytes.checked_mul(*extent).filter(|bytes| i64::try_from(*bytes).is_ok())
        });
        if bytes.is_none() {
            let shown = PyTuple::new(owner.py(), &shape)?;
            return Err(PyValueError::new_err(format!("an array of shape {shown} and dtype {dtype} is too large")));
        }
        check_extents(shape.iter().copied())?;
        let buffer = owner.cast::<Memory>().ok().map(|memory| &memory.get().buffer);
        let lent = buffer.and_then(|buffer| buffer.order().map(|order| (order, Arc::clone(buffer))));
        let memory = buffer.map_or(MemoryKind::Shared, |buffer| buffer.memory());
        let layout = layout(shape.iter().copied(), strides.iter().copied(), dtype.size_bytes());
        let array = ArrayType { dtype, ndim: ndim as u8, layout, readonly };
        let is_aligned = strides::is_aligned(address, shape.iter().copied(), strides.iter().copied(), dtype);
        let is_record = record && ndim == 0;
        let word = || if is_record { key::record(dtype) } else { key::array(array) };
        let cells = std::iter::once(address).chain(shape).chain(strides.into_iter().map(|stride| stride as u64));
        Ok(Self {
            dtype,
            ndim,
            device,
            key: (ndim <= MAX_NDIM && is_aligned).then(word),
            is_record,
            cells: cells.collect(),
            array,
            owner: owner.unbind(),
            numbers: OnceLock::new(),
            lent,
            memory,
        })
    }
}

#[pymethods]
impl DeviceArray {
    /// An array in the memory of `owner`, its first element at `address`. Strides are in bytes.
    #[new]
    #[pyo3(signature = (owner, address=None, shape=None, strides=None, dtype=None, device=None, readonly=false, record=false))]
    #[expect(clippy::too_many_arguments, reason = "what an array is made of, each by its name")]
    fn new(
        owner: Bound<'_, PyAny>,
        address: Option<u64>,
        shape: Option<Vec<u64>>,
        strides: Option<Vec<i64>>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<u32>,
        readonly: bool,
        record: bool,
    ) -> PyResult<Self> {
        if let Some(made) = owner.cast::<FreshArray>().ok().and_then(|made| made.get().take()) {
            return Ok(made);
        }
        let (Some(address), Some(shape), Some(strides), Some(given), Some(device)) =
            (address, shape, strides, dtype, device)
        else {
            return Err(PyTypeError::new_err(
                "a device array is made of owner, address, shape, strides, dtype and device",
            ));
        };
        let dtype = dtype_of(given)?;
        if matches!(dtype, DType::Compound(id) if matches!(id.get(), Compound::Nested(_))) {
            return Err(numpy::unsupported(&given.to_string()));
        }
        Self::of(owner, address, shape, strides, dtype, device, readonly, record)
    }

    /// DLPack's C functions for arrays of this type.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyAny>> {
        dlpack::functions::capsule(py)
    }

    /// The shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.extents().collect::<Vec<_>>())
    }

    /// Strides in bytes.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.steps().collect::<Vec<_>>())
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

    /// Size of all elements in bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.size() * self.dtype.size_bytes()
    }

    /// Size of an element in bytes.
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

    /// Whether it is read-only.
    #[getter]
    fn readonly(&self) -> bool {
        self.array.readonly
    }

    /// "C", "F" or "A".
    #[getter]
    fn layout(&self) -> char {
        self.array.layout.letter()
    }

    /// Whether the elements are contiguous in C order.
    fn is_c_contiguous(&self) -> bool {
        contiguous(self.extents(), self.steps(), self.itemsize()).0
    }

    /// Whether the elements are contiguous in Fortran order.
    fn is_f_contiguous(&self) -> bool {
        contiguous(self.extents(), self.steps(), self.itemsize()).1
    }

    /// The range of bytes of the elements, relative to the first element: start and end.
    #[getter]
    fn span(&self) -> (i64, i64) {
        span(self.extents(), self.steps(), self.itemsize())
    }

    /// The owner of the memory.
    #[getter]
    fn owner<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.owner.bind(py).clone()
    }

    /// Its type in a kernel.
    #[getter]
    fn weft_type(&self) -> Type {
        Type::of(if self.is_record { ArgType::Record(self.dtype) } else { ArgType::Array(self.array) })
    }
}

impl DeviceArray {
    /// The reason why no kernel supports it.
    pub(crate) fn no_key(&self) -> PyErr {
        if self.ndim > MAX_NDIM {
            return too_many_dimensions(self.ndim);
        }
        strides::misaligned(self.dtype)
    }

    pub(super) fn extents(&self) -> impl DoubleEndedIterator<Item = u64> + Clone + '_ {
        self.cells.get(1..=self.ndim).unwrap_or_default().iter().copied()
    }

    /// Strides in bytes.
    pub(super) fn steps(&self) -> impl DoubleEndedIterator<Item = i64> + Clone + '_ {
        self.cells.get(1 + self.ndim..).unwrap_or_default().iter().map(|stride| *stride as i64)
    }

    /// Whether a device with access to the memory of this array's device can access the array. This holds for all
    /// memory of weft; otherwise the driver decides.
    pub(crate) fn is_open_to(&self, executor: &dyn Executor) -> bool {
        match self.memory {
            MemoryKind::Device => true,
            MemoryKind::Shared | MemoryKind::Host => executor.out_of_reach(self.address()).is_none(),
        }
    }

    /// The start address, for a node of a graph.
    pub(super) fn place(&self) -> MemoryLocation {
        MemoryLocation { address: self.address(), memory: self.memory }
    }

    /// The memory, if its uses must be recorded.
    pub(super) fn buffer(&self) -> Option<Arc<dyn Buffer>> {
        self.lent.as_ref().map(|(_, buffer)| Arc::clone(buffer))
    }

    /// Records that queued work in a stream uses the memory.
    pub(crate) fn note_use(&self, executor: &dyn Executor, stream: Option<&dyn Stream>) {
        if let Some((order, buffer)) = &self.lent
            && *order != stream.map_or(0, Stream::order)
        {
            executor.note_use(std::slice::from_ref(buffer), stream);
        }
    }
}

/// Copies contiguous host memory into an array. If the array has gaps, its strides are positive and descend.
#[pyfunction]
#[pyo3(signature = (array, host, stream=None))]
pub(crate) fn copy_to_device(
    array: &Bound<'_, DeviceArray>,
    host: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    recording::refuse_but("copy from the host", ", or record `array.copy_to_device(host)` of a NumPy array")?;
    let (py, array) = (array.py(), array.get());
    let executor = devices::by_id(py, array.device)?;
    let stream = stream_of(stream)?.on(py, &*executor)?;
    let host = HostArray::open_bytes(host)?;
    let bytes = host.bytes();
    if bytes.len() as u64 != array.nbytes() {
        return Err(PyValueError::new_err("the host memory and the array have different sizes"));
    }
    if bytes.is_empty() {
        return Ok(());
    }
    let runs = Runs::of(array)?;
    py.detach(|| {
        runs.each(|to, from, rows| {
            let from = bytes.get(from as usize..).unwrap_or_default();
            executor.copy_rows_to_device(array.address() + to, from, rows, stream.as_deref())
        })?;
        array.note_use(&*executor, stream.as_deref());
        Ok(())
    })
    .map_err(|error| errors::runtime(py, &error))
}

/// An array's elements as rows of bytes, and the number of rows.
struct Runs {
    rows: Rows,
    /// The number of repetitions, and their distances on the device and in host memory.
    outer: Vec<(u64, u64, u64)>,
}

impl Runs {
    fn of(array: &DeviceArray) -> PyResult<Self> {
        let mut width = array.itemsize();
        // From the innermost: extent, stride on the device, and stride in contiguous host memory.
        let mut dims: Vec<(u64, u64, u64)> = Vec::new();
        let mut step = width;
        let strides = array.cells.iter().skip(1 + array.ndim);
        let contiguous = array.array.layout != Layout::Any;
        let mut given: Vec<(u64, &u64)> = array.extents().zip(strides).collect();
        given.reverse();
        for (extent, stride) in given {
            if contiguous || extent == 1 {
                width *= if contiguous { extent } else { 1 };
                continue;
            }
            match dims.last_mut() {
                _ if (*stride as i64) < 0 => return Err(PyValueError::new_err("the array's strides must be positive")),
                None if *stride == width => width *= extent,
                Some(outer) if *stride == outer.1.wrapping_mul(outer.0) => outer.0 *= extent,
                _ => dims.push((extent, *stride, step)),
            }
            step *= extent;
        }
        let most = (0..dims.len()).max_by_key(|at| dims.get(*at).map_or(0, |dim| dim.0));
        let (count, to_pitch, from_pitch) = most.map_or((1, width, width), |at| dims.remove(at));
        Ok(Self { rows: Rows { width, count, to_pitch, from_pitch }, outer: dims })
    }

    /// Calls `copy` for each group of rows with its offset on the device and in the host memory.
    fn each(&self, mut copy: impl FnMut(u64, u64, &Rows) -> Result<(), Error>) -> Result<(), Error> {
        let n_groups: u64 = self.outer.iter().map(|(extent, ..)| extent).product();
        (0..n_groups).try_for_each(|group| {
            let (_, to, from) =
                self.outer.iter().fold((group, 0, 0), |(rest, to, from), (extent, to_step, from_step)| {
                    let at = rest % extent;
                    (rest / extent, to + at * to_step, from + at * from_step)
                });
            copy(to, from, &self.rows)
        })
    }
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
    recording::refuse_but("copy to the host", ", or record `array.copy_to_host(out)` into a NumPy array")?;
    let executor = devices::by_id(py, device)?;
    let stream = stream_of(stream)?.on(py, &*executor)?;
    let mut host = HostArray::open_bytes(host)?;
    let bytes = host.bytes_mut()?;
    if bytes.is_empty() {
        return Ok(());
    }
    errors::copied(py, py.detach(|| executor.copy_to_host(bytes, address, stream.as_deref())), || devices::findings(py))
}

/// Copies between two arrays of one device, both contiguous.
#[pyfunction]
#[pyo3(signature = (to, from, stream=None))]
pub(crate) fn copy_on_device(
    to: &Bound<'_, DeviceArray>,
    from: &Bound<'_, DeviceArray>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let keep = || PyTuple::new(to.py(), [to, from]).map(|both| both.into_any().unbind());
    let (py, to, from) = (to.py(), to.get(), from.get());
    let executor = devices::by_id(py, to.device)?;
    let stream = stream_of(stream)?.on(py, &*executor)?;
    let good = |array: &DeviceArray| array.device == to.device && array.array.layout != Layout::Any;
    if !good(to) || !good(from) || to.nbytes() != from.nbytes() {
        return Err(PyValueError::new_err("the arrays have different shapes or dtypes"));
    }
    if to.nbytes() == 0 {
        return Ok(());
    }
    if recording::is_active() {
        let step = Step::Copy { to: to.place(), from: from.place(), rows: Rows::one(to.nbytes()) };
        let buffers = [to, from].into_iter().filter_map(DeviceArray::buffer).collect();
        let order = stream.as_deref().map_or(0, Stream::order);
        return recording::record(to.device, Recorded { step, order, buffers, keep: keep()? });
    }
    py.detach(|| {
        executor.copy_on_device(to.address(), from.address(), to.nbytes(), stream.as_deref())?;
        to.note_use(&*executor, stream.as_deref());
        from.note_use(&*executor, stream.as_deref());
        Ok(())
    })
    .map_err(|error| errors::runtime(py, &error))
}
