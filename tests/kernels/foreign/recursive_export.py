# weft: sig = "int64(int64)", abi = "c", show = ["ptx"]
"""A recursive function is exported through a wrapper."""

from weft import cuda


@cuda.jit(device=True)
def recursive_export(n):
    return 1 if n < 2 else n * recursive_export(n - 1)
