//! Prefetches of the memory that the threads of a row load in the next iteration of a uniform loop with barriers.
//!
//! ```text
//! for start in range(0, n, T):              for start in range(0, n, T):
//!     tile[ty, tx] = b[start + ty, col]         tile[ty, tx] = b[start + ty, col]
//!     syncthreads()                             prefetch b[start + T + ty, col], one per cache line
//!     …                                         syncthreads(); …
//! ```
//!
//! It is legal because a prefetch does not fault. The locals that the address reads are evaluated as they will be in
//! the next iteration, so their values must be known in this one, and must neither load nor divide by a value that may
//! be zero.
//!
//! It pays if the rows of two iterations are more than a few cache lines away from each other: the hardware prefetcher
//! does not fetch these. The lines arrive while the block computes with the present tile.

use std::collections::HashSet;

use crate::{
    analysis::for_each_read,
    backend::host::plan::{
        analysis::{
            fixed_rows::is_harmless,
            strides::{Form, Forms},
        },
        plan_ir::{IterationPrefetch, MAX_THREADS, Node, Segment, for_each_segment, guards::Peeler},
    },
    ir::{
        Arith, BinaryOp, Class, ExprId, ExprKind, Leaf, LocalId, Space, SpecialRegister, Stmt, StmtKind, Type, Unit,
        for_each_expr, for_each_stmt,
    },
};

/// The maximum number of addresses of a segment.
const MAX_ADDRESSES: usize = 4;

/// An index that changes by at most this many elements between two iterations is near, for any kind of value.
const MAX_DISTANCE: u128 = 64;

/// The maximum depth of the analysis of one address.
const MAX_DEPTH: u32 = 64;

/// Finds the loads of segments in loops with barriers, and sets [`Segment::iteration_prefetches`].
pub(crate) fn find(peeler: &Peeler<'_>, nodes: &mut [Node]) {
    for node in nodes {
        if let Node::Loop { body, step, .. } = node
            && body.iter().any(holds_barrier)
        {
            let assigned_locals = AssignedLocals::of(body, step);
            for at in 0..body.len() {
                let values = assigned_locals.next(peeler, at, body, step);
                let mut found = |segment: &mut Segment| {
                    // The addresses of a tile's cells are not those of the block's threads.
                    if segment.shape.is_none() {
                        segment.iteration_prefetches = loads(peeler, &assigned_locals, &values, segment);
                    }
                };
                match &mut body[at] {
                    Node::Segment(segment) => found(segment),
                    node @ (Node::If { .. } | Node::Guarded { .. } | Node::Split { .. }) => {
                        node.parts_mut().into_iter().for_each(|part| for_each_segment(part, &mut found));
                    }
                    // Segments in an inner loop belong to the iterations of that loop.
                    Node::Once { .. }
                    | Node::Barrier
                    | Node::WarpRegion(_)
                    | Node::Strips(_)
                    | Node::Loop { .. }
                    | Node::TransposedRows(_)
                    | Node::Break
                    | Node::Continue
                    | Node::Return => {}
                }
            }
        }
        for part in node.parts_mut() {
            find(peeler, part);
        }
    }
}

/// Moves the prefetches of segments to the next strips of whole rows: between the computation of a few rows each, the
/// cache completes them in time. Right after the segment's own loads, they would wait for free line fill buffers.
pub(crate) fn move_to_strips(width: u64, nodes: &mut [Node]) {
    for node in nodes {
        if let Node::Loop { body, .. } = node {
            let mut prefetching = Vec::new();
            for inside in &mut *body {
                match inside {
                    Node::Segment(segment) if !segment.iteration_prefetches.is_empty() => {
                        prefetching.push(segment.as_mut());
                    }
                    Node::Strips(strips) if strips.is_of_rows(width) => {
                        for segment in prefetching.drain(..) {
                            let (locals, recompute) = (segment.locals.clone(), segment.recompute.clone());
                            let next = segment.iteration_prefetches.clone();
                            segment.iteration_prefetches.iter_mut().for_each(|next| next.by_strips = true);
                            strips.before.push(Segment {
                                locals,
                                recompute,
                                iteration_prefetches: next,
                                ..Segment::default()
                            });
                        }
                    }
                    Node::Segment(_)
                    | Node::Strips(_)
                    | Node::Once { .. }
                    | Node::If { .. }
                    | Node::Guarded { .. }
                    | Node::Split { .. }
                    | Node::Barrier
                    | Node::WarpRegion(_)
                    | Node::Loop { .. }
                    | Node::TransposedRows(_)
                    | Node::Break
                    | Node::Continue
                    | Node::Return => {}
                }
            }
        }
        for part in node.parts_mut() {
            move_to_strips(width, part);
        }
    }
}

/// Whether a node contains a barrier.
fn holds_barrier(node: &Node) -> bool {
    matches!(node, Node::Barrier | Node::WarpRegion(_)) || node.parts().into_iter().flatten().any(holds_barrier)
}

/// The locals that a loop assigns.
struct AssignedLocals {
    /// All of them.
    assigned: HashSet<LocalId>,
    /// Those with an assignment that is not a plain statement of the loop's uniform code: some iterations may not
    /// execute it.
    unknown: HashSet<LocalId>,
}

impl AssignedLocals {
    fn of(body: &[Node], step: &[Node]) -> Self {
        let mut this = Self { assigned: HashSet::new(), unknown: HashSet::new() };
        for node in body.iter().chain(step) {
            if let Node::Once { block, .. } = node {
                for stmt in block {
                    match stmt.kind {
                        StmtKind::Assign(local, _) => this.assigned.extend([local]),
                        StmtKind::Store { .. }
                        | StmtKind::Op { .. }
                        | StmtKind::Call { .. }
                        | StmtKind::If { .. }
                        | StmtKind::Loop { .. }
                        | StmtKind::Break
                        | StmtKind::Continue
                        | StmtKind::Return(_) => this.assign(std::slice::from_ref(stmt)),
                    }
                }
            } else {
                this.inside(node);
            }
        }
        this
    }

    fn inside(&mut self, node: &Node) {
        match node {
            Node::Once { block, .. } => self.assign(block),
            Node::Segment(segment) => self.assign(&segment.body),
            Node::If { .. }
            | Node::Guarded { .. }
            | Node::Split { .. }
            | Node::Barrier
            | Node::WarpRegion(_)
            | Node::Strips(_)
            | Node::Loop { .. }
            | Node::TransposedRows(_)
            | Node::Break
            | Node::Continue
            | Node::Return => node.parts().into_iter().flatten().for_each(|part| self.inside(part)),
        }
    }

    fn assign(&mut self, block: &[Stmt]) {
        for_each_stmt(block, &mut |stmt| {
            self.assigned.extend(stmt.kind.assigned());
            self.unknown.extend(stmt.kind.assigned());
        });
    }

    /// The assignments from after a node of the body until the same node of the next iteration, in order, as far as
    /// their values are known.
    fn next(&self, peeler: &Peeler<'_>, at: usize, body: &[Node], step: &[Node]) -> Vec<(LocalId, ExprId)> {
        let mut unknown = self.unknown.clone();
        let mut values = Vec::new();
        for node in body[at + 1..].iter().chain(step).chain(&body[..at]) {
            let Node::Once { block, .. } = node else { continue };
            for stmt in block {
                let StmtKind::Assign(local, value) = stmt.kind else { continue };
                let mut known =
                    !unknown.contains(&local) && legal!("next_iteration.no-fault", is_harmless(peeler.function, value));
                for_each_read(peeler.function, value, &mut |read| known &= !unknown.contains(&read));
                if known {
                    values.push((local, value));
                } else {
                    unknown.insert(local);
                    values.retain(|&(other, _)| other != local);
                }
            }
        }
        values
    }
}

/// The unit-stride loads of a segment from global memory whose addresses are far away in the next iteration. Those of
/// the steady state stand for the others, which have the same addresses, or addresses near them that are clamped.
fn loads(
    peeler: &Peeler<'_>,
    assigned_locals: &AssignedLocals,
    values: &[(LocalId, ExprId)],
    segment: &Segment,
) -> Vec<IterationPrefetch> {
    let Peeler { function, uniformity, fixed, .. } = peeler;
    let shared = |local: LocalId| !uniformity.local_varies(local);
    let mut assigned = vec![0_u32; function.locals.len()];
    let body = segment.steady_state().map_or(&segment.body, |piece| &piece.body);
    for_each_stmt(body, &mut |stmt| {
        stmt.kind.assigned().into_iter().for_each(|local| assigned[local.index()] += 1);
    });
    // Assignments whose values are known when a thread starts.
    let mut made: Vec<(LocalId, ExprId)> = Vec::new();
    let mut found: Vec<IterationPrefetch> = Vec::new();
    for stmt in body {
        let is_known = |made: &[(LocalId, ExprId)], local: LocalId| {
            let in_turn = values.iter().any(|&(next, _)| next == local);
            let stays = !assigned_locals.assigned.contains(&local) || fixed.value(local).is_some();
            let is_here = shared(local) || segment.recompute.contains(&local);
            (shared(local) && in_turn) || (stays && is_here) || made.iter().any(|&(made, _)| made == local)
        };
        let all_known = |made: &[(LocalId, ExprId)], root: ExprId| {
            let mut known = legal!("next_iteration.no-fault", is_harmless(function, root));
            for_each_read(function, root, &mut |local| known &= is_known(made, local));
            known
        };
        let sole = |local: LocalId| made.iter().find_map(|&(other, value)| (other == local).then_some(value));
        let forms = Forms { function, fixed, shared: &shared, sole: &sole, axis: 0 };
        let mut note = |id: ExprId| {
            let ExprKind::Load(pointer, _) = function.exprs[id].kind else { return };
            let Type::Ptr(elem, Space::Global) = function.exprs[pointer].ty else { return };
            let Class::Address { base, by, unit: Unit::Elements } = function.class(pointer) else { return };
            let is_row = forms.form(base) == Form::Same && forms.form(by) == Form::Step;
            let is_known = all_known(&made, pointer);
            if !is_row || !is_known || found.len() == MAX_ADDRESSES {
                return;
            }
            let all: Vec<_> = values.iter().chain(&made).copied().collect();
            let values = needed(peeler, &all, pointer);
            if (Moves { peeler, values: &values }).is_far(by, MAX_DEPTH) {
                found.push(IterationPrefetch { pointer, size: elem.size_bytes(), values, by_strips: false });
            }
        };
        for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
            inner.kind.exprs().into_iter().for_each(|root| for_each_expr(function, root, &mut note));
        });
        if let StmtKind::Assign(local, value) = stmt.kind
            && assigned[local.index()] == 1
            && all_known(&made, value)
        {
            made.push((local, value));
        }
    }
    found
}

/// The change of expressions between iterations, computed from assignments.
struct Moves<'a> {
    peeler: &'a Peeler<'a>,
    values: &'a [(LocalId, ExprId)],
}

impl Moves<'_> {
    /// Whether an index in the next iteration is too far away for the hardware prefetcher: its change is more than a
    /// small step of an induction variable.
    fn is_far(&self, id: ExprId, effort: u32) -> bool {
        let function = &*self.peeler.function;
        let Some(effort) = effort.checked_sub(1) else { return true };
        let mut changes = false;
        for_each_read(function, id, &mut |local| changes |= self.values.iter().any(|&(other, _)| other == local));
        if !changes {
            return false;
        }
        match function.class(id) {
            Class::Leaf(Leaf::Local(local)) => {
                let value = self.values.iter().rev().find_map(|&(other, value)| (other == local).then_some(value));
                let Some(value) = value else { return false };
                let (mut counts, mut others) = (false, false);
                for_each_read(function, value, &mut |read| {
                    counts |= read == local;
                    others |= read != local;
                });
                if counts { others } else { self.is_far(value, effort) }
            }
            Class::Arith(Arith::Convert(inner)) => self.is_far(inner, effort),
            Class::Arith(
                Arith::Binary(BinaryOp::Add | BinaryOp::AddExact | BinaryOp::Sub | BinaryOp::SubExact, a, b)
                | Arith::Select(_, a, b),
            ) => self.is_far(a, effort) || self.is_far(b, effort),
            Class::Arith(Arith::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b)) => {
                if self.is_little(a, b) {
                    self.is_far(b, effort)
                } else {
                    !self.is_little(b, a) || self.is_far(a, effort)
                }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => true,
        }
    }

    /// Whether `times * value` changes little if `value` does: `times` is at most [`MAX_DISTANCE`], or at most
    /// the size of a block and `value` is uniform. A uniform value is the number of a tile, a varying one may be that
    /// of a thread's row of a matrix.
    fn is_little(&self, times: ExprId, value: ExprId) -> bool {
        let Peeler { function, uniformity, .. } = self.peeler;
        let times = match function.class(times) {
            Class::Leaf(Leaf::Special(SpecialRegister::BlockDim(_))) => u128::from(MAX_THREADS),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => match function.int(times) {
                Some(times) => times.unsigned_abs(),
                None => return false,
            },
        };
        times <= MAX_DISTANCE || (times <= u128::from(MAX_THREADS) && !uniformity.varies(function, value))
    }
}

/// The assignments that an expression depends on.
fn needed(peeler: &Peeler<'_>, all: &[(LocalId, ExprId)], root: ExprId) -> Vec<(LocalId, ExprId)> {
    let mut reads = HashSet::new();
    for_each_read(peeler.function, root, &mut |local| reads.extend([local]));
    let mut needed: Vec<(LocalId, ExprId)> = Vec::new();
    for &(local, value) in all.iter().rev() {
        if reads.contains(&local) {
            for_each_read(peeler.function, value, &mut |local| reads.extend([local]));
            needed.push((local, value));
        }
    }
    needed.reverse();
    needed
}
