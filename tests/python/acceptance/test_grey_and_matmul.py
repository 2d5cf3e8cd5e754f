"""Rows A1.1 to A1.7 of the acceptance list: a lecture that turns Python loops into kernels.

Grey images from planar RGB, and matrix multiplication: naive on flat and 2-D arrays, tiled in dynamic and in static
shared memory. Sizes on the CPU are those of the rows, scaled down.
"""

import math

import numpy as np
import pytest
from weft import cuda

TW = 16


def size(device, full, small):
    return full if device == "cuda" else small


def image(height, width):
    return np.random.default_rng(11).integers(0, 256, (3, height, width), dtype=np.uint8)


def grey_of(chw):
    """The same in NumPy: float64 sums that a store truncates."""
    r, g, b = chw.astype(np.float64)
    return (0.2989 * r + 0.587 * g + 0.114 * b).astype(np.uint8)


@cuda.jit
def rgb2grey(x, out, n):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        out[i] = 0.2989 * x[i] + 0.587 * x[i + n] + 0.114 * x[i + 2 * n]


@cuda.jit
def rgb2grey_grid1(x, out, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = 0.2989 * x[i] + 0.587 * x[i + n] + 0.114 * x[i + 2 * n]


@pytest.mark.parametrize("kernel", [rgb2grey, rgb2grey_grid1], ids=lambda kernel: kernel.py_func.__name__)
@pytest.mark.parametrize("shape", [(150, 225), "photo"])
def test_a1_1_grey_in_one_dimension(device, kernel, shape):
    height, width = size(device, (1066, 1600), (267, 400)) if shape == "photo" else shape
    chw = image(height, width)
    n = height * width
    out = np.zeros(n, np.uint8)
    threads = 256
    kernel[math.ceil(n / threads), threads](chw.ravel(), out, n)
    assert np.abs(out.reshape(height, width).astype(int) - grey_of(chw)).max() <= 1  # a fused multiply-add may truncate
    assert (out.reshape(height, width) != grey_of(chw)).mean() < 1e-3


@cuda.jit
def rgb2grey_2d(x, out, w, h):
    c = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    r = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if r < h and c < w:
        i = r * w + c
        n = h * w
        out[i] = 0.2989 * x[i] + 0.587 * x[i + n] + 0.114 * x[i + 2 * n]


def test_a1_2_grey_in_two_dimensions(device):
    height, width = size(device, (1066, 1600), (150, 225))
    chw = image(height, width)
    one, two = np.zeros(height * width, np.uint8), np.zeros(height * width, np.uint8)
    rgb2grey[math.ceil(one.size / 256), 256](chw.ravel(), one, one.size)
    blocks = (math.ceil(width / 16), math.ceil(height / 16))
    rgb2grey_2d[blocks, (16, 16)](chw.ravel(), two, width, height)
    np.testing.assert_array_equal(one, two)


@cuda.jit
def matmul_flat(m, n, out, h, w, k):
    r = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    c = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if r >= h or c >= w:
        return
    o = 0.0
    for i in range(k):
        o += m[r * k + i] * n[i * w + c]
    out[r * w + c] = o


def blocks_for(h, w):
    return math.ceil(w / TW), math.ceil(h / TW)


@pytest.mark.parametrize("rows", [5, "all"])
def test_a1_3_matmul_on_flat_arrays(device, rows):
    rng = np.random.default_rng(12)
    h = size(device, 50_000, 1000) if rows == "all" else rows
    m = rng.random((h, 784), np.float32)
    n = rng.standard_normal((784, 10)).astype(np.float32)
    out = np.zeros((h, 10), np.float32)
    flat = out.reshape(-1)
    matmul_flat[blocks_for(h, 10), (TW, TW)](m.ravel(), n.ravel(), flat, h, 10, 784)
    np.testing.assert_allclose(out, m.astype("f8") @ n.astype("f8"), atol=1e-5, rtol=1e-5)


def operands(device):
    side = size(device, 5120, 160)
    rng = np.random.default_rng(13)
    return rng.random((side, 256), np.float32), rng.random((256, side), np.float32), np.zeros((side, side), np.float32)


def check_product(m, n, out):
    rng = np.random.default_rng(14)
    rows = rng.choice(out.shape[0], min(64, out.shape[0]), replace=False)
    np.testing.assert_allclose(out[rows], m[rows].astype("f8") @ n.astype("f8"), rtol=1e-4, atol=1e-4)
    cols = rng.choice(out.shape[1], min(64, out.shape[1]), replace=False)
    np.testing.assert_allclose(out[:, cols], m.astype("f8") @ n[:, cols].astype("f8"), rtol=1e-4, atol=1e-4)


@cuda.jit
def matmul(m, n, out):
    r = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    c = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    h, k = m.shape
    w = n.shape[1]
    if r >= h or c >= w:
        return
    o = np.float32(0.0)
    for i in range(k):
        o += m[r, i] * n[i, c]
    out[r, c] = o


def test_a1_4_matmul(device):
    m, n, out = operands(device)
    matmul[blocks_for(*out.shape), (TW, TW)](m, n, out)
    check_product(m, n, out)


@cuda.jit
def matmul_dynamic(m, n, out, tw):
    bi, bd, ti = cuda.blockIdx, cuda.blockDim, cuda.threadIdx
    tc, tr = ti.x, ti.y
    r, c = bi.y * bd.y + tr, bi.x * bd.x + tc
    h, k = m.shape
    k2, w = n.shape
    shared = cuda.shared.array(0, dtype=np.float32)
    ms, ns = shared[: tw * tw], shared[tw * tw : 2 * tw * tw]
    p = np.float32(0.0)
    for ph in range(int(math.ceil(k / tw))):  # noqa: RUF046
        idx = ph * tw
        ms[tr * tw + tc] = m[r, tc + idx] if r < h and idx + tc < k else 0.0
        ns[tr * tw + tc] = n[tr + idx, c] if c < w and idx + tr < k2 else 0.0
        cuda.syncthreads()
        for i in range(tw):
            p += ms[tr * tw + i] * ns[tw * i + tc]
        cuda.syncthreads()
    if r < h and c < w:
        out[r, c] = p


def test_a1_5_matmul_in_dynamic_shared_memory(device):
    m, n, out = operands(device)
    matmul_dynamic[blocks_for(*out.shape), (TW, TW), 0, 2 * TW * TW * 4](m, n, out, TW)
    check_product(m, n, out)


def test_a1_5_with_ragged_edges():
    rng = np.random.default_rng(15)
    m, n = rng.random((37, 45), np.float32), rng.random((45, 29), np.float32)
    out = np.zeros((37, 29), np.float32)
    matmul_dynamic[blocks_for(37, 29), (TW, TW), 0, 2 * TW * TW * 4](m, n, out, TW)
    np.testing.assert_allclose(out, m @ n, rtol=1e-5)


@cuda.jit
def matmul_static(m, n, out):
    tc, tr = cuda.threadIdx.x, cuda.threadIdx.y
    c, r = cuda.grid(2)
    h, k = m.shape
    w = n.shape[1]
    ms = cuda.shared.array((TW, TW), dtype=np.float32)
    ns = cuda.shared.array((TW, TW), dtype=np.float32)
    p = np.float32(0.0)
    for ph in range((k + TW - 1) // TW):
        ms[tr, tc] = m[r, tc + ph * TW] if r < h and ph * TW + tc < k else 0.0
        ns[tr, tc] = n[tr + ph * TW, c] if c < w and ph * TW + tr < k else 0.0
        cuda.syncthreads()
        for i in range(TW):
            p += ms[tr, i] * ns[i, tc]
        cuda.syncthreads()
    if r < h and c < w:
        out[r, c] = p


def test_a1_6_matmul_in_static_shared_memory(device):
    m, n, out = operands(device)
    matmul_static[blocks_for(*out.shape), (TW, TW)](m, n, out)
    check_product(m, n, out)


def test_a1_6_with_ragged_edges():
    rng = np.random.default_rng(16)
    m, n = rng.random((50, 19), np.float32), rng.random((19, 33), np.float32)
    out = np.zeros((50, 33), np.float32)
    matmul_static[blocks_for(50, 33), (TW, TW)](m, n, out)
    np.testing.assert_allclose(out, m @ n, rtol=1e-5)


@cuda.jit
def matmul_range_of_a_float(m, n, out, tw):
    # Built-ins bound to locals as whole objects, and a loop over math.ceil's float.
    cbi, cbd, tid = cuda.blockIdx, cuda.blockDim, cuda.threadIdx
    tc, tr = tid.x, tid.y
    r, c = cbi.y * cbd.y + tr, cbi.x * cbd.x + tc
    h, k = m.shape
    k2, w = n.shape
    shared = cuda.shared.array(0, dtype=np.float32)
    ms, ns = shared[: tw * tw], shared[tw * tw : 2 * tw * tw]
    p = np.float32(0.0)
    for ph in range(math.ceil(k / tw)):
        idx = ph * tw
        ms[tr * tw + tc] = m[r, tc + idx] if r < h and idx + tc < k else 0.0
        ns[tr * tw + tc] = n[tr + idx, c] if c < w and idx + tr < k2 else 0.0
        cuda.syncthreads()
        for i in range(tw):
            p += ms[tr * tw + i] * ns[tw * i + tc]
        cuda.syncthreads()
    if r < h and c < w:
        out[r, c] = p


@pytest.mark.parametrize("k", [256, 41])
def test_a1_7_the_lectures_own_style(device, k):
    m, n, out = operands(device)
    m, n = m[:, :k].copy(), n[:k].copy()
    matmul_range_of_a_float[blocks_for(*out.shape), (TW, TW), 0, 2 * TW * TW * 4](m, n, out, TW)
    check_product(m, n, out)


def test_a1_7_with_torch_tensors(device):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if device != "cuda":
        pytest.skip("torch tensors with a CUDA array interface need a GPU")
    m = torch.rand(512, 256, device="cuda")
    n = torch.rand(256, 512, device="cuda")
    out = torch.zeros(512, 512, device="cuda")
    arrays = [cuda.as_cuda_array(tensor) for tensor in (m, n, out)]
    matmul_range_of_a_float[blocks_for(512, 512), (TW, TW), 0, 2 * TW * TW * 4](*arrays, TW)
    cuda.synchronize()
    assert torch.isclose(out, m @ n, atol=1e-3).all()
