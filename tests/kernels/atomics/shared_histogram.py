# weft: sig = "void(uint8[::1], int32[::1])", show = ["ir", "ptx", "plan"]
"""Atomics in shared memory, then in global memory."""

from weft import cuda, int32


@cuda.jit
def shared_histogram(values, out):
    bins = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    bins[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, values[i], 1)
    cuda.syncthreads()
    cuda.atomic.add(out, t, bins[t])
