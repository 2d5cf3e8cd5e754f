# weft: sig = "void(float32[::1], float32[::1], float32)"
from weft import cuda, float32


@cuda.jit
def hoist_broadcasts(x, out, reach):
    tile = cuda.shared.array((16, 2), float32)
    t = cuda.threadIdx.x
    own = x[t]
    tile[t % 16, t // 16 % 2] = own
    cuda.syncthreads()
    total = float32(0)
    for k in range(16):
        near = own - tile[k, 0]
        if near < reach:
            far = near - tile[k, 1]
            if far < reach:
                total += near / far
    out[t] = total
