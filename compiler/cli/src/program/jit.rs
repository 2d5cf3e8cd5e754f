//! Reads decorators: finds kernels and device functions with their signatures and options.

use weft_artifact::{
    ArgType,
    rules::{LaunchRule, OutputRule},
};
use weft_compiler::{
    diagnostic::{Code, Diagnostic, closest},
    request::{Abi, Captured, External, GpuBody, JIT_OPTIONS, JitOptions, OptionValue, PtxBody, Signature},
    signature::{self, Named},
    source::Span,
    syntax::ast::{Constant, Expr, ExprKind},
};

use super::{Function, Program, Value, eval};

/// The path of `cuda.jit`.
const JIT: &str = "weft.cuda.jit";

/// The path of `cuda.declare_device`.
const DECLARE: &str = "weft.cuda.declare_device";

/// The path of `extending.register_jitable`, which marks a device function that Python also calls as a plain function.
const REGISTER: &str = "weft.cuda.extending.register_jitable";

/// The contents of a decorator.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Jit {
    /// Its signatures.
    pub(crate) signatures: Vec<Signature>,
    /// Its options, and the body that replaces the function on GPUs.
    pub(crate) options: JitOptions,
    /// The launch rule of the exported kernel.
    pub(crate) launch: Option<LaunchRule>,
    /// The output rules of the exported kernel.
    pub(crate) outputs: Vec<OutputRule>,
}

impl Program {
    /// Whether an expression is `cuda.jit` or a call of it.
    pub(super) fn is_jit(&self, module: usize, expr: &Expr) -> bool {
        self.jit_path(module, expr).is_some()
    }

    /// Whether an expression may be `cuda.jit`, judging by its spelling. It is for code that is not interpreted, where
    /// `cuda` may be a local name.
    pub(super) fn may_be_jit(&self, module: usize, expr: &Expr) -> bool {
        let func = if let ExprKind::Call { func, .. } = &expr.kind { func } else { expr };
        let named = |value: &Expr, expected: &str| matches!(&value.kind, ExprKind::Name(name) if name == expected);
        let looks = if let ExprKind::Attribute { value, attr } = &func.kind {
            attr == "jit" && named(value, "cuda")
        } else {
            false
        };
        looks || self.is_jit(module, expr)
    }

    /// The path of `cuda.jit` or a similar decorator, if an expression is one or calls one.
    fn jit_path(&self, module: usize, expr: &Expr) -> Option<String> {
        let func = if let ExprKind::Call { func, .. } = &expr.kind { func } else { expr };
        if let Value::Const(Captured::Known(path)) = self.eval(module, func) {
            const PATHS: [&str; 6] = [JIT, "weft.cuda.intrinsic", DECLARE, REGISTER, "weft.jit", "weft.njit"];
            PATHS.contains(&path.as_str()).then_some(path)
        } else {
            None
        }
    }

    /// The first decorator that is `cuda.jit` or similar, and the errors in it.
    pub(super) fn read_decorators(&self, module: usize, decorators: &[Expr]) -> (Option<Jit>, Vec<Diagnostic>) {
        let mut faults = Vec::new();
        let Some((path, decorator)) =
            decorators.iter().find_map(|decorator| Some((self.jit_path(module, decorator)?, decorator)))
        else {
            return (None, faults);
        };
        if path == "weft.cuda.intrinsic" {
            return (Some(self.read_intrinsic(module, decorator, &mut faults)), faults);
        }
        if path == DECLARE {
            return (Some(self.read_declaration(module, decorator, true, &mut faults)), faults);
        }
        let mut jit = Jit::default();
        let mut given: Vec<(&str, OptionValue)> = Vec::new();
        if let ExprKind::Call { args, keywords, .. } = &decorator.kind {
            if let Some(first) = args.first() {
                match signature::signatures_of(first, &|chain| self.named(module, chain)) {
                    Ok(signatures) => jit.signatures = signatures,
                    Err(fault) => faults.push(fault),
                }
            }
            for (option, value) in JIT_OPTIONS.iter().zip(args.iter().skip(1)) {
                given.extend(option_value(&self.eval(module, value)).map(|value| (option.name, value)));
            }
            for (name, value) in keywords {
                let Some(name) = name.as_deref() else { continue };
                if name == "func_or_sig" {
                    match signature::signatures_of(value, &|chain| self.named(module, chain)) {
                        Ok(signatures) => jit.signatures = signatures,
                        Err(fault) => faults.push(fault),
                    }
                } else if JitOptions::option(name).is_some() {
                    given.extend(option_value(&self.eval(module, value)).map(|value| (name, value)));
                } else if path == JIT {
                    let message = format!("`cuda.jit` has no option `{name}`");
                    let error = Diagnostic::error(Code::ArgumentCount, value.span, message);
                    let names = || JIT_OPTIONS.iter().map(|option| option.name);
                    faults.push(match closest(name, names()) {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error.note(format!("its options are {}", names().collect::<Vec<_>>().join(", "))),
                    });
                }
            }
        }
        if let Err((name, refusal)) = jit.options.take(&given)
            && path == JIT
        {
            let at = argument_span(decorator, name);
            faults.push(Diagnostic::error(Code::ArgumentCount, at, refusal.message()));
        }
        jit.options.device |= path == "weft.njit" || path == REGISTER;
        (Some(jit), faults)
    }

    /// The declaration in `cuda.declare_device(name, signature, …)`, if an expression is such a call.
    pub(super) fn declaration(&self, module: usize, expr: &Expr) -> Option<(Jit, Vec<Diagnostic>)> {
        if !matches!(expr.kind, ExprKind::Call { .. }) || self.jit_path(module, expr)? != DECLARE {
            return None;
        }
        let mut faults = Vec::new();
        let jit = self.read_declaration(module, expr, false, &mut faults);
        Some((jit, faults))
    }

    /// `cuda.declare_device(name, sig, link=None, use_cooperative=False, abi="numba")`.
    fn read_declaration(&self, module: usize, call: &Expr, python: bool, faults: &mut Vec<Diagnostic>) -> Jit {
        let mut jit = Jit { options: JitOptions { device: true, ..JitOptions::default() }, ..Jit::default() };
        let given = |index: usize, wanted: &str| argument(call, index, wanted).map(|value| self.eval(module, value));
        let signature =
            argument(call, 1, "sig").map(|sig| signature::signatures_of(sig, &|chain| self.named(module, chain)));
        match signature {
            Some(Ok(signatures)) => jit.signatures = signatures,
            Some(Err(fault)) => faults.push(fault),
            None => {}
        }
        let abi = match given(4, "abi") {
            None => Some(Abi::Numba),
            Some(Value::Const(Captured::Str(name))) if name == "numba" => Some(Abi::Numba),
            Some(Value::Const(Captured::Str(name))) if name == "c" => Some(Abi::C),
            Some(_) => None,
        };
        let cooperative = given(3, "use_cooperative").and_then(|value| eval::truth(&value)).unwrap_or(false);
        if let (Some(Value::Const(Captured::Str(symbol))), Some(abi), [_]) =
            (given(0, "name"), abi, jit.signatures.as_slice())
        {
            jit.options.gpu = Some(GpuBody::External(External { symbol, abi, cooperative, python }));
        } else if faults.is_empty() {
            let message =
                "`cuda.declare_device` takes the name of a function, one signature, and an ABI, \"numba\" or \"c\"";
            faults.push(Diagnostic::error(Code::NotConstant, call.span, message));
        }
        jit
    }

    /// `cuda.intrinsic(signature, ptx, pure=False)`.
    fn read_intrinsic(&self, module: usize, decorator: &Expr, faults: &mut Vec<Diagnostic>) -> Jit {
        let mut jit = Jit { options: JitOptions { device: true, ..JitOptions::default() }, ..Jit::default() };
        if !matches!(decorator.kind, ExprKind::Call { .. }) {
            let message = "`cuda.intrinsic` takes a signature and PTX";
            faults.push(Diagnostic::error(Code::ArgumentCount, decorator.span, message));
            return jit;
        }
        let given = |index: usize, wanted: &str| argument(decorator, index, wanted);
        match given(0, "signature").map(|text| signature::signatures_of(text, &|chain| self.named(module, chain))) {
            Some(Ok(signatures)) => jit.signatures = signatures,
            Some(Err(fault)) => faults.push(fault),
            None => {}
        }
        let ptx = given(1, "ptx");
        if let Some(Value::Const(Captured::Str(text))) = ptx.map(|ptx| self.eval(module, ptx)) {
            let pure = given(2, "pure").and_then(|pure| eval::truth(&self.eval(module, pure))).unwrap_or(false);
            jit.options.gpu = Some(GpuBody::Ptx(PtxBody { text, pure }));
        }
        if jit.options.gpu.is_none() || jit.signatures.len() > 1 {
            let message = "`cuda.intrinsic` takes one signature, and PTX as a string literal";
            faults.push(Diagnostic::error(Code::NotConstant, ptx.unwrap_or(decorator).span, message));
        }
        jit
    }

    /// The types of a function's annotations. `None` unless every parameter is annotated with a type.
    pub(super) fn annotated(&self, function: &Function) -> Option<Vec<ArgType>> {
        if function.ast.params.is_empty() {
            return Some(Vec::new());
        }
        let names = |chain: &str| self.named(function.module, chain);
        let annotated =
            function.ast.params.iter().map(|param| signature::type_of(param.annotation.as_ref()?, &names).ok());
        annotated.collect()
    }

    /// The meaning of a dotted name in a type expression.
    fn named(&self, module: usize, chain: &str) -> Option<Named> {
        let mut parts = chain.split('.');
        let mut value = self.lookup(module, parts.next()?)?;
        for part in parts {
            value = self.member(value, part);
        }
        match value {
            Value::Const(Captured::Known(path)) => Some(Named::Path(path)),
            Value::Const(Captured::DType(scalar)) => Some(Named::Path(format!("weft.types.{scalar}"))),
            Value::Const(Captured::Str(text)) => {
                Some(Named::Value(Expr { kind: ExprKind::Constant(Constant::Str(text)), span: Span::default() }))
            }
            Value::Opaque(_, Some(expr)) => Some(Named::Value(*expr)),
            Value::Const(_) | Value::Module(_) | Value::Function(_) | Value::Opaque(..) | Value::Unknown(..) => None,
        }
    }
}

/// A call's argument, by position or by keyword.
pub(super) fn argument<'a>(call: &'a Expr, index: usize, wanted: &str) -> Option<&'a Expr> {
    let ExprKind::Call { args, keywords, .. } = &call.kind else { return None };
    let named = |(name, value): &'a (Option<String>, Expr)| (name.as_deref() == Some(wanted)).then_some(value);
    args.get(index).or_else(|| keywords.iter().find_map(named))
}

/// The span of a decorator's option.
fn argument_span(decorator: &Expr, name: &str) -> Span {
    let index = JIT_OPTIONS.iter().position(|option| option.name == name);
    index.and_then(|index| argument(decorator, index + 1, name)).unwrap_or(decorator).span
}

/// The value of an option. `None` if it depends on running the file.
fn option_value(value: &Value) -> Option<OptionValue> {
    match value {
        Value::Const(value) => captured(value),
        Value::Module(_) | Value::Function(_) | Value::Opaque(..) | Value::Unknown(..) => None,
    }
}

fn captured(value: &Captured) -> Option<OptionValue> {
    Some(match value {
        Captured::None => OptionValue::None,
        Captured::Bool(truth) => OptionValue::Bool(*truth),
        Captured::Int(value) | Captured::NumpyInt(_, value) => OptionValue::Int(i64::try_from(*value).ok()?),
        Captured::Str(text) => OptionValue::Str(text.clone()),
        Captured::Tuple(items) => OptionValue::Tuple(items.iter().map(captured).collect::<Option<_>>()?),
        Captured::Float(value) => OptionValue::Other { truth: *value != 0.0, shown: format!("{value:?}") },
        Captured::Complex(..)
        | Captured::NumpyFloat(..)
        | Captured::Time(..)
        | Captured::Bytes(_)
        | Captured::Struct(..)
        | Captured::Enum(..)
        | Captured::Class(..)
        | Captured::Array(_)
        | Captured::DeviceArray(..)
        | Captured::DType(_)
        | Captured::Known(_)
        | Captured::Module(..)
        | Captured::Function(_)
        | Captured::Recursive(_)
        | Captured::Overloaded(_)
        | Captured::Exception(_)
        | Captured::Unsupported(..)
        | Captured::Unknown(..) => return None,
    })
}
