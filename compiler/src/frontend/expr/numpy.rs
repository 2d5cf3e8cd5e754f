//! Operators with NumPy's typing rules (`weak.rs`).

use weft_artifact::{Number, Scalar};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        lowerer::FnLowerer,
        promote::is_integral,
        value::Value,
        weak::{self, Operand},
    },
    ir::{BinaryOp, CompareOp, ExprId, Type, UnaryOp as IrUnary},
    source::Span,
    syntax::ast::{BinOp, CmpOp, UnaryOp},
};

impl FnLowerer<'_> {
    /// `left op right` on numbers.
    pub(super) fn numpy_binary(&mut self, op: BinOp, left: Value, right: Value, span: Span) -> Value {
        let operands = Operand::of(&left.ty()).zip(Operand::of(&right.ty()));
        let negative = op == BinOp::Pow && matches!(right, Value::Int(known) if known < 0);
        let found = operands.and_then(|(a, mut b)| {
            if negative && a.weak && a.number.real().is_some_and(is_integral) {
                // Python ints have negative powers, as floats.
                b.number = Number::F64;
            }
            weak::binary(op, a, b)
        });
        let Some(found) = found else { return self.bad_operands(op, &left, &right, span) };
        let result = found.result;
        if !result.weak {
            for value in [&left, &right] {
                if let Value::Int(known) = value
                    && !weak::holds(found.work, *known)
                {
                    return self.out_of_range(*known, found.work, span);
                }
            }
            if negative && found.work.real().is_some_and(Scalar::is_int) {
                let message = format!("{} to the power of a negative integer is not an integer", left.ty());
                let diagnostic = Diagnostic::error(Code::BadOperand, span, message);
                return self.report(diagnostic.help("make the base a float: `np.float32(x)`"));
            }
        }
        let (mut left, mut right) = (left.strong(), right.strong());
        if let Some(half) = result.number.real().filter(|scalar| scalar.is_half()) {
            // The result is computed as `float32` and rounded to the 16-bit float.
            for value in [&mut left, &mut right] {
                let Some(expr) = self.number(value, half, span) else { return Value::Poison };
                *value = if let Value::Int(_) = value { value.clone() } else { Value::Scalar(expr, half) };
            }
        }
        let value = match found.work {
            Number::Complex(work) => self.complex_binary(op, &left, &right, work, span),
            Number::Real(work) => self.numpy_real(op, &left, &right, work, span),
        };
        let value = match (value, result.number) {
            (Value::Scalar(expr, from), Number::Real(to)) if from != to => {
                Value::Scalar(self.b.convert(expr, Type::Scalar(to), span), to)
            }
            (value, _) => value,
        };
        if result.weak { value.weak() } else { value }
    }

    fn numpy_real(&mut self, op: BinOp, left: &Value, right: &Value, work: Scalar, span: Span) -> Value {
        match op {
            BinOp::Pow => self.power(left, right, work, span),
            // The sum of bools is their disjunction, their product the conjunction.
            BinOp::Add if work == Scalar::Bool => self.real_binary(BinOp::BitOr, left, right, work, span),
            BinOp::Mul if work == Scalar::Bool => self.real_binary(BinOp::BitAnd, left, right, work, span),
            BinOp::LShift | BinOp::RShift => self.numpy_shift(op == BinOp::LShift, left, right, work, span),
            BinOp::Add
            | BinOp::Sub
            | BinOp::Mul
            | BinOp::Div
            | BinOp::FloorDiv
            | BinOp::Mod
            | BinOp::MatMul
            | BinOp::BitAnd
            | BinOp::BitOr
            | BinOp::BitXor => self.real_binary(op, left, right, work, span),
        }
    }

    /// A shift: an amount that is negative or at least the type's width shifts all bits out.
    fn numpy_shift(&mut self, up: bool, left: &Value, right: &Value, work: Scalar, span: Span) -> Value {
        let width = 8 * work.size_bytes() as i128;
        let ir = if up { BinaryOp::Shl } else { BinaryOp::Shr };
        let Some(value) = self.number(left, work, span) else { return Value::Poison };
        if let Value::Int(known) = right {
            let within = (0..width).contains(known);
            let expr = if within || (!up && work.is_signed_int()) {
                let amount = self.b.int(work, if within { *known } else { width - 1 }, span);
                self.b.binary(ir, value, amount, span)
            } else {
                self.b.int(work, 0, span)
            };
            return Value::Scalar(expr, work);
        }
        let Some(amount) = self.number(right, work, span) else { return Value::Poison };
        let (value, amount) = (self.b.temp(value, span), self.b.temp(amount, span));
        let unsigned = weak::unsigned(work);
        let by = self.b.read(amount, span);
        let by = self.b.convert(by, Type::Scalar(unsigned), span);
        let most = self.b.int(unsigned, width, span);
        let within = self.b.compare(CompareOp::Lt, by, most, span);
        let (now, by) = (self.b.read(value, span), self.b.read(amount, span));
        let shifted = self.b.binary(ir, now, by, span);
        let all = if up || !work.is_signed_int() {
            self.b.int(work, 0, span)
        } else {
            let (now, by) = (self.b.read(value, span), self.b.int(work, width - 1, span));
            self.b.binary(ir, now, by, span)
        };
        Value::Scalar(self.b.select(within, shifted, all, span), work)
    }

    /// A unary operator.
    pub(super) fn numpy_unary(&mut self, op: UnaryOp, value: Value, operand: Operand, span: Span) -> Value {
        if let Value::Bool(known) = value {
            return self.unary(op, Value::Int(i128::from(known)), span);
        }
        let shown = value.ty();
        let value = value.strong();
        let Number::Real(scalar) = operand.number else {
            let result = self.numba_unary(op, value, span);
            return if operand.weak { result.weak() } else { result };
        };
        let ty = if scalar == Scalar::Bool && operand.weak { Scalar::I64 } else { scalar };
        let takes = match op {
            UnaryOp::Plus | UnaryOp::Minus => ty != Scalar::Bool,
            UnaryOp::Invert => is_integral(ty),
            UnaryOp::Not => false,
        };
        if !takes {
            let symbol = match op {
                UnaryOp::Plus => "+",
                UnaryOp::Minus => "-",
                UnaryOp::Invert => "~",
                UnaryOp::Not => "not",
            };
            let diagnostic =
                Diagnostic::error(Code::BadOperand, span, format!("unary `{symbol}` does not take {shown}"));
            let of_bool = (ty == Scalar::Bool)
                .then_some("NumPy's bools only have `~` and `not`: write `int(x)` to compute with them");
            return self.report(diagnostic.help_if(of_bool));
        }
        let Some(expr) = self.number(&value, ty, span) else { return Value::Poison };
        let expr = match op {
            UnaryOp::Minus => self.b.unary(IrUnary::Neg, expr, span),
            UnaryOp::Invert => self.b.unary(IrUnary::Not, expr, span),
            UnaryOp::Plus | UnaryOp::Not => expr,
        };
        let result = Value::Scalar(expr, ty);
        if operand.weak { result.weak() } else { result }
    }

    /// A comparison of numbers.
    pub(super) fn numpy_compare(&mut self, op: CmpOp, ir: CompareOp, left: &Value, right: &Value, span: Span) -> Value {
        let Some((a, b)) = Operand::of(&left.ty()).zip(Operand::of(&right.ty())) else { return Value::Poison };
        let common = a.with(b);
        let (x, y) = (left.clone().strong(), right.clone().strong());
        let result = match (common.number, a.number, b.number) {
            (Number::Complex(work), _, _) => self.compare_complex(op, ir, &x, &y, work, span),
            (Number::Real(work), Number::Real(a), Number::Real(b)) => self
                .compare_reals(ir, (&x, a), (&y, b), work, span)
                .map_or(Value::Poison, |expr| Value::Scalar(expr, Scalar::Bool)),
            (Number::Real(_), _, _) => Value::Poison,
        };
        if common.weak { result.weak() } else { result }
    }

    fn compare_reals(
        &mut self,
        ir: CompareOp,
        (x, a): (&Value, Scalar),
        (y, b): (&Value, Scalar),
        work: Scalar,
        span: Span,
    ) -> Option<ExprId> {
        if is_integral(a) && is_integral(b) {
            // Integers are compared exactly, whatever their types: a constant that the other type cannot represent is
            // less than, or greater than, all its values.
            for (known, typed, swapped) in [(y, a, false), (x, b, true)] {
                let Value::Int(known) = known else { continue };
                if !weak::holds(typed.into(), *known) {
                    let above = (*known > 0) != swapped;
                    let answer = match ir {
                        CompareOp::Eq => false,
                        CompareOp::Ne => true,
                        CompareOp::Lt | CompareOp::Le => above,
                        CompareOp::Gt | CompareOp::Ge => !above,
                    };
                    return Some(self.b.bool(answer, span));
                }
            }
            let known = |value: &Value| matches!(value, Value::Int(_));
            if !known(x) && !known(y) {
                if let Some(expr) = self.compare_mixed(ir, x, a, y, b, span) {
                    return Some(expr);
                }
                // The run-time value of a weak integer may not fit the other type.
                let exact = crate::frontend::promote::arith_real(a, b);
                let work = if a == b && a != Scalar::Bool { a } else { exact };
                let (x, y) = (self.number(x, work, span)?, self.number(y, work, span)?);
                return Some(self.b.compare(ir, x, y, span));
            }
        }
        let work = if work == Scalar::Bool { Scalar::I64 } else { work };
        let (x, y) = (self.number(x, work, span)?, self.number(y, work, span)?);
        Some(self.b.compare(ir, x, y, span))
    }

    /// The error of a constant int that the other operand's type cannot represent: NumPy's `OverflowError`.
    pub(in crate::frontend) fn out_of_range(&mut self, known: i128, ty: Number, span: Span) -> Value {
        let message = format!("the Python integer {known} is out of bounds for {ty}");
        let diagnostic = Diagnostic::error(Code::OutOfRange, span, message)
            .note(
                "with NumPy's typing a Python number takes the type of the other operand; NumPy raises an \
                 `OverflowError` here",
            )
            .help(format!(
                "convert it to a type that holds it: `np.{}({known})`",
                crate::frontend::ty::int_scalar(known)
            ));
        self.report(diagnostic)
    }
}
