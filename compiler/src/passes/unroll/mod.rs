//! Unrolls loops that LLVM leaves as they are: [strided](strided) ones, and ones that count through a [ring](ring) of
//! buffers.

mod front;
mod own;
mod ring;
mod strided;

use std::collections::BTreeSet;

use super::access::{Params, origin, origins_of_kernel};
use crate::{
    analysis::never_written,
    ir::{ExprId, ExprKind, Function, LocalId, Module, SpecialRegister, for_each_expr, for_each_stmt},
};

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    super::access::run(module);
    let constant = Constant::of(module);
    let kernel = module.kernel;
    for (id, function) in module.functions.iter_mut() {
        let constant = constant.as_ref().filter(|_| Some(id) == kernel);
        let values = ring::SoleValues::of(function);
        let mut body = std::mem::take(&mut function.body);
        ring::unroll_in(function, &values, &mut body, constant);
        strided::unroll_in(function, &mut body, constant);
        function.body = body;
    }
}

/// The global memory that no store changes while the kernel runs.
struct Constant {
    /// By local: the parameters that it may point into.
    origins: Vec<Params>,
    /// By parameter: whether it is never written.
    never_written: Vec<bool>,
    /// Locals that are computed from the grid's size.
    of_grid: BTreeSet<LocalId>,
    /// Whether the kernel is an adjoint kernel, whose arrays do not overlap.
    is_adjoint: bool,
}

impl Constant {
    /// `None` if there is no information.
    fn of(module: &Module) -> Option<Self> {
        let (never_written, kernel) = (never_written(module)?, module.kernel()?);
        Some(Self {
            origins: origins_of_kernel(module, kernel),
            never_written,
            of_grid: of_grid(kernel),
            is_adjoint: module.is_adjoint,
        })
    }

    /// The parameters that an address may point into.
    fn params_of(&self, function: &Function, pointer: ExprId) -> Params {
        origin(function, &self.origins, pointer)
    }

    fn holds(&self, function: &Function, pointer: ExprId) -> bool {
        let from = self.params_of(function, pointer);
        !from.is_empty() && from.iter().all(|param| self.never_written.get(*param) == Some(&true))
    }
}

/// The locals that are computed from the grid's size, directly or through others.
fn of_grid(function: &Function) -> BTreeSet<LocalId> {
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for_each_stmt(&function.body, &mut |stmt| {
            if stmt.kind.exprs().into_iter().any(|root| mentions_grid(function, root, &found)) {
                found.extend(stmt.kind.assigned());
            }
        });
        if found.len() == before {
            return found;
        }
    }
}

/// Whether a value is computed from the grid's size, or from such locals.
fn mentions_grid(function: &Function, root: ExprId, of_grid: &BTreeSet<LocalId>) -> bool {
    let mut mentions = false;
    for_each_expr(function, root, &mut |id| {
        mentions |= matches!(function.exprs[id].kind, ExprKind::Special(SpecialRegister::GridDim(_)))
            || function.local(id).is_some_and(|local| of_grid.contains(&local));
    });
    mentions
}
