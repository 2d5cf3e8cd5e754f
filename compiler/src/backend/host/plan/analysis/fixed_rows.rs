//! Specialization of thread loops for a constant trip count: rows of 8, 16 or 32 threads.
//!
//! ```text
//! for x in low..high: body                  if row == 16:
//!                                               for x in 0..16: body, masked by low <= x < high
//!                                           else:
//!                                               for x in low..high: body
//! ```
//!
//! A row of 16 threads is one vector, but a loop with a variable trip count costs several times as much in its prologue
//! and epilogue. The launch that the code is compiled for says which row length to expect
//! ([`likely_block`](crate::ir::Module)). Rows of that length run a loop with a constant trip count, which becomes
//! straight code; rows of any other length run the general loop.
//!
//! If the row has bounds, all its threads run the body where that is legal. A thread outside the bounds stores to
//! shared memory what it has loaded from there. A masked store would do the same, but a load soon after it waits until
//! the store is in the cache. No other thread sees these stores, because one CPU thread runs the block:
//!
//! - A context array has one element for each thread.
//! - In a shared array, each thread of the row has its own element in one row of the array (`in_one_row`). The segment
//!   stores to an array once, after all its loads from shared memory.
//!
//! Pays for short bodies without loops. Rows with bounds also require a CPU with masked vectors, or, for bodies
//! that load words and store to shared memory only, masked loads of words (AVX2).

use std::{cell::Cell, collections::HashSet};

use crate::{
    analysis::{base, for_each_read},
    backend::host::plan::{
        analysis::strides::{Form, Forms},
        plan_ir::{Plan, Runs, Segment, Vectors},
    },
    ir::{
        Align, Arith, Base, BinaryOp, Class, CompareOp, ExprId, ExprKind, Function, Leaf, LocalId, SharedId, Space,
        SpecialRegister, Stmt, StmtKind, Type, for_each_expr, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Lengths of rows that get a copy: each is one or a few vectors.
const WIDTHS: [u32; 3] = [8, 16, 32];

/// Expressions of the largest segment that is duplicated.
const MAX_EXPRS: usize = 160;

/// Maximum number of expressions that are inspected for one index.
const MAX_VISITED: u32 = 128;

/// The row length that gets a copy, if a block of the launch has such rows.
pub(crate) fn width(block: Option<[u32; 3]>) -> Option<u64> {
    let [width, ..] = block?;
    WIDTHS.contains(&width).then_some(u64::from(width))
}

/// `true` if a segment's body is short enough for two loops, and has no loops itself.
pub(crate) fn is_short(function: &Function, body: &[Stmt]) -> bool {
    let (mut exprs, mut simple) = (0, true);
    for_each_stmt(body, &mut |stmt| {
        simple &= !matches!(stmt.kind, StmtKind::Loop { .. } | StmtKind::Op { .. } | StmtKind::Call { .. });
        for_each_expr_of_stmt(function, &stmt.kind, &mut |_| exprs += 1);
    });
    simple && exprs <= MAX_EXPRS
}

/// How all threads of a row run a body that only some of them execute.
#[derive(Debug)]
pub(crate) struct Whole {
    /// Indices of the statements that every thread may execute.
    pub first: Vec<usize>,
    /// Loads of one element for all threads, hoisted out of the loop. The address is valid if at least one thread is
    /// within the bounds.
    pub loads: Vec<ExprId>,
}

/// How all threads of a row of `width` run a body that only some of them execute. Threads outside the bounds store the
/// old value in the segment's unconditional shared stores. `None` where this is not legal.
pub(crate) fn whole(plan: &Plan, segment: &Segment, body: &[Stmt], (width, vectors): (u64, Vectors)) -> Option<Whole> {
    let jumps = [&segment.on_return, &segment.on_break, &segment.on_continue];
    let stays = segment.active.is_none() && jumps.iter().all(|masks| masks.is_empty());
    if !stays || segment.runs != Runs::EachThread || !segment.parallel {
        return None;
    }
    let one = segment.guard.iter().flat_map(|guard| &guard.ranges).any(|range| range.op == CompareOp::Eq);
    let function = &plan.module.functions[plan.kernel];
    let rows = Rows { plan, function, width };
    let is_harmless = |local: LocalId| plan.fixed.value(local).is_some_and(|value| rows.is_harmless(value));
    if one || !is_short(function, body) || !segment.recompute.iter().all(|&local| is_harmless(local)) {
        return None;
    }
    let is_masked = vectors.masks || vectors.word_masks && loads_words(function, body);
    if !is_masked {
        return None;
    }
    let mut whole = Whole { first: harmless(plan, body), loads: Vec::new() };
    let (mut stored, mut stores) = (HashSet::new(), false);
    for (at, stmt) in body.iter().enumerate() {
        if !stored.is_empty() && loads_shared(function, stmt) {
            return None;
        }
        match &stmt.kind {
            StmtKind::Assign(_, value) => {
                if !whole.first.contains(&at) {
                    rows.loads_of_one(*value, stores, &mut whole.loads);
                }
            }
            StmtKind::Store { pointer, value, align } => {
                rows.loads_of_one(*value, stores, &mut whole.loads);
                if may_be_shared(function, *pointer) {
                    let Some(Base::Shared(array)) = base(function, *pointer) else { return None };
                    if *align != Align::Natural || !rows.in_one_row(*pointer, array) || !stored.insert(array) {
                        return None;
                    }
                } else {
                    stores = true;
                }
            }
            StmtKind::If { cond, then, otherwise } => {
                rows.loads_of_one(*cond, stores, &mut whole.loads);
                for part in [then, otherwise] {
                    if !may_stand_in_branch(function, part) || (!stored.is_empty() && loads_shared_in(function, part)) {
                        return None;
                    }
                }
                stores = true;
            }
            StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => return None,
        }
    }
    Some(whole)
}

/// `true` if all loads are of elements of four or eight bytes, and no store is to be masked: AMD's CPUs without AVX-512
/// run a masked store as microcode.
fn loads_words(function: &Function, body: &[Stmt]) -> bool {
    let is_word = |pointer: ExprId| match function.exprs[pointer].ty {
        Type::Ptr(element, _) => [4, 8].contains(&element.size_bytes()),
        Type::Scalar(_) => false,
    };
    let mut words = true;
    for_each_stmt(body, &mut |stmt| {
        if let StmtKind::Store { pointer, .. } = stmt.kind {
            words &= may_be_shared(function, pointer);
        }
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Class::Load(pointer) = function.class(id) {
                words &= is_word(pointer);
            }
        });
    });
    words
}

/// `true` if the statements of a branch only assign locals, and store to memory that is not shared.
fn may_stand_in_branch(function: &Function, branch: &[Stmt]) -> bool {
    let mut may = true;
    for_each_stmt(branch, &mut |stmt| {
        may &= match stmt.kind {
            StmtKind::Assign(..) | StmtKind::If { .. } => true,
            StmtKind::Store { pointer, .. } => !may_be_shared(function, pointer),
            StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        };
    });
    may
}

fn loads_shared_in(function: &Function, branch: &[Stmt]) -> bool {
    let mut loads = false;
    for_each_stmt(branch, &mut |stmt| loads |= loads_shared(function, stmt));
    loads
}

/// Indices of the statements that only assign rematerializable locals and that every thread may execute before the
/// others.
fn harmless(plan: &Plan, body: &[Stmt]) -> Vec<usize> {
    let function = &plan.module.functions[plan.kernel];
    let rows = Rows { plan, function, width: 0 };
    let (mut first, mut later) = (Vec::new(), HashSet::new());
    for (at, stmt) in body.iter().enumerate() {
        if let StmtKind::Assign(local, value) = stmt.kind {
            let mut is_ready = plan.fixed.value(local).is_some_and(|value| rows.is_harmless(value));
            for_each_read(function, value, &mut |local| is_ready &= !later.contains(&local));
            if is_ready {
                first.push(at);
                continue;
            }
        }
        for_each_stmt(std::slice::from_ref(stmt), &mut |stmt| later.extend(stmt.kind.assigned()));
    }
    first
}

/// `true` if a pointer may address shared memory.
pub(crate) fn may_be_shared(function: &Function, pointer: ExprId) -> bool {
    match function.exprs[pointer].ty {
        Type::Ptr(_, Space::Global | Space::Local | Space::Constant) => false,
        Type::Ptr(_, Space::Shared | Space::Generic) | Type::Scalar(_) => true,
    }
}

fn loads_shared(function: &Function, stmt: &Stmt) -> bool {
    let mut loads = false;
    for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
        if let Class::Load(pointer) = function.class(id) {
            loads |= may_be_shared(function, pointer);
        }
    });
    loads
}

/// `true` if a value may be computed speculatively: it loads nothing, and no divisor is zero.
pub(crate) fn is_harmless(function: &Function, root: ExprId) -> bool {
    let mut harmless = true;
    for_each_expr(function, root, &mut |id| {
        harmless &= match function.class(id) {
            Class::Arith(Arith::Binary(
                BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::DivNonneg | BinaryOp::ModNonneg,
                _,
                by,
            )) => function.int(by).is_some_and(|by| by > 0),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => true,
            Class::Load(_) => false,
        };
    });
    harmless
}

/// Queries about a row.
pub(crate) struct Rows<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) function: &'a Function,
    pub(crate) width: u64,
}

/// An index `threads * threadIdx.x + ahead + rest`, whose rest is uniform along the row.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    threads: u32,
    ahead: i128,
    /// A divisor of the rest, if there is a rest.
    of: Option<i128>,
}

impl Rows<'_> {
    /// How an expression changes along a row, and whether it is so small that sums do not wrap.
    pub(crate) fn form(&self, id: ExprId) -> (Form, bool) {
        let shared = |local: LocalId| !self.is_own(local);
        let fixed = &self.plan.fixed;
        let forms = Forms { function: self.function, fixed, shared: &shared, sole: &|_| None, axis: 0 };
        (forms.form(id), forms.is_small(id))
    }

    pub(crate) fn is_own(&self, local: LocalId) -> bool {
        self.plan.varying.get(local.index()).copied().unwrap_or(true)
    }

    /// `true` if a value may be computed for threads outside the bounds.
    pub(crate) fn is_harmless(&self, root: ExprId) -> bool {
        is_harmless(self.function, root)
    }

    /// `true` if all threads of the row access elements of one row of a shared array, whenever one of them does. Rows
    /// of the array must not be shorter than rows of the block.
    fn in_one_row(&self, pointer: ExprId, array: SharedId) -> bool {
        let ExprKind::Offset { base: whole, index: by, scale: 1 } = self.function.exprs[pointer].kind else {
            return false;
        };
        if !matches!(self.function.class(whole), Class::Leaf(Leaf::Base(Base::Shared(_)))) {
            return false;
        }
        let len = i128::from(self.plan.module.shared[array].len);
        let Some(position) = self.position(by, &Cell::new(MAX_VISITED)) else { return false };
        let row = position.of.unwrap_or(len);
        position.threads == 1
            && row > 0
            && len % row == 0
            && position.ahead >= 0
            && i128::from(self.width) + position.ahead <= row
    }

    /// Collects the loads of an expression, outside of selects, that access one element for all threads. If the segment
    /// has written before (`written`), only arrays that are never written qualify.
    fn loads_of_one(&self, id: ExprId, written: bool, loads: &mut Vec<ExprId>) {
        match self.function.class(id) {
            Class::Load(pointer) => {
                let may_change = written && !self.is_never_written(pointer);
                if self.is_one(pointer) && !may_change && !loads.contains(&id) {
                    loads.push(id);
                }
            }
            Class::Arith(Arith::Select(..)) | Class::Leaf(_) => {}
            Class::Arith(_) | Class::Address { .. } => {
                self.function.exprs[id]
                    .kind
                    .operands()
                    .iter()
                    .for_each(|&operand| self.loads_of_one(operand, written, loads));
            }
        }
    }

    /// `true` if a pointer addresses one element for all threads of the row.
    fn is_one(&self, pointer: ExprId) -> bool {
        let ExprKind::Offset { base: whole, index, .. } = self.function.exprs[pointer].kind else { return false };
        let is_known = match self.function.class(whole) {
            // Each thread has its own local arrays.
            Class::Leaf(Leaf::Base(base)) => base.is_of_block(),
            Class::Leaf(Leaf::Local(local)) => self.function.params.contains(&local),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        };
        is_known && self.form(index).0 == Form::Same
    }

    fn is_never_written(&self, pointer: ExprId) -> bool {
        let ExprKind::Offset { base: whole, .. } = self.function.exprs[pointer].kind else { return false };
        self.function.local(whole).is_some_and(|local| self.function.locals[local].never_written)
    }

    /// The form of an index; `None` if it is no such sum.
    fn position(&self, id: ExprId, effort: &Cell<u32>) -> Option<Position> {
        effort.set(effort.get().checked_sub(1)?);
        if let Some(value) = self.function.int(id) {
            return Some(Position { ahead: value, ..Position::default() });
        }
        match self.function.class(id) {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => {
                Some(Position { threads: 1, ..Position::default() })
            }
            Class::Leaf(Leaf::Local(local)) if self.plan.fixed.value(local).is_some() => {
                self.position(self.plan.fixed.value(local)?, effort)
            }
            Class::Arith(Arith::Convert(inner)) => {
                let inner = self.plan.fixed.resolve(self.function, inner);
                let is_thread =
                    matches!(self.function.class(inner), Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))));
                is_thread.then_some(Position { threads: 1, ..Position::default() })
            }
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => {
                let (a, b) = (self.position(a, effort)?, self.position(b, effort)?);
                let of = match (a.of, b.of) {
                    (Some(a), Some(b)) => (a == b).then_some(Some(a))?,
                    (of, None) | (None, of) => of,
                };
                let ahead = a.ahead.checked_add(b.ahead)?;
                Some(Position { threads: a.threads + b.threads, ahead, of })
            }
            Class::Arith(Arith::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b)) => {
                let (times, of) = match (self.function.int(a), self.function.int(b)) {
                    (Some(of), None) => (b, of),
                    (None, Some(of)) => (a, of),
                    (Some(_), Some(_)) | (None, None) => return None,
                };
                (self.form(times) == (Form::Same, true)).then_some(Position { of: Some(of), ..Position::default() })
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }
}
