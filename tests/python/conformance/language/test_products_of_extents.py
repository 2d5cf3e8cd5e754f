"""Products of an array's extents: the number of its elements, or of those of a part. They can exceed 32 bits in arrays
that are empty, and in arrays whose elements share memory.
"""

import itertools
import os

import numpy as np
import pytest
from harness import assert_exact, launch, run
from weft import cuda

EXTENTS = (0, 1, 2, 5)
HUGE = 2**20


@cuda.jit
def decomposed(a, out):
    h, w = a.shape
    n = h * w
    m = a.shape[1] * a.shape[0]
    i = cuda.grid(1)
    for j in range(i, n, 8):
        out[j] = a[j // w, j % w] * 3 + (j + n) // m + n // (j + 1) + (j - 1) % n
    if i == 0:
        out[n] = n * n - a.size + m // 3


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", list(itertools.product(EXTENTS, EXTENTS)))
def test_two_extents(shape, order):
    n = shape[0] * shape[1]
    a = np.asarray(np.arange(n, dtype=np.int64).reshape(shape), order=order)
    run(decomposed, 1, 4, a, np.zeros(n + 1, np.int64))


@cuda.jit
def three(a, out):
    d, h, w = a.shape
    area = h * w
    n = d * h * w
    other = a.shape[2] * (a.shape[0] * a.shape[1])
    for j in range(cuda.grid(1), n, 4):
        z = j // area
        y = (j - z * area) // w
        out[j] = a[z, y, j % w] * 5 + (j % area) + j // (d * w) + (other + j) % n
    if cuda.grid(1) == 1:
        out[n] = n + 3 * area + 5 * a.size + 7 * (d * w)


@pytest.mark.parametrize("shape", [*itertools.product((1, 3), (1, 2), (1, 4)), (0, 2, 3), (2, 0, 3), (3, 2, 0)])
def test_three_extents(shape):
    a = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    run(three, 1, 4, a, np.zeros(a.size + 1, np.int64))


@cuda.jit
def products_of(a, i, out):
    out[0] = a.shape[0] * a.shape[1]
    out[1] = a.shape[1] * a.shape[2]
    out[2] = a.shape[2] * a.shape[0]
    out[3] = a.shape[0] * a.shape[1] * a.shape[2]
    out[4] = a.size
    out[5] = i // (a.shape[1] * a.shape[2])
    out[6] = i % (a.shape[1] * a.shape[2])
    out[7] = (a.shape[1] * a.shape[2] + i) // 3
    out[8] = (a.shape[0] * a.shape[2] + i) * 2
    n = 0
    for _ in range(a.shape[0] * a.shape[1], a.shape[1] * a.shape[2] + 5, 2**39):
        n += 1
    out[9] = n


def divided(a, b):
    return (0, 0) if b == 0 else divmod(a, b)


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize(
    "shape", [(0, HUGE, HUGE), (HUGE, 0, HUGE), (HUGE, HUGE, 0), (0, 2**15, 2**16), (0, 46341, 46341), (2, 3, 4)]
)
def test_empty_arrays_with_huge_extents(shape, on_device):
    a = np.zeros(shape, np.float32)
    for i in (5, 2**41 + 3, -(2**41)):
        d, h, w = shape
        expected = [d * h, h * w, w * d, d * h * w, d * h * w, *divided(i, h * w)]
        expected += [(h * w + i) // 3, (d * w + i) * 2, len(range(d * h, h * w + 5, 2**39))]
        given = cuda.to_device(a) if on_device else a
        out = np.zeros(10, np.int64)
        products_of[1, 1](given, i, out)
        assert_exact(out, np.array(expected, np.int64))


@cuda.jit
def parts(a, i, out):
    h, w = a.shape
    out[0] = i // (h * w)
    out[1] = i % (h * w)
    out[2] = h * w
    out[3] = a.size // 7
    out[4] = a[h - 1, w - 1] + a[-1, i % w]
    for j in range(h * w - 3, h * w):
        out[5] += j // w + a[j // w, j % w]


@pytest.mark.parametrize("shape", [(70000, 70000), (1, 3), (2**31 - 1, 2), (2, 2**31 + 1), (2**16, 2**15)])
@pytest.mark.parametrize("kind", ["element", "row", "column"])
def test_broadcast_arrays(kind, shape):
    h, w = shape
    if kind != "element" and max(shape) > 2**20:
        shape = h, w = min(h, 2**16), min(w, 2**17)
    if h * w > 2**24 and os.environ.get("WEFT_DEVICE") == "cuda":
        pytest.skip("the device would get a dense copy")
    source = {"element": (1, 1), "row": (1, w), "column": (h, 1)}[kind]
    a = np.broadcast_to((np.arange(np.prod(source)) % 7 + 1).reshape(source), shape)
    for i in (0, h * w - 1, h * w, 2**40):
        out = np.zeros(6, np.int64)
        parts[1, 1](cuda.to_device(a) if a.size < 2**12 else a, i, out)
        n = h * w
        expected = [i // n, i % n, n, n // 7, a[-1, -1] + a[-1, i % w]]
        expected.append(sum(j // w + a[j // w, j % w] for j in range(n - 3, n)))
        assert_exact(out, np.array(expected, np.int64))


@cuda.jit
def of_two_arrays(a, b, out):
    out[0] = a.shape[0] * b.shape[1]
    out[1] = a.shape[0] * a.shape[0]
    out[2] = b.shape[1] * a.shape[1] * a.shape[0]
    out[3] = a.shape[0] * a.shape[1] * 2
    out[4] = (a.shape[0] + 1) * a.shape[1]
    out[5] = a.shape[0] * (a.shape[1] * a.shape[1])


def test_products_that_are_no_number_of_elements():
    a, b = np.zeros((2**17, 3), np.int8), np.zeros((1, 2**18), np.int8)
    out = launch(of_two_arrays, 1, 1, a, b, np.zeros(6, np.int64))[2]
    assert out.tolist() == [2**35, 2**34, 3 * 2**35, 6 * 2**17, 3 * (2**17 + 1), 9 * 2**17]
    a, b = np.zeros((3, 2**17), np.int8), np.zeros((2**18, 2), np.int8)
    out = launch(of_two_arrays, 1, 1, a, b, np.zeros(6, np.int64))[2]
    assert out.tolist() == [6, 9, 6 * 2**17, 6 * 2**17, 2**19, 3 * 2**34]
