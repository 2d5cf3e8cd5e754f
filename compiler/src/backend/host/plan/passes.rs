//! The passes of the planner, in order, and the wrapper that runs and verifies them.
//!
//! A pass is a row of [`PASSES`]: a function that changes the [`Cx`] and cannot fail. Its file states legality and
//! profitability; its row says when it runs, and why it has its position in the order. [`run`] runs the passes,
//! verifies the plan in debug builds, and prints it if that is requested.
//!
//! Analyses have no rows of their own: a pass computes the analyses that it reads, and no later pass reads them again,
//! except for rematerializable locals and uniformity, which [`form`] computes and no later pass invalidates.

use crate::{
    analysis::{Interval, Rematerializable, argument_range, never_written},
    backend::host::plan::{
        analysis::{
            block_uniformity::{all_own, shared_by_block},
            fixed_rows, source_lines,
            yield_points::Polling,
        },
        cx::{Cx, PassSet, PlanInputs, PlanOptions, no_function},
        domain::{boundary, conjunction, div_mod, residue, scaled, steady_state, xor_partner},
        features,
        grid::{merge_blocks, permute_axes, privatize, split_rows, split_warps},
        loops::{coalesce, interchange, lane_arrays, masked_exits, unswitch_signs, version_extent},
        normalize::{
            assigned_params::copy_assigned_params, broadcasts, hoist_broadcasts, if_convert, local_arrays,
            nest_conditions, normalize_loops, promote_scalars, propagate_flags, rematerialize_predicates,
            sink_exit_values, speculate_stores, structurize,
        },
        plan_ir::{
            CountMasks, LANES, MAX_SEGMENTS, MergedSize, Plan, Runs, SplitBy, for_each_guard, for_each_segment,
            guards::Peeler, max_segments,
        },
        prefetch::{next_iteration, next_stride},
        regions::{
            context, dead,
            form::{self, distribute},
        },
        vector::{narrow_divisions, strip_mine, transpose},
        verify::Progress,
        warp::{lower, regions as warp_regions},
    },
    inline,
    ir::{Block, Function, LocalId, Module, SharedId, SharedKind, Stmt, StmtKind, Type},
    normalize::{split_live_ranges, unroll},
    stop,
};

/// One row of [`PASSES`].
#[derive(Debug)]
pub(crate) struct Pass {
    /// Its name, for `WEFT_PRINT_AFTER`, `WEFT_SKIP_PASSES` and errors.
    pub name: &'static str,
    /// The part of the plan that it changes.
    pub stage: Stage,
    /// Whether a plan is valid without it. Only such a pass may be skipped.
    pub optional: bool,
    /// The name in [`features`](super::features) that is recorded if it changes the statements.
    pub feature: Option<&'static str>,
    /// Whether it runs for a kernel.
    pub when: fn(&Cx) -> bool,
    /// The function that runs it.
    pub run: fn(&mut Cx),
    /// The reason for its position in the order.
    pub why_here: &'static str,
}

/// The part of a plan that a pass changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The module: how threads and blocks are numbered.
    Grid,
    /// The kernel's statements, each thread on its own.
    Normalize,
    /// The kernel's loops, in relation to the loop over threads.
    Loops,
    /// Cuts the statements into nodes.
    Regions,
    /// The threads that a segment runs for.
    Domain,
    /// Prefetches of segments.
    Prefetch,
    /// Strips of threads.
    Vector,
}

impl Stage {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::Normalize => "normalize",
            Self::Loops => "loops",
            Self::Regions => "regions",
            Self::Domain => "domain",
            Self::Prefetch => "prefetch",
            Self::Vector => "vector",
        }
    }
}

impl PassSet {
    /// The passes with these names. `all` stands for every pass.
    ///
    /// # Errors
    ///
    /// A sentence with the names that there are, if a name does not exist.
    pub(crate) fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut set = Self::EMPTY;
        for name in names {
            match PASSES.iter().position(|pass| pass.name == name) {
                Some(number) => set.insert(number),
                None if name == "all" => set = Self::ALL,
                None => {
                    let names: Vec<&str> = PASSES.iter().map(|pass| pass.name).collect();
                    return Err(format!("there is no pass `{name}`; the passes are {}", names.join(", ")));
                }
            }
        }
        Ok(set)
    }

    /// As [`PassSet::of_names`], for passes that are skipped.
    ///
    /// # Errors
    ///
    /// Also if a pass is required.
    pub(crate) fn of_skipped<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let set = Self::of_names(names)?;
        match PASSES.iter().enumerate().find(|&(number, pass)| set.contains(number) && !pass.optional) {
            Some((_, pass)) => {
                let names: Vec<&str> = PASSES.iter().filter(|pass| pass.optional).map(|pass| pass.name).collect();
                let name = pass.name;
                Err(format!("the pass `{name}` is required; the optional passes are {}", names.join(", ")))
            }
            None => Ok(set),
        }
    }
}

const _: () = assert!(PASSES.len() <= u64::BITS as usize, "a set has a bit for each pass");

/// Receives the plan after passes.
#[derive(Debug)]
pub(crate) enum Trace {
    /// Nothing is printed.
    Off,
    /// The plan is printed after these passes if it has changed since it was last printed.
    After {
        /// The passes.
        passes: PassSet,
        /// The text of the plan when it was last printed.
        last: String,
        /// What is printed.
        out: String,
    },
}

impl Trace {
    /// A trace that prints the plan after passes.
    pub(crate) fn after(passes: PassSet) -> Self {
        Self::After { passes, last: String::new(), out: String::new() }
    }

    /// What was printed.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Off => String::new(),
            Self::After { out, .. } => out,
        }
    }

    /// Prints the kernel before the first pass, if the plan is printed after every pass.
    fn start(&mut self, cx: &Cx) {
        if let Self::After { passes: PassSet::ALL, last, out } = self {
            *last = cx.text();
            out.push_str("# before the first pass:\n");
            out.push_str(last);
        }
    }

    fn see(&mut self, number: usize, pass: &Pass, cx: &Cx) {
        let Self::After { passes, last, out } = self else { return };
        if passes.contains(number) {
            let text = cx.text();
            out.push_str("# after ");
            out.push_str(pass.name);
            if text == *last {
                out.push_str(": no change\n");
            } else {
                out.push_str(":\n");
                out.push_str(&text);
                *last = text;
            }
        }
    }
}

/// Runs the passes.
///
/// # Errors
///
/// The rules that the plan breaks after a pass, and its text form.
pub(super) fn run(cx: &mut Cx, trace: &mut Trace) -> Result<(), String> {
    trace.start(cx);
    for (number, pass) in PASSES.iter().enumerate() {
        if cx.options.skipped.contains(number) || !(pass.when)(cx) {
            continue;
        }
        stop::check();
        match pass.feature.filter(|_| cx.plan.rewrites.records()) {
            Some(feature) => {
                let before = features::text(&mut cx.function, &mut cx.body);
                (pass.run)(cx);
                let changes = features::text(&mut cx.function, &mut cx.body) != before;
                cx.plan.rewrites.add(feature, changes);
            }
            None => (pass.run)(cx),
        }
        if let Some(error) = cx.error.take() {
            return Err(error);
        }
        if cx.rejects_coalescing || cx.rejects_warp_regions {
            break;
        }
        if cfg!(debug_assertions) {
            let errors = cx.broken_rules();
            if !errors.is_empty() {
                let (name, errors, text) = (pass.name, errors.join("; "), cx.text());
                return Err(format!("the pass `{name}` of the CPU planner made an invalid plan: {errors}\n{text}"));
            }
        }
        trace.see(number, pass, cx);
    }
    Ok(())
}

/// Whether the code is optimized.
fn optimizes(cx: &Cx) -> bool {
    cx.options.opt
}

/// Whether the code is optimized, and blocks remain blocks.
fn optimizes_blocks(cx: &Cx) -> bool {
    cx.options.opt && !cx.plan.warp_blocks
}

/// Whether the code is optimized, and rows of blocks remain rows of blocks.
fn optimizes_rows(cx: &Cx) -> bool {
    optimizes_blocks(cx) && !cx.plan.row_blocks
}

/// Whether the code is optimized, and the program has a barrier.
fn optimizes_barriers(cx: &Cx) -> bool {
    cx.plan.has_barriers
}

/// Whether strips of threads may pay.
fn makes_strips(cx: &Cx) -> bool {
    optimizes_blocks(cx) && cx.plan.segments <= MAX_SEGMENTS
}

/// Whether statements between barriers of the block may become warp regions.
fn may_have_warp_regions(cx: &Cx) -> bool {
    optimizes_blocks(cx)
        && cx.options.warp_regions
        && cx.plan.module.assumed().warps
        && cx.plan.x_axis == 0
        && !cx.plan.row_blocks
}

fn always(_: &Cx) -> bool {
    true
}

/// Every pass, in order.
pub(crate) const PASSES: &[Pass] = &[
    Pass {
        name: "warps_as_blocks",
        stage: Stage::Grid,
        optional: true,
        feature: None,
        when: |cx| cx.options.warp_blocks && cx.plan.module.assumed().warps && !cx.synchronizes_block(),
        run: |cx| cx.plan.warp_blocks = true,
        why_here: "first: most passes test whether each warp is a block",
    },
    Pass {
        name: "permute_axes",
        stage: Stage::Grid,
        optional: true,
        feature: None,
        when: optimizes_blocks,
        run: permute,
        why_here: "before merge_blocks, which merges blocks along the new x",
    },
    Pass {
        name: "merge_blocks",
        stage: Stage::Grid,
        optional: true,
        feature: None,
        when: optimizes_blocks,
        run: merge_neighbors,
        why_here: "before passes that rewrite the kernel: it reads the indices of the program; div_mod and next_stride read its result",
    },
    Pass {
        name: "inline_barriers",
        stage: Stage::Grid,
        optional: false,
        feature: None,
        when: |cx| cx.has_barrier,
        run: inline_barriers,
        why_here: "before take_kernel: the kernel must contain all barriers that it is cut at",
    },
    Pass {
        name: "take_kernel",
        stage: Stage::Grid,
        optional: false,
        feature: None,
        when: always,
        run: take_kernel,
        why_here: "after the passes over the whole module, before the passes over the kernel",
    },
    Pass {
        name: "privatize",
        stage: Stage::Grid,
        optional: true,
        feature: None,
        when: optimizes_blocks,
        run: |cx| cx.plan.privatized = privatize::rewrite(&mut cx.plan.module, &mut cx.function, &mut cx.body),
        why_here: "before normalization: it finds the atomic operations as the program has them",
    },
    Pass {
        name: "split_warps",
        stage: Stage::Grid,
        optional: false,
        feature: None,
        when: |cx| cx.plan.warp_blocks,
        run: split_warps,
        why_here: "before normalization, whose results no longer have the form of the program's thread indices",
    },
    Pass {
        name: "split_rows",
        stage: Stage::Grid,
        optional: true,
        feature: None,
        when: |cx| cx.options.row_blocks,
        run: split_rows,
        why_here: "as split_warps; div_mod, whose registers it also uses, does not run then",
    },
    Pass {
        name: "structurize",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("structured-continue"),
        when: optimizes,
        run: |cx| structurize::without_continue(&mut cx.body),
        why_here: "first of its stage: the other passes handle fewer loops with `continue`",
    },
    Pass {
        name: "while_induction",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("while-induction"),
        when: optimizes,
        run: |cx| structurize::with_steps(&cx.function, &mut cx.body),
        why_here: "after structurize, which removes the `continue`s that it rejects; before passes that recognize counters",
    },
    Pass {
        name: "normalize_loops",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("loop-normalization"),
        when: optimizes,
        run: |cx| normalize_loops::normalize(&mut cx.function, &mut cx.body),
        why_here: "after while_induction, which makes steps; before unroll and interchange, which need trip counts",
    },
    Pass {
        name: "unswitch_signs",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("sign-unswitching"),
        when: optimizes,
        run: |cx| unswitch_signs::part(&mut cx.function, &mut cx.body),
        why_here: "before passes that copy or convert the branches that split_signs made",
    },
    Pass {
        name: "local_arrays",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("scalar-replacement"),
        when: |cx| optimizes(cx) && cx.options.scalar_replacement,
        run: replace_arrays,
        why_here: "before split_live_ranges, which renames the locals that it makes",
    },
    Pass {
        name: "split_live_ranges",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("live-range-splitting"),
        when: optimizes,
        run: |cx| split_live_ranges::split(&mut cx.function, &mut cx.body),
        why_here: "before passes that read the only assignment of a local",
    },
    Pass {
        name: "warp_regions",
        stage: Stage::Normalize,
        optional: true,
        feature: None,
        when: may_have_warp_regions,
        run: extract_warp_regions,
        why_here: "after split_live_ranges: fewer values go into a region and out of it; before passes that copy statements",
    },
    Pass {
        name: "version_extent",
        stage: Stage::Normalize,
        optional: true,
        feature: None,
        when: optimizes,
        run: version_extent,
        why_here: "before unroll: a version has a constant extent",
    },
    Pass {
        name: "div_mod",
        stage: Stage::Normalize,
        optional: true,
        feature: None,
        when: |cx| cx.options.quotients && !cx.plan.row_blocks && cx.plan.merge_extents.is_some() && !cx.is_short,
        run: |cx| cx.plan.quotients = div_mod::copy(&cx.plan.module, &mut cx.function, &mut cx.body),
        why_here: "after version_extent: a kernel has one choice of versions; before passes that change divisions",
    },
    Pass {
        name: "extrema",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("min-max-idiom"),
        when: optimizes,
        run: |cx| if_convert::extrema(&mut cx.function),
        why_here: "before if_convert, whose selects are not converted again",
    },
    Pass {
        name: "unroll",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("full-unroll"),
        when: optimizes,
        run: unroll_loops,
        why_here: "before nest_conditions and if_convert, which simplify the iterations",
    },
    Pass {
        name: "unroll_short",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("full-unroll"),
        when: optimizes_barriers,
        run: unroll_short,
        why_here: "after unroll, which takes the loops over tables",
    },
    Pass {
        name: "nest_conditions",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("nested-conditions"),
        when: optimizes,
        run: |cx| nest_conditions::nest(&cx.function, &mut cx.body),
        why_here: "before conjunction and if_convert: nested branches are plain ones",
    },
    Pass {
        name: "conjunction",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("guard-normalization"),
        when: optimizes_barriers,
        run: |cx| conjunction::bound(&mut cx.function, &mut cx.body),
        why_here: "after nest_conditions; before interchange and form, which read guards",
    },
    Pass {
        name: "speculate_stores",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("speculative-stores"),
        when: optimizes,
        run: |cx| speculate_stores::convert(&mut cx.function, &mut cx.body),
        why_here: "before if_convert, which converts the remaining branches without stores",
    },
    Pass {
        name: "if_convert",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("if-conversion"),
        when: optimizes,
        run: convert_branches,
        why_here: "after unroll; before the flags, of which it makes values",
    },
    Pass {
        name: "privatize_branches",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("privatized-accumulators"),
        when: optimizes,
        run: |cx| privatize::without_branches(&mut cx.function, &cx.plan.privatized, &mut cx.body),
        why_here: "after unroll and if_convert, which make ranges of indices known",
    },
    Pass {
        name: "propagate_flags",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("flag-propagation"),
        when: optimizes,
        run: |cx| propagate_flags::name(&mut cx.function, &mut cx.body),
        why_here: "after if_convert, before rematerialize_predicates, which reads conditions in place of flags",
    },
    Pass {
        name: "rematerialize_predicates",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("predicate-rematerialization"),
        when: optimizes,
        run: |cx| rematerialize_predicates::substitute(&mut cx.function, &mut cx.body),
        why_here: "after propagate_flags; before form, which gives each condition that is live across a barrier a context array",
    },
    Pass {
        name: "sink_exit_values",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("exit-value-sinking"),
        when: optimizes_barriers,
        run: sink_exit_values,
        why_here: "after rematerialize_predicates, whose conditions it reads; it substitutes the sunk values itself",
    },
    Pass {
        name: "promote_scalars",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("scalar-promotion"),
        when: optimizes,
        run: |cx| promote_scalars::keep(&mut cx.function, &cx.read_only, &mut cx.body),
        why_here: "after the passes that change loops; before interchange, which finds recurrences in locals",
    },
    Pass {
        name: "broadcasts",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("broadcast-loads"),
        when: |cx| optimizes_barriers(cx) && !cx.plan.warp_blocks,
        run: |cx| broadcasts::mark(&mut cx.function, &mut cx.body, form::masks),
        why_here: "after the passes that change accesses; before interchange, which reads which locals are uniform",
    },
    Pass {
        name: "hoist_broadcasts",
        stage: Stage::Normalize,
        optional: true,
        feature: Some("hoisted-broadcasts"),
        when: |cx| optimizes_barriers(cx) && !cx.plan.warp_blocks,
        run: hoist_broadcasts,
        why_here: "after broadcasts, which makes the counters of loops with such exits uniform; before interchange",
    },
    Pass {
        name: "lane_arrays",
        stage: Stage::Loops,
        optional: true,
        feature: None,
        when: |cx| {
            makes_strips(cx) && cx.options.lane_arrays && cx.options.interchange && !cx.has_barrier && !cx.is_choice()
        },
        run: put_arrays_in_lanes,
        why_here: "after normalization, which removes arrays and loops; before boundary, interchange and masked_exits, in place of which it runs",
    },
    Pass {
        name: "boundary",
        stage: Stage::Loops,
        optional: true,
        feature: Some("boundary-partition"),
        when: |cx| optimizes(cx) && !cx.has_barrier && !cx.is_choice() && cx.plan.lane_arrays.is_empty(),
        run: partition,
        why_here: "before interchange: the steady state has loops that can be interchanged",
    },
    Pass {
        name: "coalesce",
        stage: Stage::Loops,
        optional: true,
        feature: None,
        when: |cx| cx.options.coalesce && cx.has_barrier && !cx.plan.warp_blocks,
        run: |cx| cx.coalesced = coalesce::coalesce(&mut cx.function, &cx.plan.module.constants, &mut cx.body),
        why_here: "before interchange, which would take the loops; form sets the shapes of the segments",
    },
    Pass {
        name: "interchange",
        stage: Stage::Loops,
        optional: true,
        feature: None,
        when: |cx| cx.options.interchange && cx.plan.lane_arrays.is_empty(),
        run: interchange_loops,
        why_here: "after normalization; before masked_exits, which takes loops that it leaves",
    },
    Pass {
        name: "masked_exits",
        stage: Stage::Loops,
        optional: true,
        feature: None,
        when: |cx| cx.options.masked_loops.is_some() && cx.plan.lane_arrays.is_empty(),
        run: mask_loops,
        why_here: "after interchange; before form, which reads the loops that have no barrier of the program",
    },
    Pass {
        name: "lower_warps",
        stage: Stage::Loops,
        optional: false,
        feature: Some("warp-operations"),
        when: always,
        run: lower_warps,
        why_here: "after passes that read warp operations; before form: it makes barriers",
    },
    Pass {
        name: "form",
        stage: Stage::Regions,
        optional: false,
        feature: None,
        when: always,
        run: form_regions,
        why_here: "after every pass over statements; every later pass reads nodes",
    },
    Pass {
        name: "dead",
        stage: Stage::Regions,
        optional: true,
        feature: None,
        when: optimizes,
        run: |cx| dead::drop_unread(&cx.function, &cx.plan.fixed, &mut cx.plan.cut.nodes),
        why_here: "before context: a local that no segment reads needs no context array",
    },
    Pass {
        name: "context",
        stage: Stage::Regions,
        optional: false,
        feature: None,
        when: always,
        run: find_context,
        why_here: "after dead; the later passes read what each segment loads and stores",
    },
    Pass {
        name: "guards",
        stage: Stage::Domain,
        optional: true,
        feature: None,
        when: |cx| cx.options.interchange,
        run: peel_guards,
        why_here: "before passes that split the rest of the domain",
    },
    Pass {
        name: "complete_guards",
        stage: Stage::Domain,
        optional: false,
        feature: None,
        when: always,
        run: complete_guards,
        why_here: "after guards: the guards of segments compute the locals that they read; `finish` completes the others",
    },
    Pass {
        name: "excluded_range",
        stage: Stage::Domain,
        optional: true,
        feature: None,
        when: optimizes_blocks,
        run: |cx| cx.split_domains(|peeler, _, segment| peeler.peel_excluded_range(segment)),
        why_here: "after guards, which take the interval around the body; a segment with such a range is not split again",
    },
    Pass {
        name: "xor_partner",
        stage: Stage::Domain,
        optional: true,
        feature: None,
        when: optimizes_blocks,
        run: find_xor_partners,
        why_here: "before the other splits: its copies have no bounds that they could find",
    },
    Pass {
        name: "residue",
        stage: Stage::Domain,
        optional: true,
        feature: None,
        when: optimizes_blocks,
        run: |cx| cx.split_domains(|peeler, _, segment| residue::find(peeler, segment, false)),
        why_here: "after xor_partner; before steady_state: fewer threads are better than faster ones",
    },
    Pass {
        name: "scaled",
        stage: Stage::Domain,
        optional: true,
        feature: None,
        when: optimizes_blocks,
        run: |cx| cx.split_domains(|peeler, _, segment| scaled::find(peeler, segment)),
        why_here: "after residue; before steady_state, which handles unit strides only",
    },
    Pass {
        name: "steady_state",
        stage: Stage::Domain,
        optional: true,
        feature: None,
        when: optimizes,
        run: |cx| cx.split_domains(|peeler, _, segment| steady_state::find(peeler, segment)),
        why_here: "after the splits for special strides, with which it cannot be combined",
    },
    Pass {
        name: "residue_constant",
        stage: Stage::Domain,
        optional: true,
        feature: None,
        when: optimizes_blocks,
        run: |cx| cx.split_domains(|peeler, _, segment| residue::find(peeler, segment, true)),
        why_here: "after steady_state, which is better for a constant modulus if it applies",
    },
    Pass {
        name: "scatters",
        stage: Stage::Domain,
        optional: true,
        feature: None,
        when: optimizes_blocks,
        run: find_scatters,
        why_here: "after the passes that change bodies of segments",
    },
    Pass {
        name: "next_stride",
        stage: Stage::Prefetch,
        optional: true,
        feature: None,
        when: |cx| optimizes_blocks(cx) && cx.plan.merge_extents.is_none(),
        run: find_stride_prefetches,
        why_here: "after guards: it reads the final bodies; before strip_mine, which moves segments",
    },
    Pass {
        name: "row_width",
        stage: Stage::Prefetch,
        optional: true,
        feature: None,
        when: |cx| optimizes_rows(cx) && cx.plan.merge_extents.is_none() && cx.is_cut(),
        run: |cx| cx.plan.row_width = fixed_rows::width(cx.likely_block()),
        why_here: "before the passes that read the expected row length",
    },
    Pass {
        name: "next_iteration",
        stage: Stage::Prefetch,
        optional: true,
        feature: None,
        when: |cx| cx.plan.has_barriers && makes_strips(cx),
        run: find_iteration_prefetches,
        why_here: "after guards; before strip_mine, which moves segments",
    },
    Pass {
        name: "guard_lanes",
        stage: Stage::Vector,
        optional: false,
        feature: None,
        when: |cx| cx.plan.warp_blocks,
        run: |cx| split_warps::guard_lanes(&mut cx.plan.cut.nodes),
        why_here: "after the domains: the lanes of a warp test the remaining guards",
    },
    Pass {
        name: "strip_mine",
        stage: Stage::Vector,
        optional: true,
        feature: None,
        when: makes_strips,
        run: strip_mine,
        why_here: "after the domains and prefetches of segments, which it moves into strips",
    },
    Pass {
        name: "strip_prefetches",
        stage: Stage::Vector,
        optional: true,
        feature: None,
        when: |cx| makes_strips(cx) && cx.plan.row_width.is_some(),
        run: move_prefetches,
        why_here: "after strip_mine, which makes the strips",
    },
    Pass {
        name: "transpose",
        stage: Stage::Vector,
        optional: true,
        feature: None,
        when: |cx| makes_strips(cx) && cx.options.vectors.masks,
        run: transpose_rows,
        why_here: "after strip_mine: it transposes accesses in strips",
    },
    Pass {
        name: "narrow_divisions",
        stage: Stage::Vector,
        optional: true,
        feature: None,
        when: optimizes,
        run: |cx| cx.for_each_segment(|peeler, _, segment| narrow_divisions::narrow(peeler, segment)),
        why_here: "after the passes that recognize divisions of the index",
    },
    Pass {
        name: "finish",
        stage: Stage::Vector,
        optional: false,
        feature: None,
        when: always,
        run: finish,
        why_here: "last: it completes the guards that other passes made, and moves the kernel into the module",
    },
];

fn permute(cx: &mut Cx) {
    let Plan { module, kernel, x_axis, .. } = &mut cx.plan;
    *x_axis = permute_axes::best(module, *kernel);
    permute_axes::exchange(module, *x_axis);
}

fn merge_neighbors(cx: &mut Cx) {
    let Plan { module, effects, kernel, merge_extents, may_split_blocks, merged_size, .. } = &mut cx.plan;
    let merging = merge_blocks::Merging::of(module, effects);
    (*merge_extents, *may_split_blocks) = (merging.extents, merging.may_split);
    if permute_axes::reuses_lines(&module.functions[*kernel]) {
        *merged_size = MergedSize::Tile;
    }
}

fn inline_barriers(cx: &mut Cx) {
    let Plan { module, effects, kernel, rewrites, .. } = &mut cx.plan;
    let before = module.functions[*kernel].exprs.len();
    inline::barrier_functions(module, effects);
    rewrites.add("inlined-barrier-functions", module.functions[*kernel].exprs.len() != before);
}

/// Copies the kernel out of the module. Its parameters are never assigned then.
fn take_kernel(cx: &mut Cx) {
    let module = &cx.plan.module;
    let mut function = module.functions[cx.plan.kernel].clone();
    cx.read_only = never_written(module)
        .into_iter()
        .flat_map(|never| function.params.iter().copied().zip(never))
        .filter_map(|(param, never)| never.then_some(param))
        .collect();
    if cx.options.interchange {
        for &param in &cx.read_only {
            function.locals[param].never_written = true;
        }
    }
    copy_assigned_params(&mut function);
    for index in 0..function.params.len() {
        let param = function.params[index];
        function.locals[param].small = has_small_value(module, &function, index);
    }
    cx.body = std::mem::take(&mut function.body);
    cx.function = function;
    cx.is_taken = true;
}

/// Whether the value of a parameter of the kernel is one of `int32` in each launch.
fn has_small_value(module: &Module, function: &Function, index: usize) -> bool {
    let is_wide = function.locals[function.params[index]].ty == Type::I64;
    is_wide && argument_range(module, function, index).within(Interval::of_type(Type::I32))
}

fn split_warps(cx: &mut Cx) {
    let reads_index = split_warps::rewrite(&mut cx.function, &cx.body);
    cx.plan.warp_rows = reads_index && cx.likely_block().is_some_and(|[width, ..]| u64::from(width) == LANES);
}

fn split_rows(cx: &mut Cx) {
    cx.plan.row_blocks = true;
    split_rows::rewrite(&mut cx.function);
}

fn replace_arrays(cx: &mut Cx) {
    cx.plan.replaces_arrays = local_arrays::replace(&mut cx.function, &cx.plan.module.constants, &mut cx.body);
}

fn version_extent(cx: &mut Cx) {
    cx.is_short = version_extent::copy(&cx.plan.module, &mut cx.function, &mut cx.body);
    cx.plan.rewrites.add("short-extent-version", cx.is_short);
}

fn unroll_loops(cx: &mut Cx) {
    let (most, before) = (max_segments(cx.plan.warp_blocks) as usize, source_lines::loops(&cx.body));
    let body = match cx.body.as_mut_slice() {
        // The other version runs for short rows only: it is not worth the code.
        [Stmt { kind: StmtKind::If { then, .. }, .. }] if cx.plan.quotients.is_some() => then,
        _ => &mut cx.body,
    };
    unroll::write_out(&mut cx.function, &cx.plan.module.constants, body, most);
    cx.plan.record.add_unrolled(&before, &cx.body);
}

fn unroll_short(cx: &mut Cx) {
    if optimizes_rows(cx) && fixed_rows::width(cx.likely_block()).is_some() {
        let before = source_lines::loops(&cx.body);
        unroll::write_out_short(&mut cx.function, &cx.plan.module.constants, &mut cx.body);
        cx.plan.record.add_unrolled(&before, &cx.body);
    }
}

fn convert_branches(cx: &mut Cx) {
    if_convert::convert(&cx.plan.module, &mut cx.function, &mut cx.body, cx.options.vectors.masks);
}

fn hoist_broadcasts(cx: &mut Cx) {
    hoist_broadcasts::hoist(&cx.plan.module, &mut cx.function, &mut cx.body, form::masks);
}

fn sink_exit_values(cx: &mut Cx) {
    if sink_exit_values::sink(&mut cx.function, &mut cx.body) {
        rematerialize_predicates::substitute(&mut cx.function, &mut cx.body);
    }
}

fn extract_warp_regions(cx: &mut Cx) {
    let inputs = PlanInputs {
        opt: true,
        vectors: cx.options.vectors,
        // If its warps cannot be blocks, a region would contain the same region again.
        warp_regions: false,
        skipped: cx.options.skipped,
        record_rewrites: cx.options.record_rewrites,
    };
    let plan_region = |module: &Module| (cx.plan_module)(module, inputs);
    let kernel = warp_regions::Kernel { function: &mut cx.function, body: &mut cx.body, plan: &mut cx.plan };
    cx.error = warp_regions::extract(kernel, &plan_region).err();
}

fn put_arrays_in_lanes(cx: &mut Cx) {
    let before = source_lines::loops(&cx.body);
    let masks = (form::masks as CountMasks, cx.options.vectors.masks);
    match lane_arrays::rewrite(&mut cx.function, &cx.plan.module.constants, &mut cx.body, masks) {
        Ok(Some(lane_arrays::Rewritten { arrays, interchanged, masked_loops })) => {
            cx.plan.lane_arrays = arrays;
            cx.interchanged = interchanged;
            cx.plan.masked_loops = masked_loops;
            cx.plan.record.add_unrolled(&before, &cx.body);
            cx.plan.rewrites.add_interchanged(&cx.interchanged);
        }
        Ok(None) => {}
        Err(why) => cx.plan.record.arrays = Some(why),
    }
}

fn partition(cx: &mut Cx) {
    let interchanges = |function: &Function, body: &Block| {
        let (mut function, mut body, kinds) =
            (function.clone(), body.clone(), interchange::InterchangeKinds::default());
        interchange::interchange_loops(&mut function, &mut body, kinds, form::masks).any
    };
    let passes = boundary::Passes { interchanges, find_steady_state: steady_state::find };
    boundary::divide(&mut cx.function, &mut cx.body, passes);
}

fn interchange_loops(cx: &mut Cx) {
    let PlanOptions { strided, strided_math, lane_trip_counts, .. } = cx.options;
    let kinds = interchange::InterchangeKinds {
        strided: strided && !cx.plan.warp_blocks,
        strided_math,
        lane_trip_counts,
        math: true,
    };
    cx.interchanged = interchange::interchange_loops(&mut cx.function, &mut cx.body, kinds, form::masks);
    cx.plan.record.refuse(std::mem::take(&mut cx.interchanged.refused));
    if !legal!("merge_blocks.wrapping-row", !cx.interchanged.may_wrap) {
        cx.plan.merged_size = cx.plan.merged_size.min(MergedSize::BlockRow);
    }
    cx.plan.rewrites.add_interchanged(&cx.interchanged);
}

fn mask_loops(cx: &mut Cx) {
    if let Some(exits) = cx.options.masked_loops {
        let (may_compute, mut refused) = (!cx.plan.warp_blocks, Vec::new());
        let (how, masks) = ((exits, may_compute), (form::masks as CountMasks, &mut refused));
        cx.plan.masked_loops = masked_exits::mask_loops(&mut cx.function, &mut cx.body, how, masks);
        cx.plan.record.refuse(refused);
    }
}

fn lower_warps(cx: &mut Cx) {
    lower::lower_for_loops(&mut cx.plan.module, &mut cx.function, &mut cx.body, cx.plan.warp_blocks);
}

/// Cuts the body into nodes, and computes the analyses of the statements that the later passes read.
fn form_regions(cx: &mut Cx) {
    let fixed = Rematerializable::of(&cx.function, &cx.body);
    // Nodes contain copies of statements or the statements themselves; the analyses identify statements by address.
    let body = std::mem::take(&mut cx.body);
    if cx.is_cut() {
        let (regions, uniformity) = shared_by_block(&cx.function, &body, &fixed);
        let assigned = distribute::count_assigned(&cx.function, &body);
        let groups = distribute::Groups { fixed: &fixed, assigned };
        let offsets = cx.interchanged.strides.iter().map(|stride| stride.offset);
        let counters: Vec<LocalId> = cx.interchanged.counters.iter().copied().chain(offsets).collect();
        let marks = (counters.as_slice(), cx.plan.masked_loops.as_slice());
        let groups = cx.options.opt.then_some(&groups);
        cx.plan.cut = form::cut(&mut cx.function, &body, &uniformity, &regions, marks, groups);
        cx.uniformity = uniformity;
    } else {
        cx.uniformity = all_own(&cx.function);
        cx.plan.cut = form::whole(body, cx.is_choice());
    }
    cx.plan.fixed = fixed;
    cx.rejects_warp_regions = !legal!("warp_regions.uniform", warp_regions::are_uniform(&cx.plan.cut));
    cx.rejects_coalescing = coalesce::set_shapes(&cx.coalesced, &mut cx.plan.cut.nodes).is_none();
    cx.plan.record.add_coalesced(cx.coalesced.iter().map(|of| of.span));
    cx.plan.rewrites.add("loop-coalescing", !cx.coalesced.is_empty());
    cx.progress = Some(Progress::Nodes);
}

fn find_context(cx: &mut Cx) {
    let Cx { function, uniformity, read_only, plan, .. } = cx;
    let Plan { cut, fixed, effects, lane_arrays, .. } = plan;
    let never = (read_only.as_slice(), lane_arrays.as_slice());
    let (live_across, ordered) = context::analyse(function, &mut cut.nodes, uniformity, fixed, effects, never);
    plan.live_across = live_across;
    plan.record.order(ordered);
    let mut segments = 0;
    for_each_segment(&mut cut.nodes, &mut |_| segments += 1);
    plan.segments = segments;
    cx.progress = Some(Progress::Values);
}

fn complete_guards(cx: &mut Cx) {
    cx.for_each_segment(|peeler, _, segment| segment.guard.iter_mut().for_each(|guard| peeler.complete(guard)));
}

fn peel_guards(cx: &mut Cx) {
    cx.for_each_segment(|peeler, _, segment| match segment.runs {
        // A group runs once for a range of its row, so the guards around it may become bounds.
        Runs::EachThread | Runs::OneThread | Runs::Groups => peeler.peel(segment),
        Runs::Warps | Runs::FirstOfGroups | Runs::FirstLanes => {}
    });
}

fn find_xor_partners(cx: &mut Cx) {
    cx.split_domains(|peeler, module, segment| {
        xor_partner::find(peeler, &|id: SharedId| module.shared[id].kind == SharedKind::Cells, segment);
    });
}

fn find_scatters(cx: &mut Cx) {
    cx.for_each_segment(|peeler, _, segment| {
        let by = segment.split.as_ref().map(|split| split.by);
        if segment.runs == Runs::EachThread && by != Some(SplitBy::ExcludedRange) {
            segment.scatters = scaled::scatters(peeler, &segment.body);
        }
    });
}

fn find_stride_prefetches(cx: &mut Cx) {
    let Cx { function, uniformity, interchanged, plan, .. } = cx;
    let Plan { cut, fixed, live_across, .. } = plan;
    let peeler = Peeler { function, uniformity, fixed, live_across: &live_across.locals };
    next_stride::find(&peeler, interchanged, &mut cut.nodes);
}

fn find_iteration_prefetches(cx: &mut Cx) {
    let Cx { function, uniformity, plan, .. } = cx;
    let Plan { cut, fixed, live_across, .. } = plan;
    let peeler = Peeler { function, uniformity, fixed, live_across: &live_across.locals };
    next_iteration::find(&peeler, &mut cut.nodes);
}

fn strip_mine(cx: &mut Cx) {
    let block = cx.likely_block();
    let Cx { function, uniformity, interchanged, options, plan, .. } = cx;
    let Plan { cut, fixed, live_across, merge_extents, masked_loops, row_width, record, lane_arrays, .. } = plan;
    let peeler = Peeler { function, uniformity, fixed, live_across: &live_across.locals };
    let by_eights =
        options.vectors.pairs && block.is_some_and(|[_, rows, _]| rows.is_multiple_of(strip_mine::MAX_ROWS));
    let short_row = row_width.and_then(|width| u32::try_from(width).ok());
    let row = block.map(|[row, ..]| row);
    let widths = (merge_extents.is_some(), row, short_row, by_eights, options.vectors.masks);
    record.refuse(strip_mine::make(&peeler, widths, (interchanged, masked_loops, lane_arrays), &mut cut.nodes));
}

fn move_prefetches(cx: &mut Cx) {
    if let Some(width) = cx.plan.row_width {
        next_iteration::move_to_strips(width, &mut cx.plan.cut.nodes);
    }
}

fn transpose_rows(cx: &mut Cx) {
    let Cx { function, uniformity, interchanged, plan, .. } = cx;
    let Plan { cut, fixed, live_across, .. } = plan;
    let mut peeler = Peeler { function, uniformity, fixed, live_across: &live_across.locals };
    transpose::make(&mut peeler, interchanged, &mut cut.nodes);
}

/// Completes the guards of nodes, and moves the kernel into the plan's module.
fn finish(cx: &mut Cx) {
    let Cx { function, uniformity, plan, .. } = cx;
    let Plan { cut, fixed, live_across, .. } = plan;
    let peeler = Peeler { function, uniformity, fixed, live_across: &live_across.locals };
    for_each_guard(&mut cut.nodes, &mut |guard| peeler.complete(guard));
    live_across.locals = strip_mine::context_locals(&cut.nodes);
    plan.varying = function.locals.iter().map(|(local, _)| uniformity.local_varies(local)).collect();
    plan.polling = Polling::of(&plan.module);
    plan.module.functions[plan.kernel] = std::mem::replace(function, no_function());
    cx.is_taken = false;
    cx.progress = Some(Progress::Plan);
}
