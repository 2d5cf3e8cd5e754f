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
//! - the first index has unit stride along `x` and is uniform along `y` and `z`;
//! - bound and step are uniform and do not change in the loop, and the step is positive;
//! - the loop has no other exit and no barrier, and the induction variable is not read after it.
//!
//! The pass has no cost model: the threads of a row then access contiguous elements in each iteration.

use crate::{
    analysis::{Rematerializable, escapes, for_each_mention, for_each_read},
    backend::host::plan::{
        analysis::{
            strides::{Form, Forms},
            structure::{OTHERWISE, Path, cut_here, holds_barrier, list_at},
        },
        loops::{candidates::is_launch_uniform, unswitch_signs},
        plan_ir::MAX_THREADS,
        regions::guarded,
    },
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId,
        LocalKind, SpecialRegister, Stmt, StmtKind, Type, UnaryOp, for_each_stmt,
    },
    source::Span,
};

/// Masks that a grid-stride loop needs if it becomes a loop of the block as it is. The rewritten loop needs none.
const OWN_MASKS: u32 = 1;

/// The parts of a grid-stride loop.
pub(crate) struct Strided {
    /// The induction variable.
    pub local: LocalId,
    /// The index of its first assignment, in the list that contains the loop.
    init: usize,
    /// Its first value.
    pub first: ExprId,
    /// The step.
    pub step: ExprId,
    /// The loop continues while `local op bound`.
    pub op: CompareOp,
    pub bound: ExprId,
    /// The body without the exit test and the increment.
    pub rest: Block,
}

/// The result of rewriting a grid-stride loop.
pub(crate) struct Rewritten {
    /// First index, step or bound may be near the largest integer, so that the indices of merged blocks may wrap.
    pub may_wrap: bool,
    /// The uniform part of the induction variable.
    pub stride: Stride,
}

/// The uniform part of the induction variable of a rewritten loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stride {
    /// The local that holds it.
    pub offset: LocalId,
    /// The increment per iteration.
    pub step: ExprId,
}

/// Rewrites one grid-stride loop; returns `None` if there is none left. The barrier at the end of its body also turns
/// the loops around it into loops of the block. That is done only if these need no masks: `masks` counts the masks that
/// a body needs.
pub(crate) fn rewrite_one(
    function: &mut Function,
    body: &mut Block,
    masks: &dyn Fn(&Function, &[Stmt]) -> u32,
) -> Option<Rewritten> {
    let fixed = Rematerializable::of(function, body);
    let alike = if holds_loop(body) { unswitch_signs::alike(function, body) } else { Vec::new() };
    let loops = Search { alike: &alike, ..Search::of(function, body, &fixed) };
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
            masks(function, &attempt) <= masks(function, body) + OWN_MASKS
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

/// A grid-stride loop and the path to it.
struct Candidate {
    path: Path,
    found: Strided,
    /// Rewriting it also moves a loop around it out of the thread loop.
    lifts: bool,
}

fn holds_loop(list: &[Stmt]) -> bool {
    let mut found = false;
    for_each_stmt(list, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Loop { .. }));
    found
}

/// A search for loops whose induction variable advances by a positive step.
pub(crate) struct Search<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    /// By local: number of assignments, number of mentions.
    counts: Vec<(u32, u32)>,
    /// By local: it is assigned once, to a value that is uniform in the block.
    alike: &'a [bool],
}

impl<'a> Search<'a> {
    /// A search in a kernel's body.
    pub(crate) fn of(function: &'a Function, body: &[Stmt], fixed: &'a Rematerializable) -> Self {
        let mut counts = vec![(0_u32, 0_u32); function.locals.len()];
        for_each_stmt(body, &mut |stmt| stmt.kind.assigned().iter().for_each(|local| counts[local.index()].0 += 1));
        for_each_mention(function, body, &mut |local| counts[local.index()].1 += 1);
        Self { function, fixed, counts, alike: &[] }
    }
}

impl Search<'_> {
    /// Collects grid-stride loops in program order. `position` holds the path to `list`, and whether a loop without a
    /// barrier is around it.
    fn find(&self, list: &[Stmt], position: &mut (Path, bool), all: &mut Vec<Candidate>) {
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
        if ways_out.breaks || ways_out.returns || (ways_out.continues && step.is_empty()) {
            return None;
        }
        if rest.iter().any(holds_barrier) || self.function.locals[local].ty != Type::I64 {
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
        if self.counts[local.index()] != (2, inside + 1) {
            return None;
        }
        Some(Strided { local, init, first, step: by, op, bound, rest: rest.to_vec() })
    }

    fn strided(&self, list: &[Stmt], at: usize, body: &[Stmt], step: &[Stmt]) -> Option<Strided> {
        let strided = self.parts(list, at, body, step)?;
        let Strided { init, first, step: by, bound, .. } = strided;
        // A uniform local must not change between the initialization and the end of the loop.
        let mut changes = vec![false; self.function.locals.len()];
        for_each_stmt(&list[init..=at], &mut |stmt| {
            stmt.kind.assigned().iter().for_each(|local| changes[local.index()] = true);
        });
        let stays = |local: LocalId| self.is_shared(local) && !changes[local.index()];
        let forms = self.forms(&stays);
        let along_x = forms.form(first) == Form::Step && !self.fixed.dependence(self.function, first).row;
        let same = |root: ExprId| forms.form(root) == Form::Same && !self.fixed.dependence(self.function, root).row;
        (along_x && same(bound) && same(by)).then_some(strided)
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
        self.positive_within(id, 16)
    }

    fn positive_within(&self, id: ExprId, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        match self.function.class(id) {
            Class::Leaf(Leaf::Const(Const::Int(value))) => value > 0,
            Class::Leaf(Leaf::Special(SpecialRegister::BlockDim(_) | SpecialRegister::GridDim(_))) => true,
            Class::Leaf(Leaf::Local(local)) => {
                self.fixed.value(local).is_some_and(|value| self.positive_within(value, depth))
            }
            Class::Arith(Arith::Convert(a)) => {
                self.function.exprs[a].ty == Type::I32
                    && self.function.exprs[id].ty == Type::I64
                    && self.positive_within(a, depth)
            }
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::Mul, a, b)) => {
                self.function.exprs[id].ty == Type::I64
                    && self.positive_within(a, depth)
                    && self.positive_within(b, depth)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
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

fn rewrite(
    function: &mut Function,
    list: &mut Block,
    index: usize,
    loop_: Strided,
    (fixed, alike): (&Rematerializable, &[bool]),
) -> Stride {
    let Strided { local, init, first, step, op, bound, rest } = loop_;
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
    let (bound, limit) = if build.function.locals[local].counts { build.limit(bound, step) } else { (bound, None) };
    let bound_again = build.copy(bound);
    let lowest_now = build.i64(ExprKind::Binary(BinaryOp::Add, lowest, offset_read));
    let more = build.bool(ExprKind::Compare(op, lowest_now, bound_again));
    let none = build.bool(ExprKind::Unary(UnaryOp::Not, more));
    let offset_read = build.read(offset);
    let now = build.i64(ExprKind::Binary(BinaryOp::Add, own_read, offset_read));
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
    if let Some((limit, value)) = limit {
        function.locals[limit].offset = !of_bound.is_empty();
        list.insert(index, stmt(StmtKind::Assign(limit, value)));
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

    /// Clamps a bound so that first index plus offset reaches it before the sum overflows. Returns a read of a new
    /// local, and the local with its value.
    fn limit(&mut self, bound: ExprId, step: ExprId) -> (ExprId, Option<(LocalId, ExprId)>) {
        let local = Local::new("limit", LocalKind::Variable, Type::I64);
        let local = self.function.locals.push(local);
        let most = self.i64(ExprKind::Const(Const::Int(i128::from(i64::MAX) - i128::from(MAX_THREADS))));
        let step = self.copy(step);
        let most = self.i64(ExprKind::Binary(BinaryOp::Sub, most, step));
        let value = self.i64(ExprKind::Binary(BinaryOp::Min, bound, most));
        (self.read(local), Some((local, value)))
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
        let depends = |local: LocalId| fixed.local_dependence(local).x;
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
