//! Work-group splitting along `y` and `z`: runs each row of a block as a block of `blockDim.x` threads.
//!
//! Legal if no thread synchronizes with another one or observes how threads are numbered
//! ([`thread_order::may_move_all`]), and if only the kernel reads `threadIdx.y` and `threadIdx.z`: a block of several
//! rows is then the same program as several blocks of one row.
//!
//! Profitable because values that are uniform in a row become uniform in the block: `blockIdx.y * blockDim.y +
//! threadIdx.y`, conditions such as `0 <= y + j < height`, and loop bounds that depend on `y`. A loop that contains such
//! conditions or has such bounds can be interchanged with the thread loop. The planner keeps the rewrite only if it
//! interchanges more loops than without it, because a block of several rows has other advantages: tiles of several rows
//! share loads.
//!
//! | in the program | becomes |
//! |---|---|
//! | `threadIdx.y`, `threadIdx.z` | the row's index in the block along that axis |

use crate::{
    backend::host::plan::analysis::thread_order,
    ir::{
        Effects, Expr, ExprKind, FuncId, Function, Module, SpecialRegister, StmtKind, SyncScope, Type, for_each_stmt,
    },
};

/// Whether the rows of a block may run one after another as blocks, and the kernel has loops and reads its position in
/// the block along `y` or `z`.
pub(crate) fn may_split(module: &Module, kernel: FuncId, effects: &[Effects]) -> bool {
    let reads = |function: &Function| function.exprs.iter().any(|(_, expr)| row_axis(&expr.kind).is_some());
    let mut has_loops = false;
    for_each_stmt(&module.functions[kernel].body, &mut |stmt| has_loops |= matches!(stmt.kind, StmtKind::Loop { .. }));
    has_loops
        && reads(&module.functions[kernel])
        && legal!("split_rows.no-synchronization", effects.iter().all(|effects| effects.together == SyncScope::None))
        && legal!("split_rows.movable", thread_order::may_move_all(module))
        && legal!(
            "split_rows.kernel-only",
            module.functions.iter().all(|(id, function)| id == kernel || !reads(function))
        )
}

/// Rewrites a kernel for blocks of one row.
pub(crate) fn rewrite(function: &mut Function) {
    let reads: Vec<_> =
        function.exprs.iter().filter_map(|(id, expr)| Some((id, row_axis(&expr.kind)?, expr.span))).collect();
    for (id, axis, span) in reads {
        let kind = ExprKind::Special(SpecialRegister::OfRow(axis - 1));
        let index = function.exprs.push(Expr { kind, ty: Type::I64, span });
        function.exprs[id].kind = ExprKind::Convert(index);
    }
}

/// The axis of `threadIdx.y` or `threadIdx.z`.
fn row_axis(kind: &ExprKind) -> Option<u8> {
    if let ExprKind::Special(SpecialRegister::ThreadIdx(axis)) = *kind
        && axis > 0
    {
        Some(axis)
    } else {
        None
    }
}
