//! What a kernel's passes work on: its options, the plan so far, and the parts of the kernel that are not in the plan
//! yet.

use crate::{
    backend::host::plan::{
        analysis::divergence::Uniformity,
        plan_ir::{
            Coalesced, ExitAssignments, InterchangedLoops, Plan, Runs, Segment, Vectors, for_each_segment,
            guards::Peeler,
        },
        print,
        verify::{self, Progress},
    },
    ir::{self, Block, Effects, FuncId, Function, FunctionKind, LocalId, Module, SyncScope},
    source::Span,
};

/// A set of passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PassSet(u64);

impl PassSet {
    /// No pass.
    pub(crate) const EMPTY: Self = Self(0);

    /// Every pass.
    pub(crate) const ALL: Self = Self(u64::MAX);

    /// Adds the pass with a number.
    pub(crate) fn insert(&mut self, number: usize) {
        self.0 |= 1 << number;
    }

    /// Whether the pass with a number is in the set.
    pub(crate) fn contains(self, number: usize) -> bool {
        self.0 >> number & 1 == 1
    }
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
    /// The plan records the names of the rewrites that change the kernel (`features`), which takes time.
    pub record_rewrites: bool,
}

/// Plans the kernel of a module without a trace.
pub(crate) type PlanModule = fn(&Module, PlanInputs) -> Result<Plan, String>;

/// The transformations that a plan may use, and its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct PlanOptions {
    /// The code is optimized.
    pub opt: bool,
    /// Loops are interchanged with the thread loop, guards become bounds of thread loops, and memory that no thread
    /// writes may be loaded once for the block.
    pub interchange: bool,
    /// Loops with strided accesses are interchanged. They need strips.
    pub strided: bool,
    /// Such loops may call math functions. They need transposition.
    pub strided_math: bool,
    /// Such loops may have a trip count for each thread. They need transposition.
    pub lane_trip_counts: bool,
    /// Thread-local arrays become locals. It pays if a loop around their accesses is then interchanged.
    pub scalar_replacement: bool,
    /// Thread-local arrays are stored by element and lane. They need strips.
    pub lane_arrays: bool,
    /// Loops with divergent exits are masked; the value says where they assign the values of the first exit.
    pub masked_loops: Option<ExitAssignments>,
    /// The body has a version that is split where a quotient of the index changes.
    pub quotients: bool,
    /// The vector properties of the planned CPU.
    pub vectors: Vectors,
    /// Warps become blocks if they do not synchronize with each other.
    pub warp_blocks: bool,
    /// Rows become blocks if their threads do not synchronize with each other.
    pub row_blocks: bool,
    /// Loops over the cells of a tile are coalesced with the thread loop.
    pub coalesce: bool,
    /// Statements between barriers of the block become warp regions.
    pub warp_regions: bool,
    /// The plan records the names of the rewrites that change the kernel.
    pub record_rewrites: bool,
    /// Passes that do not run.
    pub skipped: PassSet,
}

impl PlanOptions {
    /// No transformation: each thread executes the program in its order.
    pub(crate) const PLAIN: Self = Self {
        opt: false,
        interchange: false,
        strided: false,
        strided_math: false,
        lane_trip_counts: false,
        scalar_replacement: false,
        lane_arrays: false,
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

/// A kernel that is being planned.
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Cx {
    /// The transformations that the plan may use.
    pub options: PlanOptions,
    /// The plan. Until the last pass, its module has the kernel as it was before `take_kernel`.
    pub plan: Plan,
    /// `function` and `body` hold the kernel: `take_kernel` has run.
    pub is_taken: bool,
    /// The kernel without its body.
    pub function: Function,
    /// The statements that are not cut into nodes.
    pub body: Block,
    /// The program has a barrier.
    pub has_barrier: bool,
    /// Parameters that point to memory that no thread writes.
    pub read_only: Vec<LocalId>,
    /// The body is a branch between versions for a short last extent.
    pub is_short: bool,
    /// The coalesced loops.
    pub coalesced: Vec<Coalesced>,
    /// A coalesced loop is no segment of its own: the kernel must be planned again without coalescing.
    pub rejects_coalescing: bool,
    /// A warp region is not in uniform control flow: the kernel must be planned again without warp regions.
    pub rejects_warp_regions: bool,
    /// Plans the kernel of a warp region.
    pub plan_module: PlanModule,
    /// The plan of a warp region is invalid.
    pub error: Option<String>,
    /// The interchanged loops.
    pub interchanged: InterchangedLoops,
    /// Which locals are uniform, from `form` on.
    pub uniformity: Uniformity,
    /// What is computed of the nodes; `None` before `form`.
    pub progress: Option<Progress>,
}

impl Cx {
    /// A kernel before the first pass.
    pub(crate) fn new(module: &Module, kernel: FuncId, options: PlanOptions, plan_module: PlanModule) -> Self {
        let effects = Effects::of_module(module);
        let has_barrier = Effects::of_function(&effects, kernel).synchronizes();
        let mut plan = Plan::empty(module.clone(), effects, kernel, options.record_rewrites);
        plan.has_barriers = has_barrier && options.opt;
        Self {
            options,
            plan,
            is_taken: false,
            function: no_function(),
            body: Block::new(),
            has_barrier,
            read_only: Vec::new(),
            is_short: false,
            coalesced: Vec::new(),
            rejects_coalescing: false,
            rejects_warp_regions: false,
            plan_module,
            error: None,
            interchanged: InterchangedLoops::default(),
            uniformity: Uniformity::default(),
            progress: None,
        }
    }

    /// The block that the launch is expected to have, along the plan's axes.
    pub(crate) fn likely_block(&self) -> Option<[u32; 3]> {
        let mut block = self.plan.module.likely_block?;
        block.swap(0, usize::from(self.plan.x_axis));
        Some(block)
    }

    /// The body is a branch that versions the kernel for a launch.
    pub(crate) fn is_choice(&self) -> bool {
        self.is_short || self.plan.quotients.is_some()
    }

    /// The body is cut at barriers: those of the program, or those that interchanged loops have.
    pub(crate) fn is_cut(&self) -> bool {
        self.interchanged.any || !self.plan.masked_loops.is_empty() || self.has_barrier
    }

    /// The threads of a block synchronize.
    pub(crate) fn synchronizes_block(&self) -> bool {
        Effects::of_function(&self.plan.effects, self.plan.kernel).together > SyncScope::Warp
    }

    /// Calls `visit` on each segment, with the analyses that guards need.
    pub(crate) fn for_each_segment(&mut self, mut visit: impl FnMut(&mut Peeler<'_>, &Module, &mut Segment)) {
        let Self { function, uniformity, plan, .. } = self;
        let Plan { module, cut, fixed, live_across, .. } = plan;
        let mut peeler = Peeler { function, uniformity, fixed, live_across: &live_across.locals };
        for_each_segment(&mut cut.nodes, &mut |segment| visit(&mut peeler, module, segment));
    }

    /// Calls `visit` on each segment that runs for each thread and is not split.
    pub(crate) fn split_domains(&mut self, mut visit: impl FnMut(&mut Peeler<'_>, &Module, &mut Segment)) {
        self.for_each_segment(|peeler, module, segment| {
            if segment.runs == Runs::EachThread && segment.split.is_none() {
                visit(peeler, module, segment);
            }
        });
    }

    /// The rules that the plan breaks: those of weft's IR while it is a module, then those of plans.
    pub(crate) fn broken_rules(&self) -> Vec<String> {
        match self.progress {
            Some(Progress::Plan) => self.plan.broken_rules(),
            Some(progress) => {
                let varies = |local: LocalId| self.uniformity.local_varies(local);
                verify::verify(&self.plan, &self.function, &varies, progress)
            }
            None if self.is_taken => verify::statements(&self.plan, &self.function, &self.body),
            None => ir::verify(&self.plan.module).err().unwrap_or_default(),
        }
    }

    /// The text form of the plan.
    pub(crate) fn text(&self) -> String {
        let kernel = &self.plan.module.functions[self.plan.kernel];
        if self.is_taken {
            print::print(&self.plan, &self.function, &self.body)
        } else {
            print::print(&self.plan, kernel, &kernel.body)
        }
    }
}

/// In place of the kernel before `take_kernel` and after `finish`.
pub(crate) fn no_function() -> Function {
    Function::new("", FunctionKind::Kernel, Span::default())
}
