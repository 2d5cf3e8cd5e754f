//! An upper bound of a coarsened thread's registers: the locals that are live at a time, and the values that a
//! statement loads for all copies before it uses them. The machine's compiler allocates differently; the bound grows
//! monotonically with the number of copies.

use crate::{
    analysis::for_each_read,
    ir::{Block, Class, Function, LocalId, Stmt, StmtKind, Type, for_each_expr},
};

/// The registers that any thread needs, and the fraction of the live values that occupies a register: 64-bit indices
/// become 32-bit ones or parts of addresses, and some values are rematerialized. Fitted to ptxas 13.5 for the kernels
/// of `tests/benchmarks/suite`.
const ALWAYS: f64 = 10.0;
const HELD: f64 = 0.7;

/// For each local: whether it is live.
type Live = Vec<bool>;

/// The copies whose registers are estimated.
pub(super) struct Copies<'a> {
    /// The number of different values of a local over the copies of a thread.
    pub(super) of_local: &'a dyn Fn(LocalId) -> f64,
    /// The number of different loads of an expression over the copies.
    pub(super) of_load: &'a dyn Fn(crate::ir::ExprId) -> f64,
}

/// The maximum number of 32-bit registers that are live at a time.
pub(super) fn registers(function: &Function, copies: &Copies<'_>) -> f64 {
    let mut estimate = LivenessEstimate { function, copies, most: 0.0, leave: Vec::new(), next: Vec::new() };
    estimate.block(&function.body, vec![false; function.locals.len()]);
    ALWAYS + HELD * estimate.most
}

struct LivenessEstimate<'a> {
    function: &'a Function,
    copies: &'a Copies<'a>,
    most: f64,
    /// The live locals after each open loop.
    leave: Vec<Live>,
    /// The live locals at the end of an iteration of each open loop.
    next: Vec<Live>,
}

impl LivenessEstimate<'_> {
    /// The live locals before some statements, from those after them.
    fn block(&mut self, block: &Block, live_out: Live) -> Live {
        block.iter().rev().fold(live_out, |live, stmt| self.stmt(stmt, live))
    }

    fn stmt(&mut self, stmt: &Stmt, live_out: Live) -> Live {
        let mut live = match &stmt.kind {
            StmtKind::If { then, otherwise, .. } => {
                let then = self.block(then, live_out.clone());
                joined(&then, &self.block(otherwise, live_out))
            }
            StmtKind::Loop { body, step } => {
                self.leave.push(live_out);
                let mut head = vec![false; self.function.locals.len()];
                loop {
                    let end = self.block(step, head.clone());
                    self.next.push(end.clone());
                    let before = joined(&head, &self.block(body, end));
                    self.next.pop();
                    if before == head {
                        break;
                    }
                    head = before;
                }
                self.leave.pop();
                head
            }
            StmtKind::Break => self.leave.last().cloned().unwrap_or(live_out),
            StmtKind::Continue => self.next.last().cloned().unwrap_or(live_out),
            StmtKind::Return(_) => vec![false; self.function.locals.len()],
            StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::Op { .. } | StmtKind::Call { .. } => live_out,
        };
        for local in stmt.kind.assigned() {
            live[local.index()] = false;
        }
        let mut loads = 0.0;
        for root in stmt.kind.exprs() {
            for_each_read(self.function, root, &mut |local| live[local.index()] = true);
            for_each_expr(self.function, root, &mut |id| {
                if let Class::Load(_) = self.function.class(id) {
                    loads += words(self.function.exprs[id].ty) * (self.copies.of_load)(id);
                }
            });
        }
        let locals = self.function.locals.iter().filter(|(id, _)| live[id.index()]);
        let held: f64 = locals.map(|(id, local)| words(local.ty) * (self.copies.of_local)(id)).sum();
        self.most = self.most.max(held + loads);
        live
    }
}

fn joined(a: &Live, b: &Live) -> Live {
    a.iter().zip(b).map(|(a, b)| *a || *b).collect()
}

/// The number of 32-bit registers of a value.
fn words(ty: Type) -> f64 {
    match ty {
        Type::Scalar(scalar) if scalar.size_bytes() <= 4 => 1.0,
        Type::Scalar(_) | Type::Ptr(..) => 2.0,
    }
}
