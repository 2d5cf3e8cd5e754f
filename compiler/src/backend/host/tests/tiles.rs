//! Tiles in a block's memory: how many sums a product of them has at a time, totals in memory, and where what threads carry lies.

use super::harness::{llvm, module};
use crate::backend::host::{
    offsets::Offsets,
    plan::{Plan, Vectors},
};

const PRODUCT: &str = "
def product(a, b, c):
    left = cuda.shared.array((ROWS, 16), float32)
    right = cuda.shared.array((16, 16), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    total = float32(0)
    for start in range(0, a.shape[1], 16):
        left[ty, tx] = a[y, start + tx]
        right[ty, tx] = b[start + ty, x]
        cuda.syncthreads()
        for k in range(16):
            TOTAL += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    c[y, x] = total
";
const MATRICES: &str = "void(float32[:, ::1], float32[:, ::1], float32[:, ::1])";

/// The most vectors that a loop of the code carries from turn to turn.
fn carried(llvm: &str) -> usize {
    let phis = |block: &str| block.lines().filter(|line| line.contains(" = phi <16 x float>")).count();
    llvm.split("\n\n").map(phis).max().unwrap_or(0)
}

#[test]
fn sums_of_a_product() {
    for (cpu, rows, sums) in
        [("sapphirerapids", "16", 8), ("sapphirerapids", "12", 4), ("znver4", "16", 4), ("znver5", "24", 8)]
    {
        let source = PRODUCT.replace("ROWS", rows).replace("TOTAL", "total");
        assert_eq!(carried(&llvm(&source, MATRICES, cpu)), sums, "{rows} rows for {cpu}");
    }
}

#[test]
fn totals_in_memory_are_carried() {
    let source = PRODUCT.replace("ROWS", "16");
    for (total, sums) in [
        ("c[y, x]", 4),
        ("left[ty, 3]", 0),
        // Another element in each turn.
        ("c[y + k, x]", 0),
        ("c[y, x + start]", 4),
    ] {
        let llvm = llvm(&source.replace("TOTAL", total), MATRICES, "znver4");
        assert_eq!(carried(&llvm), sums, "{total}:\n{llvm}");
    }
}

/// What a row stores to one array does not end in the twelve bits that the next row's element of another one ends in.
#[test]
fn what_threads_carry_lies_apart() {
    let source = "
def carry(a, out):
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    p, q, r = a[i], a[i + 1], a[i + 2]
    s = cuda.shared.array(256, float32)
    s[t] = p
    cuda.syncthreads()
    p += s[255 - t] * q
    s[t] = r
    cuda.syncthreads()
    out[i] = p + q + r + s[255 - t]
";
    let plan = Plan::of(&module(source, "void(float32[::1], float32[::1])"), true, Vectors::PLAIN).expect("a kernel");
    let offsets = Offsets::of(&plan);
    let places: Vec<u64> = plan.crossing.locals.iter().filter_map(|&local| offsets.local(local)).collect();
    assert!(places.len() >= 3, "{places:?}");
    for pair in places.windows(2) {
        let apart = (pair[1] - pair[0]) % 4096;
        assert!((1024..=3072).contains(&apart), "{places:?}");
    }
}
