"""Integers in shared, thread-local and constant arrays, and results of device functions: values at the limits of the
ranges that the compiler derives for them.
"""

import numpy as np
import pytest
from harness import launch, module, run
from weft import cuda

BIG = 2**40
INDICES = np.array([-4, 3, -1, 0, 2])
FACTORS = np.array([2**33, -(2**33) - 1, 7, 2**31, -(2**31) - 1])
UNSIGNED = np.array([2**63 + 5, 1, 2**32, 2**64 - 1, 0], np.uint64)
BYTES = np.array([200, 255, 0, 128, 1], np.uint8)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_bytes_in_wider_tiles(dtype):
    @cuda.jit
    def kernel(image, out):
        tile = cuda.shared.array((4, 8), dtype)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        tile[y, x] = image[y, x]
        cuda.syncthreads()
        s = 0
        for k in range(8):
            s += tile[y, k] * tile[3 - y, 7 - k]
        out[y, x, 0] = s
        out[y, x, 1] = tile[y, x] * tile[y, x] * tile[y, x] * tile[y, x]
        out[y, x, 2] = tile[y, x] * 2**24
        out[y, x, 3] = tile[y, x] - tile[y, 0]
        out[y, x, 4] = (tile[y, x] << 25) + (tile[y, x] >> 3)

    run(kernel, 1, (8, 4), np.arange(255, 223, -1, np.uint8).reshape(4, 8), np.zeros((4, 8, 5), np.int64))


@cuda.jit
def negative_in_one_place(x, n, out):
    where = cuda.shared.array(8, np.int64)
    own = cuda.local.array(4, np.int32)
    t = cuda.threadIdx.x
    where[t] = t
    for k in range(4):
        own[k] = k
    cuda.syncthreads()
    if t == n:
        where[t] = -1 - t
        own[n % 4] = -3
    cuda.syncthreads()
    out[t] = x[where[(t + 1) % 8]] * 100 + x[own[t % 4]] + where[n] % 5 + where[n] // 2


@pytest.mark.parametrize("n", [0, 2, 7, -1])
def test_negative_values_from_one_store(n):
    run(negative_in_one_place, 1, 8, np.arange(10, 19), n, np.zeros(8, np.int64))


@cuda.jit(device=True)
def fill(array, value):
    array[cuda.threadIdx.x % array.size] = value


@cuda.jit(device=True)
def fill_both(a, b, value):
    a[cuda.threadIdx.x] = value
    b[cuda.threadIdx.x] = -value


@cuda.jit
def written_by_functions(value, out):
    a = cuda.shared.array(4, np.int64)
    b = cuda.shared.array(4, np.int64)
    c = cuda.shared.array(4, np.int64)
    own = cuda.local.array(2, np.int64)
    t = cuda.threadIdx.x
    a[t] = b[t] = 1
    c[t] = 3
    own[0] = own[1] = 1
    if value != 0:
        fill(a, value)
        fill_both(b, c, value + 1)
        fill(own, value - 1)
    cuda.syncthreads()
    out[t, 0] = a[3 - t] * 3 + a[t] // 2
    out[t, 1] = b[3 - t] % 1000
    out[t, 2] = c[3 - t] % 1000 + (c[t] >> 3)
    out[t, 3] = own[t % 2] // 7


@pytest.mark.parametrize("value", [0, 5, -5, BIG + 3, -BIG, 2**63 - 1, -(2**31) - 1, 2**31])
def test_arrays_that_functions_write(value):
    run(written_by_functions, 1, 4, value, np.zeros((4, 4), np.int64))


ATOMICS = ["max(a, 0, v)", "min(a, 0, v)", "add(a, 0, v)", "sub(a, 0, v)", "exch(a, 0, v)", "cas(a, 0, 100, v)"]
ATOMICS += ["or_(a, 0, v)", "xor(a, 0, v)", "and_(a, 0, v)"]


@pytest.mark.parametrize("value", [5, -1, 3 * BIG + 1, -(2**62), 2**31 - 1])
@pytest.mark.parametrize("operation", ATOMICS)
def test_atomics(operation, value):
    kernel = module(f"""
import numpy as np
from weft import cuda

@cuda.jit
def kernel(v, out):
    a = cuda.shared.array(1, np.int64)
    a[0] = 100
    for k in range(1, 4):
        out[k] = cuda.atomic.{operation} // 2
    out[0] = a[0] * 2 + a[0] // 3
""").kernel
    run(kernel, 1, 1, value, np.zeros(4, np.int64))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_small_ranges_that_atomics_leave(dtype):
    @cuda.jit
    def kernel(v, out):
        a = cuda.shared.array(4, dtype)
        for k in range(4):
            a[k] = k
        for _ in range(3):
            cuda.atomic.add(a, 0, v)
            cuda.atomic.sub(a, 1, v)
        for k in range(4):
            out[k] = a[k] // 2
            out[k + 4] = a[k] * a[k]

    run(kernel, 1, 1, dtype(10**9), np.zeros(8, np.int64))


def test_increments_that_wrap():
    @cuda.jit
    def kernel(limit, out):
        a = cuda.shared.array(2, np.uint32)
        a[0] = a[1] = 1
        for k in range(5):
            out[k] = cuda.atomic.inc(a, 0, limit) * 2**31
            out[k + 5] = cuda.atomic.dec(a, 1, limit) * 2**31
        out[10] = a[0] * 2**30 + a[1] // 2

    for limit in (0, 1, 3, 2**32 - 1):
        run(kernel, 1, 1, np.uint32(limit), np.zeros(11, np.int64))


@cuda.jit
def aliases(which, value, out):
    a = cuda.shared.array((4, 4), np.int64)
    b = cuda.shared.array((4, 4), np.int64)
    t = cuda.threadIdx.x
    for k in range(4):
        a[t, k] = k
        b[t, k] = 2 * k
    cuda.syncthreads()
    chosen = a if which else b
    row = chosen[t]
    part = row[1:3]
    part[0] = value
    row[-1] = -value
    cuda.syncthreads()
    for k in range(4):
        out[t, k, 0] = a[3 - t, k] // 3
        out[t, k, 1] = b[3 - t, k] // 3 + row[k] % 7


@pytest.mark.parametrize("which", [True, False])
@pytest.mark.parametrize("value", [1, -BIG, 2**63 - 1])
def test_aliases_and_views(which, value):
    run(aliases, 1, 4, which, value, np.zeros((4, 4, 2), np.int64))


@cuda.jit
def two_types(value, out):
    wide = cuda.shared.array(0, np.int64)
    narrow = cuda.shared.array(0, np.uint8)
    fixed = cuda.shared.array(8, np.int64)
    t = cuda.threadIdx.x
    wide[t] = 1
    fixed[t] = t
    cuda.syncthreads()
    narrow[t * 8 + 6] = value
    fixed.view(np.uint8)[t * 8 + 5] = value
    cuda.syncthreads()
    out[t, 0] = wide[7 - t] // 2
    out[t, 1] = fixed[7 - t] // 2


@pytest.mark.parametrize("value", [0, 1, 255])
def test_bytes_over_the_same_memory(value):
    out = np.zeros((8, 2), np.int64)
    two_types[1, 8, 0, 64](value, out)
    expected = [[((value << 48) + 1) // 2, ((value << 40) + 7 - t) // 2] for t in range(8)]
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def large_in_one_branch(x, out):
    i = cuda.grid(1)
    t = cuda.local.array(4, np.int64)
    for k in range(4):
        t[k] = k * i
    if x[i] > 2:
        t[x[i] % 4] = 2**40 + i
    elif x[i] < -2:
        t[x[i] % 4] = -(2**31) - 1
    s = 0
    for k in range(4):
        s += t[k] * 3 + t[k] // 2
    out[i] = s


def test_large_values_in_one_branch():
    run(large_in_one_branch, 1, 8, np.array([0, 1, 3, 9, -1, -3, -6, 2]), np.zeros(8, np.int64))


@cuda.jit
def sorted_locals(x, out):
    i = cuda.grid(1)
    t = cuda.local.array(9, np.int64)
    n = x.shape[1]
    for k in range(n):
        v = x[i, k]
        j = k
        while j > 0 and t[j - 1] > v:
            t[j] = t[j - 1]
            j -= 1
        t[j] = v
    for k in range(n):
        out[i, k] = t[k]


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_insertion_sort(dtype):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(limits.min, limits.max, (4, 9), dtype, endpoint=True)
    x[0, :3] = limits.min, limits.max, limits.min
    _, out = run(sorted_locals, 1, 4, x, np.zeros((4, 9), np.int64))
    np.testing.assert_array_equal(out, np.sort(x, axis=1))


@cuda.jit
def tables(x, out):
    indices, factors = cuda.const.array_like(INDICES), cuda.const.array_like(FACTORS)
    unsigned, small = cuda.const.array_like(UNSIGNED), cuda.const.array_like(BYTES)
    i = cuda.grid(1)
    out[i, 0] = x[indices[i]] + x[indices[i - 5]] * 10
    out[i, 1] = factors[i] * x[i] + factors[i] // 3
    out[i, 2] = unsigned[i] // np.uint64(2)
    out[i, 3] = unsigned[i] > 2**63
    out[i, 4] = small[i] * small[i] * small[i] * 2**9 - small[4 - i] * 2**30
    out[i, 5] = small[i] - small[4 - i] + (indices[i] * 2**30)


def test_constant_tables():
    out = np.zeros((5, 6), np.int64)
    x = np.arange(3, 8)
    tables[1, 5](x, out)
    expected = [
        [
            int(x[INDICES[i]]) + int(x[INDICES[i - 5]]) * 10,
            int(FACTORS[i]) * int(x[i]) + int(FACTORS[i]) // 3,
            int(UNSIGNED[i]) // 2,
            int(UNSIGNED[i]) > 2**63,
            int(BYTES[i]) ** 3 * 2**9 - int(BYTES[4 - i]) * 2**30,
            int(BYTES[i]) - int(BYTES[4 - i]) + int(INDICES[i]) * 2**30,
        ]
        for i in range(5)
    ]
    np.testing.assert_array_equal(out, expected)


@cuda.jit(device=True, forceinline=False)
def root(labels, i, base):
    while labels[i] - base != i:
        i = labels[i] - base
    return i


@cuda.jit(device=True, forceinline=False)
def next_of(v, by):
    return v * 3 + by


@cuda.jit(device=True, forceinline=False)
def twice_next(v, by):
    return next_of(next_of(v, by), -by), v // 2


@cuda.jit
def fed_back(labels, base, by, n, out):
    v = 1
    w = np.uint8(200)
    own = cuda.local.array(3, np.int64)
    for k in range(n):
        v, half = twice_next(v, by)
        out[0] = out[0] * 3 + half
        w = next_of(w, np.uint8(by & 7)) & 255
        own[k % 3] = v
    out[1] = v // 5
    out[2] = w
    out[3] = own[(n + 1) % 3] // 2 if n > 2 else 0
    for i in range(len(labels)):
        out[4 + i] = root(labels, root(labels, i, base), base)


@pytest.mark.parametrize("n", [0, 3, 9, 17, 30])
@pytest.mark.parametrize(("base", "by"), [(0, 1), (-(2**31), -1), (2**31 - 3, BIG), (-3 * BIG, 0)])
def test_results_that_are_arguments_again(base, by, n):
    labels = np.array([0, 0, 1, 3, 3, 2, 4]) + base
    run(fed_back, 1, 1, labels, base, by, n, np.zeros(11, np.int64))


@cuda.jit(device=True)
def down(t, n, v):
    t[n] = v
    return v if n == 0 else down(t, n - 1, v * 1000) + 1


@cuda.jit
def recursive(n, v, out):
    t = cuda.local.array(8, np.int64)
    for k in range(8):
        t[k] = k
    out[8] = down(t, n, v) // 2
    for k in range(8):
        out[k] = t[k] // 3


@pytest.mark.parametrize("v", [1, -7])
@pytest.mark.parametrize("n", [0, 3, 5])
def test_recursive_functions(n, v):
    *_, got = launch(recursive, 1, 1, n, v, np.zeros(9, np.int64))
    t = list(range(8))
    for k in range(n + 1):
        t[n - k] = v * 1000**k
    np.testing.assert_array_equal(got, [*(value // 3 for value in t), (v * 1000**n + n) // 2])
