//! `fastmath` on float32: the hardware's approximations. numba uses libdevice's `__nv_fast_*` functions for the same.

use inkwell::values::{BasicValueEnum, FloatValue};

use crate::{
    backend::llvm::{FunctionEmitter, Result, constant, internal},
    ir::MathFn,
};

/// The approximation of a function, if it has one.
#[expect(clippy::wildcard_enum_match_arm, reason = "most functions have no approximation")]
pub(super) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    function: MathFn,
    args: &[BasicValueEnum<'ctx>],
) -> Result<Option<BasicValueEnum<'ctx>>> {
    let [BasicValueEnum::FloatValue(x), rest @ ..] = args else { return Ok(None) };
    let x = *x;
    if x.get_type() != emitter.cx.types.context.f32_type() {
        return Ok(None);
    }
    let unary = |name: &str, x: FloatValue<'ctx>| {
        let intrinsic = emitter.cx.intrinsic(&format!("llvm.nvvm.{name}"), &[])?;
        as_float(emitter.call(intrinsic, &[x.into()])?)
    };
    let log2 = |x| unary("lg2.approx.ftz.f", x);
    // This intrinsic is overloaded on its type.
    let exp2 = |x: FloatValue<'ctx>| as_float(emitter.call_intrinsic("llvm.nvvm.ex2.approx.ftz", &[x.into()])?);
    let product = |a: FloatValue<'ctx>, b| emitter.flagged(emitter.builder.build_float_mul(a, b, "")?);
    let scaled = |value: FloatValue<'ctx>, factor: f64| product(value, constant(value, factor));
    let value = match function {
        MathFn::Sin => unary("sin.approx.ftz.f", x)?,
        MathFn::Cos => unary("cos.approx.ftz.f", x)?,
        MathFn::Tan => {
            let (sin, cos) = (unary("sin.approx.ftz.f", x)?, unary("cos.approx.ftz.f", x)?);
            emitter.flagged(emitter.builder.build_float_div(sin, cos, "")?)?
        }
        MathFn::Exp => exp2(scaled(x, std::f64::consts::LOG2_E)?)?,
        MathFn::Exp2 => exp2(x)?,
        MathFn::Log => scaled(log2(x)?, std::f64::consts::LN_2)?,
        MathFn::Log10 => scaled(log2(x)?, std::f64::consts::LOG10_2)?,
        MathFn::Log2 => log2(x)?,
        MathFn::Pow => match rest {
            [BasicValueEnum::FloatValue(y)] => exp2(product(*y, log2(x)?)?)?,
            _ => return Ok(None),
        },
        // LLVM approximates square roots and divisions by their flags; other functions have no approximation.
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

fn as_float(value: BasicValueEnum<'_>) -> Result<FloatValue<'_>> {
    match value {
        BasicValueEnum::FloatValue(value) => Ok(value),
        other @ (BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::IntValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_)) => internal(format!("an approximation gives {other}")),
    }
}
