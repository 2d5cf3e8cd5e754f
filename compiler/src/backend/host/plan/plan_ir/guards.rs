//! Moves guards such as `if i < n` out of the thread loop and into its bounds.
//!
//! ```text
//! for x in 0..row:                             if 0 <= y:
//!     i = first + x                                for x in max(0, 3 - first)..min(row, n - first):
//!     if i >= 3 and i < n and 0 <= y:                  body
//!         body
//! ```
//!
//! A guard is the condition of an `If` that contains all remaining statements, or of an early `return`. Each operand of
//! the conjunction is handled by itself:
//!
//! - A comparison of a uniform value with "a uniform value plus `threadIdx.x`" becomes a bound of the thread loop.
//! - A condition that is uniform along the row is tested once, before the thread loop.
//! - Every other operand remains a test of each thread.
//!
//! LLVM then sees a plain counted loop.
//!
//! A bound is computed in 64 bits from the value of the row's first thread. If `value + threadIdx.x` may exceed 2^63 -
//! 1, it wraps; the thread loop is then split so that no wrap occurs within a part ([`Range::wraps`]).

use crate::{
    analysis::{Rematerializable, for_each_read},
    backend::host::plan::{
        analysis::{divergence::Uniformity, guarded, strides::Forms, structure::conjuncts},
        plan_ir::{Guard, Piece, Segment, Split, SplitBy},
    },
    ir::{BinaryOp, Block, Const, Expr, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type, UnaryOp},
    source::Span,
};

/// Moves guards into loop bounds; the analyses that this needs.
pub(crate) struct Peeler<'a> {
    /// The kernel. Conditions that remain are added to it.
    pub function: &'a mut Function,
    /// Which locals are uniform in the block.
    pub uniformity: &'a Uniformity,
    /// Which locals are rematerializable.
    pub fixed: &'a Rematerializable,
    /// Locals that are live across a barrier. A guard must not skip their assignments.
    pub live_across: &'a [LocalId],
}

/// A branch without a second arm at the end of a segment.
pub(crate) struct LastBranch<'a> {
    /// The statements before it, which may be skipped for threads that do not take it.
    pub before: &'a [Stmt],
    /// The conditions whose conjunction it tests.
    pub parts: Vec<ExprId>,
    /// Its statements.
    pub then: &'a Block,
    pub span: Span,
}

impl Peeler<'_> {
    /// Moves the guards of a segment's body into the segment's guard.
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

    /// Handles a segment that consists of a negated interval test, such as `if not (i > 0 and i < n - 1): …`: the
    /// interval becomes [`SplitBy::ExcludedRange`], the range of threads that do not run the body.
    pub(crate) fn peel_excluded_range(&self, segment: &mut Segment) {
        let [Stmt { kind: StmtKind::If { cond, then, otherwise }, .. }] = segment.body.as_mut_slice() else { return };
        let ExprKind::Unary(UnaryOp::Not, inner) = self.function.exprs[*cond].kind else { return };
        let mut parts = self.with_forms(|forms| forms.parts(inner, false));
        let interval = parts.residual.is_empty() && !parts.guard.ranges.iter().any(|range| range.wraps);
        // If the interval is one thread, a repeated segment keeps its test. Strip-mining keeps values in registers for
        // such a segment, but not for one whose row is split in two ranges.
        let is_one = segment.repeats && parts.guard.names_one();
        if otherwise.is_empty() && interval && !parts.guard.is_empty() && !is_one {
            segment.body = std::mem::take(then);
            self.complete(&mut parts.guard);
            let nothing = Piece { guard: parts.guard, body: Block::new() };
            segment.split = Some(Split::by_range(SplitBy::ExcludedRange, nothing));
        }
    }

    /// Finds the rematerializable locals that a guard reads, and thus has to compute.
    pub(crate) fn complete(&self, guard: &mut Guard) {
        let mut reads = Vec::new();
        let rows = guard.rows.iter().map(|&(cond, _)| cond);
        for root in rows.chain(guard.ranges.iter().flat_map(|range| [range.value, range.bound])) {
            for_each_read(self.function, root, &mut |local| reads.push(local));
        }
        let own = |local: LocalId| self.uniformity.local_varies(local);
        for local in reads {
            guarded::recompute(self.function, self.fixed, &own, local, &mut guard.recompute);
        }
    }

    /// A copy of a segment whose last statement is a branch, with `parts` as the only conditions of this branch that are
    /// still tested. `None` if a value of its guard may wrap.
    pub(crate) fn without(&mut self, segment: &Segment, parts: Vec<ExprId>) -> Option<Piece> {
        let (last, before) = segment.body.split_last()?;
        let StmtKind::If { then, .. } = &last.kind else { return None };
        let span = last.span;
        let mut inner: Block = self.function.copy_stmts(then);
        for part in parts.into_iter().rev() {
            let cond = self.function.copy_expr(part);
            inner = vec![Stmt { kind: StmtKind::If { cond, then: inner, otherwise: Block::new() }, span }];
        }
        let mut body: Block = self.function.copy_stmts(before);
        body.append(&mut inner);
        let mut part = Segment { body, on_return: segment.on_return.clone(), ..Segment::default() };
        self.peel(&mut part);
        let guard = part.guard.unwrap_or_default();
        let exact = !guard.ranges.iter().any(|range| range.wraps);
        exact.then_some(Piece { guard, body: part.body })
    }

    /// The branch at the end of a segment, if it contains everything that the segment has an effect with.
    pub(crate) fn last_branch<'s>(&self, segment: &'s Segment) -> Option<LastBranch<'s>> {
        let (last, before) = segment.body.split_last()?;
        let StmtKind::If { cond, then, otherwise } = &last.kind else { return None };
        if !otherwise.is_empty() || !before.iter().all(|stmt| self.may_skip(stmt)) {
            return None;
        }
        let mut parts = Vec::new();
        conjuncts(self.function, *cond, &mut parts);
        Some(LastBranch { before, parts, then, span: last.span })
    }

    /// Asks how values change along a row of the block, as far as this is known at the start of a segment.
    pub(crate) fn with_forms<T>(&self, ask: impl FnOnce(&Forms<'_>) -> T) -> T {
        let shared = |local: LocalId| !self.uniformity.local_varies(local);
        ask(&Forms { function: self.function, fixed: self.fixed, shared: &shared, sole: &|_| None, axis: 0 })
    }

    /// `true` if a statement may be skipped for threads that a later guard excludes: it only assigns a local that is
    /// not live across a barrier.
    pub(crate) fn may_skip(&self, stmt: &Stmt) -> bool {
        matches!(stmt.kind, StmtKind::Assign(local, _) if legal!("guards.not-live", !self.live_across.contains(&local)))
    }

    /// Moves the guard of the first statement into `guard`. Returns the statements that it guards, or all statements as
    /// `Err` if the first statement is no guard.
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
        let parts = self.with_forms(|forms| forms.parts(cond, negated));
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

    /// The conjunction of conditions, each of which may be negated.
    fn all_of(&mut self, parts: &[(ExprId, bool)], span: Span) -> ExprId {
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

/// Removes a `return` at the end of a block: it has no effect.
fn drop_last_return(block: &mut Block) {
    while matches!(block.last(), Some(Stmt { kind: StmtKind::Return(_), .. })) {
        block.pop();
    }
}
