//! Binary operators: the result type by promotion, then both operands converted to it.

use weft_artifact::{Complex, Number, Scalar};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{lowerer::FnLowerer, promote, value::Value},
    ir::{BinaryOp, CompareOp, ExprId, MathFn, Type, UnaryOp},
    source::Span,
    syntax::ast::BinOp,
};

impl FnLowerer<'_> {
    pub(in crate::frontend) fn binary(&mut self, op: BinOp, left: Value, right: Value, span: Span) -> Value {
        if matches!(left, Value::Poison) || matches!(right, Value::Poison) {
            return Value::Poison;
        }
        if let (Value::Int(a), Value::Int(b)) = (&left, &right)
            && let Some(value) = fold(op, *a, *b)
        {
            return Value::Int(value);
        }
        if let (Value::Tuple(a), Value::Tuple(b), BinOp::Add) = (&left, &right, op) {
            let items = a.iter().chain(b).cloned().collect();
            return self.tuple(items, span);
        }
        let types = left.ty().number().zip(right.ty().number());
        let ty = types.and_then(|(a, b)| promote::binary(op, a, b));
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
            // Shifts work on the left operand widened by its own signedness.
            BinOp::LShift | BinOp::RShift if from == Number::BOOL => Scalar::I64,
            _ => ty,
        };
        let (Some(a), Some(b)) = (self.number(&left, work, span), self.number(&right, work, span)) else {
            return Value::Poison;
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
            BinOp::Pow | BinOp::MatMul => return self.bad_operands(op, &left, &right, span),
        };
        Value::Scalar(self.b.binary(ir, a, b, span), ty)
    }

    fn bad_operands(&mut self, op: BinOp, left: &Value, right: &Value, span: Span) -> Value {
        let mut diagnostic = Diagnostic::error(
            Code::BadOperand,
            span,
            format!("`{}` does not take {} and {}", super::symbol(op), left.ty(), right.ty()),
        );
        if matches!(left, Value::Array(_)) || matches!(right, Value::Array(_)) {
            diagnostic = diagnostic.help("kernels compute on elements: index the array");
        }
        self.report(diagnostic)
    }

    /// `left ** right` on real numbers.
    fn power(&mut self, left: &Value, right: &Value, ty: Scalar, span: Span) -> Value {
        if let Value::Int(exponent) = right
            && (0..=8).contains(exponent)
        {
            return self.known_power(left, *exponent as u32, ty, span);
        }
        let (Some(a), Some(b)) = (self.number(left, ty, span), self.number(right, ty, span)) else {
            return Value::Poison;
        };
        let expr = if ty.is_float() {
            self.b.math(MathFn::Pow, vec![a, b], Type::Scalar(ty), span)
        } else {
            self.b.binary(BinaryOp::Pow, a, b, span)
        };
        Value::Scalar(expr, ty)
    }

    /// A small known exponent: multiplications, by squaring.
    fn known_power(&mut self, base: &Value, exponent: u32, ty: Scalar, span: Span) -> Value {
        let one = Value::Int(1);
        let start = if exponent == 0 { &one } else { base };
        let Some(expr) = self.number(start, ty, span) else { return Value::Poison };
        if exponent <= 1 {
            return Value::Scalar(expr, ty);
        }
        let mut square = self.b.temp(expr, span);
        let mut result: Option<ExprId> = None;
        let mut rest = exponent;
        loop {
            if rest & 1 == 1 {
                let factor = self.b.read(square, span);
                result = Some(match result {
                    None => factor,
                    Some(before) => self.b.binary(BinaryOp::Mul, before, factor, span),
                });
            }
            rest >>= 1;
            if rest == 0 {
                break;
            }
            let (a, b) = (self.b.read(square, span), self.b.read(square, span));
            let product = self.b.binary(BinaryOp::Mul, a, b, span);
            square = self.b.temp(product, span);
        }
        result.map_or(Value::Poison, |expr| Value::Scalar(expr, ty))
    }

    fn complex_binary(&mut self, op: BinOp, left: &Value, right: &Value, ty: Complex, span: Span) -> Value {
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
        let [ar, ai, br, bi] = [ar, ai, br, bi].map(|part| self.b.temp(part, span));
        match op {
            BinOp::Mul => {
                // (ar br - ai bi) + (ar bi + ai br) i
                let real = self.products(ar, br, BinaryOp::Sub, ai, bi, span);
                let imag = self.products(ar, bi, BinaryOp::Add, ai, br, span);
                Value::Complex(real, imag, ty)
            }
            _ => self.complex_divide([ar, ai], [br, bi], ty, span),
        }
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

    /// Division as CPython does it (Smith's method): scaled by the larger part of the divisor. Both ways are computed
    /// and one is selected, so no thread diverges.
    fn complex_divide(
        &mut self,
        [ar, ai]: [crate::ir::LocalId; 2],
        [br, bi]: [crate::ir::LocalId; 2],
        ty: Complex,
        span: Span,
    ) -> Value {
        let abs = |this: &mut Self, local| {
            let value = this.b.read(local, span);
            this.b.unary(UnaryOp::Abs, value, span)
        };
        let (size_r, size_i) = (abs(self, br), abs(self, bi));
        let by_real = self.b.compare(CompareOp::Ge, size_r, size_i, span);
        let by_real = self.b.temp(by_real, span);
        let pick = |this: &mut Self, a, b| {
            let (c, a, b) = (this.b.read(by_real, span), this.b.read(a, span), this.b.read(b, span));
            let chosen = this.b.select(c, a, b, span);
            this.b.temp(chosen, span)
        };
        let (large, small) = (pick(self, br, bi), pick(self, bi, br));
        let (n, m) = (self.b.read(small, span), self.b.read(large, span));
        let ratio = self.b.binary(BinaryOp::Div, n, m, span);
        let ratio = self.b.temp(ratio, span);
        // large + small * ratio
        let (l, s, r) = (self.b.read(large, span), self.b.read(small, span), self.b.read(ratio, span));
        let scaled = self.b.binary(BinaryOp::Mul, s, r, span);
        let denominator = self.b.binary(BinaryOp::Add, l, scaled, span);
        let denominator = self.b.temp(denominator, span);
        // by real:      ar + ai*ratio,  ai - ar*ratio
        // by imaginary: ar*ratio + ai,  ai*ratio - ar
        let (first, second) = (pick(self, ar, ai), pick(self, ai, ar));
        let (f, s, r) = (self.b.read(first, span), self.b.read(second, span), self.b.read(ratio, span));
        let scaled = self.b.binary(BinaryOp::Mul, s, r, span);
        let real = self.b.binary(BinaryOp::Add, f, scaled, span);
        let (s, f, r) = (self.b.read(second, span), self.b.read(first, span), self.b.read(ratio, span));
        let scaled = self.b.binary(BinaryOp::Mul, f, r, span);
        let imag = self.b.binary(BinaryOp::Sub, s, scaled, span);
        let imag = self.b.temp(imag, span);
        let (c, plus, minus) = (self.b.read(by_real, span), self.b.read(imag, span), self.b.read(imag, span));
        let negated = self.b.unary(UnaryOp::Neg, minus, span);
        let imag = self.b.select(c, plus, negated, span);
        let (d0, d1) = (self.b.read(denominator, span), self.b.read(denominator, span));
        let real = self.b.binary(BinaryOp::Div, real, d0, span);
        let imag = self.b.binary(BinaryOp::Div, imag, d1, span);
        Value::Complex(real, imag, ty)
    }

    /// Small known integer exponents by multiplication; else `exp(right * log(left))`.
    fn complex_power(&mut self, left: &Value, right: &Value, ty: Complex, span: Span) -> Value {
        if let Value::Int(exponent) = right
            && (1..=8).contains(exponent)
        {
            let Some((real, imag)) = self.complex(left, ty, span) else { return Value::Poison };
            let base = self.settle(Value::Complex(real, imag, ty), span);
            let mut result = self.reread(&base, span);
            for _ in 1..*exponent {
                let factor = self.reread(&base, span);
                let product = self.complex_binary(BinOp::Mul, &result, &factor, ty, span);
                result = self.settle(product, span);
            }
            return result;
        }
        let (Some((ar, ai)), Some((br, bi))) = (self.complex(left, ty, span), self.complex(right, ty, span)) else {
            return Value::Poison;
        };
        let part = Type::Scalar(ty.part());
        let [ar, ai, br, bi] = [ar, ai, br, bi].map(|value| self.b.temp(value, span));
        let (r, i) = (self.b.read(ar, span), self.b.read(ai, span));
        let modulus = self.b.math(MathFn::Hypot, vec![r, i], part, span);
        let log = self.b.math(MathFn::Log, vec![modulus], part, span);
        let log = self.b.temp(log, span);
        let (r, i) = (self.b.read(ar, span), self.b.read(ai, span));
        let angle = self.b.math(MathFn::Atan2, vec![i, r], part, span);
        let angle = self.b.temp(angle, span);
        let exponent = self.products(br, log, BinaryOp::Sub, bi, angle, span);
        let size = self.b.math(MathFn::Exp, vec![exponent], part, span);
        let size = self.b.temp(size, span);
        let turn = self.products(bi, log, BinaryOp::Add, br, angle, span);
        let turn = self.b.temp(turn, span);
        // 0 ** 0 is 1 and 0 ** x is 0; log(0) would give NaN.
        let zero_base = {
            let (r, i) = (self.b.read(ar, span), self.b.read(ai, span));
            let (r, i) = (self.b.convert(r, Type::BOOL, span), self.b.convert(i, Type::BOOL, span));
            let any = self.b.binary(BinaryOp::Or, r, i, span);
            let none = self.b.unary(UnaryOp::Not, any, span);
            self.b.temp(none, span)
        };
        let zero_power = {
            let (r, i) = (self.b.read(br, span), self.b.read(bi, span));
            let (r, i) = (self.b.convert(r, Type::BOOL, span), self.b.convert(i, Type::BOOL, span));
            let any = self.b.binary(BinaryOp::Or, r, i, span);
            let none = self.b.unary(UnaryOp::Not, any, span);
            self.b.convert(none, part, span)
        };
        let component = |this: &mut Self, function: MathFn| {
            let (size, turn) = (this.b.read(size, span), this.b.read(turn, span));
            let factor = this.b.math(function, vec![turn], part, span);
            this.b.binary(BinaryOp::Mul, size, factor, span)
        };
        let (real, imag) = (component(self, MathFn::Cos), component(self, MathFn::Sin));
        let zero = self.b.float(ty.part(), 0.0, span);
        let (c0, c1) = (self.b.read(zero_base, span), self.b.read(zero_base, span));
        let real = self.b.select(c0, zero_power, real, span);
        let imag = self.b.select(c1, zero, imag, span);
        Value::Complex(real, imag, ty)
    }
}

/// Integer operators on known values, where the result is what the kernel would compute.
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
        _ => return None,
    };
    // Beyond 64 bits the kernel's arithmetic wraps: leave it to run time.
    (i128::from(i64::MIN)..=i128::from(i64::MAX)).contains(&value).then_some(value)
}

/// Python's `%`: the sign of the divisor.
fn floor_mod(a: i128, b: i128) -> i128 {
    let remainder = a.rem_euclid(b.abs());
    if b < 0 && remainder != 0 { remainder + b } else { remainder }
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
