//! Finds the array arguments that a kernel only accumulates into ([`weft_artifact::Access::accumulates`]).

use std::collections::BTreeMap;

use weft_artifact::Scalar;

use super::{Params, Summary, map_through, origin, origins, pointed_to};
use crate::ir::{
    Accumulation, Class, Function, Memory, Module, Op, Scope, StmtKind, Type, for_each_expr_of_block, for_each_stmt,
};

/// The indices of the kernel's parameters that point to such arrays.
pub(super) fn params(module: &Module, kernel: &Function, summaries: &[Summary]) -> Params {
    let origins = origins(kernel, summaries);
    // By parameter: the kind of accumulation.
    let mut found: BTreeMap<usize, (Accumulation, Scalar)> = BTreeMap::new();
    let mut others = Params::new();
    for_each_expr_of_block(kernel, &kernel.body, &mut |id| {
        if let Class::Load(pointer) = kernel.class(id) {
            others.extend(origin(kernel, &origins, pointer));
        }
    });
    for_each_stmt(&kernel.body, &mut |stmt| match &stmt.kind {
        StmtKind::Store { pointer, .. } => others.extend(origin(kernel, &origins, *pointer)),
        StmtKind::Op { op: Op::Atomic { op, order, scope }, args, results } => {
            let pointer = args.first().map(|&pointer| (origin(kernel, &origins, pointer), kernel.exprs[pointer].ty));
            let of = match pointer {
                Some((_, Type::Ptr(element, _))) => Accumulation::of(*op, element).map(|kind| (kind, element)),
                Some((_, Type::Scalar(_))) | None => None,
            };
            // The host may read the results of system-scope operations while the kernel runs.
            let is_unseen = match scope {
                Scope::Block | Scope::Device => true,
                Scope::System => false,
            };
            let of = of.filter(|_| results.is_empty() && is_unseen && !order.acquires() && !order.releases());
            for param in pointed_to(kernel, &origins, args) {
                if of.is_none_or(|of| *found.entry(param).or_insert(of) != of) {
                    others.insert(param);
                }
            }
        }
        StmtKind::Op { op, args, .. } => {
            if op.row().memory == Memory::All {
                others.extend(0..kernel.params.len());
            }
            others.extend(pointed_to(kernel, &origins, args));
        }
        StmtKind::Call { func, args, .. } => {
            let callee = &summaries[func.index()];
            others.extend(map_through(kernel, &origins, args, &callee.reads));
            others.extend(map_through(kernel, &origins, args, &callee.writes));
        }
        StmtKind::Assign(..)
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => {}
    });
    // A reproducible kernel must not change the order of floating-point sums.
    let may = |(_, element): &(Accumulation, Scalar)| !(module.reproducible && element.is_float());
    found.into_iter().filter(|(param, of)| may(of) && !others.contains(param)).map(|(param, _)| param).collect()
}
