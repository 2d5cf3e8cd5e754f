//! Exit-value sinking: computes a flag once after a loop, in place of assigning it in each iteration. It runs for
//! kernels with barriers.
//!
//! ```text
//! $computed = False            $any = False
//! loop {                       loop {
//!     $computed = $c($i)           $any = True
//!     …                            $last = $i
//! }                                …
//! if $computed { … }           }
//!                              $computed = $any & $c($last)
//!                              if $computed { … }
//! ```
//!
//! Legal if the flag is `False` before the loop, the loop does not read it, and every iteration that executes its first
//! assignment executes its last one. Its value must read only locals that the loop leaves unchanged, and integers that
//! the loop computes from constants, parameters, registers of the block and other such locals. It must contain a
//! comparison and no load.
//!
//! Profitable because, in a loop with barriers, the flag has a context array to which each iteration stores, while the
//! integers that it is computed from are mostly uniform.

use weft_artifact::Scalar;

use crate::{
    analysis::{escapes, for_each_mention},
    ir::{
        Arith, BinaryOp, Block, Class, Const, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId, LocalKind, Stmt,
        StmtKind, Type, for_each_expr, for_each_stmt,
    },
    source::Span,
};

/// Sinks the flags that the loops of a list assign. Returns whether there were any.
pub(crate) fn sink(function: &mut Function, list: &mut Block) -> bool {
    let (mut at, mut sunk) = (0, false);
    while at < list.len() {
        for inner in list[at].kind.blocks_mut().into_iter().flatten() {
            sunk |= sink(function, inner);
        }
        if let Some(flag) = flag_of(function, list, at) {
            let before = list.len();
            behind(function, list, at, flag);
            sunk = true;
            // Visits the loop again: all inserted statements but one precede it.
            at += (list.len() - before).saturating_sub(1);
        } else {
            at += 1;
        }
    }
    sunk
}

/// A flag that the loop at an index assigns in its iterations and never reads, and that is `False` before the loop.
fn flag_of(function: &Function, list: &[Stmt], at: usize) -> Option<LocalId> {
    let StmtKind::Loop { body, step } = &list[at].kind else { return None };
    let iteration = IterationAssignments::of(function, body, step);
    let mut asked: Vec<LocalId> = Vec::new();
    for_each_stmt(std::slice::from_ref(&list[at]), &mut |stmt| {
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| asked.extend(function.local(id)));
        }
    });
    iteration.assigned.iter().map(|&(local, _)| local).find(|&flag| {
        let places: Vec<usize> = (0..body.len()).filter(|&place| is_to(&body[place], flag)).collect();
        let (Some(&first), Some(&last)) = (places.first(), places.last()) else { return false };
        let StmtKind::Assign(_, cond) = body[last].kind else { return false };
        function.locals[flag].ty == Type::BOOL
            && legal!("sink_exit_values.not-read", !asked.contains(&flag))
            // An iteration that executes the first assignment executes the last one, and there are no others.
            && legal!("sink_exit_values.last-assignment", !escapes(&body[first..=last]).any())
            && legal!("sink_exit_values.direct-assignments", iteration.assigned.iter().filter(|(local, _)| *local == flag).count() == places.len())
            && iteration.is_known(cond)
            && legal!("sink_exit_values.false-before", is_false(function, &list[..at], flag))
    })
}

fn is_to(stmt: &Stmt, local: LocalId) -> bool {
    matches!(stmt.kind, StmtKind::Assign(to, _) if to == local)
}

/// The assignments of a loop's iteration: each assigned local, with its value if an `Assign` assigns it.
struct IterationAssignments<'a> {
    function: &'a Function,
    assigned: Vec<(LocalId, Option<ExprId>)>,
}

impl<'a> IterationAssignments<'a> {
    fn of(function: &'a Function, body: &[Stmt], step: &[Stmt]) -> Self {
        let mut assigned = Vec::new();
        for block in [body, step] {
            for_each_stmt(block, &mut |stmt| {
                let value = if let StmtKind::Assign(_, value) = stmt.kind { Some(value) } else { None };
                assigned.extend(stmt.kind.assigned().into_iter().map(|local| (local, value)));
            });
        }
        Self { function, assigned }
    }

    fn assigns(&self, local: LocalId) -> bool {
        self.assigned.iter().any(|(to, _)| *to == local)
    }

    /// Whether a condition has a comparison and no load, and reads only locals that the loop does not change or changes
    /// uniformly.
    fn is_known(&self, cond: ExprId) -> bool {
        let (mut known, mut compares) = (true, false);
        for_each_expr(self.function, cond, &mut |id| {
            known &= match self.function.class(id) {
                Class::Leaf(Leaf::Local(local)) => {
                    let is_int = self.function.locals[local].ty.scalar().is_some_and(Scalar::is_int);
                    !self.assigns(local) || (is_int && self.is_common(local))
                }
                Class::Leaf(_) => true,
                Class::Arith(arith) => {
                    compares |= matches!(arith, Arith::Compare(..));
                    true
                }
                Class::Address { .. } | Class::Load(_) => legal!("sink_exit_values.no-load", false),
            };
        });
        known && compares
    }

    /// Whether the loop computes a local only from constants, parameters, registers of the block and other such locals:
    /// an induction variable, or a copy of one.
    fn is_common(&self, local: LocalId) -> bool {
        let (mut common, mut left, mut seen) = (true, vec![local], Vec::new());
        while let Some(next) = left.pop() {
            if seen.contains(&next) {
                continue;
            }
            seen.push(next);
            for (_, value) in self.assigned.iter().filter(|(to, _)| *to == next) {
                let Some(value) = *value else { return false };
                for_each_expr(self.function, value, &mut |id| match self.function.class(id) {
                    Class::Leaf(Leaf::Local(other)) if self.assigns(other) => left.push(other),
                    Class::Leaf(Leaf::Local(other)) => common &= self.function.params.contains(&other),
                    Class::Leaf(Leaf::Special(register)) => common &= register.is_of_block(),
                    Class::Leaf(Leaf::Const(_)) | Class::Arith(_) => {}
                    Class::Leaf(Leaf::Base(_)) | Class::Address { .. } | Class::Load(_) => common = false,
                });
            }
        }
        common
    }
}

/// Whether a flag is `False` after some statements: the last one that mentions it assigns `False`.
fn is_false(function: &Function, before: &[Stmt], flag: LocalId) -> bool {
    let last = before.iter().rev().find(|stmt| {
        let mut mentions = false;
        for_each_mention(function, std::slice::from_ref(*stmt), &mut |local| mentions |= local == flag);
        mentions
    });
    last.is_some_and(|stmt| match stmt.kind {
        StmtKind::Assign(to, value) => to == flag && function.exprs[value].kind == ExprKind::Const(Const::Bool(false)),
        StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => false,
    })
}

/// Assigns a flag after the loop at an index, from the values that its operands had in the last iteration that reached
/// the assignment.
fn behind(function: &mut Function, list: &mut Block, at: usize, flag: LocalId) {
    let span = list[at].span;
    let StmtKind::Loop { body, step } = &mut list[at].kind else { return };
    let Some(last) = body.iter().rposition(|stmt| is_to(stmt, flag)) else { return };
    let StmtKind::Assign(_, cond) = body[last].kind else { return };
    let iteration = IterationAssignments::of(function, body, step);
    let mut changed: Vec<LocalId> = Vec::new();
    for_each_expr(function, cond, &mut |id| {
        changed.extend(function.local(id).filter(|&local| iteration.assigns(local)));
    });
    changed.sort_unstable();
    changed.dedup();

    let any = function.locals.push(Local::new("any", LocalKind::Variable, Type::BOOL));
    let mut before = vec![assign(function, any, ExprKind::Const(Const::Bool(false)), span)];
    let mut here = vec![assign(function, any, ExprKind::Const(Const::Bool(true)), span)];
    let mut names: Vec<(LocalId, LocalId)> = Vec::new();
    for local in changed {
        let kept = function.locals.push(function.locals[local].clone());
        before.push(assign(function, kept, ExprKind::Const(Const::Int(0)), span));
        here.push(assign(function, kept, ExprKind::Local(local), span));
        names.push((local, kept));
    }
    body.splice(last..=last, here);
    body.retain(|stmt| !is_to(stmt, flag));

    let cond = function.copy_with(cond, &mut |function, id| {
        let &(_, to) = names.iter().find(|&&(from, _)| function.local(id) == Some(from))?;
        Some(function.edit(function.exprs[id].span).read(to))
    });
    let any = function.exprs.push(Expr { kind: ExprKind::Local(any), ty: Type::BOOL, span });
    let value = assign(function, flag, ExprKind::Binary(BinaryOp::And, any, cond), span);
    list.insert(at + 1, value);
    list.splice(at..at, before);
}

fn assign(function: &mut Function, local: LocalId, kind: ExprKind, span: Span) -> Stmt {
    let value = function.exprs.push(Expr { kind, ty: function.locals[local].ty, span });
    Stmt { kind: StmtKind::Assign(local, value), span }
}
