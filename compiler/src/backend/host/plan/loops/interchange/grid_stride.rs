//! Grid-stride loops: interchanges `for i in range(cuda.grid(1), n, cuda.gridsize(1))` with the thread loop.
//!
//! The induction variable becomes the sum of the thread's first index and a uniform offset. The loop exits when the
//! first thread of the block has no iteration left; the exit test of each thread becomes a guard of the body:
//!
//! ```text
//! i = first                               offset = 0
//! loop:                                   loop:
//!     if not i < n: break                     if not first_of_block + offset < n: break
//!     body(i)                                 if first + offset < n: body(first + offset)
//!     i += step                               barrier
//!                                             offset += step
//! ```
//!
//! Legal if
//!
//! - the first thread of the block has the least first index: it has unit stride along `x` and is uniform along `y` and
//!   `z`, or is a sum of thread indices with positive factors, such as `threadIdx.y` or
//!   `threadIdx.y * blockDim.x + threadIdx.x`;
//! - the step is positive;
//! - no sum overflows: if the bound may be near the largest integer, the pass subtracts a uniform number from the index
//!   and from the bound where it compares them, which is zero for all other bounds;
//! - each iteration runs the increment, and the induction variable is not read after the loop.
//!
//! Pays if the bound is uniform and the loop has no other exit and no barrier: otherwise it needs masks.
//!
//! If the index is uniform along `y`, the pass has no cost model: the threads of a row then access contiguous elements in
//! each iteration. Otherwise it pays if accesses of the body seem to be contiguous along `x`, and none has another stride
//! or a loaded index: a thread that executes all its iterations would access elements that are far from each other. It
//! does not pay if the threads of a row leave a loop in the body apart, which would then need masks.

use crate::{
    analysis::{Dependence, Rematerializable, for_each_read},
    backend::host::plan::{
        analysis::{
            block_uniformity,
            grid_stride_loops::{Candidate, Search, Strided},
            strides::Forms,
            structure::{cut_here, list_at},
        },
        plan_ir::{CountMasks, Stride},
    },
    ir::{
        BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId, LocalKind,
        SpecialRegister, Stmt, StmtKind, Type, UnaryOp, for_each_stmt,
    },
    source::Span,
};

/// Masks that a grid-stride loop needs if it becomes a loop of the block as it is. The rewritten loop needs none.
const OWN_MASKS: u32 = 1;

/// The result of rewriting a grid-stride loop.
pub(crate) struct Rewritten {
    /// First index, step or bound may be near the largest integer, so that the indices of merged blocks may wrap.
    pub may_wrap: bool,
    /// The uniform part of the induction variable.
    pub stride: Stride,
}

/// Rewrites one grid-stride loop; returns `None` if there is none left. The barrier at the end of its body also makes
/// the loops around it loops of the block. The rewrite pays only if these loops need no masks: `masks` counts the masks
/// that a body needs.
pub(crate) fn rewrite_one(function: &mut Function, body: &mut Block, masks: CountMasks) -> Option<Rewritten> {
    let fixed = Rematerializable::of(function, body);
    let alike = if holds_loop(body) { block_uniformity::alike(function, body) } else { Vec::new() };
    let loops = Search::of(function, body, &fixed, &alike);
    let mut all = Vec::new();
    loops.find(body, &mut (Vec::new(), false), &mut all);
    let (path, found) = all.into_iter().find_map(|Candidate { path, found, lifts }| {
        let may = !lifts || {
            let mut attempt = body.clone();
            let (&index, outer) = path.split_last()?;
            let inner = list_at(&mut attempt, outer)?.get_mut(index)?;
            if let StmtKind::Loop { body, .. } = &mut inner.kind {
                body.push(cut_here(inner.span));
            }
            masks(function, &attempt).count <= masks(function, body).count + OWN_MASKS
        };
        may.then_some((path, found))
    })?;
    let (&index, outer) = path.split_last()?;
    let list = list_at(body, outer)?;
    let forms = Forms { function, fixed: &fixed, shared: &|_| false, sole: &|_| None, axis: 0 };
    let is_small = [found.first, found.step, found.bound].into_iter().all(|part| forms.is_small(part));
    let stride = rewrite(function, list, index, found, (&fixed, &alike));
    Some(Rewritten { may_wrap: !is_small, stride })
}

fn holds_loop(list: &[Stmt]) -> bool {
    let mut found = false;
    for_each_stmt(list, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Loop { .. }));
    found
}

fn rewrite(
    function: &mut Function,
    list: &mut Block,
    index: usize,
    loop_: Strided,
    (fixed, alike): (&Rematerializable, &[bool]),
) -> Stride {
    let Strided { local, init, first, step, op, bound, most_above_first, may_overflow, rest } = loop_;
    let span = list[index].span;
    let name = function.locals[local].name.clone();
    let new = |suffix: &str| Local::new(format!("{name}.{suffix}"), LocalKind::Variable, Type::I64);
    let (own, offset) = (new("first"), Local { offset: true, ..new("offset") });
    let (own, offset) = (function.locals.push(own), function.locals.push(offset));
    // Uniform loaded values do not change within the loop, so guards may read them.
    let loaded = |function: &Function, root: ExprId| {
        let mut found = Vec::new();
        for_each_read(function, root, &mut |read| {
            if alike.get(read.index()) == Some(&true) && fixed.value(read).is_none() {
                found.push(read);
            }
        });
        found
    };
    let (of_first, of_bound) = (loaded(function, first), loaded(function, bound));
    for &read in of_first.iter().chain(&of_bound) {
        function.locals[read].offset = true;
    }
    let mut build = Build { function, span };
    let is_fixed = of_first.is_empty();
    let first_of = |build: &mut Build<'_>| if is_fixed { build.read(own) } else { build.copy(first) };
    let (own_read, offset_read) = (first_of(&mut build), build.read(offset));
    // Each read gets an expression of its own, because expressions are trees.
    let reads: Vec<ExprId> =
        build.function.exprs.iter().filter(|(_, e)| e.kind == ExprKind::Local(local)).map(|(id, _)| id).collect();
    for id in reads {
        let (a, b) = (first_of(&mut build), build.read(offset));
        build.function.exprs.iter_mut().filter(|(at, _)| *at == id).for_each(|(_, expr)| {
            expr.kind = ExprKind::Binary(BinaryOp::Add, a, b);
        });
    }
    let lowest = build.first_of_block(first, fixed);
    let step = build.copy(step);
    // The counter of a `range` saturates. A tested index that may overflow is shifted down, and so is the bound.
    let shift =
        (!legal!("grid_stride.shifted-bound", !may_overflow)).then(|| build.shift(bound, step, most_above_first));
    let read_shift = shift.map(|(local, _)| local);
    let bound = build.shifted(bound, read_shift);
    let lowest = build.shifted(lowest, read_shift);
    let bound_again = build.copy(bound);
    let lowest_now = build.i64(ExprKind::Binary(BinaryOp::Add, lowest, offset_read));
    let more = build.bool(ExprKind::Compare(op, lowest_now, bound_again));
    let none = build.bool(ExprKind::Unary(UnaryOp::Not, more));
    let offset_read = build.read(offset);
    let own_shifted = build.shifted(own_read, read_shift);
    let now = build.i64(ExprKind::Binary(BinaryOp::Add, own_shifted, offset_read));
    let runs = build.bool(ExprKind::Compare(op, now, bound));
    let zero = build.i64(ExprKind::Const(Const::Int(0)));
    let by = build.copy(step);
    let offset_read = build.read(offset);
    let next = build.i64(ExprKind::Binary(BinaryOp::Add, offset_read, step));
    let stmt = |kind: StmtKind| Stmt { kind, span };
    let leave = StmtKind::If { cond: none, then: vec![stmt(StmtKind::Break)], otherwise: Block::new() };
    let guarded = StmtKind::If { cond: runs, then: rest, otherwise: Block::new() };
    let body = vec![stmt(leave), stmt(guarded), cut_here(span)];
    let step = vec![stmt(StmtKind::Assign(offset, next))];
    list[init].kind = StmtKind::Assign(own, first);
    list[index].kind = StmtKind::Loop { body, step };
    list.insert(index, stmt(StmtKind::Assign(offset, zero)));
    if let Some((shift, value)) = shift {
        function.locals[shift].offset = !of_bound.is_empty();
        list.insert(index, stmt(StmtKind::Assign(shift, value)));
    }
    Stride { offset, step: by }
}

/// Builds expressions with one span.
struct Build<'a> {
    function: &'a mut Function,
    span: Span,
}

impl Build<'_> {
    fn push(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span: self.span })
    }

    fn i64(&mut self, kind: ExprKind) -> ExprId {
        self.push(kind, Type::I64)
    }

    fn bool(&mut self, kind: ExprKind) -> ExprId {
        self.push(kind, Type::BOOL)
    }

    /// A new local, and its value: a number by which an index and its bound are smaller when they are compared. It is
    /// zero unless the sum of an index below the bound and the step may exceed the largest integer, for a first index
    /// that exceeds that of the first thread by at most `above`.
    fn shift(&mut self, bound: ExprId, step: ExprId, above: i64) -> (LocalId, ExprId) {
        let local = self.function.locals.push(Local::new("shift", LocalKind::Variable, Type::I64));
        let above = i128::from(above);
        let most = self.i64(ExprKind::Const(Const::Int(i128::from(i64::MAX) - above)));
        let by = self.copy(step);
        let most = self.i64(ExprKind::Binary(BinaryOp::Sub, most, by));
        let bound = self.copy(bound);
        let is_large = self.bool(ExprKind::Compare(CompareOp::Gt, bound, most));
        let above = self.i64(ExprKind::Const(Const::Int(above)));
        let by = self.copy(step);
        let distance = self.i64(ExprKind::Binary(BinaryOp::Add, above, by));
        let zero = self.i64(ExprKind::Const(Const::Int(0)));
        (local, self.i64(ExprKind::Select(is_large, distance, zero)))
    }

    /// A value less the value of [`Self::shift`].
    fn shifted(&mut self, value: ExprId, shift: Option<LocalId>) -> ExprId {
        let Some(shift) = shift else { return value };
        let shift = self.read(shift);
        self.i64(ExprKind::Binary(BinaryOp::Sub, value, shift))
    }

    fn read(&mut self, local: LocalId) -> ExprId {
        self.i64(ExprKind::Local(local))
    }

    /// Copies an expression.
    fn copy(&mut self, root: ExprId) -> ExprId {
        self.map(root, &|_| None, false)
    }

    /// Copies an expression of rematerializable locals, evaluated for the first thread of the block.
    fn first_of_block(&mut self, root: ExprId, fixed: &Rematerializable) -> ExprId {
        let depends = |local: LocalId| fixed.local_dependence(local) != Dependence::default();
        self.map(root, &|local| fixed.value(local).filter(|_| depends(local)), true)
    }

    fn map(&mut self, root: ExprId, value_of: &dyn Fn(LocalId) -> Option<ExprId>, first: bool) -> ExprId {
        let Expr { kind, ty, .. } = self.function.exprs[root].clone();
        let kind = match kind.class() {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(_))) if first => ExprKind::Const(Const::Int(0)),
            Class::Leaf(Leaf::Local(local)) => match value_of(local) {
                Some(value) => return self.map(value, value_of, first),
                None => kind,
            },
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {
                kind.map_operands(&mut |operand| self.map(operand, value_of, first))
            }
        };
        self.push(kind, ty)
    }
}
