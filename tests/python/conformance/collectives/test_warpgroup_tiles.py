"""Matrix tiles of a warpgroup: layouts of operands against NumPy, and bits against those of a warp and of an H100.

`wgmma_cc90.npz` has inputs and outputs of `wgmma` with floats of 8 bits that tell wrong rules from the right ones.
About 40 seconds.
"""

import pickle
from pathlib import Path

import numpy as np
import pytest
import weft
from harness import launch, module
from weft import cuda

GPU = np.load(Path(__file__).with_name("wgmma_cc90.npz"))
HEAD = """
import weft
from weft import bfloat16, cuda, float16, float32, int8, int32, uint8
"""
# The matrices are A with m rows and B with n columns at the position (i, at_k) of A and (at_k, j) of B, in arrays of a
# layout. `x` and `y` are filled from whole matrices of the extents (rows, depth) and (depth, columns).
SOURCE = (
    HEAD
    + """
T = cuda.mma.tile({m}, {n}, {k}, a={a}, b={b}, c={c}, threads=128)

@cuda.jit
def kernel(left, right, c, out):
    a, b = left{view}, right{view}
    x = cuda.shared.array({x_shape}, {x_type}, swizzle={width})
    y = cuda.shared.array({y_shape}, {y_type}, swizzle={width})
    t = cuda.threadIdx.x
    for at in range(t, {rows} * {depth}, 128):
        r, l = at // {depth}, at % {depth}
        x[{x_index}] = a[r, l]
    for at in range(t, {depth} * {columns}, 128):
        l, r = at // {columns}, at % {columns}
        y[{y_index}] = b[l, r]
    cuda.syncthreads()
    acc = tuple(c[T.coord(value)[0], T.coord(value)[1]] for value in range({values}))
    T.store(out, 0, 0, T.mma(T.a({x}, {i}, {at_k}), T.b({y}, {at_k}, {j}), acc))
"""
)
TYPES = {  # the types of the tile, and of NumPy's arrays
    "float16": ("float16", "float16", "float32", np.float16, np.float32),
    "bfloat16": ("bfloat16", "bfloat16", "float32", np.uint16, np.float32),
    "tf32": ('"tf32"', '"tf32"', "float32", np.float32, np.float32),
    "int8": ("int8", "int8", "int32", np.int8, np.int32),
    "mixed": ("uint8", "int8", "int32", np.int8, np.int32),
    "e4m3": ('"e4m3"', '"e4m3"', "float32", np.uint8, np.float32),
}
ARRAYS = {"tf32": "float32", "e4m3": "uint8", "e5m2": "uint8"}
# Kind, tile, width of the swizzle, layouts of A and B, extents of the arrays, and position: i, at_k and j.
CASES = [
    ("float16", (64, 64, 64), 128, "rows", "panels", (64, 64, 128), (0, 0, 64)),
    ("float16", (64, 256, 16), 128, "rows", "panels", (64, 64, 256), (0, 16, 0)),
    ("float16", (64, 32, 32), 128, "rows", "rows", (128, 64, 64), (64, 32, 32)),
    ("float16", (64, 96, 32), 64, "rows", "columns", (64, 32, 96), (0, 0, 0)),
    ("float16", (64, 24, 64), 32, "panels", "panels", (72, 64, 32), (8, 0, 0)),
    ("float16", (64, 40, 32), 128, "columns", "rows", (64, 40, 64), (0, 8, 16)),
    ("float16", (64, 72, 32), 64, "rows", "panels", (64, 32, 96), (0, 0, 0)),
    ("float16", (128, 72, 32), 64, "rows", "columns", (128, 32, 80), (0, 0, 8)),
    ("bfloat16", (64, 64, 64), 128, "rows", "rows", (64, 64, 64), (0, 0, 0)),
    ("tf32", (64, 16, 16), 128, "rows", "columns", (64, 32, 16), (0, 16, 0)),
    ("int8", (64, 8, 32), 64, "rows", "columns", (64, 64, 24), (0, 32, 16)),
    ("mixed", (64, 32, 64), 64, "rows", "columns", (64, 64, 32), (0, 0, 0)),
]


def place(layout, matrix, width, size):
    """The shape of an array for a matrix of A, or of B by columns, the index of an element, and the operand."""
    (rows, depth), per_row = matrix, width // size
    if layout == "rows":
        return (rows, depth), "r, l", "{}"
    if layout == "columns":
        return (depth, rows), "l, r", "{}.T"
    return (depth // per_row, rows, per_row), f"l // {per_row}, r, l % {per_row}", "{}"


def values(kind, shape, seed):
    """Matrices of numbers for the kernel, and of the numbers that these are."""
    rng = np.random.default_rng(seed)
    if kind in ("int8", "mixed"):
        numbers = rng.integers(-100, 100, shape).astype(np.int8)
        return numbers, numbers.astype(np.int64)
    numbers = rng.integers(-8, 9, shape).astype(np.float32)
    if kind == "bfloat16":
        return (numbers.view(np.uint32) >> 16).astype(np.uint16), numbers
    return numbers.astype(TYPES[kind][3]), numbers


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[3]}-{case[4]}-{case[2]}".replace(" ", "-"))
def test_layouts(case):
    kind, (m, n, k), width, x_layout, y_layout, (rows, depth, columns), (i, at_k, j) = case
    a, b, c, elements, accumulators = TYPES[kind]
    size = np.dtype(elements).itemsize
    x_shape, x_index, x = place(x_layout, (rows, depth), width, size)
    if y_layout == "columns":
        y_shape, y_index, y = (columns, depth), "r, l", "y.T"
    elif y_layout == "rows":
        y_shape, y_index, y = (depth, columns), "l, r", "y"
    else:
        per_row = width // size
        y_shape, y_index, y = (columns // per_row, depth, per_row), f"r // {per_row}, l, r % {per_row}", "y"
    (left, of_left), (right, of_right) = values(kind, (rows, depth), 1), values(kind, (depth, columns), 2)
    view = {"bfloat16": ".view(weft.bfloat16)"}.get(kind, "")
    names = [name.strip('"') for name in (a, b)]
    x_type, y_type = (ARRAYS.get(name, name) for name in names)
    if kind == "mixed":
        left, of_left = left.view(np.uint8), left.view(np.uint8).astype(np.int64)
    source = SOURCE.format(
        m=m,
        n=n,
        k=k,
        a=a,
        b=b,
        c=c,
        view=view,
        width=width,
        values=m * n // 128,
        x_shape=x_shape,
        y_shape=y_shape,
        x_type=x_type,
        y_type=y_type,
        x_index=x_index,
        y_index=y_index,
        x=x.format("x"),
        y=y,
        rows=rows,
        depth=depth,
        columns=columns,
        i=i,
        at_k=at_k,
        j=j,
    )
    c = np.random.default_rng(3).integers(-9, 9, (m, n)).astype(accumulators)
    got = launch(module(source).kernel, 1, 128, left, right, c, np.zeros_like(c))[3]
    expected = of_left[i : i + m, at_k : at_k + k] @ of_right[at_k : at_k + k, j : j + n] + c
    np.testing.assert_array_equal(got, expected)


WARP = (
    HEAD
    + """
G = cuda.mma.tile(64, 32, {k}, a={a}, b={b}, c={c}, threads=128)
T = cuda.mma.tile(16, 32, {k}, a={a}, b={b}, c={c})

@cuda.jit
def kernel(left, right, c, group, warp):
    a, b = left{view}, right{view}
    x = cuda.shared.array((64, {k}), {x_type}, swizzle={width})
    y = cuda.shared.array((32, {k}), {y_type}, swizzle={width})
    for at in range(cuda.threadIdx.x, 64 * {k}, 128):
        x[at // {k}, at % {k}] = a[at // {k}, at % {k}]
        if at < 32 * {k}:
            y[at // {k}, at % {k}] = b[at // {k}, at % {k}]
    cuda.syncthreads()
    acc = tuple(c[G.coord(r)[0], G.coord(r)[1]] for r in range(16))
    products = G.mma(G.a(x, 0, 0), G.b(y.T, 0, 0), acc)
    for r in range(len(products)):
        i, j = G.coord(r)
        group[i, j] = products[r]
    row = cuda.threadIdx.x // 32 * 16
    T.store(warp, row, 0, T.mma(T.a(x, row, 0), T.b(y.T, 0, 0), acc))
"""
)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "tf32", "int8", "mixed"])
def test_bits_are_those_of_a_warp(kind):
    a, b, c, elements, accumulators = TYPES[kind]
    size = np.dtype(elements).itemsize
    k, view = 128 // size, ".view(weft.bfloat16)" if kind == "bfloat16" else ""
    x_type, y_type = (ARRAYS.get(name.strip('"'), name) for name in (a, b))
    source = WARP.format(a=a, b=b, c=c, k=k, width=128, view=view, x_type=x_type, y_type=y_type)
    # Random bits: all exponents, subnormal numbers, infinities and NaNs.
    rng = np.random.default_rng(5)
    left, right = (rng.integers(0, 256, (rows, k * size), np.uint8) for rows in (64, 32))
    left = left.view(np.uint8 if kind == "mixed" else elements)
    start = rng.integers(0, 256, (64, 32 * 4), np.uint8).view(accumulators)
    out = launch(module(source).kernel, 1, 128, left, right.view(elements), start, *np.zeros((2, 64, 32), accumulators))
    np.testing.assert_array_equal(out[3].view(np.uint32), out[4].view(np.uint32))


BYTES = (
    HEAD
    + """
T = cuda.mma.tile(64, 8, 32, a="{name}", b="{name}", c=float32, threads=128)

@cuda.jit
def kernel(a, b, c, out):
    s = cuda.blockIdx.x
    x = cuda.shared.array((64, 32), uint8, swizzle=32)
    y = cuda.shared.array((8, 32), uint8, swizzle=32)
    for at in range(cuda.threadIdx.x, 64 * 32, 128):
        x[at // 32, at % 32] = a[s, at // 32, at % 32]
        y[at // 32 % 8, at % 32] = b[s, at // 32 % 8, at % 32]
    cuda.syncthreads()
    acc = tuple(c[s, T.coord(r)[0], T.coord(r)[1]] for r in range(4))
    T.store(out[s], 0, 0, T.mma(T.a(x, 0, 0), T.b(y.T, 0, 0), acc))
"""
)


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_bits_of_floats_of_8_bits_are_those_of_the_gpu(name):
    key = f"wgmma_m64n8k32_f32_{name}_{name}"
    a, b, expected = (GPU[f"{key}.{matrix}"] for matrix in "ABD")
    c = GPU[f"{key}.C"].view(np.float32)
    got = launch(module(BYTES.format(name=name)).kernel, len(a), 128, a, b, c, np.zeros_like(c))[3]
    np.testing.assert_array_equal(got.view(np.uint32), expected)


LEFT = cuda.mma.tile(64, 24, 64, a=np.float16, b=np.float16, c=np.float32, threads=128)
SCORES = cuda.mma.tile(64, 64, 32, a=np.float16, b=np.float16, c=np.float32, threads=128)


@cuda.jit
def products_of_products(a, b, v, out):
    x = cuda.shared.array((64, 32), np.float16, swizzle=64)
    y = cuda.shared.array((64, 32), np.float16, swizzle=64)
    z = cuda.shared.array((64, 32), np.float16, swizzle=64)
    for at in range(cuda.threadIdx.x, 64 * 32, 128):
        x[at // 32, at % 32] = a[at // 32, at % 32]
        y[at // 32, at % 32] = b[at // 32, at % 32]
        z[at // 32, at % 32] = v[at // 32, at % 32]
    cuda.syncthreads()
    scores = SCORES.mma(SCORES.a(x, 0, 0), SCORES.b(y.T, 0, 0), SCORES.zeros())
    left = LEFT.a(tuple(score / 4 for score in scores))
    LEFT.store(out, 0, 0, LEFT.mma(left, LEFT.b(z, 0, 8), LEFT.zeros()))


def test_accumulators_are_the_left_matrix_of_another_product():
    rng = np.random.default_rng(6)
    a, b, v = (rng.integers(-3, 4, (64, 32)).astype(np.float16) for _ in range(3))
    got = launch(products_of_products, 1, 128, a, b, v, np.zeros((64, 24), np.float32))[3]
    of_a, of_b, of_v = (x.astype(np.float64) for x in (a, b, v))
    np.testing.assert_array_equal(got, (of_a @ of_b.T / 4) @ of_v[:, 8:])


M, N, K, STAGES = 128, 64, 64, 3
GEMM = cuda.mma.tile(64, N, K, a=np.float16, b=np.float16, c=np.float32, threads=128)
A_SIZE, B_SIZE = STAGES * M * K, STAGES * K * N
PART = cuda.uint32x4


@cuda.jit
def fetch(x, y, a, b, s, k):
    for at in range(cuda.threadIdx.x, M * K // 8, cuda.blockDim.x):
        cuda.copy_async(x, (s, at // 8, at % 8), a, (cuda.blockIdx.y * M + at // 8, k * 8 + at % 8))
    for at in range(cuda.threadIdx.x, K * N // 8, cuda.blockDim.x):
        cuda.copy_async(y, (s, at // 8, at % 8), b, (k * K + at // 8, cuda.blockIdx.x * N // 8 + at % 8))
    cuda.copy_commit()


@cuda.jit
def add_products(x, y, acc):
    return GEMM.mma(GEMM.a(x, cuda.threadIdx.x // 128 * 64, 0), GEMM.b(y, 0, 0), acc)


@cuda.jit(launch_bounds=256)
def matmul(a, b, c):
    memory = cuda.shared.array(0, np.float16)
    x = cuda.shared.swizzled(memory[:A_SIZE].reshape((STAGES, M, K)), 128)
    y = cuda.shared.swizzled(memory[A_SIZE : A_SIZE + B_SIZE].reshape((STAGES, K, N)), 128)
    xs, ys, a_from, b_from = x.view(PART), y.view(PART), a.view(PART), b.view(PART)
    cuda.set_registers(240)
    steps = a.shape[1] // K
    for step in range(STAGES - 1):
        fetch(xs, ys, a_from, b_from, step, step)
    acc = GEMM.zeros()
    for step in range(steps):
        cuda.copy_wait(STAGES - 2)
        cuda.syncthreads()
        later = step + STAGES - 1
        if later < steps:
            fetch(xs, ys, a_from, b_from, later % STAGES, later)
        else:
            cuda.copy_commit()
        acc = add_products(x[step % STAGES], y[step % STAGES], acc)
    GEMM.store(c, cuda.blockIdx.y * M + cuda.threadIdx.x // 128 * 64, cuda.blockIdx.x * N, acc)


def test_a_pipeline_of_two_warpgroups():
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((256, 320), (320, 128)))
    got = launch(matmul, (2, 2), 256, a, b, np.zeros((256, 128), np.float32), shared_bytes=2 * (A_SIZE + B_SIZE))[2]
    np.testing.assert_array_equal(got, a.astype(np.float32) @ b.astype(np.float32))


def test_blocks_of_several_dimensions():
    @cuda.jit
    def kernel(a, out):
        T = cuda.mma.tile(64, 8, 16, a=np.float16, b=np.float16, c=np.float32, threads=128)
        x = cuda.shared.array((64, 16), np.float16, swizzle=32)
        t = cuda.threadIdx.x + 16 * cuda.threadIdx.y
        for at in range(t, 64 * 16, 256):
            x[at // 16, at % 16] = a[at // 16, at % 16]
        cuda.syncthreads()
        T.store(out[t // 128], 0, 0, T.mma(T.a(x, 0, 0), T.b(x.T, 0, t // 128 * 8), T.zeros()))

    a = np.random.default_rng(8).integers(-4, 5, (64, 16)).astype(np.float16)
    got = launch(kernel, 1, (16, 16), a, np.zeros((2, 64, 8), np.float32))[1]
    numbers = a.astype(np.float32)
    np.testing.assert_array_equal(got, [numbers @ numbers[:8].T, numbers @ numbers[8:16].T])


def test_tiles_of_the_host():
    tile = cuda.mma.tile(64, 256, 32, a="e4m3", b="e5m2", c=weft.float32, threads=128)
    assert (tile.shape, tile.threads) == ((64, 256, 32), 128)
    assert repr(tile) == "cuda.mma.tile(64, 256, 32, a=e4m3, b=e5m2, c=float32, threads=128)"
    assert pickle.loads(pickle.dumps(tile)) == tile
    halves = (weft.float16, weft.float16, weft.float32)
    assert cuda.mma.tile(64, 64, 16, *halves, threads=128) != cuda.mma.tile(64, 64, 16, *halves)
    with pytest.raises(ValueError, match="32 threads, a warp, or 128, a warpgroup, not 64"):
        cuda.mma.tile(64, 8, 16, *halves, threads=64)
    with pytest.raises(ValueError, match="at most 256 columns"):
        cuda.mma.tile(64, 264, 16, *halves, threads=128)


def test_the_target_must_have_the_instruction():
    signature = "void(float16[:,::1], float16[:,::1], float32[:,::1])"
    with pytest.raises(weft.CompileError, match="needs `sm_90a`"):
        cuda.compile_ptx(matmul.py_func, signature, cc=(8, 0), launch_bounds=256)
