# weft: sig = "void(uint32[::1])"
"""PTX that the target, which is sm_80 here, does not have."""

import numpy as np
from weft import cuda


@cuda.jit
def not_in_target(x):
    x[0] = cuda.inline_ptx("mov.u32 %0, %%cluster_ctarank;", "=r", np.uint32)  # error: [E0308] "`sm_90` or newer"
