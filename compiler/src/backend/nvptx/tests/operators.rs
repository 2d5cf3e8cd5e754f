//! Every operator, conversion and math function on every type that has it.

#![expect(clippy::wildcard_enum_match_arm, reason = "a table of the cases that differ")]

use weft_artifact::Scalar;

use super::{ptx, ptx_for};
use crate::{
    backend::testing::{INTEGER_OPS, KernelBuilder, SPAN},
    ir::{BinaryOp, CompareOp, MathFn, Module, Type, UnaryOp},
    request::Options,
};

/// `out[i] = function(x[i], ...)`
pub(super) fn math_kernel(function: MathFn, scalar: Scalar) -> Module {
    let mut k = KernelBuilder::new("kernel");
    let result = match function {
        MathFn::Isfinite | MathFn::Isinf | MathFn::Isnan => Scalar::Bool,
        MathFn::FrexpExponent => Scalar::I32,
        _ => scalar,
    };
    let x = k.array("x", scalar);
    let out = k.array("out", result);
    let exponent = k.scalar("exponent", Scalar::I32);
    let i = k.index();
    let mut args: Vec<_> = (0..function.arity()).map(|_| k.load(x, i)).collect();
    if function == MathFn::Ldexp {
        args[1] = k.read(exponent);
    }
    let value = k.b.math(function, args, Type::Scalar(result), SPAN);
    k.store(out, i, value);
    k.finish()
}

/// Every function on every width can be assembled, with the embedded libclc.
#[test]
fn all_math_functions() {
    for &function in MathFn::ALL.iter().filter(|f| f.is_usual() && !matches!(f, MathFn::Bits | MathFn::OfBits)) {
        for scalar in [Scalar::F32, Scalar::F64] {
            let module = math_kernel(function, scalar);
            for fastmath in [false, true] {
                let text = ptx_for(&module, 75, Options { fastmath, ..Options::default() });
                assert!(!text.contains(".extern"), "{}: {text}", function.name());
            }
        }
    }
}

/// A fused multiply-add of 16-bit floats is one instruction or its exact computation. Other functions are computed in
/// `float32` and rounded.
#[test]
fn math_functions_of_halves() {
    for scalar in [Scalar::F16, Scalar::BF16] {
        for number in [75, 80, 90] {
            let text = ptx_for(&math_kernel(MathFn::Fma, scalar), number, Options::default());
            let name = if scalar == Scalar::F16 { "fma.rn.f16" } else { "fma.rn.bf16" };
            assert_eq!(text.contains(name), scalar == Scalar::F16 || number >= 80, "{text}");
            for function in [MathFn::Sqrt, MathFn::Sin, MathFn::Ceil, MathFn::Isnan, MathFn::Ldexp, MathFn::Pow] {
                let text = ptx_for(&math_kernel(function, scalar), number, Options::default());
                assert!(!text.contains(".extern"), "{}: {text}", function.name());
            }
        }
    }
}

/// Every operator on every type that has it, every comparison and every conversion.
#[test]
fn all_operators_and_conversions() {
    for scalar in Scalar::ALL {
        let mut k = KernelBuilder::new("kernel");
        let ty = Type::Scalar(scalar);
        let x = k.array("x", scalar);
        let out = k.array("out", scalar);
        let flags = k.array("flags", Scalar::Bool);
        let i = k.index();
        let ops: &[BinaryOp] = match scalar {
            Scalar::Bool => &[BinaryOp::And, BinaryOp::Or, BinaryOp::Xor],
            float if float.is_float() => &[
                BinaryOp::Add,
                BinaryOp::Sub,
                BinaryOp::Mul,
                BinaryOp::Div,
                BinaryOp::FloorDiv,
                BinaryOp::FloorMod,
                BinaryOp::Min,
                BinaryOp::Max,
            ],
            _ => &INTEGER_OPS,
        };
        for &op in ops {
            let (a, b) = (k.load(x, i), k.load(out, i));
            let value = k.b.binary(op, a, b, SPAN);
            k.store(out, i, value);
        }
        let unary: &[UnaryOp] = match scalar {
            Scalar::Bool => &[UnaryOp::Not],
            float if float.is_float() => &[UnaryOp::Neg, UnaryOp::Abs],
            _ => &[UnaryOp::Neg, UnaryOp::Not, UnaryOp::Abs],
        };
        for &op in unary {
            let a = k.load(x, i);
            let value = k.b.unary(op, a, SPAN);
            k.store(out, i, value);
        }
        let ordered = [CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];
        let ordered = ordered.into_iter().filter(|_| scalar != Scalar::Bool);
        for op in [CompareOp::Eq, CompareOp::Ne].into_iter().chain(ordered) {
            let (a, b) = (k.load(x, i), k.load(out, i));
            let value = k.b.compare(op, a, b, SPAN);
            k.store(flags, i, value);
        }
        for to in Scalar::ALL {
            let target = k.array(to.name(), to);
            let value = k.load(x, i);
            let converted = k.b.convert(value, Type::Scalar(to), SPAN);
            k.store(target, i, converted);
            assert_eq!(k.b.ty(value), ty);
        }
        ptx(&k.finish());
    }
}

/// ptxas miscompiles the negation of the smallest 16-bit integer: it continues with 32768.
#[test]
fn sixteen_bits_are_not_negated_by_the_instruction() {
    for (scalar, from_zero) in [(Scalar::I8, false), (Scalar::I16, false), (Scalar::I16, true)] {
        for opt in [true, false] {
            let mut k = KernelBuilder::new("kernel");
            let x = k.array("x", scalar);
            let wide = k.array("wide", Scalar::I64);
            let i = k.index();
            let value = k.load(x, i);
            let value = if from_zero {
                let zero = k.b.zero(Type::Scalar(scalar), SPAN);
                k.b.binary(BinaryOp::Sub, zero, value, SPAN)
            } else {
                k.b.unary(UnaryOp::Neg, value, SPAN)
            };
            let value = k.b.convert(value, Type::I64, SPAN);
            k.store(wide, i, value);
            let text = ptx_for(&k.finish(), 90, Options { opt, ..Options::default() });
            assert!(text.contains("not.b16") && !text.contains("neg.s16") && !text.contains("sub."), "{text}");
        }
    }
}

/// ptxas compares the upper halves of the registers if it merges a 16-bit maximum and a comparison with its operands.
#[test]
fn sixteen_bits_have_their_extrema_in_32() {
    for (scalar, op, word) in [
        (Scalar::I8, BinaryOp::Max, "max.s32"),
        (Scalar::I16, BinaryOp::Min, "min.s32"),
        (Scalar::U8, BinaryOp::Min, "min.u32"),
        (Scalar::U16, BinaryOp::Max, "max.u32"),
    ] {
        for opt in [true, false] {
            let mut k = KernelBuilder::new("kernel");
            let (x, y) = (k.array("x", scalar), k.array("y", scalar));
            let i = k.index();
            let (a, b) = (k.load(x, i), k.load(y, i));
            let most = k.b.binary(op, a, b, SPAN);
            k.store(x, i, most);
            let text = ptx_for(&k.finish(), 90, Options { opt, ..Options::default() });
            assert!(text.contains(word) && !text.contains(&word.replace("32", "16")), "{text}");
        }
    }
}

/// ptxas assumes that the result of its `abs` is not negative, but `abs` of the smallest integer is.
#[test]
fn abs_is_not_the_instruction_where_the_minimum_may_come() {
    for scalar in [Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64] {
        for opt in [true, false] {
            let mut k = KernelBuilder::new("kernel");
            let x = k.array("x", scalar);
            let i = k.index();
            let value = k.load(x, i);
            let value = k.b.unary(UnaryOp::Abs, value, SPAN);
            k.store(x, i, value);
            let text = ptx_for(&k.finish(), 90, Options { opt, ..Options::default() });
            assert!(text.contains("max.s") && !text.contains("abs."), "{text}");
        }
    }
    let mut k = KernelBuilder::new("kernel");
    let x = k.array("x", Scalar::I64);
    let narrow = k.array("narrow", Scalar::I32);
    let i = k.index();
    let value = k.load(narrow, i);
    let value = k.b.convert(value, Type::I64, SPAN);
    let index = k.read(i);
    let difference = k.b.binary(BinaryOp::Sub, value, index, SPAN);
    let value = k.b.unary(UnaryOp::Abs, difference, SPAN);
    k.store(x, i, value);
    let text = ptx(&k.finish());
    assert!(text.contains("abs.s64"), "a value that cannot be the minimum:\n{text}");
}
