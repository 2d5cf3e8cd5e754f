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
//! - exchange values in a warp: the distance of a shuffle becomes a constant, for which the lanes' cells are contiguous.
//!
//! [`write_out_short`] also unrolls other loops of few iterations, and [`write_out_indexing`] those over thread-local arrays
//! whose elements become locals. Loops with other operations ([`StmtKind::Op`]), such as barriers of the block, remain.

use std::collections::{BTreeMap, BTreeSet};

use weft_artifact::Scalar;

use crate::{
    analysis::{Interval, any_expr, escapes, for_each_mention},
    ir::{
        Arena, BinaryOp, Block, CompareOp, Const, ConstantArray, Expr, ExprId, ExprKind, Function, LocalId, Op, Space,
        Stmt, StmtKind, SyncScope, Type, UnaryOp, for_each_expr, for_each_expr_of_stmt, for_each_stmt,
        for_each_stmt_mut,
    },
    source::Span,
};

/// Highest trip count of an unrolled loop.
const MAX_TRIP_COUNT: usize = 32;

/// Most expressions of all copies of a body together.
const MAX_EXPRS: usize = 1200;

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
    Unroller { function, constants, mentions, loops }.list(body);
}

/// Copies a body, with new locals for those that it assigns and constants for the locals in `values`.
pub(crate) fn copied(function: &mut Function, constants: &Arena<ConstantArray>, body: &Block, values: Values) -> Block {
    let mut own = BTreeSet::new();
    for_each_stmt(body, &mut |stmt| own.extend(stmt.kind.assigned()));
    let substitution = Substitution::of(function, &own.into_iter().collect::<Vec<_>>(), values);
    let mut all =
        Unroller { function, constants, mentions: Vec::new(), loops: UnrolledLoops::Short { max_trip_count: 0 } };
    body.iter().map(|stmt| all.stmt(&substitution, stmt)).collect()
}

/// The constant that a local has after these statements.
fn last_constant(function: &Function, before: &[Stmt], local: LocalId) -> Option<i128> {
    let last = before.iter().rev().find(|stmt| assigns(stmt, local))?;
    let StmtKind::Assign(_, value) = last.kind else { return None };
    constant_value(function, value)
}

/// The value of a constant of an integer type, or 0 or 1 of a Bool.
fn constant_value(function: &Function, id: ExprId) -> Option<i128> {
    let Expr { ref kind, ty, .. } = function.exprs[id];
    if let ExprKind::Const(Const::Bool(value)) = *kind {
        return Some(i128::from(value));
    }
    function.int(id).filter(|_| ty.scalar().is_some_and(Scalar::is_int))
}

/// The value, if a statement is an assignment to a local.
fn assigned_value(stmt: &Stmt, local: LocalId) -> Option<ExprId> {
    if let StmtKind::Assign(to, value) = stmt.kind { (to == local).then_some(value) } else { None }
}

/// Whether a statement, or one inside, assigns a local.
fn assigns(stmt: &Stmt, local: LocalId) -> bool {
    let mut found = false;
    for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| found |= stmt.kind.assigned().contains(&local));
    found
}

/// The known values of locals: an integer, or 0 or 1 of a Bool.
pub(crate) type Values = BTreeMap<LocalId, i128>;

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
    /// How often the body mentions a local, by index, for the locals that it had at first.
    mentions: Vec<u32>,
    loops: UnrolledLoops,
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
    /// How many expressions the copies have.
    more_exprs: usize,
}

impl UnrolledLoops {
    /// Notes that a loop is unrolled.
    fn spend(&mut self, unrolled: &UnrolledLoop) {
        match self {
            Self::Useful { more_waits } => *more_waits -= unrolled.more_waits,
            Self::Short { .. } => {}
            Self::OfLocalArrays { more_exprs } => *more_exprs -= unrolled.more_exprs,
        }
    }
}

/// The substitutions for the locals of a copy: new locals and constants.
struct Substitution {
    names: BTreeMap<LocalId, LocalId>,
    values: Values,
}

impl Substitution {
    /// Makes new locals for those in `own`.
    fn of(function: &mut Function, own: &[LocalId], values: Values) -> Self {
        let again = |&local: &LocalId| (local, function.locals.push(function.locals[local].clone()));
        Self { names: own.iter().map(again).collect(), values }
    }

    fn named(&self, local: LocalId) -> LocalId {
        self.names.get(&local).copied().unwrap_or(local)
    }
}

impl Unroller<'_> {
    fn list(&mut self, list: &mut Block) {
        let mut out = Block::with_capacity(list.len());
        for mut stmt in std::mem::take(list) {
            if let Some((unrolled, iteration)) = self.unrollable(&out, &stmt) {
                self.loops.spend(&unrolled);
                let mut copies = Block::new();
                for values in &unrolled.iterations {
                    self.copy_iteration(&unrolled, values, &iteration, &mut copies);
                }
                if matches!(self.loops, UnrolledLoops::OfLocalArrays { .. }) {
                    self.list(&mut copies);
                }
                out.append(&mut copies);
                for (local, value) in unrolled.end {
                    let ty = self.function.locals[local].ty;
                    let end = self.constant(constant_of(value, ty), ty, stmt.span);
                    out.push(Stmt { kind: StmtKind::Assign(local, end), span: stmt.span });
                }
                continue;
            }
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.list(inner);
            }
            out.push(stmt);
        }
        *list = out;
    }

    /// Decides whether to unroll a statement that follows `before`. Returns the loop and the statements of an iteration.
    fn unrollable(&self, before: &[Stmt], stmt: &Stmt) -> Option<(UnrolledLoop, Block)> {
        let StmtKind::Loop { body, step } = &stmt.kind else { return None };
        let (first, rest) = body.split_first()?;
        let test = first.kind.exit_condition()?;
        let (mut exprs, mut reads_table, mut indexes, mut exchanges) = (0, false, false, 0);
        let mut is_simple = !escapes(rest).any();
        for_each_stmt(rest, &mut |inner| {
            if let StmtKind::Op { op, .. } = inner.kind {
                exchanges += usize::from(is_exchange(op));
                is_simple &= is_exchange(op);
            }
            for_each_expr_of_stmt(self.function, &inner.kind, &mut |id| {
                exprs += 1;
                reads_table |= self.reads_table(id);
                indexes |= self.indexes_local_array(id);
            });
        });
        let may_pay = match self.loops {
            UnrolledLoops::Useful { .. } => reads_table || exchanges > 0,
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
                (reads_table || trip_count <= MAX_WARP_TRIP_COUNT) && more_waits <= most && more_exprs <= MAX_EXPRS
            }
            UnrolledLoops::Short { max_trip_count } => {
                (reads_table || trip_count <= max_trip_count) && more_waits == 0 && more_exprs <= MAX_EXPRS
            }
            UnrolledLoops::OfLocalArrays { more_exprs: most } => more_exprs <= most,
        };
        if !pays || trip_count == 0 {
            return None;
        }
        let own = self.own(&iteration);
        Some((UnrolledLoop { iterations, end, own, more_waits, more_exprs }, iteration))
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
        let is_assigned = |local: LocalId| iteration.iter().any(|stmt| assigns(stmt, local));
        let known = |&local: &LocalId| Some((local, last_constant(self.function, before, local)?));
        let mut values: Values = of_test.iter().filter_map(known).collect();
        let mut iterations = Vec::new();
        while known_value(self.function, &values, test)? == 0 {
            iterations.push(values.clone());
            if iterations.len() > MAX_TRIP_COUNT {
                return None;
            }
            for stmt in iteration {
                for &local in of_test.iter().filter(|&&local| assigns(stmt, local)) {
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

    /// Whether an expression is an element of a thread-local array at an index that reads a local.
    fn indexes_local_array(&self, id: ExprId) -> bool {
        let ExprKind::Offset { base, index, .. } = self.function.exprs[id].kind else { return false };
        matches!(self.function.exprs[base].ty, Type::Ptr(_, Space::Local))
            && any_expr(self.function, index, &|kind| matches!(kind, ExprKind::Local(_)))
    }

    /// Locals that each iteration assigns exactly once and before it reads them, and that the kernel mentions only in
    /// this loop.
    fn own(&self, iteration: &[Stmt]) -> Vec<LocalId> {
        let once = assigned_once(iteration);
        let mut inside: BTreeMap<LocalId, u32> = BTreeMap::new();
        for_each_mention(self.function, iteration, &mut |local| *inside.entry(local).or_default() += 1);
        let mut seen = Vec::new();
        let mut own = Vec::new();
        for stmt in iteration {
            let mut here = Vec::new();
            if let StmtKind::Assign(local, value) = stmt.kind {
                let reads_itself = any_expr(self.function, value, &|kind| *kind == ExprKind::Local(local));
                let everywhere = self.mentions.get(local.index()).copied();
                if once.contains(&local)
                    && !reads_itself
                    && !seen.contains(&local)
                    && everywhere == inside.get(&local).copied()
                {
                    own.push(local);
                }
            }
            for_each_mention(self.function, std::slice::from_ref(stmt), &mut |local| here.push(local));
            seen.extend(here);
        }
        own
    }

    fn copy_iteration(&mut self, unrolled: &UnrolledLoop, values: &Values, iteration: &[Stmt], out: &mut Block) {
        let mut substitution = Substitution::of(self.function, &unrolled.own, values.clone());
        for stmt in iteration {
            if let StmtKind::Assign(local, value) = stmt.kind
                && unrolled.end.contains_key(&local)
                && let Some(known) = known_value(self.function, &substitution.values, value)
            {
                // The exit test depends on it: all of its values are known, and replace it where it is read.
                substitution.values.insert(local, known);
                continue;
            }
            if stmt.kind.blocks().is_some() {
                for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
                    inner.kind.assigned().iter().for_each(|local| _ = substitution.values.remove(local));
                });
            }
            let copy = self.stmt(&substitution, stmt);
            for local in stmt.kind.assigned() {
                substitution.values.remove(&local);
            }
            if let (&StmtKind::Assign(local, _), &StmtKind::Assign(_, value)) = (&stmt.kind, &copy.kind)
                && let Some(known) = constant_value(self.function, value)
            {
                substitution.values.insert(local, known);
            }
            self.push(copy, out);
        }
    }

    /// Appends a statement; of a branch whose condition is a constant, the statements that run.
    fn push(&self, stmt: Stmt, out: &mut Block) {
        if let StmtKind::If { cond, then, otherwise } = &stmt.kind
            && let Some(holds) = constant_value(self.function, *cond)
        {
            out.extend_from_slice(if holds == 0 { otherwise } else { then });
        } else {
            out.push(stmt);
        }
    }

    fn stmt(&mut self, substitution: &Substitution, stmt: &Stmt) -> Stmt {
        let mut kind = stmt.kind.clone().map_exprs(&mut |id| self.expr(substitution, id));
        let rename = |kind: &mut StmtKind| kind.for_each_assigned_mut(&mut |local| *local = substitution.named(*local));
        rename(&mut kind);
        for inner in kind.blocks_mut().into_iter().flatten() {
            for_each_stmt_mut(inner, &mut |stmt| rename(&mut stmt.kind));
        }
        Stmt { kind, span: stmt.span }
    }

    /// Copies an expression with the substitutions of a copy, and folds integer constants.
    fn expr(&mut self, substitution: &Substitution, id: ExprId) -> ExprId {
        let Expr { kind, ty, span } = self.function.exprs[id].clone();
        if let ExprKind::Local(local) = kind {
            let kind = match substitution.values.get(&local) {
                Some(&value) => ExprKind::Const(constant_of(value, ty)),
                None => ExprKind::Local(substitution.named(local)),
            };
            return self.function.exprs.push(Expr { kind, ty, span });
        }
        let kind = kind.map_operands(&mut |operand| self.expr(substitution, operand));
        if let ExprKind::Select(cond, a, b) = kind
            && let Some(holds) = constant_value(self.function, cond)
        {
            return if holds == 0 { b } else { a };
        }
        let known = if let ExprKind::Load(pointer, _) = kind {
            self.element(pointer, ty)
        } else {
            folded(self.function, &kind, ty, &|operand| constant_value(self.function, operand))
                .map(|value| constant_of(value, ty))
        };
        self.function.exprs.push(Expr { kind: known.map_or(kind, ExprKind::Const), ty, span })
    }

    /// The element of a constant table that a pointer points to, if its index is a constant.
    fn element(&self, pointer: ExprId, ty: Type) -> Option<Const> {
        let ExprKind::Offset { base, index, scale: 1 } = self.function.exprs[pointer].kind else { return None };
        let ExprKind::ConstBase(table) = self.function.exprs[base].kind else { return None };
        let table = &self.constants[table];
        if ty != Type::Scalar(table.elem) {
            return None;
        }
        table.element(usize::try_from(self.function.int(index)?).ok()?)
    }

    fn constant(&mut self, value: Const, ty: Type, span: Span) -> ExprId {
        self.function.exprs.push(Expr { kind: ExprKind::Const(value), ty, span })
    }
}

/// The value of an expression that depends only on known locals: an integer, or 0 or 1 of a Bool.
pub(crate) fn known_value(function: &Function, values: &Values, id: ExprId) -> Option<i128> {
    let Expr { kind, ty, .. } = &function.exprs[id];
    if let ExprKind::Local(local) = kind {
        return values.get(local).copied();
    }
    if let ExprKind::Select(cond, a, b) = *kind {
        return known_value(function, values, if known_value(function, values, cond)? == 0 { b } else { a });
    }
    folded(function, kind, *ty, &|operand| known_value(function, values, operand))
}

/// The value of an operation on known operands, as far as it is exact.
fn folded(function: &Function, kind: &ExprKind, ty: Type, operand: &dyn Fn(ExprId) -> Option<i128>) -> Option<i128> {
    let type_of = |id: ExprId| function.exprs[id].ty;
    let is_int = |ty: Type| ty.scalar().is_some_and(Scalar::is_int);
    let integer = |id: ExprId| if is_int(type_of(id)) { operand(id).map(Interval::of) } else { None };
    match *kind {
        ExprKind::Const(Const::Int(constant)) if is_int(ty) => Some(constant),
        ExprKind::Const(Const::Bool(constant)) => Some(i128::from(constant)),
        ExprKind::Unary(UnaryOp::Not, a) if ty == Type::BOOL => Some(1 - operand(a)?),
        ExprKind::Binary(BinaryOp::And, a, b) if ty == Type::BOOL => Some(operand(a)? & operand(b)?),
        ExprKind::Binary(BinaryOp::Or, a, b) if ty == Type::BOOL => Some(operand(a)? | operand(b)?),
        ExprKind::Binary(op, a, b) if is_int(ty) => Interval::binary(op, integer(a)?, integer(b)?, ty).single(),
        ExprKind::Convert(a) if ty == Type::BOOL => Some(i128::from(integer(a)?.single()? != 0)),
        ExprKind::Convert(a) if is_int(ty) => integer(a)?.converted(type_of(a), ty).single(),
        ExprKind::Compare(op, a, b) => {
            let (a, b) = (integer(a)?.single()?, integer(b)?.single()?);
            Some(i128::from(match op {
                CompareOp::Eq => a == b,
                CompareOp::Ne => a != b,
                CompareOp::Lt => a < b,
                CompareOp::Le => a <= b,
                CompareOp::Gt => a > b,
                CompareOp::Ge => a >= b,
            }))
        }
        ExprKind::Wrap { index, extent } => {
            let (index, extent) = (integer(index)?.single()?, integer(extent)?.single()?);
            Some(if index < 0 { index + extent } else { index })
        }
        ExprKind::Const(_)
        | ExprKind::Local(_)
        | ExprKind::Special(_)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Select(..)
        | ExprKind::Convert(_)
        | ExprKind::Load(..)
        | ExprKind::Math(..)
        | ExprKind::Offset { .. }
        | ExprKind::ByteOffset { .. }
        | ExprKind::SharedBase(_)
        | ExprKind::ConstBase(_)
        | ExprKind::DynamicShared
        | ExprKind::LocalBase(_) => None,
    }
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

/// The constant with a value that is an integer, or 0 or 1 of a Bool.
fn constant_of(value: i128, ty: Type) -> Const {
    if ty == Type::BOOL { Const::Bool(value != 0) } else { Const::Int(value) }
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
