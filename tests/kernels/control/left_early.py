# weft: sig = "void(float32, int32, int32[:])", show = ["ptx"]
"""A loop with two exits keeps its counter in one register: no iteration copies the counter or its bound for an exit."""

from weft import cuda, float32


@cuda.jit
def left_early(step, limit, out):
    i = cuda.grid(1)
    if i < out.size:
        c = float32(i) * step
        x = float32(0)
        count = 0
        while count < limit:
            if x * x > float32(4):
                break
            x = x * x + c
            count += 1
        out[i] = count
