//! Device functions are called once per copy. Functions that read their thread index, directly or through a callee, get
//! the indices of the copy as additional parameters.

use weft_artifact::Factors;

use super::{CopyLocals, coarsened, copy_local};
use crate::ir::{
    Expr, ExprKind, FuncId, Function, Module, Stmt, StmtKind, Type, for_each_expr_of_block, for_each_stmt,
};

/// Adds locals for the indices of the copy to the kernel, and parameters for them to the functions that read their
/// thread index. Every call passes them.
pub(super) fn number_copies(module: &mut Module, factors: Factors) -> CopyLocals {
    let (queries, by_axis) = (asking(module, factors), factors.by_axis());
    let kernel = module.kernel;
    let mut of_kernel = [None; 3];
    for (id, function) in module.functions.iter_mut() {
        let is_kernel = Some(id) == kernel;
        if !is_kernel && !queries[id.index()] {
            continue;
        }
        let mut locals = [None; 3];
        for (axis, local) in locals.iter_mut().enumerate().filter(|(axis, _)| by_axis[*axis] > 1) {
            let new = copy_local(function, axis);
            if !is_kernel {
                function.params.push(new);
            }
            *local = Some(new);
        }
        pass_on(function, &queries, locals);
        if is_kernel {
            of_kernel = locals;
        }
    }
    of_kernel
}

/// The parameters that [`number_copies`] has added to a device function.
pub(super) fn params(function: &Function, factors: Factors) -> CopyLocals {
    let mut locals = [None; 3];
    let by_axis = factors.by_axis();
    for (axis, local) in locals.iter_mut().enumerate().filter(|(axis, _)| by_axis[*axis] > 1) {
        let name = ["copy.x", "copy.y", "copy.z"][axis];
        *local = function.params.iter().copied().find(|param| function.locals[*param].name == name);
    }
    locals
}

/// For each function: whether it, or a callee, reads the index of its thread, or block, along a coarsened axis.
fn asking(module: &Module, factors: Factors) -> Vec<bool> {
    let mut queries = vec![false; module.functions.len()];
    // Callees come before their callers.
    for (id, function) in module.functions.iter() {
        let mut found = false;
        for_each_expr_of_block(function, &function.body, &mut |expr| {
            if let ExprKind::Special(register) = function.exprs[expr].kind {
                found |= coarsened(factors, register).is_some_and(|of| of.numbers);
            }
        });
        for_each_stmt(&function.body, &mut |stmt| {
            found |= matches!(stmt.kind, StmtKind::Call { func, .. } if queries[func.index()]);
        });
        queries[id.index()] = found;
    }
    queries
}

/// Passes the indices of the copy to the functions that read them.
fn pass_on(function: &mut Function, queries: &[bool], locals: CopyLocals) {
    let mut body = std::mem::take(&mut function.body);
    crate::ir::for_each_stmt_mut(&mut body, &mut |Stmt { kind, span }| {
        if let StmtKind::Call { func, args, .. } = kind
            && queries[FuncId::index(*func)]
        {
            for local in locals.into_iter().flatten() {
                args.push(function.exprs.push(Expr { kind: ExprKind::Local(local), ty: Type::I32, span: *span }));
            }
        }
    });
    function.body = body;
}
