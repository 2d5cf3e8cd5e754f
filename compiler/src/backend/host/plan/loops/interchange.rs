//! Loop interchange: moves a sequential loop out of the thread loop.
//!
//! ```text
//! for each thread t:                      for k in range(n):
//!     for k in range(n):                      for each thread t:
//!         total += a[k, t]                        total += a[k, t]
//! ```
//!
//! The pass inserts a barrier at the end of the loop's body. [`form::cut`] then makes the loop a loop of the block,
//! with thread loops inside, as it does for a loop that has a barrier in the program.
//!
//! Legal for a loop with a uniform exit, because threads have no order between two barriers. The pass therefore rejects
//! a loop that needs a mask after the barrier is inserted ([`masks`]), and innermost loops with calls, atomics or other
//! operations. [`grid_stride`] and [`lane_trip_counts`] first make some divergent exits uniform; [`masked_exits`] is a
//! pass of its own.
//!
//! A *row* is the threads of a block along `x`. Interchange pays for innermost loops, and with them for the loops
//! around them, if
//!
//! - each access is uniform in a row or has unit stride along it, so that LLVM vectorizes over the row; gathers are
//!   accepted beside loads with unit stride, if the loop divides no integers;
//! - each thread accesses its own row of memory, and the loop has a recurrence that LLVM cannot vectorize: a strip of
//!   threads then interleaves the recurrences, or transposes the accesses;
//! - the loop calls math functions, which are faster for vectors whatever the strides are;
//! - the loop has few iterations, and several rows load the same elements: a tile of rows shares these loads.
//!
//! LLVM unrolls other loops of few iterations, and each other loop stays inside the thread loop.

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

/// Largest constant trip count of a short loop, which LLVM unrolls.
const FEW_TURNS: i128 = 32;

/// Least trip count of a short loop that several rows run as a tile.
const LEAST_OF_TILE: i128 = 16;

/// The loops that [`mark`] interchanged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marked {
    /// There is at least one.
    pub any: bool,
    /// A grid-stride loop has indices that may come near the largest integer.
    pub far: bool,
    /// Counters of loops that contain no barrier of the program. No other loop has the same counter.
    pub counters: Vec<LocalId>,
    /// Those of `counters` whose loops have accesses without unit stride: interchanged only as part of a strip.
    pub strided: Vec<LocalId>,
    /// Those of `strided` whose loops call math functions: interchanged only if the strip transposes the accesses.
    pub turned: Vec<LocalId>,
    /// The loops with a trip count for each lane: interchanged only if the strip transposes the accesses.
    pub uneven: Vec<Uneven>,
    /// Those of `counters` whose loops are short and load the same elements for several rows: interchanged only as part
    /// of a strip of several rows.
    pub tiles: Vec<LocalId>,
    /// Offsets of grid-stride loops.
    pub strides: Vec<Stride>,
}

/// The kinds of loops that are interchanged in addition to those with uniform and unit-stride accesses.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Kinds {
    /// Loops in which each thread accesses its own row of memory.
    pub strided: bool,
    /// Those of them that call math functions.
    pub turned: bool,
    /// Those of them with a trip count for each lane.
    pub uneven: bool,
    /// Loops that call math functions, whatever their strides are.
    pub math: bool,
}

/// Interchanges loops of a kernel's body.
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
            marked.strided.extend(loop_.counter.filter(|_| loop_.apart));
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
    // A loop that shares its counter with another loop is not strip-mined.
    marked.counters.retain(|counter| loops[counter.index()] == 1);
    marked
}

/// Splits `if a: … else: …` into `if a: …` and `if not a: …` where an arm contains a loop and the condition is
/// a guard, so that each arm has a guard of its own. Legal because the value of a guard does not change.
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

/// Loops that may be interchanged: a barrier inside needs no mask because of the control flow around them.
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
            // A loop around an innermost loop is interchanged with it, if its exit is uniform too.
            StmtKind::Loop { body, .. } => collect(function, body, fixed, path, found),
            StmtKind::If { cond, then, otherwise }
                if otherwise.is_empty() && guarded::is_guard_of_turn(function, fixed, *cond) =>
            {
                collect(function, then, fixed, path, found);
            }
            // A condition that is uniform for the launch.
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

/// Whether a condition has one value for the whole launch.
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

/// Whether LLVM can vectorize statements over a row.
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

/// Whether a loop calls math functions other than those of a few instructions.
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

/// The constant of at most [`FEW_TURNS`] that the exit test at the start of the body compares with.
fn few_turns(function: &Function, body: &[Stmt]) -> Option<i128> {
    let Some(Stmt { kind: StmtKind::If { cond, .. }, .. }) = body.first() else { return None };
    let mut few = None;
    for_each_expr(function, *cond, &mut |id| {
        let ExprKind::Compare(_, a, b) = function.exprs[id].kind else { return };
        few = few.or([a, b].into_iter().find_map(|side| function.int(side).filter(|value| value.abs() <= FEW_TURNS)));
    });
    few
}

/// A loop that was interchanged.
struct MarkedLoop {
    counter: Option<LocalId>,
    /// It has accesses without unit stride.
    apart: bool,
    /// It calls math functions.
    computes: bool,
    /// It has few iterations.
    few: bool,
    /// Each lane has its own trip count.
    uneven: Option<Uneven>,
}

/// Interchanges a loop, if its exit is uniform and the accesses of a row are uniform or contiguous. With
/// `kinds.strided`, other accesses are accepted if the loop has a recurrence: interleaving the recurrences of several
/// threads hides their latency.
fn mark_uniform(function: &mut Function, body: &mut Block, path: &[usize], kinds: Kinds) -> Option<MarkedLoop> {
    let Kinds { strided, math: may_part, .. } = kinds;
    let mut attempt = body.clone();
    let (&index, outer) = path.split_last()?;
    let list = list_at(&mut attempt, outer)?;
    let Some(Stmt { kind: StmtKind::Loop { body: turn, step }, span }) = list.get_mut(index) else { return None };
    let counts = counter(function, turn, step);
    let counter = counts.map(|(counter, _)| counter);
    let computes = may_part && computes(function, turn);
    let turns = few_turns(function, turn).filter(|_| !computes);
    let few = turns.is_some();
    // [`rows_share`] is tested below, because it takes longer. The trip count of a tile loop is about the length of a
    // row; a shorter row does not fill a strip.
    if few && (turns < Some(LEAST_OF_TILE) || !strided || counter.is_none()) {
        return None;
    }
    let waits = strided && counter.is_some() && recurrences::has_some(function, turn, step);
    let span = *span;
    let in_turns = counter.map_or(0, |counter| {
        lane_trip_counts::reads(function, turn, counter) + lane_trip_counts::reads(function, step, counter)
    });
    turn.push(cut_here(span));
    let mut uneven = None;
    if masks(function, &attempt) > masks(function, body) {
        // After the rewrite the counter is uniform; a read after the loop would need each thread's own value.
        let ends = counter.is_some_and(|counter| lane_trip_counts::reads(function, &attempt, counter) == in_turns);
        if !strided || !kinds.uneven || !(waits || computes) || !ends {
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
    // Vectors of math functions gain more than accesses without unit stride lose, unless these can be transposed.
    let may_walk = touched.apart && !touched.looks_up && strided && counter.is_some();
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

/// Whether a kernel reads `threadIdx.y`.
fn knows_rows(function: &Function) -> bool {
    function.exprs.iter().any(|(_, expr)| expr.kind == ExprKind::Special(SpecialRegister::ThreadIdx(1)))
}

/// The number of masks that a body needs.
pub(crate) fn masks(function: &Function, body: &[Stmt]) -> u32 {
    let mut function = function.clone();
    let fixed = Rematerializable::of(&function, body);
    let (regions, uniformity) = shared_by_block(&function, body, &fixed);
    form::cut(&mut function, body, &uniformity, &regions, (&[], &[]), None).masks
}

/// The rematerializable locals of a body, and its uniformity.
pub(crate) fn uniformity(function: &Function, body: &[Stmt]) -> (Rematerializable, Uniformity) {
    let fixed = Rematerializable::of(function, body);
    let (_, uniformity) = shared_by_block(function, body, &fixed);
    (fixed, uniformity)
}

/// The access patterns of a row in a loop.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    /// An access without unit stride whose index is not loaded.
    apart: bool,
    /// A gather: a load whose index was loaded.
    looks_up: bool,
    /// A load with unit stride.
    next: bool,
}

/// Whether each access of the loop is uniform in a row or has unit stride along it.
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

/// The access patterns of a row in a loop.
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

/// Whether some loads have unit stride along `x` and are uniform along `y`, and others vary along `y`: a tile of
/// several rows makes the former once for all its rows.
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

/// Whether a value is uniform in a row.
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
