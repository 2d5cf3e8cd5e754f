//! Kernels that passes leave as they are, because the rewrite would make them slower.

use super::harness::{llvm_for_short, plan_features};

/// LLVM inlines a large function by itself only where it is called once, and vectorizes no loop with calls. The kernel has two
/// versions.
#[test]
fn math_functions_with_several_calls_are_inlined_in_thread_loops() {
    let source = "
import math

def k(x, waves, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        real = float32(0)
        imaginary = float32(0)
        for w in range(waves.shape[0]):
            angle = x[i, 0] * waves[w, 0] + x[i, 1] * waves[w, 1]
            real += math.cos(angle)
            imaginary += math.sin(angle)
        out[i, 0] = real
        out[i, 1] = imaginary
";
    let signature = "void(float32[:, ::1], float32[:, ::1], float32[:, ::1])";
    let llvm = llvm_for_short(source, signature, "x86-64-v4", vec![(0, 2), (1, 2), (2, 2)]);
    assert!(!llvm.contains("float @_Z3cosf") && llvm.contains("vector.body"), "{llvm}");
}

#[test]
fn rows_are_split_by_quotients_only_for_addresses_and_conditions() {
    let source = "
def k(x, out, n, w):
    i = cuda.grid(1)
    if i < n:
        USE
";
    let splits = |of: &str| {
        let signature = "void(float32[:, ::1], int64[::1], int64, int64)";
        plan_features(&source.replace("USE", of), signature, "x86-64-v3").contains(&"quotient-index-split")
    };
    assert!(splits("out[i] = int(x[i // w, i % w])"));
    assert!(splits("out[i] = 1 if i % w > 0 else int(x[0, i])") || splits("if i % w > 0: out[i] = int(x[0, i])"));
    assert!(!splits("out[i] = i % w"), "LLVM divides vectors");
    assert!(!splits("out[i] = int(x[i // 16, i % 16])"), "parts of 16 threads are too short");
}

#[test]
fn loops_over_matrix_rows_are_not_strip_mined_if_the_index_is_a_local() {
    let source = "
def k(x, out, last, m, n):
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        v = float32(0)
        for k in range(m):
            v = v * float32(0.5) + x[k, i]
            out[k, i] = v
        last[i] = v
";
    let signature = "void(float32[:, ::1], float32[:, ::1], float32[::1], int32, int32)";
    let names = plan_features(source, signature, "x86-64-v4");
    assert!(names.contains(&"loop-interchange") && !names.contains(&"strip-mining"), "{names:?}");
}

#[test]
fn short_loops_with_few_math_functions_are_not_interchanged() {
    let source = "
import math

def k(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        s = float32(0)
        for r in range(COUNT):
            v = math.exp(-abs(v))
            s += v
        out[i] = s
";
    let interchanges = |count: &str| {
        let source = source.replace("COUNT", count);
        plan_features(&source, "void(float32[::1], float32[::1])", "x86-64-v4").contains(&"loop-interchange")
    };
    assert!(!interchanges("2"));
    assert!(interchanges("20"));
}
