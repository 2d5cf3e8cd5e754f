//! Python classes whose objects kernels unpack, by their type objects: named tuples, dataclasses, enums.
//!
//! A class is inspected on first use, and it and its description live as long as the process. Classes that are equal to
//! a kernel (the same module, qualified name and fields, and the same members of an enum) are one class: a function
//! that creates a class on each call compiles its kernels once. A class's identifier depends on its content, and not on
//! the order in which classes are seen: it is the same in every process.

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use pyo3::{
    exceptions::PyRuntimeError,
    prelude::*,
    types::{PyString, PyTuple, PyType},
};
use weft_artifact::{Class, ClassId, ClassKind};

use crate::once::Once;

/// A Python class that was inspected.
pub(crate) struct KnownClass {
    /// Its identifier in the compiler.
    pub(crate) id: ClassId,
    /// Its kind.
    pub(crate) kind: ClassKind,
    /// The names of its fields, or of an enum's members.
    pub(crate) names: Vec<Py<PyString>>,
    class: Py<PyType>,
}

/// By the address of the type object, which lives on.
static KNOWN: RwLock<Option<HashMap<usize, &'static KnownClass>>> = RwLock::new(None);

/// Whether there is one at all: most programs have none, and this is tested for each launch.
static ANY: AtomicBool = AtomicBool::new(false);

/// A class that was inspected before.
pub(crate) fn known(class: &Bound<'_, PyType>) -> Option<&'static KnownClass> {
    if !ANY.load(Ordering::Acquire) {
        return None;
    }
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.as_ref()?.get(&(class.as_ptr() as usize)).copied()
}

/// The class, if kernels unpack its objects.
pub(crate) fn find(class: &Bound<'_, PyType>) -> PyResult<Option<&'static KnownClass>> {
    if let Some(known) = known(class) {
        return Ok(Some(known));
    }
    let Some((kind, fields, values)) = examine(class)? else {
        return Ok(None);
    };
    let names = fields.iter().map(|name| PyString::intern(class.py(), name).unbind()).collect();
    let mut identity = class.fully_qualified_name()?.to_string();
    if kind.is_enum() {
        let _ = write!(identity, "({values})");
    }
    let name = class.name()?.to_string();
    let id = ClassId::intern(Class { kind, name, identity, fields })
        .ok_or_else(|| PyRuntimeError::new_err("too many classes"))?;
    let known: &'static KnownClass = Box::leak(Box::new(KnownClass { id, kind, names, class: class.clone().unbind() }));
    KNOWN
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_default()
        .insert(class.as_ptr() as usize, known);
    ANY.store(true, Ordering::Release);
    Ok(Some(known))
}

/// The class object of an id: the first that was met.
pub(crate) fn object_of(py: Python<'_>, id: ClassId) -> Option<Bound<'_, PyType>> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.as_ref()?.values().find(|known| known.id == id).map(|known| known.class.bind(py).clone())
}

/// A class's kind, its fields, and an enum's values.
fn examine(class: &Bound<'_, PyType>) -> PyResult<Option<(ClassKind, Vec<String>, String)>> {
    let py = class.py();
    if class.is_subclass_of::<PyTuple>()? {
        let fields = class.getattr_opt(intern!(py, "_fields"))?.and_then(|fields| fields.extract().ok());
        return Ok(fields.map(|fields: Vec<String>| (ClassKind::NamedTuple, fields, String::new())));
    }
    if class.is_subclass(enum_class(py)?)? {
        let names: Vec<String> = class.getattr(intern!(py, "_member_names_"))?.extract()?;
        let members = class.getattr(intern!(py, "__members__"))?;
        let mut values = String::new();
        for name in &names {
            let value = members.get_item(name)?.getattr(intern!(py, "value"))?;
            let comma = if values.is_empty() { "" } else { ", " };
            let _ = write!(values, "{comma}{}", value.repr()?);
        }
        let is_int = class.is_subclass_of::<pyo3::types::PyInt>()?;
        return Ok(Some((if is_int { ClassKind::IntEnum } else { ClassKind::Enum }, names, values)));
    }
    if class.getattr_opt(intern!(py, "__dataclass_fields__"))?.is_some() {
        let fields = py.import("dataclasses")?.call_method1("fields", (class,))?;
        let names = fields.try_iter()?.map(|field| field?.getattr(intern!(py, "name"))?.extract());
        return Ok(Some((ClassKind::Dataclass, names.collect::<PyResult<_>>()?, String::new())));
    }
    Ok(None)
}

fn enum_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static ENUM: Once<Py<PyType>> = Once::new();
    let class = ENUM.get_or_make(|| Ok::<_, PyErr>(py.import("enum")?.getattr("Enum")?.cast_into()?.unbind()))?;
    Ok(class.bind(py))
}
