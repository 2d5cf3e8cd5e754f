# weft: sig = "void(int64[::1], int64[::1])", show = ["ptx"]
"""After a call of a recursive function the warp may have diverged, so the barrier is not the aligned one."""

from weft import cuda


@cuda.jit(device=True)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@cuda.jit
def recursive_barriers(x, out):
    tile = cuda.shared.array(32, "int64")
    i = cuda.threadIdx.x
    tile[i] = fib(x[i])
    cuda.syncthreads()
    out[i] = tile[31 - i] + cuda.syncthreads_count(tile[i] > 3)
