//! Implementations of overloaded functions (`weft.cuda.extending`): the compiler says which calls it has met, the package
//! chooses an implementation for each, and the compiler continues.

use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use weft_artifact::{ArgType, Assumptions};
use weft_compiler::request::{Answer, JitOptions, Keep, Outcome, OverloadArgument, OverloadQuery, Overloaded, Target};

use super::{Dispatcher, overload::Found};
use crate::{
    capture::Capturer,
    devices,
    engine::{self, Compiled, Definition},
    errors,
    types::Type,
};

/// The limit of the compiler's requests: calls whose types grow with each call would request forever.
const MOST_ROUNDS: usize = 200;

/// Compiles a function for a target, with the implementations that its calls request. Where the options request the
/// estimate, the result may be [the estimate alone](weft_compiler::request::Options::choose).
pub(crate) fn compile(
    py: Python<'_>,
    definition: &mut Definition,
    found: &mut Found,
    args: &[ArgType],
    target: &Target,
    jit: &JitOptions,
    keep: Keep,
) -> PyResult<Compiled> {
    let compiled = with_answers(py, definition, found, |definition| {
        engine::compile(py, definition, args, target.clone(), jit, keep)
    })?;
    compiled.issue_warnings(py, jit)?;
    Ok(compiled)
}

/// The uncoarsened code of a function for which the estimate has found better variants. The compiler's warnings were
/// issued with the estimate.
pub(crate) fn code(
    py: Python<'_>,
    definition: &Definition,
    args: &[ArgType],
    target: &Target,
    jit: &JitOptions,
    keep: Keep,
) -> PyResult<Compiled> {
    let mut jit = jit.clone();
    jit.code.choose = false;
    with_answers(py, &mut definition.clone(), &mut Found::default(), |definition| {
        engine::compile(py, definition, args, target.clone(), &jit, keep)
    })
}

/// As [`compile`], but also generates the code where that returns the estimate alone, for inspection. For another
/// target than the device's, and for a device function, it is code for any launch.
pub(crate) fn compile_whole(
    py: Python<'_>,
    definition: &mut Definition,
    args: &[ArgType],
    target: &Target,
    jit: &JitOptions,
    keep: Keep,
) -> PyResult<Compiled> {
    let mut jit = jit.clone();
    if matches!(target, Target::Host(_)) || jit.device || devices::current(py)?.kind() == "cpu" {
        jit.code.assumptions = Assumptions::NONE;
    }
    let compiled = compile(py, definition, &mut Found::default(), args, target, &jit, keep)?;
    if compiled.output.artifact.has_code() { Ok(compiled) } else { code(py, definition, args, target, &jit, keep) }
}

/// Repeats an operation on a function until it requests nothing more: adds the requested implementations to the
/// definition, and their captures to `found`.
pub(crate) fn with_answers<T>(
    py: Python<'_>,
    definition: &mut Definition,
    found: &mut Found,
    attempt: impl Fn(&Definition) -> PyResult<Outcome<T>>,
) -> PyResult<T> {
    if let Some(extending) = extending(py)? {
        let members: Vec<(String, u32, String)> = extending
            .getattr(intern!(py, "_MEMBERS"))?
            .call_method0(intern!(py, "values"))?
            .try_iter()?
            .map(|member| member?.extract())
            .collect::<PyResult<_>>()?;
        let members = members.into_iter().map(|(path, number, name)| (path, Overloaded { number, name }));
        definition.overloads.members.extend(members);
    }
    for _ in 0..MOST_ROUNDS {
        let queries = match attempt(definition)? {
            Outcome::Made(made) => return Ok(made),
            Outcome::Queries(queries) => queries,
        };
        let mut capturer = Capturer::<Dispatcher>::from(py, definition.overloads.next_number(&definition.function));
        let answers = queries.iter().map(|query| answer(&mut capturer, py, query)).collect::<PyResult<Vec<_>>>()?;
        found.kept.append(&mut capturer.kept);
        found.links.append(&mut capturer.links);
        definition.overloads.answers.extend(answers);
    }
    let name = &definition.function.ast.name;
    Err(errors::exception(
        py,
        "CompileError",
        (format!("the overloaded functions that `{name}` calls call each other with new types each time"),),
    ))
}

/// The module with the registered overloads, if the program has imported it.
fn extending(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    Ok(modules.get_item(intern!(py, "weft.cuda.extending")).ok())
}

/// The implementation for a call.
fn answer<'py>(capturer: &mut Capturer<'py, Dispatcher>, py: Python<'py>, query: &OverloadQuery) -> PyResult<Answer> {
    let (positional, named) = (PyList::empty(py), PyDict::new(py));
    for (name, given) in &query.args {
        let given = match given {
            OverloadArgument::Type(ty) => Type::of(ty.clone()).into_pyobject(py)?.into_any(),
            OverloadArgument::Str(text) => text.into_pyobject(py)?.into_any(),
        };
        match name {
            Some(name) => named.set_item(name, given)?,
            None => positional.append(given)?,
        }
    }
    let extending = py.import(intern!(py, "weft.cuda.extending"))?;
    let found = extending.call_method1(intern!(py, "_choose"), (query.function, positional, named))?;
    let chosen = match found.cast::<Dispatcher>() {
        Ok(dispatcher) => Ok(capturer.dispatcher(dispatcher)?),
        Err(_) => Err(found.extract()?),
    };
    Ok(Answer { query: query.clone(), chosen })
}
