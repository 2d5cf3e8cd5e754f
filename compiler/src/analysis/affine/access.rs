//! Classes of memory accesses: how the addresses of neighboring threads differ.
//!
//! The classes are estimates, as for a profiler or a report: integers do not wrap, and the threads of a loop execute
//! the same iteration.

use super::{Definition, Stride, definitions, estimated_stride, estimated_strides};
use crate::{
    ir::{Class, ExprId, Function, LocalId, Op, Space, Stmt, StmtKind, Type, for_each_expr_of_stmt, for_each_stmt},
    source::Span,
};

/// How the threads along an axis of a block access memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessClass {
    /// All access the same element.
    Uniform,
    /// Neighbors access neighboring elements.
    Contiguous,
    /// The elements of neighbors are this number of bytes apart, if it is a constant.
    Strided(Option<i64>),
    /// No common distance is known.
    Gather,
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Load,
    Store,
    /// An operation, such as an atomic one.
    Op(Op),
}

/// An access of a function to memory that is not the thread's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub kind: AccessKind,
    /// The address.
    pub pointer: ExprId,
    /// The source code of the access.
    pub span: Span,
    pub class: AccessClass,
}

/// The accesses of a function, in program order, for threads that are neighbors along an axis.
pub(crate) fn accesses(function: &Function, axis: u8) -> Vec<Access> {
    let strides = strides(function, axis);
    let mut found = Vec::new();
    let mut add = |kind: AccessKind, pointer: ExprId, span: Span| {
        let Type::Ptr(element, space) = function.exprs[pointer].ty else { return };
        if space != Space::Local {
            let size = element.size_bytes() as i64;
            let class = match estimated_stride(function, axis, &strides, pointer) {
                Stride::ZERO => AccessClass::Uniform,
                Stride::Constant(bytes) if bytes == size => AccessClass::Contiguous,
                Stride::Constant(bytes) => AccessClass::Strided(Some(bytes)),
                Stride::Uniform => AccessClass::Strided(None),
                Stride::Unknown | Stride::Undefined => AccessClass::Gather,
            };
            found.push(Access { kind, pointer, span, class });
        }
    };
    for_each_stmt(&function.body, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Class::Load(pointer) = function.class(id) {
                add(AccessKind::Load, pointer, function.exprs[id].span);
            }
        });
        match &stmt.kind {
            StmtKind::Store { pointer, .. } => add(AccessKind::Store, *pointer, stmt.span),
            StmtKind::Op { op, args, .. } => args.iter().for_each(|&arg| add(AccessKind::Op(*op), arg, stmt.span)),
            StmtKind::Assign(..)
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
    });
    found
}

/// By the local's index: its estimated stride. A local with several assignments, of which a branch executes one only
/// for some threads, has no known stride. Induction variables have that of their start value.
fn strides(function: &Function, axis: u8) -> Vec<Stride> {
    let mut unknown = Vec::new();
    loop {
        let strides = estimated_strides(function, &function.body, axis, &[], &unknown);
        let is_uniform = |id: ExprId| estimated_stride(function, axis, &strides, id) == Stride::ZERO;
        let definitions = definitions(function, &is_uniform);
        let before = unknown.len();
        divergent_assignments(&function.body, false, &is_uniform, &mut |local| {
            if definitions[local.index()] == Definition::Any && !unknown.contains(&local) {
                unknown.push(local);
            }
        });
        if unknown.len() == before {
            return strides;
        }
    }
}

/// Calls `visit` on the locals that are assigned in branches whose conditions differ between neighbors.
fn divergent_assignments(
    block: &[Stmt],
    divergent: bool,
    is_uniform: &dyn Fn(ExprId) -> bool,
    visit: &mut dyn FnMut(LocalId),
) {
    for stmt in block {
        if divergent {
            stmt.kind.assigned().into_iter().for_each(&mut *visit);
        }
        let divergent = divergent || matches!(stmt.kind, StmtKind::If { cond, .. } if !is_uniform(cond));
        for inner in stmt.kind.blocks().into_iter().flatten() {
            divergent_assignments(inner, divergent, is_uniform, visit);
        }
    }
}
