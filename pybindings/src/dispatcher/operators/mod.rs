//! Kernels as operators of PyTorch and JAX: `weft/_operators` makes them of dispatchers, with a launch rule and output
//! rules; `weft_ffi` calls them, on any thread and without Python.
//!
//! An operator's kernels are compiled for the device that the arrays are on: the CPU, too, on a machine with GPUs.
//! [`kernels`] compiles and finds them, [`run`] launches them, [`direct`] does so past PyTorch's dispatcher.
//! [`wrapped`] makes kernels that call them: for batches, and for numbers in the device's memory.

pub(crate) mod direct;
mod kernels;
mod run;
mod wrapped;

use std::sync::Arc;

use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
};
use weft_artifact::{
    DType, Number,
    rules::{LaunchRule, OutputDType, OutputRule, RuleError},
};
use weft_ffi::{Device, Kind, Param, ResultSpec, Role, Tensor, Value, torch, xla};

use self::{kernels::Kernels, wrapped::Wrapped};
use super::Dispatcher;
use crate::{
    capture::Capturer,
    engine,
    types::{Type, numpy, signature},
};

/// A kernel with its rules.
#[derive(Debug)]
struct Inner {
    /// `namespace::name`.
    name: String,
    /// The names of the parameters.
    names: Vec<String>,
    params: Vec<Param>,
    dispatcher: Py<Dispatcher>,
    launch: LaunchRule,
    /// By parameter.
    results: Vec<Option<OutputRule>>,
    /// The declared type of the elements, by parameter, for rules that refer to it.
    declared: Vec<Option<Number>>,
    kernels: Kernels,
    /// Kernels that call this one.
    wrapped: Wrapped,
}

impl Inner {
    /// An error of a rule.
    fn refusal(&self, what: &str, error: &RuleError) -> String {
        format!("{}: {what}: {}", self.name, error.message(&self.names))
    }
}

/// A kernel as an operator of other libraries.
#[pyclass(frozen, module = "weft._weft", name = "Operator")]
#[derive(Debug)]
pub(crate) struct Operator(Arc<Inner>);

/// One value of a call that is described and not made: an array's dtype and shape, or a number.
type Described<'py> = (Bound<'py, PyAny>, Option<Vec<i64>>);

#[pymethods]
impl Operator {
    /// `params` are a name, what is passed (`T`, `i`, `f` or `b`) and the role (`r`, `w` or `o`, for an array that the
    /// operator allocates) for each parameter; `results` the text of an output rule, or None; `declared` the dtype of
    /// the signature.
    #[new]
    fn new(
        name: String,
        dispatcher: Py<Dispatcher>,
        params: Vec<(String, char, char)>,
        launch: &str,
        results: Vec<Option<String>>,
        declared: Vec<Option<Bound<'_, Type>>>,
    ) -> PyResult<Self> {
        let bad = |text: &str| PyValueError::new_err(format!("{text:?} is no rule"));
        let names = params.iter().map(|(name, ..)| name.clone()).collect();
        let param = |(name, kind, role): (String, char, char)| {
            let kind = match kind {
                'T' => Kind::Tensor,
                'i' => Kind::Int,
                'f' => Kind::Float,
                _ => Kind::Bool,
            };
            let role = match role {
                'w' => Role::Written,
                'o' => Role::Result,
                _ => Role::Read,
            };
            Param { name, kind, role }
        };
        let rule = |text: Option<String>| text.map(|text| OutputRule::parse(&text).map_err(|_| bad(&text))).transpose();
        let number = |ty: Option<Bound<'_, Type>>| match ty?.get().dtype_itself()? {
            DType::Number(number) => Some(number),
            DType::Compound(_) => None,
        };
        Ok(Self(Arc::new(Inner {
            name,
            names,
            params: params.into_iter().map(param).collect(),
            dispatcher,
            launch: LaunchRule::parse(launch).map_err(|_| bad(launch))?,
            results: results.into_iter().map(rule).collect::<PyResult<_>>()?,
            declared: declared.into_iter().map(number).collect(),
            kernels: Kernels::default(),
            wrapped: Wrapped::default(),
        })))
    }

    /// Implements an operator of PyTorch that is defined with a schema of these parameters; returns its number.
    fn register_torch(&self, namespace: &str, name: &str, batched: bool) -> PyResult<usize> {
        torch::register(namespace, name, self.operator(), batched).map_err(PyRuntimeError::new_err)
    }

    /// Replaces the operator of PyTorch with this number.
    fn replace_torch(&self, index: usize, batched: bool) {
        torch::set(index, self.operator(), batched);
    }

    /// Has calls of JAX's with this number run the kernel.
    fn register_xla(&self, number: u64) {
        xla::register(number, self.operator());
    }

    /// A number for the kernel's code with these argument types and for its rules: the same in every process.
    fn digest(&self, py: Python<'_>, types: &Bound<'_, PyAny>) -> PyResult<u64> {
        let dispatcher = self.0.dispatcher.bind(py);
        let args = signature::read(types)?.args;
        let function = Capturer::new(py).dispatcher(dispatcher)?;
        let bytes = engine::digest(&engine::Definition::of(function), &args, &dispatcher.get().jit);
        Ok(u64::from_le_bytes(bytes))
    }

    /// Compiles and loads the kernel for a launch with these arguments on a device: `None` is the CPU.
    #[pyo3(signature = (values, gpu=None))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 makes the lists")]
    fn prepare(&self, py: Python<'_>, values: Vec<Described<'_>>, gpu: Option<u32>) -> PyResult<()> {
        let place = gpu.map_or(Device::Host, Device::Gpu);
        let (values, numbers) = self.values(&values)?;
        let described = run::describe(&values, &numbers);
        let prepared = py.detach(|| self.0.prepare(&described, place));
        prepared.map_err(PyRuntimeError::new_err)
    }

    /// The shape and the dtype of the array that is allocated for a parameter.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 makes the lists")]
    fn result(&self, param: usize, values: Vec<Described<'_>>) -> PyResult<(Vec<i64>, Type)> {
        let (values, numbers) = self.values(&values)?;
        let described = run::describe(&values, &numbers);
        let ResultSpec { shape, number, .. } =
            weft_ffi::Operator::result(&*self.0, param, &described).map_err(PyValueError::new_err)?;
        Ok((shape, Type::of_dtype(number.into())))
    }
}

/// An array's element type and shape; `None` for another value.
type Shapes = Vec<Option<(Number, Vec<i64>)>>;

impl Operator {
    fn operator(&self) -> Arc<dyn weft_ffi::Operator> {
        Arc::clone(&self.0) as _
    }

    fn values(&self, values: &[Described<'_>]) -> PyResult<(Shapes, Vec<Value<'static>>)> {
        let (mut shapes, mut numbers) = (Vec::new(), Vec::new());
        for ((value, shape), param) in values.iter().zip(&self.0.params) {
            shapes.push(match shape {
                Some(shape) => match numpy::of_dtype(value)? {
                    Some(DType::Number(number)) => Some((number, shape.clone())),
                    Some(DType::Compound(_)) | None => {
                        let message = format!("{}: `{}` has no dtype that kernels have", self.0.name, param.name);
                        return Err(PyValueError::new_err(message));
                    }
                },
                None => None,
            });
            numbers.push(match param.kind {
                Kind::Tensor => Value::Missing,
                Kind::Int => Value::Int(value.extract().unwrap_or_default()),
                Kind::Float => Value::Float(value.extract().unwrap_or_default()),
                Kind::Bool => Value::Bool(value.is_truthy()?),
            });
        }
        Ok((shapes, numbers))
    }
}

impl weft_ffi::Operator for Inner {
    fn name(&self) -> &str {
        &self.name
    }

    fn params(&self) -> &[Param] {
        &self.params
    }

    fn result(&self, param: usize, values: &[Value<'_>]) -> Result<ResultSpec, String> {
        let rule = self.results.get(param).and_then(Option::as_ref);
        let rule = rule.ok_or_else(|| format!("{}: parameter {param} has no output rule", self.name))?;
        let name = self.names.get(param).map_or("", String::as_str);
        let shape = rule
            .evaluate(&run::RuleValues(values))
            .map_err(|error| self.refusal(&format!("the output rule of `{name}`"), &error))?;
        let number = match rule.dtype {
            OutputDType::Like(of) => match values.get(of as usize) {
                Some(Value::Tensor(Tensor { number, .. })) => Some(*number),
                Some(Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Missing) | None => None,
            },
            OutputDType::Is(number) => Some(number),
            OutputDType::Declared => self.declared.get(param).copied().flatten(),
        };
        let number = number.ok_or_else(|| {
            format!("{}: the output rule of `{name}` gives no dtype: write `dtype=` in it", self.name)
        })?;
        Ok(ResultSpec { shape, number, zeroed: rule.zeroed })
    }

    fn launch(&self, call: &weft_ffi::Call<'_>) -> Result<(), String> {
        self.run(call)
    }

    fn launch_batch(&self, call: &weft_ffi::Call<'_>, batched: u64, items: i64) -> Result<(), String> {
        self.run_batch(call, batched, items)
    }

    fn scratch_bytes(&self, call: &weft_ffi::Call<'_>, counts: u64, length: u64) -> Result<u64, String> {
        self.scratch_bytes(call, counts, length)
    }
}

/// What the loaded libtorch lacks for operators; None if nothing.
#[pyfunction]
pub(crate) fn torch_lacks() -> Option<String> {
    torch::missing()
}

/// The addresses of the handlers of JAX's calls for the CPU and for CUDA, and of that for CUDA of calls that wait.
#[pyfunction]
pub(crate) fn xla_handlers() -> [usize; 3] {
    xla::handlers()
}
