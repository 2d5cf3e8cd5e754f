//! Binary operators: the result type is found by promotion; then both operands are converted to it.

use weft_artifact::{Complex, MAX_LEAVES, Number, Scalar};

use super::text::times;
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        lowerer::{FnLowerer, wrap_int},
        object::{ObjectKind, Static},
        promote, refusals,
        value::Value,
    },
    ir::{BinaryOp, ExprId},
    source::Span,
    syntax::ast::BinOp,
};

impl FnLowerer<'_> {
    pub(in crate::frontend) fn binary(&mut self, op: BinOp, left: Value, right: Value, span: Span) -> Value {
        if !self.cx.notes {
            return self.binary_value(op, left, right, span);
        }
        let operands = left.ty().number().zip(right.ty().number());
        let value = self.binary_value(op, left, right, span);
        self.note_types(op.symbol(), operands, &value, span);
        value
    }

    fn binary_value(&mut self, op: BinOp, left: Value, right: Value, span: Span) -> Value {
        if matches!(left, Value::Poison) || matches!(right, Value::Poison) {
            return Value::Poison;
        }
        if op == BinOp::Mod
            && let Some(text) = self.percent(&left, &right, span)
        {
            return text;
        }
        let (left, right) = (self.not_none(left, span), self.not_none(right, span));
        let (left, right) = (self.element_of_none(left, span), self.element_of_none(right, span));
        if let (Value::Array(a), Value::Array(b), BinOp::MatMul) = (&left, &right, op) {
            return self.matmul(a, b, span);
        }
        let types = left.ty().number().zip(right.ty().number());
        let ty = types.and_then(|(a, b)| promote::binary(op, a, b));
        if let (Value::Int(a), Value::Int(b), Some(Number::Real(Scalar::I64))) = (&left, &right, ty)
            && let Some(value) = fold(op, wrap_int(*a, Scalar::I64), wrap_int(*b, Scalar::I64))
        {
            return Value::Int(value);
        }
        if let (Some(a), Some(b), BinOp::Add) = (left.as_tuple(), right.as_tuple(), op) {
            let items = a.iter().chain(b).cloned().collect();
            return self.tuple(items, span);
        }
        if let (Some(items), Some(times), BinOp::Mul) = (left.as_tuple(), times(&right), op) {
            return self.repeated_tuple(items, times, span);
        }
        if let (Some(times), Some(items), BinOp::Mul) = (times(&left), right.as_tuple(), op) {
            return self.repeated_tuple(items, times, span);
        }
        if let Some(value) = self.text_binary(op, &left, &right, span) {
            return value;
        }
        if op == BinOp::Add
            && let Some(text) = self.joined_strings(&left, &right, span)
        {
            return text;
        }
        if let Some(value) = self.vector_binary(op, &left, &right, span) {
            return value;
        }
        if let Some(value) = self.time_binary(op, &left, &right, span) {
            return value;
        }
        if self.is_numpy() && types.is_some() {
            return self.numpy_binary(op, left, right, span);
        }
        let (Some(ty), Some((from, _))) = (ty, types) else {
            return self.bad_operands(op, &left, &right, span);
        };
        let ty = match ty {
            Number::Complex(ty) => return self.complex_binary(op, &left, &right, ty, span),
            Number::Real(ty) => ty,
        };
        if op == BinOp::Pow {
            return self.power(&left, &right, ty, span);
        }
        let work = match op {
            // `int / int` divides as float64.
            BinOp::Div => ty,
            // Shifts widen the left operand by its own signedness.
            BinOp::LShift | BinOp::RShift if from == Number::BOOL => Scalar::I64,
            BinOp::Add
            | BinOp::Sub
            | BinOp::Mul
            | BinOp::FloorDiv
            | BinOp::Mod
            | BinOp::Pow
            | BinOp::MatMul
            | BinOp::LShift
            | BinOp::RShift
            | BinOp::BitAnd
            | BinOp::BitOr
            | BinOp::BitXor => ty,
        };
        match self.real_binary(op, &left, &right, work, span) {
            Value::Scalar(expr, _) => Value::Scalar(expr, ty),
            other @ (Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison) => other,
        }
    }

    /// An operator that is a single instruction, on real numbers of the type `work`.
    pub(super) fn real_binary(&mut self, op: BinOp, left: &Value, right: &Value, work: Scalar, span: Span) -> Value {
        let (Some(a), Some(b)) = (self.number(left, work, span), self.number(right, work, span)) else {
            return Value::Poison;
        };
        let b = match op {
            BinOp::Div => self.divisor(b, "division by zero", span),
            BinOp::FloorDiv if work.is_float() => self.divisor(b, "float floor division by zero", span),
            BinOp::FloorDiv => self.divisor(b, "integer division or modulo by zero", span),
            BinOp::Mod if work.is_float() => self.divisor(b, "float modulo", span),
            BinOp::Mod => self.divisor(b, "integer modulo by zero", span),
            BinOp::Add
            | BinOp::Sub
            | BinOp::Mul
            | BinOp::Pow
            | BinOp::MatMul
            | BinOp::LShift
            | BinOp::RShift
            | BinOp::BitAnd
            | BinOp::BitOr
            | BinOp::BitXor => b,
        };
        let ir = match op {
            BinOp::Add => BinaryOp::Add,
            BinOp::Sub => BinaryOp::Sub,
            BinOp::Mul => BinaryOp::Mul,
            BinOp::Div => BinaryOp::Div,
            BinOp::FloorDiv => BinaryOp::FloorDiv,
            BinOp::Mod => BinaryOp::FloorMod,
            BinOp::LShift => BinaryOp::Shl,
            BinOp::RShift => BinaryOp::Shr,
            BinOp::BitAnd => BinaryOp::And,
            BinOp::BitOr => BinaryOp::Or,
            BinOp::BitXor => BinaryOp::Xor,
            BinOp::Pow | BinOp::MatMul => return self.bad_operands(op, left, right, span),
        };
        Value::Scalar(self.b.binary(ir, a, b, span), work)
    }

    /// `tuple * times`.
    fn repeated_tuple(&mut self, items: &[Value], times: usize, span: Span) -> Value {
        let settled: Vec<Value> = items.iter().map(|item| self.settle(item.clone(), span)).collect();
        let mut out = Vec::new();
        for _ in 0..times.min(MAX_LEAVES + 1) {
            out.extend(settled.iter().map(|item| self.reread(item, span)));
            if out.len() > MAX_LEAVES {
                break;
            }
        }
        self.tuple(out, span)
    }

    pub(super) fn bad_operands(&mut self, op: BinOp, left: &Value, right: &Value, span: Span) -> Value {
        let repeats = |a: &Value, b: &Value| is_sequence(a) && b.ty().scalar().is_some_and(promote::is_integral);
        if op == BinOp::Mul && (repeats(left, right) || repeats(right, left)) {
            let what = if is_text(left) || is_text(right) { "string" } else { "tuple" };
            let message = format!("the number of repetitions of a {what} must be a compile-time constant");
            return self.report(Diagnostic::error(Code::NotConstant, span, message));
        }
        let mut diagnostic = Diagnostic::error(
            Code::BadOperand,
            span,
            format!("`{}` does not take {} and {}", super::symbol(op), left.ty(), right.ty()),
        );
        if let Some(help) = refusals::instead_of_operand(left).or_else(|| refusals::instead_of_operand(right)) {
            diagnostic = diagnostic.help(help);
        } else if is_text(left) != is_text(right) {
            diagnostic =
                diagnostic.help("pass several values or an f-string to `print`: `print(\"n is\", n)`, `f\"n is {n}\"`");
        }
        self.report(diagnostic)
    }

    pub(super) fn complex_binary(&mut self, op: BinOp, left: &Value, right: &Value, ty: Complex, span: Span) -> Value {
        if op == BinOp::Pow {
            return self.complex_power(left, right, ty, span);
        }
        let (Some((ar, ai)), Some((br, bi))) = (self.complex(left, ty, span), self.complex(right, ty, span)) else {
            return Value::Poison;
        };
        if matches!(op, BinOp::Add | BinOp::Sub) {
            let ir = if op == BinOp::Add { BinaryOp::Add } else { BinaryOp::Sub };
            return Value::Complex(self.b.binary(ir, ar, br, span), self.b.binary(ir, ai, bi, span), ty);
        }
        if op == BinOp::Div {
            let (br, bi) = self.complex_divisor(br, bi, span);
            return self.complex_prelude("complex_divide", [ar, ai, br, bi], ty, span);
        }
        let [ar, ai, br, bi] = [ar, ai, br, bi].map(|part| self.b.temp(part, span));
        // (ar br - ai bi) + (ar bi + ai br) i
        let real = self.products(ar, br, BinaryOp::Sub, ai, bi, span);
        let imag = self.products(ar, bi, BinaryOp::Add, ai, br, span);
        Value::Complex(real, imag, ty)
    }

    /// `a * b op c * d` on locals.
    fn products(
        &mut self,
        a: crate::ir::LocalId,
        b: crate::ir::LocalId,
        op: BinaryOp,
        c: crate::ir::LocalId,
        d: crate::ir::LocalId,
        span: Span,
    ) -> ExprId {
        let (a, b, c, d) = (self.b.read(a, span), self.b.read(b, span), self.b.read(c, span), self.b.read(d, span));
        let left = self.b.binary(BinaryOp::Mul, a, b, span);
        let right = self.b.binary(BinaryOp::Mul, c, d, span);
        self.b.binary(op, left, right, span)
    }

    /// A function of the prelude that computes a complex number from the parts of two.
    pub(super) fn complex_prelude(&mut self, name: &str, parts: [ExprId; 4], ty: Complex, span: Span) -> Value {
        let args = parts.map(|part| Value::Scalar(part, ty.part()));
        let Value::Object(ObjectKind::Tuple, items) = self.prelude(name, args.into(), span) else {
            return Value::Poison;
        };
        let [real, imag] = items.as_slice() else { return Value::Poison };
        let parts = self.number(real, ty.part(), span).zip(self.number(imag, ty.part(), span));
        parts.map_or(Value::Poison, |(real, imag)| Value::Complex(real, imag, ty))
    }
}

/// Integer operators on constants, if the result is the same as at run time.
fn fold(op: BinOp, a: i128, b: i128) -> Option<i128> {
    let value = match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a.checked_mul(b)?,
        BinOp::FloorDiv if b != 0 => (a - floor_mod(a, b)) / b,
        BinOp::Mod if b != 0 => floor_mod(a, b),
        BinOp::Pow if (0..64).contains(&b) => a.checked_pow(b as u32)?,
        BinOp::LShift if (0..63).contains(&b) => a.checked_mul(1 << b)?,
        BinOp::RShift if (0..63).contains(&b) => a >> b,
        BinOp::BitAnd => a & b,
        BinOp::BitOr => a | b,
        BinOp::BitXor => a ^ b,
        BinOp::Div | BinOp::FloorDiv | BinOp::Mod | BinOp::Pow | BinOp::MatMul | BinOp::LShift | BinOp::RShift => {
            return None;
        }
    };
    // Results beyond 64 bits wrap at run time, so they are not folded.
    (i128::from(i64::MIN)..=i128::from(i64::MAX)).contains(&value).then_some(value)
}

/// Python's `%`: the sign of the divisor.
fn floor_mod(a: i128, b: i128) -> i128 {
    let remainder = a.rem_euclid(b.abs());
    if b < 0 && remainder != 0 { remainder + b } else { remainder }
}

fn is_text(value: &Value) -> bool {
    matches!(value, Value::Static(Static::Str(_) | Static::Bytes(_)))
}

/// Whether multiplication by a number repeats the value.
fn is_sequence(value: &Value) -> bool {
    is_text(value) || value.as_tuple().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_integers_fold_as_python_computes() {
        for (a, b, quotient, remainder) in
            [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -3, -2, 0)]
        {
            assert_eq!(fold(BinOp::FloorDiv, a, b), Some(quotient), "{a} // {b}");
            assert_eq!(fold(BinOp::Mod, a, b), Some(remainder), "{a} % {b}");
        }
        assert_eq!(fold(BinOp::FloorDiv, 1, 0), None);
        assert_eq!(fold(BinOp::Mul, i128::from(i64::MAX), 2), None);
    }
}
