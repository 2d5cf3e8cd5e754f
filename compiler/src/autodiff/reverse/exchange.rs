//! The reverse of shuffles: a lane's adjoint goes to the lane that the value came from.

use super::Emitter;
use crate::{
    autodiff::tape::Exchange,
    ir::{BinaryOp, CompareOp, Const, ExprId, ExprKind, LocalId, Op, Shuffle, SpecialRegister, StmtKind, Type},
};

impl Emitter<'_> {
    /// The opposite shuffle of the adjoint. Without a lane to get a value from, a lane of a shuffle up or down keeps its
    /// own value, and so its adjoint.
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
        let mut term = self.read(given, span);
        if !matches!(exchange.shuffle, Shuffle::Xor) {
            let gives = self.has_partner(exchange, opposite);
            let zero = self.zero(ty, span);
            term = self.expr(ExprKind::Select(gives, term, zero), ty, span);
            let gets = self.has_partner(exchange, exchange.shuffle);
            let (own, zero) = (self.read(adjoint, span), self.zero(ty, span));
            let kept = self.expr(ExprKind::Select(gets, zero, own), ty, span);
            term = self.binary(BinaryOp::Add, term, kept, span);
        }
        self.contribute(value, term, span);
    }

    /// Whether a lane gets the value of another lane of its segment.
    fn has_partner(&mut self, exchange: &Exchange, shuffle: Shuffle) -> ExprId {
        let span = exchange.span;
        let lane = self.expr(ExprKind::Special(SpecialRegister::LaneId), Type::I32, span);
        let [width, by] = [exchange.width, exchange.by].map(|operand| self.function.copy_expr(operand));
        let width = self.named("width", width, exchange);
        let one = self.expr(ExprKind::Const(Const::Int(1)), Type::I32, span);
        let lanes = self.read(width, span);
        let last = self.binary(BinaryOp::Sub, lanes, one, span);
        let in_segment = self.binary(BinaryOp::And, lane, last, span);
        // The distance is modulo 32.
        let most = self.expr(ExprKind::Const(Const::Int(31)), Type::I32, span);
        let by = self.binary(BinaryOp::And, by, most, span);
        match shuffle {
            Shuffle::Up => self.expr(ExprKind::Compare(CompareOp::Ge, in_segment, by), Type::BOOL, span),
            Shuffle::Down | Shuffle::Xor | Shuffle::Index => {
                let other = self.binary(BinaryOp::Add, in_segment, by, span);
                let lanes = self.read(width, span);
                self.expr(ExprKind::Compare(CompareOp::Lt, other, lanes), Type::BOOL, span)
            }
        }
    }

    fn named(&mut self, name: &str, value: ExprId, exchange: &Exchange) -> LocalId {
        let local = self.temp(name, Type::I32);
        self.push(StmtKind::Assign(local, value), exchange.span);
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
