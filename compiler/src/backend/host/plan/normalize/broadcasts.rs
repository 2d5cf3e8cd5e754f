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
//! The positions between the same barriers form an *interval*, also across the back edge of a loop. Legal for bodies
//! whose barriers are in uniform control flow. A write through a pointer that may point to any shared array counts as a
//! write to all of them, and so does a call.

use std::collections::HashSet;

use crate::{
    analysis::Rematerializable,
    backend::host::plan::{analysis::structure::holds_barrier, plan_ir::CountMasks},
    ir::{
        Base, Block, Class, ExprId, ExprKind, Function, Leaf, Local, LocalKind, SharedId, Space, Stmt, StmtKind,
        SyncScope, Type, for_each_expr, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Marks the locals of broadcasts, and assigns the broadcasts in conditions to new locals.
pub(crate) fn mark(function: &mut Function, body: &mut Block, masks: CountMasks) {
    if !body.iter().any(holds_barrier) || !legal!("broadcasts.uniform-barriers", masks(function, body).count == 0) {
        return;
    }
    let fixed = Rematerializable::of(function, body);
    let mut broadcasts = Intervals::of(function, &fixed, body).broadcasts();
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

/// A set of positions without a barrier between them; the number of an element of a union-find structure.
type Interval = usize;

/// The positions to which the jumps of a loop lead.
#[derive(Clone, Copy)]
struct Targets {
    after: Interval,
    step: Interval,
}

/// The accesses of shared memory in each interval of a body.
struct Intervals<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    /// By interval: an interval that it is part of, or itself.
    parents: Vec<Interval>,
    /// Writes; `None` for a write to an unknown array.
    writes: Vec<(Interval, Option<SharedId>)>,
    /// Loads of known arrays.
    loads: Vec<(Interval, SharedId, ExprId)>,
    loops: Vec<Targets>,
}

impl<'a> Intervals<'a> {
    fn of(function: &'a Function, fixed: &'a Rematerializable, body: &[Stmt]) -> Self {
        let (parents, loops) = (Vec::new(), Vec::new());
        let mut this = Self { function, fixed, parents, writes: Vec::new(), loads: Vec::new(), loops };
        let first = this.new_interval();
        this.list(body, first);
        this
    }

    /// The loads in whose interval no thread writes to the array.
    fn broadcasts(&self) -> HashSet<ExprId> {
        let written: HashSet<_> = self.writes.iter().map(|&(interval, array)| (self.root(interval), array)).collect();
        let is_read_only = |interval: Interval, array: SharedId| {
            let root = self.root(interval);
            legal!("broadcasts.no-unknown-write", !written.contains(&(root, None)))
                && legal!("broadcasts.not-written", !written.contains(&(root, Some(array))))
        };
        let loads = self.loads.iter();
        loads.filter_map(|&(interval, array, load)| is_read_only(interval, array).then_some(load)).collect()
    }

    fn new_interval(&mut self) -> Interval {
        self.parents.push(self.parents.len());
        self.parents.len() - 1
    }

    fn root(&self, mut interval: Interval) -> Interval {
        while self.parents[interval] != interval {
            interval = self.parents[interval];
        }
        interval
    }

    fn unite(&mut self, one: Interval, other: Interval) {
        let (one, other) = (self.root(one), self.root(other));
        self.parents[one] = other;
    }

    /// Collects the accesses of a list that begins in an interval. Returns the interval after the list.
    fn list(&mut self, list: &[Stmt], mut here: Interval) -> Interval {
        for stmt in list {
            self.accesses(&stmt.kind, here);
            match &stmt.kind {
                StmtKind::If { then, otherwise, .. } => {
                    let (after, other) = (self.list(then, here), self.list(otherwise, here));
                    self.unite(after, other);
                    here = after;
                }
                StmtKind::Loop { body, step } => {
                    let [after, before_step] = [(); 2].map(|()| self.new_interval());
                    self.loops.push(Targets { after, step: before_step });
                    let end = self.list(body, here);
                    self.loops.pop();
                    self.unite(end, before_step);
                    let end = self.list(step, before_step);
                    self.unite(end, here);
                    here = after;
                }
                StmtKind::Break | StmtKind::Continue => {
                    if let Some(&Targets { after, step }) = self.loops.last() {
                        self.unite(here, if matches!(stmt.kind, StmtKind::Break) { after } else { step });
                    }
                    here = self.new_interval();
                }
                StmtKind::Return(_) => here = self.new_interval(),
                StmtKind::Op { op, .. } if op.row().together >= SyncScope::Block => here = self.new_interval(),
                StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } => {}
            }
        }
        here
    }

    /// Collects the accesses of one statement, without those of nested statements.
    fn accesses(&mut self, kind: &StmtKind, here: Interval) {
        match kind {
            StmtKind::Store { pointer, .. } => self.write(*pointer, here),
            StmtKind::Op { args, .. } => {
                for &arg in args {
                    if let Type::Ptr(..) = self.function.exprs[arg].ty {
                        self.write(arg, here);
                    }
                }
            }
            StmtKind::Call { .. } => self.writes.push((here, None)),
            StmtKind::Assign(..)
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
        let function = self.function;
        for_each_expr_of_stmt(function, kind, &mut |id| {
            if let Class::Load(pointer) = function.class(id)
                && let Some(array) = self.array(pointer)
            {
                self.loads.push((here, array, id));
            }
        });
    }

    fn write(&mut self, pointer: ExprId, here: Interval) {
        let array = self.array(pointer);
        let may_be_shared = match self.function.exprs[pointer].ty {
            Type::Ptr(_, space) => matches!(space, Space::Shared | Space::Generic),
            Type::Scalar(_) => false,
        };
        if may_be_shared {
            self.writes.push((here, array));
        }
    }

    /// The shared array that a pointer points into, if that is known.
    fn array(&self, mut pointer: ExprId) -> Option<SharedId> {
        loop {
            pointer = match self.function.class(pointer) {
                Class::Address { base, .. } => base,
                Class::Leaf(Leaf::Base(Base::Shared(array))) => return Some(array),
                Class::Leaf(Leaf::Local(local)) => self.fixed.value(local)?,
                Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => return None,
            };
        }
    }
}
