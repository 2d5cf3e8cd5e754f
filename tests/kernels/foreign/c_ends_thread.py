# weft: sig = "int32(int32)", abi = "c", show = ["ir", "ptx"]
"""C has no way to tell of an exception: the thread ends."""

from weft import cuda


@cuda.jit(device=True)
def c_ends_thread(x):
    if x < 0:
        raise ValueError
    return x + 1
