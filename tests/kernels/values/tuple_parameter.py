# weft: sig = "void(float32[::1], UniTuple(float32, 2), Tuple(int64, float32[::1]))", show = ["ir"]
"""A tuple argument is passed item by item; unused items are not passed."""

from weft import cuda


@cuda.jit
def tuple_parameter(out, scale, pair):
    i, x = pair
    out[i] = x[i] * scale[1]
