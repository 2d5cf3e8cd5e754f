//! Atomic steps on a GPU.
//!
//! PTX's `atom` is for global and shared memory (PTX ISA, "atom"): on a thread's own memory it is a load and a store.

use inkwell::{AddressSpace, values::BasicValueEnum};

use super::{SPACES, hooks::effect};
use crate::{
    backend::llvm::{FunctionEmitter, OperandValue, Result, internal},
    ir::{AtomicOp, Order, Scope, Space, Type},
};

/// A step on memory of any space; gives the old value.
pub(super) fn step<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    op: AtomicOp,
    order: Order,
    scope: Scope,
    operands: &[OperandValue<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let Some(OperandValue { ty: Type::Ptr(_, space), value: BasicValueEnum::PointerValue(pointer) }) = operands.first()
    else {
        return internal(format!("an atomic {op:?} without a pointer"));
    };
    match space {
        Space::Global | Space::Shared => visible(emitter, op, order, scope, operands),
        Space::Local => emitter.emit_unshared(op, operands),
        Space::Constant => internal(format!("an atomic {op:?} on constant memory")),
        Space::Generic => {
            let is_local = emitter.cx.intrinsic("llvm.nvvm.isspacep.local", &[])?;
            let is_local = emitter.call(is_local, &[(*pointer).into()])?.into_int_value();
            let [own, other, after] = ["own", "visible", "after"].map(|name| emitter.block(name));
            emitter.builder.build_conditional_branch(is_local, own, other)?;
            let mut olds = Vec::new();
            for block in [own, other] {
                emitter.builder.position_at_end(block);
                let old = if block == own {
                    emitter.emit_unshared(op, operands)?
                } else {
                    visible(emitter, op, order, scope, operands)?
                };
                olds.push((old, emitter.current()?));
                emitter.builder.build_unconditional_branch(after)?;
            }
            emitter.builder.position_at_end(after);
            let [(own, own_end), (other, other_end)] = olds.as_slice() else {
                return internal("an atomic step has two ways");
            };
            let old = emitter.builder.build_phi(own.get_type(), "old")?;
            old.add_incoming(&[(own, *own_end), (other, *other_end)]);
            Ok(old.as_basic_value())
        }
    }
}

/// A step on memory that other threads see.
fn visible<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    op: AtomicOp,
    order: Order,
    scope: Scope,
    operands: &[OperandValue<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    match op {
        AtomicOp::Cas => emitter.emit_atomic(op, order, sync_scope(scope), operands),
        // LLVM 22 loses the order of an `atomicrmw`, and takes every scope for the device's.
        AtomicOp::Add => {
            if order.releases() {
                membar(emitter, scope)?;
            }
            let old = match scope {
                Scope::Block | Scope::Device => {
                    emitter.emit_atomic(op, Order::Relaxed, sync_scope(Scope::Device), operands)?
                }
                Scope::System => add_of_system(emitter, operands)?,
            };
            if order.acquires() {
                membar(emitter, scope)?;
            }
            Ok(old)
        }
    }
}

fn sync_scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Block => "block",
        Scope::Device => "device",
        Scope::System => "",
    }
}

pub(super) fn membar<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, scope: Scope) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let scope = match scope {
        Scope::Block => "cta",
        Scope::Device => "gl",
        Scope::System => "sys",
    };
    effect(emitter, &format!("llvm.nvvm.membar.{scope}"), &[])
}

/// `atom.sys.add`, relaxed.
fn add_of_system<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    operands: &[OperandValue<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let [OperandValue { value: BasicValueEnum::PointerValue(pointer), .. }, OperandValue { value, .. }] = operands
    else {
        return internal("an atomic.add without its two operands");
    };
    let generic = emitter.cx.types.context.ptr_type(AddressSpace::from(SPACES.generic));
    let pointer = emitter.builder.build_address_space_cast(*pointer, generic, "")?;
    let kind = if value.is_float_value() { 'f' } else { 'i' };
    let name = format!("llvm.nvvm.atomic.add.gen.{kind}.sys");
    let add = emitter.cx.intrinsic(&name, &[value.get_type(), generic.into()])?;
    emitter.call(add, &[pointer.into(), *value])
}
