//! Reconverges the threads of a warp, in modules with recursive functions.
//!
//! Threads that call such a function to different depths return at different times, but `ptxas` (13.0 and 13.5) assumes
//! that they have converged: it removes `bar.warp.sync`, and emits the plain form of `bar.sync` and of `barrier.sync`,
//! which the first threads then pass without the others. CUDA C++ has the bug too: a `__syncthreads()` after recursive
//! calls of different depths does not wait. After a branch on the lane, `ptxas` knows that threads may be divergent,
//! and `bar.warp.sync` then waits for them. Therefore this code emits it in both arms of such a branch.

use inkwell::values::{BasicValueEnum, IntValue};

use crate::{
    backend::llvm::{FunctionEmitter, Result, internal},
    ir::{Op, SyncScope},
};

/// `bar.warp.sync` for a mask of lanes that may be divergent.
const GATHER: &str = "{
	.reg .pred even;
	.reg .b32 lane;
	mov.u32 lane, %laneid;
	and.b32 lane, lane, 1;
	setp.eq.u32 even, lane, 0;
	@even bra gather_even;
	bar.warp.sync $0;
	bra gathered;
gather_even:
	bar.warp.sync $0;
gathered:
	}";

/// The mask of the warp's lanes that must be converged for an operation; `None` if it does not require convergence.
pub(super) fn mask_of<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    op: Op,
    operands: &[BasicValueEnum<'ctx>],
) -> Result<Option<IntValue<'ctx>>> {
    match (op.row().together, operands.first()) {
        (SyncScope::None, _) => Ok(None),
        // `activemask` does not wait, and inline PTX and external functions synchronize by themselves if they need to.
        (SyncScope::Warp | SyncScope::Block, _) if matches!(op, Op::ActiveMask | Op::Ptx { .. } | Op::External(_)) => {
            Ok(None)
        }
        (SyncScope::Warp, _)
            if matches!(op, Op::Multiply(_) | Op::MatrixLoad(_) | Op::ProductWait(_) | Op::SetRegisters { .. }) =>
        {
            Ok(Some(emitter.cx.types.context.i32_type().const_all_ones()))
        }
        (SyncScope::Warp, Some(BasicValueEnum::IntValue(mask))) => Ok(Some(*mask)),
        (SyncScope::Warp, _) => internal(format!("{op} without a mask")),
        (SyncScope::Block | SyncScope::Cluster | SyncScope::Grid, _) => {
            Ok(Some(emitter.cx.types.context.i32_type().const_all_ones()))
        }
    }
}

/// Waits for the threads of the mask that have not exited.
pub(super) fn gather<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, mask: IntValue<'ctx>) -> Result<()> {
    let context = emitter.cx.types.context;
    let function = context.void_type().fn_type(&[mask.get_type().into()], false);
    let constraints = "r,~{memory}".to_owned();
    let asm = context.create_inline_asm(function, GATHER.to_owned(), constraints, true, false, None, false);
    let call = emitter.builder.build_indirect_call(function, asm, &[mask.into()], "")?;
    emitter.cx.make_convergent(call);
    Ok(())
}
