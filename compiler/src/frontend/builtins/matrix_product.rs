//! Products of matrix tiles: `T.mma`, and `cuda.mma.wait` for products of a warpgroup in flight.
//!
//! A product in flight is an object whose items are its accumulators. Only `T.mma` and `cuda.mma.wait` take it;
//! [`in_flight`](super::super::in_flight) checks that it is used once.

use weft_artifact::{MatrixPart, MatrixProduct, MatrixTile, Scalar, SharedMatrix};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::Args,
        lowerer::FnLowerer,
        object::{MatrixObject, ObjectKind},
        ty::{Ty, shown_path},
        value::Value,
    },
    intrinsics::Intrinsic,
    ir::{ExprId, LocalId, Op, ProductWait, StmtKind as Ir, Type},
    source::Span,
};

/// The most products that `wgmma.wait_group` leaves in flight.
const MOST_PENDING: i128 = 7;

/// The layout of an operand of a tile's product, `None` if it is in registers; `None` if a type is no such operand.
fn layout_of(ty: &Ty, tile: MatrixTile, part: MatrixPart) -> Option<Option<SharedMatrix>> {
    let Ty::Object(ObjectKind::Matrix(object), _) = ty else { return None };
    match object {
        MatrixObject::Tile(_) | MatrixObject::InFlight(..) => None,
        MatrixObject::Fragment(of, other) => ((*of, *other) == (tile, part)).then_some(None),
        MatrixObject::Shared(of, other, layout) => ((*of, *other) == (tile, part)).then_some(Some(*layout)),
    }
}

impl FnLowerer<'_> {
    /// `T.mma(a, b, acc, wait=True)`.
    pub(super) fn multiply(&mut self, row: &Intrinsic, tile: MatrixTile, args: Args, span: Span) -> Value {
        let names = ["a", "b", "acc", "wait"];
        let Some([Some(a), Some(b), Some(acc), wait]) = self.named(row, names, 3, args, span) else {
            return Value::Poison;
        };
        let name = shown_path(row.path);
        let Value::Bool(waits) = wait.unwrap_or(Value::Bool(true)) else {
            let message = format!("`wait` of `{name}` must be True or False and a compile-time constant");
            return self.error(Code::NotConstant, span, message);
        };
        if !waits && !tile.is_of_warpgroup() {
            let message =
                format!("`{name}` of the tile {tile} has no `wait=False`: only a warpgroup's products stay in flight");
            let help = "leave `wait` out, or make the tile with `threads=128`";
            return self.report(Diagnostic::error(Code::NoMatchingOverload, span, message).help(help));
        }
        let types = [a.ty(), b.ty(), acc.ty()];
        if types.iter().any(Ty::is_poison) {
            return Value::Poison;
        }
        let scalar = tile.kind().accumulator();
        let operands = layout_of(&types[0], tile, MatrixPart::A).zip(layout_of(&types[1], tile, MatrixPart::B));
        let product = operands.map(|(a, b)| MatrixProduct { tile, a, b, in_flight: !waits });
        let Some((product, accumulators)) = product.zip(self.taken_accumulators(tile, &acc)) else {
            let shown: Vec<String> = types.iter().map(ToString::to_string).collect();
            let message = format!("`{name}` does not take ({})", shown.join(", "));
            let note = format!(
                "for the tile {tile}, it takes what its `a` and its `b` return, and a tuple of {} {scalar}",
                tile.values()
            );
            let mut diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message).note(note);
            if let Ty::Object(ObjectKind::Matrix(MatrixObject::InFlight(of, true)), _) = &types[2]
                && *of == tile
            {
                diagnostic = diagnostic.note("the product in flight reads its left matrix from registers");
            }
            return self.report(diagnostic);
        };
        let Some(operands) = self.operands_of_product(tile, ([a, b], accumulators), span) else { return Value::Poison };
        let words: Vec<ExprId> = match product.a {
            None if !waits => operands.iter().copied().take(tile.registers(MatrixPart::A)).collect(),
            None | Some(_) => Vec::new(),
        };
        let words: Vec<LocalId> = words
            .into_iter()
            .map(|word| {
                let word = self.b.again(word, span);
                self.b.temp(word, span)
            })
            .collect();
        let results: Vec<LocalId> = (0..tile.values()).map(|_| self.b.new_temp(Type::Scalar(scalar))).collect();
        self.stmt(Ir::Op { op: Op::Multiply(product), results: results.clone(), args: operands }, span);
        let has_words = !words.is_empty();
        let register = tile.kind().register();
        let words: Vec<Value> =
            words.into_iter().map(|word| Value::Scalar(self.b.read(word, span), register)).collect();
        let values = self.numbers(results, scalar, span);
        if waits {
            return Value::tuple(values);
        }
        let items = words.into_iter().chain(values).collect();
        Value::Object(ObjectKind::Matrix(MatrixObject::InFlight(tile, has_words)), items)
    }

    fn numbers(&mut self, locals: Vec<LocalId>, scalar: Scalar, span: Span) -> Vec<Value> {
        locals.into_iter().map(|local| Value::Scalar(self.b.read(local, span), scalar)).collect()
    }

    /// The accumulators that a product adds to: numbers, or those of a product in flight of the same tile whose left matrix is
    /// in shared memory. The registers of another one must not change until it is complete.
    fn taken_accumulators(&self, tile: MatrixTile, acc: &Value) -> Option<Vec<Value>> {
        if let Value::Object(ObjectKind::Matrix(MatrixObject::InFlight(of, false)), items) = acc {
            return (*of == tile).then(|| items.clone());
        }
        self.accumulators(tile, acc)
    }

    /// The operands of a product; `None` after an error.
    fn operands_of_product(
        &mut self,
        tile: MatrixTile,
        (factors, accumulators): ([Value; 2], Vec<Value>),
        span: Span,
    ) -> Option<Vec<ExprId>> {
        let mut operands = Vec::new();
        for value in factors {
            let Value::Object(_, items) = value else { return None };
            if let [Value::Array(rows), column] = items.as_slice() {
                operands.push(self.use_atom(rows.data, span));
                operands.push(self.number(column, Scalar::I64, span)?);
                continue;
            }
            for word in items {
                operands.push(self.number(&word, tile.kind().register(), span)?);
            }
        }
        if tile.is_of_warpgroup() {
            let warp = self.warp_of_group(span);
            operands.push(self.use_atom(warp, span));
        }
        for value in accumulators {
            operands.push(self.number(&value, tile.kind().accumulator(), span)?);
        }
        Some(operands)
    }

    /// `cuda.mma.wait(n, acc=None)`.
    pub(super) fn product_wait(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([Some(n), acc]) = self.named(row, ["n", "acc"], 1, args, span) else { return Value::Poison };
        let name = shown_path(row.path);
        let shown = if let Value::Int(known) = n { known.to_string() } else { n.ty().to_string() };
        let Value::Int(pending @ 0..=MOST_PENDING) = n else {
            let message = format!("`{name}` takes a compile-time integer from 0 to {MOST_PENDING} as `n`, not {shown}");
            return self.error(Code::NotConstant, span, message);
        };
        let pending = pending as u8;
        let Some(acc) = acc else {
            let op = Op::ProductWait(ProductWait { tile: None, left_in_registers: false, pending });
            self.stmt(Ir::Op { op, results: Vec::new(), args: Vec::new() }, span);
            return Value::NONE;
        };
        let ty = acc.ty();
        if ty.is_poison() {
            return Value::Poison;
        }
        let Value::Object(ObjectKind::Matrix(MatrixObject::InFlight(tile, words)), items) = acc else {
            let message = format!("`{name}` takes what `T.mma(…, wait=False)` returns as `acc`, not {ty}");
            let help = "leave `acc` out to wait only; a tuple of numbers is complete";
            return self.report(Diagnostic::error(Code::NoMatchingOverload, span, message).help(help));
        };
        let (register, scalar) = (tile.kind().register(), tile.kind().accumulator());
        let n_words = items.len() - tile.values();
        let mut args = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let of = if at < n_words { register } else { scalar };
            let Some(item) = self.number(item, of, span) else { return Value::Poison };
            args.push(item);
        }
        let results: Vec<LocalId> = (0..tile.values()).map(|_| self.b.new_temp(Type::Scalar(scalar))).collect();
        let op = Op::ProductWait(ProductWait { tile: Some(tile), left_in_registers: words, pending });
        self.stmt(Ir::Op { op, results: results.clone(), args }, span);
        Value::tuple(self.numbers(results, scalar, span))
    }
}
