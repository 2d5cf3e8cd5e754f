//! The planner of the CPU back end: it decides how the threads of a block become thread loops. It does not use LLVM.
//!
//! `Plan::with` runs the passes of [`PASSES`](passes::PASSES), in stages:
//!
//! 1. Grid: how threads and blocks are numbered.
//! 2. Normalization of the structured IR ([`normalize`]), and versions for short extents and for quotients of the
//!    index.
//! 3. Loops ([`loops`]): interchange loops with the thread loop, mask divergent exits. Then lower warp operations
//!    ([`warp`]).
//! 4. Regions ([`regions`]): cut the body at its barriers, distribute the regions, find the values that are live across
//!    barriers.
//! 5. Iteration domains ([`domain`]): move guards into loop bounds, split index sets.
//! 6. Prefetches ([`prefetch`]), strip mining and transposition ([`vector`]).
//!
//! [`Plan::traced`] plans again without a transformation if a later pass did not support it, until the plan does not
//! change.

#[macro_use]
mod legality;

pub(crate) mod analysis;
pub(crate) mod cx;
pub(crate) mod domain;
pub(crate) mod features;
pub(crate) mod grid;
pub(crate) mod loops;
mod mentions;
pub(crate) mod normalize;
pub(crate) mod passes;
pub(crate) mod plan_ir;
pub(crate) mod prefetch;
mod print;
pub(crate) mod regions;
pub(crate) mod remarks;
pub(crate) mod sanitize;
pub(crate) mod vector;
mod verify;
pub(crate) mod warp;

pub(crate) use crate::backend::host::plan::{
    analysis::{
        histograms::counts_only,
        strides::{Form, Forms},
        vectorizable::is_vectorized_with_math,
        yield_points::Polling,
    },
    plan_ir::{
        AliasCheck, COMBINED_ELEMENTS, Dividend, Division, Guard, IterationPrefetch, LANES, MAX_ROW, MAX_SEGMENTS,
        MAX_THREADS, MaskId, MaskedLoop, MergedSize, Node, Piece, Plan, Privatized, Quotients, Range, Runs, Segment,
        Split, SplitBy, StridePrefetch, Strips, TileShape, TransposedLoad, TransposedRows, TransposedStore, Vectors,
    },
    prefetch::next_block::{Stream, streams},
    sanitize::race_free::Pointers,
};

use crate::{
    backend::host::plan::{
        cx::{Cx, PlanInputs, PlanOptions},
        grid::split_rows,
        passes::Trace,
        plan_ir::{ExitAssignments, InterchangedLoops, Refusal},
        sanitize::{eligible, race_free},
        vector::strip_mine,
        warp::lower,
    },
    inline,
    ir::{Circles, Effects, Function, LocalId, Module, Op, StmtKind, for_each_stmt},
};

impl Plan {
    /// Plans the kernel of a module with all passes.
    #[cfg(test)]
    pub(crate) fn of(module: &Module, opt: bool, vectors: Vectors, record_rewrites: bool) -> Result<Self, String> {
        Self::traced(
            module,
            PlanInputs { opt, vectors, warp_regions: true, skipped: cx::PassSet::EMPTY, record_rewrites },
            &mut Trace::Off,
        )
    }

    /// Plans the kernel of a module. `trace` receives the plan after passes.
    ///
    /// # Errors
    ///
    /// A sentence, if the module has no kernel, or a pass made an invalid plan.
    pub(crate) fn traced(module: &Module, inputs: PlanInputs, trace: &mut Trace) -> Result<Self, String> {
        let PlanInputs { opt, vectors, warp_regions, skipped, record_rewrites } = inputs;
        let strided_math = opt && vectors.masks;
        let options = PlanOptions {
            opt,
            interchange: true,
            strided: opt,
            strided_math,
            lane_trip_counts: strided_math,
            scalar_replacement: opt,
            lane_arrays: opt,
            masked_loops: opt.then_some(ExitAssignments::AfterLoop),
            quotients: opt,
            vectors,
            warp_blocks: opt,
            row_blocks: false,
            coalesce: opt,
            warp_regions: opt && warp_regions,
            record_rewrites,
            skipped,
        };
        let (plan, interchanged) = Self::settled(module, options, trace)?;
        if opt && !plan.warp_blocks && split_rows::may_split(module, plan.kernel, &plan.effects) {
            let split = Self::settled(module, PlanOptions { row_blocks: true, ..options }, trace)?;
            if split.1 > interchanged {
                return Ok(split.0);
            }
        }
        Ok(plan)
    }

    /// Plans again without the transformations that a later pass did not support, until the plan does not change. Also
    /// returns the number of interchanged loops.
    fn settled(module: &Module, mut options: PlanOptions, trace: &mut Trace) -> Result<(Self, usize), String> {
        let (mut abandoned, mut arrays) = (Vec::new(), None);
        loop {
            let (mut plan, interchanged) = Self::with(module, options, trace)?;
            if plan.replaces_arrays && interchanged.counters.is_empty() {
                options.scalar_replacement = false;
                continue;
            }
            if !legal!("lane_arrays.one-strip", strip_mine::lane_arrays_are_in_strips(&plan)) {
                let many = (plan.segments > MAX_SEGMENTS).then_some(Refusal::ManyRegions);
                arrays = many.or(plan.record.no_strip()).or(Some(Refusal::Combination));
                options.lane_arrays = false;
                continue;
            }
            let interchanged_loops = interchanged.counters.len();
            let InterchangedLoops { strided, tiles, strided_math, lane_trip_counts, .. } = interchanged;
            let lane_trip_counts: Vec<LocalId> = lane_trip_counts.iter().map(|counts| counts.counter).collect();
            if !legal!("lane_trip_counts.transposed", strip_mine::are_transposed(&plan.cut.nodes, &lane_trip_counts)) {
                let otherwise = Some(Refusal::NotTransposed);
                abandoned.extend(remarks::without_strips(&plan, &lane_trip_counts, otherwise));
                options.lane_trip_counts = false;
                continue;
            }
            if !strip_mine::are_transposed(&plan.cut.nodes, &strided_math) {
                options.strided_math = false;
                continue;
            }
            let strided = [strided, tiles].concat();
            let (nodes, live_across) = (&plan.cut.nodes, &plan.live_across.locals);
            let holds_left = if plan.warp_blocks {
                strip_mine::masked_loops_are_in_warp(nodes, &plan.masked_loops, live_across)
            } else {
                strip_mine::masked_loops_are_in_strips(nodes, &plan.masked_loops)
            };
            let holds_left = legal!("masked_exits.in-strips", holds_left);
            // Assignments after the strip would need a context array for the flags of its lanes. A warp is one strip.
            let holds_exits = plan.warp_blocks || strip_mine::exit_assignments_are_in_strips(nodes, &plan.masked_loops);
            let next = PlanOptions {
                strided: options.strided && strip_mine::are_in_strips(&plan.cut.nodes, &strided),
                masked_loops: match options.masked_loops.filter(|_| holds_left) {
                    Some(_) if !holds_exits => Some(ExitAssignments::InExitBranch),
                    exits => exits,
                },
                // A segment that is a function of its own does not support partial rows.
                quotients: options.quotients && (plan.quotients.is_none() || plan.segments <= MAX_SEGMENTS),
                warp_blocks: options.warp_blocks && (!plan.warp_blocks || !plan.outlines()),
                ..options
            };
            if next == options {
                plan.record.abandon(abandoned);
                plan.record.arrays = plan.record.arrays.or(arrays);
                return Ok((plan, interchanged_loops));
            }
            if options.strided && !next.strided {
                abandoned.extend(remarks::without_strips(&plan, &strided, None));
            }
            if options.masked_loops.is_some() && next.masked_loops.is_none() {
                abandoned.extend(remarks::without_strips(&plan, &[], None));
            }
            options = next;
        }
    }

    /// Plans a sanitized kernel; `None` if it needs a stack for each thread. Each thread executes the program in its
    /// order.
    ///
    /// # Errors
    ///
    /// As [`Plan::traced`].
    pub(crate) fn sanitized(module: &Module) -> Result<Option<Self>, String> {
        let Some(mut module) = eligible::without_meetings(module) else { return Ok(None) };
        let (mut plan, ..) = Self::with(&module, PlanOptions::PLAIN, &mut Trace::Off)?;
        let goes = plan.cut.alive.is_none() && plan.cut.masks == 0 && eligible::go_together(&plan.cut.nodes);
        // The nodes share expressions and locals with the original body, and the recorder refers to that body.
        plan.module.functions[plan.kernel].body = std::mem::take(&mut module.functions[plan.kernel].body);
        race_free::note(&plan.module.functions[plan.kernel], &mut plan.cut.nodes);
        Ok(goes.then_some(plan))
    }

    /// Makes one plan with the transformations of `options`. Also returns the interchanged loops.
    fn with(module: &Module, options: PlanOptions, trace: &mut Trace) -> Result<(Self, InterchangedLoops), String> {
        let Some(kernel) = module.kernel else { return Err("the module has no kernel".to_owned()) };
        let mut cx = Cx::new(module, kernel, options, |module, inputs| Self::traced(module, inputs, &mut Trace::Off));
        passes::run(&mut cx, trace)?;
        if cx.rejects_coalescing {
            return Self::with(module, PlanOptions { coalesce: false, ..options }, trace);
        }
        if cx.rejects_warp_regions {
            return Self::with(module, PlanOptions { warp_regions: false, ..options }, trace);
        }
        Ok((cx.plan, cx.interchanged))
    }
}

/// Whether inlining the functions with barriers would make the module too large.
pub(crate) fn too_many_copies(module: &Module) -> bool {
    inline::too_many_copies(module, &Effects::of_module(module))
}

/// The module for fibers. Functions that read the active mask are inlined, so that threads that call them from
/// different positions have different masks.
pub(crate) fn for_stacks(module: &Module, circles: &Circles) -> Module {
    let mut module = module.clone();
    let asks = |function: &Function| {
        let mut asks = false;
        for_each_stmt(&function.body, &mut |stmt| asks |= matches!(stmt.kind, StmtKind::Op { op: Op::ActiveMask, .. }));
        asks
    };
    let asking: Vec<bool> =
        module.functions.iter().map(|(id, function)| asks(function) && !circles.contains(id)).collect();
    if asking.contains(&true) {
        inline::functions(&mut module, circles, &asking);
    }
    lower::lower_for_stacks(&mut module);
    module
}
