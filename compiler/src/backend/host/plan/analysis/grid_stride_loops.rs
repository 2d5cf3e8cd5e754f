//! Recognizes loops whose induction variable advances by a positive step, and among them grid-stride loops: the first
//! index has unit stride along `x`, or grows from thread to thread along several axes; bound and step are uniform.

use crate::{
    analysis::{
        Rematerializable,
        affine::{Stride, estimated_stride, estimated_strides},
        escapes, for_each_mention,
    },
    backend::host::plan::{
        analysis::{
            candidates::is_launch_uniform,
            gathers::Loaded,
            guarded,
            strides::{Form, Forms},
            structure::{OTHERWISE, Path, holds_barrier},
        },
        plan_ir::MAX_THREADS,
    },
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Const, ExprId, ExprKind, Function, Leaf, LocalId, SpecialRegister,
        Stmt, StmtKind, Type, UnaryOp, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// The parts of a grid-stride loop.
pub(crate) struct Strided {
    /// The induction variable.
    pub local: LocalId,
    /// The index of its first assignment, in the list that contains the loop.
    pub init: usize,
    /// Its first value.
    pub first: ExprId,
    /// The step.
    pub step: ExprId,
    /// The loop continues while `local op bound`.
    pub op: CompareOp,
    pub bound: ExprId,
    /// The most by which the first value of a thread exceeds that of the first thread of the block.
    pub most_above_first: i64,
    /// The sum of an index below the bound and the step may exceed the largest integer, where the counter saturates.
    pub may_overflow: bool,
    /// The body without the exit test and the increment.
    pub rest: Block,
}

/// The largest [`Strided::most_above_first`]: bounds that are so near the largest integer occur in no program.
const MAX_ABOVE_FIRST: i64 = 1 << 32;

/// The most bits of a step: a step that wraps may be negative.
const MAX_STEP_BITS: u32 = 62;

/// The bits of the number of threads of a block, and of the number of blocks of a launch that ends within days.
const THREADS_BITS: u32 = 10;
const BLOCKS_BITS: u32 = 38;

/// The most bits of a step with which a loop from the least to the largest integer does not end within hours.
const MAX_FINE_STEP_BITS: u32 = 20;

/// The deepest expression of a step that is analyzed.
const MAX_DEPTH: u32 = 16;

/// A positive integer: the product of a constant with extents of the block and the grid, or a sum of such products.
struct Extents {
    /// The value if all extents are one.
    factor: i128,
    /// The largest exponents of the extents of the block, and those of the extents of the grid.
    exponents: [[u32; 3]; 2],
}

impl Extents {
    /// A number of bits such that the integer is less than two to the power of it.
    fn bits(&self) -> u32 {
        let [threads, blocks] = self.exponents.map(|of| of.into_iter().max().unwrap_or(0));
        let factor = u128::BITS - self.factor.unsigned_abs().leading_zeros();
        factor + threads * THREADS_BITS + blocks * BLOCKS_BITS
    }

    /// A factor, with the exponents of two such integers combined.
    fn combined(&self, other: &Self, factor: Option<i128>, exponent: impl Fn(u32, u32) -> u32) -> Option<Self> {
        let (a, b) = (self.exponents, other.exponents);
        let exponents = std::array::from_fn(|of| std::array::from_fn(|axis| exponent(a[of][axis], b[of][axis])));
        Some(Self { factor: factor?, exponents })
    }
}

/// A grid-stride loop and the path to it.
pub(crate) struct Candidate {
    pub path: Path,
    pub found: Strided,
    /// Rewriting it also moves a loop around it out of the thread loop.
    pub lifts: bool,
}

/// A search for loops whose induction variable advances by a positive step.
pub(crate) struct Search<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    /// By local: number of assignments, number of mentions.
    counts: Vec<(u32, u32)>,
    /// By local: it is assigned once, to a value that is uniform in the block.
    alike: &'a [bool],
    /// The kernel's body.
    body: &'a [Stmt],
}

impl<'a> Search<'a> {
    /// A search in a kernel's body.
    pub(crate) fn of(function: &'a Function, body: &'a [Stmt], fixed: &'a Rematerializable, alike: &'a [bool]) -> Self {
        let mut counts = vec![(0_u32, 0_u32); function.locals.len()];
        for_each_stmt(body, &mut |stmt| stmt.kind.assigned().iter().for_each(|local| counts[local.index()].0 += 1));
        for_each_mention(function, body, &mut |local| counts[local.index()].1 += 1);
        Self { function, fixed, counts, alike, body }
    }
}

impl Search<'_> {
    /// Collects grid-stride loops in program order. `position` holds the path to `list`, and whether a loop without a
    /// barrier is around it.
    pub(crate) fn find(&self, list: &[Stmt], position: &mut (Path, bool), all: &mut Vec<Candidate>) {
        for (index, stmt) in list.iter().enumerate() {
            position.0.push(index);
            match &stmt.kind {
                StmtKind::Loop { body, step } => {
                    if let Some(found) = self.strided(list, index, body, step) {
                        all.push(Candidate { path: position.0.clone(), found, lifts: position.1 });
                    } else {
                        let outside = position.1;
                        position.1 |= !holds_barrier(stmt);
                        self.find(body, position, all);
                        position.1 = outside;
                    }
                }
                StmtKind::If { cond, then, otherwise }
                    if self.all_go(*cond) || is_launch_uniform(self.function, *cond) =>
                {
                    self.find(then, position, all);
                    position.0.pop();
                    position.0.push(index | OTHERWISE);
                    self.find(otherwise, position, all);
                }
                StmtKind::If { cond, then, otherwise }
                    if otherwise.is_empty() && guarded::is_guard(self.function, self.fixed, *cond) =>
                {
                    self.find(then, position, all);
                }
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::If { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
            position.0.pop();
        }
    }

    /// Whether a condition is uniform.
    fn all_go(&self, cond: ExprId) -> bool {
        let shared = |local: LocalId| self.is_shared(local);
        let forms = self.forms(&shared);
        forms.form(cond) == Form::Same && !self.fixed.dependence(self.function, cond).row
    }

    fn is_shared(&self, local: LocalId) -> bool {
        self.function.params.contains(&local) || self.alike.get(local.index()) == Some(&true)
    }

    fn forms<'b>(&'b self, shared: &'b dyn Fn(LocalId) -> bool) -> Forms<'b> {
        Forms { function: self.function, fixed: self.fixed, shared, sole: &|_| None, axis: 0 }
    }

    /// The parts of the loop at an index of a list: its only exit tests the induction variable, which has no other
    /// mention outside the loop than its first value in the same list.
    pub(crate) fn parts(&self, list: &[Stmt], at: usize, body: &[Stmt], step: &[Stmt]) -> Option<Strided> {
        let (test, inner) = body.split_first()?;
        let (increment, rest) = match step {
            [one] => (one, inner),
            [] => inner.split_last()?,
            _ => return None,
        };
        let StmtKind::Assign(local, sum) = increment.kind else { return None };
        let by = self.increment(local, sum)?;
        let ways_out = escapes(rest);
        // A loop with other exits or a barrier would need masks.
        if ways_out.breaks
            || ways_out.returns
            || rest.iter().any(holds_barrier)
            || !legal!("grid_stride.increment-runs", !ways_out.continues || !step.is_empty())
            || !legal!("grid_stride.wide-index", self.function.locals[local].ty == Type::I64)
        {
            return None;
        }
        let (op, bound) = self.exit(test, local)?;
        // The local has two assignments: the initialization in the same list, and the increment. It has no other
        // mention outside the loop.
        let init = list[..at].iter().rposition(|stmt| matches!(stmt.kind, StmtKind::Assign(to, _) if to == local))?;
        let StmtKind::Assign(_, first) = list[init].kind else { return None };
        let mut inside = 0;
        for_each_mention(self.function, std::slice::from_ref(&list[at]), &mut |seen| {
            inside += u32::from(seen == local);
        });
        if !legal!("grid_stride.index-in-loop", self.counts[local.index()] == (2, inside + 1)) {
            return None;
        }
        let most_above_first = MAX_THREADS as i64;
        let rest = rest.to_vec();
        Some(Strided { local, init, first, step: by, op, bound, most_above_first, may_overflow: true, rest })
    }

    fn strided(&self, list: &[Stmt], at: usize, body: &[Stmt], step: &[Stmt]) -> Option<Strided> {
        let strided = self.parts(list, at, body, step)?;
        let Strided { init, first, step: by, bound, .. } = strided;
        // A uniform local has one value. Loops whose parts are computed after the first index have not been measured.
        let mut changes = vec![false; self.function.locals.len()];
        for_each_stmt(&list[init..=at], &mut |stmt| {
            stmt.kind.assigned().iter().for_each(|local| changes[local.index()] = true);
        });
        let stays = |local: LocalId| self.is_shared(local) && !changes[local.index()];
        let forms = self.forms(&stays);
        let along_x = forms.form(first) == Form::Step
            && legal!("grid_stride.same-first-row", !self.fixed.dependence(self.function, first).row);
        let same = |root: ExprId| forms.form(root) == Form::Same && !self.fixed.dependence(self.function, root).row;
        // Threads with different bounds would need masks. A step is always uniform: see `constant_factor`.
        if !same(bound) {
            return None;
        }
        let may_overflow = self.function.locals[strided.local].counts && !forms.is_small(bound);
        let is_fine = self.extents(by, MAX_DEPTH).is_some_and(|by| by.bits() <= MAX_FINE_STEP_BITS);
        if !legal!("grid_stride.first-or-step", !may_overflow || is_fine || forms.is_small(first)) {
            return None;
        }
        let strided = Strided { may_overflow, ..strided };
        if along_x {
            return Some(strided);
        }
        let most_above_first = self.most_above_first(first, &stays)?;
        if !legal!("grid_stride.near-first", (1..=MAX_ABOVE_FIRST).contains(&most_above_first)) {
            return None;
        }
        self.has_contiguous_rows(&strided.rest).then_some(Strided { most_above_first, ..strided })
    }

    /// The most by which a value of a thread exceeds that of the first thread of the block. `None` if that of the first
    /// thread may not be the least: the value must be a sum of thread indices with positive factors, and of uniform
    /// values.
    fn most_above_first(&self, id: ExprId, shared: &dyn Fn(LocalId) -> bool) -> Option<i64> {
        let along = |axis| Forms { function: self.function, fixed: self.fixed, shared, sole: &|_| None, axis };
        if (0..3).all(|axis| along(axis).form(id) == Form::Same) {
            return Some(0);
        }
        let of = |id: ExprId| self.most_above_first(id, shared);
        let is_wide = self.function.exprs[id].ty == Type::I64;
        match self.function.class(id) {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(_))) => Some(MAX_THREADS as i64 - 1),
            Class::Leaf(Leaf::Local(local)) => of(self.fixed.value(local)?),
            Class::Arith(Arith::Convert(a)) if is_wide => {
                let is_index = matches!(
                    self.function.exprs[self.fixed.resolve(self.function, a)].kind,
                    ExprKind::Special(SpecialRegister::ThreadIdx(_))
                );
                if is_index { of(a) } else { None }
            }
            Class::Arith(Arith::Binary(BinaryOp::Add, a, b)) if is_wide => of(a)?.checked_add(of(b)?),
            Class::Arith(Arith::Binary(BinaryOp::Mul, a, b)) if is_wide => match (self.factor(a), self.factor(b)) {
                (Some(factor), _) => of(b)?.checked_mul(factor),
                (None, Some(factor)) => of(a)?.checked_mul(factor),
                (None, None) => None,
            },
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    /// The largest value of a positive constant or an extent of the block.
    fn factor(&self, id: ExprId) -> Option<i64> {
        let id = self.fixed.resolve(self.function, id);
        match self.kind(id) {
            ExprKind::Const(Const::Int(value)) => {
                i64::try_from(*value).ok().filter(|&value| legal!("grid_stride.positive-factor", value > 0))
            }
            ExprKind::Special(SpecialRegister::BlockDim(_)) => Some(MAX_THREADS as i64),
            ExprKind::Convert(a) if self.function.exprs[id].ty == Type::I64 => self.factor(*a),
            ExprKind::Const(_)
            | ExprKind::Local(_)
            | ExprKind::Special(_)
            | ExprKind::SharedBase(_)
            | ExprKind::ConstBase(_)
            | ExprKind::DynamicShared
            | ExprKind::LocalBase(_)
            | ExprKind::Load(..)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Compare(..)
            | ExprKind::Select(..)
            | ExprKind::Convert(_)
            | ExprKind::Math(..)
            | ExprKind::Wrap { .. }
            | ExprKind::Offset { .. }
            | ExprKind::ByteOffset { .. } => None,
        }
    }

    /// Whether it pays that the threads of a row execute the same iteration, whose statements are given: some accesses
    /// seem to have unit stride along `x`, and none has another constant stride or a loaded index. Otherwise a thread
    /// that executes all its iterations accesses fewer cache lines. Threads that leave a loop inside apart would need
    /// masks.
    fn has_contiguous_rows(&self, list: &[Stmt]) -> bool {
        let function = self.function;
        let strides = estimated_strides(function, self.body, 0, &[], &[]);
        if !self.leave_together(list, &strides) {
            return false;
        }
        let loaded = Loaded::of(function, self.body);
        let (mut contiguous, mut strided) = (false, false);
        let mut see = |pointer: ExprId| {
            let Type::Ptr(element, _) = function.exprs[pointer].ty else { return };
            match estimated_stride(function, 0, &strides, pointer) {
                Stride::Constant(bytes) if bytes == element.size_bytes() as i64 => contiguous = true,
                Stride::ZERO => {}
                Stride::Unknown | Stride::Undefined => strided |= loaded.is_lookup(function, pointer),
                Stride::Constant(_) | Stride::Uniform => strided = true,
            }
        };
        for_each_stmt(list, &mut |stmt| {
            for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
                if let Class::Load(pointer) = function.class(id) {
                    see(pointer);
                }
            });
            if let StmtKind::Store { pointer, .. } = stmt.kind {
                see(pointer);
            }
        });
        contiguous && !strided
    }

    /// Whether the threads of a row seem to leave each loop in statements together, or it is such a loop itself.
    fn leave_together(&self, list: &[Stmt], strides: &[Stride]) -> bool {
        let is_apart = |cond: ExprId| estimated_stride(self.function, 0, strides, cond) != Stride::ZERO;
        let has_exit = |block: &[Stmt]| escapes(block).breaks;
        list.iter().enumerate().all(|(at, stmt)| {
            let mut together = true;
            if let StmtKind::Loop { body, step } = &stmt.kind
                && self.strided(list, at, body, step).is_none()
            {
                for_each_stmt(body, &mut |inner| {
                    if let StmtKind::If { cond, then, otherwise } = &inner.kind {
                        together &= !(has_exit(then) || has_exit(otherwise)) || !is_apart(*cond);
                    }
                });
            }
            together && stmt.kind.blocks().into_iter().flatten().all(|block| self.leave_together(block, strides))
        })
    }

    fn kind(&self, id: ExprId) -> &ExprKind {
        &self.function.exprs[id].kind
    }

    fn reads(&self, id: ExprId, local: LocalId) -> bool {
        matches!(self.kind(id), ExprKind::Local(read) if *read == local)
    }

    /// The value that `sum` adds to `local`, if it is positive.
    fn increment(&self, local: LocalId, sum: ExprId) -> Option<ExprId> {
        let ExprKind::Binary(BinaryOp::Add, a, b) = *self.kind(sum) else { return None };
        let by = match (self.reads(a, local), self.reads(b, local)) {
            (true, false) => b,
            (false, true) => a,
            _ => return None,
        };
        self.positive(by).then_some(by)
    }

    fn positive(&self, id: ExprId) -> bool {
        self.extents(id, MAX_DEPTH).is_some_and(|by| legal!("grid_stride.small-step", by.bits() <= MAX_STEP_BITS))
    }

    /// The parts of a positive integer. `None` if it may not be positive.
    fn extents(&self, id: ExprId, depth: u32) -> Option<Extents> {
        let depth = depth.checked_sub(1)?;
        let of = |id: ExprId| self.extents(id, depth);
        let extent = |of: usize, axis: u8| {
            let mut exponents = [[0; 3]; 2];
            exponents[of][usize::from(axis)] = 1;
            Extents { factor: 1, exponents }
        };
        let is_wide = self.function.exprs[id].ty == Type::I64;
        match self.function.class(id) {
            Class::Leaf(Leaf::Const(Const::Int(factor))) => {
                legal!("grid_stride.positive-step", factor > 0).then_some(Extents { factor, exponents: [[0; 3]; 2] })
            }
            Class::Leaf(Leaf::Special(SpecialRegister::BlockDim(axis))) => Some(extent(0, axis)),
            Class::Leaf(Leaf::Special(SpecialRegister::GridDim(axis))) => Some(extent(1, axis)),
            Class::Leaf(Leaf::Local(local)) => of(self.fixed.value(local)?),
            Class::Arith(Arith::Convert(a)) if is_wide && self.function.exprs[a].ty == Type::I32 => of(a),
            Class::Arith(Arith::Binary(BinaryOp::Add, a, b)) if is_wide => {
                let (a, b) = (of(a)?, of(b)?);
                a.combined(&b, a.factor.checked_add(b.factor), u32::max)
            }
            Class::Arith(Arith::Binary(BinaryOp::Mul, a, b)) if is_wide => {
                let (a, b) = (of(a)?, of(b)?);
                a.combined(&b, a.factor.checked_mul(b.factor), |a, b| a + b)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    /// The condition under which the loop continues, from `if not (local < bound): break`.
    fn exit(&self, stmt: &Stmt, local: LocalId) -> Option<(CompareOp, ExprId)> {
        let ExprKind::Unary(UnaryOp::Not, mut stay) = *self.kind(stmt.kind.exit_condition()?) else { return None };
        // `range` with a step that is not constant tests the sign of the step.
        if let ExprKind::Select(sign, up, _) = *self.kind(stay)
            && let ExprKind::Compare(CompareOp::Gt, step, zero) = *self.kind(sign)
            && matches!(self.kind(zero), ExprKind::Const(Const::Int(0)))
            && self.positive(step)
        {
            stay = up;
        }
        let ExprKind::Compare(op, a, b) = *self.kind(stay) else { return None };
        match op {
            CompareOp::Lt | CompareOp::Le if self.reads(a, local) => Some((op, b)),
            CompareOp::Gt if self.reads(b, local) => Some((CompareOp::Lt, a)),
            CompareOp::Ge if self.reads(b, local) => Some((CompareOp::Le, a)),
            CompareOp::Eq | CompareOp::Ne | CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => None,
        }
    }
}
