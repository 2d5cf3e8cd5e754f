# weft: sig = "void(int64[::1], float64)"
"""PTX with operands and constraints that do not fit."""

import numpy as np

from weft import cuda


@cuda.jit
def inline_ptx(x, y):
    a = cuda.inline_ptx("mov.u32 %0, %%tid.x;", "=q", np.int32)  # error: [E0211] "`=q`"
    b = cuda.inline_ptx("mov.u32 %0, %%tid.x;", "=r", np.int64)  # error: [E0211] "type of the result"
    c = cuda.inline_ptx("mov.b32 %0, %1;", "=r", np.int32, "r", y)  # error: [E0211] "cannot hold float64"
    d = cuda.inline_ptx("mov.u32 %0, %2;", "=r", np.int32, "r", 5)  # error: [E0211] "`%2`"
    e = cuda.inline_ptx("mov.u32 %0, 5;", "=r")  # error: [E0206] "the last constraint has no operand"
    f = cuda.inline_ptx("mov.u32 %0, %1;", "=r", np.int32, "n", x[0])  # error: [E0210] "`n`"
    g = cuda.inline_ptx(x)  # error: [E0210] "first argument"
    x[0] = a + b + c + d + e + f + g
