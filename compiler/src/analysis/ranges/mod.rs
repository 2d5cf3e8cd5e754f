//! The ranges of integers at each program point of a module.
//!
//! The analysis visits the statements in order, with an [`Interval`] for each local. The tests of `if`s and loops
//! refine the ranges in their arms ([`refine`]); where paths join, ranges are joined ([`state`]). For a loop it
//! iterates to a fixpoint, first widening intervals to the limits of their type, then narrowing them by the loop's test
//! ([`loops`]). The sum of a loop's increments is bounded by its trip count. Functions are analyzed twice: before their
//! callees, for the arguments of calls, and after them, for the results.
//!
//! An unknown range is that of the type. If the analysis would take too long, all ranges are.

mod eval;
mod loops;
mod refine;
mod state;

use std::collections::BTreeMap;

use weft_artifact::{EXTENT_BITS, SMALL_EXTENT, Scalar, SlotField, SlotSource};

use self::state::RangeState;
use super::{Interval, Rematerializable};
use crate::ir::{Block, Circles, ExprId, FuncId, Function, FunctionKind, LocalId, Module, Stmt, StmtKind, Type};

/// The limit on evaluations of expressions, per expression of a function, after which the analysis gives up.
const PATIENCE: usize = 1500;

/// The ranges of one function.
#[derive(Clone, Debug)]
pub(crate) struct Ranges {
    /// By the expression's index: its range over all evaluations; empty if it is never evaluated, as far as the
    /// analysis knows.
    exprs: Vec<Interval>,
    /// By the local's index: the range over all its assignments.
    locals: Vec<Interval>,
    results: Vec<Interval>,
}

impl Ranges {
    /// The result without an analysis: the ranges of the types.
    fn unknown(function: &Function) -> Self {
        Self {
            exprs: function.exprs.iter().map(|(_, expr)| Interval::of_type(expr.ty)).collect(),
            locals: function.locals.iter().map(|(_, local)| Interval::of_type(local.ty)).collect(),
            results: function.results.iter().map(|ty| Interval::of_type(*ty)).collect(),
        }
    }

    /// Analyzes all functions of a module: one result per function, in their order.
    pub(crate) fn of(module: &Module) -> Vec<Self> {
        let circles = Circles::of(module);
        let mut all: Vec<Self> = module.functions.iter().map(|(_, function)| Self::unknown(function)).collect();
        let mut params: Vec<Vec<Interval>> = module
            .functions
            .iter()
            .map(|(id, function)| {
                let outside = function.kind != FunctionKind::Device;
                let known = |index: usize| {
                    let ty = function.locals[function.params[index]].ty;
                    if outside {
                        slot(module, function, index)
                    } else if circles.contains(id) {
                        Interval::of_type(ty)
                    } else {
                        Interval::NONE
                    }
                };
                (0..function.params.len()).map(known).collect()
            })
            .collect();
        // A callee comes before its callers.
        let ids: Vec<_> = module.functions.iter().map(|(id, _)| id).collect();
        for &id in ids.iter().rev() {
            let called = RangeAnalysis::new(module, &module.functions[id], &all, &params[id.index()]).arguments();
            for (callee, args) in called {
                if circles.contains(callee) {
                    continue;
                }
                for (known, arg) in params[callee.index()].iter_mut().zip(args) {
                    *known = known.join(arg);
                }
            }
        }
        for &id in &ids {
            let found = RangeAnalysis::new(module, &module.functions[id], &all, &params[id.index()]).ranges();
            if let Some(mut found) = found {
                if circles.contains(id) {
                    found.results.clone_from(&all[id.index()].results);
                }
                all[id.index()] = found;
            }
        }
        all
    }

    /// The range of an expression.
    pub(crate) fn expr(&self, function: &Function, id: ExprId) -> Interval {
        // An expression that was created after the analysis has no range.
        let found = self.exprs.get(id.index()).copied().unwrap_or(Interval::NONE);
        if found.is_none() { Interval::of_type(function.exprs[id].ty) } else { found }
    }

    /// The range over all assignments of a local.
    pub(crate) fn local(&self, function: &Function, id: LocalId) -> Interval {
        let found = self.locals.get(id.index()).copied().unwrap_or(Interval::NONE);
        if found.is_none() { Interval::of_type(function.locals[id].ty) } else { found }
    }
}

/// The range of an argument of a launch.
fn slot(module: &Module, function: &Function, index: usize) -> Interval {
    let local = &function.locals[function.params[index]];
    let all = Interval::of_type(local.ty);
    let known = match function.slots.get(index) {
        Some(SlotSource::Argument { field: SlotField::Shape(_), .. }) => {
            let most = if module.assumptions.small { i128::from(SMALL_EXTENT) } else { (1 << EXTENT_BITS) - 1 };
            all.meet(Interval::new(0, most))
        }
        Some(SlotSource::Argument { field: SlotField::Value | SlotField::Stride(_), .. })
            if module.assumptions.small =>
        {
            let small = Interval::of_type(Type::I32);
            if local.ty == Type::I64 || local.ty == Type::Scalar(Scalar::U64) { all.meet(small) } else { all }
        }
        Some(SlotSource::Argument { .. } | SlotSource::Runtime(_)) | None => all,
    };
    let is_value = matches!(function.slots.get(index), Some(SlotSource::Argument { field: SlotField::Value, .. }));
    let nonneg = is_value && module.assumed().nonneg && local.ty.scalar().is_some_and(Scalar::is_signed_int);
    if local.nonneg || nonneg { known.meet(Interval::new(0, i128::MAX)) } else { known }
}

/// The range analysis of one function.
struct RangeAnalysis<'a> {
    module: &'a Module,
    function: &'a Function,
    /// The ranges of the results of its callees.
    callees: &'a [Ranges],
    /// Rematerializable locals.
    fixed: Rematerializable,
    state: RangeState,
    /// The loops around the current program point, the innermost last.
    loops: Vec<loops::Open>,
    /// By the address of a loop's body: the ranges at its start in the last pass.
    heads: BTreeMap<usize, loops::Values>,
    /// Whether this is the final pass, over ranges that hold: only this one records results.
    notes: bool,
    /// Whether increments are recorded: in the last pass over each inner loop.
    sums: bool,
    /// Whether it is in an arm of a `select`, which its condition refines; nested arms are not refined.
    in_arm: bool,
    found: Ranges,
    called: Vec<(FuncId, Vec<Interval>)>,
    /// The number of evaluations left.
    patience: usize,
}

impl<'a> RangeAnalysis<'a> {
    fn new(module: &'a Module, function: &'a Function, callees: &'a [Ranges], params: &[Interval]) -> Self {
        let mut locals = vec![Interval::NONE; function.locals.len()];
        for (param, known) in function.params.iter().zip(params) {
            locals[param.index()] = *known;
        }
        let found = Ranges {
            exprs: vec![Interval::NONE; function.exprs.len()],
            locals: locals.clone(),
            results: vec![Interval::NONE; function.results.len()],
        };
        Self {
            module,
            function,
            callees,
            fixed: Rematerializable::of(function, &function.body),
            state: RangeState::new(locals),
            loops: Vec::new(),
            heads: BTreeMap::new(),
            notes: true,
            sums: false,
            in_arm: false,
            found,
            called: Vec::new(),
            patience: PATIENCE.saturating_mul(function.exprs.len()),
        }
    }

    /// The ranges of the arguments of the function's calls.
    fn arguments(mut self) -> Vec<(FuncId, Vec<Interval>)> {
        let function = self.function;
        self.block(&function.body);
        if self.patience > 0 {
            return self.called;
        }
        let mut all = Vec::new();
        crate::ir::for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Call { func, args, .. } = &stmt.kind {
                all.push((*func, args.iter().map(|arg| Interval::of_type(function.exprs[*arg].ty)).collect()));
            }
        });
        all
    }

    /// The final ranges; `None` if the analysis gave up.
    fn ranges(mut self) -> Option<Ranges> {
        let function = self.function;
        self.block(&function.body);
        (self.patience > 0).then_some(self.found)
    }

    fn block(&mut self, block: &'a Block) {
        crate::stop::check();
        for stmt in block {
            if self.state.dead || self.patience == 0 {
                return;
            }
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::Assign(local, value) => {
                self.count_sum(*local, *value);
                let value = self.assigned(*local, *value);
                self.assign(*local, value);
            }
            StmtKind::Store { pointer, value, .. } => {
                self.eval(*pointer);
                self.eval(*value);
            }
            StmtKind::Op { results, args, .. } => {
                for arg in args {
                    self.eval(*arg);
                }
                for local in results {
                    self.count_other(*local);
                    self.assign(*local, Interval::of_type(self.function.locals[*local].ty));
                }
            }
            StmtKind::Call { results, func, args } => {
                let args = args.iter().map(|arg| self.eval(*arg)).collect();
                if self.notes {
                    self.called.push((*func, args));
                }
                for (index, local) in results.iter().enumerate() {
                    self.count_other(*local);
                    let ty = self.function.locals[*local].ty;
                    let given = self.callees[func.index()].results[index];
                    self.assign(*local, if given.is_none() { Interval::of_type(ty) } else { given });
                }
            }
            StmtKind::If { cond, then, otherwise } => self.branch(*cond, then, otherwise),
            StmtKind::Loop { body, step } => self.walk_loop(body, step),
            StmtKind::Break => self.leave(true),
            StmtKind::Continue => self.leave(false),
            StmtKind::Return(values) => {
                for (index, value) in values.iter().enumerate() {
                    let value = self.eval(*value);
                    if self.notes {
                        self.found.results[index] = self.found.results[index].join(value);
                    }
                }
                self.state.dead = true;
            }
        }
    }

    fn assign(&mut self, local: LocalId, value: Interval) {
        let declared = &self.function.locals[local];
        let value = if declared.nonneg { value.meet(Interval::new(0, i128::MAX)) } else { value };
        // The declared range of a local and the range of its value are disjoint: the statement is unreachable.
        let value = if value.is_none() { Interval::of_type(declared.ty) } else { value };
        self.state.set(local, value);
        if self.notes {
            let known = &mut self.found.locals[local.index()];
            *known = known.join(value);
        }
    }

    fn branch(&mut self, cond: ExprId, then: &'a Block, otherwise: &'a Block) {
        self.eval(cond);
        let mark = self.state.mark();
        self.assume(cond, true);
        self.block(then);
        let after_then = self.state.take(mark);
        self.assume(cond, false);
        self.block(otherwise);
        let after_else = self.state.take(mark);
        let both = self.state.joined(after_then, after_else);
        self.state.put(both);
    }
}
