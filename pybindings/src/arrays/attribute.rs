//! Attributes that another library's type computes, read through the type's descriptors, because looking up a name
//! costs as much as computing the attribute.
#![expect(unsafe_code, reason = "calls a descriptor's own function")]

use pyo3::{
    exceptions::PyTypeError,
    ffi,
    prelude::*,
    types::{PyString, PyType},
};

/// A data descriptor of a type: it determines an object's attribute of that name, regardless of the object's
/// `__dict__`.
pub(super) struct Attribute {
    descriptor: Py<PyAny>,
    get: ffi::descrgetfunc,
}

impl Attribute {
    /// The descriptor for a name that the type has now.
    ///
    /// # Errors
    ///
    /// `AttributeError` if there is none, `TypeError` if it is neither a C descriptor nor a `property`.
    pub(super) fn of(class: &Bound<'_, PyType>, name: &Bound<'_, PyString>) -> PyResult<Self> {
        // Read from a type, these two kinds of descriptors return themselves.
        let descriptor = class.getattr(name)?;
        let kind = descriptor.get_type_ptr();
        let is_known = kind == &raw mut ffi::PyGetSetDescr_Type || kind == &raw mut ffi::PyProperty_Type;
        if !is_known {
            return Err(PyTypeError::new_err(format!("{name} is not a data descriptor")));
        }
        // SAFETY: a type object, and the number of a slot.
        let slot = unsafe { ffi::PyType_GetSlot(kind, ffi::Py_tp_descr_get) };
        if slot.is_null() {
            return Err(PyTypeError::new_err(format!("{name} has no `__get__`")));
        }
        // SAFETY: this slot of a type is null or a function of this signature.
        let get = unsafe { std::mem::transmute::<*mut std::ffi::c_void, ffi::descrgetfunc>(slot) };
        Ok(Self { descriptor: descriptor.unbind(), get })
    }

    /// The attribute of an object.
    ///
    /// # Errors
    ///
    /// The attribute's own; `TypeError` for an object of another type.
    pub(super) fn read<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (descriptor, class) = (self.descriptor.as_ptr(), object.get_type_ptr().cast());
        // SAFETY: the function of the descriptor's own type, which looks whether the object is of a type that has it.
        let value = unsafe { (self.get)(descriptor, object.as_ptr(), class) };
        // SAFETY: a new reference, or NULL with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(object.py(), value) }
    }
}
