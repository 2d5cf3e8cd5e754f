# weft: sig = "(Optional(float64), Tuple(int8, Optional(int16)))", abi = "c", show = ["ptx"]
"""An optional argument is passed as the value and a bool; in a struct they are adjacent fields."""

from weft import cuda


@cuda.jit(device=True)
def c_optional(x, pair):
    return pair[1] if x is None else pair[0], x
