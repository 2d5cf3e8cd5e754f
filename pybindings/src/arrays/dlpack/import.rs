//! Imports of tensors from other libraries: reads a tensor's description into cells, and holds the producer's memory as
//! long as it is needed.
//!
//! A producer passes a structure with a deleter, which the last owner calls once: the capsule that contained it, or
//! [`Managed`], which renames that capsule to mark the transfer.
//! <https://dmlc.github.io/dlpack/latest/python_spec.html>
#![expect(unsafe_code, reason = "reads the structures of DLPack, and calls the producer's deleter")]

use std::{ffi::c_void, ptr::NonNull, slice};

use pyo3::{
    exceptions::{PyBufferError, PyTypeError, PyValueError},
    ffi,
    prelude::*,
    types::{PyDict, PyMemoryView, PyTuple},
};
use weft_artifact::{ArrayType, DType, Number};

use super::{
    IS_COPIED, Names, OLD, OldTensor, READ_ONLY, RawDevice, RawTensor, TensorMemory, VERSION, VERSIONED,
    VersionedTensor,
};
use crate::{arrays::strides, types::Type};

/// The most dimensions that an array of NumPy's has.
pub(super) const NUMPY_NDIM: usize = 64;

/// A producer's structure that weft owns: dropping this calls the deleter, with the GIL held.
pub(crate) struct Managed(Owned);

enum Owned {
    Old(NonNull<OldTensor>),
    Versioned(NonNull<VersionedTensor>),
}

// SAFETY: the producer allows calling the deleter on any thread; only a thread with the GIL reads the structure.
unsafe impl Send for Managed {}
// SAFETY: as above.
unsafe impl Sync for Managed {}

impl Drop for Managed {
    fn drop(&mut self) {
        match self.0 {
            Owned::Old(tensor) => {
                // SAFETY: the structure lives until its deleter is called, which is only here.
                let deleter = unsafe { tensor.as_ref() }.deleter;
                if let Some(deleter) = deleter {
                    // SAFETY: the producer's deleter of this very structure, which has no other users.
                    unsafe { deleter(tensor.as_ptr()) };
                }
            }
            Owned::Versioned(tensor) => {
                // SAFETY: the structure lives until its deleter is called, which is only here.
                let deleter = unsafe { tensor.as_ref() }.deleter;
                if let Some(deleter) = deleter {
                    // SAFETY: the producer's deleter of this very structure, which has no other users.
                    unsafe { deleter(tensor.as_ptr()) };
                }
            }
        }
    }
}

impl Managed {
    /// Takes a capsule's structure, and says in the capsule's name that it is taken.
    fn consume(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(tensor) = take(capsule, &VERSIONED)? {
            return Self::versioned(tensor.cast());
        }
        if let Some(tensor) = take(capsule, &OLD)? {
            return Ok(Self(Owned::Old(tensor.cast())));
        }
        Err(PyBufferError::new_err(format!(
            "{} is not an unused DLPack capsule: each capsule can be consumed once",
            capsule.repr().map_or_else(|_| "it".to_owned(), |text| text.to_string())
        )))
    }

    /// A structure that its producer gives away.
    pub(super) fn versioned(tensor: NonNull<VersionedTensor>) -> PyResult<Self> {
        let managed = Self(Owned::Versioned(tensor));
        // SAFETY: of every version the structure begins with this field, and it lives as long as `managed`.
        let version = unsafe { tensor.as_ref() }.version;
        if version.major != VERSION.major {
            return Err(PyBufferError::new_err(format!(
                "it was exported by DLPack {}.{}, but weft supports DLPack {}",
                version.major, version.minor, VERSION.major
            )));
        }
        Ok(managed)
    }

    /// Whether it is of before DLPack 1.0.
    fn is_old(&self) -> bool {
        match self.0 {
            Owned::Old(_) => true,
            Owned::Versioned(_) => false,
        }
    }

    /// The tensor, and its flags.
    pub(super) fn raw(&self) -> (RawTensor, u64) {
        match &self.0 {
            Owned::Old(tensor) => {
                // SAFETY: the structure lives as long as `self`.
                (unsafe { tensor.as_ref() }.tensor, 0)
            }
            Owned::Versioned(tensor) => {
                // SAFETY: the structure lives as long as `self`, and its version's layout is known.
                let structure = unsafe { tensor.as_ref() };
                (structure.tensor, structure.flags)
            }
        }
    }
}

/// A capsule's pointer, if it has the fresh name; it has the other one then.
fn take(capsule: &Bound<'_, PyAny>, names: &Names) -> PyResult<Option<NonNull<c_void>>> {
    // SAFETY: the function accepts any object.
    if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), names.fresh.as_ptr()) } == 0 {
        return Ok(None);
    }
    // SAFETY: it is a capsule of this name.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), names.fresh.as_ptr()) };
    // SAFETY: it is a capsule; the name lives as long as the process.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), names.used.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    Ok(NonNull::new(pointer))
}

/// A tensor's properties besides the cells.
pub(crate) struct Seen {
    pub(crate) place: TensorMemory,
    pub(crate) array: ArrayType,
    /// The elements are the producer's copy: writes to them are not visible elsewhere.
    pub(crate) is_copied: bool,
    /// Whether the elements lie where a kernel takes them to lie.
    pub(crate) is_aligned: bool,
}

impl Seen {
    /// Reads a tensor of at most `max_ndim` dimensions and appends its address, extents and strides in bytes to
    /// `cells`, which are unchanged on an error.
    ///
    /// # Errors
    ///
    /// `TypeError`, `ValueError` and `BufferError` for tensors that kernels do not support.
    pub(super) fn of(raw: &RawTensor, flags: u64, max_ndim: usize, cells: &mut Vec<u64>) -> PyResult<Self> {
        let first = cells.len();
        let seen = see(raw, flags, max_ndim, cells);
        if seen.is_err() {
            cells.truncate(first);
        }
        seen
    }

    /// Adds a tensor's extents to `cells`.
    ///
    /// # Errors
    ///
    /// `ValueError` and `BufferError` for those that there cannot be.
    pub(super) fn extents(raw: &RawTensor, cells: &mut Vec<u64>) -> PyResult<()> {
        let ndim = usize::try_from(raw.ndim).unwrap_or_default();
        let shape = field(raw.shape, ndim);
        if shape.len() != ndim {
            return Err(PyBufferError::new_err("it has dimensions, but no shape"));
        }
        for extent in shape {
            let good = u64::try_from(*extent);
            cells.push(good.map_err(|_| PyValueError::new_err(format!("it has a negative dimension: {extent}")))?);
        }
        Ok(())
    }
}

fn see(raw: &RawTensor, flags: u64, max_ndim: usize, cells: &mut Vec<u64>) -> PyResult<Seen> {
    let dtype = raw.dtype.dtype()?;
    let item = dtype.size_bytes();
    let ndim =
        usize::try_from(raw.ndim).map_err(|_| PyValueError::new_err("it has a negative number of dimensions"))?;
    if ndim > max_ndim {
        return Err(crate::types::too_many_dimensions(ndim));
    }
    let address = (raw.data as u64).wrapping_add(raw.byte_offset);
    cells.push(address);
    let extents = cells.len();
    Seen::extents(raw, cells)?;
    if raw.strides.is_null() {
        strides::push_c(cells, extents, item);
    } else {
        for stride in field(raw.strides, ndim) {
            let bytes = stride.checked_mul(item as i64);
            cells.push(bytes.ok_or_else(|| PyValueError::new_err(format!("the stride {stride} is too large")))? as u64);
        }
    }
    let (shape, steps) = cells.get(extents..).unwrap_or_default().split_at(ndim);
    let (layout, is_aligned) = strides::examine(address, shape, steps, dtype)?;
    if raw.data.is_null() && !shape.contains(&0) {
        return Err(PyBufferError::new_err("it has elements, but no memory"));
    }
    let readonly = flags & READ_ONLY != 0;
    let array = ArrayType { dtype, ndim: ndim as u8, layout, readonly };
    Ok(Seen { place: TensorMemory::of(raw.device), array, is_copied: flags & IS_COPIED != 0, is_aligned })
}

/// One of the fields of a tensor that point to a number for each dimension.
fn field<'a>(numbers: *const i64, ndim: usize) -> &'a [i64] {
    if numbers.is_null() || ndim == 0 {
        return &[];
    }
    // SAFETY: DLPack has `ndim` numbers there, which the producer keeps valid as long as the tensor; all callers read
    // them at once.
    unsafe { slice::from_raw_parts(numbers, ndim) }
}

/// The arguments for an object's `__dlpack__`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Consumer {
    /// The handle of the consuming stream, where 0 is the legacy default stream; `None` requests no synchronization.
    pub(crate) stream: Option<u64>,
}

impl Consumer {
    /// The number of the stream in `__dlpack__`'s encoding.
    fn number(self) -> i64 {
        match self.stream {
            None => -1,
            Some(0) => 1,
            Some(handle) => handle as i64,
        }
    }
}

/// Has an object export its array: `__dlpack_device__` and `__dlpack__`. The answer's description is added to `cells`.
///
/// # Errors
///
/// The object's own; `TypeError`, `ValueError` and `BufferError` for tensors that kernels do not support.
pub(crate) fn export(
    object: &Bound<'_, PyAny>,
    method: &Bound<'_, PyAny>,
    consumer: Consumer,
    max_ndim: usize,
    cells: &mut Vec<u64>,
) -> PyResult<(Seen, Managed)> {
    let py = object.py();
    if let Some(is_negative) = object.getattr_opt(intern!(py, "is_neg"))?
        && is_negative.call0()?.is_truthy()?
    {
        return Err(negative());
    }
    let (kind, id): (i32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    let given = PyDict::new(py);
    // Where there are no streams only None is taken, which is the default.
    if TensorMemory::of(RawDevice { kind, id }).has_streams() {
        given.set_item(intern!(py, "stream"), consumer.number())?;
    }
    given.set_item(intern!(py, "max_version"), (VERSION.major, VERSION.minor))?;
    let capsule = match method.call((), Some(&given)) {
        // A producer of before DLPack 1.0 does not know the keyword.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            given.del_item(intern!(py, "max_version"))?;
            method.call((), Some(&given))?
        }
        answer => answer?,
    };
    let managed = Managed::consume(&capsule)?;
    let (raw, flags) = managed.raw();
    let mut seen = Seen::of(&raw, flags, max_ndim, cells)?;
    seen.array.readonly |= managed.is_old() && seen.place == TensorMemory::Host && has_read_only_buffer(object);
    Ok((seen, managed))
}

/// Whether an object has a buffer that must not be written, as JAX's arrays have: an old structure cannot say so.
fn has_read_only_buffer(object: &Bound<'_, PyAny>) -> bool {
    let readonly = |view: Bound<'_, PyMemoryView>| view.getattr(intern!(object.py(), "readonly"))?.is_truthy();
    PyMemoryView::from(object).and_then(readonly).unwrap_or(false)
}

/// The error for elements that are the negatives of the values in memory, as in some of PyTorch's views: DLPack does
/// not report that, and PyTorch's own exporters do not check it.
pub(super) fn negative() -> PyErr {
    PyBufferError::new_err("its memory contains the negated elements (the negative bit is set): call `resolve_neg()`")
}

/// The owner of a tensor's memory.
pub(crate) enum Keeper {
    /// The structure that the producer gave away.
    Structure(#[expect(dead_code, reason = "is dropped with the tensor")] Managed),
    /// The object whose memory it is.
    Object(#[expect(dead_code, reason = "is dropped with the tensor")] Py<PyAny>),
}

/// An array of another library's as it was exported; it keeps the memory. One of the host's memory is an array to NumPy.
#[pyclass(frozen, module = "weft._weft", name = "DLPackTensor")]
pub(crate) struct Tensor {
    pub(crate) cells: Box<[u64]>,
    array: ArrayType,
    place: TensorMemory,
    is_copied: bool,
    _keeper: Keeper,
}

impl Tensor {
    /// A tensor with the cells that were read.
    pub(crate) fn new(seen: &Seen, cells: &[u64], keeper: Keeper) -> Self {
        let Seen { place, array, is_copied, is_aligned: _ } = *seen;
        Self { cells: cells.into(), array, place, is_copied, _keeper: keeper }
    }

    fn numbers(&self) -> (&[u64], &[u64]) {
        self.cells.get(1..).unwrap_or_default().split_at(self.array.ndim.into())
    }
}

#[pymethods]
impl Tensor {
    /// The address of the first element.
    #[getter]
    fn address(&self) -> u64 {
        self.cells.first().copied().unwrap_or_default()
    }

    /// The shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.numbers().0)
    }

    /// Strides in bytes.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.numbers().1.iter().map(|stride| *stride as i64).collect::<Vec<_>>())
    }

    /// weft's type of the elements.
    #[getter]
    fn dtype(&self) -> Type {
        Type::of_dtype(self.array.dtype)
    }

    /// `DLDeviceType` and the device's number, as `__dlpack_device__` gives them.
    #[getter]
    fn device(&self) -> (i32, i32) {
        match self.place {
            TensorMemory::Gpu(id) => (self.place.kind(), id),
            TensorMemory::Host | TensorMemory::PageLocked | TensorMemory::Managed | TensorMemory::Elsewhere(_) => {
                (self.place.kind(), 0)
            }
        }
    }

    /// Whether it must not be written.
    #[getter]
    fn readonly(&self) -> bool {
        self.array.readonly
    }

    /// Whether the producer made a copy to export.
    #[getter]
    fn copied(&self) -> bool {
        self.is_copied
    }

    /// NumPy's array interface, of memory of the host. bfloat16, which NumPy has not, is uint16; a float of 8 bits is
    /// uint8.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self.place {
            TensorMemory::Host | TensorMemory::PageLocked => {}
            TensorMemory::Gpu(_) | TensorMemory::Managed | TensorMemory::Elsewhere(_) => {
                return Err(pyo3::exceptions::PyAttributeError::new_err("it is not in the memory of the host"));
            }
        }
        let number = match self.array.dtype {
            DType::BF16 => Number::U16,
            DType::Number(number) => number,
            dtype if dtype.float8().is_some() => Number::U8,
            DType::Compound(_) => return Err(PyTypeError::new_err("DLPack only supports numbers")),
        };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", number.row().typestr)?;
        interface.set_item("data", (self.address(), self.array.readonly))?;
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("strides", self.strides(py)?)?;
        Ok(interface)
    }
}

/// Takes an object's array, or what is in a capsule, for a stream to use: the handle, where 0 is the legacy default stream.
#[pyfunction]
#[pyo3(signature = (obj, stream=None))]
pub(crate) fn read_dlpack(obj: &Bound<'_, PyAny>, stream: Option<u64>) -> PyResult<Tensor> {
    let py = obj.py();
    let mut cells = Vec::new();
    let (seen, managed) = match obj.getattr_opt(intern!(py, "__dlpack__"))? {
        Some(method) => export(obj, &method, Consumer { stream }, NUMPY_NDIM, &mut cells)?,
        None => {
            let managed = Managed::consume(obj)?;
            let (raw, flags) = managed.raw();
            (Seen::of(&raw, flags, NUMPY_NDIM, &mut cells)?, managed)
        }
    };
    Ok(Tensor::new(&seen, &cells, Keeper::Structure(managed)))
}
