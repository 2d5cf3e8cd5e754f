//! The reverse of shuffles: a lane's adjoint goes to the lane that the value came from.

use super::Emitter;
use crate::{
    autodiff::tape::Exchange,
    ir::{BinaryOp, CompareOp, ExprId, ExprKind, LocalId, Op, Shuffle, SpecialRegister, StmtKind, Type},
};

impl Emitter<'_> {
    /// The opposite shuffle of the adjoint. Without a lane to get a value from, a lane keeps its own value, and so its
    /// adjoint.
    pub(super) fn reverse_exchange(&mut self, exchange: &Exchange) {
        let Some(adjoint) = self.take(exchange.to) else { return };
        let Some(value) = self.tape.function.local(exchange.value).filter(|&value| self.receives(value)) else {
            return;
        };
        let (opposite, span) = (opposite(exchange.shuffle), exchange.span);
        let ty = self.function.locals[adjoint].ty;
        let given = self.temp("g", ty);
        let term = self.read(adjoint, span);
        let [mask, _, by, width] = exchange.operands().map(|operand| self.function.copy_expr(operand));
        let args = vec![mask, term, by, width];
        self.push(StmtKind::Op { op: Op::Shuffle(opposite), results: vec![given], args }, span);
        let gives = self.has_partner(exchange, opposite);
        let (term, zero) = (self.read(given, span), self.zero(ty, span));
        let term = self.expr(ExprKind::Select(gives, term, zero), ty, span);
        let gets = self.has_partner(exchange, exchange.shuffle);
        let (own, zero) = (self.read(adjoint, span), self.zero(ty, span));
        let kept = self.expr(ExprKind::Select(gets, zero, own), ty, span);
        let term = self.binary(BinaryOp::Add, term, kept, span);
        self.contribute(value, term, span);
    }

    /// Whether a lane gets the value of another lane of its segment: one that takes part, and exists in a last warp with
    /// fewer lanes.
    fn has_partner(&mut self, exchange: &Exchange, shuffle: Shuffle) -> ExprId {
        let span = exchange.span;
        let [width, by] = [exchange.width, exchange.by].map(|operand| {
            let operand = self.function.copy_expr(operand);
            self.expr(ExprKind::Convert(operand), Type::I64, span)
        });
        let width = self.assigned_to_new("width", width);
        // The distance is modulo 32.
        let most = self.int(31, span);
        let by = self.binary(BinaryOp::And, by, most, span);
        let by = self.assigned_to_new("by", by);
        let (lane, lanes, one) = (self.special(SpecialRegister::LaneId), self.read(width, span), self.int(1, span));
        let last = self.binary(BinaryOp::Sub, lanes, one, span);
        let in_segment = self.binary(BinaryOp::And, lane, last, span);
        let (distance, lanes) = (self.read(by, span), self.read(width, span));
        let (op, compare, [from, to]) = match shuffle {
            Shuffle::Up => (BinaryOp::Sub, CompareOp::Ge, [in_segment, distance]),
            Shuffle::Down | Shuffle::Index => {
                (BinaryOp::Add, CompareOp::Lt, [self.binary(BinaryOp::Add, in_segment, distance, span), lanes])
            }
            Shuffle::Xor => (BinaryOp::Xor, CompareOp::Lt, [distance, lanes]),
        };
        let in_segment = self.expr(ExprKind::Compare(compare, from, to), Type::BOOL, span);
        let (lane, distance) = (self.special(SpecialRegister::LaneId), self.read(by, span));
        let partner = self.binary(op, lane, distance, span);
        let partner = self.assigned_to_new("partner", partner);
        let takes_part = self.takes_part(exchange, partner);
        self.binary(BinaryOp::And, in_segment, takes_part, span)
    }

    /// Whether a lane of the warp is in the mask of a shuffle, and a thread of the block.
    fn takes_part(&mut self, exchange: &Exchange, lane: LocalId) -> ExprId {
        let span = exchange.span;
        let (thread, threads) = (self.number_of_thread(), self.number_of_threads());
        let (thread, own) = (self.read(thread, span), self.special(SpecialRegister::LaneId));
        let first = self.binary(BinaryOp::Sub, thread, own, span);
        let (other, threads) = (self.read(lane, span), self.read(threads, span));
        let number = self.binary(BinaryOp::Add, first, other, span);
        let exists = self.expr(ExprKind::Compare(CompareOp::Lt, number, threads), Type::BOOL, span);
        if self.function.int(exchange.mask) == Some(-1) {
            return exists;
        }
        let mask = self.function.copy_expr(exchange.mask);
        let mask = self.expr(ExprKind::Convert(mask), Type::I64, span);
        // A segment may have no such lane: then the number is no valid distance.
        let (lane, most) = (self.read(lane, span), self.int(31, span));
        let by = self.binary(BinaryOp::And, lane, most, span);
        let shifted = self.binary(BinaryOp::Shr, mask, by, span);
        let one = self.int(1, span);
        let bit = self.binary(BinaryOp::And, shifted, one, span);
        let zero = self.int(0, span);
        let in_mask = self.expr(ExprKind::Compare(CompareOp::Ne, bit, zero), Type::BOOL, span);
        self.binary(BinaryOp::And, exists, in_mask, span)
    }
}

fn opposite(shuffle: Shuffle) -> Shuffle {
    match shuffle {
        Shuffle::Up => Shuffle::Down,
        Shuffle::Down => Shuffle::Up,
        Shuffle::Xor | Shuffle::Index => shuffle,
    }
}
