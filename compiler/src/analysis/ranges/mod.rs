//! The ranges of integers at each program point of a module.
//!
//! The analysis visits the statements in order, with an [`Interval`] for each local. The tests of `if`s and loops
//! refine the ranges in their arms ([`refine`]); where paths join, ranges are joined ([`state`]). For a loop it
//! iterates to a fixpoint, first widening intervals to the limits of their type, then narrowing them by the loop's test
//! ([`loops`]). The sum of a loop's increments is bounded by its trip count. What functions know of each other, and of
//! the elements of arrays, is guessed and verified ([`summary`]).
//!
//! An unknown range is that of the type. If the analysis would take too long, all ranges are.

mod eval;
mod flags;
mod loops;
mod refine;
mod state;
mod summary;

use std::collections::BTreeMap;

use weft_artifact::{EXTENT_BITS, SMALL_EXTENT, Scalar, SlotField, SlotSource};

use self::{
    state::RangeState,
    summary::{Elements, ModuleSummary},
};
use super::{Interval, PointedArray, Rematerializable, pointers::Pointers};
use crate::ir::{
    AtomicOp, Block, Circles, ExprId, ExprKind, FuncId, Function, FunctionKind, LocalId, Memory, Module, Op, Space,
    Stmt, StmtKind, Type, for_each_stmt,
};

/// The limit on evaluations of expressions, per expression of a function, after which the analysis gives up.
const PATIENCE: usize = 1500;

/// The number of guesses of what functions know of each other.
const GUESSES: usize = 5;

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
        let arrays = Pointers::of(module);
        let circles = Circles::of(module);
        let mut summary = summarize(module, &arrays, &circles);
        let mut all = Vec::with_capacity(module.functions.len());
        // A callee comes before its callers, which know what its arguments let it return.
        for (id, function) in module.functions.iter() {
            let found = RangeAnalysis::new(module, (id, function), &arrays, &summary).run();
            let ranges = found.map_or_else(|| Self::unknown(function), |found| found.ranges);
            if !circles.contains(id) {
                summary.results[id.index()].clone_from(&ranges.results);
            }
            all.push(ranges);
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

/// What holds of all functions of a module.
fn summarize(module: &Module, arrays: &Pointers<PointedArray>, circles: &Circles) -> ModuleSummary {
    let slot = |function: &Function, index: usize| argument_range(module, function, index);
    let types = ModuleSummary::of_types(module, &slot);
    let has_own_arrays = module.shared.iter().next().is_some()
        || module.functions.iter().any(|(_, it)| it.local_arrays.iter().next().is_some());
    let has_callees = module.functions.iter().any(|(_, function)| function.kind == FunctionKind::Device);
    if !has_callees && !has_own_arrays {
        return types;
    }
    let small = ModuleSummary::guess(module, circles, &slot, summary::small);
    let mut guess =
        if wraps(module) { ModuleSummary::guess(module, circles, &slot, summary::small_nonneg) } else { small.clone() };
    for _ in 0..GUESSES {
        let mut found = ModuleSummary::nothing(module);
        for (id, function) in module.functions.iter() {
            match RangeAnalysis::new(module, (id, function), arrays, &guess).run() {
                Some(function) => function.add_to(&mut found, id),
                None => give_up(module, function, id, &mut found),
            }
        }
        if guess.retract(&found, &[&small, &types]) {
            // What follows from a guess that holds, holds too, and is often less.
            for (id, function) in module.functions.iter() {
                if function.kind != FunctionKind::Device || circles.contains(id) {
                    found.params[id.index()].clone_from(&guess.params[id.index()]);
                    found.results[id.index()].clone_from(&guess.results[id.index()]);
                }
            }
            found.elements.keep_others(module, &guess.elements);
            // Arguments that a device function passes on were found for guessed parameters.
            let passes_on = module.functions.iter().any(|(_, it)| it.kind == FunctionKind::Device && calls(it));
            return if passes_on { with_arguments(module, arrays, (found, circles)) } else { found };
        }
    }
    with_arguments(module, arrays, (types, circles))
}

/// Whether a negative index may occur.
fn wraps(module: &Module) -> bool {
    let mut functions = module.functions.iter();
    functions.any(|(_, function)| function.exprs.iter().any(|(_, expr)| matches!(expr.kind, ExprKind::Wrap { .. })))
}

fn calls(function: &Function) -> bool {
    let mut found = false;
    for_each_stmt(&function.body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Call { .. }));
    found
}

/// The summary with the ranges of parameters that follow from the callers, and from their callers.
fn with_arguments(
    module: &Module,
    arrays: &Pointers<PointedArray>,
    (mut summary, circles): (ModuleSummary, &Circles),
) -> ModuleSummary {
    for (id, function) in module.functions.iter() {
        if function.kind == FunctionKind::Device && !circles.contains(id) {
            summary.params[id.index()].fill(Interval::NONE);
        }
    }
    // Callers come after their callees.
    let ids: Vec<_> = module.functions.iter().map(|(id, _)| id).collect();
    for &id in ids.iter().rev() {
        let mut found = ModuleSummary::nothing(module);
        match RangeAnalysis::new(module, (id, &module.functions[id]), arrays, &summary).run() {
            Some(function) => function.add_to(&mut found, id),
            None => give_up(module, &module.functions[id], id, &mut found),
        }
        for (callee, found) in module.functions.iter().map(|(callee, _)| callee).zip(&found.params) {
            if !circles.contains(callee) {
                for (known, arg) in summary.params[callee.index()].iter_mut().zip(found) {
                    *known = known.join(*arg);
                }
            }
        }
    }
    summary
}

/// Adds what follows from a function whose analysis gave up.
fn give_up(module: &Module, function: &Function, id: FuncId, found: &mut ModuleSummary) {
    found.results[id.index()] = function.results.iter().map(|ty| Interval::of_type(*ty)).collect();
    found.elements.store_anywhere(module, true, true);
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Call { func, args, .. } = &stmt.kind {
            for (known, arg) in found.params[func.index()].iter_mut().zip(args) {
                *known = known.join(Interval::of_type(function.exprs[*arg].ty));
            }
        }
    });
}

/// The range of an argument of a launch for which the module's assumptions hold.
pub(crate) fn argument_range(module: &Module, function: &Function, index: usize) -> Interval {
    let local = &function.locals[function.params[index]];
    let all = Interval::of_type(local.ty);
    let known = match function.slots.get(index) {
        Some(SlotSource::Argument { field: SlotField::Shape(_), .. }) => {
            let (least, most) =
                if module.assumptions.small { (1, i128::from(SMALL_EXTENT)) } else { (0, (1 << EXTENT_BITS) - 1) };
            all.meet(Interval::new(least, most))
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

/// What the analysis of one function finds.
struct FunctionRanges {
    ranges: Ranges,
    /// The arguments of its calls.
    called: Vec<(FuncId, Vec<Interval>)>,
    /// What it stores.
    stored: Elements,
}

impl FunctionRanges {
    fn add_to(self, summary: &mut ModuleSummary, id: FuncId) {
        for (callee, args) in self.called {
            for (known, arg) in summary.params[callee.index()].iter_mut().zip(args) {
                *known = known.join(arg);
            }
        }
        summary.results[id.index()] = self.ranges.results;
        summary.elements.join(&self.stored);
    }
}

/// The range analysis of one function.
struct RangeAnalysis<'a> {
    module: &'a Module,
    function: &'a Function,
    number: FuncId,
    /// The arrays that pointers point into.
    arrays: &'a Pointers<PointedArray>,
    /// The ranges of the results of its callees, and of the elements of arrays.
    summary: &'a ModuleSummary,
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
    found: FunctionRanges,
    /// The number of evaluations left.
    patience: usize,
}

impl<'a> RangeAnalysis<'a> {
    fn new(
        module: &'a Module,
        (number, function): (FuncId, &'a Function),
        arrays: &'a Pointers<PointedArray>,
        summary: &'a ModuleSummary,
    ) -> Self {
        let mut locals = vec![Interval::NONE; function.locals.len()];
        for (param, known) in function.params.iter().zip(&summary.params[number.index()]) {
            locals[param.index()] = *known;
        }
        let ranges = Ranges {
            exprs: vec![Interval::NONE; function.exprs.len()],
            locals: locals.clone(),
            results: vec![Interval::NONE; function.results.len()],
        };
        Self {
            module,
            function,
            number,
            arrays,
            summary,
            fixed: Rematerializable::of(function, &function.body),
            state: RangeState::new(locals),
            loops: Vec::new(),
            heads: BTreeMap::new(),
            notes: true,
            sums: false,
            in_arm: false,
            found: FunctionRanges { ranges, called: Vec::new(), stored: summary.elements.emptied() },
            patience: PATIENCE.saturating_mul(function.exprs.len()),
        }
    }

    /// The result; `None` if the analysis gave up.
    fn run(mut self) -> Option<FunctionRanges> {
        let function = self.function;
        self.block(&function.body);
        (self.patience > 0).then_some(self.found)
    }

    fn block(&mut self, block: &'a Block) {
        crate::stop::check();
        for (index, stmt) in block.iter().enumerate() {
            if self.state.dead || self.patience == 0 {
                return;
            }
            self.stmt(stmt, &block[..index]);
        }
    }

    /// Analyzes a statement that follows `before` in its block.
    fn stmt(&mut self, stmt: &'a Stmt, before: &'a [Stmt]) {
        match &stmt.kind {
            StmtKind::Assign(local, value) => {
                self.count_sum(*local, *value);
                let value = self.assigned(*local, *value);
                self.assign(*local, value);
            }
            StmtKind::Store { pointer, value, .. } => {
                self.eval(*pointer);
                let value = self.eval(*value);
                self.store(*pointer, value);
            }
            StmtKind::Op { op, results, args } => {
                let ranges: Vec<_> = args.iter().map(|arg| self.eval(*arg)).collect();
                let before = self.operate(*op, args, &ranges);
                for local in results {
                    self.count_other(*local);
                    let all = Interval::of_type(self.function.locals[*local].ty);
                    self.assign(*local, before.map_or(all, |before| before.meet(all)));
                }
            }
            StmtKind::Call { results, func, args } => {
                let args = args.iter().map(|arg| self.eval(*arg)).collect();
                if self.notes {
                    self.found.called.push((*func, args));
                }
                for (index, local) in results.iter().enumerate() {
                    self.count_other(*local);
                    let ty = self.function.locals[*local].ty;
                    let given = self.summary.results[func.index()][index];
                    self.assign(*local, if given.is_none() { Interval::of_type(ty) } else { given });
                }
            }
            StmtKind::If { cond, then, otherwise } => self.branch(*cond, before, then, otherwise),
            StmtKind::Loop { body, step } => self.walk_loop(body, step),
            StmtKind::Break => self.leave(true),
            StmtKind::Continue => self.leave(false),
            StmtKind::Return(values) => {
                for (index, value) in values.iter().enumerate() {
                    let value = self.eval(*value);
                    if self.notes {
                        let known = &mut self.found.ranges.results[index];
                        *known = known.join(value);
                    }
                }
                self.state.dead = true;
            }
        }
    }

    /// What a pointer points into, and the type and space of its elements.
    fn pointed(&self, pointer: ExprId) -> Option<(PointedArray, (Scalar, Space))> {
        let Type::Ptr(elem, space) = self.function.exprs[pointer].ty else { return None };
        let array = self.arrays.find(self.module, self.number, self.function, pointer).unwrap_or(PointedArray::Unknown);
        Some((array, (elem, space)))
    }

    /// The range of the value that a pointer points to, if it is known.
    fn loaded(&self, pointer: ExprId) -> Option<Interval> {
        let (array, (elem, _)) = self.pointed(pointer)?;
        self.summary.elements.get(self.module, array, elem).filter(|range| !range.is_none())
    }

    fn store(&mut self, pointer: ExprId, value: Interval) {
        if self.notes
            && let Some((array, of)) = self.pointed(pointer)
        {
            self.found.stored.store(self.module, array, of, value);
        }
    }

    /// Records what an operation stores. Returns the range of what was there before, if the operation returns it.
    fn operate(&mut self, op: Op, args: &[ExprId], ranges: &[Interval]) -> Option<Interval> {
        let memory = op.row().memory;
        if memory == Memory::All && self.notes {
            self.found.stored.store_anywhere(self.module, true, true);
        }
        if !memory.writes() {
            return None;
        }
        let atomic = if let Op::Atomic { op, .. } = op { Some(op) } else { None };
        for &arg in args {
            let Type::Ptr(elem, _) = self.function.exprs[arg].ty else { continue };
            let all = Interval::of_type(Type::Scalar(elem));
            self.store(arg, atomic.map_or(all, |op| stored(op, ranges).unwrap_or(all)));
        }
        atomic.and_then(|_| self.loaded(*args.first()?))
    }

    fn assign(&mut self, local: LocalId, value: Interval) {
        let declared = &self.function.locals[local];
        let value = if declared.nonneg { value.meet(Interval::new(0, i128::MAX)) } else { value };
        // The declared range of a local and the range of its value are disjoint: the statement is unreachable.
        let value = if value.is_none() { Interval::of_type(declared.ty) } else { value };
        self.state.set(local, value);
        if self.notes {
            let known = &mut self.found.ranges.locals[local.index()];
            *known = known.join(value);
        }
    }

    fn branch(&mut self, cond: ExprId, before: &[Stmt], then: &'a Block, otherwise: &'a Block) {
        self.eval(cond);
        let mark = self.state.mark();
        self.assume_after(before, cond, true);
        self.block(then);
        let after_then = self.state.take(mark);
        self.assume_after(before, cond, false);
        self.block(otherwise);
        let after_else = self.state.take(mark);
        let both = self.state.joined(after_then, after_else);
        self.state.put(both);
    }
}

/// The range of the values that an atomic operation stores in place of the previous ones, given its operands; `None` if
/// it computes them from these.
fn stored(op: AtomicOp, operands: &[Interval]) -> Option<Interval> {
    match op {
        AtomicOp::Max | AtomicOp::Min | AtomicOp::Exchange => operands.get(1).copied(),
        AtomicOp::Cas => operands.get(2).copied(),
        AtomicOp::Add
        | AtomicOp::Sub
        | AtomicOp::And
        | AtomicOp::Or
        | AtomicOp::Xor
        | AtomicOp::NanMax
        | AtomicOp::NanMin
        | AtomicOp::Inc
        | AtomicOp::Dec => None,
    }
}
