//! The C functions of device arrays, for consumers that call no Python: the table exported as
//! `__dlpack_c_exchange_api__`.
//!
//! All of them are called with the GIL held, and set an exception where they fail; none waits for anything. Work
//! without a stream goes to the legacy default stream.
//! <https://dmlc.github.io/dlpack/latest/c_api.html>
#![expect(unsafe_code, reason = "is called from C, with pointers")]

use std::{
    ffi::{CString, c_int, c_void},
    ptr::NonNull,
};

use pyo3::{
    exceptions::{PyBufferError, PyTypeError},
    ffi,
    prelude::*,
    types::PyTuple,
};

use super::{
    RawTensor, TensorMemory, VERSION, VersionedTensor,
    exchange::{ExchangeTable, Header, NAME, SetError},
    export,
    import::{Keeper, Managed, NUMPY_NDIM, Seen, Tensor},
};
use crate::{arrays::device_array::DeviceArray, types::Type};

static TABLE: ExchangeTable = ExchangeTable {
    header: Header { version: VERSION, previous: std::ptr::null() },
    allocate: Some(allocate),
    export: Some(export_array),
    import: Some(import_tensor),
    borrow: Some(borrow),
    work_stream: Some(work_stream),
};

// SAFETY: the table is never written, and it points to nothing.
unsafe impl Sync for ExchangeTable {}

/// The capsule with the table.
pub(crate) fn capsule(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let table = (&raw const TABLE).cast_mut().cast();
    // SAFETY: the table and the name live as long as the process; consumers do not write it.
    let capsule = unsafe { ffi::PyCapsule_New(table, NAME.as_ptr(), None) };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }.map(Bound::unbind)
}

/// The return value of a C function.
fn status(py: Python<'_>, done: PyResult<()>) -> c_int {
    match done {
        Ok(()) => 0,
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

/// The array that a pointer to an object is of.
fn array(py: Python<'_>, object: *mut c_void) -> PyResult<Bound<'_, DeviceArray>> {
    // SAFETY: the caller has a reference to an object, or NULL, for as long as the call takes.
    let object = unsafe { Bound::from_borrowed_ptr_or_opt(py, object.cast()) };
    let object = object.ok_or_else(|| PyTypeError::new_err("there is no object"))?;
    Ok(object.cast_into::<DeviceArray>()?)
}

/// `managed_tensor_from_py_object_no_sync`
unsafe extern "C" fn export_array(object: *mut c_void, out: *mut *mut VersionedTensor) -> c_int {
    Python::attach(|py| {
        let done = array(py, object).and_then(|array| export::versioned(&array, false, false)).map(|structure| {
            // SAFETY: the caller's output pointer.
            unsafe { out.write(structure) };
        });
        status(py, done)
    })
}

/// `dltensor_from_py_object_no_sync`: the array owns the memory that it points to.
unsafe extern "C" fn borrow(object: *mut c_void, out: *mut RawTensor) -> c_int {
    Python::attach(|py| {
        let borrowed = array(py, object).and_then(|array| {
            let array = array.get();
            if array.array.readonly {
                return Err(PyBufferError::new_err(
                    "the array is read-only, which a tensor without flags cannot express",
                ));
            }
            export::borrowed(py, array)
        });
        let done = borrowed.map(|tensor| {
            // SAFETY: the caller's output pointer for a tensor.
            unsafe { out.write(tensor) };
        });
        status(py, done)
    })
}

/// `managed_tensor_to_py_object_no_sync`: takes the tensor.
unsafe extern "C" fn import_tensor(tensor: *mut VersionedTensor, out: *mut *mut c_void) -> c_int {
    Python::attach(|py| {
        let import = || {
            let structure = NonNull::new(tensor).ok_or_else(|| PyTypeError::new_err("there is no tensor"))?;
            let managed = Managed::versioned(structure)?;
            let mut cells = Vec::new();
            let (raw, flags) = managed.raw();
            let seen = Seen::of(&raw, flags, NUMPY_NDIM, &mut cells)?;
            let tensor = Bound::new(py, Tensor::new(&seen, &cells, Keeper::Structure(managed)))?;
            py.import(intern!(py, "weft.cuda._memory.interchange"))?.call_method1(intern!(py, "of_tensor"), (tensor,))
        };
        let done = import().map(|array| {
            // SAFETY: the caller's output pointer for a new reference.
            unsafe { out.write(array.into_ptr().cast()) };
        });
        status(py, done)
    })
}

/// `managed_tensor_allocator`: a new array of a prototype's dtype and extents, on its device. An error is reported to
/// `set_error`, and no exception is set.
unsafe extern "C" fn allocate(
    prototype: *mut RawTensor,
    out: *mut *mut VersionedTensor,
    context: *mut c_void,
    set_error: Option<SetError>,
) -> c_int {
    Python::attach(|py| {
        let allocate = || {
            // SAFETY: the caller's tensor, or NULL; it has its shape, and no strides that count.
            let prototype =
                unsafe { prototype.as_ref() }.ok_or_else(|| PyTypeError::new_err("there is no prototype"))?;
            let dtype = prototype.dtype.dtype()?;
            let mut cells = Vec::new();
            // As an array of no elements: its memory is not there.
            Seen::extents(prototype, &mut cells)?;
            let device = (TensorMemory::of(prototype.device).kind(), prototype.device.id);
            let of = (PyTuple::new(py, cells)?, Type::of_dtype(dtype), device);
            let interchange = py.import(intern!(py, "weft.cuda._memory.interchange"))?;
            let made = interchange.call_method1(intern!(py, "allocate"), of)?;
            export::versioned(made.cast::<DeviceArray>()?, false, false)
        };
        match allocate() {
            Ok(structure) => {
                // SAFETY: the caller's output pointer.
                unsafe { out.write(structure) };
                0
            }
            Err(error) => {
                let kind = error.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
                let kind = CString::new(kind).unwrap_or_default();
                let message = CString::new(error.value(py).to_string()).unwrap_or_default();
                if let Some(set_error) = set_error {
                    // SAFETY: the caller's function and its context; both strings live until it returns.
                    unsafe { set_error(context, kind.as_ptr(), message.as_ptr()) };
                }
                -1
            }
        }
    })
}

/// `current_work_stream`: the legacy default stream, and none on the CPU.
unsafe extern "C" fn work_stream(_kind: c_int, _device: i32, out: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's output pointer for a handle.
    unsafe { out.write(std::ptr::null_mut()) };
    0
}
