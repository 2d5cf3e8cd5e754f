# weft: sig = "void(int32[::1], float32[::1], uint8[::1])", show = ["ir", "ptx"], without = "host"
"""Inline PTX: results, operands that are read and modified, an address, a number; and PTX as a function."""

import numpy as np

from weft import cuda


@cuda.intrinsic("int32(int32, int32)", "add.sat.s32 %0, %1, %2;", pure=True)
def saturating_add(a, b):
    return np.int32(min(max(np.int64(a) + b, -(2**31)), 2**31 - 1))


@cuda.jit
def inline_ptx(x, y, z):
    i = cuda.grid(1)
    lane = cuda.inline_ptx("mov.u32 %0, %%laneid;", "=r", cuda.types.uint32, pure=True)
    low, high = cuda.inline_ptx("{ mov.b64 {%0, %1}, %2; }", "=r", np.int32, "=r", np.int32, "l", np.int64(i) << 30)
    x[i] = saturating_add(x[i], low) + high
    y[i] = cuda.inline_ptx("ex2.approx.ftz.f32 %0, %0;", "+f", y[i])
    cuda.inline_ptx("st.global.u8 [%0], %1;", "l", z[i:], "h", np.uint8(lane))
    cuda.inline_ptx("// $ %%n %0", "n", 7)
