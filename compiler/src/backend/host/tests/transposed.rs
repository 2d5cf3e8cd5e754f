//! Transposed rows: strided accesses along rows that become vector loads and stores of each row.

use crate::backend::host::tests::harness::{
    Arg, Kernel, array, kernel, kernel_planned_as, llvm, matrix, plan_features,
};

const PRODUCT: &str = "
def product(a, x, out):
    i = cuda.grid(1)
    if i < out.size:
        total = out[i]
        for k in range(a.shape[1]):
            total += a[i, k] * x[k]
        out[i] = total
";

const SIGNATURE: &str = "void(float32[:,::1], float32[::1], float32[::1])";

/// A CPU with masked vectors.
const MASKS: &str = "sapphirerapids";

/// The number of vector loads of rows in a kernel's code.
fn rows(source: &str, signature: &str, cpu: &str) -> usize {
    llvm(source, signature, cpu).matches("@llvm.masked.load.v16f32").count()
}

#[test]
fn rows_are_taken_as_vectors() {
    assert!(rows(PRODUCT, SIGNATURE, MASKS) >= 16);
    assert_eq!(rows(PRODUCT, SIGNATURE, "x86-64-v3"), 0, "without masks nothing is read ahead");
}

#[test]
fn what_is_known_of_a_turn_is_asked_for() {
    let with = |condition: &str| PRODUCT.replace("total +=", &format!("if {condition}: total +="));
    for known in ["k != i", "not (k == i)", "i != k and k != i + 1"] {
        assert!(rows(&with(known), SIGNATURE, MASKS) >= 16, "{known}");
    }
    let skips = with("k == i").replace("total +=", "continue\n            total +=");
    assert!(rows(&skips, SIGNATURE, MASKS) >= 16);
    for unknown in ["k == i", "i % 2 == 0", "x[i] > k", "k % 2 == i"] {
        assert_eq!(rows(&with(unknown), SIGNATURE, MASKS), 0, "{unknown}");
    }
}

#[test]
fn what_a_turn_may_write_is_not_read_ahead() {
    let source = "
def running(a, out):
    i = cuda.grid(1)
    if i < a.shape[0]:
        total = a[i, 0] * 0
        for k in range(a.shape[1]):
            total += a[i, k]
            out[k, i] = total
";
    assert_eq!(rows(source, "void(float32[:,::1], float32[:,::1])", MASKS), 0);
}

const RUNNING: &str = "
def running(a, out, m):
    i = cuda.grid(1)
    if i < a.shape[0]:
        total = a[i, 0] - a[i, 0]
        for k in range(m):
            total += a[i, k]
            out[i, k] = total
";

const OF_RUNNING: &str = "void(float32[:,::1], float32[:,::1], int64)";

/// The number of vector stores of rows in a kernel's code.
fn stored(source: &str, cpu: &str) -> usize {
    llvm(source, OF_RUNNING, cpu).matches("@llvm.masked.store.v16f32").count()
}

#[test]
fn what_is_stored_along_rows_are_vectors() {
    assert!(stored(RUNNING, MASKS) >= 16);
    assert_eq!(stored(RUNNING, "x86-64-v3"), 0, "without masks threads go alone");
    let with = |turn: &str| RUNNING.replace("out[i, k] = total", turn);
    for rows in
        ["out[i, k] = total; total += out[i, k]", "out[i, k] = a[i, k] * total", "out[i, k + 1] = math.exp(total)"]
    {
        assert!(stored(&with(rows), MASKS) >= 16, "{rows}");
    }
    for others in
        ["if total > 0: out[i, k] = total", "out[i, k * 2] = total", "out[k, i] = total", "out[i, k] = out[k, i]"]
    {
        assert_eq!(stored(&with(others), MASKS), 0, "{others}");
    }
}

#[test]
fn what_a_turn_loads_is_not_what_an_earlier_one_has_stored() {
    let with = |turn: &str| RUNNING.replace("out[i, k] = total", turn);
    assert_eq!(stored(&with("a[i, k + 1] = total"), MASKS), 0, "the next iteration loads it");
    for other in ["a[i, k] = total", "out[i, k] = total; a[i, k] = 0", "a[i, k] = total; total += out[i, k]"] {
        assert!(stored(&with(other), MASKS) >= 16, "{other}");
    }
}

#[test]
fn turns_that_not_all_threads_have_are_taken_together() {
    let with = |turns: &str| RUNNING.replace("range(m)", turns);
    for turns in ["range(i + 1)", "range(2, i)", "range(m - i)", "range(min(i, m))"] {
        assert!(stored(&with(turns), MASKS) >= 16, "{turns}");
        assert_eq!(stored(&with(turns), "x86-64-v3"), 0, "{turns}");
    }
    // The threads of these loops start at different columns, or have different strides.
    for turns in ["range(i, m)", "range(0, m, i + 1)"] {
        assert_eq!(stored(&with(turns), MASKS), 0, "{turns}");
    }
}

#[test]
fn functions_of_math_are_vectors_of_threads() {
    let source = PRODUCT.replace("total += a[i, k] * x[k]", "total += math.exp(a[i, k])");
    assert!(rows(&source, SIGNATURE, MASKS) >= 16);
    let code = llvm(&source, SIGNATURE, MASKS);
    assert!(code.matches("fdiv <16 x float>").count() + code.matches("fdiv contract <16 x float>").count() > 0);
}

#[test]
fn elements_of_other_distances_are_left() {
    for index in ["i, k * 2", "i, k % 7", "i, k // 2", "i, 5 - k"] {
        let source = PRODUCT.replace("a[i, k]", &format!("a[{index}]"));
        assert_eq!(rows(&source, SIGNATURE, MASKS), 0, "{index}");
    }
}

#[test]
fn sums_keep_their_order() {
    sums_in_order(&kernel(PRODUCT, SIGNATURE));
}

#[test]
fn every_machine_runs_the_plans_of_every_cpu() {
    for (cpu, masks) in [("x86-64-v2", false), ("x86-64-v3", false), ("x86-64-v4", true), (MASKS, true)] {
        let names = plan_features(PRODUCT, SIGNATURE, cpu);
        for name in ["masked-vectors", "transposed-rows", "transposed-loads"] {
            assert_eq!(names.contains(&name), masks, "{name} for {cpu}: {names:?}");
        }
        assert!(names.contains(&"strided-access") && names.is_sorted());
        sums_in_order(&kernel_planned_as(PRODUCT, SIGNATURE, cpu));
    }
}

#[test]
fn absent_lanes_are_in_no_loop() {
    let source = "
def both(a, x, lengths, firsts, out):
    i = cuda.grid(1)
    if i < out.size:
        first = 0.0
        for j in range(lengths[i]):
            first += x[j]
        firsts[i] = first
        total = out[i]
        for k in range(a.shape[1]):
            total += a[i, k]
        out[i] = total
";
    let signature = "void(float32[:,::1], float64[::1], int64[::1], float64[::1], float32[::1])";
    let names = plan_features(source, signature, "x86-64-v4");
    assert!(["divergent-exit", "transposed-rows"].iter().all(|name| names.contains(name)), "{names:?}");
    for cpu in ["x86-64-v2", "x86-64-v3", "x86-64-v4"] {
        let kernel = kernel_planned_as(source, signature, cpu);
        for n in [1_usize, 2, 15, 16, 17, 31, 33, 40] {
            let (mut a, mut x) = (vec![1.0_f32; n * 20], (0..n).map(|j| j as f64).collect::<Vec<_>>());
            let mut lengths: Vec<i64> = (0..n as i64).map(|i| i * 7 % n as i64).collect();
            let (mut firsts, mut out) = (vec![0.0_f64; n], vec![0.0_f32; n]);
            let expected: Vec<f64> = lengths.iter().map(|&to| x[..to as usize].iter().sum()).collect();
            let args = [matrix(&mut a, n, 20), array(&mut x), array(&mut lengths), array(&mut firsts), array(&mut out)];
            kernel.launch([2, 1, 1], [32, 1, 1], 0, &args);
            // The sums are small integers. Adding 0.0 replaces -0.0, the result of an empty sum in Rust.
            let bits = |sums: &[f64]| sums.iter().map(|&sum| (sum + 0.0).to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&firsts), bits(&expected), "{n} threads, {cpu}");
            assert!(out.iter().all(|&total| total.to_bits() == 20.0_f32.to_bits()), "{n} threads, {cpu}");
        }
    }
}

fn sums_in_order(kernel: &Kernel) {
    for (n, m) in [(1_usize, 1_usize), (16, 16), (17, 33), (40, 50), (5, 0)] {
        let mut a: Vec<f32> = (0..n * m).map(|i| (i as f32 * 0.37).sin()).collect();
        let mut x = vec![0.5_f32; m];
        let mut out = vec![1.0_f32; n];
        let mut expected = out.clone();
        for (i, total) in expected.iter_mut().enumerate() {
            for k in 0..m {
                *total += a[i * m + k] * x[k];
            }
        }
        let args: [Arg; 3] = [matrix(&mut a, n, m), array(&mut x), array(&mut out)];
        kernel.launch([2, 1, 1], [32, 1, 1], 0, &args);
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&out), bits(&expected), "{n} rows of {m}");
    }
}
