//! Signatures: the class of their objects, and how they are read from what users write: strings, signature objects, tuples of
//! types.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyString, PyTuple},
};
use weft_artifact::ArgType;
use weft_compiler::{
    request,
    source::{SourceFile, SourceMap},
};

use super::{Type, args_of, tuple_of_types};
use crate::errors;

/// A signature: `void(float32[:], int32)`.
///
/// >>> assert weft.void(weft.float32[:], weft.int32).args[1] == weft.int32
#[pyclass(frozen, module = "weft._weft", name = "Signature")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Signature {
    args: Vec<ArgType>,
    /// The type of `None` for a kernel's.
    returns: ArgType,
}

#[pymethods]
impl Signature {
    #[new]
    fn new(returns: &Type, args: Vec<Bound<'_, Type>>) -> Self {
        Self { args: args_of(args), returns: returns.arg.clone() }
    }

    /// The argument types.
    #[getter]
    fn args<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple_of_types(py, &self.args)
    }

    /// The return type.
    #[getter]
    fn return_type(&self) -> Type {
        Type::of(self.returns.clone())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get() == self)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let args: Vec<String> = self.args.iter().map(ToString::to_string).collect();
        format!("({}) -> {}", args.join(", "), self.return_type().__str__())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let args: Vec<Type> = self.args.iter().cloned().map(Type::of).collect();
        Ok((py.get_type::<Self>().into_any(), (self.return_type(), args).into_pyobject(py)?))
    }
}

impl Signature {
    /// That of argument types and a return type, which is that of `None` for a kernel.
    pub(super) fn of(args: Vec<ArgType>, returns: ArgType) -> Self {
        Self { args, returns }
    }

    /// The Python form of a compiler's signature.
    pub(crate) fn from_request(signature: &request::Signature) -> Self {
        Self { args: signature.args.clone(), returns: signature.returns.clone().unwrap_or(ArgType::None) }
    }

    /// The compiler's form of it.
    pub(crate) fn request(&self) -> request::Signature {
        let returns = Some(self.returns.clone()).filter(|returns| *returns != ArgType::None);
        request::Signature { args: self.args.clone(), returns }
    }
}

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
        "a signature must be a string such as \"void(float32[:], int32)\", a call of types such as void(float32[:], \
         int32), or a tuple of types, not {value}"
    ))
}

/// Reads a signature for Python.
#[pyfunction]
pub(crate) fn parse_signature(signature: &Bound<'_, PyAny>) -> PyResult<Signature> {
    Ok(Signature::from_request(&read(signature)?))
}
