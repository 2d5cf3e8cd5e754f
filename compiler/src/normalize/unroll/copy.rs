//! Copies of statements with other locals, and with constants in place of locals whose values are known.

use std::collections::{BTreeMap, BTreeSet};

use super::{MAX_SHORT_TRIP_COUNT, UnrolledLoop, UnrolledLoops, Unroller};
use crate::{
    analysis::escapes,
    ir::{
        Arena, BinaryOp, Block, Const, ConstantArray, Expr, ExprId, ExprKind, Function, LocalId, Stmt, StmtKind, Type,
        for_each_stmt,
    },
    normalize::fold_constants::{Values, constant_of, constant_value, folded, is_division, known_value},
    source::Span,
};

/// Copies a body, with new locals for those that it assigns and constants for the locals in `values`.
pub(crate) fn copied(function: &mut Function, constants: &Arena<ConstantArray>, body: &Block, values: Values) -> Block {
    let mut own = BTreeSet::new();
    for_each_stmt(body, &mut |stmt| own.extend(stmt.kind.assigned()));
    let substitution = Substitution::of(function, &own.into_iter().collect::<Vec<_>>(), values);
    let short = UnrolledLoops::Short { max_trip_count: MAX_SHORT_TRIP_COUNT };
    Unroller::new(function, constants, short).block(&substitution, body)
}

/// The substitutions for the locals of a copy: new locals and constants.
#[derive(Clone)]
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
    pub(super) fn copy_iteration(
        &mut self,
        unrolled: &UnrolledLoop,
        values: &Values,
        iteration: &[Stmt],
        out: &mut Block,
    ) {
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
            let length = out.len();
            self.copy(&mut substitution, stmt, out);
            if let StmtKind::Assign(local, _) = stmt.kind
                && unrolled.own.contains(&local)
                && substitution.values.contains_key(&local)
            {
                // The constant replaces each read of the copy's own local.
                out.truncate(length);
            }
        }
    }

    fn block(&mut self, substitution: &Substitution, block: &[Stmt]) -> Block {
        let (mut substitution, mut out) = (substitution.clone(), Block::with_capacity(block.len()));
        for stmt in block {
            self.copy(&mut substitution, stmt, &mut out);
        }
        out
    }

    /// Appends a copy of a statement; of a branch whose condition is a constant, the statements that run, if it has no
    /// jumps. The substitution then has the constants that the statement assigns.
    fn copy(&mut self, substitution: &mut Substitution, stmt: &Stmt, out: &mut Block) {
        let mut assigned = Vec::new();
        for_each_stmt(std::slice::from_ref(stmt), &mut |inner| assigned.extend(inner.kind.assigned()));
        let forget = |substitution: &mut Substitution| {
            for local in &assigned {
                substitution.values.remove(local);
            }
        };
        let kind = match &stmt.kind {
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.expr(substitution, *cond);
                if let Some(holds) = constant_value(self.function, cond)
                    && !escapes(std::slice::from_ref(stmt)).any()
                {
                    self.folded += 1;
                    let runs = if holds == 0 { otherwise } else { then };
                    return runs.iter().for_each(|stmt| self.copy(substitution, stmt, out));
                }
                let (then, otherwise) = (self.block(substitution, then), self.block(substitution, otherwise));
                forget(substitution);
                if then.is_empty() && otherwise.is_empty() {
                    return;
                }
                StmtKind::If { cond, then, otherwise }
            }
            StmtKind::Loop { body, step } => {
                forget(substitution);
                StmtKind::Loop { body: self.block(substitution, body), step: self.block(substitution, step) }
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {
                let mut kind = stmt.kind.clone().map_exprs(&mut |id| self.expr(substitution, id));
                kind.for_each_assigned_mut(&mut |local| *local = substitution.named(*local));
                forget(substitution);
                if let (&StmtKind::Assign(local, _), &StmtKind::Assign(to, value)) = (&stmt.kind, &kind) {
                    if self.function.exprs[value].kind == ExprKind::Local(to) {
                        return;
                    }
                    if let Some(known) = constant_value(self.function, value) {
                        substitution.values.insert(local, known);
                    }
                }
                kind
            }
        };
        out.push(Stmt { kind, span: stmt.span });
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
        if let ExprKind::Select(cond, a, b) = kind
            && let Some(holds) = known_value(self.function, &substitution.values, cond)
        {
            self.folded += 1;
            return self.expr(substitution, if holds == 0 { b } else { a });
        }
        let kind = kind.map_operands(&mut |operand| self.expr(substitution, operand));
        if let Some(same) = self.neutral(&kind) {
            return same;
        }
        let known = if let ExprKind::Load(pointer, _) = kind {
            self.element(pointer, ty)
        } else {
            folded(self.function, &kind, ty, &|operand| constant_value(self.function, operand))
                .map(|value| constant_of(value, ty))
        };
        self.folded += usize::from(known.is_some() && (matches!(kind, ExprKind::Load(..)) || is_division(&kind)));
        self.function.exprs.push(Expr { kind: known.map_or(kind, ExprKind::Const), ty, span })
    }

    /// The operand that an integer operation returns whatever the other one is: `x + 0`, `x * 1`, `0 * x`.
    fn neutral(&self, kind: &ExprKind) -> Option<ExprId> {
        let ExprKind::Binary(op, a, b) = *kind else { return None };
        let is = |id: ExprId, value: i128| {
            self.function.exprs[id].ty != Type::BOOL && constant_value(self.function, id) == Some(value)
        };
        let adds = matches!(op, BinaryOp::Add | BinaryOp::AddExact);
        let multiplies = matches!(op, BinaryOp::Mul | BinaryOp::MulExact);
        if adds && is(a, 0) || multiplies && (is(a, 1) || is(b, 0)) {
            Some(b)
        } else if adds && is(b, 0) || multiplies && (is(b, 1) || is(a, 0)) {
            Some(a)
        } else {
            None
        }
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

    pub(super) fn constant(&mut self, value: Const, ty: Type, span: Span) -> ExprId {
        self.function.exprs.push(Expr { kind: ExprKind::Const(value), ty, span })
    }
}
