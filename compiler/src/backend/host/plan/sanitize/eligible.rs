//! Decides which sanitized kernels run as thread loops. The others need a stack for each thread.
//!
//! The sanitizer records the same events for a thread in a loop as for one on a stack if all threads of a block reach
//! each barrier in lockstep, and no thread waits for another one in any other way. These require stacks:
//!
//! - barriers in divergent branches and loops, and in functions other than the kernel;
//! - warp operations, fences, ordered atomic operations and volatile loads;
//! - loops whose exit conditions depend on memory, which another thread may have to write first;
//! - local arrays in the kernel, and assignments to its parameters.

use weft_artifact::SiteKind;

use crate::{
    backend::host::plan::{
        analysis::structure::holds_barrier,
        plan_ir::{Node, Runs},
    },
    ir::{
        Block, Check, Class, ExprId, Function, Leaf, LoadHint, LocalId, Module, Op, Order, Stmt, StmtKind,
        for_each_expr, for_each_stmt,
    },
};

/// The module without checks that always pass, if its statements allow that the threads of the kernel are loops.
pub(crate) fn without_meetings(module: &Module) -> Option<Module> {
    let kernel = module.kernel?;
    for (id, function) in module.functions.iter() {
        let mut is_fit = id == kernel || !function.body.iter().any(holds_barrier);
        for_each_stmt(&function.body, &mut |stmt| {
            is_fit &= match &stmt.kind {
                StmtKind::Op { op, .. } => is_op_fit(*op),
                StmtKind::Loop { body, step } => !Exits::of(function, body, step).see_memory(),
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Call { .. }
                | StmtKind::If { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => true,
            };
        });
        if !is_fit {
            return None;
        }
    }
    let kernel = &module.functions[kernel];
    let mut assigns_params = false;
    for_each_stmt(&kernel.body, &mut |stmt| {
        assigns_params |= stmt.kind.assigned().iter().any(|local| kernel.params.contains(local));
    });
    // In a thread loop, local arrays of different threads share their memory. An assigned parameter no longer
    // identifies the argument.
    if assigns_params || !kernel.local_arrays.is_empty() {
        return None;
    }
    let mut module = module.clone();
    for (_, function) in module.functions.iter_mut() {
        let mut body = std::mem::take(&mut function.body);
        drop_meetings(&mut body);
        function.body = body;
    }
    Some(module)
}

/// Whether the sanitizer records the same for an operation in a thread loop as on a stack.
fn is_op_fit(op: Op) -> bool {
    match op {
        Op::Barrier | Op::Nanosleep | Op::SetRegisters { .. } | Op::Breakpoint | Op::Clock(_) | Op::Store(_) => true,
        Op::Atomic { order, .. } => order == Order::Relaxed,
        Op::Load(hint) => hint != LoadHint::Volatile,
        Op::Check(check) => match check {
            Check::Bounds(_) | Check::Returns | Check::Enters | Check::Leaves | Check::Unwritten | Check::Used => true,
            Check::Meets(kind) => kind == SiteKind::Barrier,
            Check::Lanes(..) => false,
        },
        Op::GridBarrier
        | Op::BarrierReduce(_)
        | Op::WarpBarrier
        | Op::Shuffle(_)
        | Op::Vote(_)
        | Op::MatchAny
        | Op::MatchAll
        | Op::WarpReduce(_)
        | Op::Multiply(_)
        | Op::MatrixLoad(_)
        | Op::ProductWait(_)
        | Op::MultiplyCells(_)
        | Op::AsyncCopy(_)
        | Op::Cluster(_)
        | Op::ActiveMask
        | Op::LaneBits(_)
        | Op::LaneFold(_)
        | Op::OfWarps
        | Op::WarpRegion(_)
        | Op::Fence(_)
        | Op::Print(_)
        | Op::Ptx { .. }
        | Op::External(_)
        | Op::Fault(_)
        | Op::FaultCall(_) => false,
    }
}

fn drop_meetings(block: &mut Block) {
    block.retain_mut(|stmt| {
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            drop_meetings(inner);
        }
        !matches!(stmt.kind, StmtKind::Op { op: Op::Check(Check::Returns | Check::Meets(SiteKind::Barrier)), .. })
    });
}

/// The conditions that the exits of a loop depend on.
struct Exits<'a> {
    function: &'a Function,
    /// The body and the step.
    parts: [&'a [Stmt]; 2],
    /// By the local's index: its assignments were visited.
    known: Vec<bool>,
    conds: Vec<ExprId>,
}

impl<'a> Exits<'a> {
    fn of(function: &'a Function, body: &'a [Stmt], step: &'a [Stmt]) -> Self {
        let known = vec![false; function.locals.len()];
        let mut this = Self { function, parts: [body, step], known, conds: Vec::new() };
        for part in this.parts {
            let mut around = Vec::new();
            this.add_ways_out(part, &mut around);
        }
        this
    }

    /// Adds the conditions around each jump, including those in inner loops.
    fn add_ways_out(&mut self, block: &'a [Stmt], around: &mut Vec<ExprId>) {
        for stmt in block {
            match &stmt.kind {
                StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => self.conds.extend(around.iter()),
                StmtKind::If { cond, then, otherwise } => {
                    around.push(*cond);
                    self.add_ways_out(then, around);
                    self.add_ways_out(otherwise, around);
                    around.pop();
                }
                StmtKind::Loop { body, step } => {
                    self.add_ways_out(body, around);
                    self.add_ways_out(step, around);
                }
                StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } => {}
            }
        }
    }

    /// Whether the conditions depend on a load, or on a result of a call or an operation in an iteration.
    fn see_memory(mut self) -> bool {
        while let Some(cond) = self.conds.pop() {
            let (mut loads, mut reads) = (false, Vec::new());
            for_each_expr(self.function, cond, &mut |id| match self.function.class(id) {
                Class::Load(_) => loads = true,
                Class::Leaf(Leaf::Local(local)) => reads.push(local),
                Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => {}
            });
            if loads || reads.into_iter().any(|local| self.gets(local)) {
                return true;
            }
        }
        false
    }

    /// Whether an iteration assigns a local the result of a call or an operation. The values and conditions of its
    /// other assignments are added to `conds`.
    fn gets(&mut self, local: LocalId) -> bool {
        if std::mem::replace(&mut self.known[local.index()], true) {
            return false;
        }
        let parts = self.parts;
        let mut around = Vec::new();
        parts.into_iter().any(|part| self.is_got(part, local, &mut around))
    }

    fn is_got(&mut self, block: &'a [Stmt], local: LocalId, around: &mut Vec<ExprId>) -> bool {
        let mut got = false;
        for stmt in block {
            got |= match &stmt.kind {
                StmtKind::Assign(to, value) => {
                    if *to == local {
                        self.conds.push(*value);
                        self.conds.extend(around.iter());
                    }
                    false
                }
                StmtKind::Op { results, .. } | StmtKind::Call { results, .. } => results.contains(&local),
                StmtKind::If { cond, then, otherwise } => {
                    around.push(*cond);
                    let inside = self.is_got(then, local, around) | self.is_got(otherwise, local, around);
                    around.pop();
                    inside
                }
                StmtKind::Loop { body, step } => self.is_got(body, local, around) | self.is_got(step, local, around),
                StmtKind::Store { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => false,
            };
        }
        got
    }
}

/// Whether all threads reach all nodes in lockstep, and execute each segment without a guard or mask, so that each
/// access is recorded.
pub(crate) fn go_together(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| match node {
        Node::Once { active: None, .. }
        | Node::Barrier
        | Node::WarpRegion(_)
        | Node::Break
        | Node::Continue
        | Node::Return => true,
        Node::Segment(segment) => {
            segment.active.is_none() && segment.guard.is_none() && segment.runs == Runs::EachThread
        }
        Node::If { then, otherwise, .. } => go_together(then) && go_together(otherwise),
        Node::Loop { active: None, guard: None, mask: None, continue_mask: None, body, step, .. } => {
            go_together(body) && go_together(step)
        }
        Node::Once { .. }
        | Node::Guarded { .. }
        | Node::Split { .. }
        | Node::Strips(_)
        | Node::TransposedRows(_)
        | Node::Loop { .. } => false,
    })
}
