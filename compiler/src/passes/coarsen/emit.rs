//! Emits the kernel's body for all copies of a thread.
//!
//! [`Emitter::jam`] merges them into one flow: a uniform statement occurs once, a varying one once per copy.
//! [`Emitter::clone`] emits statements for one copy. A divergent branch, and a loop with a divergent exit, are jammed
//! as long as all copies agree, and cloned otherwise. Varying locals, and local arrays, have a replica for each copy
//! but the first, which uses the local itself.

use std::collections::HashMap;

use super::{
    CopyLocals, Plan,
    vary::{Vary, holds_barrier, is_worth_jamming},
};
use crate::{
    analysis::any_expr,
    ir::{
        BinaryOp, Block, Const, Expr, ExprId, ExprKind, Function, Local, LocalArrayId, LocalId, LocalKind, Op,
        Reduction, Stmt, StmtKind, Type, UnaryOp,
    },
    source::Span,
};

/// Coarsens a kernel. Its special registers already have the values of the original launch.
pub(super) fn copies(function: &mut Function, vary: &Vary, plan: &Plan, copies: CopyLocals) {
    let body = std::mem::take(&mut function.body);
    let [x, y, z] = plan.factors.by_axis();
    let numbers: Vec<[u32; 3]> =
        (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z]))).collect();
    let arrays: Vec<Vec<LocalArrayId>> = function
        .local_arrays
        .iter()
        .map(|(id, array)| (id, array.clone()))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|(id, array)| {
            let others = numbers.iter().skip(1).map(|_| function.local_arrays.push(array.clone())).collect::<Vec<_>>();
            std::iter::once(id).chain(others).collect()
        })
        .collect();
    let mut emitter =
        Emitter { function, vary, numbers, copies, arrays, replicas: HashMap::new(), private: Vec::new() };
    let mut out = emitter.params();
    emitter.jam(&body, None, &mut out);
    emitter.function.body = out;
}

pub(super) struct Emitter<'a> {
    pub(super) function: &'a mut Function,
    pub(super) vary: &'a Vary,
    /// By copy: its index along each axis.
    pub(super) numbers: Vec<[u32; 3]>,
    /// By axis: the local with the index of the copy.
    copies: CopyLocals,
    /// By array: the array of each copy.
    arrays: Vec<Vec<LocalArrayId>>,
    /// By local: the local of each copy.
    replicas: HashMap<LocalId, Vec<LocalId>>,
    /// Locals that are uniform in jammed code but private to a copy in clones: no other copy reads them there.
    pub(super) private: Vec<LocalId>,
}

impl Emitter<'_> {
    /// Initializes the replicas of varying parameters with the passed values.
    fn params(&mut self) -> Block {
        let mut out = Block::new();
        let params = self.function.params.clone();
        for param in params.into_iter().filter(|param| self.vary.local(*param)) {
            let span = self.function.span;
            for copy in 1..self.numbers.len() {
                let replica = self.replica(param, copy);
                let value = self.read(param, span);
                out.push(Stmt { kind: StmtKind::Assign(replica, value), span });
            }
        }
        out
    }

    pub(super) fn all(&self) -> std::ops::Range<usize> {
        0..self.numbers.len()
    }

    fn replica(&mut self, local: LocalId, copy: usize) -> LocalId {
        let (function, n) = (&mut *self.function, self.numbers.len());
        let replicas = self.replicas.entry(local).or_insert_with(|| {
            let others = (1..n).map(|copy| {
                let original = function.locals[local].clone();
                function.locals.push(Local { name: format!("{}.{copy}", original.name), ..original })
            });
            std::iter::once(local).chain(others.collect::<Vec<_>>()).collect()
        });
        replicas[copy]
    }

    /// The local of a copy.
    fn local(&mut self, local: LocalId, copy: usize) -> LocalId {
        if self.vary.local(local) || self.private.contains(&local) { self.replica(local, copy) } else { local }
    }

    /// Duplicates an expression for a copy. A uniform expression has the same value for all copies.
    pub(super) fn expr(&mut self, root: ExprId, copy: usize) -> ExprId {
        let Expr { kind, ty, span } = self.function.exprs[root].clone();
        let kind = if let ExprKind::Local(local) = kind {
            let axis = self.copies.iter().position(|of_axis| *of_axis == Some(local));
            match axis {
                Some(axis) => ExprKind::Const(Const::Int(i128::from(self.numbers[copy][axis]))),
                None => ExprKind::Local(self.local(local, copy)),
            }
        } else if let ExprKind::LocalBase(array) = kind {
            ExprKind::LocalBase(self.arrays[array.index()][copy])
        } else {
            kind.map_operands(&mut |operand| self.expr(operand, copy))
        };
        self.function.exprs.push(Expr { kind, ty, span })
    }

    pub(super) fn read(&mut self, local: LocalId, span: Span) -> ExprId {
        let ty = self.function.locals[local].ty;
        self.function.exprs.push(Expr { kind: ExprKind::Local(local), ty, span })
    }

    pub(super) fn bool(&mut self, kind: ExprKind, span: Span) -> ExprId {
        self.function.exprs.push(Expr { kind, ty: Type::BOOL, span })
    }

    pub(super) fn not(&mut self, value: ExprId, span: Span) -> ExprId {
        self.bool(ExprKind::Unary(UnaryOp::Not, value), span)
    }

    pub(super) fn constant(&mut self, value: bool, span: Span) -> ExprId {
        self.bool(ExprKind::Const(Const::Bool(value)), span)
    }

    /// The conjunction or disjunction of flags.
    pub(super) fn together(&mut self, op: BinaryOp, flags: &[LocalId], span: Span) -> ExprId {
        let mut all = None;
        for flag in flags {
            let read = self.read(*flag, span);
            all = Some(match all {
                None => read,
                Some(all) => self.bool(ExprKind::Binary(op, all, read), span),
            });
        }
        match all {
            Some(all) => all,
            None => self.constant(true, span),
        }
    }

    /// An expression without loads: an expression with a load is evaluated here, into a local.
    fn read_now(&mut self, root: ExprId, span: Span, out: &mut Block) -> ExprId {
        if !any_expr(self.function, root, &|kind| matches!(kind, ExprKind::Load(..))) {
            return root;
        }
        let ty = self.function.exprs[root].ty;
        let local = self.function.locals.push(Local::new("t", LocalKind::Temp, ty));
        out.push(Stmt { kind: StmtKind::Assign(local, root), span });
        self.read(local, span)
    }

    pub(super) fn flag(&mut self) -> LocalId {
        self.function.locals.push(Local::new("t", LocalKind::Temp, Type::BOOL))
    }

    /// Evaluates a condition for each copy into a flag. If some copies have returned, only for those that have not.
    pub(super) fn flags(
        &mut self,
        cond: ExprId,
        guards: Option<(&[LocalId], bool)>,
        span: Span,
        out: &mut Block,
    ) -> Vec<LocalId> {
        let mut flags = Vec::new();
        for copy in self.all() {
            let flag = self.flag();
            let value = self.expr(cond, copy);
            let assign = Stmt { kind: StmtKind::Assign(flag, value), span };
            match guards {
                None => out.push(assign),
                Some((guards, without)) => {
                    let value = self.constant(without, span);
                    out.push(Stmt { kind: StmtKind::Assign(flag, value), span });
                    let cond = self.read(guards[copy], span);
                    out.push(branch(cond, vec![assign], Block::new(), span));
                }
            }
            flags.push(flag);
        }
        flags
    }

    /// Emits statements for one copy.
    pub(super) fn clone(&mut self, block: &[Stmt], copy: usize) -> Block {
        block.iter().map(|stmt| self.clone_one(stmt, copy)).collect()
    }

    fn clone_one(&mut self, Stmt { kind, span }: &Stmt, copy: usize) -> Stmt {
        let kind = match kind {
            StmtKind::Assign(local, value) => {
                let value = self.expr(*value, copy);
                StmtKind::Assign(self.local(*local, copy), value)
            }
            StmtKind::Store { pointer, value, align } => {
                let pointer = self.expr(*pointer, copy);
                StmtKind::Store { pointer, value: self.expr(*value, copy), align: *align }
            }
            StmtKind::Op { op, results, args } => {
                let args = args.iter().map(|arg| self.expr(*arg, copy)).collect();
                StmtKind::Op { op: *op, results: self.locals(results, copy), args }
            }
            StmtKind::Call { results, func, args } => {
                let args = args.iter().map(|arg| self.expr(*arg, copy)).collect();
                StmtKind::Call { results: self.locals(results, copy), func: *func, args }
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.expr(*cond, copy);
                let then = self.clone(then, copy);
                StmtKind::If { cond, then, otherwise: self.clone(otherwise, copy) }
            }
            StmtKind::Loop { body, step } => {
                let body = self.clone(body, copy);
                StmtKind::Loop { body, step: self.clone(step, copy) }
            }
            StmtKind::Return(values) => StmtKind::Return(values.iter().map(|value| self.expr(*value, copy)).collect()),
            jump @ (StmtKind::Break | StmtKind::Continue) => jump.clone(),
        };
        Stmt { kind, span: *span }
    }

    fn locals(&mut self, locals: &[LocalId], copy: usize) -> Vec<LocalId> {
        locals.iter().map(|local| self.local(*local, copy)).collect()
    }

    /// Emits statements for all copies, merged. With guards, only copies with a set flag are active, and at least one
    /// is.
    pub(super) fn jam(&mut self, block: &[Stmt], guards: Option<&[LocalId]>, out: &mut Block) {
        match guards {
            None => block.iter().for_each(|stmt| self.jam_one(stmt, None, out)),
            Some(guards) => self.jam_guarded(block, guards, out),
        }
    }

    /// Emits one statement. With guards, it contains a barrier, or it assigns values that are uniform over the copies.
    pub(super) fn jam_one(&mut self, stmt: &Stmt, guards: Option<&[LocalId]>, out: &mut Block) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Assign(local, _) if !self.vary.local(*local) => out.push(self.clone_one(stmt, 0)),
            StmtKind::Store { pointer, value, .. }
                if !self.vary.expr(self.function, *pointer) && !self.vary.expr(self.function, *value) =>
            {
                out.push(self.clone_one(stmt, 0));
            }
            StmtKind::Op { op: Op::Barrier, .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {
                out.push(self.clone_one(stmt, 0));
            }
            StmtKind::Op { op: Op::BarrierReduce(reduction), results, args } => {
                self.reduce(*reduction, results.first().copied(), args, guards, span, out);
            }
            StmtKind::Store { pointer, value, align } => {
                // All copies load before the first one stores, so that their accesses are adjacent.
                let mut stores = Vec::new();
                for copy in self.all() {
                    let [pointer, value] = [*pointer, *value].map(|root| self.expr(root, copy));
                    let [pointer, value] = [pointer, value].map(|root| self.read_now(root, span, out));
                    stores.push(Stmt { kind: StmtKind::Store { pointer, value, align: *align }, span });
                }
                out.extend(stores);
            }
            StmtKind::Assign(..) | StmtKind::Op { .. } | StmtKind::Call { .. } => {
                for copy in self.all() {
                    out.push(self.clone_one(stmt, copy));
                }
            }
            StmtKind::If { cond, then, otherwise } => {
                if !self.vary.expr(self.function, *cond) {
                    let cond = self.expr(*cond, 0);
                    let mut arms = [Block::new(), Block::new()];
                    self.jam(then, guards, &mut arms[0]);
                    self.jam(otherwise, guards, &mut arms[1]);
                    let [then, otherwise] = arms;
                    out.push(branch(cond, then, otherwise, span));
                } else if self.vary.is_guard(stmt) {
                    self.guard(*cond, then, otherwise, guards, span, out);
                } else if holds_barrier(then) || holds_barrier(otherwise) {
                    self.part(*cond, [then, otherwise], guards, span, out);
                } else {
                    self.agree(stmt, *cond, then, otherwise, out);
                }
            }
            StmtKind::Loop { body, step } => {
                if !self.vary.splits(self.function, body) {
                    let mut parts = [Block::new(), Block::new()];
                    self.jam(body, guards, &mut parts[0]);
                    self.jam(step, guards, &mut parts[1]);
                    let [body, step] = parts;
                    out.push(Stmt { kind: StmtKind::Loop { body, step }, span });
                } else if holds_barrier(body) {
                    self.jam_masked_loop([body, step], guards, span, out);
                } else {
                    self.jam_divergent(stmt, body, step, out);
                }
            }
        }
    }

    /// A divergent branch: if all copies take the longer arm, it is jammed there.
    fn agree(&mut self, stmt: &Stmt, cond: ExprId, then: &[Stmt], otherwise: &[Stmt], out: &mut Block) {
        let span = stmt.span;
        let (yes, no) = (is_worth_jamming(self.function, then), is_worth_jamming(self.function, otherwise));
        if !yes && !no {
            for copy in self.all() {
                out.push(self.clone_one(stmt, copy));
            }
            return;
        }
        let flags = self.flags(cond, None, span, out);
        let mut divergent = Block::new();
        for copy in self.all() {
            let cond = self.read(flags[copy], span);
            let (then, otherwise) = (self.clone(then, copy), self.clone(otherwise, copy));
            divergent.push(branch(cond, then, otherwise, span));
        }
        // If both arms are worth jamming, the first one is assumed to be the common case.
        let mut jammed = Block::new();
        let cond = if yes {
            self.jam(then, None, &mut jammed);
            self.together(BinaryOp::And, &flags, span)
        } else {
            self.jam(otherwise, None, &mut jammed);
            let any = self.together(BinaryOp::Or, &flags, span);
            self.not(any, span)
        };
        out.push(branch(cond, jammed, divergent, span));
    }

    /// A loop with a divergent exit. If its only exit is at its start, the loop is jammed until the first copy exits;
    /// then each other copy runs a loop of its own. Other loops are cloned.
    fn jam_divergent(&mut self, stmt: &Stmt, body: &[Stmt], step: &[Stmt], out: &mut Block) {
        let span = stmt.span;
        if let Some((test, rest)) = body.split_first()
            && let Some(cond) = test.kind.exit_condition()
            && !self.vary.splits(self.function, rest)
            && !leaves(rest)
        {
            let mut jammed = Block::new();
            let flags = self.flags(cond, None, span, &mut jammed);
            let any = self.together(BinaryOp::Or, &flags, span);
            jammed.push(branch(any, vec![Stmt { kind: StmtKind::Break, span }], Block::new(), span));
            self.jam(rest, None, &mut jammed);
            let mut jammed_step = Block::new();
            self.jam(step, None, &mut jammed_step);
            out.push(Stmt { kind: StmtKind::Loop { body: jammed, step: jammed_step }, span });
        }
        for copy in self.all() {
            out.push(self.clone_one(stmt, copy));
        }
    }

    /// A barrier that reduces values of the threads: one per copy; their results are combined.
    pub(super) fn reduce(
        &mut self,
        reduction: Reduction,
        result: Option<LocalId>,
        args: &[ExprId],
        guards: Option<&[LocalId]>,
        span: Span,
        out: &mut Block,
    ) {
        let Some(result) = result else {
            out.push(Stmt { kind: StmtKind::Op { op: Op::Barrier, results: Vec::new(), args: Vec::new() }, span });
            return;
        };
        let (op, without) = match reduction {
            Reduction::Count => (BinaryOp::Add, false),
            Reduction::And => (BinaryOp::And, true),
            Reduction::Or => (BinaryOp::Or, false),
        };
        let mut all = None;
        for arg in args {
            let flags = self.flags(*arg, guards.map(|guards| (guards, without)), span, out);
            for flag in flags {
                let of_copy = self.function.locals.push(Local::new("t", LocalKind::Temp, Type::I32));
                let arg = self.read(flag, span);
                let kind = StmtKind::Op { op: Op::BarrierReduce(reduction), results: vec![of_copy], args: vec![arg] };
                out.push(Stmt { kind, span });
                let value = self.read(of_copy, span);
                all = Some(match all {
                    None => value,
                    Some(all) => {
                        self.function.exprs.push(Expr { kind: ExprKind::Binary(op, all, value), ty: Type::I32, span })
                    }
                });
            }
        }
        let Some(all) = all else { return };
        if !self.vary.local(result) {
            out.push(Stmt { kind: StmtKind::Assign(result, all), span });
            return;
        }
        let shared = self.function.locals.push(Local::new("t", LocalKind::Temp, Type::I32));
        out.push(Stmt { kind: StmtKind::Assign(shared, all), span });
        for copy in self.all() {
            let (local, value) = (self.local(result, copy), self.read(shared, span));
            let mut assign = Stmt { kind: StmtKind::Assign(local, value), span };
            if let Some(guards) = guards {
                let cond = self.read(guards[copy], span);
                assign = branch(cond, vec![assign], Block::new(), span);
            }
            out.push(assign);
        }
    }
}

/// Whether some statements exit the enclosing loop, or skip the rest of its iteration.
pub(super) fn leaves(block: &[Stmt]) -> bool {
    crate::analysis::escapes(block).any()
}

pub(super) fn branch(cond: ExprId, then: Block, otherwise: Block, span: Span) -> Stmt {
    Stmt { kind: StmtKind::If { cond, then, otherwise }, span }
}

/// Whether a statement can be part of a run, which each copy executes under its guard.
pub(super) fn is_free(stmt: &Stmt) -> bool {
    !holds_barrier(std::slice::from_ref(stmt)) && !leaves(std::slice::from_ref(stmt))
}
