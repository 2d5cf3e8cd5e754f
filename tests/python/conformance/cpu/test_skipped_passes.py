"""Kernels compute the same without any one of the CPU planner's optional passes (``WEFT_SKIP_PASSES``)."""

import numpy as np
import pytest
from weft import _weft, cuda

OPTIONAL = [name for name, _, optional, _ in _weft.plan_passes() if optional]


def row_sums(a, out):
    i = cuda.grid(1)
    if i < a.shape[0]:
        total = np.int32(0)
        for k in range(a.shape[1]):
            total += a[i, k]
            if total > 300:
                break
        out[i] = total


def scan(x, out):
    tile = cuda.shared.array(64, np.int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[t] = x[i] if i < x.shape[0] and x[i] > 0 else 0
    cuda.syncthreads()
    offset = 1
    while offset < 64:
        value = tile[t]
        if t >= offset:
            value += tile[t - offset]
        cuda.syncthreads()
        tile[t] = value
        cuda.syncthreads()
        offset *= 2
    if i < out.shape[0]:
        out[i] = tile[t] + tile[t ^ 1] * (t % 2 == 0)


def blur(a, out):
    j, i = cuda.grid(2)
    h, w = a.shape
    if i >= h or j >= w:
        return
    total = 0
    for d in range(-2, 3):
        total += a[i, min(max(j + d, 0), w - 1)]
    out[i, j] = total


@pytest.fixture(params=OPTIONAL)
def skipped(request):
    _weft.skip_passes([request.param])
    yield request.param
    _weft.skip_passes([])


def test_results_are_the_same(skipped):
    rng = np.random.default_rng(5)
    a = rng.integers(-9, 30, (37, 50), dtype=np.int32)
    sums = np.full(37, -1, np.int32)
    cuda.jit(row_sums)[2, 32](a, sums)
    expected = []
    for row in a:
        total = 0
        for value in row:
            total += value
            if total > 300:
                break
        expected.append(total)
    assert sums.tolist() == expected

    x = rng.integers(-9, 30, 150, dtype=np.int32)
    out = np.zeros(150, np.int32)
    cuda.jit(scan)[3, 64](x, out)
    padded = np.zeros(192, np.int32)
    padded[:150] = np.maximum(x, 0)
    inclusive = padded.reshape(3, 64).cumsum(axis=1)
    partner = inclusive.reshape(3, 32, 2)[:, :, ::-1].reshape(3, 64)
    assert out.tolist() == (inclusive + partner * (np.arange(64) % 2 == 0)).ravel()[:150].tolist()

    blurred = np.zeros_like(a)
    cuda.jit(blur)[(4, 10), (16, 4)](a, blurred)
    columns = [np.clip(np.arange(50) + d, 0, 49) for d in range(-2, 3)]
    assert (blurred == sum(a[:, column] for column in columns)).all()


def test_required_and_unknown_passes_are_errors(device):
    if device != "cpu":
        pytest.skip("the passes are those of the CPU's planner")
    kernel = cuda.jit(blur)
    a = np.zeros((4, 4), np.int32)
    try:
        for name, reason in [("form", "is required; the optional passes are"), ("guard", "; the passes are ")]:
            _weft.skip_passes([name])
            with pytest.raises(ValueError, match=f'WEFT_SKIP_PASSES is "{name}": .*`{name}`.*{reason}'):
                kernel[1, 32](a, a)
    finally:
        _weft.skip_passes([])
