//! Kernels that call an operator's kernel as a device function (`weft/_operators/wrapping.py`).
//!
//! For a batch, the z axis of the grid has the items, so that one launch does the work of many. The kernel must not read
//! that axis, which its PTX shows; the launches of another one are made one after the other. A number that is in the
//! device's memory is read by the calling kernel.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use weft_artifact::{ArgType, Assumptions};
use weft_compiler::request::Keep;
use weft_ffi::{Call, Kind, Param, Tensor, Value, item, launch_each};
use weft_runtime::LaunchConfig;

use super::{
    Inner,
    kernels::Kernels,
    run::{RuleValues, Scratch},
};
use crate::{
    args::Arguments,
    capture::Capturer,
    dispatcher::{Dispatcher, answers, overload::Found},
    engine::{Definition, options},
    types::key,
};

/// The most items that the z axis of a grid has.
const MOST_ITEMS: i64 = 65_535;
/// The registers of PTX with the z axis of the grid.
const Z_AXIS: [&[u8]; 2] = [b"%ctaid.z", b"%nctaid.z"];

/// The kernels that call an operator's kernel, by what they make its arguments of, and which kernels can be called so.
#[derive(Debug, Default)]
pub(super) struct Wrapped {
    kernels: Mutex<Vec<(String, Arc<Inner>)>>,
    /// By the key of the arguments: whether the kernel ignores the z axis.
    ignoring_z: Mutex<Vec<(Box<[u32]>, bool)>>,
}

impl Inner {
    /// Whether a number of a launch is in the device's memory.
    pub(super) fn has_numbers_in_memory(&self, values: &[Value<'_>]) -> bool {
        let mut all = self.params.iter().zip(values);
        all.any(|(param, value)| param.kind != Kind::Tensor && matches!(value, Value::Tensor(_)))
    }

    /// Launches the kernel with numbers that are in the device's memory.
    pub(super) fn with_numbers_in_memory(
        &self,
        call: &Call<'_>,
        config: &LaunchConfig,
        scratch: &mut Scratch,
    ) -> Result<(), String> {
        let pattern = self.pattern(call.values, 0);
        let values: Vec<_> =
            self.params.iter().zip(call.values).map(|(param, value)| number_array(param, value)).collect();
        self.wrapped(&pattern)?.run_configured(&Call { values: &values, ..*call }, config, scratch)
    }

    /// Launches the kernel for each item of a batch.
    pub(super) fn run_batch(&self, call: &Call<'_>, batched: u64, items: i64) -> Result<(), String> {
        if items == 0 {
            return Ok(());
        }
        let first = item(call.values, batched, 0);
        let Some(mut config) = self.config(&RuleValues(&first))? else { return Ok(()) };
        if items == 1 || items > MOST_ITEMS || config.grid[2] != 1 || !self.ignores_z(&first)? {
            return launch_each(self, call, batched, items);
        }
        config.grid[2] = items as u32;
        let bits = (0..self.params.len()).map(|param| batched >> param & 1 == 1);
        let values: Vec<_> = self
            .params
            .iter()
            .zip(call.values)
            .zip(bits)
            .map(|((param, value), is_batched)| if is_batched { *value } else { number_array(param, value) })
            .collect();
        let mut scratch = Scratch::take();
        let wrapped = self.wrapped(&self.pattern(call.values, batched))?;
        let done = wrapped.run_configured(&Call { values: &values, ..*call }, &config, &mut scratch);
        scratch.give_back();
        done
    }

    /// What the arguments of the kernel are made of: see `wrapping.py`.
    fn pattern(&self, values: &[Value<'_>], batched: u64) -> String {
        let one = |(index, (param, value)): (usize, (&Param, &Value<'_>))| match (
            param.kind == Kind::Tensor,
            value,
            batched >> index & 1 == 1,
        ) {
            (true, _, true) => 'i',
            (false, Value::Tensor(_), true) => 'm',
            (false, Value::Tensor(_), false) => 'n',
            (true, _, false) | (false, Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Missing, _) => 'p',
        };
        self.params.iter().zip(values).enumerate().map(one).collect()
    }

    /// The kernel that makes the arguments by a pattern.
    fn wrapped(&self, pattern: &str) -> Result<Arc<Self>, String> {
        let find = || {
            let known = self.wrapped.kernels.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().find(|(of, _)| of == pattern).map(|(_, wrapped)| Arc::clone(wrapped))
        };
        if let Some(known) = find() {
            return Ok(known);
        }
        let made = Arc::new(self.with_python(|py| self.wrap(py, pattern))?);
        if let Some(first) = find() {
            return Ok(first);
        }
        self.wrapped
            .kernels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((pattern.to_owned(), Arc::clone(&made)));
        Ok(made)
    }

    fn wrap(&self, py: Python<'_>, pattern: &str) -> PyResult<Self> {
        let kind = |param: &Param| match param.kind {
            Kind::Tensor => 'T',
            Kind::Int => 'i',
            Kind::Float => 'f',
            Kind::Bool => 'b',
        };
        let kinds: String = self.params.iter().map(kind).collect();
        let wrapping = py.import("weft._operators.wrapping")?;
        let dispatcher = wrapping.call_method1("wrapped", (&self.dispatcher, pattern, kinds))?;
        let param = |(param, how): (&Param, char)| Param {
            kind: if how == 'p' { param.kind } else { Kind::Tensor },
            ..param.clone()
        };
        Ok(Self {
            name: self.name.clone(),
            names: self.names.clone(),
            params: self.params.iter().zip(pattern.chars()).map(param).collect(),
            dispatcher: dispatcher.cast_into::<Dispatcher>()?.unbind(),
            launch: self.launch.clone(),
            results: self.results.clone(),
            declared: self.declared.clone(),
            kernels: Kernels::default(),
            wrapped: Wrapped::default(),
        })
    }

    /// Whether the kernel for one item reads nothing of the z axis of the grid.
    fn ignores_z(&self, item: &[Value<'_>]) -> Result<bool, String> {
        let mut arguments = Arguments::default();
        let sample: Vec<_> = self.params.iter().zip(item).map(|(param, value)| sample(param, value)).collect();
        self.read(&sample, &mut arguments)?;
        let find = |known: &Vec<(Box<[u32]>, bool)>| {
            known.iter().find(|(of, _)| **of == *arguments.key).map(|(_, ignores)| *ignores)
        };
        let known = find(&self.wrapped.ignoring_z.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(known) = known {
            return Ok(known);
        }
        let ignores = self.with_python(|py| self.compiles_without_z(py, key::decode(&arguments.key)))?;
        let mut known = self.wrapped.ignoring_z.lock().unwrap_or_else(PoisonError::into_inner);
        known.push((arguments.key.as_slice().into(), ignores));
        Ok(ignores)
    }

    /// Whether the kernel's PTX does not name the z axis of the grid; false for one whose PTX is not known.
    fn compiles_without_z(&self, py: Python<'_>, given: Vec<ArgType>) -> PyResult<bool> {
        let dispatcher = self.dispatcher.bind(py);
        let (args, _casts) = dispatcher.get().types_for(given)?;
        let mut capturer = Capturer::<Dispatcher>::new(py);
        let function = capturer.dispatcher(dispatcher)?;
        // An adjoint kernel is not called as a device function.
        if !capturer.links.is_empty() || dispatcher.get().jit.code.derivative.is_some() {
            return Ok(false);
        }
        let mut jit = dispatcher.get().jit.clone();
        jit.code.assumptions = Assumptions::NONE;
        jit.code.choose = false;
        let (mut definition, mut found) = (Definition::of(function), Found::default());
        let target = options::of_capability(8, 0);
        let compiled = answers::compile(py, &mut definition, &mut found, &args, &target, &jit, Keep::default());
        // A kernel for newer GPUs, or one that the CPU alone can run.
        let Ok(compiled) = compiled else { return Ok(false) };
        let ptx = &compiled.output.artifact.code;
        Ok(!Z_AXIS.iter().any(|register| ptx.windows(register.len()).any(|part| part == *register)))
    }
}

/// A number in the device's memory as an array of one element.
fn number_array<'a>(param: &Param, value: &Value<'a>) -> Value<'a> {
    match *value {
        Value::Tensor(tensor) if param.kind != Kind::Tensor => {
            Value::Tensor(Tensor { shape: &[1], strides: Some(&[1]), ..tensor })
        }
        value @ (Value::Tensor(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Missing) => value,
    }
}

/// A value of the same type as a number that is in the device's memory.
fn sample<'a>(param: &Param, value: &Value<'a>) -> Value<'a> {
    match (param.kind, *value) {
        (Kind::Int, Value::Tensor(_)) => Value::Int(1),
        (Kind::Float, Value::Tensor(_)) => Value::Float(1.0),
        (Kind::Bool, Value::Tensor(_)) => Value::Bool(true),
        (
            Kind::Tensor | Kind::Int | Kind::Float | Kind::Bool,
            value @ (Value::Tensor(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Missing),
        ) => value,
    }
}
