//! Unrolls loops that count through a ring of buffers, so that each iteration knows its buffers.
//!
//! ```text
//! $c = 0                                     $c = 0
//! loop {                                     loop {
//!     if not $c < $n { break }                   if not ($c < $n) & ($n - $c > 2) { break }
//!     … buffers[$c % 3] …                        … buffers[0] …
//!     barrier                                    barrier
//! } step {                                       $c = $c + 1
//!     $c = $c + 1                                … buffers[1] …
//! }                                              …
//!                                            }
//!                                            loop { …as before, for the remaining iterations }
//! ```
//!
//! Legal for loops that start at a constant and count by one, and whose bodies do not leave or continue them. A barrier
//! of the block is then in several places, so all threads must run the same number of iterations: the bound must be the
//! same for all threads of the block. Loops with warp operations are refused, whose threads may run different numbers.
//! The iterations from 2^31 - 2^16 on are left to the loop that follows, so that the counter plus a constant does not
//! overflow `int32`.
//!
//! It pays by the remainders, of three instructions or more each, and by fewer tests and jumps; LLVM does not unroll
//! loops with barriers by a trip count that it does not know. Long bodies are refused.

use std::collections::{BTreeMap, BTreeSet};

use weft_artifact::Scalar;

use super::{
    Constant,
    strided::{Strided, test},
};
use crate::{
    analysis::assigns,
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, FunctionKind, Leaf, LocalId,
        Operands, SpecialRegister, Stmt, StmtKind, SyncScope, Type, UnaryOp, for_each_expr, for_each_expr_of_stmt,
        for_each_stmt,
    },
};

/// The maximum number of buffers of all rings together, by which the loop is unrolled.
const MOST_BUFFERS: i128 = 6;
/// The number of iterations of a ring of two buffers.
const OF_TWO: i128 = 4;
/// The limit of constants that are added to the counter.
const LARGEST_OFFSET: i128 = 1 << 16;
/// The maximum number of locals between a loop's bound and what it is computed from.
const DEEPEST: u32 = 16;
/// The maximum number of expressions of the unrolled body.
const LARGEST: i128 = 1200;

/// The locals of a function that have one value.
pub(super) struct SoleValues(Vec<Option<SoleValue>>);

/// The only value of a local.
#[derive(Clone, Copy)]
enum SoleValue {
    /// The argument of a kernel's parameter.
    Argument,
    /// The value of an assignment outside of loops and branches.
    Assigned(ExprId),
}

impl SoleValues {
    pub(super) fn of(function: &Function) -> Self {
        let mut found = vec![None; function.locals.len()];
        if function.kind == FunctionKind::Kernel {
            for param in &function.params {
                found[param.index()] = Some(SoleValue::Argument);
            }
        }
        let mut assigned = vec![0_u32; function.locals.len()];
        for_each_stmt(&function.body, &mut |stmt| {
            for local in stmt.kind.assigned() {
                assigned[local.index()] += 1;
                found[local.index()] = None;
            }
        });
        for stmt in &function.body {
            if let StmtKind::Assign(local, value) = stmt.kind
                && assigned[local.index()] == 1
                && !function.params.contains(&local)
            {
                found[local.index()] = Some(SoleValue::Assigned(value));
            }
        }
        Self(found)
    }

    fn get(&self, local: LocalId) -> Option<SoleValue> {
        self.0.get(local.index()).copied().flatten()
    }
}

/// Unrolls such loops of a block.
pub(super) fn unroll_in(function: &mut Function, values: &SoleValues, block: &mut Block, constant: Option<&Constant>) {
    let mut index = 0;
    while let Some(stmt) = block.get_mut(index) {
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            unroll_in(function, values, inner, constant);
        }
        if let Some(ring) = ring(function, values, (block, index), constant) {
            let unrolled = unrolled(function, &ring, &block[index]);
            block.insert(index, unrolled);
            index += 1;
        }
        index += 1;
    }
}

/// A loop that can be unrolled.
struct Ring {
    bounds: Strided,
    /// The counter's first value.
    start: i128,
    iterations: i128,
}

/// A value minus the counter, if it is constant. `offsets` has those of locals, `start` is the counter's first value.
///
/// All intermediate values must be exact: their offsets are small, and unsigned ones are never negative.
fn offset(function: &Function, offsets: &BTreeMap<LocalId, i128>, start: i128, value: ExprId) -> Option<i128> {
    let of = |value: ExprId| offset(function, offsets, start, value);
    let found = match function.class(value) {
        Class::Leaf(Leaf::Local(local)) => offsets.get(&local).copied()?,
        Class::Arith(Arith::Convert(from)) => of(from)?,
        Class::Arith(Arith::Binary(BinaryOp::Add, a, b)) => match (function.int(a), function.int(b)) {
            (Some(by), None) => of(b)?.checked_add(by)?,
            (None, Some(by)) => of(a)?.checked_add(by)?,
            (None, None) | (Some(_), Some(_)) => return None,
        },
        Class::Arith(Arith::Binary(BinaryOp::Sub, a, b)) => of(a)?.checked_sub(function.int(b)?)?,
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => return None,
    };
    let is_exact = match function.exprs[value].ty {
        Type::Scalar(Scalar::I32 | Scalar::I64) => true,
        Type::Scalar(Scalar::U32 | Scalar::U64) => start.checked_add(found)? >= 0,
        Type::Scalar(_) | Type::Ptr(..) => false,
    };
    (is_exact && found.abs() < LARGEST_OFFSET).then_some(found)
}

/// The loop at an index of a block, if it can be unrolled.
fn ring(
    function: &Function,
    values: &SoleValues,
    (block, index): (&Block, usize),
    constant: Option<&Constant>,
) -> Option<Ring> {
    let StmtKind::Loop { body, step } = &block.get(index)?.kind else { return None };
    let (head, iteration) = body.split_first()?;
    let ExprKind::Unary(UnaryOp::Not, goes_on) = function.exprs[head.kind.exit_condition()?].kind else { return None };
    // The statement that counts is the step, or the last one of the body.
    let (last, iteration) = match step.as_slice() {
        [last] => (last, iteration),
        [] => iteration.split_last()?,
        _ => return None,
    };
    let StmtKind::Assign(counter, next) = last.kind else { return None };
    let ExprKind::Binary(BinaryOp::Add, now, stride) = function.exprs[next].kind else { return None };
    let counts = function.local(now) == Some(counter) && function.int(stride) == Some(1);
    if !counts || ![Type::I32, Type::I64].contains(&function.locals[counter].ty) {
        return None;
    }
    let before = block[..index].iter().rev().find(|stmt| assigns(std::slice::from_ref(stmt), counter))?;
    let StmtKind::Assign(_, first) = before.kind else { return None };
    let start = function.int(first)?;
    let stop = bound(function, goes_on, counter)?;
    let mut changes = false;
    for_each_expr(function, stop, &mut |id| {
        let local = function.local(id);
        changes |= matches!(function.exprs[id].kind, ExprKind::Load(..))
            || local.is_some_and(|local| local == counter || assigns(iteration, local));
    });
    // A constant bound is known to LLVM.
    if start < 0 || changes || function.int(stop).is_some() {
        return None;
    }
    let (mut divisors, mut exprs) = (BTreeSet::new(), 0);
    for_each_remainder(function, (counter, start), iteration, &mut |_, _, buffers| {
        divisors.insert(buffers);
    });
    for_each_stmt(iteration, &mut |stmt| for_each_expr_of_stmt(function, &stmt.kind, &mut |_| exprs += 1));
    let fits = |iterations: &i128| {
        (2..=MOST_BUFFERS).contains(iterations) && i128::from(exprs).saturating_mul(*iterations) <= LARGEST
    };
    let every = divisors.iter().fold(1, |all, divisor| least_common_multiple(all, *divisor));
    let iterations = std::iter::once(every).chain(divisors.iter().rev().copied()).find(fits)?;
    let iterations = Some(OF_TWO).filter(|more| iterations == 2 && fits(more)).unwrap_or(iterations);
    let bounds = Strided { counter, stop, stride, end: i128::from(i32::MAX) - LARGEST_OFFSET, own: BTreeSet::new() };
    can_unroll(function, values, (iteration, stop), constant).then_some(Ring { bounds, start, iterations })
}

/// The `stop` of `counter < stop`.
fn bound(function: &Function, test: ExprId, counter: LocalId) -> Option<ExprId> {
    match function.class(test) {
        Class::Arith(Arith::Compare(CompareOp::Lt, now, stop)) if function.local(now) == Some(counter) => Some(stop),
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
    }
}

/// Calls `visit` on each remainder of the counter plus a constant: the expression, the constant, the divisor.
fn for_each_remainder(
    function: &Function,
    (counter, start): (LocalId, i128),
    iteration: &[Stmt],
    visit: &mut dyn FnMut(ExprId, i128, i128),
) {
    let mut assignments = BTreeMap::<LocalId, usize>::new();
    for_each_stmt(iteration, &mut |stmt| {
        for local in stmt.kind.assigned() {
            *assignments.entry(local).or_default() += 1;
        }
    });
    if assignments.contains_key(&counter) {
        return;
    }
    // By local that has been assigned the counter plus a constant in this iteration, and is assigned nothing else.
    let mut offsets = BTreeMap::from([(counter, 0)]);
    for stmt in iteration {
        let mut visit_expr = |id: ExprId| {
            if let ExprKind::Binary(BinaryOp::FloorMod | BinaryOp::ModNonneg, value, divisor) = function.exprs[id].kind
                && let (Some(offset), Some(buffers)) = (offset(function, &offsets, start, value), function.int(divisor))
                && buffers > 1
            {
                visit(id, offset, buffers);
            }
        };
        for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| {
            for root in stmt.kind.exprs() {
                for_each_expr(function, root, &mut visit_expr);
            }
        });
        if let StmtKind::Assign(local, value) = stmt.kind
            && assignments.get(&local) == Some(&1)
            && let Some(found) = offset(function, &offsets, start, value)
        {
            offsets.insert(local, found);
        }
    }
}

/// Whether the iterations may be in several places: nothing leaves them, and their barriers are reached by all threads
/// of the block or by none.
fn can_unroll(
    function: &Function,
    values: &SoleValues,
    (iteration, stop): (&[Stmt], ExprId),
    constant: Option<&Constant>,
) -> bool {
    let (mut stays, mut waits) = (!jumps(iteration), false);
    for_each_stmt(iteration, &mut |stmt| match &stmt.kind {
        StmtKind::Op { op, .. } => {
            let row = op.row();
            waits |= row.together == SyncScope::Block;
            stays &= matches!(row.together, SyncScope::None | SyncScope::Block) && !row.outside;
        }
        // A callee may have such operations.
        StmtKind::Call { .. } => stays = false,
        StmtKind::Assign(..)
        | StmtKind::Store { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => {}
    });
    stays && (!waits || is_uniform(function, values, stop, (constant, DEEPEST)))
}

/// Whether an iteration leaves or continues its loop.
fn jumps(block: &[Stmt]) -> bool {
    block.iter().any(|stmt| match &stmt.kind {
        StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => true,
        StmtKind::If { then, otherwise, .. } => jumps(then) || jumps(otherwise),
        // Its breaks and continues are its own.
        StmtKind::Loop { body, .. } => {
            let mut returns = false;
            for_each_stmt(body, &mut |stmt| returns |= matches!(stmt.kind, StmtKind::Return(_)));
            returns
        }
        StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } => false,
    })
}

/// Whether a value is the same for all threads of a block: it is computed from arguments, from the block's index and the
/// sizes of the launch, and from memory that does not change while the kernel runs. `depth` limits the number of locals
/// on the way.
fn is_uniform(
    function: &Function,
    values: &SoleValues,
    value: ExprId,
    (constant, depth): (Option<&Constant>, u32),
) -> bool {
    let all = |operands: Operands<'_>, depth: u32| {
        operands.into_iter().all(|operand| is_uniform(function, values, operand, (constant, depth)))
    };
    match function.class(value) {
        Class::Leaf(Leaf::Const(_)) => true,
        Class::Leaf(Leaf::Special(register)) => match register {
            SpecialRegister::BlockIdx(_)
            | SpecialRegister::BlockDim(_)
            | SpecialRegister::GridDim(_)
            | SpecialRegister::WarpSize
            | SpecialRegister::DynamicSharedBytes => true,
            SpecialRegister::ThreadIdx(_) | SpecialRegister::LaneId | SpecialRegister::OfRow(_) => false,
        },
        Class::Leaf(Leaf::Local(local)) => match values.get(local) {
            Some(SoleValue::Argument) => true,
            Some(SoleValue::Assigned(value)) => depth > 0 && is_uniform(function, values, value, (constant, depth - 1)),
            None => false,
        },
        Class::Leaf(Leaf::Base(_)) => false,
        Class::Arith(_) | Class::Address { .. } => all(function.exprs[value].kind.operands(), depth),
        Class::Load(pointer) => {
            constant.is_some_and(|constant| constant.holds(function, pointer))
                && is_uniform(function, values, pointer, (constant, depth))
        }
    }
}

/// The loop unrolled.
fn unrolled(function: &mut Function, ring: &Ring, old: &Stmt) -> Stmt {
    let span = old.span;
    let StmtKind::Loop { body, step } = &old.kind else { return old.clone() };
    let go_on = test(function, &ring.bounds, ring.iterations, span);
    let leave = function.exprs.push(Expr { kind: ExprKind::Unary(UnaryOp::Not, go_on), ty: Type::BOOL, span });
    let exit = vec![Stmt { kind: StmtKind::Break, span }];
    let mut unrolled = vec![Stmt { kind: StmtKind::If { cond: leave, then: exit, otherwise: Block::new() }, span }];
    let (rest, step) = match step.as_slice() {
        [] => body[1..].split_at(body.len() - 2),
        step => (&body[1..], step),
    };
    for number in 0..ring.iterations {
        let iteration: Block = function.copy_stmts(rest);
        let mut known = Vec::new();
        for_each_remainder(function, (ring.bounds.counter, ring.start), &iteration, &mut |id, offset, buffers| {
            if ring.iterations % buffers == 0 {
                known.push((id, (ring.start + number + offset).rem_euclid(buffers)));
            }
        });
        for (id, value) in known {
            function.exprs[id].kind = ExprKind::Const(Const::Int(value));
        }
        unrolled.extend(iteration);
        unrolled.extend(step.iter().map(|stmt| function.copy_stmt(stmt)));
    }
    Stmt { kind: StmtKind::Loop { body: unrolled, step: Block::new() }, span }
}

fn least_common_multiple(a: i128, b: i128) -> i128 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
