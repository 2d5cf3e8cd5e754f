//! Operations of clusters on the CPU: the context has the memory of all blocks of the cluster.
#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use std::mem::offset_of;

use inkwell::values::BasicValueEnum;
use weft_artifact::HostContext;

use crate::{
    backend::{
        host::emit::position::{Frame, known_offset},
        llvm::{FunctionEmitter, OperandValue, Result, internal},
    },
    ir::{ClusterOp, Space},
};

/// Emits an operation that does not wait. Returns its results.
pub(crate) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    frame: &Frame<'ctx>,
    op: ClusterOp,
    operands: &[OperandValue<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let (types, builder) = (emitter.cx.types, &emitter.builder);
    let (int, long) = (types.context.i32_type(), types.context.i64_type());
    let pointer = types.pointer(Space::Generic);
    let field = |offset: usize| known_offset(emitter, frame.context, offset as u64);
    match op {
        ClusterOp::Rank => Ok(vec![builder.build_load(int, field(offset_of!(HostContext, cluster_rank))?, "rank")?]),
        ClusterOp::Size => Ok(vec![builder.build_load(int, field(offset_of!(HostContext, cluster_size))?, "size")?]),
        ClusterOp::Shared => {
            let [own, rank] = operands else { return internal("an address in a cluster without its operands") };
            let (BasicValueEnum::PointerValue(own), BasicValueEnum::IntValue(rank)) = (own.value, rank.value) else {
                return internal("an address in a cluster of other operands");
            };
            let blocks = builder.build_load(pointer, field(offset_of!(HostContext, cluster))?, "blocks")?;
            let rank = builder.build_int_z_extend(rank, long, "")?;
            // SAFETY: the front end has compared the rank with the number of blocks.
            let place = unsafe { builder.build_in_bounds_gep(pointer, blocks.into_pointer_value(), &[rank], "")? };
            let other = builder.build_load(pointer, place, "scratch")?.into_pointer_value();
            let own = builder.build_ptr_to_int(own, long, "")?;
            let first = builder.build_ptr_to_int(frame.scratch, long, "")?;
            let offset = builder.build_int_sub(own, first, "")?;
            // SAFETY: both blocks have the same layout.
            Ok(vec![unsafe { builder.build_gep(types.context.i8_type(), other, &[offset], "")? }.into()])
        }
        ClusterOp::Sync => internal("a barrier that does not wait"),
    }
}
