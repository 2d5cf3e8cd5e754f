//! Brings the threads of a warp together again, in modules whose functions call themselves.
//!
//! Threads that call such a function to different depths return one after the other, but `ptxas` (13.0 and 13.5)
//! assumes that they have converged: it removes `bar.warp.sync`, and emits the plain form of `bar.sync` and of
//! `barrier.sync`, which the first threads then pass without the others. CUDA C++ has the bug too: a `__syncthreads()`
//! after recursive calls of different depths does not wait. After a branch on the lane, `ptxas` knows that threads may
//! be divergent, and `bar.warp.sync` then waits for them: so we emit it in both arms of such a branch.

use inkwell::values::{BasicValueEnum, IntValue};

use crate::{
    backend::llvm::{FunctionEmitter, Result, internal},
    ir::{Op, SyncScope},
};

/// `bar.warp.sync`, wherever the threads of the mask come from.
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

/// The threads that come to an operation together, as a mask of their warp; none if each comes by itself.
pub(super) fn mask_of<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    op: Op,
    operands: &[BasicValueEnum<'ctx>],
) -> Result<Option<IntValue<'ctx>>> {
    match (op.row().together, operands.first()) {
        (SyncScope::None, _) => Ok(None),
        // It waits for nobody, nor does a program's PTX or another language's code unless it says so itself.
        (SyncScope::Warp | SyncScope::Block, _) if matches!(op, Op::ActiveMask | Op::Ptx { .. } | Op::External(_)) => {
            Ok(None)
        }
        (SyncScope::Warp, Some(BasicValueEnum::IntValue(mask))) => Ok(Some(*mask)),
        (SyncScope::Warp, _) => internal(format!("{op} without a mask")),
        (SyncScope::Block | SyncScope::Grid, _) => Ok(Some(emitter.cx.types.context.i32_type().const_all_ones())),
    }
}

/// Waits for the threads of the mask that have not returned.
pub(super) fn gather<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, mask: IntValue<'ctx>) -> Result<()> {
    let context = emitter.cx.types.context;
    let function = context.void_type().fn_type(&[mask.get_type().into()], false);
    let constraints = "r,~{memory}".to_owned();
    let asm = context.create_inline_asm(function, GATHER.to_owned(), constraints, true, false, None, false);
    let call = emitter.builder.build_indirect_call(function, asm, &[mask.into()], "")?;
    emitter.cx.make_convergent(call);
    Ok(())
}
