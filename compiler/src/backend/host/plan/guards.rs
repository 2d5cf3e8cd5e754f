//! Moves guards such as `if i < n` out of the thread loop, into its bounds.
//!
//! A guard is the condition of an `If` around all that is left to do, or of an early `return`. Each part of it (they
//! are joined by "and") that compares "a value that is the same for a row of threads, plus `threadIdx.x`" with such a
//! value bounds the innermost loop; a part that is the same for the whole row is tested before the row; what remains
//! is tested for each thread. LLVM then sees a plain counted loop.
//!
//! A bound is computed in 64 bits from the value for `threadIdx.x = 0`. That supposes that adding a thread's number to
//! an index does not pass 2^63.

use weft_artifact::Scalar;

use super::{
    crossing,
    segments::Segment,
    uniform::{Fixed, Uniformity},
    walk::for_each_read,
};
use crate::ir::{
    BinaryOp, Block, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, SpecialRegister, Stmt, StmtKind,
    Type, UnaryOp,
};

/// Which threads of a row run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// Fixed locals that the other fields read, in the order in which they are to be computed.
    pub recompute: Vec<LocalId>,
    /// Conditions on the row, and whether each must be false instead of true.
    pub rows: Vec<(ExprId, bool)>,
    /// Bounds of the row.
    pub ranges: Vec<Range>,
}

/// `value op bound`, where `value` grows by one from thread to thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// The left side; `I32` or `I64`.
    pub value: ExprId,
    /// Any but `Ne`.
    pub op: CompareOp,
    /// The right side, of the same type; the same for the whole row.
    pub bound: ExprId,
}

/// What the peeling needs to know.
pub(crate) struct Peeler<'a> {
    /// The kernel; conditions that remain are added to it.
    pub function: &'a mut Function,
    /// Which locals the block shares.
    pub uniformity: &'a Uniformity,
    /// Which locals are fixed.
    pub fixed: &'a Fixed,
    /// Locals that cross: their assignments must not be skipped.
    pub crossing: &'a [LocalId],
}

/// How a value changes from thread to thread in a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Not at all.
    Same,
    /// By one.
    Step,
    /// In some other way.
    Other,
}

impl Peeler<'_> {
    /// Takes the guards off a segment's body.
    pub(crate) fn peel(&mut self, segment: &mut Segment) {
        let mut guard = Guard::default();
        let mut done = Block::new();
        let mut left = std::mem::take(&mut segment.body);
        if segment.on_return.is_empty() {
            drop_last_return(&mut left);
        }
        loop {
            let prelude = left.iter().take_while(|stmt| self.may_skip(stmt)).count();
            let rest = left.split_off(prelude);
            done.append(&mut left);
            match self.step(rest, segment.on_return.is_empty(), &mut guard) {
                Ok(inner) => left = inner,
                Err(rest) => {
                    done.extend(rest);
                    break;
                }
            }
        }
        segment.body = done;
        if guard.rows.is_empty() && guard.ranges.is_empty() {
            return;
        }
        let mut reads = Vec::new();
        let rows = guard.rows.iter().map(|&(cond, _)| cond);
        for root in rows.chain(guard.ranges.iter().flat_map(|range| [range.value, range.bound])) {
            for_each_read(self.function, root, &mut |local| reads.push(local));
        }
        let own = |local: LocalId| self.uniformity.local_varies(local);
        for local in reads {
            crossing::recompute(self.function, self.fixed, &own, local, &mut guard.recompute);
        }
        segment.guard = Some(guard);
    }

    /// A statement whose effect nobody sees who is stopped by a guard after it.
    fn may_skip(&self, stmt: &Stmt) -> bool {
        matches!(stmt.kind, StmtKind::Assign(local, _) if !self.crossing.contains(&local))
    }

    /// Takes the guard at the front off; gives what is left inside it, or everything back if there is none.
    fn step(&mut self, mut rest: Block, may_return: bool, guard: &mut Guard) -> Result<Block, Block> {
        let Some(first) = rest.first() else { return Err(rest) };
        let StmtKind::If { cond, then, otherwise } = &first.kind else { return Err(rest) };
        let around_all = otherwise.is_empty() && rest.len() == 1;
        let early_return =
            otherwise.is_empty() && may_return && matches!(then.as_slice(), [Stmt { kind: StmtKind::Return(_), .. }]);
        if !(around_all || early_return) {
            return Err(rest);
        }
        let (cond, negated, span) = (*cond, early_return, first.span);
        let mut parts = Parts { guard: Guard::default(), residual: Vec::new() };
        self.split(cond, negated, &mut parts);
        if parts.guard.rows.is_empty() && parts.guard.ranges.is_empty() {
            return Err(rest);
        }
        guard.rows.append(&mut parts.guard.rows);
        guard.ranges.append(&mut parts.guard.ranges);
        let first = rest.remove(0);
        let mut inner = match first.kind {
            StmtKind::If { then, .. } if !early_return => then,
            _ => rest,
        };
        if may_return {
            drop_last_return(&mut inner);
        }
        if parts.residual.is_empty() {
            return Ok(inner);
        }
        let cond = self.all_of(&parts.residual, span);
        Err(vec![Stmt { kind: StmtKind::If { cond, then: inner, otherwise: Block::new() }, span }])
    }

    fn all_of(&mut self, parts: &[(ExprId, bool)], span: crate::source::Span) -> ExprId {
        let exprs = &mut self.function.exprs;
        let mut all = None;
        for &(mut part, negated) in parts {
            if negated {
                part = exprs.push(Expr { kind: ExprKind::Unary(UnaryOp::Not, part), ty: Type::BOOL, span });
            }
            all = Some(match all {
                None => part,
                Some(before) => {
                    exprs.push(Expr { kind: ExprKind::Binary(BinaryOp::And, before, part), ty: Type::BOOL, span })
                }
            });
        }
        all.unwrap_or_else(|| exprs.push(Expr { kind: ExprKind::Const(Const::Bool(true)), ty: Type::BOOL, span }))
    }

    /// Sorts the parts of a condition, or of its negation.
    fn split(&self, cond: ExprId, negated: bool, parts: &mut Parts) {
        let constant = |id: ExprId, value: bool| matches!(self.function.exprs[id].kind, ExprKind::Const(Const::Bool(is)) if is == value);
        match self.function.exprs[cond].kind {
            ExprKind::Unary(UnaryOp::Not, a) => return self.split(a, !negated, parts),
            ExprKind::Binary(BinaryOp::And, a, b) if !negated => {
                self.split(a, false, parts);
                return self.split(b, false, parts);
            }
            ExprKind::Binary(BinaryOp::Or, a, b) if negated => {
                self.split(a, true, parts);
                return self.split(b, true, parts);
            }
            // `a and b`, then `a or b`.
            ExprKind::Select(a, b, no) if !negated && constant(no, false) => {
                self.split(a, false, parts);
                return self.split(b, false, parts);
            }
            ExprKind::Select(a, yes, b) if negated && constant(yes, true) => {
                self.split(a, true, parts);
                return self.split(b, true, parts);
            }
            ExprKind::Local(local) if self.uniformity.local_varies(local) => {
                if let Some(value) = self.fixed.value(local) {
                    return self.split(value, negated, parts);
                }
            }
            _ => {}
        }
        if self.form(cond) == Form::Same {
            parts.guard.rows.push((cond, negated));
        } else if let Some(range) = self.range(cond, negated) {
            parts.guard.ranges.push(range);
        } else {
            parts.residual.push((cond, negated));
        }
    }

    fn range(&self, cond: ExprId, negated: bool) -> Option<Range> {
        let ExprKind::Compare(op, a, b) = self.function.exprs[cond].kind else { return None };
        if !matches!(self.function.exprs[a].ty, Type::Scalar(Scalar::I32 | Scalar::I64)) {
            return None;
        }
        let op = if negated { inverse(op) } else { op };
        let (value, op, bound) = match (self.form(a), self.form(b)) {
            (Form::Step, Form::Same) => (a, op, b),
            (Form::Same, Form::Step) => (b, mirrored(op), a),
            _ => return None,
        };
        (op != CompareOp::Ne).then_some(Range { value, op, bound })
    }

    fn form(&self, root: ExprId) -> Form {
        let expr = &self.function.exprs[root];
        let all_same = |ids: &[ExprId]| {
            if ids.iter().all(|&id| self.form(id) == Form::Same) { Form::Same } else { Form::Other }
        };
        match &expr.kind {
            ExprKind::Const(_) | ExprKind::SharedBase(_) | ExprKind::DynamicShared => Form::Same,
            ExprKind::Local(local) if !self.uniformity.local_varies(*local) => Form::Same,
            ExprKind::Local(local) => self.fixed.value(*local).map_or(Form::Other, |value| self.form(value)),
            ExprKind::Special(SpecialRegister::ThreadIdx(0)) => Form::Step,
            ExprKind::Special(SpecialRegister::LaneId) | ExprKind::Load(_) | ExprKind::LocalBase(_) => Form::Other,
            ExprKind::Special(_) => Form::Same,
            // Steps are followed through 64-bit arithmetic only: a 32-bit index may wrap around in a row.
            ExprKind::Convert(a) if expr.ty == Type::I64 && self.function.exprs[*a].ty == Type::I32 => self.form(*a),
            ExprKind::Binary(BinaryOp::Add, a, b) if expr.ty == Type::I64 => match (self.form(*a), self.form(*b)) {
                (Form::Same, Form::Same) => Form::Same,
                (Form::Step, Form::Same) | (Form::Same, Form::Step) => Form::Step,
                _ => Form::Other,
            },
            ExprKind::Binary(BinaryOp::Sub, a, b) if expr.ty == Type::I64 => match (self.form(*a), self.form(*b)) {
                (form, Form::Same) => form,
                _ => Form::Other,
            },
            ExprKind::Unary(_, a) | ExprKind::Convert(a) => all_same(&[*a]),
            ExprKind::Binary(_, a, b)
            | ExprKind::Compare(_, a, b)
            | ExprKind::Offset { base: a, index: b, .. }
            | ExprKind::ByteOffset { base: a, bytes: b }
            | ExprKind::Wrap { index: a, extent: b } => all_same(&[*a, *b]),
            ExprKind::Select(a, b, c) => all_same(&[*a, *b, *c]),
            ExprKind::Math(_, args) => all_same(args),
        }
    }
}

struct Parts {
    guard: Guard,
    residual: Vec<(ExprId, bool)>,
}

/// A `return` with nothing after it does nothing.
fn drop_last_return(block: &mut Block) {
    while matches!(block.last(), Some(Stmt { kind: StmtKind::Return(_), .. })) {
        block.pop();
    }
}

fn inverse(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq => CompareOp::Ne,
        CompareOp::Ne => CompareOp::Eq,
        CompareOp::Lt => CompareOp::Ge,
        CompareOp::Le => CompareOp::Gt,
        CompareOp::Gt => CompareOp::Le,
        CompareOp::Ge => CompareOp::Lt,
    }
}

/// The comparison with its sides swapped.
fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq | CompareOp::Ne => op,
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
    }
}
