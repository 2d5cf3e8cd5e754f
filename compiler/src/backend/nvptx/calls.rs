//! Finds calls of intrinsics that remain after LLVM's passes.

use inkwell::{
    basic_block::BasicBlock,
    module::Module,
    values::{CallSiteValue, FunctionValue, InstructionOpcode, InstructionValue},
};

/// The calls of a module for which `is_meant` is true. It gets each call and the name of the callee.
pub(super) fn calls<'ctx>(
    module: &Module<'ctx>,
    is_meant: impl Fn(InstructionValue<'ctx>, &[u8]) -> bool,
) -> Vec<InstructionValue<'ctx>> {
    let instructions =
        module.get_functions().flat_map(FunctionValue::get_basic_block_iter).flat_map(BasicBlock::get_instructions);
    let calls = instructions.filter(|&instruction| {
        if instruction.get_opcode() != InstructionOpcode::Call {
            return false;
        }
        let Ok(call) = CallSiteValue::try_from(instruction) else { return false };
        call.get_called_fn_value().is_some_and(|callee| is_meant(instruction, callee.get_name().to_bytes()))
    });
    calls.collect()
}
