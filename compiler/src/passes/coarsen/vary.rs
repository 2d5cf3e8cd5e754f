//! Uniformity analysis: which locals and which control flow are the same for the copies of a thread.
//!
//! A value varies if it depends on the number of the copy, on memory that the kernel may write, or on the result of an
//! operation or a call. A local varies if it is assigned a varying value, or where some running copies may be inactive:
//! in a divergent branch or loop. All locals start as uniform; the analysis iterates to a fixpoint. The body has no
//! returns by now ([`super::returns`]).
//!
//! A *guard* is a branch with a barrier in one arm, after which a copy that takes the other arm is done: the other arm
//! has no barrier, and no statement follows. Inactive copies do not count in the arm with the barrier.

use std::{collections::HashSet, ptr};

use weft_artifact::SlotSource;

use super::CopyLocals;
use crate::{
    analysis::for_each_mention,
    ir::{
        Arith, Base, Class, ExprId, FuncId, Function, Leaf, LocalId, Module, Op, Stmt, StmtKind, SyncScope,
        for_each_expr, for_each_stmt,
    },
};

/// How many definitions a pointer is traced back through.
const DEPTH: usize = 8;

/// The result for a kernel.
#[derive(Debug)]
pub(super) struct Vary {
    /// By the local's index: it may differ between copies.
    locals: Vec<bool>,
    /// By the local's index: it points to an array that is only read.
    read_only: Vec<bool>,
    /// By the local's index: how often the body mentions it.
    mentions: Vec<u32>,
    /// The guards, by their address.
    guards: HashSet<*const Stmt>,
}

impl Vary {
    /// Analyzes the kernel of a module, for which the written arrays are known.
    pub(super) fn of(module: &Module, kernel: FuncId, copies: CopyLocals) -> Self {
        let function = &module.functions[kernel];
        let n = function.locals.len();
        let mut this = Self {
            locals: vec![false; n],
            read_only: read_only(module, function),
            mentions: mentions(function, &function.body),
            guards: HashSet::new(),
        };
        for local in copies.into_iter().flatten() {
            this.locals[local.index()] = true;
        }
        loop {
            let before = this.locals.clone();
            this.guards.clear();
            this.block(function, &function.body, false, true);
            if this.locals == before {
                return this;
            }
        }
    }

    /// Whether a branch of the analyzed body is a guard.
    pub(super) fn is_guard(&self, stmt: &Stmt) -> bool {
        self.guards.contains(&ptr::from_ref(stmt))
    }

    /// Whether a local may differ between copies.
    pub(super) fn local(&self, local: LocalId) -> bool {
        self.locals.get(local.index()).copied().unwrap_or(true)
    }

    /// Whether the body mentions a local more than `here` times.
    pub(super) fn mentioned_beside(&self, local: LocalId, here: u32) -> bool {
        self.mentions.get(local.index()).is_some_and(|all| *all > here)
    }

    /// Whether an expression may differ between copies.
    pub(super) fn expr(&self, function: &Function, root: ExprId) -> bool {
        match function.class(root) {
            Class::Leaf(Leaf::Local(local)) => self.local(local),
            Class::Leaf(Leaf::Base(Base::Local(_))) => true,
            Class::Leaf(
                Leaf::Const(_) | Leaf::Special(_) | Leaf::Base(Base::Shared(_) | Base::Const(_) | Base::Dynamic),
            ) => false,
            Class::Load(pointer) => !self.is_read_only(function, pointer) || self.expr(function, pointer),
            Class::Arith(arith) => arith.operands().into_iter().any(|operand| self.expr(function, operand)),
            Class::Address { base, by, .. } => self.expr(function, base) || self.expr(function, by),
        }
    }

    /// By the expression's index: whether an expression of the analyzed body may differ between copies.
    pub(super) fn exprs(&self, function: &Function) -> Vec<bool> {
        let mut varies = vec![true; function.exprs.len()];
        for_each_stmt(&function.body, &mut |stmt| {
            for root in stmt.kind.exprs() {
                self.fill(function, root, &mut varies);
            }
        });
        varies
    }

    fn fill(&self, function: &Function, id: ExprId, varies: &mut [bool]) -> bool {
        let mut below = false;
        for operand in function.exprs[id].kind.operands() {
            below |= self.fill(function, operand, varies);
        }
        varies[id.index()] = match function.class(id) {
            Class::Leaf(_) => self.expr(function, id),
            Class::Load(pointer) => below || !self.is_read_only(function, pointer),
            Class::Arith(_) | Class::Address { .. } => below,
        };
        varies[id.index()]
    }

    fn is_read_only(&self, function: &Function, pointer: ExprId) -> bool {
        is_read_only(function, pointer, &|local| self.read_only[local.index()])
    }

    /// Whether copies may exit a loop, or an iteration of it, divergently.
    pub(super) fn splits(&self, function: &Function, body: &[Stmt]) -> bool {
        self.jumps_divergently(function, body, false)
    }

    fn jumps_divergently(&self, function: &Function, block: &[Stmt], divergent: bool) -> bool {
        block.iter().any(|stmt| match &stmt.kind {
            StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => divergent,
            StmtKind::If { cond, then, otherwise } => {
                let divergent = divergent || self.expr(function, *cond);
                self.jumps_divergently(function, then, divergent)
                    || self.jumps_divergently(function, otherwise, divergent)
            }
            // Jumps in it exit only the inner loop.
            StmtKind::Loop { .. }
            | StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. } => false,
        })
    }

    /// Visits a list of statements. `split`: some copies may be inactive; `at_end`: the kernel ends after it.
    fn block(&mut self, function: &Function, block: &[Stmt], split: bool, at_end: bool) {
        for (index, stmt) in block.iter().enumerate() {
            let at_end = at_end && index + 1 == block.len();
            match &stmt.kind {
                StmtKind::Assign(local, value) => {
                    if split || self.expr(function, *value) {
                        self.locals[local.index()] = true;
                    }
                }
                // All copies get the same result from a barrier.
                StmtKind::Op { op: Op::BarrierReduce(_), .. } if !split => {}
                StmtKind::Op { .. } | StmtKind::Call { .. } => {
                    for local in stmt.kind.assigned() {
                        self.locals[local.index()] = true;
                    }
                }
                StmtKind::If { cond, then, otherwise } => {
                    let varies = self.expr(function, *cond);
                    let guarded = if varies && at_end && !split { guarded_arm(then, otherwise) } else { None };
                    if guarded.is_some() {
                        self.guards.insert(ptr::from_ref(stmt));
                    }
                    let split_in = |arm| split || (varies && guarded != Some(arm));
                    self.block(function, then, split_in(true), at_end);
                    self.block(function, otherwise, split_in(false), at_end);
                }
                StmtKind::Loop { body, step } => {
                    let split = split || self.splits(function, body);
                    self.block(function, body, split, false);
                    self.block(function, step, split, false);
                }
                StmtKind::Store { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {}
            }
        }
    }
}

/// For a branch at the kernel's end: the arm with barriers, if exactly one arm has some.
pub(super) fn guarded_arm(then: &[Stmt], otherwise: &[Stmt]) -> Option<bool> {
    match (holds_barrier(then), holds_barrier(otherwise)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        (true, true) | (false, false) => None,
    }
}

/// Whether some statements contain an operation that synchronizes threads.
pub(super) fn holds_barrier(block: &[Stmt]) -> bool {
    let mut found = false;
    for_each_stmt(block, &mut |stmt| {
        found |= matches!(stmt.kind, StmtKind::Op { op, .. } if op.row().together > SyncScope::None);
    });
    found
}

/// By the local's index: how often some statements mention it.
pub(super) fn mentions(function: &Function, block: &[Stmt]) -> Vec<u32> {
    let mut mentions = vec![0_u32; function.locals.len()];
    for_each_mention(function, block, &mut |local| mentions[local.index()] += 1);
    mentions
}

/// Whether a pointer points to an array that is only read; `local` decides this for a local.
pub(super) fn is_read_only(function: &Function, pointer: ExprId, local: &dyn Fn(LocalId) -> bool) -> bool {
    match function.class(pointer) {
        Class::Leaf(Leaf::Local(read)) => local(read),
        Class::Leaf(Leaf::Base(Base::Const(_))) => true,
        Class::Arith(Arith::Convert(base)) | Class::Address { base, .. } => is_read_only(function, base, local),
        Class::Arith(Arith::Select(_, a, b)) => is_read_only(function, a, local) && is_read_only(function, b, local),
        Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => false,
    }
}

/// By the local's index: whether it is a parameter that points to a read-only array, or is derived from one.
pub(super) fn read_only(module: &Module, function: &Function) -> Vec<bool> {
    let mut counts = vec![0_u32; function.locals.len()];
    let mut sole = vec![None; function.locals.len()];
    for_each_stmt(&function.body, &mut |stmt| {
        for local in stmt.kind.assigned() {
            counts[local.index()] += 1;
            sole[local.index()] = if let StmtKind::Assign(_, value) = stmt.kind { Some(value) } else { None };
        }
    });
    let mut found = vec![false; function.locals.len()];
    for (param, slot) in function.params.iter().zip(&function.slots) {
        let SlotSource::Argument { param: argument, .. } = slot else { continue };
        let is_read = module.params.get(*argument as usize).is_some_and(|argument| !argument.access.writes);
        found[param.index()] = is_read && counts[param.index()] == 0;
    }
    for _ in 0..DEPTH {
        for (local, value) in sole.iter().enumerate() {
            if let (1, Some(value)) = (counts[local], value) {
                found[local] = is_read_only(function, *value, &|local| found[local.index()]);
            }
        }
    }
    found
}

/// Whether some statements access memory or are expensive, so that it is profitable to jam them for copies that agree.
pub(super) fn is_worth_jamming(function: &Function, block: &[Stmt]) -> bool {
    let mut worth = false;
    for_each_stmt(block, &mut |stmt| {
        worth |= match &stmt.kind {
            StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } | StmtKind::Loop { .. } => true,
            StmtKind::Assign(..) | StmtKind::If { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {
                false
            }
        };
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| worth |= matches!(function.class(id), Class::Load(_)));
        }
    });
    worth
}
