"""Arrays of a thread that are indexed by values which change: strips store them by element and lane.

Each body runs once as a kernel and once as a Python function, whose arrays are NumPy's.
"""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from harness import module
from weft import _weft, cuda

KERNEL = """
import numpy as np
from weft import cuda

FEW = 5


@cuda.jit(device=True)
def exchange(a, p, q):
    if a[p] <= a[q]:
        return
    for k in range(p, q):
        kept = a[k]
        a[k] = a[q]
        a[q] = kept


@cuda.jit
def kernel(x, n, out):
    i = cuda.grid(1)
    if i >= out.shape[1]:
        return
{body}
"""
PLAIN = """
import numpy as np

FEW = 5


def exchange(a, p, q):
    if a[p] <= a[q]:
        return
    for k in range(p, q):
        kept = a[k]
        a[k] = a[q]
        a[q] = kept


def plain(i, x, n, out):
{body}
"""

FILL = """
        a = ARRAY(12, np.int64)
        for k in range(12):
            a[k] = x[k % 5, i] * (k + 1)
"""
SUM = """
        total = 0
        for k in range(12):
            total = total * 3 + a[k]
        out[0, i] = total
"""

LOCKSTEP = {
    "a triangle": """
        for p in range(n):
            for q in range(p, 12):
                a[q] += a[p] * (q - p)
    """,
    "an index from the data": """
        for k in range(n):
            a[abs(x[k % 5, i]) % 12] += k
    """,
    "an insertion sort beside uniform loops": """
        for p in range(1, 12):
            value = a[p]
            k = p - 1
            while k >= 0 and a[k] > value:
                a[k + 1] = a[k]
                k -= 1
            a[k + 1] = value
        for p in range(n):
            for q in range(p, 12):
                for r in range(q, 12):
                    a[r] += a[q] - a[p]
    """,
    "a device function that some threads leave at once": """
        for p in range(11):
            for q in range(p + 1, 12):
                exchange(a, p, q)
    """,
    "an exit around loops": """
        for step in range(n):
            sum = 0
            for k in range(12):
                sum += a[k]
            if sum > 300:
                break
            for p in range(step % 12, 12):
                for q in range(p, 12):
                    a[q] += step
    """,
    "a trip count of each thread": """
        for k in range(abs(x[0, i]) + 1):
            for j in range(k % 3, 12):
                a[j] += k * j
    """,
    "a counter after an exit": """
        found = -1
        for k in range(12):
            if a[k] > x[1, i]:
                found = k
                break
        a[0] = found
        k = 0
        while k < 11 and a[k] < 20:
            k += 1
        a[1] = k
    """,
    "a value of the last iteration of each thread": """
        last = 0
        for k in range(n):
            last = k * 2
            if a[k % 12] > 10:
                break
            for j in range(k, 12):
                a[j] += 1
        a[2] = last
    """,
    "a value of an earlier iteration": """
        last = 7
        for k in range(n):
            if x[k % 5, i] > 0:
                last = k
                for j in range(k % 12, 12):
                    a[j] += last
            a[k % 12] += last
    """,
    "both arms": """
        for k in range(n):
            if x[k % 5, i] > 0:
                for j in range(k % 4, 12):
                    a[j] += k
            else:
                j = k % 12
                while a[j] > 0:
                    a[j] -= 50
    """,
    "a condition that the arm changes": """
        for k in range(n):
            if a[0] > 0:
                a[0] = -1
                for j in range(k % 12, 12):
                    a[j] -= 1
            else:
                a[0] = 1
                for j in range(k % 12, 12):
                    a[j] += 2
    """,
    "nested loops that threads leave beside uniform loops": """
        k = abs(x[0, i])
        while k > 0:
            j = k % 12
            while j < 12 and a[j] != 3:
                a[j] += 1
                if a[j] > 100:
                    break
                j += 2
            k -= 1
        for p in range(n):
            for q in range(p, 12):
                for r in range(q, 12):
                    a[r] = (a[r] + a[q] * p) % 1000
    """,
    "a bound that only some threads divide by": """
        zero = n - n
        for k in range(n):
            if x[0, i] > 100:
                last = k // zero
                for j in range(last, 12):
                    a[j] = 0
            for j in range(k, 12):
                a[j] += a[k]
    """,
    "a loop that no thread runs": """
        for k in range(n):
            if x[0, i] > 100:
                for j in range(k * 1000000, k * 1000000 + 9):
                    a[j] += a[j + 1]
            a[k % 12] += 1
    """,
    "a load that no thread makes": """
        for k in range(n):
            if x[0, i] > 100:
                for j in range(k * 1000000000, k * 1000000000 + 9):
                    a[j % 12] += x[0, j]
            a[k % 12] += 1
    """,
    "a division that some threads run": """
        d = abs(x[0, i]) % 3
        for k in range(n):
            if d > 0:
                for j in range(k, 12):
                    a[j] += a[k] // d
    """,
    "negative indices": """
        for k in range(1, n + 1):
            a[-k] += a[-1]
    """,
    "an index of a copy": """
        b = ARRAY(12, np.int64)
        for k in range(12):
            b[k] = k
        for k in range(n):
            b[(k + abs(x[0, i])) % 12] = a[k % 12] % 12
            a[b[k % 12]] += b[11 - k % 12]
    """,
    "continued": """
        for k in range(n):
            if x[k % 5, i] > 3:
                continue
            for j in range(k % 12, 12):
                a[j] += k
    """,
}
# Most of their accesses would be gathers, or their arrays have another use.
OTHERS = {
    "an insertion sort": """
        for p in range(1, 12):
            value = a[p]
            k = p - 1
            while k >= 0 and a[k] > value:
                a[k + 1] = a[k]
                k -= 1
            a[k + 1] = value
    """,
    "nested loops that threads leave": """
        k = abs(x[0, i])
        while k > 0:
            j = k % 12
            while j < 12 and a[j] != 3:
                a[j] += 1
                if a[j] > 100:
                    break
                j += 2
            k -= 1
    """,
    "an array that escapes": """
        b = a[2:7]
        for k in range(n):
            b[k % 5] += a[k % 12]
            cuda_like = b[abs(x[0, i]) % 5]
            a[k % 12] += cuda_like
    """,
}
BODIES = {name: FILL + body + SUM for name, body in (LOCKSTEP | OTHERS).items()}


def made(source, body, array):
    inner = "\n".join(textwrap.indent(textwrap.dedent(part), "    ") for part in [body])
    return module(source.format(body=inner.replace("ARRAY", array)))


def dedented(name):
    return "\n".join(textwrap.dedent(part).strip("\n") for part in (FILL, (LOCKSTEP | OTHERS)[name], SUM))


def inputs(count):
    return np.random.default_rng(5).integers(-9, 9, (5, count))


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(("n", "block", "count"), [(0, 32, 70), (1, 64, 1), (9, 48, 150), (12, 256, 517)])
def test_values(name, n, block, count):
    kernel = made(KERNEL, dedented(name), "cuda.local.array").kernel
    plain = made(PLAIN, dedented(name), "np.zeros").plain
    x = inputs(count)
    out, expected = np.zeros((1, count), np.int64), np.zeros((1, count), np.int64)
    kernel[-(-count // block), block](x, n, out)
    for i in range(count):
        plain(i, x, n, expected)
    np.testing.assert_array_equal(out, expected)


def features(kernel):
    return {name for _, _, names in _weft.plan_features(kernel) for name in names}


@pytest.mark.cpu
@pytest.mark.parametrize("name", BODIES)
def test_which_kernels_have_such_arrays(name):
    kernel = made(KERNEL, dedented(name), "cuda.local.array").kernel
    kernel[1, 32](inputs(32), 3, np.zeros((1, 32), np.int64))
    assert ("lane-arrays" in features(kernel)) == (name in LOCKSTEP)


DTYPES = [
    *(np.bool_, np.int8, np.uint8, np.int16, np.int32, np.uint64),
    *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    @cuda.jit
    def reordered(x, order, out):
        i = cuda.grid(1)
        if i < out.shape[1]:
            a = cuda.local.array(9, dtype)
            for k in range(9):
                a[k] = x[k, i]
            for k in range(9):
                for j in range(k, 9):
                    if order[j, i] > k:
                        kept = a[j]
                        a[j] = a[order[k, i]]
                        a[order[k, i]] = kept
            for k in range(9):
                out[k, i] = a[k]

    count = 100
    rng = np.random.default_rng(8)
    x = (
        (rng.integers(0, 100, (9, count)) + (1j * rng.integers(0, 9, (9, count))))
        if np.issubdtype(dtype, np.complexfloating)
        else rng.integers(0, 2 if dtype == np.bool_ else 100, (9, count))
    )
    x = x.astype(dtype)
    order = rng.integers(0, 9, (9, count)).astype(np.int32)
    out, expected = np.zeros_like(x), x.copy()
    reordered[3, 64](x, order, out)
    for i in range(count):
        a = expected[:, i]
        for k in range(9):
            for j in range(k, 9):
                if order[j, i] > k:
                    a[[j, order[k, i]]] = a[[order[k, i], j]]
    np.testing.assert_array_equal(out, expected)


PAIR = np.dtype([("key", np.int32), ("value", np.float64)])


def test_records():
    @cuda.jit
    def shifted(x, n, out):
        i = cuda.grid(1)
        if i < out.size:
            a = cuda.local.array(6, PAIR)
            for k in range(6):
                a[k].key = x[i] + k
                a[k].value = k
            for k in range(n):
                a[(k + x[i]) % 6].value += a[k % 6].key
            total = 0.0
            for k in range(6):
                total += a[k].value * (k + 1)
            out[i] = total

    x, out = np.arange(90) % 11, np.zeros(90)
    shifted[3, 32](x, 10, out)
    for i in range(90):
        keys, held = [x[i] + k for k in range(6)], [float(k) for k in range(6)]
        for k in range(10):
            held[(k + x[i]) % 6] += keys[k % 6]
        assert out[i] == sum(value * (k + 1) for k, value in enumerate(held))


def test_across_a_barrier():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        t = cuda.threadIdx.x
        tile = cuda.shared.array(64, np.int64)
        a = cuda.local.array(6, np.int64)
        for k in range(6):
            a[k] = x[i] + k
        for k in range(n):
            tile[t] = a[k % 6]
            cuda.syncthreads()
            a[(x[i] + k) % 6] += tile[63 - t]
            cuda.syncthreads()
        out[i] = a[0] + 2 * a[1] + 3 * a[2] + 4 * a[3] + 5 * a[4] + 6 * a[5]

    x, out = np.arange(64) % 5, np.zeros(64, np.int64)
    kernel[1, 64](x, 7, out)
    a = np.array([[x[i] + k for k in range(6)] for i in range(64)])
    for k in range(7):
        tile = a[:, k % 6].copy()
        for i in range(64):
            a[i, (x[i] + k) % 6] += tile[63 - i]
    np.testing.assert_array_equal(out, a @ np.arange(1, 7))


def test_rows_of_blocks():
    @cuda.jit
    def kernel(x, n, out):
        j, i = cuda.grid(2)
        if i < out.shape[0] and j < out.shape[1]:
            a = cuda.local.array(8, np.float64)
            for k in range(8):
                a[k] = x[i, j] + k
            for k in range(n):
                for m in range(k % 8, 8):
                    a[m] += a[k % 8] * 0.5
            out[i, j] = a[7] - a[2]

    x = np.random.default_rng(1).random((21, 45))
    out = np.zeros_like(x)
    kernel[(4, 6), (16, 4)](x, 5, out)
    a = [x + k for k in range(8)]
    for k in range(5):
        for m in range(k % 8, 8):
            a[m] = a[m] + a[k % 8] * 0.5
    np.testing.assert_array_equal(out, a[7] - a[2])
