//! Loops that a block's threads take together although no barrier asks for it, because then a row of threads reads and
//! writes neighboring elements, and LLVM vectorises over the row.
//!
//! Any order of threads between barriers is right, so a loop may be lifted like one with a barrier: what marks it is a
//! barrier at the end of its body. Two kinds are:
//!
//! * a strided loop, `for i in range(cuda.grid(1), n, cuda.gridsize(1))` in any spelling. Its variable becomes a sum of
//!   the thread's first index and an offset that all threads share, and its test a guard of the body.
//! * an innermost loop with the same turns for all threads, in which a row reads and writes neighbors or one element, and with
//!   it the loops around it.

use crate::{
    analysis::Rematerializable,
    backend::host::plan::{
        analysis::{
            divergence::Uniformity,
            gathers::Loaded,
            recurrences,
            strides::{Form, Forms},
            structure::{OTHERWISE, Path, counter, cut_here, holds_barrier, list_at},
        },
        loops::{
            grid_stride::{self, Stride},
            lane_trip_counts::{self, Uneven},
            masked_exits,
        },
        regions::{distribute, form, guarded},
        shared_by_block,
    },
    ir::{
        Arith, Block, Class, Expr, ExprId, ExprKind, Function, Leaf, LocalId, MathFn, SpecialRegister, Stmt, StmtKind,
        Type, UnaryOp, Unit, for_each_expr, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Loops of this many turns or fewer are left to LLVM, which unrolls them.
const FEW_TURNS: i128 = 32;

/// Turns of a loop of few that several rows of threads may take together.
const LEAST_OF_TILE: i128 = 16;

/// Which loops are marked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marked {
    /// Some.
    pub any: bool,
    /// One whose indices may come near the largest integer.
    pub far: bool,
    /// Counters of loops that have no other barrier than the mark. No other loop counts by one of them.
    pub counters: Vec<LocalId>,
    /// Those of them in which threads walk apart: they are taken together by a strip or not at all.
    pub walks: Vec<LocalId>,
    /// Those of these that call functions of math: the strip walks along rows.
    pub turned: Vec<LocalId>,
    /// Those in which each thread has its own number of turns: the strip walks along rows.
    pub uneven: Vec<Uneven>,
    /// Those of few turns in which rows of threads load the same: they are taken together by several rows or not at all.
    pub tiles: Vec<LocalId>,
    /// Offsets of strided loops.
    pub strides: Vec<Stride>,
}

/// Which loops are marked beside those in which a row stays together.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Kinds {
    /// Those in which each thread walks through its own memory.
    pub walks: bool,
    /// Such that call functions of math.
    pub turned: bool,
    /// Such of which each thread has its own number of turns.
    pub uneven: bool,
    /// Those that compute so much that it does not matter where a row touches memory.
    pub apart: bool,
}

/// Marks loops in a kernel's body.
pub(crate) fn mark(function: &mut Function, body: &mut Block, kinds: Kinds) -> Marked {
    let mut marked = Marked::default();
    part_arms(function, body);
    while let Some(rewritten) = grid_stride::rewrite_one(function, body, &masks) {
        marked.any = true;
        marked.far |= rewritten.far;
        marked.strides.push(rewritten.stride);
    }
    for path in candidates(function, body) {
        if let Some(loop_) = mark_uniform(function, body, &path, kinds) {
            marked.any = true;
            marked.counters.extend(loop_.counter);
            marked.walks.extend(loop_.counter.filter(|_| loop_.apart));
            marked.turned.extend(loop_.counter.filter(|_| loop_.apart && loop_.computes));
            marked.uneven.extend(loop_.uneven);
            marked.tiles.extend(loop_.counter.filter(|_| loop_.few));
        }
    }
    let mut loops = vec![0_u32; function.locals.len()];
    for_each_stmt(body, &mut |stmt| {
        if let StmtKind::Loop { body, step } = &stmt.kind
            && let Some((counter, _)) = counter(function, body, step)
        {
            loops[counter.index()] += 1;
        }
    });
    // A walk by a counter that is not its own is in no strip, and so is given up.
    marked.counters.retain(|counter| loops[counter.index()] == 1);
    marked
}

/// Makes two branches of one with two arms, if an arm has loops and the condition is a guard: what it asks for does not change. Each
/// arm is then behind a guard of its own.
fn part_arms(function: &mut Function, body: &mut Block) {
    let fixed = Rematerializable::of(function, body);
    part_list(function, &fixed, body);
}

fn part_list(function: &mut Function, fixed: &Rematerializable, list: &mut Block) {
    let mut done = Block::new();
    for Stmt { mut kind, span } in list.drain(..) {
        let StmtKind::If { cond, then, otherwise } = &mut kind else {
            done.push(Stmt { kind, span });
            continue;
        };
        let is_guard = guarded::is_guard(function, fixed, *cond);
        if is_guard || of_launch(function, *cond) {
            part_list(function, fixed, then);
            part_list(function, fixed, otherwise);
        }
        let has_loops = |arm: &[Stmt]| {
            let mut loops = false;
            for_each_stmt(arm, &mut |stmt| loops |= matches!(stmt.kind, StmtKind::Loop { .. }));
            loops
        };
        if is_guard && !otherwise.is_empty() && (has_loops(then) || has_loops(otherwise)) {
            let second = std::mem::take(otherwise);
            let asked = distribute::copied(function, *cond);
            let kind_of_not = ExprKind::Unary(UnaryOp::Not, asked);
            let not = function.exprs.push(Expr { kind: kind_of_not, ty: Type::BOOL, span });
            done.push(Stmt { kind, span });
            done.push(Stmt { kind: StmtKind::If { cond: not, then: second, otherwise: Block::new() }, span });
        } else {
            done.push(Stmt { kind, span });
        }
    }
    *list = done;
}

/// Loops that may be worth marking, in a place where they would be lifted without a mask.
pub(crate) fn candidates(function: &Function, body: &Block) -> Vec<Path> {
    let fixed = Rematerializable::of(function, body);
    let mut found = Vec::new();
    collect(function, body, &fixed, &mut Vec::new(), &mut found);
    found
}

fn collect(function: &Function, list: &[Stmt], fixed: &Rematerializable, path: &mut Path, found: &mut Vec<Path>) {
    for (index, stmt) in list.iter().enumerate() {
        path.push(index);
        match &stmt.kind {
            StmtKind::Loop { body, .. } if holds_barrier(stmt) => collect(function, body, fixed, path, found),
            StmtKind::Loop { body, step } if simple(function, body) && simple(function, step) => {
                found.push(path.clone());
            }
            // Loops around an innermost one are lifted with it, if all threads leave those together, too.
            StmtKind::Loop { body, .. } => collect(function, body, fixed, path, found),
            StmtKind::If { cond, then, otherwise }
                if otherwise.is_empty() && guarded::is_guard_of_turn(function, fixed, *cond) =>
            {
                collect(function, then, fixed, path, found);
            }
            // What a launch chooses.
            StmtKind::If { cond, then, otherwise } if of_launch(function, *cond) => {
                collect(function, then, fixed, path, found);
                path.pop();
                path.push(index + OTHERWISE);
                collect(function, otherwise, fixed, path, found);
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
        path.pop();
    }
}

/// Whether a condition is the same for all threads of a launch.
pub(crate) fn of_launch(function: &Function, cond: ExprId) -> bool {
    let mut same = true;
    for_each_expr(function, cond, &mut |id| {
        same &= match function.class(id) {
            Class::Leaf(Leaf::Const(_)) | Class::Arith(_) => true,
            Class::Leaf(Leaf::Local(local)) => function.params.contains(&local),
            Class::Leaf(Leaf::Special(register)) => register.is_of_launch(),
            Class::Leaf(Leaf::Base(_)) | Class::Address { .. } | Class::Load(_) => false,
        };
    });
    same
}

/// Statements that LLVM can vectorise over a row.
fn simple(function: &Function, block: &[Stmt]) -> bool {
    let mut simple = true;
    for_each_stmt(block, &mut |stmt| {
        simple &= matches!(
            stmt.kind,
            StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::If { .. } | StmtKind::Break | StmtKind::Continue
        );
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                simple &= match function.class(id) {
                    Class::Leaf(Leaf::Base(base)) => base.is_of_block(),
                    Class::Arith(
                        Arith::Unary(..)
                        | Arith::Binary(..)
                        | Arith::Compare(..)
                        | Arith::Select(..)
                        | Arith::Convert(_)
                        | Arith::Math(..)
                        | Arith::Wrap { .. },
                    )
                    | Class::Leaf(_)
                    | Class::Address { .. }
                    | Class::Load(_) => true,
                };
            });
        }
    });
    simple
}

/// Whether a loop computes functions of many operations, which vectors of threads do at a tenth of the time.
pub(crate) fn computes(function: &Function, block: &[Stmt]) -> bool {
    let mut computes = false;
    for_each_stmt(block, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Class::Arith(Arith::Math(of, _)) = function.class(id) {
                computes |= !matches!(
                    of,
                    MathFn::Bits
                        | MathFn::CanonicalNan
                        | MathFn::Ceil
                        | MathFn::Copysign
                        | MathFn::Floor
                        | MathFn::Fma
                        | MathFn::Isfinite
                        | MathFn::Isinf
                        | MathFn::Isnan
                        | MathFn::OfBits
                        | MathFn::RoundEven
                        | MathFn::Sqrt
                        | MathFn::Trunc
                );
            }
        });
    });
    computes
}

/// The small constant with which the test at the start of the body compares.
fn few_turns(function: &Function, body: &[Stmt]) -> Option<i128> {
    let Some(Stmt { kind: StmtKind::If { cond, .. }, .. }) = body.first() else { return None };
    let mut few = None;
    for_each_expr(function, *cond, &mut |id| {
        let ExprKind::Compare(_, a, b) = function.exprs[id].kind else { return };
        few = few.or([a, b].into_iter().find_map(|side| function.int(side).filter(|value| value.abs() <= FEW_TURNS)));
    });
    few
}

/// A marked loop.
struct MarkedLoop {
    counter: Option<LocalId>,
    /// Its threads touch memory apart.
    apart: bool,
    /// It calls functions of math.
    computes: bool,
    /// It has few turns.
    few: bool,
    /// Each thread has its own number of turns.
    uneven: Option<Uneven>,
}

/// Marks a loop if it is then lifted without masks and a row of threads stays together in it. With `walks` threads may part where
/// each adds up one value after another, which is what one waits for: several at a time wait together.
fn mark_uniform(function: &mut Function, body: &mut Block, path: &[usize], kinds: Kinds) -> Option<MarkedLoop> {
    let Kinds { walks, apart: may_part, .. } = kinds;
    let mut attempt = body.clone();
    let (&index, outer) = path.split_last()?;
    let list = list_at(&mut attempt, outer)?;
    let Some(Stmt { kind: StmtKind::Loop { body: turn, step }, span }) = list.get_mut(index) else { return None };
    let counts = counter(function, turn, step);
    let counter = counts.map(|(counter, _)| counter);
    let computes = may_part && computes(function, turn);
    let turns = few_turns(function, turn).filter(|_| !computes);
    let few = turns.is_some();
    // What rows share is asked for below, where it takes longer.
    // Tiles have as many turns as rows have threads: those of shorter rows are no strips.
    if few && (turns < Some(LEAST_OF_TILE) || !walks || counter.is_none()) {
        return None;
    }
    let waits = walks && counter.is_some() && recurrences::has_some(function, turn, step);
    let span = *span;
    let in_turns = counter.map_or(0, |counter| {
        lane_trip_counts::reads(function, turn, counter) + lane_trip_counts::reads(function, step, counter)
    });
    turn.push(cut_here(span));
    let mut uneven = None;
    if masks(function, &attempt) > masks(function, body) {
        // A counter that is read behind the loop is each thread's own.
        let ends = counter.is_some_and(|counter| lane_trip_counts::reads(function, &attempt, counter) == in_turns);
        if !walks || !kinds.uneven || !(waits || computes) || !ends {
            return None;
        }
        let list = list_at(&mut attempt, outer)?;
        let Some(Stmt { kind: StmtKind::Loop { body: turn, step }, .. }) = list.get_mut(index) else { return None };
        turn.pop();
        uneven = Some(lane_trip_counts::rewrite(function, counts?, turn, step)?);
        turn.push(cut_here(span));
        if masks(function, &attempt) > masks(function, body) {
            return None;
        }
    }
    let (fixed, uniformity) = uniformity(function, &attempt);
    let marked = list_at(&mut attempt, outer).and_then(|list| list.get(index)).cloned();
    let Some(Stmt { kind: StmtKind::Loop { body: turn, .. }, .. }) = marked else { return None };
    let touched = touched(function, &turn, &attempt, &fixed, &uniformity);
    let gathers = touched.next && !masked_exits::divides(function, &turn);
    let apart = touched.apart || (touched.looks_up && !gathers);
    // What vectors gain is then more than what they lose by elements that are not neighbors, if these cannot be had.
    let may_walk = touched.apart && !touched.looks_up && walks && counter.is_some();
    let turned = may_walk && computes && kinds.turned;
    let apart = apart && (!computes || turned);
    if (uneven.is_some() && !(apart && may_walk))
        || (apart && !waits && !turned)
        || (few && (apart || !rows_share(function, &turn, &fixed, &uniformity)))
    {
        return None;
    }
    *body = attempt;
    Some(MarkedLoop { counter, apart, computes, few, uneven })
}

/// `true` if a kernel asks for `threadIdx.y`.
fn knows_rows(function: &Function) -> bool {
    function.exprs.iter().any(|(_, expr)| expr.kind == ExprKind::Special(SpecialRegister::ThreadIdx(1)))
}

/// How many masks a body needs.
pub(crate) fn masks(function: &Function, body: &[Stmt]) -> u32 {
    let mut function = function.clone();
    let fixed = Rematerializable::of(&function, body);
    let (regions, uniformity) = shared_by_block(&function, body, &fixed);
    form::cut(&mut function, body, &uniformity, &regions, (&[], &[]), None).masks
}

/// What is fixed in a body, and what all threads of a block share.
pub(crate) fn uniformity(function: &Function, body: &[Stmt]) -> (Rematerializable, Uniformity) {
    let fixed = Rematerializable::of(function, body);
    let (_, uniformity) = shared_by_block(function, body, &fixed);
    (fixed, uniformity)
}

/// Where a row of threads touches memory.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    /// Somewhere apart, in an order that nobody looked up.
    apart: bool,
    /// Loads from where other loads say.
    looks_up: bool,
    /// Loads of neighbors.
    next: bool,
}

/// `true` if a row of threads touches one element or neighbors wherever the loop touches memory.
pub(crate) fn stays_together(
    function: &Function,
    turn: &[Stmt],
    body: &[Stmt],
    fixed: &Rematerializable,
    uniformity: &Uniformity,
) -> bool {
    let Touched { apart, looks_up, .. } = touched(function, turn, body, fixed, uniformity);
    !apart && !looks_up
}

/// Where a row of threads touches memory in a loop.
fn touched(
    function: &Function,
    turn: &[Stmt],
    body: &[Stmt],
    fixed: &Rematerializable,
    uniformity: &Uniformity,
) -> Touched {
    let mut values: Vec<Option<ExprId>> = vec![None; function.locals.len()];
    let mut counts = vec![0_u32; function.locals.len()];
    for_each_stmt(body, &mut |stmt| {
        for local in stmt.kind.assigned() {
            counts[local.index()] += 1;
            values[local.index()] = if let StmtKind::Assign(_, value) = stmt.kind { Some(value) } else { None };
        }
    });
    let shared = |local: LocalId| !uniformity.local_varies(local);
    let sole = |local: LocalId| if counts[local.index()] == 1 { values[local.index()] } else { None };
    let forms = Forms { function, fixed, shared: &shared, sole: &sole, axis: 0 };
    let loaded = Loaded::of(function, body);
    let mut touched = Touched::default();
    for_each_stmt(turn, &mut |stmt| {
        if let StmtKind::Store { pointer, .. } = stmt.kind {
            touched.apart |= !neighbors(&forms, pointer);
        }
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                let ExprKind::Load(pointer, _) = function.exprs[id].kind else { return };
                if neighbors(&forms, pointer) {
                    touched.next |= forms.form(pointer) != Form::Same;
                } else if loaded.is_lookup(function, pointer) {
                    touched.looks_up = true;
                } else {
                    touched.apart = true;
                }
            });
        }
    });
    touched
}

/// `true` if some statements load what neighbors along `x` load next to each other and all threads along `y` load alike, and other
/// things that they do not: rows of threads do with one load of the first what each of them does with its own.
pub(crate) fn rows_share(
    function: &Function,
    list: &[Stmt],
    fixed: &Rematerializable,
    uniformity: &Uniformity,
) -> bool {
    let shared = |local: LocalId| !uniformity.local_varies(local);
    let [along_x, along_y] = [0, 1].map(|axis| Forms { function, fixed, shared: &shared, sole: &|_| None, axis });
    let (mut shares, mut differs) = (false, false);
    for_each_stmt(list, &mut |stmt| {
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                if let ExprKind::Load(pointer, _) = function.exprs[id].kind
                    && let Class::Address { base, by, .. } = function.class(pointer)
                {
                    let alike = along_y.form(base) == Form::Same && along_y.form(by) == Form::Same;
                    shares |= alike && along_x.form(by) == Form::Step;
                    differs |= !alike;
                }
            });
        }
    });
    shares && differs && knows_rows(function)
}

/// Whether all threads of a row have a value in common.
pub(crate) fn is_of_all(function: &Function, fixed: &Rematerializable, uniformity: &Uniformity, value: ExprId) -> bool {
    let shared = |local: LocalId| !uniformity.local_varies(local);
    Forms { function, fixed, shared: &shared, sole: &|_| None, axis: 0 }.form(value) == Form::Same
}

pub(crate) fn neighbors(forms: &Forms<'_>, pointer: ExprId) -> bool {
    match forms.function.class(pointer) {
        Class::Address { base, by, unit: Unit::Elements } => {
            forms.form(base) == Form::Same && forms.form(by) != Form::Other
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => forms.form(pointer) == Form::Same,
    }
}
