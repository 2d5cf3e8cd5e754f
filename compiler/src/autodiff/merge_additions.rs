//! Merges additions to one element of an adjoint array, so that a thread adds to it once.
//!
//! ```text
//! loop {                              $sum = 0.0
//!     atomic.add p.adjoint[i], t      loop {
//! }                                       $sum = $sum + t
//!                                     }
//!                                     if $sum != 0.0 { atomic.add p.adjoint[i], $sum }
//! ```
//!
//! In a loop, the additions whose address no iteration changes; in a list of statements, all additions with the same
//! address, those in branches included.
//!
//! Legal if no other statement between the additions accesses the array, none is a barrier (unless the kernel only adds
//! to the array), and none leaves the statements: nothing observes when a thread adds. The address is valid if the sum is not 0, since an addition was executed.
//!
//! Profitable always: an addition to a variable is cheaper than one to memory. A loop gets a limited number of sums,
//! since they occupy registers in it.

use std::collections::BTreeSet;

use super::{
    arrays::{Arrays, Memory},
    build::{adjoint_type, converted, unrounded},
};
use crate::{
    analysis::{Access, any_expr, escapes, for_each_access, same},
    ir::{
        Align, AtomicOp, BinaryOp, Block, Class, CompareOp, Const, ExprId, ExprKind, Function, Local, LocalId,
        LocalKind, Op, Stmt, StmtKind, Type, for_each_expr, for_each_stmt, for_each_stmt_mut,
    },
    source::Span,
};

/// The most sums of one loop.
const MOST_SUMS: usize = 12;

/// The most additions of a list of statements that are compared with each other.
const MOST_ADDITIONS: usize = 500;

/// Merges the additions of a function's body.
pub(super) fn run(function: &mut Function, arrays: &Arrays) {
    let mut body = std::mem::take(&mut function.body);
    let only_added_to = only_added_to(function, arrays, &body);
    Merger { function, arrays, only_added_to }.block(&mut body);
    function.body = body;
}

/// Makes additions to arrays whose elements no other thread adds to loads and stores.
pub(super) fn without_atomics(function: &mut Function, arrays: &Arrays, plain: &[u32]) {
    let mut body = std::mem::take(&mut function.body);
    for_each_stmt_mut(&mut body, &mut |stmt| {
        let Some((pointer, term)) = addition(stmt) else { return };
        let Memory::Param(adjoint) = arrays.memory(function, pointer) else { return };
        if arrays.adjoints().any(|(of, own)| own == adjoint && plain.contains(&of)) {
            let again = function.copy_expr(pointer);
            let ty = function.exprs[term].ty;
            let old = function.edit(stmt.span).expr(ExprKind::Load(again, Align::Natural), ty);
            let (term, wide) = (unrounded(function, term), adjoint_type(ty));
            let (old, term) = (converted(function, old, wide), converted(function, term, wide));
            let value = function.edit(stmt.span).binary(BinaryOp::Add, old, term);
            let value = converted(function, value, ty);
            stmt.kind = StmtKind::Store { pointer, value, align: Align::Natural };
        }
    });
    function.body = body;
}

/// The address and the term of an addition.
pub(super) fn addition(stmt: &Stmt) -> Option<(ExprId, ExprId)> {
    let StmtKind::Op { op: Op::Atomic { op: AtomicOp::Add, .. }, results, args } = &stmt.kind else { return None };
    let &[pointer, term] = args.as_slice() else { return None };
    results.is_empty().then_some((pointer, term))
}

/// An addition in a list of statements.
#[derive(Clone, Copy)]
struct Addition {
    /// The index of the statement that is or contains it.
    at: usize,
    pointer: ExprId,
}

struct Merger<'a> {
    function: &'a mut Function,
    arrays: &'a Arrays,
    /// The arrays that the function accesses only by additions.
    only_added_to: BTreeSet<u32>,
}

impl Merger<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut out = Block::with_capacity(block.len());
        for mut stmt in std::mem::take(block) {
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.block(inner);
            }
            if matches!(stmt.kind, StmtKind::Loop { .. }) {
                self.out_of_loop(stmt, &mut out);
            } else {
                out.push(stmt);
            }
        }
        while let Some((first, last, pointer)) = self.group(&out) {
            self.in_list(&mut out, first, last, pointer);
        }
        *block = out;
    }

    /// Moves the additions of a loop whose addresses are invariant after it.
    fn out_of_loop(&mut self, stmt: Stmt, out: &mut Block) {
        let span = stmt.span;
        let mut stmts = [stmt];
        let mut found: Vec<ExprId> = Vec::new();
        for_each_stmt(&stmts, &mut |inner| {
            if let Some((pointer, _)) = addition(inner)
                && found.len() < MOST_SUMS
                && !found.iter().any(|&other| same(self.function, pointer, other))
                && self.is_movable(&stmts, pointer)
            {
                found.push(pointer);
            }
        });
        let mut after = Block::new();
        for pointer in found {
            let sum = self.sum(&mut stmts, pointer);
            out.push(self.start(sum, span));
            after.push(self.add_if_any(pointer, sum, span));
        }
        out.extend(stmts);
        out.append(&mut after);
    }

    /// Whether an addition to an address may be executed after the statements.
    fn is_movable(&self, stmts: &[Stmt], pointer: ExprId) -> bool {
        let function = &*self.function;
        let Memory::Param(param) = self.arrays.memory(function, pointer) else { return false };
        if any_expr(function, pointer, &|kind| matches!(kind.class(), Class::Load(_))) {
            return false;
        }
        let mut movable = !escapes(stmts).any();
        for_each_expr(function, pointer, &mut |id| {
            if let Some(local) = function.local(id) {
                for_each_stmt(stmts, &mut |stmt| movable &= !stmt.kind.assigned().contains(&local));
            }
        });
        movable && !self.accesses(stmts, param)
    }

    /// Whether statements access an array other than by additions, or order accesses to an array that the function
    /// accesses otherwise.
    fn accesses(&self, stmts: &[Stmt], param: u32) -> bool {
        let function = &*self.function;
        let mut found = false;
        for_each_access(function, stmts, &mut |access| {
            found |= match access {
                Access::Read(pointer) | Access::Write(pointer) => self.arrays.may_be(function, pointer, param),
                Access::Add(_) => false,
                Access::Order => !self.only_added_to.contains(&param),
                Access::Any => true,
            };
        });
        found
    }

    /// The first statements with additions that can be merged: the indices of the first and the last one, and the
    /// address.
    fn group(&self, block: &[Stmt]) -> Option<(usize, usize, ExprId)> {
        let mut all = Vec::new();
        for (at, stmt) in block.iter().enumerate() {
            if let Some((pointer, _)) = addition(stmt) {
                all.push(Addition { at, pointer });
            } else if let StmtKind::If { then, otherwise, .. } = &stmt.kind {
                in_branches(then, at, &mut all);
                in_branches(otherwise, at, &mut all);
            }
        }
        all.truncate(MOST_ADDITIONS);
        for (number, first) in all.iter().enumerate() {
            let mut last = None;
            for other in all[number + 1..].iter().filter(|other| same(self.function, first.pointer, other.pointer)) {
                if self.is_movable(&block[first.at..=other.at], first.pointer) {
                    last = Some(other.at);
                } else {
                    break;
                }
            }
            if let Some(last) = last {
                return Some((first.at, last, first.pointer));
            }
        }
        None
    }

    /// Replaces the additions to an address in the statements from `first` to `last` by one.
    fn in_list(&mut self, block: &mut Block, first: usize, last: usize, pointer: ExprId) {
        let is_own = |stmt: &Stmt| addition(stmt).is_some_and(|(own, _)| same(self.function, own, pointer));
        let is_certain = block[first..=last].iter().any(is_own);
        let span = block[last].span;
        let sum = self.sum(&mut block[first..=last], pointer);
        let add = if is_certain { self.add(pointer, sum, span) } else { self.add_if_any(pointer, sum, span) };
        block.insert(last + 1, add);
        let start = self.start(sum, span);
        block.insert(first, start);
    }

    /// Replaces additions to an address by additions to a new local.
    fn sum(&mut self, stmts: &mut [Stmt], pointer: ExprId) -> LocalId {
        let name = match self.arrays.memory(self.function, pointer) {
            Memory::Param(param) => self.arrays.param(param).name.as_str(),
            Memory::Captured | Memory::Shared(_) | Memory::Local(_) | Memory::Dynamic | Memory::Other => "adjoint",
        };
        let ty = match self.function.exprs[pointer].ty {
            Type::Ptr(elem, _) => adjoint_type(Type::Scalar(elem)),
            Type::Scalar(_) => self.function.exprs[pointer].ty,
        };
        let sum = self.function.locals.push(Local::new(format!("{name}.sum"), LocalKind::Temp, ty));
        for stmt in stmts {
            self.sum_in(stmt, pointer, sum);
        }
        sum
    }

    fn sum_in(&mut self, stmt: &mut Stmt, pointer: ExprId, sum: LocalId) {
        if let Some((_, term)) = addition(stmt).filter(|&(own, _)| same(self.function, own, pointer)) {
            let term = unrounded(self.function, term);
            let term = converted(self.function, term, self.function.locals[sum].ty);
            let mut edit = self.function.edit(stmt.span);
            let before = edit.read(sum);
            let after = edit.binary(BinaryOp::Add, before, term);
            stmt.kind = StmtKind::Assign(sum, after);
        }
        for inner in stmt.kind.blocks_mut().into_iter().flatten().flatten() {
            self.sum_in(inner, pointer, sum);
        }
    }

    /// `sum = 0`.
    fn start(&mut self, sum: LocalId, span: Span) -> Stmt {
        let ty = self.function.locals[sum].ty;
        let zero = self.function.edit(span).expr(ExprKind::Const(Const::Float(0.0)), ty);
        Stmt { kind: StmtKind::Assign(sum, zero), span }
    }

    /// `*pointer += sum`.
    fn add(&mut self, pointer: ExprId, sum: LocalId, span: Span) -> Stmt {
        let pointer = self.function.copy_expr(pointer);
        let mut term = self.function.edit(span).read(sum);
        if let Type::Ptr(elem, _) = self.function.exprs[pointer].ty {
            term = converted(self.function, term, Type::Scalar(elem));
        }
        Stmt {
            kind: StmtKind::Op { op: Op::atomic(AtomicOp::Add), results: Vec::new(), args: vec![pointer, term] },
            span,
        }
    }

    /// `if sum != 0 { *pointer += sum }`.
    fn add_if_any(&mut self, pointer: ExprId, sum: LocalId, span: Span) -> Stmt {
        let add = self.add(pointer, sum, span);
        let ty = self.function.locals[sum].ty;
        let mut edit = self.function.edit(span);
        let (value, zero) = (edit.read(sum), edit.expr(ExprKind::Const(Const::Float(0.0)), ty));
        let cond = edit.compare(CompareOp::Ne, value, zero);
        Stmt { kind: StmtKind::If { cond, then: vec![add], otherwise: Block::new() }, span }
    }
}

/// The additions in the branches of a statement of a list.
fn in_branches(block: &[Stmt], at: usize, all: &mut Vec<Addition>) {
    for stmt in block {
        if let Some((pointer, _)) = addition(stmt) {
            all.push(Addition { at, pointer });
        } else if let StmtKind::If { then, otherwise, .. } = &stmt.kind {
            in_branches(then, at, all);
            in_branches(otherwise, at, all);
        }
    }
}

/// The arrays that statements access only by additions, by the number of the parameter.
pub(super) fn only_added_to(function: &Function, arrays: &Arrays, body: &Block) -> BTreeSet<u32> {
    let mut all: BTreeSet<u32> = arrays.adjoints().map(|(_, adjoint)| adjoint).collect();
    for_each_access(function, body, &mut |access| match access {
        Access::Read(pointer) | Access::Write(pointer) => {
            all.retain(|&param| !arrays.may_be(function, pointer, param));
        }
        Access::Add(_) | Access::Order => {}
        Access::Any => all.clear(),
    });
    all
}
