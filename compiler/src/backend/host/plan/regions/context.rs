//! Which values a thread carries from one segment to the next, and so need memory of their own for each thread.
//!
//! A local crosses if some segment may read it before assigning it. Each segment works on copies: what it may read
//! first is fetched when a thread starts, what it assigned is put back when the thread ends; in between LLVM keeps
//! it in registers. Fixed locals never cross: they are computed again.

use std::collections::BTreeSet;

use crate::{
    analysis::{Rematerializable, escapes, for_each_mention, for_each_read},
    backend::host::plan::{
        analysis::{dependence, divergence::Uniformity},
        plan_ir::{Node, Segment, for_each_segment, for_each_split},
    },
    ir::{Effects, ExprId, ExprKind, Function, LocalArrayId, LocalId, Space, Stmt, StmtKind, Type, for_each_stmt},
};

type Set = BTreeSet<LocalId>;

/// What has a place for each thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crossing {
    /// Locals, one element a thread.
    pub locals: Vec<LocalId>,
    /// Thread-local arrays, one after the other.
    pub arrays: Vec<LocalArrayId>,
}

/// Fills in what the segments fetch, put back and compute again. Nobody writes what the parameters `read_only` point to.
pub(crate) fn analyse(
    function: &Function,
    nodes: &mut [Node],
    uniformity: &Uniformity,
    fixed: &Rematerializable,
    functions: &[Effects],
    read_only: &[LocalId],
) -> Crossing {
    let mut crossing = Set::new();
    for_each_split(nodes, &mut |cond| {
        crossing.insert(cond);
    });
    let own = |local: LocalId| uniformity.local_varies(local);
    for_each_segment(nodes, &mut |segment| {
        let uses = Uses::of(function, &segment.body);
        for_each_mention(function, &segment.body, &mut |local| {
            if own(local) && !segment.locals.contains(&local) {
                segment.locals.push(local);
            }
        });
        for &local in uses.exposed.iter().filter(|&&local| own(local)) {
            if fixed.value(local).is_some() {
                recompute(function, fixed, &own, local, &mut segment.recompute);
            } else {
                crossing.insert(local);
                segment.load.push(local);
            }
        }
        for &local in &segment.recompute {
            if !segment.locals.contains(&local) {
                segment.locals.push(local);
            }
        }
        // What is put back must hold a value on every way out.
        let partly = uses.assigned.iter().filter(|local| !uses.definite.contains(local));
        segment.load.extend(partly.filter(|local| !uses.exposed.contains(local)));
        segment.store = uses.assigned.into_iter().collect();
    });
    for_each_segment(nodes, &mut |segment| {
        segment.load.retain(|local| crossing.contains(local));
        segment.store.retain(|local| crossing.contains(local));
    });
    let arrays = crossing_arrays(function, nodes, fixed, &crossing);
    for_each_segment(nodes, &mut |segment| {
        let effects = Effects::of_block(function, &segment.body, functions);
        let mut own_array = false;
        for_each_array(function, fixed, segment, &mut |array| own_array |= !arrays.contains(&array));
        let mut calls = false;
        for_each_stmt(&segment.body, &mut |stmt| {
            if let StmtKind::Call { func, .. } = stmt.kind {
                calls |= Effects::of_function(functions, func).local_arrays;
            }
        });
        let kept = dependence::is_kept(function, fixed, functions, read_only, &segment.body);
        segment.parallel = kept && !(effects.noticed || own_array || calls);
    });
    Crossing { locals: crossing.into_iter().collect(), arrays }
}

/// Adds a fixed local, and before it those that it is computed from.
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

/// Arrays whose contents live on after a segment, or may: those that two segments or two turns mention, and all where
/// a pointer into one may cross.
fn crossing_arrays(
    function: &Function,
    nodes: &mut [Node],
    fixed: &Rematerializable,
    crossing: &Set,
) -> Vec<LocalArrayId> {
    let points = |local: &LocalId| matches!(function.locals[*local].ty, Type::Ptr(_, Space::Local | Space::Generic));
    let pointer_crosses = crossing.iter().any(points);
    let mut seen = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for_each_segment(nodes, &mut |segment| {
        let mut here = BTreeSet::new();
        for_each_array(function, fixed, segment, &mut |array| {
            here.insert(array);
        });
        for array in here {
            if !seen.insert(array) || segment.repeats || pointer_crosses {
                twice.insert(array);
            }
        }
    });
    twice.into_iter().collect()
}

fn for_each_array(
    function: &Function,
    fixed: &Rematerializable,
    segment: &Segment,
    visit: &mut dyn FnMut(LocalArrayId),
) {
    let mut look = |root: ExprId| {
        crate::ir::for_each_expr(function, root, &mut |id| {
            if let ExprKind::LocalBase(array) = function.exprs[id].kind {
                visit(array);
            }
        });
    };
    segment.recompute.iter().filter_map(|&local| fixed.value(local)).for_each(&mut look);
    for_each_stmt(&segment.body, &mut |stmt| stmt.kind.exprs().into_iter().for_each(&mut look));
}

/// How a segment uses locals.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// May be read before they are assigned.
    pub exposed: Set,
    /// Are assigned somewhere.
    pub assigned: Set,
    /// Are assigned on every way through.
    definite: Set,
}

impl Uses {
    pub(crate) fn of(function: &Function, body: &[Stmt]) -> Self {
        let mut flow = Flow { function, exposed: Set::new(), breaks: Vec::new() };
        let end = flow.block(body, Set::new());
        let mut all = Set::new();
        for_each_stmt(body, &mut |stmt| all.extend(stmt.kind.assigned()));
        let definite = if escapes(body).any() { Set::new() } else { end.unwrap_or_default() };
        Self { exposed: flow.exposed, assigned: all, definite }
    }
}

/// Walks statements with the set of locals that are assigned by then.
struct Flow<'a> {
    function: &'a Function,
    exposed: Set,
    /// For each loop around the position, what is assigned at all of its breaks; `None` before the first.
    breaks: Vec<Option<Set>>,
}

impl Flow<'_> {
    /// What is assigned at the end, if the end can be reached.
    fn block(&mut self, block: &[Stmt], mut set: Set) -> Option<Set> {
        for stmt in block {
            for root in stmt.kind.exprs() {
                for_each_read(self.function, root, &mut |local| {
                    if !set.contains(&local) {
                        self.exposed.insert(local);
                    }
                });
            }
            match &stmt.kind {
                StmtKind::If { then, otherwise, .. } => {
                    let then = self.block(then, set.clone());
                    let otherwise = self.block(otherwise, set);
                    set = both(then, otherwise)?;
                }
                StmtKind::Loop { body, step } => {
                    self.breaks.push(None);
                    // A `continue` reaches the step with less than the end of the body has.
                    let end = self.block(body, set.clone());
                    let before_step = if escapes(body).continues { set } else { end.unwrap_or(set) };
                    self.block(step, before_step);
                    set = self.breaks.pop().flatten()?;
                }
                StmtKind::Break => {
                    if let Some(at_breaks) = self.breaks.last_mut() {
                        *at_breaks = both(at_breaks.take(), Some(set));
                    }
                    return None;
                }
                StmtKind::Continue | StmtKind::Return(_) => return None,
                other @ (StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }) => set.extend(other.assigned()),
            }
        }
        Some(set)
    }
}

/// What is assigned on both ways; a way that is not reached adds nothing.
fn both(a: Option<Set>, b: Option<Set>) -> Option<Set> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.intersection(&b).copied().collect()),
        (one, None) | (None, one) => one,
    }
}
