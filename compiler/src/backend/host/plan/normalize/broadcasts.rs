//! Broadcasts: loads of shared memory that give every thread of the block the same value.
//!
//! ```text
//! barrier                                 barrier
//! for k in range(n):                      for k in range(n):
//!     if tile[k] == 0: break                  $t = tile[k]
//!     …                                       if $t == 0: break       (a uniform exit)
//! barrier                                 barrier
//! ```
//!
//! A load from a uniform address has one value for all threads if no thread stores to the array between the barriers
//! before and after it: a program in which one thread reads what another one writes between two barriers has a race.
//! The pass marks the locals that are only assigned from such loads, after it has assigned the loads in conditions to
//! locals of their own. Divergence analysis takes a marked local for uniform if the addresses are.
//!
//! Legal for bodies whose barriers are in uniform control flow. [Intervals](broadcasts_of) say what is between two of
//! them.

use std::collections::HashSet;

use crate::{
    analysis::Rematerializable,
    backend::host::plan::{
        analysis::{barrier_intervals::broadcasts_of, structure::holds_barrier},
        plan_ir::CountMasks,
    },
    ir::{
        Block, Class, ExprId, ExprKind, Function, Local, LocalKind, Stmt, StmtKind, for_each_expr,
        for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Marks the locals of broadcasts, and assigns the broadcasts in conditions to new locals.
pub(crate) fn mark(function: &mut Function, body: &mut Block, masks: CountMasks) {
    if !body.iter().any(holds_barrier) || !legal!("broadcasts.uniform-barriers", masks(function, body).count == 0) {
        return;
    }
    let fixed = Rematerializable::of(function, body);
    let mut broadcasts = broadcasts_of(function, &fixed, body);
    if broadcasts.is_empty() {
        return;
    }
    *body = with_names(function, &fixed, &mut broadcasts, std::mem::take(body));
    let mut is_candidate = vec![false; function.locals.len()];
    let mut is_other = vec![false; function.locals.len()];
    for_each_stmt(body, &mut |stmt| {
        let (mut loads, mut others) = (false, !matches!(stmt.kind, StmtKind::Assign(..)));
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Class::Load(_) = function.class(id) {
                loads |= broadcasts.contains(&id);
                others |= !broadcasts.contains(&id);
            }
        });
        for local in stmt.kind.assigned() {
            is_candidate[local.index()] |= loads;
            is_other[local.index()] |= others;
        }
    });
    for (id, local) in function.locals.iter_mut() {
        // A local of a warp region is marked already if it holds a value of the whole block.
        local.broadcast |= is_candidate[id.index()] && legal!("broadcasts.only-broadcasts", !is_other[id.index()]);
    }
}

/// Assigns broadcasts that are part of a condition to new locals before the branch, if their addresses do not directly
/// depend on the thread.
fn with_names(
    function: &mut Function,
    fixed: &Rematerializable,
    broadcasts: &mut HashSet<ExprId>,
    list: Block,
) -> Block {
    let mut done = Block::with_capacity(list.len());
    for mut stmt in list {
        if let StmtKind::If { cond, .. } = stmt.kind {
            let mut found = Vec::new();
            for_each_expr(function, cond, &mut |id| {
                if let Class::Load(pointer) = function.class(id)
                    && broadcasts.contains(&id)
                {
                    let dependence = fixed.dependence(function, pointer);
                    found.extend((!dependence.x && !dependence.row).then_some(id));
                }
            });
            for id in found {
                let load = function.exprs[id].clone();
                let local = function.locals.push(Local::new("broadcast", LocalKind::Variable, load.ty));
                let load = function.exprs.push(load);
                function.exprs[id].kind = ExprKind::Local(local);
                broadcasts.insert(load);
                done.push(Stmt { kind: StmtKind::Assign(local, load), span: stmt.span });
            }
        }
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            *inner = with_names(function, fixed, broadcasts, std::mem::take(inner));
        }
        done.push(stmt);
    }
    done
}
