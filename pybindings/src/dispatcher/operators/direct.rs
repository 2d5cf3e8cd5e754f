//! Calls of operators of PyTorch past its dispatcher, which takes longer than a launch: for plain tensors on which
//! nothing but the kernel is to run. All other calls take the dispatcher's road.

use std::sync::Arc;

use pyo3::{
    exceptions::PyRuntimeError,
    prelude::*,
    types::{PyBool, PyFloat, PyInt, PyTuple, PyType},
};
use weft_artifact::{MAX_NDIM, Number, rules::RuleArgs};
use weft_ffi::{Device, Kind, Role};

use super::{
    Inner, Operator,
    run::{Scratch, overlaps},
};
use crate::{
    args::InPlace,
    arrays::{
        dlpack::{TensorMemory, exchange::Exchange},
        scalar,
    },
    types::key,
};

/// An argument for the launch rule.
#[derive(Clone, Copy)]
enum RuleValue {
    /// An array, whose extents are at these positions.
    Shape(usize, usize),
    Int(i64),
    Other,
}

/// The arguments for the launch rule.
struct RuleValues {
    extents: Vec<i64>,
    values: Vec<RuleValue>,
}

impl RuleArgs for RuleValues {
    fn shape(&self, param: usize) -> Option<&[i64]> {
        match self.values.get(param)? {
            RuleValue::Shape(start, end) => self.extents.get(*start..*end),
            RuleValue::Int(_) | RuleValue::Other => None,
        }
    }

    fn integer(&self, param: usize) -> Option<i64> {
        match self.values.get(param)? {
            RuleValue::Int(value) => Some(*value),
            RuleValue::Shape(..) | RuleValue::Other => None,
        }
    }
}

/// Launches an operator's kernel without PyTorch's dispatcher, if the call needs nothing of it.
#[pyclass(frozen, module = "weft._weft", name = "DirectCall")]
pub(crate) struct DirectCall {
    inner: Arc<Inner>,
    /// The classes of plain tensors.
    classes: Vec<Py<PyType>>,
    exchange: Option<Exchange>,
    /// Functions that return 0 or None where calls mean what they say.
    states: Vec<Py<PyAny>>,
    /// Whether gradients are recorded.
    grad_mode: Py<PyAny>,
    /// Counts a change of tensors.
    increment_version: Py<PyAny>,
}

#[pymethods]
impl DirectCall {
    /// `classes` are those of plain tensors, `states` functions that return 0 or None where no mode of PyTorch's changes
    /// what a call does, `grad_mode` is `torch.is_grad_enabled`, `increment_version` counts a change of each tensor of a
    /// tuple.
    #[new]
    fn new(
        operator: &Operator,
        classes: Vec<Bound<'_, PyType>>,
        states: Vec<Py<PyAny>>,
        grad_mode: Py<PyAny>,
        increment_version: Py<PyAny>,
    ) -> PyResult<Self> {
        let exchange = classes.first().map(Exchange::of).transpose()?.flatten();
        Ok(Self {
            inner: Arc::clone(&operator.0),
            classes: classes.into_iter().map(Bound::unbind).collect(),
            exchange,
            states,
            grad_mode,
            increment_version,
        })
    }

    /// Whether no mode of PyTorch's changes what a call with these arguments does, and no gradient is recorded.
    fn is_plain(&self, args: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let py = args.py();
        let inputs = self.inner.params.iter().filter(|param| param.role != Role::Result);
        let mut records = None;
        for (arg, _) in args.iter_borrowed().zip(inputs).filter(|(_, param)| param.kind == Kind::Tensor) {
            if !self.is_tensor(&arg) {
                return Ok(false);
            }
            if arg.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
                let records = match records {
                    Some(known) => known,
                    None => *records.insert(self.records_gradients(py)?),
                };
                if records {
                    return Ok(false);
                }
            }
        }
        self.has_no_mode(py)
    }

    /// Launches the kernel and returns true, or returns false for a call that PyTorch must dispatch.
    fn __call__(&self, args: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let py = args.py();
        if args.len() != self.inner.params.len() || !self.has_no_mode(py)? {
            return Ok(false);
        }
        let mut scratch = Scratch::take();
        let launched = self.launch(args, &mut scratch);
        scratch.give_back();
        if !launched? {
            return Ok(false);
        }
        let written = args.iter().zip(&self.inner.params).filter(|(_, param)| param.role == Role::Written);
        let written = PyTuple::new(py, written.map(|(arg, _)| arg).collect::<Vec<_>>())?;
        self.increment_version.bind(py).call1((written,))?;
        Ok(true)
    }
}

impl DirectCall {
    fn is_tensor(&self, arg: &Bound<'_, PyAny>) -> bool {
        self.classes.iter().any(|class| class.as_ptr().cast() == arg.get_type_ptr())
    }

    fn records_gradients(&self, py: Python<'_>) -> PyResult<bool> {
        self.grad_mode.bind(py).call0()?.is_truthy()
    }

    fn has_no_mode(&self, py: Python<'_>) -> PyResult<bool> {
        for state in &self.states {
            let value = state.bind(py).call0()?;
            if !value.is_none() && value.is_truthy()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn launch(&self, args: &Bound<'_, PyTuple>, scratch: &mut Scratch) -> PyResult<bool> {
        let (py, inner) = (args.py(), &*self.inner);
        let Some(exchange) = self.exchange else { return Ok(false) };
        let mut values = RuleValues { extents: Vec::with_capacity(16), values: Vec::with_capacity(args.len()) };
        let mut memory = None;
        let arguments = &mut scratch.arguments;
        arguments.clear();
        for ((index, param), arg) in inner.params.iter().enumerate().zip(args.iter_borrowed()) {
            if param.kind != Kind::Tensor {
                let Some((number, bits, value)) = number(param.kind, &arg)? else { return Ok(false) };
                arguments.key.push(key::value(number.into()));
                arguments.cells.extend([bits, 0]);
                values.values.push(value);
                continue;
            }
            if !self.is_tensor(&arg) {
                return Ok(false);
            }
            let cell = arguments.cells.len();
            // An error is reported by the dispatcher's road, in its words.
            let Ok((seen, _owner)) = exchange.read(&arg, MAX_NDIM, &mut arguments.cells) else { return Ok(false) };
            let cells = arguments.cells.get(cell..).unwrap_or_default();
            if !seen.is_aligned
                || *memory.get_or_insert(seen.place) != seen.place
                || !matches!(exchange.differs_from_memory(&arg, seen.array.dtype, cells), Ok(false))
                || exchange.records_gradient(&arg, seen.array.dtype)? && self.records_gradients(py)?
            {
                return Ok(false);
            }
            let place = InPlace { param: index, cell, array: seen.array };
            if param.role == Role::Written && overlaps(&place, &arguments.cells) {
                return Ok(false);
            }
            let start = values.extents.len();
            let ndim = usize::from(seen.array.ndim);
            values.extents.extend(cells.iter().skip(1).take(ndim).map(|extent| *extent as i64));
            values.values.push(RuleValue::Shape(start, start + ndim));
            arguments.key.push(key::array(seen.array));
            arguments.in_place.push(place);
        }
        let place = match memory {
            Some(TensorMemory::Host) => Device::Host,
            Some(TensorMemory::Gpu(id)) => Device::Gpu(id.max(0) as u32),
            Some(TensorMemory::PageLocked | TensorMemory::Managed | TensorMemory::Elsewhere(_)) | None => {
                return Ok(false);
            }
        };
        let stream = match memory.and_then(|memory| exchange.producer_query(memory)) {
            Some(query) => query.answer(py)?,
            None if place == Device::Host => 0,
            None => return Ok(false),
        };
        let launched = py.detach(|| match inner.config(&values)? {
            Some(config) => inner.start(place, stream, &config, scratch),
            None => Ok(()),
        });
        launched.map_err(PyRuntimeError::new_err)?;
        Ok(true)
    }
}

/// A number of Python's own for a parameter, its bits, and its value for rules.
fn number(kind: Kind, arg: &Bound<'_, PyAny>) -> PyResult<Option<(Number, u64, RuleValue)>> {
    let is_int = arg.is_exact_instance_of::<PyInt>();
    Ok(match kind {
        Kind::Float if arg.is_exact_instance_of::<PyFloat>() => {
            Some((Number::F64, scalar::float(arg).to_bits(), RuleValue::Other))
        }
        Kind::Float if is_int => Some((Number::F64, arg.extract::<f64>()?.to_bits(), RuleValue::Other)),
        Kind::Int if is_int => scalar::int(arg)?.map(|value| (Number::I64, value as u64, RuleValue::Int(value))),
        Kind::Bool if arg.is_exact_instance_of::<PyBool>() => {
            let value = arg.is_truthy()?;
            Some((Number::BOOL, value.into(), RuleValue::Int(value.into())))
        }
        Kind::Tensor | Kind::Int | Kind::Float | Kind::Bool => None,
    })
}
