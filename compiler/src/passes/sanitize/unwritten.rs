//! Tracks values loaded from unwritten memory to their uses.
//!
//! A use is a branch condition, an address, a stored value, or an operand of an operation or a call. A local that may
//! hold a loaded value, or one computed from it, has a shadow local with the number of the read of unwritten bytes, 0
//! if there is none. A plain copy from memory to memory is not a use: the back end handles such locals itself.

use std::collections::HashMap;

use crate::{
    analysis::{ValueInputs, copied},
    ir::{
        Block, Check, CompareOp, Const, Expr, ExprId, ExprKind, Function, Local, LocalId, LocalKind, Op, Stmt,
        StmtKind, Type, for_each_stmt,
    },
    source::Span,
};

/// Instruments the uses in a function.
pub(super) fn follow(function: &mut Function) {
    let numbers = followed(function);
    if numbers.is_empty() {
        return;
    }
    let body = std::mem::take(&mut function.body);
    let mut tracker = UnwrittenTracker { function, numbers };
    let span = tracker.function.span;
    let mut out = Block::with_capacity(body.len() + tracker.numbers.len());
    let mut numbers: Vec<LocalId> = tracker.numbers.values().copied().collect();
    numbers.sort_by_key(|number| number.index());
    for number in numbers {
        tracker.assign_zero(number, span, &mut out);
    }
    tracker.block(body, &mut out);
    tracker.function.body = out;
}

/// The locals that may hold unwritten values, each with its shadow local.
fn followed(function: &mut Function) -> HashMap<LocalId, LocalId> {
    let n = function.locals.len();
    let mut is_copied = vec![false; n];
    for local in copied(function).into_iter().flatten() {
        is_copied[local.index()] = true;
    }
    let mut assigned: Vec<(LocalId, ValueInputs)> = Vec::new();
    for_each_stmt(&function.body, &mut |stmt| {
        if let StmtKind::Assign(local, value) = stmt.kind
            && !is_copied[local.index()]
        {
            assigned.push((local, ValueInputs::of(function, value)));
        }
    });
    let mut holds = vec![false; n];
    loop {
        let mut changed = false;
        for (local, parts) in &assigned {
            let may = !parts.loads.is_empty() || parts.values.iter().any(|value| holds[value.index()]);
            changed |= may && !holds[local.index()];
            holds[local.index()] |= may;
        }
        if !changed {
            break;
        }
    }
    let all: Vec<LocalId> = function.locals.iter().map(|(id, _)| id).filter(|id| holds[id.index()]).collect();
    let number = |local| (local, function.locals.push(Local::new("unwritten", LocalKind::Temp, Type::I32)));
    all.into_iter().map(number).collect()
}

struct UnwrittenTracker<'a> {
    function: &'a mut Function,
    numbers: HashMap<LocalId, LocalId>,
}

impl UnwrittenTracker<'_> {
    fn block(&mut self, block: Block, out: &mut Block) {
        for stmt in block {
            self.stmt(stmt, out);
        }
    }

    fn stmt(&mut self, mut stmt: Stmt, out: &mut Block) {
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            let block = std::mem::take(inner);
            self.block(block, inner);
        }
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Assign(local, value) => {
                let parts = ValueInputs::of(self.function, *value);
                self.used(&parts.in_addresses, span, out);
                let number = self.numbers.get(local).copied();
                out.push(stmt);
                if let Some(number) = number {
                    self.number(number, &parts, span, out);
                }
                return;
            }
            StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Return(_) => {
                for root in stmt.kind.exprs() {
                    let parts = ValueInputs::of(self.function, root);
                    self.used(&parts.in_addresses, span, out);
                    self.used(&parts.values, span, out);
                }
            }
            StmtKind::Loop { .. } | StmtKind::Break | StmtKind::Continue => {}
        }
        let results: Vec<LocalId> = match &stmt.kind {
            StmtKind::Op { results, .. } | StmtKind::Call { results, .. } => results.clone(),
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => Vec::new(),
        };
        out.push(stmt);
        for number in results.iter().filter_map(|local| self.numbers.get(local).copied()).collect::<Vec<_>>() {
            self.assign_zero(number, span, out);
        }
    }

    /// Emits the reports for uses of locals.
    fn used(&mut self, locals: &[LocalId], span: Span, out: &mut Block) {
        let mut numbers: Vec<LocalId> = locals.iter().filter_map(|local| self.numbers.get(local).copied()).collect();
        numbers.sort_by_key(|number| number.index());
        numbers.dedup();
        for number in numbers {
            let cond = self.is_some(number, span);
            let arg = self.local(number, span);
            let check = StmtKind::Op { op: Op::Check(Check::Used), results: Vec::new(), args: vec![arg] };
            let mut then = vec![Stmt { kind: check, span }];
            // Each unwritten read is reported once.
            self.assign_zero(number, span, &mut then);
            out.push(Stmt { kind: StmtKind::If { cond, then, otherwise: Vec::new() }, span });
        }
    }

    /// The shadow number of a value after its statement: the number of a read in it, or that of one of its locals.
    fn number(&mut self, number: LocalId, parts: &ValueInputs, span: Span, out: &mut Block) {
        let mut of: Vec<LocalId> = parts.values.iter().filter_map(|local| self.numbers.get(local).copied()).collect();
        of.sort_by_key(|number| number.index());
        of.dedup();
        if !parts.loads.is_empty() {
            let now = self.function.locals.push(Local::new("unwritten", LocalKind::Temp, Type::I32));
            let kind = StmtKind::Op { op: Op::Check(Check::Unwritten), results: vec![now], args: Vec::new() };
            out.push(Stmt { kind, span });
            of.push(now);
        }
        let mut value = self.int(0, span);
        for one in of {
            let (cond, one) = (self.is_some(one, span), self.local(one, span));
            value = self.expr(ExprKind::Select(cond, one, value), Type::I32, span);
        }
        out.push(Stmt { kind: StmtKind::Assign(number, value), span });
    }

    fn assign_zero(&mut self, number: LocalId, span: Span, out: &mut Block) {
        let zero = self.int(0, span);
        out.push(Stmt { kind: StmtKind::Assign(number, zero), span });
    }

    fn is_some(&mut self, number: LocalId, span: Span) -> ExprId {
        let (number, zero) = (self.local(number, span), self.int(0, span));
        self.expr(ExprKind::Compare(CompareOp::Ne, number, zero), Type::BOOL, span)
    }

    fn local(&mut self, local: LocalId, span: Span) -> ExprId {
        self.expr(ExprKind::Local(local), Type::I32, span)
    }

    fn int(&mut self, value: i128, span: Span) -> ExprId {
        self.expr(ExprKind::Const(Const::Int(value)), Type::I32, span)
    }

    fn expr(&mut self, kind: ExprKind, ty: Type, span: Span) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span })
    }
}
