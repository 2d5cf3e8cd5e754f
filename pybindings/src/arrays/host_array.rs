//! Arrays in the memory of this process: NumPy's and everything else with the buffer protocol.
//!
//! It makes byte slices of the memory that a buffer export keeps alive. A slice is used while other threads may run Python
//! (copies and launches release the interpreter), so another thread that writes the same array meanwhile gives a mix of old
//! and new elements, as with NumPy itself.
#![expect(unsafe_code, reason = "array memory is reached through the buffer protocol's pointers")]

use std::{ops::Range, ptr};

use pyo3::{
    buffer::PyUntypedBuffer,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyMemoryView,
};
use weft_artifact::{ArrayType, DType, MAX_NDIM, Number};

use super::strides;
use crate::types::{numpy, too_many_dimensions};

/// An array of this process and the export that keeps its memory in place.
pub(crate) struct HostArray {
    buffer: PyUntypedBuffer,
    /// Element type.
    pub(crate) dtype: DType,
    /// Dimensions; a 0-dimensional array's buffer has one.
    ndim: usize,
}

impl HostArray {
    /// Opens an object's buffer; `None` if it has none.
    ///
    /// # Errors
    ///
    /// `TypeError` for elements that kernels cannot have or too many dimensions.
    pub(crate) fn open(obj: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = obj.py();
        let is_array = || numpy::loaded(py).is_some_and(|classes| classes.is_array(obj));
        let (buffer, ndim, dtype) = match PyUntypedBuffer::get(obj) {
            Ok(buffer) => {
                let dtype = match dtype_of(&buffer) {
                    // A format does not say whether a record is aligned.
                    None if is_array() => dtype_of_array(obj)?,
                    known => known,
                };
                let ndim = buffer.dimensions();
                (buffer, ndim, dtype)
            }
            Err(_) if is_array() => {
                let Some(dtype) = dtype_of_array(obj)? else { return Err(unsupported(obj)) };
                let is_point = obj.getattr(intern!(py, "ndim"))?.extract::<usize>()? == 0;
                // NumPy exports no shape for 0 dimensions; a view with one dimension has the same element.
                let view = if is_point { obj.call_method1(intern!(py, "reshape"), (1,))? } else { obj.clone() };
                let buffer = export(&view)?;
                let ndim = if is_point { 0 } else { buffer.dimensions() };
                (buffer, ndim, Some(dtype))
            }
            // Arrays of `ctypes` export no strides; a view of Python's counts them.
            Err(_) => match PyMemoryView::from(obj).and_then(|view| PyUntypedBuffer::get(&view)) {
                Ok(buffer) => {
                    let (ndim, dtype) = (buffer.dimensions(), dtype_of(&buffer));
                    (buffer, ndim, dtype)
                }
                Err(_) => return Ok(None),
            },
        };
        let dtype = dtype.ok_or_else(|| unsupported(obj))?;
        if buffer.suboffsets().is_some_and(|offsets| offsets.iter().any(|offset| *offset >= 0)) {
            return Err(PyTypeError::new_err("buffers of pointers to rows are not supported"));
        }
        if ndim > MAX_NDIM {
            return Err(too_many_dimensions(ndim));
        }
        let array = Self { buffer, dtype, ndim };
        strides::check_extents(array.shape().iter().map(|extent| *extent as u64))?;
        Ok(Some(array))
    }

    /// Opens a buffer as bytes, whatever its elements are.
    ///
    /// # Errors
    ///
    /// `TypeError` if there is no buffer, `ValueError` if it is not contiguous.
    pub(crate) fn open_bytes(obj: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = export(obj)?;
        if !buffer.is_c_contiguous() && !buffer.is_fortran_contiguous() {
            return Err(PyValueError::new_err("the host memory is not contiguous"));
        }
        Ok(Self { buffer, dtype: DType::U8, ndim: 1 })
    }

    /// The shape.
    pub(crate) fn shape(&self) -> &[usize] {
        self.buffer.shape().get(..self.ndim).unwrap_or_default()
    }

    /// Strides in bytes.
    pub(crate) fn strides(&self) -> &[isize] {
        self.buffer.strides().get(..self.ndim).unwrap_or_default()
    }

    /// The address of the first element.
    pub(crate) fn address(&self) -> u64 {
        self.buffer.buf_ptr() as u64
    }

    /// Size of all elements in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.buffer.len_bytes()
    }

    /// Its type as a kernel's argument.
    pub(crate) fn array_type(&self) -> ArrayType {
        let shape = self.shape().iter().map(|extent| *extent as u64);
        let steps = self.strides().iter().map(|stride| *stride as i64);
        ArrayType {
            dtype: self.dtype,
            ndim: self.ndim as u8,
            layout: strides::layout(shape, steps, self.dtype.size_bytes()),
            readonly: self.buffer.readonly(),
        }
    }

    /// Whether its elements must not be written.
    pub(crate) fn is_read_only(&self) -> bool {
        self.buffer.readonly()
    }

    /// Whether its elements are one piece of memory.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.buffer.is_c_contiguous() || self.buffer.is_fortran_contiguous()
    }

    /// Whether two elements share memory, as in a view that repeats elements with a stride of 0.
    pub(crate) fn overlaps(&self) -> bool {
        !self.is_contiguous() && strides::overlap(self.shape(), self.strides(), self.buffer.item_size() as u64)
    }

    /// The addresses that its elements lie between; empty for an array without elements.
    pub(crate) fn span(&self) -> Range<u64> {
        let shape = self.shape().iter().map(|extent| *extent as u64);
        let steps = self.strides().iter().map(|stride| *stride as i64);
        let (low, high) = strides::span(shape, steps, self.buffer.item_size() as u64);
        self.address().wrapping_add_signed(low)..self.address().wrapping_add_signed(high)
    }

    /// Whether a kernel could have the elements with the first at this address.
    pub(crate) fn is_aligned_at(&self, address: u64) -> bool {
        let shape = self.shape().iter().map(|extent| *extent as u64);
        strides::is_aligned(address, shape, self.strides().iter().map(|stride| *stride as i64), self.dtype)
    }

    /// The memory that arrays lie in, each of which shares some with another one, and its address.
    pub(crate) fn bytes_of_all<'a>(arrays: impl Iterator<Item = &'a Self> + Clone) -> (u64, &'a [u8]) {
        let first = arrays.clone().map(|array| array.span().start).min().unwrap_or_default();
        let end = arrays.map(|array| array.span().end).max().unwrap_or_default();
        if first == end {
            return (first, &[]);
        }
        let start = ptr::with_exposed_provenance::<u8>(first as usize);
        // SAFETY: the exports keep the memory between each array's ends in place while the arrays live: an array is a view
        // of one piece of memory, and pieces that share bytes are one.
        (first, unsafe { std::slice::from_raw_parts(start, (end - first) as usize) })
    }

    /// The memory of a contiguous array.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.len_bytes() == 0 || !self.is_contiguous() {
            return &[];
        }
        // SAFETY: the export keeps `len_bytes` bytes from `buf_ptr` in place while `self` lives; they are one piece.
        unsafe { std::slice::from_raw_parts(self.buffer.buf_ptr().cast::<u8>(), self.len_bytes()) }
    }

    /// The memory of a contiguous array, to be written.
    ///
    /// # Errors
    ///
    /// `ValueError` for a read-only buffer.
    pub(crate) fn bytes_mut(&mut self) -> PyResult<&mut [u8]> {
        if self.buffer.readonly() {
            return Err(PyValueError::new_err("the host array is read-only"));
        }
        if self.len_bytes() == 0 || !self.is_contiguous() {
            return Ok(&mut []);
        }
        // SAFETY: as in `bytes`; the exporter allows writing, and `&mut self` is the only slice made of this export.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.buffer.buf_ptr().cast::<u8>(), self.len_bytes()) })
    }
}

/// An object's buffer. NumPy exports no bfloat16 and no dates, alone or in records: as bytes the elements are the same.
fn export(obj: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let error = match PyUntypedBuffer::get(obj) {
        Ok(buffer) => return Ok(buffer),
        Err(error) => error,
    };
    match dtype_of_array(obj) {
        Ok(Some(dtype)) => {
            let bytes = format!("V{}", dtype.size_bytes());
            PyUntypedBuffer::get(&obj.call_method1(intern!(obj.py(), "view"), (bytes,))?)
        }
        Ok(None) | Err(_) => Err(error),
    }
}

/// The dtype of a buffer's elements; `None` for those that kernels cannot have.
fn dtype_of(buffer: &PyUntypedBuffer) -> Option<DType> {
    let format = buffer.format().to_str().ok()?;
    Number::from_format(format, buffer.item_size() as u64).map(DType::from)
}

/// The dtype of an array of NumPy's.
fn dtype_of_array(obj: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    numpy::of_dtype(&obj.getattr(intern!(obj.py(), "dtype"))?)
}

/// `TypeError` for elements that kernels cannot have.
fn unsupported(obj: &Bound<'_, PyAny>) -> PyErr {
    match obj.getattr("dtype") {
        Ok(dtype) => numpy::unsupported(&dtype.to_string()),
        Err(_) => PyTypeError::new_err(format!("arrays of this format are not supported; {}", numpy::SUPPORTED)),
    }
}
