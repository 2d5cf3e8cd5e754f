//! Reductions of the values of a warp in vector registers.
//!
//! ```text
//! 32 cells   →   16 lanes = lower half op upper half   →   8   →   4   →   2   →   1
//! ```
//!
//! The operations are those of a butterfly of shuffles by 16, 8, 4, 2 and 1, of which each lane computes the same tree.

use inkwell::{
    FloatPredicate,
    types::{BasicTypeEnum, VectorType},
    values::{BasicValue, BasicValueEnum, PointerValue, VectorValue},
};
use weft_artifact::Scalar;

use crate::{
    backend::{
        host::plan::LANES,
        llvm::{FunctionEmitter, Result, internal},
    },
    ir::{Type, WarpReduction},
};

/// Lanes of a warp.
const WIDTH: u32 = LANES as u32;

/// Reduces the cells of a warp's lanes.
pub(crate) fn fold<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    reduction: WarpReduction,
    (cells, element): (PointerValue<'ctx>, Scalar),
) -> Result<BasicValueEnum<'ctx>> {
    let builder = &emitter.builder;
    let memory = emitter.cx.types.memory(Type::Scalar(element))?;
    let ty = if let BasicTypeEnum::FloatType(ty) = memory {
        ty.vec_type(WIDTH)
    } else if let BasicTypeEnum::IntType(ty) = memory {
        ty.vec_type(WIDTH)
    } else {
        return internal(format!("a reduction of {memory}"));
    };
    let loaded = builder.build_load(ty, cells, "cells")?;
    if let (Some(load), Ok(align)) = (loaded.as_instruction_value(), u32::try_from(element.size_bytes())) {
        load.set_alignment(align).or_else(|error| internal(format!("an alignment of {align}: {error}")))?;
    }
    let index = emitter.cx.types.context.i32_type();
    let mut lanes = loaded.into_vector_value();
    let mut half = WIDTH / 2;
    while half > 0 {
        let part = |from: u32| {
            let indices: Vec<_> = (from..from + half).map(|lane| index.const_int(u64::from(lane), false)).collect();
            let indices = VectorType::const_vector(&indices);
            builder.build_shuffle_vector(lanes, lanes.get_type().get_undef(), indices, "")
        };
        lanes = apply(emitter, reduction, element, [part(0)?, part(half)?])?;
        half /= 2;
    }
    Ok(builder.build_extract_element(lanes, index.const_zero(), "")?)
}

fn apply<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    reduction: WarpReduction,
    element: Scalar,
    [a, b]: [VectorValue<'ctx>; 2],
) -> Result<VectorValue<'ctx>> {
    let builder = &emitter.builder;
    let extreme = |name: &str| -> Result<VectorValue<'ctx>> {
        Ok(emitter.call_intrinsic(name, &[a.into(), b.into()])?.into_vector_value())
    };
    let signed = element.is_signed_int();
    Ok(match reduction {
        WarpReduction::Add if element.is_float() => builder.build_float_add(a, b, "")?,
        WarpReduction::Add => builder.build_int_add(a, b, "")?,
        WarpReduction::And => builder.build_and(a, b, "")?,
        WarpReduction::Or => builder.build_or(a, b, "")?,
        WarpReduction::Xor => builder.build_xor(a, b, "")?,
        WarpReduction::Min if signed => extreme("llvm.smin")?,
        WarpReduction::Max if signed => extreme("llvm.smax")?,
        WarpReduction::Min if !element.is_float() => extreme("llvm.umin")?,
        WarpReduction::Max if !element.is_float() => extreme("llvm.umax")?,
        WarpReduction::Min | WarpReduction::Max => {
            // A NaN gives way to the other value, as in `Hooks::float_extreme`.
            let name = if reduction == WarpReduction::Max { "llvm.maximum" } else { "llvm.minimum" };
            let extreme = extreme(name)?;
            let b_is_nan = builder.build_float_compare(FloatPredicate::UNO, b, b, "")?;
            let without_b = builder.build_select(b_is_nan, a, extreme, "")?.into_vector_value();
            let a_is_nan = builder.build_float_compare(FloatPredicate::UNO, a, a, "")?;
            builder.build_select(a_is_nan, b, without_b, "")?.into_vector_value()
        }
    })
}
