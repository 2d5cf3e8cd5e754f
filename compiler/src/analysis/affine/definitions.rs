//! How locals get their values.

use crate::ir::{Arith, BinaryOp, Class, ExprId, Function, StmtKind, for_each_stmt};

/// The definition of a local.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// It has a single assignment.
    Sole(ExprId),
    /// It is an induction variable with this start value, and a uniform step.
    Counter(ExprId),
    /// Any other, such as a parameter or the result of an operation.
    Any,
}

/// By the local's index: its definition. `is_uniform`: whether neighbors compute the same value.
pub(crate) fn definitions(function: &Function, is_uniform: &dyn Fn(ExprId) -> bool) -> Vec<Definition> {
    let mut values: Vec<Vec<Option<ExprId>>> = vec![Vec::new(); function.locals.len()];
    for param in &function.params {
        values[param.index()].push(None);
    }
    for_each_stmt(&function.body, &mut |stmt| {
        for local in stmt.kind.assigned() {
            let value = if let StmtKind::Assign(_, value) = stmt.kind { Some(value) } else { None };
            values[local.index()].push(value);
        }
    });
    let steps = |local: usize, value: ExprId| {
        let is_own = |id| function.local(id).is_some_and(|own| own.index() == local);
        match function.class(value) {
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => {
                is_own(a) && is_uniform(b) || is_own(b) && is_uniform(a)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        }
    };
    let definition = |(local, values): (usize, Vec<Option<ExprId>>)| match values[..] {
        [Some(value)] => Definition::Sole(value),
        [Some(from), Some(next)] if steps(local, next) => Definition::Counter(from),
        _ => Definition::Any,
    };
    values.into_iter().enumerate().map(definition).collect()
}
