//! Atomic operations on a GPU.
//!
//! PTX's `atom` is for global and shared memory (PTX ISA, "atom"). On local memory, an atomic operation is a load and a
//! store. `atom.cas` has at least 32 bits, so a smaller element is swapped together with the bytes around it.

use inkwell::{AddressSpace, values::BasicValueEnum};
use weft_artifact::Scalar;

use super::{SPACES, hooks::effect};
use crate::{
    backend::llvm::{
        FunctionEmitter, OperandValue, Result,
        atomic::{WORD, instruction, parts},
        internal,
    },
    ir::{AtomicOp, Order, Scope, Space, Type},
    target::needs,
};

/// An atomic operation on memory of any space; returns the old value.
pub(super) fn step<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    sm: u32,
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
        Space::Global | Space::Shared => visible(emitter, sm, op, order, scope, operands),
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
                    visible(emitter, sm, op, order, scope, operands)?
                };
                olds.push((old, emitter.current()?));
                emitter.builder.build_unconditional_branch(after)?;
            }
            emitter.builder.position_at_end(after);
            let [(own, own_end), (other, other_end)] = olds.as_slice() else {
                return internal("an atomic operation with two forms");
            };
            let old = emitter.builder.build_phi(own.get_type(), "old")?;
            old.add_incoming(&[(own, *own_end), (other, *other_end)]);
            Ok(old.as_basic_value())
        }
    }
}

/// An atomic operation on memory that other threads can access.
fn visible<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    sm: u32,
    op: AtomicOp,
    order: Order,
    scope: Scope,
    operands: &[OperandValue<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let (_, element, _) = parts(op, operands)?;
    if op == AtomicOp::Cas && element.size_bytes() >= WORD {
        return emitter.emit_atomic(op, order, sync_scope(scope), operands);
    }
    // LLVM 22 ignores the ordering of an `atomicrmw` and treats every scope as the device's.
    emitter.fenced(order, sync_scope(scope), || match (has_instruction(sm, op, element), scope) {
        (true, Scope::Block | Scope::Device) => {
            emitter.emit_atomic(op, Order::Relaxed, sync_scope(Scope::Device), operands)
        }
        (true, Scope::System) if let Some(name) = name_of_system(op, element) => {
            step_of_system(emitter, name, op == AtomicOp::Sub, operands)
        }
        (true | false, Scope::Block | Scope::Device | Scope::System) => {
            emitter.emit_atomic_loop(op, order, sync_scope(scope), operands, true)
        }
    })
}

/// Whether PTX has an instruction for the operation.
fn has_instruction(sm: u32, op: AtomicOp, element: Scalar) -> bool {
    let size = element.size_bytes();
    match op {
        AtomicOp::Add if element == Scalar::BF16 => needs::has(sm, needs::BFLOAT_ATOMIC_ADD),
        AtomicOp::Add if element.is_float() => true,
        AtomicOp::Inc | AtomicOp::Dec => size == 4,
        AtomicOp::Sub if element.is_float() => false,
        AtomicOp::Add
        | AtomicOp::Sub
        | AtomicOp::And
        | AtomicOp::Or
        | AtomicOp::Xor
        | AtomicOp::Max
        | AtomicOp::Min
        | AtomicOp::NanMax
        | AtomicOp::NanMin
        | AtomicOp::Exchange
        | AtomicOp::Cas => size >= 4 && instruction(op, element).is_some(),
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

/// The operation in the intrinsic's name: `llvm.nvvm.atomic.<add.gen.i>.sys`.
fn name_of_system(op: AtomicOp, element: Scalar) -> Option<&'static str> {
    match op {
        AtomicOp::Add if element.is_half() => None,
        AtomicOp::Add if element.is_float() => Some("add.gen.f"),
        AtomicOp::Add | AtomicOp::Sub => Some("add.gen.i"),
        AtomicOp::And => Some("and.gen.i"),
        AtomicOp::Or => Some("or.gen.i"),
        AtomicOp::Xor => Some("xor.gen.i"),
        AtomicOp::Exchange if element.is_int() => Some("exch.gen.i"),
        AtomicOp::Max | AtomicOp::NanMax if element.is_signed_int() => Some("max.gen.i"),
        AtomicOp::Min | AtomicOp::NanMin if element.is_signed_int() => Some("min.gen.i"),
        AtomicOp::Inc => Some("inc.gen.i"),
        AtomicOp::Dec => Some("dec.gen.i"),
        AtomicOp::Exchange | AtomicOp::Max | AtomicOp::NanMax | AtomicOp::Min | AtomicOp::NanMin | AtomicOp::Cas => {
            None
        }
    }
}

/// `atom.sys`, relaxed. A subtraction adds the negated operand.
fn step_of_system<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    name: &str,
    negates: bool,
    operands: &[OperandValue<'ctx>],
) -> Result<BasicValueEnum<'ctx>> {
    let [OperandValue { value: BasicValueEnum::PointerValue(pointer), .. }, OperandValue { value, .. }] = operands
    else {
        return internal("an atomic operation without its two operands");
    };
    let generic = emitter.cx.types.context.ptr_type(AddressSpace::from(SPACES.generic));
    let pointer = emitter.builder.build_address_space_cast(*pointer, generic, "")?;
    let value = match value {
        BasicValueEnum::IntValue(value) if negates => emitter.builder.build_int_neg(*value, "")?.into(),
        BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::IntValue(_)
        | BasicValueEnum::FloatValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_) => *value,
    };
    let step = emitter.cx.intrinsic(&format!("llvm.nvvm.atomic.{name}.sys"), &[value.get_type(), generic.into()])?;
    emitter.call(step, &[pointer.into(), value])
}
