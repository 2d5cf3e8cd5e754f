//! Runs the statements of a thread in lockstep: nested loops and branches with predicates, in place of divergent control
//! flow around loops.

use crate::{
    analysis::{escapes, for_each_mention},
    backend::host::plan::{
        analysis::structure::cut_here,
        loops::lane_arrays::{
            blend::blended,
            lockstep::{Lockstep, Run},
        },
        plan_ir::{Divergence, MaskedLoop, Refusal},
    },
    ir::{
        BinaryOp, Block, CompareOp, Editor, ExprId, ExprKind, Function, Local, LocalId, LocalKind, Stmt, StmtKind,
        Type, for_each_stmt,
    },
    normalize::jumps::branched,
    source::Span,
};

/// The statements in lockstep, and their loops.
#[derive(Default)]
pub(super) struct Lowered {
    /// The statements.
    pub body: Block,
    /// Counters of loops of which all threads run the same iterations.
    pub counters: Vec<LocalId>,
    /// The other loops.
    pub masked_loops: Vec<MaskedLoop>,
}

/// Lowers the statements of a body. `function` receives the new expressions and locals; `lockstep` is about the body.
///
/// # Errors
///
/// A jump or a loop that has no form in lockstep.
pub(super) fn lower(
    function: &mut Function,
    lockstep: &Lockstep<'_>,
    body: &[Stmt],
    has_masks: bool,
) -> Result<Lowered, Refusal> {
    let mut mentions = vec![0_u32; function.locals.len()];
    for_each_mention(function, body, &mut |local| mentions[local.index()] += 1);
    let (lowered, pending) = (Lowered::default(), Block::new());
    let mut lowering = Lowering { function, lockstep, mentions, has_masks, lowered, pending };
    let mut out = Block::new();
    lowering.list(body, None, &mut out)?;
    Ok(Lowered { body: out, ..lowering.lowered })
}

struct Lowering<'a, 'b> {
    function: &'a mut Function,
    lockstep: &'a Lockstep<'b>,
    /// The number of mentions of each local of the program.
    mentions: Vec<u32>,
    /// The CPU has masked vectors of all types.
    has_masks: bool,
    lowered: Lowered,
    /// Statements of threads that are not in the output yet.
    pending: Block,
}

impl Lowering<'_, '_> {
    /// Lowers a list of statements that the threads run for which `predicate` is not zero.
    fn list(&mut self, list: &[Stmt], predicate: Option<LocalId>, out: &mut Block) -> Result<(), Refusal> {
        for stmt in list {
            match &stmt.kind {
                StmtKind::Assign(local, _) if self.lockstep.is_uniform_local(*local) => {
                    let mut is_mentioned = false;
                    for_each_mention(self.function, &self.pending, &mut |seen| is_mentioned |= seen == *local);
                    if is_mentioned {
                        self.flush(predicate, stmt.span, out);
                    }
                    out.push(stmt.clone());
                }
                StmtKind::Assign(..) | StmtKind::Store { .. } => self.pending.push(stmt.clone()),
                StmtKind::If { cond, then, otherwise } if is_early_return(then, otherwise) => {
                    let may_return = predicate.is_none() && self.lockstep.is_guard_of_rest(self.function, *cond);
                    // Other returns would need masks.
                    if !may_return {
                        return Err(Refusal::Return(stmt.span));
                    }
                    self.flush(predicate, stmt.span, out);
                    out.push(stmt.clone());
                }
                StmtKind::If { cond, then, otherwise } if self.stays_whole(stmt, predicate.is_some()) => {
                    if escapes(then).any() || escapes(otherwise).any() {
                        return Err(Refusal::Divergent(Divergence::Branch(self.function.exprs[*cond].span)));
                    }
                    self.pending.push(stmt.clone());
                }
                StmtKind::If { cond, then, otherwise } => {
                    self.flush(predicate, stmt.span, out);
                    self.branch((*cond, stmt.span), (then, otherwise), predicate, out)?;
                }
                StmtKind::Loop { .. } if self.lockstep.is_short(self.function, stmt) => self.pending.push(stmt.clone()),
                StmtKind::Loop { body, step } => {
                    self.flush(predicate, stmt.span, out);
                    match self.lockstep.uniform_counter(self.function, body, step) {
                        Some(counter) => self.uniform_loop(counter, (body, step, stmt.span), predicate, out)?,
                        None => self.masked_loop((body, step, stmt.span), predicate, out)?,
                    }
                }
                StmtKind::Op { .. } => return Err(Refusal::Operation(stmt.span)),
                StmtKind::Call { .. } => return Err(Refusal::Call(stmt.span)),
                StmtKind::Return(_) => return Err(Refusal::Return(stmt.span)),
                StmtKind::Break | StmtKind::Continue => {
                    return Err(Refusal::Divergent(Divergence::Exit(stmt.span)));
                }
            }
        }
        let span = list.last().map_or_else(Span::default, |stmt| stmt.span);
        self.flush(predicate, span, out);
        Ok(())
    }

    /// Whether a branch is code of a thread: it has no loop of the block, and assigns no uniform local.
    fn stays_whole(&self, stmt: &Stmt, is_predicated: bool) -> bool {
        let (mut has_loop, mut assigns) = (false, false);
        for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
            has_loop |= matches!(inner.kind, StmtKind::Loop { .. }) && !self.lockstep.is_short(self.function, inner);
            assigns |= inner.kind.assigned().iter().any(|&local| self.lockstep.is_uniform_local(local));
        });
        let assigns_uniform = assigns && self.lockstep.run(self.function, stmt, is_predicated) == Run::Uniform;
        !has_loop && !assigns_uniform
    }

    /// Writes the pending statements, under the predicate.
    fn flush(&mut self, predicate: Option<LocalId>, span: Span, out: &mut Block) {
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return;
        }
        match predicate {
            Some(predicate) => {
                let span = pending.first().map_or(span, |stmt| stmt.span);
                if !self.has_masks
                    && let Some(blended) = blended(self.function, &self.mentions, &pending, (predicate, span))
                {
                    out.extend(blended);
                    return;
                }
                let cond = self.is_set(predicate, span);
                out.push(Stmt { kind: StmtKind::If { cond, then: pending, otherwise: Block::new() }, span });
            }
            None => out.extend(pending),
        }
    }

    /// A branch with a loop inside.
    fn branch(
        &mut self,
        (cond, span): (ExprId, Span),
        (then, otherwise): (&Block, &Block),
        predicate: Option<LocalId>,
        out: &mut Block,
    ) -> Result<(), Refusal> {
        let is_guard = predicate.is_none() && self.lockstep.is_guard(self.function, cond, otherwise);
        if is_guard || self.lockstep.is_uniform(self.function, cond) {
            let (mut first, mut second) = (Block::new(), Block::new());
            self.list(then, predicate, &mut first)?;
            self.list(otherwise, predicate, &mut second)?;
            out.push(Stmt { kind: StmtKind::If { cond, then: first, otherwise: second }, span });
            return Ok(());
        }
        let arms: Vec<(LocalId, bool, &Block)> = [(then, true), (otherwise, false)]
            .into_iter()
            .filter(|(arm, _)| !arm.is_empty())
            .map(|(arm, holds)| (self.local("arm"), holds, arm))
            .collect();
        let mut masks = Block::new();
        for &(mask, holds, _) in &arms {
            out.push(self.assign(mask, 0, span));
            let cond = self.function.copy_expr(cond);
            let mut edit = self.function.edit(span);
            let [yes, no] = [holds, !holds].map(|set| edit.int(set.into(), Type::I32));
            let value = edit.expr(ExprKind::Select(cond, yes, no), Type::I32);
            masks.push(Stmt { kind: StmtKind::Assign(mask, value), span });
        }
        self.pending = masks;
        self.flush(predicate, span, out);
        for (mask, _, arm) in arms {
            self.list(arm, Some(mask), out)?;
        }
        Ok(())
    }

    /// A loop of which all threads run the same iterations.
    fn uniform_loop(
        &mut self,
        counter: LocalId,
        (body, step, span): (&Block, &Block, Span),
        predicate: Option<LocalId>,
        out: &mut Block,
    ) -> Result<(), Refusal> {
        let Some((test, rest)) = body.split_first() else { return Err(Refusal::NotCounted) };
        let mut iteration = vec![test.clone()];
        self.list(rest, predicate, &mut iteration)?;
        iteration.push(cut_here(span));
        self.lowered.counters.push(counter);
        out.push(Stmt { kind: StmtKind::Loop { body: iteration, step: step.clone() }, span });
        Ok(())
    }

    /// A loop that threads leave in different iterations: the block runs it as long as any lane is active.
    fn masked_loop(
        &mut self,
        (body, step, span): (&Block, &Block, Span),
        predicate: Option<LocalId>,
        out: &mut Block,
    ) -> Result<(), Refusal> {
        let exit = || Refusal::Divergent(Divergence::Exit(span));
        let [alive, iterations] = ["alive", "iterations"].map(|name| self.local(name));
        match predicate {
            Some(predicate) => {
                let value = self.function.edit(span).read(predicate);
                out.push(Stmt { kind: StmtKind::Assign(alive, value), span });
            }
            None => out.push(self.assign(alive, 1, span)),
        }
        out.push(self.assign(iterations, 0, span));
        let mut whole = Block::new();
        let mut iteration = body.as_slice();
        let mut has_trip_count = false;
        if let Some((test, rest)) = body.split_first()
            && let StmtKind::If { then, .. } = &test.kind
            && let ([Stmt { kind: StmtKind::Break, .. }], Some(cond)) = (then.as_slice(), test.kind.exit_condition())
            && self.lockstep.is_uniform(self.function, cond)
        {
            whole.push(test.clone());
            iteration = rest;
            has_trip_count = true;
        }
        let (tests, rest) = iteration.split_at(leading_tests(iteration));
        for (part, is_last) in [(tests, false), (rest, true)] {
            let mut leave = |span: Span| {
                let leaves = vec![self.assign(alive, 0, span)];
                (leaves, self.is_set(alive, span))
            };
            let part = branched(part, Some(&mut leave)).ok_or_else(exit)?;
            if is_last {
                let few_active = self.is_set(iterations, span);
                let none_active = self.is_set(iterations, span);
                let jump = vec![Stmt { kind: StmtKind::Break, span }];
                whole.push(Stmt { kind: StmtKind::If { cond: few_active, then: jump, otherwise: Block::new() }, span });
                self.lowered.masked_loops.push(MaskedLoop {
                    alive,
                    iterations,
                    few_active,
                    none_active,
                    after_loop: None,
                    has_trip_count,
                    is_reorderable: false,
                    runs_alone: false,
                });
            }
            self.list(&part, Some(alive), &mut whole)?;
        }
        let is_counted =
            step.iter().flat_map(|stmt| stmt.kind.assigned()).all(|local| self.lockstep.is_uniform_local(local));
        if !is_counted {
            self.list(step, Some(alive), &mut whole)?;
        }
        let mut edit = self.function.edit(span);
        let (before, one) = (edit.read(iterations), edit.int(1, Type::I32));
        let count = edit.binary(BinaryOp::Add, before, one);
        whole.push(Stmt { kind: StmtKind::Assign(iterations, count), span });
        whole.push(cut_here(span));
        let step = if is_counted { step.clone() } else { Block::new() };
        out.push(Stmt { kind: StmtKind::Loop { body: whole, step }, span });
        Ok(())
    }

    fn local(&mut self, name: &str) -> LocalId {
        self.function.locals.push(Local::new(name, LocalKind::Variable, Type::I32))
    }

    fn assign(&mut self, local: LocalId, value: i128, span: Span) -> Stmt {
        let value = self.function.edit(span).int(value, Type::I32);
        Stmt { kind: StmtKind::Assign(local, value), span }
    }

    /// `local != 0`.
    fn is_set(&mut self, local: LocalId, span: Span) -> ExprId {
        let mut edit: Editor<'_> = self.function.edit(span);
        let (value, zero) = (edit.read(local), edit.int(0, Type::I32));
        edit.compare(CompareOp::Ne, value, zero)
    }
}

/// Whether a branch only returns.
fn is_early_return(then: &[Stmt], otherwise: &[Stmt]) -> bool {
    matches!(then, [Stmt { kind: StmtKind::Return(_), .. }]) && otherwise.is_empty()
}

/// The number of statements up to the first that may leave the loop, if no loop is among them.
fn leading_tests(list: &[Stmt]) -> usize {
    let Some(first) = list.iter().position(|stmt| escapes(std::slice::from_ref(stmt)).breaks) else { return 0 };
    let mut has_loop = false;
    for_each_stmt(&list[..=first], &mut |stmt| has_loop |= matches!(stmt.kind, StmtKind::Loop { .. }));
    if has_loop { 0 } else { first + 1 }
}
