//! The ranges of expressions, given the ranges of the locals.

use weft_artifact::{ArgItem, Factors, Layout, SMALL_BLOCKS, SMALL_EXTENT, SMALL_SIZE, SlotField, SlotSource, Step};

use super::RangeAnalysis;
use crate::{
    analysis::{Interval, PointedArray},
    ir::{Arith, BinaryOp, Class, Const, ExprId, ExprKind, Leaf, LocalId, MathFn, SpecialRegister, Type},
};

/// The maximum number of threads of a grid along an axis: PTX ISA section 10 and CUDA's table of limits, 2^31 - 1
/// blocks of 1024.
const THREADS: i128 = ((1 << 31) - 1) * 1024;

/// An argument, by its number and the indices into nested tuples.
type ArgumentPath<'a> = (u32, &'a [Step]);

/// The index of a thread along an axis, or a term of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadIndexPart {
    /// A special register.
    Register(SpecialRegister),
    /// `blockIdx * blockDim`.
    FirstOfBlock(u8),
}

impl RangeAnalysis<'_> {
    /// The current range of an expression.
    pub(super) fn eval(&mut self, id: ExprId) -> Interval {
        self.patience = self.patience.saturating_sub(1);
        let found = self.computed(id);
        if self.notes {
            let known = &mut self.found.ranges.exprs[id.index()];
            *known = known.join(found);
        }
        found
    }

    /// Assigns a value to a local and returns its range.
    pub(super) fn assigned(&mut self, local: LocalId, value: ExprId) -> Interval {
        let found = self.eval(value);
        // The counter of a `for` loop cannot overflow its type: it stops at the maximum.
        let function = self.function;
        if let ExprKind::Binary(BinaryOp::Add, a, b) = &function.exprs[value].kind
            && [a, b].iter().any(|operand| function.exprs[**operand].kind == ExprKind::Local(local))
            && self.loops.last().is_some_and(|open| open.in_step)
        {
            let notes = std::mem::replace(&mut self.notes, false);
            let exact = self.eval(*a).plus(self.eval(*b));
            self.notes = notes;
            let all = Interval::of_type(function.locals[local].ty);
            return Interval::new(exact.low.clamp(all.low, all.high), exact.high.clamp(all.low, all.high));
        }
        found
    }

    fn computed(&mut self, id: ExprId) -> Interval {
        let function = self.function;
        let expr = &function.exprs[id];
        let all = Interval::of_type(expr.ty);
        match expr.kind.class() {
            Class::Leaf(Leaf::Const(Const::Int(value))) => Interval::of(value),
            Class::Leaf(Leaf::Const(Const::Bool(value))) => Interval::of(i128::from(value)),
            Class::Leaf(Leaf::Local(local)) => {
                let now = self.state.get(local);
                if now.is_none() { all } else { now }
            }
            Class::Leaf(Leaf::Special(register)) => self.of_register(register),
            Class::Leaf(Leaf::Base(_) | Leaf::Const(Const::Float(_) | Const::Null | Const::Address(_))) => all,
            Class::Arith(Arith::Unary(op, a)) => {
                let a = self.eval(a);
                if is_whole(expr.ty) { Interval::unary(op, a, expr.ty) } else { all }
            }
            Class::Arith(Arith::Binary(op, a, b)) => {
                let (left, right) = (self.eval(a), self.eval(b));
                if !is_whole(expr.ty) {
                    return all;
                }
                let left =
                    if matches!(op, BinaryOp::Add | BinaryOp::Sub) { self.refined(a, left, right) } else { left };
                let found = Interval::binary(op, left, right, expr.ty);
                let known = self.of_grid(op, a, b).or_else(|| self.of_size(id));
                known.filter(|known| known.fits(expr.ty)).map_or(found, |known| found.meet(known))
            }
            Class::Arith(Arith::Compare(_, a, b)) => {
                self.eval(a);
                self.eval(b);
                all
            }
            Class::Arith(Arith::Select(cond, a, b)) => {
                self.eval(cond);
                // Both operands are evaluated; the result is one whose condition allows it.
                let mark = self.state.mark();
                let (then, otherwise) = (self.eval(a), self.eval(b));
                self.state.take(mark);
                let chosen = self.under(cond, true, a, then).join(self.under(cond, false, b, otherwise));
                if chosen.is_none() { all } else { chosen }
            }
            Class::Arith(Arith::Convert(a)) => {
                let from = function.exprs[a].ty;
                self.eval(a).converted(from, expr.ty)
            }
            Class::Arith(Arith::Math(math, args)) => {
                for arg in args {
                    self.eval(*arg);
                }
                let counts = [MathFn::Popcount, MathFn::LeadingZeros, MathFn::TrailingZeros].contains(&math);
                if counts { all.meet(Interval::new(0, 64)) } else { all }
            }
            // In bounds, a negative index refers to the end of the array.
            Class::Arith(Arith::Wrap { index, extent }) => {
                let (index, extent) = (self.eval(index), self.eval(extent));
                let wrapped = index.meet(Interval::new(i128::MIN, -1)).plus(extent);
                let kept = index.meet(Interval::new(0, i128::MAX));
                if index.is_nonneg() { index } else { kept.join(wrapped).wrapped(expr.ty) }
            }
            Class::Address { base, by, .. } => {
                self.eval(base);
                self.eval(by);
                all
            }
            Class::Load(pointer) => {
                self.eval(pointer);
                self.accessed(pointer);
                self.loaded(pointer).map_or(all, |range| range.meet(all))
            }
        }
    }

    /// The range of the left operand of a sum or difference with a constant: if a rematerializable local has been
    /// assigned before a test of the locals in its value, the test restricts it, too. With `tid = ty * 16 + tx`, after `if
    /// ty > 0`, `tid - 16` is not negative.
    fn refined(&mut self, left: ExprId, known: Interval, right: Interval) -> Interval {
        let function = self.function;
        let left = match function.class(left) {
            Class::Arith(Arith::Convert(from))
                if Interval::of_type(function.exprs[from].ty).fits(function.exprs[left].ty) =>
            {
                from
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => left,
        };
        let value = function.local(left).and_then(|local| self.fixed.value(local));
        let Some(value) = value.filter(|_| right.single().is_some()) else { return known };
        let notes = std::mem::replace(&mut self.notes, false);
        let met = known.meet(self.eval(value));
        self.notes = notes;
        if met.is_none() { known } else { met }
    }

    /// Refines the locals that index an array of the launch after an access: the array is small, and the program
    /// accesses only elements of its arrays, so that an index is a value of `int32`.
    fn accessed(&mut self, pointer: ExprId) {
        let Class::Address { base, by, .. } = self.function.class(pointer) else { return };
        if !self.module.assumptions.small || !matches!(self.pointed(base), Some((PointedArray::Argument, _))) {
            return;
        }
        let mut terms = vec![by];
        while let Some(term) = terms.pop() {
            match self.function.class(term) {
                Class::Arith(Arith::Binary(BinaryOp::Add, a, b)) => terms.extend([a, b]),
                Class::Arith(Arith::Wrap { index, .. }) => {
                    if let Some(local) = self.function.local(index) {
                        let met = self.state.get(local).meet(Interval::of_type(Type::I32));
                        if !met.is_none() {
                            self.state.set(local, met);
                        }
                    }
                }
                Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
            }
        }
    }

    /// The range of an arm of a `select` under its condition.
    fn under(&mut self, cond: ExprId, truth: bool, arm: ExprId, known: Interval) -> Interval {
        // Nested arms would double the evaluations with each level.
        if std::mem::replace(&mut self.in_arm, true) {
            return known;
        }
        let mark = self.state.mark();
        let notes = std::mem::replace(&mut self.notes, false);
        self.assume(cond, truth);
        let found = if self.state.dead { Interval::NONE } else { self.eval(arm).meet(known) };
        (self.notes, self.in_arm) = (notes, false);
        self.state.take(mark);
        found
    }

    /// PTX ISA section 10 and the table of limits: 1024 threads per block, 2^31 - 1 blocks in x, 65535 in y and z.
    fn of_register(&self, register: SpecialRegister) -> Interval {
        let most = if self.module.assumptions.small { i128::from(SMALL_BLOCKS) } else { (1 << 31) - 1 };
        let blocks = |axis: u8| if axis == 0 { most } else { 65535 };
        match register {
            SpecialRegister::ThreadIdx(axis) => Interval::new(0, if axis == 2 { 63 } else { 1023 }),
            SpecialRegister::BlockDim(axis) => Interval::new(1, if axis == 2 { 64 } else { 1024 }),
            SpecialRegister::BlockIdx(axis) => Interval::new(0, blocks(axis) - 1),
            SpecialRegister::GridDim(axis) => Interval::new(1, blocks(axis)),
            SpecialRegister::LaneId => Interval::new(0, 31),
            SpecialRegister::WarpSize => Interval::of(32),
            SpecialRegister::DynamicSharedBytes => Interval::new(0, (1 << 31) - 1),
            SpecialRegister::OfRow(_) => Interval::new(0, THREADS - 1),
        }
    }

    /// The range of a product of several extents of one array: it has at most as many elements, where none is zero.
    fn of_size(&self, id: ExprId) -> Option<Interval> {
        if !self.module.assumptions.small {
            return None;
        }
        let (_, axes) = self.extents(id)?;
        (axes.count_ones() > 1).then_some(Interval::new(0, i128::from(SMALL_SIZE)))
    }

    /// The array argument and the set of its axes, if an expression is the product of their extents, through lossless
    /// conversions and locals with one value.
    fn extents(&self, id: ExprId) -> Option<(ArgumentPath<'_>, u8)> {
        let function = self.function;
        match function.class(id) {
            Class::Leaf(Leaf::Local(local)) => {
                if let Some(value) = self.fixed.value(local) {
                    return self.extents(value);
                }
                let index = function.params.iter().position(|param| *param == local)?;
                let SlotSource::Argument { param, path, field: SlotField::Shape(axis) } = function.slots.get(index)?
                else {
                    return None;
                };
                let ArgItem::Array(array) = self.module.params.get(*param as usize)?.ty.leaf(path)? else {
                    return None;
                };
                (array.layout != Layout::Any).then_some(((*param, path.as_slice()), 1 << axis))
            }
            Class::Arith(Arith::Convert(from))
                if Interval::of_type(function.exprs[from].ty).fits(function.exprs[id].ty) =>
            {
                self.extents(from)
            }
            Class::Arith(Arith::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b)) => {
                let ((one, axes), (other, others)) = (self.extents(a)?, self.extents(b)?);
                (one == other && axes & others == 0).then_some((one, axes | others))
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    /// The range of `a op b` if it is a thread's index in the grid, the index of a block's first thread, or the number
    /// of threads.
    fn of_grid(&self, op: BinaryOp, a: ExprId, b: ExprId) -> Option<Interval> {
        use SpecialRegister::{BlockDim, GridDim, ThreadIdx};
        let (a, b) = (self.part(a)?, self.part(b)?);
        let threads = if self.module.assumptions.small { i128::from(SMALL_EXTENT) } else { THREADS };
        if op == BinaryOp::Mul
            && let (ThreadIndexPart::Register(a), ThreadIndexPart::Register(b)) = (a, b)
        {
            return if let (GridDim(i), BlockDim(j)) | (BlockDim(j), GridDim(i)) = (a, b) {
                (i == j).then_some(Interval::new(1, threads))
            } else {
                first_of_block(a, b).map(|_| Interval::new(0, threads - 1))
            };
        }
        if op == BinaryOp::Add
            && let (ThreadIndexPart::FirstOfBlock(i), ThreadIndexPart::Register(ThreadIdx(j)))
            | (ThreadIndexPart::Register(ThreadIdx(j)), ThreadIndexPart::FirstOfBlock(i)) = (a, b)
        {
            return (i == j).then_some(Interval::new(0, threads - 1));
        }
        None
    }

    /// The register, or the index of a block's first thread, that an expression is equal to, through lossless
    /// conversions and locals with one value.
    fn part(&self, id: ExprId) -> Option<ThreadIndexPart> {
        let function = self.function;
        let expr = &function.exprs[id];
        if let Some(register) = self.of_program(id) {
            return Some(ThreadIndexPart::Register(register));
        }
        match expr.kind.class() {
            Class::Leaf(Leaf::Special(register)) => Some(ThreadIndexPart::Register(register)),
            Class::Leaf(Leaf::Local(local)) => self.part(self.fixed.value(local)?),
            Class::Arith(Arith::Convert(from)) if expr.ty == Type::I64 && function.exprs[from].ty == Type::I32 => {
                self.part(from)
            }
            Class::Arith(Arith::Binary(BinaryOp::Mul, a, b)) => {
                let (ThreadIndexPart::Register(a), ThreadIndexPart::Register(b)) = (self.part(a)?, self.part(b)?)
                else {
                    return None;
                };
                first_of_block(a, b).map(ThreadIndexPart::FirstOfBlock)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    /// The special register of the original launch that an expression computes if threads are
    /// [coarsened](Module::coarsening): the original block, or grid, is that of the launch times the coarsening factor.
    fn of_program(&self, id: ExprId) -> Option<SpecialRegister> {
        use SpecialRegister::{BlockDim, BlockIdx, GridDim, ThreadIdx};
        let function = self.function;
        let Factors { threads, blocks } = self.module.coarsening.factors;
        let of = |factors: [u32; 3], axis: u8| factors.get(usize::from(axis)).map(|factor| i128::from(*factor));
        // The coarsening factor of the register's axis.
        let factor = |register| match register {
            ThreadIdx(axis) | BlockDim(axis) => of(threads, axis),
            BlockIdx(axis) | GridDim(axis) => of(blocks, axis),
            SpecialRegister::LaneId
            | SpecialRegister::WarpSize
            | SpecialRegister::DynamicSharedBytes
            | SpecialRegister::OfRow(_) => None,
        };
        let register =
            |id| if let ExprKind::Special(register) = function.exprs[id].kind { Some(register) } else { None };
        let times = |id: ExprId| {
            let ExprKind::Binary(BinaryOp::Mul, a, b) = function.exprs[id].kind else { return None };
            match (function.int(a), function.int(b)) {
                (None, Some(by)) => Some((register(a)?, by)),
                (Some(by), None) => Some((register(b)?, by)),
                (None, None) | (Some(_), Some(_)) => None,
            }
        };
        if let Some((found @ (BlockDim(_) | GridDim(_)), by)) = times(id) {
            return (factor(found) == Some(by)).then_some(found);
        }
        let ExprKind::Binary(BinaryOp::Add, a, b) = function.exprs[id].kind else { return None };
        let (found, copy) = match (register(a), times(a), times(b), function.int(b)) {
            (_, Some((found @ (ThreadIdx(_) | BlockIdx(_)), by)), _, Some(copy)) if factor(found) == Some(by) => {
                (found, copy)
            }
            (Some(ThreadIdx(axis)), _, Some((BlockDim(other), copy)), _) if axis == other => (ThreadIdx(axis), copy),
            _ => return None,
        };
        (copy >= 0 && factor(found).is_some_and(|factor| copy < factor)).then_some(found)
    }
}

/// The axis, if two registers are the index and the extent of a block.
fn first_of_block(a: SpecialRegister, b: SpecialRegister) -> Option<u8> {
    use SpecialRegister::{BlockDim, BlockIdx};
    if let (BlockIdx(i), BlockDim(j)) | (BlockDim(j), BlockIdx(i)) = (a, b) { (i == j).then_some(i) } else { None }
}

/// Whether a type's values are integers or bools.
fn is_whole(ty: Type) -> bool {
    ty == Type::BOOL || ty.scalar().is_some_and(weft_artifact::Scalar::is_int)
}
