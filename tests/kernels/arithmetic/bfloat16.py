# weft: sig = "void(bfloat16[::1], bfloat16[::1], float64, int64)", targets = ["sm_75", "sm_90"], show = ["ptx", "nvvm"]
"""bfloat16 uses its own instructions on SMs that have them (all of them from 9.0 on), else float32."""

from weft import cuda


@cuda.jit
def bfloat16(out, x, wide, n):
    a = x[0]
    b = x[1]
    out[0] = a + b
    out[1] = a * b + x[2]
    out[2] = wide
    out[3] = n
    if a < b:
        out[4] = -a
