//! Privatization of accumulators: the number of atomic operations in a kernel's code, and the launches it applies to.

use weft_artifact::Assumptions;

use crate::backend::host::tests::harness::llvm_assuming;

/// The number of atomic operations in a kernel's code, for launches with disjoint arrays.
fn steps(body: &str, types: &str) -> usize {
    steps_for(body, types, Assumptions::ALL)
}

fn steps_for(body: &str, types: &str, assumptions: Assumptions) -> usize {
    let source = format!("def k(x, out):\n    i = cuda.grid(1)\n    {body}\n");
    let llvm = llvm_assuming(&source, &format!("void({types})"), "x86-64-v3", assumptions);
    llvm.lines().filter(|line| line.contains("atomicrmw") || line.contains("cmpxchg")).count()
}

#[test]
fn steps_in_a_copy_are_none() {
    let types = "uint8[::1], int32[::1]";
    // The only atomic operation adds a private copy to the array.
    assert_eq!(steps("cuda.atomic.add(out, x[i], 1)", types), 1);
    assert_eq!(steps("cuda.atomic.add(out, 0, x[i]); cuda.atomic.sub(out, 5, 1)", types), 1);
    assert_eq!(steps("if x[i] > 3: cuda.atomic.max(out, 2, 1)", types), 1);
    let floats = "float64[::1], float64[::1]";
    assert_eq!(steps("cuda.atomic.add(out, 0, x[i])", floats), 1);
    // The index may be outside the private copy.
    assert!(steps("cuda.atomic.add(out, x[i], 1)", "int32[::1], int32[::1]") > 1);
    assert!(steps("cuda.atomic.add(out, i, x[i])", floats) > 1);
}

#[test]
fn conditional_counts_are_vectors() {
    let source = "def k(x, out):\n    i = cuda.grid(1)\n    if i < x.size and x[i] > 0.5: cuda.atomic.add(out, 0, 1)\n";
    let llvm = llvm_assuming(source, "void(float32[::1], int32[::1])", "x86-64-v3", Assumptions::ALL);
    assert!(llvm.contains("fcmp ogt <8 x float>") || llvm.contains("fcmp contract ogt <8 x float>"), "{llvm}");
}

#[test]
fn what_others_may_see_stays_where_it_is() {
    let types = "int32[::1], int32[::1]";
    let shared = Assumptions { disjoint: false, ..Assumptions::ALL };
    for body in [
        "x[i] = cuda.atomic.add(out, 0, 1)",
        "cuda.atomic.add(out, 0, 1); x[i] = out[1]",
        "cuda.atomic.add(out, 0, 1); out[1] = 2",
        "cuda.atomic.add(out, 0, 1, scope='system')",
        "cuda.atomic.add(out, 0, 1, order='release')",
        "cuda.atomic.add(out, 0, 1); cuda.threadfence()",
        "cuda.atomic.exch(out, 0, x[i])",
        "cuda.atomic.max(out, 0, x[i])\n    while cuda.atomic.add(x, 0, 0) == 0: pass",
        "cuda.atomic.add(out, 0, 1); cuda.atomic.xor(out, 0, 1)",
    ] {
        assert_eq!(steps(body, types), steps_for(body, types, shared), "{body}");
    }
    let floats = "float32[::1], float32[::1]";
    let largest = "cuda.atomic.max(out, 0, x[i])";
    assert_eq!(steps(largest, floats), steps_for(largest, floats, shared));
    let counts = "cuda.atomic.add(out, 0, 1)";
    assert!(steps(counts, types) < steps_for(counts, types, shared));
}
