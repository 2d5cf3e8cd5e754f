//! The reverse of shuffles: a lane's adjoint goes to the lane that the value came from.

use super::Emitter;
use crate::{
    autodiff::tape::Exchange,
    ir::{
        BinaryOp, Block, CompareOp, Const, ExprId, ExprKind, LocalId, Op, Shuffle, SpecialRegister, Stmt, StmtKind,
        Type,
    },
};

impl Emitter<'_> {
    /// The opposite shuffle of the adjoint. Without a lane to get a value from, a lane of a shuffle up or down keeps its
    /// own value, and so its adjoint.
    pub(super) fn reverse_exchange(&mut self, exchange: &Exchange) {
        let Some(adjoint) = self.take(exchange.to) else { return };
        let Some(value) = self.tape.function.local(exchange.value).filter(|&value| self.receives(value)) else {
            return;
        };
        if matches!(exchange.shuffle, Shuffle::Index) {
            return self.reverse_from_any_lane(exchange, value, adjoint);
        }
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

    /// Each lane adds the adjoints of the lanes that have its value, one lane after the other.
    fn reverse_from_any_lane(&mut self, exchange: &Exchange, value: LocalId, adjoint: LocalId) {
        let span = exchange.span;
        let ty = self.function.locals[adjoint].ty;
        let int = |emitter: &mut Self, value| emitter.expr(ExprKind::Const(Const::Int(value)), Type::I32, span);
        let [mask, _, by, width] = exchange.operands().map(|operand| self.function.copy_expr(operand));
        let mask = self.named("mask", mask, exchange);
        let width = self.named("width", width, exchange);
        let lane = self.expr(ExprKind::Special(SpecialRegister::LaneId), Type::I32, span);
        let lane = self.named("lane", lane, exchange);
        // `lane & -width | by & (width - 1)`
        let (lanes, zero) = (self.read(width, span), int(self, 0));
        let segment = self.binary(BinaryOp::Sub, zero, lanes, span);
        let own = self.read(lane, span);
        let first = self.binary(BinaryOp::And, own, segment, span);
        let (lanes, one) = (self.read(width, span), int(self, 1));
        let last = self.binary(BinaryOp::Sub, lanes, one, span);
        let by = self.binary(BinaryOp::And, by, last, span);
        let source = self.binary(BinaryOp::Or, first, by, span);
        let source = self.named("source", source, exchange);
        // The last warp of a block may have fewer lanes.
        let (thread, threads) = (self.number_of_thread(), self.number_of_threads());
        let (threads, thread) = (self.read(threads, span), self.read(thread, span));
        let rest = self.binary(BinaryOp::Sub, threads, thread, span);
        let own = self.read(lane, span);
        let own = self.expr(ExprKind::Convert(own), Type::I64, span);
        let present = self.binary(BinaryOp::Add, rest, own, span);
        let present = self.assigned_to_new("lanes", present);
        let (sum, other) = (self.temp("sum", ty), self.temp("other", Type::I32));
        let (start, zero) = (self.zero(ty, span), int(self, 0));
        self.push(StmtKind::Assign(sum, start), span);
        self.push(StmtKind::Assign(other, zero), span);
        self.open();
        let (now, end) = (self.read(other, span), int(self, 32));
        let ends = self.expr(ExprKind::Compare(CompareOp::Ge, now, end), Type::BOOL, span);
        let then = vec![Stmt { kind: StmtKind::Break, span }];
        self.push(StmtKind::If { cond: ends, then, otherwise: Block::new() }, span);
        let (bits, now) = (self.read(mask, span), self.read(other, span));
        let bit = self.binary(BinaryOp::Shr, bits, now, span);
        let one = int(self, 1);
        let bit = self.binary(BinaryOp::And, bit, one, span);
        let zero = int(self, 0);
        let named = self.expr(ExprKind::Compare(CompareOp::Ne, bit, zero), Type::BOOL, span);
        let now = self.read(other, span);
        let now = self.expr(ExprKind::Convert(now), Type::I64, span);
        let lanes = self.read(present, span);
        let exists = self.expr(ExprKind::Compare(CompareOp::Lt, now, lanes), Type::BOOL, span);
        let takes = self.binary(BinaryOp::And, named, exists, span);
        let takes = self.assigned_as("takes", takes, Type::BOOL);
        let [given, from] = [(adjoint, ty), (source, Type::I32)].map(|(local, ty)| {
            let result = self.temp("g", ty);
            let cond = self.read(takes, span);
            let (now, own) = (self.read(other, span), self.read(lane, span));
            let from = self.expr(ExprKind::Select(cond, now, own), Type::I32, span);
            let args = vec![self.read(mask, span), self.read(local, span), from, int(self, 32)];
            self.push(StmtKind::Op { op: Op::Shuffle(Shuffle::Index), results: vec![result], args }, span);
            result
        });
        let (from, own) = (self.read(from, span), self.read(lane, span));
        let is_own = self.expr(ExprKind::Compare(CompareOp::Eq, from, own), Type::BOOL, span);
        let takes = self.read(takes, span);
        let adds = self.binary(BinaryOp::And, takes, is_own, span);
        let (term, zero) = (self.read(given, span), self.zero(ty, span));
        let term = self.expr(ExprKind::Select(adds, term, zero), ty, span);
        let before = self.read(sum, span);
        let after = self.binary(BinaryOp::Add, before, term, span);
        self.push(StmtKind::Assign(sum, after), span);
        let body = self.close();
        let (now, one) = (self.read(other, span), int(self, 1));
        let next = self.binary(BinaryOp::Add, now, one, span);
        let step = vec![Stmt { kind: StmtKind::Assign(other, next), span }];
        self.push(StmtKind::Loop { body, step }, span);
        let term = self.read(sum, span);
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

    fn named(&mut self, name: &str, value: ExprId, exchange: &Exchange) -> LocalId {
        let local = self.temp(name, Type::I32);
        self.push(StmtKind::Assign(local, value), exchange.span);
        local
    }

    fn assigned_as(&mut self, name: &str, value: ExprId, ty: Type) -> LocalId {
        let (local, span) = (self.temp(name, ty), self.function.exprs[value].span);
        self.push(StmtKind::Assign(local, value), span);
        local
    }
}

fn opposite(shuffle: Shuffle) -> Shuffle {
    match shuffle {
        Shuffle::Up => Shuffle::Down,
        Shuffle::Down => Shuffle::Up,
        Shuffle::Xor | Shuffle::Index => shuffle,
    }
}
