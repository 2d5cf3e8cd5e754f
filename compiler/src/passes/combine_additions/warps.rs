//! Sums over the lanes of a warp, where all of them add to the same element.

use weft_artifact::Scalar;

use super::{ALL_LANES, Combiner, LANES, addition, element, reads_memory};
use crate::{
    analysis::{for_each_read, same},
    ir::{
        BinaryOp, Block, CompareOp, ExprId, ExprKind, Function, LocalId, Op, Shuffle, SpecialRegister, Stmt, StmtKind,
        Type,
    },
    source::Span,
};

/// The type of a mask of active lanes.
const WORD: Type = Type::Scalar(Scalar::U32);

/// An addition that waits for others of the same statements.
struct Pending {
    pointer: ExprId,
    /// The part of the index that lanes compare.
    index: ExprId,
    term: LocalId,
    span: Span,
}

/// An index without constants that are added to it.
fn varying_part(function: &Function, index: ExprId) -> ExprId {
    let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b) = function.exprs[index].kind else { return index };
    match (function.int(a), function.int(b)) {
        (_, Some(_)) => varying_part(function, a),
        (Some(_), None) => varying_part(function, b),
        (None, None) => index,
    }
}

impl Combiner<'_> {
    /// Combines the additions of a list of statements and of nested ones.
    pub(super) fn block(&mut self, block: &mut Block) {
        let mut out = Block::with_capacity(block.len());
        let mut pending: Vec<Pending> = Vec::new();
        for mut stmt in std::mem::take(block) {
            self.span = stmt.span;
            if let Some(addition) = self.delayed(&stmt, &mut out) {
                pending.push(addition);
                continue;
            }
            let waits = match &stmt.kind {
                StmtKind::Assign(local, _) => !self.reads(&pending, *local),
                StmtKind::Op { results, .. } => results.is_empty() && addition(self.function, &stmt).is_some(),
                StmtKind::Store { .. }
                | StmtKind::Call { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => false,
            };
            if !waits {
                self.flush(&mut pending, &mut out);
            }
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.block(inner);
            }
            out.push(stmt);
        }
        self.flush(&mut pending, &mut out);
        *block = out;
    }

    fn reads(&self, pending: &[Pending], local: LocalId) -> bool {
        let mut reads = false;
        for addition in pending {
            for_each_read(self.function, addition.pointer, &mut |read| reads |= read == local);
        }
        reads
    }

    /// An addition whose lanes likely add to the same element. Assigns its term.
    fn delayed(&mut self, stmt: &Stmt, out: &mut Block) -> Option<Pending> {
        let (pointer, term) = addition(self.function, stmt)?;
        let (_, index) = element(self.function, pointer)?;
        let is_read = reads_memory(self.function, pointer);
        if is_read || !self.is_only_added_to(pointer) || !self.uniform.has(self.function, pointer) {
            return None;
        }
        let local = self.temp("t", self.function.exprs[term].ty);
        out.push(self.assign(local, term));
        Some(Pending { pointer, index: varying_part(self.function, index), term: local, span: stmt.span })
    }

    /// Emits the additions that wait.
    fn flush(&mut self, pending: &mut Vec<Pending>, out: &mut Block) {
        let Some(first) = pending.first() else { return };
        self.span = first.span;
        let (mask, mut cond) = self.all_active(out);
        let mut compared: Vec<ExprId> = Vec::new();
        for addition in pending.iter() {
            if compared.iter().any(|&other| same(self.function, other, addition.index)) {
                continue;
            }
            compared.push(addition.index);
            let index = self.function.copy_expr(addition.index);
            let is_same = self.is_same(mask, index, out);
            cond = self.binary(BinaryOp::And, cond, is_same);
        }
        let mut then = Block::new();
        let mut distance = LANES / 2;
        while distance > 0 {
            for addition in pending.iter() {
                let mask = self.int(ALL_LANES, Type::I32);
                let other = self.shuffled(addition.term, mask, distance, &mut then);
                let (one, other) = (self.read(addition.term), self.read(other));
                let sum = self.binary(BinaryOp::Add, one, other);
                then.push(self.assign(addition.term, sum));
            }
            distance /= 2;
        }
        let lane = self.special(SpecialRegister::LaneId);
        let zero = self.int(0, Type::I64);
        let is_first = self.compare(CompareOp::Eq, lane, zero);
        let adds: Block = pending.iter().map(|addition| self.add(addition.pointer, addition.term)).collect();
        then.push(self.branch(is_first, adds, Block::new()));
        let otherwise = pending.iter().map(|addition| self.add(addition.pointer, addition.term)).collect();
        out.push(self.branch(cond, then, otherwise));
        pending.clear();
    }

    /// Emits a test whether all lanes are active; returns the local with their mask, and the condition.
    pub(super) fn all_active(&mut self, out: &mut Block) -> (LocalId, ExprId) {
        let (active, mask) = (self.temp("active", WORD), self.temp("mask", Type::I32));
        out.push(self.op(Op::ActiveMask, vec![active], Vec::new()));
        let value = self.read(active);
        let value = self.expr(ExprKind::Convert(value), Type::I32);
        out.push(self.assign(mask, value));
        let (value, all) = (self.read(mask), self.int(ALL_LANES, Type::I32));
        (mask, self.compare(CompareOp::Eq, value, all))
    }

    /// Emits a test whether a value is the same in the lanes of a mask.
    pub(super) fn is_same(&mut self, mask: LocalId, value: ExprId, out: &mut Block) -> ExprId {
        let (lanes, is_same) = (self.temp("lanes", Type::I32), self.temp("same", Type::BOOL));
        let mask = self.read(mask);
        out.push(self.op(Op::MatchAll, vec![lanes, is_same], vec![mask, value]));
        self.read(is_same)
    }

    /// Emits a shuffle down; returns the local with the other lane's value.
    pub(super) fn shuffled(&mut self, value: LocalId, mask: ExprId, distance: i128, out: &mut Block) -> LocalId {
        self.exchanged(value, mask, (Shuffle::Down, distance, LANES), out)
    }

    /// Emits a shuffle of a kind, distance or lane, and width; returns the local with the other lane's value.
    pub(super) fn exchanged(
        &mut self,
        value: LocalId,
        mask: ExprId,
        (shuffle, by, width): (Shuffle, i128, i128),
        out: &mut Block,
    ) -> LocalId {
        let to = self.temp("other", self.function.locals[value].ty);
        let (value, by, width) = (self.read(value), self.int(by, Type::I32), self.int(width, Type::I32));
        out.push(self.op(Op::Shuffle(shuffle), vec![to], vec![mask, value, by, width]));
        to
    }
}
