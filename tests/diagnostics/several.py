# weft: sig = "void(float32[::1])"
"""All errors of a kernel are reported, not only the first."""

from weft import cuda


@cuda.jit
def several(x):
    a = missing  # error: [E0201] "missing"
    b = x.nothing  # error: [E0207] "nothing"
    x[0] = x[0.5]  # error: [E0209] "float64"
    x[1] = a + b
