"""Loops that threads leave in different iterations, by `break`, `while` or a trip count of their own; compared with
NumPy."""

import numpy as np
import pytest
from harness import module, run
from weft import _weft, cuda

SIZES = [1, 15, 16, 17, 64, 65, 300, 1100]
BLOCKS = [1, 5, 37, 64, 256]


def values(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


def each(function, n):
    """The results of `function` for each thread index."""
    return np.array([function(i) for i in range(n)])


@cuda.jit
def first_above(table, limit, n, where, sums):
    i = cuda.grid(1)
    if i < where.size:
        total = 0.0
        found = -1
        for k in range(n):
            value = table[k]
            if value > limit[i]:
                found = k
                break
            total += value
        where[i] = found
        sums[i] = total


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("turns", [0, 1, 40])
def test_threads_leave_by_break(n, block, turns):
    table, limit = values(1, max(turns, 1), dtype=np.float64), values(2, n, dtype=np.float64)
    where, sums = np.zeros(n, np.int32), np.zeros(n)
    first_above[-(-n // block) + 1, block](table, limit, turns, where, sums)

    def of(i):
        for k in range(turns):
            if table[k] > limit[i]:
                return k, table[:k].sum()
        return -1, table[:turns].sum()

    expected = [of(i) for i in range(n)]
    np.testing.assert_array_equal(where, [at for at, _ in expected])
    np.testing.assert_array_equal(sums, [total for _, total in expected])


@cuda.jit
def of_columns(a, lengths, out):
    i = cuda.grid(1)
    if i < out.size:
        total = a.dtype.type(0)
        for k in range(lengths[i]):
            total = total * 2 + a[k, i]
        out[i] = total


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("block", [5, 64, 256])
def test_each_thread_has_its_own_number_of_turns(dtype, n, block):
    a, lengths = values(3, 20, n, dtype=dtype), np.random.default_rng(4).integers(-2, 21, n).astype(np.int32)
    out = np.zeros(n, dtype)
    of_columns[-(-n // block), block](a, lengths, out)
    total = np.zeros(n, dtype)
    for k in range(20):
        with np.errstate(over="ignore"):
            total = np.where(k < lengths, (total * 2 + a[k]).astype(dtype), total)
    np.testing.assert_array_equal(out, total)


@cuda.jit
def of_column(table, lengths, out):
    """The last iteration reads the last element: nothing after it may be read."""
    i = cuda.grid(1)
    if i < out.size:
        total = 0
        for k in range(lengths[i]):
            total += table[k]
        out[i] = total


@pytest.mark.parametrize("n", SIZES)
def test_a_table_is_as_long_as_the_longest_of_all(n):
    lengths = np.random.default_rng(5).integers(0, 4097, n).astype(np.int64)
    lengths[n // 2] = 4096
    table = values(6, 4096, dtype=np.int64)
    out = np.zeros(n, np.int64)
    of_column[-(-n // 128), 128](table, lengths, out)
    np.testing.assert_array_equal(out, np.concatenate([[0], table.cumsum()])[lengths])


@cuda.jit
def collatz(out):
    i = cuda.grid(1)
    if i < out.size:
        value = i + 1
        turns = 0
        while value != 1:
            if value % 2 == 0:
                value //= 2
            else:
                value = 3 * value + 1
            turns += 1
        out[i] = turns


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("block", BLOCKS)
def test_while(n, block):
    out = np.zeros(n, np.int32)
    collatz[-(-n // block), block](out)

    def turns(i):
        value, turns = i + 1, 0
        while value != 1:
            value, turns = (value // 2 if value % 2 == 0 else 3 * value + 1), turns + 1
        return turns

    np.testing.assert_array_equal(out, each(turns, n))


@cuda.jit
def escapes(most, out):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        re = x * 3.0 / out.shape[1] - 2.0
        im = y * 2.0 / out.shape[0] - 1.0
        a, b = 0.0, 0.0
        turns = most
        for k in range(most):
            a, b = a * a - b * b + re, 2.0 * a * b + im
            if a * a + b * b > 4.0:
                turns = k
                break
        out[y, x] = turns


@pytest.mark.parametrize("shape", [(1, 1), (7, 33), (40, 100)])
@pytest.mark.parametrize("block", [(16, 16), (32, 1), (5, 3)])
def test_escapes(shape, block):
    out = np.zeros(shape, np.int32)
    escapes[(-(-shape[1] // block[0]), -(-shape[0] // block[1])), block](50, out)
    expected = np.zeros(shape, np.int32)
    for y in range(shape[0]):
        for x in range(shape[1]):
            re, im, a, b, turns = x * 3.0 / shape[1] - 2.0, y * 2.0 / shape[0] - 1.0, 0.0, 0.0, 50
            for k in range(50):
                a, b = a * a - b * b + re, 2.0 * a * b + im
                if a * a + b * b > 4.0:
                    turns = k
                    break
            expected[y, x] = turns
    # A fused multiply-add may change a point near the boundary.
    assert (out != expected).mean() < 0.01


@cuda.jit
def twice(a, out):
    """A loop with divergent exits inside a uniform loop, and the variables after both."""
    i = cuda.grid(1)
    if i < out.size:
        last = -1
        total = 0
        for j in range(a.shape[0]):
            k = 0
            while a[j, i] > k:
                k += 1
                last = k
            total = total * 3 + k
        out[i] = total * 10 + last


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("block", BLOCKS)
def test_loops_in_loops(n, block):
    a = values(9, 6, n, dtype=np.int64)
    out = np.zeros(n, np.int64)
    twice[-(-n // block), block](a, out)

    def of(i):
        last, total = -1, 0
        for j in range(6):
            total = total * 3 + max(a[j, i], 0)
            last = a[j, i] if a[j, i] > 0 else last
        return total * 10 + last

    np.testing.assert_array_equal(out, each(of, n))


def mostly_short(n, most):
    """Most numbers are small, and about every thirtieth is large."""
    lengths = np.random.default_rng(14).integers(0, 4, n)
    lengths[::29] = most
    lengths[n // 2] = most - 1
    return lengths


@cuda.jit
def long_turns(table, a, lengths, out, seen):
    i = cuda.grid(1)
    if i < out.size:
        total = table.dtype.type(1)
        for k in range(lengths[i]):
            total = total * 3 + table[k] - a[k, i]
            seen[k, i] = total
        out[i] = total


@pytest.mark.parametrize("number", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("block", [5, 64, 256])
def test_few_threads_go_on(number, dtype, n, block):
    lengths, most = mostly_short(n, 50).astype(number), 50
    table, a = values(15, most, dtype=dtype), values(16, most, n, dtype=dtype)
    out, seen = np.zeros(n, dtype), np.full((most, n), 77, dtype)
    long_turns[-(-n // block), block](table, a, lengths, out, seen)
    total, expected = np.ones(n, dtype), np.full((most, n), 77, dtype)
    with np.errstate(over="ignore"):
        for k in range(most):
            here = k < lengths
            total = np.where(here, (total * 3 + table[k] - a[k]).astype(dtype), total)
            expected[k] = np.where(here, total, expected[k])
    np.testing.assert_array_equal(out, total)
    np.testing.assert_array_equal(seen, expected)


@cuda.jit
def left_at(table, limit, n, where, counts):
    """The trip counts are read after the loops, and so are values assigned before the exit."""
    i = cuda.grid(1)
    if i < where.size:
        most = limit[i]
        k = 0
        total = 0
        why = 0
        while k < n and total < most:
            if table[k] == 7:
                why = 1
                break
            total += table[k]
            if table[k] > 7:
                why = 2
                total -= 1
                if most % 2 == 0:
                    break
            k += 1
        last = -1
        for m in range(n):
            last = m
            if table[m] + m > most:
                break
        else:
            why += 10
        j = 5
        while True:
            if j >= n or table[j] * 4 > most:
                break
            j += 3
        where[i] = k * 1000000 + last * 1000 + j
        counts[i] = total * 100 + why


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("turns", [0, 1, 5, 60])
@pytest.mark.parametrize("number", [np.int32, np.int64])
def test_what_is_read_behind_loops(n, turns, number):
    table = np.random.default_rng(17).integers(0, 7, 60)
    table[[20, 33, 51]] = 8, 9, 7
    limit = mostly_short(n, 200)
    where, counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
    left_at[-(-n // 64), 64](table, limit, number(turns), where, counts)

    def of(limit):
        k = total = why = 0
        while k < turns and total < limit:
            if table[k] == 7:
                why = 1
                break
            total += table[k]
            if table[k] > 7:
                why = 2
                total -= 1
                if limit % 2 == 0:
                    break
            k += 1
        last = -1
        for m in range(turns):
            last = m
            if table[m] + m > limit:
                break
        else:
            why += 10
        j = 5
        while True:
            if j >= turns or table[j] * 4 > limit:
                break
            j += 3
        return k * 1000000 + last * 1000 + j, total * 100 + why

    expected = np.array([of(each) for each in limit])
    np.testing.assert_array_equal(where, expected[:, 0])
    np.testing.assert_array_equal(counts, expected[:, 1])


@cuda.jit
def down_columns(keys, wanted, steps, found):
    i = cuda.grid(1)
    if i >= found.size:
        return
    k = keys.shape[0] - 1
    while k >= 0 and keys[k, i] != wanted[i]:
        k -= steps
    at = k
    for r in range(0, keys.shape[0], 2):
        if keys[r, i] == wanted[i]:
            at += 1000 * r
            continue
        if keys[r, i] > 8:
            break
        at += 1
    found[i] = at


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("block", BLOCKS)
def test_down_columns(dtype, n, block):
    keys, wanted = values(18, 40, n, dtype=dtype), values(19, n, dtype=dtype)
    found = np.zeros(n, np.int32)
    down_columns[-(-n // block) + 1, block](keys, wanted, 1, found)

    def of(i):
        k = 39
        while k >= 0 and keys[k, i] != wanted[i]:
            k -= 1
        at = k
        for r in range(0, 40, 2):
            if keys[r, i] == wanted[i]:
                at += 1000 * r
                continue
            if keys[r, i] > 8:
                break
            at += 1
        return at

    np.testing.assert_array_equal(found, each(of, n))


@cuda.jit
def by_pairs(a, lengths, out):
    """Inside a uniform loop, and after a barrier, with rows along two axes."""
    shared = cuda.shared.array(64, np.int64)
    x, y = cuda.grid(2)
    t = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    shared[t] = t
    cuda.syncthreads()
    total = 0
    if x < out.shape[1] and y < out.shape[0]:
        for r in range(3):
            k = 0
            while k < lengths[y, x]:
                total = total * 3 + a[r, k, x] + shared[k % 8]
                if total % 11 == r:
                    break
                k += 1
            total -= k
        out[y, x] = total


@pytest.mark.parametrize("shape", [(1, 1), (7, 33), (9, 100)])
@pytest.mark.parametrize("block", [(16, 4), (32, 2), (5, 3)])
def test_in_loops_behind_barriers(shape, block):
    lengths = mostly_short(shape[0] * shape[1], 40).reshape(shape)
    a, out = values(20, 3, 40, shape[1], dtype=np.int64), np.zeros(shape, np.int64)
    grid = -(-shape[1] // block[0]), -(-shape[0] // block[1])
    by_pairs[grid, block](a, lengths, out)

    def of(y, x):
        total = 0
        for r in range(3):
            k = 0
            while k < lengths[y, x]:
                total = (total * 3 + int(a[r, k, x]) + k % 8 + 2**63) % 2**64 - 2**63
                if total % 11 == r:
                    break
                k += 1
            total -= k
        return total

    expected = [[of(y, x) for x in range(shape[1])] for y in range(shape[0])]
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def counted_before_a_stencil(limits, table, x, out, counts):
    i = cuda.grid(1)
    if i >= out.size:
        return
    total = 0
    k = 0
    while k < table.size and not total > limits[i]:
        total += table[k]
        k += 1
    value = 1
    if k == 1:
        value += x[i] + x[i - 1]
    else:
        local = cuda.local.array(8, np.int64)
        for j in range(8):
            local[j] = k
        value += local[j]
    out[i] = value
    counts[i] = k


@pytest.mark.parametrize("n", [1, 17, 48, 100, 300])
@pytest.mark.parametrize("block", [32, 128])
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("limit", [[48], [0, 48], [-1], [48] * 32 + [-1] * 32, [-1] * 16 + [48, 3] * 8])
def test_iterations_are_counted_by_each_strip(n, block, strided, limit):
    """Strips of threads leave the loop after different numbers of iterations, which the code after the loop reads."""
    limits = np.resize(np.array(limit), n)
    table = np.array([8, 0, 3, 0, 5, 0, 1, 0, 0, 0], np.int16)[:: 2 if strided else 1]
    out, counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
    run(counted_before_a_stencil, -(-n // block), block, limits, table, np.arange(n, dtype=np.int32), out, counts)


ROOTS = {
    "exp": ("math.exp(x) - one - y", "math.exp(x)"),
    "log": ("math.log(x + one) - y", "one / (x + one)"),
    "sin": ("x + y * math.sin(x) - one", "one + y * math.cos(x)"),
    "erfc": ("math.erfc(x) - y", "-math.exp(-x * x)"),
    "tanh": ("math.tanh(x) - y", "one - math.tanh(x) ** 2"),
    "pow": ("(x + one) ** (y + one) - one - y", "one + one"),
    "fmod": ("math.fmod(x, one) - y * y", "one"),
    "lgamma": ("math.lgamma(x + one + one) - y", "one"),
}
"""Functions of `x` with a parameter `y`, and approximations of their derivatives."""

NEWTON = """
    import math

    import numpy as np
    from weft import cuda

    @cuda.jit
    def newton(parameters, tolerance, roots, counts):
        i = cuda.grid(1)
        if i < roots.size:
            one = parameters.dtype.type(1)
            y = parameters[i]
            x = y
            n = 0
            while n < 30:
                value = {value}
                if abs(value) < tolerance[i]:
                    break
                x -= value / ({derivative})
                n += 1
            roots[i] = x
            counts[i] = n
"""


def newton(name):
    value, derivative = ROOTS[name]
    return module(NEWTON.format(value=value, derivative=derivative)).newton


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 16, 300])
@pytest.mark.parametrize("name", ROOTS)
def test_math_functions_until_a_thread_has_converged(name, n, dtype):
    random = np.random.default_rng(8)
    parameters = (0.1 + 0.8 * random.random(n)).astype(dtype)
    tolerance = (10.0 ** -random.integers(1, 4, n)).astype(dtype)
    roots, counts = np.zeros(n, dtype), np.zeros(n, np.int32)
    kernel = newton(name)
    kernel[-(-n // 64), 64](parameters, tolerance, roots, counts)
    # One thread at a time, in a kernel that is the same for each of them.
    alone, counts_alone = np.zeros(n, dtype), np.zeros(n, np.int32)
    for i in range(n):
        here = slice(i, i + 1)
        kernel[1, 1](parameters[here], tolerance[here], alone[here], counts_alone[here])
    np.testing.assert_allclose(roots, alone, rtol=1e-5)
    np.testing.assert_array_equal(counts, counts_alone)
    assert n == 1 or len(set(counts.tolist())) > 1
    in_numpy = {"exp": np.expm1, "log": np.log1p, "tanh": np.tanh}.get(name)
    if in_numpy:
        converged = counts < 30
        assert (np.abs(in_numpy(roots) - parameters)[converged] < tolerance[converged] + 1e-5).all()


@pytest.mark.cpu
@pytest.mark.parametrize("name", ROOTS)
def test_which_math_functions_a_masked_loop_calls(name):
    kernel = newton(name)
    kernel[1, 64](np.ones(9), np.ones(9), np.zeros(9), np.zeros(9, np.int32))
    names = {name for _, _, names in _weft.plan_features(kernel) for name in names}
    assert ("divergent-exit" in names) == (name not in {"fmod", "lgamma"})
