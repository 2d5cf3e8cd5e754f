//! Loops near no border. Where a loop looks at neighbors, a clamp or a test keeps a row of threads from taking it
//! together ([`crate::backend::host::plan::loops::interchange`]): what it touches is next to each other for all threads but those beside a border.
//!
//! Before loops are looked at, such a body becomes two statements. One is the copy of [`crate::backend::host::plan::domain::interior`] behind a
//! guard that lets those threads through that are near no border, so that its loops are taken together. The other is
//! the body itself for the threads that are left: those on either side of these ([`crate::backend::host::plan::plan_ir::Segment::outside`]).

use std::collections::BTreeMap;

use crate::{
    analysis::{Rematerializable, escapes},
    backend::host::plan::{
        all_own,
        domain::{guards::Peeler, interior},
        loops::interchange,
        plan_ir::{Guard, Interior, Range, Segment},
    },
    ir::{
        BinaryOp, Block, Const, Expr, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type, UnaryOp,
        for_each_expr_of_block, for_each_stmt,
    },
    source::Span,
};

/// Expressions of the two conditions together, in which no name stands for anything any more.
const MOST_EXPRS: u32 = 500;

/// Divides a body without a barrier, if threads take loops of it together then, and none as it is, or such that test each turn whether it
/// is theirs: a vector has a mask for that.
pub(crate) fn divide(function: &mut Function, body: &mut Block) {
    let mut loops = false;
    for_each_stmt(body, &mut |stmt| loops |= matches!(stmt.kind, StmtKind::Loop { .. }));
    if !loops {
        return;
    }
    let marks = |function: &Function, body: &Block| {
        interchange::mark(&mut function.clone(), &mut body.clone(), interchange::Kinds::default()).any
    };
    let tests = if marks(function, body) { tests_of_turns(body) } else { usize::MAX };
    if tests > 0
        && let Some((divided, parts)) = divided(function, body)
        && parts.first().is_some_and(|near_none| tests_of_turns(std::slice::from_ref(near_none)) < tests)
        && marks(&divided, &parts)
    {
        (*function, *body) = (divided, parts);
    }
}

/// How many branches stand in loops, without those that leave these.
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

fn divided(function: &Function, body: &Block) -> Option<(Function, Block)> {
    let span = body.first()?.span;
    let mut function = function.clone();
    let fixed = Rematerializable::of(&function, body);
    let uniformity = all_own(&function);
    let mut peeler = Peeler { function: &mut function, uniformity: &uniformity, fixed: &fixed, crossing: &[] };
    let mut segment = Segment { body: body.clone(), ..Segment::default() };
    peeler.peel(&mut segment);
    interior::find(&mut peeler, &mut segment);
    let Interior { guard: inner, body: mut inside } = segment.interior.take()?;
    if escapes(&inside).any() || escapes(&segment.body).any() {
        return None;
    }
    let all = segment.guard.take().unwrap_or_default();
    let mut conds = Conds { function: &mut function, fixed: &fixed, span, left: MOST_EXPRS };
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

/// Makes conditions of guards that may be asked before anything is assigned.
struct Conds<'a> {
    function: &'a mut Function,
    fixed: &'a Rematerializable,
    span: Span,
    /// How many expressions there may still be.
    left: u32,
}

impl Conds<'_> {
    fn push(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span: self.span })
    }

    fn both(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.push(ExprKind::Binary(BinaryOp::And, a, b), Type::BOOL)
    }

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

    /// An expression of parameters and registers alone.
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

/// Gives statements, whose expressions are theirs alone, locals of their own for what they assign.
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

/// Has statements assign other locals.
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
