//! The names of the transformations in a plan: the rewrites that changed the IR, and the kinds of nodes.
//!
//! Names are in kebab case. A test compares [`ALL`] with the table in `docs/design/cpu-plans.md`.

use std::collections::BTreeSet;

use crate::backend::host::plan::plan_ir::InterchangedLoops;

/// All names, sorted.
pub(crate) const ALL: &[&str] = &[
    "access-prefetch",
    "alias-check",
    "axis-interchange",
    "barrier",
    "block-merging",
    "boundary-partition",
    "broadcast-loads",
    "context-array",
    "context-local-array",
    "counted-loop",
    "divergent-branch",
    "divergent-exit",
    "excluded-iterations",
    "excluded-range",
    "exit-value-sinking",
    "flag-propagation",
    "full-unroll",
    "grid-stride-loop",
    "group-leaders",
    "guard-normalization",
    "guarded-region",
    "hoisted-broadcasts",
    "if-conversion",
    "inlined-barrier-functions",
    "known-row-length",
    "lane-arrays",
    "lane-guard",
    "lane-trip-counts",
    "live-range-splitting",
    "loop-coalescing",
    "loop-interchange",
    "loop-normalization",
    "masked-continue",
    "masked-known-row",
    "masked-loop",
    "masked-uniform-code",
    "masked-vectors",
    "math-in-strided-access",
    "maximum-trip-count",
    "min-max-idiom",
    "nested-conditions",
    "once-per-warp",
    "outlined-regions",
    "parallel-accesses",
    "predicate-rematerialization",
    "prefetch-next-block",
    "prefetch-next-iteration",
    "privatized-accumulators",
    "quotient-index-split",
    "ragged-strips",
    "residue-class-guard",
    "return-mask",
    "row-as-block",
    "row-condition",
    "row-tiles",
    "sanitized",
    "scalar-lanes",
    "scalar-promotion",
    "scalar-replacement",
    "scaled-guard",
    "scattered-stores",
    "short-extent-version",
    "sign-unswitching",
    "single-thread",
    "speculative-stores",
    "stack-per-thread",
    "steady-state-and-boundary",
    "strided-access",
    "strided-strips",
    "strip-mining",
    "structured-continue",
    "thread-guard",
    "thread-loops",
    "thread-masks",
    "tile-loop",
    "transposed-loads",
    "transposed-rows",
    "transposed-stores",
    "uneven-row-distance",
    "uniform-branch",
    "uniform-code",
    "uniform-loads",
    "uniform-loop",
    "unmasked-tail",
    "warp-as-block",
    "warp-leaders",
    "warp-operations",
    "warp-region",
    "warp-uniform-group",
    "while-induction",
    "wrapping-guard",
    "xor-partner-split",
];

/// The names of the rewrites that changed a kernel, if they are recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rewrites(Option<BTreeSet<&'static str>>);

impl Rewrites {
    /// An empty record, or none.
    pub(crate) fn new(records: bool) -> Self {
        Self(records.then(BTreeSet::new))
    }

    /// Records a name if `holds` is true.
    pub(crate) fn add(&mut self, name: &'static str, holds: bool) {
        debug_assert!(ALL.contains(&name), "{name}");
        if holds && let Some(names) = &mut self.0 {
            names.insert(name);
        }
    }

    /// The recorded names.
    pub(crate) fn names(&self) -> BTreeSet<&'static str> {
        self.0.clone().unwrap_or_default()
    }

    /// Whether names are recorded.
    pub(crate) fn records(&self) -> bool {
        self.0.is_some()
    }

    /// Records the kinds of interchanged loops.
    pub(crate) fn add_interchanged(&mut self, interchanged: &InterchangedLoops) {
        let InterchangedLoops {
            any: _,
            may_wrap: _,
            counters,
            strided,
            strided_math,
            lane_trip_counts,
            tiles,
            strides,
            refused: _,
        } = interchanged;
        self.add("loop-interchange", !counters.is_empty());
        self.add("strided-access", !strided.is_empty());
        self.add("math-in-strided-access", !strided_math.is_empty());
        self.add("lane-trip-counts", !lane_trip_counts.is_empty());
        self.add("tile-loop", !tiles.is_empty());
        self.add("grid-stride-loop", !strides.is_empty());
    }
}
