//! Sums of lanes that add to the same element of shared memory, as in the adjoint of a product of tiles.
//!
//! ```text
//! atomic.add tile'[ty, k], t        if all lanes are active, and the 16 lanes of each half have one index {
//!                                       t = sum of t over the half
//!                                       if lane % 16 == 0 { atomic.add tile'[ty, k], t }
//!                                   } else { atomic.add tile'[ty, k], t }
//! atomic.add tile'[k, tx], t        the same, for lanes at a distance of 16: two rows of a block
//! ```
//!
//! Legal: an element that several threads access between two barriers is only added to there, because the kernel only loads
//! it. The test at run time shows which lanes have the same index.
//!
//! Profitable because a GPU adds floats in shared memory by a loop of compare-and-swap, which serializes lanes with the same
//! address. Indices that depend on no `threadIdx.x` are those of rows, of 16 threads if the block may have two dimensions,
//! else of 32. Those that depend on no other index of the thread are those of columns. The adjoint of a product by tiles of 16 by
//! 16 takes 0.33 of the time on an H200.

use super::{ALL_LANES, Combiner, LANES, Uniform, addition_in, reads_memory};
use crate::ir::{
    BinaryOp, Block, Class, CompareOp, ExprId, ExprKind, Function, LocalId, Op, Shuffle, Space, SpecialRegister, Stmt,
    StmtKind, Type, Vote, for_each_expr_of_block,
};

/// Threads of a row of a block with two dimensions.
const ROW: i128 = 16;

/// How lanes with the same index lie in a warp.
#[derive(Clone, Copy)]
enum Groups {
    /// This number of neighbors, a power of two.
    Rows(i128),
    /// Pairs at a distance of [`ROW`].
    Columns,
}

/// What decides about the groups of an index.
struct Shape {
    along_x: Uniform,
    along_y: Uniform,
    has_rows: bool,
}

/// The index and the term of an addition of floats to an array in shared memory.
fn addition(function: &Function, stmt: &Stmt) -> Option<(ExprId, ExprId)> {
    let (pointer, term) = addition_in(function, stmt, Space::Shared)?;
    let Class::Address { mut base, by, .. } = function.class(pointer) else { return None };
    while let ExprKind::Convert(inner) = function.exprs[base].kind {
        base = inner;
    }
    let is_array = matches!(function.class(base), Class::Leaf(_)) && function.local(base).is_none();
    (is_array && !reads_memory(function, pointer)).then_some((by, term))
}

impl Combiner<'_> {
    /// Combines the additions to shared memory of a kernel's body.
    pub(super) fn share(&mut self, body: &mut Block) {
        use SpecialRegister::{LaneId, ThreadIdx};
        let mut has_rows = false;
        for_each_expr_of_block(self.function, body, &mut |id| {
            has_rows |= matches!(self.function.exprs[id].kind, ExprKind::Special(ThreadIdx(1 | 2)));
        });
        let of = |registers| Uniform::of(self.function, body, registers);
        let (along_x, along_y) = (of(&[ThreadIdx(0), LaneId]), of(&[ThreadIdx(1), ThreadIdx(2), LaneId]));
        self.share_in(body, &Shape { along_x, along_y, has_rows });
    }

    fn share_in(&mut self, block: &mut Block, shape: &Shape) {
        let mut out = Block::with_capacity(block.len());
        for mut stmt in std::mem::take(block) {
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.share_in(inner, shape);
            }
            let Some((index, term)) = addition(self.function, &stmt) else {
                out.push(stmt);
                continue;
            };
            let groups = if shape.along_x.has(self.function, index) {
                Groups::Rows(if shape.has_rows { ROW } else { LANES })
            } else if shape.has_rows && shape.along_y.has(self.function, index) {
                Groups::Columns
            } else {
                out.push(stmt);
                continue;
            };
            self.span = stmt.span;
            self.in_groups(&stmt, (index, term), groups, &mut out);
        }
        *block = out;
    }

    /// Emits an addition, once for each group where its lanes have the same index.
    fn in_groups(&mut self, stmt: &Stmt, (index, term): (ExprId, ExprId), groups: Groups, out: &mut Block) {
        let sum = self.temp("t", self.function.exprs[term].ty);
        out.push(self.assign(sum, term));
        let own = self.temp("index", Type::I32);
        let index = self.function.copy_expr(index);
        let index = self.expr(ExprKind::Convert(index), Type::I32);
        out.push(self.assign(own, index));
        let (mask, all) = self.all_active(out);
        let mask_read = self.read(mask);
        let (shuffle, by, width) = match groups {
            Groups::Rows(width) => (Shuffle::Index, 0, width),
            Groups::Columns => (Shuffle::Xor, ROW, LANES),
        };
        let other = self.exchanged(own, mask_read, (shuffle, by, width), out);
        let (one, other) = (self.read(own), self.read(other));
        let is_same = self.compare(CompareOp::Eq, one, other);
        let (same, mask) = (self.temp("same", Type::BOOL), self.read(mask));
        out.push(self.op(Op::Vote(Vote::All), vec![same], vec![mask, is_same]));
        let same = self.read(same);
        let cond = self.binary(BinaryOp::And, all, same);
        let mut then = Block::new();
        let distances: Vec<i128> = match groups {
            Groups::Rows(width) => (1..=5).map(|bit| LANES >> bit).filter(|&distance| distance < width).collect(),
            Groups::Columns => vec![ROW],
        };
        for distance in distances {
            let mask = self.int(ALL_LANES, Type::I32);
            let other = self.exchanged(sum, mask, (Shuffle::Xor, distance, LANES), &mut then);
            let (one, other) = (self.read(sum), self.read(other));
            let both = self.binary(BinaryOp::Add, one, other);
            then.push(self.assign(sum, both));
        }
        let lane = self.special(SpecialRegister::LaneId);
        let is_first = match groups {
            Groups::Rows(width) => {
                let (last, zero) = (self.int(width - 1, Type::I64), self.int(0, Type::I64));
                let in_row = self.binary(BinaryOp::And, lane, last);
                self.compare(CompareOp::Eq, in_row, zero)
            }
            Groups::Columns => {
                let end = self.int(ROW, Type::I64);
                self.compare(CompareOp::Lt, lane, end)
            }
        };
        let add = self.with_term(stmt, sum);
        then.push(self.branch(is_first, vec![add], Block::new()));
        let otherwise = vec![self.with_term(stmt, sum)];
        out.push(self.branch(cond, then, otherwise));
    }

    /// A copy of an addition, with another term.
    pub(super) fn with_term(&mut self, stmt: &Stmt, term: LocalId) -> Stmt {
        let mut copy = stmt.clone();
        if let StmtKind::Op { args, .. } = &mut copy.kind
            && let [pointer, value] = args.as_mut_slice()
        {
            *pointer = self.function.copy_expr(*pointer);
            *value = self.read(term);
        }
        copy
    }
}
