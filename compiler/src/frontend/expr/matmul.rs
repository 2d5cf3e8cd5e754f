//! `a @ b` of vectors and matrices with constant extents: a number, or a local array.

use weft_artifact::{DType, Layout};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        allocations::NewArray,
        lowerer::FnLowerer,
        prelude, promote,
        ty::Ty,
        value::{ArrayValue, Atom, Value},
    },
    source::Span,
    syntax::ast::BinOp,
};

/// The maximum number of elements of a product, for any element type.
const LARGEST_PRODUCT: u64 = 1 << 30;

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
            let Atom::Int(known) = self.fixed(extent) else {
                let message = "the product of `@` is a local array: its shape must be a compile-time constant";
                let diagnostic = Diagnostic::error(Code::NotConstant, span, message);
                return self
                    .report(diagnostic.help("write the loops, or use local or shared arrays and views of them"));
            };
            shape.push(known);
        }
        let Some(function) = prelude::function(name) else {
            self.cx.fault(self.at(span), "the prelude lacks a product");
            return Value::Poison;
        };
        let operands = [Value::Array(left.clone()), Value::Array(right.clone())];
        if shape.is_empty() {
            return match self.call_own(&function, operands.into(), span) {
                Ok(value) => value,
                Err(error) => self.report(error),
            };
        }
        let Some(made) = self.product_of_shape(number.into(), &shape, span) else { return Value::Poison };
        let read = left.ty.sites.union(right.ty.sites);
        let product = self.new_array_of(&made, read, "product", span, |this, product| {
            if this.is_dry() {
                return;
            }
            let values = operands.into_iter().chain([Value::Array(product.clone())]).collect();
            if let Err(error) = this.call_own(&function, values, span) {
                this.report(error);
            }
        });
        Value::Array(product)
    }

    /// The array for a product; reports one that exceeds the memory of a thread.
    fn product_of_shape(&mut self, dtype: DType, shape: &[i64], span: Span) -> Option<NewArray> {
        let room = shape.iter().try_fold(1, |len: u64, extent| len.checked_mul(u64::try_from(*extent).ok()?));
        let Some(room) = room.filter(|room| *room <= LARGEST_PRODUCT) else {
            self.error(Code::LocalTooLarge, span, "the result does not fit into a thread's local memory");
            return None;
        };
        Some(NewArray {
            dtype,
            layout: Layout::C,
            shape: shape.iter().map(|extent| Atom::Int(*extent)).collect(),
            room,
        })
    }
}
