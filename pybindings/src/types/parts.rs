//! Attributes of types that functions under `overload` read, by Numba's names.

use pyo3::{exceptions::PyAttributeError, prelude::*};
use weft_artifact::{ArrayType, Chars, Compound, DType, Layout, Number, Record, Scalar, TimeUnit};

use super::Type;

impl Type {
    /// The scalar of an integer type; other types have no such attribute, which the error names.
    pub(super) fn integer(&self, attribute: &str) -> PyResult<Scalar> {
        match self.number() {
            Some(Number::Real(scalar)) if scalar.is_int() => Ok(scalar),
            Some(Number::Real(_) | Number::Complex(_)) | None => {
                Err(PyAttributeError::new_err(format!("only an integer type has `{attribute}`, not {}", self.name())))
            }
        }
    }

    /// The kind of a string type's characters.
    pub(super) fn chars(&self) -> Option<Chars> {
        self.dtype_itself().and_then(DType::chars)
    }

    /// The unit of a date's or a duration's type.
    pub(super) fn time_unit(&self) -> PyResult<&'static str> {
        if let Some(DType::Compound(id)) = self.dtype_itself()
            && let Compound::Time(time) = id.get()
        {
            return Ok(time.unit.map_or("", TimeUnit::name));
        }
        Err(PyAttributeError::new_err(format!("only a datetime64 or a timedelta64 has a unit, not {}", self.name())))
    }
}

/// The smallest value of an integer type.
pub(super) fn smallest(scalar: Scalar) -> i128 {
    if scalar.is_signed_int() { -largest(scalar) - 1 } else { 0 }
}

/// The largest value of an integer type.
pub(super) fn largest(scalar: Scalar) -> i128 {
    (1 << (scalar.size_bytes() * 8 - u64::from(scalar.is_signed_int()))) - 1
}

/// Whether an array's elements are contiguous in an order; with one dimension or none, both orders are one.
pub(super) fn is_contiguous(array: &ArrayType, order: Layout) -> bool {
    array.layout == order || (array.ndim <= 1 && array.layout != Layout::Any)
}

/// The names and types of a record's fields, in the order of their offsets.
pub(super) fn members(record: &Record) -> Vec<(String, Type)> {
    let mut fields: Vec<_> = record.fields().iter().collect();
    fields.sort_by_key(|field| field.offset);
    fields.into_iter().map(|field| (field.name.clone(), Type::of_dtype(field.dtype))).collect()
}
