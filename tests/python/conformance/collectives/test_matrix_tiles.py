"""Matrix tiles of a warp: their bits against those of an H100 (`mma_cc90.npz`), and products of arrays of all layouts.

The file has inputs and outputs of `mma.sync` that tell wrong rules from the right ones. About 20 seconds.
"""

import pickle
from pathlib import Path

import numpy as np
import pytest
import weft
from generators import float8
from harness import launch, module
from weft import cuda

GPU = np.load(Path(__file__).with_name("mma_cc90.npz"))
# The shape of the instruction, and the types: of the kernel's operands and of NumPy's arrays.
KINDS = {
    "float16": ((16, 8, 16), "float16", "float16", "float32", np.float16, np.float32),
    "bfloat16": ((16, 8, 16), "bfloat16", "bfloat16", "float32", np.uint16, np.float32),
    "tf32": ((16, 8, 8), '"tf32"', '"tf32"', "float32", np.float32, np.float32),
    "float64": ((8, 8, 4), "float64", "float64", "float64", np.float64, np.float64),
    "int8": ((16, 8, 32), "int8", "int8", "int32", np.int8, np.int32),
    "uint8": ((16, 8, 32), "uint8", "uint8", "int32", np.uint8, np.int32),
    "e4m3": ((16, 8, 32), '"e4m3"', '"e4m3"', "float32", np.uint8, np.float32),
    "e5m2": ((16, 8, 32), '"e5m2"', '"e5m2"', "float32", np.uint8, np.float32),
    "e4m3_e5m2": ((16, 8, 32), '"e4m3"', '"e5m2"', "float32", np.uint8, np.float32),
}
NAMES = {"f16": "float16", "bf16": "bfloat16", "tf32": "tf32", "f64": "float64", "s8": "int8", "u8": "uint8"}
SOURCE = """
import weft
from weft import bfloat16, cuda, float16, float32, float64, int8, int32, uint8
T = cuda.mma.tile({m}, {n}, {k}, a={a}, b={b}, c={c})

@cuda.jit
def kernel(a, b, c, out):
    s = cuda.blockIdx.x
    x, y = a[s]{view}, b[s]{view}
    acc = T.zeros()
    acc = ({loads},)
    T.store(out[s], 0, 0, T.mma(T.a(x, 0, 0), T.b(y.T, 0, 0), acc))
"""


def fragments(name):
    """A kernel that multiplies matrices of a tile: A by rows, B by columns."""
    return KINDS[name]


def compiled(name, shape):
    _, a, b, c, _, _ = KINDS[name]
    m, n, k = shape
    view = ".view(weft.bfloat16)" if name == "bfloat16" else ""
    count = m * n // 32
    loads = ", ".join(f"c[s][T.coord({r})[0], T.coord({r})[1]]" for r in range(count))
    return module(SOURCE.format(m=m, n=n, k=k, a=a, b=b, c=c, view=view, loads=loads)).kernel


@pytest.mark.parametrize("key", sorted({name.rsplit(".", 1)[0] for name in GPU.files}))
def test_bits_are_those_of_the_gpu(key):
    shape, _, kind, other = key.split("_")
    name = NAMES.get(kind, kind) if kind == other else f"{kind}_{other}"
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    elements, accumulators = KINDS[name][4:]
    a, b = GPU[f"{key}.A"].view(elements), GPU[f"{key}.B"].view(elements)
    expected = GPU[f"{key}.D"]
    c = GPU[f"{key}.C"].view(accumulators)
    kernel = compiled(name, (int(m), int(n), int(k)))
    got = launch(kernel, len(a), 32, a, b, c, np.zeros_like(c))[3]
    np.testing.assert_array_equal(got.view(expected.dtype), expected)


def whole(name, shape, seed, place):
    """Small integers, whose products are exact in every type, for the left (0) or the right matrix (1)."""
    values = np.random.default_rng(seed).integers(0 if name == "uint8" else -4, 5, shape)
    if name == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), values
    if name.startswith("e"):
        return float8.rounded(name.split("_")[place % len(name.split("_"))], values.astype(np.float64)), values
    return values.astype(KINDS[name][4]), values


PRODUCT = """
import weft
from weft import bfloat16, cuda, float16, float32, float64, int8, int32, uint8

@cuda.jit
def kernel(a, b, out, i, k, j):
    T = cuda.mma.tile({m}, {n}, {k}, {a}, {b}, {c})
    x, y = a{view}, b{view}
    acc = T.zeros()
    for step in range(2):
        acc = T.mma(T.a(x, i, k + {k} * step), T.b(y, k + {k} * step, j), acc)
    T.store(out, i, j, acc)
"""


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("order", ["rows", "columns", "strided"])
@pytest.mark.parametrize("factors", [(1, 1, 1), (2, 4, 2)])
def test_products_of_arrays_of_any_strides(name, order, factors):
    (m, n, k), a, b, c, _, accumulators = KINDS[name]
    m, n, k = m * factors[0], n * factors[1], k * factors[2]
    view = ".view(weft.bfloat16)" if name == "bfloat16" else ""
    kernel = module(PRODUCT.format(m=m, n=n, k=k, a=a, b=b, c=c, view=view)).kernel
    (x, of_x), (y, of_y) = whole(name, (m + 3, 2 * k + 5), 1, 0), whole(name, (2 * k + 5, n + 7), 2, 1)
    out = np.zeros((m + 3, n + 7), accumulators)
    if order == "columns":
        x, y, out = np.asfortranarray(x), np.asfortranarray(y), np.asfortranarray(out)
    elif order == "strided":
        x, y = np.repeat(x, 2, axis=0)[::2], np.repeat(y, 2, axis=0)[::2]
    if view and order != "rows":
        pytest.skip("a view of another type needs contiguous rows")
    got = launch(kernel, 1, 32, x, y, out, 3, 5, 7)[2]
    expected = np.zeros((m + 3, n + 7), accumulators)
    expected[3:, 7:] = of_x[3:, 5:] @ of_y[5:, 7:]
    np.testing.assert_array_equal(got, expected)


@cuda.jit
def of_shared(a, b, out):
    T = cuda.mma.tile(32, 32, 16, weft.float16, weft.float16, weft.float32)
    x = cuda.shared.array((64, 40), weft.float16)
    y = cuda.shared.array((32, 72), weft.float16)
    i, warp = cuda.threadIdx.x, cuda.threadIdx.x // 32
    for at in range(i, 64 * 32, cuda.blockDim.x):
        x[at // 32, at % 32] = a[at // 32, at % 32]
        y[at // 64, at % 64] = b[at // 64, at % 64]
    cuda.syncthreads()
    row, column = warp // 2 * 32, warp % 2 * 32
    acc = T.zeros()
    for k in range(0, 32, 16):
        acc = T.mma(T.a(x, row, k), T.b(y, k, column), acc)
    cuda.syncthreads()
    # The same product, from the transposed matrix.
    for at in range(i, 64 * 32, cuda.blockDim.x):
        x[at % 64, at // 64] = b[at // 64, at % 64]
    cuda.syncthreads()
    for k in range(0, 32, 16):
        acc = T.mma(T.a(a, row, k), T.b(x.T, k, column), acc)
    for r in range(len(acc)):
        y, x = T.coord(r)
        out[row + y, column + x] = acc[r] + 1


def test_products_of_shared_arrays_by_several_warps():
    rng = np.random.default_rng(3)
    a = rng.integers(-4, 5, (64, 32)).astype(np.float16)
    b = rng.integers(-4, 5, (32, 64)).astype(np.float16)
    got = launch(of_shared, 1, 128, a, b, np.zeros((64, 64), np.float32))[2]
    np.testing.assert_array_equal(got, 2 * (a.astype(np.float32) @ b.astype(np.float32)) + 1)


CHAINED = """
import weft
from weft import bfloat16, cuda, float16, float32
FIRST = cuda.mma.tile(32, 48, 16, {name}, {name}, float32)
SECOND = cuda.mma.tile(32, 8, 48, {name}, {name}, float32)

@cuda.jit
def kernel(a, b, c, out):
    x, y, z = a{view}, b{view}, c{view}
    products = FIRST.mma(FIRST.a(x, 0, 0), FIRST.b(y, 0, 0), FIRST.zeros())
    left = SECOND.a(tuple(value * 0.5 + 0.001 for value in products))
    SECOND.store(out, 0, 0, SECOND.mma(left, SECOND.b(z, 0, 0), SECOND.zeros()))
"""


STORED = """
from weft import cuda, float16, float32
T = cuda.mma.tile(16, 16, 16, a=float16, b=float16, c=float32)

@cuda.jit
def kernel(a, b, out, j):
    s = cuda.shared.array((32, {columns}), {dtype}, swizzle={width})
    t = cuda.threadIdx.x
    for at in range(t, 32 * {columns}, 32):
        s[at // {columns}, at % {columns}] = 0
    cuda.syncwarp()
    T.store(s, 8, j, T.mma(T.a(a, 0, 0), T.b(b, 0, 0), T.zeros()))
    cuda.syncwarp()
    for at in range(t, 32 * {columns}, 32):
        out[at // {columns}, at % {columns}] = s[at // {columns}, at % {columns}]
"""


@pytest.mark.parametrize("j", [0, 1, 10, 16])
@pytest.mark.parametrize(
    ("dtype", "columns", "width"), [("float16", 64, 128), ("float16", 32, 64), ("float32", 32, 128)]
)
def test_accumulators_are_stored_to_swizzled_arrays(dtype, columns, width, j):
    """From a column of any parity: two adjacent elements are stored at once only if they are aligned together."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(-4, 5, (2, 16, 16)).astype(np.float16)
    out = np.zeros((32, columns), dtype)
    kernel = module(STORED.format(dtype=dtype, columns=columns, width=width)).kernel
    kernel[1, 32](a, b, out, j)
    expected = np.zeros_like(out)
    expected[8:24, j : j + 16] = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_accumulators_are_the_left_matrix_of_another_product(name):
    view = ".view(weft.bfloat16)" if name == "bfloat16" else ""
    kernel = module(CHAINED.format(name=name, view=view)).kernel
    (a, of_a), (b, of_b), (c, of_c) = (
        whole(name, shape, seed, 0) for seed, shape in enumerate([(32, 16), (16, 48), (48, 8)])
    )
    got = launch(kernel, 1, 32, a, b, c, np.zeros((32, 8), np.float32))[3]
    left = (of_a @ of_b).astype(np.float32) * np.float32(0.5) + np.float32(0.001)
    if name == "float16":
        left = left.astype(np.float16)
    else:
        bits = left.view(np.uint32)
        left = (bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    np.testing.assert_allclose(got, left.astype(np.float64) @ of_c, rtol=1e-5, atol=1e-4)


def test_tiles_of_the_host():
    tile = cuda.mma.tile(16, 8, 16, a=np.float16, b="float16", c=weft.float32)
    assert tile.shape == (16, 8, 16)
    assert repr(tile) == "cuda.mma.tile(16, 8, 16, a=float16, b=float16, c=float32)"
    assert tile == cuda.mma.tile(16, 8, 16, weft.float16, weft.float16, np.float32)
    assert pickle.loads(pickle.dumps(tile)) == tile
    with pytest.raises(ValueError, match="it is a multiple of 16x8x16"):
        cuda.mma.tile(16, 8, 8, weft.bfloat16, weft.bfloat16, weft.float32)
    with pytest.raises(ValueError, match=r"there are multiples of \(16, 8, 16, a=float16"):
        cuda.mma.tile(16, 8, 8, weft.float32, weft.float32, weft.float32)
    with pytest.raises(RuntimeError, match="can only be used in a kernel"):
        tile.zeros()


def test_other_tuples_are_no_left_matrix():
    def few(out):
        T = cuda.mma.tile(16, 8, 16, np.float16, np.float16, np.float32)
        T.store(out, 0, 0, T.mma(T.a(T.zeros()), T.b(out, 0, 0), T.zeros()))

    def integers(out):
        T = cuda.mma.tile(16, 8, 32, np.int8, np.int8, np.int32)
        T.store(out, 0, 0, T.mma(T.a(T.zeros()), T.b(out, 0, 0), T.zeros()))

    for function, message in [
        (few, "a tuple of 8 numbers, the accumulators of a tile of 16 rows and 16 columns, not Tuple"),
        (integers, "a lane's accumulators are no elements of a left matrix of int8"),
    ]:
        with pytest.raises(weft.CompileError, match=message):
            cuda.compile_ptx(function, "void(float16[:,::1])", cc=(9, 0))
