//! Lowers barriers that carry a value, for the CPU, to barriers, an atomic operation and a cell of shared memory.
//!
//! ```text
//!                                      $hit = $p
//!                                      barrier
//!                                      store shared.reduced = 0
//! $n = barrier.count $p                barrier
//!                                      if $hit { atomic.add shared.reduced, 1 }
//!                                      barrier
//!                                      $n = load shared.reduced
//! ```
//!
//! `and` counts the threads whose value is false, and `or` those whose value is true; both compare the count with 0.
//! The first barrier ensures that all threads have read the cell of the previous reduction, the second one that all
//! threads see the 0. Threads that have returned or do not reach the barrier neither count nor wait, as at any barrier.

use weft_artifact::Scalar;

use crate::{
    ir::{
        Align, AtomicOp, Block, CompareOp, Const, Expr, ExprId, ExprKind, Function, Local, LocalId, LocalKind, Module,
        Op, Reduction, SharedArray, SharedId, SharedKind, Space, Stmt, StmtKind, Type, UnaryOp, for_each_stmt,
    },
    source::Span,
};

const CELL: Type = Type::Ptr(Scalar::I32, Space::Shared);

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    let mut first = None;
    for (_, function) in module.functions.iter() {
        for_each_stmt(&function.body, &mut |stmt| {
            if matches!(stmt.kind, StmtKind::Op { op: Op::BarrierReduce(_), .. }) {
                first = first.or(Some(stmt.span));
            }
        });
    }
    let Some(span) = first else { return };
    let cell = SharedArray {
        name: "reduced".to_owned(),
        kind: SharedKind::Cells,
        elem: Scalar::I32,
        len: 1,
        shape: Vec::new(),
        align: 4,
        span,
    };
    let cell = module.shared.push(cell);
    for (_, function) in module.functions.iter_mut() {
        let mut body = std::mem::take(&mut function.body);
        lower(function, cell, &mut body);
        function.body = body;
    }
}

fn lower(function: &mut Function, cell: SharedId, block: &mut Block) {
    let mut out = Block::with_capacity(block.len());
    for mut stmt in block.drain(..) {
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            lower(function, cell, inner);
        }
        match stmt.kind {
            StmtKind::Op { op: Op::BarrierReduce(reduction), results, args } => {
                let mut build = Build { function, cell, span: stmt.span };
                out.extend(build.reduction(reduction, results.first().copied(), args.first().copied()));
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => out.push(stmt),
        }
    }
    *block = out;
}

/// Builds the expansion of one barrier.
struct Build<'a> {
    function: &'a mut Function,
    cell: SharedId,
    span: Span,
}

impl Build<'_> {
    fn reduction(&mut self, reduction: Reduction, result: Option<LocalId>, arg: Option<ExprId>) -> Vec<Stmt> {
        // A result that is never read is not computed.
        let (Some(result), Some(arg)) = (result, arg) else { return vec![self.barrier()] };
        let arg = match reduction {
            Reduction::Count | Reduction::Or => arg,
            Reduction::And => self.expr(ExprKind::Unary(UnaryOp::Not, arg), Type::BOOL),
        };
        let hit = self.function.locals.push(Local::new("hit", LocalKind::Variable, Type::BOOL));
        let (zero, one, cond) = (self.int(0), self.int(1), self.expr(ExprKind::Local(hit), Type::BOOL));
        let (cleared, counted, read) = (self.pointer(), self.pointer(), self.pointer());
        let add = StmtKind::Op { op: Op::atomic(AtomicOp::Add), results: Vec::new(), args: vec![counted, one] };
        let then = vec![self.stmt(add)];
        let count = self.expr(ExprKind::Load(read, Align::Natural), Type::I32);
        let value = match reduction {
            Reduction::Count => count,
            Reduction::And => self.compared(CompareOp::Eq, count),
            Reduction::Or => self.compared(CompareOp::Ne, count),
        };
        vec![
            self.stmt(StmtKind::Assign(hit, arg)),
            self.barrier(),
            self.stmt(StmtKind::Store { pointer: cleared, value: zero, align: Align::Natural }),
            self.barrier(),
            self.stmt(StmtKind::If { cond, then, otherwise: Block::new() }),
            self.barrier(),
            self.stmt(StmtKind::Assign(result, value)),
        ]
    }

    /// 1 if the comparison of the count with 0 holds, else 0.
    fn compared(&mut self, op: CompareOp, count: ExprId) -> ExprId {
        let zero = self.int(0);
        let holds = self.expr(ExprKind::Compare(op, count, zero), Type::BOOL);
        self.expr(ExprKind::Convert(holds), Type::I32)
    }

    fn barrier(&self) -> Stmt {
        self.stmt(StmtKind::Op { op: Op::Barrier, results: Vec::new(), args: Vec::new() })
    }

    fn stmt(&self, kind: StmtKind) -> Stmt {
        Stmt { kind, span: self.span }
    }

    fn pointer(&mut self) -> ExprId {
        self.expr(ExprKind::SharedBase(self.cell), CELL)
    }

    fn int(&mut self, value: i128) -> ExprId {
        self.expr(ExprKind::Const(Const::Int(value)), Type::I32)
    }

    fn expr(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span: self.span })
    }
}
