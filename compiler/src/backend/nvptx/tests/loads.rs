//! The order of loads relative to divisions and square roots.

use weft_artifact::Scalar;

use super::ptx;
use crate::{
    backend::testing::{KernelBuilder, SPAN},
    ir::{BinaryOp, MathFn, Module, Type},
};

/// `out[i] = sqrt(x[i]); [out[i] = x[i];] out[i] = out's + y[i + i]`
fn root_and_sum(store_between: bool) -> Module {
    let mut k = KernelBuilder::new("kernel");
    let x = k.array("x", Scalar::F32);
    let y = k.array("y", Scalar::F32);
    let out = k.array("out", Scalar::F32);
    let i = k.index();
    let value = k.load(x, i);
    let root = k.b.math(MathFn::Sqrt, vec![value], Type::Scalar(Scalar::F32), SPAN);
    let root = k.b.temp(root, SPAN);
    if store_between {
        let again = k.load(x, i);
        k.store(out, i, again);
    }
    let (a, b) = (k.read(i), k.read(i));
    let twice = k.b.binary(BinaryOp::Add, a, b, SPAN);
    let twice = k.b.temp(twice, SPAN);
    let (root, other) = (k.read(root), k.load(y, twice));
    let sum = k.b.binary(BinaryOp::Add, root, other, SPAN);
    k.store(out, i, sum);
    k.finish()
}

/// The mnemonics of the loads, stores and square roots in the PTX, in order.
fn order(text: &str) -> Vec<&str> {
    let mnemonics = text.lines().filter_map(|line| line.split_whitespace().next());
    mnemonics.filter(|word| ["ld.global", "st.global", "sqrt"].iter().any(|start| word.starts_with(start))).collect()
}

#[test]
fn loads_stand_before_a_root() {
    let text = ptx(&root_and_sum(false));
    assert_eq!(order(&text), ["ld.global.b32", "ld.global.b32", "sqrt.rn.f32", "st.global.b32"], "{text}");
}

#[test]
fn no_load_crosses_a_store() {
    let text = ptx(&root_and_sum(true));
    let order = order(&text);
    let (store, loads) = (order.iter().position(|word| word.starts_with("st")), order.len() - 3);
    assert_eq!(loads, 2, "{text}");
    assert!(store < order.iter().rposition(|word| word.starts_with("ld")), "{text}");
}
