//! `T.store(array, i, j, acc)`: stores the accumulators of a matrix tile.
//!
//! Two adjacent accumulators are adjacent in a row. On a GPU, the code tests whether rows are aligned to two elements, and then
//! stores two as one integer. All lanes pass the same position, so the branch is uniform.

use weft_artifact::{Layout, MatrixTile, Number, Scalar};

use crate::{
    diagnostic::Code,
    frontend::{
        expr::Index,
        lowerer::FnLowerer,
        swizzle::Swizzle,
        ty::shown_path,
        value::{ArrayValue, Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::{Align, BinaryOp, CompareOp, ExprId, LocalId, MathFn, Space, StmtKind as Ir, Type},
    source::Span,
};

impl FnLowerer<'_> {
    /// `T.store(array, i, j, acc)`.
    pub(super) fn matrix_store(
        &mut self,
        row: &Intrinsic,
        tile: MatrixTile,
        [array, i, j, acc]: [Value; 4],
        span: Span,
    ) -> Value {
        let Some(accumulators) = self.accumulators(tile, &acc) else {
            if !acc.ty().is_poison() {
                let scalar = tile.kind().accumulator();
                let message = format!(
                    "`{}` takes a tuple of {} {scalar} for the tile {tile}, not {}",
                    shown_path(row.path),
                    tile.values(),
                    acc.ty()
                );
                self.error(Code::NoMatchingOverload, span, message);
            }
            return Value::Poison;
        };
        let accumulators: Vec<Value> = accumulators.into_iter().map(|value| self.settle(value, span)).collect();
        let stored = array.clone();
        let Some((view, swizzle, [i, j])) = self.matrix_place(row, (array, None), [i, j], span) else {
            return Value::Poison;
        };
        let [in_row, group] = self.place_of_values(tile, span);
        let from = [self.plus(i, group, 1, span), self.plus(j, in_row, 2, span)];
        let view = (&view, swizzle);
        let Some((scalar, aligned)) = self.rows_of_pairs(view, from, span) else {
            self.store_each(&stored, tile, from, accumulators, span);
            return Value::NONE;
        };
        let mut values: Vec<LocalId> = Vec::with_capacity(accumulators.len());
        for value in &accumulators {
            let Some(value) = self.number(value, scalar, span) else { return Value::Poison };
            values.push(self.b.temp(value, span));
        }
        self.b.open();
        self.store_pairs(view, tile, from, (&values, scalar), span);
        let then = self.b.close();
        self.b.open();
        let numbers = values.iter().map(|&value| Value::Scalar(self.b.read(value, span), scalar)).collect();
        self.store_each(&stored, tile, from, numbers, span);
        let otherwise = self.b.close();
        self.stmt(Ir::If { cond: aligned, then, otherwise }, span);
        Value::NONE
    }

    /// Stores two accumulators at a time.
    fn store_pairs(
        &mut self,
        view: (&ArrayValue, Option<Swizzle>),
        tile: MatrixTile,
        from: [Atom; 2],
        (values, scalar): (&[LocalId], Scalar),
        span: Span,
    ) {
        let (half, whole) =
            if scalar.size_bytes() == 2 { (Scalar::U16, Scalar::U32) } else { (Scalar::U32, Scalar::U64) };
        for (number, pair) in values.chunks(2).enumerate() {
            let (row, column) = tile.value_at(2 * number);
            let offset = [row as i64, column as i64];
            let Some(pointer) = self.matrix_element(view, from, offset, span) else { return };
            let pointer = self.b.convert(pointer, Type::Ptr(whole, view.0.ty.space), span);
            let mut joined: Option<ExprId> = None;
            for &value in pair.iter().rev() {
                let value = self.b.read(value, span);
                let bits = if scalar.is_float() {
                    self.b.math(MathFn::Bits, vec![value], Type::Scalar(half), span)
                } else {
                    self.b.convert(value, Type::Scalar(half), span)
                };
                let bits = self.b.convert(bits, Type::Scalar(whole), span);
                joined = Some(match joined {
                    None => bits,
                    Some(upper) => {
                        let by = self.b.int(whole, i128::from(8 * scalar.size_bytes()), span);
                        let upper = self.b.binary(BinaryOp::Shl, upper, by, span);
                        self.b.binary(BinaryOp::Or, upper, bits, span)
                    }
                });
            }
            if let Some(value) = joined {
                self.stmt(Ir::Store { pointer, value, align: Align::Natural }, span);
            }
        }
    }

    /// Stores each accumulator.
    fn store_each(&mut self, array: &Value, tile: MatrixTile, from: [Atom; 2], values: Vec<Value>, span: Span) {
        for (number, value) in values.into_iter().enumerate() {
            let indices = self.place_of(tile, from, number, span);
            self.store_subscript(array.clone(), &indices, value, span);
        }
    }

    /// The indices of an accumulator.
    fn place_of(&mut self, tile: MatrixTile, from: [Atom; 2], number: usize, span: Span) -> Vec<Index> {
        let (row, column) = tile.value_at(number);
        let indices = from.into_iter().zip([row, column]).map(|(from, offset)| {
            let index = self.at_offset(from, offset as i64, span);
            Index::At { expr: index, wraps: false, known: None }
        });
        indices.collect()
    }

    /// The type of the elements of an array whose stores can be joined, and whether its rows are aligned to two elements;
    /// `None` for other arrays. Swizzled arrays keep elements together that have 16 bytes.
    fn rows_of_pairs(
        &mut self,
        (array, swizzle): (&ArrayValue, Option<Swizzle>),
        from: [Atom; 2],
        span: Span,
    ) -> Option<(Scalar, ExprId)> {
        let ty = array.ty;
        let scalar = ty.dtype.number().and_then(Number::real)?;
        let fits = ty.layout == Layout::C && ty.space != Space::Local && matches!(scalar.size_bytes(), 2 | 4);
        if !self.cx.ptx || ty.packed || ty.readonly || self.reports().bounds || !fits {
            return None;
        }
        let size = 2 * scalar.size_bytes() as i64;
        let word = Type::Scalar(Scalar::U64);
        let first = self.matrix_element((array, swizzle), from, [0, 0], span)?;
        let mut bits = self.b.convert(first, word, span);
        match self.stride(array, 0, span) {
            Atom::Int(known) if known % size != 0 => return None,
            Atom::Int(_) => {}
            stride @ Atom::Local(_) => {
                let stride = self.use_atom(stride, span);
                let stride = self.b.convert(stride, word, span);
                bits = self.b.binary(BinaryOp::Or, bits, stride, span);
            }
        }
        let mask = self.b.int(Scalar::U64, i128::from(size - 1), span);
        let rest = self.b.binary(BinaryOp::And, bits, mask, span);
        let zero = self.b.int(Scalar::U64, 0, span);
        Some((scalar, self.b.compare(CompareOp::Eq, rest, zero, span)))
    }
}
