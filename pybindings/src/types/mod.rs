//! `weft.float32` and other types in signatures and kernels, and signatures themselves.
//!
//! Subscripting a scalar type gives an array type (`float32[:, ::1]`). Calling it with types gives a signature
//! (`void(float32[:], int32)`), and with a value a NumPy scalar. `str` of a type is Numba's name.

pub(crate) mod classes;
pub(crate) mod key;
pub(crate) mod matrix;
pub(crate) mod numpy;
mod parts;
pub(crate) mod signature;

pub(crate) use signature::Signature;

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::{
    exceptions::{PyAttributeError, PyIndexError, PyKeyError, PyTypeError, PyValueError},
    prelude::*,
    types::{PySlice, PyTuple, PyType},
};
use weft_artifact::{
    ArgType, ArrayType, Compound, DType, Float8, Layout, MAX_NDIM, Number, Record, RecordField, Vector,
};

/// The error for an array with too many dimensions.
pub(crate) fn too_many_dimensions(ndim: usize) -> PyErr {
    PyTypeError::new_err(format!(
        "arrays of {ndim} dimensions are not supported; a kernel's array has at most {MAX_NDIM}"
    ))
}

/// A type of a kernel argument. `void` is the type of `None`. A record's is always that of one that is passed by its
/// address: as an element it is the same record.
///
/// >>> assert weft.float32[:, ::1].ndim == 2 and weft.float32[:, ::1].layout == "C"
/// >>> assert weft.float32(1.5) == np.float32(1.5)
#[pyclass(frozen, module = "weft._weft", name = "Type")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Type {
    pub(crate) arg: ArgType,
}

impl Type {
    /// The type of an argument.
    pub(crate) fn of(arg: ArgType) -> Self {
        Self { arg }
    }

    /// The type of a value of a dtype.
    pub(crate) fn of_dtype(dtype: DType) -> Self {
        Self::of(ArgType::of_value(dtype))
    }

    /// The dtype, if the type is one.
    pub(crate) fn dtype_itself(&self) -> Option<DType> {
        match self.arg {
            ArgType::Value(dtype) | ArgType::Record(dtype) => Some(dtype),
            ArgType::Array(_)
            | ArgType::Tuple(_)
            | ArgType::None
            | ArgType::Struct(..)
            | ArgType::Enum(..)
            | ArgType::Class(_)
            | ArgType::Pointer(_)
            | ArgType::Optional(_) => None,
        }
    }

    /// The type of a number, if the type is one.
    pub(crate) fn number(&self) -> Option<Number> {
        self.dtype_itself().and_then(DType::number)
    }

    fn array(&self) -> PyResult<ArrayType> {
        let not_an_array = || PyAttributeError::new_err(format!("{} is not an array type", self.__str__()));
        if let ArgType::Array(array) = self.arg { Ok(array) } else { Err(not_an_array()) }
    }
}

impl Type {
    fn record(&self) -> PyResult<&'static Record> {
        if let Some(DType::Compound(id)) = self.dtype_itself()
            && let Compound::Record(record) = id.get()
        {
            return Ok(record);
        }
        Err(PyAttributeError::new_err(format!("{} is not a record type", self.__str__())))
    }

    fn field(&self, name: &str) -> PyResult<&'static RecordField> {
        let record = self.record()?;
        let field = record.find(name).and_then(|index| record.fields().get(index));
        field.ok_or_else(|| PyKeyError::new_err(format!("{} has no field `{name}`", self.__str__())))
    }
}

#[pymethods]
impl Type {
    /// The type with a name: `Type("float32")`, `Type("float32x4")`, `Type("void")`.
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        if matches!(name, "void" | "none") {
            return Ok(Self::of(ArgType::None));
        }
        let vector = || DType::intern(Compound::Vector(Vector::from_name(name)?));
        let float8 = || DType::intern(Compound::Float8(Float8::from_name(name)?));
        match Number::from_name(name).map(DType::from).or_else(vector).or_else(float8) {
            Some(dtype) => Ok(Self::of(dtype.into())),
            None => Err(PyValueError::new_err(format!("there is no type `{name}`"))),
        }
    }

    /// The type of an argument that is itself a type: `class(float32)`.
    #[staticmethod]
    fn make_class(dtype: &Self) -> PyResult<Self> {
        let dtype = dtype.dtype_itself().ok_or_else(|| PyTypeError::new_err("not the type of a value"))?;
        Ok(Self::of(ArgType::Class(dtype)))
    }

    /// The type of pointers to elements of a type, or of untyped pointers.
    #[staticmethod]
    #[pyo3(signature = (dtype=None))]
    fn make_pointer(dtype: Option<&Self>) -> PyResult<Self> {
        let Some(dtype) = dtype else { return Ok(Self::of(ArgType::Pointer(None))) };
        let pointed = dtype.dtype_itself();
        let pointed =
            pointed.ok_or_else(|| PyTypeError::new_err(format!("a pointer cannot point to {}", dtype.__str__())))?;
        Ok(Self::of(ArgType::Pointer(Some(pointed))))
    }

    /// The type of a value that is either of this type or `None`.
    #[staticmethod]
    fn make_optional(of: &Self) -> PyResult<Self> {
        let made = of.arg.clone().or_none().map(Self::of);
        made.ok_or_else(|| PyTypeError::new_err("use `none` for the type of None"))
    }

    /// The type of an optional value that is not `None`.
    #[getter]
    fn r#type(&self) -> PyResult<Self> {
        if let ArgType::Optional(of) = &self.arg {
            return Ok(Self::of((**of).clone()));
        }
        Err(PyAttributeError::new_err(format!("the values of {} have no type", self.__str__())))
    }

    /// An array type with these properties; `layout` is "C", "F" or "A".
    #[staticmethod]
    #[pyo3(signature = (dtype, ndim, layout, readonly=false))]
    fn make_array(dtype: &Self, ndim: i64, layout: &str, readonly: bool) -> PyResult<Self> {
        let Some(dtype) = dtype.dtype_itself() else {
            return Err(PyTypeError::new_err(format!("an array's elements cannot be {}", dtype.__str__())));
        };
        let layout = match layout {
            "C" => Layout::C,
            "F" => Layout::F,
            "A" => Layout::Any,
            other => return Err(PyValueError::new_err(format!("layout must be 'C', 'F' or 'A', not {other:?}"))),
        };
        let Ok(ndim) = usize::try_from(ndim) else {
            return Err(PyValueError::new_err(format!("ndim cannot be {ndim}")));
        };
        array_type(dtype, ndim, layout, readonly)
    }

    /// A tuple type with these element types.
    #[staticmethod]
    fn make_tuple(items: Vec<Bound<'_, Self>>) -> Self {
        Self::of(ArgType::Tuple(args_of(items)))
    }

    /// The type of a named tuple or dataclass, given its class and the types of its fields.
    #[staticmethod]
    fn make_object(class_: &Bound<'_, PyType>, items: Vec<Bound<'_, Self>>) -> PyResult<Self> {
        let known = classes::find(class_)?.filter(|known| !known.kind.is_enum());
        let known = known
            .ok_or_else(|| PyTypeError::new_err(format!("{class_} is neither a named tuple class nor a dataclass")))?;
        let fields = known.id.get().fields.len();
        if items.len() != fields {
            return Err(PyTypeError::new_err(format!("{} has {fields} fields, not {}", known.id, items.len())));
        }
        Ok(Self::of(ArgType::Struct(known.id, args_of(items))))
    }

    /// The type of an enum's members, given the enum and the type of its values.
    #[staticmethod]
    fn make_member(class_: &Bound<'_, PyType>, dtype: &Self) -> PyResult<Self> {
        let known = classes::find(class_)?.filter(|known| known.kind.is_enum());
        let known = known.ok_or_else(|| PyTypeError::new_err(format!("{class_} is not an enum class")))?;
        Ok(Self::of(ArgType::Enum(known.id, Box::new(dtype.arg.clone()))))
    }

    /// The element type of an array or of a homogeneous tuple, or the type of the values of an enum's members.
    #[getter]
    fn dtype(&self) -> PyResult<Self> {
        match &self.arg {
            ArgType::Array(array) => Ok(Self::of_dtype(array.dtype)),
            ArgType::Enum(_, value) => Ok(Self::of((**value).clone())),
            ArgType::Tuple(items) | ArgType::Struct(_, items) => match items.as_slice() {
                [first, rest @ ..] if rest.iter().all(|item| item == first) => Ok(Self::of(first.clone())),
                _ => Err(PyAttributeError::new_err(format!("{} has items of several types", self.__str__()))),
            },
            ArgType::Class(dtype) | ArgType::Pointer(Some(dtype)) => Ok(Self::of_dtype(*dtype)),
            ArgType::Pointer(None) => Err(PyAttributeError::new_err("voidptr has no element type")),
            ArgType::Value(_) | ArgType::None | ArgType::Record(_) | ArgType::Optional(_) => {
                self.array().map(|_| self.clone())
            }
        }
    }

    /// The number of items of a tuple type, or of characters or bytes of a string type.
    #[getter]
    fn count(&self) -> PyResult<usize> {
        self.chars().map_or_else(|| Ok(self.types()?.len()), |chars| Ok(chars.max_len() as usize))
    }

    /// The names of the fields of a record, a named tuple or a dataclass.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if let ArgType::Struct(class, _) = &self.arg {
            return PyTuple::new(py, &class.get().fields);
        }
        PyTuple::new(py, self.record()?.fields().iter().map(|field| &field.name))
    }

    /// The class of a named tuple, a dataclass or an enum's members.
    #[getter]
    fn instance_class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyType>> {
        let class = if let ArgType::Struct(class, _) | ArgType::Enum(class, _) = &self.arg {
            classes::object_of(py, *class)
        } else {
            None
        };
        class.ok_or_else(|| PyAttributeError::new_err(format!("{} is not the type of a class", self.__str__())))
    }

    /// Size of a record in bytes.
    #[getter]
    fn size(&self) -> PyResult<u64> {
        self.record()?;
        Ok(self.dtype_itself().map_or(0, DType::size_bytes))
    }

    /// Whether a record's fields, or an array's elements, are aligned.
    #[getter]
    fn aligned(&self) -> PyResult<bool> {
        if self.array().is_ok() { Ok(true) } else { Ok(self.record()?.is_aligned()) }
    }

    /// The names and types of a record's fields, in the order of their offsets.
    #[getter]
    fn members(&self) -> PyResult<Vec<(String, Self)>> {
        Ok(parts::members(self.record()?))
    }

    /// Whether an integer type is signed.
    #[getter]
    fn signed(&self) -> PyResult<bool> {
        Ok(self.integer("signed")?.is_signed_int())
    }

    /// The smallest value of an integer type.
    #[getter]
    fn minval(&self) -> PyResult<i128> {
        self.integer("minval").map(parts::smallest)
    }

    /// The largest value of an integer type.
    #[getter]
    fn maxval(&self) -> PyResult<i128> {
        self.integer("maxval").map(parts::largest)
    }

    /// The unit of a datetime64 or a timedelta64, `""` for the generic one.
    #[getter]
    fn unit(&self) -> PyResult<&'static str> {
        self.time_unit()
    }

    /// Whether an array's elements are contiguous, in C order or in Fortran order.
    #[getter]
    fn is_contig(&self) -> PyResult<bool> {
        Ok(self.array()?.layout != Layout::Any)
    }

    /// Whether they are contiguous in C order.
    #[getter]
    fn is_c_contig(&self) -> PyResult<bool> {
        self.array().map(|array| parts::is_contiguous(&array, Layout::C))
    }

    /// Whether they are contiguous in Fortran order.
    #[getter]
    fn is_f_contig(&self) -> PyResult<bool> {
        self.array().map(|array| parts::is_contiguous(&array, Layout::F))
    }

    /// The type of a record's field.
    #[pyo3(name = "typeof")]
    fn type_of_field(&self, name: &str) -> PyResult<Self> {
        Ok(Self::of_dtype(self.field(name)?.dtype))
    }

    /// The offset of a record's field in bytes.
    fn offset(&self, name: &str) -> PyResult<u64> {
        Ok(self.field(name)?.offset)
    }

    /// The number of dimensions of an array type.
    #[getter]
    fn ndim(&self) -> PyResult<u8> {
        Ok(self.array()?.ndim)
    }

    /// "C", "F" or "A" for an array type.
    #[getter]
    fn layout(&self) -> PyResult<char> {
        Ok(self.array()?.layout.letter())
    }

    /// Whether an array type may be written.
    #[getter]
    fn mutable(&self) -> PyResult<bool> {
        Ok(!self.array()?.readonly)
    }

    /// Width of a scalar type in bits.
    #[getter]
    fn bitwidth(&self) -> PyResult<u64> {
        let number = self.number().ok_or_else(|| PyAttributeError::new_err("only a scalar type has a bitwidth"))?;
        Ok(if number == Number::BOOL { 1 } else { number.size_bytes() * 8 })
    }

    /// The type of the real and imaginary part of a complex type.
    #[getter]
    fn underlying_float(&self) -> PyResult<Self> {
        match self.number() {
            Some(Number::Complex(complex)) => Ok(Self::of(Number::Real(complex.part()).into())),
            Some(Number::Real(_)) | None => {
                Err(PyAttributeError::new_err(format!("{} is not a complex type", self.__str__())))
            }
        }
    }

    /// The kind of a type: "number", "array", "tuple", "none", "object", "member", "class", "pointer", "address" (an
    /// untyped pointer), "optional"; or of a compound dtype: "record", "vector", "time", "float8", "chars", "nested".
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.arg {
            ArgType::Value(dtype) | ArgType::Record(dtype) => match dtype {
                DType::Number(_) => "number",
                DType::Compound(id) => match id.get() {
                    Compound::Record(_) => "record",
                    Compound::Nested(_) => "nested",
                    Compound::Vector(_) => "vector",
                    Compound::Chars(_) => "chars",
                    Compound::Time(_) => "time",
                    Compound::Float8(_) => "float8",
                },
            },
            ArgType::Array(_) => "array",
            ArgType::Tuple(_) => "tuple",
            ArgType::None => "none",
            ArgType::Struct(..) => "object",
            ArgType::Enum(..) => "member",
            ArgType::Class(_) => "class",
            ArgType::Pointer(Some(_)) => "pointer",
            ArgType::Pointer(None) => "address",
            ArgType::Optional(_) => "optional",
        }
    }

    /// The number of items of a tuple type.
    fn __len__(&self) -> PyResult<usize> {
        self.types().map(|types| types.len()).map_err(|_| no_tuple(self))
    }

    /// The types of the items of a tuple type.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let types = self.types().map_err(|_| no_tuple(self))?;
        Ok(PyTuple::new(py, types)?.try_iter()?.into_any())
    }

    /// Every type is true, including an empty tuple type.
    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __bool__(&self) -> bool {
        true
    }

    /// Elements of a tuple type.
    #[getter]
    fn types(&self) -> PyResult<Vec<Self>> {
        if let ArgType::Tuple(items) | ArgType::Struct(_, items) = &self.arg {
            return Ok(items.iter().cloned().map(Self::of).collect());
        }
        Err(PyAttributeError::new_err(format!("{} is not a tuple type", self.__str__())))
    }

    /// Numba's name.
    #[getter]
    fn name(&self) -> String {
        self.__str__()
    }

    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let (Ok(types), Ok(index)) = (self.types(), index.extract::<isize>()) {
            let from_end = usize::try_from(index).ok().or_else(|| types.len().checked_sub(index.unsigned_abs()));
            let item = from_end.and_then(|index| types.into_iter().nth(index));
            return item.ok_or_else(|| PyIndexError::new_err(format!("{} has no item {index}", self.__str__())));
        }
        let Some(dtype) = self.dtype_itself() else {
            return Err(PyTypeError::new_err(format!("{} cannot be the element type of an array", self.__str__())));
        };
        let dims: Vec<Bound<'_, PyAny>> =
            if let Ok(tuple) = index.cast::<PyTuple>() { tuple.iter().collect() } else { vec![index.clone()] };
        let steps = dims.iter().map(unit_step).collect::<PyResult<Vec<bool>>>()?;
        let layout = match steps.iter().filter(|unit| **unit).count() {
            0 => Layout::Any,
            1 if steps.last() == Some(&true) => Layout::C,
            1 if steps.first() == Some(&true) => Layout::F,
            _ => {
                return Err(PyTypeError::new_err(
                    "write the step 1 of an array type in the last dimension (C) or in the first (F)",
                ));
            }
        };
        array_type(dtype, dims.len(), layout, false)
    }

    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let types: Vec<_> = args.iter().map(|arg| signature::own_type(&arg)).collect::<PyResult<_>>()?;
        let types: Option<Vec<_>> = types.into_iter().map(|ty| ty.cast_into::<Self>().ok()).collect();
        if let Some(types) = types {
            return Ok(Signature::of(args_of(types), self.arg.clone()).into_pyobject(py)?.into_any());
        }
        match (self.dtype_itself(), args.len()) {
            (Some(DType::Number(number)), 1) => numpy::dtype(py, number.into())?.getattr("type")?.call1(args),
            _ => Err(PyTypeError::new_err(format!(
                "{} is called with types (a signature){}",
                self.__str__(),
                if self.number().is_some() { " or with one value (a cast)" } else { "" }
            ))),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get() == self)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self) -> String {
        self.arg.to_string()
    }

    fn __repr__(&self) -> String {
        self.__str__()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let class = py.get_type::<Self>().into_any();
        Ok(match &self.arg {
            ArgType::None => (class, ("void",).into_pyobject(py)?),
            ArgType::Value(dtype) if Self::new(&dtype.to_string()).is_ok() => {
                (class, (dtype.to_string(),).into_pyobject(py)?)
            }
            ArgType::Value(dtype) | ArgType::Record(dtype) => {
                let from_dtype = py.import("weft._weft")?.getattr("from_dtype")?;
                (from_dtype, (numpy::dtype(py, *dtype)?,).into_pyobject(py)?)
            }
            ArgType::Array(array) => (
                class.getattr("make_array")?,
                (self.dtype()?, array.ndim, array.layout.letter(), array.readonly).into_pyobject(py)?,
            ),
            ArgType::Class(_) => (class.getattr("make_class")?, (self.dtype()?,).into_pyobject(py)?),
            ArgType::Pointer(dtype) => {
                let dtype = dtype.map(Self::of_dtype);
                (class.getattr("make_pointer")?, (dtype,).into_pyobject(py)?)
            }
            ArgType::Optional(_) => (class.getattr("make_optional")?, (self.r#type()?,).into_pyobject(py)?),
            ArgType::Tuple(_) => (class.getattr("make_tuple")?, (self.types()?,).into_pyobject(py)?),
            ArgType::Struct(..) => {
                (class.getattr("make_object")?, (self.instance_class(py)?, self.types()?).into_pyobject(py)?)
            }
            ArgType::Enum(..) => {
                (class.getattr("make_member")?, (self.instance_class(py)?, self.dtype()?).into_pyobject(py)?)
            }
        })
    }
}

fn no_tuple(ty: &Type) -> PyErr {
    PyTypeError::new_err(format!("{} is not a tuple type", ty.__str__()))
}

fn args_of(types: Vec<Bound<'_, Type>>) -> Vec<ArgType> {
    types.into_iter().map(|ty| ty.get().arg.clone()).collect()
}

/// NumPy's dtype of a weft type; for any other object, NumPy's conversion.
#[pyfunction]
pub(crate) fn as_dtype<'py>(ty: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Ok(weft) = ty.cast::<Type>() else {
        return ty.py().import("numpy")?.call_method1("dtype", (ty,));
    };
    let dtype = weft.get().dtype_itself();
    let dtype = dtype.ok_or_else(|| PyTypeError::new_err(format!("{} is not a NumPy dtype", weft.get().__str__())))?;
    numpy::dtype(ty.py(), dtype)
}

/// Weft's type of a NumPy dtype.
#[pyfunction]
pub(crate) fn from_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Type> {
    Ok(Type::of_dtype(dtype_of(dtype)?))
}

/// The dtype of an object that denotes one: a weft type, or an object that NumPy accepts.
pub(crate) fn dtype_of(obj: &Bound<'_, PyAny>) -> PyResult<DType> {
    let Ok(ty) = obj.cast::<Type>() else { return numpy::dtype_of(obj) };
    let dtype = ty.get().dtype_itself();
    dtype.ok_or_else(|| PyTypeError::new_err(format!("{} cannot be the element type of an array", ty.as_any())))
}

/// A Python tuple of types: the key of `overloads`.
pub(crate) fn tuple_of_types<'py>(py: Python<'py>, args: &[ArgType]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, args.iter().cloned().map(Type::of))
}

/// An array type, if kernels support it.
fn array_type(dtype: DType, ndim: usize, layout: Layout, readonly: bool) -> PyResult<Type> {
    if ndim > MAX_NDIM {
        return Err(PyTypeError::new_err(format!("arrays have at most {MAX_NDIM} dimensions in a kernel, not {ndim}")));
    }
    Ok(Type::of(ArgType::Array(ArrayType { dtype, ndim: ndim as u8, layout, readonly })))
}

/// Whether a dimension of `float32[:, ::1]` is `::1`.
fn unit_step(dim: &Bound<'_, PyAny>) -> PyResult<bool> {
    let wrong = || PyTypeError::new_err("write an array type with `:` and `::1`, as in `float32[:, ::1]`");
    let slice = dim.cast::<PySlice>().map_err(|_| wrong())?;
    if !slice.getattr("start")?.is_none() || !slice.getattr("stop")?.is_none() {
        return Err(wrong());
    }
    let step = slice.getattr("step")?;
    if step.is_none() {
        Ok(false)
    } else if step.extract::<i64>().is_ok_and(|step| step == 1) {
        Ok(true)
    } else {
        Err(wrong())
    }
}
