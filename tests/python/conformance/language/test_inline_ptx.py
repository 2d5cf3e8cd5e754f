"""Inline PTX in kernels, and functions that are PTX on a GPU and Python on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
from harness import launch
from weft import CompileError, cuda


@cuda.intrinsic("int32(int32, int32)", "add.sat.s32 %0, %1, %2;", pure=True)
def saturating_add(a, b):
    return np.int32(min(max(np.int64(a) + b, -(2**31)), 2**31 - 1))


@cuda.intrinsic(
    "Tuple((uint8, boolean, float64))(uint8, boolean, float32)",
    """{
    .reg .pred p;
    add.u16 %0, %3, 1;
    setp.eq.u16 p, %4, 0;
    selp.u16 %1, 1, 0, p;
    cvt.f64.f32 %2, %5;
}""",
)
def narrow(a, b, c):
    return np.uint8(a + 1), not b, np.float64(c)


@cuda.intrinsic("void(int64[::1], int64)", "st.global.u64 [%0], %1;")
def put(a, x):
    a[0] = x


@cuda.jit
def intrinsics(x, out, small, flags, wide):
    i = cuda.grid(1)
    out[i] = saturating_add(x[i], 2**31 - 100)
    small[i], flags[i], wide[i] = narrow(small[i], x[i] > 50, x[i] / 4)
    put(out[i + x.size :], i * 3)


def test_an_intrinsic_is_ptx_on_a_gpu_and_python_on_a_cpu():
    n = 200
    x = np.arange(n, dtype=np.int32)
    small = np.arange(n).astype(np.uint8)
    args = (x, np.zeros(2 * n, np.int64), small, np.zeros(n, np.bool_), np.zeros(n))
    _, out, got, flags, wide = launch(intrinsics, 2, 100, *args)
    assert out[:n].tolist() == np.minimum(x.astype(np.int64) + 2**31 - 100, 2**31 - 1).tolist()
    assert out[n:].tolist() == (np.arange(n) * 3).tolist()
    assert got.tolist() == (small + 1).tolist()
    assert flags.tolist() == (x <= 50).tolist()
    assert wide.tolist() == (x.astype(np.float32) / 4).tolist()


@cuda.jit
def inline(x, out, halves):
    i = cuda.grid(1)
    lane = cuda.inline_ptx("mov.u32 %0, %%laneid;", "=r", np.uint32, pure=True)
    low, high = cuda.inline_ptx("mov.b64 {%0, %1}, %2;", "=r", np.uint32, "=r", np.uint32, "l", x[i])
    out[i, 0] = low
    out[i, 1] = high
    out[i, 2] = cuda.inline_ptx("mad.lo.u32 %0, %0, %1, %2;", "+r", lane, "r", 3, "n", 7)
    # The results need not come first.
    out[i, 3] = cuda.inline_ptx("add.s64 %1, %0, %0;", "l", x[i], "=l", np.int64)
    out[i, 4] = 5
    cuda.inline_ptx("red.global.add.u64 [%0], %1;", "l", out[i, 4:], "l", x[i])
    halves[i] = cuda.inline_ptx("mul.f16 %0, %0, %0;", "+h", halves[i], pure=True)


@pytest.mark.cuda
def test_inline_ptx():
    n = 64
    x = (np.arange(n, dtype=np.int64) - 7) * (2**33 + 5)
    halves = np.linspace(-3, 3, n).astype(np.float16)
    _, out, squares = launch(inline, 1, n, x, np.zeros((n, 5), np.int64), halves)
    lane = np.arange(n) % 32
    expected = np.stack([x & 0xFFFFFFFF, (x >> 32) & 0xFFFFFFFF, lane * 3 + 7, x * 2, x + 5], axis=1)
    assert out.tolist() == expected.tolist()
    assert squares.tolist() == (halves * halves).tolist()


@pytest.mark.cpu
def test_inline_ptx_needs_a_gpu():
    with pytest.raises(CompileError, match="needs a GPU") as raised:
        inline[1, 32](np.zeros(32, np.int64), np.zeros((32, 5), np.int64), np.zeros(32, np.float16))
    assert "cuda.intrinsic" in str(raised.value)


def test_intrinsics_take_ptx_and_a_function():
    with pytest.raises(TypeError, match="PTX as a str, not int"):
        cuda.intrinsic("int32(int32)", 5)
    with pytest.raises(TypeError, match="decorates a Python function"):
        cuda.intrinsic("int32(int32)", "")(5)


@cuda.jit
def own_table(x, at, out):
    i = cuda.grid(1)
    table = cuda.local.array(12, np.int16)
    for k in range(12):
        table[k] = x[i] + k
    out[i] = saturating_add(table[at[i]], 0)


def test_neighbors_of_a_table_are_added_right():
    # With PTX of the driver's version, LLVM packs these sums in pairs, whose lower half CUDA 13.0 computes wrong.
    at = np.arange(96, dtype=np.int32) % 12
    x = (np.arange(96) * 5 % 256).astype(np.uint8)
    *_, out = launch(own_table, 3, 32, x, at, np.zeros(96, np.int32))
    assert out.tolist() == (x + at).tolist()
