//! Thread loops that are split into prologue, steady state and epilogue: which ones vectorize, and the split points.

use crate::backend::host::tests::harness::{Arg, array, kernel, llvm, matrix};

/// A kernel with loads that LLVM would turn into gathers if the steady state were not split off.
fn body(lines: &str) -> String {
    format!("def k(a, out, k):\n    i = cuda.grid(1)\n    n = a.size\n    if i < n:\n        {lines}\n")
}

const SIGNATURE: &str = "void(float32[::1], float32[::1], int64)";

#[test]
fn what_does_nothing_between_the_borders_keeps_no_loop_from_vectors() {
    let bodies = [
        "out[i] = a[max(i - 1, 0)] + a[min(i + 1, n - 1)]",
        "out[i] = a[min(max(i + k, 0), n - 1)]",
        "out[i] = a[(i + k) % n]",
        "out[i] = a[(i + n - 1) % n]",
        "west = (i - 1 + n) % n\n        out[i] = a[west] + a[(n + n + i - k) % n] + a[(i - n) % n]",
        "out[i] = a[i - k]",
        "j = i + k\n        if j >= n: j -= n\n        if j < 0: j += n\n        out[i] = a[j]",
    ];
    for lines in bodies {
        let llvm = llvm(&body(lines), SIGNATURE, "x86-64-v3");
        assert!(llvm.contains("load <8 x float>"), "{lines}:\n{llvm}");
    }
}

#[test]
fn loops_that_look_at_neighbors_are_taken_together_between_the_borders() {
    let lines = "left = i if i == 0 else i - 1\n        s = a[i]\n        for z in range(k):\n            s = s * a[i] + a[left]\n        out[i] = s";
    let llvm = llvm(&body(lines), SIGNATURE, "x86-64-v3");
    assert!(llvm.contains("load <8 x float>"), "{llvm}");
    assert!(!llvm.contains("masked.gather"), "{llvm}");
}

/// On AMD Zen, gathers are microcode.
#[test]
fn zen_loads_element_by_element() {
    let apart = body("out[i] = a[i * k] * a[i] + a[i]");
    let gathers = |cpu: &str| {
        let llvm = llvm(&apart, SIGNATURE, cpu);
        llvm.lines().any(|line| line.contains("call") && line.contains("masked.gather"))
    };
    assert!(gathers("x86-64-v4"));
    assert!(!gathers("znver4"));
}

#[test]
fn a_row_and_a_column_are_no_border() {
    let llvm = llvm(&body("out[i] = a[i % k]"), SIGNATURE, "x86-64-v3");
    assert!(!llvm.contains("sides"), "{llvm}");
}

#[test]
fn borders_anywhere_in_a_row() {
    let kernel = kernel(&body("out[i] = a[min(max(i + k, 0), n - 1)] + (100 if i == 0 else 0)"), SIGNATURE);
    for n in [1_i64, 2, 15, 16, 17, 100] {
        for k in [0, 1, -1, 7, -40, n, -n, 1 << 58, 1 << 59, -(1 << 59), i64::MAX, i64::MAX - n, i64::MIN] {
            for block in [1_u32, 16, 64] {
                let mut a: Vec<f32> = (0..n).map(|at| at as f32).collect();
                let mut out = vec![-1.0_f32; n as usize];
                let grid = (n as u32).div_ceil(block) + 1;
                kernel.launch([grid, 1, 1], [block, 1, 1], 0, &[array(&mut a), array(&mut out), Arg::Int(k)]);
                for i in 0..n {
                    let at = i.wrapping_add(k).clamp(0, n - 1);
                    let expected = at as f32 + if i == 0 { 100.0 } else { 0.0 };
                    assert_eq!(out[i as usize].to_bits(), expected.to_bits(), "{i} + {k} of {n}, block {block}");
                }
            }
        }
    }
}

#[test]
fn windows_of_any_radius() {
    let source = "
def window(a, out, r):
    x, y = cuda.grid(2)
    h, w = a.shape
    if x < w and y < h:
        s = 0
        for dy in range(-r, r + 1):
            for dx in range(-r, r + 1):
                if 0 <= y + dy < h and 0 <= x + dx < w:
                    s = s * 3 + a[y + dy, x + dx]
                else:
                    s += 1
        out[y, x] = s
";
    let kernel = kernel(source, "void(int64[:,::1], int64[:,::1], int64)");
    for (rows, columns) in [(1, 1), (3, 40), (9, 20)] {
        for r in 0..4_i64 {
            for block in [[16, 4, 1], [64, 1, 1], [3, 5, 1]] {
                let mut a: Vec<i64> = (0..(rows * columns) as i64).map(|at| at * 7 % 11).collect();
                let mut out = vec![-1_i64; rows * columns];
                let grid = [(columns as u32).div_ceil(block[0]), (rows as u32).div_ceil(block[1]), 1];
                let args = [matrix(&mut a, rows, columns), matrix(&mut out, rows, columns), Arg::Int(r)];
                kernel.launch(grid, block, 0, &args);
                for y in 0..rows as i64 {
                    for x in 0..columns as i64 {
                        let mut s = 0_i64;
                        for yy in y - r..=y + r {
                            for xx in x - r..=x + r {
                                let inside = (0..rows as i64).contains(&yy) && (0..columns as i64).contains(&xx);
                                s = if inside {
                                    s.wrapping_mul(3).wrapping_add(a[(yy * columns as i64 + xx) as usize])
                                } else {
                                    s.wrapping_add(1)
                                };
                            }
                        }
                        let got = out[(y * columns as i64 + x) as usize];
                        assert_eq!(got, s, "({y}, {x}) of {rows} x {columns}, {r}, {block:?}");
                    }
                }
            }
        }
    }
}
