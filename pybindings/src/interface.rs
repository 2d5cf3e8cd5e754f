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
use weft_artifact::{ArrayType, Scalar};

use crate::{
    host_array, numpy,
    types::{MAX_NDIM, too_many_dimensions},
};

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
    let dtype = scalar(&field(intern!(py, "typestr"))?)?;
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

/// The scalar of a `typestr`; NumPy is asked only for those that are not written as it writes them.
fn scalar(typestr: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    let text = typestr.cast::<PyString>()?;
    Ok(match text.to_str()? {
        "|b1" => Scalar::Bool,
        "|i1" => Scalar::I8,
        "<i2" => Scalar::I16,
        "<i4" => Scalar::I32,
        "<i8" => Scalar::I64,
        "|u1" => Scalar::U8,
        "<u2" => Scalar::U16,
        "<u4" => Scalar::U32,
        "<u8" => Scalar::U64,
        "<f4" => Scalar::F32,
        "<f8" => Scalar::F64,
        "<c8" => Scalar::C64,
        "<c16" => Scalar::C128,
        _ => return numpy::scalar_of(typestr),
    })
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
