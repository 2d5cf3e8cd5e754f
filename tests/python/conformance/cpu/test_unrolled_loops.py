"""Loops whose exit test depends on constants: they are unrolled where they read a constant table or exchange values.

Each body runs once as a kernel and once as a Python function. `table` is a constant, so that the loops are unrolled.
"""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from harness import module
from weft import _weft, cuda

TABLE = np.array([3, -1, 4, 1, -5, 9, 2, 6, -5, 3, 5, 8, -9, 7, 9, 3] * 4, dtype=np.int64)
FULL = 0xFFFFFFFF

BODIES = {
    "halving": """
        d = 16
        while d > 0:
            total += table[d] * i
            d //= 2
        total += d
    """,
    "shifting": """
        d = 32
        while d:
            total += table[d] - d * i
            d >>= 1
    """,
    "by threes": """
        d = 40
        while d >= 1:
            total = total * 3 + table[d] + i
            d -= 3
        total -= d
    """,
    "growing": """
        k = 1
        while k < 50:
            total += table[k] * i
            k = k * 3 + 1
        total += 1000 * k
    """,
    "two variables": """
        low = 0
        high = 30
        while low < high and high > 3:
            total += table[low] - table[high] * i
            low += 2
            high = high - low // 3
        total += low * 100 + high
    """,
    "an intermediate value": """
        length = 32
        while length > 2:
            half = length // 2
            total += table[half] * i + table[length - 1]
            length = half
        total += length
    """,
    "a flag": """
        k = 0
        going = True
        while going:
            total += table[k] * (i + 1)
            k += 5
            going = k < 21
        total += k
    """,
    "a carried value": """
        last = i
        k = 0
        while k < 12:
            total += last * table[k]
            last = table[k] + i
            k += 2
        total += last
    """,
    "a condition on the counter": """
        for k in range(10):
            if k == 3:
                total -= 7 * i
            elif k % 2 == 0:
                total += table[k]
            else:
                total += table[k] * i
    """,
    "an assignment in a branch": """
        seen = 5
        for k in range(8):
            total += seen * table[k]
            if table[k] > i % 5:
                seen = k
        total += seen
    """,
    "a nested loop": """
        for k in range(4):
            for j in range(k, 7, 2):
                total += table[k * 8 + j] * (i - j)
    """,
    "a nested loop that counts on": """
        j = 1
        for k in range(5):
            while j < k * 3:
                total += table[j] * i
                j += 1
            total += j
    """,
    "a tuple": """
        for k in range(7):
            total += (3, 0, -2, 1, 5, 0, 7)[k] * i
    """,
    "a window": """
        for k in range(9):
            row = i + k // 3 - 1
            column = 2 * i + k % 3 - 1
            if row >= 0 and row < 101 and column > 5:
                total += (2, 0, -1, 1, -8, 1, 0, 4, 5)[k] * x[row]
    """,
    "a window by two loops": """
        for j in range(3):
            for k in range(3):
                near = min(max(i + 3 * j - k - 4, 0), 100)
                total += (2, 0, -1, 1, -8, 1, 0, 4, 5)[j * 3 + k] * x[near] + k
    """,
    "quotients of negative numbers": """
        for k in range(-9, 9):
            total += max(k // 4 * i, k % 4) - min(k // -4, k % -4 * i)
    """,
    "a temporary that is read later": """
        for k in range(5):
            last = (5, 3, 0, -1, 8)[k]
            total += last * i
        total += last + k
    """,
    "an element that is chosen in a branch": """
        weight = 7
        for k in range(6):
            if i % 4 < k // 2:
                weight = (1, 0, 0, -3, 2, 5)[k]
            total = total * 3 + weight * i
        total += weight
    """,
    "a nested loop that has no room": """
        for j in range(25):
            for k in range(25):
                total += table[j + k] * (i + j) - (total + k) // 3
    """,
    "a division alone": """
        for k in range(30):
            total += x[k % 4] * i
    """,
    "no iteration": """
        k = 9
        while k < 9:
            total += table[k]
            k += 1
        total += k
    """,
    "as many iterations as are unrolled": """
        k = 0
        while k < 64:
            total += table[k] * i
            k += 1
    """,
    "more iterations": """
        k = 0
        while k < 65:
            total += table[k & 63] * i
            k += 1
    """,
    "an exit in the middle": """
        k = 0
        while k < 20:
            total += table[k]
            if table[k] == 9 - i % 3:
                break
            k += 1
        total += 100 * k
    """,
    "skipped iterations": """
        k = 0
        while k < 15:
            k += 1
            if table[k] < i % 4:
                continue
            total += table[k] * k
    """,
    "a step that depends on the data": """
        k = 0
        while k < 15:
            total += table[k]
            k += 1 + (i & 1)
        total += k
    """,
    "a counter that is assigned in a branch": """
        k = 0
        while k < 12:
            total += table[k]
            k += 1
            if total > 8:
                k += 2
        total += k * 10
    """,
    "a bound from an argument": """
        k = n
        while k > 0:
            total += table[k]
            k //= 2
    """,
    "a bound in a local": """
        first = 4
        last = first * 3
        for k in range(first, last):
            total += table[k] * i
    """,
    "within a branch": """
        d = 8
        if i % 3 == 1:
            d = 2
        while d > 0:
            total += table[d] * i
            d //= 2
    """,
    "one after the other": """
        d = 4
        while d > 0:
            total += table[d]
            d -= 1
        while d < 3:
            total += table[d + 10] * i
            d += 1
        total += d
    """,
}


KERNEL = """
import numpy as np
from weft import cuda

table = np.array({table}, np.int64)


@cuda.jit
def kernel(x, n, out):
    i = cuda.grid(1)
    if i >= out.size:
        return
    total = x[i]
{body}
    out[i] = total
"""
PLAIN = """
table = {table}


def plain(i, x, n):
    total = int(x[i])
{body}
    return total
"""


def made(source, body):
    """The module with a body in one of the two functions."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return module(source.format(table=TABLE.tolist(), body=inner))


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("block", [32, 50])
def test_loops_over_a_constant_table(name, block):
    kernel, plain = made(KERNEL, BODIES[name]).kernel, made(PLAIN, BODIES[name]).plain
    n = 101
    x = np.random.default_rng(7).integers(-50, 50, n)
    out = np.zeros(n, np.int64)
    kernel[-(-n // block), block](x, 23, out)
    assert out.tolist() == [plain(i, x, 23) for i in range(n)]


@cuda.jit
def sums(x, out):
    i = cuda.grid(1)
    value = x[i]
    d = 16
    while d > 0:
        value += cuda.shfl_xor_sync(FULL, value, d)
        d //= 2
    out[i] = value


@cuda.jit
def sums_of_rows(x, out):
    """A loop with exchanges inside a loop, whose accumulator is not its counter."""
    warp = cuda.grid(1) // 32
    lane = cuda.laneid
    if warp >= x.shape[0]:
        return
    total = x[warp, 0, lane]
    for k in range(1, x.shape[1]):
        part = x[warp, k, lane] * k
        for d in range(5):
            part += cuda.shfl_down_sync(FULL, part, 16 >> d)
        total += cuda.shfl_sync(FULL, part, 0)
    out[warp, lane] = total


@cuda.jit
def scans(x, out):
    i = cuda.grid(1)
    value = x[i]
    lane = cuda.laneid
    d = 1
    while d < 32:
        before = cuda.shfl_up_sync(FULL, value, d)
        if lane >= d:
            value += before
        d *= 2
    out[i] = value


@cuda.jit
def counts(x, out):
    i = cuda.grid(1)
    ones = 0
    bit = 1
    while bit < 64:
        ones += cuda.popc(cuda.ballot_sync(FULL, x[i] & bit != 0)) * bit
        bit *= 4
    out[i] = ones


@pytest.mark.parametrize("block", [32, 96])
def test_loops_with_exchanges(block):
    n = 96 * 5
    grid = n // block
    x = np.random.default_rng(8).integers(-90, 90, n)
    warps = x.reshape(-1, 32)
    out = np.zeros(n, np.int64)
    sums[grid, block](x, out)
    assert (out.reshape(-1, 32) == warps.sum(axis=1)[:, None]).all()
    scans[grid, block](x, out)
    assert (out.reshape(-1, 32) == warps.cumsum(axis=1)).all()
    counts[grid, block](x, out)
    expected = sum(((warps & bit) != 0).sum(axis=1) * bit for bit in (1, 4, 16))
    assert (out.reshape(-1, 32) == expected[:, None]).all()


@pytest.mark.parametrize("rows", [1, 4, 7])
@pytest.mark.parametrize("depth", [1, 2, 9])
def test_an_exchange_in_each_iteration(rows, depth):
    x = np.random.default_rng(9).integers(-9, 9, (rows, depth, 32))
    out = np.zeros((rows, 32), np.int64)
    sums_of_rows[-(-rows // 4), 128](x, out)
    weights = np.arange(depth)
    expected = x[:, 0] + (x.sum(axis=2) * weights).sum(axis=1)[:, None]
    assert (out == expected).all()


def features(kernel):
    return {name for _, _, names in _weft.plan_features(kernel) for name in names}


UNROLLED = [
    "halving", "shifting", "two variables", "a flag", "a tuple", "a window", "as many iterations as are unrolled",
]  # fmt: skip
KEPT = [
    "no iteration", "more iterations", "an exit in the middle", "a step that depends on the data", "a division alone",
]  # fmt: skip


@pytest.mark.cpu
@pytest.mark.parametrize("name", [*UNROLLED, *KEPT])
def test_which_loops_are_unrolled(name):
    kernel = made(KERNEL, BODIES[name]).kernel
    kernel[1, 32](np.zeros(32, np.int64), 23, np.zeros(32, np.int64))
    assert ("full-unroll" in features(kernel)) == (name in UNROLLED)


@pytest.mark.cpu
def test_a_warp_whose_accumulator_is_no_counter_is_a_block():
    sums_of_rows[1, 64](np.zeros((2, 3, 32), np.int64), np.zeros((2, 32), np.int64))
    assert {"warp-as-block", "full-unroll"} <= features(sums_of_rows)
