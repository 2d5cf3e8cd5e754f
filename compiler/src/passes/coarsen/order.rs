//! Chooses the arrangement of the copies of a thread along x.
//!
//! Adjacent copies get wider accesses if each access to global memory has unit stride over threads with elements of at
//! most four bytes, or is uniform, or is an atomic operation with a data-dependent address. Otherwise they would make
//! the launch's coalesced accesses strided.

use super::{CopyLocals, Order};
use crate::{
    analysis::affine::{Stride, estimated_stride, estimated_strides},
    ir::{Class, ExprId, Function, LocalId, Module, Op, Space, StmtKind, Type, for_each_expr_of_block, for_each_stmt},
};

/// The maximum size of elements of which several are accessed at once.
const LARGEST: i64 = 4;

/// The order of the copies along x.
pub(super) fn along_x(module: &Module, copies: CopyLocals) -> Order {
    if copies[0].is_none() {
        return Order::Contiguous;
    }
    let merges = module.functions.iter().all(|(id, function)| {
        let strides = if Some(id) == module.kernel {
            strides(function, copies)
        } else {
            vec![Stride::Unknown; function.locals.len()]
        };
        all_merge(function, &strides)
    });
    if merges { Order::Contiguous } else { Order::Strided }
}

/// By the local's index: its stride along x. The index of the copy counts as uniform.
pub(super) fn strides(function: &Function, copies: CopyLocals) -> Vec<Stride> {
    let copies: Vec<LocalId> = copies.into_iter().flatten().collect();
    estimated_strides(function, &function.body, 0, &copies, &[])
}

/// Whether each access to global memory has unit stride over small elements, or is uniform.
fn all_merge(function: &Function, strides: &[Stride]) -> bool {
    let stride = |pointer: ExprId| estimated_stride(function, 0, strides, pointer);
    let merges = |pointer: ExprId| match function.exprs[pointer].ty {
        Type::Ptr(elem, Space::Global | Space::Generic) => match stride(pointer) {
            Stride::Constant(bytes) => bytes == 0 || (bytes <= LARGEST && bytes == elem.size_bytes() as i64),
            Stride::Undefined => true,
            Stride::Uniform | Stride::Unknown => false,
        },
        Type::Ptr(_, Space::Shared | Space::Local | Space::Constant) | Type::Scalar(_) => true,
    };
    let mut all = true;
    for_each_expr_of_block(function, &function.body, &mut |id| {
        if let Class::Load(pointer) = function.class(id) {
            all &= merges(pointer);
        }
    });
    for_each_stmt(&function.body, &mut |stmt| match &stmt.kind {
        StmtKind::Store { pointer, .. } => all &= merges(*pointer),
        // Atomic operations never merge. Those with data-dependent addresses are scattered in either arrangement.
        StmtKind::Op { op: Op::Atomic { .. }, args, .. } => {
            all &= args.iter().all(|arg| merges(*arg) || matches!(stride(*arg), Stride::Uniform | Stride::Unknown));
        }
        StmtKind::Op { args, .. } => all &= args.iter().all(|arg| merges(*arg)),
        StmtKind::Assign(..)
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => {}
    });
    all
}
