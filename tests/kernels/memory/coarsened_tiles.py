# weft: sig = "void(float32[::1], float32[::1])", show = ["ir"]
"""Barriers after an early return: the thread executes them once if either coarsened thread is active."""

from weft import cuda, float32


@cuda.jit(coarsen=2)
def coarsened_tiles(x, y):
    values = cuda.shared.array(64, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if i >= x.size:
        return
    values[t] = x[i]
    cuda.syncthreads()
    total = float32(0)
    for k in range(64):
        total += values[k]
    cuda.syncthreads()
    y[i] = total / values[t]
