//! Translates launch rules and shapes of outputs from Python: a lambda or a function whose parameters have the names of
//! the kernel's parameters.
//!
//! A rule computes with integers only, so that it can be evaluated without Python, in C as well. What cannot be
//! translated is an error at its location.

mod expr;
mod statements;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use weft_artifact::rules::{LaunchRule, OutputShape, RuleExpr};

use crate::{
    diagnostic::{Code, Diagnostic, closest},
    request::Captured,
    source::Span,
    syntax::ast,
};

/// The most nodes of a translated expression. An `if` in a function copies the statements after it.
const MAX_NODES: usize = 20_000;

/// A Python function to translate.
#[derive(Clone, Copy, Debug)]
pub struct RuleFunction<'a> {
    /// What it is, for messages: `launch rule`.
    pub what: &'a str,
    /// Its syntax tree.
    pub ast: &'a ast::Function,
    /// The values of its free names.
    pub globals: &'a BTreeMap<String, Captured>,
    /// The kernel's name.
    pub kernel: &'a str,
    /// The kernel's parameters.
    pub params: &'a [String],
}

/// The value of an expression in a rule.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// An integer.
    Int(RuleExpr),
    /// An argument, of a type that is not known here.
    Param(u32),
    /// The shape of an array argument.
    Shape(u32),
    /// A tuple or a list.
    Tuple(Vec<Value>),
    /// A function that rules can call.
    Builtin(Builtin),
}

/// A function that rules can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Builtin {
    Abs,
    Int,
    Len,
    Max,
    Min,
}

impl Builtin {
    const ALL: [(&'static str, Self); 5] =
        [("abs", Self::Abs), ("int", Self::Int), ("len", Self::Len), ("max", Self::Max), ("min", Self::Min)];

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(known, builtin)| (known == name).then_some(builtin))
    }
}

/// The state of a translation.
struct Translator<'a> {
    of: RuleFunction<'a>,
    /// The number of nodes that were made.
    nodes: usize,
}

/// The values of local names.
type Locals = BTreeMap<String, Value>;

/// The result of a translation.
type Translated<T> = Result<T, Diagnostic>;

/// Translates a launch rule: `(grid, block)` or `(grid, block, sharedmem)`.
///
/// # Errors
///
/// The location of what cannot be translated.
pub fn launch_rule(of: RuleFunction<'_>) -> Translated<LaunchRule> {
    let mut translator = Translator { of, nodes: 0 };
    let (value, span) = translator.result()?;
    translator.launch(value, span)
}

/// Translates the shape of an output: a tuple of integers, or an integer for one dimension.
///
/// # Errors
///
/// The location of what cannot be translated.
pub fn output_shape(of: RuleFunction<'_>) -> Translated<OutputShape> {
    let mut translator = Translator { of, nodes: 0 };
    let (value, span) = translator.result()?;
    match value {
        Value::Shape(param) => Ok(OutputShape::Like(param)),
        Value::Tuple(items) => {
            let extents = items.into_iter().map(|item| translator.integer(item, span));
            extents.collect::<Translated<_>>().map(OutputShape::Extents)
        }
        value @ (Value::Int(_) | Value::Param(_) | Value::Builtin(_)) => {
            Ok(OutputShape::Extents(vec![translator.integer(value, span)?]))
        }
    }
}

/// A launch rule of constants: `(grid, block)` or `(grid, block, sharedmem)`.
///
/// # Errors
///
/// A sentence: the value is none.
pub fn constant_launch(value: &Captured) -> Result<LaunchRule, String> {
    let one = |value: &Captured| {
        if let Captured::Int(value) | Captured::NumpyInt(_, value) = value {
            i64::try_from(*value).ok().map(RuleExpr::Int)
        } else {
            None
        }
    };
    let parts = |value: &Captured| -> Option<[RuleExpr; 3]> {
        let items = if let Captured::Tuple(items) = value { items.as_slice() } else { std::slice::from_ref(value) };
        let mut parts = items.iter().map(one).collect::<Option<Vec<_>>>().filter(|parts| !parts.is_empty())?;
        parts.resize(parts.len().max(3), RuleExpr::Int(1));
        parts.try_into().ok()
    };
    let rule = if let Captured::Tuple(items) = value {
        match items.as_slice() {
            [grid, block] => Some((parts(grid), parts(block), Some(RuleExpr::Int(0)))),
            [grid, block, shared] => Some((parts(grid), parts(block), one(shared))),
            _ => None,
        }
    } else {
        None
    };
    match rule {
        Some((Some(grid), Some(block), Some(shared_bytes))) => Ok(LaunchRule { grid, block, shared_bytes }),
        Some(_) | None => Err("a launch rule is a function of arguments, such as `lambda x: ((x.size + 255) // 256, \
                               256)`, or a tuple of a grid and a block"
            .to_owned()),
    }
}

/// An error of a rule.
fn rule_error(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::BadRule, span, message)
}

/// The error for a value that is no launch.
fn no_launch(span: Span) -> Diagnostic {
    let error = rule_error(span, "a launch rule returns a tuple of a grid and a block");
    error.help(
        "return `(grid, block)` or `(grid, block, sharedmem)`; each of grid and block is an integer or a tuple \
                of up to three",
    )
}

impl Translator<'_> {
    /// The returned value, and its location.
    fn result(&mut self) -> Translated<(Value, Span)> {
        let mut locals = Locals::new();
        for param in &self.of.ast.params {
            locals.insert(param.name.clone(), Value::Param(self.param(param)?));
        }
        let body = self.of.ast.body.as_slice();
        match self.block(body, &mut locals)? {
            Some(returned) => Ok(returned),
            None => {
                let error =
                    rule_error(self.of.ast.name_span, format!("the {} returns nothing on a path", self.of.what));
                Err(error.help("end every path with a `return`"))
            }
        }
    }

    /// The number of the kernel's parameter that a parameter of the rule names.
    fn param(&self, param: &ast::Param) -> Translated<u32> {
        let RuleFunction { what, kernel, params, .. } = self.of;
        if let Some(shown) = param.variadic() {
            let error = rule_error(param.span, format!("the {what} of `{kernel}` takes `{shown}`"));
            return Err(error.help(format!("name the parameters that it uses: {}", params.join(", "))));
        }
        if let Some(index) = params.iter().position(|known| *known == param.name) {
            return Ok(index as u32);
        }
        let message = format!("the {what} takes `{}`, which is no parameter of `{kernel}`", param.name);
        let error = rule_error(param.span, message);
        let near = closest(&param.name, params.iter().map(String::as_str));
        Err(match near {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("the parameters of `{kernel}` are {}", params.join(", "))),
        })
    }

    /// Counts a node.
    fn count(&mut self, span: Span) -> Translated<()> {
        self.nodes += 1;
        if self.nodes <= MAX_NODES {
            return Ok(());
        }
        Err(rule_error(span, format!("the {} is too large", self.of.what)))
    }

    /// A value as an integer.
    fn integer(&self, value: Value, span: Span) -> Translated<RuleExpr> {
        let what = self.of.what;
        match value {
            Value::Int(expr) => Ok(expr),
            Value::Param(param) => Ok(RuleExpr::Scalar(param)),
            Value::Shape(param) => {
                let name = &self.of.params[param as usize];
                let error = rule_error(span, format!("the {what} needs an integer, not a shape"));
                Err(error
                    .help(format!("write `{name}.shape[0]` for an extent, `{name}.size` for the number of elements")))
            }
            Value::Tuple(_) => Err(rule_error(span, format!("the {what} needs an integer, not a tuple"))),
            Value::Builtin(_) => Err(rule_error(span, format!("the {what} needs an integer, not a function"))),
        }
    }

    fn launch(&mut self, value: Value, span: Span) -> Translated<LaunchRule> {
        let Value::Tuple(items) = value else { return Err(no_launch(span)) };
        let mut items = items.into_iter();
        let (Some(grid), Some(block), shared, None) = (items.next(), items.next(), items.next(), items.next()) else {
            return Err(no_launch(span));
        };
        let (grid, block) = (self.extents("grid", grid, span)?, self.extents("block", block, span)?);
        let shared_bytes = shared.map_or(Ok(RuleExpr::Int(0)), |shared| self.integer(shared, span))?;
        Ok(LaunchRule { grid, block, shared_bytes })
    }

    /// The extents along x, y and z.
    fn extents(&mut self, what: &str, value: Value, span: Span) -> Translated<[RuleExpr; 3]> {
        let items = if let Value::Tuple(items) = value { items } else { vec![value] };
        if items.is_empty() || items.len() > 3 {
            let message = format!("a {what} has up to three extents, not {}", items.len());
            return Err(rule_error(span, message));
        }
        let mut extents = items.into_iter().map(|item| self.integer(item, span)).collect::<Translated<Vec<_>>>()?;
        extents.resize(3, RuleExpr::Int(1));
        extents.try_into().map_err(|_| no_launch(span))
    }
}
