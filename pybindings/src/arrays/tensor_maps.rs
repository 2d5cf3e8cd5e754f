//! Tensor maps of device arrays, for copies of boxes in kernels.

use pyo3::{exceptions::PyValueError, prelude::*};
use weft_artifact::{BoxMap, BoxType, DType, MAP_DIMS, Number};

use super::device_array::DeviceArray;
use crate::{devices, errors};

/// What the address and the strides of an array with a tensor map are multiples of, in bytes.
const ALIGN: u64 = 16;

/// The name of the class of an array's map, and the map's bytes.
#[pyfunction]
pub(crate) fn tensor_map(
    py: Python<'_>,
    array: &DeviceArray,
    sizes: Vec<u32>,
    swizzle: u32,
) -> PyResult<(String, Vec<u8>)> {
    let wrong = |message: String| Err(PyValueError::new_err(message));
    let DType::Number(Number::Real(scalar)) = array.array.dtype else {
        return wrong(format!("a tensor map is of an array of real numbers, not of {}", array.array.dtype));
    };
    let (extents, steps): (Vec<u64>, Vec<i64>) = (array.extents().collect(), array.steps().collect());
    if sizes.len() != extents.len() {
        return wrong(format!("the array has {} dimensions, and the box has {}", extents.len(), sizes.len()));
    }
    let ty = BoxType::new(scalar, sizes, swizzle).or_else(wrong_type)?;
    let element = scalar.size_bytes();
    let last = extents.len() - 1;
    if steps[last] != element.cast_signed() && extents[last] > 1 {
        return wrong("the last dimension of an array with a tensor map is contiguous".to_owned());
    }
    if let Some(extent) = extents.iter().find(|&&extent| extent == 0 || extent > u64::from(u32::MAX)) {
        return wrong(format!("a dimension of an array with a tensor map has 1 to 2**32 - 1 elements, not {extent}"));
    }
    let address = array.cells[0];
    let is_aligned = |step: i64| step >= 0 && step.cast_unsigned().is_multiple_of(ALIGN);
    if !address.is_multiple_of(ALIGN) || !steps[..last].iter().all(|&step| is_aligned(step)) {
        return wrong(format!(
            "the address and the strides of an array with a tensor map are multiples of {ALIGN} bytes: pad its rows, \
             or copy it"
        ));
    }
    let mut map = BoxMap {
        data: address,
        dims: extents.len(),
        element: element as usize,
        swizzle: swizzle as usize,
        extents: [0; MAP_DIMS],
        strides: [0; MAP_DIMS],
        sizes: [0; MAP_DIMS],
    };
    for dim in 0..map.dims {
        (map.extents[dim], map.strides[dim]) = (extents[dim], steps[dim].cast_unsigned());
        map.sizes[dim] = ty.sizes[dim];
    }
    map.strides[last] = element;
    let executor = devices::by_id(py, array.device)?;
    let words = executor.tensor_map(&map, scalar).map_err(|error| errors::runtime(py, &error))?;
    Ok((ty.to_string(), words.iter().flat_map(|word| word.to_le_bytes()).collect()))
}

fn wrong_type(message: String) -> PyResult<BoxType> {
    Err(PyValueError::new_err(message))
}
