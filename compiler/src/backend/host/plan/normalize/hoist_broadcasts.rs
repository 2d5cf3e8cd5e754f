//! Hoisting of broadcasts: loads that give every thread the same value move out of divergent branches.
//!
//! ```text
//! if $d < $r {                          $t = tile[k]
//!     $z = tile[k] - $h                 if $d < $r {
//!     …                                     $z = $t - $h
//! }                                         …
//!                                       }
//! ```
//!
//! Legal for loads at the start of an arm, before any statement that is no assignment, if
//!
//! - no thread writes to the array between the barriers before and after the load
//!   ([`broadcasts_of`]), so that an earlier load gives the same value;
//! - the arm does not assign what the address is computed from;
//! - the address is in bounds if the condition does not hold, too.
//!
//! Profitable because the thread loop then loads the value once: under a condition, a vector of threads needs a gather or
//! a branch for each lane, and LLVM leaves the loop scalar on a CPU without masked vectors. The load is of shared memory,
//! which is in the nearest cache, so it costs little where no thread needs it.

use std::collections::HashSet;

use crate::{
    analysis::Rematerializable,
    backend::host::plan::{
        analysis::{
            barrier_intervals::broadcasts_of,
            candidates::optimistic_uniformity,
            divergence::Uniformity,
            in_bounds::{SpeculativeLoads, loads_at_start, speculative_loads},
            structure::holds_barrier,
        },
        plan_ir::CountMasks,
    },
    ir::{
        Block, Class, ExprId, ExprKind, Function, Leaf, Local, LocalId, LocalKind, Module, Stmt, StmtKind,
        for_each_expr, for_each_stmt,
    },
};

/// Hoists the broadcasts of a kernel's body.
pub(crate) fn hoist(module: &Module, function: &mut Function, body: &mut Block, masks: CountMasks) {
    let mut some = false;
    for_each_stmt(body, &mut |stmt| {
        let StmtKind::If { then, otherwise, .. } = &stmt.kind else { return };
        some |= [then, otherwise].iter().any(|arm| loads_at_start(function, arm));
    });
    if !some || !body.iter().any(holds_barrier) || masks(function, body).count != 0 {
        return;
    }
    let fixed = Rematerializable::of(function, body);
    let broadcasts = broadcasts_of(function, &fixed, body);
    if broadcasts.is_empty() {
        return;
    }
    let uniformity = optimistic_uniformity(function, body);
    let speculative = speculative_loads(module, function, &fixed, body);
    Hoist { function, uniformity, broadcasts, speculative }.list(body);
}

struct Hoist<'a> {
    function: &'a mut Function,
    uniformity: Uniformity,
    broadcasts: HashSet<ExprId>,
    speculative: SpeculativeLoads,
}

impl Hoist<'_> {
    fn list(&mut self, list: &mut Block) {
        let mut out = Block::with_capacity(list.len());
        for mut stmt in std::mem::take(list) {
            if let StmtKind::If { cond, then, otherwise } = &stmt.kind
                && self.uniformity.varies(self.function, *cond)
            {
                let found: Vec<_> = [then, otherwise].iter().flat_map(|arm| self.found(arm)).collect();
                for load in found {
                    let value = self.function.exprs[load].clone();
                    let local = self.function.locals.push(Local::new("broadcast", LocalKind::Variable, value.ty));
                    self.function.locals[local].broadcast = true;
                    let value = self.function.exprs.push(value);
                    self.function.exprs[load].kind = ExprKind::Local(local);
                    out.push(Stmt { kind: StmtKind::Assign(local, value), span: stmt.span });
                }
            }
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.list(inner);
            }
            out.push(stmt);
        }
        *list = out;
    }

    /// The loads at the start of an arm that may move before the branch.
    fn found(&self, arm: &[Stmt]) -> Vec<ExprId> {
        let (mut found, mut assigned) = (Vec::new(), Vec::new());
        for stmt in arm {
            let StmtKind::Assign(local, value) = stmt.kind else { break };
            for_each_expr(self.function, value, &mut |id| {
                if let Class::Load(pointer) = self.function.class(id)
                    && self.broadcasts.contains(&id)
                    && !self.uniformity.varies(self.function, pointer)
                    && legal!("hoist_broadcasts.in-bounds", self.speculative.in_bounds.contains(&id))
                    && legal!("hoist_broadcasts.same-address", !self.mentions(pointer, &assigned))
                {
                    found.push(id);
                }
            });
            assigned.push(local);
        }
        found
    }

    /// Whether an address has a load, or one of some locals.
    fn mentions(&self, address: ExprId, locals: &[LocalId]) -> bool {
        let mut some = false;
        for_each_expr(self.function, address, &mut |id| {
            some |= match self.function.class(id) {
                Class::Leaf(Leaf::Local(local)) => locals.contains(&local),
                Class::Load(_) => true,
                Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => false,
            };
        });
        some
    }
}
