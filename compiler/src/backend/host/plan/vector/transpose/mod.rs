//! Register transposes of strided accesses (interleave groups): each thread of a strip traverses a row of its own.
//!
//! ```text
//! for k in 0..n:                            for k in 0..n by 16:
//!     total += a[i, k] * x[k]                   rows[lane] = a[i + lane, k..k + 16]        # 16 vector loads
//!                                               columns = transpose(rows)                  # in registers
//!                                               for j in 0..16:
//!                                                   total += columns[j] * x[k + j]         # a vector of 16 threads
//! ```
//!
//! In one iteration, the threads of a strip load elements with the stride of a row. In 16 iterations each thread loads
//! contiguous elements, which are one vector. The transpose makes a vector of threads for each iteration. The
//! iterations execute in order, and so do the additions.
//!
//! Legal for a counted loop with step 1 that is left by its first test only, and whose body has no nested loops, calls
//! or operations. Each access is uniform across threads, contiguous across threads, or along a row. No address is
//! loaded that the program does not load: an *early load* (one that executes before its iteration) may depend on
//! `k != i` only, and the emitted code computes up to which iteration all threads execute all loads. The loop must not
//! write what is loaded early, except by [stores along rows](stores) with an alias check. Lanes may have different trip
//! counts (`loops/interchange/lane_trip_counts`), if the body has no effect for lanes that have left.
//!
//! Pays for one to four rows per loop, on CPUs with masked vectors.

mod exprs;
mod stores;
mod transposition;

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use crate::{
    analysis::{any_expr, for_each_read, same},
    backend::host::plan::{
        analysis::{guarded, strides::Form},
        plan_ir::{
            InterchangedLoops, LaneTripCounts, Node, Segment, Strips, TransposedLoad, TransposedRows, for_each_segment,
            guards::Peeler,
        },
        vector::transpose::{
            exprs::MAX_EXPRS,
            transposition::{Known, Transposition, Written},
        },
    },
    ir::{
        Arith, BinaryOp, Block, Class, CompareOp, Expr, ExprId, ExprKind, Function, Leaf, LocalId, Stmt, StmtKind,
        UnaryOp, for_each_stmt,
    },
};

/// Most accesses along rows in a loop.
const MAX_ROWS: usize = 4;

/// Rewrites strips with strided accesses, if every loop with such accesses (`InterchangedLoops::strided`) can be
/// transposed.
pub(crate) fn make(peeler: &mut Peeler<'_>, interchanged: &InterchangedLoops, nodes: &mut [Node]) {
    for node in nodes {
        if let Node::Strips(strips) = node {
            if strips.scalar {
                rewrite(peeler, interchanged, strips);
            }
            continue;
        }
        for part in node.parts_mut() {
            make(peeler, interchanged, part);
        }
    }
}

/// Rewrites one strip.
fn rewrite(peeler: &mut Peeler<'_>, interchanged: &InterchangedLoops, strips: &mut Strips) {
    let mut nodes = strips.nodes.clone();
    // LLVM vectorizes over threads only if their code is straight. Segments with loops run lane by lane.
    let mut straight = true;
    for_each_segment(&mut nodes, &mut |segment| {
        for_each_stmt(&segment.body, &mut |stmt| match stmt.kind {
            StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::If { .. } => {}
            StmtKind::Loop { .. } | StmtKind::Break | StmtKind::Continue => segment.scalar_lanes = true,
            StmtKind::Op { .. } | StmtKind::Call { .. } | StmtKind::Return(_) => {
                straight = false;
            }
        });
    });
    if straight && list(peeler, interchanged, &mut nodes).is_some() {
        strips.nodes = nodes;
        (strips.scalar, strips.transposed, strips.width) = (false, true, Strips::BLOCK_WIDTH);
    }
}

/// Rewrites the loops with strided accesses in a list; `None` if one of them cannot be transposed.
fn list(peeler: &mut Peeler<'_>, interchanged: &InterchangedLoops, nodes: &mut Vec<Node>) -> Option<()> {
    for mut node in std::mem::take(nodes) {
        match &mut node {
            Node::Loop {
                counter: Some(counter), active: None, mask: None, continue_mask: None, body, step, ..
            } if interchanged.strided.contains(counter) => {
                let lane_trip_counts = interchanged.lane_trip_counts.iter().find(|counts| counts.counter == *counter);
                let transposed =
                    Transposition::of(peeler, *counter, lane_trip_counts, body, step)?.transposed(body, step)?;
                if let Some(lane_trip_counts) = lane_trip_counts {
                    let lane_max = Some((lane_trip_counts.max_limit, lane_trip_counts.limit));
                    nodes.push(Node::Segment(Box::new(Segment { lane_max, ..transposed.rows.clone() })));
                }
                body.truncate(1);
                body.push(Node::TransposedRows(Box::new(transposed)));
                step.clear();
            }
            Node::If { then: first, otherwise: second, .. }
            | Node::Split { then: first, otherwise: second, .. }
            | Node::Loop { body: first, step: second, .. } => {
                list(peeler, interchanged, first)?;
                list(peeler, interchanged, second)?;
            }
            Node::Guarded { inside, .. } => list(peeler, interchanged, inside)?,
            Node::Strips(strips) => list(peeler, interchanged, &mut strips.nodes)?,
            Node::Segment(_)
            | Node::Once { .. }
            | Node::TransposedRows(_)
            | Node::Barrier
            | Node::WarpRegion(_)
            | Node::Break
            | Node::Continue
            | Node::Return => {}
        }
        nodes.push(node);
    }
    Some(())
}

impl<'a, 'b> Transposition<'a, 'b> {
    /// Matches a loop that begins with its test, has no other exit, and counts by one. The body of a [`Node::Loop`] does
    /// not assign its counter, which is uniform if the loop has no mask.
    fn of(
        peeler: &'a mut Peeler<'b>,
        counter: LocalId,
        lane_trip_counts: Option<&LaneTripCounts>,
        body: &[Node],
        step: &[Node],
    ) -> Option<Self> {
        let (mut assigned, mut fetched, mut stores) = (BTreeSet::new(), BTreeSet::new(), false);
        for node in &body[1..] {
            let block = match node {
                Node::Once { active: None, block, .. } => block,
                Node::Segment(segment) => {
                    fetched.extend(segment.load.iter().copied());
                    &segment.body
                }
                Node::Once { .. }
                | Node::If { .. }
                | Node::Guarded { .. }
                | Node::Split { .. }
                | Node::Barrier
                | Node::WarpRegion(_)
                | Node::Strips(_)
                | Node::Loop { .. }
                | Node::TransposedRows(_)
                | Node::Break
                | Node::Continue
                | Node::Return => return None,
            };
            for_each_stmt(block, &mut |stmt| {
                assigned.extend(stmt.kind.assigned());
                stores |= matches!(stmt.kind, StmtKind::Store { .. });
            });
        }
        let [Node::Once { active: None, block, .. }] = step else { return None };
        let [Stmt { kind: StmtKind::Assign(local, sum), .. }] = block.as_slice() else { return None };
        let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b) = peeler.function.exprs[*sum].kind else {
            return None;
        };
        let by_one = peeler.function.local(a) == Some(counter) && peeler.function.int(b) == Some(1);
        (*local == counter && by_one).then(|| Self {
            peeler,
            counter,
            lane_trip_counts: lane_trip_counts.copied(),
            branches: 0,
            assigned,
            fetched,
            stores,
            touches: false,
            loads: Vec::new(),
            written: Written::default(),
            lists: Vec::new(),
            n_lists: 0,
            around: Vec::new(),
            unconditional_tests: BTreeSet::new(),
            partial: Vec::new(),
            uniform_loads: Vec::new(),
        })
    }

    pub(crate) fn function(&self) -> &Function {
        self.peeler.function
    }

    /// The transposed loop; `None` if it is not legal.
    fn transposed(mut self, body: &[Node], step: &[Node]) -> Option<TransposedRows> {
        let (test, iteration) = body.split_first()?;
        let limit = self.limit(test)?;
        let mut known = Known::new();
        for node in iteration {
            match node {
                Node::Once { block, .. } => {
                    for stmt in block {
                        let StmtKind::Assign(local, value) = stmt.kind else { return None };
                        self.reads_once(value);
                        let value = self.inline(value, &known);
                        known.insert(local, value);
                    }
                }
                Node::Segment(segment) => self.block(&segment.body, &mut known, &[])?,
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
                | Node::Return => return None,
            }
        }
        let alias_checks = self.alias_checks()?;
        if !(1..=MAX_ROWS).contains(&(self.loads.len() + self.written.rows.len())) {
            return None;
        }
        let unmasked = (!self.stores || !self.written.rows.is_empty()) && !self.touches;
        // Lanes without an iteration left execute it, too; their results are discarded.
        if !legal!("transpose.no-effect", self.lane_trip_counts.is_none() || unmasked) {
            return None;
        }
        self.unconditional_tests.extend(self.lane_trip_counts.map(|counts| counts.has_iteration));
        let mut nodes = iteration.to_vec();
        let mut last_values = BTreeSet::new();
        for_each_segment(&mut nodes, &mut |segment| last_values.extend(segment.store.iter().copied()));
        Some(TransposedRows {
            counter: self.counter,
            limit,
            lane_limit: self.lane_trip_counts.map(|counts| counts.limit),
            rows: self.rows()?,
            last_values: if self.lane_trip_counts.is_some() { last_values.into_iter().collect() } else { Vec::new() },
            unmasked,
            alias_checks,
            unconditional: iteration.iter().map(|node| self.unconditional(node)).collect(),
            nodes,
            step: step.to_vec(),
            loads: self.loads,
            stores: self.written.rows,
            uniform_loads: self.uniform_loads,
            partial: self.partial,
        })
    }

    /// A node of an iteration in which all conditions of `unconditional_tests` hold.
    fn unconditional(&self, node: &Node) -> Node {
        let mut node = node.clone();
        if let Node::Segment(segment) = &mut node {
            segment.body = self.spliced(&segment.body);
        }
        node
    }

    /// Statements without the branches on conditions of `unconditional_tests`, whose arms are always executed.
    fn spliced(&self, block: &Block) -> Block {
        let mut done = Block::new();
        for stmt in block {
            match &stmt.kind {
                StmtKind::If { cond, then, otherwise } if self.unconditional_tests.contains(cond) => {
                    done.extend(self.spliced(if then.is_empty() { otherwise } else { then }));
                }
                &StmtKind::Store { pointer, value, align } => {
                    let pointer = self.written.copy_of(pointer).unwrap_or(pointer);
                    done.push(Stmt { kind: StmtKind::Store { pointer, value, align }, span: stmt.span });
                }
                StmtKind::If { .. }
                | StmtKind::Assign(..)
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => done.push(stmt.clone()),
            }
        }
        done
    }

    /// The loop-invariant limit of the counter.
    fn limit(&self, test: &Node) -> Option<ExprId> {
        let Node::If { cond, then, otherwise } = test else { return None };
        let kind = |id: ExprId| &self.function().exprs[id].kind;
        let ExprKind::Unary(UnaryOp::Not, holds) = *kind(*cond) else { return None };
        let ExprKind::Compare(CompareOp::Lt, counter, limit) = *kind(holds) else { return None };
        let leaves = matches!(then.as_slice(), [Node::Break]) && otherwise.is_empty();
        let changes = any_expr(self.function(), limit, &|kind| match kind.class() {
            Class::Load(_) => true,
            Class::Leaf(Leaf::Local(local)) => local == self.counter || self.assigned.contains(&local),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => false,
        });
        (leaves && legal!("transpose.same-limit", !changes) && self.function().local(counter) == Some(self.counter))
            .then_some(limit)
    }

    /// Analyzes statements that a thread executes under conditions on the counter.
    fn block(&mut self, block: &Block, known: &mut Known, excluding: &[ExprId]) -> Option<()> {
        self.around.push(self.n_lists);
        self.n_lists += 1;
        for stmt in block {
            for root in stmt.kind.exprs() {
                self.expr(root, known)?;
            }
            match &stmt.kind {
                StmtKind::Assign(local, value) => {
                    let value = self.inline(*value, known);
                    known.insert(*local, value);
                }
                StmtKind::Store { pointer, .. } => self.store(*pointer, known)?,
                StmtKind::If { cond, then, .. }
                    if self.lane_trip_counts.is_some_and(|counts| counts.has_iteration == *cond) =>
                {
                    self.block(then, &mut known.clone(), excluding)?;
                    known.extend(inner_locals(stmt));
                }
                StmtKind::If { cond, then, otherwise } => {
                    self.branches += 1;
                    let (arm, other) = if then.is_empty() { (otherwise, then) } else { (then, otherwise) };
                    let mut all = excluding.to_vec();
                    let unconditional_tests = self.ask(*cond, known, then.is_empty(), &mut all);
                    let before = (self.loads.len(), self.uniform_loads.len());
                    self.block(arm, &mut known.clone(), &all)?;
                    let loads = (self.loads.len(), self.uniform_loads.len()) != before;
                    if loads && unconditional_tests {
                        self.partial.extend(all);
                        self.unconditional_tests.insert(*cond);
                    }
                    let before = (self.loads.len(), self.uniform_loads.len());
                    self.block(other, &mut known.clone(), excluding)?;
                    // An early load under any other condition is not legal.
                    let other_loads = (self.loads.len(), self.uniform_loads.len()) != before;
                    if !legal!("transpose.loads-of-all", !loads || unconditional_tests)
                        || !legal!("transpose.loads-of-one-arm", !other_loads)
                    {
                        return None;
                    }
                    known.extend(inner_locals(stmt));
                    self.branches -= 1;
                }
                StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => return None,
            }
        }
        self.around.pop();
        Some(())
    }

    /// Adds the values that the counter must not have for a condition, or its negation, to hold. Returns `false` if the
    /// condition requires anything else.
    fn ask(&mut self, cond: ExprId, known: &Known, negated: bool, excluding: &mut Vec<ExprId>) -> bool {
        match self.function().class(cond) {
            Class::Arith(Arith::Unary(UnaryOp::Not, a)) => self.ask(a, known, !negated, excluding),
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) if !negated => {
                self.ask(a, known, false, excluding) && self.ask(b, known, false, excluding)
            }
            Class::Arith(Arith::Binary(BinaryOp::Or, a, b)) if negated => {
                self.ask(a, known, true, excluding) && self.ask(b, known, true, excluding)
            }
            Class::Arith(Arith::Compare(op, a, b)) => {
                let differs = op == if negated { CompareOp::Eq } else { CompareOp::Ne };
                let (Some(a), Some(b)) = (self.inline(a, known), self.inline(b, known)) else { return false };
                let value = match (self.is_counter(a), self.is_counter(b)) {
                    (true, false) if !self.counts(b) => b,
                    (false, true) if !self.counts(a) => a,
                    (true | false, true | false) => return false,
                };
                excluding.push(value);
                differs
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        }
    }

    /// Analyzes the loads of an expression, all of whose operands are evaluated.
    fn expr(&mut self, root: ExprId, known: &Known) -> Option<()> {
        let kind = self.function().exprs[root].kind.clone();
        for operand in kind.operands() {
            self.expr(operand, known)?;
        }
        self.touches |= match kind.class() {
            Class::Arith(Arith::Binary(op, ..)) => match op {
                BinaryOp::Div
                | BinaryOp::FloorDiv
                | BinaryOp::FloorMod
                | BinaryOp::DivNonneg
                | BinaryOp::ModNonneg
                | BinaryOp::Pow => !self.function().exprs[root].ty.scalar().is_some_and(Scalar::is_float),
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::AddExact
                | BinaryOp::SubExact
                | BinaryOp::MulExact
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::Shl
                | BinaryOp::Shr
                | BinaryOp::Min
                | BinaryOp::Max => false,
            },
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        };
        let ExprKind::Load(pointer, align) = kind else { return Some(()) };
        let pointer = self.inline(pointer, known)?;
        let form = self.neighbors(pointer);
        let may_move = legal!("transpose.not-written", !self.stores || self.is_never_written(pointer));
        match form {
            // A uniform load is executed once per iteration, before the test of each lane. LLVM would repeat a load
            // under this test for each lane.
            Some(Form::Same) if !may_move => return None,
            Some(Form::Same) => {
                let pointer = self.of_all(pointer, &mut { MAX_EXPRS })?;
                let Expr { ty, span, .. } = self.function().exprs[root];
                let ahead = Expr { kind: ExprKind::Load(pointer, align), ty, span };
                let ahead = self.peeler.function.exprs.push(ahead);
                self.uniform_loads.push((root, ahead));
            }
            Some(Form::Step | Form::Other) => {
                self.touches = true;
                self.reads_in_iteration(pointer);
            }
            None if self.reads_stored(root, pointer) => {}
            None => {
                if self.goes_on(pointer) != Some(true) || !self.is_plain(pointer) {
                    return None;
                }
                let number = self.add(root, pointer);
                if !may_move {
                    self.reads_unsure(number);
                }
            }
        }
        Some(())
    }

    /// `true` if the current statement is under a condition.
    pub(crate) fn is_in_branch(&self) -> bool {
        self.branches > 0
    }

    /// Adds an early load, and returns its number.
    fn add(&mut self, load: ExprId, pointer: ExprId) -> usize {
        for (number, before) in self.loads.iter().enumerate() {
            if self.around.contains(&self.lists[number]) && same(self.peeler.function, before.pointer, pointer) {
                self.loads[number].loads.push(load);
                return number;
            }
        }
        self.lists.extend(self.around.last());
        let uniform_stride = self.forms(|forms| forms.has_uniform_stride(pointer));
        self.loads.push(TransposedLoad { loads: vec![load], pointer, uniform_stride });
        self.loads.len() - 1
    }

    /// The locals that a thread needs to compute its addresses, and the iterations in which it does not execute all
    /// loads.
    fn rows(&self) -> Option<Segment> {
        let Peeler { function, uniformity, fixed, .. } = &*self.peeler;
        let own = |local: LocalId| uniformity.local_varies(local);
        let mut read = BTreeSet::new();
        let loads = self.loads.iter().map(|load| load.pointer);
        let stores = self.written.rows.iter().map(|store| store.pointer);
        let limit = self.lane_trip_counts.map(|counts| counts.limit);
        for root in loads.chain(stores).chain(self.partial.iter().copied()).chain(limit) {
            for_each_read(function, root, &mut |local| {
                read.insert(local);
            });
        }
        let mut rows = Segment::default();
        for local in read.into_iter().filter(|&local| own(local)) {
            if fixed.value(local).is_some() {
                guarded::recompute(function, fixed, &own, local, &mut rows.recompute);
            } else if self.fetched.contains(&local) {
                rows.load.push(local);
            } else {
                return None;
            }
        }
        rows.locals = rows.load.iter().chain(&rows.recompute).copied().collect();
        Some(rows)
    }
}

/// Locals that a branch assigns: their values are unknown after it.
fn inner_locals(stmt: &Stmt) -> Vec<(LocalId, Option<ExprId>)> {
    let mut assigned = Vec::new();
    for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
        assigned.extend(inner.kind.assigned().into_iter().map(|local| (local, None)));
    });
    assigned
}
