//! Reads Python and NumPy numbers among a launch's arguments without Python calls: there may be hundreds of them.
//!
//! A NumPy scalar is an object header followed by the number, as documented in `numpy/arrayscalars.h`
//! (<https://numpy.org/doc/stable/reference/c-api/types-and-structures.html>). [`is_plain`] verifies this layout once
//! for each type.
#![expect(unsafe_code, reason = "reads NumPy's structures")]

use pyo3::{
    ffi,
    prelude::*,
    types::{PyComplex, PyFloat, PyInt, PyType},
};
use weft_artifact::{Number, Scalar};

/// The size of the object header.
const HEAD: usize = size_of::<ffi::PyObject>();

/// Whether a NumPy scalar type has the layout that [`cells`] reads. It tests one scalar of the type.
pub(crate) fn is_plain(class: &Bound<'_, PyType>, number: Number) -> PyResult<bool> {
    let py = class.py();
    let size: usize = class.getattr(intern!(py, "__basicsize__"))?.extract()?;
    if size < HEAD + number.size_bytes() as usize {
        return Ok(false);
    }
    let part = |real: f64| number.part().float_bits(real);
    let (sample, expected) = match number {
        Number::Complex(_) => (PyComplex::from_doubles(py, 1.0, -2.0).into_any(), (part(1.0), part(-2.0))),
        Number::Real(Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64) => {
            (PyFloat::new(py, 1.0).into_any(), (part(1.0), 0))
        }
        Number::Real(
            Scalar::Bool
            | Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64,
        ) => (PyInt::new(py, 1_i32).into_any(), (1, 0)),
    };
    let scalar = class.call1((sample,))?;
    Ok(scalar.get_type().is(class) && cells(&scalar, number) == expected)
}

/// The cells of a NumPy scalar whose type [`is_plain`]: two's complement, or the bits of one or two floats.
#[inline]
pub(crate) fn cells(scalar: &Bound<'_, PyAny>, number: Number) -> (u64, u64) {
    // SAFETY: the object is longer than its header, to which this pointer points.
    let place = unsafe { scalar.as_ptr().add(1) };
    match number.size_bytes() {
        1 => {
            // SAFETY: the number has this many bytes, which are never written after the scalar is created; also below.
            let byte = unsafe { place.cast::<u8>().read() };
            (if number == Number::I8 { byte as i8 as u64 } else { byte.into() }, 0)
        }
        2 => {
            // SAFETY: as above; objects are aligned, and their heads are.
            let bits = unsafe { place.cast::<u16>().read() };
            (if number == Number::I16 { bits as i16 as u64 } else { bits.into() }, 0)
        }
        4 => {
            // SAFETY: as above.
            let bits = unsafe { place.cast::<u32>().read() };
            (if number == Number::I32 { bits as i32 as u64 } else { bits.into() }, 0)
        }
        _ if number == Number::C64 => {
            // SAFETY: as above.
            let [real, imag] = unsafe { place.cast::<[u32; 2]>().read() };
            (real.into(), imag.into())
        }
        _ if number == Number::C128 => {
            // SAFETY: as above.
            let [real, imag] = unsafe { place.cast::<[u64; 2]>().read() };
            (real, imag)
        }
        // SAFETY: as above: all others have 8 bytes.
        _ => (unsafe { place.cast::<u64>().read() }, 0),
    }
}

/// Whether it is a Python number.
pub(crate) fn is_number(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyComplex>()
}

/// The value of a Python `int`; `None` if it has more than 64 bits with its sign.
#[inline]
pub(crate) fn int(int: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    let mut overflow = 0;
    // SAFETY: the function accepts any object, and sets an exception for one that is no integer.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(int.as_ptr(), &raw mut overflow) };
    if value == -1
        && let Some(error) = PyErr::take(int.py())
    {
        return Err(error);
    }
    Ok((overflow == 0).then_some(value))
}

/// The value of a Python `float`, or of an object of a class that is one.
#[inline]
pub(crate) fn float(float: &Bound<'_, PyAny>) -> f64 {
    // SAFETY: the function accepts any object; it sets no exception for a `float`.
    unsafe { ffi::PyFloat_AsDouble(float.as_ptr()) }
}
