//! `a @ b` of vectors and matrices of known sizes: a number, or a local array.

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        lowerer::FnLowerer,
        prelude, promote,
        ty::Ty,
        value::{ArrayValue, Atom, Value},
    },
    source::Span,
    syntax::ast::BinOp,
};

impl FnLowerer<'_> {
    /// `a @ b` and `np.dot(a, b)` of arrays.
    pub(in crate::frontend) fn matmul(&mut self, left: &ArrayValue, right: &ArrayValue, span: Span) -> Value {
        let types = left.ty.dtype.number().zip(right.ty.dtype.number());
        let number = types.and_then(|(a, b)| promote::binary(BinOp::Mul, a, b));
        let (rows, columns) = (left.shape.split_last(), right.shape.split_first());
        let (Some(number), Some((inner, rows)), Some((other, columns)), true) =
            (number, rows, columns, left.ty.ndim <= 2 && right.ty.ndim <= 2)
        else {
            let message =
                format!("`@` multiplies vectors and matrices, not {} and {}", Ty::Array(left.ty), Ty::Array(right.ty));
            return self.error(Code::BadOperand, span, message);
        };
        if let (Atom::Int(a), Atom::Int(b)) = (inner, other)
            && a != b
        {
            return self.error(Code::BadOperand, span, format!("`@` of {a} columns and {b} rows"));
        }
        if self.end_unless_same(*other, *inner, span).is_none() {
            return Value::Poison;
        }
        let (name, mut args) = match (rows, columns) {
            ([], []) => ("dot", Vec::new()),
            ([rows], []) => ("matrix_vector", vec![*rows]),
            ([], [columns]) => ("vector_matrix", vec![*columns]),
            (rows, columns) => ("matrix_matrix", rows.iter().chain(columns).copied().collect()),
        };
        let mut shape = Vec::new();
        for extent in args.drain(..) {
            let Atom::Int(known) = extent else {
                let message =
                    "the product of `@` is a local array: its shape must be known when the kernel is compiled";
                let diagnostic = Diagnostic::error(Code::NotConstant, span, message);
                return self
                    .report(diagnostic.help("write the loops, or take local or shared arrays and views of them"));
            };
            shape.push(known);
        }
        let Some(function) = prelude::function(name) else {
            self.cx.fault(self.at(span), "the prelude lacks a product");
            return Value::Poison;
        };
        let mut values = vec![Value::Array(left.clone()), Value::Array(right.clone())];
        let product = (!shape.is_empty()).then(|| self.local_array(number.into(), shape, "product", span));
        values.extend(product.clone());
        if product.is_some() && self.is_dry() {
            return product.unwrap_or(Value::Poison);
        }
        match (self.call_own(&function, values, span), product) {
            (Ok(_), Some(product)) => product,
            (Ok(value), None) => value,
            (Err(error), _) => self.report(error),
        }
    }
}
