//! Short branches that only compute become selections, so that LLVM sees a row of threads that all do the same.
//!
//! LLVM makes some itself, but of `if` and `elif` over one value it makes a `switch`, over which it does not vectorise.

use weft_artifact::Scalar;

use crate::{
    analysis::{Rematerializable, any_expr, for_each_mention, same},
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId, LocalKind,
        Stmt, StmtKind, Type, for_each_expr,
    },
    source::Span,
};

/// The arms of a branch compute at most this much together: anything but reading a local or a constant counts.
const MOST: u32 = 32;

/// Branches inside branches are converted so many times, from the inside out.
const ROUNDS: u32 = 8;

/// Converts what is worth it in a kernel's body.
pub(crate) fn convert(function: &mut Function, body: &mut Block) {
    for _ in 0..ROUNDS {
        let fixed = Rematerializable::of(function, body);
        let mut mentions = vec![0_u32; function.locals.len()];
        for_each_mention(function, body, &mut |local| mentions[local.index()] += 1);
        if !(Convert { function, fixed, mentions }).list(body) {
            return;
        }
    }
}

struct Convert<'a> {
    function: &'a mut Function,
    fixed: Rematerializable,
    /// By the local's index, for those that the body had at first.
    mentions: Vec<u32>,
}

/// An arm with locals of its own for what it assigns.
struct Arm {
    body: Block,
    /// What is assigned, and the local that has its value at the arm's end.
    assigned: Vec<(LocalId, LocalId)>,
}

impl Convert<'_> {
    /// Converts the innermost branches of a list; whether there were some.
    fn list(&mut self, list: &mut Block) -> bool {
        let mut changed = false;
        let mut out = Block::with_capacity(list.len());
        for mut stmt in std::mem::take(list) {
            let mut inside = false;
            if let StmtKind::If { then: first, otherwise: second, .. } | StmtKind::Loop { body: first, step: second } =
                &mut stmt.kind
            {
                inside = self.list(first) | self.list(second);
            }
            changed |= inside;
            let short = match &stmt.kind {
                StmtKind::If { then, otherwise, .. } => !inside && self.is_short(then, otherwise),
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => false,
            };
            if let (true, StmtKind::If { cond, then, otherwise }) = (short, &stmt.kind) {
                self.branch(*cond, then, otherwise, stmt.span, &mut out);
                changed = true;
            } else {
                out.push(stmt);
            }
        }
        *list = out;
        changed
    }

    fn is_short(&self, then: &[Stmt], otherwise: &[Stmt]) -> bool {
        let mut cost = 0_u32;
        let mut pure = !(then.is_empty() && otherwise.is_empty());
        for stmt in then.iter().chain(otherwise) {
            let StmtKind::Assign(local, value) = stmt.kind else { return false };
            cost += 1;
            let local = &self.function.locals[local];
            pure &= matches!(local.ty, Type::Scalar(_)) && !local.counts;
            for_each_expr(self.function, value, &mut |id| match self.function.class(id) {
                Class::Leaf(_) => {}
                Class::Arith(arith) => {
                    cost += 1;
                    pure &= is_cheap(arith);
                }
                Class::Address { .. } | Class::Load(_) => pure = false,
            });
        }
        pure && cost <= MOST
    }

    fn branch(&mut self, cond: ExprId, then: &[Stmt], otherwise: &[Stmt], span: Span, out: &mut Block) {
        let decided = self.function.locals.push(Local::new("cond", LocalKind::Variable, Type::BOOL));
        let mut kept = Vec::new();
        for stmt in then.iter().chain(otherwise) {
            kept.extend(stmt.kind.assigned().into_iter().filter(|&local| {
                self.fixed.value(local).is_some()
                    || self.stays_inside(local, then)
                    || self.stays_inside(local, otherwise)
            }));
        }
        out.push(Stmt { kind: StmtKind::Assign(decided, cond), span });
        let then = self.arm(then, &kept);
        let otherwise = self.arm(otherwise, &kept);
        let mut changed: Vec<LocalId> =
            then.assigned.iter().chain(&otherwise.assigned).map(|&(local, _)| local).collect();
        changed.sort_unstable();
        changed.dedup();
        out.extend(then.body.iter().cloned());
        out.extend(otherwise.body.iter().cloned());
        for local in changed {
            let ty = self.function.locals[local].ty;
            let cond = self.read(decided, span);
            let (yes, no) = (self.end(&then, local, span), self.end(&otherwise, local, span));
            let value = self.function.exprs.push(Expr { kind: ExprKind::Select(cond, yes, no), ty, span });
            out.push(Stmt { kind: StmtKind::Assign(local, value), span });
        }
    }

    /// What a local is at an arm's end. A constant is itself: of `and` and `or` over comparisons bounds are made.
    fn end(&mut self, arm: &Arm, local: LocalId, span: Span) -> ExprId {
        let last = arm.assigned.iter().find(|(of, _)| *of == local).map_or(local, |&(_, at)| at);
        let constant = arm.body.iter().find_map(|stmt| match stmt.kind {
            StmtKind::Assign(to, value) if to == last => match self.function.class(value) {
                Class::Leaf(Leaf::Const(constant)) => Some(constant),
                Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
            },
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => None,
        });
        let ty = self.function.locals[local].ty;
        match constant {
            Some(constant) => self.function.exprs.push(Expr { kind: ExprKind::Const(constant), ty, span }),
            None => self.read(last, span),
        }
    }

    /// Whether an arm assigns a local before it reads it, and nobody else knows of it.
    fn stays_inside(&self, local: LocalId, arm: &[Stmt]) -> bool {
        let Some(&everywhere) = self.mentions.get(local.index()) else { return false };
        let mut inside = 0;
        for_each_mention(self.function, arm, &mut |seen| inside += u32::from(seen == local));
        let first = arm.iter().find(|stmt| {
            let mut seen = false;
            for_each_mention(self.function, std::slice::from_ref(stmt), &mut |at| seen |= at == local);
            seen
        });
        let assigns = first.is_some_and(|stmt| match stmt.kind {
            StmtKind::Assign(to, value) => to == local && !self.reads(value, local),
            StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => false,
        });
        assigns && inside == everywhere
    }

    fn reads(&self, root: ExprId, local: LocalId) -> bool {
        let mut reads = false;
        for_each_expr(self.function, root, &mut |id| reads |= self.function.exprs[id].kind == ExprKind::Local(local));
        reads
    }

    /// An arm's statements, with a new local at each assignment but those to locals that are `kept`.
    fn arm(&mut self, arm: &[Stmt], kept: &[LocalId]) -> Arm {
        let mut body = Block::new();
        let mut now: Vec<(LocalId, LocalId)> = Vec::new();
        for stmt in arm {
            let StmtKind::Assign(local, value) = stmt.kind else { continue };
            let mut reads = Vec::new();
            for_each_expr(self.function, value, &mut |id| {
                if let ExprKind::Local(read) = self.function.exprs[id].kind
                    && let Some(&(_, at)) = now.iter().find(|(of, _)| *of == read)
                {
                    reads.push((id, at));
                }
            });
            // Expressions are trees: these are read by this arm alone.
            for (id, at) in reads {
                self.function.exprs[id].kind = ExprKind::Local(at);
            }
            let to = if kept.contains(&local) {
                local
            } else {
                let new = Local::new(
                    self.function.locals[local].name.clone(),
                    LocalKind::Variable,
                    self.function.locals[local].ty,
                );
                let new = self.function.locals.push(new);
                now.retain(|(of, _)| *of != local);
                now.push((local, new));
                new
            };
            body.push(Stmt { kind: StmtKind::Assign(to, value), span: stmt.span });
        }
        Arm { body, assigned: now }
    }

    fn read(&mut self, local: LocalId, span: Span) -> ExprId {
        let ty = self.function.locals[local].ty;
        self.function.exprs.push(Expr { kind: ExprKind::Local(local), ty, span })
    }
}

/// Whether something is computed in about the time of a branch, whatever its operands are.
fn is_cheap(arith: Arith<'_>) -> bool {
    match arith {
        Arith::Unary(..) | Arith::Compare(..) | Arith::Select(..) | Arith::Convert(_) | Arith::Wrap { .. } => true,
        Arith::Binary(op, ..) => is_cheap_operator(op),
        Arith::Math(..) => false,
    }
}

const fn is_cheap_operator(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::AddExact
        | BinaryOp::SubExact
        | BinaryOp::MulExact
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Min
        | BinaryOp::Max => true,
        BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::DivNonneg
        | BinaryOp::ModNonneg
        | BinaryOp::Pow => false,
    }
}

/// Makes minima and maxima of integers that are written as choices: `w if a < w else a`. Of clamps is known what they do near no
/// border.
pub(crate) fn extrema(function: &mut Function) {
    let ids: Vec<ExprId> = function.exprs.iter().map(|(id, _)| id).collect();
    for id in ids {
        let ExprKind::Select(cond, yes, no) = function.exprs[id].kind else { continue };
        let ExprKind::Compare(op, a, b) = function.exprs[cond].kind else { continue };
        let ty = function.exprs[id].ty;
        let is_int = ty.scalar().is_some_and(Scalar::is_int) && ty != Type::BOOL && function.exprs[a].ty == ty;
        // What is loaded twice may be asked for anew on purpose.
        if !is_int || any_expr(function, cond, &|kind| matches!(kind, ExprKind::Load(..))) {
            continue;
        }
        let (same_order, swapped) =
            (same(function, a, yes) && same(function, b, no), same(function, a, no) && same(function, b, yes));
        let less = match op {
            CompareOp::Lt | CompareOp::Le => true,
            CompareOp::Gt | CompareOp::Ge => false,
            CompareOp::Eq | CompareOp::Ne => continue,
        };
        if same_order || swapped {
            let op = if less == same_order { BinaryOp::Min } else { BinaryOp::Max };
            function.exprs[id].kind = ExprKind::Binary(op, a, b);
        }
    }
}
