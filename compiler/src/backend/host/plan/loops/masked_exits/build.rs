//! Builders for masked loops: they split the exit tests of a loop, rename its counter, and copy its statements.

use crate::{
    analysis::for_each_mention,
    backend::host::plan::analysis::liveness::Uses,
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId,
        LocalKind, Stmt, StmtKind, Type, UnaryOp, for_each_expr, for_each_expr_of_block, for_each_stmt,
    },
    source::Span,
};

/// Builds statements with one span.
pub(super) struct Build<'a> {
    pub(super) function: &'a mut Function,
    pub(super) span: Span,
}

impl Build<'_> {
    pub(super) fn stmt(&self, kind: StmtKind) -> Stmt {
        Stmt { kind, span: self.span }
    }

    fn kind(&self, id: ExprId) -> &ExprKind {
        &self.function.exprs[id].kind
    }

    pub(super) fn push(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span: self.span })
    }

    pub(super) fn local(&mut self, name: &str) -> LocalId {
        self.function.locals.push(Local::new(name, LocalKind::Variable, Type::I32))
    }

    pub(super) fn is_set(&mut self, local: LocalId) -> ExprId {
        let value = self.read(local);
        let zero = self.push(ExprKind::Const(Const::Int(0)), Type::I32);
        self.push(ExprKind::Compare(CompareOp::Ne, value, zero), Type::BOOL)
    }

    pub(super) fn assign(&mut self, local: LocalId, value: i128) -> Stmt {
        let value = self.push(ExprKind::Const(Const::Int(value)), Type::I32);
        self.stmt(StmtKind::Assign(local, value))
    }

    /// `to = from`.
    pub(super) fn gets(&mut self, to: LocalId, from: LocalId) -> Stmt {
        let value = self.read(from);
        self.stmt(StmtKind::Assign(to, value))
    }

    pub(super) fn read(&mut self, local: LocalId) -> ExprId {
        self.push(ExprKind::Local(local), self.function.locals[local].ty)
    }

    /// `if local != 0: then`.
    pub(super) fn when(&mut self, local: LocalId, then: Block) -> Stmt {
        let cond = self.is_set(local);
        self.stmt(StmtKind::If { cond, then, otherwise: Block::new() })
    }

    /// The loop that runs one lane's remaining iterations. It starts again at the first statement of the current
    /// iteration, which the lane may have run before. `own` holds the counter of all lanes, and the lane's own counter.
    pub(super) fn alone(&mut self, iteration: &Block, step: &Block, own: Option<(LocalId, LocalId)>) -> Block {
        let (mut body, mut step) = (self.again(iteration), self.again(step));
        let mut all = Block::new();
        if let Some((is_uniform, alone)) = own {
            self.rename(&mut body, is_uniform, alone);
            self.rename(&mut step, is_uniform, alone);
            all.push(self.gets(alone, is_uniform));
        }
        all.push(self.stmt(StmtKind::Loop { body, step }));
        all
    }

    /// Replaces a local in statements.
    pub(super) fn rename(&mut self, list: &mut Block, from: LocalId, to: LocalId) {
        let mut reads = Vec::new();
        for_each_expr_of_block(self.function, list, &mut |id| reads.push(id));
        for id in reads {
            if self.function.local(id) == Some(from) {
                self.function.exprs[id].kind = ExprKind::Local(to);
            }
        }
        for stmt in list {
            stmt.kind.for_each_assigned_mut(&mut |local| *local = if *local == from { to } else { *local });
        }
    }

    /// Replaces reads of copies of the counter by reads of the counter: lanes that have left do not assign the copies.
    pub(super) fn read_counter(&mut self, iteration: &mut Block, counter: LocalId, mentions: &[u32]) {
        let mut at = 0;
        while let Some(stmt) = iteration.get(at) {
            at += 1;
            let StmtKind::Assign(local, value) = stmt.kind else { continue };
            let of = if let ExprKind::Convert(of) = self.function.exprs[value].kind { of } else { value };
            let (mut assigned, mut inside) = (0, 0);
            for_each_stmt(iteration, &mut |stmt| {
                assigned += stmt.kind.assigned().iter().filter(|&&to| to == local).count();
            });
            for_each_mention(self.function, iteration, &mut |seen| inside += u32::from(seen == local));
            if self.function.local(of) != Some(counter) || !legal!("masked_exits.one-copy", assigned == 1) {
                continue;
            }
            let rest = iteration.split_off(at);
            let mut reads = Vec::new();
            for_each_expr_of_block(self.function, &rest, &mut |id| reads.push(id));
            reads.retain(|&id| self.function.local(id) == Some(local));
            for &id in &reads {
                let read = self.function.copy_expr(value);
                self.function.exprs[id].kind = self.function.exprs[read].kind.clone();
            }
            let is_read_after = mentions.get(local.index()) != Some(&inside);
            // Code that reads the copy before this assignment needs another one before the loop.
            if legal!("masked_exits.copy-in-loop", !is_read_after) {
                iteration.pop();
                at -= 1;
            }
            iteration.extend(rest);
        }
    }

    /// Splits a short-circuit test that is stored in a local, `if a: t = b`, `else: t = False`, `if not t: break`, into
    /// two exits: `if not a: break`, `if not b: break`.
    pub(super) fn named_test(&mut self, iteration: &mut Block, mentions: &[u32]) -> bool {
        let [
            Stmt { kind: StmtKind::If { cond, then: first, otherwise: second }, .. },
            Stmt { kind: StmtKind::If { cond: test, then, otherwise }, .. },
            ..,
        ] = iteration.as_slice()
        else {
            return false;
        };
        let ([first], [second]) = (first.as_slice(), second.as_slice()) else { return false };
        let (StmtKind::Assign(name, value), StmtKind::Assign(other, no)) = (&first.kind, &second.kind) else {
            return false;
        };
        let ExprKind::Unary(UnaryOp::Not, holds) = self.function.exprs[*test].kind else { return false };
        if name != other
            || self.function.local(holds) != Some(*name)
            || self.function.exprs[*no].kind != ExprKind::Const(Const::Bool(false))
            || !legal!("masked_exits.test-in-exit", mentions.get(name.index()) == Some(&3))
            || !is_exit(then, otherwise)
        {
            return false;
        }
        let (parts, then) = ([*cond, *value], then.clone());
        self.tests_of(iteration, 2, parts, then);
        true
    }

    /// Splits a first exit test `if not (a and b): break` into `if not a: break`, `if not b: break`.
    pub(super) fn part_test(&mut self, iteration: &mut Block) -> bool {
        let Some(Stmt { kind: StmtKind::If { cond, then, otherwise }, .. }) = iteration.first() else { return false };
        let (cond, then) = (*cond, then.clone());
        if !is_exit(&then, otherwise) {
            return false;
        }
        let ExprKind::Unary(UnaryOp::Not, holds) = self.function.exprs[cond].kind else { return false };
        let parts = match self.function.class(holds) {
            Class::Arith(Arith::Select(a, b, no)) if *self.kind(no) == ExprKind::Const(Const::Bool(false)) => [a, b],
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) => [a, b],
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => return false,
        };
        self.tests_of(iteration, 1, parts, then);
        true
    }

    /// Replaces the first statements of the body by two exit tests.
    fn tests_of(&mut self, iteration: &mut Block, replaced: usize, [first, second]: [ExprId; 2], then: Block) {
        let again = self.again(&then);
        let tests = [(first, again), (second, then)].map(|(holds, then)| {
            let cond = self.push(ExprKind::Unary(UnaryOp::Not, holds), Type::BOOL);
            self.stmt(StmtKind::If { cond, then, otherwise: Block::new() })
        });
        iteration.splice(..replaced, tests);
    }

    /// Copies statements with new expressions.
    pub(super) fn again(&mut self, list: &[Stmt]) -> Block {
        let mut copied = |stmt: &Stmt| stmt.kind.clone().map_exprs(&mut |id| self.function.copy_expr(id));
        list.iter().map(|stmt| Stmt { kind: copied(stmt), span: stmt.span }).collect()
    }

    /// The number of leading statements that are exit tests and computations without loads, if running them twice has
    /// the same effect as running them once. Loads pay after the test for active lanes, where they need no mask.
    pub(super) fn tests(&self, list: &[Stmt]) -> usize {
        let loads = |root: ExprId| {
            let mut loads = false;
            for_each_expr(self.function, root, &mut |id| {
                loads |= matches!(self.function.exprs[id].kind, ExprKind::Load(..));
            });
            loads
        };
        let computes = |stmt: &&Stmt| {
            let assigned = if let StmtKind::Assign(_, value) = stmt.kind { Some(value) } else { None };
            assigned.or_else(|| stmt.kind.exit_condition()).is_some_and(|root| !loads(root))
        };
        let first = list.iter().take_while(computes).count();
        let tests =
            list[..first].iter().rposition(|stmt| stmt.kind.exit_condition().is_some()).map_or(0, |last| last + 1);
        let uses = Uses::of(self.function, &list[..tests]);
        let again =
            uses.assigned.iter().all(|local| legal!("masked_exits.tests-run-again", !uses.exposed.contains(local)));
        if again && tests < list.len() { tests } else { 0 }
    }

    /// Hoists loads that every active lane makes from a uniform address. Takes them from the assignments before the
    /// first branch, and from its condition, and replaces each by a read of a new local. Returns the assignments of
    /// these locals.
    pub(super) fn loads_of_all(
        &mut self,
        list: &mut Block,
        is_row_uniform: &dyn Fn(&Function, ExprId) -> bool,
    ) -> Block {
        let mut values: Vec<(LocalId, ExprId)> = Vec::new();
        let mut loads = Block::new();
        for stmt in list {
            let root = match &stmt.kind {
                StmtKind::Assign(_, value) => *value,
                StmtKind::If { cond, .. } => *cond,
                StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => break,
            };
            let mut found = Vec::new();
            self.all_loads(root, &mut found);
            for id in found {
                let Expr { ty, .. } = self.function.exprs[id];
                let Some(value) = self.copy(id, &values) else { continue };
                let ExprKind::Load(pointer, _) = self.function.exprs[value].kind else { continue };
                if !legal!("masked_exits.uniform-load", is_row_uniform(self.function, pointer)) {
                    continue;
                }
                let local = self.function.locals.push(Local::new("of_all", LocalKind::Variable, ty));
                loads.push(self.stmt(StmtKind::Assign(local, value)));
                self.function.exprs[id].kind = ExprKind::Local(local);
            }
            let StmtKind::Assign(local, value) = stmt.kind else { break };
            values.retain(|&(of, _)| of != local);
            values.push((local, value));
        }
        loads
    }

    /// The loads of an expression. All of its operands are evaluated.
    fn all_loads(&self, root: ExprId, found: &mut Vec<ExprId>) {
        match self.function.exprs[root].kind.class() {
            Class::Load(pointer) => {
                self.all_loads(pointer, found);
                found.push(root);
            }
            Class::Arith(arith) => {
                arith.operands().iter().for_each(|&operand| self.all_loads(operand, found));
            }
            Class::Address { base, by, .. } => {
                self.all_loads(base, found);
                self.all_loads(by, found);
            }
            Class::Leaf(_) => {}
        }
    }

    /// Copies an expression and substitutes the values of the locals assigned before. Returns `None` if such a value
    /// may have changed since.
    fn copy(&mut self, root: ExprId, values: &[(LocalId, ExprId)]) -> Option<ExprId> {
        let Expr { kind, ty, .. } = self.function.exprs[root].clone();
        if let Class::Leaf(Leaf::Local(local)) = kind.class()
            && let Some(&(_, value)) = values.iter().find(|&&(of, _)| of == local)
        {
            let mut stays = true;
            for_each_expr(self.function, value, &mut |id| {
                stays &= match self.function.class(id) {
                    Class::Leaf(Leaf::Local(read)) => {
                        legal!("masked_exits.same-address", values.iter().all(|&(of, _)| of != read))
                    }
                    Class::Leaf(_) | Class::Arith(Arith::Convert(_) | Arith::Binary(..)) => true,
                    Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
                };
            });
            return if stays { self.copy(value, &[]) } else { None };
        }
        let mut whole = true;
        let kind = kind.map_operands(&mut |operand| {
            self.copy(operand, values).unwrap_or_else(|| {
                whole = false;
                operand
            })
        });
        whole.then(|| self.push(kind, ty))
    }
}

/// Whether a branch only leaves the loop, possibly after some assignments.
pub(crate) fn is_exit(then: &[Stmt], otherwise: &[Stmt]) -> bool {
    let Some((last, rest)) = then.split_last() else { return false };
    let plain = rest.iter().all(|stmt| matches!(stmt.kind, StmtKind::Assign(..)));
    plain && matches!(last.kind, StmtKind::Break) && otherwise.is_empty()
}
