//! Arithmetic on captured constants with the semantics of Python and NumPy. `None` means that the value is unknown: an
//! error in Python, a number of more than 127 bits, or an unsupported operation.

use std::cmp::Ordering;

use weft_artifact::{MAX_LEAVES, Number, Scalar};
use weft_compiler::{
    request::{Captured, number_of_path},
    syntax::{
        ast::{BinOp, CmpOp, UnaryOp},
        number::{self, Number as Python},
    },
};

/// A number, and its NumPy type if it is a NumPy scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Int(i128),
    Float(f64),
    Complex(f64, f64),
}

fn number(value: &Captured) -> Option<(Value, Option<Number>)> {
    Some(match *value {
        Captured::Bool(value) => (Value::Int(value.into()), None),
        Captured::Int(value) => (Value::Int(value), None),
        Captured::Float(value) => (Value::Float(value), None),
        Captured::Complex(real, imag) => (Value::Complex(real, imag), None),
        Captured::NumpyInt(ty, value) => (Value::Int(value), Some(ty.into())),
        Captured::NumpyFloat(ty @ Number::Complex(_), real, imag) => (Value::Complex(real, imag), Some(ty)),
        Captured::NumpyFloat(ty, real, _) => (Value::Float(real), Some(ty)),
        Captured::None
        | Captured::Str(_)
        | Captured::Bytes(_)
        | Captured::Time(..)
        | Captured::Tuple(_)
        | Captured::Struct(..)
        | Captured::Enum(..)
        | Captured::Class(..)
        | Captured::Exception(_)
        | Captured::Overloaded(_)
        | Captured::Array(_)
        | Captured::DeviceArray(..)
        | Captured::Recursive(_)
        | Captured::DType(_)
        | Captured::Known(_)
        | Captured::Module(..)
        | Captured::Function(_)
        | Captured::Unsupported(..)
        | Captured::Unknown(..) => return None,
    })
}

fn captured(value: Value, ty: Option<Number>) -> Option<Captured> {
    Some(match (value, ty) {
        (Value::Int(value), None) => Captured::Int(value),
        (Value::Float(value), None) => Captured::Float(value),
        (Value::Complex(real, imag), None) => Captured::Complex(real, imag),
        (value, Some(ty)) => return cast(ty, value),
    })
}

/// Converts a number to a NumPy scalar. Integers wrap around.
fn cast(ty: Number, value: Value) -> Option<Captured> {
    let round = |value: f64| ty.part().nearest(value);
    Some(match (ty, value) {
        (Number::Real(Scalar::Bool), Value::Int(value)) => Captured::NumpyInt(Scalar::Bool, i128::from(value != 0)),
        (Number::Real(Scalar::Bool), Value::Float(value)) => Captured::NumpyInt(Scalar::Bool, i128::from(value != 0.0)),
        (Number::Real(int), Value::Int(value)) if int.is_int() => Captured::NumpyInt(int, wrap(int, value)),
        (Number::Real(int), Value::Float(value)) if int.is_int() => {
            Captured::NumpyInt(int, wrap(int, whole(value.trunc())?))
        }
        (_, Value::Int(value)) => Captured::NumpyFloat(ty, ty.part().nearest_int(value), 0.0),
        (_, Value::Float(value)) => Captured::NumpyFloat(ty, round(value), 0.0),
        (Number::Complex(_), Value::Complex(real, imag)) => Captured::NumpyFloat(ty, round(real), round(imag)),
        (Number::Real(_), Value::Complex(..)) => return None,
    })
}

fn wrap(ty: Scalar, value: i128) -> i128 {
    let bits = ty.size_bytes() * 8;
    let low = value & ((1 << bits) - 1);
    if ty.is_signed_int() && low >> (bits - 1) == 1 { low - (1 << bits) } else { low }
}

fn whole(value: f64) -> Option<i128> {
    (value.is_finite() && value.abs() < 1e38).then_some(value as i128)
}

/// `op value`.
pub(super) fn unary(op: UnaryOp, value: &Captured) -> Option<Captured> {
    let (value, ty) = number(value)?;
    let value = match (op, value) {
        (UnaryOp::Invert, _) if ty == Some(Number::BOOL) => return None,
        (_, value) => given(number::unary(op, &python(value))?)?,
    };
    captured(value, ty)
}

/// A tuple. `None` if it has more values than a kernel can use, because nested tuples can grow exponentially.
pub(super) fn tuple<'a>(items: impl Iterator<Item = &'a Captured> + Clone) -> Option<Captured> {
    let leaves = items.clone().map(Captured::leaves).fold(0, usize::saturating_add);
    (leaves <= MAX_LEAVES).then(|| Captured::Tuple(items.cloned().collect()))
}

/// `left op right`: of numbers, and `+` and `*` of tuples and strings.
pub(super) fn binary(op: BinOp, left: &Captured, right: &Captured) -> Option<Captured> {
    match (op, left, right) {
        (BinOp::Add, Captured::Tuple(left), Captured::Tuple(right)) => {
            return tuple(left.iter().chain(right));
        }
        (BinOp::Add, Captured::Str(left), Captured::Str(right)) => {
            return Some(Captured::Str(format!("{left}{right}")));
        }
        (BinOp::Mul, Captured::Tuple(items), Captured::Int(n))
        | (BinOp::Mul, Captured::Int(n), Captured::Tuple(items)) => {
            let n = usize::try_from((*n).max(0)).ok().filter(|n| n.saturating_mul(items.len()) <= MAX_LEAVES)?;
            return tuple(items.iter().cycle().take(items.len() * n));
        }
        _ => {}
    }
    if let (Captured::Bool(a), Captured::Bool(b)) = (left, right) {
        match op {
            BinOp::BitAnd => return Some(Captured::Bool(a & b)),
            BinOp::BitOr => return Some(Captured::Bool(a | b)),
            BinOp::BitXor => return Some(Captured::Bool(a ^ b)),
            BinOp::Add
            | BinOp::Sub
            | BinOp::Mul
            | BinOp::Div
            | BinOp::FloorDiv
            | BinOp::Mod
            | BinOp::Pow
            | BinOp::MatMul
            | BinOp::LShift
            | BinOp::RShift => {}
        }
    }
    let ((left, left_ty), (right, right_ty)) = (number(left)?, number(right)?);
    let value = compute(op, left, right)?;
    let ty = match (left_ty, right_ty) {
        (None, None) => None,
        (Some(ty), None) => Some(weak(ty, right)),
        (None, Some(ty)) => Some(weak(ty, left)),
        (Some(a), Some(b)) => Some(promote(a, b)),
    };
    // True division of integers and negative powers give floats.
    let ty = ty.map(|ty| match (ty, value) {
        (Number::Real(int), Value::Float(_)) if int.is_int() => Number::F64,
        _ => ty,
    });
    captured(value, ty)
}

/// The promoted type of a NumPy scalar and a Python number. A Python number of the same kind does not widen the scalar.
fn weak(ty: Number, other: Value) -> Number {
    match (other, ty) {
        (Value::Int(_), _) => ty,
        (Value::Float(_), Number::Real(scalar)) if !scalar.is_float() => Number::F64,
        (Value::Float(_), _) => ty,
        (Value::Complex(..), Number::F16 | Number::BF16 | Number::F32 | Number::C64) => Number::C64,
        (Value::Complex(..), _) => Number::C128,
    }
}

/// NumPy's promotion of two scalar types.
fn promote(a: Number, b: Number) -> Number {
    if a == b {
        return a;
    }
    // Types that promote to float64.
    let is_wide = |ty: Scalar| ty == Scalar::F64 || (ty.is_int() && ty.size_bytes() >= 4);
    let wide = is_wide(a.part()) || is_wide(b.part());
    match (a, b) {
        (Number::Complex(_), _) | (_, Number::Complex(_)) => {
            if wide {
                Number::C128
            } else {
                Number::C64
            }
        }
        (Number::Real(a), Number::Real(b)) if a.is_float() || b.is_float() => {
            let (half, other) = if a.is_half() { (a, b) } else { (b, a) };
            if half.is_half() && other.size_bytes() == 1 {
                Number::Real(half)
            } else if wide {
                Number::F64
            } else {
                Number::F32
            }
        }
        (Number::Real(a), Number::Real(b)) => Number::Real(promote_ints(a, b)),
    }
}

/// NumPy's promotion of integers and bools.
fn promote_ints(a: Scalar, b: Scalar) -> Scalar {
    let (small, large) = if a.size_bytes() <= b.size_bytes() { (a, b) } else { (b, a) };
    if small == Scalar::Bool || small.is_signed_int() == large.is_signed_int() {
        return if large == Scalar::Bool { small } else { large };
    }
    // One type is signed and the other is unsigned.
    if large.is_signed_int() && large.size_bytes() > small.size_bytes() {
        return large;
    }
    match large.size_bytes() {
        1 => Scalar::I16,
        2 => Scalar::I32,
        4 => Scalar::I64,
        _ => Scalar::F64,
    }
}

fn complex(value: Value) -> (f64, f64) {
    match value {
        Value::Int(value) => (value as f64, 0.0),
        Value::Float(value) => (value, 0.0),
        Value::Complex(real, imag) => (real, imag),
    }
}

/// `left op right`, as Python computes it.
fn compute(op: BinOp, left: Value, right: Value) -> Option<Value> {
    given(number::binary(op, &python(left), &python(right))?)
}

/// Converts a number if it fits.
fn given(number: Python) -> Option<Value> {
    Some(match number {
        Python::Int(value) => Value::Int(i128::try_from(value).ok()?),
        Python::Float(value) => Value::Float(value),
        Python::Complex(real, imag) => Value::Complex(real, imag),
    })
}

fn python(value: Value) -> Python {
    match value {
        Value::Int(value) => value.into(),
        Value::Float(value) => Python::Float(value),
        Value::Complex(real, imag) => Python::Complex(real, imag),
    }
}

/// `left op right` for comparisons.
pub(super) fn compare(op: CmpOp, left: &Captured, right: &Captured) -> Option<bool> {
    if let (Some((a, _)), Some((b, _))) = (number(left), number(right)) {
        return match (a, b) {
            (Value::Int(a), Value::Int(b)) => ordered(op, Some(a.cmp(&b))),
            // Python does not order complex numbers. Comparing them as pairs gives Python's equality.
            (Value::Complex(..), _) | (_, Value::Complex(..)) => {
                if matches!(op, CmpOp::Eq | CmpOp::NotEq) {
                    ordered(op, complex(a).partial_cmp(&complex(b)))
                } else {
                    None
                }
            }
            (Value::Int(a), Value::Float(b)) => ordered(op, number::order(&a.into(), b)),
            (Value::Float(a), Value::Int(b)) => ordered(op, number::order(&b.into(), a).map(Ordering::reverse)),
            (Value::Float(a), Value::Float(b)) => ordered(op, a.partial_cmp(&b)),
        };
    }
    match (left, right) {
        (Captured::Str(a), Captured::Str(b)) => ordered(op, Some(a.cmp(b))),
        (_, Captured::Tuple(items)) if matches!(op, CmpOp::In | CmpOp::NotIn) => {
            Some(items.contains(left) == (op == CmpOp::In))
        }
        _ => match op {
            CmpOp::Eq | CmpOp::Is => Some(left == right),
            CmpOp::NotEq | CmpOp::IsNot => Some(left != right),
            CmpOp::Lt | CmpOp::LtE | CmpOp::Gt | CmpOp::GtE | CmpOp::In | CmpOp::NotIn => None,
        },
    }
}

/// The result of a comparison for two values of this order. `None` means unordered.
fn ordered(op: CmpOp, order: Option<Ordering>) -> Option<bool> {
    Some(match op {
        CmpOp::Eq | CmpOp::Is => order == Some(Ordering::Equal),
        CmpOp::NotEq | CmpOp::IsNot => order != Some(Ordering::Equal),
        CmpOp::Lt => order.is_some_and(Ordering::is_lt),
        CmpOp::LtE => order.is_some_and(Ordering::is_le),
        CmpOp::Gt => order.is_some_and(Ordering::is_gt),
        CmpOp::GtE => order.is_some_and(Ordering::is_ge),
        CmpOp::In | CmpOp::NotIn => return None,
    })
}

/// The result of calling a known function or type with constant arguments.
pub(super) fn call(path: &str, args: &[Captured]) -> Option<Captured> {
    if let Some(ty) = number_of_path(path) {
        let [value] = args else { return None };
        return cast(ty, number(value)?.0);
    }
    match path.split_once('.')? {
        ("cffi", "FFI") if args.is_empty() => Some(Captured::Known(path.to_owned())),
        ("builtins", name) => builtin(name, args),
        ("math", name) => math(name, args),
        ("numpy", "dtype") => match args {
            [Captured::Known(path)] => number_of_path(path).map(|number| Captured::DType(number.into())),
            [Captured::Str(name)] => Number::from_numpy_name(name).map(|number| Captured::DType(number.into())),
            _ => None,
        },
        _ => None,
    }
}

fn builtin(name: &str, args: &[Captured]) -> Option<Captured> {
    let numbers: Option<Vec<Value>> = args.iter().map(|arg| number(arg).map(|(value, _)| value)).collect();
    match (name, args, numbers.as_deref()) {
        ("len", [Captured::Tuple(items)], _) => Some(Captured::Int(items.len() as i128)),
        ("len", [Captured::Str(text)], _) => Some(Captured::Int(text.chars().count() as i128)),
        ("tuple", [tuple @ Captured::Tuple(_)], _) => Some(tuple.clone()),
        ("min" | "max" | "sum", [Captured::Tuple(items)], _) => builtin(name, items),
        ("sum", items, _) => items.iter().try_fold(Captured::Int(0), |sum, item| binary(BinOp::Add, &sum, item)),
        ("min", [first, rest @ ..], _) => choose(CmpOp::Lt, first, rest),
        ("max", [first, rest @ ..], _) => choose(CmpOp::Gt, first, rest),
        ("abs", [value], _) => match number(value)? {
            (Value::Int(value), ty) => captured(Value::Int(value.checked_abs()?), ty),
            (Value::Float(value), ty) => captured(Value::Float(value.abs()), ty),
            (Value::Complex(real, imag), None) => Some(Captured::Float(real.hypot(imag))),
            _ => None,
        },
        ("bool", [_], Some([value])) => Some(Captured::Bool(complex(*value) != (0.0, 0.0))),
        ("int", [_], Some([Value::Int(value)])) => Some(Captured::Int(*value)),
        ("int", [_], Some([Value::Float(value)])) => whole(value.trunc()).map(Captured::Int),
        ("float", [_], Some([Value::Int(value)])) => Some(Captured::Float(*value as f64)),
        ("float", [_], Some([Value::Float(value)])) => Some(Captured::Float(*value)),
        ("float", [Captured::Str(text)], _) => match text.trim().trim_start_matches('+') {
            "inf" => Some(Captured::Float(f64::INFINITY)),
            "-inf" => Some(Captured::Float(f64::NEG_INFINITY)),
            "nan" => Some(Captured::Float(f64::NAN)),
            text => text.parse().ok().map(Captured::Float),
        },
        ("complex", [_], Some([value])) => Some(Captured::Complex(complex(*value).0, complex(*value).1)),
        ("complex", [_, _], Some([Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)])) => {
            let values = numbers?;
            Some(Captured::Complex(complex(*values.first()?).0, complex(*values.last()?).0))
        }
        ("round", [_], Some([Value::Float(value)])) => whole(value.round_ties_even()).map(Captured::Int),
        ("round", [_], Some([Value::Int(value)])) => Some(Captured::Int(*value)),
        ("pow", [base, exponent], _) => binary(BinOp::Pow, base, exponent),
        ("divmod", [a, b], _) => Some(Captured::Tuple(vec![binary(BinOp::FloorDiv, a, b)?, binary(BinOp::Mod, a, b)?])),
        _ => None,
    }
}

fn choose(op: CmpOp, first: &Captured, rest: &[Captured]) -> Option<Captured> {
    let better = |best, item| compare(op, item, best).map(|better| if better { item } else { best });
    rest.iter().try_fold(first, better).cloned()
}

fn math(name: &str, args: &[Captured]) -> Option<Captured> {
    let values: Vec<f64> = args
        .iter()
        .map(|arg| match number(arg)?.0 {
            Value::Complex(..) => None,
            value @ (Value::Int(_) | Value::Float(_)) => Some(complex(value).0),
        })
        .collect::<Option<_>>()?;
    let result = match (name, values.as_slice()) {
        ("floor" | "ceil" | "trunc", [_]) if matches!(number(args.first()?)?.0, Value::Int(_)) => {
            return builtin("int", args);
        }
        ("floor", [x]) => return whole(x.floor()).map(Captured::Int),
        ("ceil", [x]) => return whole(x.ceil()).map(Captured::Int),
        ("trunc", [x]) => return whole(x.trunc()).map(Captured::Int),
        ("sqrt", [x]) if *x >= 0.0 => x.sqrt(),
        ("exp", [x]) => x.exp(),
        ("log", [x]) if *x > 0.0 => x.ln(),
        ("log2", [x]) if *x > 0.0 => x.log2(),
        ("log10", [x]) if *x > 0.0 => x.log10(),
        ("log", [x, base]) if *x > 0.0 && *base > 0.0 && base.ln().abs() > 0.0 => x.ln() / base.ln(),
        ("sin", [x]) => x.sin(),
        ("cos", [x]) => x.cos(),
        ("tan", [x]) => x.tan(),
        ("atan", [x]) => x.atan(),
        ("atan2", [y, x]) => y.atan2(*x),
        ("tanh", [x]) => x.tanh(),
        ("fabs", [x]) => x.abs(),
        ("hypot", [x, y]) => x.hypot(*y),
        ("pow", [x, y]) => match compute(BinOp::Pow, Value::Float(*x), Value::Float(*y))? {
            Value::Float(power) => power,
            Value::Int(_) | Value::Complex(..) => return None,
        },
        ("radians", [x]) => x.to_radians(),
        ("degrees", [x]) => x.to_degrees(),
        _ => return None,
    };
    Some(Captured::Float(result))
}
