//! CuPy's arrays, read by their attributes: the dictionary of `__cuda_array_interface__` costs as much as three of
//! them.
//!
//! The attributes are read with the meaning of the interface's version 3: an address of 0 for an array without
//! elements, no strides where it is C-contiguous, and the calling thread's current stream, where 1 is the null stream.
//! The first array is read both ways, and only if the results are equal are the attributes used from then on; an array
//! with unusual attributes is read by its dictionary. The version depends on
//! `CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION`, which CuPy reads at import; version 2 names no stream, and is read by
//! dictionaries.
//! <https://docs.cupy.dev/en/stable/user_guide/interoperability.html>
#![expect(unsafe_code, reason = "calls a C function of CuPy's")]

use std::ffi::{CStr, c_void};

use pyo3::{
    exceptions::{PyLookupError, PyValueError},
    ffi,
    prelude::*,
    types::{PyString, PyTuple, PyType},
};
use weft_artifact::{ArrayType, Layout, MAX_NDIM};

use super::{attribute::Attribute, interface::Interface, scalar, strides};
use crate::{once::Once, types::numpy};

/// The C function of CuPy that its own interface calls. Cython exports it as a capsule named by its type.
type CurrentStream = unsafe extern "C" fn() -> isize;
const CURRENT_STREAM: &CStr = c"intptr_t (void)";

/// The handle of the legacy default stream, which CuPy calls 0 and the interface 1.
const LEGACY: u64 = 1;

/// How the arrays of `cupy.ndarray`, and of no class that is derived from it, are read.
pub(crate) struct Cupy {
    class: Py<PyType>,
    data: Attribute,
    dtype: Attribute,
    is_c: Attribute,
    ndim: Attribute,
    size: Attribute,
    shape: Attribute,
    strides: Attribute,
    /// The type of `data`, and that of its attribute.
    address: Attribute,
    memory: Py<PyType>,
    current_stream: CurrentStream,
}

static CUPY: Once<Cupy> = Once::new();

impl Cupy {
    /// The reader for an object, if it is CuPy's array; `None` if it is read by its interface alone.
    ///
    /// # Errors
    ///
    /// This object is inconclusive.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static Self>> {
        let (py, class) = (object.py(), object.get_type());
        if class.fully_qualified_name()? != "cupy.ndarray" || !class.is(&module(py, "cupy")?.getattr("ndarray")?) {
            return Ok(None);
        }
        let interface = object.getattr(intern!(py, "__cuda_array_interface__"))?;
        if interface.get_item("version")?.extract::<u32>()? != 3 {
            return Ok(None);
        }
        let cupy = CUPY.get_or_make(|| Self::new(object))?;
        let (mut cells, mut own) = (Vec::new(), Vec::new());
        let read = Interface::read(&interface, Some(object), MAX_NDIM, &mut cells)?;
        let same =
            cupy.read(object, &mut own).is_some_and(|seen| Interface { stream: cupy.stream(py), ..seen } == read);
        if !same || cells != own {
            return Err(PyValueError::new_err("its attributes contradict its interface"));
        }
        Ok(class.is(&cupy.class).then_some(cupy))
    }

    fn new(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (py, class) = (array.py(), array.get_type());
        let of = |name: &str| Attribute::of(&class, &PyString::intern(py, name));
        let data = of("data")?;
        let memory = data.read(array)?.get_type();
        Ok(Self {
            data,
            dtype: of("dtype")?,
            is_c: of("_c_contiguous")?,
            ndim: of("ndim")?,
            size: of("size")?,
            shape: of("shape")?,
            strides: of("strides")?,
            address: Attribute::of(&memory, intern!(py, "ptr"))?,
            memory: memory.unbind(),
            current_stream: current_stream(py)?,
            class: class.unbind(),
        })
    }

    /// Reads an array as [`Interface::read`] does, except for the stream. `None` where only its interface can, with
    /// `cells` unchanged.
    pub(crate) fn read(&self, array: &Bound<'_, PyAny>, cells: &mut Vec<u64>) -> Option<Interface> {
        let first = cells.len();
        // An error here also occurs in the interface, which is read next.
        let seen = self.see(array, cells).ok().flatten();
        if seen.is_none() {
            cells.truncate(first);
        }
        seen
    }

    fn see(&self, array: &Bound<'_, PyAny>, cells: &mut Vec<u64>) -> PyResult<Option<Interface>> {
        let py = array.py();
        let dtype = self.dtype.read(array)?;
        let Some(number) = numpy::loaded(py).and_then(|classes| classes.number_of_dtype(&dtype)) else {
            return Ok(None);
        };
        let memory = self.data.read(array)?;
        if !memory.get_type().is(&self.memory) {
            return Ok(None);
        }
        let number_of = |attribute: &Attribute, of| Ok::<_, PyErr>(scalar::int(&attribute.read(of)?)?.unwrap_or(-1));
        let (first, address) = (cells.len(), number_of(&self.address, &memory)?);
        let ndim = number_of(&self.ndim, array)? as usize;
        let is_c = self.is_c.read(array)?.is_truthy()?;
        if address < 0 {
            return Ok(None);
        }
        cells.push(address as u64);
        let add = |cells: &mut Vec<u64>, numbers: &Attribute| -> PyResult<bool> {
            let numbers = numbers.read(array)?;
            let numbers = numbers.cast::<PyTuple>()?;
            for number in numbers.iter_borrowed() {
                cells.push(scalar::int(&number)?.ok_or_else(|| PyValueError::new_err("it is too large"))? as u64);
            }
            Ok(numbers.len() == ndim)
        };
        let has_extents = match ndim {
            0 => true,
            // One number is found sooner than a tuple of one.
            1 if is_c => {
                cells.push(number_of(&self.size, array)? as u64);
                true
            }
            2..=MAX_NDIM | 1 => add(cells, &self.shape)?,
            _ => return Ok(None),
        };
        if is_c {
            strides::push_c(cells, first + 1, number.size_bytes());
        }
        if !has_extents || !is_c && !add(cells, &self.strides)? {
            return Ok(None);
        }
        let (dtype, readonly) = (number.into(), false);
        let Some((address, rest)) = cells.get_mut(first..).and_then(<[u64]>::split_first_mut) else { return Ok(None) };
        let (shape, steps) = rest.split_at(ndim);
        if shape.contains(&0) {
            *address = 0;
        }
        let (layout, is_aligned) = if is_c {
            strides::check_extents(shape.iter().copied())?;
            (Layout::C, strides::is_aligned(*address, shape.iter().copied(), [].into_iter(), dtype))
        } else {
            strides::examine(*address, shape, steps, dtype)?
        };
        Ok(Some(Interface { array: ArrayType { dtype, ndim: ndim as u8, layout, readonly }, stream: None, is_aligned }))
    }

    /// The handle of the calling thread's current stream; `None` where CuPy does not report it.
    pub(crate) fn stream(&self, py: Python<'_>) -> Option<u64> {
        // SAFETY: CuPy's function, with the interpreter.
        let handle = unsafe { (self.current_stream)() };
        if handle == -1 && PyErr::take(py).is_some() {
            return None;
        }
        Some(if handle == 0 { LEGACY } else { handle as u64 })
    }
}

/// The C function that gives the calling thread's stream, if it has the type that it always had.
fn current_stream(py: Python<'_>) -> PyResult<CurrentStream> {
    let functions = module(py, "cupy_backends.cuda.stream")?.getattr("__pyx_capi__")?;
    let capsule = functions.get_item("get_current_stream_ptr")?;
    // SAFETY: the function accepts any object.
    if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), CURRENT_STREAM.as_ptr()) } == 0 {
        return Err(PyLookupError::new_err("CuPy's `get_current_stream_ptr` is of another type"));
    }
    // SAFETY: it is a capsule of this name, so that its pointer is not NULL.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), CURRENT_STREAM.as_ptr()) };
    // SAFETY: Cython names a capsule by the type of the function in it; a module's code is never unloaded.
    Ok(unsafe { std::mem::transmute::<*mut c_void, CurrentStream>(pointer) })
}

/// A module that was imported.
fn module<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?.get_item(name)
}
