//! Transformations that change the order of threads: block merging, axis interchange and loop interchange; and
//! transformations of guards and branches.

use crate::backend::host::{
    plan::{MergedSize, Plan, Vectors},
    tests::harness::{Arg, array, kernel, llvm, matrix, module, plan_features},
};

const MATRIX: &str = "void(int64[:,::1])";

/// Checks a kernel's results on a matrix of zeros, for several block shapes and a grid that is larger than the matrix.
fn each_shape(source: &str, expected: impl Fn(i64, i64, [u32; 3], [u32; 3]) -> i64) {
    let kernel = kernel(source, MATRIX);
    for (rows, columns) in [(1, 1), (7, 45), (33, 20)] {
        for block in [[16, 16, 1], [1, 1, 1], [3, 5, 1], [1024, 1, 1], [1, 64, 1]] {
            let grid = [(columns as u32).div_ceil(block[0]) + 1, (rows as u32).div_ceil(block[1]) + 2, 1];
            let mut out = vec![0_i64; rows * columns];
            kernel.launch(grid, block, 0, &[matrix(&mut out, rows, columns)]);
            for y in 0..rows as i64 {
                for x in 0..columns as i64 {
                    let got = out[(y * columns as i64 + x) as usize];
                    assert_eq!(got, expected(y, x, block, grid), "({y}, {x}) of {rows} x {columns}, {block:?}");
                }
            }
        }
    }
}

#[test]
fn every_thread_of_joined_blocks_runs_once() {
    let source = "
def k(out):
    x, y = cuda.grid(2)
    h, w = out.shape
    if x < w and y < h:
        out[y, x] += x * 1000 + y + 1
";
    let plan = Plan::of(&module(source, MATRIX), true, Vectors::PLAIN, false).expect("a kernel");
    assert_eq!(plan.merge_extents, Some(Vec::new()));
    each_shape(source, |y, x, _, _| x * 1000 + y + 1);
}

#[test]
fn blocks_are_merged_into_tiles_if_rows_access_the_same_lines() {
    let source = "
def k(a, out):
    x, y = cuda.grid(2)
    h, w = out.shape
    if x < w and y < h:
        out[y, x] = a[INDEX]
";
    let merged_size = |index: &str| {
        let source = source.replace("INDEX", index);
        let module = module(&source, "void(int64[:,::1], int64[:,::1])");
        Plan::of(&module, true, Vectors::PLAIN, false).expect("a kernel").merged_size
    };
    assert_eq!(merged_size("x, y"), MergedSize::Tile);
    assert_eq!(merged_size("y, x"), MergedSize::LongRow);
    assert_eq!(merged_size("0, y"), MergedSize::LongRow, "threads along x access one element");
}

#[test]
fn who_asks_for_more_than_the_index_in_the_grid_keeps_his_block() {
    let source = "
def k(out):
    x, y = cuda.grid(2)
    h, w = out.shape
    if x < w and y < h:
        out[y, x] += cuda.threadIdx.x * 10000 + cuda.blockIdx.x * 100 + cuda.threadIdx.y + 1
";
    assert_eq!(Plan::of(&module(source, MATRIX), true, Vectors::PLAIN, false).expect("a kernel").merge_extents, None);
    each_shape(source, |y, x, [w, h, _], _| x % i64::from(w) * 10_000 + x / i64::from(w) * 100 + y % i64::from(h) + 1);
}

#[test]
fn a_constant_in_place_of_the_block_s_extent_is_asked_for() {
    let source = "
def k(out):
    i = cuda.blockIdx.x * 16 + cuda.threadIdx.x
    if i < out.size:
        cuda.atomic.add(out, i, 1)
";
    let signature = "void(int64[::1])";
    assert_eq!(
        Plan::of(&module(source, signature), true, Vectors::PLAIN, false).expect("a kernel").merge_extents,
        Some(vec![16])
    );
    let kernel = kernel(source, signature);
    for block in [1_u32, 8, 16, 24, 32] {
        let mut out = vec![0_i64; 100];
        kernel.launch([9, 1, 1], [block, 1, 1], 0, &[array(&mut out)]);
        let mut expected = vec![0_i64; 100];
        for b in 0..9 {
            let end = (b * 16 + block as usize).min(100);
            expected[(b * 16).min(end)..end].iter_mut().for_each(|count| *count += 1);
        }
        assert_eq!(out, expected, "blocks of {block}");
    }
}

#[test]
fn rows_run_along_the_axis_of_neighbors() {
    let source = "
def k(out):
    i, j = cuda.grid(2)
    n, m = out.shape
    if j < n and i < m:
        out[j, i] += 0
    if i < n and j < m:
        for k in range(2):
            out[i, j] += (i * 1000 + j + cuda.threadIdx.x * 7 + cuda.blockIdx.y * 11 + cuda.blockDim.x * 13
                          + cuda.gridDim.y * 17 + 1)
";
    assert_eq!(Plan::of(&module(source, MATRIX), true, Vectors::PLAIN, false).expect("a kernel").x_axis, 1);
    let kernel = kernel(source, MATRIX);
    for block in [[16, 16, 1], [3, 5, 1], [1, 64, 1]] {
        let (rows, columns) = (21, 33);
        let grid = [21_u32.div_ceil(block[0]), 33_u32.div_ceil(block[1]) + 1, 1];
        let mut out = vec![0_i64; rows * columns];
        kernel.launch(grid, block, 0, &[matrix(&mut out, rows, columns)]);
        for i in 0..rows as i64 {
            for j in 0..columns as i64 {
                let [bx, by] = [i64::from(block[0]), i64::from(block[1])];
                let one = i * 1000 + j + i % bx * 7 + j / by * 11 + bx * 13 + i64::from(grid[1]) * 17 + 1;
                assert_eq!(out[(i * columns as i64 + j) as usize], 2 * one, "({i}, {j}), {block:?}");
            }
        }
    }
}

#[test]
fn rows_run_along_the_axis_of_neighbors_between_barriers() {
    let source = "
def k(a, out):
    tile = cuda.shared.array((16, 16), float64)
    i, j = cuda.grid(2)
    ti, tj = cuda.threadIdx.x, cuda.threadIdx.y
    tile[ti, tj] = a[i, j]
    WAIT
    out[i, j] = tile[tj, ti]
";
    let matrices = "void(float64[:, ::1], float64[:, ::1])";
    for (wait, axis) in [
        ("cuda.syncthreads()", 1),
        ("cuda.syncthreads_or(ti > tj)", 1),
        ("cuda.syncthreads(); cuda.syncwarp()", 0),
        ("tile[ti, tj] += cuda.laneid; cuda.syncthreads()", 0),
        ("tile[ti, tj] += cuda.shfl_sync(-1, ti, 3); cuda.syncthreads()", 0),
        ("cuda.cg.this_grid().sync()", 0),
    ] {
        let plan =
            Plan::of(&module(&source.replace("WAIT", wait), matrices), true, Vectors::PLAIN, false).expect("a kernel");
        assert_eq!(plan.x_axis, axis, "{wait}");
    }
}

/// If the threads beyond either end return, the others need no mask.
#[test]
fn a_corner_that_returns_is_a_bound() {
    let source = "
def k(a, out):
    tile = cuda.shared.array((16, 16), float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if CONDITION:
        return
    tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    out[y, x] = tile[ty, tx] + tile[ty, 0]
";
    for (condition, masks) in [
        ("x >= out.shape[1] and y >= out.shape[0]", false),
        ("x >= out.shape[1] or y >= out.shape[0]", false),
        ("x >= out.shape[1] and y + x >= out.shape[0]", true),
        ("x == out.shape[1] and y >= out.shape[0]", true),
    ] {
        let source = source.replace("CONDITION", condition);
        let plan = Plan::of(&module(&source, "void(float64[:, ::1], float64[:, ::1])"), true, Vectors::PLAIN, false);
        assert_eq!(plan.expect("a kernel").cut.alive.is_some(), masks, "{condition}");
    }
}

#[test]
fn outer_loops_are_taken_together_with_inner_ones() {
    let source = "
def k(points, centers, out):
    i = cuda.grid(1)
    if i < points.shape[1]:
        best = float32(1e30)
        label = 0
        for c in range(centers.shape[0]):
            distance = float32(0)
            for d in range(centers.shape[1]):
                difference = points[d, i] - centers[c, d]
                distance += difference * difference
            if distance < best:
                best = distance
                label = c
        out[i] = label
";
    let signature = "void(float32[:,::1], float32[:,::1], int64[::1])";
    assert!(llvm(source, signature, "x86-64-v3").contains("load <8 x float>"));
    let kernel = kernel(source, signature);
    let (n, d, c) = (77, 5, 6);
    let mut points: Vec<f32> = (0..n * d).map(|at| (at * 37 % 101) as f32).collect();
    let mut centers: Vec<f32> = (0..c * d).map(|at| (at * 53 % 97) as f32).collect();
    for block in [1, 32, 256] {
        let mut out = vec![-1_i64; n];
        let args = [matrix(&mut points, d, n), matrix(&mut centers, c, d), array(&mut out)];
        kernel.launch([(n as u32).div_ceil(block), 1, 1], [block, 1, 1], 0, &args);
        for i in 0..n {
            let to = |center: usize| -> f32 {
                (0..d).map(|axis| (points[axis * n + i] - centers[center * d + axis]).powi(2)).sum()
            };
            let nearest = (1..c).fold(0, |best, at| if to(at) < to(best) { at } else { best });
            assert_eq!(out[i], nearest as i64, "{i}, blocks of {block}");
        }
    }
}

#[test]
fn short_branches_are_selections() {
    let source = "
def k(seeds, steps, out):
    i = cuda.grid(1)
    if i < seeds.size:
        state = seeds[i]
        x = 0
        y = 0
        last = 0
        for s in range(steps):
            state = (1664525 * state + 1013904223) & 0xFFFFFFFF
            way = state >> 30
            if way == 0:
                x += 1
                last = x + y
            elif way == 1:
                twice = x - y
                x -= 1
                y = twice
            elif way == 2:
                y += 1
            else:
                y -= 1
                last = s
        out[i] = x * 1000000 + y * 1000 + last
";
    let signature = "void(uint32[::1], int32, int64[::1])";
    let code = llvm(source, signature, "x86-64-v3");
    assert!(code.contains(" x i") && !code.contains("switch"), "{code}");
    let kernel = kernel(source, signature);
    let mut seeds: Vec<u32> = (0..50).map(|at| 2_654_435_761_u32.wrapping_mul(at)).collect();
    for steps in [0, 1, 40] {
        let mut out = vec![0_i64; 50];
        kernel.launch([3, 1, 1], [20, 1, 1], 0, &[array(&mut seeds), Arg::Int(steps), array(&mut out)]);
        for (at, &seed) in seeds.iter().enumerate() {
            let (mut state, mut x, mut y, mut last) = (i64::from(seed), 0_i64, 0_i64, 0_i64);
            for s in 0..steps {
                state = (1_664_525 * state + 1_013_904_223) & 0xffff_ffff;
                match state >> 30 {
                    0 => {
                        x += 1;
                        last = x + y;
                    }
                    1 => (x, y) = (x - 1, x - y),
                    2 => y += 1,
                    _ => {
                        y -= 1;
                        last = s;
                    }
                }
            }
            assert_eq!(out[at], x * 1_000_000 + y * 1000 + last, "{seed}, {steps} steps");
        }
    }
}

#[test]
fn chained_comparisons_are_bounds() {
    let source = "
def k(a, out):
    x, y = cuda.grid(2)
    h, w = a.shape
    if 0 < x < w - 1 and 0 < y < h - 1:
        out[y, x] = a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1]
";
    let plan =
        Plan::of(&module(source, "void(int64[:,::1], int64[:,::1])"), true, Vectors::PLAIN, false).expect("a kernel");
    let crate::backend::host::plan::Node::Segment(segment) = &plan.cut.nodes[0] else { panic!("one segment") };
    let guard = segment.guard.as_ref().expect("a guard");
    assert_eq!((guard.ranges.len(), guard.rows.len()), (2, 2), "{guard:?}");
    let kernel = kernel(source, "void(int64[:,::1], int64[:,::1])");
    let (rows, columns) = (9, 37);
    let mut a: Vec<i64> = (0..(rows * columns) as i64).map(|at| at * 7 % 31).collect();
    let mut out = vec![-1_i64; rows * columns];
    kernel.launch([3, 2, 1], [16, 8, 1], 0, &[matrix(&mut a, rows, columns), matrix(&mut out, rows, columns)]);
    for y in 0..rows {
        for x in 0..columns {
            let inside = y > 0 && y + 1 < rows && x > 0 && x + 1 < columns;
            let at = |y: usize, x: usize| a[y * columns + x];
            let expected = if inside { at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1) } else { -1 };
            assert_eq!(out[y * columns + x], expected, "({y}, {x})");
        }
    }
}

#[test]
fn conditions_with_a_name_are_bounds() {
    let source = "
def k(wall, out):
    cost = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    x = cuda.blockIdx.x * 44 + t - 10
    inside = x >= 0 and x < out.size
    if inside:
        cost[t] = x % 7
    cuda.syncthreads()
    left = t - 1 if x > 0 else t
    right = t + 1 if x < out.size - 1 else t
    best = 0
    for row in range(10):
        known = inside and row < t and t < 63 - row
        if known:
            best = min(cost[t], min(cost[left], cost[right])) + wall[row, x]
        cuda.syncthreads()
        if known:
            cost[t] = best
        cuda.syncthreads()
    if inside and t >= 10 and t < 54:
        out[x] = best
";
    let signature = "void(int32[:,::1], int32[::1])";
    let kernel = kernel(source, signature);
    for n in [1_usize, 44, 45, 200] {
        let mut wall: Vec<i32> = (0..10 * n).map(|at| (at * 31 % 23) as i32).collect();
        let mut out = vec![-1_i32; n];
        let grid = [(n as u32).div_ceil(44), 1, 1];
        kernel.launch(grid, [64, 1, 1], 0, &[matrix(&mut wall, 10, n), array(&mut out)]);
        let mut cost: Vec<i32> = (0..n).map(|x| (x % 7) as i32).collect();
        for row in 0..10 {
            let around = |x: usize| cost[x].min(cost[x.saturating_sub(1)]).min(cost[(x + 1).min(n - 1)]);
            cost = (0..n).map(|x| around(x) + wall[row * n + x]).collect();
        }
        assert_eq!(out, cost, "{n} columns");
    }
}

#[test]
fn conversions_of_floats_saturate_in_vectors() {
    let source = "
def k(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = int32(a[i])
";
    let code = llvm(source, "void(float32[::1], int32[::1])", "x86-64-v3");
    assert!(code.contains("fptosi <8 x float>"), "{code}");
    let mut given = vec![0.0_f32, -0.5, 1.9, -1.9, 2_147_483_520.0, 2_147_483_648.0, -2_147_483_648.0, 1e30, -1e30];
    given.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 255.0, 256.5, 65535.5, 4_294_967_040.0, 4_294_967_296.0]);
    let (n, grid) = (given.len(), [2, 1, 1]);
    macro_rules! check {
        ($($name:literal $ty:ty)*) => {$(
            for (float, signature) in [("float32", 32), ("float64", 64)] {
                let source = source.replace("int32", $name);
                let kernel = kernel(&source, &format!("void({float}[::1], {}[::1])", $name));
                let mut out = vec![<$ty>::default(); n];
                let mut wide: Vec<f64> = given.iter().map(|&value| f64::from(value)).collect();
                let input = if signature == 32 { array(&mut given) } else { array(&mut wide) };
                kernel.launch(grid, [16, 1, 1], 0, &[input, array(&mut out)]);
                let expected: Vec<$ty> = given.iter().map(|&value| value as $ty).collect();
                assert_eq!(out, expected, "{float} to {}", $name);
            }
        )*};
    }
    check!("int32" i32 "uint32" u32 "int64" i64 "uint64" u64);
}

#[test]
fn loops_become_loops_of_the_block_if_the_first_thread_begins_and_rows_are_contiguous() {
    let source = |access: &str, first: &str| {
        format!(
            "
def k(a, out):
    tx, ty, tz = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    for y in range({first}, a.shape[0], 8):
        out[y, tx] = {access}
"
        )
    };
    let has_loop_of_block = |source: &str| {
        let signature = "void(float32[:,::1], float32[:,::1])";
        plan_features(source, signature, "x86-64-v3").contains(&"grid-stride-loop")
    };
    let is_rewritten = |access: &str, first: &str| has_loop_of_block(&source(access, first));
    for access in ["a[y, tx]", "a[y, tx + 1] - a[max(y - 1, 0), min(tx, 5)]"] {
        for first in ["ty", "cuda.grid(2)[1]", "cuda.blockIdx.x * 16 + ty", "2 * ty", "ty + tz * cuda.blockDim.y"] {
            assert!(is_rewritten(access, first), "{access}, {first}");
        }
    }
    for access in ["a[tx, y]", "a[y, tx] + a[tx, 0]", "a[y, tx * 2]"] {
        assert!(!is_rewritten(access, "ty"), "{access}");
    }
    for first in ["7 - ty", "7 + ty - tx", "3", "ty * tz", "ty * a.shape[1]", "ty << 40", "ty * 100000000"] {
        assert!(!is_rewritten("a[y, tx]", first), "{first}");
    }
    for first in ["ty * cuda.blockDim.x + tx", "(tz * cuda.blockDim.y + ty) * cuda.blockDim.x + tx", "ty * 32 + tx"] {
        let along_rows = source("a[1, y]", first).replace("out[y, tx]", "out[0, y]");
        assert!(has_loop_of_block(&along_rows), "{first}");
        assert!(!has_loop_of_block(&along_rows.replace("a[1, y]", "a[y, 1]")), "{first}");
        assert!(!has_loop_of_block(&along_rows.replace("a[1, y]", "a[1, y] + a[1, int(a[0, y])]")), "{first}");
    }
    let with_loop = |n: &str| {
        let inner = format!(
            "total = a[y, tx]\n        for k in range({n}):\n            total *= a[k, tx]\n        out[y, tx] = total"
        );
        let source = source("total", "ty").replace("out[y, tx] = total", &inner);
        // Without a barrier, each row of the block is a block.
        source.replace("    for y in", "    cuda.syncthreads()\n    for y in")
    };
    assert!(has_loop_of_block(&with_loop("y % 5")));
    assert!(!has_loop_of_block(&with_loop("tx % 5")), "the threads of a row leave the loop apart");
}
