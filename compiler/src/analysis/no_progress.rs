//! Iterations that make no progress: they change nothing that the loop's exit condition depends on.
//!
//! If a loop has iterations with and without progress, the conditions between the two decide how long the loop runs.

use weft_artifact::Scalar;

use super::{
    ir_queries::{escapes, for_each_read},
    reads::same,
};
use crate::ir::{
    BinaryOp, Class, CompareOp, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type, UnaryOp, for_each_expr,
    for_each_stmt,
};

/// The iterations of a loop that make no progress.
#[derive(Debug, Default)]
pub(crate) struct NoProgressIterations<'a> {
    /// The statements of these iterations.
    pub stmts: Vec<&'a Stmt>,
    /// Conditions one of whose values leads only to iterations without progress.
    pub decisions: Vec<ExprId>,
}

impl<'a> NoProgressIterations<'a> {
    /// Finds them; `exposed` has the locals that an iteration may read before it assigns them.
    pub(crate) fn of(function: &Function, body: &'a [Stmt], step: &'a [Stmt], exposed: &[bool]) -> Self {
        let mut this = Self::default();
        let mut relevant = tested(function, body);
        // A counted loop makes progress in every iteration: no search is needed.
        if step.iter().any(|stmt| assigns(stmt, &both(&relevant, exposed))) {
            return this;
        }
        add_sources(function, [body, step], &mut relevant);
        let carried = both(&relevant, exposed);
        let after = this.visit(&carried, step, (true, true));
        if !after {
            return Self::default();
        }
        if is_impossible(function, &carried, body) {
            return Self::default();
        }
        this.visit(&carried, body, (after, after));
        this
    }

    /// Visits statements backwards; `after` says whether an iteration that reaches the end, or that continues early,
    /// may make no progress.
    fn visit(&mut self, carried: &[bool], block: &'a [Stmt], after: (bool, bool)) -> bool {
        let (mut no_progress, goes_on) = after;
        for stmt in block.iter().rev() {
            no_progress = match &stmt.kind {
                StmtKind::Break | StmtKind::Return(_) => false,
                StmtKind::Continue => goes_on,
                StmtKind::If { cond, then, otherwise } => {
                    let yes = self.visit(carried, then, (no_progress, goes_on));
                    let no = self.visit(carried, otherwise, (no_progress, goes_on));
                    if yes != no {
                        self.decisions.push(*cond);
                    }
                    yes || no
                }
                StmtKind::Loop { body, step } => {
                    let mut inside = Vec::new();
                    for part in [body, step] {
                        for_each_stmt(part, &mut |stmt| inside.push(stmt));
                    }
                    let still = no_progress && !inside.iter().any(|stmt| assigns(stmt, carried));
                    if still {
                        self.stmts.extend(inside);
                    }
                    still
                }
                StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } => {
                    let still = no_progress && !assigns(stmt, carried);
                    if still {
                        self.stmts.push(stmt);
                    }
                    still
                }
            };
        }
        no_progress
    }
}

/// Whether an iteration without progress contradicts itself. Such an iteration takes the other arm of each branch with an
/// arm that makes progress or leaves the loop. In a merge of two sorted lists, `if u <= v: i += 1` and `if v <= u: j +=
/// 1`, no integers allow both. Two comparisons are related only if nothing between them may change their operands.
fn is_impossible(function: &Function, carried: &[bool], body: &[Stmt]) -> bool {
    let mut facts: Vec<(usize, Fact)> = Vec::new();
    for (at, stmt) in body.iter().enumerate() {
        let StmtKind::If { cond, then, otherwise } = &stmt.kind else { continue };
        let stays = |arm| NoProgressIterations::default().visit(carried, arm, (true, true));
        let (yes, no) = (stays(then), stays(otherwise));
        if yes == no {
            continue;
        }
        let first = facts.len();
        add_facts(function, *cond, yes, at, &mut facts);
        let (old, new) = facts.split_at(first);
        let contradict = |(from, old): &(usize, Fact), new: &Fact| {
            let between = body.get(*from..at).unwrap_or_default();
            old.excludes(function, new) && !may_change(function, between, new.operands)
        };
        if new.iter().any(|(_, new)| old.iter().any(|old| contradict(old, new))) {
            return true;
        }
    }
    false
}

/// The possible relations of two operands.
struct Fact {
    operands: [ExprId; 2],
    /// Whether the first may be less than, equal to, greater than, or unordered with the second.
    may_be: [bool; 4],
}

impl Fact {
    fn excludes(&self, function: &Function, other: &Self) -> bool {
        let [a, b] = self.operands;
        let [c, d] = other.operands;
        let [less, equal, greater, unordered] = other.may_be;
        let may_be = if same(function, a, c) && same(function, b, d) {
            other.may_be
        } else if same(function, a, d) && same(function, b, c) {
            [greater, equal, less, unordered]
        } else {
            return false;
        };
        !self.may_be.iter().zip(may_be).any(|(one, other)| *one && other)
    }
}

/// Adds what follows from a condition that has a value. `at` is the index of its statement.
fn add_facts(function: &Function, cond: ExprId, value: bool, at: usize, facts: &mut Vec<(usize, Fact)>) {
    let kind = &function.exprs[cond].kind;
    if let ExprKind::Unary(UnaryOp::Not, inner) = kind {
        return add_facts(function, *inner, !value, at, facts);
    }
    let both = if value { BinaryOp::And } else { BinaryOp::Or };
    if let ExprKind::Binary(op, a, b) = kind
        && *op == both
        && function.exprs[*a].ty == Type::Scalar(Scalar::Bool)
    {
        add_facts(function, *a, value, at, facts);
        return add_facts(function, *b, value, at, facts);
    }
    if let ExprKind::Compare(op, a, b) = kind {
        // Floats: ordered, except `Ne`, which is unordered.
        let holds = match op {
            CompareOp::Eq => [false, true, false, false],
            CompareOp::Ne => [true, false, true, true],
            CompareOp::Lt => [true, false, false, false],
            CompareOp::Le => [true, true, false, false],
            CompareOp::Gt => [false, false, true, false],
            CompareOp::Ge => [false, true, true, false],
        };
        let mut may_be = holds.map(|holds| holds == value);
        may_be[3] &= matches!(function.exprs[*a].ty, Type::Scalar(scalar) if scalar.is_float());
        facts.push((at, Fact { operands: [*a, *b], may_be }));
    }
}

/// Whether statements may change the value of an operand: they assign a local in it, or it reads memory.
fn may_change(function: &Function, stmts: &[Stmt], operands: [ExprId; 2]) -> bool {
    let mut changes = false;
    for operand in operands {
        for_each_expr(function, operand, &mut |id| changes |= matches!(function.class(id), Class::Load(_)));
        for_each_read(function, operand, &mut |local| {
            for_each_stmt(stmts, &mut |stmt| changes |= stmt.kind.assigned().contains(&local));
        });
    }
    changes
}

fn assigns(stmt: &Stmt, locals: &[bool]) -> bool {
    stmt.kind.assigned().iter().any(|local| locals[local.index()])
}

/// By local: whether an iteration may read it before it assigns it, so that it is loop-carried.
pub(crate) fn exposed(function: &Function, body: &[Stmt], step: &[Stmt]) -> Vec<bool> {
    let none = vec![false; function.locals.len()];
    let mut exposed = Exposed { function, found: none.clone(), assigned: none, order: Vec::new() };
    exposed.block(body);
    if escapes(body).continues {
        exposed.back_to(0);
    }
    exposed.block(step);
    exposed.found
}

struct Exposed<'a> {
    function: &'a Function,
    found: Vec<bool>,
    /// By local: whether every path to the current statement assigns it.
    assigned: Vec<bool>,
    /// Those locals in the order of their assignments, so that a branch costs only as much as it assigns.
    order: Vec<LocalId>,
}

impl Exposed<'_> {
    /// Visits statements. `false` if no path continues.
    fn block(&mut self, block: &[Stmt]) -> bool {
        for stmt in block {
            for root in stmt.kind.exprs() {
                for_each_read(self.function, root, &mut |local| {
                    self.found[local.index()] |= !self.assigned[local.index()];
                });
            }
            match &stmt.kind {
                StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => return false,
                StmtKind::If { then, otherwise, .. } => {
                    let before = self.order.len();
                    let yes = self.block(then);
                    let in_then = self.back_to(before);
                    let no = self.block(otherwise);
                    let in_otherwise = self.back_to(before);
                    match (yes, no) {
                        (true, true) => {
                            self.assign(&in_then);
                            let in_both = in_otherwise.into_iter().filter(|local| self.assigned[local.index()]);
                            let in_both: Vec<_> = in_both.collect();
                            self.back_to(before);
                            self.assign(&in_both);
                        }
                        (false, true) => self.assign(&in_otherwise),
                        (true, false) => self.assign(&in_then),
                        (false, false) => return false,
                    }
                }
                // The loop may run zero iterations.
                StmtKind::Loop { body, step } => {
                    for part in [body, step] {
                        let before = self.order.len();
                        self.block(part);
                        self.back_to(before);
                    }
                }
                StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } => {
                    self.assign(&stmt.kind.assigned());
                }
            }
        }
        true
    }

    fn assign(&mut self, locals: &[LocalId]) {
        for &local in locals {
            if !std::mem::replace(&mut self.assigned[local.index()], true) {
                self.order.push(local);
            }
        }
    }

    /// Drops the latest entries down to `count`, and returns them.
    fn back_to(&mut self, count: usize) -> Vec<LocalId> {
        let gone = self.order.split_off(count);
        for local in &gone {
            self.assigned[local.index()] = false;
        }
        gone
    }
}

fn both(a: &[bool], b: &[bool]) -> Vec<bool> {
    a.iter().zip(b).map(|(a, b)| *a && *b).collect()
}

/// By local: whether a condition around an exit of the loop reads it.
fn tested(function: &Function, body: &[Stmt]) -> Vec<bool> {
    let mut tested = vec![false; function.locals.len()];
    let mut deciding = Vec::new();
    exit_conditions(body, &mut deciding);
    for root in deciding {
        for_each_read(function, root, &mut |local| tested[local.index()] = true);
    }
    tested
}

/// Adds the locals that some locals are computed from.
fn add_sources(function: &Function, parts: [&[Stmt]; 2], relevant: &mut Vec<bool>) {
    loop {
        let before = relevant.clone();
        for part in parts {
            add_sources_of(function, part, &mut Vec::new(), relevant);
        }
        if *relevant == before {
            return;
        }
    }
}

/// The conditions around the statements that exit a loop.
fn exit_conditions(block: &[Stmt], deciding: &mut Vec<ExprId>) {
    for stmt in block {
        match &stmt.kind {
            StmtKind::If { cond, then, otherwise } => {
                let (yes, no) = (escapes(then), escapes(otherwise));
                if yes.any() || no.any() {
                    deciding.push(*cond);
                }
                exit_conditions(then, deciding);
                exit_conditions(otherwise, deciding);
            }
            StmtKind::Loop { body, step } => {
                if escapes(body).returns || escapes(step).returns {
                    conditions(body, deciding);
                    conditions(step, deciding);
                }
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
    }
}

fn conditions(block: &[Stmt], found: &mut Vec<ExprId>) {
    for_each_stmt(block, &mut |stmt| {
        if let StmtKind::If { cond, .. } = &stmt.kind {
            found.push(*cond);
        }
    });
}

/// The same for a list of statements, including the conditions around their assignments, which `around` holds.
fn add_sources_of(function: &Function, block: &[Stmt], around: &mut Vec<ExprId>, relevant: &mut [bool]) {
    // The inputs of a value mostly precede it.
    for stmt in block.iter().rev() {
        let depth = around.len();
        match &stmt.kind {
            StmtKind::If { cond, .. } => around.push(*cond),
            StmtKind::Loop { body, step } => {
                conditions(body, around);
                conditions(step, around);
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
        if assigns(stmt, relevant) {
            for &root in stmt.kind.exprs().iter().chain(around.iter()) {
                for_each_read(function, root, &mut |local: LocalId| relevant[local.index()] = true);
            }
        }
        for inner in stmt.kind.blocks().into_iter().flatten() {
            add_sources_of(function, inner, around, relevant);
        }
        around.truncate(depth);
    }
}
