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
    RawTensor, TensorMemory, VERSION, Version, VersionedTensor,
    import::{self, Managed, Seen},
};
use crate::{arrays::attribute::Attribute, devices, once::Once};

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
pub(super) struct ExchangeTable {
    pub(super) header: Header,
    pub(super) allocate: Option<Allocate>,
    pub(super) export: Option<Export>,
    pub(super) import: Option<Import>,
    pub(super) borrow: Option<Borrow>,
    pub(super) work_stream: Option<WorkStream>,
}

/// How tensors of a type are read.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    reading: Reading,
    work_stream: Option<WorkStream>,
    questions: Questions,
}

/// The checks for objects of a type: the C functions check neither whether gradients are recorded, nor whether the
/// elements are the conjugates, or the negatives, of the values in memory.
#[derive(Clone, Copy)]
enum Questions {
    /// PyTorch's, by the descriptor of `requires_grad`: the rules of its tensors hold.
    Torch(&'static Attribute),
    /// Those that the type has attributes for.
    Other { gradient: bool, conjugate: bool, negative: bool },
}

#[derive(Clone, Copy, Debug)]
enum Reading {
    /// The object keeps the tensor, until it gets control again.
    Borrowed(Borrow),
    /// A structure to release.
    Owned(Export),
}

impl Exchange {
    /// That of a type, if it has one that can be read.
    pub(crate) fn of(class: &Bound<'_, PyType>) -> PyResult<Option<Self>> {
        let py = class.py();
        let Some(capsule) = class.getattr_opt(intern!(py, "__dlpack_c_exchange_api__"))? else { return Ok(None) };
        // SAFETY: the function accepts any object.
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
        let questions = match requires_grad(class) {
            Some(requires_grad) => Questions::Torch(requires_grad),
            None => Questions::Other {
                gradient: class.hasattr(intern!(py, "requires_grad"))?,
                conjugate: class.hasattr(intern!(py, "is_conj"))?,
                negative: class.hasattr(intern!(py, "is_neg"))?,
            },
        };
        Ok(Some(Self { reading, work_stream: table.work_stream, questions }))
    }

    /// Whether an object's own `__dlpack__` must be called, although its tensor was read to these cells: it refuses
    /// tensors whose gradients are recorded, and those whose elements differ from their memory. Each check costs about
    /// as much as reading the tensor: only complex numbers have conjugates, integers are not checked for negatives, and
    /// of PyTorch's tensors only floats and complex numbers have gradients, and those with an odd stride are no
    /// negatives.
    ///
    /// # Errors
    ///
    /// `BufferError` for negatives of the values in memory.
    pub(crate) fn is_for_itself(&self, object: &Bound<'_, PyAny>, dtype: DType, cells: &[u64]) -> PyResult<bool> {
        Ok(self.records_gradient(object, dtype)? || self.differs_from_memory(object, dtype, cells)?)
    }

    /// Whether an object's gradient is recorded, if gradients are.
    ///
    /// # Errors
    ///
    /// The object's.
    pub(crate) fn records_gradient(&self, object: &Bound<'_, PyAny>, dtype: DType) -> PyResult<bool> {
        match self.questions {
            Questions::Torch(requires_grad) => Ok(has_floats(dtype).0 && requires_grad.read(object)?.is_truthy()?),
            Questions::Other { gradient, .. } => {
                Ok(gradient && object.getattr(intern!(object.py(), "requires_grad"))?.is_truthy()?)
            }
        }
    }

    /// Whether an object's elements are the conjugates of the values in memory at these cells.
    ///
    /// # Errors
    ///
    /// `BufferError` for negatives of the values in memory.
    pub(crate) fn differs_from_memory(&self, object: &Bound<'_, PyAny>, dtype: DType, cells: &[u64]) -> PyResult<bool> {
        let py = object.py();
        let (is_float, is_complex) = has_floats(dtype);
        let (conjugate, negative) = match self.questions {
            Questions::Torch(_) => (true, is_float && !has_odd_stride(cells, dtype.size_bytes())),
            Questions::Other { conjugate, negative, .. } => (conjugate, negative),
        };
        if is_float && negative && object.call_method0(intern!(py, "is_neg"))?.is_truthy()? {
            return Err(import::negative());
        }
        Ok(is_complex && conjugate && object.call_method0(intern!(py, "is_conj"))?.is_truthy()?)
    }

    /// Reads an object's tensor as [`Seen`] does, and returns its owner, if that is not the object.
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

    /// The query for the stream with the producer's work in a memory; `None` where there are no streams. Within one
    /// launch the same query has the same result.
    pub(crate) fn producer_query(&self, place: TensorMemory) -> Option<ProducerStreamQuery> {
        let work_stream = self.work_stream.filter(|_| place.has_streams())?;
        let device = match place {
            TensorMemory::Gpu(id) => id,
            TensorMemory::Host | TensorMemory::PageLocked | TensorMemory::Managed | TensorMemory::Elsewhere(_) => {
                devices::current_id() as i32
            }
        };
        Some(ProducerStreamQuery { work_stream, kind: place.kind(), device })
    }
}

/// Whether elements are floats or complex numbers, and whether they are complex.
fn has_floats(dtype: DType) -> (bool, bool) {
    match dtype {
        DType::Number(number @ Number::Real(_)) => (number.part().is_float(), false),
        DType::Number(Number::Complex(_)) => (true, true),
        DType::Compound(_) => (false, false),
    }
}

/// A query for the stream in which a producer works.
#[derive(Clone, Copy)]
pub(crate) struct ProducerStreamQuery {
    work_stream: WorkStream,
    kind: i32,
    device: i32,
}

impl PartialEq for ProducerStreamQuery {
    fn eq(&self, other: &Self) -> bool {
        self.work_stream as usize == other.work_stream as usize
            && (self.kind, self.device) == (other.kind, other.device)
    }
}

impl ProducerStreamQuery {
    /// The handle of the stream that the producer's work goes to at present.
    ///
    /// # Errors
    ///
    /// The producer's.
    pub(crate) fn answer(self, py: Python<'_>) -> PyResult<u64> {
        let mut stream = ptr::null_mut();
        // SAFETY: the producer's function, with the interpreter; it stores a handle.
        let status = unsafe { (self.work_stream)(self.kind, self.device, &raw mut stream) };
        if status == 0 { Ok(stream as u64) } else { Err(failure(py)) }
    }
}

/// The attribute that says whether gradients are recorded, for classes that behave like PyTorch's tensors here. A
/// derived class that overrides these attributes, or all calls by a `__torch_function__`, is handled as any other
/// class.
fn requires_grad(class: &Bound<'_, PyType>) -> Option<&'static Attribute> {
    static REQUIRES_GRAD: Once<Attribute> = Once::new();
    let py = class.py();
    let is_torchs = || -> PyResult<bool> {
        let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
        let tensor = modules.get_item("torch")?.getattr("Tensor")?.cast_into::<PyType>()?;
        if !class.is_subclass(&tensor)? {
            return Ok(false);
        }
        for name in ["requires_grad", "is_neg", "is_conj", "__getattribute__"] {
            if !class.getattr(name)?.is(&tensor.getattr(name)?) {
                return Ok(false);
            }
        }
        let [own, theirs] = [class, &tensor].map(|of| of.getattr("__torch_function__")?.getattr("__func__"));
        Ok(own?.is(&theirs?))
    };
    if !is_torchs().unwrap_or(false) {
        return None;
    }
    REQUIRES_GRAD.get_or_make(|| Attribute::of(class, intern!(py, "requires_grad"))).ok()
}

/// Whether a tensor of several elements has an odd stride, in elements, along a dimension of several. Address, extents
/// and strides in bytes are given; `item` is a power of two, as the sizes of all numbers are.
///
/// Such a tensor of PyTorch's does not have the negative bit. `.imag` of a conjugated complex tensor sets that bit: its
/// elements are every second number in memory, so all its strides are even. A view's strides are sums of multiples of
/// its base's, and a tensor that is no view has its own elements in memory. Code that sets strides itself, by
/// `as_strided` or `resize_`, or the bit, by the private `_neg_view`, may create other tensors, which this test does
/// not detect.
fn has_odd_stride(cells: &[u64], item: u64) -> bool {
    let Some((_, numbers)) = cells.split_first() else { return false };
    let (shape, strides) = numbers.split_at(numbers.len() / 2);
    let is_odd = |(extent, stride): (&u64, &u64)| *extent > 1 && *stride & item != 0;
    !shape.contains(&0) && shape.iter().zip(strides).any(is_odd)
}

/// A table with a layout that is known: the first, or an older one that it names.
fn table(mut table: *const ExchangeTable) -> Option<&'static ExchangeTable> {
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
