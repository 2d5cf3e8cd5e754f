# weft: sig = "void(float32[::1])", show = ["ir"]
"""A docstring, pass and assert generate no code."""

from weft import cuda


@cuda.jit
def docstring_and_assert(out):
    """Not code."""
    pass
    assert out.size > 0, "neither is this"
    out[0] = 1.0
