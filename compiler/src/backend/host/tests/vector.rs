//! Kernels without barriers: thread loops that vectorize, and guards that become their bounds.

use crate::backend::host::tests::harness::{
    Arg, array, kernel, llvm, llvm_for_block, llvm_for_short, matrix, plan_features,
};

const SAXPY: &str = "
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]
";

#[test]
fn saxpy() {
    let kernel = kernel(SAXPY, "void(float32, float32[::1], float32[::1], float32[::1])");
    for n in [0_usize, 1, 63, 64, 65, 1000, 4096] {
        let mut x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let mut y: Vec<f32> = (0..n).map(|i| 3.0 * i as f32).collect();
        let mut out = vec![-1.0_f32; n + 8];
        for block in [1_u32, 3, 64, 256, 1024] {
            let grid = (n as u32).div_ceil(block).max(1) + 1;
            out.fill(-1.0);
            let args = [Arg::F32(2.0), array(&mut x), array(&mut y), array(&mut out[..n])];
            kernel.launch([grid, 1, 1], [block, 1, 1], 0, &args);
            for i in 0..n {
                assert_eq!(out[i].to_bits(), (2.0 * x[i] + y[i]).to_bits(), "{i} of {n}, block {block}");
            }
            assert!(
                out[n..].iter().all(|value| value.to_bits() == (-1.0_f32).to_bits()),
                "no thread writes beyond the guard"
            );
        }
    }
}

#[test]
fn saxpy_vectorises_without_checks() {
    let llvm = llvm(SAXPY, "void(float32, float32[::1], float32[::1], float32[::1])", "x86-64-v3");
    assert!(llvm.contains("x float>"), "{llvm}");
    assert!(!llvm.contains("memcheck"), "the arrays are not compared:\n{llvm}");
    assert!(!llvm.contains("masked.store"), "the guard is in the loop's bounds:\n{llvm}");
}

#[test]
fn guards_of_every_form() {
    let forms = [
        ("if i < n: out[i] = 1", 0..50_i64),
        ("if n > i: out[i] = 1", 0..50),
        ("if i <= n: out[i] = 1", 0..51),
        ("if i >= 7 and i < n: out[i] = 1", 7..50),
        ("if 7 < i < n - 1: out[i] = 1", 8..49),
        ("if i == n: out[i] = 1", 50..51),
        ("if i - 5 < n:\n        if not (i < 3):\n            out[i] = 1", 3..55),
        ("if i >= n: return\n    out[i] = 1", 0..50),
        ("if i >= n or i < 20: return\n    k = i + 0\n    out[k] = 1", 20..50),
        ("if i < n and out[i] == 0: out[i] = 1", 0..50),
        ("if cuda.threadIdx.x < 5 and i < n: out[i] = 1", 0..5),
        ("j = i\n    if n < 0: return\n    if j < n: out[j] = 1", 0..50),
    ];
    for (form, expected) in forms {
        let source =
            format!("def k(out, n):\n    i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x\n    {form}\n");
        let kernel = kernel(&source, "void(int32[::1], int64)");
        let mut out = vec![0_i32; 128];
        kernel.launch([1, 1, 1], [128, 1, 1], 0, &[array(&mut out), Arg::Int(50)]);
        let got: Vec<_> = (0..128).filter(|&i| out[i as usize] == 1).collect();
        let want: Vec<_> = expected.collect();
        assert_eq!(got, want, "{form}");
    }
}

#[test]
fn two_dimensions() {
    let source = "
def grey(rgb, out):
    y, x = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = rgb[y, x] * 2 + y
";
    let kernel = kernel(source, "void(int32[:,::1], int32[:,::1])");
    let (rows, columns) = (37, 53);
    let mut input: Vec<i32> = (0..(rows * columns) as i32).collect();
    let mut out = vec![0_i32; rows * columns];
    for block in [[16, 16, 1], [1, 64, 1], [64, 1, 1], [5, 7, 1]] {
        out.fill(0);
        let grid = [(rows as u32).div_ceil(block[0]), (columns as u32).div_ceil(block[1]), 1];
        kernel.launch(grid, block, 0, &[matrix(&mut input, rows, columns), matrix(&mut out, rows, columns)]);
        for row in 0..rows {
            for column in 0..columns {
                let at = row * columns + column;
                assert_eq!(out[at], input[at] * 2 + row as i32, "({row}, {column}) in {block:?}");
            }
        }
    }
}

#[test]
fn every_register() {
    let source = "
def k(out):
    t = (cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x
    b = (cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y) * cuda.gridDim.x + cuda.blockIdx.x
    per_block = cuda.blockDim.x * cuda.blockDim.y * cuda.blockDim.z
    out[b * per_block + t] = cuda.laneid + 100 * b + cuda.warpsize
";
    let kernel = kernel(source, "void(int64[::1])");
    let (grid, block) = ([3, 2, 4], [5, 3, 7]);
    let (blocks, threads) = (3 * 2 * 4, 5 * 3 * 7);
    let mut out = vec![0_i64; blocks * threads];
    kernel.launch(grid, block, 0, &[array(&mut out)]);
    for (index, &value) in out.iter().enumerate() {
        let (block, thread) = (index / threads, index % threads);
        assert_eq!(value, (thread % 32 + 100 * block + 32) as i64, "thread {thread} of block {block}");
    }
}

#[test]
fn local_arrays_belong_to_a_thread() {
    let source = "
def k(out):
    a = cuda.local.array(8, int32)
    i = cuda.grid(1)
    for j in range(8):
        a[(i + j) % 8] = i * j
    s = 0
    for j in range(8):
        s = s * 3 + a[j]
    out[i] = s
";
    let kernel = kernel(source, "void(int64[::1])");
    let mut out = vec![0_i64; 100];
    kernel.launch([2, 1, 1], [50, 1, 1], 0, &[array(&mut out)]);
    for (i, &value) in out.iter().enumerate() {
        let mut a = [0_i64; 8];
        for j in 0..8 {
            a[(i + j) % 8] = (i * j) as i64;
        }
        assert_eq!(value, a.iter().fold(0, |s, &v| s * 3 + v), "{i}");
    }
}

#[test]
fn atomics() {
    let source = "
def k(counts, total):
    i = cuda.grid(1)
    cuda.atomic.add(counts, i % 10, 1)
    cuda.atomic.add(total, 0, 0.5)
";
    let kernel = kernel(source, "void(int32[::1], float64[::1])");
    let (mut counts, mut total) = (vec![0_i32; 10], vec![0.0_f64]);
    kernel.launch([10, 1, 1], [37, 1, 1], 0, &[array(&mut counts), array(&mut total)]);
    assert_eq!(counts, [37; 10]);
    assert!((total[0] - 185.0).abs() < 1e-12);
}

#[test]
fn atomics_on_shared_memory_are_plain() {
    let source = "
def count(bins, v):
    return cuda.atomic.add(bins, v, 1)

def k(x, out, old):
    bins = cuda.shared.array(16, int32)
    total = cuda.shared.array(1, float64)
    t = cuda.threadIdx.x
    if t < 16:
        bins[t] = 0
    if t == 0:
        total[0] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        old[i] = count(bins, x[i])
        cuda.atomic.add(total, 0, 0.5)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(out, t, bins[t] + total[0] * 2)
";
    let signature = "void(int32[::1], float64[::1], int32[::1])";
    let (llvm, kernel) = (llvm(source, signature, "x86-64-v3"), kernel(source, signature));
    let atomics = llvm.lines().filter(|line| line.contains("atomicrmw")).collect::<Vec<_>>();
    assert!(!atomics.is_empty() && atomics.iter().all(|line| line.contains("double")), "{atomics:?}");
    let (n, grid, block) = (1000_usize, 3_usize, 64_usize);
    let mut x: Vec<i32> = (0..n as i32).map(|i| i * i % 16).collect();
    let (mut out, mut old) = (vec![0.0_f64; 16], vec![-1_i32; n]);
    let args = [array(&mut x), array(&mut out), array(&mut old)];
    kernel.launch([grid as u32, 1, 1], [block as u32, 1, 1], 0, &args);
    for (bin, &got) in out.iter().enumerate() {
        let count = x.iter().filter(|&&v| v == bin as i32).count();
        assert!((got - (count + n) as f64).abs() < 1e-9, "bin {bin}");
        for which in 0..grid {
            let of_block = |i: &usize| i % (grid * block) / block == which && x[*i] == bin as i32;
            let mut seen: Vec<i32> = (0..n).filter(of_block).map(|i| old[i]).collect();
            seen.sort_unstable();
            assert!(
                seen.iter().enumerate().all(|(at, &value)| value == at as i32),
                "bin {bin} of block {which}: {seen:?}"
            );
        }
    }
}

#[test]
fn device_functions_see_their_thread() {
    let source = "
def index():
    return cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x

def clamp(v, low, high):
    if v < low:
        return low
    if v > high:
        return high
    return v

def k(out):
    out[index()] = clamp(index() * 2, 10, 40)
";
    let kernel = kernel(source, "void(int64[::1])");
    let mut out = vec![0_i64; 30];
    kernel.launch([3, 1, 1], [10, 1, 1], 0, &[array(&mut out)]);
    for (i, &value) in out.iter().enumerate() {
        assert_eq!(value, (2 * i as i64).clamp(10, 40));
    }
}

#[test]
fn math_comes_with_the_object() {
    let source = "
def k(x, out):
    i = cuda.grid(1)
    v = x[i]
    out[i] = math.sin(v) + math.exp(v) * math.pow(v, 1.5) + math.fmod(v, 0.7) + v % 0.3 + v // 0.3
";
    let kernel = kernel(source, "void(float64[::1], float64[::1])");
    let mut x: Vec<f64> = (0..64).map(|i| 0.1 + f64::from(i) / 16.0).collect();
    let mut out = vec![0.0; 64];
    kernel.launch([1, 1, 1], [64, 1, 1], 0, &[array(&mut x), array(&mut out)]);
    for (&v, &value) in x.iter().zip(&out) {
        let want = v.sin() + v.exp() * v.powf(1.5) + v % 0.7 + v.rem_euclid(0.3) + (v / 0.3).floor();
        assert!((value - want).abs() < 1e-9 * want.abs().max(1.0), "{v}: {value} {want}");
    }
}

#[test]
fn math_functions_need_nothing_from_outside() {
    type Function = (&'static str, fn(f64) -> f64);
    let functions: [Function; 25] = [
        ("acos", f64::acos),
        ("acosh", |x| (x + 1.0).acosh()),
        ("asin", f64::asin),
        ("asinh", f64::asinh),
        ("atan", f64::atan),
        ("atanh", f64::atanh),
        ("ceil", f64::ceil),
        ("cos", f64::cos),
        ("cosh", f64::cosh),
        ("exp", f64::exp),
        ("expm1", f64::exp_m1),
        ("fabs", f64::abs),
        ("floor", f64::floor),
        ("log", f64::ln),
        ("log10", f64::log10),
        ("log1p", f64::ln_1p),
        ("log2", f64::log2),
        ("sin", f64::sin),
        ("sinh", f64::sinh),
        ("sqrt", f64::sqrt),
        ("tan", f64::tan),
        ("tanh", f64::tanh),
        ("trunc", f64::trunc),
        ("degrees", f64::to_degrees),
        ("radians", f64::to_radians),
    ];
    for ty in ["float32", "float64"] {
        let mut source = "def k(x, out):\n    i = cuda.grid(1)\n    if i < x.size:\n        v = x[i]\n".to_owned();
        for (row, (name, _)) in functions.iter().enumerate() {
            let argument = if *name == "acosh" { "v + 1" } else { "v" };
            source.extend(["        out[", &row.to_string(), ", i] = math.", name, "(", argument, ")\n"]);
        }
        let kernel = kernel(&source, &format!("void({ty}[::1], float64[:,::1])"));
        let values = [0.03125, 0.25, 0.5, 0.75, 0.984_375_f64];
        let mut narrow = values.map(|value| value as f32);
        let mut wide = values;
        let mut out = vec![f64::NAN; values.len() * functions.len()];
        let (input, tolerance) = if ty == "float32" { (array(&mut narrow), 1e-5) } else { (array(&mut wide), 1e-12) };
        kernel.launch([1, 1, 1], [32, 1, 1], 0, &[input, matrix(&mut out, functions.len(), values.len())]);
        for ((name, function), row) in functions.iter().zip(out.chunks(values.len())) {
            for (&value, got) in values.iter().zip(row) {
                let want = function(value);
                assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{name}({value}) is {got}, not {want}");
            }
        }
    }
}

#[test]
fn sums_of_bytes_have_no_64_bits() {
    let source = "
def k(a, out):
    i = cuda.grid(1)
    if i < out.size:
        s = a[i] + a[i + 1] + a[i + 2]
        out[i] = 1 if s == 3 or s > 200 else 0
";
    let llvm = llvm(source, "void(uint8[::1], uint8[::1])", "x86-64-v3");
    assert!(llvm.contains("x i16>") && !llvm.contains("x i64> "), "{llvm}");
}

#[test]
fn colors_of_a_picture_are_loaded_as_vectors() {
    let source = "
def k(a, out):
    i, j = cuda.grid(2)
    h, w, channels = a.shape
    if i < h and j < w:
        out[i, j] = a[i, j, 0] * 0.25 + a[i, j, 1] * 0.5 + a[i, j, 2]
";
    let vectors = |short_extents: Vec<(u32, u8)>| {
        let signature = "void(float64[:,:,::1], float64[:,::1])";
        llvm_for_short(source, signature, "x86-64-v3", short_extents).contains("load <12 x double>")
    };
    assert!(vectors(vec![(0, 3)]));
    assert!(!vectors(Vec::new()));
    assert!(!vectors(vec![(1, 3)]), "no last extent of that array");
}

#[test]
fn partners_are_rows_of_neighbors() {
    let source = "
def step(x, j, k):
    i = cuda.grid(1)
    partner = i ^ j
    if partner > i and partner < x.size:
        a = x[i]
        b = x[partner]
        up = (i & k) == 0
        x[i] = min(a, b) if up else max(a, b)
        x[partner] = max(a, b) if up else min(a, b)
";
    let llvm = llvm(source, "void(int32[::1], int32, int32)", "x86-64-v3");
    assert!(llvm.contains("store <8 x i32>"), "{llvm}");
    assert!(!llvm.contains("masked."), "the guard is in the loops' bounds, and nothing is gathered:\n{llvm}");
}

#[test]
fn masks_of_votes_are_made_once_a_warp() {
    let source = "
def rank(x, out):
    i = cuda.grid(1)
    votes = cuda.ballot_sync(0xFFFFFFFF, x[i] > 0)
    out[i] = cuda.popc(votes & ((1 << cuda.laneid) - 1))
";
    let llvm = llvm(source, "void(float32[::1], int32[::1])", "x86-64-v4");
    assert!(llvm.contains("load <32 x i8>"), "the lanes' bytes are read at once:\n{llvm}");
    let popcount = llvm.lines().any(|line| line.contains("@llvm.ctpop.v") && line.contains("call"));
    assert!(popcount, "the lanes read their masks as vectors:\n{llvm}");
}

#[test]
fn bins_are_worked_out_before_they_are_counted() {
    let source = "
def histogram(x, scale, bins):
    counts = cuda.shared.array(64, int32)
    counts[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, min(max(int(x[i] * scale), 0), 63), 1)
    cuda.syncthreads()
    cuda.atomic.add(bins, cuda.threadIdx.x, counts[cuda.threadIdx.x])
";
    let llvm = llvm_for_block(source, "void(float32[::1], float32, int32[::1])", "x86-64-v4", [64, 1, 1]);
    assert!(llvm.contains("fptosi <"), "{llvm}");
}

#[test]
fn a_part_of_a_tile_s_row_is_one_vector() {
    let source = "
def rings(x, low, out):
    tile = cuda.shared.array((16, 16), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tile[ty, tx] = x[ty, tx]
    cuda.syncthreads()
    if tx >= low and tx < 15:
        tile[ty, tx] = tile[ty, tx] * 3
    cuda.syncthreads()
    out[ty, tx] = tile[ty, tx]
";
    let signature = "void(float32[:,::1], int64, float32[:,::1])";
    let whole =
        |llvm: &str| llvm.lines().any(|line| line.contains("= select <16 x i1>") && line.contains("%wide.load"));
    let [with_masks, without] =
        ["x86-64-v4", "x86-64-v3"].map(|cpu| llvm_for_block(source, signature, cpu, [16, 16, 1]));
    assert!(whole(&with_masks), "what was there is stored again:\n{with_masks}");
    assert!(!whole(&without), "bounds in a loop:\n{without}");
}

#[test]
fn sums_of_bytes_in_16_bits() {
    let source = "
def around(a, out):
    x, y = cuda.grid(2)
    h, w = a.shape
    if 0 < x < w - 1 and 0 < y < h - 1:
        total = a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1] - 4 * a[y, x]
        out[y, x] = total > LIMIT
";
    for (limit, narrow) in [("600", true), ("-900", true), ("40000 + x", false)] {
        let source = source.replace("LIMIT", limit);
        let llvm = llvm(&source, "void(uint8[:, ::1], boolean[:, ::1])", "znver4");
        let compares = llvm.lines().any(|line| line.contains("= icmp") && line.contains("x i16>"));
        assert_eq!(compares, narrow, "{limit}:\n{llvm}");
    }
}

#[test]
fn wider_sums_stay_wide() {
    let source = "
def squares(a, out):
    i = cuda.grid(1)
    if 1 < i < a.size - 2:
        total = a[i - 1] * a[i - 1] + a[i] * a[i] + a[i + 1] * a[i + 1]
        out[i] = total > 1000
";
    let llvm = llvm(source, "void(uint8[::1], boolean[::1])", "znver4");
    let compares = llvm.lines().any(|line| line.contains("= icmp") && line.contains("x i16>"));
    assert!(!compares && llvm.contains("x i32>"), "{llvm}");
}

/// Runtime unrolling is disabled for a sequential loop inside a thread loop. It has few iterations, most of which would
/// run in the remainder loop.
#[test]
fn loops_of_one_thread_are_not_unrolled() {
    let source = "
def rows(starts, columns, values, x, y):
    i = cuda.grid(1)
    if i < y.size:
        total = 0.0
        for j in range(starts[i], starts[i + 1]):
            total += values[j] * x[columns[j]]
        y[i] = total
";
    let signature = "void(int32[::1], int32[::1], float32[::1], float32[::1], float32[::1])";
    let llvm = llvm(source, signature, "x86-64-v3");
    assert!(llvm.contains("fmul") || llvm.contains("llvm.fmuladd") || llvm.contains("llvm.fma"), "{llvm}");
    assert!(!llvm.contains(".prol") && !llvm.contains(".epil"), "no loop for the rest:\n{llvm}");
}

/// Each step of this sum is a loop over the rows of a block, around a loop over the threads of a row. LLVM would unroll
/// the former, with two copies of the vector loop, its epilogue and its remainder.
#[test]
fn loops_around_thread_loops_are_not_unrolled() {
    let source = "
def total(x, out):
    parts = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    parts[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = 128
    while step > 0:
        if t < step:
            parts[t] += parts[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = parts[0]
";
    let llvm = llvm(source, "void(float32[::1], float32[::1])", "znver4");
    let epilogues: Vec<_> = llvm.lines().filter(|line| line.starts_with("vec.epilog.vector.body")).collect();
    assert!(!epilogues.is_empty(), "{llvm}");
    assert!(epilogues.iter().all(|line| !line.contains(".epil:")), "{epilogues:#?}");
}

#[test]
fn indices_are_divided_in_32_bits() {
    let source = "
def rests(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = DIVIDED
";
    for (divided, is_narrow) in
        [("i % 9", true), ("(i - 5) // 7", true), ("i % out.size", false), ("i * 3 % 7", false), ("i % 8", false)]
    {
        let llvm = llvm(&source.replace("DIVIDED", divided), "void(int64[::1])", "x86-64-v3");
        assert_eq!(llvm.contains("udiv <") || llvm.contains("urem <"), is_narrow, "{divided}:\n{llvm}");
    }
}

/// A loop with a uniform trip count is no loop with divergent exits, inside a guard as well as outside of one.
#[test]
fn uniform_loops_need_no_masks() {
    let source = "
def horner(x, out):
    i = cuda.grid(1)
    GUARD
        total = float32(0)
        for k in range(8):
            total = total * x[i] + k
        out[i] = total
";
    for guard in ["if i < out.size:", "if True:"] {
        let names = plan_features(&source.replace("GUARD", guard), "void(float32[::1], float32[::1])", "x86-64-v4");
        assert!(!names.contains(&"divergent-exit"), "{guard}: {names:?}");
    }
}

/// A condition of the whole block is a branch of a strip, so that the loop around it may be strip-mined.
#[test]
fn strips_have_uniform_branches() {
    let source = "
def sums(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        total = float32(0)
        for k in range(x.shape[1]):
            if k % 2 == 0:
                total += x[i, k]
        out[i] = total
";
    let names = plan_features(source, "void(float32[:, ::1], float32[::1])", "x86-64-v3");
    assert!(["strided-strips", "uniform-branch"].iter().all(|name| names.contains(name)), "{names:?}");
}

#[test]
fn a_strip_tests_its_lanes_in_loops_after_an_early_return() {
    let source = "
def k(x, out, limit):
    i = cuda.grid(1)
    width = out.shape[1]
    if i >= out.shape[0] * width:
        return
    row, column = divmod(i, width)
    t = x[0]
    d = x[1] + float32(column)
    while d > float32(0.002) * t and t < limit:
        t += d
        d = t * float32(0.5) + abs(t - float32(row))
    out[row, column] = t
";
    let names = plan_features(source, "void(float32[::1], float32[:, ::1], float32)", "x86-64-v4");
    assert!(names.contains(&"quotient-index-split"), "{names:?}");
    assert!(names.contains(&"divergent-exit") && !names.contains(&"thread-masks"), "{names:?}");
}

#[test]
fn loops_over_rows_of_a_matrix_are_in_strips_if_iterations_load_the_same_rows() {
    let source = "
def k(x, out, n):
    i = cuda.grid(1)
    if i < out.shape[0]:
        total = float32(0)
        for k in range(n):
            total += x[k, i]MORE
        out[i] = total
";
    let signature = "void(float32[:, ::1], float32[::1], int64)";
    let has_strips =
        |more: &str| plan_features(&source.replace("MORE", more), signature, "x86-64-v4").contains(&"strip-mining");
    assert!(!has_strips(""));
    assert!(has_strips(" - x[k + 3, i]"));
}
