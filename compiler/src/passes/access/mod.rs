//! Determines which array arguments a kernel may read and write, and fills [`weft_artifact::Access`].
//!
//! Each pointer local has the set of parameters that it may point into, the join over everything that is assigned to
//! it. A load reads the parameters that its pointer may come from, a store writes them, an atomic operation does both;
//! a call does to its arguments what the callee does to its parameters. A kernel that stores to only some elements
//! counts as one that only `writes`: a launch that works on a copy of the array must copy the other elements, too.

mod accumulates;

use std::collections::BTreeSet;

use weft_artifact::{Access, SlotSource};

use crate::ir::{
    Arith, Circles, Class, ExprId, ExprKind, FuncId, Function, Leaf, Memory, Module, Stmt, StmtKind,
    for_each_expr_of_block, for_each_stmt,
};

/// Indices in a function's list of parameters.
pub(super) type Params = BTreeSet<usize>;

/// The accesses of a function through its parameters.
#[derive(PartialEq)]
struct Summary {
    reads: Params,
    writes: Params,
    /// For each result, the parameters that it may point into.
    results: Vec<Params>,
}

impl Summary {
    fn nothing(function: &Function) -> Self {
        Self { reads: Params::new(), writes: Params::new(), results: vec![Params::new(); function.results.len()] }
    }
}

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    let summaries = summaries(module);
    for param in &mut module.params {
        param.access = Access::default();
    }
    let Some(kernel) = module.kernel else { return };
    let slots = &module.functions[kernel].slots;
    let summary = &summaries[kernel.index()];
    for (index, slot) in slots.iter().enumerate() {
        let SlotSource::Argument { param, .. } = slot else { continue };
        if let Some(param) = module.params.get_mut(*param as usize) {
            param.access.reads |= summary.reads.contains(&index);
            param.access.writes |= summary.writes.contains(&index);
        }
    }
    for index in accumulates::params(module, &module.functions[kernel], &summaries) {
        if let Some(SlotSource::Argument { param, path, .. }) = module.functions[kernel].slots.get(index)
            && path.is_empty()
            && let Some(param) = module.params.get_mut(*param as usize)
        {
            param.access.accumulates = true;
        }
    }
}

/// For each local of the kernel, the parameters that it may point into.
pub(super) fn origins_of_kernel(module: &Module, kernel: &Function) -> Vec<Params> {
    origins(kernel, &summaries(module))
}

/// The accesses of each function through its parameters.
fn summaries(module: &Module) -> Vec<Summary> {
    // Callees come before callers, so one pass sees every callee's summary, except in recursion.
    let mut summaries: Vec<Summary> = module.functions.iter().map(|(_, function)| Summary::nothing(function)).collect();
    let goes_round = !Circles::of(module).is_empty();
    loop {
        let mut changed = false;
        for (id, function) in module.functions.iter() {
            let origins = origins(function, &summaries);
            let summary = summarize(function, &origins, &summaries);
            changed |= summary != summaries[id.index()];
            summaries[id.index()] = summary;
        }
        if !(changed && goes_round) {
            return summaries;
        }
    }
}

/// For each local, the parameters that it may point into.
fn origins(function: &Function, summaries: &[Summary]) -> Vec<Params> {
    let mut origins = vec![Params::new(); function.locals.len()];
    for (index, param) in function.params.iter().enumerate() {
        origins[param.index()].insert(index);
    }
    loop {
        let mut changed = false;
        for_each_stmt(&function.body, &mut |stmt| {
            let values = match &stmt.kind {
                StmtKind::Assign(local, value) => vec![(*local, origin(function, &origins, *value))],
                StmtKind::Call { results, func, args } => {
                    let through = |result: &Params| map_through(function, &origins, args, result);
                    let values = summaries[func.index()].results.iter().map(through);
                    results.iter().copied().zip(values).collect()
                }
                StmtKind::Op { results, args, .. } => {
                    let from = pointed_to(function, &origins, args);
                    results.iter().map(|local| (*local, from.clone())).collect()
                }
                StmtKind::Store { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => Vec::new(),
            };
            for (local, from) in values {
                let known = &mut origins[local.index()];
                let before = known.len();
                known.extend(from);
                changed |= known.len() != before;
            }
        });
        if !changed {
            return origins;
        }
    }
}

/// The parameters that a pointer may point into; nothing for other values, and for shared and local memory.
pub(super) fn origin(function: &Function, origins: &[Params], id: ExprId) -> Params {
    match function.class(id) {
        Class::Leaf(Leaf::Local(local)) => origins[local.index()].clone(),
        Class::Arith(Arith::Convert(base)) | Class::Address { base, .. } => origin(function, origins, base),
        Class::Arith(Arith::Select(_, a, b)) => {
            let mut both = origin(function, origins, a);
            both.extend(origin(function, origins, b));
            both
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => Params::new(),
    }
}

/// The parameters that the pointers among some operands may point into.
fn pointed_to(function: &Function, origins: &[Params], args: &[ExprId]) -> Params {
    let pointers = args.iter().filter(|arg| function.exprs[**arg].ty.scalar().is_none());
    pointers.flat_map(|arg| origin(function, origins, *arg)).collect()
}

/// Maps a set of a callee's parameters to the caller's.
fn map_through(function: &Function, origins: &[Params], args: &[ExprId], callee: &Params) -> Params {
    callee.iter().filter_map(|index| args.get(*index)).flat_map(|arg| origin(function, origins, *arg)).collect()
}

fn summarize(function: &Function, origins: &[Params], summaries: &[Summary]) -> Summary {
    let mut summary = Summary::nothing(function);
    for_each_expr_of_block(function, &function.body, &mut |id| {
        if let ExprKind::Load(pointer, _) = function.exprs[id].kind {
            summary.reads.extend(origin(function, origins, pointer));
        }
    });
    for_each_stmt(&function.body, &mut |stmt: &Stmt| match &stmt.kind {
        StmtKind::Store { pointer, .. } => summary.writes.extend(origin(function, origins, *pointer)),
        StmtKind::Op { op, args, .. } => {
            let memory = op.row().memory;
            if memory == Memory::All {
                summary.reads.extend(0..function.params.len());
                summary.writes.extend(0..function.params.len());
            }
            let (read, written) = op.accessed(args);
            summary.reads.extend(pointed_to(function, origins, read));
            summary.writes.extend(pointed_to(function, origins, written));
        }
        StmtKind::Call { func, args, .. } => {
            let callee: &Summary = &summaries[FuncId::index(*func)];
            summary.reads.extend(map_through(function, origins, args, &callee.reads));
            summary.writes.extend(map_through(function, origins, args, &callee.writes));
        }
        StmtKind::Return(values) => {
            for (result, value) in summary.results.iter_mut().zip(values) {
                result.extend(origin(function, origins, *value));
            }
        }
        StmtKind::Assign(..) | StmtKind::If { .. } | StmtKind::Loop { .. } | StmtKind::Break | StmtKind::Continue => {}
    });
    summary
}
