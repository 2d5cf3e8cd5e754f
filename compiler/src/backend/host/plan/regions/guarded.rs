//! Parts of a kernel that only the threads of a guard run, with barriers inside: `if i < n: …` and what follows
//! `if i >= n: return`.
//!
//! Where the guard depends on nothing that changes while the block runs, each segment inside takes it into its bounds,
//! and neither a mask nor a test is needed.

use std::{
    collections::{HashMap, HashSet},
    ptr,
};

use crate::{
    analysis::{Rematerializable, for_each_mention, for_each_read},
    backend::host::plan::{
        analysis::{strides::Forms, structure::holds_barrier},
        plan_ir::{Guard, Parts},
    },
    ir::{ExprId, Function, LocalId, Stmt, StmtKind, for_each_stmt},
};

/// The guarded parts of a body; statements are known by their address.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// `If`s, with the guard of `then`.
    ifs: HashMap<*const Stmt, Guard>,
    /// Early returns at the level of the kernel, with the guard of what follows.
    returns: HashMap<*const Stmt, Guard>,
    /// Locals that are assigned inside an `If` and mentioned outside of it.
    escaping: HashSet<LocalId>,
    /// Offsets of strided loops that guards of `If`s ask for, each inside of its loop.
    offsets: HashSet<LocalId>,
}

impl Regions {
    /// Finds the guarded parts that hold a barrier. Offsets in `apart` are not the same for all threads.
    pub(crate) fn of(function: &Function, body: &[Stmt], fixed: &Rematerializable, apart: &[LocalId]) -> Self {
        let mut this = Self::default();
        let offsets = |local: LocalId| function.locals[local].offset && !apart.contains(&local);
        let mut mentions = vec![0_u32; function.locals.len()];
        for_each_mention(function, body, &mut |local| mentions[local.index()] += 1);
        for_each_stmt(body, &mut |stmt| {
            let StmtKind::If { cond, then, otherwise } = &stmt.kind else { return };
            if !otherwise.is_empty() {
                return;
            }
            if let [Stmt { kind: StmtKind::Return(_), .. }] = then.as_slice() {
                if let Some(guard) = whole_guard(function, fixed, *cond, true, &|_| false) {
                    this.returns.insert(ptr::from_ref(stmt), guard);
                }
            } else if let (true, Some(guard)) =
                (holds_barrier(stmt), whole_guard(function, fixed, *cond, false, &offsets))
            {
                for_each_read(function, *cond, &mut |local| {
                    if offsets(local) {
                        this.offsets.insert(local);
                    }
                });
                this.ifs.insert(ptr::from_ref(stmt), guard);
                let mut inside = HashMap::new();
                for_each_mention(function, then, &mut |local| *inside.entry(local).or_insert(0_u32) += 1);
                let outside = inside.into_iter().filter(|(local, count)| mentions[local.index()] != *count);
                this.escaping.extend(outside.map(|(local, _)| local));
            }
        });
        this
    }

    /// The guard of an `If`'s `then`, if it is one.
    pub(crate) fn inside(&self, stmt: &Stmt) -> Option<&Guard> {
        self.ifs.get(&ptr::from_ref(stmt))
    }

    /// The guard of what follows an early return, if it is one.
    pub(crate) fn after(&self, stmt: &Stmt) -> Option<&Guard> {
        self.returns.get(&ptr::from_ref(stmt))
    }

    /// `true` if some guarded part may assign a local that is seen outside of it.
    pub(crate) fn escapes(&self, local: LocalId) -> bool {
        self.escaping.contains(&local)
    }

    /// The offsets that guards take to be the same for all threads.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = LocalId> {
        self.offsets.iter().copied()
    }
}

/// A condition as a guard, if all of it can be one and it depends on the thread.
fn whole_guard(
    function: &Function,
    fixed: &Rematerializable,
    cond: ExprId,
    negated: bool,
    offsets: &dyn Fn(LocalId) -> bool,
) -> Option<Guard> {
    let param = |local: LocalId| function.params.contains(&local) || offsets(local);
    let forms = Forms { function, fixed, shared: &param, sole: &|_| None, axis: 0 };
    let mut parts = Parts::default();
    forms.split(cond, negated, &mut parts);
    let dependence = fixed.dependence(function, cond);
    (parts.residual.is_empty() && (dependence.x || dependence.row)).then_some(parts.guard)
}

/// `true` if a condition can be a guard that lasts as long as the block.
pub(crate) fn is_guard(function: &Function, fixed: &Rematerializable, cond: ExprId) -> bool {
    whole_guard(function, fixed, cond, false, &|_| false).is_some()
}

/// `true` if a condition can be a guard that lasts as long as the block, or a turn of the strided loop around it.
pub(crate) fn is_guard_of_turn(function: &Function, fixed: &Rematerializable, cond: ExprId) -> bool {
    whole_guard(function, fixed, cond, false, &|local| function.locals[local].offset).is_some()
}
