//! Decorators: which functions are kernels or device functions, with which signatures and options.

use weft_artifact::ArgType;
use weft_compiler::{
    diagnostic::{Code, Diagnostic, closest},
    request::{Abi, Captured, External, GpuBody, LaunchBounds, Options, PtxBody, Signature},
    signature::{self, Named},
    source::Span,
    syntax::ast::{Constant, Expr, ExprKind},
};

use super::{Function, Program, Value, eval};

/// The options of `cuda.jit`, as Python takes them.
const OPTIONS: [&str; 18] = [
    "device",
    "inline",
    "forceinline",
    "link",
    "debug",
    "opt",
    "lineinfo",
    "cache",
    "fastmath",
    "max_registers",
    "launch_bounds",
    "lto",
    "shared_memory_carveout",
    "extensions",
    "boundscheck",
    "exceptions",
    "source",
    "func_or_sig",
];

/// The path of `cuda.declare_device`.
const DECLARE: &str = "weft.cuda.declare_device";

/// The path of `extending.register_jitable`: a device function that stays a plain one to Python.
const REGISTER: &str = "weft.cuda.extending.register_jitable";

/// What a decorator says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Jit {
    /// The signatures in it.
    pub(crate) signatures: Vec<Signature>,
    /// `device=True`: called by kernels, no kernel itself.
    pub(crate) device: bool,
    /// `inline="always"` or `forceinline=True`.
    pub(crate) inline: bool,
    /// The PTX of `cuda.intrinsic`, or the function of `cuda.declare_device`.
    pub(crate) gpu: Option<GpuBody>,
    /// The options that change code, but for libdevice.
    pub(crate) code: Options,
}

impl Program {
    /// Whether an expression is `cuda.jit`, called or not.
    pub(super) fn is_jit(&self, module: usize, expr: &Expr) -> bool {
        self.jit_path(module, expr).is_some()
    }

    /// Whether an expression in a place that is not carried out looks like `cuda.jit`: names there may be local.
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

    /// The path of `cuda.jit` or its like that an expression is or calls.
    fn jit_path(&self, module: usize, expr: &Expr) -> Option<String> {
        let func = if let ExprKind::Call { func, .. } = &expr.kind { func } else { expr };
        if let Value::Const(Captured::Known(path)) = self.eval(module, func) {
            const PATHS: [&str; 6] =
                ["weft.cuda.jit", "weft.cuda.intrinsic", DECLARE, REGISTER, "weft.jit", "weft.njit"];
            PATHS.contains(&path.as_str()).then_some(path)
        } else {
            None
        }
    }

    /// The first decorator that is `cuda.jit`, and what cannot be read in it.
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
        let mut jit = Jit { device: path == "weft.njit" || path == REGISTER, ..Jit::default() };
        if let ExprKind::Call { args, keywords, .. } = &decorator.kind {
            if let Some(first) = args.first() {
                match signature::signatures_of(first, &|chain| self.named(module, chain)) {
                    Ok(signatures) => jit.signatures = signatures,
                    Err(fault) => faults.push(fault),
                }
            }
            for (name, value) in keywords {
                let Some(name) = name.as_deref() else { continue };
                if name == "func_or_sig" {
                    match signature::signatures_of(value, &|chain| self.named(module, chain)) {
                        Ok(signatures) => jit.signatures = signatures,
                        Err(fault) => faults.push(fault),
                    }
                } else if path == "weft.cuda.jit" && !OPTIONS.contains(&name) {
                    let message = format!("`cuda.jit` has no option `{name}`");
                    let error = Diagnostic::error(Code::ArgumentCount, value.span, message);
                    faults.push(match closest(name, OPTIONS) {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error.note(format!("its options are {}", OPTIONS.join(", "))),
                    });
                } else {
                    set_option(&mut jit, name, &self.eval(module, value));
                }
            }
        }
        (Some(jit), faults)
    }

    /// What `cuda.declare_device(name, signature, …)` says, if an expression is such a call.
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
        let mut jit = Jit { device: true, ..Jit::default() };
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
            jit.gpu = Some(GpuBody::External(External { symbol, abi, cooperative, python }));
        } else if faults.is_empty() {
            let message =
                "`cuda.declare_device` takes the name of a function, one signature, and an ABI, \"numba\" or \"c\"";
            faults.push(Diagnostic::error(Code::NotConstant, call.span, message));
        }
        jit
    }

    /// `cuda.intrinsic(signature, ptx, pure=False)`.
    fn read_intrinsic(&self, module: usize, decorator: &Expr, faults: &mut Vec<Diagnostic>) -> Jit {
        let mut jit = Jit { device: true, ..Jit::default() };
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
            jit.gpu = Some(GpuBody::Ptx(PtxBody { text, pure }));
        }
        if jit.gpu.is_none() || jit.signatures.len() > 1 {
            let message = "`cuda.intrinsic` takes one signature, and PTX as a text that is known";
            faults.push(Diagnostic::error(Code::NotConstant, ptx.unwrap_or(decorator).span, message));
        }
        jit
    }

    /// The types of a function's annotations, if each parameter has one that is a type.
    pub(super) fn annotated(&self, function: &Function) -> Option<Vec<ArgType>> {
        if function.ast.params.is_empty() {
            return Some(Vec::new());
        }
        let names = |chain: &str| self.named(function.module, chain);
        let annotated =
            function.ast.params.iter().map(|param| signature::type_of(param.annotation.as_ref()?, &names).ok());
        annotated.collect()
    }

    /// What a dotted name in a type expression means.
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

/// A call's argument, by its position or by its name.
fn argument<'a>(call: &'a Expr, index: usize, wanted: &str) -> Option<&'a Expr> {
    let ExprKind::Call { args, keywords, .. } = &call.kind else { return None };
    let named = |(name, value): &'a (Option<String>, Expr)| (name.as_deref() == Some(wanted)).then_some(value);
    args.get(index).or_else(|| keywords.iter().find_map(named))
}

/// Takes one option over.
fn set_option(jit: &mut Jit, name: &str, value: &Value) {
    let flag = eval::truth(value).unwrap_or(false);
    match name {
        "device" => jit.device = flag,
        "inline" => jit.inline |= *value == Value::Const(Captured::Str("always".into())),
        "forceinline" => jit.inline |= flag,
        "fastmath" => jit.code.fastmath = flag,
        "lineinfo" => jit.code.lineinfo = flag,
        "exceptions" => jit.code.exceptions = flag,
        "debug" => jit.code.debug = flag,
        "boundscheck" => jit.code.boundscheck = flag,
        "opt" => jit.code.opt = flag,
        "max_registers" => jit.code.max_registers = launch_bounds(value).map(|bounds| bounds.threads),
        "launch_bounds" => jit.code.launch_bounds = launch_bounds(value),
        // Options of the launch, of caching and of linking change no code here.
        _ => {}
    }
}

fn launch_bounds(value: &Value) -> Option<LaunchBounds> {
    let bound = |value: &Captured| if let Captured::Int(value) = value { u32::try_from(*value).ok() } else { None };
    match value {
        Value::Const(Captured::Tuple(items)) => Some(LaunchBounds {
            threads: bound(items.first()?)?,
            blocks: items.get(1).and_then(bound),
            cluster: items.get(2).and_then(bound),
        }),
        Value::Const(value) => Some(LaunchBounds { threads: bound(value)?, blocks: None, cluster: None }),
        Value::Module(_) | Value::Function(_) | Value::Opaque(..) | Value::Unknown(..) => None,
    }
}
