//! `**`: repeated squaring if the exponent is a constant integer, as in Numba, and functions otherwise.

use weft_artifact::{Complex, Scalar};

use crate::{
    frontend::{lowerer::FnLowerer, prelude, value::Value},
    ir::{BinaryOp, ExprId, MathFn, Type},
    source::Span,
    syntax::ast::BinOp,
};

/// The largest absolute value of a constant exponent that is expanded to multiplications, as in Numba.
const LARGEST_MULTIPLIED: u64 = 1 << 16;

impl FnLowerer<'_> {
    /// `left ** right` on real numbers.
    pub(super) fn power(&mut self, left: &Value, right: &Value, ty: Scalar, span: Span) -> Value {
        if let Value::Int(exponent) = right
            && let Some(size) = u64::try_from(exponent.unsigned_abs()).ok().filter(|size| *size <= LARGEST_MULTIPLIED)
            // An integer power with a negative exponent is not the reciprocal of a product, which would wrap.
            && (*exponent >= 0 || ty.is_float())
        {
            let Some(product) = self.squared(left, size, ty, span) else { return Value::Poison };
            if *exponent >= 0 {
                return Value::Scalar(product, ty);
            }
            let one = self.b.float(ty, 1.0, span);
            return Value::Scalar(self.b.binary(BinaryOp::Div, one, product, span), ty);
        }
        let integer = right.ty().scalar().is_some_and(Scalar::is_int);
        if integer && matches!(right, Value::Scalar(..)) && left.ty().scalar().is_some_and(Scalar::is_float) {
            return self.integer_power(left, right, ty, span);
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

    /// A float to an integer power that is not constant: the same multiplications, in a loop.
    fn integer_power(&mut self, left: &Value, right: &Value, ty: Scalar, span: Span) -> Value {
        let Some(base) = self.number(left, ty, span) else { return Value::Poison };
        if self.is_dry() {
            return Value::Scalar(base, ty);
        }
        let name = "integer_power";
        let found = prelude::function(name).ok_or_else(|| format!("the prelude lacks `{name}`"));
        let values = vec![Value::Scalar(base, ty), right.clone()];
        match found.and_then(|def| self.call_own(&def, values, span).map_err(|error| format!("{error:?}"))) {
            Ok(value) => value,
            Err(fault) => {
                self.cx.fault(self.at(span), &fault);
                Value::Poison
            }
        }
    }

    /// `base` to a constant exponent by multiplications: the product of the repeated squares selected by the exponent's
    /// bits, from the lowest bit up.
    fn squared(&mut self, base: &Value, exponent: u64, ty: Scalar, span: Span) -> Option<ExprId> {
        let one = Value::Int(1);
        let start = if exponent == 0 { &one } else { base };
        let expr = self.number(start, ty, span)?;
        if exponent <= 1 {
            return Some(expr);
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
                return result;
            }
            let (a, b) = (self.b.read(square, span), self.b.read(square, span));
            let product = self.b.binary(BinaryOp::Mul, a, b, span);
            square = self.b.temp(product, span);
        }
    }

    /// Small constant integer exponents by multiplication.
    pub(super) fn complex_power(&mut self, left: &Value, right: &Value, ty: Complex, span: Span) -> Value {
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
        self.complex_prelude("complex_power", [ar, ai, br, bi], ty, span)
    }
}
