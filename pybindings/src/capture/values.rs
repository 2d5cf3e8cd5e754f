//! From the value of a captured name to the compiler's form of it ([`Captured`]).

use std::collections::BTreeMap;

use pyo3::{
    exceptions::PyBaseException,
    prelude::*,
    types::{PyBytes, PyComplex, PyComplexMethods, PyFloat, PyInt, PyModule, PyString, PyTuple, PyType},
};
use weft_artifact::{Compound, DType, MAX_LEAVES, Number, Scalar};
use weft_compiler::request::{Captured, Overloaded, Unsupported};

use super::{Capturer, Jitted, objects::host_array};
use crate::{
    arrays::device_array::DeviceArray,
    types::{Type, classes, numpy},
};

/// The modules whose members the compiler knows by name.
const KNOWN_MODULES: [&str; 8] = ["weft", "math", "cmath", "operator", "_operator", "numpy", "numba", "builtins"];

/// How deep attributes and tuples are followed.
const MAX_DEPTH: usize = 16;

impl<'py, D: Jitted> Capturer<'py, D> {
    /// The captured form of a value. `chains` are the attributes that the kernel reads from it: `["N", "inner.M"]`.
    pub(super) fn value(&mut self, value: &Bound<'py, PyAny>, chains: &[&str], depth: usize) -> PyResult<Captured> {
        if depth > MAX_DEPTH {
            return Ok(Captured::Unsupported(Unsupported::Other, "value that is nested too deeply".to_owned()));
        }
        if value.is_none() {
            return Ok(Captured::None);
        }
        if let Ok(ty) = value.cast::<Type>() {
            return Ok(ty.get().dtype_itself().map_or_else(|| unsupported(value), Captured::DType));
        }
        if value.cast::<D>().is_ok() {
            return self.device_function(value);
        }
        if let Some(path) = stub_path(value)? {
            return Ok(Captured::Known(path));
        }
        if value.is_instance_of::<PyModule>() {
            return self.module(value, chains, depth);
        }
        if let Some(class) = classes::find(&value.get_type())?
            && let Some(object) = self.object(value, class, chains, depth)?
        {
            return Ok(object);
        }
        if let Ok(array) = value.cast::<DeviceArray>() {
            return Ok(self.device_array(array));
        }
        if numpy::loaded(value.py()).is_some_and(|classes| classes.is_array(value)) {
            return host_array(value);
        }
        if let Some(captured) = number(value)? {
            return Ok(captured);
        }
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Captured::Str(text.to_str()?.to_owned()));
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Captured::Bytes(bytes.as_bytes().to_vec()));
        }
        if let Some(taken) = self.foreign_function(value)? {
            return self.device_function(&taken);
        }
        if let Some(captured) = self.extended(value)? {
            return Ok(captured);
        }
        if let Ok(class) = value.cast::<PyType>()
            && class.is_subclass_of::<PyBaseException>()?
        {
            let name: String = self.py.import("weft._faults")?.call_method1("identify", (class,))?.extract()?;
            let is_python = class.getattr(intern!(self.py, "__module__"))?.eq("builtins")?;
            return Ok(if is_python { Captured::Known(name) } else { Captured::Exception(name) });
        }
        if let Ok(class) = value.cast::<PyType>()
            && let Some(class) = self.class(class, chains, depth)?
        {
            return Ok(class);
        }
        if let Some(path) = known_member(value)? {
            return Ok(Captured::Known(path));
        }
        if let Some(scalar) = foreign_type(value) {
            return Ok(Captured::DType(scalar.into()));
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            // A named tuple whose fields are read by name is an object; any other tuple is its elements.
            if chains.is_empty() {
                let mut items = Vec::with_capacity(tuple.len());
                let mut leaves = 0;
                let too_many = Captured::too_large();
                for item in tuple.iter() {
                    let item = self.value(&item, &[], depth + 1)?;
                    leaves += item.leaves();
                    // One in it that has too many is the end of it: there may be a billion like it.
                    if leaves > MAX_LEAVES || item == too_many {
                        return Ok(too_many);
                    }
                    items.push(item);
                }
                return Ok(Captured::Tuple(items));
            }
        }
        if is_ffi(value)? {
            return Ok(Captured::Known("cffi.FFI".to_owned()));
        }
        // Code of the object's own computes its attributes; its errors say nothing about it.
        if matches!(value.getattr_opt(intern!(value.py(), "__cuda_array_interface__")), Ok(Some(_))) {
            return self.foreign_array(value);
        }
        if chains.is_empty() || value.is_callable() && !value.is_instance_of::<PyType>() {
            return Ok(unsupported(value));
        }
        let name = value.get_type().name()?.to_string();
        Ok(Captured::Module(name, self.attributes(value, chains, depth)?))
    }

    /// A function that Numba's own `njit` or `cuda.jit` made, as a jitted function of ours; the same for the same one.
    fn foreign_function(&self, value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let module = value.get_type().getattr(intern!(self.py, "__module__"))?;
        let is_numba = module
            .extract::<&str>()
            .is_ok_and(|module| module == "numba" || module.starts_with("numba.") || module.starts_with("weft.numba."));
        if !is_numba || !matches!(value.getattr_opt(intern!(self.py, "py_func")), Ok(Some(_))) {
            return Ok(None);
        }
        self.py.import("weft.cuda._jit")?.call_method1("take_over", (value,)).map(Some)
    }

    /// A function registered with `weft.cuda.extending`.
    fn extended(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Option<Captured>> {
        if !value.is_callable() {
            return Ok(None);
        }
        // A program that registered anything has imported it.
        let modules = self.py.import(intern!(self.py, "sys"))?.getattr(intern!(self.py, "modules"))?;
        let Ok(extending) = modules.get_item(intern!(self.py, "weft.cuda.extending")) else { return Ok(None) };
        let found = extending.call_method1(intern!(self.py, "_find"), (value,))?;
        if found.is_none() {
            return Ok(None);
        }
        if found.cast::<D>().is_ok() {
            return self.device_function(&found).map(Some);
        }
        let (number, name) = found.extract()?;
        Ok(Some(Captured::Overloaded(Overloaded { number, name })))
    }

    fn module(&mut self, module: &Bound<'py, PyAny>, chains: &[&str], depth: usize) -> PyResult<Captured> {
        let name: String = module.getattr(intern!(module.py(), "__name__"))?.extract()?;
        // Not all that numba has at its top is weft's: some of it is Python's, and some functions that it has jitted.
        if let Some(path) = known_path(&name).filter(|_| name != "numba") {
            return Ok(Captured::Known(path));
        }
        Ok(Captured::Module(name, self.attributes(module, chains, depth)?))
    }

    /// The attributes that are read from an object; one that it lacks is left out.
    fn attributes(
        &mut self,
        owner: &Bound<'py, PyAny>,
        chains: &[&str],
        depth: usize,
    ) -> PyResult<BTreeMap<String, Captured>> {
        let mut below: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for chain in chains {
            let (head, rest) = chain.split_once('.').unwrap_or((chain, ""));
            let rests = below.entry(head).or_default();
            if !rest.is_empty() {
                rests.push(rest);
            }
        }
        let mut found = BTreeMap::new();
        for (name, rests) in below {
            if let Some(attribute) = owner.getattr_opt(name)? {
                found.insert(name.to_owned(), self.value(&attribute, &rests, depth + 1)?);
            }
        }
        Ok(found)
    }
}

/// A value that kernels cannot have, by the name of its type.
pub(crate) fn unsupported(value: &Bound<'_, PyAny>) -> Captured {
    // Code of the object's own computes its attributes; its errors say nothing about it.
    let has = |name: &str| matches!(value.getattr_opt(name), Ok(Some(_)));
    let kind = if has("py_func") {
        Unsupported::ForeignFunction
    } else if has("__code__") {
        Unsupported::PlainFunction
    } else if has("__cuda_array_interface__") || (has("__array_interface__") && !is_scalar(value)) {
        Unsupported::Array
    } else {
        Unsupported::Other
    };
    let name = value.get_type().fully_qualified_name();
    Captured::Unsupported(kind, name.map_or_else(|_| "object".to_owned(), |name| name.to_string()))
}

/// Whether a value is a `cffi.FFI`, which is not imported for that.
fn is_ffi(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    for class in value.get_type().mro() {
        let module = class.getattr(intern!(py, "__module__"))?;
        if module.extract::<&str>().is_ok_and(|module| module == "cffi.api") && class.getattr("__name__")?.eq("FFI")? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a value is one of NumPy's scalars.
fn is_scalar(value: &Bound<'_, PyAny>) -> bool {
    numpy::loaded(value.py()).is_some_and(|classes| classes.is_scalar(value))
}

/// Python's and NumPy's numbers and dtypes.
fn number(value: &Bound<'_, PyAny>) -> PyResult<Option<Captured>> {
    if numpy::is_bool(value) {
        return Ok(Some(Captured::Bool(value.is_truthy()?)));
    }
    if let Some(classes) = numpy::loaded(value.py()) {
        if let Some(ty) = classes.number_of_type(value) {
            return Ok(Some(Captured::DType(ty.into())));
        }
        if classes.is_dtype(value) {
            return Ok(Some(numpy::of_dtype(value)?.map_or_else(|| unsupported(value), Captured::DType)));
        }
        if let Some(ty) = classes.number_of_type(&value.get_type()) {
            let number = numpy::value(value, ty)?;
            return Ok(Some(match ty {
                Number::Real(Scalar::Bool) => Captured::Bool(number.int != 0),
                Number::Real(int) if int.is_int() => Captured::NumpyInt(int, number.int),
                Number::Real(_) | Number::Complex(_) => Captured::NumpyFloat(ty, number.real, number.imag),
            }));
        }
        if let Some(dtype) = numpy::of_ml_dtypes(value) {
            return Ok(Some(Captured::DType(dtype)));
        }
        if let Some((DType::Compound(id), count)) = classes.time(value)?
            && let Compound::Time(time) = id.get()
        {
            return Ok(Some(Captured::Time(*time, count)));
        }
        if classes.is_scalar(value) {
            let bfloat16 = numpy::is_bfloat16(&value.get_type());
            return Ok(Some(if bfloat16 {
                Captured::NumpyFloat(Number::BF16, numpy::value(value, Number::BF16)?.real, 0.0)
            } else {
                unsupported(value)
            }));
        }
    }
    if value.is_instance_of::<PyInt>() {
        let int: Result<i128, PyErr> = value.extract();
        return Ok(Some(int.map_or_else(|_| Captured::too_long(), Captured::of_int)));
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        return Ok(Some(Captured::Float(float.value())));
    }
    if let Ok(complex) = value.cast::<PyComplex>() {
        return Ok(Some(Captured::Complex(complex.real(), complex.imag())));
    }
    Ok(None)
}

/// The canonical path of one of weft's kernel-side names.
fn stub_path(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let class = value.get_type();
    let module = class.getattr(intern!(value.py(), "__module__"))?;
    if module.extract::<&str>().is_ok_and(|module| module.starts_with("weft.")) {
        return value.getattr_opt(intern!(value.py(), "_weft_path"))?.map(|path| path.extract()).transpose();
    }
    Ok(None)
}

/// The canonical path of a module or of a member of one, if it is in a module that the compiler knows.
fn known_path(path: &str) -> Option<String> {
    let (top, rest) = path.split_once('.').map_or((path, None), |(top, rest)| (top, Some(rest)));
    if !KNOWN_MODULES.contains(&top) {
        return None;
    }
    let (top, rest) = match (top, rest) {
        ("_operator", rest) => ("operator", rest),
        // weft has one module for several of numba's.
        ("numba", Some("core.types" | "cuda.types")) => ("weft", Some("types")),
        ("numba", Some("cuda.stubs" | "cuda.intrinsics" | "cuda.vector_types")) => ("weft", Some("cuda")),
        ("numba", rest) => ("weft", rest),
        other => other,
    };
    Some(rest.map_or_else(|| top.to_owned(), |rest| format!("{top}.{rest}")))
}

/// The path of a function or class of a known module, such as `math.sin` or `numpy.maximum`.
fn known_member(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let py = value.py();
    let Some(name) = value.getattr_opt(intern!(py, "__name__"))?.and_then(|name| name.extract::<String>().ok()) else {
        return Ok(None);
    };
    let module = value.getattr_opt(intern!(py, "__module__"))?.and_then(|module| module.extract::<String>().ok());
    let is_ufunc = value.get_type().name()?.to_cow()? == "ufunc";
    let Some(module) = module.or_else(|| is_ufunc.then(|| "numpy".to_owned())) else {
        return Ok(None);
    };
    let top = module.split('.').next().unwrap_or_default();
    Ok(match top {
        // NumPy's functions say in which of its inner modules they are; users reach all of them from the top.
        "numpy" => Some(format!("numpy.{name}")),
        // `numba.cuda.grid` and its like are classes and functions of inner modules.
        "numba" if name == "prange" => Some("builtins.range".to_owned()),
        "numba" if module.starts_with("numba.cuda") => Some(format!("weft.cuda.{name}")),
        "weft" => None,
        _ => known_path(&format!("{module}.{name}")),
    })
}

/// The scalar of another library's type object, such as `numba.float32`.
fn foreign_type(value: &Bound<'_, PyAny>) -> Option<Number> {
    let module: String = value.get_type().getattr("__module__").ok()?.extract().ok()?;
    if !module.starts_with("numba") {
        return None;
    }
    Number::from_name(value.str().ok()?.to_str().ok()?)
}
