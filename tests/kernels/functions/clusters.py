# weft: sig = "void(int32[::1], TensorMap(float16, (64, 64), 128), int32[::1], float16[::1])", targets = ["sm_90", "sm_100"], show = ["ptx"], without = "sm_80"
"""A cluster's blocks add to each other's bins, arrive at each other's barriers, and receive one copy."""

from weft import cuda, float16, int32


@cuda.jit
def clusters(x, boxes, out, halves):
    bins = cuda.shared.array(64, int32)
    box = cuda.shared.array((64, 64), float16, swizzle=128)
    full, empty = cuda.barrier(1), cuda.barrier(2)
    t, rank, size = cuda.threadIdx.x, cuda.cluster.rank(), cuda.cluster.size()
    bins[t] = 0
    cuda.cluster.sync()
    cuda.atomic.add(cuda.cluster.shared(bins, x[t] % size), t, 1)
    if t == 0:
        cuda.cluster.shared(empty, 0).arrive()
        full.expect(8192)
        if rank == 0:
            empty.wait(0)
            cuda.copy_async(box, boxes[0, 64], full, multicast=3)
    full.wait(0)
    cuda.cluster.sync()
    out[t] = bins[t]
    halves[t] = box[t, 63]
