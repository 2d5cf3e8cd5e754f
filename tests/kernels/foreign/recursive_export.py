# weft: sig = "int64(int64)", abi = "c", show = ["ptx"]
"""The exported function calls itself: what other code calls is a function around it."""

from weft import cuda


@cuda.jit(device=True)
def recursive_export(n):
    return 1 if n < 2 else n * recursive_export(n - 1)
