//! NumPy as seen from the extension: its classes, its dtypes, its scalars.
//!
//! NumPy is imported by the first call that needs an array, never by `import weft`. An object cannot be NumPy's
//! before NumPy is in `sys.modules`, so [`loaded`] answers questions about objects without importing it.

use pyo3::{
    exceptions::PyTypeError,
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBool, PyComplex, PyComplexMethods, PyDict, PyType},
};
use weft_artifact::{DType, NUMBERS, Number, Scalar};

/// NumPy's classes.
pub(crate) struct Classes {
    ndarray: Py<PyType>,
    generic: Py<PyType>,
    dtype: Py<PyType>,
    /// One dtype for each number, in the order of `NUMBERS`.
    dtypes: Vec<Py<PyAny>>,
    /// The scalar types that a kernel can have; two types may be the same number.
    scalars: Vec<(Py<PyType>, Number)>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

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
        let (dtype, generic) = (class("dtype")?, class("generic")?);
        // Of NumPy's own names only: asking for one that has gone would warn.
        let members = module.getattr("__dict__")?.cast_into::<PyDict>()?;
        let mut scalars: Vec<(Py<PyType>, Number)> = Vec::new();
        for row in &NUMBERS {
            for name in row.numpy {
                let Some(class) = members.get_item(name)?.and_then(|class| class.cast_into::<PyType>().ok()) else {
                    continue;
                };
                if class.is_subclass(generic.bind(module.py()))? && !scalars.iter().any(|(known, _)| class.is(known)) {
                    scalars.push((class.unbind(), row.number));
                }
            }
        }
        let dtypes = NUMBERS.iter().map(|row| Ok(dtype.bind(module.py()).call1((row.typestr,))?.unbind()));
        Ok(Self { ndarray: class("ndarray")?, dtypes: dtypes.collect::<PyResult<_>>()?, scalars, generic, dtype })
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

    /// The number that a NumPy scalar type is of.
    pub(crate) fn number_of_type(&self, class: &Bound<'_, PyAny>) -> Option<Number> {
        self.scalars.iter().find(|(known, _)| class.is(known)).map(|(_, number)| *number)
    }
}

/// The dtype that NumPy makes of anything: a scalar type, a dtype, a name.
pub(crate) fn dtype_of(obj: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = obj.py();
    let classes = import(py)?;
    if let Some(number) = classes.number_of_type(obj) {
        return Ok(number.into());
    }
    let dtype = classes.dtype.bind(py).call1((obj,))?;
    of_dtype(&dtype)?.ok_or_else(|| unsupported(&dtype.to_string()))
}

/// Whether an array's class is NumPy's own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subclass {
    No,
    Yes,
}

/// NumPy's dtype of a dtype of weft's.
pub(crate) fn dtype(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    let classes = import(py)?;
    let known = dtype.number().and_then(|number| classes.dtypes.get(number.code() as usize));
    known.map(|dtype| dtype.bind(py).clone()).ok_or_else(|| unsupported(&dtype.to_string()))
}

/// The error for a dtype that kernels cannot have.
pub(crate) fn unsupported(dtype: &str) -> PyErr {
    PyTypeError::new_err(format!("arrays of dtype {dtype} are not supported; {SUPPORTED}"))
}

/// What to write where a dtype is not supported.
pub(crate) const SUPPORTED: &str =
    "an element is a bool, an int or uint of 8 to 64 bits, a float32, float64, complex64 or complex128";

/// The dtype of a NumPy dtype; `None` for one that kernels cannot have (byte-swapped ones too).
pub(crate) fn of_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = dtype.py();
    if !dtype.getattr(intern!(py, "isnative"))?.is_truthy()? {
        return Ok(None);
    }
    let kind: char = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let size: u64 = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
    Ok(Number::from_kind(kind, size).map(DType::from))
}

/// A number's value. Integers and bools are in `int`; floats and complex numbers in `real` and `imag`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Value {
    pub(crate) int: i128,
    pub(crate) real: f64,
    pub(crate) imag: f64,
}

/// The value of a Python or NumPy number of a known type.
pub(crate) fn value(obj: &Bound<'_, PyAny>, number: Number) -> PyResult<Value> {
    let mut value = Value::default();
    match number {
        Number::Real(Scalar::Bool) => value.int = obj.is_truthy()?.into(),
        Number::Real(Scalar::U64) => value.int = obj.extract::<u64>()?.into(),
        Number::Real(Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 | Scalar::U8 | Scalar::U16 | Scalar::U32) => {
            value.int = obj.extract::<i64>()?.into();
        }
        Number::Real(Scalar::F32 | Scalar::F64) => value.real = obj.extract::<f64>()?,
        Number::Complex(_) => {
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
