//! Detection of shared arrays of sanitized kernels whose reads cannot race in a segment.
//!
//! All threads of a block reach each barrier in lockstep, and no other block accesses its shared memory. So a read
//! cannot race if neither its own segment writes the array, nor a segment that is connected with it by a path without a
//! barrier. The sanitizer then only needs to check that the bytes that are read were written before. The analysis is a
//! reachability test on the control flow graph of the nodes.

use weft_artifact::HostChecks;

use crate::{
    analysis::{Origins, Owner},
    backend::host::plan::plan_ir::{Node, for_each_segment},
    ir::{
        Arith, Base, Block, Class, Const, ExprId, Function, Leaf, Op, SharedId, StmtKind, Type, for_each_expr_of_block,
        for_each_stmt,
    },
};

/// Sets, for each segment, the shared arrays that it reads without a possible race ([`Segment::race_free`]).
pub(crate) fn note(function: &Function, nodes: &mut [Node]) {
    let (origins, pointers) = (Origins::of(function), Pointers::of(function));
    let mut flow = Flow { function, origins, pointers, points: Vec::new(), loops: Vec::new(), segments: Vec::new() };
    let start = flow.add(&[], Wrote::default(), false);
    flow.walk(nodes, vec![start]);
    let before = flow.before();
    let mut next = 0;
    for_each_segment(nodes, &mut |segment| {
        let Some(&point) = flow.segments.get(next) else { return };
        next += 1;
        let wrote = flow.wrote_around(point, &before);
        if wrote.all {
            return;
        }
        let mut race_free = Vec::new();
        for_each_expr_of_block(function, &segment.body, &mut |id| {
            if let Class::Load(pointer) = function.class(id)
                && let Some(Base::Shared(array)) = flow.pointers.declared(function, pointer)
                && !race_free.contains(&array)
                && !wrote.arrays.contains(&array)
            {
                race_free.push(array);
            }
        });
        segment.race_free = race_free;
    });
}

/// The arrays that the pointers of a function point into. Only expressions and locals that are assigned once are
/// resolved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pointers {
    /// By the local's index: the value of a pointer that is assigned once.
    values: Vec<Option<ExprId>>,
}

impl Pointers {
    pub(crate) fn of(function: &Function) -> Self {
        let mut values = vec![None; function.locals.len()];
        let mut assigned = vec![false; function.locals.len()];
        // A parameter is assigned at entry.
        function.params.iter().for_each(|param| assigned[param.index()] = true);
        for_each_stmt(&function.body, &mut |stmt| {
            for local in stmt.kind.assigned() {
                let before = std::mem::replace(&mut assigned[local.index()], true);
                values[local.index()] = match stmt.kind {
                    StmtKind::Assign(_, value) if !before && matches!(function.exprs[value].ty, Type::Ptr(..)) => {
                        Some(value)
                    }
                    StmtKind::Assign(..)
                    | StmtKind::Store { .. }
                    | StmtKind::Op { .. }
                    | StmtKind::Call { .. }
                    | StmtKind::If { .. }
                    | StmtKind::Loop { .. }
                    | StmtKind::Break
                    | StmtKind::Continue
                    | StmtKind::Return(_) => None,
                };
            }
        });
        Self { values }
    }

    /// The condition that the index of a pointer is within bounds, if no other index on the way to the pointer was
    /// compared with bounds.
    pub(crate) fn within(&self, function: &Function, id: ExprId) -> Option<ExprId> {
        let cond = within(function, id)?;
        let Class::Arith(Arith::Select(_, pointer, _)) = function.class(id) else { return None };
        self.is_straight(function, pointer).then_some(cond)
    }

    /// Whether a pointer points into a parameter's memory or a declared array, without an index that was compared with
    /// bounds.
    fn is_straight(&self, function: &Function, id: ExprId) -> bool {
        match function.class(id) {
            Class::Arith(Arith::Convert(inner)) | Class::Address { base: inner, .. } => {
                self.is_straight(function, inner)
            }
            Class::Leaf(Leaf::Base(_)) => true,
            Class::Leaf(Leaf::Local(local)) => match self.values.get(local.index()).copied().flatten() {
                Some(value) => self.is_straight(function, value),
                None => function.params.contains(&local),
            },
            Class::Leaf(Leaf::Const(_) | Leaf::Special(_)) | Class::Arith(_) | Class::Load(_) => false,
        }
    }

    /// The declared array that a pointer points into, if its index is within bounds.
    pub(crate) fn declared(&self, function: &Function, id: ExprId) -> Option<Base> {
        match function.class(id) {
            Class::Arith(Arith::Select(_, pointer, _)) if within(function, id).is_some() => {
                self.declared(function, pointer)
            }
            Class::Arith(Arith::Convert(inner)) | Class::Address { base: inner, .. } => self.declared(function, inner),
            Class::Leaf(Leaf::Base(base)) => Some(base),
            // This terminates: a local whose value depends on itself is assigned more than once.
            Class::Leaf(Leaf::Local(local)) => {
                self.declared(function, self.values.get(local.index()).copied().flatten()?)
            }
            Class::Leaf(Leaf::Const(_) | Leaf::Special(_)) | Class::Arith(_) | Class::Load(_) => None,
        }
    }
}

/// The condition that the index of a pointer is within bounds, if the pointer is selected by such a condition. If it is
/// false, the pointer is [`HostChecks::NOWHERE`].
fn within(function: &Function, id: ExprId) -> Option<ExprId> {
    let nowhere = Class::Leaf(Leaf::Const(Const::Address(HostChecks::NOWHERE)));
    match function.class(id) {
        Class::Arith(Arith::Select(cond, _, other)) if function.class(other) == nowhere => Some(cond),
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
    }
}

/// The shared arrays that code may write.
#[derive(Clone, Debug, Default)]
struct Wrote {
    /// It may write any array.
    all: bool,
    arrays: Vec<SharedId>,
}

/// A node of the control flow graph: a segment, a barrier, the entry or a loop header.
struct Point {
    next: Vec<usize>,
    wrote: Wrote,
    is_barrier: bool,
}

/// The pending exits and `continue`s of a loop.
#[derive(Default)]
struct Ways {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

/// The control flow graph of a block's nodes.
struct Flow<'a> {
    function: &'a Function,
    origins: Origins,
    pointers: Pointers,
    points: Vec<Point>,
    loops: Vec<Ways>,
    /// The points of the segments, in the order of the nodes.
    segments: Vec<usize>,
}

impl Flow<'_> {
    fn add(&mut self, from: &[usize], wrote: Wrote, is_barrier: bool) -> usize {
        let at = self.points.len();
        self.points.push(Point { next: Vec::new(), wrote, is_barrier });
        for &from in from {
            self.points[from].next.push(at);
        }
        at
    }

    /// Adds nodes with the predecessors `from`; returns the predecessors of the following nodes.
    fn walk(&mut self, nodes: &[Node], mut from: Vec<usize>) -> Vec<usize> {
        for node in nodes {
            from = match node {
                Node::Segment(segment) => {
                    let wrote = self.wrote(&segment.body);
                    let at = self.add(&from, wrote, false);
                    self.segments.push(at);
                    vec![at]
                }
                Node::Barrier | Node::WarpRegion(_) => vec![self.add(&from, Wrote::default(), true)],
                Node::If { then, otherwise, .. } | Node::Split { then, otherwise, .. } => {
                    let mut behind = self.walk(then, from.clone());
                    behind.extend(self.walk(otherwise, from));
                    behind
                }
                Node::Guarded { inside, .. } => {
                    let mut behind = self.walk(inside, from.clone());
                    behind.extend(from);
                    behind
                }
                Node::Strips(strips) => self.walk(&strips.nodes, from),
                Node::TransposedRows(transposed) => {
                    let behind = self.walk(&transposed.nodes, from);
                    self.walk(&transposed.step, behind)
                }
                Node::Loop { body, step, .. } => {
                    let head = self.add(&from, Wrote::default(), false);
                    self.loops.push(Ways::default());
                    let mut to_step = self.walk(body, vec![head]);
                    to_step.extend(
                        self.loops.last_mut().map(|ways| std::mem::take(&mut ways.continues)).into_iter().flatten(),
                    );
                    for last in self.walk(step, to_step) {
                        self.points[last].next.push(head);
                    }
                    self.loops.pop().map(|ways| ways.breaks).unwrap_or_default()
                }
                Node::Break | Node::Continue => {
                    if let Some(ways) = self.loops.last_mut() {
                        let to = if matches!(node, Node::Break) { &mut ways.breaks } else { &mut ways.continues };
                        to.extend(from);
                    }
                    Vec::new()
                }
                Node::Return => Vec::new(),
                Node::Once { .. } => from,
            };
        }
        from
    }

    /// The shared arrays that statements may write.
    fn wrote(&self, body: &Block) -> Wrote {
        let mut wrote = Wrote::default();
        for_each_stmt(body, &mut |stmt| {
            let pointer = match &stmt.kind {
                StmtKind::Store { pointer, .. } => Some(*pointer),
                StmtKind::Op { op: Op::Atomic { .. } | Op::Store(_), args, .. } => args.first().copied(),
                StmtKind::Call { .. } => {
                    wrote.all = true;
                    None
                }
                // No other operation of an eligible kernel writes memory.
                StmtKind::Op { .. }
                | StmtKind::Assign(..)
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => None,
            };
            let Some(pointer) = pointer else { return };
            match self.pointers.declared(self.function, pointer) {
                Some(Base::Shared(array)) => wrote.arrays.push(array),
                Some(Base::Local(_) | Base::Const(_) | Base::Dynamic) => {}
                None => wrote.all |= !matches!(self.origins.origin(self.function, pointer), Owner::Param(_)),
            }
        });
        wrote
    }

    /// By point: its predecessors.
    fn before(&self) -> Vec<Vec<usize>> {
        let mut before = vec![Vec::new(); self.points.len()];
        for (at, point) in self.points.iter().enumerate() {
            for &next in &point.next {
                before[next].push(at);
            }
        }
        before
    }

    /// The arrays that are written at a point, or at points that are connected with it by a path without a barrier.
    fn wrote_around(&self, point: usize, before: &[Vec<usize>]) -> Wrote {
        let mut wrote = Wrote::default();
        let next: Vec<&Vec<usize>> = self.points.iter().map(|point| &point.next).collect();
        let back: Vec<&Vec<usize>> = before.iter().collect();
        for ways in [next, back] {
            let mut known = vec![false; self.points.len()];
            let mut left = vec![point];
            while let Some(at) = left.pop() {
                if std::mem::replace(&mut known[at], true) || self.points[at].is_barrier {
                    continue;
                }
                wrote.all |= self.points[at].wrote.all;
                wrote.arrays.extend(&self.points[at].wrote.arrays);
                left.extend(ways[at]);
            }
        }
        wrote
    }
}
