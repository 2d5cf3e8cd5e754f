//! Index-set splitting of the thread loop in prologue, steady state and epilogue (loop partitioning).
//!
//! ```text
//! for x in 0..row:                          for x in 0..low: …               # the original body
//!     l = max(x - 1, 0)                     for x in low..high:              # the steady state
//!     r = min(x + 1, w - 1)                     out[x] = a[x - 1] + a[x + 1]
//!     out[x] = a[l] + a[r]                  for x in high..row: …            # the original body
//! ```
//!
//! Kernels that access neighbors clamp indices (`min(max(x + dx, 0), w - 1)`), test each of them (`if 0 <= xx < w`), or
//! wrap them around (`(x + 1) % w`, `(x + w - 1) % w`). The results do not grow by one from thread to thread, so LLVM
//! would gather. But only threads near a border need these operations. The threads between the borders run a copy of
//! the body without them. A [`Guard`](crate::backend::host::plan::plan_ir::Guard) computes which threads these are,
//! before the row starts. Results never depend on the choice of conditions: a row for which they do not hold has no
//! steady state, and runs the original body alone.
//!
//! The analysis is an abstract interpretation with symbolic intervals. For each integer it knows two sums of values
//! that are available before the row starts: `x + dx` is at least `x - 1` and at most `x + 1`. An assumption of the
//! steady state is that such a sum is not negative. Sums are exact integers; the guard also tests that no term is so
//! large that a sum may wrap.
//!
//! Legal for bodies without operations (atomics, prints, votes).
//!
//! Pays if an assumption removes at least one operation, the body is not too large, and the guard does not limit the
//! row to a few threads, as those that load a halo.

mod taken;
mod values;

use std::collections::BTreeMap;

use crate::{
    backend::host::plan::{
        analysis::{
            affine_bounds::{Between, Known, MAX_CONSTANT, Sum},
            strides::{Form, Forms},
            structure::counter,
        },
        plan_ir::{Guard, Piece, Range, Segment, Split, SplitBy, guards::Peeler},
    },
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, ExprId, ExprKind, Function, Leaf, LocalId, SpecialRegister, Stmt,
        StmtKind, Type, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Expressions of the largest body that is duplicated.
const MAX_EXPRS: usize = 2500;

/// Most assumptions of a steady state; the emitted code computes each of them for every row.
const MAX_CONDITIONS: usize = 16;

/// Fewer threads of a row than this do not pay for the computation of its parts.
const MIN_THREADS: i128 = 8;

/// Terms of sums are smaller than this, so that sums are exact in 64 bits.
const MAX_TERM: i128 = 1 << 59;

/// A constant bound up to this one is taken as the beginning of an array, every other bound as its end.
const NEAR_ZERO: i128 = 64;

/// Gives a segment its steady state, if there is one that pays. The segment's guards are moved already.
pub(crate) fn find(peeler: &mut Peeler<'_>, segment: &mut Segment) {
    let (mut exprs, mut simple) = (0, true);
    for_each_stmt(&segment.body, &mut |stmt| {
        // Operations such as prints, barriers and votes distinguish the position at which a thread executes them.
        simple &= legal!("steady_state.no-operation", !matches!(stmt.kind, StmtKind::Op { .. }));
        for_each_expr_of_stmt(peeler.function, &stmt.kind, &mut |_| exprs += 1);
    });
    if !simple || exprs > MAX_EXPRS || segment.guard.as_ref().is_some_and(|guard| has_few_threads(peeler, guard)) {
        return;
    }
    let before = peeler.function.exprs.len();
    let guards = || segment.guard.iter();
    let ranges = guards().flat_map(|guard| &guard.ranges).filter(|range| range.times == 1).copied();
    let rows = guards().flat_map(|guard| &guard.rows).filter_map(|&row| of_row(peeler.function, row));
    let ranges = ranges.chain(rows).collect();
    let mut walk =
        Specializer { peeler, ranges, known: BTreeMap::new(), nonneg: Vec::new(), parts: Vec::new(), gains: 0 };
    let body = walk.block(&segment.body);
    let (gains, nonneg) = (walk.gains, std::mem::take(&mut walk.nonneg));
    let guard = if gains == 0 { None } else { walk.guard(&nonneg) };
    let Some(mut guard) = guard else {
        peeler.function.exprs.truncate(before);
        return;
    };
    if guard.is_empty() {
        // The segment's own guard implies all assumptions.
        segment.body = body;
        return;
    }
    peeler.complete(&mut guard);
    segment.split = Some(Split::by_range(SplitBy::SteadyState, Piece { guard, body }));
}

/// `true` if a guard with a constant bound lets few threads of each row through: `tid < 2`.
fn has_few_threads(peeler: &Peeler<'_>, guard: &Guard) -> bool {
    let few = |range: &Range| {
        let (Some(first), Some(bound)) = (value_of_first(peeler, range.value), peeler.function.int(range.bound)) else {
            return false;
        };
        let threads = match range.op {
            CompareOp::Lt => bound - first,
            CompareOp::Le => bound - first + 1,
            CompareOp::Eq => 1,
            CompareOp::Gt | CompareOp::Ge | CompareOp::Ne => return false,
        };
        range.times == 1 && threads < MIN_THREADS
    };
    guard.ranges.iter().any(few)
}

/// The value of an integer in the row's first thread, if that is the sum of `threadIdx.x` and constants.
fn value_of_first(peeler: &Peeler<'_>, id: ExprId) -> Option<i128> {
    let function: &Function = peeler.function;
    let id = peeler.fixed.resolve(function, id);
    match function.class(id) {
        Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => Some(0),
        Class::Arith(Arith::Convert(of)) => value_of_first(peeler, of),
        Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => {
            value_of_first(peeler, a)?.checked_add(value_of_first(peeler, b)?)
        }
        Class::Arith(Arith::Binary(BinaryOp::Sub | BinaryOp::SubExact, a, b)) => {
            value_of_first(peeler, a)?.checked_sub(value_of_first(peeler, b)?)
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => function.int(id),
    }
}

/// A condition on the row, or its negation, as a range of values that are uniform along the row: `0 <= y`.
fn of_row(function: &Function, (cond, negated): (ExprId, bool)) -> Option<Range> {
    use CompareOp::{Eq, Ge, Gt, Le, Lt, Ne};
    let ExprKind::Compare(op, a, b) = function.exprs[cond].kind else { return None };
    if function.exprs[a].ty != Type::I64 {
        return None;
    }
    let op = match (op, negated) {
        (Lt, false) | (Ge, true) => Lt,
        (Le, false) | (Gt, true) => Le,
        (Gt, false) | (Le, true) => Gt,
        (Ge, false) | (Lt, true) => Ge,
        (Eq | Ne, _) => return None,
    };
    let turned = match op {
        Lt => Gt,
        Le => Ge,
        Gt => Lt,
        Ge => Le,
        Eq | Ne => return None,
    };
    let (value, op, bound) = if function.int(a).is_some() { (b, turned, a) } else { (a, op, b) };
    Some(Range { value, op, bound, times: 1, plus: 0, wraps: false })
}

/// The state of the abstract interpretation.
struct Specializer<'a, 'b> {
    peeler: &'a mut Peeler<'b>,
    /// The comparisons of the segment's guard, of threads and of rows.
    ranges: Vec<Range>,
    /// The intervals of locals at the current position.
    known: BTreeMap<LocalId, Known>,
    /// The assumptions: sums that are not negative.
    nonneg: Vec<Sum>,
    /// The terms of all sums in assumptions. None may be so large that a sum wraps.
    parts: Vec<ExprId>,
    /// The number of operations that the steady state omits.
    gains: usize,
}

impl Specializer<'_, '_> {
    fn function(&self) -> &Function {
        self.peeler.function
    }

    fn form(&self, id: ExprId) -> Form {
        self.form_along(0, id)
    }

    fn form_along(&self, axis: u8, id: ExprId) -> Form {
        let forms = Forms {
            function: self.peeler.function,
            fixed: self.peeler.fixed,
            shared: &|local| !self.peeler.uniformity.local_varies(local),
            sole: &|_| None,
            axis,
        };
        forms.form(id)
    }

    fn push(&mut self, kind: ExprKind, ty: Type, at: ExprId) -> ExprId {
        let span = self.function().exprs[at].span;
        self.peeler.function.edit(span).expr(kind, ty)
    }

    // --- Statements ---

    fn block(&mut self, block: &[Stmt]) -> Block {
        let mut done = Block::new();
        for stmt in block {
            let span = stmt.span;
            let kind = match &stmt.kind {
                StmtKind::Assign(local, value) => {
                    let (copy, known) = self.value(*value);
                    self.assign(*local, known, copy);
                    StmtKind::Assign(*local, copy)
                }
                StmtKind::Store { pointer, value, align } => {
                    StmtKind::Store { pointer: self.value(*pointer).0, value: self.value(*value).0, align: *align }
                }
                StmtKind::Call { results, func, args } => {
                    let args = args.iter().map(|&arg| self.value(arg).0).collect();
                    self.known.retain(|local, _| !results.contains(local));
                    StmtKind::Call { results: results.clone(), func: *func, args }
                }
                StmtKind::If { cond, then, otherwise } => {
                    let (cond, known) = self.value(*cond);
                    if let Some(Known::Bool(holds)) = known {
                        done.extend(self.block(if holds { then } else { otherwise }));
                        continue;
                    }
                    let before = self.known.clone();
                    let first = self.block(then);
                    self.known.clone_from(&before);
                    let second = self.block(otherwise);
                    self.known = before;
                    if !legal!("steady_state.forget-branches", false) {
                        self.forget(then);
                        self.forget(otherwise);
                    }
                    StmtKind::If { cond, then: first, otherwise: second }
                }
                StmtKind::Loop { body, step } => self.turns(body, step),
                other @ (StmtKind::Op { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_)) => {
                    other.clone()
                }
            };
            done.push(Stmt { kind, span });
        }
        done
    }

    fn assign(&mut self, local: LocalId, known: Option<Known>, value: ExprId) {
        let Some(mut known) = known else {
            self.known.remove(&local);
            return;
        };
        // A rematerializable local is a shorter form of its sum.
        if let Known::Integer(Between { low, .. }) = &known
            && low.terms.len() > 1
            && self.function().locals[local].ty == Type::I64
            && self.peeler.fixed.value(local).is_some()
        {
            let read = self.push(ExprKind::Local(local), Type::I64, value);
            if self.form(read) != Form::Other {
                known = Known::Integer(Between::one(Sum::term(read)));
            }
        }
        self.known.insert(local, known);
    }

    /// Forgets the intervals of locals that some statements assign.
    fn forget(&mut self, block: &[Stmt]) {
        for_each_stmt(block, &mut |stmt| {
            let assigned = stmt.kind.assigned();
            self.known.retain(|local, _| !assigned.contains(local));
        });
    }

    /// A copy of a loop. The counter of a counted loop is between its first value and its limit.
    fn turns(&mut self, body: &[Stmt], step: &[Stmt]) -> StmtKind {
        let first =
            counter(self.function(), body, step).map(|(local, limit)| (local, limit, self.known.get(&local).cloned()));
        if !legal!("steady_state.forget-iterations", false) {
            self.forget(body);
            self.forget(step);
        }
        let outside = self.known.clone();
        let mut done = Block::new();
        let mut rest = body;
        if let Some((local, limit, first)) = first {
            // The test of the counter is copied unchanged: it ends the loop.
            let limit = self.limit(limit);
            done.extend(self.peeler.function.copy_stmts(&body[..1]));
            rest = &body[1..];
            if let (Some(Known::Integer(first)), Some(Known::Integer(limit))) = (first, limit)
                && let Some(last) = limit.high.plus_constant(-1)
            {
                self.known.insert(local, Known::Integer(Between { low: first.low, high: last }));
            }
        }
        done.extend(self.block(rest));
        self.known = outside;
        StmtKind::Loop { body: done, step: self.peeler.function.copy_stmts(step) }
    }

    /// The interval of a counter's limit.
    fn limit(&mut self, limit: ExprId) -> Option<Known> {
        let known = self.value(limit).1;
        if known.is_some() || self.function().exprs[limit].ty != Type::I32 || self.form(limit) != Form::Same {
            return known;
        }
        let narrow = self.copy(limit);
        let wide = self.push(ExprKind::Convert(narrow), Type::I64, limit);
        Some(Known::Integer(Between::one(Sum::term(wide))))
    }
}
