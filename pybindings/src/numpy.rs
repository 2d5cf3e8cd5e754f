//! NumPy as seen from the extension: its classes, its dtypes, its scalars.
//!
//! NumPy is imported by the first call that needs an array, never by `import weft`. An object cannot be NumPy's
//! before NumPy is in `sys.modules`, so [`loaded`] answers questions about objects without importing it.

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBool, PyComplex, PyComplexMethods, PyDict, PyType},
};
use weft_artifact::Scalar;

use crate::types::Type;

/// NumPy's classes.
pub(crate) struct Classes {
    ndarray: Py<PyType>,
    generic: Py<PyType>,
    dtype: Py<PyType>,
    /// One dtype for each scalar, in the order of `Scalar::ALL`.
    dtypes: Vec<Py<PyAny>>,
    /// The scalar types that a kernel can have.
    scalars: Vec<(Py<PyAny>, Scalar)>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

/// The scalar types whose names are not those of [`Scalar`], or that are second types of the same width.
const SCALAR_TYPES: [(&str, Scalar); 15] = [
    ("bool_", Scalar::Bool),
    ("int8", Scalar::I8),
    ("int16", Scalar::I16),
    ("int32", Scalar::I32),
    ("int64", Scalar::I64),
    ("uint8", Scalar::U8),
    ("uint16", Scalar::U16),
    ("uint32", Scalar::U32),
    ("uint64", Scalar::U64),
    ("longlong", Scalar::I64),
    ("ulonglong", Scalar::U64),
    ("float32", Scalar::F32),
    ("float64", Scalar::F64),
    ("complex64", Scalar::C64),
    ("complex128", Scalar::C128),
];

/// NumPy's classes if someone has imported it.
pub(crate) fn loaded(py: Python<'_>) -> Option<&'static Classes> {
    if let Some(classes) = CLASSES.get(py) {
        return Some(classes);
    }
    let modules = py.import(intern!(py, "sys")).ok()?.getattr(intern!(py, "modules")).ok()?;
    let module = modules.cast::<PyDict>().ok()?.get_item("numpy").ok()??;
    // A NumPy that is being imported right now has no `ndarray` yet.
    module.getattr("ndarray").ok()?;
    CLASSES.get_or_try_init(py, || Classes::new(&module)).ok()
}

/// NumPy's classes; imports NumPy.
pub(crate) fn import(py: Python<'_>) -> PyResult<&'static Classes> {
    let module = py.import("numpy")?;
    CLASSES.get_or_try_init(py, || Classes::new(module.as_any()))
}

impl Classes {
    fn new(module: &Bound<'_, PyAny>) -> PyResult<Self> {
        let class = |name| -> PyResult<Py<PyType>> { Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind()) };
        let dtype = class("dtype")?;
        let make = |scalar: Scalar| {
            let name = if scalar == Scalar::Bool { "bool" } else { scalar.name() };
            Ok(dtype.bind(module.py()).call1((name,))?.unbind())
        };
        Ok(Self {
            ndarray: class("ndarray")?,
            generic: class("generic")?,
            dtypes: Scalar::ALL.into_iter().map(make).collect::<PyResult<_>>()?,
            scalars: SCALAR_TYPES
                .into_iter()
                .map(|(name, scalar)| Ok((module.getattr(name)?.unbind(), scalar)))
                .collect::<PyResult<_>>()?,
            dtype,
        })
    }

    /// Whether an object is an `ndarray`, and whether it is one of a subclass.
    pub(crate) fn is_array(&self, obj: &Bound<'_, PyAny>) -> Option<Subclass> {
        let class = self.ndarray.bind(obj.py());
        if obj.get_type().is(class) {
            return Some(Subclass::No);
        }
        obj.is_instance(class).is_ok_and(|is| is).then_some(Subclass::Yes)
    }

    /// Whether an object is a NumPy scalar.
    pub(crate) fn is_scalar(&self, obj: &Bound<'_, PyAny>) -> bool {
        obj.is_instance(self.generic.bind(obj.py())).is_ok_and(|is| is)
    }

    /// Whether an object is a dtype.
    pub(crate) fn is_dtype(&self, obj: &Bound<'_, PyAny>) -> bool {
        obj.is_instance(self.dtype.bind(obj.py())).is_ok_and(|is| is)
    }

    /// The scalar that a NumPy scalar type means.
    pub(crate) fn scalar_of_type(&self, class: &Bound<'_, PyAny>) -> Option<Scalar> {
        self.scalars.iter().find(|(known, _)| class.is(known)).map(|(_, scalar)| *scalar)
    }
}

/// Whether an array's class is NumPy's own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subclass {
    No,
    Yes,
}

/// NumPy's dtype of a scalar.
pub(crate) fn dtype(py: Python<'_>, scalar: Scalar) -> PyResult<Bound<'_, PyAny>> {
    let classes = import(py)?;
    let index = Scalar::ALL.into_iter().position(|known| known == scalar).unwrap_or_default();
    let dtype = classes.dtypes.get(index).ok_or_else(|| PyValueError::new_err("no such dtype"))?;
    Ok(dtype.bind(py).clone())
}

/// The scalar that anything usable as a dtype means: a weft type, a NumPy dtype or scalar type, a name.
pub(crate) fn scalar_of(obj: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if let Ok(ty) = obj.cast::<Type>() {
        return ty
            .get()
            .scalar()
            .ok_or_else(|| PyTypeError::new_err(format!("{} cannot be the element type of an array", ty.as_any())));
    }
    let py = obj.py();
    let classes = import(py)?;
    if let Some(scalar) = classes.scalar_of_type(obj) {
        return Ok(scalar);
    }
    let dtype = classes.dtype.bind(py).call1((obj,))?;
    scalar_of_dtype(&dtype)?
        .ok_or_else(|| PyTypeError::new_err(format!("arrays of dtype {dtype} are not supported; {SUPPORTED}")))
}

/// What to write where a dtype is not supported.
pub(crate) const SUPPORTED: &str =
    "an element is a bool, an int or uint of 8 to 64 bits, a float32, float64, complex64 or complex128";

/// The scalar of a NumPy dtype; `None` for one that kernels cannot have (byte-swapped ones too).
pub(crate) fn scalar_of_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    let py = dtype.py();
    if !dtype.getattr(intern!(py, "isnative"))?.is_truthy()? {
        return Ok(None);
    }
    let kind: char = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let size: u64 = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
    Ok(match (kind, size) {
        ('b', 1) => Some(Scalar::Bool),
        ('i', 1) => Some(Scalar::I8),
        ('i', 2) => Some(Scalar::I16),
        ('i', 4) => Some(Scalar::I32),
        ('i', 8) => Some(Scalar::I64),
        ('u', 1) => Some(Scalar::U8),
        ('u', 2) => Some(Scalar::U16),
        ('u', 4) => Some(Scalar::U32),
        ('u', 8) => Some(Scalar::U64),
        ('f', 4) => Some(Scalar::F32),
        ('f', 8) => Some(Scalar::F64),
        ('c', 8) => Some(Scalar::C64),
        ('c', 16) => Some(Scalar::C128),
        _ => None,
    })
}

/// A scalar's value. Integers and bools are in `int`; floats and complex numbers in `real` and `imag`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Value {
    pub(crate) int: i128,
    pub(crate) real: f64,
    pub(crate) imag: f64,
}

/// The value of a Python or NumPy number of a known type.
pub(crate) fn value(obj: &Bound<'_, PyAny>, scalar: Scalar) -> PyResult<Value> {
    let mut value = Value::default();
    match scalar {
        Scalar::Bool => {
            value.int = obj.is_truthy()?.into();
        }
        Scalar::U64 => value.int = obj.extract::<u64>()?.into(),
        int if int.is_int() => value.int = obj.extract::<i64>()?.into(),
        Scalar::F32 | Scalar::F64 => value.real = obj.extract::<f64>()?,
        _ => {
            let number = if obj.is_instance_of::<PyComplex>() {
                obj.clone()
            } else {
                obj.call_method0(intern!(obj.py(), "item"))?
            };
            let number = number.cast_into::<PyComplex>()?;
            value.real = number.real();
            value.imag = number.imag();
        }
    }
    Ok(value)
}

/// `true` for an exact Python bool.
pub(crate) fn is_bool(obj: &Bound<'_, PyAny>) -> bool {
    obj.is_exact_instance_of::<PyBool>()
}
