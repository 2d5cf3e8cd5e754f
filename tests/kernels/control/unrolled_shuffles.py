# weft: sig = "void(float32[:, ::1], float32[::1])", assume = ["aligned", "disjoint", "nonneg", "small"], show = ["ptx"]
"""A loop that shuffles is unrolled by four, and the loads of all four iterations come first."""

from weft import cuda


@cuda.jit
def unrolled_shuffles(values, out):
    lane = cuda.threadIdx.x
    weight = out[lane]
    total = weight
    for j in range(values.shape[0]):
        total += cuda.shfl_sync(0xFFFFFFFF, weight, j) * values[j, lane]
    out[lane] = total
