//! Which locals have the same value in all active threads if a block runs its loops in lockstep.
//!
//! In contrast to the divergence analysis of a body as it is, an assignment under a divergent branch counts as uniform
//! if all threads may execute it: its value is uniform and cheap, and no thread reads the local that did not execute the
//! branch. The pass then moves such assignments out of the branches.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    analysis::{Rematerializable, escapes, for_each_read},
    backend::host::plan::analysis::{
        guarded,
        structure::{counter, induction_variable},
    },
    ir::{
        Block, Class, ExprId, Function, Leaf, LocalId, Stmt, StmtKind, for_each_expr, for_each_expr_of_block,
        for_each_stmt,
    },
};

/// Highest trip count of a loop that stays in the code of a thread and is unrolled.
pub(super) const MAX_SHORT_TRIP_COUNT: i128 = 8;

/// Most expressions of the copies of such a loop.
const MAX_SHORT_EXPRS: usize = 300;

/// How a block runs the statements inside a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// As the statements around: all threads that are active there run them.
    Uniform,
    /// A loop that threads leave in different iterations.
    Masked,
    /// Some threads run them, or they are code of a thread.
    Divergent,
}

/// A mention of a local.
struct Mention {
    /// The path to the statement: for each statement around it and for itself, twice its index, plus one if the path
    /// continues in the second block.
    path: Vec<usize>,
    kind: MentionKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MentionKind {
    Read,
    /// An assignment of a value.
    Assignment(ExprId),
    /// A result of an operation or a call.
    Result,
}

/// The result for one body.
pub(super) struct Lockstep<'a> {
    fixed: &'a Rematerializable,
    uniform: BTreeSet<LocalId>,
    /// The counters of short loops.
    short: BTreeSet<LocalId>,
}

impl<'a> Lockstep<'a> {
    /// Analyzes a body without calls and operations.
    pub(super) fn of(function: &Function, fixed: &'a Rematerializable, body: &[Stmt]) -> Self {
        let mut this = Self { fixed, uniform: BTreeSet::new(), short: BTreeSet::new() };
        this.find_short(function, body);
        let (mut mentions, mut statements) = (BTreeMap::new(), BTreeMap::new());
        collect(function, body, &mut Vec::new(), &mut mentions, &mut statements);
        this.uniform = mentions.keys().copied().filter(|local| !function.params.contains(local)).collect();
        loop {
            let before = this.uniform.len();
            for (&local, of_local) in &mentions {
                if this.uniform.contains(&local) && !this.stays_uniform(function, of_local, &statements) {
                    this.uniform.remove(&local);
                }
            }
            if this.uniform.len() == before {
                return this;
            }
        }
    }

    /// Whether all active threads have the same value of a local.
    pub(super) fn is_uniform_local(&self, local: LocalId) -> bool {
        self.uniform.contains(&local)
    }

    /// Whether an expression is uniform, and may be evaluated for threads that do not run it.
    pub(super) fn is_uniform(&self, function: &Function, root: ExprId) -> bool {
        let mut is_uniform = true;
        for_each_expr(function, root, &mut |id| {
            is_uniform &= match function.class(id) {
                Class::Leaf(Leaf::Const(_)) => true,
                Class::Leaf(Leaf::Local(local)) => function.params.contains(&local) || self.uniform.contains(&local),
                Class::Leaf(Leaf::Special(register)) => register.is_of_block(),
                Class::Arith(_) => true,
                Class::Leaf(Leaf::Base(_)) | Class::Address { .. } | Class::Load(_) => false,
            };
        });
        is_uniform
    }

    /// Whether a branch is a guard of threads that no predicate is around.
    pub(super) fn is_guard(&self, function: &Function, cond: ExprId, otherwise: &[Stmt]) -> bool {
        otherwise.is_empty() && guarded::is_guard_of_iteration(function, self.fixed, cond)
    }

    /// Whether a condition of an early return is a guard of the statements after it.
    pub(super) fn is_guard_of_rest(&self, function: &Function, cond: ExprId) -> bool {
        guarded::is_guard_of_rest(function, self.fixed, cond)
    }

    /// Whether a loop stays in the code of a thread, where its few iterations are unrolled.
    pub(super) fn is_short(&self, function: &Function, stmt: &Stmt) -> bool {
        let StmtKind::Loop { body, step } = &stmt.kind else { return false };
        counter(function, body, step).is_some_and(|(counter, _)| self.short.contains(&counter))
    }

    /// The counter of a loop of which all threads run the same iterations.
    pub(super) fn uniform_counter(&self, function: &Function, body: &[Stmt], step: &[Stmt]) -> Option<LocalId> {
        let counter = induction_variable(function, body, step)?;
        let (test, rest) = body.split_first()?;
        let is_uniform = self.uniform.contains(&counter) && self.is_uniform(function, test.kind.exit_condition()?);
        (is_uniform && !escapes(rest).any()).then_some(counter)
    }

    /// How the statements inside a statement run; `is_predicated` if not all threads run the statement.
    pub(super) fn run(&self, function: &Function, stmt: &Stmt, is_predicated: bool) -> Run {
        match &stmt.kind {
            StmtKind::If { cond, otherwise, .. } => {
                let is_guard = || !is_predicated && self.is_guard(function, *cond, otherwise);
                if self.is_uniform(function, *cond) || is_guard() { Run::Uniform } else { Run::Divergent }
            }
            StmtKind::Loop { .. } if self.is_short(function, stmt) => Run::Divergent,
            StmtKind::Loop { body, step } => {
                if self.uniform_counter(function, body, step).is_some() {
                    Run::Uniform
                } else if escapes(body).continues {
                    Run::Divergent
                } else {
                    Run::Masked
                }
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => Run::Divergent,
        }
    }

    /// Finds the innermost loops of few iterations.
    fn find_short(&mut self, function: &Function, body: &[Stmt]) {
        let (mut short, mut others) = (Vec::new(), Vec::new());
        sort_loops(function, body, &mut short, &mut others);
        self.short = short.into_iter().filter(|counter| !others.contains(counter)).collect();
    }

    /// Whether all assignments of a local may run for all threads, with one value.
    fn stays_uniform(
        &self,
        function: &Function,
        mentions: &[Mention],
        statements: &BTreeMap<Vec<usize>, &Stmt>,
    ) -> bool {
        let has_uniform_value = |mention: &Mention| match mention.kind {
            MentionKind::Read => true,
            MentionKind::Assignment(value) => self.is_uniform(function, value),
            MentionKind::Result => false,
        };
        if !mentions.iter().all(has_uniform_value) {
            return false;
        }
        let runs = |mention: &Mention| {
            let (mut runs, mut is_predicated) = (Vec::new(), false);
            for depth in 1..mention.path.len() {
                let mut key = mention.path[..depth].to_vec();
                key[depth - 1] &= !1;
                let run = statements.get(&key).map_or(Run::Divergent, |stmt| self.run(function, stmt, is_predicated));
                is_predicated |= run != Run::Uniform;
                runs.push(run);
            }
            runs
        };
        let assignments: Vec<(&Mention, Vec<Run>)> = mentions
            .iter()
            .filter(|mention| mention.kind != MentionKind::Read)
            .map(|mention| (mention, runs(mention)))
            .collect();
        if assignments.iter().all(|(_, runs)| runs.iter().all(|&run| run == Run::Uniform)) {
            return true;
        }
        // The list of statements that contains all mentions begins with an assignment.
        let Some(first) = mentions.first() else { return false };
        let mut depth = first.path.len() - 1;
        for mention in mentions {
            let same = first.path.iter().zip(&mention.path).take_while(|(a, b)| a == b).count();
            depth = depth.min(same).min(mention.path.len() - 1);
        }
        let index = |mention: &Mention| mention.path[depth] / 2;
        let start = mentions.iter().map(index).min();
        let begins = mentions
            .iter()
            .filter(|&mention| Some(index(mention)) == start)
            .all(|mention| mention.path.len() == depth + 1 && mention.kind != MentionKind::Read);
        let last = mentions.iter().map(index).max();
        let is_inside = |(mention, runs): &(&Mention, Vec<Run>)| {
            runs[depth..].iter().enumerate().all(|(inner, &run)| match run {
                Run::Uniform => true,
                // Threads that have left the loop do not read what the others assign.
                Run::Masked => {
                    legal!("lane_arrays.not-read-after", inner == 0 && Some(index(mention)) == last)
                }
                Run::Divergent => false,
            })
        };
        legal!("lane_arrays.assigned-first", begins) && assignments.iter().all(is_inside)
    }
}

/// Sorts the counters of loops into those of short loops and the others.
fn sort_loops(function: &Function, list: &[Stmt], short: &mut Vec<LocalId>, others: &mut Vec<LocalId>) {
    for (index, stmt) in list.iter().enumerate() {
        if let StmtKind::Loop { body, step } = &stmt.kind
            && let Some((counter, limit)) = counter(function, body, step)
        {
            let is_short = is_short_loop(function, &list[..index], body, (counter, limit));
            if is_short { &mut *short } else { &mut *others }.push(counter);
        }
        stmt.kind.blocks().into_iter().flatten().for_each(|inner| sort_loops(function, inner, short, others));
    }
}

/// Whether a loop after these statements has few iterations, and no loop inside.
fn is_short_loop(function: &Function, before: &[Stmt], body: &Block, (counter, limit): (LocalId, ExprId)) -> bool {
    let first = before.iter().rev().find(|stmt| stmt.kind.assigned().contains(&counter));
    let Some(Stmt { kind: StmtKind::Assign(_, first), .. }) = first else { return false };
    let (Some(first), Some(limit)) = (function.int(*first), function.int(limit)) else { return false };
    let mut has_loop = false;
    for_each_stmt(body, &mut |stmt| has_loop |= matches!(stmt.kind, StmtKind::Loop { .. }));
    let mut exprs = 0;
    for_each_expr_of_block(function, body, &mut |_| exprs += 1);
    let trip_count = limit.saturating_sub(first);
    let is_small = (1..=MAX_SHORT_TRIP_COUNT).contains(&trip_count)
        && exprs * usize::try_from(trip_count).unwrap_or(usize::MAX) <= MAX_SHORT_EXPRS;
    is_small && !has_loop && !escapes(&body[1..]).any()
}

fn collect<'a>(
    function: &Function,
    list: &'a [Stmt],
    path: &mut Vec<usize>,
    mentions: &mut BTreeMap<LocalId, Vec<Mention>>,
    statements: &mut BTreeMap<Vec<usize>, &'a Stmt>,
) {
    for (index, stmt) in list.iter().enumerate() {
        path.push(index * 2);
        for root in stmt.kind.exprs() {
            for_each_read(function, root, &mut |local| {
                mentions.entry(local).or_default().push(Mention { path: path.clone(), kind: MentionKind::Read });
            });
        }
        for local in stmt.kind.assigned() {
            let kind = if let StmtKind::Assign(_, value) = stmt.kind {
                MentionKind::Assignment(value)
            } else {
                MentionKind::Result
            };
            mentions.entry(local).or_default().push(Mention { path: path.clone(), kind });
        }
        if let Some([first, second]) = stmt.kind.blocks() {
            statements.insert(path.clone(), stmt);
            collect(function, first, path, mentions, statements);
            if let Some(last) = path.last_mut() {
                *last += 1;
            }
            collect(function, second, path, mentions, statements);
        }
        path.pop();
    }
}
