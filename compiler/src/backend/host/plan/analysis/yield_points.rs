//! Placement of yield points. At a yield point, a thread polls whether the launch is cancelled; a thread with a stack
//! also lets other threads run.
//!
//! A counted loop with a short body has none: it ends soon, and LLVM vectorizes it only without one. These have one:
//!
//! - each iteration of any other loop;
//! - each iteration of a loop that may wait for a value that another thread writes, and of a loop in sanitized code
//!   that has a second exit;
//! - without fibers, the return from a function that has a yield point;
//! - with fibers, the entry of a recursive function.
//!
//! A loop counts as long if its trip count is not known.

use crate::{
    analysis::{Rematerializable, WaitAnalysis, escapes},
    ir::{
        Arith, BinaryOp, Circles, Class, CompareOp, Const, ExprId, ExprKind, FuncId, Function, Leaf, LocalId, Module,
        SpecialRegister, Stmt, StmtKind, UnaryOp, for_each_expr, for_each_stmt,
    },
};

/// Loops with at most this many iterations, including those of nested loops, count as straight code: LLVM may unroll
/// them and vectorize the code around them.
const MAX_SHORT_TRIP_COUNT: u64 = 256;

/// Properties of a function.
#[derive(Clone, Copy, Debug, Default)]
struct Called {
    /// The maximum number of loop iterations of a call.
    iterations: u64,
    /// The function has a yield point.
    looks: bool,
    /// The function is recursive, directly or through others.
    on_circle: bool,
}

/// The yield points of a module.
#[derive(Debug, Default)]
pub(crate) struct Polling {
    functions: Vec<Called>,
    waiting: WaitAnalysis,
    /// The code is sanitized: the checks around its loads hide the memory that loops wait for.
    tells: bool,
}

impl Polling {
    /// Analyzes the functions of a module, callees first.
    pub(crate) fn of(module: &Module) -> Self {
        let circles = Circles::of(module);
        let waiting = WaitAnalysis::of(module, &circles);
        let tells = !module.sanitize.is_empty();
        let mut this = Self { functions: Vec::with_capacity(module.functions.len()), waiting, tells };
        for (id, function) in module.functions.iter() {
            let fixed = Rematerializable::of(function, &function.body);
            let iterations = this.iterations(function, &fixed, &function.body);
            let mut looks = false;
            for_each_stmt(&function.body, &mut |stmt| {
                looks |= match &stmt.kind {
                    StmtKind::Loop { body, step } => this.in_loop(function, &fixed, body, step),
                    StmtKind::Call { func, .. } => this.after_call(*func),
                    StmtKind::Assign(..)
                    | StmtKind::Store { .. }
                    | StmtKind::Op { .. }
                    | StmtKind::If { .. }
                    | StmtKind::Break
                    | StmtKind::Continue
                    | StmtKind::Return(_) => false,
                };
            });
            // Recursive callees are not analyzed yet. They count as long.
            this.functions.push(Called { iterations, looks, on_circle: circles.contains(id) });
        }
        this
    }

    /// Whether each further iteration of a loop begins with a yield point.
    pub(crate) fn in_loop(&self, function: &Function, fixed: &Rematerializable, body: &[Stmt], step: &[Stmt]) -> bool {
        !Counter::of(function, fixed, body, step).is_some_and(|counter| counter.ends())
            || self.for_long(function, fixed, body)
            || self.for_long(function, fixed, step)
            || self.waits(function, body, step)
            || (self.tells && has_way_out(body))
    }

    /// Whether a thread may wait in a loop for a value that another thread writes.
    pub(crate) fn waits(&self, function: &Function, body: &[Stmt], step: &[Stmt]) -> bool {
        self.waiting.in_loop(function, body, step)
    }

    /// Whether statements may have more than [`MAX_SHORT_TRIP_COUNT`] iterations.
    pub(crate) fn for_long(&self, function: &Function, fixed: &Rematerializable, list: &[Stmt]) -> bool {
        self.iterations(function, fixed, list) > MAX_SHORT_TRIP_COUNT
    }

    /// Whether a call is followed by a yield point.
    pub(crate) fn after_call(&self, func: FuncId) -> bool {
        self.called(func).looks
    }

    /// Whether a function is recursive, so that its entry is a yield point; the value says whether the recursion waits
    /// for other threads.
    pub(crate) fn at_start(&self, func: FuncId) -> Option<bool> {
        self.called(func).on_circle.then_some(self.waiting.circles)
    }

    /// Whether a call of a function, or a block of a kernel, may have more than [`MAX_SHORT_TRIP_COUNT`] iterations.
    pub(crate) fn call_is_long(&self, func: FuncId) -> bool {
        self.called(func).iterations > MAX_SHORT_TRIP_COUNT
    }

    fn called(&self, func: FuncId) -> Called {
        self.functions.get(func.index()).copied().unwrap_or(Called {
            iterations: u64::MAX,
            looks: true,
            on_circle: true,
        })
    }

    /// The maximum number of loop iterations of statements.
    fn iterations(&self, function: &Function, fixed: &Rematerializable, list: &[Stmt]) -> u64 {
        let mut sum = 0_u64;
        for (index, stmt) in list.iter().enumerate() {
            let own = match &stmt.kind {
                StmtKind::If { then, otherwise, .. } => {
                    self.iterations(function, fixed, then).max(self.iterations(function, fixed, otherwise))
                }
                StmtKind::Loop { body, step } => {
                    let counter = Counter::of(function, fixed, body, step);
                    let own = counter.and_then(|counter| counter.iterations(list.get(..index)?)).unwrap_or(u64::MAX);
                    let iteration = self
                        .iterations(function, fixed, body)
                        .saturating_add(self.iterations(function, fixed, step))
                        .max(1);
                    own.saturating_mul(iteration)
                }
                StmtKind::Call { func, .. } => self.called(*func).iterations,
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => 0,
            };
            sum = sum.saturating_add(own);
        }
        sum
    }
}

/// Whether a loop that starts with `if not test { break }` has another exit.
fn has_way_out(body: &[Stmt]) -> bool {
    let mut ways = 0;
    for_each_stmt(body, &mut |stmt| ways += u32::from(matches!(stmt.kind, StmtKind::Break | StmtKind::Return(_))));
    ways > 1
}

/// A loop that starts with `if not test { break }`, and whose iterations each add a loop-invariant amount to a local.
struct Counter<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    body: &'a [Stmt],
    step: &'a [Stmt],
    test: ExprId,
    local: LocalId,
    by: By,
}

/// The step of a counter.
#[derive(Clone, Copy)]
struct By {
    amount: ExprId,
    /// The amount is subtracted.
    negated: bool,
}

/// The direction of a counter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl<'a> Counter<'a> {
    fn of(function: &'a Function, fixed: &'a Rematerializable, body: &'a [Stmt], step: &'a [Stmt]) -> Option<Self> {
        let StmtKind::If { cond, then, otherwise } = &body.first()?.kind else { return None };
        let leaves = matches!(then.last(), Some(Stmt { kind: StmtKind::Break, .. })) && otherwise.is_empty();
        let ExprKind::Unary(UnaryOp::Not, test) = function.exprs[*cond].kind else { return None };
        if !leaves {
            return None;
        }
        let mut found = None;
        for (list, is_step) in [(step, true), (body, false)] {
            for (index, stmt) in list.iter().enumerate() {
                let StmtKind::Assign(local, sum) = stmt.kind else { continue };
                let Some(by) = increment(function, local, sum) else { continue };
                let this = Counter { function, fixed, body, step, test, local, by };
                // An iteration with a `continue` before it skips an increment in the body.
                let reached = is_step || !list.get(..index).is_some_and(|before| escapes(before).continues);
                if reached && this.assignments() == 1 && this.is_tested() && this.stays(by.amount) {
                    found = Some(this);
                }
            }
        }
        found
    }

    /// The number of assignments to the counter in the loop.
    fn assignments(&self) -> usize {
        let mut count = 0;
        for part in [self.body, self.step] {
            for_each_stmt(part, &mut |stmt| {
                count += stmt.kind.assigned().iter().filter(|&&local| local == self.local).count();
            });
        }
        count
    }

    fn is_tested(&self) -> bool {
        let mut found = false;
        for_each_expr(self.function, self.test, &mut |id| {
            found |= self.is_counter(id);
        });
        found
    }

    /// Whether an expression is loop-invariant. Loads are not.
    fn stays(&self, root: ExprId) -> bool {
        let mut reads = Vec::new();
        let mut loads = false;
        for_each_expr(self.function, root, &mut |id| match self.function.class(id) {
            Class::Leaf(Leaf::Local(local)) => reads.push(local),
            Class::Load(_) => loads = true,
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => {}
        });
        for part in [self.body, self.step] {
            for_each_stmt(part, &mut |stmt| loads |= stmt.kind.assigned().iter().any(|local| reads.contains(local)));
        }
        !loads
    }

    /// Whether the test fails eventually.
    fn ends(&self) -> bool {
        self.test_ends(self.test, None)
    }

    /// The same for a part of the test. `known` is the sign of the amount, if an enclosing condition implies it.
    fn test_ends(&self, test: ExprId, known: Option<Way>) -> bool {
        match self.function.class(test) {
            Class::Arith(Arith::Compare(..)) => self
                .limit(test)
                .is_some_and(|(way, bound, or_equal)| self.goes(way, known) && self.stops_at(bound, or_equal)),
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) => {
                let known = known.or_else(|| self.sign(a)).or_else(|| self.sign(b));
                self.test_ends(a, known) || self.test_ends(b, known)
            }
            Class::Arith(Arith::Select(cond, a, b)) => {
                self.test_ends(a, known.or_else(|| self.sign(cond))) && self.test_ends(b, known)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        }
    }

    /// For a comparison of the counter with a loop-invariant bound: the direction in which the counter fails it, the
    /// bound, and whether the test holds for equality.
    fn limit(&self, test: ExprId) -> Option<(Way, ExprId, bool)> {
        let ExprKind::Compare(op, a, b) = self.function.exprs[test].kind else { return None };
        let (bound, swapped) = match (self.is_counter(a), self.is_counter(b)) {
            (true, false) => (b, false),
            (false, true) => (a, true),
            (true, true) | (false, false) => return None,
        };
        let (way, or_equal) = match op {
            CompareOp::Lt => (Way::Up, false),
            CompareOp::Le => (Way::Up, true),
            CompareOp::Gt => (Way::Down, false),
            CompareOp::Ge => (Way::Down, true),
            CompareOp::Eq | CompareOp::Ne => return None,
        };
        let way = match (way, swapped) {
            (Way::Up, false) | (Way::Down, true) => Way::Up,
            (Way::Down, false) | (Way::Up, true) => Way::Down,
        };
        self.stays(bound).then_some((way, bound, or_equal))
    }

    fn is_counter(&self, id: ExprId) -> bool {
        self.function.local(id) == Some(self.local)
    }

    /// Whether the counter reaches the bound before it overflows. A 64-bit counter never overflows in practice.
    fn stops_at(&self, bound: ExprId, or_equal: bool) -> bool {
        let local = &self.function.locals[self.local];
        let Some(ty) = local.ty.scalar().filter(|ty| ty.is_int()) else { return false };
        if ty.size_bytes() == 8 || local.counts {
            return true;
        }
        let Some(by) = self.constant(self.by.amount) else { return false };
        if by.abs() == 1 && !or_equal {
            return true;
        }
        let bits = 8 * ty.size_bytes();
        let (least, most) =
            if ty.is_signed_int() { (-(1_i128 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        self.constant(bound).is_some_and(|bound| bound - by.abs() >= least && bound + by.abs() <= most)
    }

    fn goes(&self, way: Way, known: Option<Way>) -> bool {
        let of_amount = known.or_else(|| self.amount_sign(self.by.amount, 16));
        let up = if self.by.negated { Way::Down } else { Way::Up };
        of_amount.is_some_and(|sign| (sign == Way::Up) == (up == way))
    }

    /// The sign of the amount that a comparison of it with zero implies.
    fn sign(&self, test: ExprId) -> Option<Way> {
        let ExprKind::Compare(op, a, b) = self.function.exprs[test].kind else { return None };
        let amount = &self.function.exprs[self.by.amount].kind;
        let is_amount = matches!(amount, ExprKind::Local(_)) && self.function.exprs[a].kind == *amount;
        if !is_amount || self.constant(b) != Some(0) {
            return None;
        }
        match op {
            CompareOp::Gt => Some(Way::Up),
            CompareOp::Lt => Some(Way::Down),
            CompareOp::Eq | CompareOp::Ne | CompareOp::Le | CompareOp::Ge => None,
        }
    }

    /// The sign of an amount; `None` if it is unknown or zero.
    fn amount_sign(&self, id: ExprId, depth: u32) -> Option<Way> {
        let depth = depth.checked_sub(1)?;
        let ty = self.function.exprs[id].ty.scalar()?;
        match self.function.class(id) {
            Class::Leaf(Leaf::Const(Const::Int(value))) if value > 0 => Some(Way::Up),
            Class::Leaf(Leaf::Const(Const::Int(value))) if value < 0 && ty.is_signed_int() => Some(Way::Down),
            Class::Leaf(Leaf::Special(SpecialRegister::BlockDim(_) | SpecialRegister::GridDim(_))) => Some(Way::Up),
            Class::Leaf(Leaf::Local(local)) => self.amount_sign(self.fixed.value(local)?, depth),
            Class::Arith(Arith::Convert(a)) => {
                let from = self.function.exprs[a].ty.scalar()?;
                let widens = from.is_signed_int() && ty.is_int() && ty.size_bytes() >= from.size_bytes();
                if widens { self.amount_sign(a, depth) } else { None }
            }
            // Products of extents, which never overflow 64 bits in practice.
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::Mul, a, b)) if ty.size_bytes() == 8 => {
                let both = (self.amount_sign(a, depth)?, self.amount_sign(b, depth)?);
                (both == (Way::Up, Way::Up)).then_some(Way::Up)
            }
            Class::Arith(Arith::Unary(UnaryOp::Neg, a)) if ty.is_signed_int() && ty.size_bytes() == 8 => {
                (self.amount_sign(a, depth)? == Way::Up).then_some(Way::Down)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    fn constant(&self, id: ExprId) -> Option<i128> {
        match self.function.local(id) {
            Some(local) => self.function.int(self.fixed.value(local)?),
            None => self.function.int(id),
        }
    }

    /// The maximum trip count of the loop, if it is known. `before` are the statements before the loop.
    fn iterations(&self, before: &[Stmt]) -> Option<u64> {
        // Any of the limits ends the loop.
        let limits = self.limits(self.test);
        let (way, bound, or_equal) = limits.into_iter().find(|&(_, bound, _)| self.constant(bound).is_some())?;
        if !self.stops_at(bound, or_equal) {
            return None;
        }
        let bound = self.constant(bound)?;
        let by = self.constant(self.by.amount)?;
        let by = if self.by.negated { by.checked_neg()? } else { by };
        let first = before.iter().rposition(|stmt| {
            let mut assigns = false;
            for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
                assigns |= inner.kind.assigned().contains(&self.local);
            });
            assigns
        })?;
        let StmtKind::Assign(_, first) = before.get(first)?.kind else { return None };
        let first = self.constant(first)?;
        let (distance, by) = match way {
            Way::Up => (bound.checked_sub(first)?, by),
            Way::Down => (first.checked_sub(bound)?, by.checked_neg()?),
        };
        if by <= 0 {
            return None;
        }
        let distance = distance.checked_add(i128::from(or_equal))?.max(0);
        u64::try_from(distance / by + i128::from(distance % by != 0)).ok()
    }

    /// The comparisons that must all hold for another iteration.
    fn limits(&self, test: ExprId) -> Vec<(Way, ExprId, bool)> {
        if let ExprKind::Binary(BinaryOp::And, a, b) = self.function.exprs[test].kind {
            let mut all = self.limits(a);
            all.extend(self.limits(b));
            return all;
        }
        self.limit(test).into_iter().collect()
    }
}

/// The step, if an assignment adds to a local.
fn increment(function: &Function, local: LocalId, sum: ExprId) -> Option<By> {
    let ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) = function.exprs[sum].kind else { return None };
    let negated = op == BinaryOp::Sub;
    match (function.local(a) == Some(local), function.local(b) == Some(local)) {
        (true, false) => Some(By { amount: b, negated }),
        (false, true) if !negated => Some(By { amount: a, negated }),
        (true, true) | (false, _) => None,
    }
}
