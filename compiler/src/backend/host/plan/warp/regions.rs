//! Warp regions: statements between two barriers of the block that each warp runs on its own.
//!
//! ```text
//! for k in range(n):                          for k in range(n):
//!     for j in range(k + ty, n, 8):               store inputs
//!         total = warp_sum(a[j, tx])              warp region 0: for each warp of the block
//!         if tx == 0: out[j] = total                  load inputs; for j …; store outputs
//!     barrier                                     load outputs
//!                                                 barrier
//! ```
//!
//! A loop or branch that contains a warp operation moves out of the thread loops, to the level of the block. If it is
//! not uniform, masks hold the threads that take part, and each iteration costs several traversals of the block. But
//! between two barriers of the block, its warps are as independent as blocks. So the statements become a kernel of
//! their own, which is planned with each warp as a block ([`split_warps`](crate::backend::host::plan::grid)): in it,
//! control flow that is uniform in a warp is uniform, and the trip count of the thread loop is the constant 32.
//!
//! Legal if the statements are in uniform control flow, no thread has returned before, they contain no barrier of the
//! block and no jump out of them, `blockDim.x` is a multiple of 32 (the launch assumption *warps*), and no function has
//! operations that reveal more of a thread's position than its indices (`analysis::gains_by_warps`). Values of locals
//! go through arrays of shared memory: an element for each thread, or one if the local is uniform. Rematerializable
//! locals are computed again. Local arrays must not be live across the boundary of the region.
//!
//! Profitable if the block's plan needs a mask around a warp operation.

use std::{collections::BTreeSet, ops::Range};

use weft_artifact::Scalar;

use crate::{
    analysis::{Rematerializable, any_expr, escapes, for_each_mention, never_written},
    backend::host::plan::{
        analysis::{
            block_uniformity::shared_by_block,
            divergence::Uniformity,
            guarded::{Regions, recompute},
            liveness::Uses,
            structure::{OTHERWISE, Path, holds_barrier, list_at},
        },
        plan_ir::{Cut, MAX_THREADS, Node, Plan, cells::Make},
    },
    ir::{
        Align, Block, Const, ExprId, ExprKind, Function, LocalId, Module, Op, SharedArray, SharedId, SharedKind, Stmt,
        StmtKind, SyncScope, Type, for_each_expr_of_stmt, for_each_stmt,
    },
    source::Span,
};

/// The maximum number of regions of a kernel: each is planned and compiled as a kernel.
const MAX_REGIONS: usize = 8;

/// The kernel whose statements become warp regions.
pub(crate) struct Kernel<'a> {
    /// The kernel without its body.
    pub function: &'a mut Function,
    /// Its statements.
    pub body: &'a mut Block,
    /// The plan so far.
    pub plan: &'a mut Plan,
}

/// Plans the kernel of a module.
type PlanRegion<'a> = dyn Fn(&Module) -> Result<Plan, String> + 'a;

/// Makes the warp regions of a kernel.
///
/// # Errors
///
/// As `plan_region`, which plans the kernel of a region.
pub(crate) fn extract(mut kernel: Kernel<'_>, plan_region: &PlanRegion<'_>) -> Result<(), String> {
    let mut skipped = 0;
    while kernel.plan.warp_regions.len() < MAX_REGIONS {
        let (function, body) = (&*kernel.function, &*kernel.body);
        let fixed = Rematerializable::of(function, body);
        let (regions, uniformity) = shared_by_block(function, body, &fixed);
        let mut search =
            Search { function, fixed: &fixed, regions: &regions, uniformity: &uniformity, runs: Vec::new() };
        // No statement would be reached by all threads.
        if search.may_return(body) {
            return Ok(());
        }
        search.list(body, &mut Path::new());
        let Some(run) = search.runs.into_iter().nth(skipped) else { return Ok(()) };
        if !replace(&mut kernel, (&fixed, &uniformity), &run, plan_region)? {
            skipped += 1;
        }
    }
    Ok(())
}

/// Whether each warp region of a body that is cut into nodes runs for all threads of the block, as its plan assumes.
pub(crate) fn are_uniform(cut: &Cut) -> bool {
    fn all(nodes: &[Node], masked: bool) -> bool {
        nodes.iter().all(|node| match node {
            Node::WarpRegion(_) => !masked,
            Node::Split { .. } | Node::Guarded { .. } => node.parts().iter().all(|part| all(part, true)),
            Node::Loop { active, mask, continue_mask, .. } => {
                let masked = masked || active.is_some() || mask.is_some() || continue_mask.is_some();
                node.parts().iter().all(|part| all(part, masked))
            }
            Node::Once { .. }
            | Node::Segment(_)
            | Node::If { .. }
            | Node::Barrier
            | Node::Strips(_)
            | Node::TransposedRows(_)
            | Node::Break
            | Node::Continue
            | Node::Return => node.parts().iter().all(|part| all(part, masked)),
        })
    }
    all(&cut.nodes, cut.alive.is_some())
}

/// Consecutive statements of a list.
struct Run {
    /// The path to the list.
    path: Path,
    /// The indices of the statements.
    range: Range<usize>,
}

/// Finds the statements that become warp regions.
struct Search<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    regions: &'a Regions,
    uniformity: &'a Uniformity,
    runs: Vec<Run>,
}

impl Search<'_> {
    /// Whether some threads may return before others.
    fn may_return(&self, body: &[Stmt]) -> bool {
        let mut found = false;
        for_each_stmt(body, &mut |stmt| {
            found |= self.regions.after(stmt).is_some()
                || (matches!(stmt.kind, StmtKind::Return(_)) && self.uniformity.splits_jump(stmt));
        });
        found
    }

    /// Searches a list that is in uniform control flow.
    fn list(&mut self, list: &[Stmt], path: &mut Path) {
        let mut from = 0;
        for (index, stmt) in list.iter().enumerate() {
            if !synchronizes_block(stmt) {
                if self.is_divergent(stmt) && legal!("warp_regions.no-jump", !escapes(std::slice::from_ref(stmt)).any())
                {
                    let first = self.first(list, from, index);
                    match self.runs.last_mut() {
                        Some(last) if last.path == *path && last.range.end == first => last.range.end = index + 1,
                        _ => self.runs.push(Run { path: path.clone(), range: first..index + 1 }),
                    }
                    from = index + 1;
                }
                continue;
            }
            match &stmt.kind {
                StmtKind::If { cond, then, otherwise }
                    if self.regions.inside(stmt).is_none() && !self.uniformity.varies(self.function, *cond) =>
                {
                    for (inner, flag) in [(then, 0), (otherwise, OTHERWISE)] {
                        path.push(index | flag);
                        self.list(inner, path);
                        path.pop();
                    }
                }
                StmtKind::Loop { body, .. }
                    if !self.uniformity.splits_loop(stmt) && !self.uniformity.splits_iteration(stmt) =>
                {
                    path.push(index);
                    self.list(body, path);
                    path.pop();
                }
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
            from = index + 1;
        }
    }

    /// The first statement of a region that ends at statement `last`, but not before `from`: assignments before it, of
    /// varying locals that it mentions, are part of the region, unless the locals are rematerializable.
    fn first(&self, list: &[Stmt], from: usize, last: usize) -> usize {
        let mentions = |first: usize, wanted: LocalId| {
            let mut found = false;
            for_each_mention(self.function, &list[first..=last], &mut |local| found |= local == wanted);
            found
        };
        let mut first = last;
        while first > from
            && let StmtKind::Assign(local, _) = list[first - 1].kind
            && self.uniformity.local_varies(local)
            && self.fixed.value(local).is_none()
            && mentions(first, local)
        {
            first -= 1;
        }
        first
    }

    /// Whether a statement contains a warp operation in a branch or loop that the block's plan needs a mask for.
    fn is_divergent(&self, stmt: &Stmt) -> bool {
        let mut found = false;
        for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
            let masks = match &inner.kind {
                StmtKind::If { cond, .. } => {
                    self.regions.inside(inner).is_none() && self.uniformity.varies(self.function, *cond)
                }
                StmtKind::Loop { .. } => self.uniformity.splits_loop(inner) || self.uniformity.splits_iteration(inner),
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => false,
            };
            found |= masks && holds_barrier(inner);
        });
        found
    }
}

/// Whether a statement contains a barrier of the block.
fn synchronizes_block(stmt: &Stmt) -> bool {
    let mut found = false;
    for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
        found |= matches!(inner.kind, StmtKind::Op { op, .. } if op.row().together >= SyncScope::Block);
    });
    found
}

/// The locals whose values go into a region and out of it.
struct Boundary {
    /// Rematerializable locals that it reads, in the order in which they are computed.
    recompute: Vec<LocalId>,
    /// Uniform locals that it reads, each with an array of one element.
    uniform: Vec<(LocalId, SharedId)>,
    /// Varying locals that it reads, or assigns on some paths only.
    inputs: Vec<(LocalId, SharedId)>,
    /// Locals that it assigns and that may be read after it.
    outputs: Vec<(LocalId, SharedId)>,
}

impl Boundary {
    /// The boundary of the statements `run` of a body, which may run repeatedly. Adds its arrays to the module. `None`
    /// if a value cannot go through such an array.
    fn of(
        kernel: &Kernel<'_>,
        fixed: &Rematerializable,
        uniformity: &Uniformity,
        (run, repeats): (&[Stmt], bool),
        module: &mut Module,
    ) -> Option<Self> {
        let (function, body) = (&*kernel.function, &*kernel.body);
        let uses = Uses::of(function, run);
        let mut mentions = vec![0_i64; function.locals.len()];
        for_each_mention(function, body, &mut |local| mentions[local.index()] += 1);
        for_each_mention(function, run, &mut |local| mentions[local.index()] -= 1);
        // A value that the statements read before they assign it has another assignment outside of them.
        let is_output = |local: LocalId| !legal!("warp_regions.not-read-after", mentions[local.index()] <= 0);
        let mut this = Self { recompute: Vec::new(), uniform: Vec::new(), inputs: Vec::new(), outputs: Vec::new() };
        let (mut uniform, mut inputs) = (BTreeSet::new(), BTreeSet::new());
        for &local in uses.exposed.iter().filter(|local| !function.params.contains(local)) {
            if uses.assigned.contains(&local) || (fixed.value(local).is_none() && uniformity.local_varies(local)) {
                inputs.insert(local);
            } else if fixed.value(local).is_some() {
                let own = |local: LocalId| !function.params.contains(&local);
                recompute(function, fixed, &own, local, &mut this.recompute);
            } else {
                uniform.insert(local);
            }
        }
        let outputs: Vec<LocalId> = uses.assigned.iter().copied().filter(|&local| is_output(local)).collect();
        inputs.extend(
            outputs.iter().filter(|local| !legal!("warp_regions.always-assigned", uses.definite.contains(local))),
        );
        if has_own_arrays(kernel, fixed, (run, repeats), &this.recompute) {
            return None;
        }
        let mut array = |local: LocalId, len: u64| {
            let elem = function.locals[local].ty.scalar()?;
            let (name, span) =
                (function.locals[local].name.clone(), run.first().map_or(function.span, |stmt| stmt.span));
            let kind = SharedKind::Context;
            let array = SharedArray { name, kind, elem, len, shape: Vec::new(), align: 64, span };
            Some((local, module.shared.push(array)))
        };
        this.uniform = uniform.into_iter().map(|local| array(local, 1)).collect::<Option<_>>()?;
        this.inputs = inputs.into_iter().map(|local| array(local, MAX_THREADS)).collect::<Option<_>>()?;
        for local in outputs {
            let known = this.inputs.iter().copied().find(|(input, _)| *input == local);
            this.outputs.push(known.or_else(|| array(local, MAX_THREADS))?);
        }
        Some(this)
    }
}

/// Whether statements, or the values of rematerializable locals that they read, mention a local array that is also
/// mentioned elsewhere in the body, or by a later execution of the statements, or mention cells of the block.
fn has_own_arrays(
    kernel: &Kernel<'_>,
    fixed: &Rematerializable,
    (run, repeats): (&[Stmt], bool),
    recomputed: &[LocalId],
) -> bool {
    let (function, module) = (&*kernel.function, &kernel.plan.module);
    let count = |block: &[Stmt]| {
        let mut counts = vec![0_u32; function.local_arrays.len()];
        let mut cells = false;
        for_each_stmt(block, &mut |stmt| {
            for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
                if let ExprKind::LocalBase(array) = function.exprs[id].kind {
                    counts[array.index()] += 1;
                } else if let ExprKind::SharedBase(array) = function.exprs[id].kind {
                    cells |= module.shared[array].kind == SharedKind::Cells;
                }
            });
        });
        (counts, cells)
    };
    let ((all, _), (inside, cells)) = (count(kernel.body), count(run));
    let escapes = inside.iter().zip(&all).any(|(&inside, &all)| inside > 0 && (repeats || all > inside));
    let is_recomputed = recomputed
        .iter()
        .filter_map(|&local| fixed.value(local))
        .any(|value| any_expr(function, value, &|kind| matches!(kind, ExprKind::LocalBase(_))));
    !legal!("warp_regions.no-cells", !cells)
        || !legal!("warp_regions.own-arrays", !escapes)
        || !legal!("warp_regions.no-recomputed-array", !is_recomputed)
}

/// Replaces statements by a warp region. Returns whether that was possible.
fn replace(
    kernel: &mut Kernel<'_>,
    (fixed, uniformity): (&Rematerializable, &Uniformity),
    run: &Run,
    plan_region: &PlanRegion<'_>,
) -> Result<bool, String> {
    let Some(list) = list_at(kernel.body, &run.path) else { return Ok(false) };
    let statements: Block = list[run.range.clone()].to_vec();
    let Some(span) = statements.first().map(|stmt| stmt.span) else { return Ok(false) };
    let mut module = kernel.plan.module.clone();
    // A statement in a list of its own may be in a loop.
    let statements_of = (statements.as_slice(), !run.path.is_empty());
    let Some(boundary) = Boundary::of(kernel, fixed, uniformity, statements_of, &mut module) else { return Ok(false) };
    let shared = module.shared.clone();
    let number = kernel.plan.warp_regions.len() as u32;
    let function = kernel_of(kernel, fixed, (&boundary, number), &statements, span);
    // What other statements of the kernel do with memory holds for the region, too.
    module.assumptions.disjoint &= never_written(&kernel.plan.module).is_some();
    module.functions[kernel.plan.kernel] = function;
    let plan = plan_region(&module)?;
    if !legal!("warp_regions.independent-warps", plan.warp_blocks)
        || !legal!("warp_regions.one-function", !plan.outlines())
        || !legal!("warp_regions.no-live-array", plan.live_across.arrays.is_empty())
    {
        return Ok(false);
    }

    let (mut function, mut body) = (kernel.function.clone(), kernel.body.clone());
    let mut make = Make { function: &mut function, span, warp_blocks: false };
    let mut call: Block = boundary.uniform.iter().map(|&value| save(&mut make, value, true)).collect();
    call.extend(boundary.inputs.iter().map(|&value| save(&mut make, value, false)));
    call.push(make.stmt(StmtKind::Op { op: Op::WarpRegion(number), results: Vec::new(), args: Vec::new() }));
    call.extend(boundary.outputs.iter().map(|&value| restore(&mut make, value, false)));
    let Some(list) = list_at(&mut body, &run.path) else { return Ok(false) };
    list.splice(run.range.clone(), call);
    if !legal!("warp_regions.reached-by-all", is_reached_by_all(&function, &body, number)) {
        return Ok(false);
    }
    *kernel.function = function;
    *kernel.body = body;
    kernel.plan.module.shared = shared;
    kernel.plan.warp_regions.push(plan);
    Ok(true)
}

/// Whether all regions up to `number` are in uniform control flow. The values that the last one computes are varying
/// now, also those that were uniform.
fn is_reached_by_all(function: &Function, body: &Block, number: u32) -> bool {
    let fixed = Rematerializable::of(function, body);
    let (regions, uniformity) = shared_by_block(function, body, &fixed);
    let search = Search { function, fixed: &fixed, regions: &regions, uniformity: &uniformity, runs: Vec::new() };
    !search.may_return(body) && count_reached(&search, body) == number as usize + 1
}

/// The number of warp regions in uniform control flow.
fn count_reached(search: &Search<'_>, list: &[Stmt]) -> usize {
    let of = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Op { op: Op::WarpRegion(_), .. } => 1,
        StmtKind::If { cond, then, otherwise }
            if search.regions.inside(stmt).is_none() && !search.uniformity.varies(search.function, *cond) =>
        {
            count_reached(search, then) + count_reached(search, otherwise)
        }
        StmtKind::Loop { body, .. }
            if !search.uniformity.splits_loop(stmt) && !search.uniformity.splits_iteration(stmt) =>
        {
            count_reached(search, body)
        }
        StmtKind::Assign(..)
        | StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => 0,
    };
    list.iter().map(of).sum()
}

/// The kernel of a region: it loads the inputs, runs the statements and stores the outputs.
fn kernel_of(
    kernel: &Kernel<'_>,
    fixed: &Rematerializable,
    (boundary, number): (&Boundary, u32),
    statements: &[Stmt],
    span: Span,
) -> Function {
    let mut function = kernel.function.clone();
    function.name = format!("{}.warps{number}", function.name);
    // The statements of a plan may share expressions.
    let statements: Block = statements.iter().map(|stmt| function.copy_stmt(stmt)).collect();
    let mut body = Block::new();
    for &local in &boundary.recompute {
        if let Some(value) = fixed.value(local) {
            let value = function.copy_expr(value);
            body.push(Stmt { kind: StmtKind::Assign(local, value), span });
        }
    }
    let mut make = Make { function: &mut function, span, warp_blocks: false };
    for &(local, array) in &boundary.uniform {
        // All threads of the block have stored the same value.
        make.function.locals[local].broadcast = true;
        body.push(restore(&mut make, (local, array), true));
    }
    body.extend(boundary.inputs.iter().map(|&value| restore(&mut make, value, false)));
    body.extend(statements);
    body.extend(boundary.outputs.iter().map(|&value| save(&mut make, value, false)));
    function.body = body;
    function
}

/// The address of a local's value in an array: the first element, or the thread's.
fn pointer(make: &mut Make<'_>, array: SharedId, elem: Scalar, is_uniform: bool) -> ExprId {
    let index = if is_uniform { make.expr(ExprKind::Const(Const::Int(0)), Type::I64) } else { make.thread() };
    make.cell(array, elem, index)
}

/// Stores the value of a local.
fn save(make: &mut Make<'_>, (local, array): (LocalId, SharedId), is_uniform: bool) -> Stmt {
    let value = make.read(local);
    let elem = make.function.locals[local].ty.scalar().unwrap_or(Scalar::I64);
    let pointer = pointer(make, array, elem, is_uniform);
    make.stmt(StmtKind::Store { pointer, value, align: Align::Natural })
}

/// Loads the value of a local.
fn restore(make: &mut Make<'_>, (local, array): (LocalId, SharedId), is_uniform: bool) -> Stmt {
    let ty = make.function.locals[local].ty;
    let elem = ty.scalar().unwrap_or(Scalar::I64);
    let pointer = pointer(make, array, elem, is_uniform);
    let value = make.expr(ExprKind::Load(pointer, Align::Natural), ty);
    make.stmt(StmtKind::Assign(local, value))
}
