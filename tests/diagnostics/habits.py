# weft: sig = "void(float32[::1])"
"""A debugger of Python's cannot stop in compiled code, and names that are not called do nothing."""

from weft import cuda


@cuda.jit
def habits(x):
    i = cuda.grid(1)
    breakpoint()  # error: [E0308] "`breakpoint()` cannot stop in a compiled kernel"
    cuda.syncthreads  # error: [E0206] "`cuda.syncthreads` is not called here"
    if i < x.size:
        x[i] = threadIdx.x  # error: [E0201] "`threadIdx` is not defined"
        cuda.atomicAdd(x, i, 1)  # error: [E0207] "has no `atomicAdd`"
        __syncthreads()  # error: [E0201] "`__syncthreads` is not defined"
