//! Swizzled shared arrays: two-dimensional arrays whose rows store their parts of 16 bytes in an order that depends on the
//! row, so that threads that access one column in several rows access different banks.
//!
//! Part `p` of row `i` is at part `p ^ (i / rows % parts)`, where `parts` is the number of parts in the swizzle's width, and
//! `rows` the number of rows in 128 bytes. For rows of that width this is the swizzle of the PTX ISA ("Swizzling Modes").
//!
//! The value is an object whose item is the array. Only operations that translate indices accept it: subscripts, views as
//! another type, matrix tiles and asynchronous copies.

use std::fmt;

use super::{
    expr::Index,
    lowerer::FnLowerer,
    object::ObjectKind,
    ty::ArrayTy,
    value::{ArrayValue, Atom, Value},
};
use crate::{
    diagnostic::Code,
    ir::{BinaryOp, ExprId},
    source::Span,
};

/// The bytes of a part.
const PART: u64 = 16;
/// The bytes of all banks.
const BANKS: u64 = 128;

/// How a row depends on its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Swizzle {
    /// The logarithm of the number of parts that are exchanged with each other.
    parts: u8,
    /// The logarithm of the number of rows with the same order.
    rows: u8,
}

impl Swizzle {
    /// The swizzle of a width in bytes, for rows of some number of bytes; a sentence if there is none.
    pub(super) fn new(width: i128, row_bytes: u64) -> Result<Self, String> {
        if !matches!(width, 32 | 64 | 128) {
            return Err(format!("a swizzle is 32, 64 or 128 bytes wide, not {width}"));
        }
        let width = width as u64;
        if row_bytes == 0 || !row_bytes.is_multiple_of(width) {
            return Err(format!("rows of {row_bytes} bytes are not a multiple of the swizzle of {width}"));
        }
        Ok(Self { parts: (width / PART).ilog2() as u8, rows: (BANKS / row_bytes).max(1).ilog2() as u8 })
    }

    /// Whether elements of a size are not divided between parts.
    pub(super) const fn fits(size: u64) -> bool {
        size.is_power_of_two() && size <= PART
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (PART << self.parts).fmt(f)
    }
}

/// The array of a value, and its swizzle.
pub(super) fn array_of(value: Value) -> Result<(ArrayValue, Option<Swizzle>), Value> {
    match value {
        Value::Array(array) => Ok((array, None)),
        Value::Object(ObjectKind::Swizzled(swizzle), items) => match items.as_slice() {
            [Value::Array(array)] => Ok((array.clone(), Some(swizzle))),
            _ => Err(Value::Poison),
        },
        other @ (Value::Scalar(..)
        | Value::Complex(..)
        | Value::Int(_)
        | Value::Bool(_)
        | Value::Object(..)
        | Value::Static(_)
        | Value::Poison) => Err(other),
    }
}

impl FnLowerer<'_> {
    /// The indices in the array's memory of the element that `indices` select in a swizzled array.
    pub(super) fn swizzled(
        &mut self,
        array: &ArrayValue,
        swizzle: Swizzle,
        indices: &[Index],
        span: Span,
    ) -> Option<Vec<Index>> {
        let ([row @ Index::At { .. }, column @ Index::At { .. }], [rows, columns]) = (indices, array.shape.as_slice())
        else {
            self.error(
                Code::BadIndex,
                span,
                "a swizzled array takes two integers as indices: it has no views of its parts",
            );
            return None;
        };
        let row = self.wrapped(row, *rows, span);
        let row = self.atom(row, span);
        let column = self.wrapped(column, *columns, span);
        let column = self.swizzled_column(array.ty, swizzle, (row, column), span);
        let row = self.use_atom(row, span);
        Some([row, column].map(|expr| Index::At { expr, wraps: false, known: None }).into())
    }

    /// The index in memory of a column.
    pub(super) fn swizzled_column(
        &mut self,
        ty: ArrayTy,
        swizzle: Swizzle,
        (row, column): (Atom, ExprId),
        span: Span,
    ) -> ExprId {
        let per_part = PART / ty.dtype.size_bytes().max(1);
        let mut order = self.use_atom(row, span);
        for (op, by) in [
            (BinaryOp::Shr, i64::from(swizzle.rows)),
            (BinaryOp::And, (1 << swizzle.parts) - 1),
            (BinaryOp::Shl, i64::from(per_part.max(1).ilog2())),
        ] {
            let by = self.b.i64(by, span);
            order = self.b.binary(op, order, by, span);
        }
        self.b.binary(BinaryOp::Xor, column, order, span)
    }
}
