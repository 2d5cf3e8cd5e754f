# weft: sig = "void(float32[:, ::1], TensorMap(float32, (8, 32), 128))", targets = ["sm_90", "sm_100"], show = ["ptx"], without = "sm_80"
"""An array and a box are copied to global memory; the thread waits for both reads of their sources."""

from weft import cuda, float32


@cuda.jit
def bulk_stores(out, boxes):
    row = cuda.shared.array(128, float32)
    box = cuda.shared.array((8, 32), float32, swizzle=128)
    t = cuda.threadIdx.x
    row[t] = t
    box[t % 8, t // 8] = t
    cuda.syncthreads()
    if t == 0:
        cuda.copy_async(out[1], row)
        cuda.copy_commit()
        cuda.copy_async(boxes[4, 32], box)
        cuda.copy_commit()
        cuda.copy_wait(1)
        cuda.copy_wait(read=True)
