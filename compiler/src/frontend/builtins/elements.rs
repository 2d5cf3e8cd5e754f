//! Primitives of the prelude that Python lacks: elements of arrays by their linear index in C order.

use weft_artifact::{Layout, Scalar};

use super::super::{
    expr::{Args, Index},
    lowerer::FnLowerer,
    value::{ArrayValue, Value},
};
use crate::{
    diagnostic::Code,
    ir::{BinaryOp, ExprId, MathFn, Type},
    source::Span,
};

impl FnLowerer<'_> {
    /// `item(a, k)`, which is `a` if `a` is a number; `put(a, k, value)`; `row(a, k)`; `broadcast(a, b)`, a view of `a`
    /// with the shape of `b`, or `a` if it is a number; and functions that only the back ends have, such as
    /// `math.add.rz`.
    pub(in crate::frontend) fn primitive(&mut self, name: &str, args: Args, span: Span) -> Value {
        if let Some(function) = MathFn::ALL.iter().find(|function| name.strip_prefix("math.") == Some(function.name()))
        {
            return self.back_end_math(*function, args, span);
        }
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        if let Some(value) = self.coop_primitive(name, &values, span) {
            return value;
        }
        let mut values = values.into_iter();
        match (name, values.next(), values.next(), values.next()) {
            ("item", Some(Value::Array(array)), Some(number), None) => {
                let Some((view, indices)) = self.nth(array, &number, span) else { return Value::Poison };
                self.subscript(Value::Array(view), &indices, span)
            }
            ("item", Some(value), Some(_), None) => value,
            ("row", Some(Value::Array(array)), Some(number), None) => self.nth_row(&array, &number, span),
            ("broadcast", Some(Value::Array(array)), Some(Value::Array(to)), None) => {
                Value::Array(self.broadcast(&array, &to.shape, span))
            }
            ("broadcast", Some(value), Some(_), None) => value,
            ("put", Some(Value::Array(array)), Some(number), Some(value)) => {
                let Some((view, indices)) = self.nth(array, &number, span) else { return Value::Poison };
                self.store_subscript(Value::Array(view), &indices, value, span);
                Value::NONE
            }
            _ => self.error(Code::BadOperand, span, format!("`{name}` of the prelude does not take these")),
        }
    }

    /// A back-end function of numbers of one type, with a result of this type, or a float of 8 bits.
    fn back_end_math(&mut self, function: MathFn, args: Args, span: Span) -> Value {
        let types: Option<Vec<Scalar>> = args.positional.iter().map(|(value, _)| value.ty().scalar()).collect();
        let Some(scalar) = types.as_ref().and_then(|types| types.first().copied()) else {
            return self.error(
                Code::BadOperand,
                span,
                format!("`{}` of a value that is not a number", function.name()),
            );
        };
        let values: Option<Vec<ExprId>> =
            args.positional.iter().map(|(value, _)| self.number(value, scalar, span)).collect();
        let Some(values) = values else { return Value::Poison };
        let result = if matches!(function, MathFn::ToE4M3 | MathFn::ToE5M2) { Scalar::U8 } else { scalar };
        Value::Scalar(self.b.math(function, values, Type::Scalar(result), span), result)
    }

    /// The array, possibly viewed as one-dimensional, and the indices of the element at a linear position in C order.
    pub(in crate::frontend) fn nth(
        &mut self,
        array: ArrayValue,
        number: &Value,
        span: Span,
    ) -> Option<(ArrayValue, Vec<Index>)> {
        let number = self.number(number, Scalar::I64, span)?;
        if array.ty.ndim == 1 {
            return Some((array, vec![Index::at(number)]));
        }
        if array.ty.layout == Layout::C {
            let size = self.attribute_of(Value::Array(array.clone()), "size", span);
            let size = self.number(&size, Scalar::I64, span)?;
            let mut flat = array;
            flat.shape = vec![self.nonneg_atom(size, span)];
            flat.ty.ndim = 1;
            return Some((flat, vec![Index::at(number)]));
        }
        let mut rest: ExprId = number;
        let mut indices = Vec::new();
        for dim in (0..array.ty.ndim).rev() {
            let extent = *array.shape.get(dim)?;
            if dim == 0 {
                indices.push(Index::at(rest));
                break;
            }
            let before = self.b.temp(rest, span);
            let (now, by) = (self.b.read(before, span), self.use_atom(extent, span));
            let index = self.b.binary(BinaryOp::ModNonneg, now, by, span);
            indices.push(Index::at(index));
            let (now, by) = (self.b.read(before, span), self.use_atom(extent, span));
            rest = self.b.binary(BinaryOp::DivNonneg, now, by, span);
        }
        indices.reverse();
        Some((array, indices))
    }
}
