//! Index-set splitting by one bit: threads that access the element whose index differs in one bit, `a[i ^ j]`, as in a
//! bitonic sort.
//!
//! ```text
//! for x in 0..row:                          for each run of threads with the same bit j of i:
//!     p = i ^ j                                 if the bit is clear:
//!     if p > i: swap(a[i], a[p])                    for x in run: swap(a[i], a[i + j])
//!                                               else:
//!                                                   nothing                  # p > i is false
//! ```
//!
//! `i ^ j` does not grow by one from thread to thread, so LLVM would gather. But if `j` is a power of two and uniform
//! along the row, the row consists of runs of up to `j` threads in which this bit of `i` is the same: `i ^ j` is
//! `i + j` where the bit is clear, and `i - j` where it is set. The body gets one copy for each value of the bit. The
//! outcome of `i ^ j > i` is known in each copy, so the copy for threads whose partners do the work may be empty.
//!
//! Legal for bodies without loops and operations (such as prints and atomics). The emitted code tests for each row that
//! `j` is a power of two and that no value wraps. Short runs have loops of a constant length, if the row consists of
//! whole pairs of runs. Otherwise the row runs the original body.
//!
//! Pays if `i ^ j` is part of an address.

use crate::{
    analysis::any_expr,
    backend::host::plan::{
        analysis::strides::Form,
        plan_ir::{Guard, Piece, Range, Segment, Split, SplitBy, guards::Peeler},
    },
    ir::{
        BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, SharedId, Stmt, StmtKind,
        Type, UnaryOp, for_each_expr, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Expressions of the largest body that is duplicated.
const MAX_EXPRS: usize = 500;

/// Gives a segment its copies for both values of the bit, if it accesses such elements. Its guards are moved already.
/// Addresses of `cells`, the arrays that warp shuffles go through, do not count.
pub(crate) fn find(peeler: &mut Peeler<'_>, cells: &dyn Fn(SharedId) -> bool, segment: &mut Segment) {
    let (mut exprs, mut simple, mut pairs, mut shuffled) = (0, true, Vec::new(), Vec::new());
    for_each_stmt(&segment.body, &mut |stmt| {
        simple &= legal!("xor_partner.no-operation", !matches!(stmt.kind, StmtKind::Op { .. }));
        // Both copies of a loop would be compiled, for an address that is computed in each iteration.
        simple &= !matches!(stmt.kind, StmtKind::Loop { .. });
        for_each_expr_of_stmt(peeler.function, &stmt.kind, &mut |id| {
            exprs += 1;
            if let ExprKind::Binary(BinaryOp::Xor, a, b) = peeler.function.exprs[id].kind {
                pairs.push((id, a, b));
            }
            if let Class::Address { base, by, .. } = peeler.function.class(id)
                && any_expr(peeler.function, base, &|kind| matches!(*kind, ExprKind::SharedBase(of) if cells(of)))
            {
                for_each_expr(peeler.function, by, &mut |inner| shuffled.push(inner));
            }
        });
    });
    pairs.retain(|(id, ..)| !shuffled.contains(id));
    if !simple || exprs > MAX_EXPRS {
        return;
    }
    let found = pairs.into_iter().find_map(|(id, a, b)| {
        let wide = peeler.function.exprs[id].ty == Type::I64;
        match (form(peeler, a), form(peeler, b)) {
            (Form::Step, Form::Same) if wide => Some((a, b)),
            (Form::Same, Form::Step) if wide => Some((b, a)),
            _ => None,
        }
    });
    let Some((index, bits)) = found else { return };
    let named = named(peeler, segment, (index, bits));
    if !is_address(peeler, segment, (index, bits), &named) {
        return;
    }
    let mut copy = |upper: bool| {
        let mut copy = Copy { peeler, pair: (index, bits), named: &named, upper };
        let body = copy.block(&segment.body);
        let mut part = Segment { body, on_return: segment.on_return.clone(), ..Segment::default() };
        peeler.peel(&mut part);
        Piece { guard: part.guard.unwrap_or_default(), body: part.body }
    };
    let pieces = vec![copy(false), copy(true)];
    let (value, bound) = (peeler.function.copy_expr(index), peeler.function.copy_expr(bits));
    let range = Range { value, op: CompareOp::Ge, bound, times: 1, plus: 0, wraps: false };
    let mut of = Guard { ranges: vec![range], ..Guard::default() };
    peeler.complete(&mut of);
    segment.split = Some(Split { by: SplitBy::Bit, of, pieces });
}

/// How a value changes from thread to thread.
fn form(peeler: &Peeler<'_>, id: ExprId) -> Form {
    peeler.with_forms(|forms| forms.form(id))
}

/// Locals of a segment that equal `i ^ j` wherever they are read.
fn named(peeler: &Peeler<'_>, segment: &Segment, pair: (ExprId, ExprId)) -> Vec<LocalId> {
    let (mut named, mut others) = (Vec::new(), segment.load.clone());
    others.extend(&segment.recompute);
    for_each_stmt(&segment.body, &mut |stmt| {
        if let StmtKind::Assign(local, value) = stmt.kind
            && is_pair(peeler, value, pair)
            && !named.contains(&local)
        {
            named.push(local);
        } else {
            others.extend(stmt.kind.assigned());
        }
    });
    named.retain(|local| legal!("xor_partner.only-partner", !others.contains(local)));
    named
}

/// `true` if an expression is the exclusive or of these two.
fn is_pair(peeler: &Peeler<'_>, id: ExprId, (index, bits): (ExprId, ExprId)) -> bool {
    let ExprKind::Binary(BinaryOp::Xor, a, b) = peeler.function.exprs[id].kind else { return false };
    [(a, b), (b, a)].iter().any(|&(a, b)| is_same(peeler, a, index) && is_same(peeler, b, bits))
}

/// `true` if two expressions are the same computation of values that do not change within a thread.
fn is_same(peeler: &Peeler<'_>, a: ExprId, b: ExprId) -> bool {
    let function: &Function = peeler.function;
    let (a, b) = (peeler.fixed.resolve(function, a), peeler.fixed.resolve(function, b));
    if a == b {
        return true;
    }
    let (one, other) = (&function.exprs[a], &function.exprs[b]);
    if one.ty != other.ty {
        return false;
    }
    match (&one.kind, &other.kind) {
        (ExprKind::Const(a), ExprKind::Const(b)) => a == b,
        (ExprKind::Special(a), ExprKind::Special(b)) => a == b,
        // Uniform locals are assigned between segments only. Varying ones in a pair are rematerializable; a kernel that
        // repeats them instead of naming the partner has not been measured.
        (ExprKind::Local(a), ExprKind::Local(b)) => a == b && !peeler.uniformity.local_varies(*a),
        (ExprKind::Convert(a), ExprKind::Convert(b)) => is_same(peeler, *a, *b),
        (ExprKind::Binary(op, a, b), ExprKind::Binary(of, c, d)) => {
            op == of && is_same(peeler, *a, *c) && is_same(peeler, *b, *d)
        }
        _ => false,
    }
}

/// `true` if `i ^ j` is part of an address.
fn is_address(peeler: &Peeler<'_>, segment: &Segment, pair: (ExprId, ExprId), named: &[LocalId]) -> bool {
    let mut found = false;
    for_each_stmt(&segment.body, &mut |stmt| {
        for_each_expr_of_stmt(peeler.function, &stmt.kind, &mut |id| {
            let ExprKind::Offset { index, .. } = peeler.function.exprs[id].kind else { return };
            for_each_expr(peeler.function, index, &mut |part| {
                found |= is_pair(peeler, part, pair);
                found |= peeler.function.local(part).is_some_and(|local| named.contains(&local));
            });
        });
    });
    found
}

/// Makes the copy of a body for one value of the bit.
struct Copy<'a, 'b> {
    peeler: &'a mut Peeler<'b>,
    pair: (ExprId, ExprId),
    named: &'a [LocalId],
    /// The bit is set: the partner is the thread with the lower number.
    upper: bool,
}

impl Copy<'_, '_> {
    fn block(&mut self, block: &[Stmt]) -> Block {
        let mut done = Block::new();
        for stmt in block {
            let kind = match &stmt.kind {
                StmtKind::If { cond, then, otherwise } => {
                    let cond = self.expr(*cond);
                    match self.constant(cond) {
                        Some(true) => {
                            done.extend(self.block(then));
                            continue;
                        }
                        Some(false) => {
                            done.extend(self.block(otherwise));
                            continue;
                        }
                        None => StmtKind::If { cond, then: self.block(then), otherwise: self.block(otherwise) },
                    }
                }
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => stmt.kind.clone().map_exprs(&mut |id| self.expr(id)),
            };
            done.push(Stmt { kind, span: stmt.span });
        }
        done
    }

    /// The value of a Boolean constant.
    fn constant(&self, id: ExprId) -> Option<bool> {
        if let ExprKind::Const(Const::Bool(value)) = self.peeler.function.exprs[id].kind { Some(value) } else { None }
    }

    /// `true` if an expression is `i ^ j`, or a local that equals it.
    fn is_partner(&self, id: ExprId) -> bool {
        is_pair(self.peeler, id, self.pair)
            || self.peeler.function.local(id).is_some_and(|local| self.named.contains(&local))
    }

    fn expr(&mut self, id: ExprId) -> ExprId {
        let Expr { kind, ty, span } = self.peeler.function.exprs[id].clone();
        let is_index = |this: &Self, id: ExprId| is_same(this.peeler, id, this.pair.0);
        let kind = if self.is_partner(id) {
            let (index, bits) = self.pair;
            let function = &mut *self.peeler.function;
            let (index, bits) = (function.copy_expr(index), function.copy_expr(bits));
            ExprKind::Binary(if self.upper { BinaryOp::Sub } else { BinaryOp::Add }, index, bits)
        } else if let ExprKind::Compare(op, a, b) = kind
            && self.is_partner(a)
            && is_index(self, b)
        {
            known(op, !self.upper)
        } else if let ExprKind::Compare(op, a, b) = kind
            && self.is_partner(b)
            && is_index(self, a)
        {
            known(op, self.upper)
        } else {
            let kind = kind.map_operands(&mut |operand| self.expr(operand));
            match self.folded(kind, ty) {
                Ok(id) => return id,
                Err(kind) => kind,
            }
        };
        self.peeler.function.exprs.push(Expr { kind, ty, span })
    }

    /// Folds an operator with constant operands: to an existing expression (`Ok`), or to a kind of expression (`Err`).
    fn folded(&self, kind: ExprKind, ty: Type) -> Result<ExprId, ExprKind> {
        if let ExprKind::Binary(BinaryOp::And, a, b) = kind
            && ty == Type::BOOL
        {
            return match (self.constant(a), self.constant(b)) {
                (Some(true), _) => Ok(b),
                (_, Some(true)) => Ok(a),
                (Some(false), _) | (_, Some(false)) => Err(ExprKind::Const(Const::Bool(false))),
                (None, None) => Err(kind),
            };
        }
        if let ExprKind::Select(cond, yes, no) = kind
            && let Some(holds) = self.constant(cond)
        {
            return Ok(if holds { yes } else { no });
        }
        if let ExprKind::Unary(UnaryOp::Not, a) = kind
            && let Some(holds) = self.constant(a)
        {
            return Err(ExprKind::Const(Const::Bool(!holds)));
        }
        Err(kind)
    }
}

/// The outcome of `a op b`, where `a` is greater than `b`, or less.
fn known(op: CompareOp, greater: bool) -> ExprKind {
    let holds = match op {
        CompareOp::Eq => false,
        CompareOp::Ne => true,
        CompareOp::Lt | CompareOp::Le => !greater,
        CompareOp::Gt | CompareOp::Ge => greater,
    };
    ExprKind::Const(Const::Bool(holds))
}
