//! Device arrays for other libraries: a structure that keeps the array until its deleter is called, in a capsule.
#![expect(unsafe_code, reason = "makes the structures of DLPack, and takes them back")]

use std::ffi::c_void;

use pyo3::{exceptions::PyBufferError, ffi, prelude::*};

use super::{
    IS_COPIED, OLD, OldTensor, READ_ONLY, RawDevice, RawTensor, RawType, TensorMemory, VERSION, VERSIONED,
    VersionedTensor,
};
use crate::{arrays::device_array::DeviceArray, devices};

/// The owner of an exported structure. It is passed as a pointer, and freed by the structure's deleter.
#[repr(C)]
struct Exported<T> {
    /// The first field, so that its address is that of the whole.
    structure: T,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
    array: Option<Py<DeviceArray>>,
}

/// Extents and strides, both in elements.
pub(crate) type Numbers = (Box<[i64]>, Box<[i64]>);

fn numbers(array: &DeviceArray) -> PyResult<Numbers> {
    let item = array.array.dtype.size_bytes() as i64;
    let (shape, strides) = array.cells.get(1..).unwrap_or_default().split_at(array.cells.len() / 2);
    let step = |stride: &u64| {
        let bytes = *stride as i64;
        if bytes % item == 0 { Some(bytes / item) } else { None }
    };
    let strides = strides.iter().map(step).collect::<Option<_>>().ok_or_else(|| {
        PyBufferError::new_err(format!(
            "DLPack does not support strides that are not multiples of the element size, {item} bytes"
        ))
    })?;
    Ok((shape.iter().map(|extent| *extent as i64).collect(), strides))
}

/// The tensor of an array's memory, without its numbers. On the CPU device arrays are memory of the host.
fn tensor(py: Python<'_>, array: &DeviceArray, of_host: bool) -> PyResult<RawTensor> {
    let place = if of_host || devices::device_kind(py)? == "cpu" {
        TensorMemory::Host
    } else {
        TensorMemory::Gpu(array.device as i32)
    };
    let id = match place {
        TensorMemory::Gpu(id) => id,
        TensorMemory::Host | TensorMemory::PageLocked | TensorMemory::Managed | TensorMemory::Elsewhere(_) => 0,
    };
    let address = array.cells.first().copied().unwrap_or_default();
    Ok(RawTensor {
        data: std::ptr::with_exposed_provenance_mut::<c_void>(address as usize),
        device: RawDevice { kind: place.kind(), id },
        ndim: array.array.ndim.into(),
        dtype: RawType::of(array.array.dtype)?,
        ..RawTensor::EMPTY
    })
}

/// An array's tensor, valid as long as the array lives.
///
/// # Errors
///
/// `BufferError` for an array that DLPack cannot describe.
pub(super) fn borrowed(py: Python<'_>, array: &DeviceArray) -> PyResult<RawTensor> {
    let raw = tensor(py, array, false)?;
    let (shape, strides) = match array.numbers.get() {
        Some(known) => known,
        None => {
            let made = numbers(array)?;
            array.numbers.get_or_init(|| made)
        }
    };
    Ok(RawTensor { shape: shape.as_ptr().cast_mut(), strides: strides.as_ptr().cast_mut(), ..raw })
}

/// A structure that keeps an array, and where its tensor is in it.
fn keep<T>(
    array: &Bound<'_, DeviceArray>,
    structure: T,
    tensor: impl FnOnce(&mut T) -> &mut RawTensor,
) -> PyResult<*mut T> {
    let (shape, strides) = numbers(array.get())?;
    let mut exported = Box::new(Exported { structure, shape, strides, array: Some(array.clone().unbind()) });
    let Exported { structure, shape, strides, array: _ } = &mut *exported;
    let tensor = tensor(structure);
    // Boxes of numbers keep their addresses when the whole is moved.
    (tensor.shape, tensor.strides) = (shape.as_mut_ptr(), strides.as_mut_ptr());
    Ok(Box::into_raw(exported).cast())
}

/// A structure for an array; the consumer calls its deleter.
///
/// # Errors
///
/// `BufferError` for an array that DLPack cannot describe.
pub(super) fn versioned(
    array: &Bound<'_, DeviceArray>,
    is_copied: bool,
    of_host: bool,
) -> PyResult<*mut VersionedTensor> {
    let readonly = if array.get().array.readonly { READ_ONLY } else { 0 };
    let structure = VersionedTensor {
        version: VERSION,
        context: std::ptr::null_mut(),
        deleter: Some(delete::<VersionedTensor>),
        flags: readonly | if is_copied { IS_COPIED } else { 0 },
        tensor: tensor(array.py(), array.get(), of_host)?,
    };
    keep(array, structure, |structure| &mut structure.tensor)
}

fn old(array: &Bound<'_, DeviceArray>, of_host: bool) -> PyResult<*mut OldTensor> {
    if array.get().array.readonly {
        return Err(PyBufferError::new_err("the array is read-only, which DLPack before 1.0 cannot express"));
    }
    let structure = OldTensor {
        tensor: tensor(array.py(), array.get(), of_host)?,
        context: std::ptr::null_mut(),
        deleter: Some(delete::<OldTensor>),
    };
    keep(array, structure, |structure| &mut structure.tensor)
}

/// The deleter of exported structures, which may be called by any thread.
unsafe extern "C" fn delete<T>(structure: *mut T) {
    if structure.is_null() {
        return;
    }
    // SAFETY: the structure is the first field of a box that `keep` gave away; its deleter is called once.
    let mut exported = unsafe { Box::from_raw(structure.cast::<Exported<T>>()) };
    let Some(array) = exported.array.take() else { return };
    let mut array = Some(array);
    // An interpreter that is ending frees nothing more.
    if Python::try_attach(|_| drop(array.take())).is_none() {
        std::mem::forget(array);
    }
}

/// Frees a structure that no consumer took.
unsafe extern "C" fn destroy_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this with the capsule; a used one has another name.
    if unsafe { ffi::PyCapsule_IsValid(capsule, VERSIONED.fresh.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: it is a capsule of this name, with the pointer that it was made with.
    let structure = unsafe { ffi::PyCapsule_GetPointer(capsule, VERSIONED.fresh.as_ptr()) };
    // SAFETY: a structure of `versioned`, without other users.
    unsafe { delete::<VersionedTensor>(structure.cast()) };
}

/// The same of an old one.
unsafe extern "C" fn destroy_old(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this with the capsule; a used one has another name.
    if unsafe { ffi::PyCapsule_IsValid(capsule, OLD.fresh.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: it is a capsule of this name, with the pointer that it was made with.
    let structure = unsafe { ffi::PyCapsule_GetPointer(capsule, OLD.fresh.as_ptr()) };
    // SAFETY: a structure of `old`, without other users.
    unsafe { delete::<OldTensor>(structure.cast()) };
}

/// A capsule with a device array. `host`: its memory is the host's, whatever device it says.
#[pyfunction]
#[pyo3(signature = (array, versioned, copied=false, host=false))]
pub(crate) fn export_dlpack<'py>(
    array: &Bound<'py, DeviceArray>,
    versioned: bool,
    copied: bool,
    host: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let capsule = if versioned {
        let structure = self::versioned(array, copied, host)?;
        // SAFETY: the name lives as long as the process; the pointer is not NULL.
        let capsule =
            unsafe { ffi::PyCapsule_New(structure.cast(), VERSIONED.fresh.as_ptr(), Some(destroy_versioned)) };
        if capsule.is_null() {
            // SAFETY: no capsule has it.
            unsafe { delete(structure) };
        }
        capsule
    } else {
        let structure = old(array, host)?;
        // SAFETY: the name lives as long as the process; the pointer is not NULL.
        let capsule = unsafe { ffi::PyCapsule_New(structure.cast(), OLD.fresh.as_ptr(), Some(destroy_old)) };
        if capsule.is_null() {
            // SAFETY: no capsule has it.
            unsafe { delete(structure) };
        }
        capsule
    };
    // SAFETY: a new reference, or NULL with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
}
