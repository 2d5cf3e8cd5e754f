//! Full unrolling: writes out the iterations of a loop whose exit test depends on constants only, and folds constants in
//! the copies.
//!
//! ```text
//! for q in range(9):                            sum += f[0, y % h]
//!     sum += f[q, (y - cy[q]) % h]              sum += f[1, (y - 1) % h]
//!                                               …
//! d = 16                                        score += shuffle.xor score, 16
//! while d > 0:                                  score += shuffle.xor score, 8
//!     score += shuffle.xor score, d             …
//!     d //= 2                                   d = 0
//! ```
//!
//! The exit test is evaluated for one iteration after the other, from the constants that its locals have before the loop,
//! so the step may be any integer arithmetic. Legal if the loop's only jump is its exit test at the start: then all
//! threads run the same iterations in the same order. Locals that are mentioned only in the body are renamed in each
//! copy.
//!
//! Profitable for loops that
//! - read a constant table (`cy` above): the elements become constants, so that index-set splitting can recognize which
//!   neighbors an iteration accesses; LLVM would unroll the loop only after index-set splitting;
//! - select an element of a tuple by a counter, which would be a comparison with each index in each iteration;
//! - divide a counter (`k // 3`, `k % 3`) and test or clamp an index, which is then one of a neighbor;
//! - exchange values in a warp: the distance of a shuffle becomes a constant, for which the lanes' cells are contiguous.
//!
//! Where only what becomes a constant pays, the loop is unrolled on trial, with the loops inside, and stays as it is if
//! fewer such operations than iterations became constants, or if the folded copies are too long ([`MAX_FOLDED_EXPRS`]).
//!
//! [`write_out_short`] also unrolls other loops of few iterations, and [`write_out_indexing`] those over thread-local arrays
//! whose elements become locals. Loops with other operations ([`StmtKind::Op`]), such as barriers of the block, remain.

mod copy;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::copy::copied;
use crate::{
    analysis::{any_expr, assigns, escapes, for_each_mention},
    ir::{
        Arena, BinaryOp, Block, CompareOp, ConstantArray, ExprId, ExprKind, Function, LocalId, Op, Space, Stmt,
        StmtKind, SyncScope, Type, for_each_expr, for_each_expr_of_block, for_each_expr_of_stmt, for_each_stmt,
    },
    normalize::{
        drop_unread::drop_unread,
        fold_constants::{Values, constant_of, constant_value, is_division, known_value},
    },
};

/// Highest trip count of an unrolled loop.
const MAX_TRIP_COUNT: usize = 32;

/// Most expressions of all copies of a body together.
const MAX_EXPRS: usize = 1200;

/// Highest trip count of a loop that is unrolled because of what becomes a constant.
const MAX_FOLDED_TRIP_COUNT: usize = 64;

/// Most expressions of the copies of such a loop, after folding.
const MAX_FOLDED_EXPRS: usize = 2500;

/// Most expressions of the copies of a loop that pays anyway, if loops inside are unrolled, too. More of them take LLVM
/// long, and LLVM unrolls the loops inside by itself.
const MAX_NESTED_EXPRS: usize = 600;

/// Most expressions of a trial, with those that folding leaves unread.
const MAX_TRIAL_EXPRS: usize = 16000;

/// Most expressions that the copies of loops over thread-local arrays add to a kernel.
const MAX_INDEXING_EXPRS: usize = 16000;

/// Highest trip count of a loop with warp operations: the binary logarithm of the warp size, and one more.
const MAX_WARP_TRIP_COUNT: usize = 6;

/// Highest trip count of a loop that [`write_out_short`] unrolls for no other reason.
const MAX_SHORT_TRIP_COUNT: usize = 4;

/// Unrolls the loops of a kernel's body that read a constant table, and those that exchange values in a warp as long as
/// the body has at most `max_segments` operations that threads wait for.
pub(crate) fn write_out(
    function: &mut Function,
    constants: &Arena<ConstantArray>,
    body: &mut Block,
    max_segments: usize,
) {
    let mut waits = 0;
    for_each_stmt(body, &mut |stmt| waits += usize::from(is_wait(stmt)));
    all(function, constants, body, UnrolledLoops::Useful { more_waits: max_segments.saturating_sub(waits) });
}

/// Unrolls the loops that index thread-local arrays by a value that changes, and the loops inside, as long as all copies
/// together are not too long. The indices are then constants.
pub(crate) fn write_out_indexing(function: &mut Function, constants: &Arena<ConstantArray>, body: &mut Block) {
    all(function, constants, body, UnrolledLoops::OfLocalArrays { more_exprs: MAX_INDEXING_EXPRS });
}

/// Also unrolls loops of few iterations.
pub(crate) fn write_out_short(function: &mut Function, constants: &Arena<ConstantArray>, body: &mut Block) {
    write_out_up_to(function, constants, body, MAX_SHORT_TRIP_COUNT);
}

/// As [`write_out_short`], with another highest trip count.
pub(crate) fn write_out_up_to(
    function: &mut Function,
    constants: &Arena<ConstantArray>,
    body: &mut Block,
    max_trip_count: usize,
) {
    all(function, constants, body, UnrolledLoops::Short { max_trip_count });
}

fn all(function: &mut Function, constants: &Arena<ConstantArray>, body: &mut Block, loops: UnrolledLoops) {
    let mut mentions = vec![0_u32; function.locals.len()];
    for_each_mention(function, body, &mut |local| mentions[local.index()] += 1);
    let mut unroller = Unroller::new(function, constants, loops);
    unroller.temporaries = temporaries_of_loops(unroller.function, &mentions, body);
    unroller.list(body);
    if unroller.folded > 0 {
        drop_unread(unroller.function, body);
    }
}

/// The constant that a local has after these statements.
fn last_constant(function: &Function, before: &[Stmt], local: LocalId) -> Option<i128> {
    let last = before.iter().rev().find(|stmt| assigns(std::slice::from_ref(stmt), local))?;
    let StmtKind::Assign(_, value) = last.kind else { return None };
    constant_value(function, value)
}

/// The value, if a statement is an assignment to a local.
fn assigned_value(stmt: &Stmt, local: LocalId) -> Option<ExprId> {
    if let StmtKind::Assign(to, value) = stmt.kind { (to == local).then_some(value) } else { None }
}

/// The loops to unroll.
#[derive(Clone, Copy)]
enum UnrolledLoops {
    /// Those that read a constant table or exchange values in a warp. The copies may add `more_waits` operations that
    /// threads wait for.
    Useful { more_waits: usize },
    /// Those, except with such operations, and all others of few iterations.
    Short { max_trip_count: usize },
    /// Those that index thread-local arrays, and the loops inside. The copies may add `more_exprs` expressions.
    OfLocalArrays { more_exprs: usize },
}

struct Unroller<'a> {
    function: &'a mut Function,
    constants: &'a Arena<ConstantArray>,
    /// Locals that each iteration of a loop assigns before it reads them, and that the kernel mentions only in that loop.
    temporaries: BTreeSet<LocalId>,
    loops: UnrolledLoops,
    /// How many operations became constants that cost more than arithmetic: loads of constant tables, selections among
    /// the elements of a tuple, divisions, and branches.
    folded: usize,
    /// How many expressions the function had before the outermost loop that is being copied.
    trial: Option<usize>,
}

/// A loop to unroll.
struct UnrolledLoop {
    /// By iteration: the values at its start of the locals on which the exit test depends.
    iterations: Vec<Values>,
    /// Their values after the loop.
    end: Values,
    /// Locals that an iteration assigns exactly once, by a statement of the body itself, and that are not mentioned
    /// outside of the body and are assigned before they are read: each copy has its own.
    own: Vec<LocalId>,
    /// How many operations that threads wait for the copies add.
    more_waits: usize,
    /// How many expressions the copies have, without folding.
    more_exprs: usize,
    /// It pays whatever becomes a constant in the copies.
    pays: bool,
}

impl UnrolledLoops {
    /// Whether loops inside the copies are unrolled, too.
    fn is_nested(self) -> bool {
        match self {
            Self::Useful { .. } | Self::OfLocalArrays { .. } => true,
            Self::Short { .. } => false,
        }
    }

    /// Notes that a loop is unrolled.
    fn spend(&mut self, unrolled: &UnrolledLoop) {
        match self {
            Self::Useful { more_waits } => *more_waits -= unrolled.more_waits,
            Self::Short { .. } => {}
            Self::OfLocalArrays { more_exprs } => *more_exprs -= unrolled.more_exprs,
        }
    }
}

impl<'a> Unroller<'a> {
    fn new(function: &'a mut Function, constants: &'a Arena<ConstantArray>, loops: UnrolledLoops) -> Self {
        Self { function, constants, temporaries: BTreeSet::new(), loops, folded: 0, trial: None }
    }

    fn list(&mut self, list: &mut Block) {
        let mut out = Block::with_capacity(list.len());
        for mut stmt in std::mem::take(list) {
            if let Some(mut copies) = self.unrolled(&out, &stmt) {
                out.append(&mut copies);
                continue;
            }
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.list(inner);
            }
            out.push(stmt);
        }
        *list = out;
    }

    /// The copies of the iterations, if a statement that follows `before` is a loop to unroll.
    fn unrolled(&mut self, before: &[Stmt], stmt: &Stmt) -> Option<Block> {
        let (unrolled, iteration) = self.unrollable(before, stmt)?;
        let (locals, exprs) = (self.function.locals.len(), self.function.exprs.len());
        let (loops, folded) = (self.loops, self.folded);
        let start = *self.trial.get_or_insert(exprs);
        self.loops.spend(&unrolled);
        let mut copies = Block::new();
        let is_small = unrolled.iterations.iter().all(|values| {
            self.copy_iteration(&unrolled, values, &iteration, &mut copies);
            unrolled.pays || self.function.exprs.len() - start <= MAX_TRIAL_EXPRS
        });
        if is_small && self.loops.is_nested() {
            let (plain, loops) = (copies.clone(), self.loops);
            self.list(&mut copies);
            if unrolled.pays && !self.has_room(&copies, MAX_NESTED_EXPRS) {
                (copies, self.loops) = (plain, loops);
            }
        }
        if start == exprs {
            self.trial = None;
        }
        let folds = self.folded - folded >= unrolled.iterations.len();
        let pays = unrolled.pays || is_small && folds && self.has_room(&copies, MAX_FOLDED_EXPRS);
        if !pays {
            self.function.locals.truncate(locals);
            self.function.exprs.truncate(exprs);
            (self.loops, self.folded) = (loops, folded);
            return None;
        }
        for (local, value) in unrolled.end {
            let ty = self.function.locals[local].ty;
            let end = self.constant(constant_of(value, ty), ty, stmt.span);
            copies.push(Stmt { kind: StmtKind::Assign(local, end), span: stmt.span });
        }
        Some(copies)
    }

    /// Whether copies, in which loops are unrolled, have at most `max` expressions.
    fn has_room(&self, copies: &Block, max: usize) -> bool {
        let mut exprs = 0;
        for_each_expr_of_block(self.function, copies, &mut |_| exprs += 1);
        match self.loops {
            UnrolledLoops::Useful { .. } | UnrolledLoops::Short { .. } => exprs <= max,
            UnrolledLoops::OfLocalArrays { .. } => true,
        }
    }

    /// Decides whether a statement that follows `before` is a loop that can be unrolled, and that may pay. Returns the
    /// loop and the statements of an iteration.
    fn unrollable(&self, before: &[Stmt], stmt: &Stmt) -> Option<(UnrolledLoop, Block)> {
        let StmtKind::Loop { body, step } = &stmt.kind else { return None };
        let (first, rest) = body.split_first()?;
        let test = first.kind.exit_condition()?;
        let (mut exprs, mut reads_table, mut selects, mut indexes, mut exchanges) = (0, false, false, false, 0);
        let (mut divides, mut tests) = (false, false);
        let mut is_simple = !escapes(rest).any();
        for_each_stmt(rest, &mut |inner| {
            if let StmtKind::Op { op, .. } = inner.kind {
                exchanges += usize::from(is_exchange(op));
                is_simple &= is_exchange(op);
            }
            tests |= matches!(inner.kind, StmtKind::If { .. }) && inner.kind.exit_condition().is_none();
            for_each_expr_of_stmt(self.function, &inner.kind, &mut |id| {
                exprs += 1;
                reads_table |= self.reads_table(id);
                selects |= self.selects_element(id);
                divides |= self.divides_by_constant(id);
                tests |= tests_index(&self.function.exprs[id].kind);
                indexes |= self.indexes_local_array(id);
            });
        });
        let folds = reads_table || selects || divides && tests;
        let may_pay = match self.loops {
            UnrolledLoops::Useful { .. } => reads_table || folds || exchanges > 0,
            UnrolledLoops::Short { .. } => true,
            UnrolledLoops::OfLocalArrays { .. } => indexes,
        };
        if !is_simple || !may_pay {
            return None;
        }
        let iteration: Block = rest.iter().chain(step).cloned().collect();
        let (iterations, end) = self.iterations(before, test, &iteration)?;
        let trip_count = iterations.len();
        let (more_waits, more_exprs) = (exchanges * trip_count.saturating_sub(1), exprs * trip_count);
        let pays = match self.loops {
            UnrolledLoops::Useful { more_waits: most } => {
                let is_short = trip_count <= if reads_table { MAX_TRIP_COUNT } else { MAX_WARP_TRIP_COUNT };
                is_short && (reads_table || exchanges > 0) && more_waits <= most && more_exprs <= MAX_EXPRS
            }
            UnrolledLoops::Short { max_trip_count } => {
                let is_short = trip_count <= if reads_table { MAX_TRIP_COUNT } else { max_trip_count };
                is_short && more_waits == 0 && more_exprs <= MAX_EXPRS
            }
            UnrolledLoops::OfLocalArrays { more_exprs: most } => trip_count <= MAX_TRIP_COUNT && more_exprs <= most,
        };
        let may_pay_folded = folds && exchanges == 0 && self.loops.is_nested();
        if !(pays || may_pay_folded) || trip_count == 0 {
            return None;
        }
        let own = self.own(&iteration);
        Some((UnrolledLoop { iterations, end, own, more_waits, more_exprs, pays }, iteration))
    }

    /// The values at the start of each iteration, and after the loop, of the locals on which the exit test depends.
    fn iterations(&self, before: &[Stmt], test: ExprId, iteration: &[Stmt]) -> Option<(Vec<Values>, Values)> {
        let mut of_test = BTreeSet::new();
        let mut roots = vec![test];
        while let Some(root) = roots.pop() {
            for_each_expr(self.function, root, &mut |id| {
                if let ExprKind::Local(local) = self.function.exprs[id].kind
                    && of_test.insert(local)
                {
                    roots.extend(iteration.iter().filter_map(|stmt| assigned_value(stmt, local)));
                }
            });
        }
        let is_assigned = |local: LocalId| assigns(iteration, local);
        let known = |&local: &LocalId| Some((local, last_constant(self.function, before, local)?));
        let mut values: Values = of_test.iter().filter_map(known).collect();
        let mut iterations = Vec::new();
        while known_value(self.function, &values, test)? == 0 {
            iterations.push(values.clone());
            if iterations.len() > MAX_FOLDED_TRIP_COUNT {
                return None;
            }
            for stmt in iteration {
                for &local in of_test.iter().filter(|&&local| assigns(std::slice::from_ref(stmt), local)) {
                    values.insert(local, known_value(self.function, &values, assigned_value(stmt, local)?)?);
                }
            }
        }
        values.retain(|local, _| is_assigned(*local));
        Some((iterations, values))
    }

    /// Whether an expression loads an element of a constant table at an index that reads a local.
    fn reads_table(&self, id: ExprId) -> bool {
        let ExprKind::Load(pointer, _) = self.function.exprs[id].kind else { return false };
        let ExprKind::Offset { base, index, .. } = self.function.exprs[pointer].kind else { return false };
        matches!(self.function.exprs[base].kind, ExprKind::ConstBase(_))
            && any_expr(self.function, index, &|kind| matches!(kind, ExprKind::Local(_)))
    }

    /// Whether an expression selects an element of a tuple by a local: `select(k == 1, b, a)`.
    fn selects_element(&self, id: ExprId) -> bool {
        let ExprKind::Select(cond, ..) = self.function.exprs[id].kind else { return false };
        let ExprKind::Compare(CompareOp::Eq, index, element) = self.function.exprs[cond].kind else { return false };
        self.function.local(index).is_some() && self.function.int(element).is_some()
    }

    /// Whether an expression divides a local by a constant.
    fn divides_by_constant(&self, id: ExprId) -> bool {
        let ExprKind::Binary(_, dividend, divisor) = self.function.exprs[id].kind else { return false };
        is_division(&self.function.exprs[id].kind)
            && self.function.local(dividend).is_some()
            && self.function.int(divisor).is_some()
    }

    /// Whether an expression is an element of a thread-local array at an index that reads a local.
    fn indexes_local_array(&self, id: ExprId) -> bool {
        let ExprKind::Offset { base, index, .. } = self.function.exprs[id].kind else { return false };
        matches!(self.function.exprs[base].ty, Type::Ptr(_, Space::Local))
            && any_expr(self.function, index, &|kind| matches!(kind, ExprKind::Local(_)))
    }

    /// Temporaries that an iteration assigns exactly once and before it reads them: each copy has its own.
    fn own(&self, iteration: &[Stmt]) -> Vec<LocalId> {
        let mut own = assigned_first(self.function, iteration);
        own.retain(|local| self.temporaries.contains(local));
        own
    }
}

/// By the locals that the kernel mentions in one loop only: those that each iteration assigns before it reads them.
fn temporaries_of_loops(function: &Function, mentions: &[u32], body: &[Stmt]) -> BTreeSet<LocalId> {
    let mut found = BTreeSet::new();
    for_each_stmt(body, &mut |stmt| {
        let StmtKind::Loop { body, step } = &stmt.kind else { return };
        let iteration: Block = body.iter().chain(step).cloned().collect();
        let mut inside: BTreeMap<LocalId, u32> = BTreeMap::new();
        for_each_mention(function, &iteration, &mut |local| *inside.entry(local).or_default() += 1);
        let mut first = assigned_first(function, &iteration);
        first.retain(|local| mentions.get(local.index()) == inside.get(local));
        found.extend(first);
    });
    found
}

/// Locals that a list assigns exactly once, by a statement of the list itself, and does not mention before that.
fn assigned_first(function: &Function, iteration: &[Stmt]) -> Vec<LocalId> {
    let once: BTreeSet<LocalId> = assigned_once(iteration).into_iter().collect();
    let (mut seen, mut first) = (BTreeSet::new(), Vec::new());
    for stmt in iteration {
        if let StmtKind::Assign(local, value) = stmt.kind
            && once.contains(&local)
            && !seen.contains(&local)
            && !any_expr(function, value, &|kind| *kind == ExprKind::Local(local))
        {
            first.push(local);
        }
        for_each_mention(function, std::slice::from_ref(stmt), &mut |local| _ = seen.insert(local));
    }
    first
}

/// Whether an operation tests an index or clamps it, which index-set splitting removes if the rest of the index is known.
fn tests_index(kind: &ExprKind) -> bool {
    matches!(kind, ExprKind::Select(..) | ExprKind::Wrap { .. } | ExprKind::Binary(BinaryOp::Min | BinaryOp::Max, ..))
}

/// Whether threads wait for each other at a statement, not at one inside.
fn is_wait(stmt: &Stmt) -> bool {
    matches!(stmt.kind, StmtKind::Op { op, .. } if op.row().together != SyncScope::None)
}

/// Whether an operation exchanges values between the lanes of a warp.
fn is_exchange(op: Op) -> bool {
    let row = op.row();
    row.together == SyncScope::Warp && !row.results.is_empty()
}

/// The locals that have exactly one assignment in a list, by a statement of the list itself and not by a nested one.
pub(crate) fn assigned_once(iteration: &[Stmt]) -> Vec<LocalId> {
    let mut counts: BTreeMap<LocalId, u32> = BTreeMap::new();
    for_each_stmt(iteration, &mut |stmt| {
        stmt.kind.assigned().into_iter().for_each(|local| *counts.entry(local).or_default() += 1);
    });
    let assigned = iteration.iter().filter_map(|stmt| match stmt.kind {
        StmtKind::Assign(local, _) => Some(local),
        StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => None,
    });
    assigned.filter(|local| counts.get(local) == Some(&1)).collect()
}
