//! Loop partitioning before loop interchange: splits a body with a loop nest into a steady state and a boundary.
//!
//! ```text
//! for dy in -1..2:                          if no border is near:
//!     if 0 <= y + dy < h: …                     for dy in -1..2: …               # no test
//!                                           if not (no border is near):
//!                                               for dy in -1..2:
//!                                                   if 0 <= y + dy < h: …
//! ```
//!
//! A clamp or a test in a loop over neighbors prevents the interchange of this loop with the thread loop
//! (`loops/interchange`), although only threads near a border need it. This pass replaces such a body with two guarded
//! statements. The first is the copy that `domain/steady_state` makes, for the threads that are near no border; its
//! loops can be interchanged. The second is the original body for all other threads ([`SplitBy::ExcludedRange`](crate::backend::host::plan::plan_ir::SplitBy)).
//!
//! Legal if the guards consist of parameters and registers alone, so that they can be tested before anything is assigned.
//!
//! Pays if neither part leaves the body by a jump, which would need masks, and if loops are interchanged only after the split, or if the loops of the steady state have fewer branches than
//! those of the original body. (Vector code would execute these branches under a mask in each iteration.)

use std::collections::BTreeMap;

use crate::{
    analysis::{Rematerializable, escapes},
    backend::host::plan::{
        analysis::block_uniformity::all_own,
        plan_ir::{Guard, Piece, Range, Segment, guards::Peeler},
    },
    ir::{
        BinaryOp, Block, Const, Expr, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type, UnaryOp,
        for_each_expr_of_block, for_each_stmt,
    },
    source::Span,
};

/// Most expressions of the two conditions together, after all locals in them are replaced by their values.
const MAX_EXPRS: u32 = 500;

/// The passes that the split is for.
#[derive(Clone, Copy)]
pub(crate) struct Passes {
    /// Whether loops of a body can be interchanged with the thread loop.
    pub interchanges: fn(&Function, &Block) -> bool,
    /// Gives a segment its steady state.
    pub find_steady_state: fn(&mut Peeler<'_>, &mut Segment),
}

/// Splits a body without barriers, if that pays.
pub(crate) fn divide(function: &mut Function, body: &mut Block, passes: Passes) {
    let mut loops = false;
    for_each_stmt(body, &mut |stmt| loops |= matches!(stmt.kind, StmtKind::Loop { .. }));
    if !loops {
        return;
    }
    let tests = if (passes.interchanges)(function, body) { tests_of_turns(body) } else { usize::MAX };
    if tests > 0
        && let Some((divided, parts)) = divided(function, body, passes)
        && parts.first().is_some_and(|near_none| tests_of_turns(std::slice::from_ref(near_none)) < tests)
        && (passes.interchanges)(&divided, &parts)
    {
        (*function, *body) = (divided, parts);
    }
}

/// The number of branches directly in loops, except those that leave the loop.
fn tests_of_turns(body: &[Stmt]) -> usize {
    let mut tests = 0;
    for_each_stmt(body, &mut |stmt| {
        if let StmtKind::Loop { body, .. } = &stmt.kind {
            for inner in body {
                let leaves = matches!(&inner.kind, StmtKind::If { then, .. } if escapes(then).any());
                tests += usize::from(matches!(inner.kind, StmtKind::If { .. }) && !leaves);
            }
        }
    });
    tests
}

/// The function and the two guarded statements; `None` if the split is not possible.
fn divided(function: &Function, body: &Block, passes: Passes) -> Option<(Function, Block)> {
    let span = body.first()?.span;
    let mut function = function.clone();
    let fixed = Rematerializable::of(&function, body);
    let uniformity = all_own(&function);
    let mut peeler = Peeler { function: &mut function, uniformity: &uniformity, fixed: &fixed, live_across: &[] };
    let mut segment = Segment { body: body.clone(), ..Segment::default() };
    peeler.peel(&mut segment);
    (passes.find_steady_state)(&mut peeler, &mut segment);
    let Piece { guard: inner, body: mut inside } = segment.split.take()?.pieces.pop()?;
    if escapes(&inside).any() || escapes(&segment.body).any() {
        return None;
    }
    let all = segment.guard.take().unwrap_or_default();
    let mut conds = Conds { function: &mut function, fixed: &fixed, span, left: MAX_EXPRS };
    let (here, inner_here) = (conds.of(&all)?, conds.of(&inner)?);
    let near_none = conds.both(here, inner_here);
    let (here, inner_here) = (conds.of(&all)?, conds.of(&inner)?);
    let others = conds.push(ExprKind::Unary(UnaryOp::Not, inner_here), Type::BOOL);
    let near_some = conds.both(here, others);
    give_own_locals(&mut function, &mut inside);
    let branch = |cond: ExprId, then: Block| Stmt { kind: StmtKind::If { cond, then, otherwise: Block::new() }, span };
    let parts = vec![branch(near_none, inside), branch(near_some, segment.body)];
    Some((function, parts))
}

/// Builds the conditions of guards from parameters and registers, so that they can be tested before any assignment.
struct Conds<'a> {
    function: &'a mut Function,
    fixed: &'a Rematerializable,
    span: Span,
    /// How many more expressions may be added.
    left: u32,
}

impl Conds<'_> {
    fn push(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span: self.span })
    }

    fn both(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.push(ExprKind::Binary(BinaryOp::And, a, b), Type::BOOL)
    }

    /// The condition under which a guard lets a thread through.
    fn of(&mut self, guard: &Guard) -> Option<ExprId> {
        let mut all = self.push(ExprKind::Const(Const::Bool(true)), Type::BOOL);
        for &(cond, negated) in &guard.rows {
            let cond = self.plain(cond)?;
            let cond = if negated { self.push(ExprKind::Unary(UnaryOp::Not, cond), Type::BOOL) } else { cond };
            all = self.both(all, cond);
        }
        for &Range { value, op, bound, times, plus: _, wraps } in &guard.ranges {
            if times != 1 || wraps {
                return None;
            }
            let (value, bound) = (self.plain(value)?, self.plain(bound)?);
            let cond = self.push(ExprKind::Compare(op, value, bound), Type::BOOL);
            all = self.both(all, cond);
        }
        Some(all)
    }

    /// A copy of an expression that reads parameters and registers alone. `None` if there is none, or if it is too
    /// large.
    fn plain(&mut self, id: ExprId) -> Option<ExprId> {
        self.left = self.left.checked_sub(1)?;
        if let Some(local) = self.function.local(id)
            && !self.function.params.contains(&local)
        {
            return self.plain(self.fixed.value(local)?);
        }
        let Expr { kind, ty, span } = self.function.exprs[id].clone();
        let mut whole = true;
        let kind = kind.map_operands(&mut |operand| {
            self.plain(operand).unwrap_or_else(|| {
                whole = false;
                operand
            })
        });
        whole.then(|| self.function.exprs.push(Expr { kind, ty, span }))
    }
}

/// Gives statements new locals for those that they assign. No other statement may use their expressions.
fn give_own_locals(function: &mut Function, block: &mut Block) {
    let mut own = BTreeMap::new();
    for_each_stmt(block, &mut |stmt| {
        for local in stmt.kind.assigned() {
            own.entry(local).or_insert_with(|| {
                let copy = function.locals[local].clone();
                function.locals.push(copy)
            });
        }
    });
    let mut reads = Vec::new();
    for_each_expr_of_block(function, block, &mut |id| reads.push(id));
    for id in reads {
        if let Some(local) = function.local(id).and_then(|local| own.get(&local)) {
            function.exprs[id].kind = ExprKind::Local(*local);
        }
    }
    rename(block, &own);
}

/// Replaces the locals that statements assign.
fn rename(block: &mut Block, own: &BTreeMap<LocalId, LocalId>) {
    let new = |local: LocalId| own.get(&local).copied().unwrap_or(local);
    for stmt in block {
        match &mut stmt.kind {
            StmtKind::Assign(local, _) => *local = new(*local),
            StmtKind::Op { results, .. } | StmtKind::Call { results, .. } => {
                for result in results.iter_mut() {
                    *result = new(*result);
                }
            }
            StmtKind::If { then: first, otherwise: second, .. } | StmtKind::Loop { body: first, step: second } => {
                rename(first, own);
                rename(second, own);
            }
            StmtKind::Store { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {}
        }
    }
}
