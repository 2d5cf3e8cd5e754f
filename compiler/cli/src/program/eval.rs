//! Constant expressions at the top level of a file: literals, names, arithmetic, casts, some functions.

use weft_compiler::{
    intrinsics,
    request::{Captured, number_of_path},
    syntax::ast::{Constant, Expr, ExprKind, UnaryOp},
};

use super::{Program, Value, arith, matrix};

/// The description of a value that depends on running the file.
const UNKNOWN: &str = "value that only Python can compute";

/// Python builtins that weft supports or that could hide a misspelled name.
const BUILTINS: [&str; 22] = [
    "abs",
    "bool",
    "complex",
    "divmod",
    "enumerate",
    "float",
    "int",
    "isinstance",
    "len",
    "list",
    "max",
    "min",
    "object",
    "pow",
    "print",
    "range",
    "round",
    "str",
    "sum",
    "tuple",
    "type",
    "zip",
];

impl Program {
    /// The value of an expression in a module, with the names bound up to now.
    pub(super) fn eval(&self, module: usize, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Constant(constant) => literal(constant),
            ExprKind::Name(name) => self
                .lookup(module, name)
                .unwrap_or_else(|| Value::Opaque("name that the file does not define".into(), None)),
            ExprKind::Attribute { value, attr } => self.member(self.eval(module, value), attr),
            ExprKind::Unary { op, operand } => {
                let value = self.eval(module, operand);
                if *op == UnaryOp::Not {
                    truth(&value).map_or_else(unknown, |value| constant(Captured::Bool(!value)))
                } else if let Value::Const(value) = value {
                    arith::unary(*op, &value).map_or_else(unknown, constant)
                } else {
                    unknown()
                }
            }
            ExprKind::Binary { op, left, right } => match (self.eval(module, left), self.eval(module, right)) {
                (Value::Const(left), Value::Const(right)) => {
                    arith::binary(*op, &left, &right).map_or_else(unknown, constant)
                }
                _ => unknown(),
            },
            ExprKind::Bool { and, values } => {
                let mut last = unknown();
                for value in values {
                    last = self.eval(module, value);
                    match truth(&last) {
                        Some(value) if value == *and => {}
                        Some(_) => return last,
                        None => return unknown(),
                    }
                }
                last
            }
            ExprKind::Compare { left, rest } => {
                let mut left = self.eval(module, left);
                for (op, right) in rest {
                    let right = self.eval(module, right);
                    let (Value::Const(a), Value::Const(b)) = (&left, &right) else { return unknown() };
                    match arith::compare(*op, a, b) {
                        Some(true) => left = right,
                        Some(false) => return constant(Captured::Bool(false)),
                        None => return unknown(),
                    }
                }
                constant(Captured::Bool(true))
            }
            ExprKind::IfExp { test, body, orelse } => match truth(&self.eval(module, test)) {
                Some(true) => self.eval(module, body),
                Some(false) => self.eval(module, orelse),
                None => unknown(),
            },
            ExprKind::Call { func, args, keywords } if matches!(self.eval(module, func), Value::Const(Captured::Known(path)) if path == matrix::TILE) =>
            {
                let mut value = |arg: &Expr| into_constant(self.eval(module, arg));
                let args: Option<Vec<Captured>> = args.iter().map(&mut value).collect();
                let keywords: Option<Vec<(String, Captured)>> =
                    keywords.iter().map(|(name, arg)| Some((name.clone()?, value(arg)?))).collect();
                args.zip(keywords)
                    .and_then(|(args, keywords)| matrix::tile(args, keywords))
                    .map_or_else(unknown, constant)
            }
            ExprKind::Call { func, args, keywords } if keywords.is_empty() => {
                let args: Option<Vec<Captured>> =
                    args.iter().map(|arg| into_constant(self.eval(module, arg))).collect();
                match (self.eval(module, func), args) {
                    (Value::Const(Captured::Known(path)), Some(args)) => {
                        arith::call(&path, &args).map_or_else(unknown, constant)
                    }
                    _ => unknown(),
                }
            }
            ExprKind::Subscript { value, index } => match (self.eval(module, value), self.eval(module, index)) {
                (Value::Const(Captured::Tuple(items)), Value::Const(Captured::Int(index))) => {
                    let index = if index < 0 { index + items.len() as i128 } else { index };
                    let item = usize::try_from(index).ok().and_then(|index| items.into_iter().nth(index));
                    item.map_or_else(unknown, constant)
                }
                _ => unknown(),
            },
            ExprKind::Tuple(items) => {
                let items: Option<Vec<Captured>> =
                    items.iter().map(|item| into_constant(self.eval(module, item))).collect();
                match items.map(|items| arith::tuple(items.iter())) {
                    Some(Some(tuple)) => constant(tuple),
                    Some(None) => Value::Opaque("tuple of too many values".into(), None),
                    None => Value::Opaque("tuple of values that are not constants".into(), None),
                }
            }
            ExprKind::List(_) => Value::Opaque("list".into(), None),
            ExprKind::Unsupported(what) => Value::Opaque((*what).into(), None),
            ExprKind::Call { .. } | ExprKind::Slice { .. } | ExprKind::Starred(_) | ExprKind::Named { .. } => unknown(),
            ExprKind::Lambda(_) => Value::Opaque("lambda".into(), None),
            ExprKind::Comprehension { .. } => Value::Opaque("generator".into(), None),
        }
    }

    /// The value of a name in a module. The module's own names take precedence over builtins.
    pub(super) fn lookup(&self, module: usize, name: &str) -> Option<Value> {
        let known = |path: String| constant(Captured::Known(path));
        let module = self.modules.get(module)?;
        if let Some(value) = module.names.get(name) {
            return Some(value.clone());
        }
        if let Some(value) = module.stars.iter().find_map(|star| known_member(star, name)) {
            return Some(value);
        }
        if BUILTINS.contains(&name) || intrinsics::is_exception(name) {
            return Some(known(format!("builtins.{name}")));
        }
        module.stars.first().map(|star| known(canonical(&format!("{star}.{name}"))))
    }

    /// `value.attr`.
    pub(super) fn member(&self, value: Value, attr: &str) -> Value {
        match value {
            Value::Const(Captured::Known(path)) => {
                let path = canonical(&format!("{path}.{attr}"));
                constant(member_constant(&path).unwrap_or(Captured::Known(path)))
            }
            Value::Const(Captured::Complex(real, imag)) => match attr {
                "real" => constant(Captured::Float(real)),
                "imag" => constant(Captured::Float(imag)),
                _ => unknown(),
            },
            Value::Module(index) => match self.modules.get(index) {
                Some(module) => self.lookup(index, attr).unwrap_or_else(|| {
                    Value::Opaque(format!("name that the module `{}` does not define", module.name), None)
                }),
                None => unknown(),
            },
            Value::Const(_) | Value::Function(_) | Value::Opaque(..) | Value::Unknown(..) => unknown(),
        }
    }
}

/// The value that `from module import *` binds a name to, if the module has it. (NumPy's `__all__` does not rebind
/// Python's builtin functions.)
pub(super) fn known_member(module: &str, name: &str) -> Option<Value> {
    let path = canonical(&format!("{module}.{name}"));
    let hides = module != "numpy" || !intrinsics::is_builtin(name);
    let value = member_constant(&path);
    let exists = value.is_some() || intrinsics::is_known(&path) || number_of_path(&path).is_some();
    (hides && exists && !name.starts_with('_')).then(|| constant(value.unwrap_or(Captured::Known(path))))
}

fn unknown() -> Value {
    Value::Opaque(UNKNOWN.into(), None)
}

fn constant(value: Captured) -> Value {
    Value::Const(value)
}

fn into_constant(value: Value) -> Option<Captured> {
    if let Value::Const(value) = value { Some(value) } else { None }
}

/// The canonical path in the compiler: `numba.` becomes `weft.`, and `core.types` becomes `types`.
pub(super) fn canonical(path: &str) -> String {
    let path = match path.strip_prefix("numba") {
        Some(rest) if rest.is_empty() || rest.starts_with('.') => format!("weft{rest}"),
        _ => path.to_owned(),
    };
    match path.strip_prefix("weft.core.types") {
        Some(rest) => format!("weft.types{rest}"),
        None => path,
    }
}

fn literal(constant: &Constant) -> Value {
    Value::Const(match constant {
        Constant::None => Captured::None,
        Constant::Bool(value) => Captured::Bool(*value),
        Constant::Int(value) => match value.try_into() {
            Ok(value) => Captured::Int(value),
            Err(_) => return Value::Opaque("int of more than 64 bits".into(), None),
        },
        Constant::Float(value) => Captured::Float(*value),
        Constant::Complex(real, imag) => Captured::Complex(*real, *imag),
        Constant::Str(text) => Captured::Str(text.clone()),
        Constant::Bytes(_) => return Value::Opaque("bytes object".into(), None),
        Constant::Ellipsis => return Value::Opaque("`...`".into(), None),
    })
}

/// Numeric constants of modules.
fn member_constant(path: &str) -> Option<Captured> {
    use std::f64::consts;
    let (module, name) = path.split_once('.')?;
    if !matches!(module, "math" | "numpy" | "cmath") {
        return None;
    }
    Some(Captured::Float(match name {
        "pi" => consts::PI,
        "e" => consts::E,
        "tau" if module != "numpy" => consts::TAU,
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        "euler_gamma" if module == "numpy" => 0.577_215_664_901_532_9,
        "newaxis" if module == "numpy" => return Some(Captured::None),
        _ => return None,
    }))
}

/// The truth value of a constant in Python. `None` if it is not known.
pub(super) fn truth(value: &Value) -> Option<bool> {
    let Value::Const(value) = value else { return None };
    Some(match value {
        Captured::None => false,
        Captured::Bool(value) => *value,
        Captured::Int(value) | Captured::NumpyInt(_, value) => *value != 0,
        Captured::Float(value) => *value != 0.0,
        Captured::Complex(real, imag) | Captured::NumpyFloat(_, real, imag) => *real != 0.0 || *imag != 0.0,
        Captured::Str(text) => !text.is_empty(),
        Captured::Bytes(bytes) => !bytes.is_empty(),
        Captured::Time(_, count) => *count != 0,
        Captured::Tuple(items) => !items.is_empty(),
        Captured::DType(_)
        | Captured::Known(_)
        | Captured::Module(..)
        | Captured::Function(_)
        | Captured::Recursive(_)
        | Captured::Exception(_)
        | Captured::Overloaded(_)
        | Captured::Class(..) => true,
        // Their classes may define `__bool__`.
        Captured::Struct(..) | Captured::Enum(..) => return None,
        Captured::Array(_) | Captured::DeviceArray(..) | Captured::Unsupported(..) | Captured::Unknown(..) => {
            return None;
        }
    })
}
