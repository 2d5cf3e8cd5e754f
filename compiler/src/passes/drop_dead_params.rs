//! Drops dead parameters: a kernel's slots, which then are neither passed nor computed at launch, and parameters of
//! device functions with their arguments.
//!
//! ```text
//! kernel @k($x.data = x.data, $x.shape0 = x.shape[0])        kernel @k($x.data = x.data)
//! ```

use std::collections::BTreeMap;

use super::drop_dead::{clean, live_locals};
use crate::ir::{Circles, FuncId, Function, FunctionKind, Module, StmtKind, for_each_stmt_mut};

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    let circles = Circles::of(module);
    // Callees come before callers: once a callee has lost a parameter, locals of its callers may be dead. A recursive
    // function may be called before it is visited, so the dead parameters of recursive functions are found first.
    let mut kept = dead_on_circles(module, &circles);
    for (id, function) in module.functions.iter_mut() {
        drop_args(function, &kept);
        clean(function);
        match kept.get(&id) {
            Some(kept) => retain(&mut function.params, kept),
            None => {
                let own = drop_params(function);
                kept.insert(id, own);
            }
        }
    }
}

/// For each recursive function: which parameters are live. Passing a parameter on in the recursion is not a use.
fn dead_on_circles(module: &Module, circles: &Circles) -> BTreeMap<FuncId, Vec<bool>> {
    let on_circle = module.functions.iter().filter(|(id, _)| circles.contains(*id));
    let mut kept: BTreeMap<FuncId, Vec<bool>> =
        on_circle.map(|(id, function)| (id, vec![false; function.params.len()])).collect();
    loop {
        let before = kept.clone();
        for (id, function) in module.functions.iter().filter(|(id, _)| circles.contains(*id)) {
            let mut reduced = function.clone();
            drop_args(&mut reduced, &before);
            let live = live_locals(&reduced);
            let is_live = function.params.iter().map(|param| live[param.index()]).collect();
            kept.insert(id, is_live);
        }
        if kept == before {
            return kept;
        }
    }
}

/// Drops the arguments for dropped parameters.
fn drop_args(function: &mut Function, kept: &BTreeMap<FuncId, Vec<bool>>) {
    for_each_stmt_mut(&mut function.body, &mut |stmt| {
        if let StmtKind::Call { func, args, .. } = &mut stmt.kind
            && let Some(kept) = kept.get(func)
        {
            retain(args, kept);
        }
    });
}

/// Drops dead parameters. Returns for each old parameter whether it is live.
fn drop_params(function: &mut Function) -> Vec<bool> {
    let live = live_locals(function);
    let kept: Vec<_> = function.params.iter().map(|param| live[param.index()]).collect();
    retain(&mut function.params, &kept);
    if function.kind != FunctionKind::Device {
        retain(&mut function.slots, &kept);
    }
    kept
}

/// Keeps the items whose flag is set.
fn retain<T>(items: &mut Vec<T>, kept: &[bool]) {
    let mut flags = kept.iter();
    items.retain(|_| flags.next().copied().unwrap_or(true));
}
