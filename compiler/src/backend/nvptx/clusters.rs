//! Operations of thread block clusters, as inline PTX, which LTO-IR can contain.

use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum};

use super::proxy;
use crate::{
    backend::llvm::{FunctionEmitter, OperandValue, Result, internal},
    ir::{ClusterOp, Space},
};

/// Emits an operation. Returns its results.
pub(super) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    op: ClusterOp,
    operands: &[OperandValue<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let (types, builder) = (emitter.cx.types, &emitter.builder);
    match op {
        ClusterOp::Sync => {
            proxy::instruction(emitter, op.ptx())?;
            // A GPU does not detect that a thread never comes.
            Ok(vec![types.context.bool_type().const_int(1, false).into()])
        }
        ClusterOp::Rank | ClusterOp::Size => {
            let function = types.context.i32_type().fn_type(&[], false);
            let (text, results) = (op.ptx().to_owned(), "=r".to_owned());
            let asm = types.context.create_inline_asm(function, text, results, false, false, None, false);
            let call = builder.build_indirect_call(function, asm, &[], "")?;
            call.try_as_basic_value().basic().map_or_else(|| internal("a register without a value"), |it| Ok(vec![it]))
        }
        ClusterOp::Shared => {
            let [OperandValue { value: BasicValueEnum::PointerValue(pointer), .. }, rank] = operands else {
                return internal("an address in a cluster without its operands");
            };
            let (long, generic) = (types.context.i64_type(), types.pointer(Space::Generic));
            let pointer = builder.build_address_space_cast(*pointer, generic, "")?;
            let address: BasicMetadataValueEnum<'ctx> = builder.build_ptr_to_int(pointer, long, "")?.into();
            let function = long.fn_type(&[long.into(), types.context.i32_type().into()], false);
            let (text, constraints) = (op.ptx().to_owned(), "=l,l,r".to_owned());
            let asm = types.context.create_inline_asm(function, text, constraints, false, false, None, false);
            let call = builder.build_indirect_call(function, asm, &[address, rank.value.into()], "")?;
            let Some(BasicValueEnum::IntValue(address)) = call.try_as_basic_value().basic() else {
                return internal("an address in a cluster without a value");
            };
            Ok(vec![builder.build_int_to_ptr(address, generic, "")?.into()])
        }
    }
}
