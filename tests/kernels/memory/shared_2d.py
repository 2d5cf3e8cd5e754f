# weft: sig = "void(float32[:, ::1], float32[:, ::1])", show = ["ir", "ptx"]
"""A padded tile: the strides of a shared array are constants."""

from weft import cuda, float32

TILE = 16


@cuda.jit
def shared_2d(a, out):
    tile = cuda.shared.array((TILE, TILE + 1), dtype=float32)
    i, j = cuda.grid(2)
    tile[cuda.threadIdx.x, cuda.threadIdx.y] = a[i, j]
    cuda.syncthreads()
    out[j, i] = tile[cuda.threadIdx.y, cuda.threadIdx.x]
