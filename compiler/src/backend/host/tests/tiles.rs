//! Tiles in shared memory: the accumulators of a row tile, scalar promotion, prefetches, the layout of context arrays,
//! and blocks away from borders.

use crate::backend::host::{
    emit::frame::Offsets,
    plan::{Plan, Vectors},
    tests::harness::{llvm_for_block, module},
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

/// The largest number of vectors that a loop of the code carries across its iterations.
fn carried(llvm: &str) -> usize {
    let phis = |block: &str| block.lines().filter(|line| line.contains(" = phi <16 x float>")).count();
    llvm.split("\n\n").map(phis).max().unwrap_or(0)
}

#[test]
fn sums_of_a_product() {
    for (cpu, rows, sums) in
        [("sapphirerapids", 16, 8), ("sapphirerapids", 12, 4), ("znver4", 16, 4), ("znver5", 24, 8)]
    {
        let source = PRODUCT.replace("ROWS", &rows.to_string()).replace("TOTAL", "total");
        let llvm = llvm_for_block(&source, MATRICES, cpu, [16, rows, 1]);
        assert_eq!(carried(&llvm), sums, "{rows} rows for {cpu}");
    }
}

#[test]
fn totals_in_memory_are_carried() {
    let source = PRODUCT.replace("ROWS", "16");
    for (total, sums) in [
        ("c[y, x]", 4),
        ("left[ty, 3]", 0),
        // Each iteration accumulates into a different element.
        ("c[y + k, x]", 0),
        ("c[y, x + start]", 4),
    ] {
        let llvm = llvm_for_block(&source.replace("TOTAL", total), MATRICES, "znver4", [16, 16, 1]);
        assert_eq!(carried(&llvm), sums, "{total}:\n{llvm}");
    }
}

/// The code prefetches the rows of a matrix that the next iteration loads. It does not prefetch unit-stride accesses,
/// which the hardware recognizes, or addresses that it cannot compute yet.
#[test]
fn next_tiles_are_asked_for() {
    let near = |llvm: &str| {
        llvm.lines().filter(|line| line.contains("@llvm.prefetch.p0(") && line.contains("i32 3, i32 1)")).count()
    };
    let source = PRODUCT.replace("ROWS", "16").replace("TOTAL", "total");
    for (name, loads, rows) in [
        ("rows of a matrix", "b[start + ty, x]", 1),
        ("a matrix that is one row", "b[0, (start + ty) * 400 + x]", 1),
        ("the same row goes on", "b[ty, start + x]", 0),
        ("pieces of a row", "b[0, start * 256 + ty * 16 + tx]", 0),
        ("columns", "b[x, start + ty]", 0),
        ("the same in all iterations", "b[ty, x]", 0),
        ("a row that is loaded", "b[int32(a[start, 0]) + ty, x]", 0),
        ("the block's own memory", "left[15 - ty, tx]", 0),
        ("what may be a division by zero", "b[start // a.shape[0] + ty, x]", 0),
    ] {
        // A strip has eight rows, each with a prefetch.
        let source = source.replace("b[start + ty, x]", loads);
        let llvm = llvm_for_block(&source, MATRICES, "sapphirerapids", [16, 16, 1]);
        assert_eq!(near(&llvm), rows * 8, "{name}:\n{llvm}");
    }
    let counted = |turn: &str| {
        source
            .replace("for start in range(0, a.shape[1], 16):", "start, step = 0, 16\n    while start < a.shape[1]:")
            .replace("    c[y, x] = total", &format!("        {turn}\n    c[y, x] = total"))
    };
    for (turn, rows) in [
        ("start += step", 1),
        ("start += 4; start += 12", 1),
        ("start += cuda.blockDim.y", 1),
        // The distance is not known, so the columns of `a` count as far away, too.
        ("step += 0 if start > 64 else 16; start += step", 2),
        ("if start > 64:\n            start += 16\n        start += 16", 1),
        // The next address depends on a loaded value.
        ("start += int32(a[0, start]) + 16", 0),
    ] {
        let llvm = llvm_for_block(&counted(turn), MATRICES, "sapphirerapids", [16, 16, 1]);
        assert_eq!(near(&llvm), rows * 8, "{turn}:\n{llvm}");
    }
}

/// The addresses of elements in consecutive context arrays differ in their low twelve bits.
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
    let plan =
        Plan::of(&module(source, "void(float32[::1], float32[::1])"), true, Vectors::PLAIN, false).expect("a kernel");
    let offsets = Offsets::of(&plan);
    let places: Vec<u64> = plan.live_across.locals.iter().filter_map(|&local| offsets.local(local)).collect();
    assert!(places.len() >= 3, "{places:?}");
    for pair in places.windows(2) {
        let apart = (pair[1] - pair[0]) % 4096;
        assert!((1024..=3072).contains(&apart), "{places:?}");
    }
}

/// If all rows of a block have the same bounds, the code tests once per block whether it is near a border.
#[test]
fn blocks_near_no_border() {
    let source = "
def tiles(a, out):
    tile = cuda.shared.array((16, 16), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    h, w = a.shape
    x, y = cuda.blockIdx.x * 14 + tx - 1, cuda.blockIdx.y * 14 + ty - 1
    here = float32(0)
    if INSIDE:
        here = a[y, x]
    tile[ty, tx] = here
    cuda.syncthreads()
    if tx < 14 and ty < 14 and x < w and y < h:
        out[y, x] = tile[ty + 1, tx] + tile[ty, tx + 1]
";
    for (inside, asked) in [
        ("x >= 0 and x < w and y >= 0 and y < h", true),
        ("x >= 0 and x < w and y > 0 and 3 < y + 1 and h > y", true),
        // The bounds differ from row to row.
        ("x >= 0 and x + ty < w and y >= 0 and y < h", false),
        ("x >= ty and x < w and y >= 0 and y < h", false),
    ] {
        let llvm = llvm_for_block(
            &source.replace("INSIDE", inside),
            "void(float32[:, ::1], float32[:, ::1])",
            "znver4",
            [16, 16, 1],
        );
        assert_eq!(llvm.contains("%is_far"), asked, "{inside}:\n{llvm}");
    }
}
