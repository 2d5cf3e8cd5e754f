//! Drops parameters whose value nobody reads: a kernel's slots, which then are neither passed nor computed at launch,
//! and parameters of device functions with their arguments.
//!
//! ```text
//! kernel @k($x.data = x.data, $x.shape0 = x.shape[0])        kernel @k($x.data = x.data)
//! ```

use std::collections::BTreeMap;

use super::drop_dead::{clean, live_locals};
use crate::ir::{FuncId, Function, FunctionKind, Module, StmtKind, for_each_stmt_mut};

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    // Callees stand before callers: what a callee no longer takes may leave the caller's locals unread.
    let mut kept = BTreeMap::new();
    for (id, function) in module.functions.iter_mut() {
        drop_args(function, &kept);
        clean(function);
        kept.insert(id, drop_params(function));
    }
}

/// Drops the arguments that callees no longer take.
fn drop_args(function: &mut Function, kept: &BTreeMap<FuncId, Vec<bool>>) {
    for_each_stmt_mut(&mut function.body, &mut |stmt| {
        if let StmtKind::Call { func, args, .. } = &mut stmt.kind
            && let Some(kept) = kept.get(func)
        {
            retain(args, kept);
        }
    });
}

/// Drops dead parameters, and says of each of the old ones whether it stays.
fn drop_params(function: &mut Function) -> Vec<bool> {
    let live = live_locals(function);
    let kept: Vec<_> = function.params.iter().map(|param| live[param.index()]).collect();
    retain(&mut function.params, &kept);
    if function.kind == FunctionKind::Kernel {
        retain(&mut function.slots, &kept);
    }
    kept
}

/// Keeps the items whose flag is set.
fn retain<T>(items: &mut Vec<T>, kept: &[bool]) {
    let mut flags = kept.iter();
    items.retain(|_| flags.next().copied().unwrap_or(true));
}
