//! Tensors of a type with C functions for them: read without a call of Python's.
//!
//! The type has a capsule, `__dlpack_c_exchange_api__` (DLPack 1.3), with a table of functions that lives as long as the
//! process. It is looked up on the type of each object, as the header says, so that of a class derived from a tensor's it is
//! found too; the functions then take objects of that class.
//! <https://dmlc.github.io/dlpack/latest/c_api.html>
#![expect(unsafe_code, reason = "calls the functions of a producer's table")]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr::{self, NonNull},
};

use pyo3::{
    exceptions::{PyBufferError, PyRuntimeError},
    ffi,
    prelude::*,
    types::PyType,
};
use weft_artifact::{DType, Number};

use super::{
    Place, RawTensor, VERSION, Version, VersionedTensor,
    import::{Managed, Seen, check_negative},
};

/// The name of the capsule.
pub(super) const NAME: &CStr = c"dlpack_exchange_api";

/// `DLPackExchangeAPIHeader`
#[repr(C)]
pub(super) struct Header {
    pub(super) version: Version,
    pub(super) previous: *const Header,
}

pub(super) type SetError = unsafe extern "C" fn(context: *mut c_void, kind: *const c_char, message: *const c_char);
pub(super) type Allocate = unsafe extern "C" fn(
    prototype: *mut RawTensor,
    out: *mut *mut VersionedTensor,
    context: *mut c_void,
    set_error: Option<SetError>,
) -> c_int;
pub(super) type Export = unsafe extern "C" fn(object: *mut c_void, out: *mut *mut VersionedTensor) -> c_int;
pub(super) type Import = unsafe extern "C" fn(tensor: *mut VersionedTensor, out: *mut *mut c_void) -> c_int;
pub(super) type Borrow = unsafe extern "C" fn(object: *mut c_void, out: *mut RawTensor) -> c_int;
pub(super) type WorkStream = unsafe extern "C" fn(kind: c_int, id: i32, out: *mut *mut c_void) -> c_int;

/// `DLPackExchangeAPI`
#[repr(C)]
pub(super) struct Table {
    pub(super) header: Header,
    pub(super) allocate: Option<Allocate>,
    pub(super) export: Option<Export>,
    pub(super) import: Option<Import>,
    pub(super) borrow: Option<Borrow>,
    pub(super) work_stream: Option<WorkStream>,
}

/// How tensors of a type are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    reading: Reading,
    work_stream: Option<WorkStream>,
    /// Objects of the type say whether their gradients are recorded, whether their elements are the conjugates of what lies
    /// in memory, and whether the negatives: the C functions look at none of these. Those that are asked.
    has_gradient: bool,
    has_conjugate: bool,
    has_negative: bool,
}

#[derive(Clone, Copy, Debug)]
enum Reading {
    /// The object keeps the tensor, until it gets control again.
    Borrowed(Borrow),
    /// There is a structure to give back.
    Owned(Export),
}

impl Exchange {
    /// That of a type, if it has one that can be read.
    pub(crate) fn of(class: &Bound<'_, PyType>) -> PyResult<Option<Self>> {
        let py = class.py();
        let Some(capsule) = class.getattr_opt(intern!(py, "__dlpack_c_exchange_api__"))? else { return Ok(None) };
        // SAFETY: any object may be asked.
        if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), NAME.as_ptr()) } == 0 {
            return Ok(None);
        }
        // SAFETY: it is a capsule of this name.
        let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr()) };
        let Some(table) = table(pointer.cast()) else { return Ok(None) };
        let reading = match (table.borrow, table.export) {
            (Some(borrow), _) => Reading::Borrowed(borrow),
            (None, Some(export)) => Reading::Owned(export),
            (None, None) => return Ok(None),
        };
        Ok(Some(Self {
            reading,
            work_stream: table.work_stream,
            has_gradient: class.hasattr(intern!(py, "requires_grad"))?,
            has_conjugate: class.hasattr(intern!(py, "is_conj"))?,
            has_negative: class.hasattr(intern!(py, "is_neg"))?,
        }))
    }

    /// Whether the own `__dlpack__` of an object with elements of a dtype has a word to say: it refuses tensors whose gradients
    /// are recorded, and those that are not what lies in their memory. Each question costs more than to read the tensor: only
    /// complex numbers have conjugates, and no integers are taken for negatives of others.
    ///
    /// # Errors
    ///
    /// `BufferError` for negatives of what lies in memory.
    pub(crate) fn is_for_itself(&self, object: &Bound<'_, PyAny>, dtype: DType) -> PyResult<bool> {
        let py = object.py();
        if self.has_gradient && object.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
            return Ok(true);
        }
        let (is_float, is_complex) = match dtype {
            DType::Number(number @ Number::Real(_)) => (number.part().is_float(), false),
            DType::Number(Number::Complex(_)) => (true, true),
            DType::Compound(_) => (false, false),
        };
        if self.has_negative && is_float {
            check_negative(object)?;
        }
        Ok(self.has_conjugate && is_complex && object.call_method0(intern!(py, "is_conj"))?.is_truthy()?)
    }

    /// Reads an object's tensor as [`Seen`] does, and gives what keeps it, if it is not the object.
    ///
    /// # Errors
    ///
    /// The producer's, and those of [`Seen`].
    pub(crate) fn read(
        &self,
        object: &Bound<'_, PyAny>,
        max_ndim: usize,
        cells: &mut Vec<u64>,
    ) -> PyResult<(Seen, Option<Managed>)> {
        let py = object.py();
        match self.reading {
            Reading::Borrowed(borrow) => {
                let mut raw = RawTensor::EMPTY;
                // SAFETY: the function of the object's own type, with the interpreter; it fills `raw`.
                let status = unsafe { borrow(object.as_ptr().cast(), &raw mut raw) };
                if status != 0 {
                    return Err(failure(py));
                }
                Ok((Seen::of(&raw, 0, max_ndim, cells)?, None))
            }
            Reading::Owned(export) => {
                let mut out = ptr::null_mut();
                // SAFETY: the function of the object's own type, with the interpreter; it stores a structure for us.
                let status = unsafe { export(object.as_ptr().cast(), &raw mut out) };
                let Some(structure) = NonNull::new(out).filter(|_| status == 0) else { return Err(failure(py)) };
                let managed = Managed::versioned(structure)?;
                let (raw, flags) = managed.raw();
                Ok((Seen::of(&raw, flags, max_ndim, cells)?, Some(managed)))
            }
        }
    }

    /// The handle of the stream that the producer's work on a device goes to at present; `None` where there are none.
    ///
    /// # Errors
    ///
    /// The producer's.
    pub(crate) fn work_stream(&self, py: Python<'_>, place: Place, current: u32) -> PyResult<Option<u64>> {
        let Some(work_stream) = self.work_stream.filter(|_| place.has_streams()) else { return Ok(None) };
        let device = match place {
            Place::Gpu(id) => id,
            Place::Host | Place::PageLocked | Place::Managed | Place::Elsewhere(_) => current as i32,
        };
        let mut stream = ptr::null_mut();
        // SAFETY: the producer's function, with the interpreter; it stores a handle.
        let status = unsafe { work_stream(place.kind(), device, &raw mut stream) };
        if status == 0 { Ok(Some(stream as u64)) } else { Err(failure(py)) }
    }
}

/// A table with a layout that is known: the first, or an older one that it names.
fn table(mut table: *const Table) -> Option<&'static Table> {
    loop {
        // SAFETY: the capsule's pointer is to a header, or NULL, as is that in each header; they live with the process.
        let header = unsafe { table.cast::<Header>().as_ref() }?;
        if header.version.major == VERSION.major {
            // SAFETY: a header of this version is that of a table, which lives with the process.
            return unsafe { table.as_ref() };
        }
        table = header.previous.cast();
    }
}

/// The exception that a producer's function has set.
fn failure(py: Python<'_>) -> PyErr {
    let error = PyErr::take(py)
        .unwrap_or_else(|| PyRuntimeError::new_err("the C function of its type failed without an exception"));
    // PyTorch adds the calls of C++ that led there.
    let text = error.value(py).to_string();
    match text.split_once("\nException raised from ") {
        Some((first, _)) => PyBufferError::new_err(first.to_owned()),
        None => error,
    }
}
