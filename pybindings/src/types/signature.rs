//! Signatures as users write them: texts, signature objects, tuples of types.

use std::sync::Arc;

use pyo3::{exceptions::PyTypeError, prelude::*, types::PyString};
use weft_compiler::{
    request,
    source::{SourceFile, SourceMap},
};

use super::{Signature, Type};
use crate::errors;

/// Reads a signature: `"void(float32[:], int32)"`, `void(float32[:], int32)`, or the argument types alone.
pub(crate) fn read(signature: &Bound<'_, PyAny>) -> PyResult<request::Signature> {
    if let Ok(signature) = signature.cast::<Signature>() {
        return Ok(signature.get().request());
    }
    if let Ok(text) = signature.cast::<PyString>() {
        let text = text.to_str()?;
        return weft_compiler::signature::parse_signature(text).map_err(|diagnostic| {
            let mut sources = SourceMap::default();
            sources.add(&Arc::new(SourceFile::new("<signature>", text)));
            errors::diagnostics(signature.py(), &[diagnostic], &sources)
        });
    }
    if is_numbas(signature)? {
        return read(&signature.py().import("weft.numba._types")?.call_method1("own_signature", (signature,))?);
    }
    let types = signature.try_iter().map_err(|_| wrong(signature))?;
    let args = types
        .map(|ty| {
            let ty = own_type(&ty?)?;
            let ty = ty.cast::<Type>().map_err(|_| wrong(&ty))?.get();
            Ok(ty.arg.clone())
        })
        .collect::<PyResult<_>>()?;
    Ok(request::Signature { args, returns: None })
}

/// Whether the class of a value is Numba's own.
fn is_numbas(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module = value.get_type().getattr(intern!(value.py(), "__module__"))?;
    Ok(module.extract::<&str>().is_ok_and(|module| module.starts_with("numba")))
}

/// weft's type for one of Numba's, and anything else as it is.
pub(super) fn own_type<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if is_numbas(value)? {
        return value.py().import("weft.numba._types")?.call_method1("own_type", (value,));
    }
    Ok(value.clone())
}

fn wrong(value: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "a signature is a text such as \"void(float32[:], int32)\", a call of types such as \
         void(float32[:], int32), or a tuple of types; not {value}"
    ))
}

/// Reads a signature for Python.
#[pyfunction]
pub(crate) fn parse_signature(signature: &Bound<'_, PyAny>) -> PyResult<Signature> {
    Ok(Signature::from_request(&read(signature)?))
}
