//! With `reproducible`, no instruction's result depends on ptxas or on the GPU: each has a rounding mode, and none is
//! an approximation or flushes denormals.

use std::sync::Arc;

use weft_artifact::Scalar;

use super::{operators::math_kernel, ptx_for, saxpy};
use crate::{
    backend::testing::KernelBuilder,
    ir::{BinaryOp, MathFn, Module, Type},
    request::Options,
};

const FLOATS: [Scalar; 4] = [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64];
const ROUNDINGS: [&str; 4] = [".rn", ".rz", ".rm", ".rp"];

fn reproducible(module: &Module, number: u32) -> String {
    let text = ptx_for(module, number, Options { reproducible: true, ..Options::default() });
    for line in text.lines().map(str::trim) {
        let instruction = line.split_whitespace().next().unwrap_or("");
        let mut parts = instruction.split('.');
        let rounds = matches!(parts.next(), Some("add" | "sub" | "mul" | "mad" | "fma" | "div" | "rcp" | "sqrt"));
        if rounds && parts.any(|part| part.starts_with('f') || part.starts_with("bf")) {
            assert!(ROUNDINGS.iter().any(|rounding| instruction.contains(rounding)), "sm_{number}: {line}\n{text}");
        }
        for loose in [".approx", ".ftz", ".full"] {
            assert!(!instruction.contains(loose), "sm_{number}: {line}\n{text}");
        }
    }
    text
}

#[test]
fn every_operator_says_how_it_rounds() {
    for scalar in FLOATS {
        for number in [75, 80, 90, 100] {
            let mut k = KernelBuilder::new("kernel");
            let (x, y, out) = (k.array("x", scalar), k.array("y", scalar), k.array("out", scalar));
            let i = k.index();
            let ops =
                [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::FloorDiv, BinaryOp::FloorMod];
            for op in ops.into_iter().chain([BinaryOp::Min, BinaryOp::Max]) {
                let (a, b) = (k.load(x, i), k.load(y, i));
                let product = k.b.binary(BinaryOp::Mul, a, b, super::SPAN);
                let c = k.load(out, i);
                let value = k.b.binary(op, product, c, super::SPAN);
                k.store(out, i, value);
            }
            reproducible(&k.finish(), number);
        }
    }
}

#[test]
fn every_function_is_the_hosts() {
    for &function in MathFn::ALL.iter().filter(|f| !matches!(f, MathFn::Bits | MathFn::OfBits)) {
        for scalar in FLOATS {
            let is_half = scalar.size_bytes() == 2;
            let is_there = if function.is_fast() {
                scalar == Scalar::F32
            } else {
                function.is_usual() && !(is_half && function == MathFn::Nextafter)
            };
            if !is_there {
                continue;
            }
            for number in [75, 90] {
                reproducible(&math_kernel(function, scalar), number);
            }
        }
    }
    // A libdevice in the request is not used.
    let options = Options { reproducible: true, libdevice: Some(Arc::new(Vec::new())), ..Options::default() };
    ptx_for(&math_kernel(MathFn::Sin, Scalar::F64), 90, options);
}

/// The back end itself fuses nothing.
#[test]
fn products_stay_where_no_pass_has_fused_them() {
    let text = reproducible(&saxpy(), 90);
    assert!(text.contains("mul.rn.f32") && text.contains("add.rn.f32"), "{text}");
    assert!(!text.contains("fma"), "{text}");
}

#[test]
fn a_nan_has_one_form() {
    // As a PTX float literal, or as the integer with the same bits.
    let forms = [
        (Scalar::F32, ["0f7FC00000", "2143289344"]),
        (Scalar::F64, ["0d7FF8000000000000", "9221120237041090560"]),
        (Scalar::F16, ["0x7E00", "32256"]),
        (Scalar::BF16, ["0x7FC0", "32704"]),
    ];
    for (scalar, forms) in forms {
        let mut k = KernelBuilder::new("kernel");
        let (x, out) = (k.array("x", scalar), k.array("out", scalar));
        let i = k.index();
        let a = k.load(x, i);
        let value = k.b.math(MathFn::CanonicalNan, vec![a], Type::Scalar(scalar), super::SPAN);
        k.store(out, i, value);
        let text = reproducible(&k.finish(), 80);
        assert!(forms.iter().any(|form| text.contains(form)), "{text}");
    }
}
