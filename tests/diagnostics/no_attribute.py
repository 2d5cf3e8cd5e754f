# weft: sig = "void(float32[:, ::1])"
"""A value has no such attribute; the nearest is offered."""

from weft import cuda


@cuda.jit
def no_attribute(x):
    x[0, 0] = x.shap[0]  # error: [E0207] "`shap`"
