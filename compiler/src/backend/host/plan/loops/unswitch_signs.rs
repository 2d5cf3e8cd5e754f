//! Sign unswitching of loops that `passes::split_signs` versioned: one version for counters that are never negative,
//! one for all. Where the counter starts at the sum of a uniform value and a thread's number, the branch tests the
//! uniform value only:
//!
//! ```text
//! $c = int64($t) + $lane                 if int64($t) >= 0 { $c = int64($t) + $lane; loop { … } }
//! if $c >= 0 { loop { … } }              else { $c = int64($t) + $lane; loop { … } }
//! else { loop { … } }
//! ```
//!
//! Legal because the first version is correct for counters that start at or above zero, which the sum does if the
//! uniform value does; the second version is correct for any counter. The branch is then uniform, and each version has
//! a counter of its own, so both can be interchanged with the thread loop.

use crate::{
    analysis::{Rematerializable, for_each_mention, for_each_read},
    backend::host::plan::analysis::{
        block_uniformity,
        strides::{Form, Forms},
    },
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Leaf, LocalId,
        SpecialRegister, Stmt, StmtKind, Type, for_each_stmt,
    },
};

/// Replaces varying sign tests of versioned loops by uniform ones.
pub(crate) fn part(function: &mut Function, body: &mut Block) {
    let mut any = false;
    for_each_stmt(body, &mut |stmt| any |= asks(function, stmt).is_some());
    if !any {
        return;
    }
    let fixed = Rematerializable::of(function, body);
    let alike = block_uniformity::alike(function, body);
    split_list(function, (&fixed, &alike), body);
}

/// The counter whose sign a branch between two loops tests.
fn asks(function: &Function, stmt: &Stmt) -> Option<LocalId> {
    let StmtKind::If { cond, then, otherwise } = &stmt.kind else { return None };
    let is_loop = |arm: &[Stmt]| matches!(arm, [Stmt { kind: StmtKind::Loop { .. }, .. }]);
    let ExprKind::Compare(CompareOp::Ge, counter, zero) = function.exprs[*cond].kind else { return None };
    let is_sign = function.int(zero) == Some(0) && function.exprs[counter].ty == Type::I64;
    (is_sign && is_loop(then) && is_loop(otherwise)).then(|| function.local(counter)).flatten()
}

fn split_list(function: &mut Function, known: (&Rematerializable, &[bool]), list: &mut Block) {
    let mut at = 0;
    while at < list.len() {
        for inner in list[at].kind.blocks_mut().into_iter().flatten() {
            split_list(function, known, inner);
        }
        if let Some(counter) = asks(function, &list[at])
            && let Some(init) = first_value(function, &list[..at], counter)
            && let StmtKind::Assign(_, first) = list[init].kind
            && let Some(shared) = shared_part(function, known, first)
        {
            let assign = list.remove(init);
            at -= 1;
            let copy = function.copy_stmt(&assign);
            let span = list[at].span;
            let value = function.copy_expr(shared);
            let zero = function.exprs.push(Expr { kind: ExprKind::Const(Const::Int(0)), ty: Type::I64, span });
            let asked = ExprKind::Compare(CompareOp::Ge, value, zero);
            let asked = function.exprs.push(Expr { kind: asked, ty: Type::BOOL, span });
            if let StmtKind::If { cond, then, otherwise } = &mut list[at].kind {
                *cond = asked;
                then.insert(0, copy);
                otherwise.insert(0, assign);
            }
        }
        at += 1;
    }
}

/// The index of the assignment of a counter's first value. `None` if a statement before the loops reads or assigns the
/// counter, or assigns a local that the first value reads.
fn first_value(function: &Function, before: &[Stmt], counter: LocalId) -> Option<usize> {
    let init = before.iter().rposition(|stmt| matches!(stmt.kind, StmtKind::Assign(to, _) if to == counter))?;
    let StmtKind::Assign(_, first) = before[init].kind else { return None };
    let mut parts = Vec::new();
    for_each_read(function, first, &mut |local| parts.push(local));
    let mut stays = !parts.contains(&counter);
    let between = &before[init + 1..];
    for_each_mention(function, between, &mut |local| stays &= local != counter);
    for_each_stmt(between, &mut |stmt| stays &= !stmt.kind.assigned().iter().any(|local| parts.contains(local)));
    legal!("unswitch_signs.same-first", stays).then_some(init)
}

/// The uniform operand of a sum, if the other operand is never negative and the sum does not wrap.
fn shared_part(function: &Function, (fixed, alike): (&Rematerializable, &[bool]), first: ExprId) -> Option<ExprId> {
    let Class::Arith(Arith::Binary(BinaryOp::Add, a, b)) = function.class(first) else { return None };
    let shared = |local: LocalId| function.params.contains(&local) || alike.get(local.index()) == Some(&true);
    let forms = Forms { function, fixed, shared: &shared, sole: &|_| None, axis: 0 };
    if !legal!("unswitch_signs.no-wrap", forms.is_small(a) && forms.is_small(b)) {
        return None;
    }
    let fits = |shared: ExprId, own: ExprId| {
        // A varying sign would leave a divergent branch.
        forms.form(shared) == Form::Same
            && forms.form(own) == Form::Step
            && legal!("unswitch_signs.nonneg", is_nonneg(function, fixed, own))
    };
    if fits(a, b) {
        Some(a)
    } else if fits(b, a) {
        Some(b)
    } else {
        None
    }
}

/// Whether a value with unit stride is `threadIdx`, or cannot be negative.
fn is_nonneg(function: &Function, fixed: &Rematerializable, id: ExprId) -> bool {
    match function.class(id) {
        Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(_))) => true,
        Class::Leaf(Leaf::Local(local)) => {
            function.locals[local].nonneg || fixed.value(local).is_some_and(|value| is_nonneg(function, fixed, value))
        }
        Class::Arith(Arith::Convert(inner)) => {
            function.exprs[inner].ty == Type::I32 && is_nonneg(function, fixed, inner)
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
    }
}
