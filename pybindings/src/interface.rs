//! `__cuda_array_interface__`: arrays of other libraries, without a copy.
//!
//! Read at every launch, because the object may have moved, so it is read with as few Python objects as there can be.
//! <https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html>

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    intern,
    prelude::*,
    types::{PyDict, PyString, PyTuple},
};
use weft_artifact::{ArrayType, DType, MAX_NDIM, Number};

use crate::{host_array, numpy, types::too_many_dimensions};

/// What an interface says besides the cells.
pub(crate) struct Interface {
    pub(crate) array: ArrayType,
    /// The stream to wait for.
    pub(crate) stream: Option<u64>,
}

impl Interface {
    /// Reads an interface and adds its address, extents and strides to `cells`, which are as before on an error.
    ///
    /// # Errors
    ///
    /// `TypeError` and `ValueError` for what a kernel cannot take.
    pub(crate) fn read(interface: &Bound<'_, PyAny>, cells: &mut Vec<u64>) -> PyResult<Self> {
        let first = cells.len();
        let read = read(interface.cast::<PyDict>()?, cells);
        if read.is_err() {
            cells.truncate(first);
        }
        read
    }
}

fn read<'py>(interface: &Bound<'py, PyDict>, cells: &mut Vec<u64>) -> PyResult<Interface> {
    let py = interface.py();
    let field = |name: &Bound<'py, PyString>| -> PyResult<Bound<'py, PyAny>> {
        let missing = || PyTypeError::new_err(format!("its __cuda_array_interface__ has no `{name}`"));
        interface.get_item(name)?.ok_or_else(missing)
    };
    let optional = |name: &Bound<'py, PyString>| -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(interface.get_item(name)?.filter(|value| !value.is_none()))
    };
    if optional(intern!(py, "mask"))?.is_some() {
        return Err(PyTypeError::new_err("masked arrays are not supported"));
    }
    let dtype = dtype_of(&field(intern!(py, "typestr"))?)?;
    let data = field(intern!(py, "data"))?;
    let (address, readonly): (u64, bool) = data.extract()?;
    let shape = field(intern!(py, "shape"))?;
    let shape = shape.cast::<PyTuple>()?;
    let ndim = shape.len();
    if ndim > MAX_NDIM {
        return Err(too_many_dimensions(ndim));
    }
    cells.push(address);
    let extents = cells.len();
    for extent in shape.iter_borrowed() {
        cells.push(extent.extract()?);
    }
    let item = dtype.size_bytes();
    match optional(intern!(py, "strides"))? {
        Some(strides) => {
            let strides = strides.cast::<PyTuple>()?;
            if strides.len() != ndim {
                let message = "its __cuda_array_interface__ has not one stride for each dimension";
                return Err(PyValueError::new_err(message));
            }
            for stride in strides.iter_borrowed() {
                cells.push(stride.extract::<i64>()? as u64);
            }
        }
        None => push_c_strides(cells, extents, item),
    }
    let (shape, strides) = cells.get(extents..).unwrap_or_default().split_at(ndim);
    let layout = host_array::layout(shape.iter().copied(), strides.iter().map(|stride| *stride as i64), item);
    let stream = optional(intern!(py, "stream"))?.map(|stream| stream.extract()).transpose()?;
    Ok(Interface { array: ArrayType { dtype, ndim: ndim as u8, layout, readonly }, stream })
}

/// The dtype of a `typestr`; NumPy is asked only for those that are not written as it writes them.
fn dtype_of(typestr: &Bound<'_, PyAny>) -> PyResult<DType> {
    let text = typestr.cast::<PyString>()?;
    Number::from_typestr(text.to_str()?).map_or_else(|| numpy::dtype_of(typestr), |number| Ok(number.into()))
}

/// Adds the strides in bytes of a C-contiguous array to the extents, which lie from `extents` to the end.
fn push_c_strides(cells: &mut Vec<u64>, extents: usize, item: u64) {
    let ndim = cells.len() - extents;
    cells.resize(extents + 2 * ndim, 0);
    let (shape, strides) = cells.get_mut(extents..).unwrap_or_default().split_at_mut(ndim);
    let mut step = item;
    for (stride, extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.wrapping_mul(*extent);
    }
}
