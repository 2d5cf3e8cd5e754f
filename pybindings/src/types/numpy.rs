//! NumPy as seen from the extension: its classes, its dtypes, its scalars.
//!
//! NumPy is imported by the first call that needs an array, never by `import weft`. An object cannot be NumPy's
//! before NumPy is in `sys.modules`, so [`loaded`] answers questions about objects without importing it.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBool, PyBytes, PyComplex, PyComplexMethods, PyDict, PyString, PyTuple, PyType},
};
use weft_artifact::{Chars, Compound, DType, Float8, NUMBERS, Nested, Number, Record, RecordField, Scalar, Time};

use crate::once::Once;

/// NumPy's classes.
pub(crate) struct Classes {
    ndarray: Py<PyType>,
    generic: Py<PyType>,
    dtype: Py<PyType>,
    void: Py<PyType>,
    datetime: Py<PyType>,
    timedelta: Py<PyType>,
    /// One dtype for each number, in the order of `NUMBERS`; `None` for those that NumPy has not.
    dtypes: Vec<Option<Py<PyAny>>>,
    /// The scalar types that a kernel can have; two types may be the same number.
    scalars: Vec<(Py<PyType>, Number)>,
}

static CLASSES: Once<Classes> = Once::new();

/// NumPy's classes, if NumPy was imported.
pub(crate) fn loaded(py: Python<'_>) -> Option<&'static Classes> {
    if let Some(classes) = CLASSES.get() {
        return Some(classes);
    }
    let modules = py.import(intern!(py, "sys")).ok()?.getattr(intern!(py, "modules")).ok()?;
    let module = modules.cast::<PyDict>().ok()?.get_item("numpy").ok()??;
    // A NumPy that is being imported right now has no `ndarray` yet.
    module.getattr("ndarray").ok()?;
    CLASSES.get_or_make(|| Classes::new(&module)).ok()
}

/// NumPy's classes; imports NumPy.
pub(crate) fn import(py: Python<'_>) -> PyResult<&'static Classes> {
    let module = py.import("numpy")?;
    CLASSES.get_or_make(|| Classes::new(module.as_any()))
}

impl Classes {
    fn new(module: &Bound<'_, PyAny>) -> PyResult<Self> {
        let class = |name| -> PyResult<Py<PyType>> { Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind()) };
        let (dtype, generic) = (class("dtype")?, class("generic")?);
        // Only NumPy's own names: reading a removed one would warn.
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
        let dtypes = NUMBERS.iter().map(|row| {
            let known = !row.typestr.is_empty();
            known.then(|| Ok(dtype.bind(module.py()).call1((row.typestr,))?.unbind())).transpose()
        });
        let (void, datetime, timedelta) = (class("void")?, class("datetime64")?, class("timedelta64")?);
        let dtypes = dtypes.collect::<PyResult<_>>()?;
        Ok(Self { ndarray: class("ndarray")?, dtypes, scalars, generic, dtype, void, datetime, timedelta })
    }

    /// Whether an object is an `ndarray`.
    pub(crate) fn is_array(&self, obj: &Bound<'_, PyAny>) -> bool {
        obj.is_instance(self.ndarray.bind(obj.py())).is_ok_and(|is| is)
    }

    /// Whether a class is `ndarray`, or one that is derived from it.
    pub(crate) fn array_class(&self, class: &Bound<'_, PyType>) -> PyResult<Option<Subclass>> {
        let ndarray = self.ndarray.bind(class.py());
        if class.is(ndarray) {
            return Ok(Some(Subclass::No));
        }
        Ok(class.is_subclass(ndarray)?.then_some(Subclass::Yes))
    }

    /// The kind of a class's scalars, if it is one of NumPy's scalar classes.
    pub(crate) fn scalar_class(&self, class: &Bound<'_, PyType>) -> PyResult<Option<ScalarKind>> {
        let py = class.py();
        if !class.is_subclass(self.generic.bind(py))? {
            return Ok(None);
        }
        let is_text = class.is_subclass_of::<PyString>()? || class.is_subclass_of::<PyBytes>()?;
        let is_time = class.is_subclass(self.datetime.bind(py))? || class.is_subclass(self.timedelta.bind(py))?;
        Ok(Some(match (is_text, is_time) {
            (true, _) => ScalarKind::Text,
            (_, true) => ScalarKind::Time,
            _ if class.is_subclass(self.void.bind(py))? => ScalarKind::Void,
            _ if is_bfloat16(class) => ScalarKind::BFloat16,
            _ => ScalarKind::Other,
        }))
    }

    /// Whether an object is a NumPy scalar.
    pub(crate) fn is_scalar(&self, obj: &Bound<'_, PyAny>) -> bool {
        obj.is_instance(self.generic.bind(obj.py())).is_ok_and(|is| is)
    }

    /// The count of a date or a span of time, and its type.
    pub(crate) fn time(&self, obj: &Bound<'_, PyAny>) -> PyResult<Option<(DType, i64)>> {
        let py = obj.py();
        let is_time = obj.is_instance(self.datetime.bind(py))? || obj.is_instance(self.timedelta.bind(py))?;
        let dtype = if is_time { of_dtype(&obj.getattr(intern!(py, "dtype"))?)? } else { None };
        let Some(dtype) = dtype else { return Ok(None) };
        Ok(Some((dtype, obj.call_method1(intern!(py, "view"), ("i8",))?.extract()?)))
    }

    /// Whether an object is a dtype.
    pub(crate) fn is_dtype(&self, obj: &Bound<'_, PyAny>) -> bool {
        obj.is_instance(self.dtype.bind(obj.py())).is_ok_and(|is| is)
    }

    /// The number that one of NumPy's own dtype objects is of, as arrays have them unless a program made another one.
    pub(crate) fn number_of_dtype(&self, dtype: &Bound<'_, PyAny>) -> Option<Number> {
        let place = self.dtypes.iter().position(|known| known.as_ref().is_some_and(|known| dtype.is(known)));
        Number::from_code(place? as u32)
    }

    /// The number that a NumPy scalar type is of.
    pub(crate) fn number_of_type(&self, class: &Bound<'_, PyAny>) -> Option<Number> {
        self.scalars.iter().find(|(known, _)| class.is(known)).map(|(_, number)| *number)
    }
}

/// The name of a class of the package `ml_dtypes`.
fn name_in_ml_dtypes(class: &Bound<'_, PyAny>) -> Option<String> {
    let name = class.cast::<PyType>().ok()?.fully_qualified_name().ok()?;
    name.to_str().ok()?.strip_prefix("ml_dtypes.").map(str::to_owned)
}

/// Whether a class is the scalar type of bfloat16 that the package `ml_dtypes` adds to NumPy.
pub(crate) fn is_bfloat16(class: &Bound<'_, PyAny>) -> bool {
    name_in_ml_dtypes(class).is_some_and(|name| name == "bfloat16")
}

/// The dtype of a scalar type that the package `ml_dtypes` adds to NumPy, if kernels can have its elements.
pub(crate) fn of_ml_dtypes(class: &Bound<'_, PyAny>) -> Option<DType> {
    let name = name_in_ml_dtypes(class)?;
    if name == "bfloat16" {
        return Some(DType::BF16);
    }
    DType::intern(Compound::Float8(Float8::from_name(&name)?))
}

/// A dtype of NumPy's that the package `ml_dtypes` has.
fn made_by_ml_dtypes<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let package = py.import(intern!(py, "ml_dtypes")).map_err(|_| {
        PyTypeError::new_err(format!("NumPy needs the package ml_dtypes for {name}: `pip install ml_dtypes`"))
    })?;
    import(py)?.dtype.bind(py).call1((package.getattr(name)?,))
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

/// The kinds of NumPy's scalars besides numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarKind {
    /// Strings and bytes.
    Text,
    /// Those of `ml_dtypes`.
    BFloat16,
    /// Records, and bytes without a meaning.
    Void,
    /// Dates and spans of time.
    Time,
    /// Kinds that kernels do not support.
    Other,
}

/// NumPy's dtype of a dtype of weft's.
pub(crate) fn dtype(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    let classes = import(py)?;
    if dtype == DType::BF16 {
        return made_by_ml_dtypes(py, "bfloat16");
    }
    let id = match dtype {
        DType::Number(number) => {
            let known = classes.dtypes.get(number.code() as usize).and_then(Option::as_ref);
            return known.map(|dtype| dtype.bind(py).clone()).ok_or_else(|| unsupported(&dtype.to_string()));
        }
        DType::Compound(id) => id,
    };
    match id.get() {
        Compound::Record(record) => {
            let parts = PyDict::new(py);
            let fields = record.fields();
            parts.set_item("names", fields.iter().map(|field| &field.name).collect::<Vec<_>>())?;
            let formats = fields.iter().map(|field| self::dtype(py, field.dtype));
            parts.set_item("formats", formats.collect::<PyResult<Vec<_>>>()?)?;
            parts.set_item("offsets", fields.iter().map(|field| field.offset).collect::<Vec<_>>())?;
            parts.set_item("itemsize", dtype.size_bytes())?;
            classes.dtype.bind(py).call1((parts, record.is_aligned()))
        }
        Compound::Nested(nested) => {
            let shape = PyTuple::new(py, nested.shape())?;
            classes.dtype.bind(py).call1(((self::dtype(py, nested.dtype())?, shape),))
        }
        Compound::Chars(chars) => {
            let kind = if chars.is_wide() { 'U' } else { 'S' };
            classes.dtype.bind(py).call1((format!("{kind}{}", chars.max_len()),))
        }
        Compound::Time(_) => classes.dtype.bind(py).call1((dtype.to_string(),)),
        Compound::Float8(format) => made_by_ml_dtypes(py, format.name()),
        Compound::Vector(_) => Err(PyTypeError::new_err(format!("{dtype} is not a NumPy dtype"))),
    }
}

/// The error for a dtype that kernels cannot have.
pub(crate) fn unsupported(dtype: &str) -> PyErr {
    if dtype.starts_with(['<', '>']) {
        return PyTypeError::new_err(format!(
            "arrays of dtype {dtype} are not supported: its byte order differs from this machine's; convert it: \
             `x.astype(x.dtype.newbyteorder(\"=\"))`"
        ));
    }
    if dtype.starts_with("float8_") {
        return PyTypeError::new_err(format!(
            "arrays of dtype {dtype} are not supported: floats of 8 bits are float8_e4m3fn or float8_e5m2; pass their \
             bytes, viewed as uint8"
        ));
    }
    PyTypeError::new_err(format!("arrays of dtype {dtype} are not supported; {SUPPORTED}"))
}

/// The supported dtypes, for messages.
pub(crate) const SUPPORTED: &str = "an element must be a bool, an int or uint of 8 to 64 bits, a float16, bfloat16, \
                                    float32, float64, complex64, complex128, float8_e4m3fn, float8_e5m2, a datetime64 or timedelta64, a string of \
                                    fixed length, or a record of these";

/// The dtype of a NumPy dtype; `None` for one that kernels cannot have (byte-swapped ones too).
pub(crate) fn of_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = dtype.py();
    if !dtype.getattr(intern!(py, "isnative"))?.is_truthy()? {
        return Ok(None);
    }
    let kind: char = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let size: u64 = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
    // Of `ml_dtypes`, those that NumPy has no number for are of kind `V`, and one of kind `f`.
    if kind == 'V' || kind == 'f' && size == 1 {
        if let Some(found) = of_ml_dtypes(&dtype.getattr(intern!(py, "type"))?) {
            return Ok(Some(found));
        }
        return if kind == 'V' { of_structured(dtype) } else { Ok(None) };
    }
    if matches!(kind, 'M' | 'm') {
        let time = Time::from_name(dtype.getattr(intern!(py, "name"))?.extract()?);
        return Ok(time.and_then(|time| DType::intern(Compound::Time(time))));
    }
    if let ('S' | 'U', Ok(size @ 1..)) = (kind, u32::try_from(size)) {
        let chars = if kind == 'U' { Chars::new(true, size / 4) } else { Chars::new(false, size) };
        return Ok(DType::intern(Compound::Chars(chars)));
    }
    Ok(Number::from_kind(kind, size).map(DType::from))
}

/// Structured dtypes that were read, by the address of their objects, which live as long as the entry.
type Structured = HashMap<usize, (Py<PyAny>, Option<DType>)>;

static STRUCTURED: Mutex<Option<Structured>> = Mutex::new(None);

/// The most entries: a program may create a dtype object for each array.
const MAX_STRUCTURED: usize = 256;

fn of_structured(dtype: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let address = dtype.as_ptr() as usize;
    let lock = || STRUCTURED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = lock().as_ref().and_then(|known| known.get(&address)) {
        return Ok(*known);
    }
    let read = read_structured(dtype)?;
    let mut table = lock();
    let known = table.get_or_insert_default();
    let old = if known.len() < MAX_STRUCTURED { HashMap::new() } else { std::mem::take(known) };
    known.insert(address, (dtype.clone().unbind(), read));
    // Giving up the last reference to an object runs Python, which must find the lock free.
    drop(table);
    drop(old);
    Ok(read)
}

fn read_structured(dtype: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = dtype.py();
    let compound = if let Some((base, shape)) =
        dtype.getattr(intern!(py, "subdtype"))?.extract::<Option<(Bound<'_, PyAny>, Vec<u64>)>>()?
    {
        let Some(base) = of_dtype(&base)? else { return Ok(None) };
        Nested::new(base, shape).map(Compound::Nested)
    } else {
        let Some(names) = dtype.getattr(intern!(py, "names"))?.extract::<Option<Vec<String>>>()? else {
            return Ok(None);
        };
        let places = dtype.getattr(intern!(py, "fields"))?;
        let mut fields = Vec::with_capacity(names.len());
        for name in names {
            let place = places.get_item(&name)?;
            let Some(dtype) = of_dtype(&place.get_item(0)?)? else { return Ok(None) };
            fields.push(RecordField { name, dtype, offset: place.get_item(1)?.extract()? });
        }
        let size = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
        let aligned = dtype.getattr(intern!(py, "isalignedstruct"))?.extract()?;
        Record::new(fields, size, aligned).map(Compound::Record)
    };
    let compound = compound.map_err(|error| PyTypeError::new_err(format!("the dtype {dtype} is invalid: {error}")))?;
    Ok(DType::intern(compound))
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
        Number::Real(Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64) => {
            value.real = obj.extract::<f64>()?;
        }
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
