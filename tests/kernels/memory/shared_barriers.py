# weft: sig = "void(float32[:, ::1], float32[:, ::1])", targets = ["sm_80", "sm_90"], show = ["ptx"]
"""The first warp hands rows to the second one through barriers in shared memory."""

from weft import cuda, float32


@cuda.jit
def shared_barriers(x, out):
    full, empty = cuda.barrier(32, 2), cuda.barrier(32, 2)
    cell = cuda.shared.array((2, 32), float32)
    lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
    for s in range(x.shape[0]):
        if warp == 0:
            empty[s % 2].wait(s // 2 & 1 ^ 1)
            cell[s % 2, lane] = x[s, lane]
            full[s % 2].arrive()
        else:
            full[s % 2].wait(s // 2 & 1)
            out[s, lane] = cell[s % 2, 31 - lane]
            empty[s % 2].arrive()
