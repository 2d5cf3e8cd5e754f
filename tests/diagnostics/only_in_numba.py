# weft: sig = "void(int32[::1], float32[::1])"
"""Names that numba-cuda has in kernels and weft does not yet: no typos, and what to write instead."""

import numpy as np
from weft import cuda


@cuda.jit
def only_in_numba(x, y):
    lane = cuda.laneid
    cuda.shufl_down_sync(0xFFFFFFFF, x[lane], 1)  # error: [E0207] "`cuda` has no `shufl_down_sync`"
    z = np.concatenate((y, y))  # error: [E0207] "kernels do not have `numpy.concatenate`"
