"""Adjoint kernels of loops over rows, with sums of blocks: their gradients, and what their code does not do."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gradients import check
from weft import cuda, types

STRIDE = 32


@cuda.jit
def softmax(x, out):
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    most = -1e30
    for k in range(thread, x.shape[1], STRIDE):
        most = max(most, cuda.stop_gradient(x[row, k]))
    most = cuda.coop.block.max(most)
    total = 0.0
    for k in range(thread, x.shape[1], STRIDE):
        total += math.exp(x[row, k] - most)
    total = cuda.coop.block.sum(total)
    for k in range(thread, x.shape[1], STRIDE):
        out[row, k] = math.exp(x[row, k] - most) / total


@cuda.jit
def normalized(x, w, out):
    """Two sums of a block, in a loop over rows."""
    thread = cuda.threadIdx.x
    for row in range(cuda.blockIdx.x, x.shape[0], cuda.gridDim.x):
        s = 0.0
        for k in range(thread, x.shape[1], STRIDE):
            s += x[row, k]
        mean = cuda.coop.block.sum(s) / x.shape[1]
        s = 0.0
        for k in range(thread, x.shape[1], STRIDE):
            s += (x[row, k] - mean) ** 2
        scale = 1 / math.sqrt(cuda.coop.block.sum(s) / x.shape[1] + 0.1)
        for k in range(thread, x.shape[1], STRIDE):
            out[row, k] = (x[row, k] - mean) * scale * w[k]


@cuda.jit
def other_range(x, out):
    """The first loop loads elements that other threads store to."""
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    total = 0.0
    for k in range(0, x.shape[1], 2):
        total += math.sin(x[row, k])
    total = cuda.coop.block.sum(total)
    for k in range(thread, x.shape[1], STRIDE):
        out[row, k] = x[row, k] * total


@cuda.jit
def by_barrier(x, out):
    """Different threads store to one element, before and after the sum, and load the same elements."""
    t = cuda.threadIdx.x
    last = cuda.blockDim.x - 1
    out[t] = x[t] * x[t]
    total = cuda.coop.block.sum(x[t])
    out[last - t] = math.sin(x[last - t]) * total


@cuda.jit
def after_loop(x, out):
    """The index of the store is the counter after the loop: threads load each other's elements."""
    i = cuda.grid(1)
    k = i
    s = 0.0
    while k < i + 5:
        s += x[k] * x[k]
        k += 1
    out[k] = s


@cuda.jit
def through_shared(x, out):
    """The sum's barriers order the accesses of the array, even if the reverse needs no result of it."""
    t = cuda.threadIdx.x
    shared = cuda.shared.array(64, np.float64)
    shared[t] = x[t] * x[t]
    total = cuda.coop.block.sum(x[t])
    out[t] = math.sin(shared[(t + 1) % cuda.blockDim.x]) + total


@cuda.jit
def of_some(x, flag, out):
    """A sum in a branch, one of the first threads, one for the first thread, and one that is not used."""
    t = cuda.threadIdx.x
    v = x[t]
    if flag > 0:
        v *= cuda.coop.block.sum(v * v)
    v += cuda.coop.block.sum(v * x[t], valid=7)
    first = cuda.coop.block.sum(math.sin(v), broadcast=False)
    cuda.coop.block.sum(v)
    out[t] = v
    if t == 0:
        out[t] = v + first


@cuda.jit
def guarded(x, out, n):
    """A sum in a guard, which differs in no block."""
    i = cuda.grid(1)
    if cuda.blockIdx.x * cuda.blockDim.x < n:
        out[i] = x[i] * cuda.coop.block.sum(x[i] * x[i])


def ptx(kernel, *args, **options):
    """The code of the adjoint kernel for a GPU, for launches that the compiler knows nothing about."""
    bwd = cuda.vjp(cuda.jit(kernel.py_func, **options) if options else kernel)
    given = [getattr(types, value.dtype.name) for value in args]
    given = tuple(ty[:, ::1] if value.ndim == 2 else ty[::1] for ty, value in zip(given, args, strict=True))
    return bwd.dispatcher(*args).inspect_asm(given + given, target="sm_90")


def rows(count, width, dtype=np.float64):
    return np.random.default_rng(width).random((count, width)).astype(dtype)


@pytest.mark.parametrize("width", [1, 31, 32, 100, 300])
def test_softmax(width):
    x = rows(3, width)
    check(softmax, 3, STRIDE, (x, np.zeros_like(x)), ["out"])


@pytest.mark.parametrize(("block", "stride"), [(STRIDE, 2), (STRIDE, 5)])
def test_normalized(block, stride):
    x = rows(5, 100)
    check(normalized, stride, block, (x, rows(1, 100)[0], np.zeros_like(x)), ["out"])


def test_other_range():
    x = rows(3, 70)
    check(other_range, 3, STRIDE, (x, np.zeros_like(x)), ["out"])


@pytest.mark.parametrize("block", [1, 5, 32, 50, 64])
def test_sums_and_arrays(block):
    x = np.random.default_rng(block).random(64)
    check(by_barrier, 1, block, (x, np.zeros(64)), ["out"])
    check(through_shared, 1, block, (x, np.zeros(64)), ["out"])
    if block > 7:
        for flag in (0, 1):
            check(of_some, 1, block, (x, np.int64(flag), np.zeros(64)), ["out"])


def test_guarded():
    x = np.random.default_rng(1).random(96)
    check(guarded, 3, 32, (x, np.zeros(96), np.int64(40)), ["out"])


def test_after_loop():
    x = np.random.default_rng(2).random(133)
    check(after_loop, 4, 32, (x, np.zeros(133)), ["out"])


def test_quotients():
    """A quotient of a float32 by the rules has no slow path; those of the kernel, and of other types, are rounded."""

    @cuda.jit
    def quotient(x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i] / y[i]

    x = np.ones(4, np.float32)
    code = ptx(quotient, x, x, x)
    assert "div.full.f32" in code
    assert code.count("div.rn.f32") == 1  # the value of the kernel
    assert "div.full" not in ptx(quotient, *[np.ones(4)] * 3)
    assert "div.full" not in ptx(quotient, x, x, x, fastmath=True)
    x, y, out = (np.random.default_rng(3).random(100).astype(np.float32) + 0.5 for _ in range(3))
    dx, dy = np.zeros((2, 100), np.float32)
    cuda.vjp(quotient)[1, 128](x, y, out, dx, dy, out.copy())
    np.testing.assert_allclose(dx, out / y, rtol=4e-7)
    np.testing.assert_allclose(dy, -out * x / y / y, rtol=8e-7)


def test_code_of_softmax():
    """Each element of the gradient is loaded and stored once, and the adjoint of the sum is a sum."""
    file = Path(__file__).parents[3] / "benchmarks" / "derivatives_kernels.py"
    signature = f"void({', '.join(['float32[:, ::1]'] * 4)})"
    command = [sys.executable, "-m", "weft", "emit", str(file), "--kernel", "softmax", "--sig", signature]
    command += ["--adjoint", "x", "--adjoint", "out", "--target", "sm_90", "--assume", "disjoint"]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert not re.search(r"(atom|red)\.\S*(add|cas)", code)
    # Two of each collective: the maximum, the sum and the sum of the adjoints.
    assert len(re.findall(r"bar(?:rier)?\.\S*sync", code)) == 6
    # The adjoint of the sum is divided after the loop, and the kernel's quotient is not computed again.
    assert code.count("div.rn.f32") == 2
    # The unrolled loop loads the elements of four iterations first.
    loops = [part for part in re.split(r"\n\$L\w+:", code) if part.count("st.global") == 8]
    assert len(loops) == 1
    assert loops[0].split("st.global")[0].count("ld.global") == 12


def test_atomics_remain():
    """The first loop loads elements of other threads; after a barrier, another thread stores to an element."""
    x = rows(3, 100, np.float32)
    for kernel in (other_range, by_barrier, after_loop):
        args = (x, x) if kernel is other_range else (x[0], x[0])
        assert re.search(r"(atom|red)\.\S*global", ptx(kernel, *args)), kernel
