# weft: sig = "void(float32[::1], float32[:,::1], float32[::1])", show = ["ir", "ptx"]
"""Strided loops that only read global memory are unrolled by four on a GPU; loops that store to aliases are not."""

from weft import cuda


@cuda.jit
def strided_reads(x, rows, out):
    i = cuda.grid(1)
    total = 0.0
    for k in range(i, x.size, cuda.gridsize(1)):
        total += x[k]
    for k in range(cuda.threadIdx.x, rows.shape[1], 256):
        if rows[0, k] > total:
            total = rows[0, k]
    for k in range(i, out.size, 32):
        out[k] = total
