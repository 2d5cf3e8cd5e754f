//! Atomic read-modify-write. inkwell's builder knows neither floats nor synchronisation scopes, so LLVM is called.

#![expect(unsafe_code, reason = "LLVM's C interface, for what inkwell's builder cannot build")]

use inkwell::{
    IntPredicate,
    context::AsContextRef,
    llvm_sys::{
        LLVMAtomicOrdering, LLVMAtomicRMWBinOp,
        core::{LLVMBuildAtomicCmpXchgSyncScope, LLVMBuildAtomicRMWSyncScope, LLVMGetSyncScopeID},
    },
    values::{AsValueRef, BasicValueEnum, StructValue},
};

use super::{FunctionEmitter, OperandValue, Result, internal};
use crate::ir::{AtomicOp, Order, Type};

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Emits the step with one of LLVM's synchronisation scopes; gives the old value.
    pub(crate) fn emit_atomic(
        &self,
        op: AtomicOp,
        order: Order,
        scope: &str,
        operands: &[OperandValue<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        self.current()?;
        let context = self.cx.types.context.as_ctx_ref();
        // SAFETY: the context is alive and the name is given with its length; LLVM copies it.
        let scope = unsafe { LLVMGetSyncScopeID(context, scope.as_ptr().cast(), scope.len()) };
        let builder = self.builder.as_mut_ptr();
        let Some((OperandValue { ty: Type::Ptr(element, _), value: pointer }, operands)) = operands.split_first()
        else {
            return internal(format!("an atomic {op:?} without a pointer"));
        };
        let pointer = pointer.as_value_ref();
        match (op, operands) {
            (AtomicOp::Add, [value]) => {
                let op = if element.is_float() {
                    LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd
                } else {
                    LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAdd
                };
                let value = value.value.as_value_ref();
                // SAFETY: the builder has a position; the pointer points to a scalar of the value's type.
                let old = unsafe { LLVMBuildAtomicRMWSyncScope(builder, op, pointer, value, ordering(order), scope) };
                // SAFETY: `old` is the instruction just built, whose type is the value's.
                Ok(unsafe { BasicValueEnum::new(old) })
            }
            (AtomicOp::Cas, [compare, value]) if element.is_int() => {
                let (compare, value) = (compare.value.as_value_ref(), value.value.as_value_ref());
                let (done, failed) = (ordering(order), ordering_of_failure(order));
                // SAFETY: the builder has a position; pointer, compare and value are of one integer type.
                let pair =
                    unsafe { LLVMBuildAtomicCmpXchgSyncScope(builder, pointer, compare, value, done, failed, scope) };
                // SAFETY: `pair` is the instruction just built: a struct of the old value and a success flag.
                let pair = unsafe { StructValue::new(pair) };
                Ok(self.builder.build_extract_value(pair, 0, "")?)
            }
            (AtomicOp::Add | AtomicOp::Cas, _) => internal(format!("atomic {op:?} of {element}")),
        }
    }
}

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// The same step on memory that no other thread touches meanwhile: plain loads and stores.
    pub(crate) fn emit_unshared(&self, op: AtomicOp, operands: &[OperandValue<'ctx>]) -> Result<BasicValueEnum<'ctx>> {
        let Some((OperandValue { ty: Type::Ptr(element, _), value: pointer }, operands)) = operands.split_first()
        else {
            return internal(format!("a step of {op:?} without a pointer"));
        };
        let pointer = pointer.into_pointer_value();
        let old = self.builder.build_load(self.cx.types.memory(Type::Scalar(*element))?, pointer, "old")?;
        let new = match (op, operands, old) {
            (AtomicOp::Add, [value], BasicValueEnum::FloatValue(old)) => {
                self.builder.build_float_add(old, value.value.into_float_value(), "")?.into()
            }
            (AtomicOp::Add, [value], BasicValueEnum::IntValue(old)) => {
                self.builder.build_int_add(old, value.value.into_int_value(), "")?.into()
            }
            (AtomicOp::Cas, [compare, value], BasicValueEnum::IntValue(old)) => {
                let same = IntPredicate::EQ;
                let same = self.builder.build_int_compare(same, old, compare.value.into_int_value(), "")?;
                self.builder.build_select(same, value.value, old.into(), "")?
            }
            (AtomicOp::Add | AtomicOp::Cas, _, _) => return internal(format!("a step of {op:?} on {element}")),
        };
        self.builder.build_store(pointer, new)?;
        Ok(old)
    }
}

fn ordering(order: Order) -> LLVMAtomicOrdering {
    match order {
        Order::Relaxed => LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
        Order::Acquire => LLVMAtomicOrdering::LLVMAtomicOrderingAcquire,
        Order::Release => LLVMAtomicOrdering::LLVMAtomicOrderingRelease,
        Order::AcquireRelease => LLVMAtomicOrdering::LLVMAtomicOrderingAcquireRelease,
    }
}

/// Of a compare-and-swap that does not swap: it reads, so that it releases nothing.
fn ordering_of_failure(order: Order) -> LLVMAtomicOrdering {
    match order {
        Order::Relaxed | Order::Release => LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
        Order::Acquire | Order::AcquireRelease => LLVMAtomicOrdering::LLVMAtomicOrderingAcquire,
    }
}
