//! Captured objects of classes, classes themselves, and arrays of the process and of the device.

use std::sync::Arc;

use pyo3::{prelude::*, types::PyType};
use weft_artifact::{ClassKind, Layout};
use weft_compiler::request::{Captured, CapturedArray, Unsupported};

use super::{Capturer, Jitted, values::unsupported};
use crate::{
    arrays::device_array::DeviceArray,
    devices,
    types::{
        classes::{self, KnownClass},
        numpy,
    },
};

/// The most bytes of an array that becomes part of the code.
const MAX_ARRAY_BYTES: usize = 64 << 20;

/// The attributes of an enum's member that the compiler knows.
const MEMBER_ATTRIBUTES: [&str; 4] = ["value", "name", "_value_", "_name_"];

impl<'py, D: Jitted> Capturer<'py, D> {
    /// An object whose class kernels know; `None` if the kernel reads attributes that the class does not say.
    pub(super) fn object(
        &mut self,
        value: &Bound<'py, PyAny>,
        class: &'static KnownClass,
        chains: &[&str],
        depth: usize,
    ) -> PyResult<Option<Captured>> {
        let py = value.py();
        if class.kind.is_enum() {
            if chains.iter().any(|chain| !MEMBER_ATTRIBUTES.contains(&head(chain))) {
                return Ok(None);
            }
            let name = value.getattr(intern!(py, "_name_"))?;
            let number = self.value(&value.getattr(intern!(py, "value"))?, &[], depth + 1)?;
            let member = name.extract::<&str>().ok().and_then(|name| class.id.get().find(name));
            return Ok(match member {
                Some(member) => Some(Captured::Enum(class.id, member, Box::new(number))),
                // Flags that were joined are no member that the class lists.
                None if class.kind == ClassKind::IntEnum => Some(number),
                None => Some(unsupported(value)),
            });
        }
        let fields = &class.id.get().fields;
        if chains.iter().any(|chain| !fields.iter().any(|field| field == head(chain))) {
            return Ok(None);
        }
        let mut items = Vec::with_capacity(fields.len());
        for (name, field) in class.names.iter().zip(fields) {
            let item = value.getattr(name.bind(py))?;
            let rests: Vec<&str> =
                chains.iter().filter(|chain| head(chain) == field).filter_map(|chain| rest(chain)).collect();
            items.push(self.value(&item, &rests, depth + 1)?);
        }
        let items = Captured::Struct(class.id, items);
        Ok(Some(if items.leaves() > weft_artifact::MAX_LEAVES { Captured::too_large() } else { items }))
    }

    /// A class, with the values of its members or the defaults of its fields; `None` as for objects.
    pub(super) fn class(
        &mut self,
        class: &Bound<'py, PyType>,
        chains: &[&str],
        depth: usize,
    ) -> PyResult<Option<Captured>> {
        let Some(known) = classes::find(class)? else { return Ok(None) };
        let (py, fields) = (class.py(), &known.id.get().fields);
        if !(chains.is_empty()
            || known.kind.is_enum() && chains.iter().all(|chain| known.id.get().find(head(chain)).is_some()))
        {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(fields.len());
        for field in fields {
            let value = match known.kind {
                ClassKind::Enum | ClassKind::IntEnum => {
                    Some(class.getattr("__members__")?.get_item(field)?.getattr(intern!(py, "value"))?)
                }
                ClassKind::NamedTuple => class
                    .getattr_opt("_field_defaults")?
                    .map(|defaults| defaults.call_method1("get", (field, self.missing()?)))
                    .transpose()?,
                ClassKind::Dataclass => {
                    Some(class.getattr("__dataclass_fields__")?.get_item(field)?.getattr("default")?)
                }
            };
            let missing = self.missing()?;
            let value = value.filter(|value| !value.is(&missing));
            values.push(value.map(|value| self.value(&value, &[], depth + 1)).transpose()?);
        }
        Ok(Some(Captured::Class(known.id, values)))
    }

    /// The marker for a missing default.
    fn missing(&self) -> PyResult<Bound<'py, PyAny>> {
        self.py.import("dataclasses")?.getattr("MISSING")
    }

    /// An array on the device, by its address. The caller that compiles holds it.
    pub(super) fn device_array(&mut self, value: &Bound<'py, DeviceArray>) -> Captured {
        let array = value.get();
        let current = devices::current_id();
        if array.key.is_none() {
            return Captured::Unsupported(Unsupported::Array, array.no_key().to_string());
        }
        if array.device != current {
            let what = format!("array on device {}, while the current device is {current}", array.device);
            return Captured::Unsupported(Unsupported::Array, what);
        }
        self.kept.push(value.clone().into_any().unbind());
        let [address, rest @ ..] = &*array.cells else { return unsupported(value) };
        let (shape, strides) = rest.split_at(rest.len() / 2);
        let strides = strides.iter().map(|stride| *stride as i64).collect();
        Captured::DeviceArray(array.array, *address, shape.to_vec(), strides)
    }

    /// An array of another library that is on the device.
    pub(super) fn foreign_array(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Captured> {
        if !devices::shares_arrays(value.py())? {
            return Ok(unsupported(value));
        }
        let array = value.py().import("weft.cuda")?.call_method1("as_cuda_array", (value,))?;
        Ok(self.device_array(array.cast::<DeviceArray>()?))
    }
}

/// An array of NumPy's: its elements now.
pub(super) fn host_array(array: &Bound<'_, PyAny>) -> PyResult<Captured> {
    let py = array.py();
    let flags = array.getattr(intern!(py, "flags"))?;
    let known = numpy::of_dtype(&array.getattr(intern!(py, "dtype"))?)?;
    let (Some(dtype), None) = (known, array.getattr_opt(intern!(py, "_sharedmask"))?) else {
        return Ok(unsupported(array));
    };
    let n_bytes: usize = array.getattr(intern!(py, "nbytes"))?.extract()?;
    if n_bytes > MAX_ARRAY_BYTES {
        let what = format!("array of more than {MAX_ARRAY_BYTES} bytes");
        return Ok(Captured::Unsupported(Unsupported::Array, what));
    }
    let in_order_c = flags.getattr("c_contiguous")?.is_truthy()?;
    let layout = if !in_order_c && flags.getattr("f_contiguous")?.is_truthy()? { Layout::F } else { Layout::C };
    let order = layout.letter().to_string();
    let bytes = array.call_method1(intern!(py, "tobytes"), (order,))?;
    let shape = array.getattr(intern!(py, "shape"))?.extract()?;
    Ok(Captured::Array(CapturedArray { dtype, shape, layout, bytes: Arc::from(bytes.extract::<&[u8]>()?) }))
}

/// The first name of a chain of attributes.
fn head(chain: &str) -> &str {
    chain.split_once('.').map_or(chain, |(head, _)| head)
}

/// The rest of it.
fn rest(chain: &str) -> Option<&str> {
    chain.split_once('.').map(|(_, rest)| rest)
}
