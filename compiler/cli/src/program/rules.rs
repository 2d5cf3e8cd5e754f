//! Reads the options `launch` and `out` of a decorator: the launch rule and the output rules of the exported kernel.

use std::collections::BTreeMap;

use weft_artifact::{
    DType,
    rules::{LaunchRule, OutputDType, OutputRule, OutputShape},
};
use weft_compiler::{
    diagnostic::{Code, Diagnostic, closest},
    request::{Captured, dtype_of_path},
    rules::{RuleFunction, constant_launch, launch_rule, output_shape},
    source::Span,
    syntax::{
        ast::{self, Expr, ExprKind},
        free_chains,
    },
};

use super::{
    Captures, Program, Value,
    jit::{Jit, argument},
};

/// The message for a value that is no output rule.
const NO_OUTPUT: &str =
    "`out` takes `cuda.like(\"x\")`, `cuda.shaped(lambda x: …)`, or `dict(y=…)` of these by parameter";

/// The result of reading a rule.
type Read<T> = Result<T, Diagnostic>;

fn error(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::BadRule, span, message)
}

impl Program {
    /// Reads the rules in a function's decorators, and returns the errors in them.
    pub(super) fn read_rules(
        &self,
        module: usize,
        decorators: &[Expr],
        kernel: &ast::Function,
        jit: &mut Jit,
    ) -> Vec<Diagnostic> {
        let mut faults = Vec::new();
        let Some(decorator) = decorators.iter().find(|decorator| self.is_jit(module, decorator)) else { return faults };
        let reader = Reader { program: self, module, kernel, params: names(kernel) };
        // Both are given by keyword only.
        if let Some(launch) = argument(decorator, usize::MAX, "launch") {
            match reader.launch(launch) {
                Ok(launch) => jit.launch = launch,
                Err(fault) => faults.push(fault),
            }
        }
        if let Some(out) = argument(decorator, usize::MAX, "out") {
            match reader.outputs(out) {
                Ok(outputs) => jit.outputs = outputs,
                Err(fault) => faults.push(fault),
            }
        }
        faults
    }
}

fn names(kernel: &ast::Function) -> Vec<String> {
    kernel.params.iter().map(|param| param.name.clone()).collect()
}

/// Reads the rules of a kernel.
struct Reader<'a> {
    program: &'a Program,
    module: usize,
    kernel: &'a ast::Function,
    params: Vec<String>,
}

impl Reader<'_> {
    fn launch(&self, value: &Expr) -> Read<Option<LaunchRule>> {
        if let Some((function, globals)) = self.function(value) {
            return launch_rule(self.rule("launch rule", &function, &globals)).map(Some);
        }
        match self.program.eval(self.module, value) {
            Value::Const(Captured::None) => Ok(None),
            Value::Const(constant) => {
                constant_launch(&constant).map(Some).map_err(|message| error(value.span, message))
            }
            Value::Module(_) | Value::Function(_) | Value::Opaque(..) | Value::Unknown(..) => {
                let error = error(value.span, "the command cannot read this launch rule without running the file");
                Err(error.help("write a lambda, a function at the top level of the file, or a tuple of constants"))
            }
        }
    }

    fn outputs(&self, value: &Expr) -> Read<Vec<OutputRule>> {
        if self.program.eval(self.module, value) == Value::Const(Captured::None) {
            return Ok(Vec::new());
        }
        if matches!(value.kind, ExprKind::Unsupported("dictionary")) {
            let error = error(value.span, "the command cannot read a dictionary in braces");
            return Err(error.help("write `out=dict(y=cuda.like(\"x\"), …)`, which is the same to Python"));
        }
        if let ExprKind::Call { func, args, keywords } = &value.kind
            && args.is_empty()
            && matches!(&func.kind, ExprKind::Name(name) if name == "dict")
        {
            let rules = keywords.iter().map(|(name, rule)| {
                let name = name.as_deref().ok_or_else(|| error(rule.span, NO_OUTPUT))?;
                Ok(OutputRule { param: self.index(name, rule.span)?, ..self.output(rule)? })
            });
            return rules.collect();
        }
        Ok(vec![self.output(value)?])
    }

    /// One rule; its parameter is that of a rule without a name.
    fn output(&self, value: &Expr) -> Read<OutputRule> {
        let no_output = || error(value.span, NO_OUTPUT);
        let ExprKind::Call { func, keywords, .. } = &value.kind else { return Err(no_output()) };
        let Value::Const(Captured::Known(path)) = self.program.eval(self.module, func) else { return Err(no_output()) };
        let known = ["name", "shape", "dtype", "fill"];
        if let Some((_, other)) =
            keywords.iter().find(|(name, _)| !name.as_deref().is_some_and(|name| known.contains(&name)))
        {
            return Err(error(other.span, "an output rule has the options `dtype` and `fill`"));
        }
        let dtype = argument(value, usize::MAX, "dtype");
        let (shape, dtype) = match path.as_str() {
            "weft.cuda.like" => {
                let name = argument(value, 0, "name").ok_or_else(no_output)?;
                let like = self.param(name)?;
                (OutputShape::Like(like), dtype.map_or(Ok(OutputDType::Like(like)), |dtype| self.dtype(dtype))?)
            }
            "weft.cuda.shaped" => {
                let shape = argument(value, 0, "shape").ok_or_else(no_output)?;
                let Some((function, globals)) = self.function(shape) else {
                    return Err(error(shape.span, "`cuda.shaped` takes a function of arguments")
                        .help("write a lambda, such as `cuda.shaped(lambda x: (x.shape[0],))`"));
                };
                let shape = output_shape(self.rule("output rule", &function, &globals))?;
                (shape, dtype.map_or(Ok(OutputDType::Declared), |dtype| self.dtype(dtype))?)
            }
            _ => return Err(no_output()),
        };
        let zeroed = match argument(value, usize::MAX, "fill").map(|fill| (fill, self.program.eval(self.module, fill)))
        {
            None | Some((_, Value::Const(Captured::None))) => false,
            Some((_, Value::Const(Captured::Int(0)))) => true,
            Some((fill, _)) => return Err(error(fill.span, "`fill` is 0, or None for uninitialized memory")),
        };
        Ok(OutputRule { param: OutputRule::ONLY_WRITTEN, shape, dtype, zeroed })
    }

    fn dtype(&self, value: &Expr) -> Read<OutputDType> {
        let no_dtype = || error(value.span, "`dtype` is a dtype such as `np.float32`, or the name of a parameter");
        let evaluated = self.program.eval(self.module, value);
        let Value::Const(constant) = evaluated else { return Err(no_dtype()) };
        let number = if let Captured::DType(dtype) = constant {
            dtype.number()
        } else if let Captured::Known(path) = &constant {
            dtype_of_path(path).and_then(DType::number)
        } else if let Captured::Str(name) = &constant {
            if let Some(param) = self.params.iter().position(|known| known == name) {
                return Ok(OutputDType::Like(param as u32));
            }
            dtype_of_path(&format!("weft.types.{name}")).and_then(DType::number)
        } else {
            None
        };
        number.map(OutputDType::Is).ok_or_else(no_dtype)
    }

    /// The number of the parameter that a string names.
    fn param(&self, value: &Expr) -> Read<u32> {
        let Value::Const(Captured::Str(name)) = self.program.eval(self.module, value) else {
            return Err(error(value.span, "an output rule names a parameter of the kernel by a string"));
        };
        self.index(&name, value.span)
    }

    /// The number of a parameter.
    fn index(&self, name: &str, span: Span) -> Read<u32> {
        if let Some(index) = self.params.iter().position(|known| known == name) {
            return Ok(index as u32);
        }
        let error = error(span, format!("`{name}` is no parameter of `{}`", self.kernel.name));
        Err(match closest(name, self.params.iter().map(String::as_str)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("its parameters are {}", self.params.join(", "))),
        })
    }

    /// The function that an expression is, with the values of its free names: a lambda, or the name of a function.
    fn function(&self, value: &Expr) -> Option<(ast::Function, BTreeMap<String, Captured>)> {
        let (module, function) = if let ExprKind::Lambda(function) = &value.kind {
            (self.module, (**function).clone())
        } else if let Value::Function(index) = self.program.eval(self.module, value) {
            let function = self.program.functions.get(index)?;
            (function.module, function.ast.clone())
        } else {
            return None;
        };
        let globals = self.program.globals(module, &free_chains(&function), &mut Captures::default());
        Some((function, globals))
    }

    fn rule<'b>(
        &'b self,
        what: &'b str,
        ast: &'b ast::Function,
        globals: &'b BTreeMap<String, Captured>,
    ) -> RuleFunction<'b> {
        RuleFunction { what, ast, globals, kernel: &self.kernel.name, params: &self.params }
    }
}
