//! The stacks of the threads in the scratch memory.

use std::collections::BTreeMap;

use weft_artifact::Scalar;

use super::Emitter;
use crate::{
    autodiff::{
        scratch::{ALIGN, storing},
        tape::{List, Repeat},
    },
    ir::{AtomicOp, BinaryOp, ExprId, ExprKind, LocalId, Op, Space, SpecialRegister, StmtKind, Type},
    source::Span,
};

/// Where a loop keeps a value of each iteration.
#[derive(Clone, Copy)]
pub(super) enum Kept {
    /// In a local array of this length.
    Local(u64),
    /// In the records of a loop: at a byte of a record of some bytes.
    Stored { repeat: usize, at: u64, record: u64 },
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
        let zero = self.int(0, span);
        let top = self.assigned_to_new("top", zero);
        let loops = self.begun(&loops, "records");
        self.stack = Some(Stack { data, thread, threads, top, loops, is_counting: false });
    }

    /// A local for each loop, 0 at the start.
    fn begun(&mut self, loops: &[(&Repeat, u64)], name: &str) -> BTreeMap<usize, LocalId> {
        let span = self.function.span;
        let begin = |(repeat, _): &(&Repeat, u64)| {
            let zero = self.int(0, span);
            (repeat.id, self.assigned_to_new(name, zero))
        };
        loops.iter().map(begin).collect()
    }

    /// Emits the kernel that counts: its first element of the scratch memory becomes the most bytes that a thread needs.
    pub(super) fn count(&mut self, list: &List) {
        let span = self.function.span;
        let loops = storing(list, &self.plan.loops);
        let Some(data) = self.tape.arrays.scratch().filter(|_| !loops.is_empty()) else { return };
        let zero = self.int(0, span);
        let top = self.assigned_to_new("top", zero);
        let most = self.begun(&loops, "most");
        let locals: Vec<LocalId> = most.values().copied().collect();
        self.stack = Some(Stack { data, thread: top, threads: top, top, loops: most, is_counting: true });
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
        let Some(stack) = self.stack.as_ref().filter(|stack| !stack.is_counting) else { return };
        let (top, Some(&first)) = (stack.top, stack.loops.get(&repeat.id)) else { return };
        let value = self.read(top, repeat.span);
        self.push(StmtKind::Assign(first, value), repeat.span);
    }

    /// After it: the stack ends after its records.
    pub(super) fn end_records(&mut self, repeat: &Repeat) {
        let Some(stack) = &self.stack else { return };
        let (top, is_counting, Some(&local)) = (stack.top, stack.is_counting, stack.loops.get(&repeat.id)) else {
            return;
        };
        let span = repeat.span;
        let (count, size) =
            (self.read(repeat.count, span), self.int(i128::from(self.plan.loops[repeat.id].record_bytes()), span));
        let bytes = self.binary(BinaryOp::Mul, count, size, span);
        let more = self.int(i128::from(ALIGN - 1), span);
        let bytes = self.binary(BinaryOp::Add, bytes, more, span);
        let mask = self.int(-i128::from(ALIGN), span);
        let bytes = self.binary(BinaryOp::And, bytes, mask, span);
        if !is_counting {
            let first = self.read(local, span);
            let end = self.binary(BinaryOp::Add, first, bytes, span);
            return self.push(StmtKind::Assign(top, end), span);
        }
        let most = self.read(local, span);
        let most = self.binary(BinaryOp::Max, most, bytes, span);
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
        (repeat, at, record): (usize, u64, u64),
        iteration: LocalId,
        span: Span,
    ) -> ExprId {
        let elem = self.function.locals[value].ty.scalar().unwrap_or(Scalar::F64);
        let Some(stack) = &self.stack else { return self.int(0, span) };
        let (data, thread, threads) = (stack.data, stack.thread, stack.threads);
        let Some(&first) = stack.loops.get(&repeat) else { return self.int(0, span) };
        let (number, size) = (self.read(iteration, span), self.int(i128::from(record), span));
        let before = self.binary(BinaryOp::Mul, number, size, span);
        let (first, at) = (self.read(first, span), self.int(i128::from(at), span));
        let begin = self.binary(BinaryOp::Add, first, before, span);
        let begin = self.binary(BinaryOp::Add, begin, at, span);
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
