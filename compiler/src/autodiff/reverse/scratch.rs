//! The stacks of the threads in the scratch memory.

use std::collections::BTreeMap;

use weft_artifact::Scalar;

use super::Emitter;
use crate::{
    autodiff::{
        scratch::{ALIGN, Record, storing},
        tape::{List, Repeat},
    },
    ir::{Align, AtomicOp, BinaryOp, ExprId, ExprKind, LocalId, Op, Space, SpecialRegister, StmtKind, Type},
    source::Span,
};

/// Where a loop keeps a value of each iteration.
#[derive(Clone, Copy)]
pub(super) enum Kept {
    /// In a local array of this length.
    Local(u64),
    /// In the records of a loop: at a byte of a record.
    Stored { repeat: usize, at: u64 },
    /// After the records of a loop.
    Pushed { repeat: usize },
}

/// The records of a loop that are followed by values.
#[derive(Clone, Copy)]
struct Linked {
    /// The byte at which the iteration's record begins.
    here: LocalId,
    /// The byte of the next value, and of the next record.
    next: LocalId,
}

/// The stack of a thread.
pub(super) struct Stack {
    /// The scratch memory.
    data: LocalId,
    /// The number of the thread in the grid, and of the threads.
    thread: LocalId,
    threads: LocalId,
    /// The byte after the last record.
    top: LocalId,
    /// By loop: the byte of its first record; in the kernel that counts, the most bytes of its records.
    loops: BTreeMap<usize, LocalId>,
    /// Those of these loops that push values.
    linked: BTreeMap<usize, Linked>,
    is_counting: bool,
}

impl Emitter<'_> {
    /// Whether it emits the kernel that counts.
    pub(super) fn is_counting(&self) -> bool {
        self.stack.as_ref().is_some_and(|stack| stack.is_counting)
    }

    /// Begins the stack, if a loop stores records.
    pub(super) fn begin_stack(&mut self, list: &List) {
        let loops = storing(list, &self.plan.loops);
        let Some(data) = self.tape.arrays.scratch().filter(|_| !loops.is_empty()) else { return };
        let span = self.function.span;
        let in_block = self.number_of_thread();
        let of_block = self.number_of_threads();
        let [x, y, z] = [0, 1, 2].map(|axis| self.special(SpecialRegister::BlockIdx(axis)));
        let [width, height, depth] = [0, 1, 2].map(|axis| self.special(SpecialRegister::GridDim(axis)));
        let width = self.assigned_to_new("width", width);
        let height = self.assigned_to_new("height", height);
        let rows = self.function.edit(span).read(height);
        let rows = self.binary(BinaryOp::Mul, z, rows, span);
        let rows = self.binary(BinaryOp::Add, rows, y, span);
        let columns = self.read(width, span);
        let before = self.binary(BinaryOp::Mul, rows, columns, span);
        let block = self.binary(BinaryOp::Add, before, x, span);
        let size = self.read(of_block, span);
        let before = self.binary(BinaryOp::Mul, block, size, span);
        let own = self.read(in_block, span);
        let thread = self.binary(BinaryOp::Add, before, own, span);
        let thread = self.assigned_to_new("thread", thread);
        let [width, height, size] = [width, height, of_block].map(|local| self.read(local, span));
        let blocks = self.binary(BinaryOp::Mul, width, height, span);
        let blocks = self.binary(BinaryOp::Mul, blocks, depth, span);
        let threads = self.binary(BinaryOp::Mul, blocks, size, span);
        let threads = self.assigned_to_new("threads", threads);
        let top = self.zero_in_new("top");
        let linked = self.linked(&loops);
        let loops = self.begun(&loops, "records");
        self.stack = Some(Stack { data, thread, threads, top, loops, linked, is_counting: false });
    }

    /// A local for each loop, 0 at the start.
    fn begun(&mut self, loops: &[&Repeat], name: &str) -> BTreeMap<usize, LocalId> {
        loops.iter().map(|repeat| (repeat.id, self.zero_in_new(name))).collect()
    }

    /// The locals of the loops that push values.
    fn linked(&mut self, loops: &[&Repeat]) -> BTreeMap<usize, Linked> {
        let plan = self.plan;
        let pushes = |id: usize| plan.loops[id].record().is_some_and(|record| !record.pushed().is_empty());
        let loops = loops.iter().filter(|repeat| pushes(repeat.id));
        let locals = loops
            .map(|repeat| (repeat.id, Linked { here: self.zero_in_new("record"), next: self.zero_in_new("next") }));
        locals.collect()
    }

    fn zero_in_new(&mut self, name: &str) -> LocalId {
        let zero = self.int(0, self.function.span);
        self.assigned_to_new(name, zero)
    }

    /// Emits the kernel that counts: its first element of the scratch memory becomes the most bytes that a thread needs.
    pub(super) fn count(&mut self, list: &List) {
        let span = self.function.span;
        let loops = storing(list, &self.plan.loops);
        let Some(data) = self.tape.arrays.scratch().filter(|_| !loops.is_empty()) else { return };
        let top = self.zero_in_new("top");
        let linked = self.linked(&loops);
        let most = self.begun(&loops, "most");
        let locals: Vec<LocalId> = most.values().copied().collect();
        self.stack = Some(Stack { data, thread: top, threads: top, top, loops: most, linked, is_counting: true });
        let plan = self.plan;
        self.forward(list, &plan.counted);
        let mut total = self.int(0, span);
        for local in locals {
            let bytes = self.read(local, span);
            total = self.binary(BinaryOp::Add, total, bytes, span);
        }
        let pointer = self.read(data, span);
        let op = Op::atomic(AtomicOp::Max);
        self.push(StmtKind::Op { op, results: Vec::new(), args: vec![pointer, total] }, span);
    }

    /// Before a loop that counts its iterations: its records begin where the stack ends.
    pub(super) fn begin_records(&mut self, repeat: &Repeat) {
        let Some(stack) = &self.stack else { return };
        let (top, is_counting, linked) = (stack.top, stack.is_counting, stack.linked.get(&repeat.id).copied());
        let Some(&first) = stack.loops.get(&repeat.id) else { return };
        let span = repeat.span;
        if !is_counting {
            let value = self.read(top, span);
            self.push(StmtKind::Assign(first, value), span);
        }
        if let Some(Linked { next, .. }) = linked {
            // The kernel that counts has no other records.
            let value = self.read(top, span);
            self.push(StmtKind::Assign(next, value), span);
        }
    }

    /// At the start of an iteration: its record begins after the values of the iteration before.
    pub(super) fn begin_record(&mut self, repeat: &Repeat) {
        let Some(stack) = &self.stack else { return };
        let (is_counting, Some(&Linked { here, next })) = (stack.is_counting, stack.linked.get(&repeat.id)) else {
            return;
        };
        let span = repeat.span;
        let begin = self.read(next, span);
        let begin = self.aligned(begin, span);
        self.push(StmtKind::Assign(next, begin), span);
        if !is_counting {
            let begin = self.read(next, span);
            let pointer = self.address(begin, Scalar::I64, span);
            let value = self.read(here, span);
            self.push(StmtKind::Store { pointer, value, align: Align::Natural }, span);
            let begin = self.read(next, span);
            self.push(StmtKind::Assign(here, begin), span);
        }
        self.advance(next, self.record_bytes(repeat.id), span);
    }

    /// At the start of a reversed iteration, after its values are restored: those that it pops follow its record.
    pub(super) fn enter_record(&mut self, repeat: &Repeat) {
        let Some(stack) = &self.stack else { return };
        let Some(&Linked { here, next }) = stack.linked.get(&repeat.id) else { return };
        let span = repeat.span;
        let begin = self.read(here, span);
        self.push(StmtKind::Assign(next, begin), span);
        let begin = self.read(here, span);
        let pointer = self.address(begin, Scalar::I64, span);
        let before = self.expr(ExprKind::Load(pointer, Align::Natural), Type::I64, span);
        self.push(StmtKind::Assign(here, before), span);
        self.advance(next, self.record_bytes(repeat.id), span);
    }

    /// Loads a value that the forward sweep of a loop pushed.
    pub(super) fn pop(&mut self, value: LocalId, repeat: usize, span: Span) {
        let pointer = self.pushed_at(value, repeat, span);
        let ty = self.function.locals[value].ty;
        let load = self.expr(ExprKind::Load(pointer, Align::Natural), ty, span);
        self.push(StmtKind::Assign(value, load), span);
        self.pass(repeat, span);
    }

    /// After an access of a pushed value.
    pub(super) fn pass(&mut self, repeat: usize, span: Span) {
        let slot = self.plan.loops[repeat].record().map_or(0, Record::slot);
        if let Some(&Linked { next, .. }) = self.stack.as_ref().and_then(|stack| stack.linked.get(&repeat)) {
            self.advance(next, slot, span);
        }
    }

    /// In the kernel that counts, where loops push a value.
    pub(super) fn count_pushed(&mut self, value: LocalId, span: Span) {
        let Some(stack) = self.stack.as_ref().filter(|stack| stack.is_counting) else { return };
        let plan = self.plan;
        let pushes = |id: usize| plan.loops[id].record().is_some_and(|record| record.pushed().contains(&value));
        let loops: Vec<usize> = stack.linked.keys().copied().filter(|&id| pushes(id)).collect();
        for id in loops {
            self.pass(id, span);
        }
    }

    fn record_bytes(&self, repeat: usize) -> u64 {
        self.plan.loops[repeat].record().map_or(0, Record::bytes)
    }

    /// `local += bytes`.
    fn advance(&mut self, local: LocalId, bytes: u64, span: Span) {
        let (before, bytes) = (self.read(local, span), self.int(i128::from(bytes), span));
        let after = self.binary(BinaryOp::Add, before, bytes, span);
        self.push(StmtKind::Assign(local, after), span);
    }

    /// A number of bytes, rounded up to a multiple of the alignment.
    fn aligned(&mut self, bytes: ExprId, span: Span) -> ExprId {
        let more = self.int(i128::from(ALIGN - 1), span);
        let bytes = self.binary(BinaryOp::Add, bytes, more, span);
        let mask = self.int(-i128::from(ALIGN), span);
        self.binary(BinaryOp::And, bytes, mask, span)
    }

    /// After it: the stack ends after its records.
    pub(super) fn end_records(&mut self, repeat: &Repeat) {
        let Some(stack) = &self.stack else { return };
        let (top, is_counting, linked) = (stack.top, stack.is_counting, stack.linked.get(&repeat.id).copied());
        let Some(&local) = stack.loops.get(&repeat.id) else { return };
        let span = repeat.span;
        let end = match linked {
            Some(Linked { next, .. }) => self.read(next, span),
            None => {
                let count = self.read(repeat.count, span);
                let size = self.int(i128::from(self.record_bytes(repeat.id)), span);
                let bytes = self.binary(BinaryOp::Mul, count, size, span);
                // The records of the kernel that counts begin at 0.
                let first = self.read(if is_counting { top } else { local }, span);
                self.binary(BinaryOp::Add, first, bytes, span)
            }
        };
        let end = self.aligned(end, span);
        if !is_counting {
            return self.push(StmtKind::Assign(top, end), span);
        }
        let most = self.read(local, span);
        let most = self.binary(BinaryOp::Max, most, end, span);
        self.push(StmtKind::Assign(local, most), span);
    }

    /// After the reverse of a loop.
    pub(super) fn release_records(&mut self, repeat: &Repeat) {
        let Some(stack) = &self.stack else { return };
        let (top, Some(&first)) = (stack.top, stack.loops.get(&repeat.id)) else { return };
        let value = self.read(first, repeat.span);
        self.push(StmtKind::Assign(top, value), repeat.span);
    }

    /// The address of a value in the record of an iteration.
    pub(super) fn stored_at(
        &mut self,
        value: LocalId,
        (repeat, at): (usize, u64),
        iteration: LocalId,
        span: Span,
    ) -> ExprId {
        let elem = self.function.locals[value].ty.scalar().unwrap_or(Scalar::F64);
        let Some(stack) = &self.stack else { return self.int(0, span) };
        let begin = if let Some(&Linked { here, .. }) = stack.linked.get(&repeat) {
            self.read(here, span)
        } else {
            let Some(&first) = stack.loops.get(&repeat) else { return self.int(0, span) };
            let (number, size) = (self.read(iteration, span), self.int(i128::from(self.record_bytes(repeat)), span));
            let before = self.binary(BinaryOp::Mul, number, size, span);
            let first = self.read(first, span);
            self.binary(BinaryOp::Add, first, before, span)
        };
        let at = self.int(i128::from(at), span);
        let begin = self.binary(BinaryOp::Add, begin, at, span);
        self.address(begin, elem, span)
    }

    /// The address of the next value that a loop pushes or pops.
    pub(super) fn pushed_at(&mut self, value: LocalId, repeat: usize, span: Span) -> ExprId {
        let elem = self.function.locals[value].ty.scalar().unwrap_or(Scalar::F64);
        let linked = self.stack.as_ref().and_then(|stack| stack.linked.get(&repeat));
        let Some(&Linked { next, .. }) = linked else { return self.int(0, span) };
        let begin = self.read(next, span);
        self.address(begin, elem, span)
    }

    /// The address of a value at a byte of the thread's stack.
    fn address(&mut self, begin: ExprId, elem: Scalar, span: Span) -> ExprId {
        let Some(stack) = &self.stack else { return begin };
        let (data, thread, threads) = (stack.data, stack.thread, stack.threads);
        let threads = self.read(threads, span);
        let before = self.binary(BinaryOp::Mul, begin, threads, span);
        let (thread, size) = (self.read(thread, span), self.int(i128::from(elem.size_bytes()), span));
        let own = self.binary(BinaryOp::Mul, thread, size, span);
        let bytes = self.binary(BinaryOp::Add, before, own, span);
        let base = self.read(data, span);
        let space = match self.function.exprs[base].ty {
            Type::Ptr(_, space) => space,
            Type::Scalar(_) => Space::Generic,
        };
        let ty = Type::Ptr(elem, space);
        let base = self.expr(ExprKind::Convert(base), ty, span);
        self.expr(ExprKind::ByteOffset { base, bytes }, ty, span)
    }
}
