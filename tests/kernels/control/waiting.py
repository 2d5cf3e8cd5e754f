# weft: sig = "void(int64[::1], int64[::1], int64[::1])", show = ["ptx"]
"""Threads of a warp that wait for each other: polled memory is read in each iteration; a search has plain loads."""

from weft import cuda


@cuda.jit(device=True)
def value_of(flags):
    cuda.threadfence()
    return flags[1]


@cuda.jit
def waiting(flags, keys, out):
    i = cuda.threadIdx.x
    if i == 0:
        while flags[0] == 0:
            cuda.threadfence()
        while value_of(flags) == 0:
            pass
        while cuda.atomic.add(flags, 2, 0) == 0:
            pass
        j = 0
        while keys[j] != 7:
            j += 1
        out[0] = j
    else:
        flags[0] = 1
        flags[1] = 1
        cuda.threadfence()
        cuda.atomic.add(flags, 2, 1)
