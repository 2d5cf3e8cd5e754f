//! Affine analysis: integers and addresses as sums of coefficients times atoms, such as thread indices, loop counters
//! and uniform values.
//!
//! There are three queries, each as cheap as its answer allows:
//!
//! - [`Strides`]: the difference of a value between neighboring threads, or between iterations of a loop;
//! - [`Polynomial`] and [`polynomial`]: the whole sum, to subtract one value from another;
//! - [`Magnitude`]: a bound of the absolute value, from which it follows that a sum does not wrap.
//!
//! [`accesses`] classifies the memory accesses of a function by the strides of their addresses.
//!
//! With [`Precision::Exact`], an answer holds for the wrapped values that a kernel computes: it may decide whether a
//! transformation is legal. With [`Precision::Estimate`], integers are unbounded: it may only decide what pays.

mod access;
mod definitions;
mod magnitude;
mod polynomial;
mod stride;
#[cfg(test)]
mod tests;

pub(crate) use access::{AccessClass, AccessKind, accesses};
pub(crate) use definitions::{Definition, definitions};
pub(crate) use magnitude::{Magnitude, is_extent};
pub(crate) use polynomial::{Atoms, ByStructure, Polynomial, polynomial};
pub(crate) use stride::{Along, LocalStride, Stride, Strides, estimated_stride, estimated_strides};

use crate::ir::{BinaryOp, ExprId, ExprKind, Function, Type};

/// What an answer may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// It holds for every input, modulo 2^64.
    Exact,
    /// It assumes that no integer wraps, that indices are within their arrays, and that nothing writes the memory that
    /// neighbors load from.
    Estimate,
}

/// An operator that is a sum or a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linear {
    /// The first operand plus this number times the second.
    Sum(i128),
    Product,
}

impl Linear {
    /// The operator, if its result is the sum or the product of integers: modulo 2^64, or exactly for 32 bits. A sum of
    /// 32 bits that may wrap is none once it is widened.
    fn of(op: BinaryOp, ty: Type, precision: Precision) -> Option<Self> {
        use BinaryOp::{Add, AddExact, Mul, MulExact, Sub, SubExact};
        let holds = match precision {
            Precision::Exact => ty == Type::I64 || (ty == Type::I32 && matches!(op, AddExact | SubExact | MulExact)),
            Precision::Estimate => is_whole(ty),
        };
        let linear = match op {
            Add | AddExact => Self::Sum(1),
            Sub | SubExact => Self::Sum(-1),
            Mul | MulExact => Self::Product,
            BinaryOp::Div
            | BinaryOp::FloorDiv
            | BinaryOp::FloorMod
            | BinaryOp::DivNonneg
            | BinaryOp::ModNonneg
            | BinaryOp::Pow
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => return None,
        };
        holds.then_some(linear)
    }
}

/// Whether a type is an integer or a pointer.
fn is_whole(ty: Type) -> bool {
    ty.scalar().is_none_or(weft_artifact::Scalar::is_int)
}

/// Whether a conversion to `to` preserves an integer's value.
fn is_preserved(from: Type, to: Type, precision: Precision) -> bool {
    match precision {
        Precision::Exact => (from, to) == (Type::I32, Type::I64),
        Precision::Estimate => is_whole(from) && is_whole(to),
    }
}

/// The number of bytes of a step of an address's offset.
pub(crate) fn bytes_per_step(function: &Function, address: ExprId) -> i128 {
    let expr = &function.exprs[address];
    match (&expr.kind, expr.ty) {
        (ExprKind::Offset { scale, .. }, Type::Ptr(element, _)) => {
            i128::from(element.size_bytes()) * i128::from(*scale)
        }
        _ => 1,
    }
}
