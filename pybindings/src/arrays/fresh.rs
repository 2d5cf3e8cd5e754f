//! New contiguous device arrays, in one call: the fast path of `cuda.device_array`.

use std::sync::{Mutex, PoisonError};

use pyo3::{
    prelude::*,
    types::{PyInt, PyList, PyTuple, PyType},
};
use weft_artifact::DType;

use super::{
    device_array::{DeviceArray, Memory},
    strides,
};
use crate::types::dtype_of;

/// A newly created array, to become the base of an instance of a Python class.
#[pyclass(frozen, module = "weft._weft", name = "MadeArray")]
pub(crate) struct FreshArray(Mutex<Option<DeviceArray>>);

impl FreshArray {
    /// The array, once.
    pub(super) fn take(&self) -> Option<DeviceArray> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Creates an instance of a class of device arrays with undefined contents, in C order, on the current device. `None`
/// for an extent or a dtype that needs the slow path, or is wrong.
#[pyfunction]
pub(crate) fn new_array<'py>(
    cls: &Bound<'py, PyType>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = cls.py();
    let Some(shape) = extents(shape) else { return Ok(None) };
    let dtype = if dtype.is_none() { Ok(DType::F64) } else { dtype_of(dtype) };
    // The slow path reports errors.
    let Ok(dtype @ DType::Number(_)) = dtype else { return Ok(None) };
    let item = dtype.size_bytes();
    let bytes = shape.iter().try_fold(item, |bytes, extent| {
        bytes.checked_mul(*extent.max(&1)).filter(|bytes| i64::try_from(*bytes).is_ok())
    });
    let Some(bytes) = bytes else { return Ok(None) };
    let memory = Memory::allocate(py, if shape.contains(&0) { 0 } else { bytes })?;
    let (address, device) = memory.place();
    let memory = Bound::new(py, memory)?.into_any();
    let steps = strides::of_c(&shape, item);
    let array = DeviceArray::of(memory, address, shape, steps, dtype, device, false, false)?;
    // A Python class has its own `__new__` with other parameters.
    let new = py.get_type::<DeviceArray>().getattr(intern!(py, "__new__"))?;
    new.call1((cls, FreshArray(Mutex::new(Some(array))))).map(Some)
}

/// Extents that are plain Python integers.
fn extents(shape: &Bound<'_, PyAny>) -> Option<Vec<u64>> {
    let plain = |item: &Bound<'_, PyAny>| {
        if item.is_exact_instance_of::<PyInt>() { item.extract::<u64>().ok() } else { None }
    };
    if let Ok(items) = shape.cast_exact::<PyTuple>() {
        return items.iter_borrowed().map(|item| plain(&item)).collect();
    }
    if let Ok(items) = shape.cast_exact::<PyList>() {
        return items.iter().map(|item| plain(&item)).collect();
    }
    plain(shape).map(|extent| vec![extent])
}
