# weft: assume = ["small", "disjoint"], block = "16,16"
from weft import cuda


@cuda.jit("void(float32[:, ::1], float32[:, ::1], float32[:, ::1])")
def tiled(a, b, c):
    left = cuda.shared.array((16, 16), "float32")
    right = cuda.shared.array((16, 16), "float32")
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = c[y, x]
    for tile in range(a.shape[1] // 16):
        left[ty, tx] = a[y, tile * 16 + tx]
        right[ty, tx] = b[tile * 16 + ty, x]
        cuda.syncthreads()
        for k in range(16):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    c[y, x] = total


@cuda.jit("void(float32[:, ::1], float32[::1])")
def limited_by_memory(a, y):
    kept = cuda.shared.array(64, "float32")
    i = cuda.threadIdx.x
    total = y[i]
    for k in range(a.shape[0]):
        total += a[k, i]
    kept[i] = total
    cuda.syncthreads()
    y[i] = kept[63 - i]


@cuda.jit("void(int32[::1], float32[::1])")
def spin_lock(lock, y):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    y[0] += 1
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


@cuda.jit("void(int32[::1], float32[::1])")
def grid_barrier(n, y):
    y[cuda.grid(1)] += n[0]
    cuda.cg.this_grid().sync()
    y[cuda.grid(1)] += n[1]
