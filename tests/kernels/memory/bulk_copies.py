# weft: sig = "void(float32[:, ::1], TensorMap(float16, (64, 64), 128), float32[::1], float16[::1])", targets = ["sm_90", "sm_100"], show = ["ptx"], without = "sm_80"
"""A row by a bulk copy, and a box by a tensor map; a barrier counts the bytes of both."""

from weft import cuda, float16, float32


@cuda.jit
def bulk_copies(x, boxes, out, halves):
    row = cuda.shared.array(128, float32)
    box = cuda.shared.array((64, 64), float16, swizzle=128)
    bar = cuda.barrier(1)
    t = cuda.threadIdx.x
    for i in range(x.shape[0]):
        if t == 0:
            bar.expect(512 + 8192)
            cuda.copy_async(row, x[i], bar)
            cuda.copy_async(box, boxes[i * 64, -8], bar)
        bar.wait(i)
        out[i] += row[127 - t]
        halves[t] = box[t % 64, 63]
        cuda.syncthreads()
