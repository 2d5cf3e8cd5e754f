//! Full unrolling: writes out the iterations of a counted loop with constant bounds, and folds constants in the copies.
//!
//! ```text
//! for q in range(9):                            sum += f[0, y % h]
//!     sum += f[q, (y - cy[q]) % h]              sum += f[1, (y - 1) % h]
//!                                               …
//! ```
//!
//! Legal if the loop's only jump is its exit test and it contains no operation ([`StmtKind::Op`]). Locals that are
//! mentioned only in the body are renamed in each copy.
//!
//! Profitable for loops that read a constant table (`cy` above): the elements become constants, so that index-set
//! splitting can recognize which neighbors an iteration accesses. LLVM would unroll the loop only after index-set
//! splitting. [`write_out_short`] also unrolls other loops of few iterations.

use std::collections::{BTreeMap, BTreeSet};

use weft_artifact::Scalar;

use crate::{
    analysis::{Interval, any_expr, escapes, for_each_mention},
    backend::host::plan::analysis::structure::counter_by,
    ir::{
        Arena, Block, Const, ConstantArray, Expr, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type,
        for_each_expr_of_stmt, for_each_stmt, for_each_stmt_mut,
    },
    source::Span,
};

/// Highest trip count of an unrolled loop.
const MAX_TRIP_COUNT: i128 = 32;

/// Most expressions of all copies of a body together.
const MAX_EXPRS: i128 = 1200;

/// Highest trip count of a loop that [`write_out_short`] unrolls though it reads no table.
const MAX_SHORT_TRIP_COUNT: i128 = 4;

/// Unrolls the loops of a kernel's body that read a constant table.
pub(crate) fn write_out(function: &mut Function, constants: &Arena<ConstantArray>, body: &mut Block) {
    all(function, constants, body, false);
}

/// Also unrolls loops of few iterations.
pub(crate) fn write_out_short(function: &mut Function, constants: &Arena<ConstantArray>, body: &mut Block) {
    all(function, constants, body, true);
}

fn all(function: &mut Function, constants: &Arena<ConstantArray>, body: &mut Block, short: bool) {
    let mut mentions = vec![0_u32; function.locals.len()];
    for_each_mention(function, body, &mut |local| mentions[local.index()] += 1);
    Unroller { function, constants, mentions, short }.list(body);
}

/// Copies a body, with new locals for those that it assigns and constants for the locals in `values`.
pub(crate) fn copied(
    function: &mut Function,
    constants: &Arena<ConstantArray>,
    body: &Block,
    values: BTreeMap<LocalId, i128>,
) -> Block {
    let mut own = BTreeSet::new();
    for_each_stmt(body, &mut |stmt| own.extend(stmt.kind.assigned()));
    let substitution = Substitution::of(function, &own.into_iter().collect::<Vec<_>>(), values);
    let mut all = Unroller { function, constants, mentions: Vec::new(), short: false };
    body.iter().map(|stmt| all.stmt(&substitution, stmt)).collect()
}

/// The last value that was assigned to a local, if only assignments follow. Such assignments are conversions of
/// variables whose type the loop changes, which the front end emits before the loop.
fn last_value(before: &[Stmt], local: LocalId) -> Option<ExprId> {
    let mut assigned = before.iter().rev().map_while(|stmt| match stmt.kind {
        StmtKind::Assign(to, value) => Some((to, value)),
        StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => None,
    });
    assigned.find_map(|(to, value)| (to == local).then_some(value))
}

struct Unroller<'a> {
    function: &'a mut Function,
    constants: &'a Arena<ConstantArray>,
    /// How often the body mentions a local, by index, for the locals that it had at first.
    mentions: Vec<u32>,
    /// Whether to unroll other loops of few iterations, too.
    short: bool,
}

/// A loop to unroll.
struct UnrolledLoop {
    counter: LocalId,
    /// The counter's value in each iteration.
    values: Vec<i128>,
    /// The counter's value after the loop.
    end: i128,
    /// Locals that an iteration assigns exactly once, by a statement of the body itself.
    once: Vec<LocalId>,
    /// Those of them that are not mentioned outside of the body and are assigned before they are read: each copy has
    /// its own.
    own: Vec<LocalId>,
}

/// The substitutions for the locals of a copy: new locals and constants.
struct Substitution {
    names: BTreeMap<LocalId, LocalId>,
    values: BTreeMap<LocalId, i128>,
}

impl Substitution {
    /// Makes new locals for those in `own`.
    fn of(function: &mut Function, own: &[LocalId], values: BTreeMap<LocalId, i128>) -> Self {
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
            if let Some((unrolled, body)) = self.unrollable(&out, &stmt) {
                let rest: Vec<Stmt> = body[1..].to_vec();
                for &value in &unrolled.values {
                    self.copy_iteration(&unrolled, value, &rest, &mut out);
                }
                let ty = self.function.locals[unrolled.counter].ty;
                let end = self.constant(Const::Int(unrolled.end), ty, stmt.span);
                out.push(Stmt { kind: StmtKind::Assign(unrolled.counter, end), span: stmt.span });
                continue;
            }
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.list(inner);
            }
            out.push(stmt);
        }
        *list = out;
    }

    /// Decides whether to unroll a statement that follows `before`. Returns the loop and its body.
    fn unrollable<'a>(&self, before: &[Stmt], stmt: &'a Stmt) -> Option<(UnrolledLoop, &'a Block)> {
        let StmtKind::Loop { body, step } = &stmt.kind else { return None };
        let (counter, limit, by) = counter_by(self.function, body, step)?;
        let (first, end) = (self.function.int(last_value(before, counter)?)?, self.function.int(limit)?);
        let mut exprs = 0;
        let mut reads_table = false;
        let rest = &body[1..];
        let mut simple = !escapes(rest).any();
        for_each_stmt(rest, &mut |inner| {
            simple &= !matches!(inner.kind, StmtKind::Op { .. });
            for_each_expr_of_stmt(self.function, &inner.kind, &mut |id| {
                exprs += 1;
                reads_table |= self.reads_table(id);
            });
        });
        let trip_count = (end - first).div_euclid(by) + i128::from((end - first).rem_euclid(by) != 0);
        let worth = reads_table || (self.short && trip_count <= MAX_SHORT_TRIP_COUNT);
        if !simple || !worth || !(1..=MAX_TRIP_COUNT).contains(&trip_count) || trip_count * exprs > MAX_EXPRS {
            return None;
        }
        // The counter's value after the loop may overflow its type.
        let most = if self.function.locals[counter].ty == Type::I64 { i64::MAX } else { i64::from(i32::MAX) };
        let end = first + trip_count * by;
        if end > i128::from(most) {
            return None;
        }
        let once = assigned_once(rest);
        let own = self.own(rest, &once);
        Some((
            UnrolledLoop {
                counter,
                values: (0..trip_count).map(|iteration| first + iteration * by).collect(),
                end,
                once,
                own,
            },
            body,
        ))
    }

    /// Whether an expression loads an element of a constant table at an index that reads a local.
    fn reads_table(&self, id: ExprId) -> bool {
        let ExprKind::Load(pointer, _) = self.function.exprs[id].kind else { return false };
        let ExprKind::Offset { base, index, .. } = self.function.exprs[pointer].kind else { return false };
        matches!(self.function.exprs[base].kind, ExprKind::ConstBase(_))
            && any_expr(self.function, index, &|kind| matches!(kind, ExprKind::Local(_)))
    }

    /// Locals that each iteration assigns exactly once and before it reads them, and that the kernel mentions only in
    /// this body.
    fn own(&self, iteration: &[Stmt], once: &[LocalId]) -> Vec<LocalId> {
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

    fn copy_iteration(&mut self, unrolled: &UnrolledLoop, value: i128, body: &[Stmt], out: &mut Block) {
        let mut substitution =
            Substitution::of(self.function, &unrolled.own, BTreeMap::from([(unrolled.counter, value)]));
        for stmt in body {
            let copy = self.stmt(&substitution, stmt);
            if let (StmtKind::Assign(local, _), StmtKind::Assign(_, value)) = (&stmt.kind, &copy.kind)
                && let (Some(known), true) = (self.function.int(*value), unrolled.once.contains(local))
            {
                substitution.values.insert(*local, known);
            }
            out.push(copy);
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
                Some(&value) => ExprKind::Const(Const::Int(value)),
                None => ExprKind::Local(substitution.named(local)),
            };
            return self.function.exprs.push(Expr { kind, ty, span });
        }
        let kind = kind.map_operands(&mut |operand| self.expr(substitution, operand));
        let known = self.known(&kind, ty);
        self.function.exprs.push(Expr { kind: known.map_or(kind, ExprKind::Const), ty, span })
    }

    /// The value of an operation on constants.
    fn known(&self, kind: &ExprKind, ty: Type) -> Option<Const> {
        let integer = |id: ExprId| {
            let is_int = self.function.exprs[id].ty.scalar().is_some_and(Scalar::is_int);
            self.function.int(id).filter(|_| is_int).map(Interval::of)
        };
        let value = match *kind {
            ExprKind::Binary(op, a, b) if ty.scalar()?.is_int() => Interval::binary(op, integer(a)?, integer(b)?, ty),
            ExprKind::Convert(a) if ty.scalar()?.is_int() => integer(a)?.converted(self.function.exprs[a].ty, ty),
            ExprKind::Wrap { index, extent } => {
                let (index, extent) = (integer(index)?.single()?, integer(extent)?.single()?);
                Interval::of(if index < 0 { index + extent } else { index })
            }
            ExprKind::Load(pointer, _) => return self.element(pointer, ty),
            ExprKind::Const(_)
            | ExprKind::Local(_)
            | ExprKind::Special(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Compare(..)
            | ExprKind::Select(..)
            | ExprKind::Convert(_)
            | ExprKind::Math(..)
            | ExprKind::Offset { .. }
            | ExprKind::ByteOffset { .. }
            | ExprKind::SharedBase(_)
            | ExprKind::ConstBase(_)
            | ExprKind::DynamicShared
            | ExprKind::LocalBase(_) => return None,
        };
        value.single().map(Const::Int)
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
