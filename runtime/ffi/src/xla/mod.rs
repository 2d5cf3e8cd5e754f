//! Operators of JAX: one handler for all of them on each platform.
//!
//! The attributes of a call say which operator it is, and how its arguments correspond to the kernel's parameters:
//!
//! | attribute | what |
//! |---|---|
//! | `weft` | the operator's number, a digest of its code: the same in every process |
//! | `rank` | the dimensions of the first array without the batch: arrays with more have a batch in front |
//! | `s3` | the value of parameter 3, a number |
//! | `z3` | parameter 3 is a result that starts with zeros: they are an argument, too |
//! | `c3` | parameter 3 is an array of 64-bit integers, which are two numbers of 32 bits each to JAX |
//! | `m3` | parameter 3 is [scratch memory](scratch): its argument says how much |
//!
//! The arguments are the arrays that the kernel reads and the numbers without an attribute; the results are the arrays
//! that it writes; both in the order of the parameters. XLA gives an array that a kernel reads and writes the memory of
//! its argument.
#![expect(unsafe_code, reason = "is called by XLA")]

mod abi;
mod scratch;

use std::{
    collections::HashMap,
    ffi::{CString, c_void},
    mem::size_of,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};

use weft_artifact::{Number, Scalar};

use self::{
    abi::{
        Api, Attributes, Buffer, ErrorArgs, Frame, METADATA, MetadataExtension, OrdinalArgs, ScalarAttribute, Span,
        StreamArgs,
    },
    scratch::Memory,
};
use crate::{Call, Device, Kind, Operator, Role, Tensor, Value, item};

/// The version of the interface that [`abi`] follows: XLA refuses a handler that is newer than itself.
const VERSION: (i32, i32) = (0, 3);
/// The calls can be recorded in CUDA graphs: they only launch, in the given stream.
const COMMAND_BUFFER_COMPATIBLE: u32 = 1;
/// `XLA_FFI_Error_Code`
const INVALID_ARGUMENT: i32 = 3;
const NOT_FOUND: i32 = 5;
const RESOURCE_EXHAUSTED: i32 = 8;

static OPERATORS: LazyLock<RwLock<HashMap<u64, Arc<dyn Operator>>>> = LazyLock::new(RwLock::default);

/// Adds an operator under its number.
pub fn register(number: u64, operator: Arc<dyn Operator>) {
    OPERATORS.write().unwrap_or_else(PoisonError::into_inner).insert(number, operator);
}

/// The addresses of the handlers for the CPU and for CUDA, and of that for CUDA of calls that wait for scratch memory.
pub fn handlers() -> [usize; 3] {
    [on_cpu as *const () as usize, on_cuda as *const () as usize, on_cuda_waiting as *const () as usize]
}

unsafe extern "C" fn on_cpu(frame: *mut Frame) -> *mut c_void {
    // SAFETY: XLA calls it with a frame.
    unsafe { handle(frame, false, COMMAND_BUFFER_COMPATIBLE) }
}

unsafe extern "C" fn on_cuda(frame: *mut Frame) -> *mut c_void {
    // SAFETY: XLA calls it with a frame.
    unsafe { handle(frame, true, COMMAND_BUFFER_COMPATIBLE) }
}

unsafe extern "C" fn on_cuda_waiting(frame: *mut Frame) -> *mut c_void {
    // SAFETY: XLA calls it with a frame.
    unsafe { handle(frame, true, 0) }
}

/// Why a call fails.
enum Failure {
    /// A code and a message.
    Message(i32, String),
    /// An error that XLA has made.
    Xla(*mut c_void),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Message(INVALID_ARGUMENT, message)
    }
}

/// # Safety
///
/// The frame is XLA's, and lives until the call returns.
unsafe fn handle(frame: *mut Frame, is_cuda: bool, traits: u32) -> *mut c_void {
    // SAFETY: by this function's contract.
    let Some(frame) = (unsafe { frame.as_ref() }) else { return ptr::null_mut() };
    if describe(frame, traits) {
        return ptr::null_mut();
    }
    // SAFETY: a call has the functions of XLA.
    let Some(api) = (unsafe { frame.api.as_ref() }) else { return ptr::null_mut() };
    let called = catch_unwind(AssertUnwindSafe(|| call(frame, api, is_cuda)));
    let (code, message) = match called {
        Ok(Ok(())) => return ptr::null_mut(),
        Ok(Err(Failure::Xla(error))) => return error,
        Ok(Err(Failure::Message(code, message))) => (code, message),
        Err(_) => (INVALID_ARGUMENT, "an internal error of weft".to_owned()),
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let mut args =
        ErrorArgs { size: size_of::<ErrorArgs>(), extension: ptr::null_mut(), message: message.as_ptr(), code };
    // SAFETY: XLA's function, which copies the message.
    unsafe { (api.create_error)(&raw mut args) }
}

/// Answers the query for the handler's version and traits; false if the frame is a call.
fn describe(frame: &Frame, traits: u32) -> bool {
    let mut extension = frame.extension;
    // SAFETY: the list of extensions lives as long as the frame.
    while let Some(known) = unsafe { extension.as_ref() } {
        if known.kind == METADATA {
            // SAFETY: an extension of this kind has a pointer to the metadata.
            let metadata = unsafe { (*extension.cast::<MetadataExtension>()).metadata };
            // SAFETY: versions before 0.2 give no functions here.
            let minor = unsafe { frame.api.as_ref() }.map_or(1, |api| api.version.minor.min(VERSION.1));
            // SAFETY: the metadata is for the handler to fill.
            if let Some(metadata) = unsafe { metadata.as_mut() } {
                metadata.version.major = VERSION.0;
                metadata.version.minor = minor;
                metadata.traits = traits;
            }
            return true;
        }
        extension = known.next;
    }
    false
}

/// The attribute of a name.
fn attribute<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a ScalarAttribute> {
    (0..attributes.size as usize).find_map(|index| {
        // SAFETY: the frame has as many names as its count says, each of which points to a span.
        let span: &Span = unsafe { (*attributes.names.add(index)).as_ref() }?;
        // SAFETY: the span's bytes live as long as the frame.
        let known = unsafe { slice::from_raw_parts(span.start, span.len) };
        if known != name.as_bytes() {
            return None;
        }
        // SAFETY: the frame has as many items as its count says. Those that weft writes are all scalars.
        unsafe { (*attributes.items.add(index)).cast::<ScalarAttribute>().as_ref() }
    })
}

/// The integer of an attribute of 64 bits.
fn integer(attributes: &Attributes, name: &str) -> Option<i64> {
    let scalar = attribute(attributes, name)?;
    // SAFETY: the attributes of weft's own names have 64 bits.
    Some(unsafe { scalar.value.cast::<i64>().read_unaligned() })
}

/// The number type of XLA's code, `XLA_FFI_DataType`.
fn number(code: i32) -> Option<Number> {
    Some(match code {
        1 => Number::BOOL,
        2 => Number::I8,
        3 => Number::I16,
        4 => Number::I32,
        5 => Number::I64,
        6 => Number::U8,
        7 => Number::U16,
        8 => Number::U32,
        9 => Number::U64,
        10 => Number::F16,
        11 => Number::F32,
        12 => Number::F64,
        15 => Number::C64,
        16 => Number::BF16,
        18 => Number::C128,
        _ => return None,
    })
}

/// A value of a number, at an address of this process.
fn scalar<'a>(kind: Kind, code: i32, address: *const c_void) -> Option<Value<'a>> {
    macro_rules! read {
        ($type:ty) => {{
            // SAFETY: the caller has a value of this type there.
            unsafe { address.cast::<$type>().read_unaligned() }
        }};
    }
    let number = number(code)?;
    let (int, float) = match number {
        Number::BOOL => (i64::from(read!(u8)), f64::from(read!(u8))),
        Number::I8 => (i64::from(read!(i8)), f64::from(read!(i8))),
        Number::I16 => (i64::from(read!(i16)), f64::from(read!(i16))),
        Number::I32 => (i64::from(read!(i32)), f64::from(read!(i32))),
        Number::I64 => (read!(i64), read!(i64) as f64),
        Number::U8 => (i64::from(read!(u8)), f64::from(read!(u8))),
        Number::U16 => (i64::from(read!(u16)), f64::from(read!(u16))),
        Number::U32 => (i64::from(read!(u32)), f64::from(read!(u32))),
        Number::U64 => (read!(u64) as i64, read!(u64) as f64),
        Number::F32 => (read!(f32) as i64, f64::from(read!(f32))),
        Number::F64 => (read!(f64) as i64, read!(f64)),
        Number::Real(half @ (Scalar::F16 | Scalar::BF16)) => {
            let value = half.float_of_bits(read!(u16).into());
            (value as i64, value)
        }
        Number::Complex(_) => return None,
    };
    Some(match kind {
        Kind::Int => Value::Int(int),
        Kind::Float => Value::Float(float),
        Kind::Bool => Value::Bool(int != 0),
        Kind::Tensor => return None,
    })
}

/// An array of the frame, its leading dimensions of a batch made one.
fn tensor<'a>(buffer: &Buffer, batch: usize, shape: &'a mut Vec<i64>) -> Option<Tensor<'a>> {
    let dims = if buffer.rank > 0 {
        // SAFETY: a buffer of XLA has as many extents as its rank.
        unsafe { slice::from_raw_parts(buffer.dims, buffer.rank as usize) }
    } else {
        &[]
    };
    let (leading, rest) = dims.split_at_checked(batch)?;
    if batch > 0 {
        shape.push(leading.iter().product());
    }
    shape.extend_from_slice(rest);
    Some(Tensor { address: buffer.data as u64, shape, strides: None, number: number(buffer.dtype)? })
}

fn call(frame: &Frame, api: &Api, is_cuda: bool) -> Result<(), Failure> {
    let attributes = &frame.attributes;
    let id = integer(attributes, "weft").ok_or_else(|| "weft: the call has no attribute `weft`".to_owned())?;
    let known = OPERATORS.read().unwrap_or_else(PoisonError::into_inner).get(&(id as u64)).cloned();
    let operator = known.ok_or_else(|| {
        let message = "weft: this process has not loaded the kernel of this call: call `as_jax_call` for it first";
        Failure::Message(NOT_FOUND, message.to_owned())
    })?;
    let (name, params) = (operator.name(), operator.params());
    let rank = integer(attributes, "rank").unwrap_or_default();
    let mut args = buffers(&frame.args);
    let mut results = buffers(&frame.results);
    let missing = || format!("{name}: the call has fewer arrays than the kernel has parameters");
    let bad = |param: usize| {
        let param = params.get(param).map_or("", |param| param.name.as_str());
        format!("{name}: `{param}` has elements that kernels cannot have")
    };
    // The first array says how many dimensions the batch has.
    let first = params.iter().position(|param| param.kind == Kind::Tensor);
    let sample = match first.and_then(|first| params.get(first)).map(|param| param.role) {
        Some(Role::Result) => buffers(&frame.results).next(),
        Some(Role::Read | Role::Written) | None => {
            let before = params.iter().take(first.unwrap_or_default()).enumerate();
            let numbers = before.filter(|(index, _)| attribute(attributes, &format!("s{index}")).is_none()).count();
            buffers(&frame.args).nth(numbers)
        }
    };
    let batch = sample.map_or(0, |buffer| (buffer.rank - rank).max(0) as usize);
    let mut shapes = vec![Vec::new(); params.len()];
    let mut values = Vec::with_capacity(params.len());
    let (mut batched, mut items, mut counted) = (0_u64, 1, None);
    for ((index, param), shape) in params.iter().enumerate().zip(&mut shapes) {
        if param.kind != Kind::Tensor {
            if let Some(constant) = attribute(attributes, &format!("s{index}")) {
                values.push(scalar(param.kind, constant.dtype, constant.value).ok_or_else(|| bad(index))?);
                continue;
            }
            let buffer = args.next().ok_or_else(missing)?;
            // The CPU reads the number of a single launch here; other kernels read it from memory.
            values.push(if is_cuda || batch > 0 {
                Value::Tensor(tensor(buffer, batch, shape).ok_or_else(|| bad(index))?)
            } else {
                scalar(param.kind, buffer.dtype, buffer.data).ok_or_else(|| bad(index))?
            });
            if batch > 0 {
                batched |= 1 << index;
            }
            continue;
        }
        if attribute(attributes, &format!("m{index}")).is_some() {
            counted = Some((index, args.next().ok_or_else(missing)?));
            values.push(Value::Missing);
            continue;
        }
        let buffer = match param.role {
            Role::Read => args.next().ok_or_else(missing)?,
            Role::Result if attribute(attributes, &format!("z{index}")).is_none() => {
                results.next().ok_or_else(missing)?
            }
            Role::Written | Role::Result => {
                let (given, result) = (args.next().ok_or_else(missing)?, results.next().ok_or_else(missing)?);
                if given.data != result.data {
                    return Err(format!("{name}: XLA has not aliased `{}` with its result", param.name).into());
                }
                result
            }
        };
        let tensor = match attribute(attributes, &format!("c{index}")) {
            Some(_) => Some(scratch::integers(buffer, batch, shape)),
            None => tensor(buffer, batch, shape),
        };
        let tensor = tensor.ok_or_else(|| bad(index))?;
        if batch > 0 {
            batched |= 1 << index;
            items = tensor.shape.first().copied().unwrap_or_default();
        }
        values.push(Value::Tensor(tensor));
    }
    let (stream, device) = if is_cuda { queue(frame, api)? } else { (0, Device::Host) };
    let mut memory = None;
    let mut extent = Vec::new();
    if let Some((index, counts)) = counted {
        let first = if batch > 0 { item(&values, batched, 0) } else { values.clone() };
        let call = Call { values: &first, device, stream };
        let bytes = operator.scratch_bytes(&call, counts.data as u64, scratch::length(counts))?;
        let memory = memory.insert(Memory::allocate(name, bytes, is_cuda.then_some((api, frame)))?);
        extent.push(memory.integers());
        values[index] = Value::Tensor(memory.tensor(&extent));
    }
    let call = Call { values: &values, device, stream };
    let launched = if batch > 0 { operator.launch_batch(&call, batched, items) } else { operator.launch(&call) };
    launched.map_err(Failure::from)
}

/// The buffers of a list.
fn buffers<'a>(list: &abi::List) -> impl Iterator<Item = &'a Buffer> + use<'a> {
    let items = if list.size > 0 {
        // SAFETY: the list has as many pointers as its count says.
        unsafe { slice::from_raw_parts(list.items, list.size as usize) }
    } else {
        &[]
    };
    // SAFETY: each points to a buffer, which lives as long as the frame.
    items.iter().filter_map(|item| unsafe { item.cast::<Buffer>().as_ref() })
}

/// The stream of a call, and its device.
fn queue(frame: &Frame, api: &Api) -> Result<(u64, Device), Failure> {
    let mut stream = StreamArgs {
        size: size_of::<StreamArgs>(),
        extension: ptr::null_mut(),
        context: frame.context,
        stream: ptr::null_mut(),
    };
    // SAFETY: XLA's function, with the frame's context.
    let error = unsafe { (api.stream)(&raw mut stream) };
    if !error.is_null() {
        return Err(Failure::Xla(error));
    }
    let mut ordinal =
        OrdinalArgs { size: size_of::<OrdinalArgs>(), extension: ptr::null_mut(), context: frame.context, ordinal: 0 };
    if api.size >= size_of::<Api>()
        && let Some(get) = api.ordinal
    {
        // SAFETY: as above.
        let error = unsafe { get(&raw mut ordinal) };
        if !error.is_null() {
            return Err(Failure::Xla(error));
        }
    }
    Ok((stream.stream as u64, Device::Gpu(ordinal.ordinal.max(0) as u32)))
}
