//! From Python arguments to type keys and cells (see `types/key.rs`).
//!
//! An argument's type has an [`Adapter`], which says how it is passed.

mod adapter;
pub(crate) mod convert;
pub(crate) mod foreign;

use std::{ops::Range, sync::Arc};

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyComplex, PyComplexMethods, PyString, PyTuple},
};
use weft_artifact::{ALIGNED, ArrayType, Assumptions, Complex, DType, Number, Scalar};
use weft_runtime::Buffer;

use self::{adapter::Adapter, foreign::HostTensor};
use crate::{
    arrays::{
        device_array::DeviceArray,
        dlpack::{exchange::ProducerStreamQuery, import::Managed},
        host_array::HostArray,
        scalar, strides,
    },
    devices, errors,
    types::{
        Type,
        classes::{self, KnownClass},
        key,
        numpy::{self, ScalarKind, Subclass},
    },
};

/// How an argument's host array is copied, whatever the kernel does with it: `cuda.In`, `cuda.Out`, `cuda.InOut`.
#[pyclass(subclass, frozen, module = "weft._weft", name = "CopyHint")]
#[derive(Debug)]
pub(crate) struct CopyHint {
    #[pyo3(get)]
    array: Py<PyAny>,
    /// The kernel sees the array's elements.
    #[pyo3(get)]
    copy_in: bool,
    /// The kernel's stores are copied back to the array.
    #[pyo3(get)]
    copy_out: bool,
}

#[pymethods]
impl CopyHint {
    #[new]
    fn new(array: Py<PyAny>, copy_in: bool, copy_out: bool) -> Self {
        Self { array, copy_in, copy_out }
    }
}

impl CopyHint {
    /// Whether it is a view of something that can be copied back, if a copy back is requested.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let value = self.array.bind(py);
        if self.copy_in || !scalar::is_number(value) {
            return Ok(());
        }
        let what = value.get_type().name()?;
        Err(PyTypeError::new_err(format!("cuda.Out() takes an array that a kernel writes to, not {what}")))
    }
}

/// An array of this process among the arguments.
pub(crate) struct HostArgument {
    pub(crate) array: HostArray,
    /// The object, for copies through NumPy.
    pub(crate) object: Py<PyAny>,
    /// Its first cell.
    pub(crate) cell: usize,
    /// Which argument it is in.
    pub(crate) param: usize,
    /// It is passed as an array, not as a record or a text.
    pub(crate) is_array: bool,
    /// Directions demanded by a `CopyHint`: in, out.
    pub(crate) hint: Option<(bool, bool)>,
}

impl HostArgument {
    /// Whether writes to it, or to an array that shares memory with it, are visible through both: `cuda.In` requests a
    /// copy of its own.
    pub(crate) fn shares_writes(&self) -> bool {
        self.hint.is_none_or(|(_, copy_out)| copy_out)
    }
}

/// An array among the arguments that the kernel reaches where it is: on the device, or mapped.
#[derive(Clone, Copy)]
pub(crate) struct InPlace {
    /// Which argument it is in.
    pub(crate) param: usize,
    /// Its first cell.
    pub(crate) cell: usize,
    pub(crate) array: ArrayType,
}

impl InPlace {
    /// The addresses that its elements lie between, by the launch's cells; empty for an array without elements.
    pub(crate) fn span(&self, cells: &[u64]) -> Range<u64> {
        let ndim = self.array.ndim.into();
        let Some((address, rest)) = cells.get(self.cell..).and_then(<[u64]>::split_first) else { return 0..0 };
        let (shape, steps) = (rest.iter().take(ndim), rest.iter().skip(ndim).take(ndim));
        let (low, high) =
            strides::span(shape.copied(), steps.map(|stride| *stride as i64), self.array.dtype.size_bytes());
        address.wrapping_add_signed(low)..address.wrapping_add_signed(high)
    }

    /// Whether two of its elements share memory, by the launch's cells.
    pub(crate) fn overlaps(&self, cells: &[u64]) -> bool {
        let ndim = self.array.ndim.into();
        let fields = cells.get(self.cell + 1..).unwrap_or_default();
        let shape: Vec<_> = fields.iter().take(ndim).map(|extent| *extent as usize).collect();
        let steps: Vec<_> = fields.iter().skip(ndim).take(ndim).map(|stride| *stride as isize).collect();
        strides::overlap(&shape, &steps, self.array.dtype.size_bytes())
    }
}

/// The arguments of one launch. The struct is reused between launches to save allocations.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) key: Vec<u32>,
    pub(crate) cells: Vec<u64>,
    pub(crate) hosts: Vec<HostArgument>,
    pub(crate) in_place: Vec<InPlace>,
    /// The arguments with an array of another library in which elements share memory: a kernel must not write it.
    pub(crate) overlapping: Vec<usize>,
    /// Tensors of the host's memory that the kernel reaches where they are, which are in neither list: on the CPU only.
    pub(crate) tensors: Vec<HostTensor>,
    /// Owners of tensors in device memory.
    managed: Vec<Managed>,
    /// Streams that must be waited for before the launch: handles from `__cuda_array_interface__`.
    pub(crate) producers: Vec<u64>,
    /// Streams whose work at this point precedes the launch: handles, where 0 is the legacy default stream.
    pub(crate) work_streams: Vec<u64>,
    /// The number of the launch's stream.
    pub(crate) order: u64,
    /// Its handle; `None` where nothing is launched.
    pub(crate) stream: Option<u64>,
    /// There is an array whose work is ordered with the launch's own stream: weft's, or one whose producer synchronized
    /// with it.
    is_ordered: bool,
    /// Memory of ours that is freed in another stream's order.
    pub(crate) lent: Vec<Arc<dyn Buffer>>,
    /// The last question for a stream of `work_streams`, and whether CuPy's is among `producers`.
    last_query: Option<ProducerStreamQuery>,
    has_cupys: bool,
    /// The type of the last argument, by its address if its adapter is cached, so that the type is, and how it is
    /// passed. It is preserved across launches: many arguments have the same type.
    last: (usize, Adapter),
    param: usize,
    hint: Option<(bool, bool)>,
    /// How deep in tuples and objects the next item is.
    depth: usize,
}

/// The number of no stream: where a launch is recorded, all memory of ours is lent.
pub(crate) const NO_STREAM: u64 = u64::MAX;

/// The handle of the legacy default stream; 0 is it, too.
const LEGACY: u64 = 1;

/// The address of no type.
const NO_TYPE: usize = 0;

/// How deep tuples and objects may be nested: an object may hold itself.
const MAX_DEPTH: usize = 100;

impl Arguments {
    /// Those of a launch that is recorded.
    pub(crate) fn in_no_stream() -> Self {
        Self { order: NO_STREAM, ..Self::default() }
    }

    /// Forgets the last launch's arguments.
    pub(crate) fn clear(&mut self) {
        self.key.clear();
        self.cells.clear();
        self.hosts.clear();
        self.in_place.clear();
        self.overlapping.clear();
        self.tensors.clear();
        self.managed.clear();
        self.producers.clear();
        self.is_ordered = false;
        self.work_streams.clear();
        self.last_query = None;
        self.has_cupys = false;
        self.stream = None;
        self.lent.clear();
        self.param = 0;
        self.hint = None;
        self.depth = 0;
    }

    /// The handle of the stream, no default one, that the producers of all arrays work in, if no array is ordered with another.
    pub(crate) fn common_stream(&self) -> Option<u64> {
        let mut streams = self.producers.iter().chain(&self.work_streams);
        let first = *streams.next()?;
        (!self.is_ordered && first > LEGACY && streams.all(|stream| *stream == first)).then_some(first)
    }

    /// The assumptions that are likely to hold for the launch, whatever its kernel does with the arrays: for a
    /// compilation now. `small` and `warps` are always likely; the caller passes `nonneg`.
    pub(crate) fn likely(&self, nonneg: bool) -> Assumptions {
        let in_place = self.in_place.iter().map(|place| place.span(&self.cells));
        let mut spans: Vec<_> = in_place.chain(self.hosts.iter().map(|host| host.array.span())).collect();
        spans.retain(|span| !span.is_empty());
        spans.sort_by_key(|span| span.start);
        let disjoint = spans.iter().zip(spans.iter().skip(1)).all(|(one, next)| one.end <= next.start);
        // A copied array is aligned in its buffer.
        let is_aligned = |place: &InPlace| self.cells.get(place.cell).is_some_and(|address| address % ALIGNED == 0);
        Assumptions { small: true, nonneg, disjoint, aligned: self.in_place.iter().all(is_aligned), warps: true }
    }

    /// Adds memory that the kernel's code names, where it is not freed in the launch's own order.
    pub(crate) fn lend(&mut self, memory: &[(u64, Arc<dyn Buffer>)]) {
        self.lent.extend(memory.iter().filter(|(order, _)| *order != self.order).map(|(_, buffer)| Arc::clone(buffer)));
    }

    /// Adds all arguments of a call.
    ///
    /// # Errors
    ///
    /// The number of the argument that cannot be passed, and why.
    pub(crate) fn push_all(&mut self, args: &Bound<'_, PyTuple>) -> Result<(), (usize, PyErr)> {
        self.key.reserve(args.len());
        self.cells.reserve(2 * args.len());
        for (param, arg) in args.iter_borrowed().enumerate() {
            if !self.push_another_number(&arg) {
                self.param = param;
                self.push(&arg).map_err(|error| (param, error))?;
            }
        }
        Ok(())
    }

    /// Finds out how an argument is passed, which is in `last` then.
    #[inline]
    fn find_adapter(&mut self, arg: &Bound<'_, PyAny>) -> PyResult<()> {
        let address = arg.get_type_ptr() as usize;
        if self.last.0 != address {
            let (adapter, is_cached) = Adapter::of(arg)?;
            self.last = (if is_cached { address } else { NO_TYPE }, adapter);
        }
        Ok(())
    }

    /// Adds a number of the type of the last argument, without much ado: there may be hundreds. `false` if it is none.
    #[inline]
    fn push_another_number(&mut self, arg: &Bound<'_, PyAny>) -> bool {
        if self.last.0 != arg.get_type_ptr() as usize {
            return false;
        }
        let (number, (low, high)) = match self.last.1 {
            Adapter::Plain(number) => (number, scalar::cells(arg, number)),
            Adapter::Float => (Number::F64, (scalar::float(arg).to_bits(), 0)),
            Adapter::Int => match scalar::int(arg) {
                Ok(Some(int)) => (Number::I64, (int as u64, 0)),
                Ok(None) | Err(_) => return false,
            },
            Adapter::Bool => match arg.is_truthy() {
                Ok(is_true) => (Number::BOOL, (is_true.into(), 0)),
                Err(_) => return false,
            },
            Adapter::DeviceArray
            | Adapter::Complex
            | Adapter::None
            | Adapter::Tuple
            | Adapter::HostArray(_)
            | Adapter::Number(_)
            | Adapter::Scalar(_)
            | Adapter::Text
            | Adapter::Object(_)
            | Adapter::Hint
            | Adapter::Exchange(_)
            | Adapter::Cupy(_)
            | Adapter::Foreign
            | Adapter::Other => return false,
        };
        self.push_number(number, low, high);
        true
    }

    /// Adds one argument.
    pub(crate) fn push(&mut self, arg: &Bound<'_, PyAny>) -> PyResult<()> {
        self.find_adapter(arg)?;
        match self.last.1 {
            Adapter::DeviceArray => self.push_device_array(arg.py(), arg.cast::<DeviceArray>()?.get()),
            Adapter::Float => {
                self.push_number(Number::F64, scalar::float(arg).to_bits(), 0);
                Ok(())
            }
            Adapter::Int => self.push_int(arg),
            Adapter::Bool => {
                self.push_number(Number::BOOL, arg.is_truthy()?.into(), 0);
                Ok(())
            }
            Adapter::Complex => {
                let complex = arg.cast::<PyComplex>()?;
                self.push_number(Number::C128, complex.real().to_bits(), complex.imag().to_bits());
                Ok(())
            }
            Adapter::None => {
                self.key.push(key::none());
                Ok(())
            }
            Adapter::Tuple => self.push_tuple(arg.cast::<PyTuple>()?),
            Adapter::HostArray(Subclass::No) => self.push_host_array(arg),
            Adapter::HostArray(Subclass::Yes) => self.push_array_of_subclass(arg),
            Adapter::Plain(number) => {
                let (low, high) = scalar::cells(arg, number);
                self.push_number(number, low, high);
                Ok(())
            }
            Adapter::Number(number) => self.push_numpy_number(arg, number),
            Adapter::Scalar(kind) => self.push_scalar(arg, kind),
            Adapter::Text => self.push_text(arg),
            Adapter::Object(class) => self.push_object(arg, class),
            Adapter::Hint => {
                let hint = arg.cast::<CopyHint>()?.get();
                hint.check(arg.py())?;
                self.hint = Some((hint.copy_in, hint.copy_out));
                let pushed = self.push(hint.array.bind(arg.py()));
                self.hint = None;
                pushed
            }
            Adapter::Exchange(exchange) => self.push_exchanged(arg, exchange),
            Adapter::Cupy(cupy) => self.push_cupys(arg, cupy),
            Adapter::Foreign | Adapter::Other => self.push_other(arg),
        }
    }

    /// An array of a class that is derived from NumPy's.
    fn push_array_of_subclass(&mut self, arg: &Bound<'_, PyAny>) -> PyResult<()> {
        if arg.hasattr(intern!(arg.py(), "_sharedmask"))? {
            return Err(PyTypeError::new_err("masked arrays are not supported; pass `.data` and `.mask`"));
        }
        // NumPy's array in memory that the device reaches: see `weft/cuda/_memory/mapped.py`.
        let shared = arg.getattr_opt(intern!(arg.py(), "_weft_device_array"))?;
        if let Some(array) = shared.as_ref().and_then(|shared| shared.cast::<DeviceArray>().ok()) {
            return self.push_device_array(arg.py(), array.get());
        }
        self.push_host_array(arg)
    }

    fn push_numpy_number(&mut self, arg: &Bound<'_, PyAny>, number: Number) -> PyResult<()> {
        let (low, high) = bits(number, numpy::value(arg, number)?);
        self.push_number(number, low, high);
        Ok(())
    }

    /// A scalar of NumPy's that is no number of NumPy's own.
    fn push_scalar(&mut self, arg: &Bound<'_, PyAny>, kind: ScalarKind) -> PyResult<()> {
        let py = arg.py();
        match kind {
            ScalarKind::Text => return self.push_text(arg),
            ScalarKind::BFloat16 => return self.push_numpy_number(arg, Number::BF16),
            ScalarKind::Void => {
                if !arg.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "names"))?.is_none() {
                    return self.push_record(arg);
                }
            }
            ScalarKind::Time => {
                if let Some((dtype, count)) = numpy::import(py)?.time(arg)? {
                    self.key.push(key::value(dtype));
                    self.cells.push(count as u64);
                    return Ok(());
                }
            }
            ScalarKind::Other => {}
        }
        let name = arg.get_type().name()?;
        Err(PyTypeError::new_err(format!("NumPy scalars of type {name} are not supported")))
    }

    fn push_tuple(&mut self, tuple: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.key.push(key::tuple(tuple.len()));
        self.deeper(|this| tuple.iter_borrowed().try_for_each(|item| this.push(&item)))
    }

    fn deeper(&mut self, push: impl FnOnce(&mut Self) -> PyResult<()>) -> PyResult<()> {
        if self.depth >= MAX_DEPTH {
            return Err(PyValueError::new_err(format!("it is nested more than {MAX_DEPTH} levels deep")));
        }
        self.depth += 1;
        let pushed = push(self);
        self.depth -= 1;
        pushed
    }

    /// A named tuple or dataclass, field by field; an enum's member as its value.
    fn push_object(&mut self, arg: &Bound<'_, PyAny>, class: &'static KnownClass) -> PyResult<()> {
        if class.kind.is_enum() {
            return self.push_member(arg, class);
        }
        self.key.extend([key::object(class.id), key::tuple(class.names.len())]);
        let shown = self.depth < 4;
        let in_field = |index: usize, error: PyErr| {
            if !shown {
                return error;
            }
            let name = class.id.get().fields.get(index).map_or("", String::as_str);
            errors::prefixed(arg.py(), &format!("`{name}` of {}", class.id), &error)
        };
        self.deeper(|this| {
            if let Ok(tuple) = arg.cast::<PyTuple>() {
                if tuple.len() != class.names.len() {
                    let message = format!(
                        "{} {} has {} items, not {}",
                        weft_artifact::article(&class.id.to_string()),
                        class.id,
                        class.names.len(),
                        tuple.len()
                    );
                    return Err(PyTypeError::new_err(message));
                }
                let mut items = tuple.iter_borrowed().enumerate();
                return items.try_for_each(|(index, item)| this.push(&item).map_err(|error| in_field(index, error)));
            }
            class.names.iter().enumerate().try_for_each(|(index, name)| {
                let pushed = arg.getattr(name.bind(arg.py())).and_then(|item| this.push(&item));
                pushed.map_err(|error| in_field(index, error))
            })
        })
    }

    fn push_member(&mut self, arg: &Bound<'_, PyAny>, class: &'static KnownClass) -> PyResult<()> {
        let value = arg.getattr(intern!(arg.py(), "value"))?;
        self.key.push(key::member(class.id));
        let shown = self.depth < 4;
        self.deeper(|this| this.push(&value)).map_err(|error| {
            let member = arg.str().map_or_else(|_| class.id.to_string(), |text| text.to_string());
            if shown { errors::prefixed(arg.py(), &format!("the value of {member}"), &error) } else { error }
        })
    }

    /// Arguments that are inspected one by one: an array of another library, an object of a dataclass, a dtype, a
    /// buffer.
    fn push_other(&mut self, arg: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(interface) = arg.getattr_opt(intern!(arg.py(), "__cuda_array_interface__"))? {
            return self.push_interface(arg, &interface);
        }
        if let Some(method) = arg.getattr_opt(intern!(arg.py(), "__dlpack__"))? {
            return self.push_dlpack(arg, &method);
        }
        if let Some(class) = classes::find(&arg.get_type())? {
            return self.push_object(arg, class);
        }
        if let Some(dtype) = class(arg)? {
            self.key.push(key::class(dtype));
            return Ok(());
        }
        self.push_host_array(arg)
    }

    #[inline]
    fn push_number(&mut self, number: Number, low: u64, high: u64) {
        self.key.push(key::value(number.into()));
        self.cells.extend([low, high]);
    }

    fn push_int(&mut self, arg: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(int) = scalar::int(arg)? {
            self.push_number(Number::I64, int as u64, 0);
        } else if let Ok(int) = arg.extract::<u64>() {
            self.push_number(Number::U64, int, 0);
        } else {
            return Err(errors::too_large(arg));
        }
        Ok(())
    }

    fn push_device_array(&mut self, py: Python<'_>, array: &DeviceArray) -> PyResult<()> {
        let key = array.key.ok_or_else(|| array.no_key())?;
        let is_peer = array.device != devices::current_id();
        if is_peer && !self.reaches(py, array)? {
            return Err(on_another_device(py, array.device));
        }
        self.is_ordered = true;
        // Another device's stream is another one, whatever its number.
        if let Some((order, buffer)) = &array.lent
            && (*order != self.order || is_peer)
        {
            self.lent.push(Arc::clone(buffer));
        }
        self.key.push(key);
        self.in_place.push(InPlace { param: self.param, cell: self.cells.len(), array: array.array });
        self.cells.extend_from_slice(&array.cells);
        Ok(())
    }

    /// Whether kernels of the current device can access an array of another one: peer access was enabled. A later
    /// launch does not record its use of the memory, and is refused.
    fn reaches(&self, py: Python<'_>, array: &DeviceArray) -> PyResult<bool> {
        let executor = devices::current(py)?;
        Ok(self.order != NO_STREAM && executor.reaches(array.device) && array.is_open_to(&*executor))
    }

    fn push_host_array(&mut self, arg: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(array) = HostArray::open(arg)? else {
            if arg.hasattr(intern!(arg.py(), "__array_interface__"))? {
                return self.push_array_interface(arg);
            }
            return Err(errors::not_an_argument(arg));
        };
        self.push_opened(array, arg.clone().unbind());
        Ok(())
    }

    /// An array of this process, and its object.
    fn push_opened(&mut self, array: HostArray, object: Py<PyAny>) {
        self.key.push(key::array(array.array_type()));
        let cell = self.cells.len();
        self.cells.push(array.address());
        self.cells.extend(array.shape().iter().map(|extent| *extent as u64));
        self.cells.extend(array.strides().iter().map(|stride| *stride as u64));
        let (param, hint) = (self.param, self.hint);
        self.hosts.push(HostArgument { array, object, cell, param, is_array: true, hint });
    }

    /// A text: its letters on the device, by address.
    fn push_text(&mut self, arg: &Bound<'_, PyAny>) -> PyResult<()> {
        let kind = if arg.is_instance_of::<PyString>() { 'U' } else { 'S' };
        // NumPy has no elements for the empty one.
        let dtype = format!("{kind}{}", arg.len()?.max(1));
        let numpy = arg.py().import("numpy")?;
        let object = numpy.call_method1(intern!(arg.py(), "array"), (arg, dtype))?;
        self.push_place(&object)
    }

    /// A record: its copy on the device, by address. NumPy's array of no dimensions has the record's own memory.
    fn push_record(&mut self, arg: &Bound<'_, PyAny>) -> PyResult<()> {
        let object = arg.py().import("numpy")?.call_method1(intern!(arg.py(), "asarray"), (arg,))?;
        self.push_place(&object)
    }

    /// The element of an array of no dimensions, by address.
    fn push_place(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(array) = HostArray::open(object)? else {
            return Err(errors::not_an_argument(object));
        };
        self.key.push(key::record(array.dtype));
        let cell = self.cells.len();
        self.cells.push(array.address());
        let object = object.clone().unbind();
        let (param, hint) = (self.param, self.hint);
        self.hosts.push(HostArgument { array, object, cell, param, is_array: false, hint });
        Ok(())
    }
}

fn on_another_device(py: Python<'_>, there: u32) -> PyErr {
    let current = devices::current_id();
    errors::launch(py, &format!("the array is on device {there}, but the current device is {current}"))
}

/// The cells of a number: two's complement, or the bits of one or two floats.
pub(crate) fn bits(number: Number, value: numpy::Value) -> (u64, u64) {
    let part = |real: f64| number.part().float_bits(real);
    match number {
        Number::Real(Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64) => (part(value.real), 0),
        Number::Complex(Complex::C64 | Complex::C128) => (part(value.real), part(value.imag)),
        Number::Real(
            Scalar::Bool
            | Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64,
        ) => (value.int as u64, 0),
    }
}

/// The dtype that an argument is: NumPy's, weft's or one of `ml_dtypes`.
fn class(arg: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    if let Ok(ty) = arg.cast::<Type>() {
        return Ok(ty.get().dtype_itself());
    }
    let Some(classes) = numpy::loaded(arg.py()) else { return Ok(None) };
    if classes.is_dtype(arg) {
        return numpy::of_dtype(arg);
    }
    Ok(classes.number_of_type(arg).map(DType::from).or_else(|| numpy::of_ml_dtypes(arg)))
}

/// The weft type of anything that a kernel takes, as `typeof` gives it.
#[pyfunction]
#[pyo3(signature = (value))]
pub(crate) fn typeof_value(value: &Bound<'_, PyAny>) -> PyResult<Type> {
    let mut arguments = Arguments::default();
    arguments.push(value)?;
    key::decode(&arguments.key)
        .pop()
        .map(Type::of)
        .ok_or_else(|| PyTypeError::new_err(format!("{} has no type in a kernel", value.get_type())))
}
