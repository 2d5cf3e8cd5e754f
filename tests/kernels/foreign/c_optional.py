# weft: sig = "(Optional(float64), Tuple(int8, Optional(int16)))", abi = "c", show = ["ptx"]
"""An argument that may be None is the value and a bool; in a struct both lie side by side."""

from weft import cuda


@cuda.jit(device=True)
def c_optional(x, pair):
    return pair[1] if x is None else pair[0], x
