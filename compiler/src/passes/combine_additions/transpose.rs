//! Loops in which all lanes of a warp add to the same elements, an element in each iteration, and which cannot be
//! [rotated](super::rotate): their iterations have other effects, or contiguous loads.
//!
//! ```text
//! loop {                                  if all lanes are active, with the same counter, bound and address {
//!     if not k < n { break }                  while k + 7 < n {
//!     atomic.add w'[k], t                         8 iterations, with additions to $sum.0 to $sum.7
//!     atomic.add u'[i + k], v                     exchange sums with the lane at a distance of 16, 8, 4, 2 and 1
//! } step { k = k + 1 }                            one of four lanes: atomic.add w'[k - 8 + lane / 4], $sum.0
//!                                             }
//!                                         }
//!                                         loop { …as before, for the remaining iterations }
//! ```
//!
//! Two lanes at a distance of 16 add up half of the sums each: one those of the first four iterations, the other one those
//! of the last four. The same follows at the distances 8 and 4. A lane is then left with one sum, of eight lanes, and the two
//! last exchanges make it one of all lanes.
//!
//! Legal: each lane runs its iterations in the same order, and nothing observes when it adds to these elements (see the
//! parent). A test at run time shows that the lanes are in the same iteration, and add to the same elements.
//!
//! Profitable: 9 shuffles and one atomic addition for 8 iterations, in place of 40 and 8, and of a test in each iteration.

use super::{ALL_LANES, Combiner, LANES, addition, loops::counted, rotate::Rotation, sum_type};
use crate::{
    analysis::assigned_in,
    ir::{
        BinaryOp, Block, CompareOp, ExprId, ExprKind, LocalId, Shuffle, SpecialRegister, Stmt, StmtKind, Type,
        for_each_expr_of_block, for_each_stmt,
    },
};

/// The iterations whose sums are transposed together.
const TOGETHER: usize = 8;

/// The most elements of an iteration: each has 8 sums.
const MOST: usize = 2;

/// The most expressions of a loop's body, which is copied 8 times.
const LONGEST: usize = 120;

impl Combiner<'_> {
    /// The additions of a loop that can be transposed.
    pub(super) fn transposed(&self, body: &Block, step: &Block) -> Option<Rotation> {
        let counted = counted(self.function, body, step)?;
        let iteration = &body[1..];
        let own = assigned_in(iteration);
        let (mut pointers, mut fits, mut exprs) = (Vec::new(), true, 0);
        for_each_stmt(iteration, &mut |stmt| match &stmt.kind {
            StmtKind::Assign(..) | StmtKind::If { .. } | StmtKind::Store { .. } => {}
            StmtKind::Op { .. } => match addition(self.function, stmt) {
                Some((pointer, _)) if self.is_rotating(pointer, &counted, &own) => pointers.push(pointer),
                Some(_) => {}
                None => fits = false,
            },
            StmtKind::Call { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => fits = false,
        });
        for_each_expr_of_block(self.function, body, &mut |_| exprs += 1);
        if !fits || exprs > LONGEST || !(1..=MOST).contains(&pointers.len()) {
            return None;
        }
        self.with_inputs(counted, pointers, &own)
    }

    /// Emits the transposed loop.
    pub(super) fn transpose(&mut self, iteration: &[Stmt], step: &Block, transposed: &Rotation, out: &mut Block) {
        let (counter, own) = (transposed.counted.counter, assigned_in(iteration));
        let cond = self.is_together(transposed, out);
        let types = transposed.pointers.iter().filter_map(|&pointer| match self.function.exprs[pointer].ty {
            Type::Ptr(elem, _) => Some(Type::Scalar(sum_type(elem))),
            Type::Scalar(_) => None,
        });
        let types: Vec<Type> = types.collect();
        let sums: Vec<Vec<LocalId>> =
            (0..TOGETHER).map(|_| types.iter().map(|&ty| self.temp("sum", ty)).collect()).collect();
        let goes_on = self.has_left(&transposed.counted, counter, TOGETHER as i128);
        let first = self.temp("first", self.function.locals[counter].ty);
        self.function.locals[first].nonneg = self.function.locals[counter].nonneg;
        let value = self.read(counter);
        let mut body = vec![self.exit_unless(goes_on), self.assign(first, value)];
        for of_iteration in &sums {
            for &sum in of_iteration {
                let zero = self.zero(self.function.locals[sum].ty);
                body.push(self.assign(sum, zero));
            }
            let mut copies = self.function.copy_stmts(iteration);
            let is_chosen = |combiner: &Self, pointer| combiner.is_rotating(pointer, &transposed.counted, &own);
            self.sum_instead(&mut copies, &is_chosen, &mut of_iteration.iter());
            body.append(&mut copies);
            body.extend(self.function.copy_stmts(step));
        }
        let by_element: Vec<Vec<LocalId>> =
            (0..types.len()).map(|element| sums.iter().map(|of_iteration| of_iteration[element]).collect()).collect();
        let lane = self.nonneg("lane", Type::I32);
        let value = self.expr(ExprKind::Special(SpecialRegister::LaneId), Type::I32);
        body.push(self.assign(lane, value));
        for sums in &by_element {
            self.exchange(sums, lane, &mut body);
        }
        let own = self.own_counter(transposed, first, lane, &mut body);
        let mut adds = Block::new();
        for (&pointer, sums) in transposed.pointers.iter().zip(&by_element) {
            let pointer = self.at(pointer, counter, own);
            let (tested, zero) = (self.read(sums[0]), self.zero(self.function.locals[sums[0]].ty));
            let is_any = self.compare(CompareOp::Ne, tested, zero);
            let add = self.add(pointer, sums[0]);
            adds.push(self.branch(is_any, vec![add], Block::new()));
        }
        let lanes_of_sum = LANES / TOGETHER as i128;
        let (lane, last, zero) = (self.read(lane), self.int(lanes_of_sum - 1, Type::I32), self.int(0, Type::I32));
        let rest = self.binary(BinaryOp::And, lane, last);
        let is_first = self.compare(CompareOp::Eq, rest, zero);
        body.push(self.branch(is_first, adds, Block::new()));
        let all = self.stmt(StmtKind::Loop { body, step: Block::new() });
        out.push(self.branch(cond, vec![all], Block::new()));
    }

    /// The counter of the iteration whose sum a lane has.
    fn own_counter(&mut self, transposed: &Rotation, first: LocalId, lane: LocalId, out: &mut Block) -> LocalId {
        let ty = self.function.locals[first].ty;
        let own = self.temp("own", ty);
        self.function.locals[own].nonneg = self.function.locals[first].nonneg;
        let bits = (LANES / TOGETHER as i128).ilog2();
        let (lane, bits) = (self.read(lane), self.int(i128::from(bits), Type::I32));
        let number = self.binary(BinaryOp::Shr, lane, bits);
        let number = self.expr(ExprKind::Convert(number), ty);
        let stride = self.int(transposed.counted.stride, ty);
        let distance = self.binary(BinaryOp::MulExact, number, stride);
        let first = self.read(first);
        let value = self.binary(BinaryOp::AddExact, first, distance);
        out.push(self.assign(own, value));
        own
    }

    /// Adds up the sums of all lanes: lane `l` has the one with the number `l / 4` afterwards, in the first local.
    fn exchange(&mut self, sums: &[LocalId], lane: LocalId, out: &mut Block) {
        let (mut distance, mut left) = (LANES / 2, sums.len());
        while distance > 0 {
            let half = left / 2;
            if half == 0 {
                let (value, mask) = (sums[0], self.int(ALL_LANES, Type::I32));
                let other = self.exchanged(value, mask, (Shuffle::Xor, distance, LANES), out);
                let (own, other) = (self.read(value), self.read(other));
                let sum = self.binary(BinaryOp::Add, own, other);
                out.push(self.assign(value, sum));
            }
            for (&low, &high) in sums[..half].iter().zip(&sums[half..]) {
                let ty = self.function.locals[low].ty;
                let given = self.temp("given", ty);
                let value = self.of_half((low, high), (lane, distance));
                out.push(self.assign(given, value));
                let own = self.of_half((high, low), (lane, distance));
                out.push(self.assign(low, own));
                let mask = self.int(ALL_LANES, Type::I32);
                let other = self.exchanged(given, mask, (Shuffle::Xor, distance, LANES), out);
                let (own, other) = (self.read(low), self.read(other));
                let sum = self.binary(BinaryOp::Add, own, other);
                out.push(self.assign(low, sum));
            }
            left = half;
            distance /= 2;
        }
    }

    /// The first value in lanes that have a bit, the second one in others.
    fn of_half(&mut self, (with, without): (LocalId, LocalId), (lane, bit): (LocalId, i128)) -> ExprId {
        let ty = self.function.locals[with].ty;
        let (lane, bit, zero) = (self.read(lane), self.int(bit, Type::I32), self.int(0, Type::I32));
        let has = self.binary(BinaryOp::And, lane, bit);
        let has = self.compare(CompareOp::Ne, has, zero);
        let (with, without) = (self.read(with), self.read(without));
        self.expr(ExprKind::Select(has, with, without), ty)
    }
}
