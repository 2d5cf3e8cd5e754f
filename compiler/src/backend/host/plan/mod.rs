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

pub(crate) mod analysis;
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
pub(crate) mod sanitize;
pub(crate) mod vector;
mod verify;
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

use crate::{
    analysis::Rematerializable,
    backend::host::plan::{
        analysis::divergence::Uniformity,
        grid::split_rows,
        loops::{interchange, masked_exits::ExitAssignments},
        passes::{Cx, PassSet, Trace},
        regions::{form, guarded::Regions},
        sanitize::{eligible, race_free},
        vector::strip_mine,
        warp::lower,
    },
    inline,
    ir::{
        Block, Circles, Effects, Expr, ExprKind, FuncId, Function, LocalId, Module, Op, Stmt, StmtKind, for_each_stmt,
    },
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
pub(crate) struct PlanOptions {
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
    /// Statements between barriers of the block become warp regions.
    warp_regions: bool,
    /// The plan records the names of the rewrites that change the kernel.
    record_rewrites: bool,
    /// Passes that do not run.
    skipped: PassSet,
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
        warp_regions: false,
        record_rewrites: false,
        skipped: PassSet::EMPTY,
    };
}

/// What a plan depends on besides the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanInputs {
    /// The code is optimized.
    pub opt: bool,
    /// The vector properties of the planned CPU.
    pub vectors: Vectors,
    /// Statements between barriers of the block may become warp regions.
    pub warp_regions: bool,
    /// Passes that do not run.
    pub skipped: PassSet,
    /// The plan records the names of the rewrites that change the kernel ([`features`]), which takes time.
    pub record_rewrites: bool,
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
    /// The plans of the warp regions. Each warp is a block in them.
    pub warp_regions: Vec<Self>,
    /// Thread-local arrays became locals.
    pub replaces_arrays: bool,
    /// The names of the rewrites that changed the kernel, if they are recorded.
    pub rewrites: features::Rewrites,
}

impl Plan {
    /// Plans the kernel of a module with all passes.
    #[cfg(test)]
    pub(crate) fn of(module: &Module, opt: bool, vectors: Vectors, record_rewrites: bool) -> Result<Self, String> {
        Self::traced(
            module,
            PlanInputs { opt, vectors, warp_regions: true, skipped: PassSet::EMPTY, record_rewrites },
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
        loop {
            let (plan, interchanged) = Self::with(module, options, trace)?;
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
                return Ok((plan, interchanged_loops));
            }
            options = next;
        }
    }

    /// The text form of the plan ([`print`]).
    pub(crate) fn text(&self) -> String {
        print::print(self, &self.module.functions[self.kernel], &Block::new())
    }

    /// The rules that the plan breaks ([`verify`]).
    pub(crate) fn broken_rules(&self) -> Vec<String> {
        let varies = |local: LocalId| self.varying.get(local.index()) != Some(&false);
        verify::verify(self, &self.module.functions[self.kernel], &varies, verify::Progress::Plan)
    }

    /// Whether each segment is a function of its own, because there are many.
    pub(crate) fn outlines(&self) -> bool {
        self.segments > max_segments(self.warp_blocks)
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
    fn with(
        module: &Module,
        options: PlanOptions,
        trace: &mut Trace,
    ) -> Result<(Self, interchange::InterchangedLoops), String> {
        let Some(kernel) = module.kernel else { return Err("the module has no kernel".to_owned()) };
        let mut cx = Cx::new(module, kernel, options);
        passes::run(&mut cx, trace)?;
        if cx.rejects_coalescing {
            return Self::with(module, PlanOptions { coalesce: false, ..options }, trace);
        }
        if cx.rejects_warp_regions {
            return Self::with(module, PlanOptions { warp_regions: false, ..options }, trace);
        }
        Ok((cx.plan, cx.interchanged))
    }

    /// A plan before the first pass.
    fn empty(module: Module, effects: Vec<Effects>, kernel: FuncId, record_rewrites: bool) -> Self {
        Self {
            module,
            effects,
            kernel,
            cut: Cut::default(),
            segments: 0,
            live_across: LiveAcross::default(),
            varying: Vec::new(),
            fixed: Rematerializable::default(),
            polling: Polling::default(),
            merge_extents: None,
            long_rows: true,
            masked_loops: Vec::new(),
            quotients: None,
            x_axis: 0,
            has_barriers: false,
            row_width: None,
            warp_blocks: false,
            row_blocks: false,
            warp_rows: false,
            privatized: Vec::new(),
            warp_regions: Vec::new(),
            replaces_arrays: false,
            rewrites: features::Rewrites::new(record_rewrites),
        }
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
