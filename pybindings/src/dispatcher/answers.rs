//! Implementations of overloaded functions (`weft.cuda.extending`): the compiler says which calls it has met, the package
//! chooses an implementation for each, and the compiler goes on.

use std::sync::Arc;

use pyo3::{
    intern,
    prelude::*,
    types::{PyDict, PyList},
};
use weft_artifact::ArgType;
use weft_compiler::{
    pipeline::Output,
    request::{ANSWERS, Answer, Ask, Captured, FunctionDef, Given, Keep, Overloaded, Target, overloaded_member},
};

use super::{Dispatcher, overload::Found};
use crate::{
    capture::Capturer,
    engine::{self, options::JitOptions},
    errors,
    types::Type,
};

/// So many times the compiler may ask: calls whose types grow with each call ask for ever.
const MOST_ROUNDS: usize = 200;

/// Compiles a function for a target, with the implementations that its calls ask for.
pub(crate) fn compile(
    py: Python<'_>,
    function: &mut Arc<FunctionDef>,
    found: &mut Found,
    args: &[ArgType],
    target: &Target,
    jit: &JitOptions,
    keep: Keep,
) -> PyResult<Arc<Output>> {
    with_answers(py, function, found, |function| {
        let output = engine::compile(py, function, args, target.clone(), jit, keep)?;
        let asks = output.asks.clone();
        Ok((output, asks))
    })
}

/// Does something with a function until that asks nothing more: the function gets the implementations that are asked for,
/// and `found` what these have captured.
pub(crate) fn with_answers<T>(
    py: Python<'_>,
    function: &mut Arc<FunctionDef>,
    found: &mut Found,
    attempt: impl Fn(&Arc<FunctionDef>) -> PyResult<(T, Vec<Ask>)>,
) -> PyResult<T> {
    if let Some(extending) = extending(py)? {
        let members: Vec<(String, u32, String)> = extending
            .getattr(intern!(py, "_MEMBERS"))?
            .call_method0(intern!(py, "values"))?
            .try_iter()?
            .map(|member| member?.extract())
            .collect::<PyResult<_>>()?;
        if !members.is_empty() {
            let mut told = FunctionDef::clone(function);
            for (path, number, name) in members {
                told.globals.insert(overloaded_member(&path), Captured::Overloaded(Overloaded { number, name }));
            }
            *function = Arc::new(told);
        }
    }
    for _ in 0..MOST_ROUNDS {
        let (result, asks) = attempt(function)?;
        if asks.is_empty() {
            return Ok(result);
        }
        let mut capturer = Capturer::<Dispatcher>::beside(py, function);
        let answers = asks.iter().map(|ask| answer(&mut capturer, py, ask)).collect::<PyResult<Vec<_>>>()?;
        found.kept.append(&mut capturer.kept);
        found.links.append(&mut capturer.links);
        let mut answered = FunctionDef::clone(function);
        let known = answered.globals.entry(ANSWERS.to_owned()).or_insert_with(|| Captured::Answers(Vec::new()));
        if let Captured::Answers(known) = known {
            known.extend(answers);
        }
        *function = Arc::new(answered);
    }
    let name = &function.ast.name;
    Err(errors::exception(
        py,
        "CompileError",
        (format!("the overloaded functions that `{name}` calls call each other with ever other types"),),
    ))
}

/// The module that is told of overloaded functions, if somebody has imported it.
fn extending(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    Ok(modules.get_item(intern!(py, "weft.cuda.extending")).ok())
}

/// The implementation for a call.
fn answer<'py>(capturer: &mut Capturer<'py, Dispatcher>, py: Python<'py>, ask: &Ask) -> PyResult<Answer> {
    let (positional, named) = (PyList::empty(py), PyDict::new(py));
    for (name, given) in &ask.args {
        let given = match given {
            Given::Type(ty) => Type::of(ty.clone()).into_pyobject(py)?.into_any(),
            Given::Str(text) => text.into_pyobject(py)?.into_any(),
        };
        match name {
            Some(name) => named.set_item(name, given)?,
            None => positional.append(given)?,
        }
    }
    let extending = py.import(intern!(py, "weft.cuda.extending"))?;
    let found = extending.call_method1(intern!(py, "_choose"), (ask.function, positional, named))?;
    let chosen = match found.cast::<Dispatcher>() {
        Ok(dispatcher) => Ok(capturer.dispatcher(dispatcher)?),
        Err(_) => Err(found.extract()?),
    };
    Ok(Answer { ask: ask.clone(), chosen })
}
