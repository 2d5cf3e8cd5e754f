//! Additions of the lanes of a warp to adjacent elements, as those of stencils: a sum slides from lane to lane, and one
//! lane adds it.
//!
//! ```text
//! atomic.add x[i - 1], a             if all lanes are active, and i - lane is the same in them {
//! atomic.add x[i], b                     if lane == 0 { atomic.add x[i - 1], a }
//!                                        atomic.add x[i], b + (a of the next lane, 0 in the last one)
//!                                    } else { both additions }
//! ```
//!
//! The additions of a list of statements whose indices differ by constants are taken in the order of their indices.
//!
//! Legal: nothing observes when an addition is executed (see the parent). The test at run time shows that lane `l + 1` adds
//! to `x[i - 1]` where lane `l` adds to `x[i]`.
//!
//! Profitable if the lanes have consecutive indices, which are computed from `threadIdx.x` without a factor: a shuffle and
//! an addition of one lane are cheaper than one of 32 lanes. The adjoint of a stencil of five points takes 0.84 of the time
//! on an H200. Sums that slide over the iterations of a loop, one lane adding in each, are not: for a convolution of nine
//! elements they took 1.15 of the time.

use super::{ALL_LANES, Combiner, LANES, addition, element, reads_memory};
use crate::{
    analysis::{for_each_read, same},
    ir::{
        BinaryOp, Block, CompareOp, ExprId, ExprKind, Function, LocalId, SpecialRegister, Stmt, StmtKind, Type,
        for_each_stmt,
    },
};

/// The largest distance of two elements between which a sum slides.
const FARTHEST: i128 = 4;

/// An addition of a list of statements, with the constant part of its index.
struct Adjacent {
    at: usize,
    pointer: ExprId,
    offset: i128,
}

/// Collects the terms of a sum of integers that does not overflow, or whose overflow has no effect on an address.
fn terms(function: &Function, id: ExprId, found: &mut Vec<ExprId>, constant: &mut i128) {
    let wraps = function.exprs[id].ty == Type::I64;
    if let Some(value) = function.int(id) {
        *constant += value;
    } else if let ExprKind::Binary(BinaryOp::AddExact, a, b) = function.exprs[id].kind {
        terms(function, a, found, constant);
        terms(function, b, found, constant);
    } else if let ExprKind::Binary(BinaryOp::Add, a, b) = function.exprs[id].kind
        && wraps
    {
        terms(function, a, found, constant);
        terms(function, b, found, constant);
    } else if let ExprKind::Binary(BinaryOp::SubExact | BinaryOp::Sub, a, b) = function.exprs[id].kind
        && let Some(value) = function.int(b)
        && (wraps || matches!(function.exprs[id].kind, ExprKind::Binary(BinaryOp::SubExact, ..)))
    {
        terms(function, a, found, constant);
        *constant -= value;
    } else if let ExprKind::Convert(inner) = function.exprs[id].kind
        && wraps
        && function.exprs[inner].ty == Type::I32
    {
        terms(function, inner, found, constant);
    } else {
        found.push(id);
    }
}

/// The terms and the constant of an index.
fn sum_of(function: &Function, index: ExprId) -> (Vec<ExprId>, i128) {
    let (mut found, mut constant) = (Vec::new(), 0);
    terms(function, index, &mut found, &mut constant);
    (found, constant)
}

/// Whether two lists have the same terms in the same order.
fn are_same(function: &Function, one: &[ExprId], other: &[ExprId]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(&a, &b)| same(function, a, b))
}

impl Combiner<'_> {
    /// Replaces additions to adjacent elements in a list of statements and in nested ones.
    pub(super) fn slide(&mut self, block: &mut Block) {
        for inner in block.iter_mut().flat_map(|stmt| stmt.kind.blocks_mut().into_iter().flatten()) {
            self.slide(inner);
        }
        while let Some(group) = self.adjacent(block) {
            self.in_list(block, &group);
        }
    }

    /// Whether an index is computed from `threadIdx.x` without a factor.
    fn has_lane(&self, terms: &[ExprId]) -> bool {
        let function = &*self.function;
        terms.iter().any(|&term| {
            if let Some(local) = function.local(term) {
                self.of_lane.contains(&local)
            } else {
                matches!(function.exprs[term].kind, ExprKind::Special(SpecialRegister::ThreadIdx(0)))
            }
        })
    }

    /// Finds the locals that are computed from `threadIdx.x` without a factor, in the order of the statements.
    pub(super) fn find_of_lane(&mut self, body: &Block) {
        let mut found = Vec::new();
        for_each_stmt(body, &mut |stmt| {
            if let StmtKind::Assign(local, value) = stmt.kind {
                found.push((local, sum_of(self.function, value).0));
            }
        });
        for (local, terms) in found {
            if self.has_lane(&terms) {
                self.of_lane.insert(local);
            }
        }
    }

    /// The terms and the constant of an addition's index, if lanes likely add to consecutive elements.
    fn consecutive(&self, stmt: &Stmt) -> Option<(ExprId, LocalId, Vec<ExprId>, i128)> {
        let (pointer, _) = addition(self.function, stmt)?;
        let (param, index) = element(self.function, pointer)?;
        let is_elements = matches!(self.function.exprs[pointer].kind, ExprKind::Offset { scale: 1, .. });
        let is_read = reads_memory(self.function, pointer);
        let (terms, constant) = sum_of(self.function, index);
        let fits = is_elements && !is_read && self.is_only_added_to(pointer) && self.has_lane(&terms);
        fits.then_some((pointer, param, terms, constant))
    }

    /// Moves a sum to an earlier lane; the lanes from which it would leave the warp add it.
    fn advance(&mut self, sum: LocalId, pointer: ExprId, distance: i128, out: &mut Block) {
        let lane = self.expr(ExprKind::Special(SpecialRegister::LaneId), Type::I32);
        let limit = self.int(distance, Type::I32);
        let is_first = self.compare(CompareOp::Lt, lane, limit);
        let add = self.atomic(pointer, sum);
        out.push(self.branch(is_first, vec![add], Block::new()));
        let mask = self.int(ALL_LANES, Type::I32);
        let other = self.shuffled(sum, mask, distance, out);
        let lane = self.expr(ExprKind::Special(SpecialRegister::LaneId), Type::I32);
        let limit = self.int(LANES - distance, Type::I32);
        let is_inside = self.compare(CompareOp::Lt, lane, limit);
        let (other, zero) = (self.read(other), self.zero(self.function.locals[sum].ty));
        let value = self.expr(ExprKind::Select(is_inside, other, zero), self.function.locals[sum].ty);
        out.push(self.assign(sum, value));
    }

    /// An index less the lane.
    fn less_lane(&mut self, pointer: ExprId) -> ExprId {
        let index = element(self.function, pointer).map_or(pointer, |(_, index)| index);
        let index = self.function.copy_expr(index);
        let index = self.expr(ExprKind::Convert(index), Type::I64);
        let lane = self.special(SpecialRegister::LaneId);
        self.binary(BinaryOp::Sub, index, lane)
    }

    /// The first additions of a list of statements to adjacent elements, in the order of their indices.
    fn adjacent(&self, block: &[Stmt]) -> Option<Vec<Adjacent>> {
        for (first, stmt) in block.iter().enumerate() {
            let Some((pointer, param, terms, offset)) = self.consecutive(stmt) else { continue };
            let mut found = vec![Adjacent { at: first, pointer, offset }];
            for (at, other) in block.iter().enumerate().skip(first + 1) {
                match &other.kind {
                    StmtKind::Assign(local, _) => {
                        let mut changes = false;
                        for_each_read(self.function, pointer, &mut |read| changes |= read == *local);
                        if changes {
                            break;
                        }
                    }
                    StmtKind::Store { .. } => {}
                    StmtKind::Op { .. } if addition(self.function, other).is_some() => {
                        if let Some((pointer, other_param, other_terms, offset)) = self.consecutive(other)
                            && other_param == param
                            && are_same(self.function, &terms, &other_terms)
                            && found.iter().all(|one| one.offset != offset)
                        {
                            found.push(Adjacent { at, pointer, offset });
                        }
                    }
                    StmtKind::Op { .. }
                    | StmtKind::Call { .. }
                    | StmtKind::If { .. }
                    | StmtKind::Loop { .. }
                    | StmtKind::Break
                    | StmtKind::Continue
                    | StmtKind::Return(_) => break,
                }
            }
            found.sort_by_key(|one| one.offset);
            let reached = found.windows(2).take_while(|pair| pair[1].offset - pair[0].offset <= FARTHEST).count();
            found.truncate(reached + 1);
            if found.len() > 1 {
                return Some(found);
            }
        }
        None
    }

    /// Replaces additions to adjacent elements in a list of statements.
    fn in_list(&mut self, block: &mut Block, group: &[Adjacent]) {
        let mut last = 0;
        let mut sums = Vec::new();
        for one in group {
            self.span = block[one.at].span;
            let Some((_, term)) = addition(self.function, &block[one.at]) else { return };
            let sum = self.temp("sliding", self.function.exprs[term].ty);
            block[one.at] = self.assign(sum, term);
            sums.push(sum);
            last = last.max(one.at);
        }
        let mut out = Block::new();
        let start = self.less_lane(group[0].pointer);
        let (mask, all) = self.all_active(&mut out);
        let is_same = self.is_same(mask, start, &mut out);
        let cond = self.binary(BinaryOp::And, all, is_same);
        let mut then = Block::new();
        for (pair, moved) in group.windows(2).zip(sums.windows(2)) {
            self.advance(moved[0], pair[0].pointer, pair[1].offset - pair[0].offset, &mut then);
            let (own, other) = (self.read(moved[1]), self.read(moved[0]));
            let sum = self.binary(BinaryOp::Add, own, other);
            then.push(self.assign(moved[1], sum));
        }
        let mut otherwise = Block::new();
        for (one, &sum) in group.iter().zip(&sums) {
            otherwise.push(self.atomic(one.pointer, sum));
        }
        if let (Some(one), Some(&sum)) = (group.last(), sums.last()) {
            then.push(self.atomic(one.pointer, sum));
        }
        out.push(self.branch(cond, then, otherwise));
        block.splice(last + 1..=last, out);
    }
}
