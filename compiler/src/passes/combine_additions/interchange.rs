//! Loops of all threads of a block that add to elements of shared memory, as in the adjoint of a product of tiles.
//!
//! ```text
//! barrier                                 barrier
//! loop {                                  if blockDim is (16, 16, 1) {
//!     if not k < 16 { break }                 $shared[ty, tx] = $g
//!     t = $g * right[k, tx]                   barrier
//!     atomic.add left'[ty, k], t              for other in range(16) {
//! } step { k = k + 1 }                            $sum = $sum + $shared[ty, other] * right[tx, other]
//!                                             }
//!                                             left'[ty, tx] = left'[ty, tx] + $sum
//!                                             barrier
//!                                         } else { …as before }
//! ```
//!
//! The index of the element does not depend on `threadIdx.x`, which has the values of the counter. So the two are
//! interchanged: a thread adds up the terms that the threads with other `threadIdx.x` have for one element. The same holds
//! for `threadIdx.y`.
//!
//! Legal: all threads of the block run the loop together, since a barrier precedes it in the same list of statements. The
//! iterations carry nothing, and change memory only by these additions. A term is computed from the counter, the thread's
//! index, parameters, elements of other shared arrays, and locals that the loop does not change: those of all threads are
//! stored in shared memory first. The barriers around keep the loads between the same stores as before, although another
//! thread executes them. An element that only one thread adds to between them needs no atomic operation. The order of the terms of a sum changes, as it does by atomic additions.
//!
//! Profitable: a thread has one addition to memory in place of one in each iteration.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Combiner, addition_in,
    loops::{Reads, counted},
};
use crate::{
    analysis::{assigns, escapes},
    ir::{
        Align, BinaryOp, Block, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, Op, SharedId, Space,
        SpecialRegister, Stmt, StmtKind, Type, for_each_stmt,
    },
};

/// The most locals of other threads that a loop reads.
const MOST_STORED: usize = 4;

/// The most threads of a block.
const MOST_THREADS: i128 = 1024;

/// The most bytes of shared memory of a kernel that gets more of it: a block can have 48 KiB without a request.
const MOST_SHARED: u64 = 40 << 10;

/// An addition of an interchanged loop.
struct Addition {
    stmt: Stmt,
    /// The array, the index and the term.
    array: SharedId,
    index: ExprId,
    term: ExprId,
    /// The axis of the thread's index that is interchanged with the counter.
    axis: u8,
}

/// A loop that can be interchanged.
struct Interchange {
    counter: LocalId,
    /// The trip count.
    trips: i128,
    /// Whether the threads have two indices.
    is_plane: bool,
    /// The locals that a term reads, and that the loop does not change.
    stored: Vec<LocalId>,
    /// The values of the local assignments, in order.
    values: Vec<(LocalId, ExprId)>,
    additions: Vec<Addition>,
}

/// What an expression is computed from.
#[derive(Default)]
struct Inputs {
    counter: bool,
    axes: BTreeSet<u8>,
    locals: BTreeSet<LocalId>,
    arrays: BTreeSet<SharedId>,
}

/// Locals with the value of `threadIdx`, by the axis.
type Indices = BTreeMap<LocalId, u8>;

/// The locals that are assigned once, a thread's index.
fn indices(function: &Function, body: &Block) -> Indices {
    let (mut found, mut count) = (Indices::new(), BTreeMap::<LocalId, usize>::new());
    for_each_stmt(body, &mut |stmt| {
        for local in stmt.kind.assigned() {
            *count.entry(local).or_default() += 1;
        }
        if let StmtKind::Assign(local, value) = stmt.kind
            && let ExprKind::Special(SpecialRegister::ThreadIdx(axis)) = function.exprs[value].kind
        {
            found.insert(local, axis);
        }
    });
    found.retain(|local, _| count.get(local) == Some(&1));
    found
}

/// A value without conversions to integers that hold the indices of a block.
fn plain(function: &Function, mut id: ExprId) -> ExprId {
    while let Expr { kind: ExprKind::Convert(inner), ty: Type::I32 | Type::I64, .. } = function.exprs[id] {
        id = inner;
    }
    id
}

/// The value of a local after some statements, if it is a constant.
fn constant_after(function: &Function, stmts: &[Stmt], local: LocalId) -> Option<i128> {
    for (at, stmt) in stmts.iter().enumerate().rev() {
        if let StmtKind::Assign(to, value) = stmt.kind
            && to == local
        {
            let from = function.local(value).and_then(|from| constant_after(function, &stmts[..at], from));
            return function.int(value).or(from);
        }
        if assigns(std::slice::from_ref(stmt), local) {
            return None;
        }
    }
    None
}

/// Whether a barrier follows before anything that accesses memory.
fn barrier_follows(function: &Function, stmts: &[Stmt]) -> bool {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Assign(_, value) => {
                if super::reads_memory(function, *value) {
                    return false;
                }
            }
            StmtKind::Op { op, .. } => return matches!(op, Op::Barrier),
            StmtKind::Store { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => return false,
        }
    }
    false
}

impl Combiner<'_> {
    /// Interchanges loops of a kernel's body. `reads`: its reads.
    pub(super) fn interchange(&mut self, body: &mut Block, reads: &Reads) {
        let indices = indices(self.function, body);
        self.interchange_in(body, reads, &indices);
    }

    fn interchange_in(&mut self, block: &mut Block, reads: &Reads, indices: &Indices) {
        let mut out = Block::with_capacity(block.len());
        let mut is_together = false;
        let mut rest = std::mem::take(block).into_iter();
        while let Some(mut stmt) = rest.next() {
            is_together |= matches!(stmt.kind, StmtKind::Op { op: Op::Barrier, .. });
            is_together &= !escapes(std::slice::from_ref(&stmt)).any();
            let found = self.found(&stmt, &out, reads, indices).filter(|_| is_together);
            let Some(found) = found else {
                for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                    self.interchange_in(inner, reads, indices);
                }
                out.push(stmt);
                continue;
            };
            self.span = stmt.span;
            let mut then = self.interchanged(&found, indices);
            if !barrier_follows(self.function, rest.as_slice()) {
                then.push(self.op(Op::Barrier, Vec::new(), Vec::new()));
            }
            let cond = self.has_block(&found);
            out.push(self.branch(cond, then, vec![stmt]));
        }
        *block = out;
    }

    /// The loop of a statement after others, if it can be interchanged.
    fn found(&self, stmt: &Stmt, before: &[Stmt], reads: &Reads, indices: &Indices) -> Option<Interchange> {
        let function = &*self.function;
        let StmtKind::Loop { body, step } = &stmt.kind else { return None };
        let counted = counted(function, body, step)?;
        let (counter, trips, iteration) = (counted.counter, function.int(counted.bound)?, &body[1..]);
        let starts = constant_after(function, before, counter) == Some(0);
        let ends = reads.get(&counter) == super::loops::reads_of(function, std::slice::from_ref(stmt)).get(&counter);
        if !starts || !ends || counted.stride != 1 || !self.is_any_order(iteration, reads, false) {
            return None;
        }
        let (mut values, mut additions) = (Vec::new(), Vec::new());
        for inner in iteration {
            if let StmtKind::Assign(local, value) = inner.kind {
                values.push((local, value));
            } else {
                additions.push(self.addition_of(inner, counter, indices)?);
            }
        }
        let own: BTreeSet<LocalId> = values.iter().map(|&(local, _)| local).collect();
        let mut inputs = Inputs::default();
        let terms = additions.iter().flat_map(|addition| [addition.index, addition.term]);
        for root in terms.chain(values.iter().map(|&(_, value)| value)) {
            self.find(root, counter, indices, &mut inputs)?;
        }
        let stored: Vec<LocalId> = inputs.locals.difference(&own).copied().collect();
        let is_plane = inputs.axes.contains(&1);
        let threads = if is_plane { trips.checked_mul(trips)? } else { trips };
        let is_read = additions.iter().any(|addition| inputs.arrays.contains(&addition.array));
        let fits = own.len() == values.len()
            && !additions.is_empty()
            && (2..=MOST_THREADS).contains(&threads)
            && (is_plane || additions.iter().all(|addition| addition.axis == 0))
            && stored.len() <= MOST_STORED
            && self.has_room(&stored, threads)
            && !is_read;
        fits.then_some(Interchange { counter, trips, is_plane, stored, values, additions })
    }

    /// Whether an element of shared memory for each thread and local fits beside the kernel's arrays.
    fn has_room(&self, stored: &[LocalId], threads: i128) -> bool {
        let scalars: Option<Vec<_>> = stored.iter().map(|&local| self.function.locals[local].ty.scalar()).collect();
        let Some(scalars) = scalars else { return false };
        let of_thread: u64 = scalars.iter().map(|scalar| scalar.size_bytes()).sum();
        let arrays = self.module.shared.iter().map(|(_, array)| array.len.saturating_mul(array.elem.size_bytes()));
        let own = u64::try_from(threads).unwrap_or(u64::MAX).saturating_mul(of_thread);
        arrays.fold(own, u64::saturating_add) <= MOST_SHARED
    }

    /// An addition whose index does not depend on one of the thread's indices.
    fn addition_of(&self, stmt: &Stmt, counter: LocalId, indices: &Indices) -> Option<Addition> {
        let function = &*self.function;
        let (pointer, term) = addition_in(function, stmt, Space::Shared)?;
        let ExprKind::Offset { base, index, scale: 1 } = function.exprs[pointer].kind else { return None };
        let ExprKind::SharedBase(array) = function.exprs[base].kind else { return None };
        let mut inputs = Inputs::default();
        self.find(index, counter, indices, &mut inputs)?;
        let is_known = inputs.counter && inputs.locals.is_empty() && inputs.arrays.is_empty();
        let axis = match (inputs.axes.contains(&0), inputs.axes.contains(&1)) {
            (false, true) => 0,
            (true, false) => 1,
            // In a block of one dimension.
            (false, false) => 0,
            (true, true) => return None,
        };
        is_known.then(|| Addition { stmt: stmt.clone(), array, index, term, axis })
    }

    /// Finds what an expression is computed from; `None` if another thread cannot compute it.
    fn find(&self, id: ExprId, counter: LocalId, indices: &Indices, inputs: &mut Inputs) -> Option<()> {
        use SpecialRegister::{BlockDim, BlockIdx, DynamicSharedBytes, GridDim, LaneId, OfRow, ThreadIdx, WarpSize};
        let function = &*self.function;
        match function.exprs[id].kind {
            ExprKind::Local(local) => {
                if local == counter {
                    inputs.counter = true;
                } else if let Some(&axis) = indices.get(&local) {
                    inputs.axes.insert(axis);
                } else if !function.params.contains(&local) {
                    inputs.locals.insert(local);
                }
            }
            ExprKind::Special(ThreadIdx(axis)) => {
                inputs.axes.insert(axis);
            }
            ExprKind::Load(pointer, _) => {
                let ExprKind::Offset { base, index, .. } = function.exprs[pointer].kind else { return None };
                let ExprKind::SharedBase(array) = function.exprs[base].kind else { return None };
                inputs.arrays.insert(array);
                return self.find(index, counter, indices, inputs);
            }
            ExprKind::Special(LaneId | OfRow(_))
            | ExprKind::SharedBase(_)
            | ExprKind::ConstBase(_)
            | ExprKind::DynamicShared
            | ExprKind::LocalBase(_)
            | ExprKind::Offset { .. }
            | ExprKind::ByteOffset { .. } => return None,
            ExprKind::Special(BlockIdx(_) | BlockDim(_) | GridDim(_) | WarpSize | DynamicSharedBytes)
            | ExprKind::Const(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Compare(..)
            | ExprKind::Select(..)
            | ExprKind::Convert(_)
            | ExprKind::Math(..)
            | ExprKind::Wrap { .. } => {}
        }
        if inputs.axes.contains(&2) {
            return None;
        }
        function.exprs[id].kind.operands().into_iter().try_for_each(|id| self.find(id, counter, indices, inputs))
    }

    /// Whether the block has as many threads along each axis as the loop has iterations.
    fn has_block(&mut self, found: &Interchange) -> ExprId {
        let extents = [found.trips, if found.is_plane { found.trips } else { 1 }, 1];
        let mut all = self.expr(ExprKind::Const(Const::Bool(true)), Type::BOOL);
        for (axis, extent) in (0..).zip(extents) {
            let own = self.expr(ExprKind::Special(SpecialRegister::BlockDim(axis)), Type::I32);
            let extent = self.int(extent, Type::I32);
            let is_same = self.compare(CompareOp::Eq, own, extent);
            all = self.binary(BinaryOp::And, all, is_same);
        }
        all
    }

    fn interchanged(&mut self, found: &Interchange, indices: &Indices) -> Block {
        let threads = if found.is_plane { found.trips * found.trips } else { found.trips };
        let mut out = Block::new();
        let mut arrays = BTreeMap::new();
        for &local in &found.stored {
            let Some(elem) = self.function.locals[local].ty.scalar() else { continue };
            let array = self.shared("interchanged", elem, threads.try_into().unwrap_or(u64::MAX));
            let own = [0, 1].map(|axis| self.index(axis));
            let number = self.number(found, own);
            let pointer = self.copied(array, elem, number);
            let value = self.read(local);
            out.push(self.stmt(StmtKind::Store { pointer, value, align: Align::Natural }));
            arrays.insert(local, array);
        }
        out.push(self.op(Op::Barrier, Vec::new(), Vec::new()));
        for addition in &found.additions {
            self.span = addition.stmt.span;
            self.sum_of_threads(found, addition, (indices, &arrays), &mut out);
        }
        out
    }

    /// `threadIdx` along an axis.
    fn index(&mut self, axis: u8) -> ExprId {
        self.expr(ExprKind::Special(SpecialRegister::ThreadIdx(axis)), Type::I32)
    }

    /// The number of the thread with some indices.
    fn number(&mut self, found: &Interchange, [x, y]: [ExprId; 2]) -> ExprId {
        if !found.is_plane {
            return self.expr(ExprKind::Convert(x), Type::I64);
        }
        let width = self.int(found.trips, Type::I32);
        let row = self.binary(BinaryOp::MulExact, y, width);
        let number = self.binary(BinaryOp::AddExact, row, x);
        self.expr(ExprKind::Convert(number), Type::I64)
    }

    /// Emits the sum of the terms that the other threads have for the element of this one.
    fn sum_of_threads(
        &mut self,
        found: &Interchange,
        addition: &Addition,
        (indices, arrays): (&Indices, &BTreeMap<LocalId, SharedId>),
        out: &mut Block,
    ) {
        let ty = self.function.exprs[addition.term].ty;
        let sum = self.temp("sum", ty);
        let (zero, count) = (self.zero(ty), self.counter("count"));
        let first = self.int(0, Type::I64);
        out.extend([self.assign(sum, zero), self.assign(count, first)]);
        let (now, end) = (self.read(count), self.int(found.trips, Type::I64));
        let goes_on = self.compare(CompareOp::Lt, now, end);
        let mut body = vec![self.exit_unless(goes_on)];
        let other = self.temp("other", Type::I32);
        self.function.locals[other].nonneg = true;
        let value = self.other(found, addition.axis, count);
        body.push(self.assign(other, value));
        let mut renamed = BTreeMap::new();
        for (&local, &array) in arrays {
            let Some(elem) = self.function.locals[local].ty.scalar() else { continue };
            let own = [0, 1].map(|axis| if axis == addition.axis { self.read(other) } else { self.index(axis) });
            let number = self.number(found, own);
            let pointer = self.copied(array, elem, number);
            let load = self.expr(ExprKind::Load(pointer, Align::Natural), Type::Scalar(elem));
            let value = self.temp("of_other", Type::Scalar(elem));
            body.push(self.assign(value, load));
            renamed.insert(local, value);
        }
        let names = Names { counter: found.counter, axis: addition.axis, other, indices };
        for &(local, value) in &found.values {
            let value = names.copy(self.function, value, &renamed);
            let copy = self.temp("t", self.function.locals[local].ty);
            self.function.locals[copy].nonneg = self.function.locals[local].nonneg;
            body.push(self.assign(copy, value));
            renamed.insert(local, copy);
        }
        let (before, term) = (self.read(sum), names.copy(self.function, addition.term, &renamed));
        let after = self.binary(BinaryOp::Add, before, term);
        body.push(self.assign(sum, after));
        let (now, one) = (self.read(count), self.int(1, Type::I64));
        let next = self.binary(BinaryOp::Add, now, one);
        let step = vec![self.assign(count, next)];
        out.push(self.stmt(StmtKind::Loop { body, step }));
        let mut add = self.with_term(&addition.stmt, sum);
        add.kind = add.kind.map_exprs(&mut |id| names.copy(self.function, id, &renamed));
        if self.is_own(found, addition, indices)
            && let StmtKind::Op { args, .. } = &add.kind
            && let &[pointer, term] = args.as_slice()
        {
            let again = self.function.copy_expr(pointer);
            let old = self.expr(ExprKind::Load(again, Align::Natural), ty);
            let value = self.binary(BinaryOp::Add, old, term);
            add.kind = StmtKind::Store { pointer, value, align: Align::Natural };
        }
        out.push(add);
    }

    /// Whether no two threads add to the same element: its index has those of the thread as digits, and the other
    /// additions are to other arrays. So no atomic operation is needed between the barriers.
    fn is_own(&self, found: &Interchange, addition: &Addition, indices: &Indices) -> bool {
        let function = &*self.function;
        let is_only = found.additions.iter().filter(|other| other.array == addition.array).count() == 1;
        let leaf = |id: ExprId| {
            let id = plain(function, id);
            if let ExprKind::Special(SpecialRegister::ThreadIdx(axis)) = function.exprs[id].kind {
                return Some(axis);
            }
            let local = function.local(id)?;
            if local == found.counter { Some(addition.axis) } else { indices.get(&local).copied() }
        };
        let digits = |row: ExprId, column: ExprId| {
            let ExprKind::Binary(BinaryOp::Mul | BinaryOp::MulExact, index, width) =
                function.exprs[plain(function, row)].kind
            else {
                return false;
            };
            let is_wide = function.int(plain(function, width)).is_some_and(|width| width >= found.trips);
            is_wide && leaf(index).zip(leaf(column)).is_some_and(|(one, other)| one != other)
        };
        if !found.is_plane {
            return is_only && leaf(addition.index).is_some();
        }
        let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b) =
            function.exprs[plain(function, addition.index)].kind
        else {
            return false;
        };
        is_only && (digits(a, b) || digits(b, a))
    }

    fn counter(&mut self, name: &str) -> LocalId {
        let local = self.temp(name, Type::I64);
        self.function.locals[local].nonneg = true;
        local
    }

    /// The index of the other thread in an iteration. Along x, each thread begins with its own, so that neighbors access
    /// different banks of shared memory.
    fn other(&mut self, found: &Interchange, axis: u8, count: LocalId) -> ExprId {
        let count = self.read(count);
        let count = self.expr(ExprKind::Convert(count), Type::I32);
        if axis != 0 || found.trips.count_ones() != 1 {
            return count;
        }
        let (own, last) = (self.index(0), self.int(found.trips - 1, Type::I32));
        let shifted = self.binary(BinaryOp::AddExact, count, own);
        self.binary(BinaryOp::And, shifted, last)
    }
}

/// What stands for the counter and for the thread's index in an interchanged loop.
struct Names<'a> {
    counter: LocalId,
    axis: u8,
    /// The other thread's index.
    other: LocalId,
    indices: &'a Indices,
}

impl Names<'_> {
    /// A copy of an expression, for the other thread.
    fn copy(&self, function: &mut Function, id: ExprId, renamed: &BTreeMap<LocalId, LocalId>) -> ExprId {
        function.copy_with(id, &mut |function, id| {
            let Expr { kind, ty, span } = function.exprs[id].clone();
            match kind {
                ExprKind::Local(local) if local == self.counter => {
                    let own = ExprKind::Special(SpecialRegister::ThreadIdx(self.axis));
                    let own = function.edit(span).expr(own, Type::I32);
                    Some(if ty == Type::I32 { own } else { function.edit(span).expr(ExprKind::Convert(own), ty) })
                }
                ExprKind::Local(local) if self.indices.get(&local) == Some(&self.axis) => {
                    Some(function.edit(span).read(self.other))
                }
                ExprKind::Local(local) => renamed.get(&local).map(|&name| function.edit(span).read(name)),
                ExprKind::Special(SpecialRegister::ThreadIdx(axis)) if axis == self.axis => {
                    Some(function.edit(span).read(self.other))
                }
                ExprKind::Special(_)
                | ExprKind::Const(_)
                | ExprKind::SharedBase(_)
                | ExprKind::ConstBase(_)
                | ExprKind::DynamicShared
                | ExprKind::LocalBase(_)
                | ExprKind::Unary(..)
                | ExprKind::Binary(..)
                | ExprKind::Compare(..)
                | ExprKind::Select(..)
                | ExprKind::Convert(_)
                | ExprKind::Math(..)
                | ExprKind::Wrap { .. }
                | ExprKind::Offset { .. }
                | ExprKind::ByteOffset { .. }
                | ExprKind::Load(..) => None,
            }
        })
    }
}
