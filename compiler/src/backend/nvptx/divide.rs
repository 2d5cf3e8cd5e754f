//! Integer divisions, as calls that divisions.cpp expands to instructions.
//!
//! The best code for a division depends on the ranges of its operands, and these are known best after LLVM has inlined
//! and simplified. Until then, a division is a call of a function without side effects that LLVM must not speculate.
//! Divisions by constants are instructions from the start, so that LLVM folds and combines them; so are all divisions
//! in NVVM IR, which libNVVM optimizes.

use inkwell::{
    attributes::AttributeLoc,
    values::{BasicValueEnum, IntValue},
};

use super::kernel::within;
use crate::{
    analysis::Interval,
    backend::llvm::{Division, FunctionEmitter, Result, internal},
    request::GpuCode,
};

/// Emits the call, unless the division is better emitted as instructions.
pub(super) fn call<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    division: Division,
    a: IntValue<'ctx>,
    b: IntValue<'ctx>,
) -> Result<Option<IntValue<'ctx>>> {
    let (cx, ty) = (emitter.cx, a.get_type());
    let bits = ty.get_bit_width();
    let is_nvvm = matches!(cx.options.gpu_code, GpuCode::NvvmIr { .. });
    if !cx.options.opt || b.is_const() || bits < 32 || is_nvvm {
        return Ok(None);
    }
    let (name, nonneg) = match division {
        Division::Floor => ("floordiv", false),
        Division::Modulo => ("floormod", false),
        Division::NonnegQuotient => ("divnonneg", true),
        Division::NonnegRemainder => ("modnonneg", true),
    };
    let symbol = format!("weft${name}.i{bits}");
    let function = match cx.module.get_function(&symbol) {
        Some(known) => known,
        None => {
            let function = cx.module.add_function(&symbol, ty.fn_type(&[ty.into(), ty.into()], false), None);
            // The value 0 of the attribute `memory` is `memory(none)`.
            for attribute in ["memory", "nounwind", "willreturn", "nosync", "nofree"] {
                cx.attribute(function, attribute);
            }
            if nonneg {
                function.add_attribute(AttributeLoc::Return, within(cx, bits, Interval::new(0, (1 << (bits - 1)) - 1)));
            }
            function
        }
    };
    match emitter.call(function, &[a.into(), b.into()])? {
        BasicValueEnum::IntValue(value) => Ok(Some(value)),
        other @ (BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::FloatValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_)) => internal(format!("a quotient of integers gives {other}")),
    }
}
