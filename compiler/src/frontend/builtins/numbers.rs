//! `abs`, `min`, `max`, `round`, and the functions of `math` that are not a single hardware or library function.

use weft_artifact::Scalar;

use crate::{
    diagnostic::Code,
    frontend::{
        expr::Args,
        function::count,
        lowerer::FnLowerer,
        object::ObjectKind,
        promote,
        ty::shown_path,
        value::Value,
        weak::{self, Operand},
    },
    intrinsics::Intrinsic,
    ir::{BinaryOp, CompareOp, ExprId, MathFn, Type, UnaryOp},
    source::Span,
};

impl FnLowerer<'_> {
    /// `abs(x)` and `math.fabs(x)`, which gives a float.
    pub(super) fn abs(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        if row.path == "math.fabs" {
            let Some((exprs, _)) = self.overload(row, std::slice::from_ref(&value), span) else {
                return Value::Poison;
            };
            let Some(expr) = exprs.into_iter().next() else { return Value::Poison };
            let scalar = self.b.ty(expr).scalar().unwrap_or(Scalar::F64);
            return Value::Scalar(self.b.unary(UnaryOp::Abs, expr, span), scalar);
        }
        if self.is_numpy()
            && let Some(operand) = Operand::of(&value.ty())
        {
            if let Value::Scalar(_, Scalar::Bool) = value {
                // NumPy's bools have no sign.
                return value;
            }
            let value = if let Value::Bool(known) = value { Value::Int(i128::from(known)) } else { value.strong() };
            let size = self.size_of(row, value, span);
            return if operand.weak { self.python(size, span) } else { size };
        }
        self.size_of(row, value, span)
    }

    /// The absolute value of a number.
    fn size_of(&mut self, row: &Intrinsic, value: Value, span: Span) -> Value {
        match value {
            Value::Complex(real, imag, ty) => {
                let part = ty.part();
                let modulus = self.b.math(MathFn::Hypot, vec![real, imag], Type::Scalar(part), span);
                Value::Scalar(modulus, part)
            }
            Value::Int(known) if known < 0 => self.folded(known, -known, span),
            Value::Int(known) => Value::Int(known),
            value @ (Value::Scalar(..)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison) => match value.ty().scalar() {
                Some(scalar) => {
                    // The result has the operand's type, and the minimum of a signed type wraps; a bool counts as int8.
                    let ty = if scalar == Scalar::Bool { Scalar::I8 } else { scalar };
                    let Some(expr) = self.number(&value, ty, span) else { return Value::Poison };
                    let expr = if ty.is_unsigned_int() { expr } else { self.b.unary(UnaryOp::Abs, expr, span) };
                    Value::Scalar(expr, ty)
                }
                None => self.no_overload(row, &[value.ty()], span),
            },
        }
    }

    /// `min(a, b, …)`, `max(a, b, …)`, or of one tuple.
    pub(super) fn extremum(&mut self, row: &Intrinsic, largest: bool, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let mut values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        if let [_] = values.as_slice() {
            values = values.into_iter().map(|value| self.gathered(value, span)).collect();
        }
        if let [Value::Object(ObjectKind::Tuple, items)] = values.as_slice() {
            let items = items.clone();
            values = items;
        } else if let [array @ Value::Array(_)] = values.as_slice() {
            return self.extremum_of_array(row, largest, array.clone(), span);
        } else if let [one] = values.as_slice()
            && let Some(found) =
                self.over_items(row, if largest { "largest_over" } else { "smallest_over" }, &one.clone(), &[], span)
        {
            return found;
        } else if values.len() < 2 {
            let message = format!(
                "`{}` takes two or more numbers, a tuple or an array, not {}",
                shown_path(row.path),
                count(values.len(), "argument")
            );
            return self.error(Code::ArgumentCount, span, message);
        }
        let types: Vec<_> = values.iter().map(Value::ty).collect();
        if self.is_numpy() {
            return self.numpy_extremum(row, largest, values, span);
        }
        let scalars: Option<Vec<Scalar>> = types.iter().map(super::super::ty::Ty::scalar).collect();
        let Some(scalars) = scalars else { return self.no_overload(row, &types, span) };
        if let Some(known) = values
            .iter()
            .map(|value| if let Value::Int(known) = value { Some(*known) } else { None })
            .collect::<Option<Vec<i128>>>()
            .and_then(|known| if largest { known.into_iter().max() } else { known.into_iter().min() })
        {
            return Value::Int(known);
        }
        let Some(ty) = Self::unified(&scalars) else {
            return self.error(Code::ArgumentCount, span, "an empty tuple has no minimum or maximum");
        };
        let op = if largest { BinaryOp::Max } else { BinaryOp::Min };
        let mut result: Option<ExprId> = None;
        for value in values {
            let Some(expr) = self.number(&value, ty, span) else { return Value::Poison };
            result = Some(match result {
                None => expr,
                Some(before) => self.extreme_of_two(op, before, expr, ty, span),
            });
        }
        result.map_or(Value::Poison, |expr| Value::Scalar(expr, ty))
    }

    /// The same with NumPy's typing rules: the type is that of `np.minimum`.
    fn numpy_extremum(&mut self, row: &Intrinsic, largest: bool, values: Vec<Value>, span: Span) -> Value {
        let types: Vec<_> = values.iter().map(Value::ty).collect();
        let operands: Option<Vec<Operand>> = types.iter().map(Operand::of).collect();
        let common = operands.and_then(|operands| operands.into_iter().reduce(Operand::with));
        let Some((common, ty)) = common.and_then(|common| Some((common, common.number.real()?))) else {
            return self.no_overload(row, &types, span);
        };
        let known: Option<Vec<i128>> =
            values.iter().map(|value| if let Value::Int(known) = value { Some(*known) } else { None }).collect();
        if let Some(known) =
            known.and_then(|known| if largest { known.into_iter().max() } else { known.into_iter().min() })
        {
            return Value::Int(known);
        }
        let op = if largest { BinaryOp::Max } else { BinaryOp::Min };
        let mut result: Option<ExprId> = None;
        for value in values {
            if let Value::Int(known) = value
                && !common.weak
                && !weak::holds(common.number, known)
            {
                return self.out_of_range(known, common.number, span);
            }
            let Some(expr) = self.number(&value, ty, span) else { return Value::Poison };
            result = Some(match result {
                None => expr,
                Some(before) => self.extreme_of_two(op, before, expr, ty, span),
            });
        }
        let result = result.map_or(Value::Poison, |expr| Value::Scalar(expr, ty));
        if common.weak { result.weak() } else { result }
    }

    fn extreme_of_two(&mut self, op: BinaryOp, a: ExprId, b: ExprId, ty: Scalar, span: Span) -> ExprId {
        if ty != Scalar::Bool {
            return self.b.binary(op, a, b, span);
        }
        // For bools, the minimum is `and`, the maximum `or`.
        let op = if op == BinaryOp::Min { BinaryOp::And } else { BinaryOp::Or };
        self.b.binary(op, a, b, span)
    }

    /// `round(x)` and `round(x, ndigits)`.
    pub(super) fn round(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        if let [value] = values.as_slice()
            && value.ty().scalar().is_some_and(promote::is_integral)
        {
            let value = value.clone();
            return self.python(value, span);
        }
        let types: Vec<_> = values.iter().map(Value::ty).collect();
        let (value, digits) = match values.as_slice() {
            [value] => (value, None),
            [value, digits] if digits.ty().scalar().is_some_and(promote::is_integral) => (value, Some(digits)),
            _ => return self.no_overload(row, &types, span),
        };
        let Some(ty) = value.ty().scalar() else {
            return self.no_overload(row, &types, span);
        };
        let result = if ty.is_float() { ty } else { Scalar::F64 };
        // NumPy's integers are returned unchanged.
        let given = if self.is_numpy() && ty.is_int() { ty } else { result };
        let is_weak = matches!(value, Value::Object(ObjectKind::Weak, _) | Value::Int(_));
        // As in Numba, even a float32 is scaled as a float64 if there are digits.
        let ty = if digits.is_some() { Scalar::F64 } else { result };
        let Some(expr) = self.number(value, ty, span) else { return Value::Poison };
        let float = Type::Scalar(ty);
        let Some(digits) = digits else {
            let rounded = self.b.math(MathFn::RoundEven, vec![expr], float, span);
            let rounded = self.b.convert(rounded, Type::I64, span);
            return self.python(Value::Scalar(rounded, Scalar::I64), span);
        };
        // As in Numba: scale, round, scale back; a value that overflows when scaled has no decimals to round.
        let Some(digits) = self.number(digits, Scalar::I64, span) else { return Value::Poison };
        let value = self.b.temp(expr, span);
        let digits = self.b.temp(digits, span);
        let (now, zero) = (self.b.read(digits, span), self.b.i64(0, span));
        let negative = self.b.compare(CompareOp::Lt, now, zero, span);
        let negative = self.b.temp(negative, span);
        let ten = self.b.float(ty, 10.0, span);
        // Converted to a float first, as the smallest `int64` has no absolute value.
        let size = self.b.read(digits, span);
        let size = self.b.convert(size, float, span);
        let size = self.b.unary(UnaryOp::Abs, size, span);
        let power = self.b.math(MathFn::Pow, vec![ten, size], float, span);
        let power = self.b.temp(power, span);
        let scale = |this: &mut Self, x: ExprId, y: ExprId, up: bool| {
            let (power_a, power_b) = (this.b.read(power, span), this.b.read(power, span));
            let product = this.b.binary(BinaryOp::Mul, x, power_a, span);
            let quotient = this.b.binary(BinaryOp::Div, y, power_b, span);
            let negative = this.b.read(negative, span);
            if up {
                this.b.select(negative, quotient, product, span)
            } else {
                this.b.select(negative, product, quotient, span)
            }
        };
        let (x, y) = (self.b.read(value, span), self.b.read(value, span));
        let scaled = scale(self, x, y, true);
        let scaled = self.b.temp(scaled, span);
        let read = self.b.read(scaled, span);
        let rounded = self.b.math(MathFn::RoundEven, vec![read], float, span);
        let rounded = self.b.temp(rounded, span);
        let (x, y) = (self.b.read(rounded, span), self.b.read(rounded, span));
        let back = scale(self, x, y, false);
        // If the scale is infinite: with negative digits, the value was scaled to zero, which is the result; otherwise
        // the result is the value.
        let read = self.b.read(power, span);
        let scales = self.b.math(MathFn::Isfinite, vec![read], Type::BOOL, span);
        let read = self.b.read(rounded, span);
        let back = self.b.select(scales, back, read, span);
        let read = self.b.read(scaled, span);
        let finite = self.b.math(MathFn::Isfinite, vec![read], Type::BOOL, span);
        let plain = self.b.read(value, span);
        let rounded = self.b.select(finite, back, plain, span);
        let rounded = Value::Scalar(self.b.convert(rounded, Type::Scalar(given), span), given);
        if is_weak { self.python(rounded, span) } else { rounded }
    }

    /// `math.degrees` and `math.radians`: multiplication by a constant, which 16-bit floats would round too coarsely.
    pub(super) fn scaled(&mut self, row: &'static Intrinsic, factor: f64, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        let Some((exprs, _)) = self.overload(row, &[value], span) else { return Value::Poison };
        let Some(expr) = exprs.into_iter().next() else { return Value::Poison };
        let ty = self.b.ty(expr).scalar().unwrap_or(Scalar::F64);
        let within = if matches!(ty, Scalar::F16 | Scalar::BF16) { Scalar::F32 } else { ty };
        let factor = self.b.float(within, factor, span);
        let expr = self.b.convert(expr, Type::Scalar(within), span);
        let product = self.b.binary(BinaryOp::Mul, expr, factor, span);
        Value::Scalar(self.b.convert(product, Type::Scalar(ty), span), ty)
    }

    /// `math.frexp(x)`: mantissa and exponent.
    pub(super) fn frexp(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Value {
        let Some((value, ty)) = self.one_float(row, args, span) else { return Value::Poison };
        let (a, b) = (self.b.read(value, span), self.b.read(value, span));
        let mantissa = self.b.math(MathFn::FrexpMantissa, vec![a], Type::Scalar(ty), span);
        let exponent = self.b.math(MathFn::FrexpExponent, vec![b], Type::I32, span);
        Value::tuple(vec![Value::Scalar(mantissa, ty), Value::Scalar(exponent, Scalar::I32)])
    }

    /// `math.modf(x)`: fraction and integer part, both with the sign of x; the fraction of an infinity is zero.
    pub(super) fn modf(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Value {
        let Some((value, ty)) = self.one_float(row, args, span) else { return Value::Poison };
        let float = Type::Scalar(ty);
        let read = self.b.read(value, span);
        let whole = self.b.math(MathFn::Trunc, vec![read], float, span);
        let whole = self.b.temp(whole, span);
        let (x, w) = (self.b.read(value, span), self.b.read(whole, span));
        let fraction = self.b.binary(BinaryOp::Sub, x, w, span);
        let read = self.b.read(value, span);
        let infinite = self.b.math(MathFn::Isinf, vec![read], Type::BOOL, span);
        let zero = self.b.float(ty, 0.0, span);
        let fraction = self.b.select(infinite, zero, fraction, span);
        let sign = self.b.read(value, span);
        let fraction = self.b.math(MathFn::Copysign, vec![fraction, sign], float, span);
        let whole = self.b.read(whole, span);
        Value::tuple(vec![Value::Scalar(fraction, ty), Value::Scalar(whole, ty)])
    }

    /// The one argument of a function of floats, in a local.
    fn one_float(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Option<(crate::ir::LocalId, Scalar)> {
        let [value] = self.exactly(row, args, span)?;
        let (exprs, _) = self.overload(row, &[value], span)?;
        let expr = exprs.into_iter().next()?;
        let ty = self.b.ty(expr).scalar()?;
        Some((self.b.temp(expr, span), ty))
    }
}
