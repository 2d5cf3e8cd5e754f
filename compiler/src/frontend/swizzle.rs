//! Swizzled shared arrays: arrays of two or more dimensions whose rows, along the last dimension, store their parts of 16 bytes in an order that depends on the
//! row, so that threads that access one column in several rows access different banks.
//!
//! Part `p` of row `i` is at part `p ^ (i / rows % parts)`, where `parts` is the number of parts in the swizzle's width, and
//! `rows` the number of rows in 128 bytes. For rows of that width this is the swizzle of the PTX ISA ("Swizzling Modes").
//!
//! The value is an object whose item is the array. Only operations that translate indices accept it: subscripts, views as
//! another type, matrix tiles and asynchronous copies.

use std::fmt;

use weft_artifact::Layout;

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
/// The rows after which the order repeats, at most.
pub(super) const ROWS: u64 = 8;

/// How a row depends on its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Swizzle {
    /// The logarithm of the number of parts that are exchanged with each other.
    parts: u8,
    /// The logarithm of the number of rows with the same order.
    rows: u8,
    /// The bytes of a row, and the number of rows: the extents of the last two dimensions.
    pub(super) row_bytes: u32,
    pub(super) n_rows: u32,
}

impl Swizzle {
    /// The swizzle of a width in bytes, for a number of rows of some number of bytes; a sentence if there is none.
    pub(super) fn new(width: i128, n_rows: u64, row_bytes: u64) -> Result<Self, String> {
        if !matches!(width, 32 | 64 | 128) {
            return Err(format!("a swizzle is 32, 64 or 128 bytes wide, not {width}"));
        }
        let width = width as u64;
        if row_bytes == 0 || !row_bytes.is_multiple_of(width) {
            return Err(format!("rows of {row_bytes} bytes are not a multiple of the swizzle of {width}"));
        }
        let (Ok(row_bytes), Ok(n_rows)) = (u32::try_from(row_bytes), u32::try_from(n_rows)) else {
            return Err("a swizzled array fits into shared memory".to_owned());
        };
        let rows = (BANKS / u64::from(row_bytes)).max(1).ilog2() as u8;
        Ok(Self { parts: (width / PART).ilog2() as u8, rows, row_bytes, n_rows })
    }

    /// Its width in bytes.
    pub(super) const fn width(self) -> u64 {
        PART << self.parts
    }

    /// Whether rows have the swizzle's width, so that the order is that of TMA and of products of a warpgroup.
    pub(super) const fn is_of_rows(self) -> bool {
        self.row_bytes as u64 == self.width()
    }

    /// The alignment in bytes: TMA and products of a warpgroup find the order in addresses.
    pub(super) const fn align(self) -> u64 {
        if self.is_of_rows() { ROWS * self.width() } else { BANKS }
    }

    /// Whether elements of a size are not divided between parts.
    pub(super) const fn fits(size: u64) -> bool {
        size.is_power_of_two() && size <= PART
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.width().fmt(f)
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
        let (mut out, by_rows) = (indices.to_vec(), array.ty.layout == Layout::C);
        let [.., first @ Index::At { .. }, second @ Index::At { .. }] = indices else {
            return self.not_indices(array, span);
        };
        if indices.len() != array.ty.ndim || !indices.iter().all(|index| matches!(index, Index::At { .. })) {
            return self.not_indices(array, span);
        }
        let (&[.., first_extent, second_extent], at) = (array.shape.as_slice(), indices.len() - 2) else { return None };
        let mut lines = [(first, first_extent, at), (second, second_extent, at + 1)];
        if !by_rows {
            lines.reverse();
        }
        let [(row, rows, row_at), (column, columns, column_at)] = lines;
        let row = self.wrapped(row, rows, span);
        let row = self.atom(row, span);
        let column = self.wrapped(column, columns, span);
        let column = self.swizzled_column(array.ty, swizzle, (row, column), span);
        let row = self.use_atom(row, span);
        for (expr, at) in [(row, row_at), (column, column_at)] {
            out[at] = Index::At { expr, wraps: false, known: None };
        }
        Some(out)
    }

    fn not_indices(&mut self, array: &ArrayValue, span: Span) -> Option<Vec<Index>> {
        let message = match array.ty.ndim {
            2 => "a swizzled array takes two integers as indices: it has no views of its parts".to_owned(),
            ndim => format!(
                "a swizzled array of {ndim} dimensions takes integers as indices: {ndim}, or at most {} for a view",
                ndim - 2
            ),
        };
        self.error(Code::BadIndex, span, message);
        None
    }

    /// The view that indices of dimensions before the rows select in a swizzled array; `None` if they select none.
    pub(super) fn part_of_swizzled(
        &mut self,
        array: &ArrayValue,
        swizzle: Swizzle,
        indices: &[Index],
        span: Span,
    ) -> Option<Value> {
        let of_rows = indices.iter().all(|index| matches!(index, Index::At { .. }));
        if !of_rows || indices.len() + 2 > array.ty.ndim {
            return None;
        }
        let view = self.subscript(Value::Array(array.clone()), indices, span);
        Some(Value::Object(ObjectKind::Swizzled(swizzle), vec![view]))
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
