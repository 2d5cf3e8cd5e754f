# weft: sig = "void(int32[::1], uint8[::1], int32[::1])", show = ["ptx"]
"""A chain of tests of one value with short arms becomes selects; a chain with a store in an arm remains branches."""

from weft import cuda


@cuda.jit
def short_arms(out, steps, lengths):
    i = cuda.grid(1)
    x = 0
    y = 0
    for k in range(lengths[i]):
        step = steps[k]
        if step == 0:
            x += 1
        elif step == 1:
            x -= 1
        elif step == 2 or step == 7:
            y += x
        else:
            y ^= 5
    if x == 0:
        out[0] = y
    elif x == 1:
        out[1] = x
    elif x == 2:
        out[2] = y
    out[i] = x + y
