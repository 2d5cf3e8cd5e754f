//! The memory that functions read: whether another thread may have written it.

use super::ir_queries::{any_expr, escapes};
use crate::ir::{
    Effects, ExprId, ExprKind, Function, Module, Op, Space, StmtKind, Touches, Type, for_each_expr_of_block,
    for_each_stmt,
};

/// The memory that a call of a function reads, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reads {
    /// Only its arguments and the thread's own memory.
    Nothing,
    /// Also memory that each call of it writes itself, such as the state of a random generator.
    Own,
    /// Also memory that other threads may write, but only by atomic operations.
    Steps,
    /// Memory that other threads may write.
    Others,
}

impl Reads {
    /// For each function of a module, by index.
    pub(crate) fn of_module(module: &Module) -> Vec<Self> {
        let effects = Effects::of_module(module);
        let mut all = Vec::with_capacity(module.functions.len());
        for (_, function) in module.functions.iter() {
            let of = Self::of(function, &all, &effects);
            all.push(of);
        }
        all
    }

    /// For one function; `known` has the results of the functions before it, which it may call.
    fn of(function: &Function, known: &[Self], effects: &[Effects]) -> Self {
        let stores = stores(function);
        let mut all = Self::Nothing;
        for_each_stmt(&function.body, &mut |stmt| {
            let own = match &stmt.kind {
                StmtKind::Op { op: Op::Atomic { .. }, .. } => Self::Steps,
                StmtKind::Op { op, .. } if op.row().memory.reads() => Self::Others,
                // A function without a result is called recursively.
                StmtKind::Call { func, .. } if Effects::of_function(effects, *func).touches > Touches::Nothing => {
                    known.get(func.index()).copied().unwrap_or(Self::Others)
                }
                StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => Self::Nothing,
            };
            all = all.max(own);
        });
        for_each_expr_of_block(function, &function.body, &mut |id| {
            if let ExprKind::Load(pointer, _) = function.exprs[id].kind
                && !is_own_space(function, pointer)
            {
                let own = stores.iter().any(|&store| same(function, store, pointer));
                all = all.max(if own { Self::Own } else { Self::Others });
            }
        });
        all
    }
}

/// The pointers that each call of a function stores to, and that are invariant in it.
fn stores(function: &Function) -> Vec<ExprId> {
    let mut counts = vec![0_u32; function.locals.len()];
    function.params.iter().for_each(|param| counts[param.index()] += 1);
    for_each_stmt(&function.body, &mut |stmt| {
        stmt.kind.assigned().iter().for_each(|local| counts[local.index()] += 1);
    });
    let mut pointers = Vec::new();
    for stmt in &function.body {
        if let StmtKind::Store { pointer, .. } = &stmt.kind {
            let moves = |kind: &ExprKind| matches!(kind, ExprKind::Local(local) if counts[local.index()] > 1);
            let loads = |kind: &ExprKind| matches!(kind, ExprKind::Load(..));
            if !any_expr(function, *pointer, &|kind| moves(kind) || loads(kind)) {
                pointers.push(*pointer);
            }
        }
        if escapes(std::slice::from_ref(stmt)).any() {
            break;
        }
    }
    pointers
}

/// Whether a pointer points to memory that no other thread writes.
pub(crate) fn is_own_space(function: &Function, pointer: ExprId) -> bool {
    matches!(function.exprs[pointer].ty, Type::Ptr(_, Space::Local | Space::Constant))
}

/// Whether two expressions compute the same operation on the same values.
pub(crate) fn same(function: &Function, a: ExprId, b: ExprId) -> bool {
    let (x, y) = (&function.exprs[a], &function.exprs[b]);
    let (of_x, of_y) = (x.kind.operands(), y.kind.operands());
    let head = |kind: &ExprKind| kind.clone().map_operands(&mut |_| a);
    a == b
        || (x.ty == y.ty
            && of_x.len() == of_y.len()
            && head(&x.kind) == head(&y.kind)
            && of_x.iter().zip(of_y.iter()).all(|(&p, &q)| same(function, p, q)))
}
