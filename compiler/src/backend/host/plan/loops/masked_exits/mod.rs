//! Loops that threads leave in different turns (`break`, `while`, `for k in range(lengths[i])`), rewritten so that a strip of
//! threads takes all turns together until the last of them has left.
//!
//! Each thread knows whether it is still in the loop; what a turn does is a branch on that, and a jump becomes a branch around
//! what it skips:
//!
//! ```text
//! for k in range(n):                    for k in range(n):
//!     if total > limit:                     if alive:
//!         break                                 if total > limit: alive = 0
//!     total += table[k]                     if no thread is alive: break
//!                                           value = table[k]
//!                                           if alive:
//!                                               total += value
//! ```
//!
//! That no thread is left is all that is asked about a strip. What then comes first, somebody does: loads from an address that all
//! have in common need no branch.

mod build;

use crate::{
    analysis::{Rematerializable, escapes, for_each_mention},
    backend::host::plan::{
        analysis::{
            divergence::Uniformity,
            recurrences,
            structure::{counter, cut_here, list_at},
        },
        loops::interchange,
        normalize::structurize,
        plan_ir::Node,
        regions::guarded::Regions,
    },
    ir::{
        BinaryOp, Block, Const, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type, for_each_expr_of_stmt,
        for_each_stmt,
    },
    source::Span,
};
use build::Build;

/// So many threads of a strip that are still in a loop go on one after the other, but not before so many turns.
const FEW: u32 = 2;
const FIRST_TURNS: u32 = 8;

/// What a strip asks about a loop that its threads leave in different turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    /// Not zero for each thread that is still in the loop; `I32`.
    pub alive: LocalId,
    /// How many turns there were, the same for all; `I32`.
    pub turns: LocalId,
    /// The conditions of branches that leave the loop: whether few threads are in it, which go on alone, and whether none is. Their
    /// values are what the strip finds.
    pub few: ExprId,
    pub none: ExprId,
    /// The condition of the branch after the loop in which threads that took the loop's first exit assign what they assign there, if
    /// there is one. It belongs to the strip of the loop: it reads values that each strip has its own of.
    after: Option<ExprId>,
    /// It ends for each thread, if it does not leave it before.
    pub ends: bool,
    /// Each thread has a number of turns, which may be taken in any order.
    sums: bool,
}

impl Leaving {
    /// If a condition is one of these: how many threads there may be, from which turn on; before it there may be none.
    pub(crate) fn asks(&self, cond: ExprId) -> Option<(u32, u32)> {
        let most = if cond == self.few { FEW } else { 0 };
        (cond == self.few || cond == self.none).then_some((most, FIRST_TURNS))
    }

    /// Whether a strip of nodes has the branch after the loop, or there is none.
    pub(crate) fn ends_in(&self, strip: &[Node]) -> bool {
        self.after.is_none_or(|after| {
            let is_after = |stmt: &Stmt| matches!(stmt.kind, StmtKind::If { cond, .. } if cond == after);
            strip.iter().any(|node| matches!(node, Node::Segment(segment) if segment.body.iter().any(is_after)))
        })
    }

    /// Whether nodes are the body of the loop.
    pub(crate) fn is_of(&self, body: &[Node]) -> bool {
        body.iter().any(|node| matches!(node, Node::If { cond, .. } if *cond == self.few))
    }
}

/// Where threads assign what they assign at a loop's first exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitAssignments {
    /// After the loop: its exit is a plain `break`, as loops with a trip count have. Legal if that is part of the loop's strip
    /// ([`Leaving::ends_in`]): strips leave the loop in different iterations, so values that a strip's threads share differ between strips.
    AfterLoop,
    /// In the branch that leaves the loop.
    InExitBranch,
}

/// Rewrites the loops of a kernel's body that a row of threads stays together in until they leave it. They are taken together by
/// strips or not at all.
pub(crate) fn mark(function: &mut Function, body: &mut Block, exits: ExitAssignments) -> Vec<Leaving> {
    let mut marked = Vec::new();
    // From the last one on: a loop that is rewritten moves those behind it.
    for path in interchange::candidates(function, body).into_iter().rev() {
        if !is_left_apart(function, body, &path) {
            continue;
        }
        let attempts = [false, true].iter().find_map(|&own_test| attempt(function, body, &path, (own_test, exits)));
        if let Some((rewritten, block, leaving)) = attempts {
            (*function, *body) = (rewritten, block);
            marked.push(leaving);
        }
    }
    marked
}

/// Whether threads leave a loop in different turns, and vectors of them are worth it.
fn is_left_apart(function: &Function, body: &Block, path: &[usize]) -> bool {
    let mut body = body.clone();
    let fixed = Rematerializable::of(function, &body);
    let regions = Regions::of(function, &body, &fixed, &[]);
    // What a block's threads count by is the same for them, whoever counts.
    let uniformity = Uniformity::of(function, &body, &regions, &[]);
    let Some((&index, outer)) = path.split_last() else { return false };
    let Some(stmt) = list_at(&mut body, outer).and_then(|list| list.get(index)) else { return false };
    let here = std::slice::from_ref(stmt);
    uniformity.splits_loop(stmt) && !divides(function, here) && !interchange::computes(function, here)
}

/// The body with a loop rewritten, if its threads stay together then; with `own_test` its first test is each thread's own.
fn attempt(
    function: &Function,
    body: &Block,
    path: &[usize],
    how: (bool, ExitAssignments),
) -> Option<(Function, Block, Leaving)> {
    let (&index, outer) = path.split_last()?;
    let before = interchange::masks(function, body);
    let (mut function, mut body) = (function.clone(), body.clone());
    let mut mentions = vec![0_u32; function.locals.len()];
    for_each_mention(&function, &body, &mut |local| mentions[local.index()] += 1);
    let list = list_at(&mut body, outer)?;
    let (leaving, index) = rewrite(&mut function, list, index, &mentions, how)?;
    if interchange::masks(&function, &body) > before {
        return None;
    }
    let (fixed, uniformity) = interchange::uniformity(&function, &body);
    let Stmt { kind: StmtKind::Loop { body: turn, step }, .. } = list_at(&mut body, outer)?.get(index)?.clone() else {
        return None;
    };
    let alone = |stmt: &Stmt| matches!(stmt.kind, StmtKind::If { cond, .. } if cond == leaving.few);
    let together: Block = turn.iter().chain(&step).filter(|stmt| !alone(stmt)).cloned().collect();
    if !interchange::stays_together(&function, &together, &body, &fixed, &uniformity) {
        return None;
    }
    // LLVM makes vectors of such turns of one thread.
    let of_all = |pointer: ExprId| interchange::is_of_all(&function, &fixed, &uniformity, pointer);
    if leaving.sums && accesses(&function, &together).into_iter().all(of_all) {
        return None;
    }
    let StmtKind::Loop { body: turn, .. } = &mut list_at(&mut body, outer)?.get_mut(index)?.kind else { return None };
    share_loads(&mut function, turn, &fixed, &uniformity);
    Some((function, body, leaving))
}

/// Rewrites a loop of a list; what is known of it, and where it is then.
fn rewrite(
    function: &mut Function,
    list: &mut Block,
    index: usize,
    mentions: &[u32],
    (own_test, exits): (bool, ExitAssignments),
) -> Option<(Leaving, usize)> {
    let Stmt { kind: StmtKind::Loop { body: mut turn, mut step }, span } = list.get(index)?.clone() else {
        return None;
    };
    let ends = counter(function, &turn, &step).is_some();
    let sums = ends && !escapes(&turn[1..]).breaks && !recurrences::has_some(function, &turn, &step);
    let counted = counted(function, list, index, mentions)?;
    let mut build = Build { function, span };
    while build.named_test(&mut turn, mentions) || build.part_test(&mut turn) {}
    let (alive, turns) = (build.local("alive"), build.local("turns"));
    let mut first = vec![build.assign(alive, 1), build.assign(turns, 0)];
    let mut left = Block::new();
    let mut own = None;
    if let Some(Counted { moves, local, twin }) = counted {
        if moves {
            step = vec![turn.pop()?];
        }
        let new = build.function.locals.push(build.function.locals[local].clone());
        own = Some((local, new));
        if let Some(value) = twin {
            let ty = build.function.locals[local].ty;
            let value = build.push(ExprKind::Const(Const::Int(value)), ty);
            first.push(build.stmt(StmtKind::Assign(new, value)));
            build.rename(&mut turn, local, new);
            build.rename(&mut step, local, new);
            left.push(build.gets(local, new));
            own = Some((new, local));
        }
        build.read_counter(&mut turn, if twin.is_some() { new } else { local }, mentions);
    }
    let mut alone = build.alone(&turn, &step, own);
    alone.push(build.assign(alive, 0));
    let mut whole = Block::new();
    let mut after: Option<(ExprId, Stmt)> = None;
    if !own_test {
        let StmtKind::If { cond, mut then, otherwise } = turn.drain(..1.min(turn.len())).next()?.kind else {
            return None;
        };
        if !is_exit(&then, &otherwise) {
            return None;
        }
        // Threads that are still in the loop assign what is assigned before the jump.
        let jump = then.pop()?;
        then.extend(build.again(&left));
        let mut leaves = Block::new();
        if !then.is_empty() {
            match exits {
                ExitAssignments::AfterLoop => {
                    let cond = build.is_set(alive);
                    after = Some((cond, build.stmt(StmtKind::If { cond, then, otherwise: Block::new() })));
                }
                ExitAssignments::InExitBranch => leaves.push(build.when(alive, then)),
            }
        }
        leaves.push(jump);
        whole.push(build.stmt(StmtKind::If { cond, then: leaves, otherwise }));
    }
    let rest = turn.split_off(build.tests(&turn));
    let mut leave = |span: Span| {
        build.span = span;
        let mut leaves = build.again(&left);
        leaves.push(build.assign(alive, 0));
        (leaves, build.is_set(alive))
    };
    let (tests, rest) =
        (structurize::branched(&turn, Some(&mut leave))?, structurize::branched(&rest, Some(&mut leave))?);
    build.span = span;
    if !tests.is_empty() {
        whole.push(build.when(alive, tests));
    }
    let [few, none] = [0, 1].map(|_| build.is_set(turns));
    let jump = || Stmt { kind: StmtKind::Break, span };
    let leaves = build.stmt(StmtKind::If { cond: none, then: vec![jump()], otherwise: Block::new() });
    let then = vec![leaves, build.when(alive, alone), jump()];
    whole.push(build.stmt(StmtKind::If { cond: few, then, otherwise: Block::new() }));
    whole.push(build.when(alive, rest));
    let (before, one) = (build.read(turns), build.push(ExprKind::Const(Const::Int(1)), Type::I32));
    let count = build.push(ExprKind::Binary(BinaryOp::Add, before, one), Type::I32);
    whole.push(build.stmt(StmtKind::Assign(turns, count)));
    whole.push(cut_here(span));
    list[index].kind = StmtKind::Loop { body: whole, step };
    let at = index + first.len();
    let (cond_after, after) = after.unzip();
    list.splice(index + 1..index + 1, after);
    list.splice(index..index, first);
    Some((Leaving { alive, turns, few, none, after: cond_after, ends, sums }, at))
}

/// The condition of a branch that does nothing but leave a loop.
fn is_test(stmt: &Stmt) -> Option<ExprId> {
    let StmtKind::If { cond, then, otherwise } = &stmt.kind else { return None };
    let leaves = matches!(then.as_slice(), [Stmt { kind: StmtKind::Break, .. }]) && otherwise.is_empty();
    leaves.then_some(*cond)
}

/// Whether the arms of a branch say that a thread leaves the loop, perhaps with some values, and nothing else.
fn is_exit(then: &[Stmt], otherwise: &[Stmt]) -> bool {
    let Some((last, rest)) = then.split_last() else { return false };
    let plain = rest.iter().all(|stmt| matches!(stmt.kind, StmtKind::Assign(..)));
    plain && matches!(last.kind, StmtKind::Break) && otherwise.is_empty()
}

/// What counts the turns of a loop, the same for all threads.
struct Counted {
    /// The last statement of a turn does.
    moves: bool,
    /// What it counts by.
    local: LocalId,
    /// The first value, if somebody reads the local behind the loop: in the loop another one counts.
    twin: Option<i128>,
}

/// What counts the turns of a loop of a list, if something does; `None` if that may not go on for threads that have left.
#[expect(clippy::option_option, reason = "that nothing counts is an answer, too")]
fn counted(function: &Function, list: &[Stmt], index: usize, mentions: &[u32]) -> Option<Option<Counted>> {
    let here = list.get(index..=index)?;
    let StmtKind::Loop { body, step } = &here.first()?.kind else { return None };
    let (stmt, moves) = match (step.as_slice(), body.last()) {
        ([stmt], _) => (stmt, false),
        ([], Some(stmt)) if !escapes(body).continues => (stmt, true),
        ([], _) => return Some(None),
        ([_, _, ..], _) => return None,
    };
    let none = if moves { Some(None) } else { None };
    let StmtKind::Assign(local, value) = stmt.kind else { return none };
    let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact | BinaryOp::Sub | BinaryOp::SubExact, a, by) =
        function.exprs[value].kind
    else {
        return none;
    };
    let is_int = matches!(function.locals[local].ty, Type::I64 | Type::I32);
    let (mut inside, mut assigned) = (0, 0);
    for_each_mention(function, here, &mut |of| inside += u32::from(of == local));
    for_each_stmt(here, &mut |stmt| assigned += stmt.kind.assigned().iter().filter(|&&of| of == local).count());
    if function.local(a) != Some(local) || function.int(by).is_none() || !is_int || assigned != 1 {
        return none;
    }
    let mut starts = None;
    let mut known = 0;
    for stmt in &list[..index] {
        let mut seen = 0;
        for_each_mention(function, std::slice::from_ref(stmt), &mut |of| seen += u32::from(of == local));
        if let StmtKind::Assign(to, value) = stmt.kind
            && to == local
            && seen == 1
        {
            known += 1;
            starts = function.int(value);
        } else if seen > 0 {
            starts = None;
        }
    }
    if mentions.get(local.index()) == Some(&(inside + known)) && known > 0 {
        return Some(Some(Counted { moves, local, twin: None }));
    }
    match starts {
        Some(value) => Some(Some(Counted { moves, local, twin: Some(value) })),
        None => none,
    }
}

/// Has all threads load what those load that are still in a loop which was rewritten, from addresses that they have in common: as
/// long as a turn gets so far some thread is in it, and none need be asked whether it may.
fn share_loads(function: &mut Function, turn: &mut Block, fixed: &Rematerializable, uniformity: &Uniformity) {
    // The branch is the last but for what keeps the loop together.
    let Some(at) = turn.len().checked_sub(3) else { return };
    let Some(Stmt { kind: StmtKind::If { then, .. }, span }) = turn.get_mut(at) else { return };
    let loads = Build { function, span: *span }
        .loads_of_all(then, &|function, pointer| interchange::is_of_all(function, fixed, uniformity, pointer));
    turn.splice(at..at, loads);
}

/// All addresses at which statements touch memory.
fn accesses(function: &Function, list: &[Stmt]) -> Vec<ExprId> {
    let mut found = Vec::new();
    for_each_stmt(list, &mut |stmt| {
        if let StmtKind::Store { pointer, .. } = stmt.kind {
            found.push(pointer);
        }
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let ExprKind::Load(pointer, _) = function.exprs[id].kind {
                found.push(pointer);
            }
        });
    });
    found
}

/// Whether statements divide integers by what is not known: a division for each thread that does it, one after the other.
pub(crate) fn divides(function: &Function, list: &[Stmt]) -> bool {
    use BinaryOp::{
        Add, AddExact, And, Div, DivNonneg, FloorDiv, FloorMod, Max, Min, ModNonneg, Mul, MulExact, Or, Pow, Shl, Shr,
        Sub, SubExact, Xor,
    };
    let mut divides = false;
    for_each_stmt(list, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            let ExprKind::Binary(op, _, by) = function.exprs[id].kind else { return };
            let is_int = matches!(function.exprs[id].ty, Type::Scalar(scalar) if scalar.is_int());
            divides |= match op {
                Div | FloorDiv | FloorMod | DivNonneg | ModNonneg => is_int && function.int(by).is_none(),
                Pow => true,
                Add | Sub | Mul | AddExact | SubExact | MulExact | And | Or | Xor | Min | Max | Shl | Shr => false,
            };
        });
    });
    divides
}
