//! The verifier of plans rejects plans that break one rule each.

use weft_artifact::Scalar;

use crate::{
    backend::host::{
        plan::{Guard, Node, Piece, Plan, Range, Runs, Segment, Split, SplitBy, Strips, Vectors},
        tests::harness::module,
    },
    ir::{Block, CompareOp, Const, Expr, ExprId, ExprKind, LocalId, Stmt, StmtKind, Type},
    source::Span,
};

/// A guarded region with a barrier, a loop with a barrier, a divergent branch with a barrier, and a value that is live
/// across barriers.
const SOURCE: &str = "
def k(x, n):
    t = cuda.threadIdx.x
    i = cuda.grid(1) + n
    value = x[t]
    cuda.syncthreads()
    for step in range(n):
        if i < n:
            x[t] = value
        cuda.syncthreads()
        x[t] += x[0]
    if x[t] > 1:
        x[t] = 1
        cuda.syncthreads()
        x[t] += value
";

const SIGNATURE: &str = "void(float32[::1], int64)";

/// A loop in strips whose accesses are transposed.
const STRIPS: &str = "
def k(a, y):
    i = cuda.grid(1)
    if i < a.shape[0]:
        total = y[i]
        for k in range(a.shape[1]):
            total += a[i, k]
        y[i] = total
";

fn plan() -> Plan {
    Plan::of(&module(SOURCE, SIGNATURE), true, Vectors::PLAIN, false).expect("a valid plan")
}

fn strips() -> Plan {
    let vectors = Vectors { pairs: false, masks: true, word_masks: true };
    Plan::of(&module(STRIPS, "void(float32[:, ::1], float32[::1])"), true, vectors, false).expect("a valid plan")
}

/// The first node for which `find` holds, in the order of the text form.
fn node<'a>(nodes: &'a mut [Node], find: &dyn Fn(&Node) -> bool) -> Option<&'a mut Node> {
    for node in nodes {
        if find(node) {
            return Some(node);
        }
        for part in node.parts_mut() {
            if let Some(found) = self::node(part, find) {
                return Some(found);
            }
        }
    }
    None
}

/// The first segment for which `find` holds.
fn segment<'a>(plan: &'a mut Plan, find: &dyn Fn(&Segment) -> bool) -> &'a mut Segment {
    let is_it = |node: &Node| matches!(node, Node::Segment(segment) if find(segment));
    match node(&mut plan.cut.nodes, &is_it) {
        Some(Node::Segment(segment)) => segment,
        Some(_) | None => panic!("the plan has such a segment"),
    }
}

/// The strips of a plan.
fn strips_of(plan: &mut Plan) -> &mut Strips {
    match node(&mut plan.cut.nodes, &|node| matches!(node, Node::Strips(_))) {
        Some(Node::Strips(strips)) => strips,
        Some(_) | None => panic!("the plan has strips"),
    }
}

fn local(plan: &Plan, name: &str) -> LocalId {
    let locals = &plan.module.functions[plan.kernel].locals;
    locals.iter().find(|(_, local)| local.name == name).expect("the kernel has the local").0
}

fn expr(plan: &mut Plan, kind: ExprKind, ty: Type) -> ExprId {
    plan.module.functions[plan.kernel].exprs.push(Expr { kind, ty, span: Span::default() })
}

fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, span: Span::default() }
}

/// A range that compares two values.
fn range(value: ExprId, op: CompareOp, bound: ExprId) -> Range {
    Range { value, op, bound, times: 1, plus: 0, wraps: false }
}

fn guard(range: Range) -> Guard {
    Guard { ranges: vec![range], ..Guard::default() }
}

/// Checks that a plan breaks a rule after a change, and none before.
fn rejects(mut plan: Plan, change: impl FnOnce(&mut Plan), expected: &str) {
    assert_eq!(plan.broken_rules(), [""; 0]);
    change(&mut plan);
    let errors = plan.broken_rules();
    assert!(errors.iter().any(|error| error.contains(expected)), "{expected}: {errors:?}\n{}", plan.text());
}

#[test]
fn handles_exist() {
    let missing = ExprId::new(u32::MAX);
    let end = |plan: &mut Plan, cond| plan.cut.nodes.push(Node::If { cond, then: Vec::new(), otherwise: Vec::new() });
    rejects(plan(), |plan| end(plan, missing), "there is no expression");
    rejects(plan(), |plan| segment(plan, &|_| true).store.push(LocalId::new(u32::MAX)), "there is no local");
    rejects(plan(), |plan| segment(plan, &|_| true).active = Some(9), "there is no mask 9");
}

#[test]
fn regions_have_no_barrier_and_assign_no_uniform_local() {
    let barrier = module(SOURCE, SIGNATURE);
    let kernel = &barrier.functions[barrier.kernel.expect("a kernel")];
    let barrier = kernel.body.iter().find(|stmt| matches!(stmt.kind, StmtKind::Op { .. })).expect("a barrier").clone();
    rejects(plan(), |plan| segment(plan, &|_| true).body.push(barrier), "segment 1 contains a barrier");
    let assign = |plan: &mut Plan, name: &str| {
        let (local, zero) = (local(plan, name), expr(plan, ExprKind::Const(Const::Int(0)), Type::I64));
        stmt(StmtKind::Assign(local, zero))
    };
    let change = |plan: &mut Plan| {
        let assign = assign(plan, "step");
        segment(plan, &|_| true).body.push(assign);
    };
    rejects(plan(), change, "segment 1 assigns the uniform $step");
    let change = |plan: &mut Plan| {
        let assign = assign(plan, "value");
        plan.cut.nodes.push(Node::Once { active: None, guard: None, block: vec![assign] });
    };
    rejects(plan(), change, "code for the block mentions the varying $value");
    let block = |kind| Node::Once { active: None, guard: None, block: vec![stmt(kind)] };
    rejects(
        plan(),
        |plan| plan.cut.nodes.push(block(StmtKind::Return(Vec::new()))),
        "code for the block has an effect",
    );
}

#[test]
fn conditions_and_jumps_are_those_of_the_block() {
    let change = |plan: &mut Plan| {
        let read = ExprKind::Local(local(plan, "value"));
        let cond = expr(plan, read, Type::BOOL);
        plan.cut.nodes.push(Node::If { cond, then: Vec::new(), otherwise: Vec::new() });
    };
    rejects(plan(), change, "the condition of a uniform branch varies");
    rejects(plan(), |plan| plan.cut.nodes.push(Node::Break), "a jump is outside of a loop");
    let change = |plan: &mut Plan| segment(plan, &|_| true).body.push(stmt(StmtKind::Break));
    rejects(plan(), change, "segment 1 jumps out of a loop of the block without a mask");
    let change = |plan: &mut Plan| {
        let varying = local(plan, "value");
        let counted = |node: &Node| matches!(node, Node::Loop { .. });
        let Some(Node::Loop { counter, .. }) = node(&mut plan.cut.nodes, &counted) else { panic!("a loop") };
        *counter = Some(varying);
    };
    rejects(plan(), change, "of a loop varies");
}

#[test]
fn values_are_loaded_or_recomputed() {
    let loads = |segment: &Segment| !segment.load.is_empty();
    rejects(plan(), |plan| segment(plan, &loads).load.clear(), "which it neither loads nor recomputes");
    rejects(plan(), |plan| segment(plan, &loads).locals.clear(), "has no slot for $value");
    rejects(plan(), |plan| plan.live_across.locals.clear(), "loads or stores $value");
    let change = |plan: &mut Plan| {
        let value = local(plan, "value");
        segment(plan, &loads).recompute.push(value);
    };
    rejects(plan(), change, "recomputes $value");
    let change = |plan: &mut Plan| {
        let cond = local(plan, "value");
        let is_split = |node: &Node| matches!(node, Node::Split { .. });
        let Some(Node::Split { cond: of, .. }) = node(&mut plan.cut.nodes, &is_split) else { panic!("a branch") };
        *of = cond;
    };
    rejects(plan(), change, "a condition is no boolean");
    let change = |plan: &mut Plan| {
        let is_split = |node: &Node| matches!(node, Node::Split { .. });
        let Some(&mut Node::Split { cond, .. }) = node(&mut plan.cut.nodes, &is_split) else { panic!("a branch") };
        plan.live_across.locals.retain(|&local| local != cond);
    };
    rejects(plan(), change, "of a branch has no context array");
}

#[test]
fn guards_compute_what_they_read() {
    let has_ranges = |segment: &Segment| segment.guard.as_ref().is_some_and(|guard| !guard.recompute.is_empty());
    let change = |plan: &mut Plan, change: &dyn Fn(&mut Guard)| {
        change(segment(plan, &has_ranges).guard.as_mut().expect("it has a guard"));
    };
    rejects(plan(), |plan| change(plan, &|guard| guard.recompute.clear()), "which it does not recompute");
    rejects(plan(), |plan| change(plan, &|guard| guard.ranges[0].op = CompareOp::Ne), "is no interval");
    rejects(plan(), |plan| change(plan, &|guard| guard.ranges[0].times = 0), "has the factor 0");
    rejects(
        plan(),
        |plan| change(plan, &|guard| guard.ranges[0].bound = guard.ranges[0].value),
        "is not uniform in the row",
    );
    let narrow = |plan: &mut Plan| {
        let zero = expr(plan, ExprKind::Const(Const::Int(0)), Type::I32);
        change(plan, &|guard| guard.ranges[0].bound = zero);
    };
    rejects(plan(), narrow, "compares int64 with int32");
    let varying = |plan: &mut Plan| {
        let read = ExprKind::Local(local(plan, "value"));
        let read = expr(plan, read, Type::BOOL);
        change(plan, &|guard| guard.rows.push((read, false)));
    };
    rejects(plan(), varying, "which is not rematerializable");
    let of_thread = |plan: &mut Plan| {
        let read = ExprKind::Special(crate::ir::SpecialRegister::ThreadIdx(0));
        let read = expr(plan, read, Type::I32);
        change(plan, &|guard| guard.rows.push((read, false)));
    };
    rejects(plan(), of_thread, "a condition of segment");
    let change = |plan: &mut Plan| {
        let (value, bound) = (expr(plan, ExprKind::Const(Const::Int(0)), Type::I64), ExprKind::Const(Const::Int(1)));
        let bound = expr(plan, bound, Type::I64);
        let inside = std::mem::take(&mut plan.cut.nodes);
        plan.cut.nodes = vec![Node::Guarded { guard: guard(range(value, CompareOp::Lt, bound)), inside }];
    };
    rejects(plan(), change, "does not begin with the guards around it");
}

#[test]
fn masks_are_set_around_their_nodes() {
    rejects(
        plan(),
        |plan| segment(plan, &|segment| segment.active.is_none()).active = Some(0),
        "mask 0 is not set here",
    );
    let change = |plan: &mut Plan| {
        let is_split = |node: &Node| matches!(node, Node::Split { .. });
        let Some(Node::Split { then_mask, else_mask, .. }) = node(&mut plan.cut.nodes, &is_split) else {
            panic!("a branch")
        };
        *else_mask = *then_mask;
    };
    rejects(plan(), change, "of a branch are in use");
    let change = |plan: &mut Plan| segment(plan, &|segment| segment.active.is_some()).runs = Runs::Groups;
    rejects(plan(), change, "runs once for a warp, and has a mask");
}

#[test]
fn a_split_has_the_pieces_of_its_kind() {
    let split =
        |by: SplitBy, guard: Guard, body: &Block| Some(Split::by_range(by, Piece { guard, body: body.clone() }));
    let change = |plan: &mut Plan| {
        let segment = segment(plan, &|_| true);
        segment.split = split(SplitBy::Bit, Guard::default(), &segment.body);
    };
    rejects(plan(), change, "segment 1 is split in 1 pieces");
    let change = |plan: &mut Plan| {
        let segment = segment(plan, &|_| true);
        segment.split = split(SplitBy::SteadyState, Guard::default(), &segment.body);
        segment.runs = Runs::OneThread;
    };
    rejects(plan(), change, "does not run for each thread, but its domain is split");
    let change = |plan: &mut Plan| {
        segment(plan, &|_| true).split = split(SplitBy::ExcludedRange, Guard::default(), &Block::new());
    };
    rejects(plan(), change, "has an excluded range that is empty or does something");
    let change = |plan: &mut Plan| {
        let value = expr(plan, ExprKind::Const(Const::Int(0)), Type::I64);
        let segment = segment(plan, &|_| true);
        let wrapping = Range { wraps: true, ..range(value, CompareOp::Lt, value) };
        segment.split = split(SplitBy::SteadyState, guard(wrapping), &segment.body);
    };
    rejects(plan(), change, "has a piece whose guard may wrap");
    let change = |plan: &mut Plan| {
        let value = expr(plan, ExprKind::Const(Const::Int(0)), Type::I64);
        let segment = segment(plan, &|_| true);
        segment.split = split(SplitBy::SteadyState, Guard::default(), &segment.body).map(|mut split| {
            split.of = guard(range(value, CompareOp::Lt, value));
            split
        });
    };
    rejects(plan(), change, "is split by a range, but has values of another split");
    for (by, message) in [
        (SplitBy::ResidueClass { modulus: Some(2), other: false }, "has a residue class without a modulus"),
        (SplitBy::Scaled { bounds: 1 }, "has a scaled guard without two ranges for each index"),
    ] {
        let change = |plan: &mut Plan| {
            let segment = segment(plan, &|_| true);
            segment.split = split(by, Guard::default(), &segment.body);
        };
        rejects(plan(), change, message);
    }
}

#[test]
fn strips_have_plain_lanes() {
    rejects(strips(), |plan| strips_of(plan).nodes.push(Node::Barrier), "a barrier is in a strip");
    rejects(strips(), |plan| strips_of(plan).width = 0, "a strip has no threads");
    rejects(strips(), |plan| strips_of(plan).nodes.push(Node::Strips(Box::default())), "a strip is in a strip");
    rejects(strips(), |plan| strips_of(plan).lane_locals.clear(), "which has no array");
    rejects(strips(), |plan| strips_of(plan).transposed = false, "are not in a loop of transposed strips");
    let change = |plan: &mut Plan| {
        let total = local(plan, "total");
        strips_of(plan).shared.push(total);
    };
    rejects(strips(), change, "which a strip assigns for all lanes, varies");
    let change = |plan: &mut Plan| {
        let strips = strips_of(plan);
        for node in &mut strips.nodes {
            if let Node::Segment(segment) = node {
                let guard = strips.guard.clone().unwrap_or_default();
                let nothing = Piece { guard, body: Block::new() };
                segment.split = Some(Split::by_range(SplitBy::ExcludedRange, nothing));
            }
        }
    };
    rejects(strips(), change, "a segment of a strip has a mask or a split domain");
    let change = |plan: &mut Plan| {
        let float = expr(plan, ExprKind::Const(Const::Float(0.0)), Type::Scalar(Scalar::F64));
        let strips = strips_of(plan);
        strips.guard = Some(guard(range(float, CompareOp::Lt, float)));
    };
    rejects(strips(), change, "a range of a strip compares float64 with float64");
}
