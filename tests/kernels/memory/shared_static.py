# weft: sig = "void(float32[::1], float32[::1])", show = ["ir", "ptx"]
"""Shared memory of fixed size, between two barriers."""

from weft import cuda

TPB = 128


@cuda.jit
def shared_static(x, out):
    tile = cuda.shared.array(TPB, "float32")
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = tile[TPB - 1 - t]
