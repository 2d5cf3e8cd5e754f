//! The verifier of plans: what the emitter assumes about nodes and segments.
//!
//! - Handles: each expression, local, array and mask that the plan mentions exists.
//! - Regions: statements of segments contain no barrier, so each barrier is a boundary between nodes. Code that runs
//!   once for the block assigns and reads uniform locals only and has no effect on memory; threads assign no uniform
//!   local. Conditions of uniform branches are uniform.
//! - Values: a segment loads or rematerializes each varying local that it may read before it assigns it, and each local
//!   that it loads or stores has a context array, or an array in the strip around it.
//! - Guards read uniform and rematerializable locals only, and compute the latter in an order in which each value is
//!   there. The bound of a range has the type of its value and is uniform in the row.
//! - Masks: a node names only masks that the nodes around it have set, and a node inside of another one's guard has
//!   that guard.
//! - Domains: only a segment that runs for each thread is split. A split has as many pieces and values as its kind needs,
//!   and no value of a piece's guard wraps.
//! - Strips contain segments for each thread without masks and splits; those with arrays of lanes have one row.
//! - Jumps: `break` and `continue` are in a loop; a segment that jumps has masks for it.
//!
//! [`Values`](Progress::Values) and the order in guards are checked from the pass on that computes them.

use std::collections::BTreeSet;

use crate::{
    analysis::{escapes, for_each_mention, for_each_read},
    backend::host::plan::{
        analysis::{liveness::Uses, structure::holds_barrier},
        mentions::Mentions,
        plan_ir::{Guard, MaskId, Node, Piece, Plan, Range, Runs, Segment, Split, SplitBy, Strips, TransposedRows},
    },
    ir::{Block, CompareOp, ExprId, ExprKind, Function, LocalArrayId, LocalId, StmtKind, Type, for_each_stmt},
};

/// What the passes have computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// The nodes.
    Nodes,
    /// What each segment loads, stores and rematerializes.
    Values,
    /// The whole plan: all guards compute the locals that they read.
    Plan,
}

/// Returns the rules that the nodes of a plan break. `function` is the kernel; `varies` returns whether a local is
/// varying.
pub(crate) fn verify(
    plan: &Plan,
    function: &Function,
    varies: &dyn Fn(LocalId) -> bool,
    progress: Progress,
) -> Vec<String> {
    let mut verifier = Verifier { plan, function, varies, progress, segment: 0, errors: Vec::new() };
    verifier.handles(Mentions::of_plan(plan));
    // The other rules read what the handles lead to.
    if verifier.errors.is_empty() {
        let mut around = Around::default();
        around.masks.extend(plan.cut.alive);
        verifier.nodes(&plan.cut.nodes, &around);
    }
    verifier.errors
}

/// Returns the handles in the statements of a kernel that lead nowhere. Statements of a plan need not have the other
/// properties that weft's IR has: expressions are shared, and registers such as those of a row exist in plans only.
pub(crate) fn statements(plan: &Plan, function: &Function, body: &Block) -> Vec<String> {
    let mut verifier =
        Verifier { plan, function, varies: &|_| true, progress: Progress::Nodes, segment: 0, errors: Vec::new() };
    verifier.handles(Mentions { blocks: vec![body], ..Mentions::default() });
    verifier.errors
}

/// The nodes around a position.
#[derive(Clone, Default)]
struct Around<'a> {
    /// The masks that they have set.
    masks: Vec<MaskId>,
    /// Their guards.
    guard: Guard,
    in_loop: bool,
    strips: Option<&'a Strips>,
}

struct Verifier<'a> {
    plan: &'a Plan,
    function: &'a Function,
    varies: &'a dyn Fn(LocalId) -> bool,
    progress: Progress,
    /// The number of segments before the position, for messages.
    segment: u32,
    errors: Vec<String>,
}

impl<'a> Verifier<'a> {
    fn error(&mut self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.errors.push(text());
        }
    }

    fn name(&self, local: LocalId) -> String {
        name_of(self.function, local)
    }

    fn varies(&self, local: LocalId) -> bool {
        (self.varies)(local)
    }

    fn reads(&self, root: ExprId) -> Vec<LocalId> {
        let mut reads = Vec::new();
        for_each_read(self.function, root, &mut |local| reads.push(local));
        reads
    }

    /// The varying locals that expressions read.
    fn varying_reads(&self, roots: impl Iterator<Item = ExprId>) -> Vec<LocalId> {
        roots.flat_map(|root| self.reads(root)).filter(|&local| self.varies(local)).collect()
    }

    fn handles(&mut self, mentions: Mentions<'_>) {
        let Mentions { blocks, mut exprs, mut locals, masks } = mentions;
        for block in blocks {
            for_each_stmt(block, &mut |stmt| {
                exprs.extend(stmt.kind.exprs());
                locals.extend(stmt.kind.assigned());
                if let StmtKind::Call { func, .. } = stmt.kind {
                    let exists = self.plan.module.functions.get(func).is_some();
                    self.error(exists, || format!("there is no function {}", func.index()));
                }
            });
        }
        let mut seen = BTreeSet::new();
        while let Some(id) = exprs.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some(expr) = self.function.exprs.get(id) else {
                self.errors.push(format!("there is no expression %{}", id.index()));
                continue;
            };
            exprs.extend(expr.kind.operands());
            match expr.kind {
                ExprKind::Local(local) => locals.push(local),
                ExprKind::LocalBase(array) => {
                    let exists = self.function.local_arrays.get(array).is_some();
                    self.error(exists, || format!("there is no local array {}", array.index()));
                }
                ExprKind::SharedBase(array) => {
                    let exists = self.plan.module.shared.get(array).is_some();
                    self.error(exists, || format!("there is no shared array {}", array.index()));
                }
                ExprKind::ConstBase(array) => {
                    let exists = self.plan.module.constants.get(array).is_some();
                    self.error(exists, || format!("there is no constant array {}", array.index()));
                }
                ExprKind::Const(_)
                | ExprKind::Special(_)
                | ExprKind::Unary(..)
                | ExprKind::Binary(..)
                | ExprKind::Compare(..)
                | ExprKind::Select(..)
                | ExprKind::Convert(_)
                | ExprKind::Math(..)
                | ExprKind::Load(..)
                | ExprKind::Offset { .. }
                | ExprKind::ByteOffset { .. }
                | ExprKind::DynamicShared
                | ExprKind::Wrap { .. } => {}
            }
        }
        for local in locals {
            let exists = self.function.locals.get(local).is_some();
            self.error(exists, || format!("there is no local {}", local.index()));
        }
        for mask in masks {
            let n_masks = self.plan.cut.masks;
            self.error(mask < n_masks, || format!("there is no mask {mask}: the plan has {n_masks}"));
        }
    }

    fn nodes(&mut self, nodes: &'a [Node], around: &Around<'a>) {
        for node in nodes {
            self.node(node, around);
        }
    }

    fn node(&mut self, node: &'a Node, around: &Around<'a>) {
        match node {
            Node::Once { active, guard, block } => {
                self.active(*active, around);
                self.guard(guard.as_ref(), "code for the block");
                self.once(block);
            }
            Node::Segment(segment) => self.segment(segment, around),
            Node::If { cond, then, otherwise } => {
                let of_strip = self.plan.masked_loops.iter().any(|of| of.active_lane_test(*cond).is_some());
                let varying = self.reads(*cond).into_iter().find(|&local| self.varies(local));
                self.error(of_strip || varying.is_none(), || "the condition of a uniform branch varies".to_owned());
                self.error(self.function.exprs[*cond].ty == Type::BOOL, || "a condition is no boolean".to_owned());
                self.nodes(then, around);
                self.nodes(otherwise, around);
            }
            Node::Guarded { guard, inside } => {
                self.guard(Some(guard), "a guarded region");
                self.error(around.strips.is_none(), || "a guarded region is in a strip".to_owned());
                let mut around = around.clone();
                around.guard.add(guard);
                self.nodes(inside, &around);
            }
            Node::Split { active, guard, cond, then_mask, else_mask, then, otherwise } => {
                self.active(*active, around);
                self.guard(guard.as_ref(), "a divergent branch");
                self.error(around.strips.is_none(), || "a divergent branch is in a strip".to_owned());
                self.error(self.function.locals[*cond].ty == Type::BOOL, || "a condition is no boolean".to_owned());
                let is_own = |mask: &MaskId| !around.masks.contains(mask);
                let are_own = then_mask != else_mask && is_own(then_mask) && is_own(else_mask);
                self.error(are_own, || format!("masks {then_mask} and {else_mask} of a branch are in use"));
                let has_context = self.progress < Progress::Values || self.plan.live_across.locals.contains(cond);
                let name = self.name(*cond);
                self.error(has_context, || format!("the condition {name} of a branch has no context array"));
                for (mask, nodes) in [(then_mask, then), (else_mask, otherwise)] {
                    let mut around = around.clone();
                    around.masks.push(*mask);
                    self.nodes(nodes, &around);
                }
            }
            Node::Barrier => self.error(around.strips.is_none(), || "a barrier is in a strip".to_owned()),
            Node::WarpRegion(number) => {
                let n_regions = self.plan.warp_regions.len();
                let exists = (*number as usize) < n_regions;
                self.error(exists, || format!("there is no warp region {number}: the plan has {n_regions}"));
                let is_of_block = around.masks.is_empty() && around.guard.is_empty() && around.strips.is_none();
                self.error(is_of_block, || format!("warp region {number} does not run for all threads"));
            }
            Node::Strips(strips) => self.strips(strips, around),
            Node::Loop { counter, active, guard, mask, continue_mask, body, step, span: _ } => {
                self.active(*active, around);
                self.guard(guard.as_ref(), "a loop");
                // With a mask, threads may leave the loop in different iterations.
                let is_uniform = mask.is_none() && active.is_none();
                let varying = counter.filter(|&counter| is_uniform && self.varies(counter));
                let varying = varying.map(|counter| self.name(counter));
                self.error(varying.is_none(), || {
                    format!("the counter {} of a loop varies", varying.unwrap_or_default())
                });
                let mut around = around.clone();
                around.in_loop = true;
                around.masks.extend(mask);
                around.masks.extend(continue_mask);
                self.nodes(body, &around);
                self.nodes(step, &around);
            }
            Node::TransposedRows(transposed) => self.transposed_rows(transposed, around),
            Node::Break | Node::Continue => self.error(around.in_loop, || "a jump is outside of a loop".to_owned()),
            Node::Return => self.error(around.strips.is_none(), || "a return is in a strip".to_owned()),
        }
    }

    fn active(&mut self, active: Option<MaskId>, around: &Around<'_>) {
        if let Some(mask) = active {
            self.error(around.masks.contains(&mask), || format!("mask {mask} is not set here"));
        }
    }

    /// Code that runs once for the block.
    fn once(&mut self, block: &Block) {
        for_each_mention_once(self.function, block, &mut |local| {
            if (self.varies)(local) {
                let name = name_of(self.function, local);
                self.errors.push(format!("code for the block mentions the varying {name}"));
            }
        });
        let mut has_effect = false;
        for_each_stmt(block, &mut |stmt| {
            has_effect |= match stmt.kind {
                StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } | StmtKind::Return(_) => true,
                StmtKind::Assign(..)
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue => false,
            };
        });
        self.error(!has_effect, || "code for the block has an effect".to_owned());
    }

    fn segment(&mut self, segment: &Segment, around: &Around<'_>) {
        self.segment += 1;
        let at = format!("segment {}", self.segment);
        self.active(segment.active, around);
        for &mask in segment.on_return.iter().chain(&segment.on_break).chain(&segment.on_continue) {
            self.active(Some(mask), around);
        }
        self.error(!segment.body.iter().any(holds_barrier), || format!("{at} contains a barrier"));
        let ways_out = escapes(&segment.body);
        let jumps =
            (ways_out.breaks && segment.on_break.is_empty()) || (ways_out.continues && segment.on_continue.is_empty());
        self.error(!jumps, || format!("{at} jumps out of a loop of the block without a mask"));
        self.guards(segment, &at, around);
        self.split(segment, &at);
        for body in segment.bodies() {
            for_each_stmt(body, &mut |stmt| {
                for local in stmt.kind.assigned().into_iter().filter(|&local| !(self.varies)(local)) {
                    let name = name_of(self.function, local);
                    self.errors.push(format!("{at} assigns the uniform {name}"));
                }
            });
        }
        if let Some((local, _)) = segment.lane_max {
            let (name, varies) = (self.name(local), self.varies(local));
            self.error(!varies && around.strips.is_some(), || {
                format!("{at}: the maximum {name} is no uniform local of a strip")
            });
        }
        if self.progress >= Progress::Values {
            self.values(segment, &at, around);
        }
    }

    /// The locals of a segment have values.
    fn values(&mut self, segment: &Segment, at: &str, around: &Around<'_>) {
        for body in segment.bodies() {
            for_each_mention_once(self.function, body, &mut |local| {
                if (self.varies)(local) && !segment.locals.contains(&local) {
                    let name = name_of(self.function, local);
                    self.errors.push(format!("{at} has no slot for {name}"));
                }
            });
            for local in Uses::of(self.function, body).exposed {
                let is_there =
                    !self.varies(local) || segment.load.contains(&local) || segment.recompute.contains(&local);
                let name = self.name(local);
                self.error(is_there, || format!("{at} reads {name}, which it neither loads nor recomputes"));
            }
        }
        for &local in segment.load.iter().chain(&segment.store).chain(&segment.recompute) {
            let name = self.name(local);
            self.error(segment.locals.contains(&local), || format!("{at} has no slot for {name}"));
        }
        self.order(&segment.recompute, at);
        for &local in segment.load.iter().chain(&segment.store) {
            let has_array = match around.strips {
                Some(strips) => strips.lane_locals.contains(&local),
                None => self.plan.live_across.locals.contains(&local),
            };
            let name = self.name(local);
            self.error(has_array, || format!("{at} loads or stores {name}, which has no array"));
        }
    }

    /// Recomputed locals are rematerializable, and each comes after those that its value reads.
    fn order(&mut self, recompute: &[LocalId], at: &str) {
        for (number, &local) in recompute.iter().enumerate() {
            let name = self.name(local);
            let Some(value) = self.plan.fixed.value(local) else {
                self.errors.push(format!("{at} recomputes {name}, which is not rematerializable"));
                continue;
            };
            let before = &recompute[..number];
            let missing = self.reads(value).into_iter().find(|read| self.varies(*read) && !before.contains(read));
            let missing = missing.map(|read| self.name(read));
            self.error(missing.is_none(), || {
                format!("{at} recomputes {name} before {}, which it reads", missing.unwrap_or_default())
            });
        }
    }

    /// The guard of a segment, and its relation to the guards around it.
    fn guards(&mut self, segment: &Segment, at: &str, around: &Around<'_>) {
        let is_shared = match segment.runs {
            Runs::Warps | Runs::Groups => true,
            Runs::EachThread | Runs::OneThread | Runs::FirstOfGroups | Runs::FirstLanes => false,
        };
        self.error(!is_shared || segment.active.is_none(), || format!("{at} runs once for a warp, and has a mask"));
        let guard = segment.guard.as_ref().or(segment.lane_guard.as_ref());
        let is_guarded = match guard {
            _ if segment.runs == Runs::Warps => segment.guard.is_none(),
            // It has no effect on memory, and runs for the lanes of its strip.
            _ if segment.lane_max.is_some() => true,
            Some(guard) => guard.after(&around.guard).is_some(),
            None => around.guard.is_empty(),
        };
        self.error(is_guarded, || format!("{at} does not begin with the guards around it"));
        for guard in [&segment.guard, &segment.lane_guard] {
            self.guard(guard.as_ref(), at);
            self.row_conditions(guard.as_ref(), at);
        }
    }

    fn guard(&mut self, guard: Option<&Guard>, at: &str) {
        let Some(Guard { recompute, rows, ranges }) = guard else { return };
        if self.progress >= Progress::Values {
            self.order(recompute, at);
        }
        let roots =
            rows.iter().map(|&(cond, _)| cond).chain(ranges.iter().flat_map(|range| [range.value, range.bound]));
        for local in self.varying_reads(roots) {
            let name = self.name(local);
            let is_fixed = self.plan.fixed.value(local).is_some();
            self.error(is_fixed, || format!("a guard of {at} reads {name}, which is not rematerializable"));
            let is_there = self.progress < Progress::Plan || recompute.contains(&local);
            self.error(!is_fixed || is_there, || format!("a guard of {at} reads {name}, which it does not recompute"));
        }
        for range in ranges {
            self.range(range, at);
        }
    }

    /// The conditions of a guard are uniform in the row. Those of parts of a domain may read `threadIdx.x`: they are
    /// tested for the row's first thread.
    fn row_conditions(&mut self, guard: Option<&Guard>, at: &str) {
        for &(cond, _) in guard.iter().flat_map(|guard| &guard.rows) {
            let is_of_row = !self.plan.fixed.dependence(self.function, cond).x;
            self.error(is_of_row, || format!("a condition of {at} is not uniform in the row"));
        }
    }

    fn range(&mut self, range: &Range, at: &str) {
        let Range { value, op, bound, times, plus, wraps: _ } = *range;
        let [value_type, bound_type] = [value, bound].map(|id| self.function.exprs[id].ty);
        self.error(op != CompareOp::Ne, || format!("a range of {at} is no interval"));
        let is_integer = matches!(value_type, Type::I32 | Type::I64);
        self.error(is_integer && value_type == bound_type, || {
            format!("a range of {at} compares {value_type} with {bound_type}")
        });
        let is_of_row = !self.plan.fixed.dependence(self.function, bound).x;
        self.error(is_of_row, || format!("a bound of {at} is not uniform in the row"));
        let is_remainder = times >= 1 && (0..times).contains(&plus);
        self.error(is_remainder, || format!("a range of {at} has the factor {times} and the term {plus}"));
    }

    /// The split of a segment's domain.
    fn split(&mut self, segment: &Segment, at: &str) {
        let Some(Split { by, of, pieces }) = &segment.split else { return };
        let is_whole = segment.runs == Runs::EachThread;
        self.error(is_whole, || format!("{at} does not run for each thread, but its domain is split"));
        let n_pieces = if *by == SplitBy::Bit { 2 } else { 1 };
        self.error(pieces.len() == n_pieces, || format!("{at} is split in {} pieces", pieces.len()));
        self.guard(Some(of), at);
        let n_ranges = of.ranges.len();
        let wraps = |guard: &Guard| guard.ranges.iter().any(|range| range.wraps);
        for Piece { guard, body } in pieces {
            self.guard(Some(guard), at);
            // The emitted code tests for each row that no value of the guards of xor partners wraps.
            let is_exact = *by == SplitBy::Bit || !wraps(guard);
            self.error(is_exact, || format!("{at} has a piece whose guard may wrap"));
            if *by == SplitBy::ExcludedRange {
                self.row_conditions(Some(guard), at);
                let is_range = !guard.is_empty() && body.is_empty();
                self.error(is_range, || format!("{at} has an excluded range that is empty or does something"));
            }
        }
        match *by {
            SplitBy::ExcludedRange | SplitBy::SteadyState => {
                self.error(of.is_empty(), || format!("{at} is split by a range, but has values of another split"));
            }
            SplitBy::Bit => {
                let is_one = n_ranges == 1 && of.rows.is_empty();
                self.error(is_one, || format!("{at} is not split by one bit"));
            }
            SplitBy::ResidueClass { modulus, other } => {
                let n_values = if modulus.is_some() { 1 } else { 2 };
                let is_class = n_ranges == n_values && modulus.is_none_or(|modulus| modulus >= 2);
                self.error(is_class, || format!("{at} has a residue class without a modulus"));
                let is_other = !other || modulus == Some(2);
                self.error(is_other, || format!("{at} runs for the other one of more than two classes"));
            }
            SplitBy::Scaled { bounds } => {
                let is_scaled = n_ranges.is_multiple_of(2) && bounds <= n_ranges / 2;
                self.error(is_scaled, || format!("{at} has a scaled guard without two ranges for each index"));
            }
        }
    }

    fn strips(&mut self, strips: &'a Strips, around: &Around<'a>) {
        self.error(around.strips.is_none(), || "a strip is in a strip".to_owned());
        self.error(around.masks.is_empty(), || "a strip is under a mask".to_owned());
        self.error(strips.width > 0 && strips.rows > 0, || "a strip has no threads".to_owned());
        self.guard(strips.guard.as_ref(), "a strip");
        let is_flat = strips.lane_arrays.is_empty() || strips.rows == 1 && !strips.transposed && !strips.scalar;
        self.error(is_flat, || "a strip of several rows or of scalar code has arrays of lanes".to_owned());
        let has_form = |array: &LocalArrayId| self.plan.lane_arrays.contains(array);
        let are_known = strips.lane_arrays.iter().all(has_form);
        self.error(are_known, || "a strip has an array of lanes that no pass has made one".to_owned());
        for (locals, name) in [(&strips.live_in, "into"), (&strips.live_out, "out of")] {
            for &local in locals {
                let text = self.name(local);
                let has_array = strips.lane_locals.contains(&local) && self.plan_has_array(local);
                self.error(has_array, || format!("{text}, which is live {name} a strip, has no array"));
            }
        }
        for &local in &strips.shared {
            let text = self.name(local);
            let varies = self.varies(local);
            self.error(!varies, || format!("{text}, which a strip assigns for all lanes, varies"));
        }
        let around = Around { strips: Some(strips), ..around.clone() };
        self.nodes(&strips.nodes, &around);
        self.lanes(&strips.nodes);
    }

    fn plan_has_array(&self, local: LocalId) -> bool {
        self.plan.live_across.locals.contains(&local)
    }

    /// Segments of a strip run for each lane, without masks and splits.
    fn lanes(&mut self, nodes: &[Node]) {
        for node in nodes {
            if let Node::Segment(segment) = node {
                let is_plain = segment.runs == Runs::EachThread && segment.active.is_none() && segment.split.is_none();
                self.error(is_plain, || "a segment of a strip has a mask or a split domain".to_owned());
            }
            node.parts().iter().for_each(|part| self.lanes(part));
        }
    }

    fn transposed_rows(&mut self, transposed: &'a TransposedRows, around: &Around<'a>) {
        let is_in_strip = around.strips.is_some_and(|strips| strips.transposed);
        self.error(around.in_loop && is_in_strip, || {
            "transposed rows are not in a loop of transposed strips".to_owned()
        });
        let name = self.name(transposed.counter);
        let varies = self.varies(transposed.counter);
        self.error(!varies, || format!("the counter {name} of transposed rows varies"));
        self.order(&transposed.rows.recompute, "transposed rows");
        let loads = transposed.loads.iter().map(|load| load.pointer);
        for local in self.varying_reads(loads.chain(transposed.stores.iter().map(|store| store.pointer))) {
            let Segment { load, recompute, .. } = &transposed.rows;
            let (is_there, name) = (load.contains(&local) || recompute.contains(&local), self.name(local));
            self.error(is_there, || format!("an address of transposed rows reads {name}, which has no value"));
        }
        self.nodes(&transposed.nodes, around);
        self.nodes(&transposed.unconditional, around);
        self.nodes(&transposed.step, around);
    }
}

/// The name of a local, with its number.
fn name_of(function: &Function, local: LocalId) -> String {
    let name = function.locals.get(local).map_or("?", |local| local.name.as_str());
    format!("${name}.{}", local.index())
}

/// Calls `visit` once on each local that a block mentions.
fn for_each_mention_once(function: &Function, block: &Block, visit: &mut dyn FnMut(LocalId)) {
    let mut seen = BTreeSet::new();
    for_each_mention(function, block, &mut |local| {
        if seen.insert(local) {
            visit(local);
        }
    });
}

impl Plan {
    /// The rules that the plan breaks ([`verify`]).
    pub(crate) fn broken_rules(&self) -> Vec<String> {
        let varies = |local: LocalId| self.varying.get(local.index()) != Some(&false);
        verify(self, &self.module.functions[self.kernel], &varies, Progress::Plan)
    }
}
