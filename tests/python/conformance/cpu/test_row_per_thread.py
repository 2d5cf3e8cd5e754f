"""Each thread traverses its own row: sums keep their order, and no other elements are read."""

import math

import numpy as np
import pytest
from host_memory import AtTheEnd, has_driver
from weft import cuda

THREADS = [1, 5, 16, 17, 40]
COLUMNS = [0, 1, 3, 4, 5, 16, 17, 31, 36, 50]
BLOCKS = [1, 37, 128]


def floats(seed, *shape, dtype=np.float32):
    return (np.random.default_rng(seed).random(shape) - 0.5).astype(dtype)


def powers(seed, *shape, dtype=np.float32):
    """Factors whose products are exact, so that a fused multiply-add has the same result."""
    return np.ldexp(1.0, np.random.default_rng(seed).integers(-2, 3, shape)).astype(dtype)


def in_order(terms):
    """Sums of rows, starting with the first element."""
    zeros = np.zeros((terms.shape[0], 1), terms.dtype)
    return np.add.accumulate(np.hstack([zeros, terms]), axis=1)[:, -1]


def run(kernel, n, block, *args):
    kernel[-(-n // block) + 1, block](*args)


@cuda.jit
def products(a, x, out):
    i = cuda.grid(1)
    if i < a.shape[0]:
        total = out[i]
        for k in range(a.shape[1]):
            total += a[i, k] * x[k]
        out[i] = total


@pytest.mark.parametrize("n", THREADS)
@pytest.mark.parametrize("m", COLUMNS)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_added_up_in_order(n, m, block, dtype):
    a, x, out = floats(1, n, m, dtype=dtype), powers(2, m, dtype=dtype), np.zeros(n, dtype)
    run(products, n, block, a, x, out)
    np.testing.assert_array_equal(out, in_order(a * x))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.float16, np.bool_])
@pytest.mark.parametrize("m", COLUMNS)
def test_elements_of_every_size(dtype, m):
    n = 45
    a = np.random.default_rng(3).integers(0, 100, (n, m)).astype(dtype)
    x, out = powers(4, m), np.zeros(n, np.float32)
    run(products, n, 64, a, x, out)
    np.testing.assert_array_equal(out, in_order(a.astype(np.float32) * x))


@pytest.mark.parametrize("order", ["F", "reversed", "strided", "transposed"])
def test_rows_that_do_not_lie_next_to_each_other(order):
    n, m = 40, 37
    a = floats(5, n, m)
    views = {
        "F": np.asfortranarray(a),
        "reversed": np.ascontiguousarray(a[:, ::-1])[:, ::-1],
        "strided": np.repeat(a, 2, axis=1)[:, ::2],
        "transposed": np.ascontiguousarray(a.T).T,
    }
    x, out = powers(6, m), np.zeros(n, np.float32)
    run(products, n, 16, views[order], x, out)
    np.testing.assert_array_equal(out, in_order(a * x))


@cuda.jit
def without_own(a, x, out):
    i = cuda.grid(1)
    if i < a.shape[0]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            if k == i:
                continue
            total += a[i, k] * x[k]
        out[i] = total


@pytest.mark.parametrize("n", [1, 15, 16, 33, 100])
@pytest.mark.parametrize("block", BLOCKS)
def test_all_but_the_own_element(n, block):
    a, x, out = floats(7, n, n), powers(8, n), np.zeros(n, np.float32)
    run(without_own, n, block, a, x, out)
    terms = a * x
    np.fill_diagonal(terms, 0)
    np.testing.assert_array_equal(out, in_order(terms))


def where(condition, otherwise="pass"):
    scope = {"cuda": cuda, "np": np}
    source = f"""
def kernel(a, b, x, flags, c, out):
    i = cuda.grid(1)
    if i < a.shape[0]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            if {condition}:
                total += a[i, k] * x[k]
            else:
                {otherwise}
        out[i] = total
"""
    exec(source, scope)
    return cuda.jit(scope["kernel"], source=source)


CONDITIONS = [
    ("k != c", "pass"),
    ("k == c", "pass"),
    ("not (k == i)", "pass"),
    ("i != k and k != i + 3", "pass"),
    ("k > c", "pass"),
    ("k >= c and k != i", "pass"),
    ("c <= k", "total += a[i, k]"),
    ("k < c or k == i", "pass"),
    ("not (k < c or k == i)", "total -= b[i, k]"),
    ("c > 3", "total -= b[i, k]"),
    ("i % 3 == 1 and k < c", "pass"),
    ("flags[i]", "pass"),
    ("flags[k]", "total += b[i, k]"),
    ("b[i, k] > 0", "total += b[i, k]"),
    ("k % 2 == 0", "pass"),
    ("k * k < c * c", "total += b[i, k]"),
]


@pytest.mark.parametrize(("condition", "otherwise"), CONDITIONS)
@pytest.mark.parametrize("c", [-1, 0, 7, 20, 100])
@pytest.mark.parametrize("m", [1, 16, 41])
def test_loads_behind_a_condition(condition, otherwise, c, m):
    n = 40
    kernel = where(condition, otherwise)
    a, b, x = floats(9, n, m), floats(10, n, m), powers(11, m)
    flags = np.random.default_rng(12).integers(0, 2, max(n, m))
    out = np.zeros(n, np.float32)
    run(kernel, n, 64, a, b, x, flags, c, out)
    terms, scope = np.zeros((n, m), np.float32), {"a": a, "b": b, "flags": flags, "c": c}
    other = otherwise.replace("total += ", "").replace("total -= ", "-").replace("pass", "0")
    for i in range(n):
        for k in range(m):
            holds = eval(condition, scope, {"i": i, "k": k})
            terms[i, k] = a[i, k] * x[k] if holds else eval(other, scope, {"i": i, "k": k})
    np.testing.assert_array_equal(out, in_order(terms))


@cuda.jit
def largest(a, out, at):
    i = cuda.grid(1)
    if i >= a.shape[0]:
        return
    most, found = a[i, 0], 0
    for k in range(1, a.shape[1]):
        if a[i, k] > most:
            most = a[i, k]
            found = k
    out[i], at[i] = most, found


@pytest.mark.parametrize("n", THREADS)
@pytest.mark.parametrize("m", COLUMNS[1:])
def test_largest_of_a_row(n, m):
    a, out, at = floats(13, n, m), np.zeros(n, np.float32), np.zeros(n, np.int64)
    run(largest, n, 32, a, out, at)
    np.testing.assert_array_equal(out, a.max(axis=1))
    np.testing.assert_array_equal(at, a.argmax(axis=1))


@cuda.jit
def nearest(points, centers, out):
    i = cuda.grid(1)
    if i < points.shape[0]:
        best, found = np.float32(np.inf), -1
        for j in range(centers.shape[0]):
            distance = np.float32(0)
            for d in range(points.shape[1]):
                more = abs(points[i, d] - centers[j, d])
                distance = max(distance, more)
            if distance < best:
                best = distance
                found = j
        out[i] = found


@pytest.mark.parametrize("n", THREADS)
@pytest.mark.parametrize("m", COLUMNS[1:])
def test_a_walk_in_a_loop(n, m):
    points, centers, out = floats(14, n, m), floats(15, 9, m), np.zeros(n, np.int32)
    run(nearest, n, 32, points, centers, out)
    distances = abs(points[:, None] - centers[None]).max(axis=2)
    np.testing.assert_array_equal(out, distances.argmin(axis=1))


@cuda.jit
def scores(q, k, out):
    column, row = cuda.grid(2)
    head = cuda.blockIdx.z
    if row < q.shape[1] and column < k.shape[1]:
        if column <= row:
            total = np.float32(0)
            for d in range(q.shape[2]):
                total += q[head, row, d] * k[head, column, d]
            out[head, row, column] = total
        else:
            out[head, row, column] = -1


@pytest.mark.parametrize("n", [1, 17, 40])
@pytest.mark.parametrize("m", [1, 16, 33, 70])
@pytest.mark.parametrize("block", [(16, 16, 1), (32, 4, 1), (5, 3, 1)])
def test_rows_of_threads_share_a_row(n, m, block):
    q, k, out = floats(16, 2, n, m), powers(17, 2, n, m), np.zeros((2, n, n), np.float32)
    scores[(-(-n // block[0]), -(-n // block[1]), 2), block](q, k, out)
    terms = (q[:, :, None] * k[:, None]).reshape(-1, m)
    expected = np.where(np.tril(np.ones((n, n), bool)), in_order(terms).reshape(2, n, n), np.float32(-1))
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def differences(rows, a, out, m):
    for i in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        row = rows[i]
        total = np.float32(0)
        for k in range(2, m):
            step = a[row * m + k] - a[row * m + k - 2]
            total += abs(step)
        out[i] = total


@pytest.mark.parametrize("m", COLUMNS[3:])
def test_rows_that_are_looked_up(m):
    rows = np.random.default_rng(18).integers(0, 12, 77)
    a, out = floats(19, 12 * m), np.zeros(77, np.float32)
    differences[2, 24](rows, a, out, m)
    table = a.reshape(12, m)
    np.testing.assert_array_equal(out, in_order(abs(table[:, 2:] - table[:, :-2]))[rows])


@cuda.jit
def in_32_bits(a, out, m):
    i = cuda.grid(1)
    if i < out.size:
        total = np.float32(0)
        k = np.int32(0)
        while k < m:
            total += a[np.int32(i) * m + k]
            k += np.int32(1)
        out[i] = total


@pytest.mark.parametrize("m", [0, 5, 16, 49])
def test_counters_of_32_bits(m):
    a, out = floats(20, 40 * m), np.zeros(40, np.float32)
    run(in_32_bits, 40, 8, a, out, np.int32(m))
    np.testing.assert_array_equal(out, in_order(a.reshape(40, m)))


@cuda.jit
def running(a, b):
    i = cuda.grid(1)
    if i < a.shape[0]:
        total = np.float32(0)
        for k in range(a.shape[1] - 1):
            total += a[i, k]
            b[k + 1, i] = total


@pytest.mark.parametrize("m", [2, 16, 40])
def test_what_a_turn_stores_is_what_the_next_one_loads(m):
    a = cuda.to_device(floats(21, 20, m))
    expected = a.copy_to_host()
    for i in range(20):
        total = np.float32(0)
        for k in range(m - 1):
            total += expected[i, k]
            expected[i, k + 1] = total
    running[2, 16](a, a.T)
    np.testing.assert_array_equal(a.copy_to_host(), expected)


@pytest.mark.parametrize("m", [2, 16, 40])
def test_what_a_turn_stores_elsewhere(m):
    a, b = floats(22, 20, m), np.zeros((m, 20), np.float32)
    running[2, 16](a, b)
    np.testing.assert_array_equal(b[1:], np.add.accumulate(a[:, :-1], axis=1).T)


@cuda.jit
def in_place(a, x):
    i = cuda.grid(1)
    if i < a.shape[0]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * x[k]
        a[i, 0] = total


@pytest.mark.parametrize("m", [1, 16, 35])
def test_an_array_is_an_output_too(m):
    a, x = floats(23, 40, m), powers(24, m)
    expected = a.copy()
    expected[:, 0] = in_order(a * x)
    run(in_place, 40, 16, a, x)
    np.testing.assert_array_equal(a, expected)


@pytest.fixture
def on_cpu(device):
    if device != "cpu":
        pytest.skip("maps arrays in the process's memory")
    if has_driver():
        pytest.skip("foreign arrays are taken to be a GPU's, beside one")


@pytest.mark.parametrize("n", THREADS)
@pytest.mark.parametrize("m", COLUMNS[1:])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_nothing_is_read_behind_the_end(on_cpu, n, m, dtype):
    a, x, out = (floats(25, n, m) * 100).astype(dtype), powers(26, m, dtype=np.float64), np.zeros(n)
    run(products, n, 16, AtTheEnd(a), AtTheEnd(x), out)
    np.testing.assert_array_equal(out, in_order(a * x))


@cuda.jit
def up_to(a, x, out, c, m):
    i = cuda.grid(1)
    if i < out.size:
        total = np.float32(0)
        for k in range(m):
            if k < c:
                total += a[k] * x[i * c + k]
        out[i] = total


@pytest.mark.parametrize("c", [1, 7, 16, 40])
@pytest.mark.parametrize("m", [40, 50, 1000])
def test_nothing_is_read_that_a_condition_excludes(on_cpu, c, m):
    n = 20
    a, x, out = powers(27, c), floats(28, n, c), np.zeros(n, np.float32)
    run(up_to, n, 16, AtTheEnd(a), AtTheEnd(x.ravel()), out, c, m)
    np.testing.assert_array_equal(out, in_order(x * a))


def test_no_threads_and_no_rows():
    out = np.full(4, 7, np.float32)
    products[1, 16](np.zeros((0, 5), np.float32), np.ones(5, np.float32), out)
    products[1, 16](np.zeros((4, 0), np.float32), np.ones(0, np.float32), out)
    np.testing.assert_array_equal(out, 7)
    assert math.isfinite(out.sum())
