//! The names of the transformations in a plan: the rewrites that changed the IR, and the kinds of nodes. Test
//! generators count these names to measure coverage.
//!
//! Names are in kebab case. A test compares [`ALL`] with the table in `docs/design/cpu-plans.md`.

use std::collections::BTreeSet;

use crate::{
    backend::host::plan::{
        analysis::fixed_rows,
        plan_ir::{ALL, Guard, Node, Plan, Runs, Segment, SplitBy, Strips, TransposedRows, Vectors},
        prefetch::next_block::streams,
    },
    ir::{Block, Function},
};

/// The text form of a kernel. During planning, the function's body is in `body`.
pub(super) fn text(function: &mut Function, body: &mut Block) -> String {
    std::mem::swap(&mut function.body, body);
    let text = function.to_string();
    std::mem::swap(&mut function.body, body);
    text
}

/// The names of the transformations in a plan for a CPU with such vectors, sorted, except those in its warp regions.
pub(crate) fn of_plan(plan: &Plan, vectors: Vectors) -> Vec<&'static str> {
    let mut found = Found { plan, vectors, names: plan.rewrites.names() };
    found.plan();
    found.nodes(&plan.cut.nodes);
    found.names.into_iter().collect()
}

struct Found<'a> {
    plan: &'a Plan,
    vectors: Vectors,
    names: BTreeSet<&'static str>,
}

impl Found<'_> {
    fn add(&mut self, name: &'static str, holds: bool) {
        debug_assert!(ALL.contains(&name), "{name}");
        if holds {
            self.names.insert(name);
        }
    }

    fn plan(&mut self) {
        let plan = self.plan;
        self.add("thread-loops", true);
        self.add("masked-vectors", self.vectors.masks);
        self.add("block-merging", plan.merge_extents.is_some());
        self.add("axis-interchange", plan.x_axis != 0);
        self.add("warp-as-block", plan.warp_blocks);
        self.add("row-as-block", plan.row_blocks);
        self.add("privatized-accumulators", !plan.privatized.is_empty());
        self.add("quotient-index-split", plan.quotients.is_some());
        self.add("divergent-exit", !plan.masked_loops.is_empty());
        self.add("known-row-length", plan.row_width.is_some());
        self.add("outlined-regions", plan.outlines());
        self.add("context-array", !plan.live_across.locals.is_empty());
        self.add("context-local-array", !plan.live_across.arrays.is_empty());
        self.add("thread-masks", plan.cut.masks > 0);
        self.add("return-mask", plan.cut.alive.is_some());
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Once { active, guard, block: _ } => {
                    self.add("uniform-code", true);
                    self.add("masked-uniform-code", active.is_some());
                    self.guard(guard.as_ref());
                }
                Node::Segment(segment) => self.segment(segment),
                Node::If { cond, then: _, otherwise: _ } => {
                    let is_exit =
                        self.plan.masked_loops.iter().any(|masked_loop| masked_loop.active_lane_test(*cond).is_some());
                    self.add("uniform-branch", !is_exit);
                }
                Node::Guarded { guard, inside: _ } => {
                    self.add("guarded-region", true);
                    self.guard(Some(guard));
                }
                Node::Split { guard, .. } => {
                    self.add("divergent-branch", true);
                    self.guard(guard.as_ref());
                }
                Node::Barrier => self.add("barrier", true),
                Node::WarpRegion(_) => self.add("warp-region", true),
                Node::Strips(strips) => self.strips(strips),
                Node::Loop { counter, mask, continue_mask, guard, .. } => {
                    self.add("uniform-loop", mask.is_none());
                    self.add("counted-loop", counter.is_some());
                    self.add("masked-loop", mask.is_some());
                    self.add("masked-continue", continue_mask.is_some());
                    self.guard(guard.as_ref());
                }
                Node::TransposedRows(transposed) => self.transposed_rows(transposed),
                Node::Break | Node::Continue | Node::Return => {}
            }
            for part in node.parts() {
                self.nodes(part);
            }
        }
    }

    fn guard(&mut self, guard: Option<&Guard>) {
        let Some(Guard { recompute: _, rows, ranges }) = guard else { return };
        self.add("thread-guard", !ranges.is_empty());
        self.add("row-condition", !rows.is_empty());
        self.add("wrapping-guard", ranges.iter().any(|range| range.wraps));
    }

    fn segment(&mut self, segment: &Segment) {
        self.guard(segment.guard.as_ref());
        match segment.runs {
            Runs::EachThread => {}
            Runs::Warps => self.add("once-per-warp", true),
            Runs::Groups => self.add("warp-uniform-group", true),
            Runs::FirstOfGroups => self.add("group-leaders", true),
            Runs::FirstLanes => self.add("warp-leaders", true),
            Runs::OneThread => self.add("single-thread", true),
        }
        self.add("thread-masks", segment.active.is_some());
        self.add("lane-guard", segment.lane_guard.is_some());
        self.add("maximum-trip-count", segment.lane_max.is_some());
        self.add("scalar-lanes", segment.scalar_lanes);
        self.add("parallel-accesses", segment.parallel);
        self.add("access-prefetch", !segment.stride_prefetches.is_empty());
        self.add("prefetch-next-iteration", !segment.iteration_prefetches.is_empty());
        match segment.split.as_ref().map(|split| split.by) {
            Some(SplitBy::SteadyState) => self.add("steady-state-and-boundary", true),
            Some(SplitBy::ExcludedRange) => self.add("excluded-range", true),
            Some(SplitBy::Bit) => self.add("xor-partner-split", true),
            Some(SplitBy::ResidueClass { .. }) => self.add("residue-class-guard", true),
            Some(SplitBy::Scaled { .. }) => self.add("scaled-guard", true),
            None => {}
        }
        self.add("scattered-stores", segment.scatters);
        let is_rewritten = self.plan.has_barriers && !self.plan.warp_blocks;
        self.add("prefetch-next-block", is_rewritten && !streams(self.plan, segment, &segment.body).is_empty());
        if let Some(width) = self.plan.row_width {
            let bodies = [Some(&segment.body), segment.steady_state().map(|steady_state| &steady_state.body)];
            let is_whole = |body: &Block| fixed_rows::whole(self.plan, segment, body, (width, self.vectors)).is_some();
            let has_bounds = segment.guard.as_ref().is_some_and(|guard| !guard.ranges.is_empty());
            let is_whole = has_bounds && bodies.into_iter().flatten().any(is_whole);
            self.add("masked-known-row", is_whole);
        }
    }

    fn strips(&mut self, strips: &Strips) {
        self.add("strip-mining", true);
        self.add("row-tiles", strips.rows > 1);
        self.add("ragged-strips", strips.exact);
        self.add("strided-strips", strips.scalar);
        self.add("transposed-rows", strips.transposed);
        self.add("lane-arrays", !strips.lane_arrays.is_empty());
        self.guard(strips.guard.as_ref());
        for segment in &strips.before {
            self.segment(segment);
        }
    }

    fn transposed_rows(&mut self, transposed: &TransposedRows) {
        self.add("transposed-loads", !transposed.loads.is_empty());
        self.add("transposed-stores", !transposed.stores.is_empty());
        let evens = transposed
            .loads
            .iter()
            .map(|load| load.uniform_stride)
            .chain(transposed.stores.iter().map(|store| store.uniform_stride));
        self.add("uneven-row-distance", evens.into_iter().any(|uniform_stride| !uniform_stride));
        self.add("lane-trip-counts", transposed.lane_limit.is_some());
        self.add("alias-check", !transposed.alias_checks.is_empty());
        self.add("excluded-iterations", !transposed.partial.is_empty());
        self.add("uniform-loads", !transposed.uniform_loads.is_empty());
        self.add("unmasked-tail", transposed.unmasked);
    }
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn the_page_has_every_name() {
        let page = include_str!("../../../../../docs/design/cpu-plans.md");
        let (_, names) = page.split_once("## Names").expect("the page has the names");
        let names: Vec<&str> = names
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once("` | ").map(|(name, _)| name))
            .collect();
        assert_eq!(names, ALL);
        assert!(ALL.is_sorted());
    }
}
