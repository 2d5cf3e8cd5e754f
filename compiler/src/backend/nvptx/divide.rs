//! Divisions of integers, as calls that divisions.cpp makes instructions of.
//!
//! How a division is best made depends on what is known of its operands, which is most once LLVM has inlined and simplified.
//! Until then it is a call of a function that only reads its arguments, and that LLVM may not call where the program does not.
//! Those by constants are instructions from the start: LLVM folds and combines them.

use inkwell::{
    attributes::AttributeLoc,
    values::{BasicValueEnum, IntValue},
};

use super::kernel::below;
use crate::backend::llvm::{Division, FunctionEmitter, Result, internal};

/// The call, if the division is one of those.
pub(super) fn call<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    division: Division,
    a: IntValue<'ctx>,
    b: IntValue<'ctx>,
) -> Result<Option<IntValue<'ctx>>> {
    let (cx, ty) = (emitter.cx, a.get_type());
    let bits = ty.get_bit_width();
    if !cx.options.opt || b.is_const() || bits < 32 {
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
            // `memory(none)`: LLVM's number of no effect on any memory.
            for attribute in ["memory", "nounwind", "willreturn", "nosync", "nofree"] {
                cx.attribute(function, attribute);
            }
            if nonneg {
                function.add_attribute(AttributeLoc::Return, below(cx, bits, 1 << (bits - 1)));
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
