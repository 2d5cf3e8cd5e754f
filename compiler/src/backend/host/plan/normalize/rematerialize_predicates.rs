//! Predicate rematerialization: replaces a boolean local by its value in the conditions of the branches that test it.
//!
//! ```text
//! $known = $i > $step           $known = $i > $step
//! barrier                       barrier
//! if $known { … }               if $i > $step { … }
//! ```
//!
//! Legal if no later statement of the list assigns the local, or one that its value reads. The value must not load, and
//! must not compute an address or call a math function. Locals that are rematerializable anyway are left alone.
//!
//! Profitable because a predicate that is live across a barrier has a context array, from which each region that tests
//! it loads a byte, while a comparison can become a bound of the thread loop. An assignment whose local no expression
//! reads any more is removed.

use crate::{
    analysis::Rematerializable,
    ir::{Arith, Block, Class, ExprId, Function, Leaf, LocalId, Stmt, StmtKind, Type, for_each_expr, for_each_stmt},
};

/// Most expressions of a value that is computed again.
const MAX_EXPRS: usize = 64;

/// A predicate and its value.
struct Named {
    local: LocalId,
    value: ExprId,
}

/// Rematerializes the predicates of a body.
pub(crate) fn substitute(function: &mut Function, body: &mut Block) {
    let fixed = Rematerializable::of(function, body);
    let mut search = Search { function, fixed: &fixed, asked: Vec::new() };
    search.list(body);
    let Search { mut asked, .. } = search;
    for_each_stmt(body, &mut |stmt| {
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| asked.retain(|local| function.local(id) != Some(*local)));
        }
    });
    // The remaining branch may then be all of its region, so that its condition can become a bound.
    forget(body, &asked);
}

fn forget(list: &mut Block, locals: &[LocalId]) {
    list.retain(|stmt| stmt.kind.assigned().is_empty() || !stmt.kind.assigned().iter().all(|to| locals.contains(to)));
    for stmt in list {
        if let StmtKind::If { then: first, otherwise: second, .. } | StmtKind::Loop { body: first, step: second } =
            &mut stmt.kind
        {
            forget(first, locals);
            forget(second, locals);
        }
    }
}

struct Search<'a> {
    function: &'a mut Function,
    fixed: &'a Rematerializable,
    /// The predicates that were substituted.
    asked: Vec<LocalId>,
}

impl Search<'_> {
    fn list(&mut self, list: &mut Block) {
        for index in 0..list.len() {
            let (done, rest) = list.split_at_mut(index + 1);
            let Some(stmt) = done.last_mut() else { return };
            match &mut stmt.kind {
                StmtKind::If { then: first, otherwise: second, .. } | StmtKind::Loop { body: first, step: second } => {
                    self.list(first);
                    self.list(second);
                }
                StmtKind::Assign(local, value) => {
                    let named = Named { local: *local, value: *value };
                    if self.may_ask_again(&named, rest) {
                        self.ask(&named, rest);
                        self.asked.push(named.local);
                    }
                }
                StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
        }
    }

    /// Whether the value of a predicate is the same in all later statements of its list, and cheap to compute.
    fn may_ask_again(&self, named: &Named, rest: &[Stmt]) -> bool {
        let is_condition = self.function.locals[named.local].ty == Type::BOOL;
        if !is_condition || self.fixed.value(named.local).is_some() {
            return false;
        }
        let mut changes = Vec::new();
        for_each_stmt(rest, &mut |stmt| changes.extend(stmt.kind.assigned()));
        if !legal!("rematerialize_predicates.one-value", !changes.contains(&named.local)) {
            return false;
        }
        let (mut size, mut same) = (0, true);
        for_each_expr(self.function, named.value, &mut |id| {
            size += 1;
            same &= match self.function.class(id) {
                Class::Leaf(Leaf::Local(local)) => {
                    legal!("rematerialize_predicates.same-operands", !changes.contains(&local))
                }
                Class::Leaf(_) => true,
                Class::Arith(Arith::Math(..)) => false,
                Class::Address { .. } | Class::Load(_) => legal!("rematerialize_predicates.no-load", false),
                Class::Arith(_) => true,
            };
        });
        same && size <= MAX_EXPRS
    }

    fn ask(&mut self, named: &Named, list: &mut [Stmt]) {
        for stmt in list {
            match &mut stmt.kind {
                StmtKind::If { cond, then, otherwise } => {
                    *cond = self.with_value(*cond, named);
                    self.ask(named, then);
                    self.ask(named, otherwise);
                }
                StmtKind::Loop { body, step } => {
                    self.ask(named, body);
                    self.ask(named, step);
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

    /// Substitutes the predicate's value in a condition.
    fn with_value(&mut self, id: ExprId, named: &Named) -> ExprId {
        if self.function.local(id) == Some(named.local) {
            return self.function.copy_expr(named.value);
        }
        let kind = self.function.exprs[id].kind.clone().map_operands(&mut |operand| self.with_value(operand, named));
        self.function.exprs[id].kind = kind;
        id
    }
}
