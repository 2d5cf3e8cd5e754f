//! Moves guards such as `if i < n` out of the thread loop, into its bounds.
//!
//! A guard is the condition of an `If` around all that is left to do, or of an early `return`. Each part of it (they
//! are joined by "and") that compares "a value that is the same for a row of threads, plus `threadIdx.x`" with such a
//! value bounds the innermost loop; a part that is the same for the whole row is tested before the row; what remains
//! is tested for each thread. LLVM then sees a plain counted loop.
//!
//! A bound is computed in 64 bits from the value for the row's first thread. Where adding a thread's number passes 2^63
//! the value wraps, and the row is run in parts in which it does not ([`Range::wraps`]).

use crate::{
    analysis::{Rematerializable, for_each_read},
    backend::host::plan::{
        analysis::{divergence::Uniformity, strides::Forms},
        plan_ir::{Guard, Parts, Segment},
        regions::context,
    },
    ir::{BinaryOp, Block, Const, Expr, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type, UnaryOp},
};

/// What the peeling needs to know.
pub(crate) struct Peeler<'a> {
    /// The kernel; conditions that remain are added to it.
    pub function: &'a mut Function,
    /// Which locals the block shares.
    pub uniformity: &'a Uniformity,
    /// Which locals are fixed.
    pub fixed: &'a Rematerializable,
    /// Locals that cross: their assignments must not be skipped.
    pub crossing: &'a [LocalId],
}

impl Peeler<'_> {
    /// Takes the guards off a segment's body.
    pub(crate) fn peel(&mut self, segment: &mut Segment) {
        let mut guard = segment.guard.take().unwrap_or_default();
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
        if !guard.is_empty() {
            self.complete(&mut guard);
            segment.guard = Some(guard);
        }
    }

    /// Takes the test for threads beside others off a segment of which it is left: `if not (i > 0 and i < n - 1): …`.
    pub(crate) fn peel_outside(&self, segment: &mut Segment) {
        let [Stmt { kind: StmtKind::If { cond, then, otherwise }, .. }] = segment.body.as_mut_slice() else { return };
        let ExprKind::Unary(UnaryOp::Not, inner) = self.function.exprs[*cond].kind else { return };
        let mut parts = Parts::default();
        let forms = Forms {
            function: self.function,
            fixed: self.fixed,
            shared: &|local| !self.uniformity.local_varies(local),
            sole: &|_| None,
            axis: 0,
        };
        forms.split(inner, false, &mut parts);
        let interval = parts.residual.is_empty() && !parts.guard.ranges.iter().any(|range| range.wraps);
        // All threads but one, in a loop that strips may take: they carry in registers, and two parts of a row do not.
        let is_one = segment.repeats && parts.guard.names_one();
        if otherwise.is_empty() && interval && !parts.guard.is_empty() && !is_one {
            segment.body = std::mem::take(then);
            self.complete(&mut parts.guard);
            segment.outside = Some(parts.guard);
        }
    }

    /// Finds the locals that a guard has to compute.
    pub(crate) fn complete(&self, guard: &mut Guard) {
        let mut reads = Vec::new();
        let rows = guard.rows.iter().map(|&(cond, _)| cond);
        for root in rows.chain(guard.ranges.iter().flat_map(|range| [range.value, range.bound])) {
            for_each_read(self.function, root, &mut |local| reads.push(local));
        }
        let own = |local: LocalId| self.uniformity.local_varies(local);
        for local in reads {
            context::recompute(self.function, self.fixed, &own, local, &mut guard.recompute);
        }
    }

    /// A statement whose effect nobody sees who is stopped by a guard after it.
    pub(crate) fn may_skip(&self, stmt: &Stmt) -> bool {
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
        let mut parts = Parts::default();
        let forms = Forms {
            function: self.function,
            fixed: self.fixed,
            shared: &|local| !self.uniformity.local_varies(local),
            sole: &|_| None,
            axis: 0,
        };
        forms.split(cond, negated, &mut parts);
        if parts.guard.is_empty() {
            return Err(rest);
        }
        guard.add(&parts.guard);
        let first = rest.remove(0);
        let mut inner = match first.kind {
            StmtKind::If { then, .. } if !early_return => then,
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => rest,
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
}

/// A `return` with nothing after it does nothing.
fn drop_last_return(block: &mut Block) {
    while matches!(block.last(), Some(Stmt { kind: StmtKind::Return(_), .. })) {
        block.pop();
    }
}
