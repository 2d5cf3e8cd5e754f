//! Suggestions for the `help` of errors about Python that kernels do not support.

use std::fmt::Display;

use weft_artifact::{Compound, DType};

use super::{
    float8,
    object::{ObjectKind, Static},
    ty::{ArrayTy, Ty},
    value::Value,
};
use crate::{
    diagnostic::{self, Code, Diagnostic},
    source::Span,
};

/// By the parser's name of a statement or an expression.
const SUGGESTIONS: &[(&str, &str)] = &[
    // Statements.
    ("a `class` definition", "define the class outside the function"),
    ("a pattern of keys or classes in a `match`", "match values and tuples, and test other cases with `if`"),
    ("a `raise … from`", "raise the exception without `from`: a kernel catches no exceptions"),
    (
        "a `try` statement",
        "test for the case with `if` instead: an exception ends the thread, and a kernel cannot catch it",
    ),
    ("a `type` statement", "define the type outside the function"),
    ("a `with` statement", "write its body alone: a kernel has no context managers"),
    ("a coroutine's `async for`", "write `for`"),
    ("a coroutine's `async with`", "write its body alone: a kernel has no context managers"),
    ("a local `import`", "import it at the top of the file: a kernel can use the globals of its function"),
    ("a nested `async def`", "write `def` outside the function, and decorate it with `@cuda.jit(device=True)`"),
    // Expressions.
    ("`yield from`", "write the loop where its values are used"),
    ("`yield`", "return the value, write it into an array, or write the loop where its values are used"),
    ("coroutine (`await`)", "remove `await`, and call a device function"),
    ("coroutine (`async for`)", "remove `async`"),
    ("dictionary", "use a tuple, an array indexed by number, or one variable for each key"),
    ("dictionary comprehension", "write a loop that fills an array: `cuda.local.array(shape, dtype)`"),
    ("list comprehension", "write a loop that fills an array: `cuda.local.array(shape, dtype)`"),
    ("set", "use a tuple: `x in (1, 2, 3)`"),
    ("set comprehension", "write a loop that fills an array: `cuda.local.array(shape, dtype)`"),
    ("template string", "write an f-string: `f\"…\"`"),
];

/// The suggestion if a whole array is used like one of its elements.
pub(super) const ELEMENTS: &str = "kernels compute on elements: index the array";

/// A field that the elements of an array do not have.
pub(super) fn no_field(array: ArrayTy, name: &str, span: Span) -> Diagnostic {
    let message = format!("{} has no field `{name}`", Ty::Array(array));
    let diagnostic = Diagnostic::error(Code::NoSuchAttribute, span, message);
    let DType::Compound(id) = array.dtype else {
        return diagnostic.help("its elements are not records: index it with integers");
    };
    let Compound::Record(record) = id.get() else { return diagnostic };
    let names = || record.fields().iter().map(|field| field.name.as_str());
    if let Some(near) = diagnostic::closest(name, names()) {
        return diagnostic.help(format!("did you mean `{near}`?"));
    }
    match listed(names()) {
        Some(listed) => diagnostic.help(format!("it has {listed}")),
        None => diagnostic,
    }
}

/// A store into an array that is read-only.
pub(super) fn readonly(shown: impl Display, span: Span) -> Diagnostic {
    // Read-only types are shown as Numba's, with a capital letter, which the sentence explains.
    let shown = shown.to_string();
    let shown = shown.strip_prefix("Array(").map_or_else(|| shown.clone(), |rest| format!("array({rest}"));
    Diagnostic::error(Code::ReadonlyArray, span, format!("{shown} is read-only")).help(
        "pass a writable array: global arrays, and arguments with `flags.writeable` off, are constants in a kernel",
    )
}

/// Values with three parts.
const AXES: [&str; 4] = ["cuda.threadIdx", "cuda.blockIdx", "cuda.blockDim", "cuda.gridDim"];

/// The suggestion if a value with three parts is used like one of them.
const AXIS: &str = "write `.x`, `.y` or `.z`";

/// The suggestion if an index or extent with three parts is used like one of them.
pub(super) fn instead_of_parts(ty: &Ty) -> Option<&'static str> {
    AXES.contains(&ty.to_string().as_str()).then_some(AXIS)
}

/// The suggestion for an operand that is not a number, if there is one.
pub(super) fn instead_of_operand(value: &Value) -> Option<&'static str> {
    match value {
        Value::Array(_) => Some(ELEMENTS),
        Value::Static(Static::Known(_)) => AXES.contains(&value.ty().to_string().as_str()).then_some(AXIS),
        Value::Static(Static::Function(_)) => Some("call the function: `f(x)`"),
        Value::Object(ObjectKind::Float8(_), _) => Some(float8::HELP),
        Value::Scalar(..)
        | Value::Complex(..)
        | Value::Int(_)
        | Value::Bool(_)
        | Value::Object(..)
        | Value::Static(_)
        | Value::Poison => None,
    }
}

/// The names of a module's number types.
pub(super) fn types_of(module: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    for row in weft_artifact::NUMBERS {
        match module {
            "numpy" => names.extend(row.numpy),
            "weft" | "weft.types" | "weft.cuda" => {
                names.push(row.name);
                names.extend(row.others);
            }
            _ => {}
        }
    }
    names
}

/// The names of a library that kernels support, for an error about one that they do not.
pub(super) fn rest_of(module: &str) -> Option<&'static str> {
    ["numpy", "math", "cmath", "operator"]
        .contains(&module)
        .then_some("call it on the host, or write it as a loop over the elements")
}

/// A list of names as a phrase: "`x`, `y` and `z`"; `None` if there are too many.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [some @ .., last] if some.len() < 8 => Some(format!("{} and {last}", some.join(", "))),
        _ => None,
    }
}

/// The suggestion for a value that cannot be indexed, if there is one.
pub(super) fn instead_of_index(value: &Value) -> Option<&'static str> {
    match value {
        Value::Static(Static::Function(_)) => {
            Some("call it without a launch configuration, or launch it from Python: a kernel cannot launch kernels")
        }
        Value::Static(Static::Known(_)) => {
            let shown = value.ty().to_string();
            AXES.contains(&shown.as_str()).then_some(AXIS)
        }
        Value::Scalar(..) | Value::Complex(..) | Value::Int(_) | Value::Bool(_) => {
            Some("remove the index, or index the array that the number is read from")
        }
        Value::Array(_) | Value::Object(..) | Value::Static(_) | Value::Poison => None,
    }
}

/// The suggestion for an unsupported statement or expression.
pub(super) fn suggestion(what: &str) -> &'static str {
    let known = SUGGESTIONS.iter().find(|(name, _)| *name == what);
    known.map_or("compute it on the host, and pass the result", |(_, suggestion)| suggestion)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each construct that the parser rejects has its own suggestion, and no suggestion is unused.
    #[test]
    fn each_refusal_has_a_suggestion() {
        let parser = concat!(
            include_str!("../syntax/parse/convert.rs"),
            include_str!("../syntax/parse/formatted.rs"),
            include_str!("../syntax/parse/matching.rs")
        );
        let mut refused: Vec<&str> =
            parser.split("::Unsupported(").skip(1).filter_map(|rest| rest.trim_start().split('"').nth(1)).collect();
        let mut known: Vec<&str> = SUGGESTIONS.iter().map(|(name, _)| *name).collect();
        refused.sort_unstable();
        refused.dedup();
        known.sort_unstable();
        assert_eq!(known, refused);
    }
}
