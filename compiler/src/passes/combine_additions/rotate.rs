//! Loops in which all lanes of a warp add to the same elements, an element in each iteration.
//!
//! ```text
//! loop {                                  if all lanes are active, with the same counter, bound and address {
//!     if not k < n { break }                  while k + 31 < n {
//!     atomic.add m'[k], t                         $sum = 0
//! } step { k = k + 1 }                            for step in range(32) {
//!                                                     j = k + (lane + step) % 32
//!                                                     $sum = $sum + t of j
//!                                                     $sum = shuffle.index $sum, (lane + 1) % 32
//!                                                 }
//!                                                 atomic.add m'[k + lane], $sum
//!                                                 k = k + 32
//!                                             }
//!                                         }
//!                                         loop { …as before, for the remaining iterations }
//! ```
//!
//! In each step the lanes are in 32 different iterations, and each has the sum for its iteration's element. The sum moves
//! to the lane that runs this iteration next. After 32 steps a sum has the terms of all lanes.
//!
//! Legal: the iterations carry only sums, and change memory only by such additions, to arrays that the kernel does not
//! access otherwise. So they may run in any order. The address depends on nothing that differs between the lanes, which
//! a test at run time shows, as it shows that the 32 iterations exist. The order of the terms of a sum changes, as it does
//! by atomic additions.
//!
//! Profitable: an iteration has one shuffle for each element, in place of a sum over the warp and an atomic addition. A load
//! whose address differs between lanes and between iterations is not contiguous any more, so loops with such loads are left
//! as they are.

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use super::{
    ALL_LANES, Combiner, LANES, addition, element,
    loops::{Counted, Reads, counted},
    reads_memory,
};
use crate::{
    analysis::{assigned_in, for_each_read},
    ir::{
        BinaryOp, Block, Class, CompareOp, ExprId, ExprKind, LocalId, Op, Shuffle, SpecialRegister, Stmt, StmtKind,
        Type, UnaryOp, for_each_expr, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// The most elements of an iteration.
const MOST: usize = 8;

/// What a rotated or transposed loop needs.
pub(super) struct Rotation {
    pub(super) counted: Counted,
    /// The addresses, in the order of the additions.
    pub(super) pointers: Vec<ExprId>,
    /// The locals from which the addresses and the bound are computed, apart from the counter.
    inputs: BTreeSet<LocalId>,
}

/// The locals of a rotated loop.
struct Rotated {
    /// The counter of the first iteration of 32.
    first: LocalId,
    lane: LocalId,
    /// The counter.
    counter: LocalId,
    sums: Vec<LocalId>,
}

impl Combiner<'_> {
    /// Rotates the loops of a list of statements and of nested ones. `reads`: those of the whole function.
    pub(super) fn rotate(&mut self, block: &mut Block, reads: &Reads) {
        let mut out = Block::with_capacity(block.len());
        for mut stmt in std::mem::take(block) {
            self.span = stmt.span;
            if let StmtKind::Loop { body, step } = &stmt.kind
                && let Some(rotation) = self.rotation(body, step, reads)
            {
                self.rotated(&body[1..], &rotation, &mut out);
            } else if let StmtKind::Loop { body, step } = &stmt.kind
                && let Some(transposed) = self.transposed(body, step)
            {
                self.transpose(&body[1..], step, &transposed, &mut out);
            } else {
                for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                    self.rotate(inner, reads);
                }
            }
            out.push(stmt);
        }
        *block = out;
    }

    fn rotation(&self, body: &Block, step: &Block, reads: &Reads) -> Option<Rotation> {
        let counted = counted(self.function, body, step)?;
        let iteration = &body[1..];
        let own = assigned_in(iteration);
        let mut pointers = Vec::new();
        let mut fits = true;
        for_each_stmt(iteration, &mut |stmt| {
            match &stmt.kind {
                StmtKind::Assign(..) | StmtKind::If { .. } => {}
                StmtKind::Op { .. } => match addition(self.function, stmt) {
                    Some((pointer, _)) if self.is_rotating(pointer, &counted, &own) => pointers.push(pointer),
                    Some(_) | None => fits = false,
                },
                StmtKind::Store { .. }
                | StmtKind::Call { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => fits = false,
            }
            for_each_expr_of_stmt(self.function, &stmt.kind, &mut |id| {
                if let Class::Load(pointer) = self.function.class(id) {
                    fits &= self.is_cheap(pointer, counted.counter, &own);
                }
            });
        });
        if !fits || pointers.is_empty() || pointers.len() > MOST || !self.is_any_order(iteration, reads, true) {
            return None;
        }
        self.with_inputs(counted, pointers, &own)
    }

    /// With the locals that a test at run time compares; `None` if it cannot.
    pub(super) fn with_inputs(
        &self,
        counted: Counted,
        pointers: Vec<ExprId>,
        own: &BTreeSet<LocalId>,
    ) -> Option<Rotation> {
        let ty = self.function.locals[counted.counter].ty;
        let mut inputs = BTreeSet::new();
        let fits = (ty == Type::I32 || ty == Type::I64)
            && pointers.iter().chain([&counted.bound]).all(|&root| self.find_inputs(root, own, &mut inputs));
        inputs.remove(&counted.counter);
        fits.then_some(Rotation { counted, pointers, inputs })
    }

    /// Whether the lanes likely add to one element, another one in each iteration.
    pub(super) fn is_rotating(&self, pointer: ExprId, counted: &Counted, own: &BTreeSet<LocalId>) -> bool {
        let (mut is_counted, mut is_own) = (false, false);
        for_each_read(self.function, pointer, &mut |read| {
            is_counted |= read == counted.counter;
            is_own |= own.contains(&read);
        });
        is_counted
            && !is_own
            && element(self.function, pointer).is_some()
            && self.is_only_added_to(pointer)
            && self.uniform.has(self.function, pointer)
    }

    /// Whether a load has the same address in all lanes, or in all iterations.
    fn is_cheap(&self, pointer: ExprId, counter: LocalId, own: &BTreeSet<LocalId>) -> bool {
        let (mut is_counted, mut is_own) = (false, reads_memory(self.function, pointer));
        for_each_read(self.function, pointer, &mut |read| {
            is_counted |= read == counter;
            is_own |= own.contains(&read);
        });
        !is_own && (!is_counted || self.uniform.has(self.function, pointer))
    }

    /// Finds the integers that a value is computed from, apart from parameters. False if it depends on anything else that
    /// may differ between lanes, or that the loop changes.
    fn find_inputs(&self, root: ExprId, own: &BTreeSet<LocalId>, inputs: &mut BTreeSet<LocalId>) -> bool {
        use SpecialRegister::{BlockDim, BlockIdx, DynamicSharedBytes, GridDim, LaneId, OfRow, ThreadIdx, WarpSize};
        let function = &*self.function;
        let mut fits = true;
        for_each_expr(function, root, &mut |id| match function.exprs[id].kind {
            ExprKind::Local(local) if function.params.contains(&local) => {}
            ExprKind::Local(local) => {
                fits &= !own.contains(&local) && function.locals[local].ty.scalar().is_some_and(Scalar::is_int);
                inputs.insert(local);
            }
            ExprKind::Special(ThreadIdx(_) | LaneId | OfRow(_)) | ExprKind::Load(..) => fits = false,
            ExprKind::Special(BlockIdx(_) | BlockDim(_) | GridDim(_) | WarpSize | DynamicSharedBytes)
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
            | ExprKind::ByteOffset { .. } => {}
        });
        fits
    }

    /// Emits a test whether all lanes are active, and in the same iteration of the same loop.
    pub(super) fn is_together(&mut self, rotation: &Rotation, out: &mut Block) -> ExprId {
        let (mask, mut cond) = self.all_active(out);
        for &local in [&rotation.counted.counter].into_iter().chain(&rotation.inputs) {
            let value = self.read(local);
            let value = self.expr(ExprKind::Convert(value), Type::I64);
            let is_same = self.is_same(mask, value, out);
            cond = self.binary(BinaryOp::And, cond, is_same);
        }
        cond
    }

    /// Whether a number of iterations is left at a value of the counter.
    pub(super) fn has_left(&mut self, counted: &Counted, counter: LocalId, iterations: i128) -> ExprId {
        let (now, end) = (self.read(counter), self.function.copy_expr(counted.bound));
        let below = self.compare(CompareOp::Lt, now, end);
        let (now, end) = (self.read(counter), self.function.copy_expr(counted.bound));
        let [now, end] = [now, end].map(|value| self.expr(ExprKind::Convert(value), Type::I64));
        // Below the bound, the difference is right as an unsigned number.
        let left = self.binary(BinaryOp::Sub, end, now);
        let unsigned = Type::Scalar(Scalar::U64);
        let left = self.expr(ExprKind::Convert(left), unsigned);
        let reach = self.int(counted.stride * (iterations - 1), unsigned);
        let has_left = self.compare(CompareOp::Lt, reach, left);
        self.binary(BinaryOp::And, below, has_left)
    }

    /// Emits the rotated loop.
    fn rotated(&mut self, iteration: &[Stmt], rotation: &Rotation, out: &mut Block) {
        let counter = rotation.counted.counter;
        let cond = self.is_together(rotation, out);
        let ty = self.function.locals[counter].ty;
        let [first, own] = ["first", "rotated"].map(|name| {
            let local = self.temp(name, ty);
            self.function.locals[local].nonneg = self.function.locals[counter].nonneg;
            local
        });
        let sums = rotation.pointers.iter().map(|&pointer| {
            let Type::Ptr(elem, _) = self.function.exprs[pointer].ty else { return None };
            Some(Type::Scalar(super::sum_type(elem)))
        });
        let Some(sums) = sums.collect::<Option<Vec<_>>>() else { return };
        let sums = sums.into_iter().map(|ty| self.temp("rotating", ty)).collect();
        let lane = self.nonneg("lane", Type::I32);
        let rotated = Rotated { first, lane, counter: own, sums };
        let value = self.read(counter);
        let mut then = vec![self.assign(first, value)];
        let value = self.expr(ExprKind::Special(SpecialRegister::LaneId), Type::I32);
        then.push(self.assign(lane, value));
        then.push(self.chunks(iteration, rotation, &rotated));
        let value = self.read(first);
        then.push(self.assign(counter, value));
        out.push(self.branch(cond, then, Block::new()));
    }

    pub(super) fn nonneg(&mut self, name: &str, ty: Type) -> LocalId {
        let local = self.temp(name, ty);
        self.function.locals[local].nonneg = true;
        local
    }

    /// The loop over chunks of 32 iterations.
    fn chunks(&mut self, iteration: &[Stmt], rotation: &Rotation, rotated: &Rotated) -> Stmt {
        let stride = rotation.counted.stride;
        let ty = self.function.locals[rotated.first].ty;
        let goes_on = self.has_left(&rotation.counted, rotated.first, LANES);
        let mut body = vec![self.exit_unless(goes_on)];
        for &sum in &rotated.sums {
            let zero = self.zero(self.function.locals[sum].ty);
            body.push(self.assign(sum, zero));
        }
        body.extend(self.steps(iteration, rotation, rotated));
        let lane = self.read(rotated.lane);
        body.push(self.count(rotated, lane, stride));
        for (&pointer, &sum) in rotation.pointers.iter().zip(&rotated.sums) {
            let pointer = self.at(pointer, rotation.counted.counter, rotated.counter);
            body.push(self.add_if_any(pointer, sum));
        }
        let (now, by) = (self.read(rotated.first), self.int(stride * LANES, ty));
        let next = self.binary(BinaryOp::Add, now, by);
        let step = vec![self.assign(rotated.first, next)];
        self.stmt(StmtKind::Loop { body, step })
    }

    /// `if not goes_on { break }`.
    pub(super) fn exit_unless(&mut self, goes_on: ExprId) -> Stmt {
        let done = self.expr(ExprKind::Unary(UnaryOp::Not, goes_on), Type::BOOL);
        self.branch(done, vec![self.stmt(StmtKind::Break)], Block::new())
    }

    /// `counter = first + stride * offset`.
    fn count(&mut self, rotated: &Rotated, offset: ExprId, stride: i128) -> Stmt {
        let ty = self.function.locals[rotated.counter].ty;
        let offset = self.expr(ExprKind::Convert(offset), ty);
        let stride = self.int(stride, ty);
        let distance = self.binary(BinaryOp::MulExact, offset, stride);
        let first = self.read(rotated.first);
        let value = self.binary(BinaryOp::AddExact, first, distance);
        self.assign(rotated.counter, value)
    }

    /// The loop over 32 iterations, whose sums move from lane to lane.
    fn steps(&mut self, iteration: &[Stmt], rotation: &Rotation, rotated: &Rotated) -> [Stmt; 2] {
        let steps = self.nonneg("step", Type::I64);
        let (now, end) = (self.read(steps), self.int(LANES, Type::I64));
        let goes_on = self.compare(CompareOp::Lt, now, end);
        // Computed from the number of the step alone, so that `unroll` can load the elements of several steps at once.
        let step = self.read(steps);
        let step = self.expr(ExprKind::Convert(step), Type::I32);
        let lane = self.read(rotated.lane);
        let (sum, last) = (self.binary(BinaryOp::AddExact, lane, step), self.int(LANES - 1, Type::I32));
        let offset = self.binary(BinaryOp::And, sum, last);
        let mut body = vec![self.exit_unless(goes_on), self.count(rotated, offset, rotation.counted.stride)];
        let mut copies = self.copied_at(iteration, rotation.counted.counter, rotated.counter);
        self.sum_instead(&mut copies, &|_, _| true, &mut rotated.sums.iter());
        body.append(&mut copies);
        for &sum in &rotated.sums {
            let (value, mask, next) = (self.read(sum), self.int(ALL_LANES, Type::I32), self.next(rotated.lane));
            let width = self.int(LANES, Type::I32);
            let other = self.temp("other", self.function.locals[sum].ty);
            body.push(self.op(Op::Shuffle(Shuffle::Index), vec![other], vec![mask, value, next, width]));
            let other = self.read(other);
            body.push(self.assign(sum, other));
        }
        let (now, one) = (self.read(steps), self.int(1, Type::I64));
        let next = self.binary(BinaryOp::Add, now, one);
        let step = vec![self.assign(steps, next)];
        let zero = self.int(0, Type::I64);
        [self.assign(steps, zero), self.stmt(StmtKind::Loop { body, step })]
    }

    /// `(value + 1) % 32`.
    fn next(&mut self, value: LocalId) -> ExprId {
        let (value, one, last) = (self.read(value), self.int(1, Type::I32), self.int(LANES - 1, Type::I32));
        let next = self.binary(BinaryOp::AddExact, value, one);
        self.binary(BinaryOp::And, next, last)
    }

    /// A copy of an expression, with another counter.
    pub(super) fn at(&mut self, id: ExprId, counter: LocalId, other: LocalId) -> ExprId {
        self.function.copy_with(id, &mut |function, id| {
            let is_counter = function.local(id) == Some(counter);
            is_counter.then(|| {
                let span = function.exprs[id].span;
                function.edit(span).read(other)
            })
        })
    }

    /// A copy of statements, with another counter.
    fn copied_at(&mut self, stmts: &[Stmt], counter: LocalId, other: LocalId) -> Block {
        let copy = |stmt: &Stmt| Stmt {
            kind: stmt.kind.clone().map_exprs(&mut |id| self.at(id, counter, other)),
            span: stmt.span,
        };
        stmts.iter().map(copy).collect()
    }

    /// Replaces the additions of statements to some addresses by additions to locals, in order.
    pub(super) fn sum_instead<'a>(
        &mut self,
        block: &mut Block,
        is_chosen: &dyn Fn(&Self, ExprId) -> bool,
        sums: &mut impl Iterator<Item = &'a LocalId>,
    ) {
        for stmt in block {
            if let Some((_, term)) = addition(self.function, stmt).filter(|&(pointer, _)| is_chosen(self, pointer))
                && let Some(&sum) = sums.next()
            {
                let before = self.read(sum);
                let after = self.binary(BinaryOp::Add, before, term);
                stmt.kind = StmtKind::Assign(sum, after);
            }
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.sum_instead(inner, is_chosen, sums);
            }
        }
    }
}
