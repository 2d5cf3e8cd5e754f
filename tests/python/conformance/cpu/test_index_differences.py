"""Indices that are differences of two integers, guarded by conditions that imply which one is larger, and by conditions
that only seem to imply it: a negative index counts from the end, as everywhere."""

import numpy as np
import pytest
from harness import run
from weft import cuda

N = 50


@cuda.jit
def differences(x, w, out):
    i = cuda.grid(1)
    if i >= out.shape[1]:
        return
    a = b = c = d = e = 0
    if i >= w:
        a = x[i - w]
    if w < i:
        b = x[i - w - 1]
    if not (i < w):
        c = x[i - w]
    else:
        c = x[i - w]
    if i > w and i - w < 20:
        d = x[i - w]
    if i + 3 >= w:
        e = x[i + 3 - w]
    out[0, i], out[1, i], out[2, i], out[3, i], out[4, i] = a, b, c, d, e


@cuda.jit
def seemingly(x, w, out):
    """The value changes after the condition, or the condition does not imply the bound."""
    i = cuda.grid(1)
    if i >= out.shape[1]:
        return
    a = b = c = d = e = 0
    j = i
    if j >= w:
        j -= 2
        a = x[j - w]
    if i >= w - 2:
        b = x[i - w]
    if i >= w or x[i] > 20:
        c = x[i - w]
    k = 0
    while k < 3:
        if i < w:
            k += 3
            continue
        v = w + k
        d += x[i - v]
        k += 1
    if w >= i:
        e = x[i - w]
    out[0, i], out[1, i], out[2, i], out[3, i], out[4, i] = a, b, c, d, e


@cuda.jit
def early(x, w, out):
    i = cuda.grid(1)
    if i >= out.shape[1]:
        return
    if i < w:
        out[0, i] = x[i - w]
        return
    total = 0
    for step in range(4):
        if i - w < step:
            break
        total += x[i - w - step]
    out[0, i] = x[i - w]
    out[1, i] = total


@pytest.mark.parametrize("w", [-3, 0, 1, 7, 30, 49])
@pytest.mark.parametrize("kernel", [differences, seemingly, early])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_differences(kernel, w, dtype):
    x = np.random.default_rng(1).integers(1, 50, N + 8).astype(dtype)
    run(kernel, 2, 32, x, w, np.zeros((5, N), dtype))
