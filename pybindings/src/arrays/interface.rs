//! `__cuda_array_interface__`: arrays of other libraries, without a copy.
//!
//! Read at every launch, because the object may have moved, so it is read with as few Python objects as there can be.
//! <https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html>

use pyo3::{
    exceptions::{PyNotImplementedError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PySequence, PyString, PyTuple},
};
use weft_artifact::{ArrayType, Compound, DType, Float8, Number};

use super::strides;
use crate::types::{numpy, too_many_dimensions};

/// The most dimensions that an array of NumPy's has.
const NUMPY_NDIM: usize = 64;

/// The result of [`read_array_interface`].
type Parts<'py> = (u64, Bound<'py, PyTuple>, Bound<'py, PyTuple>, Bound<'py, PyAny>, bool, Option<u64>);

/// The contents of an interface besides the cells.
#[derive(PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) array: ArrayType,
    /// The stream to wait for.
    pub(crate) stream: Option<u64>,
    /// Whether the elements lie where a kernel takes them to lie.
    pub(crate) is_aligned: bool,
}

impl Interface {
    /// Reads an interface of at most `max_ndim` dimensions and appends its address, extents and strides to `cells`,
    /// which are unchanged on an error. If `typestr` gives only the element size, the owner's dtype decides.
    ///
    /// # Errors
    ///
    /// `TypeError` and `ValueError` for arrays that kernels do not support.
    pub(crate) fn read(
        interface: &Bound<'_, PyAny>,
        owner: Option<&Bound<'_, PyAny>>,
        max_ndim: usize,
        cells: &mut Vec<u64>,
    ) -> PyResult<Self> {
        let first = cells.len();
        let Ok(fields) = interface.cast::<PyDict>() else {
            let message = format!("its __cuda_array_interface__ must be a dict, not {}", interface.get_type());
            return Err(PyTypeError::new_err(message));
        };
        let read = read(fields, owner, max_ndim, cells);
        if read.is_err() {
            cells.truncate(first);
        }
        read
    }
}

fn read<'py>(
    interface: &Bound<'py, PyDict>,
    owner: Option<&Bound<'py, PyAny>>,
    max_ndim: usize,
    cells: &mut Vec<u64>,
) -> PyResult<Interface> {
    let py = interface.py();
    let field = |name: &Bound<'py, PyString>| -> PyResult<Bound<'py, PyAny>> {
        let missing = || PyTypeError::new_err(format!("its __cuda_array_interface__ has no `{name}`"));
        interface.get_item(name)?.ok_or_else(missing)
    };
    let optional = |name: &Bound<'py, PyString>| -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(interface.get_item(name)?.filter(|value| !value.is_none()))
    };
    if optional(intern!(py, "mask"))?.is_some() {
        return Err(PyNotImplementedError::new_err("masked arrays are not supported"));
    }
    let dtype = dtype_of(&field(intern!(py, "typestr"))?, optional(intern!(py, "descr"))?, owner)?;
    let data = field(intern!(py, "data"))?;
    let (address, readonly): (u64, bool) = data.extract()?;
    let shape = field(intern!(py, "shape"))?;
    let shape = tuple(&shape)?;
    let ndim = shape.len();
    if ndim > max_ndim {
        return Err(too_many_dimensions(ndim));
    }
    cells.push(address);
    let extents = cells.len();
    for extent in shape.iter_borrowed() {
        let Ok(extent) = extent.extract::<i64>().map(u64::try_from) else {
            let message = format!("the shape in its __cuda_array_interface__ must have integers, got {shape}");
            return Err(PyTypeError::new_err(message));
        };
        let Ok(extent) = extent else {
            let message =
                format!("the shape in its __cuda_array_interface__ cannot have negative dimensions, got {shape}");
            return Err(PyValueError::new_err(message));
        };
        cells.push(extent);
    }
    let item = dtype.size_bytes();
    match optional(intern!(py, "strides"))? {
        Some(given) => {
            let given = tuple(&given)?;
            if given.len() != ndim {
                let message = "its __cuda_array_interface__ must have one stride for each dimension";
                return Err(PyValueError::new_err(message));
            }
            for stride in given.iter_borrowed() {
                cells.push(stride.extract::<i64>()? as u64);
            }
        }
        None => strides::push_c(cells, extents, item),
    }
    let (shape, steps) = cells.get(extents..).unwrap_or_default().split_at(ndim);
    let (layout, is_aligned) = strides::examine(address, shape, steps, dtype)?;
    let handle = |stream: Bound<'_, PyAny>| {
        stream.extract().map_err(|_| {
            let message = "the stream of its __cuda_array_interface__ must be None, 1, 2 or the handle of a stream";
            PyValueError::new_err(format!("{message}, not {}", shown(&stream)))
        })
    };
    let stream = optional(intern!(py, "stream"))?.map(handle).transpose()?;
    Ok(Interface { array: ArrayType { dtype, ndim: ndim as u8, layout, readonly }, stream, is_aligned })
}

fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| value.get_type().to_string(), |text| text.to_string())
}

/// A tuple, or a list as one.
fn tuple<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    match value.cast::<PyTuple>() {
        Ok(tuple) => Ok(tuple.clone()),
        Err(_) => value.cast::<PySequence>()?.to_tuple(),
    }
}

/// The dtype of a `typestr`; NumPy parses only those in another spelling than its own.
///
/// Kind `V` gives the size of elements, not their type: records have a `descr`
/// (<https://numpy.org/doc/stable/reference/arrays.interface.html>), or the array has a dtype. bfloat16 is none of
/// NumPy's.
fn dtype_of<'py>(
    typestr: &Bound<'py, PyAny>,
    descr: Option<Bound<'py, PyAny>>,
    owner: Option<&Bound<'py, PyAny>>,
) -> PyResult<DType> {
    let py = typestr.py();
    let text = typestr.cast::<PyString>()?.to_str()?;
    if let Some(number) = Number::from_typestr(text) {
        return Ok(number.into());
    }
    if text.get(1..2) != Some("V") && text.get(1..) != Some("f1") {
        return numpy::dtype_of(typestr);
    }
    if let Some(descr) = descr
        && descr.len()? > 0
        && !descr.get_item(0)?.get_item(0)?.eq("")?
    {
        let format = py.import(intern!(py, "numpy.lib.format"))?;
        return numpy::dtype_of(&format.call_method1(intern!(py, "descr_to_dtype"), (descr,))?);
    }
    let own = owner.map(|owner| owner.getattr_opt(intern!(py, "dtype"))).transpose()?.flatten();
    match own {
        Some(own) if numpy::import(py)?.is_dtype(&own) => numpy::dtype_of(&own),
        Some(own) if own.str()? == "torch.bfloat16" => Ok(DType::BF16),
        Some(own) if let Some(format) = own.str()?.to_str()?.strip_prefix("torch.").and_then(Float8::from_name) => {
            DType::intern(Compound::Float8(format)).ok_or_else(|| numpy::unsupported(format.name()))
        }
        Some(_) | None => numpy::dtype_of(typestr),
    }
}

/// A `__cuda_array_interface__` dictionary as its parts: address, shape, strides in bytes, dtype, whether it is
/// read-only, and the stream to wait for.
#[pyfunction]
#[pyo3(signature = (desc, owner=None))]
pub(crate) fn read_array_interface<'py>(
    desc: &Bound<'py, PyAny>,
    owner: Option<&Bound<'py, PyAny>>,
) -> PyResult<Parts<'py>> {
    let py = desc.py();
    let mut cells = Vec::new();
    let Interface { array, stream, .. } = Interface::read(desc, owner, NUMPY_NDIM, &mut cells)?;
    let (address, rest) = cells.split_first().map_or((0, [].as_slice()), |(address, rest)| (*address, rest));
    let (shape, strides) = rest.split_at(rest.len() / 2);
    let strides = strides.iter().map(|stride| *stride as i64);
    let (shape, strides) = (PyTuple::new(py, shape)?, PyTuple::new(py, strides.collect::<Vec<_>>())?);
    Ok((address, shape, strides, numpy::dtype(py, array.dtype)?, array.readonly, stream))
}
