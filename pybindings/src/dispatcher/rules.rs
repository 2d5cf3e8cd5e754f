//! Launch rules and output rules for Python: their translation, their checks against a kernel, and their evaluation.

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyTuple, PyType},
};
use weft_artifact::{
    ArgType, Param,
    rules::{self, LaunchSize, OutputDType, OutputShape, RuleArg, RuleError},
};
use weft_compiler::{
    diagnostic::Diagnostic,
    request::Captured,
    rules::{RuleFunction, constant_launch as constants, launch_rule, output_shape},
    source::SourceMap,
};

use super::{Dispatcher, answers, overload::Found};
use crate::{
    capture::{Capturer, Plain, parameter_names},
    engine::{self, Definition},
    errors,
    types::Type,
};

/// The extents along x, y and z.
type Extents = (u32, u32, u32);

/// A translated launch rule: computes the grid, the block and the dynamic shared memory of a launch.
///
/// `str` is its text form, from which the class makes an equal rule.
#[pyclass(frozen, eq, hash, module = "weft._weft", name = "LaunchRule")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LaunchRule {
    pub(crate) rule: rules::LaunchRule,
}

/// A translated output rule: computes the shape of an array that the caller of a kernel does not pass.
///
/// `str` is its text form, from which the class makes an equal rule.
#[pyclass(frozen, eq, hash, module = "weft._weft", name = "OutputRule")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OutputRule {
    pub(crate) rule: rules::OutputRule,
}

/// An argument of a rule: the shape of an array, an integer, or `None` for anything else.
fn rule_arg(value: &Bound<'_, PyAny>) -> PyResult<RuleArg> {
    if value.is_none() {
        return Ok(RuleArg::Other);
    }
    if value.is_instance_of::<PyTuple>() {
        return value.extract().map(RuleArg::Array);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(RuleArg::Int(truth.is_true().into()));
    }
    value.extract().map(RuleArg::Int)
}

fn rule_args(values: &[Bound<'_, PyAny>]) -> PyResult<Vec<RuleArg>> {
    values.iter().map(rule_arg).collect()
}

#[pymethods]
impl LaunchRule {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let rule = rules::LaunchRule::parse(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { rule })
    }

    /// The grid, the block, and the bytes of dynamic shared memory. An argument is the shape of an array as a tuple, an
    /// integer, or None for anything else. `names` are the kernel's parameters, for messages.
    #[pyo3(signature = (args, names=Vec::new()))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 makes the lists")]
    fn evaluate(&self, args: Vec<Bound<'_, PyAny>>, names: Vec<String>) -> PyResult<(Extents, Extents, u32)> {
        let args = rule_args(&args)?;
        let LaunchSize { grid, block, shared_bytes } =
            self.rule.evaluate(&args[..]).map_err(|error| PyValueError::new_err(error.message(&names)))?;
        Ok((grid.into(), block.into(), shared_bytes))
    }

    fn __str__(&self) -> String {
        self.rule.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<launch rule {}>", self.rule)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String,)) {
        (slf.get_type(), (slf.get().__str__(),))
    }
}

#[pymethods]
impl OutputRule {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let rule = rules::OutputRule::parse(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { rule })
    }

    /// The number of its parameter; None for the only array that the kernel writes.
    #[getter]
    fn param(&self) -> Option<u32> {
        (self.rule.param != rules::OutputRule::ONLY_WRITTEN).then_some(self.rule.param)
    }

    /// Whether its elements start as zeros.
    #[getter]
    fn zeroed(&self) -> bool {
        self.rule.zeroed
    }

    /// Its dtype: the number of the parameter that has it, or its name; None for that of its own parameter.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match self.rule.dtype {
            OutputDType::Like(param) => Some(param.into_pyobject(py)?.into_any()),
            OutputDType::Is(number) => Some(number.to_string().into_pyobject(py)?.into_any()),
            OutputDType::Declared => None,
        })
    }

    /// The same rule for another parameter.
    fn of(&self, param: u32) -> Self {
        Self { rule: rules::OutputRule { param, ..self.rule.clone() } }
    }

    /// The shape. The arguments are as those of a launch rule.
    #[pyo3(signature = (args, names=Vec::new()))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 makes the lists")]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        args: Vec<Bound<'py, PyAny>>,
        names: Vec<String>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let args = rule_args(&args)?;
        let shape = self.rule.evaluate(&args[..]).map_err(|error| PyValueError::new_err(error.message(&names)))?;
        PyTuple::new(py, shape)
    }

    fn __str__(&self) -> String {
        self.rule.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<output rule {}>", self.rule)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String,)) {
        (slf.get_type(), (slf.get().__str__(),))
    }
}

/// Translates a function with one of the compiler's translations.
fn translate<T>(
    (function, source): (&Bound<'_, PyAny>, Option<&str>),
    what: &str,
    kernel: &Bound<'_, PyAny>,
    with: impl Fn(RuleFunction<'_>) -> Result<T, Diagnostic>,
) -> PyResult<T> {
    let py = function.py();
    let name: String = kernel.getattr("__name__")?.extract()?;
    let params = parameter_names(kernel)?;
    let Plain { source, ast, globals } = Capturer::<Dispatcher>::new(py).plain(function, source, None)?;
    let of = RuleFunction { what, ast: &ast, globals: &globals, kernel: &name, params: &params };
    with(of).map_err(|diagnostic| {
        let mut sources = SourceMap::default();
        sources.add(&source);
        errors::diagnostics(py, &[diagnostic], &sources)
    })
}

/// Translates a function, which may come with its text, to the launch rule of a kernel's Python function.
#[pyfunction]
pub(crate) fn translate_launch(
    function: &Bound<'_, PyAny>,
    source: Option<&str>,
    kernel: &Bound<'_, PyAny>,
) -> PyResult<LaunchRule> {
    Ok(LaunchRule { rule: translate((function, source), "launch rule", kernel, launch_rule)? })
}

/// The launch rule of constants: `(grid, block)` or `(grid, block, sharedmem)`.
#[pyfunction]
pub(crate) fn constant_launch(value: &Bound<'_, PyAny>) -> PyResult<LaunchRule> {
    let rule = constants(&captured(value)).map_err(PyTypeError::new_err)?;
    Ok(LaunchRule { rule })
}

/// Integers and tuples of them.
fn captured(value: &Bound<'_, PyAny>) -> Captured {
    if let Ok(items) = value.cast::<PyTuple>() {
        return Captured::Tuple(items.iter().map(|item| captured(&item)).collect());
    }
    if value.is_instance_of::<PyBool>() {
        return Captured::None;
    }
    value.extract::<i64>().map_or(Captured::None, |value| Captured::Int(value.into()))
}

/// Translates the shape of an output rule: a function, which may come with its text, or the name of a parameter. The
/// dtype is the name of a parameter, the type of a number, or None for that of the output's parameter.
#[pyfunction]
pub(crate) fn translate_shape(
    shape: &Bound<'_, PyAny>,
    source: Option<&str>,
    dtype: Option<&Bound<'_, PyAny>>,
    zeroed: bool,
    kernel: &Bound<'_, PyAny>,
) -> PyResult<OutputRule> {
    let params = parameter_names(kernel)?;
    let number_of = |name: &str| {
        let found = params.iter().position(|known| known == name).map(|index| index as u32);
        found.ok_or_else(|| {
            let kernel = kernel.getattr("__name__").and_then(|name| name.extract::<String>()).unwrap_or_default();
            PyValueError::new_err(format!(
                "the output rule names `{name}`, which is no parameter of `{kernel}`: its parameters are {}",
                params.join(", ")
            ))
        })
    };
    let dtype = match dtype {
        None => OutputDType::Declared,
        Some(dtype) => match (dtype.extract::<String>(), dtype.cast::<Type>()) {
            (Ok(name), _) => OutputDType::Like(number_of(&name)?),
            (Err(_), Ok(ty)) => match ty.get().number() {
                Some(number) => OutputDType::Is(number),
                None => return Err(PyTypeError::new_err(format!("an output cannot have the dtype {}", ty.str()?))),
            },
            (Err(_), Err(_)) => return Err(PyTypeError::new_err("dtype is the name of a parameter or a dtype")),
        },
    };
    let shape = match shape.extract::<String>() {
        Ok(name) => OutputShape::Like(number_of(&name)?),
        Err(_) => translate((shape, source), "output rule", kernel, output_shape)?,
    };
    Ok(OutputRule { rule: rules::OutputRule { param: rules::OutputRule::ONLY_WRITTEN, shape, dtype, zeroed } })
}

impl Dispatcher {
    /// The parameters of the kernel for arguments of these types, and how it accesses them.
    pub(crate) fn params_for(slf: &Bound<'_, Self>, args: &[ArgType]) -> PyResult<Vec<Param>> {
        let (py, this) = (slf.py(), slf.get());
        if this.jit.device {
            return Err(PyTypeError::new_err(format!(
                "`{}` is a device function: only kernels are launched",
                this.name
            )));
        }
        let mut definition = Definition::of(Capturer::new(py).dispatcher(slf)?);
        answers::with_answers(py, &mut definition, &mut Found::default(), |definition| {
            engine::params(py, definition, args, &this.jit)
        })
    }
}

/// How a kernel accesses its arguments: for each parameter its name, and whether it reads it, writes it, and only
/// accumulates into it.
#[pyfunction]
pub(crate) fn access(
    dispatcher: &Bound<'_, Dispatcher>,
    signature: &Bound<'_, PyAny>,
) -> PyResult<Vec<(String, bool, bool, bool)>> {
    let params = Dispatcher::params_for(dispatcher, &dispatcher.get().types(signature)?)?;
    let row = |param: Param| (param.name, param.access.reads, param.access.writes, param.access.accumulates);
    Ok(params.into_iter().map(row).collect())
}

/// Checks rules against a kernel for the types of a signature, and gives the output rules with their parameters.
#[pyfunction]
#[pyo3(signature = (dispatcher, signature, launch=None, outputs=Vec::new()))]
pub(crate) fn bind_rules(
    dispatcher: &Bound<'_, Dispatcher>,
    signature: &Bound<'_, PyAny>,
    launch: Option<&Bound<'_, LaunchRule>>,
    outputs: Vec<Bound<'_, OutputRule>>,
) -> PyResult<Vec<OutputRule>> {
    let params = Dispatcher::params_for(dispatcher, &dispatcher.get().types(signature)?)?;
    let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
    let name = &dispatcher.get().name;
    let wrong = |what: &str, error: &RuleError| {
        PyTypeError::new_err(format!("the {what} rule of `{name}` does not fit: {}", error.message(&names)))
    };
    if let Some(launch) = launch {
        launch.get().rule.check(&params).map_err(|error| wrong("launch", &error))?;
    }
    let outputs: Vec<_> = outputs.into_iter().map(|output| output.get().rule.clone()).collect();
    let bound = rules::bind_outputs(&outputs, &params).map_err(|error| wrong("output", &error))?;
    Ok(bound.into_iter().map(|rule| OutputRule { rule }).collect())
}
