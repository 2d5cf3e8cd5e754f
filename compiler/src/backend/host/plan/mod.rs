//! The planner of the CPU back end: it decides how the threads of a block become thread loops. It does not use LLVM.
//!
//! `Plan::with` runs the passes, in this order:
//!
//! 1. Grid: permute the thread axes, find mergeable blocks, inline functions with barriers, privatize accumulators,
//!    make warps blocks.
//! 2. Normalization of the structured IR ([`normalize`]), and versions for short extents and for quotients of the
//!    index.
//! 3. Loops ([`loops`]): interchange loops with the thread loop, mask divergent exits. Then lower warp operations
//!    ([`warp`]).
//! 4. Regions ([`regions`]): cut the body at its barriers, distribute the regions, find the values that are live across
//!    barriers.
//! 5. Iteration domains ([`domain`]): move guards into loop bounds, split index sets.
//! 6. Prefetches ([`prefetch`]), strip mining and transposition ([`vector`]).
//!
//! [`Plan::of`] plans again without a transformation if a later pass did not support it, until the plan does not
//! change.

pub(crate) mod analysis;
pub(crate) mod domain;
pub(crate) mod features;
pub(crate) mod grid;
pub(crate) mod loops;
mod mentions;
pub(crate) mod normalize;
pub(crate) mod plan_ir;
pub(crate) mod prefetch;
mod print;
pub(crate) mod regions;
pub(crate) mod sanitize;
pub(crate) mod vector;
pub(crate) mod warp;
pub(crate) mod yield_points;

pub(crate) use crate::backend::host::plan::analysis::histograms::counts_only;
pub(crate) use crate::backend::host::plan::analysis::strides::{Form, Forms};
pub(crate) use crate::backend::host::plan::domain::div_mod::{Dividend, Division, Quotients};
pub(crate) use crate::backend::host::plan::grid::privatize::{COMBINED_ELEMENTS, Privatized};
pub(crate) use crate::backend::host::plan::loops::masked_exits::MaskedLoop;
pub(crate) use crate::backend::host::plan::plan_ir::{
    AliasCheck, Cut, Guard, IterationPrefetch, LANES, MAX_ROW, MAX_THREADS, MaskId, Node, Range, ResidueClass, Runs,
    ScaledGuard, Segment, Specialized, SplitCondition, StridePrefetch, Strips, TileShape, TransposedLoad,
    TransposedRows, TransposedStore, XorPartners,
};
pub(crate) use crate::backend::host::plan::prefetch::next_block::{Stream, streams};
pub(crate) use crate::backend::host::plan::regions::context::LiveAcross;
pub(crate) use crate::backend::host::plan::sanitize::race_free::Pointers;
pub(crate) use crate::backend::host::plan::yield_points::Polling;

use crate::backend::host::plan::{
    domain::{boundary, conjunction, div_mod, guards, residue, scaled, steady_state, xor_partner},
    grid::{merge_blocks, permute_axes, privatize, split_rows, split_warps},
    loops::{coalesce, interchange, masked_exits, unswitch_signs, version_extent},
    normalize::{
        broadcasts, if_convert, local_arrays, nest_conditions, promote_scalars, propagate_flags,
        rematerialize_predicates, sink_exit_values, speculate_stores, structurize, unroll,
    },
    prefetch::{next_iteration, next_stride},
    regions::{context, dead, distribute, form},
    sanitize::{eligible, race_free},
    vector::{fixed_rows, strip_mine, transpose},
    warp::lower,
};
use crate::{
    analysis::{Rematerializable, never_written},
    backend::host::plan::{
        analysis::divergence::Uniformity, loops::masked_exits::ExitAssignments, regions::guarded::Regions,
    },
    inline,
    ir::{
        Block, Circles, Effects, Expr, ExprKind, FuncId, Function, LocalId, Module, Op, SharedId, SharedKind, Stmt,
        StmtKind, for_each_stmt,
    },
    normalize::split_live_ranges,
};

/// Plans with more segments than this have one function for each segment.
pub(crate) const MAX_SEGMENTS: u64 = 24;

/// The same for plans in which each warp is a block: a segment is a few vector operations then.
pub(crate) const MAX_WARP_SEGMENTS: u64 = 64;

/// The vector properties of the planned CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vectors {
    /// It has two units for vector multiplication.
    pub pairs: bool,
    /// It has masked loads and stores for all element types.
    pub masks: bool,
}

impl Vectors {
    /// No property: valid for every CPU.
    pub(crate) const PLAIN: Self = Self { pairs: false, masks: false };
}

/// The transformations that a plan may use, and its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
struct PlanOptions {
    /// The code is optimized.
    opt: bool,
    /// Loops are interchanged with the thread loop, guards become bounds of thread loops, and memory that no thread
    /// writes may be loaded once for the block.
    interchange: bool,
    /// Loops with strided accesses are interchanged. They need strips.
    strided: bool,
    /// Such loops may call math functions. They need transposition.
    strided_math: bool,
    /// Such loops may have a trip count for each thread. They need transposition.
    lane_trip_counts: bool,
    /// Thread-local arrays become locals. It pays if a loop around their accesses is then interchanged.
    scalar_replacement: bool,
    /// Loops with divergent exits are masked; the value says where they assign the values of the first exit.
    masked_loops: Option<ExitAssignments>,
    /// The body has a version that is split where a quotient of the index changes.
    quotients: bool,
    /// The vector properties of the planned CPU.
    vectors: Vectors,
    /// Warps become blocks if they do not synchronize with each other.
    warp_blocks: bool,
    /// Rows become blocks if their threads do not synchronize with each other.
    row_blocks: bool,
    /// Loops over the cells of a tile are coalesced with the thread loop.
    coalesce: bool,
    /// The plan records the names of the rewrites that change the kernel.
    record_rewrites: bool,
}

impl PlanOptions {
    /// No transformation: each thread executes the program in its order.
    const PLAIN: Self = Self {
        opt: false,
        interchange: false,
        strided: false,
        strided_math: false,
        lane_trip_counts: false,
        scalar_replacement: false,
        masked_loops: None,
        quotients: false,
        vectors: Vectors::PLAIN,
        warp_blocks: false,
        row_blocks: false,
        coalesce: false,
        record_rewrites: false,
    };
}

/// The plan of a kernel.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Plan {
    /// The module. Every function that reaches a barrier is inlined.
    pub module: Module,
    /// The effects of each function.
    pub effects: Vec<Effects>,
    /// The kernel.
    pub kernel: FuncId,
    /// The body, cut at the barriers.
    pub cut: Cut,
    /// The number of segments.
    pub segments: u64,
    /// The context arrays: values that are live across barriers.
    pub live_across: LiveAcross,
    /// By the local's index: the local is varying, so each thread has its own value.
    pub varying: Vec<bool>,
    /// The rematerializable locals.
    pub fixed: Rematerializable,
    /// The yield points.
    pub polling: Polling,
    /// Neighboring blocks along `x` may be merged if `blockDim.x` equals each of these numbers. `None` if they never
    /// may.
    pub merge_extents: Option<Vec<i64>>,
    /// Rows of merged blocks may be longer than a block, if there are no context arrays and masks.
    pub long_rows: bool,
    /// The loops with divergent exits.
    pub masked_loops: Vec<MaskedLoop>,
    /// The divisions by which rows are split.
    pub quotients: Option<Quotients>,
    /// The axis of the launch that is exchanged with `x`.
    pub x_axis: u8,
    /// The program has barriers, and its code is optimized.
    pub has_barriers: bool,
    /// The expected row length of a block with barriers.
    pub row_width: Option<u64>,
    /// Each warp is a block: the plan is for launches whose `blockDim.x` is a multiple of 32.
    pub warp_blocks: bool,
    /// Each row is a block.
    pub row_blocks: bool,
    /// Rows are expected to be one warp each. Only with `warp_blocks`.
    pub warp_rows: bool,
    /// Arrays that each worker accumulates into a private copy.
    pub privatized: Vec<Privatized>,
    /// Thread-local arrays became locals.
    pub replaces_arrays: bool,
    /// The names of the rewrites that changed the kernel, if they are recorded.
    pub rewrites: features::Rewrites,
}

impl Plan {
    /// Plans the kernel of a module; `None` if it has none. `record_rewrites` makes the plan record the names of the
    /// rewrites that changed the kernel ([`features`]), which takes time.
    pub(crate) fn of(module: &Module, opt: bool, vectors: Vectors, record_rewrites: bool) -> Option<Self> {
        let strided_math = opt && vectors.masks;
        let options = PlanOptions {
            opt,
            interchange: true,
            strided: opt,
            strided_math,
            lane_trip_counts: strided_math,
            scalar_replacement: opt,
            masked_loops: opt.then_some(ExitAssignments::AfterLoop),
            quotients: opt,
            vectors,
            warp_blocks: opt,
            row_blocks: false,
            coalesce: opt,
            record_rewrites,
        };
        let (plan, interchanged) = Self::settled(module, options)?;
        if opt && !plan.warp_blocks && split_rows::may_split(module, plan.kernel, &plan.effects) {
            let split = Self::settled(module, PlanOptions { row_blocks: true, ..options })?;
            if split.1 > interchanged {
                return Some(split.0);
            }
        }
        Some(plan)
    }

    /// Plans again without the transformations that a later pass did not support, until the plan does not change. Also
    /// returns the number of interchanged loops.
    fn settled(module: &Module, mut options: PlanOptions) -> Option<(Self, usize)> {
        loop {
            let (plan, interchanged) = Self::with(module, options)?;
            if plan.replaces_arrays && interchanged.counters.is_empty() {
                options.scalar_replacement = false;
                continue;
            }
            let interchanged_loops = interchanged.counters.len();
            let interchange::InterchangedLoops { strided, tiles, strided_math, lane_trip_counts, .. } = interchanged;
            let lane_trip_counts: Vec<LocalId> = lane_trip_counts.iter().map(|counts| counts.counter).collect();
            if !strip_mine::are_transposed(&plan.cut.nodes, &lane_trip_counts) {
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
            // A warp is one strip.
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
                return Some((plan, interchanged_loops));
            }
            options = next;
        }
    }

    /// The text form of the plan ([`print`]).
    pub(crate) fn text(&self) -> String {
        print::print(self, &self.module.functions[self.kernel], &Block::new())
    }

    /// Whether each segment is a function of its own, because there are many.
    pub(crate) fn outlines(&self) -> bool {
        self.segments > max_segments(self.warp_blocks)
    }

    /// Plans a sanitized kernel; `None` if it needs a stack for each thread. Each thread executes the program in its
    /// order.
    pub(crate) fn sanitized(module: &Module) -> Option<Self> {
        let mut module = eligible::without_meetings(module)?;
        let (mut plan, ..) = Self::with(&module, PlanOptions::PLAIN)?;
        let goes = plan.cut.alive.is_none() && plan.cut.masks == 0 && eligible::go_together(&plan.cut.nodes);
        // The nodes share expressions and locals with the original body, and the recorder refers to that body.
        plan.module.functions[plan.kernel].body = std::mem::take(&mut module.functions[plan.kernel].body);
        race_free::note(&plan.module.functions[plan.kernel], &mut plan.cut.nodes);
        goes.then_some(plan)
    }

    /// Makes one plan with the transformations of `options`. Also returns the interchanged loops.
    fn with(source: &Module, options: PlanOptions) -> Option<(Self, interchange::InterchangedLoops)> {
        let module = source;
        let PlanOptions { opt, interchange, strided, strided_math, lane_trip_counts, .. } = options;
        let kernel = module.kernel?;
        let effects = Effects::of_module(module);
        let has_barrier = Effects::of_function(&effects, kernel).synchronizes();
        let has_barriers = has_barrier && opt;
        let mut rewrites = features::Rewrites::new(options.record_rewrites);
        let mut module = module.clone();
        let warp_blocks = options.warp_blocks && module.assumed().warps;
        let x_axis = if opt && !warp_blocks { permute_axes::best(&module, kernel, &effects) } else { 0 };
        permute_axes::exchange(&mut module, x_axis);
        let merge_extents = merge_blocks::extents(&module, &effects).filter(|_| opt && !warp_blocks);
        if has_barrier {
            let before = module.functions[kernel].exprs.len();
            inline::barrier_functions(&mut module, &effects);
            rewrites.add("inlined-barrier-functions", module.functions[kernel].exprs.len() != before);
        }
        let mut function = module.functions[kernel].clone();
        let read_only: Vec<LocalId> = never_written(&module)
            .into_iter()
            .flat_map(|never| function.params.iter().copied().zip(never))
            .filter_map(|(param, never)| never.then_some(param))
            .collect();
        if interchange {
            for &param in &read_only {
                function.locals[param].never_written = true;
            }
        }
        copy_assigned_params(&mut function);
        let mut body = std::mem::take(&mut function.body);
        let privatized =
            if opt && !warp_blocks { privatize::rewrite(&mut module, &mut function, &mut body) } else { Vec::new() };
        let warp_rows = warp_blocks && split_warps::rewrite(&mut function, &body);
        if options.row_blocks {
            split_rows::rewrite(&mut function);
        }
        let mut replaces_arrays = false;
        if opt {
            let mut step = |name, rewrite: fn(&mut Function, &mut Block)| {
                rewrites.step(name, (&mut function, &mut body), rewrite);
            };
            step("structured-continue", |_, body| structurize::without_continue(body));
            step("while-induction", |function, body| structurize::with_steps(function, body));
            step("sign-unswitching", unswitch_signs::part);
            if options.scalar_replacement {
                rewrites.step("scalar-replacement", (&mut function, &mut body), |function, body| {
                    replaces_arrays = local_arrays::replace(function, &module.constants, body);
                });
            }
            let mut step = |name, rewrite: fn(&mut Function, &mut Block)| {
                rewrites.step(name, (&mut function, &mut body), rewrite);
            };
            step("live-range-splitting", split_live_ranges::split);
        }
        let is_short = opt && version_extent::copy(&module, &mut function, &mut body);
        rewrites.add("short-extent-version", is_short);
        let quotients = if options.quotients && !options.row_blocks && merge_extents.is_some() && !is_short {
            div_mod::copy(&module, &mut function, &mut body)
        } else {
            None
        };
        let is_choice = is_short || quotients.is_some();
        if opt {
            let constants = &module.constants;
            let mut step = |name, rewrite: &dyn Fn(&mut Function, &mut Block)| {
                rewrites.step(name, (&mut function, &mut body), rewrite);
            };
            step("min-max-idiom", &|function, _| if_convert::extrema(function));
            let most = max_segments(warp_blocks) as usize;
            step("full-unroll", &|function, body| unroll::write_out(function, constants, body, most));
            if has_barrier {
                step("full-unroll", &|function, body| {
                    if fixed_rows::width(function, &Rematerializable::of(function, body)).is_some() {
                        unroll::write_out_short(function, constants, body);
                    }
                });
            }
            step("nested-conditions", &|function, body| nest_conditions::nest(function, body));
            if has_barrier {
                step("guard-normalization", &conjunction::bound);
            }
            step("speculative-stores", &speculate_stores::convert);
            step("if-conversion", &if_convert::convert);
            step("privatized-accumulators", &|function, body| {
                privatize::without_branches(function, &privatized, body);
            });
            step("flag-propagation", &propagate_flags::name);
            step("predicate-rematerialization", &rematerialize_predicates::substitute);
            if has_barrier {
                step("exit-value-sinking", &|function, body| {
                    if sink_exit_values::sink(function, body) {
                        rematerialize_predicates::substitute(function, body);
                    }
                });
            }
            step("scalar-promotion", &|function, body| promote_scalars::keep(function, &read_only, body));
            if has_barrier && !warp_blocks {
                step("broadcast-loads", &broadcasts::mark);
            }
            if !has_barrier && !is_choice {
                step("boundary-partition", &boundary::divide);
            }
        }
        let coalesced = if options.coalesce && has_barrier && !warp_blocks {
            coalesce::coalesce(&mut function, &mut body)
        } else {
            Vec::new()
        };
        let interchanged = if interchange {
            interchange::interchange_loops(
                &mut function,
                &mut body,
                interchange::InterchangeKinds {
                    strided: strided && !warp_blocks,
                    strided_math,
                    lane_trip_counts,
                    math: true,
                },
            )
        } else {
            interchange::InterchangedLoops::default()
        };
        rewrites.add_interchanged(&interchanged);
        let masked_loops = match options.masked_loops {
            Some(exits) => masked_exits::mask_loops(&mut function, &mut body, exits, !warp_blocks),
            None => Vec::new(),
        };
        let has_barrier = interchanged.any || !masked_loops.is_empty() || has_barrier;
        rewrites.step("warp-operations", (&mut function, &mut body), |function, body| {
            lower::lower_for_loops(&mut module, function, body, warp_blocks);
        });
        let fixed = Rematerializable::of(&function, &body);
        let (uniformity, mut cut) = if has_barrier {
            let (regions, uniformity) = shared_by_block(&function, &body, &fixed);
            let assigned = distribute::count_assigned(&function, &body);
            let groups = distribute::Groups { fixed: &fixed, assigned };
            let offsets = interchanged.strides.iter().map(|stride| stride.offset);
            let counters: Vec<LocalId> = interchanged.counters.iter().copied().chain(offsets).collect();
            let marks = (counters.as_slice(), masked_loops.as_slice());
            let cut = form::cut(&mut function, &body, &uniformity, &regions, marks, opt.then_some(&groups));
            (uniformity, cut)
        } else {
            (all_own(&function), form::whole(body, is_choice))
        };
        if coalesce::set_shapes(&coalesced, &mut cut.nodes).is_none() {
            return Self::with(source, PlanOptions { coalesce: false, ..options });
        }
        rewrites.add("loop-coalescing", !coalesced.is_empty());
        if opt {
            dead::drop_unread(&function, &fixed, &mut cut.nodes);
        }
        let mut live_across = context::analyse(&function, &mut cut.nodes, &uniformity, &fixed, &effects, &read_only);
        let mut peeler = guards::Peeler {
            function: &mut function,
            uniformity: &uniformity,
            fixed: &fixed,
            live_across: &live_across.locals,
        };
        let cells = |id: SharedId| module.shared[id].kind == SharedKind::Cells;
        let mut segments = 0;
        plan_ir::for_each_segment(&mut cut.nodes, &mut |segment| {
            segments += 1;
            match segment.runs {
                Runs::Warps => {}
                Runs::FirstOfGroups | Runs::FirstLanes => {
                    segment.guard.iter_mut().for_each(|guard| peeler.complete(guard));
                }
                // A group runs once for a range of its row, so the guards around it may become bounds.
                Runs::EachThread | Runs::OneThread | Runs::Groups if interchange => peeler.peel(segment),
                Runs::EachThread | Runs::OneThread | Runs::Groups => {}
            }
            if opt && !warp_blocks && segment.runs == Runs::EachThread {
                peeler.peel_excluded_range(segment);
            }
            if warp_blocks && segment.runs == Runs::EachThread {
                steady_state::find(&mut peeler, segment);
            }
            if opt && !warp_blocks && segment.runs == Runs::EachThread && segment.excluded_range.is_none() {
                xor_partner::find(&mut peeler, &cells, segment);
                if segment.xor_partners.is_none() {
                    residue::find(&mut peeler, segment, false);
                    scaled::find(&mut peeler, segment);
                }
                if segment.xor_partners.is_none() && segment.residue_class.is_none() && segment.scaled_guard.is_none() {
                    steady_state::find(&mut peeler, segment);
                }
                if segment.xor_partners.is_none()
                    && segment.steady_state.is_none()
                    && segment.scaled_guard.is_none()
                    && segment.residue_class.is_none()
                {
                    residue::find(&mut peeler, segment, true);
                }
                segment.scatters = scaled::scatters(&mut peeler, &segment.body);
            }
        });
        if opt && !warp_blocks && merge_extents.is_none() {
            next_stride::find(&peeler, &interchanged, &mut cut.nodes);
        }
        let row_width = if opt && has_barrier { fixed_rows::width(peeler.function, &fixed) } else { None };
        if has_barriers && !warp_blocks && segments <= MAX_SEGMENTS {
            next_iteration::find(&peeler, &mut cut.nodes);
        }
        if warp_blocks {
            split_warps::guard_lanes(&mut cut.nodes);
        } else if opt && segments <= MAX_SEGMENTS {
            let width = if merge_extents.is_some() { strip_mine::MAX_WIDTH } else { strip_mine::BLOCK_WIDTH };
            let by_eights = options.vectors.pairs && fixed_rows::come_by(strip_mine::MAX_ROWS, &module, row_width);
            let short_row = row_width.and_then(|width| u32::try_from(width).ok());
            let widths = (width, Some(fixed_rows::length(&module)), short_row, by_eights);
            strip_mine::make(&peeler, widths, (&interchanged, &masked_loops), &mut cut.nodes);
            if let Some(width) = row_width {
                next_iteration::move_to_strips(width, &mut cut.nodes);
            }
            if options.vectors.masks {
                transpose::make(&mut peeler, &interchanged, &mut cut.nodes);
            }
        }
        plan_ir::for_each_guard(&mut cut.nodes, &mut |guard| peeler.complete(guard));
        live_across.locals = strip_mine::context_locals(&cut.nodes);
        let varying = function.locals.iter().map(|(local, _)| uniformity.local_varies(local)).collect();
        let polling = Polling::of(&module);
        module.functions[kernel] = function;
        let plan = Self {
            module,
            effects,
            kernel,
            cut,
            segments,
            live_across,
            varying,
            fixed,
            polling,
            merge_extents,
            long_rows: !interchanged.may_wrap,
            masked_loops,
            quotients,
            x_axis,
            has_barriers,
            row_width,
            warp_blocks,
            row_blocks: options.row_blocks,
            warp_rows,
            privatized,
            replaces_arrays,
            rewrites,
        };
        Some((plan, interchanged))
    }
}

/// The maximum number of segments in one function.
fn max_segments(warp_blocks: bool) -> u64 {
    if warp_blocks { MAX_WARP_SEGMENTS } else { MAX_SEGMENTS }
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

/// The guarded regions of a body, and its divergence. A fixpoint: a local that threads assign is varying, so that only
/// code that runs once for the block assigns uniform locals.
fn shared_by_block(function: &Function, body: &[Stmt], fixed: &Rematerializable) -> (Regions, Uniformity) {
    let (mut pinned, mut differing) = (Vec::new(), Vec::new());
    loop {
        let regions = Regions::of(function, body, fixed, &differing);
        let uniformity = Uniformity::of(function, body, &regions, &pinned);
        let assigned = form::assigned_by_threads(function, body, &uniformity);
        let varying_offsets: Vec<LocalId> =
            regions.offsets().filter(|&offset| uniformity.local_varies(offset)).collect();
        if assigned.is_empty() && varying_offsets.is_empty() {
            return (regions, uniformity);
        }
        pinned.extend(assigned);
        differing.extend(varying_offsets);
    }
}

/// All locals are varying, except parameters.
fn all_own(function: &Function) -> Uniformity {
    let varying: Vec<_> = function.locals.iter().map(|(id, _)| id).filter(|id| !function.params.contains(id)).collect();
    Uniformity::of(function, &[], &Regions::default(), &varying)
}

/// Replaces each parameter that the body assigns by a new local, which is copied to the old one at entry. Parameters
/// are then never assigned.
fn copy_assigned_params(function: &mut Function) {
    let mut changed = Vec::new();
    for_each_stmt(&function.body, &mut |stmt| changed.extend(stmt.kind.assigned()));
    let span = function.span;
    let mut copies = Vec::new();
    for index in 0..function.params.len() {
        let param = function.params[index];
        if changed.contains(&param) {
            let local = function.locals[param].clone();
            let ty = local.ty;
            let passed = function.locals.push(local);
            function.params[index] = passed;
            let value = function.exprs.push(Expr { kind: ExprKind::Local(passed), ty, span });
            copies.push(Stmt { kind: StmtKind::Assign(param, value), span });
        }
    }
    function.body.splice(0..0, copies);
}
