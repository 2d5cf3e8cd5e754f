//! Sums over the threads of a block, which are added at the end of the kernel.

use weft_artifact::Scalar;

use super::{ALL_LANES, Combiner, LANES, addition, element, root, sum_type};
use crate::{
    analysis::same,
    ir::{
        Align, BinaryOp, Block, Class, CompareOp, ExprId, ExprKind, LocalId, Op, SharedArray, SharedId, SharedKind,
        Space, SpecialRegister, Stmt, StmtKind, Type, UnaryOp, for_each_expr, for_each_stmt,
    },
};

/// The elements of an array that have a copy in shared memory.
const COPIED: u64 = 64;

/// The most arrays with such a copy.
const MOST_COPIES: usize = 4;

/// The most elements that are summed in locals.
const MOST_SUMS: usize = 8;

/// A local that sums what a thread adds to one element.
pub(super) struct Sum {
    pointer: ExprId,
    local: LocalId,
}

/// The copy of an array's first elements in shared memory.
pub(super) struct Copy {
    param: LocalId,
    array: SharedId,
    elem: Scalar,
}

impl Combiner<'_> {
    /// Replaces the additions to elements whose address is the same in the whole grid by additions to locals.
    pub(super) fn sums(&mut self, body: &mut Block) -> Vec<Sum> {
        let mut found: Vec<ExprId> = Vec::new();
        for_each_stmt(body, &mut |stmt| {
            if let Some((pointer, _)) = addition(self.function, stmt)
                && found.len() < MOST_SUMS
                && self.is_of_grid(pointer)
                && !found.iter().any(|&other| same(self.function, pointer, other))
                && self.is_only_added_to(pointer)
            {
                found.push(pointer);
            }
        });
        let mut sums = Vec::new();
        for pointer in found {
            let Type::Ptr(elem, _) = self.function.exprs[pointer].ty else { continue };
            let local = self.temp("sum", Type::Scalar(sum_type(elem)));
            self.replace(body, pointer, local);
            sums.push(Sum { pointer, local });
        }
        sums
    }

    /// Whether an address consists of parameters and constants.
    fn is_of_grid(&self, pointer: ExprId) -> bool {
        let function = &*self.function;
        let mut constant = root(function, pointer).is_some();
        for_each_expr(function, pointer, &mut |id| match function.class(id) {
            Class::Leaf(crate::ir::Leaf::Local(local)) => constant &= function.params.contains(&local),
            Class::Leaf(crate::ir::Leaf::Special(_)) | Class::Load(_) => constant = false,
            Class::Leaf(crate::ir::Leaf::Const(_) | crate::ir::Leaf::Base(_))
            | Class::Arith(_)
            | Class::Address { .. } => {}
        });
        constant
    }

    fn replace(&mut self, block: &mut Block, pointer: ExprId, sum: LocalId) {
        for stmt in block {
            if let Some((_, term)) = addition(self.function, stmt).filter(|&(own, _)| same(self.function, own, pointer))
            {
                let before = self.read(sum);
                let after = self.binary(BinaryOp::Add, before, term);
                stmt.kind = StmtKind::Assign(sum, after);
            }
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.replace(inner, pointer, sum);
            }
        }
    }

    /// An addition to the array's copy, if it has the element, or to the array.
    pub(super) fn add(&mut self, pointer: ExprId, term: LocalId) -> Stmt {
        let own = self.atomic(pointer, term);
        let Some((param, index)) = element(self.function, pointer) else { return own };
        let is_elements = matches!(self.function.exprs[pointer].kind, ExprKind::Offset { scale: 1, .. });
        let Some(copy) = self.copies.iter().find(|copy| copy.param == param && is_elements) else { return own };
        let (array, elem) = (copy.array, copy.elem);
        let mut indices = [index; 2];
        for index in &mut indices {
            *index = self.function.copy_expr(*index);
        }
        let [tested, index] = indices;
        let unsigned = Type::Scalar(Scalar::U64);
        let (tested, most) = (self.expr(ExprKind::Convert(tested), unsigned), self.int(i128::from(COPIED), unsigned));
        let is_copied = self.compare(CompareOp::Lt, tested, most);
        let pointer = self.copied(array, elem, index);
        let copied = self.atomic(pointer, term);
        self.branch(is_copied, vec![copied], vec![own])
    }

    pub(super) fn copied(&mut self, array: SharedId, elem: Scalar, index: ExprId) -> ExprId {
        let ty = Type::Ptr(elem, Space::Shared);
        let base = self.expr(ExprKind::SharedBase(array), ty);
        self.expr(ExprKind::Offset { base, index, scale: 1 }, ty)
    }

    pub(super) fn shared(&mut self, name: &str, elem: Scalar, len: u64) -> SharedId {
        self.module.shared.push(SharedArray {
            name: name.to_owned(),
            kind: SharedKind::Cells,
            elem,
            len,
            shape: Vec::new(),
            align: elem.size_bytes(),
            span: self.span,
        })
    }

    /// Finds the arrays that get copies in shared memory.
    pub(super) fn find_copies(&mut self, body: &Block) {
        let mut found: Vec<(LocalId, Scalar)> = Vec::new();
        for_each_stmt(body, &mut |stmt| {
            if let Some((pointer, _)) = addition(self.function, stmt)
                && let Some((param, _)) = element(self.function, pointer)
                && matches!(self.function.exprs[pointer].kind, ExprKind::Offset { scale: 1, .. })
                && self.uniform.has(self.function, pointer)
                && found.len() < MOST_COPIES
                && !found.iter().any(|&(other, _)| other == param)
                && self.is_only_added_to(pointer)
                && let Type::Ptr(elem, _) = self.function.exprs[pointer].ty
            {
                found.push((param, sum_type(elem)));
            }
        });
        for (param, elem) in found {
            let array = self.shared("copied", elem, COPIED);
            self.copies.push(Copy { param, array, elem });
        }
    }

    /// The thread's number in the block, and the number of threads.
    fn thread(&mut self, out: &mut Block) -> (LocalId, LocalId) {
        let (thread, threads) = (self.temp("thread", Type::I64), self.temp("threads", Type::I64));
        let [x, y, z] = [0, 1, 2].map(|axis| self.special(SpecialRegister::ThreadIdx(axis)));
        let [width, height] = [0, 1].map(|axis| self.special(SpecialRegister::BlockDim(axis)));
        let rows = self.binary(BinaryOp::Mul, z, height);
        let rows = self.binary(BinaryOp::Add, rows, y);
        let before = self.binary(BinaryOp::Mul, rows, width);
        let number = self.binary(BinaryOp::Add, before, x);
        out.push(self.assign(thread, number));
        let [width, height, depth] = [0, 1, 2].map(|axis| self.special(SpecialRegister::BlockDim(axis)));
        let area = self.binary(BinaryOp::Mul, width, height);
        let count = self.binary(BinaryOp::Mul, area, depth);
        out.push(self.assign(threads, count));
        (thread, threads)
    }

    /// Adds the statements at the start and the end of the kernel.
    pub(super) fn around(&mut self, body: &mut Block, sums: &[Sum]) {
        if sums.is_empty() && self.copies.is_empty() {
            return;
        }
        self.span = self.function.span;
        let mut out = Block::new();
        let (thread, threads) = self.thread(&mut out);
        for sum in sums {
            let zero = self.zero(self.function.locals[sum.local].ty);
            out.push(self.assign(sum.local, zero));
        }
        let barrier = |combiner: &Self| combiner.op(Op::Barrier, Vec::new(), Vec::new());
        if !self.copies.is_empty() {
            let clear = self.over_copies(thread, threads, &mut |combiner, number, index| {
                let (array, elem) = combiner.copy(number);
                let pointer = combiner.copied(array, elem, index);
                let value = combiner.zero(Type::Scalar(elem));
                vec![combiner.stmt(StmtKind::Store { pointer, value, align: Align::Natural })]
            });
            out.extend(clear);
            out.push(barrier(self));
        }
        out.append(body);
        let parts = self.warp_sums(sums, thread, threads, &mut out);
        out.push(barrier(self));
        self.block_sums(sums, &parts, thread, threads, &mut out);
        if !self.copies.is_empty() {
            let flush = self.over_copies(thread, threads, &mut |combiner, number, index| {
                let (array, elem) = combiner.copy(number);
                let value = combiner.temp("copied", Type::Scalar(elem));
                let again = combiner.function.copy_expr(index);
                let pointer = combiner.copied(array, elem, index);
                let load = combiner.expr(ExprKind::Load(pointer, Align::Natural), Type::Scalar(elem));
                let base = combiner.read(combiner.copies[number].param);
                let ty = combiner.function.exprs[base].ty;
                let pointer = combiner.expr(ExprKind::Offset { base, index: again, scale: 1 }, ty);
                vec![combiner.assign(value, load), combiner.add_if_any(pointer, value)]
            });
            out.extend(flush);
        }
        *body = out;
    }

    fn copy(&self, number: usize) -> (SharedId, Scalar) {
        (self.copies[number].array, self.copies[number].elem)
    }

    /// A loop of the block's threads over the elements of the copies. `each` gets the number of a copy, and the index.
    fn over_copies(
        &mut self,
        thread: LocalId,
        threads: LocalId,
        each: &mut dyn FnMut(&mut Self, usize, ExprId) -> Block,
    ) -> Block {
        let index = self.temp("index", Type::I64);
        let first = self.read(thread);
        let start = self.assign(index, first);
        let (now, most) = (self.read(index), self.int(i128::from(COPIED), Type::I64));
        let more = self.compare(CompareOp::Lt, now, most);
        let done = self.expr(ExprKind::Unary(UnaryOp::Not, more), Type::BOOL);
        let mut body = vec![self.branch(done, vec![self.stmt(StmtKind::Break)], Block::new())];
        for number in 0..self.copies.len() {
            let index = self.read(index);
            body.extend(each(self, number, index));
        }
        let (now, by) = (self.read(index), self.read(threads));
        let next = self.binary(BinaryOp::Add, now, by);
        let step = vec![self.assign(index, next)];
        vec![start, self.stmt(StmtKind::Loop { body, step })]
    }

    /// Sums over the lanes of each warp; the first lane stores the sums in shared memory. The last warp may have fewer
    /// lanes.
    fn warp_sums(&mut self, sums: &[Sum], thread: LocalId, threads: LocalId, out: &mut Block) -> Vec<SharedId> {
        if sums.is_empty() {
            return Vec::new();
        }
        let (lane, lanes, mask) =
            (self.temp("lane", Type::I32), self.temp("lanes", Type::I32), self.temp("mask", Type::I32));
        let value = self.expr(ExprKind::Special(SpecialRegister::LaneId), Type::I32);
        out.push(self.assign(lane, value));
        let (count, own, of_lane) = (self.read(threads), self.read(thread), self.read(lane));
        let of_lane = self.expr(ExprKind::Convert(of_lane), Type::I64);
        let left = self.binary(BinaryOp::Sub, count, own);
        let left = self.binary(BinaryOp::Add, left, of_lane);
        let most = self.int(LANES, Type::I64);
        let present = self.binary(BinaryOp::Min, left, most);
        let present = self.expr(ExprKind::Convert(present), Type::I32);
        out.push(self.assign(lanes, present));
        let (full, present) = (self.int(LANES, Type::I32), self.read(lanes));
        let is_full = self.compare(CompareOp::Eq, present, full);
        let (one, present) = (self.int(1, Type::I32), self.read(lanes));
        let above = self.binary(BinaryOp::Shl, one, present);
        let one = self.int(1, Type::I32);
        let below = self.binary(BinaryOp::Sub, above, one);
        let mut otherwise = vec![self.assign(mask, below)];
        self.partial_sums(sums, (lane, lanes, mask), &mut otherwise);
        let then = self.full_sums(sums);
        out.push(self.branch(is_full, then, otherwise));
        let mut parts = Vec::new();
        let mut stores = Block::new();
        for sum in sums {
            let elem = self.function.locals[sum.local].ty.scalar().unwrap_or(Scalar::F64);
            let part = self.shared("parts", elem, LANES as u64);
            let (own, warp) = (self.read(thread), self.int(5, Type::I64));
            let warp = self.binary(BinaryOp::Shr, own, warp);
            let pointer = self.copied(part, elem, warp);
            let value = self.read(sum.local);
            stores.push(self.stmt(StmtKind::Store { pointer, value, align: Align::Natural }));
            parts.push(part);
        }
        let (own, zero) = (self.read(lane), self.int(0, Type::I32));
        let is_first = self.compare(CompareOp::Eq, own, zero);
        out.push(self.branch(is_first, stores, Block::new()));
        parts
    }

    /// Sums over the 32 lanes of a warp.
    fn full_sums(&mut self, sums: &[Sum]) -> Block {
        let mut out = Block::new();
        let mut distance = LANES / 2;
        while distance > 0 {
            for sum in sums {
                let mask = self.int(ALL_LANES, Type::I32);
                let other = self.shuffled(sum.local, mask, distance, &mut out);
                let (own, other) = (self.read(sum.local), self.read(other));
                let value = self.binary(BinaryOp::Add, own, other);
                out.push(self.assign(sum.local, value));
            }
            distance /= 2;
        }
        out
    }

    /// Sums over the first lanes of a warp. `lane`, `lanes`, `mask`: the lane, their number and their mask.
    fn partial_sums(&mut self, sums: &[Sum], (lane, lanes, mask): (LocalId, LocalId, LocalId), out: &mut Block) {
        let mut distance = LANES / 2;
        while distance > 0 {
            for sum in sums {
                let ty = self.function.locals[sum.local].ty;
                let mask = self.read(mask);
                let other = self.shuffled(sum.local, mask, distance, out);
                let (own, by, present) = (self.read(lane), self.int(distance, Type::I32), self.read(lanes));
                let from = self.binary(BinaryOp::Add, own, by);
                let is_present = self.compare(CompareOp::Lt, from, present);
                let (other, zero) = (self.read(other), self.zero(ty));
                let other = self.expr(ExprKind::Select(is_present, other, zero), ty);
                let own = self.read(sum.local);
                let value = self.binary(BinaryOp::Add, own, other);
                out.push(self.assign(sum.local, value));
            }
            distance /= 2;
        }
    }

    /// Sums over the warps: a thread for each sum, in the order of the warps.
    fn block_sums(&mut self, sums: &[Sum], parts: &[SharedId], thread: LocalId, threads: LocalId, out: &mut Block) {
        for (number, (sum, &part)) in sums.iter().zip(parts).enumerate() {
            let ty = self.function.locals[sum.local].ty;
            let warp = self.temp("warp", Type::I64);
            let (zero, first) = (self.zero(ty), self.int(0, Type::I64));
            let mut then = vec![self.assign(sum.local, zero), self.assign(warp, first)];
            let (now, count) = (self.read(warp), self.read(threads));
            let lanes = self.int(5, Type::I64);
            let before = self.binary(BinaryOp::Shl, now, lanes);
            let more = self.compare(CompareOp::Lt, before, count);
            let done = self.expr(ExprKind::Unary(UnaryOp::Not, more), Type::BOOL);
            let index = self.read(warp);
            let pointer = self.copied(part, ty.scalar().unwrap_or(Scalar::F64), index);
            let load = self.expr(ExprKind::Load(pointer, Align::Natural), ty);
            let own = self.read(sum.local);
            let value = self.binary(BinaryOp::Add, own, load);
            let body =
                vec![self.branch(done, vec![self.stmt(StmtKind::Break)], Block::new()), self.assign(sum.local, value)];
            let (now, one) = (self.read(warp), self.int(1, Type::I64));
            let next = self.binary(BinaryOp::Add, now, one);
            let step = vec![self.assign(warp, next)];
            then.push(self.stmt(StmtKind::Loop { body, step }));
            then.push(self.add_if_any(sum.pointer, sum.local));
            let number = number as i128;
            let (count, own) = (self.read(threads), self.read(thread));
            let (number_of, zero) = (self.int(number, Type::I64), self.int(0, Type::I64));
            let number = self.int(number, Type::I64);
            let has = self.compare(CompareOp::Gt, count, number_of);
            let one = self.expr(ExprKind::Select(has, number, zero), Type::I64);
            let is_own = self.compare(CompareOp::Eq, own, one);
            out.push(self.branch(is_own, then, Block::new()));
        }
    }
}
