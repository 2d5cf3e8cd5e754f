"""Thread-local arrays around a loop: their elements become variables where all indices are constants.

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

FEW = 3


@cuda.jit(device=True)
def rotated(of, into):
    for k in range(4):
        into[(k + 1) % 4] = of[k] + k


@cuda.jit(device=True)
def total_of(of):
    total = 0
    for k in range(4):
        total += of[k]
    return total


@cuda.jit
def kernel(x, n, out):
    i = cuda.grid(1)
    if i >= out.shape[1]:
        return
{body}
"""
PLAIN = """
import numpy as np

FEW = 3


def rotated(of, into):
    for k in range(4):
        into[(k + 1) % 4] = of[k] + k


def total_of(of):
    return int(sum(of[:4]))


def plain(i, x, n, out):
{body}
"""

BODIES = {
    "a recurrence of several values": """
        a = ARRAY(4, np.int64)
        for k in range(4):
            a[k] = x[k, i]
        for step in range(n):
            last = a[3]
            for k in range(4):
                before = a[k]
                a[k] = last + k * x[step % x.shape[0], i]
                last = before
        for k in range(4):
            out[k, i] = a[k]
    """,
    "two dimensions": """
        a = ARRAY((3, 3), np.float64)
        b = ARRAY((3, 3), np.float64)
        for r in range(3):
            for c in range(3):
                a[r, c] = x[r, i] + c
        for step in range(n):
            for r in range(3):
                for c in range(3):
                    total = 0.0
                    for k in range(FEW):
                        total += a[r, k] * a[k, c]
                    b[r, c] = total
            for r in range(3):
                for c in range(3):
                    a[r, c] += b[r, c] % 7 - x[step % x.shape[0], i]
        for r in range(3):
            out[r, i] = a[r, 0] * 4 + a[r, 1] * 2 + a[r, 2]
    """,
    "a triangle": """
        a = ARRAY((4, 4), np.int64)
        for p in range(4):
            for q in range(p, 4):
                a[p, q] = x[(p + q) % x.shape[0], i]
                a[q, p] = a[p, q] + 1
        for step in range(n):
            for p in range(3):
                for q in range(p + 1, 4):
                    a[p, q] = (a[p, q] + a[q, p] * step) % 1001
        for p in range(4):
            out[p, i] = a[p, 0] + a[p, 1] + a[p, 2] + a[p, 3]
    """,
    "a branch": """
        a = ARRAY(3, np.int64)
        a[0] = a[1] = a[2] = i
        for step in range(n):
            value = x[step % x.shape[0], i]
            if value > 0:
                a[0] += value
            elif value < -3:
                a[1] = a[0]
            else:
                a[2] -= a[1] + 1
        for k in range(3):
            out[k, i] = a[k]
    """,
    "an index from the data": """
        a = ARRAY(4, np.int64)
        for k in range(4):
            a[k] = k
        for step in range(n):
            a[abs(x[step % x.shape[0], i]) % 4] += step
        for k in range(4):
            out[k, i] = a[k]
    """,
    "one array with and one without constant indices": """
        a = ARRAY(4, np.int64)
        b = ARRAY(4, np.int64)
        for k in range(4):
            a[k] = k
            b[k] = x[k, i]
        for step in range(n):
            a[abs(b[0]) % 4] += b[1]
            for k in range(4):
                b[k] = (b[k] * 3 + a[k]) % 1009
        for k in range(4):
            out[k, i] = a[k] * 10000 + b[k]
    """,
    "negative indices": """
        a = ARRAY(4, np.int64)
        for k in range(4):
            a[-1 - k] = x[k, i]
        for step in range(n):
            a[-1] += a[-4] + step
            a[-4] = a[-2] % 100
        for k in range(4):
            out[k, i] = a[k]
    """,
    "an exit": """
        a = ARRAY(2, np.int64)
        a[0] = x[0, i]
        a[1] = 1
        for step in range(n):
            if a[0] > 40:
                break
            a[0] += a[1] + i
            a[1] = a[0] % 5
        out[0, i] = a[0]
        out[1, i] = a[1]
    """,
    "device functions": """
        a = ARRAY(4, np.int64)
        b = ARRAY(4, np.int64)
        for k in range(4):
            a[k] = x[k, i]
        for step in range(n):
            rotated(a, b)
            for k in range(4):
                a[k] = b[k] % 997 - step
            a[step % 4] += total_of(b)
        for k in range(4):
            out[k, i] = a[k]
    """,
    "small types": """
        a = ARRAY(4, np.int8)
        b = ARRAY(2, np.float32)
        for k in range(4):
            a[k] = np.int8(x[k, i])
        b[0] = np.float32(0.5)
        b[1] = np.float32(i)
        for step in range(n):
            for k in range(4):
                a[k] = np.int8((int(a[k]) + k * step) % 100)
            b[0] = b[1] - b[0]
        for k in range(4):
            out[k, i] = a[k]
        out[0, i] += int(b[0] * np.float32(2))
    """,
    "a loop that runs in no thread": """
        a = ARRAY(2, np.int64)
        a[0] = 3
        a[1] = x[0, i]
        for step in range(n - n):
            a[0] += a[1]
        out[0, i] = a[0]
        out[1, i] = a[1]
    """,
    "a loop in the loop": """
        a = ARRAY(3, np.int64)
        for k in range(3):
            a[k] = x[k, i]
        for step in range(n):
            for again in range(step % 3):
                a[0] += a[1] * again
                a[1] = (a[2] + again) % 50
            a[2] += 1
        for k in range(3):
            out[k, i] = a[k]
    """,
}


def made(source, body, array):
    inner = textwrap.indent(textwrap.dedent(body).strip(), "    ").replace("ARRAY", array)
    return module(source.format(body=inner))


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(("n", "block"), [(0, 32), (1, 64), (13, 48)])
def test_elements_of_local_arrays(name, n, block):
    kernel = made(KERNEL, BODIES[name], "cuda.local.array").kernel
    plain = made(PLAIN, BODIES[name], "np.zeros").plain
    count = 150
    x = np.random.default_rng(3).integers(-9, 9, (5, count))
    out, expected = np.zeros((4, count), np.int64), np.zeros((4, count), np.int64)
    kernel[-(-count // block), block](x, n, out)
    for i in range(count):
        plain(i, x, n, expected)
    np.testing.assert_array_equal(out, expected)


def test_the_address_of_an_element():
    @cuda.jit
    def kernel(x, n, out):
        i = cuda.grid(1)
        if i < out.size:
            a = cuda.local.array(4, np.int64)
            for k in range(4):
                a[k] = x[i] + k
            part = a[1:3]
            for step in range(n):
                part[0] += step
                a[2] += part[0]
                cuda.atomic.add(a, 3, part[1])
            out[i] = a[0] + a[1] * 10 + a[2] * 100 + a[3] * 1000

    x = np.arange(70)
    out = np.zeros(70, np.int64)
    kernel[3, 32](x, 6, out)
    for i in range(70):
        a = [i, i + 1, i + 2, i + 3]
        for step in range(6):
            a[1] += step
            a[2] += a[1]
            a[3] += a[2]
        assert out[i] == a[0] + a[1] * 10 + a[2] * 100 + a[3] * 1000


# In the last one, a loop of a strip remains around the other array (`test_lane_arrays.py`).
REPLACED = ["a recurrence of several values", "two dimensions", "a branch", "negative indices", "device functions"]
KEPT = ["an index from the data"]


@pytest.mark.cpu
@pytest.mark.parametrize("name", [*REPLACED, *KEPT])
def test_which_arrays_are_replaced(name):
    kernel = made(KERNEL, BODIES[name], "cuda.local.array").kernel
    kernel[1, 32](np.ones((5, 32), np.int64), 2, np.zeros((4, 32), np.int64))
    names = {name for _, _, names in _weft.plan_features(kernel) for name in names}
    assert ("scalar-replacement" in names) == (name in REPLACED)
