//! Intervals: the positions between the same barriers, also across the back edge of a loop.
//!
//! A write through a pointer that may point to any shared array counts as a write to all of them, and so does a call.

use std::collections::HashSet;

use crate::{
    analysis::Rematerializable,
    ir::{
        Base, Class, ExprId, Function, Leaf, SharedId, Space, Stmt, StmtKind, SyncScope, Type, for_each_expr_of_stmt,
    },
};

/// A set of positions without a barrier between them; the number of an element of a union-find structure.
type Interval = usize;

/// The positions to which the jumps of a loop lead.
#[derive(Clone, Copy)]
struct Targets {
    after: Interval,
    step: Interval,
}

/// The loads of shared memory in whose interval no thread writes to the array: all threads that load from one address
/// get the same value. The body's barriers are in uniform control flow.
pub(crate) fn broadcasts_of(function: &Function, fixed: &Rematerializable, body: &[Stmt]) -> HashSet<ExprId> {
    Intervals::of(function, fixed, body).broadcasts()
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
