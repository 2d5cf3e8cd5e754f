//! One call of an operator by libtorch: words to values, the launch, results to words.
#![expect(unsafe_code, reason = "calls functions of libtorch, which own what the handles refer to")]

use std::{ptr, slice};

use super::{
    Slot,
    library::{Functions, Handle, shown},
};
use crate::{Call, Device, Kind, Operator, Param, ResultSpec, Role, Tensor, Value, item};

/// A tensor that the callee owns.
struct Owned {
    handle: Handle,
    functions: &'static Functions,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: it is owned, and is not used after this.
        unsafe { (self.functions.delete)(self.handle) };
    }
}

/// A tensor's properties, and its device: libtorch's type and number.
struct Seen<'a> {
    tensor: Tensor<'a>,
    device: (i32, i32),
}

impl Owned {
    fn see(&self, operator: &dyn Operator, param: &Param) -> Result<Seen<'_>, String> {
        let functions = self.functions;
        let mut failed = 0;
        macro_rules! read {
            ($function:ident, $initial:expr) => {{
                let mut value = $initial;
                // SAFETY: a live tensor, and a place for the value.
                failed |= unsafe { (functions.$function)(self.handle, &raw mut value) };
                value
            }};
        }
        let mut defined = true;
        if let Some(is_defined) = functions.is_defined {
            // SAFETY: a live handle, and a place for the answer.
            failed |= unsafe { is_defined(self.handle, &raw mut defined) };
        }
        if !defined {
            return Err(format!("{}: `{}` is None: pass a tensor", operator.name(), param.name));
        }
        let device = (read!(device_type, 0), read!(device_index, 0));
        if device.0 != functions.cpu && device.0 != functions.cuda {
            return Err(format!(
                "{}: `{}` is neither in the CPU's memory nor on a CUDA device: move it with `.to(\"cpu\")` or \
                 `.to(\"cuda\")`",
                operator.name(),
                param.name
            ));
        }
        let (address, dim) = (read!(data, ptr::null_mut()), read!(dim, 0));
        let (sizes, strides) = (read!(sizes, ptr::null()), read!(strides, ptr::null()));
        let code = read!(dtype, 0);
        if failed != 0 {
            return Err(format!("{}: `{}` has no memory that a kernel can use", operator.name(), param.name));
        }
        let number = functions.number(code).ok_or_else(|| {
            format!(
                "{}: `{}` has elements of a type that kernels cannot have: convert it with `.to(torch.float32)`",
                operator.name(),
                param.name
            )
        })?;
        let tensor = Tensor {
            address: address as u64,
            shape: numbers(sizes, dim as usize),
            strides: Some(numbers(strides, dim as usize)),
            number,
        };
        Ok(Seen { tensor, device })
    }
}

/// The extents or the strides of a tensor.
fn numbers<'a>(first: *const i64, dim: usize) -> &'a [i64] {
    if first.is_null() || dim == 0 {
        return &[];
    }
    // SAFETY: a tensor has a number for each dimension, and keeps them as long as its handle lives: until the call
    // ends.
    unsafe { slice::from_raw_parts(first, dim) }
}

/// The device that all tensors of a call are on.
struct CommonDevice<'a> {
    first: Option<((i32, i32), &'a str)>,
    functions: &'static Functions,
}

impl<'a> CommonDevice<'a> {
    fn add(&mut self, operator: &dyn Operator, param: &'a Param, device: (i32, i32)) -> Result<(), String> {
        let Some((known, first)) = self.first else {
            self.first = Some((device, &param.name));
            return Ok(());
        };
        if known == device {
            return Ok(());
        }
        let (here, there) = (self.shown(known), self.shown(device));
        let name = &param.name;
        Err(format!(
            "{}: `{name}` is on {there}, but `{first}` is on {here}: move it with `{name}.to(\"{here}\")`",
            operator.name()
        ))
    }

    fn shown(&self, device: (i32, i32)) -> String {
        if device.0 == self.functions.cuda { format!("cuda:{}", device.1) } else { "cpu".to_owned() }
    }

    fn place(&self) -> Device {
        match self.first {
            Some(((kind, index), _)) if kind == self.functions.cuda => Device::Gpu(index.max(0) as u32),
            Some(_) | None => Device::Host,
        }
    }
}

/// Runs a call. The first words are the arguments; the results replace them.
///
/// # Errors
///
/// A message that names the operator and the parameter.
pub(super) fn call(slot: &Slot, functions: &'static Functions, words: &mut [u64], inputs: usize) -> Result<(), String> {
    let operator = &*slot.operator;
    let params = operator.params();
    let given = words.get(..inputs).unwrap_or_default();
    let (batch, given) = match given {
        [batched, items, rest @ ..] if slot.is_batched => (Some((*batched, *items as i64)), rest),
        all => (None, all),
    };
    let is_tensor = |param: &Param| param.role != Role::Result && param.kind == Kind::Tensor;
    let mut owned = Vec::with_capacity(params.len());
    let mut arguments = given.iter();
    // All handles are owned from here on, whatever fails.
    for param in params {
        let word = if param.role == Role::Result { None } else { arguments.next() };
        let handle = word.filter(|_| is_tensor(param)).map(|word| *word as Handle);
        owned.push((handle.map(|handle| Owned { handle, functions }), word.copied().unwrap_or_default()));
    }
    let mut device = CommonDevice { first: None, functions };
    let mut values = Vec::with_capacity(params.len());
    for (param, (owned, word)) in params.iter().zip(&owned) {
        values.push(match (owned, param.role, param.kind) {
            (Some(owned), _, _) => {
                let seen = owned.see(operator, param)?;
                device.add(operator, param, seen.device)?;
                Value::Tensor(seen.tensor)
            }
            (None, Role::Result, _) | (None, _, Kind::Tensor) => Value::Missing,
            (None, Role::Read | Role::Written, Kind::Int) => Value::Int(*word as i64),
            (None, Role::Read | Role::Written, Kind::Float) => Value::Float(f64::from_bits(*word)),
            (None, Role::Read | Role::Written, Kind::Bool) => Value::Bool(*word & 1 == 1),
        });
    }
    let place = device.place();
    let stream = stream(functions, place, operator)?;
    let results = allocate(operator, functions, &values, batch, device.first.map(|(device, _)| device))?;
    for (param, result) in &results {
        let described = params.get(*param).ok_or("no such parameter")?;
        if let Some(value) = values.get_mut(*param) {
            *value = Value::Tensor(result.see(operator, described)?.tensor);
        }
    }
    let call = Call { values: &values, device: place, stream };
    match batch {
        None => operator.launch(&call)?,
        Some((batched, items)) => {
            let batched = results.iter().fold(batched, |bits, (param, _)| bits | 1 << param);
            operator.launch_batch(&call, batched, items)?;
        }
    }
    drop(owned);
    for (word, (_, result)) in words.iter_mut().zip(results) {
        *word = result.handle as u64;
        // libtorch owns it from here on.
        std::mem::forget(result);
    }
    Ok(())
}

/// The handle of the stream that torch queues work in.
fn stream(functions: &Functions, place: Device, operator: &dyn Operator) -> Result<u64, String> {
    let Device::Gpu(id) = place else { return Ok(0) };
    let mut stream = ptr::null_mut();
    let status = match functions.current_stream {
        // SAFETY: a place for the handle.
        Some(current) => unsafe { current(id as i32, &raw mut stream) },
        None => 1,
    };
    if status == 0 {
        Ok(stream as u64)
    } else {
        Err(format!("{}: torch does not say which stream is current", operator.name()))
    }
}

/// The arrays that the operator returns, each with its parameter.
fn allocate(
    operator: &dyn Operator,
    functions: &'static Functions,
    values: &[Value<'_>],
    batch: Option<(u64, i64)>,
    device: Option<(i32, i32)>,
) -> Result<Vec<(usize, Owned)>, String> {
    let mut results = Vec::new();
    for (index, param) in operator.params().iter().enumerate().filter(|(_, param)| param.role == Role::Result) {
        let spec = match batch {
            None => operator.result(index, values)?,
            Some((batched, items)) => {
                let mut spec = operator.result(index, &item(values, batched, 0))?;
                spec.shape.insert(0, items);
                spec
            }
        };
        let ResultSpec { shape, number, zeroed } = spec;
        let code = functions
            .code(number)
            .ok_or_else(|| format!("{}: this torch has no {} for `{}`", operator.name(), shown(number), param.name))?;
        let mut strides = vec![1; shape.len()];
        for at in (1..shape.len()).rev() {
            strides[at - 1] = strides[at] * shape[at].max(1);
        }
        let (kind, id) = device.unwrap_or((functions.cpu, 0));
        let mut handle = ptr::null_mut();
        // SAFETY: as many extents and strides as said, and a place for the handle.
        let status = unsafe {
            (functions.empty)(shape.len() as i64, shape.as_ptr(), strides.as_ptr(), code, kind, id, &raw mut handle)
        };
        if status != 0 {
            return Err(format!("{}: torch has no memory for `{}` of shape {shape:?}", operator.name(), param.name));
        }
        let result = Owned { handle, functions };
        // SAFETY: a live tensor.
        if zeroed && unsafe { (functions.zero)(result.handle) } != 0 {
            return Err(format!("{}: torch cannot fill `{}` with zeros", operator.name(), param.name));
        }
        results.push((index, result));
    }
    Ok(results)
}
