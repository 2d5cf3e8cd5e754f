//! The effect of assumptions about launches on the PTX.

use weft_artifact::{Access, Assumptions, Scalar};

use super::{ptx, saxpy};
use crate::{
    backend::testing::{KernelBuilder, SPAN},
    ir::{BinaryOp, Module, Op, StmtKind},
};

const READ: Access = Access { reads: true, writes: false, accumulates: false };
const DISJOINT: Assumptions = Assumptions { disjoint: true, ..Assumptions::NONE };

/// `out[i] = x[i]; barrier; y[i] = out[i] + x[i]`
fn twice(access: Access, assumptions: Assumptions, gains: Assumptions) -> Module {
    let mut k = KernelBuilder::new("kernel");
    let x = k.array("x", Scalar::F32);
    let (out, y) = (k.array("out", Scalar::F32), k.array("y", Scalar::F32));
    let i = k.index();
    let value = k.load(x, i);
    k.store(out, i, value);
    k.b.stmt(StmtKind::Op { op: Op::Barrier, results: vec![], args: vec![] }, SPAN);
    let (a, b) = (k.load(out, i), k.load(x, i));
    let sum = k.b.binary(BinaryOp::Add, a, b, SPAN);
    k.store(y, i, sum);
    let mut module = k.finish();
    module.params[0].access = access;
    (module.assumptions, module.gains) = (assumptions, gains);
    module
}

/// The number of loads from global memory, and how many of them use the read-only cache.
fn loads(module: &Module) -> (usize, usize) {
    let text = ptx(module);
    let count = |start| text.lines().filter(|line| line.trim().starts_with(start)).count();
    (count("ld.global"), count("ld.global.nc"))
}

#[test]
fn what_is_only_read_is_loaded_once() {
    assert_eq!(loads(&twice(READ, DISJOINT, DISJOINT)), (2, 1));
    for (assumptions, gains) in [(Assumptions::NONE, Assumptions::ALL), (Assumptions::ALL, Assumptions::NONE)] {
        assert_eq!(loads(&twice(READ, assumptions, gains)), (3, 0));
    }
}

#[test]
fn what_is_written_is_loaded_again_behind_a_barrier() {
    let both = Access { reads: true, writes: true, accumulates: false };
    assert_eq!(loads(&twice(both, Assumptions::ALL, Assumptions::ALL)), (3, 0));
}

/// `out[i] = x[4 * i] + x[4 * i + 1]`
fn neighbours(assumptions: Assumptions) -> String {
    let mut k = KernelBuilder::new("kernel");
    let x = k.array("x", Scalar::F32);
    let out = k.array("out", Scalar::F32);
    let i = k.index();
    let at = |k: &mut KernelBuilder, by| {
        let (now, four, by) = (k.read(i), k.b.i64(4, SPAN), k.b.i64(by, SPAN));
        let scaled = k.b.binary(BinaryOp::MulExact, now, four, SPAN);
        let at = k.b.binary(BinaryOp::AddExact, scaled, by, SPAN);
        k.b.temp(at, SPAN)
    };
    let (first, second) = (at(&mut k, 0), at(&mut k, 1));
    let (a, b) = (k.load(x, first), k.load(x, second));
    let sum = k.b.binary(BinaryOp::Add, a, b, SPAN);
    k.store(out, i, sum);
    let mut module = k.finish();
    (module.assumptions, module.gains) = (assumptions, Assumptions::ALL);
    ptx(&module)
}

#[test]
fn neighbours_of_aligned_arrays_are_one_load() {
    let aligned = neighbours(Assumptions { aligned: true, ..Assumptions::NONE });
    assert!(aligned.contains("ld.global.v2.b32"), "{aligned}");
    let plain = neighbours(Assumptions::NONE);
    assert!(!plain.contains(".v2"), "{plain}");
}

#[test]
fn small_integers_are_parameters_of_32_bits() {
    let mut module = saxpy();
    let plain = ptx(&module);
    assert!(plain.contains(".param .u64 saxpy_param_0"), "{plain}");
    (module.assumptions, module.gains) = (Assumptions { small: true, ..Assumptions::NONE }, Assumptions::ALL);
    let small = ptx(&module);
    assert!(small.contains(".param .u32 saxpy_param_0"), "{small}");
}
