# weft: sig = "void(float32[::1], float32[::1])", show = ["ptx"]
"""A vector is accessed in one instruction if its elements are suitably aligned."""

from weft import cuda


@cuda.jit
def vectors(source, target):
    i = cuda.grid(1)
    x = cuda.local.array(1, cuda.float32x4)
    shared = cuda.shared.array(64, cuda.float32x4)
    x[0] = source.view(cuda.float32x4)[i]
    shared[cuda.threadIdx.x] = x[0]
    cuda.syncthreads()
    target.view(cuda.float32x4)[i] = shared[63 - cuda.threadIdx.x] * 2
