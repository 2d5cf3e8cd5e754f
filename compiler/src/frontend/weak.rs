//! The types of `typing="numpy"`: NumPy 2's promotion (NEP 50), and weak numbers.
//!
//! A Python number is *weak*: it takes the type of the typed number that it is combined with; otherwise it is a bool,
//! an `int64`, a `float64` or a `complex128`. A literal is weak, and so is the result of weak operands only, such as a
//! variable that has only been combined with literals. A constant int is a [`Value::Int`] as everywhere, a constant
//! bool a [`Value::Bool`]; a run-time value is an [`ObjectKind::Weak`] with the number of the default type in it.
//! Functions with Numba's typing have no such objects: their arguments, and the results of their calls, are
//! [`strong`](Value::strong).
//!
//! Source: <https://numpy.org/neps/nep-0050-scalar-promotion.html>, and NumPy 2 itself, which
//! `tests/python/conformance/language/test_numpy_types.py` compares.

use std::{cmp::Ordering, sync::Arc};

use weft_artifact::{Complex, Number, Scalar};

use super::{
    lowerer::FnLowerer,
    object::ObjectKind,
    prelude,
    promote::{is_integral, unify},
    ty::Ty,
    value::Value,
};
use crate::{
    ir::{ExprId, Type},
    request::{FunctionDef, Typing},
    source::Span,
    syntax::ast::BinOp,
};

/// A number as an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Operand {
    /// Its type; for a weak number the default type.
    pub(super) number: Number,
    /// Whether it takes the type of the other operand.
    pub(super) weak: bool,
}

/// The operation and result type of an operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Promoted {
    /// The type that both operands are converted to.
    pub(super) work: Number,
    /// The type of the result, which may be wider than the computation.
    pub(super) result: Operand,
}

/// The kind of a number. A weak number of the same or a lower kind takes the type of a typed one.
fn kind(number: Number) -> u8 {
    match number {
        Number::Real(Scalar::Bool) => 0,
        Number::Real(scalar) if scalar.is_int() => 1,
        Number::Real(_) => 2,
        Number::Complex(_) => 3,
    }
}

impl Operand {
    /// A number with a type of its own.
    pub(super) const fn typed(number: Number) -> Self {
        Self { number, weak: false }
    }

    /// The operand of a type; `None` if it is not a number.
    pub(super) fn of(ty: &Ty) -> Option<Self> {
        let weak = match ty {
            Ty::Int(_) | Ty::Bool(_) => true,
            Ty::Object(kind, _) => *kind == ObjectKind::Weak,
            Ty::Scalar(_)
            | Ty::Complex(_)
            | Ty::Array(_)
            | Ty::Static(_)
            | Ty::Conflict(_)
            | Ty::Bottom
            | Ty::Poison => false,
        };
        Some(Self { number: ty.number()?, weak })
    }

    /// NumPy's `result_type`.
    pub(super) fn with(self, other: Self) -> Self {
        match (self.weak, other.weak) {
            (false, false) => Self::typed(unify(self.number, other.number)),
            (true, true) => {
                // A weak int from 2^63 on is a `uint64`; combined with an `int64` it has the default type.
                let number = match kind(self.number).cmp(&kind(other.number)) {
                    Ordering::Greater => self.number,
                    Ordering::Less => other.number,
                    Ordering::Equal if self.number == other.number => self.number,
                    Ordering::Equal => Number::I64,
                };
                Self { number, weak: true }
            }
            (true, false) => Self::typed(common_type(self.number, other.number)),
            (false, true) => Self::typed(common_type(other.number, self.number)),
        }
    }
}

/// The type of a weak number that is combined with a typed one.
fn common_type(weak: Number, typed: Number) -> Number {
    if kind(weak) <= kind(typed) {
        return typed;
    }
    match (weak, typed) {
        (Number::Complex(_), Number::Real(Scalar::F16 | Scalar::BF16 | Scalar::F32)) => Number::C64,
        (Number::Real(_) | Number::Complex(_), Number::Real(_) | Number::Complex(_)) => weak,
    }
}

/// The promotion of a binary operator's operands; `None` where NumPy's operator does not accept them.
pub(super) fn binary(op: BinOp, left: Operand, right: Operand) -> Option<Promoted> {
    let common = left.with(right);
    let weak = common.weak;
    let of = |number: Number| Some(Promoted { work: number, result: Operand { number, weak } });
    let Number::Real(scalar) = common.number else {
        return match op {
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Pow => of(common.number),
            BinOp::FloorDiv
            | BinOp::Mod
            | BinOp::MatMul
            | BinOp::LShift
            | BinOp::RShift
            | BinOp::BitAnd
            | BinOp::BitOr
            | BinOp::BitXor => None,
        };
    };
    // Python's bools count as ints; NumPy's bools are added and multiplied as bools, and count as bytes elsewhere.
    let counted = match (scalar, weak) {
        (Scalar::Bool, true) => Scalar::I64,
        (Scalar::Bool, false) => Scalar::I8,
        (other, _) => other,
    };
    match op {
        BinOp::Add | BinOp::Mul if scalar == Scalar::Bool && !weak => of(Number::BOOL),
        BinOp::Sub if scalar == Scalar::Bool && !weak => None,
        BinOp::Add | BinOp::Sub | BinOp::Mul => of(counted.into()),
        BinOp::Div => of(if counted.is_int() { Number::F64 } else { counted.into() }),
        BinOp::FloorDiv | BinOp::Mod | BinOp::Pow => {
            let work = if counted.is_half() { Scalar::F32 } else { counted };
            Some(Promoted { work: work.into(), result: Operand { number: counted.into(), weak } })
        }
        BinOp::LShift | BinOp::RShift if counted.is_int() => of(counted.into()),
        BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor if is_integral(scalar) => of(scalar.into()),
        BinOp::LShift | BinOp::RShift | BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::MatMul => None,
    }
}

/// The float that NumPy's functions of floats compute an integer as.
pub(super) fn float_of(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::Bool | Scalar::I8 | Scalar::U8 => Scalar::F16,
        Scalar::I16 | Scalar::U16 => Scalar::F32,
        Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 => Scalar::F64,
        Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64 => scalar,
    }
}

/// The unsigned integer of the same size.
pub(super) fn unsigned(scalar: Scalar) -> Scalar {
    match scalar.size_bytes() {
        1 => Scalar::U8,
        2 => Scalar::U16,
        4 => Scalar::U32,
        _ => Scalar::U64,
    }
}

/// NumPy's `can_cast(from, to, "safe")`, with the casts of `bfloat16` that `ml_dtypes` has.
pub(super) fn casts_safely(from: Number, to: Number) -> bool {
    match (from, to) {
        (Number::Real(from), Number::Real(to)) => casts_safely_real(from, to),
        (Number::Real(from), Number::Complex(to)) => casts_safely_real(from, to.part()),
        (Number::Complex(from), Number::Complex(to)) => casts_safely_real(from.part(), to.part()),
        (Number::Complex(_), Number::Real(_)) => false,
    }
}

fn casts_safely_real(from: Scalar, to: Scalar) -> bool {
    let (small, large) = (from.size_bytes(), to.size_bytes());
    if from == to || from == Scalar::Bool {
        true
    } else if to == Scalar::Bool {
        false
    } else if from.is_int() && to.is_int() {
        if from.is_unsigned_int() == to.is_unsigned_int() {
            small <= large
        } else {
            to.is_signed_int() && small < large
        }
    } else if from.is_int() {
        // NumPy's safe casts to float64 include inexact ones.
        to == Scalar::F64 || small < large
    } else {
        to.is_float() && small < large
    }
}

/// Whether an integer type contains a value; a float type contains all.
pub(super) fn holds(ty: Number, value: i128) -> bool {
    let Number::Real(scalar) = ty else { return true };
    if !scalar.is_int() {
        return true;
    }
    super::lowerer::wrap_int(value, scalar) == value
}

/// The join of two types one of which is weak; `None` if none is, or one is not a number.
pub(super) fn join(first: &Ty, second: &Ty) -> Option<Joined> {
    let (a, b) = (Operand::of(first)?, Operand::of(second)?);
    if !a.weak && !b.weak {
        return None;
    }
    let joined = a.with(b);
    let fits = |ty: &Ty| if let Ty::Int(known) = ty { holds(joined.number, *known) } else { true };
    if !(joined.weak || fits(first) && fits(second)) {
        return Some(Joined::TooLarge);
    }
    Some(Joined::Number(Ty::of_operand(joined)))
}

/// The result of a join with a weak number.
pub(super) enum Joined {
    /// A number.
    Number(Ty),
    /// A known int that the other type cannot represent.
    TooLarge,
}

impl Ty {
    /// The type of a number without a known value.
    pub(super) fn of_operand(operand: Operand) -> Self {
        let ty = Self::of(operand.number);
        if operand.weak { Self::Object(ObjectKind::Weak, vec![ty]) } else { ty }
    }

    /// The type with weak numbers replaced by their default types, as passed to a function with Numba's typing.
    pub(super) fn strong(&self) -> Self {
        match self {
            Self::Object(ObjectKind::Weak, items) => items.first().cloned().unwrap_or(Self::Poison),
            Self::Object(kind, items) => Self::Object(kind.clone(), items.iter().map(Self::strong).collect()),
            other @ (Self::Scalar(_)
            | Self::Complex(_)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Array(_)
            | Self::Static(_)
            | Self::Conflict(_)
            | Self::Bottom
            | Self::Poison) => other.clone(),
        }
    }
}

impl Value {
    /// The value with weak numbers converted to their default types.
    pub(super) fn strong(self) -> Self {
        match self {
            Self::Object(ObjectKind::Weak, mut items) => items.pop().unwrap_or(Self::Poison),
            Self::Object(kind, items) => Self::Object(kind, items.into_iter().map(Self::strong).collect()),
            other @ (Self::Scalar(..)
            | Self::Complex(..)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Array(_)
            | Self::Static(_)
            | Self::Poison) => other,
        }
    }

    /// A number as a weak number.
    pub(super) fn weak(self) -> Self {
        match self {
            number @ (Self::Scalar(..) | Self::Complex(..)) => Self::Object(ObjectKind::Weak, vec![number]),
            other @ (Self::Int(_)
            | Self::Bool(_)
            | Self::Array(_)
            | Self::Object(..)
            | Self::Static(_)
            | Self::Poison) => other,
        }
    }

    /// A `Bool` that is known only at run time, and whether it is weak.
    pub(super) fn condition(&self) -> Option<(ExprId, bool)> {
        match self {
            Self::Scalar(expr, Scalar::Bool) => Some((*expr, false)),
            Self::Object(ObjectKind::Weak, items) => match items.as_slice() {
                [Self::Scalar(expr, Scalar::Bool)] => Some((*expr, true)),
                _ => None,
            },
            Self::Scalar(..)
            | Self::Complex(..)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Array(_)
            | Self::Object(..)
            | Self::Static(_)
            | Self::Poison => None,
        }
    }

    /// Whether it is a weak number.
    pub(super) fn is_weak(&self) -> bool {
        match self {
            Self::Int(_) | Self::Bool(_) => true,
            Self::Object(kind, _) => *kind == ObjectKind::Weak,
            Self::Scalar(..) | Self::Complex(..) | Self::Array(_) | Self::Static(_) | Self::Poison => false,
        }
    }
}

impl FnLowerer<'_> {
    /// The typing rules of the current function.
    pub(super) fn typing(&self) -> Typing {
        self.def.typing.unwrap_or_default()
    }

    /// Whether these are NumPy's.
    pub(super) fn is_numpy(&self) -> bool {
        self.typing() == Typing::Numpy
    }

    /// A Python number: weak with NumPy's typing rules.
    pub(super) fn python(&mut self, value: Value, span: Span) -> Value {
        if !self.is_numpy() {
            return value;
        }
        match value {
            Value::Scalar(expr, from) => {
                let to = match from {
                    Scalar::Bool | Scalar::U64 => from,
                    Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64 => Scalar::F64,
                    Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 | Scalar::I32 | Scalar::U32 | Scalar::I64 => {
                        Scalar::I64
                    }
                };
                Value::Scalar(self.b.convert(expr, Type::Scalar(to), span), to).weak()
            }
            Value::Complex(real, imag, _) => {
                let [real, imag] = [real, imag].map(|part| self.b.convert(part, Type::Scalar(Scalar::F64), span));
                Value::Complex(real, imag, Complex::C128).weak()
            }
            other @ (Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison) => other,
        }
    }

    /// A function as the current one calls it: a function without typing rules of its own uses those of its caller.
    ///
    /// Functions of the prelude have Numba's rules, and functions that they call those of the request's function.
    pub(super) fn following(&mut self, def: &Arc<FunctionDef>) -> Arc<FunctionDef> {
        let typing = if prelude::is_own(&self.def) {
            self.cx.root.def.as_ref().and_then(|root| root.typing)
        } else {
            self.def.typing
        };
        if typing != Some(Typing::Numpy)
            || def.typing.is_some()
            || prelude::is_own(def)
            || self.cx.root.is_this_kernel(def)
        {
            return Arc::clone(def);
        }
        let known = self.cx.functions.following.iter().find(|(of, _)| Arc::ptr_eq(of, def));
        if let Some((_, known)) = known {
            return Arc::clone(known);
        }
        let made = Arc::new(FunctionDef { typing, ..FunctionDef::clone(def) });
        self.cx.functions.following.push((Arc::clone(def), Arc::clone(&made)));
        made
    }
}
