# weft: sig = "void(float32[::1], float32)"
"""Names that NumPy has and kernels do not: they are not misspellings of other names."""

import numpy as np
from weft import cuda


@cuda.jit
def real_names(x, y):
    x[:] = np.sort(x)  # error: [E0207] "`numpy` has no `sort` that a kernel can use"
    x[0] = x.tobytes()[0]  # error: [E0207] "tobytes"
    x[0] = np.cov(x)  # error: [E0207] "`cov`"
    x[0] = y.clip(0, 1)  # error: [E0207] "`clip`"
    x[0] = np.sqr(x[0])  # error: [E0207] "`sqr`"
