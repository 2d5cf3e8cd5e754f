# weft: sig = "void(int32[::1], int32[::1])", assume = ["aligned", "disjoint", "nonneg", "small"], show = ["ptx"]
"""The arms of a branch join before the next iteration, and the outer loop has a head of its own."""

from weft import cuda


@cuda.jit(device=True)
def find(labels, i):
    while labels[i] != i:
        i = labels[i]
    return i


@cuda.jit
def joined_paths(labels, pairs):
    a = 2 * cuda.threadIdx.x
    b = pairs[a]
    done = False
    while not done:
        a = find(labels, a)
        b = find(labels, b)
        if a < b:
            old = cuda.atomic.min(labels, b, a)
            done = old == b
            b = old
        elif b < a:
            old = cuda.atomic.min(labels, a, b)
            done = old == a
            a = old
        else:
            done = True
