# weft: sig = "void(float32[::1], float32[::1])", show = ["ptx"]
"""A block-wide sum in shared memory: a loop with a barrier."""

from weft import cuda, float32

TPB = 256


@cuda.jit
def reduction(x, out):
    partial = cuda.shared.array(TPB, float32)
    t = cuda.threadIdx.x
    partial[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = TPB // 2
    while step > 0:
        if t < step:
            partial[t] += partial[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = partial[0]
