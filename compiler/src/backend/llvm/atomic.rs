//! Atomic read-modify-write. inkwell's builder knows neither floats nor synchronisation scopes, so LLVM is called.

#![expect(unsafe_code, reason = "LLVM's C interface, for what inkwell's builder cannot build")]

use inkwell::{
    context::AsContextRef,
    llvm_sys::{
        LLVMAtomicOrdering, LLVMAtomicRMWBinOp,
        core::{LLVMBuildAtomicCmpXchgSyncScope, LLVMBuildAtomicRMWSyncScope, LLVMGetSyncScopeID},
    },
    values::{AsValueRef, BasicValueEnum, PointerValue, StructValue},
};
use weft_artifact::Scalar;

use super::{FunctionEmitter, Result, internal};
use crate::ir::AtomicOp;

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Emits the operation, relaxed; gives the old value.
    pub(crate) fn emit_atomic(
        &self,
        op: AtomicOp,
        element: Scalar,
        pointer: PointerValue<'ctx>,
        value: BasicValueEnum<'ctx>,
        compare: Option<BasicValueEnum<'ctx>>,
    ) -> Result<BasicValueEnum<'ctx>> {
        self.current()?;
        let scope = self.hooks.atomic_scope();
        let context = self.cx.types.context.as_ctx_ref();
        // SAFETY: the context is alive and the name is given with its length; LLVM copies it.
        let scope = unsafe { LLVMGetSyncScopeID(context, scope.as_ptr().cast(), scope.len()) };
        let relaxed = LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic;
        let builder = self.builder.as_mut_ptr();
        let pointer = pointer.as_value_ref();
        match (op, compare) {
            (AtomicOp::Add, None) => {
                let op = if element.is_float() {
                    LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd
                } else {
                    LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAdd
                };
                let value = value.as_value_ref();
                // SAFETY: the builder has a position; the pointer points to a scalar of the value's type.
                let old = unsafe { LLVMBuildAtomicRMWSyncScope(builder, op, pointer, value, relaxed, scope) };
                // SAFETY: `old` is the instruction just built, whose type is the value's.
                Ok(unsafe { BasicValueEnum::new(old) })
            }
            (AtomicOp::Cas, Some(compare)) if element.is_int() => {
                let (compare, value) = (compare.as_value_ref(), value.as_value_ref());
                // SAFETY: the builder has a position; pointer, compare and value are of one integer type.
                let pair = unsafe {
                    LLVMBuildAtomicCmpXchgSyncScope(builder, pointer, compare, value, relaxed, relaxed, scope)
                };
                // SAFETY: `pair` is the instruction just built: a struct of the old value and a success flag.
                let pair = unsafe { StructValue::new(pair) };
                Ok(self.builder.build_extract_value(pair, 0, "")?)
            }
            (AtomicOp::Add | AtomicOp::Cas, _) => internal(format!("atomic {op:?} of {element}")),
        }
    }
}
