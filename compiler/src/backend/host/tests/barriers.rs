//! Kernels with barriers, whose bodies become several parallel regions.

use crate::backend::host::tests::harness::{Arg, array, kernel, llvm, matrix};

#[test]
fn reduction_in_a_halving_loop() {
    let source = "
def reduce(x, out):
    s = cuda.shared.array(256, float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    s[tid] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    step = cuda.blockDim.x // 2
    while step > 0:
        if tid < step:
            s[tid] += s[tid + step]
        cuda.syncthreads()
        step //= 2
    if tid == 0:
        out[cuda.blockIdx.x] = s[0]
";
    let kernel = kernel(source, "void(float32[::1], float32[::1])");
    let n = 1000_usize;
    let mut x: Vec<f32> = (0..n).map(|i| (i % 17) as f32).collect();
    for block in [1_usize, 2, 64, 256] {
        let blocks = n.div_ceil(block);
        let mut out = vec![0.0_f32; blocks];
        kernel.launch([blocks as u32, 1, 1], [block as u32, 1, 1], 0, &[array(&mut x), array(&mut out)]);
        for (sum, part) in out.iter().zip(x.chunks(block)) {
            assert!((sum - part.iter().sum::<f32>()).abs() < 1e-3, "block of {block}");
        }
    }
}

#[test]
fn early_return_before_a_barrier() {
    let source = "
def k(x, out, n):
    s = cuda.shared.array(64, int32)
    i = cuda.threadIdx.x
    v = x[i]
    s[i] = v
    if i >= n:
        return
    cuda.syncthreads()
    if v > 100:
        out[i] = -1
        return
    cuda.syncthreads()
    out[i] = s[n - 1 - i] + 1
    cuda.syncthreads()
    x[i] = 0
";
    let kernel = kernel(source, "void(int32[::1], int32[::1], int64)");
    let mut x: Vec<i32> = (0..64).map(|i| if i % 5 == 0 { 1000 } else { i }).collect();
    let before = x.clone();
    let mut out = vec![7_i32; 64];
    kernel.launch([1, 1, 1], [64, 1, 1], 0, &[array(&mut x), array(&mut out), Arg::Int(40)]);
    for i in 0..64 {
        let (left, told) = (i >= 40, before[i] > 100);
        let want = if left {
            7
        } else if told {
            -1
        } else {
            before[39 - i] + 1
        };
        assert_eq!(out[i], want, "{i}");
        assert_eq!(x[i], if left || told { before[i] } else { 0 }, "{i}");
    }
}

#[test]
fn barrier_in_a_loop_that_threads_leave_apart() {
    // Thread `i` runs `i % 7` iterations, and in each reads what its neighbor wrote before the barrier.
    let source = "
def k(out):
    s = cuda.shared.array(64, int64)
    i = cuda.threadIdx.x
    total = 0
    step = 0
    while step < i % 7:
        s[i] = i * 10 + step
        cuda.syncthreads()
        total += s[(i // 7) * 7 + 6]
        step += 1
        cuda.syncthreads()
    out[i] = total * 100 + step
";
    let kernel = kernel(source, "void(int64[::1])");
    let mut out = vec![0_i64; 63];
    kernel.launch([1, 1, 1], [63, 1, 1], 0, &[array(&mut out)]);
    for i in 0..63_i64 {
        let last = i / 7 * 7 + 6;
        let total: i64 = (0..i % 7).map(|step| last * 10 + step).sum();
        assert_eq!(out[i as usize], total * 100 + i % 7, "{i}");
    }
}

#[test]
fn break_and_continue_by_some() {
    let source = "
def k(out, limit):
    s = cuda.shared.array(64, int64)
    i = cuda.threadIdx.x
    total = 0
    for step in range(10):
        s[i] = step + i
        cuda.syncthreads()
        if step == limit:
            break
        if (step + i) % 3 == 0:
            continue
        if step > i:
            total += 1000
            break
        total += s[i]
        cuda.syncthreads()
        total += 1
    else:
        total += 5000
    out[i] = total
";
    let kernel = kernel(source, "void(int64[::1], int64)");
    for limit in [3_i64, 8, 20] {
        let mut out = vec![0_i64; 40];
        kernel.launch([1, 1, 1], [40, 1, 1], 0, &[array(&mut out), Arg::Int(limit)]);
        for i in 0..40_i64 {
            let mut total = 0;
            let mut whole = true;
            for step in 0..10 {
                if step == limit {
                    whole = false;
                    break;
                }
                if (step + i) % 3 == 0 {
                    continue;
                }
                if step > i {
                    total += 1000;
                    whole = false;
                    break;
                }
                total += step + i + 1;
            }
            assert_eq!(out[i as usize], total + if whole { 5000 } else { 0 }, "{i}, limit {limit}");
        }
    }
}

#[test]
fn barrier_in_a_branch_of_some() {
    let source = "
def k(out):
    s = cuda.shared.array(64, int64)
    i = cuda.threadIdx.x
    v = i * i
    if i % 2 == 0:
        s[i] = v
        cuda.syncthreads()
        v = s[(i + 2) % 64]
        if i % 4 == 0:
            v += 1
            cuda.syncthreads()
            s[i] = -1
    else:
        v = -v
        cuda.syncthreads()
        v -= 1
    cuda.syncthreads()
    out[i] = v + s[i - i % 2]
";
    let kernel = kernel(source, "void(int64[::1])");
    let mut out = vec![0_i64; 64];
    kernel.launch([1, 1, 1], [64, 1, 1], 0, &[array(&mut out)]);
    for i in 0..64_i64 {
        let s = |j: i64| if j % 4 == 0 { -1 } else { j * j };
        let v = if i % 2 == 0 {
            let next = (i + 2) % 64;
            next * next + i64::from(i % 4 == 0)
        } else {
            -i * i - 1
        };
        assert_eq!(out[i as usize], v + s(i - i % 2), "{i}");
    }
}

#[test]
fn barrier_in_a_device_function() {
    let source = "
def rotate(s, i, by):
    cuda.syncthreads()
    if by == 0:
        return s[i]
    v = s[(i + by) % cuda.blockDim.x]
    cuda.syncthreads()
    for j in range(by):
        if v % 5 == 4:
            return v * 100
        v += 1
        cuda.syncthreads()
    return v

def k(out):
    s = cuda.shared.array(64, int64)
    i = cuda.threadIdx.x
    s[i] = i * 3
    a = rotate(s, i, 0)
    b = rotate(s, i, 3)
    cuda.syncthreads()
    s[i] = b
    c = rotate(s, i, i % 4)
    out[i] = a + 1000 * b + 1000000 * c
";
    let kernel = kernel(source, "void(int64[::1])");
    let threads = 48_i64;
    let mut out = vec![0_i64; threads as usize];
    kernel.launch([1, 1, 1], [threads as u32, 1, 1], 0, &[array(&mut out)]);
    let rotate = |s: &[i64], i: i64, by: i64| {
        if by == 0 {
            return s[i as usize];
        }
        let mut v = s[((i + by) % threads) as usize];
        for _ in 0..by {
            if v % 5 == 4 {
                return v * 100;
            }
            v += 1;
        }
        v
    };
    let s: Vec<i64> = (0..threads).map(|i| i * 3).collect();
    let b: Vec<i64> = (0..threads).map(|i| rotate(&s, i, 3)).collect();
    for i in 0..threads {
        let c = rotate(&b, i, i % 4);
        assert_eq!(out[i as usize], s[i as usize] + 1000 * b[i as usize] + 1_000_000 * c, "{i}");
    }
}

const MATMUL: &str = "
def matmul(a, b, c):
    sa = cuda.shared.array((16, 16), float32)
    sb = cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tmp = float32(0.0)
    for t in range((a.shape[1] + 15) // 16):
        sa[ty, tx] = 0
        sb[ty, tx] = 0
        if y < a.shape[0] and tx + t * 16 < a.shape[1]:
            sa[ty, tx] = a[y, tx + t * 16]
        if x < b.shape[1] and ty + t * 16 < b.shape[0]:
            sb[ty, tx] = b[ty + t * 16, x]
        cuda.syncthreads()
        for j in range(16):
            tmp += sa[ty, j] * sb[j, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = tmp
";

#[test]
fn tiled_matmul() {
    let kernel = kernel(MATMUL, "void(float32[:,::1], float32[:,::1], float32[:,::1])");
    let (rows, columns, inner) = (40, 50, 33);
    let mut a: Vec<f32> = (0..rows * inner).map(|i| (i % 7) as f32).collect();
    let mut b: Vec<f32> = (0..inner * columns).map(|i| (i % 5) as f32).collect();
    let mut c = vec![0.0_f32; rows * columns];
    let grid = [(columns as u32).div_ceil(16), (rows as u32).div_ceil(16), 1];
    kernel.launch(
        grid,
        [16, 16, 1],
        0,
        &[matrix(&mut a, rows, inner), matrix(&mut b, inner, columns), matrix(&mut c, rows, columns)],
    );
    for row in 0..rows {
        for column in 0..columns {
            let want: f32 = (0..inner).map(|i| a[row * inner + i] * b[i * columns + column]).sum();
            assert_eq!(c[row * columns + column].to_bits(), want.to_bits(), "({row}, {column})");
        }
    }
}

#[test]
fn tiled_matmul_vectorises() {
    let llvm = llvm(MATMUL, "void(float32[:,::1], float32[:,::1], float32[:,::1])", "x86-64-v3");
    assert!(llvm.contains("fmul contract <"), "{llvm}");
}

#[test]
fn dynamic_shared_memory() {
    let source = "
def k(x, out):
    fixed = cuda.shared.array(3, float64)
    s = cuda.shared.array(0, int32)
    i = cuda.threadIdx.x
    if i < 3:
        fixed[i] = i + 0.5
    s[i] = x[i]
    cuda.syncthreads()
    out[i] = s[cuda.blockDim.x - 1 - i] + fixed[i % 3]
";
    let kernel = kernel(source, "void(int32[::1], float64[::1])");
    let mut x: Vec<i32> = (0..200).collect();
    let mut out = vec![0.0_f64; 200];
    kernel.launch([1, 1, 1], [200, 1, 1], 800, &[array(&mut x), array(&mut out)]);
    for (i, &value) in out.iter().enumerate() {
        assert_eq!(value.to_bits(), ((199 - i) as f64 + (i % 3) as f64 + 0.5).to_bits(), "{i}");
    }
}

#[test]
fn local_arrays_live_across_barriers() {
    let source = "
def k(out):
    s = cuda.shared.array(64, int64)
    a = cuda.local.array(5, int64)
    i = cuda.threadIdx.x
    for j in range(5):
        a[j] = i * 10 + j
    s[i] = i
    cuda.syncthreads()
    for j in range(5):
        a[j] += s[63 - i]
    cuda.syncwarp()
    total = 0
    for j in range(5):
        total = total * 2 + a[j]
    out[i] = total
";
    let kernel = kernel(source, "void(int64[::1])");
    let mut out = vec![0_i64; 64];
    kernel.launch([1, 1, 1], [64, 1, 1], 0, &[array(&mut out)]);
    for i in 0..64_i64 {
        let want = (0..5).fold(0, |total, j| total * 2 + i * 10 + j + 63 - i);
        assert_eq!(out[i as usize], want, "{i}");
    }
}

#[test]
fn blocks_of_three_dimensions() {
    let source = "
def k(out):
    s = cuda.shared.array(1024, int32)
    w = cuda.blockDim.x
    h = cuda.blockDim.y
    t = (cuda.threadIdx.z * h + cuda.threadIdx.y) * w + cuda.threadIdx.x
    n = w * h * cuda.blockDim.z
    s[t] = t
    cuda.syncthreads()
    out[cuda.blockIdx.x * n + n - 1 - t] = s[n - 1 - t] + cuda.blockIdx.x
";
    let kernel = kernel(source, "void(int32[::1])");
    for block in [[3_u32, 5, 7], [1, 1, 64], [16, 8, 8], [1, 1024, 1]] {
        let n = block.iter().product::<u32>() as usize;
        let mut out = vec![0_i32; n * 5];
        kernel.launch([5, 1, 1], block, 0, &[array(&mut out)]);
        for (i, &value) in out.iter().enumerate() {
            assert_eq!(value as usize, i % n + i / n, "{i} in {block:?}");
        }
    }
}

#[test]
fn all_threads_return_before_an_endless_loop() {
    let source = "
def k(out):
    i = cuda.threadIdx.x
    out[i] = 1
    if i >= 0:
        return
    while True:
        cuda.syncthreads()
        out[i] += 1
";
    let kernel = kernel(source, "void(int32[::1])");
    let mut out = vec![0_i32; 33];
    kernel.launch([1, 1, 1], [33, 1, 1], 0, &[array(&mut out)]);
    assert!(out.iter().all(|&value| value == 1));
}

#[test]
fn fences_and_atomics_between_barriers() {
    let source = "
def k(out, n):
    count = cuda.shared.array(1, int32)
    i = cuda.threadIdx.x
    if i == 0:
        count[0] = 0
    cuda.syncthreads()
    if i < n:
        cuda.atomic.add(count, 0, 2)
    cuda.threadfence_block()
    cuda.syncthreads()
    out[cuda.grid(1)] = count[0]
";
    let kernel = kernel(source, "void(int32[::1], int64)");
    let mut out = vec![0_i32; 96];
    kernel.launch([3, 1, 1], [32, 1, 1], 0, &[array(&mut out), Arg::Int(11)]);
    assert_eq!(out, [22; 96]);
}

#[test]
fn local_arrays_of_a_function_with_a_barrier_are_one_for_all_its_calls() {
    let mut source = "
def g(x):
    a = cuda.local.array(64, int64)
    a[x % 64] = x
    cuda.syncthreads()
    return a[x % 64] + 1

def f(x):
    a = cuda.local.array(64, int64)
    a[x % 64] = g(x)
    cuda.syncthreads()
    return a[x % 64]

def k(o):
    i = cuda.threadIdx.x
    v = g(i)
"
    .to_owned();
    source.push_str(&"    v = f(v)\n".repeat(20));
    source.push_str("    o[i] = v\n");
    let kernel = kernel(&source, "void(int64[::1])");
    let bytes = kernel.output.artifact.kernels[0].host.expect("a host kernel").dynamic_offset;
    assert!(bytes < 5 * 64 * 8 * 1024, "{bytes}");
    let mut out = vec![0_i64; 100];
    kernel.launch([1, 1, 1], [100, 1, 1], 0, &[array(&mut out)]);
    assert_eq!(out, (21..121).collect::<Vec<i64>>());
}

#[test]
fn the_next_block_is_fetched() {
    let source = |index: &str, barrier: &str| {
        format!(
            "
def k(x, out, n):
    s = cuda.shared.array(256, float32)
    tid = cuda.threadIdx.x
    i = {index}
    s[tid] = x[i]
    {barrier}
    out[i] = s[255 - tid] + n
"
        )
    };
    let grid = "cuda.blockIdx.x * 256 + tid";
    let forms = [
        (grid, "cuda.syncthreads()", 2),
        ("cuda.grid(1)", "cuda.syncthreads()", 2),
        (grid, "tid += 0", 0),
        ("tid", "cuda.syncthreads()", 0),
        ("cuda.blockIdx.x * 512 + 2 * tid", "cuda.syncthreads()", 0),
    ];
    for (index, barrier, streams) in forms {
        let llvm = llvm(&source(index, barrier), "void(float32[::1], float32[::1], int64)", "x86-64-v3");
        let fetches = llvm.lines().filter(|line| line.contains("call void @llvm.prefetch")).count();
        assert!(if streams == 0 { fetches == 0 } else { fetches >= streams }, "{index}, {barrier}:\n{llvm}");
    }
}
