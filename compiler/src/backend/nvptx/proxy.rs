//! Fences of the async proxy: products of a warpgroup read shared memory through it, and bulk copies access it. Ordinary stores
//! and `cp.async` write through the generic proxy. The writing thread must execute a fence between its stores and its
//! synchronization with the threads of the product or the copy (PTX ISA, "Async proxy").
//!
//! A module with both has a fence before each operation by which a thread may synchronize with others. It is not known
//! which stores a product reads, and a fence costs little beside a barrier.

use crate::{
    backend::llvm::{FunctionEmitter, Result},
    ir::{ClusterOp, ExprId, Function, Module, Op, Space, StmtKind, Type, for_each_stmt},
};

/// Whether threads may write shared memory that products or bulk copies access through the async proxy.
pub(super) fn needs_fences(module: &Module) -> bool {
    let mut accesses = false;
    for (_, function) in module.functions.iter() {
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Op { op, .. } = stmt.kind {
                accesses |= matches!(op, Op::AsyncCopy(copy) if copy.is_bulk());
                accesses |= matches!(op, Op::Multiply(product) if product.reads_memory());
            }
        });
    }
    accesses && writes_shared(module)
}

/// Whether threads may write shared memory through the generic proxy.
pub(super) fn writes_shared(module: &Module) -> bool {
    let mut writes = false;
    for (_, function) in module.functions.iter() {
        for_each_stmt(&function.body, &mut |stmt| {
            let is_shared = |id: ExprId| may_be_shared(function, id);
            match &stmt.kind {
                StmtKind::Store { pointer, .. } => writes |= is_shared(*pointer),
                // Bulk copies access memory through the async proxy, barriers are no data, and an address is no access.
                StmtKind::Op { op: Op::AsyncCopy(copy), .. } if copy.has_barrier() || copy.is_store() => {}
                StmtKind::Op { op: Op::Cluster(_), .. } => {}
                StmtKind::Op { op, args, .. } => {
                    let (_, written) = op.accessed(args);
                    writes |= matches!(op, Op::Ptx { pure: false, .. } | Op::External(_));
                    writes |= written.iter().any(|&arg| is_shared(arg));
                }
                StmtKind::Assign(..)
                | StmtKind::Call { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
        });
    }
    writes
}

fn may_be_shared(function: &Function, id: ExprId) -> bool {
    matches!(function.exprs[id].ty, Type::Ptr(_, Space::Shared | Space::Generic))
}

/// Whether a thread may synchronize with others by an operation after it has written.
pub(super) fn synchronizes(op: Op) -> bool {
    match op {
        Op::Barrier | Op::BarrierReduce(_) | Op::GridBarrier | Op::WarpBarrier | Op::Fence(_) => true,
        Op::Atomic { order, .. } => order.releases(),
        Op::AsyncCopy(copy) => copy.releases(),
        Op::Cluster(op) => op == ClusterOp::Sync,
        Op::Shuffle(_)
        | Op::Vote(_)
        | Op::MatchAny
        | Op::MatchAll
        | Op::WarpReduce(_)
        | Op::Multiply(_)
        | Op::MatrixLoad(_)
        | Op::ProductWait(_)
        | Op::MultiplyCells(_)
        | Op::ActiveMask
        | Op::LaneBits(_)
        | Op::LaneFold(_)
        | Op::OfWarps
        | Op::WarpRegion(_)
        | Op::Print(_)
        | Op::Ptx { .. }
        | Op::External(_)
        | Op::Clock(_)
        | Op::Nanosleep
        | Op::SetRegisters { .. }
        | Op::Breakpoint
        | Op::Load(_)
        | Op::Store(_)
        | Op::Fault(_)
        | Op::FaultCall(_)
        | Op::Check(_) => false,
    }
}

/// Emits a fence. In a kernel with clusters, threads may write shared memory of other blocks.
pub(super) fn fence(emitter: &FunctionEmitter<'_, '_>, clusters: bool) -> Result<()> {
    let memory = if clusters { "cluster" } else { "cta" };
    instruction(emitter, &format!("fence.proxy.async.shared::{memory};"))
}

/// Emits an instruction without operands that all lanes of a warp execute together, as inline PTX, which LTO-IR can contain.
pub(super) fn instruction(emitter: &FunctionEmitter<'_, '_>, text: &str) -> Result<()> {
    let context = emitter.cx.types.context;
    let function = context.void_type().fn_type(&[], false);
    let asm = context.create_inline_asm(function, text.to_owned(), "~{memory}".to_owned(), true, false, None, false);
    let call = emitter.builder.build_indirect_call(function, asm, &[], "")?;
    emitter.cx.make_convergent(call);
    Ok(())
}
