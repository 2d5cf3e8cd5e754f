//! Guarded regions: statements with barriers inside that only the threads of a guard run, as in `if i < n: …` and
//! after `if i >= n: return`.
//!
//! The guard must not depend on values that change while the block runs. Each segment inside then takes the guard into
//! the bounds of its thread loop, and needs neither a mask nor a test. An offset of an interchanged loop may occur in a
//! guard too, where it is uniform: it does not change within an iteration.

use std::{
    collections::{HashMap, HashSet},
    ptr,
};

use crate::{
    analysis::{Rematerializable, for_each_mention, for_each_read},
    backend::host::plan::{
        analysis::{strides::Forms, structure::holds_barrier},
        plan_ir::{Guard, SplitCondition},
    },
    ir::{ExprId, Function, LocalId, Stmt, StmtKind, for_each_stmt},
};

/// The guarded regions of a body. Statements are identified by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// Branches, with the guard of `then`.
    ifs: HashMap<*const Stmt, Guard>,
    /// Early returns, with the guard of the statements after them.
    returns: HashMap<*const Stmt, Guard>,
    /// Locals that are mentioned both inside and outside of a guarded branch.
    escaping: HashSet<LocalId>,
    /// Offsets of grid-stride loops that guards of branches read; each such guard is inside its loop.
    offsets: HashSet<LocalId>,
}

impl Regions {
    /// Finds the guarded branches that contain a barrier, and the guarded early returns. Offsets in `varying` are
    /// varying.
    pub(crate) fn of(function: &Function, body: &[Stmt], fixed: &Rematerializable, varying: &[LocalId]) -> Self {
        let mut this = Self::default();
        let offsets = |local: LocalId| function.locals[local].offset && !varying.contains(&local);
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

    /// The guard of a branch's `then`, if it is a guarded region.
    pub(crate) fn inside(&self, stmt: &Stmt) -> Option<&Guard> {
        self.ifs.get(&ptr::from_ref(stmt))
    }

    /// The guard of the statements after an early return, if they are a guarded region.
    pub(crate) fn after(&self, stmt: &Stmt) -> Option<&Guard> {
        self.returns.get(&ptr::from_ref(stmt))
    }

    /// Whether a guarded region may assign a local that is mentioned outside of it.
    pub(crate) fn escapes(&self, local: LocalId) -> bool {
        self.escaping.contains(&local)
    }

    /// Offsets that guards require to be uniform.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = LocalId> {
        self.offsets.iter().copied()
    }
}

/// A condition as a guard, if all of it can be part of the guard and it depends on the thread.
fn whole_guard(
    function: &Function,
    fixed: &Rematerializable,
    cond: ExprId,
    negated: bool,
    offsets: &dyn Fn(LocalId) -> bool,
) -> Option<Guard> {
    let param = |local: LocalId| function.params.contains(&local) || offsets(local);
    let forms = Forms { function, fixed, shared: &param, sole: &|_| None, axis: 0 };
    let mut parts = SplitCondition::default();
    forms.split(cond, negated, &mut parts);
    let dependence = fixed.dependence(function, cond);
    (parts.residual.is_empty() && (dependence.x || dependence.row)).then_some(parts.guard)
}

/// Whether a condition is a guard whose value does not change while the block runs.
pub(crate) fn is_guard(function: &Function, fixed: &Rematerializable, cond: ExprId) -> bool {
    whole_guard(function, fixed, cond, false, &|_| false).is_some()
}

/// Whether the negation of a condition, under which threads return, is a guard of the statements after it.
pub(crate) fn is_guard_of_rest(function: &Function, fixed: &Rematerializable, cond: ExprId) -> bool {
    whole_guard(function, fixed, cond, true, &|_| false).is_some()
}

/// Whether a condition is a guard whose value does not change while the block runs, or during an iteration of the
/// grid-stride loop around it.
pub(crate) fn is_guard_of_iteration(function: &Function, fixed: &Rematerializable, cond: ExprId) -> bool {
    whole_guard(function, fixed, cond, false, &|local| function.locals[local].offset).is_some()
}

/// Adds a rematerializable local to `order`, after the locals that its value reads.
pub(crate) fn recompute(
    function: &Function,
    fixed: &Rematerializable,
    own: &dyn Fn(LocalId) -> bool,
    local: LocalId,
    order: &mut Vec<LocalId>,
) {
    if order.contains(&local) || !own(local) {
        return;
    }
    if let Some(value) = fixed.value(local) {
        let mut reads = Vec::new();
        for_each_read(function, value, &mut |read| reads.push(read));
        for read in reads {
            recompute(function, fixed, own, read, order);
        }
        order.push(local);
    }
}
