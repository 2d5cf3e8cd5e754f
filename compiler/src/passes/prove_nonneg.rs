//! Proves integers non-negative, and uses the proofs: `wrap(i, n)` becomes `i`, and floor division and modulo become
//! truncating ones.
//!
//! ```text
//! $i = int64(threadIdx.x) + int64(blockIdx.x) * int64(blockDim.x)        the same
//! store $x.data[wrap($i, $x.shape0)] = load $y.data[wrap($i // 2, …)]    store $x.data[$i] = load $y.data[div_nonneg($i, 2)]
//! ```
//!
//! The analysis takes no account of control flow: a local has one [`Bound`], the join over everything that is assigned
//! to it. It starts with every local 0 and weakens until nothing changes, over all functions at once, so that what
//! callers pass and callees return counts. Locals that turn out non-negative are marked so for the back ends.
//!
//! The counter of a `for` does not overflow: it saturates. So `$c = $c + e` in a loop's `step` is non-negative
//! where both operands are. And in a loop that starts with `if not $c < $n { break }`, the one `$c = $c + e` of a turn
//! gives less than `$n + e`. Other sums that grow from turn to turn may overflow, and their indices are wrapped.

use weft_artifact::{Scalar, SlotField, SlotSource};

use super::{bound::Bound, turns::Around};
use crate::ir::{
    Arith, BinaryOp, Block, Class, Const, ExprId, ExprKind, FuncId, Function, FunctionKind, Leaf, Local, LocalId,
    Module, Stmt, StmtKind, Type, UnaryOp, for_each_expr_of_block,
};

/// After so many rounds a bound that still grows is given up, so that loops end.
const EXACT_ROUNDS: u32 = 16;

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    let bounds = Analysis::of(module).bounds;
    for ((_, function), bounds) in module.functions.iter_mut().zip(&bounds) {
        rewrite(function, &bounds.locals);
        for (id, local) in function.locals.iter_mut() {
            let signed = local.ty.scalar().is_some_and(Scalar::is_signed_int);
            local.nonneg |= signed && bounds.locals[id.index()].is_certain(local.ty);
        }
    }
}

/// What is known about one function.
struct Bounds {
    /// One a local; of a local that is no integer, nothing of use.
    locals: Vec<Bound>,
    /// One a result.
    results: Vec<Bound>,
}

/// The fixpoint over all functions.
struct Analysis<'a> {
    module: &'a Module,
    /// One a function.
    bounds: Vec<Bounds>,
    round: u32,
    changed: bool,
}

impl<'a> Analysis<'a> {
    fn of(module: &'a Module) -> Self {
        let bounds = module.functions.iter().map(|(_, function)| start(function)).collect();
        let mut analysis = Self { module, bounds, round: 0, changed: true };
        while std::mem::take(&mut analysis.changed) {
            for (id, function) in module.functions.iter() {
                analysis.block(id, function, &function.body, InLoop::default());
            }
            analysis.round += 1;
        }
        analysis
    }

    fn block<'f>(&mut self, id: FuncId, function: &'f Function, block: &'f Block, place: InLoop<'f>) {
        for stmt in block {
            self.stmt(id, function, stmt, place);
            match &stmt.kind {
                StmtKind::Loop { body, step } => {
                    let around = Around::of(function, body, step);
                    self.block(id, function, body, InLoop { around, in_step: false });
                    self.block(id, function, step, InLoop { around, in_step: true });
                }
                StmtKind::If { then, otherwise, .. } => {
                    self.block(id, function, then, place);
                    self.block(id, function, otherwise, place);
                }
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
        }
    }

    fn stmt(&mut self, id: FuncId, function: &Function, stmt: &Stmt, place: InLoop<'_>) {
        match &stmt.kind {
            StmtKind::Assign(local, value) => {
                let mut bound = self.bound(id, function, *value);
                if let Some(by) = self.counts_up(id, function, *local, *value) {
                    let ty = function.locals[*local].ty;
                    // Without it the bound would grow bit by bit from round to round, until it is given up.
                    bound = self.next_turn(id, function, *local, by, place).unwrap_or(bound);
                    if place.in_step {
                        bound = bound.min(Bound::nonneg_of_type(ty));
                    }
                }
                self.weaken_local(id, *local, bound);
            }
            StmtKind::Op { results, .. } => {
                for local in results {
                    self.weaken_local(id, *local, Bound::of_type(function.locals[*local].ty));
                }
            }
            StmtKind::Call { results, func, args } => {
                let callee = &self.module.functions[*func];
                for (arg, param) in args.iter().zip(&callee.params) {
                    let bound = self.bound(id, function, *arg);
                    self.weaken_local(*func, *param, bound);
                }
                for (index, local) in results.iter().enumerate() {
                    let bound = self.bounds[func.index()].results[index];
                    self.weaken_local(id, *local, bound);
                }
            }
            StmtKind::Return(values) => {
                for (index, value) in values.iter().enumerate() {
                    let bound = self.bound(id, function, *value);
                    let known = self.bounds[id.index()].results[index];
                    self.bounds[id.index()].results[index] = self.joined(known, bound, function.results[index]);
                }
            }
            StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue => {}
        }
    }

    /// What is added, where a value is the local and something non-negative more.
    fn counts_up(&self, id: FuncId, function: &Function, local: LocalId, value: ExprId) -> Option<Bound> {
        let ExprKind::Binary(BinaryOp::Add, a, b) = function.exprs[value].kind else { return None };
        let ty = function.locals[local].ty;
        let (now, by) = if function.exprs[b].kind == ExprKind::Local(local) { (b, a) } else { (a, b) };
        let by = self.bound(id, function, by);
        let both = self.bound(id, function, now).is_certain(ty) && by.is_certain(ty);
        (function.exprs[now].kind == ExprKind::Local(local) && both).then_some(by)
    }

    /// The local and `by` more, where the test of the loop has just shown that the local is below something.
    fn next_turn(
        &self,
        id: FuncId,
        function: &Function,
        local: LocalId,
        by: Bound,
        place: InLoop<'_>,
    ) -> Option<Bound> {
        let around = place.around.filter(|around| around.assigns_once(local))?;
        let mut below = None;
        around.is_below(function, local, &mut |bound, or_equal| {
            below = self.most(id, function, bound).map(|bits| bits + u32::from(or_equal));
            below.is_some()
        });
        below.map(|below| Bound::stepped(below, by, function.locals[local].ty))
    }

    /// Bits that a value does not pass; it may be negative.
    fn most(&self, id: FuncId, function: &Function, value: ExprId) -> Option<u32> {
        let from = |expr: ExprId| Bound::nonneg_of_type(function.exprs[expr].ty).bits();
        let narrow = if let ExprKind::Convert(inner) = function.exprs[value].kind
            && function.exprs[inner].ty.scalar().is_some_and(Scalar::is_int)
        {
            from(inner)
        } else {
            None
        };
        self.bound(id, function, value).bits().or(narrow)
    }

    fn bound(&self, id: FuncId, function: &Function, expr: ExprId) -> Bound {
        bound_of(function, &self.bounds[id.index()].locals, expr)
    }

    fn weaken_local(&mut self, id: FuncId, local: LocalId, bound: Bound) {
        let declared = &self.module.functions[id].locals[local];
        let bound = if declared.nonneg { bound.min(Bound::nonneg_of_type(declared.ty)) } else { bound };
        let known = self.bounds[id.index()].locals[local.index()];
        let mut joined = self.joined(known, bound, declared.ty);
        if declared.nonneg {
            joined = joined.min(Bound::nonneg_of_type(declared.ty));
        }
        self.bounds[id.index()].locals[local.index()] = joined;
    }

    /// The join, given up where it grows for too long; notes whether it differs from `known`.
    fn joined(&mut self, known: Bound, bound: Bound, ty: Type) -> Bound {
        if known.join(bound) == known {
            return known;
        }
        self.changed = true;
        if self.round < EXACT_ROUNDS { known.join(bound) } else { known.join(bound).without_bound(ty) }
    }
}

/// Where a statement stands.
#[derive(Clone, Copy, Default)]
struct InLoop<'a> {
    /// The innermost loop.
    around: Option<Around<'a>>,
    /// In that loop's `step`.
    in_step: bool,
}

/// Before the first round: what arguments that come from outside are, and 0 for everything else.
fn start(function: &Function) -> Bounds {
    let mut locals = vec![Bound::Bits(0); function.locals.len()];
    if function.kind != FunctionKind::Device {
        for (param, slot) in function.params.iter().zip(&function.slots) {
            let declared = &function.locals[*param];
            let is_extent = matches!(slot, SlotSource::Argument { field: SlotField::Shape(_), .. });
            locals[param.index()] = if is_extent {
                Bound::EXTENT
            } else if declared.nonneg {
                Bound::nonneg_of_type(declared.ty)
            } else {
                Bound::of_type(declared.ty)
            };
        }
    }
    Bounds { locals, results: vec![Bound::Bits(0); function.results.len()] }
}

/// What is known about an expression, given what is known about the locals.
fn bound_of(function: &Function, locals: &[Bound], id: ExprId) -> Bound {
    let expr = &function.exprs[id];
    let of = |id: ExprId| bound_of(function, locals, id);
    match expr.kind.class() {
        Class::Leaf(Leaf::Const(Const::Int(value))) => Bound::of_constant(value),
        Class::Leaf(Leaf::Local(local)) => locals[local.index()],
        Class::Leaf(Leaf::Special(register)) => Bound::of_register(register),
        Class::Arith(Arith::Unary(UnaryOp::Abs, a)) => Bound::abs(of(a), expr.ty),
        Class::Arith(Arith::Binary(op, a, b)) => Bound::binary(op, of(a), of(b), constant(function, b), expr.ty),
        Class::Arith(Arith::Select(_, a, b)) => of(a).join(of(b)),
        Class::Arith(Arith::Convert(a)) => of(a).convert(function.exprs[a].ty, expr.ty),
        // A negative index that is in bounds wraps to one that is not negative, but nothing checks that it is.
        Class::Arith(Arith::Wrap { index, .. }) => of(index),
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => Bound::of_type(expr.ty),
    }
}

/// Whether an integer is known not to be negative, after the pass.
pub(super) fn is_nonneg(function: &Function, id: ExprId) -> bool {
    let of = |local: &Local| if local.nonneg { Bound::nonneg_of_type(local.ty) } else { Bound::of_type(local.ty) };
    let locals: Vec<Bound> = function.locals.iter().map(|(_, local)| of(local)).collect();
    bound_of(function, &locals, id).is_certain(function.exprs[id].ty)
}

/// The value of a constant that is not negative.
fn constant(function: &Function, id: ExprId) -> Option<u32> {
    u32::try_from(function.int(id)?).ok()
}

/// An absolute value is negative only as the type's minimum, which no extent brings into an array.
fn is_abs(function: &Function, id: ExprId) -> bool {
    matches!(function.exprs[id].kind, ExprKind::Unary(UnaryOp::Abs, _))
}

/// Uses the bounds.
fn rewrite(function: &mut Function, locals: &[Bound]) {
    let mut changes: Vec<(ExprId, ExprKind)> = Vec::new();
    let mut unwrapped: Vec<(ExprId, ExprId)> = Vec::new();
    for_each_expr_of_block(function, &function.body, &mut |id| {
        let of = |id: ExprId| bound_of(function, locals, id);
        match function.class(id) {
            Class::Arith(Arith::Wrap { index, .. }) if of(index).is_certain(Type::I64) || is_abs(function, index) => {
                unwrapped.push((id, index));
            }
            Class::Arith(Arith::Binary(op @ (BinaryOp::FloorDiv | BinaryOp::FloorMod), a, b)) => {
                let ty = function.exprs[id].ty;
                if of(a).is_certain(ty) && of(b).is_certain(ty) {
                    let op = if op == BinaryOp::FloorDiv { BinaryOp::DivNonneg } else { BinaryOp::ModNonneg };
                    changes.push((id, ExprKind::Binary(op, a, b)));
                }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
        }
    });
    for (id, kind) in changes {
        function.exprs[id].kind = kind;
    }
    // Children first, so that what moves up is final. The index keeps its one parent: its old place is dropped.
    for (wrap, index) in unwrapped.into_iter().rev() {
        function.exprs[wrap] = function.exprs[index].clone();
    }
}
