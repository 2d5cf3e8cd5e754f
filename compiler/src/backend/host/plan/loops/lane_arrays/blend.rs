//! Statements under a predicate as statements without branches, for CPUs without masked vectors of all types: a store
//! writes back the old value where the predicate does not hold.
//!
//! ```text
//! if alive:                        t = a[clamp(k)]
//!     t = a[k]                     a[clamp(k)] = select(alive, t + 1, a[clamp(k)])
//!     a[k] = t + 1                 total = select(alive, total + t, total)
//!     total += t
//! ```
//!
//! Legal if the statements access no other memory than arrays of lanes. (A division of an integer by zero is zero.)
//! The indices of lanes that do not run the statements may be any value, so they are clamped to the array.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    analysis::for_each_mention,
    backend::host::plan::analysis::{liveness::Uses, structure::counter},
    ir::{
        BinaryOp, Block, Class, CompareOp, ExprId, ExprKind, Function, Local, LocalArrayId, LocalId, LocalKind, Stmt,
        StmtKind, Type, UnaryOp, for_each_expr,
    },
    source::Span,
};

/// The statements that lanes run for which `predicate` is not zero, without branches. `mentions` has the number of
/// mentions of each local in the kernel. `None` if that is not legal.
pub(super) fn blended(
    function: &mut Function,
    mentions: &[u32],
    list: &[Stmt],
    (predicate, span): (LocalId, Span),
) -> Option<Block> {
    let temporaries = temporaries(function, mentions, list);
    if !are_safe(function, mentions, list, &temporaries) {
        return None;
    }
    let mut blend = Blend { function, mentions, out: Block::new() };
    let mut edit = blend.function.edit(span);
    let (value, zero) = (edit.read(predicate), edit.int(0, Type::I32));
    let holds = edit.compare(CompareOp::Ne, value, zero);
    let holds = blend.name(holds, span);
    blend.list(list, holds, &temporaries);
    Some(blend.out)
}

/// Locals that only these statements mention, and that are assigned before they are read.
fn temporaries(function: &Function, mentions: &[u32], list: &[Stmt]) -> BTreeSet<LocalId> {
    let mut inside = BTreeMap::<LocalId, u32>::new();
    for_each_mention(function, list, &mut |local| *inside.entry(local).or_default() += 1);
    let uses = Uses::of(function, list);
    let is_inside = |&(local, count): &(LocalId, u32)| mentions.get(local.index()) == Some(&count);
    let is_own = |local: &LocalId| legal!("lane_arrays.blended-temporary", !uses.exposed.contains(local));
    inside.into_iter().filter(is_inside).map(|(local, _)| local).filter(is_own).collect()
}

/// Whether all lanes may run these statements, with the old values written back for some.
fn are_safe(function: &Function, mentions: &[u32], list: &[Stmt], own: &BTreeSet<LocalId>) -> bool {
    list.iter().all(|stmt| match &stmt.kind {
        StmtKind::Assign(local, value) => {
            matches!(function.locals[*local].ty, Type::Scalar(_)) && is_safe(function, *value)
        }
        StmtKind::Store { pointer, value, .. } => {
            element(function, *pointer).is_some_and(|(_, index)| is_safe(function, index)) && is_safe(function, *value)
        }
        StmtKind::If { cond, then, otherwise } => {
            is_safe(function, *cond)
                && [then, otherwise]
                    .into_iter()
                    .all(|arm| are_safe(function, mentions, arm, &temporaries(function, mentions, arm)))
        }
        StmtKind::Loop { body, step } => {
            // The counter of a lane that does not run the loop must reach its end, too.
            counter(function, body, step).is_some_and(|(counter, _)| own.contains(&counter))
                && body.split_first().is_some_and(|(_, rest)| are_safe(function, mentions, rest, own))
        }
        StmtKind::Op { .. } | StmtKind::Call { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {
            false
        }
    })
}

/// Whether an expression may be evaluated for each lane.
fn is_safe(function: &Function, root: ExprId) -> bool {
    let mut is_safe = true;
    for_each_expr(function, root, &mut |id| {
        is_safe &= match function.class(id) {
            Class::Load(pointer) => legal!("lane_arrays.blended-loads", element(function, pointer).is_some()),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => true,
        };
    });
    is_safe
}

/// The array of lanes and the index, if a pointer is an element of one.
fn element(function: &Function, pointer: ExprId) -> Option<(LocalArrayId, ExprId)> {
    let ExprKind::Offset { base, index, scale: 1 } = function.exprs[pointer].kind else { return None };
    if let ExprKind::LocalBase(array) = function.exprs[base].kind { Some((array, index)) } else { None }
}

struct Blend<'a> {
    function: &'a mut Function,
    mentions: &'a [u32],
    out: Block,
}

impl Blend<'_> {
    /// Assigns a condition to a local.
    fn name(&mut self, cond: ExprId, span: Span) -> LocalId {
        let local = self.function.locals.push(Local::new("runs", LocalKind::Variable, Type::BOOL));
        self.out.push(Stmt { kind: StmtKind::Assign(local, cond), span });
        local
    }

    fn list(&mut self, list: &[Stmt], runs: LocalId, own: &BTreeSet<LocalId>) {
        for Stmt { kind, span } in list {
            let span = *span;
            match kind {
                StmtKind::Assign(local, value) => {
                    let mut value = self.clamped(*value);
                    if !own.contains(local) {
                        let mut edit = self.function.edit(span);
                        let (cond, before) = (edit.read(runs), edit.read(*local));
                        let ty = edit.function.locals[*local].ty;
                        value = edit.expr(ExprKind::Select(cond, value, before), ty);
                    }
                    self.out.push(Stmt { kind: StmtKind::Assign(*local, value), span });
                }
                StmtKind::Store { pointer, value, align } => {
                    let (pointer, value) = (self.clamped_pointer(*pointer), self.clamped(*value));
                    let ty = self.function.exprs[value].ty;
                    let again = self.function.copy_expr(pointer);
                    let mut edit = self.function.edit(span);
                    let (cond, before) = (edit.read(runs), edit.expr(ExprKind::Load(again, *align), ty));
                    let value = edit.expr(ExprKind::Select(cond, value, before), ty);
                    self.out.push(Stmt { kind: StmtKind::Store { pointer, value, align: *align }, span });
                }
                StmtKind::If { cond, then, otherwise } => {
                    let cond = self.clamped(*cond);
                    let cond = self.name(cond, span);
                    let arms = [(then, true), (otherwise, false)].map(|(arm, holds)| {
                        let mut edit = self.function.edit(span);
                        let (around, mut here) = (edit.read(runs), edit.read(cond));
                        if !holds {
                            here = edit.expr(ExprKind::Unary(UnaryOp::Not, here), Type::BOOL);
                        }
                        (arm, edit.binary(BinaryOp::And, around, here))
                    });
                    for (arm, runs) in arms {
                        if !arm.is_empty() {
                            let runs = self.name(runs, span);
                            let own = temporaries(self.function, self.mentions, arm);
                            self.list(arm, runs, &own);
                        }
                    }
                }
                StmtKind::Loop { body, step } => {
                    let before = std::mem::take(&mut self.out);
                    self.out.extend(body.first().cloned());
                    self.list(&body[1..], runs, own);
                    let body = std::mem::replace(&mut self.out, before);
                    self.out.push(Stmt { kind: StmtKind::Loop { body, step: step.clone() }, span });
                }
                StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => self.out.push(Stmt { kind: kind.clone(), span }),
            }
        }
    }

    /// Copies an expression, with the indices of its loads clamped.
    fn clamped(&mut self, root: ExprId) -> ExprId {
        let kind = self.function.exprs[root].kind.clone();
        if let ExprKind::Load(pointer, align) = kind {
            let pointer = self.clamped_pointer(pointer);
            let mut load = self.function.exprs[root].clone();
            load.kind = ExprKind::Load(pointer, align);
            return self.function.exprs.push(load);
        }
        let kind = kind.map_operands(&mut |operand| self.clamped(operand));
        let mut copy = self.function.exprs[root].clone();
        copy.kind = kind;
        self.function.exprs.push(copy)
    }

    /// Copies the pointer of an element, with its index clamped to the array.
    fn clamped_pointer(&mut self, pointer: ExprId) -> ExprId {
        let Some((array, index)) = element(self.function, pointer) else { return self.clamped(pointer) };
        let mut copy = self.function.exprs[pointer].clone();
        let last = i128::from(self.function.local_arrays[array].len.saturating_sub(1));
        let mut index = self.clamped(index);
        let is_inside = self.function.int(index).is_some_and(|index| (0..=last).contains(&index));
        if !legal!("lane_arrays.clamped", is_inside) {
            let mut edit = self.function.edit(copy.span);
            let (zero, last) = (edit.int(0, Type::I64), edit.int(last, Type::I64));
            index = edit.binary(BinaryOp::Max, index, zero);
            index = edit.binary(BinaryOp::Min, index, last);
        }
        let base_ty = copy.ty;
        let base = self.function.edit(copy.span).expr(ExprKind::LocalBase(array), base_ty);
        copy.kind = ExprKind::Offset { base, index, scale: 1 };
        self.function.exprs.push(copy)
    }
}
