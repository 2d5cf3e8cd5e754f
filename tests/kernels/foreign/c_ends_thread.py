# weft: sig = "int32(int32)", abi = "c", show = ["ir", "ptx"]
"""The C ABI cannot report an exception, so the thread ends."""

from weft import cuda


@cuda.jit(device=True)
def c_ends_thread(x):
    if x < 0:
        raise ValueError
    return x + 1
