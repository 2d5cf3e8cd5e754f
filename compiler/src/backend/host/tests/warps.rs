//! Warps that each process a row: they become blocks of 32 threads, whose lanes exchange values in registers.

use weft_artifact::Assumptions;

use crate::backend::host::tests::harness::{llvm, llvm_assuming};

const PRODUCTS: &str = "
def products(a, x, y):
    row = cuda.grid(1) // 32
    lane = cuda.threadIdx.x % 32
    if row < a.shape[0]:
        total = float32(0)
        for k in range(lane, a.shape[1], 32):
            total += a[row, k] * x[k]
        offset = 16
        while offset > 0:
            total += cuda.shfl_xor_sync(0xffffffff, total, offset)
            offset //= 2
        if lane == 0:
            y[row] = total
";

const MATRIX: &str = "void(float32[:, ::1], float32[::1], float32[::1])";

#[test]
fn what_lanes_hand_on_stays_in_registers() {
    for (cpu, vector) in [("x86-64-v3", "<8 x float>"), ("x86-64-v4", "<16 x float>")] {
        let code = llvm_assuming(PRODUCTS, MATRIX, cpu, Assumptions::ALL);
        assert!(code.contains(&format!("shufflevector {vector}")), "{cpu}: lanes are shuffled");
        assert!(!code.contains("alloca"), "{cpu}: nothing that a warp's threads carry is in memory:\n{code}");
        assert!(!code.contains("masked.gather"), "{cpu}: a row is loaded in vectors");
    }
}

#[test]
fn only_rows_of_whole_warps_are_asked_for() {
    let code = |source: &str, warps: bool| {
        llvm_assuming(source, MATRIX, "x86-64-v4", Assumptions { warps, ..Assumptions::ALL })
    };
    assert_ne!(code(PRODUCTS, true), code(PRODUCTS, false));
    // A block with a barrier is not split into warps.
    let waits = PRODUCTS.replace("        if lane == 0:", "        cuda.syncthreads()\n        if lane == 0:");
    assert_eq!(code(&waits, true), code(&waits, false));
}

#[test]
fn a_row_that_begins_where_memory_says_is_taken_in_turns() {
    let source = "
def sums(starts, x, y):
    part = cuda.shared.array(64, float32)
    tid = cuda.threadIdx.x
    row = cuda.blockIdx.x
    total = float32(0)
    for k in range(starts[row] + tid, starts[row + 1], 64):
        total += x[k]
    part[tid] = total
    cuda.syncthreads()
    y[row, tid] = part[63 - tid]
";
    let signature = "void(int32[::1], float32[::1], float32[:, ::1])";
    let code = llvm_assuming(source, signature, "x86-64-v4", Assumptions::ALL);
    let adds_vectors = |code: &str| code.contains("fadd contract <16 x float>");
    assert!(adds_vectors(&code), "threads load neighbors");
    // If a thread may write the array, the compiler cannot assume that all threads load the same value.
    assert!(!adds_vectors(&llvm(source, signature, "x86-64-v4")));
}
