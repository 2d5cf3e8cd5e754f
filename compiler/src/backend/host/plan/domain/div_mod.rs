//! Index-set splitting by quotient: `row, column = i // width, i % width`, in kernels that number the elements of a
//! matrix.
//!
//! ```text
//! for x in 0..threads:                      for each part of the row with one quotient q:
//!     i = first + x                             r = remainder of the part's first thread
//!     a[i // w, i % w] = …                      for x in part: a[q, r + x] = …
//! ```
//!
//! Neither the quotient nor the remainder grows by one from thread to thread, so LLVM would divide for each thread and
//! gather. But a row consists of parts in which the quotient is uniform and the remainder grows by one. The body gets
//! a copy for such a part. The executor computes where each part begins and ends, and the copy reads the values of the
//! part's first thread from registers ([`SpecialRegister::OfRow`]). Remainders may be divided again
//! (`i % (w * h) // w`), and so may quotients.
//!
//! Legal if the dividend derives from the global index, the divisor is uniform in the launch, and the copy reads
//! `threadIdx.x` and `blockIdx.x` only through this index, because a part may begin at any thread. Copies for merged
//! blocks have this property.
//!
//! Pays if all divisors that split a row (all but those of quotients) are at least [`SHORTEST_PART`]. The launch
//! chooses between the copy and the original body (loop versioning), unless a divisor is a smaller constant. Pays only if
//! an address or a condition depends on a quotient or remainder: LLVM vectorizes other uses as they are.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    analysis::{Rematerializable, same},
    backend::host::plan::plan_ir::{Dividend, Division, Quotients},
    ir::{
        BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Leaf, LocalId, Module,
        SpecialRegister, Stmt, StmtKind, Type, for_each_expr, for_each_expr_of_block, for_each_expr_of_stmt,
        for_each_stmt,
    },
    normalize::{drop_unread::drop_unread, fold_constants::is_division, unroll},
};

/// Expressions of the largest body that is duplicated.
const MAX_EXPRS: usize = 1500;

/// Most divisions; the executor computes each of them for every part.
const MAX_DIVISIONS: usize = 6;

/// The smallest divisor for which rows are split.
const SHORTEST_PART: i128 = 32;

/// Replaces the body by a branch on `is_worth` between a copy for such parts and the original body. `None` if there is
/// no such division, or if the copy is not legal.
pub(crate) fn copy(module: &Module, function: &mut Function, body: &mut Block) -> Option<Quotients> {
    let span = body.first()?.span;
    let (mut exprs, mut divides) = (0, false);
    for_each_stmt(body, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            exprs += 1;
            divides |= is_division(&function.exprs[id].kind);
        });
    });
    let kernel_only = legal!("div_mod.kernel-only", !others_ask(module));
    if !divides || exprs > MAX_EXPRS || !kernel_only || !selects(function, body) {
        return None;
    }
    let (locals, before) = (function.locals.len(), function.exprs.len());
    let then = unroll::copied(function, &module.constants, body, BTreeMap::new());
    let fixed = Rematerializable::of(function, &then);
    let once = once(&then);
    let mut rewrite =
        Rewrite { function, fixed, once, parts: BTreeMap::new(), first: None, unlike: false, divisions: Vec::new() };
    let mut then = rewrite.block(&then);
    let (first, unlike) = (rewrite.first, rewrite.unlike);
    let divisions = std::mem::take(&mut rewrite.divisions);
    drop_unread(function, &mut then);
    let is_short = |of: &Division| {
        let by = function.int(of.by);
        !matches!(of.dividend, Dividend::Quotient(_)) && by.is_some_and(|by| by < SHORTEST_PART)
    };
    let unlike = !legal!("div_mod.one-index", !unlike);
    let reads_place = !legal!("div_mod.index-only", !asks_for_place(function, &then));
    let refused = divisions.is_empty() || divisions.iter().any(is_short) || reads_place;
    let (Some(first), false, false) = (first, unlike, refused) else {
        function.locals.truncate(locals);
        function.exprs.truncate(before);
        return None;
    };
    let mut push = |kind: ExprKind, ty: Type| function.exprs.push(Expr { kind, ty, span });
    let mut is_worth = push(ExprKind::Const(Const::Bool(true)), Type::BOOL);
    for Division { dividend, by } in &divisions {
        let least = if matches!(dividend, Dividend::Quotient(_)) { 1 } else { SHORTEST_PART };
        let least = push(ExprKind::Const(Const::Int(least)), Type::I64);
        let fits = push(ExprKind::Compare(CompareOp::Ge, *by, least), Type::BOOL);
        is_worth = push(ExprKind::Binary(BinaryOp::And, is_worth, fits), Type::BOOL);
    }
    let otherwise = std::mem::take(body);
    body.push(Stmt { kind: StmtKind::If { cond: is_worth, then, otherwise }, span });
    Some(Quotients { first, is_worth, divisions })
}

/// `true` if an address, a condition or an argument of a call depends on a quotient or remainder, directly or through
/// locals.
fn selects(function: &Function, body: &Block) -> bool {
    let mut derived = BTreeSet::new();
    let depends = |derived: &BTreeSet<LocalId>, id: ExprId| {
        let of = function.local(id);
        is_division(&function.exprs[id].kind) || of.is_some_and(|local| derived.contains(&local))
    };
    loop {
        let before = derived.len();
        for_each_stmt(body, &mut |stmt| {
            let mut found = false;
            for_each_expr_of_stmt(function, &stmt.kind, &mut |id| found |= depends(&derived, id));
            if found {
                derived.extend(stmt.kind.assigned());
            }
        });
        if derived.len() == before {
            break;
        }
    }
    let mut selects = false;
    for_each_stmt(body, &mut |stmt| {
        let all = matches!(stmt.kind, StmtKind::If { .. } | StmtKind::Call { .. });
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| match function.class(id) {
            Class::Address { by, .. } => for_each_expr(function, by, &mut |part| selects |= depends(&derived, part)),
            Class::Arith(_) | Class::Leaf(_) | Class::Load(_) => selects |= all && depends(&derived, id),
        });
    });
    selects
}

/// `true` if a function other than the kernel reads its position along `x`.
fn others_ask(module: &Module) -> bool {
    let mut functions = module.functions.iter().filter(|&(id, _)| Some(id) != module.kernel);
    functions.any(|(_, function)| asks_for_place(function, &function.body))
}

/// `true` if code reads `threadIdx.x` or `blockIdx.x`, except to compute an index from the value of a part's first
/// thread.
fn asks_for_place(function: &Function, body: &Block) -> bool {
    use SpecialRegister::{BlockIdx, OfRow, ThreadIdx};
    let mut own = Vec::new();
    for_each_expr_of_block(function, body, &mut |id| {
        if let ExprKind::Binary(BinaryOp::Add, a, b) = function.exprs[id].kind
            && matches!(function.exprs[a].kind, ExprKind::Special(OfRow(_)))
            && let ExprKind::Convert(thread) = function.exprs[b].kind
        {
            own.push(thread);
        }
    });
    let mut asks = false;
    for_each_expr_of_block(function, body, &mut |id| {
        let is_place = matches!(function.exprs[id].kind, ExprKind::Special(ThreadIdx(0) | BlockIdx(0)));
        asks |= is_place && !own.contains(&id);
    });
    asks
}

/// Locals that a body assigns once, at any depth.
fn once(body: &[Stmt]) -> Vec<LocalId> {
    let mut counts: BTreeMap<LocalId, u32> = BTreeMap::new();
    for_each_stmt(body, &mut |stmt| {
        stmt.kind.assigned().into_iter().for_each(|local| *counts.entry(local).or_default() += 1);
    });
    counts.into_iter().filter_map(|(local, count)| (count == 1).then_some(local)).collect()
}

struct Rewrite<'a> {
    function: &'a mut Function,
    fixed: Rematerializable,
    /// Locals that are assigned once.
    once: Vec<LocalId>,
    /// Locals whose value at the current position is the index, a quotient or a remainder.
    parts: BTreeMap<LocalId, Dividend>,
    /// The global index of the block's first thread, once an index is found.
    first: Option<ExprId>,
    /// The kernel multiplies `blockIdx.x` with different factors.
    unlike: bool,
    divisions: Vec<Division>,
}

impl Rewrite<'_> {
    fn block(&mut self, block: &[Stmt]) -> Block {
        let mut done = Block::new();
        for stmt in block {
            let kind = match &stmt.kind {
                StmtKind::Assign(local, value) => {
                    let part = self.dividend(*value).filter(|_| legal!("div_mod.one-value", self.once.contains(local)));
                    let value = self.expr(*value);
                    if let Some(part) = part {
                        self.parts.insert(*local, part);
                    }
                    StmtKind::Assign(*local, value)
                }
                StmtKind::If { cond, then, otherwise } => {
                    let (cond, before) = (self.expr(*cond), self.parts.clone());
                    let then = self.block(then);
                    self.parts.clone_from(&before);
                    let otherwise = self.block(otherwise);
                    self.parts = before;
                    StmtKind::If { cond, then, otherwise }
                }
                StmtKind::Loop { body, step } => {
                    let before = self.parts.clone();
                    let body = self.block(body);
                    self.parts.clone_from(&before);
                    let step = self.block(step);
                    self.parts = before;
                    StmtKind::Loop { body, step }
                }
                StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => stmt.kind.clone().map_exprs(&mut |id| self.expr(id)),
            };
            done.push(Stmt { kind, span: stmt.span });
        }
        done
    }

    /// A copy of an expression for a part of a row.
    fn expr(&mut self, id: ExprId) -> ExprId {
        let (kind, ty) = (self.function.exprs[id].kind.clone(), self.function.exprs[id].ty);
        if self.is_index(id) {
            return self.grows(0, id);
        }
        if let ExprKind::Binary(op, ..) = kind
            && let Some(of) = self.division(id)
        {
            let divides = matches!(op, BinaryOp::FloorDiv | BinaryOp::DivNonneg);
            let is_one = matches!(self.divisions[of].dividend, Dividend::Quotient(_));
            return match (divides, is_one) {
                (true, _) => self.register(Division::quotient(of), id),
                (false, true) => self.register(Division::remainder(of), id),
                (false, false) => self.grows(Division::remainder(of), id),
            };
        }
        let kind = kind.map_operands(&mut |operand| self.expr(operand));
        self.push(kind, ty, id)
    }

    fn push(&mut self, kind: ExprKind, ty: Type, at: ExprId) -> ExprId {
        self.function.edit(self.function.exprs[at].span).expr(kind, ty)
    }

    fn register(&mut self, number: usize, at: ExprId) -> ExprId {
        self.push(ExprKind::Special(SpecialRegister::OfRow(number as u8)), Type::I64, at)
    }

    /// A value that is register `number` for the part's first thread, and one more for each next thread.
    fn grows(&mut self, number: usize, at: ExprId) -> ExprId {
        let first = self.register(number, at);
        let thread = self.push(ExprKind::Special(SpecialRegister::ThreadIdx(0)), Type::I32, at);
        let thread = self.push(ExprKind::Convert(thread), Type::I64, at);
        self.push(ExprKind::Binary(BinaryOp::Add, first, thread), Type::I64, at)
    }

    /// Classifies a value as the index, a quotient or a remainder.
    fn dividend(&mut self, id: ExprId) -> Option<Dividend> {
        if self.is_index(id) {
            return Some(Dividend::Index);
        }
        if let Some(local) = self.function.local(id) {
            return self.parts.get(&local).copied();
        }
        let ExprKind::Binary(op, ..) = self.function.exprs[id].kind else { return None };
        let of = self.division(id)?;
        let is_one = matches!(self.divisions[of].dividend, Dividend::Quotient(_));
        if matches!(op, BinaryOp::FloorDiv | BinaryOp::DivNonneg) {
            return Some(Dividend::Quotient(of));
        }
        (!is_one).then_some(Dividend::Remainder(of))
    }

    /// The number of the division that an expression is. Adds it to the list if it is new.
    fn division(&mut self, id: ExprId) -> Option<usize> {
        let Expr { kind, ty, .. } = self.function.exprs[id].clone();
        let ExprKind::Binary(_, dividend, by) = kind else { return None };
        if !is_division(&kind) || ty != Type::I64 {
            return None;
        }
        let dividend = self.dividend(dividend)?;
        let by = self.of_launch(by)?;
        let known =
            self.divisions.iter().position(|known| known.dividend == dividend && same(self.function, known.by, by));
        if known.is_some() || self.divisions.len() == MAX_DIVISIONS {
            return known;
        }
        self.divisions.push(Division { dividend, by });
        Some(self.divisions.len() - 1)
    }

    /// A copy of an expression that is uniform in the launch, with locals replaced by their values. `None` if it is not
    /// uniform.
    fn of_launch(&mut self, id: ExprId) -> Option<ExprId> {
        let id = self.named(id);
        let is_of_launch = match self.function.class(id) {
            Class::Leaf(Leaf::Const(_)) => true,
            Class::Leaf(Leaf::Local(local)) => self.function.params.contains(&local),
            Class::Leaf(Leaf::Special(register)) => register.is_of_launch(),
            Class::Arith(_) => true,
            Class::Leaf(Leaf::Base(_)) | Class::Address { .. } | Class::Load(_) => false,
        };
        if !is_of_launch {
            return None;
        }
        let Expr { kind, ty, .. } = self.function.exprs[id].clone();
        let mut all = true;
        let kind = kind.map_operands(&mut |operand| {
            self.of_launch(operand).unwrap_or_else(|| {
                all = false;
                operand
            })
        });
        all.then(|| self.push(kind, ty, id))
    }

    /// The value of a rematerializable local; other expressions as they are.
    fn named(&self, id: ExprId) -> ExprId {
        self.fixed.resolve(self.function, id)
    }

    /// `true` if a value is the thread's global index.
    fn is_index(&mut self, id: ExprId) -> bool {
        let id = self.named(id);
        let Expr { kind, ty, .. } = self.function.exprs[id].clone();
        let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b) = kind else { return false };
        if ty != Type::I64 {
            return false;
        }
        let thread = Some(SpecialRegister::ThreadIdx(0));
        let first = match (self.converted(a), self.converted(b)) {
            (_, of) if of == thread => a,
            (of, _) if of == thread => b,
            (_, _) => return false,
        };
        let Some(factor) = self.factor(first) else { return false };
        match self.first {
            None => self.first = Some(self.first_of_block(factor, id)),
            Some(first) => {
                let ExprKind::Binary(_, _, known) = self.function.exprs[first].kind else { return false };
                self.unlike |= !same(self.function, known, factor);
            }
        }
        true
    }

    /// `blockIdx.x * factor`, in 64 bits.
    fn first_of_block(&mut self, factor: ExprId, at: ExprId) -> ExprId {
        let block = self.push(ExprKind::Special(SpecialRegister::BlockIdx(0)), Type::I32, at);
        let block = self.push(ExprKind::Convert(block), Type::I64, at);
        self.push(ExprKind::Binary(BinaryOp::Mul, block, factor), Type::I64, at)
    }

    /// The special register that a value is, widened to 64 bits.
    fn converted(&self, id: ExprId) -> Option<SpecialRegister> {
        let id = self.named(id);
        let ExprKind::Convert(from) = self.function.exprs[id].kind else { return None };
        if self.function.exprs[id].ty != Type::I64 || self.function.exprs[from].ty != Type::I32 {
            return None;
        }
        if let ExprKind::Special(register) = self.function.exprs[self.named(from)].kind { Some(register) } else { None }
    }

    /// A copy of the factor of `blockIdx.x`, if a value is such a product.
    fn factor(&mut self, id: ExprId) -> Option<ExprId> {
        let id = self.named(id);
        let ExprKind::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b) = self.function.exprs[id].kind else {
            return None;
        };
        let block = Some(SpecialRegister::BlockIdx(0));
        let factor = match (self.converted(a), self.converted(b)) {
            (of, _) if of == block => b,
            (_, of) if of == block => a,
            (_, _) => return None,
        };
        let is_extent = self.converted(factor) == Some(SpecialRegister::BlockDim(0));
        (is_extent || self.function.int(factor).is_some()).then(|| self.of_launch(factor)).flatten()
    }
}
