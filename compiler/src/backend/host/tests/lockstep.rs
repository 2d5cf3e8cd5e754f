//! Loop interchange: sequential loops with the thread loop inside.

use crate::backend::host::tests::harness::{Arg, array, kernel, llvm, matrix};

const STRIDED: [&str; 4] = [
    "for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):\n        out[i] += x[i] + 1",
    "start = cuda.grid(1)\n    stride = cuda.gridsize(1)\n    for i in range(start, out.size, stride):\n        if x[i] % 3 == 7:\n            continue\n        out[i] += x[i] + 1",
    "i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x\n    while i < out.size:\n        out[i] += x[i] + 1\n        i += cuda.blockDim.x * cuda.gridDim.x",
    "i = cuda.grid(1)\n    while out.shape[0] > i:\n        out[i] = out[i] + 1 + x[i]\n        i = cuda.gridsize(1) + i",
];

#[test]
fn strided_loops() {
    for body in STRIDED {
        let kernel = kernel(&format!("def k(x, out):\n    {body}\n"), "void(int32[::1], int32[::1])");
        for n in [0_usize, 1, 31, 500, 1000] {
            let mut x: Vec<i32> = (0..n as i32).collect();
            for (grid, block) in [(1, 32), (3, 64), (2, 7), (10, 128)] {
                let mut out = vec![5_i32; n];
                kernel.launch([grid, 1, 1], [block, 1, 1], 0, &[array(&mut x), array(&mut out)]);
                for (i, &value) in out.iter().enumerate() {
                    assert_eq!(value, i as i32 + 6, "{i} of {n}, {grid} blocks of {block}: {body}");
                }
            }
        }
    }
}

#[test]
fn strided_loops_vectorise() {
    for body in STRIDED {
        let llvm = llvm(&format!("def k(x, out):\n    {body}\n"), "void(int32[::1], int32[::1])", "x86-64-v3");
        assert!(llvm.contains("x i32>"), "{body}\n{llvm}");
        assert!(!llvm.contains("masked.gather"), "{body}\n{llvm}");
    }
}

#[test]
fn what_is_stored_in_one_branch_does_not_come_before_the_other() {
    let source = "
def k(x, out):
    i = cuda.grid(1)
    if i < out.size:
        if 0 < i < out.size - 1:
            out[i] = x[i] + x[i - 1] + x[i + 1]
        else:
            out[i] = x[i]
";
    let llvm = llvm(source, "void(int32[::1], int32[::1])", "x86-64-v3");
    // Neighboring threads access contiguous elements, so the arrays need no alias check.
    assert!(llvm.contains("x i32>") && !llvm.contains("alias.scope"), "{llvm}");
}

#[test]
fn strided_loops_with_other_ends() {
    // The rewrite of grid-stride loops must skip a loop with a `break`, with an induction variable that is read
    // afterwards, and with a negative step.
    let source = "
def k(x, out):
    t = cuda.threadIdx.x
    n = x.size
    i = t
    s = 0
    while i < n:
        s += x[i]
        i += cuda.blockDim.x
    out[0, t] = s
    out[1, t] = i
    s = 0
    for i in range(t, n, cuda.blockDim.x):
        if x[i] > 50:
            break
        s += x[i]
    out[2, t] = s
    s = 0
    for i in range(n - 1 - t, -1, -cuda.blockDim.x):
        s = s * 2 % 1001 + x[i]
    out[3, t] = s
    s = 0
    for i in range(t + 1, n):
        s += x[i]
    out[4, t] = s
";
    let kernel = kernel(source, "void(int64[::1], int64[:,::1])");
    let (n, threads) = (75_usize, 16_usize);
    let mut x: Vec<i64> = (0..n as i64).collect();
    let mut out = vec![-1_i64; 5 * threads];
    kernel.launch([1, 1, 1], [threads as u32, 1, 1], 0, &[array(&mut x), matrix(&mut out, 5, threads)]);
    for t in 0..threads {
        let mine = || (t..n).step_by(threads);
        assert_eq!(out[t], mine().map(|i| x[i]).sum::<i64>());
        assert_eq!(out[threads + t], (t..).step_by(threads).find(|&i| i >= n).map_or(0, |i| i as i64));
        assert_eq!(out[2 * threads + t], mine().take_while(|&i| x[i] <= 50).map(|i| x[i]).sum::<i64>());
        let backwards = (0..n - t).rev().step_by(threads).fold(0, |s, i| s * 2 % 1001 + x[i]);
        assert_eq!(out[3 * threads + t], backwards);
        assert_eq!(out[4 * threads + t], x[t + 1..].iter().sum::<i64>());
    }
}

const PRODUCT: &str = "
def k(a, b, c, alpha):
    j, i = cuda.grid(2)
    if i >= c.shape[0] or j >= c.shape[1]:
        return
    total = float32(0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    c[i, j] = alpha * total
";

#[test]
fn a_row_of_a_matrix_product() {
    let signature = "void(float32[:,::1], float32[:,::1], float32[:,::1], float32)";
    let llvm = llvm(PRODUCT, signature, "x86-64-v3");
    assert!(llvm.contains("fmul contract <"), "{llvm}");
    let kernel = kernel(PRODUCT, signature);
    let (rows, columns, inner) = (19, 45, 40);
    let mut a: Vec<f32> = (0..rows * inner).map(|i| (i % 7) as f32).collect();
    let mut b: Vec<f32> = (0..inner * columns).map(|i| (i % 5) as f32).collect();
    for block in [[32, 4, 1], [1, 8, 1], [64, 1, 1]] {
        let mut c = vec![0.0_f32; rows * columns];
        let grid = [(columns as u32).div_ceil(block[0]), (rows as u32).div_ceil(block[1]), 1];
        let args =
            [matrix(&mut a, rows, inner), matrix(&mut b, inner, columns), matrix(&mut c, rows, columns), Arg::F32(2.0)];
        kernel.launch(grid, block, 0, &args);
        for row in 0..rows {
            for column in 0..columns {
                let want: f32 = (0..inner).map(|k| a[row * inner + k] * b[k * columns + column]).sum();
                assert_eq!(c[row * columns + column].to_bits(), (2.0 * want).to_bits(), "({row}, {column})");
            }
        }
    }
}

#[test]
fn all_pairs() {
    let source = "
def k(x, out):
    i = cuda.grid(1)
    if i < x.size:
        mine = x[i]
        total = 0.0
        for j in range(x.size):
            d = x[j] - mine
            total += d / math.sqrt(d * d + 0.5)
        out[i] = total
";
    let signature = "void(float64[::1], float64[::1])";
    // The second CPU prefers 512-bit vectors.
    for (cpu, name) in [("x86-64-v3", "sqrt.v4f64"), ("znver4", "sqrt.v8f64")] {
        let llvm = llvm(source, signature, cpu);
        assert!(llvm.contains(name), "{cpu}: {llvm}");
    }
    let kernel = kernel(source, signature);
    let mut x: Vec<f64> = (0..100).map(|i| f64::from(i * i % 37)).collect();
    let mut out = vec![0.0; 100];
    kernel.launch([4, 1, 1], [32, 1, 1], 0, &[array(&mut x), array(&mut out)]);
    for (mine, got) in x.iter().zip(&out) {
        let want: f64 = x.iter().map(|other| other - mine).map(|d| d / (d * d + 0.5).sqrt()).sum();
        assert!((got - want).abs() < 1e-9);
    }
}
